/* test_compile_texts.c - models that are in no zoo: each construct of the language against its
 * formula at single vertices, and every gradient against difference quotients. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

typedef struct run {
    test_case t;
    gs_program *p;
    test_graph *g;
    double **param;
    interp x;
} run;

static void open_run(run *r, const char *dir, const char *text, const test_case *t)
{
    r->t = *t;
    r->t.model = model_text(dir, text);
    r->p = gs_program_new();
    r->g = graph_new(17, 60, t->in, t->classes, t->self_loops, 33);
    gs_assert_ok(compile_case(r->p, &r->t, "train"));
    gs_assert_ok(compile_case(r->p, &r->t, "predict"));
    r->param = params_new(r->p, 7);
    start(&r->x, r->p, r->g, r->param);
}

static void close_run(run *r)
{
    interp_close(&r->x);
    params_free(r->p, r->param);
    graph_free(r->g);
    gs_program_free(r->p);
}

/* Gradients, over self loops and switches. */
static void check_gradients_of(const char *dir, const char *text, const test_case *t)
{
    for (int bits = 0; bits < 4; bits++) {
        test_case now = *t;
        run r;
        now.self_loops = bits & 1;
        now.no_move = now.no_fuse = bits & 2;
        open_run(&r, dir, text, &now);
        check_gradients(&r.x, r.p, gs_program_pass(r.p, "train"), r.param);
        close_run(&r);
    }
}

/* One layer without parameters from features x[n, 3] to 3 logits: `formula` gives element c of vertex v. */
static void check_formula(const char *dir, const char *expression, bool weights,
                          double (*formula)(const test_graph *g, uint32_t v, uint32_t c))
{
    for (int bits = 0; bits < 4; bits++) {
        const test_case t = {.layers = 1, .in = 3, .classes = 3, .self_loops = bits & 1, .no_fuse = bits & 2,
                             .edge_weights = weights};
        char text[512];
        run r;
        snprintf(text, sizeof(text), "layer t(h[a]) -> [b]:\n%s%s\n", expression[0] == ' ' ? "" : "  return ",
                 expression);
        open_run(&r, dir, text, &t);
        interp_run(&r.x, gs_program_pass(r.p, "predict"));
        for (uint32_t v = 0; v < r.g->n; v++)
            for (uint32_t c = 0; c < 3; c++) {
                const double got = r.x.array[r.p->logits][v * 3 + c], want = formula(r.g, v, c);
                if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want)))) {
                    gs_program_print(r.p, stderr);
                    fail_msg("%s: vertex %u, column %u: got %.9g, want %.9g", expression, v, c, got, want);
                }
            }
        close_run(&r);
    }
}

static double feature(const test_graph *g, uint32_t v, uint32_t c)
{
    return g->store[ID_FEATURES][v * 3 + c];
}

static double sum_weighted(const test_graph *g, uint32_t v, uint32_t c)
{
    double s = 0;
    for (uint32_t e = 0; e < g->m; e++)
        s += g->dst[e] == v ? g->weight[e] * feature(g, g->src[e], c) : 0;
    return s;
}

static double sum_plain(const test_graph *g, uint32_t v, uint32_t c)
{
    double s = 0;
    for (uint32_t e = 0; e < g->m; e++)
        s += g->dst[e] == v ? feature(g, g->src[e], c) : 0;
    return s;
}

static double mean_self(const test_graph *g, uint32_t v, uint32_t c)
{
    double s = feature(g, v, c), n = 1;
    for (uint32_t e = 0; e < g->m; e++)
        if (g->dst[e] == v && g->src[e] != v) {
            s += feature(g, g->src[e], c);
            n++;
        }
    return s / n;
}

static double extreme(const test_graph *g, uint32_t v, uint32_t c, double sign, bool self)
{
    double top = self ? feature(g, v, c) * feature(g, v, (c + 0) % 3) : NAN;
    for (uint32_t e = 0; e < g->m; e++) {
        const double x = feature(g, g->src[e], c) * feature(g, v, c);
        if (g->dst[e] == v && !(sign * x <= sign * top))
            top = x;
    }
    return isnan(top) ? 0 : top;
}

static double max_plain(const test_graph *g, uint32_t v, uint32_t c)
{
    return extreme(g, v, c, 1, false);
}

static double min_plain(const test_graph *g, uint32_t v, uint32_t c)
{
    return extreme(g, v, c, -1, false);
}

static double max_self(const test_graph *g, uint32_t v, uint32_t c)
{
    return extreme(g, v, c, 1, true);
}

static double min_self(const test_graph *g, uint32_t v, uint32_t c)
{
    return extreme(g, v, c, -1, true);
}

/* The softmax of score(u, v) = x_u . x_v, at column c of sum(f(softmax) * x_u). */
static double softmax_sum(const test_graph *g, uint32_t v, uint32_t c, bool self, double power)
{
    double norm = 0, s = 0;
    for (int round = 0; round < 2; round++)
        for (uint32_t e = 0; e < g->m + self; e++) {
            const uint32_t u = e == g->m ? v : g->src[e];
            double score = 0;
            if (e < g->m && (g->dst[e] != v || (self && g->src[e] == v)))
                continue;
            for (uint32_t k = 0; k < 3; k++)
                score += feature(g, u, k) * feature(g, v, k);
            if (round == 0)
                norm += exp(score);
            else
                s += pow(exp(score) / norm, power) * feature(g, u, c);
        }
    return s;
}

static double attention(const test_graph *g, uint32_t v, uint32_t c)
{
    return softmax_sum(g, v, c, false, 1);
}

static double attention_self(const test_graph *g, uint32_t v, uint32_t c)
{
    return softmax_sum(g, v, c, true, 1);
}

static double root_attention(const test_graph *g, uint32_t v, uint32_t c)
{
    return softmax_sum(g, v, c, false, 0.5);
}

/* What a vertex has itself, where any edge goes into it: shares of a softmax add up to 1. */
static double own_if_reached(const test_graph *g, uint32_t v, uint32_t c)
{
    for (uint32_t e = 0; e < g->m; e++)
        if (g->dst[e] == v)
            return feature(g, v, c);
    return 0;
}

static double mean_exp(const test_graph *g, uint32_t v, uint32_t c)
{
    double s = 0, n = 0;
    for (uint32_t e = 0; e < g->m; e++)
        if (g->dst[e] == v) {
            s += exp(feature(g, g->src[e], c));
            n++;
        }
    return n > 0 ? s / n : 0;
}

static double own_exp(const test_graph *g, uint32_t v, uint32_t c) { return exp(feature(g, v, c)); }

static double normalised(const test_graph *g, uint32_t v, uint32_t c)
{
    double mean = 0, variance = 0;
    for (uint32_t k = 0; k < 3; k++)
        mean += feature(g, v, k) / 3;
    for (uint32_t k = 0; k < 3; k++)
        variance += (feature(g, v, k) - mean) * (feature(g, v, k) - mean) / 3;
    return (feature(g, v, c) - mean) / sqrt(variance + 1e-5);
}

/* Weighted, over the in-edges without loops and an own edge of weight 1: `fn` of weight, x(u), x(v) and so far. */
static double over_self(const test_graph *g, uint32_t v, uint32_t c, double start,
                        double (*fn)(double so_far, double w, double u, double x))
{
    const double x = feature(g, v, c);
    double s = fn(start, 1, x, x);
    for (uint32_t e = 0; e < g->m; e++)
        if (g->dst[e] == v && g->src[e] != v)
            s = fn(s, g->weight[e], feature(g, g->src[e], c), x);
    return s;
}

static double add_weighted(double s, double w, double u, double x) { return s + w * u * (1 + x); }
static double most_weighted(double s, double w, double u, double x) { return fmax(s, w * u + x); }
static double least_weighted(double s, double w, double u, double x) { return fmin(s, w * u + x); }
static double count_one(double s, double w, double u, double x) { (void)w, (void)u, (void)x; return s + 1; }

static double sum_weighted_self(const test_graph *g, uint32_t v, uint32_t c)
{
    return over_self(g, v, c, 0, add_weighted);
}
static double max_weighted_self(const test_graph *g, uint32_t v, uint32_t c)
{
    return over_self(g, v, c, -INFINITY, most_weighted);
}
static double min_weighted_self(const test_graph *g, uint32_t v, uint32_t c)
{
    return over_self(g, v, c, INFINITY, least_weighted);
}
static double mean_weighted_self(const test_graph *g, uint32_t v, uint32_t c)
{
    return over_self(g, v, c, 0, add_weighted) / over_self(g, v, c, 0, count_one);
}

/* Attention with weights in the scores, 3 w + x(u) . x(v), and in the values. */
static double attend_weighted_self(const test_graph *g, uint32_t v, uint32_t c)
{
    double s = 0, norm = 0;
    for (uint32_t e = 0; e <= g->m; e++) {
        const bool own = e == g->m;
        const uint32_t u = own ? v : g->src[e];
        const double w = own ? 1 : g->weight[e];
        double dot = 3 * w;
        if (!own && (g->dst[e] != v || u == v))
            continue;
        for (uint32_t k = 0; k < 3; k++)
            dot += feature(g, u, k) * feature(g, v, k);
        norm += exp(dot);
        s += exp(dot) * w * feature(g, u, c);
    }
    return s / norm;
}

static double rows_alone(const test_graph *g, uint32_t v, uint32_t c)
{
    const double *x = g->store[ID_FEATURES] + (size_t)v * 3, top = 400 * fmax(x[0], fmax(x[1], x[2]));
    const double sum = exp(400 * x[0] - top) + exp(400 * x[1] - top) + exp(400 * x[2] - top);
    return exp(400 * x[c] - top) / sum + fmax(x[c], (double)0.1f) - fmin((double)0.2f, x[c]);
}

/* The largest of softmax(x(u) + x(v)) * min(x(u), x(v)) over the in-edges. */
static double rows_of_edges(const test_graph *g, uint32_t v, uint32_t c)
{
    const double *x = g->store[ID_FEATURES], *mine = x + (size_t)v * 3;
    double most = -INFINITY;
    for (uint32_t e = 0; e < g->m; e++) {
        const double *u = x + (size_t)g->src[e] * 3;
        if (g->dst[e] != v)
            continue;
        const double sum = exp(u[0] + mine[0]) + exp(u[1] + mine[1]) + exp(u[2] + mine[2]);
        most = fmax(most, exp(u[c] + mine[c]) / sum * fmin(u[c], mine[c]));
    }
    return most == -INFINITY ? 0 : most;
}

/* torch.nn.functional.normalize(), eps 1e-12, of the difference of two rows, or of one. */
static double l2_normalised(const test_graph *g, const uint32_t v[2], uint32_t c)
{
    double square = 0, x[3];
    for (uint32_t k = 0; k < 3; k++) {
        x[k] = feature(g, v[0], k) - (v[1] != v[0] ? feature(g, v[1], k) : 0);
        square += x[k] * x[k];
    }
    return x[c] / fmax(sqrt(square), 1e-12);
}

static double l2_alone(const test_graph *g, uint32_t v, uint32_t c)
{
    return l2_normalised(g, (const uint32_t[2]){v, v}, c);
}

/* A loop's difference is a row of 0, and stays one. */
static double l2_of_edges(const test_graph *g, uint32_t v, uint32_t c)
{
    double s = 0;
    for (uint32_t e = 0; e < g->m; e++)
        if (g->dst[e] == v && g->src[e] != v)
            s += l2_normalised(g, (const uint32_t[2]){g->src[e], v}, c);
    return s;
}

static void test_texts__reductions_are_their_formulas(void **state)
{
    check_formula(*state, "sum(e.weight * u.h)", true, sum_weighted);
    check_formula(*state, "sum(e.weight * u.h)", false, sum_plain);
    check_formula(*state, "mean(u.h, self)", false, mean_self);
    check_formula(*state, "max(u.h * v.h)", false, max_plain);
    check_formula(*state, "min(u.h * v.h)", false, min_plain);
    check_formula(*state, "max(u.h * v.h, self)", false, max_self);
    check_formula(*state, "min(u.h * v.h, self)", false, min_self);
    check_formula(*state, "sum(softmax(dot(u.h, v.h)) * u.h)", false, attention);
    check_formula(*state, "sum(softmax(dot(u.h, v.h)) * u.h, self)", false, attention_self);
    check_formula(*state, "sum(sqrt(softmax(dot(u.h, v.h))) * u.h)", false, root_attention);
    check_formula(*state, "sum(softmax(2 * v.h) * v.h)", false, own_if_reached);
    check_formula(*state, "sum(softmax(dot(v.h, v.h)) * exp(v.h), self)", true, own_exp);
    check_formula(*state, "sum(softmax(v.h) * exp(u.h))", false, mean_exp);
    check_formula(*state, "layer_norm(h)", false, normalised);
    check_formula(*state, "part(concat(2 * h, concat(sum(u.h), h)), 1, 3)", false, sum_plain);
    check_formula(*state, "sum(part(concat(u.h, 3 * u.h), 0, 2))", false, sum_plain);
    check_formula(*state, "sum(e.weight * u.h * (1 + v.h), self)", true, sum_weighted_self);
    check_formula(*state, "mean(e.weight * u.h * (1 + v.h), self)", true, mean_weighted_self);
    check_formula(*state, "max(e.weight * u.h + v.h, self)", true, max_weighted_self);
    check_formula(*state, "min(e.weight * u.h + v.h, self)", true, min_weighted_self);
    check_formula(*state, "sum(softmax(3 * e.weight + dot(u.h, v.h)) * e.weight * u.h, self)", true,
                  attend_weighted_self);
    check_formula(*state, "row_softmax(400 * h) + max(h, 0.1) - min(0.2, h)", false, rows_alone);
    check_formula(*state, "max(row_softmax(u.h + v.h) * min(u.h, v.h))", false, rows_of_edges);
    check_formula(*state, "l2_normalize(h)", false, l2_alone);
    check_formula(*state, "sum(l2_normalize(u.h - v.h))", false, l2_of_edges);
    check_formula(*state, "sum(softmax(e.weight) * exp(u.h))", false, mean_exp); /* without weights all are 1 */
    check_formula(*state, "  p = softmax(e.weight)\n  return sum(p * exp(u.h))", false, mean_exp);
}

/* Column c of torch.nn.BatchNorm1d of the features: by the batch, or by the running buffers. */
static double batch_normalised(const run *r, uint32_t v, uint32_t c, bool training)
{
    const char *const names[] = {"norms.0.module.weight", "norms.0.module.bias", "norms.0.module.running_mean",
                                 "norms.0.module.running_var"};
    double p[4], mean = 0, variance = 0;
    for (int k = 0; k < 4; k++)
        p[k] = r->param[param_index(r->p, names[k])][c];
    for (uint32_t u = 0; u < r->g->n; u++)
        mean += feature(r->g, u, c) / r->g->n;
    for (uint32_t u = 0; u < r->g->n; u++)
        variance += pow(feature(r->g, u, c) - mean, 2) / r->g->n;
    return (feature(r->g, v, c) - (training ? mean : p[2])) / sqrt((training ? variance : p[3]) + 1e-5) * p[0] + p[1];
}

/* Of a row of one number the mean is that number, and its share is 1: what is left is the same for all vertices. */
static void test_texts__a_row_of_one_number_is_one(void **state)
{
    const test_case t = {.layers = 1, .in = 3, .classes = 3};
    run r;
    open_run(&r, *state,
             "layer t(h[a]) -> [b]:\n  param w[1, a], z[b, 1]\n  y = layer_norm(h @ w', n)\n"
             "  return y @ z' + row_softmax(h @ w') @ z' + h\n",
             &t);
    const double *const z = r.param[param_index(r.p, "convs.0.z")];
    const double bias = r.param[param_index(r.p, "convs.0.n.bias")][0];
    interp_run(&r.x, gs_program_pass(r.p, "predict"));
    for (uint32_t v = 0; v < r.g->n; v++)
        for (uint32_t c = 0; c < 3; c++)
            gs_assert_close(r.x.array[r.p->logits][v * 3 + c], feature(r.g, v, c) + (bias + 1) * z[c], 1e-6);
    close_run(&r);
}

static void test_texts__l2_normalize_has_a_gradient(void **state)
{
    const char *text = "layer t(h[a]) -> [b]:\n  param w[b, a], z[b, a]\n"
                       "  return sum(l2_normalize(u.h @ w' - v.h) * v.h) + l2_normalize(h @ z')\n";
    const test_case t = {.layers = 1, .in = 3, .classes = 3};
    check_gradients_of(*state, text, &t);
}

static void test_texts__batch_norm_is_torchs(void **state)
{
    const test_case t = {.layers = 1, .in = 3, .classes = 3};
    double loss = 0;
    run r;
    open_run(&r, *state, "layer t(h[a]) -> [b]:\n  return batch_norm(h)\n", &t);
    assert_true(gs_program_needs_all_rows(r.p, gs_program_pass(r.p, "train")));
    assert_true(gs_program_train_differs(r.p, gs_program_pass(r.p, "train")));
    assert_false(gs_program_needs_all_rows(r.p, gs_program_pass(r.p, "predict")));
    assert_false(gs_program_train_differs(r.p, gs_program_pass(r.p, "predict")));
    for (uint32_t c = 0; c < 3; c++)
        r.param[param_index(r.p, "norms.0.module.running_var")][c] = 0.5 + c;
    assert_true(r.p->param[param_index(r.p, "norms.0.module.num_batches_tracked")].counter);
    assert_true(r.p->param[param_index(r.p, "norms.0.module.weight")].initial.number == 1);

    interp_run(&r.x, gs_program_pass(r.p, "predict"));
    for (uint32_t v = 0; v < r.g->n; v++)
        for (uint32_t c = 0; c < 3; c++)
            gs_assert_close(r.x.array[r.p->logits][v * 3 + c], batch_normalised(&r, v, c, false), 1e-6);

    interp_run(&r.x, gs_program_pass(r.p, "train"));
    for (uint32_t v = 0; v < r.g->n; v++) {
        double sum = 0;
        for (uint32_t c = 0; c < 3; c++)
            sum += exp(batch_normalised(&r, v, c, true));
        if (r.g->store[ID_SPLIT][v] == 1)
            loss += log(sum) - batch_normalised(&r, v, (uint32_t)r.g->store[ID_LABELS][v], true);
    }
    gs_assert_close(r.x.loss_sum, loss, 1e-6);
    for (uint32_t i = 0; i < r.p->params; i++) { /* what the buffers follow */
        const gs_param *q = &r.p->param[i];
        if (q->statistic == GS_STATISTIC_NONE || q->running == GS_NONE)
            continue;
        assert_string_equal(r.p->param[q->running].name, q->statistic == GS_STATISTIC_MEAN
                                                             ? "norms.0.module.running_mean"
                                                             : "norms.0.module.running_var");
    }
    close_run(&r);
}

/* A softmax written by hand: the same as the built-in one, and 0 where there are no edges. */
static void test_texts__a_softmax_by_hand_divides_by_no_zero(void **state)
{
    const char *text = "layer t(h[a]) -> [b]:\n"
                       "  p = exp(dot(u.h, v.h))\n"
                       "  total = sum(p)\n"
                       "  return sum(p / v.total * u.h)\n";
    const test_case t = {.layers = 1, .in = 3, .classes = 3};
    run r;
    open_run(&r, *state, text, &t);
    interp_run(&r.x, gs_program_pass(r.p, "predict"));
    for (uint32_t v = 0; v < r.g->n; v++)
        for (uint32_t c = 0; c < 3; c++)
            gs_assert_close(r.x.array[r.p->logits][v * 3 + c], attention(r.g, v, c), 1e-5);
    close_run(&r);
}

/* ---- three models of no zoo ---- */

static void test_texts__attention_over_typed_messages(void **state)
{
    /* Attention and edge types at once, two heads, a residual, weights on the edges. */
    const char *text =
        "layer mixed(h[in]) -> [heads * d]:\n"
        "  param q[heads * d, in], k[heads * d, in], val[heads * d, in], rel[types, in, heads * d], b[heads * d]\n"
        "  query = h @ q'\n"
        "  key = h @ k'\n"
        "  value = h @ val'\n"
        "  said = u.h @ rel[e.type]\n"
        "  score = 0.5 * dot(u.key + said, v.query) + e.weight\n"
        "  typed = mean(u.h @ rel[e.type], type)\n"
        "  return sum(softmax(score) * (u.value + said)) + typed * sigmoid(query) + b\n";
    const test_case t = {.layers = 2, .in = 4, .hidden = 6, .classes = 4, .heads = 2, .edge_types = TEST_TYPES,
                         .edge_weights = true, .act = "tanh", .dropout = 0.2f, .input_dropout = 0.1f};
    check_gradients_of(*state, text, &t);
}

static void test_texts__gates_extremes_and_earlier_layers(void **state)
{
    const char *text = "layer first(h[in]) -> [out]:\n"
                       "  param w[out, in], g[out, in], s[1], c[out]\n"
                       "  x = h @ w'\n"
                       "  y = h @ g'\n"
                       "  gate = sigmoid(u.x + v.y)\n"
                       "  z = sum(gate * u.x, self) + sum(e.weight * gate * u.y, self)\n"
                       "  return layer_norm(z) * (1 + s) + exp(c) * x\n"
                       "layer next(h[in]) -> [out]:\n"
                       "  param w[out, in], r[out, in], k[out, 3]\n"
                       "  x = h @ w'\n"
                       "  d = u.x - v.x\n"
                       "  return max(d * d + u.x) + min(u.x, self) + h @ r' + input.0 @ k'\n";
    const test_case t = {.layers = 3, .in = 3, .hidden = 4, .classes = 4, .edge_weights = true, .act = "elu"};
    check_gradients_of(*state, text, &t);
}

static void test_texts__repeated_attention_with_shared_scores(void **state)
{
    /* One softmax, used by two sums and in another way; scores of layer norms; the vertex itself. */
    const char *text = "layer walk(h[in]) -> [out]:\n"
                       "  param w[out, in], a[out], b[out]\n"
                       "  z = layer_norm(h @ w')\n"
                       "  p = dot(z, a)\n"
                       "  q = dot(z, b)\n"
                       "  alpha = softmax(tanh(u.p - v.q), self)\n"
                       "  x = z\n"
                       "  repeat 3:\n"
                       "    x = 0.8 * sum(alpha * u.x, self) + 0.2 * z\n"
                       "  end\n"
                       "  return x + sum(alpha * alpha * u.z) + max(alpha) * z\n";
    const test_case t = {.layers = 2, .in = 5, .hidden = 4, .classes = 3};
    check_gradients_of(*state, text, &t);
}

static void test_texts__rows_and_the_larger_of_two(void **state)
{
    const char *text =
        "layer rows(h[in]) -> [out]:\n"
        "  param w[out, in], g[out, in], c[out]\n"
        "  x = h @ w'\n"
        "  y = row_softmax(h @ g')\n"
        "  near = row_softmax(u.x + v.x) * max(u.x, v.y)\n"
        "  return sum(near, self) + min(x, c) * max(y, 0.3) + max(row_softmax(u.x * v.y) - min(u.y, v.x))\n";
    const test_case t = {.layers = 2, .in = 4, .hidden = 5, .classes = 3, .self_loops = true};
    check_gradients_of(*state, text, &t);
}

static void test_texts__weighted_loops_count_once(void **state)
{
    const char *text =
        "layer own(h[in]) -> [out]:\n"
        "  param w[out, in], a[out], b[out]\n"
        "  x = h @ w'\n"
        "  p = dot(x, a)\n"
        "  q = dot(x, b)\n"
        "  alpha = softmax(e.weight * tanh(u.p - v.q), self)\n"
        "  return sum(alpha * u.x, self) + max(e.weight * u.x + v.x, self) + mean(alpha * e.weight * u.x, self) + x\n";
    const test_case t = {.layers = 2, .in = 4, .hidden = 5, .classes = 3, .edge_weights = true, .act = "tanh"};
    check_gradients_of(*state, text, &t);
}

static void test_texts__a_norm_of_what_is_all_equal_has_a_gradient(void **state)
{
    /* As behind a relu that lets nothing through; torch's gradient of a deviation of 0 is 0, too. */
    const char *text = "layer dead(h[in]) -> [out]:\n"
                       "  param w[out, in], a[out, in]\n"
                       "  return h @ w' + layer_norm_all(relu(-1 - abs(h @ a')), n)\n";
    const test_case t = {.layers = 1, .in = 4, .classes = 3};
    check_gradients_of(*state, text, &t);
}

static void test_texts__sequences_beside_other_sums(void **state)
{
    /* Two of them on one input, one over features as they are, with a weight that is not learned; a state that goes
     * over the edges again; attention and a mean beside them. */
    const char *text = "layer two(h[in]) -> [out]:\n"
                       "  param g[4 * out, in], r[4 * out, out], s[4 * out, out], w[out, in], q[out], z[out, 2]\n"
                       "  buffer k[8, 2]\n"
                       "  x = h @ g'\n"
                       "  a = lstm(u.x, r)\n"
                       "  b = lstm(tanh(u.x) * u.in_degree, s)\n"
                       "  y = h @ w' + mean(u.a)\n"
                       "  p = dot(y, q)\n"
                       "  return a * b + sum(softmax(u.p + v.p) * u.b) + y + lstm(u.input.0, k) @ z'\n";
    const test_case t = {.layers = 2, .in = 8, .hidden = 4, .classes = 3};
    check_gradients_of(*state, text, &t);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_texts__reductions_are_their_formulas),
        CASE(test_texts__a_row_of_one_number_is_one),
        CASE(test_texts__l2_normalize_has_a_gradient),
        CASE(test_texts__batch_norm_is_torchs),
        CASE(test_texts__a_softmax_by_hand_divides_by_no_zero),
        CASE(test_texts__attention_over_typed_messages),
        CASE(test_texts__gates_extremes_and_earlier_layers),
        CASE(test_texts__repeated_attention_with_shared_scores),
        CASE(test_texts__rows_and_the_larger_of_two),
        CASE(test_texts__weighted_loops_count_once),
        CASE(test_texts__a_norm_of_what_is_all_equal_has_a_gradient),
        CASE(test_texts__sequences_beside_other_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
