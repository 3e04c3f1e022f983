/* choice.c - what is free to choose: block sizes for a given arena, and the memory of all choices. */
#include "schedule/choice.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/column_order.h"
#include "schedule/deals.h"
#include "schedule/keep.h"
#include "schedule/runs.h"

/* The largest chunk of any stage. */
static uint64_t largest_chunk(const gs_layout *l)
{
    uint64_t most = 0;
    for (uint32_t s = 0; s < l->program->stages; s++)
        for (uint64_t i = 0; l->program->stage[s].sums > 0 && i < (uint64_t)l->parts * l->parts; i++)
            most = GS_MAX(most, l->set[l->stage_set[s]].chunk[i].length);
    return most;
}

gs_status gs_choice_make(gs_choice *out, const gs_layout *l)
{
    const uint64_t files = l->program->arrays + l->sets, sums = (uint64_t)l->program->stages * GS_STAGE_SUMS;
    gs_choice c = {.host_most = l->config->host_memory};
    c.block = gs_arena_take(&c.arrays, l->program->stages + 1, sizeof(*c.block));
    c.group = gs_arena_take(&c.arrays, l->program->stages + 1, sizeof(*c.group));
    c.kept_intervals = gs_arena_take(&c.arrays, l->program->arrays + 1, sizeof(*c.kept_intervals));
    c.kept_edges = gs_arena_take(&c.arrays, l->sets, sizeof(*c.kept_edges));
    c.operand_uses = gs_arena_take(&c.arrays, l->program->stages + 1, sizeof(*c.operand_uses));
    c.rank = gs_arena_take(&c.arrays, files, sizeof(*c.rank));
    c.mask = gs_arena_take(&c.arrays, l->config->needs.granules.words + 1, sizeof(*c.mask));
    c.places.offset = gs_arena_take(&c.arrays, files, sizeof(*c.places.offset));
    c.places.live = gs_arena_take(&c.arrays, l->program->arrays + 1, sizeof(*c.places.live));
    c.places.sum_offset = gs_arena_take(&c.arrays, sums + 1, sizeof(*c.places.sum_offset));
    c.places.sum_array = gs_arena_take(&c.arrays, sums + 1, sizeof(*c.places.sum_array));
    c.places.allocation = gs_arena_take(&c.arrays, files + sums, sizeof(*c.places.allocation));
    c.places.unplaced = gs_arena_take(&c.arrays, files + sums, sizeof(*c.places.unplaced));
    c.order = gs_arena_take(&c.arrays, (uint64_t)l->program->stages * l->parts + 1, sizeof(*c.order));
    /* Copies are made in no order with computations, so with copies as tasks a place has one owner. */
    c.places.shares = l->memory.own == 0 && l->memory.any_in_place;
    c.places.sums = c.places.shares && !l->staged;
    c.ring_least = l->config->loads ? largest_chunk(l) : 0;
    c.deal = gs_arena_take(&c.arrays, (size_t)(l->program->stages + 1) * (l->memory.devices + 1), sizeof(*c.deal));
    if (c.arrays.is_short) {
        gs_choice_drop(&c);
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    }
    while (c.cached_pass < l->program->passes && strcmp(l->program->pass[c.cached_pass].name, "train") != 0)
        c.cached_pass++;
    const gs_status st = gs_choice_deal(&c, l);
    if (st != GS_OK) {
        gs_choice_drop(&c);
        return st;
    }
    gs_order_reset(&c, l);
    *out = c;
    return GS_OK;
}

void gs_choice_drop(gs_choice *c)
{
    gs_device_cache_drop(c);
    gs_arena_free(&c->arrays);
    gs_free(c->host.list.access);
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
    uint64_t row = 0;
    for (const gs_array_use *u = gs_layout_uses(l, stage); u < gs_layout_uses(l, stage + 1); u++) {
        const gs_array_use *same = gs_layout_uses(l, stage); /* the first of its kind */
        if (u->role != GS_USE_TARGET)
            continue;
        while (same->role != u->role || same->array != u->array)
            same++;
        if (same == u)
            row += l->row_bytes[u->array];
    }
    return row * block * l->span[stage];
}

static uint64_t held_bytes(const gs_layout *l, uint32_t stage, uint32_t block, uint32_t group)
{
    return l->stage[stage].scratch_bytes + block_bytes(l, stage, block, group) + target_bytes(l, stage, block);
}

uint64_t gs_layout_held_bytes(const gs_layout *l, uint32_t stage)
{
    return held_bytes(l, stage, 1, least_group(l->parts));
}

uint32_t gs_layout_least_slots(uint32_t parts) { return gs_state_slots(parts, least_group(parts)) + 1; }

uint64_t gs_layout_least_arena(const gs_layout *l)
{
    uint64_t least = GS_BLOCK_BYTES;
    for (uint32_t s = 0; s < l->program->stages; s++)
        least = GS_MAX(least, gs_layout_held_bytes(l, s));
    return least;
}

/* How often one run of the stage reads an operand row, on average over all rows: the fraction of
 * granules that a block needs, summed over the blocks. */
static double operand_uses(const gs_choice *c, const gs_layout *l, uint32_t stage)
{
    const uint32_t devices = l->program->stage[stage].alone > 0 ? 1 : l->memory.devices;
    const uint32_t parts = l->parts, step = GS_MIN(GS_MAX(c->block[stage], 1) * devices, parts),
                   words = l->config->needs.granules.words;
    const double granules = (double)gs_div_up(l->chunks->vertices, GS_MAX(l->config->needs.granules.rows, 1));
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
    uint64_t bytes = 16 * GS_MIB + 2 * l->chunk_bytes;
    for (uint32_t a = 0; a < l->program->arrays; a++)
        bytes += 2 * l->row_bytes[a] * l->chunks->vertices;
    return bytes;
}

static uint64_t list_bytes(const gs_cache_list *list)
{
    const gs_cache_plan *const p = list->plan;
    const uint64_t planned = p == NULL ? 0 : sizeof(*p->place) + sizeof(*p->hit) + sizeof(*p->stays);
    return list->accesses * (sizeof(*list->access) + planned);
}

uint64_t gs_choice_listed_bytes(const gs_choice *c)
{
    uint64_t bytes = c->host.list.plan == NULL ? 0 : list_bytes(&c->host.list);
    for (uint32_t i = 0; !c->device.tracing && i < c->device.devices * c->device.passes; i++)
        bytes += list_bytes(&c->device.list[i]);
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
        const bool resident = c->places.sums && !gs_stage_is_back(&l->program->stage[s]);
        const uint64_t scratch = l->stage[s].scratch_bytes, sums = block_bytes(l, s, block, c->group[s]);
        used = GS_MAX(used, scratch + sums);
        taken = GS_MAX(taken, scratch + (resident ? 0 : sums));
        held = GS_MAX(held, held_bytes(l, s, block, c->group[s]));
    }
    c->arena_bytes = used;
    c->arena_taken = taken;
    c->held_bytes = held;
    c->spare_bytes = 0;
    if (l->memory.own > 0 && l->config->device_memory > l->config->device_fixed + used)
        c->spare_bytes = gs_align_down(
            GS_MIN(l->config->device_memory - l->config->device_fixed - used, most_staged(l)), GS_BLOCK_BYTES);
    c->staging_bytes = c->spare_bytes;
    return true;
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
