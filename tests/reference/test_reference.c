/* test_reference.c - is the yardstick straight? Its loss, optimisers, rounding and files.
 *
 * Values worked out by hand, and file bytes written down here rather than by its own writers. The
 * models are in test_reference_models.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "reference.h"

static void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%.12g, expected %.12g within %.3g", got, want, tolerance);
}

/* Edges 0 -> 1, 0 -> 1 again, 1 -> 2, 2 -> 2, and vertex 3 alone; one feature.
 * All memory is static, so it is never freed. */
static ref_graph small_graph(void)
{
    static int64_t source[] = {0, 0, 1, 2}, target[] = {1, 1, 2, 2}, label[] = {0, 1, 1, -1};
    static double feature[] = {1.0, 2.0, 3.0, 4.0};
    static uint8_t split[] = {REF_TRAIN, REF_TRAIN, REF_TEST, REF_NO_SPLIT};
    return (ref_graph){.vertices = 4, .edges = 4, .width = 1, .classes = 2, .types = 1, .source = source,
                       .target = target, .feature = feature, .label = label, .split = split};
}

static void test_loss__two_training_vertices_by_hand(void **state)
{
    (void)state;
    ref_graph g = small_graph();
    ref_network n = ref_network_new("gcn", 1, 8, 1, 2, "relu", &g);
    n.weight.tensor[1].value[0] = 1.0; /* logits (1, 0) everywhere; labels 0 and 1 train */
    const double p = exp(1.0) / (exp(1.0) + 1.0);
    assert_near(ref_network_loss(&n, &g), -(log(p) + log(1.0 - p)) / 2.0, 1e-14);
    ref_network_free(&n);
}

static char *scratch_dir(void)
{
    char *dir = strdup("/tmp/gs_reference_XXXXXX");
    assert_non_null(mkdtemp(dir));
    return dir;
}

static void remove_dir(char *dir)
{
    static const char *const names[] = {
        "edges.npy", "labels.npy", "features.npy", "features_indptr.npy", "features_indices.npy", "features_data.npy",
        "train_idx.npy", "valid_idx.npy", "test_idx.npy", "meta.json", "w.safetensors", "a.npy",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *path = ref_path(dir, names[i]);
        unlink(path);
        free(path);
    }
    assert_int_equal(rmdir(dir), 0);
    free(dir);
}

/* One weight, gradient 2 each step. SGD: w - lr (g + wd w). Adam without decay: the
 * first step is lr g / (|g| + eps), and with a steady gradient so are the others. */
static void test_optimiser__steps_by_hand(void **state)
{
    (void)state;
    ref_graph g = small_graph();
    for (int adam = 0; adam < 2; adam++) {
        ref_network n = ref_network_new("gcn", 1, 8, 1, 2, "relu", &g);
        double *w = &n.weight.tensor[0].value[0];
        *w = 1.0;
        n.gradient.tensor[0].value[0] = 2.0;
        ref_optimiser o = ref_optimiser_new(adam ? "adam" : "sgd", 0.1, adam ? 0.0 : 0.5, &n);
        ref_optimiser_step(&o, &n);
        assert_near(*w, adam ? 1.0 - 0.1 * 2.0 / (2.0 + 1e-8) : 1.0 - 0.1 * (2.0 + 0.5 * 1.0), 1e-15);
        ref_optimiser_step(&o, &n);
        assert_near(*w, adam ? 1.0 - 2.0 * 0.1 * 2.0 / (2.0 + 1e-8) : 0.75 - 0.1 * (2.0 + 0.5 * 0.75), 1e-15);
        ref_optimiser_free(&o);
        ref_network_free(&n);
    }
}

/* Gradient 1, then -3, decay 0.1 from w = 2: worked through by hand (bc). */
static void test_optimiser__adam_with_decay_by_hand(void **state)
{
    (void)state;
    ref_graph g = small_graph();
    ref_network n = ref_network_new("gcn", 1, 8, 1, 2, "relu", &g);
    double *w = &n.weight.tensor[0].value[0], *d = &n.gradient.tensor[0].value[0];
    *w = 2.0;
    ref_optimiser o = ref_optimiser_new("adam", 0.5, 0.1, &n);
    *d = 1.0; /* with decay 1.2: the step is 0.5 * 1.2 / (1.2 + 1e-8) */
    ref_optimiser_step(&o, &n);
    assert_near(*w, 1.5, 1e-8);
    *d = -3.0; /* with decay -2.85: m = 0.108 - 0.285, v = 0.00143856 + 0.0081225 */
    ref_optimiser_step(&o, &n);
    assert_near(*w, 1.5 - 0.5 * (-0.177 / 0.19) / sqrt(0.00956106 / 0.001999), 1e-7);
    ref_optimiser_free(&o);
    ref_network_free(&n);
}

static void test_rounding__known_values(void **state)
{
    (void)state;
    const struct {
        float in, bf16, f16;
    } t[] = {
        {0.0f, 0.0f, 0.0f},
        {1.0f, 1.0f, 1.0f},
        {0x1.01p0f, 0x1.00p0f, 0x1.01p0f},           /* half way in bf16: to even */
        {0x1.03p0f, 0x1.04p0f, 0x1.03p0f},
        {0x1.002p0f, 1.0f, 1.0f},                    /* half way in f16: to even */
        {0x1.006p0f, 1.0f, 0x1.008p0f},
        {-0x1.fffp5f, -64.0f, -64.0f},
        {0x1.8p-25f, 0x1.8p-25f, 0x1p-24f},          /* f16: below the smallest subnormal */
        {0x1.8p-24f, 0x1.8p-24f, 0x1p-23f},          /* half way between subnormals 1 and 2 */
        {3.14159274f, 3.140625f, 3.140625f},
    };
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        assert_near(ref_round_bf16(t[i].in), t[i].bf16, 0.0);
        assert_near(ref_round_f16(t[i].in), t[i].f16, 0.0);
    }
}

static void test_safetensors__bytes_written_down(void **state)
{
    (void)state;
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},\"b\":{\"dtype\":\"F32\",\"shape\":[2],"
                                 "\"data_offsets\":[0,8]},\"w\": {\"shape\": [1, 2], \"dtype\": \"F64\", "
                                 "\"data_offsets\": [8, 24]}}";
    const float b[2] = {1.5f, -2.0f};
    const double w[2] = {0.1, 1e300};
    const uint64_t length = sizeof(header) - 1;
    char *dir = scratch_dir(), *path = ref_path(dir, "w.safetensors");
    FILE *f = ref_create(path);
    fwrite(&length, 8, 1, f);
    fwrite(header, 1, length, f);
    fwrite(b, 1, sizeof(b), f);
    fwrite(w, 1, sizeof(w), f);
    ref_close(f, path);
    ref_tensors t = ref_tensors_read(path);
    assert_int_equal(t.count, 2);
    const ref_tensor *x = ref_tensors_find(&t, "w"), *y = ref_tensors_find(&t, "b");
    assert_true(x != NULL && y != NULL && x->dims == 2 && x->shape[1] == 2 && y->dims == 1 && y->shape[0] == 2);
    assert_true(x->value[0] == 0.1 && x->value[1] == 1e300 && y->value[0] == 1.5 && y->value[1] == -2.0);
    ref_tensors_write(path, &t, false);
    ref_tensors again = ref_tensors_read(path);
    assert_true(again.count == 2 && ref_tensors_find(&again, "w")->value[0] == 0.1);
    ref_tensors_free(&t);
    ref_tensors_free(&again);
    free(path);
    remove_dir(dir);
}

static void test_undirect__adds_the_reverse_of_each_edge_that_lacks_one(void **state)
{
    (void)state;
    ref_graph g = {.vertices = 4, .edges = 6};
    const int64_t s[] = {0, 0, 1, 2, 3, 3}, t[] = {1, 1, 2, 1, 3, 0};
    g.source = ref_alloc(6, sizeof(int64_t));
    g.target = ref_alloc(6, sizeof(int64_t));
    memcpy(g.source, s, sizeof(s));
    memcpy(g.target, t, sizeof(t));
    ref_graph_undirect(&g);
    const int64_t added[3][2] = {{1, 0}, {1, 0}, {0, 3}}; /* both copies of 0 -> 1 */
    assert_int_equal(g.edges, 9);
    for (size_t i = 0; i < 3; i++)
        assert_true(g.source[6 + i] == added[i][0] && g.target[6 + i] == added[i][1]);
    ref_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss__two_training_vertices_by_hand),
        cmocka_unit_test(test_optimiser__steps_by_hand),
        cmocka_unit_test(test_optimiser__adam_with_decay_by_hand),
        cmocka_unit_test(test_rounding__known_values),
        cmocka_unit_test(test_safetensors__bytes_written_down),
        cmocka_unit_test(test_undirect__adds_the_reverse_of_each_edge_that_lacks_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
