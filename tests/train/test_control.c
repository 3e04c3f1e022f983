/* Rates against torch's schedulers, written out; which epoch's weights are kept, and when patience runs out. */
#include <math.h>

#include "base/size.h"
#include "support/support.h"
#include "train/control.h"

static gs_status open_for(gs_control *out, const gs_train_options *o, uint64_t valid)
{
    return gs_control_open(out, o, GS_TRAIN_TASK_CLASSIFY, valid, "s");
}

static gs_control open_control(const char *schedule, uint32_t epochs, uint32_t warmup, uint32_t every, uint64_t valid)
{
    gs_train_options o;
    gs_control c;

    gs_train_options_init(&o);
    o.lr = 0.5;
    o.epochs = epochs;
    o.schedule = schedule;
    o.warmup = warmup;
    o.schedule_every = every;
    o.schedule_by = 0.1;
    o.keep_by = valid > 0 ? "accuracy" : NULL;
    gs_assert_ok(open_for(&c, &o, valid));
    return c;
}

/* StepLR: lr * gamma ^ floor(t / step_size), t from 0. */
static void test_control__step_is_torch_s(void **state)
{
    const gs_control c = open_control("step", 100, 0, 7, 1);

    (void)state;
    for (uint32_t e = 1; e <= 100; e++)
        gs_assert_close(gs_control_rate(&c, e), 0.5 * pow(0.1, floor((e - 1) / 7.0)), 1e-12);
}

/* CosineAnnealingLR by its recursion, eta_min 0: eta' = eta * (1 + cos(pi t / T)) / (1 + cos(pi (t - 1) / T)); behind
 * LinearLR. */
static void test_control__cosine_is_torch_s_behind_a_warm_up(void **state)
{
    const double pi = acos(-1);
    const gs_control c = open_control("cosine", 60, 10, 0, 1);
    double rate = 0.5;

    (void)state;
    for (uint32_t e = 1; e <= 10; e++)
        gs_assert_close(gs_control_rate(&c, e), 0.05 * e, 1e-12);
    for (uint32_t t = 0; t < 50; t++) {
        if (t > 0)
            rate *= (1 + cos(pi * t / 50)) / (1 + cos(pi * (t - 1.0) / 50));
        gs_assert_close(gs_control_rate(&c, 11 + t), rate, 1e-9);
    }
    assert_true(gs_control_rate(&c, 70) == 0);
}

/* ReduceLROnPlateau(mode="max", factor=0.1, patience=2, threshold=0). */
static void test_control__plateau_is_torch_s(void **state)
{
    static const double value[] = {0.1, 0.5, 0.5, 0.4, 0.3, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6};
    static const double rate[] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.05, 0.05, 0.05, 0.05, 0.05, 0.005, 0.005, 0.005};
    gs_control c = open_control("plateau", 20, 0, 2, 1), by_loss = open_control("plateau", 20, 0, 2, 0);

    (void)state;
    for (uint32_t e = 1; e <= 13; e++) {
        gs_assert_close(gs_control_rate(&c, e), rate[e - 1], 1e-12);
        gs_assert_close(gs_control_rate(&by_loss, e), rate[e - 1], 1e-12);
        gs_control_note(&c, e, value[e - 1], 7);
        assert_false(gs_control_note(&by_loss, e, NAN, -value[e - 1]));
    }
}

static void test_control__keeps_the_first_of_the_best(void **state)
{
    static const double valid[] = {0.9, 0.7, NAN, 0.7, 0.6, 0.1}; /* the first is of weights that learned nothing */
    gs_control c = open_control("none", 20, 0, 0, 1);
    uint32_t better = 0;

    (void)state;
    c.patience = 4;
    for (uint32_t e = 1; e <= 6; e++) {
        better += gs_control_note(&c, e, valid[e - 1], 1);
        assert_int_equal(gs_control_is_over(&c, e), e == 6); /* 6 - 2 */
    }
    assert_int_equal(better, 1);
    assert_int_equal(c.state.best_epoch, 2);
    gs_control_forget(&c);
    assert_true(gs_control_note(&c, 7, 0.1, 1));
}

/* Which figure is judged, whether less is better, and which tasks have it. */
static void test_control__judges_by_what_it_is_told(void **state)
{
    static const struct {
        const char *name; /* NULL: the task's own */
        gs_train_task task;
        double worse, better;
    } cases[] = {{NULL, GS_TRAIN_TASK_CLASSIFY, 0.9, 0.8},         {NULL, GS_TRAIN_TASK_MULTILABEL, 0.9, 0.8},
                 {NULL, GS_TRAIN_TASK_REGRESS, 4, 3},              {"accuracy", GS_TRAIN_TASK_CLASSIFY, 0.1, 0.2},
                 {"balanced", GS_TRAIN_TASK_CLASSIFY, 0.1, 0.2},   {"f1", GS_TRAIN_TASK_MULTILABEL, 0.1, 0.2},
                 {"micro_f1", GS_TRAIN_TASK_MULTILABEL, 0.1, 0.2}, {"auc", GS_TRAIN_TASK_CLASSIFY, 0.1, 0.2},
                 {"ap", GS_TRAIN_TASK_MULTILABEL, 0.1, 0.2},       {"mse", GS_TRAIN_TASK_REGRESS, 4, 3},
                 {"mae", GS_TRAIN_TASK_REGRESS, 4, 3},             {"r2", GS_TRAIN_TASK_REGRESS, -1, 0}};
    gs_train_options o;
    gs_control c;

    (void)state;
    gs_train_options_init(&o);
    for (size_t k = 0; k < GS_ARRAY_LEN(cases); k++) {
        o.keep_by = cases[k].name;
        gs_assert_ok(gs_control_open(&c, &o, cases[k].task, 1, "s"));
        assert_false(gs_control_note(&c, 1, cases[k].better, 1));
        assert_true(gs_control_note(&c, 2, cases[k].worse, 1));
        assert_true(gs_control_note(&c, 3, cases[k].better, 1));
        assert_false(gs_control_note(&c, 4, cases[k].better, 1));
        assert_int_equal(c.state.best_epoch, 3);
    }
    o.keep_by = "mse";
    gs_assert_fails(gs_control_open(&c, &o, GS_TRAIN_TASK_CLASSIFY, 1, "s"), GS_EINVAL,
                    ".keep_by mse: is no figure of the task classify, which has loss|accuracy|balanced|f1|auc|ap");
    o.keep_by = "loss";
    gs_assert_fails(gs_control_open(&c, &o, GS_TRAIN_TASK_CLASSIFY, 0, "s"), GS_EINVAL, "s: .keep_by needs validation");
}

/* The elbow: a drop of a tenth of the largest, or none. */
static void test_control__shuffles_from_the_elbow_on(void **state)
{
    static const double loss[][7] = {{4, 3.5, 2.5, 1.9, 1.5, 1.39, 1.3}, /* drops 0.5, 1, 0.6, 0.4, 0.11, 0.09 */
                                     {2, 2.5, 1, 0.5, 0.4, 0.3, 0.2},
                                     {9, 8, 7, 6, 5, 4, 3}};
    static const uint32_t elbow[] = {7, 2, 0};
    (void)state;
    for (int k = 0; k < 3; k++) {
        gs_control c = open_control("none", 20, 0, 0, 1);
        assert_true(gs_control_shuffles(&c));
        gs_control_note_loss(&c, 1, loss[k][0]);
        assert_true(isnan(c.state.last_loss)); /* always: nothing is noted */
        c.shuffles = GS_SHUFFLES_NEVER;
        assert_false(gs_control_shuffles(&c));
        c.shuffles = GS_SHUFFLES_ADAPTIVE;
        for (uint32_t e = 1; e <= 7; e++) {
            assert_int_equal(gs_control_shuffles(&c), elbow[k] != 0 && e > elbow[k]);
            gs_control_note_loss(&c, e, loss[k][e - 1]);
        }
        assert_int_equal(c.state.elbow, elbow[k]);
        gs_control_note_loss(&c, 8, 0);
        assert_int_equal(c.state.elbow, elbow[k]);
        gs_control_forget(&c);
        assert_false(gs_control_shuffles(&c));
    }
}

static void test_control__refusals(void **state)
{
    gs_train_options o;
    gs_control c;

    (void)state;
    gs_train_options_init(&o);
    gs_assert_ok(gs_control_open(&c, &o, GS_TRAIN_TASK_CLASSIFY, 0, "s"));
    assert_false(c.keeps_best);
    gs_assert_ok(gs_control_open(&c, &o, GS_TRAIN_TASK_CLASSIFY, 1, "s"));
    assert_true(c.keeps_best);
    o.patience = 3;
    gs_assert_fails(open_for(&c, &o, 0), GS_EINVAL, "s: .patience needs validation vertices");
    o.keep = "best";
    gs_assert_fails(open_for(&c, &o, 0), GS_EINVAL, "s: .keep best needs validation vertices");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_control__step_is_torch_s),
        cmocka_unit_test(test_control__cosine_is_torch_s_behind_a_warm_up),
        cmocka_unit_test(test_control__plateau_is_torch_s),
        cmocka_unit_test(test_control__keeps_the_first_of_the_best),
        cmocka_unit_test(test_control__judges_by_what_it_is_told),
        cmocka_unit_test(test_control__shuffles_from_the_elbow_on),
        cmocka_unit_test(test_control__refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
