/* compile_cone.c - what an edge pass has to read and compute for a sum.
 *
 * A sum of rows adds up an array as it is. Any other sum needs an edge program: the cone of
 * values of edges above it, down to vertex values, which are arrays of earlier stages.
 */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "compile/compile_internal.h"

bool gs_compile__is_sum(const gs_node *n)
{
    return gs_op_classof(n->op) == GS_CLASS_EDGE && n->op != GS_OP_SRC && !gs_compile__is_typed(n);
}

/* The array whose rows a sum adds up as they are; GS_IR_NONE where it needs an edge program. */
static uint32_t operand_of(const gs_ir *ir, const gs_node *n)
{
    const gs_node *a;
    switch (n->op) {
    case GS_OP_SUM_IN:
    case GS_OP_SPLIT_IN:
        a = gs_ir_node(ir, n->in[0]);
        return a->op == GS_OP_SRC ? a->in[0] : GS_IR_NONE;
    case GS_OP_SUM_OUT:
    case GS_OP_PICK_OUT:
        return gs_ir_node(ir, n->in[0])->type == GS_TYPE_D ? n->in[0] : GS_IR_NONE;
    default:
        return GS_IR_NONE;
    }
}

static bool is_half(const gs_node *n) { return n->op == GS_OP_INPUT && gs_dtype_is_half(n->dtype); }

/* The input that a value is, or is the cast of; GS_IR_NONE. */
static uint32_t input_of(const gs_ir *ir, uint32_t v)
{
    const gs_node *n = gs_ir_node(ir, v);
    if (n->op == GS_OP_CAST && is_half(gs_ir_node(ir, n->in[0])))
        return n->in[0];
    return n->op == GS_OP_INPUT && n->dtype == GS_F32 ? v : GS_IR_NONE;
}

/* A float32 number a vertex. */
static bool is_scale(const gs_node *n)
{
    return n->type == GS_TYPE_D && n->width == 1 && n->dtype == GS_F32;
}

/* False: nothing. */
static bool find_instead(gs_rows_read *out, const gs_ir *ir, const gs_node *sum)
{
    const uint32_t v = operand_of(ir, sum);
    const gs_node *const n = v == GS_IR_NONE ? NULL : gs_ir_node(ir, v);
    if (n == NULL || (sum->op != GS_OP_SUM_IN && sum->op != GS_OP_SUM_OUT))
        return false;
    *out = (gs_rows_read){input_of(ir, v), GS_IR_NONE};
    if (n->op == GS_OP_CAST && out->operand != GS_IR_NONE)
        return true;
    for (uint32_t k = 0; n->op == GS_OP_MUL && n->width > 1 && k < 2; k++) {
        *out = (gs_rows_read){input_of(ir, n->in[k]), n->in[1 - k]};
        if (out->operand != GS_IR_NONE && gs_ir_node(ir, n->in[k])->width == n->width &&
            is_scale(gs_ir_node(ir, out->scale)))
            return true;
    }
    return false;
}

void gs_compile__mark(gs_marks *m, uint32_t node, unsigned bits)
{
    if (m->bits[node] == 0)
        m->node[m->count++] = node;
    m->bits[node] |= (uint8_t)bits;
}

void gs_compile__unmark(gs_marks *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        m->bits[m->node[i]] = 0;
    m->count = 0;
}

void gs_compile__sort_marks(gs_marks *m)
{
    if (m->count > 1)
        qsort(m->node, m->count, sizeof(*m->node), gs_by_number);
}

/* Marks what an edge reads or computes for its value `v`. */
static void mark(const gs_ir *ir, uint32_t v, gs_marks *m)
{
    const gs_node *n = gs_ir_node(ir, v);
    if (n->op == GS_OP_SRC)
        gs_compile__mark(m, n->in[0], GS_CONE_SOURCE);
    else if (n->type == GS_TYPE_D)
        gs_compile__mark(m, v, GS_CONE_DESTINATION);
    else if (n->type == GS_TYPE_E)
        gs_compile__mark(m, v, GS_CONE_EDGE);
}

/* Values of edges are marked once each, so the list of marks is also the list of what is left to follow. */
void gs_compile__cone(const gs_ir *ir, uint32_t i, gs_marks *m)
{
    const gs_node *n = gs_ir_node(ir, i);
    uint32_t next = m->count;

    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        mark(ir, n->in[k], m);
    for (; next < m->count; next++) {
        const uint32_t v = m->node[next];
        if ((m->bits[v] & GS_CONE_EDGE) == 0)
            continue;
        n = gs_ir_node(ir, v);
        if (gs_compile__is_typed(n))
            gs_compile__mark(m, n->in[0],
                             n->op == GS_OP_TYPE_SRC ? GS_CONE_TYPED_SOURCE : GS_CONE_TYPED_DESTINATION);
        for (uint32_t k = 0; !gs_compile__is_typed(n) && k < gs_node_inputs(n); k++)
            mark(ir, n->in[k], m);
    }
}

/* Is `v` made from `from`? */
static bool depends(const gs_ir *ir, uint32_t v, uint32_t from, gs_marks *m)
{
    bool found = v == from;

    gs_compile__mark(m, v, 1);
    for (uint32_t i = 0; i < m->count && !found; i++) {
        const gs_node *const n = gs_ir_node(ir, m->node[i]);
        for (uint32_t k = 0; k < gs_node_inputs(n) && !found; k++) {
            found = n->in[k] == from;
            if (n->in[k] > from) /* inputs have lower numbers */
                gs_compile__mark(m, n->in[k], 1);
        }
    }
    gs_compile__unmark(m);
    return found;
}

/* The ATTEND whose edge pass also gives the LSE_IN `i`, or GS_IR_NONE: one of attend[attends], in their order. */
static uint32_t partner_of(const gs_ir *ir, uint32_t i, const uint32_t *attend, uint32_t attends, gs_marks *m)
{
    const uint32_t score = gs_ir_node(ir, i)->in[0];
    for (uint32_t k = 0; k < attends; k++)
        if (gs_ir_node(ir, attend[k])->in[0] == score && (attend[k] < i || !depends(ir, attend[k], i, m)))
            return attend[k];
    return GS_IR_NONE;
}

/* ---- levels ------------------------------------------------------------ */

/* The first stage that can compute each value: its level. compile_cut.c says what a level is. */

static const gs_node *at(const gs_cut *c, uint32_t i) { return gs_ir_node(c->ir, i); }

/* First stage from `first` on that takes one more sum of this direction. `alone`: a sum with an
 * edge program that is to share it with no other. */
static uint32_t place_sum(gs_cut *c, uint32_t first, uint32_t direction, bool alone)
{
    uint32_t s = first;
    while (c->sum.count[s] == GS_STAGE_SUMS || (c->sum.count[s] > 0 && (alone || c->sum.direction[s] != direction)))
        s++; /* ends: there are more stages than sums */
    c->sum.count[s] = alone ? GS_STAGE_SUMS : c->sum.count[s] + 1;
    c->sum.direction[s] = direction;
    return s;
}

/* `how`: one of c->keep. */
static void store_operand(gs_cut *c, uint32_t v, bool *how)
{
    c->keep.must_store[v] |= at(c, v)->op != GS_OP_INPUT;
    how[v] = true;
}

static bool is_sequence(const gs_node *n)
{
    return n->op == GS_OP_LSTM_IN || n->op == GS_OP_LSTM_BACK;
}

/* Does the marked cone of sum `i` go by types of edges, or over edges one after the other? */
static bool reads_otherwise(const gs_cut *c, uint32_t i)
{
    const gs_marks *const m = &c->search.marks;
    bool other = is_sequence(at(c, i)) || at(c, i)->op == GS_OP_TYPE_OUTER || at(c, i)->op == GS_OP_DENSE_OUTER ||
                 at(c, i)->op == GS_OP_SPLIT_OUT;
    for (uint32_t k = 0; k < m->count && !other; k++)
        other = (m->bits[m->node[k]] & (GS_CONE_TYPED_SOURCE | GS_CONE_TYPED_DESTINATION)) != 0 ||
                gs_op_on_edges(at(c, m->node[k])->op);
    return other;
}

/* A derivative, a softmax's above all, is a small difference of what is large: rounding is no small part of that. So
 * gradients that edges of the marked cone add to others are not rounded, nor what a softmax takes from its scores. */
static void keep_addends(gs_cut *c)
{
    const gs_marks *const m = &c->search.marks;
    for (uint32_t k = 0; k < m->count; k++) {
        const gs_node *const n = at(c, m->node[k]);
        const bool of_edge = (m->bits[m->node[k]] & GS_CONE_EDGE) != 0;
        const bool adds = of_edge && (n->op == GS_OP_ADD || n->op == GS_OP_SUB);
        for (uint32_t i = 0; adds && i < gs_node_inputs(n); i++) {
            const uint32_t v = at(c, n->in[i])->op == GS_OP_SRC ? at(c, n->in[i])->in[0] : n->in[i];
            c->keep.full[v] |= at(c, v)->type == GS_TYPE_D && v > c->first_gradient;
        }
        if (of_edge && n->op == GS_OP_EXP && at(c, n->in[0])->op == GS_OP_SUB)
            c->keep.full[at(c, n->in[0])->in[1]] |= at(c, at(c, n->in[0])->in[1])->type == GS_TYPE_D;
    }
}

/* What the edge pass of sum `i` reads must be arrays of earlier stages. */
static void store_operands(gs_cut *c, uint32_t i)
{
    if (c->sum.operand[i] != GS_IR_NONE) {
        const bool by_type = at(c, i)->op == GS_OP_SPLIT_IN || at(c, i)->op == GS_OP_PICK_OUT;
        store_operand(c, c->sum.operand[i], by_type ? c->keep.full : c->keep.gathered);
        if (c->sum.scale[i] != GS_IR_NONE)
            store_operand(c, c->sum.scale[i], c->keep.full);
        return;
    }
    gs_compile__cone(c->ir, i, &c->search.marks);
    const uint8_t operand = c->sum.direction[c->when.level[i]] == 0 ? GS_CONE_SOURCE : GS_CONE_DESTINATION;
    const bool as_rows = !reads_otherwise(c, i);
    keep_addends(c);
    for (uint32_t k = 0; k < c->search.marks.count; k++) {
        const uint8_t ends = c->search.marks.bits[c->search.marks.node[k]] & (uint8_t)~GS_CONE_EDGE;
        if (ends != 0)
            store_operand(c, c->search.marks.node[k],
                          !as_rows ? c->keep.full : (ends & operand) != 0 ? c->keep.gathered : c->keep.target);
    }
    gs_compile__unmark(&c->search.marks);
}

/* Rows that an edge pass writes at the operand end, and statistics, are complete when their stage is, so who reads
 * them is in a later one. */
static bool is_late(const gs_node *n, const gs_node *in)
{
    return gs_compile__is_statistic(in) || (in->op == GS_OP_LSTM_BACK && n->op != GS_OP_LSTM_WEIGHT);
}

/* May the rows of sum `i` be read from what they are made of? */
static bool read_instead(gs_cut *c, uint32_t i)
{
    gs_rows_read r;
    if (c->sum.operand[i] == GS_IR_NONE || !find_instead(&r, c->ir, at(c, i)))
        return false;
    c->may_scale |= r.scale != GS_IR_NONE;
    if (r.scale != GS_IR_NONE && !c->scales)
        return false;
    c->sum.operand[i] = r.operand;
    c->sum.scale[i] = r.scale;
    c->when.level[i] = 1 + GS_MAX(c->when.level[r.operand], r.scale != GS_IR_NONE ? c->when.level[r.scale] : 0);
    return true;
}

/* A value of edges has the level of the vertex values it is made of. */
static void find_level(gs_cut *c, uint32_t i)
{
    const gs_node *n = at(c, i);
    const bool out =
        n->op == GS_OP_SUM_OUT || n->op == GS_OP_PICK_OUT || n->op == GS_OP_SPLIT_OUT || n->op == GS_OP_TYPE_OUTER ||
        n->op == GS_OP_DENSE_OUTER;

    c->when.level[i] = gs_op_classof(n->op) == GS_CLASS_LEAF || (n->type & GS_TYPE_S) != 0 ? 0 : 1;
    if (c->sum.partner[i] != GS_IR_NONE) {
        c->when.level[i] = c->when.level[c->sum.partner[i]];
        return;
    }
    c->sum.operand[i] = operand_of(c->ir, n);
    const bool instead = read_instead(c, i);
    for (uint32_t k = 0; k < gs_node_inputs(n) && !instead; k++)
        c->when.level[i] =
            GS_MAX(c->when.level[i], c->when.level[n->in[k]] + (gs_compile__is_sum(n) || is_late(n, at(c, n->in[k]))));
    if (!gs_compile__is_sum(n))
        return;
    const bool alone = is_sequence(n) || (c->no_fuse && c->sum.operand[i] == GS_IR_NONE);
    c->when.level[i] = place_sum(c, c->when.level[i], out, alone);
    c->keep.must_store[i] |= n->op == GS_OP_LSTM_BACK;
    c->keep.full[i] |= n->op == GS_OP_LSTM_BACK;
    store_operands(c, i);
}

/* A sum of rows that waits for another one, to be divided by it, is made together with that: it need not be stored.
 * From the last node to the first, so that all who use a value have their stages when it is looked at. */
static void delay_sums(gs_cut *c)
{
    uint32_t *const first_use = c->search.stack; /* stage */

    memset(first_use, 0xff, c->nodes * sizeof(*first_use));
    for (uint32_t o = 0; o < gs_ir_outputs(c->ir); o++)
        first_use[gs_ir_output(c->ir, o)->node] = 0; /* where it is made */
    for (uint32_t i = c->nodes; i-- > 0;) {
        const gs_node *n = at(c, i);
        const uint32_t now = c->when.level[i], then = c->sum.operand[i] != GS_IR_NONE ? first_use[i] : now;
        if (then != UINT32_MAX && then > now && c->sum.count[then] > 0 && c->sum.count[then] < GS_STAGE_SUMS &&
            c->sum.direction[then] == c->sum.direction[now]) {
            c->sum.count[now]--;
            c->sum.count[then]++;
            c->when.level[i] = then;
        }
        for (uint32_t k = 0; k < gs_node_inputs(n); k++) {
            const uint32_t in = n->in[k];
            const uint32_t stage = c->when.level[i] - (gs_compile__is_sum(n) || is_late(n, at(c, in)) ? 1 : 0);
            first_use[in] = GS_MIN(first_use[in], stage);
        }
    }
}

void gs_compile__sort_by_stage(const gs_cut *c, const uint32_t *stage, uint32_t items, uint32_t *list,
                               uint32_t *start)
{
    memset(start, 0, ((size_t)c->stages + 2) * sizeof(*start));
    for (uint32_t i = 0; i < items; i++)
        start[stage[i] + 1]++;
    for (uint32_t t = 0; t <= c->stages; t++)
        start[t + 1] += start[t];
    for (uint32_t i = 0; i < items; i++)
        list[start[stage[i]]++] = i;
    memmove(start + 1, start, ((size_t)c->stages + 1) * sizeof(*start));
    start[0] = 0;
}

/* In the order of the nodes, but for an LSE_IN, which takes the level of its ATTEND and so
 * comes after that one. */
void gs_compile__find_levels(gs_cut *c)
{
    uint32_t *const todo = c->search.stack;
    bool *const done = c->search.candidate;

    memset(done, 0, c->nodes * sizeof(*done));
    c->first_gradient = c->nodes;
    for (uint32_t i = c->nodes; i-- > 0;)
        c->first_gradient = gs_op_is_loss_grad(at(c, i)->op) ? i : c->first_gradient;
    for (uint32_t i = 0; i < c->nodes; i++) {
        c->sum.operand[i] = c->sum.scale[i] = c->sum.partner[i] = GS_IR_NONE;
        if (at(c, i)->op == GS_OP_ATTEND)
            c->sum.attend[c->sum.attends++] = i;
        else if (at(c, i)->op == GS_OP_LSE_IN)
            c->sum.lse[c->sum.lses++] = i;
    }
    for (uint32_t k = 0; k < c->sum.lses; k++)
        c->sum.partner[c->sum.lse[k]] =
            partner_of(c->ir, c->sum.lse[k], c->sum.attend, c->sum.attends, &c->search.marks);
    for (uint32_t i = 0; i < c->nodes; i++) {
        uint32_t top = 0;
        todo[top++] = i;
        while (top > 0) {
            const uint32_t v = todo[top - 1], before = top;
            const gs_node *n = at(c, v);
            for (uint32_t k = 0; !done[v] && k < gs_node_inputs(n); k++)
                if (!done[n->in[k]])
                    todo[top++] = n->in[k];
            if (!done[v] && c->sum.partner[v] != GS_IR_NONE && !done[c->sum.partner[v]])
                todo[top++] = c->sum.partner[v];
            if (top > before)
                continue;
            if (!done[v])
                find_level(c, v);
            done[v] = true;
            c->stages = GS_MAX(c->stages, c->when.level[v]);
            top--;
        }
    }
    delay_sums(c);
    gs_compile__sort_by_stage(c, c->when.level, c->nodes, c->when.by_level, c->when.level_start);
    for (uint32_t o = 0; o < gs_ir_outputs(c->ir); o++)
        c->when.place[o] = c->when.level[gs_ir_output(c->ir, o)->node];
}
