/* record.h - a struct as a JSON object: one table of its fields reads it, without trust, and writes it.
 *
 * A reader takes keys out of an object, so what is left in the end was not expected. After a first failure `st` says
 * so, and nothing more is read.
 */
#ifndef GS_BASE_RECORD_H
#define GS_BASE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct cJSON;

typedef enum gs_field_kind {
    GS_FIELD_U32,  /* uint32_t and enumerators: whole numbers from least to most */
    GS_FIELD_U64,  /* the same, up to 2^53 exact */
    GS_FIELD_REAL, /* double, from least to most */
    GS_FIELD_BOOL,
    GS_FIELD_TEXT, /* char[most], with its end */
    GS_FIELD_HEX,  /* uint64_t as 16 digits */
    GS_FIELD_BITS, /* double by its bits, as such digits: it may be no number */
    GS_FIELD_TYPE, /* gs_dtype by its name */
} gs_field_kind;

typedef struct gs_field {
    const char *name;
    gs_field_kind kind;
    size_t at; /* offset in the struct */
    double least, most;
    bool may_lack;  /* then the struct keeps what it has; such a text is not written where it is empty */
    uint32_t count; /* of a list of so many, as they lie in the struct; 0: it is one value */
} gs_field;

typedef struct gs_record {
    struct cJSON *object;
    const char *path, *where; /* for messages: where is "" or "arrays.features." */
    const char *advice;       /* ends them; "" for none */
    gs_status st;
} gs_record;

/* An element of a table: GS_FIELD(struct, member, U64, "key", .most = 9). */
#define GS_FIELD(of, member, type, key, ...) \
    {.name = (key), .kind = GS_FIELD_##type, .at = offsetof(of, member), __VA_ARGS__}
#define GS_FIELDS(table) table, sizeof(table) / sizeof((table)[0])

bool gs_record_has(const gs_record *r, const char *key);
void gs_record_read(gs_record *r, const gs_field *field, size_t fields, void *out);
uint64_t gs_record_number(gs_record *r, const char *key, double least, double most);
/* Of that key, the caller's to delete; NULL after a failure. A list has `least` to `most` items. */
struct cJSON *gs_record_object(gs_record *r, const char *key);
struct cJSON *gs_record_list(gs_record *r, const char *key, uint32_t least, uint32_t most, uint32_t *count);
/* A list of objects with these fields and no others, to rows of `row_bytes`; gives how many there are. */
uint32_t gs_record_rows(gs_record *r, const char *key, uint32_t least, uint32_t most, const gs_field *field,
                        size_t fields, void *rows, size_t row_bytes);
/* Nothing was there but what was taken. */
void gs_record_end(gs_record *r);

/* False when memory is short. */
bool gs_record_write(struct cJSON *to, const gs_field *field, size_t fields, const void *from);
bool gs_record_write_rows(struct cJSON *to, const char *key, const gs_field *field, size_t fields, const void *rows,
                          size_t row_bytes, uint32_t count);

#endif /* GS_BASE_RECORD_H */
