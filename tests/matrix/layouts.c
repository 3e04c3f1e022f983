/* layouts.c - what must not depend on how a run is laid out: parts, memory, threads, devices, and what is rounded. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "matrix.h"

/* ---- one device ---- */

static bool layouts_train(result *r, const char *kind, const char *model, unsigned parts, const char *options)
{
    return train(r, "%s --model %s --layers 2 --hidden 16 --epochs 3 --seed 5 --optimizer sgd --lr 0.05 "
                    "--dropout 0.25 %s %s", store_of(kind, method_of(model), parts, ""), model_of(model),
                 options_of(model), options);
}

/* A buffer's value is in what runs once: every tensor "...eps" becomes 0.25, with hoisting and without. */
static void buffers_are_hoisted(const char *model, const result *learned)
{
    result hoisted = {0}, each = {0};
    unsigned set = 0;

    for (size_t i = 0; i < learned->weights.count; i++) {
        const ref_tensor *const t = &learned->weights.tensor[i];
        const size_t n = strlen(t->name);
        if (n >= 4 && strcmp(t->name + n - 4, ".eps") == 0) {
            t->value[0] = 0.25;
            set++;
        }
    }
    check(set > 0, "%s: no buffer of the name eps", model);
    ref_tensors_write("out/eps.safetensors", &learned->weights, true);
    if (layouts_train(&hoisted, "rough", model, 3, "--init out/eps.safetensors") &&
        layouts_train(&each, "rough", model, 3, "--init out/eps.safetensors --no-hoist"))
        same_logits(&hoisted, &each, 2e-4, text("%s: eps in what runs once", model));
    result_free(&hoisted);
    result_free(&each);
}

static bool predict(result *r, const char *device, const char *store, const char *model, const char *weights)
{
    result_free(r);
    if (!command("predict %s --model %s --layers 2 --hidden 16 %s --device %s --weights %s --logits out/predicted.npy",
                 store, model_of(model), options_of(model), device, weights))
        return false;
    r->logits = npy_values("out/predicted.npy", &r->rows, &r->columns);
    return true;
}

/* MODEL...: every model trains to the same logits and weights whatever the number of parts, the memory and the threads;
 * its weights load again and give the same logits. (That the mathematics is right is the business of `zoo`.) */
void matrix_layouts(const arguments *a)
{
    static const struct {
        unsigned parts;
        const char *options;
    } layouts[] = {{3, ""}, {8, "--no-cache"}, {3, "--no-cache --threads 1"}, {8, ""}};

    graph_of("rough");
    for (int m = 0; m < a->count; m++) {
        const char *const model = a->word[m];
        result one = {0}, other = {0};
        if (sanitized() && !in_turn(2, (size_t)m, 3))
            continue;
        if (!layouts_train(&one, "rough", model, 1, "--threads 1"))
            continue;
        ref_tensors_write("out/learned.safetensors", &one.weights, true);
        for (size_t i = 0; i < (sanitized() ? 2 : 4); i++)
            if (layouts_train(&other, "rough", model, layouts[i].parts, layouts[i].options))
                same_results(&other, &one, 2e-4, text("%s: P=%u %s", model, layouts[i].parts, layouts[i].options));
        if (predict(&other, "cpu", store_of("rough", method_of(model), 8, ""), model, "out/learned.safetensors"))
            same_logits(&other, &one, 1e-4, text("%s: predict", model));
        if (strcmp(model, "gin") == 0)
            buffers_are_hoisted(model, &one);
        result_free(&one);
        result_free(&other);
    }
}

/* ---- several devices ---- */

void write_topologies(void)
{
    FILE *f = ref_create("pairs.json");
    fputs("{\"switches\": [{\"devices\": 2}, {\"devices\": 2}]}\n", f);
    ref_close(f, "pairs.json");
    f = ref_create("lopsided.json");
    fputs("{\"switches\": [{\"devices\": 1, \"in_place\": true}, {\"devices\": 3, \"host_bps\": 3e9, \"peer_bps\": "
          "1e9}]}\n", f);
    ref_close(f, "lopsided.json");
    f = ref_create("slow.json");
    fputs("{\"switches\": [{\"devices\": 1, \"speeds\": [0.5], \"memories\": [64000000], \"in_place\": true}, "
          "{\"devices\": 1, \"memories\": [16000000]}], \"take\": \"all\"}\n", f);
    ref_close(f, "slow.json");
    f = ref_create("ring.json");
    fputs("{\"switches\": [{\"devices\": 1}, {\"devices\": 2}, {\"devices\": 1}], \"across_bps\": 4e9, \"share\": "
          "\"ring\"}\n", f);
    ref_close(f, "ring.json");
    f = ref_create("ring_of_two.json");
    fputs("{\"switches\": [{\"devices\": 1}, {\"devices\": 1}], \"across_bps\": 4e9, \"share\": \"ring\"}\n", f);
    ref_close(f, "ring_of_two.json");
    f = ref_create("beside.json"); /* predicted to be faster or not */
    fputs("{\"switches\": [{\"devices\": 1}, {\"devices\": 1}], \"take\": \"all\"}\n", f);
    ref_close(f, "beside.json");
}

/* docs/design/results.md: of given weights, neither threads nor budgets nor devices change a bit. */
static void predicted_alike(const char *store, const char *model, size_t number)
{
    static const char *const ways[] = {"cpu:4", "cpu --threads 1", "cpu --threads 3", "cpu --no-cache --threads 1"};
    result one = {0}, other = {0};

    if (!predict(&one, "cpu", store, model, "out/learned.safetensors"))
        return;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (in_turn(i, number, 2) && predict(&other, ways[i], store, model, "out/learned.safetensors"))
            same_logits(&other, &one, 0, text("%s: predicted on %s, bit for bit", model, ways[i]));
    result_free(&one);
    result_free(&other);
}

/* MODEL...: several devices give what one gives: logits of given weights bit for bit, weights learned to rounding,
 * whatever the parts, the topology and the memory; and the same run twice gives the same bits. Every other layout is
 * the first model's, the others take them in turn; in a sanitized build there is one model in twelve. */
void matrix_several(const arguments *a)
{
    static const struct {
        unsigned parts;
        const char *options;
    } layouts[] = {{3, "--device cpu:2 --no-cache"},
                   {8, "--device cpu:4 --topology pairs.json --no-cache"},
                   {1, "--device cpu:4 --topology pairs.json"},
                   {8, "--device cpu:4 --topology lopsided.json --threads 8 --no-cache"},
                   {1, "--device cpu:2"},
                   {8, "--device cpu:2 --topology slow.json"},
                   {8, "--device cpu:2"},
                   {3, "--device cpu:4"},
                   {8, "--device cpu:4 --no-chain"},
                   {8, "--device cpu:4 --topology ring.json --no-cache"},
                   {3, "--device cpu:1 --no-pipeline"}};
    const size_t most = sizeof(layouts) / sizeof(layouts[0]);

    graph_of("rough");
    write_topologies();
    for (int m = 0; m < a->count; m++) {
        const char *const model = a->word[m];
        const char *const store = store_of("rough", method_of(model), 8, "");
        result one = {0}, other = {0}, again = {0};
        if (sanitized() && !in_turn(1, (size_t)m, 12))
            continue;
        if (!layouts_train(&one, "rough", model, 1, ""))
            continue;
        ref_tensors_write("out/learned.safetensors", &one.weights, true);
        const size_t turn = sanitized() ? (size_t)m / 12 : (size_t)m, turns = sanitized() ? 3 : 8;
        for (size_t i = 0; i < most; i++)
            if (((m == 0 && !sanitized() && in_turn(i, 0, 2)) || in_turn(i, turn, turns)) &&
                layouts_train(&other, "rough", model, layouts[i].parts, layouts[i].options))
                same_results(&other, &one, 1e-4, text("%s: P=%u %s", model, layouts[i].parts, layouts[i].options));
        if (!sanitized() || m % 2 == 0) /* the same logits: of every model in the build for speed */
            predicted_alike(store, model, (size_t)m);
        if (in_turn(sanitized() ? 1 : 0, (size_t)m, 2) && layouts_train(&other, "rough", model, 8, "--device cpu:4") &&
            layouts_train(&again, "rough", model, 8, "--device cpu:4"))
            same_bits(&again, &other, text("%s: repeated on four devices", model));
        result_free(&one);
        result_free(&other);
        result_free(&again);
    }
}

/* ---- what is kept is rounded ---- */

static bool rounded_train(result *r, const char *kind, const network *n, unsigned parts, const char *options)
{
    return train(r, "%s %s --hidden 32 --epochs 4 --optimizer sgd --lr 0.1 --seed 5 %s",
                 store_of(kind, "fennel", parts, ""), network_options(n), options);
}

/* Bytes that a training epoch reads and writes where nothing is kept. */
static double moved(const char *kind, const network *n, const char *options)
{
    if (!command("plan %s %s --hidden 32 --no-cache --json %s", store_of(kind, "fennel", 8, ""), network_options(n),
                 options))
        return 0;
    return number_in(command_output(), "\"name\":\"train\"", "read_bytes") +
           number_in(command_output(), "\"name\":\"train\"", "written_bytes");
}

static bool is_one_of(const char *word, const char *words) { return strstr(words, text(" %s ", word)) != NULL; }

/* `how`: the option that rounds. */
static void rounded_model(const char *model, size_t number, const char *how, unsigned layers)
{
    static const struct {
        unsigned parts;
        const char *options;
    } layouts[] = {{8, "--threads 2"}, {1, ""}, {8, "--no-cache"}, {8, "--device cpu:2"}};
    const char *const kind = is_one_of(model, " gcn sage gin ") ? "symmetric" : "typed"; /* 32 columns, and an odd 23 */
    network n = network_of(model);
    result full = {0}, one = {0}, other = {0};

    graph_of(kind);
    n.layers = layers;
    const char *const alone = text("%s --threads 1", how);
    if (rounded_train(&full, kind, &n, 8, "") && rounded_train(&one, kind, &n, 8, alone) &&
        rounded_train(&other, kind, &n, 8, alone)) {
        same_bits(&other, &one, text("%s: the same command twice", model));
        check(logits_apart(&one, &full) > 0, "%s: nothing was rounded", model);
        /* gin's sums are divided by nothing: what was rounded grows with them */
        same_logits(&one, &full, is_one_of(model, " gin ") ? 1e-1 : 1e-2, text("%s: rounded against not", model));
        /* A float32 sum in another order now and then rounds to the neighbour: 1 / 256 of one element. */
        for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
            if ((!sanitized() || in_turn(i, number, 2)) &&
                rounded_train(&other, kind, &n, layouts[i].parts, text("%s %s", how, layouts[i].options)))
                same_logits(&other, &one, 2e-3, text("%s: P=%u %s", model, layouts[i].parts, layouts[i].options));
        if (is_one_of(model, " gcn sage ")) { /* others may cut their stages elsewhere */
            const double less = moved(kind, &n, how), more = moved(kind, &n, "");
            check(less < more, "%s: %.0f bytes moved, %.0f without rounding", model, less, more);
        }
    }
    result_free(&full);
    result_free(&one);
    result_free(&other);
}

/* MODEL...: `--spill-type bf16`: what is kept for later stages is rounded, in every layout alike; results stay within
 * what bf16's 8 bits allow, and less is moved. */
void matrix_rounded(const arguments *a)
{
    static const unsigned widths[] = {64, 65, 256}; /* each model in turn */
    static const char *const models[] = {"sage", "gcn"};

    for (int m = 0; m < a->count; m++)
        if (!sanitized() || in_turn(0, (size_t)m, 2))
            rounded_model(a->word[m], (size_t)m / 2, "--spill-type bf16",
                          strcmp(a->word[m], "rgcn") == 0 ? 3 : 2); /* of two its program keeps nothing for later */
    /* More rows than a tile has, in arrays of odd and of even widths: tiles are written side by side. */
    if (!command("generate sbm wide --vertices 6000 --edges 20000 --features 63 --classes 41"))
        return;
    for (size_t w = 0; w < 3; w++)
        for (size_t m = 0; m < 2; m++) {
            const char *const line =
                text("%s --model %s --layers 3 --hidden %u --epochs 3 --optimizer sgd --lr 0.05 --seed 5 "
                     "--spill-type bf16", store_of("wide", "natural", 1, ""), models[m], widths[w]);
            result kept = {0}, spilled = {0};
            if (!in_turn(w, m, 2) || (sanitized() && widths[w] == 256)) /* even, as 64 is */
                continue;
            if (train(&kept, "%s", line) && train(&spilled, "%s --no-cache --no-prune", line))
                same_logits(&spilled, &kept, 2e-3, text("%s, %u wide: spilled against kept", models[m], widths[w]));
            result_free(&kept);
            result_free(&spilled);
        }
}

/* ---- what edges read is rounded ---- */

#define BF16_ROUNDING (1.0 / 256) /* 8 bits: to the nearest is at most so much of a number away */

/* Three epochs against float64, which rounds nothing: an average of rows is as near to the exact one as its rows are,
 * in each of the layers and of their gradients; gin adds up without dividing. */
static void near_reference(const char *model, size_t number)
{
    static const char *const layouts[] = {"1", "3 --no-hoist", "8 --no-cache", "8 --no-cache --device cpu:3"};
    const bool deep = strcmp(model, "gcn") == 0 || strcmp(model, "sage") == 0 || strcmp(model, "gat") == 0;
    const network n = {model, model, "relu", deep ? 3 : 2, 40, 1, 4};
    /* Among ten thousands of edges' values some are always nearer to a bend. */
    const double margin = strcmp(model, "gatv2") == 0 ? 1e-7 : 2e-6;
    const learning l = {.optimizer = "sgd", .epochs = 3, .lr = 0.05, .margin = margin};
    yardstick y = reference_of("symmetric", &n, &l);
    result r = {0};

    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        const unsigned parts = (unsigned)(layouts[i][0] - '0');
        if (in_turn(i, number, 2) &&
            train(&r, "%s %s %s --init %s --gather-type bf16 %s", store_of("symmetric", "fennel", parts, ""),
                  network_options(&n), learning_options(&l), y.init, layouts[i] + 1))
            same_logits(&r, &y.end, (strcmp(model, "gin") == 0 ? 16 : 4) * BF16_ROUNDING,
                        text("%s, gathered as bf16, P=%s, against float64", model, layouts[i]));
    }
    result_free(&r);
    yardstick_free(&y);
}

/* Of given weights neither threads nor budgets nor devices change a bit, as docs/design/results.md says. */
static void gathered_alike(const char *model, size_t number)
{
    static const char *const ways[] = {"cpu --threads 1", "cpu --threads 3", "cpu --no-cache --threads 1", "cpu:3"};
    result one = {0}, other = {0};

    graph_of("rough");
    const char *const store = store_of("rough", method_of(model), 8, "");
    if (!layouts_train(&one, "rough", model, 8, "--gather-type bf16"))
        return;
    ref_tensors_write("out/learned.safetensors", &one.weights, true);
    if (predict(&one, "cpu --gather-type bf16", store, model, "out/learned.safetensors"))
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
            if (in_turn(i, number, 2) &&
                predict(&other, text("%s --gather-type bf16", ways[i]), store, model, "out/learned.safetensors"))
                same_logits(&other, &one, 0, text("%s: gathered as bf16 on %s, bit for bit", model, ways[i]));
    result_free(&one);
    result_free(&other);
}

/* Of a training epoch of a network all of whose gathers are of even rows that the run makes. */
static double gathered(const char *model, const char *options)
{
    if (!command("plan %s --model %s --layers 2 --hidden 32 --no-hoist --json %s", store_of("even", "natural", 2, ""),
                 model, options))
        return 0;
    return number_in(command_output(), "\"name\":\"train\"", "edge_bytes");
}

/* MODEL...: `--gather-type bf16`: rows that sums read are rounded, in every layout alike; results stay within what bf16
 * allows of float64's; the plan counts half the bytes. */
void matrix_gathered(const arguments *a)
{
    if (!command("generate sbm even --vertices 500 --edges 3000 --features 256 --classes 16"))
        return;
    for (int m = 0; m < a->count; m++) {
        const char *const model = a->word[m];
        if (sanitized() && m > 0)
            continue;
        if (strcmp(model, "ggcn") != 0) /* gcn's first sums features, its last few classes; ggcn's grow without end */
            rounded_model(model, (size_t)m, "--gather-type bf16", 3);
        near_reference(model, (size_t)m);
        gathered_alike(model, (size_t)m);
    }
    const double half = gathered("gcn", "--gather-type bf16"), whole = gathered("gcn", "");
    (void)gathered("sage", "--gather-type bf16");
    check(strstr(command_output(), ", bf16\"") != NULL, "sage: the plan names no rounded array");
    check(half > 0 && 2 * half == whole, "gcn: %.0f bytes gathered, %.0f in float32", half, whole);
    const double less = gathered("gat", "--gather-type bf16"), all = gathered("gat", "");
    check(less < all, "gat: %.0f bytes gathered, %.0f in float32", less, all);
}

/* ---- features of two bytes ---- */

/* Layouts in turn: every other, by `number`. */
static void half_model(const char *model, const char *kind, const char *type, const char *const *layouts, size_t number)
{
    const network n = {model, model, "relu", 2, 40, 1, 4};
    const learning l = {.optimizer = "sgd", .epochs = 3, .lr = 0.05, .margin = 2e-6, .feature_type = type};
    yardstick y = reference_of(kind, &n, &l);
    result r = {0};

    for (size_t i = 0; layouts[i] != NULL; i++) {
        const unsigned parts = (unsigned)(layouts[i][0] - '0');
        if (!sanitized() && !in_turn(i, number, 2))
            continue;
        if (train(&r, "%s %s %s --init %s %s", store_of(kind, "fennel", parts, text("--feature-type %s", type)),
                  network_options(&n), learning_options(&l), y.init, layouts[i] + 1))
            same_results(&r, &y.end, 2e-4, text("%s, %s, %s: P=%s", model, kind, type, layouts[i]));
    }
    result_free(&r);
    yardstick_free(&y);
}

/* cpu|cuda: features of two bytes a number, 23 columns and 32, which edge passes sum as they are: three SGD epochs are
 * the reference's on the same rounded features, in memory and spilling, with the sums computed once and in every epoch,
 * on one device and on several. */
void matrix_half_features(const arguments *a)
{
    static const char *const on_cpu[] = {
        "1", "3", "8", "1 --no-hoist", "8 --no-cache", "3 --no-cache --no-hoist", "8 --no-cache --no-prune",
        "3 --no-selective", "3 --device cpu:2", "8 --device cpu:3 --no-cache",
        "8 --device cpu:2 --no-hoist --no-chain", NULL};
    static const char *const sanitized_cpu[] = {"1 --no-hoist", "3 --no-cache --no-hoist", "8 --no-cache --no-prune",
                                                "3 --no-selective", "8 --device cpu:3 --no-cache", NULL};
    static const char *const on_cuda[] = {"1 --device cuda", "3 --device cuda --no-hoist",
                                          "8 --device cuda --no-cache --no-hoist",
                                          "3 --device cuda --no-hoist --device-memory 13M", NULL};
    static const char *const kinds[] = {"typed", "symmetric"}, *const types[] = {"bf16", "f16"};
    static const char *const models[] = {"gcn", "sage", "gin"};
    const bool cuda = strcmp(a->word[0], "cuda") == 0;

    for (int k = 0; k < 2; k++)
        for (int t = 0; t < 2; t++) {
            if (cuda && k != t) /* kernels on fibres are slow */
                continue;
            for (int m = 0; m < 3; m++)
                if (in_turn((size_t)(k + t), (size_t)m, 2))
                    half_model(models[m], kinds[k], types[t], cuda ? on_cuda : sanitized() ? sanitized_cpu : on_cpu,
                               (size_t)(k + m));
        }
}
