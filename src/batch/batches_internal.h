/* batches_internal.h - what a training on batches holds; batch_cost.c says how long a batch takes, and how much memory.
 */
#ifndef GS_BATCH_BATCHES_INTERNAL_H
#define GS_BATCH_BATCHES_INTERNAL_H

#include "batch/batch_edges.h"
#include "batch/batches.h"
#include "batch/batch_rows.h"
#include "batch/batch_tables.h"
#include "cost/cost.h"
#include "gnnstream_reports.h" /* gs_predicted */
#include "session/session.h"

/* Rows of features that devices keep, of those that are trained together. */
typedef struct gs_batches_kept {
    uint32_t rows;           /* of all devices, numbered together; 0: there are none */
    uint32_t devices, own;   /* that they are dealt to, and this one's number among them */
    gs_batch_spread which;   /* of the first device */
    const gs_batch_spread *of; /* of each device: the first's */
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
    uint64_t bytes;          /* without what features take */
    uint64_t copies, names;  /* what these take where a batch's rows are copied, or named; equal where that cannot be */
};

/* How long does a batch take? */

/* Seconds of pass `train` of a plan of one interval that is bound to a batch whose edges are in `e`: its tasks one
 * after the other, each cut to the batch's rows and edges; before them its rows of `picked` floats are picked, and
 * `copied` bytes are copied to the device. Waits for a disk are not counted. */
void gs_batch_predict(gs_predicted *out, const gs_session *s, const gs_batch_edges *e, uint64_t picked,
                      uint64_t copied);
/* What the picking alone takes of that. */
double gs_batch_picking(const gs_session *s, uint64_t picked);

/* Adds what the tasks of such a pass took that ran just now, timed. */
void gs_batch_observe(gs_fit *fit, const gs_session *s, const gs_batch_edges *e);
/* Operations, edges, rows and gathered bytes of the pass, in place of those of the largest batch that `out` has. */
void gs_batch_amounts(gs_pass_report *out, const gs_session *s, const gs_batch_edges *e);

/* The plan has room for all rows of the largest batch in every array and sum. Most are of the first hops alone, and
 * what is behind these is never touched, so it is not resident.
 *
 * Bytes of the plan's resident data that become resident with what is bound. `left`: an array of the store that no
 * batch brings rows of, or GS_NONE. GS_ENOMEM. */
gs_status gs_batch_memory(uint64_t *out, const gs_program *p, const gs_plan *plan, const gs_binding *most,
                          uint32_t left);

#endif /* GS_BATCH_BATCHES_INTERNAL_H */
