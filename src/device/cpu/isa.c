/* Which kernels may run here: the widest that CPU and operating system have, or a
 * narrower one that the environment asks for. */
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "device/cpu/isa.h"

extern const gs_cpu_kernels gs_cpu__kernels_generic;
#if defined(__x86_64__)
extern const gs_cpu_kernels gs_cpu__kernels_avx2, gs_cpu__kernels_avx512;
#endif

static bool always(void) { return true; }
#if defined(__x86_64__)
/* These ask for everything that meson.build lets the compiler use in the files. F16C is asked of
 * CPUID itself: not every compiler's __builtin_cpu_supports() knows it. */
static bool has_avx2(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) &&
           (c & bit_F16C) != 0;
}

static bool has_avx512(void) { return has_avx2() && __builtin_cpu_supports("avx512f"); }
#endif

static const struct {
    const char *word; /* of GS_ISA */
    const gs_cpu_kernels *kernels;
    bool (*supported)(void);
} isas[] = {
    {"generic", &gs_cpu__kernels_generic, always},
#if defined(__x86_64__)
    {"avx2", &gs_cpu__kernels_avx2, has_avx2},
    {"avx512", &gs_cpu__kernels_avx512, has_avx512},
#else
    {"avx2", NULL, NULL},
    {"avx512", NULL, NULL},
#endif
};

const gs_cpu_kernels *gs_cpu__test_kernels;

gs_status gs_cpu__kernels(const gs_cpu_kernels **out, const char **note)
{
    const char *const wish = getenv("GS_ISA");
    size_t limit = GS_ARRAY_LEN(isas) - 1, best;

    if (gs_cpu__test_kernels != NULL) {
        *out = gs_cpu__test_kernels;
        *note = " of a test";
        return GS_OK;
    }
    if (wish != NULL && wish[0] != '\0') {
        for (limit = 0; limit < GS_ARRAY_LEN(isas) && strcmp(wish, isas[limit].word) != 0; limit++)
            continue;
        if (limit == GS_ARRAY_LEN(isas))
            return gs_fail(GS_EINVAL, "GS_ISA=%s: not an instruction set; use generic, avx2 or avx512", wish);
    }
    for (best = limit; isas[best].kernels == NULL || !isas[best].supported(); best--)
        continue; /* ends at generic at the latest */

    *out = isas[best].kernels;
    *note = wish == NULL || wish[0] == '\0' ? "" : best == limit ? " as GS_ISA says" : ", the best below GS_ISA here";
    return GS_OK;
}
