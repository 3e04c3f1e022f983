/* file_library.h - the functions of cuFile (GPUDirect Storage) that the device calls, found at run time.
 *
 * The library is opened when somebody first wants to read a file straight to a GPU. Most machines do not have it, or
 * have it without a driver or a file system that it works with: each is a reason to read by way of the host, and none
 * to fail. Its mode in which it reads by way of the host itself is turned off where the library lets it be: it would be
 * slower than this project's own way, and takes up to a gigabyte of host memory of which no budget knows.
 * Types and numbers below are those of its ABI.
 */
#ifndef GS_CUDA_FILE_LIBRARY_H
#define GS_CUDA_FILE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "cuda/driver.h"

typedef struct gs_cufile_error {
    int error;      /* 0 is success */
    int cuda_error; /* where `error` is GS_CUFILE_CUDA_ERROR */
} gs_cufile_error;

enum { /* CUfileOpError */
    GS_CUFILE_DRIVER_NOT_INITIALIZED = 5001,
    GS_CUFILE_PLATFORM_NOT_SUPPORTED = 5007,
    GS_CUFILE_IO_NOT_SUPPORTED = 5008,
    GS_CUFILE_DEVICE_NOT_SUPPORTED = 5009,
    GS_CUFILE_CUDA_ERROR = 5011,
    GS_CUFILE_PERMISSION_DENIED = 5025,
    GS_CUFILE_IO_DISABLED = 5034,
};
enum { GS_CUFILE_FD = 1 };                    /* CUfileFileHandleType */
enum { GS_CUFILE_BATCH = 1, GS_CUFILE_READ = 0 };
enum { GS_CUFILE_INVALID = 4, GS_CUFILE_COMPLETE = 0x10 }; /* CUfileStatus_t; below INVALID: still under way */
enum { GS_CUFILE_ALLOW_COMPAT_MODE = 1 };     /* CUFileBoolConfigParameter_t */

typedef struct gs_cufile_descr {
    int type;
    union {
        int fd;
        void *handle;
    } handle;
    const void *fs_ops;
} gs_cufile_descr;

typedef struct gs_cufile_request {
    int mode;
    void *base;          /* of device memory */
    off_t file_offset, base_offset;
    size_t bytes;
    gs_cu_handle file;
    int opcode;
    void *cookie;
} gs_cufile_request;

typedef struct gs_cufile_event {
    void *cookie;
    int status;
    size_t bytes;        /* moved; as ssize_t below 0: what failed, an errno or CUfileOpError */
} gs_cufile_event;

/* type, member, symbol, parameters */
#define GS_CUFILE_MAP(X)                                                                                            \
    X(gs_cufile_error, driver_open, "cuFileDriverOpen", (void))                                                     \
    X(gs_cufile_error, file_register, "cuFileHandleRegister", (gs_cu_handle *file, gs_cufile_descr *descr))         \
    X(void, file_deregister, "cuFileHandleDeregister", (gs_cu_handle file))                                         \
    X(gs_cufile_error, memory_register, "cuFileBufRegister", (const void *base, size_t bytes, int flags))           \
    X(gs_cufile_error, memory_deregister, "cuFileBufDeregister", (const void *base))                                \
    X(gs_cufile_error, batch_make, "cuFileBatchIOSetUp", (gs_cu_handle *batch, unsigned most))                      \
    X(gs_cufile_error, batch_submit, "cuFileBatchIOSubmit",                                                         \
      (gs_cu_handle batch, unsigned count, gs_cufile_request *request, unsigned flags))                             \
    X(gs_cufile_error, batch_status, "cuFileBatchIOGetStatus",                                                      \
      (gs_cu_handle batch, unsigned least, unsigned *count, gs_cufile_event *event, struct timespec *timeout))      \
    X(void, batch_drop, "cuFileBatchIODestroy", (gs_cu_handle batch))

/* Not in older releases: NULL there. */
#define GS_CUFILE_NEWER_MAP(X) \
    X(gs_cufile_error, set_bool, "cuFileSetParameterBool", (int parameter, bool value))

typedef struct gs_cufile {
#define X(type, member, symbol, parameters) type(*member) parameters;
    GS_CUFILE_MAP(X)
    GS_CUFILE_NEWER_MAP(X)
#undef X
} gs_cufile;

/* Set by a test, before the first read: file_reads.c takes this one in place of the library's. */
extern const gs_cufile *gs_cuda_test_files;

#endif /* GS_CUDA_FILE_LIBRARY_H */
