/* What a group of batches reads of features with a cache of some slots, as gs_residency plans it: one line of JSON.
 *
 *     group_reads STORE ROW_BYTES CACHE_BYTES GROUP DUMP BATCH FANOUT...
 *
 * DUMP gets each batch's rows, for bench/sampling/belady.py: 32-bit words, the number of rows and then the rows, a
 * batch after the other. Targets are the vertices of which the number is a multiple of 10. Only edges are read. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/size.h"
#include "sample/residency.h"
#include "sample/sampler.h"

static void need(gs_status st)
{
    if (st != GS_OK) {
        fprintf(stderr, "group_reads: %s\n", gs_last_error());
        exit(1);
    }
}

/* In-edges of a store, a sampler over these, and a group that it drew. */
typedef struct group {
    gs_store *store;
    gs_adjacency *in;
    uint32_t *target;
    gs_sampler *s;
    uint32_t batches;
    gs_batch_arena **arena;
    gs_batch *batch;
} group;

static void open_group(group *g, const char *store, uint32_t batches, int fanouts, char **text)
{
    gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .seed = 1, .batch_size = (uint32_t)atol(text[0])};
    for (int k = 1; k < fanouts && o.hops < GS_SAMPLE_HOPS; k++)
        o.fanout[o.hops++] = (uint32_t)atol(text[k]);
    need(gs_store_open(&g->store, store));
    need(gs_adjacency_load(&g->in, g->store, GS_BY_DEST, UINT64_MAX, NULL));
    const uint32_t targets = (g->in->vertices + 9) / 10;
    g->target = gs_malloc_array(targets, sizeof(*g->target));
    g->arena = gs_malloc_array(batches, sizeof(gs_batch_arena *));
    g->batch = gs_malloc_array(batches, sizeof(*g->batch));
    if (g->target == NULL || g->arena == NULL || g->batch == NULL)
        exit(1);
    for (uint32_t i = 0; i < targets; i++)
        g->target[i] = i * 10;
    need(gs_sampler_fit(&o, g->in, NULL, g->target, targets, 8));
    need(gs_sampler_open(&g->s, g->in, NULL, g->target, targets, &o));
    g->batches = GS_MIN(batches, gs_sampler_batches(g->s));
    for (uint32_t k = 0; k < g->batches; k++)
        need(gs_batch_arena_make(&g->arena[k], g->s));
    need(gs_sampler_draw_group(g->batch, g->s, g->arena, g->batches, 0, 0, 1));
}

static void close_group(group *g)
{
    for (uint32_t k = 0; k < g->batches; k++)
        gs_batch_arena_free(g->arena[k]);
    gs_free(g->arena);
    gs_free(g->batch);
    gs_sampler_close(g->s);
    gs_free(g->target);
    gs_adjacency_free(g->in);
    gs_store_close(g->store);
}

static void dump(const group *g, const char *path)
{
    FILE *f = fopen(path, "wb");
    bool good = f != NULL;
    for (uint32_t k = 0; k < g->batches && good; k++) {
        const gs_batch *b = &g->batch[k];
        good = fwrite(&b->vertices, 4, 1, f) == 1 && fwrite(b->vertex, 4, b->vertices, f) == b->vertices;
    }
    if (f == NULL || fclose(f) != 0 || !good) {
        fprintf(stderr, "group_reads: %s cannot be written\n", path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    group g = {0};
    gs_residency *r;
    gs_residency_step step;
    uint64_t reads = 0, hits = 0, rows = 0;

    if (argc < 8) {
        fprintf(stderr, "usage: group_reads STORE ROW_BYTES CACHE_BYTES GROUP DUMP BATCH FANOUT...\n");
        return 2;
    }
    const uint64_t row_bytes = (uint64_t)atoll(argv[2]), cache = (uint64_t)atoll(argv[3]);
    const uint32_t per = (uint32_t)GS_MAX(1, GS_BLOCK_BYTES / row_bytes);
    const uint32_t slots = (uint32_t)(cache / (per * row_bytes));
    open_group(&g, argv[1], (uint32_t)atol(argv[4]), argc - 6, argv + 6);
    dump(&g, argv[5]);
    const uint32_t most = gs_sampler_limits(g.s)->vertices;
    need(gs_residency_open(&r, g.in->vertices, per, slots, g.batches, most));
    const clock_t begin = clock();
    gs_residency_begin(r, g.batch, g.batches);
    for (uint32_t k = 0; k < g.batches; k++) {
        gs_residency_next(r, &step);
        reads += step.reads;
        hits += step.hits;
        rows += step.rows;
    }
    printf("{\"rows_per_item\": %u, \"slots\": %u, \"batches\": %u, \"rows\": %llu, \"items\": %llu, \"reads\": %llu, "
           "\"bytes\": %llu, \"plan_seconds\": %.4f, \"plan_bytes\": %llu, \"most\": %u}\n", per, slots, g.batches,
           (unsigned long long)rows, (unsigned long long)(reads + hits), (unsigned long long)reads,
           (unsigned long long)(reads * per * row_bytes), (double)(clock() - begin) / CLOCKS_PER_SEC,
           (unsigned long long)gs_residency_bytes(g.in->vertices, per, slots, g.batches, most), most);
    gs_residency_close(r);
    close_group(&g);
    return 0;
}
