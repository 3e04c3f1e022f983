/* text_lines.h - the bytes of a file, plain or compressed, the lines of a text, and numbers out of them.
 *
 * What stands in front of the edges is read line by line here; the rest goes on as blocks. One thread a
 * reader; errors name file, line and column. */
#ifndef GS_PARTITION_TEXT_LINES_H
#define GS_PARTITION_TEXT_LINES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "partition/job.h"

/* -- the bytes of a file, front to back, plain or compressed.
 *
 * gzip (.gz) and Zstandard (.zst) are known by their first bytes, not by the name. One thread a stream. Sizes are
 * bytes. */

typedef struct gs_stream gs_stream;

/* `memory` bounds what unpacking holds. *path must live as long. GS_ENOTFOUND, GS_EIO. */
gs_status gs_part__stream_open(gs_stream **out, const char *path, uint64_t memory);
void gs_part__stream_close(gs_stream *s); /* NULL is allowed */
GS_ENDS_BY(gs_stream, gs_part__stream_close)
/* Fills `dst`; *got is less than `bytes` at the end only. GS_EFORMAT: damaged or cut short; GS_EBUDGET: needs more. */
gs_status gs_part__stream_read(gs_stream *s, void *dst, uint64_t bytes, uint64_t *got);
/* The part of the file that was read, 0 to 1. */
double gs_part__stream_done(const gs_stream *s);

/* -- members of gzip data, unpacked piece by piece.
 *
 * By ISA-L, or by zlib where it was built without; one of the two files is compiled. One thread each. */

typedef struct gs_gunzip gs_gunzip;

/* NULL: no memory. */
gs_gunzip *gs_part__gunzip_make(void);
void gs_part__gunzip_free(gs_gunzip *g); /* NULL is allowed */
/* Unpacks some of [*in, in_end) into [*out, out_end), both of which move; *ended: the last byte of a member is out, and
 * the next one may begin. GS_ENOMEM; GS_EFORMAT, and *what is wrong; neither sets gs_last_error(). */
gs_status gs_part__gunzip_step(gs_gunzip *g, const unsigned char **in, const unsigned char *in_end,
                               unsigned char **out, const unsigned char *out_end, bool *ended, const char **what);

/* -- numbers out of a text, eight digits at a time.
 *
 * Texts have GS_TEXT_PADDING readable bytes behind their last one, and end in something that is no digit. */

#define GS_TEXT_PADDING 8u

/* How many of the eight characters in `x` are digits, from the lowest byte on; x holds them less '0'. */
static inline uint32_t gs_text__digits_of(uint64_t x)
{
    const uint64_t others = ((x + 0x7676767676767676u) | x) & 0x8080808080808080u;
    return others == 0 ? 8 : (uint32_t)__builtin_ctzll(others) / 8;
}

/* The number that the lowest `count` bytes of x are digits of, 1 to 8: neighbours are joined to pairs, pairs to fours.
 * Digits move up so that what is missing in front is zeros. */
static inline uint32_t gs_text__value_of(uint64_t x, uint32_t count)
{
    x <<= 64 - 8 * count;
    x = x * 10 + (x >> 8);
    return (uint32_t)(((x & 0x000000ff000000ffu) * 0x000f424000000064u +
                       ((x >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >> 32);
}

/* Appends the digits at p to *value, which wraps past 19 of them; gives where they end. */
static inline const char *gs_text_digits(const char *p, uint64_t *value)
{
    static const uint32_t tens[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

    for (;;) {
        uint64_t x;
        memcpy(&x, p, sizeof(x));
        x = le64toh(x) ^ 0x3030303030303030u;
        const uint32_t count = gs_text__digits_of(x);
        if (count == 0)
            return p;
        *value = *value * tens[count] + gs_text__value_of(x, count);
        p += count;
        if (count < 8)
            return p;
    }
}

/* The nearest number; *after is where it ends, `text` where there is none. As strtod(), but for blanks in front, which
 * it does not pass over: that a line ends is seen. */
double gs_text_real(const char *text, const char **after);
/* The nearest of type float, which is not always the one nearest to the nearest double. */
float gs_text_real32(const char *text, const char **after);

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

/* -- what is left of a text, in blocks that several threads read at once.
 *
 * Each worker unpacks a block of whole lines, one worker at a time, and parses it, while others do the same. Then
 * blocks pass one after the other, in the order of the file, and only there is known what stood before: so the first
 * error of the file is the one that is told. */

/* Lines, each ended by a newline; behind the last are GS_TEXT_PADDING bytes of 0. */
typedef struct gs_text_block {
    const char *text;
    uint64_t bytes;
    bool cut; /* the last line is longer than the limit, and here is its beginning; no block follows */
} gs_text_block;

/* How a text is read. What a worker makes of a block is its `own`, of own_bytes, all 0 at first, and used for one block
 * after the other. `parse` and `store` run at once with others and may be NULL; `pass` is called for one block at a
 * time, in their order, and ends the reading by GS_EAGAIN where that is enough. */
typedef struct gs_text_reader {
    void *context;
    const char *doing; /* for the line about progress */
    uint64_t limit; /* longest line, bytes */
    bool pieces; /* blocks end at any blank, since a line may be longer than memory; `limit` is a word's then */
    size_t own_bytes;
    void (*parse)(void *context, const gs_text_block *b, void *own);
    gs_status (*pass)(void *context, const gs_text_block *b, void *own);
    gs_status (*store)(void *context, void *own);
    void (*release)(void *own);
} gs_text_reader;

/* Reads what follows the lines that were taken of `l`, to its end or until that is enough. GS_EFORMAT, GS_ENOMEM,
 * GS_EIO, GS_EINTERRUPTED, and what `pass` and `store` give. */
gs_status gs_part__text_blocks(gs_lines *l, gs_part_job *job, const gs_text_reader *reader);

#endif /* GS_PARTITION_TEXT_LINES_H */
