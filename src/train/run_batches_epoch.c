/* run_batches_epoch.c - an epoch on batches: sampling a group, then a step for each of it, or for several at a time. */
#include "base/clock.h"
#include "base/size.h"
#include "train/batch_options.h"
#include "train/run_batches_internal.h"
#include "train/run_internal.h"

/* The batch of this number; with it a group is sampled, where it is not in memory. */
static gs_status draw(const gs_batch **out, gs_run_batches *b, uint32_t epoch, uint32_t number)
{
    gs_status st = GS_OK;

    if (number - b->first >= b->held) {
        const double began = gs_now();
        b->first = number;
        b->held = GS_MIN(b->group, gs_sampler_batches(b->sampler) - number);
        st = gs_sampler_draw_group(b->batch, b->sampler, b->arena, b->held, epoch, number, b->threads);
        if (st == GS_EBUDGET && gs_sampler_facts_of(b->options.kind)->has_parts)
            st = GS_OK; /* those that overflow go in parts */
        if (st == GS_OK)
            gs_batch_devices_begin(b->engine, b->batch, b->held);
        b->sample_seconds += gs_now() - began;
        for (uint32_t i = 0; i < b->held; i++)
            b->drawn += (double)b->batch[i].edges + b->batch[i].vertices;
    }
    *out = &b->batch[number - b->first];
    return st;
}

static void add_stats(gs_epoch_report *e, const gs_exec_stats *x)
{
    e->compute_seconds += x->compute_seconds;
    e->edge_seconds += x->edge_seconds;
    e->stall_seconds += x->stall_seconds;
    e->read_bytes += x->read_bytes;
    e->copied_in_bytes += x->copied_in_bytes;
    e->copied_out_bytes += x->copied_out_bytes;
    e->forwarded_bytes += x->forwarded_bytes;
}

/* Sums of a pass. */
typedef struct pass_sums {
    double loss, mass;
} pass_sums;

/* A batch for which there is no room: its targets in parts, halved until each has room, in the arena where the batch is
 * not. */
static gs_status run_parts(gs_run *r, gs_epoch_report *e, const gs_batch *whole, uint32_t key,
                           gs_batches *engine, pass_sums *sums)
{
    gs_run_batches *const b = r->batches;
    gs_batch_arena *const arena = b->arena[whole->number - b->first];
    const uint32_t targets = gs_sampler_targets(b->sampler, whole->number);
    uint32_t count = (targets + 1) / 2, part = 0;
    gs_status st = GS_OK;

    gs_batches_begin_parts(engine);
    for (uint32_t first = 0; first < targets && st == GS_OK;) {
        gs_exec_stats x = {0};
        gs_batch batch;
        double mass;
        st = gs_sampler_draw_part(&batch, b->sampler, arena, whole->epoch, whole->number, first, count);
        if (st == GS_EBUDGET && count > 1) {
            count = (count + 1) / 2;
            st = GS_OK;
            continue;
        }
        if (st != GS_OK || (st = gs_batches_run_part(engine, &batch, key, part++, &mass, &x)) != GS_OK)
            break;
        sums->loss += x.metrics.loss_sum;
        sums->mass += mass;
        add_stats(e, &x);
        first += batch.targets;
    }
    gs_batches_end_parts(engine);
    return st;
}

/* A batch that is a step: gradients are of the mean at once, which rounds less. */
static gs_status run_alone(gs_run *r, gs_epoch_report *e, const gs_batch *batch, uint32_t key, pass_sums *sums)
{
    gs_batch_pass pass = {.batch = batch, .key = key};
    const gs_status st = gs_batch_devices_run_alone(r->batches->engine, &pass);

    sums->loss = pass.stats.metrics.loss_sum;
    sums->mass = pass.mass;
    add_stats(e, &pass.stats);
    return st;
}

/* Devices that worked at the same time took as long as the slowest of them. */
static void add_round(gs_epoch_report *e, const gs_batch_pass *pass, uint32_t passes, pass_sums *sums)
{
    gs_exec_stats all = {0}, of[GS_BATCH_DEVICES] = {0};

    for (uint32_t i = 0; i < passes; i++) {
        const gs_exec_stats *const x = &pass[i].stats;
        gs_exec_stats *const d = &of[pass[i].device];
        sums->loss += x->metrics.loss_sum;
        sums->mass += pass[i].mass;
        d->compute_seconds += x->compute_seconds;
        d->edge_seconds += x->edge_seconds;
        d->stall_seconds += x->stall_seconds;
        all.read_bytes += x->read_bytes;
        all.copied_in_bytes += x->copied_in_bytes;
        all.copied_out_bytes += x->copied_out_bytes;
        all.forwarded_bytes += x->forwarded_bytes;
    }
    for (uint32_t d = 0; d < GS_BATCH_DEVICES; d++) {
        all.compute_seconds = GS_MAX(all.compute_seconds, of[d].compute_seconds);
        all.edge_seconds = GS_MAX(all.edge_seconds, of[d].edge_seconds);
        all.stall_seconds = GS_MAX(all.stall_seconds, of[d].stall_seconds);
    }
    add_stats(e, &all);
}

/* What can run at the same time of `count` batches from `first` on, *done of them: those of the group that is in
 * memory, up to one without room. That one follows, in parts. So gradients are added up in the order of a device's
 * batches, however many are a group. */
static gs_status run_round(gs_run *r, gs_epoch_report *e, uint32_t first, uint32_t count, uint32_t *done,
                           bool *teaches, pass_sums *sums)
{
    gs_run_batches *const b = r->batches;
    const gs_batch_deal *const deal = gs_batch_devices_deal(b->engine);
    const uint32_t key = (e->epoch - 1) * r->part.of + first + 1; /* of dropout */
    gs_batch_pass pass[GS_BATCH_ROUND] = {0};
    const gs_batch *batch;
    uint32_t n = 0;
    gs_status st;

    if ((st = draw(&batch, b, e->epoch, first)) != GS_OK)
        return st;
    const uint32_t held = GS_MIN(GS_MIN(count, GS_BATCH_ROUND), b->first + b->held - first);
    for (; n < held && !batch[n].overflows; n++) {
        const bool teaching = batch[n].targets > 0;
        *teaches |= teaching;
        pass[n] = (gs_batch_pass){.batch = teaching ? &batch[n] : NULL, .key = key + n,
                                  .device = gs_batch_deal_of(deal, first + n)};
    }
    if (n > 0 && (st = gs_batch_devices_run(b->engine, pass, n)) != GS_OK)
        return st;
    add_round(e, pass, n, sums);
    *done = n;
    if (n == held)
        return GS_OK;
    *done = n + 1;
    *teaches = true;
    return run_parts(r, e, &batch[n], key + n, gs_batch_devices_at(b->engine, gs_batch_deal_of(deal, first + n)), sums);
}

/* The passes of `count` batches from `first` on. *teaches: there was a target. */
static gs_status run_passes(gs_run *r, gs_epoch_report *e, uint32_t first, uint32_t count, bool *teaches,
                            pass_sums *sums)
{
    gs_run_batches *const b = r->batches;
    const gs_batch *batch;
    uint32_t n = 0;
    gs_status st;

    if ((st = draw(&batch, b, e->epoch, first)) != GS_OK)
        return st;
    if (count == 1 && batch->targets > 0 && !batch->overflows &&
        gs_batch_deal_of(gs_batch_devices_deal(b->engine), first) == 0) {
        *teaches = true;
        return run_alone(r, e, batch, (e->epoch - 1) * r->part.of + first + 1, sums);
    }
    gs_batch_devices_clear(b->engine);
    for (uint32_t done = 0; done < count && st == GS_OK; done += n)
        st = run_round(r, e, first + done, count - done, &n, teaches, sums);
    if (st == GS_OK)
        gs_batch_devices_reduce(b->engine, sums->mass);
    return st;
}

/* A step: the passes of its batches and what the optimiser makes of them, after which the weights are whole again. */
static gs_status train_step(gs_run *r, gs_epoch_report *e, uint32_t first, uint32_t count)
{
    pass_sums sums = {0};
    bool teaches = false;
    gs_status st = run_passes(r, e, first, count, &teaches, &sums);

    if (st != GS_OK || !teaches || (st = gs_run__check_pass(r, e->epoch, sums.loss)) != GS_OK)
        return st;
    r->part.loss += sums.loss;
    r->part.mass += sums.mass;
    const double update = gs_now();
    gs_run__before_step(r);
    r->whole = false;
    if ((st = gs_run__step_batch(r)) != GS_OK)
        return st;
    e->compute_seconds += gs_now() - update;
    st = gs_run__check_step(r, e->epoch);
    r->whole = st == GS_OK;
    return st;
}

static uint64_t edges_read(const gs_run_batches *b)
{
    return gs_adjacency_bytes_read(b->in) + (b->out != NULL ? gs_adjacency_bytes_read(b->out) : 0);
}

gs_status gs_run_batches_epoch(gs_run *r, gs_epoch_report *e)
{
    gs_run_batches *const b = r->batches;
    gs_epoch_part *const p = &r->part;
    const uint64_t read = edges_read(b), *const swept = r->session->run.swept;
    const uint64_t before[2] = {swept[0], swept[1]};
    gs_status st = GS_OK;

    b->sample_seconds = b->drawn = 0;
    b->held = 0;
    gs_sampler_order(b->sampler, !gs_control_shuffles(&r->control));
    p->of = gs_sampler_batches(b->sampler);
    while (p->batches < p->of) {
        const uint32_t count = GS_MIN(gs_batches_per_step_of(&r->options), p->of - p->batches);
        if (r->options.stop != NULL && *r->options.stop)
            return gs_fail(GS_EINTERRUPTED, "interrupted");
        if ((st = train_step(r, e, p->batches, count)) != GS_OK)
            return st;
        p->batches += count;
        if (p->batches < p->of && (st = gs_run__checkpoint_if_due(r)) != GS_OK)
            return st;
    }
    e->compute_seconds += b->sample_seconds;
    e->read_bytes += edges_read(b) - read + swept[0] - before[0];
    e->written_bytes += swept[1] - before[1];
    return GS_OK;
}
