/* drive.c - runs a pass once: what is before and behind its lanes (lane.c). */
#include <assert.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/bound.h"
#include "exec/load.h"
#include "exec/lane.h"
#include "exec/messages.h"

/* ---- a pass ---- */

/* Between begin_devices() and end_devices() a device with memory of its own has this pass's parameters. */
static gs_status begin_devices(gs_exec *e, uint32_t *begun)
{
    for (*begun = 0; *begun < e->devices; ++*begun) {
        gs_exec_device *const x = &e->on[*begun];
        const gs_device_pass pass = {
            .program = e->program,
            .param = e->args->param,
            .grad = x->grad,
            .metrics = &x->metrics,
            .statistic = x->statistic,
            .made = e->args->made,
            .loss_weight = e->args->loss_weight,
            .sends_beside = e->slots > 1,
            .there = e->args->there,
        };
        GS_TRY(gs_device_begin_pass(x->device, &pass));
        if (e->kernels != NULL)
            GS_TRY(gs_device_time_launches(x->device));
    }
    return GS_OK;
}

/* `st`: what has happened so far, which says more than what follows from it. */
static gs_status end_devices(gs_exec *e, uint32_t begun, gs_status st)
{
    char why[GS_ERROR_BYTES];
    if (e->patience.gave_up)
        return st; /* a device may not answer */
    snprintf(why, sizeof(why), "%s", st != GS_OK ? gs_last_error() : "");
    for (uint32_t d = 0; d < begun; d++) {
        const gs_status ended = gs_device_end_pass(e->on[d].device);
        if (st == GS_OK && ended != GS_OK) {
            st = ended;
            snprintf(why, sizeof(why), "%s", gs_last_error());
        }
    }
    return st == GS_OK ? GS_OK : gs_fail(st, "%s", why);
}

/* Everything that was handed over comes back, also after a failure: memory that
 * the kernel may still write to must not be reused. */
static gs_status drain(gs_exec *e, gs_status st)
{
    const double begin = gs_now();
    if (st == GS_OK && e->args->again)
        st = gs_exec__pump(e, false); /* the last launch has freed the last places */
    while (st == GS_OK && (!gs_lanes_are_over(&e->lanes, GS_LANE_WRITE) || !gs_lanes_are_over(&e->lanes, GS_LANE_READ)))
        st = gs_exec__pump(e, true);
    assert(st != GS_OK || gs_lanes_fault(&e->lanes) == NULL);
    if (st != GS_OK)
        gs_exec__forget_ahead(e);
    e->stats.stall_seconds += gs_now() - begin;
    return st;
}

/* In the order of the devices; of times, those of the one that computed longest. */
static void add_up(gs_exec *e)
{
    gs_exec_stats *const x = &e->stats;
    for (uint32_t k = 0; k < e->lanes.lanes - GS_LANE_DEVICES; k++) {
        const gs_exec_lane *const l = &e->lane[k];
        const gs_exec_device *const on = &e->on[l->device];
        uint64_t *const bytes[GS_DEVICE_LANES + 2] = {NULL, &x->copied_in_bytes, &x->forwarded_bytes,
                                                      &x->copied_out_bytes, &x->loaded_bytes, &x->sent_bytes,
                                                      &x->received_bytes};
        if (l->kind != GS_LANE_COMPUTE) {
            *bytes[l->kind] += l->bytes;
            continue;
        }
        if (l->busy_seconds >= x->compute_seconds) {
            x->compute_seconds = l->busy_seconds;
            x->edge_seconds = on->edge_seconds;
            x->stall_seconds = l->wait_seconds;
        }
        gs_exec__add_metrics(e, &x->metrics, &on->metrics);
    }
    x->read_bytes += x->loaded_bytes;
}

static gs_status run_devices(gs_exec *e)
{
    uint32_t begun;
    gs_status st;

    gs_exec__enter_shares(e);
    if ((st = begin_devices(e, &begun)) == GS_OK) {
        e->stats.entered = gs_now();
        st = e->several != NULL ? gs_exec__several_run(e) : gs_exec__run_alone(e);
        e->stats.computed = gs_now();
    }
    if (st == GS_OK && e->args->there == NULL)
        st = gs_exec__take_results(e);
    if (st == GS_OK)
        st = gs_exec__reduce_gradients(e);
    if ((st = end_devices(e, begun, st)) == GS_OK)
        add_up(e);
    return st == GS_OK ? gs_exec__sum_ranks(e) : st;
}

gs_status gs_exec_run(gs_exec *e, uint32_t pass, const gs_exec_args *args, gs_exec_stats *out)
{
    const double begin = gs_now();
    gs_status st;

    e->args = args;
    gs_exec__enter_pass(e, pass);
    gs_alloc_freeze(true);
    for (uint32_t d = 0; d < e->devices; d++)
        (void)gs_device_take_copied(e->on[d].device); /* what was before belongs to no pass */
    st = drain(e, run_devices(e));
    for (uint32_t d = 0; d < e->devices; d++) {
        const gs_device_copied copied = gs_device_take_copied(e->on[d].device);
        e->stats.copied_in_bytes += copied.in;
        e->stats.copied_out_bytes += copied.out;
    }
    gs_alloc_freeze(false);
    e->args = NULL;
    e->stats.seconds = gs_now() - begin;
    if (st == GS_OK)
        st = gs_exec__load(e, pass);
    if (st == GS_OK)
        *out = e->stats;
    return st;
}
