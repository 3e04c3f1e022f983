/* idle_lanes STORE - of the lanes that a GPU's sums of rows hold, how many have no edge left?
 *
 * Counted, without a GPU, from the chunks of a store and the kernels that cuda/text_edges.c writes: a group of lanes
 * takes a target, a burst of edges a step. A warp goes on until the longest of its groups is done, and a block's
 * registers are free for the next one when its longest warp is. Printed for groups as widths make them: groups a warp,
 * targets, edges a target, and the idle share of what warps and of what blocks hold, with targets as they come and in
 * an order of falling degree, which launches do not have; and of a GPU with much memory, how many edges a piece of a
 * hub has at the most, and how many chunks have no hub, so that nothing is cut or merged. One chunk is one launch.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/size.h"
#include "bench_common.h"
#include "cuda/launch.h"
#include "store/edge_scan.h"
#include "store/store.h"

typedef struct held {
    uint64_t busy, warps, blocks; /* steps of groups */
} held;

typedef struct count {
    gs_edge_kernel k;
    held plain, ordered;
    uint64_t targets, edges, hub_edges, chunks, without_hubs;
    uint32_t piece; /* the largest */
} count;

/* `steps` of targets in `order` (NULL: as they come). */
static void hold(held *h, const uint32_t *steps, const uint32_t *order, uint32_t n, const gs_edge_kernel *k)
{
    const uint32_t warp = 32 / k->lanes, block = GS_BLOCK_LANES / k->lanes;
    for (uint32_t first = 0; first < n; first += block) {
        uint32_t longest = 0;
        for (uint32_t w = 0; w < block; w += warp) {
            uint32_t most = 0;
            for (uint32_t i = first + w; i < GS_MIN(first + w + warp, n); i++) {
                const uint32_t mine = steps[order == NULL ? i : order[i]];
                h->busy += mine;
                most = GS_MAX(most, mine);
            }
            h->warps += (uint64_t)most * warp;
            longest = GS_MAX(longest, most);
        }
        h->blocks += (uint64_t)longest * block;
    }
}

/* order[0..targets) = the targets, those with the most edges first, those of as many in their order. */
static void sort_targets(uint32_t *order, const uint32_t *start, uint32_t targets)
{
    enum { DEGREES = 4096 }; /* that are told apart */
    uint32_t at[DEGREES + 1] = {0};
    for (uint32_t t = 0; t < targets; t++)
        at[DEGREES - GS_MIN(start[t + 1] - start[t], DEGREES - 1)]++;
    for (uint32_t k = 0; k < DEGREES; k++)
        at[k + 1] += at[k];
    for (uint32_t t = 0; t < targets; t++)
        order[at[DEGREES - 1 - GS_MIN(start[t + 1] - start[t], DEGREES - 1)]++] = t;
}

/* A hub has no step here: its pieces, of as many edges each, come before all targets and idle little. */
static gs_status visit(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    count *const c = context;
    const uint32_t piece = gs_cuda_piece_edges(GS_CUDA_HUB_BYTES, &c->k, (uint32_t)v->edges);
    uint32_t *const steps = bench_pages(v->targets * 4ull), *const order = bench_pages(v->targets * 4ull);
    (void)target, (void)operand;
    c->chunks++;
    c->without_hubs += v->largest <= piece;
    c->piece = GS_MAX(c->piece, piece);
    for (uint32_t t = 0; t < v->targets; t++) {
        const uint32_t edges = v->start[t + 1] - v->start[t];
        steps[t] = edges > piece ? 0 : (uint32_t)gs_div_up(edges, c->k.burst);
        c->hub_edges += edges > piece ? edges : 0;
    }
    sort_targets(order, v->start, v->targets);
    hold(&c->plain, steps, NULL, v->targets, &c->k);
    hold(&c->ordered, steps, order, v->targets, &c->k);
    c->targets += v->targets;
    c->edges += v->edges;
    gs_free_pages(steps, v->targets * 4ull);
    gs_free_pages(order, v->targets * 4ull);
    return GS_OK;
}

static double idle(uint64_t busy, uint64_t all) { return all == 0 ? 0 : 1 - (double)busy / (double)all; }

int main(int argc, char **argv)
{
    static const uint32_t widths[] = {1, 4, 8, 16, 32, 64, 128, 256};
    gs_store *s = NULL;
    if (argc != 2)
        bench_die("idle_lanes STORE");
    bench_need(gs_store_open(&s, argv[1]));
    for (size_t i = 0; i < GS_ARRAY_LEN(widths); i++) {
        count c = {.targets = 0};
        FILE *const nowhere = fopen("/dev/null", "w");
        gs_generate_rows(nowhere, &c.k, &(gs_row_sums){.width = widths[i], .types = 1});
        fclose(nowhere);
        bench_need(gs_edge_scan(s, GS_BY_DEST, 1 * GS_GIB, NULL, visit, &c));
        if (i == 0)
            printf("%llu targets of chunks, %.1f edges each, %.0f %% of the edges hubs'\n",
                   (unsigned long long)c.targets, (double)c.edges / (double)c.targets,
                   100 * (double)c.hub_edges / (double)c.edges);
        printf("width %3u, %2u a warp, %u edges a step: of warps %2.0f %% idle, by degree %2.0f %%; of blocks %2.0f "
               "%%, by degree %2.0f %%; pieces of %u edges, %llu of %llu chunks without hubs\n",
               widths[i], 32 / c.k.lanes, c.k.burst, 100 * idle(c.plain.busy, c.plain.warps),
               100 * idle(c.ordered.busy, c.ordered.warps), 100 * idle(c.plain.busy, c.plain.blocks),
               100 * idle(c.ordered.busy, c.ordered.blocks), c.piece, (unsigned long long)c.without_hubs,
               (unsigned long long)c.chunks);
    }
    gs_store_close(s);
    return 0;
}
