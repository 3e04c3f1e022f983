/* bench_gather.h - how near does the sum of rows over the edges of a real graph come to what its bytes allow?
 *
 * With rows, sums and indices on the device, for the widths that models have and 1, 4 and 16 intervals: a launch over
 * the edges of each pair of intervals, as an epoch has them, so that an interval's rows may stay in the GPU's cache.
 * They must move a row and an index for each edge, and read and write the sums of each target of a launch; a copy moves
 * as many bytes, read and written, at its own rate. More than 100 % says that rows came out of the cache.
 */
#ifndef GS_BENCH_KERNELS_BENCH_GATHER_H
#define GS_BENCH_KERNELS_BENCH_GATHER_H

#include "device/device.h"

/* Compiles their kernels. */
void bench_prepare_gathers(gs_device *d);
/* Prints a line for each number of intervals and width. `edges`: edges.npy of a generated graph; `copy`: bytes per
 * second, read and written. */
void bench_gather(gs_device *d, const char *edges, double copy);

#endif /* GS_BENCH_KERNELS_BENCH_GATHER_H */
