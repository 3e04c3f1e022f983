/* radix.h - an order by 32-bit keys, in linear time. */
#ifndef GS_BASE_RADIX_H
#define GS_BASE_RADIX_H

#include <stdint.h>

/* order[n] = the numbers below n by ascending key[n]; those of equal keys ascend. spare[n] is scratch. */
void gs_radix_order(uint32_t *order, uint32_t *spare, const uint32_t *key, uint32_t n);

#endif /* GS_BASE_RADIX_H */
