/* cmd_bench.c - measures this machine, or training on it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "training.h"

/* ---- bench limits -------------------------------------------------------- */

typedef struct limits_options {
    const char *dir, *device;
    bool no_disk;
    uint32_t threads;
    bool json;
} limits_options;

static const cli_option limits_opts[] = {
    {"--dir", CLI_PATH, offsetof(limits_options, dir), NULL, "DIR",
     "folder on the disk to measure; 1 GiB is written there",
     NULL, 0, 0},
    {"--device", CLI_TEXT, offsetof(limits_options, device), NULL, "NAME",
     "cpu; cuda, or cuda:0,1 for copies between GPUs too: what\nruns there is planned for by these figures", "cpu", 0,
     0},
    {"--no-disk", CLI_FLAG, offsetof(limits_options, no_disk), NULL, NULL, "measure the device alone", NULL, 0, 0},
    {"--threads", CLI_COUNT, offsetof(limits_options, threads), NULL, "N", "threads that compute", "all", 0, 4096},
    {"--json", CLI_FLAG, offsetof(limits_options, json), NULL, NULL, "print JSON", NULL, 0, 0},
    {0},
};

static void limits_defaults(void *options)
{
    memset(options, 0, sizeof(limits_options));
    ((limits_options *)options)->dir = ".";
    ((limits_options *)options)->device = "cpu";
}

#define MIB 1048576.0
#define GIB 1073741824.0

static void print_disk(const gs_limits_report *l)
{
    printf("disk by %s%s\n", l->io, l->disk_direct ? "" : " (no O_DIRECT here: memory may have served the reads)");
    printf("  sequential read         %10.0f MiB/s\n", l->disk_read_bps / MIB);
    printf("  sequential write        %10.0f MiB/s\n", l->disk_write_bps / MIB);
    for (int i = 0; i < GS_LIMIT_SIZES; i++) {
        printf("  random read of %-8s %10.0f MiB/s;", cli_size(l->random_read[i].bytes), l->random_read[i].bps / MIB);
        for (int d = 0; d < GS_LIMIT_DEPTHS; d++)
            printf(" %.0f at depth %u%s", l->random_read[i].at_depth[d] / MIB, l->depth[d],
                   d + 1 < GS_LIMIT_DEPTHS ? "," : "\n");
    }
}

static void print_copies(const gs_limits_report *l)
{
    for (int i = 0; i < GS_LIMIT_COPIES; i++) {
        printf("  copies of %-8s      %10.2f GiB/s from the host, %.2f to it", cli_size(l->copies[i].bytes),
               l->copies[i].in_bps / GIB, l->copies[i].out_bps / GIB);
        if (l->copies[i].between_bps > 0)
            printf(", %.2f between devices", l->copies[i].between_bps / GIB);
        printf("\n");
    }
    if (l->load_bps > 0)
        printf("  disk to device          %10.0f MiB/s past the host and %.1f us a read\n", l->load_bps / MIB,
               l->load_request_seconds * 1e6);
    printf("  a launch                %10.2f us\n", l->launch_seconds * 1e6);
    printf("  products, tf32 and bf16 %10.1f and %.1f Gflop/s\n", l->tf32_flops * 1e-9, l->bf16_flops * 1e-9);
}

static void print_device(const gs_limits_report *l)
{
    printf("%s\n", l->device);
    printf("  memory copy             %10.2f GiB/s\n", l->copy_bps / GIB);
    if (l->launch_seconds > 0)
        print_copies(l);
    else
        printf("  copy by one thread      %10.2f GiB/s and %.0f ns a run of rows\n", l->link_bps / GIB,
               l->link_request_seconds * 1e9);
    printf("  rows of 256 B one by one%10.2f GiB/s to a device\n", l->pick_bps / GIB);
    for (int i = 0; i < GS_LIMIT_GEMMS; i++)
        printf("  product %ux%ux%-6u     %10.1f Gflop/s\n", l->gemm[i].rows, l->gemm[i].in, l->gemm[i].out,
               l->gemm[i].flops * 1e-9);
    for (int i = 0; i < GS_LIMIT_GATHERS; i++)
        printf("  gather of %4u floats    %10.2f GiB/s\n", l->gather[i].width, l->gather[i].bps / GIB);
    for (int i = 0; i < GS_LIMIT_EDGES; i++)
        printf("  %3u edges of %3u floats  %10.1f million edges/s\n", l->edges[i].degree, l->edges[i].width,
               l->edges[i].edges_per_second * 1e-6);
}

static void limits_print_json(const gs_limits_report *l)
{
    printf("{\"disk_read_bps\": %s, \"disk_write_bps\": %s, \"disk_direct\": %s, \"io\": %s, \"device\": %s, "
           "\"copy_bps\": %s, \"link_bps\": %s, \"link_request_seconds\": %s, \"pick_bps\": %s, \"random_read\": [",
           cli_json_real(l->disk_read_bps), cli_json_real(l->disk_write_bps), l->disk_direct ? "true" : "false",
           cli_json_text(l->io), cli_json_text(l->device), cli_json_real(l->copy_bps), cli_json_real(l->link_bps),
           cli_json_real(l->link_request_seconds), cli_json_real(l->pick_bps));
    for (int i = 0; i < GS_LIMIT_SIZES; i++) {
        printf("%s{\"bytes\": %lu, \"bps\": %s, \"at_depth\": [", i == 0 ? "" : ", ", l->random_read[i].bytes,
               cli_json_real(l->random_read[i].bps));
        for (int d = 0; d < GS_LIMIT_DEPTHS; d++)
            printf("%s{\"depth\": %u, \"bps\": %s}", d == 0 ? "" : ", ", l->depth[d],
                   cli_json_real(l->random_read[i].at_depth[d]));
        printf("]}");
    }
    printf("], \"gemm\": [");
    for (int i = 0; i < GS_LIMIT_GEMMS; i++)
        printf("%s{\"rows\": %u, \"in\": %u, \"out\": %u, \"flops_per_second\": %s}", i == 0 ? "" : ", ",
               l->gemm[i].rows, l->gemm[i].in, l->gemm[i].out, cli_json_real(l->gemm[i].flops));
    printf("], \"gather\": [");
    for (int i = 0; i < GS_LIMIT_GATHERS; i++)
        printf("%s{\"width\": %u, \"bps\": %s}", i == 0 ? "" : ", ", l->gather[i].width,
               cli_json_real(l->gather[i].bps));
    printf("], \"edges\": [");
    for (int i = 0; i < GS_LIMIT_EDGES; i++)
        printf("%s{\"degree\": %u, \"width\": %u, \"edges_per_second\": %s}", i == 0 ? "" : ", ", l->edges[i].degree,
               l->edges[i].width, cli_json_real(l->edges[i].edges_per_second));
    printf("], \"load_bps\": %s, \"load_request_seconds\": %s, \"launch_seconds\": %s, \"tf32_flops\": %s, "
           "\"bf16_flops\": %s, \"copies\": [", cli_json_real(l->load_bps), cli_json_real(l->load_request_seconds),
           cli_json_real(l->launch_seconds), cli_json_real(l->tf32_flops), cli_json_real(l->bf16_flops));
    for (int i = 0; i < GS_LIMIT_COPIES && l->launch_seconds > 0; i++)
        printf("%s{\"bytes\": %lu, \"in_bps\": %s, \"out_bps\": %s, \"between_bps\": %s}", i == 0 ? "" : ", ",
               l->copies[i].bytes, cli_json_real(l->copies[i].in_bps), cli_json_real(l->copies[i].out_bps),
               cli_json_real(l->copies[i].between_bps));
    puts("]}");
}

static int limits_run(const cli_command *self, const void *options, const char *const *place)
{
    const limits_options *const o = options;
    gs_limits_report l;
    int status;

    (void)place;
    cli_progress(NULL, "measuring, about 20 seconds", -1);
    status = cli_result(self, gs_measure_device_limits(&l, o->no_disk ? NULL : o->dir, o->device, o->threads));
    cli_progress_end();
    if (status != CLI_DONE)
        return status;
    if (o->json)
        limits_print_json(&l);
    else if (!o->no_disk)
        print_disk(&l);
    if (!o->json)
        print_device(&l);
    return CLI_DONE;
}

const cli_command cmd_bench_limits = {
    .name = "bench limits",
    .summary = "Measures what this machine can do: disk, memory, products, gathers.",
    .group = (const cli_group[]){{"Options", limits_opts}, {0}},
    .defaults = limits_defaults,
    .options_bytes = sizeof(limits_options),
    .run = limits_run,
};

/* ---- bench train --------------------------------------------------------- */

static const cli_option bench_options[] = {
    {"--why", CLI_FLAG, offsetof(train_command, why), NULL, NULL,
     "of each stage and link: seconds as planned, measured, and at the\nleast, and how long devices waited for it",
     NULL, 0, 0},
    {0},
};

/* Rows of --why, which come before the figures that they stand behind. */
typedef struct why_table {
    FILE *out; /* into `text` */
    char *text;
    size_t bytes;
    uint32_t rows;
    bool json;
} why_table;

static void why_row(void *context, const gs_why_row *r)
{
    why_table *const w = context;

    if (w->json)
        fprintf(w->out, "%s{\"stage\": %s, \"worker\": %s, \"tasks\": %u, \"bytes\": %lu, \"predicted\": %s, "
                "\"measured\": %s, \"floor\": %s, \"waited\": %s}", w->rows == 0 ? "" : ", ", cli_json_text(r->stage),
                cli_json_text(r->worker), r->tasks, r->bytes, cli_json_real(r->predicted), cli_json_real(r->measured),
                cli_json_real(r->floor), cli_json_real(r->waited));
    else
        fprintf(w->out, "%-44s %-16s %6u %10s %10.4f %10.4f %10.4f %10.4f\n", r->stage, r->worker, r->tasks,
                r->bytes > 0 ? cli_size(r->bytes) : "", r->predicted, r->measured, r->floor, r->waited);
    w->rows++;
}

static void train_defaults(void *options)
{
    train_command_defaults(options);
    ((train_command *)options)->train.epochs = 5;
}

static void train_print_text(const gs_bench_report *b)
{
    const double reading = b->disk_read_bps > 0 ? (double)b->read_bytes / b->disk_read_bps : 0;
    const double writing = b->disk_write_bps > 0 ? (double)b->written_bytes / b->disk_write_bps : 0;
    const double products = b->gemm_flops_per_second > 0 ? b->train.plan.dense_flops / b->gemm_flops_per_second : 0;
    const double gathers = b->gather_bps > 0 ? (double)b->train.plan.edge_bytes / b->gather_bps : 0;

    printf("epoch     %9.4f s, the median of %u: computing %.4f (edge sums %.4f), waiting for data %.4f\n", b->seconds,
           b->train.epochs, b->compute_seconds, b->edge_seconds, b->stall_seconds);
    printf("read      %9.4f s at the least: %s at %.0f MiB/s\n", reading, cli_size(b->read_bytes),
           b->disk_read_bps / MIB);
    printf("written   %9.4f s at the least: %s at %.0f MiB/s (not in the floor)\n", writing, cli_size(b->written_bytes),
           b->disk_write_bps / MIB);
    if (b->batches == 0)
        printf("both      %9.4f s where nothing is computed beside: the epoch's own requests, in its order (not in the "
               "floor)\n",
               b->train.transfer_seconds);
    printf("products  %9.4f s at the least: %.3f Gflop at %.1f Gflop/s (%u to %u)\n", products,
           b->train.plan.dense_flops * 1e-9, b->gemm_flops_per_second * 1e-9, b->gemm_in, b->gemm_out);
    printf("gathers   %9.4f s at the least: %s at %.2f GiB/s of %u floats a row (not in the floor)\n", gathers,
           cli_size(b->train.plan.edge_bytes), b->gather_bps / GIB, b->gather_width);
    printf("floor     %9.4f s, the larger of reading and products: %.1f %% of the epoch\n", b->floor_seconds,
           100 * b->fraction);
    const gs_pass_report *const p = &b->train.plan;
    const gs_predicted *const t = &p->predicted;
    printf("predicted %9.4f s before the run (%+.0f %%): computing %.4f (edge sums %.4f), waiting for data %.4f; bound "
           "by %s\n",
           t->seconds, b->seconds > 0 ? 100 * (t->seconds / b->seconds - 1) : 0, t->edge_seconds + t->vertex_seconds,
           t->edge_seconds, t->stall_seconds, t->bottleneck);
    if (p->order.tried > 0)
        printf("          in store order %.4f s, in the best of %u other orders of columns %.4f s, %s\n",
               p->order.store_seconds, p->order.tried, p->order.best_seconds,
               p->order.taken ? "which was run" : "which was not worth it");
    print_program("          ", p);
    print_products("          ", p);
    if (b->batches == 0)
        printf("          %s read and %s written, %s\n", cli_size(p->read_bytes), cli_size(p->written_bytes),
               p->read_bytes == b->read_bytes && p->written_bytes == b->written_bytes ? "as measured"
                                                                                      : "NOT as measured");
    else
        printf("          of %u batches as one from the middle of an epoch; reading features and the optimiser's steps "
               "are not in it\n", b->batches);
    print_results(&b->train);
}

/* `why`: rows of --why as JSON, or NULL. */
static void train_print_json(const gs_bench_report *b, const char *why)
{
    const gs_pass_report *const p = &b->train.plan;
    const gs_predicted *const t = &p->predicted;

    printf("{\"epochs\": %u, \"seconds\": %s, \"compute_seconds\": %s, \"edge_seconds\": %s, \"stall_seconds\": %s, "
           "\"read_bytes\": %lu, \"written_bytes\": %lu", b->train.epochs, cli_json_real(b->seconds),
           cli_json_real(b->compute_seconds), cli_json_real(b->edge_seconds), cli_json_real(b->stall_seconds),
           b->read_bytes, b->written_bytes);
    printf(", \"edge_bytes\": %lu, \"dense_flops\": %s, \"edge_flops\": %s, \"parts\": %u", b->train.plan.edge_bytes,
           cli_json_real(b->train.plan.dense_flops), cli_json_real(b->train.plan.edge_flops), b->train.plan.blocks);
    if (b->batches > 0)
        printf(", \"batches\": %u", b->batches);
    printf(", \"disk_read_bps\": %s, \"disk_write_bps\": %s, \"gemm_flops_per_second\": %s, \"gather_bps\": %s",
           cli_json_real(b->disk_read_bps), cli_json_real(b->disk_write_bps), cli_json_real(b->gemm_flops_per_second),
           cli_json_real(b->gather_bps));
    printf(", \"transfer_seconds\": %s", cli_json_real(b->train.transfer_seconds));
    printf(", \"gemm_in\": %u, \"gemm_out\": %u, \"gather_width\": %u, \"floor_seconds\": %s, \"fraction\": %s",
           b->gemm_in, b->gemm_out, b->gather_width, cli_json_real(b->floor_seconds), cli_json_real(b->fraction));
    printf(", \"predicted\": {\"seconds\": %s, \"read_bytes\": %lu, \"written_bytes\": %lu, \"compute_seconds\": %s, "
           "\"edge_seconds\": %s, \"stall_seconds\": %s, \"read_seconds\": %s, \"write_seconds\": %s, "
           "\"bottleneck\": %s, \"orders_tried\": %u, \"store_order_seconds\": %s, \"best_order_seconds\": %s, "
           "\"recomputes\": %s, \"lean\": %s, \"batches\": %s}", cli_json_real(t->seconds), p->read_bytes,
           p->written_bytes, cli_json_real(t->edge_seconds + t->vertex_seconds), cli_json_real(t->edge_seconds),
           cli_json_real(t->stall_seconds), cli_json_real(t->read_seconds), cli_json_real(t->write_seconds),
           cli_json_text(t->bottleneck), p->order.tried, cli_json_real(p->order.store_seconds),
           cli_json_real(p->order.best_seconds), p->recomputes ? "true" : "false", p->lean ? "true" : "false",
           p->batches ? "true" : "false");
    if (why != NULL)
        printf(", \"why\": [%s]", why);
    printf(", \"open_seconds\": %s, \"peak_host_bytes\": %lu, \"peak_device_bytes\": %lu, \"device\": %s, \"io\": %s, "
           "\"loss\": %s}\n", cli_json_real(b->train.open_seconds), b->train.peak_host_bytes,
           b->train.peak_device_bytes, cli_json_text(b->train.device), cli_json_text(b->train.io),
           cli_json_real(b->train.loss));
}

static int train_run(const cli_command *self, const void *options, const char *const *place)
{
    const train_command *const t = options;
    gs_train_options o = t->train;
    gs_bench_report b;
    why_table why = {.json = t->json};
    int status;

    if (o.model == NULL)
        return cli_fail(self, CLI_USAGE, "--model is missing; see gnnstream help bench train");
    if ((why.out = open_memstream(&why.text, &why.bytes)) == NULL)
        return cli_fail(self, CLI_FAILED, "out of memory");
    o.stop = cli_stop();
    o.warn = cli_warn;
    o.on_epoch = show_epoch;
    cli_progress(NULL, "measuring the machine", -1);
    status = cli_result(self, t->why ? gs_bench_train_why(&b, place[0], &o, why_row, &why)
                                     : gs_bench_train(&b, place[0], &o));
    cli_progress_end();
    fclose(why.out);
    if (status == CLI_DONE && t->json)
        train_print_json(&b, t->why ? why.text : NULL);
    else if (status == CLI_DONE)
        train_print_text(&b);
    if (status == CLI_DONE && t->why && !t->json)
        printf("\n%-44s %-16s %6s %10s %10s %10s %10s %10s\n%s", "stage", "worker", "tasks", "bytes", "predicted",
               "measured", "floor", "waited for", why.text);
    free(why.text);
    return status;
}

const cli_command cmd_bench_train = {
    .name = "bench train",
    .place = {"STORE"},
    .summary = "Trains for a few epochs and holds them against what this machine can do.",
    .group = (const cli_group[]){{"Output", train_json_options},
                                 {"What took so long", bench_options},
                                 {"Model", train_model_options},
                                 {"Task", train_task_options},
                                 {"Batches", train_batch_options},
                                 {"Learning", train_learning_options},
                                 {"Results", train_output_options},
                                 {"Machine", train_machine_options},
                                 {"A file of options", cli_config_options},
                                 {0}},
    .defaults = train_defaults,
    .options_bytes = sizeof(train_command),
    .common = train_common_options,
    .run = train_run,
};
