#include "topology/tree.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"

void gs_topology_of_groups(gs_topology *out, const uint32_t *group, uint32_t devices)
{
    *out = (gs_topology){.devices = devices};
    for (uint32_t d = 0; d < devices; d++) {
        if (d == 0 || group[d] != group[d - 1])
            out->at[out->switches++] = (gs_topology_switch){.first = d};
        out->at[out->switches - 1].devices++;
    }
}

#ifdef GS_HAVE_HWLOC
#include <hwloc.h>

struct gs_tree {
    hwloc_topology_t of;
};

gs_tree *gs_tree_open(void)
{
    gs_tree *const t = gs_calloc(1, sizeof(*t));
    if (t == NULL || hwloc_topology_init(&t->of) != 0) {
        gs_free(t);
        return NULL;
    }
    if (hwloc_topology_set_io_types_filter(t->of, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 || hwloc_topology_load(t->of) != 0) {
        gs_tree_close(t);
        return NULL;
    }
    return t;
}

void gs_tree_close(gs_tree *t)
{
    if (t == NULL)
        return;
    hwloc_topology_destroy(t->of);
    gs_free(t);
}

static hwloc_obj_t find(const gs_tree *t, const char *place)
{
    return t == NULL ? NULL : hwloc_get_pcidev_by_busidstring(t->of, place);
}

/* What it hangs under: the bridge from PCI to PCI that is next to the host's, which is the port that a switch is
 * plugged in; else itself. */
static hwloc_obj_t port_of(hwloc_obj_t device)
{
    hwloc_obj_t port = device;
    for (hwloc_obj_t o = device == NULL ? NULL : device->parent; o != NULL; o = o->parent)
        if (o->type == HWLOC_OBJ_BRIDGE && o->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI)
            port = o;
    return port;
}

static bool together(const gs_tree *t, const char *a, const char *b)
{
    const hwloc_obj_t x = find(t, a), y = find(t, b);
    return strcmp(a, b) == 0 || x == NULL || y == NULL || port_of(x) == port_of(y);
}

uint32_t gs_tree_node(const gs_tree *t, const char *place)
{
    const hwloc_obj_t device = find(t, place),
                      near = device == NULL ? NULL : hwloc_get_non_io_ancestor_obj(t->of, device);
    if (near == NULL || near->nodeset == NULL || hwloc_bitmap_weight(near->nodeset) != 1)
        return GS_TREE_NO_NODE;
    const int node = hwloc_bitmap_first(near->nodeset);
    return node >= 0 && node < (int)GS_TREE_NODES ? (uint32_t)node : GS_TREE_NO_NODE;
}

bool gs_tree_bind_thread(const gs_tree *t, uint32_t node)
{
    const hwloc_obj_t at =
        t == NULL || node == GS_TREE_NO_NODE ? NULL : hwloc_get_numanode_obj_by_os_index(t->of, node);
    return at != NULL && hwloc_set_cpubind(t->of, at->cpuset, HWLOC_CPUBIND_THREAD) == 0;
}

bool gs_tree_bind_memory(const gs_tree *t, void *memory, uint64_t bytes, uint64_t nodes)
{
    const hwloc_bitmap_t set = t == NULL || nodes == 0 ? NULL : hwloc_bitmap_alloc();
    if (set == NULL)
        return false;
    for (unsigned n = 0; n < GS_TREE_NODES; n++)
        if ((nodes >> n & 1) != 0)
            hwloc_bitmap_set(set, n);
    const hwloc_membind_policy_t how = (nodes & (nodes - 1)) == 0 ? HWLOC_MEMBIND_BIND : HWLOC_MEMBIND_INTERLEAVE;
    const bool bound = hwloc_set_area_membind(t->of, memory, bytes, set, how, HWLOC_MEMBIND_BYNODESET) == 0;
    hwloc_bitmap_free(set);
    return bound;
}

#else

gs_tree *gs_tree_open(void) { return NULL; }
void gs_tree_close(gs_tree *t) { (void)t; }

static bool together(const gs_tree *t, const char *a, const char *b)
{
    (void)t, (void)a, (void)b;
    return true;
}

uint32_t gs_tree_node(const gs_tree *t, const char *place)
{
    (void)t, (void)place;
    return GS_TREE_NO_NODE;
}

bool gs_tree_bind_thread(const gs_tree *t, uint32_t node)
{
    (void)t, (void)node;
    return false;
}

bool gs_tree_bind_memory(const gs_tree *t, void *memory, uint64_t bytes, uint64_t nodes)
{
    (void)t, (void)memory, (void)bytes, (void)nodes;
    return false;
}
#endif

void gs_tree_groups(const gs_tree *t, const char *const *place, uint32_t devices, uint32_t *group)
{
    uint32_t groups = 0;
    for (uint32_t d = 0; d < devices; d++) {
        uint32_t before = 0;
        while (before < d && !(t == NULL || together(t, place[d], place[before])))
            before++;
        group[d] = before < d ? group[before] : groups++;
    }
}
