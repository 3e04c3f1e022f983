#include "bench_gather.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/npy.h"
#include "base/size.h"
#include "bench_common.h"

#define ROUNDS 5           /* of the launches that are timed */
#define TRIED 50u          /* targets whose sums are looked at */
#define MOST_PARTS 16u

/* Edges by target, operands ascending. */
typedef struct whole_graph {
    uint32_t vertices, edges;
    uint32_t *start, *index;
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
    sort_by(sorted, pair, g.edges, 0, g.start, g.vertices);
    sort_by(pair, sorted, g.edges, 1, g.start, g.vertices);
    for (uint64_t k = 0; k < g.edges; k++)
        g.index[k] = pair[2 * k];
    gs_free_pages(pair, g.edges * 8ull);
    gs_free_pages(sorted, g.edges * 8ull);
    return g;
}

static void free_graph(whole_graph *g)
{
    gs_free_pages(g->start, (g->vertices + 1) * 4ull);
    gs_free_pages(g->index, g->edges * 4ull);
}

/* ---- chunks, as a store of `parts` intervals has them ---- */

typedef struct chunk {
    gs_edges edges; /* its arrays are offsets in the image, until they are on the device */
    uint64_t target, start, index;
} chunk;

typedef struct cut_graph {
    uint32_t parts, rows; /* of an interval */
    uint64_t targets;     /* of all chunks */
    chunk *chunk;         /* [parts * parts], a column of operand intervals for each target interval */
    char *image;
    uint64_t bytes, capacity;
} cut_graph;

static void put(const cut_graph *c, uint64_t at, uint64_t i, uint32_t index_bytes, uint32_t value)
{
    if (index_bytes == 2)
        ((uint16_t *)(void *)(c->image + at))[i] = (uint16_t)value;
    else
        ((uint32_t *)(void *)(c->image + at))[i] = value;
}

/* Edges from operand interval `from` to target interval `to`; next[v] is the first edge of v that is not taken yet. */
static void cut_chunk(cut_graph *c, const whole_graph *g, uint32_t to, uint32_t from, uint32_t *next)
{
    const uint32_t first = GS_MIN(to * c->rows, g->vertices), last = GS_MIN(first + c->rows, g->vertices),
                   base = from * c->rows;
    chunk *const k = &c->chunk[to * c->parts + from];
    gs_edges *const e = &k->edges;
    *e = (gs_edges){.index_bytes = c->rows <= 1u << 16 ? 2 : 4, .operand_rows = c->rows, .target_rows = c->rows};
    k->target = c->bytes;
    k->start = gs_align_up(k->target + (uint64_t)c->rows * e->index_bytes, 64);
    k->index = gs_align_up(k->start + (c->rows + 1) * 4ull, 64);
    for (uint32_t v = first; v < last; v++) {
        const uint64_t before = e->end;
        for (; next[v] < g->start[v + 1] && g->index[next[v]] - base < c->rows; next[v]++)
            put(c, k->index, e->end++, e->index_bytes, g->index[next[v]] - base);
        if (e->end == before)
            continue;
        put(c, k->target, e->targets, e->index_bytes, v - first);
        ((uint32_t *)(void *)(c->image + k->start))[++e->targets] = (uint32_t)e->end;
    }
    c->targets += e->targets;
    c->bytes = gs_align_up(k->index + e->end * e->index_bytes, 64);
}

static cut_graph cut(const whole_graph *g, uint32_t parts)
{
    cut_graph c = {.parts = parts, .rows = (g->vertices + parts - 1) / parts};
    const uint64_t a_chunk = 8ull * c.rows + 4 + 3 * 64;
    uint32_t *const next = bench_pages(g->vertices * 4ull);
    c.capacity = (uint64_t)parts * parts * a_chunk + g->edges * 4ull;
    c.image = bench_pages(c.capacity);
    c.chunk = bench_pages((uint64_t)parts * parts * sizeof(*c.chunk));
    memcpy(next, g->start, g->vertices * 4ull);
    for (uint32_t to = 0; to < parts; to++)
        for (uint32_t from = 0; from < parts; from++)
            cut_chunk(&c, g, to, from, next);
    gs_free_pages(next, g->vertices * 4ull);
    return c;
}

static void free_cut(cut_graph *c)
{
    gs_free_pages(c->image, c->capacity);
    gs_free_pages(c->chunk, (uint64_t)c->parts * c->parts * sizeof(*c->chunk));
}

/* ---- the gather ---- */

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

/* Columns one after the other, as an epoch takes them. */
static void launch_all(gs_device *d, const cut_graph *c, const char *image, const float *table, float *acc,
                       uint32_t width)
{
    for (uint32_t i = 0; i < c->parts * c->parts; i++) {
        const chunk *const k = &c->chunk[i];
        gs_edge_launch l = {.edges = k->edges, .width = width};
        if (k->edges.targets == 0)
            continue;
        l.edges.target = image + k->target;
        l.edges.start = (const uint32_t *)(const void *)(image + k->start);
        l.edges.index = image + k->index;
        l.operand = table + (uint64_t)(i % c->parts) * c->rows * width;
        l.acc = acc + (uint64_t)(i / c->parts) * c->rows * width;
        bench_need(gs_device_run_edges(d, &l));
    }
}

static void wait_for(gs_device *d)
{
    bool done = false;
    bench_need(gs_device_poll(d, gs_device_last_launch(d), true, &done));
}

static void gather(gs_device *d, const whole_graph *g, const cut_graph *c, uint32_t width, double copy)
{
    const uint64_t rows = (uint64_t)c->parts * c->rows, table = gs_align_up(rows * width * 4, 4096);
    const gs_device_memory m = {.arena_bytes = 2 * table + gs_align_up(c->bytes, 4096)};
    void *arena = NULL;
    bench_need(gs_device_take_memory(d, &m, &arena));
    bench_need(gs_device_join(&d, 1));
    float *const operand = arena, *const acc = (float *)(void *)((char *)arena + table);
    char *const image = (char *)arena + 2 * table;
    move(d, GS_DEVICE_FROM_HOST, image, c->image, c->bytes);
    fill_table(d, operand, g->vertices, width);
    bench_need(gs_device_zero(d, acc, table));
    launch_all(d, c, image, operand, acc, width); /* the first time: sums are looked at, not timed */
    wait_for(d);
    check(d, g, acc, width);
    const double begin = gs_now();
    for (int i = 0; i < ROUNDS; i++)
        launch_all(d, c, image, operand, acc, width);
    wait_for(d);
    const double seconds = (gs_now() - begin) / ROUNDS;
    const uint32_t index_bytes = c->chunk[0].edges.index_bytes;
    const double bytes = g->edges * (4.0 * width + index_bytes) + c->targets * (8.0 * width + 4 + index_bytes);
    printf("fused gather width %-4u parts %-3u %10.3f ms  %8.1f GB/s  %5.1f %% of copy\n", width, c->parts,
           seconds * 1e3, bytes / seconds / 1e9, 100 * bytes / seconds / copy);
    fflush(stdout); /* what is measured is kept if what follows is not */
    gs_device_give_memory(d);
}

static const uint32_t widths[] = {41, 47, 64, 100, 256}; /* classes of Reddit and ogbn-products, hidden layers, ogbn */

void bench_prepare_gathers(gs_device *d)
{
    static gs_array array[GS_ARRAY_LEN(widths)];
    static gs_reg reg[GS_ARRAY_LEN(widths)];
    static gs_edge_reg row[GS_ARRAY_LEN(widths)];
    static gs_stage stage[GS_ARRAY_LEN(widths)];
    static const gs_program program = {.arrays = GS_ARRAY_LEN(widths), .array = array, .stages = GS_ARRAY_LEN(widths),
                                       .stage = stage, .logits = GS_NONE};
    for (uint32_t i = 0; i < GS_ARRAY_LEN(widths); i++) {
        array[i] = (gs_array){.dtype = GS_F32, .width = widths[i], .store_id = -1};
        reg[i] = (gs_reg){.kind = GS_REG_SUM, .dtype = GS_F32, .width = widths[i], .array = GS_NONE};
        row[i] = (gs_edge_reg){.kind = GS_EDGE_OPERAND, .width = widths[i], .array = i};
        stage[i] = (gs_stage){.sums = 1, .sum = {{.kind = GS_SUM_ADD}}, .regs = 1, .reg = &reg[i], .edge_regs = 1,
                              .edge_reg = &row[i]};
    }
    bench_need(gs_device_prepare(d, &program));
}

void bench_gather(gs_device *d, const char *edges, double copy)
{
    whole_graph g = read_graph(edges);
    printf("%u vertices, %u edges; copy %.1f GB/s\n", g.vertices, g.edges, copy / 1e9);
    bench_prepare_gathers(d);
    for (uint32_t parts = 1; parts <= MOST_PARTS; parts *= 4) {
        cut_graph c = cut(&g, parts);
        for (size_t i = 0; i < GS_ARRAY_LEN(widths); i++)
            gather(d, &g, &c, widths[i], copy);
        free_cut(&c);
    }
    free_graph(&g);
}
