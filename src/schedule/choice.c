/* choice.c - block sizes and what stays in host memory, for given amounts of memory.
 *
 * What is kept here is kept for good: a first part of a file, files ranked by the bytes that an
 * epoch saves for each byte held. cache.c decides about the rest where that is better.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/schedule_internal.h"

/* Runs of a pass for each epoch, where it happens once and epochs are many. */
#define ONCE_A_RUN 0.01

gs_status gs_choice_make(gs_choice *out, const gs_layout *l)
{
    const uint64_t files = l->program->arrays + l->sets, sums = (uint64_t)l->program->stages * GS_STAGE_SUMS;
    gs_choice c = {0};
    c.block = gs_calloc(l->program->stages + 1, sizeof(*c.block));
    c.group = gs_calloc(l->program->stages + 1, sizeof(*c.group));
    c.kept_intervals = gs_calloc(l->program->arrays + 1, sizeof(*c.kept_intervals));
    c.kept_edges = gs_calloc(l->sets, sizeof(*c.kept_edges));
    c.operand_uses = gs_calloc(l->program->stages + 1, sizeof(*c.operand_uses));
    c.rank = gs_calloc(files, sizeof(*c.rank));
    c.mask = gs_calloc(l->config->granules.words + 1, sizeof(*c.mask));
    c.offset = gs_calloc(files, sizeof(*c.offset));
    c.sum_offset = gs_calloc(sums + 1, sizeof(*c.sum_offset));
    c.sum_array = gs_calloc(sums + 1, sizeof(*c.sum_array));
    c.tenant = gs_calloc(files + sums, sizeof(*c.tenant));
    c.unplaced = gs_calloc(files + sums, sizeof(*c.unplaced));
    c.order = gs_calloc((uint64_t)l->program->stages * l->parts + 1, sizeof(*c.order));
    /* A device with memory of its own has copies of what is resident, and expects no other owners; several work on a
     * stage in no order. */
    c.shares = l->config->unified && l->config->topology == NULL;
    c.sums_resident = c.shares && !l->staged;
    c.deal = gs_calloc((size_t)(l->program->stages + 1) * (gs_layout_devices(l) + 1), sizeof(*c.deal));
    if (c.block == NULL || c.group == NULL || c.kept_intervals == NULL || c.kept_edges == NULL ||
        c.operand_uses == NULL || c.rank == NULL || c.mask == NULL || c.offset == NULL || c.sum_offset == NULL ||
        c.sum_array == NULL || c.tenant == NULL || c.unplaced == NULL || c.order == NULL || c.deal == NULL) {
        gs_choice_drop(&c);
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    }
    while (c.cached_pass < l->program->passes && strcmp(l->program->pass[c.cached_pass].name, "train") != 0)
        c.cached_pass++;
    gs_choice_deal(&c, l);
    gs_order_reset(&c, l);
    *out = c;
    return GS_OK;
}

void gs_choice_drop(gs_choice *c)
{
    gs_device_cache_drop(c);
    gs_free(c->block);
    gs_free(c->deal);
    gs_free(c->group);
    gs_free(c->kept_intervals);
    gs_free(c->kept_edges);
    gs_free(c->operand_uses);
    gs_free(c->rank);
    gs_free(c->mask);
    gs_free(c->offset);
    gs_free(c->sum_offset);
    gs_free(c->sum_array);
    gs_free(c->tenant);
    gs_free(c->unplaced);
    gs_free(c->order);
    gs_free(c->host.access);
    *c = (gs_choice){0};
}

/* The group that needs the fewest states: about the square root of the parts. */
static uint32_t least_group(uint32_t parts)
{
    uint32_t best = 1;
    for (uint32_t g = 2; g <= parts; g++)
        if (gs_state_slots(parts, g) < gs_state_slots(parts, best))
            best = g;
    return best;
}

static uint64_t sum_bytes(const gs_layout *l, uint32_t stage, uint32_t sum, uint32_t block)
{
    uint64_t bytes = 0;
    for (int k = 0; k < GS_SUM_PLACES; k++)
        bytes += gs_align_up(4ull * gs_sum_width(&l->program->stage[stage], sum, k) * block * l->span[stage], 64);
    return bytes;
}

uint64_t gs_choice_sum_bytes(const gs_choice *c, const gs_layout *l, uint32_t stage, uint32_t sum)
{
    return sum_bytes(l, stage, sum, c->block[stage]);
}

/* Sums of `block` intervals, each sum starting at a multiple of 64; of a sequence's derivative, states and their
 * gradients. */
static uint64_t block_bytes(const gs_layout *l, uint32_t stage, uint32_t block, uint32_t group)
{
    const gs_stage *s = &l->program->stage[stage];
    uint64_t bytes = 0;
    if (gs_stage_is_back(s))
        bytes = (gs_state_slots(l->parts, group) + 1ull) * block * gs_state_bytes(l, s);
    for (uint32_t i = 0; i < s->sums; i++)
        bytes += sum_bytes(l, stage, i, block);
    return gs_align_up(bytes, GS_BLOCK_BYTES);
}

/* Rows at the target end of a block, each array once. They are staged in the ring, but
 * bound a block as its sums do: a device with memory of its own must hold both. */
static uint64_t target_bytes(const gs_layout *l, uint32_t stage, uint32_t block)
{
    const gs_stage *s = &l->program->stage[stage];
    uint64_t row = 0;
    for (gs_array_use u = {0}; gs_stage_next_use(s, &u);) {
        gs_array_use same = {0}; /* the first of its kind */
        while (gs_stage_next_use(s, &same) && (same.role != u.role || same.array != u.array))
            continue;
        if (u.role == GS_USE_TARGET && same.reg == u.reg)
            row += l->row_bytes[u.array];
    }
    return row * block * l->span[stage];
}

static uint64_t held_bytes(const gs_layout *l, uint32_t stage, uint32_t block, uint32_t group)
{
    return l->stage[stage].scratch_bytes + block_bytes(l, stage, block, group) + target_bytes(l, stage, block);
}

uint64_t gs_layout_least_arena(const gs_layout *l)
{
    uint64_t least = GS_BLOCK_BYTES;
    for (uint32_t s = 0; s < l->program->stages; s++)
        least = GS_MAX(least, held_bytes(l, s, 1, least_group(l->parts)));
    return least;
}

/* How often one run of the stage reads an operand row, on average over all rows: the fraction of
 * granules that a block needs, summed over the blocks. */
static double operand_uses(const gs_choice *c, const gs_layout *l, uint32_t stage)
{
    const uint32_t parts = l->parts, step = GS_MIN(GS_MAX(c->block[stage], 1) * gs_layout_devices(l), parts),
                   words = l->config->granules.words;
    const double granules = (double)gs_div_up(l->chunks->vertices, GS_MAX(l->config->granules.rows, 1));
    double marked = 0;

    for (uint32_t first = 0; first < parts; first += step)
        for (uint32_t o = 0; o < parts; o++) {
            if (!gs_runs_need(c->mask, l, stage, first, GS_MIN(step, parts - first), o))
                return (double)gs_div_up(parts, step);
            for (uint32_t w = 0; w < words; w++)
                marked += __builtin_popcountll(c->mask[w]);
        }
    return marked / granules;
}

/* A staging ring in which everything that there is has room twice makes nobody wait; a larger one does no more. */
static uint64_t most_staged(const gs_layout *l)
{
    uint64_t bytes = 16 * GS_MIB;
    for (uint32_t a = 0; a < l->program->arrays; a++)
        bytes += 2 * l->row_bytes[a] * l->chunks->vertices;
    for (uint32_t k = 0; k < l->sets; k++)
        for (uint64_t i = 0; l->set[k].chunk != NULL && i < (uint64_t)l->parts * l->parts; i++)
            bytes += 2 * l->set[k].chunk[i].length;
    return bytes;
}

bool gs_choice_set_arena(gs_choice *c, const gs_layout *l, uint64_t arena_bytes)
{
    uint64_t used = GS_BLOCK_BYTES, held = GS_BLOCK_BYTES, taken = GS_BLOCK_BYTES;
    for (uint32_t s = 0; s < l->program->stages; s++) {
        const uint32_t longest = gs_choice_longest(c, l, s);
        uint32_t block = l->program->stage[s].sums ? longest : 1;
        c->group[s] = least_group(l->parts);
        while (block > 0 && held_bytes(l, s, block, c->group[s]) > arena_bytes)
            block--;
        if (block == 0)
            return false;
        /* Equal blocks: the last one should not be a sliver. */
        if (l->program->stage[s].sums)
            block = (uint32_t)gs_div_up(longest, gs_div_up(longest, block));
        if (held_bytes(l, s, block, 1) <= arena_bytes)
            c->group[s] = 1;
        c->block[s] = block;
        c->operand_uses[s] = l->program->stage[s].sums ? operand_uses(c, l, s) : 0;
        const bool resident = c->sums_resident && !gs_stage_is_back(&l->program->stage[s]);
        const uint64_t scratch = l->stage[s].scratch_bytes, sums = block_bytes(l, s, block, c->group[s]);
        used = GS_MAX(used, scratch + sums);
        taken = GS_MAX(taken, scratch + (resident ? 0 : sums));
        held = GS_MAX(held, held_bytes(l, s, block, c->group[s]));
    }
    c->arena_bytes = used;
    c->arena_taken = taken;
    c->held_bytes = held;
    c->spare_bytes = 0;
    if (l->config->topology != NULL && l->config->device_memory > l->config->device_fixed + used)
        c->spare_bytes = gs_align_down(
            GS_MIN(l->config->device_memory - l->config->device_fixed - used, most_staged(l)), GS_BLOCK_BYTES);
    c->staging_bytes = c->spare_bytes;
    return true;
}

double gs_pass_weight(const gs_layout *l, uint32_t pass)
{
    const char *const name = l->program->pass[pass].name;
    if (strcmp(name, "predict") == 0 || strcmp(name, "setup") == 0)
        return ONCE_A_RUN;
    return strcmp(name, "eval") == 0 ? GS_MAX(1.0 - l->config->evals_left_out, ONCE_A_RUN) : 1.0;
}

static double stage_weight(const gs_layout *l, uint32_t stage)
{
    const gs_program *const p = l->program;
    for (uint32_t i = 0; i < p->passes; i++)
        if (stage >= p->pass[i].first_stage && stage < p->pass[i].first_stage + p->pass[i].stages)
            return gs_pass_weight(l, i);
    return 1.0;
}

/* Times that the chunks of a column, and the rows at their operand ends, are gone over. */
static double sweeps_of(const gs_choice *c, const gs_layout *l, uint32_t stage)
{
    if (!gs_stage_is_back(&l->program->stage[stage]) || l->parts == 1)
        return 1;
    return c->group[stage] > 1 ? 3 : 2;
}

/* Times a whole array (or a direction's edges) goes over the disk's wire in an epoch. */
static double uses_of(const gs_choice *c, const gs_layout *l, uint32_t file)
{
    const gs_program *p = l->program;
    double uses = 0;
    for (uint32_t s = 0; s < p->stages; s++) {
        const gs_stage *stage = &p->stage[s];
        const double weight = stage_weight(l, s);
        const double blocks = c->operand_uses[s], sweeps = sweeps_of(c, l, s);
        if (stage->sums && file == GS_FILE_EDGES(p, l->stage_set[s]))
            uses += weight * sweeps;
        for (gs_array_use u = {0}; gs_stage_next_use(stage, &u);) {
            if (u.array != file)
                continue;
            if (u.role == GS_USE_OPERAND || u.role == GS_USE_SCALE)
                uses += weight * blocks * sweeps;
            else if (u.role == GS_USE_BACK)
                uses += weight *
                        (2.0 * (double)gs_div_up(l->parts, GS_MAX(c->block[s], 1) * gs_layout_devices(l)) - 1);
            else if (u.role == GS_USE_TARGET || u.role == GS_USE_LOAD)
                uses += weight;
            else if (u.role == GS_USE_STORE)
                uses += weight * (1 + GS_WEAR_SHARE);
        }
    }
    return uses * (c->device.used_bytes > 0 ? c->device.host_share[file] : 1);
}

static uint64_t edge_file_bytes(const gs_layout *l, uint32_t set)
{
    if (l->chunks->shared && set == GS_BY_SOURCE)
        return 0;
    const uint64_t n = (uint64_t)l->parts * l->parts;
    uint64_t end = 0;
    for (uint64_t i = 0; i < n; i++) {
        const gs_chunk *c = &l->set[set].chunk[i];
        end = c->length ? GS_MAX(end, c->offset + c->length) : end;
    }
    return end;
}

static uint64_t file_bytes(const gs_layout *l, uint32_t file)
{
    if (file < l->program->arrays)
        return l->row_bytes[file] * l->chunks->vertices;
    return edge_file_bytes(l, file - l->program->arrays);
}

uint64_t gs_choice_room(const gs_layout *l, uint64_t kept_bytes)
{
    return kept_bytes ? gs_align_up(kept_bytes, l->config->array_sum_bytes) : 0;
}

uint64_t gs_choice_kept_bytes(const gs_choice *c, const gs_layout *l, uint32_t file)
{
    if (file >= l->program->arrays)
        return c->kept_edges[file - l->program->arrays];
    const uint64_t rows = GS_MIN((uint64_t)c->kept_intervals[file] * l->chunks->interval_rows, l->chunks->vertices);
    return rows * l->row_bytes[file];
}

/* Keeps the first `room` bytes of `file`, or what is whole of them. */
static void keep_part(gs_choice *c, const gs_layout *l, uint32_t file, uint64_t room)
{
    if (file >= l->program->arrays) {
        const uint32_t set = file - l->program->arrays;
        c->kept_edges[set] = GS_MIN(edge_file_bytes(l, set), room);
    } else {
        const uint64_t interval = l->row_bytes[file] * l->chunks->interval_rows;
        if (room >= gs_choice_room(l, file_bytes(l, file)))
            c->kept_intervals[file] = l->parts;
        else
            c->kept_intervals[file] = (uint32_t)GS_MIN(room / GS_MAX(interval, 1), l->parts - 1);
    }
}

/* Keeps as much of `file` as there is room for below `limit`. */
static void keep_file(gs_choice *c, const gs_layout *l, uint32_t file, uint64_t limit)
{
    const uint64_t whole = gs_choice_room(l, file_bytes(l, file));
    keep_part(c, l, file, gs_align_down(gs_lives_room(c, l, file, whole, limit), l->config->array_sum_bytes));
    const uint64_t bytes = gs_choice_room(l, gs_choice_kept_bytes(c, l, file));
    if (bytes > 0)
        gs_lives_settle(c, l, file, bytes);
}

/* Of the store, and no narrow array, whose reads are mostly overhead. */
static bool left_to_cache(const gs_layout *l, uint32_t file)
{
    return file >= l->program->arrays ||
           (l->program->array[file].store_id >= 0 && l->row_bytes[file] > GS_NARROW_ROW_BYTES);
}

/* What a file's keeping saves; 0: nothing. Narrow arrays come first, since their reads are mostly overhead. */
static void rank_files(gs_choice *c, const gs_layout *l)
{
    for (uint32_t f = 0; f < l->program->arrays + l->sets; f++) {
        const double uses = c->made_only && left_to_cache(l, f) ? 0 : uses_of(c, l, f);
        const bool narrow = f < l->program->arrays && l->row_bytes[f] <= GS_NARROW_ROW_BYTES;
        c->rank[f] = uses > 0 && narrow ? uses + 1e6 : uses;
    }
}

/* The first file of the highest rank, or GS_NONE. */
static uint32_t highest_file(const gs_choice *c, uint32_t files)
{
    uint32_t best = GS_NONE;
    for (uint32_t f = 0; f < files; f++)
        if (c->rank[f] > (best == GS_NONE ? 0 : c->rank[best]))
            best = f;
    return best;
}

static void keep_nothing(gs_choice *c, const gs_layout *l)
{
    memset(c->kept_intervals, 0, l->program->arrays * sizeof(*c->kept_intervals));
    memset(c->kept_edges, 0, l->sets * sizeof(*c->kept_edges));
    gs_lives_begin(c, l);
}

/* Everything, if there is room. */
static bool keep_whole(gs_choice *c, const gs_layout *l, uint64_t bytes)
{
    for (uint32_t f = 0; f < l->program->arrays + l->sets; f++)
        if (c->rank[f] > 0)
            keep_part(c, l, f, UINT64_MAX);
    gs_lives_pack(c, l);
    return c->resident_bytes <= bytes;
}

bool gs_choice_keep(gs_choice *c, const gs_layout *l, uint64_t bytes)
{
    const uint32_t files = l->program->arrays + l->sets;
    bool whole = true;

    c->keep_bytes = bytes;
    rank_files(c, l);
    keep_nothing(c, l);
    if (keep_whole(c, l, bytes))
        return true;
    keep_nothing(c, l);
    for (uint32_t f; (f = highest_file(c, files)) != GS_NONE;) {
        c->rank[f] = 0;
        keep_file(c, l, f, bytes);
        whole = whole && gs_choice_kept_bytes(c, l, f) >= file_bytes(l, f);
    }
    return whole;
}
