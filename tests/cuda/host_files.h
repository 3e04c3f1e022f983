/* host_files.h - cuFile for the GPUs of host_gpu.h: a table whose reads put a file's bytes into a GPU's memory.
 *
 * A request is work in a stream of its own (host_streams.h), done as late as the rules of cuFile's batches allow: when
 * somebody waits for it, or asks a second time. So the check of races sees it: a kernel or copy at the same bytes must
 * have been waited for before the request is handed over, or be asked for after it has come back. What cuFile would
 * send through buffers of its own ends the program: an offset, a length or a place that is no multiple of 4 KiB.
 *
 *   $GS_HOST_CUFILE   what is wrong, "KIND" or "KIND:N":
 *     "none"          there is no library (of the table that a program is given)
 *     "driver"        the driver nvidia-fs is not loaded
 *     "file"          no file is on a file system that it supports
 *     "batch"         it makes no batches
 *     "memory"        it cannot map the GPU's memory: reads go by buffers of its own
 *     "short:N"       the N-th request brings half of its bytes (in whole blocks), and so does each after it
 *     "end:N"         the N-th request brings nothing, as at the end of a file
 *     "error:N"       the N-th request fails with EIO
 *     "lost:N"        the N-th look at a batch fails
 *     "bits:N"        the N-th request brings one bit that is another
 *   $GS_HOST_CUFILE_COUNTS  a file that says in the end how many requests and bytes there were
 */
#ifndef GS_TESTS_CUDA_HOST_FILES_H
#define GS_TESTS_CUDA_HOST_FILES_H

#include "cuda/file_library.h"

/* NULL: "none". */
const gs_cufile *host_files(void);

#endif /* GS_TESTS_CUDA_HOST_FILES_H */
