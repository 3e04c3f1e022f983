/* chunks.c - each edge chunk sorted, laid out and written, in file order.
 *
 * A region is a run of chunks whose edges came out of one stream. Threads sort
 * regions side by side; offsets in the file are given in region order by a
 * turn that passes from region to region, so the file is the same for any
 * number of threads.
 */
#include "partition/chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/external_sort.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "partition/integers.h"
#include "store/chunk_view.h"
#include "store/store_write.h"

/* ---- what edges carry, sorted from the order of the input to that of the chunks.
 *
 *   wanted, by number  +  the input's rows, front to back  -->  rows, by run of chunks  -->  chunks, in file order
 *
 * Where edges have features, records of edges carry the number of the edge in the input, and chunks are written with
 * rows of zeros. Each edge of a chunk then asks for the row of its number: these questions are sorted by number, the
 * input's rows are read once, front to back, and go, sorted by chunk, to where they belong. A run is of consecutive
 * chunks that fit memory together. Edges of a target that have the same operand and type are put in order of what they
 * carry, so that both copies of a graph's edges, and a symmetric graph's two ends, have them in one order, whatever the
 * input's. */

#define WANTED_WORDS 3u   /* number, chunk, place */
#define MOST_BUCKETS 4096u
#define LEAST_RECORDS 64u /* of a buffer of external_sort.c */
#define PIECE_BYTES (256u * GS_KIB)

/* Bytes that hold a row of the input in any form. */
static uint64_t row_room(const gs_part_input *in) { return in->edge_features * 8ull + sizeof(float); }

/* What edges want which rows of the input: a bucket has those of 2^shift numbers. */
typedef struct wanted_rows {
    gs_external_sort *sort;
    uint32_t shift;
} wanted_rows;

/* For `threads` that put records at the same time, in `memory` bytes. */
static gs_status wanted_make(wanted_rows *wanted, const gs_part_job *job, const gs_part_input *in,
                             uint32_t threads, uint64_t memory)
{
    const uint64_t least = (uint64_t)threads * LEAST_RECORDS * WANTED_WORDS * 4;
    const uint64_t most = GS_MAX(GS_MIN(memory / least, MOST_BUCKETS), 1);
    gs_sort_spec spec = {.dir = job->dir, .name = "tmp.wanted", .writers = threads, .words = WANTED_WORDS,
                         .memory = memory};

    *wanted = (wanted_rows){0};
    while ((in->edges - 1) >> wanted->shift >= most)
        wanted->shift++;
    spec.buckets = (uint32_t)((in->edges - 1) >> wanted->shift) + 1;
    return gs_sort_make(&wanted->sort, &spec);
}

/* ---- sorted edges ------------------------------------------------------------------- */

/* Sorted edges of one chunk: keys of target row and operand row, of g->local_bits each, with payload or without. */
typedef struct run {
    const void *keys; /* [edges] u64 or gs_part_key16 */
    uint64_t edges;
    uint32_t targets, operands; /* distinct ones, once they are counted */
    uint64_t largest;           /* edges of the target that has the most, the same */
    bool payload;
    bool numbered; /* weights are the numbers of edges, as bits */
} run;

static inline uint64_t key_at(const void *keys, uint64_t i, bool payload)
{
    return payload ? ((const gs_part_key16 *)keys)[i].key : ((const uint64_t *)keys)[i];
}

/* ---- sorted edges to the arrays of a chunk. */

/* Counts the distinct rows, and sets in `seen` the bit of each operand row. */
static void run_count(run *r, uint64_t *seen, const gs_part_grid *g)
{
    const uint64_t mask = (1ull << g->local_bits) - 1;
    uint64_t before = UINT64_MAX, begin = 0, largest = 0;

    r->targets = r->operands = 0;
    for (uint64_t i = 0; i < r->edges; i++) {
        const uint64_t key = key_at(r->keys, i, r->payload);
        const uint64_t operand = key & mask, target = key >> g->local_bits;
        if (target != before) {
            r->targets++;
            largest = GS_MAX(largest, i - begin);
            begin = i;
        }
        before = target;
        const uint64_t bit = 1ull << (operand & 63);
        r->operands += (seen[operand >> 6] & bit) == 0;
        seen[operand >> 6] |= bit;
    }
    r->largest = GS_MAX(largest, r->edges - begin);
}

/* Distinct operands, ascending; clears `seen`. */
static void fill_operands(void *section, uint64_t *seen, uint32_t rows, uint32_t ix)
{
    uint64_t n = 0;
    for (uint32_t word = 0; word < (rows + 63) / 64; word++) {
        for (uint64_t bits = seen[word]; bits != 0; bits &= bits - 1)
            gs_index_put(section, ix, n++, word * 64 + (uint32_t)__builtin_ctzll(bits));
        seen[word] = 0;
    }
}

/* `degree` counts the edges of each target row. The view's arrays are const
 * for readers; here they point into our own buffer. */
static inline __attribute__((always_inline)) void fill_edges(const gs_chunk_view *view, const run *r,
                                                             const gs_part_grid *g, uint32_t *degree, uint32_t ix)
{
    const uint64_t mask = (1ull << g->local_bits) - 1;
    void *const target = (void *)(uintptr_t)view->target, *const index = (void *)(uintptr_t)view->index;
    uint32_t *const start = (uint32_t *)(uintptr_t)view->start;
    uint64_t before = UINT64_MAX, t = 0;

    for (uint64_t i = 0; i < r->edges; i++) {
        const uint64_t key = key_at(r->keys, i, r->payload), row = key >> g->local_bits & mask;
        if (row != before) {
            gs_index_put(target, ix, t, (uint32_t)row);
            start[t++] = (uint32_t)i;
            before = row;
        }
        gs_index_put(index, ix, i, (uint32_t)(key & mask));
    }
    start[t] = (uint32_t)r->edges;
    for (uint64_t i = 0; i < t; i++) {
        const uint32_t row = gs_index_at(target, ix, i);
        __atomic_fetch_add(&degree[row], start[i + 1] - start[i], __ATOMIC_RELAXED);
    }
}

static void fill_payload(const gs_chunk_view *view, const run *r)
{
    const gs_part_key16 *keys = r->keys;
    float *const weight = r->numbered ? NULL : (float *)(uintptr_t)view->weight;

    if (view->type != NULL)
        for (uint64_t i = 0; i < r->edges; i++)
            gs_type_put(view->type, view->type_bytes, i, keys[i].type);
    if (weight != NULL)
        for (uint64_t i = 0; i < r->edges; i++)
            weight[i] = keys[i].weight;
}

/* Fills the arrays of `view`, which point into the caller's own zeroed buffer, and clears `seen`, which has a bit for
 * each of `operand_rows`. Adds the edges of each target row to `degree`, as other threads may at the same time. */
static void run_fill(const gs_chunk_view *view, const run *r, const gs_part_grid *g, uint32_t operand_rows,
                       uint32_t *degree, uint64_t *seen)
{
    if (view->index_bytes == 2)
        fill_edges(view, r, g, degree, 2);
    else
        fill_edges(view, r, g, degree, 4);
    fill_operands((void *)(uintptr_t)view->operand, seen, operand_rows, view->index_bytes);
    if (r->payload)
        fill_payload(view, r);
}

/* ---- chunks in file order --------------------------------------------------------- */

#define STAGE_RECORDS 4096u
#define LEAST_OUT_BYTES (256u * GS_KIB)
#define LEAST_CAP 1024u
#define FIXED_BYTES (512u * GS_KIB)   /* a thread's buffers that do not grow with the edges */
#define OVERHEAD_BYTES (2u * 4096u)   /* a chunk's header, alignment of sections, padding */

typedef struct writing {
    gs_part_job *job;
    const gs_part_chunks_spec *spec;
    gs_part_grid grid;
    uint64_t cap; /* most edges sorted at once */
    uint64_t chunks;
    wanted_rows wanted;
    int fd;
    char *path;
    pthread_mutex_t lock; /* guards turn and end */
    pthread_cond_t passed;
    uint64_t turn; /* region that may take file space */
    uint64_t end;  /* of the file */
} writing;

/* One thread's buffers and place. */
typedef struct worker {
    writing *w;
    void *keys, *spare; /* [cap] u64 or gs_part_key16 */
    uint32_t *stage;    /* records as they come */
    uint64_t *seen;     /* a bit for each row of an interval; all 0 between chunks */
    char *out;          /* laid out chunks, not yet in the file */
    uint64_t out_bytes, out_cap;
    uint64_t out_first, out_next; /* chunks in `out` */
    uint64_t region;
    bool has_turn;
    gs_arena memory;
} worker;

static uint64_t edge_bytes(const gs_part_chunk_kind *k)
{
    return (k->rows <= 65536 ? 2u : 4u) + (k->data.type_bytes > 0 ? 2u : 0u) + (k->data.weights ? 4u : 0u) +
           (uint64_t)k->data.feature_bytes;
}

/* Is there more than their ends to sort edges by? */
static bool has_payload(gs_edge_data d) { return d.type_bytes > 0 || d.weights || d.feature_bytes > 0; }

/* Bytes of a distinct target (its number and its start) and a distinct operand. */
static uint64_t row_bytes(const gs_part_chunk_kind *k) { return 4u + 2 * (k->rows <= 65536 ? 2u : 4u); }

uint64_t gs_part__chunk_edges(uint64_t bytes, const gs_part_chunk_kind *kind)
{
    const uint64_t left = bytes > OVERHEAD_BYTES ? bytes - OVERHEAD_BYTES : 0, rows = kind->rows * row_bytes(kind);
    /* Every edge may have rows of its own, but no chunk has more rows than its intervals. */
    const uint64_t sparse = left / (edge_bytes(kind) + row_bytes(kind));
    return left > rows ? GS_MAX(sparse, (left - rows) / edge_bytes(kind)) : sparse;
}

static uint64_t chunk_bytes(uint64_t edges, const gs_part_chunk_kind *kind)
{
    return edges * edge_bytes(kind) + GS_MIN(edges, kind->rows) * row_bytes(kind) + OVERHEAD_BYTES;
}

uint64_t gs_part__chunk_cap(uint32_t threads, uint64_t memory, const gs_part_chunk_kind *kind)
{
    const uint64_t share = memory / threads, key = 2 * (has_payload(kind->data) ? sizeof(gs_part_key16) : 8);
    const uint64_t left = share > FIXED_BYTES ? share - FIXED_BYTES : 0, rows = kind->rows * row_bytes(kind);
    const uint64_t sparse = left / (key + edge_bytes(kind) + row_bytes(kind));
    const uint64_t cap = left > rows ? GS_MAX(sparse, (left - rows) / (key + edge_bytes(kind))) : sparse;
    return GS_MIN(GS_MAX(cap, LEAST_CAP), UINT32_MAX - 1); /* a chunk's starts are u32 */
}

/* -- the turn ---------------------------------------------------------------- */

static gs_status take_turn(worker *k)
{
    writing *const w = k->w;

    if (k->has_turn)
        return GS_OK;
    pthread_mutex_lock(&w->lock);
    while (w->turn != k->region && !gs_part__job_stop(w->job))
        pthread_cond_wait(&w->passed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    k->has_turn = true;
    return gs_part__job_result(w->job);
}

static void pass_turn(worker *k)
{
    pthread_mutex_lock(&k->w->lock);
    k->w->turn++;
    pthread_cond_broadcast(&k->w->passed);
    pthread_mutex_unlock(&k->w->lock);
    k->has_turn = false;
}

/* After a failure nobody's turn comes: wakes all who wait. */
static void wake_all(writing *w)
{
    pthread_mutex_lock(&w->lock);
    pthread_cond_broadcast(&w->passed);
    pthread_mutex_unlock(&w->lock);
}

/* Gives the chunks in `out` their place and writes them. With `last` the turn
 * is passed before the write, which then overlaps the next region's. */
static gs_status flush(worker *k, bool last)
{
    writing *const w = k->w;
    const uint64_t bytes = k->out_bytes;

    GS_TRY(take_turn(k));
    const uint64_t base = w->end; /* only who has the turn reads or moves it */
    w->end += bytes;
    if (last)
        pass_turn(k);
    for (uint64_t c = k->out_first; c < k->out_next; c++)
        if (w->spec->chunk[c].length != 0)
            w->spec->chunk[c].offset += base;
    k->out_first = k->out_next;
    k->out_bytes = 0;
    return bytes == 0 ? GS_OK : gs_pwrite_exact(w->fd, k->out, bytes, base, w->path);
}

/* -- one chunk ---------------------------------------------------------------- */

/* Each edge says which row of the input is its own. */
static gs_status want_rows(const wanted_rows *wanted, uint32_t chunk, const run *r)
{
    const gs_part_key16 *const keys = r->keys;

    for (uint64_t i = 0; i < r->edges; i++) {
        uint32_t record[WANTED_WORDS] = {0, chunk, (uint32_t)i}; /* number, chunk, place */
        memcpy(&record[0], &keys[i].weight, sizeof(record[0]));
        GS_TRY(gs_sort_append(wanted->sort, (uint32_t)omp_get_thread_num(), record[0] >> wanted->shift, record, 1));
    }
    return GS_OK;
}

/* Lays chunk `c` out behind what `out` holds, flushing first if it must. */
static gs_status put_chunk(worker *k, uint64_t c, run *r)
{
    const writing *const w = k->w;
    const gs_part_chunks_spec *const spec = w->spec;
    const gs_part_grid *const g = &w->grid;
    const uint32_t ix = g->rows <= 65536 ? 2 : 4, target = (uint32_t)(c / g->parts), operand = (uint32_t)(c % g->parts);
    gs_chunk_view view;

    run_count(r, k->seen, g);
    const uint64_t bytes = gs_chunk_bytes(r->edges, r->targets, r->operands, ix, spec->data);
    if (bytes > k->out_cap)
        return gs_fail(GS_EBUDGET, "chunk (%u, %u): %lu bytes do not fit the write buffer; use more .parts", target,
                       operand, bytes);
    if (k->out_bytes + bytes > k->out_cap)
        GS_TRY(flush(k, false));
    const gs_chunk_expect counts = {.target_rows = gs_part__grid_capacity(g, target),
                                    .operand_rows = gs_part__grid_capacity(g, operand),
                                    .index_bytes = ix,
                                    .edges = r->edges,
                                    .targets = r->targets,
                                    .operands = r->operands};
    char *const data = k->out + k->out_bytes;
    uint32_t *const degree = spec->degrees->count[spec->direction] + (uint64_t)target * g->rows;
    memset(data, 0, bytes);
    gs_chunk_layout(&view, data, &counts, spec->data);
    run_fill(&view, r, g, counts.operand_rows, degree, k->seen);
    spec->chunk[c] = (gs_chunk){.offset = k->out_bytes,
                                .length = bytes,
                                .edges = r->edges,
                                .checksum = gs_hash64(data, bytes),
                                .targets = r->targets,
                                .operands = r->operands,
                                .largest = r->largest};
    k->out_bytes += bytes;
    k->out_next = c + 1;
    return spec->apart > 0 ? want_rows(&w->wanted, (uint32_t)c, r) : GS_OK;
}

/* -- one region ---------------------------------------------------------------- */

/* Records to sort keys: chunk within the region, target row, operand row. */
static void make_keys(worker *k, const uint32_t *records, uint64_t at, uint64_t count, uint64_t first_chunk)
{
    const gs_part_chunks_spec *const spec = k->w->spec;
    const gs_part_grid *const g = &k->w->grid;
    const uint32_t *const position = spec->order->position;
    const bool by_dest = spec->direction == GS_BY_DEST, payload = has_payload(spec->data),
               typed = spec->data.type_bytes > 0;
    uint32_t *const loops = by_dest ? spec->degrees->loops : NULL;

    for (uint64_t i = 0; i < count; i++, records += spec->words) {
        const uint32_t target = position[records[by_dest]], operand = position[records[!by_dest]];
        const uint32_t ti = gs_fastdiv_of(g->by_rows, target), oi = gs_fastdiv_of(g->by_rows, operand);
        const uint64_t chunk = (uint64_t)ti * g->parts + oi - first_chunk;
        const uint64_t key = (chunk << g->local_bits | (target - ti * g->rows)) << g->local_bits |
                             (operand - oi * g->rows);
        if (loops != NULL && target == operand)
            __atomic_fetch_add(&loops[target], 1, __ATOMIC_RELAXED);
        if (!payload) {
            ((uint64_t *)k->keys)[at + i] = key;
            continue;
        }
        gs_part_key16 *const to = (gs_part_key16 *)k->keys + at + i;
        *to = (gs_part_key16){.key = key, .type = typed ? records[2] : 0};
        if (spec->apart > 0 || spec->data.weights)
            memcpy(&to->weight, &records[2 + typed], 4);
    }
}

static gs_status load(worker *k, const gs_sort_part *p, uint64_t *edges)
{
    gs_sort_cursor at = gs_sort_first(p->sort, p->bucket);
    uint64_t count = 1;

    *edges = 0;
    while (count != 0) {
        GS_TRY(gs_sort_read(p->sort, &at, k->stage, STAGE_RECORDS, &count));
        make_keys(k, k->stage, *edges, count, p->first);
        *edges += count;
    }
    return GS_OK;
}

/* A run of chunks that fits memory. */
static gs_status write_run(void *context, const gs_sort_part *p)
{
    worker *const k = context;
    const uint64_t first = p->first, chunks = p->keys;
    const gs_part_grid *const g = &k->w->grid;
    const gs_part_chunks_spec *const spec = k->w->spec;
    const bool payload = has_payload(spec->data);
    const uint32_t bits = gs_part__bits(chunks) + 2 * g->local_bits, type_bits = spec->data.type_bytes > 0 ? 16 : 0;
    uint64_t edges;

    GS_TRY(load(k, p, &edges));
    const char *const keys =
        payload ? (char *)gs_part__sort16(k->keys, k->spare, edges, bits, g->local_bits, type_bits)
                : (char *)gs_part__sort8(k->keys, k->spare, edges, bits);
    for (uint64_t i = 0, end; i < edges; i = end) {
        const uint64_t chunk = key_at(keys, i, payload) >> g->local_bits >> g->local_bits;
        for (end = i + 1; end < edges; end++)
            if (key_at(keys, end, payload) >> g->local_bits >> g->local_bits != chunk)
                break;
        run r = {
            .keys = keys + i * (payload ? sizeof(gs_part_key16) : 8), .edges = end - i, .payload = payload,
            .numbered = spec->apart > 0};
        GS_TRY(put_chunk(k, first + chunk, &r));
    }
    k->out_next = first + chunks;
    return GS_OK;
}

static uint64_t chunk_of(void *context, const uint32_t *record)
{
    const worker *const k = context;
    const gs_part_grid *const g = &k->w->grid;
    const uint32_t *const position = k->w->spec->order->position;
    const bool by_dest = k->w->spec->direction == GS_BY_DEST;

    return (uint64_t)gs_fastdiv_of(g->by_rows, position[record[by_dest]]) * g->parts +
           gs_fastdiv_of(g->by_rows, position[record[!by_dest]]);
}

static gs_status check_job(void *context)
{
    const worker *const k = context;
    return gs_part__job_stop(k->w->job) ? gs_part__job_result(k->w->job) : GS_OK;
}

static gs_status too_many_edges(void *context, uint64_t chunk, uint64_t edges)
{
    const writing *const w = ((const worker *)context)->w;
    return gs_fail(GS_EBUDGET, "chunk (%lu, %lu): %lu edges, but %lu fit the memory bound; use more .parts or .memory",
                   chunk / w->grid.parts, chunk % w->grid.parts, edges, w->cap);
}

/* -- all regions ---------------------------------------------------------------- */

static void worker_free(worker *k)
{
    gs_arena_free(&k->memory);
    gs_free_pages(k->out, k->out_cap);
}

static gs_status worker_make(worker *k, writing *w, uint64_t most)
{
    const gs_part_chunk_kind kind = {w->grid.rows, w->spec->data};
    const uint64_t cap = GS_MIN(w->cap, most);
    const size_t key = has_payload(w->spec->data) ? sizeof(gs_part_key16) : 8;

    memset(k, 0, sizeof(*k));
    k->w = w;
    k->out_cap = GS_MAX(gs_align_up(chunk_bytes(cap, &kind), GS_BLOCK_BYTES), LEAST_OUT_BYTES);
    k->keys = gs_arena_take(&k->memory, cap + 1, key);
    k->spare = gs_arena_take(&k->memory, cap + 1, key);
    k->stage = gs_arena_take(&k->memory, STAGE_RECORDS, w->spec->words * 4u);
    k->seen = gs_arena_take(&k->memory, ((uint64_t)w->grid.rows + 63) / 64, 8);
    k->out = gs_alloc_pages(k->out_cap);
    GS_NEED(!k->memory.is_short && k->out != NULL, "no memory to sort chunks of %lu edges", cap);
    return GS_OK;
}

static void write_region(worker *k, uint64_t region)
{
    writing *const w = k->w;
    const gs_external_sort *const s = w->spec->order->chunked[w->spec->direction];
    const uint32_t shift = w->spec->order->region_shift;
    const uint64_t first = region << shift;
    const gs_sort_visitor v = {.most = w->cap, .memory = FIXED_BYTES / 4, .context = k, .visit = write_run,
                               .key = chunk_of, .check = check_job, .too_many = too_many_edges};

    if (region + 1 < s->spec.buckets)
        gs_sort_prefetch(s, (uint32_t)region + 1);
    gs_part__tick(w->job, "writing chunks",
                  w->spec->progress_from +
                      (w->spec->progress_to - w->spec->progress_from) * (double)region / (double)s->spec.buckets);
    k->region = region;
    k->has_turn = false;
    k->out_bytes = 0;
    k->out_first = k->out_next = first;
    gs_status st = gs_sort_visit(s, (uint32_t)region, first, GS_MIN(w->chunks - first, 1ull << shift), &v);
    if (st == GS_OK)
        st = flush(k, true);
    if (st != GS_OK) {
        gs_part__job_fail(w->job, st);
        wake_all(w);
    }
}

static gs_status write_all(writing *w)
{
    const gs_external_sort *const s = w->spec->order->chunked[w->spec->direction];
    const uint64_t most = gs_sort_most_records(s);

#pragma omp parallel num_threads(w->spec->threads)
    {
        worker k;
        gs_part__job_fail(w->job, worker_make(&k, w, most));
        /* dynamic, 1: a region starts only after all before it, so turns come */
#pragma omp for schedule(monotonic : dynamic, 1)
        for (uint64_t region = 0; region < s->spec.buckets; region++) {
            if (gs_part__job_stop(w->job))
                wake_all(w); /* this region's turn will not be passed on */
            else
                write_region(&k, region);
        }
        worker_free(&k);
    }
    return gs_part__job_result(w->job);
}

static void writing_end(writing *w)
{
    gs_close_at(&w->fd);
    gs_free(w->path);
    gs_sort_free(w->wanted.sort);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->passed);
}

/* ---- from the input, by number, to runs of chunks ------------------------- */

typedef struct row_moving {
    const writing *w;
    uint64_t *first;        /* [runs + 1] chunk */
    uint32_t runs;
    uint32_t words;         /* of a record: chunk, place, [weight], features */
    gs_external_sort *rows; /* by run */
    /* input rows [from, from + have) */
    uint64_t from, have, room;
    char *raw;
    float *weight, *row;
    uint32_t *piece;        /* of records */
    gs_arena memory;
} row_moving;

static uint64_t payload_bytes(const gs_edge_data *data)
{
    return (data->weights ? sizeof(float) : 0) + data->feature_bytes;
}

static gs_status load_rows(row_moving *m, uint64_t from, uint64_t count)
{
    const gs_part_input *const in = m->w->spec->in;
    char *const raw = m->raw + m->room * in->edge_features * 8; /* behind the features */

    m->from = from;
    m->have = count;
    GS_TRY(gs_npy_read_rows(&in->edge_feature.npy, m->raw, from, count, in->edge_feature.path));
    if (!in->weighted)
        return GS_OK;
    GS_TRY(gs_npy_read_rows(&in->weight.npy, raw, from, count, in->weight.path));
    gs_part__to_f32(m->weight, raw, in->weight.npy.dtype, count);
    return GS_OK;
}

static gs_status name_bad_number(const row_moving *m, uint64_t number, const char *at_rest)
{
    const gs_part_input *const in = m->w->spec->in;
    const gs_dtype type = m->w->job->feature_type;

    for (uint32_t c = 0; c < in->edge_features; c++) {
        float back = m->row[c];
        if (!isfinite(back))
            return gs_fail(GS_EFORMAT, "%s: row %lu, column %u: the value is not a finite float32; replace it",
                           in->edge_feature.path, number, c);
        gs_convert_to_f32(&back, at_rest + c * gs_dtype_bytes(type), type, 1);
        if (!isfinite(back))
            return gs_fail(GS_EFORMAT, "%s: row %lu, column %u: %g is too large for %s; use .feature_type f32",
                           in->edge_feature.path, number, c, (double)m->row[c], gs_dtype_name(type));
    }
    return GS_OK;
}

/* The row of an edge, as chunks have it, to `to`. */
static gs_status convert_row(row_moving *m, uint64_t number, char *to)
{
    const gs_part_input *const in = m->w->spec->in;
    const gs_npy *const npy = &in->edge_feature.npy;
    const uint64_t k = number - m->from, size = gs_dtype_bytes(npy->dtype);
    const gs_dtype type = m->w->job->feature_type;
    uint32_t finite = 1;
    float back[64];

    if (in->weighted) {
        memcpy(to, &m->weight[k], sizeof(float));
        to += sizeof(float);
    }
    gs_part__to_f32(m->row, m->raw + k * in->edge_features * size, npy->dtype, in->edge_features);
    gs_convert_from_f32(to, type, m->row, in->edge_features);
    for (uint32_t c = 0; c < in->edge_features; c += GS_ARRAY_LEN(back)) {
        const uint32_t n = (uint32_t)GS_MIN(GS_ARRAY_LEN(back), in->edge_features - c);
        gs_convert_to_f32(back, to + c * gs_dtype_bytes(type), type, n);
        for (uint32_t i = 0; i < n; i++)
            finite &= isfinite(back[i]) != 0;
    }
    return finite ? GS_OK : name_bad_number(m, number, to);
}

static uint32_t run_of(const row_moving *m, uint64_t chunk)
{
    uint32_t low = 1, high = m->runs;
    GS_BISECT(low, high, m->first[middle] <= chunk);
    return low - 1;
}

/* The rows of the loaded numbers that the bucket's edges want. */
static gs_status answer(row_moving *m, uint32_t bucket)
{
    const uint64_t cap = PIECE_BYTES / (WANTED_WORDS * 4);
    gs_sort_cursor at = gs_sort_first(m->w->wanted.sort, bucket);

    for (uint64_t count = 1; count > 0;) {
        GS_TRY(gs_sort_read(m->w->wanted.sort, &at, m->piece, cap, &count));
        for (uint64_t i = 0; i < count; i++) {
            const uint32_t *const want = m->piece + i * WANTED_WORDS;
            if (want[0] < m->from || want[0] >= m->from + m->have)
                continue;
            uint32_t *const record = gs_sort_put(m->rows, 0, run_of(m, want[1]));
            if (record == NULL)
                return gs_sort_failure(m->rows);
            record[m->words - 1] = 0; /* of which features may leave some bytes */
            record[0] = want[1];
            record[1] = want[2];
            GS_TRY(convert_row(m, want[0], (char *)(record + 2)));
        }
    }
    return GS_OK;
}

static gs_status answer_all(row_moving *m)
{
    const gs_external_sort *const s = m->w->wanted.sort;
    const uint64_t edges = m->w->spec->in->edges;

    for (uint32_t b = 0; b < s->spec.buckets; b++) {
        const uint32_t shift = m->w->wanted.shift;
        const uint64_t first = (uint64_t)b << shift, end = GS_MIN(edges, first + (1ull << shift));
        for (uint64_t at = first; at < end; at += m->have) {
            gs_part__tick(m->w->job, "moving edge features", (double)at / (double)edges);
            GS_TRY(gs_part__job_result(m->w->job));
            GS_TRY(load_rows(m, at, GS_MIN(m->room, end - at)));
            GS_TRY(answer(m, b));
        }
    }
    return gs_sort_finish(m->rows);
}

/* ---- from runs to chunks ---------------------------------------------------- */

typedef struct filling {
    const row_moving *m;
    char *bytes; /* of the run's chunks */
    uint64_t offset;
} filling;

static void view_of(const filling *f, gs_chunk_view *view, uint64_t chunk)
{
    const gs_part_grid *const g = &f->m->w->spec->order->grid;
    const gs_chunk *const c = &f->m->w->spec->chunk[chunk];
    const gs_chunk_expect expect = {.index_bytes = g->rows <= 65536 ? 2 : 4, .edges = c->edges, .targets = c->targets,
                                    .operands = c->operands, .largest = c->largest};
    gs_chunk_view_place(view, f->bytes + (c->offset - f->offset), &expect, f->m->w->spec->data);
}

/* What edge k carries beside its type, in one piece. */
static void take_payload(const gs_chunk_view *v, uint64_t k, char *to)
{
    if (v->weight != NULL) {
        memcpy(to, &v->weight[k], sizeof(float));
        to += sizeof(float);
    }
    memcpy(to, (const char *)v->feature + k * v->feature_bytes, v->feature_bytes);
}

static void put_payload(const gs_chunk_view *v, uint64_t k, const char *from)
{
    if (v->weight != NULL) {
        memcpy((float *)(uintptr_t)v->weight + k, from, sizeof(float));
        from += sizeof(float);
    }
    memcpy((char *)(uintptr_t)v->feature + k * v->feature_bytes, from, v->feature_bytes);
}

static int by_bytes(const void *a, const void *b, void *bytes) { return memcmp(a, b, *(const uint64_t *)bytes); }

/* Edges [first, end) are parallel. */
static gs_status order_parallels(const gs_chunk_view *v, uint64_t first, uint64_t end, uint64_t bytes)
{
    GS_FREED char *const all = gs_malloc_array(end - first, bytes);

    GS_NEED(all != NULL, "no memory to order %lu parallel edges", end - first);
    for (uint64_t k = first; k < end; k++)
        take_payload(v, k, all + (k - first) * bytes);
    qsort_r(all, end - first, bytes, by_bytes, &bytes);
    for (uint64_t k = first; k < end; k++)
        put_payload(v, k, all + (k - first) * bytes);
    return GS_OK;
}

/* Of one target: do they name the same row, and have the same type? */
static bool are_parallel(const gs_chunk_view *v, uint64_t a, uint64_t b)
{
    return gs_index_at(v->index, v->index_bytes, a) == gs_index_at(v->index, v->index_bytes, b) &&
           (v->type == NULL || gs_type_at(v->type, v->type_bytes, a) == gs_type_at(v->type, v->type_bytes, b));
}

static gs_status order_edges(const gs_chunk_view *v, uint64_t bytes)
{
    for (uint32_t t = 0; t < v->targets; t++)
        for (uint64_t k = v->start[t], end; k < v->start[t + 1]; k = end) {
            for (end = k + 1; end < v->start[t + 1] && are_parallel(v, k, end); end++)
                ;
            if (end - k > 1)
                GS_TRY(order_parallels(v, k, end, bytes));
        }
    return GS_OK;
}

/* Rows of the run to their chunks, which are in f->bytes. */
static gs_status place_rows(const filling *f, uint32_t k)
{
    const row_moving *const m = f->m;
    const uint64_t cap = GS_MAX(PIECE_BYTES / (m->words * 4), 1);
    gs_sort_cursor at = gs_sort_first(m->rows, k);

    for (uint64_t count = 1; count > 0;) {
        GS_TRY(gs_sort_read(m->rows, &at, m->piece, cap, &count));
        for (uint64_t i = 0; i < count; i++) {
            const uint32_t *const record = m->piece + i * m->words;
            gs_chunk_view v;
            view_of(f, &v, record[0]);
            put_payload(&v, record[1], (const char *)(record + 2));
        }
    }
    return GS_OK;
}

static gs_status fill_run(filling *f, uint32_t k)
{
    const row_moving *const m = f->m;
    gs_chunk *const chunk = m->w->spec->chunk;
    uint64_t first = m->first[k], end = m->first[k + 1], bytes = 0;

    for (uint64_t c = first; c < end; c++)
        bytes += chunk[c].length;
    while (first < end && chunk[first].edges == 0)
        first++;
    if (first == end)
        return GS_OK;
    f->offset = chunk[first].offset;
    GS_TRY(gs_pread_exact(f->m->w->fd, f->bytes, bytes, f->offset, f->m->w->path));
    GS_TRY(place_rows(f, k));
    for (uint64_t c = first; c < end; c++) {
        gs_chunk_view v;
        if (chunk[c].edges == 0)
            continue;
        view_of(f, &v, c);
        GS_TRY(order_edges(&v, payload_bytes(&m->w->spec->data)));
        chunk[c].checksum = gs_hash64(f->bytes + (chunk[c].offset - f->offset), chunk[c].length);
    }
    return gs_pwrite_exact(f->m->w->fd, f->bytes, bytes, f->offset, f->m->w->path);
}

static gs_status fill_all(const row_moving *m, uint64_t most)
{
    filling f = {.m = m, .bytes = gs_alloc_pages(most)};
    gs_status st = f.bytes != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to fill chunks", m->w->job->dir);

    for (uint32_t r = 0; r < m->runs && st == GS_OK; r++)
        if ((st = gs_part__job_result(m->w->job)) == GS_OK)
            st = fill_run(&f, r);
    gs_free_pages(f.bytes, most);
    return st;
}

/* ---- the whole ------------------------------------------------------------- */

/* Cuts the chunks into runs of at most `bytes`, or one chunk; gives the bytes and edges of the largest. With `first`
 * NULL it counts. */
static uint32_t cut_runs(const row_moving *m, uint64_t bytes, uint64_t *first, uint64_t *most_bytes,
                         uint64_t *most_edges)
{
    const gs_chunk *const chunk = m->w->spec->chunk;
    uint64_t length = 0, edges = 0;
    uint32_t runs = 0;

    for (uint64_t c = 0; c <= m->w->chunks; c++) {
        const bool begins = c == 0 || c == m->w->chunks || (length > 0 && length + chunk[c].length > bytes);
        if (begins) {
            if (first != NULL)
                first[runs] = c;
            runs += c < m->w->chunks;
            length = edges = 0;
        }
        if (c < m->w->chunks) {
            length += chunk[c].length;
            edges += chunk[c].edges;
        }
        *most_bytes = GS_MAX(*most_bytes, length);
        *most_edges = GS_MAX(*most_edges, edges);
    }
    return runs;
}

static gs_status make_rows_sort(row_moving *m, uint64_t memory, uint64_t most_edges)
{
    const gs_sort_spec spec = {.dir = m->w->job->dir, .name = "tmp.edge_rows", .buckets = m->runs, .writers = 1,
                               .words = m->words, .memory = memory, .each = most_edges};
    return gs_sort_make(&m->rows, &spec);
}

static gs_status make_buffers(row_moving *m, uint64_t memory)
{
    const gs_part_input *const in = m->w->spec->in;

    m->room = GS_MAX(GS_MIN(memory / row_room(in), in->edges), 1);
    m->raw = gs_arena_take(&m->memory, m->room, in->edge_features * 8ull + 8);
    m->weight = gs_arena_take(&m->memory, m->room, sizeof(float));
    m->row = gs_arena_take(&m->memory, in->edge_features, sizeof(float));
    m->piece = gs_arena_take(&m->memory, GS_MAX(PIECE_BYTES, m->words * 4u), 1);
    GS_NEED(!m->memory.is_short, "%s: no memory to move the features of edges", m->w->job->dir);
    return GS_OK;
}

static void row_moving_end(row_moving *m)
{
    gs_sort_free(m->rows);
    gs_arena_free(&m->memory);
}

/* Fills the file's chunks, once all edges have said what they want. */
static gs_status move_rows(writing *w)
{
    const uint64_t memory = w->spec->memory + w->spec->apart;
    GS_ENDS(row_moving_end) row_moving m = {.w = w, .words = 2 + (uint32_t)gs_div_up(payload_bytes(&w->spec->data), 4)};
    uint64_t most_bytes = GS_BLOCK_BYTES, most_edges = 1;

    GS_TRY(gs_sort_finish(w->wanted.sort));
    m.runs = cut_runs(&m, memory / 2, NULL, &most_bytes, &most_edges);
    GS_NEED((m.first = gs_arena_take(&m.memory, m.runs + 1ull, sizeof(*m.first))) != NULL,
            "%s: no memory for runs of chunks", w->job->dir);
    cut_runs(&m, memory / 2, m.first, &most_bytes, &most_edges);
    GS_TRY(make_buffers(&m, memory / 4));
    GS_TRY(make_rows_sort(&m, memory / 4, most_edges));
    GS_TRY(answer_all(&m));
    gs_sort_free(w->wanted.sort);
    w->wanted.sort = NULL;
    return fill_all(&m, most_bytes);
}

gs_status gs_part__chunks_write(gs_part_job *job, const gs_part_chunks_spec *spec)
{
    GS_ENDS(writing_end) writing w = {.job = job, .spec = spec, .grid = spec->order->grid, .fd = -1};
    const gs_part_chunk_kind kind = {w.grid.rows, spec->data};
    w.chunks = (uint64_t)w.grid.parts * w.grid.parts;
    w.cap = gs_part__chunk_cap(spec->threads, spec->memory, &kind);
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.passed, NULL);
    if (gs_part__bits(1ull << spec->order->region_shift) + 2 * w.grid.local_bits > 64)
        return gs_fail(GS_EUNSUPPORTED, "%u parts of %lu vertices: use a number of parts that is a power of two",
                       w.grid.parts, w.grid.vertices);
    if (spec->apart > 0)
        GS_TRY(wanted_make(&w.wanted, job, spec->in, spec->threads, spec->apart));
    if ((w.path = gs_path_join(job->dir, gs_store_edges_name(spec->direction))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", job->dir);
    if ((w.fd = open(w.path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) < 0)
        return gs_fail_errno(errno, "%s: cannot make this file", w.path);
    GS_TRY(write_all(&w));
    gs_sort_free(spec->order->chunked[spec->direction]);
    spec->order->chunked[spec->direction] = NULL;
    return spec->apart > 0 ? move_rows(&w) : GS_OK;
}
