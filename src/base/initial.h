/* initial.h - what numbers a learned tensor starts as: the same for all elements, or drawn from one distribution. */
#ifndef GS_BASE_INITIAL_H
#define GS_BASE_INITIAL_H

#include <stdint.h>

typedef enum gs_initial_rule {
    GS_INITIAL_GLOROT,  /* U(-a, a), a = sqrt(6 / (n + m)) of the last two dimensions n, m: PyG's inits.glorot */
    GS_INITIAL_UNIFORM, /* U(-number, number) */
    GS_INITIAL_NORMAL,  /* N(0, number^2) */
    GS_INITIAL_FILL,    /* `number` everywhere */
} gs_initial_rule;

typedef struct gs_initial {
    gs_initial_rule rule;
    double number;
} gs_initial;

/* torch.nn.Linear's rule, of weights and biases, and that of its LSTM and GRU: U(-a, a), a = 1 / sqrt(fan). */
gs_initial gs_initial_fan_in(uint32_t fan);
/* PyG's inits.glorot() of a matrix [n, m], as the rule UNIFORM. */
gs_initial gs_initial_glorot(uint32_t n, uint32_t m);
/* Two numbers from 64 random bits. Not for GLOROT. */
void gs_initial_draw(float pair[2], const gs_initial *from, const uint32_t word[2]);

#endif /* GS_BASE_INITIAL_H */
