/* order.h - makes the order: one pass over the blocks, which also buckets the edges by chunk. */
#ifndef GS_PARTITION_ORDER_H
#define GS_PARTITION_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/external_sort.h"
#include "base/status.h"
#include "partition/blocks.h"
#include "partition/grid.h"
#include "partition/job.h"

/* -- where every vertex goes: its interval, its row in store order, and why it stands there.
 *
 * Positions and rows are of store order, ids of the input. */

/* How near a vertex is to a label: what a loss on few vertices sees first. LEARNED: of the training split, FED: an edge
 * leads to such a one; LABELLED: of another split, HEARD: an edge leads to one of any split. Gradients are 0 but in the
 * first two. */
enum { GS_PART_LEARNED, GS_PART_FED, GS_PART_LABELLED, GS_PART_HEARD, GS_PART_OTHER, GS_PART_LEVELS };

typedef struct gs_part_order {
    gs_part_grid grid;
    uint32_t *part;     /* [N] interval by input id; becomes `position` */
    uint8_t *level;     /* [N] GS_PART_LEARNED, ...; NULL where most are trained on, or no order is made */
    bool hears;         /* FED and HEARD are told from OTHER */
    uint64_t *need;     /* [N] intervals that need this row, 64 bits; NULL: not asked for */
    uint32_t *position; /* [N] by input id */
    uint32_t *input_id; /* [N] by position */
    uint32_t groups;    /* runs of ascending input ids that positions consist of, upper bound */
    gs_external_sort *chunked[2]; /* edges by chunk, [direction] */
    uint32_t region_shift; /* stream of chunk c: c >> region_shift */
    uint64_t cut;       /* edges between intervals */
    char method[16];
} gs_part_order;

/* Edges of the largest chunk, exactly where it has more than `cap`. */
gs_status gs_part__largest_chunk(uint64_t *edges, const gs_part_order *o, uint64_t cap);

gs_status gs_part__order_make(gs_part_order *o, gs_part_job *job, const gs_part_blocks *b, uint32_t parts,
                              const char *method, char *note, size_t note_cap);
void gs_part__order_free(gs_part_order *o);

#endif /* GS_PARTITION_ORDER_H */
