/* gpu_links.h - copies to and from the arena, from the host and from other GPUs; sums over GPUs; and how fast a GPU and
 * its links are by what its maker says. */
#ifndef GS_CUDA_GPU_LINKS_H
#define GS_CUDA_GPU_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/machine.h"
#include "base/size.h"
#include "base/status.h"
#include "cuda/driver.h"
#include "device/device.h"

typedef struct gs_cuda gs_cuda;

/* Bytes a second of the widest and fastest link that the device in `folder` (/sys/bus/pci/devices/PLACE) can have; 0:
 * not known. An idle GPU's link is slower than that. */
double gs_cuda_pcie_bps(const char *folder);

/* How copies come from another device of the run. */
typedef struct gs_cuda_link {
    const struct gs_cuda *peer;
    bool same, direct;            /* it is on the same GPU; the GPUs reach each other. Neither: by way of the host */
    gs_cu_handle bridge, filled[2]; /* then: a stream of the peer's GPU, and its events: this half of the buffer is
                                     * full */
} gs_cuda_link;

#define GS_CUDA_BOUNCE_BYTES (1 * GS_MIB) /* of each half of the buffer */

/* One of several devices; a thread a way. */
typedef struct gs_cuda_chain {
    bool joined;
    gs_cu_handle forward;         /* stream of copies from peers; those of the other ways are `in` and `out` */
    gs_cu_handle starts;          /* stream of what the host must know of a chunk that is on the device alone; where
                                   * there are sequences */
    gs_cu_handle mark[GS_DEVICE_WAYS][GS_DEVICE_MARKS]; /* events */
    uint64_t marks[GS_DEVICE_WAYS];
    uint32_t links;
    gs_cuda_link link[GS_DEVICE_COUNT_MOST];
    char *bounce;                 /* two halves; NULL where no link needs it */
    bool bounce_pinned;
    gs_cu_handle emptied[2];
    uint64_t bounced;             /* pieces that went through it */
    gs_cu_handle comm;            /* NCCL's, or NULL */
} gs_cuda_chain;

/* Does nothing to a device that has not joined others. */
void gs_cuda_leave(gs_cuda *c);
/* Waits for copies from peers, all of them also behind one that failed; `in` and `out` are not among them. */
gs_status gs_cuda_wait_for_peers(gs_cuda *c);

#endif /* GS_CUDA_GPU_LINKS_H */
