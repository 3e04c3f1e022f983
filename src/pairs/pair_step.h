/* pair_step.h - a batch of pairs: scores, loss, and the gradients of its rows.
 *
 * Groups are dealt to threads; each writes the gradients of its own slots, which are added up by row in the order of
 * slots. So bits do not depend on threads. One thread calls; nothing is allocated after opening.
 */
#ifndef GS_PAIRS_PAIR_STEP_H
#define GS_PAIRS_PAIR_STEP_H

#include "base/alloc.h"
#include "device/cpu/kernels.h"
#include "pairs/decoder.h"
#include "pairs/pair_batch.h"

/* Of a pair with score s and its wrong ones with scores n[k], K of them:
 *   SOFTMAX   log(exp(s) + sum of exp(n[k])) - s
 *   LOGISTIC  log(1 + exp(-s)) + the mean of log(1 + exp(n[k])), halved: of one negative, binary cross-entropy
 *   MARGIN    the mean of max(0, margin - s + n[k])
 * A negative that is the pair's own other end is none. Words of .loss in this order, behind those of labels. */
typedef enum gs_pair_loss { GS_PAIR_SOFTMAX, GS_PAIR_LOGISTIC, GS_PAIR_MARGIN } gs_pair_loss;

typedef struct gs_pair_step_options {
    const gs_decoder *decoder;
    gs_pair_loss loss;
    float margin;
    bool asks[2];
    uint32_t width, types;     /* of rows; rows of types, 1 at least */
    uint32_t threads, negatives;
    uint32_t most_pairs, most_slots, most_rows;
    uint64_t mean_over;        /* pairs that the gradient's mean is over; 0: those of the batch */
} gs_pair_step_options;

typedef struct gs_pair_step {
    gs_pair_step_options o;
    const gs_cpu_kernels *kernels;
    uint32_t columns;    /* negatives, in whole vectors */
    float *rows;         /* [most_rows, width] of the batch's vertices: whoever runs it writes them before */
    float *d_slot;       /* [most_slots, width] */
    float *d_type;       /* [most_pairs, width], with `of_types` */
    /* of a decoder that projects: rows as heads and behind them as tails, of which slots name one; then gradients */
    gs_perceptron perceptron;
    float *projected;    /* [2 * most_rows, width] */
    uint32_t *projected_row; /* [most_slots] */
    float *d_rows;       /* [most_rows, width] */
    float *d_lin2;       /* [groups, width + 1] with the bias */
    const float *scored; /* the rows that slots name, */
    const uint32_t *row; /* [slots] and their numbers */
    double *loss;        /* [groups] */
    uint32_t *first, *order; /* [rows + 1], [most_slots] slots by scored row; of types [types + 1] pairs */
    uint32_t *type_first, *type_order;
    uint8_t *scratch;    /* of all threads */
    uint64_t scratch_bytes; /* of one */
    gs_arena arrays;
} gs_pair_step;

/* Places 0 to count - 1 by a number of theirs, number[k * stride], stable: those of number r are order[first[r]] to
 * order[first[r + 1] - 1]. */
void gs_pair_sort(uint32_t *first, uint32_t *order, const uint32_t *number, uint64_t stride, uint32_t count,
                  uint32_t numbers);

/* GS_ENOMEM; GS_EINVAL: GS_ISA. Release with gs_pair_step_close() in any case. */
gs_status gs_pair_step_open(gs_pair_step *s, const gs_pair_step_options *options);
void gs_pair_step_close(gs_pair_step *s);
uint64_t gs_pair_step_bytes(const gs_pair_step_options *options);

/* Of s->rows and the decoder's values: the mean loss over pairs and given ends, times `pairs * ends` in *loss_sum;
 * gradients of the mean: of row r at gs_pair_step_gradient(), of the values added to `d`. */
void gs_pair_step_run(gs_pair_step *s, const gs_pair_batch *batch, const gs_decoder_values *values,
                      const gs_decoder_values *d, double *loss_sum);
/* Of a batch that ran: the gradient of row r, [width]. */
static inline const float *gs_pair_step_gradient(const gs_pair_step *s, uint32_t row)
{
    return s->d_rows != NULL ? s->d_rows + (uint64_t)row * s->o.width
                             : s->d_slot + (uint64_t)s->order[s->first[row]] * s->o.width;
}

/* -- a batch of pairs with labels: logits, loss, and the gradients of its rows.
 *
 * Logits of a pair are lin2(relu(lin1(x) + r)). x is its ends' rows one behind the other (PyG's EdgeDecoder), or their
 * product, element by element (OGB's LinkPredictor); r is the row of its type, where edges have types. Sums over pairs
 * are made in their order, so bits do not depend on threads. One thread calls; nothing is allocated after opening.
 */

typedef struct gs_label_step_options {
    bool product;              /* x is the product of both rows */
    gs_loss loss;              /* of classes, whose number is `columns`; or of numbers, and there is one column */
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

#endif /* GS_PAIRS_PAIR_STEP_H */
