/* option_table.h - what is known of each option of training, and what follows from that alone?
 *
 * The rows are those of GS_TRAIN_OPTION_MAP in gnnstream_options.h. Words are compared here alone: whoever wants to
 * know which one was chosen asks for its place, which is an enumerator of the room that knows what the words mean.
 */
#ifndef GS_BASE_OPTION_TABLE_H
#define GS_BASE_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "gnnstream.h"

typedef enum gs_option_kind {
    GS_OPTION_FLAG,   /* bool */
    GS_OPTION_COUNT,  /* uint32_t */
    GS_OPTION_LONG,   /* uint64_t */
    GS_OPTION_SIZE,   /* uint64_t, bytes */
    GS_OPTION_REAL,   /* double, from least to below most */
    GS_OPTION_ABOVE,  /* double, above least and below most */
    GS_OPTION_TIME,   /* double, seconds */
    GS_OPTION_TEXT,   /* const char * from here on */
    GS_OPTION_PATH,
    GS_OPTION_CHOICE, /* one of its words */
} gs_option_kind;

typedef enum gs_option_changes {
    GS_OPTION_NOTHING, /* at most the rounding of results */
    GS_OPTION_RESULTS,
    GS_OPTION_SHAPES,  /* results, and which weights fit */
} gs_option_changes;

typedef struct gs_option {
    const char *name; /* the field's */
    size_t field;     /* its offset in gs_train_options */
    gs_option_kind kind;
    gs_option_changes changes;
    double least, most;    /* of numbers; most 0: no bound */
    const char *words;     /* of a choice: "adam|sgd" */
    const char *counts_as; /* what 0 or NULL is short for, or NULL */
} gs_option;

/* All of them; the last has no name. */
extern const gs_option gs_option_table[];
#define GS_OPTION_EACH(x) (const gs_option *x = gs_option_table; x->name != NULL; x++)

extern const gs_train_options gs_option_defaults;

/* The row of the field with that offset, which has one. */
const gs_option *gs_option_at(size_t field);
/* Of a kind whose field is a string. */
static inline bool gs_option_is_text(const gs_option *x) { return x->kind >= GS_OPTION_TEXT; }
/* The string of such a field, which may be NULL. */
const char *gs_option_text(const gs_option *x, const gs_train_options *o);
/* Is the field 0 or NULL? */
bool gs_option_is_unset(const gs_option *x, const gs_train_options *o);
/* A number as it counts; numbers of 64 bits are rounded. */
double gs_option_number(const gs_option *x, const gs_train_options *o);

/* GS_EINVAL names the first field that is out of its range. */
gs_status gs_options_check_ranges(const gs_train_options *o);

/* The place of a choice among its words, from 0; -1: NULL that is short for none of them. `field`: an offset. */
int gs_option_choice(const gs_train_options *o, size_t field);
#define gs_choice(o, name) gs_option_choice(o, offsetof(gs_train_options, name))
/* A count as it counts: of 0 that for which it is short. */
uint32_t gs_option_count(const gs_train_options *o, size_t field);
#define gs_count(o, name) gs_option_count(o, offsetof(gs_train_options, name))

/* The place of `word` among "a|b|c", from 0; -1: it is none of them. */
int gs_word_place(const char *words, const char *word);

#endif /* GS_BASE_OPTION_TABLE_H */
