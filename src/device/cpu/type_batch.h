/* type_batch.h - products of edges by the matrix of their type. */
#ifndef GS_DEVICE_CPU_TYPE_BATCH_H
#define GS_DEVICE_CPU_TYPE_BATCH_H

#include "device/cpu/cpu.h"

/* What products by the matrix of an edge's type need beside, in floats: matrices transposed; rows
 * kept for gradients. */
uint64_t gs_cpu__turned_matrix_floats(const gs_program *p, const gs_stage *stage);
uint64_t gs_cpu__kept_floats(const gs_stage *stage);
/* The stage's matrices, transposed where they are to be multiplied by so, once a pass. */
void gs_cpu__turn_matrices(gs_cpu *cpu, const gs_edge_program_launch *l);
/* Where those of a by_type_t are. */
const float *gs_cpu__turned_matrices(const gs_cpu *cpu, const gs_edge_program_launch *l, const gs_instr *in);
/* The sums of kind OUTER of a launch. */
gs_status gs_cpu__run_outers(gs_cpu *cpu, const gs_edge_program_launch *l);

#endif /* GS_DEVICE_CPU_TYPE_BATCH_H */
