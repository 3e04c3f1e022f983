/* fennel.h - intervals by a streaming heuristic: each vertex where most of its neighbours already are. */
#ifndef GS_PARTITION_FENNEL_H
#define GS_PARTITION_FENNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "partition/grid.h"

typedef struct gs_fennel gs_fennel;
gs_status gs_part__fennel_make(gs_fennel **out, const gs_part_grid *grid, uint64_t edges, bool symmetric,
                               uint32_t *part);
void gs_part__fennel_free(gs_fennel *f);
/* Assigns the vertices of one block, in order. */
gs_status gs_part__fennel_block(gs_fennel *f, uint64_t first, uint64_t vertices, const uint32_t *records,
                                uint64_t count, uint32_t words);

#endif /* GS_PARTITION_FENNEL_H */
