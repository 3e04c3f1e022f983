/* ir_tape.c - what has flowed to each node of a graph that is being differentiated. */
#include "ir/ir_tape.h"

#include <string.h>

#include "base/alloc.h"

/* -- open and free ------------------------------------------------------------ */

static void find_needs(const gs_ir *ir, bool *needs, const char *input)
{
    for (uint32_t i = 0; i < ir->nodes; i++) {
        const gs_node *n = &ir->node[i];
        needs[i] = (n->op == GS_OP_PARAM && !n->fixed) || gs_node_table(n) != NULL ||
                   (n->op == GS_OP_INPUT && input != NULL && strcmp(n->name, input) == 0);
        for (uint32_t k = 0; k < gs_node_inputs(n) && !gs_op_is(n->op, GS_FACT_FLAT); k++)
            needs[i] |= needs[n->in[k]];
    }
}

gs_status gs_tape__open(gs_tape *t, gs_ir *ir, const char *input)
{
    const uint32_t forward = ir->nodes;

    *t = (gs_tape){.ir = ir};
    t->grad = gs_malloc_array(forward, sizeof(*t->grad));
    t->edge = gs_malloc_array(forward, sizeof(*t->edge));
    t->needs = gs_calloc(forward, sizeof(*t->needs));
    if (t->grad == NULL || t->edge == NULL || t->needs == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the model's graph", ir->source);
    memset(t->grad, 0xff, forward * sizeof(*t->grad)); /* GS_IR_NONE */
    memset(t->edge, 0xff, forward * sizeof(*t->edge));
    find_needs(ir, t->needs, input);
    return GS_OK;
}

void gs_tape__free(gs_tape *t)
{
    gs_free(t->grad);
    gs_free(t->edge);
    gs_free(t->needs);
}

/* -- flows ---------------------------------------------------------------------- */

static bool is_zero(const gs_ir *ir, uint32_t i)
{
    return ir->node[i].op == GS_OP_CONST && ir->node[i].alpha == 0.0f;
}

static void accumulate(const gs_tape *t, uint32_t *slot, uint32_t c)
{
    *slot = *slot == GS_IR_NONE ? c : gs_ir_binary(t->ir, GS_OP_ADD, *slot, c);
}

static void param_gradient(const gs_tape *t, uint32_t param, uint32_t c)
{
    if (!t->ir->node[param].fixed)
        gs_ir_add_output(t->ir, GS_OUTPUT_GRAD, gs_ir__make(t->ir, gs_ir__blank(GS_OP_COLSUM, c, GS_IR_NONE)), param);
}

/* A gradient narrower than its value, the same in every column, gets its width. */
static uint32_t fit(const gs_tape *t, uint32_t to, uint32_t c)
{
    const uint32_t want = t->ir->node[to].width, has = t->ir->node[c].width;
    if (want == 1 && has > 1)
        return gs_ir_unary(t->ir, GS_OP_ROWSUM, c, 0.0f);
    return want > has ? gs_ir_resize(t->ir, GS_OP_EXPAND, c, want) : c;
}

void gs_tape__flow(gs_tape *t, uint32_t to, uint32_t c)
{
    if (c == GS_IR_NONE || !t->needs[to] || is_zero(t->ir, c))
        return;
    c = fit(t, to, c);
    if (t->ir->node[to].op == GS_OP_PARAM)
        param_gradient(t, to, c);
    else
        accumulate(t, &t->grad[to], c);
}

void gs_tape__flow_on_edges(gs_tape *t, uint32_t to, uint32_t c)
{
    if (c == GS_IR_NONE || !t->needs[to] || is_zero(t->ir, c))
        return;
    c = fit(t, to, c);
    if (t->ir->node[to].op == GS_OP_PARAM)
        param_gradient(t, to, gs_ir__sum(t->ir, GS_OP_SUM_IN, c, false));
    else if (t->ir->node[to].type == GS_TYPE_D)
        accumulate(t, &t->edge[to], c);
    else
        accumulate(t, &t->grad[to], c);
}

void gs_tape__pass(gs_tape *t, uint32_t from, uint32_t to, uint32_t c)
{
    if ((t->ir->node[from].type & GS_TYPE_S) != 0)
        gs_tape__flow_on_edges(t, to, c);
    else
        gs_tape__flow(t, to, c);
}

/* -- what has come of them ------------------------------------------------------ */

uint32_t gs_tape__total(const gs_tape *t, uint32_t i)
{
    uint32_t g = t->grad[i];

    if (t->edge[i] != GS_IR_NONE)
        accumulate(t, &g, gs_ir__sum(t->ir, GS_OP_SUM_IN, t->edge[i], false));
    return g;
}

uint32_t gs_tape__rows(const gs_tape *t, uint32_t g)
{
    return t->ir->node[g].type == GS_TYPE_P ? gs_ir_binary(t->ir, GS_OP_ADD, g, gs_ir__zeros(t->ir)) : g;
}

uint32_t gs_tape__gradient(const gs_tape *t, uint32_t i)
{
    const uint32_t g = gs_tape__total(t, i);

    if (g == GS_IR_NONE || t->ir->status != GS_OK)
        return GS_IR_NONE;
    return fit(t, i, gs_tape__rows(t, g));
}
