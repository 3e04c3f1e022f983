/* text_lines.h - the lines of a text file, plain or compressed, and whole numbers out of them.
 *
 * One thread a reader; errors name file, line and column. */
#ifndef GS_PARTITION_TEXT_LINES_H
#define GS_PARTITION_TEXT_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/job.h"
#include "partition/stream.h"

#define GS_LINE_LIMIT 65536u /* longest line of an edge list, bytes */

/* Lines, each ended by a 0 byte in place of its newline. */
typedef struct gs_lines {
    const char *path;
    gs_stream *stream;
    bool ended;     /* the stream is */
    uint64_t limit; /* longest line */
    char *buffer;   /* a piece, the longest line, and 1 */
    char *at, *end;
    uint64_t number; /* of the line last given, from 1 */
    char *line;
} gs_lines;

/* Close after a failure too. */
gs_status gs_part__lines_open(gs_lines *l, const gs_part_job *job, const char *path, uint64_t limit);
void gs_part__lines_close(gs_lines *l);
/* *more is false at the end of the file. */
gs_status gs_part__lines_next(gs_lines *l, bool *more);
/* GS_EFORMAT; `at` is in the line last given. */
gs_status gs_part__lines_wrong(const gs_lines *l, const char *at, const char *what);
/* Every some thousand lines: says how far it is and sees whether to stop. */
gs_status gs_part__lines_tick(gs_part_job *job, const gs_lines *l, const char *doing);

char *gs_part__skip_blanks(char *p);
/* One integer of [least, most]; *p moves behind it and the blanks after it. */
gs_status gs_part__take_number(uint64_t *out, char **p, const gs_lines *l, uint64_t least, uint64_t most,
                               const char *what);

#endif /* GS_PARTITION_TEXT_LINES_H */
