#include "pairs/pair_batch.h"

#include <string.h>

#include "base/size.h"

#define BUCKET_SALT 0x9E3779B97F4A7C15ull /* a bucket's order is another one than its neighbour's */
#define ORDER_SALT 0x2545F4914F6CDD1Dull  /* and that of buckets another one than theirs */

/* ---- opening --------------------------------------------------------------- */

static uint64_t pairs_of(const gs_pair_batches *b, uint32_t bucket)
{
    return b->source.first[bucket + 1] - b->source.first[bucket];
}

static gs_status check_pairs(const gs_pair_batches *b, const gs_store *store)
{
    const gs_store_info *const info = gs_store_get_info(store);
    const char *const dir = gs_store_dir(store);

    if (b->source.pairs == 0)
        return gs_fail(GS_ENOTFOUND, "%s: has no pairs to train on; its input needs edges, or a train_edges.npy", dir);
    const bool draws = b->options.asks[GS_PAIR_HEAD] || b->options.asks[GS_PAIR_TAIL];
    if (draws && b->options.by == GS_NEGATIVES_UNIFORM && info->interval_rows < 2)
        return gs_fail(GS_EINVAL, "%s: intervals of one vertex have no other one that a pair could be compared with; "
                       "partition with fewer .parts", dir);
    if (b->source.largest > UINT32_MAX)
        return gs_fail(GS_EUNSUPPORTED, "%s: a bucket has more than 4294967295 pairs; partition with more .parts", dir);
    return GS_OK;
}

/* Lists the buckets that have pairs, and counts batches. */
static gs_status list_buckets(gs_pair_batches *b)
{
    const uint64_t parts = gs_store_get_info(b->source.store)->parts;
    uint64_t batches = 0;

    for (uint32_t k = 0; k < parts * parts; k++)
        b->filled += pairs_of(b, k) > 0;
    GS_NEED((b->bucket = gs_malloc_array(b->filled, sizeof(*b->bucket))) != NULL, "no memory for a list of buckets");
    b->filled = 0;
    for (uint32_t k = 0; k < parts * parts; k++) {
        if (pairs_of(b, k) == 0)
            continue;
        b->bucket[b->filled++] = k;
        batches += gs_div_up(pairs_of(b, k), b->options.batch_size);
    }
    b->batches = (uint32_t)GS_MIN(batches, UINT32_MAX);
    return batches <= UINT32_MAX ? GS_OK : gs_fail(GS_EINVAL, ".batch_size %u: makes too many batches of an epoch",
                                                   b->options.batch_size);
}

static gs_status take_memory(gs_pair_batches *b)
{
    gs_unique_take(&b->unique, &b->arrays, b->most_rows);
    b->all = gs_arena_take(&b->arrays, b->source.largest, sizeof(*b->all));
    b->pair = gs_arena_take(&b->arrays, b->most_pairs, sizeof(*b->pair));
    b->row = gs_arena_take(&b->arrays, b->most_slots, sizeof(*b->row));
    if (b->options.labels) {
        b->all_labels = gs_arena_take(&b->arrays, b->source.largest, sizeof(*b->all_labels));
        b->label = gs_arena_take(&b->arrays, b->most_pairs, sizeof(*b->label));
    }
    return b->arrays.is_short ? gs_fail(GS_ENOMEM, "no memory for batches of pairs") : GS_OK;
}

gs_status gs_pair_batches_open(gs_pair_batches *b, const gs_store *store, const gs_pair_batch_options *options)
{
    const uint32_t ends = options->asks[GS_PAIR_HEAD] + options->asks[GS_PAIR_TAIL];

    *b = (gs_pair_batches){.options = *options, .held_bucket = UINT32_MAX};
    gs_random_key(b->key, options->seed, GS_RANDOM_PAIRS);
    GS_TRY(gs_pair_source_open(&b->source, store, options->split));
    GS_TRY(check_pairs(b, store));
    GS_TRY(list_buckets(b));
    const uint64_t pairs = GS_MIN(options->batch_size, b->source.largest),
                   wrong = gs_div_up(pairs, options->negatives) * options->negatives,
                   slots = 2 * pairs + ends * wrong;
    if (slots > INT32_MAX)
        return gs_fail(GS_EINVAL, ".negatives %u: makes batches of more than 2147483647 places; use fewer, or a "
                       "smaller .batch_size", options->negatives);
    b->most_pairs = (uint32_t)pairs;
    b->most_slots = (uint32_t)slots;
    b->most_rows = (uint32_t)GS_MIN(slots, 2ull * gs_store_get_info(store)->interval_rows);
    return take_memory(b);
}

void gs_pair_batches_close(gs_pair_batches *b)
{
    gs_pair_source_close(&b->source);
    gs_free(b->bucket);
    gs_arena_free(&b->arrays);
    *b = (gs_pair_batches){0};
}

uint64_t gs_pair_batches_bytes(const gs_pair_batches *b)
{
    return gs_pair_source_bytes(&b->source) + b->filled * sizeof(*b->bucket) + b->source.largest * sizeof(*b->all) +
           b->most_pairs * sizeof(*b->pair) + b->most_slots * sizeof(*b->row) +
           (b->options.labels ? b->source.largest + b->most_pairs : 0) * sizeof(*b->label) +
           ((uint64_t)sizeof(uint64_t) << b->unique.bits) + 2ull * b->most_rows * sizeof(uint32_t);
}

/* ---- an epoch's order ------------------------------------------------------- */

static uint32_t next_bucket(const gs_pair_batches *b) { return b->bucket[gs_order_at(&b->order, b->at)]; }

gs_status gs_pair_batches_seek(gs_pair_batches *b, uint32_t epoch, uint32_t number)
{
    const uint32_t held = epoch == b->epoch ? b->held_bucket : UINT32_MAX; /* in that epoch's order */
    uint64_t left = number;

    if (b->sought && epoch == b->epoch && number == b->number)
        return GS_OK;
    b->order = gs_order_of(b->options.seed ^ ORDER_SALT, epoch, b->filled);
    b->epoch = epoch;
    b->number = number;
    for (b->at = 0; b->at < b->filled; b->at++) {
        const uint64_t of = gs_div_up(pairs_of(b, next_bucket(b)), b->options.batch_size);
        if (left < of)
            break;
        left -= of;
    }
    b->sought = true;
    b->done = left * b->options.batch_size; /* of the bucket that comes, */
    if (b->at < b->filled && next_bucket(b) == held)
        b->at++; /* or is there */
    else
        b->held_bucket = UINT32_MAX;
    return GS_OK;
}

gs_status gs_pair_batches_pass(gs_pair_batches *b)
{
    return gs_pair_source_is_shared(&b->source) ? gs_pair_source_read(&b->source, GS_NO_BUCKET, NULL, NULL) : GS_OK;
}

/* The bucket that the next batch is of is in memory. */
static gs_status hold_bucket(gs_pair_batches *b)
{
    if (b->held_bucket != UINT32_MAX && b->done < b->held)
        return gs_pair_batches_pass(b);
    const uint32_t bucket = next_bucket(b);

    GS_TRY(gs_pair_source_read(&b->source, bucket, b->all, b->all_labels));
    b->done = b->held_bucket != UINT32_MAX ? 0 : b->done;
    b->held_bucket = bucket;
    b->held = pairs_of(b, bucket);
    b->within = gs_order_of(b->options.seed ^ (bucket + 1) * BUCKET_SALT, b->epoch, (uint32_t)b->held);
    b->at++;
    return GS_OK;
}

/* ---- negatives -------------------------------------------------------------- */

static uint32_t end_of(const gs_pair *p, gs_pair_end end) { return end == GS_PAIR_HEAD ? p->source : p->destination; }

/* A wrong end of this kind. */
static uint32_t draw(const gs_pair_batches *b, const gs_pair_batch *batch, gs_random_stream *r, gs_pair_end end)
{
    const gs_chunk_table *const t = gs_store_chunks(b->source.store);
    const uint32_t interval = end == GS_PAIR_HEAD ? b->held_bucket / t->parts : b->held_bucket % t->parts;

    switch (b->options.by) {
    case GS_NEGATIVES_DEGREE:
        return end_of(&b->all[gs_random_below(r, (uint32_t)b->held)], end);
    case GS_NEGATIVES_BATCH:
        return end_of(&batch->pair[gs_random_below(r, batch->pairs)], end);
    case GS_NEGATIVES_UNIFORM:
        break;
    }
    return (uint32_t)gs_interval_first(t, interval) + gs_random_below(r, gs_interval_rows(t, interval));
}

/* Those of all groups beside given ends of one kind, from slot `at` on. */
static void draw_all(gs_pair_batches *b, gs_pair_batch *batch, gs_pair_end given)
{
    const gs_pair_end wrong = given == GS_PAIR_HEAD ? GS_PAIR_TAIL : GS_PAIR_HEAD;

    batch->wrong[given] = batch->slots;
    for (uint32_t g = 0; g < batch->groups; g++) {
        gs_random_stream r = gs_random_stream_of(b->key, 2 * g + (uint32_t)given, batch->number, batch->epoch);
        for (uint32_t k = 0; k < batch->negatives; k++)
            b->row[batch->slots++] = gs_unique_put(&b->unique, draw(b, batch, &r, wrong));
    }
}

gs_status gs_pair_batches_next(gs_pair_batches *b, gs_pair_batch *out)
{
    GS_TRY(hold_bucket(b));
    const uint32_t n = (uint32_t)GS_MIN(b->options.batch_size, b->held - b->done);
    gs_pair_batch batch = {.epoch = b->epoch, .number = b->number++, .pairs = n, .negatives = b->options.negatives,
                           .groups = (n + b->options.negatives - 1) / b->options.negatives, .pair = b->pair,
                           .label = b->label};
    gs_unique_clear(&b->unique);
    for (uint32_t p = 0; p < n; p++) {
        const uint32_t at = gs_order_at(&b->within, (uint32_t)b->done + p);
        b->pair[p] = b->all[at];
        if (b->options.labels)
            b->label[p] = b->all_labels[at];
    }
    b->done += n;
    for (int end = GS_PAIR_HEAD; end <= GS_PAIR_TAIL; end++)
        for (uint32_t p = 0; p < n; p++)
            b->row[batch.slots++] = gs_unique_put(&b->unique, end_of(&b->pair[p], (gs_pair_end)end));
    for (int end = GS_PAIR_HEAD; end <= GS_PAIR_TAIL; end++)
        if (b->options.asks[end])
            draw_all(b, &batch, (gs_pair_end)end);
    batch.row = b->row;
    batch.rows = b->unique.count;
    batch.vertex = b->unique.vertex;
    *out = batch;
    return GS_OK;
}

/* ---- seeds ------------------------------------------------------------------ */

/* A batch, and behind it what it points to and the types of its pairs: all is of 4 bytes a number. */
typedef struct seed_memory {
    gs_pair_batch batch;
    gs_pair pair[];
} seed_memory;

static uint64_t seed_bytes(const gs_pair_batches *b)
{
    return sizeof(seed_memory) + b->most_pairs * sizeof(gs_pair) +
           (2ull * b->most_pairs + b->most_slots + b->most_rows) * sizeof(uint32_t);
}

static uint32_t *copy_numbers(uint32_t **at, const uint32_t *from, uint32_t count)
{
    uint32_t *const to = *at;

    *at += count;
    return memcpy(to, from, count * sizeof(*to));
}

static gs_status fill_seeds(void *context, gs_batch_seeds *out, void *memory, uint32_t epoch, uint32_t number)
{
    gs_pair_batches *const b = context;
    const bool typed = gs_store_get_info(b->source.store)->edge_types > 0;
    seed_memory *const m = memory;
    gs_pair_batch *const own = &m->batch;

    GS_TRY(gs_pair_batches_seek(b, epoch, number));
    GS_TRY(gs_pair_batches_next(b, own));
    uint32_t *at = (uint32_t *)(m->pair + own->pairs);
    memcpy(m->pair, own->pair, own->pairs * sizeof(*m->pair));
    own->pair = m->pair;
    own->label = own->label == NULL ? NULL : copy_numbers(&at, own->label, own->pairs);
    own->row = copy_numbers(&at, own->row, own->slots);
    own->vertex = copy_numbers(&at, own->vertex, own->rows);
    for (uint32_t p = 0; p < own->pairs; p++)
        at[p] = own->pair[p].type;
    *out = (gs_batch_seeds){.vertex = own->vertex, .vertices = own->rows, .end = {own->row, own->row + own->pairs},
                            .type = typed ? at : NULL, .edges = own->pairs, .of_caller = own};
    return GS_OK;
}

gs_seed_source gs_pair_batches_seeds(gs_pair_batches *b)
{
    const gs_store_info *const info = gs_store_get_info(b->source.store);

    return (gs_seed_source){.context = b, .fill = fill_seeds, .bytes = seed_bytes(b), .batches = b->batches,
                            .most_vertices = (uint32_t)GS_MIN(b->most_rows, info->vertices),
                            .most_edges = b->most_pairs, .both_ways = info->symmetric};
}
