/* train_options.c - the table of gnnstream_options.h as options of the command line. */
#include "train_options.h"

#define ROW(name, kind, normal, least, most, changes, counts_as, shown, option, value, help, unset) \
    {option, CLI_##kind, offsetof(train_command, train.name), #name, value, help, unset, least, most},
#define TABLE(map) {map(ROW){0}}

const cli_option train_model_options[] = TABLE(GS_MODEL_OPTION_MAP);
const cli_option train_layer_options[] = TABLE(GS_LAYER_OPTION_MAP);
const cli_option train_task_options[] = TABLE(GS_TASK_OPTION_MAP);
const cli_option train_batch_options[] = TABLE(GS_BATCH_OPTION_MAP);
const cli_option train_learning_options[] = TABLE(GS_TRAINING_OPTION_MAP);
const cli_option train_machine_options[] = TABLE(GS_MACHINE_OPTION_MAP);
const cli_option train_compiler_options[] = TABLE(GS_COMPILER_OPTION_MAP);
const cli_option train_output_options[] = TABLE(GS_RESULT_OPTION_MAP);
const cli_option train_checkpoint_options[] = TABLE(GS_CHECKPOINT_OPTION_MAP);
const cli_option train_predict_options[] = TABLE(GS_PREDICT_OPTION_MAP);

const cli_option train_json_options[] = {
    {"--json", CLI_FLAG, offsetof(train_command, json), NULL, NULL, "print JSON", NULL, 0, 0},
    {0},
};

#define SHOWN_COMMON(option) option,
#define SHOWN_RARE(option)
#define SHOWN(name, kind, normal, least, most, changes, counts_as, shown, option, ...) SHOWN_##shown(option)
const char *const train_common_options[] = {"--json", "--weights", GS_TRAIN_OPTION_MAP(SHOWN) NULL};

void train_command_defaults(void *options)
{
    train_command *const t = options;
    *t = (train_command){0};
    gs_train_options_init(&t->train);
}
