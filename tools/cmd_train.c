#include "results.h"
#include "train_options.h"

static int run(const cli_command *self, const void *options, const char *const *place)
{
    gs_train_options o = ((const train_command *)options)->train;
    gs_train_report r;
    int status;

    if (o.model == NULL)
        return cli_fail(self, CLI_USAGE, "--model is missing; see gnnstream help train");
    o.stop = cli_stop();
    o.on_epoch = show_epoch;
    status = cli_result(self, gs_train(place[0], &o, &r));
    cli_progress_end();
    if (status != CLI_DONE)
        return status;
    if (*r.io_note != '\0' && cli_shows_progress())
        fprintf(stderr, "note: %s\n", r.io_note);
    print_results(&r);
    return CLI_DONE;
}

const cli_command cmd_train = {
    .name = "train",
    .place = {"STORE"},
    .summary = "Trains a model on the whole graph of a store.",
    .group = (const cli_group[]){{"Model", train_model_options},
                                 {"Learning", train_learning_options},
                                 {"Results", train_output_options},
                                 {"Machine", train_machine_options},
                                 {"Later", train_later_options},
                                 {0}},
    .defaults = train_command_defaults,
    .options_bytes = sizeof(train_command),
    .run = run,
};
