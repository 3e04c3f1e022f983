/* lanes.c - moves tasks through the states that lanes.h draws. */
#include "plan/lanes.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

/* Sorts each pass's tasks into its lanes, order kept: counted, then placed. Between the two a task's lane stands in its
 * state, as the plan of a large graph is many times what a processor keeps near. */
static void fill(gs_lanes *l)
{
    uint32_t at = 0;
    for (uint32_t p = 0; p < l->plan->passes; p++) {
        const gs_plan_pass *const pass = &l->plan->pass[p];
        uint32_t *const first = &l->first[p * l->lanes], place[GS_PLAN_LANES] = {0};

        for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++)
            place[l->state[i] = (uint8_t)gs_task_lane(&l->plan->task[i])]++;
        for (uint32_t lane = 0; lane < l->lanes; lane++) {
            first[lane] = at;
            at += place[lane];
            place[lane] = first[lane];
        }
        for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++)
            l->task[place[l->state[i]]++] = i;
        memset(&l->state[pass->first_task], GS_WAITING, pass->tasks);
    }
    l->first[l->plan->passes * l->lanes] = at;
}

gs_status gs_lanes_open(gs_lanes *l, const gs_plan *plan)
{
    *l = (gs_lanes){.plan = plan, .pass = GS_NONE, .lanes = gs_plan_lanes(plan)};
    l->task = gs_malloc_array((size_t)plan->tasks + 1, sizeof(*l->task));
    l->first = gs_calloc((size_t)plan->passes * l->lanes + 1, sizeof(*l->first));
    l->state = gs_calloc((size_t)plan->tasks + 1, sizeof(*l->state));
    if (l->task == NULL || l->first == NULL || l->state == NULL) {
        gs_lanes_close(l);
        return gs_fail(GS_ENOMEM, "out of memory: the lanes of a plan of %u tasks", plan->tasks);
    }
    fill(l);
    return GS_OK;
}

void gs_lanes_close(gs_lanes *l)
{
    gs_free(l->task);
    gs_free(l->first);
    gs_free(l->state);
    memset(l, 0, sizeof(*l));
}

void gs_lanes_enter(gs_lanes *l, uint32_t pass)
{
    const gs_plan_pass *const p = &l->plan->pass[pass];
    const uint32_t begun = l->pass == pass ? l->ahead : 0;

    for (uint32_t lane = 0; lane < l->lanes; lane++) {
        const uint32_t *const first = &l->first[pass * l->lanes + lane];
        l->lane[lane] = (gs_lane){.first = first[0], .next = first[0], .end = first[1]};
    }
    gs_lane *const reads = &l->lane[GS_LANE_READ];
    reads->next += begun;
    for (uint32_t i = p->first_task; i < p->first_task + p->tasks; i++) {
        const uint8_t was = begun > 0 ? l->state[i] : GS_WAITING;
        l->state[i] = was == GS_AHEAD ? GS_UNDER_WAY : was == GS_FETCHED ? GS_DONE : GS_WAITING;
        reads->under_way += was == GS_AHEAD;
    }
    l->pass = pass;
    l->ahead = 0;
    assert(gs_lanes_fault(l) == NULL);
}

void gs_lanes_forget_ahead(gs_lanes *l) { l->ahead = 0; }

uint32_t gs_lanes_missing(const gs_lanes *l, uint32_t first_dep, uint32_t deps)
{
    for (uint32_t i = 0; i < deps; i++)
        if (!gs_lanes_is_done(l, l->plan->dep[first_dep + i]))
            return l->plan->dep[first_dep + i];
    return GS_NONE;
}

/* Need the task not wait for the other one? */
static bool may_begin_behind(const gs_lanes *l, const gs_task *t, uint32_t other)
{
    const uint8_t state = __atomic_load_n(&l->state[other], __ATOMIC_ACQUIRE); /* gs_lanes_tell(), gs_lanes_finish() */
    return state >= GS_DONE ||
           (state == GS_TOLD && l->follows[gs_task_lane(t)] && l->plan->task[other].device == t->device);
}

uint32_t gs_lanes_missing_dep(const gs_lanes *l, uint32_t task)
{
    const gs_task *const t = &l->plan->task[task];
    for (uint32_t i = 0; i < t->deps; i++) {
        const uint32_t other = l->plan->dep[t->first_dep + i];
        if (!may_begin_behind(l, t, other))
            return other;
    }
    return GS_NONE;
}

uint32_t gs_lanes_ready(const gs_lanes *l, uint32_t lane)
{
    const uint32_t task = gs_lanes_next(l, lane);
    return task == GS_NONE || gs_lanes_missing_dep(l, task) != GS_NONE ? GS_NONE : task;
}

/* Does the task wait for its chunk to come to the device in this pass? */
static bool comes(const gs_lanes *l, const gs_task *t)
{
    for (uint32_t i = 0; i < t->deps; i++) {
        const gs_task *const d = &l->plan->task[l->plan->dep[t->first_dep + i]];
        if (d->kind == GS_TASK_MOVE && d->chunk_bytes > 0)
            return true;
    }
    return false;
}

uint32_t gs_lanes_ready_together(const gs_lanes *l, uint32_t lane)
{
    const gs_lane *const x = &l->lane[lane];
    const gs_task *before = NULL;
    bool copied = false;
    uint32_t n = 0;

    for (uint32_t k = x->next; k < x->end; k++, n++) {
        const gs_task *const t = &l->plan->task[l->task[k]];
        if (before == NULL ? gs_lanes_missing_dep(l, l->task[k]) != GS_NONE /* the others would hold it up */
                           : !gs_tasks_go_together(before, t) ||
                                 gs_lanes_missing(l, t->first_dep, t->deps) != GS_NONE)
            break;
        copied |= comes(l, t);
        before = t;
    }
    return copied ? (n + 1) / 2 : n;
}

/* Does the task wait for a read that has begun for the next run? Then its memory has other bytes. Only an assertion
 * asks, and builds without those have no use for it. */
__attribute__((unused)) static bool comes_too_late(const gs_lanes *l, uint32_t task)
{
    const gs_task *const t = &l->plan->task[task];
    for (uint32_t i = 0; i < t->deps; i++)
        if (__atomic_load_n(&l->state[l->plan->dep[t->first_dep + i]], __ATOMIC_RELAXED) >= GS_AHEAD)
            return true;
    return false;
}

void gs_lanes_begin(gs_lanes *l, uint32_t lane)
{
    const uint32_t task = gs_lanes_next(l, lane);

    assert(!comes_too_late(l, task));
    assert(task != GS_NONE && l->state[task] == GS_WAITING && gs_lanes_missing_dep(l, task) == GS_NONE);
    l->lane[lane].next++;
    l->lane[lane].under_way++;
    __atomic_store_n(&l->state[task], GS_UNDER_WAY, __ATOMIC_RELAXED); /* says nothing to other threads */
}

void gs_lanes_tell(gs_lanes *l, uint32_t task)
{
    assert(l->state[task] == GS_UNDER_WAY);
    __atomic_store_n(&l->state[task], GS_TOLD, __ATOMIC_RELEASE);
}

void gs_lanes_finish(gs_lanes *l, uint32_t task)
{
    const uint8_t was = l->state[task];

    assert(was == GS_UNDER_WAY || was == GS_TOLD || was == GS_AHEAD);
    if (was != GS_AHEAD)
        l->lane[gs_task_lane(&l->plan->task[task])].under_way--;
    __atomic_store_n(&l->state[task], was == GS_AHEAD ? GS_FETCHED : GS_DONE, __ATOMIC_RELEASE);
}

const gs_ahead *gs_lanes_next_ahead(const gs_lanes *l)
{
    const gs_plan_pass *const p = &l->plan->pass[l->pass];
    return l->ahead < p->aheads ? &l->plan->ahead[p->first_ahead + l->ahead] : NULL;
}

uint32_t gs_lanes_ready_ahead(const gs_lanes *l)
{
    const gs_ahead *const a = gs_lanes_next_ahead(l);
    if (a == NULL || gs_lanes_next(l, GS_LANE_READ) != GS_NONE ||
        gs_lanes_missing(l, a->first_dep, a->deps) != GS_NONE || l->state[a->task] != GS_DONE)
        return GS_NONE;
    return a->task;
}

void gs_lanes_begin_ahead(gs_lanes *l)
{
    const uint32_t task = gs_lanes_ready_ahead(l);

    /* a run that begins with these finds them where its lane of reads begins */
    assert(task != GS_NONE && task == l->task[l->lane[GS_LANE_READ].first + l->ahead]);
    __atomic_store_n(&l->state[task], GS_AHEAD, __ATOMIC_RELAXED);
    l->ahead++;
}

/* A lane begins its tasks in order, and only what has all that it waits for. */
static const char *fault_in(const gs_lanes *l, uint32_t lane)
{
    const gs_lane *const x = &l->lane[lane];
    uint32_t under_way = 0;

    for (uint32_t k = x->first; k < x->end; k++) {
        const uint8_t state = l->state[l->task[k]];
        under_way += state == GS_UNDER_WAY || state == GS_TOLD;
        if (k < x->next ? state == GS_WAITING : state != GS_WAITING)
            return k < x->next ? "a task before the lane's next one has not begun"
                               : "a task has begun before its turn";
        if (state >= GS_AHEAD && (lane != GS_LANE_READ || k >= x->first + l->ahead))
            return "a task is under way for the next run, and not one of its first reads";
        if (state != GS_WAITING && gs_lanes_missing_dep(l, l->task[k]) != GS_NONE)
            return "a task has begun before what it waits for was done";
    }
    return under_way == x->under_way ? NULL : "the tasks under way are miscounted";
}

const char *gs_lanes_fault(const gs_lanes *l)
{
    const char *fault = NULL;
    for (uint32_t lane = 0; l->pass != GS_NONE && lane < l->lanes && fault == NULL; lane++)
        fault = fault_in(l, lane);
    return fault;
}
