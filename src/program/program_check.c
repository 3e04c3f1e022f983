/* program_check.c - does the data obey what program.h says? */
#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "program/program.h"

typedef struct gs_checker {
    const gs_program *p;
    uint32_t stage, instr; /* where we are; instr GS_NONE: none */
    bool *array_ready;     /* rows are there for the stages that follow, in this pass */
    bool *reg_ready;       /* registers of the stage written so far */
} gs_checker;

#define FAIL(c, ...) checker_fail(c, __VA_ARGS__)

static gs_status __attribute__((format(printf, 2, 3))) checker_fail(const gs_checker *c, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (c->instr != GS_NONE)
        return gs_fail(GS_EINVAL, "program: stage %u (%s), instruction %u: %s", c->stage, c->p->stage[c->stage].name,
                       c->instr, text);
    return gs_fail(GS_EINVAL, "program: stage %u (%s): %s", c->stage, c->p->stage[c->stage].name, text);
}

/* A sum of rows: of which array, how wide is the sum? */
static gs_status check_rows(const gs_checker *c, const gs_stage *s, uint32_t i)
{
    const gs_sum *m = &s->sum[i];
    const gs_array *a;
    uint32_t has;

    if (m->array >= c->p->arrays || m->reg >= s->regs)
        return FAIL(c, "sum %u: array %u or register %u does not exist", i, m->array, m->reg);
    a = &c->p->array[m->array];
    has = s->reg[m->reg].width;
    if (!c->array_ready[m->array])
        return FAIL(c, "sum %u: array %s is not written yet", i, a->name);
    if (a->dtype != GS_F32)
        return FAIL(c, "sum %u: array %s is not f32", i, a->name);
    if (m->kind == GS_SUM_SPLIT && (has == 0 || has % a->width != 0))
        return FAIL(c, "sum %u: %u elements do not split into %u", i, a->width, has);
    if (m->kind == GS_SUM_PICK && (has == 0 || a->width % has != 0))
        return FAIL(c, "sum %u: %u elements are not picked from %u", i, has, a->width);
    if (s->reg[m->reg].kind != GS_REG_SUM || (m->kind == GS_SUM_ROWS && has != a->width))
        return FAIL(c, "sum %u: register %u is no sum of %u elements", i, m->reg, a->width);
    if (m->self && m->kind != GS_SUM_ROWS)
        return FAIL(c, "sum %u: only a sum of rows takes the own row", i);
    return GS_OK;
}

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

/* A sum of an edge register; edge registers have been checked. */
static gs_status check_edge_sum(const gs_checker *c, const gs_stage *s, uint32_t i)
{
    const gs_sum *m = &s->sum[i];
    uint32_t heads;

    if (m->value >= s->edge_regs || (m->kind == GS_SUM_ATTEND && m->score >= s->edge_regs))
        return FAIL(c, "sum %u: edge register %u does not exist", i, m->value >= s->edge_regs ? m->value : m->score);
    if (m->self)
        return FAIL(c, "sum %u: only a sum of rows takes the own row", i);
    if (m->kind == GS_SUM_ATTEND) {
        heads = s->edge_reg[m->score].width;
        if (s->edge_reg[m->value].width % heads != 0)
            return FAIL(c, "sum %u: %u scores for values of %u elements", i, heads, s->edge_reg[m->value].width);
        if (check_sum_reg(c, s, i, m->lse, heads) != GS_OK)
            return GS_EINVAL;
    }
    return GS_OK;
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
        return FAIL(c, "lstm: gates of %u elements do not fit %s[%u, %u]", s->edge_reg[m->value].width, w->name, w->rows,
                    w->cols);
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

    if (s->sums > GS_STAGE_SUMS || s->direction > 1)
        return FAIL(c, "%u sums in direction %u", s->sums, s->direction);
    for (uint32_t i = 0; i < s->sums && st == GS_OK; i++) {
        const gs_sum *m = &s->sum[i];
        const bool rows = m->kind <= GS_SUM_PICK;
        if (m->kind > GS_SUM_LSTM_BACK)
            return FAIL(c, "sum %u has no kind", i);
        if (gs_sum_is_sequence(m))
            return check_sequence(c, s);
        st = rows ? check_rows(c, s, i) : check_edge_sum(c, s, i);
        if (st == GS_OK)
            st = check_sum_reg(c, s, i, m->reg, rows ? s->reg[m->reg].width : s->edge_reg[m->value].width);
    }
    return st;
}

static gs_status check_regs(const gs_checker *c, const gs_stage *s)
{
    for (uint32_t r = 0; r < s->regs; r++) {
        const gs_reg *g = &s->reg[r];
        if (g->width == 0 || g->kind > GS_REG_TEMP || g->dtype >= GS_DTYPE_COUNT)
            return FAIL(c, "register %u has no kind, type or width", r);
        if (g->kind != GS_REG_LOAD && g->dtype != GS_F32)
            return FAIL(c, "register %u is not f32", r);
        if (g->kind == GS_REG_SUM) {
            if (!c->reg_ready[r] || g->array != GS_NONE)
                return FAIL(c, "register %u is of no sum, or names an array", r);
            continue;
        }
        if (g->kind == GS_REG_TEMP && g->array == GS_NONE)
            continue;
        if (g->array >= c->p->arrays)
            return FAIL(c, "register %u: array %u does not exist", r, g->array);
        if (g->width != c->p->array[g->array].width || g->dtype != c->p->array[g->array].dtype)
            return FAIL(c, "register %u does not fit array %s", r, c->p->array[g->array].name);
        if (g->kind == GS_REG_LOAD) {
            if (!c->array_ready[g->array])
                return FAIL(c, "register %u: array %s is not written yet", r, c->p->array[g->array].name);
            c->reg_ready[r] = true;
        } else if (c->p->array[g->array].store_id >= 0) {
            return FAIL(c, "register %u would overwrite the store's array %s", r, c->p->array[g->array].name);
        }
    }
    return GS_OK;
}

/* Width of an operand, 0 for an invalid one (recorded). A constant fits any width: 1. */
static uint32_t operand_width(const gs_checker *c, const gs_stage *s, const gs_operand *o, const char *which)
{
    switch (o->kind) {
    case GS_FROM_REG:
        if (o->index < s->regs && c->reg_ready[o->index])
            return s->reg[o->index].width;
        FAIL(c, "operand %s: register %u does not exist or is not written yet", which, o->index);
        return 0;
    case GS_FROM_PARAM:
        if (o->index < c->p->params)
            return c->p->param[o->index].cols;
        FAIL(c, "operand %s: parameter %u does not exist", which, o->index);
        return 0;
    case GS_FROM_CONST:
        return 1;
    default:
        FAIL(c, "operand %s is missing", which);
        return 0;
    }
}

static bool is_reg(const gs_stage *s, const gs_operand *o, gs_dtype type)
{
    return o->kind == GS_FROM_REG && s->reg[o->index].dtype == type;
}

/* Is `width` right for an elementwise operator whose operands have width `in` after broadcasting? */
static gs_status check_width(const gs_checker *c, const gs_instr *i, uint32_t in, uint32_t width)
{
    bool fits = width == in;
    if (i->op == GS_OP_ROWSUM)
        fits = width == 1;
    else if (i->op == GS_OP_FOLD || i->op == GS_OP_ACROSS)
        fits = width != 0 && in % width == 0;
    else if (i->op == GS_OP_SPREAD || i->op == GS_OP_TILE)
        fits = width != 0 && width % in == 0;
    return fits ? GS_OK : FAIL(c, "%s gives width %u, its register has %u", gs_op_name(i->op), in, width);
}

static gs_status check_probability(const gs_checker *c, const gs_instr *i)
{
    if (!(i->alpha >= 0.0f && i->alpha < 1.0f))
        return FAIL(c, "%s with p = %g", gs_op_name(i->op), (double)i->alpha);
    return GS_OK;
}

/* In a vertex program: of the vertex itself. */
static gs_status check_mask(const gs_checker *c, const gs_stage *s, const gs_instr *i)
{
    if (operand_width(c, s, &i->a, "a") == 0 || operand_width(c, s, &i->b, "b") == 0)
        return GS_EINVAL;
    if (!is_reg(s, &i->a, GS_U32) || !is_reg(s, &i->b, GS_U32) || s->reg[i->a.index].width != 1 ||
        s->reg[i->b.index].width != 1)
        return FAIL(c, "edge_mask needs registers of input ids");
    return check_probability(c, i);
}

/* Elementwise operands are f32 rows, vectors of parameters, or constants; at least one has rows. */
static gs_status check_elementwise(const gs_checker *c, const gs_stage *s, const gs_instr *i, uint32_t width)
{
    const bool two = gs_op_inputs(i->op) == 2;
    const gs_operand *const operand[2] = {&i->a, &i->b};
    uint32_t out = 1;
    bool rows = false;

    for (uint32_t k = 0; k < (two ? 2u : 1u); k++) {
        const uint32_t w = operand_width(c, s, operand[k], k == 0 ? "a" : "b");
        if (w == 0)
            return GS_EINVAL;
        if (w != 1 && out != 1 && w != out)
            return FAIL(c, "%s: widths %u and %u", gs_op_name(i->op), out, w);
        out = w > out ? w : out;
        rows |= operand[k]->kind == GS_FROM_REG;
        if (operand[k]->kind == GS_FROM_PARAM && c->p->param[operand[k]->index].dims != 1)
            return FAIL(c, "%s of a matrix", gs_op_name(i->op));
        if (operand[k]->kind == GS_FROM_REG && i->op != GS_OP_CAST && s->reg[operand[k]->index].dtype != GS_F32)
            return FAIL(c, "%s of a register that is not f32", gs_op_name(i->op));
    }
    if (!rows)
        return FAIL(c, "%s of no register", gs_op_name(i->op));
    if (check_width(c, i, out, width) != GS_OK)
        return GS_EINVAL;
    if (i->op == GS_OP_CAST && !is_reg(s, &i->a, GS_BF16) && !is_reg(s, &i->a, GS_F16))
        return FAIL(c, "cast of a register that is neither bf16 nor f16");
    if (i->op == GS_OP_DROPOUT) {
        if (operand_width(c, s, &i->b, "b") != 1 || !is_reg(s, &i->b, GS_U32))
            return FAIL(c, "dropout needs a register of input ids as b");
        return check_probability(c, i);
    }
    return GS_OK;
}

static gs_status check_matmul(const gs_checker *c, const gs_stage *s, const gs_instr *i, uint32_t width)
{
    const uint32_t a = operand_width(c, s, &i->a, "a");
    const gs_param *w;
    bool fits;

    if (a == 0)
        return GS_EINVAL;
    if (!is_reg(s, &i->a, GS_F32) || i->b.kind != GS_FROM_PARAM || i->b.index >= c->p->params)
        return FAIL(c, "%s needs an f32 register and a parameter", gs_op_name(i->op));
    w = &c->p->param[i->b.index];
    fits = i->op == GS_OP_MATMUL_T ? a == w->cols && width == w->rows : a == w->rows && width == w->cols;
    if (w->dims != 2 || !fits)
        return FAIL(c, "%s: %u elements by %s[%u, %u] into %u", gs_op_name(i->op), a, w->name, w->rows, w->cols, width);
    return GS_OK;
}

static gs_status check_reduce(const gs_checker *c, const gs_stage *s, const gs_instr *i)
{
    const bool outer = i->op == GS_OP_OUTER;
    const uint32_t a = operand_width(c, s, &i->a, "a");
    const uint32_t b = outer ? operand_width(c, s, &i->b, "b") : a;
    const gs_param *w;

    if (a == 0 || b == 0)
        return GS_EINVAL;
    if (i->dst >= c->p->params)
        return FAIL(c, "parameter %u does not exist", i->dst);
    w = &c->p->param[i->dst];
    if (!is_reg(s, &i->a, GS_F32) || (outer && !is_reg(s, &i->b, GS_F32)))
        return FAIL(c, "%s needs f32 registers", gs_op_name(i->op));
    if (outer ? (w->dims != 2 || w->rows != a || w->cols != b) : (w->dims != 1 || w->cols != a))
        return FAIL(c, "%s: widths %u, %u do not fit %s[%u, %u]", gs_op_name(i->op), a, b, w->name, w->rows, w->cols);
    return GS_OK;
}

static gs_status check_loss(const gs_checker *c, const gs_stage *s, const gs_instr *i, uint32_t width)
{
    const uint32_t a = operand_width(c, s, &i->a, "a");
    if (a == 0 || operand_width(c, s, &i->b, "b") == 0 || operand_width(c, s, &i->c, "c") == 0)
        return GS_EINVAL;
    if (!is_reg(s, &i->a, GS_F32) || !is_reg(s, &i->b, GS_I32) || !is_reg(s, &i->c, GS_U8))
        return FAIL(c, "%s needs registers of logits (f32), labels (i32) and splits (u8)", gs_op_name(i->op));
    if (i->op == GS_OP_XENT_GRAD && width != a)
        return FAIL(c, "xent_grad of %u logits into %u elements", a, width);
    return GS_OK;
}

static gs_status check_instr(const gs_checker *c, const gs_stage *s, const gs_instr *i)
{
    const gs_op_class cls = (unsigned)i->op < GS_OP_COUNT ? gs_op_classof(i->op) : GS_CLASS_LEAF;
    const bool writes = cls == GS_CLASS_ELEMENTWISE || cls == GS_CLASS_MATMUL || i->op == GS_OP_XENT_GRAD;
    uint32_t width = 0;
    gs_status st;

    if (writes) {
        if (i->dst >= s->regs || s->reg[i->dst].kind != GS_REG_TEMP)
            return FAIL(c, "writes register %u, which is no scratch register", i->dst);
        if (c->reg_ready[i->dst])
            return FAIL(c, "register %u is written twice", i->dst);
        width = s->reg[i->dst].width;
    } else if (i->op == GS_OP_XENT && i->dst != GS_NONE) {
        return FAIL(c, "xent writes no register");
    }
    switch (cls) {
    case GS_CLASS_ELEMENTWISE:
        st = i->op == GS_OP_EDGE_MASK ? check_mask(c, s, i) : check_elementwise(c, s, i, width);
        break;
    case GS_CLASS_MATMUL:
        st = check_matmul(c, s, i, width);
        break;
    case GS_CLASS_REDUCE:
        st = check_reduce(c, s, i);
        break;
    case GS_CLASS_LOSS:
        st = check_loss(c, s, i, width);
        break;
    default:
        return FAIL(c, "%s is no instruction of a vertex program", gs_op_name(i->op));
    }
    if (st == GS_OK && writes)
        c->reg_ready[i->dst] = true;
    return st;
}

/* After the stage its stored arrays are there; none may be stored a second time. */
static gs_status check_stores(const gs_checker *c, const gs_stage *s)
{
    for (uint32_t r = 0; r < s->regs; r++) {
        const gs_reg *g = &s->reg[r];
        if (g->kind != GS_REG_TEMP)
            continue;
        if (!c->reg_ready[r])
            return FAIL(c, "register %u is never written", r);
        if (g->array == GS_NONE)
            continue;
        if (c->array_ready[g->array])
            return FAIL(c, "array %s is stored twice", c->p->array[g->array].name);
        c->array_ready[g->array] = true;
    }
    if (s->sums > 0 && s->sum[0].kind == GS_SUM_LSTM_BACK)
        c->array_ready[s->sum[0].array] = true; /* complete with the stage, not before */
    return GS_OK;
}

/* ---- edge programs ---- */

/* Rows of input ids, which only edge_mask reads. */
static bool is_id(const gs_checker *c, const gs_stage *s, uint32_t r)
{
    const gs_edge_reg *g = &s->edge_reg[r];
    return g->array < c->p->arrays && c->p->array[g->array].dtype == GS_U32 && g->width == 1;
}

static gs_status check_edge_regs(const gs_checker *c, const gs_stage *s, bool *ready)
{
    for (uint32_t r = 0; r < s->edge_regs; r++) {
        const gs_edge_reg *g = &s->edge_reg[r];
        const bool rows = g->kind == GS_EDGE_OPERAND || g->kind == GS_EDGE_TARGET;
        if (g->width == 0 || g->kind > GS_EDGE_TEMP)
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
        if ((c->p->array[g->array].dtype != GS_F32 && !is_id(c, s, r)) || c->p->array[g->array].width != g->width)
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
    if (o->kind == GS_FROM_PARAM && o->index < c->p->params && c->p->param[o->index].dims == 1)
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
            return FAIL(c, "edge_mask needs input ids of the source and of the destination");
    }
    return check_probability(c, i);
}

static gs_status check_edge_instr(const gs_checker *c, const gs_stage *s, const gs_instr *i, bool *ready)
{
    const bool known = (unsigned)i->op < GS_OP_COUNT && gs_op_classof(i->op) == GS_CLASS_ELEMENTWISE;
    uint32_t width = 1;
    bool rows = false;

    if (!known || i->op == GS_OP_DROPOUT || i->op == GS_OP_CAST || i->op == GS_OP_ACROSS || i->op == GS_OP_TILE)
        return FAIL(c, "%s is no instruction of an edge program", known ? gs_op_name(i->op) : "this");
    if (i->dst >= s->edge_regs || s->edge_reg[i->dst].kind != GS_EDGE_TEMP || ready[i->dst])
        return FAIL(c, "edge program: register %u is no scratch register, or written twice", i->dst);
    if (i->op == GS_OP_EDGE_MASK) {
        ready[i->dst] = true;
        return check_edge_mask(c, s, i);
    }
    for (uint32_t k = 0; k < gs_op_inputs(i->op); k++) {
        const gs_operand *o = k == 0 ? &i->a : &i->b;
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
    return check_width(c, i, width, s->edge_reg[i->dst].width);
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

static gs_status check_stage(gs_checker *c, uint32_t index)
{
    const gs_stage *s = &c->p->stage[index];
    gs_status st;

    c->stage = index;
    c->instr = GS_NONE;
    c->reg_ready = gs_calloc((size_t)s->regs + 1, sizeof(*c->reg_ready));
    if (c->reg_ready == NULL)
        return gs_fail(GS_ENOMEM, "program: no memory to check stage %u", index);
    if ((st = check_edge_program(c, s)) != GS_OK || (st = check_sums(c, s)) != GS_OK || (st = check_regs(c, s)) != GS_OK)
        goto done;
    for (c->instr = 0; c->instr < s->instrs; c->instr++)
        if ((st = check_instr(c, s, &s->instr[c->instr])) != GS_OK)
            goto done;
    c->instr = GS_NONE;
    st = check_stores(c, s);
done:
    gs_free(c->reg_ready);
    c->reg_ready = NULL;
    return st;
}

/* The pass that runs once, before all others, or NULL. */
static const gs_pass *setup_pass(const gs_program *p)
{
    const uint32_t setup = gs_program_pass(p, "setup");
    return setup != GS_NONE ? &p->pass[setup] : NULL;
}

/* What a pass stores; nothing where its stages do not exist. */
static void mark_stored(const gs_program *p, const gs_pass *q, bool *ready)
{
    if (q == NULL || q->first_stage > p->stages || q->stages > p->stages - q->first_stage)
        return;
    for (uint32_t s = q->first_stage; s < q->first_stage + q->stages; s++)
        for (uint32_t r = 0; r < p->stage[s].regs; r++) {
            const gs_reg *g = &p->stage[s].reg[r];
            if (g->kind == GS_REG_TEMP && g->array < p->arrays)
                ready[g->array] = true;
        }
}

static gs_status check_pass(const gs_program *p, const gs_pass *q)
{
    gs_checker c = {.p = p, .instr = GS_NONE};
    gs_status st = GS_OK;

    if (q->first_stage > p->stages || q->stages > p->stages - q->first_stage || q->stages == 0)
        return gs_fail(GS_EINVAL, "program: pass %s has stages %u to %u of %u", q->name, q->first_stage,
                       q->first_stage + q->stages, p->stages);
    c.array_ready = gs_calloc((size_t)p->arrays + 1, sizeof(*c.array_ready));
    if (c.array_ready == NULL)
        return gs_fail(GS_ENOMEM, "program: no memory to check pass %s", q->name);
    for (uint32_t a = 0; a < p->arrays; a++)
        c.array_ready[a] = p->array[a].store_id >= 0;
    if (q != setup_pass(p))
        mark_stored(p, setup_pass(p), c.array_ready);
    for (uint32_t s = q->first_stage; s < q->first_stage + q->stages && st == GS_OK; s++)
        st = check_stage(&c, s);
    gs_free(c.array_ready);
    return st;
}

gs_status gs_program_check(const gs_program *p)
{
    gs_status st = GS_OK;

    for (uint32_t i = 0; i < p->params; i++)
        if (p->param[i].rows == 0 || p->param[i].cols == 0 || p->param[i].dims < 1 || p->param[i].dims > 2 ||
            (p->param[i].dims == 1 && p->param[i].rows != 1))
            return gs_fail(GS_EINVAL, "program: parameter %u (%s) has no valid shape", i, p->param[i].name);
    for (uint32_t i = 0; i < p->arrays; i++)
        if (p->array[i].width == 0 || p->array[i].dtype >= GS_DTYPE_COUNT ||
            (p->array[i].store_id < 0 && p->array[i].dtype != GS_F32))
            return gs_fail(GS_EINVAL, "program: array %u (%s) has no valid type or width", i, p->array[i].name);
    if (p->logits != GS_NONE && p->logits >= p->arrays)
        return gs_fail(GS_EINVAL, "program: the logits are array %u of %u", p->logits, p->arrays);
    for (uint32_t i = 0; i < p->passes && st == GS_OK; i++)
        st = check_pass(p, &p->pass[i]);
    return st;
}
