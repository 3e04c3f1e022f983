/* machine.h - what this machine, or the cgroup this process is in, has left. */
#ifndef GS_BASE_MACHINE_H
#define GS_BASE_MACHINE_H

#include <stdint.h>

#include "base/status.h"

/* Bytes that could still be taken: the smaller of MemAvailable and what the
 * process's memory cgroups (v1 or v2, every ancestor) leave. Never 0. */
uint64_t gs_machine_free_memory(void);
/* The same, read from PROC/meminfo, PROC/self/cgroup and PROC/self/mountinfo; `proc` is "/proc" but for tests. */
uint64_t gs_machine__free_memory(const char *proc);
/* Resident bytes of this process now, and the most there ever were (VmHWM). */
uint64_t gs_process_resident_bytes(void);
uint64_t gs_process_peak_bytes(void);
/* Gives back the pages of code that loading touched, of libraries that training does not call. What is called after all
 * is read from its file again. */
void gs_process_drop_idle_code(void);
/* The processors' model name, "unknown" where the system does not say. */
#define GS_PROCESSOR_BYTES 128
void gs_processor_name(char out[GS_PROCESSOR_BYTES]);
/* Processors this process may run on (affinity, and the cpu quota that it began with), at least 1. */
unsigned gs_machine_cpus(void);
/* Those that the cpu quotas of this process's cgroups allow, rounded up; `most` where they allow more or say nothing.
 * `proc` as above. */
unsigned gs_machine__quota_cpus(const char *proc, unsigned most);

/* ---- load -------------------------------------------------------------- */

/* Seconds of all processors so far: of all of them, those in which they had nothing to do, and those that this process
 * had. all 0: the system does not say. */
typedef struct gs_machine_load {
    double all, idle, own;
} gs_machine_load;

void gs_machine_load_now(gs_machine_load *out);
/* The share of the processors that others had from one to the other, 0 to 1. 0, too, where that is not known: the
 * system counts in hundredths of a second, so half a second of processors is the least. */
double gs_machine_others(const gs_machine_load *from, const gs_machine_load *to);

/* ---- threads ----------------------------------------------------------- */

/* Are so many threads to be had?
 *
 * OpenMP ends the program where one is not, with what was being written left behind; so this is asked before.
 */

/* Starts `threads` - 1 beside the caller's and lets them end, unless as many were had before: each program that a plan
 * compares opens its devices. GS_ENOMEM: the system gives fewer. Blocks for some tens of microseconds a thread. */
gs_status gs_threads_check(unsigned threads);

/* The same, each time, and starts OpenMP's for the caller's parallel loops while memory is there: they stay. */
gs_status gs_threads_begin(unsigned threads);

/* ---- GPUs -------------------------------------------------------------- */

/* What is known of a GPU before anything was measured: its attributes, as rates.
 *
 * A device answers it, and the cost model begins with it. Units: a second. 0: not known.
 */

typedef struct gs_gpu_speed {
    double memory_bps;   /* bytes that its memory moves */
    double lane_ops;     /* float32 operations of all lanes, a fused multiply-add being one */
    double product_flops; /* of large products, rounded as they may be; a multiply-add being two */
    double host_bps;     /* bytes over its link to the host, each way */
    double linked_bps;   /* bytes over its links to other GPUs of its kind, each way, where it has them */
    unsigned rounding;   /* of products: 0 none, 1 to tf32, 2 to bf16 */
} gs_gpu_speed;

#endif /* GS_BASE_MACHINE_H */
