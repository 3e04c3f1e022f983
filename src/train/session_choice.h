/* session_choice.h - which of a model's programs is run?
 *
 * A model is compiled in several ways. Each way has a session of its own until one is chosen; of those that are not,
 * figures are kept. One thread.
 */
#ifndef GS_TRAIN_SESSION_CHOICE_H
#define GS_TRAIN_SESSION_CHOICE_H

#include "train/session.h"

/* How a model is compiled (compile.h), and why so. */
typedef struct gs_variant {
    gs_taken recompute, lean, batch;
} gs_variant;

/* What a session is opened for. */
typedef struct gs_opening {
    const char *store;
    const gs_train_options *options;
    gs_purpose purpose;
    bool logits;
} gs_opening;

/* session.c: a session with everything but a plan. */
gs_status gs_session_prepare(gs_session **out, const gs_opening *o, gs_variant variant);

/* A session with the plan that is to be run. While it is looked for, the process keeps the host's budget.
 * `process_bytes`: gs_session_open_after(). Errors as gs_session_open(). */
gs_status gs_session_choose(gs_session **out, const gs_opening *o, uint64_t process_bytes);

#endif /* GS_TRAIN_SESSION_CHOICE_H */
