/* edge_text.h - edges out of a text, into a temporary file of records: N is known only at the text's end.
 *
 * A worker reads the lines of a block as if it were the first, and its records wait until its turn comes. Where a line
 * is wrong, or what stood before forbids one, the block is read once more, with all of that known: so a line's reader
 * says what is wrong as if it read the whole file alone. */
#ifndef GS_PARTITION_EDGE_TEXT_H
#define GS_PARTITION_EDGE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/input_files.h"
#include "partition/text_lines.h"

#define GS_MOST_ID (UINT32_MAX - 2u)

/* in->weighted and in->typed say what a record has besides two ids. */
gs_status gs_part__text_begin(gs_part_input *in, const gs_part_job *job);
gs_status gs_part__text_put(gs_part_input *in, uint64_t u, uint64_t v, float weight, uint32_t type);
gs_status gs_part__text_end(gs_part_input *in);

/* Counts of the lines so far, or, while `exact` is false, of the block's own. */
typedef struct gs_edge_counts {
    uint64_t most;     /* the largest id */
    uint64_t entries;  /* lines that hold edges */
    bool below, above; /* of a matrix' diagonal there are some */
} gs_edge_counts;

typedef struct gs_edge_lines gs_edge_lines;

/* The edges of a block's lines: a worker's own. */
typedef struct gs_edge_block {
    gs_edge_lines *lines;
    bool exact;  /* what stood before is known; no other block is being read so */
    bool whole;  /* all of its lines are read */
    uint32_t *record; /* [count], as in->text has them */
    uint64_t count, room, words;
    uint64_t number; /* of lines */
    gs_edge_counts seen;
} gs_edge_block;

/* How a text's lines become edges. */
struct gs_edge_lines {
    gs_part_input *in;
    gs_part_job *job;
    void *context; /* of the two functions */
    /* Puts the edges of a line; *end is its newline. */
    gs_status (*line)(gs_edge_block *b, const gs_line *l, const char **end);
    bool (*fits)(const gs_edge_lines *lines, const gs_edge_counts *seen); /* NULL: always */
    bool in_order; /* `line` is for blocks that are exact alone */
    gs_edge_counts seen; /* up to the block whose turn it is */
    gs_line at;          /* the last line before it */
};

/* Reads what is left of `l` into in->text, which is begun. */
gs_status gs_part__edge_lines_read(gs_edge_lines *lines, gs_lines *l);

/* Room for one record more; NULL: GS_ENOMEM. */
uint32_t *gs_part__edge_record(gs_edge_block *b);
gs_status gs_part__edge_put(gs_edge_block *b, uint64_t u, uint64_t v, float weight, uint32_t type);
/* Appends what was put to in->text, and forgets it. */
gs_status gs_part__edge_block_end(gs_part_input *in, gs_edge_block *b);
void gs_part__edge_block_release(void *b);

#endif /* GS_PARTITION_EDGE_TEXT_H */
