/* target_order STORE - do the CPU's sums of rows lose by targets in the order of their degrees?
 *
 * The first chunks of a store by destination are summed up as they stand in the store, targets in the order of rows,
 * and with the targets of each chunk by falling degree, as a GPU's warps would like them (idle_lanes counts that). One
 * thread, the best of some runs. Sums must be the same, bit for bit: a target's edges keep their order.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/size.h"
#include "bench_common.h"
#include "device/device.h"
#include "store/edge_scan.h"
#include "store/store.h"

enum { CHUNKS = 48, AS_STORED = 0, BY_DEGREE = 1, ORDERS = 2 };

typedef struct order_bench {
    const gs_chunk_table *table;
    uint32_t chunks;
    uint64_t edges;
    gs_edges of[CHUNKS][ORDERS];
} order_bench;

typedef struct one_target {
    uint32_t degree, number;
} one_target;

static int by_falling_degree(const void *a, const void *b)
{
    const one_target *const x = a, *const y = b;
    if (x->degree != y->degree)
        return x->degree < y->degree ? 1 : -1;
    return x->number < y->number ? -1 : 1;
}

/* The chunk with its targets in this order. Memory is given back when the program ends. */
static gs_edges copy_chunk(const gs_chunk_view *v, const one_target *order)
{
    const uint32_t ix = v->index_bytes;
    void *const target = bench_pages(v->targets * (uint64_t)ix), *const index = bench_pages(v->edges * ix);
    uint32_t *const start = bench_pages((v->targets + 1ull) * sizeof(*start)), n = 0;
    for (uint32_t t = 0; t < v->targets; t++) {
        const uint32_t from = order[t].number;
        gs_index_put(target, ix, t, gs_index_at(v->target, ix, from));
        start[t] = n;
        for (uint32_t k = v->start[from]; k < v->start[from + 1]; k++)
            gs_index_put(index, ix, n++, gs_index_at(v->index, ix, k));
    }
    start[v->targets] = n;
    return (gs_edges){.index_bytes = ix, .targets = v->targets, .target = target, .start = start, .index = index};
}

static gs_status visit(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    order_bench *const b = context;
    if (b->chunks == CHUNKS)
        return GS_OK;
    one_target *const order = bench_pages(v->targets * sizeof(*order));
    for (uint32_t t = 0; t < v->targets; t++)
        order[t] = (one_target){v->start[t + 1] - v->start[t], t};
    for (int o = 0; o < ORDERS; o++) {
        if (o == BY_DEGREE)
            qsort(order, v->targets, sizeof(*order), by_falling_degree);
        gs_edges *const e = &b->of[b->chunks][o];
        *e = copy_chunk(v, order);
        e->target_rows = gs_interval_rows(b->table, target);
        e->operand_rows = gs_interval_rows(b->table, operand);
    }
    gs_free_pages(order, v->targets * sizeof(*order));
    b->edges += v->edges;
    b->chunks++;
    return GS_OK;
}

static double seconds_of(gs_device *d, const order_bench *b, int order, const float *operand, float *acc,
                         uint32_t width)
{
    memset(acc, 0, (uint64_t)b->table->interval_rows * width * sizeof(*acc));
    const double start = gs_now();
    for (uint32_t k = 0; k < b->chunks; k++)
        bench_need(gs_device_run_edges(d, &(gs_edge_launch){.edges = b->of[k][order], .dtype = GS_F32,
                                                            .operand = operand, .acc = acc, .width = width}));
    return gs_now() - start;
}

static void measure(gs_device *d, const order_bench *b, uint32_t width)
{
    const uint64_t floats = (uint64_t)b->table->interval_rows * width;
    float *const operand = bench_random_floats(floats, 1);
    float *const acc[ORDERS] = {bench_pages(floats * sizeof(float)), bench_pages(floats * sizeof(float))};
    double best[ORDERS] = {INFINITY, INFINITY};
    for (int run = 0; run < BENCH_RUNS; run++)
        for (int o = 0; o < ORDERS; o++)
            best[o] = fmin(best[o], seconds_of(d, b, o, operand, acc[o], width));
    if (memcmp(acc[AS_STORED], acc[BY_DEGREE], floats * sizeof(float)) != 0)
        bench_die("another order of targets has other sums");
    printf("width %3u: as stored %6.1f ms, by degree %6.1f ms: %.2f of the time\n", width, 1e3 * best[AS_STORED],
           1e3 * best[BY_DEGREE], best[BY_DEGREE] / best[AS_STORED]);
    for (int o = 0; o < ORDERS; o++)
        gs_free_pages(acc[o], floats * sizeof(float));
    gs_free_pages(operand, floats * sizeof(float));
}

int main(int argc, char **argv)
{
    static const uint32_t widths[] = {16, 64, 256};
    static order_bench b;
    gs_store *s = NULL;
    gs_device *d = NULL;
    if (argc != 2)
        bench_die("target_order STORE");
    bench_need(gs_store_open(&s, argv[1]));
    b.table = gs_store_chunks(s);
    bench_need(gs_edge_scan(s, GS_BY_DEST, 1 * GS_GIB, NULL, visit, &b));
    bench_need(gs_device_open(&d, "cpu", 1));
    printf("%u chunks, %.1f M edges; %s\n", b.chunks, (double)b.edges * 1e-6, gs_device_name(d));
    for (size_t i = 0; i < GS_ARRAY_LEN(widths); i++)
        measure(d, &b, widths[i]);
    gs_device_close(d);
    gs_store_close(s);
    return 0;
}
