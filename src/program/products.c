/* products.c - which attributes of edges do values of an edge program depend on, and what of it is linear. */
#include "program/products.h"

#include "base/size.h"

static const gs_instr *maker_of(const gs_stage *s, uint32_t reg)
{
    for (uint32_t i = 0; i < s->edge_instrs; i++)
        if (s->edge_instr[i].dst == reg)
            return &s->edge_instr[i];
    return NULL;
}

static unsigned of_leaf(const gs_edge_reg *r)
{
    const unsigned type = r->typed ? GS_OF_TYPE : 0;
    return r->kind == GS_EDGE_OPERAND ? GS_OF_OPERAND | type : r->kind == GS_EDGE_TARGET ? GS_OF_TARGET | type
                                                                                         : GS_OF_EDGE;
}

/* A mask draws by what an edge is among its parallels. */
static unsigned of_instr(const gs_instr *i)
{
    return i->op == GS_OP_EDGE_MASK ? GS_OF_EDGE : gs_op_by_type(i->op) ? GS_OF_TYPE : 0;
}

unsigned gs_edge_attributes(const gs_stage *s, uint32_t reg)
{
    const gs_instr *const in = s->edge_reg[reg].kind == GS_EDGE_TEMP ? maker_of(s, reg) : NULL;
    unsigned of = in == NULL ? of_leaf(&s->edge_reg[reg]) : of_instr(in);

    for (uint32_t k = 0; in != NULL && k < gs_op_inputs(in->op); k++)
        if (gs_instr_operand(in, k)->kind == GS_FROM_REG)
            of |= gs_edge_attributes(s, gs_instr_operand(in, k)->index);
    return of;
}

/* The same for all edges of a run: a number or a row of the target and the type, a constant, a parameter. */
static bool is_of_run(const gs_stage *s, const gs_operand *o)
{
    return o->kind != GS_FROM_REG || (gs_edge_attributes(s, o->index) & ~(unsigned)(GS_OF_TARGET | GS_OF_TYPE)) == 0;
}

/* Is the register the product, or what a run multiplies it by? */
static bool is_linear(const gs_stage *s, uint32_t reg, uint32_t product)
{
    const gs_instr *const in = s->edge_reg[reg].kind == GS_EDGE_TEMP ? maker_of(s, reg) : NULL;

    if (reg == product || in == NULL || in->op != GS_OP_MUL)
        return reg == product;
    return (in->a.kind == GS_FROM_REG && is_linear(s, in->a.index, product) && is_of_run(s, &in->b)) ||
           (in->b.kind == GS_FROM_REG && is_linear(s, in->b.index, product) && is_of_run(s, &in->a));
}

/* The one product that the stage's edges make; GS_NONE: none, or more. */
static uint32_t only_product(const gs_stage *s, bool *more)
{
    uint32_t at = GS_NONE;

    *more = false;
    for (uint32_t i = 0; i < s->edge_instrs; i++)
        if (gs_op_on_edges(s->edge_instr[i].op)) {
            *more = *more || at != GS_NONE || !gs_op_by_type(s->edge_instr[i].op);
            at = i;
        }
    return at;
}

/* Does a value see the operand end otherwise than by the product? */
static bool sees_operand(const gs_stage *s, uint32_t reg, uint32_t product)
{
    const gs_instr *const in = s->edge_reg[reg].kind == GS_EDGE_TEMP ? maker_of(s, reg) : NULL;

    if (reg == product || in == NULL)
        return reg != product && s->edge_reg[reg].kind == GS_EDGE_OPERAND;
    for (uint32_t k = 0; k < gs_op_inputs(in->op); k++)
        if (gs_instr_operand(in, k)->kind == GS_FROM_REG && sees_operand(s, gs_instr_operand(in, k)->index, product))
            return true;
    return false;
}

static bool is_row(const gs_stage *s, uint32_t reg)
{
    return s->edge_reg[reg].kind == GS_EDGE_OPERAND || s->edge_reg[reg].kind == GS_EDGE_TARGET;
}

bool gs_stage_goes_by_source(const gs_stage *s, const gs_instr *in, uint32_t *source)
{
    if (in->op != GS_OP_WHERE || in->a.kind != GS_FROM_REG || in->b.kind != GS_FROM_REG || !is_row(s, in->a.index))
        return false;
    const gs_instr *const same = s->edge_reg[in->b.index].kind == GS_EDGE_TEMP ? maker_of(s, in->b.index) : NULL;
    if (same == NULL || same->op != GS_OP_EQ || same->a.kind != GS_FROM_REG || same->b.kind != GS_FROM_REG)
        return false;
    *source = same->a.index == in->a.index ? same->b.index : same->a.index;
    return (same->a.index == in->a.index || same->b.index == in->a.index) && is_row(s, *source) &&
           s->edge_reg[*source].width == 1;
}

/* The one instruction that reads a register, which no sum does; else NULL. */
static const gs_instr *only_reader(const gs_stage *s, uint32_t reg)
{
    const gs_instr *reader = NULL;
    uint32_t reads = 0;
    for (uint32_t i = 0; i < s->edge_instrs; i++)
        for (uint32_t k = 0; k < gs_op_inputs(s->edge_instr[i].op); k++) {
            const gs_operand *const o = gs_instr_operand(&s->edge_instr[i], k);
            if (o->kind != GS_FROM_REG || o->index != reg)
                continue;
            reader = &s->edge_instr[i];
            reads++;
        }
    for (uint32_t i = 0; i < s->sums; i++)
        reads += s->sum[i].value == reg || s->sum[i].score == reg ? 2 : 0;
    return reads == 1 ? reader : NULL;
}

bool gs_stage_is_spared(const gs_stage *s, const gs_instr *in)
{
    uint32_t source, reg = GS_NONE;
    for (; in != NULL && in->op != GS_OP_WHERE; in = only_reader(s, reg))
        reg = in->dst;
    return in != NULL && gs_stage_goes_by_source(s, in, &source) && in->c.kind == GS_FROM_REG && in->c.index == reg;
}

static bool takes_sum(const gs_stage *s, const gs_sum *m, const gs_edge_products *p, gs_products way)
{
    if (m->kind == GS_SUM_OUTER)
        return !m->dense && m->value == p->value && s->edge_reg[m->score].kind == GS_EDGE_TARGET &&
               !s->edge_reg[m->score].typed;
    if (p->instr == GS_NONE || gs_sum_is_sequence(m))
        return false;
    if (way == GS_PRODUCTS_OF_PAIRS)
        return !sees_operand(s, m->value, p->product) &&
               !((m->kind == GS_SUM_ATTEND || gs_sum_is_held(m->kind)) && sees_operand(s, m->score, p->product));
    return (m->kind == GS_SUM_ADD || m->kind == GS_SUM_ADD_TYPE) && is_linear(s, m->value, p->product);
}

bool gs_stage_find_products(gs_edge_products *out, const gs_stage *s, gs_products way)
{
    const unsigned not_of = way == GS_PRODUCTS_OF_PAIRS ? ~(unsigned)(GS_OF_OPERAND | GS_OF_TYPE) : GS_OF_TARGET;
    gs_edge_products p = {.value = GS_NONE, .product = GS_NONE};
    bool more;

    p.instr = only_product(s, &more);
    if (p.instr != GS_NONE && s->edge_instr[p.instr].a.kind == GS_FROM_REG) {
        p.value = s->edge_instr[p.instr].a.index;
        p.product = s->edge_instr[p.instr].dst;
    }
    for (uint32_t i = 0; i < s->sums && p.value == GS_NONE; i++)
        if (s->sum[i].kind == GS_SUM_OUTER)
            p.value = s->sum[i].value;
    if (more || p.value == GS_NONE || (gs_edge_attributes(s, p.value) & not_of) != 0)
        return false;
    for (uint32_t i = 0; i < s->sums; i++)
        if (!gs_stage_sums_rows(s, i) && !takes_sum(s, &s->sum[i], &p, way))
            return false;
    *out = p;
    return true;
}

gs_product_widths gs_stage_product_widths(const gs_stage *s, const gs_edge_products *p)
{
    gs_product_widths w = {.in = s->edge_reg[p->value].width,
                           .out = p->instr == GS_NONE ? 0 : s->edge_reg[p->product].width};
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].kind == GS_SUM_OUTER)
            w.side = GS_MAX(w.side, s->edge_reg[s->sum[i].score].width);
    return w;
}

#define PORTION_BYTES (2 * GS_MIB) /* of rows */
#define PORTION_LEAST 1024u
#define PORTION_MOST 16384u /* fits an index of two bytes */

uint32_t gs_product_portion(gs_product_widths w)
{
    const uint64_t fit = PORTION_BYTES / sizeof(float) / ((uint64_t)w.in + w.out + w.side);
    return (uint32_t)GS_MIN(GS_MAX(fit, (uint64_t)PORTION_LEAST), (uint64_t)PORTION_MOST);
}

#define PORTION_LISTS 9u /* 32-bit numbers of a run */
#define PAIR_LISTS 5u    /* the same of a pair, beside: its operand, and its part of the hash table */
#define EDGE_LISTS 4u    /* of an edge where there are pairs */

uint64_t gs_portion_floats(gs_product_widths w, uint32_t most, bool pairs)
{
    const uint64_t lists = PORTION_LISTS + (pairs ? PAIR_LISTS + GS_PORTION_PAIR_EDGES * EDGE_LISTS : 0);
    return most * (w.in + w.out + w.side + lists) + PORTION_LISTS + EDGE_LISTS;
}

#define PAIRS_BYTES (32 * GS_MIB)
#define PAIRS_MOST 65536u /* have numbers of two bytes */

uint32_t gs_pair_portion(gs_product_widths w, double pairs)
{
    const uint64_t fit = PAIRS_BYTES / sizeof(float) / gs_portion_floats(w, 1, true);
    const double more = 1.25 * pairs; /* chunks differ */
    const uint64_t most = GS_MIN(GS_MAX(fit, (uint64_t)PORTION_LEAST), (uint64_t)PAIRS_MOST);
    return (uint32_t)(more < PORTION_LEAST ? PORTION_LEAST : more < (double)most ? (uint64_t)more : most);
}

bool gs_stage_by_type(const gs_stage *s)
{
    for (uint32_t i = 0; i < s->edge_instrs; i++)
        if (gs_op_by_type(s->edge_instr[i].op))
            return true;
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].kind == GS_SUM_OUTER && !s->sum[i].dense)
            return true;
    return false;
}
