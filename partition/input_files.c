/* input_files.c - the arrays of an input: .npy files, numbers of any type, edges and matrices piece by piece, and
 * arrays that are made in temporary files without names. */
#include "partition/input_files.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/temporary.h"
#include "partition/integers.h"
#include "partition/text_lines.h"
#include "store/store.h" /* GS_LINK_SPLITS */

/* ---- opens the .npy files of an input; numbers of any type. */

gs_status gs_part__file_open(gs_part_file *f, const char *dir, const char *name, bool required)
{
    GS_NEED((f->path = gs_path_join(dir, name)) != NULL, "%s: no memory for a path", dir);
    if (!required && gs_path_is_absent(f->path))
        return GS_OK;
    GS_TRY(gs_npy_open_any_order(&f->npy, f->any_order ? &f->transposed : NULL, f->path, 0, UINT64_MAX, f->path));
    posix_fadvise(f->npy.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return GS_OK;
}

void gs_part__file_close(gs_part_file *f)
{
    if (f->npy.fd >= 0)
        gs_npy_close(&f->npy);
    f->npy.fd = -1;
    gs_free(f->path);
    gs_free(f->opened_as);
    f->path = NULL;
    f->opened_as = NULL;
}

/* ---- all files that an input can have ---- */

static const size_t roles[] = {
    GS_PART_ROLE(edge),     GS_PART_ROLE(type),     GS_PART_ROLE(weight),       GS_PART_ROLE(feature),
    GS_PART_ROLE(indptr),   GS_PART_ROLE(indices),  GS_PART_ROLE(data),         GS_PART_ROLE(label),
    GS_PART_ROLE(split[0]), GS_PART_ROLE(split[1]), GS_PART_ROLE(split[2]),     GS_PART_ROLE(link[0]),
    GS_PART_ROLE(link[1]),  GS_PART_ROLE(link[2]),  GS_PART_ROLE(link_type[0]), GS_PART_ROLE(link_type[1]),
    GS_PART_ROLE(link_type[2]), GS_PART_ROLE(edge_feature), GS_PART_ROLE(link_label[0]), GS_PART_ROLE(link_label[1]),
    GS_PART_ROLE(link_label[2])};

static gs_part_file *file_of(gs_part_input *in, size_t k) { return (gs_part_file *)(void *)((char *)in + roles[k]); }

/* np.save(edge_index.T) is in Fortran order, and no less clear. */
void gs_part__files_reset(gs_part_input *in)
{
    for (size_t k = 0; k < GS_ARRAY_LEN(roles); k++)
        *file_of(in, k) = (gs_part_file){.npy = {.fd = -1}};
    in->edge.any_order = true;
    for (uint32_t k = 0; k < GS_LINK_SPLITS; k++)
        in->link[k].any_order = true;
}

void gs_part__files_close(gs_part_input *in)
{
    for (size_t k = 0; k < GS_ARRAY_LEN(roles); k++)
        gs_part__file_close(file_of(in, k));
    gs_part__named_close(in);
}

bool gs_part__is_integer(gs_dtype t)
{
    return t != GS_F32 && t != GS_F64 && t != GS_F16 && t != GS_BF16;
}

void gs_part__to_i64(int64_t *dst, const void *src, gs_dtype from, uint64_t n)
{
#define CASE(tag, type)                                 \
    case tag:                                           \
        for (uint64_t i = 0; i < n; i++)                \
            dst[i] = (int64_t)((const type *)src)[i];   \
        break;
    switch (from) {
        CASE(GS_U8, uint8_t)
        CASE(GS_I8, int8_t)
        CASE(GS_U16, uint16_t)
        CASE(GS_I16, int16_t)
        CASE(GS_U32, uint32_t)
        CASE(GS_I32, int32_t)
        CASE(GS_I64, int64_t)
    case GS_U64:
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t v = ((const uint64_t *)src)[i];
            dst[i] = v > INT64_MAX ? INT64_MAX : (int64_t)v;
        }
        break;
    default:
        memset(dst, 0, n * sizeof(*dst));
    }
#undef CASE
}

const char *gs_part__i64_words(char text[32], int64_t v)
{
    snprintf(text, 32, "%lld%s", (long long)v, v == INT64_MAX ? " or more" : "");
    return text;
}

#define CONVERT(name, to)                                                       \
    static void name(to *dst, const void *src, gs_dtype from, uint64_t n)       \
    {                                                                           \
        switch (from) {                                                         \
            CASE(GS_F64, double, to)                                            \
            CASE(GS_F32, float, to)                                             \
            CASE(GS_U8, uint8_t, to)                                            \
            CASE(GS_I8, int8_t, to)                                             \
            CASE(GS_U16, uint16_t, to)                                          \
            CASE(GS_I16, int16_t, to)                                           \
            CASE(GS_U32, uint32_t, to)                                          \
            CASE(GS_I32, int32_t, to)                                           \
            CASE(GS_U64, uint64_t, to)                                          \
            CASE(GS_I64, int64_t, to)                                           \
        default:                                                                \
            memset(dst, 0, n * sizeof(*dst));                                   \
        }                                                                       \
    }
#define CASE(tag, type, to)                         \
    case tag:                                       \
        for (uint64_t i = 0; i < n; i++)            \
            dst[i] = (to)((const type *)src)[i];    \
        break;
CONVERT(plain_to_f32, float)
CONVERT(plain_to_f64, double)
#undef CASE
#undef CONVERT

void gs_part__to_f32(float *dst, const void *src, gs_dtype from, uint64_t n)
{
    if (from == GS_F16 || from == GS_BF16)
        gs_convert_to_f32(dst, src, from, n);
    else
        plain_to_f32(dst, src, from, n);
}

void gs_part__to_f64(double *dst, const void *src, gs_dtype from, uint64_t n)
{
    const uint16_t *const half = src;

    if (from != GS_F16 && from != GS_BF16)
        plain_to_f64(dst, src, from, n);
    else
        for (uint64_t i = 0; i < n; i++)
            dst[i] = (double)(from == GS_F16 ? gs_f32_from_f16(half[i]) : gs_f32_from_bf16(half[i]));
}

/* ---- memory for a piece of the edge list. */

#define ROWS_BYTES (256 * GS_KIB) /* of features of edges that are looked at at once */

static uint64_t row_room(const gs_part_input *in)
{
    return GS_MAX(ROWS_BYTES, in->edge_features * gs_dtype_bytes(in->edge_feature.npy.dtype));
}

gs_status gs_part__edge_block_make(gs_part_edge_block *b, const gs_part_input *in, uint64_t edges)
{
    memset(b, 0, sizeof(*b));
    b->cap = GS_MAX(edges, 1);
    b->src = gs_arena_take(&b->memory, b->cap, sizeof(*b->src));
    b->dst = gs_arena_take(&b->memory, b->cap, sizeof(*b->dst));
    b->raw = gs_arena_take(&b->memory, b->cap, 16); /* two 64-bit ids, or one record of text input */
    if (in->typed)
        b->type = gs_arena_take(&b->memory, b->cap, sizeof(*b->type));
    if (in->weighted)
        b->weight = gs_arena_take(&b->memory, b->cap, sizeof(*b->weight));
    if (in->edge_features > 0) {
        b->mark = gs_arena_take(&b->memory, b->cap, sizeof(*b->mark));
        b->row = gs_arena_take(&b->memory, row_room(in), 1);
    }
    if (in->text != NULL)
        b->at = gs_sort_first(in->text, 0);
    return b->memory.is_short ? gs_fail(GS_ENOMEM, "%s: no memory to read edges", in->path) : GS_OK;
}

void gs_part__edge_block_free(gs_part_edge_block *b)
{
    gs_arena_free(&b->memory);
    memset(b, 0, sizeof(*b));
}

/* ---- a piece of the edges out of arrays of any integer type, pairs or two rows; their types and weights. */

/* Where end `column` of edge `edge` is in the file, in bytes from its first. */
static uint64_t place_of(const gs_part_input *in, uint64_t edge, uint64_t column)
{
    const uint64_t ids = in->two_rows ? column * in->edges + edge : 2 * edge + column;
    return ids * gs_dtype_bytes(in->edge.npy.dtype);
}

/* The slow path: a piece is known to hold a wrong id; which? */
static gs_status name_wrong_id(const gs_part_input *in, const gs_part_edge_block *b)
{
    const uint64_t step = in->two_rows ? 1 : 2, other = in->two_rows ? b->count : 1;

    for (uint64_t i = 0; i < 2 * b->count; i++) {
        int64_t id;
        const uint64_t at = i / 2 * step + i % 2 * other, edge = b->first + i / 2;
        gs_part__to_i64(&id, (const char *)b->raw + at * gs_dtype_bytes(in->edge.npy.dtype), in->edge.npy.dtype, 1);
        if (id < 0 || (uint64_t)id >= in->vertices)
            return gs_fail(GS_EFORMAT, "%s: row %lu, column %lu: vertex %s is not one of the %lu vertices (ids start "
                           "at 0)", in->edge.path, (in->two_rows ? i % 2 : edge), (in->two_rows ? edge : i % 2),
                           GS_PART_I64(id), in->vertices);
    }
    return gs_fail(GS_EFORMAT, "%s: changed while it was read", in->edge.path);
}

#define SPLIT(type)                                                              \
    do {                                                                         \
        const type *const from = b->raw, *const to = from + other;               \
        uint64_t wrong = 0;                                                      \
        for (uint64_t i = 0; i < b->count; i++) {                                \
            const uint64_t u = (uint64_t)from[step * i], v = (uint64_t)to[step * i]; \
            wrong |= (uint64_t)(u >= n) | (uint64_t)(v >= n);                    \
            b->src[i] = (uint32_t)u;                                             \
            b->dst[i] = (uint32_t)v;                                             \
        }                                                                        \
        return wrong != 0 ? name_wrong_id(in, b) : GS_OK;                        \
    } while (0)

/* Signed ids are widened with their sign, so that a negative one is beyond any N. */
static gs_status split_ends(const gs_part_input *in, gs_part_edge_block *b)
{
    const uint64_t n = in->vertices, step = in->two_rows ? 1 : 2, other = in->two_rows ? b->count : 1;
    switch (in->edge.npy.dtype) {
    case GS_I64:
        SPLIT(int64_t);
    case GS_U64:
        SPLIT(uint64_t);
    case GS_I32:
        SPLIT(int32_t);
    case GS_U32:
        SPLIT(uint32_t);
    case GS_I16:
        SPLIT(int16_t);
    case GS_U16:
        SPLIT(uint16_t);
    case GS_I8:
        SPLIT(int8_t);
    default:
        SPLIT(uint8_t);
    }
}
#undef SPLIT

/* Both ends of `count` edges into b->raw: pairs, or all sources and then all destinations. */
static gs_status read_ends(const gs_part_input *in, gs_part_edge_block *b, uint64_t first, uint64_t count)
{
    const gs_npy *const e = &in->edge.npy;
    const uint64_t bytes = count * gs_dtype_bytes(e->dtype);

    if (!in->two_rows)
        return gs_pread_exact(e->fd, b->raw, 2 * bytes, e->data_offset + place_of(in, first, 0), in->edge.path);
    GS_TRY(gs_pread_exact(e->fd, b->raw, bytes, e->data_offset + place_of(in, first, 0), in->edge.path));
    return gs_pread_exact(e->fd, (char *)b->raw + bytes, bytes, e->data_offset + place_of(in, first, 1), in->edge.path);
}

void gs_part__npy_advise(const gs_part_input *in, uint64_t first, uint64_t count, int advice)
{
    const gs_npy *const e = &in->edge.npy;
    const uint64_t edges = GS_MIN(count, in->edges - GS_MIN(first, in->edges));
    const uint64_t bytes = edges * gs_dtype_bytes(e->dtype) * (in->two_rows ? 1 : 2);

    for (uint64_t column = 0; column < (in->two_rows ? 2 : 1); column++)
        posix_fadvise(e->fd, (off_t)(e->data_offset + place_of(in, first, column)), (off_t)bytes, advice);
}

static gs_status read_types(const gs_part_input *in, gs_part_edge_block *b)
{
    GS_TRY(gs_npy_read_rows(&in->type.npy, b->raw, b->first, b->count, in->type.path));
    for (uint64_t i = 0; i < b->count; i++) {
        int64_t t;
        gs_part__to_i64(&t, (const char *)b->raw + i * gs_dtype_bytes(in->type.npy.dtype), in->type.npy.dtype, 1);
        if (t < 0 || t >= (in->edge_types != 0 ? (int64_t)in->edge_types : 65536))
            return gs_fail(GS_EFORMAT, "%s: row %lu: type %s is outside 0 to %u", in->type.path, b->first + i,
                           GS_PART_I64(t), in->edge_types != 0 ? in->edge_types - 1 : 65535);
        b->type[i] = (uint32_t)t;
    }
    return GS_OK;
}

static gs_status read_weights(const gs_part_input *in, gs_part_edge_block *b)
{
    GS_TRY(gs_npy_read_rows(&in->weight.npy, b->raw, b->first, b->count, in->weight.path));
    gs_part__to_f32(b->weight, b->raw, in->weight.npy.dtype, b->count);
    for (uint64_t i = 0; i < b->count; i++)
        if (!isfinite(b->weight[i]))
            return gs_fail(GS_EFORMAT, "%s: row %lu: the weight is not a finite float32", in->weight.path,
                           b->first + i);
    return GS_OK;
}

/* Of the features of each edge, and of its weight. */
static gs_status read_marks(const gs_part_input *in, gs_part_edge_block *b)
{
    const gs_npy *const npy = &in->edge_feature.npy;
    const uint64_t bytes = in->edge_features * gs_dtype_bytes(npy->dtype), room = row_room(in) / bytes;

    for (uint64_t at = 0, n; at < b->count; at += n) {
        n = GS_MIN(room, b->count - at);
        GS_TRY(gs_npy_read_rows(npy, b->row, b->first + at, n, in->edge_feature.path));
        for (uint64_t i = 0; i < n; i++) {
            uint32_t weight = 0;
            if (in->weighted)
                memcpy(&weight, &b->weight[at + i], sizeof(weight));
            b->mark[at + i] = gs_part__mix(gs_hash64(b->row + i * bytes, bytes) + weight);
        }
    }
    return GS_OK;
}

gs_status gs_part__npy_edges(const gs_part_input *in, gs_part_edge_block *b, uint64_t first, uint64_t count)
{
    b->first = first;
    b->count = count;
    GS_TRY(read_ends(in, b, first, count));
    GS_TRY(split_ends(in, b));
    if (in->typed)
        GS_TRY(read_types(in, b));
    if (in->weighted)
        GS_TRY(read_weights(in, b));
    return in->edge_features > 0 ? read_marks(in, b) : GS_OK;
}

gs_status gs_csr__alloc(gs_csr_reader *r, uint64_t piece, const char *path)
{
    r->piece = piece;
    r->column = gs_arena_take(&r->memory, piece, sizeof(*r->column));
    r->value = gs_arena_take(&r->memory, piece, sizeof(*r->value));
    r->end = gs_arena_take(&r->memory, piece, sizeof(*r->end));
    r->raw = gs_arena_take(&r->memory, piece, 8);
    return r->memory.is_short ? gs_fail(GS_ENOMEM, "%s: no memory to read it", path) : GS_OK;
}

gs_status gs_csr__bound(gs_csr_reader *r, uint64_t row, uint64_t before, uint64_t *at)
{
    const gs_part_file *const p = r->indptr;
    const uint64_t entries = r->indices->npy.shape[0];

    if (row >= r->first_end + r->ends) {
        const uint64_t count = GS_MIN(r->piece, r->rows + 1 - row);
        GS_TRY(gs_npy_read_rows(&p->npy, r->raw, row, count, p->path));
        gs_part__to_i64(r->end, r->raw, p->npy.dtype, count);
        r->first_end = row;
        r->ends = count;
    }
    const int64_t v = r->end[row - r->first_end];
    if (v < (int64_t)before || (uint64_t)v > entries || (row == 0 && v != 0) ||
        (row == r->rows && (uint64_t)v != entries))
        return gs_fail(GS_EFORMAT, "%s: row %lu: %s does not fit between %lu and the %lu entries", p->path, row,
                       GS_PART_I64(v), before, entries);
    *at = (uint64_t)v;
    return GS_OK;
}

gs_status gs_csr__values(gs_csr_reader *r, uint64_t at, uint64_t count)
{
    const gs_part_file *const d = r->data;

    GS_TRY(gs_npy_read_rows(&d->npy, r->raw, at, count, d->path));
    gs_part__to_f32(r->value, r->raw, d->npy.dtype, count);
    return GS_OK;
}

gs_status gs_csr__entries(gs_csr_reader *r, uint64_t at, bool values)
{
    const gs_part_file *const x = r->indices;
    const uint64_t count = GS_MIN(r->piece, x->npy.shape[0] - at);

    GS_TRY(gs_npy_read_rows(&x->npy, r->raw, at, count, x->path));
    gs_part__to_i64(r->column, r->raw, x->npy.dtype, count);
    for (uint64_t i = 0; i < count; i++)
        if (r->column[i] < 0 || (uint64_t)r->column[i] >= r->columns)
            return gs_fail(GS_EFORMAT, "%s: row %lu: column %s is not one of the %lu %s", x->path, at + i,
                           GS_PART_I64(r->column[i]), r->columns, r->columns_are);
    r->from = at;
    r->have = count;
    return values ? gs_csr__values(r, at, count) : GS_OK;
}

/* ---- arrays in temporary files without names. */

#define WRITE_BYTES (256 * GS_KIB)
#define DATA_OFFSET 4096u /* whole blocks, as rows are read */

/* "DIR/tmp.array, made of PATH"; NULL: no memory. */
static char *words_of_place(const char *hidden, const char *path)
{
    const size_t bytes = strlen(hidden) + strlen(path) + 16;
    char *const text = gs_malloc(bytes);
    if (text != NULL)
        snprintf(text, bytes, "%s, made of %s", hidden, path);
    return text;
}

gs_status gs_part__made_begin(gs_made *m, gs_part_file *file, const gs_part_job *job, char *path)
{
    GS_FREED char *hidden = NULL;
    char link[64];

    *m = (gs_made){.file = file, .offset = DATA_OFFSET};
    file->path = path;
    file->npy = (gs_npy){.fd = -1};
    GS_NEED(path != NULL, "%s: no memory for a path", job->place);
    GS_TRY(gs_unnamed_file_called(&file->npy.fd, &hidden, job->dir, "tmp.array"));
    file->npy.dims = 1; /* so that it is closed, whatever follows */
    snprintf(link, sizeof(link), "/proc/self/fd/%d", file->npy.fd); /* its only name */
    file->opened_as = gs_strdup(link);
    m->place = words_of_place(hidden, path);
    m->buffer = gs_malloc(WRITE_BYTES);
    GS_NEED(m->place != NULL && m->buffer != NULL && file->opened_as != NULL, "%s: no memory to read it", path);
    return GS_OK;
}

static gs_status flush(gs_made *m)
{
    const gs_status st = gs_pwrite_exact(m->file->npy.fd, m->buffer, m->fill, m->offset, m->place);
    m->offset += m->fill;
    m->fill = 0;
    return st;
}

gs_status gs_part__made_put(gs_made *m, const void *bytes, uint64_t count)
{
    const char *from = bytes;

    if (m->fill == 0 && count >= WRITE_BYTES) { /* large pieces go as they are */
        m->offset += count;
        return gs_pwrite_exact(m->file->npy.fd, bytes, count, m->offset - count, m->place);
    }
    while (count > 0) {
        const uint64_t take = GS_MIN(count, WRITE_BYTES - m->fill);
        memcpy(m->buffer + m->fill, from, take);
        m->fill += take;
        from += take;
        count -= take;
        if (m->fill == WRITE_BYTES)
            GS_TRY(flush(m));
    }
    return GS_OK;
}

/* Instead of putting: any thread, any place, in bytes from the array's first. */
static gs_status made_write(const gs_made *m, const void *bytes, uint64_t count, uint64_t offset)
{
    return gs_pwrite_exact(m->file->npy.fd, bytes, count, DATA_OFFSET + offset, m->place);
}

gs_status gs_part__made_fill(gs_made *m, int value, uint64_t count)
{
    while (count > 0) {
        const uint64_t take = GS_MIN(count, WRITE_BYTES - m->fill);
        memset(m->buffer + m->fill, value, take);
        m->fill += take;
        count -= take;
        if (m->fill == WRITE_BYTES)
            GS_TRY(flush(m));
    }
    return GS_OK;
}

gs_status gs_part__made_end(gs_made *m, gs_dtype as, uint64_t rows, uint64_t columns)
{
    const int fd = m->file->npy.fd;

    GS_TRY(flush(m));
    m->file->npy = (gs_npy){.dtype = as, .dims = columns == 1 ? 1 : 2, .shape = {rows, columns}, .fd = fd,
                            .data_offset = DATA_OFFSET, .data_bytes = rows * columns * gs_dtype_bytes(as)};
    return GS_OK;
}

gs_status gs_part__made_end_npy(gs_made *m)
{
    const int fd = m->file->npy.fd;
    gs_npy npy = {.fd = -1};

    GS_TRY(flush(m));
    GS_TRY(gs_npy_open_any_order(&npy, m->file->any_order ? &m->file->transposed : NULL, m->file->opened_as,
                                 DATA_OFFSET, m->offset - DATA_OFFSET, m->file->path));
    close(npy.fd);
    npy.fd = fd; /* the one that the name leads to */
    m->file->npy = npy;
    return GS_OK;
}

void gs_part__made_free(gs_made *m)
{
    gs_free(m->buffer);
    gs_free(m->place);
    m->buffer = m->place = NULL;
}

/* ---- rows of numbers in a text, as an array in a temporary file.
 *
 * Where a block's rows begin in the array is known once all blocks before it are parsed. */

#define MOST_LINE (16 * GS_MIB)
#define SAFE_DIGITS 18 /* a number of so many is an i64 */

typedef struct table {
    gs_dtype as;
    gs_made made;
    gs_line line; /* the last one of the blocks before, and the table's path */
    uint64_t rows, columns; /* of the blocks before */
    uint64_t limit; /* of a line */
} table;

/* What a worker makes of a block. */
typedef struct block {
    gs_line line;      /* the one being parsed; numbers count from the block's first */
    char *values;      /* of type table.as */
    uint64_t room, count; /* elements */
    uint64_t rows, columns, first; /* the line of its first row, from 1 */
    uint64_t row;      /* of the array, where its rows begin */
    const table *t;
    char wrong[160];   /* what is wrong in `line`; "" for nothing */
    uint64_t wrong_column;
} block;

static bool wrong(block *b, const char *at, const char *what)
{
    b->wrong_column = (uint64_t)(at - b->line.text) + 1;
    snprintf(b->wrong, sizeof(b->wrong), "%s", what);
    return false;
}

static bool grow(block *b)
{
    const uint64_t room = GS_MAX(b->room * 2, 1024u);
    char *const grown = gs_realloc(b->values, room * gs_dtype_bytes(b->t->as));
    if (grown == NULL)
        return wrong(b, b->line.text, "no memory for its numbers");
    b->values = grown;
    b->room = room;
    return true;
}

/* As strtoll(), but for blanks in front. */
static bool take_integer(int64_t *out, const char **p)
{
    const bool minus = **p == '-';
    const char *const from = *p + minus;
    uint64_t v = 0;
    char *after;

    *out = 0;
    const char *const end = gs_text_digits(from, &v);
    if (end > from && end - from <= SAFE_DIGITS) {
        *out = minus ? -(int64_t)v : (int64_t)v;
        *p = end;
        return true;
    }
    if (isspace((unsigned char)**p))
        return false;
    errno = 0;
    *out = strtoll(*p, &after, 10);
    if (after == *p || errno != 0)
        return false;
    *p = after;
    return true;
}

/* The number at *p, which may be missing where it is a fraction; *p is then behind it. */
static bool take_value(block *b, const char **p)
{
    const char *const field = *p;

    if (b->count == b->room && !grow(b))
        return false;
    if (b->t->as == GS_I64)
        return take_integer(&((int64_t *)(void *)b->values)[b->count++], p) ||
               wrong(b, field, "expected a whole number");
    const bool missing = *field == '\n' || *field == ',';
    const double v = missing ? (double)NAN : gs_text_real(field, p);
    if (*p == field && !missing)
        return wrong(b, field, "expected a number");
    if (b->t->as == GS_F32)
        ((float *)(void *)b->values)[b->count++] = (float)v;
    else
        ((double *)(void *)b->values)[b->count++] = v;
    return true;
}

/* The row of the line at b->line; *end is its newline. */
static bool take_line(block *b, const char **end)
{
    const uint64_t before = b->count;
    const char *p = gs_part__skip_blanks(b->line.text);
    char text[96];

    if (b->t->as == GS_I64 && *p == '\n') {
        *end = p;
        return true;
    }
    for (;;) {
        if (!take_value(b, &p))
            return false;
        p = gs_part__skip_blanks(p);
        if (*p == '\n')
            break;
        if (*p != ',')
            return wrong(b, p, "expected a comma or the end of the line after a number");
        p = gs_part__skip_blanks(p + 1);
    }
    *end = p;
    const uint64_t count = b->count - before;
    if (b->rows++ == 0) {
        b->columns = count;
        b->first = b->line.number;
    }
    if (count == b->columns)
        return true;
    snprintf(text, sizeof(text), "%lu numbers; the first line has %lu", count, b->columns);
    return wrong(b, b->line.text, text);
}

static void parse(void *context, const gs_text_block *text, void *own)
{
    block *const b = own;
    const char *const end = text->text + text->bytes;
    const char *const zero = memchr(text->text, '\0', text->bytes);

    b->t = context;
    b->count = b->rows = b->columns = 0;
    b->line = (gs_line){.path = b->t->line.path, .text = text->text};
    b->wrong[0] = '\0';
    while (b->line.text < end) {
        const char *stop = NULL;
        b->line.number++;
        if (zero != NULL) {
            stop = memchr(b->line.text, '\n', (size_t)(end - b->line.text));
            if (zero < stop) {
                wrong(b, zero, GS_ZERO_IN_TEXT);
                return;
            }
        }
        if (!take_line(b, &stop))
            return;
        b->line.text = stop + 1;
    }
}

/* Counts the block behind those before it. */
static gs_status pass(void *context, const gs_text_block *text, void *own)
{
    table *const t = context;
    block *const b = own;

    if (text->cut)
        return gs_part__line_too_long(&t->line, t->limit);
    if (b->wrong[0] != '\0')
        return gs_fail(GS_EFORMAT, "%s: line %lu, column %lu: %s", t->line.path, t->line.number + b->line.number,
                       b->wrong_column, b->wrong);
    if (t->rows > 0 && b->rows > 0 && b->columns != t->columns)
        return gs_fail(GS_EFORMAT, "%s: line %lu, column 1: %lu numbers; the first line has %lu", t->line.path,
                       t->line.number + b->first, b->columns, t->columns);
    b->row = t->rows;
    t->columns = t->rows == 0 ? b->columns : t->columns;
    t->rows += b->rows;
    t->line.number += b->line.number;
    return GS_OK;
}

static gs_status store(void *context, void *own)
{
    const table *const t = context;
    const block *const b = own;
    const uint64_t each = gs_dtype_bytes(t->as);
    return made_write(&t->made, b->values, b->count * each, b->row * b->columns * each);
}

static void release(void *own)
{
    block *const b = own;
    gs_free(b->values);
}

gs_status gs_part__table_read(gs_part_file *f, gs_part_job *job, char *path, gs_dtype as)
{
    table t = {.as = as, .line = {.path = path},
               .limit = GS_MAX(GS_LINE_LIMIT, GS_MIN(job->memory / 8, MOST_LINE))};
    const gs_text_reader reader = {.context = &t, .doing = "reading tables", .own_bytes = sizeof(block),
                                   .limit = t.limit,
                                   .parse = parse, .pass = pass, .store = store, .release = release};
    GS_ENDS(gs_part__lines_close) gs_lines l = {0};
    gs_status st;

    if ((st = gs_part__made_begin(&t.made, f, job, path)) == GS_OK &&
        (st = gs_part__lines_open(&l, job, path)) == GS_OK &&
        (st = gs_part__text_blocks(&l, job, &reader)) == GS_OK)
        st = gs_part__made_end(&t.made, as, t.rows, GS_MAX(t.columns, 1));
    gs_part__made_free(&t.made);
    return st;
}
