/* record.c - the fields of a struct, from JSON and to it. */
#include "base/record.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/hash.h"

static void refuse(gs_record *r, const char *key, const char *what)
{
    if (r->st == GS_OK)
        r->st = gs_fail(GS_EFORMAT, "%s: \"%s%s\" %s%s", r->path, r->where, key, what, r->advice);
}

/* Detached; the caller deletes it. NULL after a failure. */
static cJSON *take(gs_record *r, const char *key)
{
    cJSON *const item = r->st == GS_OK ? cJSON_DetachItemFromObjectCaseSensitive(r->object, key) : NULL;

    if (item == NULL)
        refuse(r, key, "is missing");
    return item;
}

bool gs_record_has(const gs_record *r, const char *key)
{
    return r->st == GS_OK && cJSON_GetObjectItemCaseSensitive(r->object, key) != NULL;
}

/* ---- one value ----------------------------------------------------------- */

static double number_of(gs_record *r, const gs_field *f, const cJSON *item)
{
    const bool whole = f->kind != GS_FIELD_REAL;
    const double v = cJSON_IsNumber(item) ? item->valuedouble : 0;
    char what[120];

    if (!cJSON_IsNumber(item))
        refuse(r, f->name, "is not a number");
    else if (!(v >= f->least && v <= f->most) || (whole && v != floor(v))) {
        snprintf(what, sizeof(what), "is %.17g, not a%s number from %.17g to %.17g", v, whole ? " whole" : "", f->least,
                 f->most);
        refuse(r, f->name, what);
    }
    return r->st == GS_OK ? v : 0;
}

static void text_of(gs_record *r, const gs_field *f, const cJSON *item, char *out)
{
    char what[60];

    if (cJSON_IsString(item) && strlen(item->valuestring) < f->most) {
        memcpy(out, item->valuestring, strlen(item->valuestring) + 1);
        return;
    }
    snprintf(what, sizeof(what), "is not a string of fewer than %.0f bytes", f->most);
    refuse(r, f->name, what);
}

static uint64_t digits_of(gs_record *r, const gs_field *f, const cJSON *item)
{
    const char *const text = cJSON_GetStringValue(item);
    uint64_t v = 0;

    if (text == NULL || strlen(text) != GS_HEX_DIGITS || !gs_hex_parse(&v, text))
        refuse(r, f->name, "is not 16 lower-case hex digits");
    return v;
}

static gs_dtype type_of(gs_record *r, const gs_field *f, const cJSON *item)
{
    const char *const text = cJSON_GetStringValue(item);
    gs_dtype t = GS_F32;

    if (text == NULL || !gs_dtype_parse(&t, text))
        refuse(r, f->name, "is no element type");
    return t;
}

static void read_value(gs_record *r, const gs_field *f, const cJSON *item, void *to)
{
    uint64_t bits;

    switch (f->kind) {
    case GS_FIELD_U32:
        *(uint32_t *)to = (uint32_t)number_of(r, f, item);
        break;
    case GS_FIELD_U64:
        *(uint64_t *)to = (uint64_t)number_of(r, f, item);
        break;
    case GS_FIELD_REAL:
        *(double *)to = number_of(r, f, item);
        break;
    case GS_FIELD_BOOL:
        *(bool *)to = cJSON_IsTrue(item);
        if (!cJSON_IsBool(item))
            refuse(r, f->name, "is neither true nor false");
        break;
    case GS_FIELD_TEXT:
        text_of(r, f, item, to);
        break;
    case GS_FIELD_HEX:
    case GS_FIELD_BITS: /* both are 8 bytes */
        bits = digits_of(r, f, item);
        memcpy(to, &bits, sizeof(bits));
        break;
    case GS_FIELD_TYPE:
        *(gs_dtype *)to = type_of(r, f, item);
        break;
    }
}

/* NULL when memory is short. */
static cJSON *item_of(const gs_field *f, const void *from)
{
    char digits[GS_HEX_DIGITS + 1];
    uint64_t bits;

    switch (f->kind) {
    case GS_FIELD_U32:
        return cJSON_CreateNumber(*(const uint32_t *)from);
    case GS_FIELD_U64:
        return cJSON_CreateNumber((double)*(const uint64_t *)from);
    case GS_FIELD_REAL:
        return cJSON_CreateNumber(*(const double *)from);
    case GS_FIELD_BOOL:
        return cJSON_CreateBool(*(const bool *)from);
    case GS_FIELD_TEXT:
        return cJSON_CreateString(from);
    case GS_FIELD_HEX:
    case GS_FIELD_BITS:
        memcpy(&bits, from, sizeof(bits));
        gs_hex_format(digits, bits);
        return cJSON_CreateString(digits);
    case GS_FIELD_TYPE:
        return cJSON_CreateString(gs_dtype_name(*(const gs_dtype *)from));
    }
    return NULL;
}

/* ---- lists of values ------------------------------------------------------ */

static size_t bytes_of(gs_field_kind kind) { return kind == GS_FIELD_U32 ? sizeof(uint32_t) : sizeof(uint64_t); }

static void read_values(gs_record *r, const gs_field *f, const cJSON *list, char *to)
{
    const cJSON *item;
    char what[60];

    if (f->count == 0) {
        read_value(r, f, list, to);
        return;
    }
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)f->count) {
        snprintf(what, sizeof(what), "is not a list of %u", f->count);
        refuse(r, f->name, what);
        return;
    }
    cJSON_ArrayForEach(item, list)
    {
        read_value(r, f, item, to);
        to += bytes_of(f->kind);
    }
}

static cJSON *items_of(const gs_field *f, const char *from)
{
    cJSON *const list = f->count == 0 ? item_of(f, from) : cJSON_CreateArray();

    for (uint32_t k = 0; k < f->count; k++)
        if (!cJSON_AddItemToArray(list, item_of(f, from + k * bytes_of(f->kind)))) {
            cJSON_Delete(list);
            return NULL;
        }
    return list;
}

/* ---- objects and lists --------------------------------------------------- */

void gs_record_read(gs_record *r, const gs_field *field, size_t fields, void *out)
{
    for (const gs_field *f = field; f < field + fields && r->st == GS_OK; f++) {
        cJSON *const item = f->may_lack && !gs_record_has(r, f->name) ? NULL : take(r, f->name);
        if (item != NULL)
            read_values(r, f, item, (char *)out + f->at);
        cJSON_Delete(item);
    }
}

bool gs_record_write(cJSON *to, const gs_field *field, size_t fields, const void *from)
{
    bool ok = to != NULL;

    for (const gs_field *f = field; f < field + fields && ok; f++) {
        const char *const at = (const char *)from + f->at;
        if (!f->may_lack || f->kind != GS_FIELD_TEXT || *at != '\0')
            ok = cJSON_AddItemToObject(to, f->name, items_of(f, at));
    }
    return ok;
}

uint64_t gs_record_number(gs_record *r, const char *key, double least, double most)
{
    uint64_t v = 0;

    gs_record_read(r, &(gs_field){.name = key, .kind = GS_FIELD_U64, .least = least, .most = most}, 1, &v);
    return v;
}

cJSON *gs_record_object(gs_record *r, const char *key)
{
    cJSON *const item = take(r, key);

    if (item == NULL || cJSON_IsObject(item))
        return item;
    refuse(r, key, "is not an object");
    cJSON_Delete(item);
    return NULL;
}

cJSON *gs_record_list(gs_record *r, const char *key, uint32_t least, uint32_t most, uint32_t *count)
{
    cJSON *const list = take(r, key);
    const int items = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : -1;
    char what[60];

    *count = 0;
    if (list == NULL)
        return NULL;
    if (items < (int)least || items > (int)most) {
        snprintf(what, sizeof(what), "is not a list of %u to %u", least, most);
        refuse(r, key, what);
        cJSON_Delete(list);
        return NULL;
    }
    *count = (uint32_t)items;
    return list;
}

uint32_t gs_record_rows(gs_record *r, const char *key, uint32_t least, uint32_t most, const gs_field *field,
                        size_t fields, void *rows, size_t row_bytes)
{
    uint32_t count;
    cJSON *const list = gs_record_list(r, key, least, most, &count);
    char where[80];

    snprintf(where, sizeof(where), "%s%s.", r->where, key);
    for (uint32_t k = 0; k < count && r->st == GS_OK; k++) {
        gs_record one = {cJSON_GetArrayItem(list, (int)k), r->path, where, r->advice, GS_OK};
        if (!cJSON_IsObject(one.object))
            refuse(&one, "", "is not an object");
        gs_record_read(&one, field, fields, (char *)rows + k * row_bytes);
        gs_record_end(&one);
        r->st = one.st;
    }
    cJSON_Delete(list);
    return count;
}

bool gs_record_write_rows(cJSON *to, const char *key, const gs_field *field, size_t fields, const void *rows,
                          size_t row_bytes, uint32_t count)
{
    cJSON *const list = cJSON_AddArrayToObject(to, key);
    bool ok = list != NULL;

    for (uint32_t k = 0; k < count && ok; k++) {
        cJSON *const one = cJSON_CreateObject();
        ok = cJSON_AddItemToArray(list, one) &&
             gs_record_write(one, field, fields, (const char *)rows + k * row_bytes);
    }
    return ok;
}

void gs_record_end(gs_record *r)
{
    const cJSON *const left = r->st == GS_OK ? r->object->child : NULL;

    if (left != NULL)
        refuse(r, left->string != NULL ? left->string : "", "is unknown or there twice");
}
