/* batch_edges.c - which rows each stage needs, by the rule that prunes whole graphs, and its edges. */
#include "batch/batches_internal.h"

#include <string.h>

#include "base/dtype.h"
#include "schedule/row_sets.h"

/* ---- hops ----------------------------------------------------------------- */

/* The rule that prunes whole graphs, of a graph whose rows are the hops of a batch. */

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
    gs_hop_ends ends;
    uint32_t *made;             /* [arrays] hops whose rows are not known to be 0 */
    bool *zero, *unread, *read; /* [most registers] of the stage at hand */
    gs_arena arrays;
} rests;

static void free_rests(rests *r) { gs_arena_free(&r->arrays); }

static gs_status open_rests(rests *r)
{
    const gs_program *const p = r->p;
    uint32_t most = 1;

    for (uint32_t k = 0; k < p->stages; k++)
        most = GS_MAX(most, p->stage[k].regs);
    r->made = gs_arena_take(&r->arrays, p->arrays, sizeof(*r->made));
    r->zero = gs_arena_take(&r->arrays, most, sizeof(*r->zero));
    r->unread = gs_arena_take(&r->arrays, most, sizeof(*r->unread));
    r->read = gs_arena_take(&r->arrays, most, sizeof(*r->read));
    GS_NEED(!r->arrays.is_short, "out of memory for the rows that a batch's loss sees");
    for (uint32_t a = 0; a < p->arrays; a++)
        r->made[a] = a == r->ends.upstream ? 1 : r->needs->levels;
    for (uint32_t k = 0; k < p->stages; k++)
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
    GS_TRY(gs_stage_rest(&n->rest[stage], r->read, &shorter, s, &known));
    if (shorter)
        n->whole[stage] = end;
    return GS_OK;
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

    for (uint32_t a = 0; a < p->arrays; a++)
        n->zeroed[a] = a == r->ends.rows ? 1 : p->array[a].result ? n->levels : 0;
    for (uint32_t k = p->stages; k-- > 0;) {
        n->whole[k] = n->rows[k];
        if (rests_too)
            GS_TRY(find_rest(r, k));
        for (gs_array_use u = {0}; gs_stage_next_use(&p->stage[k], &u);)
            n->zeroed[u.array] = GS_MAX(n->zeroed[u.array], use_levels(r, k, &u));
    }
    return GS_OK;
}

/* ---- the needs of a pass ---- */

static gs_status take_needs(gs_hop_needs *n, const gs_program *p)
{
    const uint32_t most = GS_MAX(p->stages, p->arrays);

    n->stages = p->stages;
    n->rest = gs_arena_take(&n->arrays, most, sizeof(*n->rest));
    n->rows = gs_arena_take(&n->arrays, most, sizeof(*n->rows));
    n->targets = gs_arena_take(&n->arrays, most, sizeof(*n->targets));
    n->operands = gs_arena_take(&n->arrays, most, sizeof(*n->operands));
    n->zeroed = gs_arena_take(&n->arrays, most, sizeof(*n->zeroed));
    n->whole = gs_arena_take(&n->arrays, most, sizeof(*n->whole));
    return n->arrays.is_short ? gs_fail(GS_ENOMEM, "out of memory for the rows that a batch's loss sees") : GS_OK;
}

/* Which rows does each stage run for? */
static gs_status find_rows(gs_hop_needs *n, const gs_program *p, gs_hop_ends ends, bool all)
{
    const gs_chunk_table chunks = {.vertices = n->levels * ROWS, .parts = 1, .interval_rows = n->levels * ROWS};
    const uint64_t first = 1;
    const uint32_t of_train[] = {ends.rows, ends.upstream};
    GS_FREED const uint64_t **const reported = gs_calloc(p->passes + 1, sizeof(*reported));
    GS_ENDS(gs_row_sets_drop) gs_row_sets sets = {0};

    GS_NEED(reported != NULL, "out of memory for the rows that a batch's loss sees");
    for (uint32_t q = 0; q < p->passes && !all; q++)
        reported[q] = &first;
    const gs_row_sets_config config = {.program = p, .chunks = &chunks, .granules = gs_granules_of(&chunks, ROWS),
                                       .train = &first, .reported = reported, .few_loads = true,
                                       .of_train = of_train, .of_trains = ends.rows != GS_NONE ? 2 : 0,
                                       .reach = reach, .context = n};
    GS_TRY(gs_row_sets_find(&sets, &config));
    for (uint32_t k = 0; k < p->stages; k++) {
        n->rows[k] = levels_of(n, &sets, sets.stage[k].rows);
        n->targets[k] = levels_of(n, &sets, sets.stage[k].targets);
        n->operands[k] = levels_of(n, &sets, sets.stage[k].operands);
    }
    return GS_OK;
}

gs_status gs_hop_needs_find(gs_hop_needs *out, const gs_program *p, gs_hop_ends ends, uint32_t hops, gs_hop_cut cut)
{
    GS_ENDS(gs_hop_needs_drop) gs_hop_needs n = {.levels = hops == 0 ? 2 : hops + 1, .layered = hops > 0};
    GS_ENDS(free_rests) rests r = {.needs = &n, .p = p, .ends = ends};

    GS_TRY(take_needs(&n, p));
    GS_TRY(find_rows(&n, p, ends, cut == GS_CUT_NOTHING));
    GS_TRY(open_rests(&r));
    GS_TRY(find_reads(&r, cut == GS_CUT_RESTS));
    *out = n;
    n = (gs_hop_needs){0};
    return GS_OK;
}

void gs_hop_needs_drop(gs_hop_needs *n)
{
    for (uint32_t k = 0; n->rest != NULL && k < n->stages; k++)
        gs_stage_drop_rest(&n->rest[k]);
    gs_arena_free(&n->arrays);
    *n = (gs_hop_needs){0};
}

/* Rows of this batch in the first `levels` hops. */
static uint32_t hop_rows(const gs_batch *b, uint32_t levels)
{
    if (levels == 0)
        return 0;
    if (b->hops == 0)
        return levels == 1 ? b->targets : b->vertices;
    return b->hop_end[GS_MIN(levels - 1, b->hops)];
}

/* ---- memory ---------------------------------------------------------------- */

static uint32_t expanded_levels(const gs_hop_needs *n) { return n->layered ? n->levels - 1 : n->levels; }

/* Does stage k need edges by source of its own? */
static bool flips(const gs_hop_needs *n, const gs_program *p, uint32_t k)
{
    return p->stage[k].sums > 0 && p->stage[k].direction == GS_BY_SOURCE && n->operands[k] < expanded_levels(n);
}

static gs_batch_flip *flip_of(gs_batch_edges *e, uint32_t operands)
{
    for (uint32_t i = 0; i < e->flips; i++)
        if (e->flip[i].operands == operands)
            return &e->flip[i];
    return NULL;
}

static gs_status add_flip(gs_batch_edges *e, uint32_t operands, const gs_batch_limits *limits, uint64_t edges)
{
    const uint32_t ix = gs_batch_index_bytes(limits);
    const gs_edge_data data = limits->data;
    gs_batch_flip *const f = &e->flip[e->flips++];

    *f = (gs_batch_flip){.operands = operands, .rows = GS_MIN(limits->vertices, limits->edges), .edges = edges};
    f->target = gs_arena_take(&e->arrays, f->rows + 1, ix);
    f->start = gs_arena_take(&e->arrays, limits->vertices + 2ull, sizeof(*f->start));
    f->index = gs_arena_take(&e->arrays, edges + 1, ix);
    f->type = data.type_bytes > 0 ? gs_arena_take(&e->arrays, edges + 1, data.type_bytes) : NULL;
    f->weight = data.weights ? gs_arena_take(&e->arrays, edges + 1, sizeof(*f->weight)) : NULL;
    f->feature = data.feature_bytes > 0 ? gs_arena_take(&e->arrays, edges + 1, data.feature_bytes) : NULL;
    GS_NEED(!e->arrays.is_short, "out of memory for the edges of a batch");
    e->bytes += f->rows * ix + limits->vertices * sizeof(*f->start) +
                edges * (ix + data.type_bytes + (data.weights ? sizeof(*f->weight) : 0) + data.feature_bytes);
    return GS_OK;
}

void gs_batch_edges_use(gs_batch_edges *e, uint32_t set)
{
    e->edges = e->set[set].edges;
    e->rows = e->set[set].rows;
    e->whole = e->rows + e->program->stages;
    e->zeroed = e->whole + e->program->stages;
}

gs_status gs_batch_edges_open(gs_batch_edges *e, gs_hop_needs *needs, const gs_program *p,
                              const gs_batch_limits *limits, const uint64_t *edges_of)
{
    *e = (gs_batch_edges){.needs = *needs, .program = p};
    *needs = (gs_hop_needs){0};
    for (uint32_t k = 0; k < GS_BATCH_SETS; k++) {
        e->set[k].edges = gs_arena_take(&e->arrays, p->stages, sizeof(*e->edges));
        e->set[k].rows = gs_arena_take(&e->arrays, 2ull * p->stages + p->arrays, sizeof(*e->rows));
    }
    GS_NEED(!e->arrays.is_short, "out of memory for the edges of a batch");
    gs_batch_edges_use(e, 0);
    for (uint32_t k = 0; k < p->stages; k++)
        if (flips(&e->needs, p, k) && flip_of(e, e->needs.operands[k]) == NULL)
            GS_TRY(add_flip(e, e->needs.operands[k], limits, edges_of[e->needs.operands[k]]));
    return GS_OK;
}

void gs_batch_edges_close(gs_batch_edges *e)
{
    gs_arena_free(&e->arrays);
    gs_hop_needs_drop(&e->needs);
    *e = (gs_batch_edges){0};
}

/* ---- a batch ---------------------------------------------------------------- */

/* Targets below `rows`, which are the first ones. */
static uint32_t targets_below(const gs_edges *e, uint32_t rows)
{
    uint32_t first = 0, end = e->targets;
    GS_BISECT(first, end, gs_index_at(e->target, e->index_bytes, middle) < rows);
    return first;
}

/* One edge of `v` to its place in `f`. */
static void put_edge(gs_batch_flip *f, const gs_chunk_view *v, uint32_t target, uint64_t from, uint32_t to)
{
    gs_index_put(f->index, v->index_bytes, to, target);
    if (v->weight != NULL)
        f->weight[to] = v->weight[from];
    if (v->type_bytes > 0)
        gs_type_put(f->type, v->type_bytes, to, gs_type_at(v->type, v->type_bytes, from));
    if (v->feature != NULL)
        memcpy(f->feature + (uint64_t)to * v->feature_bytes, (const char *)v->feature + from * v->feature_bytes,
               v->feature_bytes);
}

/* The first `targets` of `v`, by their operands, which are below `rows`: a counting sort, so that the edges of an
 * operand keep the order of the targets. */
static gs_edges flip(gs_batch_flip *f, const gs_chunk_view *v, uint32_t targets, uint32_t rows, gs_dtype feature_type)
{
    const uint32_t edges = targets == 0 ? 0 : v->start[targets], ix = v->index_bytes;
    uint32_t *const start = f->start, used = 0, largest = 0;

    memset(start, 0, (rows + 2ull) * sizeof(*start));
    for (uint32_t k = 0; k < edges; k++)
        start[gs_index_at(v->index, ix, k) + 2]++;
    for (uint32_t r = 0; r < rows; r++)
        start[r + 2] += start[r + 1];
    for (uint32_t t = 0; t < targets; t++)
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++)
            put_edge(f, v, gs_index_at(v->target, ix, t), k, start[gs_index_at(v->index, ix, k) + 1]++);
    for (uint32_t r = 0; r < rows; r++) { /* start[r] is where r begins now; rows without edges go */
        if (start[r] == start[r + 1])
            continue;
        largest = GS_MAX(largest, start[r + 1] - start[r]);
        gs_index_put(f->target, ix, used, r);
        start[used++] = start[r];
    }
    start[used] = edges;
    f->targets = used;
    f->taken = edges;
    return (gs_edges){.index_bytes = ix, .targets = used, .target = f->target, .start = start, .index = f->index,
                      .weight = v->weight == NULL ? NULL : f->weight, .type = v->type == NULL ? NULL : f->type,
                      .type_bytes = v->type_bytes, .largest = largest,
                      .feature = v->feature == NULL ? NULL : f->feature, .feature_type = feature_type};
}

void gs_batch_edges_bind(gs_batch_edges *e, const uint32_t *hop)
{
    const gs_hop_needs *const n = &e->needs;
    const uint32_t vertices = hop[n->levels];

    for (uint32_t a = 0; a < e->program->arrays; a++)
        e->zeroed[a] = gs_hop_aligned(hop[n->zeroed[a]], vertices);
    for (uint32_t k = 0; k < e->program->stages; k++) {
        e->rows[k] = hop[n->rows[k]];
        e->whole[k] = GS_MIN(gs_hop_aligned(hop[n->whole[k]], vertices), e->rows[k]);
    }
    e->binding = (gs_binding){.vertices = vertices, .rows = e->rows, .whole = e->whole, .rest = n->rest,
                              .zeroed = e->zeroed};
}

void gs_batch_edges_fill(gs_batch_edges *e, const gs_batch *b)
{
    const gs_hop_needs *const n = &e->needs;
    gs_edges flipped[GS_BATCH_FLIPS], whole[2] = {{0}, {0}};
    uint32_t hop[GS_SAMPLE_HOPS + 2];

    for (uint32_t k = 0; k <= n->levels; k++)
        hop[k] = hop_rows(b, k);
    gs_batch_edges_bind(e, hop);
    for (int d = 0; d < 2 && b->edges > 0; d++)
        whole[d] = gs_exec_edges_of(&b->view[d], e->feature_type);
    for (uint32_t i = 0; i < e->flips; i++) {
        const uint32_t operands = e->flip[i].operands;
        const uint32_t targets = b->edges == 0 ? 0 : targets_below(&whole[0], hop[operands]);
        e->flip[i].targets = e->flip[i].taken = 0;
        flipped[i] = targets == 0 ? (gs_edges){0}
                                  : flip(&e->flip[i], &b->view[0], targets, hop[operands + 1], e->feature_type);
    }
    for (uint32_t k = 0; k < e->program->stages; k++) {
        const gs_stage *const s = &e->program->stage[k];
        if (s->sums == 0)
            continue;
        e->edges[k] = flips(n, e->program, k) ? flipped[flip_of(e, n->operands[k]) - e->flip] : whole[s->direction];
        e->edges[k].targets = targets_below(&e->edges[k], hop[n->targets[k]]);
        e->edges[k].end = e->edges[k].targets == 0 ? 0 : e->edges[k].start[e->edges[k].targets];
    }
}

/* ---- where they are --------------------------------------------------------- */

/* Does a stage go over edges in these bytes? */
static bool are_used(const gs_batch_edges *e, const void *bytes, uint64_t length)
{
    const uintptr_t from = (uintptr_t)bytes;
    for (uint32_t k = 0; k < e->program->stages; k++) {
        const uintptr_t at = (uintptr_t)e->edges[k].start;
        if (e->edges[k].targets > 0 && at >= from && at < from + length)
            return true;
    }
    return false;
}

uint32_t gs_batch_edges_pieces(const gs_batch_edges *e, const gs_batch *b, gs_exec_piece piece[GS_BATCH_PIECES])
{
    uint32_t n = 0;

    for (int d = 0; d < 2 && b->edges > 0; d++)
        if (are_used(e, b->bytes[d], b->chunk[d].length))
            piece[n++] = (gs_exec_piece){b->bytes[d], b->chunk[d].length};
    if (b->loss_weight != NULL && b->targets > 0)
        piece[n++] = (gs_exec_piece){b->loss_weight, b->targets * sizeof(*b->loss_weight)};
    for (uint32_t i = 0; i < e->flips; i++) {
        const gs_batch_flip *const f = &e->flip[i];
        const uint64_t ix = b->edges > 0 ? b->view[0].index_bytes : 0, edges = f->taken;
        if (f->targets == 0)
            continue;
        piece[n++] = (gs_exec_piece){f->target, f->targets * ix};
        piece[n++] = (gs_exec_piece){f->start, (f->targets + 1ull) * sizeof(*f->start)};
        piece[n++] = (gs_exec_piece){f->index, edges * ix};
        if (f->type != NULL)
            piece[n++] = (gs_exec_piece){f->type, edges * b->view[0].type_bytes};
        if (f->weight != NULL)
            piece[n++] = (gs_exec_piece){f->weight, edges * sizeof(*f->weight)};
        if (f->feature != NULL)
            piece[n++] = (gs_exec_piece){f->feature, edges * b->view[0].feature_bytes};
    }
    return n;
}

uint64_t gs_batch_edges_piece_bytes(const gs_batch_edges *e, const gs_batch_limits *limits, uint32_t factors)
{
    return limits->chunk_bytes[0] + limits->chunk_bytes[1] + e->bytes + factors * sizeof(float) +
           GS_BATCH_PIECES * GS_BLOCK_BYTES;
}
