/* typed_plan.h - which steps do a stage's products of edges by the matrix of their type take, and how much memory?
 *
 * A launch's edges are taken a portion at a time. The portion is put in order by type; then come the steps, and then
 * the stage's own kernels go over the portion's edges and find what was made of each in tables, which have a row for
 * each edge of a portion, in the order of types.
 */
#ifndef GS_CUDA_TYPED_PLAN_H
#define GS_CUDA_TYPED_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/program.h"

#define GS_TYPED_STEPS 32
#define GS_TYPED_TABLES 32

typedef enum gs_typed_step_kind {
    GS_TYPED_KEEP,      /* register x of every edge to its table */
    GS_TYPED_MULTIPLY,  /* table y = rows x by the matrices `param` (or by their transposes) */
    GS_TYPED_ADD_OUTER, /* gradient of `param` += outer products of rows x and y */
} gs_typed_step_kind;

typedef struct gs_typed_step {
    gs_typed_step_kind kind;
    bool transposed;
    uint32_t x, y, param; /* registers of edges */
} gs_typed_step;

typedef struct gs_typed_table {
    uint32_t reg, column; /* floats an edge of the tables before it */
} gs_typed_table;

typedef struct gs_typed_plan {
    uint32_t stage, types;
    uint32_t steps, tables;
    gs_typed_step step[GS_TYPED_STEPS];
    gs_typed_table table[GS_TYPED_TABLES];
    uint32_t columns;  /* of all tables, of an edge */
    uint64_t numbers;  /* of the largest matrix that has a gradient; 0: none */
} gs_typed_plan;

/* The steps of a stage that gs_stage_has_typed(). GS_EUNSUPPORTED: too many. */
gs_status gs_typed_plan_stage(gs_typed_plan *b, const gs_program *p, uint32_t stage);
/* gs_typed_table.column of this register; GS_NONE: it has no table. */
uint32_t gs_typed_column(const gs_typed_plan *b, uint32_t reg);

#endif /* GS_CUDA_TYPED_PLAN_H */
