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

#include <stdint.h>

#include "base/status.h"
#include "cost/cost.h" /* gs_limits */

typedef struct gs_device gs_device;

#define GS_LIMITS_DISK_BYTES (1ull << 30) /* of the file that is measured */

/* Writes a file of `bytes` (at least 1 MiB) of incompressible data in `dir`, reads it again
 * and removes it; it is unlinked from the start, so an interrupted measurement leaves nothing. Both
 * figures are medians over at least 2 seconds. `memory`: bytes of buffers, whole MiB. On failure both are untouched.
 * GS_ENOTFOUND or GS_EIO (cannot write in `dir`, "disk full"), GS_EINVAL, GS_ENOMEM. */
gs_status gs_limits_disk(double *read_bps, double *write_bps, const char *dir, uint64_t bytes, uint64_t memory);

/* The disk part of `out`, random reads included; the rest is left as it is. */
gs_status gs_limits_measure_disk(gs_limits *out, const char *dir, uint64_t bytes);

/* The device part, on the CPU device with `threads` threads (0: all). Untouched on failure. */
gs_status gs_limits_measure_device(gs_limits *out, unsigned threads);

#define GS_LIMITS_PICKED_ROW 256u /* bytes of the rows that are copied one by one */
/* Sets about half of the bits for `rows` of these, whole words of 64, anywhere; how many. */
uint64_t gs_limits_pick(uint64_t *bits, uint64_t rows);

#define GS_LIMITS_ROWS 65536u /* of an interval: the most that an index of two bytes names */
/* A chunk of two intervals of so many rows, whose `targets` targets have `degree` operands each, anywhere. */
void gs_limits_make_chunk(uint16_t *target, uint32_t *start, uint16_t *index, uint32_t targets, uint32_t degree);

/* [rows of a processor's, in, out] of the products that are measured; a GPU's have more rows. */
extern const uint32_t gs_limits_gemm_shape[GS_LIMIT_GEMMS][3];

/* The device part, on a device with memory of its own; copies between devices where `spec` names two ("cuda:0,1"); its
 * own reads of a file in `dir`, unless that is NULL. Some seconds. Untouched on failure. */
gs_status gs_limits_measure_gpu(gs_limits *out, const char *spec, const char *dir);

#define GS_LIMITS_LOAD_BYTES (256ull << 20) /* of the file that gs_limits_measure_gpu() makes */
/* How fast the device reads a file past the host's memory (GPUDirect Storage): writes one of `bytes` (whole MiB, 8 at
 * least) without a name in `dir`, and notes link[GS_LINK_FROM_DISK] of `l`; {0, 0}: it cannot. What arrives is compared
 * with what was written. The device has no memory of a run, before and after. GS_EIO, GS_EFORMAT (other bytes came),
 * GS_ENOMEM, GS_EDEVICE. */
gs_status gs_limits_measure_loads(gs_limits *l, gs_device *d, const char *dir, uint64_t bytes);

#endif /* GS_TRAIN_LIMITS_H */
