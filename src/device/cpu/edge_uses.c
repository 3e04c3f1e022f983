/* Which edge registers a plan needs, what reads them, and which of them are bits. */
#include "base/size.h"
#include "device/cpu/edge_program.h"

typedef struct seeker {
    const gs_cpu *cpu;
    const gs_edge_program_launch *l;
    uint32_t outer; /* of the plan */
} seeker;

static const gs_instr *maker_of(const gs_stage *stage, const gs_operand *o)
{
    for (uint32_t i = 0; i < stage->edge_instrs && o->kind == GS_FROM_REG; i++)
        if (stage->edge_instr[i].dst == o->index)
            return &stage->edge_instr[i];
    return NULL;
}

/* Does it say which numbers are equal, one way or another? */
static bool is_equality(const gs_stage *stage, const gs_operand *o)
{
    const gs_instr *in = maker_of(stage, o);
    while (in != NULL && in->op == GS_OP_WHERE)
        in = maker_of(stage, &in->c);
    return in != NULL && in->op == GS_OP_EQ;
}

/* Is the register a product by whether numbers are equal? The gradient of a maximum is: an edge a column has it. */
static bool is_sparse(const gs_stage *stage, const gs_operand *o)
{
    const gs_instr *const in = maker_of(stage, o);
    return in != NULL && in->op == GS_OP_MUL && (is_equality(stage, &in->a) || is_equality(stage, &in->b));
}

bool gs_cpu__takes_sparse(const gs_cpu *cpu, const gs_stage *stage, uint32_t reg, uint32_t width)
{
    return stage->edge_reg[reg].width <= GS_CPU_SPARSE_WIDTH && width >= cpu->k->lanes &&
           is_sparse(stage, &(gs_operand){.kind = GS_FROM_REG, .index = reg});
}

bool gs_cpu__is_planned(const gs_stage *stage, uint32_t sum, uint32_t outer)
{
    const gs_sum *const s = &stage->sum[sum];
    if (outer != GS_NONE && outer != GS_CPU_OUTERS_BESIDE)
        return sum == outer;
    return s->kind == GS_SUM_OUTER ? s->dense && outer == GS_CPU_OUTERS_BESIDE : !gs_stage_sums_rows(stage, sum);
}

static bool is_planned(const seeker *p, uint32_t sum) { return gs_cpu__is_planned(p->l->stage, sum, p->outer); }

static void need(const seeker *p, uint32_t reg) { p->cpu->edge_state[reg].needed = true; }

static bool has_score(const gs_sum *s)
{
    return s->kind == GS_SUM_ATTEND || s->kind == GS_SUM_OUTER || gs_sum_is_held(s->kind);
}

/* Registers that the planned sums depend on. */
static void find_needed(const seeker *p)
{
    const gs_stage *const stage = p->l->stage;
    for (uint32_t i = 0; i < stage->sums; i++) {
        if (!is_planned(p, i))
            continue;
        need(p, stage->sum[i].value);
        if (has_score(&stage->sum[i]))
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

static bool is_needed(const seeker *p, const gs_instr *in) { return p->cpu->edge_state[in->dst].needed; }

static void note_use(const gs_cpu *cpu, const gs_operand *o, bool can_multiply)
{
    if (o->kind != GS_FROM_REG)
        return;
    cpu->edge_state[o->index].uses++;
    cpu->edge_state[o->index].foldable = can_multiply && cpu->edge_state[o->index].uses == 1;
}

static void find_uses(const seeker *p)
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
        if (has_score(sum))
            note_use(cpu, &(gs_operand){.kind = GS_FROM_REG, .index = sum->score}, false);
    }
}

/* Is it a choice of full rows, the second of which are of products? */
static bool is_choice(const seeker *p, const gs_instr *in)
{
    const gs_stage *const stage = p->l->stage;
    if (in->op != GS_OP_WHERE)
        return false;
    for (uint32_t o = 0; o < 3; o++) {
        const gs_operand *const of = gs_instr_operand(in, o);
        if (of->kind != GS_FROM_REG || stage->edge_reg[of->index].width != stage->edge_reg[in->dst].width)
            return false;
    }
    for (uint32_t r = 0; r < stage->edge_regs; r++)
        if (gs_cpu__is_half(p->l->program, &stage->edge_reg[r])) /* whose copies in float32 are one for all */
            return false;
    const gs_cpu_edge_state *const first = &p->cpu->edge_state[in->b.index], *const second =
        &p->cpu->edge_state[in->c.index];
    return first->uses == 1 && !first->products && second->products;
}

/* Uses that are for one choice, the last: those for others are not counted. */
static void note_late(const gs_cpu *cpu, const gs_operand *o, uint32_t choice)
{
    if (o->kind != GS_FROM_REG)
        return;
    gs_cpu_edge_state *const s = &cpu->edge_state[o->index];
    if (s->late_uses == 0)
        s->late = choice;
    s->late_uses += s->late == choice;
}

/* What only a choice reads comes behind it. */
static void find_choices(const seeker *p)
{
    gs_cpu_edge_state *const state = p->cpu->edge_state;
    const gs_stage *const stage = p->l->stage;
    for (uint32_t i = 0; i < stage->edge_instrs; i++) {
        const gs_instr *const in = &stage->edge_instr[i];
        state[in->dst].products = gs_op_on_edges(in->op);
        for (uint32_t o = 0; o < gs_op_inputs(in->op); o++)
            if (gs_instr_operand(in, o)->kind == GS_FROM_REG)
                state[in->dst].products |= state[gs_instr_operand(in, o)->index].products;
    }
    for (uint32_t i = stage->edge_instrs; i-- > 0;) {
        const gs_instr *const in = &stage->edge_instr[i];
        gs_cpu_edge_state *const d = &state[in->dst];
        if (!is_needed(p, in))
            continue;
        d->chooses = is_choice(p, in);
        if (d->late_uses < d->uses)
            d->late = 0;
        for (uint32_t o = 0; o < gs_op_inputs(in->op) && d->late != 0; o++)
            note_late(p->cpu, gs_instr_operand(in, o), d->late);
        if (d->chooses && d->late == 0)
            note_late(p->cpu, &in->c, i + 1);
    }
}

/* Is the register an equality that may be bits? */
static bool may_be_bits(const seeker *p, const gs_operand *o)
{
    const gs_stage *const stage = p->l->stage;
    const gs_instr *const in = maker_of(stage, o);
    if (in == NULL || p->cpu->edge_state[in->dst].uses != 1)
        return false;
    return in->op == GS_OP_EQ || (p->cpu->edge_state[in->dst].chooses && may_be_bits(p, &in->b));
}

static void note_bits(const seeker *p, const gs_operand *o)
{
    const gs_instr *const in = maker_of(p->l->stage, o);
    p->cpu->edge_state[in->dst].bits = true;
    if (in->op == GS_OP_WHERE)
        note_bits(p, &in->b);
}

/* Uses of the register as the first side of products that leave its zeros out. */
static uint32_t count_sparse_uses(const seeker *p, uint32_t reg)
{
    const gs_stage *const stage = p->l->stage;
    uint32_t uses = 0;
    for (uint32_t i = 0; i < stage->edge_instrs; i++) {
        const gs_instr *const in = &stage->edge_instr[i];
        uses += is_needed(p, in) && gs_op_is_dense(in->op) && in->a.kind == GS_FROM_REG && in->a.index == reg &&
                gs_cpu__takes_sparse(p->cpu, stage, reg, stage->edge_reg[in->dst].width);
    }
    for (uint32_t i = 0; i < stage->sums && p->outer == GS_CPU_OUTERS_BESIDE; i++) {
        const gs_sum *const m = &stage->sum[i];
        uses += is_planned(p, i) && m->kind == GS_SUM_OUTER && m->score == reg &&
                gs_cpu__takes_sparse(p->cpu, stage, reg, stage->edge_reg[m->value].width);
    }
    return uses;
}

/* Products with an equality that only such products read are made there: the equality is bits. */
static void find_masks(const seeker *p)
{
    const gs_stage *const stage = p->l->stage;
    for (uint32_t i = 0; i < stage->edge_instrs; i++) {
        const gs_instr *const in = &stage->edge_instr[i];
        gs_cpu_edge_state *const d = &p->cpu->edge_state[in->dst];
        if (!is_needed(p, in) || in->op != GS_OP_MUL || count_sparse_uses(p, in->dst) != d->uses)
            continue;
        const bool first = may_be_bits(p, &in->a);
        const gs_operand *const equality = first ? &in->a : &in->b, *const other = first ? &in->b : &in->a;
        if (!may_be_bits(p, equality) || (other->kind == GS_FROM_REG && other->index == equality->index) ||
            stage->edge_reg[equality->index].width != stage->edge_reg[in->dst].width)
            continue;
        d->masked = true;
        note_bits(p, equality);
    }
}

void gs_cpu__find_edge_uses(const gs_cpu *cpu, const gs_edge_program_launch *l, uint32_t outer)
{
    const seeker u = {.cpu = cpu, .l = l, .outer = outer};
    for (uint32_t r = 0; r < l->stage->edge_regs; r++)
        cpu->edge_state[r] = (gs_cpu_edge_state){.uses = 0};
    find_needed(&u);
    find_uses(&u);
    find_choices(&u);
    find_masks(&u);
}
