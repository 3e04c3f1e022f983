/* record.h - a struct as a JSON object: one table of its fields reads it, without trust, and writes it.
 *
 * A reader takes keys out of an object, so what is left in the end was not expected. After a first failure `st` says
 * so, and nothing more is read.
 */
#ifndef GS_BASE_RECORD_H
#define GS_BASE_RECORD_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/status.h"

GS_ENDS_BY(cJSON, cJSON_Delete)

typedef enum gs_field_kind {
    GS_FIELD_U32,  /* uint32_t and enumerators: whole numbers from least to most */
    GS_FIELD_U64,  /* the same, up to 2^53 exact */
    GS_FIELD_REAL, /* double, from least to most */
    GS_FIELD_BOOL,
    GS_FIELD_TEXT, /* char[most], with its end */
    GS_FIELD_HEX,  /* uint64_t as 16 digits */
    GS_FIELD_BITS, /* double by its bits, as such digits: it may be no number */
    GS_FIELD_TYPE, /* gs_dtype by its name */
    GS_FIELD_OBJECT, /* a struct within, of fields of its own */
    GS_FIELD_ROWS,   /* a list of `least` to `most` such structs, as many as the uint32_t at `counter` says */
    GS_FIELD_SOME,   /* uint32_t, written as whether it is not 0; not read */
} gs_field_kind;

typedef struct gs_field {
    const char *name;
    gs_field_kind kind;
    size_t at; /* offset in the struct */
    double least, most;
    bool may_lack;  /* then the struct keeps what it has; what is empty, of texts and lists, is not written */
    uint32_t count; /* of a list of so many, as they lie in the struct; 0: it is one value */
    uint32_t lists; /* of a list of so many such lists; 0: it is one */
    bool counted;   /* the list has 1 to `count`, as many as the uint32_t at `counter` says */
    size_t counter; /* offset in the struct */
    const struct gs_field *field; /* of an object, or of each row, */
    size_t fields, row_bytes;
    const char *must; /* in refusals, in place of what follows from the kind: "be a number of ..." */
} gs_field;

#define GS_WHERE_BYTES 80

typedef struct gs_record {
    cJSON *object;
    const char *path, *where; /* for messages: where is "" or "arrays.features." */
    const char *advice;       /* ends them; "" for none */
    gs_status st;
    bool exact; /* objects within have no other keys than are read */
} gs_record;

/* An element of a table: GS_FIELD(struct, member, U64, "key", .most = 9). */
#define GS_FIELD(of, member, type, key, ...) \
    {.name = (key), .kind = GS_FIELD_##type, .at = offsetof(of, member), __VA_ARGS__}
#define GS_FIELDS(table) table, sizeof(table) / sizeof((table)[0])
/* An object, and a list of as many as `number` of them: GS_ROWS(struct, rows, count, "key", table, .most = 9). */
#define GS_OBJECT(of, member, key, table, ...) \
    GS_FIELD(of, member, OBJECT, key, .field = (table), .fields = sizeof(table) / sizeof((table)[0]), __VA_ARGS__)
#define GS_ROWS(of, member, number, key, table, ...) \
    GS_FIELD(of, member, ROWS, key, .field = (table), .fields = sizeof(table) / sizeof((table)[0]), \
             .row_bytes = sizeof(((of *)0)->member[0]), .counter = offsetof(of, number), __VA_ARGS__)

/* The object that a text is, which ends in its checksum (hash.h); the caller deletes it, also after a failure. */
void gs_record_of_text(gs_record *r, const char *text, uint64_t bytes);
bool gs_record_has(const gs_record *r, const char *key);
void gs_record_read(gs_record *r, const gs_field *field, size_t fields, void *out);
uint64_t gs_record_number(gs_record *r, const char *key, double least, double most);
/* The object of that key, which gs_record_close() ends; its name for messages is put to `where`. */
gs_record gs_record_open(gs_record *of, const char *key, char where[GS_WHERE_BYTES]);
void gs_record_close(gs_record *of, gs_record *r);
/* GS_EFORMAT, the first time: FILE: "KEY" WHAT. */
void gs_record_refuse(gs_record *r, const char *key, const char *what);
/* Refuses keys that are no word of `known`, or there twice: "devices, host_bps, speeds". */
void gs_record_allow(gs_record *r, const char *known);
/* Nothing was there but what was taken. */
void gs_record_end(gs_record *r);

/* False when memory is short. */
bool gs_record_write(cJSON *to, const gs_field *field, size_t fields, const void *from);

#endif /* GS_BASE_RECORD_H */
