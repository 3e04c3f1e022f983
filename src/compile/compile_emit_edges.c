/* compile_emit_edges.c - the edge pass of a stage: its sums and the edge program they share.
 *
 * By in-edges the target end is the destination and the operand end the source; by out-edges
 * it is the other way round. Values are written once, however many sums use them.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "compile/compile_internal.h"

uint32_t gs_compile__add_reg(gs_stage *s, gs_reg_kind kind, const gs_node *n, uint32_t array)
{
    s->reg[s->regs] = (gs_reg){.kind = kind, .dtype = kind == GS_REG_SUM ? GS_F32 : n->dtype, .width = n->width,
                               .array = array};
    return s->regs++;
}

static const gs_node *at(const gs_emitter *e, uint32_t i)
{
    return gs_ir_node(e->c->ir, i);
}

/* A sum of its own in stage t: not an LSE_IN that its ATTEND gives. */
static bool in_stage(const gs_emitter *e, uint32_t v, uint32_t t)
{
    return gs_compile__is_sum(at(e, v)) && e->state[v] == GS_CUT_COMPUTED && e->c->when.level[v] == t &&
           e->c->sum.partner[v] == GS_IR_NONE;
}

static uint32_t add_edge_reg(gs_stage *s, gs_edge_reg_kind kind, uint32_t width, uint32_t array)
{
    s->edge_reg[s->edge_regs] = (gs_edge_reg){.kind = kind, .width = width, .array = array};
    return s->edge_regs++;
}

static gs_operand operand(const gs_emitter *e, uint32_t v)
{
    const gs_node *n = at(e, v);
    if (n->op == GS_OP_PARAM || gs_compile__is_statistic(n))
        return (gs_operand){.kind = GS_FROM_PARAM, .index = e->param[v]};
    if (n->op == GS_OP_CONST)
        return (gs_operand){.kind = GS_FROM_CONST, .value = n->alpha};
    if (n->op == GS_OP_SRC)
        return (gs_operand){.kind = GS_FROM_REG, .index = e->edge[n->in[0]]};
    return (gs_operand){.kind = GS_FROM_REG, .index = n->type == GS_TYPE_D ? e->edge_destination[v] : e->edge[v]};
}

/* The row of one end, of its columns those of the edge's type. */
static void emit_pick(gs_emitter *e, gs_stage *s, gs_edge_reg_kind end, uint32_t v)
{
    e->edge[v] = add_edge_reg(s, end, at(e, v)->width, e->array[at(e, v)->in[0]]);
    s->edge_reg[e->edge[v]].typed = true;
}

/* Widest first where the order does not matter. */
static void emit_instr(gs_emitter *e, gs_stage *s, uint32_t v)
{
    const gs_node *n = at(e, v);
    const uint32_t inputs = gs_node_inputs(n);
    const bool commutes = gs_op_is(n->op, GS_FACT_COMMUTES);
    const uint32_t first =
        inputs == 2 && commutes &&
                (at(e, n->in[0])->type == GS_TYPE_P ||
                 (at(e, n->in[1])->type != GS_TYPE_P && at(e, n->in[1])->width > at(e, n->in[0])->width))
            ? 1
            : 0;
    gs_instr i = {.op = n->op, .alpha = n->alpha, .site = n->site, .self = n->self};

    i.a = operand(e, n->in[first]);
    if (inputs > 1)
        i.b = operand(e, n->in[1 - first]);
    if (inputs > 2)
        i.c = operand(e, n->in[2]);
    i.dst = e->edge[v] = add_edge_reg(s, GS_EDGE_TEMP, n->width, GS_NONE);
    s->edge_instr[s->edge_instrs++] = i;
}

/* Registers and instructions for everything in the cones, in the order of the graph. */
static void emit_program(gs_emitter *e, gs_stage *s)
{
    const gs_edge_reg_kind source = s->direction == 0 ? GS_EDGE_OPERAND : GS_EDGE_TARGET;
    const gs_edge_reg_kind destination = s->direction == 0 ? GS_EDGE_TARGET : GS_EDGE_OPERAND;

    gs_compile__sort_marks(&e->marks);
    for (uint32_t i = 0; i < e->marks.count; i++) {
        const uint32_t v = e->marks.node[i];
        e->edge[v] = e->edge_destination[v] = GS_NONE; /* not those of another stage */
        if ((e->marks.bits[v] & GS_CONE_SOURCE) != 0)
            e->edge[v] = add_edge_reg(s, source, at(e, v)->width, e->array[v]);
        if ((e->marks.bits[v] & GS_CONE_DESTINATION) != 0)
            e->edge_destination[v] = add_edge_reg(s, destination, at(e, v)->width, e->array[v]);
        if ((e->marks.bits[v] & GS_CONE_EDGE) == 0)
            continue;
        if (at(e, v)->op == GS_OP_WEIGHT)
            e->edge[v] = add_edge_reg(s, GS_EDGE_WEIGHT, 1, GS_NONE);
        else if (gs_compile__is_typed(at(e, v)))
            emit_pick(e, s, at(e, v)->op == GS_OP_TYPE_SRC ? source : destination, v);
        else
            emit_instr(e, s, v);
    }
}

static gs_sum_kind kind_of(const gs_emitter *e, uint32_t v)
{
    switch (at(e, v)->op) {
    case GS_OP_SPLIT_OUT:
        return GS_SUM_ADD_TYPE;
    case GS_OP_MAX_IN:
        return GS_SUM_MAX;
    case GS_OP_MIN_IN:
        return GS_SUM_MIN;
    case GS_OP_ATTEND:
    case GS_OP_LSE_IN:
        return GS_SUM_ATTEND;
    case GS_OP_LSTM_IN:
        return GS_SUM_LSTM;
    case GS_OP_LSTM_BACK:
        return GS_SUM_LSTM_BACK;
    case GS_OP_TYPE_OUTER:
        return GS_SUM_OUTER;
    default:
        return GS_SUM_ADD;
    }
}

/* The log-sum-exp that comes with an attention: of the LSE_IN that asks for it, if one does. */
static uint32_t emit_lse(gs_emitter *e, gs_stage *s, uint32_t v)
{
    const uint32_t r = gs_compile__add_reg(s, GS_REG_SUM, at(e, at(e, v)->in[0]), GS_NONE);
    for (uint32_t i = 0; i < e->c->sum.lses; i++)
        if (e->c->sum.partner[e->c->sum.lse[i]] == v)
            e->reg[e->c->sum.lse[i]] = r;
    return r;
}

/* The derivative of a sequence, with the gradient of its weight where that is asked for. */
static void emit_back(gs_emitter *e, gs_stage *s, uint32_t v)
{
    const gs_node *n = at(e, v);
    gs_sum m = {.kind = GS_SUM_LSTM_BACK, .array = e->array[v], .reg = GS_NONE, .lse = GS_NONE,
                .weight = e->param[n->in[1]], .value = operand(e, n->in[0]).index, .score = operand(e, n->in[2]).index};

    for (uint32_t o = 0; o < gs_ir_outputs(e->c->ir); o++) {
        const gs_output *out = gs_ir_output(e->c->ir, o);
        m.learned |=
            out->kind == GS_OUTPUT_GRAD && at(e, out->node)->op == GS_OP_LSTM_WEIGHT && at(e, out->node)->in[0] == v;
    }
    s->sum[s->sums++] = m;
}

static void emit_row_sum(gs_emitter *e, gs_stage *s, uint32_t v)
{
    const uint32_t row = e->c->sum.operand[v], scale = e->c->sum.scale[v];
    const gs_row_sum rows = {.array = e->array[row],
                             .scale = scale != GS_IR_NONE ? e->array[scale] : GS_NONE,
                             .types = at(e, v)->op == GS_OP_SPLIT_IN   ? GS_TYPES_OF_SUM
                                      : at(e, v)->op == GS_OP_PICK_OUT ? GS_TYPES_OF_ROWS
                                                                       : GS_TYPES_NONE};
    gs_stage_add_row_sum(s, &rows, GS_MIN(at(e, v)->width, at(e, row)->width), e->reg[v], at(e, v)->self);
}

static void emit_sum(gs_emitter *e, gs_stage *s, uint32_t v)
{
    const gs_node *n = at(e, v);
    gs_sum m = {.array = GS_NONE, .kind = kind_of(e, v), .self = n->self, .value = GS_NONE, .score = GS_NONE,
                .lse = GS_NONE};

    if (n->op == GS_OP_LSTM_BACK) {
        emit_back(e, s, v);
        return;
    }
    m.reg = gs_compile__add_reg(s, GS_REG_SUM, n, GS_NONE);
    e->reg[v] = m.reg;
    if (e->c->sum.operand[v] != GS_IR_NONE) {
        emit_row_sum(e, s, v);
        return;
    }
    if (m.kind == GS_SUM_ATTEND) {
        m.beside = m.self;
        m.self = false;
    }
    if (n->op == GS_OP_LSE_IN) { /* attention of the scores to themselves, for its lse */
        m.value = m.score = operand(e, n->in[0]).index;
        m.lse = e->reg[v] = gs_compile__add_reg(s, GS_REG_SUM, n, GS_NONE);
    } else if (n->op == GS_OP_ATTEND) {
        m.score = operand(e, n->in[0]).index;
        m.value = operand(e, n->in[1]).index;
        m.lse = emit_lse(e, s, v);
    } else if (n->op == GS_OP_TYPE_OUTER) {
        m.score = operand(e, n->in[0]).index;
        m.value = operand(e, n->in[1]).index;
        m.weight = e->param[n->in[2]];
    } else {
        m.value = operand(e, n->in[0]).index;
        m.weight = n->op == GS_OP_LSTM_IN ? e->param[n->in[1]] : 0;
    }
    s->sum[s->sums++] = m;
}

gs_status gs_compile__emit_edges(gs_emitter *e, gs_stage *s, uint32_t t)
{
    const gs_cut *c = e->c;
    bool program = false;

    s->direction = c->sum.direction[t];
    for (uint32_t i = c->when.level_start[t]; i < c->when.level_start[t + 1]; i++)
        if (in_stage(e, c->when.by_level[i], t) && c->sum.operand[c->when.by_level[i]] == GS_IR_NONE) {
            gs_compile__cone(c->ir, c->when.by_level[i], &e->marks);
            program = true;
        }
    const size_t regs = GS_STAGE_SUMS * GS_ROW_SUM_REGS + 2 * (size_t)e->marks.count;
    s->edge_reg = gs_calloc(regs, sizeof(*s->edge_reg));
    s->edge_instr = gs_calloc(GS_STAGE_SUMS + (size_t)e->marks.count, sizeof(*s->edge_instr));
    if (s->edge_reg == NULL || s->edge_instr == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the compiled program");
    if (program)
        emit_program(e, s);
    for (uint32_t i = c->when.level_start[t]; i < c->when.level_start[t + 1]; i++)
        if (in_stage(e, c->when.by_level[i], t))
            emit_sum(e, s, c->when.by_level[i]);
    gs_compile__unmark(&e->marks);
    return GS_OK;
}
