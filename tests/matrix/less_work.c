/* less_work.c - what is not needed is neither read nor computed, and the result is the same. */
#include <stdlib.h>
#include <string.h>

#include "matrix.h"

#define EDGES 240000.0 /* both directions of each that is asked for */

/* Of the training pass that was planned last. */
static double planned(const char *key) { return number_in(command_output(), "\"name\":\"train\"", key); }

/* Trains and plans: an epoch reads exactly the bytes that were planned. Sets what is read and what is skipped. */
static bool read_as_planned(result *r, const char *line, double *read, double *skipped)
{
    if (!train(r, "%s", line) || !command("plan %s --logits out/none.npy --json", line))
        return false;
    *read = planned("read_bytes");
    *skipped = planned("skipped_bytes");
    return check(*read == last(r, "read_bytes"), "%s: %.0f bytes planned, %.0f read", line, *read,
                 last(r, "read_bytes"));
}

/* Only rows that edges need are read: the same bytes of result, and what was skipped is what the other run read more.
 * Where neighbours stand together much is skipped; of rows in random order nearly all are needed. */
static void rows_are_skipped(const char *method, const char *model)
{
    /* Where another program reads less of whole intervals, a switch keeps to the one that selected rows have. */
    const char *const program = strcmp(model, "sage") == 0  ? "--hidden 64 --device-memory 8M --no-move"
                                : strcmp(model, "gat") == 0 ? "--hidden 40 --device-memory 6M --no-fuse"
                                                            : "--hidden 64 --device-memory 8M";
    const char *const line = text("%s --model %s %s --epochs 2 --seed 3 --no-cache",
                                  store_of("graph", method, 12, ""), model, program);
    const char *const name = text("%s %s", method, model);
    double read, skipped, whole, none;
    result some = {0}, all = {0};

    if (read_as_planned(&some, line, &read, &skipped) &&
        read_as_planned(&all, text("%s --no-selective", line), &whole, &none)) {
        same_bits(&some, &all, text("%s against --no-selective", name));
        check(none == 0, "%s: --no-selective skips %.0f bytes", name, none);
        check(read + skipped == whole, "%s: %.0f bytes read and %.0f skipped, of %.0f", name, read, skipped, whole);
        if (strcmp(method, "metis") == 0)
            check(skipped > whole / 7, "%s: %.0f bytes skipped of %.0f, too few", name, skipped, whole);
        else
            check(skipped < whole / 50, "%s: %.0f bytes skipped of %.0f, which random order needs", name, skipped,
                  whole);
    }
    result_free(&some);
    result_free(&all);
}

/* Keeps the first `count` of the vertices that a split names. */
static void shorten(const char *file, size_t count)
{
    ref_npy a = ref_npy_read(file);

    if (a.shape[0] < count || strcmp(a.type, "i8") != 0)
        ref_die("%s: not as many vertices, or of another type", file);
    ref_npy_write(file, "i8", count, 0, a.data);
    free(a.bytes);
}

/* What the loss sees is little, and weights are the same to rounding as when everything is computed. */
static void rows_are_pruned(const char *method, const char *options)
{
    const char *const line = text("%s %s", store_of("graph", method, 5, "--seed 1"), options);
    double read, skipped, read_all;
    result some = {0}, all = {0};

    if (read_as_planned(&some, line, &read, &skipped) &&
        read_as_planned(&all, text("%s --no-prune", line), &read_all, &skipped))
        same_results(&some, &all, 1e-4, text("%s against --no-prune", line));
    result_free(&some);
    result_free(&all);
}

/* GCN's last layer is trained on 2 % of the edges, its first is summed once before the run. Labelled vertices and those
 * that they hear stand first in their intervals, so vertex programs run for little more. */
static void little_is_computed(void)
{
    if (!command("plan %s --model gcn --json", store_of("graph", "metis", 5, "--seed 1")))
        return;
    const double rows = planned("rows"), edges = planned("edges");
    check(rows > 0 && rows <= 7500, "gcn: an epoch's stages run for %.0f rows", rows);
    check(edges > 0 && edges <= EDGES * 0.03, "gcn: an epoch goes over %.0f edges", edges);
}

void matrix_less_work(const arguments *a)
{
    static const char *const models[] = {"gcn", "sage", "gat", "ggcn"};
    static const char *const skipping[] = {"metis", "random"}, *const pruning[] = {"metis", "natural"};
    const char *const learn =
        text("--hidden 16 --optimizer sgd --lr 0.1 --epochs %d --seed 3", sanitized() ? 1 : 2);

    (void)a;
    if (!command("generate sbm graph --vertices 12000 --edges 120000 --features 30 --classes 40 --seed 4"))
        return;
    for (int i = 0; i < 2; i++)
        for (int m = 0; m < 3; m++)
            if (sanitized() ? i == m : in_turn((size_t)i, (size_t)m, 2)) /* each method, not each model */
                rows_are_skipped(skipping[i], models[m]);
    /* Two of a hundred vertices have labels, all for training. */
    shorten("graph/train_idx.npy", 240);
    shorten("graph/valid_idx.npy", 0);
    shorten("graph/test_idx.npy", 0);
    for (int i = 0; i < 2; i++) {
        for (int m = 0; m < 4; m++) {
            if (sanitized() ? (i == 0 ? m == 2 : m == 3) : in_turn((size_t)i, (size_t)m + 1, 4)) /* kept, or not */
                rows_are_pruned(pruning[i], text("--model %s %s", models[m], learn));
            if (!sanitized() && in_turn((size_t)i + 2, (size_t)m, 4))
                rows_are_pruned(pruning[i], text("--model %s %s --no-cache", models[m], learn));
        }
        if (!sanitized() || i == 1)
            rows_are_pruned(pruning[i],
                            text("--model gcn --layers 3 %s --dropout 0.5 --eval-every 0 --no-cache", learn));
    }
    little_is_computed();
}
