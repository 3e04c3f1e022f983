/* checkpoint_options.h - the options that change numbers: a checkpoint is of a run with these, and no other goes on
 * from it. All others may differ; which of those keep bits is on docs/design/results.md. */
#ifndef GS_TRAIN_CHECKPOINT_OPTIONS_H
#define GS_TRAIN_CHECKPOINT_OPTIONS_H

#include "gnnstream.h"
#include "train/checkpoint_text.h"

/* .keep_by of a checkpoint that was written before there was such an option: accuracy, micro_f1 or mse, by the task. */
#define GS_KEPT_BEFORE "before"

/* Names and kinds, without values: what a text is read into. */
void gs_checkpoint_list_options(gs_checkpoint *c);
/* With the run's values. */
void gs_checkpoint_take_options(gs_checkpoint *c, const gs_train_options *o);
/* The option of that name. */
gs_checkpoint_option *gs_checkpoint_find_option(gs_checkpoint *c, const char *name);
/* GS_EINVAL names the field that differs, and both values. `path`: the checkpoint, for the message. */
gs_status gs_checkpoint_match_options(const gs_checkpoint *c, const gs_train_options *o, const char *path);

#endif /* GS_TRAIN_CHECKPOINT_OPTIONS_H */
