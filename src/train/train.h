/* train.h - gs_train() for a caller in this room that had a session of its own before. */
#ifndef GS_TRAIN_TRAIN_H
#define GS_TRAIN_TRAIN_H

#include <stdint.h>

#include "base/status.h"
#include "gnnstream.h" /* gs_train_options, gs_train_report */
#include "session/session.h"

/* The session of a training run with these options, which have passed gs_train_options_check(). `process_bytes`:
 * gs_session_config. Errors as gs_session_open(). */
gs_status gs_train_open(gs_session **out, const char *store, const gs_train_options *options, uint64_t process_bytes);

/* As gs_train(). `process_bytes`: what the process held when the first of its sessions was opened
 * (gs_session.memory.process), before libraries touched any of what they are allowed; 0: it is opened now. */
gs_status gs_train_after(const char *store, const gs_train_options *options, uint64_t process_bytes,
                         gs_train_report *report);

#endif /* GS_TRAIN_TRAIN_H */
