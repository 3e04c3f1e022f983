/* bench_gather.h - how near does the sum of rows over the edges of a real graph come to what its bytes allow?
 *
 * One launch over all edges, with rows, sums and indices on the device. It must move a row and an index for each edge,
 * and read and write each target's sums; a copy moves as many bytes, read and written, at its own rate. More than 100 %
 * says that rows came out of the GPU's cache.
 */
#ifndef GS_BENCH_KERNELS_BENCH_GATHER_H
#define GS_BENCH_KERNELS_BENCH_GATHER_H

#include "device/device.h"

/* Prints a line for each width. `edges`: edges.npy of a generated graph; `copy`: bytes per second, read and written. */
void bench_gather(gs_device *d, const char *edges, double copy);

#endif /* GS_BENCH_KERNELS_BENCH_GATHER_H */
