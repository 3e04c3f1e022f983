/* Sums of groups of columns, alone and of products, and numbers spread over groups, against float64. */
#include <math.h>

#include "device_fixture.h"

static void check_groups(gs_device *d, uint32_t rows, uint32_t groups, uint32_t each)
{
    const uint32_t width = groups * each;
    fixture f;
    fixture_init(&f, rows);
    const uint32_t a = add_random(&f, width, 0, 1), b = add_random(&f, groups, -1, 1);
    const uint32_t folded = add_reg(&f, GS_F32, groups), spread = add_reg(&f, GS_F32, width);
    add_instr(&f, GS_OP_FOLD, folded, in_reg(a), NO_OPERAND);
    add_instr(&f, GS_OP_EXPAND, spread, in_reg(b), NO_OPERAND);
    fixture_run(&f, d);
    for (size_t i = 0; i < (size_t)rows * groups; i++) {
        double want = 0;
        for (uint32_t c = 0; c < each; c++) {
            want += (double)((const float *)f.memory[a])[i * each + c];
            if (((const float *)f.memory[spread])[i * each + c] != ((const float *)f.memory[b])[i])
                fail_msg("spread [%u, %u x %u] is wrong at %zu, %u", rows, groups, each, i, c);
        }
        const double got = (double)((const float *)f.memory[folded])[i];
        if (!(fabs(got - want) <= 1e-6 * want))
            fail_msg("fold [%u, %u x %u] at %zu: got %.9g, want %.9g", rows, groups, each, i, got, want);
    }
    fixture_free(&f);
}

/* Sums of products that nothing else reads, of two registers and of one and a parameter; and of one that is read. */
static void check_products(gs_device *d, uint32_t rows, uint32_t groups, uint32_t each)
{
    const uint32_t width = groups * each;
    fixture f;
    fixture_init(&f, rows);
    const uint32_t a = add_random(&f, width, 0, 1), b = add_random(&f, width, 0, 1);
    const gs_operand row = in_param(add_param(&f, 1, 1, width)), other[3] = {in_reg(b), row, row};
    uint32_t folded[3], product[3];
    for (uint32_t i = 0; i < 3; i++) {
        product[i] = add_reg(&f, GS_F32, width);
        folded[i] = add_reg(&f, GS_F32, groups);
        add_instr(&f, GS_OP_MUL, product[i], i == 1 ? row : in_reg(a), i == 1 ? in_reg(a) : other[i]);
        add_instr(&f, GS_OP_FOLD, folded[i], in_reg(product[i]), NO_OPERAND);
    }
    const uint32_t twice = add_reg(&f, GS_F32, width);
    add_instr(&f, GS_OP_ADD, twice, in_reg(product[2]), in_reg(product[2]));
    fixture_run(&f, d);
    const float *const x = f.memory[a], *const y = f.memory[b], *const p = f.weight[row.index];
    for (uint32_t i = 0; i < 3; i++)
        for (size_t k = 0; k < (size_t)rows * groups; k++) {
            double want = 0, size = 0;
            for (size_t c = k * each; c < (k + 1) * each; c++) {
                const double term = (double)x[c] * (double)(i == 0 ? y[c] : p[c % width]);
                want += term;
                size += fabs(term);
            }
            const double got = (double)((const float *)f.memory[folded[i]])[k];
            if (!(fabs(got - want) <= 1e-6 * size))
                fail_msg("fold %u of products [%u, %u x %u] at %zu: got %.9g, want %.9g", i, rows, groups, each, k,
                         got, want);
        }
    for (size_t c = 0; c < (size_t)rows * width; c++)
        assert_true(((const float *)f.memory[twice])[c] == 2 * (x[c] * p[c % width]));
    fixture_free(&f);
}

static void groups(gs_device *d, void *context)
{
    static const uint32_t sizes[][2] = {
        {1, 1},  {1, 3},   {2, 1},   {2, 2},  {1, 64}, {8, 1}, {8, 7},  {8, 8},  {4, 16}, {3, 5},  {5, 13}, {2, 20},
        {16, 4}, {17, 33}, {1, 602}, {8, 3},  {6, 3},  {8, 2}, {16, 2}, {4, 8},  {6, 8},  {8, 4},  {12, 4}, {2, 8},
        {2, 4},  {16, 8},  {9, 14},  {10, 2}, {1, 4},  {4, 4}, {1, 8},  {1, 16}, {2, 16}, {8, 16}, {16, 16}};
    (void)context;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (uint32_t rows = 1; rows <= 700; rows += 233) {
            check_groups(d, rows, sizes[s][0], sizes[s][1]);
            check_products(d, rows, sizes[s][0], sizes[s][1]);
        }
}

static void test_groups__fold_and_spread(void **state)
{
    (void)state;
    on_every_device(groups, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups__fold_and_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
