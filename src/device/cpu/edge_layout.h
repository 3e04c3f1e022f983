/* edge_layout.h - scratch of an edge program. */
#ifndef GS_DEVICE_CPU_EDGE_LAYOUT_H
#define GS_DEVICE_CPU_EDGE_LAYOUT_H

#include "device/cpu/edge_plan.h"

/* Scratch of the edge program of a stage. */
typedef struct gs_cpu_edge_needs {
    uint32_t steps, states;
    uint64_t floats;     /* of scratch, a thread */
    uint64_t row_floats; /* of the accumulators of one target */
} gs_cpu_edge_needs;

gs_cpu_edge_needs gs_cpu__edge_needs(const gs_program *program, const gs_stage *stage);
/* Are the register's rows of bfloat16? */
bool gs_cpu__is_half(const gs_program *program, const gs_edge_reg *r);
/* Places of slots, edges of a tile, whether it only adds rows;
 * floats of scratch of so many edges, and at the most. */
void gs_cpu__lay_out_edges(gs_cpu_edge_plan *plan, uint32_t lanes);
uint64_t gs_cpu__edge_tile_floats(uint64_t floats, uint64_t edges);

#endif /* GS_DEVICE_CPU_EDGE_LAYOUT_H */
