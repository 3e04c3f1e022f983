/* runs.h - bytes of units as the disk is asked for them: extents, and runs of needed rows. */
#ifndef GS_SCHEDULE_RUNS_H
#define GS_SCHEDULE_RUNS_H

#include <stdint.h>

#include "base/status.h"
#include "schedule/layout.h"

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
/* The highest address at which `bytes` are free below `until`, or GS_EXTENTS_NONE. */
uint64_t gs_extents_find_last(const gs_extents *e, uint64_t until, uint64_t bytes);
void gs_extents_take(gs_extents *e, uint64_t at, uint64_t bytes);
void gs_extents_give(gs_extents *e, uint64_t at, uint64_t bytes);

/* Which parts of an interval are read or copied? Units: bytes and rows. */

/* Marks in mask[granules.words] the granules of operand interval `operand` that edges of `stage` into
 * target intervals [first, first + count) need. False where it cannot be told: all of them. */
bool gs_runs_need(uint64_t *mask, const gs_layout *l, uint32_t stage, uint32_t first, uint32_t count, uint32_t operand);
/* The same of rows one by one, in mask[needs.rows.words]. */
bool gs_runs_need_rows(uint64_t *mask, const gs_layout *l, uint32_t stage, uint32_t first, uint32_t count,
                       uint32_t operand);

/* An interval's rows as they stand in an extent of a file: row r at byte `skip` + r * `row`. */
typedef struct gs_run_extent {
    uint64_t bytes, skip, row;
    uint32_t rows;
    uint64_t unit; /* of what can be read: a block, or what one checksum covers */
    double bps, request_seconds; /* 0: the disk's */
} gs_run_extent;

/* Chooses the runs to read so that the masked rows come in the least time: gaps are read through where a request costs
 * more. Fills run[] (of `room`, which is enough when it is extent.bytes / unit + 1) and returns the bytes of all;
 * *runs is 0 where the whole extent in one read is best. */
uint64_t gs_runs_choose(gs_block_run *run, uint32_t room, uint32_t *runs, const gs_layout *l,
                        const gs_run_extent *extent, const uint64_t *mask);

#endif /* GS_SCHEDULE_RUNS_H */
