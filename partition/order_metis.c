/* order_metis.c - METIS's k-way partitioning, then made into equal intervals.
 *
 * METIS sees the graph as simple and undirected. Its parts are nearly equal;
 * a store's intervals are exactly so, hence a vertex of a too large part that
 * has few neighbours there moves to the part with room that has most of them.
 */
#include "partition/intervals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/integers.h"
#include "ranks/ranks.h"

/* ---- components by union and find, small ones bundled in the order of their first vertices. */

#define FEW_COMPONENTS 4096 /* METIS is left alone with so many: their square is a blink */
#define BUNDLES 32u         /* that make a part, at least: what METIS needs to fill them evenly */

/* The component's first vertex; paths are halved on the way. */
static idx_t root_of(idx_t *parent, idx_t v)
{
    while (parent[v] != v) {
        parent[v] = parent[parent[v]];
        v = parent[v];
    }
    return v;
}

/* parent[v] becomes the first vertex of v's component. Gives the number of components. */
static idx_t find_components(idx_t *parent, const gs_metis_graph *g)
{
    idx_t components = 0;

    for (idx_t v = 0; v < g->vertices; v++)
        parent[v] = v;
    for (idx_t v = 0; v < g->vertices; v++) {
        for (idx_t k = g->start[v]; k < g->start[v + 1]; k++) {
            const idx_t a = root_of(parent, v), b = root_of(parent, g->neighbour[k]);
            parent[GS_MAX(a, b)] = GS_MIN(a, b);
        }
    }
    for (idx_t v = 0; v < g->vertices; v++) {
        parent[v] = root_of(parent, v); /* lower ids are done, so this is one step */
        components += parent[v] == v;
    }
    return components;
}

static idx_t weight_of(const gs_metis_graph *g, idx_t v) { return g->weight != NULL ? g->weight[v] : 1; }

/* Numbers the smaller graph's vertices: of large components as they come, then bundles. `sum` has the components'
 * weights at their first vertices; there the bundles' numbers, below 0, take their place. */
static void number_vertices(gs_metis_bundles *b, const gs_metis_graph *g, const idx_t *first, idx_t *sum, idx_t most)
{
    idx_t large = 0, bundles = 0, filled = most;

    for (idx_t v = 0; v < g->vertices; v++) {
        if (first[v] == v && sum[v] <= most) {
            if (filled + sum[v] > most) {
                bundles++;
                filled = 0;
            }
            filled += sum[v];
            sum[v] = -bundles;
        }
        if (sum[first[v]] > 0)
            b->of[v] = large++;
    }
    for (idx_t v = 0; v < g->vertices; v++)
        if (sum[first[v]] < 0)
            b->of[v] = large - 1 - sum[first[v]];
    b->vertices = large + bundles;
}

/* Large components' lists move to the front; bundles have none. */
static void move_lists(gs_metis_graph *g, const gs_metis_bundles *b, const idx_t *first, const idx_t *sum)
{
    idx_t to = 0, next = 0;

    for (idx_t v = 0, from = 0; v < g->vertices; v++) {
        const idx_t end = g->start[v + 1];
        if (sum[first[v]] > 0) {
            g->start[next++] = to;
            for (idx_t k = from; k < end; k++, to++) {
                g->neighbour[to] = b->of[g->neighbour[k]];
                if (g->edge_weight != NULL)
                    g->edge_weight[to] = g->edge_weight[k];
            }
        }
        from = end;
    }
    for (; next <= b->vertices; next++)
        g->start[next] = to;
    g->vertices = b->vertices;
}

static gs_status bundle(gs_metis_bundles *b, gs_metis_graph *g, const idx_t *first, idx_t *sum, uint32_t parts)
{
    int64_t total = 0;

    for (idx_t v = 0; v < g->vertices; v++) {
        sum[first[v]] += weight_of(g, v);
        total += weight_of(g, v);
    }
    number_vertices(b, g, first, sum, (idx_t)GS_MAX(total / ((int64_t)parts * BUNDLES), 1));
    if ((b->weight = gs_calloc((uint64_t)b->vertices, sizeof(*b->weight))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for %lld bundles of components", (long long)b->vertices);
    for (idx_t v = 0; v < g->vertices; v++)
        b->weight[b->of[v]] += weight_of(g, v);
    move_lists(g, b, first, sum);
    g->weight = b->weight;
    return GS_OK;
}

gs_status gs_part__metis_bundle(gs_metis_bundles *b, gs_metis_graph *g, uint32_t parts)
{
    const uint64_t n = (uint64_t)g->vertices;
    idx_t *const first = gs_malloc_array(n, sizeof(*first)), *sum = NULL;
    gs_status st = first != NULL ? GS_OK : GS_ENOMEM;

    *b = (gs_metis_bundles){.vertices = g->vertices};
    if (st == GS_OK && find_components(first, g) > FEW_COMPONENTS) {
        sum = gs_calloc(n, sizeof(*sum));
        b->of = gs_malloc_array(n, sizeof(*b->of));
        st = sum != NULL && b->of != NULL ? bundle(b, g, first, sum, parts) : GS_ENOMEM;
    }
    if (st == GS_ENOMEM)
        (void)gs_fail(GS_ENOMEM, "no memory for the components of %lu vertices", n);
    gs_free(first);
    gs_free(sum);
    if (st != GS_OK)
        gs_part__metis_bundles_free(b);
    return st;
}

void gs_part__metis_bundles_free(gs_metis_bundles *b)
{
    gs_free(b->of);
    gs_free(b->weight);
    memset(b, 0, sizeof(*b));
}

typedef struct metis_call {
    uint32_t parts;
    uint64_t seed;
    real_t *share; /* [parts] of the weight that each is to have; NULL: equal ones */
    const char *if_short, *if_failed; /* what to do where it has too little memory, or gives up */
} metis_call;

static gs_status call_metis(idx_t *part, const gs_metis_graph *g, const metis_call *call)
{
    idx_t options[METIS_NOPTIONS], vertices = g->vertices, constraints = 1, parts = (idx_t)call->parts, cut;

    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = (idx_t)(call->seed & INT32_MAX);
    const int rc = METIS_PartGraphKway(&vertices, &constraints, g->start, g->neighbour, g->weight, NULL,
                                       g->edge_weight, &parts, call->share, NULL, options, &cut, part);
    if (rc == METIS_ERROR_MEMORY)
        return gs_fail(GS_ENOMEM, "METIS: out of memory; %s", call->if_short);
    return rc == METIS_OK ? GS_OK : gs_fail(GS_EUNSUPPORTED, "METIS: failed with code %d; %s", rc, call->if_failed);
}

/* METIS's part of each vertex. Of a graph of many components a smaller one is cut, whose lists take the place of the
 * graph's: *bundled says so. GS_ENOMEM, GS_EUNSUPPORTED. */
static gs_status cut_graph(uint32_t *part, bool *bundled, gs_metis_graph *g, const metis_call *call)
{
    const uint64_t vertices = (uint64_t)g->vertices;
    GS_ENDS(gs_part__metis_bundles_free) gs_metis_bundles b = {0};

    *bundled = false;
    GS_TRY(gs_part__metis_bundle(&b, g, call->parts));
    *bundled = b.of != NULL;
    if (!*bundled)
        return call_metis((idx_t *)part, g, call);
    GS_FREED idx_t *const own = gs_malloc_array((uint64_t)b.vertices, sizeof(*own));
    GS_TRY(own != NULL ? call_metis(own, g, call)
                       : gs_fail(GS_ENOMEM, "no memory for %lld bundles of components", (long long)b.vertices));
    for (uint64_t v = 0; v < vertices; v++)
        part[v] = (uint32_t)own[b.of[v]];
    return GS_OK;
}

/* ---- intervals by METIS ----------------------------------------------------------- */

#define LEAST_VERTICES_PER_PART 20u /* METIS complains on stdout about smaller ones */
/* Peak of METIS_PartGraphKway with our arrays, as measured on R-MAT (58 bytes a neighbour, all
 * told) and planted communities (45), 200,000 vertices each. */
#define BYTES_PER_NEIGHBOUR 56u
#define BYTES_PER_VERTEX 120u

static uint64_t most_neighbours(const gs_part_blocks *b) { return b->symmetric ? b->edges : 2 * b->edges; }

void gs_part__metis_fits(char *why, size_t cap, const gs_part_job *job, const gs_part_blocks *b,
                         const gs_part_grid *grid)
{
    const uint64_t neighbours = most_neighbours(b);
    char need[32], have[32];

    why[0] = '\0';
    if (grid->parts == 1)
        return; /* nothing to cut */
    if (b->edges == b->self_loops || grid->rows < LEAST_VERTICES_PER_PART) {
        snprintf(why, cap, "METIS needs edges, and %u vertices an interval", LEAST_VERTICES_PER_PART);
        return;
    }
    if (sizeof(idx_t) == 4 && (b->vertices >= INT32_MAX || neighbours >= INT32_MAX)) {
        snprintf(why, cap, "%lu vertices with %lu neighbours are beyond METIS's 32-bit indices", b->vertices,
                 neighbours);
        return;
    }
    const uint64_t bytes = neighbours * BYTES_PER_NEIGHBOUR + b->vertices * BYTES_PER_VERTEX;
    if (bytes > job->buffers)
        snprintf(why, cap, "METIS would take about %s, of which %s are within the memory bound",
                 gs_size_format(need, sizeof(need), bytes), gs_size_format(have, sizeof(have), job->buffers));
}

/* The simple undirected graph. */
typedef struct adjacency {
    idx_t *start, *neighbour; /* [N + 1], [start[N]] */
    uint64_t *keys, *spare;   /* one block's pairs, while it is made */
    uint32_t words;
    bool fill; /* second visit: places, not counts */
    gs_arena lists, sorting;
} adjacency;

/* Unordered pairs of a block, each once; the lower 32 bits are the smaller id. */
static uint64_t unique_pairs(uint64_t **pairs, const adjacency *a, uint64_t first, uint64_t vertices,
                             const uint32_t *records, uint64_t count)
{
    const uint32_t bits = GS_MIN(32 + gs_part__bits(vertices), 64);
    uint64_t n = 0, kept = 0;

    for (const uint32_t *r = records; r < records + count * a->words; r += a->words)
        if (r[0] != r[1])
            a->keys[n++] = (GS_MAX(r[0], r[1]) - first) << 32 | GS_MIN(r[0], r[1]);
    uint64_t *sorted = gs_part__sort8(a->keys, a->spare, n, bits);
    for (uint64_t i = 0; i < n; i++) /* kept <= i, so the entry before is still itself */
        if (i == 0 || sorted[i] != sorted[i - 1])
            sorted[kept++] = sorted[i];
    *pairs = sorted;
    return kept;
}

static gs_status adjacency_block(void *context, uint64_t first, uint64_t vertices, uint32_t *records, uint64_t count)
{
    adjacency *a = context;
    uint64_t *pairs;
    const uint64_t n = unique_pairs(&pairs, a, first, vertices, records, count);

    for (uint64_t i = 0; i < n; i++) {
        const uint64_t u = (pairs[i] >> 32) + first, v = (uint32_t)pairs[i];
        if (a->fill) {
            a->neighbour[a->start[u]++] = (idx_t)v;
            a->neighbour[a->start[v]++] = (idx_t)u;
        } else {
            a->start[u + 1]++;
            a->start[v + 1]++;
        }
    }
    gs_free(records);
    return GS_OK;
}

static gs_status adjacency_make(adjacency *a, gs_part_job *job, const gs_part_blocks *b)
{
    const uint64_t n = b->vertices, cap = GS_MIN(b->cap, b->edges) + 1;

    a->words = b->words;
    a->start = gs_arena_take(&a->lists, n + 2, sizeof(idx_t));
    a->keys = gs_arena_take(&a->sorting, cap, 8);
    a->spare = gs_arena_take(&a->sorting, cap, 8);
    GS_NEED(!a->lists.is_short && !a->sorting.is_short, "no memory for METIS's graph of %lu vertices", n);
    GS_TRY(gs_part__blocks_each(b, job, adjacency_block, a));
    for (uint64_t v = 0; v < n; v++)
        a->start[v + 1] += a->start[v];
    if ((a->neighbour = gs_arena_take(&a->lists, (uint64_t)a->start[n], sizeof(idx_t))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for METIS's graph of %lu neighbours", (uint64_t)a->start[n]);
    a->fill = true;
    GS_TRY(gs_part__blocks_each(b, job, adjacency_block, a));
    memmove(a->start + 1, a->start, n * sizeof(idx_t)); /* filling moved each start to its end */
    a->start[0] = 0;
    gs_arena_free(&a->sorting);
    return GS_OK;
}

static void adjacency_free(adjacency *a)
{
    gs_arena_free(&a->lists);
    gs_arena_free(&a->sorting);
}

/* Equal intervals out of METIS's parts. */
typedef struct balancing {
    const adjacency *a;
    const gs_part_grid *grid;
    uint32_t *part;
    uint64_t *size; /* [P] */
    uint32_t *near; /* [P] */
    gs_arena memory;
} balancing;

static int larger_first(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* The last interval may be short: it gets the smallest part. */
static gs_status rename_by_size(balancing *w)
{
    const uint32_t parts = w->grid->parts;
    uint64_t *const order = gs_arena_take(&w->memory, parts, 8);
    uint32_t *const name = gs_arena_take(&w->memory, parts, 4);

    w->size = gs_arena_take(&w->memory, parts, sizeof(*w->size));
    w->near = gs_arena_take(&w->memory, parts, sizeof(*w->near));
    GS_NEED(!w->memory.is_short, "no memory to balance %u intervals", parts);
    for (uint64_t v = 0; v < w->grid->vertices; v++)
        w->size[w->part[v]]++;
    for (uint32_t i = 0; i < parts; i++)
        order[i] = w->size[i] << 32 | (parts - 1 - i); /* N < 2^31 here; ties by number */
    qsort(order, parts, 8, larger_first);
    for (uint32_t i = 0; i < parts; i++) {
        name[parts - 1 - (uint32_t)order[i]] = i;
        w->size[i] = order[i] >> 32;
    }
    for (uint64_t v = 0; v < w->grid->vertices; v++)
        w->part[v] = name[w->part[v]];
    return GS_OK;
}

static void move_vertex(balancing *w, uint32_t v)
{
    const idx_t from = w->a->start[v], to = w->a->start[v + 1];
    uint32_t best = UINT32_MAX;

    for (idx_t k = from; k < to; k++)
        w->near[w->part[w->a->neighbour[k]]]++;
    for (uint32_t i = 0; i < w->grid->parts; i++) {
        if (w->size[i] >= gs_part__grid_capacity(w->grid, i))
            continue;
        if (best == UINT32_MAX || w->near[i] > w->near[best])
            best = i;
    }
    for (idx_t k = from; k < to; k++)
        w->near[w->part[w->a->neighbour[k]]] = 0;
    w->size[w->part[v]]--;
    w->size[best]++;
    w->part[v] = best;
}

static uint64_t inside(const balancing *w, uint32_t v)
{
    uint64_t n = 0;
    for (idx_t k = w->a->start[v]; k < w->a->start[v + 1]; k++)
        n += w->part[w->a->neighbour[k]] == w->part[v];
    return n;
}

static gs_status shrink_part(balancing *w, uint32_t i)
{
    const uint64_t over = w->size[i] - gs_part__grid_capacity(w->grid, i);
    gs_arena memory = {0};
    uint64_t *const keys = gs_arena_take(&memory, w->size[i], 8), *const spare = gs_arena_take(&memory, w->size[i], 8);
    uint64_t n = 0;

    if (memory.is_short) {
        gs_arena_free(&memory);
        return gs_fail(GS_ENOMEM, "no memory to balance an interval of %lu vertices", w->size[i]);
    }
    for (uint64_t v = 0; v < w->grid->vertices; v++)
        if (w->part[v] == i)
            keys[n++] = inside(w, (uint32_t)v) << 32 | v;
    const uint64_t *sorted = gs_part__sort8(keys, spare, n, 64);
    for (uint64_t k = 0; k < over; k++)
        move_vertex(w, (uint32_t)sorted[k]);
    gs_arena_free(&memory);
    return GS_OK;
}

static gs_status balance(uint32_t *part, const gs_part_grid *grid, const adjacency *a)
{
    balancing w = {.a = a, .grid = grid, .part = part};
    gs_status st = rename_by_size(&w);

    for (uint32_t i = 0; i < grid->parts && st == GS_OK; i++)
        if (w.size[i] > gs_part__grid_capacity(grid, i))
            st = shrink_part(&w, i);
    gs_arena_free(&w.memory);
    return st;
}

gs_status gs_part__metis(uint32_t *part, const gs_part_grid *grid, gs_part_job *job, const gs_part_blocks *b)
{
    GS_ENDS(adjacency_free) adjacency a = {0};
    bool bundled = false;

    _Static_assert(sizeof(idx_t) == sizeof(*part), "METIS writes into the interval numbers");
    if (grid->parts == 1) {
        memset(part, 0, grid->vertices * 4);
        return GS_OK;
    }
    GS_TRY(adjacency_make(&a, job, b));
    gs_part__tick(job, "METIS", 0);
    gs_metis_graph g = {.vertices = (idx_t)grid->vertices, .start = a.start, .neighbour = a.neighbour};
    GS_TRY(cut_graph(part, &bundled, &g, &(metis_call){.parts = grid->parts, .seed = job->opt->seed,
                                                       .if_short = "use .method lp",
                                                       .if_failed = "use .method lp"}));
    if (bundled) {
        adjacency_free(&a);
        a = (adjacency){0};
        GS_TRY(adjacency_make(&a, job, b));
    }
    return balance(part, grid, &a);
}

/* ---- a graph of clusters, which is made for METIS ---------------------------------- */

typedef struct coarse {
    const gs_lp_graph *g;
    const gs_part_job *job;
    uint64_t *least; /* [vertices] rank of the lightest edge that a vertex itself keeps */
    uint64_t keep;   /* edges that a vertex keeps; its neighbours may keep more of them */
    uint32_t weight_shift, vertex_shift;
    uint64_t *ranks, *spare; /* of one list */
    idx_t *start, *neighbour, *edge_weight, *weight;
    gs_arena memory;
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

/* All ranks get what one of them has. */
static gs_status read_anyones(const coarse *c, uint32_t block, uint32_t *words)
{
    uint32_t owner = 0;

    while (block >= c->g->owned[owner + 1])
        owner++;
    const gs_status st = owner == c->job->rank ? gs_lp__read(c->g, block, words) : GS_OK;
    if (st != GS_OK || c->job->ranks == 1)
        return st;
    return gs_ranks_share_of(owner, words, c->g->block[block].words * 4ull);
}

static gs_status walk(coarse *c, each_list *each)
{
    GS_FREED uint32_t *words = gs_malloc_array(GS_MAX(c->g->most_words, 1), 4);
    gs_status st = words != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory for a block", c->g->path);

    for (uint32_t b = 0; b < c->g->blocks && st == GS_OK; b++) {
        const gs_lp_block *const block = &c->g->block[b];
        const uint32_t *at = words;
        if ((st = read_anyones(c, b, words)) != GS_OK)
            break;
        for (uint32_t i = 0; i < block->vertices; i++) {
            each(c, block->first + i, *at, at + 1);
            at += 1 + 2ull * *at;
        }
    }
    return st;
}

/* Each vertex keeps as many of its heaviest edges as METIS's memory allows on the mean. */
static gs_status load_coarse(coarse *c, uint64_t most)
{
    const uint64_t n = c->g->vertices;

    c->keep = c->g->neighbours <= most ? UINT64_MAX : GS_MAX(most / n / 2, 1); /* either end may keep it */
    c->least = gs_arena_take(&c->memory, n, 8);
    c->ranks = gs_arena_take(&c->memory, c->g->most_words, 8);
    c->spare = gs_arena_take(&c->memory, c->g->most_words, 8);
    c->start = gs_arena_take(&c->memory, n + 1, sizeof(idx_t));
    c->weight = gs_arena_take(&c->memory, n, sizeof(idx_t));
    GS_NEED(!c->memory.is_short, "no memory for METIS's graph of %lu clusters", n);
    GS_TRY(walk(c, find_least));
    GS_TRY(walk(c, take_list));
    while (c->g->edge_weight >> c->weight_shift > INT32_MAX / 2)
        c->weight_shift++;
    c->neighbour = gs_arena_take(&c->memory, (uint64_t)c->start[n], sizeof(idx_t));
    c->edge_weight = gs_arena_take(&c->memory, (uint64_t)c->start[n], sizeof(idx_t));
    GS_NEED(!c->memory.is_short, "no memory for METIS's graph of %lu edges", (uint64_t)c->start[n]);
    for (uint64_t v = 0; v < n; v++)
        c->weight[v] = (idx_t)GS_MAX(c->g->weight[v] >> c->vertex_shift, 1);
    return walk(c, take_list);
}

/* `part` of the coarsest graph's clusters; the last interval may be short. */
static gs_status cut_coarse(uint32_t *part, coarse *c, const gs_part_grid *grid, uint64_t seed)
{
    gs_metis_graph g = {(idx_t)c->g->vertices, c->start, c->neighbour, c->edge_weight, c->weight};
    real_t *const share = gs_arena_take(&c->memory, grid->parts, sizeof(*share));
    bool bundled;

    GS_NEED(share != NULL, "no memory for %u intervals", grid->parts);
    for (uint32_t i = 0; i < grid->parts; i++)
        share[i] = (real_t)gs_part__grid_capacity(grid, i) / (real_t)grid->vertices;
    return cut_graph(part, &bundled, &g,
                     &(metis_call){.parts = grid->parts, .seed = seed, .share = share,
                                  .if_short = "give more with .memory",
                                  .if_failed = "use .method fennel"});
}

gs_status gs_part__metis_clusters(uint32_t *part, const gs_lp_graph *g, const gs_part_grid *grid, gs_part_job *job,
                                  uint64_t most)
{
    coarse c = {.g = g, .job = job};
    gs_status st;

    while (grid->vertices >> c.vertex_shift > INT32_MAX / 2)
        c.vertex_shift++;
    if ((st = load_coarse(&c, most)) == GS_OK && job->rank == 0) /* another machine may round otherwise */
        st = cut_coarse(part, &c, grid, job->opt->seed);
    if (st == GS_OK && job->ranks > 1)
        st = gs_ranks_share(part, g->vertices * sizeof(*part));
    gs_arena_free(&c.memory);
    return st;
}
