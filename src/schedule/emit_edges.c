/* emit_edges.c - the edge pass of a stage: what its chunks need, their bytes, and their tasks. */

#include <string.h>

#include "base/size.h"
#include "schedule/emit_cache.h"
#include "schedule/emitter.h"
#include "schedule/runs.h"

#define OPERANDS_AHEAD 4u /* from which chunks are looked up in time */

/* ---- what chunks need ----------------------------------------------------- */

/* Which intervals, and which rows of them, do the blocks that devices hold need? */

bool gs_emit__target_needed(const struct emitter *e, uint32_t target)
{
    return gs_layout_next_operand(e->l, e->stage, target, 0) < e->l->parts;
}

/* The sum's rows of operands, scale and types. */
static const gs_row_sum *rows_of(const struct emitter *e, uint32_t sum) { return &e->ends.rows_of[sum]; }

/* True where the operand interval's own rows of a sum's array are added to the block's sums. */
static bool adds_own(const struct emitter *e, struct block b, uint32_t operand, uint32_t sum)
{
    gs_row_run run;
    uint32_t k = 0;
    return gs_emit__stage(e)->sum[sum].self && operand >= b.first && operand < b.first + b.count &&
           gs_layout_own_run(e->l, e->stage, rows_of(e, sum)->array, operand, &k, &run);
}

/* Does any sum add own rows? */
static bool adds_any_own(const struct emitter *e, struct block b, uint32_t operand)
{
    const gs_stage *s = gs_emit__stage(e);
    for (uint32_t i = 0; i < s->sums; i++)
        if (adds_own(e, b, operand, i))
            return true;
    return false;
}

/* The block's first target interval from `target` on that has edges from the operand interval. Which one will be next
 * is looked up in time. */
static uint32_t next_chunk(const struct emitter *e, struct block b, uint32_t target, uint32_t operand)
{
    const uint32_t end = b.first + b.count, next = gs_layout_next_target(e->l, e->stage, target, end, operand),
                   then = next < end ? gs_layout_next_target(e->l, e->stage, next + 1, end, operand) : end;

    if (then < end)
        __builtin_prefetch(gs_layout_chunk(e->l, e->stage, then, operand));
    return next;
}

static bool has_edges(const struct emitter *e, struct block b, uint32_t operand)
{
    return gs_layout_next_target(e->l, e->stage, b.first, b.first + b.count, operand) < b.first + b.count;
}

/* True where this operand interval has edges into the block, or is in it and
 * its own rows are added. */
static bool operand_needed(const struct emitter *e, struct block b, uint32_t operand)
{
    if (adds_any_own(e, b, operand))
        return true;
    return has_edges(e, b, operand);
}

/* Marks in mask[], of granules of so many rows, those that the block adds to its sums as its own. */
static void mark_own(const struct emitter *e, struct block b, uint32_t operand, uint64_t *mask, uint32_t granule)
{
    const gs_stage *s = gs_emit__stage(e);
    gs_row_run run;
    for (uint32_t i = 0; i < s->sums; i++)
        for (uint32_t k = 0; adds_own(e, b, operand, i) &&
                             gs_layout_own_run(e->l, e->stage, rows_of(e, i)->array, operand, &k, &run);)
            for (uint32_t g = run.first / granule; g * (uint64_t)granule < run.first + run.rows; g++)
                mask[g / 64] |= 1ull << (g % 64);
}

/* Granules of the operand interval that the device's block needs; NULL: all. */
static const uint64_t *needed_rows(struct emitter *e, uint32_t device, uint32_t operand)
{
    const struct block b = e->seat[device].block;
    struct needed *const known = &e->ends.needed_by[device]; /* it is asked for array by array, and move by move */

    if (known->stage == e->stage && known->operand == operand && known->block.first == b.first &&
        known->block.count == b.count)
        return known->mask;
    if (!gs_runs_need(known->mask, e->l, e->stage, b.first, b.count, operand))
        return NULL;
    mark_own(e, b, operand, known->mask, e->l->config->needs.granules.rows);
    known->stage = e->stage;
    known->operand = operand;
    known->block = b;
    return known->mask;
}

const uint64_t *gs_emit__rows_needed_by(struct emitter *e, uint32_t operand, uint32_t device)
{
    const struct block b = e->seat[device].block;
    if (!gs_runs_need_rows(e->ends.rows, e->l, e->stage, b.first, b.count, operand))
        return NULL;
    mark_own(e, b, operand, e->ends.rows, e->l->config->needs.rows.rows);
    return e->ends.rows;
}

/* Devices that copy an interval take all of it. */
/* Rows of the interval up to the last that is needed: more take no room in the ring. `mask` NULL: all. */
static uint32_t needed_end(const struct emitter *e, uint32_t operand, const uint64_t *mask)
{
    const gs_granules *const g = &e->l->config->needs.granules;
    const uint32_t rows = gs_interval_rows(e->l->chunks, operand);
    uint32_t w = mask == NULL || !e->memory[GS_HOST].is.cuts_tail ? 0 : g->words;

    while (w > 0 && mask[w - 1] == 0)
        w--;
    return w == 0 ? rows : GS_MIN(((w - 1) * 64 + 64 - (uint32_t)__builtin_clzll(mask[w - 1])) * g->rows, rows);
}

/* Where an operand interval is there for its own rows alone, those of other arrays are nobody's. */
static bool is_read(const struct emitter *e, struct block b, uint32_t operand, uint32_t array)
{
    bool own = false;
    for (const gs_array_use *u = gs_layout_uses(e->l, e->stage); u < gs_layout_uses(e->l, e->stage + 1); u++)
        own = own || (u->role == GS_USE_OWN && u->array == array && adds_own(e, b, operand, u->sum));
    return own || has_edges(e, b, operand);
}

/* Who reads the array's rows; false: nobody. */
static bool list_readers(const struct emitter *e, uint32_t operand, uint32_t array, const bool *needs, bool *reads)
{
    bool any = false;
    for (uint32_t d = 0; d < e->devices; d++) {
        reads[d] = needs[d] && is_read(e, e->seat[d].block, operand, array);
        any = any || reads[d];
    }
    return any;
}

const uint64_t *gs_emit__needed_by(struct emitter *e, uint32_t operand, const bool *needs)
{
    const uint32_t words = e->l->config->needs.granules.words;
    memset(e->ends.mask_of_all, 0, words * sizeof(*e->ends.mask_of_all));
    for (uint32_t d = 0; d < e->devices; d++) {
        if (!needs[d])
            continue;
        const uint64_t *const mask = needed_rows(e, d, operand);
        if (mask == NULL)
            return NULL;
        for (uint32_t w = 0; w < words; w++)
            e->ends.mask_of_all[w] |= mask[w];
    }
    return e->ends.mask_of_all;
}

bool gs_emit__list_needs(const struct emitter *e, uint32_t operand, bool *needs)
{
    bool any = false;
    for (uint32_t d = 0; d < e->devices; d++) {
        needs[d] = e->seat[d].block.count > 0 && operand_needed(e, e->seat[d].block, operand);
        any = any || needs[d];
    }
    return any;
}

/* ---- bytes of chunks ------------------------------------------------------ */

/* Reads of edge chunks, several to a request where they are small.
 *
 * A file of edges holds the chunks of a target interval one after the other. A block of targets goes over the operand
 * intervals in order, so it takes one chunk here and one there: small requests, each of which costs the disk
 * microseconds beside its bytes. So for a few operand intervals at a time each target's chunks are read
 * together, and stay in the ring until the last of those intervals is done.
 */

/* A longer request is no faster. */
#define REQUEST_BYTES (256 * GS_KIB)
/* All targets' chunks of a group take at most this share of the host's memory. */
#define GROUP_SHARE 16u

/* One read of chunks [first, first + count) of a target, which lie side by side in the file; empty ones between them
 * have no bytes. The last one gives the ring its place back. */
static gs_status read_chunks(struct emitter *e, uint32_t target, uint32_t first, uint32_t count, struct unit *out)
{
    const gs_chunk *const c = gs_layout_chunk(e->l, e->stage, target, first), *const end = c + count - 1;
    gs_task t = {.kind = GS_TASK_MOVE, .check = GS_CHECK_CHUNK,
                 .file = GS_FILE_EDGES(e->l->program, e->l->stage_set[e->stage]), .target = target, .operand = first,
                 .source = gs_place_on_disk(c->offset), .bytes = end->offset + end->length - c->offset};
    struct unit all;

    GS_TRY(gs_emit__take(e, &e->memory[GS_HOST], t.bytes, &all));
    t.place = all.place;
    GS_TRY(gs_emit__add_read(e, &t, t.bytes, &all));
    for (uint32_t k = 0; k < count; k++) {
        if (c[k].edges == 0)
            continue;
        out[k].place = gs_place_on_host(all.place.region, all.place.offset + (c[k].offset - c->offset));
        out[k].read = all.read;
        out[k].ring = k + 1 == count ? all.ring : NOT_STAGED;
        gs_emit__came(e, &out[k], all.read, c[k].length);
        e->group.joined += k + 1 < count;
    }
    return GS_OK;
}

/* Chunks [first, first + count) of a target, in as few reads as they take. They must be released in their order. */
static gs_status load_chunks(struct emitter *e, uint32_t target, uint32_t first, uint32_t count, struct unit *out)
{
    const gs_chunk *const c = gs_layout_chunk(e->l, e->stage, target, first);
    uint32_t begin = 0, end = 0; /* to be read, with edges at either end; none where they are equal */

    for (uint32_t k = 0; k < count; k++) {
        const struct want w = {.unit = gs_emit__chunk_unit(e, target, first + k), .whole = true};
        out[k] = (struct unit){.read = GS_NONE, .ring = NOT_STAGED};
        if (c[k].edges == 0)
            continue;
        GS_TRY(gs_emit__find_on_host(e, &w, &out[k]));
        if (gs_emit__is_there(&out[k]))
            continue;
        if (end > begin && c[k].offset != c[end - 1].offset + c[end - 1].length) {
            GS_TRY(read_chunks(e, target, first + begin, end - begin, out + begin));
            end = begin;
        }
        begin = end > begin ? begin : k;
        end = k + 1;
    }
    return end > begin ? read_chunks(e, target, first + begin, end - begin, out + begin) : GS_OK;
}

uint64_t gs_emit__group_share(const gs_layout *l) { return l->config->host_memory / GROUP_SHARE; }

/* The block should take its chunks from operand intervals [operand, the result) together, *bytes in all. */
static uint32_t emit_group_end(struct emitter *e, struct block b, uint32_t operand, uint64_t *bytes)
{
    const uint64_t request = REQUEST_BYTES * b.count, share = gs_emit__group_share(e->l);
    uint32_t end = operand;

    *bytes = 0;
    if (e->c->chunks_alone)
        return operand + 1;
    while (end < e->l->parts && end - operand < GS_CHUNK_GROUP) {
        uint64_t more = 0;
        for (uint32_t t = b.first; (t = next_chunk(e, b, t, end)) < b.first + b.count; t++)
            more += gs_layout_chunk(e->l, e->stage, t, end)->length;
        if (end > operand && *bytes + more > request)
            break;
        if (end > operand && *bytes + more > share) {
            e->group.refused = GS_MIN(e->group.refused, *bytes + more);
            break;
        }
        *bytes += more;
        e->group.taken = GS_MAX(e->group.taken, end > operand ? *bytes : 0);
        end++;
    }
    return end;
}

/* ---- the pass ------------------------------------------------------------- */

/* The edge pass of one block of target intervals.
 *
 * Rows at the operand end come interval by interval and go when their chunks
 * are done; rows at the target end (edge programs only) stay for the block.
 */

gs_place gs_emit__sum_place(const struct emitter *e, uint32_t sum, int part, uint32_t local_interval)
{
    const gs_stage *s = gs_emit__stage(e);
    const uint64_t rows = e->l->span[e->stage], block = e->c->block[e->stage];
    const uint64_t resident = e->c->places.sum_offset[e->stage * GS_STAGE_SUMS + sum];
    const bool lasts = resident != UINT64_MAX;
    uint64_t at = lasts ? resident : e->l->stage[e->stage].scratch_bytes;
    for (uint32_t i = lasts ? sum : 0; i <= sum; i++)
        for (int k = 0; k < (i < sum ? GS_SUM_PLACES : part); k++)
            at += gs_align_up(4ull * gs_sum_width(s, i, k) * block * rows, 64);
    at += 4ull * gs_sum_width(s, sum, part) * rows * local_interval;
    return lasts ? gs_place_on_host(GS_REGION_RESIDENT, at) : gs_emit__in_arena(e, at);
}

static uint32_t find_or_add(uint32_t *list, uint32_t *count, uint32_t array)
{
    uint32_t i = 0;
    while (i < *count && list[i] != array)
        i++;
    if (i == *count)
        list[(*count)++] = array;
    return i;
}

void gs_emit__list_ends(struct emitter *e)
{
    for (uint32_t i = 0; i < gs_emit__stage(e)->sums; i++) {
        e->ends.rows_of[i] = (gs_row_sum){.scale = GS_NONE};
        e->ends.sums_rows[i] = gs_sum_of_rows(&e->ends.rows_of[i], gs_emit__stage(e), i);
    }
    e->ends.operands = e->ends.targets = 0;
    for (const gs_array_use *u = gs_layout_uses(e->l, e->stage); u < gs_layout_uses(e->l, e->stage + 1); u++) {
        if (gs_use_by_edges(u->role))
            find_or_add(e->ends.operand_array, &e->ends.operands, u->array);
        else if (u->role == GS_USE_TARGET)
            find_or_add(e->ends.target_array, &e->ends.targets, u->array);
    }
}

/* ---- the sums' memory, before the first chunk and after the last ---- */

static gs_status add_places(struct emitter *e, uint32_t sum, uint32_t local)
{
    gs_plan *p = e->plan;
    if (e->c->counts) { /* where they are is asked by nobody */
        p->regs += GS_SUM_PLACES;
        return GS_OK;
    }
    GS_TRY(gs_emit__grow((void **)&p->reg, &e->room.reg, p->regs + GS_SUM_PLACES, sizeof(*p->reg)));
    for (int k = 0; k < GS_SUM_PLACES; k++)
        p->reg[p->regs++] = gs_emit__sum_place(e, sum, k, local);
    return GS_OK;
}

static gs_status frame_sum(struct emitter *e, struct block b, uint32_t sum, gs_task_kind kind)
{
    uint32_t task;
    for (uint32_t t = 0; t < b.count; t++) {
        const gs_task frame = {.kind = kind, .sum = sum, .first_reg = e->plan->regs,
                               .rows = gs_layout_rows(e->l, e->stage, b.first + t)};
        if (frame.rows == 0)
            continue;
        GS_TRY(add_places(e, sum, t));
        GS_TRY(gs_emit__task(e, &frame, &task));
    }
    return GS_OK;
}

static gs_status zero_sum(struct emitter *e, struct block b, uint32_t sum)
{
    const uint64_t rows =
        (uint64_t)(b.count - 1) * e->l->span[e->stage] + gs_layout_rows(e->l, e->stage, b.first + b.count - 1);
    const gs_task zero = {.kind = GS_TASK_ZERO, .sum = sum, .place = gs_emit__sum_place(e, sum, GS_SUM_ACC, 0),
                          .bytes = rows * 4ull * gs_sum_width(gs_emit__stage(e), sum, GS_SUM_ACC)};
    uint32_t task;
    return gs_emit__task(e, &zero, &task);
}

/* Does one task on the host go over all edges of the stage, in which its sums begin and finish? */
static bool is_whole(const struct emitter *e)
{
    return e->l->parts == 1 && e->plan->devices == 0 && !e->l->config->frames_apart &&
           gs_stage_frames_sums(gs_emit__stage(e)) && has_edges(e, e->seat[0].block, 0);
}

static gs_status begin_sums(struct emitter *e, struct block b)
{
    const gs_stage *s = gs_emit__stage(e);
    for (uint32_t i = 0; i < s->sums; i++)
        if (gs_stage_sums_rows(s, i))
            GS_TRY(zero_sum(e, b, i));
        else if (!is_whole(e))
            GS_TRY(frame_sum(e, b, i, GS_TASK_BEGIN));
    return GS_OK;
}

static gs_status finish_sums(struct emitter *e, struct block b)
{
    const gs_stage *s = gs_emit__stage(e);
    for (uint32_t i = 0; i < s->sums; i++)
        if (!gs_stage_sums_rows(s, i) && !is_whole(e))
            GS_TRY(frame_sum(e, b, i, GS_TASK_FINISH));
    return GS_OK;
}

/* ---- rows at the target end ---- */

/* They stay for the whole block. */
static gs_status load_targets(struct emitter *e, struct block b)
{
    struct memory *const m = gs_emit__memory_here(e);
    uint64_t bytes = 0;
    for (uint32_t a = 0; a < e->ends.targets; a++)
        for (uint32_t t = 0; t < b.count; t++)
            bytes += gs_emit__ring_bytes(e, m, e->ends.target_array[a], b.first + t,
                                         gs_layout_rows(e->l, e->stage, b.first + t));
    const uint64_t head = gs_ring_lasting_begin(&m->ring, bytes);
    for (uint32_t a = 0; a < e->ends.targets; a++)
        for (uint32_t t = 0; t < b.count; t++) {
            struct unit *u = &gs_emit__here(e)->target[a * e->l->parts + t];
            const uint32_t rows = gs_layout_rows(e->l, e->stage, b.first + t), array = e->ends.target_array[a];
            *u = (struct unit){.read = GS_NONE, .ring = NOT_STAGED};
            if (gs_emit__target_needed(e, b.first + t))
                GS_TRY(gs_emit__rows_here(e, array, b.first + t, 0, rows, false, u));
        }
    gs_ring_lasting_end(&m->ring, head);
    return GS_OK;
}

static void release_targets(struct emitter *e, struct block b, uint32_t last)
{
    for (uint32_t a = 0; a < e->ends.targets; a++)
        for (uint32_t t = 0; t < b.count; t++)
            gs_emit__release(e, &gs_emit__here(e)->target[a * e->l->parts + t], last);
}

/* ---- chunks ---- */

static const struct unit *operand_of(struct emitter *e, uint32_t array)
{
    return &gs_emit__here(e)->operand[find_or_add(e->ends.operand_array, &e->ends.operands, array)];
}

static const struct unit *target_of(struct emitter *e, uint32_t array, uint32_t local)
{
    const uint32_t index = find_or_add(e->ends.target_array, &e->ends.targets, array);
    return &gs_emit__here(e)->target[index * e->l->parts + local];
}

/* The numbers from row `first` on that the sum's operand rows are multiplied by, where there are some. */
static gs_status add_scale_place(struct emitter *e, gs_task *t, uint32_t sum, uint32_t first)
{
    const uint32_t scale = rows_of(e, sum)->scale;
    gs_plan *p = e->plan;

    t->first_reg = 0;
    if (scale == GS_NONE)
        return GS_OK;
    const struct unit *u = operand_of(e, scale);
    t->first_reg = p->regs;
    GS_TRY(gs_emit__grow((void **)&p->reg, &e->room.reg, p->regs + 1, sizeof(*p->reg)));
    p->reg[p->regs] = u->place;
    p->reg[p->regs++].offset += first * e->l->row_bytes[scale];
    gs_emit__wait(e, u->read);
    return GS_OK;
}

/* `t` has what all tasks of the chunk have; so in the next. */
static gs_status add_rows_task(struct emitter *e, gs_task *t, uint32_t sum, uint32_t local, const struct unit *chunk,
                               uint32_t *last)
{
    const struct unit *rows = operand_of(e, rows_of(e, sum)->array);
    t->sum = sum;
    if (!e->c->counts) { /* where they are is asked by nobody then */
        t->place = gs_emit__sum_place(e, sum, GS_SUM_ACC, local);
        t->source = rows->place;
    }
    gs_emit__wait(e, chunk->read);
    gs_emit__wait(e, rows->read);
    const gs_status st = add_scale_place(e, t, sum, 0);
    return st == GS_OK ? gs_emit__task(e, t, last) : st;
}

/* A place an edge register, then the places of each sum. */
static gs_status add_program_task(struct emitter *e, gs_task *t, uint32_t local, const struct unit *chunk,
                                  uint32_t *last)
{
    const gs_stage *s = gs_emit__stage(e);
    gs_plan *p = e->plan;

    t->sum = GS_NONE;
    t->whole = is_whole(e);
    t->place = t->source = (gs_place){0};
    t->first_reg = p->regs;
    GS_TRY(gs_emit__grow((void **)&p->reg, &e->room.reg, p->regs + s->edge_regs, sizeof(*p->reg)));
    gs_emit__wait(e, chunk->read);
    for (uint32_t r = 0; r < s->edge_regs; r++) {
        const gs_edge_reg *reg = &s->edge_reg[r];
        const struct unit *u = NULL;
        if (reg->kind == GS_EDGE_OPERAND)
            u = operand_of(e, reg->array);
        else if (reg->kind == GS_EDGE_TARGET)
            u = target_of(e, reg->array, local);
        p->reg[p->regs++] = u ? u->place : (gs_place){GS_REGION_NONE, 0, 0};
        gs_emit__wait(e, u ? u->read : GS_NONE);
    }
    for (uint32_t i = 0; i < s->sums; i++)
        GS_TRY(add_places(e, i, local));
    return gs_emit__task(e, t, last);
}

static bool groups_chunks(const struct emitter *e) { return e->memory[e->seat[0].memory].is.groups_chunks; }

/* Chunks of one operand interval come one by one, each as it is wanted. */
static bool is_alone(const struct emitter *e) { return e->ends.group_end - e->ends.group_first == 1; }

static gs_status sum_chunk(struct emitter *e, struct block b, uint32_t local, uint32_t operand, uint32_t *last)
{
    const gs_stage *s = gs_emit__stage(e);
    const uint32_t target = b.first + local;
    const gs_chunk *c = gs_layout_chunk(e->l, e->stage, target, operand);
    struct unit *const chunk = &e->ends.chunk[local * GS_CHUNK_GROUP + operand - e->ends.group_first];

    gs_task t = {.kind = GS_TASK_EDGES, .file = GS_FILE_EDGES(e->l->program, e->l->stage_set[e->stage]),
                 .target = target, .operand = operand, .rows = gs_layout_rows(e->l, e->stage, target),
                 .chunk_bytes = c->length};
    if (is_alone(e))
        GS_TRY(gs_emit__chunk_here(e, target, operand, chunk));
    t.chunk = chunk->place;
    for (uint32_t i = 0; i < s->sums; i++)
        if (e->ends.sums_rows[i])
            GS_TRY(add_rows_task(e, &t, i, local, chunk, last));
    if (gs_stage_has_edge_program(s))
        GS_TRY(add_program_task(e, &t, local, chunk, last));
    gs_emit__release(e, chunk, *last);
    e->stage_edges += c->edges;
    e->pass->edge_bytes += c->edges * e->l->stage[e->stage].gathered_bytes;
    return GS_OK;
}

static gs_status add_own_rows(struct emitter *e, struct block b, uint32_t operand, uint32_t *last)
{
    const gs_stage *s = gs_emit__stage(e);
    for (uint32_t i = 0; i < s->sums; i++) {
        gs_row_run run;
        if (!adds_own(e, b, operand, i))
            continue;
        const uint32_t array = rows_of(e, i)->array;
        const struct unit *rows = operand_of(e, array);
        const uint64_t width = gs_sum_width(s, i, GS_SUM_ACC);
        for (uint32_t k = 0; gs_layout_own_run(e->l, e->stage, array, operand, &k, &run);) {
            gs_task t = {.kind = GS_TASK_SELF, .sum = i, .operand = operand, .rows = run.rows,
                         .first_row = gs_interval_first(e->l->chunks, operand) + run.first, .source = rows->place,
                         .place = gs_emit__sum_place(e, i, GS_SUM_ACC, operand - b.first)};
            t.source.offset += run.first * e->l->row_bytes[array];
            t.place.offset += run.first * width * sizeof(float);
            gs_emit__wait(e, rows->read);
            GS_TRY(add_scale_place(e, &t, i, run.first));
            GS_TRY(gs_emit__task(e, &t, last));
        }
    }
    return GS_OK;
}

/* Where chunks are read for several operand intervals: those from this one on. */
static gs_status load_group(struct emitter *e, uint32_t operand)
{
    const struct block b = e->seat[0].block;
    uint64_t bytes = 0;

    e->ends.group_first = operand;
    e->ends.group_end = groups_chunks(e) ? emit_group_end(e, b, operand, &bytes) : operand + 1;
    if (is_alone(e))
        return GS_OK;
    gs_ring_group(&e->memory[GS_HOST].ring, bytes);
    for (uint32_t t = 0; t < b.count; t++)
        GS_TRY(load_chunks(e, b.first + t, operand, e->ends.group_end - operand, &e->ends.chunk[t * GS_CHUNK_GROUP]));
    return GS_OK;
}

/* Most bytes of a chunk from this operand interval that comes alone to the host: rows in the middle of the ring, while
 * they are used there, must not leave too little for it at either end. */
static uint64_t largest_chunk(const struct emitter *e, uint32_t operand)
{
    uint64_t most = 0;
    if (!(groups_chunks(e) && is_alone(e)) && !(e->l->memory.own > 0 && e->l->memory.any_in_place))
        return 0;
    for (uint32_t d = 0; d < e->devices; d++) {
        const struct block b = e->seat[d].block;
        for (uint32_t t = b.first; (t = next_chunk(e, b, t, operand)) < b.first + b.count; t++)
            most = GS_MAX(most, gs_layout_chunk(e->l, e->stage, t, operand)->length);
    }
    return most;
}

gs_status gs_emit__load_operands(struct emitter *e, uint32_t operand, const bool *needs, uint64_t beside)
{
    struct memory *const host = &e->memory[GS_HOST];
    const uint32_t count = needed_end(e, operand, gs_emit__needed_by(e, operand, needs));
    bool reads[GS_PLAN_DEVICES];
    uint64_t together = largest_chunk(e, operand) + beside;

    for (uint32_t a = 0; a < e->ends.operands; a++)
        together += list_readers(e, operand, e->ends.operand_array[a], needs, reads)
                        ? gs_emit__ring_bytes(e, host, e->ends.operand_array[a], operand, count)
                        : 0;
    gs_ring_group(&host->ring, together);
    gs_emit__drop_runs(e);
    for (uint32_t a = 0; a < e->ends.operands; a++) {
        struct unit *at[GS_PLAN_DEVICES];
        for (uint32_t d = 0; d < e->devices; d++)
            e->seat[d].operand[a] = (struct unit){.read = GS_NONE, .ring = NOT_STAGED};
        if (!list_readers(e, operand, e->ends.operand_array[a], needs, reads))
            continue;
        for (uint32_t d = 0; d < e->devices; d++)
            at[d] = reads[d] ? &e->seat[d].operand[a] : NULL;
        struct want w = {.unit = gs_emit__array_unit(e, e->ends.operand_array[a], operand), .rows = count,
                         .by_edges = true, .mask = gs_emit__needed_by(e, operand, reads)};
        w.whole = w.mask == NULL;
        GS_TRY(gs_emit__deliver(e, &w, at));
    }
    return GS_OK;
}

/* The first chunk of each block from an operand interval is looked up before its turn: the tables of a fine grid are
 * many times what a processor keeps near, and a block goes over few chunks of each of their columns. */
static void look_ahead(const struct emitter *e, uint32_t operand)
{
    for (uint32_t d = 0; operand < e->l->parts && d < e->devices; d++) {
        const struct block b = e->seat[d].block;
        const uint32_t first = gs_layout_next_target(e->l, e->stage, b.first, b.first + b.count, operand);
        if (first < b.first + b.count)
            __builtin_prefetch(gs_layout_chunk(e->l, e->stage, first, operand));
    }
}

static gs_status sum_operand(struct emitter *e, uint32_t operand)
{
    bool needs[GS_PLAN_DEVICES];

    look_ahead(e, operand + OPERANDS_AHEAD);
    if (!gs_emit__list_needs(e, operand, needs))
        return GS_OK;
    if (operand < e->ends.group_first || operand >= e->ends.group_end)
        GS_TRY(load_group(e, operand));
    GS_TRY(gs_emit__load_operands(e, operand, needs, 0));
    for (uint32_t d = 0; d < e->devices; d++) {
        struct seat *const seat = &e->seat[d];
        if (!needs[d])
            continue;
        e->device = d;
        GS_TRY(add_own_rows(e, seat->block, operand, &seat->last));
        const struct block b = seat->block;
        for (uint32_t t = b.first; (t = next_chunk(e, b, t, operand)) < b.first + b.count; t++)
            GS_TRY(sum_chunk(e, b, t - b.first, operand, &seat->last));
        for (uint32_t a = 0; a < e->ends.operands; a++)
            gs_emit__release(e, &seat->operand[a], seat->last);
    }
    return GS_OK;
}

/* In store order. Of ranks one interval of each in turn: a rank computes on its own while others' are under way to it,
 * and none gets all of those before it comes to its own. But a sequence has an order. */
static gs_status sum_operands(struct emitter *e)
{
    const gs_schedule_config *const cfg = e->l->config;
    const gs_stage *const s = gs_emit__stage(e);
    const uint32_t all[] = {0, e->l->parts};
    const bool in_turn = cfg->owners != NULL && cfg->topology->across.network && !groups_chunks(e) &&
                         !(s->sums > 0 && gs_sum_is_sequence(&s->sum[0]));
    const uint32_t *const first = in_turn ? cfg->owners : all;

    for (uint32_t k = 0; k < e->l->parts; k++)
        for (uint32_t r = 0; r < (in_turn ? e->devices : 1); r++)
            if (first[r] + k < first[r + 1])
                GS_TRY(sum_operand(e, first[r] + k));
    return GS_OK;
}

gs_status gs_emit__edge_pass(struct emitter *e)
{
    gs_emit__list_ends(e);
    for (e->device = 0; e->device < e->devices; e->device++) {
        struct seat *const seat = gs_emit__here(e);
        seat->last = GS_NONE;
        if (seat->block.count == 0)
            continue;
        GS_TRY(begin_sums(e, seat->block));
        GS_TRY(load_targets(e, seat->block));
    }
    e->ends.group_end = 0;
    GS_TRY(sum_operands(e));
    for (e->device = 0; e->device < e->devices; e->device++) {
        struct seat *const seat = gs_emit__here(e);
        if (seat->block.count == 0)
            continue;
        release_targets(e, seat->block, seat->last);
        GS_TRY(finish_sums(e, seat->block));
    }
    e->device = 0;
    return GS_OK;
}
