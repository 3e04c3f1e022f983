/* chunks.h - edge chunks, sorted and written, one direction at a time. */
#ifndef GS_PARTITION_CHUNKS_H
#define GS_PARTITION_CHUNKS_H

#include <stdint.h>

#include "base/external_sort.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/order.h"
#include "store/chunk_table.h"

/* -- the features of edges, and the weights beside them, to the places of their edges.
 *
 * Where edges have features, records of edges carry the number of the edge in the input, and chunks are written with
 * rows of zeros. Each edge of a chunk then asks for the row of its number: these questions are sorted by number, the
 * input's rows are read once, front to back, and go, sorted by chunk, to where they belong.
 */

/* What edges want which rows of the input: a bucket has those of 2^shift numbers. */
typedef struct gs_part_wanted {
    gs_external_sort *sort;
    uint32_t shift;
} gs_part_wanted;

/* For `threads` that put records at the same time, in `memory` bytes. The caller frees wanted->sort. */
gs_status gs_part__wanted_make(gs_part_wanted *wanted, const gs_part_job *job, const gs_part_input *in,
                               uint32_t threads, uint64_t memory);

/* Edge `place` of chunk `chunk` is edge `number` of the input. */
static inline gs_status gs_part__want(const gs_part_wanted *wanted, uint32_t writer, uint32_t number, uint32_t chunk,
                                      uint32_t place)
{
    uint32_t *const record = gs_sort_put(wanted->sort, writer, number >> wanted->shift);
    if (record == NULL)
        return gs_sort_failure(wanted->sort);
    record[0] = number;
    record[1] = chunk;
    record[2] = place;
    return GS_OK;
}

typedef struct gs_part_edge_rows {
    const gs_part_input *in;
    const gs_part_grid *grid;
    gs_direction direction; /* of the file */
    gs_edge_data data;
    gs_chunk *chunk;        /* [P * P] whose checksums become those of the filled chunks */
    uint64_t memory;
} gs_part_edge_rows;

/* Fills the chunks of the direction's file in job->dir, once all edges have said what they want. */
gs_status gs_part__edge_rows_write(gs_part_job *job, const gs_part_edge_rows *spec, gs_part_wanted *wanted);

/* -- chunks. */

typedef struct gs_part_degrees {
    uint32_t *count[2]; /* [direction][N] by position: in-, out-degree */
    uint32_t *loops;    /* [N] or NULL */
} gs_part_degrees;

typedef struct gs_part_chunks_spec {
    const gs_part_order *order;
    gs_direction direction;
    uint32_t words;
    gs_edge_data data;
    const gs_part_wanted *wanted; /* edges say which rows they want, by the numbers that records have; NULL: records
                                   * have all that there is */
    gs_chunk *chunk; /* [P * P] filled */
    gs_part_degrees *degrees;
    uint64_t memory;
    uint32_t threads;
    double progress_from, progress_to;
} gs_part_chunks_spec;
/* The figures that a chunk's size follows from: rows of an interval, payload of an edge. */
typedef struct gs_part_chunk_kind {
    uint64_t rows;
    gs_edge_data data;
} gs_part_chunk_kind;
/* Most edges for which a chunk surely has at most `bytes` at rest. */
uint64_t gs_part__chunk_edges(uint64_t bytes, const gs_part_chunk_kind *kind);
/* Most edges a chunk may have for `threads` to sort one each within `memory`. */
uint64_t gs_part__chunk_cap(uint32_t threads, uint64_t memory, const gs_part_chunk_kind *kind);
gs_status gs_part__chunks_write(gs_part_job *job, const gs_part_chunks_spec *spec);

#endif /* GS_PARTITION_CHUNKS_H */
