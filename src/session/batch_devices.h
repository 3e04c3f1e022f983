/* batch_devices.h - several devices that train batches at the same time: each runs batches of its own on a plan of its
 * own, with the same parameters, and their gradients are added up in the order of the devices.
 *
 * A step's batch number k is run by device k mod N, so what is added to what depends on the number of devices alone,
 * and not on groups, budgets or which of them is faster. Each device of cpu:N has its share of the threads. One thread
 * calls.
 */
#ifndef GS_SESSION_BATCH_DEVICES_H
#define GS_SESSION_BATCH_DEVICES_H

#include "session/batches.h"

#define GS_BATCH_DEVICES 8u /* most */
#define GS_BATCH_GROUP 8u   /* most batches of a group */

typedef struct gs_batch_devices gs_batch_devices;

/* What a pass came to. */
typedef struct gs_batch_pass {
    const gs_batch *batch; /* NULL: the device rests */
    uint32_t key;          /* of dropout */
    double mass;           /* what the mean of the loss is over */
    gs_exec_stats stats;
} gs_batch_pass;

/* Devices that .device names for batches; 1 of one device. GS_EUNSUPPORTED: too many, or of several kinds. */
gs_status gs_batch_devices_count(uint32_t *out, const gs_train_options *o);
/* As gs_batches_open(), for each device. */
gs_status gs_batch_devices_open(gs_batch_devices **out, const gs_session_config *config);
void gs_batch_devices_close(gs_batch_devices *d); /* NULL is allowed */
gs_batches *gs_batch_devices_at(const gs_batch_devices *d, uint32_t device);

/* As of one (batches.h), of all together; `bytes` of a cache is divided among them. A device's own memory is that of
 * each. */
void gs_batch_devices_set_cache(gs_batch_devices *d, uint64_t bytes, uint32_t group);
void gs_batch_devices_keep_features(gs_batch_devices *d, bool keep);
/* GPUs keep rows of features in memory of their own: as many as one `share`-th of what their plans leave of `memory`
 * bytes of each has room for (0: of what is free). Where all reach each other, together; else each for itself, the same
 * ones. False: there is no room, or no such memory. */
bool gs_batch_devices_spread(gs_batch_devices *d, uint64_t memory, uint32_t share);
void gs_batch_devices_do_not_spread(gs_batch_devices *d);
uint64_t gs_batch_devices_bytes(const gs_batch_devices *d);
gs_status gs_batch_devices_start(gs_batch_devices *d, gs_session *whole);
void gs_batch_devices_rest(gs_batch_devices *d);

/* A group was drawn, whose first batch is the first device's. */
void gs_batch_devices_begin(gs_batch_devices *d, const gs_batch *batch, uint32_t batches);
/* Gradients of all devices become 0. */
void gs_batch_devices_clear(gs_batch_devices *d);
/* A pass on each device at the same time, pass[d] on device d: gradients of sums of losses are added to the device's.
 * The first failure in the order of the devices. Waits for all. */
gs_status gs_batch_devices_run(gs_batch_devices *d, gs_batch_pass *pass);
/* Gradients of all devices, added up and divided by `mass`, are those of the parameters. */
void gs_batch_devices_reduce(gs_batch_devices *d, double mass);

#endif /* GS_SESSION_BATCH_DEVICES_H */
