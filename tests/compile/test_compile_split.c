/* test_compile_split.c - a program whose stages are split computes what it did, to the bit (in float64, by the
 * interpreter), and no vertex program but the one that stores sums stands behind an edge pass. */
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

/* The results of a run of pass "train" behind one of "setup" where there is one. */
static void check(const test_case *t, test_graph *g)
{
    gs_program *p[2] = {gs_program_new(), gs_program_new()};
    double **param[2];
    interp x[2];

    for (int k = 0; k < 2; k++) {
        gs_assert_ok(compile_case(p[k], t, "train"));
        if (k == 1)
            gs_assert_ok(gs_program_split(p[k]));
        gs_assert_ok(gs_program_check(p[k]));
        param[k] = params_new(p[k], 7);
        start(&x[k], p[k], g, param[k]);
        interp_run(&x[k], gs_program_pass(p[k], "train"));
    }
    assert_true(wholes(p[0], "train") > 0);
    assert_int_equal(wholes(p[1], "train"), 0);
    if (t->hoist)
        assert_int_equal(p[1]->pass[gs_program_pass(p[1], "setup")].stages,
                         p[0]->pass[gs_program_pass(p[0], "setup")].stages);
    assert_true(x[0].loss_sum == x[1].loss_sum);
    for (uint32_t i = 0; i < p[0]->params; i++)
        assert_memory_equal(x[0].grad[i], x[1].grad[i], gs_param_elements(&p[0]->param[i]) * sizeof(double));
    for (int k = 0; k < 2; k++) {
        interp_close(&x[k]);
        params_free(p[k], param[k]);
        gs_program_free(p[k]);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split__programs_compute_the_same),
        cmocka_unit_test(test_split__what_is_done_once_stays_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
