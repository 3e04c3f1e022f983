/* npy_edges.h - edges by number out of the arrays of an input. */
#ifndef GS_PARTITION_NPY_EDGES_H
#define GS_PARTITION_NPY_EDGES_H

#include "partition/edge_block.h"

/* Edges [first, first + count), checked. */
gs_status gs_part__npy_edges(const gs_part_input *in, gs_part_edge_block *b, uint64_t first, uint64_t count);
/* posix_fadvise() for these edges, as far as there are so many. */
void gs_part__npy_advise(const gs_part_input *in, uint64_t first, uint64_t count, int advice);

#endif /* GS_PARTITION_NPY_EDGES_H */
