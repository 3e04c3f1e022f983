/* row_support.c - outside which rows is a value 0?
 *
 * The gradient of a loss is 0 off the training rows; what products, masks and scalings make
 * of 0 is 0; a sum over edges is 0 where no edge names a row that is not.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/row_sets_internal.h"

/* Outside `operand` at the one end or `target` at the other, an edge's value is 0. */
struct ends {
    uint32_t operand, target;
};

/* A constant 0 adds nothing; any other operand that is no register is not 0 anywhere. */
static uint32_t operand_rows(const struct finder *f, const gs_operand *o, const uint32_t *reg)
{
    if (o->kind == GS_FROM_REG)
        return reg[o->index];
    return o->kind == GS_FROM_CONST && o->value == 0 ? f->none : GS_ALL_ROWS;
}

/* a, b, c: the rows outside of which the operands are 0. */
static uint32_t value_rows(struct finder *f, const gs_instr *in, uint32_t a, uint32_t b, uint32_t c)
{
    switch (gs_op_facts_of(in->op)->zero) {
    case GS_ZERO_FIRST:
        return a;
    case GS_ZERO_ALL:
        return gs_rows__unite(f, a, b);
    case GS_ZERO_CHOICE:
        return gs_rows__unite(f, b, c);
    case GS_ZERO_POWER:
        return in->alpha > 0 ? a : GS_ALL_ROWS;
    case GS_ZERO_ANY:
        return gs_rows__meet(f, a, b);
    case GS_ZERO_TRAIN:
        return f->train;
    case GS_ZERO_LOST:
        break;
    }
    return GS_ALL_ROWS;
}

/* The same of an operand of an edge program, at the edge's two ends. */
static struct ends operand_ends(const struct finder *f, const gs_operand *o, const struct ends *reg)
{
    const uint32_t rows = o->kind == GS_FROM_CONST && o->value == 0 ? f->none : GS_ALL_ROWS;
    return o->kind == GS_FROM_REG ? reg[o->index] : (struct ends){rows, rows};
}

static void edge_program(struct finder *f, const gs_stage *s, struct ends *reg)
{
    for (uint32_t r = 0; r < s->edge_regs; r++) {
        const gs_edge_reg *er = &s->edge_reg[r];
        reg[r] = (struct ends){GS_ALL_ROWS, GS_ALL_ROWS};
        if (er->kind == GS_EDGE_OPERAND)
            reg[r].operand = f->array[er->array];
        else if (er->kind == GS_EDGE_TARGET)
            reg[r].target = f->array[er->array];
    }
    for (uint32_t i = 0; i < s->edge_instrs; i++) {
        const gs_instr *in = &s->edge_instr[i];
        const struct ends a = operand_ends(f, &in->a, reg), b = operand_ends(f, &in->b, reg),
                          c = operand_ends(f, &in->c, reg);
        reg[in->dst].operand = value_rows(f, in, a.operand, b.operand, c.operand);
        reg[in->dst].target = value_rows(f, in, a.target, b.target, c.target);
    }
}

/* Finds the support of the stage's sums, and the edges that they need. Maximum, minimum and softmax look at every edge
 * of a target. */
static void edge_sums(struct finder *f, const gs_stage *s, struct support *out, const struct ends *edge, uint32_t *reg)
{
    out->operands = out->targets = s->sums ? f->none : GS_ALL_ROWS;
    for (uint32_t i = 0; i < s->sums; i++) {
        const gs_sum *m = &s->sum[i];
        gs_row_sum r;
        const bool rows = gs_sum_of_rows(&r, s, i), outer = m->kind == GS_SUM_OUTER;
        const bool plain = rows || outer || m->kind == GS_SUM_ADD || m->kind == GS_SUM_ADD_TYPE;
        const uint32_t own = !rows                 ? GS_ALL_ROWS
                             : r.scale == GS_NONE ? f->array[r.array]
                                                  : gs_rows__meet(f, f->array[r.array], f->array[r.scale]);
        struct ends e = rows ? (struct ends){own, GS_ALL_ROWS} : edge[m->value];
        if (outer) /* 0 where one of the two is */
            e = (struct ends){gs_rows__meet(f, e.operand, edge[m->score].operand),
                              gs_rows__meet(f, e.target, edge[m->score].target)};
        uint32_t set = gs_rows__meet(f, gs_rows__reach(f, 1 - s->direction, e.operand), e.target);
        if (m->self)
            set = gs_rows__unite(f, set, own);
        reg[m->reg] = set;
        if (outer)
            out->reduced = gs_rows__unite(f, out->reduced, set);
        if (m->kind == GS_SUM_ATTEND)
            reg[m->lse] = GS_ALL_ROWS;
        out->operands = gs_rows__unite(f, out->operands, plain ? e.operand : GS_ALL_ROWS);
        out->targets = gs_rows__unite(f, out->targets, m->kind == GS_SUM_ATTEND ? GS_ALL_ROWS : e.target);
    }
}

static void vertex_program(struct finder *f, const gs_stage *s, struct support *out, uint32_t *reg)
{
    for (uint32_t i = 0; i < s->instrs; i++) {
        const gs_instr *in = &s->instr[i];
        const gs_op_class class = gs_op_classof(in->op);
        const uint32_t a = operand_rows(f, &in->a, reg), b = operand_rows(f, &in->b, reg),
                       c = operand_rows(f, &in->c, reg);
        out->loss = out->loss || class == GS_CLASS_LOSS;
        if (gs_op_is_outer(in->op))
            out->reduced = gs_rows__unite(f, out->reduced, gs_rows__meet(f, a, b));
        else if (in->op == GS_OP_COLSUM)
            out->reduced = gs_rows__unite(f, out->reduced, a);
        else if (gs_op_into_param(in->op))
            out->everything = true;
        else if (in->dst != GS_NONE)
            reg[in->dst] = value_rows(f, in, a, b, c);
    }
    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind == GS_REG_TEMP && s->reg[r].array != GS_NONE)
            f->array[s->reg[r].array] = reg[r];
}

static bool is_setup(const gs_pass *p) { return strcmp(p->name, "setup") == 0; }

static void find_stage(struct finder *f, const gs_stage *s, struct support *out, struct ends *edge)
{
    if ((out->reg = gs_malloc_array(s->regs + 1, sizeof(*out->reg))) == NULL) {
        f->status = gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
        return;
    }
    for (uint32_t r = 0; r < s->regs; r++)
        out->reg[r] = s->reg[r].kind == GS_REG_LOAD ? f->array[s->reg[r].array] : GS_ALL_ROWS;
    edge_program(f, s, edge);
    edge_sums(f, s, out, edge, out->reg);
    vertex_program(f, s, out, out->reg);
}

gs_status gs_rows__support(struct finder *f)
{
    const gs_program *p = f->c->program;
    /* A state goes through all the edges of a vertex, and its gradient back through all of them. */
    const bool sequences = gs_program_has_sequences(p);
    uint32_t edge_regs = 1;

    for (uint32_t k = 0; k < p->stages; k++)
        edge_regs = GS_MAX(edge_regs, p->stage[k].edge_regs);
    struct ends *edge = gs_calloc(edge_regs, sizeof(*edge));
    if (edge == NULL)
        f->status = gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
    for (uint32_t q = 0; q < p->passes && f->status == GS_OK; q++)
        for (uint32_t k = p->pass[q].first_stage; k < p->pass[q].first_stage + p->pass[q].stages; k++) {
            struct support *out = &f->support[k];
            *out = (struct support){.reduced = f->none};
            out->everything = sequences || is_setup(&p->pass[q]) || f->c->reported[q] == NULL ||
                              gs_program_needs_all_rows(p, q);
            if (!out->everything && f->status == GS_OK)
                find_stage(f, &p->stage[k], out, edge);
        }
    gs_free(edge);
    return f->status;
}

/* ---- what rows that lack some of their edges could become ---- */

enum taint {
    CLEAN,
    NOT_ZERO, /* of such rows, but a maximum with a constant above 0: a degree, counted */
    PARTIAL,
    INFINITE, /* the log-sum-exp of no edges */
};

static enum taint operand_taint(const gs_operand *o, const enum taint *reg)
{
    return o->kind == GS_FROM_REG ? reg[o->index] : CLEAN;
}

static bool unsafe_instr(const gs_stage *s, const gs_instr *in, enum taint *reg)
{
    const enum taint a = operand_taint(&in->a, reg), b = operand_taint(&in->b, reg), c = operand_taint(&in->c, reg);
    const enum taint most = GS_MAX(GS_MAX(a, b), c);
    const bool reduces = gs_op_into_param(in->op);

    const bool above = in->op == GS_OP_MAX && in->b.kind == GS_FROM_CONST && in->b.value > 0;
    if (!reduces && in->dst != GS_NONE)
        reg[in->dst] = most == CLEAN || most == INFINITE ? most : above ? NOT_ZERO : PARTIAL;
    /* A sum may be kept as it is: a product by a constant, to an array that only edges read. */
    if (most == INFINITE)
        return !(in->op == GS_OP_MUL && in->b.kind == GS_FROM_CONST && s->reg[in->dst].array != GS_NONE);
    return in->op == GS_OP_DIV ? b == PARTIAL : gs_op_is(in->op, GS_FACT_DIVERGES) && a != CLEAN;
}

bool gs_rows__unsafe(const gs_program *p)
{
    enum taint *array = gs_calloc(p->arrays + 1, sizeof(*array)), *reg = NULL;
    bool unsafe = array == NULL;

    for (uint32_t q = 0; q < p->passes && !unsafe; q++)
        for (uint32_t k = p->pass[q].first_stage; k < p->pass[q].first_stage + p->pass[q].stages && !unsafe; k++) {
            const gs_stage *s = &p->stage[k];
            reg = gs_calloc(s->regs + 1, sizeof(*reg));
            if (reg == NULL || is_setup(&p->pass[q])) {
                unsafe = reg == NULL;
                gs_free(reg);
                continue;
            }
            for (uint32_t r = 0; r < s->regs; r++)
                reg[r] = s->reg[r].kind == GS_REG_LOAD ? array[s->reg[r].array] : CLEAN;
            for (uint32_t i = 0; i < s->sums; i++) {
                if (s->sum[i].reg != GS_NONE) /* a sequence's derivative has none */
                    reg[s->sum[i].reg] = PARTIAL;
                if (s->sum[i].kind == GS_SUM_ATTEND)
                    reg[s->sum[i].lse] = INFINITE;
            }
            for (uint32_t i = 0; i < s->instrs; i++)
                unsafe = unsafe || unsafe_instr(s, &s->instr[i], reg);
            for (uint32_t r = 0; r < s->regs; r++)
                if (s->reg[r].kind == GS_REG_TEMP && s->reg[r].array != GS_NONE)
                    array[s->reg[r].array] = GS_MAX(reg[r], PARTIAL);
            gs_free(reg);
        }
    gs_free(array);
    return unsafe;
}
