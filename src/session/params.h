/* params.h - the learned tensors of a program, their gradients and the
 * optimiser's state: where are they, and what do they start as?
 *
 * Each kind is one run of floats in which every tensor starts at a multiple of
 * 64 bytes; the floats between tensors are 0 and stay 0 under every optimiser,
 * so that an update is one loop. Units: elements unless a name says bytes.
 */
#ifndef GS_SESSION_PARAMS_H
#define GS_SESSION_PARAMS_H

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
    float *previous;   /* [elements] with gradients: the values before the last step */
    float *best;       /* [elements] where gs_params_take_best() was called: the best values so far */
    float **best_value; /* [count] likewise */
    float **value, **grad; /* [count]: where each tensor starts */
    double **statistic;    /* [count]: sums of a statistic, [2 * cols]; else NULL */
    double *sums;          /* [sum_count] all of them */
    uint64_t sum_count;
    uint64_t block_bytes;
} gs_params;

/* Floats of one kind, gaps included; UINT64_MAX on overflow. */
uint64_t gs_params_elements(const gs_program *p);
/* Doubles that the sums of statistics take. */
uint64_t gs_params_sums(const gs_program *p);
/* Sum of the tensors' own sizes: what a person calls the number of parameters. */
uint64_t gs_params_learned(const gs_program *p);

/* Takes zeroed memory for values, and for gradients and `states` runs of
 * optimiser state where `grads` is set. GS_ENOMEM. Free with gs_params_free(). */
gs_status gs_params_alloc(gs_params *out, const gs_program *p, bool grads, uint32_t states);
/* Takes memory for one more run of values. GS_ENOMEM. */
gs_status gs_params_take_best(gs_params *params);
void gs_params_free(gs_params *params);

/* By each tensor's own rule, from the seed and the number of the tensor among the learned ones alone. */
void gs_params_init(gs_params *params, const gs_program *p, uint64_t seed);
void gs_params_zero_grads(gs_params *params);
void gs_params_zero_sums(gs_params *params); /* of statistics: before each pass */
/* After a training pass over `vertices` vertices: running means take in a tenth of what the pass has found (of
 * variances, the unbiased one), as torch's BatchNorm does, and counters go on. */
void gs_params_follow(gs_params *params, const gs_program *p, uint64_t vertices);
/* Index of a tensor of `value` with an element that is not finite, or GS_NONE; NULL is no tensor. */
uint32_t gs_params_find_nonfinite(float *const *value, const gs_program *p);
/* Are all values? Reads them once, at the speed of memory. */
bool gs_params_are_finite(const gs_params *params);

#endif /* GS_SESSION_PARAMS_H */
