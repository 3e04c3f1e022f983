/* runs.h - which parts of an interval are read or copied? Units: bytes and rows. */
#ifndef GS_SCHEDULE_RUNS_H
#define GS_SCHEDULE_RUNS_H

#include "schedule/layout.h"

/* Marks in mask[granules.words] the granules of operand interval `operand` that edges of `stage` into
 * target intervals [first, first + count) need. False where it cannot be told: all of them. */
bool gs_runs_need(uint64_t *mask, const gs_layout *l, uint32_t stage, uint32_t first, uint32_t count, uint32_t operand);

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
