/* batch_edges.h - the edges of a batch, as each stage goes over them.
 *
 * A stage that sums for the first hops takes the first part of the batch's chunk. A stage of the backward pass whose
 * operands are of the first hops alone needs edges by source without all others: these are sorted anew, into memory
 * that was taken before the run. One thread.
 */
#ifndef GS_SESSION_BATCH_EDGES_H
#define GS_SESSION_BATCH_EDGES_H

#include "exec/exec.h"
#include "session/batch_hops.h"

/* Edges by source whose destinations are in the first hops. */
typedef struct gs_batch_flip {
    uint32_t operands;     /* hops */
    uint64_t rows, edges;  /* room */
    uint32_t targets;      /* of the batch at hand */
    uint32_t taken;        /* edges of it */
    void *target, *index, *type;
    uint32_t *start;
    float *weight;
} gs_batch_flip;

#define GS_BATCH_FLIPS GS_SAMPLE_HOPS

typedef struct gs_batch_edges {
    gs_hop_needs needs;
    const gs_program *program;
    gs_batch_flip flip[GS_BATCH_FLIPS];
    uint32_t flips;
    uint64_t bytes;        /* of all of them */
    /* of the batch at hand: [stages], and zeroed [arrays] */
    gs_edges *edges;
    uint32_t *rows, *whole, *zeroed;
} gs_batch_edges;

/* Takes `needs`. edges_of[k]: most edges into rows of the first k hops, [needs.levels + 1]. GS_ENOMEM; release with
 * gs_batch_edges_close() in any case. */
gs_status gs_batch_edges_open(gs_batch_edges *e, gs_hop_needs *needs, const gs_program *p,
                              const gs_batch_limits *limits, const uint64_t *edges_of);
void gs_batch_edges_close(gs_batch_edges *e);
/* Fills edges, rows, whole and zeroed, which are of the batch's bytes. */
void gs_batch_edges_fill(gs_batch_edges *e, const gs_batch *b);
/* Memory that these edges are in, and the factors of the losses: how many pieces. */
#define GS_BATCH_PIECES (3 + 5 * GS_BATCH_FLIPS)
uint32_t gs_batch_edges_pieces(const gs_batch_edges *e, const gs_batch *b, gs_exec_piece piece[GS_BATCH_PIECES]);
/* Bytes of any batch's pieces, each in whole blocks, at most; `factors` of losses. */
uint64_t gs_batch_edges_piece_bytes(const gs_batch_edges *e, const gs_batch_limits *limits, uint32_t factors);

#endif /* GS_SESSION_BATCH_EDGES_H */
