/* The devices of device_fixture.h: the CPU, once for every instruction set. */
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu.h" /* gs_cpu__test_kernels */
#include "device_fixture.h"

/* meson.build */
#ifdef GS_TEST_WIDE
extern const gs_cpu_kernels gs_cpu__kernels_wide;
const char *const isa_names[] = {"generic", "avx2", "avx512", "wide"};
#else
const char *const isa_names[] = {"generic", "avx2", "avx512"};
#endif
const size_t isas = sizeof(isa_names) / sizeof(isa_names[0]);
const unsigned most_threads = 3;

gs_device *open_isa(const char *isa, unsigned threads)
{
    gs_device *d = NULL;
#ifdef GS_TEST_WIDE
    if (strcmp(isa, "wide") == 0) {
        gs_cpu__test_kernels = &gs_cpu__kernels_wide;
        gs_assert_ok(gs_device_open(&d, "cpu", threads));
        gs_cpu__test_kernels = NULL;
        return d;
    }
#endif
    setenv("GS_ISA", isa, 1);
    gs_assert_ok(gs_device_open(&d, "cpu", threads));
    unsetenv("GS_ISA");
    if (strstr(gs_device_name(d), "as GS_ISA says") != NULL)
        return d;
    gs_device_close(d);
    return NULL;
}

uint32_t hub_edges(uint32_t edges) { return edges; }

bool takes_shape(size_t i, size_t every, size_t first)
{
    const bool all = getenv("GS_TEST_EVERY_SHAPE") != NULL || getenv("GS_TEST_ALL") != NULL;
#ifndef __SANITIZE_ADDRESS__
    first++; /* others than sanitized builds take */
#endif
    return all || i % every == first % every;
}

bool takes_kind(size_t i, size_t every, size_t first)
{
    (void)i, (void)every, (void)first;
    return true;
}

void on_every_device(void (*body)(gs_device *d, void *context), void *context)
{
    for (size_t i = 0; i < isas; i++)
        for (unsigned threads = 1; threads <= 2; threads++) {
            gs_device *const d = gs_test_takes(i + threads, 2) ? open_isa(isa_names[i], threads) : NULL;
            if (d == NULL)
                continue;
            body(d, context);
            gs_device_close(d);
        }
}

void on_rounding_devices(void (*body)(gs_device *d, void *context), void *context)
{
    for (unsigned threads = 1; threads <= 5; threads = threads * 2 + threads / 2) {
        gs_device *d;
        gs_assert_ok(gs_device_open_with(
            &d, &(gs_device_config){.spec = "cpu", .threads = threads, .matmul = GS_MATMUL_BF16}));
        if (gs_device_rounds(d))
            body(d, context);
        gs_device_close(d);
    }
}
