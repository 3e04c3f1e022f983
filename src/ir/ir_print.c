/* ir_print.c - the graph as text, one line a node, and for Graphviz. */
#include "ir/ir_internal.h"

static const char *type_name(gs_graph_type t)
{
    static const char *const names[] = {"P", "D", "S", "E"};
    return names[t];
}

static const char *output_name(gs_output_kind kind)
{
    return kind == GS_OUTPUT_LOSS ? "loss" : kind == GS_OUTPUT_STORE ? "stored" : "logits";
}

/* What an output is for a parameter. */
static const char *param_role(gs_output_kind kind)
{
    return kind == GS_OUTPUT_FOLLOW ? "running mean in" : "gradient of";
}

static void print_node(const gs_ir *ir, uint32_t i, FILE *out)
{
    const gs_node *n = &ir->node[i];
    fprintf(out, "  %%%u = %s", i, gs_op_name(n->op));
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        fprintf(out, "%s%%%u", k == 0 ? " " : ", ", n->in[k]);
    if (n->op == GS_OP_CONST)
        fprintf(out, " %g", (double)n->alpha);
    if (gs_op_is(n->op, GS_FACT_ALPHA))
        fprintf(out, " alpha %g", (double)n->alpha);
    if (gs_op_is_random(n->op))
        fprintf(out, " p %g site %u", (double)n->alpha, n->site);
    if (n->op == GS_OP_PART)
        fprintf(out, " from %u", n->site);
    if (n->self)
        fprintf(out, " self");
    fprintf(out, " : %s", type_name(n->type));
    if (n->op == GS_OP_PARAM && n->dims == 2)
        fprintf(out, "[%u, %u]", n->rows, n->width);
    else
        fprintf(out, "[%s%u]", gs_node_table(n) != NULL ? "vertices, " : "", n->width);
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
        if (gs_output_has_param(o))
            fprintf(out, "  %s %s: %%%u\n", param_role(o->kind), ir->node[o->param].name, o->node);
        else
            fprintf(out, "  %s: %%%u\n", output_name(o->kind), o->node);
    }
}

/* A name may hold what a quoted string of dot must not. */
static void print_quoted(const char *text, FILE *out)
{
    for (; *text != 0; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static const char *fill_of(gs_graph_type t)
{
    static const char *const colours[] = {"gray92", "lightblue", "lightyellow", "mistyrose"}; /* P D S E */
    return colours[t];
}

static void print_dot_node(const gs_ir *ir, uint32_t i, FILE *out)
{
    const gs_node *n = &ir->node[i];
    fprintf(out, "  n%u [label=\"%s", i, gs_op_name(n->op));
    if (n->op == GS_OP_CONST)
        fprintf(out, " %g", (double)n->alpha);
    fprintf(out, "%s : %s[%u]", n->self ? " self" : "", type_name(n->type), n->width);
    if (n->name[0] != 0) {
        fputs("\\n", out);
        print_quoted(n->name, out);
    }
    fprintf(out, "\", fillcolor=%s, shape=%s];\n", fill_of(n->type),
            gs_op_classof(n->op) == GS_CLASS_EDGE && n->op != GS_OP_SRC ? "box3d" : "box");
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        fprintf(out, "  n%u -> n%u;\n", n->in[k], i);
}

void gs_ir_print_dot(const gs_ir *ir, const char *title, FILE *out)
{
    fputs("digraph \"", out);
    print_quoted(title, out);
    fputs("\" {\n  node [style=filled];\n", out);
    for (uint32_t i = 0; i < ir->nodes; i++)
        print_dot_node(ir, i, out);
    for (uint32_t i = 0; i < ir->outputs; i++) {
        const gs_output *o = &ir->output[i];
        if (gs_output_has_param(o)) {
            fprintf(out, "  o%u [label=\"%s ", i, param_role(o->kind));
            print_quoted(ir->node[o->param].name, out);
        } else {
            fprintf(out, "  o%u [label=\"%s", i, output_name(o->kind));
        }
        fprintf(out, "\", shape=oval];\n  n%u -> o%u;\n", o->node, i);
    }
    fputs("}\n", out);
}
