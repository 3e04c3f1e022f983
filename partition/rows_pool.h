/* rows_pool.h - feature rows on their way to store order: memory in slots, what is being read and written.
 *
 *   rows_pool.c     slots and transfers
 *   rows_window.c   rows to their place, by windows of the output
 *   rows_bucket.c   rows to buckets of neighbouring places first, on disk
 *   rows_input.c    rows out of a file, or made; checked and converted
 *   rows.c          which way, how many passes over the input
 *
 * One thread. Units: bytes, positions in store order.
 */
#ifndef GS_PARTITION_ROWS_POOL_H
#define GS_PARTITION_ROWS_POOL_H

#include <stdint.h>

#include "base/size.h"
#include "io/io.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/vertex_order.h"
#include "store/store.h" /* GS_SUM_BYTES */

#define GS_ROWS_PIECES 4u                 /* in memory: one in use, the others being read */
#define GS_ROWS_WRITES 32u                /* under way, at most */

typedef struct gs_rows gs_rows;

/* Memory cut into equal slots: filled, then written, then free again. */
typedef struct gs_rows_pool {
    char *data; /* [slots][slot_bytes] */
    uint64_t bytes, slot_bytes;
    uint32_t slots, vacancies, most_writes, writes;
    uint32_t *vacant; /* [slots] stack of free slots */
    uint32_t *filled; /* [slots] bytes */
    gs_io_request *written; /* [slots] what is being written of each */
} gs_rows_pool;

struct gs_rows {
    gs_part_job *job;
    const gs_part_input *in;
    const gs_part_order *o;
    gs_array_id id; /* that is made: features, or labels that are rows */
    gs_dtype dtype;
    uint64_t row_bytes, bytes, windows;
    uint64_t piece_bytes; /* of a read, but for rows longer than that: they are read one by one */
    uint64_t low, high; /* positions of this pass */
    gs_status (*put)(gs_rows *r, uint64_t position, const char *row); /* a row as it is at rest */
    uint32_t *slot; /* [windows] which slot holds it, GS_ROWS_NO_SLOT */
    uint64_t *sums; /* [windows] */
    gs_rows_pool pool;
    struct gs_rows_buckets *bucket; /* owned; NULL: not needed so far */
    uint64_t read_done[GS_ROWS_PIECES]; /* 1 + number of the piece that its buffer holds, by buffer */
    float *row;    /* one row as f32 */
    void *aligned; /* one row as in the input, where a file's header leaves it unaligned */
    void *at_rest; /* one row as it is stored */
    gs_io_request reading[GS_ROWS_PIECES]; /* by buffer */
    gs_io *io;
    uint32_t source, file; /* of `io`; source: dense input only */
    char *path;
};

#define GS_ROWS_NO_SLOT UINT32_MAX

/* A pool for slots of this size; nothing may be under way. */
void gs_rows__cut_pool(gs_rows *r, uint64_t slot_bytes);
/* A free slot; waits for writes. GS_EBUDGET where none are under way. */
gs_status gs_rows__take_slot(gs_rows *r, uint32_t *slot);
/* Writes the slot's first `bytes`, whole blocks; it is free when they are written. */
gs_status gs_rows__write_slot(gs_rows *r, uint32_t file, uint32_t slot, uint64_t bytes, uint64_t offset);
/* Waits for all writes. */
gs_status gs_rows__drain(gs_rows *r);
/* Reads are numbered, from 0 after this; piece `number` goes to buffer number % GS_ROWS_PIECES. */
void gs_rows__begin_reading(gs_rows *r);
/* Begins to read whole blocks, of which the file must have `needed` bytes, into that buffer. */
gs_status gs_rows__read_piece(gs_rows *r, uint32_t file, uint64_t number, char *buffer, uint64_t offset, uint64_t bytes,
                              uint64_t needed);
/* Waits until the piece is in its buffer. */
gs_status gs_rows__wait_piece(gs_rows *r, uint64_t number);
/* After a failure: what is under way must not outlive its memory. */
void gs_rows__abandon(gs_rows *r);
/* Reports progress; the job's failure, if there is one. */
gs_status gs_rows__check(const gs_rows *r, uint64_t row);

#endif /* GS_PARTITION_ROWS_POOL_H */
