/* host_disk.h - may the disk touch this host memory now, or is a GPU at it?
 *
 * The disk is one more party to the races of host_streams.h: a read puts bytes into host memory and a write takes bytes
 * from it, from the moment that the request is handed over until its completion is given back. Work of a GPU that
 * touches the same bytes (and one of the two changes them) must be over, and waited for by the host, before the request
 * is handed over; or it must be asked for after the completion. The first of which neither holds ends the program,
 * whether or not the bytes that it met were right by luck.
 *
 * Work runs as late as the host's waiting allows. So what has run was waited for, and what a request may race with is
 * still to run: it finds here what the disk has done since it was asked for.
 *
 * By blocks of GS_BLOCK_BYTES, which are what a direct transfer moves. What the host's own code does with these bytes
 * is not watched.
 */
#ifndef GS_TESTS_CUDA_HOST_DISK_H
#define GS_TESTS_CUDA_HOST_DISK_H

#include <stdbool.h>
#include <stddef.h>

#include "io/io.h"

/* For gs_io__observer: may be called by any thread. Two transfers at a time of the same block, one of them a read of
 * the disk, end the program too. */
void host_disk_request(const gs_io_request *r, bool ended);
/* While work runs: it reads or writes this host memory. */
void host_disk_access(const void *p, size_t bytes, bool write);

#endif /* GS_TESTS_CUDA_HOST_DISK_H */
