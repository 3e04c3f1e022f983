/* Edge programs before a launch: instructions to steps on tiles of edges. */
#include <assert.h>

#include "base/size.h"
#include "device/cpu/cpu.h"
#include "device/cpu/edge_program.h"
#include "device/cpu/gemm.h" /* gs_cpu__transposed_matrices() */
#include "program/products.h"

typedef struct planner {
    const gs_cpu *cpu;
    const gs_edge_program_launch *l;
    gs_cpu_edge_plan *plan;
    uint32_t index;   /* of the instruction or sum */
    uint32_t outer;   /* the sum of kind OUTER that the plan is for, or GS_NONE: for all others */
    const char *noun; /* "edge instruction" or "sum" */
    gs_status st;     /* of the first refusal; after it nothing more is planned */
} planner;

/* ---- before any launch ---- */

/* Values that are copied to be kept. */
static uint64_t outer_floats(const gs_stage *stage, const gs_sum *sum)
{
    const bool there = sum->value < stage->edge_regs && sum->score < stage->edge_regs;
    return there ? 2ull * stage->edge_reg[sum->value].width + 2ull * stage->edge_reg[sum->score].width : 0;
}

gs_cpu_edge_needs gs_cpu__edge_needs(const gs_program *program, const gs_stage *stage)
{
    gs_cpu_edge_needs n = {0};
    uint64_t floats = 0;

    for (uint32_t s = 0; s < stage->sums; s++)
        if (!gs_stage_sums_rows(stage, s) && !gs_sum_is_sequence(&stage->sum[s]) &&
            stage->sum[s].reg < stage->regs) {
            const uint64_t width = stage->reg[stage->sum[s].reg].width;
            floats += 4 * width + (stage->sum[s].kind == GS_SUM_OUTER ? outer_floats(stage, &stage->sum[s]) : 0);
            n.row_floats += 3 * width;
            n.steps += 7;
        }
    if (n.steps == 0)
        return n;
    for (uint32_t i = 0; i < stage->edge_instrs; i++) {
        const gs_instr *const in = &stage->edge_instr[i];
        const uint64_t to = in->dst < stage->edge_regs ? stage->edge_reg[in->dst].width : 0;
        const uint64_t from =
            in->a.kind == GS_FROM_REG && in->a.index < stage->edge_regs ? stage->edge_reg[in->a.index].width : 0;
        const uint32_t steps = gs_op_inputs(in->op) > 2 ? 4 : 3; /* its own, and copies of operands */
        floats += steps * GS_MAX(to, from);
        n.steps += steps;
    }
    for (uint32_t r = 0; r < stage->edge_regs; r++)
        if (gs_cpu__is_half(program, &stage->edge_reg[r]) ||
            stage->edge_reg[r].kind == GS_EDGE_FEATURES) { /* in float32 */
            floats += stage->edge_reg[r].width;
            n.steps++;
        }
    uint32_t numbers = 0;
    for (uint32_t r = 0; r < stage->edge_regs; r++)
        numbers += gs_cpu__is_number(program, &stage->edge_reg[r]);
    n.packed = numbers < 2 || numbers > GS_CPU_PACKED ? 0 : (uint64_t)program->packed_rows * GS_CPU_PACKED;
    n.states = stage->edge_regs;
    n.floats = gs_cpu__most_tile_floats(floats, gs_stage_has_products(stage));
    return n;
}

/* ---- values ----
 *
 * Values of an edge program while it is planned: where their rows are, and the steps that copy, multiply or combine
 * them. A value is copied to a slot where a step wants rows contiguous: operators of one operand, and all of them where
 * rows are narrower than a vector and no half of one.
 */

/* Names the stage and the instruction or sum in p->st, if nothing was refused before. */
static void refuse_edges(planner *p, const char *what)
{
    if (p->st == GS_OK)
        p->st = gs_fail(GS_EINVAL, "stage \"%s\", %s %u: %s", p->l->stage->name, p->noun, p->index, what);
}

static gs_cpu_edge_value new_slot(planner *p, uint32_t width)
{
    gs_cpu_edge_plan *const plan = p->plan;
    if (plan->slots == p->cpu->edge_steps) {
        refuse_edges(p, "not prepared for so many values");
        return (gs_cpu_edge_value){.form = GS_CPU_EDGE_NOTHING};
    }
    plan->slot[plan->slots] = (gs_cpu_edge_slot){.width = width};
    return (gs_cpu_edge_value){.form = GS_CPU_EDGE_SLOT, .width = width, .slot = plan->slots++};
}

static void emit(planner *p, gs_cpu_edge_step step)
{
    gs_cpu_edge_plan *const plan = p->plan;
    if (p->st != GS_OK)
        return;
    if (plan->steps == p->cpu->edge_steps) {
        refuse_edges(p, "not prepared for so many steps");
        return;
    }
    plan->step[plan->steps++] = step;
}

/* The result of a new step that writes a slot of its width. */
static gs_cpu_edge_value emit_value(planner *p, gs_cpu_edge_step step)
{
    const gs_cpu_edge_value v = new_slot(p, step.width);
    step.dst = v.slot;
    emit(p, step);
    return v;
}

/* True where rows of `width` lie one after the other, or are one number for all. */
static bool is_flat(const gs_cpu_edge_value *v, uint32_t width)
{
    const bool contiguous =
        v->form == GS_CPU_EDGE_SLOT || (v->form == GS_CPU_EDGE_STORED && v->stride == v->width);
    return (contiguous && v->width == width) || (v->form == GS_CPU_EDGE_FIXED && v->width == 1);
}

/* Rows of bfloat16 as a copy in float32, one for all who want it; others as they are. */
static gs_cpu_edge_value widened(planner *p, gs_cpu_edge_value v)
{
    const gs_cpu_edge_plan *const plan = p->plan;
    for (uint32_t i = 0; v.half && i < plan->steps; i++)
        if (plan->step[i].kind == GS_CPU_EDGE_COPY && plan->step[i].a.half && plan->step[i].a.p == v.p &&
            plan->step[i].a.form == v.form)
            return (gs_cpu_edge_value){.form = GS_CPU_EDGE_SLOT, .width = v.width, .slot = plan->step[i].dst};
    return !v.half ? v
                   : emit_value(p, (gs_cpu_edge_step){.kind = GS_CPU_EDGE_COPY, .width = v.width, .a = v});
}

/* The value, stretched to `width`, in a slot. */
static gs_cpu_edge_value copied(planner *p, gs_cpu_edge_value v, uint32_t width)
{
    v = widened(p, v);
    if (v.form == GS_CPU_EDGE_SLOT && v.width == width)
        return v;
    return emit_value(p, (gs_cpu_edge_step){.kind = GS_CPU_EDGE_COPY, .width = width, .a = v});
}

/* The value, stretched to `width`: one row after the other in a slot or in the order of edges; ... */
static gs_cpu_edge_value make_contiguous(planner *p, gs_cpu_edge_value v, uint32_t width)
{
    return is_flat(&v, width) && v.form != GS_CPU_EDGE_FIXED ? v : copied(p, v, width);
}

/* ... so, or one number for all; ... */
static gs_cpu_edge_value flattened(planner *p, gs_cpu_edge_value v, uint32_t width)
{
    return is_flat(&v, width) ? v : copied(p, v, width);
}

/* ... rows of the full width, anywhere, of float32; ... */
static gs_cpu_edge_value full_rows(planner *p, gs_cpu_edge_value v, uint32_t width)
{
    return v.width == width && !v.half ? v : copied(p, v, width);
}

/* ... or of bfloat16, too, of a vector or more. */
static gs_cpu_edge_value stored_rows(planner *p, gs_cpu_edge_value v, uint32_t width)
{
    return v.half && v.width == width && width >= p->cpu->k->lanes ? v : full_rows(p, v, width);
}

/* Can rows of `width` be multiplied by a number for each `each` columns as they are? */
static bool takes_groups(const planner *p, uint32_t width, uint32_t each)
{
    const uint32_t lanes = p->cpu->k->lanes;
    return width % lanes == 0 && (each % lanes == 0 || 2 * each == lanes);
}

static gs_cpu_edge_value binary(planner *p, gs_op op, gs_cpu_edge_value a, gs_cpu_edge_value b, uint32_t width)
{
    gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_FLAT, .op = op, .width = width};
    const uint32_t lanes = p->cpu->k->lanes;
    const bool flat = is_flat(&a, width) && is_flat(&b, width);
    const bool fills = width >= lanes || 2 * width == lanes; /* a vector, or two edges together */

    if (p->st != GS_OK)
        return (gs_cpu_edge_value){.form = GS_CPU_EDGE_NOTHING};
    a = widened(p, a);
    b = widened(p, b);
    if (!flat && !fills) {
        a = flattened(p, a, width);
        b = flattened(p, b, width);
    } else if (!flat) {
        s.kind = GS_CPU_EDGE_BINARY;
        if (op == GS_OP_MUL && a.width != width)
            gs_cpu_swap_values(&a, &b);
        a = a.width == 1 && b.width == width ? a : full_rows(p, a, width);
        if (b.width != 1 && !(op == GS_OP_MUL && takes_groups(p, width, width / b.width)))
            b = full_rows(p, b, width);
    }
    s.a = a;
    s.b = b;
    return emit_value(p, s);
}

static gs_cpu_edge_value multiply(planner *p, gs_cpu_edge_value a, gs_cpu_edge_value b, uint32_t width)
{
    return binary(p, GS_OP_MUL, a, b, width);
}

/* The register's rows, `width` of them. */
static gs_cpu_edge_value register_value(planner *p, uint32_t index, uint32_t *width)
{
    const gs_stage *const stage = p->l->stage;
    assert(index < stage->edge_regs && p->cpu->edge_state[index].ready);
    gs_cpu_edge_state *const s = &p->cpu->edge_state[index];
    *width = stage->edge_reg[index].width;
    if (s->b.form != GS_CPU_EDGE_NOTHING) {
        s->a = multiply(p, s->a, s->b, *width);
        s->b = (gs_cpu_edge_value){.form = GS_CPU_EDGE_NOTHING};
    }
    return s->a;
}

/* Any operand, and its width before a spread that is still to be done. */
static gs_cpu_edge_value operand_value(planner *p, const gs_operand *o, uint32_t *width)
{
    const gs_program *const program = p->l->program;
    if (o->kind == GS_FROM_REG)
        return register_value(p, o->index, width);
    *width = 1;
    if (o->kind == GS_FROM_CONST)
        return (gs_cpu_edge_value){.form = GS_CPU_EDGE_FIXED, .width = 1, .p = &o->value};
    assert(o->kind == GS_FROM_PARAM && o->index < program->params && program->param[o->index].dims == 1);
    *width = program->param[o->index].cols;
    return (gs_cpu_edge_value){.form = GS_CPU_EDGE_FIXED, .width = *width, .p = p->l->param[o->index]};
}

/* An operand that stretches over `width` columns. */
static gs_cpu_edge_value stretched(planner *p, const gs_operand *o, uint32_t width)
{
    uint32_t own = width;
    const gs_cpu_edge_value v = operand_value(p, o, &own);
    assert(own == width || own == 1);
    return v;
}

/* Something of the stage is `times` as wide as a value, by type of the edges; it has so many rows. */
static void note_types(planner *p, uint32_t times, uint32_t rows)
{
    const gs_edges *const e = &p->l->edges;
    if (e->type == NULL || (e->type_bytes != 1 && e->type_bytes != 2) || times == 0 ||
        (p->plan->types != 0 && p->plan->types != times))
        refuse_edges(p, "columns by the type of edges that have none, or another number of types");
    else if ((uint64_t)times * rows > UINT32_MAX)
        refuse_edges(p, "more rows by type than 2^32");
    p->plan->types = times;
}

/* ---- steps ----
 *
 * Edge instructions of a launch to a plan: operands looked up, steps chosen, scratch laid out.
 *
 * Values stay where they are as long as a step can read them there. An instruction gives no step
 * of its own where the one that uses its result can do it on the way: a product that only one sum or fold
 * reads, and every spread. That the program obeys program.h was proved before (gs_program_check()); what is refused
 * here is what the launch lacks.
 */

#define LINE 64 /* bytes of a cache line */

/* ---- instructions ---- */

static void plan_fold(planner *p, const gs_instr *in, uint32_t groups, gs_cpu_edge_state *d)
{
    gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_FOLD, .width = groups};
    assert(in->a.kind == GS_FROM_REG && p->cpu->edge_state[in->a.index].ready);
    const gs_cpu_edge_state *const a = &p->cpu->edge_state[in->a.index];
    const uint32_t width = p->l->stage->edge_reg[in->a.index].width;
    assert(width % groups == 0);
    const bool product = a->b.form != GS_CPU_EDGE_NOTHING;
    s.a = product ? stored_rows(p, a->a, width) : full_rows(p, a->a, width);
    if (product)
        s.b = stored_rows(p, a->b, width);
    d->a = emit_value(p, s);
}

/* A mask, or whether an edge is a loop: of the ids of its ends. */
static void plan_ids(planner *p, const gs_instr *in, uint32_t width, gs_cpu_edge_state *d)
{
    const bool mask = in->op == GS_OP_EDGE_MASK;
    gs_cpu_edge_step s = {
        .kind = mask ? GS_CPU_EDGE_MASK : GS_CPU_EDGE_LOOP, .width = width, .loops_as_one = in->self};
    uint32_t source = 0, destination = 0;

    s.a = operand_value(p, &in->a, &source);
    s.b = operand_value(p, &in->b, &destination);
    assert(source == 1 && destination == 1 && (mask || width == 1));
    if (mask)
        gs_cpu__edge_mask(&s.mask, in, p->l->seed, p->l->epoch);
    d->a = emit_value(p, s);
}

static void plan_rowmax(planner *p, const gs_instr *in, uint32_t width, gs_cpu_edge_state *d)
{
    uint32_t own = 0;
    d->a = operand_value(p, &in->a, &own);
    assert(width == 1);
    const gs_cpu_edge_value a = full_rows(p, d->a, own);
    d->a = emit_value(p, (gs_cpu_edge_step){.kind = GS_CPU_EDGE_ROWMAX, .width = width, .a = a});
}

/* A matrix of each type: those of the parameter, or all of them transposed. */
static void plan_by_type(planner *p, const gs_instr *in, uint32_t width, gs_cpu_edge_state *d)
{
    const gs_program *const program = p->l->program;
    gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_BY_TYPE, .width = width};
    uint32_t own = 0;

    s.a = operand_value(p, &in->a, &own);
    const uint64_t one = (uint64_t)own * width, all = gs_param_elements(&program->param[in->b.index]);
    assert(all % one == 0);
    note_types(p, (uint32_t)(all / one), 1);
    s.a = full_rows(p, s.a, own);
    s.matrix = in->op == GS_OP_BY_TYPE ? p->l->param[in->b.index] : gs_cpu__transposed_matrices(p->cpu, p->l, in);
    p->plan->typed = p->plan->products = true;
    d->a = emit_value(p, s);
}

/* Which numbers are equal, as bits. */
static void plan_equal(planner *p, const gs_instr *in, uint32_t width, gs_cpu_edge_state *d)
{
    gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_EQUAL, .width = gs_cpu_bits_width(width)};
    s.a = widened(p, stretched(p, &in->a, width));
    s.b = widened(p, stretched(p, &in->b, width));
    s.a = s.a.width == 1 ? s.a : full_rows(p, s.a, width);
    s.b = s.b.width == 1 && s.a.width == width ? s.b : full_rows(p, s.b, width);
    d->a = emit_value(p, s);
}

/* A product with such bits: the numbers that it has are the other side's. */
static void plan_masked(planner *p, const gs_instr *in, uint32_t width, gs_cpu_edge_state *d)
{
    const bool first = in->a.kind == GS_FROM_REG && p->cpu->edge_state[in->a.index].bits;
    d->a = p->cpu->edge_state[first ? in->a.index : in->b.index].a;
    d->b = full_rows(p, stretched(p, first ? &in->b : &in->a, width), width);
}

/* The first side of a product of edges, `own` wide: contiguous, or, where it is masked, rows anywhere and in c which of
 * their numbers count. */
static void plan_left_side(planner *p, gs_cpu_edge_step *s, uint32_t reg, uint32_t *own)
{
    const gs_cpu_edge_state *const x = &p->cpu->edge_state[reg];
    if (x->masked) {
        *own = p->l->stage->edge_reg[reg].width;
        s->a = x->b;
        s->c = x->a;
        return;
    }
    s->a = register_value(p, reg, own);
    s->a = make_contiguous(p, s->a, *own);
}

/* By a part of one matrix for all edges. */
static void plan_dense(planner *p, const gs_instr *in, uint32_t width, gs_cpu_edge_state *d)
{
    gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_DENSE, .width = width, .stride = width};
    const gs_param *const w = &p->l->program->param[in->b.index];
    uint32_t own = 0;

    plan_left_side(p, &s, in->a.index, &own);
    if (in->op == GS_OP_DENSE) {
        s.matrix = p->l->param[in->b.index] + gs_param_part(w, own, in->site);
        s.stride = w->cols;
    } else {
        s.matrix = gs_cpu__transposed_matrices(p->cpu, p->l, in);
    }
    s.sparse = gs_cpu__takes_sparse(p->cpu, p->l->stage, in->a.index, width);
    p->plan->products = true;
    d->a = emit_value(p, s);
}

/* An element of the elements at the same place. */
static void plan_each(planner *p, const gs_instr *in, uint32_t width, gs_cpu_edge_state *d)
{
    d->a = stretched(p, &in->a, width);
    if (gs_op_inputs(in->op) == 2) {
        d->a = binary(p, in->op, d->a, stretched(p, &in->b, width), width);
        return;
    }
    if (gs_op_inputs(in->op) == 3) {
        gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_FLAT, .op = in->op, .width = width};
        s.a = flattened(p, d->a, width);
        s.b = flattened(p, stretched(p, &in->b, width), width);
        s.c = flattened(p, stretched(p, &in->c, width), width);
        d->a = emit_value(p, s);
        return;
    }
    d->a = make_contiguous(p, d->a, width);
    d->a = emit_value(
        p, (gs_cpu_edge_step){.kind = GS_CPU_EDGE_UNARY, .op = in->op, .alpha = in->alpha, .width = width, .a = d->a});
}

static void plan_instr(planner *p, const gs_instr *in);

/* A choice between what is at hand and what takes products: where the first is taken for all of a tile, the steps of
 * the second, which nothing else reads, are left out. */
static void plan_choice(planner *p, const gs_instr *in, uint32_t width, gs_cpu_edge_state *d)
{
    const gs_stage *const stage = p->l->stage;
    const uint32_t first = (uint32_t)(in - stage->edge_instr) + 1;
    gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_UNLESS, .width = width, .dst = GS_NONE};

    s.a = stretched(p, &in->a, width);
    d->a = d->bits ? p->cpu->edge_state[in->b.index].a : copied(p, stretched(p, &in->b, width), width);
    const uint32_t unless = p->plan->steps;
    emit(p, s);
    for (uint32_t i = 0; i < first; i++)
        if (p->cpu->edge_state[stage->edge_instr[i].dst].late == first)
            plan_instr(p, &stage->edge_instr[i]);
    s.kind = GS_CPU_EDGE_ELSE;
    s.sparse = d->bits;
    s.b = d->a;
    s.c = full_rows(p, stretched(p, &in->c, width), width);
    emit(p, s);
    if (p->st == GS_OK)
        p->plan->step[unless].skipped = p->plan->steps - unless - 1;
}

static void plan_instr(planner *p, const gs_instr *in)
{
    gs_cpu_edge_state *const d = &p->cpu->edge_state[in->dst];
    const uint32_t width = p->l->stage->edge_reg[in->dst].width;
    uint32_t own = 0;

    assert(p->l->stage->edge_reg[in->dst].kind == GS_EDGE_TEMP && gs_op_is(in->op, GS_FACT_EDGE));
    if (d->masked || (d->bits && in->op == GS_OP_EQ)) {
        (d->masked ? plan_masked : plan_equal)(p, in, width, d);
        d->ready = true;
        return;
    }
    switch (in->op) {
    case GS_OP_MUL:
        d->a = stretched(p, &in->a, width);
        d->b = stretched(p, &in->b, width);
        if (d->foldable)
            break;
        d->a = multiply(p, d->a, d->b, width);
        d->b = (gs_cpu_edge_value){.form = GS_CPU_EDGE_NOTHING};
        break;
    case GS_OP_BY_TYPE:
    case GS_OP_BY_TYPE_T:
        plan_by_type(p, in, width, d);
        break;
    case GS_OP_DENSE:
    case GS_OP_DENSE_T:
        plan_dense(p, in, width, d);
        break;
    case GS_OP_EDGE_MASK:
    case GS_OP_IS_LOOP:
        plan_ids(p, in, width, d);
        break;
    case GS_OP_FOLD:
    case GS_OP_ROWSUM:
        plan_fold(p, in, width, d);
        break;
    case GS_OP_ROWMAX:
        plan_rowmax(p, in, width, d);
        break;
    case GS_OP_EXPAND:
        d->a = operand_value(p, &in->a, &own);
        assert(width % own == 0);
        break;
    default:
        (d->chooses ? plan_choice : plan_each)(p, in, width, d);
    }
    d->ready = true;
}

/* ---- sums ---- */

/* acc += a * b: the first one of the full width; the second one with a number for each vector at least. */
static void plan_product_sum(planner *p, gs_cpu_edge_step s, gs_cpu_edge_value a, gs_cpu_edge_value b)
{
    const uint32_t lanes = p->cpu->k->lanes;
    if (a.width != s.width || (b.half && b.width == s.width))
        gs_cpu_swap_values(&a, &b);
    s.a = stored_rows(p, a, s.width);
    b = widened(p, b);
    const bool groups = b.width != 0 && ((s.width >= lanes && s.width / b.width >= lanes) ||
                                         takes_groups(p, s.width, s.width / b.width));
    s.b = b.width == 1 || groups ? b : full_rows(p, b, s.width);
    emit(p, s);
}

/* Takes the factor out of an attended value that is a product with a number for each head (a mask, a weight): it goes
 * to the head's weight instead. */
static gs_cpu_edge_value take_factor(planner *p, const gs_sum *sum, uint32_t heads)
{
    const gs_cpu_edge_value none = {.form = GS_CPU_EDGE_NOTHING};
    gs_cpu_edge_state *const v = &p->cpu->edge_state[sum->value];
    const uint32_t width = p->l->stage->edge_reg[sum->value].width;

    if (!v->ready || v->b.form == GS_CPU_EDGE_NOTHING)
        return none;
    if (v->a.width != width)
        gs_cpu_swap_values(&v->a, &v->b);
    if (v->a.width != width || (v->b.width != heads && v->b.width != 1) || v->b.width == width)
        return none;
    const gs_cpu_edge_value factor = v->b;
    v->b = none;
    return factor;
}

/* What the sum's scores weigh an edge by: of an earlier sum by them, where there is one. */
static gs_cpu_edge_value attention(planner *p, const gs_sum *sum, uint32_t heads)
{
    gs_cpu_edge_step attend = {.kind = GS_CPU_EDGE_ATTEND, .width = heads, .sum = p->index};
    for (uint32_t i = 0; i < p->plan->steps; i++) {
        const gs_cpu_edge_step *const s = &p->plan->step[i];
        if (s->kind == GS_CPU_EDGE_ATTEND && gs_same_scores(p->l->stage, s->sum, p->index))
            return (gs_cpu_edge_value){.form = GS_CPU_EDGE_SLOT, .width = heads, .slot = s->dst};
    }
    attend.a = make_contiguous(p, register_value(p, sum->score, &heads), heads);
    const gs_cpu_edge_value weight = emit_value(p, attend);
    emit(p, (gs_cpu_edge_step){.kind = GS_CPU_EDGE_SUM, .fold = GS_SUM_ADD, .width = heads, .dst = GS_NONE,
                               .sum = p->index, .norm = true, .a = weight});
    return weight;
}

static void plan_sum(planner *p, const gs_sum *sum)
{
    const gs_stage *const stage = p->l->stage;
    gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_SUM, .fold = sum->kind, .dst = GS_NONE, .sum = p->index};
    gs_cpu_edge_value factor = {.form = GS_CPU_EDGE_NOTHING};
    uint32_t width = 0, heads = 0;

    if (p->l->sum[p->index].acc == NULL) {
        refuse_edges(p, "no place for this sum");
        return;
    }
    s.width = stage->reg[sum->reg].width;
    if (sum->kind == GS_SUM_ADD_TYPE) {
        width = stage->edge_reg[sum->value].width;
        note_types(p, s.width / width, p->l->edges.target_rows);
        s.kind = GS_CPU_EDGE_SUM_TYPE;
        s.width = width;
    }
    if (sum->kind == GS_SUM_ADD || sum->kind == GS_SUM_ADD_TYPE) {
        const gs_cpu_edge_state *const v = &p->cpu->edge_state[sum->value];
        width = stage->edge_reg[sum->value].width;
        if (width == s.width && v->b.form != GS_CPU_EDGE_NOTHING) {
            plan_product_sum(p, s, v->a, v->b);
            return;
        }
    }
    if (sum->kind == GS_SUM_ATTEND)
        factor = take_factor(p, sum, stage->edge_reg[sum->score].width);
    gs_cpu_edge_value value = register_value(p, sum->value, &width);
    assert(s.width == (gs_sum_is_held(sum->kind) ? 3 * width : width));
    s.width = width;
    if (sum->kind != GS_SUM_ATTEND) {
        s.a = (gs_sum_is_held(sum->kind) ? full_rows : stored_rows)(p, value, width);
        if (gs_sum_is_held(sum->kind))
            s.b = full_rows(p, register_value(p, sum->score, &heads), 1);
        emit(p, s);
        return;
    }
    heads = stage->edge_reg[sum->score].width;
    assert(width % heads == 0);
    if (p->l->sum[p->index].maximum == NULL || p->l->sum[p->index].norm == NULL) {
        refuse_edges(p, "no place for maximum and norm");
        return;
    }
    s.fold = GS_SUM_ADD;
    value = stored_rows(p, value, s.width);
    gs_cpu_edge_value weight = attention(p, sum, heads);
    if (factor.form != GS_CPU_EDGE_NOTHING)
        weight = multiply(p, weight, factor, heads);
    plan_product_sum(p, s, value, weight);
}

/* A tile's products are added to the thread's sums. */
static void plan_outer_beside(planner *p, const gs_sum *sum)
{
    gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_OUTER, .dst = GS_NONE, .sum = p->index,
                          .stride = p->plan->outer_floats};
    uint32_t in = 0;

    plan_left_side(p, &s, sum->score, &in);
    s.b = register_value(p, sum->value, &s.width);
    s.b = make_contiguous(p, s.b, s.width);
    p->plan->outer_floats += in * s.width;
    s.sparse = gs_cpu__takes_sparse(p->cpu, p->l->stage, sum->score, s.width);
    emit(p, s);
}

/* Both sides of an outer product go to where rows of their type lie together. */
static void plan_outer(planner *p, const gs_sum *sum)
{
    const uint32_t side[2] = {sum->score, sum->value};
    uint64_t one = 1;
    for (uint32_t i = 0; i < 2; i++) {
        gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_KEEP, .dst = GS_NONE, .sum = i};
        s.a = register_value(p, side[i], &s.width);
        if (p->st == GS_OK)
            s.a = full_rows(p, s.a, s.width);
        emit(p, s);
        one *= s.width;
    }
    if (p->st == GS_OK && !sum->dense)
        note_types(p, (uint32_t)(gs_param_elements(&p->l->program->param[sum->weight]) / one), 1);
}

/* ---- leaves ---- */

#define NEAR_BYTES GS_MIB /* what a second-level cache holds */
#define NEAR_EDGES 4      /* of a row, at least */

/* Are nearly all reads of the operand's rows of a second-level cache? They come as fast as they can be asked for. */
static bool stay_near(const gs_edges *e, uint64_t bytes)
{
    return bytes <= NEAR_BYTES && e->start[e->targets] - e->start[0] >= NEAR_EDGES * (uint64_t)e->operand_rows;
}

static void add_gather(gs_cpu_edge_plan *plan, const float *rows, uint64_t bytes, bool typed)
{
    for (uint32_t g = 0; g < plan->gathers; g++)
        if (plan->gather[g].p == rows && plan->gather[g].typed == typed)
            return;
    if (plan->gathers == GS_CPU_EDGE_GATHERS)
        return; /* only not prefetched */
    const uint64_t line = LINE;
    const bool whole = (uintptr_t)rows % GS_MIN(bytes, line) == 0 && (bytes % line == 0 || line % bytes == 0);
    plan->gather[plan->gathers++] =
        (gs_cpu_edge_gather){.p = rows, .bytes = (uint32_t)bytes, .typed = typed, .straddles = !whole};
}

/* Columns of the features of edges: where they are, or a copy in float32. */
static gs_cpu_edge_value features(planner *p, const gs_edge_reg *r)
{
    const gs_edges *const e = &p->l->edges;
    const char *const rows = (const char *)e->feature + r->first * gs_dtype_bytes(e->feature_type);

    if (e->feature == NULL) {
        refuse_edges(p, "features that edges do not have");
        return (gs_cpu_edge_value){.form = GS_CPU_EDGE_NOTHING};
    }
    if (e->feature_type == GS_F32)
        return (gs_cpu_edge_value){.form = GS_CPU_EDGE_STORED, .width = r->width, .stride = r->columns,
                                   .p = (const float *)(const void *)rows};
    return emit_value(p, (gs_cpu_edge_step){.kind = GS_CPU_EDGE_WIDEN, .width = r->width, .stride = r->columns,
                                            .stored = rows, .stored_type = e->feature_type});
}

/* Leaves: where their rows are. */
static void plan_register(planner *p, uint32_t index)
{
    static const float one = 1.0f;
    const gs_edges *const e = &p->l->edges;
    const gs_edge_reg *const r = &p->l->stage->edge_reg[index];
    gs_cpu_edge_state *const s = &p->cpu->edge_state[index];
    const float *const rows = p->l->rows == NULL ? NULL : p->l->rows[index];

    s->ready = r->kind != GS_EDGE_TEMP;
    if (gs_edge_reg_only_rows(p->l->stage, index))
        return;
    if (r->kind == GS_EDGE_WEIGHT) {
        s->a = (gs_cpu_edge_value){.form = e->weight == NULL ? GS_CPU_EDGE_FIXED : GS_CPU_EDGE_STORED, .width = 1,
                                   .stride = 1, .p = e->weight == NULL ? &one : e->weight};
    } else if (r->kind == GS_EDGE_FEATURES) {
        if (s->uses > 0)
            s->a = features(p, r);
    } else if (r->kind != GS_EDGE_TEMP) {
        const bool operand = r->kind == GS_EDGE_OPERAND, half = gs_cpu__is_half(p->l->program, r);
        if (rows == NULL)
            refuse_edges(p, "rows that the launch does not have");
        s->a = (gs_cpu_edge_value){
            .form = operand ? GS_CPU_EDGE_OPERAND : GS_CPU_EDGE_TARGET, .width = r->width, .p = rows, .half = half};
        if (r->typed && p->st == GS_OK) {
            note_types(p, p->l->program->array[r->array].width / r->width,
                       operand ? e->operand_rows : e->target_rows);
            s->a.form = operand ? GS_CPU_EDGE_OPERAND_TYPE : GS_CPU_EDGE_TARGET_TYPE;
        }
        const uint64_t bytes = r->width * (half ? sizeof(uint16_t) : sizeof(float));
        if (operand && s->uses > s->late_uses && (r->typed || !stay_near(e, bytes * e->operand_rows)))
            add_gather(p->plan, rows, bytes, r->typed);
    }
}

/* ---- edges that add nothing ---- */

/* Products by 0 are 0, as they are left out of sparse rows, too. */
static bool vanishes(const planner *p, const gs_instr *in)
{
    const gs_cpu_edge_state *const state = p->cpu->edge_state;
    const bool a = in->a.kind == GS_FROM_REG && state[in->a.index].vanishes,
               b = in->op == GS_OP_MUL && in->b.kind == GS_FROM_REG && state[in->b.index].vanishes;
    return b || (a && (in->op == GS_OP_MUL || in->op == GS_OP_NEG || in->op == GS_OP_FOLD || in->op == GS_OP_EXPAND ||
                       in->op == GS_OP_ROWSUM || gs_op_on_edges(in->op)));
}

/* Do all sums vanish with the choice, and are values found by the numbers of an edge's ends alone? */
static bool can_pick(const planner *p, const gs_instr *choice)
{
    const gs_stage *const stage = p->l->stage;
    gs_cpu_edge_state *const state = p->cpu->edge_state;

    for (const gs_instr *in = choice; in < stage->edge_instr + stage->edge_instrs; in++)
        state[in->dst].vanishes = in == choice || vanishes(p, in);
    for (uint32_t i = 0; i < stage->sums; i++) {
        const gs_sum *const m = &stage->sum[i];
        if (gs_cpu__is_planned(stage, i, p->outer) &&
            (m->kind == GS_SUM_OUTER ? !state[m->score].vanishes
                                     : m->kind != GS_SUM_ADD || !state[m->value].vanishes))
            return false;
    }
    for (uint32_t i = 0; i < p->plan->steps; i++) {
        const gs_cpu_edge_step *const s = &p->plan->step[i];
        const gs_cpu_edge_form form[] = {s->a.form, s->b.form, s->c.form};
        if (s->kind == GS_CPU_EDGE_WIDEN || s->kind == GS_CPU_EDGE_KEEP || (s->kind == GS_CPU_EDGE_OUTER && !s->sparse))
            return false;
        for (uint32_t k = 0; k < GS_ARRAY_LEN(form); k++)
            if (form[k] == GS_CPU_EDGE_STORED)
                return false;
    }
    return p->plan->types == 0;
}

/* Rows that are read before the steps are not prefetched. */
static void drop_gather(gs_cpu_edge_plan *plan, const float *rows)
{
    for (uint32_t g = 0; g < plan->gathers; g++)
        if (plan->gather[g].p == rows)
            plan->gather[g] = plan->gather[--plan->gathers];
}

static bool is_same(const gs_cpu_edge_value *a, const gs_cpu_edge_value *b)
{
    return a->form == b->form && a->p == b->p && a->width == b->width && a->form != GS_CPU_EDGE_SLOT;
}

static void find_picks(const planner *p)
{
    const gs_stage *const stage = p->l->stage;
    gs_cpu_edge_plan *const plan = p->plan;
    for (uint32_t i = 0, source; i < stage->edge_instrs && !plan->picks; i++) {
        const gs_instr *const in = &stage->edge_instr[i];
        if (!p->cpu->edge_state[in->dst].needed || !gs_stage_goes_by_source(stage, in, &source) || !can_pick(p, in))
            continue;
        plan->who = p->cpu->edge_state[in->a.index].a;
        plan->source = p->cpu->edge_state[source].a;
        plan->picks = !plan->who.half && !plan->source.half;
    }
    if (!plan->picks)
        return;
    drop_gather(plan, plan->who.p);
    drop_gather(plan, plan->source.p);
    for (uint32_t i = 0; i < plan->steps && plan->picked == GS_NONE; i++) {
        const gs_cpu_edge_step *const s = &plan->step[i];
        if (s->kind == GS_CPU_EDGE_EQUAL && ((is_same(&s->a, &plan->who) && is_same(&s->b, &plan->source)) ||
                                             (is_same(&s->b, &plan->who) && is_same(&s->a, &plan->source))))
            plan->picked = s->dst;
    }
}

/* ---- numbers of a vertex ---- */

/* Do steps read the register, a number at the operand end, for every edge? */
static bool is_packable(const planner *p, uint32_t index)
{
    const gs_cpu_edge_state *const s = &p->cpu->edge_state[index];
    return gs_cpu__is_number(p->l->program, &p->l->stage->edge_reg[index]) && s->uses > s->late_uses &&
           s->a.form == GS_CPU_EDGE_OPERAND;
}

/* In arrays of their own they take an edge as many cache lines. Where there is room, and a row is read often enough to
 * pay for it, they are packed before the launch, and a step brings those of a tile's edges. */
static void plan_packed(planner *p)
{
    gs_cpu_edge_plan *const plan = p->plan;
    const gs_edges *const e = &p->l->edges;
    const gs_stage *const stage = p->l->stage;
    const gs_cpu_room *const room = &p->cpu->room[GS_CPU_NUMBERS];
    gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_NUMBERS, .width = 1, .dst = plan->slots,
                          .a = {.form = GS_CPU_EDGE_OPERAND, .width = GS_CPU_PACKED, .p = room->at}};
    uint32_t source;

    for (uint32_t r = 0; r < stage->edge_regs; r++)
        s.lists += is_packable(p, r);
    for (uint32_t i = 0; i < stage->edge_instrs; i++)
        if (gs_stage_goes_by_source(stage, &stage->edge_instr[i], &source)) /* edges are picked before all steps */
            return;
    if (s.lists < 2 || s.lists > GS_CPU_PACKED || e->operand_rows * (uint64_t)GS_CPU_PACKED > room->floats ||
        e->start[e->targets] - e->start[0] < NEAR_EDGES * (uint64_t)e->operand_rows)
        return;
    for (uint32_t r = 0; r < stage->edge_regs; r++)
        if (is_packable(p, r)) {
            plan->pack[plan->packed++] = p->cpu->edge_state[r].a.p;
            drop_gather(plan, p->cpu->edge_state[r].a.p);
            p->cpu->edge_state[r].a = new_slot(p, 1);
        }
    emit(p, s);
    add_gather(plan, room->at, GS_CPU_PACKED * sizeof(float), false);
}

/* ---- the whole ---- */

gs_status gs_cpu__plan_edges(gs_cpu_edge_plan *plan, const gs_cpu *cpu, const gs_edge_program_launch *l, uint32_t outer)
{
    const gs_stage *const stage = l->stage;
    planner p = {.cpu = cpu, .l = l, .plan = plan, .outer = outer, .noun = "edge register", .st = GS_OK};

    *plan = (gs_cpu_edge_plan){.l = l, .step = cpu->edge_step, .slot = cpu->edge_slot, .picked = GS_NONE};
    if (stage->edge_regs > cpu->edge_states)
        return gs_fail(GS_EINVAL, "stage \"%s\": not prepared for so many edge registers", stage->name);
    gs_cpu__find_edge_uses(cpu, l, outer);
    for (p.index = 0; p.index < stage->edge_regs && p.st == GS_OK; p.index++)
        plan_register(&p, p.index);
    if (outer == GS_NONE || outer == GS_CPU_OUTERS_BESIDE)
        plan_packed(&p);
    p.noun = "edge instruction";
    for (p.index = 0; p.index < stage->edge_instrs && p.st == GS_OK; p.index++)
        if (cpu->edge_state[stage->edge_instr[p.index].dst].needed &&
            cpu->edge_state[stage->edge_instr[p.index].dst].late == 0)
            plan_instr(&p, &stage->edge_instr[p.index]);
    p.noun = "sum";
    for (p.index = 0; p.index < stage->sums && p.st == GS_OK; p.index++)
        if (gs_cpu__is_planned(stage, p.index, outer))
            (stage->sum[p.index].kind != GS_SUM_OUTER ? plan_sum
             : outer == GS_CPU_OUTERS_BESIDE          ? plan_outer_beside
                                                      : plan_outer)(&p, &stage->sum[p.index]);
    if (p.st != GS_OK)
        return p.st;
    find_picks(&p);
    gs_cpu__lay_out_edges(plan, cpu->k->lanes);
    if (gs_cpu__tile_floats(plan->floats, plan->tile) > cpu->room[GS_CPU_TILES].floats)
        return gs_fail(GS_EINVAL, "stage \"%s\": not prepared for edge registers of this size", stage->name);
    return GS_OK;
}
