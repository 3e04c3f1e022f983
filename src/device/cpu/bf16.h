/* bf16.h - dense products whose factors are rounded to bf16 (.matmul bf16), on the calling thread: where may they run,
 * and by which functions? None of them takes memory but of the stack. */
#ifndef GS_DEVICE_CPU_BF16_H
#define GS_DEVICE_CPU_BF16_H

#include "device/cpu/cpu.h"

struct gs_cpu_bf16 {
    /* to[ceil(rows / 2)][columns]: numbers of rows 2 r (lower half) and 2 r + 1, rounded. `to` may be `from`. */
    void (*pair_rows)(uint32_t *to, const float *from, uint32_t rows, uint32_t columns);
    /* c[m, n] = (adds: +=) a[m, k] by the rows of a paired matrix from `first` on. */
    void (*rows_by)(uint32_t m, uint32_t n, uint32_t k, const float *a, const uint32_t *matrix, uint32_t first,
                    bool adds, float *c);
    /* c[m, n] = (adds: +=) a' b over `rows` rows. */
    void (*outer)(uint32_t m, uint32_t n, uint32_t rows, const float *a, uint32_t lda, const float *b, uint32_t ldb,
                  bool adds, float *c, uint32_t ldc);
};

/* NULL: this processor, or GS_ISA, has none. */
const gs_cpu_bf16 *gs_cpu__bf16_find(const gs_cpu_kernels *kernels);

#endif /* GS_DEVICE_CPU_BF16_H */
