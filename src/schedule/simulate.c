/* simulate.c - the lanes of exec with a cost model's clock. The order of events is that of
 * exec/lanes.c: what changes there changes here. */
#include "schedule/simulate.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/simulate_internal.h"

enum lane { LANE_READ, LANE_COMPUTE, LANE_WRITE, LANE_COUNT };

struct sim {
    const gs_plan *plan;
    const gs_program *program;
    const gs_edge_set *set;
    uint32_t parts;
    const gs_cost *cost;
    const gs_plan_pass *pass;
    gs_simulation out;
    double now;             /* of the driving thread */
    double disk_free;       /* the disk has moved all that was submitted */
    uint8_t *done;          /* [tasks of the pass] */
    uint32_t next[LANE_COUNT]; /* first task of the list that the lane has not begun */
    /* What is under way, in the order in which it will arrive. */
    uint32_t *flying;       /* [tasks of the pass] */
    double *arrival;        /* [tasks of the pass] */
    uint32_t first, last;
    uint32_t begun;         /* reads of the next run */
};

static enum lane lane_of(gs_task_kind k)
{
    return k == GS_TASK_READ ? LANE_READ : k == GS_TASK_WRITE ? LANE_WRITE : LANE_COMPUTE;
}

static const gs_task *task_at(const struct sim *s, uint32_t i)
{
    return &s->plan->task[s->pass->first_task + i];
}

/* Moves the lane to its next task, or to the end. */
static void seek(struct sim *s, enum lane lane)
{
    while (s->next[lane] < s->pass->tasks && lane_of(task_at(s, s->next[lane])->kind) != lane)
        s->next[lane]++;
}

static bool are_done(const struct sim *s, uint32_t first_dep, uint32_t deps)
{
    for (uint32_t i = 0; i < deps; i++)
        if (!s->done[s->plan->dep[first_dep + i] - s->pass->first_task])
            return false;
    return true;
}

static bool ready(const struct sim *s, const gs_task *t) { return are_done(s, t->first_dep, t->deps); }

static void spend(struct sim *s, double seconds, double *on)
{
    s->now += seconds;
    *on += seconds;
}

static void submit(struct sim *s, enum lane lane, uint32_t task)
{
    const gs_task *const t = task_at(s, task);
    const double requests = gs_task_requests(t), bytes = (double)gs_task_bytes(s->plan, t);
    const double bps = lane == LANE_READ ? s->cost->read_bps : s->cost->write_bps;
    const double took = requests * s->cost->request_seconds + bytes / bps;
    spend(s, gs_cost_seconds(s->cost, &(gs_work){GS_WORK_SUBMIT, {requests}}), &s->out.check_seconds);
    *(lane == LANE_READ ? &s->out.read_seconds : &s->out.write_seconds) += took;
    s->disk_free = GS_MAX(s->disk_free, s->now) + took;
    s->flying[s->last] = task;
    s->arrival[s->last++] = s->disk_free + s->cost->latency_seconds;
}

/* When all of this run's reads are under way: the first of the next. */
static void feed_ahead(struct sim *s)
{
    for (; s->next[LANE_READ] == s->pass->tasks && s->begun < s->pass->aheads; s->begun++) {
        const gs_ahead *const a = &s->plan->ahead[s->pass->first_ahead + s->begun];
        if (!are_done(s, a->first_dep, a->deps))
            return;
        s->done[a->task - s->pass->first_task] = 0;
        submit(s, LANE_READ, a->task - s->pass->first_task);
    }
}

static void feed(struct sim *s, enum lane lane)
{
    for (; s->next[lane] < s->pass->tasks; s->next[lane]++, seek(s, lane)) {
        if (!ready(s, task_at(s, s->next[lane])))
            return;
        submit(s, lane, s->next[lane]);
    }
    if (lane == LANE_READ)
        feed_ahead(s);
}

/* Takes what has arrived by now. */
static void reap(struct sim *s)
{
    for (; s->first < s->last && s->arrival[s->first] <= s->now; s->first++) {
        const gs_task *const t = task_at(s, s->flying[s->first]);
        if (t->kind == GS_TASK_READ && t->check != GS_CHECK_NONE) {
            const gs_work check = {GS_WORK_CHECK, {gs_task_requests(t), (double)gs_task_bytes(s->plan, t)}};
            spend(s, gs_cost_seconds(s->cost, &check), &s->out.check_seconds);
        }
        s->done[s->flying[s->first]] = 1;
    }
}

static void pump(struct sim *s, bool wait)
{
    feed(s, LANE_WRITE);
    feed(s, LANE_READ);
    if (wait && s->first < s->last)
        s->now = GS_MAX(s->now, s->arrival[s->first]);
    reap(s);
    feed(s, LANE_WRITE);
    feed(s, LANE_READ);
}

/* Is the task one of the next run's reads that have begun, or of this run one that was done long before those? */
static bool is_ahead(const struct sim *s, uint32_t begun, uint32_t task)
{
    return begun > 0 && task_at(s, task)->kind == GS_TASK_READ &&
           s->pass->first_task + task <= s->plan->ahead[s->pass->first_ahead + begun - 1].task;
}

/* Anything of the run itself? */
static bool is_under_way(const struct sim *s)
{
    for (uint32_t i = s->first; i < s->last; i++)
        if (!is_ahead(s, s->begun, s->flying[i]))
            return true;
    return false;
}

static void wait_for(struct sim *s, const gs_task *t)
{
    const double begin = s->now;
    while (t == NULL ? is_under_way(s) : !ready(s, t) && s->first < s->last)
        pump(s, true);
    s->out.stall_seconds += s->now - begin;
}

/* `begun`: of the pass's reads, how many are under way or done. */
static void run_computes(struct sim *s, uint32_t begun)
{
    const double begin = s->now;
    gs_work w;

    for (int lane = 0; lane < LANE_COUNT; lane++) {
        s->next[lane] = 0;
        seek(s, (enum lane)lane);
    }
    for (; begun > 0; begun--) {
        s->next[LANE_READ]++;
        seek(s, LANE_READ);
    }
    for (; s->next[LANE_COMPUTE] < s->pass->tasks; s->next[LANE_COMPUTE]++, seek(s, LANE_COMPUTE)) {
        const gs_task *const t = task_at(s, s->next[LANE_COMPUTE]);
        pump(s, false);
        wait_for(s, t);
        gs_task_work(&w, s->program, s->set, s->parts, t);
        spend(s, gs_cost_seconds_beside(s->cost, &w, s->disk_free - s->now, s->cost->read_bps),
              w.kind == GS_WORK_SUM || w.kind == GS_WORK_EDGES ? &s->out.edge_seconds : &s->out.vertex_seconds);
        s->done[s->next[LANE_COMPUTE]] = 1;
    }
    pump(s, false);
    wait_for(s, NULL);
    s->out.seconds = s->now - begin;
}

/* The next run begins, with what was read ahead of it: how many reads. An epoch among epochs is what counts. */
static uint32_t again(struct sim *s)
{
    const uint32_t begun = s->begun, flying = s->last - s->first;

    for (uint32_t i = 0; i < s->pass->tasks; i++)
        if (!is_ahead(s, begun, i))
            s->done[i] = 0;
    memmove(s->flying, s->flying + s->first, flying * sizeof(*s->flying));
    memmove(s->arrival, s->arrival + s->first, flying * sizeof(*s->arrival));
    s->first = s->begun = 0;
    s->last = flying;
    s->out = (gs_simulation){0};
    return begun;
}

/* The resource that is busy longest, where it is busy nearly all the time: else an epoch is
 * made of waits that memory for reading ahead would remove. */
const char *gs_simulation_bottleneck(const gs_simulation *x)
{
    const double disk = x->read_seconds + x->write_seconds;
    const double device = x->edge_seconds + x->vertex_seconds + x->check_seconds;
    if (GS_MAX(disk, device) < 0.75 * x->seconds)
        return "waiting";
    if (disk >= device)
        return x->read_seconds >= x->write_seconds ? "reading" : "writing";
    if (x->check_seconds >= GS_MAX(x->edge_seconds, x->vertex_seconds))
        return "checksums";
    return x->edge_seconds >= x->vertex_seconds ? "edge sums" : "vertex programs";
}

gs_status gs_simulate(gs_simulation *out, const gs_simulation_input *in)
{
    struct sim s = {.plan = in->plan, .program = in->program, .set = in->set, .parts = in->parts, .cost = in->cost,
                    .pass = &in->plan->pass[in->pass]};
    const size_t tasks = (size_t)s.pass->tasks + 1;
    gs_status st = GS_OK;

    if (in->plan->devices > 0)
        return gs_simulate_several(out, in);
    s.done = gs_calloc(tasks, sizeof(*s.done));
    s.flying = gs_malloc_array(tasks + s.pass->aheads, sizeof(*s.flying));
    s.arrival = gs_malloc_array(tasks + s.pass->aheads, sizeof(*s.arrival));
    if (s.done == NULL || s.flying == NULL || s.arrival == NULL) {
        st = gs_fail(GS_ENOMEM, "out of memory while planning");
        goto done;
    }
    run_computes(&s, 0);
    if (s.pass->aheads > 0)
        run_computes(&s, again(&s));
    s.out.bottleneck = gs_simulation_bottleneck(&s.out);
    *out = s.out;
done:
    gs_free(s.done);
    gs_free(s.flying);
    gs_free(s.arrival);
    return st;
}
