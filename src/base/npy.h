/* npy.h - NumPy's .npy files, versions 1 to 3, C order, little-endian.
 *
 * A header is read and checked against the real size of the file, so shape
 * and type can be trusted afterwards; data is read by the caller in pieces.
 */
#ifndef GS_BASE_NPY_H
#define GS_BASE_NPY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/outfile.h"
#include "base/status.h"

typedef struct gs_npy {
    gs_dtype dtype;
    uint32_t dims;        /* 1 or 2 */
    uint64_t shape[2];    /* shape[1] is 1 for dims == 1 */
    uint64_t data_offset; /* bytes from the start of the file */
    uint64_t data_bytes;
    bool truth;           /* of NumPy's bool; dtype is u8 then */
    int fd;               /* owned; -1 when closed */
} gs_npy;

/* Opens `path`, parses and checks the header. GS_ENOTFOUND, GS_EFORMAT
 * (not .npy, Fortran order, unknown type, more than 2 dimensions, shorter than
 * its shape says), GS_EIO. Close with gs_npy_close() (also on a zeroed or
 * never-opened struct with fd == -1). */
gs_status gs_npy_open(gs_npy *out, const char *path);
/* The same for an array that is `bytes` bytes of `file` from `offset`, as an uncompressed member of an archive is
 * (UINT64_MAX: to the end of the file); `path` names it in messages. Takes arrays in Fortran order, too: *transposed
 * says so, and what is given is the transpose, in C order. */
gs_status gs_npy_open_any_order(gs_npy *out, bool *transposed, const char *file, uint64_t offset, uint64_t bytes,
                                const char *path);
void gs_npy_close(gs_npy *npy);

/* `rows` rows from `first_row` as they are in the file. */
gs_status gs_npy_read_rows(const gs_npy *npy, void *dst, uint64_t first_row, uint64_t rows, const char *path);

/* Begins an output (base/outfile.h) with a version-1 header for [rows, cols] (cols == 0: one dimension) padded so that
 * data starts at a multiple of 64; `*data_offset` is where. A file is given its full size at once (ENOSPC shows here).
 * The caller writes the data and finishes the output. */
gs_status gs_npy_create(gs_outfile *o, uint64_t *data_offset, const char *path, gs_dtype dtype, uint64_t rows,
                        uint64_t cols);

#endif /* GS_BASE_NPY_H */
