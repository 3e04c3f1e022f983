/* ir_print.c - the graph as text, one line a node. */
#include "ir/ir_internal.h"

static const char *type_name(gs_graph_type t)
{
    static const char *const names[] = {"P", "D", "S", "E"};
    return names[t];
}

static void print_node(const gs_ir *ir, uint32_t i, FILE *out)
{
    const gs_node *n = &ir->node[i];
    fprintf(out, "  %%%u = %s", i, gs_op_name(n->op));
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        fprintf(out, "%s%%%u", k == 0 ? " " : ", ", n->in[k]);
    if (n->op == GS_OP_CONST)
        fprintf(out, " %g", (double)n->alpha);
    if (n->op == GS_OP_LEAKY_RELU || n->op == GS_OP_ELU)
        fprintf(out, " alpha %g", (double)n->alpha);
    if (n->op == GS_OP_DROPOUT)
        fprintf(out, " p %g site %u", (double)n->alpha, n->site);
    if (n->self)
        fprintf(out, " self");
    fprintf(out, " : %s", type_name(n->type));
    if (n->op == GS_OP_PARAM && n->dims == 2)
        fprintf(out, "[%u, %u]", n->rows, n->width);
    else
        fprintf(out, "[%u]", n->width);
    if (n->dtype != GS_F32)
        fprintf(out, " %s", gs_dtype_name(n->dtype));
    if (n->name[0] != 0)
        fprintf(out, "  %s", n->name);
    if (n->line != 0)
        fprintf(out, "  # %u:%u", n->line, n->column);
    fputc('\n', out);
}

void gs_ir_print(const gs_ir *ir, FILE *out)
{
    fprintf(out, "ir %s, %u nodes\n", ir->source, ir->nodes);
    for (uint32_t i = 0; i < ir->nodes; i++)
        print_node(ir, i, out);
    for (uint32_t i = 0; i < ir->outputs; i++) {
        const gs_output *o = &ir->output[i];
        if (o->kind == GS_OUTPUT_GRAD)
            fprintf(out, "  gradient of %s: %%%u\n", ir->node[o->param].name, o->node);
        else
            fprintf(out, "  %s: %%%u\n", o->kind == GS_OUTPUT_LOSS ? "loss" : "logits", o->node);
    }
}
