/* deal.h - which device has which target intervals of a stage? Units: bytes and rows. */
#ifndef GS_SCHEDULE_DEAL_H
#define GS_SCHEDULE_DEAL_H

#include "schedule/choice.h"

/* 1 where there is no topology. */
uint32_t gs_layout_devices(const gs_layout *l);
/* Is the device's memory a part of the host's? */
bool gs_layout_on_host(const gs_layout *l, uint32_t device);
/* Number of devices that compute on host memory. */
uint32_t gs_layout_host_devices(const gs_layout *l);
/* Fills c->deal: runs of target intervals of about equal predicted seconds, stage by stage. */
gs_status gs_choice_deal(gs_choice *c, const gs_layout *l);
/* Intervals that the device with most of them has in the stage. */
uint32_t gs_choice_longest(const gs_choice *c, const gs_layout *l, uint32_t stage);

#endif /* GS_SCHEDULE_DEAL_H */
