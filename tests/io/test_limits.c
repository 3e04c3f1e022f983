/* test_limits.c - the ceilings: right shapes asked for, right places filled,
 * failures passed on with nothing touched. The device here is a fake that
 * answers with numbers made from its arguments; the disk is real. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/size.h"
#include "device/device.h"
#include "train/limits.h"
#include "io_fixture.h"

static struct {
    int calls, fail_at; /* the fail_at-th measurement fails; 0: none */
    int open;
    unsigned threads;
} device;

static gs_status measured(double *out, double value)
{
    if (++device.calls == device.fail_at)
        return gs_fail(GS_EDEVICE, "measurement %d failed", device.calls);
    *out = value;
    return GS_OK;
}

gs_status gs_device_open(gs_device **out, const char *spec, unsigned threads)
{
    assert_string_equal(spec, "cpu");
    device.threads = threads;
    device.open++;
    *out = (gs_device *)(void *)&device;
    return GS_OK;
}
void gs_device_close(gs_device *d) { device.open -= d != NULL; }
const char *gs_device_name(const gs_device *d) { return d != NULL ? "fake" : ""; }
gs_status gs_device_measure_gemm(gs_device *d, uint32_t rows, uint32_t in, uint32_t out, double *flops)
{
    assert_non_null(d);
    return measured(flops, 1e6 * rows + 1e3 * in + out);
}
gs_status gs_device_measure_gather(gs_device *d, uint64_t table_rows, uint32_t width, double *bps)
{
    assert_non_null(d);
    assert_true(table_rows * width * 4 >= 32 * GS_MIB); /* larger than caches */
    return measured(bps, width);
}
gs_status gs_device_measure_copy(gs_device *d, double *bps)
{
    assert_non_null(d);
    return measured(bps, 7e9);
}

gs_status gs_device_transfer(gs_device *d, gs_device_way way, const gs_device *peer, void *to, const void *from,
                             uint64_t bytes)
{
    assert_non_null(d);
    assert_true(way == GS_DEVICE_FROM_HOST && peer == NULL);
    memcpy(to, from, bytes);
    return GS_OK;
}

gs_status gs_device_send_rows(gs_device *d, const gs_rows_launch *l)
{
    uint64_t rows = 0;
    assert_non_null(d);
    for (uint64_t r = 0; r < l->rows; r++)
        if (l->bits[r / 64] >> (r % 64) & 1) {
            memcpy((char *)l->to + r * l->row_bytes, (const char *)l->from + r * l->row_bytes, l->row_bytes);
            rows++;
        }
    assert_true(rows > 0.45 * (double)l->rows && rows < 0.55 * (double)l->rows);
    return GS_OK;
}

gs_status gs_device_run_edges(gs_device *d, const gs_edge_launch *l)
{
    double ignored;
    assert_non_null(d);
    for (uint32_t t = 0; t < l->edges.targets; t++) /* as the edge kernels want them */
        assert_true(t == 0 || ((const uint16_t *)l->edges.target)[t] > ((const uint16_t *)l->edges.target)[t - 1]);
    assert_int_equal(l->edges.start[l->edges.targets] % l->edges.targets, 0);
    return measured(&ignored, 0);
}

static void test_limits__bad_arguments_touch_nothing(void **state)
{
    (void)state;
    double r = -1, w = -2;
    gs_limits l, before;
    memset(&l, 0x5A, sizeof(l));
    before = l;
    assert_int_equal(gs_limits_disk(&r, &w, "no/such/folder", GS_MIB, 64 * GS_MIB), GS_ENOTFOUND);
    fixture_expect_text("no/such/folder");
    assert_int_equal(gs_limits_disk(&r, &w, fixture_dir, GS_MIB - 1, 64 * GS_MIB), GS_EINVAL);
    assert_int_equal(gs_limits_measure_disk(&l, "no/such/folder", GS_LIMITS_DISK_BYTES), GS_ENOTFOUND);
    assert_true(r < -0.5 && w < -1.5);
    assert_memory_equal(&l, &before, sizeof(l));
}

static void test_limits__everything_is_filled(void **state)
{
    (void)state;
    const uint32_t shape[GS_LIMIT_GEMMS][3] = {
        {8192, 256, 64}, {8192, 64, 256}, {8192, 128, 128}, {8192, 602, 64}, {8192, 64, 16}};
    const uint32_t width[GS_LIMIT_GATHERS] = {16, 64, 256};
    const uint32_t degree[3] = {2, 16, 128};
    const uint64_t live = gs_alloc_live_bytes();
    gs_limits l;
    memset(&l, 0, sizeof(l));
    memset(&device, 0, sizeof(device));
    assert_int_equal(gs_limits_measure_disk(&l, fixture_dir, GS_LIMITS_DISK_BYTES), GS_OK);
    assert_int_equal(gs_limits_measure_device(&l, 3), GS_OK);
    assert_int_equal(device.threads, 3);
    assert_int_equal(device.open, 0);
    assert_string_equal(l.found.device, "fake");
    assert_true(strlen(l.found.io) > 0);
    assert_true(l.found.disk_read_bps > 1e6 && l.found.disk_read_bps < 1e12);
    assert_true(l.found.disk_write_bps > 1e6 && l.found.disk_write_bps < 1e12);
    for (uint32_t i = 0; i < GS_LIMIT_SIZES; i++) {
        assert_int_equal(l.found.random_read[i].bytes, 4096ull << (2 * i));
        assert_true(l.found.random_read[i].bps > 1e5 && l.found.random_read[i].bps < 1e12);
    }
    assert_true(fabs(l.found.copy_bps - 7e9) < 1);
    for (int w = 0; w <= GS_LINK_BETWEEN; w++) /* memory's, of any machine */
        assert_true(l.link[w].bps > 1e8 && l.link[w].bps < 1e13 && l.link[w].request_seconds >= 0 &&
                    l.link[w].request_seconds < 1e-3);
    assert_true(l.found.pick_bps > 1e7 && l.found.pick_bps < 1e13);
    assert_true(l.link[GS_LINK_FROM_DISK].bps == 0); /* a CPU reads by way of the host alone */
    for (uint32_t i = 0; i < GS_LIMIT_GEMMS; i++) {
        assert_int_equal(l.found.gemm[i].rows, shape[i][0]);
        assert_int_equal(l.found.gemm[i].in, shape[i][1]);
        assert_int_equal(l.found.gemm[i].out, shape[i][2]);
        assert_true(fabs(l.found.gemm[i].flops - (1e6 * shape[i][0] + 1e3 * shape[i][1] + shape[i][2])) < 1);
    }
    for (uint32_t i = 0; i < GS_LIMIT_GATHERS; i++) {
        assert_int_equal(l.found.gather[i].width, width[i]);
        assert_true(fabs(l.found.gather[i].bps - width[i]) < 1e-9);
    }
    for (uint32_t i = 0; i < GS_LIMIT_EDGES; i++) {
        assert_int_equal(l.found.edges[i].degree, degree[i / 3]);
        assert_int_equal(l.found.edges[i].width, width[i % 3]);
        assert_true(l.found.edges[i].edges_per_second > 0);
    }
    for (uint32_t d = 0; d < GS_LIMIT_DEPTHS; d++)
        for (uint32_t i = 0; i < GS_LIMIT_SIZES; i++)
            assert_true(l.found.depth[d] > 0 && l.found.random_read[i].at_depth[d] > 1e5 &&
                        l.found.random_read[i].at_depth[d] < 1e12);
    assert_int_equal(gs_alloc_live_bytes(), live);
}

static void test_limits__device_failure_is_passed_on(void **state)
{
    (void)state;
    for (int n = 1; n <= 2 + GS_LIMIT_GEMMS + GS_LIMIT_GATHERS; n += 3) {
        gs_limits l, before;
        memset(&device, 0, sizeof(device));
        device.fail_at = n;
        memset(&l, 0x5A, sizeof(l));
        before = l;
        assert_int_equal(gs_limits_measure_device(&l, 0), GS_EDEVICE);
        assert_int_equal(device.calls, n);
        assert_int_equal(device.open, 0);
        assert_memory_equal(&l, &before, sizeof(l));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits__bad_arguments_touch_nothing),
        cmocka_unit_test(test_limits__everything_is_filled),
        cmocka_unit_test(test_limits__device_failure_is_passed_on),
    };
    return cmocka_run_group_tests_name("train/limits", tests, fixture_dir_make, fixture_dir_remove);
}
