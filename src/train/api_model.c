/* api_model.c - gs_print_model(): a model through the compiler, for people. */
#include <stdio.h>

#include "base/option_table.h"
#include "base/status.h"
#include "compile/compile.h"
#include "gnnstream.h"
#include "session/model_of.h"
#include "train/options.h"

typedef struct gs_printer {
    FILE *out;
    bool dot;
} gs_printer;

static void show(void *context, const char *after, const gs_ir *ir)
{
    const gs_printer *p = context;
    if (p->dot) {
        gs_ir_print_dot(ir, after, p->out);
        return;
    }
    fprintf(p->out, "== %s\n", after);
    gs_ir_print(ir, p->out);
    fputc('\n', p->out);
}

static gs_train_task task_of(const gs_train_options *o)
{
    return o->task == NULL ? GS_TRAIN_TASK_CLASSIFY : (gs_train_task)gs_choice(o, task);
}

/* Takes `ir`. */
static gs_status compile(gs_printer *p, gs_ir *ir, const gs_train_options *o, const gs_model_graph *g)
{
    const gs_train_task task = task_of(o);
    const gs_dtype labels = gs_train_task_labels(task);
    const uint32_t width = task == GS_TRAIN_TASK_CLASSIFY ? 1 : g->classes;
    const gs_leaf leaves[] = {
        {"features", 0, GS_F32, g->features}, {"labels", 1, labels, width}, {"split", 2, GS_U8, 1},
        {"in_degree", 3, GS_F32, 1},          {"loops", 4, GS_F32, 1},  {"input_id", 5, GS_U32, 1},
    };
    const gs_compile_options options = {
        .pass = "train", .leaf = leaves, .leaves = sizeof(leaves) / sizeof(leaves[0]), .metrics = true, .task = task,
        .no_move = o->no_move, .no_fuse = o->no_fuse, .hoist = !o->no_hoist,
        .edges_per_vertex = g->edges_per_vertex, .show = show,
        .typed = !o->no_batch && g->edge_types > g->edges_per_vertex, /* where a run would try them */
        .context = p,
    };
    gs_program *program = gs_program_new();
    gs_status st;

    if (program == NULL) {
        gs_ir_free(ir);
        return gs_fail(GS_ENOMEM, "out of memory for the compiled model");
    }
    st = gs_compile(program, ir, &options);
    if (st == GS_OK && !p->dot) {
        fputs("== the compiled epoch\n", p->out);
        gs_program_print(program, p->out);
    }
    gs_program_free(program);
    return st;
}

static gs_status print_model(FILE *file, const gs_train_options *options, const gs_model_graph *graph, bool dot)
{
    gs_printer p = {.out = file, .dot = dot};
    const gs_model_config config = {
        .layers = options->layers,
        .in_width = graph->features,
        .hidden = options->hidden,
        .classes = graph->classes,
        .heads = options->heads,
        .bases = options->bases,
        .edge_types = graph->edge_types,
        .edge_weights = graph->edge_weights,
        .act = options->activation,
        .dropout = (float)options->dropout,
        .input_dropout = (float)options->input_dropout,
        .training = true,
        .self_loops = graph->self_loops,
    };
    gs_model *model = NULL;
    gs_ir *ir = NULL;
    gs_status st;

    if (!(graph->edges_per_vertex >= 0 && graph->edges_per_vertex <= 1e9))
        return gs_fail(GS_EINVAL, ".edges_per_vertex %g: must be from 0 to 1e9", graph->edges_per_vertex);
    if ((st = gs_train_options_check(options)) != GS_OK || (st = gs_session_open_model(&model, options)) != GS_OK)
        return st;
    st = gs_model_build(&ir, model, &config);
    if (st == GS_OK && !dot)
        fprintf(file, "== the text\n%s\n", gs_model_text(model));
    gs_model_close(model);
    if (st != GS_OK)
        return st;
    show(&p, "as the text says", ir);
    const gs_train_task task = task_of(options);
    if ((st = gs_ir_add_loss(ir, task, gs_train_task_labels(task))) != GS_OK ||
        (st = gs_ir_differentiate(ir)) != GS_OK) {
        gs_ir_free(ir);
        return st;
    }
    return compile(&p, ir, options, graph);
}

gs_status gs_print_model(void *file, const gs_train_options *options, const gs_model_graph *graph, bool dot)
{
    gs_train_options own;
    gs_status st;

    if ((st = gs_check_argument(file, "file")) != GS_OK || (st = gs_train_options_read(&own, options)) != GS_OK ||
        (st = gs_check_argument(graph, "graph")) != GS_OK)
        return st;
    return print_model(file, &own, graph, dot);
}
