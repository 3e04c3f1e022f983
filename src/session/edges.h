/* edges.h - the edge sets of a plan: which edges does each stage sum over, which rows do their chunks need, and what
 * can be left out?
 */
#ifndef GS_SESSION_EDGES_H
#define GS_SESSION_EDGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/status.h"
#include "compile/compile.h" /* gs_cuts */
#include "gnnstream.h" /* gs_layer_graph */
#include "schedule/schedule.h" /* gs_edge_set */
#include "store/chunk_table.h"
#include "store/edge_scan.h" /* gs_edge_copy */
#include "store/store.h" /* gs_store */

#define GS_SCANS 32u

typedef enum gs_scan_kind {
    GS_SCAN_REACH, /* rows that edges into `targets` name: bits */
    GS_SCAN_COUNT, /* edges from `operands` into `targets`: a chunk table, and what chunks need of rows */
    GS_SCAN_NEED,  /* rows that the store's chunks need: bits */
    GS_SCAN_RUNS,  /* edges of one target and one type that lie side by side: how many such runs there are, u64 */
} gs_scan_kind;

/* A question. Sets of rows are bits, [words]; NULL: all rows. */
typedef struct gs_scan_key {
    gs_scan_kind kind;
    uint32_t direction;
    uint32_t rows, coarse_rows; /* of a granule of the sets, and of what chunks need */
    const uint64_t *targets, *operands;
    uint64_t words;
} gs_scan_key;

/* Memory of the asker; the second may be NULL with no bytes. */
typedef struct gs_scan_answer {
    void *part[2];
    uint64_t bytes[2];
} gs_scan_answer;

typedef struct gs_scans {
    gs_store *store; /* that they are of, shared; NULL: not opened yet */
    gs_counts counts; /* of plans of its programs, */
    gs_cuts cuts;     /* and graphs that were cut for them, */
    uint64_t tasks;   /* and all that were made before budgets that were refused */
    gs_edge_copy copy[2]; /* of the store's edges, by direction */
    uint64_t most, bytes; /* that it may hold, that it holds */
    uint32_t count;
    struct {
        gs_scan_key key;
        uint64_t bytes[2]; /* of the answer's parts, */
        uint8_t *packed[2]; /* and they without bytes of 0 */
    } scan[GS_SCANS]; /* with copies of its own */
} gs_scans;

/* True where the question was answered before: the answer is copied into a's parts. `s` may be NULL. */
bool gs_scans_find(const gs_scans *s, const gs_scan_key *k, const gs_scan_answer *a);
void gs_scans_keep(gs_scans *s, const gs_scan_key *k, const gs_scan_answer *a);
void gs_scans_drop(gs_scans *s);

typedef struct gs_session gs_session;

/* gs_store_open(), of several ranks also of this rank's shard. GS_EINVAL: it is another's. */
gs_status gs_session_open_store(gs_store **out, const char *dir);

/* The same as s->machine.owners, for planning; NULL where there are no ranks, or a topology file says their shares of a
 * store that all see. */
const uint32_t *gs_session_owners(gs_session *s);
/* A bit for each array of the store of which ranks have their own rows alone. */
uint32_t gs_session_dealt_arrays(const gs_session *s);

/* What a rank scans: the chunks of its own target intervals. */
typedef struct gs_scan_share {
    uint32_t ranks, parts; /* 1: it scans all */
    uint32_t first, end;   /* target intervals */
    uint32_t deal[GS_SHARDS_MOST + 1]; /* [ranks + 1] of all */
    uint8_t *wanted;       /* [parts * parts] of gs_scan_share_take(), for gs_scan_share_end(); NULL: all */
} gs_scan_share;

static inline void gs_scan_share_end(gs_scan_share *s) { gs_free(s->wanted); }
/* All but `wanted`. */
void gs_scan_share_describe(gs_scan_share *out, const gs_session *s);
gs_status gs_scan_share_take(gs_scan_share *out, const gs_session *s);
/* GS_ENOMEM: what is to be scanned is not here, as a trial is of all and a shard of one. */
gs_status gs_scan_share_check(const gs_session *s);
/* A meeting of ranks. table[parts * parts], of so many bytes a chunk, gets of each rank what it scanned; NULL: nothing
 * is to be had. */
gs_status gs_scan_share_chunks(const gs_scan_share *x, void *table, uint64_t chunk_bytes);

/* The edge sets of a plan: which edges does each stage sum over, and which rows do their chunks need? */

/* An edge file of the run: those edges of a direction that lie between two sets of rows. */
typedef struct gs_pruned_edges {
    uint32_t direction, targets, operands; /* numbers of row sets */
    gs_chunk *chunk;
    uint64_t bytes;
    uint32_t folder; /* of the run's spill folders, from the start on */
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
/* The same where planning has `left` bytes. */
gs_granules gs_session_granules_within(const gs_chunk_table *t, uint64_t left);
/* And single rows, where there are devices to which they may be copied by themselves; {0} for none. */
gs_granules gs_session_rows(const gs_session *s);
/* Which granules of rows each chunk of the store's sets needs, into set[].need and rows: reads the edge files
 * once. Free with gs_session_drop_needs() when the plan is made. */
gs_status gs_session_read_needs(gs_session *s, const gs_needs *needs);
void gs_session_drop_needs(gs_session *s);
/* Drops only what gs_session_read_needs() has read, which is of the store's own edges. */
void gs_session_drop_read_needs(gs_session *s);

/* A part of the rows' width for each of several devices, in place of target intervals: is that possible, and not
 * forbidden? */
bool gs_session_may_part(const gs_session *s);
/* The program's stages become several where s->variant says so, or the topology, and s->variant then, too.
 * GS_ENOMEM. */
gs_status gs_session_cut_stages(gs_session *s);

/* Which rows must each stage run for, and which edges does it need? Only what the loss can see. */

typedef struct gs_session gs_session;

/* Finds the rows that each stage must run for, and the edges that they
 * need, as further sets; fills config->needs.stage_rows and array_rows. Changes nothing where all rows are needed,
 * --no-prune is given or nothing can be written. */
gs_status gs_session_prune(gs_session *s, gs_schedule_config *config);
/* Writes the pruned edges into the spill folder, and the checksums into the chunk tables. */
gs_status gs_session_write_pruned(gs_session *s);
void gs_session_drop_pruned(gs_session *s);
/* The rows that stages run for, when the plan is made. */
void gs_session_drop_runs(gs_session *s);

#endif /* GS_SESSION_EDGES_H */
