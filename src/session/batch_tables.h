/* batch_tables.h - learned rows of vertices that batches use: they come from the session that evaluates, and what an
 * optimiser makes of them goes back there.
 *
 * Only rows of the step's batches are touched, as torch.optim.SparseAdam has it. Between passes; one thread, but for
 * gs_batch_tables_fetch(), which the threads of several devices call at the same time.
 */
#ifndef GS_SESSION_BATCH_TABLES_H
#define GS_SESSION_BATCH_TABLES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "sample/sample_batch.h"

typedef struct gs_session gs_session;

/* Rows of the store, each once, in its order. */
typedef struct gs_row_list {
    uint32_t rows;
    uint32_t *named;   /* [rows] ascending */
    uint32_t *order;   /* [rows] the place of each among those that it was made of */
    uint32_t *scratch; /* [rows] */
} gs_row_list;

/* GS_ENOMEM. Release with gs_row_list_close() in any case. */
gs_status gs_row_list_open(gs_row_list *l, uint32_t most);
void gs_row_list_close(gs_row_list *l);
#define GS_ROW_LIST_BYTES (3 * sizeof(uint32_t)) /* of each row */
/* Of these, which are distinct. */
void gs_row_list_make(gs_row_list *l, const uint32_t *vertex, uint32_t rows);

/* Tables are numbered as in the program of the batches. */
typedef struct gs_batch_tables {
    gs_session *whole, *session; /* that has them; that trains the batches */
    uint32_t *of;                /* [tables] their numbers in the program of `whole` */
    gs_row_list list;            /* of the batch at hand */
    pthread_mutex_t own, *lock;  /* of `whole`, for as long as rows are brought: the first device's */
} gs_batch_tables;

/* Host memory, for batches of `most` rows; 0 without tables. */
uint64_t gs_batch_tables_bytes(const gs_session *session, uint32_t most);
/* Both have started. `first`: of another device that trains batches with the same tables, was opened and outlives this;
 * NULL: none does. GS_ENOMEM. Release with gs_batch_tables_close() in any case. */
gs_status gs_batch_tables_open(gs_batch_tables *b, gs_session *whole, gs_session *session, uint32_t most,
                               gs_batch_tables *first);
void gs_batch_tables_close(gs_batch_tables *b);

/* Before a pass: the batch's rows of all tables, to where the pass reads them. Blocks while it reads. GS_EIO. */
gs_status gs_batch_tables_fetch(gs_batch_tables *b, const gs_batch *batch);

/* Behind a pass: the gradient of the batch's rows of a table, [list.rows, *width] in the batch's order; NULL: no result
 * depends on it. */
const float *gs_batch_tables_gradient(const gs_batch_tables *b, uint32_t t, uint32_t *width);
/* A row of a table with its runs of the optimiser's state, [width] each, and its gradient. False: the row is not finite
 * now. Threads call it at the same time, for rows of their own. */
typedef bool gs_batch_row_fn(void *context, float *value, float *const state[2], const float *gradient,
                             uint32_t width);
/* Each row of the list, once, with `states` runs of state and row order[k] of the gradient; blocks while it reads and
 * writes. *finite: all are. */
gs_status gs_batch_tables_update(const gs_batch_tables *b, uint32_t t, const gs_row_list *list, const float *gradient,
                                 uint32_t states, gs_batch_row_fn *fn, void *context, bool *finite);

#endif /* GS_SESSION_BATCH_TABLES_H */
