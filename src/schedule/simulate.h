/* simulate.h - how long a plan takes, by what is known of devices and links. */
#ifndef GS_SCHEDULE_SIMULATE_H
#define GS_SCHEDULE_SIMULATE_H

#include "base/size.h"
#include "base/status.h"
#include "cost/cost.h"
#include "plan/links.h"
#include "plan/plan.h"
#include "program/program.h"
#include "schedule/layout.h"
#include "store/chunk_table.h"
#include "topology/topology.h"

/* The costs of a device: `host_cost`, where it is given, for one on host memory among others that are not. `t` may be
 * NULL. */
const gs_cost *gs_cost_on(const gs_cost *cost, const gs_cost *host_cost, const gs_topology *t, uint32_t device);
/* From the host to a device. */
static inline gs_plan_link gs_link_to(uint32_t device) { return (gs_plan_link){GS_HOST, GS_DEVICE_MEMORIES + device}; }
/* The kind of a link at a device, in its costs. */
gs_link_way gs_link_way_of(gs_plan_link link);
/* The speed and request cost of such a link by the device's `cost`, which may be NULL. */
gs_link gs_link_of(const gs_topology *t, const gs_cost *cost, gs_plan_link link);
/* How long any link is busy with what is moved over it. `t` is not asked where neither end is a device's. */
double gs_link_seconds(const gs_topology *t, const gs_cost *cost, const gs_cost *host_cost, const gs_link_load *load);

/* How long will an epoch of this plan take, and what will it wait for?
 *
 * The lane machine driven with the times of a cost model, for any number of devices. One disk moves what was submitted,
 * in order; one thread submits, verifies what arrived and computes, or each lane of each device has a thread and copies
 * share the links of their switch. Where the pass's first reads are made in the run before, two runs are played and the
 * second one is reported. Nothing is read, nothing computed. Units: seconds, bytes.
 */

/* Adds what a vertex program's instructions and rows amount to, for so many rows. */
void gs_vertex_work(gs_work *w, const gs_program *program, const gs_stage *s, double rows);
/* What the edge program of a stage amounts to, for so many edges. */
void gs_edge_program_work(gs_work *w, const gs_program *program, const gs_stage *s, double edges);
/* What a row of a stage's vertex program amounts to, and an edge of its edge program. */
typedef struct gs_stage_work {
    gs_work row, edge;
} gs_stage_work;

void gs_stage_work_find(gs_stage_work *out, const gs_program *p, const gs_stage *s);
/* The work of a compute task of the stage that `of` is of, which is asked for by the hundred thousand. */
void gs_task_work_by(gs_work *w, const gs_program *p, const gs_stage_work *of, const gs_edge_set *set, uint32_t parts,
                     const gs_task *t);
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
    const gs_cost *host_cost; /* as in gs_schedule_config */
} gs_simulation_input;

/* For a pass of a plan with this layout. */
static inline gs_simulation_input gs_simulation_of(const gs_layout *l, const gs_plan *plan, uint32_t pass)
{
    const gs_schedule_config *const c = l->config;
    return (gs_simulation_input){plan, l->program, l->set, l->parts, c->cost, c->topology, pass, c->host_cost};
}

/* GS_ENOMEM. */
gs_status gs_simulate(gs_predicted *out, const gs_simulation_input *in);
/* The same, where `plan` is in->plan: which keeps what it comes to, as long as costs are the same. */
gs_status gs_simulate_once(gs_predicted *out, gs_plan *plan, const gs_simulation_input *in);

/* How many bytes should the disk have under way? */

#define GS_FLIGHT_LEAST (4 * GS_MIB) /* pieces of a MiB: some are under way while one ends */
#define GS_FLIGHT_MOST (64 * GS_MIB)

/* The bytes that the disk should have under way in this pass, whole MiB from GS_FLIGHT_LEAST to GS_FLIGHT_MOST: as many
 * as it moves until the thread that feeds it looks again, and a quarter more. With fewer the disk runs dry; with more,
 * urgent reads wait behind others. A smaller staging ring bounds what goes through it by itself. `in->cost` may be
 * NULL. */
uint64_t gs_flight_bytes(const gs_simulation_input *in);

#endif /* GS_SCHEDULE_SIMULATE_H */
