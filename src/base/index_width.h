/* index_width.h - numbers of rows and of edge types, in as few bytes each as a chunk of edges needs.
 *
 * Views of chunks have their arrays const; whoever fills a chunk writes through them.
 */
#ifndef GS_BASE_INDEX_WIDTH_H
#define GS_BASE_INDEX_WIDTH_H

#include <stdint.h>

#define GS_INDEX_INLINE static inline __attribute__((always_inline))

/* Row `k` of a list, of 2 or 4 bytes each. */
GS_INDEX_INLINE uint32_t gs_index_at(const void *list, uint32_t bytes, uint64_t k)
{
    return bytes == 2 ? ((const uint16_t *)list)[k] : ((const uint32_t *)list)[k];
}

GS_INDEX_INLINE void gs_index_put(const void *list, uint32_t bytes, uint64_t k, uint32_t row)
{
    if (bytes == 2)
        ((uint16_t *)(uintptr_t)list)[k] = (uint16_t)row;
    else
        ((uint32_t *)(uintptr_t)list)[k] = row;
}

/* The type of edge `k`, of 1, 2 or 4 bytes each. */
GS_INDEX_INLINE uint32_t gs_type_at(const void *list, uint32_t bytes, uint64_t k)
{
    return bytes == 1   ? ((const uint8_t *)list)[k]
           : bytes == 2 ? ((const uint16_t *)list)[k]
                        : ((const uint32_t *)list)[k];
}

/* Of 1 or 2 bytes, as chunks have them. */
GS_INDEX_INLINE void gs_type_put(const void *list, uint32_t bytes, uint64_t k, uint32_t type)
{
    if (bytes == 1)
        ((uint8_t *)(uintptr_t)list)[k] = (uint8_t)type;
    else
        ((uint16_t *)(uintptr_t)list)[k] = (uint16_t)type;
}

#undef GS_INDEX_INLINE

#endif /* GS_BASE_INDEX_WIDTH_H */
