/* safetensors.c - which tensors of a program such a file has, in which order and shape, and how it is written. */
#include "train/safetensors.h"

#include <endian.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/file.h"
#include "base/record.h"
#include "base/size.h"

/* ---- writing ------------------------------------------------------------- */

/* Is this parameter in files? Statistics are the run's own. */
static bool is_in_files(const gs_param *q) { return q->statistic == GS_STATISTIC_NONE; }

/* Counters are whole numbers of 8 bytes there. */
static uint64_t file_bytes(const gs_param *q)
{
    return q->counter ? sizeof(int64_t) : gs_param_elements(q) * sizeof(float);
}

/* Counters first, so that they stand at multiples of their size. */
uint32_t gs_safetensors_param(const gs_program *p, uint32_t k)
{
    for (int counters = 1; counters >= 0; counters--)
        for (uint32_t i = 0; i < p->params; i++)
            if (is_in_files(&p->param[i]) && p->param[i].counter == (counters == 1) && k-- == 0)
                return i;
    return GS_NONE;
}

uint32_t gs_safetensors_shape(uint64_t shape[3], const gs_param *q)
{
    if (q->counter)
        return 0;
    for (uint32_t d = 0; d < q->shape_dims; d++)
        shape[d] = q->shape[d];
    if (q->shape_dims != 0)
        return q->shape_dims;
    shape[0] = q->dims == 1 ? q->cols : q->rows;
    shape[1] = q->cols;
    return q->dims == 1 ? 1 : 2;
}

static bool add_entry(cJSON *header, const char *name, const char *dtype, uint32_t dims, const uint64_t *size,
                      uint64_t begin, uint64_t end)
{
    cJSON *const entry = cJSON_AddObjectToObject(header, name), *shape, *span;

    if (entry == NULL || cJSON_AddStringToObject(entry, "dtype", dtype) == NULL ||
        (shape = cJSON_AddArrayToObject(entry, "shape")) == NULL)
        return false;
    for (uint32_t d = 0; d < dims; d++)
        if (!cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)size[d])))
            return false;
    return (span = cJSON_AddArrayToObject(entry, "data_offsets")) != NULL &&
           cJSON_AddItemToArray(span, cJSON_CreateNumber((double)begin)) &&
           cJSON_AddItemToArray(span, cJSON_CreateNumber((double)end));
}

static uint64_t table_bytes(const gs_table *t, uint64_t vertices) { return vertices * t->width * sizeof(float); }

/* In files; dimensions. */
static uint32_t table_shape(uint64_t shape[3], uint64_t vertices, uint32_t width, uint32_t blocks)
{
    const uint32_t first = blocks > 0 ? 1 : 0;
    shape[0] = blocks;
    shape[first] = vertices;
    shape[first + 1] = blocks > 0 ? width / blocks : width;
    return first + 2;
}

static bool add_tables(cJSON *header, const gs_program *p, const gs_safetensors_tables *tables, uint64_t at)
{
    bool whole = true;
    for (uint32_t t = 0; tables != NULL && t < p->tables && whole; t++) {
        const uint64_t end = at + table_bytes(&p->table[t], tables->vertices);
        uint64_t size[3];
        const uint32_t dims = table_shape(size, tables->vertices, p->table[t].width, p->table[t].blocks);
        whole = add_entry(header, p->table[t].name, "F32", dims, size, at, end);
        at = end;
    }
    return whole;
}

/* The header's text, or NULL; free with cJSON_free(). */
static char *header_text(const gs_program *p, float *const *value, const gs_safetensors_tables *tables,
                         const gs_safetensors_note *note, uint32_t notes)
{
    GS_ENDS(cJSON_Delete_at) cJSON *const header = cJSON_CreateObject();
    cJSON *const meta = header == NULL ? NULL : cJSON_AddObjectToObject(header, "__metadata__");
    uint64_t at = 0, size[3];

    /* "format": "pt" is what Python's loaders look for. */
    if (meta == NULL || cJSON_AddStringToObject(meta, "format", "pt") == NULL)
        return NULL;
    for (uint32_t k = 0; k < notes; k++)
        if (cJSON_AddStringToObject(meta, note[k].key, note[k].value) == NULL)
            return NULL;
    for (uint32_t k = 0, i; (i = gs_safetensors_param(p, k)) != GS_NONE; k++) {
        const gs_param *const q = &p->param[i];
        if (value[i] == NULL)
            continue;
        const uint32_t dims = gs_safetensors_shape(size, q);
        const uint64_t end = at + file_bytes(q);
        if (!add_entry(header, q->name, q->counter ? "I64" : "F32", dims, size, at, end))
            return NULL;
        at = end;
    }
    return add_tables(header, p, tables, at) ? cJSON_PrintUnformatted(header) : NULL;
}

/* The header behind its length, padded with spaces to a multiple of 8, in one piece of `*bytes`; free with
 * gs_free(), also after a failure. */
static gs_status make_head(char **out, uint64_t *bytes, const gs_program *p, float *const *value,
                           const gs_safetensors_tables *tables, const gs_safetensors_note *note, uint32_t notes,
                           const char *path)
{
    char *const text = header_text(p, value, tables, note, notes);
    const size_t length = text == NULL ? 0 : strlen(text), padded = (size_t)gs_align_up(length, 8);
    const uint64_t prefix = htole64(padded);
    gs_status st = GS_OK;

    if (text == NULL || (*out = gs_malloc(8 + padded)) == NULL) {
        st = gs_fail(GS_ENOMEM, "%s: no memory for the header", path);
    } else if (padded > GS_SAFETENSORS_HEADER_LIMIT) {
        st = gs_fail(GS_EINVAL, "%s: the header would have %zu bytes, of which readers take %u", path, padded,
                     GS_SAFETENSORS_HEADER_LIMIT);
    } else {
        memcpy(*out, &prefix, 8);
        memcpy(*out + 8, text, length);
        memset(*out + 8 + length, ' ', padded - length);
        *bytes = 8 + padded;
    }
    cJSON_free(text);
    return st;
}

gs_status gs_safetensors_reserve(gs_outfile *o, const gs_program *p, float *const *value,
                                        const gs_safetensors_tables *tables)
{
    GS_FREED char *head = NULL;
    uint64_t bytes = 0;

    GS_TRY(make_head(&head, &bytes, p, value, tables, NULL, 0, o->path));
    for (uint32_t k = 0, i; (i = gs_safetensors_param(p, k)) != GS_NONE; k++)
        bytes += value[i] == NULL ? 0 : file_bytes(&p->param[i]);
    for (uint32_t t = 0; tables != NULL && t < p->tables; t++)
        bytes += table_bytes(&p->table[t], tables->vertices);
    return gs_outfile_reserve(o, bytes);
}

gs_status gs_safetensors_write(gs_outfile *o, const gs_program *p, float *const *value,
                                      const gs_safetensors_tables *tables, const gs_safetensors_note *note,
                                      uint32_t notes)
{
    GS_FREED char *head = NULL;
    uint64_t at = 0;

    GS_TRY(make_head(&head, &at, p, value, tables, note, notes, o->path));
    GS_TRY(gs_outfile_write(o, head, at, 0));
    for (uint32_t k = 0, i; (i = gs_safetensors_param(p, k)) != GS_NONE; k++) {
        if (value[i] == NULL)
            continue;
        const uint64_t bytes = file_bytes(&p->param[i]);
        const uint64_t count = htole64(p->param[i].counter ? (uint64_t)value[i][0] : 0);
        GS_TRY(gs_outfile_write(o, p->param[i].counter ? (const void *)&count : value[i], bytes, at));
        at += bytes;
    }
    for (uint32_t t = 0; tables != NULL && t < p->tables; t++) {
        GS_TRY(tables->write(tables->context, tables->run, t, o, at));
        at += table_bytes(&p->table[t], tables->vertices);
    }
    return gs_outfile_cut(o, at);
}

/* ---- reading ------------------------------------------------------------- */

#define SHAPE_TEXT 96
#define NAME_TEXT 80
#define MAX_DIMS 8
#define MAX_EXACT 9007199254740992.0 /* 2^53: JSON numbers are doubles here */
#define PIECE_ELEMENTS 65536u

/* One tensor as the header describes it, checked against the file's size. */
typedef struct entry {
    const char *name; /* the program's */
    gs_dtype dtype;
    uint32_t dims;
    uint64_t shape[MAX_DIMS];
    uint64_t begin, end; /* bytes from the start of the data */
} entry;

static bool exact_u64(uint64_t *out, const cJSON *item)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > MAX_EXACT ||
        item->valuedouble != floor(item->valuedouble))
        return false;
    *out = (uint64_t)item->valuedouble;
    return true;
}

const char *gs_safetensors_printable(char *out, size_t room, const char *text)
{
    size_t n = 0;

    for (; text != NULL && n + 1 < room && text[n] != '\0'; n++)
        out[n] = (unsigned char)text[n] < ' ' || text[n] == 127 ? '?' : text[n];
    out[n] = '\0';
    return out;
}

static bool parse_dtype(gs_dtype *out, const cJSON *item)
{
    static const struct {
        const char *name;
        gs_dtype dtype;
    } known[] = {{"F32", GS_F32}, {"F16", GS_F16}, {"BF16", GS_BF16}, {"F64", GS_F64}, {"I64", GS_I64}};

    for (size_t i = 0; cJSON_IsString(item) && i < GS_ARRAY_LEN(known); i++)
        if (strcmp(item->valuestring, known[i].name) == 0) {
            *out = known[i].dtype;
            return true;
        }
    return false;
}

static bool parse_shape(entry *e, const cJSON *item)
{
    const cJSON *dim;

    if (!cJSON_IsArray(item))
        return false;
    e->dims = 0;
    cJSON_ArrayForEach(dim, item)
    {
        if (e->dims == MAX_DIMS || !exact_u64(&e->shape[e->dims], dim))
            return false;
        e->dims++;
    }
    return true;
}

static gs_status parse_entry(entry *e, const cJSON *item, uint64_t data_bytes, const char *path)
{
    char name[NAME_TEXT], type[NAME_TEXT];
    const cJSON *const dtype = cJSON_GetObjectItemCaseSensitive(item, "dtype");
    const cJSON *const span = cJSON_GetObjectItemCaseSensitive(item, "data_offsets");
    uint64_t bytes;

    gs_safetensors_printable(name, sizeof(name), item->string);
    if (!parse_dtype(&e->dtype, dtype))
        return gs_fail(GS_EFORMAT,
                       "%s: tensor \"%s\" has type %s; F32, F16, BF16 and F64 can be read, and I64 for counts", path,
                       name, gs_safetensors_printable(type, sizeof(type),
                                                      cJSON_IsString(dtype) ? dtype->valuestring : "(none)"));
    if (!parse_shape(e, cJSON_GetObjectItemCaseSensitive(item, "shape")))
        return gs_fail(GS_EFORMAT, "%s: tensor \"%s\" has no valid shape; the header is damaged", path, name);
    bytes = gs_dtype_bytes(e->dtype);
    for (uint32_t d = 0; d < e->dims; d++)
        if (!gs_mul_u64(&bytes, bytes, e->shape[d]))
            return gs_fail(GS_EFORMAT, "%s: tensor \"%s\" has an impossible shape; the header is damaged", path,
                           name);
    if (cJSON_GetArraySize(span) != 2 || !exact_u64(&e->begin, cJSON_GetArrayItem(span, 0)) ||
        !exact_u64(&e->end, cJSON_GetArrayItem(span, 1)) || e->begin > e->end || e->end > data_bytes ||
        e->end - e->begin != bytes)
        return gs_fail(GS_EFORMAT,
                       "%s: the place of tensor \"%s\" does not fit its shape or the file; it is damaged or cut short",
                       path, name);
    return GS_OK;
}

static const char *shape_text(char out[SHAPE_TEXT], uint32_t dims, const uint64_t *shape)
{
    size_t at = 0;

    out[at++] = '[';
    for (uint32_t d = 0; d < dims && at < SHAPE_TEXT - 24; d++)
        at += (size_t)snprintf(out + at, SHAPE_TEXT - at, "%s%lu", d ? ", " : "", shape[d]);
    snprintf(out + at, SHAPE_TEXT - at, "]");
    return out;
}

static gs_status other_shape(const entry *e, const char *name, uint32_t dims, const uint64_t *want, const char *path)
{
    char has[SHAPE_TEXT], wants[SHAPE_TEXT];

    if (e->dims == dims && memcmp(e->shape, want, dims * sizeof(*want)) == 0)
        return GS_OK;
    return gs_fail(GS_EFORMAT,
                   "%s: tensor \"%s\" has shape %s, the model wants %s; check .hidden, .layers and .model", path, name,
                   shape_text(has, e->dims, e->shape), shape_text(wants, dims, want));
}

static gs_status match_shape(const entry *e, const gs_param *q, const char *path)
{
    uint64_t want[3];
    const uint32_t dims = gs_safetensors_shape(want, q);

    if ((e->dtype == GS_I64) != q->counter)
        return gs_fail(GS_EFORMAT, "%s: tensor \"%s\" is %s", path, q->name,
                       q->counter ? "a count and must be I64" : "of type I64; F32, F16, BF16 and F64 can be read");
    return other_shape(e, q->name, dims, want, path);
}

/* Tensors that a file must have: parameters, and tables behind them; and, behind these, tables that it may have. */
typedef struct wanted {
    const gs_program *p;
    float *const *value;
    const gs_safetensors_tables *tables; /* NULL: it has none */
} wanted;

static uint32_t needed_tensors(const wanted *w) { return w->p->params + (w->tables != NULL ? w->p->tables : 0); }

static uint32_t wanted_tensors(const wanted *w)
{
    return needed_tensors(w) + (w->tables != NULL ? w->tables->declareds : 0);
}

static const gs_declared_table *declared(const wanted *w, uint32_t i)
{
    return &w->tables->declared[i - needed_tensors(w)];
}

/* The tensor's name, or NULL where the file does not have it. */
static const char *wanted_name(const wanted *w, uint32_t i)
{
    if (i >= needed_tensors(w)) /* a table that is read comes before it */
        return declared(w, i)->name;
    if (i >= w->p->params)
        return w->p->table[i - w->p->params].name;
    return is_in_files(&w->p->param[i]) && w->value[i] != NULL ? w->p->param[i].name : NULL;
}

static uint32_t wanted_shape(const wanted *w, uint32_t i, uint64_t shape[3])
{
    if (i < w->p->params)
        return gs_safetensors_shape(shape, &w->p->param[i]);
    if (i >= needed_tensors(w))
        return table_shape(shape, w->tables->vertices, declared(w, i)->width, declared(w, i)->blocks);
    const gs_table *const t = &w->p->table[i - w->p->params];
    return table_shape(shape, w->tables->vertices, t->width, t->blocks);
}

static gs_status match_wanted(const entry *e, const wanted *w, uint32_t i, const char *path)
{
    uint64_t want[3];

    if (i < w->p->params)
        return match_shape(e, &w->p->param[i], path);
    if (e->dtype != GS_F32)
        return gs_fail(GS_EFORMAT, "%s: table \"%s\" is not F32", path, wanted_name(w, i));
    return other_shape(e, wanted_name(w, i), wanted_shape(w, i, want), want, path);
}

/* Fills `found` ([tensors]) with where each of them is. */
static gs_status match_entries(entry *found, const cJSON *header, const wanted *w, uint64_t data_bytes,
                               const char *path)
{
    char text[SHAPE_TEXT], name[NAME_TEXT];
    const cJSON *item;

    for (uint32_t i = 0; i < wanted_tensors(w); i++)
        found[i].dims = UINT32_MAX; /* not seen */
    cJSON_ArrayForEach(item, header)
    {
        uint32_t i = 0;
        entry e;

        if (strcmp(item->string, "__metadata__") == 0)
            continue;
        GS_TRY(parse_entry(&e, item, data_bytes, path));
        while (i < wanted_tensors(w) && (wanted_name(w, i) == NULL || strcmp(wanted_name(w, i), item->string) != 0))
            i++;
        if (i == wanted_tensors(w))
            return gs_fail(GS_EFORMAT, "%s: unexpected tensor \"%s\" %s: the model has none of that name", path,
                           gs_safetensors_printable(name, sizeof(name), item->string),
                           shape_text(text, e.dims, e.shape));
        if (found[i].dims != UINT32_MAX)
            return gs_fail(GS_EFORMAT, "%s: tensor \"%s\" is there twice; the header is damaged", path,
                           wanted_name(w, i));
        GS_TRY(match_wanted(&e, w, i, path));
        found[i] = e;
        found[i].name = wanted_name(w, i);
    }
    for (uint32_t i = 0; i < needed_tensors(w); i++)
        if (wanted_name(w, i) != NULL && found[i].dims == UINT32_MAX) {
            uint64_t want[3];
            const uint32_t dims = wanted_shape(w, i, want);
            return gs_fail(GS_EFORMAT, "%s: tensor \"%s\" is missing; the model wants it with shape %s", path,
                           wanted_name(w, i), shape_text(text, dims, want));
        }
    return GS_OK;
}

static int by_place(const void *a, const void *b)
{
    const entry *const x = a, *const y = b;
    return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : (x->end > y->end) - (x->end < y->end);
}

/* The format has every byte of the data belong to one tensor: bytes of two, or of none, show that the file is another
 * than its header says. */
static gs_status check_places(const entry *found, uint32_t count, uint64_t data_bytes, const char *path)
{
    GS_FREED entry *const sorted = gs_malloc_array(count + 1, sizeof(*sorted));
    uint64_t end = 0;
    uint32_t n = 0;

    GS_NEED(sorted != NULL, "%s: out of memory", path);
    for (uint32_t i = 0; i < count; i++)
        if (found[i].name != NULL)
            sorted[n++] = found[i];
    qsort(sorted, n, sizeof(*sorted), by_place);
    for (uint32_t i = 0; i < n; end = sorted[i++].end)
        if (sorted[i].begin != end)
            return gs_fail(GS_EFORMAT, "%s: tensor \"%s\" begins at byte %lu of the data, %s byte %lu; the file is "
                           "damaged", path, sorted[i].name, sorted[i].begin,
                           sorted[i].begin < end ? "but the one before it ends at" : "and nothing uses those from",
                           end);
    return end == data_bytes ? GS_OK
                             : gs_fail(GS_EFORMAT, "%s: %lu bytes follow the last tensor; the file is damaged, or two "
                                       "in one", path, data_bytes - end);
}

static void convert(float *dst, const void *src, gs_dtype dtype, size_t n)
{
    for (size_t i = 0; dtype == GS_I64 && i < n; i++)
        dst[i] = (float)((const int64_t *)src)[i];
    for (size_t i = 0; dtype == GS_F64 && i < n; i++)
        dst[i] = (float)((const double *)src)[i];
    if (dtype != GS_I64 && dtype != GS_F64)
        gs_convert_to_f32(dst, src, dtype, n);
}

static gs_status check_finite(const float *value, uint64_t n, uint64_t first, const char *name, const char *path)
{
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(value[i]))
            return gs_fail(GS_EFORMAT, "%s: tensor \"%s\" is %s in float32 at number %lu; the weights are of no use",
                           path, name, isnan(value[i]) ? "not a number" : "infinite", first + i);
    return GS_OK;
}

/* `dst` NULL: only to look whether its numbers are finite. */
static gs_status read_tensor(float *dst, const entry *e, const gs_param *q, int fd, uint64_t data_at, const char *path)
{
    const uint64_t size = gs_dtype_bytes(e->dtype), elements = (e->end - e->begin) / size;
    GS_FREED void *const piece = gs_malloc_array(PIECE_ELEMENTS, size);
    GS_FREED float *const number = gs_malloc_array(PIECE_ELEMENTS, sizeof(*number));

    GS_NEED(piece != NULL && number != NULL, "%s: out of memory", path);
    for (uint64_t at = 0; at < elements; at += PIECE_ELEMENTS) {
        const uint64_t n = GS_MIN(elements - at, PIECE_ELEMENTS);
        GS_TRY(gs_pread_exact(fd, piece, n * size, data_at + e->begin + at * size, path));
        convert(number, piece, e->dtype, n);
        if (dst != NULL)
            memcpy(dst + at, number, n * sizeof(*number));
        else
            GS_TRY(check_finite(number, n, at, q->name, path));
    }
    return GS_OK;
}

/* All parameters are looked at before the first is taken, where they are to be finite. Tables come last. */
static gs_status read_tensors(const wanted *w, const entry *found, bool finite, int fd, uint64_t data_at,
                              const char *path)
{
    const gs_program *const p = w->p;

    for (int take = finite ? 0 : 1; take < 2; take++)
        for (uint32_t i = 0; i < p->params; i++)
            if (wanted_name(w, i) != NULL)
                GS_TRY(read_tensor(take ? w->value[i] : NULL, &found[i], &p->param[i], fd, data_at, path));
    for (uint32_t i = p->params; i < needed_tensors(w); i++)
        GS_TRY(w->tables->read(w->tables->context, w->tables->run, i - p->params, fd, data_at + found[i].begin, path));
    return GS_OK;
}

/* Parses the header of `length` bytes after the first 8 of the file; *out is to be deleted also after a failure. */
static gs_status read_header(cJSON **out, int fd, uint64_t length, const char *path)
{
    GS_FREED char *const text = gs_malloc(length + 1);
    const char *end = NULL;

    GS_NEED(text != NULL, "%s: no memory for a header of %lu bytes", path, length);
    text[length] = '\0';
    GS_TRY(gs_pread_exact(fd, text, length, 8, path));
    *out = cJSON_ParseWithLengthOpts(text, length + 1, &end, false);
    if (cJSON_IsObject(*out) && strspn(end, " \t\r\n") == (size_t)(text + length - end))
        return GS_OK;
    return gs_fail(GS_EFORMAT, "%s: the header is not a JSON object; not a safetensors file, or damaged", path);
}

/* Opens the file, to be closed by the caller, and parses its header; data begins at *data_at of *bytes. */
static gs_status open_file(int *fd, cJSON **header, uint64_t *data_at, uint64_t *bytes, const char *path)
{
    uint64_t length;

    GS_TRY(gs_file_open_read(fd, bytes, path));
    if (*bytes < 8)
        return gs_fail(GS_EFORMAT, "%s: %lu bytes are too few for a safetensors file", path, *bytes);
    GS_TRY(gs_pread_exact(*fd, &length, 8, 0, path));
    length = le64toh(length);
    if (length > *bytes - 8 || length > GS_SAFETENSORS_HEADER_LIMIT)
        return gs_fail(GS_EFORMAT, "%s: a header of %lu bytes does not fit the file (%lu bytes) or the limit (%u); not "
                       "a safetensors file, or damaged", path, length, *bytes, GS_SAFETENSORS_HEADER_LIMIT);
    *data_at = 8 + length;
    return read_header(header, *fd, length, path);
}

static gs_status load(const wanted *w, bool finite, const char *path)
{
    GS_FREED entry *const found = gs_calloc((size_t)wanted_tensors(w) + 1, sizeof(*found));
    uint64_t bytes = 0, data_at = 0;
    GS_ENDS(cJSON_Delete_at) cJSON *header = NULL;
    GS_CLOSED int fd = -1;

    GS_TRY(found != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: out of memory", path));
    GS_TRY(open_file(&fd, &header, &data_at, &bytes, path));
    GS_TRY(match_entries(found, header, w, bytes - data_at, path));
    GS_TRY(check_places(found, wanted_tensors(w), bytes - data_at, path));
    return read_tensors(w, found, finite, fd, data_at, path);
}

gs_status gs_safetensors_load(float *const *value, const gs_program *p, const gs_safetensors_tables *tables,
                                     const char *path)
{
    return load(&(wanted){p, value, tables}, true, path);
}

gs_status gs_safetensors_load_state(float *const *value, const gs_program *p, const gs_safetensors_tables *tables,
                                    const char *path)
{
    return load(&(wanted){p, value, tables}, false, path);
}

/* ---- notes --------------------------------------------------------------- */

/* The texts behind the array, in one block. */
static gs_status copy_notes(gs_safetensors_note **out, uint32_t *notes, const cJSON *meta, const char *path)
{
    size_t bytes = (GS_SAFETENSORS_NOTES + 1) * sizeof(**out);
    const cJSON *item;
    uint32_t n = 0;

    cJSON_ArrayForEach(item, meta)
    {
        if (!cJSON_IsString(item) || ++n > GS_SAFETENSORS_NOTES)
            return gs_fail(GS_EFORMAT, "%s: \"__metadata__\" is no list of at most %u texts; the header is damaged",
                           path, GS_SAFETENSORS_NOTES);
        bytes += strlen(item->string) + strlen(item->valuestring) + 2;
    }
    gs_safetensors_note *const note = gs_malloc(bytes);
    GS_NEED(note != NULL, "%s: out of memory", path);
    char *at = (char *)(note + GS_SAFETENSORS_NOTES + 1);
    n = 0;
    cJSON_ArrayForEach(item, meta)
    {
        note[n].key = strcpy(at, item->string);
        at += strlen(at) + 1;
        note[n++].value = strcpy(at, item->valuestring);
        at += strlen(at) + 1;
    }
    *out = note;
    *notes = n;
    return GS_OK;
}

gs_status gs_safetensors_read_notes(gs_safetensors_note **note, uint32_t *notes, const char *path)
{
    uint64_t data_at, bytes;
    GS_ENDS(cJSON_Delete_at) cJSON *header = NULL;
    GS_CLOSED int fd = -1;

    GS_TRY(open_file(&fd, &header, &data_at, &bytes, path));
    return copy_notes(note, notes, cJSON_GetObjectItemCaseSensitive(header, "__metadata__"), path);
}
