/* layer_edges.c - edges sorted by counting, twice: by destination and by source. */
#include "session/edges.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/size.h"

#define MOST_TYPES 65536u
#define MOST (UINT32_MAX - 2u) /* edges, and vertices */

static gs_status check(const gs_layer_graph *g)
{
    if (g->vertices == 0 || g->vertices > MOST || g->edges > MOST)
        return gs_fail(GS_EINVAL, "graph: %llu vertices and %llu edges; a layer takes 1 to %u vertices and at most as "
                       "many edges", (unsigned long long)g->vertices, (unsigned long long)g->edges, MOST);
    if ((g->type != NULL) != (g->edge_types > 0) || g->edge_types > MOST_TYPES)
        return gs_fail(GS_EINVAL, "graph.edge_types %u: must be 1 to 65536 with .type, and 0 without", g->edge_types);
    for (uint64_t e = 0; e < g->edges; e++) {
        const uint64_t u = (uint64_t)g->source[e], v = (uint64_t)g->destination[e];
        if (u >= g->vertices || v >= g->vertices)
            return gs_fail(GS_EINVAL, "edge %llu: vertex %lld is not one of the %llu vertices", (unsigned long long)e,
                           (long long)(u >= g->vertices ? g->source[e] : g->destination[e]),
                           (unsigned long long)g->vertices);
        if (g->type != NULL && (uint64_t)g->type[e] >= g->edge_types)
            return gs_fail(GS_EINVAL, "edge %llu: type %lld is none of the %u types", (unsigned long long)e,
                           (long long)g->type[e], g->edge_types);
        if (g->weight != NULL && !isfinite(g->weight[e]))
            return gs_fail(GS_EINVAL, "edge %llu: the weight is not finite", (unsigned long long)e);
    }
    return GS_OK;
}

/* out = the edges of `in` (NULL: as they come) by `key`, below `keys`; those of one key keep their order. `start`
 * [keys + 1] is scratch. */
static void sort_by(uint32_t *out, const uint32_t *in, const int64_t *key, uint64_t keys, uint64_t edges,
                    uint32_t *start)
{
    memset(start, 0, (keys + 1) * sizeof(*start));
    for (uint64_t e = 0; e < edges; e++)
        start[key[e] + 1]++;
    for (uint64_t k = 0; k < keys; k++)
        start[k + 1] += start[k];
    for (uint64_t i = 0; i < edges; i++) {
        const uint32_t e = in != NULL ? in[i] : (uint32_t)i;
        out[start[key[e]]++] = e;
    }
}

/* Where the arrays of one end lie. */
typedef struct side {
    void *target, *index, *type;
    uint32_t *start, *next;
    float *weight;
} side;

/* By the end `to`, then by type, then by the other end: edges between the same two stand side by side, in one order
 * from either end, as masks of edges count on. `order` [2][edges] is scratch. */
static void sort_side(gs_edges *out, const side *s, const gs_layer_graph *g, const int64_t *to, const int64_t *from,
                      uint32_t *const order[2])
{
    const uint32_t *sorted = order[0];
    uint32_t used = 0;

    sort_by(order[0], NULL, from, g->vertices, g->edges, s->next);
    if (g->type != NULL) {
        sort_by(order[1], order[0], g->type, g->edge_types, g->edges, s->next);
        sorted = order[1];
    }
    memset(s->next, 0, (g->vertices + 1) * sizeof(*s->next));
    for (uint64_t e = 0; e < g->edges; e++)
        s->next[to[e] + 1]++;
    for (uint64_t v = 0; v < g->vertices; v++) {
        if (s->next[v + 1] > 0) {
            gs_index_put(s->target, out->index_bytes, used, v);
            s->start[used++] = s->next[v];
        }
        s->next[v + 1] += s->next[v];
    }
    s->start[used] = (uint32_t)g->edges;
    for (uint64_t k = 0; k < g->edges; k++) {
        const uint64_t e = sorted[k], at = s->next[to[e]]++;
        gs_index_put(s->index, out->index_bytes, at, (uint32_t)from[e]);
        if (g->weight != NULL)
            s->weight[at] = g->weight[e];
        if (g->type != NULL)
            gs_type_put(s->type, out->type_bytes, at, (uint32_t)g->type[e]);
    }
    out->targets = used;
    out->target = s->target;
    out->start = s->start;
    out->index = s->index;
    out->weight = g->weight != NULL ? s->weight : NULL;
    out->type = g->type != NULL ? s->type : NULL;
}

static void count_degrees(gs_layer_edges *e, const gs_layer_graph *g)
{
    for (uint64_t k = 0; k < g->edges; k++) {
        const bool loop = g->source[k] == g->destination[k];
        e->in_degree[g->destination[k]]++;
        e->out_degree[g->source[k]]++;
        e->loops[g->source[k]] += loop;
        e->self_loops += loop;
    }
}

static void *take(uint8_t **at, uint64_t bytes)
{
    void *const p = *at;
    *at += gs_align_up(bytes, 64);
    return p;
}

static uint64_t side_bytes(const gs_layer_graph *g, uint32_t ix, uint32_t type_bytes)
{
    return gs_align_up((g->vertices + 1) * ix, 64) + gs_align_up((g->edges + 1) * ix, 64) +
           gs_align_up((g->edges + 1) * type_bytes, 64) + gs_align_up((g->vertices + 2) * 4, 64) +
           (g->weight != NULL ? gs_align_up((g->edges + 1) * 4, 64) : 0);
}

gs_status gs_layer_edges_make(gs_layer_edges *out, const gs_layer_graph *g)
{
    const uint32_t ix = g->vertices <= 65536 ? 2 : 4;
    const uint32_t type_bytes = g->type == NULL ? 0 : g->edge_types <= 256 ? 1 : 2;
    const uint64_t floats = gs_align_up((g->vertices + 1) * 4, 64);
    uint32_t *order[2] = {NULL, NULL}, *next = NULL;
    gs_status st = check(g);

    *out = (gs_layer_edges){.by = {{.index_bytes = ix, .type_bytes = type_bytes},
                                   {.index_bytes = ix, .type_bytes = type_bytes}}};
    if (st != GS_OK)
        return st;
    out->block = gs_calloc(1, 2 * side_bytes(g, ix, type_bytes) + 3 * floats);
    next = gs_malloc_array(GS_MAX(g->vertices, g->edge_types) + 1, sizeof(*next));
    order[0] = gs_malloc_array(g->edges + 1, sizeof(*next));
    order[1] = g->type != NULL ? gs_malloc_array(g->edges + 1, sizeof(*next)) : NULL;
    if (out->block == NULL || next == NULL || order[0] == NULL || (g->type != NULL && order[1] == NULL)) {
        st = gs_fail(GS_ENOMEM, "out of memory for the edges of a layer");
        goto done;
    }
    uint8_t *at = out->block;
    out->in_degree = take(&at, floats);
    out->out_degree = take(&at, floats);
    out->loops = take(&at, floats);
    count_degrees(out, g);
    for (int d = 0; d < 2; d++) {
        side s = {.next = next};
        s.target = take(&at, (g->vertices + 1) * ix);
        s.index = take(&at, (g->edges + 1) * ix);
        s.type = take(&at, (g->edges + 1) * type_bytes);
        s.start = take(&at, (g->vertices + 2) * 4);
        s.weight = g->weight != NULL ? take(&at, (g->edges + 1) * 4) : NULL;
        sort_side(&out->by[d], &s, g, d == 0 ? g->destination : g->source, d == 0 ? g->source : g->destination, order);
    }
done:
    gs_free(order[0]);
    gs_free(order[1]);
    gs_free(next);
    return st;
}

void gs_layer_edges_free(gs_layer_edges *e)
{
    gs_free(e->block);
    *e = (gs_layer_edges){0};
}
