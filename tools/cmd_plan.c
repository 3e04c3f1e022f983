/* cmd_plan.c - says what becomes of a model, and what training would read, write and hold. */
#include <stdio.h>
#include <string.h>

#include "training.h"

/* ---- model --------------------------------------------------------------- */

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
    {"--edge-features", CLI_COUNT, FIELD(edge_features), "K", "features of each edge; 0 for none", NULL, 0, 1u << 18},
    {"--self-loops", CLI_FLAG, FIELD(self_loops), NULL, "the graph has self loops", NULL, 0, 0},
    {"--edges-per-vertex", CLI_REAL, FIELD(edges_per_vertex), "X", "for choices by volume", NULL, 0, 0},
    {0},
};

static const cli_option output_options[] = {
    {"--dot", CLI_FLAG, offsetof(model_options, dot), NULL, NULL, "graphs alone, for Graphviz's dot", NULL, 0, 0},
    {0},
};

static void model_defaults(void *options)
{
    model_options *const o = options;
    *o = (model_options){.graph = {.features = 128, .classes = 16, .edges_per_vertex = 10}};
    train_command_defaults(&o->command);
}

static int model_run(const cli_command *self, const void *options, const char *const *place)
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
    .defaults = model_defaults,
    .options_bytes = sizeof(model_options),
    .run = model_run,
};

/* ---- plan ---------------------------------------------------------------- */

static void print_passes(const gs_plan_report *p)
{
    printf("%-8s %5s %8s %12s %9s %12s %12s %13s %12s %12s %10s %10s\n", "pass", "P", "tasks", "read", "requests",
           "skipped", "written", "edges", "rows", "gathered", "dense Gop", "edge Gop");
    for (uint32_t i = 0; i < p->passes; i++) {
        const gs_pass_report *const x = &p->pass[i];
        printf("%-8s %5u %8u %12s %9s %12s %12s %13s %12s %12s %10.3f %10.3f\n", x->name, x->blocks, x->tasks,
               cli_size(x->read_bytes), cli_count(x->read_requests), cli_size(x->skipped_bytes),
               cli_size(x->written_bytes), cli_count(x->edges), cli_count(x->rows), cli_size(x->edge_bytes),
               x->dense_flops * 1e-9, x->edge_flops * 1e-9);
    }
}

static void print_order(const gs_pass_report *x)
{
    if (x->order.tried > 0)
        printf("order of columns in %s: %.3f s in store order, %.3f s in the best of %u others, %s\n", x->name,
               x->order.store_seconds, x->order.best_seconds, x->order.tried,
               x->order.taken ? "which is taken" : "which is not worth it");
}

static bool has_links(const gs_plan_report *p)
{
    bool any = false;
    for (uint32_t l = 0; l < p->links; l++)
        for (uint32_t i = 0; i < p->passes; i++)
            any = any || p->link[l].pass[i].bytes > 0;
    return any;
}

static void print_links(const gs_plan_report *p)
{
    if (has_links(p))
        printf("\n%-22s %-8s %12s %10s %10s\n", "link", "pass", "bytes", "requests", "seconds");
    for (uint32_t l = 0; l < p->links; l++) {
        const gs_link_report *const x = &p->link[l];
        char name[2 * sizeof(x->from) + 4];
        snprintf(name, sizeof(name), "%s to %s", x->from, x->to);
        for (uint32_t i = 0; i < p->passes; i++)
            if (x->pass[i].bytes > 0)
                printf("%-22s %-8s %12s %10s %10.3f\n", name, p->pass[i].name, cli_size(x->pass[i].bytes),
                       cli_count(x->pass[i].requests), x->pass[i].seconds);
    }
    if (p->pair_bytes > 0)
        printf("%-22s %-8s %12s\n", "network, of pairs", "train", cli_size(p->pair_bytes));
}

/* Which devices compute, and why. */
static void print_ways(const gs_plan_report *p)
{
    if (p->ways > 0)
        printf("\n%-72s %9s\n", "devices", "seconds");
    for (uint32_t i = 0; i < p->ways; i++) {
        char seconds[32] = "      none";
        if (p->way[i].seconds > 0)
            snprintf(seconds, sizeof(seconds), "%9.3f", p->way[i].seconds);
        printf("%-72s %s%s\n", p->way[i].words, seconds, p->way[i].taken ? "  taken" : "");
    }
}

/* Of which work something is known, where of other work less is. */
static void print_known(const char *from, const char *kinds, bool *any)
{
    if (kinds[0] != '\0')
        printf("%s%s (%s)", *any ? ", " : "predicted from ", from, kinds);
    *any = *any || kinds[0] != '\0';
}

#define OTHERS_MOST 0.1 /* of the processors; with more, what was timed is said to be too long */

static void print_basis(const gs_plan_report *p)
{
    static const char better[] = "; `gnnstream bench limits` and `bench train` make it better";
    const bool fitted = p->fitted[0] != '\0', measured = p->measured[0] != '\0', guessed = p->guessed[0] != '\0';
    bool any = false;

    if (fitted + measured + guessed > 1) {
        print_known("epochs of this machine", p->fitted, &any);
        print_known("what it can do at best", p->measured, &any);
        print_known("defaults", p->guessed, &any);
        puts(better);
    } else if (strcmp(p->basis, "fitted") == 0) {
        puts("predicted from epochs of this machine");
    } else {
        printf("predicted from %s%s\n", strcmp(p->basis, "ceiling") == 0 ? "what this machine can do at best"
                                       : "defaults, as this machine was not measured", better);
    }
    if (p->others > OTHERS_MOST)
        printf("those epochs were timed while other programs had %.0f %% of the processors, so they may be too long; "
               "run `gnnstream bench train` again when the machine is quiet\n", 100 * p->others);
}

static void print_seconds(const gs_plan_report *p)
{
    printf("\n%-8s %9s %9s %9s %10s %9s %9s %9s  %s\n", "seconds", "epoch", "reading", "writing", "edge sums",
           "vertices", "checking", "waiting", "bound by");
    for (uint32_t i = 0; i < p->passes; i++) {
        const gs_predicted *const x = &p->pass[i].predicted;
        printf("%-8s %9.3f %9.3f %9.3f %10.3f %9.3f %9.3f %9.3f  %s\n", p->pass[i].name, x->seconds, x->read_seconds,
               x->write_seconds, x->edge_seconds, x->vertex_seconds, x->check_seconds, x->stall_seconds, x->bottleneck);
    }
    if (p->run_seconds > 0)
        printf("%-8s %9.3f, %u epochs and %u evaluations\n", "run", p->run_seconds, p->epochs, p->evaluations);
    for (uint32_t i = 0; i < p->passes; i++)
        print_order(&p->pass[i]);
    print_program("", &p->pass[0]); /* all passes are one program's */
    for (uint32_t i = 0; i < p->passes; i++)
        print_products("", &p->pass[i]);
    print_basis(p);
}

/* Devices that keep nothing from epoch to epoch have no column. */
static uint64_t kept_on_devices(const gs_plan_report *p, uint32_t file)
{
    uint64_t bytes = 0;
    for (uint32_t d = 0; d < GS_PLAN_DEVICES; d++)
        bytes += p->device_kept_bytes[file][d];
    return bytes;
}

static void print_files(const gs_plan_report *p)
{
    uint64_t on_devices = 0;

    for (uint32_t i = 0; i < p->files; i++)
        on_devices += kept_on_devices(p, i);
    printf("\n%-34s %12s %12s %12s%s\n", "an epoch of train", "read", "written", "kept",
           on_devices > 0 ? "   on devices" : "");
    for (uint32_t i = 0; i < p->files; i++) {
        const gs_file_report *const f = &p->file[i];
        if (f->read_bytes + f->written_bytes + f->kept_bytes + kept_on_devices(p, i) == 0)
            continue;
        printf("%-34s %12s %12s %12s", f->name, cli_size(f->read_bytes), cli_size(f->written_bytes),
               cli_size(f->kept_bytes));
        if (on_devices > 0)
            printf(" %12s", cli_size(kept_on_devices(p, i)));
        putchar('\n');
    }
    for (uint32_t i = 0; i < p->passes; i++)
        if (strcmp(p->pass[i].name, "train") == 0)
            printf("%-34s %12s\n", "not read, as it is kept", cli_size(p->pass[i].cached_bytes));
}

static void print_items(const gs_plan_report *p, bool device)
{
    for (uint32_t i = 0; i < p->items; i++)
        if (p->item[i].device == device)
            printf("  %-26s %12s\n", p->item[i].name, cli_size(p->item[i].bytes));
}

static void print_device_memory(const gs_plan_report *p)
{
    const char *const whose = p->unified ? ", a part of the host's" : "";
    bool alike = true;

    for (uint32_t d = 1; d < p->devices; d++)
        alike = alike && p->budget_of[d] == p->budget_of[0];
    if (alike)
        printf("%-28s %12s of %s%s\n", p->devices > 1 ? "memory of each device" : "device memory",
               cli_size(p->device_bytes), cli_size(p->device_memory), whose);
    for (uint32_t d = 0; !alike && d < p->devices; d++)
        printf("memory of device %-11u %12s of %s%s\n", d, cli_size(p->bytes_of[d]), cli_size(p->budget_of[d]), whose);
}

static void print_batch_devices(const gs_plan_report *p)
{
    uint64_t all = 0;
    if (p->batch_devices > 1)
        printf("%-28s", "batches of a step");
    for (uint32_t d = 0; d < p->batch_devices && p->batch_devices > 1; d++)
        printf("%s %u on device %u", d > 0 ? "," : "", p->batch_share[d], d);
    if (p->batch_devices > 1)
        printf("\n");
    if (p->batch_devices > 0)
        printf("%-28s %u\n", "batches drawn at a time", p->batch_group);
    if (p->batch_ring > 0)
        printf("%-28s %12s%s\n", "ring of reads ahead", cli_size(p->batch_ring),
               p->batch_devices > 1 ? " a device" : "");
    if (p->batch_side > 0 && p->batch_read_seconds > 0)
        printf("%-28s %u, %.3g s a batch; of each by itself %.3g s\n", "batches' rows read at once", p->batch_side,
               p->batch_read_seconds, p->batch_read_alone_seconds);
    if (p->batch_devices > 0)
        printf("%-28s %u, each %.3g s, without reading%s\n", "steps of an epoch", p->steps, p->step_seconds,
               p->draw_seconds > 0 ? "" : " and drawing");
    if (p->draw_bytes > 0)
        printf("%-28s %12s of device memory\n", "batches drawn on the GPU", cli_size(p->draw_bytes));
    for (uint32_t d = 0; d < p->batch_devices; d++)
        all += p->batch_rows[d];
    if (all == 0)
        return;
    printf("rows of features for batches");
    for (uint32_t d = 0; d < p->batch_devices; d++)
        printf("%s %s on device %u", d > 0 ? "," : "", cli_count(p->batch_rows[d]), d);
    printf("\n");
}

static void print_text(const gs_plan_report *p)
{
    printf("%s vertices, %s edges, %s parameters\n\n", cli_count(p->vertices), cli_count(p->edges),
           cli_count(p->parameters));
    print_passes(p);
    print_links(p);
    print_ways(p);
    print_seconds(p);
    print_files(p);
    printf("\n%-28s %12s of %s\n", "host memory", cli_size(p->host_bytes), cli_size(p->host_memory));
    print_items(p, false);
    print_device_memory(p);
    print_items(p, true);
    print_batch_devices(p);
    printf("%-28s %12s\n", "spill files", cli_size(p->spill_bytes));
    printf("%-28s %12s\n", "under way to and from disk", cli_size(p->flight_bytes));
}

/* The attributes of edges that index a way to make products, what is restricted to one of them in a task, and what is
 * multiplied. */
static const struct {
    const char *way, *attributes, *restriction, *rows;
} product_ways[] = {
    {"edges", "-", "a tile of targets", "an edge"},
    {"runs", "target, type", "one of each", "the sum of a run"},
    {"pairs", "operand, type", "one of each", "the row of a pair"},
};
enum { PRODUCT_WAYS = sizeof(product_ways) / sizeof(product_ways[0]) };

/* Of a way that is not taken. Products of edges are, where others are hardly shorter. */
static const char *beside(double seconds, double taken)
{
    return taken <= seconds ? "longer" : taken <= 1.05 * seconds ? "hardly shorter" : "not asked for";
}

static void print_way(const gs_product_report *r, int way)
{
    const double all[PRODUCT_WAYS] = {r->edge_seconds, r->run_seconds, r->pair_seconds};
    const uint64_t rows = way == 0 ? r->edges : way == 1 ? r->runs : r->pairs;
    const int taken = r->by_pairs ? 2 : r->by_runs;

    if (rows == 0 && way > 0)
        printf("%-44s %-6s %12s %10s  %s\n", "", product_ways[way].way, "", "",
               way == 1 ? "not counted: products are not linear, another device, or not asked for"
                        : "not counted: what edges add sees more of them, another device, or not asked for");
    else if (r->measured && all[way] <= 0)
        printf("%-44s %-6s %12s %10s  not measured: predicted to be far longer\n", way == 0 ? r->stage : "",
               product_ways[way].way, cli_count(rows), "");
    else
        printf("%-44s %-6s %12s %10.4f  %s%s\n", way == 0 ? r->stage : "", product_ways[way].way, cli_count(rows),
               all[way], way == taken ? "taken" : beside(all[way], all[taken]),
               r->measured ? ", as measured" : "");
}

static void print_programs(const gs_plan_report *p)
{
    printf("\n%-72s %9s %10s\n", "programs", "seconds", "memory");
    for (uint32_t i = 0; i < p->programs; i++) {
        const gs_program_report *const r = &p->program[i];
        if (r->seconds > 0 || r->taken)
            printf("%-72s %9.3f %10s  %s\n", r->words, r->seconds, cli_size(r->host_bytes),
                   r->taken ? "taken" : "not taken");
        else
            printf("%-72s %9s %10s  no plan within the budgets\n", r->words, "", "");
    }
}

static void print_why(const gs_plan_report *p)
{
    if (p->programs > 0)
        print_programs(p);
    if (p->product_stages == 0) {
        puts("\nno stage multiplies edges by the matrix of their type");
        return;
    }
    printf("\n%-44s %-14s %-18s %s\n", "products by edge type", "attributes", "restriction", "multiplied");
    for (int w = 0; w < PRODUCT_WAYS; w++)
        printf("%-44s %-14s %-18s %s\n", product_ways[w].way, product_ways[w].attributes, product_ways[w].restriction,
               product_ways[w].rows);
    printf("\n%-44s %-6s %12s %10s\n", "stage", "way", "products", "seconds");
    for (uint32_t i = 0; i < p->product_stages; i++)
        for (int w = 0; w < PRODUCT_WAYS; w++)
            print_way(&p->product_stage[i], w);
}

typedef struct plan_command {
    train_command command; /* first: the options of train are its fields */
    bool tasks;
    const char *cluster, *shape;
} plan_command;

static void plan_defaults(void *options)
{
    plan_command *const o = options;
    train_command_defaults(&o->command);
    o->tasks = false;
    o->cluster = o->shape = NULL;
}

static const cli_option plan_output_options[] = {
    {"--json", CLI_FLAG, offsetof(plan_command, command.json), NULL, NULL, "print JSON", NULL, 0, 0},
    {"--tasks", CLI_FLAG, offsetof(plan_command, tasks), NULL, NULL, "print the list of tasks, one a line", NULL, 0, 0},
    {"--why", CLI_FLAG, offsetof(plan_command, command.why), NULL, NULL,
     "also which programs of the model were compared, what ways there\n"
     "are to make products by edge type, and what each would take", NULL, 0, 0},
    {0},
};

static const cli_option plan_cluster_options[] = {
    {"--cluster", CLI_PATH, offsetof(plan_command, cluster), NULL, "FILE",
     "of ranks that need not be there: a JSON file of how many, what each has,\nand the network between them", NULL,
     0, 0},
    {"--shape", CLI_TEXT, offsetof(plan_command, shape), NULL, "COUNTS",
     "in place of STORE: vertices=N,edges=N,features=N, and where known classes=N,\n"
     "parts=N, remote=X (part of the edges that begin with another rank's vertex), inside=X\n"
     "(within an interval), ends=X (of the vertices, those that edges begin with), idle=X (those\n"
     "of intervals without edges)", NULL, 0, 0},
    {0},
};

static const char *share_of(uint64_t bytes, uint64_t of) { return bytes <= of ? "" : ", which is more than it has"; }

static void print_cluster(const gs_cluster_report *r)
{
    printf("%s ranks, %s vertices, %s edges, %s parameters\n", cli_count(r->ranks), cli_count(r->vertices),
           cli_count(r->edges), cli_count(r->parameters));
    if (r->planned < r->ranks)
        printf("planned as %u of them, with %u intervals, what each has as among all\n", r->planned, r->parts);
    printf("\n%-28s %12s %10s\n", "an epoch of a rank", "bytes", "seconds");
    for (uint32_t l = 0; l < r->links; l++)
        printf("%-28s %12s %10.3f\n", r->link[l].name, cli_size((uint64_t)r->link[l].bytes), r->link[l].seconds);
    printf("\n%-10s %9s %9s %9s %9s %10s  %s\n", "seconds", "compute", "disk", "network", "epoch", "run", "bound by");
    printf("%-10s %9.3f %9.3f %9.3f %9.3f %10.1f  %s\n", "", r->compute_seconds, r->disk_seconds, r->network_seconds,
           r->epoch_seconds, r->run_seconds, r->bound);
    print_basis(&r->plan);
    printf("\n%-28s %12s of %s\n", "memory of a rank", cli_size(r->memory_bytes), cli_size(r->memory));
    printf("%-28s %12s%s\n", "tables of all ranks' work", cli_size(r->table_bytes),
           share_of(r->table_bytes, r->memory));
    printf("%-28s %12s\n", "its part of the store", cli_size(r->store_bytes));
    printf("%-28s %12s\n", "its spill files", cli_size(r->spill_bytes));
    if (r->run_price > 0)
        printf("%-28s %12.2f an epoch, %.2f a run\n", "price", r->epoch_price, r->run_price);
}

static int run_cluster(const cli_command *self, const plan_command *given, const gs_train_options *train,
                       const char *store)
{
    static gs_cluster_report r; /* too large for a stack */
    int status;

    if (store != NULL || given->cluster == NULL || given->shape == NULL)
        return cli_fail(self, CLI_USAGE, "--cluster and --shape go together, without STORE");
    if (given->tasks || given->command.why)
        return cli_fail(self, CLI_USAGE, "%s is of a store; leave out --cluster and --shape",
                        given->tasks ? "--tasks" : "--why");
    if ((status = cli_result(self, gs_plan_cluster(&r, given->cluster, given->shape, train))) != CLI_DONE)
        return status;
    if (!given->command.json) {
        print_cluster(&r);
        return CLI_DONE;
    }
    status = cli_result(self, gs_print_cluster(stdout, &r));
    putchar('\n');
    return status;
}

static int plan_run(const cli_command *self, const void *options, const char *const *place)
{
    const plan_command *const given = options;
    const train_command *const o = &given->command;
    gs_train_options train = o->train;
    gs_plan_report p;
    int status;

    if (train.model == NULL)
        return cli_fail(self, CLI_USAGE, "--model is missing; see gnnstream help plan");
    train.stop = cli_stop();
    train.warn = cli_warn;
    if (given->cluster != NULL || given->shape != NULL)
        return run_cluster(self, given, &train, place[0]);
    if (place[0] == NULL)
        return cli_fail(self, CLI_USAGE, "STORE is missing; see gnnstream help plan");
    if (given->tasks && o->why)
        return cli_fail(self, CLI_USAGE, "--why is no task; leave out one of --tasks and --why");
    if (given->tasks)
        return o->json ? cli_fail(self, CLI_USAGE, "--tasks is no JSON; leave out one of --tasks and --json")
                       : cli_result(self, gs_print_tasks(stdout, place[0], &train));
    if ((status = cli_result(self, gs_plan_train(&p, place[0], &train))) != CLI_DONE)
        return status;
    if (!o->json) {
        print_text(&p);
        if (o->why)
            print_why(&p);
        return CLI_DONE;
    }
    status = cli_result(self, gs_print_plan(stdout, &p));
    putchar('\n');
    return status;
}

const cli_command cmd_plan = {
    .name = "plan",
    .place = {"[STORE]"},
    .summary = "Says what train with the same options would read, write and hold in memory.\n"
               "Runs nothing and writes nothing.",
    .group = (const cli_group[]){{"Output", plan_output_options},
                                 {"A cluster and a graph that need not be there", plan_cluster_options},
                                 {"Model", train_model_options},
                                 {"Machine", train_machine_options},
                                 {"Task (as for train)", train_task_options},
                                 {"Batches (as for train)", train_batch_options},
                                 {"Learning (as for train)", train_learning_options},
                                 {"Results (as for train; none are written)", train_output_options},
                                 {"Checkpoints (as for train; none are written)", train_checkpoint_options},
                                 {"A file of options", cli_config_options},
                                 {0}},
    .defaults = plan_defaults,
    .options_bytes = sizeof(plan_command),
    .common = train_common_options,
    .run = plan_run,
};
