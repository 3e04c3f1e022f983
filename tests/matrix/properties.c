/* properties.c - threads, dropout, element types, Adam, --undirected, doubled edges, weights out and in again. */
#include <stdlib.h>

#include "matrix.h"

#define EPOCHS 5u

static bool properties_train(result *r, const char *graph, unsigned parts, const char *options)
{
    return train(r, "%s --layers 2 --hidden 16 --seed 5 %s", store_of(graph, "fennel", parts, ""), options);
}

/* The same run again, with other threads, with another layout. */
static void same_again(const char *model)
{
    const char *const dropped =
        text("--epochs 5 --model %s --dropout 0.5 --input-dropout 0.25 --lr 0.01", model);
    result one = {0}, other = {0};

    if (!properties_train(&one, "rough", 8, text("%s --threads 1", dropped)))
        return;
    if (properties_train(&other, "rough", 8, text("%s --threads 1", dropped)))
        same_bits(&other, &one, text("%s: the same command twice", model));
    if (properties_train(&other, "rough", 8, text("%s --threads 2", dropped)))
        same_logits(&other, &one, 1e-4, text("%s, dropout: 2 threads against 1", model));
    if (properties_train(&other, "rough", 1, text("%s --threads 2", dropped)))
        same_logits(&other, &one, 1e-4, text("%s, dropout: P=1 against P=8", model));
    if (properties_train(&other, "rough", 8, text("%s --threads 2 --no-cache", dropped)))
        same_logits(&other, &one, 1e-4, text("%s, dropout: spilling against not", model));
    if (properties_train(&other, "rough", 8, text("%s --threads 1 --seed 6", dropped)))
        check(logits_apart(&other, &one) > 1e-3, "%s: another seed gives the same", model);
    if (properties_train(&other, "rough", 8, text("--epochs 5 --model %s --lr 0.01 --threads 1", model)))
        check(logits_apart(&other, &one) > 1e-3, "%s: dropout and none give the same", model);
    result_free(&one);
    result_free(&other);
}

/* Edges that are there several times are merged where their chunks stay in memory. */
static void doubled_edges(void)
{
    static const char *const models[] = {"gcn", "sage", "gin"};
    result merged = {0}, each = {0};

    if (!command("generate rmat doubled --vertices 200 --edges 30000 --features 12 --classes 5 --seed 3"))
        return;
    for (int m = 0; m < 3; m++) {
        const char *const line = text("--epochs 5 --model %s --optimizer sgd --lr 1e-3", models[m]);
        if (properties_train(&merged, "doubled", 2, line) &&
            properties_train(&each, "doubled", 2, text("%s --no-cache", line)))
            same_logits(&merged, &each, 2e-4, text("%s: merged edges against each", models[m]));
    }
    result_free(&merged);
    result_free(&each);
}

typedef struct property {
    const char *store_options;
    unsigned parts;
    double tolerance;
    const char *options; /* of the engine alone */
    learning learning;
} property;

static void against_the_reference(const char *model, const property *p)
{
    const network n = {model, model, "relu", 2, 16, 1, 4};
    yardstick y = reference_of("rough", &n, &p->learning);
    const char *const line = text("%s %s %s --init %s %s", store_of("rough", "fennel", p->parts, p->store_options),
                                  network_options(&n), learning_options(&p->learning), y.init, p->options);
    result r = {0};

    if (train(&r, "%s", line))
        same_results(&r, &y.end, p->tolerance, line);
    result_free(&r);
    yardstick_free(&y);
}

#define SGD .optimizer = "sgd", .epochs = EPOCHS, .margin = 2e-6
#define ADAM .optimizer = "adam", .epochs = EPOCHS, .margin = 2e-6

/* Weights out and in again, 2 + 3 epochs of SGD are 5; and predict computes what train did at its end. */
static void out_and_in_again(void)
{
    const char *const line = "--model sage --optimizer sgd --lr 0.3";
    result whole = {0}, half = {0}, rest = {0}, predicted = {0};

    if (!properties_train(&whole, "rough", 8, text("%s --epochs 5", line)) ||
        !properties_train(&half, "rough", 8, text("%s --epochs 2", line)))
        return;
    ref_tensors_write("out/half.safetensors", &half.weights, true);
    ref_tensors_write("out/whole.safetensors", &whole.weights, true);
    if (properties_train(&rest, "rough", 8, text("%s --epochs 3 --init out/half.safetensors", line)))
        same_bits(&rest, &whole, "2 + 3 epochs against 5");
    if (command("predict %s --model sage --layers 2 --hidden 16 --weights out/whole.safetensors --logits out/p.npy",
                store_of("rough", "fennel", 1, ""))) {
        predicted.logits = npy_values("out/p.npy", &predicted.rows, &predicted.columns);
        same_logits(&predicted, &whole, 1e-5, "predict against train");
    }
    result_free(&whole);
    result_free(&half);
    result_free(&rest);
    result_free(&predicted);
}

void matrix_properties(const arguments *a)
{
    static const property properties[] = {
        {"", 8, 1e-3, "", {ADAM, .lr = 0.02}},
        {"", 1, 1e-3, "", {ADAM, .lr = 0.02, .weight_decay = 0.05}},
        {"", 8, 1e-4, "", {SGD, .lr = 0.5, .weight_decay = 0.02}},
        {"", 8, 1e-4, "--no-move", {SGD, .lr = 0.5}},
        {"", 8, 1e-4, "--threads 1 --no-cache", {SGD, .lr = 0.5}},
        {"--feature-type bf16", 3, 1e-4, "", {SGD, .lr = 0.5, .feature_type = "bf16"}},
        {"--feature-type f16", 3, 1e-4, "", {SGD, .lr = 0.5, .feature_type = "f16"}},
        {"--undirected", 3, 1e-4, "", {SGD, .lr = 0.5, .undirected = true}},
    };
    static const char *const models[] = {"gcn", "sage"};

    (void)a;
    graph_of("rough");
    for (int m = 0; m < 2; m++) {
        same_again(models[m]);
        for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++)
            against_the_reference(models[m], &properties[i]);
    }
    for (int t = 0; t < 2; t++)
        command("verify %s", store_of("rough", "fennel", 3, t == 0 ? "--feature-type bf16" : "--feature-type f16"));
    doubled_edges();
    out_and_in_again();
}
