/* edge_runs.h - launches of edge programs whose products are made for runs or pairs, and all others. */
#ifndef GS_DEVICE_CPU_EDGE_RUNS_H
#define GS_DEVICE_CPU_EDGE_RUNS_H

#include "device/cpu/edge_program.h"

/* Scratch of a stage with products of runs or pairs; else 0. */
typedef struct gs_cpu_run_needs {
    uint64_t floats;          /* of the rows of a portion, and their order */
    gs_cpu_edge_needs before; /* of the sums of runs, or of what pairs have */
} gs_cpu_run_needs;

gs_cpu_run_needs gs_cpu__run_needs(const gs_program *p, const gs_stage *stage);

/* The program's stages before and behind their products. GS_ENOMEM. */
gs_status gs_cpu__prepare_run_stages(gs_cpu *cpu, const gs_program *p);
uint64_t gs_cpu__run_stage_bytes(const gs_program *p); /* that these take */
void gs_cpu__free_run_stages(gs_cpu *cpu);

gs_status gs_cpu__run_edge_stage(void *context, const gs_edge_program_launch *l);

#endif /* GS_DEVICE_CPU_EDGE_RUNS_H */
