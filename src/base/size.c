#include "base/size.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"

/* Ten to this is the finest fraction that counts: "0.1G" is exact to a byte. */
#define FRACTION_DIGITS 18

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The power of two of "", "B", "K", "KB", "KiB", ... in any case; false for anything else. */
static bool unit_shift(unsigned *shift, const char *unit)
{
    static const char letters[] = "KMGTPE";

    *shift = 0;
    if (unit[0] == '\0' || strcasecmp(unit, "b") == 0)
        return true;
    for (unsigned i = 0; letters[i] != '\0'; i++)
        if (strncasecmp(unit, &letters[i], 1) == 0)
            *shift = 10 * (i + 1);
    return *shift > 0 &&
           (unit[1] == '\0' || strcasecmp(unit + 1, "b") == 0 || strcasecmp(unit + 1, "ib") == 0);
}

static gs_status not_a_size(const char *text)
{
    return gs_fail(GS_EINVAL, "\"%.64s\" is not a size: write a number and K, M, G or T, as in 512M or 1.5G", text);
}

gs_status gs_size_parse(uint64_t *out, const char *text)
{
    const char *p;
    uint64_t whole = 0, part = 0, part_of = 1;
    bool fits = true;
    unsigned shift;

    GS_TRY(gs_check_argument(out, "out"));
    GS_TRY(gs_check_argument(text, "text"));
    p = text;
    if (*p == '-')
        return gs_fail(GS_EINVAL, "\"%.64s\" is not a size: it is negative", text);
    if (!is_digit(*p))
        return not_a_size(text);
    for (; is_digit(*p); p++)
        fits = fits && gs_mul_u64(&whole, whole, 10) && gs_add_u64(&whole, whole, (uint64_t)(*p - '0'));

    const bool fraction = *p == '.';
    if (fraction && !is_digit(*++p))
        return not_a_size(text);
    for (int digits = 0; is_digit(*p); p++, digits++) {
        if (!fraction || digits >= FRACTION_DIGITS)
            continue;
        part = part * 10 + (uint64_t)(*p - '0');
        part_of *= 10;
    }

    if (*p == ' ')
        p++;
    if (!unit_shift(&shift, p) || (p[0] == '\0' && p[-1] == ' '))
        return not_a_size(text);
    if (shift == 0 && part != 0)
        return gs_fail(GS_EINVAL, "\"%.64s\" is not a size: it is not a whole number of bytes", text);

    const unsigned __int128 bytes =
        ((unsigned __int128)whole << shift) + (((unsigned __int128)part << shift) / part_of);
    if (!fits || bytes > UINT64_MAX)
        return gs_fail(GS_EINVAL, "\"%.64s\" is not a size: it is more than 2^64 bytes", text);
    *out = (uint64_t)bytes;
    return GS_OK;
}

char *gs_size_format(char *buf, size_t cap, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes / 1024.0;
    size_t u = 0;

    if (buf == NULL || cap == 0)
        return buf;
    if (bytes < 1024) {
        snprintf(buf, cap, "%u B", (unsigned)bytes);
        return buf;
    }
    /* 1023.95 would print as 1024.0 of the smaller unit. */
    while (value >= 1023.95 && u + 1 < GS_ARRAY_LEN(units)) {
        value /= 1024.0;
        u++;
    }
    snprintf(buf, cap, "%.1f %s", value, units[u]);
    return buf;
}

void gs_radix_order(uint32_t *order, uint32_t *spare, const uint32_t *key, uint32_t n)
{
    uint32_t *from = order, *to = spare; /* an even number of passes ends where it began */

    for (uint32_t i = 0; i < n; i++)
        from[i] = i;
    for (uint32_t shift = 0; shift < 32; shift += 8) { /* the least significant byte first */
        uint32_t next[257] = {0};
        for (uint32_t i = 0; i < n; i++)
            next[(key[i] >> shift & 255) + 1]++;
        for (uint32_t d = 0; d < 256; d++)
            next[d + 1] += next[d];
        for (uint32_t i = 0; i < n; i++)
            to[next[key[from[i]] >> shift & 255]++] = from[i];
        uint32_t *const swap = from;
        from = to;
        to = swap;
    }
}
