/* input_konect.h - the first line of KONECT's files (out.NAME), and how many columns an edge list has. */
#ifndef GS_PARTITION_INPUT_KONECT_H
#define GS_PARTITION_INPUT_KONECT_H

#include "partition/input_files.h"

/* Looks at the lines in front of the edges of a list: in->konect, in->undirected, and the first edge's *columns, 0
 * where there is none. Columns are parted by blanks. GS_EUNSUPPORTED where the graph is bipartite. */
gs_status gs_part__konect_look(gs_part_input *in, const gs_part_job *job, uint32_t *columns);

#endif /* GS_PARTITION_INPUT_KONECT_H */
