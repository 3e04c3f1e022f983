/* ir_internal.h - what the files of this room share. */
#ifndef GS_IR_IR_INTERNAL_H
#define GS_IR_IR_INTERNAL_H

#include "ir/ir.h"

#define GS_IR_SOURCE_BYTES 256
#define GS_IR_MAX_NODES 65536u /* a bound for what a text can ask for */

struct gs_ir {
    char source[GS_IR_SOURCE_BYTES];
    gs_text *text; /* that errors show, or NULL */
    gs_status status;
    bool fold, differentiated;
    uint32_t line, column;
    uint32_t nodes, node_cap;
    gs_node *node;
    uint32_t slots; /* of the table of nodes by value: open addressing, a power of two */
    uint32_t *slot; /* node + 1; 0: empty */
    uint32_t outputs, output_cap;
    gs_output *output;
};

/* Fills type and width of `n` from its inputs; false after recording an error. */
bool gs_ir__infer(gs_ir *ir, gs_node *n);
/* Is an equal name what makes two nodes one? */
static inline bool gs_ir__is_named(gs_op op)
{
    return op == GS_OP_INPUT || op == GS_OP_PARAM;
}
/* An existing node equal to `n`, or GS_IR_NONE. */
uint32_t gs_ir__find(const gs_ir *ir, const gs_node *n);
/* The number of a new node; GS_IR_NONE after recording an error. */
uint32_t gs_ir__append(gs_ir *ir, const gs_node *n);
/* infer, fold, find, else append. */
uint32_t gs_ir__make(gs_ir *ir, gs_node n);
/* The rows i once more, each with 0 added, as no degree is below it: of a row that all vertices share one of each. */
uint32_t gs_ir__plus_zero(gs_ir *ir, uint32_t i);
/* The sum (SUM_IN or SUM_OUT) of a value of edges, normalised: one-end work leaves the edges.
 * `attend`: softmax-weighted sums become ATTEND. */
uint32_t gs_ir__sum(gs_ir *ir, gs_op op, uint32_t value, bool attend);
/* The sum over in-edges of `value` where it is the gradient of a softmax's scores, times what does not depend on node
 * `gradient`: as what the pass that attends can add up, too, in place of a pass of its own. Else GS_IR_NONE. */
uint32_t gs_ir__sum_of_scores(gs_ir *ir, uint32_t value, uint32_t gradient);
/* a + b where one is an ATTEND and the other what its softmax weighs the vertex itself, times something: one ATTEND.
 * Else GS_IR_NONE. */
uint32_t gs_ir__attend_own(gs_ir *ir, uint32_t a, uint32_t b);
/* A vertex value that is 0 everywhere, of width 1, which folding leaves alone. */
uint32_t gs_ir__zeros(gs_ir *ir);
/* ir_edges.c: x @ W[type of the edge] as a value of edges. */
uint32_t gs_ir__pick_by_type(gs_ir *ir, uint32_t x, uint32_t matrices);
/* ir_edges.c: x @ w, or with MATMUL_T x @ w', where x is of both ends: what of it is of one end is multiplied there.
 * `columns_alone`: only columns side by side are taken apart; what else there is stays a MATMUL. */
uint32_t gs_ir__dense(gs_ir *ir, gs_op op, uint32_t x, uint32_t w, bool columns_alone);
gs_node gs_ir__blank(gs_op op, uint32_t a, uint32_t b);

#endif /* GS_IR_IR_INTERNAL_H */
