/* devices.h - the devices of a run: which are they, how are they joined, how fast are they? */
#ifndef GS_SESSION_DEVICES_H
#define GS_SESSION_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cost/cost.h"
#include "device/device.h"
#include "topology/topology.h"

typedef struct gs_session gs_session;

/* The words of .disk_to_device, in their order. */
enum { GS_DIRECT_AUTO, GS_DIRECT_YES, GS_DIRECT_NO };

typedef struct gs_session_direct {
    bool possible;  /* it was asked for, or may save time, and the device can */
    char why[GS_ERROR_BYTES]; /* not, where it was asked for; "": it can, or nobody asked */
} gs_session_direct;

/* Of the edge files of the store; before memory is charged. With `auto` asks nobody unless the machine's record has the
 * speed of that link. */
void gs_session_find_direct(gs_session *s);
/* And of those that the run writes itself, in the scratch folder: where the program has pruned edges. */
void gs_session_find_direct_scratch(gs_session *s);

/* The devices of a run: which are they, how are they joined, how fast are they? */

typedef struct gs_session gs_session;

/* Where processors and GPUs are named: which of them compute, and the predicted seconds of an epoch; 0: they do not
 * keep the budgets. */
typedef struct gs_session_way {
    char device[GS_DEVICE_WORDS];
    double seconds;
} gs_session_way;

#define GS_SESSION_WAYS 3u

/* The devices of the run, how they are joined, and what is known of their speed. */
typedef struct gs_session_machine {
    char spec[GS_DEVICE_WORDS]; /* as --device has them, but of one kind alone where that was taken */
    uint32_t devices;
    gs_device *device[GS_DEVICE_COUNT_MOST];
    uint32_t node[GS_DEVICE_COUNT_MOST]; /* NUMA node that each is near to */
    gs_topology wires;
    bool linked;                 /* GPUs that all are joined by links of their own (NVLink), of one rank */
    gs_tree *tree;               /* of the machine, for GPUs; NULL: not known */
    uint32_t kinds, kind[2];     /* one that speaks for those that have memory of their own, where there are any, and
                                  * one for those on host memory, likewise; kind[1]: GS_NONE where all are alike */
    gs_cost cost, host_cost;     /* of the two; the disk's is in the first */
    gs_session_direct direct;
    uint32_t owners[GS_PLAN_DEVICES + 1]; /* of ranks: the first interval of each */
    uint32_t ways, way_taken;    /* 0: there was no choice */
    gs_session_way way[GS_SESSION_WAYS];
} gs_session_machine;

/* Costs of work on a device, from its record, or from its attributes where it has none. */
void gs_session_cost_of(const gs_session *s, gs_cost *out, const gs_cost_record *record, uint32_t device);
/* machine.host_cost; NULL where all are alike. */
const gs_cost *gs_session_host_cost(const gs_session *s);
/* Is there a device with memory of its own? */
bool gs_session_has_memories(const gs_session *s);
/* Opens the devices that the options name, and finds out how they are joined. */
gs_status gs_session_open_devices(gs_session *s);
/* Free memory of each device, where they have their own: devices on one GPU share its. GS_EDEVICE: one does not
 * answer. */
gs_status gs_session_free_device_memory(const gs_session *s, uint64_t *bytes);

#endif /* GS_SESSION_DEVICES_H */
