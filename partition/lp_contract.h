/* lp_contract.h - a graph whose vertices are the labels of another. */
#ifndef GS_PARTITION_LP_CONTRACT_H
#define GS_PARTITION_LP_CONTRACT_H

#include "partition/lp_move.h"

/* Renames labels to 0 .. count - 1 and makes the graph of them. */
gs_status gs_lp__contract(gs_lp_graph *out, gs_lp_labels *l, const gs_lp_graph *g, gs_part_job *job);

#endif /* GS_PARTITION_LP_CONTRACT_H */
