/* launch_edges.h - kernels over the edges of a chunk. */
#ifndef GS_CUDA_LAUNCH_EDGES_H
#define GS_CUDA_LAUNCH_EDGES_H

#include "base/size.h"
#include "cuda/code.h"
#include "device/device.h"

typedef struct gs_cuda gs_cuda;

#define GS_CUDA_HUB_STRETCHES 4096u /* most that the edges of a chunk are cut in */
/* Fewest of a stretch: in batches of 4, some 0.7 us each, 512 take 90 us, which is what a launch of a million edges of
 * 256 bytes takes. */
#define GS_CUDA_HUB_EDGES 512u
#define GS_CUDA_HUB_BYTES (16 * GS_MIB) /* of their sums, at the most */
#define GS_CUDA_MUCH_MEMORY (16 * GS_GIB) /* of a GPU that always has those bytes: for the hubs of several chunks */

/* Memory for the sums of pieces of hubs, of all chunks of a launch: enough for one, and of a GPU with much memory for
 * several. */
uint64_t gs_cuda_hub_bytes(const gs_cuda *c, const gs_edge_kernel *k);

/* Edges of a chunk; `all.place` set: of a portion of them. */
typedef struct gs_cuda_edges {
    gs_edge_chunk chunk;
    gs_edge_common all;
} gs_cuda_edges;

gs_cuda_edges gs_cuda_edges_of(const gs_edges *e);
gs_status gs_cuda_run_edges(void *context, const gs_edge_launch *l);
/* gs_device_begin_group(), gs_device_end_group(): of what the launches between them ask, one launch of each kernel. */
gs_status gs_cuda_begin_group(void *context);
gs_status gs_cuda_end_group(void *context, gs_status st);

/* An edge program's launch, c->where[] the addresses of its registers' rows. */
typedef struct gs_cuda_edge_run {
    const gs_edge_program_launch *l;
    gs_cuda_edges edges; /* what all its kernels are told of them */
} gs_cuda_edge_run;

/* One kernel; `kept`: the table of one that keeps rows. And all that the stage has, but those. */
gs_status gs_cuda_run_edge_kernel(gs_cuda *c, const gs_cuda_edge_run *r, const gs_cuda_edge_code *code, float *kept);
gs_status gs_cuda_run_edge_kernels(gs_cuda *c, const gs_cuda_edge_run *r);

#endif /* GS_CUDA_LAUNCH_EDGES_H */
