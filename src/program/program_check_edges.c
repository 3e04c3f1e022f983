/* program_check_edges.c - does the edge pass of a stage obey what program.h says? */
#include "base/alloc.h"
#include "program/program_check_internal.h"

static gs_status check_sum_reg(const gs_checker *c, const gs_stage *s, uint32_t i, uint32_t r, uint32_t width)
{
    if (r >= s->regs)
        return FAIL(c, "sum %u: register %u does not exist", i, r);
    if (s->reg[r].kind != GS_REG_SUM || s->reg[r].width != width)
        return FAIL(c, "sum %u: register %u is no sum of %u elements", i, r, width);
    if (c->reg_ready[r])
        return FAIL(c, "sum %u: register %u has two sums", i, r);
    c->reg_ready[r] = true;
    return GS_OK;
}

/* Rows of input ids, which only edge_mask reads. */
static bool is_id(const gs_checker *c, const gs_stage *s, uint32_t r)
{
    const gs_edge_reg *g = &s->edge_reg[r];
    return g->array < c->p->arrays && c->p->array[g->array].dtype == GS_U32 && g->width == 1;
}

/* A sum of an edge register; edge registers have been checked. */
static gs_status check_edge_sum(const gs_checker *c, const gs_stage *s, uint32_t i)
{
    const gs_sum *m = &s->sum[i];
    gs_row_sum rows;
    uint32_t heads;

    if (m->value >= s->edge_regs || (m->kind == GS_SUM_ATTEND && m->score >= s->edge_regs))
        return FAIL(c, "sum %u: edge register %u does not exist", i, m->value >= s->edge_regs ? m->value : m->score);
    if (is_id(c, s, m->value) || (m->kind == GS_SUM_ATTEND && is_id(c, s, m->score)))
        return FAIL(c, "sum %u: of input ids", i);
    if (m->self && (!gs_sum_of_rows(&rows, s, i) || rows.types != GS_TYPES_NONE))
        return FAIL(c, "sum %u: only a sum of rows takes the own row", i);
    if (m->kind == GS_SUM_ADD_TYPE && (m->reg >= s->regs || s->reg[m->reg].width % s->edge_reg[m->value].width != 0))
        return FAIL(c, "sum %u: %u elements do not split by type", i, s->edge_reg[m->value].width);
    if (m->kind == GS_SUM_ATTEND) {
        heads = s->edge_reg[m->score].width;
        if (s->edge_reg[m->value].width % heads != 0)
            return FAIL(c, "sum %u: %u scores for values of %u elements", i, heads, s->edge_reg[m->value].width);
        if (check_sum_reg(c, s, i, m->lse, heads) != GS_OK)
            return GS_EINVAL;
    }
    return GS_OK;
}

/* A gradient of matrices by type; the sum's register holds nothing of it. */
static gs_status check_outer(const gs_checker *c, const gs_stage *s, uint32_t i)
{
    const gs_sum *m = &s->sum[i];
    const gs_param *w;
    if (m->value >= s->edge_regs || m->score >= s->edge_regs || m->weight >= c->p->params)
        return FAIL(c, "sum %u: an outer product without its registers or its weight", i);
    w = &c->p->param[m->weight];
    if (w->dims != 2 || w->cols != s->edge_reg[m->value].width || w->rows % s->edge_reg[m->score].width != 0 ||
        is_id(c, s, m->value) || is_id(c, s, m->score) || m->self)
        return FAIL(c, "sum %u: rows of %u and %u elements do not fit %s[%u, %u]", i, s->edge_reg[m->score].width,
                    s->edge_reg[m->value].width, w->name, w->rows, w->cols);
    return check_sum_reg(c, s, i, m->reg, 1);
}

/* A sequence stands alone in its stage, on registers that are rows as they are. */
static gs_status check_sequence(const gs_checker *c, const gs_stage *s)
{
    const gs_sum *m = &s->sum[0];
    const bool back = m->kind == GS_SUM_LSTM_BACK;
    const gs_param *w;
    uint32_t h;

    if (s->sums != 1 || s->edge_instrs != 0 || s->direction != 0 || m->self)
        return FAIL(c, "an lstm has a stage for itself, over in-edges");
    if (m->value >= s->edge_regs || (back && m->score >= s->edge_regs) || m->weight >= c->p->params)
        return FAIL(c, "an lstm without its registers or its weight");
    w = &c->p->param[m->weight];
    h = w->cols;
    if (w->dims != 2 || w->rows != 4 * h || s->edge_reg[m->value].width != 4 * h ||
        s->edge_reg[m->value].kind != GS_EDGE_OPERAND)
        return FAIL(c, "lstm: gates of %u elements do not fit %s[%u, %u]", s->edge_reg[m->value].width, w->name,
                    w->rows, w->cols);
    if (!back)
        return check_sum_reg(c, s, 0, m->reg, h);
    if (m->reg != GS_NONE || s->edge_reg[m->score].kind != GS_EDGE_TARGET || s->edge_reg[m->score].width != h)
        return FAIL(c, "lstm_back: the gradient of the state is no row of %u elements at the target", h);
    if (m->array >= c->p->arrays || c->p->array[m->array].store_id >= 0 || c->p->array[m->array].width != 4 * h)
        return FAIL(c, "lstm_back: its result is no array of %u elements of the run", 4 * h);
    if (c->array_ready[m->array])
        return FAIL(c, "array %s is stored twice", c->p->array[m->array].name);
    return GS_OK;
}

static gs_status check_sums(const gs_checker *c, const gs_stage *s)
{
    gs_status st = GS_OK;

    for (uint32_t i = 0; i < s->sums && st == GS_OK; i++) {
        const gs_sum *m = &s->sum[i];
        const bool own = m->kind == GS_SUM_ADD_TYPE; /* the sum's own width */
        if ((unsigned)m->kind >= GS_SUM_KINDS)
            return FAIL(c, "sum %u has no kind", i);
        if (gs_sum_is_sequence(m))
            return check_sequence(c, s);
        if (m->kind == GS_SUM_OUTER) {
            st = check_outer(c, s, i);
            continue;
        }
        st = check_edge_sum(c, s, i);
        if (st == GS_OK)
            st = check_sum_reg(c, s, i, m->reg, own ? s->reg[m->reg].width : s->edge_reg[m->value].width);
    }
    return st;
}

/* ---- edge programs ---- */

/* Does no sequence take the register's rows, and nothing that goes by the types of edges? */
static bool is_read_plainly(const gs_stage *s, uint32_t r)
{
    bool plain = !s->edge_reg[r].typed;
    for (uint32_t i = 0; i < s->sums; i++) {
        const gs_sum *m = &s->sum[i];
        const bool own = m->value == r || (m->kind == GS_SUM_OUTER && m->score == r);
        plain = plain && !gs_sum_is_sequence(m) && !(own && (m->kind == GS_SUM_ADD_TYPE || m->kind == GS_SUM_OUTER));
    }
    for (uint32_t i = 0; i < s->edge_instrs; i++)
        plain = plain && !(gs_op_by_type(s->edge_instr[i].op) && s->edge_instr[i].a.kind == GS_FROM_REG &&
                           s->edge_instr[i].a.index == r);
    return plain;
}

/* Numbers of two bytes are summed as they are, or, bfloat16 in rows of an even number, read by an edge program. */
static bool has_type(const gs_checker *c, const gs_stage *s, uint32_t r)
{
    const gs_dtype type = c->p->array[s->edge_reg[r].array].dtype;
    const bool half = type == GS_BF16 || type == GS_F16, even = type == GS_BF16 && s->edge_reg[r].width % 2 == 0;
    return type == GS_F32 || is_id(c, s, r) ||
           (half && s->edge_reg[r].width > 0 && is_read_plainly(s, r) && (even || gs_edge_reg_only_rows(s, r)));
}

static gs_status check_edge_regs(const gs_checker *c, const gs_stage *s, bool *ready)
{
    for (uint32_t r = 0; r < s->edge_regs; r++) {
        const gs_edge_reg *g = &s->edge_reg[r];
        const bool rows = g->kind == GS_EDGE_OPERAND || g->kind == GS_EDGE_TARGET;
        if (g->width == 0 || (unsigned)g->kind >= GS_EDGE_REG_KINDS)
            return FAIL(c, "edge register %u has no kind or width", r);
        ready[r] = g->kind != GS_EDGE_TEMP;
        if (g->kind == GS_EDGE_WEIGHT && g->width != 1)
            return FAIL(c, "edge register %u: a weight has width 1", r);
        if (!rows && g->array != GS_NONE)
            return FAIL(c, "edge register %u names an array", r);
        if (!rows)
            continue;
        if (g->array >= c->p->arrays)
            return FAIL(c, "edge register %u: array %u does not exist", r, g->array);
        if (!has_type(c, s, r) || (g->typed && is_id(c, s, r)) ||
            (g->typed ? c->p->array[g->array].width % g->width != 0 : c->p->array[g->array].width != g->width))
            return FAIL(c, "edge register %u does not fit array %s", r, c->p->array[g->array].name);
        if (!c->array_ready[g->array])
            return FAIL(c, "edge register %u: array %s is not written yet", r, c->p->array[g->array].name);
    }
    return GS_OK;
}

/* Width of an operand of an edge instruction, 0 for an invalid one (recorded). */
static uint32_t edge_operand_width(const gs_checker *c, const gs_stage *s, const gs_operand *o, const bool *ready)
{
    if (o->kind == GS_FROM_CONST)
        return 1;
    if (o->kind == GS_FROM_PARAM && gs_program__param_is_there(c, o->index) && c->p->param[o->index].dims == 1)
        return c->p->param[o->index].cols;
    if (o->kind == GS_FROM_REG && o->index < s->edge_regs && ready[o->index] && !is_id(c, s, o->index))
        return s->edge_reg[o->index].width;
    FAIL(c, "edge program: an operand is missing, not written yet or a matrix");
    return 0;
}

/* a: ids at the source end, b: at the destination end. */
static gs_status check_edge_mask(const gs_checker *c, const gs_stage *s, const gs_instr *i)
{
    const gs_operand *const o[2] = {&i->a, &i->b};
    for (uint32_t k = 0; k < 2; k++) {
        const gs_edge_reg_kind end = (k == 0) == (s->direction == 0) ? GS_EDGE_OPERAND : GS_EDGE_TARGET;
        if (o[k]->kind != GS_FROM_REG || o[k]->index >= s->edge_regs || !is_id(c, s, o[k]->index) ||
            s->edge_reg[o[k]->index].kind != end)
            return FAIL(c, "%s needs input ids of the source and of the destination", gs_op_name(i->op));
    }
    if (i->op == GS_OP_IS_LOOP)
        return s->edge_reg[i->dst].width == 1 ? GS_OK : FAIL(c, "is_loop is one number wide");
    return gs_program__check_probability(c, i);
}

/* The matrix of the edge's type, of those that stand one above the other in the parameter. */
static gs_status check_by_type(const gs_checker *c, const gs_stage *s, const gs_instr *i, const bool *ready)
{
    const bool back = i->op == GS_OP_BY_TYPE_T;
    const uint32_t out = s->edge_reg[i->dst].width;
    const gs_param *w;
    uint32_t in;

    if (i->a.kind != GS_FROM_REG || i->a.index >= s->edge_regs || !ready[i->a.index] || is_id(c, s, i->a.index) ||
        i->b.kind != GS_FROM_PARAM || i->b.index >= c->p->params)
        return FAIL(c, "%s: no register and matrices of the types", gs_op_name(i->op));
    w = &c->p->param[i->b.index];
    in = s->edge_reg[i->a.index].width;
    if (w->dims != 2 || w->cols != (back ? in : out) || w->rows % (back ? out : in) != 0)
        return FAIL(c, "%s: %u to %u elements by %s[%u, %u]", gs_op_name(i->op), in, out, w->name, w->rows, w->cols);
    return GS_OK;
}

static gs_status check_edge_instr(const gs_checker *c, const gs_stage *s, const gs_instr *i, bool *ready)
{
    const bool typed = gs_op_by_type(i->op);
    const bool known = (unsigned)i->op < GS_OP_COUNT;
    uint32_t width = 1;
    bool rows = false;

    if (!known || !gs_op_is(i->op, GS_FACT_EDGE))
        return FAIL(c, "%s is no instruction of an edge program", known ? gs_op_name(i->op) : "this");
    if (i->dst >= s->edge_regs || s->edge_reg[i->dst].kind != GS_EDGE_TEMP || ready[i->dst])
        return FAIL(c, "edge program: register %u is no scratch register, or written twice", i->dst);
    if (typed) {
        const gs_status st = check_by_type(c, s, i, ready);
        ready[i->dst] = true;
        return st;
    }
    if (i->op == GS_OP_EDGE_MASK || i->op == GS_OP_IS_LOOP) {
        ready[i->dst] = true;
        return check_edge_mask(c, s, i);
    }
    for (uint32_t k = 0; k < gs_op_inputs(i->op); k++) {
        const gs_operand *o = gs_instr_operand(i, k);
        const uint32_t w = edge_operand_width(c, s, o, ready);
        if (w == 0)
            return GS_EINVAL;
        if (w != 1 && width != 1 && w != width)
            return FAIL(c, "%s: widths %u and %u", gs_op_name(i->op), width, w);
        width = w > width ? w : width;
        rows |= o->kind == GS_FROM_REG;
    }
    if (!rows)
        return FAIL(c, "%s of no register", gs_op_name(i->op));
    ready[i->dst] = true;
    return gs_program__check_width(c, i, width, s->edge_reg[i->dst].width);
}

static gs_status check_edge_program(gs_checker *c, const gs_stage *s)
{
    bool *ready = gs_calloc((size_t)s->edge_regs + 1, sizeof(*ready));
    gs_status st;

    if (ready == NULL)
        return gs_fail(GS_ENOMEM, "program: no memory to check stage %u", c->stage);
    st = check_edge_regs(c, s, ready);
    for (c->instr = 0; c->instr < s->edge_instrs && st == GS_OK; c->instr++)
        st = check_edge_instr(c, s, &s->edge_instr[c->instr], ready);
    c->instr = GS_NONE;
    for (uint32_t r = 0; r < s->edge_regs && st == GS_OK; r++)
        if (!ready[r])
            st = FAIL(c, "edge register %u is never written", r);
    gs_free(ready);
    return st;
}

gs_status gs_program__check_edges(gs_checker *c, const gs_stage *s)
{
    if (s->sums > GS_STAGE_SUMS || s->direction > 1)
        return FAIL(c, "%u sums in direction %u", s->sums, s->direction);
    const gs_status st = check_edge_program(c, s);
    return st == GS_OK ? check_sums(c, s) : st;
}
