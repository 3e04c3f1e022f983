/* Conversions against the definition: a half is the representable number that
 * lies nearest, ties to the even one. Checked by search, not by bit tricks. */
#include "support/support.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/npy.h"
#include "base/size.h"

/* Value of 1 + exponent + mantissa bits by the definition of IEEE 754, in double. */
static double decode(uint16_t v, int exponent_bits, int mantissa_bits)
{
    const int bias = (1 << (exponent_bits - 1)) - 1, all_ones = (1 << exponent_bits) - 1;
    const int exponent = (v >> mantissa_bits) & all_ones, mantissa = v & ((1 << mantissa_bits) - 1);
    const double sign = v >> 15 ? -1.0 : 1.0;

    if (exponent == all_ones)
        return mantissa != 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

/* Positive halves ascend with their bits, so the nearest is found by bisection.
 * Overflow counts as the next step after the largest, as the standard says. */
static uint16_t nearest(double magnitude, int exponent_bits, int mantissa_bits)
{
    uint32_t low = 0, high = (uint32_t)((1 << exponent_bits) - 1) << mantissa_bits; /* infinity */
    const double beyond = 2 * decode((uint16_t)(high - 1), exponent_bits, mantissa_bits) -
                          decode((uint16_t)(high - 2), exponent_bits, mantissa_bits);

    if (magnitude >= beyond)
        return (uint16_t)high;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        *(decode((uint16_t)middle, exponent_bits, mantissa_bits) <= magnitude ? &low : &high) = middle;
    }
    const double below = decode((uint16_t)low, exponent_bits, mantissa_bits);
    double above = decode((uint16_t)high, exponent_bits, mantissa_bits);
    above = isinf(above) ? beyond : above;
    if (magnitude - below != above - magnitude)
        return (uint16_t)(magnitude - below < above - magnitude ? low : high);
    return (uint16_t)(low % 2 == 0 ? low : high);
}

static uint32_t bits_of(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof(u));
    return u;
}

static float float_of(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof(v));
    return v;
}

static void test_dtype__table(void **state)
{
    gs_dtype t = GS_I64;

    (void)state;
    assert_int_equal(gs_dtype_bytes(GS_F32), 4);
    assert_int_equal(gs_dtype_bytes(GS_BF16), 2);
    assert_int_equal(gs_dtype_bytes(GS_U64), 8);
    assert_string_equal(gs_dtype_name(GS_I16), "i16");
    for (unsigned i = 0; i < GS_DTYPE_COUNT; i++) {
        assert_true(gs_dtype_parse(&t, gs_dtype_name((gs_dtype)i)));
        assert_int_equal(t, i);
    }
    assert_false(gs_dtype_parse(&t, "f128"));
    assert_false(gs_dtype_parse(&t, ""));
    assert_int_equal(t, GS_DTYPE_COUNT - 1);
}

static void test_dtype__every_half_becomes_its_float(void **state)
{
    (void)state;
    for (uint32_t v = 0; v <= 0xffff; v++) {
        const double f16 = decode((uint16_t)v, 5, 10), bf16 = decode((uint16_t)v, 8, 7);
        const float got_f16 = gs_f32_from_f16((uint16_t)v), got_bf16 = gs_f32_from_bf16((uint16_t)v);
        if (isnan(f16))
            assert_true(isnan(got_f16));
        else
            assert_int_equal(bits_of(got_f16), bits_of((float)f16));
        if (isnan(bf16))
            assert_true(isnan(got_bf16));
        else
            assert_int_equal(bits_of(got_bf16), bits_of((float)bf16));
    }
}

static void test_dtype__every_half_survives_the_round_trip(void **state)
{
    (void)state;
    for (uint32_t v = 0; v <= 0xffff; v++) {
        if (!isnan(decode((uint16_t)v, 5, 10)))
            assert_int_equal(gs_f16_from_f32(gs_f32_from_f16((uint16_t)v)), v);
        if (!isnan(decode((uint16_t)v, 8, 7)))
            assert_int_equal(gs_bf16_from_f32(gs_f32_from_bf16((uint16_t)v)), v);
    }
}

static void check_rounding(float v)
{
    const uint16_t sign = signbit(v) ? 0x8000 : 0;
    const uint16_t f16 = gs_f16_from_f32(v), bf16 = gs_bf16_from_f32(v);

    if (isnan(v)) {
        assert_true(isnan(decode(f16, 5, 10)) && isnan(decode(bf16, 8, 7)));
        return;
    }
    if (f16 != (sign | nearest(fabs((double)v), 5, 10)) || bf16 != (sign | nearest(fabs((double)v), 8, 7)))
        print_error("%a (0x%08x) became f16 0x%04x, bf16 0x%04x\n", (double)v, bits_of(v), f16, bf16);
    assert_int_equal(f16, sign | nearest(fabs((double)v), 5, 10));
    assert_int_equal(bf16, sign | nearest(fabs((double)v), 8, 7));
}

static void test_dtype__rounds_to_nearest_even(void **state)
{
    (void)state;
    /* every f16 and bf16, the points half way to the next, and their neighbours */
    for (uint32_t v = 0; v <= 0xffff; v++) {
        const uint32_t f16 = bits_of(gs_f32_from_f16((uint16_t)v)), bf16 = v << 16;
        const uint32_t probes[] = {f16,  f16 + 0xfff,   f16 + 0x1000,  f16 + 0x1001,
                                   bf16, bf16 + 0x7fff, bf16 + 0x8000, bf16 + 0x8001};
        for (size_t i = 0; i < GS_ARRAY_LEN(probes); i++)
            check_rounding(float_of(probes[i]));
    }
    uint64_t random = 1;
    for (int i = 0; i < 200000; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        check_rounding(float_of((uint32_t)(random >> 32)));
    }
}

/* Lengths around the width of the vector loop give the same as one at a time. */
static void test_dtype__arrays_convert_as_single_numbers_do(void **state)
{
    float in[67], back[67 + 1];
    uint16_t half[67 + 1];
    uint64_t random = 7;

    (void)state;
    for (size_t n = 0; n <= 67; n++) {
        for (size_t i = 0; i < n; i++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            in[i] = float_of((uint32_t)(random >> 32));
        }
        for (int type = GS_BF16; type <= GS_F16; type++) {
            half[n] = 0x1234;
            back[n] = 5.0f;
            gs_convert_from_f32(half, (gs_dtype)type, in, n);
            gs_convert_to_f32(back, half, (gs_dtype)type, n);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(half[i], type == GS_F16 ? gs_f16_from_f32(in[i]) : gs_bf16_from_f32(in[i]));
                assert_int_equal(bits_of(back[i]),
                                 bits_of(type == GS_F16 ? gs_f32_from_f16(half[i]) : gs_f32_from_bf16(half[i])));
            }
            assert_int_equal(half[n], 0x1234);
            assert_true(back[n] == 5.0f);
        }
        gs_convert_to_f32(back, in, GS_F32, n);
        assert_memory_equal(back, in, n * sizeof(float));
        gs_convert_from_f32(back, GS_F32, in, n);
        assert_memory_equal(back, in, n * sizeof(float));
    }
    gs_convert_to_f32(NULL, NULL, GS_F32, 0);
    gs_convert_from_f32(NULL, GS_F32, NULL, 0);
}

/* Cora's features rounded to float16 by NumPy: the same bits as ours. */
static void test_dtype__agrees_with_numpy_on_real_features(void **state)
{
    gs_npy full = {.fd = -1}, half = {.fd = -1};
    const char *const full_path = gs_test_need_data("cora/features.npy");
    const char *const half_path = gs_test_need_data("cora_formats/graphbolt_cora/data/node-feat.npy");

    (void)state;
    gs_assert_ok(gs_npy_open(&full, full_path));
    gs_assert_ok(gs_npy_open(&half, half_path));
    assert_int_equal(half.dtype, GS_F16);
    assert_int_equal(full.shape[0], half.shape[0]);
    assert_int_equal(full.shape[1], half.shape[1]);
    float *const values = gs_malloc(full.data_bytes);
    uint16_t *const want = gs_malloc(half.data_bytes), *const got = gs_malloc(half.data_bytes);
    assert_true(values != NULL && want != NULL && got != NULL);
    gs_assert_ok(gs_npy_read_rows(&full, values, 0, full.shape[0], full_path));
    gs_assert_ok(gs_npy_read_rows(&half, want, 0, half.shape[0], half_path));
    gs_convert_from_f32(got, GS_F16, values, full.shape[0] * full.shape[1]);
    assert_memory_equal(got, want, half.data_bytes);
    gs_free(values);
    gs_free(want);
    gs_free(got);
    gs_npy_close(&full);
    gs_npy_close(&half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtype__table),
        cmocka_unit_test(test_dtype__every_half_becomes_its_float),
        cmocka_unit_test(test_dtype__every_half_survives_the_round_trip),
        cmocka_unit_test(test_dtype__rounds_to_nearest_even),
        cmocka_unit_test(test_dtype__arrays_convert_as_single_numbers_do),
        cmocka_unit_test(test_dtype__agrees_with_numpy_on_real_features),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
