/* assemble.c - drawn edges, a list a row, to the two chunks of a batch.
 *
 * By source by counting, then by destination from that by counting again: in both, edges of a target ascend, as the
 * format wants it. With types, edges are put in order of type before each of the two. Linear, no comparisons. */
#include <assert.h>
#include <string.h>

#include "base/dtype.h"
#include "sample/sample_internal.h"

typedef struct sorting {
    const gs_batch *b;
    gs_raw_edges *raw;
    uint32_t *cursor; /* [vertices] where the next edge of a row goes */
    gs_chunk_view *in, *out;
} sorting;

#define INLINE static inline __attribute__((always_inline))

/* Where the format has the view's arrays const, these write them. */
INLINE void copy_features(const gs_chunk_view *v, uint64_t k, const void *rows, uint64_t edge)
{
    if (v->feature != NULL)
        memcpy((char *)(uintptr_t)v->feature + k * v->feature_bytes, (const char *)rows + edge * v->feature_bytes,
               v->feature_bytes);
}

INLINE void put_data(const gs_chunk_view *v, uint64_t k, const gs_raw_edges *raw, uint32_t edge)
{
    if (raw->type != NULL)
        gs_type_put(v->type, v->type_bytes, k, raw->type[edge]);
    if (raw->weight != NULL)
        ((float *)(uintptr_t)v->weight)[k] = raw->weight[edge];
    copy_features(v, k, raw->feature, edge);
}

/* Edges of rows [0, rows), counted in cursor[], become the chunk's targets and starts, and the other chunk's operands;
 * cursor[r] becomes the place of the row's first edge. */
INLINE void list_rows(const sorting *s, uint32_t rows, const gs_chunk_view *targets, const gs_chunk_view *operands,
                      uint32_t width)
{
    uint32_t n = 0, sum = 0;
    for (uint32_t r = 0; r < rows; r++) {
        const uint32_t edges = s->cursor[r];
        s->cursor[r] = sum;
        if (edges == 0)
            continue;
        gs_index_put(targets->target, width, n, r);
        gs_index_put(operands->operand, width, n, r);
        ((uint32_t *)(uintptr_t)targets->start)[n++] = sum;
        sum += edges;
    }
    ((uint32_t *)(uintptr_t)targets->start)[n] = sum;
}

INLINE void count_targets(const sorting *s)
{
    for (uint32_t r = 0; r < s->b->expanded; r++)
        s->cursor[r] = s->raw->start[r + 1] - s->raw->start[r];
}

INLINE void sort_plain(const sorting *s, uint32_t width)
{
    const gs_raw_edges *raw = s->raw;

    list_rows(s, s->b->vertices, s->out, s->in, width); /* sources were counted */
    for (uint32_t t = 0; t < s->b->expanded; t++)
        for (uint32_t k = raw->start[t]; k < raw->start[t + 1]; k++) {
            const uint32_t at = s->cursor[raw->source[k]]++;
            gs_index_put(s->out->index, width, at, t);
            put_data(s->out, at, raw, k);
        }
    count_targets(s);
    list_rows(s, s->b->expanded, s->in, s->out, width);
    for (uint32_t r = 0; r < s->out->targets; r++) {
        const uint32_t source = gs_index_at(s->out->target, width, r);
        for (uint32_t k = s->out->start[r]; k < s->out->start[r + 1]; k++) {
            const uint32_t at = s->cursor[gs_index_at(s->out->index, width, k)]++;
            gs_index_put(s->in->index, width, at, source);
            if (raw->weight != NULL)
                ((float *)(uintptr_t)s->in->weight)[at] = s->out->weight[k];
            copy_features(s->in, at, s->out->feature, k);
        }
    }
}

/* to[]: edges from[] (NULL: 0, 1, ...) in order of type, those of one type in their order. */
static void order_by_type(const sorting *s, const uint32_t *from, uint32_t *to, uint32_t types)
{
    uint32_t *next = s->raw->type_count;
    const uint32_t n = (uint32_t)s->raw->count;
    memset(next, 0, sizeof(*next) * ((size_t)types + 1));
    for (uint32_t k = 0; k < n; k++)
        next[s->raw->type[k] + 1]++;
    for (uint32_t t = 0; t < types; t++)
        next[t + 1] += next[t];
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t edge = from != NULL ? from[k] : k;
        to[next[s->raw->type[edge]]++] = edge;
    }
}

INLINE void sort_typed(const sorting *s, uint32_t width, uint32_t types)
{
    gs_raw_edges *raw = s->raw;
    const uint32_t n = (uint32_t)raw->count;

    for (uint32_t t = 0; t < s->b->expanded; t++)
        for (uint32_t k = raw->start[t]; k < raw->start[t + 1]; k++)
            raw->target[k] = t;
    list_rows(s, s->b->vertices, s->out, s->in, width);
    order_by_type(s, NULL, raw->by_type, types);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t edge = raw->by_type[k], at = s->cursor[raw->source[edge]]++;
        gs_index_put(s->out->index, width, at, raw->target[edge]);
        put_data(s->out, at, raw, edge);
        raw->by_source[at] = edge;
    }
    count_targets(s);
    list_rows(s, s->b->expanded, s->in, s->out, width);
    order_by_type(s, raw->by_source, raw->by_type, types);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t edge = raw->by_type[k], at = s->cursor[raw->target[edge]]++;
        gs_index_put(s->in->index, width, at, raw->source[edge]);
        put_data(s->in, at, raw, edge);
    }
}

/* Edges of each source into cursor[]; counts of both chunks. */
static void count_rows(gs_batch *b, gs_batch_arena *a)
{
    uint32_t sources = 0, targets = 0;
    memset(a->cursor, 0, sizeof(*a->cursor) * b->vertices);
    for (uint64_t k = 0; k < a->raw.count; k++)
        a->cursor[a->raw.source[k]]++;
    for (uint32_t r = 0; r < b->vertices; r++)
        sources += a->cursor[r] > 0;
    for (uint32_t r = 0; r < b->expanded; r++)
        targets += a->raw.start[r + 1] > a->raw.start[r];
    b->chunk[GS_BY_DEST] = (gs_chunk){.edges = a->raw.count, .targets = targets, .operands = sources};
    b->chunk[GS_BY_SOURCE] = (gs_chunk){.edges = a->raw.count, .targets = sources, .operands = targets};
}

static void zero_between(const void *section, uint64_t bytes, const void *next)
{
    unsigned char *end = (unsigned char *)(uintptr_t)section + bytes;
    memset(end, 0, (size_t)((const unsigned char *)next - end));
}

/* Padding is zero in a chunk, and the arena has held others. */
static void zero_padding(const gs_chunk_view *v, unsigned char *data, uint64_t length)
{
    const uint64_t ix = v->index_bytes;
    const void *end = data + length, *feature = v->feature != NULL ? v->feature : end;
    const void *weight = v->weight != NULL ? (const void *)v->weight : feature;
    zero_between(v->target, v->targets * ix, v->start);
    zero_between(v->start, (v->targets + 1ull) * sizeof(uint32_t), v->index);
    zero_between(v->index, v->edges * ix, v->operand);
    zero_between(v->operand, v->operands * ix, v->type != NULL ? v->type : weight);
    if (v->type != NULL)
        zero_between(v->type, v->edges * v->type_bytes, weight);
    if (v->weight != NULL)
        zero_between(v->weight, v->edges * sizeof(float), feature);
    if (v->feature != NULL)
        zero_between(v->feature, v->edges * v->feature_bytes, end);
}

/* Edges of the row that has the most. */
static uint64_t largest_of(const gs_chunk_view *v)
{
    uint32_t largest = 0;
    for (uint32_t t = 0; t < v->targets; t++)
        largest = v->start[t + 1] - v->start[t] > largest ? v->start[t + 1] - v->start[t] : largest;
    return largest;
}

void gs_sample__assemble(gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    const gs_batch_limits *l = &s->limits;
    const uint32_t width = gs_batch_index_bytes(l);
    sorting sort = {.b = b, .raw = &a->raw, .cursor = a->cursor, .in = &b->view[GS_BY_DEST],
                    .out = &b->view[GS_BY_SOURCE]};

    b->edges = a->raw.count;
    count_rows(b, a);
    if (b->edges == 0)
        return;
    for (int d = 0; d < 2; d++) {
        gs_chunk *c = &b->chunk[d];
        const gs_chunk_expect counts = {.index_bytes = width, .edges = c->edges, .targets = c->targets,
                                        .operands = c->operands};
        c->length = gs_chunk_bytes(c->edges, c->targets, c->operands, width, l->data);
        assert(c->length <= l->chunk_bytes[d]);
        b->bytes[d] = a->chunk[d];
        gs_chunk_layout(&b->view[d], a->chunk[d], &counts, l->data);
        zero_padding(&b->view[d], a->chunk[d], c->length);
    }
    if (a->raw.type != NULL && width == 2)
        sort_typed(&sort, 2, s->in->edge_types);
    else if (a->raw.type != NULL)
        sort_typed(&sort, 4, s->in->edge_types);
    else if (width == 2)
        sort_plain(&sort, 2);
    else
        sort_plain(&sort, 4);
    for (int d = 0; d < 2; d++)
        b->chunk[d].largest = b->view[d].largest = largest_of(&b->view[d]);
}

/* ---- edges that a batch does without ------------------------------------- */

/* Of a row, the edges that are left out are a list: head[row], then next[] of each. Edge k + edges is edge k the other
 * way round. */
typedef struct left_out {
    const gs_batch_seeds *seeds;
    uint32_t *head, *next; /* [targets], [2 * edges] */
} left_out;

static uint32_t end_of(const left_out *l, uint32_t k, int end)
{
    const uint32_t edges = l->seeds->edges;
    return k < edges ? l->seeds->end[end][k] : l->seeds->end[1 - end][k - edges];
}

static void list_left_out(const left_out *l, bool both_ways)
{
    memset(l->head, 0xff, l->seeds->vertices * sizeof(*l->head));
    for (uint32_t k = 0; k < (both_ways ? 2 : 1) * l->seeds->edges; k++) {
        uint32_t *const head = &l->head[end_of(l, k, 1)];
        l->next[k] = *head;
        *head = k;
    }
}

/* Is an edge from `source`, which some edge of the row's list comes from, among them with its type? */
static bool has_type(const left_out *l, uint32_t row, uint32_t source, uint32_t type)
{
    for (uint32_t k = l->head[row]; k != UINT32_MAX; k = l->next[k])
        if (end_of(l, k, 0) == source && l->seeds->type[k % l->seeds->edges] == type)
            return true;
    return false;
}

static void move_edge(const gs_raw_edges *raw, uint32_t to, uint32_t from)
{
    raw->source[to] = raw->source[from];
    if (raw->type != NULL)
        raw->type[to] = raw->type[from];
    if (raw->weight != NULL)
        raw->weight[to] = raw->weight[from];
    if (raw->feature != NULL)
        memmove(raw->feature + (uint64_t)to * raw->feature_bytes, raw->feature + (uint64_t)from * raw->feature_bytes,
                raw->feature_bytes);
}

void gs_sample__leave_out(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    const left_out l = {&a->seeds, a->left_out, a->left_out + a->seeds.vertices};
    const bool by_type = a->seeds.type != NULL && a->raw.type != NULL;
    gs_raw_edges *const raw = &a->raw;
    uint32_t *const mark = a->cursor; /* [targets] row + 1 of which an edge from there is left out */
    uint32_t to = 0;

    if (a->seeds.edges == 0)
        return;
    list_left_out(&l, s->options.seeds->both_ways);
    memset(mark, 0, b->targets * sizeof(*mark));
    for (uint32_t row = 0; row < b->targets; row++) {
        const uint32_t from = raw->start[row], end = raw->start[row + 1];
        raw->start[row] = to;
        for (uint32_t k = l.head[row]; k != UINT32_MAX; k = l.next[k])
            mark[end_of(&l, k, 0)] = row + 1;
        for (uint32_t e = from; e < end; e++) {
            const uint32_t source = raw->source[e];
            if (source < b->targets && mark[source] == row + 1 &&
                (!by_type || has_type(&l, row, source, raw->type[e])))
                continue;
            move_edge(raw, to++, e);
        }
    }
    raw->start[b->targets] = to;
    raw->count = to;
}

/* ---- subgraphs of the store's columns ------------------------------------ */

static void swap_edges(gs_raw_edges *raw, uint32_t a, uint32_t b)
{
    const uint32_t source = raw->source[a];
    raw->source[a] = raw->source[b];
    raw->source[b] = source;
    if (raw->type != NULL) {
        const uint16_t type = raw->type[a];
        raw->type[a] = raw->type[b];
        raw->type[b] = type;
    }
    if (raw->weight != NULL) {
        const float weight = raw->weight[a];
        raw->weight[a] = raw->weight[b];
        raw->weight[b] = weight;
    }
    for (uint32_t k = 0; raw->feature != NULL && k < raw->feature_bytes; k++) {
        const char byte = raw->feature[(uint64_t)a * raw->feature_bytes + k];
        raw->feature[(uint64_t)a * raw->feature_bytes + k] = raw->feature[(uint64_t)b * raw->feature_bytes + k];
        raw->feature[(uint64_t)b * raw->feature_bytes + k] = byte;
    }
}

/* In place. */
void gs_sample__order_by_row(gs_batch_arena *a, uint32_t rows)
{
    uint32_t *const start = a->raw.start, *const place = a->rows.place, *const next = a->cursor;

    memset(start, 0, sizeof(*start) * ((size_t)rows + 1));
    for (uint64_t k = 0; k < a->raw.count; k++)
        start[place[k] + 1]++;
    for (uint32_t row = 0; row < rows; row++) {
        start[row + 1] += start[row];
        next[row] = start[row];
    }
    for (uint64_t k = 0; k < a->raw.count; k++)
        place[k] = next[place[k]]++;
    for (uint32_t k = 0; k < a->raw.count; k++)
        while (place[k] != k) {
            const uint32_t to = place[k];
            swap_edges(&a->raw, k, to);
            place[k] = place[to];
            place[to] = to;
        }
}
