/* test_compile_split.c - a program whose stages are split computes what it did, to the bit (in float64, by the
 * interpreter), and no vertex program but the one that stores sums stands behind an edge pass. So does one whose edge
 * passes are in parts, of which none has more of a row's width than its share. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"

static bool makes_gradients(const gs_stage *s)
{
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].kind == GS_SUM_OUTER || s->sum[i].kind == GS_SUM_LSTM_BACK)
            return true;
    return false;
}

/* Stages of a pass with an edge pass and more than copies of its sums behind it. */
static uint32_t wholes(const gs_program *p, const char *pass)
{
    const gs_pass *const q = &p->pass[gs_program_pass(p, pass)];
    uint32_t n = 0;

    for (uint32_t k = q->first_stage; k < q->first_stage + q->stages; k++) {
        const gs_stage *const s = &p->stage[k];
        bool copies = true;
        for (uint32_t i = 0; i < s->instrs; i++)
            copies = copies && s->instr[i].op == GS_OP_MUL && s->instr[i].b.kind == GS_FROM_CONST &&
                     s->instr[i].b.value == 1 && s->reg[s->instr[i].a.index].kind == GS_REG_SUM;
        n += s->sums > 0 && s->instrs > 0 && !copies && !makes_gradients(s);
    }
    return n;
}

/* Pass "train" of both, behind one of "setup" where there is one, has the same results. */
static void check_same(gs_program *const *p, test_graph *g)
{
    double **param[2];
    interp x[2];

    for (int k = 0; k < 2; k++) {
        gs_assert_ok(gs_program_check(p[k]));
        param[k] = params_new(p[k], 7);
        start(&x[k], p[k], g, param[k]);
        interp_run(&x[k], gs_program_pass(p[k], "train"));
    }
    assert_true(x[0].loss_sum == x[1].loss_sum);
    for (uint32_t i = 0; i < p[0]->params; i++)
        assert_memory_equal(x[0].grad[i], x[1].grad[i], gs_param_elements(&p[0]->param[i]) * sizeof(double));
    for (int k = 0; k < 2; k++) {
        interp_close(&x[k]);
        params_free(p[k], param[k]);
    }
}

static void compile_twice(gs_program **p, const test_case *t)
{
    for (int k = 0; k < 2; k++) {
        p[k] = gs_program_new();
        gs_assert_ok(compile_case(p[k], t, "train"));
    }
}

static void check(const test_case *t, test_graph *g)
{
    gs_program *p[2];

    compile_twice(p, t);
    gs_assert_ok(gs_program_split(p[1]));
    assert_true(wholes(p[0], "train") > 0);
    assert_int_equal(wholes(p[1], "train"), 0);
    if (t->hoist)
        assert_int_equal(p[1]->pass[gs_program_pass(p[1], "setup")].stages,
                         p[0]->pass[gs_program_pass(p[0], "setup")].stages);
    check_same(p, g);
    gs_program_free(p[0]);
    gs_program_free(p[1]);
}

/* Stages of the program that sum a part of the width: their number, in a row for each part; none is wider than its
 * share of `hidden`, and no other sums rows of the run that could be summed so. */
static uint32_t check_parts(const gs_program *p, uint32_t parts, uint32_t hidden)
{
    uint32_t n = 0;

    for (uint32_t s = 0; s < p->stages; s++) {
        const gs_stage *const stage = &p->stage[s];
        if (stage->alone == 0) {
            assert_true(gs_stage_parted_width(p, s) < parts);
            continue;
        }
        assert_int_equal(stage->alone, 1 + n++ % parts);
        for (uint32_t i = 0; i < stage->sums; i++)
            assert_in_range(stage->reg[stage->sum[i].reg].width, 1, (hidden + parts - 1) / parts + 3);
        for (gs_array_use u = {0}; gs_stage_next_use(stage, &u);)
            assert_in_range(p->array[u.array].width, 1, (hidden + parts - 1) / parts + 3);
    }
    return n;
}

/* `sums`: edge passes that can be in parts. */
static void check_widths(const test_case *t, test_graph *g, uint32_t parts, uint32_t sums)
{
    gs_program *p[2];

    compile_twice(p, t);
    bool *const takes = calloc(p[1]->stages, sizeof(*takes));
    assert_non_null(takes);
    for (uint32_t s = 0; s < p[1]->stages; s++)
        takes[s] = gs_stage_parted_width(p[1], s) >= parts;
    gs_assert_ok(gs_program_part_widths(p[1], parts, takes));
    assert_int_equal(check_parts(p[1], parts, t->hidden), sums * parts);
    check_same(p, g);
    free(takes);
    gs_program_free(p[0]);
    gs_program_free(p[1]);
}

static void test_split__programs_compute_the_same(void **state)
{
    static const char *const models[] = {"gcn", "sage",  "sage_max",  "gat", "gatv2",
                                         "gin", "appnp", "sage_lstm", "rgcn"};
    (void)state;
    for (size_t k = 0; k < sizeof(models) / sizeof(models[0]); k++) {
        const bool typed = strcmp(models[k], "rgcn") == 0;
        test_graph *const g = graph_new(40, 160, 6, 4, true, 11);
        const test_case t = {.model = models[k], .layers = 2, .in = 6, .hidden = 8, .classes = 4, .self_loops = true,
                             .heads = strncmp(models[k], "gat", 3) == 0 ? 2 : 1,
                             .edge_types = typed ? TEST_TYPES : 1, .edges_per_vertex = 4, .typed = typed};
        check(&t, g);
        graph_free(g);
    }
}

static void test_split__what_is_done_once_stays_whole(void **state)
{
    test_graph *const g = graph_new(40, 160, 6, 4, true, 11);
    (void)state;
    check(&(test_case){.model = "sage", .layers = 2, .in = 6, .hidden = 8, .classes = 4, .self_loops = true,
                       .edges_per_vertex = 4, .hoist = true}, g);
    graph_free(g);
}

/* Sums, scaled and weighted ones, means and maxima, and their gradients; hidden layers of widths that parts do not
 * divide. What attends, or goes over edges in order, stays whole. */
static void test_split__sums_in_parts_are_the_same(void **state)
{
    static const struct {
        const char *model;
        uint32_t sums;
    } models[] = {{"gcn", 2}, {"sage", 2}, {"gin", 2}, {"sage_max", 3}, {"gat", 0}, {"sage_lstm", 0}};
    static const uint32_t hidden[] = {5, 8, 23}, parts[] = {2, 3, 4};
    (void)state;
    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
        for (size_t k = 0; k < sizeof(hidden) / sizeof(hidden[0]); k++) {
            test_graph *const g = graph_new(40, 160, 6, 5, true, 11 + k);
            const test_case t = {.model = models[m].model, .layers = 2, .in = 6, .hidden = hidden[k], .classes = 5,
                                 .self_loops = true, .heads = 1, .edge_types = 1, .edges_per_vertex = 4,
                                 .edge_weights = k == 2, .hoist = k != 0};
            check_widths(&t, g, parts[k], models[m].sums);
            graph_free(g);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split__programs_compute_the_same),
        cmocka_unit_test(test_split__what_is_done_once_stays_whole),
        cmocka_unit_test(test_split__sums_in_parts_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
