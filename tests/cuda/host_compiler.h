/* host_compiler.h - NVRTC's part of host_gpu.h: kernels become functions of a shared library, by the host's compiler.
 *
 * An image is the library's path. Where races are looked for (host_streams.h), reads and writes of kernels are
 * instrumented.
 */
#ifndef GS_TESTS_CUDA_HOST_COMPILER_H
#define GS_TESTS_CUDA_HOST_COMPILER_H

#include "cuda/driver.h"

/* That of the program's own cache, and where libraries are made if the build has no folder for them. */
void host_compiler_folder(const char *folder);

/* Of CUDA, which compiler, cuBLAS and driver are of: $GS_HOST_GPU_CUDA, as cuDriverGetVersion() has it; default
 * 13000. */
int host_cuda_release(void);
gs_cu_result host_compiler_version(int *major, int *minor);
gs_cu_result host_program_create(gs_cu_handle *program, const char *source, const char *name, int headers,
                                   const char *const *text, const char *const *header);
gs_cu_result host_program_destroy(gs_cu_handle *program);
gs_cu_result host_program_compile(gs_cu_handle program, int options, const char *const *option);
gs_cu_result host_image_bytes(gs_cu_handle program, size_t *bytes);
gs_cu_result host_architecture_count(int *count);
gs_cu_result host_architectures(int *architecture);
gs_cu_result host_image(gs_cu_handle program, char *to);
gs_cu_result host_log_bytes(gs_cu_handle program, size_t *bytes);
gs_cu_result host_program_log(gs_cu_handle program, char *to);

#endif /* GS_TESTS_CUDA_HOST_COMPILER_H */
