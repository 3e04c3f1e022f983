/* context.h - calls of the driver: about which GPU they are, and what failed. */
#ifndef GS_CUDA_CONTEXT_H
#define GS_CUDA_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cuda/driver.h"

typedef struct gs_cuda gs_cuda;

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

#endif /* GS_CUDA_CONTEXT_H */
