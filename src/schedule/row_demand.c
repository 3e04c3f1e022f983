/* row_demand.c - on which rows does what a vertex program loads change anything?
 *
 * Off the rows where a product's one side is 0, its other side may be any number: the gradient of a softmax multiplies
 * what the forward pass kept by a gradient that few rows have. So the kept rows beside those need not be made; they
 * read as 0. The other side must be a number there, though: nothing that could make an infinity of such a 0 may lie
 * between the load and the product.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "schedule/row_sets_internal.h"

/* What is known of a register while a stage is looked at. */
struct demand {
    struct finder *f;
    const uint32_t *support; /* [regs] outside of it, 0 */
    uint32_t *rows;          /* [regs] found: where its value counts */
    bool *tame;              /* [regs] a number, whatever loads and sums are 0 */
    uint32_t all;            /* rows that the stage runs for */
};

static bool is_reg(const gs_operand *o) { return o->kind == GS_FROM_REG; }
static bool is_tame(const struct demand *d, const gs_operand *o) { return !is_reg(o) || d->tame[o->index]; }

/* Log-sum-exps of no edges are infinite; sums by maximum, too, in some rows, so only plain ones pass. */
static void find_tame(struct demand *d, const gs_stage *s)
{
    for (uint32_t r = 0; r < s->regs; r++)
        d->tame[r] = s->reg[r].kind == GS_REG_LOAD;
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].reg != GS_NONE)
            d->tame[s->sum[i].reg] = s->sum[i].kind == GS_SUM_ADD;
    for (uint32_t i = 0; i < s->instrs; i++) {
        const gs_instr *const in = &s->instr[i];
        if (in->dst != GS_NONE && !gs_op_into_param(in->op))
            d->tame[in->dst] = in->op != GS_OP_DIV && !gs_op_is(in->op, GS_FACT_DIVERGES) && is_tame(d, &in->a) &&
                               is_tame(d, &in->b) && is_tame(d, &in->c);
    }
}

static void ask(struct demand *d, const gs_operand *o, uint32_t rows)
{
    if (is_reg(o))
        d->rows[o->index] = gs_rows__unite(d->f, d->rows[o->index], rows);
}

/* Both sides of a product on `rows`: of one of them only those where the other is not 0. */
static void ask_product(struct demand *d, const gs_operand *a, const gs_operand *b, uint32_t rows)
{
    const bool a_masks = is_reg(a) && d->support[a->index] != GS_ALL_ROWS && is_reg(b) && is_tame(d, b),
               b_masks = is_reg(b) && d->support[b->index] != GS_ALL_ROWS && is_reg(a) && is_tame(d, a);
    ask(d, a, b_masks && !a_masks ? gs_rows__meet(d->f, rows, d->support[b->index]) : rows);
    ask(d, b, a_masks ? gs_rows__meet(d->f, rows, d->support[a->index]) : rows);
}

static void ask_operands(struct demand *d, const gs_instr *in)
{
    const bool reduces = gs_op_into_param(in->op) || in->dst == GS_NONE || gs_op_classof(in->op) == GS_CLASS_LOSS;
    const uint32_t rows = reduces ? d->all : d->rows[in->dst];

    if (in->op == GS_OP_MUL || gs_op_is_outer(in->op)) {
        ask_product(d, &in->a, &in->b, rows);
        return;
    }
    ask(d, &in->a, rows);
    ask(d, &in->b, rows);
    ask(d, &in->c, rows);
}

void gs_rows__demand(struct finder *f, uint32_t *out, uint32_t k, uint32_t rows)
{
    const gs_stage *const s = &f->c->program->stage[k];
    bool *const tame = gs_calloc(s->regs + 1, sizeof(*tame));
    struct demand d = {.f = f, .support = f->support[k].reg, .rows = out, .tame = tame, .all = rows};

    for (uint32_t r = 0; r < s->regs; r++)
        out[r] = s->reg[r].kind == GS_REG_TEMP && s->reg[r].array == GS_NONE ? f->none : rows;
    if (tame == NULL || d.support == NULL) {
        gs_free(tame);
        return; /* loads count on all rows */
    }
    for (uint32_t r = 0; r < s->regs; r++)
        out[r] = s->reg[r].kind == GS_REG_LOAD ? f->none : out[r];
    find_tame(&d, s);
    for (uint32_t i = s->instrs; i-- > 0;)
        ask_operands(&d, &s->instr[i]);
    gs_free(tame);
}
