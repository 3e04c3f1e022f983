/* type_matrices.h - matrices of edges' types, transposed. */
#ifndef GS_DEVICE_CPU_TYPE_MATRICES_H
#define GS_DEVICE_CPU_TYPE_MATRICES_H

#include "device/cpu/cpu.h"

/* Floats of the stage's transposed matrices. */
uint64_t gs_cpu__transposed_matrix_floats(const gs_program *p, const gs_stage *stage);
/* The stage's matrices, transposed where they are to be multiplied by so, once a pass. */
void gs_cpu__transpose_matrices(gs_cpu *cpu, const gs_edge_program_launch *l);
/* Where those of a by_type_t are. */
const float *gs_cpu__transposed_matrices(const gs_cpu *cpu, const gs_edge_program_launch *l, const gs_instr *in);

#endif /* GS_DEVICE_CPU_TYPE_MATRICES_H */
