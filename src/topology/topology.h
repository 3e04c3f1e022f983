/* topology.h - several devices of a run, and the wires to them. Data only.
 *
 * Devices hang under switches. The devices of a switch share its wire to the host, in each direction, and form a
 * *chain*, in the order of their numbers: what one of them has, the next can take from it over a wire of their own.
 * Where devices of different switches reach each other, too, all of them may be one *ring* instead: of an interval's
 * rows each gets a part over its switch's wire, and hands it on, which is an all-gather.
 * Units: bytes; bytes per second, 0: as fast as it goes. Speeds of devices: shares of the fastest's.
 */
#ifndef GS_TOPOLOGY_TOPOLOGY_H
#define GS_TOPOLOGY_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define GS_TOPOLOGY_DEVICES 16u /* most of a run */

typedef struct gs_topology_switch {
    uint32_t first, devices; /* numbers of its devices */
    double host_bps;         /* to and from the host, each; shared by its devices */
    double peer_bps;         /* from a device to the next of the chain */
} gs_topology_switch;

/* How rows come to several devices: as is predicted to be faster, or as is said. */
typedef enum gs_topology_share { GS_SHARE_FASTER, GS_SHARE_CHAINS, GS_SHARE_ROUND } gs_topology_share;

/* Between devices of different switches. */
typedef struct gs_topology_across {
    bool joined; /* each can copy from each */
    double bps;
    gs_topology_share share;
    bool network;   /* each device is on a machine of its own, a rank: what goes from one's host to another's device
                     * takes this way, */
    double seconds; /* and so much longer, */
    double meeting; /* and a meeting of all takes so long */
    bool shards;    /* so do rows that the store has: a rank has its own vertices' alone */
} gs_topology_across;

/* Shares of a stage's columns, in proportion to each other, that devices are to have whatever is predicted. */
typedef struct gs_topology_place {
    bool said;
    double edges[GS_TOPOLOGY_DEVICES]; /* of stages with an edge pass, */
    double vertices[GS_TOPOLOGY_DEVICES]; /* and of vertex programs alone */
} gs_topology_place;

typedef struct gs_topology {
    uint32_t devices, switches;
    gs_topology_switch at[GS_TOPOLOGY_DEVICES];
    double speed[GS_TOPOLOGY_DEVICES]; /* of each device's computations, above 0, at most 1; 0: nothing said, 1 */
    gs_topology_across across;
    bool on_host[GS_TOPOLOGY_DEVICES]; /* its memory is a part of the host's */
    uint64_t memory[GS_TOPOLOGY_DEVICES]; /* budget of each; all 0: nothing said */
    bool all; /* devices compute, where some of them alone would be faster, too */
    bool width; /* edge passes are dealt by the width of rows wherever they can be, whatever is predicted */
    gs_topology_place place; /* said: then all compute */
    bool in_place[GS_TOPOLOGY_DEVICES]; /* it computes on what is in the host's memory: nothing is copied to it. One at
                                         * the most, under a switch of its own */
    bool alone; /* one device, in place, without an arena: nothing is copied at all */
} gs_topology;

/* One device on the host's memory, alone. */
extern const gs_topology gs_topology_host;

/* Ranks that need not be there: what each has, as all do, and the network between them. */
typedef struct gs_cluster {
    uint32_t ranks;
    uint32_t all;     /* of these so many are planned in place of all; 0: these are all */
    uint32_t threads; /* of each; 0: as many as this machine has */
    uint64_t memory;  /* of each, bytes; 0: nothing said */
    double speed;     /* of a thread, beside one of this machine */
    double disk_bps;  /* of each; 0: as this machine's disk */
    double bps, seconds, meeting; /* of the network, as in gs_topology_of_network() */
    bool shards;      /* each has its own vertices' rows of the store alone */
    double price;     /* of a rank for an hour; 0: nothing said */
} gs_cluster;

/* All devices (1 to GS_TOPOLOGY_DEVICES) under one switch, as fast as they go. */
void gs_topology_one_switch(gs_topology *out, uint32_t devices);

/* Of ranks: a device each, and a network that takes `seconds` and `bps` bytes a second to each, and `meeting` seconds
 * until all have heard of all. */
void gs_topology_of_network(gs_topology *out, uint32_t ranks, double bps, double seconds, double meeting);

/* Reads a JSON file for a run of `devices` devices (docs/design/memories.md). Nothing in it is trusted. `path` NULL:
 * *out stays as it is.
 * GS_ENOTFOUND, GS_EFORMAT (the text says where and what), GS_EINVAL (of another number of devices), GS_ENOMEM. */
gs_status gs_topology_load(gs_topology *out, const char *path, uint32_t devices);

/* Reads a JSON file (docs/ranks.md). Errors as gs_topology_load(). */
gs_status gs_cluster_load(gs_cluster *out, const char *path);

/* Takes the first switch away with its devices; there are others. */
void gs_topology_drop_first(gs_topology *t);

/* Number of the switch of a device. */
uint32_t gs_topology_switch_of(const gs_topology *t, uint32_t device);

/* Bytes a second of the wire over which device `to` takes from device `from`; 0: nothing said. */
double gs_topology_between(const gs_topology *t, uint32_t from, uint32_t to);

/* Does device `to` take from device `from` what that one has, and not from the host? Always under one switch; else over
 * wires between them that are no slower. */
bool gs_topology_hands_on(const gs_topology *t, uint32_t from, uint32_t to);

/* Bytes of the device's budget beyond `least`. */
uint64_t gs_topology_more(const gs_topology *t, uint32_t device, uint64_t least);

/* Above 0, at most 1. */
double gs_topology_speed(const gs_topology *t, uint32_t device);

/* ---- trees ------------------------------------------------------------- */

/* The machine as hwloc sees it: which GPUs are under one PCIe switch, and which memory and processors are near
 * to which.
 *
 * A build without hwloc, and a machine that hwloc knows nothing of, have no tree (NULL), which every function takes:
 * then nothing is known and nothing is bound. hwloc reads $HWLOC_XMLFILE in place of the machine. What was read
 * stays for as long as the process. Any thread.
 */

typedef struct gs_tree gs_tree;

#define GS_TREE_NODES 64u
#define GS_TREE_NO_NODE UINT32_MAX

/* NULL: there is none, or that of another machine is open, which the environment told hwloc of. */
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

#endif /* GS_TOPOLOGY_TOPOLOGY_H */
