/* results.h - what a training run or a prediction came to, as a short table. */
#ifndef GS_TOOLS_RESULTS_H
#define GS_TOOLS_RESULTS_H

#include "gnnstream.h"

void print_results(const gs_train_report *r);
/* One object; `w` is what a prediction's weights say of themselves, or NULL. */
void print_results_json(const gs_train_report *r, const gs_weights_summary *w);
/* Prints how another program than the model's first differs, and why it was taken: a line each, behind `indent`. */
void print_program(const char *indent, const gs_pass_report *p);
/* The figure by which the task judges validation; NaN where that was not evaluated. */
double judged_by(const gs_epoch_report *e);
/* Is anything known of a split? */
bool has_figures(const gs_train_report *r);
/* on_epoch: one line, rewritten, on a terminal's stderr. */
void show_epoch(void *context, const gs_epoch_report *e);

#endif /* GS_TOOLS_RESULTS_H */
