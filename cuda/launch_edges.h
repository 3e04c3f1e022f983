/* launch_edges.h - kernels over the edges of a chunk. */
#ifndef GS_CUDA_LAUNCH_EDGES_H
#define GS_CUDA_LAUNCH_EDGES_H

#include "base/size.h"
#include "cuda/code.h"
#include "device/device.h"

typedef struct gs_cuda gs_cuda;

#define GS_CUDA_HUB_STRETCHES 4096u /* most that the edges of a launch are cut in */
/* Fewest of a stretch: in batches of 4, some 0.7 us each, 512 take 90 us, which is what a launch of a million edges of
 * 256 bytes takes. */
#define GS_CUDA_HUB_EDGES 512u
#define GS_CUDA_HUB_BYTES (16 * GS_MIB) /* of their sums, at the most */

/* Stretches that the edges of a launch are cut in for hubs, at the most. */
uint32_t gs_cuda_stretches(const gs_edge_kernel *k);
/* What every launch is told of a chunk. */
gs_edge_args gs_cuda_chunk_args(const gs_edges *e);
gs_status gs_cuda_run_edges(void *context, const gs_edge_launch *l);

/* An edge program's launch, c->where[] the addresses of its registers' rows. */
typedef struct gs_cuda_edge_run {
    const gs_edge_program_launch *l;
    gs_edge_args args; /* what all its kernels are told; `place` set: of a portion of the edges */
} gs_cuda_edge_run;

/* One kernel; `kept`: the table of one that keeps rows. And all that the stage has, but those. */
gs_status gs_cuda_run_edge_kernel(gs_cuda *c, const gs_cuda_edge_run *r, const gs_cuda_edge_code *code, float *kept);
gs_status gs_cuda_run_edge_kernels(gs_cuda *c, const gs_cuda_edge_run *r);

#endif /* GS_CUDA_LAUNCH_EDGES_H */
