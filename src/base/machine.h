/* machine.h - what this machine, or the cgroup this process is in, has left. */
#ifndef GS_BASE_MACHINE_H
#define GS_BASE_MACHINE_H

#include <stdint.h>

/* Bytes that could still be taken: the smaller of MemAvailable and what the
 * process's memory cgroups (v1 or v2, every ancestor) leave. Never 0. */
uint64_t gs_machine_free_memory(void);
/* Resident bytes of this process now, and the most there ever were (VmHWM). */
uint64_t gs_process_resident_bytes(void);
uint64_t gs_process_peak_bytes(void);
/* Gives back the pages of code that loading touched, of libraries that training does not call. What is called after all
 * is read from its file again. */
void gs_process_drop_idle_code(void);
/* The processors' model name, "unknown" where the system does not say. */
#define GS_PROCESSOR_BYTES 128
void gs_processor_name(char out[GS_PROCESSOR_BYTES]);
/* Processors this process may run on (affinity and cpu quota), at least 1. */
unsigned gs_machine_cpus(void);

#endif /* GS_BASE_MACHINE_H */
