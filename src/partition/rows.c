/* rows.c - feature rows from input order to store order, each byte once.
 *
 * The input is read front to back and every row copied to its place in a
 * window of the output; a window is written when its last byte has come. Store
 * order consists of `groups` runs of ascending input ids, so at most two
 * windows a group are open at a time. Where they are more than fit memory the
 * input is read again for each range of positions. A window is as long as what
 * one checksum covers, and its checksum is taken while it is in the cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/philox.h"
#include "partition/partition_internal.h"
#include "store/store.h" /* GS_SUM_BYTES */

#define NO_SLOT UINT32_MAX
#define PIECE_BYTES (1u * GS_MIB)
#define PIECES 4u /* in memory: one in use, the others being read */
#define LEAST_SLOTS 16u
#define MOST_WRITES 32u
#define WRITE_TAG (1ull << 32)

typedef struct placing {
    gs_part_job *job;
    const gs_part_input *in;
    const gs_part_order *o;
    gs_dtype dtype;
    uint64_t row_bytes, bytes, windows;
    uint64_t low, high; /* positions of this pass */
    uint32_t *slot;     /* [windows] which slot holds it, NO_SLOT */
    uint64_t *sums;     /* [windows] */
    char *pool;         /* [slots][GS_SUM_BYTES] */
    uint32_t *filled;   /* [slots] bytes */
    uint32_t *vacant;   /* [slots] stack of free slots */
    uint32_t slots, vacancies, most_writes, writes;
    uint64_t read_done[PIECES]; /* 1 + number of the piece that its buffer holds, by buffer */
    float *row;       /* one row as f32 */
    void *aligned;    /* one row as in the input, where a file's header leaves it unaligned */
    void *at_rest;    /* one row as it is stored */
    gs_part_aio *aio;
    gs_part_aio_file source, file;
    char *path;
} placing;

/* -- windows ---------------------------------------------------------------- */

static uint64_t window_bytes(const placing *p, uint64_t w)
{
    return GS_MIN(GS_SUM_BYTES, p->bytes - w * GS_SUM_BYTES);
}

/* Waits for one read or write and takes note of it. */
static gs_status reap(placing *p)
{
    uint64_t tag = UINT64_MAX;
    const gs_status st = gs_part__aio_wait(p->aio, &tag);

    if (st != GS_OK)
        return st;
    if (tag >= WRITE_TAG) {
        p->vacant[p->vacancies++] = (uint32_t)(tag - WRITE_TAG);
        p->writes--;
    } else {
        p->read_done[tag % PIECES] = tag + 1;
    }
    return GS_OK;
}

/* A full window: its checksum, and off to the disk. Padding is written with it. */
static gs_status close_window(placing *p, uint64_t w)
{
    const uint32_t slot = p->slot[w];
    const uint64_t bytes = window_bytes(p, w), padded = gs_align_up(bytes, GS_BLOCK_BYTES);
    char *const data = p->pool + (uint64_t)slot * GS_SUM_BYTES;

    while (p->writes >= p->most_writes) {
        const gs_status st = reap(p);
        if (st != GS_OK)
            return st;
    }
    memset(data + bytes, 0, padded - bytes);
    p->sums[w] = gs_hash64(data, bytes);
    p->slot[w] = NO_SLOT;
    p->writes++;
    return gs_part__aio_submit(p->aio, &p->file, true, data, padded, padded, w * GS_SUM_BYTES, WRITE_TAG + slot);
}

static gs_status open_window(placing *p, uint64_t w)
{
    while (p->vacancies == 0) {
        if (p->writes == 0) /* two windows a group always fit */
            return gs_fail(GS_EBUDGET, "%s: too many write windows; raise --memory", p->path);
        const gs_status st = reap(p);
        if (st != GS_OK)
            return st;
    }
    p->slot[w] = p->vacant[--p->vacancies];
    p->filled[p->slot[w]] = 0;
    return GS_OK;
}

static gs_status place(placing *p, uint64_t position, const char *row)
{
    uint64_t at = position * p->row_bytes, left = p->row_bytes;
    gs_status st;

    while (left > 0) {
        const uint64_t w = at / GS_SUM_BYTES, inside = at % GS_SUM_BYTES, take = GS_MIN(left, GS_SUM_BYTES - inside);
        if (p->slot[w] == NO_SLOT && (st = open_window(p, w)) != GS_OK)
            return st;
        const uint32_t slot = p->slot[w];
        memcpy(p->pool + (uint64_t)slot * GS_SUM_BYTES + inside, row, take);
        p->filled[slot] += (uint32_t)take;
        if (p->filled[slot] == window_bytes(p, w) && (st = close_window(p, w)) != GS_OK)
            return st;
        row += take;
        at += take;
        left -= take;
    }
    return GS_OK;
}

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

static bool rest_is_finite(const placing *p)
{
    const uint16_t *half = p->at_rest, exponent = p->dtype == GS_F16 ? 0x7c00 : 0x7f80;
    uint32_t bad = 0;

    for (uint32_t i = 0; i < p->in->features; i++)
        bad |= (half[i] & exponent) == exponent;
    return bad == 0;
}

static const char *source_path(const gs_part_input *in)
{
    return in->form == GS_FORM_CSR ? in->data.path : in->feature.path;
}

static gs_status name_bad_value(const placing *p, const float *row, uint64_t id)
{
    const uint32_t width = p->in->features;
    uint32_t c = 0;

    while (c + 1 < width && isfinite(row[c]))
        c++;
    if (!isfinite(row[c]))
        return gs_fail(GS_EFORMAT, "%s: row %llu, column %u: the value is not a finite float32; replace it",
                       source_path(p->in), (unsigned long long)id, c);
    for (c = 0; c + 1 < width; c++) {
        float back;
        gs_convert_to_f32(&back, (const uint16_t *)p->at_rest + c, p->dtype, 1);
        if (!isfinite(back))
            break;
    }
    return gs_fail(GS_EFORMAT, "%s: row %llu, column %u: %g is too large for %s; use --feature-type f32",
                   source_path(p->in), (unsigned long long)id, c, (double)row[c], gs_dtype_name(p->dtype));
}

/* Checks and stores one f32 row of vertex `id`. */
static gs_status put_row(placing *p, uint64_t position, uint64_t id, const float *row)
{
    if (!all_finite(row, p->in->features))
        return name_bad_value(p, row, id);
    if (p->dtype == GS_F32)
        return place(p, position, (const char *)row);
    gs_convert_from_f32(p->at_rest, p->dtype, row, p->in->features);
    return rest_is_finite(p) ? place(p, position, p->at_rest) : name_bad_value(p, row, id);
}

static bool in_pass(const placing *p, uint64_t position) { return position >= p->low && position < p->high; }

static gs_status check(const placing *p, uint64_t row)
{
    gs_part__tick(p->job, "writing features", (double)row / (double)p->in->vertices);
    return gs_part__job_result(p->job);
}

/* -- dense input ---------------------------------------------------------------- */

static gs_status put_dense(placing *p, uint64_t first, uint64_t count, const char *raw)
{
    const uint32_t width = p->in->features;
    const gs_dtype from = p->in->feature.npy.dtype;
    const uint64_t row_bytes = width * gs_dtype_bytes(from);
    gs_status st = GS_OK;

    for (uint64_t i = 0; i < count && st == GS_OK; i++, raw += row_bytes) {
        const uint64_t position = p->o->position[first + i];
        const void *row = raw;
        if (!in_pass(p, position))
            continue;
        if ((uintptr_t)raw % gs_dtype_bytes(from) != 0)
            row = memcpy(p->aligned, raw, row_bytes);
        if (from == GS_F64)
            for (uint32_t c = 0; c < width; c++)
                p->row[c] = (float)((const double *)row)[c];
        else if (from != GS_F32)
            gs_convert_to_f32(p->row, row, from, width);
        st = put_row(p, position, first + i, from == GS_F32 ? row : p->row);
    }
    return st;
}

/* The file cut into pieces of whole rows, read as whole blocks around them. */
typedef struct dense {
    uint64_t row_bytes, piece_rows, pieces, buffer_bytes;
    char *buffers; /* [PIECES][buffer_bytes] */
} dense;

static gs_status start_read(placing *p, const dense *d, uint64_t piece)
{
    const uint64_t first = piece * d->piece_rows, count = GS_MIN(d->piece_rows, p->in->vertices - first);
    const uint64_t from = p->in->feature.npy.data_offset + first * d->row_bytes, to = from + count * d->row_bytes;
    const uint64_t block = gs_align_down(from, GS_BLOCK_BYTES);

    return gs_part__aio_submit(p->aio, &p->source, false, d->buffers + piece % PIECES * d->buffer_bytes,
                               gs_align_up(to, GS_BLOCK_BYTES) - block, to - block, block, piece);
}

static gs_status read_dense(placing *p, const dense *d)
{
    gs_status st = GS_OK;

    memset(p->read_done, 0, sizeof(p->read_done));
    for (uint64_t i = 0; i < GS_MIN(PIECES, d->pieces) && st == GS_OK; i++)
        st = start_read(p, d, i);
    for (uint64_t i = 0; i < d->pieces && st == GS_OK; i++) {
        const uint64_t first = i * d->piece_rows, count = GS_MIN(d->piece_rows, p->in->vertices - first);
        const uint64_t from = p->in->feature.npy.data_offset + first * d->row_bytes;
        while (st == GS_OK && p->read_done[i % PIECES] != i + 1)
            st = reap(p);
        if (st == GS_OK && (st = check(p, first)) == GS_OK)
            st = put_dense(p, first, count, d->buffers + i % PIECES * d->buffer_bytes + from % GS_BLOCK_BYTES);
        if (st == GS_OK && i + PIECES < d->pieces)
            st = start_read(p, d, i + PIECES);
    }
    return st;
}

/* Reads in flight must not outlive their buffers, so a failure waits for all. */
static gs_status pass_dense(placing *p)
{
    const gs_part_file *const f = &p->in->feature;
    dense d = {.row_bytes = p->in->features * gs_dtype_bytes(f->npy.dtype)};
    uint64_t tag;
    gs_status st;

    d.piece_rows = GS_MAX(PIECE_BYTES / d.row_bytes, 1);
    d.pieces = gs_div_up(p->in->vertices, d.piece_rows);
    d.buffer_bytes = gs_align_up(d.piece_rows * d.row_bytes, GS_BLOCK_BYTES) + 2 * GS_BLOCK_BYTES;
    if ((d.buffers = gs_alloc_pages(PIECES * d.buffer_bytes)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", f->path);
    if ((st = read_dense(p, &d)) != GS_OK)
        while (gs_part__aio_in_flight(p->aio) != 0 && gs_part__aio_wait(p->aio, &tag) == GS_OK)
            ;
    gs_free_pages(d.buffers, PIECES * d.buffer_bytes);
    return st;
}

/* -- CSR input -------------------------------------------------------------------- */

#define CSR_PIECE 32768u

/* Stored values of a CSR matrix, front to back. */
typedef struct csr {
    const gs_part_input *in;
    int64_t *column;  /* [CSR_PIECE] */
    float *value;     /* [CSR_PIECE] */
    void *raw;        /* [CSR_PIECE] of 8 bytes */
    int64_t *ends;    /* [CSR_PIECE] indptr[row + 1] */
    uint64_t from, have;       /* values in memory: [from, from + have) */
    uint64_t row_from, row_have; /* rows whose end is in memory */
} csr;

static gs_status csr_values(csr *c, uint64_t at)
{
    const gs_part_file *const x = &c->in->indices, *const d = &c->in->data;
    const uint64_t count = GS_MIN(CSR_PIECE, x->npy.shape[0] - at);
    gs_status st;

    if ((st = gs_npy_read_rows(&x->npy, c->raw, at, count, x->path)) != GS_OK)
        return st;
    gs_part__to_i64(c->column, c->raw, x->npy.dtype, count);
    for (uint64_t i = 0; i < count; i++)
        if (c->column[i] < 0 || c->column[i] >= (int64_t)c->in->features)
            return gs_fail(GS_EFORMAT, "%s: row %llu: column %lld is not one of the %u features", x->path,
                           (unsigned long long)(at + i), (long long)c->column[i], c->in->features);
    if ((st = gs_npy_read_rows(&d->npy, c->raw, at, count, d->path)) != GS_OK)
        return st;
    if (d->npy.dtype == GS_F64)
        for (uint64_t i = 0; i < count; i++)
            c->value[i] = (float)((const double *)c->raw)[i];
    else
        gs_convert_to_f32(c->value, c->raw, d->npy.dtype, count);
    c->from = at;
    c->have = count;
    return GS_OK;
}

/* indptr[row + 1], checked against what comes before it. */
static gs_status csr_row_end(csr *c, uint64_t row, uint64_t begin, uint64_t *end)
{
    const gs_part_file *const f = &c->in->indptr;
    const uint64_t values = c->in->indices.npy.shape[0], n = c->in->vertices;

    if (row >= c->row_from + c->row_have) {
        const uint64_t count = GS_MIN(CSR_PIECE, n - row);
        const gs_status st = gs_npy_read_rows(&f->npy, c->raw, row + 1, count, f->path);
        if (st != GS_OK)
            return st;
        gs_part__to_i64(c->ends, c->raw, f->npy.dtype, count);
        c->row_from = row;
        c->row_have = count;
    }
    const int64_t v = c->ends[row - c->row_from];
    if (v < (int64_t)begin || (uint64_t)v > values || (row + 1 == n && (uint64_t)v != values))
        return gs_fail(GS_EFORMAT, "%s: row %llu: %lld does not fit between %llu and the %llu stored values", f->path,
                       (unsigned long long)row + 1, (long long)v, (unsigned long long)begin,
                       (unsigned long long)values);
    *end = (uint64_t)v;
    return GS_OK;
}

static gs_status csr_first(const csr *c)
{
    const gs_part_file *const f = &c->in->indptr;
    int64_t first;
    const gs_status st = gs_npy_read_rows(&f->npy, c->raw, 0, 1, f->path);
    if (st != GS_OK)
        return st;
    gs_part__to_i64(&first, c->raw, f->npy.dtype, 1);
    return first == 0 ? GS_OK : gs_fail(GS_EFORMAT, "%s: row 0: is %lld, must be 0", f->path, (long long)first);
}

/* Entries that name a column twice add up, as in SciPy. */
static gs_status csr_rows(placing *p, csr *c)
{
    uint64_t at = 0, end = 0;
    gs_status st = csr_first(c);

    for (uint64_t row = 0; row < p->in->vertices && st == GS_OK; row++) {
        if (row % 4096 == 0 && (st = check(p, row)) != GS_OK)
            break;
        if ((st = csr_row_end(c, row, at, &end)) != GS_OK)
            break;
        memset(p->row, 0, p->in->features * sizeof(float));
        while (at < end) {
            if (at >= c->from + c->have && (st = csr_values(c, at)) != GS_OK)
                return st;
            for (const uint64_t to = GS_MIN(end, c->from + c->have); at < to; at++)
                p->row[c->column[at - c->from]] += c->value[at - c->from];
        }
        if (in_pass(p, p->o->position[row]))
            st = put_row(p, p->o->position[row], row, p->row);
    }
    return st;
}

static gs_status pass_csr(placing *p)
{
    csr c = {.in = p->in};
    gs_status st;

    c.column = gs_malloc_array(CSR_PIECE, 8);
    c.value = gs_malloc_array(CSR_PIECE, 4);
    c.raw = gs_malloc_array(CSR_PIECE, 8);
    c.ends = gs_malloc_array(CSR_PIECE, 8);
    if (c.column && c.value && c.raw && c.ends)
        st = csr_rows(p, &c);
    else
        st = gs_fail(GS_ENOMEM, "%s: no memory to read it", p->in->data.path);
    gs_free(c.column);
    gs_free(c.value);
    gs_free(c.raw);
    gs_free(c.ends);
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

void gs_part__normal_row(float *dst, uint64_t seed, uint32_t id, uint32_t width)
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
static gs_status pass_random(placing *p)
{
    const uint64_t n = p->in->vertices, width = p->in->features, piece = GS_MAX(PIECE_BYTES / (width * 4), 1);
    float *rows = gs_alloc_pages(piece * width * 4);
    gs_status st = rows != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to make features", p->path);

    for (uint64_t at = 0; at < n && st == GS_OK; at += piece) {
        const uint64_t count = GS_MIN(piece, n - at);
        if ((st = check(p, at)) != GS_OK)
            break;
#pragma omp parallel for num_threads(p->job->threads) schedule(static)
        for (uint64_t i = 0; i < count; i++)
            gs_part__normal_row(rows + i * width, p->job->opt->seed, p->o->input_id[at + i], (uint32_t)width);
        for (uint64_t i = 0; i < count && st == GS_OK; i++)
            st = put_row(p, at + i, p->o->input_id[at + i], rows + i * width);
    }
    gs_free_pages(rows, piece * width * 4);
    return st;
}

/* -- all passes ------------------------------------------------------------------------ */

static gs_status passes(placing *p)
{
    const uint64_t streams = p->in->form == GS_FORM_RANDOM ? 1 : p->o->groups;
    const uint64_t count = gs_div_up(streams, (p->slots - p->most_writes) / 2 - 2), n = p->in->vertices;
    gs_status st = GS_OK;

    for (uint64_t i = 0; i < count && st == GS_OK; i++) {
        p->low = n * i / count;
        p->high = n * (i + 1) / count;
        if (p->in->form == GS_FORM_RANDOM)
            st = pass_random(p);
        else
            st = p->in->form == GS_FORM_CSR ? pass_csr(p) : pass_dense(p);
    }
    return st;
}

/* Full size at once, so that a full disk shows here. */
static gs_status make_file(placing *p)
{
    const off_t size = (off_t)gs_align_up(p->bytes, GS_BLOCK_BYTES);
    gs_status st;

    if ((p->path = gs_path_join(p->job->dir, "features.bin")) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", p->job->dir);
    if ((st = gs_part__aio_file_open(&p->file, p->path, O_RDWR | O_CREAT | O_TRUNC)) != GS_OK)
        return st;
    if (p->in->form == GS_FORM_DENSE &&
        (st = gs_part__aio_file_open(&p->source, p->in->feature.path, O_RDONLY)) != GS_OK)
        return st;
    if ((fallocate(p->file.plain, 0, 0, size) != 0 && errno != EOPNOTSUPP && errno != ENOSYS) ||
        ftruncate(p->file.plain, size) != 0)
        return gs_fail_errno(errno, "%s: cannot take %llu bytes", p->path, (unsigned long long)size);
    return gs_part__aio_open(&p->aio, MOST_WRITES + PIECES);
}

/* The windows still being written. */
static gs_status drain(placing *p)
{
    gs_status st = GS_OK;
    while (p->writes != 0 && st == GS_OK)
        st = reap(p);
    return st;
}

static gs_status make_buffers(placing *p, uint64_t memory)
{
    const uint64_t pieces = PIECES * (PIECE_BYTES + 3 * GS_BLOCK_BYTES), pool = memory > pieces ? memory - pieces : 0;

    p->slots = (uint32_t)GS_MIN(GS_MAX(pool / GS_SUM_BYTES, LEAST_SLOTS), p->windows + MOST_WRITES + LEAST_SLOTS);
    p->most_writes = GS_MIN(MOST_WRITES, p->slots / 4);
    p->vacancies = p->slots;
    p->slot = gs_malloc_array(p->windows, 4);
    p->sums = gs_malloc_array(p->windows, 8);
    p->pool = gs_alloc_pages(p->slots * GS_SUM_BYTES);
    p->filled = gs_malloc_array(p->slots, 4);
    p->vacant = gs_malloc_array(p->slots, 4);
    p->row = gs_malloc_array(p->in->features, 4);
    p->at_rest = gs_malloc_array(p->in->features, 4);
    p->aligned = gs_malloc_array(p->in->features, 8);
    if (!p->slot || !p->sums || !p->pool || !p->filled || !p->vacant || !p->row || !p->at_rest || !p->aligned)
        return gs_fail(GS_ENOMEM, "%s: no memory for %u write windows", p->path, p->slots);
    memset(p->slot, 0xff, p->windows * 4);
    for (uint32_t i = 0; i < p->slots; i++)
        p->vacant[i] = i;
    return GS_OK;
}

gs_status gs_part__rows_write(gs_part_job *job, const gs_part_input *in, const gs_part_order *o,
                              gs_array_info *info, uint64_t memory)
{
    placing p = {.job = job, .in = in, .o = o, .dtype = job->opt->feature_type,
                 .source = {-1, -1, NULL}, .file = {-1, -1, NULL}};
    gs_status st;

    p.row_bytes = (uint64_t)in->features * gs_dtype_bytes(p.dtype);
    p.bytes = in->vertices * p.row_bytes; /* below 2^32 * 2^31 * 4: no overflow */
    p.windows = gs_div_up(p.bytes, GS_SUM_BYTES);
    if ((st = make_file(&p)) != GS_OK || (st = make_buffers(&p, memory)) != GS_OK || (st = passes(&p)) != GS_OK ||
        (st = drain(&p)) != GS_OK)
        goto done;
    *info = (gs_array_info){.present = true, .dtype = p.dtype, .width = in->features, .row_bytes = p.row_bytes,
                            .bytes = p.bytes, .sums = p.sums};
    p.sums = NULL; /* now the caller's */
done:
    gs_part__aio_close(p.aio); /* before the buffers go */
    gs_part__aio_file_close(&p.source);
    gs_part__aio_file_close(&p.file);
    gs_free_pages(p.pool, p.slots * GS_SUM_BYTES);
    gs_free(p.slot);
    gs_free(p.sums);
    gs_free(p.filled);
    gs_free(p.vacant);
    gs_free(p.row);
    gs_free(p.at_rest);
    gs_free(p.aligned);
    gs_free(p.path);
    return st;
}
