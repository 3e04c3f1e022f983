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

#include "base/narrow.h"
#include "base/status.h"
#include "store/store.h"

typedef struct gs_adjacency {
    uint32_t vertices;
    uint64_t edges;
    uint32_t edge_types, type_bytes;
    uint32_t parts, interval_rows; /* of the store, for batches of intervals */
    /* Edges of vertex v are [first(v), first(v + 1)); one of the two is NULL: 32 bits where all edges fit. */
    const uint32_t *first32;
    const uint64_t *first64;
    const uint32_t *other;  /* [edges] the far end, ascending; with types by type first */
    const void *type;       /* [edges] of type_bytes, or NULL */
    const float *weight;    /* [edges], or NULL */
    const uint64_t *loops;  /* a bit a vertex: it has self loops; NULL where none has */
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
    return gs_type_at(a->type, a->type_bytes, edge);
}

/* Bytes that gs_adjacency_load() keeps, and beside them while it reads at least. */
uint64_t gs_adjacency_bytes(const gs_store *s);
uint64_t gs_adjacency_read_bytes(const gs_store *s);

/* In-edges of every vertex (GS_BY_DEST), or out-edges (GS_BY_SOURCE). Blocks for as long as the disk needs for the edge
 * file twice. `memory` bounds all that it takes, in bytes: GS_EBUDGET names what would do. GS_EFORMAT for a damaged
 * chunk; GS_EIO, GS_ENOMEM. On GS_OK the caller owns *out: gs_adjacency_free(). */
gs_status gs_adjacency_load(gs_adjacency **out, const gs_store *s, gs_direction d, uint64_t memory);
void gs_adjacency_free(gs_adjacency *a); /* NULL is allowed; only what was loaded */

#endif /* GS_SAMPLE_ADJACENCY_H */
