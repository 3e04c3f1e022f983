/* options.h - are these options ones that a run can be made of? */
#ifndef GS_TRAIN_OPTIONS_H
#define GS_TRAIN_OPTIONS_H

#include "base/status.h"
#include "gnnstream.h"

/* GS_EINVAL names the option as the command line spells it and its range. */
gs_status gs_train_options_check(const gs_train_options *o);

#endif /* GS_TRAIN_OPTIONS_H */
