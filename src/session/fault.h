/* fault.h - a pass came to numbers that are not finite: where did the first of them appear? */
#ifndef GS_SESSION_FAULT_H
#define GS_SESSION_FAULT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct gs_session gs_session;

#define GS_FAULT_TEXT 640

/* Runs the pass once more with the parameters as they are, and looks at every array, which takes as long as an epoch or
 * longer; after a training pass it looks at the gradients that the host has, too. `text`, of GS_FAULT_TEXT bytes, gets
 * "layer 1, array train.layer1.h (stage train 2: ...), column 3, of parameter convs.1.lin.weight, at vertex 7 by a
 * division by 0: of 1, 0", or "" where nothing is found, or the search itself fails. */
void gs_session_find_fault(gs_session *s, uint32_t pass, uint32_t epoch, char *text);
/* To GS_EDEVICE, which says that logits are not finite, adds where that began. Returns other statuses as they are. */
gs_status gs_session_explain_logits(gs_session *s, gs_status st);
/* "layer 1, " where the name has a layer in it ("train.layer1.h", "convs.1.bias"), or "". */
const char *gs_session_layer_of(const char *name, char *buf, size_t bytes);

#endif /* GS_SESSION_FAULT_H */
