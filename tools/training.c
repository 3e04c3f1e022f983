/* training.c - the table of gnnstream_options.h as options of the command line; results of runs as words and JSON. */
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- options ------------------------------------------------------------- */

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

/* ---- results ------------------------------------------------------------- */

/* A line a split that has figures. */
static void print_figures(const gs_task_figures *f)
{
    static const char *const split[3] = {"train", "valid", "test"};

    for (int k = 0; k < 3; k++) {
        if (isfinite(f->micro_f1[k]))
            printf("%-6s micro-F1 %.4f, macro-F1 %.4f", split[k], f->micro_f1[k], f->macro_f1[k]);
        if (isfinite(f->mrr[k]))
            printf("%-6s MRR %.4f, hits@1 %.4f, hits@3 %.4f, hits@10 %.4f\n", split[k], f->mrr[k], f->hits1[k],
                   f->hits3[k], f->hits10[k]);
        if (isfinite(f->roc_auc[k]) && strcmp(f->task, "link") == 0)
            printf("%-6s ROC-AUC %.4f\n", split[k], f->roc_auc[k]);
        else if (isfinite(f->roc_auc[k]))
            printf("%sROC-AUC %.4f", isfinite(f->micro_f1[k]) ? ", " : "", f->roc_auc[k]);
        if (isfinite(f->average_precision[k]))
            printf(", average precision %.4f", f->average_precision[k]);
        if (isfinite(f->mse[k]))
            printf("%-6s mse %.6g, mae %.6g, r2 %.4f", split[k], f->mse[k], f->mae[k], f->r2[k]);
        if (isfinite(f->rmse[k]))
            printf(", rmse %.6g", f->rmse[k]);
        if (isfinite(f->micro_f1[k]) || isfinite(f->mse[k]))
            putchar('\n');
    }
}

void print_results(const gs_train_report *r)
{
    static const char *const split[3] = {"train", "valid", "test"};

    if (r->epochs != 0)
        printf("%u epochs in %.3f s, %.4f s each; read %s, written %s\n", r->epochs, r->seconds,
               r->seconds / r->epochs, cli_size(r->read_bytes), cli_size(r->written_bytes));
    if (r->saved_epochs != 0)
        printf("stopped early: %u epochs saved\n", r->saved_epochs);
    if (r->kept_epochs < r->epochs)
        printf("kept the weights after %u epochs, of the best validation result\n", r->kept_epochs);
    printf("%s parameters on %s; I/O by %s; at most %s resident\n", cli_count(r->parameters), r->device, r->io,
           cli_size(r->peak_host_bytes));
    if (isfinite(r->loss))
        printf("loss   %.6f\n", r->loss);
    for (int k = 0; k < 3; k++)
        if (isfinite(r->accuracy[k]))
            printf("%-6s %.4f\n", split[k], r->accuracy[k]);
    print_figures(&r->figures);
}

double judged_by(const gs_epoch_report *e)
{
    return isfinite(e->accuracy[1])           ? e->accuracy[1]
           : isfinite(e->figures.micro_f1[1]) ? e->figures.micro_f1[1]
           : isfinite(e->figures.mrr[1])      ? e->figures.mrr[1]
           : isfinite(e->figures.roc_auc[1])  ? e->figures.roc_auc[1]
                                              : e->figures.mse[1];
}

bool has_figures(const gs_train_report *r)
{
    for (int k = 0; k < 3; k++)
        if (isfinite(r->accuracy[k]) || isfinite(r->figures.micro_f1[k]) || isfinite(r->figures.mse[k]) ||
            isfinite(r->figures.mrr[k]) || isfinite(r->figures.roc_auc[k]))
            return true;
    return false;
}

static void print_figures_json(const gs_task_figures *f)
{
    static const char *const split[3] = {"train", "valid", "test"};
    const struct {
        const char *name;
        const double *of;
        const char *tasks; /* first letters of those that have it */
    } all[] = {{"micro_f1", f->micro_f1, "m"}, {"macro_f1", f->macro_f1, "mc"}, {"roc_auc", f->roc_auc, "mcl"},
               {"average_precision", f->average_precision, "mc"}, {"mse", f->mse, "r"}, {"mae", f->mae, "r"},
               {"r2", f->r2, "r"}, {"balanced_acc", f->balanced_acc, "c"}, {"mrr", f->mrr, "l"},
               {"hits@1", f->hits1, "l"}, {"hits@3", f->hits3, "l"}, {"hits@10", f->hits10, "l"},
               {"rmse", f->rmse, "r"}};

    printf(", \"task\": %s, \"valid_loss\": %s", cli_json_text(f->task), cli_json_real(f->valid_loss));
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        const char task = strncmp(f->task, "edge-", 5) == 0 ? f->task[5] : f->task[0];
        const bool has = task != '\0' && strchr(all[k].tasks, task) != NULL;
        for (int s = 0; s < 3 && has; s++)
            printf(", \"%s_%s\": %s", split[s], all[k].name, cli_json_real(all[k].of[s]));
    }
}

void print_results_json(const gs_train_report *r, const gs_weights_summary *w)
{
    printf("{\"epochs\": %u, \"kept_epochs\": %u, \"saved_epochs\": %u, \"loss\": %s, \"train_acc\": %s, "
           "\"valid_acc\": %s, \"test_acc\": %s, \"parameters\": %lu", r->epochs, r->kept_epochs, r->saved_epochs,
           cli_json_real(r->loss), cli_json_real(r->accuracy[0]), cli_json_real(r->accuracy[1]),
           cli_json_real(r->accuracy[2]), r->parameters);
    print_figures_json(&r->figures);
    printf(", \"open_seconds\": %s, \"seconds\": %s, \"read_bytes\": %lu, \"written_bytes\": %lu, "
           "\"peak_host_bytes\": %lu, \"peak_device_bytes\": %lu, \"device\": %s, \"io\": %s",
           cli_json_real(r->open_seconds), cli_json_real(r->seconds), r->read_bytes, r->written_bytes,
           r->peak_host_bytes, r->peak_device_bytes, cli_json_text(r->device), cli_json_text(r->io));
    if (w != NULL)
        printf(", \"weights\": {\"model\": %s, \"version\": %s, \"epochs\": %u, \"store\": %s, \"store_id\": "
               "\"%016lx\"}", cli_json_text(w->model), cli_json_text(w->version), w->epochs, cli_json_text(w->store),
               w->store_id);
    puts("}");
}

void print_program(const char *indent, const gs_pass_report *p)
{
    static const char *const why[] = {
        [GS_TAKEN_SHORTER] = "that was predicted to be faster",
        [GS_TAKEN_LEANER] = "that takes much less memory",
        [GS_TAKEN_TO_FIT] = "what was tried before does not keep the budgets",
        [GS_TAKEN_AS_TRAINED] = "the weights were trained so",
    };

    const struct {
        gs_taken taken;
        const char *way;
    } all[] = {
        {p->no_hoist, "nothing is computed once"},
        {p->no_move, "products stay where the model has them"},
        {p->no_fuse, "sums share no edge program"},
        {p->no_prune, "no rows are left out"},
        {p->recomputes, "values are made again rather than stored"},
        {p->keeps, "values are stored rather than made again"},
        {p->batches, "edges are multiplied by the matrix of their type in batches"},
        {p->lean, "less is computed once and held"},
        {p->splits, "sums are stored, for vertex programs that other devices run"},
        {p->width, "each device sums a part of the width over all edges"},
    };

    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
        if (all[k].taken != GS_NOT_TAKEN)
            printf("%s%s, as %s\n", indent, all[k].way, why[all[k].taken]);
}

void print_products(const char *indent, const gs_pass_report *p)
{
    if (p->product_edges > 0)
        printf("%sproducts by the matrix of an edge's type in %s: %s for %s edges\n", indent, p->name,
               cli_count((uint64_t)(p->products + 0.5)), cli_count(p->product_edges));
}

void show_epoch(void *context, const gs_epoch_report *e)
{
    char line[160];
    int n;

    (void)context;
    if (!cli_shows_progress())
        return;
    n = snprintf(line, sizeof(line), "epoch %u of %u: loss %.4f", e->epoch, e->epochs, e->loss);
    if (isfinite(judged_by(e)))
        n += snprintf(line + n, sizeof(line) - (size_t)n, ", valid %.4f", judged_by(e));
    snprintf(line + n, sizeof(line) - (size_t)n, ", %.3f s", e->seconds);
    cli_progress(NULL, line, -1);
}
