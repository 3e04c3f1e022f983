/* row_sums.h - sums of rows, and ranges of targets over threads. */
#ifndef GS_DEVICE_CPU_ROW_SUMS_H
#define GS_DEVICE_CPU_ROW_SUMS_H

#include "device/cpu/cpu.h"

gs_status gs_cpu__run_edges(void *context, const gs_edge_launch *l);

/* Targets of a launch in ranges of about equal work; the results of a range do not depend on it. */
typedef struct gs_cpu_cut {
    const uint32_t *start;
    uint32_t targets;
    uint64_t work, ranges;
} gs_cpu_cut;

gs_cpu_cut gs_cpu__cut(const gs_cpu *cpu, const gs_edges *e);
/* First target of range r; r may be the number of ranges. */
uint32_t gs_cpu__cut_target(const gs_cpu_cut *c, uint64_t r);

#endif /* GS_DEVICE_CPU_ROW_SUMS_H */
