/* grid.h - N vertices in store order, cut into P equal intervals. */
#ifndef GS_PARTITION_GRID_H
#define GS_PARTITION_GRID_H

#include <stdint.h>

#include "base/size.h"

/* Division of u32 by a fixed number (Lemire, Kaser, Kurz: "Faster remainder
 * by direct computation", 2019): exact for every u32. */
typedef struct gs_fastdiv {
    uint64_t magic;
    uint32_t divisor;
} gs_fastdiv;
static inline gs_fastdiv gs_fastdiv_make(uint32_t d)
{
    return (gs_fastdiv){d == 1 ? 0 : UINT64_MAX / d + 1, d};
}
static inline uint32_t gs_fastdiv_of(gs_fastdiv f, uint32_t n)
{
    return f.divisor == 1 ? n : (uint32_t)(((unsigned __int128)f.magic * n) >> 64);
}

typedef struct gs_part_grid {
    uint64_t vertices;
    uint32_t parts, rows; /* intervals; rows of each but perhaps the last */
    uint32_t local_bits;  /* of a row number within an interval */
    gs_fastdiv by_rows;
} gs_part_grid;
/* Cuts N vertices into at most `parts` equal intervals, none empty. */
static inline gs_part_grid gs_part__grid_make(uint64_t vertices, uint32_t parts)
{
    gs_part_grid g = {.vertices = vertices};
    g.rows = (uint32_t)gs_div_up(vertices, GS_MAX(1, GS_MIN(parts, vertices)));
    g.parts = (uint32_t)gs_div_up(vertices, g.rows);
    while (g.local_bits < 32 && (uint64_t)(g.rows - 1) >> g.local_bits != 0)
        g.local_bits++;
    g.by_rows = gs_fastdiv_make(g.rows);
    return g;
}
static inline uint32_t gs_part__grid_capacity(const gs_part_grid *g, uint32_t i)
{
    const uint64_t left = g->vertices - (uint64_t)i * g->rows;
    return left < g->rows ? (uint32_t)left : g->rows;
}

#endif /* GS_PARTITION_GRID_H */
