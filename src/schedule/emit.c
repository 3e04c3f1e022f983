/* emit.c - a plan is made of a choice: stage by stage, then what may come ahead. */

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "program/products.h"
#include "schedule/deals.h"
#include "schedule/emit_cache.h"
#include "schedule/emitter.h"

/* ---- what comes ahead ----------------------------------------------------- */

/* The first reads of an epoch, made while the one before it ends.
 *
 * Epoch after epoch runs the same pass. Its first reads wait for nothing but their place in the ring, so in a run that
 * will be followed by another they are made as soon as the last users of that place are done: the disk works on while
 * the device computes on what came last and while parameters are updated.
 */

/* Does the pass write the array, or the run behind it? Then a first read of it would be of the wrong epoch. */
static bool is_written(const struct emitter *e, uint32_t file)
{
    if (file < e->l->program->arrays && e->l->program->array[file].lasting)
        return true;
    for (uint32_t i = 0; file < e->l->program->arrays && i < e->l->parts; i++)
        if (e->spill.written[(uint64_t)file * e->l->parts + i][0] != GS_NONE)
            return true;
    return false;
}

/* Adds a read to the list. False where it has to wait for the run that it belongs to. */
static bool add_ahead(struct emitter *e, const struct moved *t, gs_status *st)
{
    gs_plan *const p = e->plan;

    if (is_written(e, t->file) ||
        !gs_ring_users(&e->memory[GS_HOST].ring, t->offset, t->bytes, e->wait.task, WAITS, &e->wait.count))
        return false;
    gs_emit__expand(e, 0);
    if (e->wait.count + GS_PLAN_LANES > WAITS)
        return false;
    const uint32_t n = gs_emit__settle_waits(e, GS_LANE_READ);
    e->wait.count = 0;
    e->pass->aheads++;
    if (e->c->counts) {
        p->aheads++;
        e->counted.deps += n;
        return true;
    }
    if ((*st = gs_emit__grow((void **)&p->ahead, &e->room.ahead, p->aheads + 1, sizeof(*p->ahead))) != GS_OK ||
        (*st = gs_emit__grow((void **)&p->dep, &e->room.dep, p->deps + n, sizeof(*p->dep))) != GS_OK)
        return false;
    p->ahead[p->aheads++] = (gs_ahead){t->task, p->deps, n};
    if (n > 0)
        memcpy(&p->dep[p->deps], e->wait.task, n * sizeof(*p->dep));
    p->deps += n;
    return true;
}

/* emit.c: behind the pass's last task, which of its first reads its next run may make already. */
static gs_status emit_ahead(struct emitter *e)
{
    const gs_plan_pass *const pass = e->pass;
    const bool repeats = strcmp(e->l->program->pass[pass - e->plan->pass].name, "train") == 0;
    gs_status st = GS_OK;

    e->pass->first_ahead = e->plan->aheads;
    if (!repeats || e->l->config->no_pipeline || e->l->config->never_again)
        return GS_OK;
    for (uint32_t i = 0; i < e->made.earlies && add_ahead(e, &e->made.early[i], &st); i++)
        ;
    e->wait.count = 0;
    return st;
}

/* ---- the whole ---- */

static bool runs_for(const struct emitter *e, struct block b)
{
    for (uint32_t t = 0; t < b.count; t++)
        if (gs_layout_rows(e->l, e->stage, b.first + t) > 0)
            return true;
    return false;
}

static void count_stage(struct emitter *e)
{
    double dense, edge;
    gs_stage_flops(e->l->program, gs_emit__stage(e), e->stage_rows, e->stage_edges, &dense, &edge);
    e->pass->dense_flops += dense;
    e->pass->edge_flops += edge;
    if (gs_stage_by_type(gs_emit__stage(e))) {
        e->pass->products += gs_stage_product_share(gs_emit__stage(e)) * (double)e->stage_edges;
        e->pass->product_edges += e->stage_edges;
    }
    e->pass->edges += e->stage_edges;
    e->pass->rows += e->stage_rows;
    e->stage_edges = e->stage_rows = 0;
}

/* Behind the stage's last rows: what it has made over all vertices. */
static gs_status emit_statistics(struct emitter *e)
{
    const gs_stage *s = &e->l->program->stage[e->stage];
    const gs_task t = {.kind = GS_TASK_STATISTICS};
    uint32_t i = 0;

    while (i < s->instrs && gs_op_classof(s->instr[i].op) != GS_CLASS_STATISTIC)
        i++;
    for (uint32_t d = 0; i < s->instrs && d < e->devices; d++)
        gs_emit__wait(e, e->wait.lane_last[GS_LANE_DEVICES + d * GS_DEVICE_LANES + GS_LANE_COMPUTE]);
    return i < s->instrs ? gs_emit__task(e, &t, &e->wait.statistics) : GS_OK;
}

/* The blocks that the devices hold at a time. False where none of them has anything to do. */
static bool seat_round(struct emitter *e, uint32_t round, uint32_t rounds, uint32_t step)
{
    const uint32_t *const first = gs_choice_deal_of(e->c, e->l, e->stage), parts = e->l->parts;
    bool any = false;

    for (uint32_t d = 0; d < e->devices; d++) {
        struct block *const b = &e->seat[d].block;
        const uint32_t which = e->c->order[e->stage * parts + round];
        if (e->memory[e->seat[d].arena].is.equal_blocks) { /* as many as the device with most intervals has */
            const uint64_t count = first[d + 1] - first[d];
            const uint32_t from = (uint32_t)(count * which / rounds), to = (uint32_t)(count * (which + 1) / rounds);
            *b = (struct block){first[d] + from, to - from};
        } else {
            const uint32_t from = which * step;
            *b = (struct block){from, GS_MIN(step, parts - from)};
        }
        if (!runs_for(e, *b))
            b->count = 0;
        any = any || b->count > 0;
    }
    return any;
}

static gs_status emit_round(struct emitter *e)
{
    const gs_stage *s = &e->l->program->stage[e->stage];

    if (s->sums)
        GS_TRY(gs_stage_is_back(s) ? gs_emit__back_pass(e) : gs_emit__edge_pass(e));
    for (uint32_t t = 0; t < e->l->parts; t++)
        for (e->device = 0; e->device < e->devices; e->device++)
            if (t < gs_emit__here(e)->block.count)
                GS_TRY(gs_emit__interval(e, gs_emit__here(e)->block.first + t, gs_emit__here(e)->block));
    e->device = 0;
    return GS_OK;
}

static gs_status emit_stage(struct emitter *e)
{
    const gs_stage *s = &e->l->program->stage[e->stage];
    const uint32_t step = s->sums ? e->c->block[e->stage] : 1;
    const uint32_t rounds = (uint32_t)gs_div_up(gs_choice_longest(e->c, e->l, e->stage), step);

    memcpy(e->wait.lane_before, e->wait.lane_last, sizeof(e->wait.lane_before));
    memset(e->wait.lane_open, 0, sizeof(e->wait.lane_open));
    e->pass->blocks = GS_MAX(e->pass->blocks, s->sums ? rounds * e->devices : 1);
    for (uint32_t r = 0; r < rounds; r++)
        if (seat_round(e, r, rounds, step))
            GS_TRY(emit_round(e));
    if (gs_stage_is_back(s))
        GS_TRY(gs_emit__back_finish(e));
    GS_TRY(gs_emit__zero_left_out(e));
    count_stage(e);
    return emit_statistics(e);
}

static gs_status list_residents(struct emitter *e)
{
    const gs_program *p = e->l->program;
    for (uint32_t f = 0; f < p->arrays + e->l->sets; f++) {
        const uint64_t bytes = gs_choice_kept_bytes(e->c, e->l, f);
        if (bytes > 0)
            e->plan->resident[e->plan->residents++] =
                (gs_resident){.file = f, .memory = GS_HOST, .bytes = bytes, .offset = e->c->places.offset[f],
                              .load = f >= p->arrays || p->array[f].store_id >= 0};
    }
    e->plan->region_bytes[GS_REGION_RESIDENT] = e->plan->lasting_bytes = e->c->places.bytes;
    return GS_OK;
}

/* Rows of the store, and of tables, that owners have alone are as if those had made them. */
static void note_dealt(struct emitter *e)
{
    const gs_schedule_config *const c = e->l->config;

    for (uint32_t a = 0; a < e->l->program->arrays; a++) {
        const gs_array *const array = &e->l->program->array[a];
        const bool dealt = array->store_id < 0 ? array->lasting && c->owners != NULL
                                               : (c->dealt_arrays >> array->store_id & 1) != 0;
        for (uint32_t i = 0, d = 0; dealt && i < e->l->parts; i++) {
            while (i >= c->owners[d + 1])
                d++;
            e->spill.maker[(uint64_t)a * e->l->parts + i] = (uint8_t)(1 + d);
        }
    }
}

static gs_status take_scratch(struct emitter *e)
{
    const gs_program *p = e->l->program;
    const uint64_t cells = (uint64_t)p->arrays * e->l->parts, words = e->l->config->needs.granules.words;
    uint64_t regs = 1, ends = GS_STAGE_SUMS;

    for (uint32_t s = 0; s < p->stages; s++) {
        regs = GS_MAX(regs, p->stage[s].regs);
        ends = GS_MAX(ends, 2ull * GS_STAGE_SUMS + p->stage[s].edge_regs); /* rows of a sum, and their scale */
    }
    e->ends.needed_by = gs_arena_take(&e->scratch, e->devices, sizeof(*e->ends.needed_by));
    for (uint32_t d = 0; e->ends.needed_by != NULL && d < e->devices; d++)
        e->ends.needed_by[d] = (struct needed){
            .stage = GS_NONE, .mask = gs_arena_take(&e->scratch, words, sizeof(*e->ends.needed_by->mask))};
    e->ends.mask_of_all = gs_arena_take(&e->scratch, words, sizeof(*e->ends.mask_of_all));
    e->ends.rows = gs_arena_take(&e->scratch, e->l->config->needs.rows.words, sizeof(*e->ends.rows));
    e->spill.looked = gs_arena_take(&e->scratch, cells + 1, sizeof(*e->spill.looked));
    e->spill.written = gs_arena_take(&e->scratch, cells + 1, sizeof(*e->spill.written));
    if (e->plan->devices > 1)
        e->spill.maker = gs_arena_take(&e->scratch, cells + 1, sizeof(*e->spill.maker));
    e->wait.task = gs_arena_take(&e->scratch, WAITS, sizeof(*e->wait.task));
    e->seat = gs_arena_take(&e->scratch, e->devices, sizeof(*e->seat));
    for (uint32_t d = 0; e->seat != NULL && d < e->devices; d++) {
        struct seat *const seat = &e->seat[d];
        seat->arena = d < e->plan->devices ? GS_DEVICE_MEMORIES + d : GS_HOST;
        seat->memory = e->l->memory.in_place[d] ? GS_HOST : seat->arena;
        seat->narrow = gs_arena_take(&e->scratch, regs, sizeof(*seat->narrow));
        seat->operand = gs_arena_take(&e->scratch, ends, sizeof(*seat->operand));
        seat->target = gs_arena_take(&e->scratch, ends * e->l->parts, sizeof(*seat->target));
    }
    e->tile = gs_arena_take(&e->scratch, regs, sizeof(*e->tile));
    e->ends.operand_array = gs_arena_take(&e->scratch, ends, sizeof(*e->ends.operand_array));
    e->ends.target_array = gs_arena_take(&e->scratch, ends, sizeof(*e->ends.target_array));
    e->ends.needed = gs_arena_take(&e->scratch, e->l->parts, sizeof(*e->ends.needed));
    e->ends.chunk = gs_arena_take(&e->scratch, (uint64_t)e->l->parts * GS_CHUNK_GROUP, sizeof(*e->ends.chunk));
    if (e->scratch.is_short)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    memset(e->spill.written, 0xff, cells * sizeof(*e->spill.written));
    if (e->l->memory.apart)
        note_dealt(e);
    return GS_OK;
}

/* Bytes of the plan itself with which it cannot fit beside arenas of so many bytes: the search leaves its tables an
 * eighth more. */
static uint64_t most_tables(const gs_layout *l, const gs_choice *c, uint64_t arena)
{
    const gs_schedule_config *const cfg = l->config;
    const uint64_t left = c->host_most - GS_MIN(c->host_most, cfg->host_fixed);
    const uint64_t arenas = l->memory.arenas * (cfg->device_fixed + arena);
    return (left - GS_MIN(left, arenas)) / 9 * 8;
}

/* Is it a count with nothing kept? */
static bool is_bare(const gs_choice *c)
{
    return c->counts && c->keep_bytes == 0 && c->device.devices == 0 && !c->host.tracing && c->host.list.plan == NULL;
}

/* Are the tables known to be too large? */
static bool is_crammed(const gs_layout *l, const gs_choice *c)
{
    const bool known = (c->chunks_alone || is_bare(c)) && c->arena_bytes <= c->least[c->chunks_alone].arena;
    const uint64_t least = is_bare(c) ? l->bare_tables[c->chunks_alone] : l->least_tables;
    return GS_MAX(least, known ? c->least[c->chunks_alone].tables : 0) > most_tables(l, c, c->arena_bytes);
}

/* Of a plan that is whole, or given up for its tables: with a smaller arena, or smaller rings, they are no smaller. */
static void note_least(gs_choice *c, const gs_layout *l, uint64_t tables)
{
    const bool staged = l->memory.own > 0 && c->staging_bytes != GS_RING_ENDLESS;

    if (!c->chunks_alone && (c->ring_bytes != GS_RING_ENDLESS || staged || !is_bare(c)))
        return;
    c->least[c->chunks_alone].arena = c->arena_bytes;
    c->least[c->chunks_alone].tables = tables;
}

/* The one place that tells the host's memory from devices'. */
static void describe_memories(struct emitter *e)
{
    const gs_layout_memories *const all = &e->l->memory;
    for (uint32_t m = GS_HOST; m < GS_ARRAY_LEN(e->memory); m++) {
        const bool own = m != GS_HOST;
        e->memory[m].number = m;
        e->memory[m].is = (struct facts){.cuts_tail = !own && all->own == 0 && all->any_in_place,
                                         .groups_chunks = !own && all->groups_chunks, .drops_unread = !own,
                                         .as_in_files = !own, .equal_blocks = own, .keeps_made = own,
                                         .lists_pruned = own, .many_lanes = own};
    }
}

static gs_status take_list(void **array, uint32_t *room, uint64_t expected, size_t size)
{
    return expected > UINT32_MAX / 2 ? GS_OK : gs_emit__grow(array, room, (uint32_t)expected, size);
}

/* A plan has about as many of all as the one before. */
static gs_status take_lists(struct emitter *e)
{
    const gs_choice *const c = e->c;
    gs_plan *const p = e->plan;

    if (c->counts)
        return GS_OK;
    GS_TRY(take_list((void **)&p->task, &e->room.task, c->last.tasks, sizeof(*p->task)));
    GS_TRY(take_list((void **)&p->dep, &e->room.dep, c->last.deps, sizeof(*p->dep)));
    GS_TRY(take_list((void **)&p->reg, &e->room.reg, c->last.regs, sizeof(*p->reg)));
    return take_list((void **)&p->run, &e->room.run, c->last.runs, sizeof(*p->run));
}

static gs_status emitter_open(struct emitter *e)
{
    const gs_program *p = e->l->program;

    gs_ring_init(&e->memory[GS_HOST].ring, e->c->ring_bytes);
    e->memory[GS_HOST].ring_at = gs_place_on_host(GS_REGION_RING, 0);
    e->devices = e->l->memory.devices;
    for (uint32_t m = GS_DEVICE_MEMORIES; m < GS_DEVICE_MEMORIES + e->devices; m++) {
        gs_ring_init(&e->memory[m].ring, e->c->staging_bytes);
        e->memory[m].ring_at = (gs_place){GS_REGION_ARENA, m, e->c->arena_bytes};
    }
    /* counting goes on to where no smaller arena has room either */
    e->tables_most = most_tables(e->l, e->c, is_bare(e->c) ? 0 : e->c->arena_bytes);
    e->tables_enough = most_tables(e->l, e->c, e->c->arena_bytes);
    e->beside = gs_choice_listed_bytes(e->c);
    if ((e->plan = gs_calloc(1, sizeof(*e->plan))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    e->plan->devices = e->l->memory.own;
    describe_memories(e);
    GS_TRY(take_scratch(e));
    e->room.resident = p->arrays + e->l->sets;
    e->plan->resident = gs_calloc(e->room.resident, sizeof(*e->plan->resident));
    e->plan->pass = gs_calloc(p->passes + 1, sizeof(*e->plan->pass));
    e->plan->spill.first = gs_calloc(p->arrays + 1, sizeof(*e->plan->spill.first));
    e->plan->spill.bytes = gs_calloc(p->arrays + 1, sizeof(*e->plan->spill.bytes));
    if (e->plan->resident == NULL || e->plan->pass == NULL || e->plan->spill.first == NULL ||
        e->plan->spill.bytes == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    GS_TRY(gs_emit__spill_open(e));
    e->plan->passes = p->passes;
    GS_TRY(list_residents(e));
    GS_TRY(take_lists(e));
    return gs_emit__cache_open(e);
}

static void emitter_close(struct emitter *e)
{
    for (uint32_t m = GS_HOST; m < GS_DEVICE_MEMORIES + e->devices; m++)
        gs_ring_drop(&e->memory[m].ring);
    gs_plan_free(e->plan);
    gs_free(e->wait.joined);
    gs_emit__cache_close(e);
    gs_emit__spill_close(e);
    gs_free(e->made.lane);
    gs_free(e->made.write);
    gs_free(e->made.early);
    gs_arena_free(&e->scratch);
}

/* Lists grew by doubling; the budget counts what they hold. A list that cannot be
 * made smaller stays as it is. */
static void fit(void **array, uint32_t count, size_t size)
{
    void *p = count ? gs_realloc(*array, count * size) : NULL;
    if (p != NULL)
        *array = p;
}

static void fit_lists(gs_plan *p)
{
    fit((void **)&p->task, p->tasks, sizeof(*p->task));
    fit((void **)&p->dep, p->deps, sizeof(*p->dep));
    fit((void **)&p->reg, p->regs, sizeof(*p->reg));
    fit((void **)&p->run, p->runs, sizeof(*p->run));
    fit((void **)&p->row_bits, p->row_words, sizeof(*p->row_bits));
    fit((void **)&p->ahead, p->aheads, sizeof(*p->ahead));
}

/* What the plan takes of both memories, with tables of so many bytes. */
static void note_sizes(struct emitter *e, uint64_t tables)
{
    const gs_layout *const l = e->l;
    const gs_schedule_config *const cfg = l->config;
    gs_plan *const p = e->plan;
    uint64_t arenas = 0;

    p->region_bytes[GS_REGION_RING] = e->c->ring_bytes;
    for (uint32_t d = 0; d < e->devices; d++) {
        p->arena_bytes[d] = e->c->arena_taken + e->c->staging_bytes + e->c->device.used[d];
        p->region_bytes[GS_REGION_ARENA] = GS_MAX(p->region_bytes[GS_REGION_ARENA], p->arena_bytes[d]);
    }
    p->table_bytes = tables;
    assert(p->table_bytes >= (is_bare(e->c) ? l->bare_tables[e->c->chunks_alone] : l->least_tables));
    p->device_bytes = cfg->device_fixed + p->region_bytes[GS_REGION_ARENA];
    for (uint32_t d = 0; d < e->devices; d++)
        if (l->memory.on_host[d])
            arenas = gs_layout_add_arena(&l->memory, arenas, cfg->device_fixed + p->arena_bytes[d]);
    p->host_bytes = cfg->host_fixed + p->table_bytes + e->c->ring_bytes + p->region_bytes[GS_REGION_RESIDENT] + arenas;
}

static void finish(struct emitter *e)
{
    gs_plan *const p = e->plan;

    e->c->last.tasks = p->tasks;
    e->c->last.deps = p->deps + e->counted.deps;
    e->c->last.regs = p->regs + e->counted.regs;
    e->c->last.runs = p->runs + e->counted.runs;
    if (!e->c->counts)
        fit_lists(p);
    e->c->staged_bytes = e->memory[GS_HOST].ring.most;
    e->c->live_bytes = e->memory[GS_HOST].ring.live_most;
    e->c->joined = e->group.joined;
    e->c->live_staging = 0;
    for (uint32_t d = 0; d < e->devices; d++)
        e->c->live_staging = GS_MAX(e->c->live_staging, e->memory[GS_DEVICE_MEMORIES + d].ring.live_most);
    note_sizes(e, gs_emit__table_bytes(e));
}

/* Planning is mostly this: what it has made, or what it gives up now. A task of several devices takes a quarter longer,
 * with what each of them keeps. */
static void note_effort(const struct emitter *e, bool whole)
{
    gs_effort *const effort = e->l->config->effort;
    if (effort == NULL || e->plan == NULL)
        return;
    const uint64_t tasks = e->plan->tasks + (e->plan->devices > 0 ? e->plan->tasks / 4 : 0);
    effort->tasks += e->c->counts ? tasks / 2 : tasks;
    effort->last = whole ? e->plan->tasks : effort->last;
}

static gs_status check_stop(const gs_schedule_config *c)
{
    return c->stop == NULL || *c->stop == 0 ? GS_OK : gs_fail(GS_EINTERRUPTED, "interrupted while plans were compared");
}

/* A pass ends only when all of its tasks are done: the next waits for none of them. */
static void begin_pass(struct emitter *e)
{
    e->pass->first_task = e->plan->tasks;
    e->made.writes = e->made.earlies = 0;
    e->made.late = false;
    e->last_compute = e->last_write = GS_NONE;
    memset(e->wait.lane_last, 0xff, sizeof(e->wait.lane_last));
    e->wait.joins = 0;
    e->wait.statistics = GS_NONE;
    for (uint32_t m = GS_HOST; m < GS_DEVICE_MEMORIES + e->devices; m++)
        gs_ring_reset(&e->memory[m].ring);
    gs_emit__cache_begin(e);
    const uint64_t cells = (uint64_t)e->l->program->arrays * e->l->parts;
    memset(e->spill.looked, 0, cells * sizeof(*e->spill.looked));
    memset(e->spill.written, 0xff, cells * sizeof(*e->spill.written));
    if (e->spill.maker != NULL && !e->l->memory.apart)
        memset(e->spill.maker, 0, cells * sizeof(*e->spill.maker));
}

/* ---- counts that were made before ------------------------------------------ */

/* A checksum of all that a count with these rings depends on, but for what gs_count says; 0: of more than is asked. */
static uint64_t question_of(const gs_layout *l, const gs_choice *c, uint64_t ring, uint64_t staging)
{
    const gs_schedule_config *const cfg = l->config;
    const gs_program *const p = l->program;
    uint64_t needs = 0, rows = 0, sum;

    if (!c->counts || cfg->effort == NULL || cfg->effort->question == 0 || c->device.devices > 0 || c->host.tracing ||
        c->host.list.plan != NULL)
        return 0;
    for (uint32_t k = 0; k < l->sets; k++)
        needs |= (uint64_t)(l->set[k].need != NULL) << k;
    for (uint32_t k = 0; k < l->sets; k++)
        rows |= (uint64_t)(l->set[k].rows != NULL) << k;
    const uint64_t part[] = {
        cfg->effort->question, needs, rows, l->sets, cfg->needs.granules.rows, l->memory.own, l->memory.arenas,
        l->staged, l->long_tiles, cfg->ring, cfg->loads, cfg->task_bytes, ring, staging, c->arena_bytes,
        c->arena_taken, c->chunks_alone, c->made_only,
    };
    sum = gs_hash64(part, sizeof(part));
    for (uint32_t s = 0; s < p->stages; s++)
        sum = gs_hash64_seeded(&l->stage[s].tile_rows, sizeof(l->stage[s].tile_rows), sum);
    sum = gs_hash64_seeded(c->block, p->stages * sizeof(*c->block), sum);
    sum = gs_hash64_seeded(c->group, p->stages * sizeof(*c->group), sum);
    sum = gs_hash64_seeded(c->deal, (uint64_t)p->stages * (l->memory.devices + 1) * sizeof(*c->deal), sum);
    sum = gs_hash64_seeded(c->order, (uint64_t)p->stages * l->parts * sizeof(*c->order), sum);
    sum = gs_hash64_seeded(c->kept_intervals, p->arrays * sizeof(*c->kept_intervals), sum);
    return gs_hash64_seeded(c->kept_edges, l->sets * sizeof(*c->kept_edges), sum);
}

/* What is known of the plan that `c` asks for. One whose tables have no room with an endless ring has none with any. */
static const gs_count *known_count(const gs_layout *l, const gs_choice *c, uint64_t question)
{
    const uint64_t endless = GS_RING_ENDLESS, share = gs_emit__group_share(l);
    const uint64_t most = most_tables(l, c, c->arena_bytes);
    const gs_counts *const counts = question == 0 ? NULL : l->config->effort->counts;
    const gs_count *known = gs_counts_find(counts, question, share, most, true);

    if (known == NULL && counts != NULL)
        known = gs_counts_find(counts, question_of(l, c, endless, endless), share, most, true);
    if (known == NULL && counts != NULL)
        known = gs_counts_find(counts, question_of(l, c, endless, c->staging_bytes), share, most, true);
    return known != NULL ? known : gs_counts_find(counts, question, share, most, false);
}

/* What the emitter found, up to its end. */
static void note_count(const struct emitter *e, uint64_t question, bool whole)
{
    const gs_choice *const c = e->c;

    if (question != 0 && e->plan != NULL)
        gs_counts_note(e->l->config->effort->counts,
                       &(gs_count){.question = question, .whole = whole, .crammed = c->crammed,
                                   .tasks = e->plan->tasks, .tables = gs_emit__table_bytes(e),
                                   .taken = e->group.taken, .refused = e->group.refused, .staged = c->staged_bytes,
                                   .live = c->live_bytes, .live_staging = c->live_staging,
                                   .joined = e->group.joined, .short_of = c->short_of});
}

/* As after that count. */
static gs_status recall(const gs_count *known, const gs_layout *l, gs_choice *c)
{
    c->crammed = known->tables > most_tables(l, c, c->arena_bytes);
    c->device.crowded = c->device.crowded && !c->crammed;
    c->short_of = known->short_of;
    if (known->whole || c->crammed)
        note_least(c, l, known->tables);
    if (c->crammed || !known->whole)
        return GS_ENOFIT;
    l->config->effort->last = known->tasks;
    c->staged_bytes = known->staged;
    c->live_bytes = known->live;
    c->live_staging = known->live_staging;
    c->joined = known->joined;
    return GS_OK;
}

/* Is there such a plan? Its tables, where it was counted before; NULL: it was not, or is not whole. */
static const gs_count *known_whole(const gs_layout *l, gs_choice *c)
{
    const bool counts = c->counts;

    c->counts = true;
    const gs_count *const known = known_count(l, c, question_of(l, c, c->ring_bytes, c->staging_bytes));
    c->counts = counts;
    return known == NULL || !known->whole || known->tables > most_tables(l, c, c->arena_bytes) ? NULL : known;
}

/* Of a trial, which asks what a plan takes and not what it does: that of a count which is known to be whole. */
static gs_status recall_whole(gs_plan **out, const gs_count *known, const gs_layout *l, gs_choice *c)
{
    struct emitter e = {.l = l, .c = c};
    gs_status st = emitter_open(&e);

    if (st == GS_OK && (st = recall(known, l, c)) == GS_OK) {
        e.plan->tasks = known->tasks;
        note_sizes(&e, known->tables);
        *out = e.plan;
        e.plan = NULL;
    }
    emitter_close(&e);
    return st;
}

/* ---- the whole ------------------------------------------------------------- */

gs_status gs_emit(gs_plan **out, const gs_layout *l, gs_choice *c)
{
    const uint64_t question = question_of(l, c, c->ring_bytes, c->staging_bytes);
    const gs_count *const known = known_count(l, c, question);
    const gs_program *p = l->program;
    struct emitter e = {.l = l, .c = c, .group = {.refused = UINT64_MAX}};
    gs_status st;

    if ((c->crammed = is_crammed(l, c)))
        return GS_ENOFIT;
    if (known != NULL && known != known_whole(l, c))
        return recall(known, l, c);
    if (known != NULL && c->counts && l->config->counted)
        return recall_whole(out, known, l, c);
    c->short_of = GS_HOST;
    if ((st = emitter_open(&e)) != GS_OK)
        goto done;
    for (uint32_t i = 0; i < p->passes; i++) {
        e.pass = &e.plan->pass[i];
        begin_pass(&e);
        for (uint32_t s = 0; s < p->pass[i].stages; s++) {
            e.stage = p->pass[i].first_stage + s;
            if ((st = check_stop(l->config)) != GS_OK || (st = emit_stage(&e)) != GS_OK)
                goto done;
        }
        e.pass->tasks = e.plan->tasks - e.pass->first_task;
        if ((st = emit_ahead(&e)) != GS_OK)
            goto done;
    }
    c->crammed = e.crammed || (c->chunks_alone && c->counts && gs_emit__table_bytes(&e) > e.tables_enough);
    if (c->crammed)
        goto done;
    finish(&e);
    note_least(c, l, gs_emit__table_bytes(&e));
    note_effort(&e, true);
    note_count(&e, question, true);
    *out = e.plan;
    e.plan = NULL;
done:
    note_effort(&e, false);
    if (c->crammed || st == GS_ENOFIT)
        note_count(&e, question, false);
    if (c->crammed)
        note_least(c, l, gs_emit__table_bytes(&e));
    emitter_close(&e);
    return c->crammed ? GS_ENOFIT : st;
}

gs_status gs_emit_count(gs_plan **out, const gs_layout *l, gs_choice *c)
{
    const bool counts = c->counts;
    c->counts = true;
    const gs_status st = gs_emit(out, l, c);
    c->counts = counts;
    return st;
}

gs_status gs_emit_tables(uint64_t *tables, const gs_layout *l, gs_choice *c)
{
    const gs_count *const known = is_crammed(l, c) ? NULL : known_whole(l, c);
    gs_plan *plan = NULL;

    if (known != NULL) {
        *tables = known->tables;
        return recall(known, l, c);
    }
    const gs_status st = gs_emit_count(&plan, l, c);
    if (st == GS_OK)
        *tables = plan->table_bytes;
    gs_plan_free(plan);
    return st;
}
