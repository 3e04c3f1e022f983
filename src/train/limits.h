/* limits.h - what can this server do at best?
 *
 * Ceilings that a run is held against, each measured in the way in which a run
 * would reach it: the disk through gs_io with O_DIRECT, the engine's pieces
 * and its depth; arithmetic and memory through the device's own kernels.
 * Units: bytes and floating-point operations per second.
 * Threads: one at a time; everything here blocks, for seconds.
 */
#ifndef GS_TRAIN_LIMITS_H
#define GS_TRAIN_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define GS_LIMITS_RUNS 5    /* row runs of 4K, 16K, 64K, 256K, 1M */
#define GS_LIMITS_GEMMS 3
#define GS_LIMITS_GATHERS 3
#define GS_LIMITS_DISK_BYTES (1ull << 30) /* of the file that gs_limits_measure() makes */

typedef struct gs_limits {
    double disk_read_bps;  /* sequential */
    double disk_write_bps; /* sequential, fsync included */
    struct {
        uint64_t bytes;    /* of a request at a random place */
        double bps;
    } random_read[GS_LIMITS_RUNS];
    bool disk_direct;      /* false: no O_DIRECT there, so memory may have served the reads */
    char io_name[48];      /* "io_uring", "threads" */
    char device_name[64];
    double copy_bps;
    struct {
        uint32_t rows, in, out;
        double flops;
    } gemm[GS_LIMITS_GEMMS];
    struct {
        uint32_t width;    /* floats a row */
        double bps;
    } gather[GS_LIMITS_GATHERS];
} gs_limits;

/* Writes a file of `bytes` (at least 1 MiB) of incompressible data in `dir`, reads it again
 * and removes it; it is unlinked from the start, so an interrupted measurement leaves nothing. Both
 * figures are medians over at least 2 seconds. On failure both are untouched.
 * GS_ENOTFOUND or GS_EIO (cannot write in `dir`, "disk full"), GS_EINVAL, GS_ENOMEM. */
gs_status gs_limits_disk(double *read_bps, double *write_bps, const char *dir, uint64_t bytes);

/* The disk part of `out`, random reads included; the rest is left as it is. */
gs_status gs_limits_measure_disk(gs_limits *out, const char *dir, uint64_t bytes);

/* The device part, on the CPU device with `threads` threads (0: all). Untouched on failure. */
gs_status gs_limits_measure_device(gs_limits *out, unsigned threads);

/* Everything, on the disk that holds `dir` and the CPU device with `threads`
 * threads (0: all). About 20 seconds. Untouched on failure. */
gs_status gs_limits_measure(gs_limits *out, const char *dir, unsigned threads);

#endif /* GS_TRAIN_LIMITS_H */
