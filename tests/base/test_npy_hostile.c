/* .npy files that are damaged or made to hurt: each is refused with its reason,
 * and whatever is accepted lies inside the file. */
#include "support/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/npy.h"
#include "base/size.h"

#define GOOD "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"

/* A version-1 file of header `text` (its length said as `said`) and `data` bytes. */
static size_t make(unsigned char *file, const char *text, size_t said, size_t data)
{
    const size_t length = strlen(text);
    memcpy(file, "\x93NUMPY\x01\x00", 8);
    file[8] = (unsigned char)(said & 0xff);
    file[9] = (unsigned char)(said >> 8);
    memcpy(file + 10, text, length);
    memset(file + 10 + length, 0, data);
    return 10 + length + data;
}

static void check_refused(const char *path, const unsigned char *file, size_t bytes, const char *reason)
{
    gs_npy a = {.fd = -42};
    const uint64_t live = gs_alloc_live_bytes();

    gs_test_write_file(path, file, bytes);
    gs_assert_fails(gs_npy_open(&a, path), GS_EFORMAT, reason);
    gs_assert_fails(gs_npy_open(&a, path), GS_EFORMAT, path);
    assert_int_equal(a.fd, -42); /* untouched */
    assert_int_equal(gs_alloc_live_bytes(), live);
}

static void test_npy__refuses_bad_headers(void **state)
{
#define HEAD(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "no dictionary"},
        {"[]", "no dictionary"},
        {"{", "key"},
        {"{}", "missing"},
        {"{'descr': '<f4', 'fortran_order': False, }", "missing"},
        {"{'descr': '<f4', 'shape': (3, 2), }", "missing"},
        {"{'fortran_order': False, 'shape': (3, 2), }", "missing"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), 'more': 1}", "a key other than"},
        {"{'descr' '<f4'}", "':'"},
        {"{descr: '<f4'}", "key"},
        {"{'descr: <f4", "key"},
        {"{'descr': '<f4' 'fortran_order': False}", "',' or '}'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)", "',' or '}'"},
        {HEAD("'<f4", "False", "(3, 2)"), "elements of type '<f4, '"}, /* the string runs on */
        {HEAD("'>f4'", "False", "(3, 2)"), "big-endian ('>f4')"},
        {HEAD("'>i8'", "False", "(3, 2)"), "big-endian"},
        {HEAD("'<c8'", "False", "(3, 2)"), "'<c8'"},
        {HEAD("'|O'", "False", "(3, 2)"), "'|O'"},
        {HEAD("'<U10'", "False", "(3, 2)"), "'<U10'"},
        {HEAD("'<V2'", "False", "(3, 2)"), "'<V2'"},
        {HEAD("''", "False", "(3, 2)"), "elements of type ''"},
        {HEAD("'f4'", "False", "(3, 2)"), "'f4'"},
        {HEAD("4", "False", "(3, 2)"), "'descr' is not a string"},
        {HEAD("[('x', '<f4')]", "False", "(3, 2)"), "structured"},
        {HEAD("'<f4'", "True", "(3, 2)"), "Fortran order"},
        {HEAD("'<f4'", "Maybe", "(3, 2)"), "neither True nor False"},
        {HEAD("'<f4'", "0", "(3, 2)"), "neither True nor False"},
        {HEAD("'<f4'", "False", "()"), "single number"},
        {HEAD("'<f4'", "False", "(3, 2, 1)"), "more than 2 dimensions"},
        {HEAD("'<f4'", "False", "3"), "not a tuple"},
        {HEAD("'<f4'", "False", "[3, 2]"), "not a tuple"},
        {HEAD("'<f4'", "False", "(3 2)"), "not a tuple of numbers"},
        {HEAD("'<f4'", "False", "(-3, 2)"), "not a number"},
        {HEAD("'<f4'", "False", "(x, 2)"), "not a number"},
        {HEAD("'<f4'", "False", "(,)"), "not a number"},
        {HEAD("'<f4'", "False", "(3,,2)"), "not a number"},
        {HEAD("'<f4'", "False", "(3.0, 2)"), "not a tuple of numbers"},
        {HEAD("'<f4'", "False", "(18446744073709551616, 2)"), "beyond 64 bits"},
        {HEAD("'<f4'", "False", "(99999999999999999999999999999, 2)"), "beyond 64 bits"},
        {HEAD("'<f4'", "False", "(18446744073709551615, 18446744073709551615)"), "cut short"},
        {HEAD("'<f4'", "False", "(4611686018427387904, 4)"), "cut short"}, /* 2^64 bytes: wraps to 0 */
        {HEAD("'<f4'", "False", "(9223372036854775807, 2)"), "cut short"},
        {HEAD("'<f4'", "False", "(7, 1)"), "[7, 1] of f32, but only 24 bytes follow"},
        {HEAD("'<f4'", "False", "(3, 3)"), "cut short"},
    };
#undef HEAD
    const char *const path = gs_test_path(*state, "bad.npy");
    unsigned char file[1024];

    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        const size_t bytes = make(file, cases[i].text, strlen(cases[i].text), 24);
        check_refused(path, file, bytes, cases[i].reason);
    }
}

static void test_npy__refuses_bad_preambles(void **state)
{
    const char *const path = gs_test_path(*state, "bad.npy");
    unsigned char file[1024];
    const size_t bytes = make(file, GOOD, strlen(GOOD), 24);

    check_refused(path, file, 0, "is not a .npy file");
    check_refused(path, (const unsigned char *)"hello, world", 12, "is not a .npy file");
    check_refused(path, (const unsigned char *)"PK\x03\x04 an .npz", 12, "is not a .npy file");
    file[6] = 0;
    check_refused(path, file, bytes, "version 0");
    file[6] = 4;
    check_refused(path, file, bytes, "version 4");
    file[6] = 255;
    check_refused(path, file, bytes, "version 255");
    file[6] = 2; /* the header's length becomes a u32 that takes in two bytes of text */
    check_refused(path, file, bytes, "cut short");
    file[6] = 1;
    file[8] = file[9] = 0xff;
    check_refused(path, file, bytes, "header of 65535 bytes is cut short");
}

/* A version-2 header may claim 4 GiB; a file that really has that much (a hole) costs no memory. */
static void test_npy__refuses_a_huge_header(void **state)
{
    const char *const path = gs_test_path(*state, "huge.npy");
    const uint64_t peak = gs_alloc_peak_bytes();
    gs_npy a = {.fd = -1};

    gs_test_write_file(path, "\x93NUMPY\x02\x00\x00\x00\x00\x80{", 13);
    assert_int_equal(truncate(path, 5ll << 30), 0);
    gs_assert_fails(gs_npy_open(&a, path), GS_EFORMAT, "header of 2147483648 bytes is too long");
    assert_true(gs_alloc_peak_bytes() < peak + 4 * GS_MIB);
}

static void test_npy__refuses_every_shorter_file(void **state)
{
    const char *const path = gs_test_path(*state, "cut.npy");
    unsigned char file[1024];
    const size_t bytes = make(file, GOOD, strlen(GOOD), 24);
    gs_npy a = {.fd = -1};

    for (size_t kept = 0; kept < bytes; kept++)
        check_refused(path, file, kept, ".npy");
    gs_test_write_file(path, file, bytes);
    gs_assert_ok(gs_npy_open(&a, path));
    gs_npy_close(&a);
}

/* Any bytes at all: no crash, no access outside, and what is accepted fits the file. */
static void test_npy__survives_random_damage(void **state)
{
    static const char letters[] = "{}()[]'\",:<>|=fiub1248L-. \n\0\xff";
    const char *const path = gs_test_path(*state, "fuzz.npy");
    unsigned char good[1024], file[1024];
    const size_t bytes = make(good, GOOD, strlen(GOOD), 24);
    uint64_t random = 99, accepted = 0;
    const int rounds = 5000;

    for (int round = 0; round < rounds; round++) {
        memcpy(file, good, bytes);
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        const unsigned changes = 1 + (unsigned)(random >> 60);
        for (unsigned c = 0; c < changes; c++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            const size_t at = (random >> 33) % (bytes - 24);
            file[at] = random % 3 == 0 ? (unsigned char)(random >> 20)
                                       : (unsigned char)letters[(random >> 20) % (sizeof(letters) - 1)];
        }
        gs_npy a = {.fd = -1};
        gs_test_write_file(path, file, bytes);
        const gs_status st = gs_npy_open(&a, path);
        assert_true(st == GS_OK || st == GS_EFORMAT);
        if (st == GS_OK) {
            accepted++;
            assert_true(a.data_offset <= bytes && a.data_bytes <= bytes - a.data_offset);
            assert_int_equal(a.data_bytes, a.shape[0] * a.shape[1] * gs_dtype_bytes(a.dtype));
        }
        gs_npy_close(&a);
    }
    assert_in_range(accepted, 1, rounds / 2); /* blanks and the like do no harm; most damage shows */
}

static void test_npy__no_memory_is_said(void **state)
{
    const char *const path = gs_test_path(*state, "a.npy");
    unsigned char file[1024];
    gs_npy a = {.fd = -1};

    gs_test_write_file(path, file, make(file, GOOD, strlen(GOOD), 24));
    gs_alloc_fail_nth(1);
    gs_assert_fails(gs_npy_open(&a, path), GS_ENOMEM, path);
    gs_alloc_fail_nth(0);
    gs_assert_fails(gs_npy_open(&a, gs_test_path(*state, "none.npy")), GS_ENOTFOUND, "none.npy");
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, gs_test_temp_setup, gs_test_temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_npy__refuses_bad_headers),
        WITH_FOLDER(test_npy__refuses_bad_preambles),
        WITH_FOLDER(test_npy__refuses_a_huge_header),
        WITH_FOLDER(test_npy__refuses_every_shorter_file),
        WITH_FOLDER(test_npy__survives_random_damage),
        WITH_FOLDER(test_npy__no_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
