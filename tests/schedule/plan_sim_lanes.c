#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/size.h"
#include "plan_sim_internal.h"
#include "support/moves.h"

/* Devices find all they use in their arenas, and never reach beyond them. */
static void *copy_end(struct sim *s, gs_place at, uint64_t bytes)
{
    assert_true(at.offset + bytes <= s->plan->region_bytes[at.region]);
    assert_int_equal(at.region == GS_REGION_ARENA, gs_is_device_memory(at.memory));
    return (at.region == GS_REGION_ARENA ? s->arena[at.memory - GS_DEVICE_MEMORIES] : s->region[at.region]) + at.offset;
}

/* Uploads, forwards, downloads. */
static uint64_t *copied(struct sim *s, const gs_task *t)
{
    return &s->copied[is_task(t, "upload") ? 0 : is_task(t, "forward") ? 1 : 2];
}

/* Rows by themselves: scribbles over them, or copies them from `from`. */
static void each_row(struct sim *s, const gs_task *t, uint8_t *to, const uint8_t *from)
{
    const uint64_t *const bits = s->plan->row_bits + t->first_word, row = t->row_bytes;
    uint64_t rows = 0;

    assert_true(!is_task(t, "forward") && t->runs == 0 && t->bytes % row == 0);
    assert_true(t->first_word + gs_task_row_words(t) <= s->plan->row_words);
    for (uint64_t r = 0; r < 64 * gs_task_row_words(t); r++) {
        if ((bits[r / 64] >> (r % 64) & 1) == 0)
            continue;
        assert_true(++rows <= t->moved_rows && (r + 1) * row <= t->bytes);
        if (from == NULL)
            memset(to + r * row, 0xDD, row);
        else
            memcpy(to + r * row, from + r * row, row);
    }
    assert_int_equal(rows, t->moved_rows);
    *copied(s, t) += from == NULL ? 0 : rows * row;
}

static void copy_task(struct sim *s, const gs_task *t, bool complete)
{
    const uint32_t peer = t->source.memory - GS_DEVICE_MEMORIES;
    uint8_t *const to = copy_end(s, t->place, t->bytes);
    const uint8_t *const from = copy_end(s, t->source, t->bytes);

    assert_true(t->device < s->plan->devices && t->bytes > 0);
    assert_int_equal(gs_link_device(gs_task_link(t)), t->device);
    if (gs_task_moves_rows(t)) {
        each_row(s, t, to, complete ? from : NULL);
        return;
    }
    for (uint32_t i = 0; !complete && i < t->runs; i++) { /* others may bring the rest at the same time */
        const gs_block_run run = s->plan->run[t->first_run + i];
        const uint64_t at = run.first * GS_BLOCK_BYTES;
        memset(to + at, 0xDD, GS_MIN(run.blocks * GS_BLOCK_BYTES, t->bytes - at));
    }
    if (!complete && t->runs == 0)
        memset(to, 0xDD, t->bytes);
    if (!complete)
        return;
    if (is_task(t, "forward"))
        assert_true(peer != t->device && peer < s->plan->devices);
    if (is_task(t, "forward") && !s->plan->ring)
        assert_true(gs_topology_hands_on(s->cfg->topology, peer, t->device));
    if (t->runs == 0) {
        memcpy(to, from, t->bytes);
        *copied(s, t) += t->bytes;
    }
    for (uint32_t i = 0; i < t->runs; i++) {
        const gs_block_run run = s->plan->run[t->first_run + i];
        const uint64_t at = run.first * GS_BLOCK_BYTES, n = GS_MIN(run.blocks * GS_BLOCK_BYTES, t->bytes - at);
        assert_true(run.blocks > 0 && at < t->bytes);
        memcpy(to + at, from + at, n);
        *copied(s, t) += n;
    }
}

/* ---- messages between ranks ---- */

static bool is_message(const gs_task *t) { return gs_task_driver(t) == GS_DRIVER_RANKS; }

/* Goes over the runs of a message: scribbles over them, or copies from or to `data`. */
static void each_byte(const struct sim *s, const gs_task *t, uint8_t *memory, uint8_t *data, bool out)
{
    for (uint32_t i = 0; i < GS_MAX(t->runs, 1u); i++) {
        const gs_block_run run = t->runs > 0 ? s->plan->run[t->first_run + i] : (gs_block_run){0, 0};
        const uint64_t at = run.first * GS_BLOCK_BYTES;
        const uint64_t n = t->runs > 0 ? GS_MIN(run.blocks * GS_BLOCK_BYTES, t->bytes - at) : t->bytes;
        if (data == NULL)
            memset(memory + at, 0xDD, n);
        else
            memcpy(out ? data : memory + at, out ? memory + at : data, n);
        data += data == NULL ? 0 : n;
    }
}

static uint32_t other_of(const gs_task *t)
{
    return GS_MAX(t->place.memory, t->source.memory) - GS_RANK_MEMORIES;
}

static void start_message(struct sim *s, const gs_task *t)
{
    if (is_task(t, "receive"))
        each_byte(s, t, copy_end(s, t->place, t->bytes), NULL, false);
}

/* What is sent leaves its place when it lands, what is received comes then: others must not have touched either. */
static void complete_message(struct sim *s, const gs_task *t)
{
    struct sim_message **from = &s->in[other_of(t)], *m;

    if (is_task(t, "send")) {
        const uint64_t bytes = gs_task_bytes(s->plan, t);
        struct sim_message **to = &s->ranks[other_of(t)].in[s->plan->rank];
        while (*to != NULL)
            to = &(*to)->next;
        assert_non_null(*to = calloc(1, sizeof(**to) + bytes));
        (*to)->bytes = bytes;
        each_byte(s, t, copy_end(s, t->source, t->bytes), (*to)->data, true);
        return;
    }
    m = *from;
    assert_int_equal(m->bytes, gs_task_bytes(s->plan, t));
    each_byte(s, t, copy_end(s, t->place, t->bytes), m->data, false);
    *from = m->next;
    free(m);
}

/* Messages of a lane end in its order, and not before they are sent. */
static bool may_land(const struct sim *s, uint32_t index)
{
    const gs_task *const t = &s->plan->task[index];

    for (uint32_t k = 0; k < s->flying && is_message(t); k++)
        if (s->fly[k] < index && gs_task_lane(&s->plan->task[s->fly[k]]) == gs_task_lane(t))
            return false;
    return !is_task(t, "receive") || s->in[other_of(t)] != NULL;
}

static void start_transfer(struct sim *s, uint32_t index)
{
    const gs_task *t = &s->plan->task[index];
    if (is_message(t)) {
        start_message(s, t);
        return;
    }
    if (gs_task_is_copy(t)) {
        copy_task(s, t, false);
        return;
    }
    const gs_place memory = *gs_task_off_disk(t);
    assert_int_equal(gs_task_on_disk(t)->offset % GS_BLOCK_BYTES, 0);
    assert_int_equal(t->bytes % GS_BLOCK_BYTES, 0);
    assert_int_equal(memory.offset % GS_BLOCK_BYTES, 0);
    assert_true(t->bytes > 0);
    assert_true(is_task(t, "load") ? memory.region == GS_REGION_ARENA
                                   : memory.region == GS_REGION_RING ||
                                         (is_task(t, "read") && memory.region == GS_REGION_RESIDENT));
    if (gs_task_reads(t))
        memset(copy_end(s, memory, t->bytes), 0xEE, t->bytes);
}

static void move_part(struct sim *s, const gs_task *t, uint64_t from, uint64_t bytes)
{
    const bool made = t->file < s->p->arrays && s->p->array[t->file].store_id < 0;
    const uint64_t offset = gs_task_on_disk(t)->offset + from;
    uint8_t *m = (uint8_t *)copy_end(s, *gs_task_off_disk(t), t->bytes) + from;

    assert_true(from + bytes <= t->bytes);
    if (made) {
        assert_true(offset >= s->plan->spill.first[t->file]);
        assert_true(offset + bytes <= s->plan->spill.first[t->file] + s->plan->spill.bytes[t->file]);
        assert_true(offset + bytes <= s->plan->spill.total);
        if (gs_task_reads(t))
            memcpy(m, s->spill + offset, bytes);
        else
            memcpy(s->spill + offset, m, bytes);
    } else {
        assert_false(gs_task_writes(t));
        plan_sim__disk_bytes_of(s, t->file, offset, bytes, m);
    }
    s->read_bytes += gs_task_reads(t) ? bytes : 0;
    s->loaded_bytes += is_task(t, "load") ? bytes : 0;
}

/* Runs ascend, do not touch, and are whole checksum blocks where those are verified. */
static void complete_transfer(struct sim *s, uint32_t index)
{
    const gs_task *t = &s->plan->task[index];
    uint64_t end = 0;

    if (is_message(t)) {
        complete_message(s, t);
        return;
    }
    if (gs_task_is_copy(t)) {
        copy_task(s, t, true);
        return;
    }
    if (t->runs == 0)
        move_part(s, t, 0, t->bytes);
    for (uint32_t i = 0; i < t->runs; i++) {
        const gs_block_run run = s->plan->run[t->first_run + i];
        const uint64_t from = run.first * GS_BLOCK_BYTES, bytes = run.blocks * GS_BLOCK_BYTES;
        assert_true(run.blocks > 0 && (i == 0 || from > end));
        if (t->check == GS_CHECK_BLOCKS) {
            assert_int_equal((t->source.offset + from) % s->cfg->array_sum_bytes, 0);
            assert_true(from + bytes == t->bytes || bytes % s->cfg->array_sum_bytes == 0);
        }
        move_part(s, t, from, bytes);
        end = from + bytes;
    }
}

static void take_off(struct sim *s, uint32_t index)
{
    start_transfer(s, index);
    s->fly[s->flying++] = index;
}

/* One of the transfers under way arrives. */
static void land(struct sim *s, uint32_t k)
{
    const uint32_t index = s->fly[k];
    const uint64_t before = s->read_bytes;
    if (!may_land(s, index))
        return;
    s->fly[k] = s->fly[--s->flying];
    s->busy[gs_task_lane(&s->plan->task[index])] = false;
    complete_transfer(s, index);
    gs_lanes_finish(&s->lanes, index);
    if (gs_lanes_is_ahead(&s->lanes, index)) {
        s->ahead_bytes += s->read_bytes - before;
        s->read_bytes = before;
    }
}

/* The next of the reads that may be made before their run, if it may now. */
static bool begin_ahead(struct sim *s)
{
    const uint32_t task = gs_lanes_ready_ahead(&s->lanes);
    if (task == GS_NONE || s->flying == GS_ARRAY_LEN(s->fly))
        return false;
    gs_lanes_begin_ahead(&s->lanes);
    take_off(s, task);
    return true;
}

#define MESSAGES 8u /* that a lane may have under way */

static uint32_t in_lane(const struct sim *s, uint32_t lane)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->flying; k++)
        n += gs_task_lane(&s->plan->task[s->fly[k]]) == lane;
    return n;
}

/* The lane's next task, if it may begin. */
static bool begin(struct sim *s, uint32_t lane)
{
    const uint32_t index = s->busy[lane] ? GS_NONE : gs_lanes_ready(&s->lanes, lane);
    if (index == GS_NONE)
        return false;
    const gs_task *const t = &s->plan->task[index];
    const bool transfers = t->kind == GS_TASK_MOVE;
    const bool copies = transfers && lane >= GS_LANE_DEVICES && !is_message(t); /* one by one */

    for (uint32_t i = 0; i < t->deps; i++) /* a set, ascending, of tasks before it */
        assert_true(s->plan->dep[t->first_dep + i] < (i + 1 < t->deps ? s->plan->dep[t->first_dep + i + 1] : index));
    if (transfers && (s->flying == GS_ARRAY_LEN(s->fly) || (is_message(t) && in_lane(s, lane) == MESSAGES)))
        return false;
    gs_lanes_begin(&s->lanes, lane);
    if (transfers) {
        take_off(s, index);
        s->busy[lane] = copies;
    } else {
        plan_sim__run_compute(s, index);
        gs_lanes_finish(&s->lanes, index);
    }
    return true;
}

static bool is_over(const struct sim *s)
{
    bool over = true;
    for (uint32_t lane = 0; lane < s->lanes.lanes; lane++)
        over = over && gs_lanes_are_over(&s->lanes, lane);
    return over;
}

/* Something that may be done next. False: it was not to be. */
static bool step(struct sim *s, bool again, uint32_t late, bool newest)
{
    const uint32_t lanes = s->lanes.lanes, pick = plan_sim__next(s) % (lanes + 1);
    const bool of_late = pick >= GS_LANE_DEVICES && (pick - GS_LANE_DEVICES) / GS_DEVICE_LANES == late;

    if (of_late && plan_sim__next(s) % 16 != 0) /* one device is far behind the others, or none is */
        return true;
    const bool done = pick < lanes ? begin(s, pick) || (again && pick == GS_LANE_READ && begin_ahead(s))
                                   : s->flying > 0;
    if (pick == lanes && s->flying > 0)
        land(s, newest && plan_sim__next(s) % 8 > 0 ? s->flying - 1 : plan_sim__next(s) % s->flying);
    return done;
}

static void check_lanes(const struct sim *s)
{
    if (gs_lanes_fault(&s->lanes) != NULL)
        fail_msg("%s", gs_lanes_fault(&s->lanes));
}

void plan_sim__run_once(struct sim *s, uint32_t pass, bool again)
{
    const uint32_t late = plan_sim__next(s) % (s->plan->devices + 1);
    const bool newest = plan_sim__next(s) % 2 == 0; /* what began last comes first, mostly: the first is far behind */

    gs_lanes_enter(&s->lanes, pass);
    s->read_bytes += s->ahead_bytes;
    s->ahead_bytes = 0;
    bool over = is_over(s);
    for (uint64_t idle = 0; !over; idle++) {
        assert_true(idle < 10000000); /* a deadlock */
        if (step(s, again, late, newest)) {
            idle = 0;
            over = is_over(s);
        }
    }
    while (again && plan_sim__next(s) % 4 != 0) /* between the runs, too */
        begin_ahead(s);
    check_lanes(s);
}

void plan_sim__run_parts(struct sim *ranks, uint32_t pass)
{
    const uint32_t count = ranks[0].plan->ranks, late = plan_sim__next(ranks) % (count + 1);
    bool over[GS_PLAN_DEVICES] = {false};
    uint32_t left = count;

    for (uint32_t r = 0; r < count; r++) {
        gs_lanes_enter(&ranks[r].lanes, pass);
        left -= over[r] = is_over(&ranks[r]);
    }
    for (uint64_t turn = 0; left > 0; turn++) {
        assert_true(turn < 100000000); /* a deadlock */
        const uint32_t r = plan_sim__next(ranks) % count;
        if (over[r] || (r == late && plan_sim__next(ranks) % 16 != 0))
            continue;
        for (uint32_t k = 0; k < 8 && !over[r]; k++)
            if (step(&ranks[r], false, 1, turn % 64 < 32))
                over[r] = is_over(&ranks[r]);
        left -= over[r];
    }
    for (uint32_t r = 0; r < count; r++) {
        check_lanes(&ranks[r]);
        for (uint32_t k = 0; k < count; k++)
            assert_null(ranks[r].in[k]); /* all that is sent is received */
    }
}
