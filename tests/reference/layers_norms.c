/* layers_norms.c - texts of tests/e2e/texts with normalisations of torch and with columns side by side. */
#include <math.h>
#include <stdio.h>

#include "layers.h"

/* torch.nn.BatchNorm1d under `prefix`: over the vertices (x - mean) / sqrt(variance + 1e-5) * weight + bias, with the
 * mean and biased variance of each column while training, which running_mean and running_var follow by a tenth (the
 * variance as the unbiased one), and those two else. */
static ref_node *batch_norm(ref_call *c, const ref_node *x, const char *prefix)
{
    ref_tape *const t = c->tape;
    const size_t n = x->cols;
    char name[64];
#define NAMED(what) (snprintf(name, sizeof(name), "%s.%s", prefix, what), name)
    ref_node *const weight = ref_named_vector(c, NAMED("weight"), n, REF_LEARNED);
    ref_node *const bias = ref_named_vector(c, NAMED("bias"), n, REF_LEARNED);
    ref_node *mean = ref_named_vector(c, NAMED("running_mean"), n, REF_FOLLOWS);
    ref_node *variance = ref_named_vector(c, NAMED("running_var"), n, REF_FOLLOWS_ABOVE_0);
    ref_named_vector(c, NAMED("num_batches_tracked"), 1, REF_COUNTS);
#undef NAMED
    if (c->training) {
        const double rows = (double)x->rows;
        ref_node *const own = ref_scale(t, 1.0 / rows, ref_column_sum(t, x));
        ref_node *const apart = ref_sub(t, x, own);
        ref_node *const found = ref_scale(t, 1.0 / rows, ref_column_sum(t, ref_mul(t, apart, apart)));
        ref_follow(c, prefix, "running_mean", own, 1.0);
        ref_follow(c, prefix, "running_var", found, rows / (rows - 1.0));
        ref_follow(c, prefix, "num_batches_tracked", NULL, 1.0);
        mean = own;
        variance = found;
    }
    ref_node *const scale = ref_function(t, "rsqrt", 0, ref_shift(t, 1e-5, variance));
    return ref_add(t, ref_mul(t, ref_mul(t, ref_sub(t, x, mean), scale), weight), bias);
}

/* norms.gnn. Layers but the last: x = batch_norm(h), batch_norm(W_l mean of x(u) over N(v) + W_r x), the first with
 * names of the text's own, the second named as torch_geometric.nn.models names them; the last: W_l LayerNorm(sum of
 * h(u)) + b. */
ref_node *ref_layer_norms(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    char name[64];
    if (c->last) {
        ref_node *const sum = ref_layer_norm(c, ref_sum(c, c->all, ref_at_source(c, c->all, h)));
        ref_node *const x =
            ref_add(t, ref_mul(t, sum, ref_vector(c, "ln.weight", c->in)), ref_vector(c, "ln.bias", c->in));
        return ref_linear(c, "lin_l", x, c->out);
    }
    snprintf(name, sizeof(name), "convs.%zu.features", c->layer);
    ref_node *const x = batch_norm(c, h, name);
    ref_node *const mean = ref_mean(c, c->all, ref_at_source(c, c->all, x));
    ref_node *const y = ref_add(t, ref_matmul_t(t, mean, ref_matrix(c, "lin_l.weight", c->out, c->in)),
                                ref_matmul_t(t, x, ref_matrix(c, "lin_r.weight", c->out, c->in)));
    snprintf(name, sizeof(name), "norms.%zu.module", c->layer);
    return batch_norm(c, y, name);
}

/* columns.gnn. Layers but the last: W [h(v), mean of h(u)]; the last: x = W [what layer 1 got, max of h(u)], GRU(sum of
 * x(u), x). */
ref_node *ref_layer_columns(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    ref_node *const u = ref_at_source(c, c->all, h), *const w = ref_matrix(c, "lin.weight", c->out, 2 * c->in);
    if (!c->last)
        return ref_matmul_t(t, ref_concat(t, h, ref_mean(c, c->all, u)), w);
    ref_node *const x = ref_matmul_t(t, ref_concat(t, c->input[1], ref_max(c, c->all, u)), w);
    return ref_gru(c, ref_sum(c, c->all, ref_at_source(c, c->all, x)), x);
}

/* SAGEConv without a bias, which a norm behind it would take away again: h to `out` columns. */
static ref_node *sage(ref_call *c, const ref_node *h, size_t out)
{
    ref_tape *const t = c->tape;
    ref_node *const mean = ref_mean(c, c->all, ref_at_source(c, c->all, h));
    ref_node *const y = ref_matmul_t(t, mean, ref_matrix(c, "lin_l.weight", out, c->in));
    return ref_add(t, y, ref_matmul_t(t, h, ref_matrix(c, "lin_r.weight", out, c->in)));
}

/* torch_geometric.nn.norm.LayerNorm(mode="graph") under `name`: (x - m) / (s + 1e-5) * weight + bias, with the mean m
 * and the biased deviation s of all elements. */
static ref_node *layer_norm_all(ref_call *c, const ref_node *x, const char *name)
{
    ref_tape *const t = c->tape;
    const double part = 1.0 / ((double)x->rows * (double)x->cols);
    char full[64];
    ref_node *const mean = ref_scale(t, part, ref_block_sum(t, ref_column_sum(t, x), 1));
    ref_node *const apart = ref_sub(t, x, mean);
    ref_node *const variance = ref_scale(t, part, ref_block_sum(t, ref_column_sum(t, ref_mul(t, apart, apart)), 1));
    ref_node *const deviation = ref_shift(t, 1e-5, ref_function(t, "sqrt", 0, variance));
    snprintf(full, sizeof(full), "%s.weight", name);
    ref_node *const weight = ref_named_vector(c, full, x->cols, REF_LEARNED);
    snprintf(full, sizeof(full), "%s.bias", name);
    ref_node *const bias = ref_named_vector(c, full, x->cols, REF_LEARNED);
    return ref_add(t, ref_mul(t, ref_div(t, apart, deviation), weight), bias);
}

/* jumps.gnn, of two layers: x1 = act(BatchNorm(SAGE(h))), x2 = act(LayerNorm of the graph(SAGE(x1))) + x1, and
 * W [x1, x2, max(x1, x2)] + b: as BasicGNN has norm, jk and residuals, in one. */
ref_node *ref_layer_jumps(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    const size_t n = c->network->hidden;
    if (!c->last)
        return batch_norm(c, sage(c, h, n), "norms.0.module");
    ref_node *const x2 = ref_add(t, ref_act(c, layer_norm_all(c, sage(c, h, n), "norms.1")), h);
    ref_node *const all = ref_concat(t, ref_concat(t, h, x2), ref_larger(c, h, x2));
    return ref_add(t, ref_matmul_t(t, all, ref_named_matrix(c, "lin.weight", c->out, 3 * n)),
                   ref_named_vector(c, "lin.bias", c->out, REF_LEARNED));
}
