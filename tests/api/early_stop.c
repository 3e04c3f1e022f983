/* Trains until validation accuracy has not risen for 10 epochs, then takes the logits as an array. */
#include <stdio.h>
#include <stdlib.h>

#include <gnnstream.h>

int main(int argc, char **argv)
{
    gs_store_summary store;
    gs_train_options options;
    gs_epoch_report epoch;
    gs_run *run = NULL;
    float *logits = NULL;
    double best = 0;
    int since = 0;

    gs_train_options_init(&options);
    options.model = "gcn";
    options.keep_logits = true;
    gs_status st = gs_inspect(&store, argc == 2 ? argv[1] : NULL);
    if (st == GS_OK && (st = gs_run_open(&run, argv[1], &options, GS_RUN_TRAIN)) == GS_OK)
        logits = malloc(store.vertices * store.classes * sizeof(float));
    while (st == GS_OK && since < 10 && (st = gs_run_epoch(run, &epoch)) == GS_OK) {
        since = epoch.accuracy[1] > best ? 0 : since + 1;
        best = since == 0 ? epoch.accuracy[1] : best;
        printf("epoch %u: loss %.4f, valid %.4f\n", epoch.epoch, epoch.loss, epoch.accuracy[1]);
    }
    if (st == GS_OK && (st = gs_run_logits(run, logits, store.vertices * store.classes)) == GS_OK)
        printf("best %.4f; logit of vertex 0 and class 0: %.4f\n", best, logits[0]);
    gs_run_close(run);
    free(logits);
    return st == GS_OK ? 0 : (fprintf(stderr, "%s\n", gs_last_error()), 1);
}
