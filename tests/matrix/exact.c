/* exact.c - against the float64 reference: losses, logits, weights and gradients. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "matrix.h"

/* A real graph of GS_TEST_DATA becomes a link here; without the data the test is skipped. */
static void link_real_graph(const char *kind)
{
    const char *const data = getenv("GS_TEST_DATA");
    char path[PATH_MAX];

    if (strcmp(kind, "cora") != 0 && strcmp(kind, "dblp") != 0)
        return;
    snprintf(path, sizeof(path), "%s/%s/edges.npy", data != NULL ? data : GS_TEST_SOURCE_ROOT "/../shared/data", kind);
    if (access(path, F_OK) != 0) {
        note("no %s in GS_TEST_DATA", kind);
        exit(77);
    }
    *strrchr(path, '/') = '\0';
    if (symlink(path, kind) != 0)
        ref_die("%s: cannot link", path);
}

/* One run of a store, kept in memory or not, against the reference. */
static void exact_run(const yardstick *y, const char *model, unsigned layers, const learning *l, const char *store,
                      const char *more)
{
    const char *const name = text("%s %s %s", store, model, more);
    result r = {0};

    if (train(&r, "%s --model %s --layers %u --hidden 16 %s --init %s %s", store, model, layers, learning_options(l),
              y->init, more)) {
        same_results(&r, &y->end, 1e-4, name);
        check_near(last(&r, "loss"), y->loss, 1e-5, "%s: loss of the last epoch", name);
        check(last(&r, "epoch") == l->epochs, "%s: %g lines of metrics", name, last(&r, "epoch"));
        if (*more != '\0' && layers > 1)
            check(total(&r, "written_bytes") > 0, "%s: nothing was spilled", name);
    }
    result_free(&r);
}

/* KIND LAYERS LR METHODS PARTS: five SGD epochs of GCN and GraphSAGE over every method and number of parts, once with
 * what fits in memory and once with nothing kept; without GS_TEST_ALL each method with every other number, in turn. A
 * sanitized build takes every method and every number once. */
void matrix_exact(const arguments *a)
{
    static const char *const models[] = {"gcn", "sage"};
    const char *const kind = a->word[0];
    const bool several = strchr(a->word[3], ' ') != NULL; /* methods */
    const unsigned layers = (unsigned)atoi(a->word[1]);
    const learning l = {.optimizer = "sgd", .epochs = 5, .lr = atof(a->word[2]), .margin = 2e-6};
    yardstick y[2];
    char methods[256], parts[256], *method_rest = NULL, *parts_rest;
    unsigned number = 0, wanted = 0;

    link_real_graph(kind);
    for (int m = 0; m < 2; m++)
        y[m] = reference_of(kind, &(network){models[m], models[m], "relu", layers, 16, 1, 4}, &l);
    snprintf(methods, sizeof(methods), "%s", a->word[3]);
    for (char *method = strtok_r(methods, " ", &method_rest); method != NULL;
         method = strtok_r(NULL, " ", &method_rest), number++) {
        snprintf(parts, sizeof(parts), "%s", a->word[4]);
        unsigned place = 0;
        for (char *p = strtok_r(parts, " ", &parts_rest); p != NULL; p = strtok_r(NULL, " ", &parts_rest), place++) {
            if (sanitized() ? place % 5 != number % 5 && number + place > 0 : several && !in_turn(place, number, 2))
                continue;
            const char *const store = store_of(kind, method, (unsigned)atoi(p), "--seed 1");
            command("verify %s", store);
            for (int m = 0; m < 2; m++) {
                exact_run(&y[m], models[m], layers, &l, store, "");
                exact_run(&y[m], models[m], layers, &l, store, "--no-cache");
            }
            wanted++;
        }
    }
    check(wanted > 0, "no store was made");
    yardstick_free(&y[0]);
    yardstick_free(&y[1]);
}

/* ---- gradients ---- */

/* The engine's loss at these weights with one element moved by `step`; what the element became in float32 is *value. */
static bool loss_at(double *loss, double *value, const char *line, const ref_tensors *weights, const char *tensor,
                    size_t index, double step)
{
    double *const element = &ref_tensors_find(weights, tensor)->value[index];
    const double before = *element;
    result r = {0};

    *element = *value = (float)(before + step);
    ref_tensors_write("out/nudged.safetensors", weights, true);
    *element = before;
    const bool fine = train(&r, "%s --epochs 1 --optimizer sgd --lr 0.1 --init out/nudged.safetensors", line);
    if (fine)
        *loss = last(&r, "loss");
    result_free(&r);
    return fine;
}

/* For each tensor's steepest element (of one tensor in twelve, in turn over the models), the central difference of the
 * engine's own loss. The step is a compromise: the loss is known to about 1e-8, and a longer one meets kinks of
 * relu. */
static void differences(const yardstick *y, const ref_tensors *gradient, const network *n, const char *line,
                        size_t number, const char *name)
{
    const double step = strcmp(n->act, "relu") == 0 ? 0.0005 : 0.003;

    for (size_t t = 0; t < gradient->count; t++) {
        const ref_tensor *const g = &gradient->tensor[t];
        double up, down, at_up, at_down;
        size_t steepest = 0;
        if (!in_turn(t, number, 12))
            continue;
        for (size_t i = 1; i < ref_tensor_size(g); i++)
            steepest = fabs(g->value[i]) > fabs(g->value[steepest]) ? i : steepest;
        if (g->value[steepest] == 0) /* a buffer */
            continue;
        if (loss_at(&up, &at_up, line, &y->start, g->name, steepest, step) &&
            loss_at(&down, &at_down, line, &y->start, g->name, steepest, -step))
            check_near((up - down) / (at_up - at_down), g->value[steepest], 1e-2, "%s: finite difference at %s[%zu]",
                       name, g->name, steepest);
    }
}

/* (w0 - w1) / lr after one step; 0 for what passes move and not their gradient. */
static ref_tensors slope_of(const yardstick *y, const result *r, double lr)
{
    ref_tensors g = ref_tensors_read("out/run.safetensors");

    for (size_t i = 0; i < g.count; i++) {
        const ref_tensor *const start = ref_tensors_find(&y->start, g.tensor[i].name);
        const bool follows = strstr(g.tensor[i].name, ".running_") != NULL || g.tensor[i].count;
        if (start == NULL)
            ref_die("no %s in the start", g.tensor[i].name);
        for (size_t k = 0; k < ref_tensor_size(start); k++)
            g.tensor[i].value[k] = follows ? 0 : (start->value[k] - r->weights.tensor[i].value[k]) / lr;
    }
    return g;
}

/* KIND MODEL...: what one SGD step says of the gradient equals the reference's, and what the engine's own loss says.
 * The latter is left out of sanitized builds: the same code runs for each of hundreds of losses. */
void matrix_gradients(const arguments *a)
{
    /* large: the weights after a step then hold more digits of the gradient than of those before */
    learning l = {.optimizer = "sgd", .epochs = 1, .lr = 64, .margin = 1e-7};
    const char *const kind = a->word[0];

    for (int m = 1; m < a->count; m++) {
        const network n = network_of(a->word[m]);
        l.lr = strcmp(n.name, "gates") == 0 ? 4 : 64; /* its exponentials would leave the finite numbers */
        yardstick y = reference_of(kind, &n, &(learning){.optimizer = "sgd", .epochs = 1, .lr = 0.1, .margin = 1e-7});
        for (unsigned parts = 1; parts <= 8; parts += 7) {
            const char *const store = store_of(kind, method_of(n.name), parts, "");
            const char *const line = text("%s %s%s", store, network_options(&n), parts > 1 ? " --no-cache" : "");
            const char *const name = text("%s %s P=%u", kind, n.name, parts);
            result r = {0}, slope = {0}, want = {.weights = y.gradient};
            if (train(&r, "%s %s --init %s", line, learning_options(&l), y.init)) {
                slope.weights = slope_of(&y, &r, l.lr);
                same_weights(&slope, &want, 1e-4, text("%s: gradient", name));
                if (parts > 1 && !sanitized())
                    differences(&y, &slope.weights, &n, line, (size_t)m, name);
            }
            result_free(&slope);
            result_free(&r);
        }
        yardstick_free(&y);
    }
}
