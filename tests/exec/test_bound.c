/* A plan of many rows runs on small graphs in memory, one after the other: what it gives is what they give edge by
 * edge, whatever the one before has left. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "exec/exec_run.h"
#include "support/support.h"
#include "tiny_run.h"

enum { MOST_EDGES = 9000 };

static struct tiny tiny;
static gs_chunk one[2];
static gs_chunk_table table = {
    .vertices = TINY_ROWS, .parts = 1, .interval_rows = TINY_ROWS, .chunk = {&one[0], &one[1]}};

/* Edges by their targets, as a device takes them. */
struct side {
    uint16_t target[TINY_ROWS], index[MOST_EDGES];
    uint32_t start[TINY_ROWS + 1];
    gs_edges edges;
};

static struct graph {
    uint32_t src[MOST_EDGES], dst[MOST_EDGES], count;
    struct side side[2];
    uint32_t rows[2], zeroed[TINY_ARRAYS];
    gs_edges edges[2];
    gs_exec_graph bound;
} graph;

/* Those of targets below `targets` and operands below `operands`. */
static void sort_edges(struct side *s, const uint32_t *target, const uint32_t *operand, uint32_t count,
                       uint32_t targets, uint32_t operands)
{
    uint32_t n = 0, edges = 0;
    for (uint32_t t = 0; t < targets; t++) {
        const uint32_t first = edges;
        for (uint32_t e = 0; e < count; e++)
            if (target[e] == t && operand[e] < operands)
                s->index[edges++] = (uint16_t)operand[e];
        if (edges == first)
            continue;
        s->target[n] = (uint16_t)t;
        s->start[n++] = first;
    }
    s->start[n] = edges;
    s->edges = (gs_edges){.index_bytes = 2, .targets = n, .target = s->target, .start = s->start, .index = s->index};
}

/* A random graph; in-edges of the first `h_rows` alone, as only those are needed by a loss on the first `out_rows`. */
static void make_graph(uint32_t vertices, uint32_t edges, uint32_t h_rows, uint32_t out_rows, uint32_t seed)
{
    graph.count = edges;
    for (uint32_t e = 0; e < edges; e++) {
        seed = seed * 1664525u + 1013904223u;
        graph.src[e] = (seed >> 8) % vertices;
        seed = seed * 1664525u + 1013904223u;
        graph.dst[e] = (seed >> 8) % vertices;
    }
    sort_edges(&graph.side[0], graph.dst, graph.src, edges, h_rows, vertices);
    sort_edges(&graph.side[1], graph.src, graph.dst, edges, out_rows, h_rows);
    graph.rows[0] = h_rows;
    graph.rows[1] = out_rows;
    graph.zeroed[TINY_H] = vertices;
    for (int k = 0; k < 2; k++)
        graph.edges[k] = graph.side[k].edges;
    graph.bound = (gs_exec_graph){.binding = {.vertices = vertices, .rows = graph.rows, .zeroed = graph.zeroed},
                                  .edges = graph.edges};
}

/* h = relu(in-sum + own) of the first h_rows, else 0; out = relu(out-sum of h) of the first out_rows. */
static void expect_graph(gs_exec *e)
{
    static float h[TINY_ROWS * TINY_WIDTH], out[TINY_ROWS * TINY_WIDTH], got[TINY_ROWS * TINY_WIDTH];
    const uint32_t n = graph.bound.binding.vertices;
    memcpy(h, tiny.features, sizeof(h));
    memset(out, 0, sizeof(out));
    for (uint32_t k = 0; k < graph.count; k++)
        for (uint32_t c = 0; c < TINY_WIDTH; c++)
            h[graph.dst[k] * TINY_WIDTH + c] += tiny.features[graph.src[k] * TINY_WIDTH + c];
    for (uint32_t i = 0; i < n * TINY_WIDTH; i++)
        h[i] = i < graph.rows[0] * TINY_WIDTH && h[i] > 0 ? h[i] : 0;
    for (uint32_t k = 0; k < graph.count; k++)
        for (uint32_t c = 0; c < TINY_WIDTH; c++)
            out[graph.src[k] * TINY_WIDTH + c] += h[graph.dst[k] * TINY_WIDTH + c];
    gs_assert_ok(gs_exec_read_rows(e, TINY_H, 0, n, got));
    assert_memory_equal(got, h, n * TINY_WIDTH * sizeof(float));
    gs_assert_ok(gs_exec_read_rows(e, TINY_OUT, 0, graph.rows[1], got));
    assert_memory_equal(got, out, graph.rows[1] * TINY_WIDTH * sizeof(float));
}

static gs_status open_bound(gs_exec **out, uint64_t host)
{
    const gs_schedule_config sc = {.program = &tiny.p, .chunks = &table, .array_sum_bytes = 65536, .host_memory = host,
                                   .device_memory = host, .topology = &gs_topology_host};
    gs_plan_free(tiny.plan);
    tiny.plan = NULL;
    gs_assert_ok(gs_schedule(&tiny.plan, &sc));
    const gs_exec_config c = {.program = &tiny.p, .plan = tiny.plan, .device = tiny.device, .parts = 1,
                              .interval_rows = TINY_ROWS, .vertices = TINY_ROWS, .index_bytes = 2, .sets = 2,
                              .bound = true};
    return gs_exec_open(out, &c);
}

static void test_bound__graphs_of_any_size_in_turn(void **state)
{
    static const struct {
        uint32_t vertices, edges, h_rows, out_rows;
    } cases[] = {{1000, 9000, 1000, 1000}, {400, 3000, 150, 20}, {2900, 9000, 700, 40}, {1, 0, 1, 1}, {2, 3, 1, 1},
                 {TINY_ROWS, 5000, TINY_ROWS, 3}};
    gs_exec *e = NULL;
    (void)state;
    tiny_make(&tiny);
    one[0] = (gs_chunk){.length = GS_BLOCK_BYTES, .edges = MOST_EDGES, .targets = TINY_ROWS, .operands = TINY_ROWS};
    one[1] = one[0];
    gs_assert_ok(open_bound(&e, 64 * GS_MIB));
    for (size_t k = 0; k < GS_ARRAY_LEN(cases); k++) {
        const gs_exec_args args = {.loss_scale = 1};
        gs_exec_stats stats;
        make_graph(cases[k].vertices, cases[k].edges, cases[k].h_rows, cases[k].out_rows, 7 + (uint32_t)k);
        const uint64_t before = gs_alloc_frozen_count();
        if (k % 2 == 0) { /* what stood there before is gone, or is there still */
            gs_exec_forget(e);
            assert_true(*(const float *)gs_exec_rows(e, TINY_OUT) == 0);
            memcpy(gs_exec_rows(e, TINY_FEATURES), tiny.features, sizeof(tiny.features));
        }
        gs_exec_bind(e, &graph.bound);
        gs_assert_ok(gs_exec_run(e, 0, &args, &stats));
        assert_int_equal(gs_alloc_frozen_count(), before);
        expect_graph(e);
    }
    gs_exec_close(e);
    tiny_drop(&tiny);
}

static void test_bound__a_plan_that_streams_is_refused(void **state)
{
    gs_exec *e = NULL;
    (void)state;
    tiny_make(&tiny);
    gs_assert_fails(open_bound(&e, 300 * GS_KIB), GS_EINVAL, "keeps everything");
    assert_null(e);
    tiny_drop(&tiny);
}

/* Blocks of 16 bytes are compared to the file's last byte, wherever that is, and nothing behind it. */
static void test_bound__every_byte_of_a_file_is_under_a_checksum(void **state)
{
    enum { SUM = 16, MOST = 4 * SUM };
    uint8_t data[MOST];
    uint64_t sums[MOST / SUM];
    gs_exec_file file = {.path = "array", .sums = sums, .sum_bytes = SUM};
    struct gs_exec e = {.files = {.file = &file, .count = 1, .verify = true}};

    (void)state;
    for (file.bytes = 1; file.bytes <= MOST; file.bytes++) {
        for (uint32_t b = 0; b < MOST; b++)
            data[b] = (uint8_t)(b * 37 + file.bytes);
        for (uint64_t at = 0; at < file.bytes; at += SUM)
            sums[at / SUM] = gs_hash64(data + at, GS_MIN(SUM, file.bytes - at));
        gs_assert_ok(gs_exec__check_blocks(&e, 0, 0, data, MOST));
        for (uint64_t b = 0; b < MOST; b++) {
            data[b] ^= 1;
            assert_int_equal(gs_exec__check_blocks(&e, 0, 0, data, MOST), b < file.bytes ? GS_EFORMAT : GS_OK);
            data[b] ^= 1;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound__graphs_of_any_size_in_turn),
        cmocka_unit_test(test_bound__a_plan_that_streams_is_refused),
        cmocka_unit_test(test_bound__every_byte_of_a_file_is_under_a_checksum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
