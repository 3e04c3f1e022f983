/* batch_hops.h - which rows of a batch does each stage need, before any batch is drawn?
 *
 * Rows of a batch come in order of the hop that first reached them, the loss's own first. What a stage must compute is
 * thus always a first part of them, which ends where a hop ends. Which hop is the same for all batches: it is found
 * once, by the rule that prunes whole graphs (schedule/row_sets.h), of a graph whose rows are hops.
 */
#ifndef GS_SESSION_BATCH_HOPS_H
#define GS_SESSION_BATCH_HOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/size.h"
#include "base/status.h"
#include "program/program.h"
#include "program/zero_rows.h"
#include "sample/sample_batch.h"

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
/* Rows of this batch in the first `levels` hops. */
uint32_t gs_hop_rows(const gs_batch *b, uint32_t levels);
/* The same, with up to three of the next hop: a rest begins where rows of any type are aligned to 4 bytes. */
static inline uint32_t gs_hop_aligned(uint32_t rows, uint32_t vertices)
{
    return (uint32_t)GS_MIN(gs_align_up(rows, 4), vertices);
}

#endif /* GS_SESSION_BATCH_HOPS_H */
