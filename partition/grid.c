/* grid.c - intervals of equal length. */
#include "partition/grid.h"

#include "base/size.h"

gs_part_grid gs_part__grid_make(uint64_t vertices, uint32_t parts)
{
    gs_part_grid g = {.vertices = vertices};
    g.rows = (uint32_t)gs_div_up(vertices, GS_MAX(1, GS_MIN(parts, vertices)));
    g.parts = (uint32_t)gs_div_up(vertices, g.rows);
    while (g.local_bits < 32 && (uint64_t)(g.rows - 1) >> g.local_bits != 0)
        g.local_bits++;
    g.by_rows = gs_fastdiv_make(g.rows);
    return g;
}
