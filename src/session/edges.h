/* edges.h - the edge sets of a plan: which edges does each stage sum over, and which rows do their chunks need? */
#ifndef GS_SESSION_EDGES_H
#define GS_SESSION_EDGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "schedule/schedule.h" /* gs_edge_set */
#include "session/scans.h"
#include "store/chunk_table.h"

typedef struct gs_session gs_session;

/* An edge file of the run: those edges of a direction that lie between two sets of rows. */
typedef struct gs_pruned_edges {
    uint32_t direction, targets, operands; /* numbers of row sets */
    gs_chunk *chunk;
    uint64_t bytes;
    char *path;  /* from gs_session_write_pruned() on */
} gs_pruned_edges;

/* The edge sets of the plan, and the rows that stages run for. */
typedef struct gs_session_edges {
    uint32_t sets;                 /* the store's two directions first */
    gs_edge_set set[GS_EDGE_SETS];
    gs_pruned_edges pruned[GS_EDGE_SETS]; /* of sets from 2 on */
    uint32_t *stage_set;           /* [stages] */
    gs_row_sets rows;              /* until the run starts */
    gs_row_runs *stage_rows;       /* [stages] while the plan is made, or NULL where every stage runs for all rows */
    gs_row_runs *array_rows;       /* [arrays] likewise */
    gs_scans *scans;               /* choose.c's, while programs are compared; else NULL */
} gs_session_edges;

/* Begins with the store's two edge sets alone, and gives each stage the one of its direction. */
gs_status gs_session_list_edges(gs_session *s);
/* True where a stage sums over the edges of this set. */
bool gs_session_uses_set(const gs_session *s, uint32_t set);
/* The finest granules for which the planner may know what chunks need, within the host's budget; {0} for none. */
gs_granules gs_session_granules(const gs_session *s);
/* Which granules of rows each chunk of the store's sets needs, into set[].need: reads the edge files
 * once. Free with gs_session_drop_needs() when the plan is made. */
gs_status gs_session_read_needs(gs_session *s, gs_granules g);
void gs_session_drop_needs(gs_session *s);
/* Drops only what gs_session_read_needs() has read, which is of the store's own edges. */
void gs_session_drop_read_needs(gs_session *s);

#endif /* GS_SESSION_EDGES_H */
