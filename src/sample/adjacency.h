/* adjacency.h - which edges end at a vertex? All in-edges (or out-edges) of a store in host memory, for samplers.
 *
 * One list a vertex, in store order, indices of the whole graph: 4 bytes an edge, 4 or 8 a vertex, and what the edges
 * carry. It is read from the store's chunks front to back, twice (to count, to fill), and never changes then, so any
 * number of threads may use it.
 */
#ifndef GS_SAMPLE_ADJACENCY_H
#define GS_SAMPLE_ADJACENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"
#include "store/store.h"

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

#endif /* GS_SAMPLE_ADJACENCY_H */
