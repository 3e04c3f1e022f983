/* optim.h - SGD, Adam and AdamW by PyTorch's definitions, in float32.
 *
 * torch.optim.SGD (with momentum or without), torch.optim.Adam and torch.optim.AdamW (betas 0.9 and 0.999, eps 1e-8,
 * amsgrad off). Weight decay is of every parameter: L2, added to the gradient; AdamW shrinks the weights by lr times
 * it.
 * Gradients may be clipped before, as torch.nn.utils.clip_grad_norm_ does it.
 */
#ifndef GS_TRAIN_OPTIM_H
#define GS_TRAIN_OPTIM_H

#include <stdbool.h>
#include <stdint.h>

#include "device/update.h"
#include "gnnstream.h"
#include "session/params.h"

typedef struct gs_optim {
    gs_optim_kind kind;
    double lr, weight_decay, momentum; /* momentum: of SGD */
    double clip;    /* most 2-norm of all gradients together; 0: any */
    uint64_t steps; /* taken so far */
} gs_optim;

/* Is .momentum one of its options? */
bool gs_optim_takes_momentum(gs_optim_kind kind);
/* As the options say, which have passed gs_train_options_check(). */
gs_optim gs_optim_open(const gs_train_options *options);
/* Runs of state for gs_params_alloc(): Adam's first and second moments, SGD's momentum. */
uint32_t gs_optim_states(const gs_optim *o);
/* Goes on to the next step: its scalars, for whoever has the parameters. `norm`: of the gradients, where they are
 * clipped. */
gs_update gs_optim_next(gs_optim *o, double norm);
/* The 2-norm of `params->grads`, added up in float64. */
double gs_optim_norm(const gs_params *params);
/* The same of any numbers, with the runs of state that the update works on. */
typedef struct gs_optim_rows {
    uint64_t count;
    float *value, *state[2];
    const float *grad;
} gs_optim_rows;
void gs_optim_apply_to(const gs_update *u, const gs_optim_rows *r);
/* One step of `params->values` from `params->grads` (which stay as they are). */
void gs_optim_apply(const gs_update *u, gs_params *params);

#endif /* GS_TRAIN_OPTIM_H */
