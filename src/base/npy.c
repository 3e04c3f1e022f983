/* The format: numpy/lib/format.py. Magic "\x93NUMPY", version major and minor,
 * header length (u16 in version 1, else u32), then a Python dictionary such as
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (2708, 1433), }
 * padded with blanks. Only that much of Python's grammar is read here. */
#include "base/npy.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6u
#define HEADER_LIMIT (1 * GS_MIB) /* ours are 118 bytes; a structured type's may be some KiB */

/* The letters and bytes of NumPy's `descr` for each type; bf16 has none. */
static const struct {
    char kind;
    char bytes;
    gs_dtype dtype;
} descr_types[] = {
    {'f', '4', GS_F32}, {'f', '2', GS_F16}, {'f', '8', GS_F64}, {'u', '1', GS_U8},  {'b', '1', GS_U8},
    {'i', '1', GS_I8},  {'u', '2', GS_U16}, {'i', '2', GS_I16}, {'u', '4', GS_U32}, {'i', '4', GS_I32},
    {'u', '8', GS_U64}, {'i', '8', GS_I64},
};

/* Reads the header's text from the left; `path` for messages. */
typedef struct cursor {
    const char *p, *end;
    const char *path;
} cursor;

typedef struct header {
    bool has_descr, has_order, has_shape;
    bool fortran, truth;
    gs_dtype dtype;
    uint32_t dims;
    uint64_t shape[2];
} header;

static gs_status malformed(const cursor *c, const char *what)
{
    return gs_fail(GS_EFORMAT, "%s: its .npy header is damaged: %s", c->path, what);
}

static void skip_blanks(cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
        c->p++;
}

/* Takes `ch` if it comes next, blanks apart. */
static bool take(cursor *c, char ch)
{
    skip_blanks(c);
    if (c->p == c->end || *c->p != ch)
        return false;
    c->p++;
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    const size_t length = strlen(word);
    skip_blanks(c);
    if ((size_t)(c->end - c->p) < length || memcmp(c->p, word, length) != 0)
        return false;
    c->p += length;
    return true;
}

/* A string in either kind of quote, without escapes. */
static bool take_string(cursor *c, const char **text, size_t *length)
{
    const char quote = take(c, '\'') ? '\'' : take(c, '"') ? '"' : '\0';
    if (quote == '\0')
        return false;
    const char *const close_quote = memchr(c->p, quote, (size_t)(c->end - c->p));
    if (close_quote == NULL)
        return false;
    *text = c->p;
    *length = (size_t)(close_quote - c->p);
    c->p = close_quote + 1;
    return true;
}

static gs_status parse_descr(cursor *c, header *h)
{
    const char *text;
    size_t length;

    skip_blanks(c);
    if (c->p < c->end && *c->p == '[')
        return gs_fail(GS_EFORMAT, "%s: holds records (a structured type); save one plain array a file", c->path);
    if (!take_string(c, &text, &length))
        return malformed(c, "'descr' is not a string");
    if (length == 3 && text[0] == '>' && text[2] != '1')
        return gs_fail(GS_EFORMAT, "%s: is big-endian ('%.3s'); save it little-endian, as with a.astype('<%.2s')",
                       c->path, text, text + 1);
    if (length == 3 && strchr("<|=>", text[0]) != NULL && text[0] != '\0') {
        for (size_t i = 0; i < GS_ARRAY_LEN(descr_types); i++) {
            if (text[1] == descr_types[i].kind && text[2] == descr_types[i].bytes) {
                h->dtype = descr_types[i].dtype;
                h->truth = text[1] == 'b';
                h->has_descr = true;
                return GS_OK;
            }
        }
    }
    return gs_fail(GS_EFORMAT, "%s: holds elements of type '%.*s'; save it as float32, int64 or another plain number",
                   c->path, (int)GS_MIN(length, 32), text);
}

static gs_status parse_order(cursor *c, header *h)
{
    h->fortran = take_word(c, "True");
    if (!h->fortran && !take_word(c, "False"))
        return malformed(c, "'fortran_order' is neither True nor False");
    h->has_order = true;
    return GS_OK;
}

static gs_status parse_length(cursor *c, uint64_t *out)
{
    uint64_t v = 0;

    skip_blanks(c);
    if (c->p == c->end || *c->p < '0' || *c->p > '9')
        return malformed(c, "a length in 'shape' is not a number");
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
        if (!gs_mul_u64(&v, v, 10) || !gs_add_u64(&v, v, (uint64_t)(*c->p - '0')))
            return malformed(c, "a length in 'shape' is beyond 64 bits");
    if (c->p < c->end && *c->p == 'L') /* Python 2 wrote 3L */
        c->p++;
    *out = v;
    return GS_OK;
}

static gs_status parse_shape(cursor *c, header *h)
{
    if (!take(c, '('))
        return malformed(c, "'shape' is not a tuple");
    h->dims = 0;
    h->shape[1] = 1;
    while (!take(c, ')')) {
        if (h->dims == 2)
            return gs_fail(GS_EFORMAT, "%s: has more than 2 dimensions; save it with 1 or 2", c->path);
        GS_TRY(parse_length(c, &h->shape[h->dims]));
        h->dims++;
        if (!take(c, ',') && (skip_blanks(c), c->p == c->end || *c->p != ')'))
            return malformed(c, "'shape' is not a tuple of numbers");
    }
    if (h->dims == 0)
        return gs_fail(GS_EFORMAT, "%s: holds a single number without dimensions; save an array", c->path);
    h->has_shape = true;
    return GS_OK;
}

static gs_status parse_header(cursor *c, header *h)
{
    const char *key;
    size_t length;

    *h = (header){0};
    if (!take(c, '{'))
        return malformed(c, "no dictionary");
    while (!take(c, '}')) {
        if (!take_string(c, &key, &length) || !take(c, ':'))
            return malformed(c, "a key and a ':' are missing");
        if (length == 5 && memcmp(key, "descr", 5) == 0)
            GS_TRY(parse_descr(c, h));
        else if (length == 13 && memcmp(key, "fortran_order", 13) == 0)
            GS_TRY(parse_order(c, h));
        else if (length == 5 && memcmp(key, "shape", 5) == 0)
            GS_TRY(parse_shape(c, h));
        else
            GS_TRY(malformed(c, "a key other than descr, fortran_order and shape"));
        if (!take(c, ',') && (skip_blanks(c), c->p == c->end || *c->p != '}'))
            return malformed(c, "a ',' or '}' is missing");
    }
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return malformed(c, "descr, fortran_order or shape is missing");
    return GS_OK;
}

/* Where an array is in a file: all of it, or a member of an archive. */
typedef struct extent {
    int fd;
    uint64_t offset, bytes;
} extent;

/* Length of the text and where it starts, counted from the extent's begin. */
static gs_status read_preamble(uint64_t *text_bytes, uint64_t *text_offset, const extent *e, const char *path)
{
    unsigned char b[12];
    const uint64_t file_bytes = e->bytes, have = GS_MIN(file_bytes, sizeof(b));

    GS_TRY(gs_pread_exact(e->fd, b, have, e->offset, path));
    if (have < 10 || memcmp(b, MAGIC, MAGIC_BYTES) != 0)
        return gs_fail(GS_EFORMAT, "%s: is not a .npy file", path);
    if (b[6] < 1 || b[6] > 3)
        return gs_fail(GS_EFORMAT, "%s: is a .npy file of version %u; versions 1 to 3 are read", path, b[6]);
    if (b[6] == 1) {
        *text_bytes = b[8] | (uint64_t)b[9] << 8;
        *text_offset = 10;
    } else {
        if (have < 12)
            return gs_fail(GS_EFORMAT, "%s: its .npy header is cut short", path);
        *text_bytes = b[8] | (uint64_t)b[9] << 8 | (uint64_t)b[10] << 16 | (uint64_t)b[11] << 24;
        *text_offset = 12;
    }
    if (*text_bytes > file_bytes - *text_offset)
        return gs_fail(GS_EFORMAT, "%s: its .npy header of %lu bytes is cut short", path, *text_bytes);
    if (*text_bytes > HEADER_LIMIT)
        return gs_fail(GS_EFORMAT, "%s: its .npy header of %lu bytes is too long to be one", path, *text_bytes);
    return GS_OK;
}

/* Checks what the header says against the file, and fills `npy` but for its descriptor. */
static gs_status accept(gs_npy *npy, const header *h, uint64_t data_offset, uint64_t file_bytes, const char *path)
{
    uint64_t data_bytes = gs_dtype_bytes(h->dtype);

    if (!gs_mul_u64(&data_bytes, data_bytes, h->shape[0]) || !gs_mul_u64(&data_bytes, data_bytes, h->shape[1]) ||
        data_bytes > file_bytes - data_offset)
        return gs_fail(GS_EFORMAT, "%s: its header says [%lu, %lu] of %s, but only %lu bytes follow; the file is cut "
                       "short", path, h->shape[0], h->shape[1], gs_dtype_name(h->dtype), file_bytes - data_offset);
    npy->dtype = h->dtype;
    npy->truth = h->truth;
    npy->dims = h->dims;
    npy->shape[0] = h->shape[0];
    npy->shape[1] = h->shape[1];
    npy->data_offset = data_offset;
    npy->data_bytes = data_bytes;
    return GS_OK;
}

/* One row or column is the same in either order. */
static gs_status check_order(header *h, bool *transposed, const char *path)
{
    const bool fortran = h->fortran && h->dims == 2 && h->shape[0] > 1 && h->shape[1] > 1;

    if (fortran && transposed == NULL)
        return gs_fail(GS_EFORMAT, "%s: is in Fortran order; save it with np.ascontiguousarray(a)", path);
    if (transposed != NULL)
        *transposed = fortran;
    if (fortran) {
        const uint64_t rows = h->shape[1];
        h->shape[1] = h->shape[0];
        h->shape[0] = rows;
    }
    return GS_OK;
}

/* `transposed` NULL: an array in Fortran order is refused. */
static gs_status open_extent(gs_npy *out, bool *transposed, const extent *e, const char *path)
{
    uint64_t text_bytes = 0, text_offset = 0;
    GS_FREED char *text = NULL;
    gs_npy npy = {0};
    header h;

    GS_TRY(read_preamble(&text_bytes, &text_offset, e, path));
    GS_NEED((text = gs_malloc(text_bytes)) != NULL, "%s: no memory to read its header", path);
    cursor c = {.p = text, .end = text + text_bytes, .path = path};
    GS_TRY(gs_pread_exact(e->fd, text, text_bytes, e->offset + text_offset, path));
    GS_TRY(parse_header(&c, &h));
    GS_TRY(check_order(&h, transposed, path));
    GS_TRY(accept(&npy, &h, text_offset + text_bytes, e->bytes, path));
    npy.data_offset += e->offset;
    *out = npy;
    out->fd = e->fd; /* now the caller's */
    return GS_OK;
}

gs_status gs_npy_open(gs_npy *out, const char *path)
{
    return gs_npy_open_any_order(out, NULL, path, 0, UINT64_MAX, path);
}

gs_status gs_npy_open_any_order(gs_npy *out, bool *transposed, const char *file, uint64_t offset, uint64_t bytes,
                                const char *path)
{
    GS_CLOSED int fd = -1;
    uint64_t file_bytes = 0;

    GS_TRY(gs_file_open_read(&fd, &file_bytes, file));
    if (bytes == UINT64_MAX && offset <= file_bytes)
        bytes = file_bytes - offset;
    if (offset > file_bytes || bytes > file_bytes - offset)
        return gs_fail(GS_EFORMAT, "%s: ends beyond the end of %s, which is cut short or damaged", path, file);
    GS_TRY(open_extent(out, transposed, &(extent){.fd = fd, .offset = offset, .bytes = bytes}, path));
    fd = -1; /* now the caller's */
    return GS_OK;
}

void gs_npy_close(gs_npy *npy)
{
    /* A zeroed struct has fd 0 too, but no array: standard input is not ours to close. */
    if (npy->fd >= 0 && npy->dims > 0)
        close(npy->fd);
    npy->fd = -1;
}

gs_status gs_npy_read_rows(const gs_npy *npy, void *dst, uint64_t first_row, uint64_t rows, const char *path)
{
    const uint64_t row_bytes = npy->shape[1] * gs_dtype_bytes(npy->dtype);

    if (first_row > npy->shape[0] || rows > npy->shape[0] - first_row)
        return gs_fail(GS_EINVAL, "%s: rows %lu to %lu are asked for, but it has %lu", path, first_row,
                       first_row + rows, npy->shape[0]);
    return gs_pread_exact(npy->fd, dst, rows * row_bytes, npy->data_offset + first_row * row_bytes, path);
}

/* Version-1 header for [rows, cols] in `buf`; gives its length, a multiple of 64. */
static size_t format_header(char *buf, size_t cap, const char *descr, uint64_t rows, uint64_t cols)
{
    char shape[64];
    const size_t lead = MAGIC_BYTES + 4;

    if (cols == 0)
        snprintf(shape, sizeof(shape), "(%lu,)", rows);
    else
        snprintf(shape, sizeof(shape), "(%lu, %lu)", rows, cols);
    const size_t length = (size_t)snprintf(buf + lead, cap - lead,
                                           "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    const size_t total = gs_align_up(lead + length + 1, 64);
    assert(total <= cap);

    memcpy(buf, MAGIC "\x01\x00", MAGIC_BYTES + 2);
    buf[8] = (char)((total - lead) & 0xff);
    buf[9] = (char)((total - lead) >> 8);
    memset(buf + lead + length, ' ', total - lead - length - 1);
    buf[total - 1] = '\n';
    return total;
}

static bool descr_of(char out[4], gs_dtype dtype)
{
    for (size_t i = 0; i < GS_ARRAY_LEN(descr_types); i++) {
        if (descr_types[i].dtype == dtype) {
            out[0] = descr_types[i].bytes == '1' ? '|' : '<';
            out[1] = descr_types[i].kind;
            out[2] = descr_types[i].bytes;
            out[3] = '\0';
            return true;
        }
    }
    return false;
}

gs_status gs_npy_create(gs_outfile *o, uint64_t *data_offset, const char *path, gs_dtype dtype, uint64_t rows,
                        uint64_t cols)
{
    char head[256], descr[4];
    uint64_t bytes = gs_dtype_bytes(dtype);
    gs_status st;

    if (!descr_of(descr, dtype))
        return gs_fail(GS_EUNSUPPORTED, "%s: NumPy has no element type %s", path, gs_dtype_name(dtype));
    const size_t head_bytes = format_header(head, sizeof(head), descr, rows, cols);
    if (!gs_mul_u64(&bytes, bytes, rows) || !gs_mul_u64(&bytes, bytes, GS_MAX(cols, 1)) ||
        !gs_add_u64(&bytes, bytes, head_bytes) || bytes > INT64_MAX)
        return gs_fail(GS_EINVAL, "%s: an array of [%lu, %lu] is beyond what a file can hold", path, rows, cols);

    GS_TRY(gs_outfile_begin(o, path));
    if ((st = gs_outfile_reserve(o, bytes)) != GS_OK || (st = gs_outfile_write(o, head, head_bytes, 0)) != GS_OK) {
        gs_outfile_abandon(o);
        return st;
    }
    *data_offset = head_bytes;
    return GS_OK;
}
