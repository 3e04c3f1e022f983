/* layers_conv.c - models whose messages are a vertex's own row, scaled at most. */
#include <math.h>
#include <stdlib.h>

#include "layers.h"

/* Weights of the edges of N', where a vertex with self loops keeps their mean for its own. */
static ref_node *remaining(ref_call *c)
{
    ref_node *const weight = ref_constant(c->tape, c->self->count, 1, c->self->weight);
    double *const sum = ref_alloc(c->graph->vertices, sizeof(double));
    size_t *const loops = ref_alloc(c->graph->vertices, sizeof(size_t));
    for (size_t v = 0; v < c->graph->vertices; v++)
        sum[v] = loops[v] = 0;
    for (size_t i = 0; i < c->all->count; i++)
        if (c->all->source[i] == c->all->target[i]) {
            sum[c->all->target[i]] += c->all->weight[i];
            loops[c->all->target[i]]++;
        }
    for (size_t i = 0; i < c->self->count; i++)
        if (c->self->source[i] == c->self->target[i] && loops[c->self->source[i]] > 0)
            weight->x[i] = sum[c->self->source[i]] / (double)loops[c->self->source[i]];
    free(sum);
    free(loops);
    return weight;
}

/* Symmetric normalisation (Kipf and Welling, ICLR'17), as torch_geometric's gcn_norm: over N'(v), with w the weight of
 * the edge, sum of w x(u) / sqrt(d(u) d(v)), d(v) = sum of w; 1 / sqrt(0) counts as 0. */
static ref_node *smooth(ref_call *c, const ref_node *x)
{
    ref_tape *const t = c->tape;
    ref_node *const weight = remaining(c), *const degree = ref_sum(c, c->self, weight);
    ref_node *const norm = ref_zeros(t, degree->rows, 1);
    for (size_t v = 0; v < degree->rows; v++)
        norm->x[v] = degree->x[v] == 0 ? 0 : 1 / sqrt(degree->x[v]);
    ref_node *const scale = ref_mul(t, ref_at_source(c, c->self, norm), ref_at_target(c, c->self, norm));
    return ref_sum(c, c->self, ref_mul(t, ref_at_source(c, c->self, x), ref_mul(t, weight, scale)));
}

/* GCN, as GCNConv: smooth(W x) + b. */
ref_node *ref_layer_gcn(ref_call *c, const ref_node *h)
{
    ref_node *const x = ref_matmul_t(c->tape, h, ref_matrix(c, "lin.weight", c->out, c->in));
    return ref_add(c->tape, smooth(c, x), ref_vector(c, "bias", c->out));
}

/* GraphSAGE (Hamilton et al., NeurIPS'17), as SAGEConv: W_l aggregate(x(u), u in N(v)) + b_l + W_r x(v). */
static ref_node *sage(ref_call *c, const ref_node *h, const ref_node *aggregate)
{
    return ref_add(c->tape, ref_linear(c, "lin_l", aggregate, c->out),
                   ref_matmul_t(c->tape, h, ref_matrix(c, "lin_r.weight", c->out, c->in)));
}

ref_node *ref_layer_sage(ref_call *c, const ref_node *h)
{
    return sage(c, h, ref_mean(c, c->all, ref_at_source(c, c->all, h)));
}

ref_node *ref_layer_sage_max(ref_call *c, const ref_node *h)
{
    return sage(c, h, ref_max(c, c->all, ref_at_source(c, c->all, h)));
}

/* GIN (Xu et al., ICLR'19), as GINConv with a perceptron of two layers: MLP((1 + eps) x(v) + sum over N(v)). */
ref_node *ref_layer_gin(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    ref_node *const own = ref_mul(t, h, ref_shift(t, 1.0, ref_buffer(c, "eps", 1)));
    ref_node *const z = ref_add(t, own, ref_sum(c, c->all, ref_at_source(c, c->all, h)));
    return ref_linear(c, "nn.lins.1", ref_act(c, ref_linear(c, "nn.lins.0", z, c->out)), c->out);
}

/* APPNP (Gasteiger et al., ICLR'19): a perceptron; behind its last layer z(0) = z and K = 10 times
 * z(k+1) = (1 - alpha) smooth(z(k)) + alpha z with alpha = 0.1. */
ref_node *ref_layer_appnp(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    ref_node *const z = ref_linear(c, "lin", h, c->out), *x = z;
    for (int k = 0; c->last && k < 10; k++)
        x = ref_add(t, ref_scale(t, 0.9, smooth(c, x)), ref_scale(t, 0.1, z));
    return x;
}

/* CommNet (Sukhbaatar et al., NIPS'16, equations 1 and 2): H x(v) + C mean of x(u) over N(v). */
ref_node *ref_layer_commnet(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    ref_node *const heard = ref_mean(c, c->all, ref_at_source(c, c->all, h));
    return ref_add(t, ref_matmul_t(t, h, ref_matrix(c, "W_H", c->out, c->in)),
                   ref_matmul_t(t, heard, ref_matrix(c, "W_C", c->out, c->in)));
}
