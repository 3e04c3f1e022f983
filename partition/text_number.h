/* text_number.h - numbers out of a text, eight digits at a time.
 *
 * Texts have GS_TEXT_PADDING readable bytes behind their last one, and end in something that is no digit. */
#ifndef GS_PARTITION_TEXT_NUMBER_H
#define GS_PARTITION_TEXT_NUMBER_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define GS_TEXT_PADDING 8u

/* How many of the eight characters in `x` are digits, from the lowest byte on; x holds them less '0'. */
static inline uint32_t gs_text__digits_of(uint64_t x)
{
    const uint64_t others = ((x + 0x7676767676767676u) | x) & 0x8080808080808080u;
    return others == 0 ? 8 : (uint32_t)__builtin_ctzll(others) / 8;
}

/* The number that the lowest `count` bytes of x are digits of, 1 to 8: neighbours are joined to pairs, pairs to fours.
 * Digits move up so that what is missing in front is zeros. */
static inline uint32_t gs_text__value_of(uint64_t x, uint32_t count)
{
    x <<= 64 - 8 * count;
    x = x * 10 + (x >> 8);
    return (uint32_t)(((x & 0x000000ff000000ffu) * 0x000f424000000064u +
                       ((x >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >> 32);
}

/* Appends the digits at p to *value, which wraps past 19 of them; gives where they end. */
static inline const char *gs_text_digits(const char *p, uint64_t *value)
{
    static const uint32_t tens[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

    for (;;) {
        uint64_t x;
        memcpy(&x, p, sizeof(x));
        x = le64toh(x) ^ 0x3030303030303030u;
        const uint32_t count = gs_text__digits_of(x);
        if (count == 0)
            return p;
        *value = *value * tens[count] + gs_text__value_of(x, count);
        p += count;
        if (count < 8)
            return p;
    }
}

/* The nearest number; *after is where it ends, `text` where there is none. As strtod(), but for blanks in front, which
 * it does not pass over: that a line ends is seen. */
double gs_text_real(const char *text, const char **after);
/* The nearest of type float, which is not always the one nearest to the nearest double. */
float gs_text_real32(const char *text, const char **after);

#endif /* GS_PARTITION_TEXT_NUMBER_H */
