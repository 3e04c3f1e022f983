/* shares.h - what each device has of a sum over all of them: gradients, sums of statistics, figures of the loss. */
#ifndef GS_EXEC_SHARES_H
#define GS_EXEC_SHARES_H

#include "exec/exec.h"

/* Shares of gradients and counts of all devices but the first, whose share is the caller's; `column` has all. */
typedef struct gs_exec_shares {
    double *column;           /* [devices][columns], or NULL */
    uint64_t columns;         /* GS_LOSS_SPLITS * GS_LOSS_SUMS * columns of the logits */
    uint32_t *found;          /* [devices][founds], or NULL: gs_metrics.found */
    uint64_t founds;          /* GS_LOSS_SPLITS * GS_LOSS_SUMS * classes */
    float **grad;             /* [(devices - 1) * params], or NULL */
    double **statistic;       /* likewise */
    float *grad_floats;       /* as gs_program_place_params() lays them out, one device's behind the other's */
    double *statistic_doubles;
    uint64_t grad_count, statistic_count; /* of all of them */
    uint64_t learned;         /* floats of a device's gradients */
    uint32_t first;           /* parameter that they begin with */
} gs_exec_shares;

gs_status gs_exec__take_shares(gs_exec *e, bool gradients);
void gs_exec__give_shares(gs_exec *e);
/* Adds what a device has to `to`; the columns of the first device become those of all. */
void gs_exec__add_metrics(gs_exec *e, gs_metrics *to, const gs_metrics *from);
/* Each device's share in the pass, all zero. */
void gs_exec__enter_shares(gs_exec *e);
/* Parameters' gradients, all at once: each device has those of its rows. */
gs_status gs_exec__reduce_gradients(gs_exec *e);
/* Adds up a statistic of the devices' rows, before it is finished. */
gs_status gs_exec__reduce_statistic(gs_exec *e, uint32_t param);

#endif /* GS_EXEC_SHARES_H */
