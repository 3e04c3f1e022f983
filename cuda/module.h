/* module.h - from the text of kernels to a module of the driver.
 *
 * NVRTC compiles for the GPU that is there; what it made is kept in a file named by the hash of text, GPU and compiler,
 * under $GS_CUDA_CACHE, $XDG_CACHE_HOME/gnnstream/cuda or ~/.cache/gnnstream/cuda, so a model is compiled
 * once a machine. Without such a folder it is compiled every time.
 */
#ifndef GS_CUDA_MODULE_H
#define GS_CUDA_MODULE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "cuda/driver.h"

/* The text that every module begins with, that of the fixed kernels, what kernels of LSTMs are made with, and those of
 * products by the type of edges. */
extern const char gs_cuda_common_text[];
extern const char gs_cuda_fixed_text[];
extern const char gs_cuda_sequence_text[];
extern const char gs_cuda_typed_text[];
/* walk.inc, which the texts of programs include. */
extern const char gs_cuda_walk_text[];

/* What is compiled for: the GPU, or where the compiler is older than it, the newest before it: machine code of the same
 * generation (compute capability 9.x runs that of 9.0), else an intermediate text that the driver compiles (PTX). */
typedef struct gs_cuda_target {
    int architecture; /* 90: compute capability 9.0 */
    bool intermediate;
} gs_cuda_target;

gs_cuda_target gs_cuda_target_of(const gs_cuda_driver *d, int major, int minor);

/* Compiles `text` (which follows gs_cuda_common_text) for what gs_cuda_target_of() says. On GS_OK *image is the
 * caller's, to be freed with gs_free(). GS_EDEVICE: the first line that the compiler complains of. */
gs_status gs_cuda_compile(char **image, size_t *bytes, const gs_cuda_driver *d, int major, int minor, const char *text);

/* The same, from the file where it is kept, and loaded into the current context. */
gs_status gs_cuda_module(gs_cu_handle *module, const gs_cuda_driver *d, int major, int minor, const char *text);

#endif /* GS_CUDA_MODULE_H */
