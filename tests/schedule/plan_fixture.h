/* plan_fixture.h - a program with every shape of stage, and chunks of made-up sizes, for tests of plans. */
#ifndef GS_TESTS_PLAN_FIXTURE_H
#define GS_TESTS_PLAN_FIXTURE_H

#include "plan/plan.h"
#include "schedule/schedule.h"

enum { FEATURES, DEGREE, SPLIT, Y, H, G, ARRAYS };

struct fixture {
    gs_program p;
    gs_array array[ARRAYS];
    gs_stage stage[5];
    gs_pass pass[2];
    gs_param param[1];
    gs_reg reg[5][8];
    gs_instr instr[5][8];
    gs_edge_reg edge_reg[4];
    gs_edge_reg row_reg[4][2 * GS_ROW_SUM_REGS]; /* of stages that sum rows alone */
    gs_instr product[4][2];
    gs_chunk_table chunks;
    gs_chunk *chunk[2];
    gs_edge_set set[2];
    gs_granules granules;
    gs_row_runs rows[5], held[ARRAYS];
    gs_chunk *pruned[2];
};

/* Stages of every shape. */
void fixture_program(struct fixture *f, uint32_t features, uint32_t hidden);
/* Chunks of random sizes, a third of them empty. */
void fixture_chunks(struct fixture *f, uint64_t vertices, uint32_t parts, bool shared, uint32_t seed);
/* Rows that each chunk needs: a few granules, in clumps. One in `sparse` clumps is needed. */
void fixture_needs(struct fixture *f, uint32_t sparse, uint32_t seed);
/* Every stage runs for the same rows: up to three runs an interval, none in some. What chunks need is within. Of those
 * rows of Y and H that stages make some are 0 (`held`: the others). */
void fixture_rows(struct fixture *f, uint32_t seed);
void fixture_drop(struct fixture *f);
gs_schedule_config fixture_config(const struct fixture *f, uint64_t host, uint64_t device);
/* What chunks need, as fixture_needs() has made it. */
void fixture_take_needs(gs_schedule_config *c, const struct fixture *f);
/* And single rows of those granules: the first, and about one in `share`. */
void fixture_take_rows(struct fixture *f, gs_schedule_config *c, uint32_t share, uint32_t seed);
/* The plan's own sums of memory are within the budgets. */
void fixture_within(const gs_plan *p, const gs_schedule_config *c);

#endif /* GS_TESTS_PLAN_FIXTURE_H */
