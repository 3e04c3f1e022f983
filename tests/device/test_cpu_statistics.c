/* Statistics over all vertices: what batch normalisation is made of. */
#include <math.h>
#include <string.h>

#include "device_fixture.h"

static double reg_at(const fixture *f, uint32_t r, size_t i) { return (double)((const float *)f->memory[r])[i]; }

/* Mean and variance over two launches, of columns far from 0: float64 sums keep what float32 would lose. */
static void statistics(gs_device *d, void *context)
{
    static const uint32_t sizes[][2] = {{1, 1}, {7, 5}, {300, 64}, {5000, 3}, {70001, 17}};
    (void)context;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        const uint32_t rows = sizes[s][0], width = sizes[s][1];
        double *const sums = test_malloc(4 * width * sizeof(double));
        double *statistic[FIXTURE_MAX] = {NULL};
        float *const got = test_malloc(2 * width * sizeof(float));
        fixture f;
        fixture_init(&f, rows);
        const uint32_t odd = add_param(&f, 2, 3, 3); /* what stands before a statistic has an odd size */
        const uint32_t mean = add_param(&f, 1, 1, width), variance = add_param(&f, 1, 1, width);
        f.param[mean].statistic = GS_STATISTIC_MEAN;
        f.param[variance].statistic = GS_STATISTIC_VARIANCE;
        const uint32_t x = add_random(&f, width, 1000, 1001), g = add_random(&f, 3, -1, 1);
        add_instr(&f, GS_OP_OUTER, odd, in_reg(g), in_reg(g));
        add_instr(&f, GS_OP_VAR_ALL, variance, in_reg(x), NO_OPERAND);
        add_instr(&f, GS_OP_MEAN_ALL, mean, in_reg(x), NO_OPERAND);
        statistic[mean] = sums;
        statistic[variance] = sums + 2 * width;
        f.launch.statistic = statistic;
        memset(sums, 0, 4 * width * sizeof(double));
        fixture_run(&f, d);
        fixture_run(&f, d);
        gs_assert_ok(gs_device_finish_statistic(d, GS_STATISTIC_MEAN, got, statistic[mean], width, 2ull * rows));
        gs_assert_ok(
            gs_device_finish_statistic(d, GS_STATISTIC_VARIANCE, got + width, statistic[variance], width, 2ull * rows));
        for (uint32_t c = 0; c < width; c++) {
            double m = 0, v = 0;
            for (uint32_t r = 0; r < rows; r++)
                m += reg_at(&f, x, (size_t)r * width + c) / rows;
            for (uint32_t r = 0; r < rows; r++)
                v += (reg_at(&f, x, (size_t)r * width + c) - m) * (reg_at(&f, x, (size_t)r * width + c) - m) / rows;
            assert_true(fabs((double)got[c] - m) <= 1e-7 * m);
            assert_true(fabs((double)got[width + c] - v) <= 1e-6 * v + 1e-9);
        }
        test_free(sums);
        test_free(got);
        fixture_free(&f);
    }
}

static void test_statistics__add_up_over_launches(void **state)
{
    (void)state;
    on_every_device(statistics, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_statistics__add_up_over_launches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
