/* safetensors_write.c - which tensors of a program such a file has, in which order and shape, and how it is written. */
#include <stdbool.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/alloc.h"
#include "base/size.h"
#include "train/safetensors.h"

bool gs_safetensors_has(const gs_param *q) { return q->statistic == GS_STATISTIC_NONE; }

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
            if (gs_safetensors_has(&p->param[i]) && p->param[i].counter == (counters == 1) && k-- == 0)
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

static bool add_tensor(cJSON *header, const gs_param *q, uint64_t begin, uint64_t end)
{
    uint64_t size[3];
    const uint32_t dims = gs_safetensors_shape(size, q);
    return add_entry(header, q->name, q->counter ? "I64" : "F32", dims, size, begin, end);
}

static uint64_t table_bytes(const gs_table *t, uint64_t vertices) { return vertices * t->width * sizeof(float); }

static bool add_tables(cJSON *header, const gs_program *p, const gs_safetensors_tables *tables, uint64_t at)
{
    bool whole = true;
    for (uint32_t t = 0; tables != NULL && t < p->tables && whole; t++) {
        const uint64_t size[] = {tables->vertices, p->table[t].width}, end = at + table_bytes(&p->table[t], size[0]);
        whole = add_entry(header, p->table[t].name, "F32", 2, size, at, end);
        at = end;
    }
    return whole;
}

/* The header's text, or NULL; free with cJSON_free(). */
static char *header_text(const gs_program *p, float *const *value, const gs_safetensors_tables *tables,
                         const gs_safetensors_note *note, uint32_t notes)
{
    cJSON *const header = cJSON_CreateObject();
    cJSON *const meta = header == NULL ? NULL : cJSON_AddObjectToObject(header, "__metadata__");
    char *text = NULL;
    uint64_t at = 0;

    /* "format": "pt" is what Python's loaders look for. */
    if (meta == NULL || cJSON_AddStringToObject(meta, "format", "pt") == NULL)
        goto done;
    for (uint32_t k = 0; k < notes; k++)
        if (cJSON_AddStringToObject(meta, note[k].key, note[k].value) == NULL)
            goto done;
    for (uint32_t k = 0, i; (i = gs_safetensors_param(p, k)) != GS_NONE; k++) {
        const uint64_t bytes = value[i] == NULL ? 0 : file_bytes(&p->param[i]);
        if (value[i] != NULL && !add_tensor(header, &p->param[i], at, at + bytes))
            goto done;
        at += bytes;
    }
    if (!add_tables(header, p, tables, at))
        goto done;
    text = cJSON_PrintUnformatted(header);
done:
    cJSON_Delete(header);
    return text;
}

static void store_u64(unsigned char out[8], uint64_t v)
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(v >> (8 * i));
}

/* The header behind its length, padded with spaces to a multiple of 8, in one piece of `*bytes`; free with
 * gs_free(). */
static gs_status make_head(char **out, uint64_t *bytes, const gs_program *p, float *const *value,
                           const gs_safetensors_tables *tables, const gs_safetensors_note *note, uint32_t notes,
                           const char *path)
{
    char *const text = header_text(p, value, tables, note, notes), *head = NULL;
    const size_t length = text == NULL ? 0 : strlen(text), padded = (size_t)gs_align_up(length, 8);

    if (text == NULL || (head = gs_malloc(8 + padded)) == NULL) {
        cJSON_free(text);
        return gs_fail(GS_ENOMEM, "%s: no memory for the header", path);
    }
    if (padded > GS_SAFETENSORS_HEADER_LIMIT) {
        cJSON_free(text);
        gs_free(head);
        return gs_fail(GS_EINVAL, "%s: the header would have %zu bytes, of which readers take %u", path, padded,
                       GS_SAFETENSORS_HEADER_LIMIT);
    }
    store_u64((unsigned char *)head, padded);
    memcpy(head + 8, text, length);
    memset(head + 8 + length, ' ', padded - length);
    cJSON_free(text);
    *out = head;
    *bytes = 8 + padded;
    return GS_OK;
}

gs_status gs_safetensors_reserve(gs_outfile *o, const gs_program *p, float *const *value,
                                        const gs_safetensors_tables *tables)
{
    char *head = NULL;
    uint64_t bytes = 0;
    const gs_status st = make_head(&head, &bytes, p, value, tables, NULL, 0, o->path);

    gs_free(head);
    for (uint32_t k = 0, i; (i = gs_safetensors_param(p, k)) != GS_NONE; k++)
        bytes += value[i] == NULL ? 0 : file_bytes(&p->param[i]);
    for (uint32_t t = 0; tables != NULL && t < p->tables; t++)
        bytes += table_bytes(&p->table[t], tables->vertices);
    return st != GS_OK ? st : gs_outfile_reserve(o, bytes);
}

gs_status gs_safetensors_write(gs_outfile *o, const gs_program *p, float *const *value,
                                      const gs_safetensors_tables *tables, const gs_safetensors_note *note,
                                      uint32_t notes)
{
    char *head = NULL;
    uint64_t at = 0;
    gs_status st = make_head(&head, &at, p, value, tables, note, notes, o->path);

    if (st == GS_OK)
        st = gs_outfile_write(o, head, at, 0);
    for (uint32_t k = 0, i; st == GS_OK && (i = gs_safetensors_param(p, k)) != GS_NONE; k++) {
        const uint64_t bytes = file_bytes(&p->param[i]);
        unsigned char count[sizeof(int64_t)];
        if (value[i] == NULL)
            continue;
        store_u64(count, p->param[i].counter ? (uint64_t)value[i][0] : 0);
        st = gs_outfile_write(o, p->param[i].counter ? (const void *)count : value[i], bytes, at);
        at += bytes;
    }
    for (uint32_t t = 0; tables != NULL && t < p->tables && st == GS_OK; t++) {
        st = tables->write(tables->context, tables->run, t, o, at);
        at += table_bytes(&p->table[t], tables->vertices);
    }
    gs_free(head);
    return st == GS_OK ? gs_outfile_cut(o, at) : st;
}
