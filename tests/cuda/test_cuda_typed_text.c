/* Kernels of products by type fit a GPU, whatever the widths: blocks of GS_BLOCK_LANES, the shared memory that every
 * launch may have, and all columns. */
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cuda/kernel_text.h"
#include "cuda/kernels/args.h"

#define SHARED_MOST (48u << 10) /* CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" */
#define LANE_COLUMNS 4u
#define LANE_ROWS 8u            /* GS_LANE_ROWS of typed.cu: rows of a task that a lane has, at most */

static void check(gs_typed_kind kind, uint32_t in, uint32_t out, bool tf32)
{
    char *text = NULL;
    size_t bytes = 0;
    gs_typed_kernel k;
    FILE *const f = open_memstream(&text, &bytes);

    assert_non_null(f);
    gs_generate_typed(f, &k, kind, in, out, tf32);
    assert_int_equal(fclose(f), 0);
    assert_true(bytes > 0);
    free(text);
    assert_true(k.across > 0 && (k.across & (k.across - 1)) == 0);
    assert_in_range(k.shared_bytes, 1, SHARED_MOST);
    if (kind == GS_TYPED_OUTER) {
        assert_true(k.down * k.across <= GS_BLOCK_LANES);
        assert_true((uint64_t)k.blocks * LANE_COLUMNS * k.down * LANE_COLUMNS * k.across >= (uint64_t)in * out);
    } else {
        assert_true(GS_TASK_ROWS * k.across <= LANE_ROWS * GS_BLOCK_LANES);
        assert_true(k.blocks * LANE_COLUMNS * k.across >= out);
    }
}

static void test_cuda_typed_text__kernels_of_any_width_fit(void **state)
{
    (void)state;
    for (uint32_t in = 1; in <= 320; in += in < 130 ? 3 : 31)
        for (uint32_t out = 1; out <= 320; out += out < 130 ? 1 : 31)
            for (int tf32 = 0; tf32 < 2; tf32++) {
                check(GS_TYPED_PRODUCT, in, out, tf32);
                check(GS_TYPED_PRODUCT_T, in, out, tf32);
                check(GS_TYPED_OUTER, in, out, tf32);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_typed_text__kernels_of_any_width_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
