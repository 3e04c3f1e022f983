/* memory.h - the memory of a run. */
#ifndef GS_CUDA_MEMORY_H
#define GS_CUDA_MEMORY_H

#include "cuda/driver.h"
#include "device/device.h"

typedef struct gs_cuda_memory {
    gs_cu_memory arena;
    uint32_t registered;
    void *pinned[2];    /* host memory */
} gs_cuda_memory;

gs_status gs_cuda_take_memory(void *context, const gs_device_memory *m, void **arena);
void gs_cuda_give_memory(void *context);

#endif /* GS_CUDA_MEMORY_H */
