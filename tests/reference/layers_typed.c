/* layers_typed.c - models with a matrix for each type of edge. */
#include "layers.h"

/* R-GCN (Schlichtkrull et al., ESWC'18), as RGCNConv: W_root x(v) + b + for each type r the mean of
 * W_r x(u) over the edges of that type. */
ref_node *ref_layer_rgcn(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    ref_node *const message = ref_typed_product(c, c->all, h, ref_typed(c, "weight", c->in, c->out));
    ref_node *const own = ref_matmul(t, h, ref_matrix(c, "root", c->in, c->out));
    return ref_add(t, ref_add(t, ref_mean_by_type(c, c->all, message), own), ref_vector(c, "bias", c->out));
}

/* The same with W_r = sum over the bases b of comp(r, b) V_b (equation 3), as RGCNConv with num_bases. */
ref_node *ref_layer_rgcn_bases(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    const ref_edges *const e = c->all;
    const size_t bases = c->network->bases;
    ref_node *const v = ref_matrices(c, "weight", bases, c->in, c->out);
    ref_node *const comp = ref_gather(t, ref_matrix(c, "comp", c->graph->types, bases), e->type, e->count);
    ref_node *message = NULL;
    for (size_t b = 0; b < bases; b++) {
        ref_node *const y = ref_at_source(c, e, ref_matmul(t, h, ref_rows(t, v, b * c->in, c->in)));
        ref_node *const term = ref_mul(t, y, ref_columns(t, comp, b, 1));
        message = message == NULL ? term : ref_add(t, message, term);
    }
    ref_node *const own = ref_matmul(t, h, ref_matrix(c, "root", c->in, c->out));
    return ref_add(t, ref_add(t, ref_mean_by_type(c, e, message), own), ref_vector(c, "bias", c->out));
}

ref_node *ref_gru(ref_call *c, const ref_node *m, const ref_node *x)
{
    ref_tape *const t = c->tape;
    const size_t w = c->out;
    ref_node *const a =
        ref_add(t, ref_matmul_t(t, m, ref_matrix(c, "rnn.weight_ih", 3 * w, w)), ref_vector(c, "rnn.bias_ih", 3 * w));
    ref_node *const b =
        ref_add(t, ref_matmul_t(t, x, ref_matrix(c, "rnn.weight_hh", 3 * w, w)), ref_vector(c, "rnn.bias_hh", 3 * w));
    ref_node *const sum = ref_add(t, a, b);
    ref_node *const r = ref_function(t, "sigmoid", 0, ref_columns(t, sum, 0, w));
    ref_node *const z = ref_function(t, "sigmoid", 0, ref_columns(t, sum, w, w));
    ref_node *const n =
        ref_function(t, "tanh", 0, ref_add(t, ref_columns(t, a, 2 * w, w), ref_mul(t, r, ref_columns(t, b, 2 * w, w))));
    return ref_add(t, n, ref_mul(t, z, ref_sub(t, x, n)));
}

/* GG-NN (Li et al., ICLR'16): x = W h, then twice m(v) = sum over N(v) of W_type x(u), x = GRU(m, x), torch.nn.GRUCell
 * with its three gates one above the other: (a_r, a_z, a_n) = W_ih m + b_ih, (c_r, c_z, c_n) = W_hh x + b_hh,
 *   r = sigmoid(a_r + c_r)    z = sigmoid(a_z + c_z)    n = tanh(a_n + r * c_n)    x' = (1 - z) * n + z * x */
ref_node *ref_layer_ggnn(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    const size_t w = c->out;
    ref_node *x = ref_matmul_t(t, h, ref_matrix(c, "lin.weight", w, c->in));
    for (int step = 0; step < 2; step++) {
        ref_node *const m = ref_sum(c, c->all, ref_typed_product(c, c->all, x, ref_typed(c, "weight", w, w)));
        x = ref_gru(c, m, x);
    }
    return x;
}
