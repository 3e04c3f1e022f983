#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results.h"
#include "train_options.h"

static const cli_option opts[] = {
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

static void defaults(void *options)
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
    gs_run *run = NULL;
    gs_status st;

    o.on_open = cli_watch_open;
    o.context = watch;
    if ((st = gs_run_open(&run, store, &o, GS_RUN_PREDICT)) == GS_OK)
        st = gs_run_finish(run, r);
    cli_watch_end(watch);
    gs_run_close(run);
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
    const bool alone = o->logits == NULL && o->argmax == NULL;
    gs_status st = GS_OK;

    if (!alone)
        st = predict(store, o, r);
    if (st == GS_OK && t->embeddings != NULL)
        st = embed(store, t, o, alone ? r : &of_embeddings);
    return st;
}

static int run(const cli_command *self, const void *options, const char *const *place)
{
    const train_command *const t = options;
    gs_train_options o = t->train;
    gs_weights_summary w = {0};
    gs_train_report r;
    int status;

    if (t->weights == NULL || (o.logits == NULL && o.argmax == NULL && t->embeddings == NULL))
        return cli_fail(self, CLI_USAGE, "%s is missing; see gnnstream help predict",
                        t->weights == NULL ? "--weights" : "--logits, --argmax or --embeddings");
    if (o.softmax && o.logits == NULL)
        return cli_fail(self, CLI_USAGE, "--softmax: is of --logits, which is missing");
    if (t->embeddings != NULL && ((o.logits != NULL && strcmp(o.logits, t->embeddings) == 0) ||
                                  (o.argmax != NULL && strcmp(o.argmax, t->embeddings) == 0)))
        return cli_fail(self, CLI_USAGE, "--embeddings %s: another output has this name", t->embeddings);
    if (o.dropout != 0 || o.input_dropout != 0)
        cli_warn(NULL, "a prediction has no dropout; what is given of it changes nothing");
    o.stop = cli_stop();
    o.warn = cli_warn;
    o.init = t->weights;
    if ((status = cli_result(self, compute(place[0], t, &o, &r))) != CLI_DONE ||
        (t->ids != NULL && (status = cli_result(self, gs_write_ids(place[0], t->ids))) != CLI_DONE) ||
        (status = cli_result(self, gs_inspect_weights(&w, t->weights))) != CLI_DONE)
        return status;
    if (t->json) {
        print_results_json(&r, &w);
        return CLI_DONE;
    }
    say_what_of(&w, place[0]);
    print_results(&r);
    if (!has_figures(&r) && (o.logits != NULL || o.argmax != NULL))
        puts("no vertex of a split has a label here: loss and accuracies are not known");
    return CLI_DONE;
}

const cli_command cmd_predict = {
    .name = "predict",
    .place = {"STORE"},
    .summary = "Computes every vertex's logits with given weights.",
    .group =
        (const cli_group[]){{"Files", opts},
                            {"Logits", train_predict_options},
                            {"Output", train_json_options},
                            {"Model", train_model_options},
                            {"Task", train_task_options},
                            {"Machine", train_machine_options},
                            {"A file of options", cli_config_options},
                            {0}},
    .defaults = defaults,
    .options_bytes = sizeof(train_command),
    .common = train_common_options,
    .run = run,
};
