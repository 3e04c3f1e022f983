/* determinism.c - the table of docs/design/results.md, row by row: what keeps every bit, and what keeps rounding. */
#include <stdlib.h>
#include <string.h>

#include "matrix.h"

#define LOOSE 1e-4 /* of the largest logit, where the order of sums may differ */

static const char *options(const char *model)
{
    return text("--model %s --layers 2 --hidden 20 %s", model_of(model), options_of(model));
}

static bool predicted(result *r, const char *store, const char *model, const char *how)
{
    result_free(r);
    if (!command("predict %s %s %s --weights out/given.safetensors --logits out/predicted.npy", store, options(model),
                 how))
        return false;
    r->logits = npy_values("out/predicted.npy", &r->rows, &r->columns);
    return true;
}

static bool learned(result *r, const char *store, const char *model, const char *how)
{
    return train(r, "%s %s --epochs 3 --seed 5 --dropout 0.25 %s", store, options(model), how);
}

/* Logits of given weights: bits over threads, budgets and parts of the processors. */
static void bits_of_logits(const char *store, const char *model)
{
    static const char *const ways[] = {
        "--threads 1", "--threads 3", "--no-cache --threads 1", "--no-cache --no-pipeline --threads 2",
        "--device-memory 30M", "--no-cache --no-swap --no-selective", "--device cpu:2",
        "--device cpu:3 --no-cache", "--no-verify"};
    result one = {0}, other = {0};

    if (predicted(&one, store, model, ""))
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
            if ((!sanitized() || i % 3 == 0) && predicted(&other, store, model, ways[i]))
                same_logits(&other, &one, 0, text("%s: logits with %s, bit for bit", model, ways[i]));
    result_free(&one);
    result_free(&other);
}

/* The same to rounding: other instructions, the compiler's switches, another program. */
static void rounding_of_logits(const char *store, const char *model)
{
    static const char *const ways[] = {"--no-move", "--no-fuse", "--no-batch"};
    result one = {0}, other = {0};

    if (predicted(&one, store, model, "")) {
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
            if (predicted(&other, store, model, ways[i]))
                same_logits(&other, &one, LOOSE, text("%s: logits with %s", model, ways[i]));
    }
    result_free(&one);
    result_free(&other);
}

/* The same to rounding: products are oneDNN's or the device's own, whose order is another. Sums of rows have the same
 * bits by all instructions (test_cpu_edges.c). A device asks for its instructions when it is opened. */
static void instructions(const char *store, const char *model)
{
    static const char *const isa[] = {"generic", "avx2"};
    const char *const given = getenv("GS_ISA");
    char *const kept = given != NULL ? strdup(given) : NULL;
    result one = {0}, other = {0};

    if (predicted(&one, store, model, ""))
        for (int i = 0; i < 2; i++) {
            setenv("GS_ISA", isa[i], 1);
            if (predicted(&other, store, model, ""))
                same_logits(&other, &one, LOOSE, text("%s: logits by %s", model, isa[i]));
        }
    if (kept != NULL)
        setenv("GS_ISA", kept, 1);
    else
        unsetenv("GS_ISA");
    free(kept);
    result_free(&one);
    result_free(&other);
}

/* A GPU, or the one of the tests: what it computes twice has the same bits, and the CPU's to rounding. Another layout
 * is other tiles, for which cuBLAS may take another kernel; the one of the tests multiplies each row by itself. */
static void gpu(const char *store, const char *model)
{
    const double other_tiles = getenv("GS_TEST_GPU") != NULL ? LOOSE : 0;
    result one = {0}, other = {0};

    if (predicted(&one, store, model, "--device cuda")) {
        if (predicted(&other, store, model, "--device cuda"))
            same_logits(&other, &one, 0, text("%s: logits by a GPU, twice", model));
        if (predicted(&other, store, model, "--device cuda --no-cache --device-memory 13M"))
            same_logits(&other, &one, other_tiles, text("%s: logits by a GPU of little memory", model));
        if (predicted(&other, store, model, ""))
            same_logits(&other, &one, LOOSE, text("%s: logits by the CPU and a GPU", model));
    }
    result_free(&one);
    result_free(&other);
}

/* P and the method are another order of edges: rounding, bits for a maximum; a sequence needs its order. */
static void other_stores(const char *store, const char *model)
{
    const bool sequence = strcmp(method_of(model), "natural") == 0;
    result one = {0}, other = {0};

    if (predicted(&one, store, model, "")) {
        for (unsigned parts = 1; parts <= 3; parts += 2)
            if (predicted(&other, store_of("rough", method_of(model), parts, ""), model, ""))
                same_logits(&other, &one, strcmp(model, "sage_max") == 0 ? 0 : LOOSE,
                            text("%s: logits with P=%u", model, parts));
        if (!sequence && predicted(&other, store_of("rough", "random", 5, ""), model, ""))
            same_logits(&other, &one, LOOSE, text("%s: logits of another method", model));
    }
    result_free(&one);
    result_free(&other);
}

/* Weights after training: bits for the same command; for another plan rounding. */
static void weights(const char *store, const char *model)
{
    result one = {0}, other = {0};

    if (learned(&one, store, model, "--threads 2 --no-cache")) {
        if (learned(&other, store, model, "--threads 2 --no-cache"))
            same_bits(&other, &one, text("%s: the same command twice", model));
        if (learned(&other, store, model, "--threads 2 --device cpu:2 --no-cache"))
            same_results(&other, &one, 2 * LOOSE, text("%s: trained on two devices", model));
        if (!sanitized() && learned(&other, store, model, "--threads 1"))
            same_results(&other, &one, 2 * LOOSE, text("%s: trained in memory", model));
    }
    result_free(&one);
    result_free(&other);
}

/* MODEL...: every row of the table that does not need a process of its own. */
void matrix_determinism(const arguments *a)
{
    graph_of("rough");
    for (int m = 0; m < a->count; m++) {
        const char *const model = a->word[m];
        const char *const store = store_of("rough", method_of(model), 8, "");
        result given = {0};
        if (sanitized() && !in_turn(0, (size_t)m, 2))
            continue;

        if (learned(&given, store, model, "--no-prune")) {
            ref_tensors_write("out/given.safetensors", &given.weights, true);
            bits_of_logits(store, model);
            rounding_of_logits(store, model);
            instructions(store, model);
            other_stores(store, model);
            weights(store, model);
        }
        result_free(&given);
    }
}

/* MODEL...: the rows of a GPU. */
void matrix_determinism_gpu(const arguments *a)
{
    graph_of("short");
    for (int m = 0; m < a->count; m++) {
        const char *const store = store_of("short", method_of(a->word[m]), 3, "");
        result given = {0};

        if (learned(&given, store, a->word[m], "--no-prune")) {
            ref_tensors_write("out/given.safetensors", &given.weights, true);
            gpu(store, a->word[m]);
        }
        result_free(&given);
    }
}
