/* The public header: its version is the project's, and what
 * an option may be. */
#include <math.h>
#include <string.h>

#include "support/support.h"

#include "base/alloc.h"
#include "base/status.h"
#include "gnnstream.h"
#include "train/options.h"

static void public__version_is_the_projects(void **state)
{
    (void)state;
    assert_string_equal(gs_version(), PROJECT_VERSION);
    assert_string_equal(GS_VERSION, PROJECT_VERSION);
}

static gs_train_options good(void)
{
    gs_train_options o;
    gs_train_options_init(&o);
    o.model = "gcn";
    return o;
}

static void options__defaults_are_the_contracts(void **state)
{
    const gs_train_options o = good();

    (void)state;
    gs_assert_ok(gs_train_options_check(&o));
    assert_int_equal(o.layers, 2);
    assert_int_equal(o.hidden, 64);
    assert_int_equal(o.heads, 1);
    assert_string_equal(o.activation, "relu");
    assert_true(o.dropout == 0 && o.input_dropout == 0);
    assert_int_equal(o.epochs, 100);
    assert_string_equal(o.optimizer, "adam");
    assert_true(o.lr == 0.01 && o.weight_decay == 0);
    assert_int_equal(o.seed, 0);
    assert_string_equal(o.device, "cpu");
}

/* A run outlives its caller's strings. */
static void options__a_run_has_strings_of_its_own(void **state)
{
    char model[] = "gat", spill[] = "folder";
    gs_train_options o = good(), own;
    char *texts = NULL;

    (void)state;
    o.model = model;
    o.spill = spill;
    gs_assert_ok(gs_train_options_own(&own, &texts, &o));
    memset(model, 'x', 3);
    memset(spill, 'x', 6);
    assert_string_equal(own.model, "gat");
    assert_string_equal(own.spill, "folder");
    assert_string_equal(own.activation, "relu");
    assert_null(own.init);
    gs_free(texts);
}

#define REFUSED(field, bad, part)                                       \
    do {                                                                \
        gs_train_options o = good();                                    \
        o.field = bad;                                                  \
        gs_assert_fails(gs_train_options_check(&o), GS_EINVAL, part);   \
    } while (0)

static void options__out_of_range_names_the_field(void **state)
{
    (void)state;
    REFUSED(model, NULL, ".model");
    REFUSED(model, "", ".model");
    REFUSED(layers, 0, ".layers 0");
    REFUSED(layers, 1025, ".layers 1025");
    REFUSED(hidden, 0, ".hidden 0");
    REFUSED(activation, NULL, ".activation");
    REFUSED(dropout, 1, ".dropout 1");
    REFUSED(dropout, -0.1, ".dropout -0.1");
    REFUSED(dropout, NAN, ".dropout");
    REFUSED(input_dropout, 1.5, ".input_dropout 1.5");
    REFUSED(optimizer, "lion", ".optimizer lion");
    REFUSED(optimizer, NULL, ".optimizer");
    REFUSED(lr, 0, ".lr 0");
    REFUSED(lr, NAN, ".lr");
    REFUSED(lr, INFINITY, ".lr");
    REFUSED(weight_decay, -1, ".weight_decay -1");
    REFUSED(weight_decay, NAN, ".weight_decay");
    REFUSED(device, "cuda:", ".device cuda:");
    REFUSED(device, "cpu:0", ".device cpu:0");
    REFUSED(device, "cpu:17", ".device cpu:17");
    REFUSED(matmul, "f8", ".matmul f8");
    REFUSED(device, NULL, ".device");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public__version_is_the_projects),
        cmocka_unit_test(options__defaults_are_the_contracts),
        cmocka_unit_test(options__a_run_has_strings_of_its_own),
        cmocka_unit_test(options__out_of_range_names_the_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
