/* drive.c - runs a pass once: what each device has of its sums, and what is before and behind its lanes (lane.c). */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"
#include "exec/bound.h"
#include "exec/load.h"
#include "exec/lane.h"
#include "exec/messages.h"

/* ---- what each device has ---- */

/* Gradients and sums of statistics that each device has of its own rows, and their sums over devices. */

static uint64_t statistic_doubles(const gs_param *p)
{
    return p->statistic == GS_STATISTIC_NONE ? 0 : gs_align_up(2ull * p->cols, 8);
}

/* Where the further devices' gradients are. */
static void take_gradients(gs_exec *e, uint32_t further)
{
    const gs_program *const p = e->program;
    gs_exec_shares *const s = &e->shares;
    uint64_t *const at = gs_arena_take(&e->arrays, (uint64_t)p->params + 1, sizeof(*at)), all;

    if (at == NULL)
        return;
    s->learned = gs_program_place_params(p, at, &all);
    s->grad_count = further * s->learned;
    s->grad_floats = gs_arena_take(&e->arrays, s->grad_count + 1, sizeof(*s->grad_floats));
    while (s->first + 1 < p->params && (p->param[s->first].fixed || at[s->first] > 0))
        s->first++;
    for (uint32_t k = 0; k < further * p->params && s->grad_floats != NULL; k++)
        if (!p->param[k % p->params].fixed)
            s->grad[k] = s->grad_floats + k / p->params * s->learned + at[k % p->params];
}

gs_status gs_exec__take_shares(gs_exec *e, bool gradients)
{
    gs_exec_shares *const s = &e->shares;
    const gs_program *const p = e->program;
    const uint32_t further = e->devices - 1;
    const uint64_t shares = (uint64_t)further * p->params;
    uint64_t sum_at = 0;

    for (uint64_t k = 0; k < shares; k++)
        s->statistic_count += statistic_doubles(&p->param[k % p->params]);
    s->columns = (uint64_t)GS_LOSS_SPLITS * GS_LOSS_SUMS * gs_program_loss_columns(p);
    s->column = gs_arena_take(&e->arrays, e->devices * s->columns + 1, sizeof(*s->column));
    s->founds = (uint64_t)GS_LOSS_SPLITS * GS_LOSS_SUMS * gs_program_loss_classes(p);
    s->found = gs_arena_take(&e->arrays, e->devices * s->founds + 1, sizeof(*s->found));
    s->grad = gs_arena_take(&e->arrays, shares + 1, sizeof(*s->grad));
    s->statistic = gs_arena_take(&e->arrays, shares + 1, sizeof(*s->statistic));
    s->statistic_doubles = gs_arena_take(&e->arrays, s->statistic_count + 1, sizeof(*s->statistic_doubles));
    if (e->plan->ranks > 0) {
        s->number_count = GS_EXEC_NUMBERS + s->columns + s->founds;
        s->numbers = gs_arena_take(&e->arrays, s->number_count, sizeof(*s->numbers));
    }
    if (gradients && !e->arrays.is_short && (further > 0 || e->plan->ranks > 0))
        take_gradients(e, further);
    if (e->arrays.is_short)
        return gs_fail(GS_ENOMEM, "out of memory: the devices' gradients");
    for (uint64_t k = 0; k < shares; k++) {
        const uint64_t doubles = statistic_doubles(&p->param[k % p->params]);
        s->statistic[k] = doubles > 0 ? s->statistic_doubles + sum_at : NULL;
        sum_at += doubles;
    }
    return GS_OK;
}

/* Each device's share in the pass, all zero. */
static void enter_shares(gs_exec *e)
{
    gs_exec_shares *const s = &e->shares;
    const uint32_t params = e->program->params;

    if (e->args->grad != NULL && s->grad_count > 0)
        memset(s->grad_floats, 0, s->grad_count * sizeof(*s->grad_floats));
    if (s->statistic_count > 0)
        memset(s->statistic_doubles, 0, s->statistic_count * sizeof(*s->statistic_doubles));
    memset(s->column, 0, e->devices * s->columns * sizeof(*s->column));
    memset(s->found, 0, e->devices * s->founds * sizeof(*s->found));
    for (uint32_t d = 0; d < e->devices; d++) {
        gs_exec_device *const x = &e->on[d];
        x->grad = d == 0 || e->args->grad == NULL ? e->args->grad : s->grad + (d - 1) * params;
        x->statistic = d == 0 || e->args->statistic == NULL ? e->args->statistic : s->statistic + (d - 1) * params;
        x->metrics = (gs_metrics){.column = s->columns > 0 ? s->column + d * s->columns : NULL,
                                  .found = s->founds > 0 ? s->found + d * s->founds : NULL};
        x->edge_seconds = 0;
    }
}

/* Adds what a device has to `to`; the columns of the first device become those of all. */
static void add_metrics(gs_exec *e, gs_metrics *to, const gs_metrics *from)
{
    to->loss_sum += from->loss_sum;
    to->valid_loss += from->valid_loss;
    for (int i = 0; i < 4; i++) {
        to->rows[i] += from->rows[i];
        to->correct[i] += from->correct[i];
    }
    to->found = from->found != NULL ? e->shares.found : to->found;
    for (uint64_t i = 0; from->found != NULL && from->found != to->found && i < e->shares.founds; i++)
        to->found[i] += from->found[i];
    if (from->column == NULL)
        return;
    to->column = e->shares.column;
    for (uint64_t i = 0; from->column != to->column && i < e->shares.columns; i++)
        to->column[i] += from->column[i];
}

/* Parameters' gradients, all at once: each device has those of its rows. */
static gs_status reduce_gradients(gs_exec *e)
{
    const gs_exec_shares *const s = &e->shares;
    gs_device *device[GS_PLAN_DEVICES];
    void *part[GS_PLAN_DEVICES];

    if (e->args->grad == NULL || s->learned == 0)
        return GS_OK;
    for (uint32_t d = 0; d < e->devices; d++) {
        device[d] = e->on[d].device;
        part[d] = e->on[d].grad[s->first];
    }
    return gs_device_all_reduce(device, e->devices, part, s->learned, false);
}

gs_status gs_exec__reduce_statistic(gs_exec *e, uint32_t param)
{
    gs_device *device[GS_PLAN_DEVICES];
    void *part[GS_PLAN_DEVICES];

    for (uint32_t d = 0; d < e->devices; d++) {
        device[d] = e->on[d].device;
        part[d] = e->on[d].statistic[param];
    }
    const uint64_t count = 2ull * e->program->param[param].cols;
    if (e->plan->ranks == 0)
        return gs_device_all_reduce(device, e->devices, part, count, true);
    GS_TRY(gs_device_fetch_part(device[0], part[0], count * sizeof(double)));
    GS_TRY(gs_ranks_sum_f64(part[0], count));
    return gs_device_put_part(device[0], part[0], count * sizeof(double));
}

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
    gs_failure first = {0};
    if (e->patience.gave_up)
        return st; /* a device may not answer */
    gs_failure_keep(&first, st);
    for (uint32_t d = 0; d < begun; d++)
        gs_failure_keep(&first, gs_device_end_pass(e->on[d].device));
    return gs_failure_tell(&first);
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
        x->handed_over += l->handed_over;
        if (l->kind != GS_LANE_COMPUTE) {
            *bytes[l->kind] += l->bytes;
            continue;
        }
        if (l->busy_seconds >= x->compute_seconds) {
            x->compute_seconds = l->busy_seconds;
            x->edge_seconds = on->edge_seconds;
            x->stall_seconds = l->wait_seconds;
        }
        add_metrics(e, &x->metrics, &on->metrics);
    }
    x->read_bytes += x->loaded_bytes;
}

static gs_status run_devices(gs_exec *e)
{
    uint32_t begun;
    gs_status st;

    enter_shares(e);
    if ((st = begin_devices(e, &begun)) == GS_OK) {
        e->stats.entered = gs_now();
        st = e->several != NULL ? gs_exec__several_run(e) : gs_exec__run_alone(e);
        e->stats.computed = gs_now();
    }
    if (st == GS_OK && e->args->there == NULL)
        st = gs_exec__take_results(e);
    if (st == GS_OK)
        st = reduce_gradients(e);
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
