/* kernels.h - the CPU device's inner loops, as a table for each instruction set.
 *
 * Every kernel works on one thread's share and knows nothing of threads. The
 * files kernels_*.c are compiled once for every instruction set; cpu.c
 * picks a table at run time. Pointers are aligned as their element type needs,
 * no more. Lengths are elements. A kernel may write in place where `dst` is
 * exactly an operand, and not where they overlap otherwise.
 */
#ifndef GS_DEVICE_CPU_KERNELS_H
#define GS_DEVICE_CPU_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "device/cpu/edge_plan.h"
#include "device/device.h"
#include "tensor/op.h"

/* How an operand stretches over [rows, width]; op.h, "Broadcast". */
typedef enum gs_cpu_shape {
    GS_CPU_FULL,   /* [rows, width] */
    GS_CPU_COLUMN, /* [rows, 1]: one number a row */
    GS_CPU_ROW,    /* [width]: the same row for all */
    GS_CPU_SCALAR, /* one number */
} gs_cpu_shape;

typedef struct gs_cpu_operand {
    const float *p;
    gs_cpu_shape shape;
} gs_cpu_operand;

/* Row e is at p + at[e] * stride; `half`: of bfloat16, two numbers in the place of a float. */
typedef struct gs_cpu_rows {
    const float *p;
    const uint32_t *at;
    size_t stride;
    bool half;
} gs_cpu_rows;

/* Block i of `from` counts weight[i * from_stride + j * to_stride] in block j of `to`, each of `each` columns. */
typedef struct gs_cpu_mix {
    const float *weight;
    uint32_t from, to, each, from_stride, to_stride;
} gs_cpu_mix;

/* Keys of a row's random numbers, besides the column: program.h, edge_mask. */
typedef struct gs_cpu_draws {
    const uint32_t *source, *destination; /* [rows] input ids */
    const uint32_t *rank, *type;          /* [rows], or NULL: 0 */
} gs_cpu_draws;

typedef struct gs_cpu_loss {
    const float *logits;  /* [rows, classes] */
    const void *label;    /* program.h, of label_type; classes outside [0, classes): not labelled */
    gs_dtype label_type;
    const uint8_t *split; /* [rows], gs_split */
    float *gradient;      /* [rows, classes], or NULL */
    uint32_t rows, classes;
    float scale;          /* of the gradient */
    float smoothing;
    const float *weight;  /* [classes] or NULL */
    const float *factor;  /* of training rows, or NULL: 1 */
    uint32_t *found;      /* gs_metrics.found, which all threads count in, or NULL */
} gs_cpu_loss;

/* How similar two rows are: their dot product; minus how far they lie apart; or the dot product of `weight` and what of
 * their sum is above 0. */
typedef enum gs_cpu_similarity { GS_CPU_DOT, GS_CPU_DISTANCE, GS_CPU_RELU } gs_cpu_similarity;

/* Scores of rows with each other: query q with candidate c. A score has the same bits wherever its candidate stands in
 * the panel. */
typedef struct gs_cpu_pairs {
    float *score;         /* [queries] rows, `stride` apart, of vectors * lanes */
    size_t stride;
    const float *query;   /* [queries, width] */
    const float *panel;   /* [vectors][width][lanes] */
    uint32_t queries, vectors, width;
    gs_cpu_similarity similarity;
    const float *weight;  /* [width] of RELU */
} gs_cpu_pairs;

/* Row r gets coefficient[r * by_row + k * by_other] times row k of `other`, [others, width]. */
typedef struct gs_cpu_pair_mix {
    const float *coefficient, *other;
    size_t by_row, by_other;
    uint32_t rows, others, width;
} gs_cpu_pair_mix;

/* Of GS_CPU_RELU, from the derivatives by scores, coefficient[queries] rows `stride` apart, of `others` numbers: adds
 * those by both rows and by the weight. */
typedef struct gs_cpu_pair_relu {
    const float *coefficient, *query, *other, *weight; /* [queries, width], [others, width], [width] */
    size_t stride;
    float *d_query, *d_other, *d_weight;
    uint32_t queries, others, width;
} gs_cpu_pair_relu;

typedef struct gs_cpu_kernels {
    const char *name; /* "AVX2" */
    uint32_t lanes;   /* floats of a vector */
    const uint32_t *row_numbers; /* [GS_CPU_TILE_EDGES] 0, 1, 2, ...: `at` of rows one after the other */

    /* dst[rows, width] = op(a, b, ...), for operators of form EACH and two or three operands. */
    void (*each)(gs_op op, float *dst, const gs_cpu_operand *operand, uint32_t rows, uint32_t width);
    /* dst[n] = op(a[n]), for operators of form EACH and one operand. */
    void (*unary)(gs_op op, float *dst, const float *a, size_t n, float alpha);
    void (*rowsum)(float *dst, const float *a, uint32_t rows, uint32_t width);
    void (*rowmax)(float *dst, const float *a, uint32_t rows, uint32_t width);
    void (*colsum)(float *acc, const float *a, uint32_t rows, uint32_t width); /* acc[width] += */
    /* sums[0, width) += the rows of a; with `squares` sums[width, 2 * width) += their squares. */
    void (*moments)(double *sums, bool squares, const float *a, uint32_t rows, uint32_t width);
    /* dst[rows, groups]: sums of `each` columns of a, [groups * each], or of a * b where b is not NULL. */
    void (*fold)(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t rows, uint32_t groups, uint32_t each);
    /* dst[rows, groups * each] = each number of a, [groups], `each` times. */
    void (*expand)(float *dst, const gs_cpu_rows *a, uint32_t rows, uint32_t groups, uint32_t each);
    /* dst[rows, to * each], a[rows, from * each]. */
    void (*mix)(float *dst, const float *a, const gs_cpu_mix *m, uint32_t rows);
    /* sum[m, n] += dot products of the blocks of a [rows, m * each] with those of b [rows, n * each]. */
    void (*mix_outer)(float *sum, const float *a, const float *b, uint32_t rows, uint32_t m, uint32_t n, uint32_t each);
    /* From the types gs_cpu__can_cast() names. */
    void (*cast)(float *dst, const void *src, gs_dtype from, size_t n);
    /* To bf16, the nearest, ties to even, as gs_bf16_from_f32() does. */
    void (*round)(uint16_t *dst, const float *src, size_t n);
    /* id[rows]: input ids. */
    void (*dropout)(const gs_cpu_dropout *d, float *dst, const float *src, const uint32_t *id, uint32_t rows,
                    uint32_t width);
    /* dst[rows, width] = 0 or the scale. */
    void (*mask)(const gs_cpu_dropout *d, float *dst, const gs_cpu_draws *w, uint32_t rows, uint32_t width);
    void (*loss[GS_LOSSES])(const gs_cpu_loss *x, gs_metrics *m); /* add to m */

    /* Targets [first, end) of the launch, columns [column, column + columns) of their rows. */
    void (*edges)(const gs_edge_launch *l, uint32_t first, uint32_t end, uint32_t column, uint32_t columns);
    void (*typed)(const gs_edge_launch *l, uint32_t first, uint32_t end, uint32_t column, uint32_t columns);
    void (*add_own)(const gs_own_launch *l, uint64_t first, uint64_t end); /* rows [first, end) */
    /* Edge programs: edge_plan.h. */
    void (*edge_program)(const gs_cpu_edge_plan *plan, const gs_cpu_edge_work *work);
    /* dst[rows, out] = (adds: +=) a[rows, in] by matrix[in, out], of at most GS_CPU_TILE_EDGES rows: the bits of edge
     * programs. */
    void (*by_matrix)(float *dst, const float *a, const float *matrix, uint32_t rows, uint32_t in, uint32_t out,
                      bool adds);
    /* sum[in, out] += the products of column i of a, a_stride apart, with column j of b [rows, out]. */
    void (*outer)(float *sum, const float *a, uint32_t a_stride, const float *b, uint32_t rows, uint32_t in,
                  uint32_t out);
    /* acc[rows, width] / norm, maximum + log(norm), of `heads` heads; norm is scratch afterwards. */
    void (*finish_attend)(const gs_accumulator *sum, uint32_t rows, uint32_t width, uint32_t heads);
    /* One step of an LSTM. gate[rows, 4 * width] comes as sums and leaves as sigmoid(i), sigmoid(f), tanh(g),
     * sigmoid(o); cell = f before + i g; state = o tanh(cell), unless `state` is NULL. `cell` may be `before`. */
    void (*lstm_step)(float *gate, const float *before, float *cell, float *state, uint32_t rows, uint32_t width);
    /* Its derivative: gate comes as it left and becomes the sums' gradient; d_state: of the state after the
     * step, only read; d_cell: after the step, becomes that before it. */
    void (*lstm_back)(float *gate, const float *before, const float *cell, const float *d_state, float *d_cell,
                      uint32_t rows, uint32_t width);
    void (*add)(float *acc, const float *src, size_t n);
    /* acc[n] += each of `rows` rows, `stride` floats apart, in their order. */
    void (*add_rows)(float *acc, const float *src, uint64_t stride, uint32_t rows, size_t n);
    /* panel[ceil(rows / lanes)][width][lanes] = rows of `from` [rows, width] side by side, zeros behind the last. */
    void (*pair_pack)(float *panel, const float *from, uint32_t rows, uint32_t width);
    void (*pair_scores)(const gs_cpu_pairs *p);
    void (*pair_mix)(float *out, const gs_cpu_pair_mix *m); /* out[rows, width] += */
    void (*pair_relu)(const gs_cpu_pair_relu *p);
    /* Reads table rows index[0..n), prefetching `ahead` rows ahead; returns a number that depends on all of them. */
    float (*gather)(const float *table, const uint32_t *index, size_t n, uint32_t width, uint32_t ahead);
} gs_cpu_kernels;

/* The kernels among its entries, but for those of losses. */
#define GS_CPU_KERNELS(X) \
    X(each) X(unary) X(rowsum) X(rowmax) X(colsum) X(moments) X(fold) X(expand) X(mix) \
    X(mix_outer) X(cast) X(round) X(dropout) X(mask) X(edges) X(typed) X(add_own) \
    X(edge_program) X(by_matrix) X(outer) X(finish_attend) X(lstm_step) X(lstm_back) X(add) X(add_rows) \
    X(pair_pack) X(pair_relu) X(pair_scores) X(pair_mix) X(gather)

/* The best ones that this processor and GS_ISA allow. GS_EINVAL: GS_ISA is unknown. */
gs_status gs_cpu_kernels_find(const gs_cpu_kernels **out);

static inline bool gs_cpu__can_cast(gs_dtype from)
{
    return gs_dtype_is_feature(from) || from == GS_U8 || from == GS_U16 || from == GS_U32 || from == GS_I32;
}

#endif /* GS_DEVICE_CPU_KERNELS_H */
