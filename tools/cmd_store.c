/* cmd_store.c - makes graphs and stores, and says what is in them. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ---- generate ------------------------------------------------------------ */

#define FIELD(name) offsetof(gs_generate_options, name), #name

static const cli_option generate_opts[] = {
    {"--vertices", CLI_LONG, FIELD(vertices), "N", "vertices", NULL, 1, 0},
    {"--edges", CLI_LONG, FIELD(edges), "N", "directed edges; sbm gives both directions of each", NULL, 1, 0},
    {"--features", CLI_COUNT, FIELD(features), "F", "columns", NULL, 0, 1u << 20},
    {"--classes", CLI_COUNT, FIELD(classes), "C", "classes", NULL, 1, 1u << 20},
    {"--seed", CLI_LONG, FIELD(seed), "S", "of everything random", NULL, 0, 0},
    {"--force", CLI_FLAG, FIELD(force), NULL, "replace what is in OUT", NULL, 0, 0},
    {0},
};

static void generate_defaults(void *options) { gs_generate_options_init(options); }

static int generate_run(const cli_command *self, const void *options, const char *const *place)
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
    .group = (const cli_group[]){{"Options", generate_opts}, {0}},
    .defaults = generate_defaults,
    .options_bytes = sizeof(gs_generate_options),
    .run = generate_run,
};

/* ---- partition ----------------------------------------------------------- */

#undef FIELD
#define FIELD(name) offsetof(gs_partition_options, name), #name

static cli_option partition_opts[] = {
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
    {"--shards", CLI_COUNT, FIELD(shards), "N", "STORE/0 to STORE/N-1 instead, by mpirun -n N, each by its rank",
     "none", 2, 16},
    {"--ranks", CLI_COUNT, FIELD(ranks), "N", "that will train: metis and lp give each as many rows and edges",
     "--shards, or 1", 1, 16},
    {0},
};

void cli_partition_prepare(void) { partition_opts[0].value = gs_input_formats(); }

static void partition_defaults(void *options) { gs_partition_options_init(options); }

static int partition_run(const cli_command *self, const void *options, const char *const *place)
{
    gs_partition_options o = *(const gs_partition_options *)options;
    gs_partition_report r;
    uint32_t rank = 0, ranks = 1;
    int status;

    if ((status = cli_result(self, gs_join_ranks(&rank, &ranks))) != CLI_DONE)
        return status;
    if (ranks > 1 && o.shards == 0)
        return cli_fail(self, CLI_USAGE, "without --shards is done by one process; start it without mpirun");
    cli_log_begin();
    o.progress = rank == 0 ? cli_progress : NULL; /* the first speaks for all */
    o.warn = rank == 0 ? cli_warn : NULL;
    o.stop = cli_stop();
    status = cli_result(self, gs_partition(place[0], place[1], &o, &r));
    cli_progress_end();
    if (status != CLI_DONE || rank > 0)
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
    .group = (const cli_group[]){{"Options", partition_opts}, {"A file of options", cli_config_options}, {0}},
    .defaults = partition_defaults,
    .options_bytes = sizeof(gs_partition_options),
    .run = partition_run,
};

/* ---- shard --------------------------------------------------------------- */

static const cli_option shard_opts[] = {
    {"--force", CLI_FLAG, offsetof(gs_shard_options, force), "force", NULL, "replace what is in OUT", NULL, 0, 0},
    {0},
};

static void shard_defaults(void *options) { gs_shard_options_init(options); }

static int shard_run(const cli_command *self, const void *options, const char *const *place)
{
    gs_shard_options o = *(const gs_shard_options *)options;
    char *end;
    const unsigned long ranks = strtoul(place[1], &end, 10);
    gs_store_summary s;
    int status;

    if (place[1][0] < '0' || place[1][0] > '9' || *end != '\0')
        return cli_fail(self, CLI_USAGE, "N is %s, not a number of ranks", place[1]);
    cli_log_begin();
    o.progress = cli_progress;
    o.stop = cli_stop();
    status = cli_result(self, gs_shard(place[0], ranks > UINT32_MAX ? UINT32_MAX : (uint32_t)ranks, place[2], &o));
    cli_progress_end();
    for (unsigned long k = 0; k < ranks && status == CLI_DONE; k++) {
        char folder[4096];
        snprintf(folder, sizeof(folder), "%s/%lu", place[2], k);
        if ((status = cli_result(self, gs_inspect(&s, folder))) == CLI_DONE)
            printf("%s: %s\n", folder, cli_size(s.total_bytes));
    }
    return status;
}

const cli_command cmd_shard = {
    .name = "shard",
    .place = {"STORE", "N", "OUT"},
    .summary = "Cuts a store into N shards, OUT/0 to OUT/N-1: each has the edges and rows that one rank reads.\n"
               "Train on them by mpirun -n N gnnstream train OUT, or copy each to its machine.",
    .group = (const cli_group[]){{"Options", shard_opts}, {0}},
    .defaults = shard_defaults,
    .options_bytes = sizeof(gs_shard_options),
    .run = shard_run,
};

/* ---- info ---------------------------------------------------------------- */

typedef struct info_options {
    bool json;
} info_options;

static const cli_option info_opts[] = {
    {"--json", CLI_FLAG, offsetof(info_options, json), NULL, NULL, "print JSON", NULL, 0, 0},
    {0},
};

static void info_defaults(void *options) { memset(options, 0, sizeof(info_options)); }

static void print_types(const gs_type_table *t)
{
    for (uint32_t k = 0; k < t->types; k++)
        printf("%s %s: %s vertices, features %u%s\n", k == 0 ? "types     " : "          ", t->type[k].name,
               cli_count(t->type[k].vertices), t->type[k].features, k == t->labelled ? ", labelled" : "");
    for (uint32_t k = 0; k < t->relations; k++)
        printf("%s %u: %s %s %s\n", k == 0 ? "relations " : "          ", k,
               t->type[t->relation[k].source].name, t->relation[k].name, t->type[t->relation[k].destination].name);
}

static void print_types_json(const gs_type_table *t)
{
    printf(", \"vertex_types\": [");
    for (uint32_t k = 0; k < t->types; k++)
        printf("%s{\"name\": %s, \"vertices\": %lu, \"features\": %u}", k > 0 ? ", " : "",
               cli_json_text(t->type[k].name), t->type[k].vertices, t->type[k].features);
    printf("], \"relations\": [");
    for (uint32_t k = 0; k < t->relations; k++)
        printf("%s[\"%s\", \"%s\", \"%s\"]", k > 0 ? ", " : "", t->type[t->relation[k].source].name,
               t->relation[k].name, t->type[t->relation[k].destination].name);
    if (t->labelled < t->types)
        printf("], \"labelled_type\": %s", cli_json_text(t->type[t->labelled].name));
    else
        printf("], \"labelled_type\": null");
}

static void print_names(const char *of, const gs_named_feature *named, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        printf("%s %s %u", k == 0 ? of : ",", named[k].name, named[k].columns);
    if (count > 0)
        putchar('\n');
}

static void print_names_json(const char *key, const gs_named_feature *named, uint32_t count)
{
    printf(", \"%s\": {", key);
    for (uint32_t k = 0; k < count; k++)
        printf("%s%s: %u", k > 0 ? ", " : "", cli_json_text(named[k].name), named[k].columns);
    putchar('}');
}

static void print_text(const char *store, const gs_store_summary *s)
{
    printf("store      %s, %s (%s of tables in memory when open), id %016lx\n", store, cli_size(s->total_bytes),
           cli_size(s->table_bytes), s->id);
    if (s->shards != 0 && s->shard == GS_ALL_SHARDS)
        printf("shards     %u of a store, in folders 0, 1, ...; the size is of the first\n", s->shards);
    else if (s->shards != 0)
        printf("shard      %u of %u of a store, of which the lines below are\n", s->shard, s->shards);
    printf("vertices   %s in %u parts of %s, ordered by %s (seed %lu)\n", cli_count(s->vertices), s->parts,
           cli_count(s->interval_rows), s->method, s->seed);
    printf("edges      %s, %s self loops, largest in-degree %s, out-degree %s%s%s\n", cli_count(s->edges),
           cli_count(s->self_loops), cli_count(s->max_in_degree), cli_count(s->max_out_degree),
           s->symmetric ? ", symmetric" : "", s->weights ? ", weighted" : "");
    if (s->name_bytes != 0)
        printf("ids        %s of names or numbers of the input's own; predict --ids writes them\n",
               cli_size(s->name_bytes));
    printf("sources    %.2f a vertex (alpha: distinct sources of each part's in-edges, summed over parts / vertices)\n",
           s->sources_per_vertex);
    if (s->edge_types != 0)
        printf("edge types %u%s\n", s->edge_types,
               s->edge_type_name_bytes > 0 ? ", words in the input: a line each of edge_type_names.bin" : "");
    if (s->edge_features != 0)
        printf("edges have %u features of %s\n", s->edge_features, s->edge_feature_type);
    if (s->features != 0)
        printf("features   %u columns of %s\n", s->features, s->feature_type);
    else
        puts("features   none");
    if (s->classes != 0)
        printf("labels     %u %s; train %s, valid %s, test %s\n", s->classes,
               strcmp(s->task, "classify") == 0     ? "classes"
               : strcmp(s->task, "multilabel") == 0 ? "labels, several a vertex"
                                                    : "numbers to predict",
               cli_count(s->train), cli_count(s->valid), cli_count(s->test));
    else
        puts("labels     none");
    if (s->train_links + s->valid_links + s->test_links != 0)
        printf("links      train %s, valid %s, test %s", cli_count(s->train_links), cli_count(s->valid_links),
               cli_count(s->test_links));
    if (s->link_classes > 0)
        printf("; of %u classes", s->link_classes);
    else if (s->link_task[0] != '\0')
        printf("; of numbers");
    if (s->train_links + s->valid_links + s->test_links != 0)
        putchar('\n');
}

static void print_json(const gs_store_summary *s, const gs_type_table *t, const gs_feature_table *f)
{
    printf("{\"vertices\": %lu, \"edges\": %lu, \"self_loops\": %lu, \"parts\": %u, \"interval_rows\": %u, "
           "\"features\": %u, \"feature_type\": %s, \"classes\": %u", s->vertices, s->edges, s->self_loops, s->parts,
           s->interval_rows, s->features, s->features == 0 ? "null" : cli_json_text(s->feature_type), s->classes);
    printf(", \"train\": %lu, \"valid\": %lu, \"test\": %lu, \"edge_types\": %u, \"symmetric\": %s, \"weights\": %s, "
           "\"max_in_degree\": %lu, \"max_out_degree\": %lu", s->train, s->valid, s->test, s->edge_types,
           s->symmetric ? "true" : "false", s->weights ? "true" : "false", s->max_in_degree, s->max_out_degree);
    printf(", \"method\": %s, \"seed\": %lu, \"total_bytes\": %lu, \"table_bytes\": %lu, \"sources_per_vertex\": %.6f, "
           "\"task\": %s, \"name_bytes\": %lu, \"train_links\": %lu, \"valid_links\": %lu, \"test_links\": %lu, "
           "\"link_task\": %s, \"link_classes\": %u, \"edge_type_name_bytes\": %lu, \"edge_features\": %u, "
           "\"edge_feature_type\": %s, \"id\": \"%016lx\"", cli_json_text(s->method), s->seed, s->total_bytes,
           s->table_bytes, s->sources_per_vertex, s->task[0] == '\0' ? "null" : cli_json_text(s->task), s->name_bytes,
           s->train_links, s->valid_links, s->test_links,
           s->link_task[0] == '\0' ? "null" : cli_json_text(s->link_task), s->link_classes, s->edge_type_name_bytes,
           s->edge_features, s->edge_features == 0 ? "null" : cli_json_text(s->edge_feature_type), s->id);
    if (s->shards > 0)
        printf(", \"shards\": %u", s->shards);
    if (s->shards > 0 && s->shard != GS_ALL_SHARDS)
        printf(", \"shard\": %u", s->shard);
    if (t->types > 0)
        print_types_json(t);
    if (f->vertices + f->edges > 0) {
        print_names_json("named_features", f->vertex, f->vertices);
        print_names_json("named_edge_features", f->edge, f->edges);
    }
    puts("}");
}

static void print_weights(const char *path, const gs_weights_summary *w)
{
    printf("weights    %s\n", path);
    if (w->version[0] == '\0') {
        puts("           another program wrote them: they do not say what model they are of");
        return;
    }
    printf("model      %s, layers %u, hidden %u, heads %u, activation %s\n", w->model, w->layers, w->hidden, w->heads,
           w->activation);
    printf("trained    %u epochs on %s (id %016lx): %u features, %u classes\n", w->epochs, w->store, w->store_id,
           w->features, w->classes);
    printf("written by gnnstream %s\n", w->version);
}

static void print_weights_json(const gs_weights_summary *w)
{
    printf("{\"version\": %s, \"model\": %s, \"layers\": %u, \"hidden\": %u, \"heads\": %u, \"bases\": %u, "
           "\"activation\": %s", cli_json_text(w->version), cli_json_text(w->model), w->layers, w->hidden, w->heads,
           w->bases, cli_json_text(w->activation));
    printf(", \"features\": %u, \"classes\": %u, \"edge_types\": %u, \"epochs\": %u, \"store\": %s, \"store_id\": "
           "\"%016lx\"}\n", w->features, w->classes, w->edge_types, w->epochs, cli_json_text(w->store), w->store_id);
}

/* A store is a folder. A file of weights begins with the length of its header, which is JSON; one that is called so is
 * read as such, whatever is in it. */
static bool is_weights(const char *path)
{
    static const char suffix[] = ".safetensors";
    const size_t length = strlen(path), n = sizeof(suffix) - 1;
    unsigned char head[9] = {0};
    FILE *const f = fopen(path, "rb");
    const size_t got = f != NULL ? fread(head, 1, sizeof(head), f) : 0;

    if (f != NULL)
        fclose(f);
    return (length > n && strcmp(path + length - n, suffix) == 0) ||
           (got == sizeof(head) && head[5] == 0 && head[6] == 0 && head[7] == 0 && head[8] == '{');
}

static int run_weights(const cli_command *self, const info_options *o, const char *path)
{
    gs_weights_summary w;
    const int status = cli_result(self, gs_inspect_weights(&w, path));

    if (status != CLI_DONE)
        return status;
    if (o->json)
        print_weights_json(&w);
    else
        print_weights(path, &w);
    return CLI_DONE;
}

static int info_run(const cli_command *self, const void *options, const char *const *place)
{
    const info_options *const o = options;
    gs_store_summary s;
    gs_type_table types;
    gs_feature_table named;
    int status;

    if (is_weights(place[0]))
        return run_weights(self, o, place[0]);
    if ((status = cli_result(self, gs_inspect(&s, place[0]))) != CLI_DONE ||
        (status = cli_result(self, gs_inspect_types(&types, place[0]))) != CLI_DONE ||
        (status = cli_result(self, gs_inspect_features(&named, place[0]))) != CLI_DONE)
        return status;
    if (o->json) {
        print_json(&s, &types, &named);
    } else {
        print_text(place[0], &s);
        print_names("by name   ", named.vertex, named.vertices);
        print_names("of edges  ", named.edge, named.edges);
        print_types(&types);
    }
    return CLI_DONE;
}

const cli_command cmd_info = {
    .name = "info",
    .place = {"STORE"},
    .summary = "Says what is in a store, or how a file of weights came about.",
    .group = (const cli_group[]){{"Options", info_opts}, {0}},
    .defaults = info_defaults,
    .options_bytes = sizeof(info_options),
    .run = info_run,
};

/* ---- verify -------------------------------------------------------------- */

typedef struct verify_options {
    uint64_t memory;
} verify_options;

static const cli_option verify_opts[] = {
    {"--memory", CLI_SIZE, offsetof(verify_options, memory), NULL, "SIZE", "for its buffers", NULL, 0, 0},
    {0},
};

static void verify_defaults(void *options) { ((verify_options *)options)->memory = 256u << 20; }

static int verify_run(const cli_command *self, const void *options, const char *const *place)
{
    const verify_options *const o = options;
    gs_store_summary s;
    int status;

    if ((status = cli_result(self, gs_inspect(&s, place[0]))) != CLI_DONE ||
        (status = cli_result(self, gs_verify(place[0], o->memory))) != CLI_DONE)
        return status;
    printf("%s: all %s are as they were written\n", place[0], cli_size(s.total_bytes));
    return CLI_DONE;
}

const cli_command cmd_verify = {
    .name = "verify",
    .place = {"STORE"},
    .summary = "Reads every byte of a store and checks it.",
    .group = (const cli_group[]){{"Options", verify_opts}, {0}},
    .defaults = verify_defaults,
    .options_bytes = sizeof(verify_options),
    .run = verify_run,
};
