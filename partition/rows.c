/* rows.c - rows of features, or of labels, from input order to store order, in bounded memory.
 *
 * The input is read front to back. Store order consists of `groups` runs of ascending input ids, so at most two windows
 * of the output a group are open at a time (windows). Where they do not fit memory, the input is read again for each
 * range of positions, or, where that takes more, rows go by way of buckets on disk (buckets). Ranks read a share each,
 * and send rows to those whose windows they are in.
 */
#include "partition/rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/philox.h"
#include "base/size.h"
#include "io/io.h"
#include "partition/exchange.h"
#include "ranks/ranks.h"
#include "store/store.h" /* GS_SUM_BYTES */

/* One thread. Units: bytes, positions in store order. */
#define PIECES 4u                 /* in memory: one in use, the others being read */
#define WRITES 32u                /* under way, at most */

typedef struct row_job row_job;

/* Memory cut into equal slots: filled, then written, then free again. */
typedef struct row_pool {
    char *data; /* [slots][slot_bytes] */
    uint64_t bytes, slot_bytes;
    uint32_t slots, vacancies, most_writes, writes;
    uint32_t *vacant; /* [slots] stack of free slots */
    uint32_t *filled; /* [slots] bytes */
    gs_io_request *written; /* [slots] what is being written of each */
} row_pool;

struct row_job {
    gs_part_job *job;
    const gs_part_input *in;
    const gs_part_order *o;
    gs_array_id id; /* that is made: features, or labels that are rows */
    gs_dtype dtype;
    uint64_t row_bytes, bytes, windows;
    uint64_t piece_bytes; /* of a read, but for rows longer than that: they are read one by one */
    const gs_store_shard *shard; /* rows are read in shares and go to whose windows they are in; NULL: all are here */
    gs_extent here; /* bytes of the whole array that are this rank's */
    uint64_t begin, end; /* positions of the rows in them */
    uint64_t low, high; /* positions of this pass */
    uint64_t lows[GS_SHARDS_MOST][2]; /* the same of each rank */
    gs_part_post *post;
    gs_status (*put)(row_job *r, uint64_t position, const char *row); /* a row as it is at rest */
    uint32_t *slot; /* [windows] which slot holds it, NO_SLOT */
    uint64_t *sums; /* [windows] */
    row_pool pool;
    struct row_buckets *bucket; /* owned; NULL: not needed so far */
    uint64_t read_done[PIECES]; /* 1 + number of the piece that its buffer holds, by buffer */
    float *row;    /* one row as f32 */
    void *aligned; /* one row as in the input, where a file's header leaves it unaligned */
    void *at_rest; /* one row as it is stored */
    gs_io_request reading[PIECES]; /* by buffer */
    gs_io *io;
    uint32_t source, file; /* of `io`; source: dense input only */
    char *path;
    gs_arena memory; /* of all but pages, buckets and sums */
};

#define NO_SLOT UINT32_MAX

/* ---- slots of memory, filled and written, and reads that run ahead. */

#define WRITE_TAG (1ull << 32)

/* Waits for one read or write and takes note of it. */
static gs_status reap(row_job *r)
{
    gs_io_completion done;

    if (gs_io_reap(r->io, &done, 1, true) == 0)
        return gs_fail(GS_EIO, "%s: nothing is being read or written that could be waited for", r->path);
    const bool write = done.tag >= WRITE_TAG;
    const uint64_t which = write ? done.tag - WRITE_TAG : done.tag % PIECES;
    if (done.status != GS_OK)
        return gs_io_explain(r->io, write ? &r->pool.written[which] : &r->reading[which], &done);
    if (write) {
        r->pool.vacant[r->pool.vacancies++] = (uint32_t)which;
        r->pool.writes--;
    } else {
        r->read_done[which] = done.tag + 1;
    }
    return GS_OK;
}

/* Under way at once: what follows is computing. */
static gs_status submit(row_job *r, const gs_io_request *request)
{
    GS_TRY(gs_io_submit(r->io, request));
    gs_io_reap(r->io, NULL, 0, false);
    return GS_OK;
}

/* Reads are numbered, from 0 after this; piece `number` goes to buffer number % PIECES. */
static void begin_reading(row_job *r) { memset(r->read_done, 0, sizeof(r->read_done)); }

/* Begins to read whole blocks, of which the file must have `needed` bytes, into that buffer. */
static gs_status read_piece(row_job *r, uint32_t file, uint64_t number, char *buffer, uint64_t offset, uint64_t bytes,
                              uint64_t needed)
{
    gs_io_request *const q = &r->reading[number % PIECES];
    *q = (gs_io_request){
        .file = file, .offset = offset, .length = bytes, .needed = needed, .memory = buffer, .tag = number};
    return submit(r, q);
}

/* Waits until the piece is in its buffer. */
static gs_status wait_piece(row_job *r, uint64_t number)
{
    while (r->read_done[number % PIECES] != number + 1)
        GS_TRY(reap(r));
    return GS_OK;
}

/* After a failure: what is under way must not outlive its memory. */
static void abandon(row_job *r)
{
    gs_io_completion done;
    while (gs_io_reap(r->io, &done, 1, true) != 0)
        ;
}

/* Waits for all writes. */
static gs_status drain(row_job *r)
{
    while (r->pool.writes != 0)
        GS_TRY(reap(r));
    return GS_OK;
}

/* A pool for slots of this size; nothing may be under way. */
static void cut_pool(row_job *r, uint64_t slot_bytes)
{
    row_pool *const p = &r->pool;

    p->slot_bytes = slot_bytes;
    p->slots = p->vacancies = (uint32_t)(p->bytes / slot_bytes);
    p->most_writes = GS_MAX(GS_MIN(WRITES, p->slots / 4), 1);
    for (uint32_t i = 0; i < p->slots; i++)
        p->vacant[i] = i;
}

/* A free slot; waits for writes. GS_EBUDGET where none are under way. */
static gs_status take_slot(row_job *r, uint32_t *slot)
{
    row_pool *const p = &r->pool;

    while (p->vacancies == 0) {
        if (p->writes == 0) /* what is open together always fits */
            return gs_fail(GS_EBUDGET, "%s: too many write windows; raise .memory", r->path);
        GS_TRY(reap(r));
    }
    *slot = p->vacant[--p->vacancies];
    p->filled[*slot] = 0;
    return GS_OK;
}

/* Writes the slot's first `bytes`, whole blocks; it is free when they are written. */
static gs_status write_slot(row_job *r, uint32_t file, uint32_t slot, uint64_t bytes, uint64_t offset)
{
    row_pool *const p = &r->pool;

    while (p->writes >= p->most_writes)
        GS_TRY(reap(r));
    p->writes++;
    p->written[slot] = (gs_io_request){.file = file, .write = true, .offset = offset, .length = bytes,
                                       .memory = p->data + slot * p->slot_bytes, .tag = WRITE_TAG + slot};
    return submit(r, &p->written[slot]);
}

/* Reports progress; the job's failure, if there is one. */
static gs_status check_progress(const row_job *r, uint64_t row)
{
    gs_part__tick(r->job, "writing features", (double)row / (double)r->in->vertices);
    return gs_part__job_result(r->job);
}

/* ---- rows to their place in the output, each byte written once.
 *
 * A row is copied into the windows of the output that it lies in; a window is written when its last byte
 * has come. It is as long as what one checksum covers, and its checksum is taken while it is in the cache.
 */

static uint64_t window_bytes(const row_job *r, uint64_t w)
{
    return GS_MIN(GS_SUM_BYTES, r->bytes - w * GS_SUM_BYTES);
}

/* A full window: its checksum, and off to the disk. Padding is written with it. */
static gs_status close_window(row_job *r, uint64_t w)
{
    const uint32_t slot = r->slot[w];
    const uint64_t bytes = window_bytes(r, w), padded = gs_align_up(bytes, GS_BLOCK_BYTES);
    char *const data = r->pool.data + slot * GS_SUM_BYTES;

    memset(data + bytes, 0, padded - bytes);
    r->sums[w] = gs_hash64(data, bytes);
    r->slot[w] = NO_SLOT;
    return write_slot(r, r->file, slot, padded, w * GS_SUM_BYTES - r->here.first);
}

/* Of rows at the ends of a shard's stretch, windows beyond it are others'. */
static bool is_here(const row_job *r, uint64_t w)
{
    return gs_extent_has(r->here, w * GS_SUM_BYTES, window_bytes(r, w));
}

static gs_status fill_window(row_job *r, uint64_t w, uint64_t inside, const char *bytes, uint32_t count)
{
    if (r->slot[w] == NO_SLOT)
        GS_TRY(take_slot(r, &r->slot[w]));
    const uint32_t slot = r->slot[w];
    memcpy(r->pool.data + slot * GS_SUM_BYTES + inside, bytes, count);
    r->pool.filled[slot] += count;
    return r->pool.filled[slot] == window_bytes(r, w) ? close_window(r, w) : GS_OK;
}

/* Two windows for each run of ascending positions are open at most. */
static gs_status place_row(row_job *r, uint64_t position, const char *row)
{
    uint64_t at = position * r->row_bytes, left = r->row_bytes;

    while (left > 0) {
        const uint64_t w = at / GS_SUM_BYTES, inside = at % GS_SUM_BYTES, take = GS_MIN(left, GS_SUM_BYTES - inside);
        if (is_here(r, w))
            GS_TRY(fill_window(r, w, inside, row, (uint32_t)take));
        row += take;
        at += take;
        left -= take;
    }
    return GS_OK;
}

/* ---- rows to buckets on disk, then bucket by bucket to their place.
 *
 * Where rows that are neighbours in the input have places all over the output, more windows would be open than fit
 * memory. A distribution sort in two steps needs memory of the order of the square root of the bytes: rows go, with
 * their positions, to buckets, one a range of positions whose windows fit memory together; then each bucket is read
 * back and its rows placed. Every byte is read and written twice, whatever the order.
 */

#define LEAST_BUFFER_BYTES (64u * GS_KIB) /* shorter writes cost more in requests than in bytes */
#define LEAST_BUFFER_RECORDS 4u

/* Rows with their positions. */
typedef struct row_buckets {
    gs_external_sort *sort;
    uint32_t count;     /* buckets of this pass */
    gs_fastdiv by_rows; /* positions to buckets */
} row_buckets;

/* Of a record: where the row's place is, from the pass's first, and the row. */
static uint32_t record_words(const row_job *r) { return 1 + (uint32_t)gs_div_up(r->row_bytes, 4); }

/* Whether so many buckets have buffers that are long enough. */
static bool fits(const row_job *r, uint64_t buckets)
{
    const uint64_t share = r->pool.bytes / buckets;
    return share >= LEAST_BUFFER_BYTES && share / (record_words(r) * 4u) >= LEAST_BUFFER_RECORDS;
}

/* Rows in whole windows: no window is open from one pass to the next. */
static uint64_t whole_windows(const row_job *r)
{
    uint64_t rows = GS_SUM_BYTES;
    for (uint64_t bytes = r->row_bytes; bytes % 2 == 0 && rows > 1; bytes /= 2)
        rows /= 2;
    return rows;
}

/* How many rows a pass over the input can take with buckets of `bucket_rows` positions; 0: none. */
static uint64_t bucket_pass(const row_job *r, uint64_t bucket_rows)
{
    const uint64_t n = r->end - r->begin, step = whole_windows(r);

    for (uint64_t passes = 1; bucket_rows != 0; passes++) {
        const uint64_t rows = gs_align_up(gs_div_up(n, passes), step);
        if (fits(r, gs_div_up(GS_MIN(rows, n), bucket_rows)))
            return rows;
        if (rows == step)
            break;
    }
    return 0;
}

static gs_status put_in_bucket(row_job *r, uint64_t position, const char *row)
{
    row_buckets *const b = r->bucket;
    const uint32_t from_low = (uint32_t)(position - r->low);
    uint32_t *const to = gs_sort_put(b->sort, 0, gs_fastdiv_of(b->by_rows, from_low));

    if (to == NULL)
        return gs_sort_failure(b->sort);
    *to = from_low;
    memcpy(to + 1, row, r->row_bytes);
    return GS_OK;
}

/* The buckets' buffers take the memory of the pool, which holds nothing meanwhile. */
static gs_status buckets_begin(row_job *r, uint64_t bucket_rows)
{
    if (r->bucket == NULL && (r->bucket = gs_calloc(1, sizeof(*r->bucket))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for buckets of rows", r->job->dir);
    row_buckets *const b = r->bucket;
    b->count = (uint32_t)gs_div_up(r->high - r->low, bucket_rows);
    b->by_rows = gs_fastdiv_make((uint32_t)bucket_rows);
    gs_free_pages(r->pool.data, r->pool.bytes);
    r->pool.data = NULL;
    r->put = put_in_bucket;
    return gs_sort_make(&b->sort, &(gs_sort_spec){.dir = r->job->dir, .name = "tmp.rows", .buckets = b->count,
                                                  .writers = 1, .words = record_words(r), .memory = r->pool.bytes,
                                                  .each = bucket_rows});
}

static gs_status place_bucket(row_job *r, uint32_t bucket, uint32_t *piece, uint64_t cap)
{
    const uint32_t words = record_words(r);
    gs_external_sort *const s = r->bucket->sort;
    gs_sort_cursor at = gs_sort_first(s, bucket);
    uint64_t count = 1;
    gs_status st = check_progress(r, r->low + (r->high - r->low) * bucket / r->bucket->count);

    while (st == GS_OK && count != 0 && (st = gs_sort_read(s, &at, piece, cap, &count)) == GS_OK)
        for (const uint32_t *row = piece; row < piece + count * words && st == GS_OK; row += words)
            st = place_row(r, r->low + row[0], (const char *)(row + 1));
    return st;
}

static gs_status buckets_place(row_job *r)
{
    row_buckets *const b = r->bucket;
    const uint64_t record = record_words(r) * 4u, cap = GS_MAX(r->piece_bytes / record, 1);
    gs_status st = GS_OK;

    GS_TRY(gs_sort_finish(b->sort));
    uint32_t *const piece = gs_malloc_array(cap, record);
    if ((r->pool.data = gs_alloc_pages(r->pool.bytes)) == NULL || piece == NULL)
        st = gs_fail(GS_ENOMEM, "%s: no memory to read buckets of rows", r->job->dir);
    r->put = place_row;
    for (uint32_t k = 0; k < b->count && st == GS_OK; k++) {
        if (k + 1 < b->count)
            gs_sort_prefetch(b->sort, k + 1);
        st = place_bucket(r, k, piece, cap);
    }
    if (st == GS_OK)
        st = drain(r);
    gs_free(piece);
    gs_sort_free(b->sort);
    b->sort = NULL;
    return st;
}

/* Passes over [low, high) begin and end: between the two, rows go to buckets. */
static void buckets_free(row_job *r)
{
    if (r->bucket == NULL)
        return;
    gs_sort_free(r->bucket->sort);
    gs_free(r->bucket);
    r->bucket = NULL;
}

/* ---- feature rows out of a file, front to back, or made from a seed: each checked to be finite, converted to what
 * the store holds, and put where this pass wants it. */

/* -- one row ------------------------------------------------------------------ */

/* An all-ones exponent, moved into the sign bit: NaN or infinite. */
static bool all_finite(const float *v, uint32_t n)
{
    uint32_t bad = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], 4);
        bad |= (bits & 0x7f800000u) + 0x00800000u;
    }
    return bad >> 31 == 0;
}

static bool rest_is_finite(const row_job *r)
{
    const uint16_t *half = r->at_rest, exponent = r->dtype == GS_F16 ? 0x7c00 : 0x7f80;
    uint32_t bad = 0;

    for (uint32_t i = 0; i < r->in->features; i++)
        bad |= (half[i] & exponent) == exponent;
    return bad == 0;
}

static const char *source_path(const gs_part_input *in)
{
    return in->form == GS_FORM_CSR ? in->data.path : in->feature.path;
}

static gs_status name_bad_value(const row_job *r, const float *row, uint64_t id)
{
    const uint32_t width = r->in->features;
    uint32_t c = 0;

    while (c + 1 < width && isfinite(row[c]))
        c++;
    if (!isfinite(row[c]))
        return gs_fail(GS_EFORMAT, "%s: row %lu, column %u: the value is not a finite float32; replace it",
                       source_path(r->in), id, c);
    for (c = 0; c + 1 < width; c++) {
        float back;
        gs_convert_to_f32(&back, (const uint16_t *)r->at_rest + c, r->dtype, 1);
        if (!isfinite(back))
            break;
    }
    return gs_fail(GS_EFORMAT, "%s: row %lu, column %u: %g is too large for %s; use .feature_type f32",
                   source_path(r->in), id, c, (double)row[c], gs_dtype_name(r->dtype));
}

/* To each whose windows it is in, in whose pass. */
static gs_status post_row(row_job *r, uint64_t position, const char *row)
{
    for (uint32_t k = 0; k < r->shard->ranks; k++) {
        if (position < r->lows[k][0] || position >= r->lows[k][1])
            continue;
        uint32_t *const to = gs_part__post_put(r->post, k);
        if (to == NULL)
            return gs_part__post_failure(r->post);
        *to = (uint32_t)position;
        memcpy(to + 1, row, r->row_bytes);
    }
    return GS_OK;
}

/* Checks and stores one f32 row of vertex `id`. */
static gs_status put_row(row_job *r, uint64_t position, uint64_t id, const float *row)
{
    gs_status (*const put)(row_job *, uint64_t, const char *) = r->post != NULL ? post_row : r->put;

    if (r->id == GS_ARRAY_LABELS) {
        gs_part__label_in_store(r->at_rest, r->in->task, row, r->in->features);
        return put(r, position, r->at_rest);
    }
    if (!all_finite(row, r->in->features))
        return name_bad_value(r, row, id);
    if (r->dtype == GS_F32)
        return put(r, position, (const char *)row);
    gs_convert_from_f32(r->at_rest, r->dtype, row, r->in->features);
    return rest_is_finite(r) ? put(r, position, r->at_rest) : name_bad_value(r, row, id);
}

/* Of rows that are sent post_row() asks. */
static bool in_pass(const row_job *r, uint64_t position)
{
    return r->post != NULL || (position >= r->low && position < r->high);
}

/* The first row of the input that this rank reads, or, with 1, that the next one does. */
static uint64_t share_from(const row_job *r, uint32_t behind)
{
    return r->post == NULL ? r->in->vertices * behind : r->in->vertices * (r->job->rank + behind) / r->job->ranks;
}

/* -- dense input ---------------------------------------------------------------- */

static gs_status put_dense(row_job *r, uint64_t first, uint64_t count, const char *raw)
{
    const uint32_t width = r->in->features;
    const gs_dtype from = r->in->feature.npy.dtype;
    const uint64_t row_bytes = width * gs_dtype_bytes(from);

    for (uint64_t i = 0; i < count; i++, raw += row_bytes) {
        const uint64_t position = r->o->position[first + i];
        const void *row = raw;
        if (!in_pass(r, position))
            continue;
        if ((uintptr_t)raw % gs_dtype_bytes(from) != 0)
            row = memcpy(r->aligned, raw, row_bytes);
        if (from != GS_F32)
            gs_part__to_f32(r->row, row, from, width);
        GS_TRY(put_row(r, position, first + i, from == GS_F32 ? row : r->row));
    }
    return GS_OK;
}

/* The file cut into pieces of whole rows, read as whole blocks around them. */
typedef struct dense {
    uint64_t row_bytes, piece_rows, pieces, buffer_bytes;
    uint64_t first, end; /* rows */
    char *buffers; /* [PIECES][buffer_bytes] */
} dense;

static uint64_t first_of(const dense *d, uint64_t piece) { return d->first + piece * d->piece_rows; }

static gs_status start_read(row_job *r, const dense *d, uint64_t piece)
{
    const uint64_t first = first_of(d, piece), count = GS_MIN(d->piece_rows, d->end - first);
    const uint64_t from = r->in->feature.npy.data_offset + first * d->row_bytes, to = from + count * d->row_bytes;
    const uint64_t block = gs_align_down(from, GS_BLOCK_BYTES);

    return read_piece(r, r->source, piece, d->buffers + piece % PIECES * d->buffer_bytes, block,
                               gs_align_up(to, GS_BLOCK_BYTES) - block, to - block);
}

static gs_status read_dense(row_job *r, const dense *d)
{
    begin_reading(r);
    for (uint64_t i = 0; i < GS_MIN(PIECES, d->pieces); i++)
        GS_TRY(start_read(r, d, i));
    for (uint64_t i = 0; i < d->pieces; i++) {
        const uint64_t first = first_of(d, i), count = GS_MIN(d->piece_rows, d->end - first);
        const uint64_t from = r->in->feature.npy.data_offset + first * d->row_bytes;
        GS_TRY(wait_piece(r, i));
        GS_TRY(check_progress(r, first));
        GS_TRY(put_dense(r, first, count, d->buffers + i % PIECES * d->buffer_bytes + from % GS_BLOCK_BYTES));
        if (i + PIECES < d->pieces)
            GS_TRY(start_read(r, d, i + PIECES));
    }
    return GS_OK;
}

/* Reads in flight must not outlive their buffers, so a failure waits for all. */
static gs_status pass_dense(row_job *r)
{
    const gs_part_file *const f = &r->in->feature;
    dense d = {.row_bytes = r->in->features * gs_dtype_bytes(f->npy.dtype), .first = share_from(r, 0),
               .end = share_from(r, 1)};
    gs_status st;

    d.piece_rows = GS_MAX(r->piece_bytes / d.row_bytes, 1);
    d.pieces = gs_div_up(d.end - d.first, d.piece_rows);
    d.buffer_bytes = gs_align_up(d.piece_rows * d.row_bytes, GS_BLOCK_BYTES) + 2 * GS_BLOCK_BYTES;
    GS_NEED((d.buffers = gs_alloc_pages(PIECES * d.buffer_bytes)) != NULL, "%s: no memory to read it", f->path);
    if ((st = read_dense(r, &d)) != GS_OK)
        abandon(r);
    gs_free_pages(d.buffers, PIECES * d.buffer_bytes);
    return st;
}

/* -- CSR input -------------------------------------------------------------------- */

#define CSR_PIECE 8192u

/* Entries that name a column twice add up, as in SciPy. */
static gs_status csr_rows(row_job *r, gs_csr_reader *c)
{
    uint64_t at = 0, end = 0;

    GS_TRY(gs_csr__bound(c, share_from(r, 0), 0, &end));
    at = end;
    for (uint64_t row = share_from(r, 0); row < share_from(r, 1); row++) {
        if (row % 4096 == 0)
            GS_TRY(check_progress(r, row));
        GS_TRY(gs_csr__bound(c, row + 1, at, &end));
        memset(r->row, 0, r->in->features * sizeof(float));
        while (at < end) {
            if (at >= c->from + c->have)
                GS_TRY(gs_csr__entries(c, at, true));
            for (const uint64_t to = GS_MIN(end, c->from + c->have); at < to; at++)
                r->row[c->column[at - c->from]] += c->value[at - c->from];
        }
        if (in_pass(r, r->o->position[row]))
            GS_TRY(put_row(r, r->o->position[row], row, r->row));
    }
    return GS_OK;
}

static gs_status pass_csr(row_job *r)
{
    gs_csr_reader c = {.indptr = &r->in->indptr, .indices = &r->in->indices, .data = &r->in->data,
                       .rows = r->in->vertices, .columns = r->in->features, .columns_are = "features"};
    gs_status st;

    if ((st = gs_csr__alloc(&c, CSR_PIECE, r->in->data.path)) == GS_OK)
        st = csr_rows(r, &c);
    gs_arena_free(&c.memory);
    return st;
}

/* -- generated features -------------------------------------------------------------- */

/* Seeded standard normal features: columns [0, width) of one vertex. */
static void normal_row(float *dst, uint64_t seed, uint32_t id, uint32_t width)
{
    uint32_t key[2], bits[4];

    gs_random_key(key, seed, GS_RANDOM_FEATURES);
    for (uint32_t c = 0; c < width; c += 4) {
        const uint32_t counter[4] = {id, c / 4, 0, 0};
        float four[4];
        gs_philox4x32(bits, counter, key);
        gs_part__normals(four, bits);
        memcpy(dst + c, four, GS_MIN(4, width - c) * sizeof(float));
    }
}

/* Made in store order, so this is one stream. */
static gs_status pass_random(row_job *r)
{
    const uint64_t width = r->in->features, piece = GS_MAX(r->piece_bytes / (width * 4), 1);
    float *rows = gs_alloc_pages(piece * width * 4);
    gs_status st = rows != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to make features", r->path);

    for (uint64_t at = r->begin; at < r->end && st == GS_OK; at += piece) {
        const uint64_t count = GS_MIN(piece, r->end - at);
        if ((st = check_progress(r, at)) != GS_OK)
            break;
#pragma omp parallel for num_threads(r->job->threads) schedule(static)
        for (uint64_t i = 0; i < count; i++)
            normal_row(rows + i * width, r->job->opt->seed, r->o->input_id[at + i], (uint32_t)width);
        for (uint64_t i = 0; i < count && st == GS_OK; i++)
            st = put_row(r, at + i, r->o->input_id[at + i], rows + i * width);
    }
    gs_free_pages(rows, piece * width * 4);
    return st;
}

/* -- rows of other ranks --------------------------------------------------------------- */

static gs_status take_rows(void *context, const uint32_t *records, uint64_t count)
{
    row_job *const r = context;
    const uint32_t words = record_words(r);

    for (const uint32_t *x = records; x < records + count * words; x += words)
        GS_TRY(r->put(r, x[0], (const char *)(x + 1)));
    return GS_OK;
}

/* One pass over the input; rows of [low, high) are put. */
static gs_status read_input(row_job *r)
{
    if (r->in->form == GS_FORM_RANDOM)
        return pass_random(r);
    GS_TRY(r->in->form == GS_FORM_CSR ? pass_csr(r) : pass_dense(r));
    return r->post != NULL ? gs_part__post_end(r->post) : GS_OK;
}

/* ---- all passes, and the whole ---------------------------------------------------- */

#define LEAST_SLOTS 8u
#define LEAST_PIECE (16 * GS_KIB)
#define MOST_PIECE GS_MIB
#define PIECES_SHARE 3 /* of the memory, at most, where that leaves pieces of LEAST_PIECE */
/* Requests are of at most 1 MiB and a few blocks, but for rows longer than that: they go to the kernel whole. */
#define MOST_REQUEST_BYTES (4u * GS_MIB)

/* -- all passes ------------------------------------------------------------------------ */

/* Over the input, without buckets: open windows fit memory, or all windows of a pass do. */
static uint64_t direct_passes(const row_job *r)
{
    const uint64_t each = r->post != NULL ? r->shard->ranks : 1;
    const uint64_t streams = r->in->form == GS_FORM_RANDOM ? 1 : r->o->groups * each;
    const uint64_t open = r->pool.slots - r->pool.most_writes;
    const uint64_t own = gs_div_up(r->here.bytes, GS_SUM_BYTES);
    const uint64_t by_streams = gs_div_up(streams, open / 2 - 2), by_windows = gs_div_up(own, open - 4);
    return GS_MIN(by_streams, GS_MAX(by_windows, 1));
}

/* Positions whose windows, while those of the bucket before are being written, fit memory. */
static uint64_t bucket_rows(const row_job *r)
{
    const uint64_t windows = (r->pool.slots - r->pool.most_writes) / 2 - 2;
    return GS_MIN(windows * GS_SUM_BYTES / r->row_bytes, UINT32_MAX);
}

/* Rows of a pass over the input. *bucket: rows of a bucket, 0 where rows go straight to their place. Buckets cost as
 * much as to read and write once more. */
static uint64_t choose_way(const row_job *r, uint64_t *bucket)
{
    const uint64_t n = r->end - r->begin, direct = direct_passes(r);

    *bucket = bucket_rows(r);
    const uint64_t rows = bucket_pass(r, *bucket);
    if (rows != 0 && gs_div_up(n, rows) + 2 < direct)
        return rows;
    *bucket = 0;
    return gs_div_up(n, direct);
}

/* The array's bytes that a rank has. */
static gs_extent extent_of(const row_job *r, uint32_t rank)
{
    const uint64_t all = gs_align_up(r->bytes, GS_BLOCK_BYTES);
    return r->shard == NULL ? (gs_extent){0, all}
                            : gs_shard_rows(r->shard, rank, r->o->grid.rows * r->row_bytes, all);
}

/* Positions of the rows in this rank's bytes, from whole windows on, as passes begin with such. */
static void find_own(row_job *r)
{
    r->begin = r->here.first / r->row_bytes;
    r->begin -= r->begin % whole_windows(r);
    r->end = GS_MIN(gs_div_up(r->here.first + r->here.bytes, r->row_bytes), r->in->vertices);
}

/* Ranks go through as many passes, as each reads for all. *over: all are done. */
static gs_status meet_for_pass(row_job *r, bool *over)
{
    const uint64_t own[2] = {r->low, r->high};
    gs_status st = GS_OK;

    *over = r->low == r->high;
    if (r->post == NULL || (st = gs_ranks_gather(r->lows, own, sizeof(own))) != GS_OK)
        return st;
    for (uint32_t k = 0; k < r->shard->ranks; k++)
        *over = *over && r->lows[k][0] == r->lows[k][1];
    return GS_OK;
}

static gs_status passes(row_job *r)
{
    uint64_t bucket;
    const uint64_t rows = choose_way(r, &bucket);
    gs_status st;
    bool over;

    r->put = place_row;
    for (r->low = r->begin;; r->low = r->high) {
        r->high = GS_MIN(r->low + rows, r->end);
        if ((st = meet_for_pass(r, &over)) != GS_OK || over)
            return st;
        const bool buckets = bucket != 0 && r->high > r->low;
        if ((buckets && (st = buckets_begin(r, bucket)) != GS_OK) || (st = read_input(r)) != GS_OK ||
            (buckets && (st = buckets_place(r)) != GS_OK))
            return st;
    }
}

/* The output gets its full size at once, so that a full disk shows here. */
static gs_status open_files(row_job *r)
{
    const gs_io_config config = {
        .requests = WRITES + PIECES,
        .depth = WRITES + PIECES,
        .piece_bytes = MOST_REQUEST_BYTES,
    };
    char name[64];

    GS_TRY(gs_io_open(&r->io, &config));
    snprintf(name, sizeof(name), "%s.bin", gs_array_stem(r->id));
    GS_NEED((r->path = gs_path_join(r->job->dir, name)) != NULL, "%s: no memory for a path", r->job->dir);
    GS_TRY(gs_io_add_file(r->io, &r->file, r->path, GS_IO_CREATE));
    GS_TRY(gs_io_set_size(r->io, r->file, r->here.bytes));
    const gs_part_file *const f = &r->in->feature;
    const char *const source = f->opened_as != NULL ? f->opened_as : f->path;
    return r->in->form == GS_FORM_DENSE ? gs_io_add_file(r->io, &r->source, source, GS_IO_INPUT) : GS_OK;
}

/* Memory to read a row of `width` values, each of `value_bytes` in the input: reads, and one row in three forms. */
static uint64_t reading_bytes(uint64_t width, uint64_t value_bytes, uint64_t piece)
{
    return PIECES * (GS_MAX(piece, width * value_bytes) + 3 * GS_BLOCK_BYTES) + width * 16;
}

static uint64_t value_bytes(const gs_part_file *f) { return f->npy.fd >= 0 ? gs_dtype_bytes(f->npy.dtype) : 4; }

uint64_t gs_part__rows_least(const gs_part_input *in)
{
    const gs_npy *const label = &in->label.npy;
    const uint64_t columns = label->fd >= 0 && label->dims == 2 ? GS_MIN(label->shape[1], UINT32_MAX) : 0;
    uint64_t bytes = 0;

    if (in->form != GS_FORM_NONE)
        bytes = reading_bytes(in->features, value_bytes(&in->feature), LEAST_PIECE);
    if (columns > 0)
        bytes = GS_MAX(bytes, reading_bytes(columns, value_bytes(&in->label), LEAST_PIECE));
    return bytes == 0 ? 0 : bytes + LEAST_SLOTS * GS_SUM_BYTES;
}

static gs_status make_buffers(row_job *r, uint64_t memory)
{
    r->piece_bytes = GS_MIN(GS_MAX(memory / PIECES_SHARE / PIECES, LEAST_PIECE), MOST_PIECE);
    const uint64_t pieces = reading_bytes(r->in->features, value_bytes(&r->in->feature), r->piece_bytes);
    const uint64_t left = memory > pieces ? memory - pieces : 0, all = r->windows + WRITES + LEAST_SLOTS;
    const uint64_t slots = GS_MIN(GS_MAX(left / GS_SUM_BYTES, LEAST_SLOTS), all);

    r->slot = gs_arena_take(&r->memory, r->windows, 4);
    r->sums = gs_malloc_array(r->windows, 8);
    r->pool.bytes = slots * GS_SUM_BYTES;
    r->pool.data = gs_alloc_pages(r->pool.bytes);
    r->pool.filled = gs_arena_take(&r->memory, slots, 4); /* buckets have longer slots, so fewer */
    r->pool.vacant = gs_arena_take(&r->memory, slots, 4);
    r->pool.written = gs_arena_take(&r->memory, slots, sizeof(*r->pool.written));
    r->row = gs_arena_take(&r->memory, r->in->features, 4);
    r->at_rest = gs_arena_take(&r->memory, r->in->features, 4);
    r->aligned = gs_arena_take(&r->memory, r->in->features, 8);
    if (r->sums == NULL || r->pool.data == NULL || r->memory.is_short)
        return gs_fail(GS_ENOMEM, "%s: no memory for %lu write windows", r->path, slots);
    memset(r->slot, 0xff, r->windows * 4);
    cut_pool(r, GS_SUM_BYTES);
    return GS_OK;
}

/* Each rank has the checksums of its own windows; two have those of one between them. */
static gs_status share_sums(row_job *r)
{
    for (uint32_t k = 0; k < r->shard->ranks; k++) {
        const gs_extent x = extent_of(r, k);
        GS_TRY(gs_ranks_share_of(k, r->sums + x.first / GS_SUM_BYTES, gs_div_up(x.bytes, GS_SUM_BYTES) * 8));
    }
    return GS_OK;
}

/* Writes the features of `in` as the array `id`, or the shard's part of them. */
static gs_status write_rows(gs_part_job *job, const gs_part_input *in, const gs_part_order *o, gs_array_id id,
                            const gs_store_shard *shard, gs_array_info *info, uint64_t memory)
{
    const bool labels = id == GS_ARRAY_LABELS;
    row_job r = {.job = job, .in = in, .o = o, .id = id, .shard = shard,
                 .dtype = labels ? gs_train_task_labels(in->task) : job->feature_type};
    gs_status st;

    r.row_bytes = (uint64_t)in->features * gs_dtype_bytes(r.dtype);
    r.bytes = in->vertices * r.row_bytes; /* below 2^32 * 2^31 * 4: no overflow */
    r.windows = gs_div_up(r.bytes, GS_SUM_BYTES);
    r.here = extent_of(&r, job->rank);
    find_own(&r);
    if (shard != NULL && in->form != GS_FORM_RANDOM) {
        memory -= memory / 4;
        if ((st = gs_part__post_make(&r.post, record_words(&r), memory / 3, take_rows, &r)) != GS_OK)
            goto done;
    }
    if ((st = open_files(&r)) != GS_OK || (st = make_buffers(&r, memory)) != GS_OK || (st = passes(&r)) != GS_OK ||
        (st = drain(&r)) != GS_OK || (shard != NULL && (st = share_sums(&r)) != GS_OK))
        goto done;
    *info = (gs_array_info){.present = true, .dtype = r.dtype, .width = in->features, .row_bytes = r.row_bytes,
                            .bytes = r.bytes, .sums = r.sums};
    r.sums = NULL; /* now the caller's */
done:
    gs_io_close(r.io); /* before the buffers go */
    gs_part__post_free(r.post);
    buckets_free(&r);
    gs_free_pages(r.pool.data, r.pool.bytes);
    gs_arena_free(&r.memory);
    gs_free(r.sums);
    gs_free(r.path);
    return st;
}

gs_status gs_part__rows_write(gs_part_job *job, const gs_part_input *in, const gs_part_order *o,
                              const gs_store_shard *shard, gs_array_info *info, uint64_t memory)
{
    return write_rows(job, in, o, GS_ARRAY_FEATURES, shard, info, memory);
}

gs_status gs_part__label_rows_write(gs_part_job *job, const gs_part_input *in, const gs_part_order *o,
                                    gs_array_info *info, uint64_t memory)
{
    gs_part_input as = *in; /* owns nothing */
    as.form = GS_FORM_DENSE;
    as.feature = in->label;
    as.features = in->classes;
    return write_rows(job, &as, o, GS_ARRAY_LABELS, NULL, info, memory);
}
