/* resident.h - how much of the host's memory do CUDA's libraries and its driver hold?
 *
 * Measured, as nobody says it: what the process grows by when the libraries are opened, when the first device of each
 * GPU is, and its kernels are compiled. It stays when devices are closed. Devices are opened by one thread at a time.
 */
#ifndef GS_CUDA_RESIDENT_H
#define GS_CUDA_RESIDENT_H

#include "base/size.h"
#include "device/device.h"

/* NVRTC, where the kernels so far came from files: it takes some 45 MiB when it first compiles (measured, CUDA 13.0),
 * and more for a long text. */
#define GS_CUDA_COMPILER_BYTES (64 * GS_MIB)
/* What cuBLAS and the driver load at the first launch of a kernel. An estimate: no GPU has shown it yet. */
#define GS_CUDA_FIRST_USE_BYTES (32 * GS_MIB)

/* Resident bytes, while a device is opened: before there is a context, before the fixed kernels are compiled, and after
 * that. */
typedef struct gs_cuda_resident {
    uint64_t before, made, compiled;
} gs_cuda_resident;

/* Device `gpu` is open: notes what it added, the first time. */
void gs_cuda_note_resident(int gpu, const gs_cuda_resident *r);
gs_device_libraries gs_cuda_libraries(const void *context);

#endif /* GS_CUDA_RESIDENT_H */
