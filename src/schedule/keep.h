/* keep.h - what stays in memory between tasks, the host's and devices'. */
#ifndef GS_SCHEDULE_KEEP_H
#define GS_SCHEDULE_KEEP_H

#include "schedule/choice.h"

/* Fills kept_*[] greedily, most bytes saved an epoch for each byte held first, within
 * `bytes`. Returns true where everything that is ever read or written is kept. */
bool gs_choice_keep(gs_choice *c, const gs_layout *l, uint64_t bytes);

/* What stays in devices' memory? Units: bytes and rows. */

/* Units of a memory: intervals of arrays, then chunks of sets. */
uint32_t gs_layout_units(const gs_layout *l);
/* Bytes of a unit in a device's memory. */
uint64_t gs_layout_unit_bytes(const gs_layout *l, uint32_t unit);
/* May copies of it stay? Not of rows that the edge passes of several devices add to, one after the other. */
bool gs_layout_unit_stays(const gs_layout *l, uint32_t unit);
/* Begins anew: nothing is listed, nothing stays. */
gs_status gs_device_cache_begin(gs_choice *c, const gs_layout *l);
/* Plans which units of the listed accesses stay, within `least` bytes of each device and the bytes that some have
 * beyond those. */
gs_status gs_device_cache_plan(gs_choice *c, const gs_layout *l, uint64_t least);
/* Nothing stays; accesses stay listed. */
void gs_device_cache_drop_plan(gs_choice *c, const gs_layout *l);
void gs_device_cache_drop(gs_choice *c);

#endif /* GS_SCHEDULE_KEEP_H */
