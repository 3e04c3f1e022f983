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

void host_tile_part(float c[4], const host_factor *left, const host_factor *right)
{
    for (unsigned i = 0; i < 4; i++) {
        const unsigned row = i / 2, column = i % 2;
        float sum = c[i];
        for (unsigned k = 0; k < 8; k++)
            sum += left[k % 4].a[row + k / 4 * 2] * right[4 * column + k % 4].b[k / 4];
        c[i] = sum;
    }
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
