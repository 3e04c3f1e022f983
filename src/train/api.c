/* api.c - the small calls of the public interface. */
#include <stdio.h>

#include "base/dtype.h"
#include "base/size.h"
#include "base/status.h"
#include "gnnstream.h"
#include "store/store.h"
#include "train/provenance.h"

#define VERIFY_MEMORY (256 * GS_MIB)

const char *gs_version(void) { return GS_VERSION; }

/* Rows that one pass by destination needs if each interval reads every source it has once, a vertex. */
static double sources_per_vertex(const gs_chunk_table *t)
{
    uint64_t sum = 0;
    for (uint64_t c = 0; c < (uint64_t)t->parts * t->parts; c++)
        sum += t->chunk[GS_BY_DEST][c].operands;
    return (double)sum / (double)t->vertices;
}

gs_status gs_inspect(gs_store_summary *out, const char *store)
{
    gs_store *s = NULL;
    const gs_store_info *info;
    gs_status st;

    if ((st = gs_check_argument(out, "out")) != GS_OK || (st = gs_check_argument(store, "store")) != GS_OK ||
        (st = gs_store_open(&s, store)) != GS_OK)
        return st;
    info = gs_store_get_info(s);
    *out = (gs_store_summary){
        .vertices = info->vertices,
        .edges = info->edges,
        .self_loops = info->self_loops,
        .parts = info->parts,
        .interval_rows = info->interval_rows,
        .features = info->features,
        .classes = info->classes,
        .edge_types = info->edge_types,
        .train = info->train,
        .valid = info->valid,
        .test = info->test,
        .max_in_degree = info->max_in_degree,
        .max_out_degree = info->max_out_degree,
        .total_bytes = info->total_bytes,
        .table_bytes = gs_store_table_bytes(s),
        .name_bytes = info->name_bytes,
        .seed = info->seed,
        .id = info->id,
        .sources_per_vertex = sources_per_vertex(gs_store_chunks(s)),
        .symmetric = info->symmetric,
        .weights = info->weights,
    };
    if (info->features != 0)
        snprintf(out->feature_type, sizeof(out->feature_type), "%s", gs_dtype_name(info->feature_type));
    snprintf(out->method, sizeof(out->method), "%s", info->method);
    if (info->classes != 0)
        snprintf(out->task, sizeof(out->task), "%s", gs_train_task_name(info->labels));
    gs_store_close(s);
    return GS_OK;
}

gs_status gs_verify(const char *store, uint64_t memory)
{
    gs_store *s = NULL;
    gs_status st = gs_check_argument(store, "store");

    if (st == GS_OK && (st = gs_store_open(&s, store)) == GS_OK)
        st = gs_store_verify(s, memory != 0 ? memory : VERIFY_MEMORY);
    gs_store_close(s);
    return st;
}

gs_status gs_inspect_weights(gs_weights_summary *out, const char *path)
{
    gs_provenance p;
    gs_status st;

    if ((st = gs_check_argument(out, "out")) != GS_OK || (st = gs_check_argument(path, "path")) != GS_OK ||
        (st = gs_provenance_read(&p, path)) != GS_OK)
        return st;
    *out = p.summary;
    gs_provenance_free(&p);
    return GS_OK;
}
