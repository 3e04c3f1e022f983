/* rows_input.h - feature rows out of a file, front to back, or made from a seed. */
#ifndef GS_PARTITION_ROWS_INPUT_H
#define GS_PARTITION_ROWS_INPUT_H

#include "partition/rows_pool.h"

/* One pass over the input; rows of [low, high) are put. */
gs_status gs_rows__read_input(gs_rows *r);

#endif /* GS_PARTITION_ROWS_INPUT_H */
