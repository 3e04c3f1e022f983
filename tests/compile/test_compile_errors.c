/* test_compile_errors.c - what cannot be compiled is said so, and nothing is left changed. */
#include <string.h>

#include "base/alloc.h"
#include "cases.h"

static const test_case base = {.model = "gcn", .layers = 2, .in = 6, .hidden = 5, .classes = 3, .self_loops = true,
                               .dropout = 0.5f};

static void check_text(const char *dir, const char *expression, gs_status st, const char *part)
{
    char text[512];
    test_case t = base;
    gs_program *p = gs_program_new();
    snprintf(text, sizeof(text), "layer t(h[a]) -> [b]:\n  param w[b, a]\n  x = h @ w'\n  return %s\n", expression);
    t.model = model_text(dir, text);
    gs_assert_fails(compile_case(p, &t, "train"), st, part);
    assert_int_equal(p->arrays + p->params + p->stages + p->passes, 0);
    gs_program_free(p);
}

static void test_errors__what_cannot_be_done_on_edges_is_named_with_its_place(void **state)
{
    check_text(*state, "sum(dot(concat(u.h, v.h), concat(v.h, u.h)) * u.x)", GS_EUNSUPPORTED,
               ".gnn:4:18: concat of values of both ends can only stand left of @");
}

static void test_errors__products_by_type_that_are_too_wide(void **state)
{
    const char *path =
        model_text(*state, "layer t(h[a]) -> [b]:\n  param W[types, a, b]\n  return sum(relu(u.h @ W[e.type]))\n");
    const test_case t = {.model = path, .layers = 1, .in = 6, .classes = 40, .edge_types = 2000};
    gs_program *p = gs_program_new();
    gs_assert_fails(compile_case(p, &t, "predict"), GS_EUNSUPPORTED,
                    ".gnn:3:23: a value of edges with a matrix for each type needs the products of all 2000 types, 40 "
                    "columns each");
    gs_program_free(p);
}

static void test_errors__results_that_are_no_vertex_value(void **state)
{
    const char *path = model_text(*state, "layer t(h[a]) -> [a]:\n  return h\n");
    test_case t = base;
    gs_program *p = gs_program_new();
    t.model = path;
    t.layers = 1;
    t.classes = t.in;
    gs_assert_fails(compile_case(p, &t, "predict"), GS_EUNSUPPORTED, "its result is its input");
    t.model = model_text(*state, "layer t(h[a]) -> [a]:\n  return h * (1 - 1)\n");
    gs_assert_fails(compile_case(p, &t, "predict"), GS_EUNSUPPORTED, "its result is a constant");
    gs_program_free(p);
}

static void test_errors__a_leaf_that_the_store_lacks_is_named(void **state)
{
    const gs_leaf features = {"features", ID_FEATURES, GS_F32, 6}, wide = {"features", ID_FEATURES, GS_F32, 7};
    const gs_model_config config = {.layers = 1, .in_width = 6, .hidden = 4, .classes = 3, .heads = 1};
    gs_compile_options o = {.pass = "predict", .leaf = &features, .leaves = 1, .store_logits = true};
    gs_program *p = gs_program_new();
    gs_model *m = NULL;
    (void)state;
    gs_assert_ok(gs_model_open(&m, "gcn"));
    for (int k = 0; k < 2; k++) {
        gs_ir *ir = NULL;
        gs_assert_ok(gs_model_build(&ir, m, &config));
        gs_assert_fails(gs_compile(p, ir, &o), k == 0 ? GS_ENOTFOUND : GS_EINVAL,
                        k == 0 ? "needs the vertex array 'in_degree'"
                               : "needs 'features' as f32[6], the store has f32[7]");
        assert_int_equal(p->arrays + p->params + p->stages + p->passes, 0);
        o.leaf = &wide;
    }
    gs_model_close(m);
    gs_program_free(p);
}

static void test_errors__passes_with_other_widths_do_not_mix(void **state)
{
    test_case t = base;
    gs_program *p = gs_program_new();
    uint32_t stages;
    (void)state;
    gs_assert_ok(compile_case(p, &t, "train"));
    stages = p->stages;
    t.hidden = 7;
    gs_assert_fails(compile_case(p, &t, "eval"), GS_EINVAL, "'convs.0.lin.weight' in different shapes");
    assert_int_equal(p->stages, stages);
    assert_int_equal(p->passes, 1);
    gs_assert_ok(gs_program_check(p));
    gs_program_free(p);
}

/* Every allocation fails once: an error, no crash, no leak, an unchanged program. */
static void fail_allocations(const test_case *t)
{
    const uint64_t live = gs_alloc_live_bytes();
    gs_status st = GS_ENOMEM;
    uint64_t n = 1;
    for (; st != GS_OK && n < 100000; n += 1 + n / 16) {
        gs_program *p = gs_program_new();
        gs_alloc_fail_nth(n);
        st = compile_case(p, t, "train");
        gs_alloc_fail_nth(0);
        if (st != GS_OK) {
            assert_int_equal(st, GS_ENOMEM);
            assert_int_equal(p->arrays + p->params + p->stages + p->passes, 0);
        }
        gs_program_free(p);
        assert_int_equal(gs_alloc_live_bytes(), live);
    }
    assert_int_equal(st, GS_OK);
    assert_true(n > 20);
}

static void test_errors__any_allocation_may_fail(void **state)
{
    const test_case gat = {.model = "gat", .layers = 1, .in = 6, .classes = 3, .heads = 2, .self_loops = true};
    const test_case hoisted = {.model = "sage_max", .layers = 2, .in = 6, .hidden = 5, .classes = 3, .hoist = true};
    (void)state;
    fail_allocations(&base);
    fail_allocations(&gat);
    fail_allocations(&hoisted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_errors__what_cannot_be_done_on_edges_is_named_with_its_place,
                                        gs_test_temp_setup, gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_errors__products_by_type_that_are_too_wide, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_errors__results_that_are_no_vertex_value, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test(test_errors__a_leaf_that_the_store_lacks_is_named),
        cmocka_unit_test(test_errors__passes_with_other_widths_do_not_mix),
        cmocka_unit_test(test_errors__any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
