#include <inttypes.h>
#include <string.h>

#include "cli.h"

typedef struct info_options {
    bool json;
} info_options;

static const cli_option opts[] = {
    {"--json", CLI_FLAG, offsetof(info_options, json), NULL, NULL, "print JSON", NULL, 0, 0},
    {0},
};

static void defaults(void *options) { memset(options, 0, sizeof(info_options)); }

static void print_text(const char *store, const gs_store_summary *s)
{
    printf("store      %s, %s (%s of tables in memory when open), id %016" PRIx64 "\n", store,
           cli_size(s->total_bytes), cli_size(s->table_bytes), s->id);
    printf("vertices   %s in %u parts of %s, ordered by %s (seed %" PRIu64 ")\n", cli_count(s->vertices), s->parts,
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
        printf("edge types %u\n", s->edge_types);
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
}

static void print_json(const gs_store_summary *s)
{
    printf("{\"vertices\": %" PRIu64 ", \"edges\": %" PRIu64 ", \"self_loops\": %" PRIu64 ", \"parts\": %" PRIu32
           ", \"interval_rows\": %" PRIu32 ", \"features\": %" PRIu32 ", \"feature_type\": %s, \"classes\": %" PRIu32,
           s->vertices, s->edges, s->self_loops, s->parts, s->interval_rows, s->features,
           s->features == 0 ? "null" : cli_json_text(s->feature_type), s->classes);
    printf(", \"train\": %" PRIu64 ", \"valid\": %" PRIu64 ", \"test\": %" PRIu64 ", \"edge_types\": %" PRIu32
           ", \"symmetric\": %s, \"weights\": %s, \"max_in_degree\": %" PRIu64 ", \"max_out_degree\": %" PRIu64,
           s->train, s->valid, s->test, s->edge_types, s->symmetric ? "true" : "false", s->weights ? "true" : "false",
           s->max_in_degree, s->max_out_degree);
    printf(", \"method\": %s, \"seed\": %" PRIu64 ", \"total_bytes\": %" PRIu64 ", \"table_bytes\": %" PRIu64
           ", \"sources_per_vertex\": %.6f, \"task\": %s, \"name_bytes\": %" PRIu64 ", \"id\": \"%016" PRIx64 "\"}\n",
           cli_json_text(s->method), s->seed, s->total_bytes, s->table_bytes, s->sources_per_vertex,
           s->task[0] == '\0' ? "null" : cli_json_text(s->task), s->name_bytes, s->id);
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
    printf("trained    %u epochs on %s (id %016" PRIx64 "): %u features, %u classes\n", w->epochs, w->store,
           w->store_id, w->features, w->classes);
    printf("written by gnnstream %s\n", w->version);
}

static void print_weights_json(const gs_weights_summary *w)
{
    printf("{\"version\": %s, \"model\": %s, \"layers\": %" PRIu32 ", \"hidden\": %" PRIu32 ", \"heads\": %" PRIu32
           ", \"bases\": %" PRIu32 ", \"activation\": %s",
           cli_json_text(w->version), cli_json_text(w->model), w->layers, w->hidden, w->heads, w->bases,
           cli_json_text(w->activation));
    printf(", \"features\": %" PRIu32 ", \"classes\": %" PRIu32 ", \"edge_types\": %" PRIu32 ", \"epochs\": %" PRIu32
           ", \"store\": %s, \"store_id\": \"%016" PRIx64 "\"}\n",
           w->features, w->classes, w->edge_types, w->epochs, cli_json_text(w->store), w->store_id);
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

static int run(const cli_command *self, const void *options, const char *const *place)
{
    const info_options *const o = options;
    gs_store_summary s;

    if (is_weights(place[0]))
        return run_weights(self, o, place[0]);
    const int status = cli_result(self, gs_inspect(&s, place[0]));
    if (status != CLI_DONE)
        return status;
    if (o->json)
        print_json(&s);
    else
        print_text(place[0], &s);
    return CLI_DONE;
}

const cli_command cmd_info = {
    .name = "info",
    .place = {"STORE"},
    .summary = "Says what is in a store, or how a file of weights came about.",
    .group = (const cli_group[]){{"Options", opts}, {0}},
    .defaults = defaults,
    .options_bytes = sizeof(info_options),
    .run = run,
};
