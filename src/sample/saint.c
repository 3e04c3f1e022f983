/* saint.c - GraphSAINT (Zeng et al., ICLR'20): vertices drawn by three laws, and all edges between them.
 *
 * Rows: targets among the drawn vertices in store order, then the others. With coverage, batches drawn beforehand
 * estimate how likely each vertex and edge is: an edge into v then weighs C_v / C_edge, so that the sum over a vertex'
 * drawn in-edges, in batches that have the vertex, is its full sum on average; a target's loss weighs n / (C_v *
 * targets) for n batches, so that the sum of losses is the mean over all targets on average. */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "sample/sample_internal.h"

#define COVER_EPOCH UINT32_MAX /* batches drawn beforehand are of no epoch that is trained */
#define MOST_FACTOR 1e4f       /* as torch_geometric bounds coefficients */

/* Lets the table list what the batch has; false where there is no room. */
static bool draw_vertex(gs_batch_arena *a, uint32_t v) { return gs_unique_put(&a->unique, v) != GS_UNIQUE_NONE; }

/* The source of a random edge: a vertex as often as it has out-edges. */
static bool draw_nodes(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    gs_random_stream r = gs_random_stream_of(s->key, 0, b->number, b->epoch);
    bool fits = true;
    for (uint32_t k = 0; k < s->options.batch_size; k++)
        fits &= draw_vertex(a, s->in->other[gs_random_below64(&r, s->in->edges)]);
    return fits;
}

/* ---- edges, u -> v as likely as 1 / out-degree of u + 1 / in-degree of v -- */

/* The vertex in whose part of the sums `mark` falls. */
static uint32_t find_vertex(const gs_sampler *s, double mark)
{
    uint32_t low = 0, high = s->in->vertices - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (s->mass[middle + 1] > mark)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static double edge_mass(const gs_sampler *s, uint64_t edge, uint64_t in_degree)
{
    return 1.0 / (double)in_degree + 1.0 / (double)s->out_degree[s->in->other[edge]];
}

static uint64_t draw_edge(const gs_sampler *s, gs_random_stream *r, uint32_t *v)
{
    const double mark = gs_random_unit(r) * s->mass[s->in->vertices];
    *v = find_vertex(s, mark);
    const uint64_t first = gs_adjacency_first(s->in, *v), n = gs_adjacency_degree(s->in, *v);
    double sum = s->mass[*v];
    uint64_t k = 0;
    for (; k + 1 < n; k++)
        if ((sum += edge_mass(s, first + k, n)) > mark)
            break;
    return first + k;
}

/* Draws are independent: an edge may come twice. */
static bool draw_edges(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    gs_random_stream r = gs_random_stream_of(s->key, 0, b->number, b->epoch);
    bool fits = true;
    for (uint32_t k = 0; k < s->options.batch_size; k++) {
        uint32_t v;
        const uint64_t edge = draw_edge(s, &r, &v);
        fits &= draw_vertex(a, s->in->other[edge]);
        fits &= draw_vertex(a, v);
    }
    return fits;
}

/* Walks begin anywhere and stay where there is no edge to follow. */
static bool draw_walks(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    const gs_adjacency *along = s->out != NULL ? s->out : s->in;
    bool fits = true;
    for (uint32_t k = 0; k < s->options.batch_size; k++) {
        gs_random_stream r = gs_random_stream_of(s->key, k, b->number, b->epoch);
        uint32_t v = gs_random_below(&r, s->in->vertices);
        fits &= draw_vertex(a, v);
        for (uint32_t step = 0; step < s->options.walk_length; step++) {
            const uint64_t n = gs_adjacency_degree(along, v);
            if (n == 0)
                break;
            v = along->other[gs_adjacency_first(along, v) + gs_random_below64(&r, n)];
            fits &= draw_vertex(a, v);
        }
    }
    return fits;
}

/* ---- the subgraph -------------------------------------------------------- */

/* Least significant digits first, 8 bits a time; the result is in list[]. */
static void sort_vertices(uint32_t *list, uint32_t *spare, uint32_t n)
{
    for (uint32_t shift = 0; shift < 32; shift += 8) {
        uint32_t next[257] = {0};
        for (uint32_t i = 0; i < n; i++)
            next[(list[i] >> shift & 255) + 1]++;
        for (uint32_t d = 0; d < 256; d++)
            next[d + 1] += next[d];
        for (uint32_t i = 0; i < n; i++)
            spare[next[list[i] >> shift & 255]++] = list[i];
        memcpy(list, spare, n * sizeof(*list));
    }
}

/* Drawn vertices get their rows: targets first, each part in store order. */
static void number_rows(const gs_sampler *s, gs_batch_arena *a, gs_batch *b)
{
    const uint32_t n = a->unique.count;
    uint32_t *sorted = a->cursor; /* not in use yet */
    uint32_t *spare = a->raw.start;

    memcpy(sorted, a->unique.vertex, n * sizeof(*sorted));
    sort_vertices(sorted, spare, n);
    gs_unique_clear(&a->unique);
    for (uint32_t i = 0; i < n; i++)
        if (gs_sample__is_target(s, sorted[i]))
            gs_unique_put(&a->unique, sorted[i]);
    b->targets = a->unique.count;
    for (uint32_t i = 0; i < n; i++)
        if (!gs_sample__is_target(s, sorted[i]))
            gs_unique_put(&a->unique, sorted[i]);
    b->vertices = b->expanded = b->hop_end[0] = n;
}

static bool take_edge(const gs_sampler *s, gs_raw_edges *raw, uint64_t edge, uint32_t source)
{
    if (raw->count == raw->most)
        return false;
    raw->source[raw->count] = source;
    gs_raw__carry(raw, raw->count, s->in, edge);
    if (s->edge_factor != NULL) {
        const float own = s->options.coefficients_alone ? 1.0f : raw->weight[raw->count];
        raw->weight[raw->count] = own * s->edge_factor[edge].factor;
    }
    raw->count++;
    return true;
}

/* All edges between the rows: taken, or, with `count`, counted there. */
static bool find_edges(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b, gs_saint_edge *count)
{
    const gs_adjacency *in = s->in;
    for (uint32_t row = 0; row < b->vertices; row++) {
        const uint32_t v = a->unique.vertex[row];
        const uint64_t first = gs_adjacency_first(in, v), end = gs_adjacency_first(in, (uint64_t)v + 1);
        uint32_t own = 0;
        a->raw.start[row] = (uint32_t)a->raw.count;
        for (uint64_t k = first; k < end; k++) {
            const uint32_t source = gs_unique_find(&a->unique, in->other[k]);
            own += in->other[k] == v;
            if (source == GS_UNIQUE_NONE)
                continue;
            if (count != NULL)
                count[k].count++;
            else if (!take_edge(s, &a->raw, k, source))
                return false;
        }
        a->in_degree[row] = (float)(end - first);
        if (a->loops != NULL)
            a->loops[row] = (float)own;
    }
    a->raw.start[b->vertices] = (uint32_t)a->raw.count;
    return true;
}

static bool draw_vertices(const gs_sampler *s, gs_batch_arena *a, gs_batch *b)
{
    const bool fits = s->options.kind == GS_SAMPLER_SAINT_NODE   ? draw_nodes(s, a, b)
                      : s->options.kind == GS_SAMPLER_SAINT_EDGE ? draw_edges(s, a, b)
                                                                 : draw_walks(s, a, b);
    if (fits)
        number_rows(s, a, b);
    return fits;
}

gs_status gs_sample__saint(gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    if (!draw_vertices(s, a, b) || !find_edges(s, a, b, NULL))
        return gs_sample__overflow(b, s);
    for (uint32_t row = 0; row < b->targets && s->loss_factor != NULL; row++)
        a->loss_weight[row] = s->loss_factor[a->unique.vertex[row]];
    return GS_OK;
}

/* ---- what is made once --------------------------------------------------- */

/* Of SAINT_EDGE: what all in-edges of the vertices before one weigh. */
static gs_status sum_masses(gs_sampler *s)
{
    const gs_adjacency *in = s->in;
    double sum = 0;

    s->mass = gs_malloc_array((uint64_t)in->vertices + 1, sizeof(*s->mass));
    s->out_degree = gs_calloc(in->vertices, sizeof(*s->out_degree));
    if (s->mass == NULL || s->out_degree == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the probabilities of the graph's edges");
    for (uint64_t k = 0; k < in->edges; k++)
        s->out_degree[in->other[k]]++;
    for (uint32_t v = 0; v < in->vertices; v++) {
        const uint64_t first = gs_adjacency_first(in, v), n = gs_adjacency_degree(in, v);
        s->mass[v] = sum;
        for (uint64_t k = 0; k < n; k++)
            sum += edge_mass(s, first + k, n);
    }
    s->mass[in->vertices] = sum;
    return GS_OK;
}

gs_status gs_saint__open(gs_sampler *s)
{
    return s->options.kind == GS_SAMPLER_SAINT_EDGE ? sum_masses(s) : GS_OK;
}

/* Counts of batches and of vertices in them become factors of losses and edges. */
static void make_factors(gs_sampler *s, const uint32_t *drawn, uint32_t batches)
{
    const gs_adjacency *in = s->in;
    for (uint32_t v = 0; v < in->vertices; v++) {
        const uint64_t end = gs_adjacency_first(in, (uint64_t)v + 1);
        for (uint64_t k = gs_adjacency_first(in, v); k < end; k++) {
            const uint32_t both = s->edge_factor[k].count;
            s->edge_factor[k].factor = GS_MIN((float)GS_MAX(drawn[v], 1u) / (float)GS_MAX(both, 1u), MOST_FACTOR);
        }
        s->loss_factor[v] = (float)((double)batches / (GS_MAX(drawn[v], 1u) * (double)s->targets));
    }
}

gs_status gs_saint__cover(gs_sampler *s)
{
    const uint64_t want = (uint64_t)s->options.coverage * s->in->vertices;
    gs_saint_edge *count = gs_calloc(GS_MAX(s->in->edges, 1), sizeof(*count));
    uint32_t *drawn = gs_calloc(s->in->vertices, sizeof(*drawn));
    float *loss = gs_malloc_array(s->in->vertices, sizeof(*loss));
    gs_batch_arena *a = NULL;
    gs_status st = count == NULL || drawn == NULL || loss == NULL
                       ? gs_fail(GS_ENOMEM, "no memory for the coefficients of the graph's edges") : GS_OK;
    gs_batch b = {.epoch = COVER_EPOCH};

    if (st == GS_OK)
        st = gs_batch_arena_make(&a, s);
    for (uint64_t total = 0; st == GS_OK && total < want; b.number++) {
        gs_unique_clear(&a->unique);
        a->raw.count = 0;
        if (!draw_vertices(s, a, &b) || !find_edges(s, a, &b, count))
            st = gs_sample__overflow(&b, s);
        for (uint32_t row = 0; row < b.vertices; row++)
            drawn[a->unique.vertex[row]]++;
        total += b.vertices;
    }
    s->edge_factor = count;
    s->loss_factor = loss;
    if (st == GS_OK)
        make_factors(s, drawn, b.number);
    gs_batch_arena_free(a);
    gs_free(drawn);
    return st;
}
