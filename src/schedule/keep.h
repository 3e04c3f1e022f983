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

/* -- when is something in memory, and where? Units: bytes and rows. */

/* When each array of the run is there, with the blocks that there are. */
void gs_liveness_find(gs_choice *c, const gs_layout *l);
/* Nothing has a place. */
void gs_liveness_begin(gs_choice *c, const gs_layout *l);
/* How many of `bytes` a file can have below `limit`. */
uint64_t gs_liveness_room(const gs_choice *c, const gs_layout *l, uint32_t file, uint64_t bytes, uint64_t limit);
/* The file gets the lowest place with so many. */
void gs_liveness_settle(gs_choice *c, const gs_layout *l, uint32_t file, uint64_t bytes);
/* Places everything that is kept anew, in little memory: what is always there first, then the largest. */
void gs_liveness_pack(gs_choice *c, const gs_layout *l);
/* Is anything else ever where the array's kept rows are? */
bool gs_liveness_is_shared(const gs_choice *c, const gs_layout *l, uint32_t array);
/* Where in the run's file each array has what is not kept of it, and how much that is; returns the file's size. */
uint64_t gs_liveness_spill(uint64_t *first, uint64_t *bytes, const gs_choice *c, const gs_layout *l);

#endif /* GS_SCHEDULE_KEEP_H */
