/* op.h - the one table of operators: names, arities and classes.
 *
 * ir, program, device and cuda all speak of operators through this table, so a
 * new one is added here, given a derivative in ir and a body on each device.
 *
 * Shapes: a vertex value is [rows, width]; w[out, in] is a parameter as
 * PyTorch stores it. "Broadcast" operands may be [rows, width], [rows, 1]
 * (a scalar a vertex), a parameter of [width], or a constant.
 */
#ifndef GS_TENSOR_OP_H
#define GS_TENSOR_OP_H

#include <stdbool.h>

typedef enum gs_op_class {
    GS_CLASS_LEAF,        /* comes from outside: arrays, parameters, constants */
    GS_CLASS_ELEMENTWISE, /* row-wise and element by element; cheap to redo */
    GS_CLASS_MATMUL,      /* row-wise dense product */
    GS_CLASS_REDUCE,      /* over all vertices into a parameter's gradient */
    GS_CLASS_STATISTIC,   /* over all vertices into a row that later stages read as a parameter */
    GS_CLASS_EDGE,        /* over the edges of a vertex */
    GS_CLASS_LOSS,
} gs_op_class;

#define GS_OP_MAP(X) /* enum, name, inputs, class */                                      \
    X(GS_OP_INPUT, "input", 0, GS_CLASS_LEAF)           /* a vertex array of the store */ \
    X(GS_OP_PARAM, "param", 0, GS_CLASS_LEAF)                                             \
    X(GS_OP_CONST, "const", 0, GS_CLASS_LEAF)                                             \
    X(GS_OP_WEIGHT, "edge_weight", 0, GS_CLASS_LEAF)    /* of an edge, width 1 */         \
    X(GS_OP_ADD, "add", 2, GS_CLASS_ELEMENTWISE)        /* a + b, broadcast */            \
    X(GS_OP_SUB, "sub", 2, GS_CLASS_ELEMENTWISE)                                          \
    X(GS_OP_MUL, "mul", 2, GS_CLASS_ELEMENTWISE)                                          \
    X(GS_OP_DIV, "div", 2, GS_CLASS_ELEMENTWISE)                                          \
    X(GS_OP_MAX, "max", 2, GS_CLASS_ELEMENTWISE)                                          \
    X(GS_OP_MIN, "min", 2, GS_CLASS_ELEMENTWISE)                                          \
    X(GS_OP_NEG, "neg", 1, GS_CLASS_ELEMENTWISE)                                          \
    X(GS_OP_EXP, "exp", 1, GS_CLASS_ELEMENTWISE)                                          \
    X(GS_OP_LOG, "log", 1, GS_CLASS_ELEMENTWISE)                                          \
    X(GS_OP_SQRT, "sqrt", 1, GS_CLASS_ELEMENTWISE)                                        \
    X(GS_OP_RSQRT, "rsqrt", 1, GS_CLASS_ELEMENTWISE)    /* 1 / sqrt(a) */                 \
    X(GS_OP_SIGMOID, "sigmoid", 1, GS_CLASS_ELEMENTWISE)                                  \
    X(GS_OP_TANH, "tanh", 1, GS_CLASS_ELEMENTWISE)                                        \
    X(GS_OP_RELU, "relu", 1, GS_CLASS_ELEMENTWISE)                                        \
    X(GS_OP_LEAKY_RELU, "leaky_relu", 1, GS_CLASS_ELEMENTWISE) /* slope in alpha */       \
    X(GS_OP_ELU, "elu", 1, GS_CLASS_ELEMENTWISE)        /* alpha */                       \
    X(GS_OP_STEP, "step", 1, GS_CLASS_ELEMENTWISE)      /* 1 where a > 0, else 0 */       \
    X(GS_OP_DROPOUT, "dropout", 1, GS_CLASS_ELEMENTWISE) /* p in alpha, see program.h */  \
    X(GS_OP_CAST, "cast", 1, GS_CLASS_ELEMENTWISE)      /* bf16/f16 as stored -> f32 */   \
    X(GS_OP_ROUND, "round", 1, GS_CLASS_ELEMENTWISE)    /* f32 -> bf16, to be stored; vertex programs only */ \
    X(GS_OP_ROWSUM, "rowsum", 1, GS_CLASS_ELEMENTWISE)  /* [rows, w] -> [rows, 1] */      \
    X(GS_OP_ROWMAX, "rowmax", 1, GS_CLASS_ELEMENTWISE)  /* [rows, w] -> [rows, 1]; the shift of a row_softmax, of no \
                                                         * derivative */ \
    X(GS_OP_FOLD, "fold", 1, GS_CLASS_ELEMENTWISE)      /* [., h * d] -> [., h]: sums of d */ \
    X(GS_OP_SPREAD, "spread", 1, GS_CLASS_ELEMENTWISE)  /* [., h] -> [., h * d]: each d times */ \
    X(GS_OP_EQ, "eq", 2, GS_CLASS_ELEMENTWISE)          /* 1 where a == b, else 0 */      \
    X(GS_OP_EDGE_MASK, "edge_mask", 2, GS_CLASS_ELEMENTWISE) /* 0 or 1 / (1 - p) for an edge and column, see \
                                                              * program.h */ \
    X(GS_OP_IS_LOOP, "is_loop", 2, GS_CLASS_ELEMENTWISE) /* 1 where the ids of an edge's ends are equal, else 0; edge \
                                                          * programs only */ \
    X(GS_OP_CONCAT, "concat", 2, GS_CLASS_ELEMENTWISE)  /* columns of a, then of b; vertex programs only */ \
    X(GS_OP_PART, "part", 1, GS_CLASS_ELEMENTWISE)      /* columns from `site` on; vertex programs only */ \
    X(GS_OP_ACROSS, "across", 1, GS_CLASS_ELEMENTWISE)  /* [., h * d] -> [., d]: sums over h; vertex programs only */ \
    X(GS_OP_TILE, "tile", 1, GS_CLASS_ELEMENTWISE)      /* [., d] -> [., h * d]: the row h times; vertex programs \
                                                         * only */ \
    X(GS_OP_MATMUL_T, "matmul_t", 2, GS_CLASS_MATMUL)   /* x[., in] @ w[out, in]' */      \
    X(GS_OP_MATMUL, "matmul", 2, GS_CLASS_MATMUL)       /* x[., out] @ w[out, in] */      \
    X(GS_OP_MIX, "mix", 2, GS_CLASS_MATMUL)             /* x[., m * w], c[m, n] -> [., n * w]: column blocks, mixed */ \
    X(GS_OP_MIX_T, "mix_t", 2, GS_CLASS_MATMUL)         /* x[., n * w], c[m, n] -> [., m * w]: its transpose */ \
    X(GS_OP_FAN, "fan", 2, GS_CLASS_MATMUL)             /* x[., in], w[t * in, out] -> [., t * out]: by each of t \
                                                         * matrices */ \
    X(GS_OP_FAN_T, "fan_t", 2, GS_CLASS_MATMUL)         /* x[., t * out], w[t * in, out] -> [., in]: its transpose */ \
    X(GS_OP_BY_TYPE, "by_type", 2, GS_CLASS_MATMUL)     /* x[., in] of an edge, w[t * in, out] -> [., out]: by the \
                                                         * matrix of its type; edge programs only */ \
    X(GS_OP_BY_TYPE_T, "by_type_t", 2, GS_CLASS_MATMUL) /* x[., out] of an edge -> [., in]: by that matrix' */ \
    X(GS_OP_BASES, "bases", 2, GS_CLASS_MATMUL)         /* c[types, n], v[n * in, out] -> [types * in, out]: \
                                                         * parameters alone, left of a sum by type; folded \
                                                         * into it by ir */ \
    X(GS_OP_OUTER, "outer", 2, GS_CLASS_REDUCE)         /* a' @ b over all vertices */    \
    X(GS_OP_FAN_OUTER, "fan_outer", 2, GS_CLASS_REDUCE) /* of a fan: a' @ each block of b, one above the other */ \
    X(GS_OP_MIX_OUTER, "mix_outer", 2, GS_CLASS_REDUCE) /* of a mix: dot products of a's blocks and b's, over all \
                                                           * vertices */ \
    X(GS_OP_TYPE_WEIGHT, "type_weight", 1, GS_CLASS_REDUCE) /* the gradient that a type_outer adds up */ \
    X(GS_OP_COLSUM, "colsum", 1, GS_CLASS_REDUCE)       /* sum of rows */                 \
    X(GS_OP_MEAN_ALL, "mean_all", 1, GS_CLASS_STATISTIC) /* mean of each column over all vertices */ \
    X(GS_OP_VAR_ALL, "var_all", 1, GS_CLASS_STATISTIC)  /* biased variance of each column */ \
    X(GS_OP_SRC, "src", 1, GS_CLASS_EDGE)               /* D -> S: u's row */             \
    X(GS_OP_SUM_IN, "sum_in", 1, GS_CLASS_EDGE)         /* over in-edges, CSC order */    \
    X(GS_OP_SUM_OUT, "sum_out", 1, GS_CLASS_EDGE)       /* over out-edges, CSR order */   \
    X(GS_OP_MAX_IN, "max_in", 1, GS_CLASS_EDGE)         /* element by element */          \
    X(GS_OP_MIN_IN, "min_in", 1, GS_CLASS_EDGE)                                           \
    X(GS_OP_ATTEND, "attend", 2, GS_CLASS_EDGE)         /* sum_in(softmax(score) value) */ \
    X(GS_OP_LSE_IN, "lse_in", 1, GS_CLASS_EDGE)         /* log(sum_in(exp(score))) */     \
    X(GS_OP_SPLIT_IN, "split_in", 1, GS_CLASS_EDGE)     /* sum_in by edge type, side by side */ \
    X(GS_OP_PICK_OUT, "pick_out", 1, GS_CLASS_EDGE)     /* its transpose */               \
    X(GS_OP_TYPE_SRC, "type_src", 1, GS_CLASS_EDGE)     /* D -> E: u's row, of its columns those of the edge's type */ \
    X(GS_OP_TYPE_DST, "type_dst", 1, GS_CLASS_EDGE)     /* D -> E: the same of v's row; of no derivative */ \
    X(GS_OP_SPLIT_OUT, "split_out", 1, GS_CLASS_EDGE)   /* sum_out of a value of edges by type, side by side */ \
    X(GS_OP_TYPED, "typed_matmul", 2, GS_CLASS_EDGE)    /* x @ w[type of the edge] */     \
    X(GS_OP_TYPE_OUTER, "type_outer", 3, GS_CLASS_EDGE) /* x, g of edges, w: over out-edges, x' @ g to the matrix \
                                                         * of each edge's type in the gradient of w; no rows of \
                                                         * its own (width 1, 0) */ \
    X(GS_OP_LSTM_IN, "lstm_in", 2, GS_CLASS_EDGE)       /* last state over in-edges: u's part of the gates, w_hh */ \
    X(GS_OP_LSTM_BACK, "lstm_back", 3, GS_CLASS_EDGE)   /* its gradient in u's part: the same two, d(state) */ \
    X(GS_OP_LSTM_WEIGHT, "lstm_weight", 1, GS_CLASS_REDUCE) /* and in w_hh: of an lstm_back */ \
    X(GS_OP_XENT, "xent", 2, GS_CLASS_LOSS)             /* mean cross-entropy */          \
    X(GS_OP_XENT_GRAD, "xent_grad", 2, GS_CLASS_LOSS)   /* its gradient in the logits */

typedef enum gs_op {
#define X(id, name, inputs, cls) id,
    GS_OP_MAP(X)
#undef X
    GS_OP_COUNT
} gs_op;

const char *gs_op_name(gs_op op);
unsigned gs_op_inputs(gs_op op);
gs_op_class gs_op_classof(gs_op op);

/* Is it a sum over vertices of products of two registers? */
static inline bool gs_op_is_outer(gs_op op)
{
    return op == GS_OP_OUTER || op == GS_OP_MIX_OUTER || op == GS_OP_FAN_OUTER;
}

/* Is it a product of an edge's row by the matrix of the edge's type? */
static inline bool gs_op_by_type(gs_op op) { return op == GS_OP_BY_TYPE || op == GS_OP_BY_TYPE_T; }

/* Does an instruction of this operator write what belongs to a parameter, and no register? */
static inline bool gs_op_into_param(gs_op op)
{
    return gs_op_classof(op) == GS_CLASS_REDUCE || gs_op_classof(op) == GS_CLASS_STATISTIC;
}

#endif /* GS_TENSOR_OP_H */
