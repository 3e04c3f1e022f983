/* split_draw.h - which vertices are for training, validation and test, drawn from the seed where an input does not say.
 */
#ifndef GS_PARTITION_SPLIT_DRAW_H
#define GS_PARTITION_SPLIT_DRAW_H

#include "partition/input_files.h"

/* Three shares, "0.6,0.2,0.2", each 0 or more, together at most 1. GS_EINVAL. */
gs_status gs_part__split_shares(double share[3], const char *text);
/* job->opt->split of the vertices that have a label, or of all where there are no labels, to the vertex. Depends on
 * seed and input ids alone. `split` is the caller's to free. */
gs_status gs_part__split_draw(uint8_t **split, uint64_t count[3], const gs_part_input *in, const int32_t *labels,
                              const gs_part_job *job);

#endif /* GS_PARTITION_SPLIT_DRAW_H */
