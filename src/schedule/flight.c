/* flight.c - how many bytes should the disk have under way?
 *
 * One thread hands requests to the disk. Between two looks at it that thread computes (a device on host memory), or
 * verifies what has come; and where devices have memory of their own, a place in the ring is free, for the next read,
 * when a copy is over. So a request that could begin waits as long as one of those takes, and the disk's own latency
 * comes on top. With bytes for that time under way, and a quarter more, the disk has work.
 */
#include "schedule/flight.h"

#include "schedule/link.h"

#define SLACK 1.25
#define USUAL_BYTES (16 * GS_MIB) /* without a cost model */

/* Lengths of gaps. A random moment falls into a long one more often, so the gap that it meets is longer than the
 * mean. */
typedef struct gap {
    double seconds, squares;
} gap;

static void add(gap *g, double seconds)
{
    g->seconds += seconds;
    g->squares += seconds * seconds;
}

/* Expected seconds of the gap that a random moment falls into. */
static double met(const gap *g) { return g->seconds > 0 ? g->squares / g->seconds : 0; }

/* Seconds to verify one of the task's requests; they come one by one. */
static double check_seconds(const gs_simulation_input *in, const gs_task *t)
{
    const double requests = gs_task_requests(t);
    const gs_work check = {GS_WORK_CHECK, {requests, (double)gs_task_bytes(in->plan, t)}};
    return t->check == GS_CHECK_NONE ? 0 : gs_cost_seconds(in->cost, &check) / requests;
}

static double copy_seconds(const gs_simulation_input *in, const gs_task *t)
{
    const gs_link_load load = {gs_task_link(t), gs_task_bytes(in->plan, t), gs_task_requests(t)};
    return gs_link_seconds(in->topology, in->cost, in->host_cost, &load);
}

/* Seconds between two looks at the disk: the longest of a computation of the thread that feeds it, a verification, and
 * a copy over a link. */
static double between_looks(const gs_simulation_input *in)
{
    gap computing = {0}, checking = {0}, copying = {0};
    gs_work w;

    const gs_plan_pass *const pass = &in->plan->pass[in->pass];
    for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
        const gs_task *const t = &in->plan->task[i];
        if (gs_task_lane(t) == GS_LANE_READ)
            add(&checking, check_seconds(in, t));
        else if (gs_task_is_copy(t) && t->source.memory == GS_HOST)
            add(&copying, copy_seconds(in, t));
        else if (in->plan->devices == 0 && t->kind != GS_TASK_MOVE) {
            gs_task_work(&w, in->program, in->set, in->parts, t);
            add(&computing, gs_cost_seconds(in->cost, &w));
        }
    }
    return GS_MAX(met(&computing), GS_MAX(met(&checking), met(&copying)));
}

uint64_t gs_flight_bytes(const gs_simulation_input *in)
{
    if (in->cost == NULL)
        return USUAL_BYTES;
    const double wanted = SLACK * in->cost->read_bps * (in->cost->latency_seconds + between_looks(in));
    const uint64_t bytes = wanted < (double)GS_FLIGHT_MOST ? gs_align_up((uint64_t)wanted, GS_MIB) : GS_FLIGHT_MOST;
    return GS_MAX(bytes, GS_FLIGHT_LEAST);
}
