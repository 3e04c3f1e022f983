/* batch_hops.c - the rule that prunes whole graphs, of a graph whose rows are the hops of a batch. */
#include "session/batch_hops.h"

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/row_sets.h"

/* A hop is a granule. */
#define ROWS GS_GRANULE_ROWS

/* Hops at the operand ends of edges whose targets are in these: in-edges come from the hop behind at the furthest, and
 * out-edges lead to all expanded rows but those of hops so far ahead that this one was not reached from them. */
static gs_status reach(void *context, uint32_t direction, const uint64_t *targets, uint64_t *operands)
{
    const gs_hop_needs *const n = context;
    const uint32_t expanded = n->layered ? n->levels - 1 : n->levels;

    for (uint32_t k = 0; k < n->levels; k++) {
        if (!(targets[0] >> k & 1))
            continue;
        uint32_t first = 0, end = n->layered ? k + 2 : n->levels;
        if (direction == GS_BY_SOURCE) {
            first = n->layered && k > 0 ? k - 1 : 0;
            end = expanded;
        } else if (k >= expanded) {
            continue;
        }
        for (uint32_t o = first; o < GS_MIN(end, n->levels); o++)
            operands[0] |= 1ull << o;
    }
    return GS_OK;
}

static uint32_t levels_of(const gs_hop_needs *n, const gs_row_sets *s, uint32_t set)
{
    if (set == GS_ALL_ROWS)
        return n->levels;
    return s->bits[set][0] == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(s->bits[set][0]);
}

/* Hops that a stage's edges lead to: the last one has no in-edges. */
static uint32_t target_levels(const gs_hop_needs *n, const gs_stage *s, uint32_t stage)
{
    const uint32_t most = s->direction == GS_BY_DEST && n->layered ? n->levels - 1 : n->levels;
    return GS_MIN(n->targets[stage], most);
}

/* Hops whose rows of an array the edge pass of a stage may read. */
static uint32_t edge_levels(const gs_hop_needs *n, const gs_stage *s, uint32_t stage, gs_use_role role)
{
    const uint32_t targets = n->targets[stage];
    const bool sequence = gs_sum_is_sequence(&s->sum[0]);
    if (role == GS_USE_TARGET)
        return sequence ? n->rows[stage] : target_levels(n, s, stage);
    if (role == GS_USE_OWN)
        return n->rows[stage];
    if (role != GS_USE_OPERAND && role != GS_USE_SCALE)
        return 0;
    if (s->direction == GS_BY_SOURCE)
        return n->operands[stage];
    return targets == 0 ? 0 : n->layered ? GS_MIN(targets + 1, n->levels) : n->levels;
}

/* ---- what is left of stages in the last hops ---- */

typedef struct rests {
    gs_hop_needs *needs;
    const gs_program *p;
    const gs_pass *pass;
    uint32_t *made;             /* [arrays] hops whose rows are not known to be 0 */
    bool *zero, *unread, *read; /* [most registers] of the stage at hand */
} rests;

static void close_rests(rests *r)
{
    gs_free(r->made);
    gs_free(r->zero);
    gs_free(r->unread);
    gs_free(r->read);
}

static gs_status open_rests(rests *r)
{
    const gs_program *const p = r->p;
    uint32_t most = 1;

    for (uint32_t k = 0; k < p->stages; k++)
        most = GS_MAX(most, p->stage[k].regs);
    r->made = gs_calloc(p->arrays + 1ull, sizeof(*r->made));
    r->zero = gs_calloc(most, sizeof(*r->zero));
    r->unread = gs_calloc(most, sizeof(*r->unread));
    r->read = gs_calloc(most, sizeof(*r->read));
    if (r->made == NULL || r->zero == NULL || r->unread == NULL || r->read == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the rows that a batch's loss sees");
    for (uint32_t a = 0; a < p->arrays; a++)
        r->made[a] = r->needs->levels;
    for (uint32_t k = r->pass->first_stage; k < r->pass->first_stage + r->pass->stages; k++)
        for (gs_array_use u = {0}; gs_stage_next_use(&p->stage[k], &u);)
            if (u.role == GS_USE_STORE)
                r->made[u.array] = r->needs->rows[k];
    return GS_OK;
}

/* Hops behind which register `reg` of the stage is 0. Sums of no edges are, but those that own rows are added to;
 * logarithms of norms are not. */
static uint32_t zero_behind(const rests *r, uint32_t stage, uint32_t reg)
{
    const gs_stage *const s = &r->p->stage[stage];
    if (s->reg[reg].kind == GS_REG_LOAD)
        return r->made[s->reg[reg].array];
    for (uint32_t i = 0; s->reg[reg].kind == GS_REG_SUM && i < s->sums; i++)
        if (s->sum[i].reg == reg && !s->sum[i].self && !gs_sum_is_sequence(&s->sum[i]))
            return target_levels(r->needs, s, stage);
    return r->needs->levels;
}

/* Hops behind which nobody reads what the register stores. */
static uint32_t unread_behind(const rests *r, uint32_t stage, uint32_t reg)
{
    const gs_reg *const g = &r->p->stage[stage].reg[reg];
    return g->kind == GS_REG_TEMP && g->array != GS_NONE ? r->needs->zeroed[g->array] : r->needs->levels;
}

/* The last end of a hop within the stage's rows behind which some register is 0 or unread; `rows`: there is none. */
static uint32_t boundary_of(const rests *r, uint32_t stage)
{
    const uint32_t rows = r->needs->rows[stage];
    uint32_t last = 0;
    bool some = false;

    for (uint32_t g = 0; g < r->p->stage[stage].regs; g++) {
        const uint32_t of[] = {zero_behind(r, stage, g), unread_behind(r, stage, g)};
        for (int k = 0; k < 2; k++)
            if (of[k] < rows) {
                last = GS_MAX(last, of[k]);
                some = true;
            }
    }
    return some ? last : rows;
}

/* Makes the rest of the stage, and notes which registers it reads. */
static gs_status find_rest(rests *r, uint32_t stage)
{
    gs_hop_needs *const n = r->needs;
    const gs_stage *const s = &r->p->stage[stage];
    const uint32_t end = boundary_of(r, stage);
    const gs_zero_rows known = {r->zero, r->unread};
    bool shorter = false;

    if (end == n->rows[stage] || s->instrs == 0)
        return GS_OK;
    for (uint32_t g = 0; g < s->regs; g++) {
        r->zero[g] = zero_behind(r, stage, g) <= end;
        r->unread[g] = unread_behind(r, stage, g) <= end;
    }
    const gs_status st = gs_stage_rest(&n->rest[stage], r->read, &shorter, s, &known);
    if (st == GS_OK && shorter)
        n->whole[stage] = end;
    return st;
}

/* Hops whose rows of the array the use reads. */
static uint32_t use_levels(const rests *r, uint32_t stage, const gs_array_use *u)
{
    const gs_hop_needs *const n = r->needs;
    if (u->role == GS_USE_LOAD)
        return n->whole[stage] == n->rows[stage] || r->read[u->reg] ? n->rows[stage] : n->whole[stage];
    return edge_levels(n, &r->p->stage[stage], stage, u->role);
}

/* Finds rests, and how far each array is read, also behind the rows that its stage runs for. From the last stage to the
 * first: who reads an array stands behind who makes it. Results are read when the pass is over. */
static gs_status find_reads(rests *r, bool rests_too)
{
    gs_hop_needs *const n = r->needs;
    const gs_program *const p = r->p;
    gs_status st = GS_OK;

    for (uint32_t a = 0; a < p->arrays; a++)
        n->zeroed[a] = p->array[a].result ? n->levels : 0;
    for (uint32_t k = p->stages; k-- > 0 && st == GS_OK;) {
        n->whole[k] = n->rows[k];
        if (rests_too && k >= r->pass->first_stage && k < r->pass->first_stage + r->pass->stages)
            st = find_rest(r, k);
        for (gs_array_use u = {0}; gs_stage_next_use(&p->stage[k], &u);)
            n->zeroed[u.array] = GS_MAX(n->zeroed[u.array], use_levels(r, k, &u));
    }
    return st;
}

/* ---- the needs of a pass ---- */

static gs_status take_needs(gs_hop_needs *n, const gs_program *p)
{
    uint32_t **const member[] = {&n->rows, &n->targets, &n->operands, &n->zeroed, &n->whole};
    const uint32_t most = GS_MAX(p->stages, p->arrays) + 1;
    bool all = (n->rest = gs_calloc(most, sizeof(*n->rest))) != NULL;

    n->stages = p->stages;
    for (size_t k = 0; k < GS_ARRAY_LEN(member); k++)
        all &= (*member[k] = gs_calloc(most, sizeof(**member[k]))) != NULL;
    return all ? GS_OK : gs_fail(GS_ENOMEM, "out of memory for the rows that a batch's loss sees");
}

/* Which rows does each stage run for? */
static gs_status find_rows(gs_hop_needs *n, const gs_program *p, uint32_t train, bool all)
{
    const gs_chunk_table chunks = {.vertices = n->levels * ROWS, .parts = 1, .interval_rows = n->levels * ROWS};
    const uint64_t first = 1;
    const uint64_t **const reported = gs_calloc(p->passes + 1, sizeof(*reported));
    gs_row_sets sets = {0};

    if (reported == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the rows that a batch's loss sees");
    if (!all)
        reported[train] = &first;
    const gs_row_sets_config config = {.program = p, .chunks = &chunks, .granules = gs_granules_of(&chunks, ROWS),
                                       .train = &first, .reported = reported, .few_loads = true,
                                       .reach = reach, .context = n};
    const gs_status st = gs_row_sets_find(&sets, &config);
    for (uint32_t k = 0; k < p->stages && st == GS_OK; k++) {
        n->rows[k] = levels_of(n, &sets, sets.stage[k].rows);
        n->targets[k] = levels_of(n, &sets, sets.stage[k].targets);
        n->operands[k] = levels_of(n, &sets, sets.stage[k].operands);
    }
    gs_row_sets_drop(&sets);
    gs_free(reported);
    return st;
}

gs_status gs_hop_needs_find(gs_hop_needs *out, const gs_program *p, uint32_t train, uint32_t hops, gs_hop_cut cut)
{
    gs_hop_needs n = {.levels = hops == 0 ? 2 : hops + 1, .layered = hops > 0};
    rests r = {.needs = &n, .p = p, .pass = &p->pass[train]};
    gs_status st = take_needs(&n, p);

    if (st == GS_OK)
        st = find_rows(&n, p, train, cut == GS_CUT_NOTHING);
    if (st == GS_OK)
        st = open_rests(&r);
    if (st == GS_OK)
        st = find_reads(&r, cut == GS_CUT_RESTS);
    close_rests(&r);
    if (st == GS_OK)
        *out = n;
    else
        gs_hop_needs_drop(&n);
    return st;
}

void gs_hop_needs_drop(gs_hop_needs *n)
{
    for (uint32_t k = 0; n->rest != NULL && k < n->stages; k++)
        gs_stage_drop_rest(&n->rest[k]);
    gs_free(n->rest);
    gs_free(n->rows);
    gs_free(n->targets);
    gs_free(n->operands);
    gs_free(n->zeroed);
    gs_free(n->whole);
    *n = (gs_hop_needs){0};
}

uint32_t gs_hop_rows(const gs_batch *b, uint32_t levels)
{
    if (levels == 0)
        return 0;
    if (b->hops == 0)
        return levels == 1 ? b->targets : b->vertices;
    return b->hop_end[GS_MIN(levels - 1, b->hops)];
}
