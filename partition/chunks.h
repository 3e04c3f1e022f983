/* chunks.h - edge chunks, sorted and written, one direction at a time. */
#ifndef GS_PARTITION_CHUNKS_H
#define GS_PARTITION_CHUNKS_H

#include <stdint.h>

#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/order.h"
#include "store/chunk_table.h"

typedef struct gs_part_degrees {
    uint32_t *count[2]; /* [direction][N] by position: in-, out-degree */
    uint32_t *loops;    /* [N] or NULL */
} gs_part_degrees;

typedef struct gs_part_chunks_spec {
    const gs_part_input *in;
    gs_part_order *order; /* whose edges by chunk are freed once they are written */
    gs_direction direction;
    uint32_t words;
    gs_edge_data data;
    gs_chunk *chunk; /* [P * P] filled */
    gs_part_degrees *degrees;
    uint64_t memory, apart; /* apart: beside it, for what edges want of the input; 0: records have all that there is */
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
/* Writes the chunks of the direction's file in job->dir, with all that edges carry. */
gs_status gs_part__chunks_write(gs_part_job *job, const gs_part_chunks_spec *spec);

#endif /* GS_PARTITION_CHUNKS_H */
