/* learned.h - which labels are learned, and how much does each of them count?
 *
 * The task and the options' weights are known when a session is prepared; how many labels there are, and how they are
 * spread, once it starts, by one reading of the labels. One thread.
 */
#ifndef GS_SESSION_LEARNED_H
#define GS_SESSION_LEARNED_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"
#include "gnnstream_options.h"
#include "tensor/op.h"

typedef struct gs_session gs_session;

/* Number and spread of the known labels of one column in one split. */
typedef struct gs_label_moments {
    double count, mean, squares; /* sum of squared distances from the mean */
} gs_label_moments;

/* One label more: Welford's running mean. */
static inline void gs_label_moments_add(gs_label_moments *m, double value)
{
    const double off = value - m->mean;

    m->count += 1;
    m->mean += off / m->count;
    m->squares += off * (value - m->mean);
}

typedef struct gs_session_labels {
    gs_train_task task;
    gs_loss loss;
    uint32_t columns;        /* of the logits */
    float *weight;           /* [columns] or NULL: of classes, or of labels that are there */
    bool balanced;           /* weights by how often what they weigh occurs among the training vertices */
    double mass;             /* what the mean of the loss is over; 0: no training labels */
    gs_label_moments *moments; /* [GS_LOSS_SPLITS][columns]; NULL: of classes where nothing asks for them */
} gs_session_labels;

/* Is a run of these options of pairs of vertices? */
bool gs_train_is_of_pairs(const gs_train_options *o);
/* Once the store is open: the task, its loss, and the weights of the options. GS_EINVAL, GS_EUNSUPPORTED where labels
 * and options contradict each other; GS_ENOTFOUND, GS_EFORMAT of a file of weights. */
gs_status gs_session_choose_task(gs_session *s);
/* The loss that the options name, or the task's own. GS_EINVAL: it is of another task. */
gs_status gs_session_find_loss(gs_loss *out, const gs_train_options *options, gs_train_task task);
/* Counts them. Blocks while it reads. */
gs_status gs_session_read_labels(gs_session *s);
void gs_session_drop_labels(gs_session *s);
/* Bytes that the two above keep. */
uint64_t gs_session_label_bytes(const gs_session *s);

/* Calls with each known label of a vertex in a split, in store order, columns of a row in order; what is not GS_OK ends
 * it. `split` from 0: train. GS_EIO, GS_EFORMAT, GS_ENOMEM. */
typedef gs_status gs_label_fn(void *context, uint64_t row, uint32_t column, uint32_t split, double value);
gs_status gs_session_each_label(const gs_session *s, gs_label_fn *fn, void *context);

#endif /* GS_SESSION_LEARNED_H */
