/* model_of.h - the model that options ask for, as it runs.
 *
 * The only place where options become a text: what is trained, checked, printed and written into files is what this
 * opens, with .norm, .jk, .residual, .act_first and .set in the text itself (model/model.h, gs_model_text()).
 */
#ifndef GS_SESSION_MODEL_OF_H
#define GS_SESSION_MODEL_OF_H

#include <stdbool.h>

#include "gnnstream.h"
#include "model/model.h"

/* The caller closes *out with gs_model_close(). Errors as gs_model_open_changed(); .layers and .hidden are checked by
 * then. */
gs_status gs_session_open_model(gs_model **out, const gs_train_options *o);

/* Is anything else asked of the text than what it says: around its layers, or of its constants? */
bool gs_session_model_changed(const gs_train_options *o);

#endif /* GS_SESSION_MODEL_OF_H */
