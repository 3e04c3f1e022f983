/* liveness.c - when is an array or a sum in host memory, and where? Those that are never live at the same time share a
 * place.
 *
 * A program is a line of points in time, two a stage: its edge pass and its vertex program. An array of the run is
 * there from the stage that writes it to the last that reads it; a stage's sums are there for both its points. What the
 * store has and what the setup pass leaves to others is always there. As all of them are touched by computes alone,
 * which run in the order of the list, a place needs no waits to change hands. (Where copies touch them, too, each array
 * has a place of its own.)
 *
 * A sum whose rows become rows of an array, each where no other value of the stage needs the sum any more, is added up
 * in the array's own place.
 *
 * What is not kept shares places in the file that it is spilled to in the same way, interval by interval behind each
 * other. Writes are done in any order, so one must wait for those of the owner before (emit.c).
 *
 * Rows of an array that its stage leaves out must read as 0, and so must what is not written to the file. Memory is 0
 * at the start; in a place that others use, they are zeroed when the stage is done (emit.c), so an array with few rows
 * keeps a place of its own.
 */
#include "schedule/keep.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define ALWAYS ((gs_liveness){0, UINT32_MAX})

static uint32_t edge_point(uint32_t stage) { return 2 * stage; }
static uint32_t vertex_point(uint32_t stage) { return 2 * stage + 1; }

/* Sums of one block are complete before its vertex program begins; of several, both points are one. */
static bool in_blocks(const gs_choice *c, const gs_layout *l, uint32_t stage)
{
    return l->program->stage[stage].sums > 0 && c->block[stage] < l->parts;
}

static void use(gs_liveness *live, const gs_choice *c, const gs_layout *l, uint32_t stage, uint32_t point)
{
    const bool both = in_blocks(c, l, stage);
    live->first = GS_MIN(live->first, both ? edge_point(stage) : point);
    live->last = GS_MAX(live->last, both ? vertex_point(stage) : point);
}

static uint32_t pass_of(const gs_program *p, uint32_t stage)
{
    uint32_t i = 0;
    while (i < p->passes && stage >= p->pass[i].first_stage + p->pass[i].stages)
        i++;
    return i;
}

/* Liveness of an array of the run, from its first use to its last. */
static gs_liveness liveness_of_uses(const gs_program *p, uint32_t array, gs_liveness live)
{
    if (p->array[array].lasting || live.first > live.last || pass_of(p, live.first / 2) != pass_of(p, live.last / 2))
        return ALWAYS;
    for (uint32_t i = 0; i < p->results; i++)
        if (array == p->result[i] || array == p->logits)
            return ALWAYS; /* of a layer: its rows may be the caller's memory, which no other array may have */
    if (array == p->logits || p->array[array].result)
        live.last = UINT32_MAX; /* the run reads them when the pass is over */
    return live;
}

void gs_liveness_find(gs_choice *c, const gs_layout *l)
{
    const gs_program *const p = l->program;
    gs_liveness *const live = c->places.live;

    for (uint32_t a = 0; a < p->arrays; a++)
        live[a] = (gs_liveness){UINT32_MAX, 0};
    for (uint32_t s = 0; s < p->stages; s++)
        for (const gs_array_use *u = gs_layout_uses(l, s); u < gs_layout_uses(l, s + 1); u++) {
            const bool vertex = u->role == GS_USE_LOAD || u->role == GS_USE_STORE;
            use(&live[u->array], c, l, s, vertex ? vertex_point(s) : edge_point(s));
        }
    for (uint32_t a = 0; a < p->arrays; a++)
        live[a] = liveness_of_uses(p, a, live[a]);
}

/* Where less than half of its rows are made, zeroing the others would cost more than their place does. */
static gs_liveness liveness_of(const gs_choice *c, const gs_layout *l, uint32_t file)
{
    const gs_program *const p = l->program;
    if (!c->places.shares || file >= p->arrays || p->array[file].store_id >= 0 || l->sparse[file])
        return ALWAYS;
    return c->places.live[file];
}

static bool meet(const gs_allocation *a, const gs_allocation *b)
{
    return a->live.first <= b->live.last && b->live.first <= a->live.last;
}

/* The lowest place among those there at the same time; with `limit`, or the largest gap below it where none is as large
 * as wanted: then *room is less than t->bytes. */
static uint64_t find_place(const gs_allocation *allocation, uint32_t allocations, const gs_allocation *t,
                           uint64_t limit, uint64_t *room)
{
    uint64_t at = 0, best = 0;

    *room = 0;
    for (uint32_t i = 0; i <= allocations; i++) {
        const gs_allocation *const other = &allocation[i];
        if (i < allocations && !meet(t, other))
            continue;
        const uint64_t end = i < allocations ? GS_MIN(other->offset, limit) : limit;
        if (end > at && end - at > *room) {
            *room = end - at;
            best = at;
            if (*room >= t->bytes)
                break;
        }
        at = i < allocations ? GS_MAX(at, other->offset + other->bytes) : at;
    }
    return best;
}

/* Keeps the list sorted by place. */
static void insert(gs_allocation *allocation, uint32_t allocations, const gs_allocation *t)
{
    uint32_t i = allocations;
    for (; i > 0 && allocation[i - 1].offset > t->offset; i--)
        allocation[i] = allocation[i - 1];
    allocation[i] = *t;
}

static void settle(gs_choice *c, const gs_allocation *t)
{
    insert(c->places.allocation, c->places.allocations++, t);
    c->places.bytes = GS_MAX(c->places.bytes, t->offset + t->bytes);
}

uint64_t gs_liveness_room(const gs_choice *c, const gs_layout *l, uint32_t file, uint64_t bytes, uint64_t limit)
{
    const gs_allocation t = {.what = file, .bytes = bytes, .live = liveness_of(c, l, file)};
    uint64_t room;
    find_place(c->places.allocation, c->places.allocations, &t, limit, &room);
    return GS_MIN(room, bytes);
}

void gs_liveness_settle(gs_choice *c, const gs_layout *l, uint32_t file, uint64_t bytes)
{
    gs_allocation t = {.what = file, .bytes = bytes, .live = liveness_of(c, l, file)};
    uint64_t room;
    t.offset = find_place(c->places.allocation, c->places.allocations, &t, UINT64_MAX, &room);
    settle(c, &t);
    c->places.offset[file] = t.offset;
}

void gs_liveness_begin(gs_choice *c, const gs_layout *l)
{
    c->places.allocations = 0;
    c->places.bytes = 0;
    memset(c->places.offset, 0, (l->program->arrays + l->sets) * sizeof(*c->places.offset));
    memset(c->places.sum_offset, 0xff, (uint64_t)l->program->stages * GS_STAGE_SUMS * sizeof(*c->places.sum_offset));
    memset(c->places.sum_array, 0xff, (uint64_t)l->program->stages * GS_STAGE_SUMS * sizeof(*c->places.sum_array));
}

/* ---- sums ---- */

/* May the array's rows be written where the sum's are? Only by the last instruction that needs those, and only if it
 * makes an element of the elements at the same place. */
static bool takes_over(const gs_stage *s, uint32_t sum, uint32_t reg)
{
    bool written = false;
    for (uint32_t i = 0; i < s->instrs; i++) {
        const gs_instr *const in = &s->instr[i];
        const gs_operand *const operand[] = {&in->a, &in->b, &in->c};
        bool reads = false;
        for (int k = 0; k < 3; k++)
            reads = reads || (operand[k]->kind == GS_FROM_REG && operand[k]->index == sum);
        if (written && reads)
            return false;
        if (gs_op_into_param(in->op) || in->dst != reg)
            continue;
        if (reads && !gs_op_is_each(in->op))
            return false;
        written = true;
    }
    return written;
}

/* The array that is an alias of the sum: it takes over the sum's place. GS_NONE: none does. */
static uint32_t alias_of(const gs_choice *c, const gs_layout *l, uint32_t stage, uint32_t sum)
{
    const gs_stage *const s = &l->program->stage[stage];
    const gs_sum *const m = &s->sum[sum];

    if (gs_sum_is_sequence(m) || m->kind == GS_SUM_ATTEND || in_blocks(c, l, stage) ||
        (l->parts > 1 && l->span[stage] != l->chunks->interval_rows))
        return GS_NONE;
    for (uint32_t r = 0; r < s->regs; r++) {
        const gs_reg *const reg = &s->reg[r];
        bool taken = reg->kind != GS_REG_TEMP || reg->array == GS_NONE || reg->width != s->reg[m->reg].width ||
                     reg->dtype != GS_F32 || l->sparse[reg->array];
        for (uint32_t i = 0; i < sum && !taken; i++)
            taken = c->places.sum_array[stage * GS_STAGE_SUMS + i] == reg->array;
        if (!taken && takes_over(s, m->reg, r))
            return reg->array;
    }
    return GS_NONE;
}

/* ---- everything in memory ---- */

static int by_liveness_and_size(const void *a, const void *b)
{
    const gs_allocation *const x = a, *const y = b;
    const int x_always = x->live.last == UINT32_MAX && x->live.first == 0,
              y_always = y->live.last == UINT32_MAX && y->live.first == 0;
    if (x_always != y_always)
        return y_always - x_always;
    if (!x_always && x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (x->what > y->what) - (x->what < y->what);
}

/* Sums that are nobody's: with numbers behind those of files. */
static void list_sums(gs_choice *c, const gs_layout *l, gs_allocation *list, uint32_t *count)
{
    const gs_program *const p = l->program;

    for (uint32_t s = 0; s < p->stages; s++)
        for (uint32_t i = 0; i < p->stage[s].sums && !gs_stage_is_back(&p->stage[s]); i++) {
            const uint32_t number = s * GS_STAGE_SUMS + i, array = alias_of(c, l, s, i);
            const gs_liveness live = {edge_point(s), vertex_point(s)};
            c->places.sum_array[number] = array;
            if (array == GS_NONE)
                list[(*count)++] = (gs_allocation){
                    .what = p->arrays + l->sets + number, .bytes = gs_choice_sum_bytes(c, l, s, i), .live = live};
            for (uint32_t k = 0; array != GS_NONE && k < *count; k++)
                if (list[k].what == array)
                    list[k].live.first = GS_MIN(list[k].live.first, edge_point(s));
        }
}

void gs_liveness_pack(gs_choice *c, const gs_layout *l)
{
    const gs_program *const p = l->program;
    const uint32_t files = p->arrays + l->sets;
    gs_allocation *const list = c->places.unplaced;
    uint32_t count = 0;

    gs_liveness_begin(c, l);
    for (uint32_t f = 0; f < files; f++) {
        const uint64_t bytes = gs_choice_room(l, gs_choice_kept_bytes(c, l, f));
        if (bytes > 0)
            list[count++] = (gs_allocation){.what = f, .bytes = bytes, .live = liveness_of(c, l, f)};
    }
    if (c->places.sums)
        list_sums(c, l, list, &count);
    qsort(list, count, sizeof(*list), by_liveness_and_size);
    for (uint32_t k = 0; k < count; k++) {
        uint64_t room;
        list[k].offset = find_place(c->places.allocation, c->places.allocations, &list[k], UINT64_MAX, &room);
        settle(c, &list[k]);
        if (list[k].what < files)
            c->places.offset[list[k].what] = list[k].offset;
        else
            c->places.sum_offset[list[k].what - files] = list[k].offset;
    }
    for (uint32_t n = 0; n < p->stages * GS_STAGE_SUMS; n++)
        if (c->places.sum_array[n] != GS_NONE)
            c->places.sum_offset[n] = c->places.offset[c->places.sum_array[n]];
}

bool gs_liveness_is_shared(const gs_choice *c, const gs_layout *l, uint32_t array)
{
    const uint64_t bytes = gs_choice_kept_bytes(c, l, array), at = c->places.offset[array];
    for (uint32_t n = 0; n < l->program->stages * GS_STAGE_SUMS; n++)
        if (c->places.sum_array[n] == array)
            return true;
    for (uint32_t i = 0; i < c->places.allocations; i++)
        if (c->places.allocation[i].what != array && c->places.allocation[i].offset < at + bytes &&
            at < c->places.allocation[i].offset + c->places.allocation[i].bytes)
            return true;
    return false;
}

/* ---- on the disk ---- */

/* Are there rows that the stage does not make? */
static bool leaves_out(const gs_layout *l, uint32_t stage)
{
    for (uint32_t i = 0; gs_layout_prunes(l, stage) && i < l->parts; i++)
        if (gs_layout_runs(l, stage, i) != 1 || gs_layout_run(l, stage, i, 0).rows < gs_interval_rows(l->chunks, i))
            return true;
    return false;
}

/* Are there rows of it that nobody reads, or that are 0? */
static bool is_partial(const gs_layout *l, uint32_t array)
{
    const gs_row_runs *const r = l->config->needs.array_rows ? &l->config->needs.array_rows[array] : NULL;
    for (uint32_t i = 0; r != NULL && r->first != NULL && i < l->parts; i++)
        if (r->first[i + 1] - r->first[i] != 1 || r->run[r->first[i]].rows < gs_interval_rows(l->chunks, i))
            return true;
    return false;
}

/* In whole stages, as reads and writes of one stage are done in any order. Rows that its stage leaves out, and tiles
 * that are not written as nobody reads anything but 0 there, read as 0 as long as nobody has ever written there. */
static gs_liveness spilled_liveness(const gs_choice *c, const gs_layout *l, uint32_t array)
{
    const uint32_t stage = l->stored_by[array];
    if (stage == GS_NONE || is_partial(l, array) || leaves_out(l, stage))
        return ALWAYS;
    const gs_liveness live = c->places.live[array];
    return (gs_liveness){live.first / 2 * 2, live.last | 1};
}

uint64_t gs_liveness_spill(uint64_t *first, uint64_t *bytes, const gs_choice *c, const gs_layout *l)
{
    gs_allocation *const list = c->places.unplaced;
    uint64_t total = 0, room;
    uint32_t count = 0;

    for (uint32_t a = 0; a < l->program->arrays; a++) {
        const bool stays = c->device.used_bytes > 0 && c->device.alone[a]; /* on devices: the host never has it */
        bytes[a] = stays ? 0 : (l->parts - c->kept_intervals[a]) * l->spill_interval[a];
        if (bytes[a] > 0)
            list[count++] = (gs_allocation){.what = a, .bytes = bytes[a], .live = spilled_liveness(c, l, a)};
    }
    qsort(list, count, sizeof(*list), by_liveness_and_size);
    for (uint32_t k = 0; k < count; k++) {
        gs_allocation t = list[k];
        t.offset = find_place(list, k, &t, UINT64_MAX, &room);
        insert(list, k, &t);
        first[t.what] = t.offset;
        total = GS_MAX(total, t.offset + t.bytes);
    }
    return total;
}
