/* op.h - the one table of operators, and all facts about each.
 *
 * model, ir, program, compile, schedule and the devices ask this table what an operator is: how it is printed and
 * written in a model's text, how many operands it has, where it may stand, what it makes of 0, what it costs. What is
 * left to them is its formula on each device (device/cpu/simd_math.h, cuda/text_vertex.c) and its derivative
 * (ir/ir_grad.c); CONTRIBUTING.md says what a new one touches. Losses have a table of their own beside it.
 *
 * Shapes: a vertex value is [rows, width]; w[out, in] is a parameter as PyTorch stores it. Operators whose form is EACH
 * broadcast: their operands may be [rows, width], [rows, 1] (a number a row), a parameter of [width], or a constant.
 */
#ifndef GS_TENSOR_OP_H
#define GS_TENSOR_OP_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h" /* gs_train_task */

typedef enum gs_op_class {
    GS_CLASS_LEAF,        /* comes from outside: arrays, parameters, constants */
    GS_CLASS_ELEMENTWISE, /* row-wise and element by element; cheap to redo */
    GS_CLASS_MATMUL,      /* row-wise dense product */
    GS_CLASS_REDUCE,      /* over all vertices into a parameter's gradient */
    GS_CLASS_STATISTIC,   /* over all vertices into a row that later stages read as a parameter */
    GS_CLASS_EDGE,        /* over the edges of a vertex */
    GS_CLASS_LOSS,
} gs_op_class;

/* How an elementwise operator goes over the columns of a row. */
typedef enum gs_op_form {
    GS_FORM_NONE,    /* not elementwise */
    GS_FORM_EACH,    /* an element of the elements at the same place, so it may be written over an operand */
    GS_FORM_DRAW,    /* elements go by random numbers */
    GS_FORM_IDS,     /* of the ids of an edge's ends */
    GS_FORM_TYPE,    /* the same numbers in another type */
    GS_FORM_ROW,     /* one number of all columns */
    GS_FORM_FEWER,  /* columns become so many times fewer: sums */
    GS_FORM_MORE,   /* so many times more: copies */
    GS_FORM_COLUMNS, /* columns side by side, or some of them */
} gs_op_form;

/* Where is the result 0, if operands are 0 in some rows? */
typedef enum gs_op_zero {
    GS_ZERO_LOST,   /* 0 becomes something else */
    GS_ZERO_FIRST,  /* where the first operand is */
    GS_ZERO_ALL,    /* where all operands are: a sum */
    GS_ZERO_ANY,    /* where one is: a product */
    GS_ZERO_CHOICE, /* where the second and the third operand are, whatever the first */
    GS_ZERO_POWER,  /* where the first operand is, if alpha is above 0: else 0 becomes 1 or infinite */
    GS_ZERO_TRAIN,  /* off the training rows: the loss's gradient */
} gs_op_zero;

/* Facts that are true of an operator or not. */
enum {
    GS_FACT_VERTEX = 1 << 0,   /* may stand in a vertex program */
    GS_FACT_EDGE = 1 << 1,     /* may stand in an edge program */
    GS_FACT_ALPHA = 1 << 2,    /* has a constant, `alpha`, that changes the function */
    GS_FACT_HARD = 1 << 3,     /* costs what an exponential does, not what an addition does */
    GS_FACT_FLAT = 1 << 4,     /* its derivative is 0 wherever it has one */
    GS_FACT_COMMUTES = 1 << 5, /* the order of its two operands does not matter */
    GS_FACT_DIVERGES = 1 << 6, /* of a number that is not the right one it may make an infinity or NaN */
};

#define GS_BOTH (GS_FACT_VERTEX | GS_FACT_EDGE)

/* Elementwise, of form EACH, in vertex and edge programs:
 * enum, printed name, name or sign in a model's text (NULL: none), operands, alpha where the text gives none,
 * zero, other facts, value in float64 of the operands x, y, z and of alpha (what the graph folds constants with). */
#define GS_OP_EACH_MAP(X)                                                                                              \
    X(GS_OP_ADD, "add", "+", 2, 0, GS_ZERO_ALL, GS_FACT_COMMUTES, x + y)                                               \
    X(GS_OP_SUB, "sub", "-", 2, 0, GS_ZERO_ALL, 0, x - y)                                                              \
    X(GS_OP_MUL, "mul", "*", 2, 0, GS_ZERO_ANY, GS_FACT_COMMUTES, x * y)                                               \
    X(GS_OP_DIV, "div", "/", 2, 0, GS_ZERO_FIRST, 0, x / y)                                                            \
    X(GS_OP_MAX, "max", "max", 2, 0, GS_ZERO_ALL, 0, x > y ? x : y)                                                    \
    X(GS_OP_MIN, "min", "min", 2, 0, GS_ZERO_ALL, 0, x < y ? x : y)                                                    \
    X(GS_OP_NEG, "neg", NULL, 1, 0, GS_ZERO_FIRST, 0, -x)                                                              \
    X(GS_OP_EXP, "exp", "exp", 1, 0, GS_ZERO_LOST, GS_FACT_HARD | GS_FACT_DIVERGES, exp(x))                            \
    X(GS_OP_LOG, "log", "log", 1, 0, GS_ZERO_LOST, GS_FACT_HARD | GS_FACT_DIVERGES, log(x))                            \
    X(GS_OP_SQRT, "sqrt", "sqrt", 1, 0, GS_ZERO_FIRST, GS_FACT_DIVERGES, sqrt(x))                                      \
    X(GS_OP_RSQRT, "rsqrt", "rsqrt", 1, 0, GS_ZERO_LOST, GS_FACT_DIVERGES, 1 / sqrt(x))                                \
    X(GS_OP_SIGMOID, "sigmoid", "sigmoid", 1, 0, GS_ZERO_LOST, GS_FACT_HARD, 1 / (1 + exp(-x)))                        \
    X(GS_OP_TANH, "tanh", "tanh", 1, 0, GS_ZERO_FIRST, GS_FACT_HARD, tanh(x))                                          \
    X(GS_OP_RELU, "relu", "relu", 1, 0, GS_ZERO_FIRST, 0, x > 0 ? x : 0)                                               \
    X(GS_OP_LEAKY_RELU, "leaky_relu", "leaky_relu", 1, 0.01f, GS_ZERO_FIRST, GS_FACT_ALPHA, x > 0 ? x : alpha * x)     \
    X(GS_OP_ELU, "elu", "elu", 1, 1, GS_ZERO_FIRST, GS_FACT_ALPHA | GS_FACT_HARD, x > 0 ? x : alpha * expm1(x))        \
    X(GS_OP_GELU, "gelu", "gelu", 1, 0, GS_ZERO_FIRST, GS_FACT_HARD, x * erfc(-x * M_SQRT1_2) / 2)                     \
    /* its derivative */                                                                                               \
    X(GS_OP_GELU_SLOPE, "gelu_slope", NULL, 1, 0, GS_ZERO_LOST, GS_FACT_HARD,                                          \
      erfc(-x * M_SQRT1_2) / 2 + x * exp(-x * x / 2) * M_SQRT1_2 * M_2_SQRTPI / 2)                                     \
    X(GS_OP_SILU, "silu", "silu", 1, 0, GS_ZERO_FIRST, GS_FACT_HARD, x / (1 + exp(-x)))                                \
    X(GS_OP_ABS, "abs", "abs", 1, 0, GS_ZERO_FIRST, 0, fabs(x))                                                        \
    /* the nearest number of bfloat16 */                                                                               \
    X(GS_OP_NEAREST, "nearest", NULL, 1, 0, GS_ZERO_FIRST, GS_FACT_FLAT, gs_f32_from_bf16(gs_bf16_from_f32((float)x))) \
    X(GS_OP_POW, "pow", "pow", 1, NAN, GS_ZERO_POWER, GS_FACT_ALPHA | GS_FACT_HARD | GS_FACT_DIVERGES, pow(x, alpha))  \
    X(GS_OP_STEP, "step", NULL, 1, 0, GS_ZERO_FIRST, GS_FACT_FLAT, x > 0)                                              \
    X(GS_OP_WHERE, "where", "where", 3, 0, GS_ZERO_CHOICE, 0, x != 0 ? y : z)                                          \
    X(GS_OP_EQ, "eq", "==", 2, 0, GS_ZERO_LOST, GS_FACT_FLAT, x == y)                                                  \
    X(GS_OP_NE, "ne", "!=", 2, 0, GS_ZERO_ALL, GS_FACT_FLAT, x != y)                                                   \
    X(GS_OP_LT, "lt", "<", 2, 0, GS_ZERO_ALL, GS_FACT_FLAT, x < y)                                                     \
    X(GS_OP_LE, "le", "<=", 2, 0, GS_ZERO_LOST, GS_FACT_FLAT, x <= y)                                                  \
    X(GS_OP_GT, "gt", ">", 2, 0, GS_ZERO_ALL, GS_FACT_FLAT, x > y)                                                     \
    X(GS_OP_GE, "ge", ">=", 2, 0, GS_ZERO_LOST, GS_FACT_FLAT, x >= y)

/* All others: enum, printed name, operands, class, form, zero, facts. */
#define GS_OP_LEAF_MAP(X)                                                                                              \
    X(GS_OP_INPUT, "input", 0, GS_CLASS_LEAF, GS_FORM_NONE, GS_ZERO_LOST, 0)        /* a vertex array of the store */  \
    X(GS_OP_PARAM, "param", 0, GS_CLASS_LEAF, GS_FORM_NONE, GS_ZERO_LOST, 0)                                           \
    X(GS_OP_CONST, "const", 0, GS_CLASS_LEAF, GS_FORM_NONE, GS_ZERO_LOST, 0)                                           \
    X(GS_OP_WEIGHT, "edge_weight", 0, GS_CLASS_LEAF, GS_FORM_NONE, GS_ZERO_LOST, 0) /* of an edge, width 1 */          \
    X(GS_OP_EDGE_FEATURES, "edge_features", 0, GS_CLASS_LEAF, GS_FORM_NONE, GS_ZERO_LOST, 0) /* of an edge */

/* p of dropout and edge_mask is in alpha; program.h says what they draw. */
#define GS_OP_ROW_MAP(X)                                                                                               \
    X(GS_OP_DROPOUT, "dropout", 1, GS_CLASS_ELEMENTWISE, GS_FORM_DRAW, GS_ZERO_FIRST, GS_FACT_VERTEX | GS_FACT_HARD)   \
    X(GS_OP_CAST, "cast", 1, GS_CLASS_ELEMENTWISE, GS_FORM_TYPE, GS_ZERO_FIRST, GS_FACT_VERTEX) /* as stored -> f32 */ \
    X(GS_OP_ROUND, "round", 1, GS_CLASS_ELEMENTWISE, GS_FORM_TYPE, GS_ZERO_FIRST, GS_FACT_VERTEX) /* f32 -> bf16 */    \
    X(GS_OP_ROWSUM, "rowsum", 1, GS_CLASS_ELEMENTWISE, GS_FORM_ROW, GS_ZERO_FIRST, GS_BOTH) /* [., w] -> [., 1] */     \
    /* the shift of a row_softmax, of no derivative */                                                                 \
    X(GS_OP_ROWMAX, "rowmax", 1, GS_CLASS_ELEMENTWISE, GS_FORM_ROW, GS_ZERO_FIRST, GS_BOTH | GS_FACT_FLAT)             \
    /* [., h * d] -> [., h]: sums of d; [., h] -> [., h * d]: each d times */                                          \
    X(GS_OP_FOLD, "fold", 1, GS_CLASS_ELEMENTWISE, GS_FORM_FEWER, GS_ZERO_FIRST, GS_BOTH)                             \
    X(GS_OP_EXPAND, "expand", 1, GS_CLASS_ELEMENTWISE, GS_FORM_MORE, GS_ZERO_FIRST, GS_BOTH)                          \
    /* 0 or 1 / (1 - p) for an edge and column */                                                                      \
    X(GS_OP_EDGE_MASK, "edge_mask", 2, GS_CLASS_ELEMENTWISE, GS_FORM_DRAW, GS_ZERO_LOST, GS_BOTH | GS_FACT_FLAT)       \
    /* 1 where the ids of an edge's ends are equal, else 0 */                                                          \
    X(GS_OP_IS_LOOP, "is_loop", 2, GS_CLASS_ELEMENTWISE, GS_FORM_IDS, GS_ZERO_LOST, GS_FACT_EDGE | GS_FACT_FLAT)       \
    /* columns of a, then of b; columns from `site` on */                                                              \
    X(GS_OP_CONCAT, "concat", 2, GS_CLASS_ELEMENTWISE, GS_FORM_COLUMNS, GS_ZERO_ALL, GS_FACT_VERTEX)                   \
    X(GS_OP_PART, "part", 1, GS_CLASS_ELEMENTWISE, GS_FORM_COLUMNS, GS_ZERO_FIRST, GS_FACT_VERTEX)                     \
    /* [., h * d] -> [., d]: sums over h; [., d] -> [., h * d]: the row h times */                                     \
    X(GS_OP_ACROSS, "across", 1, GS_CLASS_ELEMENTWISE, GS_FORM_FEWER, GS_ZERO_FIRST, GS_FACT_VERTEX)                  \
    X(GS_OP_TILE, "tile", 1, GS_CLASS_ELEMENTWISE, GS_FORM_MORE, GS_ZERO_FIRST, GS_FACT_VERTEX)

#define GS_OP_PRODUCT_MAP(X)                                                                                           \
    /* x[., in] @ w[out, in]'; x[., out] @ w[out, in] */                                                               \
    X(GS_OP_MATMUL_T, "matmul_t", 2, GS_CLASS_MATMUL, GS_FORM_NONE, GS_ZERO_FIRST, GS_FACT_VERTEX)                     \
    X(GS_OP_MATMUL, "matmul", 2, GS_CLASS_MATMUL, GS_FORM_NONE, GS_ZERO_FIRST, GS_FACT_VERTEX)                         \
    /* x[., m * w], c[m, n] -> [., n * w]: column blocks, mixed; and its transpose */                                  \
    X(GS_OP_MIX, "mix", 2, GS_CLASS_MATMUL, GS_FORM_NONE, GS_ZERO_FIRST, GS_FACT_VERTEX)                               \
    X(GS_OP_MIX_T, "mix_t", 2, GS_CLASS_MATMUL, GS_FORM_NONE, GS_ZERO_FIRST, GS_FACT_VERTEX)                           \
    /* x[., in], w[t * in, out] -> [., t * out]: by each of t matrices; and its transpose */                           \
    X(GS_OP_FAN, "fan", 2, GS_CLASS_MATMUL, GS_FORM_NONE, GS_ZERO_FIRST, GS_FACT_VERTEX)                               \
    X(GS_OP_FAN_T, "fan_t", 2, GS_CLASS_MATMUL, GS_FORM_NONE, GS_ZERO_FIRST, GS_FACT_VERTEX)                           \
    /* x[., in] of an edge, w[t * in, out] -> [., out]: by the matrix of its type; by that matrix' */                  \
    X(GS_OP_BY_TYPE, "by_type", 2, GS_CLASS_MATMUL, GS_FORM_NONE, GS_ZERO_FIRST, GS_FACT_EDGE)                         \
    X(GS_OP_BY_TYPE_T, "by_type_t", 2, GS_CLASS_MATMUL, GS_FORM_NONE, GS_ZERO_FIRST, GS_FACT_EDGE)                     \
    /* x of an edge, w -> x @ m, x @ m': m [x, result] or [result, x], the part of w from `site` on, of its rows or    \
     * columns, whichever it has fewer of */                                                                       \
    X(GS_OP_DENSE, "dense", 2, GS_CLASS_MATMUL, GS_FORM_NONE, GS_ZERO_FIRST, GS_FACT_EDGE)                             \
    X(GS_OP_DENSE_T, "dense_t", 2, GS_CLASS_MATMUL, GS_FORM_NONE, GS_ZERO_FIRST, GS_FACT_EDGE)                         \
    /* c[types, n], v[n * in, out] -> [types * in, out]: parameters alone, left of a sum by type; ir folds it in */    \
    X(GS_OP_BASES, "bases", 2, GS_CLASS_MATMUL, GS_FORM_NONE, GS_ZERO_LOST, 0)

#define GS_OP_REDUCE_MAP(X)                                                                                            \
    X(GS_OP_OUTER, "outer", 2, GS_CLASS_REDUCE, GS_FORM_NONE, GS_ZERO_LOST, GS_FACT_VERTEX) /* a' @ b */               \
    /* of a fan: a' @ each block of b, one above the other; of a mix: dot products of a's blocks and b's */            \
    X(GS_OP_FAN_OUTER, "fan_outer", 2, GS_CLASS_REDUCE, GS_FORM_NONE, GS_ZERO_LOST, GS_FACT_VERTEX)                    \
    X(GS_OP_MIX_OUTER, "mix_outer", 2, GS_CLASS_REDUCE, GS_FORM_NONE, GS_ZERO_LOST, GS_FACT_VERTEX)                    \
    /* the gradient that a type_outer adds up */                                                                       \
    X(GS_OP_TYPE_WEIGHT, "type_weight", 1, GS_CLASS_REDUCE, GS_FORM_NONE, GS_ZERO_LOST, 0)                             \
    X(GS_OP_COLSUM, "colsum", 1, GS_CLASS_REDUCE, GS_FORM_NONE, GS_ZERO_LOST, GS_FACT_VERTEX) /* sum of rows */        \
    /* and that of an lstm_back in w_hh */                                                                             \
    X(GS_OP_LSTM_WEIGHT, "lstm_weight", 1, GS_CLASS_REDUCE, GS_FORM_NONE, GS_ZERO_LOST, 0)                             \
    /* mean and biased variance of each column over all vertices */                                                    \
    X(GS_OP_MEAN_ALL, "mean_all", 1, GS_CLASS_STATISTIC, GS_FORM_NONE, GS_ZERO_LOST, GS_FACT_VERTEX)                   \
    X(GS_OP_VAR_ALL, "var_all", 1, GS_CLASS_STATISTIC, GS_FORM_NONE, GS_ZERO_LOST, GS_FACT_VERTEX)

/* Losses, in the order of .loss's words: enum, name and kernel, whose labels it is of (the first of a task is what it
 * learns by where nothing is said), facts. Each has two operators, the mean over the training rows and its gradient in
 * the logits. program.h says what they compute; their formulas are in device/cpu/kernels_loss.c and
 * cuda/kernels/fixed.cu. */
#define GS_LOSS_MAP(X)                                                                                                 \
    X(XENT, xent, GS_TRAIN_TASK_CLASSIFY, GS_FACT_HARD)                                                                \
    X(BCE, bce, GS_TRAIN_TASK_MULTILABEL, GS_FACT_HARD)                                                                \
    X(MSE, mse, GS_TRAIN_TASK_REGRESS, 0)                                                                              \
    X(HUBER, huber, GS_TRAIN_TASK_REGRESS, 0)

/* Edge passes: of the graph, no instructions. */
#define GS_OP_EDGE_MAP(X)                                                                                              \
    X(GS_OP_SRC, "src", 1, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)           /* D -> S: u's row */               \
    X(GS_OP_SUM_IN, "sum_in", 1, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)     /* over in-edges, CSC order */      \
    X(GS_OP_SUM_OUT, "sum_out", 1, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)   /* over out-edges, CSR order */     \
    X(GS_OP_MAX_IN, "max_in", 1, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)     /* element by element */            \
    X(GS_OP_MIN_IN, "min_in", 1, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)                                         \
    /* value, number of the source (above 0): the largest or least, who alone has it, else 0, and how many edges do,   \
     * side by side */                                                                                                 \
    X(GS_OP_MAX_HELD_IN, "max_held_in", 2, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)                               \
    X(GS_OP_MIN_HELD_IN, "min_held_in", 2, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)                               \
    X(GS_OP_ATTEND, "attend", 2, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)     /* sum_in(softmax(score) value) */  \
    X(GS_OP_LSE_IN, "lse_in", 1, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)     /* log(sum_in(exp(score))) */       \
    X(GS_OP_SPLIT_IN, "split_in", 1, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0) /* sum_in by type, side by side */  \
    X(GS_OP_PICK_OUT, "pick_out", 1, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0) /* its transpose */                 \
    /* D -> E: u's row, of its columns those of the edge's type; the same of v's row, of no derivative */              \
    X(GS_OP_TYPE_SRC, "type_src", 1, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)                                     \
    X(GS_OP_TYPE_DST, "type_dst", 1, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)                                     \
    /* sum_out of a value of edges by type, side by side */                                                            \
    X(GS_OP_SPLIT_OUT, "split_out", 1, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)                                   \
    X(GS_OP_TYPED, "typed_matmul", 2, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0) /* x @ w[type of the edge] */      \
    /* x, g of edges, w: over out-edges, x' @ g to the matrix of each edge's type in the gradient of w; no rows of its \
     * own (width 1, 0) */                                                                                             \
    X(GS_OP_TYPE_OUTER, "type_outer", 3, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)                                 \
    /* the same to the part m of w, as dense products have it */                                                       \
    X(GS_OP_DENSE_OUTER, "dense_outer", 3, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)                               \
    /* last state over in-edges: u's part of the gates, w_hh; its gradient in u's part: the same two, d(state) */      \
    X(GS_OP_LSTM_IN, "lstm_in", 2, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)                                       \
    X(GS_OP_LSTM_BACK, "lstm_back", 3, GS_CLASS_EDGE, GS_FORM_NONE, GS_ZERO_LOST, 0)

#define GS_OP_OTHER_MAP(X) GS_OP_ROW_MAP(X) GS_OP_PRODUCT_MAP(X) GS_OP_REDUCE_MAP(X) GS_OP_EDGE_MAP(X)

typedef enum gs_op {
#define X(id, ...) id,
    GS_OP_LEAF_MAP(X) GS_OP_EACH_MAP(X) GS_OP_OTHER_MAP(X)
#undef X
#define X(id, ...) GS_OP_##id, GS_OP_##id##_GRAD,
    GS_LOSS_MAP(X)
#undef X
    GS_OP_COUNT
} gs_op;

typedef enum gs_loss {
#define X(id, ...) GS_LOSS_##id,
    GS_LOSS_MAP(X)
#undef X
    GS_LOSSES
} gs_loss;

typedef struct gs_op_facts {
    const char *name; /* as printed */
    const char *text; /* a function's name or an infix sign in a model's text; NULL: not written there */
    float standard;   /* alpha where a text gives none */
    uint8_t inputs;
    gs_op_class cls;
    gs_op_form form;
    gs_op_zero zero;
    unsigned is;      /* GS_FACT_... */
    gs_loss loss;     /* of class LOSS */
} gs_op_facts;

extern const gs_op_facts gs_op__facts[GS_OP_COUNT];
/* `op` must be below GS_OP_COUNT. */
static inline const gs_op_facts *gs_op_facts_of(gs_op op)
{
    assert((unsigned)op < GS_OP_COUNT);
    return &gs_op__facts[op];
}
/* Value of an operator of form EACH; the operands that it does not have are ignored. NaN for any other. */
double gs_op_value(gs_op op, double x, double y, double z, double alpha);

const char *gs_op_name(gs_op op); /* "?" for what is no operator */

static inline unsigned gs_op_inputs(gs_op op) { return gs_op_facts_of(op)->inputs; }
static inline gs_op_class gs_op_classof(gs_op op) { return gs_op_facts_of(op)->cls; }
static inline gs_op_form gs_op_form_of(gs_op op) { return gs_op_facts_of(op)->form; }
static inline bool gs_op_is(gs_op op, unsigned fact) { return (gs_op_facts_of(op)->is & fact) != 0; }
static inline bool gs_op_is_each(gs_op op) { return gs_op_form_of(op) == GS_FORM_EACH; }
/* Does it go by random numbers of the epoch, with their probability in alpha? */
static inline bool gs_op_is_random(gs_op op) { return gs_op_form_of(op) == GS_FORM_DRAW; }

/* Is it a sum over vertices of products of two registers? */
static inline bool gs_op_is_outer(gs_op op)
{
    return op == GS_OP_OUTER || op == GS_OP_MIX_OUTER || op == GS_OP_FAN_OUTER;
}

/* Is it a product of an edge's row by the matrix of the edge's type, or by one for all edges? */
static inline bool gs_op_by_type(gs_op op) { return op == GS_OP_BY_TYPE || op == GS_OP_BY_TYPE_T; }
static inline bool gs_op_is_dense(gs_op op) { return op == GS_OP_DENSE || op == GS_OP_DENSE_T; }
static inline bool gs_op_on_edges(gs_op op) { return gs_op_by_type(op) || gs_op_is_dense(op); }
/* By its transpose? */
static inline bool gs_op_by_transpose(gs_op op) { return op == GS_OP_BY_TYPE_T || op == GS_OP_DENSE_T; }

/* The operator of a loss, or that of its gradient, which gives the loss, too. */
static inline gs_op gs_op_of_loss(gs_loss loss, bool gradient)
{
    return (gs_op)(GS_OP_XENT + 2 * (int)loss + (int)gradient); /* the first in the table */
}
static inline bool gs_op_is_loss_grad(gs_op op)
{
    return gs_op_classof(op) == GS_CLASS_LOSS && op == gs_op_of_loss(gs_op_facts_of(op)->loss, true);
}
/* Whose labels it is of. */
gs_train_task gs_loss_task(gs_loss loss);
/* What a task learns by where nothing is said. */
gs_loss gs_loss_of_task(gs_train_task task);
/* A loss that adds up figures of each column (GS_LOSS_SUMS), not of rows alone. */
static inline bool gs_op_has_column_sums(gs_op op)
{
    return gs_op_classof(op) == GS_CLASS_LOSS && gs_loss_task(gs_op_facts_of(op)->loss) != GS_TRAIN_TASK_CLASSIFY;
}
/* For each of the splits train, valid, test and each column: several labels have those that are there and found, that
 * are found and not there, that are there and not found (a logit above 0 says that it is there); numbers the sums of
 * squared and of absolute errors, and how many there are. */
#define GS_LOSS_SPLITS 3u
#define GS_LOSS_SUMS 3u

/* Does an instruction of this operator write what belongs to a parameter, and no register? */
static inline bool gs_op_into_param(gs_op op)
{
    return gs_op_classof(op) == GS_CLASS_REDUCE || gs_op_classof(op) == GS_CLASS_STATISTIC;
}

#endif /* GS_TENSOR_OP_H */
