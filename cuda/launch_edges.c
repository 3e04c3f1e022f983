/* Kernels over the edges of a chunk: sums of rows, and those of edge programs. */
#include <string.h>

#include "base/philox.h"
#include "base/size.h"
#include "cuda/cuda_device.h"
#include "cuda/launch.h"
#include "cuda/gpu_params.h"
#include "cuda/streams.h"

/* ---- kernels ---- */

_Static_assert(sizeof(gs_edge_args) <= 4096, "arguments of a kernel are at most 4 KiB");

/* Bytes of the sums of a piece, which may begin one target and end another. */
static uint64_t sums_bytes(const gs_edge_kernel *k) { return 2 * sizeof(float) * (uint64_t)k->row_floats; }

/* Stretches that the edges of a chunk are cut in for hubs, at the most: by the kernel and the budget alone. */
static uint32_t stretches_of(uint64_t hub_bytes, const gs_edge_kernel *k)
{
    return (uint32_t)GS_MAX(GS_MIN(hub_bytes / GS_MAX(sums_bytes(k), 1), GS_CUDA_PIECES), 1u);
}

uint32_t gs_cuda_piece_edges(uint64_t hub_bytes, const gs_edge_kernel *k, uint32_t edges)
{
    const uint32_t few = GS_MIN(edges / GS_CUDA_FEW_PIECES, GS_CUDA_FEW_MOST);
    const uint32_t many = GS_MIN(edges / GS_CUDA_PIECES, GS_CUDA_PIECE_MOST);
    const uint32_t each = GS_MAX(GS_MAX(few, many), GS_CUDA_PIECE_LEAST);
    return GS_MAX(each, (uint32_t)gs_div_up(edges, stretches_of(hub_bytes, k)));
}

static uint64_t hub_share(const gs_cuda *c)
{
    return gs_cuda_share(c, GS_CUDA_HUB_PARTS, GS_CUDA_HUB_LEAST, GS_CUDA_HUB_BYTES);
}

uint64_t gs_cuda_hub_bytes(const gs_cuda *c, const gs_edge_kernel *k)
{
    return k->row_floats > 0 ? GS_MAX(hub_share(c), sums_bytes(k)) : 0;
}

static gs_cuda_edges edges_of(const gs_edges *e)
{
    return (gs_cuda_edges){.chunk = {.target = e->target,
                                     .index = e->index,
                                     .start = e->start,
                                     .type = e->type,
                                     .weight = e->weight,
                                     .targets = e->targets,
                                     .edges = (uint32_t)e->end},
                           .all = {.index_bytes = e->index_bytes, .type_bytes = e->type == NULL ? 0 : e->type_bytes,
                                   .feature_type = e->feature_type == GS_F32    ? GS_FEATURE_F32
                                                   : e->feature_type == GS_BF16 ? GS_FEATURE_BF16
                                                                                : GS_FEATURE_F16},
                           .largest = e->largest};
}

/* ---- launches of several chunks ---- */

/* Hubs are cut by the chunk's size, so that results do not depend on what is launched when. Where no target has more
 * edges than a piece, there is nothing to cut, and the sums are the same as if there were pieces. */
static void cut_hubs(const gs_cuda *c, gs_edge_chunk *chunk, const gs_edge_kernel *k, uint64_t largest)
{
    chunk->piece_edges = gs_cuda_piece_edges(hub_share(c), k, chunk->edges);
    chunk->pieces = 0;
    if (chunk->edges > chunk->piece_edges && (largest == 0 || largest > chunk->piece_edges))
        chunk->pieces = (uint32_t)gs_div_up(chunk->edges, chunk->piece_edges);
}

static uint64_t blocks_of(const gs_edge_kernel *k, uint64_t items)
{
    return gs_div_up(items, GS_BLOCK_LANES / k->lanes);
}

/* Has the launch room for one more chunk, with which it has all in common that chunks must have? */
static bool takes(const gs_cuda *c, const gs_cuda_edge_code *code, const gs_edge_common *all,
                  const gs_edge_chunk *chunk)
{
    const gs_cuda_held *const h = code->held;
    const uint64_t slots = h->slots + 2ull * chunk->pieces;
    return memcmp(&h->args.all, all, sizeof(*all)) == 0 && h->args.chunks < GS_EDGE_CHUNKS &&
           (h->args.chunks + 1) * code->k.owns <= GS_EDGE_POINTERS &&
           slots * code->k.row_floats * sizeof(float) <= c->state.scratch_bytes &&
           h->blocks + blocks_of(&code->k, chunk->targets + 2ull * chunk->pieces) <= INT32_MAX;
}

/* Launches the chunks that are held, if there are any, and their hubs' pieces are added up. */
static gs_status launch_held(gs_cuda *c, const gs_cuda_edge_code *code)
{
    const gs_edge_kernel *const k = &code->k;
    gs_cuda_held *const h = code->held;
    gs_status st = gs_cuda_launch(c, code->run, h->blocks, k->slices,
                                  GS_BLOCK_LANES / k->lanes * k->shared_floats * (uint32_t)sizeof(float), &h->args,
                                  k->name);
    if (st == GS_OK && !k->keeps)
        st = gs_cuda_launch(c, code->merge, h->merges, k->slices, 0, &h->args, k->name);
    h->args.chunks = 0;
    h->blocks = h->merges = h->slots = 0;
    return st;
}

/* One more chunk, with its own pointers own[code->k.owns]; launched now, or with those that come after it. */
static gs_status add_chunk(gs_cuda *c, const gs_cuda_edge_code *code, const gs_cuda_edges *e, float *const *own)
{
    gs_cuda_held *const h = code->held;
    gs_edge_chunk chunk = e->chunk;
    gs_status st = GS_OK;

    cut_hubs(c, &chunk, &code->k, e->largest);
    if (h->args.chunks > 0 && !takes(c, code, &e->all, &chunk))
        st = launch_held(c, code);
    chunk.partial = (float *)(c->state.at + c->state.scratch_offset) + h->slots * code->k.row_floats;
    chunk.first_block = (uint32_t)h->blocks;
    chunk.first_merge = (uint32_t)h->merges;
    h->blocks += blocks_of(&code->k, chunk.targets + 2ull * chunk.pieces);
    h->merges += blocks_of(&code->k, 2ull * chunk.pieces);
    h->slots += 2ull * chunk.pieces;
    h->args.all = e->all;
    h->args.owns = code->k.owns;
    memcpy(&h->args.own[h->args.chunks * code->k.owns], own, code->k.owns * sizeof(*own));
    h->args.chunk[h->args.chunks++] = chunk;
    /* steps of a burst by type find what the ones before have made */
    return st == GS_OK && (!c->grouping || e->all.place != NULL) ? launch_held(c, code) : st;
}

/* Of what the launches of a group ask, one launch of each kernel. */
gs_status gs_cuda_begin_group(void *context)
{
    gs_cuda *const c = context;
    const gs_status st = gs_cuda_begin(c);
    c->grouping = true;
    return st;
}

gs_status gs_cuda_end_group(void *context, gs_status st)
{
    gs_cuda *const c = context;
    c->grouping = false;
    for (uint32_t i = 0; i < c->code.edges; i++) {
        gs_cuda_held *const h = c->code.edge[i].held;
        if (st == GS_OK && h->args.chunks > 0)
            st = launch_held(c, &c->code.edge[i]);
        h->args.chunks = 0;
        h->blocks = h->merges = h->slots = 0;
    }
    return gs_cuda_end(c, st);
}

/* ---- sums of rows ---- */

static const gs_cuda_edge_code *find_rows(const gs_cuda *c, const gs_row_sums *rows)
{
    for (uint32_t i = 0; i < c->code.edges; i++)
        if (gs_cuda_sums_rows(&c->code.edge[i], rows))
            return &c->code.edge[i];
    return NULL;
}

gs_status gs_cuda_run_edges(void *context, const gs_edge_launch *l)
{
    gs_cuda *const c = context;
    const gs_sum_types by = l->types == 0 ? GS_TYPES_NONE : l->pick ? GS_TYPES_OF_ROWS : GS_TYPES_OF_SUM;
    const gs_row_sums rows = {by, l->width, GS_MAX(l->types, 1), l->dtype, l->scale != NULL};
    const gs_cuda_edge_code *const code = find_rows(c, &rows);
    gs_cuda_edges e = edges_of(&l->edges);
    gs_status st = gs_cuda_begin(c);

    if (code == NULL)
        st = gs_fail(GS_EINVAL, "device cuda: not prepared for sums of%s rows of %u %s of %u types",
                     rows.scaled ? " scaled" : "", l->width, gs_dtype_name(l->dtype), rows.types);
    e.chunk.weight = NULL;
    e.all.feature_type = 0;
    if (l->types == 0) {
        e.chunk.type = NULL;
        e.all.type_bytes = 0;
    }
    e.all.in[0] = l->operand;
    e.all.in[1] = l->scale;
    if (st == GS_OK)
        st = add_chunk(c, code, &e, &l->acc);
    return gs_cuda_end(c, st);
}

/* ---- kernels of edge programs ---- */

static float *own_of(const gs_cuda *c, const gs_cuda_edge_run *r, const gs_edge_kernel *k, const gs_kernel_own *own)
{
    if (own->kind == GS_OWN_FEATURES)
        return (float *)(uintptr_t)r->l->edges.feature;
    const gs_accumulator *const sum = &r->l->sum[k->sum[own->kind == GS_OWN_ROWS ? 0 : own->index]];
    return own->kind == GS_OWN_ROWS      ? (float *)c->where[own->index]
           : own->kind == GS_OWN_ACC     ? sum->acc
           : own->kind == GS_OWN_MAXIMUM ? sum->maximum
                                         : sum->norm;
}

/* Keys of Philox's rounds for the kernel's first mask (kernels/common.cu). */
static void make_round_keys(gs_edge_common *all, const gs_edge_program_launch *l, uint32_t site)
{
    uint32_t key[2];
    gs_random_edge_key(key, l->seed, site, l->epoch);
    for (uint32_t i = 0; i < GS_ROUND_KEYS / 2; i++) {
        all->round[2 * i] = key[0] + i * GS_PHILOX_W0;
        all->round[2 * i + 1] = key[1] + i * GS_PHILOX_W1;
    }
}

/* One kernel; `kept`: the table of one that keeps rows. And all that the stage has, but those. */
static gs_status run_edge_kernel(gs_cuda *c, const gs_cuda_edge_run *r, const gs_cuda_edge_code *code, float *kept)
{
    const gs_edge_kernel *const k = &code->k;
    float *own[GS_EDGE_OWNS];
    gs_cuda_edges e = r->edges;
    if (k->draws)
        make_round_keys(&e.all, r->l, k->site);
    for (uint32_t q = 0; q < k->inputs; q++)
        e.all.in[q] = (const float *)(k->input[q].param ? gs_cuda_param(c, k->input[q].index)
                                                        : c->where[k->input[q].index]);
    for (uint32_t q = 0; q < k->owns; q++)
        own[q] = k->keeps && k->own[q].kind == GS_OWN_ACC ? kept : own_of(c, r, k, &k->own[q]);
    return add_chunk(c, code, &e, own);
}

static gs_status run_edge_kernels(gs_cuda *c, const gs_cuda_edge_run *r)
{
    const uint32_t stage = (uint32_t)(r->l->stage - r->l->program->stage);
    for (uint32_t i = 0; i < c->code.edges; i++)
        if (c->code.edge[i].stage == stage && !c->code.edge[i].k.keeps)
            GS_TRY(run_edge_kernel(c, r, &c->code.edge[i], NULL));
    return GS_OK;
}

/* ---- products by type ----
 *
 * Products of edges by the matrix of their type (kernels/typed.cu): a launch's edges a portion at a time, each put in
 * order by type, multiplied, and then gone over by the stage's own kernels.
 *
 * A portion is as many edges as scratch is taken for when the program is prepared, so results depend on the program,
 * the budget and the chunk alone. What a portion holds is not known to the host, which says how many blocks there are
 * at the most; those without work end at once.
 */

#define ALIGNMENT 256u
#define PORTION_LEAST 4096u
#define PORTION_MOST (1u << 20)

/* ---- memory ---- */

/* Where things are behind the beginning of a portion's scratch, in bytes. */
typedef struct layout {
    uint64_t order, place, spare, count, total, table, partial, columns, bytes;
} layout;

static uint32_t sorted_stretches(uint32_t edges) { return (uint32_t)gs_div_up(edges, GS_SORT_EDGES); }
/* Pieces of types that have several are at least half full. */
static uint32_t slots_of(uint32_t edges) { return 2 * (uint32_t)gs_div_up(edges, GS_PIECE_ROWS); }

static uint64_t take(uint64_t *at, uint64_t bytes)
{
    const uint64_t here = *at;
    *at = gs_align_up(here + bytes, ALIGNMENT);
    return here;
}

static layout lay_out(const gs_typed_plan *b, uint32_t edges)
{
    const uint64_t each = edges * sizeof(uint32_t);
    layout l;
    uint64_t at = 0;
    l.order = take(&at, each);
    l.place = take(&at, each);
    l.spare = take(&at, each);
    l.count = take(&at, (uint64_t)GS_SORT_DIGITS * sorted_stretches(edges) * sizeof(uint32_t));
    l.total = take(&at, GS_SORT_DIGITS * sizeof(uint32_t));
    l.table = take(&at, 4 * (b->types + 1ull + (b->mixed ? 2 : 0)) * sizeof(uint32_t));
    l.partial = take(&at, slots_of(edges) * b->numbers * sizeof(float));
    l.columns = take(&at, (uint64_t)edges * b->columns * sizeof(float));
    l.bytes = at;
    return l;
}

/* Edges of a portion. */
static uint32_t portion_of(const gs_cuda *c, const gs_typed_plan *b)
{
    const uint64_t each = sizeof(float) * (3 + b->columns) + 2 * b->numbers * sizeof(float) / GS_PIECE_ROWS + 2;
    const uint64_t room = gs_cuda_share(c, GS_CUDA_TYPED_PARTS, 0, GS_CUDA_TYPED_BYTES);
    const uint64_t fit = room / each / GS_PIECE_ROWS * GS_PIECE_ROWS;
    if (c->portion_edges > 0)
        return c->portion_edges;
    return (uint32_t)GS_MIN(GS_MAX(fit, (uint64_t)PORTION_LEAST), (uint64_t)PORTION_MOST);
}

uint64_t gs_cuda_typed_bytes(const gs_cuda *c, const gs_typed_plan *b) { return lay_out(b, portion_of(c, b)).bytes; }

/* ---- a portion ---- */

typedef struct portion {
    gs_cuda *c;
    const gs_typed_plan *plan;
    gs_cuda_edge_run *run;
    layout at;
    gs_typed_args a;
} portion;

static void *place_of(const portion *k, uint64_t offset)
{
    return (void *)(k->c->state.at + k->c->state.typed_offset + offset);
}

static float *table_of(const portion *k, uint32_t reg)
{
    const uint32_t column = gs_typed_column(k->plan, reg);
    return column == GS_NONE ? NULL : (float *)place_of(k, k->at.columns) + (uint64_t)column * k->a.edges;
}

/* Where types and their parts begin. */
static void set_tables(gs_typed_args *a, gs_u32 *table)
{
    const uint64_t each = a->types + 1ull;
    a->begin = table;
    a->task = table + each;
    a->piece = table + 2 * each;
    a->slot = table + 3 * each;
}

static void set_portion(portion *k, uint32_t first, uint32_t edges)
{
    const gs_cuda_edges *const e = &k->run->edges;
    k->a = (gs_typed_args){.index = e->chunk.index, .type = k->plan->by_type ? e->chunk.type : NULL,
                           .index_bytes = e->all.index_bytes,
                           .type_bytes = e->all.type_bytes, .first_edge = first, .edges = edges,
                           .types = k->plan->types, .stretches = sorted_stretches(edges),
                           .order = place_of(k, k->at.order), .place = place_of(k, k->at.place),
                           .count = place_of(k, k->at.count), .total = place_of(k, k->at.total),
                           .partial = place_of(k, k->at.partial)};
    set_tables(&k->a, place_of(k, k->at.table));
    for (uint32_t i = 0; i < k->plan->steps; i++) /* kernels read products there; what is kept they make again */
        if (k->plan->step[i].kind == GS_TYPED_MULTIPLY)
            k->c->where[k->plan->step[i].y] = (gs_cu_memory)table_of(k, k->plan->step[i].y);
}

static gs_status launch(portion *k, enum gs_cuda_typed_fixed which, uint64_t blocks, uint32_t blocks_y,
                        uint32_t shared_words)
{
    return gs_cuda_launch(k->c, k->c->code.typed_fixed[which], blocks, blocks_y,
                          shared_words * (uint32_t)sizeof(gs_u32), &k->a, gs_cuda_typed_name(which));
}

/* Of edges in order: where types begin, and their parts. */
static gs_status find_parts(portion *k)
{
    GS_TRY(launch(k, GS_CUDA_TYPED_BEGINS, gs_cuda_blocks(k->a.edges + 1ull), 1, 0));
    return launch(k, GS_CUDA_TYPED_TASKS, 1, 1, GS_BLOCK_LANES);
}

/* order and place: one digit where types have no more. */
static gs_status sort(portion *k)
{
    const uint64_t blocks = gs_div_up(k->a.stretches, GS_BLOCK_LANES / 32);
    const uint32_t shared = GS_BLOCK_LANES / 32 * GS_SORT_DIGITS, digits = k->plan->types > GS_SORT_DIGITS ? 2 : 1;
    gs_u32 *const spare = place_of(k, k->at.spare);
    for (uint32_t d = 0; d < digits; d++) {
        k->a.shift = 8 * d;
        k->a.from = d == 0 ? NULL : spare;
        k->a.to = d + 1 == digits ? k->a.order : spare;
        GS_TRY(launch(k, GS_CUDA_TYPED_COUNT, blocks, 1, shared));
        GS_TRY(launch(k, GS_CUDA_TYPED_TOTALS, GS_SORT_DIGITS, 1, GS_BLOCK_LANES));
        GS_TRY(launch(k, GS_CUDA_TYPED_PLACE, blocks, 1, shared + GS_SORT_DIGITS));
    }
    return find_parts(k);
}

static gs_typed_rows rows_of(const portion *k, uint32_t reg)
{
    const float *const table = table_of(k, reg);
    return table != NULL ? (gs_typed_rows){.row = table}
                         : (gs_typed_rows){.row = (const float *)k->c->where[reg], .gathered = 1};
}

/* Parts of at most `rows` edges that the types have, at the most. */
static uint64_t most_parts(const portion *k, uint32_t rows)
{
    return gs_div_up(k->a.edges, rows) + GS_MIN(k->a.types, k->a.edges);
}

static const gs_cuda_typed_code *find(const gs_cuda *c, gs_typed_kind kind, uint32_t in, uint32_t out)
{
    for (uint32_t i = 0; i < c->code.typed_codes; i++)
        if (gs_cuda_makes_typed(&c->code.typed_code[i], kind, in, out))
            return &c->code.typed_code[i];
    return NULL; /* never: state.c wrote it */
}

static gs_status keep(portion *k, const gs_typed_step *s)
{
    for (uint32_t i = 0; i < k->c->code.edges; i++) {
        const gs_cuda_edge_code *const code = &k->c->code.edge[i];
        if (code->stage == k->plan->stage && code->k.keeps && code->k.kept == s->x)
            return run_edge_kernel(k->c, k->run, code, table_of(k, s->x));
    }
    return GS_OK;
}

static gs_status multiply(portion *k, const gs_typed_step *s)
{
    const gs_stage *const stage = k->run->l->stage;
    const gs_cuda_typed_code *const code = find(k->c, s->transposed ? GS_TYPED_PRODUCT_T : GS_TYPED_PRODUCT,
                                                stage->edge_reg[s->x].width, stage->edge_reg[s->y].width);
    k->a.x = rows_of(k, s->x);
    k->a.matrix = (const float *)gs_cuda_param(k->c, s->param) + s->part;
    k->a.each = s->each;
    k->a.stride = s->stride;
    k->a.made = table_of(k, s->y);
    return gs_cuda_launch(k->c, code->run, most_parts(k, GS_TASK_ROWS), code->k.blocks, code->k.shared_bytes, &k->a,
                          code->k.name);
}

static gs_status add_outer(portion *k, const gs_typed_step *s)
{
    const gs_stage *const stage = k->run->l->stage;
    const gs_cuda_typed_code *const code =
        find(k->c, GS_TYPED_OUTER, stage->edge_reg[s->x].width, stage->edge_reg[s->y].width);
    k->a.x = rows_of(k, s->x);
    k->a.y = rows_of(k, s->y);
    k->a.grad = (float *)gs_cuda_grad(k->c, s->param) + s->part;
    k->a.numbers = code->k.in * code->k.out;
    k->a.out = code->k.out;
    k->a.each = s->each;
    k->a.stride = s->stride;
    GS_TRY(gs_cuda_launch(k->c, code->run, most_parts(k, GS_PIECE_ROWS), code->k.blocks, code->k.shared_bytes, &k->a,
                          code->k.name));
    if (k->a.edges <= GS_PIECE_ROWS)
        return GS_OK;
    return launch(k, GS_CUDA_TYPED_MERGE, slots_of(k->a.edges), (uint32_t)gs_cuda_blocks(k->a.numbers), 0);
}

/* The portion in the same order, as if its edges were of one type: types would add to a matrix for all at once. */
static gs_status as_one_type(portion *one, const portion *k)
{
    *one = *k;
    one->a.type = NULL;
    one->a.types = 1;
    set_tables(&one->a, k->a.slot + k->a.types + 1);
    return find_parts(one);
}

static gs_status run_portion(portion *k)
{
    portion one = *k;
    GS_TRY(sort(k));
    if (k->plan->mixed)
        GS_TRY(as_one_type(&one, k));
    for (uint32_t i = 0; i < k->plan->steps; i++) {
        const gs_typed_step *const s = &k->plan->step[i];
        GS_TRY(s->kind == GS_TYPED_KEEP       ? keep(k, s)
               : s->kind == GS_TYPED_MULTIPLY ? multiply(k, s)
                                              : add_outer(k->plan->mixed && s->each == 0 ? &one : k, s));
    }
    return run_edge_kernels(k->c, k->run);
}

/* All that a stage with products by the type of edges does edge by edge. */
static gs_status run_typed(gs_cuda *c, gs_cuda_edge_run *r, const gs_typed_plan *b)
{
    const uint32_t whole = r->edges.chunk.edges, most = portion_of(c, b);
    portion k = {.c = c, .plan = b, .run = r, .at = lay_out(b, most)};
    for (uint32_t done = 0; done < whole; done += k.a.edges) {
        const uint32_t edges = GS_MIN(most, whole - done);
        set_portion(&k, done, edges);
        r->edges.all.first_edge = done;
        r->edges.chunk.edges = edges;
        r->edges.all.place = k.a.place;
        GS_TRY(run_portion(&k));
    }
    return GS_OK;
}

/* ---- edge programs ---- */

/* Runs the stage's work edge by edge. */
static gs_status run_kernels(gs_cuda *c, gs_cuda_edge_run *r)
{
    const gs_edge_program_launch *const l = r->l;
    const uint32_t stage = (uint32_t)(l->stage - l->program->stage);
    for (uint32_t q = 0; q < l->stage->edge_regs; q++)
        c->where[q] = (gs_cu_memory)l->rows[q];
    for (uint32_t i = 0; i < c->code.typed_stages; i++)
        if (c->code.typed[i].stage == stage)
            return run_typed(c, r, &c->code.typed[i]);
    return run_edge_kernels(c, r);
}

static gs_status run_program(gs_cuda *c, const gs_edge_program_launch *l)
{
    gs_cuda_edge_run r = {.l = l, .edges = edges_of(&l->edges)};
    gs_status st = gs_cuda_begin(c);
    r.edges.all.epoch = l->epoch;
    gs_random_key(r.edges.all.key, l->seed, GS_RANDOM_EDGES);
    if (st == GS_OK)
        st = run_kernels(c, &r);
    return gs_cuda_end(c, st);
}

static gs_status check_launch(const gs_cuda *c, const gs_edge_program_launch *l)
{
    const gs_stage *const s = l->stage;
    if (l->program != c->program)
        return gs_fail(GS_EINVAL, "device cuda: stage \"%s\" was not prepared", s->name);
    if (l->edges.type == NULL && gs_stage_has_types(s))
        return gs_fail(GS_EINVAL, "device cuda: stage \"%s\" takes columns by the type of edges that have none",
                       s->name);
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].kind == GS_SUM_OUTER && (l->grad == NULL || l->grad[s->sum[i].weight] == NULL))
            return gs_fail(GS_EINVAL, "device cuda: stage \"%s\", sum %u: no gradient of matrices that these rows fit",
                           s->name, i);
    return GS_OK;
}

gs_status gs_cuda_run_edge_program(void *context, const gs_edge_program_launch *l)
{
    gs_cuda *const c = context;
    const gs_device_pass alone = {.program = l->program, .param = l->param, .grad = l->grad};

    GS_TRY(check_launch(c, l));
    if (c->in_pass)
        return run_program(c, l);
    GS_TRY(gs_cuda_begin_pass(c, &alone));
    const gs_status st = run_program(c, l), ended = gs_cuda_end_pass(c);
    return st != GS_OK ? st : ended;
}
