/* file_reads.h - reads of files straight into the arena, by cuFile, in batches of requests. */
#ifndef GS_CUDA_FILE_READS_H
#define GS_CUDA_FILE_READS_H

#include "cuda/file_library.h"
#include "device/device.h"

typedef struct gs_cuda gs_cuda;

#define GS_CUDA_FILES 72u     /* more than a run has edge files */
#define GS_CUDA_REQUESTS 64u  /* that a read is cut into, at the most */

/* A slot for a read:
 *
 *     FREE ---- gs_cuda_begin_read() ----> READING ---- all of its bytes have come ----> MARKING
 *     MARKING - the mark is known ------> OVER        READING, MARKING ---- a failure ----> OVER
 *     OVER ---- somebody was told ------> FREE */
typedef enum gs_cuda_read_state {
    GS_CUDA_READ_FREE,
    GS_CUDA_READ_READING,
    GS_CUDA_READ_MARKING,
    GS_CUDA_READ_OVER
} gs_cuda_read_state;

typedef struct gs_cuda_read {
    gs_cuda_read_state state;
    uint64_t number;
    gs_device_read want;
    gs_cu_handle batch, marked; /* of cuFile; an event */
    uint32_t requests, left;    /* of the batch under way: how many, and how many have not come back */
    gs_cufile_request request[GS_CUDA_REQUESTS]; /* each: what is left of it */
    gs_cufile_event event[GS_CUDA_REQUESTS];
    gs_failure failure;         /* the first; what is under way still comes back */
} gs_cuda_read;

typedef struct gs_cuda_reads {
    const gs_cufile *f;
    char *base;                 /* of the arena, where reads begin to go */
    bool registered;            /* cuFile has mapped it for the disk; else it goes by its own buffers on the GPU */
    gs_cu_handle stream;        /* of marks */
    gs_cu_memory sums;          /* [GS_DEVICE_READS][GS_MARK_BLOCKS] */
    uint64_t *came;             /* the same, of the host */
    bool pinned;
    uint64_t numbers;
    uint32_t files;
    struct {
        int fd;
        gs_cu_handle handle;
    } file[GS_CUDA_FILES];
    gs_cuda_read read[GS_DEVICE_READS]; /* number % GS_DEVICE_READS */
} gs_cuda_reads;

/* Waits for all that is under way, which nobody is told of any more. The last error may be another then. Does nothing
 * where none are open, or under way. */
void gs_cuda_settle_reads(gs_cuda *c);
/* Waits for all that is under way, and leaves the last error as it is. Does nothing where none are open. */
void gs_cuda_close_reads(gs_cuda *c);

#endif /* GS_CUDA_FILE_READS_H */
