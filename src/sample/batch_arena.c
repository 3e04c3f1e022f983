/* batch_arena.c - one piece of memory for a batch and all that is used while it is drawn; what can a batch have at
 * most, and what does its memory hold? */
#include "base/alloc.h"
#include "base/size.h"
#include "sample/sample_internal.h"

#define ALIGN 64u

void *gs_sample__place_array(unsigned char *memory, uint64_t *bytes, uint64_t count, uint64_t size)
{
    void *at = memory != NULL ? memory + *bytes : NULL;
    *bytes = gs_align_up(*bytes + count * size, ALIGN);
    return at;
}

static uint64_t lay_out(gs_batch_arena *a, const gs_sampler *s, const gs_batch_limits *l, unsigned char *m)
{
    const uint64_t rows = l->vertices, edges = l->edges;
    const bool by_vertex = s->law->has_rows_by_vertex, streams = s->in->columns != NULL;
    const uint32_t places = s->law->places != NULL ? s->law->places(s) : 1, slots = gs_place_slots(places);
    uint64_t n = 0;

    a->chunk[0] = gs_sample__place_array(m, &n, l->chunk_bytes[0], 1);
    n = gs_align_up(n, GS_BLOCK_BYTES);
    a->chunk[1] = gs_sample__place_array(m, &n, l->chunk_bytes[1], 1);
    a->unique = (gs_unique){.bits = gs_unique_bits(l->vertices), .most = l->vertices};
    a->unique.slot = gs_sample__place_array(m, &n, by_vertex ? 1ull << a->unique.bits : 0, sizeof(uint64_t));
    a->unique.slot_of = gs_sample__place_array(m, &n, by_vertex ? rows : 0, sizeof(uint32_t));
    a->unique.vertex = gs_sample__place_array(m, &n, rows, sizeof(uint32_t));
    a->in_degree = gs_sample__place_array(m, &n, rows, sizeof(float));
    a->loops = s->in->loops != NULL || s->in->own != NULL ? gs_sample__place_array(m, &n, rows, sizeof(float)) : NULL;
    a->loss_weight = s->options.coverage > 0 ? gs_sample__place_array(m, &n, rows, sizeof(float)) : NULL;
    a->cursor = gs_sample__place_array(m, &n, rows + 1, sizeof(uint32_t));
    a->raw = (gs_raw_edges){.most = edges, .start = gs_sample__place_array(m, &n, rows + 1, sizeof(uint32_t)),
                            .source = gs_sample__place_array(m, &n, edges, sizeof(uint32_t))};
    if (l->data.type_bytes > 0) {
        a->raw.target = gs_sample__place_array(m, &n, edges, sizeof(uint32_t));
        a->raw.by_type = gs_sample__place_array(m, &n, edges, sizeof(uint32_t));
        a->raw.by_source = gs_sample__place_array(m, &n, edges, sizeof(uint32_t));
        a->raw.type = gs_sample__place_array(m, &n, edges, sizeof(uint16_t));
        a->raw.type_count = gs_sample__place_array(m, &n, s->in->edge_types + 1ull, sizeof(uint32_t));
    }
    a->raw.weight = l->data.weights ? gs_sample__place_array(m, &n, edges, sizeof(float)) : NULL;
    a->raw.feature_bytes = l->data.feature_bytes;
    if (l->data.feature_bytes > 0)
        a->raw.feature = gs_sample__place_array(m, &n, edges, l->data.feature_bytes);
    if (s->options.seeds != NULL) {
        const gs_seed_source *const from = s->options.seeds;
        a->seed_memory = gs_sample__place_array(m, &n, from->bytes, 1);
        a->left_out = gs_sample__place_array(m, &n, from->most_vertices + 2ull * from->most_edges, sizeof(uint32_t));
    }
    a->pending = gs_sample__place_array(m, &n, GS_SAMPLE_PENDING, sizeof(uint64_t));
    a->place = gs_sample__place_array(m, &n, places, sizeof(uint32_t));
    a->set = (gs_place_set){.slot = gs_sample__place_array(m, &n, slots, sizeof(uint32_t)), .slots = slots,
                            .key = gs_sample__place_array(m, &n, places, sizeof(double))};
    if (streams)
        a->rows = (gs_column_rows){
            .place = gs_sample__place_array(m, &n, edges, sizeof(uint32_t)),
            .order = gs_sample__place_array(m, &n, by_vertex ? rows : 0, sizeof(uint32_t)),
            .passed = gs_sample__place_array(m, &n, by_vertex ? rows : 0, sizeof(uint32_t))};
    if (s->law->lay_out != NULL)
        n = s->law->lay_out(a, s, l, m, n);
    return gs_align_up(n, GS_BLOCK_BYTES);
}

/* Bytes that an arena of such limits takes. */
static uint64_t arena_bytes_of(const gs_sampler *s, const gs_batch_limits *l)
{
    gs_batch_arena a;
    return gs_alloc_pages_bytes(lay_out(&a, s, l, NULL)) + sizeof(gs_batch_arena);
}

static gs_status make(gs_batch_arena **out, const gs_sampler *s, const gs_batch_limits *l)
{
    gs_batch_arena *a = gs_calloc(1, sizeof(*a));
    const uint64_t bytes = arena_bytes_of(s, l) - sizeof(*a);
    char text[16];

    if (a != NULL && (a->memory = gs_alloc_pages(bytes)) == NULL) {
        gs_free(a);
        a = NULL;
    }
    GS_NEED(a != NULL, "no memory for a batch of %s", gs_size_format(text, sizeof(text), bytes));
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
    return arena_bytes_of(s, &l);
}

void gs_batch_arena_free(gs_batch_arena *a)
{
    if (a == NULL)
        return;
    gs_free_pages(a->memory, a->bytes);
    gs_free(a);
}

/* ---- limits -------------------------------------------------------------- */

#define MOST_ROWS (1u << 31) /* of a table with 32 bit places */

static uint64_t set_limits(gs_batch_limits *l, const gs_sampler *s, uint64_t rows, uint64_t edges)
{
    l->vertices = (uint32_t)GS_MIN(GS_MAX(rows, 1), MOST_ROWS);
    l->edges = GS_MIN(GS_MAX(edges, 1), UINT32_MAX);
    const uint32_t ends = (uint32_t)GS_MIN(l->vertices, l->edges);
    for (int d = 0; d < 2; d++)
        l->chunk_bytes[d] = gs_chunk_bytes(l->edges, ends, ends, gs_batch_index_bytes(l), l->data);
    return l->arena_bytes = arena_bytes_of(s, l);
}

void gs_sample__bounds(gs_batch_limits *l, const gs_sampler *s)
{
    const gs_sampler_options *o = &s->options;
    uint64_t rows = 0, edges = 0, low = 0, high = 1u << 16;

    s->law->bound(&rows, &edges, s);
    if (o->most_vertices != 0)
        rows = GS_MIN(rows, o->most_vertices);
    if (o->most_edges != 0)
        edges = GS_MIN(edges, o->most_edges);
    edges = GS_MIN(edges, UINT32_MAX); /* of a chunk */
    l->data = s->in->data;
    l->data.weights = l->data.weights || o->coverage > 0;
    if (set_limits(l, s, rows, edges) <= o->arena_bytes || o->arena_bytes == 0)
        return;
    /* The greatest 65536th of both that the arena holds; of edges alone where a subgraph has about as many rows as it
     * can have, and far fewer edges. */
    const bool whole = s->law->subgraph && set_limits(l, s, rows, 1) <= o->arena_bytes;
    while (high - low > 1) {
        const uint64_t middle = (low + high) / 2;
        const bool fits = set_limits(l, s, whole ? rows : rows * middle >> 16, edges * middle >> 16) <= o->arena_bytes;
        *(fits ? &low : &high) = middle;
    }
    set_limits(l, s, whole ? rows : rows * low >> 16, edges * low >> 16);
}

gs_status gs_sample__check_stop(const gs_sampler *s)
{
    return gs_sample__is_stopped(s) ? gs_fail(GS_EINTERRUPTED, "interrupted while batches were drawn") : GS_OK;
}

gs_status gs_sample__overflow(const gs_batch *b, const gs_sampler *s)
{
    if (gs_sample__is_stopped(s))
        return gs_sample__check_stop(s);
    return gs_fail(GS_EBUDGET, "batch %u of epoch %u has more than %u vertices or %llu edges, which is what there is "
                   "room for: give smaller batches or a smaller fanout", b->number, b->epoch,
                   s->limits.vertices, (unsigned long long)s->limits.edges);
}
