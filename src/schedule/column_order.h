/* column_order.h - in which order does a stage take its blocks of columns? Units: bytes and rows. */
#ifndef GS_SCHEDULE_COLUMN_ORDER_H
#define GS_SCHEDULE_COLUMN_ORDER_H

#include "schedule/choice.h"

/* Blocks of columns of a stage: rounds, in each of which a device has one. */
uint32_t gs_choice_blocks(const gs_choice *c, const gs_layout *l, uint32_t stage);
/* Every stage takes its blocks in store order. */
void gs_order_reset(gs_choice *c, const gs_layout *l);
/* The plan again, in the order that `c` says. GS_ENOFIT: it does not fit. */
typedef gs_status gs_order_make(gs_plan **out, void *context);
/* Plans that are made to find one, at most, for the best plan in store order. */
#define GS_ORDER_TRIES 48u
/* An order is taken where a run is shorter than this part of what it was. */
#define GS_ORDER_WORTH 0.98
/* Looks for an order of blocks with which one run of `pass` takes less time; *plan is in store order, and is replaced
 * where one is worth it. `cost`: seconds of an epoch, by which the time to look is measured; `tries`:
 * plans that are made, at the most. Says in *plan what was found. `alone`: there is no room for *plan beside another
 * one, so it is freed and made again. On failure *plan may be NULL, or as it was. */
gs_status gs_order_search(gs_plan **plan, double cost, const gs_layout *l, gs_choice *c, uint32_t pass, uint32_t tries,
                          bool alone, gs_order_make *make, void *context);

#endif /* GS_SCHEDULE_COLUMN_ORDER_H */
