/* partition.c - the run as a whole: read, order, write, make it a store.
 *
 * One run is a job; it flows input -> blocks -> order -> chunks and rows. The room from bottom to top:
 *   job, integers                       a run's state; functions of integers
 *   text_lines                          bytes of a packed file; lines, blocks and numbers of a text
 *   input_files                         what an input consists of; arrays that are there, or made; edges out of them
 *   names, edge_text                    ids of any kind; edges of a text on disk
 *   input_FORMAT, input                 opens and checks it, hands out edges by number
 *   labels                              classes, rows of labels, splits
 *   blocks                              edges on disk, bucketed by the larger endpoint id
 *   lp_graph, lp, order_metis           the interval of every vertex
 *   order                               its row in it, from one pass over the blocks; edges bucketed by chunk
 *   chunks, rows, pairs                 chunks both ways, with what edges carry; rows of features and labels, and pairs
 *
 * Ids are input ids unless called a position or row (store order).
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/external_sort.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/size.h"
#include "base/status.h"
#include "partition/chunks.h"
#include "partition/edge_text.h"
#include "partition/exchange.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/order.h"
#include "partition/rows.h"
#include "ranks/ranks.h"
#include "store/store.h"
#include "store/store_write.h"

/* ---- the run ---------------------------------------------------------------------- */

#define MOST_PARTS 16384u /* the chunk table of P * P entries stays below 13 GB */
#define AUTO_SHARE 8u     /* auto: an interval's rows and the largest chunk fit memory / 8 */
#define AUTO_WIDTH 256u   /* floats a row, at least, for that rule */
/* And whatever the memory: intervals so short that a plan, which needs a few intervals' rows at the least, does with
 * some 200 MiB; chunks so long that their padding is little; so few of them that a plan of ten tasks a chunk has no
 * more than are searched for the best one (MANY_TASKS of schedule.c). */
#define AUTO_INTERVAL_BYTES (64 * GS_MIB)
#define AUTO_CHUNK_EDGES 2048u /* on average: 16 KiB */
#define AUTO_FINE 140u
#define AUTO_RANK 4u /* intervals of a rank: with fewer hubs make one's edges many more, more cost it time */
#define AUTO_TRIES 4

typedef struct run {
    gs_part_job job;
    gs_staging *staging;
    gs_part_input in;
    gs_part_blocks blocks;
    gs_part_order order;
    gs_part_degrees degrees;
    gs_chunk *chunk[2];
    int32_t *labels;  /* input order; NULL: none; where they are rows, which vertices have some */
    uint8_t *split;
    uint64_t split_count[3];
    gs_store_info links; /* what of it is of links */
    gs_store_shard shard; /* of ranks: the part that is made here */
    uint64_t largest; /* edges of the largest chunk, where that is above the cap */
    gs_array_info array[GS_ARRAY_COUNT];
    char note[90];
    double read_seconds, order_seconds, edge_seconds, array_seconds;
} run;

/* -- the number of parts ------------------------------------------------------- */

static uint64_t chunk_memory(const gs_part_job *job) { return job->buffers * 3 / 8; }
/* Of that, for what edges want, while chunks are written. */
static uint64_t wanted_memory(const gs_part_input *in, uint64_t memory)
{
    return in->edge_features > 0 ? memory / 12 : 0;
}
static uint64_t row_memory(const gs_part_job *job) { return job->buffers * 3 / 8; }
/* Smallest buffers of which row_memory() is enough for rows. */
static uint64_t least_buffers(const gs_part_input *in) { return gs_div_up(gs_part__rows_least(in) * 8, 3); }

static gs_edge_data data_of(const run *r, uint32_t edge_types)
{
    const uint64_t number = gs_dtype_bytes(r->job.feature_type);
    return (gs_edge_data){.type_bytes = !r->in.typed ? 0 : edge_types <= 256 ? 1 : 2, .weights = r->in.weighted,
                          .feature_bytes = r->in.edge_features * (uint32_t)number};
}

/* Of chunks whose types are not counted yet: as if there were many. */
static gs_edge_data edge_data(const run *r) { return data_of(r, UINT32_MAX); }

static uint64_t sort_cap(const run *r, uint32_t threads, uint64_t rows)
{
    const gs_part_chunk_kind kind = {rows, edge_data(r)};
    const uint64_t memory = chunk_memory(&r->job);
    return gs_part__chunk_cap(threads, memory - wanted_memory(&r->in, memory), &kind);
}

/* Edges a chunk may have for the rule below, and to be sorted by any thread. */
static uint64_t auto_cap(const run *r, uint32_t parts)
{
    const gs_part_chunk_kind kind = {gs_div_up(r->in.vertices, parts), edge_data(r)};
    const uint64_t at_rest = gs_part__chunk_edges(r->job.memory / AUTO_SHARE, &kind);
    return GS_MAX(GS_MIN(sort_cap(r, r->job.threads, kind.rows), at_rest), 1);
}

/* Parts that serve small budgets: a plan takes blocks of a fine grid's chunks as one. */
static uint64_t fine_parts(const run *r, uint64_t row)
{
    const uint64_t wanted = gs_div_up(r->in.vertices * row, AUTO_INTERVAL_BYTES);
    uint64_t parts = 1;
    while (parts < GS_MIN(wanted, AUTO_FINE) && (parts + 1) * (parts + 1) * AUTO_CHUNK_EDGES <= r->blocks.edges)
        parts++;
    return parts;
}

static uint32_t directions_of(const run *r) { return r->blocks.symmetric ? 1 : 2; }

/* The smallest P for which an interval's rows of max(F, 256) floats fit an
 * eighth of memory and so would all chunks if they were equal, or a finer one that serves small budgets, or deals ranks
 * edges alike. Skewed chunks are found after ordering (order_graph()). */
static uint32_t auto_parts(const run *r)
{
    const uint32_t most = GS_MIN(MOST_PARTS, gs_part__job_most_parts(&r->job, directions_of(r)));
    const uint64_t row = GS_MAX(r->in.features, AUTO_WIDTH) * 4ull, n = r->in.vertices;
    const uint64_t rows = GS_MAX(r->job.memory / AUTO_SHARE / row, 1);
    const uint32_t ranks = GS_MAX(r->job.opt->ranks, r->job.ranks);
    uint64_t parts = GS_MIN(GS_MAX(gs_div_up(n, rows), fine_parts(r, row)), most);
    while (parts < most && gs_div_up(r->blocks.edges, parts * parts) > auto_cap(r, (uint32_t)parts))
        parts++;
    if (ranks > 1)
        parts = GS_MAX(parts, GS_MIN(ranks * AUTO_RANK, most));
    return (uint32_t)GS_MIN(GS_MAX(parts, r->job.ranks), n);
}

/* GS_EINVAL where `name` is no type that features can have at rest. */
static gs_status parse_feature_type(gs_dtype *out, const char *name)
{
    gs_dtype t = GS_F32;

    if (name != NULL && (!gs_dtype_parse(&t, name) || (t != GS_F32 && t != GS_BF16 && t != GS_F16)))
        return gs_fail(GS_EINVAL, ".feature_type %s: is none of f32, bf16, f16", name);
    *out = t;
    return GS_OK;
}

static gs_status check_options(const gs_partition_options *o)
{
    static const char *const methods[] = {"metis", "lp", "fennel", "random", "natural"};
    bool known = o->method == NULL;

    for (size_t i = 0; i < GS_ARRAY_LEN(methods) && !known; i++)
        known = strcmp(o->method, methods[i]) == 0;
    if (!known)
        return gs_fail(GS_EINVAL, ".method %s: is not known; use metis, lp, fennel, random or natural", o->method);
    if (o->parts > MOST_PARTS)
        return gs_fail(GS_EINVAL, ".parts %u: is more than %u", o->parts, MOST_PARTS);
    if (o->task != NULL && !gs_train_task_parse(&(gs_train_task){GS_TRAIN_TASK_CLASSIFY}, o->task))
        return gs_fail(GS_EINVAL, ".task %s: is none of classify, multilabel, regress", o->task);

    GS_TRY(gs_part__ids_option(o->ids));
    if (o->ranks > GS_SHARDS_MOST)
        return gs_fail(GS_EINVAL, ".ranks %u: are more than %u", o->ranks, GS_SHARDS_MOST);
    if (o->ranks > 1 && o->method != NULL && strcmp(o->method, "metis") != 0 && strcmp(o->method, "lp") != 0)
        return gs_fail(GS_EINVAL, ".ranks %u: orders of .method %s are the same for any; use metis or lp, or leave it "
                       "out", o->ranks, o->method);
    return o->split != NULL ? gs_part__split_shares((double[3]){0}, o->split) : GS_OK;
}

/* A checksum of what has to be the same for all. */
static uint64_t mix_text(uint64_t sum, const char *text)
{
    return sum * 0x9E3779B97F4A7C15u + (text != NULL ? gs_hash64(text, strlen(text)) : 1);
}

#define SAMPLES 64

/* Some numbers of each array: what a machine has at the path may be another graph of the same counts. */
static uint64_t mix_arrays(uint64_t sum, const gs_part_input *in)
{
    const gs_part_file *const file[] = {&in->edge, &in->type, &in->weight, &in->edge_feature, &in->feature, &in->indptr,
                                        &in->indices, &in->data, &in->label, in->split, in->split + 1, in->split + 2};

    for (size_t f = 0; f < GS_ARRAY_LEN(file); f++) {
        const gs_npy *const a = &file[f]->npy;
        uint64_t number[SAMPLES] = {0};
        for (uint64_t k = 0; k < SAMPLES && a->fd >= 0 && a->data_bytes >= sizeof(*number); k++)
            (void)!pread(a->fd, &number[k], sizeof(*number),
                         (off_t)(a->data_offset + (a->data_bytes - sizeof(*number)) / (SAMPLES - 1) * k));
        sum = gs_hash64_seeded(number, sizeof(number), sum);
    }
    return sum;
}

static gs_status compare_ranks(const run *r)
{
    const gs_partition_options *const o = r->job.opt;
    const uint64_t number[] = {o->parts, o->random_features, o->seed, o->undirected, o->shards, o->ranks,
                               r->in.vertices, r->in.edges, r->in.features, r->in.edge_features};
    uint64_t own = gs_hash64(number, sizeof(number)), all[GS_RANKS_MOST] = {0};

    own = mix_text(mix_text(mix_text(own, o->method), o->feature_type), o->split);
    own = mix_text(mix_text(mix_text(own, o->task), o->ids), o->format);
    own = mix_arrays(own, &r->in);
    gs_status st = gs_ranks_gather(all, &own, sizeof(own));
    for (uint32_t k = 1; k < r->job.ranks && st == GS_OK; k++)
        if (all[k] != all[0])
            st = gs_fail(GS_EINVAL, "rank %u has another input or other options than rank 0; give all ranks the same",
                         k);
    return st;
}

/* -- phases ---------------------------------------------------------------------- */

static gs_status read_graph(run *r)
{
    GS_TRY(gs_part__input_parse(&r->in, &r->job));
    GS_TRY(gs_part__job_plan(&r->job, r->in.vertices, r->in.edges, least_buffers(&r->in)));
    GS_TRY(gs_part__labels_load(&r->labels, &r->in, &r->job));
    GS_TRY(gs_part__splits_load(&r->split, r->split_count, &r->in, r->labels, &r->job));
    if (r->job.ranks > 1)
        GS_TRY(compare_ranks(r));
    if (r->job.opt->split != NULL)
        GS_TRY(gs_part__split_draw(&r->split, r->split_count, &r->in, r->labels, &r->job));
    r->job.split = r->split;
    r->job.train = r->split_count[0];
    r->job.labelled = r->split_count[0] + r->split_count[1] + r->split_count[2];
    GS_TRY(gs_part__blocks_make(&r->blocks, &r->job, &r->in));
    if (r->in.both_ways && !r->blocks.symmetric)
        return gs_fail(GS_EFORMAT, "%s: lists an edge in the line of one of its ends alone, or with another weight at "
                       "the other; the edges of this format have no direction", r->in.path);
    return GS_OK;
}

/* `count`: of ranks, the edges of each chunk, to be freed. */
static gs_status find_largest(run *r, uint64_t cap, uint64_t **count)
{
    if (r->job.ranks == 1)
        return gs_part__largest_chunk(&r->largest, &r->order, cap);
    gs_free(*count);
    *count = NULL;
    const gs_status st = gs_part__count_chunks(count, &r->largest, &r->order, &r->job);
    return st == GS_OK ? gs_ranks_sum_u64(&r->order.cut, 1) : st;
}

/* Each rank gets the edges of its own intervals. */
static gs_status deal(run *r, const uint64_t *count)
{
    if (r->order.grid.parts < r->job.ranks)
        return gs_fail(GS_EINVAL, "%s: %u intervals cannot be dealt to %u ranks; use more .parts", r->in.path,
                       r->order.grid.parts, r->job.ranks);
    r->shard.ranks = r->job.ranks;
    r->shard.rank = r->job.rank;
    return gs_part__deal(&r->shard, count, &r->order, &r->job);
}

static gs_status order_graph(run *r)
{
    const gs_partition_options *const opt = r->job.opt;
    const uint32_t most = GS_MIN(MOST_PARTS, gs_part__job_most_parts(&r->job, directions_of(r)));
    uint32_t parts = opt->parts != 0 ? opt->parts : auto_parts(r);
    GS_FREED uint64_t *count = NULL;
    gs_status st = GS_OK;

    if (r->job.ranks > 1 && (st = gs_ranks_share(&parts, sizeof(parts))) != GS_OK)
        return st;
    for (int i = 0; i < AUTO_TRIES; i++) {
        const uint32_t whole = (uint32_t)GS_MIN(parts, r->in.vertices);
        if ((st = gs_part__job_plan_chunks(&r->job, whole, directions_of(r))) != GS_OK)
            break;
        const uint64_t cap = auto_cap(r, parts);
        r->largest = 0;
        if ((st = gs_part__order_make(&r->order, &r->job, &r->blocks, parts, opt->method, r->note,
                                      sizeof(r->note))) != GS_OK ||
            (st = find_largest(r, cap, &count)) != GS_OK)
            break;
        bool last = opt->parts != 0 || r->largest <= cap || i + 1 == AUTO_TRIES ||
                    parts * 2 > GS_MIN(most, r->in.vertices);
        if ((r->job.ranks > 1 && (st = gs_ranks_share(&last, sizeof(last))) != GS_OK) || last)
            break;
        gs_part__order_free(&r->order);
        parts *= 2; /* a skewed chunk: quarters of it have a chance */
    }
    gs_part__blocks_free(&r->blocks);
    if (st == GS_OK && r->job.ranks > 1)
        st = deal(r, count);
    return st;
}

static gs_status make_tables(run *r, const gs_part_blocks *b)
{
    const uint64_t chunks = (uint64_t)r->order.grid.parts * r->order.grid.parts, n = r->in.vertices;
    bool ok = true;

    for (int d = 0; d < (b->symmetric ? 1 : 2); d++) {
        ok = ok && (r->chunk[d] = gs_calloc(chunks, sizeof(gs_chunk))) != NULL;
        ok = ok && (r->degrees.count[d] = gs_calloc(n, 4)) != NULL;
    }
    if (b->self_loops != 0)
        ok = ok && (r->degrees.loops = gs_calloc(n, 4)) != NULL;
    return ok ? GS_OK : gs_fail(GS_ENOMEM, "no memory for the tables of %u parts", r->order.grid.parts);
}

/* A chunk too large for one thread's share of memory may fit a larger share. */
static uint32_t sort_threads(const run *r)
{
    uint32_t threads = r->job.threads;
    while (threads > 1 && sort_cap(r, threads, r->order.grid.rows) < r->largest)
        threads--;
    return threads;
}

/* The largest chunk is sorted by one thread with all of the memory for it, or by none. */
static gs_status check_largest(const run *r)
{
    const gs_part_chunk_kind kind = {r->order.grid.rows, edge_data(r)};
    char have[32];
    uint64_t mib = gs_div_up(r->job.given, GS_MIB);

    if (r->largest <= sort_cap(r, 1, kind.rows))
        return GS_OK;
    for (;; mib += GS_MAX(mib / 64, 1)) {
        const uint64_t memory = gs_part__job_buffers(&r->job, mib * GS_MIB) * 3 / 8;
        if (gs_part__chunk_cap(1, memory - wanted_memory(&r->in, memory), &kind) >= r->largest)
            break;
    }
    return gs_fail(GS_EBUDGET, ".memory %s: is too little for a chunk of %lu edges; use more .parts, or at least %luM "
                   "with .memory", gs_size_format(have, sizeof(have), r->job.given), r->largest, mib);
}

static gs_status write_edges(run *r, const gs_part_blocks *b)
{
    const double start = gs_now();
    const uint64_t memory = chunk_memory(&r->job), apart = wanted_memory(&r->in, memory);
    gs_status st = check_largest(r);

    for (int d = 0; d < (b->symmetric ? 1 : 2) && st == GS_OK; d++) {
        const gs_part_chunks_spec spec = {
            .in = &r->in,
            .order = &r->order,
            .direction = (gs_direction)d,
            .words = b->words,
            .data = data_of(r, b->edge_types),
            .chunk = r->chunk[d],
            .degrees = &r->degrees,
            .memory = memory - apart,
            .apart = b->edges > 0 ? apart : 0,
            .threads = sort_threads(r),
            .progress_from = 0.5 * d,
            .progress_to = b->symmetric ? 1 : 0.5 * d + 0.5,
        };
        st = gs_part__chunks_write(&r->job, &spec);
    }
    r->edge_seconds = gs_now() - start;
    return st;
}

/* -- the small vertex arrays: made piece by piece in store order ------------------- */

/* Makes rows [first, first + count) at `dst`. */
typedef void gs_part_fill(const void *context, void *dst, uint64_t first, uint64_t count);

/* The bytes of the array's file, whose rows have `each`, that this rank has. */
static gs_extent bytes_here(const run *r, gs_array_id id, uint64_t each, uint64_t bytes)
{
    const uint64_t all = gs_align_up(bytes, GS_BLOCK_BYTES);

    if (r->job.ranks == 1 || !gs_store_deals_array(id))
        return (gs_extent){0, all};
    return gs_shard_rows(&r->shard, r->shard.rank, r->order.grid.rows * each, all);
}

static gs_status array_write(run *r, gs_array_id id, gs_dtype dtype, uint64_t rows, gs_part_fill *fill,
                             const void *context)
{
    const uint64_t each = gs_dtype_bytes(dtype), step = GS_SUM_BYTES / each;
    GS_ENDS(gs_array_writer_free) gs_array_writer w = GS_ARRAY_WRITER_NONE;
    GS_FREED char *const data = gs_malloc(GS_SUM_BYTES);

    GS_NEED(data != NULL, "%s: no memory for %s", r->job.dir, gs_array_stem(id));
    w.here = bytes_here(r, id, each, rows * each);
    GS_TRY(gs_array_begin(&w, r->job.dir, id));
    for (uint64_t at = 0; at < rows; at += step) {
        const uint64_t count = GS_MIN(step, rows - at);
        fill(context, data, at, count);
        GS_TRY(gs_array_put(&w, data, count * each));
        GS_TRY(gs_part__job_result(&r->job));
    }
    return gs_array_end(&w, &r->array[id], dtype, 1);
}

typedef struct column {
    const uint32_t *input_id, *count;
    const int32_t *labels;
    const uint8_t *split;
    const gs_type_table *types;
} column;

static void fill_labels(const void *context, void *dst, uint64_t first, uint64_t count)
{
    const column *c = context;
    for (uint64_t i = 0; i < count; i++)
        ((int32_t *)dst)[i] = c->labels[c->input_id[first + i]];
}

static void fill_split(const void *context, void *dst, uint64_t first, uint64_t count)
{
    const column *c = context;
    for (uint64_t i = 0; i < count; i++)
        ((uint8_t *)dst)[i] = c->split != NULL ? c->split[c->input_id[first + i]] : GS_SPLIT_NONE;
}

static void fill_count(const void *context, void *dst, uint64_t first, uint64_t count)
{
    const column *c = context;
    for (uint64_t i = 0; i < count; i++)
        ((float *)dst)[i] = (float)c->count[first + i];
}

static void fill_id(const void *context, void *dst, uint64_t first, uint64_t count)
{
    const column *c = context;
    memcpy(dst, c->input_id + first, count * 4);
}

static void fill_vertex_type(const void *context, void *dst, uint64_t first, uint64_t count)
{
    const column *const c = context;
    const gs_type_table *const t = c->types;

    for (uint64_t i = 0; i < count; i++) {
        uint32_t type = 0;
        while (type + 1 < t->types && c->input_id[first + i] >= t->type[type].first + t->type[type].vertices)
            type++;
        ((float *)dst)[i] = (float)type;
    }
}

static void fill_text(const void *context, void *dst, uint64_t first, uint64_t count)
{
    memcpy(dst, (const char *)context + first, count);
}

static gs_status write_edge_type_names(run *r, uint32_t types)
{
    GS_FREED char *text = NULL;
    uint64_t bytes = 0;

    GS_TRY(gs_part__relations_text(r->in.relations, types, &text, &bytes));
    return bytes > 0 ? array_write(r, GS_ARRAY_EDGE_TYPE_NAMES, GS_U8, bytes, fill_text, text) : GS_OK;
}

static gs_status write_arrays(run *r)
{
    const uint64_t n = r->in.vertices;
    gs_part_job *const job = &r->job;
    column c = {.input_id = r->order.input_id, .labels = r->labels, .split = r->split, .types = r->in.types};

    if (r->labels != NULL && r->in.task != GS_TRAIN_TASK_CLASSIFY)
        GS_TRY(gs_part__label_rows_write(job, &r->in, &r->order, &r->array[GS_ARRAY_LABELS], row_memory(job)));
    else if (r->labels != NULL)
        GS_TRY(array_write(r, GS_ARRAY_LABELS, GS_I32, n, fill_labels, &c));
    if (r->split != NULL)
        GS_TRY(array_write(r, GS_ARRAY_SPLIT, GS_U8, n, fill_split, &c));
    for (int d = 0; d < 2; d++) {
        const gs_array_id id = d == 0 ? GS_ARRAY_IN_DEGREE : GS_ARRAY_OUT_DEGREE;
        c.count = r->degrees.count[d] != NULL ? r->degrees.count[d] : r->degrees.count[0];
        GS_TRY(array_write(r, id, GS_F32, n, fill_count, &c));
    }
    c.count = r->degrees.loops;
    if (c.count != NULL)
        GS_TRY(array_write(r, GS_ARRAY_LOOPS, GS_F32, n, fill_count, &c));
    GS_TRY(array_write(r, GS_ARRAY_INPUT_ID, GS_U32, n, fill_id, &c));
    return c.types != NULL ? array_write(r, GS_ARRAY_VERTEX_TYPE, GS_F32, n, fill_vertex_type, &c) : GS_OK;
}

/* What ranks have made of their own intervals: chunk tables, of the whole store's files, and degrees. */
static gs_status gather_edges(run *r, const gs_part_blocks *b)
{
    const gs_part_grid *const g = &r->order.grid;
    const uint64_t row = (uint64_t)g->parts * sizeof(gs_chunk), all = g->parts * row;

    for (int d = 0; d < (b->symmetric ? 1 : 2); d++) {
        GS_TRY(gs_part__share_intervals(&r->shard, r->chunk[d], row, all));
        uint64_t end = 0;
        for (uint64_t c = 0; c < (uint64_t)g->parts * g->parts; c++) {
            r->chunk[d][c].offset = end;
            end += r->chunk[d][c].length;
        }
        GS_TRY(gs_part__share_intervals(&r->shard, r->degrees.count[d], 4ull * g->rows, 4 * g->vertices));
    }
    if (r->degrees.loops != NULL)
        GS_TRY(gs_part__share_intervals(&r->shard, r->degrees.loops, 4ull * g->rows, 4 * g->vertices));
    return GS_OK;
}

/* Features move on a thread of their own: they are disk work, edges are not. */
static void *feature_thread(void *context)
{
    run *r = context;
    const double start = gs_now();
    const uint64_t memory = row_memory(&r->job);
    gs_status st = gs_threads_begin(r->job.threads); /* of this thread's loops */
    if (st == GS_OK)
        st = gs_part__rows_write(&r->job, &r->in, &r->order, r->job.ranks > 1 ? &r->shard : NULL,
                                 &r->array[GS_ARRAY_FEATURES], memory);
    gs_part__job_fail(&r->job, st);
    r->array_seconds = gs_now() - start;
    return NULL;
}

static gs_status write_all(run *r, const gs_part_blocks *b)
{
    pthread_t thread;
    bool started = false;

    GS_TRY(make_tables(r, b));
    if (r->in.form != GS_FORM_NONE && r->job.ranks == 1) {
        const int rc = pthread_create(&thread, NULL, feature_thread, r);
        if (rc != 0)
            return gs_fail_errno(rc, "cannot start a thread");
        started = true;
    }
    gs_part__job_fail(&r->job, write_edges(r, b));
    if (started)
        pthread_join(thread, NULL);
    GS_TRY(gs_part__job_result(&r->job));
    if (r->job.ranks > 1)
        GS_TRY(gather_edges(r, b));
    if (r->in.form != GS_FORM_NONE && r->job.ranks > 1) /* ranks meet in one thread */
        (void)feature_thread(r);
    GS_TRY(gs_part__job_result(&r->job));
    const double start = gs_now();
    r->links.edge_types = b->edge_types;
    GS_TRY(write_arrays(r));
    if (r->in.relations != NULL)
        GS_TRY(write_edge_type_names(r, b->edge_types));
    GS_TRY(gs_part__links_write(&r->job, &r->in, &r->order, &r->array[GS_ARRAY_TRAIN_LINKS], &r->links,
                                row_memory(&r->job)));
    r->array_seconds += gs_now() - start;
    return GS_OK;
}

/* -- the store ------------------------------------------------------------------------ */

static uint64_t most_of(const uint32_t *count, uint64_t n)
{
    uint32_t most = 0;
    for (uint64_t i = 0; i < n; i++)
        most = GS_MAX(most, count[i]);
    return most;
}

static gs_status finish(run *r, const gs_part_blocks *b)
{
    const gs_part_grid *const g = &r->order.grid;
    const uint32_t *const out = r->degrees.count[b->symmetric ? 0 : 1];
    gs_store_contents c;

    memset(&c, 0, sizeof(c));
    c.info = (gs_store_info){.vertices = g->vertices,
                             .edges = b->edges,
                             .self_loops = b->self_loops,
                             .parts = g->parts,
                             .interval_rows = g->rows,
                             .features = r->in.form != GS_FORM_NONE ? r->in.features : 0,
                             .feature_type = r->job.feature_type,
                             .classes = r->labels != NULL ? r->in.classes : 0,
                             .labels = r->in.task,
                             .train = r->split_count[0],
                             .valid = r->split_count[1],
                             .test = r->split_count[2],
                             .symmetric = b->symmetric,
                             .weights = r->in.weighted,
                             .edge_features = r->in.edge_features,
                             .edge_feature_type = r->job.feature_type,
                             .edge_types = b->edge_types,
                             .max_in_degree = most_of(r->degrees.count[0], g->vertices),
                             .max_out_degree = most_of(out, g->vertices),
                             .types = r->in.types,
                             .named = r->in.names_of,
                             .link_labels = r->links.link_labels,
                             .link_classes = r->links.link_classes,
                             .seed = r->job.opt->seed};
    memcpy(c.info.links, r->links.links, sizeof(r->links.links));
    snprintf(c.info.method, sizeof(c.info.method), "%s", r->order.method);
    c.chunks = (gs_chunk_table){.vertices = g->vertices,
                                .parts = g->parts,
                                .interval_rows = g->rows,
                                .shared = b->symmetric,
                                .data = data_of(r, b->edge_types),
                                .chunk = {r->chunk[0], b->symmetric ? r->chunk[0] : r->chunk[1]}};
    memcpy(c.array, r->array, sizeof(c.array));
    if (r->in.names != NULL)
        c.array[GS_ARRAY_NAMES] = gs_part__names_info(r->in.names);
    c.shard = r->job.ranks > 1 ? &r->shard : NULL;
    gs_part__tick(&r->job, "finishing", 1);
    gs_status st = gs_store_finish(r->staging, &c);
    if (r->job.ranks > 1 && (st = gs_ranks_agree(st)) == GS_OK) /* all shards are whole */
        st = gs_staging_publish(r->staging);
    return st;
}

static uint64_t store_bytes(const char *dir)
{
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;
    uint64_t bytes = 0;
    if (gs_store_open_part(&s, dir) == GS_OK)
        bytes = gs_store_get_info(s)->total_bytes;
    return bytes;
}

static void fill_report(gs_partition_report *report, const run *r, const gs_part_blocks *b, double seconds)
{
    memset(report, 0, sizeof(*report));
    report->vertices = r->in.vertices;
    report->edges = b->edges;
    report->parts = r->order.grid.parts;
    report->store_bytes = store_bytes(r->job.place);
    report->peak_bytes = gs_process_peak_bytes();
    snprintf(report->method, sizeof(report->method), "%s", r->order.method);
    snprintf(report->note, sizeof(report->note), "%s%s%s", r->note, r->note[0] && r->in.note[0] ? "; " : "",
             r->in.note);
    report->cut_fraction = b->edges != 0 ? (double)r->order.cut / (double)b->edges : 0;
    report->seconds = seconds;
    report->read_seconds = r->read_seconds;
    report->order_seconds = r->order_seconds;
    report->edge_seconds = r->edge_seconds;
    report->array_seconds = r->array_seconds;
}

static void run_free(run *r)
{
    gs_part__input_close(&r->in);
    gs_part__blocks_free(&r->blocks);
    gs_part__order_free(&r->order);
    for (int d = 0; d < 2; d++) {
        gs_free(r->degrees.count[d]);
        gs_free(r->chunk[d]);
    }
    gs_free(r->degrees.loops);
    gs_free(r->labels);
    gs_free(r->split);
    for (int i = 0; i < GS_ARRAY_COUNT; i++)
        gs_free(r->array[i].sums);
    gs_staging_close(r->staging);
    gs_part__job_free(&r->job);
    gs_free(r);
}

static gs_status run_phases(run *r, gs_partition_report *report)
{
    const double start = gs_now();

    GS_TRY(read_graph(r));
    gs_part_blocks facts = r->blocks; /* its numbers, after its file is gone */
    facts.edges_by_end = NULL;
    r->read_seconds = gs_now() - start;
    gs_alloc_trim(); /* what a phase has given back is the next one's */
    GS_TRY(order_graph(r));
    r->order_seconds = gs_now() - start - r->read_seconds;
    gs_alloc_trim();
    GS_TRY(write_all(r, &facts));
    GS_TRY(gs_part__job_result(&r->job));
    GS_TRY(finish(r, &facts));
    if (report != NULL)
        fill_report(report, r, &facts, gs_now() - start);
    return GS_OK;
}

static const gs_partition_options defaults = {.size = sizeof(gs_partition_options), .feature_type = "f32"};

void gs_partition_options_sized(gs_partition_options *options, size_t size)
{
    gs_options_give(options, size, &defaults, sizeof(defaults));
}

/* What ranks cannot make together is refused before anything is read of it. */
static gs_status check_ranks(const gs_partition_options *o)
{
    const uint32_t ranks = gs_ranks_count();

    if (o->shards > GS_SHARDS_MOST)
        return gs_fail(GS_EINVAL, ".shards %u: are more than %u", o->shards, GS_SHARDS_MOST);
    if (o->shards < 2 || ranks != o->shards)
        return gs_fail(GS_EINVAL, ".shards %u: are made by as many ranks, from 2 on, and here %s %u: start by mpirun "
                       "-n %u, or make a store and cut it with shard", o->shards, ranks == 1 ? "is" : "are",
                       ranks, GS_MAX(o->shards, 2u));
    if (o->method == NULL || strcmp(o->method, "metis") == 0 || strcmp(o->method, "fennel") == 0)
        return gs_fail(GS_EUNSUPPORTED, ".method: ranks order by label propagation, at random or not at all; give "
                       ".method lp, random or natural, or make a store and cut it with shard");
    return GS_OK;
}

static gs_status check_ranks_input(const run *r)
{
    const gs_part_input *const in = &r->in;
    const bool links = in->link[0].npy.fd >= 0 || in->link[1].npy.fd >= 0 || in->link[2].npy.fd >= 0;
    const bool named = in->named[0] != NULL || in->named[1] != NULL;
    const bool parsed = in->format->read != NULL && in->format->read != gs_part__named_join;

    if (!parsed && in->types == NULL && !named && !links)
        return GS_OK;
    return gs_fail(GS_EUNSUPPORTED, "%s: ranks read plain arrays of edges and features, and no text, pairs, types of "
                   "vertices or named features yet; make a store and cut it with shard", in->path);
}

#define RANK_SECONDS 600.0 /* after which one that does not answer ends all, as .io_timeout is by default */

/* The folder of this rank's shard in `out`, which is made where it is missing. */
static gs_status begin_shard(run *r, const char *out, char **place, bool *made)
{
    char *const dir = gs_path_without_slashes(out), name[16];
    bool there = true;
    gs_status st = dir != NULL ? gs_store_check_shards(out, r->job.ranks, r->job.opt->force, &there)
                               : gs_fail(GS_ENOMEM, "%s: out of memory", out);

    if (st == GS_OK)
        snprintf(r->shard.name, sizeof(r->shard.name), "%s", gs_path_name(dir));
    gs_free(dir);
    snprintf(name, sizeof(name), "%u", r->job.rank);
    if (st == GS_OK && (*place = gs_path_join(out, name)) == NULL)
        st = gs_fail(GS_ENOMEM, "%s: out of memory", out);
    if ((st = gs_ranks_agree(st)) != GS_OK) /* before one of them is seen by others of this machine */
        return st;
    r->job.place = *place;
    *made = !there;
    if (!there && gs_mkdir(out) != GS_OK && !gs_path_is_dir(out)) /* ranks of one machine make one folder */
        return gs_mkdir(out);
    return gs_store_begin(&r->staging, *place, r->job.opt->force);
}

static gs_status partition(run *r, const char *input, const char *store_dir, gs_partition_report *report)
{
    const bool ranks = r->job.ranks > 1;
    GS_FREED char *place = NULL;
    bool made = false;
    gs_status st;

    if ((st = gs_threads_begin(r->job.threads)) == GS_OK &&
        (st = gs_part__input_open(&r->in, &r->job, input)) == GS_OK &&
        (!ranks || (st = check_ranks_input(r)) == GS_OK) &&
        (st = ranks ? begin_shard(r, store_dir, &place, &made)
                    : gs_store_begin(&r->staging, store_dir, r->job.opt->force)) == GS_OK) {
        r->job.dir = gs_staging_dir(r->staging);
        st = run_phases(r, report);
    }
    if (ranks)
        st = gs_ranks_agree(st);
    run_free(r);
    if (made && st != GS_OK)
        (void)rmdir(store_dir); /* which fails where something is inside */
    return st;
}

gs_status gs_partition(const char *input, const char *store_dir, const gs_partition_options *options,
                       gs_partition_report *report)
{
    gs_partition_options own = defaults;
    gs_dtype feature_type = GS_F32;
    run *r;
    gs_status st;

    if ((st = gs_check_argument(input, "input")) != GS_OK || (st = gs_check_argument(store_dir, "store")) != GS_OK ||
        (st = gs_options_take(&own, sizeof(own), offsetof(gs_partition_options, method), options, "options",
                              "gs_partition_options_init")) != GS_OK ||
        (st = check_options(&own)) != GS_OK || (st = parse_feature_type(&feature_type, own.feature_type)) != GS_OK ||
        (own.shards > 0 && (st = check_ranks(&own)) != GS_OK))
        return st;
    GS_NEED((r = gs_calloc(1, sizeof(*r))) != NULL, "no memory");
    gs_alloc_map_large(); /* tables are given back when they are freed */
    gs_part__job_init(&r->job, &own, store_dir);
    r->job.feature_type = feature_type;
    if (own.shards > 0) {
        gs_ranks_watch(RANK_SECONDS);
        if ((st = gs_part__job_join(&r->job, gs_ranks_count(), gs_ranks_self())) != GS_OK) {
            gs_part__job_free(&r->job);
            gs_free(r);
            return st;
        }
    }
    return partition(r, input, store_dir, report);
}
