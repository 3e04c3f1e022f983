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

struct gs_sampler {
    const gs_adjacency *in, *out;
    gs_sampler_options options;
    gs_batch_limits limits;
    uint32_t *target;          /* [targets] ascending */
    uint64_t *is_target;       /* a bit a vertex; of all kinds but NEIGHBOR */
    uint32_t targets, batches, things; /* things: what an epoch puts into an order: targets, or intervals */
    uint64_t longest;          /* NEIGHBOR: the greatest in-degree */
    uint32_t key[2];
    double *mass;              /* SAINT_EDGE: [vertices + 1] sums of what the in-edges of the vertices before weigh */
    uint32_t *out_degree;      /* SAINT_EDGE: [vertices] */
    gs_saint_edge *edge_factor; /* [edges] with coverage */
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

/* Rows of a hop on their way through the columns, for lists that stay in the store. All NULL elsewhere. */
typedef struct gs_column_rows {
    uint32_t *place;   /* [edges] of a raw edge, its place in the list of its row; CLUSTER: its row, then its place */
    uint32_t *order;   /* NEIGHBOR: [vertices] rows of the hop by their vertices */
    uint32_t *passed;  /* NEIGHBOR: [vertices] edges of row order[p] that have gone by */
    uint32_t count, at; /* rows of the hop; the first that the columns have not passed */
} gs_column_rows;

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
    uint32_t *row_of;          /* CLUSTER: [batch_size * interval_rows] */
    uint32_t *interval_slot;   /* CLUSTER: [parts]: place of a chosen interval + 1, or 0 */
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

/* saint.c: sums for drawing edges, and coefficients from batches drawn beforehand. */
gs_status gs_saint__open(gs_sampler *s);
gs_status gs_saint__cover(gs_sampler *s);

/* batch_limits.c: what a batch can have at most. */
void gs_sample__bounds(gs_batch_limits *l, const gs_sampler *s);

/* batch_limits.c: "batch 3 of epoch 1 has more than 5 vertices ..." and what to do. GS_EBUDGET. */
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
