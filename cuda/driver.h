/* driver.h - the functions of CUDA that the device calls, found at run time.
 *
 * libcuda, libnvrtc, libcublas and (where it is there) libnccl are opened with dlopen() when a device is, so one binary
 * runs with and without a GPU, and building needs no CUDA. Types and numbers below are those of CUDA's ABI,
 * stable since its release 11. Tests put a table of their own in, whose kernels run on the host.
 */
#ifndef GS_CUDA_DRIVER_H
#define GS_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef int gs_cu_result;   /* CUresult: 0 is success */
typedef uintptr_t gs_cu_memory; /* CUdeviceptr */
typedef void *gs_cu_handle; /* context, module, function, stream, event */

enum { /* CUresult */
    GS_CU_OUT_OF_MEMORY = 2,
    GS_CU_NO_DEVICE = 100,
    GS_CU_INVALID_DEVICE = 101,
    GS_CU_NOT_READY = 600,
    GS_CU_PEER_ALREADY = 704,
};
enum { /* CUdevice_attribute */
    GS_CU_CLOCK = 13,        /* kHz */
    GS_CU_PROCESSORS = 16,
    GS_CU_MEMORY_CLOCK = 36, /* kHz */
    GS_CU_MEMORY_BITS = 37,  /* of the bus */
    GS_CU_MAJOR = 75,
    GS_CU_MINOR = 76,
};
enum { /* CUdevice_P2PAttribute */
    GS_CU_PEER_RANK = 1,    /* of the links between two GPUs: the lower, the faster */
    GS_CU_PEER_ACCESS = 2,
    GS_CU_PEER_ATOMICS = 3, /* as NVLink has them, and PCIe has not */
};
enum { GS_CU_MEMORY_KIND = 2, GS_CU_MEMORY_GPU = 9 }; /* CUpointer_attribute: a CUmemorytype; a GPU's number */
enum { GS_CU_KIND_DEVICE = 2 }; /* CUmemorytype */
enum { GS_CU_HOST_PORTABLE = 1, GS_CU_HOST_MAPPED = 2 }; /* pinned for every device; kernels reach it */
enum { GS_CU_FIRST = -1 }; /* priority of a stream: before those that have none */
enum { GS_CU_STREAM_NON_BLOCKING = 1, GS_CU_EVENT_BLOCKING = 1, GS_CU_EVENT_DISABLE_TIMING = 2 };
enum { GS_CUBLAS_N = 0, GS_CUBLAS_T = 1, GS_CUBLAS_F32 = 0 };
enum { GS_CUBLAS_COMPUTE_FP32 = 68, GS_CUBLAS_COMPUTE_BF16 = 75, GS_CUBLAS_COMPUTE_TF32 = 77 };
enum { GS_CUBLAS_MAJOR = 0, GS_CUBLAS_MINOR = 1 }; /* libraryPropertyType */
enum { GS_CUBLAS_DEFAULT_ALGORITHM = -1 };
enum { GS_NCCL_F32 = 7, GS_NCCL_F64 = 8, GS_NCCL_SUM = 0 };

/* member, symbol, parameters */
#define GS_CUDA_DRIVER_MAP(X)                                                                                       \
    X(init, "cuInit", (unsigned flags))                                                                             \
    X(version, "cuDriverGetVersion", (int *version))                                                                \
    X(error_name, "cuGetErrorName", (gs_cu_result r, const char **name))                                            \
    X(error_text, "cuGetErrorString", (gs_cu_result r, const char **text))                                          \
    X(device_count, "cuDeviceGetCount", (int *count))                                                               \
    X(device_get, "cuDeviceGet", (int *device, int ordinal))                                                        \
    X(device_name, "cuDeviceGetName", (char *name, int bytes, int device))                                          \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                            \
    X(device_bus, "cuDeviceGetPCIBusId", (char *text, int bytes, int device))                                       \
    X(peer_can, "cuDeviceCanAccessPeer", (int *can, int device, int peer))                                          \
    X(peer_attribute, "cuDeviceGetP2PAttribute", (int *value, int attribute, int device, int peer))                 \
    X(peer_enable, "cuCtxEnablePeerAccess", (gs_cu_handle peer, unsigned flags))                                    \
    X(context_retain, "cuDevicePrimaryCtxRetain", (gs_cu_handle *context, int device))                              \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                                                \
    X(context_set, "cuCtxSetCurrent", (gs_cu_handle context))                                                       \
    X(context_get, "cuCtxGetCurrent", (gs_cu_handle *context))                                                      \
    X(memory_info, "cuMemGetInfo_v2", (size_t *free_bytes, size_t *total))                                          \
    X(memory_alloc, "cuMemAlloc_v2", (gs_cu_memory *p, size_t bytes))                                               \
    X(memory_free, "cuMemFree_v2", (gs_cu_memory p))                                                                \
    X(memory_attribute, "cuPointerGetAttribute", (void *value, int attribute, gs_cu_memory p))                      \
    X(host_register, "cuMemHostRegister_v2", (void *p, size_t bytes, unsigned flags))                               \
    X(host_unregister, "cuMemHostUnregister", (void *p))                                                            \
    X(host_address, "cuMemHostGetDevicePointer_v2", (gs_cu_memory *p, void *host, unsigned flags))                  \
    X(copy_in, "cuMemcpyHtoDAsync_v2", (gs_cu_memory to, const void *from, size_t bytes, gs_cu_handle stream))      \
    X(copy_out, "cuMemcpyDtoHAsync_v2", (void *to, gs_cu_memory from, size_t bytes, gs_cu_handle stream))           \
    X(copy_within, "cuMemcpyDtoDAsync_v2", (gs_cu_memory to, gs_cu_memory from, size_t bytes, gs_cu_handle stream)) \
    X(copy_peer, "cuMemcpyPeerAsync",                                                                               \
      (gs_cu_memory to, gs_cu_handle to_context, gs_cu_memory from, gs_cu_handle from_context, size_t bytes,        \
       gs_cu_handle stream))                                                                                        \
    X(fill, "cuMemsetD8Async", (gs_cu_memory p, unsigned char value, size_t bytes, gs_cu_handle stream))            \
    X(stream_create, "cuStreamCreate", (gs_cu_handle *stream, unsigned flags))                                      \
    X(stream_create_first, "cuStreamCreateWithPriority", (gs_cu_handle *stream, unsigned flags, int priority))      \
    X(stream_destroy, "cuStreamDestroy_v2", (gs_cu_handle stream))                                                  \
    X(stream_wait, "cuStreamWaitEvent", (gs_cu_handle stream, gs_cu_handle event, unsigned flags))                  \
    X(stream_synchronize, "cuStreamSynchronize", (gs_cu_handle stream))                                             \
    X(event_create, "cuEventCreate", (gs_cu_handle *event, unsigned flags))                                         \
    X(event_destroy, "cuEventDestroy_v2", (gs_cu_handle event))                                                     \
    X(event_record, "cuEventRecord", (gs_cu_handle event, gs_cu_handle stream))                                     \
    X(event_query, "cuEventQuery", (gs_cu_handle event))                                                            \
    X(event_synchronize, "cuEventSynchronize", (gs_cu_handle event))                                                \
    X(event_elapsed, "cuEventElapsedTime", (float *milliseconds, gs_cu_handle begin, gs_cu_handle end))             \
    X(module_load, "cuModuleLoadData", (gs_cu_handle *module, const void *image))                                   \
    X(module_unload, "cuModuleUnload", (gs_cu_handle module))                                                       \
    X(module_function, "cuModuleGetFunction", (gs_cu_handle *function, gs_cu_handle module, const char *name))      \
    X(launch, "cuLaunchKernel",                                                                                     \
      (gs_cu_handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,                  \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, gs_cu_handle stream, void **args, void **extra))

#define GS_CUDA_NVRTC_MAP(X)                                                                                        \
    X(compiler_version, "nvrtcVersion", (int *major, int *minor))                                                   \
    X(program_create, "nvrtcCreateProgram",                                                                         \
      (gs_cu_handle *program, const char *source, const char *name, int headers, const char *const *header_text,    \
       const char *const *header_name))                                                                             \
    X(program_destroy, "nvrtcDestroyProgram", (gs_cu_handle *program))                                              \
    X(program_compile, "nvrtcCompileProgram", (gs_cu_handle program, int options, const char *const *option))       \
    X(image_bytes, "nvrtcGetCUBINSize", (gs_cu_handle program, size_t *bytes))                                      \
    X(image, "nvrtcGetCUBIN", (gs_cu_handle program, char *image))                                                  \
    X(intermediate_bytes, "nvrtcGetPTXSize", (gs_cu_handle program, size_t *bytes))                                 \
    X(intermediate, "nvrtcGetPTX", (gs_cu_handle program, char *text))                                              \
    X(architecture_count, "nvrtcGetNumSupportedArchs", (int *count))                                                \
    X(architectures, "nvrtcGetSupportedArchs", (int *architecture))                                                 \
    X(log_bytes, "nvrtcGetProgramLogSize", (gs_cu_handle program, size_t *bytes))                                   \
    X(log, "nvrtcGetProgramLog", (gs_cu_handle program, char *log))

#define GS_CUDA_CUBLAS_MAP(X)                                                                                       \
    X(blas_property, "cublasGetProperty", (int which, int *value))                                                  \
    X(blas_create, "cublasCreate_v2", (gs_cu_handle *blas))                                                         \
    X(blas_destroy, "cublasDestroy_v2", (gs_cu_handle blas))                                                        \
    X(blas_stream, "cublasSetStream_v2", (gs_cu_handle blas, gs_cu_handle stream))                                  \
    X(blas_workspace, "cublasSetWorkspace_v2", (gs_cu_handle blas, void *memory, size_t bytes))                     \
    X(gemm, "cublasGemmEx",                                                                                         \
      (gs_cu_handle blas, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha, const void *a,  \
       int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc,     \
       int compute, int algorithm))                                                                                 \
    X(gemm_batched, "cublasGemmStridedBatchedEx",                                                                   \
      (gs_cu_handle blas, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha, const void *a,  \
       int a_type, int lda, long long a_stride, const void *b, int b_type, int ldb, long long b_stride,             \
       const void *beta, void *c, int c_type, int ldc, long long c_stride, int batches, int compute, int algorithm))

/* All NULL where there is no NCCL: sums over devices then go by way of the host. */
#define GS_CUDA_NCCL_MAP(X)                                                                                         \
    X(comm_init, "ncclCommInitAll", (gs_cu_handle *comm, int devices, const int *device))                           \
    X(comm_destroy, "ncclCommDestroy", (gs_cu_handle comm))                                                         \
    X(group_start, "ncclGroupStart", (void))                                                                        \
    X(group_end, "ncclGroupEnd", (void))                                                                            \
    X(all_reduce, "ncclAllReduce",                                                                                  \
      (const void *from, void *to, size_t count, int type, int how, gs_cu_handle comm, gs_cu_handle stream))

typedef struct gs_cuda_driver {
#define X(member, symbol, parameters) gs_cu_result(*member) parameters;
    GS_CUDA_DRIVER_MAP(X)
    GS_CUDA_NVRTC_MAP(X)
    GS_CUDA_CUBLAS_MAP(X)
    GS_CUDA_NCCL_MAP(X)
#undef X
} gs_cuda_driver;

/* The libraries' functions, found once and kept. GS_EUNSUPPORTED says which library or function is missing, or which
 * library is too new for the driver (driver.c). */
gs_status gs_cuda_driver_open(const gs_cuda_driver **out);
/* Host memory that the process has grown by when the libraries were opened; 0: those of a test. */
uint64_t gs_cuda_libraries_bytes(void);
/* NVRTC's alone, which needs no GPU and no driver. */
gs_status gs_cuda_compiler_open(const gs_cuda_driver **out);

/* Set by a test: gs_cuda_driver_open() gives this one. */
extern const gs_cuda_driver *gs_cuda_test_driver;

#endif /* GS_CUDA_DRIVER_H */
