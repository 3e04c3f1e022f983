/* products.h - of what do the products of a stage by the matrices of edges' types depend, and for how many
 * edges must they be made?
 *
 * WiseGraph (EuroSys'24) cuts the edges of a chunk by attributes that index them: source, destination, type.
 * What depends on the operand end and the type alone is the same for all edges of a *pair* of both: it is
 * multiplied once, and edges pick the product. And a product is linear: where edges of one target and one
 * type, a *run* of edges in a chunk's order, are added up, their rows may be added up first, and multiplied
 * once. A gradient of the matrices is a sum of outer products, of what a run has of the operand end summed,
 * or of what a pair has of the target end.
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

/* Products of runs or pairs: of `value`, summed over the edges of a run, or of a pair. */
typedef struct gs_edge_products {
    uint32_t value;   /* edge register, of anything but the target end; of pairs of operand end and type alone */
    uint32_t instr;   /* by_type or by_type_t of it, or GS_NONE: there are outer products alone, */
    uint32_t product; /* and its register */
} gs_edge_products;

/* False, and *out untouched: the stage's products cannot be made so. Where they can, all sums but those of
 * rows are OUTER of `value` with rows of the target end as they are; or, of runs, ADD of the product times
 * what depends on target and type; or, of pairs, any that see of the operand end the product alone. */
bool gs_stage_find_products(gs_edge_products *out, const gs_stage *s, gs_products way);

/* A choice by which source has a largest value: where(who, source == who, ...), who and source of the ends of an edge.
 * It is 0 where who is another one; what is behind it is for the edges where who is 0, which are few. */
bool gs_stage_goes_by_source(const gs_stage *s, const gs_instr *in, uint32_t *source);
/* Is a product for such a choice alone? */
bool gs_stage_is_spared(const gs_stage *s, const gs_instr *in);

/* Columns of what is multiplied, of the product, and of the widest other side of an outer product. */
typedef struct gs_product_widths {
    uint32_t in, out, side;
} gs_product_widths;

gs_product_widths gs_stage_product_widths(const gs_stage *s, const gs_edge_products *p);

/* So many runs, or pairs where a stage does not say, are made at a time, of so many edges to a pair at most. */
#define GS_PORTION_PAIR_EDGES 8u
uint32_t gs_product_portion(gs_product_widths w);
/* Of pairs that a chunk is expected to have, those that may be made at a time: all where 32 MiB hold them. */
uint32_t gs_pair_portion(gs_product_widths w, double pairs);
uint64_t gs_portion_floats(gs_product_widths w, uint32_t most, bool pairs); /* of its rows and lists */

/* Are rows of edges multiplied by the matrix of their type, or added to its gradient? */
bool gs_stage_by_type(const gs_stage *s);
/* For how many of its edges such products are made. */
static inline double gs_stage_product_share(const gs_stage *s)
{
    return s->products == GS_PRODUCTS_OF_RUNS    ? s->runs_per_edge
           : s->products == GS_PRODUCTS_OF_PAIRS ? s->pairs_per_edge
                                                 : 1;
}

#endif /* GS_PROGRAM_PRODUCTS_H */
