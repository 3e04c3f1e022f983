/* epoch_order.h - an epoch's order: which of n things comes at place i? A permutation that is computed, not stored. */
#ifndef GS_SAMPLE_EPOCH_ORDER_H
#define GS_SAMPLE_EPOCH_ORDER_H

#include <stdint.h>

#define GS_ORDER_ROUNDS 8u

typedef struct gs_order {
    uint32_t n;
    uint32_t low_bits, high_bits;      /* of the two halves of a place */
    uint32_t key[GS_ORDER_ROUNDS];     /* of each round */
} gs_order;

gs_order gs_order_of(uint64_t seed, uint32_t epoch, uint32_t n);
/* i < n; another i gives another thing. */
uint32_t gs_order_at(const gs_order *o, uint32_t i);

#endif /* GS_SAMPLE_EPOCH_ORDER_H */
