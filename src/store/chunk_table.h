/* chunk_table.h - where is edge chunk (i, j), and how big is it?
 *
 * Vertices stand in store order, cut into P intervals of `interval_rows`
 * consecutive rows (the last may be short). An edge u -> v lies in the chunk of
 * u's and v's intervals. Each chunk exists once by destination (GS_BY_DEST, for
 * sums over in-edges) and once by source (GS_BY_SOURCE, for sums over
 * out-edges). To speak of both in one way: the *target* end is the one whose
 * rows accumulate, the *operand* end the one whose rows are read. By
 * destination, targets are destinations; by source, targets are sources.
 *
 * This header is data about chunks; it knows no bytes and no files.
 * Units: offsets and lengths bytes, everything else elements.
 */
#ifndef GS_STORE_CHUNK_TABLE_H
#define GS_STORE_CHUNK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum gs_direction { GS_BY_DEST = 0, GS_BY_SOURCE = 1 } gs_direction;

/* What each edge carries beside its ends. */
typedef struct gs_edge_data {
    uint32_t type_bytes;    /* of its type: 0, 1 or 2 */
    bool weights;           /* a float32 weight */
    uint32_t feature_bytes; /* of its row of features; 0: none */
} gs_edge_data;

/* One chunk in one direction. An empty chunk has length 0. `offset` and
 * `length` are multiples of GS_BLOCK_BYTES; `length` includes the padding. */
typedef struct gs_chunk {
    uint64_t offset;   /* in the edge file of its direction */
    uint64_t length;
    uint64_t edges;
    uint64_t checksum; /* gs_hash64() over `length` bytes; 0 for an empty chunk */
    uint32_t targets;  /* distinct target rows */
    uint32_t operands; /* distinct operand rows */
    uint64_t largest;  /* edges of the target that has the most; 0: not known, as in stores of version 1 */
} gs_chunk;

typedef struct gs_chunk_table {
    uint64_t vertices;
    uint32_t parts;         /* P */
    uint32_t interval_rows; /* rows of every interval but perhaps the last */
    bool shared;            /* symmetric graph: chunk[1] is chunk[0], roles as they are */
    gs_edge_data data;      /* of each edge */
    uint64_t longest;       /* bytes of the longest chunk of a store */
    /* [direction][target interval * P + operand interval], in file order: all
     * chunks of a target interval are consecutive, by operand interval. */
    const gs_chunk *chunk[2];
} gs_chunk_table;

static inline uint64_t gs_interval_first(const gs_chunk_table *t, uint32_t i)
{
    return (uint64_t)i * t->interval_rows;
}
static inline uint32_t gs_interval_rows(const gs_chunk_table *t, uint32_t i)
{
    const uint64_t first = gs_interval_first(t, i), left = t->vertices - first;
    return left < t->interval_rows ? (uint32_t)left : t->interval_rows;
}
static inline const gs_chunk *gs_chunk_at(const gs_chunk_table *t, gs_direction d, uint32_t target, uint32_t operand)
{
    return &t->chunk[d][(uint64_t)target * t->parts + operand];
}
/* Which intervals each of several owners has, all edges into and out of their vertices with them: owner k's are
 * first[k] to first[k + 1] - 1, of about as many edges and rows for each: as many intervals, where nobody has many more
 * edges than its share then. It depends on the table alone, so whoever has a store's tables deals alike. No owner is
 * without, unless there are more owners than intervals.
 * `first`: [owners + 1]. */
void gs_chunk_deal(const gs_chunk_table *t, uint32_t owners, uint32_t *first);
/* Bytes of one interval-local index in every chunk: 2 when an interval has at most
 * 65536 rows, else 4. */
static inline uint32_t gs_index_bytes(const gs_chunk_table *t) { return t->interval_rows <= 65536 ? 2 : 4; }

/* Rows of an interval in granules, one bit each: what is needed of them. Bit g of an interval stands
 * for its rows [g * rows, (g + 1) * rows); `words` 64-bit words an interval. */
typedef struct gs_granules {
    uint32_t rows; /* a power of two, GS_GRANULE_ROWS at least */
    uint32_t words;
} gs_granules;
/* 16 rows of 64 floats are a block of 4 KiB. */
#define GS_GRANULE_ROWS 16u

static inline gs_granules gs_granules_of(const gs_chunk_table *t, uint32_t rows)
{
    return (gs_granules){rows, (t->interval_rows + 64 * rows - 1) / (64 * rows)};
}

/* The edges that an edge pass goes over: those of a direction of the store, or pruned ones. */
typedef struct gs_edge_set {
    const gs_chunk *chunk; /* [parts * parts] as in gs_chunk_table */
    const uint64_t *need;  /* [parts * parts][words] granules of operand rows that a chunk's edges name; NULL: all */
    const uint64_t *rows;  /* the same in granules of one row; NULL: not known */
} gs_edge_set;

#endif /* GS_STORE_CHUNK_TABLE_H */
