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
#include "cost/limits_data.h" /* gs_limits */

#define GS_LIMITS_DISK_BYTES (1ull << 30) /* of the file that gs_limits_measure() makes */

/* Writes a file of `bytes` (at least 1 MiB) of incompressible data in `dir`, reads it again
 * and removes it; it is unlinked from the start, so an interrupted measurement leaves nothing. Both
 * figures are medians over at least 2 seconds. `memory`: bytes of buffers, whole MiB. On failure both are untouched.
 * GS_ENOTFOUND or GS_EIO (cannot write in `dir`, "disk full"), GS_EINVAL, GS_ENOMEM. */
gs_status gs_limits_disk(double *read_bps, double *write_bps, const char *dir, uint64_t bytes, uint64_t memory);

/* The disk part of `out`, random reads included; the rest is left as it is. */
gs_status gs_limits_measure_disk(gs_limits *out, const char *dir, uint64_t bytes);

/* The device part, on the CPU device with `threads` threads (0: all). Untouched on failure. */
gs_status gs_limits_measure_device(gs_limits *out, unsigned threads);

/* [rows of a processor's, in, out] of the products that are measured; a GPU's have more rows. */
extern const uint32_t gs_limits_gemm_shape[GS_LIMITS_GEMMS][3];

/* The device part, on a device with memory of its own; copies between devices where `spec` names two ("cuda:0,1"). Some
 * seconds. Untouched on failure. */
gs_status gs_limits_measure_gpu(gs_limits *out, const char *spec);

/* Everything, on the disk that holds `dir` and the CPU device with `threads`
 * threads (0: all). About 20 seconds. Untouched on failure. */
gs_status gs_limits_measure(gs_limits *out, const char *dir, unsigned threads);

#endif /* GS_TRAIN_LIMITS_H */
