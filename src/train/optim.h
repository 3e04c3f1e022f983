/* optim.h - SGD and Adam by PyTorch's definitions, in float32.
 *
 * torch.optim.SGD (no momentum) and torch.optim.Adam (betas 0.9 and 0.999, eps
 * 1e-8, amsgrad off); weight decay is L2, added to the gradient, of every parameter.
 */
#ifndef GS_TRAIN_OPTIM_H
#define GS_TRAIN_OPTIM_H

#include <stdint.h>

#include "base/status.h"
#include "device/device.h" /* gs_update */
#include "session/params.h"

typedef enum gs_optim_kind { GS_OPTIM_SGD, GS_OPTIM_ADAM } gs_optim_kind;

typedef struct gs_optim {
    gs_optim_kind kind;
    double lr, weight_decay;
    uint64_t steps; /* taken so far */
} gs_optim;

/* "sgd" or "adam"; GS_EINVAL otherwise. */
gs_status gs_optim_parse(gs_optim_kind *out, const char *name);
/* Runs of state for gs_params_alloc(): Adam's first and second moments. */
uint32_t gs_optim_states(gs_optim_kind kind);
/* Goes on to the next step: its scalars, for whoever has the parameters. */
gs_update gs_optim_next(gs_optim *o);
/* The same, and the update of `params->values` from `params->grads` (which stay as they are). */
void gs_optim_step(gs_optim *o, gs_params *params);

#endif /* GS_TRAIN_OPTIM_H */
