/* train_options.h - the option tables that train, plan, predict and bench train share. */
#ifndef GS_TOOLS_TRAIN_OPTIONS_H
#define GS_TOOLS_TRAIN_OPTIONS_H

#include "cli.h"

/* First member of the struct of each of these commands. */
typedef struct train_command {
    gs_train_options train;
    const char *weights, *ids, *embeddings; /* predict */
    bool json;           /* plan, train, predict, bench train */
} train_command;

void train_command_defaults(void *options);

/* train_layer_options: those of the model but for its name. train_compiler_options are a part of the machine's. */
extern const cli_option train_model_options[], train_layer_options[], train_task_options[], train_batch_options[],
    train_learning_options[], train_machine_options[], train_compiler_options[], train_output_options[],
    train_checkpoint_options[], train_predict_options[], train_json_options[];
/* Options that most runs need. */
extern const char *const train_common_options[];

#endif /* GS_TOOLS_TRAIN_OPTIONS_H */
