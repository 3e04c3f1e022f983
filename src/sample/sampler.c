/* sampler.c - opens a sampler, lays out what a batch needs in one piece of memory, and hands each batch to the law that
 * draws it. */
#include "sample/sampler.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "sample/sample_internal.h"

#define TRIED_TOGETHER 8u /* batches, of lists that stay in the store */

#define LAW(KIND, law) [GS_SAMPLER_##KIND] = &gs_sample__##law,
static const gs_sample_law *const laws[] = {GS_SAMPLER_MAP(LAW)};
#undef LAW

const gs_sampler_facts *gs_sampler_facts_of(gs_sampler_kind kind) { return &laws[kind]->facts; }

uint32_t gs_sampler_passes(const gs_sampler_options *o, bool out) { return laws[o->kind]->passes(o, out); }

/* ---- one piece of memory for a batch and all that is used while it is drawn -- */

/* How many bytes there are behind `memory` then. */
static uint64_t lay_out(gs_batch_arena *a, const gs_sampler *s, const gs_batch_limits *l, unsigned char *memory)
{
    gs_placing placing = {.memory = memory, .align = 64}, *const p = &placing;
    const uint64_t rows = l->vertices, edges = l->edges;
    const bool by_vertex = s->law->has_rows_by_vertex, streams = s->in->columns != NULL;
    const uint32_t places = s->law->places != NULL ? s->law->places(s) : 1, slots = gs_place_slots(places);

    a->chunk[0] = gs_place_array(p, l->chunk_bytes[0], 1);
    p->bytes = gs_align_up(p->bytes, GS_BLOCK_BYTES);
    a->chunk[1] = gs_place_array(p, l->chunk_bytes[1], 1);
    a->unique = (gs_unique){.bits = gs_unique_bits(l->vertices), .most = l->vertices};
    a->unique.slot = gs_place_array(p, by_vertex ? 1ull << a->unique.bits : 0, sizeof(uint64_t));
    a->unique.slot_of = gs_place_array(p, by_vertex ? rows : 0, sizeof(uint32_t));
    a->unique.vertex = gs_place_array(p, rows, sizeof(uint32_t));
    a->in_degree = gs_place_array(p, rows, sizeof(float));
    a->loops = s->in->loops != NULL || s->in->own != NULL ? gs_place_array(p, rows, sizeof(float)) : NULL;
    a->loss_weight = s->options.coverage > 0 ? gs_place_array(p, rows, sizeof(float)) : NULL;
    a->cursor = gs_place_array(p, rows + 1, sizeof(uint32_t));
    a->raw = (gs_raw_edges){.most = edges, .start = gs_place_array(p, rows + 1, sizeof(uint32_t)),
                            .source = gs_place_array(p, edges, sizeof(uint32_t))};
    if (l->data.type_bytes > 0) {
        a->raw.target = gs_place_array(p, edges, sizeof(uint32_t));
        a->raw.by_type = gs_place_array(p, edges, sizeof(uint32_t));
        a->raw.by_source = gs_place_array(p, edges, sizeof(uint32_t));
        a->raw.type = gs_place_array(p, edges, sizeof(uint16_t));
        a->raw.type_count = gs_place_array(p, s->in->edge_types + 1ull, sizeof(uint32_t));
    }
    a->raw.weight = l->data.weights ? gs_place_array(p, edges, sizeof(float)) : NULL;
    a->raw.feature_bytes = l->data.feature_bytes;
    if (l->data.feature_bytes > 0)
        a->raw.feature = gs_place_array(p, edges, l->data.feature_bytes);
    if (s->options.seeds != NULL) {
        const gs_seed_source *const from = s->options.seeds;
        a->seed_memory = gs_place_array(p, from->bytes, 1);
        a->left_out = gs_place_array(p, from->most_vertices + 2ull * from->most_edges, sizeof(uint32_t));
    }
    a->pending = gs_place_array(p, GS_SAMPLE_PENDING, sizeof(uint64_t));
    a->place = gs_place_array(p, places, sizeof(uint32_t));
    a->set = (gs_place_set){.slot = gs_place_array(p, slots, sizeof(uint32_t)), .slots = slots,
                            .key = gs_place_array(p, places, sizeof(double))};
    if (streams)
        a->rows = (gs_column_rows){
            .place = gs_place_array(p, edges, sizeof(uint32_t)),
            .order = gs_place_array(p, by_vertex ? rows : 0, sizeof(uint32_t)),
            .passed = gs_place_array(p, by_vertex ? rows : 0, sizeof(uint32_t))};
    if (s->law->lay_out != NULL)
        s->law->lay_out(a, s, l, p);
    return gs_align_up(p->bytes, GS_BLOCK_BYTES);
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

/* What a batch can have at most. */
static void find_limits(gs_batch_limits *l, const gs_sampler *s)
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

/* ---- opening ------------------------------------------------------------- */

static gs_status check_options(const gs_sampler_options *o, const gs_adjacency *in, uint32_t targets)
{
    if (o->batch_size == 0)
        return gs_fail(GS_EINVAL, "batches of 0: give a batch size of 1 or more");
    return laws[o->kind]->check(o, in, targets);
}

static gs_status copy_targets(gs_sampler *s, const uint32_t *target, uint32_t targets)
{
    const uint64_t words = gs_div_up(s->in->vertices, 64);
    const bool bits = s->law->subgraph;

    s->targets = targets;
    s->target = gs_malloc_array(GS_MAX(targets, 1), sizeof(*s->target));
    if (bits)
        s->is_target = gs_calloc(words, sizeof(*s->is_target));
    if (s->target == NULL || (bits && s->is_target == NULL))
        return gs_fail(GS_ENOMEM, "no memory for the list of vertices that are trained");
    for (uint32_t i = 0; i < targets; i++) {
        assert(target[i] < s->in->vertices && (i == 0 || target[i] > target[i - 1]));
        s->target[i] = target[i];
        if (bits)
            s->is_target[target[i] / 64] |= 1ull << (target[i] % 64);
    }
    return GS_OK;
}

static void count_batches(gs_sampler *s)
{
    const gs_sampler_options *o = &s->options;

    s->things = s->law->orders_targets ? s->targets : s->in->parts;
    if (o->seeds != NULL)
        s->batches = o->seeds->batches;
    else if (s->law->draws == NULL)
        s->batches = (uint32_t)gs_div_up(s->things, o->batch_size);
    else
        s->batches = o->batches != 0 ? o->batches : (uint32_t)gs_div_up(s->in->vertices, s->law->draws(o));
}

static gs_status check_limits(const gs_sampler *s)
{
    const gs_sampler_options *o = &s->options;
    char have[16], need[16];

    if (o->arena_bytes != 0 && s->limits.arena_bytes > o->arena_bytes)
        return gs_fail(GS_EBUDGET, "a batch takes %s at least, and %s are left: give smaller batches or more memory",
                       gs_size_format(need, sizeof(need), s->limits.arena_bytes),
                       gs_size_format(have, sizeof(have), o->arena_bytes));
    if (s->law->orders_targets && s->limits.vertices < gs_sampler_most_targets(s))
        return gs_fail(GS_EBUDGET, "batches of %u vertices, and memory or a limit that holds %u: give smaller batches",
                       gs_sampler_most_targets(s), s->limits.vertices);
    return GS_OK;
}

gs_status gs_sampler_open(gs_sampler **sampler, const gs_adjacency *in, const gs_adjacency *out,
                          const uint32_t *target, uint32_t targets, const gs_sampler_options *options)
{
    GS_ENDS(gs_sampler_close_at) gs_sampler *s = NULL;

    GS_TRY(check_options(options, in, targets));
    assert(out == NULL || laws[options->kind]->facts.needs_out_places ||
           (out->columns != NULL) == (in->columns != NULL));
    GS_NEED((s = gs_calloc(1, sizeof(*s))) != NULL, "no memory for a sampler");
    *s = (gs_sampler){.law = laws[options->kind], .in = in, .out = out, .options = *options};
    if (s->law->subgraph)
        s->options.hops = 0;
    gs_random_key(s->key, options->seed, GS_RANDOM_SAMPLE);
    GS_TRY(copy_targets(s, target, targets));
    count_batches(s);
    if (s->law->open != NULL)
        GS_TRY(s->law->open(s));
    find_limits(&s->limits, s);
    GS_TRY(check_limits(s));
    if ((s->law->facts.reads & GS_SAMPLER_READS_COVERAGE) != 0 && options->coverage > 0)
        GS_TRY(gs_saint__cover(s));
    *sampler = GS_HANDED_OVER(s);
    return GS_OK;
}

void gs_sampler_close(gs_sampler *s)
{
    if (s == NULL)
        return;
    gs_free(s->target);
    gs_free(s->is_target);
    for (int d = 0; d < 2; d++)
        gs_free(s->listed[d].before);
    gs_free(s->drawn.first);
    gs_free(s->drawn.number);
    gs_free(s->edge_factor);
    gs_free(s->loss_factor);
    gs_free(s);
}

void gs_sampler_order(gs_sampler *s, bool ordered) { s->options.ordered = ordered; }
uint32_t gs_sampler_batches(const gs_sampler *s) { return s->batches; }
const gs_batch_limits *gs_sampler_limits(const gs_sampler *s) { return &s->limits; }

uint32_t gs_sampler_most_targets(const gs_sampler *s)
{
    const gs_seed_source *const seeds = s->options.seeds;
    return seeds != NULL ? seeds->most_vertices : GS_MIN(s->options.batch_size, s->targets);
}

uint32_t gs_sampler_targets(const gs_sampler *s, uint32_t number)
{
    return GS_MIN(s->options.batch_size, s->targets - number * s->options.batch_size);
}

void gs_sampler_seeds(gs_batch *out, const gs_sampler *s, uint32_t *vertex, uint32_t epoch, uint32_t number)
{
    const gs_order order = gs_order_of(s->options.seed, epoch, s->targets);
    const uint32_t from = number * s->options.batch_size, targets = gs_sampler_targets(s, number);

    for (uint32_t i = 0; i < targets; i++)
        vertex[i] = s->target[s->options.ordered ? from + i : gs_order_at(&order, from + i)];
    *out = (gs_batch){.epoch = epoch, .number = number, .vertices = targets, .targets = targets,
                      .hops = s->options.hops, .hop_end = {targets}, .seeds_alone = true, .vertex = vertex};
}

bool gs_sampler_draws_plainly(gs_plain_draws *out, const gs_sampler *s)
{
    const gs_sampler_options *const o = &s->options;
    const gs_adjacency *const in = s->in;

    *out = (gs_plain_draws){.in = in, .weighted = o->weighted, .by_type = o->by_type && in->type != NULL,
                            .hops = o->hops, .key = {s->key[0], s->key[1]}};
    memcpy(out->fanout, o->fanout, sizeof(out->fanout));
    return o->kind == GS_SAMPLER_NEIGHBOR && o->seeds == NULL && !o->replace && o->types == 0 && in->columns == NULL &&
           in->first32 != NULL && in->feature == NULL;
}

gs_status gs_sampler_draw(gs_batch *out, const gs_sampler *s, gs_batch_arena *a, uint32_t epoch, uint32_t number)
{
    return gs_sampler_draw_part(out, s, a, epoch, number, 0, UINT32_MAX);
}

uint64_t gs_sampler_bytes(const gs_sampler *s)
{
    const uint64_t vertices = s->in->vertices;
    uint64_t bytes = sizeof(*s) + s->targets * sizeof(*s->target);

    if (s->is_target != NULL)
        bytes += gs_div_up(vertices, 64) * sizeof(*s->is_target);
    for (int d = 0; d < 2; d++)
        if (s->listed[d].before != NULL)
            bytes += (s->listed[d].blocks + 1ull) * sizeof(*s->listed[d].before);
    if (s->loss_factor != NULL)
        bytes += vertices * sizeof(*s->loss_factor);
    if (s->edge_factor != NULL)
        bytes += s->in->edges * sizeof(*s->edge_factor);
    if (s->drawn.first != NULL)
        bytes += (vertices + 1) * sizeof(*s->drawn.first) + s->drawn.first[vertices] * sizeof(*s->drawn.number);
    return bytes;
}

/* ---- drawing ------------------------------------------------------------- */

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

static void clear(const gs_sampler *s, gs_batch_arena *a)
{
    if (s->law->has_rows_by_vertex)
        gs_unique_clear(&a->unique);
    a->raw.count = 0;
    a->pendings = 0;
}

/* Makes a batch of the edges that were drawn. */
static void finish(gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    b->vertex = a->unique.vertex;
    b->in_degree = a->in_degree;
    b->loops = a->loops;
    b->loss_weight = a->loss_weight;
    gs_sample__assemble(b, s, a);
}

/* Batches whose epochs and numbers are set: one, of lists in memory. */
static gs_status draw_pass(gs_batch *out, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t batches,
                           uint32_t first, uint32_t count, uint32_t threads)
{
    const gs_sample_pass w = {s, s->in->columns, out, arena, batches, threads};

    for (uint32_t k = 0; k < batches; k++)
        clear(s, arena[k]);
    gs_status st = s->law->draw(&w, first, count);
    if (st != GS_OK || (st = gs_sample__check_stop(s)) != GS_OK)
        return st;
    for (uint32_t k = batches; k-- > 0;)
        if (out[k].overflows)
            st = gs_sample__overflow(&out[k], s);
#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(threads, 1u)) if (threads > 1)
    for (uint32_t k = 0; k < batches; k++)
        if (out[k].overflows)
            out[k] = (gs_batch){.epoch = out[k].epoch, .number = out[k].number, .overflows = true};
        else
            finish(&out[k], s, arena[k]);
    return st;
}

/* Of batches whose epochs and numbers are set: their seeds, where a source says them. */
static gs_status take_seeds(const gs_batch *batch, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t batches)
{
    const gs_seed_source *const from = s->options.seeds;

    for (uint32_t k = 0; k < batches && from != NULL; k++)
        GS_TRY(from->fill(from->context, &arena[k]->seeds, arena[k]->seed_memory, batch[k].epoch, batch[k].number));
    return GS_OK;
}

gs_status gs_sampler_draw_part(gs_batch *out, const gs_sampler *s, gs_batch_arena *a, uint32_t epoch, uint32_t number,
                               uint32_t first, uint32_t count)
{
    assert(number < s->batches);
    *out = (gs_batch){.epoch = epoch, .number = number};
    const gs_status st = take_seeds(out, s, &a, 1);
    return st == GS_OK ? draw_pass(out, s, &a, 1, first, count, 1) : st;
}

/* Batches without room are expected; what else there is to say goes first. */
static bool is_graver(gs_status a, gs_status b) { return a != GS_OK && a != GS_EBUDGET && b == GS_EBUDGET; }

gs_status gs_sampler_draw_group(gs_batch *out, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t count,
                                uint32_t epoch, uint32_t first, uint32_t threads, const bool *wanted)
{
    char line[GS_ERROR_BYTES] = "";
    gs_status worst = GS_OK;
    uint32_t of = UINT32_MAX;

    for (uint32_t k = 0; k < count; k++)
        out[k] = (gs_batch){.epoch = epoch, .number = first + k};
    GS_TRY(take_seeds(out, s, arena, count));
    if (s->in->columns != NULL)
        return draw_pass(out, s, arena, count, 0, UINT32_MAX, threads);
    threads = GS_MAX(GS_MIN(threads, count), 1u); /* those without a batch would only be in others' way */
#pragma omp parallel for schedule(dynamic) num_threads((int)threads) if (threads > 1)
    for (uint32_t k = 0; k < count; k++) {
        const bool left = wanted != NULL && !wanted[k] && s->law->facts.has_parts && s->options.seeds == NULL;
        const gs_status st = left ? GS_OK : draw_pass(&out[k], s, &arena[k], 1, 0, UINT32_MAX, 1);
        if (left)
            out[k].targets = gs_sampler_targets(s, first + k);
        if (st == GS_OK)
            continue;
#pragma omp critical(gs_sampler_error)
        if (is_graver(st, worst) || (k < of && !is_graver(worst, st))) { /* the line is the thread's that failed */
            worst = st;
            of = k;
            memcpy(line, gs_last_error(), strnlen(gs_last_error(), sizeof(line) - 1) + 1);
        }
    }
    return worst == GS_OK ? GS_OK : gs_fail(worst, "%s", line);
}

/* The most vertices and edges of `trials` batches of epoch 0, from its first to its last, `together` at a time. */
static gs_status try_batches(const gs_sampler *s, uint32_t trials, uint32_t together, uint64_t *vertices,
                             uint64_t *edges)
{
    gs_batch_arena *arena[TRIED_TOGETHER] = {0};
    gs_batch b[TRIED_TOGETHER];
    const uint64_t last = s->batches - 1u;
    gs_status st = GS_OK;

    for (uint32_t k = 0; k < together && st == GS_OK; k++)
        st = gs_batch_arena_make(&arena[k], s);
    for (uint32_t first = 0; first < trials && st == GS_OK; first += together) {
        const uint32_t n = GS_MIN(together, trials - first);
        for (uint32_t k = 0; k < n; k++)
            b[k] = (gs_batch){.number = (uint32_t)(trials > 1 ? last * (first + k) / (trials - 1) : 0)};
        if ((st = take_seeds(b, s, arena, n)) == GS_OK)
            st = draw_pass(b, s, arena, n, 0, UINT32_MAX, 1);
        for (uint32_t k = 0; k < n && st == GS_OK; k++) {
            *vertices = GS_MAX(*vertices, b[k].vertices);
            *edges = GS_MAX(*edges, b[k].edges);
        }
    }
    for (uint32_t k = 0; k < together; k++)
        gs_batch_arena_free(arena[k]);
    return st;
}

/* Lists that stay in the store go by once for all batches that are tried together: as many as memory holds. */
static gs_status try_streamed(gs_sampler_options trial, const gs_adjacency *in, const gs_adjacency *out,
                              const uint32_t *target, uint32_t targets, uint32_t trials, uint64_t *vertices,
                              uint64_t *edges)
{
    const uint64_t memory = trial.arena_bytes;
    gs_status st = GS_EBUDGET;

    for (uint32_t together = TRIED_TOGETHER; together > 0 && st == GS_EBUDGET; together /= 2) {
        gs_sampler *s = NULL;
        trial.arena_bytes = memory / together;
        if ((st = gs_sampler_open(&s, in, out, target, targets, &trial)) == GS_OK)
            st = try_batches(s, trials, together, vertices, edges);
        gs_sampler_close(s);
    }
    return st;
}

gs_status gs_sampler_fit(gs_sampler_options *options, const gs_adjacency *in, const gs_adjacency *out,
                         const uint32_t *target, uint32_t targets, uint32_t trials)
{
    gs_sampler_options trial = *options;
    uint64_t vertices = 0, edges = 0;
    gs_sampler *s = NULL;
    gs_status st;

    trial.coverage = 0;
    if (in->columns != NULL)
        trial.arena_bytes = 0;
    st = gs_sampler_open(&s, in, out, target, targets, &trial);
    trial.arena_bytes = options->arena_bytes;
    if (st == GS_OK && in->columns != NULL)
        st = try_streamed(trial, in, out, target, targets, trials, &vertices, &edges);
    else if (st == GS_OK)
        st = try_batches(s, trials, 1, &vertices, &edges);
    if (st == GS_OK) {
        options->most_vertices = (uint32_t)GS_MIN(s->limits.vertices, vertices + gs_div_up(vertices, 4));
        options->most_edges = GS_MIN(s->limits.edges, edges + gs_div_up(edges, 4));
    }
    gs_sampler_close(s);
    return st;
}
