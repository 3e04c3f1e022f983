/* layers_texts.c - the models of no zoo whose texts are in tests/e2e/texts.
 *
 * Attention here is over the in-edges as the graph has them (N) unless `self` stands there. */
#include <math.h>

#include "layers.h"

/* mixed.gnn: attention and edge types at once. With query, key and value linear in h and a score of
 * 0.5 (key(u) + R_type h(u)) . query(v) + the edge's weight in each head:
 *   sum over N(v) of softmax(score) (value(u) + R_type h(u)) + (mean by type of R_type h(u)) * sigmoid(query(v)) + b */
ref_node *ref_layer_mixed(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    const ref_edges *const e = c->all;
    ref_node *const query = ref_matmul_t(t, h, ref_matrix(c, "q", c->out, c->in));
    ref_node *const key = ref_matmul_t(t, h, ref_matrix(c, "k", c->out, c->in));
    ref_node *const value = ref_matmul_t(t, h, ref_matrix(c, "val", c->out, c->in));
    ref_node *const said = ref_typed_product(c, e, h, ref_typed(c, "rel", c->in, c->out));
    ref_node *const both = ref_mul(t, ref_add(t, ref_at_source(c, e, key), said), ref_at_target(c, e, query));
    ref_node *const score = ref_add(t, ref_scale(t, 0.5, ref_block_sum(t, both, c->network->heads)),
                                    ref_edge_weights(c, e));
    ref_node *const seen =
        ref_sum(c, e, ref_mul(t, ref_add(t, ref_at_source(c, e, value), said), ref_softmax(c, e, score)));
    ref_node *const typed = ref_mean_by_type(c, e, said);
    ref_node *const gated = ref_mul(t, typed, ref_function(t, "sigmoid", 0, query));
    return ref_add(t, ref_add(t, seen, gated), ref_vector(c, "b", c->out));
}

/* sigmoid(x(u) + y(v)) * message(u), summed. */
static ref_node *gate(ref_call *c, const ref_edges *e, const ref_node *x, const ref_node *y, const ref_node *message)
{
    ref_node *const sum = ref_add(c->tape, ref_at_source(c, e, x), ref_at_target(c, e, y));
    return ref_mul(c->tape, ref_function(c->tape, "sigmoid", 0, sum), ref_at_source(c, e, message));
}

/* gates.gnn, layers but the last: x = W h, y = G h; layer_norm(sum over N'(v) of sigmoid(x(u) + y(v)) * x(u)
 * plus sum over N'(v) of weight * sigmoid(x(u) + y(v)) * y(u)) * (1 + s) + exp(c) * x. */
static ref_node *gated(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    ref_node *const x = ref_matmul_t(t, h, ref_matrix(c, "w", c->out, c->in));
    ref_node *const y = ref_matmul_t(t, h, ref_matrix(c, "g", c->out, c->in));
    ref_node *const plain = ref_sum(c, c->self, gate(c, c->self, x, y, x));
    ref_node *const weighted = ref_sum(c, c->self, ref_mul(t, gate(c, c->self, x, y, y), ref_edge_weights(c, c->self)));
    ref_node *const passed = ref_layer_norm(c, ref_add(t, plain, weighted));
    return ref_add(t, ref_mul(t, passed, ref_shift(t, 1.0, ref_vector(c, "s", 1))),
                   ref_mul(t, x, ref_function(t, "exp", 0, ref_vector(c, "c", c->out))));
}

/* gates.gnn, the last layer: x = W h; max over N(v) of (x(u) - x(v))^2 + x(u), plus min over N'(v) of x(u),
 * plus R h + K times the features. */
ref_node *ref_layer_gates(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    if (!c->last)
        return gated(c, h);
    ref_node *const x = ref_matmul_t(t, h, ref_matrix(c, "w", c->out, c->in));
    ref_node *const u = ref_at_source(c, c->all, x), *const apart = ref_sub(t, u, ref_at_target(c, c->all, x));
    ref_node *const far = ref_max(c, c->all, ref_add(t, ref_mul(t, apart, apart), u));
    ref_node *const least = ref_min(c, c->self, ref_at_source(c, c->self, x));
    ref_node *const own = ref_matmul_t(t, h, ref_matrix(c, "r", c->out, c->in));
    ref_node *const first = ref_matmul_t(t, c->features, ref_matrix(c, "k", c->out, c->features->cols));
    return ref_add(t, ref_add(t, far, least), ref_add(t, own, first));
}

/* walk.gnn: one attention over N'(v), used by three steps x = 0.8 sum of alpha x(u) + 0.2 z, by the sum over
 * N'(v) of alpha^2 z(u), and by its own maximum; z = layer_norm(W h), score tanh(a . z(u) - b . z(v)). */
ref_node *ref_layer_walk(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    const ref_edges *const e = c->self;
    ref_node *const z = ref_layer_norm(c, ref_matmul_t(t, h, ref_matrix(c, "w", c->out, c->in)));
    ref_node *const p = ref_block_sum(t, ref_mul(t, z, ref_vector(c, "a", c->out)), 1);
    ref_node *const q = ref_block_sum(t, ref_mul(t, z, ref_vector(c, "b", c->out)), 1);
    ref_node *const apart = ref_sub(t, ref_at_source(c, e, p), ref_at_target(c, e, q));
    ref_node *const alpha = ref_softmax(c, e, ref_function(t, "tanh", 0, apart));
    ref_node *x = z;
    for (int k = 0; k < 3; k++)
        x = ref_add(t, ref_scale(t, 0.8, ref_sum(c, e, ref_mul(t, ref_at_source(c, e, x), alpha))),
                    ref_scale(t, 0.2, z));
    ref_node *const squared = ref_mul(t, ref_mul(t, ref_at_source(c, e, z), alpha), alpha);
    return ref_add(t, ref_add(t, x, ref_sum(c, e, squared)), ref_mul(t, z, ref_max(c, e, alpha)));
}

/* rows.gnn: x = W h, y = softmax of the columns of G h; sum over N(v) of softmax(x(u) + x(v)) * max(x(u), y(v)), plus
 * min(x, c) * max(y, 0.05) + b. */
ref_node *ref_layer_rows(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    const ref_edges *const e = c->all;
    ref_node *const x = ref_matmul_t(t, h, ref_matrix(c, "w", c->out, c->in));
    ref_node *const y = ref_row_softmax(c, ref_matmul_t(t, h, ref_matrix(c, "g", c->out, c->in)));
    ref_node *const u = ref_at_source(c, e, x), *const level = ref_shift(t, 0.05, ref_zeros(t, 1, 1));
    ref_node *const p = ref_row_softmax(c, ref_add(t, u, ref_at_target(c, e, x)));
    ref_node *const near = ref_sum(c, e, ref_mul(t, p, ref_larger(c, u, ref_at_target(c, e, y))));
    ref_node *const own = ref_mul(t, ref_smaller(c, x, ref_vector(c, "c", c->out)), ref_larger(c, y, level));
    return ref_add(t, ref_add(t, near, own), ref_vector(c, "b", c->out));
}

/* a where x > 0, else b. */
static ref_node *choice(ref_call *c, const ref_node *x, const ref_node *a, const ref_node *b)
{
    ref_tape *const t = c->tape;
    ref_node *const yes = ref_function(t, "step", 0, x), *const no = ref_shift(t, 1.0, ref_scale(t, -1.0, yes));
    return ref_add(t, ref_mul(t, yes, a), ref_mul(t, no, b));
}

/* functions.gnn: x = W h, y = G h, over N(v)
 *   0.3 sum of (silu(d) where d > 0, else |x(u) - y(v)|^1.5 d) gelu(y(u)), d = x(u) - x(v),
 * plus at the vertex (silu(c - x) where x > c, else gelu(x - c)) + (|x - y| where x >= y) + (0.5 + y^2)^-0.75 + b. */
ref_node *ref_layer_functions(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    const ref_edges *const e = c->all;
    ref_node *const x = ref_matmul_t(t, h, ref_matrix(c, "w", c->out, c->in));
    ref_node *const y = ref_matmul_t(t, h, ref_matrix(c, "g", c->out, c->in));
    ref_node *const level = ref_vector(c, "c", c->out), *const u = ref_at_source(c, e, x);
    ref_node *const d = ref_sub(t, u, ref_at_target(c, e, x));
    ref_node *const far = ref_function(t, "abs", 0, ref_sub(t, u, ref_at_target(c, e, y)));
    ref_node *const below = ref_mul(t, ref_function(t, "pow", 1.5, far), d);
    ref_node *const near = choice(c, d, ref_function(t, "silu", 0, d), below);
    ref_node *const seen = ref_sum(c, e, ref_mul(t, near, ref_function(t, "gelu", 0, ref_at_source(c, e, y))));
    ref_node *const over = ref_sub(t, x, level), *const apart = ref_sub(t, x, y);
    ref_node *const own = choice(c, over, ref_function(t, "silu", 0, ref_scale(t, -1.0, over)),
                                 ref_function(t, "gelu", 0, over));
    ref_node *const more = ref_function(t, "relu", 0, apart);
    ref_node *const flat = ref_function(t, "pow", -0.75, ref_shift(t, 0.5, ref_mul(t, y, y)));
    return ref_add(t, ref_add(t, ref_scale(t, 0.3, seen), own),
                   ref_add(t, ref_add(t, more, flat), ref_vector(c, "b", c->out)));
}

/* The row of each edge's type, of a parameter [types, n]. */
static ref_node *by_type(ref_call *c, const char *name, size_t n)
{
    return ref_gather(c->tape, ref_matrix(c, name, c->graph->types, n), c->all->type, c->all->count);
}

/* The number of each edge's type, of a parameter [types]. */
static ref_node *number_by_type(ref_call *c, const char *name)
{
    const size_t types = c->graph->types;
    ref_node *const identity = ref_zeros(c->tape, types, types);
    for (size_t i = 0; i < types; i++)
        identity->x[i * types + i] = 1.0;
    return ref_gather(c->tape, ref_matmul_t(c->tape, identity, ref_vector(c, name, types)), c->all->type,
                      c->all->count);
}

/* tables.gnn, with the learned rows h and o of vertices and the layer's input x: W x + S (sum over N(v) of
 * sigmoid(h(u) + h(v)) * h(u), plus sum over N'(v) of h(u)) + sigmoid(o) * o + b. */
ref_node *ref_layer_tables(ref_call *c, const ref_node *x)
{
    ref_tape *const t = c->tape;
    ref_node *const h = ref_matrix(c, "h", c->graph->vertices, 6), *const s = ref_matrix(c, "s", c->out, 6);
    ref_node *const own = ref_matrix(c, "own", c->graph->vertices, c->out);
    ref_node *const gated = ref_sum(c, c->all, gate(c, c->all, h, h, h));
    ref_node *const near = ref_sum(c, c->self, ref_at_source(c, c->self, h));
    ref_node *const told = ref_add(t, ref_matmul_t(t, x, ref_matrix(c, "w", c->out, c->in)),
                                   ref_matmul_t(t, ref_add(t, gated, near), s));
    return ref_add(t, ref_add(t, told, ref_mul(t, ref_function(t, "sigmoid", 0, own), own)),
                   ref_vector(c, "b", c->out));
}

/* picks.gnn: x = W h, y = Q h; over N(v), with the rows b, the numbers t and the number of columns n of h,
 *   gated = sum of sigmoid(x(u) y(v) / sqrt(n) + t) (x(u) + b),
 *   seen = sum of softmax(leaky_relu(s(u) + t, 0.3)) x(u),
 *   counted = mean of b,   M [x, gated, seen, counted], where s = S h. */
ref_node *ref_layer_picks(ref_call *c, const ref_node *h)
{
    ref_tape *const t = c->tape;
    const ref_edges *const e = c->all;
    ref_node *const x = ref_matmul_t(t, h, ref_matrix(c, "w", c->out, c->in));
    ref_node *const y = ref_matmul_t(t, h, ref_matrix(c, "q", c->out, c->in));
    ref_node *const s = ref_matmul_t(t, h, ref_matrix(c, "s", 1, c->in));
    ref_node *const row = by_type(c, "bias", c->out), *const tilt = number_by_type(c, "tilt");
    ref_node *const xu = ref_at_source(c, e, x);
    ref_node *const both = ref_scale(t, 1.0 / sqrt((double)c->in), ref_mul(t, xu, ref_at_target(c, e, y)));
    ref_node *const gate = ref_function(t, "sigmoid", 0, ref_add(t, both, tilt));
    ref_node *const gated = ref_sum(c, e, ref_mul(t, gate, ref_add(t, xu, row)));
    ref_node *const score = ref_function(t, "leaky_relu", 0.3, ref_add(t, ref_at_source(c, e, s), tilt));
    ref_node *const seen = ref_sum(c, e, ref_mul(t, ref_softmax(c, e, score), xu));
    ref_node *const all = ref_concat(t, ref_concat(t, ref_concat(t, x, gated), seen), ref_mean(c, e, row));
    return ref_matmul_t(t, all, ref_matrix(c, "mix", c->out, 4 * c->out));
}
