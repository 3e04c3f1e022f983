/* ir.h - the typed dataflow graph of a model, and its derivative.
 *
 * A graph is a list of nodes in topological order (a node's inputs have lower
 * numbers) and a list of outputs. Every value has a graph type, as in Seastar
 * (EuroSys'21): S one row a source (seen from an edge), D one row a destination
 * (= a vertex), E one row an edge, P none (a parameter or a constant).
 *
 * Nodes are only ever added, through the constructors below, and a pass builds
 * a new graph from an old one (gs_ir_rewrite). Where `fold` is on, the constructors
 * simplify: constants are folded, x * 1 and x + 0 vanish, an equal node is found
 * again instead of made twice, factors common to both sides of a sum leave it, and
 * sum_in(y) + y becomes one sum that includes the vertex's own row. Dead code
 * is what a rewrite does not reach.
 *
 * Errors are sticky: a constructor that fails records its text (with the place in
 * the model's text that gs_ir_at() set last), returns GS_IR_NONE, and so does every
 * constructor that gets a GS_IR_NONE. Look at gs_ir_status() at the end.
 *
 * Threads: one thread owns a graph. Typical size: 10 to 500 nodes.
 */
#ifndef GS_IR_IR_H
#define GS_IR_IR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/alloc.h" /* GS_ENDS_BY */
#include "base/dtype.h"
#include "base/initial.h"
#include "base/status.h"
#include "base/text.h"
#include "tensor/op.h"

#define GS_IR_NONE UINT32_MAX
#define GS_IR_INPUTS 3
#define GS_IR_NAME_BYTES 48

typedef struct gs_ir gs_ir;

/* As bits, so that the type of an operation on two values is the OR of theirs:
 * something of the source with something of the destination is of the edge. */
typedef enum gs_graph_type { GS_TYPE_P = 0, GS_TYPE_D = 1, GS_TYPE_S = 2, GS_TYPE_E = 3 } gs_graph_type;

typedef struct gs_node {
    gs_op op;
    gs_graph_type type;
    gs_dtype dtype;            /* of an INPUT as it is stored; of a ROUND GS_BF16; else GS_F32 */
    uint32_t width;            /* elements a row; PARAM: columns */
    uint32_t dims, rows;       /* PARAM: 1 or 2, as it is computed with; rows of a matrix */
    uint32_t shape_dims, shape[3]; /* PARAM: its shape in files, where that is another; 0: the same. A table of blocks:
                                    * 3, and how many */
    uint32_t picked;           /* PARAM: a row for each edge type, so many dimensions in files (1: of one column);
                                * in shape a matrix [1, n] for each; 0: it is none */
    gs_initial initial;        /* PARAM, a table: how it starts */
    bool fixed;                /* PARAM: not learned */
    bool moving;               /* PARAM: not learned, but training passes change it */
    bool counter;              /* PARAM: counts training passes; moving, one element */
    uint32_t in[GS_IR_INPUTS]; /* GS_IR_NONE where unused */
    float alpha;               /* CONST: the value; leaky_relu, elu: slope;
                                * DROPOUT, EDGE_MASK: p */
    uint32_t site;             /* DROPOUT, EDGE_MASK: which of the model's; PART: the first column; DENSE, DENSE_T,
                                * DENSE_OUTER: the first row or column of the parameter's part */
    bool self;                 /* SUM_IN, SUM_OUT of rows: the vertex's own row is added too;
                                * TYPED: the mean over the edges of each type, not their sum;
                                * LSE_IN, ATTEND once lowered: over the vertex itself, too, which is added later;
                                * EDGE_MASK: all self loops of a vertex draw the same */
    uint32_t line, column;     /* in the model's text; 0: none */
    char name[GS_IR_NAME_BYTES]; /* INPUT, PARAM: which; else a label for people, or "" */
} gs_node;

typedef enum gs_output_kind {
    GS_OUTPUT_LOGITS, /* the root */
    GS_OUTPUT_LOSS,   /* a loss node without a gradient */
    GS_OUTPUT_STORE,  /* a value to be kept as an array */
    GS_OUTPUT_GRAD,   /* a REDUCE node, to be added to the gradient of `param` */
    GS_OUTPUT_GRAD_ROWS, /* the rows of the gradient of the table `param`, an INPUT */
    GS_OUTPUT_FOLLOW, /* a STATISTIC node that the fixed `param` follows: its running mean over passes */
} gs_output_kind;

typedef struct gs_output {
    gs_output_kind kind;
    uint32_t node;
    uint32_t param; /* GS_OUTPUT_GRAD, GS_OUTPUT_FOLLOW: the PARAM node; GS_OUTPUT_GRAD_ROWS: the table */
} gs_output;

static inline bool gs_output_has_param(const gs_output *o)
{
    return o->kind == GS_OUTPUT_GRAD || o->kind == GS_OUTPUT_GRAD_ROWS || o->kind == GS_OUTPUT_FOLLOW;
}

/* `source` names the text in error messages. NULL when memory is short. */
gs_ir *gs_ir_new(const char *source, bool fold);
/* Errors show the line of this text that they are about. The graph keeps it. */
void gs_ir_set_text(gs_ir *ir, gs_text *text);
gs_ir *gs_ir_clone(const gs_ir *ir);
void gs_ir_free(gs_ir *ir); /* NULL is allowed */
GS_ENDS_BY(gs_ir, gs_ir_free)
void gs_ir_swap(gs_ir *a, gs_ir *b);

/* ---- reading ---- */
uint32_t gs_ir_count(const gs_ir *ir);
/* Valid until the next constructor call. */
const gs_node *gs_ir_node(const gs_ir *ir, uint32_t i);
uint32_t gs_ir_outputs(const gs_ir *ir);
const gs_output *gs_ir_output(const gs_ir *ir, uint32_t i);
/* The logits' node, GS_IR_NONE where there are none yet. */
uint32_t gs_ir_root(const gs_ir *ir);
bool gs_ir_differentiated(const gs_ir *ir);
/* Inputs a node really has: op.h's, and what the program's instruction reads
 * besides (input ids of a dropout, splits of a loss); and, until it is lowered, what a softmax over the vertex itself,
 * too, has of that:
 *     m = LSE_IN(s, t, w)    log(sum_in exp(s) + w exp(t)), t the vertex's own score, which counts w times
 *     ATTEND(m, x, y)        sum_in(exp(s - m) x) + exp(t - m) y, of any LSE_IN m; without y its edges alone */
uint32_t gs_node_inputs(const gs_node *n);
/* GS_OK, or the first error of a constructor; its text is gs_last_error(). */
gs_status gs_ir_status(const gs_ir *ir);

/* ---- making nodes ---- */
/* Place in the text that nodes made from here on come from. */
void gs_ir_at(gs_ir *ir, uint32_t line, uint32_t column);
/* Records "SOURCE:LINE:COLUMN: ..." as the sticky error and returns GS_IR_NONE. */
uint32_t gs_ir_error(gs_ir *ir, gs_status st, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Leaves of the same name are the same node; another shape is an error. */
uint32_t gs_ir_input(gs_ir *ir, const char *name, uint32_t width, gs_dtype dtype);
/* Learned rows of vertices: an input whose name in the graph begins with GS_IR_TABLE, as no other's does. */
#define GS_IR_TABLE "table."
uint32_t gs_ir_table(gs_ir *ir, const char *name, uint32_t width);
/* Says that files have it as [blocks, vertices, width / blocks], and not as [vertices, width]. */
void gs_ir_table_blocks(gs_ir *ir, uint32_t table, uint32_t blocks);
/* That; 0: as [vertices, width]. */
uint32_t gs_node_table_blocks(const gs_node *n);
/* Its name in files, or NULL where the node is no table. */
const char *gs_node_table(const gs_node *n);
uint32_t gs_ir_param(gs_ir *ir, const char *name, uint32_t dims, uint32_t rows, uint32_t cols);
/* Says what files call the parameter's shape, and whether it is learned. */
void gs_ir_param_shape(gs_ir *ir, uint32_t param, uint32_t dims, const uint32_t *shape, bool fixed);
/* A row of `width` for each of several types, [types] or [types, width] in files as `dims` says, and the value of edges
 * that is the row of the edge's type. */
uint32_t gs_ir_param_by_type(gs_ir *ir, const char *name, uint32_t types, uint32_t width, uint32_t dims, bool fixed);
uint32_t gs_ir_by_type(gs_ir *ir, uint32_t param);
/* Says how a parameter or a table starts: else a matrix, or what is one in files, starts as GLOROT, another parameter
 * as 0, and a table as N(0, 1). */
void gs_ir_initial(gs_ir *ir, uint32_t node, gs_initial initial);
/* Says whether training passes change it, and whether it counts them. */
void gs_ir_param_moves(gs_ir *ir, uint32_t param, bool moving, bool counter);
uint32_t gs_ir_const(gs_ir *ir, float value, uint32_t width);
uint32_t gs_ir_weight(gs_ir *ir);
/* The features of an edge, `width` of them. */
uint32_t gs_ir_edge_features(gs_ir *ir, uint32_t width);
/* Elementwise of one input, SRC, and statistics; `alpha` where the operator has one. */
uint32_t gs_ir_unary(gs_ir *ir, gs_op op, uint32_t a, float alpha);
/* FOLD, SPREAD, ACROSS, TILE, SPLIT_IN, PICK_OUT: the result has `width` elements a row. */
uint32_t gs_ir_resize(gs_ir *ir, gs_op op, uint32_t a, uint32_t width);
/* Columns [first, first + width) of a vertex value. */
uint32_t gs_ir_part(gs_ir *ir, uint32_t a, uint32_t first, uint32_t width);
/* Elementwise of three inputs, LSE_IN and ATTEND over the vertex itself, too. */
uint32_t gs_ir_ternary(gs_ir *ir, gs_op op, uint32_t a, uint32_t b, uint32_t c);
/* Elementwise of two inputs, CONCAT, matmul(_t), outer, ATTEND(lse, value), LSTM_IN(gates' input, weight). */
uint32_t gs_ir_binary(gs_ir *ir, gs_op op, uint32_t a, uint32_t b);
uint32_t gs_ir_dropout(gs_ir *ir, uint32_t a, float p, uint32_t site);
/* The mask that drops elements of a value of edges: 0 with probability p, else 1 / (1 - p);
 * `width` elements for each edge, drawn independently. `self`: the vertex's self loops draw as one. */
uint32_t gs_ir_edge_mask(gs_ir *ir, uint32_t width, float p, uint32_t site, bool self);
/* SUM_IN, SUM_OUT, MAX_IN, MIN_IN, LSE_IN of a value of any type; of type D it is the destination's.
 * `self` only for sums. */
uint32_t gs_ir_sum(gs_ir *ir, gs_op op, uint32_t a, bool self);
/* The same operation as `like` (of any graph) on other inputs. */
uint32_t gs_ir_like(gs_ir *ir, const gs_node *like, const uint32_t *in);
/* Names a value for people; the first name stays. Leaves keep their own. */
void gs_ir_label(gs_ir *ir, uint32_t node, const char *name);
void gs_ir_add_output(gs_ir *ir, gs_output_kind kind, uint32_t node, uint32_t param);
/* Drops the loss and every gradient: the forward graph again. */
void gs_ir_forward_only(gs_ir *ir);
/* Drops outputs of this kind. */
void gs_ir_drop_outputs(gs_ir *ir, gs_output_kind kind);

/* ---- passes ---- */
/* Node `i` of `from`, with its inputs already in `to` as `in`, to a node of `to`. */
typedef uint32_t (*gs_ir_rewriter)(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context);
/* Rebuilds the graph through `fn` (NULL: as it is), with folding, from what the
 * outputs reach; parameters stay even if nothing uses them. `ir` is unchanged on failure. */
gs_status gs_ir_rewrite(gs_ir *ir, gs_ir_rewriter fn, void *context);
/* Folds, and takes the work that depends on one end only off the edges: a value of type S
 * becomes SRC(vertex value), factors of the destination leave the sum, sums of terms are split. What
 * really depends on both ends stays a value of type E under its sum. sum(softmax(s) x)
 * becomes ATTEND(LSE_IN(s), x), products with W[e.type] become SPLIT_IN and one product. A matrix product of a value
 * of both ends, which cannot leave the edges, becomes DENSE, but for what of it is of one end. */
gs_status gs_ir_normalise(gs_ir *ir);
/* The last pass over a graph, its gradients included: softmaxes over the vertex itself, too, become softmaxes over
 * edges and arithmetic on rows, and the first input of each ATTEND its scores, as programs have it. */
gs_status gs_ir_lower(gs_ir *ir);

/* Adds the mean loss over the training vertices on the root (inputs
 * "labels", of that type at rest, and "split"), then the
 * gradient of every parameter (reverse mode), as IR again. Differentiating
 * normalises first. Values that depend on no parameter get no gradient. */
gs_status gs_ir_add_loss(gs_ir *ir, gs_loss loss, gs_dtype labels);
gs_status gs_ir_differentiate(gs_ir *ir);
/* The same without a loss, from the gradient of the root: the input GS_IR_UPSTREAM, rows of the root's width. With
 * `of_features` that of the input "features", where the root depends on it, is a GS_OUTPUT_STORE. */
#define GS_IR_UPSTREAM "upstream"
gs_status gs_ir_differentiate_from(gs_ir *ir, bool of_features);

/* One line a node and an output. */
void gs_ir_print(const gs_ir *ir, FILE *out);
/* The same as a graph for Graphviz's dot, called `title`. */
void gs_ir_print_dot(const gs_ir *ir, const char *title, FILE *out);

#endif /* GS_IR_IR_H */
