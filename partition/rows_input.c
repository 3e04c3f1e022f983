/* rows_input.c - feature rows out of a file, front to back, or made from a seed.
 *
 * Each is checked to be finite, converted to what the store holds, and put where this pass wants it.
 */
#include "partition/rows_input.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "base/size.h"
#include "partition/csr_reader.h"
#include "partition/input_files.h"
#include "partition/label_rows.h"
#include "partition/rows_pool.h"

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

static bool rest_is_finite(const gs_rows *r)
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

static gs_status name_bad_value(const gs_rows *r, const float *row, uint64_t id)
{
    const uint32_t width = r->in->features;
    uint32_t c = 0;

    while (c + 1 < width && isfinite(row[c]))
        c++;
    if (!isfinite(row[c]))
        return gs_fail(GS_EFORMAT, "%s: row %llu, column %u: the value is not a finite float32; replace it",
                       source_path(r->in), (unsigned long long)id, c);
    for (c = 0; c + 1 < width; c++) {
        float back;
        gs_convert_to_f32(&back, (const uint16_t *)r->at_rest + c, r->dtype, 1);
        if (!isfinite(back))
            break;
    }
    return gs_fail(GS_EFORMAT, "%s: row %llu, column %u: %g is too large for %s; use .feature_type f32",
                   source_path(r->in), (unsigned long long)id, c, (double)row[c], gs_dtype_name(r->dtype));
}

/* Checks and stores one f32 row of vertex `id`. */
static gs_status put_row(gs_rows *r, uint64_t position, uint64_t id, const float *row)
{
    if (r->id == GS_ARRAY_LABELS) {
        gs_part__label_in_store(r->at_rest, r->in->task, row, r->in->features);
        return r->put(r, position, r->at_rest);
    }
    if (!all_finite(row, r->in->features))
        return name_bad_value(r, row, id);
    if (r->dtype == GS_F32)
        return r->put(r, position, (const char *)row);
    gs_convert_from_f32(r->at_rest, r->dtype, row, r->in->features);
    return rest_is_finite(r) ? r->put(r, position, r->at_rest) : name_bad_value(r, row, id);
}

static bool in_pass(const gs_rows *r, uint64_t position) { return position >= r->low && position < r->high; }

/* -- dense input ---------------------------------------------------------------- */

static gs_status put_dense(gs_rows *r, uint64_t first, uint64_t count, const char *raw)
{
    const uint32_t width = r->in->features;
    const gs_dtype from = r->in->feature.npy.dtype;
    const uint64_t row_bytes = width * gs_dtype_bytes(from);
    gs_status st = GS_OK;

    for (uint64_t i = 0; i < count && st == GS_OK; i++, raw += row_bytes) {
        const uint64_t position = r->o->position[first + i];
        const void *row = raw;
        if (!in_pass(r, position))
            continue;
        if ((uintptr_t)raw % gs_dtype_bytes(from) != 0)
            row = memcpy(r->aligned, raw, row_bytes);
        if (from != GS_F32)
            gs_part__to_f32(r->row, row, from, width);
        st = put_row(r, position, first + i, from == GS_F32 ? row : r->row);
    }
    return st;
}

/* The file cut into pieces of whole rows, read as whole blocks around them. */
typedef struct dense {
    uint64_t row_bytes, piece_rows, pieces, buffer_bytes;
    char *buffers; /* [GS_ROWS_PIECES][buffer_bytes] */
} dense;

static gs_status start_read(gs_rows *r, const dense *d, uint64_t piece)
{
    const uint64_t first = piece * d->piece_rows, count = GS_MIN(d->piece_rows, r->in->vertices - first);
    const uint64_t from = r->in->feature.npy.data_offset + first * d->row_bytes, to = from + count * d->row_bytes;
    const uint64_t block = gs_align_down(from, GS_BLOCK_BYTES);

    return gs_rows__read_piece(r, r->source, piece, d->buffers + piece % GS_ROWS_PIECES * d->buffer_bytes, block,
                               gs_align_up(to, GS_BLOCK_BYTES) - block, to - block);
}

static gs_status read_dense(gs_rows *r, const dense *d)
{
    gs_status st = GS_OK;

    gs_rows__begin_reading(r);
    for (uint64_t i = 0; i < GS_MIN(GS_ROWS_PIECES, d->pieces) && st == GS_OK; i++)
        st = start_read(r, d, i);
    for (uint64_t i = 0; i < d->pieces && st == GS_OK; i++) {
        const uint64_t first = i * d->piece_rows, count = GS_MIN(d->piece_rows, r->in->vertices - first);
        const uint64_t from = r->in->feature.npy.data_offset + first * d->row_bytes;
        if ((st = gs_rows__wait_piece(r, i)) == GS_OK && (st = gs_rows__check(r, first)) == GS_OK)
            st = put_dense(r, first, count, d->buffers + i % GS_ROWS_PIECES * d->buffer_bytes + from % GS_BLOCK_BYTES);
        if (st == GS_OK && i + GS_ROWS_PIECES < d->pieces)
            st = start_read(r, d, i + GS_ROWS_PIECES);
    }
    return st;
}

/* Reads in flight must not outlive their buffers, so a failure waits for all. */
static gs_status pass_dense(gs_rows *r)
{
    const gs_part_file *const f = &r->in->feature;
    dense d = {.row_bytes = r->in->features * gs_dtype_bytes(f->npy.dtype)};
    gs_status st;

    d.piece_rows = GS_MAX(r->piece_bytes / d.row_bytes, 1);
    d.pieces = gs_div_up(r->in->vertices, d.piece_rows);
    d.buffer_bytes = gs_align_up(d.piece_rows * d.row_bytes, GS_BLOCK_BYTES) + 2 * GS_BLOCK_BYTES;
    if ((d.buffers = gs_alloc_pages(GS_ROWS_PIECES * d.buffer_bytes)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", f->path);
    if ((st = read_dense(r, &d)) != GS_OK)
        gs_rows__abandon(r);
    gs_free_pages(d.buffers, GS_ROWS_PIECES * d.buffer_bytes);
    return st;
}

/* -- CSR input -------------------------------------------------------------------- */

#define CSR_PIECE 8192u

/* Entries that name a column twice add up, as in SciPy. */
static gs_status csr_rows(gs_rows *r, gs_csr_reader *c)
{
    uint64_t at = 0, end = 0;
    gs_status st = gs_csr__bound(c, 0, 0, &end);

    for (uint64_t row = 0; row < r->in->vertices && st == GS_OK; row++) {
        if (row % 4096 == 0 && (st = gs_rows__check(r, row)) != GS_OK)
            break;
        if ((st = gs_csr__bound(c, row + 1, at, &end)) != GS_OK)
            break;
        memset(r->row, 0, r->in->features * sizeof(float));
        while (at < end) {
            if (at >= c->from + c->have && (st = gs_csr__entries(c, at, true)) != GS_OK)
                return st;
            for (const uint64_t to = GS_MIN(end, c->from + c->have); at < to; at++)
                r->row[c->column[at - c->from]] += c->value[at - c->from];
        }
        if (in_pass(r, r->o->position[row]))
            st = put_row(r, r->o->position[row], row, r->row);
    }
    return st;
}

static gs_status pass_csr(gs_rows *r)
{
    gs_csr_reader c = {.indptr = &r->in->indptr, .indices = &r->in->indices, .data = &r->in->data,
                       .rows = r->in->vertices, .columns = r->in->features, .columns_are = "features"};
    gs_status st;

    if ((st = gs_csr__alloc(&c, CSR_PIECE, r->in->data.path)) == GS_OK)
        st = csr_rows(r, &c);
    gs_csr__free(&c);
    return st;
}

/* -- generated features -------------------------------------------------------------- */

/* Box-Muller: two normal numbers from two uniform ones. */
static void normal_pair(float out[2], uint32_t a, uint32_t b)
{
    const float radius = sqrtf(-2 * logf((float)gs_uniform_open(a | 0x80)));
    const float angle = 6.28318530717958647692f * gs_uniform_f32(b);
    out[0] = radius * cosf(angle);
    out[1] = radius * sinf(angle);
}

/* Seeded standard normal features: columns [0, width) of one vertex. */
static void normal_row(float *dst, uint64_t seed, uint32_t id, uint32_t width)
{
    uint32_t key[2], bits[4];

    gs_random_key(key, seed, GS_RANDOM_FEATURES);
    for (uint32_t c = 0; c < width; c += 4) {
        const uint32_t counter[4] = {id, c / 4, 0, 0};
        float four[4];
        gs_philox4x32(bits, counter, key);
        normal_pair(four, bits[0], bits[1]);
        normal_pair(four + 2, bits[2], bits[3]);
        memcpy(dst + c, four, GS_MIN(4, width - c) * sizeof(float));
    }
}

/* Made in store order, so this is one stream. */
static gs_status pass_random(gs_rows *r)
{
    const uint64_t n = r->in->vertices, width = r->in->features, piece = GS_MAX(r->piece_bytes / (width * 4), 1);
    float *rows = gs_alloc_pages(piece * width * 4);
    gs_status st = rows != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to make features", r->path);

    for (uint64_t at = 0; at < n && st == GS_OK; at += piece) {
        const uint64_t count = GS_MIN(piece, n - at);
        if ((st = gs_rows__check(r, at)) != GS_OK)
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

gs_status gs_rows__read_input(gs_rows *r)
{
    switch (r->in->form) {
    case GS_FORM_RANDOM:
        return pass_random(r);
    case GS_FORM_CSR:
        return pass_csr(r);
    default:
        return pass_dense(r);
    }
}
