/* emit.c - writes the task list of a program under a choice of memory.
 *
 * An edge stage goes block by block over the target intervals whose sums fit the
 * arena; for a block it takes the operand intervals in order, and for each the
 * chunks into the block's targets. As soon as a block's last operand interval is
 * summed, its vertex program runs, tile by tile.
 *
 * What a task must wait for comes from three places: the bytes it needs (reads,
 * and for reads of arrays of the run their writes), the ring place it
 * takes over, and nothing else: each lane runs in list order anyway, so waits
 * of a compute for a compute are left out.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/schedule_internal.h"

#define WAITS 65536u
#define NOT_STAGED UINT64_MAX

/* Rows or a chunk that a compute task will use, where they stand, and the read
 * that brings them (GS_NONE: they are resident). */
struct unit {
    gs_place place;
    uint32_t read;
    uint64_t ring; /* offset of its piece of the ring, or NOT_STAGED */
};

struct emitter {
    const gs_layout *l;
    const gs_choice *c;
    gs_plan *plan;
    uint32_t task_room, dep_room, reg_room;
    gs_ring_sim ring;
    uint64_t *resident_offset; /* [arrays + 2] */
    /* [array * parts + interval]: first and last task of the writes of those rows */
    uint32_t (*written)[2];
    uint32_t *waits; /* of the task being made */
    uint32_t wait_count;
    uint32_t stage;
    gs_plan_pass *pass;
    struct unit *narrow; /* [most regs] interval-wide loads of the stage */
};

static bool is_compute(gs_task_kind k)
{
    return k != GS_TASK_READ && k != GS_TASK_WRITE;
}

static gs_status grow(void **array, uint32_t *room, uint32_t need, size_t size)
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
    *room = more;
    return GS_OK;
}

static void wait_for(struct emitter *e, uint32_t task)
{
    if (task != GS_NONE && e->wait_count < WAITS)
        e->waits[e->wait_count++] = task;
}

/* Drops waits that lane order implies, keeps only the last of the computes. */
static uint32_t settle_waits(struct emitter *e, bool for_compute)
{
    uint32_t n = 0, compute = GS_NONE;
    for (uint32_t i = 0; i < e->wait_count; i++) {
        const uint32_t w = e->waits[i];
        if (!is_compute(e->plan->task[w].kind)) {
            if (n == 0 || e->waits[n - 1] != w)
                e->waits[n++] = w;
        } else if (!for_compute && (compute == GS_NONE || w > compute)) {
            compute = w;
        }
    }
    if (compute != GS_NONE)
        e->waits[n++] = compute;
    return n;
}

/* Appends a task that waits for e->waits, which is emptied. */
static gs_status add_task(struct emitter *e, const gs_task *t, uint32_t *index)
{
    gs_plan *p = e->plan;
    gs_status st;
    if (e->wait_count == WAITS)
        return GS_EAGAIN;
    const uint32_t n = settle_waits(e, is_compute(t->kind));
    if ((st = grow((void **)&p->task, &e->task_room, p->tasks + 1, sizeof(*p->task))) != GS_OK ||
        (st = grow((void **)&p->dep, &e->dep_room, p->deps + n, sizeof(*p->dep))) != GS_OK)
        return st;
    gs_task *out = &p->task[p->tasks];
    *out = *t;
    out->stage = e->stage;
    out->first_dep = p->deps;
    out->deps = n;
    if (n > 0)
        memcpy(&p->dep[p->deps], e->waits, n * sizeof(*p->dep));
    p->deps += n;
    e->wait_count = 0;
    *index = p->tasks++;
    return GS_OK;
}

static gs_status take_ring(struct emitter *e, uint64_t bytes, struct unit *out)
{
    const gs_status st = gs_ring_take(&e->ring, bytes, &out->ring, e->waits, WAITS, &e->wait_count);
    if (st == GS_OK)
        out->place = (gs_place){GS_REGION_RING, out->ring};
    return st;
}

static void release(struct emitter *e, const struct unit *u, uint32_t task)
{
    if (u->ring != NOT_STAGED)
        gs_ring_release(&e->ring, u->ring, task);
}

static gs_status add_read(struct emitter *e, gs_task *t, struct unit *out)
{
    const gs_status st = add_task(e, t, &out->read);
    if (st == GS_OK) {
        e->pass->read_bytes += t->bytes;
        e->pass->read_requests++;
    }
    return st;
}

/* File extent of rows of an array of the store: whole checksum blocks. */
static void store_extent(const gs_layout *l, uint32_t array, uint64_t first, uint64_t rows, gs_task *t,
                         uint64_t *skip)
{
    const uint64_t block = l->config->array_sum_bytes, row = l->row_bytes[array];
    const uint64_t file = gs_align_up(l->chunks->vertices * row, GS_BLOCK_BYTES);
    const uint64_t begin = gs_align_down(first * row, block);
    t->offset = begin;
    t->bytes = GS_MIN(gs_align_up((first + rows) * row, block), file) - begin;
    t->check = GS_CHECK_BLOCKS;
    *skip = first * row - begin;
}

/* Rows (within one interval) of an array: where they are kept, or a read. */
static gs_status load_rows(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                           struct unit *out)
{
    const gs_layout *l = e->l;
    const uint64_t first = gs_interval_first(l->chunks, interval) + from, row = l->row_bytes[array];
    gs_task t = {.kind = GS_TASK_READ, .file = array};
    uint64_t skip = 0;
    gs_status st;

    *out = (struct unit){.read = GS_NONE, .ring = NOT_STAGED};
    if (interval < e->c->kept_intervals[array]) {
        out->place = (gs_place){GS_REGION_RESIDENT, e->resident_offset[array] + first * row};
        return GS_OK;
    }
    if (l->spill_interval[array] == 0) {
        store_extent(l, array, first, rows, &t, &skip);
    } else {
        const uint32_t *w = e->written[(uint64_t)array * l->parts + interval];
        t.offset = (interval - e->c->kept_intervals[array]) * l->spill_interval[array] + from * row;
        t.bytes = gs_align_up(rows * row, GS_BLOCK_BYTES);
        for (uint32_t i = w[0]; w[0] != GS_NONE && i <= w[1]; i++)
            if (e->plan->task[i].kind == GS_TASK_WRITE && e->plan->task[i].file == array)
                wait_for(e, i);
    }
    if ((st = take_ring(e, t.bytes, out)) != GS_OK)
        return st;
    t.place = out->place;
    out->place.offset += skip;
    return add_read(e, &t, out);
}

static uint32_t edge_file(const gs_layout *l, uint32_t direction)
{
    return GS_FILE_EDGES(l->program, l->chunks->shared ? 0 : direction);
}

static gs_status load_chunk(struct emitter *e, uint32_t direction, uint32_t target, uint32_t operand,
                            struct unit *out)
{
    const gs_chunk *c = gs_chunk_at(e->l->chunks, direction, target, operand);
    const uint32_t file = edge_file(e->l, direction);
    gs_task t = {.kind = GS_TASK_READ, .check = GS_CHECK_CHUNK, .file = file, .target = target,
                 .operand = operand, .offset = c->offset, .bytes = c->length};
    gs_status st;

    *out = (struct unit){.read = GS_NONE, .ring = NOT_STAGED};
    if (c->offset + c->length <= e->c->kept_edges[file - e->l->program->arrays]) {
        out->place = (gs_place){GS_REGION_RESIDENT, e->resident_offset[file] + c->offset};
        return GS_OK;
    }
    if ((st = take_ring(e, c->length, out)) != GS_OK)
        return st;
    t.place = out->place;
    return add_read(e, &t, out);
}

/* ---- edge passes ---- */

struct block {
    uint32_t first, count; /* target intervals */
};

static gs_place sum_place(const struct emitter *e, uint32_t sum, uint32_t local_interval)
{
    const gs_stage *s = &e->l->program->stage[e->stage];
    const uint64_t rows = e->l->chunks->interval_rows;
    uint64_t at = e->l->stage[e->stage].scratch_bytes;
    for (uint32_t i = 0; i < sum; i++)
        at += gs_align_up(4ull * s->reg[s->sum[i].reg].width * e->c->block[e->stage] * rows, 64);
    return (gs_place){GS_REGION_ARENA, at + 4ull * s->reg[s->sum[sum].reg].width * rows * local_interval};
}

static gs_status zero_block(struct emitter *e, struct block b)
{
    const gs_stage *s = &e->l->program->stage[e->stage];
    gs_status st = GS_OK;
    uint32_t task;
    for (uint32_t i = 0; i < s->sums && st == GS_OK; i++) {
        uint64_t rows = 0;
        for (uint32_t t = 0; t < b.count; t++)
            rows += gs_interval_rows(e->l->chunks, b.first + t);
        const gs_task zero = {.kind = GS_TASK_ZERO, .sum = i, .place = sum_place(e, i, 0),
                              .bytes = rows * 4ull * s->reg[s->sum[i].reg].width};
        st = add_task(e, &zero, &task);
    }
    return st;
}

/* True where this operand interval has edges into the block, or is in it and
 * its own rows are added. */
static bool operand_needed(const struct emitter *e, struct block b, uint32_t operand)
{
    const gs_stage *s = &e->l->program->stage[e->stage];
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].self && operand >= b.first && operand < b.first + b.count)
            return true;
    for (uint32_t t = 0; t < b.count; t++)
        if (gs_chunk_at(e->l->chunks, s->direction, b.first + t, operand)->edges)
            return true;
    return false;
}

static gs_status sum_chunk(struct emitter *e, struct block b, uint32_t local, uint32_t operand,
                           const struct unit *rows, uint32_t *last)
{
    const gs_stage *s = &e->l->program->stage[e->stage];
    const uint32_t target = b.first + local;
    const gs_chunk *c = gs_chunk_at(e->l->chunks, s->direction, target, operand);
    struct unit chunk;
    gs_status st;

    if (c->edges == 0)
        return GS_OK;
    if ((st = load_chunk(e, s->direction, target, operand, &chunk)) != GS_OK)
        return st;
    for (uint32_t i = 0; i < s->sums && st == GS_OK; i++) {
        const gs_task t = {.kind = GS_TASK_EDGES, .sum = i, .target = target, .operand = operand,
                           .place = sum_place(e, i, local), .source = rows[i].place,
                           .chunk = chunk.place, .chunk_bytes = c->length};
        wait_for(e, chunk.read);
        wait_for(e, rows[i].read);
        st = add_task(e, &t, last);
        e->pass->edge_bytes += c->edges * 4ull * s->reg[s->sum[i].reg].width;
    }
    release(e, &chunk, *last);
    return st;
}

static gs_status sum_operand(struct emitter *e, struct block b, uint32_t operand)
{
    const gs_stage *s = &e->l->program->stage[e->stage];
    const uint32_t count = gs_interval_rows(e->l->chunks, operand);
    struct unit rows[GS_STAGE_SUMS];
    uint32_t last = GS_NONE;
    gs_status st = GS_OK;

    for (uint32_t i = 0; i < s->sums; i++) {
        uint32_t same = 0;
        while (same < i && s->sum[same].array != s->sum[i].array)
            same++;
        if (same < i)
            rows[i] = rows[same];
        else if ((st = load_rows(e, s->sum[i].array, operand, 0, count, &rows[i])) != GS_OK)
            return st;
    }
    for (uint32_t i = 0; i < s->sums && st == GS_OK; i++) {
        if (!s->sum[i].self || operand < b.first || operand >= b.first + b.count)
            continue;
        const gs_task t = {.kind = GS_TASK_SELF, .sum = i, .rows = count, .source = rows[i].place,
                           .place = sum_place(e, i, operand - b.first)};
        wait_for(e, rows[i].read);
        st = add_task(e, &t, &last);
    }
    for (uint32_t t = 0; t < b.count && st == GS_OK; t++)
        st = sum_chunk(e, b, t, operand, rows, &last);
    for (uint32_t i = 0; i < s->sums && st == GS_OK; i++)
        release(e, &rows[i], last);
    return st;
}

/* ---- vertex programs ---- */

static bool is_narrow(const struct emitter *e, const gs_reg *r)
{
    return r->kind == GS_REG_LOAD && e->l->row_bytes[r->array] <= GS_NARROW_ROW_BYTES;
}

/* Loads what a tile reads; `units` and the task's register places are filled. */
static gs_status tile_inputs(struct emitter *e, uint32_t interval, struct block b, uint32_t from, uint32_t rows,
                             struct unit *units, gs_place *place)
{
    const gs_stage *s = &e->l->program->stage[e->stage];
    const gs_stage_layout *sl = &e->l->stage[e->stage];
    gs_status st = GS_OK;
    for (uint32_t r = 0; r < s->regs && st == GS_OK; r++) {
        const gs_reg *reg = &s->reg[r];
        units[r] = (struct unit){.read = GS_NONE, .ring = NOT_STAGED};
        if (is_narrow(e, reg)) {
            units[r].place = e->narrow[r].place;
            units[r].place.offset += from * e->l->row_bytes[reg->array];
            units[r].read = e->narrow[r].read;
        } else if (reg->kind == GS_REG_LOAD) {
            st = load_rows(e, reg->array, interval, from, rows, &units[r]);
        } else if (reg->kind == GS_REG_TEMP && reg->array == GS_NONE && sl->reg_offset[r] != UINT64_MAX) {
            units[r].place = (gs_place){GS_REGION_ARENA, sl->reg_offset[r]};
        }
        place[r] = units[r].place;
    }
    for (uint32_t i = 0; i < s->sums && st == GS_OK; i++) {
        const uint32_t r = s->sum[i].reg;
        place[r] = sum_place(e, i, interval - b.first);
        place[r].offset += 4ull * s->reg[r].width * from;
    }
    return st;
}

/* Places for what a tile stores: the kept rows themselves, or the ring. */
static gs_status tile_outputs(struct emitter *e, uint32_t interval, uint32_t from, uint32_t rows,
                              struct unit *units, gs_place *place)
{
    const gs_stage *s = &e->l->program->stage[e->stage];
    gs_status st = GS_OK;
    for (uint32_t r = 0; r < s->regs && st == GS_OK; r++) {
        const gs_reg *reg = &s->reg[r];
        if (reg->kind != GS_REG_TEMP || reg->array == GS_NONE)
            continue;
        const uint64_t row = e->l->row_bytes[reg->array];
        if (interval < e->c->kept_intervals[reg->array]) {
            const uint64_t first = gs_interval_first(e->l->chunks, interval) + from;
            units[r].place = (gs_place){GS_REGION_RESIDENT, e->resident_offset[reg->array] + first * row};
        } else {
            st = take_ring(e, gs_align_up(rows * row, GS_BLOCK_BYTES), &units[r]);
        }
        place[r] = units[r].place;
    }
    return st;
}

static gs_status write_outputs(struct emitter *e, uint32_t interval, uint32_t from, uint32_t rows,
                               const struct unit *units, uint32_t vertex_task)
{
    const gs_stage *s = &e->l->program->stage[e->stage];
    gs_status st = GS_OK;
    for (uint32_t r = 0; r < s->regs && st == GS_OK; r++) {
        const gs_reg *reg = &s->reg[r];
        if (reg->kind != GS_REG_TEMP || reg->array == GS_NONE || units[r].ring == NOT_STAGED)
            continue;
        const uint32_t kept = e->c->kept_intervals[reg->array];
        const uint64_t row = e->l->row_bytes[reg->array];
        const gs_task t = {.kind = GS_TASK_WRITE, .file = reg->array, .place = units[r].place,
                           .offset = (interval - kept) * e->l->spill_interval[reg->array] + from * row,
                           .bytes = gs_align_up(rows * row, GS_BLOCK_BYTES)};
        uint32_t task, *w = e->written[(uint64_t)reg->array * e->l->parts + interval];
        wait_for(e, vertex_task);
        if ((st = add_task(e, &t, &task)) != GS_OK)
            break;
        w[0] = w[0] == GS_NONE ? task : w[0];
        w[1] = task;
        gs_ring_release(&e->ring, units[r].ring, task);
        e->pass->written_bytes += t.bytes;
    }
    return st;
}

static gs_status emit_tile(struct emitter *e, uint32_t interval, struct block b, uint32_t from, uint32_t rows,
                           struct unit *units, uint32_t *task)
{
    const gs_stage *s = &e->l->program->stage[e->stage];
    gs_plan *p = e->plan;
    gs_task t = {.kind = GS_TASK_VERTEX, .rows = rows, .first_reg = p->regs,
                 .first_row = gs_interval_first(e->l->chunks, interval) + from};
    gs_status st;

    if ((st = grow((void **)&p->reg, &e->reg_room, p->regs + s->regs, sizeof(*p->reg))) != GS_OK)
        return st;
    gs_place *place = &p->reg[p->regs];
    p->regs += s->regs;
    if ((st = tile_inputs(e, interval, b, from, rows, units, place)) != GS_OK ||
        (st = tile_outputs(e, interval, from, rows, units, place)) != GS_OK)
        return st;
    for (uint32_t r = 0; r < s->regs; r++)
        wait_for(e, units[r].read);
    if ((st = add_task(e, &t, task)) != GS_OK)
        return st;
    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind == GS_REG_LOAD)
            release(e, &units[r], *task);
    return write_outputs(e, interval, from, rows, units, *task);
}

static gs_status emit_interval(struct emitter *e, uint32_t interval, struct block b, struct unit *units)
{
    const gs_stage *s = &e->l->program->stage[e->stage];
    const uint32_t count = gs_interval_rows(e->l->chunks, interval), step = e->l->stage[e->stage].tile_rows;
    uint32_t task = GS_NONE;
    gs_status st = GS_OK;

    if (s->instrs == 0)
        return GS_OK;
    for (uint32_t r = 0; r < s->regs && st == GS_OK; r++)
        if (is_narrow(e, &s->reg[r]))
            st = load_rows(e, s->reg[r].array, interval, 0, count, &e->narrow[r]);
    for (uint32_t from = 0; from < count && st == GS_OK; from += step)
        st = emit_tile(e, interval, b, from, GS_MIN(step, count - from), units, &task);
    for (uint32_t r = 0; r < s->regs && st == GS_OK; r++)
        if (is_narrow(e, &s->reg[r]))
            release(e, &e->narrow[r], task);
    return st;
}

static gs_status emit_stage(struct emitter *e, struct unit *units)
{
    const gs_stage *s = &e->l->program->stage[e->stage];
    const uint32_t parts = e->l->parts, step = s->sums ? e->c->block[e->stage] : 1;
    gs_status st = GS_OK;

    e->pass->blocks = GS_MAX(e->pass->blocks, s->sums ? (uint32_t)gs_div_up(parts, step) : 1);
    for (uint32_t first = 0; first < parts && st == GS_OK; first += step) {
        const struct block b = {first, GS_MIN(step, parts - first)};
        if (s->sums)
            st = zero_block(e, b);
        for (uint32_t o = 0; s->sums && o < parts && st == GS_OK; o++)
            if (operand_needed(e, b, o))
                st = sum_operand(e, b, o);
        for (uint32_t t = 0; t < b.count && st == GS_OK; t++)
            st = emit_interval(e, b.first + t, b, units);
    }
    return st;
}

/* ---- the whole ---- */

static gs_status list_residents(struct emitter *e)
{
    const gs_program *p = e->l->program;
    uint64_t at = 0;
    for (uint32_t f = 0; f < p->arrays + 2; f++) {
        const uint64_t bytes = gs_choice_kept_bytes(e->c, e->l, f);
        e->resident_offset[f] = at;
        if (bytes == 0)
            continue;
        e->plan->resident[e->plan->residents++] =
            (gs_resident){.file = f, .bytes = bytes, .offset = at,
                          .load = f >= p->arrays || p->array[f].store_id >= 0};
        at += gs_choice_room(e->l, bytes);
    }
    e->plan->region_bytes[GS_REGION_RESIDENT] = at;
    return GS_OK;
}

static gs_status emitter_open(struct emitter *e)
{
    const gs_program *p = e->l->program;
    const uint64_t cells = (uint64_t)p->arrays * e->l->parts;
    uint32_t regs = 1;

    for (uint32_t s = 0; s < p->stages; s++)
        regs = GS_MAX(regs, p->stage[s].regs);
    gs_ring_init(&e->ring, e->c->ring_bytes);
    e->plan = gs_calloc(1, sizeof(*e->plan));
    e->resident_offset = gs_calloc(p->arrays + 2, sizeof(*e->resident_offset));
    e->written = gs_malloc_array(cells + 1, sizeof(*e->written));
    e->waits = gs_malloc_array(WAITS, sizeof(*e->waits));
    e->narrow = gs_calloc(regs, sizeof(*e->narrow));
    if (e->plan == NULL || e->resident_offset == NULL || e->written == NULL || e->waits == NULL ||
        e->narrow == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    memset(e->written, 0xff, cells * sizeof(*e->written));
    e->plan->resident = gs_calloc(p->arrays + 2, sizeof(*e->plan->resident));
    e->plan->pass = gs_calloc(p->passes + 1, sizeof(*e->plan->pass));
    e->plan->spill_bytes = gs_calloc(p->arrays + 1, sizeof(*e->plan->spill_bytes));
    if (e->plan->resident == NULL || e->plan->pass == NULL || e->plan->spill_bytes == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    e->plan->passes = p->passes;
    return list_residents(e);
}

static void emitter_close(struct emitter *e)
{
    gs_ring_drop(&e->ring);
    gs_plan_free(e->plan);
    gs_free(e->resident_offset);
    gs_free(e->written);
    gs_free(e->waits);
    gs_free(e->narrow);
}

static void finish(struct emitter *e)
{
    const gs_layout *l = e->l;
    gs_plan *p = e->plan;
    const gs_schedule_config *cfg = l->config;
    for (uint32_t a = 0; a < l->program->arrays; a++)
        p->spill_bytes[a] = (l->parts - e->c->kept_intervals[a]) * l->spill_interval[a];
    p->region_bytes[GS_REGION_RING] = e->c->ring_bytes;
    p->region_bytes[GS_REGION_ARENA] = e->c->arena_bytes;
    p->table_bytes = p->tasks * (sizeof(*p->task) + sizeof(uint32_t) + 1 + cfg->task_bytes) + p->deps * sizeof(*p->dep) +
                     p->regs * sizeof(*p->reg);
    p->device_bytes = cfg->device_fixed + e->c->arena_bytes;
    p->host_bytes = cfg->host_fixed + p->table_bytes + e->c->ring_bytes + p->region_bytes[GS_REGION_RESIDENT] +
                    (cfg->unified ? p->device_bytes : 0);
}

gs_status gs_emit(gs_plan **out, const gs_layout *l, const gs_choice *c)
{
    const gs_program *p = l->program;
    struct emitter e = {.l = l, .c = c};
    struct unit *units = NULL;
    gs_status st;
    uint32_t regs = 1;

    if ((st = emitter_open(&e)) != GS_OK)
        goto done;
    for (uint32_t s = 0; s < p->stages; s++)
        regs = GS_MAX(regs, p->stage[s].regs);
    if ((units = gs_calloc(regs, sizeof(*units))) == NULL) {
        st = gs_fail(GS_ENOMEM, "out of memory while planning");
        goto done;
    }
    for (uint32_t i = 0; i < p->passes; i++) {
        e.pass = &e.plan->pass[i];
        e.pass->first_task = e.plan->tasks;
        gs_ring_reset(&e.ring); /* a pass ends only when all of its tasks are done */
        for (uint32_t s = 0; s < p->pass[i].stages; s++) {
            e.stage = p->pass[i].first_stage + s;
            if ((st = emit_stage(&e, units)) != GS_OK)
                goto done;
        }
        e.pass->tasks = e.plan->tasks - e.pass->first_task;
        uint64_t edges = 0;
        for (uint64_t k = 0; k < (uint64_t)l->parts * l->parts; k++)
            edges += l->chunks->chunk[0][k].edges;
        gs_program_flops(p, i, l->chunks->vertices, edges, &e.pass->dense_flops, &e.pass->edge_flops);
    }
    finish(&e);
    *out = e.plan;
    e.plan = NULL;
done:
    gs_free(units);
    emitter_close(&e);
    return st;
}
