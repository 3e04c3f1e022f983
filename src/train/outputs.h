/* outputs.h - may a run write there? Not over what it reads, a part of a store, another of its outputs, or among its
 * checkpoints.
 *
 * Asked before anything is written, by what paths mean (base/place.h), not by how they are written.
 */
#ifndef GS_TRAIN_OUTPUTS_H
#define GS_TRAIN_OUTPUTS_H

#include "base/status.h"
#include "gnnstream.h" /* gs_train_options, gs_run_kind */

/* Every file that the options name, against all that a run of `kind` on `store` reads and against each other: GS_EINVAL
 * names both. */
gs_status gs_outputs_check(const gs_train_options *o, gs_run_kind kind, const char *store);

/* One file more, `path`, against what such a run reads. */
gs_status gs_outputs_check_one(const gs_train_options *o, gs_run_kind kind, const char *store, const char *path);

#endif /* GS_TRAIN_OUTPUTS_H */
