/* layers_edge.c - models whose messages depend on both ends of the edge. */
#include "layers.h"

/* What attention returns: sum over N'(v) of alpha(u, v) value(u) in each head; heads side by side with a bias, or in
 * the last layer their mean with one. */
static ref_node *attend(ref_call *c, const ref_node *score, const ref_node *value)
{
    ref_tape *const t = c->tape;
    const size_t heads = c->network->heads;
    ref_node *const alpha = ref_softmax(c, c->self, score);
    ref_node *out = ref_sum(c, c->self, ref_mul(t, ref_at_source(c, c->self, value), alpha));
    if (c->last)
        out = ref_scale(t, 1.0 / (double)heads, ref_sum_of_blocks(t, out, heads));
    return ref_add(t, out, ref_vector(c, "bias", c->out));
}

/* Columns of a head: the last layer has `out` for each, a hidden one shares `out` among them. */
static size_t head_width(const ref_call *c) { return c->last ? c->out : c->out / c->network->heads; }

/* GAT (Velickovic et al., ICLR'18), as GATConv: the score of u -> v in a head is
 * leaky_relu(a_src . W x(u) + a_dst . W x(v), 0.2). */
ref_node *ref_layer_gat(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    const size_t heads = c->network->heads, d = head_width(c);
    ref_node *const x = ref_matmul_t(t, h, ref_matrix(c, "lin.weight", heads * d, c->in));
    ref_node *const from = ref_block_sum(t, ref_mul(t, x, ref_per_head(c, "att_src", d)), heads);
    ref_node *const to = ref_block_sum(t, ref_mul(t, x, ref_per_head(c, "att_dst", d)), heads);
    ref_node *const sum = ref_add(t, ref_at_source(c, c->self, from), ref_at_target(c, c->self, to));
    return attend(c, ref_function(t, "leaky_relu", 0.2, sum), x);
}

/* GATv2 (Brody et al., ICLR'22), as GATv2Conv: the score is att . leaky_relu(W_l x(u) + W_r x(v), 0.2), with
 * biases; what is summed is W_l x(u). */
ref_node *ref_layer_gatv2(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    const size_t heads = c->network->heads, d = head_width(c);
    ref_node *const x = ref_linear(c, "lin_l", h, heads * d), *const y = ref_linear(c, "lin_r", h, heads * d);
    ref_node *const sum = ref_add(t, ref_at_source(c, c->self, x), ref_at_target(c, c->self, y));
    ref_node *const rank = ref_mul(t, ref_function(t, "leaky_relu", 0.2, sum), ref_per_head(c, "att", d));
    return attend(c, ref_block_sum(t, rank, heads), x);
}

/* G-GCN (Marcheggiani and Titov, EMNLP'17; equations 1 and 2 of Ma et al., ATC'19):
 * W sum over N(v) of sigmoid(W_H x(v) + W_C x(u)) * x(u). */
ref_node *ref_layer_ggcn(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    ref_node *const mine = ref_matmul_t(t, h, ref_matrix(c, "W_H", c->in, c->in));
    ref_node *const theirs = ref_matmul_t(t, h, ref_matrix(c, "W_C", c->in, c->in));
    ref_node *const sum = ref_add(t, ref_at_target(c, c->all, mine), ref_at_source(c, c->all, theirs));
    ref_node *const passed = ref_mul(t, ref_function(t, "sigmoid", 0, sum), ref_at_source(c, c->all, h));
    return ref_matmul_t(t, ref_sum(c, c->all, passed), ref_matrix(c, "W", c->out, c->in));
}
