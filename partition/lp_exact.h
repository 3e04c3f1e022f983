/* lp_exact.h - labels that are exactly full. */
#ifndef GS_PARTITION_LP_EXACT_H
#define GS_PARTITION_LP_EXACT_H

#include "partition/lp_move.h"

/* Moves vertices until no label has more than its interval has rows, those
 * that lose least first. Every vertex weighs 1. */
gs_status gs_lp__make_exact(gs_lp_labels *l, const gs_lp_graph *g, gs_part_job *job);

#endif /* GS_PARTITION_LP_EXACT_H */
