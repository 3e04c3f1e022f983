/* launch.h - launches: over edges, of vertex programs, of LSTMs, and those that every program has. */
#ifndef GS_CUDA_LAUNCH_H
#define GS_CUDA_LAUNCH_H

#include "base/size.h"
#include "cuda/code.h"
#include "cuda/driver.h"
#include "cuda/kernel_text.h"
#include "device/device.h"

typedef struct gs_cuda gs_cuda;

/* ---- edges ---- */

/* A target with more edges than a piece has is a hub. A piece has a 65,536th of its chunk's edges (a large GPU has some
 * 17,000 groups of 16 threads, so that is a quarter of what one has to do), within 256 and 1,024: in bursts of 4 to 6,
 * some 0.7 us each, 256 edges take 30 to 45 us. Where edges are too few to keep a GPU busy for so long, a piece has a
 * 1,024th, at least 64. More edges where memory has no room for the sums of so many pieces. */
#define GS_CUDA_PIECES 65536u
#define GS_CUDA_PIECE_MOST 1024u
#define GS_CUDA_FEW_PIECES 1024u
#define GS_CUDA_FEW_MOST 256u
#define GS_CUDA_PIECE_LEAST 64u
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

/* An edge program's launch, c->where[] the addresses of its registers' rows. */
typedef struct gs_cuda_edge_run {
    const gs_edge_program_launch *l;
    gs_cuda_edges edges; /* what all its kernels are told of them */
} gs_cuda_edge_run;

/* Scratch of a portion of edges by type: at 400 bytes an edge some 170,000 edges, so that the launches of a
 * portion, some 10, are a few times as long as the gaps between them. */
#define GS_CUDA_TYPED_BYTES (64 * GS_MIB)
#define GS_CUDA_TYPED_PARTS 8u /* of the budget: a portion takes one, where that is less */

/* Scratch of it. */
uint64_t gs_cuda_typed_bytes(const gs_cuda *c, const gs_typed_plan *b);

/* ---- vertices ---- */

#define GS_CUDA_COLSUM_PARTS 128u
#define GS_CUDA_LOSS_PARTS 512u

/* Row-major to[m, n] = A[m, k] B[k, n] + beta * to. `ta`, `tb`: A and B are stored the other way, with rows of lda and
 * ldb. */
gs_status gs_cuda_multiply(gs_cuda *c, bool ta, bool tb, uint32_t m, uint32_t n, uint32_t k, gs_cu_memory a,
                           uint32_t lda, gs_cu_memory b, uint32_t ldb, float beta, gs_cu_memory to);

/* ---- LSTMs over edges ---- */

#define GS_CUDA_SEQUENCE_BYTES (64 * GS_MIB) /* of the tiles under way, at the most, unless one needs more */
#define GS_CUDA_SEQUENCE_PARTS 8u            /* of the budget: they take one */

/* Scratch of its launches. */
uint64_t gs_cuda_sequence_bytes(const gs_cuda *c, const gs_sequence_kernel *k);

#endif /* GS_CUDA_LAUNCH_H */
