/* Rows of features in the memory of one GPU and of two: no bit of the weights changes, and the bytes that cross are
 * those of batches that are drawn here once more, with the rows chosen here by sorting. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_graph.h"
#include "base/size.h"
#include "gnnstream.h"
#include "sample/sampler.h"
#include "session/store_rows.h"
#include "support/support.h"
#include "train/options.h"

enum { VERTICES = 2000, FEATURES = 1024, EPOCHS = 1, DEVICES = 2 };

static const char *store_path;
static char *folder;

static int make(void **state)
{
    gs_generate_options g;
    gs_partition_options p;
    static char path[512];
    (void)state;
    folder = gs_test_temp_dir();
    snprintf(path, sizeof(path), "%s/store", folder);
    store_path = path;
    gs_generate_options_init(&g);
    g.vertices = VERTICES;
    g.edges = 5ull * VERTICES;
    g.features = FEATURES;
    g.classes = 3;
    gs_assert_ok(gs_generate("rmat", gs_test_path(folder, "graph"), &g));
    gs_partition_options_init(&p);
    p.parts = 2;
    p.method = "random";
    gs_assert_ok(gs_partition(gs_test_path(folder, "graph"), store_path, &p, NULL));
    setenv("GS_HOST_GPUS", "2", 1);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    gs_test_temp_remove(folder);
    return 0;
}

static gs_train_options options_of(const char *device, uint64_t memory)
{
    gs_train_options o;
    gs_train_options_init(&o);
    o.model = "sage";
    o.hidden = 4;
    o.threads = 1;
    o.epochs = EPOCHS;
    o.eval_every = 0;
    o.keep = "last";
    o.device = device;
    o.device_memory = memory;
    o.sampler = "neighbor";
    o.batch_size = 200;
    o.fanout = "4,3";
    o.batches_per_step = DEVICES;
    return o;
}

/* ---- what is to be expected ------------------------------------------------ */

typedef struct crossing {
    uint64_t in, between; /* bytes of rows from the host, with their places; from the other device */
} crossing;

static void read_array(void *to, const gs_store *s, gs_array_id id)
{
    gs_block_reader r = {0};
    uint64_t bytes;
    gs_assert_ok(gs_block_reader_open(&r, s, id));
    for (uint64_t at = 0, k = 0; at < r.info->bytes; at += bytes, k++) {
        gs_assert_ok(gs_block_reader_next(&r, k, &bytes));
        memcpy((uint8_t *)to + at, r.block, bytes);
    }
    gs_block_reader_close(&r);
}

static float out_degree[VERTICES];

static int by_degree(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (out_degree[x] > out_degree[y] || out_degree[x] < out_degree[y])
        return out_degree[x] > out_degree[y] ? -1 : 1;
    return x < y ? -1 : 1;
}

/* number[v]: of the row among those that stay, in the order of the store; -1: it does not. */
static void number_rows(int *number, uint32_t rows)
{
    static uint32_t order[VERTICES];
    static bool stays[VERTICES];
    int n = 0;
    for (uint32_t v = 0; v < VERTICES; v++) {
        order[v] = v;
        stays[v] = false;
    }
    qsort(order, VERTICES, sizeof(*order), by_degree);
    for (uint32_t k = 0; k < rows; k++)
        stays[order[k]] = true;
    for (uint32_t v = 0; v < VERTICES; v++)
        number[v] = stays[v] ? n++ : -1;
}

/* Of an epoch: batch k is device k mod `devices`'s. `rows` 0: all come from the host, without places. */
static crossing expect(uint32_t epoch, uint32_t devices, uint32_t rows, const gs_train_options *o)
{
    static uint32_t target[VERTICES];
    static uint8_t split[VERTICES];
    static int number[VERTICES];
    gs_sampler_options so = {0};
    gs_batch_arena *arena = NULL;
    gs_adjacency *in = NULL;
    gs_sampler *sampler = NULL;
    gs_store *s = NULL;
    crossing sum = {0, 0};
    uint32_t targets = 0;
    gs_assert_ok(gs_store_open(&s, store_path));
    read_array(split, s, GS_ARRAY_SPLIT);
    read_array(out_degree, s, GS_ARRAY_OUT_DEGREE);
    number_rows(number, rows);
    for (uint32_t v = 0; v < VERTICES; v++)
        if (split[v] == GS_SPLIT_TRAIN)
            target[targets++] = v;
    gs_assert_ok(gs_adjacency_load(&in, s, GS_BY_DEST, GS_GIB, NULL));
    gs_assert_ok(gs_batch_options_read(&so, o));
    gs_assert_ok(gs_sampler_open(&sampler, in, NULL, target, targets, &so));
    gs_assert_ok(gs_batch_arena_make(&arena, sampler));
    for (uint32_t k = 0; k < gs_sampler_batches(sampler); k++) {
        gs_batch b;
        gs_assert_ok(gs_sampler_draw(&b, sampler, arena, epoch, k));
        sum.in += rows > 0 ? b.vertices * sizeof(uint32_t) : 0;
        for (uint32_t i = 0; i < b.vertices; i++) {
            const int n = number[b.vertex[i]];
            sum.in += n < 0 ? FEATURES * sizeof(float) : 0;
            sum.between += n >= 0 && (uint32_t)n % devices != k % devices ? FEATURES * sizeof(float) : 0;
        }
    }
    gs_batch_arena_free(arena);
    gs_sampler_close(sampler);
    gs_adjacency_free(in);
    gs_store_close(s);
    return sum;
}

/* ---- what is --------------------------------------------------------------- */

/* Rows on each device of the run, and what crossed in its epochs. */
typedef struct outcome {
    uint64_t rows[DEVICES], in[EPOCHS], between[EPOCHS];
} outcome;

static outcome train(const gs_train_options *o, const char *weights)
{
    static gs_plan_report plan;
    gs_epoch_report e;
    gs_run *run = NULL;
    outcome x;
    gs_assert_ok(gs_run_open(&run, store_path, o, GS_RUN_TRAIN));
    gs_assert_ok(gs_run_plan(run, &plan));
    assert_true(plan.device_bytes <= plan.device_memory);
    for (uint32_t d = 0; d < DEVICES; d++)
        x.rows[d] = plan.batch_rows[d];
    for (uint32_t k = 0; k < EPOCHS; k++) {
        gs_assert_ok(gs_run_epoch(run, &e));
        x.in[k] = e.copied_in_bytes;
        x.between[k] = e.forwarded_bytes;
    }
    gs_assert_ok(gs_run_save(run, weights));
    gs_run_close(run);
    return x;
}

static uint64_t rows_within(const char *device, uint64_t memory)
{
    static gs_plan_report plan;
    const gs_train_options o = options_of(device, memory);
    return gs_plan_train(&plan, store_path, &o) == GS_OK ? plan.batch_rows[0] + plan.batch_rows[1] : 0;
}

/* Budgets with which all rows stay, and with which some do. */
static uint64_t budget_of(const char *device, bool all)
{
    for (uint64_t memory = all ? 48 * GS_MIB : 20 * GS_MIB; memory < 64 * GS_MIB; memory += GS_MIB) {
        const uint64_t rows = rows_within(device, memory);
        if (all ? rows == VERTICES : rows > 0 && rows < VERTICES)
            return memory;
    }
    fail_msg("%s: no budget was found with which %s rows stay", device, all ? "all" : "some");
    return 0;
}

static void check(const char *device, uint32_t devices, bool all)
{
    const char *const on = gs_test_path(folder, "on.safetensors"), *const off = gs_test_path(folder, "off.safetensors");
    gs_train_options o = options_of(device, budget_of(device, all));
    const outcome with = train(&o, on);
    o.no_spread = true;
    const outcome without = train(&o, off);
    const uint64_t rows = with.rows[0] + with.rows[1];
    assert_true(all ? rows == VERTICES : rows > 0 && rows < VERTICES);
    assert_int_equal(without.rows[0] + without.rows[1], 0);
    assert_true(devices == 1 ? with.rows[1] == 0 : with.rows[0] - with.rows[1] <= 1);
    for (uint32_t k = 0; k < EPOCHS; k++) {
        const crossing now = expect(k + 1, devices, (uint32_t)rows, &o), before = expect(k + 1, devices, 0, &o);
        assert_int_equal(without.in[k] - with.in[k], before.in - now.in);
        assert_int_equal(with.between[k], now.between);
        assert_int_equal(without.between[k], 0);
        assert_true(now.in < before.in);
    }
    api_assert_same_file(on, off);
}

/* Some rows, and all of them, on one GPU and on two: where not every case is asked for, one of each. */
static void test_cuda_spread__rows_on_one(void **state)
{
    (void)state;
    check("cuda:0", 1, true);
    if (gs_test_all())
        check("cuda:0", 1, false);
}

static void test_cuda_spread__rows_on_two(void **state)
{
    (void)state;
    check("cuda:0,1", 2, false);
    if (gs_test_all())
        check("cuda:0,1", 2, true);
}

/* Each has rows for itself, the same ones, and nothing crosses between them. */
static void test_cuda_spread__gpus_apart(void **state)
{
    const char *const on = gs_test_path(folder, "on.safetensors"), *const off = gs_test_path(folder, "off.safetensors");
    (void)state;
    setenv("GS_HOST_GPU_PEERS", "none", 1);
    gs_train_options o = options_of("cuda:0,1", 48 * GS_MIB);
    const outcome with = train(&o, on);
    o.no_spread = true;
    const outcome without = train(&o, off);
    unsetenv("GS_HOST_GPU_PEERS");
    assert_true(with.rows[0] > 0);
    assert_int_equal(with.rows[1], with.rows[0]);
    for (uint32_t k = 0; k < EPOCHS; k++) {
        const crossing now = expect(k + 1, 1, (uint32_t)with.rows[0], &o), before = expect(k + 1, 1, 0, &o);
        assert_int_equal(without.in[k] - with.in[k], before.in - now.in);
        assert_int_equal(with.between[k], 0);
    }
    api_assert_same_file(on, off);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_spread__rows_on_one),
        cmocka_unit_test(test_cuda_spread__rows_on_two),
        cmocka_unit_test(test_cuda_spread__gpus_apart),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
