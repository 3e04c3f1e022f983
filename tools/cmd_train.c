/* cmd_train.c - trains, and computes logits with weights that are there. */
#include <stdio.h>
#include <string.h>

#include "training.h"

/* ---- train --------------------------------------------------------------- */

/* Says so of the first checkpoint that could not be written: the run goes on, and tries again. */
static void warn_once(const gs_run *train_run)
{
    static bool warned;
    gs_checkpoint_report c;
    char text[1024];

    if (warned || gs_run_checkpoints(train_run, &c) != GS_OK || c.failed == 0)
        return;
    cli_progress_end();
    fprintf(stderr, "gnnstream train: a checkpoint could not be written, training goes on: %s\n",
            cli_name_options(text, sizeof(text), c.error));
    warned = true;
}

static void say_where_from(const gs_run *train_run, uint32_t epochs)
{
    gs_checkpoint_report c;
    char text[1024];

    if (gs_run_checkpoints(train_run, &c) != GS_OK || (c.resumed == 0 && c.resumed_batches == 0))
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
static void say_how_to_go_on(const gs_run *train_run, uint32_t ranks)
{
    gs_checkpoint_report c;

    if (gs_run_checkpoints(train_run, &c) != GS_OK || (c.epoch == 0 && c.batches == 0))
        return;
    fputs("go on with: ", stderr);
    if (ranks > 1)
        fprintf(stderr, "mpirun -n %u ", ranks);
    cli_print_again(stderr, "--resume", c.folder);
}

static gs_status train(gs_run *train_run, uint32_t epochs, cli_watch *watch, gs_train_report *report)
{
    gs_checkpoint_report c;
    gs_epoch_report e;
    gs_status st = gs_run_checkpoints(train_run, &c);
    bool over = st == GS_OK && c.over;

    for (uint32_t k = c.resumed; k < epochs && st == GS_OK && !over; k++)
        if ((st = gs_run_epoch(train_run, &e)) == GS_OK) {
            cli_watch_epoch(watch, &e);
            warn_once(train_run);
            over = e.over;
        }
    if (st == GS_OK)
        st = gs_run_finish(train_run, report);
    if (st == GS_EINTERRUPTED) /* the results that there are */
        st = gs_run_finish(train_run, report);
    return st;
}

/* The run that is gone on with was begun so. */
static const char *train_recall(const cli_command *self, const void *options, int *status)
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

/* As one of several ranks, of which the first speaks for all. */
static int train_beside(const cli_command *self, const gs_train_options *options, const char *store)
{
    gs_train_options o = *options;
    o.stop = cli_stop();
    return cli_result(self, gs_train(store, &o, NULL));
}

static int train_run(const cli_command *self, const void *options, const char *const *place)
{
    const train_command *const t = options;
    gs_train_options o = t->train;
    gs_run *opened = NULL;
    gs_train_report r;
    uint32_t rank, ranks;
    gs_status st;
    int status;

    if (o.model == NULL)
        return cli_fail(self, CLI_USAGE, o.resume == NULL ? "--model is missing; see gnnstream help train"
                                                          : "--model is missing: with STORE, --resume wants the run's "
                                                            "options again; give them, or leave STORE out, too");
    if ((status = cli_result(self, gs_join_ranks(&rank, &ranks))) != CLI_DONE)
        return status;
    if (rank > 0)
        return train_beside(self, &o, place[0]);
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
        say_how_to_go_on(opened, ranks);
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
    .recall = train_recall,
    .run = train_run,
};

/* ---- predict ------------------------------------------------------------- */

static const cli_option predict_opts[] = {
    {"--weights", CLI_PATH, offsetof(train_command, weights), NULL, "W.safetensors",
     "the model's weights; required", NULL, 0, 0},
    {"--logits", CLI_PATH, offsetof(train_command, train.logits), "logits", "OUT.npy",
     "float32 [vertices, classes], input order", NULL, 0, 0},
    {"--embeddings", CLI_PATH, offsetof(train_command, embeddings), "embeddings", "OUT.npy",
     "float32 [vertices, hidden]: what the last layer gets", NULL, 0, 0},
    {"--ids", CLI_PATH, offsetof(train_command, ids), NULL, "FILE", "the input's own id of each row, one a line", NULL,
     0, 0},
    {0},
};

static void predict_defaults(void *options)
{
    train_command *const t = options;
    *t = (train_command){0};
    gs_predict_options_init(&t->train);
}

/* Prints the notes of the weights. */
static void say_what_of(const gs_weights_summary *w, const char *store)
{
    gs_store_summary s;
    char widths[64] = "";

    if (w->version[0] == '\0' || gs_inspect(&s, store) != GS_OK)
        return;
    if (w->layers > 1)
        snprintf(widths, sizeof(widths), " of %u", w->hidden);
    printf("weights of %s, %u layer%s%s, trained for %u epochs on %s%s\n", w->model, w->layers,
           w->layers == 1 ? "" : "s", widths, w->epochs, w->store,
           s.id == w->store_id ? ", this store" : ", which is another store");
}

/* gs_predict(), with a line about how far it is. */
static gs_status predict(const char *store, const gs_train_options *options, gs_train_report *r)
{
    cli_watch *const watch = cli_watch_begin();
    gs_train_options o = *options;
    gs_run *predict_run = NULL;
    gs_status st;

    o.on_open = cli_watch_open;
    o.context = watch;
    if ((st = gs_run_open(&predict_run, store, &o, GS_RUN_PREDICT)) == GS_OK)
        st = gs_run_finish(predict_run, r);
    cli_watch_end(watch);
    gs_run_close(predict_run);
    return st;
}

/* The rows before the last layer, by a pass that ends there. */
static gs_status embed(const char *store, const train_command *t, const gs_train_options *options, gs_train_report *r)
{
    gs_train_options o = *options;

    o.logits = t->embeddings;
    o.argmax = NULL;
    o.softmax = false;
    o.embeddings = true;
    return predict(store, &o, r);
}

static gs_status compute(const char *store, const train_command *t, const gs_train_options *o, gs_train_report *r)
{
    gs_train_report of_embeddings;
    const bool alone = o->logits == NULL && o->argmax == NULL && o->scores == NULL;
    gs_status st = GS_OK;

    if (!alone)
        st = predict(store, o, r);
    if (st == GS_OK && t->embeddings != NULL)
        st = embed(store, t, o, alone ? r : &of_embeddings);
    return st;
}

static int predict_run(const cli_command *self, const void *options, const char *const *place)
{
    const train_command *const t = options;
    gs_train_options o = t->train;
    gs_weights_summary w = {0};
    gs_train_report r;
    uint32_t rank, ranks;
    int status;

    if (t->weights == NULL || (o.logits == NULL && o.argmax == NULL && o.scores == NULL && t->embeddings == NULL))
        return cli_fail(self, CLI_USAGE, "%s is missing; see gnnstream help predict",
                        t->weights == NULL ? "--weights" : "--logits, --argmax, --scores or --embeddings");
    if (o.softmax && o.logits == NULL)
        return cli_fail(self, CLI_USAGE, "--softmax: is of --logits, which is missing");
    if (t->embeddings != NULL && ((o.logits != NULL && strcmp(o.logits, t->embeddings) == 0) ||
                                  (o.argmax != NULL && strcmp(o.argmax, t->embeddings) == 0)))
        return cli_fail(self, CLI_USAGE, "--embeddings %s: another output has this name", t->embeddings);
    if ((status = cli_result(self, gs_join_ranks(&rank, &ranks))) != CLI_DONE)
        return status;
    if (rank == 0 && (o.dropout != 0 || o.input_dropout != 0))
        cli_warn(NULL, "a prediction has no dropout; what is given of it changes nothing");
    o.stop = cli_stop();
    o.warn = cli_warn;
    o.init = t->weights;
    if ((status = cli_result(self, compute(place[0], t, &o, &r))) != CLI_DONE || rank > 0)
        return status;
    if ((t->ids != NULL && (status = cli_result(self, gs_write_ids(place[0], t->ids))) != CLI_DONE) ||
        (status = cli_result(self, gs_inspect_weights(&w, t->weights))) != CLI_DONE)
        return status;
    if (t->json) {
        print_results_json(&r, &w);
        return CLI_DONE;
    }
    say_what_of(&w, place[0]);
    print_results(&r);
    if (!has_figures(&r) && strcmp(r.figures.task, "link") != 0 && (o.logits != NULL || o.argmax != NULL))
        puts("no vertex of a split has a label here: loss and accuracies are not known");
    return CLI_DONE;
}

const cli_command cmd_predict = {
    .name = "predict",
    .place = {"STORE"},
    .summary = "Computes every vertex's logits with given weights.",
    .group =
        (const cli_group[]){{"Files", predict_opts},
                            {"Logits", train_predict_options},
                            {"Output", train_json_options},
                            {"Model", train_model_options},
                            {"Task", train_task_options},
                            {"Machine", train_machine_options},
                            {"A file of options", cli_config_options},
                            {0}},
    .defaults = predict_defaults,
    .options_bytes = sizeof(train_command),
    .common = train_common_options,
    .run = predict_run,
};
