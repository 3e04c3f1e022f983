#include "program/program.h"

#include <string.h>

#include "base/alloc.h"

#define OPERANDS 3u

typedef struct rest {
    gs_stage *stage;
    bool *zero; /* [regs] */
    bool *read; /* [regs] by instructions that are kept */
    const gs_zero_rows *known;
} rest;

static bool is_zero(const rest *r, const gs_operand *o)
{
    if (o->kind == GS_FROM_CONST)
        return o->value == 0;
    return o->kind == GS_FROM_REG && r->zero[o->index];
}

/* Is the result 0, by the operator's row in the table? */
static bool makes_zero(const rest *r, const gs_instr *in)
{
    const unsigned n = gs_op_inputs(in->op);
    const bool a = is_zero(r, &in->a), b = is_zero(r, &in->b), c = is_zero(r, &in->c);
    switch (gs_op_facts_of(in->op)->zero) {
    case GS_ZERO_FIRST:
        return a && in->op != GS_OP_DIV; /* 0 / 0 is none */
    case GS_ZERO_ALL:
        return a && (n < 2 || b);
    case GS_ZERO_ANY:
        return a || b;
    case GS_ZERO_CHOICE:
        return b && c;
    case GS_ZERO_POWER:
        return a && in->alpha > 0;
    default:
        return false;
    }
}

/* A sum with 0 is a copy of the other operand, which must be as wide: a number for all columns is left as it is. */
static bool becomes_copy(const rest *r, gs_instr *in)
{
    const bool first = is_zero(r, &in->a);
    const gs_operand other = first ? in->b : in->a;
    const gs_reg *const reg = r->stage->reg;
    if ((in->op != GS_OP_ADD && (in->op != GS_OP_SUB || first)) || (!first && !is_zero(r, &in->b)) ||
        other.kind != GS_FROM_REG || reg[other.index].width != reg[in->dst].width)
        return false;
    in->op = GS_OP_MUL;
    in->a = other;
    in->b = (gs_operand){.kind = GS_FROM_CONST, .value = 1};
    return true;
}

/* What is added to a gradient of products by 0, or of 0. */
static bool adds_nothing(const rest *r, const gs_instr *in)
{
    return gs_op_classof(in->op) == GS_CLASS_REDUCE &&
           (is_zero(r, &in->a) || (gs_op_is_outer(in->op) && is_zero(r, &in->b)));
}

static bool is_kept(const rest *r, const gs_instr *in)
{
    if (gs_op_into_param(in->op))
        return !adds_nothing(r, in);
    if (gs_op_classof(in->op) == GS_CLASS_LOSS || in->dst == GS_NONE)
        return true;
    return r->read[in->dst] || (r->stage->reg[in->dst].array != GS_NONE && !r->known->unread[in->dst]);
}

/* Finds zeros in the order of the instructions, and makes copies of sums with them. True: of some. */
static bool find_zeros(rest *r)
{
    bool some = false;
    for (uint32_t i = 0; i < r->stage->instrs; i++) {
        gs_instr *const in = &r->stage->instr[i];
        if (gs_op_into_param(in->op) || gs_op_classof(in->op) == GS_CLASS_LOSS)
            continue;
        r->zero[in->dst] = makes_zero(r, in);
        some |= !r->zero[in->dst] && becomes_copy(r, in);
    }
    return some;
}

/* From the last to the first, as what reads a register stands behind what writes it. The kept ones move together. */
static bool drop_unread(rest *r)
{
    gs_stage *const s = r->stage;
    uint32_t first = s->instrs;
    for (uint32_t i = s->instrs; i-- > 0;) {
        if (!is_kept(r, &s->instr[i]))
            continue;
        for (uint32_t k = 0; k < OPERANDS; k++) {
            const gs_operand *const o = gs_instr_operand(&s->instr[i], k);
            if (o->kind == GS_FROM_REG)
                r->read[o->index] = true;
        }
        s->instr[--first] = s->instr[i];
    }
    memmove(s->instr, s->instr + first, (s->instrs - first) * sizeof(*s->instr));
    s->instrs -= first;
    return first > 0;
}

/* Registers that no instruction reads are not loaded, and those that nobody reads behind the stage are not stored. */
static void drop_rows(rest *r)
{
    for (uint32_t k = 0; k < r->stage->regs; k++) {
        gs_reg *const g = &r->stage->reg[k];
        if (g->kind != GS_REG_TEMP ? !r->read[k] : r->known->unread[k]) {
            g->kind = GS_REG_TEMP;
            g->array = GS_NONE;
        }
    }
}

gs_status gs_stage_rest(gs_stage *out, bool *read, bool *shorter, const gs_stage *s, const gs_zero_rows *known)
{
    gs_stage stage = *s;
    rest r = {.stage = &stage, .zero = gs_calloc(s->regs + 1ull, sizeof(bool)), .read = read, .known = known};
    gs_status st = GS_OK;

    stage.instr = gs_malloc_array(s->instrs + 1ull, sizeof(*stage.instr));
    stage.reg = gs_malloc_array(s->regs + 1ull, sizeof(*stage.reg));
    *shorter = false;
    if (r.zero == NULL || stage.instr == NULL || stage.reg == NULL) {
        st = gs_fail(GS_ENOMEM, "out of memory for what is left of a stage");
    } else {
        memcpy(stage.instr, s->instr, s->instrs * sizeof(*s->instr));
        memcpy(stage.reg, s->reg, s->regs * sizeof(*s->reg));
        for (uint32_t k = 0; k < s->regs; k++) {
            r.zero[k] = s->reg[k].kind != GS_REG_TEMP && known->zero[k];
            read[k] = false;
        }
        const bool copies = find_zeros(&r);
        *shorter = drop_unread(&r) || copies;
        drop_rows(&r);
    }
    if (*shorter)
        *out = stage;
    else
        gs_stage_drop_rest(&stage);
    gs_free(r.zero);
    return st;
}

void gs_stage_drop_rest(gs_stage *left)
{
    gs_free(left->instr);
    gs_free(left->reg);
    *left = (gs_stage){0};
}
