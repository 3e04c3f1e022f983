/* text_number.c - numbers with fractions and exponents. */
#include "partition/text_number.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>

#define EXACT_DIGITS 15 /* whole numbers of so many, and powers of ten to 10^22, are exact as f64 */
#define EXACT_SCALE 22

/* Digits, a point, digits, e and an exponent as digits * 10^scale; NULL where there is no digit or they are too many to
 * be exact. Zeros in front count as digits. */
static const char *take_decimal(const char *text, uint64_t *digits, int *scale)
{
    const char *p = gs_text_digits(text, digits);
    ptrdiff_t count = p - text;

    *scale = 0;
    if (*p == '.') {
        const char *const fraction = p + 1;
        p = gs_text_digits(fraction, digits);
        *scale = -(int)(p - fraction);
        count += p - fraction;
    }
    if (count == 0 || count > EXACT_DIGITS)
        return NULL;
    if (*p == 'e' || *p == 'E') {
        const char sign = p[1], *const from = p + 1 + (sign == '-' || sign == '+');
        uint64_t e = 0;
        const char *const q = gs_text_digits(from, &e);
        if (q == from) /* the number ends before the e */
            return p;
        if (q - from > 3)
            return NULL;
        *scale += sign == '-' ? -(int)e : (int)e;
        p = q;
    }
    return p;
}

/* By strtod() or strtof(), which pass over blanks, and so over the end of a line. */
static double slow_real(const char *text, const char **after)
{
    char *end = (char *)(uintptr_t)text;
    const double v = isspace((unsigned char)*text) ? 0 : strtod(text, &end);
    *after = end;
    return v;
}

static float slow_real32(const char *text, const char **after)
{
    char *end = (char *)(uintptr_t)text;
    const float v = isspace((unsigned char)*text) ? 0 : strtof(text, &end);
    *after = end;
    return v;
}

/* A quotient or product of two exact numbers is the nearest one; whatever else there is, strtod() reads. */
double gs_text_real(const char *text, const char **after)
{
    static const double tens[EXACT_SCALE + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t digits = 0;
    int scale = 0;
    const char *const p = take_decimal(text + (*text == '-'), &digits, &scale);

    if (p == NULL || *p == 'x' || *p == 'X' || scale < -EXACT_SCALE || scale > EXACT_SCALE)
        return slow_real(text, after);
    *after = p;
    const double v = scale < 0 ? (double)digits / tens[-scale] : (double)digits * tens[scale];
    return *text == '-' ? -v : v;
}

/* Rounding twice errs only where the first rounding ends half way between two floats, or below the normal ones. */
float gs_text_real32(const char *text, const char **after)
{
    const double v = gs_text_real(text, after);
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    const uint64_t exponent = bits >> 52 & 2047;
    if ((bits & 0x1fffffff) == 0x10000000 || exponent < 1023 - 126 || exponent > 1023 + 127)
        return v == 0 && *after > text ? (float)v : slow_real32(text, after);
    return (float)v;
}
