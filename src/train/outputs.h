/* outputs.h - may a run write there? Not over what it reads, a part of a store, another of its outputs, a graph that a
 * store was made from, a file of another kind, or among its checkpoints.
 *
 * Asked before anything is written, by what paths mean (base/file.h), not by how they are written.
 */
#ifndef GS_TRAIN_OUTPUTS_H
#define GS_TRAIN_OUTPUTS_H

#include <stdint.h>

#include "base/outfile.h"
#include "base/status.h"
#include "gnnstream.h" /* gs_train_options, gs_run_kind */
#include "store/store.h"

typedef enum gs_file_kind {
    GS_FILE_KIND_TEXT,
    GS_FILE_KIND_JSON,
    GS_FILE_KIND_NPY,
    GS_FILE_KIND_SAFETENSORS,
} gs_file_kind;

/* Every file that the options name, against all that a run of `kind` on `store` reads and against each other: GS_EINVAL
 * names both. */
gs_status gs_outputs_check(const gs_train_options *o, gs_run_kind kind, const char *store);

/* One file more, `path`, against what such a run reads. */
gs_status gs_outputs_check_one(const gs_train_options *o, gs_run_kind kind, const char *store, const char *path,
                               gs_file_kind output);

/* The logits array as a .npy file in the order of the input.
 *
 * Rows are computed in store order and wanted in input order, a permutation
 * with no locality, and neither side may have to fit in memory. So rows are
 * dealt into a scratch file by window of input ids (every window's size is
 * known beforehand), and each window is put in order in memory and written at
 * once: two sequential passes. Where one window holds everything there is no
 * scratch file. Units: rows, bytes.
 */

/* Gives rows [first, first + rows) in store order, f32. */
typedef gs_status (*gs_logits_source)(void *context, uint64_t first, uint64_t rows, float *dst);

/* How a row is written. */
typedef enum gs_logits_form {
    GS_LOGITS_AS_THEY_ARE,
    GS_LOGITS_ROWS, /* of no logits: the same, and they need not be finite */
    GS_LOGITS_SOFTMAX,
    GS_LOGITS_SIGMOID, /* of each by itself */
    GS_LOGITS_ARGMAX,  /* int64, one: the column of the largest, the first of equals */
} gs_logits_form;

typedef struct gs_logits_job {
    const gs_store *store;   /* for the input ids and the number of rows */
    uint32_t classes;
    gs_logits_form form;
    uint64_t memory;         /* for buffers; what does not work at all is raised */
    const char *scratch_dir; /* folder for the scratch file, which has no name */
    gs_logits_source source;
    void *context;
    const volatile int *stop; /* may be NULL */
    uint64_t first, rows;    /* input ids that rows are wanted of: `rows` from `first` on; rows 0: all */
} gs_logits_job;

/* Whose logits are written: the vertices of the type that has labels, or all, the first and how many. */
void gs_logits_range(uint64_t *first, uint64_t *rows, const gs_store *store);

/* Fills what gs_npy_create() began, [rows, classes] or of ARGMAX [rows], from its first row on.
 * GS_EFORMAT names the store's file where input ids are damaged or are no permutation. */
gs_status gs_logits_write(gs_outfile *o, uint64_t data_offset, const gs_logits_job *job);

/* The same into `out`, [rows, classes] of the caller's memory, but for ARGMAX; scratch_dir is not used. */
gs_status gs_logits_place(float *out, const gs_logits_job *job);

#endif /* GS_TRAIN_OUTPUTS_H */
