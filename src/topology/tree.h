/* tree.h - the machine as hwloc sees it: which GPUs are under one PCIe switch, and which memory and processors are near
 * to which.
 *
 * A build without hwloc, and a machine that hwloc knows nothing of, have no tree (NULL), which every function takes:
 * then nothing is known and nothing is bound. hwloc reads $HWLOC_XMLFILE in place of the machine.
 */
#ifndef GS_TOPOLOGY_TREE_H
#define GS_TOPOLOGY_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "topology/topology.h"

typedef struct gs_tree gs_tree;

#define GS_TREE_NODES 64u
#define GS_TREE_NO_NODE UINT32_MAX

/* NULL: there is none. */
gs_tree *gs_tree_open(void);
void gs_tree_close(gs_tree *t); /* NULL is allowed */

/* group[d]: a number that devices have in common that are under one PCIe switch, 0 for the first device's, in the order
 * of their first devices. `place`: where each is plugged in ("0000:3b:00.0"); those that are plugged in at one place,
 * or where the tree does not know it, are together. */
void gs_tree_groups(const gs_tree *t, const char *const *place, uint32_t devices, uint32_t *group);
/* The NUMA node that the device is near to, by the system's number (below GS_TREE_NODES); GS_TREE_NO_NODE. */
uint32_t gs_tree_node(const gs_tree *t, const char *place);

/* The thread that calls runs on the node's processors from now on. False: it runs where it did. */
bool gs_tree_bind_thread(const gs_tree *t, uint32_t node);
/* Pages of this memory that nobody has touched come from these nodes (one bit each) in turn, where they have some. */
bool gs_tree_bind_memory(const gs_tree *t, void *memory, uint64_t bytes, uint64_t nodes);

/* Devices under the switches that their groups are. Groups are 0, 1, ... without a gap, each one's devices side by
 * side. */
void gs_topology_of_groups(gs_topology *out, const uint32_t *group, uint32_t devices);

#endif /* GS_TOPOLOGY_TREE_H */
