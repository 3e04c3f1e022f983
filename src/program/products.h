/* products.h - of what do the products of a stage by the matrices of edges' types depend, and for how many edges must
 * they be made?
 *
 * WiseGraph (EuroSys'24) cuts the edges of a chunk by attributes that index them: source, destination, type. What
 * depends on the operand end and the type alone is the same for all edges of a pair of both. And a product is linear:
 * where edges of one target and one type, a *run* of edges in a chunk's order, are added up, their rows may be added
 * up first, and multiplied once.
 */
#ifndef GS_PROGRAM_PRODUCTS_H
#define GS_PROGRAM_PRODUCTS_H

#include "program/program.h"

/* What a value of edges depends on: bits. */
typedef enum gs_edge_attribute {
    GS_OF_OPERAND = 1,
    GS_OF_TARGET = 2,
    GS_OF_TYPE = 4,
    GS_OF_EDGE = 8, /* weights, features, masks: each edge has its own */
} gs_edge_attribute;

unsigned gs_edge_attributes(const gs_stage *s, uint32_t reg);

/* Products of runs: `value` is summed over the edges of a run, then multiplied. */
typedef struct gs_run_products {
    uint32_t value;   /* edge register, of anything but the target end */
    uint32_t instr;   /* by_type or by_type_t of it, or GS_NONE: there are outer products alone, */
    uint32_t product; /* and its register */
} gs_run_products;

/* False, and *out untouched: the stage's products cannot be made so. Where they can, all sums but those of rows are
 * OUTER of `value` with rows of the target end as they are, or ADD of the product times what depends on target and
 * type. */
bool gs_stage_find_runs(gs_run_products *out, const gs_stage *s);

/* Are rows of edges multiplied by the matrix of their type, or added to its gradient? */
bool gs_stage_by_type(const gs_stage *s);
/* For how many of its edges such products are made. */
static inline double gs_stage_product_share(const gs_stage *s)
{
    return s->products == GS_PRODUCTS_OF_RUNS ? s->runs_per_edge : 1;
}

#endif /* GS_PROGRAM_PRODUCTS_H */
