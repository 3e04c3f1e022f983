/* Tasks of a plan of 100 rows, cut by hand to a batch of 37, whose stage runs for 25 and is whole for 12. */
#include "plan/bind.h"
#include "support/support.h"

enum { WIDTH = 3, HALVES = 5 };

static gs_reg reg[] = {{.kind = GS_REG_TEMP, .width = WIDTH, .array = 0},
                       {.kind = GS_REG_LOAD, .width = WIDTH, .array = 0},
                       {.kind = GS_REG_TEMP, .width = HALVES, .array = 1, .dtype = GS_BF16},
                       {.kind = GS_REG_TEMP, .width = WIDTH, .array = GS_NONE}};
static gs_stage stage = {.regs = 4, .reg = reg};
static gs_array array[] = {{.width = WIDTH, .dtype = GS_F32}, {.width = HALVES, .dtype = GS_BF16}};
static const gs_program program = {.stages = 1, .stage = &stage, .arrays = 2, .array = array};
static const uint32_t rows = 25, whole = 12, zeroed[] = {32, 25};
static const gs_binding batch = {.vertices = 37, .rows = &rows, .whole = &whole, .zeroed = zeroed},
                        all = {.vertices = 37};

/* Rows that are left of `of` from `first` on; 0: none. */
static uint32_t left(gs_task_kind kind, uint32_t first, uint32_t of, const gs_binding *b)
{
    gs_task t = {.kind = kind, .first_row = first, .rows = of};
    return gs_task_bind(&t, b, &program) ? t.rows : 0;
}

static void test_bind__rows_that_are_there(void **state)
{
    (void)state;
    assert_int_equal(left(GS_TASK_VERTEX, 0, 10, &batch), 10);
    assert_int_equal(left(GS_TASK_VERTEX, 20, 10, &batch), 5);
    assert_int_equal(left(GS_TASK_VERTEX, 25, 10, &batch), 0);
    assert_int_equal(left(GS_TASK_VERTEX, 30, 10, &all), 7);
    assert_int_equal(left(GS_TASK_SELF, 24, 100, &batch), 1);
    assert_int_equal(left(GS_TASK_EDGES, 0, 100, &batch), 25);
    assert_int_equal(left(GS_TASK_BEGIN, 0, 100, &all), 37);
    assert_int_equal(left(GS_TASK_BACK, 0, 100, &batch), 100);
}

static void test_bind__rows_of_the_whole_stage(void **state)
{
    const gs_task tile[] = {{.rows = 10}, {.rows = 10, .first_row = 10}, {.rows = 5, .first_row = 20}};

    (void)state;
    assert_int_equal(gs_task_whole_rows(&tile[0], &batch), 10);
    assert_int_equal(gs_task_whole_rows(&tile[1], &batch), 2);
    assert_int_equal(gs_task_whole_rows(&tile[2], &batch), 0);
    assert_int_equal(gs_task_whole_rows(&tile[2], &all), 5);
}

static void test_bind__rows_behind_that_are_read(void **state)
{
    const gs_task first = {.kind = GS_TASK_VERTEX, .rows = 10}, second = {.kind = GS_TASK_VERTEX, .first_row = 10};
    uint64_t begin, end;

    (void)state;
    assert_true(gs_task_zeroes(&begin, &end, &first, &batch, &program, 0));
    assert_int_equal(begin, 25 * WIDTH * 4);
    assert_int_equal(end, 32 * WIDTH * 4);
    for (uint32_t r = 1; r < 4; r++) /* is loaded; has none behind; is stored nowhere */
        assert_false(gs_task_zeroes(&begin, &end, &first, &batch, &program, r));
    assert_false(gs_task_zeroes(&begin, &end, &second, &batch, &program, 0));
    assert_false(gs_task_zeroes(&begin, &end, &first, &all, &program, 0));
}

static void test_bind__sums_are_zeroed_as_far_as_there_are_rows(void **state)
{
    gs_edge_reg edge_reg[GS_ROW_SUM_REGS];
    gs_instr product;
    gs_stage *const s = &stage;
    gs_task sum = {.kind = GS_TASK_ZERO, .bytes = 100 * WIDTH * 4},
            states = {.kind = GS_TASK_ZERO, .sum = 1, .bytes = 8};

    (void)state;
    s->edge_reg = edge_reg;
    s->edge_instr = &product;
    gs_stage_add_row_sum(s, &(gs_row_sum){.scale = GS_NONE}, WIDTH, 0, false);
    assert_true(gs_task_bind(&sum, &batch, &program));
    assert_int_equal(sum.bytes, 25 * WIDTH * 4);
    assert_true(gs_task_bind(&states, &batch, &program));
    assert_int_equal(states.bytes, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bind__rows_that_are_there),
        cmocka_unit_test(test_bind__rows_of_the_whole_stage),
        cmocka_unit_test(test_bind__rows_behind_that_are_read),
        cmocka_unit_test(test_bind__sums_are_zeroed_as_far_as_there_are_rows),
    };
    return cmocka_run_group_tests_name("plan/bind", tests, NULL, NULL);
}
