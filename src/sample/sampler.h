/* sampler.h - which small graph is batch `number` of an epoch?
 *
 * A batch depends on the sampler's seed, the epoch and the number alone: not on threads, on budgets or on what was
 * drawn before. A sampler never changes after it was opened, so any number of threads may draw, each into an arena of
 * its own; over lists that stay in the store (gs_adjacency_stream()), one caller at a time. Nothing is allocated
 * while batches are drawn. docs/design/sampling.md has the laws of all samplers.
 */
#ifndef GS_SAMPLE_SAMPLER_H
#define GS_SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h" /* GS_ENDS_BY */
#include "base/dtype.h"
#include "base/status.h"
#include "store/chunk_table.h"
#include "store/chunk_view.h"
#include "store/store.h"

/* -- which edges end at a vertex? All in-edges (or out-edges) of a store in host memory, for samplers.
 *
 * One list a vertex, in store order, indices of the whole graph: 4 bytes an edge, 4 or 8 a vertex, and what the edges
 * carry. It is read from the store's chunks front to back, twice (to count, to fill), and never changes then, so any
 * number of threads may use it.
 */

typedef struct gs_adjacency {
    uint32_t vertices;
    uint64_t edges;
    uint32_t edge_types;
    gs_edge_data data;     /* of each edge */
    uint32_t parts, interval_rows; /* of the store, for batches of intervals */
    const gs_chunk_table *chunks;  /* the store's, which outlives this; NULL: edges of no store */
    /* Edges of vertex v are [first(v), first(v + 1)); one of the two is NULL: 32 bits where all edges fit. */
    const uint32_t *first32;
    const uint64_t *first64;
    const uint32_t *other;  /* [edges] the far end: of each interval of the store in turn, by type, then ascending */
    bool by_type;           /* the lists go by type first: gs_adjacency_sort_types() */
    const void *type;       /* [edges] of data.type_bytes, or NULL */
    const float *weight;    /* [edges], or NULL */
    const void *feature;    /* [edges] rows of data.feature_bytes, or NULL */
    const uint64_t *loops;  /* a bit a vertex: it has self loops; NULL where none has */
    /* Of lists that stay in the store (gs_adjacency_stream()): self loops of each vertex (NULL where none has any), and
     * what reads the lists; then `other`, `type`, `weight`, `feature`, `loops` are NULL. gs_adjacency_count(): none. */
    const uint32_t *own;
    struct gs_columns *columns;
    uint64_t bytes;         /* of memory that this takes */
} gs_adjacency;

static inline uint64_t gs_adjacency_first(const gs_adjacency *a, uint64_t v)
{
    return a->first32 != NULL ? a->first32[v] : a->first64[v];
}
static inline uint64_t gs_adjacency_degree(const gs_adjacency *a, uint32_t v)
{
    return gs_adjacency_first(a, (uint64_t)v + 1) - gs_adjacency_first(a, v);
}
static inline uint32_t gs_adjacency_type(const gs_adjacency *a, uint64_t edge)
{
    return gs_type_at(a->type, a->data.type_bytes, edge);
}

/* Self loops of a vertex, of lists in memory and of those that stay in the store. */
uint32_t gs_adjacency_loops(const gs_adjacency *a, uint32_t v);
/* Bytes that gs_adjacency_load() keeps, and beside them while it reads at least. */
uint64_t gs_adjacency_bytes(const gs_store *s);
uint64_t gs_adjacency_read_bytes(const gs_store *s);

/* In-edges of every vertex (GS_BY_DEST), or out-edges (GS_BY_SOURCE). Blocks for as long as the disk needs for the edge
 * file twice. `memory` bounds all that it takes, in bytes: GS_EBUDGET names what would do. GS_EFORMAT for a damaged
 * chunk; GS_EIO, GS_ENOMEM; GS_EINTERRUPTED within a second of `stop` (may be NULL). On GS_OK the caller owns *out:
 * gs_adjacency_free(). */
gs_status gs_adjacency_load(gs_adjacency **out, const gs_store *s, gs_direction d, uint64_t memory,
                            const volatile int *stop);

/* Puts each list in order of type first, then of the far end, as draws by type need it. Takes 48 bytes and
 * its features an edge of the longest list meanwhile. GS_ENOMEM. */
gs_status gs_adjacency_sort_types(gs_adjacency *a);

/* Of a shard either has the lists of its own vertices, and this those of all: `give` is called by all who have one, and
 * gives each the bytes first[r] to first[r + 1] of x that shard r has. What it returns. */
typedef gs_status gs_adjacency_give(void *x, const uint64_t *first);
gs_status gs_adjacency_share(gs_adjacency *a, const gs_store_shard *shard, gs_adjacency_give *give);

/* The same edges, whose lists stay in the store: in memory are the places of the lists, 4 or 8 bytes a vertex, and self
 * loops of in-edges where there are any. Batches are drawn of these as of lists in memory, with the same result, in
 * sequential passes for all batches of a group (docs/design/sampling.md); so a sampler over them is one caller's at a
 * time. Blocks while all edges are read once. It takes out->bytes, and 8 bytes a vertex meanwhile, whatever there is.
 * GS_EFORMAT, GS_EIO, GS_ENOMEM, GS_EINTERRUPTED. */
gs_status gs_adjacency_stream(gs_adjacency **out, const gs_store *s, gs_direction d, const volatile int *stop);
/* The places alone, from which degrees follow, for the same reading. */
gs_status gs_adjacency_count(gs_adjacency **out, const gs_store *s, gs_direction d, const volatile int *stop);
uint64_t gs_adjacency_bytes_read(const gs_adjacency *a); /* from the store, of lists that stay there; else 0 */
void gs_adjacency_free(gs_adjacency *a); /* NULL is allowed; only what was loaded */

/* ---- a batch ----------------------------------------------------------- */

/* One batch: the small graph that a sampler drew, as a store of one chunk in memory.
 *
 * A vertex is in a batch once, and its in-edges are drawn where it is first reached, as torch_geometric's
 * NeighborLoader draws them: all layers of a model run over the same edges. Rows of a batch are local: row i is the
 * store's row vertex[i]. Edges are what the store's are (docs/format.md, "An edge chunk"): one chunk by destination and
 * one by source, of one interval of gs_batch_limits.vertices rows, with all sections in place and in order; a deep
 * check passes. Edges that are there more than once stay so.
 *
 * Everything points into the arena that the batch was drawn into (sampler.h) and stands until the next batch is
 * drawn there. Units: elements; bytes where a name says so.
 */

#define GS_SAMPLE_HOPS 16u /* at most */
#define GS_SAMPLE_TYPE_FANOUTS 512u /* hops times types of edges, where each type has a fanout of its own */
#define GS_FANOUT_NONE UINT32_MAX

typedef struct gs_batch {
    uint32_t epoch, number;    /* with the sampler's seed: what the batch depends on */
    bool overflows;            /* it has more than the limits: all below is 0 */
    uint32_t vertices;
    uint32_t targets;          /* rows [0, targets): those that the loss is of */
    uint32_t expanded;         /* rows [0, expanded): those whose in-edges were drawn */
    uint32_t hops;             /* 0 where the sampler has none: then all rows are expanded */
    uint32_t hop_end[GS_SAMPLE_HOPS + 1]; /* rows reached by hop h: [h - 1]..[h]; [0] is `targets`, [hops] all */
    bool seeds_alone;          /* gs_sampler_seeds(): who draws it makes vertices, expanded, edges and what follows */
    const uint32_t *vertex;    /* [vertices] rows of the store, each once */
    const float *in_degree;    /* [vertices] what the store's array of this name is to the batch: see below */
    const float *loops;        /* [vertices] the same; NULL where the store has none */
    const float *loss_weight;  /* [targets] factors of their losses in the sum over them, or NULL: mean of all */
    const void *seeds;         /* gs_batch_seeds.of_caller, where a gs_seed_source has said its targets; else NULL */
    uint64_t edges;
    gs_chunk chunk[2];         /* of each direction: offset 0, length as the format has it, checksum 0 */
    void *bytes[2];            /* [chunk[d].length], aligned to GS_BLOCK_BYTES; NULL without edges */
    gs_chunk_view view[2];     /* of these bytes; {0} without edges */
} gs_batch;

/* in_degree: edges drawn into the row, where it was expanded. Of the others, which have no edges here, as many as would
 * have been drawn: the least of the store's in-degree and the last hop's fanout (the store's in-degree where all are
 * taken). GraphSAINT's batches have the store's. loops: likewise; of rows that were not expanded, as many as are to be
 * expected. */

/* Limits that no batch of a sampler exceeds, and the table that an engine sees: P = 1. */
typedef struct gs_batch_limits {
    uint32_t vertices;       /* rows of a batch: the interval's rows, so indices have 2 bytes up to 65536 */
    uint64_t edges;
    uint64_t chunk_bytes[2]; /* of the chunks of each direction, at most */
    gs_edge_data data;       /* of each edge, as the store's; but weights of GraphSAINT's batches are coefficients */
    uint64_t arena_bytes;    /* of one arena, all its scratch included */
} gs_batch_limits;

/* Bytes of an index in a batch's chunks. */
static inline uint32_t gs_batch_index_bytes(const gs_batch_limits *l) { return l->vertices <= 65536 ? 2 : 4; }

/* All samplers. X(KIND, law): the law, of the sampler's own file, is all that is known of it (sample_internal.h). */
#define GS_SAMPLER_MAP(X)       \
    X(NEIGHBOR, neighbor)       \
    X(CLUSTER, cluster)         \
    X(SAINT_NODE, saint_node)   \
    X(SAINT_EDGE, saint_edge)   \
    X(SAINT_WALK, saint_walk)

typedef enum gs_sampler_kind {
#define GS_SAMPLER_KIND(KIND, law) GS_SAMPLER_##KIND,
    GS_SAMPLER_MAP(GS_SAMPLER_KIND)
#undef GS_SAMPLER_KIND
    GS_SAMPLER_KINDS, /* how many */
} gs_sampler_kind;

/* Options that not every sampler reads. */
#define GS_SAMPLER_READS_FANOUT (1u << 0)      /* and how draws from a list are made: .by_type, .replace, .weighted */
#define GS_SAMPLER_READS_SHUFFLE (1u << 1)
#define GS_SAMPLER_READS_WALK_LENGTH (1u << 2)
#define GS_SAMPLER_READS_COVERAGE (1u << 3)

/* What callers may know of a sampler before one is opened. */
typedef struct gs_sampler_facts {
    const char *name;      /* of .sampler */
    uint32_t reads;        /* GS_SAMPLER_READS_* */
    bool counts_intervals; /* batch_size does */
    bool needs_edges;      /* a graph without any has no batch */
    bool needs_out;        /* lists of out-edges, where the graph is not symmetric */
    bool needs_out_places; /* their places alone, of lists in memory as in the store: gs_adjacency_count() */
    bool has_parts;        /* a batch that is too large can be drawn in parts: gs_sampler_draw_part() */
} gs_sampler_facts;

/* Targets of a batch that are no part of a list: some rows of the graph, and edges among them that the batch is to do
 * without, as those are what it is asked about. */
typedef struct gs_batch_seeds {
    const uint32_t *vertex; /* [vertices] rows of the store, each once: its targets, in this order */
    uint32_t vertices;
    const uint32_t *end[2]; /* [edges] sources and destinations of edges that are left out, as places in vertex[] */
    const uint32_t *type;   /* [edges] their types; NULL: edges of any type */
    uint32_t edges;
    const void *of_caller;  /* gs_batch.seeds */
} gs_batch_seeds;

typedef struct gs_seed_source {
    void *context;
    /* Those of a batch, with all that they point to in `memory`, [bytes], which is the arena's, aligned to 64 bytes.
     * One thread at a time. What is not GS_OK ends the drawing. */
    gs_status (*fill)(void *context, gs_batch_seeds *out, void *memory, uint32_t epoch, uint32_t number);
    uint64_t bytes;
    uint32_t batches;                   /* of an epoch */
    uint32_t most_vertices, most_edges; /* of a batch's seeds */
    bool both_ways;                     /* edges the other way round are left out, too */
} gs_seed_source;

typedef struct gs_sampler_options {
    gs_sampler_kind kind;
    uint64_t seed;
    /* Targets of a batch; of clusters, intervals; of GraphSAINT, vertices or edges drawn, or walks begun. */
    uint32_t batch_size;
    bool ordered;              /* each epoch takes targets, or intervals, in store order: not shuffled */
    /* NEIGHBOR: */
    uint32_t hops;             /* 1 to GS_SAMPLE_HOPS */
    uint32_t fanout[GS_SAMPLE_HOPS]; /* in-edges of each vertex reached by so many hops; 0: all */
    bool by_type;              /* so many of each type of edge */
    /* With by_type, where types differ: that of a hop and a type at [hop * types + type], GS_FANOUT_NONE: no edge;
     * .fanout then has the most of each hop. types 0: .fanout is that of all. */
    uint32_t types, type_fanout[GS_SAMPLE_TYPE_FANOUTS];
    bool replace;              /* with replacement */
    bool weighted;             /* with probabilities as the edges' weights */
    /* GraphSAINT: */
    uint32_t walk_length;      /* edges of a walk */
    uint32_t batches;          /* of an epoch; 0: as many as draw each vertex about once */
    uint32_t coverage;         /* how often each vertex is drawn, on average, for the coefficients; 0: none are made */
    uint64_t cover_bytes;      /* what may be taken to draw such batches of lists in the store: more go by together */
    bool coefficients_alone;   /* edges weigh these, whatever the store's weights */
    /* What a batch may have; 0: what it can have at most, less where an arena would exceed `arena_bytes` (0: no bound).
     * A batch that has more is refused when it is drawn. */
    uint32_t most_vertices;
    uint64_t most_edges;
    uint64_t arena_bytes;
    const volatile int *stop;  /* becomes nonzero: what draws gives up within a second, GS_EINTERRUPTED; may be NULL */
    const gs_seed_source *seeds; /* NEIGHBOR: in the place of a list of targets; it outlives the sampler, of which one
                                  * caller draws at a time, then. NULL: there is a list */
} gs_sampler_options;

static inline uint32_t gs_fanout_of(const gs_sampler_options *o, uint32_t hop, uint32_t type)
{
    return o->types > 0 ? o->type_fanout[hop * o->types + type] : o->fanout[hop];
}

typedef struct gs_sampler gs_sampler;
typedef struct gs_batch_arena gs_batch_arena;

/* `in`: in-edges. `out`: out-edges, of GraphSAINT's samplers in a graph that is not symmetric (SAINT_NODE: their places
 * alone do, gs_adjacency_count()); NULL elsewhere: then in-edges are taken for out-edges, too. Lists of both are in
 * memory, or of both in the store. `target`: [targets] ascending rows that the loss is of; copied. `in` and `out` stay
 * the caller's and outlive the sampler.
 *   GS_EINVAL    an option that makes no sense, named
 *   GS_EBUDGET   arena_bytes does not hold one batch
 *   GS_ENOMEM
 * With `coverage` this draws coverage * vertices / (vertices of a batch) batches and blocks as long; coefficients take
 * 4 bytes an edge and a vertex, and of lists in the store gs_sampler_cover_bytes(). */
gs_status gs_sampler_open(gs_sampler **sampler, const gs_adjacency *in, const gs_adjacency *out,
                          const uint32_t *target, uint32_t targets, const gs_sampler_options *options);
void gs_sampler_close(gs_sampler *s); /* NULL is allowed */
GS_ENDS_BY(gs_sampler, gs_sampler_close)

const gs_sampler_facts *gs_sampler_facts_of(gs_sampler_kind kind);
/* Passes over the edges of lists that stay in the store, for batches that are drawn together; 0 where each chunk goes
 * by in one batch of an epoch, whatever is drawn together. `out`: there are lists of out-edges. */
uint32_t gs_sampler_passes(const gs_sampler_options *o, bool out);

/* What coefficients take where lists stay in the store, and as much again of 4 * coverage bytes a vertex meanwhile. */
uint64_t gs_sampler_cover_bytes(uint64_t vertices, uint32_t coverage);
uint64_t gs_sampler_bytes(const gs_sampler *s); /* of memory that it takes, arenas excluded */

/* Batches that are drawn from now on are, or are not, .ordered. Nothing is drawn meanwhile. */
void gs_sampler_order(gs_sampler *s, bool ordered);

uint32_t gs_sampler_batches(const gs_sampler *s); /* of an epoch */
uint32_t gs_sampler_most_targets(const gs_sampler *s); /* of a batch */
const gs_batch_limits *gs_sampler_limits(const gs_sampler *s);

/* Narrows the limits of the options by trial: draws `trials` batches of epoch 0, from its first to its last, and sets
 * most_vertices and most_edges to the most that one of them had and a quarter more, where that is less than it can
 * have. What can be is often many times what is, and so are plans for batches. Repeats to the bit. Takes an arena of
 * the options' limits meanwhile, of which a batch touches what it needs. Of lists that stay in the store: at most
 * arena_bytes, for up to eight arenas; what is found does not depend on it, and GS_EBUDGET is where a batch has no room
 * in one. Else errors as of gs_sampler_open(). */
gs_status gs_sampler_fit(gs_sampler_options *options, const gs_adjacency *in, const gs_adjacency *out,
                         const uint32_t *target, uint32_t targets, uint32_t trials);

/* Takes limits.arena_bytes. GS_ENOMEM. */
gs_status gs_batch_arena_make(gs_batch_arena **out, const gs_sampler *s);
void gs_batch_arena_free(gs_batch_arena *a); /* NULL is allowed */

/* Draws batch `number` of `epoch` into the arena; what was drawn there before is gone. GS_EBUDGET, and the batch
 * overflows, where it has more vertices or edges than the limits; GS_EINTERRUPTED once .stop is set. Over lists that
 * stay in the store this, too, blocks for the disk and gives what reading it gives. */
gs_status gs_sampler_draw(gs_batch *out, const gs_sampler *s, gs_batch_arena *a, uint32_t epoch, uint32_t number);

/* Draws that a device can make as well: of NEIGHBOR's batches over lists in memory, edges without features, of each
 * vertex a number of them, or of each type, without replacement. */
typedef struct gs_plain_draws {
    const gs_adjacency *in; /* with first32 */
    bool weighted, by_type;
    uint32_t hops, fanout[GS_SAMPLE_HOPS], key[2];
} gs_plain_draws;
/* False: the sampler draws in another way. */
bool gs_sampler_draws_plainly(gs_plain_draws *out, const gs_sampler *s);
/* Of such a sampler: a batch of which the targets alone are known, its rows so far, which `vertex` becomes,
 * [gs_sampler_most_targets()]. */
void gs_sampler_seeds(gs_batch *out, const gs_sampler *s, uint32_t *vertex, uint32_t epoch, uint32_t number);

/* Of samplers that have parts: targets of the batch, and a part of it, those from `first` on, at most `count`, in the
 * order that the batch has them, with what they reach: as a batch of these alone. With all in-edges the parts of a
 * batch give what the batch gives; else a vertex that one part reaches at another hop than the batch is drawn at that
 * one's fanout. */
uint32_t gs_sampler_targets(const gs_sampler *s, uint32_t number);
gs_status gs_sampler_draw_part(gs_batch *out, const gs_sampler *s, gs_batch_arena *a, uint32_t epoch, uint32_t number,
                               uint32_t first, uint32_t count);

/* Draws `count` batches from `first` on, batch first + k into arena[k] and out[k], on at most `threads` threads. The
 * error is that of the first batch that has one. GS_EBUDGET: those that have more than the limits say that they
 * overflow, and all others were drawn. `wanted`, [count], NULL: all; of samplers that have parts, over lists in memory,
 * others are not drawn: of these the number of targets is known. */
gs_status gs_sampler_draw_group(gs_batch *out, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t count,
                                uint32_t epoch, uint32_t first, uint32_t threads, const bool *wanted);

#endif /* GS_SAMPLE_SAMPLER_H */
