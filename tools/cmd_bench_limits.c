#include <inttypes.h>
#include <string.h>

#include "cli.h"

typedef struct limits_options {
    const char *dir, *device;
    bool no_disk;
    uint32_t threads;
    bool json;
} limits_options;

static const cli_option opts[] = {
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

static void defaults(void *options)
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
            printf(" %.0f at depth %" PRIu32 "%s", l->random_read[i].at_depth[d] / MIB, l->depth[d],
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
    for (int i = 0; i < GS_LIMIT_GEMMS; i++)
        printf("  product %ux%ux%-6u     %10.1f Gflop/s\n", l->gemm[i].rows, l->gemm[i].in, l->gemm[i].out,
               l->gemm[i].flops * 1e-9);
    for (int i = 0; i < GS_LIMIT_GATHERS; i++)
        printf("  gather of %4u floats    %10.2f GiB/s\n", l->gather[i].width, l->gather[i].bps / GIB);
    for (int i = 0; i < GS_LIMIT_EDGES; i++)
        printf("  %3" PRIu32 " edges of %3" PRIu32 " floats  %10.1f million edges/s\n", l->edges[i].degree,
               l->edges[i].width, l->edges[i].edges_per_second * 1e-6);
}

static void print_json(const gs_limits_report *l)
{
    printf("{\"disk_read_bps\": %s, \"disk_write_bps\": %s, \"disk_direct\": %s, \"io\": %s, \"device\": %s, "
           "\"copy_bps\": %s, \"link_bps\": %s, \"link_request_seconds\": %s, \"random_read\": [",
           cli_json_real(l->disk_read_bps), cli_json_real(l->disk_write_bps), l->disk_direct ? "true" : "false",
           cli_json_text(l->io), cli_json_text(l->device), cli_json_real(l->copy_bps), cli_json_real(l->link_bps),
           cli_json_real(l->link_request_seconds));
    for (int i = 0; i < GS_LIMIT_SIZES; i++) {
        printf("%s{\"bytes\": %" PRIu64 ", \"bps\": %s, \"at_depth\": [", i == 0 ? "" : ", ", l->random_read[i].bytes,
               cli_json_real(l->random_read[i].bps));
        for (int d = 0; d < GS_LIMIT_DEPTHS; d++)
            printf("%s{\"depth\": %" PRIu32 ", \"bps\": %s}", d == 0 ? "" : ", ", l->depth[d],
                   cli_json_real(l->random_read[i].at_depth[d]));
        printf("]}");
    }
    printf("], \"gemm\": [");
    for (int i = 0; i < GS_LIMIT_GEMMS; i++)
        printf("%s{\"rows\": %" PRIu32 ", \"in\": %" PRIu32 ", \"out\": %" PRIu32 ", \"flops_per_second\": %s}",
               i == 0 ? "" : ", ", l->gemm[i].rows, l->gemm[i].in, l->gemm[i].out, cli_json_real(l->gemm[i].flops));
    printf("], \"gather\": [");
    for (int i = 0; i < GS_LIMIT_GATHERS; i++)
        printf("%s{\"width\": %" PRIu32 ", \"bps\": %s}", i == 0 ? "" : ", ", l->gather[i].width,
               cli_json_real(l->gather[i].bps));
    printf("], \"edges\": [");
    for (int i = 0; i < GS_LIMIT_EDGES; i++)
        printf("%s{\"degree\": %" PRIu32 ", \"width\": %" PRIu32 ", \"edges_per_second\": %s}", i == 0 ? "" : ", ",
               l->edges[i].degree, l->edges[i].width, cli_json_real(l->edges[i].edges_per_second));
    printf("], \"load_bps\": %s, \"load_request_seconds\": %s, \"launch_seconds\": %s, \"tf32_flops\": %s, "
           "\"bf16_flops\": %s, \"copies\": [", cli_json_real(l->load_bps), cli_json_real(l->load_request_seconds),
           cli_json_real(l->launch_seconds), cli_json_real(l->tf32_flops), cli_json_real(l->bf16_flops));
    for (int i = 0; i < GS_LIMIT_COPIES && l->launch_seconds > 0; i++)
        printf("%s{\"bytes\": %" PRIu64 ", \"in_bps\": %s, \"out_bps\": %s, \"between_bps\": %s}",
               i == 0 ? "" : ", ", l->copies[i].bytes, cli_json_real(l->copies[i].in_bps),
               cli_json_real(l->copies[i].out_bps), cli_json_real(l->copies[i].between_bps));
    puts("]}");
}

static int run(const cli_command *self, const void *options, const char *const *place)
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
        print_json(&l);
    else if (!o->no_disk)
        print_disk(&l);
    if (!o->json)
        print_device(&l);
    return CLI_DONE;
}

const cli_command cmd_bench_limits = {
    .name = "bench limits",
    .summary = "Measures what this machine can do: disk, memory, products, gathers.",
    .group = (const cli_group[]){{"Options", opts}, {0}},
    .defaults = defaults,
    .options_bytes = sizeof(limits_options),
    .run = run,
};
