/* edge_text.h - edges out of a text, into a temporary file of records: N is known only at the text's end. */
#ifndef GS_PARTITION_EDGE_TEXT_H
#define GS_PARTITION_EDGE_TEXT_H

#include <stdint.h>

#include "partition/input_files.h"

#define GS_MOST_ID (UINT32_MAX - 2u)

/* in->weighted and in->typed say what a record has besides two ids. */
gs_status gs_part__text_begin(gs_part_input *in, const gs_part_job *job);
gs_status gs_part__text_put(gs_part_input *in, uint64_t u, uint64_t v, float weight, uint32_t type);
gs_status gs_part__text_end(gs_part_input *in);

#endif /* GS_PARTITION_EDGE_TEXT_H */
