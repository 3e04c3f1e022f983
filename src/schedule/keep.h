/* keep.h - what stays in host memory for good? Units: bytes and rows. */
#ifndef GS_SCHEDULE_KEEP_H
#define GS_SCHEDULE_KEEP_H

#include "schedule/choice.h"

/* Fills kept_*[] greedily, most bytes saved an epoch for each byte held first, within
 * `bytes`. Returns true where everything that is ever read or written is kept. */
bool gs_choice_keep(gs_choice *c, const gs_layout *l, uint64_t bytes);

#endif /* GS_SCHEDULE_KEEP_H */
