/* steps.h - an instruction of a vertex program with everything looked up, and how many of them run together. steps.c
 * makes them, vertex.c and gemm.c run them. */
#ifndef GS_DEVICE_CPU_STEPS_H
#define GS_DEVICE_CPU_STEPS_H

#include "device/cpu/cpu.h"

#define GS_CPU_STEP_REGS 4

/* Which rows of a temporary register's memory a thread uses. A temporary that no other run reads needs rows of its own
 * for as long as its thread is busy with a part or a strip: the thread takes the same few rows each time, which so stay
 * in its cache. */
typedef enum gs_cpu_window {
    GS_CPU_WHOLE,        /* each row of the launch has its own */
    GS_CPU_STRIP_WINDOW, /* an outer product reads it, or stands between its steps */
    GS_CPU_PART_WINDOW
} gs_cpu_window;

/* A register's memory as a step sees it. */
typedef struct gs_cpu_range {
    const char *p;
    uint64_t row_bytes;
    bool temporary; /* not stored */
    gs_cpu_window window;
} gs_cpu_range;

/* The parameter of a product, [rows, cols]. */
typedef struct gs_cpu_weight {
    const float *at;
    uint32_t rows, cols;
    uint32_t matrices;       /* FAN...: in the parameter, one above the other */
    uint32_t first, some;    /* MATMUL, MATMUL_T: a goes by the part from this row or column on; OUTER: its gradient has
                              * `some` columns from this one on, the others are 0 */
    const float *transposed; /* MATMUL_T, FAN, FAN_T: the weight as [a_width, width], or NULL */
    const uint32_t *pairs;   /* the same of all products where they round, in pairs of bf16 */
    const gs_cpu_bf16 *bf16; /* NULL: they do not */
} gs_cpu_weight;

/* What a step begins: steps whose partial sums are of the same lots, and among those, steps that take the same rows one
 * after the other. */
typedef struct gs_cpu_run {
    uint32_t end;            /* the step after its last one */
    uint64_t partial;        /* floats of a lot's partial sums */
    uint32_t cheap_end;      /* first of a sequence without products: the step after it ... */
    uint32_t block_rows;     /* ... and the rows at a time that stay in the second-level cache */
} gs_cpu_run;

/* An instruction with everything looked up. Pointers are those of row 0. */
struct gs_cpu_step {
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
    bool joined;             /* ADD: the products that it adds up have done so; MUL: the FOLD behind it does so; CONCAT:
                              * the product behind it takes one side; EXPAND: nothing reads it */
    gs_cpu_mix mix;          /* MIX, MIX_T; MIX_OUTER: `each` alone */
    float *grad;             /* REDUCE */
    double *statistic;       /* STATISTIC: [2 * width] */
    uint64_t partial;        /* COLSUM, STATISTIC, OUTER within a run: first float within a lot's sums */
    gs_cpu_range reg[GS_CPU_STEP_REGS]; /* dst first where there is one */
    uint32_t regs;
    bool windows;            /* some of them have one */
    gs_cpu_run run;          /* the first step of one */
};

/* ---- partial sums ---- */

#define GS_CPU_LOTS_LEAST 16u /* where there are as many strips */

/* Lots that a run with `floats` partial sums each may have. */
uint32_t gs_cpu__most_lots(uint64_t floats);
/* Is the gradient small enough, beside so many rows, for each lot to have one of its own? */
bool gs_cpu__outer_is_small(uint32_t out, uint32_t in, uint32_t rows);
/* Floats of a lot's partial sums for an operator into a parameter [rows, cols]: of COLSUM also those of the part that
 * it is busy with, of statistics two doubles a column, of losses what they add up of columns. Even, so that doubles
 * are aligned. */
static inline uint64_t gs_cpu__lot_floats(gs_op op, uint32_t rows, uint32_t cols)
{
    const uint64_t n = (uint64_t)rows * cols;
    if (gs_op_has_column_sums(op))
        return 2 * n * GS_LOSS_SPLITS * GS_LOSS_SUMS;
    return op == GS_OP_COLSUM ? 2 * n : gs_op_is_outer(op) ? n + n % 2 : 4 * n;
}
/* Does it have partial sums? */
static inline bool gs_cpu__has_partial(gs_op op) { return gs_op_into_param(op) || gs_op_has_column_sums(op); }
/* Floats that a launch may need for partial sums of `floats` a lot. */
uint64_t gs_cpu__partial_floats(uint64_t floats);

/* ---- runs ---- */

static inline bool gs_cpu__is_product(gs_op op)
{
    return op == GS_OP_MATMUL || op == GS_OP_MATMUL_T || op == GS_OP_FAN || op == GS_OP_FAN_T;
}

/* An outer product over `rows` that is a run of its own: all threads compute it together. */
bool gs_cpu__stands_alone(const gs_cpu_step *s, uint32_t rows);

/* Fills cpu->step for a launch; GS_EINVAL names the stage and the instruction that the launch lacks something for. */
gs_status gs_cpu__resolve(gs_cpu *cpu, const gs_vertex_launch *l);

#endif /* GS_DEVICE_CPU_STEPS_H */
