/* fault.h - a pass came to numbers that are not finite: where did the first of them appear? */
#ifndef GS_SESSION_FAULT_H
#define GS_SESSION_FAULT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct gs_session gs_session;

#define GS_FAULT_TEXT 384

/* Runs the pass once more, of the parameters as they are, and looks at every array: as long as an epoch or longer.
 * Then, of a training pass, at the gradients that the host has. `text`, of GS_FAULT_TEXT bytes, gets "layer 1, array
 * train.layer1.h (stage train 2: ...), column 3, of parameter convs.1.lin.weight"; "" where nothing is found. What
 * fails on the way only makes it that. */
void gs_session_find_fault(gs_session *s, uint32_t pass, uint32_t epoch, char *text);
/* Of an error GS_EDEVICE of logits, which are not finite: where that began. Other errors stay. */
gs_status gs_session_explain_logits(gs_session *s, gs_status st);
/* "layer 1, ": what a name tells of it ("train.layer1.h", "convs.1.bias"); else "". */
const char *gs_session_layer_of(const char *name, char *buf, size_t bytes);

#endif /* GS_SESSION_FAULT_H */
