/* chunk_view.h - the bytes of one edge chunk, checked, as arrays.
 *
 * Layout of a chunk's `length` bytes (each section starts at a multiple of 16,
 * zero padded; ix is gs_index_bytes(); local = row within its interval):
 *
 *   header   32 bytes  magic "GSCH", u32 ix, u32 targets, u32 operands, u64 edges,
 *                      u32 type_bytes, u32 weights (0 or 1) + 2 * bytes of an edge's features
 *   targets  ix  * targets       local rows that have an edge here, ascending
 *   starts   u32 * (targets + 1) edges of targets[t] are [starts[t], starts[t+1])
 *   index    ix  * edges         local operand row of each edge, ascending within a target
 *                                (with types: by type first, then by operand)
 *   operands ix  * operands      distinct local operand rows, ascending
 *   types    type_bytes * edges  same order as `index`
 *   weights  f32 * edges         same order as `index`
 *   features bytes * edges       a row an edge, same order as `index`
 *
 * A target's edges ascend by operand row in store order, and so do the chunks of a column: a sum over them has
 * one order in a store, whatever part of it is taken at a time. Another P is another store order
 * (docs/design/results.md).
 */
#ifndef GS_STORE_CHUNK_VIEW_H
#define GS_STORE_CHUNK_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "store/chunk_table.h" /* gs_edge_data */

#define GS_CHUNK_MAGIC "GSCH"
#define GS_CHUNK_HEADER_BYTES 32u

/* Points into the bytes it was made from and lives as long as they do. */
typedef struct gs_chunk_view {
    uint32_t index_bytes; /* 2 or 4: element size of targets, index, operands */
    uint32_t targets, operands;
    uint64_t edges;
    uint64_t largest;     /* edges of the target that has the most; 0: not known */
    const void *target;   /* [targets] */
    const uint32_t *start; /* [targets + 1] */
    const void *index;    /* [edges] */
    const void *operand;  /* [operands] */
    const void *type;     /* [edges] of type_bytes, or NULL */
    uint32_t type_bytes;
    const float *weight;  /* [edges], or NULL */
    const void *feature;  /* [edges] rows of feature_bytes, or NULL */
    uint32_t feature_bytes;
    const uint8_t *count; /* [edges] of a merged chunk: how often the edge is there; else NULL */
} gs_chunk_view;

/* Figures of the chunk table, for the check. */
typedef struct gs_chunk_expect {
    uint32_t target_rows, operand_rows; /* rows of the two intervals: bounds of every index */
    uint32_t index_bytes;
    uint64_t edges;
    uint32_t targets, operands;
    uint64_t largest; /* edges of the target that has the most; 0: not known, so whatever they are */
} gs_chunk_expect;

/* Size of a chunk with these counts, padded to GS_BLOCK_BYTES (0 for no edges);
 * UINT64_MAX on overflow. */
uint64_t gs_chunk_bytes(uint64_t edges, uint32_t targets, uint32_t operands, uint32_t index_bytes,
                        gs_edge_data data);

/* Makes a view of `length` bytes at `data` (16-byte aligned) and checks that sections lie inside,
 * counts equal `expect`, `starts` is monotone from 0 to edges, and no target has more edges than `expect` says. With
 * `deep` every index is checked against its interval as well: needed once for
 * bytes whose checksum was not verified. GS_EFORMAT with a text that names what
 * is wrong (the caller adds which chunk). Never reads outside the bytes. Whether there are
 * types, weights and features is what the chunk's own header says: compare gs_chunk_view_data(out) with the chunk
 * table before following them. */
gs_status gs_chunk_view_make(gs_chunk_view *out, const void *data, uint64_t length,
                             const gs_chunk_expect *expect, bool deep);

static inline gs_edge_data gs_chunk_view_data(const gs_chunk_view *v)
{
    return (gs_edge_data){v->type_bytes, v->weight != NULL, v->feature_bytes};
}
static inline bool gs_edge_data_equal(gs_edge_data a, gs_edge_data b)
{
    return a.type_bytes == b.type_bytes && a.weights == b.weights && a.feature_bytes == b.feature_bytes;
}

/* The view of a chunk's bytes that were checked elsewhere, where these are not to be read: a device's memory. */
void gs_chunk_view_place(gs_chunk_view *out, const void *bytes, const gs_chunk_expect *expect, gs_edge_data data);

/* Merges the edges of a target that name the same operand row, for sums that need each row and nothing else: in the
 * chunk's own bytes (`v` was made of them, with a deep check), as one edge and how often it was there. What edges
 * carry stays as it was and fits no more. `scratch`: v->edges bytes. False, and nothing is changed, where that would
 * leave more than three quarters of the edges, or has no room. */
bool gs_chunk_merge(const gs_chunk_view *v, void *data, uint8_t *scratch);

/* The view of such bytes; `expect` is what the chunk table says, and edges are fewer. */
void gs_chunk_merged_view(gs_chunk_view *out, const void *data, const gs_chunk_expect *expect);

/* Chunks of one target interval and of several operand intervals become one, for sums that need each row and nothing
 * else. Of a join: begin, count every chunk, ask whether it fits, add every chunk in the order of its operands, write;
 * it may be written over the chunks that it was made of. Indices count from the first of these operand intervals. */
typedef struct gs_chunk_join {
    uint32_t target_rows, targets, index_bytes;
    uint64_t edges;
    bool counts;       /* doubled edges of some chunk were merged */
    uint8_t *scratch;  /* [room] the caller's, aligned to 16 bytes */
    uint64_t room, used; /* used: bytes of scratch that were written */
} gs_chunk_join;

/* Rows of the target interval, and of all operand intervals. False: no room. */
bool gs_chunk_join_begin(gs_chunk_join *j, uint32_t target_rows, uint64_t operand_rows, uint8_t *scratch,
                         uint64_t room);
void gs_chunk_join_count(gs_chunk_join *j, const gs_chunk_view *v);
/* False where the join is larger than `bytes`, or the scratch too small for it. */
bool gs_chunk_join_fits(gs_chunk_join *j, uint64_t bytes);
/* The chunk's operand interval begins `first_row` rows behind the first one. */
void gs_chunk_join_add(gs_chunk_join *j, const gs_chunk_view *v, uint32_t first_row);
/* `data`: 16-byte aligned, of the bytes that it fits. */
void gs_chunk_join_write(const gs_chunk_join *j, void *data);
/* Without what edges carry, and without the list of operands. */
void gs_chunk_joined_view(gs_chunk_view *out, const void *data);

/* Writer's side: lays out the sections for these counts in zeroed `bytes`, of
 * gs_chunk_bytes(...) bytes, fills the header, and gives the places to fill. */
void gs_chunk_layout(gs_chunk_view *out, void *bytes, const gs_chunk_expect *counts, gs_edge_data data);

#endif /* GS_STORE_CHUNK_VIEW_H */
