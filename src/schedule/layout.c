/* layout.c - what a row, a tile and an interval of everything weighs.
 *
 * Registers that a tile needs for itself are laid out in the arena. Two of
 * them share memory only when they have the same width: a device may run a block
 * of rows through several instructions before it takes the next block, and
 * with equal widths a row of one overlays exactly that row of the other.
 */
#include "schedule/layout.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/choice.h"

/* A tile's registers should stay in the shared cache between instructions. */
#define TILE_BYTES (4 * GS_MIB)
#define TILE_ROWS_MOST 16384u
/* Bytes of a tile's own registers where it loads and stores rows where they are, for fewer launches. */
#define UNSTAGED_BYTES (8 * GS_MIB)
#define LAUNCH_ROWS_MOST 65536u
/* The same on a device with memory of its own, where a launch of few rows takes as long as asking for it (some 3 us),
 * and a product of few rows keeps few of its processors busy. Then the part of its memory that a tile may take. */
#define OWN_BYTES_MOST (256 * GS_MIB)
#define OWN_TILE_SHARE 8

#define USUAL_EPOCHS 100.0

static bool reads_register(const gs_operand *o, uint32_t reg)
{
    return o->kind == GS_FROM_REG && o->index == reg;
}

/* Index of the last instruction that touches `reg`. */
static uint32_t last_use(const gs_stage *s, uint32_t reg)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < s->instrs; i++) {
        const gs_instr *in = &s->instr[i];
        const bool writes = !gs_op_into_param(in->op) && in->dst == reg;
        if (writes || reads_register(&in->a, reg) || reads_register(&in->b, reg) || reads_register(&in->c, reg))
            last = i;
    }
    return last;
}

/* Memory that a register of this width used and no longer needs, or GS_NONE. */
static uint32_t reusable(const gs_stage *s, const uint32_t *owner_until, const uint64_t *offset, uint32_t reg,
                         uint32_t now)
{
    for (uint32_t r = 0; r < s->regs; r++)
        if (r != reg && offset[r] != UINT64_MAX && s->reg[r].width == s->reg[reg].width && owner_until[r] < now)
            return r;
    return GS_NONE;
}

static bool in_scratch(const gs_reg *r)
{
    return r->kind == GS_REG_TEMP && r->array == GS_NONE;
}

/* Memory of the registers that a tile needs for itself: the offsets, and all of it. `until`: [regs]. */
static void place_registers(const gs_stage *s, uint32_t rows, uint32_t *until, gs_stage_layout *out)
{
    out->tile_rows = rows;
    out->scratch_bytes = 0;
    memset(out->reg_offset, 0xff, s->regs * sizeof(*out->reg_offset));
    for (uint32_t i = 0; i < s->instrs; i++) {
        const gs_instr *in = &s->instr[i];
        if (gs_op_into_param(in->op) || in->dst == GS_NONE || !in_scratch(&s->reg[in->dst]))
            continue;
        const uint32_t old = reusable(s, until, out->reg_offset, in->dst, i);
        if (old != GS_NONE) {
            out->reg_offset[in->dst] = out->reg_offset[old];
            until[old] = UINT32_MAX; /* its memory has one next owner */
        } else {
            out->reg_offset[in->dst] = out->scratch_bytes;
            out->scratch_bytes += gs_align_up(4ull * s->reg[in->dst].width * rows, 64);
        }
        until[in->dst] = last_use(s, in->dst);
    }
}

/* A launch of few rows takes as long as its threads need to start (some 40 us): where a last tile would be short, the
 * others take its rows, at most an eighth more than theirs. */
static uint64_t without_a_rest(uint64_t interval, uint64_t rows)
{
    const uint64_t tiles = GS_MAX(interval / rows, 1u), even = gs_align_up(gs_div_up(interval, tiles), GS_TILE_ROWS);
    return even <= rows + rows / 8 ? even : rows;
}

/* Bytes of a tile's registers: staged ones stay in a cache; a device with memory of its own has launches to save, and
 * takes a part of the smaller of both memories, through which the tile may have to go. */
static uint64_t tile_bytes(const gs_layout *l)
{
    const gs_schedule_config *const c = l->config;
    if (!l->staged)
        return c->unstaged_bytes != 0 ? c->unstaged_bytes : UNSTAGED_BYTES;
    if (!l->long_tiles)
        return TILE_BYTES;
    return GS_MIN(GS_MAX(GS_MIN(c->device_memory, c->host_memory) / OWN_TILE_SHARE, TILE_BYTES), OWN_BYTES_MOST);
}

/* `out` is laid out for GS_TILE_ROWS rows. */
static uint32_t tile_rows(const gs_layout *l, const gs_stage *s, const gs_stage_layout *out)
{
    uint64_t row = 0;
    for (uint32_t r = 0; r < s->regs && l->staged; r++)
        row += s->reg[r].width * (uint64_t)gs_dtype_bytes(s->reg[r].dtype);
    if (!l->staged)
        row = out->scratch_bytes / GS_TILE_ROWS;
    uint64_t rows = gs_align_down(tile_bytes(l) / GS_MAX(row, 1), GS_TILE_ROWS);
    const uint32_t most = l->staged && tile_bytes(l) == TILE_BYTES ? TILE_ROWS_MOST : LAUNCH_ROWS_MOST;
    rows = GS_MIN(GS_MAX(rows, GS_TILE_ROWS), most);
    return (uint32_t)GS_MIN(l->staged ? rows : without_a_rest(l->chunks->interval_rows, rows),
                            l->chunks->interval_rows);
}

static gs_status layout_stage(gs_layout *l, const gs_stage *s, gs_stage_layout *out)
{
    GS_FREED uint32_t *const until = gs_malloc_array(s->regs + 1, sizeof(*until));

    out->reg_offset = gs_arena_take(&l->arrays, s->regs + 1, sizeof(*out->reg_offset));
    if (until == NULL || out->reg_offset == NULL)
        return GS_ENOMEM;
    place_registers(s, GS_TILE_ROWS, until, out);
    place_registers(s, tile_rows(l, s, out), until, out);
    out->scratch_bytes = gs_align_up(out->scratch_bytes, GS_BLOCK_BYTES);
    return GS_OK;
}

static uint64_t gathered_bytes(const gs_layout *l, const gs_stage *s)
{
    uint64_t bytes = 0;
    for (gs_array_use u = {0}; gs_stage_next_use(s, &u);) {
        gs_row_sum rows;
        const bool by_type = u.sum != GS_NONE && gs_sum_of_rows(&rows, s, u.sum) && rows.types != GS_TYPES_NONE;
        if (u.role == GS_USE_OPERAND && u.sum == GS_NONE)
            bytes += (uint64_t)s->edge_reg[u.reg].width * gs_dtype_bytes(l->program->array[u.array].dtype);
        else if (gs_use_by_edges(u.role))
            bytes += by_type ? 4ull * gs_sum_width(s, u.sum, GS_SUM_ACC) : l->row_bytes[u.array];
    }
    return bytes;
}

static gs_status list_uses(gs_layout *l)
{
    const gs_program *const p = l->program;
    uint64_t uses = 0;

    for (uint32_t s = 0; s < p->stages; s++)
        for (gs_array_use u = {0}; gs_stage_next_use(&p->stage[s], &u);)
            uses++;
    l->use = gs_arena_take(&l->arrays, uses + 1, sizeof(*l->use));
    l->first_use = gs_arena_take(&l->arrays, (size_t)p->stages + 1, sizeof(*l->first_use));
    if (l->arrays.is_short)
        return GS_ENOMEM;
    l->first_use[0] = 0;
    for (uint32_t s = 0; s < p->stages; s++) {
        l->first_use[s + 1] = l->first_use[s];
        for (gs_array_use u = {0}; gs_stage_next_use(&p->stage[s], &u);)
            l->use[l->first_use[s + 1]++] = u;
    }
    return GS_OK;
}

static const gs_row_runs *runs_of(const gs_layout *l, uint32_t stage)
{
    const gs_row_runs *r = l->config->needs.stage_rows ? &l->config->needs.stage_rows[stage] : NULL;
    return r != NULL && r->first != NULL ? r : NULL;
}

bool gs_layout_prunes(const gs_layout *l, uint32_t stage) { return runs_of(l, stage) != NULL; }

uint32_t gs_layout_runs(const gs_layout *l, uint32_t stage, uint32_t interval)
{
    const gs_row_runs *r = runs_of(l, stage);
    return r == NULL ? 1 : r->first[interval + 1] - r->first[interval];
}

gs_row_run gs_layout_run(const gs_layout *l, uint32_t stage, uint32_t interval, uint32_t k)
{
    const gs_row_runs *r = runs_of(l, stage);
    return r == NULL ? (gs_row_run){0, gs_interval_rows(l->chunks, interval)} : r->run[r->first[interval] + k];
}

/* Rows of an array that are stored; NULL for all rows. */
static const gs_row_runs *held_runs(const gs_layout *l, uint32_t array)
{
    const gs_row_runs *const r = l->config->needs.array_rows ? &l->config->needs.array_rows[array] : NULL;
    const uint32_t by = l->stored_by[array];
    return r != NULL && r->first != NULL ? r : by != GS_NONE ? runs_of(l, by) : NULL;
}

bool gs_layout_holds(const gs_layout *l, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows)
{
    const gs_row_runs *const r = held_runs(l, array);
    for (uint32_t k = r ? r->first[interval] : 0; r != NULL && k < r->first[interval + 1]; k++)
        if (r->run[k].first < from + rows && from < r->run[k].first + r->run[k].rows)
            return true;
    return r == NULL;
}

bool gs_layout_own_run(const gs_layout *l, uint32_t stage, uint32_t array, uint32_t interval, uint32_t *k,
                       gs_row_run *out)
{
    const gs_row_runs *const held = held_runs(l, array);
    const uint32_t runs = gs_layout_runs(l, stage, interval),
                   others = held == NULL ? 1 : held->first[interval + 1] - held->first[interval];

    for (; *k < runs * others; (*k)++) {
        const gs_row_run a = gs_layout_run(l, stage, interval, *k / others);
        const gs_row_run b = held == NULL ? a : held->run[held->first[interval] + *k % others];
        const uint32_t first = GS_MAX(a.first, b.first), end = GS_MIN(a.first + a.rows, b.first + b.rows);
        if (first < end) {
            *out = (gs_row_run){first, end - first};
            (*k)++;
            return true;
        }
    }
    return false;
}

uint32_t gs_layout_rows(const gs_layout *l, uint32_t stage, uint32_t interval)
{
    const uint32_t runs = gs_layout_runs(l, stage, interval);
    if (runs == 0)
        return 0;
    const gs_row_run last = gs_layout_run(l, stage, interval, runs - 1);
    return last.first + last.rows;
}

/* Sums of an interval take as many rows as any interval needs, so that places are equal. */
static void measure_spans(gs_layout *l)
{
    for (uint32_t s = 0; s < l->program->stages; s++)
        for (uint32_t i = 0; i < l->parts; i++)
            l->span[s] = GS_MAX(l->span[s], gs_layout_rows(l, s, i));
}

/* Edge sets as the caller has them, or the store's own. */
static void list_sets(gs_layout *l)
{
    const gs_needs *const needs = &l->config->needs;
    l->sets = needs->sets ? needs->sets : 2;
    for (uint32_t k = 0; k < l->sets; k++)
        l->set[k] = needs->sets ? needs->set[k] : (gs_edge_set){.chunk = l->chunks->chunk[k]};
    for (uint32_t s = 0; s < l->program->stages; s++) {
        const uint32_t d = l->chunks->shared ? GS_BY_DEST : l->program->stage[s].direction;
        l->stage_set[s] = needs->stage_set ? needs->stage_set[s] : d;
    }
}

static void measure_sets(gs_layout *l)
{
    for (uint32_t k = 0; k < l->sets; k++) {
        const bool shared = l->chunks->shared && k == GS_BY_SOURCE;
        for (uint64_t i = (uint64_t)l->parts * l->parts; !shared && i-- > 0 && l->set_bytes[k] == 0;) {
            const gs_chunk *const c = &l->set[k].chunk[i]; /* in file order: the last one ends it */
            l->set_bytes[k] = c->length ? c->offset + c->length : 0;
        }
    }
}

/* Bytes of a plan's tables for a chunk that a stage goes over: each of its sums of rows, and an edge program, is a task
 * of its own, whatever is resident. */
static uint64_t chunk_tables(const gs_layout *l, const gs_stage *s)
{
    const uint64_t task = sizeof(gs_task) + l->config->task_bytes;
    uint64_t bytes = 0;

    if (gs_stage_is_back(s))
        return task;
    for (uint32_t i = 0; i < s->sums; i++)
        bytes += gs_stage_sums_rows(s, i) ? task : 0;
    if (gs_stage_has_edge_program(s))
        bytes += task + (s->edge_regs + s->sums * (uint64_t)GS_SUM_PLACES) * sizeof(gs_place);
    return bytes;
}

/* Bytes for such a chunk besides where nothing stays anywhere: what executor and emitter note of each task, that it
 * waits for the chunk, and, of one that comes alone, the moves that bring it. */
static uint64_t bare_tables(const gs_layout *l, const gs_stage *s, bool alone)
{
    const uint64_t notes = 2 * sizeof(uint32_t) + 1, wait = sizeof(uint32_t);
    const uint64_t move = sizeof(gs_task) + l->config->task_bytes + notes;
    const bool copied = l->memory.own > 0 && !l->memory.apart && !l->memory.any_in_place && !l->config->loads;
    uint64_t tasks = gs_stage_has_edge_program(s);

    if (s->sums == 0 || gs_stage_is_back(s))
        return 0;
    for (uint32_t i = 0; i < s->sums; i++)
        tasks += gs_stage_sums_rows(s, i);
    return tasks * (notes + wait) + (alone ? move + copied * (move + wait) : 0);
}

/* Does a stage go over its edges? */
static bool is_used(const gs_layout *l, uint32_t set)
{
    for (uint32_t s = 0; s < l->program->stages; s++)
        if (l->program->stage[s].sums > 0 && l->stage_set[s] == set)
            return true;
    return false;
}

/* Which chunks of a set have edges. *chunks: [parts] how many of each target interval's. Of a set that is not used,
 * whose table is long, only its bytes are asked: chunks lie side by side. */
static void mark_filled(gs_layout *l, uint32_t set, uint32_t *chunks)
{
    const gs_chunk *c = l->set[set].chunk;

    if (c != NULL && !is_used(l, set)) {
        l->chunk_bytes += l->set_bytes[l->chunks->shared && set == GS_BY_SOURCE ? GS_BY_DEST : set];
        return;
    }
    for (uint32_t t = 0; c != NULL && t < l->parts; t++)
        for (uint32_t o = 0; o < l->parts; o++, c++) {
            l->chunk_bytes += c->length;
            chunks[t] += c->edges > 0;
            if (c->edges == 0)
                continue;
            l->filled[set][(uint64_t)o * l->filled_words + t / 64] |= 1ull << (t % 64);
            l->named[set][(uint64_t)t * l->filled_words + o / 64] |= 1ull << (o % 64);
        }
}

static gs_status measure_tables(gs_layout *l)
{
    uint32_t *const chunks = gs_calloc((uint64_t)l->sets * l->parts + 1, sizeof(*chunks)); /* of a target interval */

    l->filled_words = (uint32_t)gs_div_up(l->parts, 64);
    for (uint32_t k = 0; k < l->sets; k++) {
        l->filled[k] = gs_arena_take(&l->arrays, (uint64_t)l->parts * l->filled_words, sizeof(*l->filled[k]));
        l->named[k] = gs_arena_take(&l->arrays, (uint64_t)l->parts * l->filled_words, sizeof(*l->named[k]));
    }
    if (chunks == NULL || l->arrays.is_short) {
        gs_free(chunks);
        return GS_ENOMEM;
    }
    for (uint32_t k = 0; k < l->sets; k++)
        mark_filled(l, k, chunks + (uint64_t)k * l->parts);
    for (uint32_t s = 0; s < l->program->stages; s++) {
        const gs_stage *const stage = &l->program->stage[s];
        uint64_t filled = 0;
        for (uint32_t t = 0; t < l->parts; t++)
            filled += gs_layout_rows(l, s, t) > 0 ? chunks[l->stage_set[s] * l->parts + t] : 0;
        l->least_tables += filled * chunk_tables(l, stage);
        for (int alone = 0; alone < 2; alone++)
            l->bare_tables[alone] += filled * (chunk_tables(l, stage) +
                                               bare_tables(l, stage, alone > 0 || !l->memory.groups_chunks));
    }
    gs_free(chunks);
    return GS_OK;
}

static void find_sparse(gs_layout *l)
{
    for (uint32_t a = 0; a < l->program->arrays; a++) {
        const uint32_t stage = l->stored_by[a];
        uint64_t rows = 0;
        for (uint32_t i = 0; stage != GS_NONE && i < l->parts; i++)
            for (uint32_t k = 0; k < gs_layout_runs(l, stage, i); k++)
                rows += gs_layout_run(l, stage, i, k).rows;
        l->sparse[a] = stage != GS_NONE && rows < l->chunks->vertices / 2;
    }
}

static void find_stores(gs_layout *l)
{
    memset(l->stored_by, 0xff, l->program->arrays * sizeof(*l->stored_by)); /* GS_NONE */
    for (uint32_t s = l->program->stages; s-- > 0;)
        for (uint32_t r = 0; r < l->program->stage[s].regs; r++) {
            const gs_reg *const reg = &l->program->stage[s].reg[r];
            if (reg->kind == GS_REG_TEMP && reg->array != GS_NONE)
                l->stored_by[reg->array] = s;
        }
}

uint32_t gs_layout_made_by(const gs_layout *l, uint32_t array)
{
    for (uint32_t s = 0; l->stored_by[array] == GS_NONE && l->spill_interval[array] > 0 && s < l->program->stages; s++)
        if (gs_stage_is_back(&l->program->stage[s]) && l->program->stage[s].sum[0].array == array)
            return s;
    return l->stored_by[array];
}

double gs_pass_weight(const gs_layout *l, uint32_t pass)
{
    const char *const name = l->program->pass[pass].name;
    const double once = 1.0 / (l->config->epochs > 0 ? l->config->epochs : USUAL_EPOCHS);
    if (strcmp(name, "predict") == 0 || strcmp(name, "setup") == 0)
        return once;
    return strcmp(name, "eval") == 0 && l->config->evaluations > 0 ? l->config->evaluations * once : 1.0;
}

static bool has_back(const gs_program *p)
{
    for (uint32_t s = 0; s < p->stages; s++)
        if (gs_stage_is_back(&p->stage[s]))
            return true;
    return false;
}

static void describe_memories(gs_layout_memories *m, const gs_schedule_config *config)
{
    const gs_topology *const t = config->topology;
    /* the derivative of a sequence adds to rows that go from device to device */
    const bool travels = !t->alone && has_back(config->program);

    m->devices = t->devices;
    m->own = t->alone ? 0 : t->devices;
    m->groups_chunks = t->alone;
    for (uint32_t d = 0; d < m->devices; d++) {
        m->on_host[d] = t->on_host[d];
        m->on_hosts += m->on_host[d];
        m->in_place[d] = t->in_place[d] && !travels;
        m->any_in_place = m->any_in_place || m->in_place[d];
    }
    m->apart = t->across.network;
    m->on_hosts = m->apart ? 1 : m->on_hosts;
    m->arenas = GS_MIN(m->own, m->on_hosts);
}

gs_tiles gs_layout_tiles(const gs_topology *t)
{
    bool own = false;
    for (uint32_t d = 0; d < t->devices; d++)
        own = own || !t->on_host[d];
    return t->alone ? GS_TILES_IN_PLACE : own ? GS_TILES_LONG : GS_TILES_SHORT;
}

gs_status gs_layout_make(gs_layout *out, const gs_schedule_config *config, gs_tiles tiles)
{
    const gs_program *p = config->program;
    gs_layout l = {
        .config = config, .staged = tiles != GS_TILES_IN_PLACE, .long_tiles = tiles == GS_TILES_LONG, .program = p,
        .chunks = config->chunks, .parts = config->chunks->parts};
    gs_status st = GS_ENOMEM;

    describe_memories(&l.memory, config);
    l.row_bytes = gs_arena_take(&l.arrays, p->arrays + 1, sizeof(*l.row_bytes));
    l.stored_by = gs_arena_take(&l.arrays, p->arrays + 1, sizeof(*l.stored_by));
    l.spill_interval = gs_arena_take(&l.arrays, p->arrays + 1, sizeof(*l.spill_interval));
    l.stage = gs_arena_take(&l.arrays, p->stages + 1, sizeof(*l.stage));
    l.stage_set = gs_arena_take(&l.arrays, p->stages + 1, sizeof(*l.stage_set));
    l.span = gs_arena_take(&l.arrays, p->stages + 1, sizeof(*l.span));
    l.sparse = gs_arena_take(&l.arrays, p->arrays + 1, sizeof(*l.sparse));
    if (l.arrays.is_short || list_uses(&l) != GS_OK)
        goto done;
    list_sets(&l);
    measure_sets(&l);
    find_stores(&l);
    find_sparse(&l);
    measure_spans(&l);
    if (measure_tables(&l) != GS_OK)
        goto done;
    for (uint32_t a = 0; a < p->arrays; a++) {
        l.row_bytes[a] = p->array[a].width * (uint64_t)gs_dtype_bytes(p->array[a].dtype);
        if (p->array[a].store_id < 0)
            l.spill_interval[a] = gs_align_up(l.row_bytes[a] * config->chunks->interval_rows, GS_BLOCK_BYTES);
    }
    for (uint32_t s = 0; s < p->stages; s++) {
        if ((st = layout_stage(&l, &p->stage[s], &l.stage[s])) != GS_OK)
            goto done;
        l.stage[s].gathered_bytes = gathered_bytes(&l, &p->stage[s]);
    }
    *out = l;
    st = GS_OK;
done:
    if (st != GS_OK) {
        gs_layout_drop(&l);
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    }
    return st;
}

void gs_layout_drop(gs_layout *l)
{
    gs_arena_free(&l->arrays);
}
