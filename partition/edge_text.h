/* edge_text.h - edges out of a text, into a temporary file of records: N is known only at the text's end.
 *
 * A worker reads the lines of a block as if it were the first, and its records wait until its turn comes. Where a line
 * is wrong, or what stood before forbids one, the block is read once more, with all of that known: so a line's reader
 * says what is wrong as if it read the whole file alone. */
#ifndef GS_PARTITION_EDGE_TEXT_H
#define GS_PARTITION_EDGE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/text_lines.h"
#include "store/store.h" /* gs_array_info, GS_MOST_NAME */

/* -- edge types that are words: which number has which.
 *
 * While lines are read, a word's number is that of its first reader; then words are ordered, shortest first and those
 * of one length by their bytes, as names of vertices are: so a graph's types have the same numbers in
 * whatever order its lines come. */

typedef struct gs_relations gs_relations;

/* GS_ENOMEM. *path, the input's, is for messages and must live as long. */
gs_status gs_part__relations_make(gs_relations **out, const char *path);
void gs_part__relations_free(gs_relations *r); /* NULL is allowed */
/* Any thread: the number of a word of 1 to GS_MOST_NAME bytes, until they are ordered. GS_EUNSUPPORTED:
 * more than 65,536 words, or 1 MiB of them. */
gs_status gs_part__relations_number(gs_relations *r, uint32_t *out, const char *word, size_t length);
/* After the last word; says by the job's `warn` which type each is. GS_ENOMEM. */
gs_status gs_part__relations_order(gs_relations *r, const gs_part_job *job);
/* [words] Type of each number. */
const uint32_t *gs_part__relations_type(const gs_relations *r);
/* The words of the first `types` of them, in their order, a line feed behind each; *text is the caller's to free. */
gs_status gs_part__relations_text(const gs_relations *r, uint32_t types, char **text, uint64_t *bytes);

/* -- ids of any kind, as bytes, to vertices 0, 1, 2, ..., within memory.
 *
 *   make --add, add, ...--> names and their keys --number--> names.bin of the store, and key -> vertex
 *
 * A key is a hash of 64 bits: edges lie on disk as keys until all names are known. Names are numbered shortest first,
 * those of one length by their bytes, so whole numbers stand in their own order. One thread. */

typedef struct gs_names gs_names;

/* *path, the input's, is for messages and must live as long. Another `seed` gives other keys. */
gs_status gs_part__names_make(gs_names **out, const gs_part_job *job, const char *path, uint64_t seed);
void gs_part__names_free(gs_names *n); /* NULL is allowed */
GS_ENDS_BY(gs_names, gs_part__names_free)
/* 1 to GS_MOST_NAME bytes without a line feed. */
gs_status gs_part__names_add(gs_names *n, const char *name, size_t length, uint64_t *key);
/* Writes names.bin. *same: two names have one key; begin again with another seed. */
gs_status gs_part__names_number(gs_names *n, gs_part_job *job, uint64_t *count, bool *same);
/* Vertex of a key that was given. */
uint32_t gs_part__names_vertex(const gs_names *n, uint64_t key);
/* Frees all but what the next one gives. */
void gs_part__names_forget(gs_names *n);
/* For the store's manifest; the sums stay the names'. */
gs_array_info gs_part__names_info(const gs_names *n);

/* -- edges. */

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
gs_status gs_part__edge_put(gs_edge_block *b, uint64_t u, uint64_t v, float weight, uint32_t type);
/* Appends what was put to in->text, and forgets it. */
gs_status gs_part__edge_block_end(gs_part_input *in, gs_edge_block *b);
void gs_part__edge_block_release(void *b);

/* -- ids in a text as vertices: as they are, or compacted.
 *
 * A text is read once with ids as they are, which are numbers from 0. Where that will not do, for the first edge has
 * words or numbers are too large or too far apart, it is read again with ids as names, and edges lie on disk
 * as keys until all names are known. */

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

#endif /* GS_PARTITION_EDGE_TEXT_H */
