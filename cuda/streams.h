/* streams.h - what is under way: launches, numbered, and copies beside them. */
#ifndef GS_CUDA_STREAMS_H
#define GS_CUDA_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cuda/driver.h"
#include "cuda/kernels/args.h"
#include "device/device.h"

typedef struct gs_cuda gs_cuda;

/* ---- calls of the driver ---- */

/* GS_EDEVICE, or GS_ENOMEM: "device cuda: WHAT: name and text of the driver's error". */
gs_status gs_cuda_check(const gs_cuda *c, gs_cu_result r, const char *what);
/* The thread's calls are about this GPU from now on. Several threads may call for one. */
gs_status gs_cuda_enter(const gs_cuda *c);
/* Pins memory of the host. True: it is; false without an error: the system does not grant it, which c->unpinned says
 * from now on. Copies of memory that is not pinned are made by way of the driver's own buffers: right, slower, and
 * waited for. */
gs_status gs_cuda_pin(gs_cuda *c, void *memory, uint64_t bytes, unsigned flags, bool *pinned);
/* Another library may have turned it to another GPU, or its context is gone. */
void gs_cuda_left(void);
/* Enters, from where the thread's calls may be about another library's GPU, which gs_cuda_aside() turns them to again.
 * The last time, before the device is closed, without a word where it fails. */
gs_status gs_cuda_come(const gs_cuda *c);
void gs_cuda_come_last(const gs_cuda *c);
void gs_cuda_aside(const gs_cuda *c);

/* ---- launches ---- */

#define GS_CUDA_FLIGHT 8u /* launches that may be under way */

typedef struct gs_cuda_streams {
    gs_cu_handle in, compute, out; /* copies to the device, kernels, copies back */
    gs_cu_handle finished[GS_CUDA_FLIGHT]; /* events: of the launches under way */
    gs_cu_handle between;          /* event: what one stream has done before another one goes on */
    uint64_t ticket;               /* the last launch */
    /* gs_cuda_time_launches(); else NULL and not used */
    gs_cu_handle begun[GS_CUDA_FLIGHT], origin;
    double origin_now;             /* gs_now() when `origin` was */
    double span[GS_DEVICE_TIMED][2]; /* of the last launches that are done; 0: not known */
    uint64_t waited;               /* all up to this one are done */
    gs_device_copied copied;       /* for gs_device_take_copied() */
} gs_cuda_streams;

gs_status gs_cuda_make_streams(gs_cuda *c);
void gs_cuda_drop_streams(gs_cuda *c);
/* Copies between host and device in `compute`, counted. */
gs_status gs_cuda_copy_in(gs_cuda *c, gs_cu_memory to, const void *from, uint64_t bytes, const char *what);
gs_status gs_cuda_copy_out(gs_cuda *c, void *to, gs_cu_memory from, uint64_t bytes, const char *what);

/* Begins a launch. Then kernels in `compute`, and gs_cuda_end(). Within a group both do nothing: it is one launch. */
gs_status gs_cuda_begin(gs_cuda *c);
gs_status gs_cuda_end(gs_cuda *c, gs_status st);
/* The next launch is done, as its event says. */
void gs_cuda_note_done(gs_cuda *c);
/* Waits until launch `ticket` is done. */
gs_status gs_cuda_wait(gs_cuda *c, uint64_t ticket);
gs_status gs_cuda_synchronize(gs_cuda *c);
gs_status gs_cuda_launch(gs_cuda *c, gs_cu_handle function, uint64_t blocks_x, uint32_t blocks_y, uint32_t shared,
                         void *args, const char *what);
/* The same in another stream: no part of a launch that has a number. */
gs_status gs_cuda_launch_in(gs_cuda *c, gs_cu_handle stream, gs_cu_handle function, uint64_t blocks_x,
                            uint32_t blocks_y, uint32_t shared, void *args, const char *what);
static inline uint64_t gs_cuda_blocks(uint64_t lanes) { return (lanes + GS_BLOCK_LANES - 1) / GS_BLOCK_LANES; }

#endif /* GS_CUDA_STREAMS_H */
