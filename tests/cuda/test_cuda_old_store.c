/* A store of version 1 says nothing of degrees, so its chunks may have hubs: sums have the same bits as those of the
 * same store of version 2, which says that there are none, and take more launches. */
#include "tiny_store.h"

#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "gnnstream.h"
#include "gpu_devices.h"
#include "host_gpu.h"

enum { VERTICES = 400, PARTS = 2, EDGES = 4800, CLASSES = 3, CHUNKS = 2 * PARTS * PARTS, RECORD = 48 };

/* Twelve edges of each vertex: some 1200 a chunk, more than the 256 of a piece, and no target with as many. */
static void write_store(const char *dir)
{
    static tiny_edge edge[EDGES];
    for (uint32_t k = 0; k < EDGES; k++)
        edge[k] = (tiny_edge){.source = (k * 7 + k / VERTICES) % VERTICES, .dest = k * 11 / 3 % VERTICES};
    tiny_write(dir, &(tiny_graph){.vertices = VERTICES, .parts = PARTS, .interval_rows = VERTICES / PARTS, .edge = edge,
                                  .edges = EDGES, .features = 5, .classes = CLASSES, .feature_type = GS_F32,
                                  .splits = true});
}

static void check_degrees(const char *dir, bool known)
{
    gs_store *s = NULL;
    gs_assert_ok(gs_store_open(&s, dir));
    for (uint32_t k = 0; k < CHUNKS; k++) {
        const gs_chunk *const c = &gs_store_chunks(s)->chunk[k / (CHUNKS / 2)][k % (CHUNKS / 2)];
        assert_true(c->edges > 256 && c->largest <= 256);
        assert_int_equal(c->largest > 0, known);
    }
    gs_store_close(s);
}

/* As the first version wrote it. */
static void make_older(const char *dir)
{
    for (size_t k = 0; k < CHUNKS; k++)
        tiny_forge(dir, "chunks.bin", k * RECORD + 36, &(uint32_t){0}, 4);
    tiny_forge_manifest(dir, "\"version\":\t2", "\"version\":\t1");
}

/* Logits after two epochs, and what the second launched. */
static uint64_t train(const char *dir, float logits[VERTICES * CLASSES])
{
    gs_train_options o;
    gs_run *run = NULL;
    gs_train_options_init(&o);
    o.model = "gcn";
    o.hidden = 8;
    o.epochs = 2;
    o.keep = "last";
    o.device = "cuda";
    o.threads = 1;
    o.no_prune = true; /* pruned chunks are counted as they are made, in a store of any version */
    o.keep_logits = true;
    gs_assert_ok(gs_run_open(&run, dir, &o, GS_RUN_TRAIN));
    gs_assert_ok(gs_run_epoch(run, NULL));
    (void)host_gpu_take_counts();
    gs_assert_ok(gs_run_epoch(run, NULL));
    const uint64_t launches = host_gpu_take_counts().launches;
    gs_evaluation e;
    gs_assert_ok(gs_run_evaluate(run, &e));
    gs_assert_ok(gs_run_logits(run, logits, (uint64_t)VERTICES * CLASSES));
    gs_run_close(run);
    return launches;
}

static void test_cuda_old_store__has_the_same_bits_and_more_launches(void **state)
{
    static float logits[2][VERTICES * CLASSES];
    char dir[512];
    snprintf(dir, sizeof(dir), "%s/store", (char *)*state);
    write_store(dir);
    check_degrees(dir, true);
    const uint64_t now = train(dir, logits[0]);
    make_older(dir);
    check_degrees(dir, false);
    const uint64_t before = train(dir, logits[1]);
    assert_memory_equal(logits[0], logits[1], sizeof(logits[0]));
    assert_true(logits[0][0] != logits[0][1]);
    if (!real_gpu())
        assert_in_range(before, now + 1, now + now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cuda_old_store__has_the_same_bits_and_more_launches, gs_test_temp_setup,
                                        gs_test_temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
