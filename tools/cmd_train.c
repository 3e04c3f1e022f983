#include "results.h"
#include "train_options.h"

/* Says so of the first checkpoint that could not be written: the run goes on, and tries again. */
static void warn_once(const gs_run *run)
{
    static bool warned;
    gs_checkpoint_report c;
    char text[1024];

    if (warned || gs_run_checkpoints(run, &c) != GS_OK || c.failed == 0)
        return;
    cli_progress_end();
    fprintf(stderr, "gnnstream train: a checkpoint could not be written, training goes on: %s\n",
            cli_name_options(text, sizeof(text), c.error));
    warned = true;
}

static void say_where_from(const gs_run *run, uint32_t epochs)
{
    gs_checkpoint_report c;
    char text[1024];

    if (gs_run_checkpoints(run, &c) != GS_OK || (c.resumed == 0 && c.resumed_batches == 0))
        return;
    fprintf(stderr, "gnnstream train: goes on after epoch %u", c.resumed);
    if (c.resumed_batches > 0)
        fprintf(stderr, " and %u batches of the next", c.resumed_batches);
    if (c.resumed >= epochs)
        fprintf(stderr, "; of --epochs %u none is left, so nothing is trained", epochs);
    else if (c.over)
        fputs("; its --patience was over then, so nothing is trained", stderr);
    fprintf(stderr, "%s%s\n", c.note[0] != '\0' ? "; " : "", cli_name_options(text, sizeof(text), c.note));
}

/* Whatever ended it, there is a state to go on from. */
static void say_how_to_go_on(const gs_run *run)
{
    gs_checkpoint_report c;

    if (gs_run_checkpoints(run, &c) != GS_OK || (c.epoch == 0 && c.batches == 0))
        return;
    fputs("go on with: ", stderr);
    cli_print_again(stderr, "--resume", c.folder);
}

static gs_status train(gs_run *run, uint32_t epochs, cli_watch *watch, gs_train_report *report)
{
    gs_checkpoint_report c;
    gs_epoch_report e;
    gs_status st = gs_run_checkpoints(run, &c);
    bool over = st == GS_OK && c.over;

    for (uint32_t k = c.resumed; k < epochs && st == GS_OK && !over; k++)
        if ((st = gs_run_epoch(run, &e)) == GS_OK) {
            cli_watch_epoch(watch, &e);
            warn_once(run);
            over = e.over;
        }
    if (st == GS_OK)
        st = gs_run_finish(run, report);
    if (st == GS_EINTERRUPTED) /* the results that there are */
        st = gs_run_finish(run, report);
    return st;
}

/* The run that is gone on with was begun so. */
static const char *recall(const cli_command *self, const void *options, int *status)
{
    static char line[4096];
    const train_command *const t = options;

    if (t->train.resume == NULL)
        return NULL;
    if ((*status = cli_result(self, gs_checkpoint_command(line, sizeof(line), t->train.resume))) != CLI_DONE)
        return NULL;
    if (line[0] == '\0')
        *status = cli_fail(self, CLI_USAGE, "--resume %s: its run did not say how it was begun; give STORE and the "
                                            "options again", t->train.resume);
    return line[0] == '\0' ? NULL : line;
}

static int run(const cli_command *self, const void *options, const char *const *place)
{
    const train_command *const t = options;
    gs_train_options o = t->train;
    gs_run *opened = NULL;
    gs_train_report r;
    gs_status st;
    int status;

    if (o.model == NULL)
        return cli_fail(self, CLI_USAGE, "--model is missing; see gnnstream help train");
    o.stop = cli_stop();
    o.warn = cli_warn;
    o.config = cli_config_name();
    o.command = cli_whole_line();
    cli_watch *const watch = cli_watch_begin();
    o.on_open = cli_watch_open;
    o.context = watch;
    if ((st = gs_run_open(&opened, place[0], &o, GS_RUN_TRAIN)) == GS_OK) {
        cli_progress_end();
        say_where_from(opened, o.epochs);
        st = train(opened, o.epochs, watch, &r);
    }
    cli_watch_end(watch);
    status = cli_result(self, st);
    if (st != GS_OK && opened != NULL)
        say_how_to_go_on(opened);
    gs_run_close(opened);
    if (status != CLI_DONE)
        return status;
    if (*r.io_note != '\0' && cli_shows_progress())
        fprintf(stderr, "note: %s\n", r.io_note);
    if (t->json)
        print_results_json(&r, NULL);
    else
        print_results(&r);
    return CLI_DONE;
}

const cli_command cmd_train = {
    .name = "train",
    .place = {"STORE"},
    .summary = "Trains a model on the whole graph of a store.\n"
               "With --resume DIR alone it does as the run there was told to: STORE and the options can be left out,\n"
               "and what is given comes before.",
    .group = (const cli_group[]){{"Output", train_json_options},
                                 {"Model", train_model_options},
                                 {"Task", train_task_options},
                                 {"Batches", train_batch_options},
                                 {"Learning", train_learning_options},
                                 {"Results", train_output_options},
                                 {"Machine", train_machine_options},
                                 {"Checkpoints", train_checkpoint_options},
                                 {"A file of options", cli_config_options},
                                 {0}},
    .defaults = train_command_defaults,
    .options_bytes = sizeof(train_command),
    .common = train_common_options,
    .recall = recall,
    .run = run,
};
