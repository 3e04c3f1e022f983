/* edge_typed.h - gradients of the matrices of edges' types. */
#ifndef GS_DEVICE_CPU_EDGE_TYPED_H
#define GS_DEVICE_CPU_EDGE_TYPED_H

#include "device/cpu/cpu.h"

/* Floats of the rows that are kept for gradients. */
uint64_t gs_cpu__kept_floats(const gs_stage *stage);
/* The sums of kind OUTER of a launch. */
gs_status gs_cpu__run_outers(gs_cpu *cpu, const gs_edge_program_launch *l);

#endif /* GS_DEVICE_CPU_EDGE_TYPED_H */
