/* emit_sequence.c - the derivative of an LSTM over the edges of a block of target intervals.
 *
 * A column's chunks are gone over from the last to the first, and each needs the states at its start. A first
 * sweep goes forward and keeps them at the start of every group of chunks; then, group by group from
 * the last, the states inside the group are computed again from there, and its chunks are taken in reverse.
 * With groups of one chunk the first sweep has them all.
 *
 * What comes back at the operand end is added to rows of an array: an operand interval's rows are
 * read (zeroed, the first time of the stage), added to by the chunks of the block, and written.
 *
 * Several devices go over the operand intervals that any of them needs, all in one order. The rows that are added to
 * travel: the first device that has edges gets them from the host, adds what its chunks bring and hands them on
 * along the chain, where the next adds its part while the first has gone on to the interval before; the last one's copy
 * goes back to the host, and from there to the next chain. So there is one copy of them, and the order of adding is
 * that of the devices. A device that is alone keeps them as it keeps what its vertex programs make, and sends them home
 * only where the host is to have them.
 */

#include "schedule/keep.h"
#include "schedule/emit_cache.h"
#include "schedule/emitter.h"

static const gs_sum *sequence_of(const struct emitter *e)
{
    return &gs_emit__stage(e)->sum[0];
}

static uint64_t width_of(const struct emitter *e)
{
    return e->l->program->param[sequence_of(e)->weight].cols;
}

static uint32_t gates_array(const struct emitter *e)
{
    return gs_emit__stage(e)->edge_reg[sequence_of(e)->value].array;
}

/* ---- states: slot by slot, in it interval by interval; the gradients are the last slot ---- */

static uint32_t gradient_slot(const struct emitter *e)
{
    return gs_state_slots(e->l->parts, e->c->group[e->stage]);
}

static gs_place state_place(const struct emitter *e, uint32_t slot, uint32_t local, bool cell)
{
    const uint64_t unit = gs_state_bytes(e->l, gs_emit__stage(e));
    const uint64_t at = e->l->stage[e->stage].scratch_bytes + ((uint64_t)slot * e->c->block[e->stage] + local) * unit;
    return gs_emit__in_arena(e, at + (cell ? 4 * width_of(e) * e->l->chunks->interval_rows : 0));
}

/* Where the state at the start of the block's `index`-th operand is, once it is there. */
static uint32_t slot_of(const struct emitter *e, uint32_t index)
{
    const uint32_t group = e->c->group[e->stage], groups = (uint32_t)gs_div_up(e->l->parts, group);
    return index % group == 0 ? index / group : groups + index % group - 1;
}

static gs_status copy(struct emitter *e, gs_place to, gs_place from, uint64_t bytes, uint32_t *task)
{
    const gs_task t = {.kind = GS_TASK_COPY, .place = to, .source = from, .bytes = bytes};
    return gs_emit__task(e, &t, task);
}

/* The state before any edge, and the gradient of the one after all of them. */
static gs_status begin_interval(struct emitter *e, uint32_t interval, uint32_t local)
{
    const uint32_t rows = gs_interval_rows(e->l->chunks, interval),
                   array = gs_emit__stage(e)->edge_reg[sequence_of(e)->score].array;
    const uint64_t half = 4 * width_of(e) * e->l->chunks->interval_rows;
    struct unit u;
    uint32_t task;

    if (!gs_emit__target_needed(e, interval))
        return GS_OK;
    GS_TRY(gs_emit__zero(e, state_place(e, 0, local, false), 2 * half, &task));
    GS_TRY(gs_emit__zero(e, state_place(e, gradient_slot(e), local, true), half, &task));
    GS_TRY(gs_emit__rows_here(e, array, interval, 0, rows, false, &u));
    gs_emit__wait(e, u.read);
    GS_TRY(copy(e, state_place(e, gradient_slot(e), local, false), u.place, 4 * width_of(e) * rows, &task));
    gs_emit__release(e, &u, task);
    return GS_OK;
}

/* Begins the block that the device holds. */
static gs_status begin_block(struct emitter *e)
{
    const struct block b = gs_emit__here(e)->block;
    for (uint32_t t = 0; t < b.count; t++)
        GS_TRY(begin_interval(e, b.first + t, t));
    return GS_OK;
}

/* ---- chunks ---- */

/* `also`: one more task to wait for. */
static gs_status chunk_task(struct emitter *e, gs_task *t, uint32_t slot, uint32_t local, uint32_t also, uint32_t *last)
{
    const gs_chunk *c = gs_layout_chunk(e->l, e->stage, t->target, t->operand);
    const struct unit *const gates = &gs_emit__here(e)->operand[0];
    gs_plan *p = e->plan;
    struct unit chunk;

    t->file = GS_FILE_EDGES(e->l->program, e->l->stage_set[e->stage]);
    t->chunk_bytes = c->length;
    GS_TRY(gs_emit__chunk_here(e, t->target, t->operand, &chunk));
    GS_TRY(gs_emit__grow((void **)&p->reg, &e->room.reg, p->regs + GS_STATE_PLACES, sizeof(*p->reg)));
    t->first_reg = p->regs;
    for (int k = 0; k < GS_STATE_PLACES; k++) {
        const bool cell = k == GS_STATE_CELL || k == GS_STATE_D_CELL;
        p->reg[p->regs++] = state_place(e, k < GS_STATE_D ? slot : gradient_slot(e), local, cell);
    }
    t->source = gates->place;
    t->chunk = chunk.place;
    gs_emit__wait(e, chunk.read);
    gs_emit__wait(e, gates->read);
    gs_emit__wait(e, also);
    GS_TRY(gs_emit__task(e, t, last));
    gs_emit__release(e, &chunk, *last);
    e->stage_edges += t->kind == GS_TASK_BACK ? c->edges : 0;
    e->pass->edge_bytes += c->edges * 16 * width_of(e);
    return GS_OK;
}

static bool has_edges(const struct emitter *e, uint32_t target, uint32_t operand)
{
    return gs_layout_chunk(e->l, e->stage, target, operand)->edges > 0;
}

/* The rows of gates that edges of the devices' blocks name come to those whose they are. `beside`: an array
 * whose rows of the interval a device and the host will hold besides, or GS_NONE. */
static gs_status load_gates(struct emitter *e, uint32_t operand, const bool *needs, uint32_t beside)
{
    const uint32_t rows = gs_interval_rows(e->l->chunks, operand);

    for (e->device = 0; e->device < e->devices; e->device++) {
        const struct block b = gs_emit__here(e)->block;
        struct memory *const m = gs_emit__memory_here(e);
        uint64_t here = gs_emit__ring_bytes(e, m, gates_array(e), operand, rows), most = 0;
        for (uint32_t t = 0; t < b.count; t++)
            most = GS_MAX(most, gs_layout_chunk(e->l, e->stage, b.first + t, operand)->length);
        here += beside == GS_NONE ? 0 : gs_emit__ring_bytes(e, m, beside, operand, rows);
        if (needs[e->device] && gs_is_device_memory(m->number))
            gs_ring_group(&m->ring, here + most);
    }
    e->device = 0;
    e->ends.group_first = operand; /* chunks come one by one */
    e->ends.group_end = operand + 1;
    const struct memory *const host = &e->memory[GS_HOST];
    const uint64_t more = beside == GS_NONE ? 0 : gs_emit__ring_bytes(e, host, beside, operand, rows);
    return gs_emit__load_operands(e, operand, needs, more);
}

/* Computes the states of the device's block behind the operand, at `to`, from those before it, at `from`. */
static gs_status unroll_here(struct emitter *e, uint32_t operand, bool needs, uint32_t from, uint32_t to)
{
    const struct block b = gs_emit__here(e)->block;
    const uint64_t bytes = gs_state_bytes(e->l, gs_emit__stage(e));
    uint32_t last = GS_NONE;

    for (uint32_t t = 0; t < b.count; t++) {
        gs_task task = {.kind = GS_TASK_UNROLL, .target = b.first + t, .operand = operand};
        if (!gs_emit__target_needed(e, b.first + t))
            continue;
        if (from != to)
            GS_TRY(copy(e, state_place(e, to, t, false), state_place(e, from, t, false), bytes, &last));
        if (has_edges(e, b.first + t, operand))
            GS_TRY(chunk_task(e, &task, to, t, GS_NONE, &last));
    }
    if (needs)
        gs_emit__release(e, &gs_emit__here(e)->operand[0], last);
    return GS_OK;
}

/* The states at the start of the operand after the `index`-th, from those at its own. */
static gs_status unroll(struct emitter *e, uint32_t index, uint32_t from, uint32_t to)
{
    const uint32_t operand = e->ends.needed[index];
    bool needs[GS_PLAN_DEVICES];

    (void)gs_emit__list_needs(e, operand, needs);
    GS_TRY(load_gates(e, operand, needs, GS_NONE));
    for (e->device = 0; e->device < e->devices; e->device++)
        GS_TRY(unroll_here(e, operand, needs[e->device], from, to));
    e->device = 0;
    return GS_OK;
}

/* ---- the operand rows' gradient ---- */

/* Does the host never have it? */
static bool is_own(const struct emitter *e, uint32_t unit)
{
    return e->c->device.own != NULL && e->c->device.own[unit];
}

/* Tasks that have written rows of this interval, or, where they are kept, one that has touched them. */
static uint32_t *touched(struct emitter *e, uint32_t unit) { return e->spill.written[unit]; }

static struct want gradient_of(const struct emitter *e, uint32_t operand)
{
    return (struct want){.unit = gs_emit__array_unit(e, sequence_of(e)->array, operand),
                         .rows = gs_interval_rows(e->l->chunks, operand), .whole = true, .updated = true};
}

static uint64_t bytes_of(const struct emitter *e, const struct want *w)
{
    return w->rows * gs_emit__row_bytes(e, w->unit);
}

/* Rows that are 0 until somebody adds to them. */
static gs_status begin_gradient(struct emitter *e, struct want w, struct unit *rows)
{
    bool fresh;
    w.made = true;
    const gs_status st = gs_emit__make(e, &w, bytes_of(e, &w), rows, &fresh);
    return st == GS_OK ? gs_emit__zero(e, rows->place, bytes_of(e, &w), &rows->read) : st;
}

/* The one copy of the rows comes to this device from wherever it is: `rows`, or nowhere yet. */
static gs_status take_gradient(struct emitter *e, uint32_t operand, struct unit *rows)
{
    struct want w = gradient_of(e, operand);
    const bool on_device = gs_is_device_memory(rows->place.memory);

    if (gs_emit__is_there(rows)) {
        if (on_device && !gs_emit__is_handed_on(e, rows->place.memory - GS_DEVICE_MEMORIES))
            GS_TRY(gs_emit__send_home(e, &w, bytes_of(e, &w), rows));
        return gs_emit__fetch(e, bytes_of(e, &w), rows);
    }
    if (touched(e, w.unit)[0] == GS_NONE)
        return begin_gradient(e, w, rows);
    if (gs_emit__is_kept(e, w.unit) && gs_emit__memory_here(e)->is.keeps_made && gs_layout_unit_stays(e->l, w.unit) &&
        !is_own(e, w.unit))
        gs_emit__wait(e, touched(e, w.unit)[1]);
    return gs_emit__deliver_here(e, &w, rows);
}

/* rows->read was the last task to add to them. */
static gs_status close_gradient(struct emitter *e, uint32_t operand, struct unit *rows)
{
    const struct want w = gradient_of(e, operand);
    const gs_status st = gs_emit__settle_home(e, &w, bytes_of(e, &w), rows);
    touched(e, w.unit)[0] = touched(e, w.unit)[1] = rows->read; /* it waits for all that wrote the rows before */
    return st;
}

/* The chunks of the device's block, which has some, add their part to the rows. */
static gs_status back_here(struct emitter *e, uint32_t index, struct unit *rows)
{
    const struct block b = gs_emit__here(e)->block;
    const uint32_t operand = e->ends.needed[index];

    GS_TRY(take_gradient(e, operand, rows));
    for (uint32_t t = 0; t < b.count; t++) {
        gs_task task = {.kind = GS_TASK_BACK, .target = b.first + t, .operand = operand, .place = rows->place};
        if (has_edges(e, b.first + t, operand))
            GS_TRY(chunk_task(e, &task, slot_of(e, index), t, rows->read, &rows->read));
    }
    gs_emit__release(e, &gs_emit__here(e)->operand[0], rows->read);
    return GS_OK;
}

static gs_status back(struct emitter *e, uint32_t index)
{
    const uint32_t operand = e->ends.needed[index];
    bool needs[GS_PLAN_DEVICES];
    struct unit rows = {.read = GS_NONE, .ring = NOT_STAGED};

    (void)gs_emit__list_needs(e, operand, needs);
    GS_TRY(load_gates(e, operand, needs, sequence_of(e)->array));
    for (e->device = 0; e->device < e->devices; e->device++)
        if (needs[e->device])
            GS_TRY(back_here(e, index, &rows));
    e->device = 0;
    return close_gradient(e, operand, &rows);
}

/* ---- the whole ---- */

/* The group's states, but those at its start, and then its chunks in reverse. */
static gs_status back_group(struct emitter *e, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i + 1 < end; i++)
        GS_TRY(unroll(e, i, slot_of(e, i), slot_of(e, i + 1)));
    for (uint32_t i = end; i-- > first;)
        GS_TRY(back(e, i));
    return GS_OK;
}

gs_status gs_emit__back_pass(struct emitter *e)
{
    const uint32_t group = e->c->group[e->stage];
    bool needs[GS_PLAN_DEVICES];
    uint32_t count = 0;

    gs_emit__list_ends(e); /* gates at the operand end, and nothing else */
    for (uint32_t o = 0; o < e->l->parts; o++)
        if (gs_emit__list_needs(e, o, needs))
            e->ends.needed[count++] = o;
    for (e->device = 0; e->device < e->devices; e->device++)
        GS_TRY(begin_block(e));
    e->device = 0;
    const uint32_t groups = (uint32_t)gs_div_up(count, group);
    for (uint32_t i = 0; groups > 0 && i < (groups - 1) * group; i++) {
        const uint32_t to = i / group + 1; /* the next group's slot */
        GS_TRY(unroll(e, i, i % group == 0 ? to - 1 : to, to));
    }
    for (uint32_t g = groups; g-- > 0;)
        GS_TRY(back_group(e, g * group, GS_MIN((g + 1) * group, count)));
    return GS_OK;
}

gs_status gs_emit__back_finish(struct emitter *e)
{
    for (uint32_t o = 0; o < e->l->parts; o++) {
        struct unit rows = {.read = GS_NONE, .ring = NOT_STAGED};
        if (touched(e, gradient_of(e, o).unit)[0] != GS_NONE)
            continue;
        GS_TRY(take_gradient(e, o, &rows));
        GS_TRY(close_gradient(e, o, &rows));
    }
    return GS_OK;
}
