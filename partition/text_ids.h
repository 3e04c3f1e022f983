/* text_ids.h - ids in a text as vertices: as they are, or compacted.
 *
 * A text is read once with ids as they are, which are numbers from 0. Where that will not do, for the first edge has
 * words or numbers are too large or too far apart, it is read again with ids as names (names.h), and edges lie on disk
 * as keys until all names are known. */
#ifndef GS_PARTITION_TEXT_IDS_H
#define GS_PARTITION_TEXT_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "partition/edge_text.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/names.h"
#include "partition/text_lines.h"
#include "partition/text_number.h"

/* One reading of a text. */
typedef struct gs_text_reading {
    gs_edge_lines lines; /* whose context it is */
    const void *columns; /* the format's own */
    gs_names *names; /* NULL: ids are taken as they are */
    bool look;       /* whether they can be is to be seen */
    bool again;      /* they cannot, and this reading ended there */
    char why[GS_ERROR_BYTES]; /* ids are taken as names */
} gs_text_reading;

/* `length` bytes of the line, and the number that they are all digits of. */
typedef struct gs_text_id {
    const char *at;
    size_t length;
    bool is_number; /* of at most 19 digits; others may be numbers, too */
    uint64_t number;
} gs_text_id;

/* Checks .ids. */
gs_status gs_part__ids_option(const char *ids);
/* Reads the whole text by `read`, which sets lines.line, begins and reads lines, as often as it takes. */
gs_status gs_part__text_read(gs_part_input *in, gs_part_job *job, gs_status (*read)(gs_text_reading *r));
/* For `read`: once in->weighted and in->typed are known; then the lines. */
gs_status gs_part__reading_begin(gs_text_reading *r);
gs_status gs_part__reading_lines(gs_text_reading *r, gs_lines *l);

/* The digits at p; where something else than the field's end is behind them, it is no number, and the caller's to
 * measure. */
static inline gs_text_id gs_part__id_of_digits(const char *p)
{
    gs_text_id id = {.at = p};
    id.length = (size_t)(gs_text_digits(p, &id.number) - p);
    id.is_number = id.length > 0 && id.length <= 19;
    return id;
}
/* The id as a number of [0, most]; `what` names it in errors. */
gs_status gs_part__id_number(uint64_t *out, const gs_line *l, const gs_text_id *id, uint64_t most, const char *what);
/* For `line`: an edge. */
gs_status gs_part__reading_put(gs_edge_block *b, const gs_line *l, const gs_text_id ends[2], float weight,
                               uint32_t type);

#endif /* GS_PARTITION_TEXT_IDS_H */
