#include "cli.h"

#define FIELD(name) offsetof(gs_partition_options, name), #name

static cli_option opts[] = {
    {"--format", CLI_CHOICE, FIELD(format), "NAME" /* cli_partition_prepare() */, "of INPUT", "found by looking", 0, 0},
    {"--parts", CLI_AUTO, FIELD(parts), "P", "intervals of vertices, a whole number or auto", "auto", 1, 16384},
    {"--method", CLI_CHOICE, FIELD(method), "metis|lp|fennel|random|natural", "how the vertices are ordered",
     "metis where it fits --memory, else fennel", 0, 0},
    {"--memory", CLI_SIZE, FIELD(memory), "SIZE", "most memory that is resident", "half of what is free", 0, 0},
    {"--feature-type", CLI_CHOICE, FIELD(feature_type), "f32|bf16|f16", "of features at rest", NULL, 0, 0},
    {"--random-features", CLI_COUNT, FIELD(random_features), "F", "normal columns for a graph that has none", "none", 1,
     1u << 20},
    {"--split", CLI_TEXT, FIELD(split), "A,B,C", "shares for training, validation and test, drawn from --seed",
     "as INPUT says", 0, 0},
    {"--task", CLI_CHOICE, FIELD(task), "classify|multilabel|regress", "that the labels are of",
     "whole numbers: classify; a 0/1 matrix: multilabel; else regress", 0, 0},
    {"--undirected", CLI_FLAG, FIELD(undirected), NULL, "add the reverse of each edge that lacks it", NULL, 0, 0},
    {"--ids", CLI_CHOICE, FIELD(ids), "keep|compact", "of edge lists: numbers from 0 as they are, or any ids, numbered",
     "found by looking", 0, 0},
    {"--seed", CLI_LONG, FIELD(seed), "S", "of everything random", NULL, 0, 0},
    {"--force", CLI_FLAG, FIELD(force), NULL, "replace the store that is there", NULL, 0, 0},
    {0},
};

void cli_partition_prepare(void) { opts[0].value = gs_input_formats(); }

static void defaults(void *options) { gs_partition_options_init(options); }

static int run(const cli_command *self, const void *options, const char *const *place)
{
    gs_partition_options o = *(const gs_partition_options *)options;
    gs_partition_report r;
    int status;

    cli_log_begin();
    o.progress = cli_progress;
    o.warn = cli_warn;
    o.stop = cli_stop();
    status = cli_result(self, gs_partition(place[0], place[1], &o, &r));
    cli_progress_end();
    if (status != CLI_DONE)
        return status;
    printf("%s: %s vertices, %s edges, %s\n", place[1], cli_count(r.vertices), cli_count(r.edges),
           cli_size(r.store_bytes));
    printf("%u parts by %s%s%s; %.1f %% of the edges between parts\n", r.parts, r.method, *r.note == '\0' ? "" : ": ",
           r.note, 100 * r.cut_fraction);
    printf("%.2f s (reading %.2f, ordering %.2f, edges %.2f, vertex arrays %.2f), at most %s resident\n", r.seconds,
           r.read_seconds, r.order_seconds, r.edge_seconds, r.array_seconds, cli_size(r.peak_bytes));
    return CLI_DONE;
}

const cli_command cmd_partition = {
    .name = "partition",
    .place = {"INPUT", "STORE"},
    .summary = "Makes a store of a graph: chunks, vertex order, checksums.\n"
               "INPUT is a folder (of .npy files, OGB, IGB, GraphBolt), a .npz file or an edge list (SNAP, CSV,\n"
               "MatrixMarket, METIS), STORE a new folder.",
    .group = (const cli_group[]){{"Options", opts}, {"A file of options", cli_config_options}, {0}},
    .defaults = defaults,
    .options_bytes = sizeof(gs_partition_options),
    .run = run,
};
