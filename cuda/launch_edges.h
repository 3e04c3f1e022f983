/* launch_edges.h - kernels over the edges of a chunk. */
#ifndef GS_CUDA_LAUNCH_EDGES_H
#define GS_CUDA_LAUNCH_EDGES_H

#include "base/size.h"
#include "cuda/code.h"
#include "device/device.h"

typedef struct gs_cuda gs_cuda;

/* A target with more edges than a piece has is a hub. A piece has a 65,536th of its chunk's edges (a large GPU has some
 * 17,000 groups of 16 threads, so that is a quarter of what one has to do), within these bounds: in bursts of 4 to 6,
 * some 0.7 us each, 256 edges take 30 to 45 us. More edges where memory has no room for the sums of so many pieces. */
#define GS_CUDA_PIECES 65536u
#define GS_CUDA_PIECE_LEAST 256u
#define GS_CUDA_PIECE_MOST 1024u
#define GS_CUDA_HUB_BYTES (16 * GS_MIB) /* of their sums, at the most */
#define GS_CUDA_HUB_LEAST GS_MIB
#define GS_CUDA_HUB_PARTS 64u /* of the budget: those bytes are one */

/* Memory for the sums of pieces of hubs, of all chunks of a launch: enough for one, and mostly for several. */
uint64_t gs_cuda_hub_bytes(const gs_cuda *c, const gs_edge_kernel *k);
/* Edges of a piece of a hub, in a chunk of so many, where the sums of pieces have `hub_bytes`; targets with more are
 * hubs. */
uint32_t gs_cuda_piece_edges(uint64_t hub_bytes, const gs_edge_kernel *k, uint32_t edges);

/* Edges of a chunk; `all.place` set: of a portion of them. */
typedef struct gs_cuda_edges {
    gs_edge_chunk chunk;
    gs_edge_common all;
    uint64_t largest; /* no target has more edges than this; 0: not known */
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
