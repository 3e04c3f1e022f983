/* tape.h - reverse-mode differentiation in float64: what is the gradient of what was computed?
 *
 * An operation computes its matrix at once and leaves a record on the tape;
 * ref_tape_backward() walks the records from the last to the first and adds
 * to each operand's derivative what the chain rule says. Matrices have a row a
 * vertex, a row an edge, or the shape of a parameter; a function over edges is a
 * gather of rows to the edges, arithmetic there, and a sum back to the vertices.
 *
 * Arithmetic spreads the smaller operand: one row to all rows, and each of its columns to an equal
 * share of the other's (a number a head to the head's columns).
 * Shapes that do not fit end the program. Nodes live as long as their tape.
 */
#ifndef GS_TESTS_REFERENCE_TAPE_H
#define GS_TESTS_REFERENCE_TAPE_H

#include "reference.h"

typedef struct ref_node ref_node;

struct ref_node {
    size_t rows, cols;
    double *x;          /* [rows, cols] */
    double *d;          /* the loss's derivative in x; NULL where no parameter is behind it */
    bool owns_x, owns_d;
    const ref_node *a, *b;
    const size_t *index; /* gather and scatter: the row of the other side */
    double number;       /* of a function that has one */
    size_t from;         /* first row or column of a slice */
    void (*back)(const ref_node *n); /* adds to a->d and b->d; NULL: a leaf */
    const void *rule;    /* what `back` needs besides */
};

typedef struct ref_tape {
    size_t count, cap;
    ref_node **node;
    /* How near a number came to the kink of a relu, a leaky relu or a maximum, as a fraction of the
     * largest number there; 1 where there was none. See ref_network in reference.h. */
    double margin;
} ref_tape;

ref_tape ref_tape_new(void);
void ref_tape_free(ref_tape *t);
/* The derivatives of `loss`, a single number, in everything behind it. */
void ref_tape_backward(ref_tape *t, ref_node *loss);

/* ---- leaves; `x` and `gradient` stay the caller's ---- */
ref_node *ref_constant(ref_tape *t, size_t rows, size_t cols, const double *x);
ref_node *ref_variable(ref_tape *t, size_t rows, size_t cols, const double *x, double *gradient);
ref_node *ref_zeros(ref_tape *t, size_t rows, size_t cols);

/* ---- arithmetic, element by element ---- */
ref_node *ref_add(ref_tape *t, const ref_node *a, const ref_node *b);
ref_node *ref_sub(ref_tape *t, const ref_node *a, const ref_node *b);
ref_node *ref_mul(ref_tape *t, const ref_node *a, const ref_node *b);
ref_node *ref_div(ref_tape *t, const ref_node *a, const ref_node *b);
ref_node *ref_scale(ref_tape *t, double by, const ref_node *a);
ref_node *ref_shift(ref_tape *t, double by, const ref_node *a); /* a + by */
/* relu, leaky_relu (number: the slope below 0), elu (number: alpha), sigmoid, tanh, exp, log, sqrt, rsqrt, gelu, silu,
 * abs, pow (number: the exponent), step (1 above 0, else 0). */
ref_node *ref_function(ref_tape *t, const char *name, double number, const ref_node *a);

/* ---- products and rearrangements ---- */
ref_node *ref_matmul(ref_tape *t, const ref_node *a, const ref_node *b);   /* a @ b */
ref_node *ref_matmul_t(ref_tape *t, const ref_node *a, const ref_node *b); /* a @ b' */
ref_node *ref_columns(ref_tape *t, const ref_node *a, size_t from, size_t count);
ref_node *ref_rows(ref_tape *t, const ref_node *a, size_t from, size_t count);
ref_node *ref_concat(ref_tape *t, const ref_node *a, const ref_node *b); /* columns of a, then of b */
/* [n, blocks * d] -> [n, blocks]: the sum of each run of d columns. */
ref_node *ref_block_sum(ref_tape *t, const ref_node *a, size_t blocks);
/* [n, blocks * d] -> [n, d]: the sum over the blocks. */
ref_node *ref_sum_of_blocks(ref_tape *t, const ref_node *a, size_t blocks);
ref_node *ref_column_sum(ref_tape *t, const ref_node *a); /* [n, c] -> [1, c] */

/* ---- between vertices and edges; `index` stays the caller's ---- */
ref_node *ref_gather(ref_tape *t, const ref_node *a, const size_t *index, size_t rows);
ref_node *ref_scatter(ref_tape *t, const ref_node *a, const size_t *index, size_t rows); /* sums */
/* Element by element the largest (sign 1) or smallest (sign -1) of the rows with the same index, 0 where there
 * are none. The derivative goes in equal parts to all that attain it. */
ref_node *ref_extreme(ref_tape *t, double sign, const ref_node *a, const size_t *index, size_t rows);

/* Mean over the training vertices of -log softmax(logits)[label]: a single number. */
ref_node *ref_cross_entropy(ref_tape *t, const ref_node *logits, const ref_graph *g);

/* ---- for the files of the tape alone ---- */
ref_node *ref_tape_push(ref_tape *t, size_t rows, size_t cols, const ref_node *a, const ref_node *b,
                        void (*back)(const ref_node *n));
/* Notes that numbers of sizes up to `most` came as near as `least` to a kink. */
void ref_tape_near(ref_tape *t, double least, double most);

#endif /* GS_TESTS_REFERENCE_TAPE_H */
