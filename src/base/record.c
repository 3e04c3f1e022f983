/* record.c - the fields of a struct, from JSON and to it. */
#include "base/record.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/hash.h"

void gs_record_refuse(gs_record *r, const char *key, const char *what)
{
    if (r->st == GS_OK)
        r->st = gs_fail(GS_EFORMAT, "%s: \"%s%s\" %s%s", r->path, r->where, key, what, r->advice);
}

/* What is wrong with a field, or what it has to be. */
static void refuse(gs_record *r, const gs_field *f, const char *what)
{
    char must[240];

    if (f->must != NULL)
        snprintf(must, sizeof(must), "must %s", f->must);
    gs_record_refuse(r, f->name, f->must != NULL ? must : what);
}

void gs_record_of_text(gs_record *r, const char *text, uint64_t bytes)
{
    if ((r->st = gs_checksum_line_check(text, bytes, r->path, r->advice)) != GS_OK)
        return;
    r->object = cJSON_ParseWithLength(text, bytes);
    if (!cJSON_IsObject(r->object))
        r->st = gs_fail(GS_EFORMAT, "%s: not a JSON object%s", r->path, r->advice);
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
        refuse(r, f, "is not a number");
    else if (!(v >= f->least && v <= f->most) || (whole && v != floor(v))) {
        snprintf(what, sizeof(what), "is %.17g, not a%s number from %.17g to %.17g", v, whole ? " whole" : "", f->least,
                 f->most);
        refuse(r, f, what);
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
    refuse(r, f, what);
}

static uint64_t digits_of(gs_record *r, const gs_field *f, const cJSON *item)
{
    const char *const text = cJSON_GetStringValue(item);
    uint64_t v = 0;

    if (text == NULL || strlen(text) != GS_HEX_DIGITS || !gs_hex_parse(&v, text))
        refuse(r, f, "is not 16 lower-case hex digits");
    return v;
}

static gs_dtype type_of(gs_record *r, const gs_field *f, const cJSON *item)
{
    const char *const text = cJSON_GetStringValue(item);
    gs_dtype t = GS_F32;

    if (text == NULL || !gs_dtype_parse(&t, text))
        refuse(r, f, "is no element type");
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
            refuse(r, f, "is neither true nor false");
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
    default: /* of fields of their own, or not read */
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
    case GS_FIELD_SOME:
        return cJSON_CreateBool(*(const uint32_t *)from != 0);
    default: /* of fields of their own */
        return NULL;
    }
}

/* ---- lists of values ------------------------------------------------------ */

static size_t bytes_of(gs_field_kind kind) { return kind == GS_FIELD_U32 ? sizeof(uint32_t) : sizeof(uint64_t); }

/* Items of a list; 0 after a failure. */
static uint32_t items_in(gs_record *r, const gs_field *f, const cJSON *list, uint32_t least, uint32_t most)
{
    const int items = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : -1;
    char what[60];

    if (items >= (int)least && items <= (int)most)
        return (uint32_t)items;
    snprintf(what, sizeof(what), least == most ? "is not a list of %u" : "is not a list of %u to %u", least, most);
    refuse(r, f, what);
    return 0;
}

static void read_values(gs_record *r, const gs_field *f, const cJSON *list, char *to, uint32_t *counter)
{
    const uint32_t count = items_in(r, f, list, f->counted ? 1 : f->count, f->count);
    const cJSON *item = count > 0 ? list->child : NULL;

    if (f->counted)
        *counter = count;
    for (; item != NULL; item = item->next, to += bytes_of(f->kind))
        read_value(r, f, item, to);
}

static bool write_values(cJSON *list, const gs_field *f, const char *from, uint32_t count)
{
    bool ok = list != NULL;

    for (uint32_t k = 0; k < count && ok; k++)
        ok = cJSON_AddItemToArray(list, item_of(f, from + k * bytes_of(f->kind)));
    return ok;
}

/* ---- objects and lists --------------------------------------------------- */

static void read_object(gs_record *of, const gs_field *f, cJSON *object, char *to)
{
    char where[GS_WHERE_BYTES];
    gs_record r = *of;

    snprintf(where, sizeof(where), "%s%s.", of->where, f->name);
    r.object = object;
    r.where = where;
    if (!cJSON_IsObject(object))
        gs_record_refuse(&r, "", "is not an object");
    gs_record_read(&r, f->field, f->fields, to);
    if (r.exact)
        gs_record_end(&r);
    of->st = of->st == GS_OK ? r.st : of->st;
}

static void read_field(gs_record *r, const gs_field *f, cJSON *item, char *out)
{
    char *const to = out + f->at;
    uint32_t *const counter = (uint32_t *)(void *)(out + f->counter);
    const size_t list_bytes = f->count * bytes_of(f->kind);

    if (f->kind == GS_FIELD_OBJECT) {
        read_object(r, f, item, to);
    } else if (f->kind == GS_FIELD_ROWS) {
        *counter = items_in(r, f, item, (uint32_t)f->least, (uint32_t)f->most);
        for (uint32_t k = 0; k < *counter && r->st == GS_OK; k++)
            read_object(r, f, cJSON_GetArrayItem(item, (int)k), to + k * f->row_bytes);
    } else if (f->lists > 0) {
        for (uint32_t k = 0; k < f->lists && items_in(r, f, item, f->lists, f->lists) > 0; k++)
            read_values(r, f, cJSON_GetArrayItem(item, (int)k), to + k * list_bytes, counter);
    } else if (f->count > 0) {
        read_values(r, f, item, to, counter);
    } else {
        read_value(r, f, item, to);
    }
}

void gs_record_read(gs_record *r, const gs_field *field, size_t fields, void *out)
{
    for (const gs_field *f = field; f < field + fields && r->st == GS_OK; f++) {
        cJSON *const item = cJSON_DetachItemFromObjectCaseSensitive(r->object, f->name);
        if (item != NULL)
            read_field(r, f, item, out);
        else if (!f->may_lack)
            refuse(r, f, "is missing");
        cJSON_Delete(item);
    }
}

static bool is_counted(const gs_field *f) { return f->kind == GS_FIELD_ROWS || f->counted; }

static bool write_field(cJSON *to, const gs_field *f, const char *from, uint32_t counter)
{
    const bool is_list = is_counted(f) || f->count > 0;
    cJSON *const list = is_list ? cJSON_AddArrayToObject(to, f->name) : NULL;
    bool ok = list != NULL;

    if (f->kind == GS_FIELD_OBJECT)
        return gs_record_write(cJSON_AddObjectToObject(to, f->name), f->field, f->fields, from);
    if (!is_list)
        return cJSON_AddItemToObject(to, f->name, item_of(f, from));
    if (f->kind != GS_FIELD_ROWS && f->lists == 0)
        return write_values(list, f, from, counter);
    for (uint32_t k = 0; k < (f->lists > 0 ? f->lists : counter) && ok; k++) {
        cJSON *const one = f->lists > 0 ? cJSON_CreateArray() : cJSON_CreateObject();
        ok = cJSON_AddItemToArray(list, one) &&
             (f->lists > 0 ? write_values(one, f, from + k * f->count * bytes_of(f->kind), f->count)
                           : gs_record_write(one, f->field, f->fields, from + k * f->row_bytes));
    }
    return ok;
}

bool gs_record_write(cJSON *to, const gs_field *field, size_t fields, const void *from)
{
    bool ok = to != NULL;

    for (const gs_field *f = field; f < field + fields && ok; f++) {
        const char *const at = (const char *)from + f->at;
        const uint32_t counter =
            is_counted(f) ? *(const uint32_t *)(const void *)((const char *)from + f->counter) : f->count;
        const bool empty = (f->kind == GS_FIELD_TEXT && *at == '\0') || (is_counted(f) && counter == 0);
        if (!f->may_lack || !empty)
            ok = write_field(to, f, at, counter);
    }
    return ok;
}

uint64_t gs_record_number(gs_record *r, const char *key, double least, double most)
{
    uint64_t v = 0;

    gs_record_read(r, &(gs_field){.name = key, .kind = GS_FIELD_U64, .least = least, .most = most}, 1, &v);
    return v;
}

gs_record gs_record_open(gs_record *of, const char *key, char where[GS_WHERE_BYTES])
{
    gs_record r = *of;

    snprintf(where, GS_WHERE_BYTES, "%s%s.", of->where, key);
    r.object = of->st == GS_OK ? cJSON_DetachItemFromObjectCaseSensitive(of->object, key) : NULL;
    r.where = where;
    if (!cJSON_IsObject(r.object))
        gs_record_refuse(of, key, r.object == NULL ? "is missing" : "is not an object");
    r.st = of->st;
    return r;
}

void gs_record_close(gs_record *of, gs_record *r)
{
    if (r->exact)
        gs_record_end(r);
    of->st = r->st;
    cJSON_Delete(r->object);
}

static bool is_word(const char *word, const char *list)
{
    const size_t n = strlen(word);
    const char *at = n > 0 ? strstr(list, word) : NULL;

    while (at != NULL && ((at > list && at[-1] != ' ') || (at[n] != ',' && at[n] != '\0')))
        at = strstr(at + 1, word);
    return at != NULL;
}

void gs_record_allow(gs_record *r, const char *known)
{
    for (const cJSON *k = r->st == GS_OK ? r->object->child : NULL; k != NULL && r->st == GS_OK; k = k->next)
        if (!is_word(k->string, known))
            r->st = gs_fail(GS_EFORMAT, "%s: \"%s%.40s\" is not known; there are %s", r->path, r->where, k->string,
                            known);
        else if (cJSON_GetObjectItemCaseSensitive(r->object, k->string) != k)
            gs_record_refuse(r, k->string, "is there twice");
}

void gs_record_end(gs_record *r)
{
    const cJSON *const left = r->st == GS_OK ? r->object->child : NULL;

    if (left != NULL)
        gs_record_refuse(r, left->string != NULL ? left->string : "", "is unknown or there twice");
}
