/* test_compile_math.c - compiled programs compute what the formulas say, and their
 * gradients are those of their loss. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "cases.h"
#include "support/formulas.h"

/* ---- the formulas, written once more, by vertex ---- */

static double mask(uint64_t seed, uint32_t epoch, uint32_t site, uint32_t id, uint32_t c, float p)
{
    const uint32_t counter[4] = {id, c / 4, site, epoch};
    uint32_t key[2], word[4];
    if (p == 0)
        return 1;
    gs_random_key(key, seed, GS_RANDOM_DROPOUT);
    gs_philox4x32(word, counter, key);
    return gs_uniform_f32(word[c % 4]) >= p ? 1.0 / (1.0 - (double)p) : 0.0;
}

static void drop(double *h, const test_graph *g, uint32_t width, uint32_t site, float p)
{
    for (uint32_t v = 0; v < g->n; v++)
        for (uint32_t c = 0; c < width; c++)
            h[(size_t)v * width + c] *= mask(42, 3, site, (uint32_t)g->store[ID_INPUT_ID][v], c, p);
}

static double weight_of(const gs_program *p, double **param, uint32_t layer, const char *name, uint32_t r, uint32_t c)
{
    char full[64];
    uint32_t i;
    snprintf(full, sizeof(full), "convs.%u.%s", layer, name);
    i = param_index(p, full);
    return param[i][(size_t)r * p->param[i].cols + c];
}

/* PyG's GCNConv: loops replaced by exactly one of weight 1 a vertex. */
static double gcn_coefficient(const test_graph *g, uint32_t u, uint32_t v)
{
    const double *deg = g->store[ID_IN_DEGREE], *loops = g->store[ID_LOOPS];
    return 1.0 / sqrt((deg[u] - loops[u] + 1) * (deg[v] - loops[v] + 1));
}

static void gcn_aggregate(const test_graph *g, const double *x, double *y, uint32_t w)
{
    for (uint32_t e = 0; e < g->m; e++)
        for (uint32_t c = 0; g->src[e] != g->dst[e] && c < w; c++)
            y[(size_t)g->dst[e] * w + c] += gcn_coefficient(g, g->src[e], g->dst[e]) * x[(size_t)g->src[e] * w + c];
    for (uint32_t v = 0; v < g->n; v++)
        for (uint32_t c = 0; c < w; c++)
            y[(size_t)v * w + c] += gcn_coefficient(g, v, v) * x[(size_t)v * w + c];
}

static void mean_aggregate(const test_graph *g, const double *x, double *y, uint32_t w)
{
    for (uint32_t e = 0; e < g->m; e++)
        for (uint32_t c = 0; c < w; c++)
            y[(size_t)g->dst[e] * w + c] += x[(size_t)g->src[e] * w + c];
    for (uint32_t v = 0; v < g->n; v++)
        for (uint32_t c = 0; c < w && g->store[ID_IN_DEGREE][v] > 0; c++)
            y[(size_t)v * w + c] /= g->store[ID_IN_DEGREE][v];
}

static double *formula_layer(const test_case *t, const gs_program *p, double **param, const test_graph *g,
                             const double *h, uint32_t in, uint32_t out, uint32_t layer)
{
    double *a = calloc((size_t)g->n * in, sizeof(double)), *y = calloc((size_t)g->n * out, sizeof(double));
    const bool gcn = strcmp(t->model, "gcn") == 0;

    if (gcn)
        gcn_aggregate(g, h, a, in);
    else
        mean_aggregate(g, h, a, in);
    for (uint32_t v = 0; v < g->n; v++)
        for (uint32_t o = 0; o < out; o++) {
            double s = weight_of(p, param, layer, gcn ? "bias" : "lin_l.bias", 0, o);
            for (uint32_t i = 0; i < in; i++) {
                s += a[(size_t)v * in + i] * weight_of(p, param, layer, gcn ? "lin.weight" : "lin_l.weight", o, i);
                if (!gcn)
                    s += h[(size_t)v * in + i] * weight_of(p, param, layer, "lin_r.weight", o, i);
            }
            y[(size_t)v * out + o] = s;
        }
    free(a);
    return y;
}

static double *formula_logits(const test_case *t, const gs_program *p, double **param, const test_graph *g, bool train)
{
    uint32_t width = t->in;
    double *h = malloc((size_t)g->n * t->in * sizeof(double));

    memcpy(h, g->store[ID_FEATURES], (size_t)g->n * t->in * sizeof(double));
    if (train)
        drop(h, g, width, 0, t->input_dropout);
    for (uint32_t i = 0; i < t->layers; i++) {
        const bool last = i + 1 == t->layers;
        const uint32_t out = last ? t->classes : t->hidden;
        double *y = formula_layer(t, p, param, g, h, width, out, i);
        for (size_t k = 0; !last && k < (size_t)g->n * out; k++)
            y[k] = y[k] > 0 ? y[k] : 0;
        if (!last && train)
            drop(y, g, out, i + 1, t->dropout);
        free(h);
        h = y;
        width = out;
    }
    return h;
}

static double loss_of(const test_graph *g, const double *z, uint32_t classes)
{
    double loss = 0;
    for (uint32_t v = 0; v < g->n; v++) {
        double sum = 0;
        for (uint32_t c = 0; c < classes; c++)
            sum += exp(z[(size_t)v * classes + c]);
        if (g->store[ID_SPLIT][v] == 1)
            loss += log(sum) - z[(size_t)v * classes + (size_t)g->store[ID_LABELS][v]];
    }
    return loss;
}

/* ---- comparisons ---- */

static void check_case(const test_case *t)
{
    gs_program *p = gs_program_new();
    test_graph *g = graph_new(23, 90, t->in, t->classes, t->self_loops, 5);
    double **param, *want;
    interp x;

    gs_assert_ok(compile_case(p, t, "train"));
    gs_assert_ok(compile_case(p, t, "eval"));
    gs_assert_ok(compile_case(p, t, "predict"));
    param = params_new(p, 11);
    start(&x, p, g, param);

    want = formula_logits(t, p, param, g, false);
    interp_run(&x, gs_program_pass(p, "predict"));
    assert_true(p->logits != GS_NONE);
    gs_assert_all_close_f64(x.array[p->logits], want, (size_t)g->n * t->classes, 1e-5, 1e-6);
    interp_run(&x, gs_program_pass(p, "eval"));
    gs_assert_close(x.loss_sum, loss_of(g, want, t->classes), 1e-5);
    free(want);

    want = formula_logits(t, p, param, g, true);
    interp_run(&x, gs_program_pass(p, "train"));
    gs_assert_close(x.loss_sum, loss_of(g, want, t->classes), 1e-5);
    free(want);
    check_gradients(&x, p, gs_program_pass(p, "train"), param);

    interp_close(&x);
    params_free(p, param);
    graph_free(g);
    gs_program_free(p);
}

static void test_math__zoo_models_match_formulas_and_difference_quotients(void **state)
{
    static const uint32_t widths[][2] = {{9, 4}, {3, 6}, {5, 5}}; /* in, hidden */
    (void)state;
    for (uint32_t layers = 1; layers <= 3; layers++)
        for (uint32_t w = 0; w < 3; w++)
            for (int bits = 0; bits < 16; bits++) {
                const test_case t = {
                    .model = bits & 1 ? "gcn" : "sage", .layers = layers, .in = widths[w][0], .hidden = widths[w][1],
                    .classes = w == 1 ? 8 : 3, .self_loops = bits & 2, .no_move = bits & 4,
                    .dropout = bits & 8 ? 0.3f : 0, .input_dropout = bits & 8 && layers > 1 ? 0.2f : 0,
                    .hoist = w != 1, .recompute = (bits + layers) % 2, .rounded = (bits / 2 + layers + w) % 2,
                    .gathered = (bits / 4 + layers) % 2,
                };
                if (bits & 1 || !t.self_loops) /* a loop is an edge as any other to sage: one case has them */
                    check_case(&t);
                else if (bits == 2)
                    check_case(&t);
            }
}

/* Any text: the gradients against the pass's own loss. */
static void check_text(const char *dir, const char *text, uint32_t in, uint32_t hidden)
{
    for (int bits = 0; bits < 4; bits++) {
        const test_case t = {.model = model_text(dir, text), .layers = 2, .in = in, .hidden = hidden, .classes = 3,
                             .self_loops = bits & 1, .no_move = bits & 2, .dropout = 0.25f, .act = "elu"};
        gs_program *p = gs_program_new();
        test_graph *g = graph_new(15, 50, t.in, t.classes, t.self_loops, 9);
        double **param;
        interp x;
        gs_assert_ok(compile_case(p, &t, "train"));
        param = params_new(p, 12);
        start(&x, p, g, param);
        check_gradients(&x, p, gs_program_pass(p, "train"), param);
        interp_close(&x);
        params_free(p, param);
        graph_free(g);
        gs_program_free(p);
    }
}

static void test_math__every_function_has_its_derivative(void **state)
{
    check_text(*state,
               "layer t(h[a]) -> [b]:\n"
               "  param w[b, a], r[b, a], c[b], s[1], t[b, a]\n"
               "  x = tanh(h @ w') * sigmoid(h @ r' + c) / (2 + exp(-h @ w'))\n"
               "  y = leaky_relu(x, 0.1) - elu(h @ w', 0.7) * s\n"
               "  z = sum(u.y * v.x + 3 * u.x - v.y / 2 + 2 * (c * u.x) - c * v.y - c)\n"
               "  q = sqrt(1 + z * z) + log(2 + relu(z)) + rsqrt(3 + x * x)\n"
               "  return mean(-u.q) + dropout(q, 0.5) + (z @ t) @ w' + s * (c * x)\n",
               5, 4);
}

/* The operator in a text, of the operands x, y and z. */
static void call_text(char *text, size_t bytes, gs_op op, const char *x, const char *y, const char *z)
{
    const gs_op_facts *const f = gs_op_facts_of(op);
    if (!isalpha((unsigned char)f->text[0]))
        snprintf(text, bytes, "(%s %s %s)", x, f->text, y);
    else if (f->inputs == 1 && gs_op_is(op, GS_FACT_ALPHA))
        snprintf(text, bytes, "%s(%s, %g)", f->text, x, (double)op_formula_of(op)->alpha);
    else if (f->inputs == 1)
        snprintf(text, bytes, "%s(%s)", f->text, x);
    else
        snprintf(text, bytes, f->inputs == 2 ? "%s(%s, %s)" : "%s(%s, %s, %s)", f->text, x, y, z);
}

/* Each operator that a text can have, of values of vertices, of both ends of edges, and of numbers. */
static void test_math__every_operator_has_its_derivative(void **state)
{
    for (gs_op op = 0; op < GS_OP_COUNT; op++) {
        char vertex[200], edge[200], number[200], text[1200];
        if (gs_op_facts_of(op)->text == NULL)
            continue;
        const bool positive = op_formula_of(op)->positive;
        call_text(vertex, sizeof(vertex), op, positive ? "(0.4 + x * x)" : "x", positive ? "(0.4 + y * y)" : "y", "s");
        call_text(edge, sizeof(edge), op, positive ? "(0.4 + (u.x - v.y) * (u.x - v.y))" : "(u.x - v.y)",
                  positive ? "(0.3 + v.x * v.x)" : "v.x", "(u.y * v.x)");
        call_text(number, sizeof(number), op, "0.7", "0.6", "0.5");
        snprintf(text, sizeof(text),
                 "layer t(h[a]) -> [b]:\n"
                 "  param w[b, a], q[b, a], s[1]\n"
                 "  x = h @ w'\n"
                 "  y = h @ q'\n"
                 "  z = %s\n"
                 "  return z * y + x + sum(%s * u.y) + %s * y\n",
                 vertex, edge, number);
        check_text(*state, text, 4, 3);
    }
}

static void test_math__constants_are_folded_by_the_formulas(void **state)
{
    static const double number[] = {-2.5, -1, -0.3, 0, 0.3, 1, 2.5};
    enum { NUMBERS = sizeof(number) / sizeof(number[0]) };
    (void)state;
    for (gs_op op = 0; op < GS_OP_COUNT; op++)
        for (uint32_t i = 0; gs_op_is_each(op) && i < NUMBERS * NUMBERS * 2; i++) {
            const op_formula *const f = op_formula_of(op);
            const double x = number[i % NUMBERS], y = number[i / NUMBERS % NUMBERS], z = i < NUMBERS * NUMBERS;
            const double got = gs_op_value(op, x, y, z, (double)f->alpha), want = f->value(x, y, z, (double)f->alpha);
            if (!(fabs(got - want) <= 1e-12 * fabs(want)) && !(isnan(got) && isnan(want)) && got != want)
                fail_msg("%s of %g, %g, %g: got %.17g, want %.17g", gs_op_name(op), x, y, z, got, want);
        }
}

/* By the formulas: what the table says of zeros is so. */
static bool keeps_zero(const op_formula *f, gs_op_zero rule, double alpha)
{
    static const double number[] = {-2.5, -1, 0.3, 4};
    bool kept = true;
    for (uint32_t i = 0; i < 16; i++) {
        const double p = number[i % 4], q = number[i / 4];
        const bool first = f->value(0, p, q, alpha) == 0, second = f->value(p, 0, q, alpha) == 0;
        kept = kept && (rule == GS_ZERO_ANY      ? first && second
                        : rule == GS_ZERO_ALL || rule == GS_ZERO_LOST ? f->value(0, 0, 0, alpha) == 0
                        : rule == GS_ZERO_CHOICE ? f->value(p, 0, 0, alpha) == 0 && f->value(0, 0, 0, alpha) == 0
                                                 : first);
    }
    return kept;
}

static void test_math__zeros_are_kept_as_the_table_says(void **state)
{
    (void)state;
    for (gs_op op = 0; op < GS_OP_COUNT; op++) {
        if (!gs_op_is_each(op))
            continue;
        const gs_op_zero rule = gs_op_facts_of(op)->zero;
        const op_formula *const f = op_formula_of(op);
        if (rule == GS_ZERO_POWER)
            assert_true(keeps_zero(f, rule, 0.5) && !keeps_zero(f, rule, 0) && !keeps_zero(f, rule, -1));
        else if (keeps_zero(f, rule, (double)f->alpha) == (rule == GS_ZERO_LOST))
            fail_msg("%s: the table is wrong about zeros", gs_op_name(op));
    }
}

static void test_math__sums_of_sums_in_both_orders(void **state)
{
    check_text(*state,
               "layer t(h[a]) -> [b]:\n"
               "  param w[b, a], c[b]\n"
               "  p = sum(u.h)\n"
               "  q = sum(u.p - 0.5 * v.h)\n"
               "  k = (q + sum(u.h)) @ w'\n"
               "  return k + c + sum(1) * mean(u.k)\n",
               4, 4);
}

static void test_math__values_of_both_ends(void **state)
{
    check_text(*state,
               "layer t(h[a]) -> [b]:\n"
               "  param w[b, a], q[b, a], c[b]\n"
               "  x = h @ w'\n"
               "  y = h @ q'\n"
               "  gate = sigmoid(u.x + v.y + c)\n"
               "  k = sum(gate * u.x + u.y) + sum(exp(-gate) / (2 + v.x * v.x)) * x\n"
               "  z = mean(tanh(u.k * v.x) * v.y - u.x)\n"
               "  return z + sum((u.h * v.h) @ w') + sum(1 / (1 + gate))\n",
               4, 4);
    check_text(*state,
               "layer t(h[a]) -> [b]:\n"
               "  param w[b, a], c[b], s[1]\n"
               "  x = h @ w'\n"
               "  e1 = leaky_relu(u.x - v.x, 0.3)\n"
               "  return sum(exp(c) * (2 * s) * relu(e1) * u.x) + (1 + s) * x + sum((u.x + v.x) * (u.x - v.x) * (u.x + "
               "1) * e1)\n",
               5, 3);
}

static void test_math__edges_that_are_dropped(void **state)
{
    check_text(*state,
               "layer t(h[a]) -> [b]:\n"
               "  param w[b, a], q[b, a], c[b]\n"
               "  x = h @ w'\n"
               "  y = h @ q'\n"
               "  p = dropout(softmax(u.x + v.y, self), 0.3)\n"
               "  k = sum(p * u.x, self) + sum(dropout(c) * u.x) + mean(tanh(dropout(u.x * v.y, 0.6)), self)\n"
               "  return k + sum(dropout(u.x - 2 * v.x, 0.4)) + max(dropout(sigmoid(u.y + v.x)) + u.y, self)\n",
               4, 4);
}

/* Shares of a softmax over the vertex, too, as weights and otherwise, in sums with the vertex and without. */
static void test_math__softmaxes_over_the_vertex_too(void **state)
{
    check_text(*state,
               "layer t(h[a]) -> [b]:\n"
               "  param w[b, a], q[b, a]\n"
               "  x = h @ w'\n"
               "  y = h @ q'\n"
               "  p = softmax(u.x - v.y, self)\n"
               "  r = softmax(leaky_relu(dot(u.x, v.y), 0.2), self)\n"
               "  k = sum(p * u.x, self) + sum(p * v.y * u.y, self) + sum(p * u.y) + sum(sqrt(p) * u.x, self)\n"
               "  return k + sum(r * u.x, self) * y + sum(r * u.y) + sum(tanh(r * u.x), self) + sum(r, self) * x\n",
               4, 4);
}

/* GraphSAGE's concatenation, all layers' inputs side by side, and a GRU with torch's packed weights. */
static void test_math__columns_side_by_side(void **state)
{
    check_text(*state,
               "layer t(h[a]) -> [b]:\n"
               "  param w[b, 2 * a], c[b, b], ih[3 * b, b], hh[3 * b, b], bih[3 * b], bhh[3 * b]\n"
               "  x = concat(h, mean(u.h)) @ w'\n"
               "  gi = sum(u.x) @ ih' + bih\n"
               "  gh = x @ hh' + bhh\n"
               "  r = sigmoid(part(gi, 0, 3) + part(gh, 0, 3))\n"
               "  z = sigmoid(part(gi, 1, 3) + part(gh, 1, 3))\n"
               "  n = tanh(part(gi, 2, 3) + r * part(gh, 2, 3))\n"
               "  y = (1 - z) * n + z * x\n"
               "  k = batch_norm(concat(y, concat(r, x)))\n"
               "  return y @ c' + sum(part(concat(u.y, u.x), 1, 2)) + part(k, 2, 3)\n",
               4, 4);
}

static void test_math__norms(void **state)
{
    check_text(*state,
               "layer t(h[a]) -> [b]:\n"
               "  param w[b, a], q[b, a]\n"
               "  x = batch_norm(h @ w')\n"
               "  y = layer_norm(h @ q', ln)\n"
               "  return batch_norm(sum(u.x * v.y) + mean(relu(u.x)) + dropout(batch_norm(y, nn.norms.0.module), 0.3), "
               "bn) + x\n",
               5, 4);
    check_text(*state,
               "layer t(h[a]) -> [b]:\n"
               "  param w[b, a]\n"
               "  return layer_norm(batch_norm(sum(u.h), first) @ w' + max(u.h) @ w')\n",
               4, 4);
}

static void test_math__gradients_do_not_depend_on_a_texts_form(void **state)
{
    /* GCN as a formula over edges; the same parameters must give the same loss as the built-in text. */
    const char *text = "layer g(h[in]) -> [out]:\n"
                       "  param lin.weight[out, in], bias[out]\n"
                       "  d = in_degree - loops + 1\n"
                       "  x = h @ lin.weight'\n"
                       "  s = sum(rsqrt(v.d) * (rsqrt(u.d) * u.x)) + (1 - loops) * rsqrt(d) * rsqrt(d) * x\n"
                       "  return s + bias\n";
    for (int loops = 0; loops < 2; loops++) {
        test_case t = {.model = "gcn", .layers = 2, .in = 6, .hidden = 5, .classes = 3, .self_loops = loops};
        gs_program *a = gs_program_new(), *b = gs_program_new();
        test_graph *g = graph_new(23, 90, t.in, t.classes, loops, 5);
        double **param;
        interp x, y;
        gs_assert_ok(compile_case(a, &t, "train"));
        t.model = model_text(*state, text);
        gs_assert_ok(compile_case(b, &t, "train"));
        param = params_new(a, 1);
        start(&x, a, g, param);
        start(&y, b, g, param);
        interp_run(&x, 0);
        interp_run(&y, 0);
        gs_assert_close(x.loss_sum, y.loss_sum, 1e-9);
        for (uint32_t i = 0; i < a->params; i++) {
            assert_string_equal(a->param[i].name, b->param[i].name);
            gs_assert_all_close_f64(x.grad[i], y.grad[i], gs_param_elements(&a->param[i]), 1e-7, 1e-9);
        }
        interp_close(&x);
        interp_close(&y);
        params_free(a, param);
        graph_free(g);
        gs_program_free(a);
        gs_program_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_math__zoo_models_match_formulas_and_difference_quotients),
        cmocka_unit_test_setup_teardown(test_math__every_function_has_its_derivative, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test(test_math__constants_are_folded_by_the_formulas),
        cmocka_unit_test(test_math__zeros_are_kept_as_the_table_says),
        cmocka_unit_test_setup_teardown(test_math__every_operator_has_its_derivative, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_math__sums_of_sums_in_both_orders, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_math__values_of_both_ends, gs_test_temp_setup, gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_math__edges_that_are_dropped, gs_test_temp_setup, gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_math__softmaxes_over_the_vertex_too, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_math__columns_side_by_side, gs_test_temp_setup, gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_math__norms, gs_test_temp_setup, gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_math__gradients_do_not_depend_on_a_texts_form, gs_test_temp_setup,
                                        gs_test_temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
