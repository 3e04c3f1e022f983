/* part_waits.c - what tasks of a part wait for, while it is made.
 *
 * Who waits for a task of the whole waits for those that stand for it, or, where none does, for what that one would
 * have waited for here. That is known lane by lane, as a number of tasks: all before it are done. Reads and writes,
 * which do not end in order, are named where they stand for what is waited for itself.
 */
#include "plan/part_waits.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

static gs_status no_memory(void) { return gs_fail(GS_ENOMEM, "out of memory: this rank's part of the plan"); }

static void join(gs_reach *to, const gs_reach *x)
{
    for (uint32_t k = 0; k < GS_PART_LANES; k++)
        to->before[k] = GS_MAX(to->before[k], x->before[k]);
}

static bool ends_in_order(uint32_t lane) { return lane >= GS_LANE_DEVICES; }

gs_status gs_part_waits_open(gs_part_waits *w, const gs_plan *whole, gs_plan *part)
{
    uint32_t longest = 0;

    *w = (gs_part_waits){.whole = whole, .part = part};
    for (uint32_t p = 0; p < whole->passes; p++)
        longest = GS_MAX(longest, whole->pass[p].tasks);
    w->first = gs_calloc((size_t)whole->tasks + 1, sizeof(*w->first));
    w->done = gs_malloc_array((size_t)longest + 1, sizeof(*w->done));
    return w->first != NULL && w->done != NULL ? GS_OK : no_memory();
}

void gs_part_waits_close(gs_part_waits *w)
{
    gs_free(w->first);
    gs_free(w->done);
    for (uint32_t k = 0; k < GS_PART_LANES; k++)
        gs_free(w->at[k]);
}

void gs_part_waits_enter(gs_part_waits *w, uint32_t pass)
{
    memset(w->begun, 0, sizeof(w->begun));
    memset(w->ended, 0, sizeof(w->ended));
    memset(w->known, 0, sizeof(w->known));
    memset(w->count, 0, sizeof(w->count));
    w->pass_first = w->whole->pass[pass].first_task;
}

/* A read or a write that the part has, too. */
static bool is_named(const gs_part_waits *w, uint32_t i)
{
    return w->first[i] < w->first[i + 1] && !ends_in_order(gs_task_lane(&w->whole->task[i]));
}

gs_reach gs_part_waits_begin(gs_part_waits *w, uint32_t i)
{
    const gs_task *const t = &w->whole->task[i];
    gs_reach before = w->begun[gs_task_lane(t)];

    w->first[i] = w->part->tasks;
    for (uint32_t d = 0; d < t->deps; d++) {
        const uint32_t of = w->whole->dep[t->first_dep + d];
        if (!is_named(w, of))
            join(&before, &w->done[of - w->pass_first]);
    }
    return before;
}

static gs_status add_dep(gs_part_waits *w, uint32_t task)
{
    gs_plan *const p = w->part;
    if (!gs_grow(&p->dep, p->deps, &w->dep_room, sizeof(*p->dep)))
        return no_memory();
    p->dep[p->deps++] = task;
    return GS_OK;
}

/* Of one lane of the part, what task `t` has to name so that all before `place` are done: the last of a lane that ends
 * in order. Tasks before `t` in its own lane have waited for some already. */
static gs_status add_lane(gs_part_waits *w, uint32_t own, uint32_t lane, uint32_t place)
{
    uint32_t *const known = &w->known[own].before[lane];

    if (place <= *known)
        return GS_OK;
    for (uint32_t k = ends_in_order(lane) ? place - 1 : *known; k < place; k++)
        GS_TRY(add_dep(w, w->at[lane][k]));
    *known = place;
    return GS_OK;
}

static gs_status add_deps(gs_part_waits *w, uint32_t i, uint32_t lane, const gs_reach *before)
{
    const gs_task *const t = &w->whole->task[i];

    for (uint32_t k = 0; k < GS_PART_LANES; k++)
        if (k != lane || !ends_in_order(lane) || lane >= GS_LANE_SEND)
            GS_TRY(add_lane(w, lane, k, before->before[k]));
    for (uint32_t d = 0; d < t->deps; d++) {
        const uint32_t of = w->whole->dep[t->first_dep + d];
        for (uint32_t k = w->first[of]; is_named(w, of) && k < w->first[of + 1]; k++)
            GS_TRY(add_dep(w, k));
    }
    return GS_OK;
}

/* Makes them a set, ascending, each once. They are few. */
static void sort_deps(gs_plan *p, uint32_t first)
{
    uint32_t *const dep = p->dep + first, count = p->deps - first, n = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t x = dep[i];
        uint32_t k = n;
        while (k > 0 && dep[k - 1] > x)
            k--;
        if (k > 0 && dep[k - 1] == x)
            continue;
        memmove(&dep[k + 1], &dep[k], (n - k) * sizeof(*dep));
        dep[k] = x;
        n++;
    }
    p->deps = first + n;
}

static gs_status put(gs_part_waits *w, uint32_t lane, uint32_t task)
{
    if (!gs_grow(&w->at[lane], w->count[lane], &w->room[lane], sizeof(*w->at[lane])))
        return no_memory();
    w->at[lane][w->count[lane]++] = task;
    return GS_OK;
}

gs_status gs_part_waits_add(gs_part_waits *w, uint32_t i, const gs_task *t, const gs_reach *before)
{
    gs_plan *const p = w->part;
    const uint32_t lane = gs_task_lane(t);

    if (!gs_grow(&p->task, p->tasks, &w->task_room, sizeof(*p->task)))
        return no_memory();
    gs_task *const to = &p->task[p->tasks];
    *to = *t;
    to->first_dep = p->deps;
    GS_TRY(add_deps(w, i, lane, before));
    if (p->deps > to->first_dep)
        sort_deps(p, to->first_dep);
    to->deps = p->deps - to->first_dep;
    return put(w, lane, p->tasks++);
}

void gs_part_waits_end(gs_part_waits *w, uint32_t i, const gs_reach *before)
{
    const gs_task *const t = &w->whole->task[i];
    const uint32_t lane = gs_task_lane(t);
    gs_reach now = *before;

    w->first[i + 1] = w->part->tasks;
    for (uint32_t d = 0; d < t->deps; d++) {
        const uint32_t of = w->whole->dep[t->first_dep + d];
        if (is_named(w, of))
            join(&now, &w->done[of - w->pass_first]);
    }
    join(&w->begun[lane], &now);
    if (w->first[i] < w->part->tasks)
        now = (gs_reach){{0}}; /* it is done, so what it waited for is */
    for (uint32_t k = w->first[i]; k < w->part->tasks; k++) {
        const uint32_t of = gs_task_lane(&w->part->task[k]);
        now.before[of] = w->count[of];
    }
    if (ends_in_order(lane)) {
        join(&w->ended[lane], &now);
        now = w->ended[lane];
    }
    w->done[i - w->pass_first] = now;
}
