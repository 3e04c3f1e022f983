/* How many batches of a group are read at once, by what the machine's record says of the disk. Budgets count what the
 * process holds, which must not grow from plan to plan: only the build for speed runs this. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

#include "api_graph.h"
#include "base/size.h"
#include "cost/cost.h"
#include "device/device.h"

/* The machine's record says that the disk takes so many times as long as by default. */
static void slow_disk(double times)
{
    gs_cost_record r = {.slower_weight = 1, .slower_sum = log(times)};
    gs_device *d = NULL;

    gs_assert_ok(gs_device_open(&d, "cpu", 1));
    gs_assert_ok(gs_cost_record_save(&r, gs_device_name(d)));
    gs_device_close(d);
}

/* What a refusal of almost no memory names. */
static uint64_t least_memory(const char *store, const gs_train_options *options)
{
    gs_train_options o = *options;
    static gs_plan_report plan;
    unsigned mib = 0;

    o.host_memory = 4096;
    assert_int_equal(gs_plan_train(&plan, store, &o), GS_EBUDGET);
    assert_int_equal(sscanf(strstr(gs_last_error(), "at least "), "at least %uM", &mib), 1);
    return mib * GS_MIB;
}

/* The rows of several batches of a group are read at once where that saves reading and there is room to hold them: not
 * from a disk that costs next to nothing, the more the slower it is, and no more than need fewer reads. */
static void test_batch_reads__as_many_are_at_once_as_the_disk_is_slow(void **state)
{
    static const double times[] = {0.25, 4};
    static const char *const samplers[] = {"saint-node", "saint-edge"};
    const char *const graph = gs_test_path(api_folder, "wide-graph"), *const store = gs_test_path(api_folder, "wide");
    gs_train_options o = api_options();
    gs_generate_options g;
    gs_partition_options p;
    static gs_plan_report plan;

    (void)state;
    gs_generate_options_init(&g);
    g.vertices = 12000, g.edges = 100000, g.features = 48, g.classes = 5;
    gs_assert_ok(gs_generate("sbm", graph, &g));
    gs_partition_options_init(&p);
    p.parts = 8, p.method = "random";
    gs_assert_ok(gs_partition(graph, store, &p, NULL));
    setenv("XDG_CACHE_HOME", gs_test_path(api_folder, "cache"), 1);
    o.model = "gcn", o.hidden = 16, o.device = "cpu", o.batch_size = 300, o.eval_every = 0;
    uint32_t one = 0, several = 0; /* budgets with which so many are read at once, of a fast disk and of a slow one */
    for (int k = 0; k < 2; k++) {
        o.sampler = samplers[k];
        o.host_memory = least_memory(store, &o);
        for (uint32_t side = 1; side > 0; o.host_memory += GS_MIB) { /* until memory has room for all features */
            for (size_t t = 0, before = 1; t < GS_ARRAY_LEN(times); t++, before = side) {
                slow_disk(times[t]);
                gs_assert_ok(gs_plan_train(&plan, store, &o));
                if ((side = plan.batch_side) == 0)
                    break;
                const uint32_t group = plan.batch_group;
                const double read = plan.batch_read_seconds, alone = plan.batch_read_alone_seconds;
                assert_true(side >= before);
                assert_true(side == 1 ? read == alone : read < alone && read > alone / side);
                assert_true(side == 1 || gs_div_up(group, side) < gs_div_up(group, side - 1));
                one += t == 0 && side == 1;
                several += t == 1 && side > 1;
            }
        }
    }
    assert_true(one > 0 && several > 0);
    unsetenv("XDG_CACHE_HOME");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_reads__as_many_are_at_once_as_the_disk_is_slow),
    };
    return cmocka_run_group_tests(tests, api_graph_make, api_graph_remove);
}
