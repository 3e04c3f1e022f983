/* params.h - the learned tensors of a program, their gradients and the
 * optimiser's state: where are they, and what do they start as?
 *
 * Each kind is one run of floats in which every tensor starts at a multiple of
 * 64 bytes; the floats between tensors are 0 and stay 0 under every optimiser,
 * so that an update is one loop. Units: elements unless a name says bytes.
 */
#ifndef GS_TRAIN_PARAMS_H
#define GS_TRAIN_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/program.h"

#define GS_PARAMS_STATES 2 /* most runs of state an optimiser keeps */

typedef struct gs_params {
    uint32_t count;    /* tensors */
    uint64_t fixed_elements; /* at the end of a run: not learned */
    uint64_t elements; /* of one kind, the gaps included */
    float *values, *grads, *state[GS_PARAMS_STATES]; /* [elements]; NULL where not asked for */
    float **value, **grad; /* [count]: where each tensor starts */
    uint64_t block_bytes;
} gs_params;

/* Floats of one kind, gaps included; UINT64_MAX on overflow. */
uint64_t gs_params_elements(const gs_program *p);
/* Sum of the tensors' own sizes: what a person calls the number of parameters. */
uint64_t gs_params_learned(const gs_program *p);

/* Takes zeroed memory for values, and for gradients and `states` runs of
 * optimiser state where `grads` is set. GS_ENOMEM. Free with gs_params_free(). */
gs_status gs_params_alloc(gs_params *out, const gs_program *p, bool grads, uint32_t states);
void gs_params_free(gs_params *params);

/* Glorot uniform (PyG's `glorot`: U(-a, a), a = sqrt(6 / (rows + cols))), or 0
 * where the tensor says so. Depends on the seed and the tensor's index alone. */
void gs_params_init(gs_params *params, const gs_program *p, uint64_t seed);
void gs_params_zero_grads(gs_params *params);
/* Index of a tensor with an element that is not finite, or GS_NONE. */
uint32_t gs_params_find_nonfinite(const gs_params *params, const gs_program *p);

#endif /* GS_TRAIN_PARAMS_H */
