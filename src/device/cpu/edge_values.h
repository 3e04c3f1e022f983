/* edge_values.h - values of an edge program while it is planned, and the steps that make them. */
#ifndef GS_DEVICE_CPU_EDGE_VALUES_H
#define GS_DEVICE_CPU_EDGE_VALUES_H

#include "device/cpu/cpu.h"

typedef struct gs_cpu_planner {
    const gs_cpu *cpu;
    const gs_edge_program_launch *l;
    gs_cpu_edge_plan *plan;
    uint32_t index;   /* of the instruction or sum */
    uint32_t outer;   /* the sum of kind OUTER that the plan is for, or GS_NONE: for all others */
    const char *noun; /* "edge instruction" or "sum" */
    gs_status st;     /* of the first refusal; after it nothing more is planned */
} gs_cpu_planner;

/* Names the stage and the instruction or sum in p->st, if nothing was refused before. */
void gs_cpu__refuse_edges(gs_cpu_planner *p, const char *what);
void gs_cpu__emit(gs_cpu_planner *p, gs_cpu_edge_step step);
/* The result of a new step that writes a slot of its width. */
gs_cpu_edge_value gs_cpu__emit_value(gs_cpu_planner *p, gs_cpu_edge_step step);

/* Any operand, and its width before a spread that is still to be done. */
gs_cpu_edge_value gs_cpu__operand_value(gs_cpu_planner *p, const gs_operand *o, uint32_t *width);
/* The register's rows, `width` of them. */
gs_cpu_edge_value gs_cpu__register_value(gs_cpu_planner *p, uint32_t index, uint32_t *width);
/* An operand that stretches over `width` columns. */
gs_cpu_edge_value gs_cpu__stretched(gs_cpu_planner *p, const gs_operand *o, uint32_t width);

/* The value, stretched to `width`: one row after the other in a slot or in the order of edges; ... */
gs_cpu_edge_value gs_cpu__contiguous(gs_cpu_planner *p, gs_cpu_edge_value v, uint32_t width);
/* ... so, or one number for all; ... */
gs_cpu_edge_value gs_cpu__flattened(gs_cpu_planner *p, gs_cpu_edge_value v, uint32_t width);
/* ... rows of the full width, anywhere, of float32; ... */
gs_cpu_edge_value gs_cpu__full_rows(gs_cpu_planner *p, gs_cpu_edge_value v, uint32_t width);
/* ... or of bfloat16, too, of a vector or more. */
gs_cpu_edge_value gs_cpu__stored_rows(gs_cpu_planner *p, gs_cpu_edge_value v, uint32_t width);
/* Rows of bfloat16 as a copy in float32, one for all who want it; others as they are. */
gs_cpu_edge_value gs_cpu__widened(gs_cpu_planner *p, gs_cpu_edge_value v);

gs_cpu_edge_value gs_cpu__binary(gs_cpu_planner *p, gs_op op, gs_cpu_edge_value a, gs_cpu_edge_value b,
                                 uint32_t width);
gs_cpu_edge_value gs_cpu__multiply(gs_cpu_planner *p, gs_cpu_edge_value a, gs_cpu_edge_value b, uint32_t width);
/* Can rows of `width` be multiplied by a number for each `each` columns as they are? */
bool gs_cpu__takes_groups(const gs_cpu_planner *p, uint32_t width, uint32_t each);
void gs_cpu__swap_values(gs_cpu_edge_value *a, gs_cpu_edge_value *b);

/* Something of the stage is `times` as wide as a value, by type of the edges; it has so many rows. */
void gs_cpu__note_types(gs_cpu_planner *p, uint32_t times, uint32_t rows);

#endif /* GS_DEVICE_CPU_EDGE_VALUES_H */
