/* .npy files that are as they should be: read, written, and read back. */
#include "support/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/size.h"

/* The bytes that numpy.save() writes for np.arange(6, dtype='<i4').reshape(3, 2). */
static const char numpy_header[] =
    "\x93NUMPY\x01\x00v\x00{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2), }"
    "                                                          \n";

static void test_npy__reads_what_numpy_writes(void **state)
{
    const char *const path = gs_test_path(*state, "a.npy");
    static const int32_t values[] = {0, 1, 2, 3, 4, 5};
    char file[128 + sizeof(values)];
    int32_t got[4];
    gs_npy a = {.fd = -1};

    assert_int_equal(sizeof(numpy_header) - 1, 128);
    memcpy(file, numpy_header, 128);
    memcpy(file + 128, values, sizeof(values));
    gs_test_write_file(path, file, sizeof(file));

    gs_assert_ok(gs_npy_open(&a, path));
    assert_int_equal(a.dtype, GS_I32);
    assert_int_equal(a.dims, 2);
    assert_int_equal(a.shape[0], 3);
    assert_int_equal(a.shape[1], 2);
    assert_int_equal(a.data_offset, 128);
    assert_int_equal(a.data_bytes, 24);
    gs_assert_ok(gs_npy_read_rows(&a, got, 1, 2, path));
    assert_memory_equal(got, values + 2, 16);
    gs_assert_ok(gs_npy_read_rows(&a, got, 3, 0, path));
    gs_assert_fails(gs_npy_read_rows(&a, got, 2, 2, path), GS_EINVAL, "it has 3");
    gs_assert_fails(gs_npy_read_rows(&a, got, UINT64_MAX, 2, path), GS_EINVAL, "it has 3");
    gs_assert_fails(gs_npy_read_rows(&a, got, 1, UINT64_MAX, path), GS_EINVAL, "it has 3");
    gs_npy_close(&a);
    assert_int_equal(a.fd, -1);
    gs_npy_close(&a); /* once more is fine */
}

/* Header `text` as `version` has it, then `data` zero bytes. */
static void put_npy(const char *path, int version, const char *text, size_t data)
{
    static char file[4096];
    const size_t length = strlen(text), lead = version == 1 ? 10 : 12;

    assert_true(lead + length + data <= sizeof(file));
    memset(file, 0, sizeof(file));
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (char)version;
    file[8] = (char)(length & 0xff);
    file[9] = (char)(length >> 8);
    memcpy(file + lead, text, length);
    gs_test_write_file(path, file, lead + length + data);
}

static void test_npy__reads_every_version(void **state)
{
    const char *const path = gs_test_path(*state, "a.npy");

    for (int version = 1; version <= 3; version++) {
        gs_npy a = {.fd = -1};
        put_npy(path, version, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n", 16);
        gs_assert_ok(gs_npy_open(&a, path));
        assert_int_equal(a.dtype, GS_F64);
        assert_int_equal(a.dims, 1);
        assert_int_equal(a.shape[0], 2);
        assert_int_equal(a.shape[1], 1);
        assert_int_equal(a.data_offset, (version == 1 ? 10 : 12) + 58);
        gs_npy_close(&a);
    }
}

static void test_npy__reads_every_type(void **state)
{
    static const struct {
        const char *descr;
        gs_dtype dtype;
    } cases[] = {
        {"<f4", GS_F32}, {"<f2", GS_F16}, {"<f8", GS_F64}, {"|u1", GS_U8},  {"|b1", GS_U8},  {"|i1", GS_I8},
        {"<u2", GS_U16}, {"<i2", GS_I16}, {"<u4", GS_U32}, {"<i4", GS_I32}, {"<u8", GS_U64}, {"<i8", GS_I64},
        {"=f4", GS_F32}, {"<u1", GS_U8},  {">i1", GS_I8},
    };
    const char *const path = gs_test_path(*state, "a.npy");

    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        char text[200];
        gs_npy a = {.fd = -1};
        snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': (3, 5), }\n", cases[i].descr);
        put_npy(path, 1, text, 15 * gs_dtype_bytes(cases[i].dtype));
        gs_assert_ok(gs_npy_open(&a, path));
        assert_int_equal(a.dtype, cases[i].dtype);
        assert_int_equal(a.data_bytes, 15 * gs_dtype_bytes(cases[i].dtype));
        gs_npy_close(&a);
    }
}

static void test_npy__accepts_other_ways_to_write_it(void **state)
{
    static const struct {
        const char *text;
        uint64_t rows, cols;
    } cases[] = {
        {"{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}", 2, 3},     /* other order, no trailing comma */
        {"{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (2,3)}", 2, 3},
        {"{'descr':'<f4','fortran_order':False,'shape':(2,3,),}", 2, 3},
        {"  {'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }  ", 2, 3}, /* Python 2 */
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (6,), }", 6, 1},      /* one dimension has no order */
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (6, 1), }", 6, 1},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 6), }", 1, 6},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 6), }", 0, 6},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6, 0), }", 6, 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }", 0, 1},
    };
    const char *const path = gs_test_path(*state, "a.npy");

    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        gs_npy a = {.fd = -1};
        put_npy(path, 1, cases[i].text, 24);
        gs_assert_ok(gs_npy_open(&a, path));
        assert_int_equal(a.shape[0], cases[i].rows);
        assert_int_equal(a.shape[1], cases[i].cols);
        assert_int_equal(a.data_bytes, 4 * cases[i].rows * cases[i].cols);
        gs_npy_close(&a);
    }
}

static void test_npy__creates_what_numpy_would(void **state)
{
    const char *const path = gs_test_path(*state, "a.npy");
    uint64_t offset = 0, bytes = 0;
    char *text = NULL;
    gs_outfile o = GS_OUTFILE_NONE;

    gs_assert_ok(gs_npy_create(&o, &offset, path, GS_I32, 3, 2));
    assert_int_equal(offset, 128);
    assert_false(gs_path_exists(path)); /* until it is whole */
    gs_assert_ok(gs_outfile_finish(&o));
    gs_assert_ok(gs_file_read_all(&text, &bytes, path, 1 << 20));
    assert_int_equal(bytes, 128 + 24); /* full size at once */
    assert_memory_equal(text, numpy_header, 128);
    gs_free(text);
}

static void test_npy__creates_and_reads_back(void **state)
{
    static const struct {
        gs_dtype dtype;
        uint64_t rows, cols;
    } cases[] = {
        {GS_F32, 5, 3}, {GS_F16, 7, 0}, {GS_U8, 100, 1}, {GS_I64, 0, 4}, {GS_F64, 1, 0}, {GS_U32, 12345, 7},
    };
    const char *const path = gs_test_path(*state, "a.npy");

    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        const uint64_t cols = GS_MAX(cases[i].cols, 1);
        const uint64_t row_bytes = cols * gs_dtype_bytes(cases[i].dtype);
        gs_npy a = {.fd = -1};
        unsigned char row[64], got[64];
        uint64_t offset = 0;
        gs_outfile o = GS_OUTFILE_NONE;

        gs_assert_ok(gs_npy_create(&o, &offset, path, cases[i].dtype, cases[i].rows, cases[i].cols));
        assert_int_equal(offset % 64, 0);
        for (size_t b = 0; b < sizeof(row); b++)
            row[b] = (unsigned char)(3 * b + i);
        if (cases[i].rows > 0)
            gs_assert_ok(gs_outfile_write(&o, row, row_bytes, offset + (cases[i].rows - 1) * row_bytes));
        gs_assert_ok(gs_outfile_finish(&o));

        gs_assert_ok(gs_npy_open(&a, path));
        assert_int_equal(a.dtype, cases[i].dtype);
        assert_int_equal(a.dims, cases[i].cols == 0 ? 1 : 2);
        assert_int_equal(a.shape[0], cases[i].rows);
        assert_int_equal(a.shape[1], cols);
        if (cases[i].rows > 0) {
            gs_assert_ok(gs_npy_read_rows(&a, got, cases[i].rows - 1, 1, path));
            assert_memory_equal(got, row, row_bytes);
        }
        gs_npy_close(&a);
    }
}

static void test_npy__create_refuses(void **state)
{
    const char *const path = gs_test_path(*state, "a.npy");
    uint64_t offset = 5;
    gs_outfile o = GS_OUTFILE_NONE;

    gs_assert_fails(gs_npy_create(&o, &offset, path, GS_BF16, 2, 2), GS_EUNSUPPORTED, "bf16");
    gs_assert_fails(gs_npy_create(&o, &offset, path, GS_F32, 1ull << 62, 4), GS_EINVAL, "beyond");
    gs_assert_fails(gs_npy_create(&o, &offset, path, GS_F32, 1ull << 61, 0), GS_EINVAL, "beyond");
    assert_false(gs_path_exists(path));
    /* a disk that has less: nothing half-made is left */
    gs_assert_fails(gs_npy_create(&o, &offset, path, GS_F32, 1ull << 58, 0), GS_EIO, "bytes of disk");
    assert_false(gs_path_exists(path));
    gs_assert_fails(gs_npy_create(&o, &offset, gs_test_path(*state, "no/a.npy"), GS_F32, 1, 1), GS_ENOTFOUND,
                    "no/a.npy");
    assert_null(o.path);
    assert_int_equal(offset, 5);
}

static void test_npy__closing_nothing_closes_nothing(void **state)
{
    gs_npy never = {.fd = -1}, zeroed = {0};

    (void)state;
    gs_npy_close(&never);
    gs_npy_close(&zeroed);
    assert_true(fcntl(0, F_GETFD) >= 0 || fcntl(1, F_GETFD) >= 0);
    assert_int_equal(zeroed.fd, -1);
}

static void test_npy__reads_a_real_graph(void **state)
{
    const char *const path = gs_test_need_data("cora/edges.npy");
    int64_t edge[2];
    gs_npy a = {.fd = -1};

    (void)state;
    gs_assert_ok(gs_npy_open(&a, path));
    assert_int_equal(a.dtype, GS_I64);
    assert_int_equal(a.shape[0], 10556);
    assert_int_equal(a.shape[1], 2);
    gs_assert_ok(gs_npy_read_rows(&a, edge, 10555, 1, path));
    assert_int_equal(edge[0], 2707); /* sorted by source, and no vertex is isolated */
    assert_in_range(edge[1], 0, 2706);
    gs_npy_close(&a);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, gs_test_temp_setup, gs_test_temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_npy__reads_what_numpy_writes),
        WITH_FOLDER(test_npy__reads_every_version),
        WITH_FOLDER(test_npy__reads_every_type),
        WITH_FOLDER(test_npy__accepts_other_ways_to_write_it),
        WITH_FOLDER(test_npy__creates_what_numpy_would),
        WITH_FOLDER(test_npy__creates_and_reads_back),
        WITH_FOLDER(test_npy__create_refuses),
        cmocka_unit_test(test_npy__closing_nothing_closes_nothing),
        cmocka_unit_test(test_npy__reads_a_real_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
