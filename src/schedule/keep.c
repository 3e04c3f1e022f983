/* keep.c - what stays in host memory for good.
 *
 * A first part of a file each, files ranked by the bytes that an epoch saves for each byte held. cache.c decides about
 * the rest where that is better.
 */
#include "schedule/keep.h"

#include <string.h>

#include "base/size.h"
#include "schedule/deal.h"
#include "schedule/liveness.h"

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

/* Times a whole array goes over the disk's wire for one use by a stage in an epoch, but for the stage's weight. */
static double times_used(const gs_choice *c, const gs_layout *l, uint32_t stage, gs_use_role role)
{
    const uint32_t step = GS_MAX(c->block[stage], 1) * gs_layout_devices(l);

    switch (role) {
    case GS_USE_OPERAND:
    case GS_USE_SCALE:
        return c->operand_uses[stage] * sweeps_of(c, l, stage);
    case GS_USE_BACK:
        return 2.0 * (double)gs_div_up(l->parts, step) - 1;
    case GS_USE_TARGET:
    case GS_USE_LOAD:
        return 1;
    case GS_USE_STORE:
        return 1 + GS_WEAR_SHARE;
    default:
        return 0;
    }
}

/* The same of every file, a direction's edges among them, in all stages: one sweep over the program. */
static void count_uses(const gs_choice *c, const gs_layout *l, double *uses)
{
    const gs_program *const p = l->program;
    const uint32_t files = p->arrays + l->sets;

    memset(uses, 0, files * sizeof(*uses));
    for (uint32_t s = 0; s < p->stages; s++) {
        const double weight = stage_weight(l, s);
        if (p->stage[s].sums)
            uses[GS_FILE_EDGES(p, l->stage_set[s])] += weight * sweeps_of(c, l, s);
        for (const gs_array_use *u = gs_layout_uses(l, s); u < gs_layout_uses(l, s + 1); u++)
            uses[u->array] += weight * times_used(c, l, s, u->role);
    }
    for (uint32_t f = 0; f < files && c->device.used_bytes > 0; f++)
        uses[f] *= c->device.host_share[f];
    /* Between passes the run goes over tables, their state and their gradients, on the host. */
    for (uint32_t a = 0; a < p->arrays; a++)
        uses[a] += p->array[a].lasting ? 2 + GS_WEAR_SHARE : p->array[a].result ? 1 : 0;
}

static uint64_t file_bytes(const gs_layout *l, uint32_t file)
{
    if (file < l->program->arrays)
        return l->row_bytes[file] * l->chunks->vertices;
    return l->set_bytes[file - l->program->arrays];
}

/* Keeps the first `room` bytes of `file`, or what is whole of them. */
static void keep_part(gs_choice *c, const gs_layout *l, uint32_t file, uint64_t room)
{
    if (file >= l->program->arrays) {
        const uint32_t set = file - l->program->arrays;
        c->kept_edges[set] = GS_MIN(l->set_bytes[set], room);
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
    keep_part(c, l, file, gs_align_down(gs_liveness_room(c, l, file, whole, limit), l->config->array_sum_bytes));
    const uint64_t bytes = gs_choice_room(l, gs_choice_kept_bytes(c, l, file));
    if (bytes > 0)
        gs_liveness_settle(c, l, file, bytes);
}

/* Is the file one of the store's, and no narrow array, whose reads are mostly overhead? */
static bool left_to_cache(const gs_layout *l, uint32_t file)
{
    return file >= l->program->arrays ||
           (l->program->array[file].store_id >= 0 && l->row_bytes[file] > GS_SHORT_ROW_BYTES);
}

/* Sets the bytes that keeping each file saves; 0: none. Narrow arrays come first, since their reads are mostly
 * overhead. */
static void rank_files(gs_choice *c, const gs_layout *l)
{
    count_uses(c, l, c->rank);
    for (uint32_t f = 0; f < l->program->arrays + l->sets; f++) {
        const double uses = c->made_only && left_to_cache(l, f) ? 0 : c->rank[f];
        const bool narrow = f < l->program->arrays && l->row_bytes[f] <= GS_SHORT_ROW_BYTES;
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
    gs_liveness_begin(c, l);
}

/* Everything, if there is room. */
static bool keep_whole(gs_choice *c, const gs_layout *l, uint64_t bytes)
{
    for (uint32_t f = 0; f < l->program->arrays + l->sets; f++)
        if (c->rank[f] > 0)
            keep_part(c, l, f, UINT64_MAX);
    gs_liveness_pack(c, l);
    return c->places.bytes <= bytes;
}

bool gs_choice_keep(gs_choice *c, const gs_layout *l, uint64_t bytes)
{
    const uint32_t files = l->program->arrays + l->sets;
    bool whole = true;

    c->keep_bytes = bytes;
    gs_liveness_find(c, l);
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
