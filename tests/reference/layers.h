/* layers.h - one layer of each model, from its formula, on a tape.
 *
 * A layer gets the rows of all vertices and returns those behind it. It names its parameters as it
 * needs them; the first pass over a network so finds out which there are.
 *
 * In formulas: N(v) is the multiset of in-edges u -> v with every copy and every self loop as the graph has
 * them; N'(v) is N(v) without self loops and with v itself exactly once (edge weight 1), as
 * torch_geometric's remove_self_loops and add_self_loops make it. (GCN and APPNP: of the weight that loops have.)
 */
#ifndef GS_TESTS_REFERENCE_LAYERS_H
#define GS_TESTS_REFERENCE_LAYERS_H

#include "tape.h"

#define REF_MOST_LAYERS 64

typedef struct ref_edges {
    size_t count;
    size_t *source, *target;
    double *weight; /* 1 where the graph has none */
    size_t *type;   /* 0 where it has none */
} ref_edges;

/* The in-neighbours of each vertex one after the other, in the order of their numbers. */
typedef struct ref_sequences {
    size_t steps;   /* largest in-degree */
    size_t *source; /* [steps, vertices] the k-th in-neighbour, or any vertex */
    double *has;    /* [steps, vertices] 1 where there is one, else 0 */
} ref_sequences;

typedef struct ref_call {
    ref_network *network;
    ref_tape *tape;
    const ref_graph *graph;
    const ref_edges *all, *self; /* N and N' */
    const ref_sequences *sequences; /* for layers that read them */
    const ref_node *features;
    size_t layer, in, out;
    bool last, training;
    const ref_node *input[REF_MOST_LAYERS]; /* what each layer so far got */
} ref_call;

typedef ref_node *(*ref_layer)(ref_call *c, const ref_node *h);

/* The layer of a model, or NULL. */
ref_layer ref_layer_of(const char *model);

/* ---- parameters: [rows, cols], [n], a matrix for each edge type, PyG's [1, heads, d] as a row ---- */
ref_node *ref_matrix(ref_call *c, const char *name, size_t rows, size_t cols);
ref_node *ref_vector(ref_call *c, const char *name, size_t n);
ref_node *ref_buffer(ref_call *c, const char *name, size_t n); /* a vector that is not learned */
ref_node *ref_typed(ref_call *c, const char *name, size_t in, size_t out); /* [types * in, out] */
/* torch.nn.GRUCell(m, x) with the parameters rnn.*, its three gates one above the other, [rows, out] all. */
ref_node *ref_gru(ref_call *c, const ref_node *m, const ref_node *x);
ref_node *ref_matrices(ref_call *c, const char *name, size_t count, size_t in, size_t out); /* [count * in, out] */
ref_node *ref_per_head(ref_call *c, const char *name, size_t d);
/* A row under its full name. */
typedef enum { REF_LEARNED, REF_FOLLOWS, REF_FOLLOWS_ABOVE_0, REF_COUNTS } ref_row;
ref_node *ref_named_vector(ref_call *c, const char *name, size_t n, ref_row kind);
ref_node *ref_named_matrix(ref_call *c, const char *name, size_t rows, size_t cols);
/* Where the network follows its passes, PREFIX.NAME becomes 0.9 of itself and 0.1 times `scale` of the row found; or
 * with NULL, one more. */
void ref_follow(ref_call *c, const char *prefix, const char *name, const ref_node *found, double scale);
/* h @ weight' + bias, with parameters NAME.weight [out, in] and NAME.bias. */
ref_node *ref_linear(ref_call *c, const char *name, const ref_node *h, size_t out);

/* ---- over edges ---- */
ref_node *ref_at_source(ref_call *c, const ref_edges *e, const ref_node *x);
ref_node *ref_at_target(ref_call *c, const ref_edges *e, const ref_node *x);
ref_node *ref_edge_weights(ref_call *c, const ref_edges *e);
ref_node *ref_count(ref_call *c, const ref_edges *e); /* [vertices, 1]: in-edges */
ref_node *ref_sum(ref_call *c, const ref_edges *e, const ref_node *message);
ref_node *ref_mean(ref_call *c, const ref_edges *e, const ref_node *message); /* 0 where there is no edge */
ref_node *ref_max(ref_call *c, const ref_edges *e, const ref_node *message);
ref_node *ref_min(ref_call *c, const ref_edges *e, const ref_node *message);
/* Over the edges into a vertex, each column for itself. */
ref_node *ref_softmax(ref_call *c, const ref_edges *e, const ref_node *score);
/* x(u) @ W[type of u -> v] of every edge: [edges, out]. */
ref_node *ref_typed_product(ref_call *c, const ref_edges *e, const ref_node *x, const ref_node *w);
/* The mean of messages over the edges of each type alone, and these added. */
ref_node *ref_mean_by_type(ref_call *c, const ref_edges *e, const ref_node *message);

/* The network's activation. */
ref_node *ref_act(ref_call *c, const ref_node *x);
/* (x - mean) / sqrt(variance + 1e-5) of each row. */
ref_node *ref_layer_norm(ref_call *c, const ref_node *x);
/* exp(x) over its sum, of each row. */
ref_node *ref_row_softmax(ref_call *c, const ref_node *x);
/* Element by element; of the smaller the derivative is 0, of two equal ones it is b's. */
ref_node *ref_larger(ref_call *c, const ref_node *a, const ref_node *b);
ref_node *ref_smaller(ref_call *c, const ref_node *a, const ref_node *b);

/* ---- the layers, by family; see the files for the formulas ---- */
ref_node *ref_layer_gcn(ref_call *c, const ref_node *h);      /* layers_conv.c */
ref_node *ref_layer_sage(ref_call *c, const ref_node *h);
ref_node *ref_layer_sage_max(ref_call *c, const ref_node *h);
ref_node *ref_layer_gin(ref_call *c, const ref_node *h);
ref_node *ref_layer_appnp(ref_call *c, const ref_node *h);
ref_node *ref_layer_commnet(ref_call *c, const ref_node *h);
ref_node *ref_layer_gat(ref_call *c, const ref_node *h);      /* layers_edge.c */
ref_node *ref_layer_gatv2(ref_call *c, const ref_node *h);
ref_node *ref_layer_ggcn(ref_call *c, const ref_node *h);
ref_node *ref_layer_rgcn(ref_call *c, const ref_node *h);     /* layers_typed.c */
ref_node *ref_layer_rgcn_bases(ref_call *c, const ref_node *h);
ref_node *ref_layer_ggnn(ref_call *c, const ref_node *h);
ref_node *ref_layer_sage_lstm(ref_call *c, const ref_node *h);
ref_node *ref_layer_steps(ref_call *c, const ref_node *h); /* layers_sequence.c */
ref_node *ref_layer_mixed(ref_call *c, const ref_node *h);    /* layers_texts.c: models of no zoo */
ref_node *ref_layer_gates(ref_call *c, const ref_node *h);
ref_node *ref_layer_walk(ref_call *c, const ref_node *h);
ref_node *ref_layer_rows(ref_call *c, const ref_node *h);
ref_node *ref_layer_functions(ref_call *c, const ref_node *h);
ref_node *ref_layer_picks(ref_call *c, const ref_node *h);
ref_node *ref_layer_tables(ref_call *c, const ref_node *h);
ref_node *ref_layer_norms(ref_call *c, const ref_node *h);    /* layers_norms.c: and these too */
ref_node *ref_layer_columns(ref_call *c, const ref_node *h);
ref_node *ref_layer_jumps(ref_call *c, const ref_node *h);

#endif /* GS_TESTS_REFERENCE_LAYERS_H */
