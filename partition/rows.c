/* rows.c - rows of features, or of labels, from input order to store order, in bounded memory.
 *
 * The input is read front to back. Store order consists of `groups` runs of ascending input ids, so at most
 * two windows of the output a group are open at a time (rows_window.c). Where they do not fit memory, the input
 * is read again for each range of positions, or, where that takes more, rows go by way of buckets on disk
 * (rows_bucket.c).
 */
#include "partition/rows.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/rows_bucket.h"
#include "partition/rows_input.h"
#include "partition/rows_pool.h"
#include "partition/rows_window.h"
#include "partition/vertex_order.h"

#define LEAST_SLOTS 8u
#define LEAST_PIECE (16 * GS_KIB)
#define MOST_PIECE GS_MIB
#define PIECES_SHARE 3 /* of the memory, at most, where that leaves pieces of LEAST_PIECE */
/* Requests are of at most 1 MiB and a few blocks, but for rows longer than that: they go to the kernel whole. */
#define MOST_REQUEST_BYTES (4u * GS_MIB)

/* -- all passes ------------------------------------------------------------------------ */

/* Over the input, without buckets: open windows fit memory, or all windows of a pass do. */
static uint64_t direct_passes(const gs_rows *r)
{
    const uint64_t streams = r->in->form == GS_FORM_RANDOM ? 1 : r->o->groups;
    const uint64_t open = r->pool.slots - r->pool.most_writes;
    const uint64_t by_streams = gs_div_up(streams, open / 2 - 2), by_windows = gs_div_up(r->windows, open - 4);
    return GS_MIN(by_streams, GS_MAX(by_windows, 1));
}

/* Positions whose windows, while those of the bucket before are being written, fit memory. */
static uint64_t bucket_rows(const gs_rows *r)
{
    const uint64_t windows = (r->pool.slots - r->pool.most_writes) / 2 - 2;
    return GS_MIN(windows * GS_SUM_BYTES / r->row_bytes, UINT32_MAX);
}

/* Rows of a pass over the input. *bucket: rows of a bucket, 0 where rows go straight to their place. Buckets cost as
 * much as to read and write once more. */
static uint64_t choose_way(const gs_rows *r, uint64_t *bucket)
{
    const uint64_t n = r->in->vertices, direct = direct_passes(r);

    *bucket = bucket_rows(r);
    const uint64_t rows = gs_rows__bucket_pass(r, *bucket);
    if (rows != 0 && gs_div_up(n, rows) + 2 < direct)
        return rows;
    *bucket = 0;
    return gs_div_up(n, direct);
}

static gs_status passes(gs_rows *r)
{
    uint64_t bucket;
    const uint64_t n = r->in->vertices, rows = choose_way(r, &bucket);
    gs_status st = GS_OK;

    r->put = gs_rows__place;
    for (r->low = 0; r->low < n && st == GS_OK; r->low += rows) {
        r->high = GS_MIN(r->low + rows, n);
        if (bucket != 0)
            st = gs_rows__buckets_begin(r, bucket);
        if (st == GS_OK)
            st = gs_rows__read_input(r);
        if (st == GS_OK && bucket != 0)
            st = gs_rows__buckets_place(r);
    }
    return st;
}

/* The output gets its full size at once, so that a full disk shows here. */
static gs_status open_files(gs_rows *r)
{
    const gs_io_config config = {
        .requests = GS_ROWS_WRITES + GS_ROWS_PIECES,
        .depth = GS_ROWS_WRITES + GS_ROWS_PIECES,
        .piece_bytes = MOST_REQUEST_BYTES,
    };
    char name[64];
    gs_status st;

    if ((st = gs_io_open(&r->io, &config)) != GS_OK)
        return st;
    snprintf(name, sizeof(name), "%s.bin", gs_array_stem(r->id));
    if ((r->path = gs_path_join(r->job->dir, name)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", r->job->dir);
    if ((st = gs_io_add_file(r->io, &r->file, r->path, GS_IO_CREATE)) != GS_OK ||
        (st = gs_io_set_size(r->io, r->file, gs_align_up(r->bytes, GS_BLOCK_BYTES))) != GS_OK)
        return st;
    const gs_part_file *const f = &r->in->feature;
    const char *const source = f->opened_as != NULL ? f->opened_as : f->path;
    return r->in->form == GS_FORM_DENSE ? gs_io_add_file(r->io, &r->source, source, GS_IO_INPUT) : GS_OK;
}

/* Memory to read a row of `width` values, each of `value_bytes` in the input: reads, and one row in three forms. */
static uint64_t reading_bytes(uint64_t width, uint64_t value_bytes, uint64_t piece)
{
    return GS_ROWS_PIECES * (GS_MAX(piece, width * value_bytes) + 3 * GS_BLOCK_BYTES) + width * 16;
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

static gs_status make_buffers(gs_rows *r, uint64_t memory)
{
    r->piece_bytes = GS_MIN(GS_MAX(memory / PIECES_SHARE / GS_ROWS_PIECES, LEAST_PIECE), MOST_PIECE);
    const uint64_t pieces = reading_bytes(r->in->features, value_bytes(&r->in->feature), r->piece_bytes);
    const uint64_t left = memory > pieces ? memory - pieces : 0, all = r->windows + GS_ROWS_WRITES + LEAST_SLOTS;
    const uint64_t slots = GS_MIN(GS_MAX(left / GS_SUM_BYTES, LEAST_SLOTS), all);

    r->slot = gs_malloc_array(r->windows, 4);
    r->sums = gs_malloc_array(r->windows, 8);
    r->pool.bytes = slots * GS_SUM_BYTES;
    r->pool.data = gs_alloc_pages(r->pool.bytes);
    r->pool.filled = gs_malloc_array(slots, 4); /* buckets have longer slots, so fewer */
    r->pool.vacant = gs_malloc_array(slots, 4);
    r->pool.written = gs_calloc(slots, sizeof(*r->pool.written));
    r->row = gs_malloc_array(r->in->features, 4);
    r->at_rest = gs_malloc_array(r->in->features, 4);
    r->aligned = gs_malloc_array(r->in->features, 8);
    if (!r->slot || !r->sums || !r->pool.data || !r->pool.filled || !r->pool.vacant || !r->pool.written || !r->row ||
        !r->at_rest || !r->aligned)
        return gs_fail(GS_ENOMEM, "%s: no memory for %llu write windows", r->path, (unsigned long long)slots);
    memset(r->slot, 0xff, r->windows * 4);
    gs_rows__cut_pool(r, GS_SUM_BYTES);
    return GS_OK;
}

/* Writes the features of `in` as the array `id`. */
static gs_status write_rows(gs_part_job *job, const gs_part_input *in, const gs_part_order *o, gs_array_id id,
                            gs_array_info *info, uint64_t memory)
{
    const bool labels = id == GS_ARRAY_LABELS;
    gs_rows r = {.job = job, .in = in, .o = o, .id = id,
                 .dtype = labels ? gs_train_task_labels(in->task) : job->feature_type};
    gs_status st;

    r.row_bytes = (uint64_t)in->features * gs_dtype_bytes(r.dtype);
    r.bytes = in->vertices * r.row_bytes; /* below 2^32 * 2^31 * 4: no overflow */
    r.windows = gs_div_up(r.bytes, GS_SUM_BYTES);
    if ((st = open_files(&r)) != GS_OK || (st = make_buffers(&r, memory)) != GS_OK || (st = passes(&r)) != GS_OK ||
        (st = gs_rows__drain(&r)) != GS_OK)
        goto done;
    *info = (gs_array_info){.present = true, .dtype = r.dtype, .width = in->features, .row_bytes = r.row_bytes,
                            .bytes = r.bytes, .sums = r.sums};
    r.sums = NULL; /* now the caller's */
done:
    gs_io_close(r.io); /* before the buffers go */
    gs_rows__buckets_free(&r);
    gs_free_pages(r.pool.data, r.pool.bytes);
    gs_free(r.slot);
    gs_free(r.sums);
    gs_free(r.pool.filled);
    gs_free(r.pool.vacant);
    gs_free(r.pool.written);
    gs_free(r.row);
    gs_free(r.at_rest);
    gs_free(r.aligned);
    gs_free(r.path);
    return st;
}

gs_status gs_part__rows_write(gs_part_job *job, const gs_part_input *in, const gs_part_order *o,
                              gs_array_info *info, uint64_t memory)
{
    return write_rows(job, in, o, GS_ARRAY_FEATURES, info, memory);
}

gs_status gs_part__label_rows_write(gs_part_job *job, const gs_part_input *in, const gs_part_order *o,
                                    gs_array_info *info, uint64_t memory)
{
    gs_part_input as = *in; /* owns nothing */
    as.form = GS_FORM_DENSE;
    as.feature = in->label;
    as.features = in->classes;
    return write_rows(job, &as, o, GS_ARRAY_LABELS, info, memory);
}
