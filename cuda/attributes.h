/* attributes.h - how fast a GPU is by what its maker says of it. */
#ifndef GS_CUDA_ATTRIBUTES_H
#define GS_CUDA_ATTRIBUTES_H

#include <stdbool.h>

#include "base/gpu_speed.h"

/* False where the driver does not say it. */
bool gs_cuda_speed(const void *context, gs_gpu_speed *out);
/* Bytes a second of the widest and fastest link that the device in `folder` (/sys/bus/pci/devices/PLACE) can have; 0:
 * not known. An idle GPU's link is slower than that. */
double gs_cuda_pcie_bps(const char *folder);

#endif /* GS_CUDA_ATTRIBUTES_H */
