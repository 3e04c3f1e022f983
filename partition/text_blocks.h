/* text_blocks.h - what is left of a text, in blocks that several threads read at once.
 *
 * Each worker unpacks a block of whole lines, one worker at a time, and parses it, while others do the same. Then
 * blocks pass one after the other, in the order of the file, and only there is known what stood before: so the first
 * error of the file is the one that is told. */
#ifndef GS_PARTITION_TEXT_BLOCKS_H
#define GS_PARTITION_TEXT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "partition/job.h"
#include "partition/text_lines.h"

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

#endif /* GS_PARTITION_TEXT_BLOCKS_H */
