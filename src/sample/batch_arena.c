/* batch_arena.c - one piece of memory for a batch and all that is used while it is drawn. */
#include "base/alloc.h"
#include "base/size.h"
#include "sample/sample_internal.h"

#define ALIGN 64u

uint32_t gs_sample__most_places(const gs_sampler *s)
{
    const gs_sampler_options *const o = &s->options;
    uint32_t most = 1;

    for (uint32_t h = 0; h < o->hops; h++)
        most = GS_MAX(most, o->replace ? o->fanout[h] : (uint32_t)GS_MIN(o->fanout[h], s->longest));
    return o->kind == GS_SAMPLER_CLUSTER ? o->batch_size : most;
}

/* Gives the next array its place; `memory` NULL: only counts. */
static void *place_array(unsigned char *memory, uint64_t *bytes, uint64_t count, uint64_t size)
{
    void *at = memory != NULL ? memory + *bytes : NULL;
    *bytes = gs_align_up(*bytes + count * size, ALIGN);
    return at;
}

static gs_list_query query_of(uint64_t most, unsigned char *m, uint64_t *n)
{
    return (gs_list_query){.near = place_array(m, n, most, sizeof(uint32_t)),
                           .place = place_array(m, n, most, sizeof(uint64_t)),
                           .far = place_array(m, n, most, sizeof(uint32_t)),
                           .order = place_array(m, n, most, sizeof(uint32_t)),
                           .spare = place_array(m, n, most, sizeof(uint32_t)),
                           .passed = place_array(m, n, most, sizeof(uint64_t))};
}

/* What lists that stay in the store take more, from byte n on. */
static uint64_t lay_out_streamed(gs_batch_arena *a, const gs_sampler *s, const gs_batch_limits *l, unsigned char *m,
                                 uint64_t n)
{
    const gs_sampler_options *const o = &s->options;
    const bool sorted = o->kind != GS_SAMPLER_CLUSTER, edge = o->kind == GS_SAMPLER_SAINT_EDGE,
               walk = o->kind == GS_SAMPLER_SAINT_WALK;
    const uint64_t rows = sorted ? l->vertices : 0;

    a->rows = (gs_column_rows){.place = place_array(m, &n, l->edges, sizeof(uint32_t)),
                               .order = place_array(m, &n, rows, sizeof(uint32_t)),
                               .passed = place_array(m, &n, rows, sizeof(uint32_t))};
    if (o->kind == GS_SAMPLER_NEIGHBOR && o->by_type)
        a->rows.types = place_array(m, &n, rows * s->in->edge_types, sizeof(uint32_t));
    for (int d = 0; d < 2; d++)
        a->query[d] = query_of(edge ? (d == 0 || s->out != NULL) * o->batch_size
                                    : (walk && d == 0) * o->batch_size, m, &n);
    a->stream = place_array(m, &n, walk ? o->batch_size : 0, sizeof(*a->stream));
    if (sorted && o->kind != GS_SAMPLER_NEIGHBOR)
        a->interval_slot = place_array(m, &n, s->in->parts, sizeof(uint32_t));
    return n;
}

static uint64_t lay_out(gs_batch_arena *a, const gs_sampler *s, const gs_batch_limits *l, unsigned char *m)
{
    const uint64_t rows = l->vertices, edges = l->edges;
    const bool types = l->type_bytes > 0, cluster = s->options.kind == GS_SAMPLER_CLUSTER;
    const uint32_t places = gs_sample__most_places(s), slots = gs_place_slots(places);
    uint64_t n = 0;

    a->chunk[0] = place_array(m, &n, l->chunk_bytes[0], 1);
    n = gs_align_up(n, GS_BLOCK_BYTES);
    a->chunk[1] = place_array(m, &n, l->chunk_bytes[1], 1);
    a->unique = (gs_unique){.bits = gs_unique_bits(l->vertices), .most = l->vertices};
    a->unique.slot = place_array(m, &n, cluster ? 0 : 1ull << a->unique.bits, sizeof(uint64_t));
    a->unique.slot_of = place_array(m, &n, cluster ? 0 : rows, sizeof(uint32_t));
    a->unique.vertex = place_array(m, &n, rows, sizeof(uint32_t));
    a->in_degree = place_array(m, &n, rows, sizeof(float));
    a->loops = s->in->loops != NULL || s->in->own != NULL ? place_array(m, &n, rows, sizeof(float)) : NULL;
    a->loss_weight = s->options.coverage > 0 ? place_array(m, &n, rows, sizeof(float)) : NULL;
    a->cursor = place_array(m, &n, rows + 1, sizeof(uint32_t));
    a->raw = (gs_raw_edges){.most = edges, .start = place_array(m, &n, rows + 1, sizeof(uint32_t)),
                            .source = place_array(m, &n, edges, sizeof(uint32_t))};
    if (types) {
        a->raw.target = place_array(m, &n, edges, sizeof(uint32_t));
        a->raw.by_type = place_array(m, &n, edges, sizeof(uint32_t));
        a->raw.by_source = place_array(m, &n, edges, sizeof(uint32_t));
        a->raw.type = place_array(m, &n, edges, sizeof(uint16_t));
        a->raw.type_count = place_array(m, &n, s->in->edge_types + 1ull, sizeof(uint32_t));
    }
    a->raw.weight = l->weights ? place_array(m, &n, edges, sizeof(float)) : NULL;
    a->pending = place_array(m, &n, GS_SAMPLE_PENDING, sizeof(uint64_t));
    a->place = place_array(m, &n, places, sizeof(uint32_t));
    a->set = (gs_place_set){.slot = place_array(m, &n, slots, sizeof(uint32_t)), .slots = slots,
                            .key = place_array(m, &n, places, sizeof(double))};
    a->row_of = place_array(m, &n, cluster ? (uint64_t)s->options.batch_size * s->in->interval_rows : 0,
                            sizeof(uint32_t));
    a->interval_slot = place_array(m, &n, cluster ? s->in->parts : 0, sizeof(uint32_t));
    if (s->in->columns != NULL)
        n = lay_out_streamed(a, s, l, m, n);
    return gs_align_up(n, GS_BLOCK_BYTES);
}

uint64_t gs_sample__arena_bytes(const gs_sampler *s, const gs_batch_limits *l)
{
    gs_batch_arena a;
    return gs_alloc_pages_bytes(lay_out(&a, s, l, NULL)) + sizeof(gs_batch_arena);
}

static gs_status make(gs_batch_arena **out, const gs_sampler *s, const gs_batch_limits *l)
{
    gs_batch_arena *a = gs_calloc(1, sizeof(*a));
    const uint64_t bytes = gs_sample__arena_bytes(s, l) - sizeof(*a);
    char text[16];

    if (a != NULL && (a->memory = gs_alloc_pages(bytes)) == NULL) {
        gs_free(a);
        a = NULL;
    }
    if (a == NULL)
        return gs_fail(GS_ENOMEM, "no memory for a batch of %s", gs_size_format(text, sizeof(text), bytes));
    lay_out(a, s, l, a->memory);
    a->bytes = bytes;
    *out = a;
    return GS_OK;
}

gs_status gs_batch_arena_make(gs_batch_arena **out, const gs_sampler *s) { return make(out, s, &s->limits); }

static gs_batch_limits vertices_alone(const gs_sampler *s)
{
    return (gs_batch_limits){.vertices = s->limits.vertices, .edges = 1};
}

gs_status gs_sample__vertex_arena_make(gs_batch_arena **out, const gs_sampler *s)
{
    const gs_batch_limits l = vertices_alone(s);
    return make(out, s, &l);
}

uint64_t gs_sample__vertex_arena_bytes(const gs_sampler *s)
{
    const gs_batch_limits l = vertices_alone(s);
    return gs_sample__arena_bytes(s, &l);
}

void gs_batch_arena_free(gs_batch_arena *a)
{
    if (a == NULL)
        return;
    gs_free_pages(a->memory, a->bytes);
    gs_free(a);
}
