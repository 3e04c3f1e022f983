/* io.h - (file, offset, length, memory) to a completion, fast.
 *
 * One io_uring (registered files and buffers) or, where that is not allowed, a
 * pool of threads with pread/pwrite behind the same calls; chosen at run time.
 * Requests of any size are cut into pieces inside, resubmitted when short, and
 * complete once. End of file inside a read is an error; EINTR and EAGAIN are not.
 *
 * Threads: one thread owns a gs_io and makes all calls.
 * Units: bytes. Alignment: a file opened `direct` wants offset, length and
 * address in multiples of GS_BLOCK_BYTES.
 */
#ifndef GS_IO_IO_H
#define GS_IO_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum gs_io_backend { GS_IO_AUTO, GS_IO_URING, GS_IO_THREADS } gs_io_backend;

typedef struct gs_io_config {
    gs_io_backend backend;
    uint32_t requests;    /* most requests outstanding at a time (pieces: see piece_bytes) */
    uint32_t depth;       /* most pieces in the kernel at a time; 0: 32 */
    uint64_t piece_bytes; /* 0: 1 MiB */
    /* Memory that requests will point into, registered with the kernel where it
     * allows (RLIMIT_MEMLOCK); requests elsewhere work too, a little slower. */
    struct gs_io_buffer {
        void *base;
        uint64_t bytes;
    } const *buffers;
    uint32_t buffer_count;
} gs_io_config;

typedef struct gs_io gs_io;

typedef struct gs_io_request {
    uint32_t file;  /* from gs_io_add_file() */
    bool write;
    uint64_t offset, length; /* length > 0 */
    void *memory;   /* valid until the completion is reaped */
    uint64_t tag;   /* given back in the completion */
} gs_io_request;

typedef struct gs_io_completion {
    uint64_t tag;
    gs_status status; /* GS_OK, GS_EIO, GS_EFORMAT (file ends inside); text by gs_io_explain() */
    int error;        /* errno, or 0 */
} gs_io_completion;

typedef struct gs_io_counters {
    uint64_t read_bytes, written_bytes, requests, pieces, retries;
} gs_io_counters;

/* GS_ENOMEM, GS_EUNSUPPORTED (GS_IO_URING asked for and not to be had). */
gs_status gs_io_open(gs_io **out, const gs_io_config *config);
/* Waits for what is outstanding, closes its files, frees. NULL is allowed. */
void gs_io_close(gs_io *io);
/* "io_uring", "io_uring (unregistered buffers)" or "threads". */
const char *gs_io_backend_name(const gs_io *io);
/* What kept io_uring from being used, "" where it is used. */
const char *gs_io_fallback_reason(const gs_io *io);

typedef enum gs_io_mode { GS_IO_READ = 0, GS_IO_WRITE = 1, GS_IO_CREATE = 2 } gs_io_mode;
/* Opens `path` with O_DIRECT where the file system has it (else buffered, and
 * drops what it read from the page cache as it goes). GS_IO_CREATE makes or empties the
 * file, for reading and writing. `*index` is for requests. */
gs_status gs_io_add_file(gs_io *io, uint32_t *index, const char *path, gs_io_mode mode);

/* Never blocks on the device. GS_EAGAIN when `requests` are outstanding (nothing was taken). */
gs_status gs_io_submit(gs_io *io, const gs_io_request *request);
/* Gives up to `max` completions; with `wait`, blocks for at least one if any is
 * outstanding. Also feeds further pieces to the kernel, so call it often. */
uint32_t gs_io_reap(gs_io *io, gs_io_completion *out, uint32_t max, bool wait);
uint32_t gs_io_outstanding(const gs_io *io);
void gs_io_get_counters(const gs_io *io, gs_io_counters *out);

/* Records "PATH: read of N bytes at OFFSET failed: ..." as the last error. */
gs_status gs_io_explain(const gs_io *io, const gs_io_request *request, const gs_io_completion *done);

/* Test hook: called for each piece before it goes out; may shorten it
 * (*length) or fail it (return an errno). NULL: none. */
typedef int (*gs_io_fault_fn)(void *context, const gs_io_request *piece, uint64_t *length);
void gs_io_set_fault(gs_io *io, gs_io_fault_fn fn, void *context);

#endif /* GS_IO_IO_H */
