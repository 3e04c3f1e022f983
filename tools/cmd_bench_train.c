#include <inttypes.h>

#include "results.h"
#include "train_options.h"

static void defaults(void *options)
{
    train_command_defaults(options);
    ((train_command *)options)->train.epochs = 5;
}

#define MIB 1048576.0
#define GIB 1073741824.0

static void print_text(const gs_bench_report *b)
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
    if (b->batches == 0)
        printf("          %s read and %s written, %s\n", cli_size(p->read_bytes), cli_size(p->written_bytes),
               p->read_bytes == b->read_bytes && p->written_bytes == b->written_bytes ? "as measured"
                                                                                      : "NOT as measured");
    else
        printf("          of %" PRIu32 " batches as one from the middle of an epoch; reading features and the "
               "optimiser's steps are not in it\n",
               b->batches);
    print_results(&b->train);
}

static void print_json(const gs_bench_report *b)
{
    const gs_pass_report *const p = &b->train.plan;
    const gs_predicted *const t = &p->predicted;

    printf("{\"epochs\": %" PRIu32 ", \"seconds\": %s, \"compute_seconds\": %s, \"edge_seconds\": %s, "
           "\"stall_seconds\": %s, \"read_bytes\": %" PRIu64 ", \"written_bytes\": %" PRIu64,
           b->train.epochs, cli_json_real(b->seconds), cli_json_real(b->compute_seconds),
           cli_json_real(b->edge_seconds), cli_json_real(b->stall_seconds), b->read_bytes, b->written_bytes);
    printf(", \"edge_bytes\": %" PRIu64 ", \"dense_flops\": %s, \"edge_flops\": %s, \"parts\": %" PRIu32,
           b->train.plan.edge_bytes, cli_json_real(b->train.plan.dense_flops), cli_json_real(b->train.plan.edge_flops),
           b->train.plan.blocks);
    if (b->batches > 0)
        printf(", \"batches\": %" PRIu32, b->batches);
    printf(", \"disk_read_bps\": %s, \"disk_write_bps\": %s, \"gemm_flops_per_second\": %s, \"gather_bps\": %s",
           cli_json_real(b->disk_read_bps), cli_json_real(b->disk_write_bps), cli_json_real(b->gemm_flops_per_second),
           cli_json_real(b->gather_bps));
    printf(", \"transfer_seconds\": %s", cli_json_real(b->train.transfer_seconds));
    printf(", \"gemm_in\": %" PRIu32 ", \"gemm_out\": %" PRIu32 ", \"gather_width\": %" PRIu32
           ", \"floor_seconds\": %s, \"fraction\": %s",
           b->gemm_in, b->gemm_out, b->gather_width, cli_json_real(b->floor_seconds), cli_json_real(b->fraction));
    printf(
        ", \"predicted\": {\"seconds\": %s, \"read_bytes\": %" PRIu64 ", \"written_bytes\": %" PRIu64
        ", \"compute_seconds\": %s, \"edge_seconds\": %s, \"stall_seconds\": %s, \"read_seconds\": %s, "
        "\"write_seconds\": %s"
        ", \"bottleneck\": %s, \"orders_tried\": %" PRIu32
        ", \"store_order_seconds\": %s, \"best_order_seconds\": %s, \"recomputes\": %s, \"lean\": %s, \"batches\": %s}",
        cli_json_real(t->seconds), p->read_bytes, p->written_bytes, cli_json_real(t->edge_seconds + t->vertex_seconds),
        cli_json_real(t->edge_seconds), cli_json_real(t->stall_seconds), cli_json_real(t->read_seconds),
        cli_json_real(t->write_seconds), cli_json_text(t->bottleneck), p->order.tried,
        cli_json_real(p->order.store_seconds), cli_json_real(p->order.best_seconds), p->recomputes ? "true" : "false",
        p->lean ? "true" : "false", p->batches ? "true" : "false");
    printf(", \"open_seconds\": %s, \"peak_host_bytes\": %" PRIu64 ", \"peak_device_bytes\": %" PRIu64
           ", \"device\": %s, \"io\": %s, \"loss\": %s}\n",
           cli_json_real(b->train.open_seconds), b->train.peak_host_bytes, b->train.peak_device_bytes,
           cli_json_text(b->train.device), cli_json_text(b->train.io), cli_json_real(b->train.loss));
}

static int run(const cli_command *self, const void *options, const char *const *place)
{
    const train_command *const t = options;
    gs_train_options o = t->train;
    gs_bench_report b;
    int status;

    if (o.model == NULL)
        return cli_fail(self, CLI_USAGE, "--model is missing; see gnnstream help bench train");
    o.stop = cli_stop();
    o.warn = cli_warn;
    o.on_epoch = show_epoch;
    cli_progress(NULL, "measuring the machine", -1);
    status = cli_result(self, gs_bench_train(&b, place[0], &o));
    cli_progress_end();
    if (status != CLI_DONE)
        return status;
    if (t->json)
        print_json(&b);
    else
        print_text(&b);
    return CLI_DONE;
}

const cli_command cmd_bench_train = {
    .name = "bench train",
    .place = {"STORE"},
    .summary = "Trains for a few epochs and holds them against what this machine can do.",
    .group = (const cli_group[]){{"Output", train_json_options},
                                 {"Model", train_model_options},
                                 {"Task", train_task_options},
                                 {"Batches", train_batch_options},
                                 {"Learning", train_learning_options},
                                 {"Results", train_output_options},
                                 {"Machine", train_machine_options},
                                 {"A file of options", cli_config_options},
                                 {0}},
    .defaults = defaults,
    .options_bytes = sizeof(train_command),
    .common = train_common_options,
    .run = run,
};
