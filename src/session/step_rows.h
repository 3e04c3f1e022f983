/* step_rows.h - rows of learned tables that a step's batches have, and the sums of their gradients.
 *
 * A step of one pass has the gradient where the pass left it. Of several, each adds its own, in the order of the
 * batches, and a row that several have is there once: so the optimiser goes over each row of the step once, and what is
 * added to what does not depend on devices, groups or budgets. One thread at a time.
 */
#ifndef GS_SESSION_STEP_ROWS_H
#define GS_SESSION_STEP_ROWS_H

#include "sample/unique.h"
#include "session/batch_tables.h"

typedef struct gs_step_rows {
    const gs_batch_tables *tables; /* the first device's */
    bool alone;                    /* the step is of one pass, of `tables` */
    gs_unique rows;                /* of several: [most] in the order in which they come */
    uint32_t *row;                 /* [rows of a batch] where those of the batch at hand are */
    float **sum;                   /* [tables][most, width] of their gradients; NULL: it has none */
    gs_row_list list;              /* of `rows`, at the end of the step */
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
void gs_step_rows_divide(gs_step_rows *r, double mass);

/* Then: the rows of the step, and their gradient of a table, [rows, *width]; NULL: no result depends on it. */
uint32_t gs_step_rows_count(const gs_step_rows *r);
const float *gs_step_rows_gradient(const gs_step_rows *r, uint32_t t, uint32_t *width);
/* gs_batch_tables_update() of them. */
gs_status gs_step_rows_update(const gs_step_rows *r, uint32_t t, uint32_t states, gs_batch_row_fn *fn, void *context,
                              bool *finite);

#endif /* GS_SESSION_STEP_ROWS_H */
