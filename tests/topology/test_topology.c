/* A topology comes out of its file as it stands there, and what is none is refused with one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/support.h"
#include "topology/topology.h"

static char path[] = "gs_topology.XXXXXX";

static gs_status load(gs_topology *t, const char *text, uint32_t devices)
{
    FILE *const f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    return gs_topology_load(t, path, devices);
}

static void test_topology__one_switch_holds_all(void **state)
{
    gs_topology t;
    (void)state;
    gs_topology_one_switch(&t, 3);
    assert_int_equal(t.devices, 3);
    assert_int_equal(t.switches, 1);
    assert_int_equal(t.at[0].devices, 3);
    assert_true(t.at[0].host_bps == 0 && t.at[0].peer_bps == 0);
    for (uint32_t d = 0; d < 3; d++)
        assert_int_equal(gs_topology_switch_of(&t, d), 0);
}

static void test_topology__switches_number_their_devices_in_order(void **state)
{
    static const uint32_t want[] = {0, 0, 1, 2, 2, 2};
    gs_topology t;
    (void)state;
    gs_assert_ok(load(&t, "{\"switches\": [{\"devices\": 2, \"host_bps\": 2.5e8, \"peer_bps\": 1000}, {\"devices\": 1},"
                          " {\"host_bps\": 1e12, \"devices\": 3}]}", 6));
    assert_int_equal(t.devices, 6);
    assert_int_equal(t.switches, 3);
    for (uint32_t d = 0; d < 6; d++)
        assert_int_equal(gs_topology_switch_of(&t, d), want[d]);
    assert_true(t.at[0].host_bps == 2.5e8 && t.at[0].peer_bps == 1000);
    assert_true(t.at[1].host_bps == 0 && t.at[1].peer_bps == 0);
    assert_int_equal(t.at[2].first, 3);
    assert_true(t.at[2].host_bps == 1e12);
}

static void test_topology__the_first_switch_can_be_left_out(void **state)
{
    gs_topology t;
    (void)state;
    gs_assert_ok(load(&t, "{\"switches\": [{\"devices\": 1, \"memories\": [9]},"
                          " {\"devices\": 2, \"speeds\": [0.5, 0.25],"
                          " \"host_bps\": 5e8, \"memories\": [7, 1e9]}, {\"devices\": 1, \"memories\": [5]}],"
                          " \"take\": \"all\"}", 4));
    assert_true(t.all);
    gs_topology_drop_first(&t);
    assert_int_equal(t.devices, 3);
    assert_int_equal(t.switches, 2);
    assert_true(t.at[0].first == 0 && t.at[0].devices == 2 && t.at[0].host_bps == 5e8);
    assert_true(t.at[1].first == 2 && t.at[1].devices == 1 && t.at[1].host_bps == 0);
    assert_true(gs_topology_speed(&t, 0) == 0.5 && gs_topology_speed(&t, 1) == 0.25 && gs_topology_speed(&t, 2) == 1);
    assert_true(t.memory[0] == 7 && t.memory[1] == 1000000000 && t.memory[2] == 5);
    gs_assert_fails(load(&t, "{\"switches\": [{\"devices\": 1}], \"take\": \"some\"}", 1), GS_EFORMAT,
                    "\"take\" must be \"all\"");
    gs_assert_ok(load(&t, "{\"switches\": [{\"devices\": 1}]}", 1));
    assert_false(t.all);
}

static void test_topology__devices_may_have_budgets_of_their_own(void **state)
{
    static const char *const bad[] = {"[1, 2]", "[0]", "[1.5]", "7", "[\"7M\"]", "[1e16]"};
    gs_topology t;
    (void)state;
    gs_assert_ok(load(&t, "{\"switches\": [{\"devices\": 2, \"memories\": [7, 5]}]}", 2));
    assert_true(gs_topology_more(&t, 0, 5) == 2 && gs_topology_more(&t, 1, 5) == 0 && gs_topology_more(&t, 1, 6) == 0);
    gs_assert_fails(load(&t, "{\"switches\": [{\"devices\": 1, \"memories\": [9]}, {\"devices\": 1}]}", 2), GS_EFORMAT,
                    "\"memories\" must be said of all switches, or of none");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[128];
        snprintf(text, sizeof(text), "{\"switches\": [{\"devices\": 1, \"memories\": %s}]}", bad[i]);
        gs_assert_fails(load(&t, text, 1), GS_EFORMAT, "switch 0: \"memories\" must be ");
    }
}

static void test_topology__devices_may_be_slower_than_others(void **state)
{
    static const double want[] = {1, 1, 0.25, 1, 0.001};
    gs_topology t;
    (void)state;
    gs_assert_ok(load(&t, "{\"switches\": [{\"devices\": 2}, {\"devices\": 3, \"speeds\": [0.25, 1, 0.001]}]}", 5));
    for (uint32_t d = 0; d < 5; d++)
        assert_true(gs_topology_speed(&t, d) == want[d]);
}

static void test_topology__a_device_may_compute_in_place(void **state)
{
    static const char *const bad[] = {"{\"devices\": 1, \"in_place\": 1}", "{\"devices\": 2, \"in_place\": true}",
                                      "{\"devices\": 1, \"in_place\": true, \"host_bps\": 1e9}",
                                      "{\"devices\": 1, \"in_place\": true}, {\"devices\": 1, \"in_place\": true}"};
    gs_topology t;
    (void)state;
    gs_assert_ok(load(&t, "{\"switches\": [{\"devices\": 2, \"in_place\": false}, "
                          "{\"devices\": 1, \"in_place\": true}, {\"devices\": 1}]}", 4));
    for (uint32_t d = 0; d < 4; d++)
        assert_int_equal(t.in_place[d], d == 2);
    gs_topology_drop_first(&t);
    for (uint32_t d = 0; d < 2; d++)
        assert_int_equal(t.in_place[d], d == 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[128];
        snprintf(text, sizeof(text), "{\"switches\": [%s]}", bad[i]);
        gs_assert_fails(load(&t, text, 2), GS_EFORMAT, "\"in_place\" must be true or false, and true of one device");
    }
    gs_assert_fails(load(&t, "{\"switches\": [{\"devices\": 1, \"in_place\": true}, {\"devices\": 1}], "
                             "\"network\": {\"bps\": 1e9, \"seconds\": 0}}", 2), GS_EFORMAT, "and in_place");
}

/* What is said of devices of different switches, and how rows are shared. */
static void test_topology__switches_may_be_joined(void **state)
{
    gs_topology t;
    (void)state;
    gs_assert_ok(load(&t, "{\"switches\": [{\"devices\": 2, \"peer_bps\": 3e9}, {\"devices\": 1}]}", 3));
    assert_true(!t.across.joined && t.across.share == GS_SHARE_FASTER);
    gs_assert_ok(load(&t, "{\"switches\": [{\"devices\": 2, \"peer_bps\": 3e9}, {\"devices\": 1}], "
                          "\"across_bps\": 5e9}", 3));
    assert_true(t.across.joined && t.across.share == GS_SHARE_FASTER);
    assert_true(gs_topology_between(&t, 0, 1) == 3e9 && gs_topology_between(&t, 1, 0) == 3e9);
    assert_true(gs_topology_between(&t, 1, 2) == 5e9 && gs_topology_between(&t, 2, 0) == 5e9);
    gs_assert_ok(load(&t, "{\"across_bps\": 5e9, \"share\": \"ring\", "
                          "\"switches\": [{\"devices\": 1}, {\"devices\": 1}]}", 2));
    assert_true(t.across.share == GS_SHARE_ROUND);
    gs_assert_ok(load(&t, "{\"share\": \"chains\", \"switches\": [{\"devices\": 1}, {\"devices\": 1}]}", 2));
    assert_true(t.across.share == GS_SHARE_CHAINS);
    gs_assert_ok(load(&t, "{\"share\": \"ring\", \"switches\": [{\"devices\": 2}]}", 2)); /* one switch joins them */
    assert_true(t.across.share == GS_SHARE_ROUND && !t.across.joined);
}

static void test_topology__ranks_have_a_network(void **state)
{
    gs_topology t;
    (void)state;
    gs_assert_ok(load(&t, "{\"switches\": [{\"devices\": 1}, {\"devices\": 1}], "
                          "\"network\": {\"bps\": 1e9, \"seconds\": 2e-5}}", 2));
    assert_true(t.across.network && t.across.joined && t.across.bps == 1e9 && t.across.seconds == 2e-5);
    assert_true(!t.across.shards && t.across.meeting > 0); /* which is not said */
    gs_assert_ok(load(&t, "{\"switches\": [{\"devices\": 1}], \"network\": "
                          "{\"bps\": 1e9, \"seconds\": 0, \"meeting\": 0.125, \"shards\": true}}", 1));
    assert_true(t.across.network && t.across.shards && t.across.meeting == 0.125);
    gs_topology_one_switch(&t, 2);
    assert_false(t.across.network || t.across.shards);
    gs_assert_ok(load(&t, "{\"switches\": [{\"devices\": 1}, {\"devices\": 1}], "
                          "\"network\": {\"bps\": 1e9, \"seconds\": 2e-5}}", 2));
    assert_true(gs_topology_between(&t, 1, 0) == 1e9);
    gs_topology_of_network(&t, 3, 2e9, 1e-3, 2e-4);
    assert_true(t.devices == 3 && t.switches == 3 && t.across.network && gs_topology_between(&t, 0, 2) == 2e9);
}

static void test_topology__stages_may_be_placed(void **state)
{
    gs_topology t;
    (void)state;
    gs_assert_ok(load(&t, "{\"switches\": [{\"devices\": 2}, {\"devices\": 1}], "
                          "\"place\": {\"edges\": [0, 0.5, 1], \"vertices\": [1, 0, 0.25]}}", 3));
    assert_true(t.place.said && t.all);
    assert_true(t.place.edges[0] == 0 && t.place.edges[1] == 0.5 && t.place.edges[2] == 1);
    assert_true(t.place.vertices[0] == 1 && t.place.vertices[1] == 0 && t.place.vertices[2] == 0.25);
    gs_topology_drop_first(&t); /* what was said was of all */
    assert_false(t.place.said);
}

static void test_topology__what_is_none_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "not JSON"},
        {"{\"switches\": [", "not JSON"},
        {"{\"switches\": [{\"devices\": 2}]} more", "not JSON"},
        {"[]", "not a topology"},
        {"{}", "not a topology"},
        {"{\"switches\": []}", "not a topology"},
        {"{\"switches\": {\"devices\": 2}}", "not a topology"},
        {"{\"switches\": [2]}", "switch 0 is no object"},
        {"{\"switches\": [{\"devices\": 2}], \"switch\": 1}", "\"switch\" is not known"},
        {"{\"switches\": [{\"devices\": 2}], \"switches\": []}", "\"switches\" is there twice"},
        {"{\"switches\": [{\"devices\": 2}], \"across_bps\": 10}", "\"across_bps\" must be a number of bytes"},
        {"{\"switches\": [{\"devices\": 2}], \"share\": 1}", "\"share\" must be \"chains\" or \"ring\""},
        {"{\"switches\": [{\"devices\": 2}], \"share\": \"all\"}", "\"share\" must be \"chains\" or \"ring\""},
        {"{\"switches\": [{\"devices\": 1}, {\"devices\": 1}], \"share\": \"ring\"}", "needs \"across_bps\""},
        {"{\"switches\": [{\"devices\": 1}], \"network\": 1}", "\"network\" must be"},
        {"{\"switches\": [{\"devices\": 1}], \"network\": {\"bps\": 1e9}}", "\"network\" must be"},
        {"{\"switches\": [{\"devices\": 1}], \"network\": {\"bps\": 1e9, \"seconds\": -1}}", "\"network\" must be"},
        {"{\"switches\": [{\"devices\": 1}], \"network\": {\"bps\": 1e9, \"seconds\": 0, \"shards\": 2}}",
         "\"shards\": true where"},
        {"{\"switches\": [{\"devices\": 2}], \"network\": {\"bps\": 1e9, \"seconds\": 0}}", "a switch each"},
        {"{\"switches\": [{\"devices\": 1}], \"across_bps\": 1e9, \"network\": {\"bps\": 1e9, \"seconds\": 0}}",
         "no \"across_bps\""},
        {"{\"switches\": [{\"devices\": 2}], \"place\": 1}", "\"place\" must be {\"edges\""},
        {"{\"switches\": [{\"devices\": 2}], \"place\": {\"edge\": []}}", "\"place\" must be {\"edges\""},
        {"{\"switches\": [{\"devices\": 2}], \"place\": {\"edges\": [1, 0]}}", "\"vertices\" must be a list"},
        {"{\"switches\": [{\"devices\": 2}], \"place\": {\"edges\": [1], \"vertices\": [1, 1]}}",
         "\"edges\" must be a list of a number for each of the 2"},
        {"{\"switches\": [{\"devices\": 2}], \"place\": {\"edges\": [1, -1], \"vertices\": [1, 1]}}",
         "\"edges\" must be shares from 0 to 1"},
        {"{\"switches\": [{\"devices\": 2}], \"place\": {\"edges\": [1, 1], \"vertices\": [0, 0]}}",
         "\"vertices\": some device must have a share"},
        {"{\"switches\": [{\"devices\": 1}, {\"device\": 1}]}", "switch 1: \"device\" is not known"},
        {"{\"switches\": [{}]}", "\"devices\" must be"},
        {"{\"switches\": [{\"devices\": 0}]}", "\"devices\" must be"},
        {"{\"switches\": [{\"devices\": -2}]}", "\"devices\" must be"},
        {"{\"switches\": [{\"devices\": 1.5}]}", "\"devices\" must be"},
        {"{\"switches\": [{\"devices\": 1e300}]}", "\"devices\" must be"},
        {"{\"switches\": [{\"devices\": \"2\"}]}", "\"devices\" must be"},
        {"{\"switches\": [{\"devices\": 9}, {\"devices\": 9}]}", "switch 1: \"devices\" must be"},
        {"{\"switches\": [{\"devices\": 2, \"host_bps\": 0}]}", "\"host_bps\" must be a number of bytes per second"},
        {"{\"switches\": [{\"devices\": 2, \"host_bps\": -1e9}]}", "\"host_bps\" must be"},
        {"{\"switches\": [{\"devices\": 2, \"peer_bps\": 1e999}]}", "\"peer_bps\" must be"},
        {"{\"switches\": [{\"devices\": 2, \"peer_bps\": null}]}", "\"peer_bps\" must be"},
        {"{\"switches\": [{\"devices\": 2, \"speeds\": 1}]}", "\"speeds\" must be a list"},
        {"{\"switches\": [{\"devices\": 2, \"speeds\": [1]}]}", "a number for each of its 2 devices"},
        {"{\"switches\": [{\"devices\": 2, \"speeds\": [1, 1, 1]}]}", "a number for each of its 2 devices"},
        {"{\"switches\": [{\"devices\": 2, \"speeds\": [1, 0]}]}", "must be shares of the fastest device's"},
        {"{\"switches\": [{\"devices\": 2, \"speeds\": [1, 1.5]}]}", "must be shares of the fastest device's"},
        {"{\"switches\": [{\"devices\": 2, \"speeds\": [1, \"1\"]}]}", "must be shares of the fastest device's"},
    };
    gs_topology t;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        gs_assert_fails(load(&t, bad[i].text, 2), GS_EFORMAT, bad[i].why);
    gs_assert_fails(load(&t, "{\"switches\": [{\"devices\": 2}]}", 4), GS_EINVAL, "of 2 devices, and .device names 4");
    gs_assert_fails(gs_topology_load(&t, "no/such/file.json", 2), GS_ENOTFOUND, "no/such/file.json");
}

static gs_status load_cluster(gs_cluster *c, const char *text)
{
    gs_topology t;
    (void)load(&t, text, 1); /* writes the file */
    return gs_cluster_load(c, path);
}

static void test_topology__a_cluster_is_read(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"[]", "not a cluster"},
        {"{\"threads\": 2}", "not a cluster"},
        {"{\"ranks\": 0}", "\"ranks\" is 0, not a whole number from 1"},
        {"{\"ranks\": 1.5}", "\"ranks\" is 1.5, not a whole number"},
        {"{\"ranks\": 2}", "of several ranks it says their \"network\""},
        {"{\"ranks\": 1, \"gpus\": 8}", "\"gpus\" is not known"},
        {"{\"ranks\": 1, \"speed\": 0}", "\"speed\" is 0, not a number from"},
        {"{\"ranks\": 1, \"price\": -1}", "\"price\" is -1, not a number from 0"},
        {"{\"ranks\": 2, \"network\": {\"bps\": 1e9}}", "\"network\" must be"},
    };
    gs_cluster c;
    (void)state;
    gs_assert_ok(load_cluster(&c, "{\"ranks\": 1}"));
    assert_true(c.ranks == 1 && c.threads == 0 && c.memory == 0 && c.speed == 1 && c.disk_bps == 0 && c.price == 0);
    gs_assert_ok(load_cluster(&c, "{\"ranks\": 64, \"threads\": 32, \"memory\": 256e9, \"speed\": 0.5, "
                                  "\"disk_bps\": 3e9, \"price\": 2.5, "
                                  "\"network\": {\"bps\": 1e9, \"seconds\": 2e-5, \"shards\": true}}"));
    assert_true(c.shards && c.ranks == 64 && c.threads == 32 && c.memory == 256000000000u && c.speed == 0.5);
    assert_true(c.disk_bps == 3e9 && c.price == 2.5 && c.bps == 1e9 && c.seconds == 2e-5);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        gs_assert_fails(load_cluster(&c, bad[i].text), GS_EFORMAT, bad[i].why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topology__one_switch_holds_all),
        cmocka_unit_test(test_topology__switches_number_their_devices_in_order),
        cmocka_unit_test(test_topology__the_first_switch_can_be_left_out),
        cmocka_unit_test(test_topology__devices_may_have_budgets_of_their_own),
        cmocka_unit_test(test_topology__devices_may_be_slower_than_others),
        cmocka_unit_test(test_topology__a_device_may_compute_in_place),
        cmocka_unit_test(test_topology__switches_may_be_joined),
        cmocka_unit_test(test_topology__ranks_have_a_network),
        cmocka_unit_test(test_topology__stages_may_be_placed),
        cmocka_unit_test(test_topology__what_is_none_is_refused),
        cmocka_unit_test(test_topology__a_cluster_is_read),
    };
    const int fd = mkstemp(path);
    if (fd < 0 || close(fd) != 0)
        return 99;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    return failed;
}
