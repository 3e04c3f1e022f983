/* control.h - which rate has an epoch, which weights are kept, by which figure, and when is a run over?
 *
 * Epochs change gs_control_state alone, which has no pointers, so that a checkpoint can have it; all else follows from
 * the options and the number of the epoch.
 */
#ifndef GS_TRAIN_CONTROL_H
#define GS_TRAIN_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "gnnstream.h" /* gs_train_options */
#include "gnnstream_reports.h" /* gs_task_figures */
#include "session/learned.h"

/* In the order of the words of .keep_by. */
typedef enum gs_judge {
    GS_BY_LOSS,
    GS_BY_ACCURACY,
    GS_BY_BALANCED, /* the mean of the classes' accuracies */
    GS_BY_F1,       /* macro */
    GS_BY_MICRO_F1,
    GS_BY_AUC,
    GS_BY_AP,
    GS_BY_MSE,
    GS_BY_MAE,
    GS_BY_R2,
    GS_BY_MRR, /* of pairs: the mean of 1 / rank */
    GS_JUDGES
} gs_judge;

const char *gs_judge_name(gs_judge j);
/* NULL: the task's own. GS_EINVAL: there is none of that name, or the task has none such. */
gs_status gs_judge_find(gs_judge *out, const char *name, gs_train_task task);
/* Does it need the logits of a whole split in order? `name` may be NULL, or of none. */
bool gs_judge_ranks(const char *name);
/* The judge of validation that is shown; NaN where it was not evaluated. */
double gs_judge_figure(gs_judge j, const gs_task_figures *f, const double accuracy[3]);
/* The same where more is better. */
double gs_judge_worth(gs_judge j, double figure);

/* In the order of the words of .shuffle and .schedule. */
typedef enum gs_shuffles { GS_SHUFFLES_ALWAYS, GS_SHUFFLES_NEVER, GS_SHUFFLES_ADAPTIVE } gs_shuffles;
typedef enum gs_rates { GS_RATES_NONE, GS_RATES_STEP, GS_RATES_COSINE, GS_RATES_PLATEAU } gs_rates;

typedef struct gs_control_state {
    double best;          /* what epochs are judged by, of `best_epoch`, so that more is better (gs_judge_worth()) */
    uint32_t best_epoch;  /* whose weights, before its update, are the best so far; 0: none yet. Not 1: the weights
                           * before the first update have learned nothing */
    uint32_t last_better; /* epoch that patience is counted from */
    double plateau_best;  /* what a plateau is measured by, at its best */
    uint32_t plateau_bad; /* epochs since, or since the rate was lowered */
    double factor;        /* of the rate, by plateaus */
    /* Of a run that shuffles from the elbow of its losses on: */
    double last_loss, largest_drop; /* of an epoch; NaN: none was done; from one to the next */
    uint32_t elbow;                 /* the epoch that was there; 0: none yet */
} gs_control_state;

typedef struct gs_control {
    /* from the options */
    double lr, by;
    gs_rates rates;
    gs_shuffles shuffles;
    uint32_t epochs, warmup, every, patience;
    bool valid;      /* epochs are evaluated, with validation vertices */
    bool keeps_best;
    gs_judge judge;  /* which figure epochs are judged by */
    gs_control_state state;
} gs_control;

/* Begins the control of a run that evaluates `valid` vertices now and then (0: none). GS_EINVAL: "best" or patience
 * without any, or a figure that the task has not. The store is for the message. */
gs_status gs_control_open(gs_control *out, const gs_train_options *o, gs_train_task task, uint64_t valid,
                          const char *store);
/* Nothing is known of epochs. */
void gs_control_forget(gs_control *c);

/* The rate of epoch `epoch`, from 1. */
double gs_control_rate(const gs_control *c, uint32_t epoch);
/* Notes the figure by which the weights before the epoch's update are judged (gs_judge_figure(); NaN: not evaluated),
 * and their loss. True where they are the best so far. */
bool gs_control_note(gs_control *c, uint32_t epoch, double valid, double loss);
/* The loss of an epoch on batches that is done. */
void gs_control_note_loss(gs_control *c, uint32_t epoch, double loss);
/* Are the targets of the next epoch in an order of its own? */
bool gs_control_shuffles(const gs_control *c);
/* So is each later epoch's; false: it depends on losses that are still to come. */
bool gs_control_keeps_order(const gs_control *c);
/* Has patience run out with this epoch? */
bool gs_control_is_over(const gs_control *c, uint32_t epoch);

#endif /* GS_TRAIN_CONTROL_H */
