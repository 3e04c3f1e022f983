/* part.c - lists a rank's part of a plan: of each task what stands for it there. */
#include "plan/part.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "plan/part_owners.h"

#define NO_MAKER UINT8_MAX

static gs_status no_memory(void) { return gs_fail(GS_ENOMEM, "out of memory: this rank's part of the plan"); }

/* ---- what tasks of a part wait for ----------------------------------------- */

/* Who waits for a task of the whole waits for those that stand for it, or, where none does, for what that one would
 * have waited for here. That is known lane by lane, as a number of tasks: all before it are done. Reads and writes,
 * which do not end in order, are named where they stand for what is waited for itself.
 */

/* Places in each lane of the part: all before this one. */
typedef struct reach {
    uint32_t before[GS_PART_LANES];
} reach;

typedef struct part_waits {
    const gs_plan *whole;
    gs_plan *part;
    uint32_t task_room, dep_room;
    uint32_t *first;      /* [whole->tasks + 1] the part's first task of each, which has those up to the next one's */
    reach *done;       /* [tasks of the longest pass] what is done when the task is, by number in its pass */
    /* Of a lane of the whole so far: what its tasks waited for; and where these end in order, what is done when the
     * last is. */
    reach begun[GS_PLAN_LANES], ended[GS_PLAN_LANES];
    reach known[GS_PART_LANES]; /* what the part's tasks so far have waited for */
    uint32_t *at[GS_PART_LANES];  /* tasks of the part, by place in the lane */
    uint32_t count[GS_PART_LANES], room[GS_PART_LANES];
    uint32_t pass_first;  /* of the whole */
} part_waits;

static void join(reach *to, const reach *x)
{
    for (uint32_t k = 0; k < GS_PART_LANES; k++)
        to->before[k] = GS_MAX(to->before[k], x->before[k]);
}

static bool ends_in_order(uint32_t lane) { return lane >= GS_LANE_DEVICES; }

static gs_status waits_open(part_waits *w, const gs_plan *whole, gs_plan *part)
{
    uint32_t longest = 0;

    *w = (part_waits){.whole = whole, .part = part};
    for (uint32_t p = 0; p < whole->passes; p++)
        longest = GS_MAX(longest, whole->pass[p].tasks);
    w->first = gs_calloc((size_t)whole->tasks + 1, sizeof(*w->first));
    w->done = gs_malloc_array((size_t)longest + 1, sizeof(*w->done));
    return w->first != NULL && w->done != NULL ? GS_OK : no_memory();
}

/* All zero is allowed. */
static void waits_close(part_waits *w)
{
    gs_free(w->first);
    gs_free(w->done);
    for (uint32_t k = 0; k < GS_PART_LANES; k++)
        gs_free(w->at[k]);
}

static void waits_enter(part_waits *w, uint32_t pass)
{
    memset(w->begun, 0, sizeof(w->begun));
    memset(w->ended, 0, sizeof(w->ended));
    memset(w->known, 0, sizeof(w->known));
    memset(w->count, 0, sizeof(w->count));
    w->pass_first = w->whole->pass[pass].first_task;
}

/* A read or a write that the part has, too. */
static bool is_named(const part_waits *w, uint32_t i)
{
    return w->first[i] < w->first[i + 1] && !ends_in_order(gs_task_lane(&w->whole->task[i]));
}

/* Task `i` of the whole is next: what is done before it begins, which waits_add() is given. */
static reach waits_begin(part_waits *w, uint32_t i)
{
    const gs_task *const t = &w->whole->task[i];
    reach before = w->begun[gs_task_lane(t)];

    w->first[i] = w->part->tasks;
    for (uint32_t d = 0; d < t->deps; d++) {
        const uint32_t of = w->whole->dep[t->first_dep + d];
        if (!is_named(w, of))
            join(&before, &w->done[of - w->pass_first]);
    }
    return before;
}

static gs_status add_dep(part_waits *w, uint32_t task)
{
    gs_plan *const p = w->part;
    if (!gs_grow(&p->dep, p->deps, &w->dep_room, sizeof(*p->dep)))
        return no_memory();
    p->dep[p->deps++] = task;
    return GS_OK;
}

/* Of one lane of the part, what task `t` has to name so that all before `place` are done: the last of a lane that ends
 * in order. Tasks before `t` in its own lane have waited for some already. */
static gs_status add_lane(part_waits *w, uint32_t own, uint32_t lane, uint32_t place)
{
    uint32_t *const known = &w->known[own].before[lane];

    if (place <= *known)
        return GS_OK;
    for (uint32_t k = ends_in_order(lane) ? place - 1 : *known; k < place; k++)
        GS_TRY(add_dep(w, w->at[lane][k]));
    *known = place;
    return GS_OK;
}

static gs_status add_deps(part_waits *w, uint32_t i, uint32_t lane, const reach *before)
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

static gs_status put(part_waits *w, uint32_t lane, uint32_t task)
{
    if (!gs_grow(&w->at[lane], w->count[lane], &w->room[lane], sizeof(*w->at[lane])))
        return no_memory();
    w->at[lane][w->count[lane]++] = task;
    return GS_OK;
}

/* Appends a task that stands for task `i`. */
static gs_status waits_add(part_waits *w, uint32_t i, const gs_task *t, const reach *before)
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

/* All that stand for it are there, or none does. */
static void waits_end(part_waits *w, uint32_t i, const reach *before)
{
    const gs_task *const t = &w->whole->task[i];
    const uint32_t lane = gs_task_lane(t);
    reach now = *before;

    w->first[i + 1] = w->part->tasks;
    for (uint32_t d = 0; d < t->deps; d++) {
        const uint32_t of = w->whole->dep[t->first_dep + d];
        if (is_named(w, of))
            join(&now, &w->done[of - w->pass_first]);
    }
    join(&w->begun[lane], &now);
    if (w->first[i] < w->part->tasks)
        now = (reach){{0}}; /* it is done, so what it waited for is */
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

/* ---- the listing ------------------------------------------------------------ */

typedef struct listing {
    const gs_plan *whole;
    const gs_program *program;
    gs_plan *out;
    gs_plan_pass *pass;      /* that is listed */
    uint32_t rank, parts, interval_rows;
    gs_owners owners;
    part_waits waits;
    gs_spans arena;          /* of the rank's device: lane and place of the move that came there last */
    uint32_t run_room, reg_room, word_room;
} listing;

/* ---- tables --------------------------------------------------------------- */

static gs_status add_run(listing *x, gs_block_run run)
{
    gs_plan *const p = x->out;
    if (!gs_grow(&p->run, p->runs, &x->run_room, sizeof(*p->run)))
        return no_memory();
    p->run[p->runs++] = run;
    return GS_OK;
}

static gs_status copy_runs(listing *x, gs_task *t)
{
    const gs_block_run *const run = &x->whole->run[t->first_run];

    t->first_run = x->out->runs;
    for (uint32_t r = 0; r < t->runs; r++)
        GS_TRY(add_run(x, run[r]));
    return GS_OK;
}

/* Of the rows that `t` moves by themselves those that `rank` has. */
static gs_status copy_rows(listing *x, gs_task *t, uint32_t rank)
{
    const uint32_t words = (uint32_t)gs_task_row_words(t);
    gs_plan *const p = x->out;

    if (!gs_grow_by(&p->row_bits, p->row_words, words, &x->word_room, sizeof(*p->row_bits)))
        return no_memory();
    uint64_t *const bits = p->row_bits + p->row_words;
    memset(bits, 0, words * sizeof(*bits));
    t->moved_rows = 0;
    for (uint32_t k = 0; k < x->owners.pieces; k++) {
        const gs_piece *const own = &x->owners.piece[k];
        if (own->begin % t->row_bytes != 0 || own->end % t->row_bytes != 0)
            return gs_owners_refuse("rows that are in part another's");
        const uint64_t end = own->rank == rank ? own->end / t->row_bytes : 0;
        for (uint64_t row = own->begin / t->row_bytes; row < end; row++, t->moved_rows++)
            bits[row / 64] |= 1ull << (row % 64);
    }
    t->first_word = p->row_words - words; /* as often those of the task before */
    if (p->row_words >= words && memcmp(bits - words, bits, words * sizeof(*bits)) == 0)
        return GS_OK;
    t->first_word = p->row_words;
    p->row_words += words;
    return GS_OK;
}

static bool is_on_host(const gs_place *p)
{
    return p->region == GS_REGION_RING || p->region == GS_REGION_RESIDENT;
}

/* The part has one device. */
static gs_place here(gs_place p)
{
    p.memory = gs_is_device_memory(p.memory) ? (uint32_t)GS_DEVICE_MEMORIES : p.memory;
    return p;
}

static gs_place at_rank(gs_place p, uint32_t rank)
{
    p.memory = GS_RANK_MEMORIES + rank;
    return p;
}

static gs_status copy_regs(listing *x, gs_task *t)
{
    const uint32_t regs = gs_task_registers(t, x->program);
    gs_plan *const p = x->out;

    if (!gs_grow_by(&p->reg, p->regs, regs, &x->reg_room, sizeof(*p->reg)))
        return no_memory();
    for (uint32_t r = 0; r < regs; r++) {
        const gs_place *const from = &x->whole->reg[t->first_reg + r];
        if (is_on_host(from))
            return gs_owners_refuse("rows that devices have in the host's memory");
        p->reg[p->regs + r] = here(*from);
    }
    t->first_reg = p->regs;
    p->regs += regs;
    return GS_OK;
}

/* ---- a task --------------------------------------------------------------- */

/* All ranks add up statistics, each in the order of its own computations. */
static gs_status list_computation(listing *x, uint32_t i, const reach *before)
{
    gs_task t = x->whole->task[i];

    if (t.device != x->rank && t.kind != GS_TASK_STATISTICS)
        return GS_OK;
    if (is_on_host(&t.place) || is_on_host(&t.source) || is_on_host(&t.chunk))
        return gs_owners_refuse("rows that devices have in the host's memory");
    t.device = 0;
    t.place = here(t.place);
    t.source = here(t.source);
    t.chunk = here(t.chunk);
    GS_TRY(copy_regs(x, &t));
    return waits_add(&x->waits, i, &t, before);
}

/* Moves to a device wait for what came to the same place before, as lanes of the part share what was one lane. */
static gs_status wait_for_place(listing *x, const gs_task *t, reach *before)
{
    const uint64_t end = t->place.offset + t->bytes;
    const uint32_t lane = gs_task_lane(t);

    for (uint32_t k = gs_spans_find(&x->arena, t->place.offset);
         k < x->arena.count && gs_spans_at(&x->arena, k)->begin < end; k++) {
        const gs_span *const was = gs_spans_at(&x->arena, k);
        before->before[was->who] = GS_MAX(before->before[was->who], was->from);
    }
    return gs_spans_set(&x->arena, (gs_span){t->place.offset, end, lane, x->waits.count[lane] + 1});
}

static gs_status list_move(listing *x, uint32_t i, gs_task *t, const reach *before)
{
    reach own = *before;

    t->device = 0;
    if (t->source.memory == GS_HOST && t->place.memory == GS_DEVICE_MEMORIES && t->chunk_bytes == 0)
        t->operand = 0; /* from this rank's host */
    if (t->place.memory == GS_DEVICE_MEMORIES)
        GS_TRY(wait_for_place(x, t, &own));
    GS_TRY(waits_add(&x->waits, i, t, &own));
    if (t->place.memory >= GS_RANK_MEMORIES)
        x->pass->sent_bytes += gs_task_bytes(x->out, t);
    if (t->source.memory >= GS_RANK_MEMORIES)
        x->pass->received_bytes += gs_task_bytes(x->out, t);
    return GS_OK;
}

/* A copy whose runs are as they are. */
static gs_status list_whole(listing *x, uint32_t i, gs_place source, gs_place place, const reach *before)
{
    gs_task t = x->whole->task[i];
    t.source = source;
    t.place = place;
    const gs_status st = copy_runs(x, &t);
    return st == GS_OK ? list_move(x, i, &t, before) : st;
}

/* The pieces that a rank has, each a copy by itself: they may begin anywhere. */
static gs_status list_pieces(listing *x, uint32_t i, uint32_t rank, gs_place source, gs_place place,
                             const reach *before)
{
    for (uint32_t k = 0; k < x->owners.pieces; k++) {
        const gs_piece *const p = &x->owners.piece[k];
        gs_task t = x->whole->task[i];
        if (p->rank != rank)
            continue;
        t.source = gs_place_behind(source, p->begin);
        t.place = gs_place_behind(place, p->begin);
        t.bytes = p->end - p->begin;
        t.runs = 0;
        GS_TRY(list_move(x, i, &t, before));
    }
    return GS_OK;
}

/* Rows that go by themselves. */
static gs_status list_rows(listing *x, uint32_t i, uint32_t rank, gs_place source, gs_place place,
                           const reach *before)
{
    gs_task t = x->whole->task[i];
    t.source = source;
    t.place = place;
    const gs_status st = copy_rows(x, &t, rank);
    return st == GS_OK ? list_move(x, i, &t, before) : st;
}

/* From the host to a device. */
static gs_status list_upload(listing *x, uint32_t i, const reach *before)
{
    const gs_task *const t = &x->whole->task[i];
    const uint32_t to = t->device;
    uint16_t ranks = 0, done = 0;

    for (uint32_t k = 0; k < x->owners.pieces; k++)
        ranks |= (uint16_t)(1u << x->owners.piece[k].rank);
    for (uint32_t k = 0; k < x->owners.pieces; k++) {
        const uint32_t from = x->owners.piece[k].rank;
        const bool alone = ranks == (uint16_t)(1u << from);
        if ((done >> from & 1) != 0 || (to != x->rank && from != x->rank))
            continue;
        done |= (uint16_t)(1u << from);
        const gs_place source = from == x->rank ? t->source : at_rank(t->source, from);
        const gs_place place = to == x->rank ? here(t->place) : at_rank(t->place, to);
        GS_TRY(gs_task_moves_rows(t) ? list_rows(x, i, from, source, place, before)
               : alone               ? list_whole(x, i, source, place, before)
                                     : list_pieces(x, i, from, source, place, before));
    }
    return GS_OK;
}

static gs_status list_forward(listing *x, uint32_t i, const reach *before)
{
    const gs_task *const t = &x->whole->task[i];
    const uint32_t from = t->source.memory - GS_DEVICE_MEMORIES, to = t->place.memory - GS_DEVICE_MEMORIES;

    if (from != x->rank && to != x->rank)
        return GS_OK;
    return from == x->rank ? list_whole(x, i, here(t->source), at_rank(t->place, to), before)
                           : list_whole(x, i, at_rank(t->source, from), here(t->place), before);
}

static gs_status list_transfer(listing *x, uint32_t i, const reach *before)
{
    const gs_task *const t = &x->whole->task[i];
    const bool reads = gs_task_reads(t);
    const bool own = reads ? (x->owners.readers[i] >> x->rank & 1) != 0 : x->owners.writer == x->rank;

    if (!own)
        return GS_OK;
    *(reads ? &x->pass->read_bytes : &x->pass->written_bytes) += gs_task_bytes(x->whole, t);
    x->pass->read_requests += reads ? gs_task_requests(t) : 0;
    return list_whole(x, i, t->source, t->place, before);
}

static gs_status list_task(listing *x, uint32_t i, const reach *before)
{
    const gs_task *const t = &x->whole->task[i];

    if (t->kind != GS_TASK_MOVE)
        return list_computation(x, i, before);
    GS_TRY(gs_owners_follow(&x->owners, i));
    switch (gs_task_driver(t)) {
    case GS_DRIVER_IO:
        return list_transfer(x, i, before);
    case GS_DRIVER_ENGINE:
        if (t->source.memory == GS_HOST)
            return list_upload(x, i, before);
        return t->device == x->rank ? list_whole(x, i, here(t->source), t->place, before) : GS_OK;
    default:
        return list_forward(x, i, before);
    }
}

static gs_status list_pass(listing *x, uint32_t pass)
{
    const gs_plan_pass *const whole = &x->whole->pass[pass];
    gs_plan_pass *const p = &x->out->pass[pass];

    *p = *whole;
    p->first_task = x->out->tasks;
    p->first_ahead = p->aheads = 0;
    p->read_bytes = p->written_bytes = p->read_requests = 0;
    x->pass = p;
    gs_spans_empty(&x->arena);
    waits_enter(&x->waits, pass);
    for (uint32_t i = whole->first_task; i < whole->first_task + whole->tasks; i++) {
        const reach before = waits_begin(&x->waits, i);
        GS_TRY(list_task(x, i, &before));
        waits_end(&x->waits, i, &before);
    }
    p->tasks = x->out->tasks - p->first_task;
    return GS_OK;
}

/* ---- what stays in memory ------------------------------------------------- */

static gs_status note_makers(listing *x)
{
    memset(x->out->maker, NO_MAKER, (size_t)x->program->stages * x->parts);
    for (uint32_t i = 0; i < x->whole->tasks; i++) {
        const gs_task *const t = &x->whole->task[i];
        if (t->kind != GS_TASK_VERTEX)
            continue;
        uint8_t *const maker = &x->out->maker[(uint64_t)t->stage * x->parts + t->first_row / x->interval_rows];
        if (*maker != NO_MAKER && *maker != t->device)
            return gs_owners_refuse("intervals that several ranks compute");
        *maker = (uint8_t)t->device;
    }
    return GS_OK;
}

/* Of what the host keeps, what this rank's device takes, or of rows that are dealt what this rank has. */
static void take_own(const listing *x, uint32_t r, gs_resident *k)
{
    const gs_piece own = gs_owners_loaded(&x->owners, r, x->rank);

    k->rank = (uint8_t)x->rank;
    k->load = k->load && own.end > own.begin;
    if (!k->load)
        return;
    k->offset += own.begin - k->first;
    k->bytes = own.end - own.begin;
    k->first = own.begin;
}

/* The rank whose rows a device's resident is of. */
static uint32_t rank_of(const listing *x, const gs_resident *k)
{
    const gs_array *const a = &x->program->array[k->file];

    if (k->made_by != GS_NONE) {
        const uint64_t row = k->first / (a->width * (uint64_t)gs_dtype_bytes(a->dtype));
        return x->out->maker[(uint64_t)k->made_by * x->parts + row / x->interval_rows];
    }
    return gs_owners_deal(&x->owners, k->file) ? gs_owners_of(&x->owners, k->target)
                                               : k->memory - GS_DEVICE_MEMORIES; /* whoever has the device */
}

static void list_residents(listing *x)
{
    gs_plan *const p = x->out;

    for (uint32_t r = 0; r < x->whole->residents; r++) {
        gs_resident k = x->whole->resident[r];
        const uint32_t device = k.memory - GS_DEVICE_MEMORIES;
        if (k.memory == GS_HOST) {
            take_own(x, r, &k);
            p->resident[p->residents++] = k;
            continue;
        }
        k.rank = (uint8_t)rank_of(x, &k);
        if (device != x->rank && k.rank != x->rank)
            continue;
        k.memory = device == x->rank ? (uint32_t)GS_DEVICE_MEMORIES : GS_RANK_MEMORIES + device;
        p->resident[p->residents++] = k;
    }
}

/* ---- the part ------------------------------------------------------------- */

/* What is the same of every part, and room for the rest. */
static gs_status begin(listing *x)
{
    const gs_plan *const w = x->whole;
    const uint32_t arrays = x->program->arrays;
    gs_plan *const p = x->out;

    *p = (gs_plan){.devices = 1, .passes = w->passes, .ranks = w->devices, .rank = x->rank,
                   .flight_bytes = w->flight_bytes, .lasting_bytes = w->lasting_bytes, .host_bytes = w->host_bytes,
                   .device_bytes = w->device_bytes, .table_bytes = w->table_bytes};
    for (uint32_t k = 0; k < 2 && x->owners.rows != NULL; k++)
        p->own_rows[k] = (uint64_t)x->owners.rows->first[x->rank + k] * x->interval_rows;
    memcpy(p->region_bytes, w->region_bytes, sizeof(p->region_bytes));
    p->arena_bytes[0] = w->arena_bytes[x->rank];
    p->pass = gs_calloc((size_t)w->passes + 1, sizeof(*p->pass));
    p->resident = gs_calloc((size_t)w->residents + 1, sizeof(*p->resident));
    p->maker = gs_malloc((size_t)x->program->stages * x->parts + 1);
    p->spill = (gs_plan_spill){.first = gs_calloc((size_t)arrays + 1, sizeof(uint64_t)),
                               .bytes = gs_calloc((size_t)arrays + 1, sizeof(uint64_t)), .total = w->spill.total};
    if (p->pass == NULL || p->resident == NULL || p->maker == NULL || p->spill.first == NULL || p->spill.bytes == NULL)
        return no_memory();
    memcpy(p->spill.first, w->spill.first, arrays * sizeof(uint64_t));
    memcpy(p->spill.bytes, w->spill.bytes, arrays * sizeof(uint64_t));
    return note_makers(x);
}

static gs_status list_all(listing *x)
{
    const uint32_t setup = gs_program_pass(x->program, "setup");

    GS_TRY(begin(x));
    GS_TRY(gs_owners_open(&x->owners, x->whole, x->program));
    GS_TRY(gs_owners_begin(&x->owners));
    GS_TRY(waits_open(&x->waits, x->whole, x->out));
    if (setup != GS_NONE)
        GS_TRY(list_pass(x, setup));
    for (uint32_t p = 0; p < x->whole->passes; p++)
        if (p != setup)
            GS_TRY(list_pass(x, p));
    list_residents(x);
    return GS_OK;
}

gs_status gs_plan_take_part(gs_plan **out, const gs_plan *whole, const gs_program *program, uint32_t parts,
                            uint32_t interval_rows, const gs_part_rows *rows, uint32_t rank)
{
    listing x = {.whole = whole, .program = program, .rank = rank, .parts = parts, .interval_rows = interval_rows,
                 .owners = {.rows = rows, .ranks = whole->devices, .interval_rows = interval_rows}};
    gs_status st;

    if ((x.out = gs_calloc(1, sizeof(*x.out))) == NULL)
        return no_memory();
    st = list_all(&x);
    gs_owners_close(&x.owners);
    waits_close(&x.waits);
    gs_free(x.arena.span);
    if (st == GS_OK)
        *out = x.out;
    else
        gs_plan_free(x.out);
    return st;
}
