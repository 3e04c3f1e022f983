/* The public header: its version is the project's, and what
 * an option may be. */
#include <math.h>
#include <string.h>

#include "support/support.h"

#include "base/alloc.h"
#include "base/option_table.h"
#include "base/size.h"
#include "gnnstream.h"
#include "sample/sampler.h"
#include "session/devices.h"
#include "train/control.h"
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
    REFUSED(norm, "instance", ".norm instance: must be one of none|batch|layer|layer_node");
    REFUSED(jk, "sum", ".jk sum: must be one of none|cat|max|lstm|last");
    REFUSED(device, NULL, ".device");
    REFUSED(keep, "first", ".keep first: must be one of best|last");
    REFUSED(keep_by, "error", ".keep_by error");
    REFUSED(schedule, "linear", ".schedule linear");
    REFUSED(schedule, NULL, ".schedule (none)");
    REFUSED(schedule_by, 1, ".schedule_by 1: must be above 0 and below 1");
    REFUSED(schedule_every, 3, ".schedule_every 3");
    REFUSED(clip_norm, -1, ".clip_norm -1: must be a number above 0, or 0 for none");
    REFUSED(io_timeout, NAN, ".io_timeout nan: must be seconds, or 0 for never");
    REFUSED(fanout, "3", ".fanout: is of batches");
    REFUSED(coverage, 3, ".coverage: is of batches");
    REFUSED(shuffle, "never", ".shuffle: is of batches");
}

/* Every field that a program can set has a row, and bytes of no other: the rest are pointers that are no options. */
static void options__every_field_has_a_row(void **state)
{
    static const size_t others[] = {
        offsetof(gs_train_options, on_epoch), offsetof(gs_train_options, context), offsetof(gs_train_options, stop),
        offsetof(gs_train_options, warn),     offsetof(gs_train_options, on_open),
    };
    static const size_t bytes[] = {
        [GS_OPTION_FLAG] = sizeof(bool),      [GS_OPTION_COUNT] = sizeof(uint32_t), [GS_OPTION_LONG] = 8,
        [GS_OPTION_SIZE] = 8,                 [GS_OPTION_REAL] = sizeof(double),    [GS_OPTION_ABOVE] = sizeof(double),
        [GS_OPTION_TIME] = sizeof(double),    [GS_OPTION_TEXT] = sizeof(char *),    [GS_OPTION_PATH] = sizeof(char *),
        [GS_OPTION_CHOICE] = sizeof(char *),
    };
    unsigned char rows[sizeof(gs_train_options)] = {0};
    unsigned gap = 0;

    (void)state;
    memset(rows, 1, sizeof(size_t)); /* .size */
    for (size_t k = 0; k < GS_ARRAY_LEN(others); k++)
        memset(rows + others[k], 1, sizeof(void *));
    for GS_OPTION_EACH (x)
        for (size_t b = 0; b < bytes[x->kind]; b++)
            assert_int_equal(rows[x->field + b]++, 0);
    for (size_t b = 0; b < sizeof(rows); b++) {
        gap = rows[b] != 0 ? 0 : gap + 1;
        assert_true(gap < sizeof(void *)); /* padding */
    }
}

/* Words stand in the order of the enumerators that are made of them. */
static void options__words_are_enumerators(void **state)
{
    gs_train_options o = good();

    (void)state;
#define CHOSEN(field, word, place)               \
    do {                                         \
        o.field = word;                          \
        assert_int_equal(gs_choice(&o, field), place); \
    } while (0)
    CHOSEN(schedule, "step", GS_RATES_STEP);
    CHOSEN(schedule, "cosine", GS_RATES_COSINE);
    CHOSEN(schedule, "plateau", GS_RATES_PLATEAU);
    CHOSEN(shuffle, NULL, GS_SHUFFLES_ALWAYS);
    CHOSEN(shuffle, "never", GS_SHUFFLES_NEVER);
    CHOSEN(shuffle, "adaptive", GS_SHUFFLES_ADAPTIVE);
    CHOSEN(sampler, NULL, 0);
    for (int k = 0; k < GS_SAMPLER_KINDS; k++)
        CHOSEN(sampler, gs_sampler_facts_of((gs_sampler_kind)k)->name, k + 1);
    CHOSEN(disk_to_device, "yes", GS_DIRECT_YES);
    CHOSEN(disk_to_device, "no", GS_DIRECT_NO);
    CHOSEN(task, NULL, -1);
    for (int t = 0; t < GS_TRAIN_TASK_COUNT; t++)
        CHOSEN(task, gs_train_task_name((gs_train_task)t), t);
    for (int j = 0; j < GS_JUDGES; j++)
        CHOSEN(keep_by, gs_judge_name((gs_judge)j), j);
    assert_int_equal(gs_word_place("saint-node|saint", "saint"), 1);
    assert_int_equal(gs_word_place("a|b", "a|b"), -1);
    assert_int_equal(gs_word_place("a|b", ""), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public__version_is_the_projects),
        cmocka_unit_test(options__defaults_are_the_contracts),
        cmocka_unit_test(options__a_run_has_strings_of_its_own),
        cmocka_unit_test(options__out_of_range_names_the_field),
        cmocka_unit_test(options__every_field_has_a_row),
        cmocka_unit_test(options__words_are_enumerators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
