/* One layer on a graph in memory: its rows and gradients are those of a hand calculation, and its gradients those that
 * differences of its own forward pass in float64 sums say, for models of every kind of edge pass. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "base/size.h"
#include "gnnstream.h"
#include "support/support.h"

enum { GUARD = 64, N = 60, E = 300, IN = 6, OUT = 4, MOST_TENSORS = 16, MOST = 512 };

static float uniform(uint32_t i, uint32_t of)
{
    const uint32_t counter[4] = {i, of, 0, 0}, key[2] = {11, 12};
    uint32_t r[4];
    gs_philox4x32(r, counter, key);
    return 2 * gs_uniform_f32(r[0]) - 1;
}

static gs_train_options options_of(const char *model)
{
    gs_train_options o;
    gs_train_options_init(&o);
    o.model = model;
    o.threads = 2;
    o.heads = strcmp(model, "gat") == 0 || strcmp(model, "gatv2") == 0 ? 2 : 1;
    return o;
}

/* -- by hand ------------------------------------------------------------------------------ */

/* y_v = sum of W h_u over u -> v. Whole numbers, so that every sum is exact. */
static void test_layer__sums_and_gradients_by_hand(void **state)
{
    static const int64_t src[] = {0, 0, 2, 2, 1}, dst[] = {1, 2, 1, 1, 1}; /* one doubled, a loop; into 0 and 3 none */
    static const float x[4][2] = {{1, 2}, {3, -1}, {0, 4}, {5, 5}}, w[3][2] = {{1, 0}, {2, -1}, {0, 3}};
    static const float g[4][3] = {{1, 1, 1}, {1, 0, 2}, {-1, 3, 0}, {7, 7, 7}};
    const gs_layer_graph graph = {.vertices = 4, .edges = 5, .source = src, .destination = dst};
    const gs_train_options o = options_of("layer sums(h[in]) -> [out]:\n"
                                          "    param w[out, in]\n    x = h @ w'\n    return sum(u.x)\n");
    const float *const parameter[] = {w[0]};
    float y[4][3], want[4][3] = {{0}}, dx[4][2], want_dx[4][2] = {{0}}, dw[3][2], want_dw[3][2] = {{0}};
    float *const gradient[] = {dw[0]};
    gs_layer *l = NULL;
    gs_tensor_info t;
    (void)state;

    for (int e = 0; e < 5; e++)
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 2; k++) {
                want[dst[e]][i] += w[i][k] * x[src[e]][k];
                want_dx[src[e]][k] += w[i][k] * g[dst[e]][i];
                want_dw[i][k] += x[src[e]][k] * g[dst[e]][i];
            }
    gs_assert_ok(gs_layer_open(&l, &graph, 2, 3, &o));
    assert_int_equal(gs_layer_tensors(l), 1);
    gs_assert_ok(gs_layer_tensor(l, 0, &t));
    assert_string_equal(t.name, "w");
    assert_int_equal(t.count, 6);
    gs_assert_fails(gs_layer_backward(l, x[0], parameter, g[0], dx[0], gradient), GS_EINVAL, "no forward pass");
    gs_assert_ok(gs_layer_forward(l, x[0], parameter, false, 0, y[0]));
    assert_memory_equal(y, want, sizeof(y));
    gs_assert_fails(gs_layer_backward(l, x[0], parameter, g[0], dx[0], gradient), GS_EINVAL, "no forward pass");
    memset(y, 0, sizeof(y));
    gs_assert_ok(gs_layer_forward(l, x[0], parameter, true, 1, y[0]));
    assert_memory_equal(y, want, sizeof(y));
    for (int again = 0; again < 2; again++) { /* twice through the same pass, and what was there does not count */
        gs_assert_ok(gs_layer_backward(l, x[0], parameter, g[0], dx[0], gradient));
        assert_memory_equal(dx, want_dx, sizeof(dx));
        assert_memory_equal(dw, want_dw, sizeof(dw));
    }
    gs_assert_ok(gs_layer_backward(l, x[0], parameter, g[0], NULL, NULL));
    gs_layer_close(l);
}

/* -- by differences ----------------------------------------------------------------------- */

static struct {
    int64_t src[E], dst[E], type[E];
    float weight[E], x[N * IN], g[N * OUT], moved_x[N * IN], y[N * OUT + GUARD];
    float value[MOST_TENSORS][MOST], gradient[MOST_TENSORS][MOST], dx[N * IN];
    uint64_t count[MOST_TENSORS];
    uint32_t tensors;
} fixture;

static void make_graph(void)
{
    for (uint32_t e = 0; e < E; e++) {
        fixture.src[e] = (int64_t)((uniform(e, 1) + 1) / 2 * N);
        fixture.dst[e] = (int64_t)((uniform(e, 2) + 1) / 2 * (N - 5)); /* the last have no in-edges */
        fixture.type[e] = (int64_t)((uniform(e, 3) + 1) / 2 * 3);
        fixture.weight[e] = 1 + uniform(e, 4) / 2;
    }
    for (uint32_t i = 0; i < N * IN; i++)
        fixture.x[i] = uniform(i, 5);
    for (uint32_t i = 0; i < N * OUT; i++)
        fixture.g[i] = uniform(i, 6);
}

/* sum of g y, with everything moved by `step` along the directions of uniform(). Nothing is written behind y. */
static double moved(gs_layer *l, float step, bool train)
{
    static float value[MOST_TENSORS][MOST];
    float *const x = fixture.moved_x, *const y = fixture.y;
    const float *parameter[MOST_TENSORS];
    double sum = 0;

    for (uint32_t i = 0; i < N * IN; i++)
        x[i] = fixture.x[i] + step * uniform(i, 7);
    for (uint32_t k = 0; k < fixture.tensors; k++) {
        for (uint32_t i = 0; i < fixture.count[k]; i++)
            value[k][i] = fixture.value[k][i] + step * uniform(i, 8 + k);
        parameter[k] = value[k];
    }
    for (uint32_t i = 0; i < GUARD; i++)
        y[N * OUT + i] = -17;
    gs_assert_ok(gs_layer_forward(l, x, parameter, train, 1, y));
    for (uint32_t i = 0; i < GUARD; i++)
        assert_true(y[N * OUT + i] == -17);
    for (uint32_t i = 0; i < N * OUT; i++)
        sum += (double)fixture.g[i] * (double)y[i];
    return sum;
}

/* Of the last forward pass, whose x and y stand somewhere else, or nowhere, by now. */
static double along_gradient(gs_layer *l)
{
    const float *parameter[MOST_TENSORS];
    float *gradient[MOST_TENSORS];
    double sum = 0;

    for (uint32_t k = 0; k < fixture.tensors; k++) {
        parameter[k] = fixture.value[k];
        gradient[k] = fixture.gradient[k];
    }
    memset(fixture.moved_x, 0xff, sizeof(fixture.moved_x)); /* NaN */
    memset(fixture.y, 0xff, sizeof(fixture.y));
    gs_assert_ok(gs_layer_backward(l, fixture.x, parameter, fixture.g, fixture.dx, gradient));
    for (uint32_t i = 0; i < N * IN; i++)
        sum += (double)fixture.dx[i] * (double)uniform(i, 7);
    for (uint32_t k = 0; k < fixture.tensors; k++)
        for (uint32_t i = 0; i < fixture.count[k]; i++)
            sum += (double)fixture.gradient[k][i] * (double)uniform(i, 8 + k);
    return sum;
}

static void check_model(const char *model, bool typed, bool weighted, double dropout)
{
    const gs_layer_graph graph = {.vertices = N, .edges = E, .source = fixture.src, .destination = fixture.dst,
                                  .weight = weighted ? fixture.weight : NULL, .type = typed ? fixture.type : NULL,
                                  .edge_types = typed ? 3 : 0};
    gs_train_options o = options_of(model);
    const float step = 1.0f / 2048;
    gs_layer *l = NULL;

    o.dropout = dropout;
    o.seed = 1; /* with 0 a kink of gin lies within the step */
    gs_assert_ok(gs_layer_open(&l, &graph, IN, OUT, &o));
    fixture.tensors = gs_layer_tensors(l);
    assert_true(fixture.tensors <= MOST_TENSORS);
    for (uint32_t k = 0; k < fixture.tensors; k++) {
        gs_tensor_info t;
        gs_assert_ok(gs_layer_tensor(l, k, &t));
        fixture.count[k] = t.count;
        assert_true(t.count <= MOST);
        gs_assert_ok(gs_layer_start(l, k, fixture.value[k], t.count));
        for (uint32_t i = 0; i < t.count; i++)
            fixture.value[k][i] += 0.05f * uniform(i, 40 + k); /* also where they start at 0 */
    }
    const double slope = (moved(l, step, true) - moved(l, -step, true)) / (2 * (double)step);
    const double kept = moved(l, 0, true), found = along_gradient(l);
    if (!(fabs(found - slope) <= 0.005 * (fabs(slope) + 2))) /* kinks and third derivatives within the step */
        fail_msg("%s, dropout %g: %.6f along the gradient, %.6f by differences", model, dropout, found, slope);
    if (dropout == 0)
        assert_true(fabs(kept - moved(l, 0, false)) <= 1e-4 * (fabs(kept) + 1));
    gs_layer_close(l);
}

static void test_layer__gradients_are_the_slopes_of_its_forward_pass(void **state)
{
    static const char *const models[] = {"gcn", "sage", "sage_max", "gat", "gatv2", "gin", "appnp", "commnet", "ggcn"};
    (void)state;
    make_graph();
    for (size_t i = 0; i < GS_ARRAY_LEN(models); i++)
        check_model(models[i], false, false, 0);
    check_model("gcn", false, true, 0);
    check_model("rgcn", true, false, 0);
    check_model("sage_lstm", false, false, 0);
    check_model("gat", false, false, 0.5); /* the same numbers are dropped on the way back */
    check_model("layer wide(h[in]) -> [out]:\n    param w[out, in]\n    s = sum(u.h * e.weight)\n"
                "    m = max(u.h)\n    return tanh(s @ w') + sigmoid(m) @ w'\n", false, true, 0);
}

/* -- what is refused ----------------------------------------------------------------------- */

static void test_layer__says_what_is_wrong(void **state)
{
    static const int64_t src[] = {0, 1}, dst[] = {1, 2}, type[] = {0, 2};
    const gs_layer_graph graph = {.vertices = 2, .edges = 2, .source = src, .destination = dst};
    const gs_layer_graph types = {.vertices = 3, .edges = 2, .source = src, .destination = dst, .type = type,
                                  .edge_types = 2};
    const gs_layer_graph fine = {.vertices = 3, .edges = 2, .source = src, .destination = dst};
    gs_train_options o = options_of("gcn");
    gs_layer *l = NULL;
    (void)state;

    gs_assert_fails(gs_layer_open(&l, &graph, 2, 3, &o), GS_EINVAL, "edge 1: vertex 2 is not one of the 2 vertices");
    gs_assert_fails(gs_layer_open(&l, &types, 2, 3, &o), GS_EINVAL, "edge 1: type 2 is none of the 2 types");
    gs_assert_fails(gs_layer_open(&l, &types, 0, 3, &o), GS_EINVAL, "in 0");
    o.device = "cuda:0,1";
    gs_assert_fails(gs_layer_open(&l, &fine, 2, 3, &o), GS_EUNSUPPORTED, ".device cuda:0,1: a layer by itself");
    o = options_of("layer b(h[in]) -> [out]:\n    param w[out, in]\n    x = h @ w'\n"
                   "    return batch_norm(sum(u.x), n)\n");
    gs_assert_fails(gs_layer_open(&l, &fine, 2, 3, &o), GS_EUNSUPPORTED, "batch_norm");
    assert_null(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer__sums_and_gradients_by_hand),
        cmocka_unit_test(test_layer__gradients_are_the_slopes_of_its_forward_pass),
        cmocka_unit_test(test_layer__says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
