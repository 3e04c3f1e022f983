/* edge_program.h - edge programs: their plan, their launch, and sums before the first chunk and after the last. */
#ifndef GS_DEVICE_CPU_EDGE_PROGRAM_H
#define GS_DEVICE_CPU_EDGE_PROGRAM_H

#include "device/cpu/cpu.h"

/* Most pieces that the targets with very many edges are cut in, all together. */
#define GS_CPU_HUB_PIECES 128

/* Fills `plan` for the launch's sums but OUTER, or for the one `outer` (else GS_NONE), with the room that prepare took;
 * GS_EINVAL names the stage and the instruction or sum. */
gs_status gs_cpu__plan_edges(gs_cpu_edge_plan *plan, const gs_cpu *cpu, const gs_edge_program_launch *l,
                             uint32_t outer);

gs_status gs_cpu__run_edge_program(void *context, const gs_edge_program_launch *l);
gs_status gs_cpu__begin_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                            uint32_t heads);
gs_status gs_cpu__finish_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                             uint32_t heads);

#endif /* GS_DEVICE_CPU_EDGE_PROGRAM_H */
