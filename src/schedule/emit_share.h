/* emit_share.h - rows at the operand end come to the devices that need them. */
#ifndef GS_SCHEDULE_EMIT_SHARE_H
#define GS_SCHEDULE_EMIT_SHARE_H

#include "schedule/emitter.h"

/* Rows of the operand array `index` come to the devices that need them, whose operand units are filled: from where they
 * stay, from another device, or from the host. `needs`: [devices]. */
gs_status gs_emit__share(struct emitter *e, uint32_t index, uint32_t operand, const bool *needs);

#endif /* GS_SCHEDULE_EMIT_SHARE_H */
