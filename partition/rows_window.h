/* rows_window.h - rows to their place in the output, each byte written once. */
#ifndef GS_PARTITION_ROWS_WINDOW_H
#define GS_PARTITION_ROWS_WINDOW_H

#include "partition/rows_pool.h"

/* Two windows for each run of ascending positions are open at most. */
gs_status gs_rows__place(gs_rows *r, uint64_t position, const char *row);

#endif /* GS_PARTITION_ROWS_WINDOW_H */
