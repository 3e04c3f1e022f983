/* gpu.c - training on GPUs gives what the CPU gives, on one and on several. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "matrix.h"

static bool real_gpu(void) { return getenv("GS_TEST_GPU") != NULL; }

/* MODEL-rounded is MODEL with bf16 at rest, MODEL-gathered with bf16 for what sums of rows read. */
typedef struct gpu_model {
    const char *name, *model, *method, *more;
    bool rounded;
    double tolerance;
    unsigned seed;
} gpu_model;

static gpu_model gpu_model_of(const char *name)
{
    const char *const gathered = strstr(name, "-gathered"), *const tail = gathered != NULL ? gathered
                                                                                        : strstr(name, "-rounded");
    const char *const model = tail == NULL ? name : text("%.*s", (int)(tail - name), name);

    return (gpu_model){
        .name = name,
        .model = model,
        .method = method_of(model),
        .more = text("%s%s", options_of(model), tail == NULL       ? ""
                                                : gathered != NULL ? " --gather-type bf16"
                                                                   : " --spill-type bf16"),
        .rounded = tail != NULL,
        /* a sum that differs in its last bit may round to the neighbour */
        .tolerance = tail == NULL ? 1e-4 : 2e-3,
        /* with seed 5 a number of gat before its ReLU is so near to 0 that rounding decides its sign */
        .seed = strcmp(model, "gat") == 0 ? 6 : 5,
    };
}

/* What one epoch leaves, the next one finds; by gcn, once more. */
static unsigned epochs_of(const gpu_model *m) { return strcmp(m->name, "gcn") == 0 ? 3 : 2; }

static bool gpu_train(result *r, const gpu_model *m, const char *store, unsigned epochs, const char *options)
{
    return train(r, "%s --model %s --layers 2 --hidden 16 --epochs %u --seed %u --optimizer sgd --lr 0.05 "
                    "--dropout 0.25 %s %s", store, model_of(m->model), epochs, m->seed, m->more, options);
}

/* Edges of more types than a vertex has edges are multiplied by batches, a few portions of them. For so few vertices a
 * real GPU, or one that is known to be as fast, rather takes the sums by type, which are fewer launches. */
static void begin_many(void)
{
    setenv("GS_CUDA_PORTION_EDGES", "1501", 0);
    setenv("GS_HOST_GPU_SPEED", "unknown", 0);
}

static void many_types(const gpu_model *m, const char *store, const char *device)
{
    if (!real_gpu() && command("plan %s --model %s --hidden 16 --device %s --json", store, model_of(m->model), device))
        check(strstr(command_output(), "\"batches\":true") != NULL, "%s: no batches by type", m->name);
}

/* One layout of a model on the GPU against `want`. */
static void gpu_layout(const gpu_model *m, const char *store, const char *options, const result *want)
{
    result r = {0};

    if (gpu_train(&r, m, store, epochs_of(m), text("--device cuda %s", options)))
        same_results(&r, want, m->tolerance, text("%s: %s %s", m->name, store, options));
    result_free(&r);
}

/* By Adam, whose state is in the device's memory. */
static void gpu_adam(const gpu_model *m, const char *store, const char *device, const char *on_cpu, const char *on_gpu)
{
    const char *const adam = "--optimizer adam --lr 0.005 --weight-decay 0.01";
    result want = {0}, r = {0};

    if (gpu_train(&want, m, store, 3, text("--threads 1 %s %s", adam, on_cpu)) &&
        gpu_train(&r, m, store, 3, text("--device %s %s %s", device, adam, on_gpu)))
        same_weights(&r, &want, 1e-4, text("%s by Adam on %s", m->name, device));
    result_free(&want);
    result_free(&r);
}

/* Steps of a sequence come one after the other, so these take a small graph where kernels run on fibres. */
static const char *kind_for(const char *kind, const gpu_model *m)
{
    const bool ordered = strcmp(m->method, "natural") == 0;
    return ordered && !real_gpu() && strcmp(kind, "rough") == 0 ? "short" : kind;
}

/* Those in memory are taken in turn by all models but gcn, and so is Adam, which knows no model. */
static void gpu_one(const char *kind, const gpu_model *m)
{
    static const struct {
        unsigned parts;
        const char *options;
    } layouts[] = {{1, ""}, {3, ""}, {8, ""}, {8, "--no-cache"}, {3, "--device-memory 13M"}},
      few[] = {{1, ""}, {3, "--no-cache"}}; /* in 8 parts sums by type are predicted to be shorter */
    const bool many = strcmp(kind, "many") == 0, ordered = strcmp(m->model, "sage_lstm") == 0;
    const size_t number = strlen(m->name);
    result want[9] = {{0}};

    if (!gpu_train(&want[3], m, store_of(kind, "fennel", 3, ""), epochs_of(m), "--threads 1"))
        return;
    if (many)
        many_types(m, store_of(kind, "fennel", 3, ""), "cuda");
    for (size_t i = 0; i < (many ? 2 : 5); i++) {
        if (!many && i < 3 && strcmp(m->name, "gcn") != 0 && !in_turn(i, number, 3))
            continue;
        const unsigned parts = many ? few[i].parts : layouts[i].parts;
        const char *const options = many ? few[i].options : layouts[i].options;
        const char *const store = store_of(kind, "fennel", parts, "");
        const unsigned like = ordered ? parts : 3; /* sequences follow the store's order of vertices */
        if (want[like].logits != NULL || gpu_train(&want[like], m, store, epochs_of(m), "--threads 1"))
            gpu_layout(m, store, options, &want[like]);
    }
    if (!ordered && !many && in_turn(number, 1, 2)) /* slow, and a step is a step */
        gpu_adam(m, store_of(kind, "fennel", 3, ""), "cuda", "", "");
    for (size_t i = 0; i < 9; i++)
        result_free(&want[i]);
}

/* rough|many MODEL...: (of the zoo, or texts of tests/e2e) training on the GPU gives the CPU's logits and weights:
 * whatever the number of parts, with everything resident, with copies from host memory, and spilling. */
void matrix_gpu(const arguments *a)
{
    if (strcmp(a->word[0], "many") == 0)
        begin_many();
    for (int i = 1; i < a->count; i++) {
        const gpu_model m = gpu_model_of(a->word[i]);
        const char *const kind = kind_for(a->word[0], &m);
        graph_of(kind);
        gpu_one(kind, &m);
    }
}

/* ---- batches ---- */

/* typed|rough MODEL...: steps on batches, on the GPU and on the CPU: the same weights. Models take the samplers in
 * turn. */
void matrix_gpu_batches(const arguments *a)
{
    static const char *const samplers[] = {
        "--sampler neighbor --batch-size 60 --fanout 4,3",
        "--sampler cluster --batch-size 2", "--sampler saint-walk --batch-size 40 --walk-length 3",
        "--sampler neighbor --batch-size 300 --fanout 0,0",
        "--sampler neighbor --batch-size 90 --fanout 3,2 --replace",
        "--sampler saint-edge --batch-size 40 --coverage 2 --ignore-edge-weights"};

    for (int i = 1; i < a->count; i++) {
        const gpu_model m = gpu_model_of(a->word[i]);
        graph_of(a->word[0]);
        const char *const store = store_of(a->word[0], "fennel", 5, "");
        for (size_t k = 0; k < 6; k++) {
            result want = {0}, r = {0};
            if (!in_turn((size_t)i - 1, k, 6))
                continue;
            if (gpu_train(&want, &m, store, 1, text("--threads 1 --clip-norm 1 --keep last %s", samplers[k])) &&
                gpu_train(&r, &m, store, 1, text("--device cuda --clip-norm 1 --keep last %s", samplers[k])))
                same_results(&r, &want, m.tolerance, text("%s: %s", m.name, samplers[k]));
            result_free(&want);
            result_free(&r);
        }
    }
}

/* ---- several ---- */

typedef struct several_layout {
    unsigned parts;
    const char *devices; /* NULL: two */
    const char *options;
    bool nccl, no_peers;
} several_layout;

static const several_layout every[] = {
    {3, NULL, "", false, false},
    {1, "cuda:0,0", "", false, false},
    {8, "cuda:0,0,0", "--no-cache", false, false},
    {8, "cuda:0,0,0,0", "--topology pairs.json --device-memory 8M", false, false},
    {3, NULL, "", false, true},
    {8, NULL, "--no-chain", true, false},
    {8, "cuda:0,0,0,0", "--topology ring.json --device-memory 8M", false, false},
    {8, "cpu,cuda:0", "--topology beside.json --no-cache", false, false},
};
static const several_layout few[] = {
    {8, NULL, "--topology ring_of_two.json --no-cache", false, true},
    {3, "cuda:0,0,0", "--no-cache", false, false},
    {8, "cpu,cuda:0", "--topology beside.json", false, false},
    {1, NULL, "", true, false}};

/* What is there: one GPU at least. */
static const char *two_devices(void)
{
    if (!real_gpu())
        setenv("GS_HOST_GPUS", "2", 1);
    return !real_gpu() || system("[ $(nvidia-smi -L | grep -c '^GPU') -ge 2 ]") == 0 ? "cuda:0,1" : "cuda:0,0";
}

/* How GPUs reach each other, who adds up and what a chain is have nothing to do with the model, but for sums over all
 * vertices (norms) and sequences, whose rows travel: those and gcn have every layout, the others each number of parts
 * once, with the layouts in turn. */
static bool has_layout(const char *model, unsigned number, size_t layout)
{
    static const size_t of_8[] = {2, 3, 5};

    return strcmp(model, "gcn") == 0 || strcmp(model, "norms") == 0 || strcmp(model, "sage_lstm") == 0 ||
           layout == 1 || layout == (number % 2 == 0 ? 0 : 4) || layout == of_8[number % 3];
}

static void several_layout_of(const gpu_model *m, const char *kind, const several_layout *l, const result *want)
{
    const bool ordered = strcmp(m->method, "fennel") != 0;
    const char *const devices = l->devices != NULL ? l->devices : two_devices();
    /* the scratch of sequences, beside the processors; each thread of those has its own */
    const char *const wide = devices[1] != 'p' ? "" : ordered ? "--threads 2 --device-memory 30M" : "--threads 2";
    result r = {0};

    if (l->no_peers)
        setenv("GS_HOST_GPU_PEERS", "none", 1);
    gpu_have_nccl(l->nccl);
    if (gpu_train(&r, m, store_of(kind, m->method, l->parts, ""), 2,
                  text("--device-memory 10M --device %s %s %s", devices, l->options, wide)))
        same_results(&r, want, 1e-4,
                     text("%s: P=%u %s %s%s%s", m->name, l->parts, devices, l->options, l->nccl ? " NCCL" : "",
                          l->no_peers ? " without peers" : ""));
    gpu_have_nccl(false);
    unsetenv("GS_HOST_GPU_PEERS");
    result_free(&r);
}

/* The same logits of given weights, bit for bit, on one and on two. */
static void predicted_alike(const gpu_model *m, const char *store, const result *learned)
{
    const char *const devices[2] = {"cuda", two_devices()};
    result r[2] = {{0}};

    ref_tensors_write("out/learned.safetensors", &learned->weights, true);
    for (int i = 0; i < 2; i++)
        if (command("predict %s --model %s --layers 2 --hidden 16 --device %s --weights out/learned.safetensors "
                    "--logits out/p.npy %s", store, model_of(m->model), devices[i], m->more))
            r[i].logits = npy_values("out/p.npy", &r[i].rows, &r[i].columns);
    if (r[0].logits != NULL && r[1].logits != NULL)
        /* a real one may take other kernels for other tiles (docs/design/results.md) */
        same_logits(&r[1], &r[0], real_gpu() ? 1e-4 : 0, text("%s: predicted by two", m->name));
    result_free(&r[0]);
    result_free(&r[1]);
}

static void several_one(const char *kind, const gpu_model *m, unsigned number, bool all)
{
    const bool many = strcmp(kind, "many") == 0;
    const bool whole = has_layout(m->model, number, 0) && has_layout(m->model, number, 4); /* every layout */
    result want = {0};

    if (!gpu_train(&want, m, store_of(kind, m->method, 3, ""), 2, "--threads 1 --device-memory 1G"))
        return;
    if (many)
        many_types(m, store_of(kind, m->method, 3, ""), two_devices());
    for (size_t i = 0; i < (all ? sizeof(every) / sizeof(every[0]) : sizeof(few) / sizeof(few[0])); i++)
        if (all ? has_layout(m->model, number, i) : !many || few[i].parts < 8 || getenv("GS_TEST_ALL") != NULL)
            several_layout_of(m, kind, all ? &every[i] : &few[i], &want);
    if ((!all || whole) && !many && strcmp(m->model, "sage_lstm") != 0) /* a step is a step */
        gpu_adam(m, store_of(kind, m->method, 3, ""), two_devices(), "--device-memory 1G", "--device-memory 10M");
    /* many, in 8 parts: sums by type are predicted to be shorter, for one device or for two */
    predicted_alike(m, store_of(kind, m->method, many ? 3 : 8, ""), &want);
    result_free(&want);
}

/* few|all rough|many MODEL...: several devices on one GPU and on two give the CPU's logits and weights, whatever the
 * parts, however the GPUs reach each other and whoever adds up their gradients; and (with checks of races) nothing is
 * touched by two streams at once. Of many types few parts are enough, as products by batches are of one chunk. */
void matrix_several_gpus(const arguments *a)
{
    const bool all = strcmp(a->word[0], "all") == 0;
    const char *const kind = a->word[1];
    unsigned number = 0;

    if (strcmp(kind, "many") == 0)
        begin_many();
    write_topologies();
    for (int i = 2; i < a->count; i++) {
        const gpu_model m = gpu_model_of(a->word[i]);
        graph_of(kind_for(kind, &m));
        several_one(kind_for(kind, &m), &m, number, all);
        number += !has_layout(m.model, number, 0) || !has_layout(m.model, number, 4);
    }
}
