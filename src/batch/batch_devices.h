/* batch_devices.h - several devices that train batches at the same time: each runs batches of its own on a plan of its
 * own, with the same parameters, and their gradients are added up in the order of the devices; those of rows of learned
 * tables in the order of the batches (batch_tables.h).
 *
 * Which device runs a batch depends on its number and on how fast the devices are said to be, so what is
 * added to what does not depend on groups, budgets or which of them was faster this time. Each device of cpu:N has its
 * share of the threads, and waits as long as its speed in a topology file says. Of processors and GPUs the processors
 * are device 0, as in a pass over the whole graph. One thread calls.
 */
#ifndef GS_BATCH_BATCH_DEVICES_H
#define GS_BATCH_BATCH_DEVICES_H

#include <stdint.h>

#include "base/status.h"
#include "batch/batches.h"

/* Which device runs which batch of a step.
 *
 * Batches of a step are about as long as each other, so each in turn goes to the device that is done with it first: of
 * equal jobs on machines of unlike speeds no other way ends a step sooner. The number of a batch alone decides, not
 * what was drawn and not how many batches a group has: so what is added to what does not depend on budgets.
 */
typedef struct gs_batch_deal {
    uint32_t devices, step;          /* batches of a step */
    double rate[GS_BATCH_DEVICES];   /* batches a second of each, in proportion to each other */
    uint8_t *device;                 /* [step] */
    uint32_t share[GS_BATCH_DEVICES]; /* batches of a whole step */
} gs_batch_deal;

/* rate[devices], 0 or more and at most GS_BATCH_DEVICES of them; a device of 0 has none. GS_ENOMEM. Release with
 * gs_batch_deal_close(). */
gs_status gs_batch_deal_open(gs_batch_deal *out, uint32_t devices, uint32_t step, const double *rate);
void gs_batch_deal_close(gs_batch_deal *d);

/* The device of a batch by its number in the epoch; that is a multiple of `step` for the first of a step. */
uint32_t gs_batch_deal_of(const gs_batch_deal *d, uint32_t number);
/* Most batches of any `group` in a row that are one device's. */
uint32_t gs_batch_deal_most(const gs_batch_deal *d, uint32_t device, uint32_t group);

#define GS_BATCH_GROUP 64u /* most batches of a group */
#define GS_BATCH_ROUND 8u  /* most passes of a round */

typedef struct gs_batch_devices gs_batch_devices;

/* Devices that .device names for batches; 1 of one device. GS_EUNSUPPORTED: too many. */
gs_status gs_batch_devices_count(uint32_t *out, const gs_train_options *o);
/* Batches of a step, as the options have it; one for each device where they say nothing. */
uint32_t gs_batch_devices_step(const gs_train_options *o);
/* As gs_batches_open(), for each device; reads the topology file. `typical`: a batch as others are, or NULL. */
gs_status gs_batch_devices_open(gs_batch_devices **out, const gs_session_config *config, const gs_batch *typical);
/* How the batches of an epoch are drawn: so many, `group` at a time, each of which takes so long, while the group
 * before is in use where it goes `ahead`. */
typedef struct gs_batch_drawing {
    double seconds;
    uint32_t batches, group;
    bool ahead;
} gs_batch_drawing;
/* Predicted seconds of a step in the mean over an epoch, all devices together: lanes of batches, played by their
 * rules. */
double gs_batch_devices_seconds(const gs_batch_devices *d, const gs_batch_drawing *drawing);
/* What each lane takes of a whole step, on the device that is busy longest with it. */
gs_batch_lanes gs_batch_devices_lanes(const gs_batch_devices *d);
void gs_batch_devices_close(gs_batch_devices *d); /* NULL is allowed */
gs_batches *gs_batch_devices_at(const gs_batch_devices *d, uint32_t device);
const gs_batch_deal *gs_batch_devices_deal(const gs_batch_devices *d);
/* The first that has memory of its own, where one has; else the first. */
gs_batches *gs_batch_devices_lead(const gs_batch_devices *d);

/* As of one (batches.h), of all together: a cache is divided among them, and each has a ring. A device's own memory is
 * that of each. */
void gs_batch_devices_set_room(gs_batch_devices *d, const gs_batch_room *room);
/* GPUs keep rows of features in memory of their own: as many as one `share`-th of what their plans leave of `memory`
 * bytes of each has room for (0: of what is free). Where all reach each other, together; else each for itself, the same
 * ones. False: there is no room, or no such memory. `drawn`: a GPU that is alone and keeps all draws this sampler's
 * batches, where there is room for that, too (gs_batches_draw_by()); NULL: it does not. */
bool gs_batch_devices_spread(gs_batch_devices *d, uint64_t memory, uint32_t share, const gs_sampler *drawn);
void gs_batch_devices_do_not_spread(gs_batch_devices *d);
/* May each GPU have two slots, of `memory` bytes likewise? Where rows of features that stay, which save more, have
 * three quarters of what the plans leave. */
bool gs_batch_devices_has_slots(const gs_batch_devices *d, uint64_t memory);
uint64_t gs_batch_devices_bytes(const gs_batch_devices *d);
gs_status gs_batch_devices_start(gs_batch_devices *d, gs_session *whole);
void gs_batch_devices_pause(gs_batch_devices *d);
void gs_batch_devices_quiet(gs_batch_devices *d);

/* A group was drawn; each device has its own of it. */
void gs_batch_devices_begin(gs_batch_devices *d, const gs_batch *batch, uint32_t batches);
/* So was the group behind it, while that one is in use: its first batches are picked and sent behind the last ones.
 * False: they are not, as what is read is planned by groups. */
bool gs_batch_devices_follow(gs_batch_devices *d, const gs_batch *batch, uint32_t batches);
/* Gradients of all devices become 0. */
void gs_batch_devices_clear(gs_batch_devices *d);
/* Passes of batches of a group, at most GS_BATCH_ROUND: those of one device one after the other, those of several at
 * the same time. Gradients of sums of losses are added to the device's. The first failure in the order of the devices.
 * Waits for all. */
gs_status gs_batch_devices_run(gs_batch_devices *d, gs_batch_pass *pass, uint32_t passes);
/* Of a batch of the first device that is a step: gradients are of its mean at once (gs_batches_run()). */
gs_status gs_batch_devices_run_alone(gs_batch_devices *d, gs_batch_pass *pass);
/* Gradients of all devices, added up and divided by `mass`, are those of the parameters. A meeting of ranks. */
gs_status gs_batch_devices_reduce(gs_batch_devices *d, double mass);
/* Behind either: rows of learned tables that the step's batches have. */
const struct gs_step_rows *gs_batch_devices_rows(const gs_batch_devices *d);

#endif /* GS_BATCH_BATCH_DEVICES_H */
