/* options.h - what options has the caller given, and are they ones that a run can be made of? */
#ifndef GS_TRAIN_OPTIONS_H
#define GS_TRAIN_OPTIONS_H

#include "base/status.h"
#include "gnnstream.h"
#include "sample/sampler.h"

/* The options of a caller of any version, with the defaults of what its struct does not have. Strings are the caller's.
 * GS_EINVAL as gs_options_take(). */
gs_status gs_train_options_read(gs_train_options *out, const gs_train_options *given);

/* GS_EINVAL names the field and its range. */
gs_status gs_train_options_check(const gs_train_options *o);

/* Reads and checks; strings are copied to *texts, to be freed with gs_free() also after a failure. */
gs_status gs_train_options_own(gs_train_options *out, char **texts, const gs_train_options *given);

/* What do the options say of batches, and does it go with the others? */

/* Do the options ask for batches? */
bool gs_train_on_batches(const gs_train_options *o);
/* .batches_per_step, or its default. */
uint32_t gs_batches_per_step_of(const gs_train_options *o);

/* Those of the sampler, of options that ask for batches and were checked. */
gs_status gs_batch_options_read(gs_sampler_options *out, const gs_train_options *o);

#endif /* GS_TRAIN_OPTIONS_H */
