/* order.h - edges on disk, and the order that is made of them: one pass over their blocks, which also buckets them by
 * chunk. */
#ifndef GS_PARTITION_ORDER_H
#define GS_PARTITION_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/external_sort.h"
#include "base/size.h"
#include "base/status.h"
#include "partition/input_files.h"
#include "partition/integers.h"
#include "partition/job.h"

/* -- edges on disk, bucketed by their larger endpoint. */

typedef struct gs_part_blocks {
    gs_external_sort *edges_by_end;
    uint32_t count, shift; /* block of an edge: max(src, dst) >> shift */
    uint32_t words;        /* of a record: src, dst, [type], [weight bits, or with features the edge's number] */
    uint64_t vertices, edges, self_loops, cap; /* cap: most records in memory at once */
    uint32_t edge_types;
    bool symmetric; /* equal to its own transpose, payload included */
} gs_part_blocks;

gs_status gs_part__blocks_make(gs_part_blocks *b, gs_part_job *job, gs_part_input *in);
void gs_part__blocks_free(gs_part_blocks *b);

/* All edges whose larger endpoint lies in [first, first + vertices), in no
 * particular order, `count` records at `records`, which are the visitor's to
 * free with gs_free(). Blocks come in ascending order of vertices, none left out. */
typedef gs_status gs_part_visit(void *context, uint64_t first, uint64_t vertices, uint32_t *records,
                                uint64_t count);
gs_status gs_part__blocks_each(const gs_part_blocks *b, gs_part_job *job, gs_part_visit *visit, void *context);

/* -- N vertices in store order, cut into P equal intervals. */

/* Division of u32 by a fixed number (Lemire, Kaser, Kurz: "Faster remainder
 * by direct computation", 2019): exact for every u32. */
typedef struct gs_fastdiv {
    uint64_t magic;
    uint32_t divisor;
} gs_fastdiv;
static inline gs_fastdiv gs_fastdiv_make(uint32_t d)
{
    return (gs_fastdiv){d == 1 ? 0 : UINT64_MAX / d + 1, d};
}
static inline uint32_t gs_fastdiv_of(gs_fastdiv f, uint32_t n)
{
    return f.divisor == 1 ? n : (uint32_t)(((unsigned __int128)f.magic * n) >> 64);
}

typedef struct gs_part_grid {
    uint64_t vertices;
    uint32_t parts, rows; /* intervals; rows of each but perhaps the last */
    uint32_t local_bits;  /* of a row number within an interval */
    gs_fastdiv by_rows;
} gs_part_grid;
/* Cuts N vertices into at most `parts` equal intervals, none empty. */
static inline gs_part_grid gs_part__grid_make(uint64_t vertices, uint32_t parts)
{
    gs_part_grid g = {.vertices = vertices};
    g.rows = (uint32_t)gs_div_up(vertices, GS_MAX(1, GS_MIN(parts, vertices)));
    g.parts = (uint32_t)gs_div_up(vertices, g.rows);
    g.local_bits = gs_part__bits(g.rows);
    g.by_rows = gs_fastdiv_make(g.rows);
    return g;
}
static inline uint32_t gs_part__grid_capacity(const gs_part_grid *g, uint32_t i)
{
    const uint64_t left = g->vertices - (uint64_t)i * g->rows;
    return left < g->rows ? (uint32_t)left : g->rows;
}

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

/* Another number, `to`, for each of the intervals, which have as many rows each and `ends` of edges, so that each of
 * `ranks` runs of as many has about as many ends. Within a run they stand as they stood. `is_short`: the last has fewer
 * rows, and stays the last. `spare`: [parts]. */
void gs_part__number_for(uint32_t *to, uint32_t *spare, const uint64_t *ends, uint32_t parts, bool is_short,
                         uint32_t ranks);

gs_status gs_part__order_make(gs_part_order *o, gs_part_job *job, const gs_part_blocks *b, uint32_t parts,
                              const char *method, char *note, size_t note_cap);
void gs_part__order_free(gs_part_order *o);

#endif /* GS_PARTITION_ORDER_H */
