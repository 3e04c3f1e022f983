/* Edge instructions of a launch to a plan: operands looked up, steps chosen, scratch laid out.
 *
 * Values stay where they are as long as a step can read them there. An instruction gives no step
 * of its own where the one that uses its result can do it on the way: a product that only one sum or fold
 * reads, and every spread. That the program obeys program.h was proved before (gs_program_check()); what is refused
 * here is what the launch lacks.
 */
#include <assert.h>

#include "device/cpu/dropout.h"
#include "device/cpu/edge_layout.h"
#include "device/cpu/edge_program.h"
#include "device/cpu/edge_values.h"
#include "device/cpu/type_matrices.h"

#define LINE 64 /* bytes of a cache line */

/* ---- instructions ---- */

static void plan_fold(gs_cpu_planner *p, const gs_instr *in, uint32_t groups, gs_cpu_edge_state *d)
{
    gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_FOLD, .width = groups};
    assert(in->a.kind == GS_FROM_REG && p->cpu->edge_state[in->a.index].ready);
    const gs_cpu_edge_state *const a = &p->cpu->edge_state[in->a.index];
    const uint32_t width = p->l->stage->edge_reg[in->a.index].width;
    assert(width % groups == 0);
    const bool product = a->b.form != GS_CPU_EDGE_NOTHING;
    s.a = product ? gs_cpu__stored_rows(p, a->a, width) : gs_cpu__full_rows(p, a->a, width);
    if (product)
        s.b = gs_cpu__stored_rows(p, a->b, width);
    d->a = gs_cpu__emit_value(p, s);
}

/* A mask, or whether an edge is a loop: of the ids of its ends. */
static void plan_ids(gs_cpu_planner *p, const gs_instr *in, uint32_t width, gs_cpu_edge_state *d)
{
    const bool mask = in->op == GS_OP_EDGE_MASK;
    gs_cpu_edge_step s = {
        .kind = mask ? GS_CPU_EDGE_MASK : GS_CPU_EDGE_LOOP, .width = width, .loops_as_one = in->self};
    uint32_t source = 0, destination = 0;

    s.a = gs_cpu__operand_value(p, &in->a, &source);
    s.b = gs_cpu__operand_value(p, &in->b, &destination);
    assert(source == 1 && destination == 1 && (mask || width == 1));
    if (mask)
        gs_cpu__edge_mask(&s.mask, in, p->l->seed, p->l->epoch);
    d->a = gs_cpu__emit_value(p, s);
}

static void plan_rowmax(gs_cpu_planner *p, const gs_instr *in, uint32_t width, gs_cpu_edge_state *d)
{
    uint32_t own = 0;
    d->a = gs_cpu__operand_value(p, &in->a, &own);
    assert(width == 1);
    const gs_cpu_edge_value a = gs_cpu__full_rows(p, d->a, own);
    d->a = gs_cpu__emit_value(p, (gs_cpu_edge_step){.kind = GS_CPU_EDGE_ROWMAX, .width = width, .a = a});
}

/* A matrix of each type: those of the parameter, or all of them transposed. */
static void plan_by_type(gs_cpu_planner *p, const gs_instr *in, uint32_t width, gs_cpu_edge_state *d)
{
    const gs_program *const program = p->l->program;
    gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_BY_TYPE, .width = width};
    uint32_t own = 0;

    s.a = gs_cpu__operand_value(p, &in->a, &own);
    const uint64_t one = (uint64_t)own * width, all = gs_param_elements(&program->param[in->b.index]);
    assert(all % one == 0);
    gs_cpu__note_types(p, (uint32_t)(all / one), 1);
    s.a = gs_cpu__full_rows(p, s.a, own);
    s.matrix = in->op == GS_OP_BY_TYPE ? p->l->param[in->b.index] : gs_cpu__transposed_matrices(p->cpu, p->l, in);
    p->plan->typed = true;
    d->a = gs_cpu__emit_value(p, s);
}

/* An element of the elements at the same place. */
static void plan_each(gs_cpu_planner *p, const gs_instr *in, uint32_t width, gs_cpu_edge_state *d)
{
    d->a = gs_cpu__stretched(p, &in->a, width);
    if (gs_op_inputs(in->op) == 2) {
        d->a = gs_cpu__binary(p, in->op, d->a, gs_cpu__stretched(p, &in->b, width), width);
        return;
    }
    if (gs_op_inputs(in->op) == 3) {
        gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_FLAT, .op = in->op, .width = width};
        s.a = gs_cpu__flattened(p, d->a, width);
        s.b = gs_cpu__flattened(p, gs_cpu__stretched(p, &in->b, width), width);
        s.c = gs_cpu__flattened(p, gs_cpu__stretched(p, &in->c, width), width);
        d->a = gs_cpu__emit_value(p, s);
        return;
    }
    d->a = gs_cpu__contiguous(p, d->a, width);
    d->a = gs_cpu__emit_value(
        p, (gs_cpu_edge_step){.kind = GS_CPU_EDGE_UNARY, .op = in->op, .alpha = in->alpha, .width = width, .a = d->a});
}

static void plan_instr(gs_cpu_planner *p, const gs_instr *in)
{
    gs_cpu_edge_state *const d = &p->cpu->edge_state[in->dst];
    const uint32_t width = p->l->stage->edge_reg[in->dst].width;
    uint32_t own = 0;

    assert(p->l->stage->edge_reg[in->dst].kind == GS_EDGE_TEMP && gs_op_is(in->op, GS_FACT_EDGE));
    switch (in->op) {
    case GS_OP_MUL:
        d->a = gs_cpu__stretched(p, &in->a, width);
        d->b = gs_cpu__stretched(p, &in->b, width);
        if (d->foldable)
            break;
        d->a = gs_cpu__multiply(p, d->a, d->b, width);
        d->b = (gs_cpu_edge_value){.form = GS_CPU_EDGE_NOTHING};
        break;
    case GS_OP_BY_TYPE:
    case GS_OP_BY_TYPE_T:
        plan_by_type(p, in, width, d);
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
        d->a = gs_cpu__operand_value(p, &in->a, &own);
        assert(width % own == 0);
        break;
    default:
        plan_each(p, in, width, d);
    }
    d->ready = true;
}

/* ---- sums ---- */

/* acc += a * b: the first one of the full width; the second one with a number for each vector at least. */
static void plan_product_sum(gs_cpu_planner *p, gs_cpu_edge_step s, gs_cpu_edge_value a, gs_cpu_edge_value b)
{
    const uint32_t lanes = p->cpu->k->lanes;
    if (a.width != s.width || (b.half && b.width == s.width))
        gs_cpu__swap_values(&a, &b);
    s.a = gs_cpu__stored_rows(p, a, s.width);
    b = gs_cpu__widened(p, b);
    const bool groups = b.width != 0 && ((s.width >= lanes && s.width / b.width >= lanes) ||
                                         gs_cpu__takes_groups(p, s.width, s.width / b.width));
    s.b = b.width == 1 || groups ? b : gs_cpu__full_rows(p, b, s.width);
    gs_cpu__emit(p, s);
}

/* Takes the factor out of an attended value that is a product with a number for each head (a mask, a weight): it goes
 * to the head's weight instead. */
static gs_cpu_edge_value take_factor(gs_cpu_planner *p, const gs_sum *sum, uint32_t heads)
{
    const gs_cpu_edge_value none = {.form = GS_CPU_EDGE_NOTHING};
    gs_cpu_edge_state *const v = &p->cpu->edge_state[sum->value];
    const uint32_t width = p->l->stage->edge_reg[sum->value].width;

    if (!v->ready || v->b.form == GS_CPU_EDGE_NOTHING)
        return none;
    if (v->a.width != width)
        gs_cpu__swap_values(&v->a, &v->b);
    if (v->a.width != width || (v->b.width != heads && v->b.width != 1) || v->b.width == width)
        return none;
    const gs_cpu_edge_value factor = v->b;
    v->b = none;
    return factor;
}

static void plan_sum(gs_cpu_planner *p, const gs_sum *sum)
{
    const gs_stage *const stage = p->l->stage;
    gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_SUM, .fold = sum->kind, .dst = GS_NONE, .sum = p->index};
    gs_cpu_edge_value factor = {.form = GS_CPU_EDGE_NOTHING};
    uint32_t width = 0, heads = 0;

    if (p->l->sum[p->index].acc == NULL) {
        gs_cpu__refuse_edges(p, "no place for this sum");
        return;
    }
    s.width = stage->reg[sum->reg].width;
    if (sum->kind == GS_SUM_ADD_TYPE) {
        width = stage->edge_reg[sum->value].width;
        gs_cpu__note_types(p, s.width / width, p->l->edges.target_rows);
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
    gs_cpu_edge_value value = gs_cpu__register_value(p, sum->value, &width);
    assert(width == s.width);
    if (sum->kind != GS_SUM_ATTEND) {
        s.a = gs_cpu__stored_rows(p, value, s.width);
        gs_cpu__emit(p, s);
        return;
    }
    const gs_cpu_edge_value score = gs_cpu__register_value(p, sum->score, &heads);
    assert(width % heads == 0);
    if (p->l->sum[p->index].maximum == NULL || p->l->sum[p->index].norm == NULL) {
        gs_cpu__refuse_edges(p, "no place for maximum and norm");
        return;
    }
    const gs_cpu_edge_step attend = {.kind = GS_CPU_EDGE_ATTEND, .width = heads, .sum = p->index,
                                     .a = gs_cpu__contiguous(p, score, heads)};
    s.fold = GS_SUM_ADD;
    value = gs_cpu__stored_rows(p, value, s.width);
    gs_cpu_edge_value weight = gs_cpu__emit_value(p, attend);
    if (factor.form != GS_CPU_EDGE_NOTHING)
        weight = gs_cpu__multiply(p, weight, factor, heads);
    plan_product_sum(p, s, value, weight);
}

/* Both sides of an outer product go to where rows of their type lie together. */
static void plan_outer(gs_cpu_planner *p, const gs_sum *sum)
{
    const uint32_t side[2] = {sum->score, sum->value};
    uint64_t one = 1;
    for (uint32_t i = 0; i < 2; i++) {
        gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_KEEP, .dst = GS_NONE, .sum = i};
        s.a = gs_cpu__register_value(p, side[i], &s.width);
        if (p->st == GS_OK)
            s.a = gs_cpu__full_rows(p, s.a, s.width);
        gs_cpu__emit(p, s);
        one *= s.width;
    }
    if (p->st == GS_OK)
        gs_cpu__note_types(p, (uint32_t)(gs_param_elements(&p->l->program->param[sum->weight]) / one), 1);
}

/* ---- the whole ---- */

/* Is the sum one of the plan's? */
static bool is_planned(const gs_cpu_planner *p, uint32_t sum)
{
    const gs_stage *const s = p->l->stage;
    return p->outer != GS_NONE ? sum == p->outer
                               : !gs_stage_sums_rows(s, sum) && s->sum[sum].kind != GS_SUM_OUTER;
}

static void need(const gs_cpu_planner *p, uint32_t reg)
{
    p->cpu->edge_state[reg].needed = true;
}

/* Registers that the planned sums depend on. */
static void find_needed(const gs_cpu_planner *p)
{
    const gs_stage *const stage = p->l->stage;
    for (uint32_t i = 0; i < stage->sums; i++) {
        if (!is_planned(p, i))
            continue;
        need(p, stage->sum[i].value);
        if (stage->sum[i].kind == GS_SUM_ATTEND || stage->sum[i].kind == GS_SUM_OUTER)
            need(p, stage->sum[i].score);
    }
    for (uint32_t i = stage->edge_instrs; i-- > 0;) {
        const gs_instr *const in = &stage->edge_instr[i];
        if (!p->cpu->edge_state[in->dst].needed)
            continue;
        for (uint32_t o = 0; o < gs_op_inputs(in->op); o++)
            if (gs_instr_operand(in, o)->kind == GS_FROM_REG)
                need(p, gs_instr_operand(in, o)->index);
    }
}

static bool is_needed(const gs_cpu_planner *p, const gs_instr *in) { return p->cpu->edge_state[in->dst].needed; }

static void note_use(const gs_cpu *cpu, const gs_operand *o, bool can_multiply)
{
    if (o->kind != GS_FROM_REG)
        return;
    cpu->edge_state[o->index].uses++;
    cpu->edge_state[o->index].foldable = can_multiply && cpu->edge_state[o->index].uses == 1;
}

static void find_uses(const gs_cpu_planner *p)
{
    const gs_cpu *const cpu = p->cpu;
    const gs_stage *const stage = p->l->stage;
    for (uint32_t i = 0; i < stage->edge_instrs; i++) {
        const gs_instr *const in = &stage->edge_instr[i];
        if (!is_needed(p, in))
            continue;
        note_use(cpu, &in->a, in->op == GS_OP_FOLD || in->op == GS_OP_ROWSUM);
        note_use(cpu, &in->b, false);
        note_use(cpu, &in->c, false);
    }
    for (uint32_t i = 0; i < stage->sums; i++) {
        const gs_sum *const sum = &stage->sum[i];
        if (!is_planned(p, i))
            continue;
        note_use(cpu, &(gs_operand){.kind = GS_FROM_REG, .index = sum->value},
                 sum->kind == GS_SUM_ADD || sum->kind == GS_SUM_ADD_TYPE || sum->kind == GS_SUM_ATTEND);
        if (sum->kind == GS_SUM_ATTEND || sum->kind == GS_SUM_OUTER)
            note_use(cpu, &(gs_operand){.kind = GS_FROM_REG, .index = sum->score}, false);
    }
}

static void add_gather(gs_cpu_edge_plan *plan, const float *rows, uint64_t bytes, bool typed)
{
    for (uint32_t g = 0; g < plan->gathers; g++)
        if (plan->gather[g].p == rows && plan->gather[g].typed == typed)
            return;
    if (plan->gathers == GS_CPU_EDGE_GATHERS)
        return; /* only not prefetched */
    const uint64_t line = LINE;
    const bool whole = (uintptr_t)rows % line == 0 && (bytes % line == 0 || line % bytes == 0);
    plan->gather[plan->gathers++] =
        (gs_cpu_edge_gather){.p = rows, .bytes = (uint32_t)bytes, .typed = typed, .straddles = !whole};
}

/* Leaves: where their rows are. */
static void plan_register(gs_cpu_planner *p, uint32_t index)
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
        s->a = e->weight == NULL ? (gs_cpu_edge_value){.form = GS_CPU_EDGE_FIXED, .width = 1, .p = &one}
                                 : (gs_cpu_edge_value){.form = GS_CPU_EDGE_WEIGHT, .width = 1, .p = e->weight};
    } else if (r->kind != GS_EDGE_TEMP) {
        const bool operand = r->kind == GS_EDGE_OPERAND, half = gs_cpu__is_half(p->l->program, r);
        if (rows == NULL)
            gs_cpu__refuse_edges(p, "rows that the launch does not have");
        s->a = (gs_cpu_edge_value){
            .form = operand ? GS_CPU_EDGE_OPERAND : GS_CPU_EDGE_TARGET, .width = r->width, .p = rows, .half = half};
        if (r->typed && p->st == GS_OK) {
            gs_cpu__note_types(p, p->l->program->array[r->array].width / r->width,
                               operand ? e->operand_rows : e->target_rows);
            s->a.form = operand ? GS_CPU_EDGE_OPERAND_TYPE : GS_CPU_EDGE_TARGET_TYPE;
        }
        if (operand && s->uses > 0)
            add_gather(p->plan, rows, r->width * (half ? sizeof(uint16_t) : sizeof(float)), r->typed);
    }
}

gs_status gs_cpu__plan_edges(gs_cpu_edge_plan *plan, const gs_cpu *cpu, const gs_edge_program_launch *l, uint32_t outer)
{
    const gs_stage *const stage = l->stage;
    gs_cpu_planner p = {.cpu = cpu, .l = l, .plan = plan, .outer = outer, .noun = "edge register", .st = GS_OK};

    *plan = (gs_cpu_edge_plan){.l = l, .step = cpu->edge_step, .slot = cpu->edge_slot};
    if (stage->edge_regs > cpu->edge_states)
        return gs_fail(GS_EINVAL, "stage \"%s\": not prepared for so many edge registers", stage->name);
    for (uint32_t r = 0; r < stage->edge_regs; r++)
        cpu->edge_state[r] = (gs_cpu_edge_state){.uses = 0};
    find_needed(&p);
    find_uses(&p);
    for (p.index = 0; p.index < stage->edge_regs && p.st == GS_OK; p.index++)
        plan_register(&p, p.index);
    p.noun = "edge instruction";
    for (p.index = 0; p.index < stage->edge_instrs && p.st == GS_OK; p.index++)
        if (is_needed(&p, &stage->edge_instr[p.index]))
            plan_instr(&p, &stage->edge_instr[p.index]);
    p.noun = "sum";
    for (p.index = 0; p.index < stage->sums && p.st == GS_OK; p.index++)
        if (is_planned(&p, p.index))
            (outer == GS_NONE ? plan_sum : plan_outer)(&p, &stage->sum[p.index]);
    if (p.st != GS_OK)
        return p.st;
    gs_cpu__lay_out_edges(plan, cpu->k->lanes);
    if (gs_cpu__edge_tile_floats(plan->floats, plan->tile) > cpu->room[GS_CPU_TILES].floats)
        return gs_fail(GS_EINVAL, "stage \"%s\": not prepared for edge registers of this size", stage->name);
    return GS_OK;
}
