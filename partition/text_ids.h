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

#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/names.h"
#include "partition/text_lines.h"

/* One reading of a text. */
typedef struct gs_text_reading {
    gs_part_input *in;
    gs_part_job *job;
    gs_names *names; /* NULL: ids are taken as they are */
    bool look;       /* whether they can be is to be seen */
    bool again;      /* they cannot: GS_EAGAIN ends this reading */
    uint64_t most;   /* the largest id */
} gs_text_reading;

/* `length` bytes of the line. */
typedef struct gs_text_id {
    char *at;
    size_t length;
} gs_text_id;

/* Checks .ids. */
gs_status gs_part__ids_option(const char *ids);
/* Reads the whole text by `read`, which begins and puts edges, as often as it takes. */
gs_status gs_part__text_read(gs_part_input *in, gs_part_job *job, gs_status (*read)(gs_text_reading *r));
/* For `read`: once in->weighted and in->typed are known; then each edge. `what` names the ids in errors. */
gs_status gs_part__reading_begin(gs_text_reading *r);
gs_status gs_part__reading_put(gs_text_reading *r, const gs_lines *l, const gs_text_id ends[2], float weight,
                               uint32_t type);

#endif /* GS_PARTITION_TEXT_IDS_H */
