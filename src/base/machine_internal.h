/* machine_internal.h - machine.c on a given picture of /proc, for its tests. */
#ifndef GS_BASE_MACHINE_INTERNAL_H
#define GS_BASE_MACHINE_INTERNAL_H

#include <stdint.h>

/* As gs_machine_free_memory(), read from PROC/meminfo, PROC/self/cgroup and
 * PROC/self/mountinfo; `proc` is "/proc" but for tests. */
uint64_t gs_machine__free_memory(const char *proc);

/* Processors that the cpu quotas of this process's cgroups allow, rounded up;
 * `most` where they allow more or say nothing. */
unsigned gs_machine__quota_cpus(const char *proc, unsigned most);

#endif /* GS_BASE_MACHINE_INTERNAL_H */
