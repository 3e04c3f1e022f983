/* resolve.h - instructions of vertex programs to steps. */
#ifndef GS_DEVICE_CPU_RESOLVE_H
#define GS_DEVICE_CPU_RESOLVE_H

#include "device/cpu/cpu.h"

/* Fills cpu->step for a launch; GS_EINVAL names the stage and the instruction that the launch lacks something for. */
gs_status gs_cpu__resolve(gs_cpu *cpu, const gs_vertex_launch *l);

static inline bool gs_cpu__is_product(gs_op op)
{
    return op == GS_OP_MATMUL || op == GS_OP_MATMUL_T || op == GS_OP_FAN || op == GS_OP_FAN_T;
}

/* An outer product over `rows` that is a run of its own: all threads compute it together. */
bool gs_cpu__stands_alone(const gs_cpu_step *s, uint32_t rows);

/* What edge_mask draws with. */
void gs_cpu__edge_mask(gs_cpu_dropout *out, const gs_instr *in, uint64_t seed, uint32_t epoch);

#endif /* GS_DEVICE_CPU_RESOLVE_H */
