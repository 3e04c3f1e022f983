/* run_batch_tables.c - the optimiser's step after a batch or several, with the learned rows of their vertices: of a
 * table no other row changes, as torch.optim.SparseAdam has it. */
#include <math.h>

#include "batch/batch_tables.h"
#include "train/run_batches_internal.h"
#include "train/run_internal.h"

/* Over the rows in the order of the batches: no budget changes a bit. */
static double gradient_norm(const gs_run *r, const gs_step_rows *b)
{
    const gs_program *const p = r->session->program;
    const double rest = gs_optim_norm(&r->session->run.params);
    double sum = rest * rest;

    for (uint32_t t = 0; t < p->tables; t++) {
        uint32_t width;
        const float *const gradient = gs_step_rows_gradient(b, t, &width);
        sum = gradient == NULL ? sum : gs_run__add_squares(sum, gradient, gs_step_rows_count(b), width);
    }
    return p->tables > 0 ? sqrt(sum) : rest;
}

static bool step_row(void *context, float *value, float *const state[2], const float *gradient, uint32_t width)
{
    const gs_optim_rows r = {.count = width, .value = value, .state = {state[0], state[1]}, .grad = gradient};
    gs_optim_apply_to(context, &r);
    return gs_run__rows_are_finite(value, width);
}

gs_status gs_run__step_batch(gs_run *r)
{
    const gs_step_rows *const b = gs_batch_devices_rows(r->batches->engine);
    gs_session *const s = r->session;
    gs_update u = gs_optim_next(&r->optim, r->optim.clip > 0 ? gradient_norm(r, b) : 0);
    gs_status st = GS_OK;

    gs_optim_apply(&u, &s->run.params);
    for (uint32_t t = 0; t < s->program->tables && st == GS_OK; t++) {
        bool finite = true;
        st = gs_step_rows_update(b, t, gs_optim_states(&r->optim), step_row, &u, &finite);
        if (st == GS_OK && !finite)
            st = gs_run__refuse_table(b->tables->session->program->table[t].name);
    }
    return st;
}
