/* batch_edges.h - the rows and the edges of a batch that each stage goes over. */
#ifndef GS_BATCH_BATCH_EDGES_H
#define GS_BATCH_BATCH_EDGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/size.h"
#include "base/status.h"
#include "exec/exec.h"
#include "program/program.h"
#include "program/zero_rows.h"
#include "sample/sampler.h"

/* Hops are counted from the first: 0 is no row, 1 the rows of the loss, `levels` all rows. */
typedef struct gs_hop_needs {
    uint32_t levels;
    bool layered;           /* rows of the last hop have no in-edges, others none from beyond the hop behind theirs */
    uint32_t *rows;         /* [stages] that the stage runs for */
    uint32_t *targets;      /* [stages] whose sums are needed: within `rows` */
    uint32_t *operands;     /* [stages] edges from other rows add nothing */
    uint32_t *zeroed;       /* [arrays] that are read: what no stage makes of them is 0 */
    gs_stage *rest;         /* [stages] what is computed of the rows behind `whole`: program/zero_rows.h */
    uint32_t *whole;        /* [stages] rows that the whole stage runs for: `rows`, where it has no rest */
    uint32_t stages;
} gs_hop_needs;

/* How much is left out. */
typedef enum gs_hop_cut {
    GS_CUT_NOTHING,
    GS_CUT_ROWS, /* rows that a stage need not compute */
    GS_CUT_RESTS /* and, in rows that are known to be 0 in part, what comes of that */
} gs_hop_cut;

/* Finds the needs of the pass `train`, whose loss is of the first hop. `hops`: as in gs_batch. `p` must outlive *out.
 * GS_ENOMEM. Release with gs_hop_needs_drop(). */
gs_status gs_hop_needs_find(gs_hop_needs *out, const gs_program *p, uint32_t train, uint32_t hops, gs_hop_cut cut);
void gs_hop_needs_drop(gs_hop_needs *n);
/* The same, with up to three of the next hop: a rest begins where rows of any type are aligned to 4 bytes. */
static inline uint32_t gs_hop_aligned(uint32_t rows, uint32_t vertices)
{
    return (uint32_t)GS_MIN(gs_align_up(rows, 4), vertices);
}

/* The edges of a batch, as each stage goes over them.
 *
 * A stage that sums for the first hops takes the first part of the batch's chunk. A stage of the backward pass whose
 * operands are of the first hops alone needs edges by source without all others: these are sorted anew, into memory
 * that was taken before the run. One thread.
 */

/* Edges by source whose destinations are in the first hops. */
typedef struct gs_batch_flip {
    uint32_t operands;     /* hops */
    uint64_t rows, edges;  /* room */
    uint32_t targets;      /* of the batch at hand */
    uint32_t taken;        /* edges of it */
    void *target, *index, *type;
    uint32_t *start;
    float *weight;
    char *feature;
} gs_batch_flip;

#define GS_BATCH_FLIPS GS_SAMPLE_HOPS

typedef struct gs_batch_edges {
    gs_hop_needs needs;
    const gs_program *program;
    gs_dtype feature_type; /* of edges; set by who opens it */
    gs_batch_flip flip[GS_BATCH_FLIPS];
    uint32_t flips;
    uint64_t bytes;        /* of all of them */
    /* of the batch at hand: [stages], and zeroed [arrays] */
    gs_edges *edges;
    uint32_t *rows, *whole, *zeroed;
    gs_binding binding;    /* of these three */
    struct {
        gs_edges *edges;
        uint32_t *rows;    /* and `whole` and `zeroed` behind them */
    } set[GS_EXEC_SLOTS];  /* those four are of one of these */
} gs_batch_edges;

/* Takes `needs`. edges_of[k]: most edges into rows of the first k hops, [needs.levels + 1]. GS_ENOMEM; release with
 * gs_batch_edges_close() in any case. */
gs_status gs_batch_edges_open(gs_batch_edges *e, gs_hop_needs *needs, const gs_program *p,
                              const gs_batch_limits *limits, const uint64_t *edges_of);
void gs_batch_edges_close(gs_batch_edges *e);
/* From now on batches are filled into set `set`, below GS_EXEC_SLOTS: what was filled into the other one stays. First
 * it is 0. */
void gs_batch_edges_use(gs_batch_edges *e, uint32_t set);
/* Fills edges, which are of the batch's bytes, and the binding. */
void gs_batch_edges_fill(gs_batch_edges *e, const gs_batch *b);
/* The binding alone, of a batch that has hop[k] rows in its first k hops, [needs.levels + 1]. */
void gs_batch_edges_bind(gs_batch_edges *e, const uint32_t *hop);
/* Memory that these edges are in, and the factors of the losses: how many pieces. */
#define GS_BATCH_PIECES (3 + 6 * GS_BATCH_FLIPS)
uint32_t gs_batch_edges_pieces(const gs_batch_edges *e, const gs_batch *b, gs_exec_piece piece[GS_BATCH_PIECES]);
/* Bytes of any batch's pieces, each in whole blocks, at most; `factors` of losses. */
uint64_t gs_batch_edges_piece_bytes(const gs_batch_edges *e, const gs_batch_limits *limits, uint32_t factors);

#endif /* GS_BATCH_BATCH_EDGES_H */
