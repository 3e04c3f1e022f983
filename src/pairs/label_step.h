/* label_step.h - a batch of pairs with labels: logits, loss, and the gradients of its rows.
 *
 * Logits of a pair are lin2(relu(lin1(x) + r)). x is its ends' rows one behind the other (PyG's EdgeDecoder), or their
 * product, element by element (OGB's LinkPredictor); r is the row of its type, where edges have types. Sums over pairs
 * are made in their order, so bits do not depend on threads. One thread calls; nothing is allocated after opening.
 */
#ifndef GS_PAIRS_LABEL_STEP_H
#define GS_PAIRS_LABEL_STEP_H

#include "device/cpu/kernels.h"
#include "pairs/decoder.h"
#include "pairs/pair_batch.h"
#include "pairs/perceptron.h"

typedef struct gs_label_step_options {
    bool product;              /* x is the product of both rows */
    bool classes;              /* a label is one of `columns` classes; else a number, and there is one column */
    gs_dtype label_type;       /* of numbers f32, or i32 of classes that stand for such */
    uint32_t width, columns;   /* of rows; of logits */
    bool of_types;             /* there are rows of types */
    uint32_t threads, most_pairs, most_rows;
    uint64_t mean_over;        /* pairs that the gradient's mean is over; 0: those of the batch */
} gs_label_step_options;

typedef struct gs_label_step {
    gs_label_step_options o;
    const gs_cpu_kernels *kernels;
    gs_perceptron perceptron;
    float *rows;     /* [most_rows, width] of the batch's vertices: whoever runs it writes them before */
    float *logit;    /* [most_pairs, columns] */
    float *d_rows;   /* [most_rows, width] */
    /* its own: */
    float *lin2;     /* [width, columns] transposed */
    float *product;  /* [most_pairs, width] with `product` */
    float *lin1;     /* of rows as heads, and behind them as tails, or of products; then gradients of these */
    float *hidden, *d_hidden, *d_logit; /* [most_pairs, width], twice; [most_pairs, columns] */
    uint8_t *split;  /* [most_pairs] */
    uint32_t *slot, *first, *order; /* [2 most_pairs] rows of lin1 that pairs have, and pairs by row */
} gs_label_step;

/* GS_ENOMEM; GS_EINVAL: GS_ISA. Release with gs_label_step_close() in any case. */
gs_status gs_label_step_open(gs_label_step *s, const gs_label_step_options *options);
void gs_label_step_close(gs_label_step *s);
uint64_t gs_label_step_bytes(const gs_label_step_options *options);

/* s->logit of the batch's pairs, by s->rows; of the batch it reads pairs, rows, .row and .pair. */
void gs_label_step_forward(gs_label_step *s, const gs_pair_batch *batch, const gs_decoder_values *values);
/* Adds to `m` what there is to say of these logits, as pairs of this split (gs_split). */
void gs_label_step_judge(gs_label_step *s, const gs_pair_batch *batch, uint8_t split, gs_metrics *m);
/* Forward and back: the sum of the losses in *loss_sum; gradients of their mean: of rows in s->d_rows, of the values
 * added to `d`. */
void gs_label_step_run(gs_label_step *s, const gs_pair_batch *batch, const gs_decoder_values *values,
                       const gs_decoder_values *d, double *loss_sum);

#endif /* GS_PAIRS_LABEL_STEP_H */
