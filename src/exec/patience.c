/* patience.c - what has not come back for long: says where the pass stands, and in the end gives the run up.
 *
 * Who waits notices: the thread that waits for io, and, where each lane of a device has a thread, the driving one. A
 * launch on the processors is a computation of this program's, and ends: a run is given up for transfers, and for
 * devices with memory of their own.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/size.h"
#include "exec/exec_run.h"

#define TEXT 640 /* of a line about a lane: two tasks, each with a path */

/* ---- where the pass stands ---- */

static const char *task_text(char out[TEXT], const gs_exec *e, uint32_t task)
{
    const gs_task *const t = &e->plan->task[task];
    const char *const path = gs_task_is_transfer(t) ? e->files.file[t->file].path : NULL;

    if (path != NULL)
        snprintf(out, TEXT, "task %u (%s of %" PRIu64 " bytes at %" PRIu64 " of %s)", task, gs_task_word(t),
                 gs_task_bytes(e->plan, t), gs_task_on_disk(t)->offset, path);
    else
        snprintf(out, TEXT, "task %u (%s of stage %u)", task, gs_task_word(t), t->stage);
    return out;
}

static gs_task_state state_of(const gs_exec *e, uint32_t task)
{
    return __atomic_load_n(&e->lanes.state[task], __ATOMIC_ACQUIRE);
}

/* The lane's first task in this state, or GS_NONE; `count` of them. Under way is also what a device was told. */
static uint32_t first_in(const gs_exec *e, uint32_t lane, gs_task_state state, uint32_t *count)
{
    const gs_lane *const l = &e->lanes.lane[lane];
    uint32_t first = GS_NONE;

    *count = 0;
    for (uint32_t k = l->first; k < l->end; k++) {
        const uint32_t task = e->lanes.task[k];
        const gs_task_state now = state_of(e, task);
        if ((now == GS_TOLD ? GS_UNDER_WAY : now) != state)
            continue;
        first = (*count)++ == 0 ? task : first;
    }
    return first;
}

static void print_lane(const gs_exec *e, uint32_t lane, FILE *out)
{
    static const char *const kind[GS_DEVICE_LANES] = {"computing", "uploads", "forwards", "downloads", "loads"};
    const bool messages = e->plan->ranks > 0 && lane >= GS_LANE_SEND;
    uint32_t under_way, waiting;
    const uint32_t first = first_in(e, lane, GS_UNDER_WAY, &under_way);
    const uint32_t next = first_in(e, lane, GS_WAITING, &waiting);
    const uint32_t missing = next == GS_NONE ? GS_NONE : gs_lanes_missing_dep(&e->lanes, next);
    char text[TEXT];

    if (messages)
        fprintf(out, "  %s: ", lane == GS_LANE_SEND ? "sends" : "receives");
    else if (lane < GS_LANE_DEVICES)
        fprintf(out, "  %s: ", lane == GS_LANE_READ ? "reads" : "writes");
    else
        fprintf(out, "  device %u, %s: ", (lane - GS_LANE_DEVICES) / GS_DEVICE_LANES,
                kind[(lane - GS_LANE_DEVICES) % GS_DEVICE_LANES]);
    if (first != GS_NONE)
        fprintf(out, "%u under way, first %s; ", under_way, task_text(text, e, first));
    if (next == GS_NONE)
        fprintf(out, "%s\n", first == GS_NONE ? "all done" : "none left");
    else
        fprintf(out, "%u left, next %s", waiting, task_text(text, e, next));
    if (missing != GS_NONE)
        fprintf(out, ", which waits for %s", task_text(text, e, missing));
    if (next != GS_NONE)
        fputc('\n', out);
}

static void print_pass(const gs_exec *e, double quiet)
{
    const uint32_t pass = e->lanes.pass;

    if (pass == GS_NONE) {
        fprintf(stderr, "gnnstream: a read has not come back for %.3g s; no pass has begun\n", quiet);
        return;
    }
    fprintf(stderr,
            "gnnstream: nothing has come back for %.3g s; pass %s, %u of %u tasks done, %u requests under way\n", quiet,
            e->program->pass[pass].name, __atomic_load_n(&e->progress.tasks, __ATOMIC_RELAXED),
            e->plan->pass[pass].tasks, gs_io_outstanding(e->files.io));
    for (uint32_t lane = 0; lane < e->lanes.lanes; lane++)
        print_lane(e, lane, stderr);
}

static void say_once(gs_exec *e, double quiet)
{
    if (quiet < e->patience.say || e->patience.said)
        return;
    e->patience.said = true;
    print_pass(e, quiet);
}

/* ---- giving up ---- */

void gs_exec__take_patience(gs_exec *e, const gs_exec_config *c)
{
    double least = c->say_after > 0 ? c->say_after : INFINITY;

    if (c->end_after > 0)
        least = GS_MIN(least, c->end_after);
    e->patience = (gs_exec_patience){.say = c->say_after > 0 ? c->say_after : INFINITY, .end = c->end_after};
    e->patience.look = isinf(least) ? 0 : GS_MIN(least / 4, 1);
}

bool gs_exec_gave_up(const gs_exec *e) { return e != NULL && e->patience.gave_up; }

static gs_status give_up(gs_exec *e, gs_status st, double quiet)
{
    gs_exec_patience *const p = &e->patience;
    const uint32_t lanes[] = {GS_LANE_READ, GS_LANE_WRITE};
    uint32_t count, task = GS_NONE;
    char text[TEXT] = "a read";

    for (size_t k = 0; k < GS_ARRAY_LEN(lanes) && task == GS_NONE && e->lanes.pass != GS_NONE; k++)
        task = first_in(e, lanes[k], GS_UNDER_WAY, &count);
    if (task != GS_NONE)
        (void)task_text(text, e, task);
    if (st == GS_EIO)
        snprintf(p->why, sizeof(p->why), "%.400s has not come back for %.3g s; check the disk, or set .io_timeout",
                 text, quiet);
    else
        snprintf(p->why, sizeof(p->why), "a device has not come back for %.3g s; check it, or set .io_timeout", quiet);
    p->gave_up = true;
    gs_io_abandon(e->files.io);
    return gs_fail(st, "%s", p->why);
}

gs_status gs_exec__reap(gs_exec *e, gs_io_completion *out, uint32_t most, uint32_t *count)
{
    gs_exec_patience *const p = &e->patience;

    *count = 0;
    if (p->gave_up)
        return gs_fail(GS_EIO, "%s", p->why);
    while (gs_io_outstanding(e->files.io) > 0 && (*count = gs_io_reap(e->files.io, out, most, true)) == 0) {
        const double quiet = gs_io_quiet_seconds(e->files.io);
        p->said = p->said && quiet >= p->say;
        say_once(e, quiet);
        if (p->end > 0 && quiet >= p->end)
            return give_up(e, GS_EIO, quiet);
    }
    p->said = false;
    return GS_OK;
}

gs_status gs_exec__watch_lanes(gs_exec *e, double waited)
{
    gs_exec_patience *const p = &e->patience;
    const uint32_t tasks = __atomic_load_n(&e->progress.tasks, __ATOMIC_RELAXED);

    if (p->gave_up)
        return gs_fail(GS_EDEVICE, "%s", p->why);
    if (tasks != p->tasks) {
        p->tasks = tasks;
        p->quiet = 0;
        p->said = false;
    }
    p->quiet += GS_MIN(waited, 2 * p->look); /* a process that was stopped has not waited all that time */
    say_once(e, p->quiet);
    if (p->end > 0 && p->quiet >= p->end && e->defers)
        return give_up(e, GS_EDEVICE, p->quiet);
    return GS_OK;
}

/* Held, so that who looks for lost memory sees that it is on purpose. */
static gs_exec *kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

bool gs_exec__keep(gs_exec *e)
{
    if (!e->patience.gave_up)
        return false;
    pthread_mutex_lock(&kept_lock);
    e->patience.next = kept;
    kept = e;
    pthread_mutex_unlock(&kept_lock);
    return true;
}
