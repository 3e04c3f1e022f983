/* saint_draw.c - the vertices of GraphSAINT's batches, by three laws, and their rows.
 *
 * All laws need random whole numbers below counts alone, so lists in memory and in the store give the same: of the
 * latter, edges that are to be followed are named by their places, and taken when the columns have gone by. */
#include <string.h>

#include "base/alloc.h"
#include "base/radix.h"
#include "base/size.h"
#include "sample/sample_internal.h"

static const gs_adjacency *out_of(const gs_sampler *s) { return s->out != NULL ? s->out : s->in; }

/* Lets the table list what the batch has; false where there is no room. */
static bool draw_vertex(gs_batch_arena *a, uint32_t v) { return gs_unique_put(&a->unique, v) != GS_UNIQUE_NONE; }

static bool may_go_on(const gs_sampler *s, uint32_t k) { return k % GS_STOP_EVERY != 0 || !gs_sample__is_stopped(s); }

/* ---- nodes --------------------------------------------------------------- */

/* The vertex whose list has edge number `edge` of all. */
static uint32_t vertex_of(const gs_adjacency *a, uint64_t edge)
{
    uint32_t low = 0, high = a->vertices - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (gs_adjacency_first(a, (uint64_t)middle + 1) > edge)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The source of a random edge: a vertex as often as it has out-edges. */
static bool draw_nodes(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    gs_random_stream r = gs_random_stream_of(s->key, 0, b->number, b->epoch);
    bool fits = true;
    for (uint32_t k = 0; k < s->options.batch_size && (fits = fits && may_go_on(s, k)); k++)
        fits = draw_vertex(a, vertex_of(out_of(s), gs_random_below64(&r, s->in->edges)));
    return fits;
}

/* ---- edges, u -> v as likely as 1 / out-degree of u + 1 / in-degree of v -- */

static gs_status list_vertices(gs_listed *l, const gs_adjacency *a)
{
    uint32_t count = 0;

    l->blocks = (uint32_t)gs_div_up(a->vertices, GS_LISTED_ROWS);
    if ((l->before = gs_malloc_array(l->blocks + 1ull, sizeof(*l->before))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the probabilities of the graph's edges");
    for (uint32_t v = 0; v < a->vertices; v++) {
        if (v % GS_LISTED_ROWS == 0)
            l->before[v / GS_LISTED_ROWS] = count;
        count += gs_adjacency_degree(a, v) > 0;
    }
    l->before[l->blocks] = count;
    return GS_OK;
}

gs_status gs_saint__open(gs_sampler *s)
{
    gs_status st = GS_OK;

    if (s->options.kind != GS_SAMPLER_SAINT_EDGE)
        return GS_OK;
    st = list_vertices(&s->listed[0], s->in);
    return st == GS_OK && s->out != NULL ? list_vertices(&s->listed[1], s->out) : st;
}

/* Vertex number `rank` of those with edges. */
static uint32_t listed_vertex(const gs_listed *l, const gs_adjacency *a, uint32_t rank)
{
    uint32_t low = 0, high = l->blocks - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (l->before[middle + 1] > rank)
            high = middle;
        else
            low = middle + 1;
    }
    uint32_t v = low * GS_LISTED_ROWS;
    for (uint32_t left = rank - l->before[low];; v++)
        if (gs_adjacency_degree(a, v) > 0 && left-- == 0)
            return v;
}

/* An edge: where it is in the list of one of its ends. */
typedef struct drawn_edge {
    bool out; /* of its source */
    uint32_t near;
    uint64_t place;
} drawn_edge;

/* 1 / in-degree is the chance of an edge in its destination's list and 1 / out-degree in its source's, and over all
 * edges each of the two adds up to the number of vertices that have such edges: so one of these, as likely as another,
 * and one of its edges. */
static drawn_edge draw_edge(const gs_sampler *s, gs_random_stream *r)
{
    const gs_listed *const in = &s->listed[0], *const out = &s->listed[s->out != NULL];
    const uint32_t ins = in->before[in->blocks], outs = out->before[out->blocks];
    const uint64_t rank = gs_random_below64(r, (uint64_t)ins + outs);
    drawn_edge e = {.out = rank >= ins};
    const gs_adjacency *const lists = e.out ? out_of(s) : s->in;

    e.near = listed_vertex(e.out ? out : in, lists, (uint32_t)(rank - (e.out ? ins : 0)));
    e.place = gs_random_below64(r, gs_adjacency_degree(lists, e.near));
    return e;
}

/* Draws are independent: an edge may come twice. */
static bool draw_edges(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    gs_random_stream r = gs_random_stream_of(s->key, 0, b->number, b->epoch);
    bool fits = true;
    for (uint32_t k = 0; k < s->options.batch_size && (fits = fits && may_go_on(s, k)); k++) {
        const drawn_edge e = draw_edge(s, &r);
        const gs_adjacency *const lists = e.out ? out_of(s) : s->in;
        fits = draw_vertex(a, e.near);
        fits &= draw_vertex(a, lists->other[gs_adjacency_first(lists, e.near) + e.place]);
    }
    return fits;
}

/* ---- walks --------------------------------------------------------------- */

/* Walks begin anywhere and stay where there is no edge to follow. */
static bool draw_walks(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    const gs_adjacency *along = out_of(s);
    bool fits = true;
    for (uint32_t k = 0; k < s->options.batch_size && (fits = fits && may_go_on(s, k)); k++) {
        gs_random_stream r = gs_random_stream_of(s->key, k, b->number, b->epoch);
        uint32_t v = gs_random_below(&r, s->in->vertices);
        fits = draw_vertex(a, v);
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

gs_status gs_saint__draw(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    const bool fits = s->options.kind == GS_SAMPLER_SAINT_NODE   ? draw_nodes(s, a, b)
                      : s->options.kind == GS_SAMPLER_SAINT_EDGE ? draw_edges(s, a, b)
                                                                 : draw_walks(s, a, b);
    return fits ? GS_OK : gs_sample__overflow(b, s);
}

/* ---- of lists that stay in the store ------------------------------------- */

/* Names the edges; their near ends are taken at once. */
static bool name_edges(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    gs_random_stream r = gs_random_stream_of(s->key, 0, b->number, b->epoch);
    bool fits = true;
    a->query[0].count = a->query[1].count = 0;
    for (uint32_t k = 0; k < s->options.batch_size && (fits = fits && may_go_on(s, k)); k++) {
        const drawn_edge e = draw_edge(s, &r);
        gs_list_query *const q = &a->query[e.out && s->out != NULL];
        q->near[q->count] = e.near;
        q->place[q->count++] = e.place;
        fits = draw_vertex(a, e.near);
    }
    return fits;
}

static bool begin_walks(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    gs_list_query *const q = &a->query[0];
    bool fits = true;
    q->count = s->options.batch_size;
    for (uint32_t k = 0; k < q->count && (fits = fits && may_go_on(s, k)); k++) {
        a->stream[k] = gs_random_stream_of(s->key, k, b->number, b->epoch);
        q->far[k] = gs_random_below(&a->stream[k], s->in->vertices);
        fits = draw_vertex(a, q->far[k]);
    }
    return fits;
}

void gs_saint__begin(gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    b->overflows = !(s->options.kind == GS_SAMPLER_SAINT_NODE   ? draw_nodes(s, a, b)
                     : s->options.kind == GS_SAMPLER_SAINT_EDGE ? name_edges(s, a, b)
                                                                : begin_walks(s, a, b));
}

/* Of walks: each goes on from where it is. An empty list, of no chunk, answers nothing: the walk stays. */
void gs_saint__ask_step(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    gs_list_query *const q = &a->query[0];
    for (uint32_t k = 0; k < q->count && !b->overflows; k++) {
        const uint64_t n = gs_adjacency_degree(out_of(s), q->far[k]);
        q->near[k] = q->far[k];
        q->place[k] = n > 0 ? gs_random_below64(&a->stream[k], n) : 0;
    }
}

void gs_saint__take_step(gs_batch *b, const gs_sampler *s, gs_batch_arena *a, uint32_t query)
{
    const gs_list_query *const q = &a->query[query];
    for (uint32_t k = 0; k < q->count && !b->overflows; k++)
        b->overflows = !may_go_on(s, k) || !draw_vertex(a, q->far[k]);
}

/* ---- rows ---------------------------------------------------------------- */

/* Targets first, each part in store order. */
gs_status gs_saint__number_rows(gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    const uint32_t n = a->unique.count;
    uint32_t *const sorted = a->cursor, *const order = a->raw.start; /* not in use yet */

    gs_radix_order(order, sorted, a->unique.vertex, n);
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = a->unique.vertex[order[i]];
    gs_unique_clear(&a->unique);
    for (int others = 0; others < 2; others++) {
        for (uint32_t i = 0; i < n && may_go_on(s, i); i++)
            if (gs_sample__is_target(s, sorted[i]) == (others == 0))
                gs_unique_put(&a->unique, sorted[i]);
        if (others == 0)
            b->targets = a->unique.count;
    }
    b->vertices = b->hop_end[0] = n;
    return gs_sample__check_stop(s);
}
