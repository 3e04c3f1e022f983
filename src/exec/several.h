/* several.h - the threads of several devices, shared by several.c and several_copy.c. For this room alone. */
#ifndef GS_EXEC_SEVERAL_H
#define GS_EXEC_SEVERAL_H

#include <pthread.h>

#include "exec/exec_internal.h"

struct gs_exec_several;

/* A lane of a device, and the thread that takes its tasks. */
typedef struct gs_exec_lane {
    struct gs_exec_several *of;
    uint32_t lane, device, kind; /* of all lanes; GS_LANE_COMPUTE, ... */
    pthread_t thread;
    pthread_cond_t wake;
    bool started;             /* the thread is there */
    uint32_t missing;         /* task that it waits for, or GS_NONE */
    double last;              /* when its last task ended */
    struct {
        uint32_t task;
        uint64_t number;      /* the device's, of the launch or of the copies */
    } flight[GS_EXEC_FLIGHT]; /* begun on a device with memory of its own, oldest first */
    uint32_t flights;
    double busy_seconds, wait_seconds;
    uint64_t bytes;           /* copied, of the pass being run */
} gs_exec_lane;

struct gs_exec_several {
    gs_exec *e;
    gs_topology topology;
    const gs_tree *tree;      /* and its nodes: see gs_exec_config; while lanes start */
    const uint32_t *node;
    gs_exec_lane *lane;       /* [e->lanes - GS_LANE_DEVICES] */
    uint32_t lanes;
    /* of devices but the first: gradients and sums of statistics of their own */
    float **grad;             /* [(devices - 1) * params], or NULL */
    double **statistic;       /* likewise */
    float *grad_floats;
    double *statistic_doubles;
    uint64_t grad_count, statistic_count; /* of all of them */
    pthread_mutex_t lock;     /* guards all that follows, and what lanes wait for */
    pthread_cond_t driver;    /* wakes the thread that drives */
    uint32_t driver_missing[2];
    uint64_t passes;          /* begun so far: a new one wakes the lanes */
    uint32_t pass, running;   /* lanes that have not ended theirs */
    bool quit;
    gs_status failed;
    char why[512];
    double wire[GS_TOPOLOGY_DEVICES][2]; /* of each switch: busy until, to its devices and to the host */
    double peer[GS_TOPOLOGY_DEVICES];    /* of each device, from the one before */
};

/* several_copy.c: an UPLOAD, FORWARD or DOWNLOAD, which could begin at `ready` and ends no sooner than its wire allows;
 * on a device with memory of its own it is only begun. */
gs_status gs_exec__several_copy(gs_exec_lane *l, const gs_task *t, double ready, double span[2]);
/* several_copy.c: which of the device's ways the lane's copies go. */
gs_device_way gs_exec__way_of(const gs_exec_lane *l);

#endif /* GS_EXEC_SEVERAL_H */
