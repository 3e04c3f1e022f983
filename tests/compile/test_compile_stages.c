/* test_compile_stages.c - which arrays, loads and stores a compiled pass has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "cases.h"
#include "compile/compile_internal.h"

static gs_row_sum rows_of(const gs_stage *s, uint32_t sum)
{
    gs_row_sum rows;
    assert_true(gs_sum_of_rows(&rows, s, sum));
    return rows;
}

/* "load W W; store W; sum_in W self" of one stage: the wide things it moves. */
static void summarise(const gs_program *p, const gs_stage *s, char *out, size_t cap)
{
    size_t used = 0;
    out[0] = 0;
#define SAY(...) used += (size_t)snprintf(out + used, cap - used, __VA_ARGS__)
    for (uint32_t i = 0; i < s->sums; i++) {
        const gs_row_sum rows = rows_of(s, i);
        SAY("%s %u%s%s; ", s->direction == 0 ? "sum_in" : "sum_out", p->array[rows.array].width,
            rows.scale != GS_NONE ? " scaled" : "", s->sum[i].self ? " self" : "");
    }
    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind == GS_REG_LOAD && s->reg[r].width > 1)
            SAY("load %u; ", s->reg[r].width);
    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind == GS_REG_TEMP && s->reg[r].array != GS_NONE)
            SAY("store %u; ", s->reg[r].width);
    for (uint32_t i = 0; i < s->instrs; i++)
        if (gs_op_classof(s->instr[i].op) == GS_CLASS_REDUCE)
            SAY("grad %s; ", p->param[s->instr[i].dst].name);
#undef SAY
}

static void check_stages(const test_case *t, const char *pass, const char *const *want)
{
    gs_program *p = gs_program_new();
    uint32_t i = 0;

    gs_assert_ok(compile_case(p, t, pass));
    for (; want[i] != NULL; i++) {
        char got[512];
        assert_true(i < p->stages);
        summarise(p, &p->stage[i], got, sizeof(got));
        if (strcmp(got, want[i]) != 0) {
            gs_program_print(p, stderr);
            fail_msg("stage %u: got \"%s\", want \"%s\"", i, got, want[i]);
        }
    }
    assert_int_equal(p->stages, i);
    gs_program_free(p);
}

static void test_stages__gcn_training_transform_first(void **state)
{
    static const char *const want[] = {
        "load 100; store 16; ",
        "sum_in 16 self; store 16; store 7; ",
        "sum_in 7 self; store 7; grad convs.1.bias; ",
        "sum_out 7 self; load 16; store 16; grad convs.1.lin.weight; grad convs.0.bias; ",
        "sum_out 16 self; load 100; grad convs.0.lin.weight; ",
        NULL,
    };
    test_case t = {.model = "gcn", .layers = 2, .in = 100, .hidden = 16, .classes = 7, .dropout = 0.5f};
    (void)state;
    check_stages(&t, "train", want);
    t.no_move = true; /* the text is transform first */
    check_stages(&t, "train", want);
}

static void test_stages__gcn_with_loops_loads_the_own_row(void **state)
{
    static const char *const want[] = {
        "load 100; store 16; ",
        "sum_in 16; load 16; store 16; store 7; ",
        "sum_in 7; load 7; store 7; grad convs.1.bias; ",
        "sum_out 7; load 16; load 7; store 16; grad convs.1.lin.weight; grad convs.0.bias; ",
        "sum_out 16; load 100; load 16; grad convs.0.lin.weight; ",
        NULL,
    };
    const test_case t = {.model = "gcn", .layers = 2, .in = 100, .hidden = 16, .classes = 7, .self_loops = true};
    (void)state;
    check_stages(&t, "train", want);
}

static void test_stages__gcn_training_aggregate_first(void **state)
{
    /* 8 < 64: the first layer sums features (scaled, each by a number that is stored), and
     * its weight needs no edge pass backward at all. The hidden rows are cheaper to
     * do again from the 8 sums than to store. */
    static const char *const want[] = {
        "store 1; ",
        "sum_in 8 scaled self; store 8; store 5; ",
        "sum_in 5 self; store 5; grad convs.1.bias; ",
        "sum_out 5 self; load 8; grad convs.1.lin.weight; grad convs.0.bias; grad convs.0.lin.weight; ",
        NULL,
    };
    /* With so many edges that 4 bytes for each are more than a copy. */
    static const char *const copied[] = {
        "load 8; store 8; ",
        "sum_in 8 self; store 8; store 5; ",
        "sum_in 5 self; store 5; grad convs.1.bias; ",
        "sum_out 5 self; load 8; grad convs.1.lin.weight; grad convs.0.bias; grad convs.0.lin.weight; ",
        NULL,
    };
    test_case t = {.model = "gcn", .layers = 2, .in = 8, .hidden = 64, .classes = 5, .dropout = 0.5f};
    (void)state;
    check_stages(&t, "train", want);
    t.edges_per_vertex = 40;
    check_stages(&t, "train", copied);
}

static void test_stages__sage_reads_raw_features_in_the_edge_pass(void **state)
{
    static const char *const want[] = {"sum_in 48; load 48; store 64; ", "sum_in 64; load 64; store 64; ", NULL};
    test_case t = {.model = "sage", .layers = 2, .in = 48, .hidden = 64, .classes = 64};
    (void)state;
    check_stages(&t, "predict", want);
    t.no_move = true; /* the text is aggregate first */
    check_stages(&t, "predict", want);
}

/* 48 columns are the features' alone. */
static void check_no_copy(const gs_program *p)
{
    bool summed = false;
    for (uint32_t s = 0; s < p->stages; s++) {
        for (uint32_t i = 0; i < p->stage[s].sums; i++) {
            const gs_array *const a = &p->array[rows_of(&p->stage[s], i).array];
            summed = summed || a->width == 48;
            assert_true(a->width != 48 || a->store_id >= 0);
        }
        for (uint32_t r = 0; r < p->stage[s].regs && p->stage[s].sums == 0; r++)
            assert_true(p->stage[s].reg[r].kind != GS_REG_TEMP || p->stage[s].reg[r].array == GS_NONE ||
                        p->stage[s].reg[r].width != 48);
    }
    assert_true(summed);
}

/* Not in any pass of the models whose first layer sums features, computed once or in every epoch. */
static void test_stages__half_features_have_no_float32_copy(void **state)
{
    static const char *const models[] = {"gcn", "sage", "gin"};
    (void)state;
    for (uint32_t k = 0; k < 24; k++) {
        const test_case t = {.model = models[k % 3], .layers = 3, .in = 48, .hidden = 64, .classes = 7,
                             .feature_type = k / 3 % 2 == 0 ? GS_BF16 : GS_F16, .hoist = k / 6 % 2 == 0,
                             .self_loops = k / 12 == 0, .edges_per_vertex = 40};
        gs_program *p = gs_program_new();
        gs_assert_ok(compile_case(p, &t, "train"));
        gs_assert_ok(compile_case(p, &t, "eval"));
        check_no_copy(p);
        gs_program_free(p);
    }
}

/* Rounded is what vertex programs alone read (here the hoisted sums and the second hidden layer), and never what an
 * edge does. */
static void test_stages__what_edges_do_not_read_is_rounded(void **state)
{
    const test_case t = {
        .model = "gcn", .layers = 3, .in = 20, .hidden = 24, .classes = 7, .hoist = true, .rounded = true};
    gs_program *p = gs_program_new();
    uint32_t rounded = 0;
    (void)state;
    gs_assert_ok(compile_case(p, &t, "train"));
    gs_assert_ok(compile_case(p, &t, "eval"));
    gs_assert_ok(compile_case(p, &t, "predict"));
    for (uint32_t a = 0; a < p->arrays; a++) {
        bool of_edges = p->array[a].store_id >= 0 || a == p->logits;
        for (uint32_t s = 0; s < p->stages; s++)
            for (uint32_t i = 0; i < p->stage[s].sums; i++)
                of_edges = of_edges || rows_of(&p->stage[s], i).array == a || rows_of(&p->stage[s], i).scale == a;
        rounded += p->array[a].dtype == GS_BF16;
        if (p->array[a].store_id < 0)
            assert_int_equal(p->array[a].dtype, of_edges ? GS_F32 : GS_BF16);
    }
    assert_true(rounded >= 2);
    gs_program_free(p);
}

/* The instruction of stage `s` that makes register `r`; NULL where it is loaded or summed. */
static const gs_instr *maker_of(const gs_stage *s, uint32_t r)
{
    for (uint32_t i = 0; i < s->instrs; i++)
        if (s->instr[i].dst == r && gs_op_classof(s->instr[i].op) != GS_CLASS_REDUCE)
            return &s->instr[i];
    return NULL;
}

/* Is one register the other times, or over, a number a vertex? Then a later stage has either from the other. */
static bool is_scaled_from(const gs_stage *s, uint32_t scaled, uint32_t from)
{
    const gs_instr *n = maker_of(s, scaled);
    if (n == NULL || (n->op != GS_OP_MUL && n->op != GS_OP_DIV) || n->a.kind != GS_FROM_REG || n->b.kind != GS_FROM_REG)
        return false;
    return (n->a.index == from && s->reg[n->b.index].width == 1) ||
           (n->b.index == from && s->reg[n->a.index].width == 1 && n->op == GS_OP_MUL);
}

/* Rounded arrays of the pass that a stage stores beside the float32 array they are, but for a factor a vertex. */
static uint32_t rounded_copies(const gs_program *p)
{
    uint32_t copies = 0;
    for (uint32_t t = 0; t < p->stages; t++) {
        const gs_stage *s = &p->stage[t];
        for (uint32_t i = 0; i < s->instrs; i++) {
            const uint32_t value = s->instr[i].a.index;
            if (s->instr[i].op != GS_OP_ROUND)
                continue;
            for (uint32_t r = 0; r < s->regs; r++)
                copies += s->reg[r].kind == GS_REG_TEMP && s->reg[r].array != GS_NONE && s->reg[r].dtype == GS_F32 &&
                          s->reg[r].width > 1 && (is_scaled_from(s, r, value) || is_scaled_from(s, value, r));
        }
    }
    return copies;
}

/* The gradient of the logits (GraphSAGE: over the degree) is stored in float32 for edges. What else needs it reads
 * that: rounded copies are the same bytes, written and read, and would be less exact. Other values are rounded. */
static void test_stages__no_rounded_copy_of_what_stands_for_edges(void **state)
{
    static const char *const models[] = {"sage", "gat"};
    (void)state;
    for (int m = 0; m < 2; m++) {
        const test_case t = {.model = models[m], .layers = 1u + (uint32_t)m, .in = 100, .hidden = 16, .classes = 16,
                             .rounded = true};
        gs_program *p = gs_program_new();
        uint32_t rounded = 0;
        gs_assert_ok(compile_case(p, &t, "train"));
        for (uint32_t a = 0; a < p->arrays; a++)
            rounded += p->array[a].dtype == GS_BF16;
        if (rounded_copies(p) > 0 || rounded == 0) {
            gs_program_print(p, stderr);
            fail_msg("%s: %u rounded copies of float32 arrays, %u rounded arrays", t.model, rounded_copies(p), rounded);
        }
        gs_program_free(p);
    }
}

static void test_stages__sage_training_transform_first(void **state)
{
    /* The gradient over the degree is stored for the edges; later stages multiply it back. */
    static const char *const want[] = {
        "load 100; store 16; store 16; ",
        "sum_in 16; load 16; store 16; store 7; store 7; ",
        "sum_in 7; load 7; store 7; grad convs.1.lin_l.bias; ",
        "sum_out 7; load 16; load 7; store 16; "
        "grad convs.1.lin_r.weight; grad convs.1.lin_l.weight; grad convs.0.lin_l.bias; ",
        "sum_out 16; load 100; load 16; grad convs.0.lin_r.weight; grad convs.0.lin_l.weight; ",
        NULL,
    };
    const test_case t = {.model = "sage", .layers = 2, .in = 100, .hidden = 16, .classes = 7, .dropout = 0.5f};
    (void)state;
    check_stages(&t, "train", want);
}

static void test_stages__what_needs_no_parameter_is_computed_once(void **state)
{
    /* The mean of the neighbours' features; then no pass over the edges in layer 1, forward or backward. */
    static const char *const want[] = {
        "sum_in 100; store 100; ",
        "load 100; load 100; store 16; store 7; store 7; ",
        "sum_in 7; load 7; store 7; grad convs.1.lin_l.bias; ",
        "sum_out 7; load 100; load 100; load 16; load 7; grad convs.1.lin_r.weight; grad convs.1.lin_l.weight; "
        "grad convs.0.lin_r.weight; grad convs.0.lin_l.bias; grad convs.0.lin_l.weight; ",
        NULL,
    };
    test_case t = {.model = "sage", .layers = 2, .in = 100, .hidden = 16, .classes = 7, .hoist = true};
    gs_program *p = gs_program_new();
    (void)state;
    check_stages(&t, "train", want);
    gs_assert_ok(compile_case(p, &t, "train"));
    gs_assert_ok(compile_case(p, &t, "eval")); /* finds the same array */
    assert_int_equal(p->passes, 3);
    assert_string_equal(p->pass[0].name, "setup");
    assert_int_equal(p->pass[0].stages, 1);
    assert_int_equal(p->stage[p->pass[2].first_stage].sums, 0);
    gs_program_free(p);
    p = gs_program_new(); /* a pass with one output alone */
    gs_assert_ok(compile_case(p, &t, "predict"));
    assert_int_equal(p->passes, 2);
    assert_string_equal(p->pass[0].name, "setup");
    gs_program_free(p);
    t.input_dropout = 0.5f; /* then the features are others in every epoch */
    p = gs_program_new();
    gs_assert_ok(compile_case(p, &t, "train"));
    assert_int_equal(gs_program_pass(p, "setup"), GS_NONE);
    gs_program_free(p);
}

/* A product commutes with a sum of weighted edges, too: the weighted sum of features is made once. */
static void test_stages__weighted_sums_are_computed_once(void **state)
{
    const test_case t = {
        .model = "gcn", .layers = 2, .in = 100, .hidden = 16, .classes = 7, .hoist = true, .edge_weights = true};
    gs_program *const p = gs_program_new();
    uint32_t widest[2] = {0, 0}, sums[2] = {0, 0};
    (void)state;
    gs_assert_ok(compile_case(p, &t, "train"));
    for (uint32_t k = 0; k < 2; k++) /* "setup", "train" */
        for (uint32_t i = 0; i < p->pass[k].stages; i++) {
            const gs_stage *const s = &p->stage[p->pass[k].first_stage + i];
            for (uint32_t j = 0; j < s->sums; j++, sums[k]++)
                widest[k] = GS_MAX(widest[k], s->reg[s->sum[j].reg].width);
        }
    assert_int_equal(widest[0], 100);
    assert_int_equal(sums[1], 2); /* of layer 2, forward and backward */
    assert_int_equal(widest[1], 7);
    gs_program_free(p);
}

static void test_stages__attention_keeps_one_number_a_head(void **state)
{
    /* Forward: one pass over the edges, which also adds up what the scores' gradient by destination is made of: the
     * rows, and the number 1, times the slope of the score. Backward: one pass by source, and of the softmax only the
     * log-sum-exp is read. Where the score is no sum of numbers, its gradient has rows, and a pass. Vertices add up
     * columns of products: a score's two with parameters, in three stages, three with the gradient, and one again. */
    static const uint32_t widths[] = {12, 12, 2};
    const test_case t = {.model = "gat", .layers = 1, .in = 10, .classes = 6, .heads = 2, .dropout = 0.5f},
                    rows = {.model = "gatv2", .layers = 1, .in = 10, .classes = 6, .heads = 2};
    gs_program *p = gs_program_new(), *const other = gs_program_new();
    uint32_t passes = 0, attends = 0, folds = 0;
    (void)state;
    gs_assert_ok(compile_case(p, &t, "train"));
    for (uint32_t s = 0; s < p->stages; s++) {
        passes += p->stage[s].sums > 0;
        for (uint32_t i = 0; i < p->stage[s].instrs; i++) {
            folds += p->stage[s].instr[i].op == GS_OP_FOLD;
            assert_true(p->stage[s].instr[i].op != GS_OP_ROWSUM);
        }
        for (uint32_t i = 0; i < p->stage[s].sums; i++)
            if (p->stage[s].sum[i].kind == GS_SUM_ATTEND) {
                assert_true(attends < GS_ARRAY_LEN(widths));
                assert_int_equal(p->stage[s].reg[p->stage[s].sum[i].reg].width, widths[attends++]);
                assert_int_equal(p->stage[s].reg[p->stage[s].sum[i].lse].width, 2);
            }
    }
    assert_int_equal(passes, 2);
    assert_int_equal(attends, 3);
    assert_int_equal(folds, 10);
    gs_program_free(p);
    gs_assert_ok(compile_case(other, &rows, "train"));
    passes = 0;
    for (uint32_t s = 0; s < other->stages; s++)
        passes += other->stage[s].sums > 0;
    assert_int_equal(passes, 3);
    gs_program_free(other);
}

static void test_stages__attention_gathers_a_gradient_once(void **state)
{
    /* By source, an edge needs its target's gradient, once, and three numbers a head: its score's part, the softmax's
     * normaliser, and what is taken from all scores' gradients. GATv2's score has rows of the target in place of the
     * first. An edge that may be dropped knows its ends. */
    static const char *const models[] = {"gat", "gatv2"};
    (void)state;
    for (size_t m = 0; m < 2 * GS_ARRAY_LEN(models); m++) {
        const test_case t = {.model = models[m / 2], .layers = 2, .in = 10, .hidden = 8, .classes = 6, .heads = 2,
                             .dropout = m % 2 == 0 ? 0.0f : 0.5f};
        gs_program *p = gs_program_new();
        uint32_t passes = 0;
        gs_assert_ok(compile_case(p, &t, "train"));
        for (uint32_t s = 0; s < p->stages; s++) {
            uint32_t wide = 0, heads = 0;
            for (uint32_t r = 0; r < p->stage[s].edge_regs; r++) {
                wide += p->stage[s].edge_reg[r].kind == GS_EDGE_OPERAND && p->stage[s].edge_reg[r].width > 2;
                heads += p->stage[s].edge_reg[r].kind == GS_EDGE_OPERAND && p->stage[s].edge_reg[r].width == 2;
            }
            if (p->stage[s].direction == 1 && p->stage[s].sums > 0) {
                assert_int_equal(wide, 1 + m / 2);
                assert_int_equal(heads, 3 - m / 2);
            }
            passes += p->stage[s].direction == 1 && p->stage[s].sums > 0;
        }
        assert_int_equal(passes, 2);
        gs_program_free(p);
    }
}

typedef struct typed_use {
    uint32_t widest;        /* array that the pass or the setup makes */
    uint32_t split, picked; /* sums by type of rows wider than a number; values of edges by type, likewise */
} typed_use;

static typed_use typed_use_of(const test_case *t)
{
    gs_program *p = gs_program_new();
    typed_use u = {0, 0, 0};
    gs_assert_ok(compile_case(p, t, "train"));
    for (uint32_t a = 0; a < p->arrays; a++)
        u.widest = p->array[a].store_id < 0 && p->array[a].width > u.widest ? p->array[a].width : u.widest;
    for (uint32_t s = 0; s < p->stages; s++) {
        gs_row_sum rows;
        for (uint32_t i = 0; i < p->stage[s].sums; i++)
            u.split += gs_sum_of_rows(&rows, &p->stage[s], i) && rows.types == GS_TYPES_OF_SUM &&
                       p->array[rows.array].width > 1;
        for (uint32_t r = 0; r < p->stage[s].edge_regs; r++)
            u.picked += p->stage[s].edge_reg[r].typed && p->stage[s].edge_reg[r].width > 1 &&
                        !gs_edge_reg_only_rows(&p->stage[s], r);
    }
    gs_program_free(p);
    return u;
}

static void check_typed(const test_case *t, uint32_t widest, uint32_t split, uint32_t picked)
{
    const typed_use u = typed_use_of(t);
    assert_int_equal(u.widest, widest);
    assert_int_equal(u.split, split);
    assert_int_equal(u.picked, picked);
}

/* 128 -> 64 -> 16 with 3 types. */
static void test_stages__products_by_type_come_first_where_that_is_less(void **state)
{
    static const char *const models[] = {"rgcn", "rgcn_bases"};
    (void)state;
    for (int m = 0; m < 2; m++) {
        const test_case t = {.model = models[m], .layers = 2, .in = 128, .hidden = 64, .classes = 16,
                             .edge_types = TEST_TYPES, .bases = m == 1 ? 2 : 0, .hoist = true, .edges_per_vertex = 10};
        test_case other = t;
        check_typed(&t, TEST_TYPES * 128, 1, 1); /* layer 0's sums once, layer 1's products first */
        other.lean = true;
        check_typed(&other, TEST_TYPES * 64, 0, 2); /* both layers' products first */
        other.no_move = true;
        check_typed(&other, TEST_TYPES * 128, 2, 0);
        other = t;
        other.classes = 500; /* products are wider than what is summed */
        check_typed(&other, TEST_TYPES * 128, 2, 0);
    }
}

static void test_stages__edge_programs_are_shared_or_not(void **state)
{
    const char *text = "layer t(h[a]) -> [b]:\n"
                       "  param w[b, a]\n"
                       "  x = h @ w'\n"
                       "  gate = sigmoid(u.x - v.x)\n"
                       "  return sum(gate * u.x) / (1 + sum(gate))\n";
    test_case t = {.model = model_text(*state, text), .layers = 1, .in = 4, .classes = 3};
    for (int k = 0; k < 2; k++) {
        gs_program *p = gs_program_new();
        uint32_t passes = 0;
        t.no_fuse = k == 1;
        gs_assert_ok(compile_case(p, &t, "predict"));
        for (uint32_t s = 0; s < p->stages; s++)
            passes += p->stage[s].sums > 0;
        assert_int_equal(passes, k == 0 ? 1 : 2);
        gs_program_free(p);
    }
}

static void test_stages__evaluation_is_forward_only(void **state)
{
    static const char *const want[] = {"load 100; store 16; ", "sum_in 16 self; store 7; ", "sum_in 7 self; ", NULL};
    const test_case t = {.model = "gcn", .layers = 2, .in = 100, .hidden = 16, .classes = 7, .dropout = 0.5f};
    gs_program *p = gs_program_new();
    (void)state;
    check_stages(&t, "eval", want);
    gs_assert_ok(compile_case(p, &t, "eval"));
    assert_int_equal(p->stage[2].instr[p->stage[2].instrs - 1].op, GS_OP_XENT);
    assert_int_equal(p->logits, GS_NONE);
    for (uint32_t s = 0; s < p->stages; s++)
        for (uint32_t i = 0; i < p->stage[s].instrs; i++)
            assert_int_not_equal(p->stage[s].instr[i].op, GS_OP_DROPOUT);
    gs_program_free(p);
}

static void test_stages__the_metrics_are_counted_once(void **state)
{
    (void)state;
    for (uint32_t layers = 1; layers <= 4; layers++) {
        const test_case t = {.model = "sage", .layers = layers, .in = 20, .hidden = 16, .classes = 50, .dropout = 0.5f};
        gs_program *p = gs_program_new();
        uint32_t losses = 0;
        gs_assert_ok(compile_case(p, &t, "train"));
        for (uint32_t s = 0; s < p->stages; s++)
            for (uint32_t i = 0; i < p->stage[s].instrs; i++)
                losses += gs_op_classof(p->stage[s].instr[i].op) == GS_CLASS_LOSS;
        assert_int_equal(losses, 1);
        gs_program_free(p);
    }
}

static void test_stages__passes_share_store_arrays_and_parameters_only(void **state)
{
    const test_case t = {.model = "gcn", .layers = 2, .in = 10, .hidden = 16, .classes = 7, .dropout = 0.5f};
    gs_program *p = gs_program_new();
    uint32_t made = 0, of_store = 0;
    double dense = 0, edge = 0;
    (void)state;
    gs_assert_ok(compile_case(p, &t, "train"));
    gs_assert_ok(compile_case(p, &t, "eval"));
    gs_assert_ok(compile_case(p, &t, "predict"));
    assert_int_equal(p->passes, 3);
    assert_int_equal(p->params, 4);
    assert_string_equal(p->param[0].name, "convs.0.lin.weight");
    assert_int_equal(p->param[0].rows, 16);
    assert_int_equal(p->param[0].cols, 10);
    assert_int_equal(p->param[0].initial.rule, GS_INITIAL_GLOROT);
    assert_string_equal(p->param[1].name, "convs.0.bias");
    assert_int_equal(p->param[1].initial.rule, GS_INITIAL_FILL);
    for (uint32_t i = 0; i < p->arrays; i++) {
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(p->array[i].name, p->array[j].name);
        made += p->array[i].store_id < 0;
        of_store += p->array[i].store_id >= 0;
    }
    assert_int_equal(of_store, 5); /* features, in_degree, input_id, labels, split */
    assert_true(made > 5);
    assert_string_equal(p->array[p->logits].name, "predict.logits");
    gs_assert_ok(gs_program_check(p));
    const gs_pass *const eval = &p->pass[gs_program_pass(p, "eval")];
    for (uint32_t s = eval->first_stage; s < eval->first_stage + eval->stages; s++) {
        double d, e;
        gs_stage_flops(p, &p->stage[s], 1000, 8000, &d, &e);
        dense += d;
        edge += e;
    }
    gs_assert_close(dense, 2.0 * 1000 * (16 * 10 + 7 * 16), 1e-12);
    const gs_row_sum second = rows_of(&p->stage[p->pass[1].first_stage + 1], 0);
    gs_assert_close(edge, 9000.0 * (p->array[second.array].width + 7.0), 1e-12);
    gs_assert_fails(compile_case(p, &t, "eval"), GS_EINVAL, "the pass 'eval' is there already");
    gs_program_free(p);
}

static void test_stages__both_directions_and_many_sums_are_spread(void **state)
{
    const char *text = "layer t(h[a]) -> [b]:\n"
                       "  param w[b, a]\n"
                       "  x = h @ w'\n"
                       "  return sum(u.x) + sum(exp(u.x)) + sum(tanh(u.x)) + sum(relu(u.x)) + sum(sigmoid(u.x)) +"
                       " sum(elu(u.x))\n";
    const test_case t = {.model = model_text(*state, text), .layers = 1, .in = 4, .hidden = 4, .classes = 3};
    gs_program *p = gs_program_new();
    uint32_t sums = 0;
    gs_assert_ok(compile_case(p, &t, "train"));
    for (uint32_t s = 0; s < p->stages; s++) {
        assert_true(p->stage[s].sums <= GS_STAGE_SUMS);
        if (p->stage[s].direction == 0)
            sums += p->stage[s].sums;
    }
    assert_int_equal(sums, 6);
    gs_program_free(p);
}

static void test_stages__compiling_is_fast_and_repeatable(void **state)
{
    const test_case t = {.model = "sage", .layers = 8, .in = 64, .hidden = 32, .classes = 10, .dropout = 0.5f};
    char *text[2];
    size_t bytes[2];
    (void)state;
    for (int k = 0; k < 2; k++) {
        gs_program *p = gs_program_new();
        FILE *f = open_memstream(&text[k], &bytes[k]);
        gs_assert_ok(compile_case(p, &t, "train"));
        gs_program_print(p, f);
        fclose(f);
        gs_program_free(p);
    }
    assert_string_equal(text[0], text[1]);
    free(text[0]);
    free(text[1]);
}

/* What was decided: which values are stored, at which stage each output is, what each stage does. */
static void assert_same_cut(const gs_cut *a, const gs_cut *b, uint32_t outputs)
{
    assert_int_equal(a->cost, b->cost);
    assert_int_equal(a->stages, b->stages);
    assert_int_equal(a->out.count, b->out.count);
    assert_memory_equal(a->out.value, b->out.value, a->out.count * sizeof(*a->out.value));
    assert_memory_equal(a->keep.stored, b->keep.stored, a->nodes * sizeof(*a->keep.stored));
    assert_memory_equal(a->when.place, b->when.place, outputs * sizeof(*a->when.place));
}

/* Its cost is that, by all that it depends on: asked before others of the same graph, and after them. */
static void assert_same_costs(const gs_ir *ir, const gs_compile_options *apart, gs_cuts *cuts)
{
    for (uint32_t k = 0; k < 8; k++) {
        gs_compile_options o = *apart;
        gs_cut *c = NULL;
        uint64_t cost = 0;

        o.edges_per_vertex = k % 4 == 1 ? 2 : o.edges_per_vertex;
        o.store_logits = k % 4 == 2;
        gs_assert_ok(gs_compile__cut(&c, ir, &o, k % 4 != 3));
        o.cuts = cuts;
        gs_assert_ok(gs_compile__cut_cost(&cost, ir, &o, k % 4 != 3));
        assert_int_equal(cost, c->cost);
        gs_compile__cut_free(c);
    }
}

static uint64_t cost_by(const gs_ir *ir, const gs_compile_options *o)
{
    gs_cut *c = NULL;
    gs_assert_ok(gs_compile__cut(&c, ir, o, true));
    const uint64_t cost = c->cost;
    gs_compile__cut_free(c);
    return cost;
}

/* The search ended where no single choice made otherwise is cheaper, each cut anew from what cuts.known says was found:
 * stages of outputs, then for each node whether it must not be stored. */
static void test_stages__no_other_choice_is_cheaper(void **state)
{
    static const char *const models[] = {"gcn", "sage", "gat", "gin", "ggcn"};
    (void)state;

    for (uint32_t k = 0; k < 2 * GS_ARRAY_LEN(models); k++) {
        const test_case t = {.model = models[k / 2], .layers = 2, .in = 24, .hidden = 8, .classes = 5, .dropout = 0.5f,
                             .recompute = k % 2 != 0};
        gs_cuts cuts = {0};
        const gs_compile_options o = {.recompute = t.recompute, .rest_width = 1, .edges_per_vertex = 8, .cuts = &cuts};
        gs_ir *ir = NULL;
        gs_cut *c = NULL;
        uint32_t tried = 0;

        gs_assert_ok(build_case(&ir, &t, "train"));
        gs_assert_ok(gs_compile__cut(&c, ir, &o, true));
        for (uint32_t way = 0; way < cuts.next; way++) {
            uint32_t *const place = cuts.known[way].found;
            bool *const forbidden = (bool *)(place + gs_ir_outputs(ir));
            for (uint32_t v = 0; v < c->nodes; v++) {
                const bool was = forbidden[v];
                forbidden[v] = true;
                assert_true(was || cost_by(ir, &o) >= c->cost);
                tried += !was && c->keep.stored[v] && !c->keep.must_store[v];
                forbidden[v] = was;
            }
            for (uint32_t i = 0; i < gs_ir_outputs(ir); i++) {
                const gs_output *const out = gs_ir_output(ir, i);
                const uint32_t was = place[i], first = c->when.level[out->node];
                const bool may = out->kind == GS_OUTPUT_GRAD && gs_node_inputs(gs_ir_node(ir, out->node)) > 1 &&
                                 cuts.next == 1;
                for (place[i] = first; may && place[i] <= GS_MIN(first + 3, c->stages); place[i]++, tried++)
                    assert_true(cost_by(ir, &o) >= c->cost);
                place[i] = was;
            }
        }
        assert_true(tried > 0);
        gs_compile__cut_free(c);
        gs_cuts_drop(&cuts);
        gs_ir_free(ir);
    }
}

/* Behind other graphs, whose answers stand beside its own, each graph is cut as by a search; asked again, by none. */
static void test_stages__a_graph_that_was_cut_before_is_cut_the_same_way(void **state)
{
    static const char *const models[] = {"gcn", "sage", "gat", "gin", "ggcn"};
    static const char *const passes[] = {"train", "eval"};
    gs_cuts cuts = {0};
    (void)state;

    for (int again = 0; again < 2; again++) {
        const uint32_t known = cuts.next;
        for (uint32_t k = 0; k < 8 * GS_ARRAY_LEN(models); k++) {
            const test_case t = {.model = models[k / 8], .layers = 2, .in = 24, .hidden = 8 << (k & 1), .classes = 5,
                                 .dropout = 0.5f, .recompute = (k & 2) != 0};
            const gs_compile_options apart = {.recompute = t.recompute, .rest_width = 1, .edges_per_vertex = 8};
            gs_compile_options with = apart;
            gs_cut *searched = NULL, *found = NULL;
            gs_ir *ir = NULL;

            with.cuts = &cuts;
            gs_assert_ok(build_case(&ir, &t, passes[k >> 2 & 1]));
            gs_assert_ok(gs_compile__cut(&searched, ir, &apart, true));
            gs_assert_ok(gs_compile__cut(&found, ir, &with, true));
            assert_same_cut(searched, found, gs_ir_outputs(ir));
            if (!t.recompute && !again)
                assert_same_costs(ir, &apart, &cuts);
            gs_compile__cut_free(searched);
            gs_compile__cut_free(found);
            gs_ir_free(ir);
        }
        assert_true(again ? cuts.next == known : cuts.next > 0);
    }
    gs_cuts_drop(&cuts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages__no_other_choice_is_cheaper),
        cmocka_unit_test(test_stages__gcn_training_transform_first),
        cmocka_unit_test(test_stages__gcn_with_loops_loads_the_own_row),
        cmocka_unit_test(test_stages__gcn_training_aggregate_first),
        cmocka_unit_test(test_stages__sage_reads_raw_features_in_the_edge_pass),
        cmocka_unit_test(test_stages__half_features_have_no_float32_copy),
        cmocka_unit_test(test_stages__what_edges_do_not_read_is_rounded),
        cmocka_unit_test(test_stages__no_rounded_copy_of_what_stands_for_edges),
        cmocka_unit_test(test_stages__sage_training_transform_first),
        cmocka_unit_test(test_stages__what_needs_no_parameter_is_computed_once),
        cmocka_unit_test(test_stages__weighted_sums_are_computed_once),
        cmocka_unit_test(test_stages__attention_keeps_one_number_a_head),
        cmocka_unit_test(test_stages__attention_gathers_a_gradient_once),
        cmocka_unit_test(test_stages__products_by_type_come_first_where_that_is_less),
        cmocka_unit_test_setup_teardown(test_stages__edge_programs_are_shared_or_not, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test(test_stages__evaluation_is_forward_only),
        cmocka_unit_test(test_stages__the_metrics_are_counted_once),
        cmocka_unit_test(test_stages__passes_share_store_arrays_and_parameters_only),
        cmocka_unit_test_setup_teardown(test_stages__both_directions_and_many_sums_are_spread, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test(test_stages__compiling_is_fast_and_repeatable),
        cmocka_unit_test(test_stages__a_graph_that_was_cut_before_is_cut_the_same_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
