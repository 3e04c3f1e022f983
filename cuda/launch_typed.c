/* Products of edges by the matrix of their type (kernels/typed.cu): a launch's edges a portion at a time, each put in
 * order by type, multiplied, and then gone over by the stage's own kernels.
 *
 * A portion is as many edges as scratch is taken for when the program is prepared, so results depend on the program,
 * the budget and the chunk alone. What a portion holds is not known to the host, which says how many blocks there are
 * at the most; those without work end at once.
 */
#include "cuda/launch_typed.h"

#include "base/size.h"
#include "cuda/cuda_device.h"
#include "cuda/streams.h"

#define ALIGNMENT 256u
#define PORTION_LEAST 4096u
#define PORTION_MOST (1u << 20)

/* ---- memory ---- */

/* Where things are behind the beginning of a portion's scratch, in bytes. */
typedef struct layout {
    uint64_t order, place, spare, count, total, table, partial, columns, bytes;
} layout;

static uint32_t stretches_of(uint32_t edges) { return (uint32_t)gs_div_up(edges, GS_SORT_EDGES); }
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
    l.count = take(&at, (uint64_t)GS_SORT_DIGITS * stretches_of(edges) * sizeof(uint32_t));
    l.total = take(&at, GS_SORT_DIGITS * sizeof(uint32_t));
    l.table = take(&at, 4 * (b->types + 1ull) * sizeof(uint32_t));
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

static void set_portion(portion *k, uint32_t first, uint32_t edges)
{
    const gs_cuda_edges *const e = &k->run->edges;
    gs_u32 *const table = place_of(k, k->at.table);
    const uint64_t each = k->plan->types + 1ull;
    k->a = (gs_typed_args){.index = e->chunk.index, .type = e->chunk.type, .index_bytes = e->all.index_bytes,
                           .type_bytes = e->all.type_bytes, .first_edge = first, .edges = edges,
                           .types = k->plan->types, .stretches = stretches_of(edges),
                           .order = place_of(k, k->at.order), .place = place_of(k, k->at.place),
                           .count = place_of(k, k->at.count), .total = place_of(k, k->at.total),
                           .begin = table, .task = table + each, .piece = table + 2 * each, .slot = table + 3 * each,
                           .partial = place_of(k, k->at.partial)};
    for (uint32_t i = 0; i < k->plan->steps; i++) /* kernels read products there; what is kept they make again */
        if (k->plan->step[i].kind == GS_TYPED_MULTIPLY)
            k->c->where[k->plan->step[i].y] = (gs_cu_memory)table_of(k, k->plan->step[i].y);
}

static gs_status launch(portion *k, enum gs_cuda_typed_fixed which, uint64_t blocks, uint32_t blocks_y,
                        uint32_t shared_words)
{
    static const char *const name[] = GS_CUDA_TYPED_NAMES;
    return gs_cuda_launch(k->c, k->c->code.typed_fixed[which], blocks, blocks_y,
                          shared_words * (uint32_t)sizeof(gs_u32), &k->a, name[which]);
}

/* order and place: one digit where types have no more. */
static gs_status sort(portion *k)
{
    const uint64_t blocks = gs_div_up(k->a.stretches, GS_BLOCK_LANES / 32);
    const uint32_t shared = GS_BLOCK_LANES / 32 * GS_SORT_DIGITS, digits = k->plan->types > GS_SORT_DIGITS ? 2 : 1;
    gs_u32 *const spare = place_of(k, k->at.spare);
    gs_status st = GS_OK;
    for (uint32_t d = 0; d < digits && st == GS_OK; d++) {
        k->a.shift = 8 * d;
        k->a.from = d == 0 ? NULL : spare;
        k->a.to = d + 1 == digits ? k->a.order : spare;
        if ((st = launch(k, GS_CUDA_TYPED_COUNT, blocks, 1, shared)) == GS_OK &&
            (st = launch(k, GS_CUDA_TYPED_TOTALS, GS_SORT_DIGITS, 1, GS_BLOCK_LANES)) == GS_OK)
            st = launch(k, GS_CUDA_TYPED_PLACE, blocks, 1, shared + GS_SORT_DIGITS);
    }
    if (st == GS_OK && (st = launch(k, GS_CUDA_TYPED_BEGINS, gs_cuda_blocks(k->a.edges + 1ull), 1, 0)) == GS_OK)
        st = launch(k, GS_CUDA_TYPED_TASKS, 1, 1, GS_BLOCK_LANES);
    return st;
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
    return NULL; /* never: prepare.c wrote it */
}

static gs_status keep(portion *k, const gs_typed_step *s)
{
    for (uint32_t i = 0; i < k->c->code.edges; i++) {
        const gs_cuda_edge_code *const code = &k->c->code.edge[i];
        if (code->stage == k->plan->stage && code->k.keeps && code->k.kept == s->x)
            return gs_cuda_run_edge_kernel(k->c, k->run, code, table_of(k, s->x));
    }
    return GS_OK;
}

static gs_status multiply(portion *k, const gs_typed_step *s)
{
    const gs_stage *const stage = k->run->l->stage;
    const gs_cuda_typed_code *const code = find(k->c, s->transposed ? GS_TYPED_PRODUCT_T : GS_TYPED_PRODUCT,
                                                stage->edge_reg[s->x].width, stage->edge_reg[s->y].width);
    k->a.x = rows_of(k, s->x);
    k->a.matrix = (const float *)gs_cuda_param(k->c, s->param);
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
    k->a.grad = (float *)gs_cuda_grad(k->c, s->param);
    k->a.numbers = code->k.in * code->k.out;
    const gs_status st = gs_cuda_launch(k->c, code->run, most_parts(k, GS_PIECE_ROWS), code->k.blocks,
                                        code->k.shared_bytes, &k->a, code->k.name);
    if (st != GS_OK || k->a.edges <= GS_PIECE_ROWS)
        return st;
    return launch(k, GS_CUDA_TYPED_MERGE, slots_of(k->a.edges), (uint32_t)gs_cuda_blocks(k->a.numbers), 0);
}

static gs_status run_portion(portion *k)
{
    gs_status st = sort(k);
    for (uint32_t i = 0; i < k->plan->steps && st == GS_OK; i++) {
        const gs_typed_step *const s = &k->plan->step[i];
        st = s->kind == GS_TYPED_KEEP ? keep(k, s) : s->kind == GS_TYPED_MULTIPLY ? multiply(k, s) : add_outer(k, s);
    }
    return st == GS_OK ? gs_cuda_run_edge_kernels(k->c, k->run) : st;
}

gs_status gs_cuda_run_typed(gs_cuda *c, gs_cuda_edge_run *r, const gs_typed_plan *b)
{
    const uint32_t whole = r->edges.chunk.edges, most = portion_of(c, b);
    portion k = {.c = c, .plan = b, .run = r, .at = lay_out(b, most)};
    gs_status st = GS_OK;
    for (uint32_t done = 0; done < whole && st == GS_OK; done += k.a.edges) {
        const uint32_t edges = GS_MIN(most, whole - done);
        set_portion(&k, done, edges);
        r->edges.all.first_edge = done;
        r->edges.chunk.edges = edges;
        r->edges.all.place = k.a.place;
        st = run_portion(&k);
    }
    return st;
}
