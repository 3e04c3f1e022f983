/* edge_rows.h - the features of edges, and the weights beside them, to the places of their edges.
 *
 * Where edges have features, records of edges carry the number of the edge in the input, and chunks are written with
 * rows of zeros. Each edge of a chunk then asks for the row of its number: these questions are sorted by number, the
 * input's rows are read once, front to back, and go, sorted by chunk, to where they belong.
 */
#ifndef GS_PARTITION_EDGE_ROWS_H
#define GS_PARTITION_EDGE_ROWS_H

#include <stdint.h>

#include "base/external_sort.h"
#include "partition/grid.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "store/chunk_table.h"

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

#endif /* GS_PARTITION_EDGE_ROWS_H */
