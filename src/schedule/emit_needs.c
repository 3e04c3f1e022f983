/* emit_needs.c - which intervals, and which rows of them, do the blocks that devices hold need? */
#include "schedule/emit_needs.h"

#include <string.h>

#include "base/size.h"
#include "schedule/runs.h"

bool gs_emit__target_needed(const struct emitter *e, uint32_t target)
{
    for (uint32_t o = 0; o < e->l->parts; o++)
        if (gs_layout_chunk(e->l, e->stage, target, o)->edges)
            return true;
    return false;
}

gs_row_sum gs_emit__rows_of(const struct emitter *e, uint32_t sum)
{
    gs_row_sum rows = {.scale = GS_NONE};
    (void)gs_sum_of_rows(&rows, gs_emit__stage(e), sum);
    return rows;
}

/* True where the operand interval's own rows of a sum's array are added to the block's sums. */
bool gs_emit__adds_own(const struct emitter *e, struct block b, uint32_t operand, uint32_t sum)
{
    gs_row_run run;
    uint32_t k = 0;
    return gs_emit__stage(e)->sum[sum].self && operand >= b.first && operand < b.first + b.count &&
           gs_layout_own_run(e->l, e->stage, gs_emit__rows_of(e, sum).array, operand, &k, &run);
}

/* Does any sum add own rows? */
static bool adds_any_own(const struct emitter *e, struct block b, uint32_t operand)
{
    const gs_stage *s = gs_emit__stage(e);
    for (uint32_t i = 0; i < s->sums; i++)
        if (gs_emit__adds_own(e, b, operand, i))
            return true;
    return false;
}

static bool has_edges(const struct emitter *e, struct block b, uint32_t operand)
{
    for (uint32_t t = 0; t < b.count; t++)
        if (gs_layout_chunk(e->l, e->stage, b.first + t, operand)->edges)
            return true;
    return false;
}

/* True where this operand interval has edges into the block, or is in it and
 * its own rows are added. */
static bool operand_needed(const struct emitter *e, struct block b, uint32_t operand)
{
    if (adds_any_own(e, b, operand))
        return true;
    return has_edges(e, b, operand);
}

static void mark_rows(struct emitter *e, gs_row_run r)
{
    const uint32_t granule = e->l->config->needs.granules.rows;
    for (uint32_t g = r.first / granule; g * (uint64_t)granule < r.first + r.rows; g++)
        e->ends.mask[g / 64] |= 1ull << (g % 64);
}

const uint64_t *gs_emit__needed_rows(struct emitter *e, struct block b, uint32_t operand)
{
    const gs_stage *s = gs_emit__stage(e);
    gs_row_run run;
    if (!gs_runs_need(e->ends.mask, e->l, e->stage, b.first, b.count, operand))
        return NULL;
    for (uint32_t i = 0; i < s->sums; i++)
        for (uint32_t k = 0; gs_emit__adds_own(e, b, operand, i) &&
                             gs_layout_own_run(e->l, e->stage, gs_emit__rows_of(e, i).array, operand, &k, &run);)
            mark_rows(e, run);
    return e->ends.mask;
}

/* Devices that copy an interval take all of it. */
uint32_t gs_emit__needed_end(const struct emitter *e, uint32_t operand, const uint64_t *mask)
{
    const gs_granules *const g = &e->l->config->needs.granules;
    const uint32_t rows = gs_interval_rows(e->l->chunks, operand);
    uint32_t w = mask == NULL || e->copies || !e->l->config->unified ? 0 : g->words;

    while (w > 0 && mask[w - 1] == 0)
        w--;
    return w == 0 ? rows : GS_MIN(((w - 1) * 64 + 64 - (uint32_t)__builtin_clzll(mask[w - 1])) * g->rows, rows);
}

/* Where an operand interval is there for its own rows alone, those of other arrays are nobody's. */
static bool is_read(const struct emitter *e, struct block b, uint32_t operand, uint32_t array)
{
    bool own = false;
    for (const gs_array_use *u = gs_layout_uses(e->l, e->stage); u < gs_layout_uses(e->l, e->stage + 1); u++)
        own = own || (u->role == GS_USE_OWN && u->array == array && gs_emit__adds_own(e, b, operand, u->sum));
    return own || has_edges(e, b, operand);
}

/* Who reads the array's rows; false: nobody. */
bool gs_emit__list_readers(const struct emitter *e, uint32_t operand, uint32_t array, const bool *needs, bool *reads)
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
    if (!e->copies)
        return gs_emit__needed_rows(e, e->seat[0].block, operand);
    memset(e->ends.mask_of_all, 0, words * sizeof(*e->ends.mask_of_all));
    for (uint32_t d = 0; d < e->devices; d++) {
        if (!needs[d])
            continue;
        const uint64_t *const mask = gs_emit__needed_rows(e, e->seat[d].block, operand);
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
