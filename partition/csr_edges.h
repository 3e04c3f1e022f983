/* csr_edges.h - the entries of a CSR matrix as edges. */
#ifndef GS_PARTITION_CSR_EDGES_H
#define GS_PARTITION_CSR_EDGES_H

#include "partition/input_files.h"

typedef struct gs_part_csr {
    gs_part_file indptr, indices;
    gs_part_file data; /* npy.fd -1: none */
} gs_part_csr;
#define GS_PART_CSR_NONE {.indptr.npy.fd = -1, .indices.npy.fd = -1, .data.npy.fd = -1}

/* Entry (i, j) of the square matrix of in->vertices rows is the edge i -> j, in the order of the file; its value is the
 * weight, but where all values are 1. */
gs_status gs_part__csr_edges(gs_part_input *in, gs_part_job *job, const gs_part_csr *matrix);
void gs_part__csr_close(gs_part_csr *matrix);

#endif /* GS_PARTITION_CSR_EDGES_H */
