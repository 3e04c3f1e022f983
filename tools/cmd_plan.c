#include <inttypes.h>

#include "train_options.h"

static void print_passes(const gs_plan_report *p)
{
    printf("%-8s %5s %8s %12s %9s %12s %12s %12s %10s %10s\n", "pass", "P", "tasks", "read", "requests", "skipped",
           "written", "gathered", "dense Gop", "edge Gop");
    for (uint32_t i = 0; i < p->passes; i++) {
        const gs_pass_report *const x = &p->pass[i];
        printf("%-8s %5u %8u %12s %9s %12s %12s %12s %10.3f %10.3f\n", x->name, x->blocks, x->tasks, cli_size(x->read_bytes),
               cli_count(x->read_requests), cli_size(x->skipped_bytes), cli_size(x->written_bytes), cli_size(x->edge_bytes), x->dense_flops * 1e-9,
               x->edge_flops * 1e-9);
    }
}

static void print_items(const gs_plan_report *p, bool device)
{
    for (uint32_t i = 0; i < p->items; i++)
        if (p->item[i].device == device)
            printf("  %-26s %12s\n", p->item[i].name, cli_size(p->item[i].bytes));
}

static void print_text(const gs_plan_report *p)
{
    printf("%s vertices, %s edges, %s parameters\n\n", cli_count(p->vertices), cli_count(p->edges),
           cli_count(p->parameters));
    print_passes(p);
    printf("\n%-28s %12s of %s\n", "host memory", cli_size(p->host_bytes), cli_size(p->host_memory));
    print_items(p, false);
    printf("%-28s %12s of %s%s\n", "device memory", cli_size(p->device_bytes), cli_size(p->device_memory),
           p->unified ? ", a part of the host's" : "");
    print_items(p, true);
    printf("%-28s %12s\n", "spill files", cli_size(p->spill_bytes));
}

static void print_json(const gs_plan_report *p)
{
    printf("{\"vertices\": %" PRIu64 ", \"edges\": %" PRIu64 ", \"parameters\": %" PRIu64 ", \"host_memory\": %" PRIu64
           ", \"host_bytes\": %" PRIu64 ", \"device_memory\": %" PRIu64 ", \"device_bytes\": %" PRIu64
           ", \"unified\": %s, \"spill_bytes\": %" PRIu64 ", \"passes\": [",
           p->vertices, p->edges, p->parameters, p->host_memory, p->host_bytes, p->device_memory, p->device_bytes,
           p->unified ? "true" : "false", p->spill_bytes);
    for (uint32_t i = 0; i < p->passes; i++) {
        const gs_pass_report *const x = &p->pass[i];
        printf("%s{\"name\": %s, \"parts\": %" PRIu32 ", \"tasks\": %" PRIu32 ", \"read_bytes\": %" PRIu64
               ", \"read_requests\": %" PRIu64 ", \"skipped_bytes\": %" PRIu64 ", \"written_bytes\": %" PRIu64 ", \"edge_bytes\": %" PRIu64
               ", \"dense_flops\": %s, \"edge_flops\": %s}",
               i == 0 ? "" : ", ", cli_json_text(x->name), x->blocks, x->tasks, x->read_bytes, x->read_requests,
               x->skipped_bytes, x->written_bytes, x->edge_bytes, cli_json_real(x->dense_flops), cli_json_real(x->edge_flops));
    }
    printf("], \"memory\": [");
    for (uint32_t i = 0; i < p->items; i++)
        printf("%s{\"name\": %s, \"bytes\": %" PRIu64 ", \"device\": %s}", i == 0 ? "" : ", ",
               cli_json_text(p->item[i].name), p->item[i].bytes, p->item[i].device ? "true" : "false");
    puts("]}");
}

static int run(const cli_command *self, const void *options, const char *const *place)
{
    const train_command *const o = options;
    gs_plan_report p;
    int status;

    if (o->train.model == NULL)
        return cli_fail(self, CLI_USAGE, "--model is missing; see gnnstream help plan");
    if ((status = cli_result(self, gs_plan_train(&p, place[0], &o->train))) != CLI_DONE)
        return status;
    if (o->json)
        print_json(&p);
    else
        print_text(&p);
    return CLI_DONE;
}

const cli_command cmd_plan = {
    .name = "plan",
    .place = {"STORE"},
    .summary = "Says what train with the same options would read, write and hold in memory.\n"
               "Runs nothing and writes nothing.",
    .group = (const cli_group[]){{"Output", train_json_options},
                                 {"Model", train_model_options},
                                 {"Machine", train_machine_options},
                                 {"Learning (as for train)", train_learning_options},
                                 {"Results (as for train; none are written)", train_output_options},
                                 {"Later", train_later_options},
                                 {0}},
    .defaults = train_command_defaults,
    .options_bytes = sizeof(train_command),
    .run = run,
};
