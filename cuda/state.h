/* state.h - what a device holds: of the host's memory, for a program, and for a run. */
#ifndef GS_CUDA_STATE_H
#define GS_CUDA_STATE_H

#include <stdbool.h>

#include "base/size.h"
#include "cuda/driver.h"
#include "cuda/streams.h"
#include "device/device.h"
#include "program/program.h"

typedef struct gs_cuda gs_cuda;

/* ---- CUDA's libraries ----
 *
 * How much of the host's memory do CUDA's libraries and its driver hold?
 *
 * Measured, as nobody says it: what the process grows by when the libraries are opened, when the first device of each
 * GPU is, and its kernels are compiled. It stays when devices are closed. Devices are opened by one thread at a time.
 */

/* NVRTC, where the kernels so far came from files: it takes some 45 MiB when it first compiles (measured, CUDA 13.0),
 * and more for a long text. */
#define GS_CUDA_COMPILER_BYTES (64 * GS_MIB)
/* What cuBLAS and the driver load at the first launch of a kernel. An estimate: no GPU has shown it yet. */
#define GS_CUDA_FIRST_USE_BYTES (32 * GS_MIB)

/* Resident bytes, while a device is opened: before there is a context, before the fixed kernels are compiled, and after
 * that. */
typedef struct gs_cuda_resident {
    uint64_t before, made, compiled;
} gs_cuda_resident;

/* Device `gpu` is open: notes what it added, the first time. */
void gs_cuda_note_resident(int gpu, const gs_cuda_resident *r);

/* ---- state of a program ---- */

#define GS_CUDA_SORTED 4096u         /* targets of a sequence that are sorted together */
#define GS_CUDA_ORDER_WORDS ((GS_CUDA_FLIGHT + 2u) * GS_CUDA_SORTED + 1u)
#define GS_CUDA_LEAST_WORKSPACE (4u << 20) /* bytes of cuBLAS's; see workspace_bytes() */
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
    /* gpu_params.c */
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

gs_cu_memory gs_cuda_param(const gs_cuda *c, uint32_t param);
gs_cu_memory gs_cuda_grad(const gs_cuda *c, uint32_t param);
/* Sums of a statistic. */
gs_cu_memory gs_cuda_sums(const gs_cuda *c, uint32_t param);

/* ---- memory of a run ---- */

typedef struct gs_cuda_memory {
    gs_cu_memory arena;
    uint32_t registered;
    gs_device_range pinned[GS_DEVICE_HOST_RANGES]; /* host memory, */
    gs_cu_memory reached[GS_DEVICE_HOST_RANGES];   /* and where kernels find it; 0: they do not */
} gs_cuda_memory;

/* Where kernels find `bytes` of the host's memory; 0: they do not. */
gs_cu_memory gs_cuda_reached(const gs_cuda *c, const void *memory, uint64_t bytes);


/* ---- programs ---- */

void gs_cuda_drop_program(gs_cuda *c);

#endif /* GS_CUDA_STATE_H */
