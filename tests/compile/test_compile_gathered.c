/* test_compile_gathered.c - what edges read is rounded where that is asked for, and nothing else. */
#include <stdio.h>
#include <string.h>

#include "cases.h"

/* Does the edge pass read the operand rows of this use by no type of edges, and not as a sequence? */
static bool is_plain(const gs_stage *s, const gs_array_use *u)
{
    gs_row_sum rows = {.types = GS_TYPES_NONE};
    if (u->sum != GS_NONE)
        return gs_sum_of_rows(&rows, s, u->sum) && rows.types == GS_TYPES_NONE;
    return !gs_stage_has_types(s) && !gs_sum_is_sequence(&s->sum[0]);
}

/* How edge passes use array `a`: at the operand ends of edges as they are, or in another way that is not at the target
 * ends. */
static void find_reads(const gs_program *p, uint32_t a, bool *gathered, bool *otherwise)
{
    *gathered = *otherwise = false;
    for (uint32_t s = 0; s < p->stages; s++)
        for (gs_array_use u = {0}; gs_stage_next_use(&p->stage[s], &u);) {
            const bool operand = u.role == GS_USE_OPERAND;
            if (u.array == a && (operand || u.role == GS_USE_SCALE || u.role == GS_USE_BACK))
                *(operand && is_plain(&p->stage[s], &u) ? gathered : otherwise) = true;
            if (u.array == a && u.role == GS_USE_TARGET && gs_sum_is_sequence(&p->stage[s].sum[0]))
                *otherwise = true;
        }
}

/* Rounded is what edges read at their operand ends, of activations and of gradients, and nothing that goes by types of
 * edges or in their order; rows that are read at the target ends alone, or of an odd number of columns, stay
 * float32. */
static void test_gathered__what_edges_gather_is_rounded_where_asked(void **state)
{
    static const struct {
        const char *model;
        uint32_t least; /* forward and gradients back, in both passes the forward ones */
    } models[] = {{"gcn", 5}, {"sage", 5}, {"gin", 5}, {"gat", 9}, {"sage_max", 8}, {"ggcn", 9}, {"rgcn", 0},
                  {"sage_lstm", 0}};
    (void)state;
    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
        const test_case t = {.model = models[m].model, .layers = 3, .in = 60, .hidden = 24, .classes = 8, .hoist = true,
                             .gathered = true,
                             .edge_types = strcmp(models[m].model, "rgcn") == 0 ? TEST_TYPES : 0};
        gs_program *p = gs_program_new();
        uint32_t rounded = 0;
        gs_assert_ok(compile_case(p, &t, "train"));
        gs_assert_ok(compile_case(p, &t, "predict"));
        for (uint32_t a = 0; a < p->arrays; a++) {
            bool gathered, otherwise;
            find_reads(p, a, &gathered, &otherwise);
            if (p->array[a].store_id >= 0)
                continue;
            const bool may = gathered && !otherwise && p->array[a].width % 2 == 0;
            if (p->array[a].dtype != (may ? GS_BF16 : GS_F32))
                fail_msg("%s: %s is %s", models[m].model, p->array[a].name, gs_dtype_name(p->array[a].dtype));
            rounded += may;
        }
        if (rounded < models[m].least)
            fail_msg("%s: %u arrays are rounded", models[m].model, rounded);
        gs_program_free(p);
    }
}

/* A derivative compares edges' values with the largest one: where those are no rounded rows, it is not rounded
 * either. */
static void test_gathered__the_largest_is_rounded_with_its_rows_alone(void **state)
{
    static const char *const of[] = {"u.x", "u.x * u.x", "u.x * v.x"};
    for (int k = 0; k < 3; k++) {
        char text[200];
        uint32_t largest = 0;
        snprintf(text, sizeof(text),
                 "layer t(h[a]) -> [b]:\n    param w[b, a], k[b, b]\n    x = h @ w'\n    return max(%s) @ k'\n",
                 of[k]);
        const test_case t = {.model = model_text(*state, text), .layers = 2, .in = 6, .hidden = 24, .classes = 16,
                             .gathered = true};
        gs_program *p = gs_program_new();
        gs_assert_ok(compile_case(p, &t, "train"));
        for (uint32_t a = 0; a < p->arrays; a++) {
            if (strstr(p->array[a].name, "max_in") == NULL)
                continue;
            largest++;
            if (p->array[a].dtype != (k < 2 ? GS_BF16 : GS_F32))
                fail_msg("%s: %s is %s", of[k], p->array[a].name, gs_dtype_name(p->array[a].dtype));
        }
        assert_true(largest > 0);
        gs_program_free(p);
    }
}

/* Of the stage's instructions, those of this operator. */
static uint32_t count(const gs_stage *s, gs_op op)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->instrs; i++)
        n += s->instr[i].op == op;
    return n;
}

/* A row is compared with the least of its neighbours' and its own: where it is computed again for that, it is rounded
 * again. What is stored is what its own stage goes on with. */
static void test_gathered__what_is_computed_again_is_rounded_again(void **state)
{
    static const char text[] = "layer t(h[a]) -> [b]:\n    param w[b, a], k[b, b]\n    x = h @ w'\n"
                               "    return min(u.x * u.x, self) @ k'\n";
    const test_case t = {.model = model_text(*state, text), .layers = 2, .in = 6, .hidden = 48, .classes = 16,
                         .gathered = true};
    uint32_t again = 0;
    gs_program *p = gs_program_new();
    gs_assert_ok(compile_case(p, &t, "train"));
    for (uint32_t k = 0; k < p->stages; k++) {
        const gs_stage *const s = &p->stage[k];
        assert_true(count(s, GS_OP_NEAREST) >= count(s, GS_OP_ROUND));
        again += count(s, GS_OP_NEAREST) - count(s, GS_OP_ROUND);
        for (uint32_t i = 1; i < s->instrs; i++)
            if (s->instr[i].op == GS_OP_ROUND) {
                assert_int_equal(s->instr[i - 1].op, GS_OP_NEAREST);
                assert_int_equal(s->instr[i].a.index, s->instr[i - 1].dst);
            }
    }
    assert_true(again > 0);
    gs_program_free(p);
}

/* Derivatives of a softmax are small differences of what is large: neither its scale nor what is subtracted is rounded,
 * but the gradients that its rows are multiplied by are. */
static void test_gathered__a_softmax_keeps_its_differences(void **state)
{
    static const char text[] = "layer t(h[a]) -> [b]:\n    param w[b, a], k[b, b]\n    x = h @ w'\n"
                               "    return sum(softmax(u.x + v.x) * u.x) @ k'\n";
    const test_case t = {.model = model_text(*state, text), .layers = 2, .in = 6, .hidden = 24, .classes = 16,
                         .gathered = true};
    uint32_t scales = 0, factors = 0;
    gs_program *p = gs_program_new();
    gs_assert_ok(compile_case(p, &t, "train"));
    for (uint32_t a = 0; a < p->arrays; a++) {
        const gs_array *const x = &p->array[a];
        const bool scale = strstr(x->name, "lse_in") != NULL || strstr(x->name, "train.sub") != NULL,
                   factor = strstr(x->name, "k.product") != NULL;
        if (scale || factor)
            assert_int_equal(x->dtype, scale ? GS_F32 : GS_BF16);
        scales += scale;
        factors += factor;
    }
    assert_true(scales >= 3 && factors >= 1);
    gs_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gathered__what_edges_gather_is_rounded_where_asked),
        cmocka_unit_test_setup_teardown(test_gathered__the_largest_is_rounded_with_its_rows_alone, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_gathered__what_is_computed_again_is_rounded_again, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_gathered__a_softmax_keeps_its_differences, gs_test_temp_setup,
                                        gs_test_temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
