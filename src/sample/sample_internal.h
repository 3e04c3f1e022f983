/* sample_internal.h - what the files of this room share: a sampler, an arena, and a batch while it is drawn. */
#ifndef GS_SAMPLE_SAMPLE_INTERNAL_H
#define GS_SAMPLE_SAMPLE_INTERNAL_H

#include "sample/epoch_order.h"
#include "sample/random_draw.h"
#include "sample/sampler.h"
#include "sample/unique.h"

/* Edges that are on their way from memory: named, not yet looked at. */
#define GS_SAMPLE_PENDING 512u

/* How often an edge was drawn beforehand, then its coefficient. */
typedef union gs_saint_edge {
    uint32_t count;
    float factor;
} gs_saint_edge;

/* Which vertices have edges: which is the r-th of them? */
typedef struct gs_listed {
    uint32_t *before; /* [blocks + 1] how many there are before each block of GS_LISTED_ROWS vertices */
    uint32_t blocks;
} gs_listed;
#define GS_LISTED_ROWS 64u

/* Which batches that were drawn beforehand have vertex v: [first[v], first[v + 1]) of the list, ascending. */
typedef struct gs_saint_drawn {
    uint64_t *first;  /* [vertices + 1] */
    uint32_t *number;
} gs_saint_drawn;

struct gs_sampler {
    const gs_adjacency *in, *out;
    gs_sampler_options options;
    gs_batch_limits limits;
    uint32_t *target;          /* [targets] ascending */
    uint64_t *is_target;       /* a bit a vertex; of all kinds but NEIGHBOR */
    uint32_t targets, batches, things; /* things: what an epoch puts into an order: targets, or intervals */
    uint64_t longest;          /* NEIGHBOR: the greatest in-degree */
    uint32_t key[2];
    gs_listed listed[2];       /* SAINT_EDGE: vertices with in-edges, and with out-edges; equal without `out` */
    gs_saint_edge *edge_factor; /* [edges] with coverage, of lists in memory */
    gs_saint_drawn drawn;      /* with coverage, of lists in the store */
    float *loss_factor;        /* [vertices] with coverage */
};

/* The drawn edges before they are sorted: of row t, [start[t], start[t + 1]). */
typedef struct gs_raw_edges {
    uint32_t *start;   /* [vertices + 1] */
    uint32_t *source;  /* [edges] local rows */
    uint32_t *target;  /* [edges] only with types */
    uint16_t *type;    /* [edges] only with types */
    float *weight;     /* [edges] only with weights */
    uint32_t *by_type, *by_source; /* [edges] only with types: edges in these orders */
    uint32_t *type_count;          /* [types + 1] only with types */
    uint64_t count, most;
} gs_raw_edges;

/* Rows of a hop, or of a subgraph, on their way through the columns, for lists that stay in the store. All NULL
 * elsewhere. */
typedef struct gs_column_rows {
    uint32_t *place;   /* [edges] of a raw edge, its place in the list of its row (by type: among those of its type);
                        * of subgraphs: its row, then its place */
    uint32_t *order;   /* [vertices] rows by their vertices; not of CLUSTER */
    uint32_t *passed;  /* [vertices] edges of row order[p] that have gone by; not of CLUSTER */
    uint32_t *types;   /* by type: [vertices * types] edges of each type in a row's list; then those that went by */
    uint32_t count, at; /* rows; the first that the columns have not passed */
} gs_column_rows;

/* Edges that lists in the store are asked for, and where their other ends are. Of GraphSAINT's batches. */
typedef struct gs_list_query {
    uint32_t *near;    /* [batch_size] whose list */
    uint64_t *place;   /* [batch_size] which edge of it */
    uint32_t *far;     /* [batch_size] the answer; as it was where the list is empty */
    uint32_t *order;   /* [batch_size] by `near` */
    uint32_t *spare;   /* [batch_size] */
    uint64_t *passed;  /* [batch_size] edges that have gone by of the list of near[order[p]], the first of its vertex */
    uint32_t count, at;
} gs_list_query;

struct gs_batch_arena {
    void *memory;
    uint64_t bytes;
    gs_unique unique;
    gs_raw_edges raw;
    float *in_degree, *loops, *loss_weight;
    uint32_t *cursor;          /* [vertices + 1] */
    void *chunk[2];
    uint32_t *place;           /* [gs_sample__most_places()] */
    gs_place_set set;
    uint64_t *pending;         /* [GS_SAMPLE_PENDING] edges of the adjacency */
    uint32_t pendings;
    gs_column_rows rows;
    gs_list_query query[2];    /* SAINT_EDGE: of in-edges and of out-edges, without `out` both in the first; SAINT_WALK:
                                * where each walk is and what it follows, in the first */
    gs_random_stream *stream;  /* SAINT_WALK: [batch_size] of each walk, where lists stay in the store */
    uint32_t *row_of;          /* CLUSTER: [batch_size * interval_rows] */
    uint32_t *interval_slot;   /* [parts] CLUSTER: place of a chosen interval + 1, or 0; GraphSAINT, of lists that stay
                                * in the store: the batch has rows there. All 0 between batches. */
};

/* batch_arena.c: bytes that an arena of such limits takes. */
uint64_t gs_sample__arena_bytes(const gs_sampler *s, const gs_batch_limits *l);
/* The greatest number of places that is drawn at once: a fanout above all in-degrees draws no more than these. */
uint32_t gs_sample__most_places(const gs_sampler *s);

/* assemble.c: sorts the raw edges into the batch's two chunks. Its vertices and `expanded` are set. */
void gs_sample__assemble(gs_batch *b, const gs_sampler *s, gs_batch_arena *a);

/* neighbor.c: the batch's targets from `first` on, at most `count`, as rows; how many edges a list of `degree` gives;
 * and these, in a->place, for all but weighted draws (of lists in memory alone). */
void gs_sample__take_targets(gs_batch *b, const gs_sampler *s, gs_batch_arena *a, uint32_t first, uint32_t count);
uint64_t gs_sample__drawn_of(const gs_sampler_options *o, uint32_t fanout, uint64_t degree);
void gs_sample__draw_places(const gs_sampler *s, gs_batch_arena *a, uint32_t k, uint32_t degree, gs_random_stream *r);
/* neighbor.c: in_degree and loops of all rows, when all hops were drawn. */
void gs_sample__count_degrees(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a);

/* neighbor_columns.c: the same as gs_sample__neighbor() of batches whose epochs and numbers are set, in hops of all of
 * them, for lists that stay in the store. Those that have more than the limits overflow: GS_EBUDGET, of the first. */
gs_status gs_sample__neighbor_columns(gs_batch *b, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t batches,
                                      uint32_t first, uint32_t count, uint32_t threads);

/* Each fills vertices, targets, expanded, hops, degrees and the raw edges. NEIGHBOR: of the batch's targets from
 * `first` on, at most `count`. */
gs_status gs_sample__neighbor(gs_batch *b, const gs_sampler *s, gs_batch_arena *a, uint32_t first, uint32_t count);
gs_status gs_sample__cluster(gs_batch *b, const gs_sampler *s, gs_batch_arena *a);
gs_status gs_sample__saint(gs_batch *b, const gs_sampler *s, gs_batch_arena *a);

/* cluster.c: the same of batches whose epochs and numbers are set, for lists that stay in the store: their chunks go by
 * once. Errors as gs_sample__neighbor_columns(). */
gs_status gs_sample__cluster_columns(gs_batch *b, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t batches);

/* saint_draw.c: what drawing vertices of a graph needs once. Then the vertices of a batch, as the arena's table lists
 * them: GS_EBUDGET where they are too many. And their rows: those of targets first. */
gs_status gs_saint__open(gs_sampler *s);
gs_status gs_saint__draw(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a);
gs_status gs_saint__number_rows(gs_batch *b, const gs_sampler *s, gs_batch_arena *a);
/* The same of lists that stay in the store, in steps: edges to follow, as a query of a->query[]; what the answers
 * add. Batches overflow. */
void gs_saint__begin(gs_batch *b, const gs_sampler *s, gs_batch_arena *a);
void gs_saint__ask_step(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a);
void gs_saint__take_step(gs_batch *b, const gs_sampler *s, gs_batch_arena *a, uint32_t query);

/* saint_cover.c: coefficients from batches drawn beforehand, and that of an edge where lists stay in the store. */
gs_status gs_saint__cover(gs_sampler *s);
float gs_saint__edge_factor(const gs_sampler *s, uint32_t source, uint32_t dest);
#define GS_SAINT_MOST_FACTOR 1e4f /* as torch_geometric bounds coefficients */

/* saint_steps.c: draws vertices alone of batches whose epochs and numbers are set. Those that are too many overflow. */
gs_status gs_saint__draw_columns(gs_batch *b, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t batches,
                                 uint32_t threads);
/* saint_columns.c: the same of GraphSAINT's batches, for lists that stay in the store. */
gs_status gs_sample__saint_columns(gs_batch *b, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t batches,
                                   uint32_t threads);

/* row_order.c: edges in any order, each with its row in a->rows.place, come in the order of their rows, those of a row
 * as they were, and a->raw.start says where. */
void gs_sample__order_by_row(gs_batch_arena *a, uint32_t rows);

/* saint.c: lists in memory: edges between the batch's rows become its raw edges, or with `count` are counted there. */
gs_status gs_saint__find_edges(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a, gs_saint_edge *count);

/* batch_arena.c: an arena for drawing vertices alone. GS_ENOMEM. */
gs_status gs_sample__vertex_arena_make(gs_batch_arena **out, const gs_sampler *s);
uint64_t gs_sample__vertex_arena_bytes(const gs_sampler *s);

/* Has the caller told the sampler to give up? It is asked this every GS_STOP_EVERY steps at the latest, less than a
 * hundredth of a second. Then what is drawn does not fit, and this is why. */
#define GS_STOP_EVERY 4096u
static inline bool gs_sample__is_stopped(const gs_sampler *s)
{
    return s->options.stop != NULL && *s->options.stop != 0;
}
/* batch_limits.c: GS_EINTERRUPTED where it has; else GS_OK. */
gs_status gs_sample__check_stop(const gs_sampler *s);

/* batch_limits.c: what a batch can have at most. */
void gs_sample__bounds(gs_batch_limits *l, const gs_sampler *s);

/* batch_limits.c: "batch 3 of epoch 1 has more than 5 vertices ..." and what to do. GS_EBUDGET; GS_EINTERRUPTED where
 * the sampler was told to give up, which ends draws as an overflow does. */
gs_status gs_sample__overflow(const gs_batch *b, const gs_sampler *s);

static inline bool gs_sample__is_target(const gs_sampler *s, uint32_t v)
{
    return (s->is_target[v / 64] >> (v % 64) & 1) != 0;
}

/* Type and weight of edge `place` of the adjacency, to those of raw edge k. */
static inline void gs_raw__carry(gs_raw_edges *raw, uint64_t k, const gs_adjacency *a, uint64_t place)
{
    if (raw->type != NULL)
        raw->type[k] = (uint16_t)gs_adjacency_type(a, place);
    if (raw->weight != NULL)
        raw->weight[k] = a->weight != NULL ? a->weight[place] : 1;
}

#endif /* GS_SAMPLE_SAMPLE_INTERNAL_H */
