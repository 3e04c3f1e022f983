/* disk_probe.h - keeps one scratch file's disk busy and says how fast it goes.
 *
 * The instrument behind train/limits.h and bench/disk. Units: bytes, seconds.
 */
#ifndef GS_IO_DISK_PROBE_H
#define GS_IO_DISK_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "io/io.h"

typedef struct gs_disk_probe {
    gs_io *io;
    uint32_t file;
    int sync_fd;          /* of the same file, for fsync; -1 when closed */
    uint64_t file_bytes;
    uint8_t *ring;        /* registered with io */
    uint64_t ring_bytes;
    uint64_t next;        /* number of the next request: sequential place, or counter of the random one */
} gs_disk_probe;

typedef enum gs_probe_pattern { GS_PROBE_READ, GS_PROBE_WRITE, GS_PROBE_RANDOM_READ } gs_probe_pattern;

#define GS_PROBE_RING_BYTES (64ull << 20) /* what is under way where memory is no matter */

/* Makes a file of `bytes` (a multiple of GS_BLOCK_BYTES) in `dir`, without a name. `depth` and `piece_bytes` 0: the
 * engine's. `ring_bytes`: of memory for what is under way, whole MiB. GS_ENOTFOUND or GS_EIO (cannot write in `dir`,
 * "disk full"), GS_EINVAL, GS_ENOMEM. */
gs_status gs_disk_probe_open(gs_disk_probe *out, const char *dir, uint64_t bytes, gs_io_backend backend,
                             uint32_t depth, uint64_t piece_bytes, uint64_t ring_bytes);
void gs_disk_probe_close(gs_disk_probe *p); /* a zeroed one with sync_fd -1 is allowed */

/* Writes the whole file once, fsync included. */
gs_status gs_disk_probe_write(gs_disk_probe *p, double *bps);
/* Keeps requests of `run_bytes` (a multiple of GS_BLOCK_BYTES, at most ring_bytes) under way for about
 * `seconds` and gives the median over fifths of that time. */
gs_status gs_disk_probe_read(gs_disk_probe *p, bool random, uint64_t run_bytes, double seconds, double *bps);
/* Reads the whole file and compares it with what was written: GS_EIO where the disk lies. */
gs_status gs_disk_probe_check(gs_disk_probe *p);

#endif /* GS_IO_DISK_PROBE_H */
