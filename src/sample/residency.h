/* residency.h - which rows of features does each batch of a group read, and which stay in memory for the next ones?
 *
 * A group of batches is sampled before the first is trained, so each row's next use is known, and what stays is what is
 * used soonest (Belady). Rows are kept by *items* of so many consecutive rows: one where a row has a block of the disk
 * or more, else those of a block, as a read brings them all. A cache has `capacity` slots of an item, whose memory is
 * the caller's, as are reads and copies: this plans them. No plan for so many slots reads fewer items in the group.
 *
 * Rows that no later batch of the group uses stay, in slots that nothing else needs, for the next group, those first
 * that many of its batches used. Threads: one. Nothing is allocated after opening.
 */
#ifndef GS_SAMPLE_RESIDENCY_H
#define GS_SAMPLE_RESIDENCY_H

#include <stdint.h>

#include "base/status.h"
#include "sample/sampler.h"

#define GS_RESIDENCY_NONE UINT32_MAX
#define GS_RESIDENCY_BATCHES 32768u /* of a group, at most */

typedef struct gs_residency gs_residency;

/* Steps of a batch, in order of rows. First all rows that are in slots are copied from there, then the others are
 * read, then kept items are copied into their slots, over what was there. */
typedef struct gs_residency_step {
    uint32_t rows;         /* of the batch */
    uint32_t hits, reads;  /* items */
    const uint32_t *place; /* [rows] local rows, by ascending row of the store */
    const uint32_t *from;  /* [rows] slot that has the row's item; GS_RESIDENCY_NONE: it is read */
    const uint32_t *keep;  /* [rows] slot to put the row's item into, at the first row of an item; else NONE */
} gs_residency_step;

/* For groups of at most `batches` batches of at most `batch_rows` rows, of a store of `vertices` rows. GS_ENOMEM. */
gs_status gs_residency_open(gs_residency **out, uint32_t vertices, uint32_t rows_per_item, uint32_t capacity,
                            uint32_t batches, uint32_t batch_rows);
void gs_residency_close(gs_residency *r); /* NULL is allowed */

/* Memory that one takes, slots excluded. */
uint64_t gs_residency_bytes(uint32_t vertices, uint32_t rows_per_item, uint32_t capacity, uint32_t batches,
                            uint32_t batch_rows);

/* The next group; of the one before, no more steps are taken. The batches stand until theirs were taken. */
void gs_residency_begin(gs_residency *r, const gs_batch *batch, uint32_t batches);
/* The next batch of the group; *step stands until the next call. */
void gs_residency_next(gs_residency *r, gs_residency_step *step);

/* The slots do not hold what the last step said: nothing is in them, and the group is over. */
void gs_residency_forget(gs_residency *r);

#endif /* GS_SAMPLE_RESIDENCY_H */
