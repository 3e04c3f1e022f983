#include "results.h"
#include "train_options.h"

static gs_status train(gs_run *run, uint32_t epochs, gs_train_report *report)
{
    cli_watch *const watch = cli_watch_begin(run);
    gs_epoch_report e;
    gs_status st = GS_OK;

    for (uint32_t k = 0; k < epochs && st == GS_OK; k++)
        if ((st = gs_run_epoch(run, &e)) == GS_OK)
            cli_watch_epoch(watch, &e);
    if (st == GS_OK)
        st = gs_run_finish(run, report);
    cli_watch_end(watch);
    return st;
}

static int run(const cli_command *self, const void *options, const char *const *place)
{
    gs_train_options o = ((const train_command *)options)->train;
    gs_run *opened = NULL;
    gs_train_report r;
    gs_status st;
    int status;

    if (o.model == NULL)
        return cli_fail(self, CLI_USAGE, "--model is missing; see gnnstream help train");
    o.stop = cli_stop();
    if ((st = gs_run_open(&opened, place[0], &o, GS_RUN_TRAIN)) == GS_OK)
        st = train(opened, o.epochs, &r);
    status = cli_result(self, st);
    gs_run_close(opened);
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
