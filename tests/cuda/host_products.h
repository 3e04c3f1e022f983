/* host_products.h - what tensor cores and cuBLAS compute, as formulas. Which memory they may touch is the caller's to
 * look at (host_gpu.c), so they are compiled without sanitizers, under which they would take most of a test's time.
 */
#ifndef GS_TESTS_CUDA_HOST_PRODUCTS_H
#define GS_TESTS_CUDA_HOST_PRODUCTS_H

/* A lane's numbers of the factors of a tile, rounded to tf32. */
typedef struct host_factor {
    float a[4], b[2];
} host_factor;
void host_factor_of(host_factor *f, const float a[4], const float b[2]);
/* c += a lane's part of the tile's product: `left` from the first of the lanes that have its rows, `right` from the
 * first of those that have its columns; which lane has which numbers is as gpu.h says. */
void host_tile_part(float c[4], const host_factor *left, const host_factor *right);

/* to[m, n] = by * a[m, k] b[k, n] + keep * to, column-major, as cuBLAS; `ta`, `tb`: transposed. */
typedef struct host_product {
    int ta, tb, m, n, k, lda, ldb, ldc;
    float by, keep;
    const float *a, *b;
    float *to;
} host_product;
void host_product_run(const host_product *p);

#endif /* GS_TESTS_CUDA_HOST_PRODUCTS_H */
