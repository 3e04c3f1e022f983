/* rows_bucket.c - rows to buckets on disk, then bucket by bucket to their place.
 *
 * Where rows that are neighbours in the input have places all over the output, more windows would be open
 * than fit memory. A distribution sort in two steps needs memory of the order of the square root of the
 * bytes: rows go, with their positions, to buckets, one a range of positions whose windows fit memory
 * together; then each bucket is read back and its rows placed. Every byte is read and written twice,
 * whatever the order.
 */
#include "partition/rows_bucket.h"

#include <string.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/size.h"
#include "partition/grid.h"
#include "partition/rows_pool.h"
#include "partition/rows_window.h"

#define LEAST_BUFFER_BYTES (64u * GS_KIB) /* shorter writes cost more in requests than in bytes */
#define LEAST_BUFFER_RECORDS 4u

/* Rows with their positions. */
typedef struct gs_rows_buckets {
    gs_external_sort *sort;
    uint32_t count;     /* buckets of this pass */
    gs_fastdiv by_rows; /* positions to buckets */
} gs_rows_buckets;

/* Of a record: where the row's place is, from the pass's first, and the row. */
static uint32_t record_words(const gs_rows *r) { return 1 + (uint32_t)gs_div_up(r->row_bytes, 4); }

/* Whether so many buckets have buffers that are long enough. */
static bool fits(const gs_rows *r, uint64_t buckets)
{
    const uint64_t share = r->pool.bytes / buckets;
    return share >= LEAST_BUFFER_BYTES && share / (record_words(r) * 4u) >= LEAST_BUFFER_RECORDS;
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
        if (fits(r, gs_div_up(GS_MIN(rows, n), bucket_rows)))
            return rows;
        if (rows == step)
            break;
    }
    return 0;
}

static gs_status put_in_bucket(gs_rows *r, uint64_t position, const char *row)
{
    gs_rows_buckets *const b = r->bucket;
    const uint32_t from_low = (uint32_t)(position - r->low);
    uint32_t *const to = gs_sort_put(b->sort, 0, gs_fastdiv_of(b->by_rows, from_low));

    if (to == NULL)
        return gs_sort_failure(b->sort);
    *to = from_low;
    memcpy(to + 1, row, r->row_bytes);
    return GS_OK;
}

/* The buckets' buffers take the memory of the pool, which holds nothing meanwhile. */
gs_status gs_rows__buckets_begin(gs_rows *r, uint64_t bucket_rows)
{
    if (r->bucket == NULL && (r->bucket = gs_calloc(1, sizeof(*r->bucket))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for buckets of rows", r->job->dir);
    gs_rows_buckets *const b = r->bucket;
    b->count = (uint32_t)gs_div_up(r->high - r->low, bucket_rows);
    b->by_rows = gs_fastdiv_make((uint32_t)bucket_rows);
    gs_free_pages(r->pool.data, r->pool.bytes);
    r->pool.data = NULL;
    r->put = put_in_bucket;
    return gs_sort_make(&b->sort, &(gs_sort_spec){.dir = r->job->dir, .name = "tmp.rows", .buckets = b->count,
                                                  .writers = 1, .words = record_words(r), .memory = r->pool.bytes,
                                                  .each = bucket_rows});
}

static gs_status place_bucket(gs_rows *r, uint32_t bucket, uint32_t *piece, uint64_t cap)
{
    const uint32_t words = record_words(r);
    gs_external_sort *const s = r->bucket->sort;
    gs_sort_cursor at = gs_sort_first(s, bucket);
    uint64_t count = 1;
    gs_status st = gs_rows__check(r, r->low + (r->high - r->low) * bucket / r->bucket->count);

    while (st == GS_OK && count != 0 && (st = gs_sort_read(s, &at, piece, cap, &count)) == GS_OK)
        for (const uint32_t *row = piece; row < piece + count * words && st == GS_OK; row += words)
            st = gs_rows__place(r, r->low + row[0], (const char *)(row + 1));
    return st;
}

gs_status gs_rows__buckets_place(gs_rows *r)
{
    gs_rows_buckets *const b = r->bucket;
    const uint64_t record = record_words(r) * 4u, cap = GS_MAX(r->piece_bytes / record, 1);
    gs_status st = gs_sort_finish(b->sort);

    if (st != GS_OK)
        return st;
    uint32_t *const piece = gs_malloc_array(cap, record);
    if ((r->pool.data = gs_alloc_pages(r->pool.bytes)) == NULL || piece == NULL)
        st = gs_fail(GS_ENOMEM, "%s: no memory to read buckets of rows", r->job->dir);
    r->put = gs_rows__place;
    for (uint32_t k = 0; k < b->count && st == GS_OK; k++) {
        if (k + 1 < b->count)
            gs_sort_prefetch(b->sort, k + 1);
        st = place_bucket(r, k, piece, cap);
    }
    if (st == GS_OK)
        st = gs_rows__drain(r);
    gs_free(piece);
    gs_sort_free(b->sort);
    b->sort = NULL;
    return st;
}

void gs_rows__buckets_free(gs_rows *r)
{
    if (r->bucket == NULL)
        return;
    gs_sort_free(r->bucket->sort);
    gs_free(r->bucket);
    r->bucket = NULL;
}
