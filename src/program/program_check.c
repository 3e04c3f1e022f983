/* program_check.c - does the data obey what program.h says? */
#include <stdarg.h>

#include "base/alloc.h"
#include "program/program.h"

typedef struct gs_checker {
    const gs_program *p;
    uint32_t stage, instr; /* where we are; instr GS_NONE: none */
    bool *array_ready;     /* rows are there for the stages that follow, in this pass */
    bool *reg_ready;       /* registers of the stage written so far */
    uint32_t *made;        /* [params] of a statistic: the stage of this pass that makes it, or GS_NONE */
} gs_checker;

/* Records what is wrong, with the stage and instruction; GS_EINVAL. */
static gs_status fail(const gs_checker *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static gs_status fail(const gs_checker *c, const char *fmt, ...)
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

/* ---- operands ---------------------------------------------------------- */

/* What vertex and edge programs ask alike of an instruction. */

/* A statistic is there in the stages after the one that makes it. */
static bool param_is_there(const gs_checker *c, uint32_t i)
{
    if (i >= c->p->params)
        return false;
    return c->p->param[i].statistic == GS_STATISTIC_NONE || c->made[i] < c->stage;
}

/* Is `width` right for an elementwise operator whose operands have width `in` after broadcasting? */
static gs_status check_width(const gs_checker *c, const gs_instr *i, uint32_t in, uint32_t width)
{
    bool fits = width == in;
    const gs_op_form form = gs_op_form_of(i->op);
    if (form == GS_FORM_ROW)
        fits = width == 1;
    else if (form == GS_FORM_FEWER)
        fits = width != 0 && in % width == 0;
    else if (form == GS_FORM_MORE)
        fits = width != 0 && width % in == 0;
    return fits ? GS_OK : fail(c, "%s gives width %u, its register has %u", gs_op_name(i->op), in, width);
}

static gs_status check_probability(const gs_checker *c, const gs_instr *i)
{
    if (!(i->alpha >= 0.0f && i->alpha < 1.0f))
        return fail(c, "%s with p = %g", gs_op_name(i->op), (double)i->alpha);
    return GS_OK;
}

/* ---- edges ------------------------------------------------------------- */

/* Does the edge pass of a stage obey what program.h says? */

static gs_status check_sum_reg(const gs_checker *c, const gs_stage *s, uint32_t i, uint32_t r, uint32_t width)
{
    if (r >= s->regs)
        return fail(c, "sum %u: register %u does not exist", i, r);
    if (s->reg[r].kind != GS_REG_SUM || s->reg[r].width != width)
        return fail(c, "sum %u: register %u is no sum of %u elements", i, r, width);
    if (c->reg_ready[r])
        return fail(c, "sum %u: register %u has two sums", i, r);
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

    const bool two = m->kind == GS_SUM_ATTEND || gs_sum_is_held(m->kind);
    if (m->value >= s->edge_regs || (two && m->score >= s->edge_regs))
        return fail(c, "sum %u: edge register %u does not exist", i, m->value >= s->edge_regs ? m->value : m->score);
    if (is_id(c, s, m->value) || (two && is_id(c, s, m->score)))
        return fail(c, "sum %u: of input ids", i);
    if (m->self && (!gs_sum_of_rows(&rows, s, i) || rows.types != GS_TYPES_NONE))
        return fail(c, "sum %u: only a sum of rows takes the own row", i);
    if (m->kind == GS_SUM_ADD_TYPE && (m->reg >= s->regs || s->reg[m->reg].width % s->edge_reg[m->value].width != 0))
        return fail(c, "sum %u: %u elements do not split by type", i, s->edge_reg[m->value].width);
    if (gs_sum_is_held(m->kind) && s->edge_reg[m->score].width != 1)
        return fail(c, "sum %u: %u numbers of an edge's source", i, s->edge_reg[m->score].width);
    if (m->kind == GS_SUM_ATTEND) {
        heads = s->edge_reg[m->score].width;
        if (s->edge_reg[m->value].width % heads != 0)
            return fail(c, "sum %u: %u scores for values of %u elements", i, heads, s->edge_reg[m->value].width);
        if (check_sum_reg(c, s, i, m->lse, heads) != GS_OK)
            return GS_EINVAL;
    }
    return GS_OK;
}

/* Is rows x cols a part of the matrix, from `site` on where it has fewer of one of the two? */
static bool is_part(const gs_param *w, uint32_t rows, uint32_t cols, uint32_t site)
{
    const bool tall = rows == w->rows, wide = cols == w->cols;
    return w->dims == 2 && rows <= w->rows && cols <= w->cols && (tall || wide) &&
           (tall || site <= w->rows - rows) && (wide || site <= w->cols - cols);
}

/* A gradient of matrices by type, or of a part of one; the sum's register holds nothing of it. */
static gs_status check_outer(const gs_checker *c, const gs_stage *s, uint32_t i)
{
    const gs_sum *m = &s->sum[i];
    const gs_param *w;
    if (m->value >= s->edge_regs || m->score >= s->edge_regs || m->weight >= c->p->params)
        return fail(c, "sum %u: an outer product without its registers or its weight", i);
    w = &c->p->param[m->weight];
    const uint32_t rows = s->edge_reg[m->score].width, cols = s->edge_reg[m->value].width;
    const bool fits =
        m->dense ? is_part(w, rows, cols, m->site) : w->dims == 2 && w->cols == cols && w->rows % rows == 0;
    if (!fits || is_id(c, s, m->value) || is_id(c, s, m->score) || m->self)
        return fail(c, "sum %u: rows of %u and %u elements do not fit %s[%u, %u]", i, s->edge_reg[m->score].width,
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
        return fail(c, "an lstm has a stage for itself, over in-edges");
    if (m->value >= s->edge_regs || (back && m->score >= s->edge_regs) || m->weight >= c->p->params)
        return fail(c, "an lstm without its registers or its weight");
    w = &c->p->param[m->weight];
    h = w->cols;
    if (w->dims != 2 || w->rows != 4 * h || s->edge_reg[m->value].width != 4 * h ||
        s->edge_reg[m->value].kind != GS_EDGE_OPERAND)
        return fail(c, "lstm: gates of %u elements do not fit %s[%u, %u]", s->edge_reg[m->value].width, w->name,
                    w->rows, w->cols);
    if (!back)
        return check_sum_reg(c, s, 0, m->reg, h);
    if (m->reg != GS_NONE || s->edge_reg[m->score].kind != GS_EDGE_TARGET || s->edge_reg[m->score].width != h)
        return fail(c, "lstm_back: the gradient of the state is no row of %u elements at the target", h);
    if (m->array >= c->p->arrays || c->p->array[m->array].store_id >= 0 || c->p->array[m->array].width != 4 * h)
        return fail(c, "lstm_back: its result is no array of %u elements of the run", 4 * h);
    if (c->array_ready[m->array])
        return fail(c, "array %s is stored twice", c->p->array[m->array].name);
    return GS_OK;
}

static gs_status check_sums(const gs_checker *c, const gs_stage *s)
{
    for (uint32_t i = 0; i < s->sums; i++) {
        const gs_sum *m = &s->sum[i];
        const bool own = m->kind == GS_SUM_ADD_TYPE; /* the sum's own width */
        if ((unsigned)m->kind >= GS_SUM_KINDS)
            return fail(c, "sum %u has no kind", i);
        if (gs_sum_is_sequence(m))
            return check_sequence(c, s);
        GS_TRY(m->kind == GS_SUM_OUTER ? check_outer(c, s, i) : check_edge_sum(c, s, i));
        if (m->kind != GS_SUM_OUTER)
            GS_TRY(check_sum_reg(c, s, i, m->reg,
                                 own                       ? s->reg[m->reg].width
                                 : gs_sum_is_held(m->kind) ? 3 * s->edge_reg[m->value].width
                                                           : s->edge_reg[m->value].width));
    }
    return GS_OK;
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
        plain = plain && !(gs_op_on_edges(s->edge_instr[i].op) && s->edge_instr[i].a.kind == GS_FROM_REG &&
                           s->edge_instr[i].a.index == r);
    return plain;
}

/* Numbers of two bytes are summed as they are, or, bfloat16 in rows of an even number, read by an edge program. */
static bool has_type(const gs_checker *c, const gs_stage *s, uint32_t r)
{
    const gs_dtype type = c->p->array[s->edge_reg[r].array].dtype;
    const bool half = gs_dtype_is_half(type), even = type == GS_BF16 && s->edge_reg[r].width % 2 == 0;
    return type == GS_F32 || is_id(c, s, r) ||
           (half && s->edge_reg[r].width > 0 && is_read_plainly(s, r) && (even || gs_edge_reg_only_rows(s, r)));
}

static gs_status check_edge_regs(const gs_checker *c, const gs_stage *s, bool *ready)
{
    for (uint32_t r = 0; r < s->edge_regs; r++) {
        const gs_edge_reg *g = &s->edge_reg[r];
        const bool rows = g->kind == GS_EDGE_OPERAND || g->kind == GS_EDGE_TARGET;
        if (g->width == 0 || (unsigned)g->kind >= GS_EDGE_REG_KINDS)
            return fail(c, "edge register %u has no kind or width", r);
        ready[r] = g->kind != GS_EDGE_TEMP;
        if (g->kind == GS_EDGE_WEIGHT && g->width != 1)
            return fail(c, "edge register %u: a weight has width 1", r);
        if (g->kind == GS_EDGE_FEATURES && (g->width > g->columns || g->first > g->columns - g->width))
            return fail(c, "edge register %u: an edge has %u features", r, g->columns);
        if (!rows && g->array != GS_NONE)
            return fail(c, "edge register %u names an array", r);
        if (!rows)
            continue;
        if (g->array >= c->p->arrays)
            return fail(c, "edge register %u: array %u does not exist", r, g->array);
        if (!has_type(c, s, r) || (g->typed && is_id(c, s, r)) ||
            (g->typed ? c->p->array[g->array].width % g->width != 0 : c->p->array[g->array].width != g->width))
            return fail(c, "edge register %u does not fit array %s", r, c->p->array[g->array].name);
        if (!c->array_ready[g->array])
            return fail(c, "edge register %u: array %s is not written yet", r, c->p->array[g->array].name);
    }
    return GS_OK;
}

/* Width of an operand of an edge instruction, 0 for an invalid one (recorded). */
static uint32_t edge_operand_width(const gs_checker *c, const gs_stage *s, const gs_operand *o, const bool *ready)
{
    if (o->kind == GS_FROM_CONST)
        return 1;
    if (o->kind == GS_FROM_PARAM && param_is_there(c, o->index) && c->p->param[o->index].dims == 1)
        return c->p->param[o->index].cols;
    if (o->kind == GS_FROM_REG && o->index < s->edge_regs && ready[o->index] && !is_id(c, s, o->index))
        return s->edge_reg[o->index].width;
    fail(c, "edge program: an operand is missing, not written yet or a matrix");
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
            return fail(c, "%s needs input ids of the source and of the destination", gs_op_name(i->op));
    }
    if (i->op == GS_OP_IS_LOOP)
        return s->edge_reg[i->dst].width == 1 ? GS_OK : fail(c, "is_loop is one number wide");
    return check_probability(c, i);
}

/* The matrix of the edge's type, of those that stand one above the other in the parameter; or a part of one for all. */
static gs_status check_by_type(const gs_checker *c, const gs_stage *s, const gs_instr *i, const bool *ready)
{
    const bool back = gs_op_by_transpose(i->op);
    const uint32_t out = s->edge_reg[i->dst].width;
    const gs_param *w;
    uint32_t in;

    if (i->a.kind != GS_FROM_REG || i->a.index >= s->edge_regs || !ready[i->a.index] || is_id(c, s, i->a.index) ||
        i->b.kind != GS_FROM_PARAM || i->b.index >= c->p->params)
        return fail(c, "%s: no register and matrices of the types", gs_op_name(i->op));
    w = &c->p->param[i->b.index];
    in = s->edge_reg[i->a.index].width;
    if (gs_op_is_dense(i->op))
        return is_part(w, back ? out : in, back ? in : out, i->site)
                   ? GS_OK
                   : fail(c, "%s: %u to %u elements by %s[%u, %u]", gs_op_name(i->op), in, out, w->name, w->rows,
                          w->cols);
    if (w->dims != 2 || w->cols != (back ? in : out) || w->rows % (back ? out : in) != 0)
        return fail(c, "%s: %u to %u elements by %s[%u, %u]", gs_op_name(i->op), in, out, w->name, w->rows, w->cols);
    return GS_OK;
}

static gs_status check_edge_instr(const gs_checker *c, const gs_stage *s, const gs_instr *i, bool *ready)
{
    const bool typed = gs_op_on_edges(i->op);
    const bool known = (unsigned)i->op < GS_OP_COUNT;
    uint32_t width = 1;
    bool rows = false;

    if (!known || !gs_op_is(i->op, GS_FACT_EDGE))
        return fail(c, "%s is no instruction of an edge program", known ? gs_op_name(i->op) : "this");
    if (i->dst >= s->edge_regs || s->edge_reg[i->dst].kind != GS_EDGE_TEMP || ready[i->dst])
        return fail(c, "edge program: register %u is no scratch register, or written twice", i->dst);
    if (typed) {
        GS_TRY(check_by_type(c, s, i, ready));
        ready[i->dst] = true;
        return GS_OK;
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
            return fail(c, "%s: widths %u and %u", gs_op_name(i->op), width, w);
        width = w > width ? w : width;
        rows |= o->kind == GS_FROM_REG;
    }
    if (!rows)
        return fail(c, "%s of no register", gs_op_name(i->op));
    ready[i->dst] = true;
    return check_width(c, i, width, s->edge_reg[i->dst].width);
}

static gs_status check_edge_program(gs_checker *c, const gs_stage *s)
{
    GS_FREED bool *ready = gs_calloc((size_t)s->edge_regs + 1, sizeof(*ready));

    GS_NEED(ready != NULL, "program: no memory to check stage %u", c->stage);
    GS_TRY(check_edge_regs(c, s, ready));
    for (c->instr = 0; c->instr < s->edge_instrs; c->instr++)
        GS_TRY(check_edge_instr(c, s, &s->edge_instr[c->instr], ready));
    c->instr = GS_NONE;
    for (uint32_t r = 0; r < s->edge_regs; r++)
        if (!ready[r])
            return fail(c, "edge register %u is never written", r);
    return GS_OK;
}

/* The edge program of a stage, then its sums; marks registers of sums as ready. */
static gs_status check_edge_pass(gs_checker *c, const gs_stage *s)
{
    if (s->sums > GS_STAGE_SUMS || s->direction > 1)
        return fail(c, "%u sums in direction %u", s->sums, s->direction);
    GS_TRY(check_edge_program(c, s));
    return check_sums(c, s);
}

/* ---- stages ------------------------------------------------------------ */

static gs_status check_regs(const gs_checker *c, const gs_stage *s)
{
    for (uint32_t r = 0; r < s->regs; r++) {
        const gs_reg *g = &s->reg[r];
        if (g->width == 0 || (unsigned)g->kind >= GS_REG_KINDS || g->dtype >= GS_DTYPE_COUNT)
            return fail(c, "register %u has no kind, type or width", r);
        if (g->kind != GS_REG_LOAD && g->dtype != GS_F32 &&
            (g->kind != GS_REG_TEMP || g->dtype != GS_BF16 || g->array == GS_NONE))
            return fail(c, "register %u is not f32", r);
        if (g->kind == GS_REG_SUM) {
            if (!c->reg_ready[r] || g->array != GS_NONE)
                return fail(c, "register %u is of no sum, or names an array", r);
            continue;
        }
        if (g->kind == GS_REG_TEMP && g->array == GS_NONE)
            continue;
        if (g->array >= c->p->arrays)
            return fail(c, "register %u: array %u does not exist", r, g->array);
        if (g->width != c->p->array[g->array].width || g->dtype != c->p->array[g->array].dtype)
            return fail(c, "register %u does not fit array %s", r, c->p->array[g->array].name);
        if (g->kind == GS_REG_LOAD) {
            if (!c->array_ready[g->array])
                return fail(c, "register %u: array %s is not written yet", r, c->p->array[g->array].name);
            c->reg_ready[r] = true;
        } else if (c->p->array[g->array].store_id >= 0) {
            return fail(c, "register %u would overwrite the store's array %s", r, c->p->array[g->array].name);
        } else if (c->p->array[g->array].lasting) {
            return fail(c, "register %u would overwrite %s, which no pass makes", r, c->p->array[g->array].name);
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
        fail(c, "operand %s: register %u does not exist or is not written yet", which, o->index);
        return 0;
    case GS_FROM_PARAM:
        if (param_is_there(c, o->index))
            return c->p->param[o->index].cols;
        fail(c, "operand %s: parameter %u does not exist, or no earlier stage makes it", which, o->index);
        return 0;
    case GS_FROM_CONST:
        return 1;
    default:
        fail(c, "operand %s is missing", which);
        return 0;
    }
}

static bool is_reg(const gs_stage *s, const gs_operand *o, gs_dtype type)
{
    return o->kind == GS_FROM_REG && s->reg[o->index].dtype == type;
}

static gs_status check_columns(const gs_checker *c, const gs_stage *s, const gs_instr *i, uint32_t width)
{
    const bool concat = i->op == GS_OP_CONCAT;
    const uint32_t a = operand_width(c, s, &i->a, "a"), b = concat ? operand_width(c, s, &i->b, "b") : 1;

    if (a == 0 || b == 0)
        return GS_EINVAL;
    if (!is_reg(s, &i->a, GS_F32) || (concat && !is_reg(s, &i->b, GS_F32)))
        return fail(c, "%s needs f32 registers", gs_op_name(i->op));
    if (concat ? width != (uint64_t)a + b : i->site > a || width > a - i->site)
        return fail(c, "%s of %u columns into %u", gs_op_name(i->op), concat ? a + b : a, width);
    return GS_OK;
}

/* In a vertex program: of the vertex itself. */
static gs_status check_mask(const gs_checker *c, const gs_stage *s, const gs_instr *i)
{
    if (operand_width(c, s, &i->a, "a") == 0 || operand_width(c, s, &i->b, "b") == 0)
        return GS_EINVAL;
    if (!is_reg(s, &i->a, GS_U32) || !is_reg(s, &i->b, GS_U32) || s->reg[i->a.index].width != 1 ||
        s->reg[i->b.index].width != 1)
        return fail(c, "edge_mask needs registers of input ids");
    return check_probability(c, i);
}

/* Elementwise operands are f32 rows, vectors of parameters, or constants; at least one has rows. */
static gs_status check_elementwise(const gs_checker *c, const gs_stage *s, const gs_instr *i, uint32_t width)
{
    static const char *const names[] = {"a", "b", "c"};
    uint32_t out = 1;
    bool rows = false;

    for (uint32_t k = 0; k < gs_op_inputs(i->op); k++) {
        const gs_operand *const o = gs_instr_operand(i, k);
        const uint32_t w = operand_width(c, s, o, names[k]);
        if (w == 0)
            return GS_EINVAL;
        if (w != 1 && out != 1 && w != out)
            return fail(c, "%s: widths %u and %u", gs_op_name(i->op), out, w);
        out = w > out ? w : out;
        rows |= o->kind == GS_FROM_REG;
        if (o->kind == GS_FROM_PARAM && c->p->param[o->index].dims != 1)
            return fail(c, "%s of a matrix", gs_op_name(i->op));
        if (o->kind == GS_FROM_REG && i->op != GS_OP_CAST && s->reg[o->index].dtype != GS_F32)
            return fail(c, "%s of a register that is not f32", gs_op_name(i->op));
    }
    if (!rows)
        return fail(c, "%s of no register", gs_op_name(i->op));
    if (check_width(c, i, out, width) != GS_OK)
        return GS_EINVAL;
    if (i->op == GS_OP_CAST && !is_reg(s, &i->a, GS_BF16) && !is_reg(s, &i->a, GS_F16) && !is_reg(s, &i->a, GS_U32))
        return fail(c, "cast of a register that is neither bf16 nor f16, nor of ids");
    if (i->op == GS_OP_ROUND && i->a.kind != GS_FROM_REG)
        return fail(c, "round of no register");
    if (i->op == GS_OP_DROPOUT) {
        if (operand_width(c, s, &i->b, "b") != 1 || !is_reg(s, &i->b, GS_U32))
            return fail(c, "dropout needs a register of input ids as b");
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
        return fail(c, "%s needs an f32 register and a parameter", gs_op_name(i->op));
    w = &c->p->param[i->b.index];
    fits = i->op == GS_OP_MATMUL_T ? a == w->cols && width == w->rows : a == w->rows && width == w->cols;
    if (i->op == GS_OP_MIX)
        fits = a % w->rows == 0 && width == (uint64_t)a / w->rows * w->cols;
    else if (i->op == GS_OP_MIX_T)
        fits = a % w->cols == 0 && width == (uint64_t)a / w->cols * w->rows;
    else if (i->op == GS_OP_FAN)
        fits = w->rows % a == 0 && width == (uint64_t)w->rows / a * w->cols;
    else if (i->op == GS_OP_FAN_T)
        fits = width != 0 && w->rows % width == 0 && a == (uint64_t)w->rows / width * w->cols;
    if (w->dims != 2 || !fits)
        return fail(c, "%s: %u elements by %s[%u, %u] into %u", gs_op_name(i->op), a, w->name, w->rows, w->cols, width);
    return GS_OK;
}

static gs_status check_reduce(const gs_checker *c, const gs_stage *s, const gs_instr *i)
{
    const bool outer = gs_op_is_outer(i->op);
    const uint32_t a = operand_width(c, s, &i->a, "a");
    const uint32_t b = outer ? operand_width(c, s, &i->b, "b") : a;
    const gs_param *w;

    if (a == 0 || b == 0)
        return GS_EINVAL;
    if (i->dst >= c->p->params)
        return fail(c, "parameter %u does not exist", i->dst);
    w = &c->p->param[i->dst];
    if (w->fixed)
        return fail(c, "%s into %s, which is not learned", gs_op_name(i->op), w->name);
    if (!is_reg(s, &i->a, GS_F32) || (outer && !is_reg(s, &i->b, GS_F32)))
        return fail(c, "%s needs f32 registers", gs_op_name(i->op));
    if (i->op == GS_OP_FAN_OUTER) {
        if (w->dims != 2 || w->rows % a != 0 || b != (uint64_t)w->rows / a * w->cols)
            return fail(c, "%s: %u and %u columns do not fit %s[%u, %u]", gs_op_name(i->op), a, b, w->name, w->rows,
                        w->cols);
        return GS_OK;
    }
    if (i->op == GS_OP_MIX_OUTER) {
        if (w->dims != 2 || a % w->rows != 0 || b % w->cols != 0 || a / w->rows != b / w->cols)
            return fail(c, "%s: %u and %u columns are no blocks of %s[%u, %u]", gs_op_name(i->op), a, b, w->name,
                        w->rows, w->cols);
        return GS_OK;
    }
    if (outer ? (w->dims != 2 || w->rows != a || w->cols != b) : (w->dims != 1 || w->cols != a))
        return fail(c, "%s: widths %u, %u do not fit %s[%u, %u]", gs_op_name(i->op), a, b, w->name, w->rows, w->cols);
    return GS_OK;
}

static gs_status check_statistic(const gs_checker *c, const gs_stage *s, const gs_instr *i)
{
    const gs_statistic kind = i->op == GS_OP_MEAN_ALL ? GS_STATISTIC_MEAN : GS_STATISTIC_VARIANCE;
    const uint32_t a = operand_width(c, s, &i->a, "a");

    if (a == 0)
        return GS_EINVAL;
    if (!is_reg(s, &i->a, GS_F32))
        return fail(c, "%s needs an f32 register", gs_op_name(i->op));
    if (i->dst >= c->p->params || c->p->param[i->dst].statistic != kind || c->p->param[i->dst].cols != a)
        return fail(c, "%s of %u columns: parameter %u is no such statistic", gs_op_name(i->op), a, i->dst);
    if (c->made[i->dst] != GS_NONE)
        return fail(c, "statistic %s is made twice", c->p->param[i->dst].name);
    c->made[i->dst] = c->stage;
    return GS_OK;
}

/* Labels that the loss takes, for so many logits. */
static bool is_labels(const gs_stage *s, const gs_instr *i, uint32_t logits)
{
    const gs_train_task task = gs_loss_task(gs_op_facts_of(i->op)->loss);
    const bool numbers = task == GS_TRAIN_TASK_REGRESS, classes = task == GS_TRAIN_TASK_CLASSIFY;
    if (i->b.kind != GS_FROM_REG)
        return false;
    const gs_reg *const r = &s->reg[i->b.index];
    if (r->dtype == GS_I32)
        return r->width == 1 && (classes || (numbers && logits == 1));
    return r->width == logits && ((r->dtype == GS_U8 && !classes) || (r->dtype == GS_F32 && numbers));
}

static gs_status check_loss(const gs_checker *c, const gs_stage *s, const gs_instr *i, uint32_t width)
{
    const uint32_t a = operand_width(c, s, &i->a, "a");
    if (a == 0 || operand_width(c, s, &i->b, "b") == 0 || operand_width(c, s, &i->c, "c") == 0)
        return GS_EINVAL;
    if (!is_reg(s, &i->a, GS_F32) || !is_labels(s, i, a) || !is_reg(s, &i->c, GS_U8) || s->reg[i->c.index].width != 1)
        return fail(c, "%s needs registers of logits (f32), of labels of its task, and of splits (u8)",
                    gs_op_name(i->op));
    if (gs_op_is_loss_grad(i->op) && width != a)
        return fail(c, "%s of %u logits into %u elements", gs_op_name(i->op), a, width);
    return GS_OK;
}

static gs_status check_instr(const gs_checker *c, const gs_stage *s, const gs_instr *i)
{
    const bool known = (unsigned)i->op < GS_OP_COUNT && gs_op_is(i->op, GS_FACT_VERTEX);
    const gs_op_class cls = known ? gs_op_classof(i->op) : GS_CLASS_LEAF;
    const bool writes =
        cls == GS_CLASS_ELEMENTWISE || cls == GS_CLASS_MATMUL || (known && gs_op_is_loss_grad(i->op));
    uint32_t width = 0;

    if (writes) {
        if (i->dst >= s->regs || s->reg[i->dst].kind != GS_REG_TEMP)
            return fail(c, "writes register %u, which is no scratch register", i->dst);
        if (c->reg_ready[i->dst])
            return fail(c, "register %u is written twice", i->dst);
        if ((i->op == GS_OP_ROUND) != (s->reg[i->dst].dtype == GS_BF16))
            return fail(c, "%s into register %u, which is %s", gs_op_name(i->op), i->dst,
                        gs_dtype_name(s->reg[i->dst].dtype));
        width = s->reg[i->dst].width;
    } else if (cls == GS_CLASS_LOSS && i->dst != GS_NONE) {
        return fail(c, "%s writes no register", gs_op_name(i->op));
    }
    switch (cls) {
    case GS_CLASS_ELEMENTWISE:
        GS_TRY(gs_op_form_of(i->op) == GS_FORM_COLUMNS ? check_columns(c, s, i, width)
               : i->op == GS_OP_EDGE_MASK              ? check_mask(c, s, i)
                                                       : check_elementwise(c, s, i, width));
        break;
    case GS_CLASS_MATMUL:
        GS_TRY(check_matmul(c, s, i, width));
        break;
    case GS_CLASS_REDUCE:
        return check_reduce(c, s, i);
    case GS_CLASS_STATISTIC:
        return check_statistic(c, s, i);
    case GS_CLASS_LOSS:
        GS_TRY(check_loss(c, s, i, width));
        break;
    default:
        return fail(c, "%s is no instruction of a vertex program", gs_op_name(i->op));
    }
    if (writes)
        c->reg_ready[i->dst] = true;
    return GS_OK;
}

/* After the stage its stored arrays are there; none may be stored a second time. */
static gs_status check_stores(const gs_checker *c, const gs_stage *s)
{
    for (uint32_t r = 0; r < s->regs; r++) {
        const gs_reg *g = &s->reg[r];
        if (g->kind != GS_REG_TEMP)
            continue;
        if (!c->reg_ready[r])
            return fail(c, "register %u is never written", r);
        if (g->array == GS_NONE)
            continue;
        if (c->array_ready[g->array])
            return fail(c, "array %s is stored twice", c->p->array[g->array].name);
        c->array_ready[g->array] = true;
    }
    if (s->sums > 0 && s->sum[0].kind == GS_SUM_LSTM_BACK)
        c->array_ready[s->sum[0].array] = true; /* complete with the stage, not before */
    return GS_OK;
}

static gs_status check_stage(gs_checker *c, uint32_t index)
{
    const gs_stage *s = &c->p->stage[index];
    GS_FREED bool *const ready = gs_calloc((size_t)s->regs + 1, sizeof(*ready));

    c->stage = index;
    c->instr = GS_NONE;
    GS_NEED((c->reg_ready = ready) != NULL, "program: no memory to check stage %u", index);
    GS_TRY(check_edge_pass(c, s));
    GS_TRY(check_regs(c, s));
    for (c->instr = 0; c->instr < s->instrs; c->instr++)
        GS_TRY(check_instr(c, s, &s->instr[c->instr]));
    c->instr = GS_NONE;
    return check_stores(c, s);
}

/* The pass that runs once, before all others, or NULL. */
static const gs_pass *setup_pass(const gs_program *p)
{
    const uint32_t setup = gs_program_pass(p, "setup");
    return setup != GS_NONE ? &p->pass[setup] : NULL;
}

/* Marks the arrays that a pass stores; none where its stages do not exist. */
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

    if (q->first_stage > p->stages || q->stages > p->stages - q->first_stage || q->stages == 0)
        return gs_fail(GS_EINVAL, "program: pass %s has stages %u to %u of %u", q->name, q->first_stage,
                       q->first_stage + q->stages, p->stages);
    GS_FREED bool *const ready = c.array_ready = gs_calloc((size_t)p->arrays + 1, sizeof(*c.array_ready));
    GS_FREED uint32_t *const made = c.made = gs_malloc_array((size_t)p->params + 1, sizeof(*c.made));
    GS_NEED(ready != NULL && made != NULL, "program: no memory to check pass %s", q->name);
    for (uint32_t i = 0; i < p->params; i++)
        c.made[i] = GS_NONE;
    for (uint32_t a = 0; a < p->arrays; a++)
        c.array_ready[a] = p->array[a].store_id >= 0 || p->array[a].lasting;
    if (q != setup_pass(p))
        mark_stored(p, setup_pass(p), c.array_ready);
    for (uint32_t s = q->first_stage; s < q->first_stage + q->stages; s++)
        GS_TRY(check_stage(&c, s));
    return GS_OK;
}

static gs_status check_params(const gs_program *p)
{
    for (uint32_t i = 0; i < p->params; i++) {
        const gs_param *q = &p->param[i];
        const bool statistic = q->statistic != GS_STATISTIC_NONE;
        if (q->rows == 0 || q->cols == 0 || q->dims < 1 || q->dims > 2 || (q->dims == 1 && q->rows != 1))
            return gs_fail(GS_EINVAL, "program: parameter %u (%s) has no valid shape", i, q->name);
        if ((statistic || q->counter) && (!q->fixed || q->dims != 1 || (q->counter && q->cols != 1)))
            return gs_fail(GS_EINVAL, "program: parameter %u (%s) is no row that a run may write", i, q->name);
        if (statistic && q->running != GS_NONE &&
            (q->running >= p->params || !p->param[q->running].fixed || p->param[q->running].dims != 1 ||
             p->param[q->running].statistic != GS_STATISTIC_NONE || p->param[q->running].cols != q->cols))
            return gs_fail(GS_EINVAL, "program: statistic %u (%s) has no parameter to follow it", i, q->name);
    }
    return GS_OK;
}

static gs_status check_tables(const gs_program *p)
{
    for (uint32_t i = 0; i < p->tables; i++) {
        const gs_table *const t = &p->table[i];
        const bool there = t->array < p->arrays && p->array[t->array].lasting && p->array[t->array].width == t->width;
        const bool result = t->gradient == GS_NONE || (t->gradient < p->arrays && p->array[t->gradient].result &&
                                                       p->array[t->gradient].width == t->width);
        if (!there || !result)
            return gs_fail(GS_EINVAL, "program: table %u (%s) has no array of its own, or no gradient like it", i,
                           t->name);
    }
    return GS_OK;
}

gs_status gs_program_check(const gs_program *p)
{
    GS_TRY(check_params(p));
    /* Tiles of rows are written as whole blocks, which two tiles would share where rows are not whole words. */
    for (uint32_t i = 0; i < p->arrays; i++)
        if (p->array[i].width == 0 || p->array[i].dtype >= GS_DTYPE_COUNT ||
            (p->array[i].store_id < 0 && p->array[i].dtype != GS_F32 &&
             (p->array[i].dtype != GS_BF16 || p->array[i].width % 2 != 0)))
            return gs_fail(GS_EINVAL, "program: array %u (%s) has no valid type or width", i, p->array[i].name);
    GS_TRY(check_tables(p));
    if (p->logits != GS_NONE && p->logits >= p->arrays)
        return gs_fail(GS_EINVAL, "program: the logits are array %u of %u", p->logits, p->arrays);
    for (uint32_t i = 0; i < p->passes; i++)
        GS_TRY(check_pass(p, &p->pass[i]));
    return GS_OK;
}
