/* batch_deal.h - which device runs which batch of a step.
 *
 * Batches of a step are about as long as each other, so each in turn goes to the device that is done with it first: of
 * equal jobs on machines of unlike speeds no other way ends a step sooner. The number of a batch alone decides, not
 * what was drawn and not how many batches a group has: so what is added to what does not depend on budgets.
 */
#ifndef GS_SESSION_BATCH_DEAL_H
#define GS_SESSION_BATCH_DEAL_H

#include <stdint.h>

#include "base/status.h"

#define GS_BATCH_DEVICES 8u /* most */

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

#endif /* GS_SESSION_BATCH_DEAL_H */
