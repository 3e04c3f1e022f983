/* step.h - an instruction of a vertex program with everything looked up. resolve.c makes them, vertex.c and gemm.c run
 * them. */
#ifndef GS_DEVICE_CPU_STEP_H
#define GS_DEVICE_CPU_STEP_H

#include "device/cpu/kernels.h"

#define GS_CPU_STEP_REGS 4

/* A register's memory as a step sees it. */
typedef struct gs_cpu_range {
    const char *p;
    uint64_t row_bytes;
} gs_cpu_range;

/* The parameter of a product, [rows, cols]. */
typedef struct gs_cpu_weight {
    const float *at;
    uint32_t rows, cols;
    uint32_t matrices;       /* FAN...: in the parameter, one above the other */
    const float *transposed; /* MATMUL_T, FAN, FAN_T: the weight as [a_width, width], or NULL */
} gs_cpu_weight;

/* What a step begins: steps whose partial sums are of the same lots, and among those, steps that take the same rows one
 * after the other. */
typedef struct gs_cpu_run {
    uint32_t end;            /* the step after its last one */
    uint64_t partial;        /* floats of a lot's partial sums */
    uint32_t cheap_end;      /* first of a sequence without products: the step after it ... */
    uint32_t block_rows;     /* ... and the rows at a time that stay in the cache */
} gs_cpu_run;

/* An instruction with everything looked up. Pointers are those of row 0. */
typedef struct gs_cpu_step {
    gs_op op;
    uint32_t width;          /* of dst; REDUCE and losses: of a */
    float *dst;              /* NULL where the result is no register */
    gs_cpu_operand a, b, c;  /* elementwise; FOLD: b as well where it is of products */
    const void *source;      /* CAST: a */
    gs_dtype source_type;    /* losses: of the labels */
    uint16_t *rounded;       /* ROUND: dst, bf16 */
    uint32_t a_width;        /* ROWSUM, columns, and products: of a */
    uint32_t first;          /* PART: column */
    const void *id, *split;  /* DROPOUT, losses: b (ids, labels) and c; EDGE_MASK: b and a */
    float alpha;
    gs_cpu_dropout dropout;
    gs_cpu_weight weight;    /* products */
    bool adds;               /* products: to what is in dst */
    bool joined;             /* ADD: the products that it adds up have done so; MUL: the FOLD behind it does so */
    gs_cpu_mix mix;          /* MIX, MIX_T; MIX_OUTER: `each` alone */
    float *grad;             /* REDUCE */
    double *statistic;       /* STATISTIC: [2 * width] */
    uint64_t partial;        /* COLSUM, STATISTIC, OUTER within a run: first float within a lot's sums */
    gs_cpu_range reg[GS_CPU_STEP_REGS]; /* dst first where there is one */
    uint32_t regs;
    gs_cpu_run run;          /* the first step of one */
} gs_cpu_step;

#endif /* GS_DEVICE_CPU_STEP_H */
