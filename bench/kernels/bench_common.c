#include "bench_common.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/philox.h"

_Noreturn void bench_die(const char *what)
{
    fprintf(stderr, "bench_kernels: %s (%s)\n", what, gs_last_error());
    exit(1);
}

void bench_need(gs_status st)
{
    if (st != GS_OK)
        bench_die("a call failed");
}

void *bench_pages(uint64_t bytes)
{
    void *const p = gs_alloc_pages(bytes);
    if (p == NULL)
        bench_die("out of memory");
    return p;
}

uint32_t bench_random_bits(uint32_t i, uint32_t stream)
{
    uint32_t word[4];
    gs_philox4x32(word, (const uint32_t[4]){i, stream, 0, 0}, (const uint32_t[2]){7, 0});
    return word[0];
}

float bench_random_float(uint32_t i, uint32_t stream) { return gs_uniform_f32(bench_random_bits(i, stream)) - 0.5f; }

float *bench_random_floats(uint64_t floats, uint32_t stream)
{
    float *const p = bench_pages(floats * 4);
    for (uint64_t i = 0; i < floats; i++)
        p[i] = bench_random_float((uint32_t)i, stream);
    return p;
}

static uint32_t pick_row(uint32_t rows, bool skewed, uint32_t i, uint32_t stream)
{
    if (!skewed)
        return bench_random_bits(i, stream) & (rows - 1);
    uint32_t row = 0, word[4];
    for (uint32_t bit = 1, n = 0; bit < rows; bit <<= 1, n++) {
        if (n % 4 == 0)
            gs_philox4x32(word, (const uint32_t[4]){i, stream, n, 1}, (const uint32_t[2]){7, 0});
        row |= word[n % 4] > 0xC28F5C28u ? bit : 0; /* 0.76 */
    }
    return row * 2654435761u & (rows - 1); /* hubs apart from each other, as after a good vertex order */
}

bench_graph bench_make_graph(uint32_t rows, uint32_t targets, uint32_t edges, bool skewed)
{
    bench_graph g = {.targets = targets, .edges = edges};
    g.target = bench_pages(targets * 4ull);
    g.start = bench_pages((targets + 1) * 4ull);
    g.index = bench_pages(edges * 4ull);
    uint32_t *const owner = bench_pages(edges * 4ull), *const at = bench_pages(targets * 4ull);
    for (uint32_t i = 0; i < edges; i++)
        g.start[(owner[i] = pick_row(targets, skewed, i, 1)) + 1]++;
    for (uint32_t r = 0; r < targets; r++) {
        g.target[r] = r;
        g.start[r + 1] += g.start[r];
        at[r] = g.start[r];
    }
    for (uint32_t i = 0; i < edges; i++)
        g.index[at[owner[i]]++] = pick_row(rows, skewed, i, 2);
    gs_free_pages(owner, edges * 4ull);
    gs_free_pages(at, targets * 4ull);
    return g;
}

void bench_free_graph(bench_graph *g)
{
    gs_free_pages(g->target, g->targets * 4ull);
    gs_free_pages(g->start, (g->targets + 1) * 4ull);
    gs_free_pages(g->index, g->edges * 4ull);
}
