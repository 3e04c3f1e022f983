#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/size.h"
#include "plan_sim_internal.h"

/* Devices find all they use in their arenas, and never reach beyond them. */
static void *copy_end(struct sim *s, gs_place at, uint32_t device, uint64_t bytes)
{
    assert_true(at.offset + bytes <= s->plan->region_bytes[at.region]);
    return (at.region == GS_REGION_ARENA ? s->arena[device] : s->region[at.region]) + at.offset;
}

static void copy_task(struct sim *s, const gs_task *t, bool complete)
{
    const bool down = t->kind == GS_TASK_DOWNLOAD;
    uint8_t *const to = copy_end(s, t->place, t->device, t->bytes);
    const uint8_t *const from = copy_end(s, t->source, t->kind == GS_TASK_FORWARD ? t->peer : t->device, t->bytes);

    assert_true(t->device < s->plan->devices && t->bytes > 0);
    assert_true((t->place.region == GS_REGION_ARENA) != down);
    assert_true((t->source.region == GS_REGION_ARENA) != (t->kind == GS_TASK_UPLOAD));
    if (!complete) {
        memset(to, 0xDD, t->bytes);
        return;
    }
    if (t->kind == GS_TASK_FORWARD) {
        assert_true(t->peer < t->device);
        assert_int_equal(gs_topology_switch_of(s->cfg->topology, t->peer),
                         gs_topology_switch_of(s->cfg->topology, t->device));
    }
    if (down || t->runs == 0) {
        memcpy(to, from, t->bytes);
        s->copied[t->kind - GS_TASK_UPLOAD] += t->bytes;
    }
    for (uint32_t i = 0; !down && i < t->runs; i++) {
        const gs_run run = s->plan->run[t->first_run + i];
        const uint64_t at = run.first * GS_BLOCK_BYTES, n = GS_MIN(run.blocks * GS_BLOCK_BYTES, t->bytes - at);
        assert_true(run.blocks > 0 && at < t->bytes);
        memcpy(to + at, from + at, n);
        s->copied[t->kind - GS_TASK_UPLOAD] += n;
    }
}

static void start_transfer(struct sim *s, uint32_t index)
{
    const gs_task *t = &s->plan->task[index];
    if (gs_task_is_copy(t->kind)) {
        copy_task(s, t, false);
        return;
    }
    assert_int_equal(t->offset % GS_BLOCK_BYTES, 0);
    assert_int_equal(t->bytes % GS_BLOCK_BYTES, 0);
    assert_int_equal(t->place.offset % GS_BLOCK_BYTES, 0);
    assert_true(t->bytes > 0);
    assert_true(t->place.region == GS_REGION_RING ||
                (t->kind == GS_TASK_READ && t->place.region == GS_REGION_RESIDENT));
    assert_true(t->place.offset + t->bytes <= s->plan->region_bytes[t->place.region]);
    if (t->kind == GS_TASK_READ)
        memset(place(s, t->place), 0xEE, t->bytes);
}

static void move_part(struct sim *s, const gs_task *t, uint64_t from, uint64_t bytes)
{
    const bool made = t->file < s->p->arrays && s->p->array[t->file].store_id < 0;
    const uint64_t offset = t->offset + from;
    uint8_t *m = (uint8_t *)place(s, t->place) + from;

    assert_true(from + bytes <= t->bytes);
    if (made) {
        assert_true(offset >= s->plan->spill_first[t->file]);
        assert_true(offset + bytes <= s->plan->spill_first[t->file] + s->plan->spill_bytes[t->file]);
        assert_true(offset + bytes <= s->plan->spill_total);
        if (t->kind == GS_TASK_READ)
            memcpy(m, s->spill + offset, bytes);
        else
            memcpy(s->spill + offset, m, bytes);
    } else {
        assert_int_equal(t->kind, GS_TASK_READ);
        plan_sim__bytes_of(s, t->file, offset, bytes, m);
    }
    s->read_bytes += t->kind == GS_TASK_READ ? bytes : 0;
}

/* Runs ascend, do not touch, and are whole checksum blocks where those are verified. */
static void complete_transfer(struct sim *s, uint32_t index)
{
    const gs_task *t = &s->plan->task[index];
    uint64_t end = 0;

    if (gs_task_is_copy(t->kind)) {
        copy_task(s, t, true);
        return;
    }
    if (t->kind == GS_TASK_WRITE || t->runs == 0)
        move_part(s, t, 0, t->bytes);
    for (uint32_t i = 0; t->kind == GS_TASK_READ && i < t->runs; i++) {
        const gs_run run = s->plan->run[t->first_run + i];
        const uint64_t from = run.first * GS_BLOCK_BYTES, bytes = run.blocks * GS_BLOCK_BYTES;
        assert_true(run.blocks > 0 && (i == 0 || from > end));
        if (t->check == GS_CHECK_BLOCKS) {
            assert_int_equal((t->offset + from) % s->cfg->array_sum_bytes, 0);
            assert_true(from + bytes == t->bytes || bytes % s->cfg->array_sum_bytes == 0);
        }
        move_part(s, t, from, bytes);
        end = from + bytes;
    }
}

static bool ready(const struct sim *s, uint32_t index)
{
    const gs_task *t = &s->plan->task[index];
    for (uint32_t i = 0; i < t->deps; i++) {
        assert_true(s->plan->dep[t->first_dep + i] < index);
        if (!s->done[s->plan->dep[t->first_dep + i]])
            return false;
    }
    return true;
}

/* The next task of a lane at or after `from`, or `end`. */
static uint32_t lane_next(const struct sim *s, uint32_t lane, uint32_t from, uint32_t end)
{
    while (from < end && gs_task_lane(&s->plan->task[from]) != lane)
        from++;
    return from;
}

/* Is the transfer one that was begun for the next run? */
static bool is_ahead(const struct sim *s, uint32_t pass, uint32_t index)
{
    return s->begun > 0 && s->plan->task[index].kind == GS_TASK_READ &&
           index <= s->plan->ahead[s->plan->pass[pass].first_ahead + s->begun - 1].task;
}

/* True where it was the run's own. */
static bool land(struct sim *s, uint32_t pass, uint32_t k)
{
    const uint32_t index = s->fly[k];
    const uint64_t before = s->read_bytes;
    s->fly[k] = s->fly[--s->flying];
    s->busy[gs_task_lane(&s->plan->task[index])] = false;
    complete_transfer(s, index);
    s->done[index] = 1;
    if (!is_ahead(s, pass, index))
        return true;
    s->ahead_bytes += s->read_bytes - before;
    s->read_bytes = before;
    return false;
}

static void take_off(struct sim *s, uint32_t index)
{
    start_transfer(s, index);
    s->fly[s->flying++] = index;
}

/* The next of the reads that may be made before their run, if it may now. */
static bool begin_ahead(struct sim *s, uint32_t pass)
{
    const gs_plan_pass *const p = &s->plan->pass[pass];
    const gs_ahead *const a = &s->plan->ahead[p->first_ahead + s->begun];

    if (s->begun == p->aheads || s->flying == GS_ARRAY_LEN(s->fly))
        return false;
    for (uint32_t i = 0; i < a->deps; i++)
        if (!s->done[s->plan->dep[a->first_dep + i]])
            return false;
    assert_true(s->done[a->task]); /* this run's own has been used */
    s->done[a->task] = 0;
    s->begun++;
    take_off(s, a->task);
    return true;
}

/* The run begins with what was read ahead of it; how many tasks are left. */
static uint32_t enter(struct sim *s, uint32_t pass, uint32_t *next_read)
{
    const uint32_t first = s->plan->pass[pass].first_task, end = first + s->plan->pass[pass].tasks;
    uint32_t left = end - first, begun = s->begun;

    for (uint32_t i = first; i < end; i++) {
        s->done[i] = s->done[i] && is_ahead(s, pass, i);
        left -= s->done[i];
    }
    *next_read = lane_next(s, GS_LANE_READ, first, end);
    for (; begun > 0; begun--)
        *next_read = lane_next(s, GS_LANE_READ, *next_read + 1, end);
    s->read_bytes += s->ahead_bytes;
    s->ahead_bytes = 0;
    s->begun = 0;
    return left;
}

void plan_sim__run_once(struct sim *s, uint32_t pass, bool again)
{
    const uint32_t first = s->plan->pass[pass].first_task, end = first + s->plan->pass[pass].tasks;
    const uint32_t lanes = GS_LANE_DEVICES + (s->plan->devices ? s->plan->devices * GS_DEVICE_LANES : 1);
    uint32_t at[GS_PLAN_LANES], left;

    for (uint32_t lane = 0; lane < lanes; lane++)
        at[lane] = lane_next(s, lane, first, end);
    left = enter(s, pass, &at[GS_LANE_READ]);
    for (uint64_t idle = 0; left > 0; idle++) {
        assert_true(idle < 10000000); /* a deadlock */
        const uint32_t pick = plan_sim__next(s) % (lanes + 1);
        if (pick == lanes) {
            if (s->flying == 0)
                continue;
            left -= land(s, pass, plan_sim__next(s) % s->flying);
        } else if (at[pick] < end && !s->busy[pick] && ready(s, at[pick])) {
            const uint32_t index = at[pick];
            const gs_task_kind kind = s->plan->task[index].kind;
            if (kind != GS_TASK_READ && kind != GS_TASK_WRITE && !gs_task_is_copy(kind)) {
                plan_sim__run_compute(s, index);
                s->done[index] = 1;
                left--;
            } else {
                if (s->flying == GS_ARRAY_LEN(s->fly))
                    continue;
                take_off(s, index);
                s->busy[pick] = gs_task_is_copy(kind);
            }
            at[pick] = lane_next(s, pick, index + 1, end);
        } else if (!again || pick != GS_LANE_READ || at[pick] < end || !begin_ahead(s, pass)) {
            continue;
        }
        idle = 0;
    }
    while (again && plan_sim__next(s) % 4 != 0) /* between the runs, too */
        begin_ahead(s, pass);
}
