/* sample_batch.h - one batch: the small graph that a sampler drew, as a store of one chunk in memory.
 *
 * A vertex is in a batch once, and its in-edges are drawn where it is first reached, as torch_geometric's
 * NeighborLoader draws them: all layers of a model run over the same edges. Rows of a batch are local: row i is the
 * store's row vertex[i]. Edges are what the store's are (docs/format.md, "An edge chunk"): one chunk by destination and
 * one by source, of one interval of gs_batch_limits.vertices rows, with all sections in place and in order; a deep
 * check passes. Edges that are there more than once stay so.
 *
 * Everything points into the arena that the batch was drawn into (sampler.h) and stands until the next batch is
 * drawn there. Units: elements; bytes where a name says so.
 */
#ifndef GS_SAMPLE_SAMPLE_BATCH_H
#define GS_SAMPLE_SAMPLE_BATCH_H

#include <stdint.h>

#include "store/chunk_table.h"
#include "store/chunk_view.h"

#define GS_SAMPLE_HOPS 16u /* at most */

typedef struct gs_batch {
    uint32_t epoch, number;    /* with the sampler's seed: what the batch depends on */
    bool overflows;            /* it has more than the limits: all below is 0 */
    uint32_t vertices;
    uint32_t targets;          /* rows [0, targets): those that the loss is of */
    uint32_t expanded;         /* rows [0, expanded): those whose in-edges were drawn */
    uint32_t hops;             /* 0 where the sampler has none: then all rows are expanded */
    uint32_t hop_end[GS_SAMPLE_HOPS + 1]; /* rows reached by hop h: [h - 1]..[h]; [0] is `targets`, [hops] all */
    const uint32_t *vertex;    /* [vertices] rows of the store, each once */
    const float *in_degree;    /* [vertices] what the store's array of this name is to the batch: see below */
    const float *loops;        /* [vertices] the same; NULL where the store has none */
    const float *loss_weight;  /* [targets] factors of their losses in the sum over them, or NULL: mean of all */
    uint64_t edges;
    gs_chunk chunk[2];         /* of each direction: offset 0, length as the format has it, checksum 0 */
    void *bytes[2];            /* [chunk[d].length], aligned to GS_BLOCK_BYTES; NULL without edges */
    gs_chunk_view view[2];     /* of these bytes; {0} without edges */
} gs_batch;

/* in_degree: edges drawn into the row, where it was expanded. Of the others, which have no edges here, as many as would
 * have been drawn: the least of the store's in-degree and the last hop's fanout (the store's in-degree where all are
 * taken). GraphSAINT's batches have the store's. loops: likewise; of rows that were not expanded, as many as are to be
 * expected. */

/* Limits that no batch of a sampler exceeds, and the table that an engine sees: P = 1. */
typedef struct gs_batch_limits {
    uint32_t vertices;       /* rows of a batch: the interval's rows, so indices have 2 bytes up to 65536 */
    uint64_t edges;
    uint64_t chunk_bytes[2]; /* of the chunks of each direction, at most */
    uint32_t type_bytes;     /* as the store's */
    bool weights;            /* of the store's edges, or GraphSAINT's coefficients times these */
    uint64_t arena_bytes;    /* of one arena, all its scratch included */
} gs_batch_limits;

/* Bytes of an index in a batch's chunks. */
static inline uint32_t gs_batch_index_bytes(const gs_batch_limits *l) { return l->vertices <= 65536 ? 2 : 4; }

#endif /* GS_SAMPLE_SAMPLE_BATCH_H */
