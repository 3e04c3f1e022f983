/* Products of edges by the matrix of their type: a stage's steps, and kernels/typed.cu with its constants. */
#include "base/size.h"
#include "cuda/kernel_text.h"

/* ---- steps ----
 *
 * Which steps do a stage's products of edges by the matrix of their type take, and how much memory?
 *
 * A launch's edges are taken a portion at a time. The portion is put in order by type; then come the steps, and then
 * the stage's own kernels go over the portion's edges and find what was made of each in tables, which have a row for
 * each edge of a portion, in the order of types.
 */

static gs_status refuse(const gs_stage *s, const char *what)
{
    return gs_fail(GS_EUNSUPPORTED, "device cuda: stage \"%s\": %s; use .no_batch", s->name, what);
}

uint32_t gs_typed_column(const gs_typed_plan *b, uint32_t reg)
{
    for (uint32_t i = 0; i < b->tables; i++)
        if (b->table[i].reg == reg)
            return b->table[i].column;
    return GS_NONE;
}

/* Room for a row of the register for each edge. */
static gs_status add_table(gs_typed_plan *b, const gs_stage *s, uint32_t reg)
{
    if (b->tables == GS_TYPED_TABLES)
        return refuse(s, "its edge program has too many products by the type of edges");
    b->table[b->tables++] = (gs_typed_table){reg, b->columns};
    b->columns += (uint32_t)gs_align_up(s->edge_reg[reg].width, 4); /* so that tables begin at whole vectors */
    return GS_OK;
}

static gs_status add_step(gs_typed_plan *b, const gs_stage *s, gs_typed_step step)
{
    if (b->steps == GS_TYPED_STEPS)
        return refuse(s, "its edge program has too many products by the type of edges");
    b->step[b->steps++] = step;
    return GS_OK;
}

/* The register's rows are to be had in the order of types: those at the operand end are gathered, others kept. */
static gs_status need_rows(gs_typed_plan *b, const gs_stage *s, uint32_t reg)
{
    const gs_edge_reg *const r = &s->edge_reg[reg];
    if ((r->kind == GS_EDGE_OPERAND && !r->typed) || gs_typed_column(b, reg) != GS_NONE)
        return GS_OK;
    GS_TRY(add_table(b, s, reg));
    return add_step(b, s, (gs_typed_step){.kind = GS_TYPED_KEEP, .x = reg});
}

/* The step's matrices: those of the types, or a part of one for all. */
static void set_matrix(gs_typed_plan *b, gs_typed_step *step, const gs_param *w, uint32_t rows, bool dense,
                       uint32_t site)
{
    step->stride = w->cols;
    if (dense) {
        step->part = gs_param_part(w, rows, site);
        b->types = GS_MAX(b->types, 1u);
        return;
    }
    step->each = rows * w->cols;
    b->types = w->rows / rows;
    b->by_type = true;
}

static gs_status add_product(gs_typed_plan *b, const gs_program *p, const gs_stage *s, const gs_instr *in)
{
    const bool transposed = gs_op_by_transpose(in->op);
    const uint32_t matrix_rows = s->edge_reg[transposed ? in->dst : in->a.index].width;
    const gs_param *const w = &p->param[in->b.index];
    gs_typed_step step = {.kind = GS_TYPED_MULTIPLY, .transposed = transposed, .x = in->a.index, .y = in->dst,
                          .param = in->b.index};
    GS_TRY(need_rows(b, s, in->a.index));
    GS_TRY(add_table(b, s, in->dst));
    set_matrix(b, &step, w, matrix_rows, gs_op_is_dense(in->op), in->site);
    return add_step(b, s, step);
}

static gs_status add_outer(gs_typed_plan *b, const gs_program *p, const gs_stage *s, const gs_sum *m)
{
    const uint64_t numbers = (uint64_t)s->edge_reg[m->score].width * s->edge_reg[m->value].width;
    gs_typed_step step = {.kind = GS_TYPED_ADD_OUTER, .x = m->score, .y = m->value, .param = m->weight};
    GS_TRY(need_rows(b, s, m->score));
    GS_TRY(need_rows(b, s, m->value));
    set_matrix(b, &step, &p->param[m->weight], s->edge_reg[m->score].width, m->dense, m->site);
    b->numbers = GS_MAX(b->numbers, numbers);
    return add_step(b, s, step);
}

gs_status gs_typed_plan_stage(gs_typed_plan *b, const gs_program *p, uint32_t stage)
{
    const gs_stage *const s = &p->stage[stage];
    *b = (gs_typed_plan){.stage = stage};
    for (uint32_t i = 0; i < s->edge_instrs; i++)
        if (gs_op_on_edges(s->edge_instr[i].op))
            GS_TRY(add_product(b, p, s, &s->edge_instr[i]));
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].kind == GS_SUM_OUTER)
            GS_TRY(add_outer(b, p, s, &s->sum[i]));
    for (uint32_t i = 0; i < s->sums && b->by_type; i++)
        b->mixed = b->mixed || (s->sum[i].kind == GS_SUM_OUTER && s->sum[i].dense);
    return GS_OK;
}

/* ---- text ---- */

#define LANES_MOST 16u /* that share columns: 64 of them */
#define STEP 16u       /* GS_STEP of typed.cu */
#define PAD 8u         /* of its strides */

/* Lanes of 4 columns each, a power of two. */
static uint32_t lanes_for(uint32_t columns, uint32_t least)
{
    uint32_t lanes = least;
    while (lanes < LANES_MOST && 4 * lanes < columns)
        lanes *= 2;
    return lanes;
}

static void write_kernel(FILE *out, const gs_typed_kernel *k, const char *function, uint32_t first, uint32_t second)
{
    fprintf(out, "\nGS_KERNEL(%s, gs_typed_args) { %s%s(&a, %uu, %uu, %uu, %uu); }\n", k->name, function,
            k->tf32 ? "_tf32" : "", k->in, k->out, first, second);
}

static void write_product(FILE *out, gs_typed_kernel *k)
{
    const bool transposed = k->kind == GS_TYPED_PRODUCT_T;
    k->across = lanes_for(k->out, 2); /* a block has two lanes for each row of a task; a tensor core makes 8 columns */
    k->blocks = (uint32_t)gs_div_up(k->out, 4 * k->across);
    k->shared_bytes =
        (STEP * (GS_TASK_ROWS + PAD) + STEP * (4 * k->across + PAD) + GS_TASK_ROWS) * (uint32_t)sizeof(float);
    snprintf(k->name, sizeof(k->name), "gs_product_%u_%u%s", k->in, k->out, transposed ? "_t" : "");
    write_kernel(out, k, "gs_typed_product", k->across, transposed);
}

static void write_outer(FILE *out, gs_typed_kernel *k)
{
    k->down = lanes_for(k->in, k->tf32 ? 4 : 1); /* a tensor core makes 16 rows of 8 columns */
    k->across = lanes_for(k->out, k->tf32 ? 2 : 1);
    const uint32_t tall = 4 * k->down, wide = 4 * k->across,
                   groups = k->tf32 ? GS_BLOCK_LANES / 32 / (tall / 16) : GS_BLOCK_LANES / (k->down * k->across),
                   step = GS_MAX(k->tf32 ? 8 * groups : groups, STEP);
    k->blocks = (uint32_t)(gs_div_up(k->in, tall) * gs_div_up(k->out, wide));
    k->shared_bytes = GS_MAX(step * (tall + wide + 2), groups * tall * wide) * (uint32_t)sizeof(float);
    snprintf(k->name, sizeof(k->name), "gs_outer_%u_%u", k->in, k->out);
    write_kernel(out, k, "gs_typed_outer", k->down, k->across);
}

void gs_generate_typed(FILE *out, gs_typed_kernel *k, gs_typed_kind kind, uint32_t in, uint32_t out_width, bool tf32)
{
    *k = (gs_typed_kernel){.kind = kind, .in = in, .out = out_width, .tf32 = tf32};
    if (kind == GS_TYPED_OUTER)
        write_outer(out, k);
    else
        write_product(out, k);
}
