/* batch_options.h - what do the options say of batches, and does it go with the others? */
#ifndef GS_TRAIN_BATCH_OPTIONS_H
#define GS_TRAIN_BATCH_OPTIONS_H

#include "gnnstream.h"
#include "sample/sampler.h"

/* Do the options ask for batches? */
bool gs_train_on_batches(const gs_train_options *o);
/* .batches_per_step, or its default. */
uint32_t gs_batches_per_step_of(const gs_train_options *o);

/* GS_EINVAL names the field: what speaks of batches, and what does not go with them. */
gs_status gs_batch_options_check(const gs_train_options *o);
/* Those of the sampler, of options that ask for batches and were checked. */
gs_status gs_batch_options_read(gs_sampler_options *out, const gs_train_options *o);

#endif /* GS_TRAIN_BATCH_OPTIONS_H */
