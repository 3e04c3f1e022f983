/* cuda_device.h - the state of the CUDA device: each part of it is described beside the source that owns it.
 *
 * The room from bottom to top; a file calls those above it in this list alone:
 *
 *   driver.c             the functions of CUDA's libraries, and which of those that are installed
 *   text_*.c             kernels of a program, as text
 *   gpu_links.c          copies to and from the arena, sums over devices, what a GPU's maker says of its speed
 *   streams.c            about which GPU a call is, what failed, and what is under way
 *   code.c               text to modules, and the kernels of a program, found
 *   file_reads.c         files that come to the arena past the host
 *   gpu_params.c         parameters that stay there for a run, and what a pass brings and takes back
 *   launch_edges.c       kernels over edges, edge programs, products by type
 *   launch_vertex.c      vertex programs, and launches that every program has
 *   launch_sequence.c    LSTMs over edges
 *   state.c              what a program has on the device, its scratch, the arena, pinned memory
 *   cuda.c               opening, closing, the tables
 *
 * Launches return when they are in the stream `compute`, and find everything in the arena: copies to it and from it are
 * asked for by themselves, in streams of their own.
 */
#ifndef GS_CUDA_CUDA_DEVICE_H
#define GS_CUDA_CUDA_DEVICE_H

#include <stdint.h>

#include "base/size.h"
#include "cuda/code.h"
#include "cuda/file_reads.h"
#include "cuda/gpu_links.h"
#include "cuda/state.h"
#include "cuda/streams.h"
#include "device/device_table.h"

struct gs_cuda {
    /* set by open */
    const gs_cuda_driver *d;
    int device, major, minor, processors, compute_type;
    uint64_t total_bytes;    /* of the GPU's memory */
    uint64_t budget_bytes;   /* of them, what a run takes: scratch is sized by it (gs_cuda_share()) */
    uint32_t portion_edges;  /* by type: $GS_CUDA_PORTION_EDGES, or 0: as many as fit GS_CUDA_TYPED_BYTES */
    gs_cu_handle context, blas;
    gs_cu_handle fixed_module, fixed[GS_CUDA_FIXED_COUNT];
    char name[160];
    char unpinned[160];      /* why host memory of the run is not pinned; "": it is */
    gs_cuda_streams streams;
    /* set by prepare */
    const gs_program *program;
    gs_cuda_code code;
    gs_cuda_state state;
    gs_cu_memory *where;     /* [most registers of a stage] of the launch being made */
    /* of the run */
    gs_cuda_memory memory;
    gs_cuda_chain chain;
    gs_cuda_reads *reads;    /* NULL: none are open */
    bool grouping;           /* chunks of launches over edges are held until gs_cuda_end_group() */
    bool in_pass;
    gs_device_pass pass;
};

/* Bytes of scratch that make a run faster, but need not be there: one of so many parts of the budget, within bounds. In
 * proportion, so that a larger budget always leaves more for the rest, too. */
static inline uint64_t gs_cuda_share(const gs_cuda *c, uint32_t parts, uint64_t least, uint64_t most)
{
    return GS_MIN(GS_MAX(c->budget_bytes / parts / GS_BLOCK_BYTES * GS_BLOCK_BYTES, least), most);
}

/* Its functions, each beside what it is about. */
#define X(type, name, arguments, ...) type gs_cuda_##name arguments;
GS_DEVICE_OF_COMPUTE(X)
GS_DEVICE_OF_CEILINGS(X)
GS_DEVICE_OF_MEMORY(X)
GS_DEVICE_OF_LINKS(X)
GS_DEVICE_OF_PARAMS(X)
GS_DEVICE_OF_READS(X)
#undef X

#endif /* GS_CUDA_CUDA_DEVICE_H */
