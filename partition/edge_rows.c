/* edge_rows.c - rows of edges sorted from the order of the input to that of the chunks.
 *
 *   wanted, by number  +  the input's rows, front to back  -->  rows, by run of chunks  -->  chunks, in file order
 *
 * A run is of consecutive chunks that fit memory together. Edges of a target that have the same operand and type are
 * put in order of what they carry, so that both copies of a graph's edges, and a symmetric graph's two ends, have them
 * in one order, whatever the input's. */
#include "partition/chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "store/chunk_view.h"
#include "store/store_write.h" /* gs_store_edges_name */

#define WANTED_WORDS 3u   /* number, chunk, place */
#define MOST_BUCKETS 4096u
#define LEAST_RECORDS 64u /* of a buffer of external_sort.c */
#define PIECE_BYTES (256u * GS_KIB)

/* Bytes that hold a row of the input in any form. */
static uint64_t row_room(const gs_part_input *in) { return in->edge_features * 8ull + sizeof(float); }

gs_status gs_part__wanted_make(gs_part_wanted *wanted, const gs_part_job *job, const gs_part_input *in,
                               uint32_t threads, uint64_t memory)
{
    const uint64_t least = (uint64_t)threads * LEAST_RECORDS * WANTED_WORDS * 4;
    const uint64_t most = GS_MAX(GS_MIN(memory / least, MOST_BUCKETS), 1);
    gs_sort_spec spec = {.dir = job->dir, .name = "tmp.wanted", .writers = threads, .words = WANTED_WORDS,
                         .memory = memory};

    *wanted = (gs_part_wanted){0};
    while ((in->edges - 1) >> wanted->shift >= most)
        wanted->shift++;
    spec.buckets = (uint32_t)((in->edges - 1) >> wanted->shift) + 1;
    return gs_sort_make(&wanted->sort, &spec);
}

/* ---- from the input, by number, to runs of chunks ------------------------- */

typedef struct moving {
    gs_part_job *job;
    const gs_part_edge_rows *spec;
    const gs_part_wanted *wanted;
    uint64_t chunks;
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
} moving;

static uint64_t payload_bytes(const gs_edge_data *data)
{
    return (data->weights ? sizeof(float) : 0) + data->feature_bytes;
}

static gs_status load_rows(moving *m, uint64_t from, uint64_t count)
{
    const gs_part_input *const in = m->spec->in;
    gs_status st = gs_npy_read_rows(&in->edge_feature.npy, m->raw, from, count, in->edge_feature.path);

    m->from = from;
    m->have = count;
    if (st != GS_OK || !in->weighted)
        return st;
    char *const raw = m->raw + m->room * in->edge_features * 8; /* behind the features */
    st = gs_npy_read_rows(&in->weight.npy, raw, from, count, in->weight.path);
    if (st == GS_OK)
        gs_part__to_f32(m->weight, raw, in->weight.npy.dtype, count);
    return st;
}

static gs_status name_bad_number(const moving *m, uint64_t number, const char *at_rest)
{
    const gs_part_input *const in = m->spec->in;
    const gs_dtype type = m->job->feature_type;

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
static gs_status convert_row(moving *m, uint64_t number, char *to)
{
    const gs_part_input *const in = m->spec->in;
    const gs_npy *const npy = &in->edge_feature.npy;
    const uint64_t k = number - m->from, size = gs_dtype_bytes(npy->dtype);
    const gs_dtype type = m->job->feature_type;
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

static uint32_t run_of(const moving *m, uint64_t chunk)
{
    uint32_t low = 0, high = m->runs;
    while (high - low > 1) { /* first[low] <= chunk < first[high] */
        const uint32_t middle = low + (high - low) / 2;
        *(m->first[middle] <= chunk ? &low : &high) = middle;
    }
    return low;
}

/* The rows of the loaded numbers that the bucket's edges want. */
static gs_status answer(moving *m, uint32_t bucket)
{
    const uint64_t cap = PIECE_BYTES / (WANTED_WORDS * 4);
    gs_sort_cursor at = gs_sort_first(m->wanted->sort, bucket);
    uint64_t count = 1;
    gs_status st = GS_OK;

    while (st == GS_OK && (st = gs_sort_read(m->wanted->sort, &at, m->piece, cap, &count)) == GS_OK && count > 0)
        for (uint64_t i = 0; i < count && st == GS_OK; i++) {
            const uint32_t *const want = m->piece + i * WANTED_WORDS;
            if (want[0] < m->from || want[0] >= m->from + m->have)
                continue;
            uint32_t *const record = gs_sort_put(m->rows, 0, run_of(m, want[1]));
            if (record == NULL)
                return gs_sort_failure(m->rows);
            record[m->words - 1] = 0; /* of which features may leave some bytes */
            record[0] = want[1];
            record[1] = want[2];
            st = convert_row(m, want[0], (char *)(record + 2));
        }
    return st;
}

static gs_status answer_all(moving *m)
{
    const gs_external_sort *const s = m->wanted->sort;
    const uint64_t edges = m->spec->in->edges;

    for (uint32_t b = 0; b < s->spec.buckets; b++) {
        const uint64_t first = (uint64_t)b << m->wanted->shift, end = GS_MIN(edges, first + (1ull << m->wanted->shift));
        for (uint64_t at = first; at < end; at += m->have) {
            gs_part__tick(m->job, "moving edge features", (double)at / (double)edges);
            GS_TRY(gs_part__job_result(m->job));
            GS_TRY(load_rows(m, at, GS_MIN(m->room, end - at)));
            GS_TRY(answer(m, b));
        }
    }
    return gs_sort_finish(m->rows);
}

/* ---- from runs to chunks ---------------------------------------------------- */

typedef struct filling {
    const moving *m;
    char *bytes; /* of the run's chunks */
    uint64_t offset;
    int fd;
    char *path;
} filling;

static void view_of(const filling *f, gs_chunk_view *view, uint64_t chunk)
{
    const gs_part_grid *const g = f->m->spec->grid;
    const gs_chunk *const c = &f->m->spec->chunk[chunk];
    const gs_chunk_expect expect = {.index_bytes = g->rows <= 65536 ? 2 : 4, .edges = c->edges, .targets = c->targets,
                                    .operands = c->operands, .largest = c->largest};
    gs_chunk_view_place(view, f->bytes + (c->offset - f->offset), &expect, f->m->spec->data);
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
static gs_status place_rows(const filling *f, uint32_t run)
{
    const moving *const m = f->m;
    const uint64_t cap = GS_MAX(PIECE_BYTES / (m->words * 4), 1);
    gs_sort_cursor at = gs_sort_first(m->rows, run);
    uint64_t count = 1;
    gs_status st;

    while ((st = gs_sort_read(m->rows, &at, m->piece, cap, &count)) == GS_OK && count > 0)
        for (uint64_t i = 0; i < count; i++) {
            const uint32_t *const record = m->piece + i * m->words;
            gs_chunk_view v;
            view_of(f, &v, record[0]);
            put_payload(&v, record[1], (const char *)(record + 2));
        }
    return st;
}

static gs_status fill_run(filling *f, uint32_t run)
{
    const moving *const m = f->m;
    gs_chunk *const chunk = m->spec->chunk;
    uint64_t first = m->first[run], end = m->first[run + 1], bytes = 0;
    gs_status st;

    for (uint64_t c = first; c < end; c++)
        bytes += chunk[c].length;
    while (first < end && chunk[first].edges == 0)
        first++;
    if (first == end)
        return GS_OK;
    f->offset = chunk[first].offset;
    if ((st = gs_pread_exact(f->fd, f->bytes, bytes, f->offset, f->path)) != GS_OK ||
        (st = place_rows(f, run)) != GS_OK)
        return st;
    for (uint64_t c = first; c < end && st == GS_OK; c++) {
        gs_chunk_view v;
        if (chunk[c].edges == 0)
            continue;
        view_of(f, &v, c);
        st = order_edges(&v, payload_bytes(&m->spec->data));
        chunk[c].checksum = gs_hash64(f->bytes + (chunk[c].offset - f->offset), chunk[c].length);
    }
    return st == GS_OK ? gs_pwrite_exact(f->fd, f->bytes, bytes, f->offset, f->path) : st;
}

static gs_status fill_all(const moving *m, uint64_t most)
{
    filling f = {.m = m, .fd = -1, .path = gs_path_join(m->job->dir, gs_store_edges_name(m->spec->direction))};
    gs_status st = GS_OK;

    f.bytes = gs_alloc_pages(most);
    if (f.path == NULL || f.bytes == NULL)
        st = gs_fail(GS_ENOMEM, "%s: no memory to fill chunks", m->job->dir);
    else if ((f.fd = open(f.path, O_RDWR | O_CLOEXEC)) < 0)
        st = gs_fail_errno(errno, "%s", f.path);
    for (uint32_t r = 0; r < m->runs && st == GS_OK; r++)
        if ((st = gs_part__job_result(m->job)) == GS_OK)
            st = fill_run(&f, r);
    if (f.fd >= 0)
        close(f.fd);
    gs_free_pages(f.bytes, most);
    gs_free(f.path);
    return st;
}

/* ---- the whole ------------------------------------------------------------- */

/* Cuts the chunks into runs of at most `bytes`, or one chunk; gives the bytes and edges of the largest. With `first`
 * NULL it counts. */
static uint32_t cut_runs(const moving *m, uint64_t bytes, uint64_t *first, uint64_t *most_bytes, uint64_t *most_edges)
{
    const gs_chunk *const chunk = m->spec->chunk;
    uint64_t length = 0, edges = 0;
    uint32_t runs = 0;

    for (uint64_t c = 0; c <= m->chunks; c++) {
        const bool begins = c == 0 || c == m->chunks || (length > 0 && length + chunk[c].length > bytes);
        if (begins) {
            if (first != NULL)
                first[runs] = c;
            runs += c < m->chunks;
            length = edges = 0;
        }
        if (c < m->chunks) {
            length += chunk[c].length;
            edges += chunk[c].edges;
        }
        *most_bytes = GS_MAX(*most_bytes, length);
        *most_edges = GS_MAX(*most_edges, edges);
    }
    return runs;
}

static gs_status make_sort(moving *m, uint64_t memory, uint64_t most_edges)
{
    const gs_sort_spec spec = {.dir = m->job->dir, .name = "tmp.edge_rows", .buckets = m->runs, .writers = 1,
                               .words = m->words, .memory = memory, .each = most_edges};
    return gs_sort_make(&m->rows, &spec);
}

static gs_status make_buffers(moving *m, uint64_t memory)
{
    const gs_part_input *const in = m->spec->in;

    m->room = GS_MAX(GS_MIN(memory / row_room(in), in->edges), 1);
    m->raw = gs_arena_take(&m->memory, m->room, in->edge_features * 8ull + 8);
    m->weight = gs_arena_take(&m->memory, m->room, sizeof(float));
    m->row = gs_arena_take(&m->memory, in->edge_features, sizeof(float));
    m->piece = gs_arena_take(&m->memory, GS_MAX(PIECE_BYTES, m->words * 4u), 1);
    return m->memory.is_short ? gs_fail(GS_ENOMEM, "%s: no memory to move the features of edges", m->job->dir) : GS_OK;
}

static void moving_end(moving *m)
{
    gs_sort_free(m->rows);
    gs_arena_free(&m->memory);
}

gs_status gs_part__edge_rows_write(gs_part_job *job, const gs_part_edge_rows *spec, gs_part_wanted *wanted)
{
    GS_ENDS(moving_end) moving m = {.job = job, .spec = spec, .wanted = wanted,
                                    .chunks = (uint64_t)spec->grid->parts * spec->grid->parts,
                                    .words = 2 + (uint32_t)gs_div_up(payload_bytes(&spec->data), 4)};
    uint64_t most_bytes = GS_BLOCK_BYTES, most_edges = 1;

    GS_TRY(gs_sort_finish(wanted->sort));
    m.runs = cut_runs(&m, spec->memory / 2, NULL, &most_bytes, &most_edges);
    if ((m.first = gs_arena_take(&m.memory, m.runs + 1ull, sizeof(*m.first))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for runs of chunks", job->dir);
    cut_runs(&m, spec->memory / 2, m.first, &most_bytes, &most_edges);
    GS_TRY(make_buffers(&m, spec->memory / 4));
    GS_TRY(make_sort(&m, spec->memory / 4, most_edges));
    GS_TRY(answer_all(&m));
    gs_sort_free(wanted->sort);
    wanted->sort = NULL;
    return fill_all(&m, most_bytes);
}
