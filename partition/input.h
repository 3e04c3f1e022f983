/* input.h - any input that can be read: what kind it is, and its edges by number. */
#ifndef GS_PARTITION_INPUT_H
#define GS_PARTITION_INPUT_H

#include "partition/input_files.h"

/* Opens and checks headers, without a temporary file; then reads what is text. */
gs_status gs_part__input_open(gs_part_input *in, gs_part_job *job, const char *path);
gs_status gs_part__input_parse(gs_part_input *in, gs_part_job *job);
void gs_part__input_close(gs_part_input *in);
/* Edges [first, first + count), checked. With text input `first` must follow
 * the block's last (one reader). */
gs_status gs_part__input_edges(const gs_part_input *in, gs_part_edge_block *b, uint64_t first, uint64_t count);

#endif /* GS_PARTITION_INPUT_H */
