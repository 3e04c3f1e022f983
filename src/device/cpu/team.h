/* team.h - how many threads a launch uses, and the launches that are only pieces of memory over threads. */
#ifndef GS_DEVICE_CPU_TEAM_H
#define GS_DEVICE_CPU_TEAM_H

#include "device/cpu/cpu.h"

/* Every launch lies between these: OpenMP, and oneDNN with it, use the device's threads, or one
 * where the launch is a single task: waking the others would cost more than a small task takes. */
int gs_cpu__enter(const gs_cpu *cpu, uint64_t tasks);
void gs_cpu__leave(int before);
/* The calling thread's TILES. */
float *gs_cpu__tile(const gs_cpu *cpu);

gs_status gs_cpu__add_own(void *context, const gs_own_launch *l);
gs_status gs_cpu__zero(void *context, void *memory, uint64_t bytes);
gs_status gs_cpu__copy(void *context, void *to, const void *from, uint64_t bytes);

#endif /* GS_DEVICE_CPU_TEAM_H */
