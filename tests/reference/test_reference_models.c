/* test_reference_models.c - does the reference compute its models' formulas, and their gradients?
 *
 * One layer of each family on four vertices, worked out by hand; every parameter of every model against
 * finite differences of the loss. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "reference.h"

/* ---- by hand ---- */

/* Edges 0 -> 1 (type 0), 0 -> 1 again (type 1), 1 -> 2 (type 0), 2 -> 2 (type 1), and vertex 3 alone; one feature.
 * All memory is static, so it is never freed. */
static ref_graph small_graph(void)
{
    static int64_t source[] = {0, 0, 1, 2}, target[] = {1, 1, 2, 2}, type[] = {0, 1, 0, 1}, label[] = {0, 1, 1, -1};
    static double feature[] = {1.0, 2.0, 3.0, 4.0}, weight[] = {0.5, 2.0, -1.0, 3.0};
    static uint8_t split[] = {REF_TRAIN, REF_TRAIN, REF_TEST, REF_NO_SPLIT};
    return (ref_graph){.vertices = 4, .edges = 4, .width = 1, .classes = 2, .types = 2, .source = source,
                       .target = target, .type = type, .weight = weight, .feature = feature, .label = label,
                       .split = split};
}

/* The weight "convs.0.NAME" of a network. */
static double *weight(ref_network *n, const char *name)
{
    char full[64];
    snprintf(full, sizeof(full), "convs.0.%s", name);
    ref_tensor *const t = ref_tensors_find(&n->weight, full);
    assert_non_null(t);
    return t->value;
}

/* One layer of `model` on the small graph: logits [4, 2], from weights that `set` gives; all others are 0. */
static void check_by_hand(const char *model, void (*set)(ref_network *n), const double want[8])
{
    ref_graph g = small_graph();
    ref_network n = ref_network_new(model, 1, 8, 1, 2, "relu", &g);
    set(&n);
    double *z = ref_network_logits(&n, &g);
    double most = 1.0;
    for (size_t i = 0; i < 8; i++)
        most = fmax(most, fabs(want[i]));
    for (size_t i = 0; i < 8; i++)
        if (!(fabs(z[i] - want[i]) <= 1e-14 * most))
            fail_msg("%s: vertex %zu, class %zu: %.15g, expected %.15g", model, i / 2, i % 2, z[i], want[i]);
    free(z);
    ref_network_free(&n);
}

static void set_gcn(ref_network *n)
{
    weight(n, "lin.weight")[0] = 1.0;
    weight(n, "lin.weight")[1] = -2.0;
    weight(n, "bias")[1] = 0.5;
}

/* Sums of weights with one loop each: 1, 3.5, 2, 1. The input's own loop at 2 keeps its weight and counts once. */
static void test_gcn__small_graph_by_hand(void **state)
{
    (void)state;
    const double b = 2.5 / sqrt(3.5) + 2.0 / 3.5, c = -2.0 / sqrt(7.0) + 3.0 * 3.0 / 2.0;
    check_by_hand("gcn", set_gcn, (double[]){1.0, -1.5, b, -2 * b + 0.5, c, -2 * c + 0.5, 4.0, -7.5});
}

static void set_sage(ref_network *n)
{
    weight(n, "lin_l.weight")[0] = 10.0;
    weight(n, "lin_l.bias")[0] = 0.25;
    weight(n, "lin_r.weight")[0] = 1.0;
}

/* Means over in-edges, copies and loops counted: 0, 1, (2 + 3) / 2, 0; maxima 0, 1, 3, 0. */
static void test_sage__small_graph_by_hand(void **state)
{
    (void)state;
    check_by_hand("sage", set_sage, (double[]){1.25, 0, 12.25, 0, 28.25, 0, 4.25, 0});
    check_by_hand("sage_max", set_sage, (double[]){1.25, 0, 12.25, 0, 33.25, 0, 4.25, 0});
}

static void set_gin(ref_network *n)
{
    weight(n, "eps")[0] = 0.5;
    weight(n, "nn.lins.0.weight")[0] = 1.0;
    weight(n, "nn.lins.0.weight")[1] = -1.0; /* relu makes it 0 */
    weight(n, "nn.lins.0.bias")[0] = -2.0;
    weight(n, "nn.lins.1.weight")[0] = 3.0;  /* of class 0: 3 and 100 for the two inner columns */
    weight(n, "nn.lins.1.weight")[1] = 100.0;
    weight(n, "nn.lins.1.bias")[1] = 7.0;
}

/* 1.5 x + sum: 1.5, 3 + 2, 4.5 + 5, 6; minus 2, relu, times 3. */
static void test_gin__small_graph_by_hand(void **state)
{
    (void)state;
    check_by_hand("gin", set_gin, (double[]){0, 7, 9, 7, 22.5, 7, 12, 7});
}

static void set_commnet(ref_network *n)
{
    weight(n, "W_H")[0] = 2.0;
    weight(n, "W_C")[1] = 3.0;
}

static void test_commnet__small_graph_by_hand(void **state)
{
    (void)state;
    check_by_hand("commnet", set_commnet, (double[]){2, 0, 4, 3, 6, 7.5, 8, 0});
}

static void set_appnp(ref_network *n)
{
    weight(n, "lin.weight")[0] = 1.0;
    weight(n, "lin.bias")[1] = 2.0;
}

/* Vertex 3 sees itself alone and stays as it is; the others by ten steps written out over d = 1, 3.5, 2. */
static void test_appnp__small_graph_by_hand(void **state)
{
    (void)state;
    double want[8];
    for (int c = 0; c < 2; c++) {
        const double z[3] = {c ? 2.0 : 1.0, 2.0, c ? 2.0 : 3.0};
        double x[3] = {z[0], z[1], z[2]};
        for (int k = 0; k < 10; k++) {
            x[2] = 0.9 * (-x[1] / sqrt(7.0) + 3.0 * x[2] / 2.0) + 0.1 * z[2];
            x[1] = 0.9 * (2.5 * x[0] / sqrt(3.5) + x[1] / 3.5) + 0.1 * z[1];
        }
        want[c] = z[0];
        want[2 + c] = x[1];
        want[4 + c] = x[2];
        want[6 + c] = c ? 2.0 : 4.0;
    }
    check_by_hand("appnp", set_appnp, want);
}

static void set_gat(ref_network *n)
{
    weight(n, "lin.weight")[0] = 1.0;
    weight(n, "att_src")[0] = 1.0;
    weight(n, "att_dst")[0] = -2.0;
    weight(n, "bias")[1] = 0.5;
}

/* Scores x(u) - 2 x(v), a fifth of it below 0. Vertex 1: twice 1 - 4 and its own 2 - 4; vertex 2: 2 - 6 and 3 - 6. */
static void test_gat__small_graph_by_hand(void **state)
{
    (void)state;
    const double p = exp(-0.6), q = exp(-0.4), r = exp(-0.8), s = exp(-0.6);
    check_by_hand("gat", set_gat, (double[]){1, 0.5, (2 * p * 1 + q * 2) / (2 * p + q), 0.5,
                                             (r * 2 + s * 3) / (r + s), 0.5, 4, 0.5});
}

static void set_gatv2(ref_network *n)
{
    weight(n, "lin_l.weight")[0] = 1.0;
    weight(n, "lin_r.weight")[0] = -2.0;
    weight(n, "lin_r.bias")[1] = 3.0; /* the same for every edge of a vertex: it cancels out */
    weight(n, "att")[0] = 4.0;
    weight(n, "att")[1] = 5.0;
}

static void test_gatv2__small_graph_by_hand(void **state)
{
    (void)state;
    const double p = exp(4 * -0.6), q = exp(4 * -0.4), r = exp(4 * -0.8), s = exp(4 * -0.6);
    check_by_hand("gatv2", set_gatv2, (double[]){1, 0, (2 * p * 1 + q * 2) / (2 * p + q), 0,
                                                 (r * 2 + s * 3) / (r + s), 0, 4, 0});
}

static void set_ggcn(ref_network *n)
{
    weight(n, "W")[0] = 10.0;
    weight(n, "W_H")[0] = 1.0;
    weight(n, "W_C")[0] = -1.0;
}

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

static void test_ggcn__small_graph_by_hand(void **state)
{
    (void)state;
    check_by_hand("ggcn", set_ggcn, (double[]){0, 0, 20 * sigmoid(1), 0, 10 * (2 * sigmoid(1) + 3 * 0.5), 0, 0, 0});
}

static void set_rgcn(ref_network *n)
{
    weight(n, "weight")[0] = 1.0;  /* type 0, to class 0 */
    weight(n, "weight")[3] = 10.0; /* type 1, to class 1 */
    weight(n, "root")[0] = 100.0;
    weight(n, "bias")[1] = 0.5;
}

static void test_rgcn__small_graph_by_hand(void **state)
{
    (void)state;
    check_by_hand("rgcn", set_rgcn, (double[]){100, 0.5, 201, 10.5, 302, 30.5, 400, 0.5});
}

static void set_rgcn_bases(ref_network *n)
{
    weight(n, "weight")[0] = 1.0; /* basis 0, to class 0 */
    weight(n, "weight")[3] = 5.0; /* basis 1, to class 1 */
    weight(n, "comp")[0] = 1.0;   /* type 0: basis 0 */
    weight(n, "comp")[2] = -1.0;  /* type 1: minus basis 0 and twice basis 1 */
    weight(n, "comp")[3] = 2.0;
    weight(n, "root")[0] = 100.0;
    weight(n, "bias")[1] = 0.5;
}

static void test_rgcn_bases__small_graph_by_hand(void **state)
{
    (void)state;
    check_by_hand("rgcn_bases", set_rgcn_bases, (double[]){100, 0.5, 200, 10.5, 299, 30.5, 400, 0.5});
}

static void set_ggnn(ref_network *n)
{
    weight(n, "lin.weight")[0] = 1.0;
    weight(n, "weight")[0] = 1.0; /* type 0: column 0 to column 0 */
    weight(n, "weight")[4] = 3.0; /* type 1 */
    weight(n, "rnn.weight_ih")[2 * 2 * 2] = 0.1; /* of n, behind r and z */
    weight(n, "rnn.bias_ih")[0] = -100.0;        /* r = 0: what follows does nothing */
    weight(n, "rnn.bias_hh")[2 * 2] = 5.0;
}

/* z = 1/2 everywhere: each step is the mean of x and tanh(0.1 m). */
static void test_ggnn__small_graph_by_hand(void **state)
{
    (void)state;
    double x[4] = {1, 2, 3, 4};
    for (int step = 0; step < 2; step++) {
        const double m[4] = {0, 4 * x[0], x[1] + 3 * x[2], 0};
        for (int v = 0; v < 4; v++)
            x[v] = 0.5 * tanh(0.1 * m[v]) + 0.5 * x[v];
    }
    check_by_hand("ggnn", set_ggnn, (double[]){x[0], 0, x[1], 0, x[2], 0, x[3], 0});
}

static void set_sage_lstm(ref_network *n)
{
    static const double in[4] = {0.5, -0.25, 1.0, 0.75}, again[4] = {0.3, 0.6, -0.9, 1.2};
    for (int k = 0; k < 4; k++) {
        weight(n, "aggr_module.lstm.weight_ih_l0")[k] = in[k];
        weight(n, "aggr_module.lstm.weight_hh_l0")[k] = again[k];
    }
    weight(n, "aggr_module.lstm.bias_ih_l0")[1] = 1.5;
    weight(n, "aggr_module.lstm.bias_hh_l0")[1] = 0.5;
    weight(n, "aggr_module.lstm.bias_hh_l0")[3] = -1.0;
    weight(n, "lin_l.weight")[0] = 10.0;
    weight(n, "lin_l.bias")[1] = 0.125;
    weight(n, "lin_r.weight")[1] = 1.0;
}

/* The state after in-neighbours with features a, then b. */
static double after_two(double a, double b)
{
    const double c1 = sigmoid(0.5 * a) * tanh(a), h1 = sigmoid(0.75 * a - 1) * tanh(c1);
    const double c2 = sigmoid(-0.25 * b + 2 + 0.6 * h1) * c1 + sigmoid(0.5 * b + 0.3 * h1) * tanh(b - 0.9 * h1);
    return sigmoid(0.75 * b - 1 + 1.2 * h1) * tanh(c2);
}

/* Vertex 1 hears 1 twice, vertex 2 hears 2 and then its own 3; the others end as they begin, at 0. */
static void test_sage_lstm__small_graph_by_hand(void **state)
{
    (void)state;
    check_by_hand("sage_lstm", set_sage_lstm,
                  (double[]){0, 1.125, 10 * after_two(1, 1), 2.125, 10 * after_two(2, 3), 3.125, 0, 4.125});
}

static void set_mixed(ref_network *n)
{
    weight(n, "q")[0] = 0.5;
    weight(n, "k")[0] = 1.0;
    weight(n, "val")[0] = 1.0;
    weight(n, "rel")[1] = 1.0; /* type 0, to class 1 */
    weight(n, "rel")[2] = 7.0; /* type 1, to class 0 */
    weight(n, "b")[1] = 0.25;
}

/* What is said: (0, x(u)) by type 0, (7 x(u), 0) by type 1. Scores of vertex 1: 0.5 (1, 1) . (1, 0) + 0.5 and
 * 0.5 (1 + 7, 0) . (1, 0) + 2; of vertex 2: 0.5 (2, 2) . (1.5, 0) - 1 and 0.5 (3 + 21, 0) . (1.5, 0) + 3. */
static void test_mixed__small_graph_by_hand(void **state)
{
    (void)state;
    const double p = exp(1.0 - 6.0), q = exp(0.5 - 21.0); /* of the first edge, when the second has 1 */
    check_by_hand("mixed", set_mixed,
                  (double[]){0, 0.25, (p + 8) / (p + 1) + 7 * sigmoid(1.0), p / (p + 1) + 0.5 + 0.25,
                             (2 * q + 24) / (q + 1) + 21 * sigmoid(1.5), 2 * q / (q + 1) + 1 + 0.25, 0, 0.25});
}

/* ---- gradients ---- */

static void remove_dir(const char *dir)
{
    static const char *const names[] = {
        "edges.npy", "labels.npy", "features.npy", "features_indptr.npy", "features_indices.npy", "features_data.npy",
        "train_idx.npy", "valid_idx.npy", "test_idx.npy", "meta.json", "edge_types.npy", "edge_weights.npy",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *path = ref_path(dir, names[i]);
        unlink(path);
        free(path);
    }
    assert_int_equal(rmdir(dir), 0);
}

static ref_graph made_graph(const char *kind)
{
    char dir[] = "/tmp/gs_reference_XXXXXX";
    assert_non_null(mkdtemp(dir));
    ref_graph_make(kind, dir, 3);
    ref_graph g = ref_graph_read(dir);
    remove_dir(dir);
    return g;
}

/* Central differences of the loss for `elements` or so of each parameter. */
static void check_gradient(const char *model, size_t layers, const char *act, const ref_graph *g, size_t elements)
{
    const bool side_by_side = strcmp(model, "mixed") == 0; /* in the last layer too */
    const size_t heads = strncmp(model, "gat", 3) == 0 || (side_by_side && g->classes % 2 == 0) ? 2 : 1;
    ref_network n = ref_network_new(model, layers, 6, heads, 3, act, g);
    ref_network_init(&n, 11);
    ref_network_backward(&n, g);
    const double h = 1e-6;
    for (size_t i = 0; i < n.weight.count; i++) {
        ref_tensor *t = &n.weight.tensor[i];
        const size_t stride = ref_tensor_size(t) / elements + 1;
        for (size_t k = 0; !t->fixed && k < ref_tensor_size(t); k += stride) {
            const double w = t->value[k];
            t->value[k] = w + h;
            const double above = ref_network_loss(&n, g);
            t->value[k] = w - h;
            const double below = ref_network_loss(&n, g);
            t->value[k] = w;
            const double got = n.gradient.tensor[i].value[k], want = (above - below) / (2.0 * h);
            if (!(fabs(got - want) <= 3e-8 * (1.0 + fabs(want))))
                fail_msg("%s, %zu layers, %s: %s[%zu]: %.12g, expected %.12g", model, layers, act, t->name, k, got,
                         want);
        }
    }
    ref_network_free(&n);
}

static void test_backward__agrees_with_finite_differences(void **state)
{
    (void)state;
    static const char *const kinds[] = {"rough", "tiny", "hub", "csr", "typed"};
    static const char *const models[] = {"gcn", "sage", "sage_max", "gin", "appnp", "commnet", "gat",
                                         "gatv2", "ggcn", "rgcn", "ggnn", "mixed", "gates", "walk", "sage_lstm",
                                         "rgcn_bases", "rows", "norms", "columns", "steps", "functions",
                                         "picks", "tables"};
    static const char *const acts[] = {"relu", "elu", "tanh"};
    for (size_t i = 0; i < 5; i++) {
        ref_graph g = made_graph(kinds[i]);
        for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
            if (i == 1 || i == 4 || m < 2)
                check_gradient(models[m], 1 + (i + m) % 3, acts[m % 3], &g, i == 1 ? 4 : getenv("GS_TEST_ALL") ? 2 : 1);
        ref_graph_free(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gcn__small_graph_by_hand),
        cmocka_unit_test(test_sage__small_graph_by_hand),
        cmocka_unit_test(test_gin__small_graph_by_hand),
        cmocka_unit_test(test_commnet__small_graph_by_hand),
        cmocka_unit_test(test_appnp__small_graph_by_hand),
        cmocka_unit_test(test_gat__small_graph_by_hand),
        cmocka_unit_test(test_gatv2__small_graph_by_hand),
        cmocka_unit_test(test_ggcn__small_graph_by_hand),
        cmocka_unit_test(test_rgcn__small_graph_by_hand),
        cmocka_unit_test(test_rgcn_bases__small_graph_by_hand),
        cmocka_unit_test(test_ggnn__small_graph_by_hand),
        cmocka_unit_test(test_sage_lstm__small_graph_by_hand),
        cmocka_unit_test(test_mixed__small_graph_by_hand),
        cmocka_unit_test(test_backward__agrees_with_finite_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
