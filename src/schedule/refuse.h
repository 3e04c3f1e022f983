/* refuse.h - no plan fits: which budget is too small, and what is the smallest that works? Units: bytes and rows. */
#ifndef GS_SCHEDULE_REFUSE_H
#define GS_SCHEDULE_REFUSE_H

#include "schedule/choice.h"

/* The least host memory is looked for with arenas of the least size, and twice as much, up to so many times. */
#define GS_REFUSED_ARENAS 8u

/* Of the host's memory, what devices take that compute on it. */
uint64_t gs_choice_devices_bytes(const gs_choice *c, const gs_layout *l);
/* GS_EBUDGET: says which budget is too small, and the smallest one that works. */
gs_status gs_choice_refuse(gs_choice *c, const gs_layout *l);

#endif /* GS_SCHEDULE_REFUSE_H */
