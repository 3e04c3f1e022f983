/* sort.h - stable radix sorts of edges as integers. */
#ifndef GS_PARTITION_SORT_H
#define GS_PARTITION_SORT_H

#include <stdint.h>

typedef struct gs_part_key16 {
    uint64_t key;
    uint32_t type;
    float weight;
} gs_part_key16;

/* Stable radix sorts by the lowest `bits` of the key; `spare` is as long as
 * `data`. They return where the result is: one of the two. key16: by key's
 * bits above `low`, then type, then key's `low` bits, then weight. */
uint64_t *gs_part__sort8(uint64_t *data, uint64_t *spare, uint64_t n, uint32_t bits);
gs_part_key16 *gs_part__sort16(gs_part_key16 *data, gs_part_key16 *spare, uint64_t n, uint32_t bits,
                               uint32_t low, uint32_t type_bits);

#endif /* GS_PARTITION_SORT_H */
