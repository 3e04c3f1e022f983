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

/* Hops whose rows of an array a stage may read. */
static uint32_t read_levels(const gs_hop_needs *n, const gs_stage *s, uint32_t stage, gs_use_role role)
{
    const uint32_t targets = n->targets[stage];
    if (role == GS_USE_STORE || role == GS_USE_BACK)
        return 0;
    if (role != GS_USE_OPERAND && role != GS_USE_SCALE)
        return n->rows[stage];
    if (s->direction == GS_BY_SOURCE)
        return n->operands[stage];
    return targets == 0 ? 0 : n->layered ? GS_MIN(targets + 1, n->levels) : n->levels;
}

/* How far each array is read, also behind the rows that its stage runs for. Results are read when the pass is over. */
static void find_zeroed(gs_hop_needs *n, const gs_program *p)
{
    for (uint32_t a = 0; a < p->arrays; a++)
        n->zeroed[a] = p->array[a].result ? n->levels : 0;
    for (uint32_t k = 0; k < p->stages; k++)
        for (gs_array_use u = {0}; gs_stage_next_use(&p->stage[k], &u);)
            n->zeroed[u.array] = GS_MAX(n->zeroed[u.array], read_levels(n, &p->stage[k], k, u.role));
}

gs_status gs_hop_needs_find(gs_hop_needs *out, const gs_program *p, uint32_t train, uint32_t hops, bool all)
{
    gs_hop_needs n = {.levels = hops == 0 ? 2 : hops + 1, .layered = hops > 0};
    const gs_chunk_table chunks = {.vertices = n.levels * ROWS, .parts = 1, .interval_rows = n.levels * ROWS};
    const uint64_t first = 1;
    const uint64_t **const reported = gs_calloc(p->passes + 1, sizeof(*reported));
    uint32_t **const member[] = {&n.rows, &n.targets, &n.operands, &n.zeroed};
    const uint32_t most = GS_MAX(p->stages, p->arrays) + 1;
    gs_row_sets sets = {0};
    gs_status st = reported == NULL ? GS_ENOMEM : GS_OK;

    for (size_t k = 0; k < GS_ARRAY_LEN(member); k++)
        if ((*member[k] = gs_calloc(most, sizeof(**member[k]))) == NULL)
            st = GS_ENOMEM;
    if (st != GS_OK)
        st = gs_fail(st, "out of memory for the rows that a batch's loss sees");
    else if (!all)
        reported[train] = &first;
    const gs_row_sets_config config = {.program = p, .chunks = &chunks, .granules = gs_granules_of(&chunks, ROWS),
                                       .train = &first, .reported = reported, .few_loads = true,
                                       .reach = reach, .context = &n};
    if (st == GS_OK && (st = gs_row_sets_find(&sets, &config)) == GS_OK) {
        for (uint32_t k = 0; k < p->stages; k++) {
            n.rows[k] = levels_of(&n, &sets, sets.stage[k].rows);
            n.targets[k] = levels_of(&n, &sets, sets.stage[k].targets);
            n.operands[k] = levels_of(&n, &sets, sets.stage[k].operands);
        }
        find_zeroed(&n, p);
        *out = n;
        n = (gs_hop_needs){0};
    }
    gs_row_sets_drop(&sets);
    gs_hop_needs_drop(&n);
    gs_free(reported);
    return st;
}

void gs_hop_needs_drop(gs_hop_needs *n)
{
    gs_free(n->rows);
    gs_free(n->targets);
    gs_free(n->operands);
    gs_free(n->zeroed);
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
