#include "base/radix.h"

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
