/* The steps of a stage's products of edges by the matrix of their type. */
#include "base/size.h"
#include "cuda/typed_plan.h"

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
    gs_status st;
    if ((r->kind == GS_EDGE_OPERAND && !r->typed) || gs_typed_column(b, reg) != GS_NONE)
        return GS_OK;
    if ((st = add_table(b, s, reg)) != GS_OK)
        return st;
    return add_step(b, s, (gs_typed_step){.kind = GS_TYPED_KEEP, .x = reg});
}

static gs_status add_product(gs_typed_plan *b, const gs_program *p, const gs_stage *s, const gs_instr *in)
{
    const bool transposed = in->op == GS_OP_BY_TYPE_T;
    const uint32_t matrix_rows = s->edge_reg[transposed ? in->dst : in->a.index].width;
    gs_status st;
    if ((st = need_rows(b, s, in->a.index)) != GS_OK || (st = add_table(b, s, in->dst)) != GS_OK)
        return st;
    b->types = p->param[in->b.index].rows / matrix_rows;
    return add_step(b, s, (gs_typed_step){.kind = GS_TYPED_MULTIPLY, .transposed = transposed, .x = in->a.index,
                                          .y = in->dst, .param = in->b.index});
}

static gs_status add_outer(gs_typed_plan *b, const gs_program *p, const gs_stage *s, const gs_sum *m)
{
    const uint64_t numbers = (uint64_t)s->edge_reg[m->score].width * s->edge_reg[m->value].width;
    gs_status st;
    if ((st = need_rows(b, s, m->score)) != GS_OK || (st = need_rows(b, s, m->value)) != GS_OK)
        return st;
    b->types = p->param[m->weight].rows / s->edge_reg[m->score].width;
    b->numbers = GS_MAX(b->numbers, numbers);
    return add_step(b, s, (gs_typed_step){.kind = GS_TYPED_ADD_OUTER, .x = m->score, .y = m->value,
                                          .param = m->weight});
}

gs_status gs_typed_plan_stage(gs_typed_plan *b, const gs_program *p, uint32_t stage)
{
    const gs_stage *const s = &p->stage[stage];
    gs_status st = GS_OK;
    *b = (gs_typed_plan){.stage = stage};
    for (uint32_t i = 0; i < s->edge_instrs && st == GS_OK; i++)
        if (gs_op_by_type(s->edge_instr[i].op))
            st = add_product(b, p, s, &s->edge_instr[i]);
    for (uint32_t i = 0; i < s->sums && st == GS_OK; i++)
        if (s->sum[i].kind == GS_SUM_OUTER)
            st = add_outer(b, p, s, &s->sum[i]);
    return st;
}
