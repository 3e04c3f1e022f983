/* batch_tables.h - learned rows of vertices that batches use: they come from the session that evaluates, and what an
 * optimiser makes of them goes back there.
 *
 * Only rows of the batch are touched, as torch.optim.SparseAdam has it. Between passes; one thread.
 */
#ifndef GS_SESSION_BATCH_TABLES_H
#define GS_SESSION_BATCH_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "sample/sample_batch.h"

typedef struct gs_session gs_session;

/* Tables are numbered as in the program of the batches. */
typedef struct gs_batch_tables {
    gs_session *whole, *session; /* that has them; that trains the batches */
    uint32_t *of;                /* [tables] their numbers in the program of `whole` */
    uint32_t rows;               /* of the batch at hand */
    uint32_t *order, *named;     /* [most] its places by their row of the store, and those rows */
    uint32_t *scratch;           /* [most] */
} gs_batch_tables;

/* Host memory, for batches of `most` rows; 0 without tables. */
uint64_t gs_batch_tables_bytes(const gs_session *session, uint32_t most);
/* Both have started. GS_ENOMEM. Release with gs_batch_tables_close() in any case. */
gs_status gs_batch_tables_open(gs_batch_tables *b, gs_session *whole, gs_session *session, uint32_t most);
void gs_batch_tables_close(gs_batch_tables *b);

/* Before a pass: the batch's rows of all tables, to where the pass reads them. Blocks while it reads. GS_EIO. */
gs_status gs_batch_tables_bring(gs_batch_tables *b, const gs_batch *batch);

/* Behind a pass: the gradient of the batch's rows of a table, [b->rows, *width]; NULL: no result depends on it. */
const float *gs_batch_tables_gradient(const gs_batch_tables *b, uint32_t t, uint32_t *width);
/* A row of a table with its runs of the optimiser's state, [width] each, and its gradient. False: the row is not finite
 * now. Threads call it at the same time, for rows of their own. */
typedef bool gs_batch_row_fn(void *context, float *value, float *const state[2], const float *gradient,
                             uint32_t width);
/* Each row of the batch, once, with `states` runs of state; blocks while it reads and writes. *finite: all are. */
gs_status gs_batch_tables_update(gs_batch_tables *b, uint32_t t, uint32_t states, gs_batch_row_fn *fn, void *context,
                                 bool *finite);

#endif /* GS_SESSION_BATCH_TABLES_H */
