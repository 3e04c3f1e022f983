/* ir_rewrite.c - the rewrite that passes are made of. */
#include "base/alloc.h"
#include "ir/ir_internal.h"

/* live[i]: some output reaches node i. Inputs have lower numbers, so one sweep down does it. */
static void mark_live(const gs_ir *ir, bool *live)
{
    for (uint32_t i = 0; i < ir->outputs; i++) {
        live[ir->output[i].node] = true;
        if (gs_output_has_param(&ir->output[i]))
            live[ir->output[i].param] = true;
    }
    for (uint32_t i = ir->nodes; i-- > 0;) {
        const gs_node *n = &ir->node[i];
        if (n->op == GS_OP_PARAM)
            live[i] = true;
        for (uint32_t k = 0; live[i] && k < gs_node_inputs(n); k++)
            live[n->in[k]] = true;
    }
}

static void rewrite_nodes(gs_ir *to, const gs_ir *from, const bool *live, uint32_t *map, gs_ir_rewriter fn,
                          void *context)
{
    for (uint32_t i = 0; i < from->nodes && to->status == GS_OK; i++) {
        const gs_node *n = &from->node[i];
        uint32_t in[GS_IR_INPUTS] = {GS_IR_NONE, GS_IR_NONE, GS_IR_NONE};
        map[i] = GS_IR_NONE;
        if (!live[i])
            continue;
        for (uint32_t k = 0; k < gs_node_inputs(n); k++)
            in[k] = map[n->in[k]];
        gs_ir_at(to, n->line, n->column);
        map[i] = fn != NULL ? fn(to, from, i, in, context) : gs_ir_like(to, n, in);
        if (map[i] != GS_IR_NONE && n->name[0] != 0)
            gs_ir_label(to, map[i], n->name);
    }
    for (uint32_t i = 0; i < from->outputs && to->status == GS_OK; i++) {
        const gs_output *o = &from->output[i];
        gs_ir_add_output(to, o->kind, map[o->node], gs_output_has_param(o) ? map[o->param] : GS_IR_NONE);
    }
}

gs_status gs_ir_rewrite(gs_ir *ir, gs_ir_rewriter fn, void *context)
{
    gs_ir *to = gs_ir_new(ir->source, true);
    bool *live = gs_calloc((size_t)ir->nodes + 1, sizeof(*live));
    uint32_t *map = gs_malloc_array((size_t)ir->nodes + 1, sizeof(*map));
    gs_status st = ir->status;

    if (st != GS_OK)
        goto done;
    if (to == NULL || live == NULL || map == NULL) {
        st = gs_fail(GS_ENOMEM, "%s: no memory for the model's graph", ir->source);
        goto done;
    }
    gs_ir_set_text(to, ir->text);
    mark_live(ir, live);
    rewrite_nodes(to, ir, live, map, fn, context);
    st = to->status;
    if (st != GS_OK)
        goto done;
    to->differentiated = ir->differentiated;
    gs_ir_swap(ir, to);
done:
    gs_ir_free(to);
    gs_free(live);
    gs_free(map);
    return st;
}
