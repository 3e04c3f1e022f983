/* bench_common.h - what the benchmarks of kernels share: memory, random numbers, graphs. Any failure ends the
 * program. */
#ifndef GS_BENCH_KERNELS_BENCH_COMMON_H
#define GS_BENCH_KERNELS_BENCH_COMMON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define BENCH_RUNS 7 /* the best of them counts */

_Noreturn void bench_die(const char *what);
void bench_need(gs_status st);
void *bench_pages(uint64_t bytes); /* zeros; gs_free_pages() */
uint32_t bench_random_bits(uint32_t i, uint32_t stream);
float bench_random_float(uint32_t i, uint32_t stream); /* within a half of 0 */
float *bench_random_floats(uint64_t floats, uint32_t stream);

/* Edges by target; targets are the rows 0, 1, 2, ... of their interval. */
typedef struct bench_graph {
    uint32_t targets, edges;
    uint32_t *target, *start, *index;
} bench_graph;

/* Powers of two `rows` and `targets`. A skewed graph takes each bit of a row number as R-MAT does (a + b = 0.76), on
 * both sides. */
bench_graph bench_make_graph(uint32_t rows, uint32_t targets, uint32_t edges, bool skewed);
void bench_free_graph(bench_graph *g);

#endif /* GS_BENCH_KERNELS_BENCH_COMMON_H */
