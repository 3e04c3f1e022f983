#include "bench_gather.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/npy.h"
#include "base/size.h"
#include "bench_common.h"

#define ROUNDS 5           /* of the launch that is timed */
#define TRIED 50u          /* targets whose sums are looked at */

/* Edges by target, operands ascending: as the store's chunk of all vertices has them. */
typedef struct whole_graph {
    uint32_t vertices, edges;
    uint32_t *start, *index, *target;
} whole_graph;

/* Rows of `from` (pairs) in the order of their column `key`, else as they were; start[v] is where those of v begin. */
static void sort_by(uint32_t *to, const uint32_t *from, uint32_t edges, int key, uint32_t *start, uint32_t vertices)
{
    memset(start, 0, (vertices + 1) * 4ull);
    for (uint64_t k = 0; k < edges; k++)
        start[from[2 * k + key] + 1]++;
    for (uint32_t v = 0; v < vertices; v++)
        start[v + 1] += start[v];
    uint32_t *const at = bench_pages(vertices * 4ull);
    memcpy(at, start, vertices * 4ull);
    for (uint64_t k = 0; k < edges; k++)
        memcpy(&to[2ull * at[from[2 * k + key]]++], &from[2 * k], 8);
    gs_free_pages(at, vertices * 4ull);
}

static uint32_t *read_pairs(whole_graph *g, const char *path)
{
    enum { ROWS = 1 << 20 };
    gs_npy npy = {.fd = -1};
    bench_need(gs_npy_open(&npy, path));
    if (npy.dims != 2 || npy.shape[1] != 2 || npy.dtype != GS_I64 || npy.shape[0] == 0 || npy.shape[0] > UINT32_MAX / 2)
        bench_die("edges.npy must be [edges, 2] of 64 bits, as generated graphs have it");
    g->edges = (uint32_t)npy.shape[0];
    uint32_t *const pair = bench_pages(g->edges * 8ull);
    int64_t *const some = bench_pages(ROWS * 16ull);
    for (uint64_t first = 0, n; first < g->edges; first += n) {
        n = GS_MIN(g->edges - first, (uint64_t)ROWS);
        bench_need(gs_npy_read_rows(&npy, some, first, n, path));
        for (uint64_t k = 0; k < 2 * n; k++) {
            if (some[k] < 0 || some[k] > INT32_MAX)
                bench_die("a vertex that cannot be");
            pair[2 * first + k] = (uint32_t)some[k];
            g->vertices = GS_MAX(g->vertices, (uint32_t)some[k] + 1);
        }
    }
    gs_free_pages(some, ROWS * 16ull);
    gs_npy_close(&npy);
    return pair;
}

static whole_graph read_graph(const char *path)
{
    whole_graph g = {.vertices = 0};
    uint32_t *const pair = read_pairs(&g, path), *const sorted = bench_pages(g.edges * 8ull);
    g.start = bench_pages((g.vertices + 1) * 4ull);
    g.index = bench_pages(g.edges * 4ull);
    g.target = bench_pages(g.vertices * 4ull);
    sort_by(sorted, pair, g.edges, 0, g.start, g.vertices);
    sort_by(pair, sorted, g.edges, 1, g.start, g.vertices);
    for (uint64_t k = 0; k < g.edges; k++)
        g.index[k] = pair[2 * k];
    for (uint32_t v = 0; v < g.vertices; v++)
        g.target[v] = v;
    gs_free_pages(pair, g.edges * 8ull);
    gs_free_pages(sorted, g.edges * 8ull);
    return g;
}

/* Whole numbers, so that sums are the same in any order. */
static float cell(uint32_t row, uint32_t column) { return (float)((row * 31u + column) % 13u); }

/* Into the arena, or out of it. */
static void move(gs_device *d, gs_device_way way, void *to, const void *from, uint64_t bytes)
{
    uint64_t number = 0;
    bool done = false;
    bench_need(gs_device_transfer(d, way, NULL, to, from, bytes));
    bench_need(gs_device_mark_transfers(d, way, &number));
    bench_need(gs_device_poll_transfers(d, way, number, true, &done));
}

static void check(gs_device *d, const whole_graph *g, const float *acc, uint32_t width)
{
    float *const row = bench_pages(width * 4ull);
    for (uint32_t i = 0; i < GS_MIN(TRIED, g->vertices); i++) {
        const uint32_t v = (uint32_t)((uint64_t)i * g->vertices / TRIED);
        move(d, GS_DEVICE_TO_HOST, row, acc + (uint64_t)v * width, width * 4ull);
        for (uint32_t c = 0; c < width; c += 7) {
            float sum = 0;
            for (uint32_t k = g->start[v]; k < g->start[v + 1]; k++)
                sum += cell(g->index[k], c);
            if (sum != row[c] && sum < 0x1p24f)
                bench_die("a sum is not what it should be");
        }
    }
    gs_free_pages(row, width * 4ull);
}

static void fill_table(gs_device *d, float *table, uint32_t rows, uint32_t width)
{
    float *const host = bench_pages((uint64_t)rows * width * 4);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < width; c++)
            host[(uint64_t)r * width + c] = cell(r, c);
    move(d, GS_DEVICE_FROM_HOST, table, host, (uint64_t)rows * width * 4);
    gs_free_pages(host, (uint64_t)rows * width * 4);
}

/* A launch's seconds, after one whose sums are looked at. */
static double time_gather(gs_device *d, const whole_graph *g, const gs_edge_launch *l)
{
    bool done = false;
    bench_need(gs_device_zero(d, l->acc, (uint64_t)g->vertices * l->width * 4));
    bench_need(gs_device_run_edges(d, l));
    bench_need(gs_device_poll(d, gs_device_last_launch(d), true, &done));
    check(d, g, l->acc, l->width);
    const double begin = gs_now();
    for (int i = 0; i < ROUNDS; i++)
        bench_need(gs_device_run_edges(d, l));
    bench_need(gs_device_poll(d, gs_device_last_launch(d), true, &done));
    return (gs_now() - begin) / ROUNDS;
}

/* Into the arena, from *at on. */
static const void *bring(gs_device *d, char **at, const void *from, uint64_t bytes)
{
    void *const to = *at;
    move(d, GS_DEVICE_FROM_HOST, to, from, bytes);
    *at += gs_align_up(bytes, 4096);
    return to;
}

/* An arena of two tables and the graph, which is brought behind them. */
static void *take_memory(gs_device *d, const whole_graph *g, uint64_t table, gs_edges *e)
{
    const uint64_t index = g->edges * 4ull, start = (g->vertices + 1) * 4ull, target = g->vertices * 4ull;
    const gs_device_memory m = {.arena_bytes = 2 * table + index + start + target + 3 * 4096};
    void *arena = NULL;
    bench_need(gs_device_take_memory(d, &m, &arena));
    bench_need(gs_device_join(&d, 1));
    char *at = (char *)arena + 2 * table;
    *e = (gs_edges){.index_bytes = 4, .targets = g->vertices, .operand_rows = g->vertices, .target_rows = g->vertices,
                    .end = g->edges};
    e->index = bring(d, &at, g->index, index);
    e->start = bring(d, &at, g->start, start);
    e->target = bring(d, &at, g->target, target);
    return arena;
}

static void gather(gs_device *d, const whole_graph *g, uint32_t width, double copy)
{
    gs_array array = {.dtype = GS_F32, .width = width, .store_id = -1};
    gs_reg reg = {.kind = GS_REG_SUM, .dtype = GS_F32, .width = width, .array = GS_NONE};
    gs_edge_reg row = {.kind = GS_EDGE_OPERAND, .width = width};
    gs_stage stage = {.sums = 1, .sum = {{.kind = GS_SUM_ADD}}, .regs = 1, .reg = &reg, .edge_regs = 1,
                      .edge_reg = &row};
    const gs_program program = {.arrays = 1, .array = &array, .stages = 1, .stage = &stage, .logits = GS_NONE};
    const uint64_t table = gs_align_up((uint64_t)g->vertices * width * 4, 4096);

    bench_need(gs_device_prepare(d, &program));
    gs_edge_launch l = {.width = width};
    char *const at = take_memory(d, g, table, &l.edges);
    l.operand = at;
    l.acc = (float *)(void *)(at + table);
    fill_table(d, (float *)(void *)at, g->vertices, width);
    const double bytes = g->edges * (4.0 * width + 4) + g->vertices * (8.0 * width + 8),
                 seconds = time_gather(d, g, &l);
    printf("fused gather width %-4u %10.3f ms  %8.1f GB/s  %5.1f %% of copy\n", width, seconds * 1e3,
           bytes / seconds / 1e9, 100 * bytes / seconds / copy);
    gs_device_give_memory(d);
}

void bench_gather(gs_device *d, const char *edges, double copy)
{
    static const uint32_t widths[] = {16, 64, 256};
    const whole_graph g = read_graph(edges);
    printf("%u vertices, %u edges; copy %.1f GB/s\n", g.vertices, g.edges, copy / 1e9);
    for (size_t i = 0; i < GS_ARRAY_LEN(widths); i++)
        gather(d, &g, widths[i], copy);
    gs_free_pages(g.start, (g.vertices + 1) * 4ull);
    gs_free_pages(g.index, g.edges * 4ull);
    gs_free_pages(g.target, g.vertices * 4ull);
}
