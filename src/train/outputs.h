/* outputs.h - may a run write there? Not over what it reads, a part of a store, another of its outputs, a graph that a
 * store was made from, a file of another kind, or among its checkpoints.
 *
 * Asked before anything is written, by what paths mean (base/file.h), not by how they are written.
 */
#ifndef GS_TRAIN_OUTPUTS_H
#define GS_TRAIN_OUTPUTS_H

#include "base/status.h"
#include "gnnstream.h" /* gs_train_options, gs_run_kind */

typedef enum gs_file_kind {
    GS_FILE_KIND_TEXT,
    GS_FILE_KIND_JSON,
    GS_FILE_KIND_NPY,
    GS_FILE_KIND_SAFETENSORS,
} gs_file_kind;

/* Checks a file that stands at `path`, where there is one: GS_EEXIST where its first bytes are not of that kind (an
 * empty one is of any); GS_EINVAL where it is an array of a graph, beside the graph's edges; GS_EIO. `option` may be
 * "". */
gs_status gs_output_check_kind(const char *option, const char *path, gs_file_kind kind);

/* Every file that the options name, against all that a run of `kind` on `store` reads and against each other: GS_EINVAL
 * names both. */
gs_status gs_outputs_check(const gs_train_options *o, gs_run_kind kind, const char *store);

/* One file more, `path`, against what such a run reads. */
gs_status gs_outputs_check_one(const gs_train_options *o, gs_run_kind kind, const char *store, const char *path,
                               gs_file_kind output);

#endif /* GS_TRAIN_OUTPUTS_H */
