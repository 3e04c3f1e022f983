/* layers_sequence.c - models in which a vertex reads its in-neighbours one after the other. */
#include "layers.h"

typedef struct memory {
    ref_node *state, *cell;
} memory;

/* b where `has` is 1, a where it is 0. */
static ref_node *choose(ref_tape *t, const ref_node *has, const ref_node *a, const ref_node *b)
{
    return ref_add(t, a, ref_mul(t, ref_sub(t, b, a), has));
}

/* One step of all vertices; a [n, 4 h] goes into the gates i, f, g, o (Hochreiter and Schmidhuber, 1997, with forget
 * gates, in torch's order). */
static memory step(ref_tape *t, memory m, const ref_node *a, const ref_node *has)
{
    const size_t h = a->cols / 4;
    ref_node *const i = ref_function(t, "sigmoid", 0, ref_columns(t, a, 0, h));
    ref_node *const f = ref_function(t, "sigmoid", 0, ref_columns(t, a, h, h));
    ref_node *const g = ref_function(t, "tanh", 0, ref_columns(t, a, 2 * h, h));
    ref_node *const o = ref_function(t, "sigmoid", 0, ref_columns(t, a, 3 * h, h));
    ref_node *const cell = ref_add(t, ref_mul(t, f, m.cell), ref_mul(t, i, g));
    ref_node *const state = ref_mul(t, o, ref_function(t, "tanh", 0, cell));
    return (memory){choose(t, has, m.state, state), choose(t, has, m.cell, cell)};
}

/* The state [n, h] after all in-neighbours, of whom x [n, 4 h] is heard. */
static ref_node *last_state(ref_call *c, const ref_node *x, const ref_node *again)
{
    ref_tape *const t = c->tape;
    const size_t n = c->graph->vertices;
    memory m = {ref_zeros(t, n, x->cols / 4), ref_zeros(t, n, x->cols / 4)};

    for (size_t k = 0; k < c->sequences->steps; k++) {
        ref_node *const heard = ref_gather(t, x, c->sequences->source + k * n, n);
        m = step(t, m, ref_add(t, heard, ref_matmul_t(t, m.state, again)),
                 ref_constant(t, n, 1, c->sequences->has + k * n));
    }
    return m.state;
}

/* GraphSAGE (Hamilton et al., NeurIPS'17) with an LSTM over N(v) in the order of the vertices' numbers, as SAGEConv
 * with aggr="lstm": W_l state + b_l + W_r x(v). The sequence of v has |N(v)| steps. */
ref_node *ref_layer_sage_lstm(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    const size_t wide = 4 * c->in;
    ref_node *const in = ref_matmul_t(t, h, ref_matrix(c, "aggr_module.lstm.weight_ih_l0", wide, c->in));
    ref_node *const again = ref_matrix(c, "aggr_module.lstm.weight_hh_l0", wide, c->in);
    ref_node *const bias = ref_add(t, ref_vector(c, "aggr_module.lstm.bias_ih_l0", wide),
                                   ref_vector(c, "aggr_module.lstm.bias_hh_l0", wide));
    ref_node *const x = ref_add(t, in, bias);
    return ref_add(t, ref_linear(c, "lin_l", last_state(c, x, again), c->out),
                   ref_matmul_t(t, h, ref_matrix(c, "lin_r.weight", c->out, c->in)));
}

/* steps.gnn: two LSTMs of different widths over N(v), in its order, beside the mean of what the second hears. */
ref_node *ref_layer_steps(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    ref_node *const x = ref_matmul_t(t, h, ref_matrix(c, "a", 4 * c->in, c->in));
    ref_node *const wa = ref_matrix(c, "wa", 4 * c->in, c->in);
    ref_node *const y = ref_function(t, "tanh", 0, ref_matmul_t(t, h, ref_matrix(c, "b", 4 * c->out, c->in)));
    ref_node *const wb = ref_matrix(c, "wb", 4 * c->out, c->out), *const lin = ref_matrix(c, "lin", c->out, c->in);
    ref_node *const side = ref_matrix(c, "side", c->out, 4 * c->out), *const bias = ref_vector(c, "bias", c->out);
    ref_node *const mean = ref_mean(c, c->all, ref_at_source(c, c->all, y));
    ref_node *const both = ref_add(t, ref_matmul_t(t, last_state(c, x, wa), lin), last_state(c, y, wb));
    return ref_add(t, ref_add(t, both, ref_matmul_t(t, mean, side)), bias);
}
