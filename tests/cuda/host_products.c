#include "host_products.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Four numbers side by side: a tile's rows are two of these. */
typedef float four __attribute__((vector_size(16), may_alias));
typedef uint32_t four_bits __attribute__((vector_size(16), may_alias));

/* To 10 bits behind the first, ties away from 0. */
static void round_to_tf32(float *x, size_t count)
{
    for (size_t i = 0; i < count; i += 4) {
        four_bits bits;
        memcpy(&bits, x + i, sizeof(bits));
        const four_bits finite = (four_bits)((bits & 0x7f800000u) != 0x7f800000u);
        bits = (finite & (bits + 0x1000u) & ~0x1fffu) | (~finite & bits);
        memcpy(x + i, &bits, sizeof(bits));
    }
}

void host_tile_put(host_tile *t, unsigned lane, const float c[4], const float a[4], const float b[2])
{
    const unsigned row = lane / 4, column = lane % 4;
    for (unsigned half = 0; half < 2; half++) {
        t->a[row][column + 4 * half] = a[2 * half];
        t->a[row + 8][column + 4 * half] = a[2 * half + 1];
        t->b[column + 4 * half][row] = b[half];
        memcpy(&t->c[row + 8 * half][2 * column], &c[2 * half], 2 * sizeof(*c));
    }
}

void host_tile_take(float c[4], const host_tile *t, unsigned lane)
{
    const unsigned row = lane / 4, column = lane % 4;
    for (unsigned half = 0; half < 2; half++)
        memcpy(&c[2 * half], &t->c[row + 8 * half][2 * column], 2 * sizeof(*c));
}

void host_tile_multiply(host_tile *t)
{
    round_to_tf32(&t->a[0][0], sizeof(t->a) / sizeof(float));
    round_to_tf32(&t->b[0][0], sizeof(t->b) / sizeof(float));
    for (unsigned row = 0; row < 16; row++)
        for (unsigned half = 0; half < 2; half++) {
            four sum;
            memcpy(&sum, &t->c[row][4 * half], sizeof(sum));
            for (unsigned k = 0; k < 8; k++) {
                four factor;
                memcpy(&factor, &t->b[k][4 * half], sizeof(factor));
                sum += t->a[row][k] * factor;
            }
            memcpy(&t->c[row][4 * half], &sum, sizeof(sum));
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
