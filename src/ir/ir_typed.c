/* ir_typed.c - x @ W[type of the edge]: sums first, or products first.
 *
 * Summed as it is, it is one product: the sums of x by type, side by side, times the matrices, one above the
 * other. Inside a value of edges (behind a softmax, under a relu) the product comes first: what an edge can see is
 * one of `types` rows of its source, so all of them are computed once a vertex, side by side (fan), and the edge picks
 * the columns of its type (WiseGraph's unique values of source and type). Nothing has a row an edge.
 *
 * A row for each type, b[type of the edge], is the number 1 of the source by a matrix [1, n] for each type: summed as
 * it is, it is the counts of types times b.
 */
#include "ir/ir_internal.h"

#define MOST_COLUMNS 65536u /* of the types' products of one vertex, side by side */

uint32_t gs_ir__ones(gs_ir *ir)
{
    const uint32_t degree = gs_ir_input(ir, "in_degree", 1, GS_F32);
    return gs_ir_unary(ir, GS_OP_STEP, gs_ir_binary(ir, GS_OP_ADD, degree, gs_ir_const(ir, 1.0f, 1)), 0);
}

uint32_t gs_ir__zeros(gs_ir *ir)
{
    return gs_ir_unary(ir, GS_OP_STEP, gs_ir_unary(ir, GS_OP_NEG, gs_ir_input(ir, "in_degree", 1, GS_F32), 0), 0);
}

uint32_t gs_ir_by_type(gs_ir *ir, uint32_t param)
{
    return gs_ir_binary(ir, GS_OP_TYPED, gs_ir_unary(ir, GS_OP_SRC, gs_ir__ones(ir), 0), param);
}

/* The sums by type of vertex value `x`, or with `mean` the means, times the matrices. */
uint32_t gs_ir__sum_by_type(gs_ir *ir, uint32_t x, uint32_t matrices, bool mean)
{
    const gs_node w = *gs_ir_node(ir, matrices);
    const uint32_t types = w.shape[0], width = gs_ir_node(ir, x)->width;
    uint32_t sum = gs_ir_resize(ir, GS_OP_SPLIT_IN, gs_ir_unary(ir, GS_OP_SRC, x, 0), types * width), count;

    if (mean) {
        count = gs_ir_resize(ir, GS_OP_SPLIT_IN, gs_ir_unary(ir, GS_OP_SRC, gs_ir__ones(ir), 0), types);
        count = gs_ir_binary(ir, GS_OP_MAX, count, gs_ir_const(ir, 1.0f, 1));
        sum =
            gs_ir_binary(ir, GS_OP_DIV, sum, types == 1 ? count : gs_ir_resize(ir, GS_OP_EXPAND, count, types * width));
    }
    /* W[t] = sum of c[t, b] V[b]: the types' sums become as many as bases, before the wide product */
    if (w.op == GS_OP_BASES)
        return gs_ir_binary(ir, GS_OP_MATMUL, gs_ir_binary(ir, GS_OP_MIX, sum, w.in[0]), w.in[1]);
    return gs_ir_binary(ir, GS_OP_MATMUL, sum, matrices);
}

/* The same as a value of edges, for the source's value `x` (an SRC, or what is the same for all edges). */
uint32_t gs_ir__pick_by_type(gs_ir *ir, uint32_t x, uint32_t matrices)
{
    const gs_node w = *gs_ir_node(ir, matrices), n = *gs_ir_node(ir, x);
    const uint32_t types = w.shape[0];
    uint32_t vertex = n.op == GS_OP_SRC ? n.in[0] : x, all;

    if ((uint64_t)types * w.width > MOST_COLUMNS)
        return gs_ir_error(ir, GS_EUNSUPPORTED,
                           "a value of edges with a matrix for each type needs the products of all %u types, "
                           "%u columns each, for every vertex: more than %u columns; take the sum first",
                           types, w.width, MOST_COLUMNS);
    if (gs_ir_node(ir, vertex)->type == GS_TYPE_P) /* instructions work on rows */
        vertex = gs_ir_binary(ir, GS_OP_ADD, vertex, gs_ir__zeros(ir));
    if (w.op == GS_OP_BASES)
        all = gs_ir_binary(ir, GS_OP_MIX_T, gs_ir_binary(ir, GS_OP_FAN, vertex, w.in[1]), w.in[0]);
    else
        all = gs_ir_binary(ir, GS_OP_FAN, vertex, matrices);
    return gs_ir_resize(ir, GS_OP_TYPE_SRC, all, w.width);
}
