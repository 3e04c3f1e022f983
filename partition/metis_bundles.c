/* metis_bundles.c - components by union and find, small ones bundled in the order of their first vertices. */
#include "partition/metis_bundles.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

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
        (void)gs_fail(GS_ENOMEM, "no memory for the components of %llu vertices", (unsigned long long)n);
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
