/* api_partition.c - raw graphs and stores, for the public interface.
 *
 * The partition room's own structs have the public ones' names (with element
 * types in place of words); seen from here, they are called room_*. */
#define gs_partition_options room_partition_options
#define gs_partition_report room_partition_report
#define gs_generate_options room_generate_options
#include "partition/partition.h"
#undef gs_partition_options
#undef gs_partition_report
#undef gs_generate_options

#include <string.h>

#include "gnnstream.h"

gs_status gs_generate(const char *kind, const char *folder, const gs_generate_options *options)
{
    const room_generate_options o = {
        .vertices = options->vertices,
        .edges = options->edges,
        .features = options->features,
        .classes = options->classes,
        .seed = options->seed,
        .force = options->force,
        .progress = options->progress,
        .context = options->context,
        .stop = options->stop,
    };
    return gs_generate_run(kind, folder, &o);
}

static gs_status feature_type(gs_dtype *out, const char *name)
{
    gs_dtype t;

    if (name == NULL || !gs_dtype_parse(&t, name) || (t != GS_F32 && t != GS_BF16 && t != GS_F16))
        return gs_fail(GS_EINVAL, "--feature-type %s: is none of f32, bf16, f16", name == NULL ? "(none)" : name);
    *out = t;
    return GS_OK;
}

gs_status gs_partition(const char *input, const char *store, const gs_partition_options *options,
                       gs_partition_report *report)
{
    room_partition_options o = {
        .format = options->format,
        .method = options->method,
        .parts = options->parts,
        .memory = options->memory,
        .random_features = options->random_features,
        .undirected = options->undirected,
        .force = options->force,
        .seed = options->seed,
        .progress = options->progress,
        .context = options->context,
        .stop = options->stop,
    };
    room_partition_report r = {0};
    gs_status st;

    if ((st = feature_type(&o.feature_type, options->feature_type)) != GS_OK ||
        (st = gs_partition_run(input, store, &o, &r)) != GS_OK)
        return st;
    if (report == NULL)
        return GS_OK;
    *report = (gs_partition_report){
        .vertices = r.vertices,
        .edges = r.edges,
        .store_bytes = r.store_bytes,
        .peak_bytes = r.peak_bytes,
        .parts = r.parts,
        .cut_fraction = r.cut_fraction,
        .seconds = r.seconds,
        .read_seconds = r.read_seconds,
        .order_seconds = r.order_seconds,
        .edge_seconds = r.edge_seconds,
        .array_seconds = r.array_seconds,
    };
    memcpy(report->method, r.method, sizeof(report->method));
    memcpy(report->note, r.note, sizeof(report->note));
    return GS_OK;
}
