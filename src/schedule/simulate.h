/* simulate.h - how long will an epoch of this plan take, and what will it wait for?
 *
 * The lane machine driven with the times of a cost model, for any number of devices. One disk moves what was submitted,
 * in order; one thread submits, verifies what arrived and computes, or each lane of each device has a thread and copies
 * share the links of their switch. Where the pass's first reads are made in the run before, two runs are played and the
 * second one is reported. Nothing is read, nothing computed. Units: seconds, bytes.
 */
#ifndef GS_SCHEDULE_SIMULATE_H
#define GS_SCHEDULE_SIMULATE_H

#include "base/status.h"
#include "cost/cost.h"
#include "plan/plan.h"
#include "program/program.h"
#include "store/chunk_table.h"
#include "topology/topology.h"

/* Adds what a vertex program's instructions and rows amount to, for so many rows. */
void gs_vertex_work(gs_work *w, const gs_program *program, const gs_stage *s, double rows);
/* What a row of a stage's vertex program amounts to, and an edge of its edge program. */
typedef struct gs_stage_work {
    gs_work row, edge;
} gs_stage_work;

void gs_stage_work_find(gs_stage_work *out, const gs_program *program, const gs_stage *s);
/* The work of a compute task of the stage that `of` is of, which is asked for by the hundred thousand. */
void gs_task_work_by(gs_work *out, const gs_program *program, const gs_stage_work *of, const gs_edge_set *set,
                     uint32_t parts, const gs_task *t);
/* The work of a compute task. `set`: the run's edge sets, of `parts` by `parts` chunks. */
void gs_task_work(gs_work *out, const gs_program *program, const gs_edge_set *set, uint32_t parts, const gs_task *t);

typedef struct gs_simulation_input {
    const gs_plan *plan;
    const gs_program *program;
    const gs_edge_set *set; /* the run's edge sets, of `parts` by `parts` chunks */
    uint32_t parts;
    const gs_cost *cost;
    const gs_topology *topology; /* of plans for several devices */
    uint32_t pass;
    bool together;           /* chunks that are ready together are one launch: of devices with memory of their own */
    const gs_cost *host_cost; /* as in gs_schedule_config */
} gs_simulation_input;

/* GS_ENOMEM. */
gs_status gs_simulate(gs_predicted *out, const gs_simulation_input *in);

#endif /* GS_SCHEDULE_SIMULATE_H */
