/* training.h - what train, plan, predict and bench train share: their options, and how results are printed. */
#ifndef GS_TOOLS_TRAINING_H
#define GS_TOOLS_TRAINING_H

#include "cli.h"
#include "gnnstream.h"

/* First member of the struct of each of these commands. */
typedef struct train_command {
    gs_train_options train;
    const char *weights, *ids, *embeddings; /* predict */
    bool json;           /* plan, train, predict, bench train */
    bool why;            /* bench train */
} train_command;

void train_command_defaults(void *options);

/* train_layer_options: those of the model but for its name. train_compiler_options are a part of the machine's. */
extern const cli_option train_model_options[], train_layer_options[], train_task_options[], train_batch_options[],
    train_learning_options[], train_machine_options[], train_compiler_options[], train_output_options[],
    train_checkpoint_options[], train_predict_options[], train_json_options[];
/* Options that most runs need. */
extern const char *const train_common_options[];

/* What a training run or a prediction came to, as a short table. */

void print_results(const gs_train_report *r);
/* One object; `w` is what a prediction's weights say of themselves, or NULL. */
void print_results_json(const gs_train_report *r, const gs_weights_summary *w);
/* Prints how another program than the model's first differs, and why it was taken: a line each, behind `indent`. */
void print_program(const char *indent, const gs_pass_report *p);
/* A line, where edges are multiplied by the matrix of their type. */
void print_products(const char *indent, const gs_pass_report *p);
/* The figure by which the task judges validation; NaN where that was not evaluated. */
double judged_by(const gs_epoch_report *e);
/* Is anything known of a split? */
bool has_figures(const gs_train_report *r);
/* on_epoch: one line, rewritten, on a terminal's stderr. */
void show_epoch(void *context, const gs_epoch_report *e);

#endif /* GS_TOOLS_TRAINING_H */
