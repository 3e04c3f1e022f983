/* host_streams.h - in which order does the GPU that is none do what it was told, and who may meet whom in memory?
 *
 * Work is put into streams and done as late as the rules of streams and events allow: when the host waits for it, or
 * when what the host waits for waits for it. So a copy that nobody waited for is late, and results are wrong.
 *
 * Besides, every access to memory is checked for races by vector clocks (as FastTrack does for threads): two pieces of
 * work that touch the same bytes, one of them writing, must be ordered by a stream, an event, or the host's waiting.
 * Kernels' accesses are those of their code, instrumented by the compiler; the first race ends the program with both
 * names. All threads of the host count as one: what one of them has waited for is before what any of them asks for
 * afterwards.
 */
#ifndef GS_TESTS_CUDA_HOST_STREAMS_H
#define GS_TESTS_CUDA_HOST_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/driver.h"

#define HOST_STREAMS 20u /* of a process, at a time */
/* What has a clock: streams, and the disk (host_disk.h), whose time goes on as completions are given back. */
#define HOST_DISK HOST_STREAMS
#define HOST_CLOCKS (HOST_STREAMS + 1u)

/* A piece of work; run() does it. */
typedef struct host_work host_work;
struct host_work {
    void (*run)(const host_work *w);
    char what[48];
    void *to;
    const void *from;
    size_t bytes;
    int value;
    void *more; /* freed with it */
    /* set by host_streams_submit() */
    unsigned stream;
    int device;
    uint32_t time, clock[HOST_CLOCKS];
    host_work *next;
    const host_work *until; /* NULL; else work on this stream that waits for stream `value` to be done up to `time` */
};

/* The GPU that it was made for: the thread's at that time. */
int host_stream_device(gs_cu_handle stream);
gs_cu_result host_event_create_on(int device, gs_cu_handle *event);
gs_cu_result host_stream_create(gs_cu_handle *stream, unsigned flags);
gs_cu_result host_stream_destroy(gs_cu_handle stream);
gs_cu_result host_stream_wait(gs_cu_handle stream, gs_cu_handle event, unsigned flags);
gs_cu_result host_stream_synchronize(gs_cu_handle stream);
gs_cu_result host_event_create(gs_cu_handle *event, unsigned flags);
gs_cu_result host_event_destroy(gs_cu_handle event);
gs_cu_result host_event_record(gs_cu_handle event, gs_cu_handle stream);
gs_cu_result host_event_query(gs_cu_handle event);
gs_cu_result host_event_synchronize(gs_cu_handle event);
gs_cu_result host_event_elapsed(float *milliseconds, gs_cu_handle begin, gs_cu_handle end);

/* Copies `w` and puts it at the end of a stream. */
gs_cu_result host_streams_submit(gs_cu_handle stream, const host_work *w);
/* All streams. */
void host_streams_drain(void);
/* Ends the program where a stream has work left: what is about to happen would take memory from under it. `but`: not on
 * this GPU's. */
void host_streams_need_idle(int but, const char *what);
/* What this GPU (-1: any) was told and has not done, it never does. May be called at any time, by any thread. */
void host_streams_lose(int device);
/* Streams of this GPU that are there. */
unsigned host_streams_of(int device);

/* While work runs: it reads or writes these bytes. Device memory is known by host_streams_memory(); what
 * touches anything else ends the program. Of what is a kernel's own (host_program_compile()) nothing is said here. */
void host_streams_access(const void *p, size_t bytes, bool write);
/* The same for memory of the host, in copies. */
void host_streams_host_access(const void *p, size_t bytes, bool write);
/* Device memory came (fresh) or went (bytes 0). */
void host_streams_memory(void *p, size_t bytes);
/* True where accesses are checked: $GS_TEST_GPU_RACES is set. $GS_TEST_GPU_DROP: "A>B", waits of stream B for stream A
 * (numbers in the order of their making) are left out, to see that somebody notices. -1 as A: any stream; as B: the
 * host, which does not wait for events then. */
bool host_streams_checks(void);

/* For host_disk.c: the work that runs, and the number of its stream in the order of their making. */
const host_work *host_streams_running(void);
unsigned host_stream_number(unsigned stream);
/* The host has seen a request of the disk end: the disk's time from now on. */
uint32_t host_streams_disk_ended(void);

#endif /* GS_TESTS_CUDA_HOST_STREAMS_H */
