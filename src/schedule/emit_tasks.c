/* emit_tasks.c - the list of tasks as it grows: what a task waits for, and in which lane.
 *
 * What a task must wait for comes from two places: the bytes it needs (reads, and for reads of arrays of the run
 * their writes), and the place it takes over. Each lane runs in list order anyway, so waits of a compute for a compute
 * are dropped.
 */
#include "schedule/emitter.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

_Static_assert(GS_PLAN_LANES <= UINT8_MAX, "a lane's number is a byte");

/* A ring of the largest size that helps has no room for more reads than these. */
#define EARLIES_MOST 32768u
#define FEW_WAITS 32u /* which are sorted without a call a pair of them */

gs_status gs_emit__grow(void **array, uint32_t *room, uint32_t need, size_t size)
{
    if (need <= *room)
        return GS_OK;
    if (need > UINT32_MAX / 2)
        return gs_fail(GS_EUNSUPPORTED, "the plan has too many tasks; use a store with fewer parts");
    const uint32_t more = GS_MAX(need, *room ? *room * 2 : 256);
    void *p = gs_realloc(*array, more * size);
    if (p == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    *array = p;
    *room = (uint32_t)GS_MIN(gs_alloc_room(p) / size, UINT32_MAX / 2);
    return GS_OK;
}

void gs_emit__wait(struct emitter *e, uint32_t task)
{
    if (task != GS_NONE && e->wait.count < WAITS)
        e->wait.task[e->wait.count++] = task;
}

uint32_t gs_emit__join(struct emitter *e, const uint32_t *task, uint32_t tasks)
{
    const uint32_t at = e->wait.joins;
    if (e->c->counts) { /* it is waited for once */
        e->counted.deps += tasks - 1;
        return task[tasks - 1];
    }
    /* Without memory, or with more of them than numbers, the last one stands for all: no plan, then. */
    if (at + tasks + 1 >= JOINED ||
        gs_emit__grow((void **)&e->wait.joined, &e->wait.joined_room, at + tasks + 1, sizeof(*e->wait.joined)) !=
            GS_OK) {
        e->wait.count = WAITS;
        return task[tasks - 1];
    }
    e->wait.joined[at] = tasks;
    memcpy(&e->wait.joined[at + 1], task, tasks * sizeof(*task));
    e->wait.joins += tasks + 1;
    return JOINED | at;
}

void gs_emit__expand(struct emitter *e, uint32_t from)
{
    const uint32_t end = e->wait.count;
    for (uint32_t i = from; i < end; i++) {
        if ((e->wait.task[i] & JOINED) == 0)
            continue;
        const uint32_t *const list = &e->wait.joined[e->wait.task[i] & ~JOINED];
        e->wait.task[i] = list[1];
        for (uint32_t k = 2; k <= list[0]; k++)
            gs_emit__wait(e, list[k]);
    }
}

/* Adds to the collected waits what the lane's first task of a stage waits for. Beside that, stages overlap: a task
 * waits for who made what it uses, and for who used its place. Who read bytes of the run's file that another array has
 * by now is not listed: it was in a stage before, for copies that are done, or computations in place. */
static void enter_stage(struct emitter *e, uint32_t lane)
{
    const bool computes = lane >= GS_LANE_DEVICES && (lane - GS_LANE_DEVICES) % GS_DEVICE_LANES == GS_LANE_COMPUTE;

    if (e->wait.lane_open[lane])
        return;
    e->wait.lane_open[lane] = true;
    gs_emit__wait(e, computes ? e->wait.statistics : GS_NONE);
    for (uint32_t d = 0; lane == GS_LANE_WRITE && d < e->devices; d++)
        gs_emit__wait(e, e->wait.lane_before[GS_LANE_DEVICES + d * GS_DEVICE_LANES +
                                             (e->l->memory.in_place[d] ? GS_LANE_COMPUTE : GS_LANE_UPLOAD)]);
}

/* Puts them in order one by one, which is faster for few. */
static void insert_waits(uint32_t *task, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t t = task[i];
        uint32_t k = i;
        for (; k > 0 && task[k - 1] > t; k--)
            task[k] = task[k - 1];
        task[k] = t;
    }
}

/* Makes a set of waits: ascending, each once. Returns how many are left. */
static uint32_t sort_waits(uint32_t *task, uint32_t count)
{
    uint32_t sorted = 1, n = 0;

    while (sorted < count && task[sorted - 1] < task[sorted])
        sorted++;
    if (sorted >= count)
        return count;
    if (count <= FEW_WAITS)
        insert_waits(task, count);
    else
        qsort(task, count, sizeof(*task), gs_by_number);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || task[i] != task[n - 1])
            task[n++] = task[i];
    return n;
}

/* Keeps only the last of each lane whose tasks end in order. */
uint32_t gs_emit__settle_waits(struct emitter *e, uint32_t lane)
{
    uint32_t last[GS_PLAN_LANES], seen[GS_PLAN_LANES], lanes = 0, n = 0;

    memset(last, 0xff, (GS_LANE_DEVICES + e->devices * GS_DEVICE_LANES) * sizeof(*last)); /* GS_NONE */
    for (uint32_t i = 0; i < e->wait.count; i++) {
        const uint32_t w = e->wait.task[i], of = gs_emit__lane(e, w);
        if (of < GS_LANE_DEVICES) {
            e->wait.task[n++] = w;
        } else if (of != lane) {
            if (last[of] == GS_NONE)
                seen[lanes++] = of;
            last[of] = last[of] == GS_NONE ? w : GS_MAX(last[of], w);
        }
    }
    for (uint32_t k = 0; k < lanes; k++)
        e->wait.task[n++] = last[seen[k]];
    return sort_waits(e->wait.task, n);
}

/* Bytes of the plan's own tables so far, and of those of its run. */
uint64_t gs_emit__table_bytes(const struct emitter *e)
{
    const gs_plan *const p = e->plan;
    return p->tasks * gs_emit_task_bytes(e->l) +
           (p->deps + e->counted.deps) * sizeof(*p->dep) + (p->regs + e->counted.regs) * sizeof(*p->reg) +
           (p->runs + e->counted.runs) * sizeof(*p->run) +
           (p->row_words + e->counted.row_words) * GS_MAX(e->l->config->needs.rows.rows, 1u) * sizeof(*p->row_bits) +
           p->aheads * sizeof(*p->ahead) +
           p->residents * sizeof(*p->resident) + 2 * GS_PLAN_PACKED * e->packed;
}

bool gs_emit__has_room(struct emitter *e)
{
    const uint64_t bytes = gs_emit__table_bytes(e);
    e->crammed = e->crammed || (!e->c->chunks_alone && bytes + e->beside > e->tables_enough);
    if (bytes + e->beside <= e->tables_most)
        return true;
    e->c->crammed = true;
    e->c->device.crowded = bytes <= e->tables_most;
    return false;
}

void gs_emit__drop_runs(struct emitter *e)
{
    e->counted.runs += e->c->counts ? e->plan->runs : 0;
    e->plan->runs = e->c->counts ? 0 : e->plan->runs;
    e->counted.row_words += e->c->counts ? e->plan->row_words : 0;
    e->plan->row_words = e->c->counts ? 0 : e->plan->row_words;
}

/* Of a task whose lane is the next of made.lane: lists it where the plan has lists. */
static gs_status list_task(struct emitter *e, const gs_task *t, uint16_t device, uint32_t waits)
{
    gs_plan *const p = e->plan;

    if (e->c->counts) {
        e->counted.deps += waits;
        e->counted.regs += p->regs;
        p->regs = 0;
        return GS_OK;
    }
    GS_TRY(gs_emit__grow((void **)&p->task, &e->room.task, p->tasks + 1, sizeof(*p->task)));
    GS_TRY(gs_emit__grow((void **)&p->dep, &e->room.dep, p->deps + waits, sizeof(*p->dep)));
    gs_task *const out = &p->task[p->tasks];
    *out = *t;
    out->stage = e->stage;
    out->device = device;
    out->first_dep = p->deps;
    out->deps = waits;
    if (waits > 0)
        memcpy(&p->dep[p->deps], e->wait.task, waits * sizeof(*p->dep));
    p->deps += waits;
    return GS_OK;
}

static gs_status note_moved(struct moved **list, uint32_t *count, uint32_t *room, struct moved m)
{
    GS_TRY(gs_emit__grow((void **)list, room, *count + 1, sizeof(**list)));
    (*list)[(*count)++] = m;
    return GS_OK;
}

/* What tasks behind this one will ask of it. */
static gs_status note_made(struct emitter *e, const gs_task *t, uint32_t lane, uint32_t waits)
{
    struct made *const m = &e->made;
    const uint32_t task = e->plan->tasks;

    GS_TRY(gs_emit__grow((void **)&m->lane, &e->room.lane, task + 1, sizeof(*m->lane)));
    m->lane[task] = (uint8_t)lane;
    if (lane == GS_LANE_WRITE)
        return note_moved(&m->write, &m->writes, &e->room.write,
                          (struct moved){task, t->file, t->place.offset, t->bytes});
    if (lane != GS_LANE_READ || m->late)
        return GS_OK;
    m->late = waits > 0 || t->place.region != GS_REGION_RING || m->earlies == EARLIES_MOST;
    return m->late ? GS_OK : note_moved(&m->early, &m->earlies, &e->room.early,
                                        (struct moved){task, t->file, t->place.offset, t->bytes});
}

uint32_t gs_emit__writes_from(const struct emitter *e, uint32_t task)
{
    uint32_t low = 0, high = e->made.writes;
    GS_BISECT(low, high, e->made.write[middle].task < task);
    return low;
}

/* Appends a task that waits for e->wait.task, which is emptied. */
gs_status gs_emit__task(struct emitter *e, const gs_task *t, uint32_t *index)
{
    gs_plan *p = e->plan;
    if (e->l->config->no_pipeline && gs_task_reads(t)) {
        gs_emit__wait(e, e->last_compute);
        gs_emit__wait(e, e->last_write);
    }
    const uint16_t device = (uint16_t)(gs_task_driver(t) == GS_DRIVER_IO ? 0 : e->device);
    const uint32_t lane = gs_lane_of(t, device);
    enter_stage(e, lane);
    if (e->wait.count + GS_PLAN_LANES > WAITS || !gs_emit__has_room(e))
        return GS_ENOFIT;
    const uint32_t n = gs_emit__settle_waits(e, lane);
    GS_TRY(list_task(e, t, device, n));
    GS_TRY(note_made(e, t, lane, n));
    e->wait.count = 0;
    if (gs_task_writes(t))
        e->last_write = p->tasks;
    else if (!gs_task_reads(t))
        e->last_compute = p->tasks;
    e->wait.lane_last[lane] = p->tasks;
    *index = p->tasks++;
    return GS_OK;
}

gs_status gs_emit__zero(struct emitter *e, gs_place place, uint64_t bytes, uint32_t *task)
{
    const gs_task t = {.kind = GS_TASK_ZERO, .place = place, .bytes = bytes};
    return bytes > 0 ? gs_emit__task(e, &t, task) : GS_OK;
}

void gs_emit__store_extent(const gs_layout *l, uint32_t array, uint64_t first, uint64_t rows, gs_task *t,
                           uint64_t *skip)
{
    const uint64_t block = l->config->array_sum_bytes, row = l->row_bytes[array];
    const uint64_t file = gs_align_up(l->chunks->vertices * row, GS_BLOCK_BYTES);
    const uint64_t begin = gs_align_down(first * row, block);
    t->source = gs_place_on_disk(begin);
    t->bytes = GS_MIN(gs_align_up((first + rows) * row, block), file) - begin;
    t->check = GS_CHECK_BLOCKS;
    *skip = first * row - begin;
}
