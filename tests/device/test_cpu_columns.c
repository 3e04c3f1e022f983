/* Columns side by side, and some of them. */
#include <stdlib.h>

#include "device_fixture.h"

static float reg_at(const fixture *f, uint32_t r, size_t i) { return ((const float *)f->memory[r])[i]; }

static void columns(gs_device *d, void *context)
{
    static const uint32_t sizes[][3] = {{1, 1, 1}, {7, 5, 3}, {300, 64, 16}, {5000, 3, 41}};
    (void)context;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        const uint32_t rows = sizes[s][0], left = sizes[s][1], right = sizes[s][2], wide = left + right;
        fixture f;
        fixture_init(&f, rows);
        const uint32_t a = add_random(&f, left, -1, 1), b = add_random(&f, right, -1, 1);
        const uint32_t both = add_reg(&f, GS_F32, wide), last = add_reg(&f, GS_F32, 1 + right);
        add_instr(&f, GS_OP_CONCAT, both, in_reg(a), in_reg(b));
        add_instr(&f, GS_OP_PART, last, in_reg(both), NO_OPERAND)->site = left - 1;
        fixture_run(&f, d);
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < wide; c++)
                assert_true(
                    reg_at(&f, both, (size_t)r * wide + c) ==
                    (c < left ? reg_at(&f, a, (size_t)r * left + c) : reg_at(&f, b, (size_t)r * right + c - left)));
            for (uint32_t c = 0; c <= right; c++)
                assert_true(reg_at(&f, last, (size_t)r * (1 + right) + c) ==
                            reg_at(&f, both, (size_t)r * wide + left - 1 + c));
        }
        fixture_free(&f);
    }
}

static void test_columns__stand_side_by_side(void **state)
{
    (void)state;
    on_every_device(columns, NULL);
}

static void near(float got, double want, double tolerance)
{
    const double g = (double)got;
    gs_assert_all_close_f64(&g, &want, 1, tolerance, tolerance);
}

/* Blocks of columns mixed by a matrix, back by its transpose, and its gradient, against loops. */
static void mixes(gs_device *d, void *context)
{
    /* rows, blocks, blocks, columns */
    static const uint32_t sizes[][4] = {{1, 1, 1, 1}, {7, 2, 3, 5}, {300, 5, 2, 16}, {5000, 3, 4, 33}};
    (void)context;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        const uint32_t rows = sizes[s][0], m = sizes[s][1], n = sizes[s][2], each = sizes[s][3];
        fixture f;
        fixture_init(&f, rows);
        const uint32_t x = add_random(&f, m * each, -1, 1), y = add_reg(&f, GS_F32, n * each),
                       back = add_reg(&f, GS_F32, m * each);
        const uint32_t c = add_param(&f, 2, m, n);
        add_instr(&f, GS_OP_MIX, y, in_reg(x), in_param(c));
        add_instr(&f, GS_OP_MIX_T, back, in_reg(y), in_param(c));
        add_instr(&f, GS_OP_MIX_OUTER, c, in_reg(x), in_reg(y));
        fixture_run(&f, d);
        double *const grad = calloc((size_t)m * n, sizeof(*grad));
        for (size_t r = 0; r < rows; r++)
            for (uint32_t k = 0; k < each; k++) {
                for (uint32_t j = 0; j < n; j++) {
                    double want = 0;
                    for (uint32_t i = 0; i < m; i++)
                        want += (double)f.weight[c][i * n + j] * (double)reg_at(&f, x, (r * m + i) * each + k);
                    near(reg_at(&f, y, (r * n + j) * each + k), want, 1e-5);
                }
                for (uint32_t i = 0; i < m; i++) {
                    double want = 0;
                    for (uint32_t j = 0; j < n; j++) {
                        want += (double)f.weight[c][i * n + j] * (double)reg_at(&f, y, (r * n + j) * each + k);
                        grad[i * n + j] += (double)reg_at(&f, x, (r * m + i) * each + k) *
                                           (double)reg_at(&f, y, (r * n + j) * each + k);
                    }
                    near(reg_at(&f, back, (r * m + i) * each + k), want, 1e-5);
                }
            }
        for (uint32_t i = 0; i < m * n; i++)
            near(f.grad[c][i], 0.5 + grad[i], 1e-4);
        free(grad);
        fixture_free(&f);
    }
}

static void test_columns__blocks_are_mixed(void **state)
{
    (void)state;
    on_every_device(mixes, NULL);
}

/* A row by each of several matrices, back by their transposes, and their gradient, large enough to be cut in one of two
 * ways. */
static void fans(gs_device *d, void *context)
{
    /* rows, matrices, in, out; of many rows the matrices are laid side by side first */
    static const uint32_t sizes[][4] = {
        {1, 1, 1, 1}, {7, 2, 3, 5}, {300, 5, 16, 8}, {600, 3, 300, 300}, {2500, 3, 20, 12}};
    (void)context;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        const uint32_t rows = sizes[s][0], types = sizes[s][1], in = sizes[s][2], out = sizes[s][3];
        fixture f;
        fixture_init(&f, rows);
        const uint32_t x = add_random(&f, in, -1, 1), y = add_reg(&f, GS_F32, types * out),
                       back = add_reg(&f, GS_F32, in), z = add_random(&f, types * out, -1, 1);
        const uint32_t w = add_param(&f, 2, types * in, out);
        add_instr(&f, GS_OP_FAN, y, in_reg(x), in_param(w));
        add_instr(&f, GS_OP_FAN_T, back, in_reg(z), in_param(w));
        add_instr(&f, GS_OP_FAN_OUTER, w, in_reg(x), in_reg(z));
        fixture_run(&f, d);
        round_inputs(d, f.memory[x], (size_t)rows * in);
        round_inputs(d, f.memory[z], (size_t)rows * types * out);
        round_inputs(d, f.weight[w], (size_t)types * in * out);
        for (uint32_t k = 0; k < 400; k++) { /* some elements of each */
            const size_t r = random_below(k, 1, rows), t = random_below(k, 2, types), i = random_below(k, 3, in),
                         o = random_below(k, 4, out);
            double product = 0, all = 0, grad = 0.5;
            for (uint32_t c = 0; c < in; c++)
                product += (double)f.weight[w][(t * in + c) * out + o] * (double)reg_at(&f, x, r * in + c);
            near(reg_at(&f, y, (r * types + t) * out + o), product, 1e-4);
            for (size_t c = 0; c < (size_t)types * out; c++)
                all += (double)f.weight[w][(c / out * in + i) * out + c % out] *
                       (double)reg_at(&f, z, r * types * out + c);
            near(reg_at(&f, back, r * in + i), all, 1e-4);
            for (size_t v = 0; v < rows; v++)
                grad += (double)reg_at(&f, x, v * in + i) * (double)reg_at(&f, z, (v * types + t) * out + o);
            near(f.grad[w][(t * in + i) * out + o], grad, 1e-4);
        }
        fixture_free(&f);
    }
}

static void test_columns__a_row_by_several_matrices(void **state)
{
    (void)state;
    on_every_device(fans, NULL);
    on_rounding_devices(fans, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_columns__stand_side_by_side),
                                       cmocka_unit_test(test_columns__blocks_are_mixed),
                                       cmocka_unit_test(test_columns__a_row_by_several_matrices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
