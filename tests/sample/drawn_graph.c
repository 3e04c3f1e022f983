#include "drawn_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

static int by_dest(const void *a, const void *b)
{
    const drawn_edge *x = a, *y = b;
    const uint32_t p[4] = {x->dest, x->type, x->source}, q[4] = {y->dest, y->type, y->source};
    for (int k = 0; k < 3; k++)
        if (p[k] != q[k])
            return p[k] < q[k] ? -1 : 1;
    return x->weight < y->weight ? -1 : x->weight > y->weight;
}

static int by_source(const void *a, const void *b)
{
    const drawn_edge *x = a, *y = b;
    const drawn_edge p = {x->dest, x->source, x->type, x->weight}, q = {y->dest, y->source, y->type, y->weight};
    return by_dest(&p, &q);
}

static void *allocate(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    assert_non_null(p);
    return p;
}

/* `sorted` by the end whose lists are made. */
static void make_lists(gs_adjacency *a, const drawn_graph *g, const drawn_edge *sorted, bool in, uint32_t types,
                       bool weights)
{
    uint32_t *first = allocate((g->vertices + 1) * sizeof(*first)), *other = allocate(g->edges * sizeof(*other));
    uint8_t *type = types ? allocate(g->edges) : NULL;
    float *weight = weights ? allocate(g->edges * sizeof(*weight)) : NULL;
    uint64_t *loops = allocate((g->vertices / 64 + 1) * sizeof(*loops));
    for (uint32_t k = 0; k < g->edges; k++) {
        const uint32_t near = in ? sorted[k].dest : sorted[k].source, far = in ? sorted[k].source : sorted[k].dest;
        first[near + 1]++;
        other[k] = far;
        if (near == far)
            loops[near / 64] |= 1ull << (near % 64);
        if (types)
            type[k] = (uint8_t)sorted[k].type;
        if (weights)
            weight[k] = sorted[k].weight;
    }
    for (uint32_t v = 0; v < g->vertices; v++)
        first[v + 1] += first[v];
    a->first32 = first;
    a->other = other;
    a->type = type;
    a->weight = weight;
    a->loops = loops;
}

drawn_graph *drawn_graph_of(const drawn_edge *edge, uint32_t edges, uint32_t vertices, uint32_t parts, uint32_t types,
                            bool weights)
{
    drawn_graph *g = allocate(sizeof(*g));
    drawn_edge *turned = allocate(edges * sizeof(*turned));
    *g = (drawn_graph){.vertices = vertices, .edges = edges, .edge = allocate(edges * sizeof(*edge))};
    memcpy(g->edge, edge, edges * sizeof(*edge));
    memcpy(turned, edge, edges * sizeof(*edge));
    qsort(g->edge, edges, sizeof(*edge), by_dest);
    qsort(turned, edges, sizeof(*edge), by_source);
    g->in = (gs_adjacency){.vertices = vertices, .edges = edges, .edge_types = types,
                           .data = {types ? 1 : 0, weights, 0}, .by_type = true, .parts = parts,
                           .interval_rows = (vertices + parts - 1) / parts};
    g->out = g->in;
    make_lists(&g->in, g, g->edge, true, types, weights);
    make_lists(&g->out, g, turned, false, types, weights);
    g->first = allocate((vertices + 1) * sizeof(*g->first));
    memcpy(g->first, g->in.first32, (vertices + 1) * sizeof(*g->first));
    g->out_degree = allocate(vertices * sizeof(*g->out_degree));
    for (uint32_t k = 0; k < edges; k++)
        g->out_degree[edge[k].source]++;
    g->target = allocate(vertices * sizeof(*g->target));
    for (uint32_t v = 0; v < vertices; v += 3)
        g->target[g->targets++] = v;
    free(turned);
    return g;
}

drawn_graph *drawn_graph_make(uint32_t vertices, uint32_t edges, uint32_t parts, uint32_t types, bool weights,
                              uint32_t seed)
{
    drawn_edge *edge = allocate(edges * sizeof(*edge));
    uint32_t state = seed * 2654435761u + 1;
#define DRAW(n) (state = state * 1664525u + 1013904223u, (state >> 8) % (n))
    for (uint32_t k = 0; k < edges; k++) {
        edge[k] = (drawn_edge){DRAW(vertices), DRAW(3) == 0 ? 0 : DRAW(vertices), types ? DRAW(types) : 0, 0};
        if (edge[k].dest % 7 == 3)
            edge[k].dest++;
        edge[k].dest %= vertices;
        if (k % 10 == 9)
            edge[k] = edge[k - 3];
        if (k % 10 == 5)
            edge[k].source = edge[k].dest;
        edge[k].weight = weights ? (float)(DRAW(16)) * 0.25f : 0;
    }
#undef DRAW
    drawn_graph *g = drawn_graph_of(edge, edges, vertices, parts, types, weights);
    free(edge);
    return g;
}

static void free_lists(gs_adjacency *a)
{
    free((void *)(uintptr_t)a->first32);
    free((void *)(uintptr_t)a->other);
    free((void *)(uintptr_t)a->type);
    free((void *)(uintptr_t)a->weight);
    free((void *)(uintptr_t)a->loops);
}

void drawn_graph_free(drawn_graph *g)
{
    free_lists(&g->in);
    free_lists(&g->out);
    free(g->edge);
    free(g->first);
    free(g->out_degree);
    free(g->target);
    free(g);
}

/* ---- batches ------------------------------------------------------------- */

static uint32_t element(const void *list, uint32_t width, uint64_t k)
{
    uint32_t v = 0;
    memcpy(&v, (const char *)list + k * width, width);
    return v;
}

static drawn_edge edge_of(const gs_batch *b, gs_direction d, uint64_t k, uint32_t *row)
{
    const gs_chunk_view *v = &b->view[d];
    uint32_t t = 0;
    for (uint32_t high = v->targets; high - t > 1;) { /* the last start that is not behind k */
        const uint32_t middle = (t + high) / 2;
        *(v->start[middle] <= k ? &t : &high) = middle;
    }
    const uint32_t target = element(v->target, v->index_bytes, t), operand = element(v->index, v->index_bytes, k);
    assert_true(target < b->vertices && operand < b->vertices);
    *row = target;
    return (drawn_edge){.source = b->vertex[d == GS_BY_DEST ? operand : target],
                        .dest = b->vertex[d == GS_BY_DEST ? target : operand],
                        .type = v->type != NULL ? element(v->type, v->type_bytes, k) : 0,
                        .weight = v->weight != NULL ? v->weight[k] : 0};
}

drawn_edge drawn_batch_edge(const gs_batch *b, uint64_t k, uint32_t *row) { return edge_of(b, GS_BY_DEST, k, row); }

static void check_chunk(const gs_batch *b, const gs_batch_limits *l, gs_direction d)
{
    const gs_chunk *c = &b->chunk[d];
    const gs_chunk_expect expect = {l->vertices, l->vertices, gs_batch_index_bytes(l), c->edges, c->targets,
                                    c->operands, c->largest};
    gs_chunk_view v;
    assert_int_equal(c->edges, b->edges);
    assert_true(c->length <= l->chunk_bytes[d]);
    gs_assert_ok(gs_chunk_view_make(&v, b->bytes[d], c->length, &expect, true));
    assert_memory_equal(&v, &b->view[d], sizeof(v));
}

static drawn_edge *edges_of(const gs_batch *b, gs_direction d)
{
    drawn_edge *e = allocate(b->edges * sizeof(*e));
    uint32_t row;
    for (uint64_t k = 0; k < b->edges; k++)
        e[k] = edge_of(b, d, k, &row);
    qsort(e, b->edges, sizeof(*e), by_dest);
    return e;
}

/* Both sorted: each edge of the batch is struck out of the graph's. */
static void check_part(const drawn_graph *g, const drawn_edge *e, uint64_t n, bool repeats, bool weights)
{
    bool *used = allocate(g->edges);
    for (uint64_t k = 0; k < n; k++) {
        uint32_t at = g->first[e[k].dest];
        for (; at < g->first[e[k].dest + 1]; at++)
            if ((repeats || !used[at]) && g->edge[at].source == e[k].source && g->edge[at].type == e[k].type &&
                (!weights || g->edge[at].weight == e[k].weight))
                break;
        if (at == g->first[e[k].dest + 1])
            fail_msg("edge %u -> %u of type %u is not the graph's, or not as often", e[k].source, e[k].dest, e[k].type);
        used[at] = true;
    }
    free(used);
}

void drawn_graph_check(const drawn_graph *g, const gs_batch *b, const gs_batch_limits *l, bool repeats, bool weights)
{
    bool *seen = allocate(g->vertices);
    assert_true(b->vertices <= l->vertices && b->edges <= l->edges);
    assert_true(b->targets <= b->expanded && b->expanded <= b->vertices);
    for (uint32_t i = 0; i < b->vertices; i++) {
        assert_true(b->vertex[i] < g->vertices && !seen[b->vertex[i]]);
        seen[b->vertex[i]] = true;
        if (i < b->targets && b->seeds == NULL)
            assert_int_equal(b->vertex[i] % 3, 0);
    }
    free(seen);
    if (b->edges == 0) {
        assert_null(b->bytes[0]);
        return;
    }
    check_chunk(b, l, GS_BY_DEST);
    check_chunk(b, l, GS_BY_SOURCE);
    drawn_edge *in = edges_of(b, GS_BY_DEST), *out = edges_of(b, GS_BY_SOURCE);
    assert_memory_equal(in, out, b->edges * sizeof(*in));
    check_part(g, in, b->edges, repeats, weights);
    free(in);
    free(out);
}
