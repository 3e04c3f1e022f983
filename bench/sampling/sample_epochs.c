/* Draws epochs of batches from a store and prints what that took: one line of JSON.
 *
 *     sample_epochs STORE SECONDS BATCH FANOUT...
 *     sample_epochs STORE SECONDS cluster|saint-node|saint-edge|saint-walk BATCH [WALK]
 *
 * One thread. Targets are the vertices of which the number is a multiple of 10, as bench/sampling/sampling.py takes
 * them. Loading is not timed; arrays of a batch are drawn whole, chunks of both directions included. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"
#include "sample/sampler.h"

static const char *const kinds[] = {"neighbor", "cluster", "saint-node", "saint-edge", "saint-walk"};

static void need(gs_status st)
{
    if (st != GS_OK) {
        fprintf(stderr, "sample_epochs: %s\n", gs_last_error());
        exit(1);
    }
}

static gs_sampler_options options_of(int argc, char **argv)
{
    gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .seed = 1};
    for (uint32_t k = 1; k < GS_ARRAY_LEN(kinds); k++)
        if (strcmp(argv[3], kinds[k]) == 0)
            o.kind = (gs_sampler_kind)k;
    if (o.kind == GS_SAMPLER_NEIGHBOR) {
        o.batch_size = (uint32_t)atol(argv[3]);
        for (int k = 4; k < argc && o.hops < GS_SAMPLE_HOPS; k++)
            o.fanout[o.hops++] = (uint32_t)atol(argv[k]);
        return o;
    }
    o.batch_size = argc > 4 ? (uint32_t)atol(argv[4]) : 0;
    o.walk_length = argc > 5 ? (uint32_t)atol(argv[5]) : 2;
    return o;
}

int main(int argc, char **argv)
{
    gs_store *store;
    gs_adjacency *in, *out = NULL;
    gs_sampler *s;
    gs_batch_arena *a;
    gs_batch b;
    uint64_t batches = 0, edges = 0, vertices = 0, most_edges = 0, most_vertices = 0;

    if (argc < 4) {
        fprintf(stderr, "usage: sample_epochs STORE SECONDS BATCH FANOUT... | KIND BATCH [WALK]\n");
        return 2;
    }
    const gs_sampler_options o = options_of(argc, argv);
    need(gs_store_open(&store, argv[1]));
    need(gs_adjacency_load(&in, store, GS_BY_DEST, UINT64_MAX, NULL));
    if (o.kind >= GS_SAMPLER_SAINT_NODE && !gs_store_get_info(store)->symmetric)
        need(gs_adjacency_load(&out, store, GS_BY_SOURCE, UINT64_MAX, NULL));
    const uint32_t targets = (in->vertices + 9) / 10;
    uint32_t *target = gs_malloc_array(targets, sizeof(*target));
    for (uint32_t i = 0; i < targets && target != NULL; i++)
        target[i] = i * 10;
    need(gs_sampler_open(&s, in, out, target, targets, &o));
    need(gs_batch_arena_make(&a, s));
    const clock_t cpu = clock();
    const double begin = gs_now();
    double now = begin;
    for (uint32_t epoch = 0; now - begin < atof(argv[2]); epoch++)
        for (uint32_t k = 0; k < gs_sampler_batches(s) && now - begin < atof(argv[2]); k++) {
            need(gs_sampler_draw(&b, s, a, epoch, k));
            now = gs_now();
            batches++;
            edges += b.edges;
            vertices += b.vertices;
            most_edges = GS_MAX(most_edges, b.edges);
            most_vertices = GS_MAX(most_vertices, b.vertices);
        }
    printf("{\"seconds\": %.4f, \"cpu\": %.4f, \"batches\": %llu, \"edges\": %llu, \"vertices\": %llu, ", now - begin,
           (double)(clock() - cpu) / CLOCKS_PER_SEC, (unsigned long long)batches, (unsigned long long)edges,
           (unsigned long long)vertices);
    printf("\"most_edges\": %llu, \"most_vertices\": %llu, \"graph_bytes\": %llu, \"arena_bytes\": %llu}\n",
           (unsigned long long)most_edges, (unsigned long long)most_vertices, (unsigned long long)in->bytes,
           (unsigned long long)gs_sampler_limits(s)->arena_bytes);
    gs_batch_arena_free(a);
    gs_sampler_close(s);
    gs_free(target);
    gs_adjacency_free(in);
    gs_adjacency_free(out);
    gs_store_close(store);
    return 0;
}
