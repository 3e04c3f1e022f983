/* context.h - calls of the driver: about which GPU they are, and what failed. */
#ifndef GS_CUDA_CONTEXT_H
#define GS_CUDA_CONTEXT_H

#include "base/status.h"
#include "cuda/driver.h"

typedef struct gs_cuda gs_cuda;

/* GS_EDEVICE, or GS_ENOMEM: "device cuda: WHAT: name and text of the driver's error". */
gs_status gs_cuda_check(const gs_cuda *c, gs_cu_result r, const char *what);
/* The thread's calls are about this GPU from now on. Several threads may call for one. */
gs_status gs_cuda_enter(const gs_cuda *c);
/* Another library may have turned it to another GPU, or its context is gone. */
void gs_cuda_left(void);

#endif /* GS_CUDA_CONTEXT_H */
