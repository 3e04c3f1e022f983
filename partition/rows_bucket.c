/* rows_bucket.c - rows to buckets on disk, then bucket by bucket to their place.
 *
 * Where rows that are neighbours in the input have places all over the output, more windows would be open
 * than fit memory. A distribution sort in two steps needs memory of the order of the square root of the
 * bytes: rows go, with their positions, to one file of many streams, one a range of positions whose
 * windows fit memory together; then each stream is read back and its rows placed. Every byte is read and
 * written twice, whatever the order.
 */
#include "partition/rows_bucket.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/grid.h"
#include "partition/rows_pool.h"
#include "partition/rows_window.h"

#define LEAST_SLOT_BYTES (64u * GS_KIB) /* shorter writes cost more in requests than in bytes */
#define LEAST_SLOT_RECORDS 4u
#define NO_SEGMENT UINT32_MAX
#define POSITION_BYTES sizeof(uint32_t)

/* Rows with their positions, a stream of whole slots a bucket. */
typedef struct gs_rows_buckets {
    uint32_t file;        /* of the gs_io; without a name */
    char *path;           /* that it had; NULL: not made yet */
    uint32_t count;       /* buckets of a pass */
    gs_fastdiv by_rows;   /* positions to buckets */
    uint64_t record, slot_bytes, slot_records;
    uint32_t *slot;       /* [count] that a bucket fills */
    uint32_t *head, *tail; /* [count] its first and last segment in the file, each of slot_bytes */
    uint32_t *next;       /* [segments] of the same bucket */
    uint32_t segments, most_segments;
} gs_rows_buckets;

/* Bytes of a slot, with so many buckets; 0: slots would be too short. */
static uint64_t slot_bytes(const gs_rows *r, uint64_t buckets)
{
    /* at least a quarter of the slots, as cut_pool() has it */
    const uint64_t writes = GS_MIN(GS_ROWS_WRITES, GS_MAX(buckets / 2, 1));
    const uint64_t share = r->pool.bytes / (buckets + writes);
    const uint64_t bytes = gs_align_down(GS_MIN(share, r->piece_bytes), GS_BLOCK_BYTES);
    return bytes >= LEAST_SLOT_BYTES && bytes / (POSITION_BYTES + r->row_bytes) >= LEAST_SLOT_RECORDS ? bytes : 0;
}

/* Rows in whole windows: no window is open from one pass to the next. */
static uint64_t whole_windows(const gs_rows *r)
{
    uint64_t rows = GS_SUM_BYTES;
    for (uint64_t bytes = r->row_bytes; bytes % 2 == 0 && rows > 1; bytes /= 2)
        rows /= 2;
    return rows;
}

uint64_t gs_rows__bucket_pass(const gs_rows *r, uint64_t bucket_rows)
{
    const uint64_t n = r->in->vertices, step = whole_windows(r);

    for (uint64_t passes = 1; bucket_rows != 0; passes++) {
        const uint64_t rows = gs_align_up(gs_div_up(n, passes), step);
        if (slot_bytes(r, gs_div_up(GS_MIN(rows, n), bucket_rows)) != 0)
            return rows;
        if (rows == step)
            break;
    }
    return 0;
}

/* -- to buckets -------------------------------------------------------------------- */

/* It loses its name at once, so that it goes away however the process ends. */
static gs_status open_file(gs_rows *r)
{
    gs_rows_buckets *const b = r->bucket = gs_calloc(1, sizeof(*b));

    if (b == NULL || (b->path = gs_path_join(r->job->dir, "tmp.rows")) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a temporary file", r->job->dir);
    const gs_status st = gs_io_add_file(r->io, &b->file, b->path, GS_IO_CREATE);
    if (st == GS_OK)
        unlink(b->path);
    return st;
}

/* The bucket's slot is full, or the last: to the end of the file. */
static gs_status close_slot(gs_rows *r, uint32_t bucket)
{
    gs_rows_buckets *const b = r->bucket;
    const uint32_t slot = b->slot[bucket], segment = b->segments++, bytes = r->pool.filled[slot];
    const uint64_t padded = gs_align_up(bytes, GS_BLOCK_BYTES);

    memset(r->pool.data + slot * b->slot_bytes + bytes, 0, padded - bytes);
    b->next[segment] = NO_SEGMENT;
    if (b->tail[bucket] == NO_SEGMENT)
        b->head[bucket] = segment;
    else
        b->next[b->tail[bucket]] = segment;
    b->tail[bucket] = segment;
    b->slot[bucket] = GS_ROWS_NO_SLOT;
    return gs_rows__write_slot(r, b->file, slot, padded, segment * b->slot_bytes);
}

static gs_status put_in_bucket(gs_rows *r, uint64_t position, const char *row)
{
    gs_rows_buckets *const b = r->bucket;
    const uint32_t from_low = (uint32_t)(position - r->low), bucket = gs_fastdiv_of(b->by_rows, from_low);
    gs_status st;

    if (b->slot[bucket] == GS_ROWS_NO_SLOT && (st = gs_rows__take_slot(r, &b->slot[bucket])) != GS_OK)
        return st;
    uint32_t *const filled = &r->pool.filled[b->slot[bucket]];
    char *const to = r->pool.data + b->slot[bucket] * b->slot_bytes + *filled;
    memcpy(to, &from_low, POSITION_BYTES);
    memcpy(to + POSITION_BYTES, row, r->row_bytes);
    *filled += (uint32_t)b->record;
    return *filled + b->record > b->slot_bytes ? close_slot(r, bucket) : GS_OK;
}

static gs_status make_lists(gs_rows_buckets *b, uint64_t rows)
{
    const uint64_t segments = gs_div_up(rows, b->slot_records) + b->count;

    if (segments > b->most_segments) {
        gs_free(b->next);
        b->next = gs_malloc_array(segments, 4);
        b->most_segments = (uint32_t)segments;
    }
    if (b->slot == NULL) { /* the first pass has the most */
        b->slot = gs_malloc_array(b->count, 4);
        b->head = gs_malloc_array(b->count, 4);
        b->tail = gs_malloc_array(b->count, 4);
    }
    if (!b->next || !b->slot || !b->head || !b->tail)
        return gs_fail(GS_ENOMEM, "%s: no memory for %u buckets of rows", b->path, b->count);
    memset(b->slot, 0xff, b->count * 4ull);
    memset(b->head, 0xff, b->count * 4ull);
    memset(b->tail, 0xff, b->count * 4ull);
    b->segments = 0;
    return GS_OK;
}

gs_status gs_rows__buckets_begin(gs_rows *r, uint64_t bucket_rows)
{
    gs_status st;

    if (r->bucket == NULL && (st = open_file(r)) != GS_OK)
        return st;
    gs_rows_buckets *const b = r->bucket;
    b->count = (uint32_t)gs_div_up(r->high - r->low, bucket_rows);
    b->by_rows = gs_fastdiv_make((uint32_t)bucket_rows);
    b->record = POSITION_BYTES + r->row_bytes;
    b->slot_bytes = slot_bytes(r, b->count);
    b->slot_records = b->slot_bytes / b->record;
    if ((st = make_lists(b, r->high - r->low)) != GS_OK)
        return st;
    gs_rows__cut_pool(r, b->slot_bytes);
    r->put = put_in_bucket;
    return GS_OK;
}

/* -- to their place ------------------------------------------------------------------ */

/* Reading goes over the segments bucket by bucket. */
typedef struct reading {
    char *buffers;    /* [GS_ROWS_PIECES][slot_bytes] */
    uint32_t *order;  /* [segments] */
    uint32_t *records; /* [segments] in each, by place in `order` */
} reading;

static gs_status start_read(gs_rows *r, const reading *d, uint64_t i)
{
    gs_rows_buckets *const b = r->bucket;
    const uint64_t bytes = gs_align_up(d->records[i] * b->record, GS_BLOCK_BYTES);

    return gs_rows__read_piece(r, b->file, i, d->buffers + i % GS_ROWS_PIECES * b->slot_bytes,
                               d->order[i] * b->slot_bytes, bytes, bytes);
}

static gs_status place_segment(gs_rows *r, const reading *d, uint64_t i)
{
    const char *at = d->buffers + i % GS_ROWS_PIECES * r->bucket->slot_bytes;
    gs_status st = GS_OK;

    for (uint32_t k = 0; k < d->records[i] && st == GS_OK; k++, at += r->bucket->record) {
        uint32_t from_low;
        memcpy(&from_low, at, POSITION_BYTES);
        st = gs_rows__place(r, r->low + from_low, at + POSITION_BYTES);
    }
    return st;
}

static gs_status read_back(gs_rows *r, const reading *d)
{
    const uint64_t segments = r->bucket->segments;
    gs_status st = GS_OK;

    gs_rows__begin_reading(r);
    for (uint64_t i = 0; i < GS_MIN(GS_ROWS_PIECES, segments) && st == GS_OK; i++)
        st = start_read(r, d, i);
    for (uint64_t i = 0; i < segments && st == GS_OK; i++) {
        if ((st = gs_rows__wait_piece(r, i)) != GS_OK ||
            (st = gs_rows__check(r, r->low + (r->high - r->low) * i / segments)) != GS_OK ||
            (st = place_segment(r, d, i)) != GS_OK)
            break;
        if (i + GS_ROWS_PIECES < segments)
            st = start_read(r, d, i + GS_ROWS_PIECES);
    }
    return st;
}

static void list_segments(const gs_rows *r, reading *d)
{
    const gs_rows_buckets *const b = r->bucket;
    const uint64_t rows = r->high - r->low;
    uint32_t n = 0;

    for (uint32_t k = 0; k < b->count; k++) {
        uint64_t left = GS_MIN(b->by_rows.divisor, rows - (uint64_t)k * b->by_rows.divisor);
        for (uint32_t s = b->head[k]; s != NO_SEGMENT; s = b->next[s]) {
            d->order[n] = s;
            d->records[n] = (uint32_t)GS_MIN(left, b->slot_records);
            left -= d->records[n++];
        }
    }
}

gs_status gs_rows__buckets_place(gs_rows *r)
{
    gs_rows_buckets *const b = r->bucket;
    reading d = {0};
    gs_status st = GS_OK;

    for (uint32_t k = 0; k < b->count && st == GS_OK; k++)
        if (b->slot[k] != GS_ROWS_NO_SLOT)
            st = close_slot(r, k);
    if (st != GS_OK || (st = gs_rows__drain(r)) != GS_OK)
        return st;
    gs_rows__cut_pool(r, GS_SUM_BYTES);
    r->put = gs_rows__place;
    d.buffers = gs_alloc_pages(GS_ROWS_PIECES * b->slot_bytes);
    d.order = gs_malloc_array(b->segments + 1ull, 4);
    d.records = gs_malloc_array(b->segments + 1ull, 4);
    if (d.buffers && d.order && d.records) {
        list_segments(r, &d);
        st = read_back(r, &d);
    } else {
        st = gs_fail(GS_ENOMEM, "%s: no memory to read buckets of rows", b->path);
    }
    if (st == GS_OK)
        st = gs_rows__drain(r); /* the pool is cut anew for the next pass */
    else
        gs_rows__abandon(r);
    gs_free_pages(d.buffers, GS_ROWS_PIECES * b->slot_bytes);
    gs_free(d.order);
    gs_free(d.records);
    return st;
}

void gs_rows__buckets_free(gs_rows *r)
{
    gs_rows_buckets *const b = r->bucket;

    if (b == NULL)
        return;
    gs_free(b->path);
    gs_free(b->slot);
    gs_free(b->head);
    gs_free(b->tail);
    gs_free(b->next);
    gs_free(b);
    r->bucket = NULL;
}
