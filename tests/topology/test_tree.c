/* What a machine's tree, made by hand (two_sockets.xml), says of the GPUs in it; and threads are where it says. */
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/support.h"
#include "topology/topology.h"

#define GPU_A "0000:17:00.0" /* behind a switch of the first socket */
#define GPU_B "00000000:18:00.0"
#define GPU_C "0000:1C:00.0" /* at a port of its own there */
#define GPU_D "0000:65:00.0" /* of the second socket */
#define GPU_E "0000:B3:00.0"

static gs_tree *open_tree(void)
{
    gs_tree *const t = gs_tree_open();
#ifndef GS_HAVE_HWLOC
    assert_null(t);
#else
    assert_non_null(t);
#endif
    return t;
}

static void expect_groups(const gs_tree *t, const char *const *place, uint32_t devices, const uint32_t *want)
{
    uint32_t group[8];
    gs_tree_groups(t, place, devices, group);
    for (uint32_t d = 0; d < devices; d++)
        assert_int_equal(group[d], t == NULL ? 0 : want[d]);
}

static void test_tree__those_behind_a_switch_are_a_group(void **state)
{
    gs_tree *const t = open_tree();
    (void)state;
    expect_groups(t, (const char *const[]){GPU_A, GPU_B, GPU_C, GPU_D, GPU_E}, 5, (const uint32_t[]){0, 0, 1, 2, 3});
    expect_groups(t, (const char *const[]){GPU_D, GPU_B, GPU_D, GPU_A, GPU_D}, 5, (const uint32_t[]){0, 1, 0, 1, 0});
    expect_groups(t, (const char *const[]){GPU_E}, 1, (const uint32_t[]){0});
    /* What it does not know stands with the first. */
    expect_groups(t, (const char *const[]){GPU_E, "0001:00:00.0", ""}, 3, (const uint32_t[]){0, 0, 0});
    gs_tree_close(t);
}

static void test_tree__each_is_near_to_its_socket(void **state)
{
    static const struct {
        const char *place;
        uint32_t node;
    } near[] = {{GPU_A, 0},           {GPU_B, 0}, {GPU_C, 0}, {GPU_D, 1}, {GPU_E, 1}, {"0001:00:00.0", GS_TREE_NO_NODE},
                {"", GS_TREE_NO_NODE}};
    gs_tree *const t = open_tree();
    (void)state;
    for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++)
        assert_int_equal(gs_tree_node(t, near[i].place), t == NULL ? GS_TREE_NO_NODE : near[i].node);
    gs_tree_close(t);
    assert_int_equal(gs_tree_node(NULL, GPU_A), GS_TREE_NO_NODE);
}

/* hwloc binds where it is told that the file is of this machine: processors 0 and 1 are enough for it. */
static void test_tree__a_thread_goes_to_its_node(void **state)
{
    cpu_set_t before, now;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    gs_tree *const t = open_tree();
    assert_false(gs_tree_bind_thread(t, GS_TREE_NO_NODE));
    assert_false(gs_tree_bind_thread(t, 7));
    for (uint32_t node = 0; t != NULL && node < 2; node++) {
        if (!CPU_ISSET(node, &before))
            continue;
        assert_true(gs_tree_bind_thread(t, node));
        assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
        assert_int_equal(CPU_COUNT(&now), 1);
        assert_true(CPU_ISSET(node, &now));
        assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
    }
    /* Binding memory is a wish: whatever comes of it, the memory is there. */
    char *const memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    (void)gs_tree_bind_memory(t, memory, 1 << 20, 1);
    (void)gs_tree_bind_memory(t, memory, 1 << 20, 3);
    assert_false(gs_tree_bind_memory(t, memory, 1 << 20, 0));
    assert_false(gs_tree_bind_memory(NULL, memory, 1 << 20, 1));
    memory[(1 << 20) - 1] = 1;
    munmap(memory, 1 << 20);
    unsetenv("HWLOC_THISSYSTEM");
    gs_tree_close(t);
}

/* A machine of 64 nodes, which is not this one: hwloc then binds nothing, but refuses a set without nodes. */
static void test_tree__memory_may_come_from_any_node(void **state)
{
    (void)state;
    unsetenv("HWLOC_XMLFILE");
    setenv("HWLOC_SYNTHETIC", "numa:64 pu:1", 1);
    gs_tree *const t = open_tree();
    char memory[64];
    for (uint32_t node = 0; t != NULL && node < GS_TREE_NODES; node++)
        assert_true(gs_tree_bind_memory(t, memory, sizeof(memory), 1ull << node));
    unsetenv("HWLOC_SYNTHETIC");
    setenv("HWLOC_XMLFILE", GS_TEST_XML, 1);
    gs_tree_close(t);
}

static void link_machine(const char *from)
{
    (void)unlink("machine_of_test.xml");
    assert_int_equal(symlink(from, "machine_of_test.xml"), 0);
}

static void expect_near(const gs_tree *t)
{
    assert_int_equal(gs_tree_node(t, GPU_A), t == NULL ? GS_TREE_NO_NODE : 0);
}

/* Devices are opened again and again, and the machine is read once; another file is another machine. */
static void test_tree__a_machine_is_read_once(void **state)
{
    (void)state;
    link_machine(GS_TEST_XML);
    setenv("HWLOC_XMLFILE", "machine_of_test.xml", 1);
    gs_tree *const first = open_tree();
    expect_near(first);
    gs_tree_close(first);
    link_machine("/nothing");
    gs_tree *const again = open_tree();
    expect_near(again);
    unsetenv("HWLOC_XMLFILE");
    setenv("HWLOC_SYNTHETIC", "numa:2 pu:1", 1);
    assert_null(gs_tree_open()); /* it stays what it is */
    expect_near(again);
    gs_tree_close(again);
    gs_tree *const other = open_tree();
    assert_int_equal(gs_tree_node(other, GPU_A), GS_TREE_NO_NODE);
    gs_tree_close(other);
    unsetenv("HWLOC_SYNTHETIC");
    setenv("HWLOC_XMLFILE", GS_TEST_XML, 1);
    (void)unlink("machine_of_test.xml");
}

static void test_tree__groups_become_switches(void **state)
{
    gs_topology t;
    (void)state;
    gs_topology_of_groups(&t, (const uint32_t[]){0, 0, 0, 1, 2, 2}, 6);
    assert_int_equal(t.devices, 6);
    assert_int_equal(t.switches, 3);
    for (uint32_t d = 0; d < 6; d++)
        assert_int_equal(gs_topology_switch_of(&t, d), d < 3 ? 0 : d < 4 ? 1 : 2);
    assert_int_equal(t.at[2].first, 4);
    assert_int_equal(t.at[2].devices, 2);
    assert_true(t.at[0].host_bps == 0 && t.at[0].peer_bps == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree__those_behind_a_switch_are_a_group),
        cmocka_unit_test(test_tree__each_is_near_to_its_socket),
        cmocka_unit_test(test_tree__a_thread_goes_to_its_node),
        cmocka_unit_test(test_tree__memory_may_come_from_any_node),
        cmocka_unit_test(test_tree__a_machine_is_read_once),
        cmocka_unit_test(test_tree__groups_become_switches),
    };
    setenv("HWLOC_XMLFILE", GS_TEST_XML, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
