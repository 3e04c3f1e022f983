/* launch_sequence.h - LSTMs over edges. */
#ifndef GS_CUDA_LAUNCH_SEQUENCE_H
#define GS_CUDA_LAUNCH_SEQUENCE_H

#include "base/size.h"
#include "cuda/kernel_text.h"
#include "device/device.h"

#define GS_CUDA_SEQUENCE_BYTES (64 * GS_MIB) /* of the tiles under way, at the most, unless one needs more */
#define GS_CUDA_SEQUENCE_PARTS 8u            /* of the budget: they take one */

typedef struct gs_cuda gs_cuda;

gs_status gs_cuda_run_sequence(void *context, const gs_sequence_launch *l);
gs_status gs_cuda_run_sequence_back(void *context, const gs_sequence_launch *l);
/* Scratch of its launches. */
uint64_t gs_cuda_sequence_bytes(const gs_cuda *c, const gs_sequence_kernel *k);

#endif /* GS_CUDA_LAUNCH_SEQUENCE_H */
