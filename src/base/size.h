/* size.h - sizes: checked arithmetic, alignment, order and bisection, sets of bits, and "256M" in and out.
 * Units: bytes unless a name says otherwise. */
#ifndef GS_BASE_SIZE_H
#define GS_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>


#define GS_KIB UINT64_C(1024)
#define GS_MIB (1024 * GS_KIB)
#define GS_GIB (1024 * GS_MIB)
#define GS_BLOCK_BYTES UINT64_C(4096) /* alignment of everything under O_DIRECT */

#define GS_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define GS_MIN(a, b) ((a) < (b) ? (a) : (b))
#define GS_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Moves `low` up to the first number of which `is_before`, a condition of `middle`, does not hold, or to `high`: it
 * holds of all numbers before one, and of none from there on. `high` is the same then. */
#define GS_BISECT(low, high, is_before)                              \
    while ((low) < (high)) {                                         \
        const __typeof__(low) middle = (low) + ((high) - (low)) / 2; \
        if (is_before)                                               \
            (low) = middle + 1;                                      \
        else                                                         \
            (high) = middle;                                         \
    }

/* For qsort() of doubles, and of numbers of 32 bits. */
static inline int gs_by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline int gs_by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* order[n] = the numbers below n by ascending key[n]; those of equal keys ascend. spare[n] is scratch. */
void gs_radix_order(uint32_t *order, uint32_t *spare, const uint32_t *key, uint32_t n);

static inline uint64_t gs_div_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }
/* `align` is a power of two. */
static inline uint64_t gs_align_down(uint64_t v, uint64_t align) { return v & ~(align - 1); }
static inline uint64_t gs_align_up(uint64_t v, uint64_t align) { return (v + align - 1) & ~(align - 1); }

/* The first place in [at, end) whose bit is `set`; `end`: none is. */
static inline uint64_t gs_next_bit(const uint64_t *bits, uint64_t at, uint64_t end, bool set)
{
    for (; at < end; at = (at / 64 + 1) * 64) {
        const uint64_t word = (set ? bits[at / 64] : ~bits[at / 64]) >> (at % 64);
        if (word != 0)
            return GS_MIN(at + (uint64_t)__builtin_ctzll(word), end);
    }
    return end;
}

/* false on overflow, and *out is then untouched. */
static inline bool gs_mul_u64(uint64_t *out, uint64_t a, uint64_t b)
{
    uint64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}
/* UINT64_MAX on overflow. */
static inline uint64_t gs_mul_capped(uint64_t a, uint64_t b)
{
    uint64_t r;
    return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}
static inline bool gs_add_u64(uint64_t *out, uint64_t a, uint64_t b)
{
    uint64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

#endif /* GS_BASE_SIZE_H */
