/* liveness.h - when is something in memory, and where? Units: bytes and rows. */
#ifndef GS_SCHEDULE_LIVENESS_H
#define GS_SCHEDULE_LIVENESS_H

#include "schedule/choice.h"

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

#endif /* GS_SCHEDULE_LIVENESS_H */
