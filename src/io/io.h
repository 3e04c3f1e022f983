/* io.h - (file, offset, length, memory) to a completion, fast.
 *
 * One io_uring (registered files and buffers) or, where that is not allowed, a
 * pool of threads with pread/pwrite behind the same calls; chosen at run time.
 * Requests of any size are cut into pieces inside, resubmitted when short, and
 * complete once. End of file inside a read is an error (but see `needed`); EINTR and EAGAIN are not.
 *
 * Which of the two: gs_io_config.backend; with GS_IO_AUTO the environment
 * variable GS_IO ("uring" or "threads") decides, and where it is not set,
 * io_uring is tried first.
 *
 * Threads: one thread owns a gs_io and makes all calls. Memory: all of it is
 * taken by gs_io_open() and gs_io_add_file(); submit and reap allocate nothing.
 * Units: bytes. Alignment: a file opened `direct` wants offset, length and
 * address in multiples of GS_BLOCK_BYTES.
 */
#ifndef GS_IO_IO_H
#define GS_IO_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h" /* GS_ENDS_BY */
#include "base/status.h"

#define GS_IO_DEPTH 64u /* with 1 MiB pieces the best of 4..128 on an NVMe disk (bench/disk/io_sweep) */
#define GS_IO_PIECE_BYTES (1024u * 1024u)
#define GS_IO_STRIPE_BYTES GS_IO_PIECE_BYTES /* as long as a piece: shorter ones would cut it */

typedef enum gs_io_backend { GS_IO_AUTO, GS_IO_URING, GS_IO_THREADS } gs_io_backend;

typedef struct gs_io_config {
    gs_io_backend backend;
    uint32_t requests;    /* most requests outstanding at a time (pieces: see piece_bytes); 0: 64 */
    uint32_t depth;       /* most pieces in the kernel at a time, up to 4096; 0: GS_IO_DEPTH */
    uint64_t flight_bytes; /* most bytes in the kernel at a time, but for one piece; 0: no bound. With a deep queue
                            * it keeps many small reads under way and yet lets large ones arrive one after the other */
    uint64_t piece_bytes; /* rounded up to GS_BLOCK_BYTES, up to 1 GiB; 0: GS_IO_PIECE_BYTES */
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
    uint64_t needed; /* of a read: bytes that the file must have, 0: all. With less than `length`, a read of whole
                      * blocks may end where a file ends inside a block; memory beyond that block is left as it was */
    void *memory;   /* valid until the completion is reaped */
    uint64_t tag;   /* given back in the completion */
} gs_io_request;

typedef struct gs_io_completion {
    uint64_t tag;
    gs_status status; /* GS_OK, GS_EIO, GS_EFORMAT (file ends inside); text by gs_io_explain() */
    int error;        /* errno, or 0 */
    uint32_t stripe;  /* which of the files in turn failed: 0, or as gs_io_add_stripe() added them */
} gs_io_completion;

typedef struct gs_io_counters {
    uint64_t read_bytes, written_bytes; /* moved, by pieces that have ended */
    uint64_t requests;                  /* submitted */
    uint64_t pieces;                    /* cut from them */
    uint64_t retries;                   /* pieces that went out again: short, interrupted */
} gs_io_counters;

/* Takes all memory, starts the ring or the threads. The buffers must outlive the gs_io.
 * GS_ENOMEM, GS_EUNSUPPORTED (io_uring asked for and not to be had),
 * GS_EINVAL (a size out of range, GS_IO set to an unknown word). */
gs_status gs_io_open(gs_io **out, const gs_io_config *config);
/* Waits for what is outstanding, closes its files, frees. NULL is allowed. */
void gs_io_close(gs_io *io);
GS_ENDS_BY(gs_io, gs_io_close)
/* "io_uring", "io_uring (unregistered buffers)" or "threads". */
const char *gs_io_backend_name(const gs_io *io);
/* What kept io_uring, or its registered buffers, from being used; "" where nothing did. */
const char *gs_io_fallback_reason(const gs_io *io);

typedef enum gs_io_mode { GS_IO_READ = 0, GS_IO_WRITE = 1, GS_IO_CREATE = 2, GS_IO_INPUT = 3 } gs_io_mode;
/* Opens `path` with O_DIRECT where the file system has it (else buffered, and
 * drops what it read from the page cache as it goes). GS_IO_CREATE makes or empties the
 * file, for reading and writing; GS_IO_INPUT reads a file of the user's, to which a link may lead, as to no other.
 * `*index` is for requests. Blocks.
 * GS_ENOTFOUND, GS_EINVAL (neither a file nor a block device), GS_EIO, GS_ENOMEM. */
gs_status gs_io_add_file(gs_io *io, uint32_t *index, const char *path, gs_io_mode mode);
/* Makes one more file, over which with those before it the bytes of `file` go in turn, GS_IO_STRIPE_BYTES each, so that
 * several disks move what is one file to requests. `file` was added last with GS_IO_CREATE, and has no bytes yet. */
gs_status gs_io_add_stripe(gs_io *io, uint32_t file, const char *path);
/* Bytes that each of `files` in turn has of `bytes`, at most. */
uint64_t gs_io_stripe_bytes(uint64_t bytes, uint32_t files);
/* True where the file is open with O_DIRECT. A file system that takes the flag and then
 * refuses a transfer (EINVAL) turns this to false during the run. */
bool gs_io_is_direct(const gs_io *io, uint32_t file);
/* Gives a writable file `bytes` bytes, with space reserved where the file
 * system can: ENOSPC shows here and not in the middle of an epoch, and direct
 * writes within the size need no exclusive lock on the file (writes
 * that extend it do, one after the other). Blocks. GS_EIO ("disk full", size as it was), GS_EINVAL. */
gs_status gs_io_set_size(gs_io *io, uint32_t file, uint64_t bytes);

/* Queues a request; gs_io_reap() hands it to the kernel. Never blocks on the device.
 * GS_EAGAIN when `requests` are outstanding, GS_EINVAL (unknown file, a file
 * opened for reading only, length 0, misaligned for a direct file); nothing was taken then. */
gs_status gs_io_submit(gs_io *io, const gs_io_request *request);
/* Gives up to `max` completions; with `wait` (and max > 0), blocks for at least one if any is
 * outstanding. Also feeds further pieces to the kernel, in one system call, so call it
 * often, and once after a run of submits. */
uint32_t gs_io_reap(gs_io *io, gs_io_completion *out, uint32_t max, bool wait);
uint32_t gs_io_outstanding(const gs_io *io);
/* From now on a gs_io_reap() that waits comes back without a completion when nothing has moved for so long; 0, as at
 * the start: never. */
void gs_io_set_patience(gs_io *io, double seconds);
/* How long gs_io_reap() has waited since a piece came back last. Not while nobody waits, nor while the process is
 * stopped. */
double gs_io_quiet_seconds(const gs_io *io);
/* Gives up all outstanding requests: the kernel may still write into their memory, which must never be another's. Only
 * gs_io_close() is called after it; that waits for nothing, and what the gs_io holds stays until the process ends. */
void gs_io_abandon(gs_io *io);
void gs_io_get_counters(const gs_io *io, gs_io_counters *out);

/* Records "PATH: read of N bytes at OFFSET failed: ..." as the last error. */
gs_status gs_io_explain(const gs_io *io, const gs_io_request *request, const gs_io_completion *done);

/* Test hook: called for each piece before it goes out, again when it goes out again;
 * may shorten what counts of it (*length; 0 reads as end of file) or fail it
 * (return an errno). NULL: none. */
typedef int (*gs_io_fault_fn)(void *context, const gs_io_request *piece, uint64_t *length);
void gs_io_set_fault(gs_io *io, gs_io_fault_fn fn, void *context);

#endif /* GS_IO_IO_H */
