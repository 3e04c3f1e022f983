/* batch_tables.h - learned rows of vertices that batches use: they come from the session that evaluates, and what an
 * optimiser makes of them goes back there.
 *
 * Only rows of the step's batches are touched, as torch.optim.SparseAdam has it. Between passes; one thread, but for
 * gs_batch_tables_fetch(), which the threads of several devices call at the same time.
 */
#ifndef GS_BATCH_BATCH_TABLES_H
#define GS_BATCH_BATCH_TABLES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "sample/sampler.h"
#include "sample/unique.h"
#include "session/tables.h" /* gs_row_list */

typedef struct gs_session gs_session;

/* Tables are numbered as in the program of the batches. */
typedef struct gs_batch_tables {
    gs_session *whole, *session; /* that has them; that trains the batches */
    struct gs_batch_rows *features; /* of the vertices of this rank, which has a shard, for others, too; or NULL */
    uint32_t *of;                /* [tables] their numbers in the program of `whole` */
    gs_row_list list;            /* of the batch at hand */
    pthread_mutex_t own, *lock;  /* of `whole`, for as long as rows are brought: the first device's */
} gs_batch_tables;

/* Host memory, for batches of `most` rows; 0 without tables. */
uint64_t gs_batch_tables_bytes(const gs_session *session, uint32_t most);
/* Both have started. `first`: of another device that trains batches with the same tables, was opened and outlives this;
 * NULL: none does. GS_ENOMEM. Release with gs_batch_tables_close() in any case. */
gs_status gs_batch_tables_open(gs_batch_tables *b, gs_session *whole, gs_session *session, uint32_t most,
                               gs_batch_tables *first, struct gs_batch_rows *features);
void gs_batch_tables_close(gs_batch_tables *b);

/* Before a pass: the batch's rows of all tables, to where the pass reads them. Blocks while it reads. GS_EIO. */
gs_status gs_batch_tables_fetch(gs_batch_tables *b, const gs_batch *batch);
/* Of several ranks: is there anything of others to be had? */
static inline bool gs_batch_tables_are_apart(const gs_batch_tables *b) { return b->list.named != NULL; }
/* The same of several ranks, a meeting: rows of the batch that rank `of` has, which others need not have drawn. */
gs_status gs_batch_tables_fetch_for(gs_batch_tables *b, uint32_t of, const gs_batch *batch);

/* Rows of learned tables that a step's batches have, and the sums of their gradients.
 *
 * A step of one pass has the gradient where the pass left it. Of several, each adds its own, in the order of the
 * batches, and a row that several have is there once: so the optimiser goes over each row of the step once, and what is
 * added to what does not depend on devices, groups or budgets. A rank has the rows of its own vertices. One thread at a
 * time.
 */

typedef struct gs_step_rows {
    const gs_batch_tables *tables; /* the first device's */
    bool alone;                    /* the step is of one pass, of `tables` */
    gs_unique rows;                /* of several: [most] in the order in which they come */
    uint32_t *row;                 /* [rows of a batch] where those of the batch at hand are */
    float **sum;                   /* [tables][most, width] of their gradients; NULL: it has none */
    gs_row_list list;              /* of `rows`, at the end of the step */
    gs_arena arrays;               /* of all but the list */
} gs_step_rows;

/* Host memory for steps of at most `step` batches of at most `most` rows each; 0: no tables, or steps of one batch. */
uint64_t gs_step_rows_bytes(const gs_session *session, uint32_t step, uint32_t most);
/* `tables` are open and outlive this. GS_ENOMEM. Release with gs_step_rows_close() in any case. */
gs_status gs_step_rows_open(gs_step_rows *r, const gs_batch_tables *tables, uint32_t step, uint32_t most);
void gs_step_rows_close(gs_step_rows *r);

/* Do the passes of a step of several add rows? Not without tables. */
static inline bool gs_step_rows_adds(const gs_step_rows *r) { return r->sum != NULL; }

/* A step begins: of one pass, that of the first device; or of several, */
void gs_step_rows_take_one(gs_step_rows *r);
void gs_step_rows_clear(gs_step_rows *r);
/* each of which is added after it; then gradients are divided by `mass`. Nothing happens without tables. */
void gs_step_rows_add(gs_step_rows *r, const gs_batch_tables *pass, const gs_batch *batch);
/* Of several ranks, a meeting: the pass was rank `of`'s, whose rows gs_batch_tables_fetch_for() brought. */
gs_status gs_step_rows_add_of(gs_step_rows *r, const gs_batch_tables *pass, uint32_t of);
void gs_step_rows_divide(gs_step_rows *r, double mass);

/* Then: the rows of the step, and their gradient of a table; without rows where no result depends on it. */
const gs_row_list *gs_step_rows_list(const gs_step_rows *r);
gs_row_array gs_step_rows_gradient(const gs_step_rows *r, uint32_t t);

#endif /* GS_BATCH_BATCH_TABLES_H */
