/* row_sets.h - which rows of each stage can a loss see?
 *
 * A loss touches labelled rows only: the stage that computes it runs for those, the stage before
 * it for those and what their edges name, and so on. Backward, what is 0 outside a set of rows stays within
 * what that set's edges name. A program says which stage needs what of which; this finds the sets.
 *
 * A stage may read rows of an array that no stage stored: they are 0, as the array's file or
 * memory was when it was made, and the sets are chosen so that 0 is what they should be.
 *
 * A set has one bit for each granule of rows, granules.words words an interval. Only edges
 * know which rows name which, so the caller brings a function that reads them.
 */
#ifndef GS_SCHEDULE_ROW_SETS_H
#define GS_SCHEDULE_ROW_SETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/program.h"
#include "store/chunk_table.h"

/* Rows of an interval that a stage's vertex program runs for, apart from each other by
 * at least this many: so rows of any width on either side are in different blocks of a file. */
#define GS_ROW_GAP 1024u
/* Nor are fewer than this of an interval's rows left out at either of its ends: arrays without gaps can share
 * places. */
static inline uint32_t gs_short_end(uint32_t rows) { return rows / 16 < GS_ROW_GAP ? rows / 16 : GS_ROW_GAP; }

typedef struct gs_row_run {
    uint32_t first, rows; /* within the interval */
} gs_row_run;

/* Runs of rows, interval by interval. */
typedef struct gs_row_runs {
    uint32_t *first; /* [parts + 1] into run[]; NULL: all rows */
    gs_row_run *run;
} gs_row_runs;

/* Sets are numbered; GS_ALL_ROWS is every row and has no bits. */
#define GS_ALL_ROWS 0u

typedef struct gs_row_sets {
    const gs_chunk_table *chunks;
    gs_granules granules;
    uint32_t sets, room;
    uint64_t **bits;          /* [sets][parts * granules.words], [0] is NULL */
    uint32_t stages;
    struct gs_stage_rows {
        uint32_t rows;        /* that its vertex program must run for */
        uint32_t targets;     /* whose sums are needed: within `rows` */
        uint32_t operands;    /* edges from other rows add nothing */
    } *stage;
    uint32_t *array;          /* [arrays] rows that are read and not 0: within the rows of the stage that stores it */
} gs_row_sets;

/* Marks in operands[] every row at the operand end of an edge of `direction` whose target is in `targets`. */
typedef gs_status gs_reach_fn(void *context, uint32_t direction, const uint64_t *targets, uint64_t *operands);

typedef struct gs_row_sets_config {
    const gs_program *program;
    const gs_chunk_table *chunks;
    gs_granules granules;
    const uint64_t *train;    /* rows whose loss counts */
    /* [passes] rows whose loss or accuracy a pass reports; NULL: all rows of the pass are needed. */
    const uint64_t *const *reported;
    bool few_loads;           /* stages read rows only where they change something; else wherever they run */
    const uint32_t *of_train; /* [of_trains] arrays that are 0 outside of `train`, or results there alone */
    uint32_t of_trains;
    gs_reach_fn *reach;
    void *context;
} gs_row_sets_config;

/* GS_ENOMEM, or what `reach` gave. Release with gs_row_sets_drop(). */
gs_status gs_row_sets_find(gs_row_sets *out, const gs_row_sets_config *config);
void gs_row_sets_drop(gs_row_sets *s);

/* The runs of set `id`, gaps of less than GS_ROW_GAP rows and short ends filled. first[] and run[] are the caller's to
 * free. */
gs_status gs_row_sets_runs(gs_row_runs *out, const gs_row_sets *s, uint32_t id);
/* True where a vertex program could make more of rows that were summed over some of their edges than numbers: a
 * quotient, a logarithm. Then rows beside the needed ones must be computed as if they were needed. */
bool gs_rows__unsafe(const gs_program *p);

#endif /* GS_SCHEDULE_ROW_SETS_H */
