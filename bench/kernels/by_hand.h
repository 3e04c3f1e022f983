/* by_hand.h - edge programs written out by hand, with vectors of 8: what the evaluator is measured against.
 *
 * One call does targets [first, end). Rows are 64 wide; attention has 8 heads of 8 columns. Registers
 * hold all of a target's sums; what is gathered is prefetched HAND_AHEAD edges ahead.
 */
#ifndef GS_BENCH_KERNELS_BY_HAND_H
#define GS_BENCH_KERNELS_BY_HAND_H

#include <stdint.h>

#define HAND_WIDTH 64
#define HAND_HEADS 8
#define HAND_AHEAD 12
#define HAND_ARRAYS 6

typedef struct hand_launch {
    uint32_t targets;
    const uint32_t *start, *index;
    const float *weight;
    const float *operand[HAND_ARRAYS], *target[HAND_ARRAYS]; /* in the order that each kernel says */
    float *acc[2], *maximum, *norm;
} hand_launch;

void hand_weighted(const hand_launch *l, uint32_t first, uint32_t end); /* operand: rows */
void hand_gated(const hand_launch *l, uint32_t first, uint32_t end);    /* operand: gate, rows; target: gate */
/* operand: a_src, rows; target: a_dst. Finished in the same call. */
void hand_attention(const hand_launch *l, uint32_t first, uint32_t end);
/* operand: a_dst, lse, mean, gradient; target: a_src, rows. acc: of scores, of rows. */
void hand_attention_by_source(const hand_launch *l, uint32_t first, uint32_t end);
/* operand: a_src, rows; target: a_dst, lse, mean, gradient. acc: of scores. */
void hand_attention_by_destination(const hand_launch *l, uint32_t first, uint32_t end);

#endif /* GS_BENCH_KERNELS_BY_HAND_H */
