/* batches_internal.h - what a training on batches holds: batches.c takes and gives it back, batches_run.c uses it. */
#ifndef GS_SESSION_BATCHES_INTERNAL_H
#define GS_SESSION_BATCHES_INTERNAL_H

#include "cost/cost.h"
#include "gnnstream.h"
#include "session/batch_edges.h"
#include "session/batch_named.h"
#include "session/batch_rows.h"
#include "session/batch_spread.h"
#include "session/batch_tables.h"
#include "session/batches.h"

/* Rows of features that devices keep, of those that are trained together. */
typedef struct gs_batches_kept {
    uint32_t rows;           /* of all devices, numbered together; 0: there are none */
    uint32_t devices, own;   /* that they are dealt to, and this one's number among them */
    gs_batch_spread which;   /* of the first device; the others': */
    const gs_batch_spread *of;
    gs_batch_places places;  /* of the batch at hand */
    gs_batch *group;         /* with a cache: of the batches of a group, what no device keeps, in: */
    uint32_t *lists;         /* [cache.group][limits.vertices] */
    gs_exec_spread run;
} gs_batches_kept;

struct gs_batches {
    gs_batch_shape shape;
    gs_session *session;     /* of the train pass */
    gs_session *whole;       /* whose parameters are trained; from gs_batches_start() on */
    bool beside;             /* another's gradients are those of `whole`; this one's are its own */
    gs_chunk chunk[2];
    gs_chunk_table table;
    gs_batch_edges edges;
    gs_batch_rows rows;
    gs_batch_named named;
    gs_batch_tables tables;
    bool keeps;              /* features of all vertices, where `whole` does not */
    gs_row_cache_shape cache;
    uint64_t ring;           /* of reads that go ahead; 0: they do not */
    gs_batches_kept kept;
    gs_predicted predicted;  /* of a batch */
    double picking, drawing; /* seconds: its rows of features, in `predicted`; itself, which is not */
    gs_pass_report amounts;  /* of a typical one, where one is known; else of the largest */
    gs_fit *fit;             /* of passes that are timed; NULL: none is */
    gs_exec_graph graph;
    gs_exec_piece piece[GS_BATCH_PIECES];
    uint64_t device_bytes;   /* of memory of the device's own; 0: it computes on host memory */
    uint64_t bytes;          /* without what features take: */
    uint64_t copies, names;  /* where a batch's rows of them are copied, or named; the same where that cannot be */
};

#endif /* GS_SESSION_BATCHES_INTERNAL_H */
