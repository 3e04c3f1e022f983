/* plan_sim_internal.h - the two halves of the pretend machine: plan_sim.c computes, plan_sim_lanes.c runs lanes and
 * moves bytes. */
#ifndef GS_TESTS_PLAN_SIM_INTERNAL_H
#define GS_TESTS_PLAN_SIM_INTERNAL_H

#include "plan/lanes.h"
#include "plan_sim.h"

struct sim {
    const gs_plan *plan;
    const gs_schedule_config *cfg;
    const gs_program *p;
    gs_lanes lanes;
    uint8_t *region[GS_REGION_COUNT]; /* ARENA: of the device that runs a task */
    uint8_t *arena[GS_PLAN_DEVICES];
    uint64_t copied[3];   /* of the run so far: by UPLOAD, FORWARD, DOWNLOAD */
    bool *stored;         /* [arrays, vertices]: is the row stored by a stage? */
    uint8_t *spill;       /* contents of the run's file */
    uint32_t rng;
    uint64_t read_bytes, loaded_bytes, rows; /* of the run so far: rows of vertex programs */
    uint64_t lasting;     /* bit of an array that a pass "setup" makes, the same for all that follow */
    uint32_t run;         /* bytes of arrays of the run differ from run to run */
    uint32_t stage;       /* of the last vertex task, and the rows that the stage has done */
    uint64_t stage_rows;
    uint32_t fly[64], flying; /* transfers under way */
    bool busy[GS_PLAN_LANES]; /* copies of a lane follow each other */
    uint64_t ahead_bytes; /* that have come of what is read ahead of the next run */
    uint64_t complete;    /* bit of a stage whose statistics are there */
    /* of a rank's part of a plan */
    struct sim *ranks;    /* all of them; NULL: this is a whole plan */
    const gs_part_rows *dealt; /* rows of the store that one rank alone has; NULL: none */
    struct sim_message *in[GS_PLAN_DEVICES]; /* from each rank, what was sent and not received, oldest first */
};

struct sim_message {
    struct sim_message *next;
    uint64_t bytes;
    uint8_t data[];
};

static inline void *place(struct sim *s, gs_place at) { return s->region[at.region] + at.offset; }

uint32_t plan_sim__next(struct sim *s);
/* What an array (`at` counted through all rows) or an edge file holds: n bytes from byte `at` on. */
void plan_sim__bytes_of(const struct sim *s, uint32_t file, uint64_t at, uint64_t n, uint8_t *to);
/* The same of the disk of a rank, which has other bytes in the place of rows that are another's. */
void plan_sim__disk_bytes_of(const struct sim *s, uint32_t file, uint64_t at, uint64_t n, uint8_t *to);
void plan_sim__run_compute(struct sim *s, uint32_t index);
/* All tasks of the pass, in a random legal order; where the same pass runs `again` next, some of its first reads
 * too. */
void plan_sim__run_once(struct sim *s, uint32_t pass, bool again);
/* The same of all parts of a plan, by turns. */
void plan_sim__run_parts(struct sim *ranks, uint32_t pass);

#endif /* GS_TESTS_PLAN_SIM_INTERNAL_H */
