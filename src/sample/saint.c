/* saint.c - GraphSAINT (Zeng et al., ICLR'20): vertices drawn by three laws, all edges between them, and coefficients.
 *
 * All laws need random whole numbers below counts alone, so lists in memory and in the store give the same: of the
 * latter, edges that are to be followed are named by their places, and taken when the columns have gone by; when the
 * vertices are drawn, one pass gives the edges between those of each batch. Rows: targets among the drawn vertices in
 * store order, then the others. */
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/size.h"
#include "sample/sample_internal.h"

#define MOST_FACTOR 1e4f /* as torch_geometric bounds coefficients */

static const gs_adjacency *out_of(const gs_sampler *s) { return s->out != NULL ? s->out : s->in; }

/* Lets the table list what the batch has; false where there is no room. */
static bool draw_vertex(gs_batch_arena *a, uint32_t v) { return gs_unique_put(&a->unique, v) != GS_UNIQUE_NONE; }

static bool may_go_on(const gs_sampler *s, uint32_t k) { return k % GS_STOP_EVERY != 0 || !gs_sample__is_stopped(s); }

/* What each batch draws, or begins with. */
typedef bool draw_batch(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b);
static void begin(const gs_sample_pass *w, draw_batch *draw)
{
#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(w->threads, 1u)) if (w->threads > 1)
    for (uint32_t k = 0; k < w->batches; k++)
        w->batch[k].overflows = !draw(w->s, w->arena[k], &w->batch[k]);
}

/* ---- nodes --------------------------------------------------------------- */

/* The vertex whose list has edge number `edge` of all. */
static uint32_t vertex_of(const gs_adjacency *a, uint64_t edge)
{
    uint32_t low = 0, high = a->vertices - 1;
    GS_BISECT(low, high, gs_adjacency_first(a, (uint64_t)middle + 1) <= edge);
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

static gs_status node_vertices(const gs_sample_pass *w)
{
    begin(w, draw_nodes);
    return GS_OK;
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

static gs_status open_edges(gs_sampler *s)
{
    const gs_status st = list_vertices(&s->listed[0], s->in);
    return st == GS_OK && s->out != NULL ? list_vertices(&s->listed[1], s->out) : st;
}

/* Vertex number `rank` of those with edges. */
static uint32_t listed_vertex(const gs_listed *l, const gs_adjacency *a, uint32_t rank)
{
    uint32_t low = 0, high = l->blocks - 1;
    GS_BISECT(low, high, l->before[middle + 1] <= rank);
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

/* The edge's other end, where lists are in memory; else it is asked for. */
static bool follow(const gs_sampler *s, gs_batch_arena *a, const drawn_edge *e)
{
    const gs_adjacency *const lists = e->out ? out_of(s) : s->in;
    gs_list_query *const q = &a->query[e->out && s->out != NULL];

    if (lists->columns == NULL)
        return draw_vertex(a, lists->other[gs_adjacency_first(lists, e->near) + e->place]);
    q->near[q->count] = e->near;
    q->place[q->count++] = e->place;
    return true;
}

/* Draws are independent: an edge may come twice. */
static bool draw_edges(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    gs_random_stream r = gs_random_stream_of(s->key, 0, b->number, b->epoch);
    bool fits = true;
    a->query[0].count = a->query[1].count = 0;
    for (uint32_t k = 0; k < s->options.batch_size && (fits = fits && may_go_on(s, k)); k++) {
        const drawn_edge e = draw_edge(s, &r);
        fits = draw_vertex(a, e.near);
        fits &= follow(s, a, &e);
    }
    return fits;
}

/* Takes the vertices that a pass over columns gave as answers. */
static gs_status take_answers(const gs_sample_pass *w, uint32_t query)
{
    GS_TRY(gs_columns__ask(w, query));
    for (uint32_t k = 0; k < w->batches; k++) {
        const gs_list_query *const q = &w->arena[k]->query[query];
        for (uint32_t i = 0; i < q->count && !w->batch[k].overflows; i++)
            w->batch[k].overflows = !may_go_on(w->s, i) || !draw_vertex(w->arena[k], q->far[i]);
    }
    return GS_OK;
}

/* The pass over lists of out-edges, or over the only ones that there are. */
static gs_sample_pass pass_out(const gs_sample_pass *w)
{
    gs_sample_pass out = *w;
    if (w->s->out != NULL)
        out.columns = w->s->out->columns;
    return out;
}

static gs_status edge_vertices(const gs_sample_pass *w)
{
    const gs_sample_pass out = pass_out(w);
    gs_status st = GS_OK;

    begin(w, draw_edges);
    if (w->columns != NULL)
        st = take_answers(w, 0);
    return st == GS_OK && w->columns != NULL && w->s->out != NULL ? take_answers(&out, 1) : st;
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

/* The same in steps, of lists in the store. */
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

/* Each goes on from where it is. An empty list, of no chunk, answers nothing: the walk stays. */
static void ask_step(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    gs_list_query *const q = &a->query[0];
    for (uint32_t k = 0; k < q->count && !b->overflows; k++) {
        const uint64_t n = gs_adjacency_degree(out_of(s), q->far[k]);
        q->near[k] = q->far[k];
        q->place[k] = n > 0 ? gs_random_below64(&a->stream[k], n) : 0;
    }
}

static gs_status walk_vertices(const gs_sample_pass *w)
{
    const gs_sample_pass along = pass_out(w);

    begin(w, w->columns != NULL ? begin_walks : draw_walks);
    for (uint32_t step = 0; w->columns != NULL && step < w->s->options.walk_length; step++) {
        for (uint32_t k = 0; k < w->batches; k++)
            ask_step(w->s, w->arena[k], &w->batch[k]);
        GS_TRY(take_answers(&along, 0));
    }
    return GS_OK;
}

/* ---- rows ---------------------------------------------------------------- */

/* Targets first, each part in store order. */
static void number_rows(gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
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
    b->overflows = gs_sample__is_stopped(s);
}

/* ---- edges between them, of lists in memory ------------------------------ */

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

/* Edges of a row; false where they are too many, or no more are wanted. */
static bool find_row(const gs_sampler *s, gs_batch_arena *a, uint32_t row, gs_saint_edge *count)
{
    const gs_adjacency *in = s->in;
    const uint32_t v = a->unique.vertex[row];
    const uint64_t first = gs_adjacency_first(in, v), end = gs_adjacency_first(in, (uint64_t)v + 1);
    uint32_t own = 0;

    a->raw.start[row] = (uint32_t)a->raw.count;
    for (uint64_t k = first; k < end; k++) {
        const uint32_t source = gs_unique_find(&a->unique, in->other[k]);
        own += in->other[k] == v;
        if ((k - first) % GS_STOP_EVERY == 0 && gs_sample__is_stopped(s))
            return false;
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
    return true;
}

/* Edges between the batch's rows become its raw edges, or with `count` are counted there. */
static void find_edges(gs_batch *b, const gs_sampler *s, gs_batch_arena *a, gs_saint_edge *count)
{
    for (uint32_t row = 0; row < b->vertices && !b->overflows; row++)
        b->overflows = !find_row(s, a, row, count);
    a->raw.start[b->vertices] = (uint32_t)a->raw.count;
}

/* ---- the same of lists in the store -------------------------------------- */

static float factor_of(uint32_t drawn, uint32_t both)
{
    return GS_MIN((float)GS_MAX(drawn, 1u) / (float)GS_MAX(both, 1u), MOST_FACTOR);
}

/* The coefficient of an edge: its ends share batches. */
static float edge_factor(const gs_sampler *s, uint32_t source, uint32_t dest)
{
    const gs_saint_drawn *const d = &s->drawn;
    const uint32_t *p = d->number + d->first[source], *const p_end = d->number + d->first[source + 1ull],
                   *q = d->number + d->first[dest], *const q_end = d->number + d->first[dest + 1ull];
    const uint32_t drawn = (uint32_t)(q_end - q);
    uint32_t both = 0;

    while (p < p_end && q < q_end) {
        const uint32_t a = *p, b = *q;
        both += a == b;
        p += a <= b;
        q += b <= a;
    }
    return factor_of(drawn, both);
}

static bool has_operands(const gs_batch_arena *a, uint32_t target, uint32_t operand)
{
    return a->interval_slot[target] != 0 && a->interval_slot[operand] != 0;
}

/* Edges of the row in this chunk whose sources are in the batch. */
static void take_row(const gs_sampler *s, gs_batch *b, gs_batch_arena *a, uint32_t p, const gs_chunk_view *v,
                     uint32_t t, uint32_t operand)
{
    const uint32_t row = a->rows.order[p];
    gs_raw_edges *const raw = &a->raw;

    for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++) {
        const uint32_t vertex = operand + gs_index_at(v->index, v->index_bytes, k),
                       source = gs_unique_find(&a->unique, vertex);
        if (source == GS_UNIQUE_NONE)
            continue;
        if (raw->count == raw->most) {
            b->overflows = true;
            return;
        }
        raw->source[raw->count] = source;
        a->rows.place[raw->count] = row;
        gs_raw__carry_chunk(raw, raw->count, v, k);
        if (s->loss_factor != NULL) {
            const float own = s->options.coefficients_alone ? 1.0f : raw->weight[raw->count];
            raw->weight[raw->count] = own * edge_factor(s, vertex, a->unique.vertex[row]);
        }
        raw->count++;
    }
}

/* The chunks between intervals that have rows of a batch. */
static void want_chunks(const gs_sample_pass *w)
{
    const uint64_t parts = w->s->in->parts;

    memset(w->columns->wanted, 0, parts * parts);
    for (uint32_t k = 0; k < w->batches; k++) {
        uint32_t *const has = w->arena[k]->interval_slot;
        if (w->batch[k].overflows)
            continue;
        for (uint32_t row = 0; row < w->batch[k].vertices; row++)
            has[w->arena[k]->unique.vertex[row] / w->s->in->interval_rows] = 1;
        for (uint64_t i = 0; i < parts; i++)
            for (uint64_t j = 0; j < parts && has[i] != 0; j++)
                w->columns->wanted[i * parts + j] |= (uint8_t)has[j];
    }
}

static void sort_edges(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    gs_sample__order_by_row(a, b->vertices);
    for (uint32_t row = 0; row < b->vertices; row++) {
        const uint32_t v = a->unique.vertex[row];
        a->in_degree[row] = (float)gs_adjacency_degree(s->in, v);
        if (a->loops != NULL)
            a->loops[row] = s->in->own != NULL ? (float)s->in->own[v] : 0;
    }
}

static gs_status read_edges(const gs_sample_pass *w)
{
    gs_columns__sort_rows(w, false);
    want_chunks(w);
    const gs_status st = gs_columns__meet(w, has_operands, take_row);
    for (uint32_t k = 0; k < w->batches; k++)
        memset(w->arena[k]->interval_slot, 0, w->s->in->parts * sizeof(uint32_t));
    return st;
}

/* ---- batches ------------------------------------------------------------- */

static void finish(gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    if (s->in->columns == NULL)
        find_edges(b, s, a, NULL);
    else if (!b->overflows)
        sort_edges(b, s, a);
    for (uint32_t row = 0; row < b->targets && s->loss_factor != NULL; row++)
        a->loss_weight[row] = s->loss_factor[a->unique.vertex[row]];
    b->expanded = b->vertices;
}

static gs_status draw(const gs_sample_pass *w, uint32_t first, uint32_t count)
{
    const gs_sampler *const s = w->s;
    (void)first;
    (void)count;

    GS_TRY(s->law->draw_vertices(w));
    GS_TRY(gs_sample__check_stop(s));
#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(w->threads, 1u)) if (w->threads > 1)
    for (uint32_t k = 0; k < w->batches; k++)
        if (!w->batch[k].overflows)
            number_rows(&w->batch[k], s, w->arena[k]);
    if (w->columns != NULL)
        GS_TRY(read_edges(w));
#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(w->threads, 1u)) if (w->threads > 1)
    for (uint32_t k = 0; k < w->batches; k++)
        if (!w->batch[k].overflows)
            finish(&w->batch[k], s, w->arena[k]);
    return GS_OK;
}

/* ---- coefficients, from batches drawn beforehand --------------------------
 *
 * These estimate how likely each vertex and edge is: an edge into v then weighs C_v / C_edge, so that the sum over a
 * vertex' drawn in-edges, in batches that have the vertex, is its full sum on average; a target's loss weighs
 * n / (C_v * targets) for n batches, so that the sum of losses is the mean over all targets on average.
 *
 * Lists in memory have a count for each edge. Where the edges do not fit, counts of them do not: there each vertex has
 * the numbers of the batches that it was in, and an edge was in those that its two ends share. */

#define COVER_EPOCH UINT32_MAX /* batches drawn beforehand are of no epoch that is trained */
#define TOGETHER 64u           /* batches, of lists that stay in the store */

/* Never drawn counts once. */
static float loss_factor_of(const gs_sampler *s, uint32_t batches, uint32_t drawn)
{
    return (float)((double)batches / (GS_MAX(drawn, 1u) * (double)s->targets));
}

/* ---- lists in memory ----------------------------------------------------- */

/* Counts of batches and of vertices in them become factors of losses and edges. */
static void make_factors(gs_sampler *s, const uint32_t *drawn, uint32_t batches)
{
    const gs_adjacency *in = s->in;
    for (uint32_t v = 0; v < in->vertices; v++) {
        const uint64_t end = gs_adjacency_first(in, (uint64_t)v + 1);
        for (uint64_t k = gs_adjacency_first(in, v); k < end; k++)
            s->edge_factor[k].factor = factor_of(drawn[v], s->edge_factor[k].count);
        s->loss_factor[v] = loss_factor_of(s, batches, drawn[v]);
    }
}

static gs_status count_batches(gs_sampler *s, uint64_t want, uint32_t *drawn, uint32_t *batches)
{
    gs_batch_arena *a = NULL;
    gs_batch b = {.epoch = COVER_EPOCH};
    gs_status st = gs_batch_arena_make(&a, s);
    const gs_sample_pass w = {.s = s, .batch = &b, .arena = &a, .batches = 1, .threads = 1};

    for (uint64_t total = 0; st == GS_OK && total < want; b.number++) {
        gs_unique_clear(&a->unique);
        if ((st = s->law->draw_vertices(&w)) != GS_OK)
            break;
        b.vertices = a->unique.count;
        if (!b.overflows)
            find_edges(&b, s, a, s->edge_factor);
        if (b.overflows) {
            st = gs_sample__overflow(&b, s);
            break;
        }
        for (uint32_t row = 0; row < b.vertices; row++)
            drawn[a->unique.vertex[row]]++;
        total += b.vertices;
    }
    *batches = b.number;
    gs_batch_arena_free(a);
    return st;
}

static gs_status cover_in_memory(gs_sampler *s, uint64_t want)
{
    GS_FREED uint32_t *const drawn = gs_calloc(s->in->vertices, sizeof(*drawn));
    uint32_t batches = 0;

    s->edge_factor = gs_calloc(GS_MAX(s->in->edges, 1), sizeof(*s->edge_factor));
    GS_NEED(drawn != NULL && s->edge_factor != NULL, "no memory for the coefficients of the graph's edges");
    GS_TRY(count_batches(s, want, drawn, &batches));
    make_factors(s, drawn, batches);
    return GS_OK;
}

/* ---- lists in the store -------------------------------------------------- */

/* Vertices of the batches, one after the other. */
typedef struct covering {
    uint32_t *vertex; /* [most] */
    uint64_t total, want, most;
    uint64_t *end;    /* [room] of each batch */
    uint32_t batches, room;
} covering;

static gs_status add_batch(covering *c, const gs_batch_arena *a)
{
    if (!gs_grow(&c->end, c->batches, &c->room, sizeof(*c->end)))
        return gs_fail(GS_ENOMEM, "no memory for the coefficients of the graph's edges");
    memcpy(c->vertex + c->total, a->unique.vertex, a->unique.count * sizeof(*c->vertex));
    c->total += a->unique.count;
    c->end[c->batches++] = c->total;
    return GS_OK;
}

static gs_status draw_together(covering *c, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t together)
{
    gs_batch b[TOGETHER];
    const gs_sample_pass w = {s, s->in->columns, b, arena, together, 1};

    while (c->total < c->want) {
        for (uint32_t k = 0; k < together; k++) {
            b[k] = (gs_batch){.epoch = COVER_EPOCH, .number = c->batches + k};
            gs_unique_clear(&arena[k]->unique);
        }
        GS_TRY(s->law->draw_vertices(&w));
        GS_TRY(gs_sample__check_stop(s));
        for (uint32_t k = 0; k < together && c->total < c->want; k++)
            GS_TRY(b[k].overflows ? gs_sample__overflow(&b[k], s) : add_batch(c, arena[k]));
    }
    return GS_OK;
}

static gs_status draw_batches(covering *c, const gs_sampler *s)
{
    const uint64_t bytes = gs_sample__vertex_arena_bytes(s);
    const uint32_t together = (uint32_t)GS_MIN(GS_MAX(s->options.cover_bytes / bytes, 1), TOGETHER);
    gs_batch_arena *arena[TOGETHER] = {0};
    gs_status st = GS_OK;

    for (uint32_t k = 0; k < together && st == GS_OK; k++)
        st = gs_sample__vertex_arena_make(&arena[k], s);
    if (st == GS_OK)
        st = draw_together(c, s, arena, together);
    for (uint32_t k = 0; k < together; k++)
        gs_batch_arena_free(arena[k]);
    return st;
}

/* From the vertices of each batch to the batches of each vertex. */
static gs_status list_batches(gs_sampler *s, const covering *c)
{
    gs_saint_drawn *const d = &s->drawn;
    const uint32_t n = s->in->vertices;

    d->first = gs_calloc(n + 1ull, sizeof(*d->first));
    d->number = gs_malloc_array(c->total, sizeof(*d->number));
    GS_NEED(d->first != NULL && d->number != NULL, "no memory for the coefficients of the graph's edges");
    for (uint64_t k = 0; k < c->total; k++)
        d->first[c->vertex[k] + 1]++;
    for (uint32_t v = 0; v < n; v++) {
        s->loss_factor[v] = loss_factor_of(s, c->batches, (uint32_t)d->first[v + 1]);
        d->first[v + 1] += d->first[v];
    }
    for (uint64_t k = 0, batch = 0; k < c->total; k++) { /* first[v] ascends to first[v + 1] */
        batch += k == c->end[batch];
        d->number[d->first[c->vertex[k]]++] = (uint32_t)batch;
    }
    memmove(d->first + 1, d->first, n * sizeof(*d->first));
    d->first[0] = 0;
    return GS_OK;
}

uint64_t gs_sampler_cover_bytes(uint64_t vertices, uint32_t coverage)
{
    return (vertices + 1) * sizeof(uint64_t) + vertices * sizeof(float) + vertices * coverage * sizeof(uint32_t);
}

static gs_status cover_in_store(gs_sampler *s, uint64_t want)
{
    covering c = {.want = want, .most = want + s->limits.vertices};
    gs_status st = GS_ENOMEM;

    if ((c.vertex = gs_malloc_array(c.most, sizeof(*c.vertex))) == NULL)
        st = gs_fail(st, "no memory for the coefficients of the graph's edges");
    else if ((st = draw_batches(&c, s)) == GS_OK)
        st = list_batches(s, &c);
    gs_free(c.vertex);
    gs_free(c.end);
    return st;
}

gs_status gs_saint__cover(gs_sampler *s)
{
    const uint64_t want = (uint64_t)s->options.coverage * s->in->vertices;

    if ((s->loss_factor = gs_malloc_array(s->in->vertices, sizeof(*s->loss_factor))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the coefficients of the graph's edges");
    return s->in->columns != NULL ? cover_in_store(s, want) : cover_in_memory(s, want);
}

/* ---- the laws ------------------------------------------------------------ */

static gs_status check(const gs_sampler_options *o, const gs_adjacency *in, uint32_t targets)
{
    (void)targets;
    if (in->edges == 0)
        return gs_fail(GS_EINVAL, "the graph has no edges to draw a subgraph by");
    if (o->kind == GS_SAMPLER_SAINT_WALK && o->walk_length == 0)
        return gs_fail(GS_EINVAL, "walks of no edge: give a walk length of 1 or more");
    return GS_OK;
}

static uint64_t draws_of_nodes(const gs_sampler_options *o) { return o->batch_size; }
static uint64_t draws_of_edges(const gs_sampler_options *o) { return 2ull * o->batch_size; }
static uint64_t draws_of_walks(const gs_sampler_options *o)
{
    return gs_mul_capped(o->batch_size, o->walk_length + 1ull);
}

static void bound(uint64_t *rows, uint64_t *edges, const gs_sampler *s)
{
    *rows = GS_MIN(s->law->draws(&s->options), s->in->vertices);
    *edges = s->in->edges;
}

/* Of lists in the store: what they are asked at once, and where the batch has rows. */
static void lay_out(gs_batch_arena *a, const gs_sampler *s, const gs_batch_limits *l, gs_placing *p)
{
    const uint64_t draws = s->options.batch_size;
    const bool nodes = s->options.kind == GS_SAMPLER_SAINT_NODE, edges = s->options.kind == GS_SAMPLER_SAINT_EDGE;
    const uint64_t queries[2] = {nodes ? 0 : draws, edges && s->out != NULL ? draws : 0};
    (void)l;

    if (s->in->columns == NULL)
        return;
    for (int q = 0; q < 2; q++)
        a->query[q] = (gs_list_query){.near = gs_place_array(p, queries[q], sizeof(uint32_t)),
                                      .place = gs_place_array(p, queries[q], sizeof(uint64_t)),
                                      .far = gs_place_array(p, queries[q], sizeof(uint32_t)),
                                      .order = gs_place_array(p, queries[q], sizeof(uint32_t)),
                                      .spare = gs_place_array(p, queries[q], sizeof(uint32_t)),
                                      .passed = gs_place_array(p, queries[q], sizeof(uint64_t))};
    a->interval_slot = gs_place_array(p, s->in->parts, sizeof(uint32_t));
    if (s->options.kind == GS_SAMPLER_SAINT_WALK)
        a->stream = gs_place_array(p, draws, sizeof(*a->stream));
}

static uint32_t passes_of_nodes(const gs_sampler_options *o, bool out)
{
    (void)o;
    (void)out;
    return 1;
}
static uint32_t passes_of_edges(const gs_sampler_options *o, bool out)
{
    (void)o;
    return out ? 3 : 2;
}
static uint32_t passes_of_walks(const gs_sampler_options *o, bool out)
{
    (void)out;
    return o->walk_length + 1;
}

/* What the laws have in common. */
#define SUBGRAPH .subgraph = true, .has_rows_by_vertex = true, .check = check, .bound = bound, .lay_out = lay_out, \
                 .draw = draw

const gs_sample_law gs_sample__saint_node = {
    .facts = {.name = "saint-node", .reads = GS_SAMPLER_READS_COVERAGE, .needs_edges = true, .needs_out_places = true},
    SUBGRAPH,
    .draws = draws_of_nodes,
    .passes = passes_of_nodes,
    .draw_vertices = node_vertices,
};

const gs_sample_law gs_sample__saint_edge = {
    .facts = {.name = "saint-edge", .reads = GS_SAMPLER_READS_COVERAGE, .needs_edges = true, .needs_out = true},
    SUBGRAPH,
    .draws = draws_of_edges,
    .open = open_edges,
    .passes = passes_of_edges,
    .draw_vertices = edge_vertices,
};

const gs_sample_law gs_sample__saint_walk = {
    .facts = {.name = "saint-walk", .reads = GS_SAMPLER_READS_COVERAGE | GS_SAMPLER_READS_WALK_LENGTH,
              .needs_edges = true, .needs_out = true},
    SUBGRAPH,
    .draws = draws_of_walks,
    .passes = passes_of_walks,
    .draw_vertices = walk_vertices,
};
