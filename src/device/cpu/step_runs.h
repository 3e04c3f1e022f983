/* step_runs.h - which steps of a vertex launch run block by block without waiting in between. */
#ifndef GS_DEVICE_CPU_STEP_RUNS_H
#define GS_DEVICE_CPU_STEP_RUNS_H

#include "device/cpu/cpu.h"

/* Joins products and finds the runs and blocks of the launch's steps, all looked up. Returns the number of steps, or
 * the first one of a run whose partial sums were not prepared for. */
uint32_t gs_cpu__find_runs(gs_cpu *cpu, const gs_vertex_launch *l);

static inline bool gs_cpu__is_product(gs_op op)
{
    return op == GS_OP_MATMUL || op == GS_OP_MATMUL_T || op == GS_OP_FAN || op == GS_OP_FAN_T;
}

/* An outer product over `rows` that is a run of its own: all threads compute it together. */
bool gs_cpu__stands_alone(const gs_cpu_step *s, uint32_t rows);

#endif /* GS_DEVICE_CPU_STEP_RUNS_H */
