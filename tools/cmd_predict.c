#include "results.h"
#include "train_options.h"

static const cli_option opts[] = {
    {"--weights", CLI_TEXT, offsetof(train_command, weights), NULL, "W.safetensors",
     "the model's weights; required", NULL, 0, 0},
    {"--logits", CLI_TEXT, offsetof(train_command, train.logits), "logits", "OUT.npy",
     "float32 [vertices, classes], input order; required", NULL, 0, 0},
    {"--ids", CLI_TEXT, offsetof(train_command, ids), NULL, "FILE", "the input's own id of each row, one a line", NULL,
     0, 0},
    {0},
};

static int run(const cli_command *self, const void *options, const char *const *place)
{
    const train_command *const t = options;
    gs_train_options o = t->train;
    gs_train_report r;
    int status;

    if (o.model == NULL || t->weights == NULL || o.logits == NULL)
        return cli_fail(self, CLI_USAGE, "%s is missing; see gnnstream help predict",
                        o.model == NULL     ? "--model"
                        : t->weights == NULL ? "--weights"
                                             : "--logits");
    o.stop = cli_stop();
    status = cli_result(self, gs_predict(place[0], &o, t->weights, o.logits, &r));
    if (status == CLI_DONE && t->ids != NULL)
        status = cli_result(self, gs_write_ids(place[0], t->ids));
    if (status == CLI_DONE)
        print_results(&r);
    return status;
}

const cli_command cmd_predict = {
    .name = "predict",
    .place = {"STORE"},
    .summary = "Computes every vertex's logits with given weights.",
    .group =
        (const cli_group[]){{"Files", opts}, {"Model", train_model_options}, {"Machine", train_machine_options}, {0}},
    .defaults = train_command_defaults,
    .options_bytes = sizeof(train_command),
    .common = train_common_options,
    .run = run,
};
