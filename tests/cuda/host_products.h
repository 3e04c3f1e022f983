/* host_products.h - what tensor cores and cuBLAS compute, as formulas. Which memory they may touch is the caller's to
 * look at (host_gpu.c), so they are compiled without sanitizers, under which they would take most of a test's time.
 */
#ifndef GS_TESTS_CUDA_HOST_PRODUCTS_H
#define GS_TESTS_CUDA_HOST_PRODUCTS_H

/* What a warp gives a tensor core: c[16, 8] += a[16, 8] b[8, 8]. Which lane has which numbers is as gpu.h says. */
typedef struct host_tile {
    float a[16][8], b[8][8], c[16][8];
} host_tile;
void host_tile_put(host_tile *t, unsigned lane, const float c[4], const float a[4], const float b[2]);
/* Once all 32 lanes have put theirs; rounds a and b to tf32. */
void host_tile_multiply(host_tile *t);
void host_tile_take(float c[4], const host_tile *t, unsigned lane);

/* to[m, n] = by * a[m, k] b[k, n] + keep * to, column-major, as cuBLAS; `ta`, `tb`: transposed. */
typedef struct host_product {
    int ta, tb, m, n, k, lda, ldb, ldc;
    float by, keep;
    const float *a, *b;
    float *to;
} host_product;
void host_product_run(const host_product *p);

#endif /* GS_TESTS_CUDA_HOST_PRODUCTS_H */
