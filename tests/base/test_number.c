/* Sizes, checked arithmetic, checksums and random bits: numbers with a right answer. */
#include "support/support.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/philox.h"
#include "base/size.h"

static void test_size__parses(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"4096", 4096},
        {"64K", 65536},
        {"64k", 65536},
        {"1.5G", 1610612736},
        {"1.5 GiB", 1610612736},
        {"256MB", 268435456},
        {"256mib", 268435456},
        {"2T", 2199023255552},
        {"10B", 10},
        {"1.0", 1},
        {"0.1G", 107374182},
        {"0.0000000001K", 0},
        {"1.9999999999999999999999K", 2047},
        {"18446744073709551615", UINT64_MAX},
        {"15.9E", 18331451923248866918ull},
        {"007", 7},
    };

    (void)state;
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        uint64_t bytes = 99;
        gs_assert_ok(gs_size_parse(&bytes, cases[i].text));
        assert_int_equal(bytes, cases[i].bytes);
    }
}

static void test_size__refuses_with_a_reason(void **state)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "512M"},          {"G", "512M"},        {"-1", "negative"},     {"-4K", "negative"},
        {"+4K", "512M"},       {" 4K", "512M"},      {"4K ", "512M"},        {"4 ", "512M"},
        {"4  K", "512M"},      {"4X", "512M"},       {"4KK", "512M"},        {"4KiBs", "512M"},
        {"0x10", "512M"},      {"1e3", "512M"},      {"1.G", "512M"},        {".5G", "512M"},
        {"1.2.3G", "512M"},    {"1,5G", "512M"},     {"inf", "512M"},        {"nan", "512M"},
        {"1.5", "whole"},      {"1.5B", "whole"},    {"16E", "2^64"},        {"18446744073709551616", "2^64"},
        {"99999999999G", "2^64"}, {"99999999999999999999999999999999999999999999K", "2^64"}, {"4i", "512M"},
    };

    (void)state;
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        uint64_t bytes = 99;
        gs_assert_fails(gs_size_parse(&bytes, cases[i].text), GS_EINVAL, cases[i].reason);
        assert_int_equal(bytes, 99); /* untouched */
    }
    uint64_t bytes;
    gs_assert_fails(gs_size_parse(&bytes, "12Q"), GS_EINVAL, "\"12Q\"");
}

static void test_size__formats(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},           {1023, "1023 B"},     {1024, "1.0 KiB"},           {1536, "1.5 KiB"},
        {1048575, "1.0 MiB"}, {1610612736, "1.5 GiB"}, {UINT64_MAX, "16.0 EiB"}, {1023 * 1024, "1023.0 KiB"},
    };
    char buf[16];

    (void)state;
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++)
        assert_string_equal(gs_size_format(buf, sizeof(buf), cases[i].bytes), cases[i].text);
}

static void test_size__checked_arithmetic(void **state)
{
    uint64_t v = 5;

    (void)state;
    assert_true(gs_mul_u64(&v, 1ull << 32, (1ull << 32) - 1));
    assert_int_equal(v, 18446744069414584320ull);
    assert_false(gs_mul_u64(&v, 1ull << 32, 1ull << 32));
    assert_false(gs_add_u64(&v, UINT64_MAX, 1));
    assert_int_equal(v, 18446744069414584320ull);
    assert_true(gs_add_u64(&v, UINT64_MAX, 0));
    assert_int_equal(v, UINT64_MAX);
    assert_int_equal(gs_div_up(0, 7), 0);
    assert_int_equal(gs_div_up(7, 7), 1);
    assert_int_equal(gs_div_up(UINT64_MAX, 2), 1ull << 63);
    assert_int_equal(gs_align_up(4097, 4096), 8192);
    assert_int_equal(gs_align_up(4096, 4096), 4096);
    assert_int_equal(gs_align_down(8191, 4096), 4096);
}

/* xxHash's own sanity vectors (its tests/sanity_test_vectors.h): the first
 * `bytes` of a buffer made by a multiplicative generator, seed 0. */
static void test_hash__matches_published_vectors(void **state)
{
    static const struct {
        size_t bytes;
        uint64_t hash;
    } cases[] = {
        {0, 0x2D06800538D394C2ull},   {1, 0xC44BDFF4074EECDBull},    {6, 0x27B56A84CD2D7325ull},
        {12, 0xA713DAF0DFBB77E7ull},  {24, 0xA3FE70BF9D3510EBull},   {48, 0x397DA259ECBA1F11ull},
        {80, 0xBCDEFBBB2C47C90Aull},  {195, 0xCD94217EE362EC3Aull},  {403, 0xCDEB804D65C6DEA4ull},
        {512, 0x617E49599013CB6Bull}, {2048, 0xDD59E2C3A5F038E0ull}, {2240, 0x6E73A90539CF2948ull},
    };
    unsigned char buffer[2240];
    uint64_t generator = 2654435761u;

    (void)state;
    for (size_t i = 0; i < sizeof(buffer); i++) {
        buffer[i] = (unsigned char)(generator >> 56);
        generator *= 11400714785074694797ull;
    }
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++)
        assert_int_equal(gs_hash64(buffer, cases[i].bytes), cases[i].hash);
}

/* Known answers of Random123 (kat_vectors, philox4x32 with 10 rounds). */
static void test_philox__matches_published_vectors(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    (void)state;
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        uint32_t out[4];
        gs_philox4x32(out, cases[i].counter, cases[i].key);
        assert_memory_equal(out, cases[i].out, sizeof(out));
    }
}

static void test_philox__uses_and_ranges(void **state)
{
    uint32_t a[2], b[2];

    (void)state;
    gs_random_key(a, 0x1234567800000001ull, GS_RANDOM_DROPOUT);
    gs_random_key(b, 0x1234567800000001ull, GS_RANDOM_INIT);
    assert_int_equal(a[0], 1);
    assert_int_not_equal(a[1], b[1]);
    assert_true(gs_uniform_f32(0) == 0.0f);
    assert_true(gs_uniform_f32(~0u) < 1.0f);
    assert_true(gs_uniform_open(0) > 0.0 && gs_uniform_open(~0u) < 1.0);
}

static void test_clock__never_goes_back(void **state)
{
    double last = gs_now();

    (void)state;
    for (int i = 0; i < 10000; i++) {
        const double now = gs_now();
        assert_true(now >= last);
        last = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size__parses),
        cmocka_unit_test(test_size__refuses_with_a_reason),
        cmocka_unit_test(test_size__formats),
        cmocka_unit_test(test_size__checked_arithmetic),
        cmocka_unit_test(test_hash__matches_published_vectors),
        cmocka_unit_test(test_philox__matches_published_vectors),
        cmocka_unit_test(test_philox__uses_and_ranges),
        cmocka_unit_test(test_clock__never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
