/* sample_internal.h - what the files of this room share: a sampler and its law, an arena, a batch while it is drawn.
 *
 * A law names what a batch is to have: places in lists of edges, or vertices. Where the lists are in memory it looks
 * there at once; where they stay in the store, all batches that are drawn together name theirs, and one pass over the
 * columns that these need says what they are (gs_columns).
 */
#ifndef GS_SAMPLE_SAMPLE_INTERNAL_H
#define GS_SAMPLE_SAMPLE_INTERNAL_H

#include "sample/random_draw.h"
#include "sample/sampler.h"
#include "sample/unique.h"
#include "store/edge_scan.h"

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

typedef struct gs_sample_law gs_sample_law;

struct gs_sampler {
    const gs_sample_law *law;
    const gs_adjacency *in, *out;
    gs_sampler_options options;
    gs_batch_limits limits;
    uint32_t *target;          /* [targets] ascending */
    uint64_t *is_target;       /* a bit a vertex, where the law has subgraphs */
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
    char *feature;     /* [edges] rows of feature_bytes, only with features */
    uint32_t feature_bytes;
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
    /* with seeds: of the batch at hand, in `seed_memory`; and lists of what is left out: gs_sample__leave_out() */
    gs_batch_seeds seeds;
    void *seed_memory;
    uint32_t *left_out;        /* [most vertices + 2 * most edges of its seeds] */
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

/* Edges of lists that stay in the store: one pass over the columns that a group of batches needs.
 *
 * Columns come in the order of the file, and the chunks of a column in the order of its operands; so the list of a
 * vertex, as gs_adjacency has it, goes by in order, in pieces. All batches of a group meet a chunk together, each in an
 * arena of its own. Threads: one at a time. */
typedef struct gs_columns {
    gs_edge_scanner *scan;
    const gs_chunk_table *table; /* the store's, which outlives this */
    uint8_t *wanted;             /* [parts * parts] chunks of the pass at hand */
} gs_columns;

/* Batches that are drawn together. Those that have more than the limits overflow, and are left out from then on. */
typedef struct gs_sample_pass {
    const gs_sampler *s;
    gs_columns *columns;          /* of lists that stay in the store; else NULL, and there is one batch */
    gs_batch *batch;              /* [batches] */
    gs_batch_arena *const *arena; /* [batches] */
    uint32_t batches, threads;
} gs_sample_pass;

/* One way to draw batches. A slot that may be NULL says so. */
struct gs_sample_law {
    gs_sampler_facts facts;
    bool subgraph;        /* batches are some vertices and all edges between them, without hops */
    bool orders_targets;  /* an epoch's order is of targets; else of intervals, if of anything */
    bool has_rows_by_vertex; /* gs_batch_arena.unique says which row a vertex has */
    /* GS_EINVAL: an option that makes no sense, or makes none with these lists. */
    gs_status (*check)(const gs_sampler_options *o, const gs_adjacency *in, uint32_t targets);
    /* Vertices that are drawn for a batch, all told, where an epoch is as many as draw each vertex about once. NULL: an
     * epoch is an order. */
    uint64_t (*draws)(const gs_sampler_options *o);
    gs_status (*open)(gs_sampler *s); /* what draws of this graph need once; may be NULL */
    void (*bound)(uint64_t *rows, uint64_t *edges, const gs_sampler *s); /* what a batch can have at most */
    uint32_t (*places)(const gs_sampler *s); /* drawn at once, at most; NULL: 1 */
    /* The arena's arrays that are this law's own. May be NULL. */
    void (*lay_out)(gs_batch_arena *a, const gs_sampler *s, const gs_batch_limits *l, gs_placing *p);
    uint32_t (*passes)(const gs_sampler_options *o, bool out); /* gs_sampler_passes() */
    /* Fills vertices, targets, expanded, hops, degrees and the raw edges of batches whose epochs and numbers are set.
     * Of laws that have parts: of each batch's targets from `first` on, at most `count`. Batches overflow, also when
     * the sampler was told to give up; errors are of reading. */
    gs_status (*draw)(const gs_sample_pass *w, uint32_t first, uint32_t count);
    /* GraphSAINT's: lets the tables of the arenas list the vertices of the batches; as draw(). */
    gs_status (*draw_vertices)(const gs_sample_pass *w);
};

#define GS_SAMPLE_LAW(KIND, law) extern const gs_sample_law gs_sample__##law;
GS_SAMPLER_MAP(GS_SAMPLE_LAW)
#undef GS_SAMPLE_LAW

/* An arena for drawing vertices alone. GS_ENOMEM. */
gs_status gs_sample__vertex_arena_make(gs_batch_arena **out, const gs_sampler *s);
uint64_t gs_sample__vertex_arena_bytes(const gs_sampler *s);

/* assemble.c: sorts the raw edges into the batch's two chunks. Its vertices and `expanded` are set. */
void gs_sample__assemble(gs_batch *b, const gs_sampler *s, gs_batch_arena *a);
/* With seeds, when the edges into the targets, and no others, were drawn: takes those out that the seeds say. */
void gs_sample__leave_out(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a);
/* Edges in any order, each with its row in a->rows.place, come in the order of their rows, those of a row as they were,
 * and a->raw.start says where. */
void gs_sample__order_by_row(gs_batch_arena *a, uint32_t rows);

/* saint.c: coefficients from batches drawn beforehand. */
gs_status gs_saint__cover(gs_sampler *s);

/* adjacency.c: rows of each batch that are not expanded, in order of their vertices, for a pass; all chunks of columns
 * that have one are wanted; with `named`, of those that have one of which an edge was named. */
void gs_columns__sort_rows(const gs_sample_pass *w, bool named);

/* Row a->rows.order[p] of the batch is target t of the chunk, whose operands begin at row `operand` of the graph. */
typedef void gs_column_visit(const gs_sampler *s, gs_batch *b, gs_batch_arena *a, uint32_t p, const gs_chunk_view *v,
                             uint32_t t, uint32_t operand);
/* The wanted chunks go by, and each meets the sorted rows of each batch. `batch_wants` (NULL: all do) is asked whether
 * a batch has use of a chunk. Blocks for the disk. GS_EFORMAT: a damaged chunk; GS_EIO, GS_EINTERRUPTED. */
typedef bool gs_column_want(const gs_batch_arena *a, uint32_t target, uint32_t operand);
gs_status gs_columns__meet(const gs_sample_pass *w, gs_column_want *batch_wants, gs_column_visit *visit);

/* query[which] of each arena is answered. Blocks for the disk; errors as above. */
gs_status gs_columns__ask(const gs_sample_pass *w, uint32_t which);

/* Has the caller told the sampler to give up? It is asked this every GS_STOP_EVERY steps at the latest, less than a
 * hundredth of a second. Then what is drawn does not fit, and this is why. */
#define GS_STOP_EVERY 4096u
static inline bool gs_sample__is_stopped(const gs_sampler *s)
{
    return s->options.stop != NULL && *s->options.stop != 0;
}
/* GS_EINTERRUPTED where it has; else GS_OK. */
gs_status gs_sample__check_stop(const gs_sampler *s);

/* "batch 3 of epoch 1 has more than 5 vertices ..." and what to do. GS_EBUDGET; GS_EINTERRUPTED where
 * the sampler was told to give up, which ends draws as an overflow does. */
gs_status gs_sample__overflow(const gs_batch *b, const gs_sampler *s);

static inline bool gs_sample__is_target(const gs_sampler *s, uint32_t v)
{
    return (s->is_target[v / 64] >> (v % 64) & 1) != 0;
}

static inline void gs_raw__carry_features(const gs_raw_edges *raw, uint64_t k, const void *rows, uint64_t place)
{
    if (raw->feature != NULL)
        memcpy(raw->feature + k * raw->feature_bytes, (const char *)rows + place * raw->feature_bytes,
               raw->feature_bytes);
}

/* What edge `place` of the adjacency carries, to raw edge k. */
static inline void gs_raw__carry(gs_raw_edges *raw, uint64_t k, const gs_adjacency *a, uint64_t place)
{
    if (raw->type != NULL)
        raw->type[k] = (uint16_t)gs_adjacency_type(a, place);
    if (raw->weight != NULL)
        raw->weight[k] = a->weight != NULL ? a->weight[place] : 1;
    gs_raw__carry_features(raw, k, a->feature, place);
}

/* The same of edge `place` of a chunk. */
static inline void gs_raw__carry_chunk(gs_raw_edges *raw, uint64_t k, const gs_chunk_view *v, uint64_t place)
{
    if (raw->type != NULL)
        raw->type[k] = (uint16_t)gs_type_at(v->type, v->type_bytes, place);
    if (raw->weight != NULL)
        raw->weight[k] = v->weight != NULL ? v->weight[place] : 1;
    gs_raw__carry_features(raw, k, v->feature, place);
}

#endif /* GS_SAMPLE_SAMPLE_INTERNAL_H */
