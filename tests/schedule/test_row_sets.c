/* Which rows a stage must run for, on a graph small enough to work out by hand. */
#include <stdlib.h>
#include <string.h>

#include "schedule/row_sets.h"
#include "schedule/row_sets.h"
#include "support/support.h"

#define ROWS 100u /* two intervals of 50 */

enum { FEATURES, Y, G, Z, ARRAYS };

/* Edges u -> v: 5 hears 3 and 41, 9 hears itself, 60 hears 5. */
static const uint32_t edge[][2] = {{3, 5}, {41, 5}, {9, 9}, {5, 60}};

struct fixture {
    gs_array array[ARRAYS];
    gs_reg reg[3][6];
    gs_instr instr[3][4];
    gs_edge_reg edge_reg[3][GS_ROW_SUM_REGS];
    gs_instr product[3][1];
    gs_stage stage[3];
    gs_pass pass;
    gs_program p;
    gs_chunk_table chunks;
    gs_granules g;
    uint64_t train[2], reported[2];
    uint32_t reaches;
};

/* The only sum of a stage. */
static void sum_rows(struct fixture *b, uint32_t s, uint32_t array, uint32_t scale, bool self)
{
    b->stage[s].sums = b->stage[s].edge_regs = b->stage[s].edge_instrs = 0;
    b->stage[s].edge_reg = b->edge_reg[s];
    b->stage[s].edge_instr = b->product[s];
    gs_stage_add_row_sum(&b->stage[s], &(gs_row_sum){.array = array, .scale = scale}, b->array[array].width, 0, self);
}

static void set_row(const struct fixture *b, uint64_t *bits, uint32_t row)
{
    bits[row / 50 * b->g.words] |= 1ull << (row % 50);
}

static bool has_row(const uint64_t *bits, uint32_t row) { return bits[row / 50] >> (row % 50) & 1; }

static gs_status reach(void *context, uint32_t direction, const uint64_t *targets, uint64_t *operands)
{
    struct fixture *b = context;
    b->reaches++;
    for (size_t e = 0; e < sizeof(edge) / sizeof(edge[0]); e++)
        if (has_row(targets, edge[e][direction == GS_BY_DEST ? 1 : 0]))
            set_row(b, operands, edge[e][direction == GS_BY_DEST ? 0 : 1]);
    return GS_OK;
}

/* y = F W; loss of relu(sum of y over in-edges); its gradient g summed over out-edges, times F: the gradient of W. */
static void make(struct fixture *b, gs_op last)
{
    memset(b, 0, sizeof(*b));
    for (uint32_t a = 0; a < ARRAYS; a++)
        b->array[a] = (gs_array){.dtype = GS_F32, .width = 4, .store_id = a == FEATURES ? 0 : -1};
    for (uint32_t s = 0; s < 3; s++)
        b->stage[s] = (gs_stage){.reg = b->reg[s], .instr = b->instr[s], .regs = 2, .instrs = 1};
    b->reg[0][0] = (gs_reg){GS_REG_LOAD, GS_F32, 4, FEATURES};
    b->reg[0][1] = (gs_reg){GS_REG_TEMP, GS_F32, 4, Y};
    b->instr[0][0] = (gs_instr){.op = GS_OP_MATMUL_T, .dst = 1, .a = {GS_FROM_REG, 0, 0}, .b = {GS_FROM_PARAM, 0, 0}};
    b->reg[1][0] = (gs_reg){GS_REG_SUM, GS_F32, 4, GS_NONE};
    b->reg[1][1] = (gs_reg){GS_REG_TEMP, GS_F32, 4, G};
    sum_rows(b, 1, Y, GS_NONE, false);
    b->instr[1][0] = (gs_instr){.op = GS_OP_XENT_GRAD, .dst = 1, .a = {GS_FROM_REG, 0, 0}};
    b->stage[2].direction = GS_BY_SOURCE;
    sum_rows(b, 2, G, GS_NONE, false);
    b->reg[2][0] = (gs_reg){GS_REG_SUM, GS_F32, 4, GS_NONE};
    b->reg[2][1] = (gs_reg){GS_REG_LOAD, GS_F32, 4, FEATURES};
    b->reg[2][2] = (gs_reg){GS_REG_TEMP, GS_F32, 4, GS_NONE};
    b->stage[2].regs = 3;
    b->stage[2].instrs = 2;
    b->instr[2][0] = (gs_instr){.op = last, .dst = 2, .a = {GS_FROM_REG, 0, 0}};
    b->instr[2][1] = (gs_instr){.op = GS_OP_OUTER, .a = {GS_FROM_REG, 2, 0}, .b = {GS_FROM_REG, 1, 0}};
    strcpy(b->pass.name, "train");
    b->pass.stages = 3;
    b->p = (gs_program){.arrays = ARRAYS, .stages = 3, .passes = 1, .array = b->array, .stage = b->stage,
                        .pass = &b->pass,
                        .logits = GS_NONE};
    b->chunks = (gs_chunk_table){.vertices = ROWS, .parts = 2, .interval_rows = 50};
    b->g = gs_granules_of(&b->chunks, 1);
    set_row(b, b->train, 5);
    set_row(b, b->reported, 5);
    set_row(b, b->reported, 9);
}

static void find(gs_row_sets *out, struct fixture *b)
{
    const uint64_t *const reported[] = {b->reported};
    gs_assert_ok(gs_row_sets_find(out, &(gs_row_sets_config){.program = &b->p, .chunks = &b->chunks, .granules = b->g,
                                                             .train = b->train, .reported = reported, .reach = reach,
                                                             .context = b}));
}

/* `rows` ends with ROWS. */
static void expect(const gs_row_sets *s, uint32_t set, const uint32_t *rows)
{
    uint64_t want[2] = {0, 0};
    assert_int_not_equal(set, GS_ALL_ROWS);
    for (; *rows < ROWS; rows++)
        want[*rows / 50] |= 1ull << (*rows % 50);
    assert_int_equal(s->bits[set][0], want[0]);
    assert_int_equal(s->bits[set][1], want[1]);
}

#define EXPECT(s, set, ...) expect(s, set, (const uint32_t[]){__VA_ARGS__, ROWS})

/* A row's number is read where the row is: at the neighbours, and for own rows at the vertices themselves. */
static void test_row_sets__of_what_rows_are_scaled_by(void **state)
{
    (void)state;
    for (int self = 0; self < 2; self++) {
        struct fixture b;
        gs_row_sets s;
        make(&b, GS_OP_RELU);
        sum_rows(&b, 1, FEATURES, Y, self == 1);
        find(&s, &b);
        EXPECT(&s, s.stage[1].rows, 5, 9);
        if (self == 0)
            EXPECT(&s, s.stage[0].rows, 3, 41, 9);
        else
            EXPECT(&s, s.stage[0].rows, 3, 41, 9, 5);
        gs_row_sets_drop(&s);
    }
}

static void test_row_sets__are_what_the_loss_sees(void **state)
{
    (void)state;
    struct fixture b;
    gs_row_sets s;
    make(&b, GS_OP_RELU);
    find(&s, &b);
    EXPECT(&s, s.stage[1].rows, 5, 9);     /* what is reported on */
    EXPECT(&s, s.stage[1].targets, 5, 9);
    assert_int_equal(s.stage[1].operands, GS_ALL_ROWS);
    EXPECT(&s, s.stage[0].rows, 3, 41, 9); /* what those two hear */
    EXPECT(&s, s.stage[2].operands, 5);    /* the gradient is 0 but at the training row */
    EXPECT(&s, s.stage[2].rows, 3, 41);    /* and what it heard */
    EXPECT(&s, s.stage[2].targets, 3, 41);
    EXPECT(&s, s.array[Y], 3, 41, 9);
    EXPECT(&s, s.array[G], 5);             /* of the rows that its stage runs for, the only one that is not 0 */
    assert_int_equal(b.reaches, 2);        /* in-neighbours of {5}, of {5, 9}: each once */
    gs_row_sets_drop(&s);
}

/* A sigmoid of 0 is not 0: then every row has a part in the gradient. */
static void test_row_sets__a_value_that_is_not_zero_needs_all(void **state)
{
    (void)state;
    struct fixture b;
    gs_row_sets s;
    make(&b, GS_OP_SIGMOID);
    find(&s, &b);
    assert_int_equal(s.stage[2].rows, GS_ALL_ROWS);
    EXPECT(&s, s.stage[2].operands, 5); /* though edges from other rows still add nothing */
    EXPECT(&s, s.stage[0].rows, 3, 41, 9);
    gs_row_sets_drop(&s);
}

/* Of the gradient, 0 but at two rows, what stands in the text's place of the relu: is it 0 elsewhere, too? */
static void expect_kept(bool kept, gs_instr last)
{
    struct fixture b;
    gs_row_sets s;
    make(&b, GS_OP_RELU);
    last.dst = 2;
    b.instr[2][0] = last;
    find(&s, &b);
    if (kept && gs_rows__unsafe(&b.p)) /* gaps are filled */
        assert_true(s.stage[2].rows != GS_ALL_ROWS && !has_row(s.bits[s.stage[2].rows], 42));
    else if (kept)
        EXPECT(&s, s.stage[2].rows, 3, 41);
    else
        assert_int_equal(s.stage[2].rows, GS_ALL_ROWS);
    gs_row_sets_drop(&s);
}

static void test_row_sets__know_which_functions_keep_zero(void **state)
{
    const gs_operand sum = {GS_FROM_REG, 0, 0}, features = {GS_FROM_REG, 1, 0}, zero = {GS_FROM_CONST, 0, 0},
                     one = {GS_FROM_CONST, 0, 1};
    (void)state;
    expect_kept(true, (gs_instr){.op = GS_OP_GELU, .a = sum});
    expect_kept(false, (gs_instr){.op = GS_OP_GELU_SLOPE, .a = sum}); /* 1/2 at 0 */
    expect_kept(true, (gs_instr){.op = GS_OP_SILU, .a = sum});
    expect_kept(true, (gs_instr){.op = GS_OP_ABS, .a = sum});
    expect_kept(true, (gs_instr){.op = GS_OP_POW, .a = sum, .alpha = 0.5f});
    expect_kept(false, (gs_instr){.op = GS_OP_POW, .a = sum, .alpha = 0});
    expect_kept(false, (gs_instr){.op = GS_OP_POW, .a = sum, .alpha = -2});
    expect_kept(true, (gs_instr){.op = GS_OP_DIV, .a = sum, .b = features});
    expect_kept(false, (gs_instr){.op = GS_OP_DIV, .a = features, .b = sum});
    expect_kept(true, (gs_instr){.op = GS_OP_LT, .a = zero, .b = sum});
    expect_kept(false, (gs_instr){.op = GS_OP_LT, .a = sum, .b = one});
    expect_kept(false, (gs_instr){.op = GS_OP_LE, .a = sum, .b = zero});
    expect_kept(false, (gs_instr){.op = GS_OP_EQ, .a = sum, .b = zero});
    expect_kept(true, (gs_instr){.op = GS_OP_NE, .a = sum, .b = zero});
    expect_kept(true, (gs_instr){.op = GS_OP_WHERE, .a = features, .b = sum, .c = zero});
    expect_kept(false, (gs_instr){.op = GS_OP_WHERE, .a = sum, .b = zero, .c = features});
}

/* A logarithm of a sum that lacks edges may be no number, so gaps are computed too: up to 1024 rows. */
static void test_row_sets__gaps_are_filled_where_partial_sums_are_unsafe(void **state)
{
    (void)state;
    struct fixture b;
    gs_row_sets s;
    make(&b, GS_OP_RELU);
    assert_false(gs_rows__unsafe(&b.p));
    make(&b, GS_OP_LOG);
    assert_true(gs_rows__unsafe(&b.p));
    find(&s, &b);
    EXPECT(&s, s.stage[1].rows, 5, 6, 7, 8, 9);
    gs_row_sets_drop(&s);
}

/* Stage 2 makes of what it loads of Y the result `first`(Y) times its sum, and 1 more; the sum is 0 but at 3 and 41. */
static void find_kept_factor(gs_row_sets *s, struct fixture *b, gs_op first, bool few_loads)
{
    const uint64_t *const reported[] = {b->reported};
    make(b, GS_OP_RELU);
    b->array[Z].result = true;
    b->reg[2][1] = (gs_reg){GS_REG_LOAD, GS_F32, 4, Y};
    b->reg[2][3] = (gs_reg){GS_REG_TEMP, GS_F32, 4, GS_NONE};
    b->reg[2][4] = (gs_reg){GS_REG_TEMP, GS_F32, 4, Z};
    b->stage[2].regs = 5;
    b->stage[2].instrs = 3;
    b->instr[2][0] = (gs_instr){.op = first, .dst = 2, .a = {GS_FROM_REG, 1, 0}};
    b->instr[2][1] = (gs_instr){.op = GS_OP_MUL, .dst = 3, .a = {GS_FROM_REG, 2, 0}, .b = {GS_FROM_REG, 0, 0}};
    b->instr[2][2] = (gs_instr){.op = GS_OP_ADD, .dst = 4, .a = {GS_FROM_REG, 3, 0}, .b = {GS_FROM_CONST, 0, 1}};
    gs_assert_ok(gs_row_sets_find(s, &(gs_row_sets_config){.program = &b->p, .chunks = &b->chunks, .granules = b->g,
                                                           .train = b->train, .reported = reported, .reach = reach,
                                                           .context = b, .few_loads = few_loads}));
}

/* A product needs its one side only where the other is not 0, unless 0 could become infinite on the way there. */
static void test_row_sets__of_factors_that_count_in_few_rows(void **state)
{
    (void)state;
    struct fixture b;
    gs_row_sets s;
    find_kept_factor(&s, &b, GS_OP_SIGMOID, true);
    assert_int_equal(s.stage[2].rows, GS_ALL_ROWS);
    EXPECT(&s, s.stage[0].rows, 3, 41, 9);
    gs_row_sets_drop(&s);
    find_kept_factor(&s, &b, GS_OP_SIGMOID, false);
    assert_int_equal(s.stage[0].rows, GS_ALL_ROWS);
    gs_row_sets_drop(&s);
    find_kept_factor(&s, &b, GS_OP_LOG, true);
    assert_int_equal(s.stage[0].rows, GS_ALL_ROWS);
    gs_row_sets_drop(&s);
}

/* Without rows to report on, a pass needs all. */
static void test_row_sets__a_pass_without_a_report_needs_all(void **state)
{
    (void)state;
    struct fixture b;
    gs_row_sets s;
    const uint64_t *const none[] = {NULL};
    make(&b, GS_OP_RELU);
    gs_assert_ok(gs_row_sets_find(&s, &(gs_row_sets_config){.program = &b.p, .chunks = &b.chunks, .granules = b.g,
                                                            .train = b.train, .reported = none, .reach = reach,
                                                            .context = &b}));
    for (int k = 0; k < 3; k++)
        assert_int_equal(s.stage[k].rows, GS_ALL_ROWS);
    gs_row_sets_drop(&s);
}

/* Runs are cut where at least GS_ROW_GAP rows lie between, and at intervals. */
static void test_row_runs__are_far_apart(void **state)
{
    (void)state;
    const gs_chunk_table t = {.vertices = 5000, .parts = 2, .interval_rows = 3000};
    const gs_granules g = gs_granules_of(&t, 1);
    uint64_t *bits = calloc(2 * g.words, 8), *sets[2] = {NULL, bits};
    const uint32_t rows[] = {186, 188, 1212, 2237, 2812, 3000 + 125, 3000 + 1000, 3000 + 1875};
    const gs_row_sets s = {.chunks = &t, .granules = g, .sets = 2, .bits = sets};
    gs_row_runs r;
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
        bits[rows[k] / 3000 * g.words + rows[k] % 3000 / 64] |= 1ull << (rows[k] % 3000 % 64);
    gs_assert_ok(gs_row_sets_runs(&r, &s, 1));
    assert_int_equal(r.first[1], 2); /* 189 to 1211 are 1023 rows, 1213 to 2236 are 1024 */
    assert_int_equal(r.run[0].first, 0); /* a short end has fewer than 187 rows */
    assert_int_equal(r.run[0].rows, 1213);
    assert_int_equal(r.run[1].first, 2237);
    assert_int_equal(r.run[1].rows, 2813 - 2237);
    assert_int_equal(r.first[2], 3);
    assert_int_equal(r.run[2].first, 125); /* 125 of 2000 are no short end, 124 are */
    assert_int_equal(r.run[2].rows, 1875);
    free(r.first);
    free(r.run);
    free(bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_sets__are_what_the_loss_sees),
        cmocka_unit_test(test_row_sets__of_what_rows_are_scaled_by),
        cmocka_unit_test(test_row_sets__a_value_that_is_not_zero_needs_all),
        cmocka_unit_test(test_row_sets__know_which_functions_keep_zero),
        cmocka_unit_test(test_row_sets__gaps_are_filled_where_partial_sums_are_unsafe),
        cmocka_unit_test(test_row_sets__of_factors_that_count_in_few_rows),
        cmocka_unit_test(test_row_sets__a_pass_without_a_report_needs_all),
        cmocka_unit_test(test_row_runs__are_far_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
