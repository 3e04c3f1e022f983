#include "host_products.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* To 10 bits behind the first, ties away from 0. */
static float to_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    if ((bits & 0x7f800000u) != 0x7f800000u)
        bits = (bits + 0x1000u) & ~0x1fffu;
    memcpy(&x, &bits, sizeof(bits));
    return x;
}

void host_factor_of(host_factor *f, const float a[4], const float b[2])
{
    for (int i = 0; i < 4; i++)
        f->a[i] = to_tf32(a[i]);
    for (int i = 0; i < 2; i++)
        f->b[i] = to_tf32(b[i]);
}

/* Four sums side by side, as one alone would wait for its last addition eight times. */
void host_tile_part(float c[4], const host_factor *left, const host_factor *right)
{
    float c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
    for (unsigned half = 0; half < 2; half++)
        for (unsigned k = 0; k < 4; k++) {
            const float *const a = &left[k].a[2 * half];
            const float b0 = right[k].b[half], b1 = right[4 + k].b[half];
            c0 += a[0] * b0;
            c1 += a[0] * b1;
            c2 += a[1] * b0;
            c3 += a[1] * b1;
        }
    c[0] = c0, c[1] = c1, c[2] = c2, c[3] = c3;
}

void host_product_run(const host_product *p)
{
    const size_t lda = (size_t)p->lda, ldb = (size_t)p->ldb, ldc = (size_t)p->ldc;
    for (size_t j = 0; j < (size_t)p->n; j++)
        for (size_t i = 0; i < (size_t)p->m; i++) {
            float sum = 0;
            for (size_t q = 0; q < (size_t)p->k; q++)
                sum +=
                    (p->ta ? p->a[i * lda + q] : p->a[q * lda + i]) * (p->tb ? p->b[q * ldb + j] : p->b[j * ldb + q]);
            float *const z = &p->to[j * ldc + i];
            *z = p->by * sum + (p->keep == 0 ? 0 : p->keep * *z);
        }
}
