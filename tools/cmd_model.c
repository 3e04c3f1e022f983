#include <stdio.h>

#include "train_options.h"

typedef struct model_options {
    train_command command; /* first: the model's options are its fields */
    gs_model_graph graph;
    bool dot;
} model_options;

#define FIELD(name) offsetof(model_options, graph.name), #name

static const cli_option graph_options[] = {
    {"--features", CLI_COUNT, FIELD(features), "N", "width of the features", NULL, 1, 1u << 20},
    {"--classes", CLI_COUNT, FIELD(classes), "N", "classes of the labels", NULL, 1, 1u << 20},
    {"--edge-types", CLI_COUNT, FIELD(edge_types), "N", "types of edges; 0 for none", NULL, 0, 65536},
    {"--edge-weights", CLI_FLAG, FIELD(edge_weights), NULL, "edges have weights", NULL, 0, 0},
    {"--self-loops", CLI_FLAG, FIELD(self_loops), NULL, "the graph has self loops", NULL, 0, 0},
    {"--edges-per-vertex", CLI_REAL, FIELD(edges_per_vertex), "X", "for choices by volume", NULL, 0, 0},
    {0},
};

static const cli_option output_options[] = {
    {"--dot", CLI_FLAG, offsetof(model_options, dot), NULL, NULL, "graphs alone, for Graphviz's dot", NULL, 0, 0},
    {0},
};

static void defaults(void *options)
{
    model_options *const o = options;
    *o = (model_options){.graph = {.features = 128, .classes = 16, .edges_per_vertex = 10}};
    train_command_defaults(&o->command);
}

static int run(const cli_command *self, const void *options, const char *const *place)
{
    const model_options *const o = options;
    gs_train_options train = o->command.train;

    train.model = place[0];
    return cli_result(self, gs_print_model(stdout, &train, &o->graph, o->dot));
}

const cli_command cmd_model = {
    .name = "model",
    .place = {"MODEL"},
    .summary = "Says what the compiler makes of a model.\n"
               "Its graph after each pass, forward and backward, and the stages of an epoch.\n"
               "MODEL is a built-in one's name or a text's file.",
    .group = (const cli_group[]){{"Output", output_options},
                                 {"Compiler", train_compiler_options},
                                 {"Model", train_layer_options},
                                 {"Graph", graph_options},
                                 {0}},
    .defaults = defaults,
    .options_bytes = sizeof(model_options),
    .run = run,
};
