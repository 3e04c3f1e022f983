/* text_lines.h - the lines of a text file, plain or compressed, and whole numbers out of them.
 *
 * What stands in front of the edges is read line by line here; the rest goes on as blocks (text_blocks.h). One thread a
 * reader; errors name file, line and column. */
#ifndef GS_PARTITION_TEXT_LINES_H
#define GS_PARTITION_TEXT_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/job.h"
#include "partition/stream.h"

#define GS_LINE_LIMIT 65536u /* longest line of an edge list, bytes */
#define GS_TEXT_MARK "\xef\xbb\xbf" /* that editors and spreadsheets put in front of UTF-8 */
#define GS_ZERO_IN_TEXT "a byte of 0, which no text holds; the file is damaged, or no text"

/* A line and where it is. */
typedef struct gs_line {
    const char *path;
    uint64_t number;  /* from 1 */
    const char *text; /* to a newline or a 0 */
} gs_line;

typedef struct gs_lines {
    gs_line line; /* the one last given */
    gs_stream *stream;
    bool ended; /* the stream is */
    char *buffer;   /* a piece, the longest line, and 1 */
    char *at, *end;
} gs_lines;

/* A mark of UTF-8 at the beginning is passed over. Close after a failure too. */
gs_status gs_part__lines_open(gs_lines *l, const gs_part_job *job, const char *path);
void gs_part__lines_close(gs_lines *l);
/* The next line, of at most GS_LINE_LIMIT bytes, is *text, ended by a 0; NULL at the end of the file. */
gs_status gs_part__lines_next(gs_lines *l, char **text);
/* The next line that is neither empty nor a comment, which begins with '%': *p is its first byte that is no blank.
 * GS_EFORMAT, "FILE: `missing`", where the file ends before it. */
gs_status gs_part__lines_next_said(gs_lines *l, const char **p, const char *missing);
/* The line last given, of which nothing was changed, comes again. */
void gs_part__lines_back(gs_lines *l);

/* GS_EFORMAT; `at` is in the line. */
gs_status gs_part__line_wrong(const gs_line *l, const char *at, const char *what);
/* GS_EFORMAT; the line after l->number is longer than `limit`. */
gs_status gs_part__line_too_long(const gs_line *l, uint64_t limit);
/* GS_EFORMAT where one of the line's `length` bytes is 0: as the end of the line it would hide the rest. */
gs_status gs_part__line_check(const gs_line *l, size_t length);

static inline bool gs_part__is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
static inline bool gs_part__is_end(char c) { return c == '\n' || c == '\0'; }
static inline const char *gs_part__skip_blanks(const char *p)
{
    while (gs_part__is_blank(*p))
        p++;
    return p;
}
/* Of an edge list: # as SNAP has it, or a % that stands alone, as KONECT's files begin. */
static inline bool gs_part__is_comment(const char *p)
{
    return *p == '#' || (*p == '%' && (gs_part__is_blank(p[1]) || gs_part__is_end(p[1])));
}

/* One integer of [least, most]; *p moves behind it and the blanks after it. */
gs_status gs_part__take_number(uint64_t *out, const char **p, const gs_line *l, uint64_t least, uint64_t most,
                               const char *what);

#endif /* GS_PARTITION_TEXT_LINES_H */
