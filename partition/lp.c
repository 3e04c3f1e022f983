/* lp.c - intervals by label propagation, for graphs too large for METIS.
 *
 * Vertices become clusters much smaller than an interval, clusters become clusters again while
 * their graph is too large, METIS puts the last clusters into intervals so that those with many edges
 * between them share one, and on the way back each graph's vertices move once more
 * between the intervals.
 */
#include "partition/lp.h"

#include <stdio.h>
#include <string.h>

#include <metis.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/blocks.h"
#include "partition/grid.h"
#include "partition/job.h"
#include "partition/lp_contract.h"
#include "partition/lp_exact.h"
#include "partition/lp_graph.h"
#include "partition/lp_move.h"
#include "partition/metis_bundles.h"
#include "partition/permute.h"
#include "partition/sort.h"

#define MOST_LEVELS 6
#define CLUSTERS 32u /* that make an interval, at least: what METIS needs to fill them evenly */
#define ROUNDS_CLUSTER 10u
#define ROUNDS_REFINE 6u
#define SLACK 0.03 /* that intervals may be over while vertices move; METIS's own */
#define LEAST_PER_INTERVAL 20u /* clusters: METIS complains on stdout about fewer */
#define BYTES_PER_NEIGHBOUR 64u /* of METIS with edge weights and our arrays */
#define MOST_NEIGHBOURS (24u << 20) /* of a graph for METIS: half a minute of its time */

typedef struct levels {
    const gs_part_grid *grid;
    gs_part_job *job;
    gs_lp_graph graph[MOST_LEVELS];
    uint32_t *of[MOST_LEVELS]; /* cluster, later interval, of each vertex; [0] is the caller's */
    int count;
} levels;

/* -- down ------------------------------------------------------------------------ */

static uint64_t metis_neighbours(const gs_part_job *job)
{
    return GS_MIN(job->buffers / BYTES_PER_NEIGHBOUR, MOST_NEIGHBOURS);
}

static gs_status cluster(levels *w, gs_lp_labels *l)
{
    const gs_lp_graph *const g = &w->graph[w->count - 1];
    gs_status st;

    for (uint64_t v = 0; v < g->vertices; v++) {
        l->of[v] = (uint32_t)v;
        l->size[v] = gs_lp_weight(g, v);
    }
    if ((st = gs_lp__propagate(l, g, w->job, ROUNDS_CLUSTER)) != GS_OK)
        return st;
    w->graph[w->count] = (gs_lp_graph){.fd = -1};
    return gs_lp__contract(&w->graph[w->count], l, g, w->job);
}

static gs_status add_level(levels *w)
{
    const uint64_t n = w->graph[w->count - 1].vertices;
    gs_lp_labels l = {.of = w->of[w->count - 1], .count = (uint32_t)n, .most = GS_MAX(w->grid->rows / CLUSTERS, 1)};
    gs_status st;

    if ((l.size = gs_malloc_array(n, 4)) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for %llu clusters", (unsigned long long)n);
    st = cluster(w, &l);
    gs_free(l.size);
    w->count++;
    if (st == GS_OK && (w->of[w->count - 1] = gs_malloc_array(l.count, 4)) == NULL)
        st = gs_fail(GS_ENOMEM, "no memory for %u clusters", l.count);
    return st;
}

static gs_status coarsen(levels *w)
{
    gs_status st = add_level(w);
    while (st == GS_OK && w->count < MOST_LEVELS) {
        const gs_lp_graph *const g = &w->graph[w->count - 1], *const finer = g - 1;
        if (g->neighbours <= metis_neighbours(w->job) || g->vertices > finer->vertices / 10 * 9)
            break;
        st = add_level(w);
    }
    return st;
}

/* -- the coarsest graph, for METIS ---------------------------------------------------- */

typedef struct coarse {
    const gs_lp_graph *g;
    uint64_t *least; /* [vertices] rank of the lightest edge that a vertex itself keeps */
    uint64_t keep;   /* edges that a vertex keeps; its neighbours may keep more of them */
    uint32_t weight_shift, vertex_shift;
    uint64_t *ranks, *spare; /* of one list */
    idx_t *start, *neighbour, *edge_weight, *weight;
} coarse;

/* Heavier edges rank higher, and of equal ones those that a hash prefers: alike for both ends. */
static uint64_t rank_of(uint32_t u, uint32_t v, uint32_t weight)
{
    return (uint64_t)weight << 32 | gs_part__mix((uint64_t)GS_MIN(u, v) << 32 | GS_MAX(u, v)) >> 32;
}

static void find_least(coarse *c, uint32_t v, uint32_t degree, const uint32_t *list)
{
    c->least[v] = 0;
    if (degree <= c->keep)
        return;
    for (uint32_t k = 0; k < degree; k++)
        c->ranks[k] = rank_of(v, list[2 * k], list[2 * k + 1]);
    c->least[v] = gs_part__sort8(c->ranks, c->spare, degree, 64)[degree - c->keep];
}

static void take_list(coarse *c, uint32_t v, uint32_t degree, const uint32_t *list)
{
    c->start[v + 1] = c->start[v];
    for (uint32_t k = 0; k < degree; k++) {
        const uint32_t u = list[2 * k], weight = list[2 * k + 1];
        if (rank_of(v, u, weight) < GS_MIN(c->least[v], c->least[u]))
            continue;
        if (c->neighbour != NULL) {
            c->neighbour[c->start[v + 1]] = (idx_t)u;
            c->edge_weight[c->start[v + 1]] = (idx_t)GS_MAX(weight >> c->weight_shift, 1);
        }
        c->start[v + 1]++;
    }
}

typedef void each_list(coarse *c, uint32_t v, uint32_t degree, const uint32_t *list);

static gs_status walk(coarse *c, each_list *each)
{
    uint32_t *words = gs_malloc_array(GS_MAX(c->g->most_words, 1), 4);
    gs_status st = words != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory for a block", c->g->path);

    for (uint32_t b = 0; b < c->g->blocks && st == GS_OK; b++) {
        const gs_lp_block *const block = &c->g->block[b];
        const uint32_t *at = words;
        if ((st = gs_lp__read(c->g, b, words)) != GS_OK)
            break;
        for (uint32_t i = 0; i < block->vertices; i++) {
            each(c, block->first + i, *at, at + 1);
            at += 1 + 2ull * *at;
        }
    }
    gs_free(words);
    return st;
}

/* Each vertex keeps as many of its heaviest edges as METIS's memory allows on the mean. */
static gs_status load_coarse(coarse *c, uint64_t most)
{
    const uint64_t n = c->g->vertices;
    gs_status st;

    c->keep = c->g->neighbours <= most ? UINT64_MAX : GS_MAX(most / n / 2, 1); /* either end may keep it */
    c->least = gs_calloc(n, 8);
    c->ranks = gs_malloc_array(GS_MAX(c->g->most_words, 1), 8);
    c->spare = gs_malloc_array(GS_MAX(c->g->most_words, 1), 8);
    c->start = gs_calloc(n + 1, sizeof(idx_t));
    c->weight = gs_malloc_array(n, sizeof(idx_t));
    if (!c->least || !c->ranks || !c->spare || !c->start || !c->weight)
        return gs_fail(GS_ENOMEM, "no memory for METIS's graph of %llu clusters", (unsigned long long)n);
    if ((st = walk(c, find_least)) != GS_OK || (st = walk(c, take_list)) != GS_OK)
        return st;
    while (c->g->edge_weight >> c->weight_shift > INT32_MAX / 2)
        c->weight_shift++;
    c->neighbour = gs_malloc_array((uint64_t)c->start[n] + 1, sizeof(idx_t));
    c->edge_weight = gs_malloc_array((uint64_t)c->start[n] + 1, sizeof(idx_t));
    if (c->neighbour == NULL || c->edge_weight == NULL)
        return gs_fail(GS_ENOMEM, "no memory for METIS's graph of %llu edges", (unsigned long long)c->start[n]);
    for (uint64_t v = 0; v < n; v++)
        c->weight[v] = (idx_t)GS_MAX(c->g->weight[v] >> c->vertex_shift, 1);
    return walk(c, take_list);
}

static void coarse_free(coarse *c)
{
    gs_free(c->least);
    gs_free(c->ranks);
    gs_free(c->spare);
    gs_free(c->start);
    gs_free(c->weight);
    gs_free(c->neighbour);
    gs_free(c->edge_weight);
}

static gs_status call_metis(uint32_t *part, gs_metis_graph *g, const gs_part_grid *grid, uint64_t seed)
{
    idx_t options[METIS_NOPTIONS], constraints = 1, parts = (idx_t)grid->parts, cut;
    real_t *share = gs_malloc_array(grid->parts, sizeof(*share)); /* the last interval may be short */

    if (share == NULL)
        return gs_fail(GS_ENOMEM, "no memory for %u intervals", grid->parts);
    for (uint32_t i = 0; i < grid->parts; i++)
        share[i] = (real_t)gs_part__grid_capacity(grid, i) / (real_t)grid->vertices;
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = (idx_t)(seed & INT32_MAX);
    const int rc = METIS_PartGraphKway(&g->vertices, &constraints, g->start, g->neighbour, g->weight, NULL,
                                       g->edge_weight, &parts, share, NULL, options, &cut, (idx_t *)part);
    gs_free(share);
    if (rc == METIS_ERROR_MEMORY)
        return gs_fail(GS_ENOMEM, "METIS: out of memory; give more with .memory");
    return rc == METIS_OK ? GS_OK : gs_fail(GS_EUNSUPPORTED, "METIS: failed with code %d; use .method fennel", rc);
}

/* `part` of the coarsest graph's clusters, by way of a smaller graph where they make many components. */
static gs_status cut_coarse(uint32_t *part, coarse *c, const gs_part_grid *grid, uint64_t seed)
{
    gs_metis_graph g = {(idx_t)c->g->vertices, c->start, c->neighbour, c->edge_weight, c->weight};
    gs_metis_bundles b;
    gs_status st = gs_part__metis_bundle(&b, &g, grid->parts);

    if (st != GS_OK || b.of == NULL)
        return st != GS_OK ? st : call_metis(part, &g, grid, seed);
    uint32_t *const own = gs_malloc_array((uint64_t)b.vertices, 4);
    st = own != NULL ? call_metis(own, &g, grid, seed) : gs_fail(GS_ENOMEM, "no memory for %lld bundles of clusters",
                                                                  (long long)b.vertices);
    for (uint64_t v = 0; v < c->g->vertices && st == GS_OK; v++)
        part[v] = own[b.of[v]];
    gs_free(own);
    gs_part__metis_bundles_free(&b);
    return st;
}

/* Clusters in their order, each interval as full as can be. */
static void fill_in_order(uint32_t *part, const gs_lp_graph *g, const gs_part_grid *grid)
{
    uint64_t before = 0;
    for (uint64_t v = 0; v < g->vertices; v++) {
        part[v] = (uint32_t)(before / grid->rows);
        before += g->weight[v];
    }
}

static gs_status first_intervals(levels *w)
{
    coarse c = {.g = &w->graph[w->count - 1]};
    gs_status st;

    if (c.g->neighbours == 0 || c.g->vertices < (uint64_t)w->grid->parts * LEAST_PER_INTERVAL) {
        fill_in_order(w->of[w->count - 1], c.g, w->grid);
        return GS_OK;
    }
    while (w->grid->vertices >> c.vertex_shift > INT32_MAX / 2)
        c.vertex_shift++;
    gs_part__tick(w->job, "METIS", 0);
    if ((st = load_coarse(&c, metis_neighbours(w->job))) == GS_OK)
        st = cut_coarse(w->of[w->count - 1], &c, w->grid, w->job->opt->seed);
    coarse_free(&c);
    return st;
}

/* -- up ------------------------------------------------------------------------------ */

/* Level `k` has an interval for each vertex. */
static gs_status refine(levels *w, int k)
{
    const gs_lp_graph *const g = &w->graph[k];
    gs_lp_labels l = {.of = w->of[k], .count = w->grid->parts, .grid = w->grid, .slack = SLACK};
    gs_status st;

    if ((l.size = gs_calloc(l.count, 4)) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for %u intervals", l.count);
    for (uint64_t v = 0; v < g->vertices; v++)
        l.size[l.of[v]] += gs_lp_weight(g, v);
    st = gs_lp__propagate(&l, g, w->job, ROUNDS_REFINE);
    if (st == GS_OK && k == 0)
        st = gs_lp__make_exact(&l, g, w->job);
    gs_free(l.size);
    return st;
}

static gs_status back(levels *w)
{
    gs_status st = GS_OK;

    for (int k = w->count - 2; k >= 0 && st == GS_OK; k--) {
        for (uint64_t v = 0; v < w->graph[k].vertices; v++)
            w->of[k][v] = w->of[k + 1][w->of[k][v]];
        st = refine(w, k);
    }
    return st;
}

gs_status gs_part__lp(uint32_t *part, const gs_part_grid *grid, gs_part_job *job, const gs_part_blocks *b)
{
    levels w = {.grid = grid, .job = job, .of = {part}, .count = 1};
    gs_status st;

    if (grid->parts == 1) {
        memset(part, 0, grid->vertices * 4);
        return GS_OK;
    }
    if ((st = gs_lp__graph_of_blocks(&w.graph[0], job, b)) == GS_OK && (st = coarsen(&w)) == GS_OK &&
        (st = first_intervals(&w)) == GS_OK)
        st = back(&w);
    for (int k = 0; k < w.count; k++) {
        gs_lp__graph_free(&w.graph[k]);
        if (k != 0)
            gs_free(w.of[k]);
    }
    return st;
}
