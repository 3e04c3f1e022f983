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
        assert_int_equal(gs_topology_switch_of(s->cfg->topology, t->peer), gs_topology_switch_of(s->cfg->topology, t->device));
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
    assert_true(t->place.region == GS_REGION_RING || (t->kind == GS_TASK_READ && t->place.region == GS_REGION_RESIDENT));
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
        assert_true(offset + bytes <= s->plan->spill_bytes[t->file]);
        if (t->kind == GS_TASK_READ)
            memcpy(m, s->spill[t->file] + offset, bytes);
        else
            memcpy(s->spill[t->file] + offset, m, bytes);
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

struct flights {
    uint32_t task[64], count;
    bool busy[GS_PLAN_LANES]; /* copies of a lane follow each other */
};

static void land(struct sim *s, struct flights *f, uint32_t k)
{
    const uint32_t index = f->task[k];
    f->task[k] = f->task[--f->count];
    f->busy[gs_task_lane(&s->plan->task[index])] = false;
    complete_transfer(s, index);
    s->done[index] = 1;
}

void plan_sim__run_once(struct sim *s, uint32_t pass)
{
    const uint32_t first = s->plan->pass[pass].first_task, end = first + s->plan->pass[pass].tasks;
    const uint32_t lanes = GS_LANE_DEVICES + (s->plan->devices ? s->plan->devices * GS_DEVICE_LANES : 1);
    uint32_t at[GS_PLAN_LANES], left = end - first;
    struct flights fly = {.count = 0};

    memset(s->started + first, 0, end - first);
    memset(s->done + first, 0, end - first);
    for (uint32_t lane = 0; lane < lanes; lane++)
        at[lane] = lane_next(s, lane, first, end);
    for (uint64_t idle = 0; left > 0; idle++) {
        assert_true(idle < 10000000); /* a deadlock */
        const uint32_t pick = plan_sim__next(s) % (lanes + 1);
        if (pick == lanes) {
            if (fly.count == 0)
                continue;
            land(s, &fly, plan_sim__next(s) % fly.count);
            left--;
        } else if (at[pick] < end && !fly.busy[pick] && ready(s, at[pick])) {
            const uint32_t index = at[pick];
            const gs_task_kind kind = s->plan->task[index].kind;
            if (kind != GS_TASK_READ && kind != GS_TASK_WRITE && !gs_task_is_copy(kind)) {
                plan_sim__run_compute(s, index);
                s->done[index] = 1;
                left--;
            } else {
                if (fly.count == GS_ARRAY_LEN(fly.task))
                    continue;
                start_transfer(s, index);
                fly.task[fly.count++] = index;
                fly.busy[pick] = gs_task_is_copy(kind);
            }
            at[pick] = lane_next(s, pick, index + 1, end);
        } else {
            continue;
        }
        idle = 0;
    }
}
