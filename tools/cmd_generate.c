#include <string.h>

#include "cli.h"

#define FIELD(name) offsetof(gs_generate_options, name), #name

static const cli_option opts[] = {
    {"--vertices", CLI_LONG, FIELD(vertices), "N", "vertices", NULL, 1, 0},
    {"--edges", CLI_LONG, FIELD(edges), "N", "directed edges; sbm gives both directions of each", NULL, 1, 0},
    {"--features", CLI_COUNT, FIELD(features), "F", "columns", NULL, 0, 1u << 20},
    {"--classes", CLI_COUNT, FIELD(classes), "C", "classes", NULL, 1, 1u << 20},
    {"--seed", CLI_LONG, FIELD(seed), "S", "of everything random", NULL, 0, 0},
    {"--force", CLI_FLAG, FIELD(force), NULL, "replace what is in OUT", NULL, 0, 0},
    {0},
};

static void defaults(void *options) { gs_generate_options_init(options); }

static int run(const cli_command *self, const void *options, const char *const *place)
{
    gs_generate_options o = *(const gs_generate_options *)options;
    int status;

    if (strcmp(place[0], "rmat") != 0 && strcmp(place[0], "sbm") != 0)
        return cli_fail(self, CLI_USAGE, "unknown kind %s; use rmat or sbm", place[0]);
    cli_log_begin();
    o.progress = cli_progress;
    o.stop = cli_stop();
    status = cli_result(self, gs_generate(place[0], place[1], &o));
    cli_progress_end();
    if (status == CLI_DONE)
        printf("%s: %s vertices, %s edges asked for, %u features, %u classes\n", place[1], cli_count(o.vertices),
               cli_count(o.edges), o.features, o.classes);
    return status;
}

const cli_command cmd_generate = {
    .name = "generate",
    .place = {"KIND", "OUT"},
    .summary = "Makes a graph as a folder of .npy files.\n"
               "KIND is rmat (Graph500's; labels and features random) or sbm (planted classes;\n"
               "features carry a noisy signal of the class).",
    .group = (const cli_group[]){{"Options", opts}, {0}},
    .defaults = defaults,
    .options_bytes = sizeof(gs_generate_options),
    .run = run,
};
