/* extents.h - the free extents of a memory, and the lowest one that is large enough: each call in logarithmic time.
 *
 * A treap by address. Each node knows the longest extent below it (`most`), so a search leaves out what is too short.
 */
#ifndef GS_SCHEDULE_EXTENTS_H
#define GS_SCHEDULE_EXTENTS_H

#include <stdint.h>

#include "base/status.h"

#define GS_EXTENTS_NONE UINT64_MAX

typedef struct gs_extent_node {
    uint64_t at, bytes, most;
    uint32_t left, right, priority; /* 0: no child; unused nodes are linked by `right` */
} gs_extent_node;

typedef struct gs_extents {
    gs_extent_node *node; /* [0] stands for no node */
    uint32_t root, unused, random;
} gs_extents;

/* All of [0, capacity) is free. At most `taken` places are taken at the same time. GS_ENOMEM. The caller drops it. */
gs_status gs_extents_make(gs_extents *out, uint64_t capacity, uint32_t taken);
void gs_extents_drop(gs_extents *e);

/* The lowest address from `from` on at which `bytes` > 0 are free, and where that extent ends. GS_EXTENTS_NONE where
 * there is none. */
uint64_t gs_extents_find(const gs_extents *e, uint64_t from, uint64_t bytes, uint64_t *end);

/* [at, at + bytes), with bytes > 0, must be free; or, to be given back, taken. */
void gs_extents_take(gs_extents *e, uint64_t at, uint64_t bytes);
void gs_extents_give(gs_extents *e, uint64_t at, uint64_t bytes);

#endif /* GS_SCHEDULE_EXTENTS_H */
