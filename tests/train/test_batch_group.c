/* What is predicted of groups' reads, against the plan of a cache over batches that were drawn; and when groups are
 * drawn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/philox.h"
#include "base/size.h"
#include "sample/residency.h"
#include "support/support.h"
#include "train/draws.h"

enum { ITEMS = 20000, MOST = 2000 };

static uint32_t rows[GS_GROUP_FORESEEN][MOST];

/* `uses` distinct items, all sets as likely. */
static void draw_items(uint32_t *row, uint32_t uses, uint32_t batch)
{
    static uint8_t taken[ITEMS];
    const uint32_t key[2] = {7, 11};
    uint32_t n = 0;

    memset(taken, 0, sizeof(taken));
    for (uint32_t k = 0; n < uses; k++) {
        const uint32_t counter[4] = {k, batch, 0, 0};
        uint32_t word[4];
        gs_philox4x32(word, counter, key);
        const uint32_t item = word[0] % ITEMS;
        if (!taken[item])
            row[n++] = item;
        taken[item] = 1;
    }
}

/* Items that the plan reads for a batch, in the mean over groups that have settled. */
static double planned_misses(uint32_t uses, uint32_t slots, uint32_t group)
{
    const uint32_t groups = 16 * GS_GROUP_FORESEEN / group + 4;
    gs_batch batch[GS_GROUP_FORESEEN] = {0};
    gs_residency *r = NULL;
    double reads = 0, batches = 0;

    gs_assert_ok(gs_residency_open(&r, ITEMS, 1, slots, group, uses));
    for (uint32_t g = 0; g < groups; g++) {
        for (uint32_t k = 0; k < group; k++) {
            draw_items(rows[k], uses, g * group + k);
            batch[k].vertex = rows[k];
            batch[k].vertices = uses;
        }
        gs_residency_begin(r, batch, group);
        for (uint32_t k = 0; k < group; k++) {
            gs_residency_step step;
            gs_residency_next(r, &step);
            if (g < groups / 2)
                continue;
            reads += step.reads;
            batches++;
        }
    }
    gs_residency_close(r);
    return reads / batches;
}

static void batch_group__predicts_what_the_plan_reads(void **state)
{
    uint32_t n = 0;
    (void)state;
    for (uint32_t uses = 100; uses <= MOST; uses *= 4)
        for (uint32_t slots = 200; slots <= 12800; slots *= 4)
            for (uint32_t group = 1; group <= GS_GROUP_FORESEEN; group *= 4, n++) {
                if (!gs_test_takes(n + n / 4, 2)) /* two groups' lengths for each number of slots, in turn */
                    continue;
                const double planned = planned_misses(uses, slots, group),
                             predicted = gs_group_misses(uses, ITEMS, slots, group);
                if (fabs(predicted - planned) > 0.04 * uses)
                    fail_msg("%u uses, %u slots, groups of %u: %g predicted, %g planned", uses, slots, group, predicted,
                             planned);
            }
}

static void batch_group__a_longer_future_or_more_slots_never_read_more(void **state)
{
    (void)state;
    for (double uses = 10; uses <= ITEMS; uses *= 3)
        for (double slots = 64; slots <= ITEMS; slots *= 2)
            for (uint32_t group = 1; group < GS_GROUP_FORESEEN; group *= 2) {
                const double reads = gs_group_misses(uses, ITEMS, slots, group);
                assert_true(reads >= 0 && reads <= uses * (1 + 1e-9));
                assert_true(gs_group_misses(uses, ITEMS, slots, 2 * group) <= reads * 1.01);
                assert_true(gs_group_misses(uses, ITEMS, 2 * slots, group) <= reads * (1 + 1e-9));
            }
}

/* The mean over some sets of so many items, drawn at random: bytes and requests where gaps of some items are read
 * along. */
static void batch_group__predicts_reads_in_order(void **state)
{
    enum { BYTES = 4096, DRAWS = 20 };
    const gs_cost cost = {.read_bps = 1e9, .block_seconds = 1e-5};
    uint64_t random = 1;

    (void)state;
    for (uint32_t misses = 100; misses <= ITEMS; misses *= 3)
        for (uint32_t along = 0; along < 8; along += 3) {
            double items = 0, bytes = 0, requests = 0;
            for (uint32_t d = 0; d < DRAWS; d++)
                for (uint32_t i = 0, gap = ITEMS; i < ITEMS; i++, gap++) {
                    random = random * 6364136223846793005u + 1442695040888963407u;
                    if ((double)(random >> 33) >= (double)misses / ITEMS * 0x1p31)
                        continue;
                    items++;
                    requests += gap > along;
                    bytes += (gap > along ? 1.0 : gap + 1.0) * BYTES;
                    gap = UINT32_MAX; /* 0 behind this one */
                }
            const gs_group_read r = gs_group_read_of(items / DRAWS, ITEMS, BYTES, along * BYTES, &cost);
            if (fabs(r.bytes - bytes / DRAWS) > 0.03 * r.bytes ||
                fabs(r.requests - requests / DRAWS) > 0.03 * r.requests + 1)
                fail_msg("%u of %u, gaps of %u: %g bytes, %g requests predicted, %g and %g drawn", misses, ITEMS, along,
                         r.bytes, r.requests, bytes / DRAWS, requests / DRAWS);
            assert_true(fabs(r.seconds - (r.bytes / 1e9 + r.requests * 1e-5)) <= 1e-9 * r.seconds);
        }
    assert_true(gs_group_read_of(0, ITEMS, BYTES, 0, &cost).seconds <= 0);
}

/* All items have slots: once they were read, nothing is. */
static void batch_group__nothing_is_read_where_all_stay(void **state)
{
    (void)state;
    for (uint32_t group = 1; group <= GS_GROUP_FORESEEN; group *= 2)
        assert_true(gs_group_misses(ITEMS, ITEMS, ITEMS, group) < 1e-6);
}

/* Takes the first batch of epoch 2 behind all of epoch 1: was its group drawn before it was asked for? */
static bool drawn_before(const char *store, uint32_t last_epoch, bool reorder, gs_batch *first, uint32_t *vertex)
{
    gs_train_options o;
    gs_draws d;
    const gs_batch *batch;
    bool drew;

    gs_train_options_init(&o);
    o.sampler = "neighbor";
    o.batch_size = 50;
    o.fanout = "3,2";
    o.threads = 1;
    const gs_draws_request q = {.store = store, .options = &o, .split = GS_SPLIT_NONE};
    gs_assert_ok(gs_draws_open(&d, &q));
    d.group = 3;
    d.ahead = last_epoch > 0;
    d.last_epoch = last_epoch;
    gs_assert_ok(gs_draws_start(&d));
    gs_draws_order(&d, true);
    for (uint32_t k = 0; k < gs_sampler_batches(d.sampler); k++)
        gs_assert_ok(gs_draws_take(&batch, &drew, &d, 1, k));
    gs_draws_order(&d, !reorder);
    const double asked = gs_now();
    gs_assert_ok(gs_draws_take(&batch, &drew, &d, 2, 0));
    assert_true(drew && batch->epoch == 2 && batch->number == 0);
    const bool before = gs_draws_now(&d)->ended < asked;
    *first = *batch;
    memcpy(vertex, batch->vertex, batch->vertices * sizeof(*vertex));
    gs_draws_close(&d);
    return before;
}

/* It is the same batch, and one of another order is not taken. */
static void batch_group__an_epochs_first_group_is_drawn_in_the_epoch_before(void **state)
{
    static uint32_t vertex[4][400];
    char *const folder = gs_test_temp_dir();
    const char *const graph = gs_test_path(folder, "graph"), *const store = gs_test_path(folder, "store");
    gs_generate_options g;
    gs_partition_options p;
    gs_batch first[4];

    (void)state;
    gs_generate_options_init(&g);
    g.vertices = 400;
    g.edges = 3000;
    g.features = 4;
    g.classes = 2;
    gs_assert_ok(gs_generate("sbm", graph, &g));
    gs_partition_options_init(&p);
    p.parts = 2;
    gs_assert_ok(gs_partition(graph, store, &p, NULL));
    assert_false(drawn_before(store, 0, false, &first[0], vertex[0]));
    assert_true(drawn_before(store, 2, false, &first[1], vertex[1]));
    assert_false(drawn_before(store, 1, false, &first[2], vertex[2])); /* it is the last epoch */
    assert_false(drawn_before(store, 2, true, &first[3], vertex[3]));
    for (uint32_t k = 1; k < 3; k++) {
        assert_int_equal(first[k].vertices, first[0].vertices);
        assert_memory_equal(vertex[k], vertex[0], first[0].vertices * sizeof(**vertex));
    }
    assert_memory_not_equal(vertex[3], vertex[0], first[0].targets * sizeof(**vertex));
    gs_test_temp_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_group__predicts_what_the_plan_reads),
        cmocka_unit_test(batch_group__a_longer_future_or_more_slots_never_read_more),
        cmocka_unit_test(batch_group__predicts_reads_in_order),
        cmocka_unit_test(batch_group__nothing_is_read_where_all_stay),
        cmocka_unit_test(batch_group__an_epochs_first_group_is_drawn_in_the_epoch_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
