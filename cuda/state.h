/* state.h - what a program has on the device: parameters, what passes add up, and scratch. */
#ifndef GS_CUDA_STATE_H
#define GS_CUDA_STATE_H

#include <stdbool.h>

#include "cuda/driver.h"
#include "cuda/streams.h"
#include "program/program.h"

typedef struct gs_cuda gs_cuda;

#define GS_CUDA_SORTED 4096u         /* targets of a sequence that are sorted together */
#define GS_CUDA_ORDER_WORDS ((GS_CUDA_FLIGHT + 2u) * GS_CUDA_SORTED + 1u)
#define GS_CUDA_LEAST_WORKSPACE (4u << 20) /* bytes of cuBLAS's; see gs_cuda_workspace() */
#define GS_CUDA_WORKSPACE_PARTS 32u

/* One allocation: parameters, gradients, sums of statistics, totals of the loss, scratch. Offsets are bytes in it. */
typedef struct gs_cuda_state {
    gs_cu_memory at;
    uint64_t learned_bytes;     /* parameters that are learned come first, their gradients first of those, in the same
                                 * places */
    uint64_t grads_offset, added_bytes; /* from there on: what passes add up, gradients, sums and totals */
    uint64_t *param_offset, *grad_offset, *sums_offset, loss_offset, columns_offset, found_offset, weight_offset,
        scratch_offset, scratch_bytes, order_offset, typed_offset, workspace_offset;
    double *columns; /* [loss_columns * GS_LOSS_FIGURES], of the host: what a pass has added up of a loss's columns */
    uint32_t loss_columns;
    uint32_t *found; /* [founds], of the host: what a pass has counted of classes (gs_metrics.found) */
    uint32_t founds; /* GS_LOSS_SPLITS * GS_LOSS_SUMS * classes; 0: the loss is not of one class a row */
    uint32_t *order; /* [GS_CUDA_ORDER_WORDS], where there are sequences: for each launch under way
                      * GS_CUDA_SORTED targets as sequences take them, as many to sort with, and where the edges of as
                      * many and one begin */
    bool order_pinned;
    /* kept_params.c */
    bool kept;                  /* gs_device_keep_params(): the learned parameters are the run's */
    uint32_t states;
    gs_cu_memory moments;       /* [states] runs of learned_bytes; 0: none */
    gs_cu_memory previous;      /* behind them: what learned parameters were before the last step, and a word that a
                                 * step sets which leaves a number that is not finite */
    uint32_t fault;             /* that word, as it was when the last pass ended */
} gs_cuda_state;

/* Bytes of scratch: of a launch, of the targets of a sequence's launch, sorted, and of a portion of edges by type. */
typedef struct gs_cuda_scratch {
    uint64_t launch, order, typed;
} gs_cuda_scratch;

/* Bytes that cuBLAS works in: 32 MiB from Hopper on, 4 MiB before it, as its documents ask for; of budgets of less than
 * a GiB a 32nd, but 4 MiB at least. With less it takes kernels that need less. */
uint64_t gs_cuda_workspace(const gs_cuda *c);
/* Bytes beside and between parameters, gradients, the optimiser's state and scratch. */
uint64_t gs_cuda_state_bytes(const gs_cuda *c, const gs_program *p);
gs_status gs_cuda_take_state(gs_cuda *c, const gs_program *p, const gs_cuda_scratch *scratch);
/* For programs with sequences, besides. */
gs_status gs_cuda_take_order(gs_cuda *c);
void gs_cuda_give_state(gs_cuda *c);
gs_cu_memory gs_cuda_param(const gs_cuda *c, uint32_t param);
gs_cu_memory gs_cuda_grad(const gs_cuda *c, uint32_t param);
/* Sums of a statistic. */
gs_cu_memory gs_cuda_sums(const gs_cuda *c, uint32_t param);

#endif /* GS_CUDA_STATE_H */
