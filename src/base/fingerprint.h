/* fingerprint.h - a number for many bytes that many threads can make at once: a sum of mixed words.
 *
 * Each word of 8 bytes is mixed with its place, which is one to one, and all are added up. So bytes that differ in one
 * word have another fingerprint for certain, and others but for one case in 2^64. A GPU makes the same number in one
 * pass (cuda/kernels/fixed.cu). It stands for bytes within a run and is in no file: the store has checksums (hash.h).
 */
#ifndef GS_BASE_FINGERPRINT_H
#define GS_BASE_FINGERPRINT_H

#include <stdint.h>

/* `data`: at a multiple of 8, and so is `bytes`. */
uint64_t gs_fingerprint64(const void *data, uint64_t bytes);

#endif /* GS_BASE_FINGERPRINT_H */
