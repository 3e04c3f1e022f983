#include "session/batch_deal.h"

#include <assert.h>
#include <math.h>

#include "base/alloc.h"
#include "base/size.h"

/* Of those that would be done first, the first. */
static uint32_t first_done(const gs_batch_deal *d)
{
    double soonest = INFINITY;
    uint32_t best = 0;
    for (uint32_t k = 0; k < d->devices; k++) {
        const double end = d->rate[k] > 0 ? (d->share[k] + 1) / d->rate[k] : INFINITY;
        best = end < soonest ? k : best;
        soonest = GS_MIN(soonest, end);
    }
    return best;
}

gs_status gs_batch_deal_open(gs_batch_deal *out, uint32_t devices, uint32_t step, const double *rate)
{
    gs_batch_deal d = {.devices = devices, .step = step};

    assert(devices > 0 && devices <= GS_BATCH_DEVICES && step > 0);
    if ((d.device = gs_malloc_array(step, sizeof(*d.device))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the devices of a step's batches");
    for (uint32_t k = 0; k < devices; k++)
        d.rate[k] = rate[k];
    for (uint32_t i = 0; i < step; i++) {
        const uint32_t k = first_done(&d);
        d.device[i] = (uint8_t)k;
        d.share[k]++;
    }
    *out = d;
    return GS_OK;
}

void gs_batch_deal_close(gs_batch_deal *d)
{
    gs_free(d->device);
    *d = (gs_batch_deal){0};
}

uint32_t gs_batch_deal_of(const gs_batch_deal *d, uint32_t number) { return d->device[number % d->step]; }

/* A group begins anywhere in a step, and an epoch's last step, which may be short, ends its last group. */
uint32_t gs_batch_deal_most(const gs_batch_deal *d, uint32_t device, uint32_t group)
{
    uint32_t most = 0, held = 0;

    for (uint32_t i = 0; i < d->step + group; i++) {
        held += gs_batch_deal_of(d, i) == device;
        held -= i >= group && gs_batch_deal_of(d, i - group) == device;
        most = GS_MAX(most, held);
    }
    return most;
}
