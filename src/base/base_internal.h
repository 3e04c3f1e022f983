/* base_internal.h - what tests of this room see: a given picture of /proc, a file system of another kind. */
#ifndef GS_BASE_BASE_INTERNAL_H
#define GS_BASE_BASE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/* ---- machine.c --------------------------------------------------------- */

/* As gs_machine_free_memory(), read from PROC/meminfo, PROC/self/cgroup and
 * PROC/self/mountinfo; `proc` is "/proc" but for tests. */
uint64_t gs_machine__free_memory(const char *proc);

/* Processors that the cpu quotas of this process's cgroups allow, rounded up;
 * `most` where they allow more or say nothing. */
unsigned gs_machine__quota_cpus(const char *proc, unsigned most);

/* ---- outfile.c --------------------------------------------------------- */

/* Outputs as they are on a file system that has no files without a name. */
extern bool gs_outfile__all_named;

#endif /* GS_BASE_BASE_INTERNAL_H */
