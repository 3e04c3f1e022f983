/* resolve.h - instructions of vertex programs to steps. */
#ifndef GS_DEVICE_CPU_RESOLVE_H
#define GS_DEVICE_CPU_RESOLVE_H

#include "device/cpu/cpu.h"

/* Fills cpu->step for a launch; GS_EINVAL names the stage and the instruction that the launch lacks something for. */
gs_status gs_cpu__resolve(gs_cpu *cpu, const gs_vertex_launch *l);

#endif /* GS_DEVICE_CPU_RESOLVE_H */
