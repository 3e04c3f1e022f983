/* layers.c - what the layers of all models are made of. */
#include "layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

static ref_tensor *append(ref_tensors *t, const ref_tensor *like)
{
    t->tensor = realloc(t->tensor, (t->count + 1) * sizeof(*t->tensor));
    if (t->tensor == NULL)
        ref_die("out of memory");
    ref_tensor *out = &t->tensor[t->count++];
    *out = *like;
    out->value = ref_alloc(ref_tensor_size(like), sizeof(double));
    return out;
}

/* The parameter of this shape and name as a node of [rows, cols]; the first time, it is made. */
static ref_node *named_parameter(ref_call *c, const ref_tensor *shape, size_t rows, size_t cols)
{
    ref_tensors *const weight = &c->network->weight, *const gradient = &c->network->gradient;
    const ref_tensor like = *shape;
    if (ref_tensors_find(weight, like.name) == NULL) {
        append(weight, &like);
        append(gradient, &like);
    }
    const ref_tensor *const w = ref_tensors_find(weight, like.name);
    if (ref_tensor_size(w) != rows * cols)
        ref_die("%s is used in two shapes", like.name);
    if (w->fixed)
        return ref_constant(c->tape, rows, cols, w->value);
    return ref_variable(c->tape, rows, cols, w->value, ref_tensors_find(gradient, like.name)->value);
}

/* Of the layer at hand. */
static ref_node *parameter(ref_call *c, const char *name, const ref_tensor *shape, size_t rows, size_t cols)
{
    ref_tensor like = *shape;
    if (snprintf(like.name, sizeof(like.name), "convs.%zu.%s", c->layer, name) >= (int)sizeof(like.name))
        ref_die("the name %s is too long", name);
    return named_parameter(c, &like, rows, cols);
}

ref_node *ref_named_vector(ref_call *c, const char *name, size_t n, ref_row kind)
{
    ref_tensor like = {.dims = 1, .shape = {n, 1, 1}, .fixed = kind != REF_LEARNED,
                       .above_0 = kind == REF_FOLLOWS_ABOVE_0,
                       .count = kind == REF_COUNTS};
    if (snprintf(like.name, sizeof(like.name), "%s", name) >= (int)sizeof(like.name))
        ref_die("the name %s is too long", name);
    return named_parameter(c, &like, 1, n);
}

ref_node *ref_named_matrix(ref_call *c, const char *name, size_t rows, size_t cols)
{
    ref_tensor like = {.dims = 2, .shape = {rows, cols, 1}};
    if (snprintf(like.name, sizeof(like.name), "%s", name) >= (int)sizeof(like.name))
        ref_die("the name %s is too long", name);
    return named_parameter(c, &like, rows, cols);
}

void ref_follow(ref_call *c, const char *prefix, const char *name, const ref_node *found, double scale)
{
    char full[64];
    snprintf(full, sizeof(full), "%s.%s", prefix, name);
    ref_tensor *const t = ref_tensors_find(&c->network->weight, full);
    for (size_t i = 0; c->network->follow && i < ref_tensor_size(t); i++)
        t->value[i] = found == NULL ? t->value[i] + scale : 0.9 * t->value[i] + 0.1 * scale * found->x[i];
}

ref_node *ref_matrix(ref_call *c, const char *name, size_t rows, size_t cols)
{
    return parameter(c, name, &(ref_tensor){.dims = 2, .shape = {rows, cols, 1}}, rows, cols);
}

ref_node *ref_vector(ref_call *c, const char *name, size_t n)
{
    return parameter(c, name, &(ref_tensor){.dims = 1, .shape = {n, 1, 1}}, 1, n);
}

ref_node *ref_buffer(ref_call *c, const char *name, size_t n)
{
    return parameter(c, name, &(ref_tensor){.dims = 1, .shape = {n, 1, 1}, .fixed = true}, 1, n);
}

ref_node *ref_typed(ref_call *c, const char *name, size_t in, size_t out)
{
    return ref_matrices(c, name, c->graph->types, in, out);
}

ref_node *ref_matrices(ref_call *c, const char *name, size_t count, size_t in, size_t out)
{
    return parameter(c, name, &(ref_tensor){.dims = 3, .shape = {count, in, out}}, count * in, out);
}

ref_node *ref_per_head(ref_call *c, const char *name, size_t d)
{
    const size_t heads = c->network->heads;
    return parameter(c, name, &(ref_tensor){.dims = 3, .shape = {1, heads, d}}, 1, heads * d);
}

ref_node *ref_linear(ref_call *c, const char *name, const ref_node *h, size_t out)
{
    char full[64];
    snprintf(full, sizeof(full), "%s.weight", name);
    ref_node *const product = ref_matmul_t(c->tape, h, ref_matrix(c, full, out, h->cols));
    snprintf(full, sizeof(full), "%s.bias", name);
    return ref_add(c->tape, product, ref_vector(c, full, out));
}

/* ---- over edges ---- */

ref_node *ref_at_source(ref_call *c, const ref_edges *e, const ref_node *x)
{
    return ref_gather(c->tape, x, e->source, e->count);
}

ref_node *ref_at_target(ref_call *c, const ref_edges *e, const ref_node *x)
{
    return ref_gather(c->tape, x, e->target, e->count);
}

ref_node *ref_edge_weights(ref_call *c, const ref_edges *e) { return ref_constant(c->tape, e->count, 1, e->weight); }

ref_node *ref_count(ref_call *c, const ref_edges *e)
{
    ref_node *const count = ref_zeros(c->tape, c->graph->vertices, 1);
    for (size_t i = 0; i < e->count; i++)
        count->x[e->target[i]] += 1.0;
    return count;
}

ref_node *ref_sum(ref_call *c, const ref_edges *e, const ref_node *message)
{
    return ref_scatter(c->tape, message, e->target, c->graph->vertices);
}

ref_node *ref_mean(ref_call *c, const ref_edges *e, const ref_node *message)
{
    ref_node *const count = ref_count(c, e);
    for (size_t v = 0; v < count->rows; v++)
        count->x[v] = fmax(count->x[v], 1.0);
    return ref_div(c->tape, ref_sum(c, e, message), count);
}

ref_node *ref_max(ref_call *c, const ref_edges *e, const ref_node *message)
{
    return ref_extreme(c->tape, 1.0, message, e->target, c->graph->vertices);
}

ref_node *ref_min(ref_call *c, const ref_edges *e, const ref_node *message)
{
    return ref_extreme(c->tape, -1.0, message, e->target, c->graph->vertices);
}

/* exp(score - m) / sum of the same, where m is any number of the target: the largest score. As m cancels
 * out, it is a constant to the derivative. */
ref_node *ref_softmax(ref_call *c, const ref_edges *e, const ref_node *score)
{
    ref_tape *const t = c->tape;
    const size_t k = score->cols;
    ref_node *const most = ref_zeros(t, c->graph->vertices, k);
    for (size_t i = 0; i < most->rows * k; i++)
        most->x[i] = -INFINITY;
    for (size_t i = 0; i < e->count * k; i++) {
        double *const m = &most->x[e->target[i / k] * k + i % k];
        *m = fmax(*m, score->x[i]);
    }
    ref_node *const p = ref_function(t, "exp", 0, ref_sub(t, score, ref_at_target(c, e, most)));
    return ref_div(t, p, ref_at_target(c, e, ref_sum(c, e, p)));
}

/* 1 for the edges of a type, 0 for the others: [edges, 1]. */
static ref_node *is_type(ref_call *c, const ref_edges *e, size_t type)
{
    ref_node *const mask = ref_zeros(c->tape, e->count, 1);
    for (size_t i = 0; i < e->count; i++)
        mask->x[i] = e->type[i] == type;
    return mask;
}

ref_node *ref_typed_product(ref_call *c, const ref_edges *e, const ref_node *x, const ref_node *w)
{
    ref_tape *const t = c->tape;
    ref_node *sum = NULL;
    for (size_t r = 0; r < c->graph->types; r++) {
        ref_node *const y = ref_matmul(t, x, ref_rows(t, w, r * x->cols, x->cols));
        ref_node *const term = ref_mul(t, ref_at_source(c, e, y), is_type(c, e, r));
        sum = sum == NULL ? term : ref_add(t, sum, term);
    }
    return sum;
}

ref_node *ref_mean_by_type(ref_call *c, const ref_edges *e, const ref_node *message)
{
    ref_tape *const t = c->tape;
    ref_node *sum = NULL;
    for (size_t r = 0; r < c->graph->types; r++) {
        ref_node *const mask = is_type(c, e, r), *const count = ref_sum(c, e, mask);
        for (size_t v = 0; v < count->rows; v++)
            count->x[v] = fmax(count->x[v], 1.0);
        ref_node *const mean = ref_div(t, ref_sum(c, e, ref_mul(t, message, mask)), count);
        sum = sum == NULL ? mean : ref_add(t, sum, mean);
    }
    return sum;
}

/* ---- at vertices ---- */

ref_node *ref_act(ref_call *c, const ref_node *x)
{
    const char *const act = c->network->act;
    return ref_function(c->tape, act, strcmp(act, "leaky_relu") == 0 ? 0.01 : 1.0, x);
}

ref_node *ref_layer_norm(ref_call *c, const ref_node *x)
{
    ref_tape *const t = c->tape;
    const double share = 1.0 / (double)x->cols;
    ref_node *const apart = ref_sub(t, x, ref_scale(t, share, ref_block_sum(t, x, 1)));
    ref_node *const variance = ref_scale(t, share, ref_block_sum(t, ref_mul(t, apart, apart), 1));
    return ref_mul(t, apart, ref_function(t, "rsqrt", 0, ref_shift(t, 1e-5, variance)));
}

/* Any number taken off the row cancels out; its largest is a constant to the derivative. */
ref_node *ref_row_softmax(ref_call *c, const ref_node *x)
{
    ref_tape *const t = c->tape;
    ref_node *const most = ref_zeros(t, x->rows, 1);
    for (size_t i = 0; i < x->rows * x->cols; i++)
        most->x[i / x->cols] = i % x->cols == 0 ? x->x[i] : fmax(most->x[i / x->cols], x->x[i]);
    ref_node *const p = ref_function(t, "exp", 0, ref_sub(t, x, most));
    return ref_div(t, p, ref_block_sum(t, p, 1));
}

ref_node *ref_larger(ref_call *c, const ref_node *a, const ref_node *b)
{
    return ref_add(c->tape, ref_function(c->tape, "relu", 0, ref_sub(c->tape, a, b)), b);
}

ref_node *ref_smaller(ref_call *c, const ref_node *a, const ref_node *b)
{
    return ref_sub(c->tape, b, ref_function(c->tape, "relu", 0, ref_sub(c->tape, b, a)));
}

/* ---- by name ---- */

ref_layer ref_layer_of(const char *model)
{
    static const struct {
        const char *name;
        ref_layer layer;
    } table[] = {
        {"gcn", ref_layer_gcn},         {"sage", ref_layer_sage},     {"sage_max", ref_layer_sage_max},
        {"gin", ref_layer_gin},         {"appnp", ref_layer_appnp},   {"commnet", ref_layer_commnet},
        {"gat", ref_layer_gat},         {"gatv2", ref_layer_gatv2},   {"ggcn", ref_layer_ggcn},
        {"rgcn", ref_layer_rgcn},         {"rgcn_bases", ref_layer_rgcn_bases},
             {"ggnn", ref_layer_ggnn},     {"mixed", ref_layer_mixed},
        {"gates", ref_layer_gates},     {"walk", ref_layer_walk},       {"sage_lstm", ref_layer_sage_lstm},
        {"steps", ref_layer_steps},     {"tables", ref_layer_tables},
        {"rows", ref_layer_rows},         {"norms", ref_layer_norms},     {"columns", ref_layer_columns},
        {"functions", ref_layer_functions}, {"picks", ref_layer_picks}, {"jumps", ref_layer_jumps},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(table[i].name, model) == 0)
            return table[i].layer;
    return NULL;
}
