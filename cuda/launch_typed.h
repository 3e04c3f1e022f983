/* launch_typed.h - products of edges by the matrix of their type. */
#ifndef GS_CUDA_LAUNCH_TYPED_H
#define GS_CUDA_LAUNCH_TYPED_H

#include "base/size.h"
#include "cuda/launch_edges.h"

/* Scratch of a portion of edges by type: at 400 bytes an edge some 170,000 edges, so that the launches of a
 * portion, some 10, are a few times as long as the gaps between them. */
#define GS_CUDA_TYPED_BYTES (64 * GS_MIB)
#define GS_CUDA_TYPED_PARTS 8u /* of the budget: a portion takes one, where that is less */

/* All that a stage with products by the type of edges does edge by edge. */
gs_status gs_cuda_run_typed(gs_cuda *c, gs_cuda_edge_run *r, const gs_typed_plan *b);
/* Scratch of it. */
uint64_t gs_cuda_typed_bytes(const gs_cuda *c, const gs_typed_plan *b);

#endif /* GS_CUDA_LAUNCH_TYPED_H */
