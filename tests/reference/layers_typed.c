/* layers_typed.c - models with a matrix for each type of edge. */
#include "layers.h"

#include <stdio.h>

/* R-GCN (Schlichtkrull et al., ESWC'18), as RGCNConv: W_root x(v) + b + for each type r the mean of
 * W_r x(u) over the edges of that type. */
ref_node *ref_layer_rgcn(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    ref_node *const message = ref_typed_product(c, c->all, h, ref_typed(c, "weight", c->in, c->out));
    ref_node *const own = ref_matmul(t, h, ref_matrix(c, "root", c->in, c->out));
    return ref_add(t, ref_add(t, ref_mean_by_type(c, c->all, message), own), ref_vector(c, "bias", c->out));
}

/* W_i m + W_h x of one gate of the GRU, without biases. */
static ref_node *gate_sum(ref_call *c, char gate, const ref_node *m, const ref_node *x)
{
    char name[2][8];
    snprintf(name[0], sizeof(name[0]), "W_i%c", gate);
    snprintf(name[1], sizeof(name[1]), "W_h%c", gate);
    return ref_add(c->tape, ref_matmul_t(c->tape, m, ref_matrix(c, name[0], c->out, c->out)),
                   ref_matmul_t(c->tape, x, ref_matrix(c, name[1], c->out, c->out)));
}

/* GG-NN (Li et al., ICLR'16): x = W h, then twice m(v) = sum over N(v) of W_type x(u), x = GRU(m, x) with
 *   r = sigmoid(W_ir m + W_hr x + b_r)    z = sigmoid(W_iz m + W_hz x + b_z)
 *   n = tanh(W_in m + b_in + r * (W_hn x + b_hn))    x' = (1 - z) * n + z * x       (torch.nn.GRUCell's) */
ref_node *ref_layer_ggnn(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    ref_node *x = ref_matmul_t(t, h, ref_matrix(c, "lin.weight", c->out, c->in));
    for (int step = 0; step < 2; step++) {
        ref_node *const m = ref_sum(c, c->all, ref_typed_product(c, c->all, x, ref_typed(c, "weight", c->out, c->out)));
        ref_node *const r = ref_function(t, "sigmoid", 0, ref_add(t, gate_sum(c, 'r', m, x), ref_vector(c, "b_r", c->out)));
        ref_node *const z = ref_function(t, "sigmoid", 0, ref_add(t, gate_sum(c, 'z', m, x), ref_vector(c, "b_z", c->out)));
        ref_node *const in = ref_add(t, ref_matmul_t(t, m, ref_matrix(c, "W_in", c->out, c->out)),
                                     ref_vector(c, "b_in", c->out));
        ref_node *const hn = ref_add(t, ref_matmul_t(t, x, ref_matrix(c, "W_hn", c->out, c->out)),
                                     ref_vector(c, "b_hn", c->out));
        ref_node *const n = ref_function(t, "tanh", 0, ref_add(t, in, ref_mul(t, r, hn)));
        x = ref_add(t, n, ref_mul(t, z, ref_sub(t, x, n)));
    }
    return x;
}
