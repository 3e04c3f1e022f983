/* run_batches_internal.h - a run's batches, which run_batches.c opens and run_batches_epoch.c trains. */
#ifndef GS_TRAIN_RUN_BATCHES_INTERNAL_H
#define GS_TRAIN_RUN_BATCHES_INTERNAL_H

#include "sample/sampler.h"
#include "train/run_batches.h"

struct gs_run_batches {
    gs_store *store;
    gs_adjacency *in, *out; /* out: of walks in a graph that is not symmetric; else NULL */
    uint32_t *target; /* [targets] training vertices, ascending */
    uint32_t targets, threads;
    gs_sampler_options options;
    gs_sampler *sampler;
    gs_batch_shape shape;
    gs_batch_devices *engine;
    uint32_t devices, step; /* that train, a batch each at a time; batches of a step, 1 of one device */
    bool learns_rows;     /* the model has tables: no batch goes in parts */
    bool may_spread, spreads; /* rows of features may stay in the memory of GPUs; some do */
    uint64_t device_memory; /* of each, as the options say */
    bool keeps;           /* features of all vertices have room */
    uint32_t reading_group; /* batches of a group where they have not */
    uint64_t cache_bytes; /* what rows of them may take where they do not */
    uint64_t ring, most_ring; /* of reads that go ahead, of each device: 0 where they do not; what it may be */
    uint32_t group;       /* batches that are drawn at a time, at most */
    uint32_t first, held; /* those in memory: [first, first + held) of the epoch */
    gs_batch_arena *arena[GS_BATCH_GROUP];
    gs_batch batch[GS_BATCH_GROUP];
    double sample_seconds, drawn; /* of the epoch at hand: rows and edges that were drawn */
};

/* run_batch_tables.c: the step after the passes of a batch, or of several, of everything that is learned. GS_EIO;
 * GS_EDEVICE: a table has numbers that are not finite. */
gs_status gs_run__step_batch(gs_run *r);

#endif /* GS_TRAIN_RUN_BATCHES_INTERNAL_H */
