/* vertex_rows.c - learned rows of vertices: their optimisers, their files, and that no layout changes a bit of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "matrix.h"

/* Five steps of Adam are the reference's, of every row, in memory and spilled, on one device and on several. */
static void adam(const char *const *ways, size_t count)
{
    const network n = network_of("tables");
    const learning l = {.optimizer = "adam", .epochs = 5, .lr = 0.02, .weight_decay = 0.01, .margin = 1e-7};
    yardstick y = reference_of("rough", &n, &l);
    result r = {0};

    for (size_t i = 0; i < count; i++) {
        const char *const line = text("%s %s %s --init %s %s", store_of("rough", "fennel", i % 2 == 1 ? 8 : 3, ""),
                                      network_options(&n), learning_options(&l), y.init, ways[i]);
        if (train(&r, "%s", line))
            same_results(&r, &y.end, 1e-3, line);
    }
    result_free(&r);
    yardstick_free(&y);
}

/* One step of SGD at a rate of 1 with clipped gradients moves all tensors together by as much as they may. */
static void clipped(const char *way)
{
    const network n = network_of("tables");
    const learning l = {.optimizer = "sgd", .epochs = 1, .lr = 1, .margin = 1e-7};
    yardstick y = reference_of("rough", &n, &l);
    result r = {0};
    double moved = 0;

    if (train(&r, "%s %s %s --init %s --no-cache --clip-norm 0.01 %s", store_of("rough", "fennel", 3, ""),
              network_options(&n), learning_options(&l), y.init, way)) {
        for (size_t t = 0; t < y.start.count; t++) {
            const ref_tensor *const now = ref_tensors_find(&r.weights, y.start.tensor[t].name);
            for (size_t k = 0; now != NULL && k < ref_tensor_size(now); k++)
                moved += pow(now->value[k] - y.start.tensor[t].value[k], 2);
        }
        check_near(sqrt(moved), 0.01, 1e-4, "a clipped step's length");
    }
    result_free(&r);
    yardstick_free(&y);
}

/* A batch of all targets and all that they see is the whole graph's epoch: rows that it has not have no gradient there,
 * and without weight decay Adam leaves them alone. So is a step of all batches of an epoch, many of whose rows are in
 * several of them. */
static void batched(void)
{
    static const char *const ways[] = {"--batch-size 100000", "--batch-size 100000 --no-cache",
                                       "--batch-size 100000 --no-cache --no-prune --threads 1",
                                       "--batch-size 7 --batches-per-step 1000",
                                       "--batch-size 19 --batches-per-step 100 --no-cache --threads 1",
                                       "--batch-size 7 --batches-per-step 1000 --device cpu:3 --no-cache"};
    const network n = network_of("tables");
    const learning l = {.optimizer = "adam", .epochs = 5, .lr = 0.02, .margin = 1e-7};
    yardstick y = reference_of("rough", &n, &l);
    result r = {0};

    for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        const char *const line = text("%s %s %s --init %s --sampler neighbor --fanout 0,0,0 %s",
                                      store_of("rough", "fennel", i == 1 ? 8 : 3, ""), network_options(&n),
                                      learning_options(&l), y.init, ways[i]);
        if (train(&r, "%s", line))
            same_results(&r, &y.end, 1e-3, line);
    }
    result_free(&r);
    yardstick_free(&y);
}

/* Batches of a few rows each: where these are, in memory, in blocks of the disk or in both, changes no bit. */
static void drawn(void)
{
    static const char *const samplers[] = {"neighbor --batch-size 7 --fanout 3,2", "cluster --batch-size 1",
                                           "saint-walk --batch-size 9 --coverage 4",
                                           "neighbor --batch-size 7 --fanout 3,2 --batches-per-step 3",
                                           "cluster --batch-size 1 --batches-per-step 3",
                                           "neighbor --batch-size 7 --fanout 3,2 --batches-per-step 5 --device cpu:2"};
    static const char *const optimizers[] = {"adam --clip-norm 0.1", "sgd --momentum 0.9", "adamw --weight-decay 0.01",
                                             "adam --clip-norm 0.1", "sgd --momentum 0.9", "adam --clip-norm 0.1"};
    static const char *const ways[] = {"--no-cache", "--no-cache --threads 1 --no-prune", "--no-selective"};
    result one = {0}, other = {0};

    for (size_t i = 0; i < sizeof(samplers) / sizeof(samplers[0]); i++) {
        const char *const line = text("%s --model texts/tables.gnn --hidden 8 --epochs 3 --sampler %s --optimizer %s",
                                      store_of("rough", "fennel", 8, ""), samplers[i], optimizers[i]);
        if (!train(&one, "%s", line))
            continue;
        for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
            if (train(&other, "%s %s", line, ways[w])) /* the second adds more rows, of 0, to a weight's gradient */
                same_results(&other, &one, w == 1 ? 1e-6 : 0, text("%s, %s", samplers[i], ways[w]));
    }
    result_free(&one);
    result_free(&other);
}

/* A step is that of one device, whoever runs its batches, and the same run twice has the same bits. `all`: else devices
 * take the samplers in turn. */
static void dealt(const char *const *devices, size_t count, bool all)
{
    static const char *const samplers[] = {"neighbor --batch-size 7 --fanout 3,2 --batches-per-step 5",
                                           "cluster --batch-size 1 --batches-per-step 3",
                                           "saint-walk --batch-size 9 --batches-per-step 4"};
    static const char *const optimizers[] = {"sgd --lr 0.05 --momentum 0.9", "sgd --lr 0.05 --clip-norm 0.1",
                                             "sgd --lr 0.05 --weight-decay 0.01"};
    result want = {0}, one = {0}, again = {0};

    for (size_t i = 0; i < sizeof(samplers) / sizeof(samplers[0]); i++) {
        const char *const line = text("%s --model texts/tables.gnn --hidden 8 --epochs 2 --sampler %s --optimizer %s",
                                      store_of("rough", "fennel", 8, ""), samplers[i], optimizers[i]);
        if (!train(&want, "%s", line))
            continue;
        for (size_t k = 0; k < count; k++)
            if ((all || in_turn(i, k, 3)) && train(&one, "%s --device %s", line, devices[k]) &&
                same_results(&one, &want, 1e-4, text("%s on %s", samplers[i], devices[k])) &&
                train(&again, "%s --device %s", line, devices[k]))
                same_bits(&again, &one, text("%s on %s, again", samplers[i], devices[k]));
    }
    result_free(&want);
    result_free(&one);
    result_free(&again);
}

/* A gradient that a later stage reads comes to the host all the same. */
static void read_twice(const char *const *devices, size_t count)
{
    const char *const line = text("%s --model texts/offset.gnn --hidden 8 --epochs 3 --lr 0.05 --optimizer adam",
                                  store_of("rough", "fennel", 3, ""));
    result want = {0}, r = {0};

    if (!train(&want, "%s", line))
        return;
    for (size_t k = 0; k < count; k++)
        if (in_turn(k, 0, 2) && train(&r, "%s --device %s", line, devices[k]))
            same_results(&r, &want, 1e-3, text("a gradient that is read twice on %s", devices[k]));
    result_free(&want);
    result_free(&r);
}

#define ALONE "--model texts/alone.gnn --layers 1"

/* Devices have the numbers of one up to the order of sums, and the same bits each time. */
static void alone_on(const char *store, const char *line, const result *want, const char *devices)
{
    result one = {0}, again = {0};

    if (train(&one, "%s %s --device %s", store, line, devices) &&
        same_results(&one, want, 1e-4, text("rows alone on %s", devices)) &&
        train(&again, "%s %s --device %s", store, line, devices))
        same_bits(&again, &one, text("rows alone on %s, again", devices));
    result_free(&one);
    result_free(&again);
}

/* A graph without features, and a text that has no other parameter than rows: threads and budgets change no bit, and
 * neither do weights that go out and in again. */
static void alone(void)
{
    static const char *const ways[] = {"--threads 1", "--no-cache", "--no-cache --threads 3 --no-prune",
                                       "--no-selective"};
    const char *const line = ALONE " --epochs 4 --seed 3 --lr 0.05 --momentum 0.9 --optimizer sgd";
    result one = {0}, other = {0};

    graph_of("rough");
    mkdir("bare", 0777);
    static const char *const files[] = {"edges.npy", "labels.npy", "train_idx.npy", "valid_idx.npy", "test_idx.npy"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (symlink(text("../rough/%s", files[i]), text("bare/%s", files[i])) != 0)
            ref_die("bare/%s: cannot link", files[i]);
    const char *const store = store_of("bare", "fennel", 8, "");
    if (!train(&one, "%s %s", store, line))
        return;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (in_turn(i, 0, 2) && train(&other, "%s %s %s", store, line, ways[i]))
            same_bits(&other, &one, text("rows alone, %s", ways[i]));
    if (train(&other, "%s %s", store_of("bare", "random", 3, ""), line))
        same_results(&other, &one, 1e-4, "rows alone, another partition");
    alone_on(store, line, &one, "cpu:2 --no-cache");
    alone_on(store, line, &one, "cpu:3 --threads 3");
    ref_tensors_write("out/rows.safetensors", &one.weights, true);
    if (command("predict %s " ALONE " --weights out/rows.safetensors --logits out/p.npy --no-cache",
                store)) {
        result_free(&other);
        other.logits = npy_values("out/p.npy", &other.rows, &other.columns);
        same_logits(&other, &one, 0, "rows out and in again, bit for bit");
    }
    result_free(&one);
    result_free(&other);
}

/* Rows, their best and their moments go into checkpoints and out again: 2 + 3 epochs are 5, bit for bit. */
static void resumed(const char *folder, const char *way)
{
    const char *const runs[] = {"--epochs 5 --save out/whole.safetensors",
                                text("--epochs 2 --checkpoint %s --checkpoint-every 1", folder),
                                text("--epochs 5 --resume %s --save out/rest.safetensors", folder)};
    bool whole = true;

    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]) && whole; i++) /* what is resumed is said on stderr */
        whole = check(command_status(text("train %s --model texts/tables.gnn --hidden 8 --lr 0.05 --no-cache %s %s",
                                          store_of("rough", "fennel", 3, ""), way, runs[i])) == 0, "%s", runs[i]);
    if (!whole)
        return;
    result want = {.weights = ref_tensors_read("out/whole.safetensors")},
           rest = {.weights = ref_tensors_read("out/rest.safetensors")};
    same_weights(&rest, &want, 0, "2 + 3 epochs against 5");
    result_free(&want);
    result_free(&rest);
}

void matrix_tables(const arguments *a)
{
    static const char *const ways[] = {"", "--no-cache", "--no-cache --no-prune --threads 1", "--device cpu:2",
                                       "--device cpu:3 --no-cache", "--device cpu:1 --no-cache --no-prune",
                                       "--device cpu:4 --topology pairs.json --no-cache"},
                            *const devices[] = {"cpu:2", "cpu:2 --topology slow.json --no-cache", "cpu:3"};
    (void)a;
    write_topologies();
    adam(ways, sizeof(ways) / sizeof(ways[0]));
    batched();
    clipped("");
    clipped("--device cpu:2");
    clipped("--sampler neighbor --batch-size 100000 --fanout 0,0,0");
    drawn();
    dealt(devices, sizeof(devices) / sizeof(devices[0]), true);
    read_twice(devices, sizeof(devices) / sizeof(devices[0]));
    alone();
    if (in_turn(1, 0, 2)) { /* the other two have what these do */
        resumed("out/checkpoints", "");
        resumed("out/of_batches", "--sampler neighbor --batch-size 8 --fanout 3,2");
        resumed("out/of_steps", "--sampler neighbor --batch-size 8 --fanout 3,2 --batches-per-step 3");
    }
    resumed("out/of_devices", "--device cpu:2");
    resumed("out/dealt", "--sampler neighbor --batch-size 8 --fanout 3,2 --batches-per-step 3 --device cpu:2");
}

void matrix_tables_gpu(const arguments *a)
{
    static const char *const ways[] = {"--device cuda", "--device cuda --no-cache",
                                       "--device cuda --device-memory 13M --no-cache --no-prune",
                                       "--device cuda:0,0 --no-cache", "--device cpu,cuda:0 --topology beside.json"};
    static const char *const devices[] = {"cuda", "cuda:0,0", "cpu,cuda:0", "cuda:0,0 --no-cache --no-spread"};
    (void)a;
    write_topologies();
    adam(ways, sizeof(ways) / sizeof(ways[0]));
    dealt(devices, sizeof(devices) / sizeof(devices[0]), false);
    read_twice(devices, sizeof(devices) / sizeof(devices[0]));
    clipped("--device cuda");
    clipped("--device cuda:0,0");
    clipped("--device cuda --sampler neighbor --batch-size 100000 --fanout 0,0,0");
    clipped("--device cuda --sampler neighbor --batch-size 9 --batches-per-step 1000 --fanout 0,0,0");
    resumed("out/of_gpu", "--device cuda");
    resumed("out/of_gpu_batches", "--device cuda --sampler neighbor --batch-size 8 --fanout 3,2");
}
