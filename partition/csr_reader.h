/* csr_reader.h - the entries of a CSR matrix, front to back, a piece at a time.
 *
 * Three arrays: where each row begins and the last one ends, the column of each entry, and, where there is one, its
 * value. What they say is checked as it is read.
 */
#ifndef GS_PARTITION_CSR_READER_H
#define GS_PARTITION_CSR_READER_H

#include "partition/input_files.h"

typedef struct gs_csr_reader {
    const gs_part_file *indptr, *indices, *data; /* set by the caller, as are the next three */
    uint64_t rows, columns;
    const char *columns_are; /* "vertices", for errors */
    int64_t *column; /* [have] of entries from `from` on */
    float *value;    /* [have] the same, if they were asked for */
    uint64_t from, have;
    int64_t *end;    /* [ends] indptr from `first_end` on */
    uint64_t first_end, ends;
    void *raw;
    uint64_t piece;
} gs_csr_reader;

/* Room for `piece` entries at a time. gs_csr__free() frees it, also after GS_ENOMEM. */
gs_status gs_csr__alloc(gs_csr_reader *r, uint64_t piece, const char *path);
void gs_csr__free(gs_csr_reader *r);

/* *at = indptr[row], for row from 0 to `rows`, each `before` or more: where the row begins or, for `rows`, the last one
 * ends. */
gs_status gs_csr__bound(gs_csr_reader *r, uint64_t row, uint64_t before, uint64_t *at);
/* The entries from `at` on come to column[] and, with `values`, to value[]. */
gs_status gs_csr__entries(gs_csr_reader *r, uint64_t at, bool values);
/* value[0 .. count) = the values from `at` on. */
gs_status gs_csr__values(gs_csr_reader *r, uint64_t at, uint64_t count);

#endif /* GS_PARTITION_CSR_READER_H */
