/* spread.h - rows of an array that devices keep: those of a bound graph are picked on its device before a pass.
 *
 * Behind the pieces of a bound graph its device has, each from a whole block on: the place of each row of the graph, a
 * buffer for rows that the host sends, and the rows that this device keeps.
 */
#ifndef GS_EXEC_SPREAD_H
#define GS_EXEC_SPREAD_H

#include "exec/exec_run.h"

/* Where a device's part of that is, from `memory` on. */
void gs_exec__lay_spread(gs_exec *e, const gs_exec_config *c, uint8_t *memory);
/* Bytes of it. */
uint64_t gs_exec__spread_bytes(const gs_exec_config *c);

/* Begins a copy to the device of a bound graph, which is counted; and waits for all of them. */
gs_status gs_exec__send(gs_exec *e, void *to, const void *from, uint64_t bytes);
gs_status gs_exec__wait_sent(gs_exec *e);

/* The bound graph's rows come to where a pass finds them. Waits for copies, not for what picks the last of them. */
gs_status gs_exec__copy_in_spread(gs_exec *e);

#endif /* GS_EXEC_SPREAD_H */
