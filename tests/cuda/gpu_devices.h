/* gpu_devices.h - the GPU that tests run on. */
#ifndef GS_TESTS_CUDA_GPU_DEVICES_H
#define GS_TESTS_CUDA_GPU_DEVICES_H

#include <stdbool.h>

#include "device/device.h"

/* A GPU of this machine, as $GS_TEST_GPU says; else host_gpu.h. */
bool real_gpu(void);
/* From now on "cuda" is that one. */
void choose_gpu(void);
/* Opened. */
gs_device *open_gpu(void);

#endif /* GS_TESTS_CUDA_GPU_DEVICES_H */
