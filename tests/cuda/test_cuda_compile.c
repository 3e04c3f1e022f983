/* Models' kernels are taken by CUDA's own compiler, for sm_80 and sm_90. It needs no GPU; where it is not
 * installed, the test says so and is skipped. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cases.h"
#include "cuda/code.h"

static const gs_cuda_driver *compiler;
static size_t programs; /* so far */

/* For both, or the first program for the one, the second for the other, and so on. */
static void compile(const char *what, const char *text, bool both)
{
    static const int capability[][2] = {{8, 0}, {9, 0}};
    for (size_t i = both ? 0 : programs % 2; i < (both ? 2 : programs % 2 + 1); i++) {
        char *image = NULL;
        size_t bytes = 0;
        if (gs_cuda_compile(&image, &bytes, compiler, capability[i][0], capability[i][1], text) != GS_OK)
            fail_msg("%s for sm_%d%d: %s", what, capability[i][0], capability[i][1], gs_last_error());
        assert_true(bytes > 100);
        assert_memory_equal(image, "\177ELF", 4);
        gs_free(image);
    }
}

static void test_cuda_compile__fixed_kernels(void **state)
{
    (void)state;
    compile("fixed kernels", gs_cuda_fixed_text, gs_test_all()); /* for sm_90: cuda/instructions */
}

/* One of 18 programs, in turn, but where every case is asked for. */
static void compile_model(const char *what, const test_case *t, bool tf32)
{
    if (!gs_test_all() && programs++ % 18 != 0)
        return;
    gs_program *const p = gs_program_new();
    gs_cuda_code kernels;
    char *text = NULL;
    assert_non_null(p);
    gs_assert_ok(compile_case(p, t, "train"));
    gs_assert_ok(gs_cuda_write_code(&kernels, &text, p, tf32));
    gs_cuda_free_code(&kernels);
    compile(what, text, gs_test_all());
    free(text);
    gs_program_free(p);
}

static void test_cuda_compile__every_model(void **state)
{
    static const char *const models[] = {"gcn",     "sage", "sage_max", "gat",  "gatv2",      "gin",      "appnp",
                                         "commnet", "ggcn", "ggnn",     "rgcn", "rgcn_bases", "sage_lstm"};
    (void)state;
    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
        const bool heads = strncmp(models[m], "gat", 3) == 0;
        const test_case t = {.model = models[m], .layers = 2, .in = 602, .hidden = 64, .classes = 41,
                             .self_loops = true, .heads = heads ? 8 : 1, .edge_types = 4, .edges_per_vertex = 20,
                             .feature_type = GS_BF16};
        compile_model(models[m], &t, false);
    }
}

/* Features of either type, an odd number of columns too, summed as they are. */
static void test_cuda_compile__rows_of_half_width(void **state)
{
    static const char *const models[] = {"gcn", "sage", "gin"};
    (void)state;
    for (uint32_t k = 0; k < 6; k++) {
        const test_case t = {.model = models[k % 3], .layers = 2, .in = 48 + k / 3, .hidden = 64, .classes = 41,
                             .feature_type = k % 2 == 0 ? GS_F16 : GS_BF16, .edges_per_vertex = 20};
        compile_model(models[k % 3], &t, false);
    }
}

static void test_cuda_compile__texts_of_no_zoo(void **state)
{
    static const char *const texts[] = {"columns", "functions", "gates", "jumps", "mixed", "norms",
                                        "picks",   "rows",      "walk"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char path[512];
        const test_case t = {.model = path, .layers = 2, .in = 23, .hidden = 16, .classes = 8, .self_loops = true,
                             .heads = strcmp(texts[i], "mixed") == 0 ? 2 : 1,
                             .edge_types = 3, .edge_weights = true, .edges_per_vertex = 9, .feature_type = GS_F32};
        snprintf(path, sizeof(path), GS_TEST_TEXTS "/%s.gnn", texts[i]);
        compile_model(texts[i], &t, false);
    }
}

/* Products of edges by the matrix of their type. */
static void test_cuda_compile__batches_by_type(void **state)
{
    static const char *const models[] = {"rgcn", "ggnn", GS_TEST_TEXTS "/mixed.gnn"};
    static const uint32_t hidden[] = {16, 64, 100};
    (void)state;
    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
        const test_case t = {.model = models[m], .layers = 2, .in = 50, .hidden = hidden[m], .classes = 8,
                             .self_loops = true, .heads = m == 2 ? 2 : 1, .edge_types = 300, .edge_weights = true,
                             .edges_per_vertex = 9, .feature_type = GS_F32, .typed = true};
        compile_model(models[m], &t, false);
        compile_model(models[m], &t, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_compile__fixed_kernels),
        cmocka_unit_test(test_cuda_compile__every_model),
        cmocka_unit_test(test_cuda_compile__rows_of_half_width),
        cmocka_unit_test(test_cuda_compile__texts_of_no_zoo),
        cmocka_unit_test(test_cuda_compile__batches_by_type),
    };
    if (gs_cuda_compiler_open(&compiler) != GS_OK) {
        printf("skipped: %s\n", gs_last_error());
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
