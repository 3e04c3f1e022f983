#include "fuzz_input.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/size.h"
#include "fuzz.h"
#include "partition/input_files.h"
#include "partition/rows.h"
#include "store/store.h"

#define BATCH_EDGES 64u
/* A store is made of what is no larger: it takes a thousand times as long as reading. */
#define STORE_VERTICES 200u
#define STORE_EDGES 500u
#define STORE_FEATURES 64u
#define STORE_EVERY 4u /* and of one in so many of those, by its size */

static gs_status read_edges(const gs_part_input *in)
{
    gs_part_edge_block b;
    gs_status st = gs_part__edge_block_make(&b, in, BATCH_EDGES);
    for (uint64_t at = 0; st == GS_OK && at < in->edges; at += b.count) {
        if ((st = gs_part__input_edges(in, &b, at, GS_MIN(BATCH_EDGES, in->edges - at))) != GS_OK)
            break;
        gs_fuzz_require(b.count > 0, "edges come");
        for (uint64_t k = 0; k < b.count; k++)
            gs_fuzz_require(b.src[k] < in->vertices && b.dst[k] < in->vertices, "ids are below the vertices");
    }
    gs_part__edge_block_free(&b);
    return st;
}

/* Sets *small where a store may be made of it. */
static gs_status read_input(const char *path, const gs_partition_options *opt, bool *small)
{
    int32_t *labels = NULL;
    uint8_t *split = NULL;
    uint64_t count[3];
    gs_part_job job;
    gs_part_input in;
    gs_part__job_init(&job, opt, gs_fuzz_folder());
    job.dir = gs_fuzz_folder(); /* of what text is parsed into */
    gs_status st = gs_part__input_open(&in, &job, path);
    if (st == GS_OK && (st = gs_part__input_parse(&in, &job)) == GS_OK &&
        (st = gs_part__job_plan(&job, in.vertices, in.edges, 0)) == GS_OK && (st = read_edges(&in)) == GS_OK &&
        (st = gs_part__labels_load(&labels, &in, &job)) == GS_OK)
        st = gs_part__splits_load(&split, count, &in, labels, &job);
    *small = in.vertices <= STORE_VERTICES && in.edges <= STORE_EDGES && in.features <= STORE_FEATURES &&
             (in.vertices + in.edges) % STORE_EVERY == 3;
    gs_free(split);
    gs_free(labels);
    gs_part__input_close(&in);
    gs_part__job_free(&job);
    return st;
}

void gs_fuzz_input(const char *path)
{
    gs_partition_options opt;
    gs_store *s = NULL;
    char dir[300];
    bool small = false;
    gs_partition_options_init(&opt);
    opt.memory = 32 * GS_MIB;
    opt.method = "natural";
    opt.parts = 2;
    opt.force = true;
    gs_status st = read_input(path, &opt, &small);
    if (st != GS_OK || !small) {
        gs_fuzz_judge(st);
        return;
    }
    snprintf(dir, sizeof(dir), "%s/store", gs_fuzz_folder());
    st = gs_partition(path, dir, &opt, NULL);
    gs_fuzz_judge(st); /* features are read only now */
    if (st != GS_OK)
        return;
    st = gs_store_open(&s, dir);
    if (st == GS_OK)
        st = gs_store_verify(s, 4 * GS_MIB);
    if (st != GS_OK)
        fprintf(stderr, "%s\n", gs_last_error());
    gs_fuzz_require(st == GS_OK, "the store of an accepted graph is whole");
    gs_store_close(s);
}
