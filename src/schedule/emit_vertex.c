/* emit_vertex.c - the vertex program of one interval, tile by tile.
 *
 * Wide arrays are staged a tile at a time, narrow ones an interval at a time; what is
 * stored goes to the kept rows themselves or to a place in the ring that a write empties.
 */

#include "base/size.h"
#include "schedule/emit_cache.h"
#include "schedule/emitter.h"
#include "schedule/keep.h"

static bool is_narrow(const struct emitter *e, const gs_reg *r)
{
    return r->kind == GS_REG_LOAD && e->l->row_bytes[r->array] <= GS_SHORT_ROW_BYTES;
}

/* Loads what a tile reads; the tile's units and the task's register places are filled. */
static gs_status tile_inputs(struct emitter *e, uint32_t interval, struct block b, uint32_t from, uint32_t rows,
                             gs_place *place)
{
    const gs_stage *s = gs_emit__stage(e);
    const gs_stage_layout *sl = &e->l->stage[e->stage];
    for (uint32_t r = 0; r < s->regs; r++) {
        const gs_reg *reg = &s->reg[r];
        e->tile[r] = (struct unit){.read = GS_NONE, .ring = NOT_STAGED};
        if (is_narrow(e, reg)) {
            e->tile[r].place = gs_emit__here(e)->narrow[r].place;
            e->tile[r].place.offset += from * e->l->row_bytes[reg->array];
            e->tile[r].read = gs_emit__here(e)->narrow[r].read;
        } else if (reg->kind == GS_REG_LOAD) {
            GS_TRY(gs_emit__rows_here(e, reg->array, interval, from, rows, !e->first_tile, &e->tile[r]));
        } else if (reg->kind == GS_REG_TEMP && reg->array == GS_NONE && sl->reg_offset[r] != UINT64_MAX) {
            e->tile[r].place = gs_emit__in_arena(e, sl->reg_offset[r]);
        }
        place[r] = e->tile[r].place;
    }
    for (uint32_t i = 0; i < s->sums; i++) {
        const uint32_t r = s->sum[i].reg;
        if (r == GS_NONE)
            continue;
        place[r] = gs_emit__sum_place(e, i, GS_SUM_ACC, interval - b.first);
        place[r].offset += 4ull * s->reg[r].width * from;
        if (s->sum[i].kind == GS_SUM_ATTEND) { /* a finished maximum is the log-sum-exp */
            place[s->sum[i].lse] = gs_emit__sum_place(e, i, GS_SUM_MAXIMUM, interval - b.first);
            place[s->sum[i].lse].offset += 4ull * s->reg[s->sum[i].lse].width * from;
        }
    }
    return GS_OK;
}

/* Whole blocks of the interval's file that rows touch: nothing else that is stored is in them. */
static uint64_t stored_bytes(uint64_t row, uint32_t from, uint32_t rows)
{
    return gs_align_up((from + rows) * row, GS_BLOCK_BYTES) - gs_align_down(from * row, GS_BLOCK_BYTES);
}

/* What a tile stores goes to the kept rows themselves, or to the ring. A device of several has it in its own first. */
static bool is_output(const gs_reg *r) { return r->kind == GS_REG_TEMP && r->array != GS_NONE; }

/* Rows of the unit at `to` that the stage leaves out are 0, as everybody expects. */
static gs_status zero_rest(struct emitter *e, uint32_t array, uint32_t interval, gs_place to)
{
    const uint64_t row = e->l->row_bytes[array];
    uint32_t at = 0, task;

    for (uint32_t k = 0, runs = gs_layout_runs(e->l, e->stage, interval); k <= runs; k++) {
        const gs_row_run end = {gs_interval_rows(e->l->chunks, interval), 0},
                         run = k < runs ? gs_layout_run(e->l, e->stage, interval, k) : end;
        GS_TRY(gs_emit__zero(e, gs_place_behind(to, at * row), (run.first - at) * row, &task));
        at = run.first + run.rows;
    }
    return GS_OK;
}

/* Rows that a tile stores in register `r`. */
static struct want output_of(const struct emitter *e, uint32_t r, uint32_t interval, uint32_t from, uint32_t rows)
{
    return (struct want){.unit = gs_emit__array_unit(e, gs_emit__stage(e)->reg[r].array, interval), .first = from,
                         .rows = rows, .whole = true, .made = true, .again = !e->first_tile};
}

/* Bytes of them where they stay on the host, or of whole blocks of the file. */
static uint64_t output_bytes(const struct emitter *e, const struct want *w)
{
    const uint64_t row = gs_emit__row_bytes(e, w->unit);
    return gs_emit__is_kept(e, w->unit) ? w->rows * row : stored_bytes(row, w->first, w->rows);
}

static gs_status tile_outputs(struct emitter *e, uint32_t interval, uint32_t from, uint32_t rows, gs_place *place)
{
    const gs_stage *s = gs_emit__stage(e);
    for (uint32_t r = 0; r < s->regs; r++) {
        struct unit *const out = &e->tile[r];
        bool fresh;
        if (!is_output(&s->reg[r]))
            continue;
        const struct want w = output_of(e, r, interval, from, rows);
        const uint64_t at = from * gs_emit__row_bytes(e, w.unit);
        GS_TRY(gs_emit__make(e, &w, output_bytes(e, &w), out, &fresh));
        place[r] = out->place;
        if (fresh)
            GS_TRY(zero_rest(e, s->reg[r].array, interval, gs_place_behind(out->place, -at)));
        place[r].offset += gs_emit__is_kept(e, w.unit) || out->in_cache ? 0 : at % GS_BLOCK_BYTES;
    }
    return GS_OK;
}

/* A run's first and last blocks go to the file with 0 where its rows are not: rows that no stage stores are 0. */
static gs_status zero_around(struct emitter *e, uint32_t interval, uint32_t from, uint32_t rows)
{
    const gs_stage *s = gs_emit__stage(e);
    uint32_t task;
    for (uint32_t r = 0; r < s->regs; r++) {
        const gs_reg *reg = &s->reg[r];
        if (!is_output(reg) || interval < e->c->kept_intervals[reg->array] || e->tile[r].in_cache)
            continue;
        const uint64_t row = e->l->row_bytes[reg->array], head = from * row % GS_BLOCK_BYTES;
        const uint64_t end = head + rows * row;
        GS_TRY(gs_emit__zero(e, e->tile[r].place, head, &task));
        GS_TRY(gs_emit__zero(e, gs_place_behind(e->tile[r].place, end), stored_bytes(row, from, rows) - end, &task));
    }
    return GS_OK;
}

static gs_status settle_outputs(struct emitter *e, uint32_t interval, uint32_t from, uint32_t rows, uint32_t made)
{
    const gs_stage *s = gs_emit__stage(e);
    for (uint32_t r = 0; r < s->regs; r++) {
        if (!is_output(&s->reg[r]))
            continue;
        const struct want w = output_of(e, r, interval, from, rows);
        e->tile[r].read = made;
        if (gs_emit__memory_here(e)->is.drops_unread && !gs_emit__is_kept(e, w.unit) &&
            !gs_layout_holds(e->l, s->reg[r].array, interval, from, rows))
            gs_emit__release(e, &e->tile[r], made); /* the file stays 0 there */
        else
            GS_TRY(gs_emit__settle_home(e, &w, output_bytes(e, &w), &e->tile[r]));
    }
    return GS_OK;
}

/* A tile's inputs and outputs are live together, and so are an interval's narrow arrays. */
static void group_tile(struct emitter *e, uint32_t interval, uint64_t rows)
{
    const gs_stage *s = gs_emit__stage(e);
    struct memory *const of[] = {&e->memory[GS_HOST], gs_emit__memory_here(e)};
    for (uint32_t k = 0; k < GS_ARRAY_LEN(of); k++) {
        uint64_t bytes = 0;
        for (uint32_t r = 0; r < s->regs; r++)
            if (s->reg[r].kind != GS_REG_SUM && s->reg[r].array != GS_NONE && !is_narrow(e, &s->reg[r]))
                bytes += gs_emit__ring_bytes(e, of[k], s->reg[r].array, interval, rows);
        gs_ring_group(&of[k]->ring, bytes);
    }
}

/* Live for the whole interval. */
static gs_status load_narrow(struct emitter *e, uint32_t interval, uint32_t rows)
{
    const gs_stage *s = gs_emit__stage(e);
    struct memory *const m = gs_emit__memory_here(e);
    uint64_t bytes = 0, head;
    for (uint32_t r = 0; r < s->regs; r++)
        bytes += is_narrow(e, &s->reg[r]) ? gs_emit__ring_bytes(e, m, s->reg[r].array, interval, rows) : 0;
    head = gs_ring_lasting_begin(&m->ring, bytes);
    for (uint32_t r = 0; r < s->regs; r++)
        if (is_narrow(e, &s->reg[r]))
            GS_TRY(gs_emit__rows_here(e, s->reg[r].array, interval, 0, rows, false, &gs_emit__here(e)->narrow[r]));
    gs_ring_lasting_end(&m->ring, head);
    return GS_OK;
}

static gs_status emit_tile(struct emitter *e, uint32_t interval, struct block b, uint32_t from, uint32_t rows,
                           uint32_t *task)
{
    const gs_stage *s = gs_emit__stage(e);
    gs_plan *p = e->plan;
    gs_task t = {.kind = GS_TASK_VERTEX, .rows = rows, .first_reg = p->regs,
                 .first_row = gs_interval_first(e->l->chunks, interval) + from};

    GS_TRY(gs_emit__grow((void **)&p->reg, &e->room.reg, p->regs + s->regs, sizeof(*p->reg)));
    gs_place *place = &p->reg[p->regs];
    p->regs += s->regs;
    group_tile(e, interval, rows);
    GS_TRY(tile_inputs(e, interval, b, from, rows, place));
    GS_TRY(tile_outputs(e, interval, from, rows, place));
    if (gs_layout_prunes(e->l, e->stage))
        GS_TRY(zero_around(e, interval, from, rows));
    for (uint32_t r = 0; r < s->regs; r++)
        gs_emit__wait(e, e->tile[r].read);
    GS_TRY(gs_emit__task(e, &t, task));
    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind == GS_REG_LOAD)
            gs_emit__release(e, &e->tile[r], *task);
    return settle_outputs(e, interval, from, rows, *task);
}

gs_status gs_emit__interval(struct emitter *e, uint32_t interval, struct block b)
{
    const gs_stage *s = gs_emit__stage(e);
    const uint32_t count = gs_layout_rows(e->l, e->stage, interval), step = e->l->stage[e->stage].tile_rows;
    uint32_t task = GS_NONE;

    if (s->instrs == 0 || count == 0)
        return GS_OK;
    e->in_vertex = true;
    GS_TRY(load_narrow(e, interval, count));
    for (uint32_t k = 0; k < gs_layout_runs(e->l, e->stage, interval); k++) {
        const gs_row_run run = gs_layout_run(e->l, e->stage, interval, k);
        const uint32_t end = run.first + run.rows;
        /* Tiles end at multiples of `step` of the interval, where blocks of its files do. */
        for (uint32_t from = run.first, to; from < end; from = to) {
            to = GS_MIN(from - from % step + step, end);
            e->first_tile = k == 0 && from == run.first;
            GS_TRY(emit_tile(e, interval, b, from, to - from, &task));
        }
        e->stage_rows += run.rows;
    }
    for (uint32_t r = 0; r < s->regs; r++)
        if (is_narrow(e, &s->reg[r]))
            gs_emit__release(e, &gs_emit__here(e)->narrow[r], task);
    e->in_vertex = false;
    return GS_OK;
}

gs_status gs_emit__zero_left_out(struct emitter *e)
{
    const gs_stage *s = gs_emit__stage(e);

    for (uint32_t r = 0; r < s->regs && gs_layout_prunes(e->l, e->stage); r++) {
        const uint32_t array = s->reg[r].array;
        if (!is_output(&s->reg[r]) || !gs_liveness_is_shared(e->c, e->l, array))
            continue;
        for (uint32_t i = 0; i < e->c->kept_intervals[array]; i++)
            GS_TRY(zero_rest(e, array, i, gs_emit__kept_place(e, gs_emit__array_unit(e, array, i), 0)));
    }
    return GS_OK;
}
