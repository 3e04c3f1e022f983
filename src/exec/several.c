/* several.c - several devices run a pass: each lane of theirs is a thread, the thread that called drives io.
 *
 * A lane takes its tasks in list order and waits for what a task needs. Whoever ends a task wakes the lanes that wait
 * for it, so nothing polls. The threads live as long as the run and sleep between passes.
 */
#include "exec/several.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"

/* As much as threads have where nobody says otherwise: GPUs' libraries, which lanes call, do not say what they need.
 * What a thread touches of it is part of the libraries' allowance. */
#define STACK_BYTES (8 * GS_MIB)

/* ---- waiting and waking ---- */

void gs_exec__several_notify(gs_exec *e, uint32_t task)
{
    struct gs_exec_several *const s = e->several;

    pthread_mutex_lock(&s->lock);
    for (uint32_t k = 0; k < s->lanes; k++)
        if (s->lane[k].missing == task)
            pthread_cond_signal(&s->lane[k].wake);
    if (s->driver_missing[0] == task || s->driver_missing[1] == task)
        pthread_cond_signal(&s->driver);
    pthread_mutex_unlock(&s->lock);
}

/* The first failure ends the pass on every lane. */
static void fail(struct gs_exec_several *s, gs_status st)
{
    pthread_mutex_lock(&s->lock);
    if (s->failed == GS_OK) {
        s->failed = st;
        snprintf(s->why, sizeof(s->why), "%s", gs_last_error());
    }
    for (uint32_t k = 0; k < s->lanes; k++)
        pthread_cond_signal(&s->lane[k].wake);
    pthread_cond_signal(&s->driver);
    pthread_mutex_unlock(&s->lock);
}

/* False where the pass has failed. */
static bool wait_for_deps(gs_exec_lane *l, const gs_task *t)
{
    struct gs_exec_several *const s = l->of;
    const double begin = gs_now();

    pthread_mutex_lock(&s->lock);
    while (s->failed == GS_OK && (l->missing = gs_exec__missing_dep(s->e, t)) != GS_NONE)
        pthread_cond_wait(&l->wake, &s->lock);
    l->missing = GS_NONE;
    const bool fine = s->failed == GS_OK;
    pthread_mutex_unlock(&s->lock);
    l->wait_seconds += gs_now() - begin;
    return fine;
}

/* ---- a lane ---- */

/* When a copy could begin: what it waits for has ended, and so has the one before it. */
static double ready_at(const gs_exec_lane *l, const gs_task *t)
{
    const gs_exec *const e = l->of->e;
    double ready = l->last;
    for (uint32_t i = 0; i < t->deps; i++)
        ready = GS_MAX(ready, e->span[e->plan->dep[t->first_dep + i]][1]);
    return ready;
}

/* What was begun on a device with memory of its own and is done there, oldest first; `wait`: at least the oldest. */
static gs_status retire(gs_exec_lane *l, bool wait)
{
    gs_exec *const e = l->of->e;
    gs_device *const d = e->on[l->device].device;
    const double begin = gs_now();
    gs_status st = GS_OK;
    bool done = true;

    while (l->flights > 0 && st == GS_OK) {
        st = l->kind == GS_LANE_COMPUTE
                 ? gs_device_poll(d, l->flight[0].number, wait, &done)
                 : gs_device_poll_transfers(d, gs_exec__way_of(l), l->flight[0].number, wait, &done);
        if (st != GS_OK || !done)
            break;
        const uint32_t task = l->flight[0].task;
        e->span[task][1] = l->last = gs_now();
        l->flights--;
        memmove(&l->flight[0], &l->flight[1], l->flights * sizeof(l->flight[0]));
        gs_exec__set_done(e, task);
        wait = false;
    }
    l->busy_seconds += gs_now() - begin;
    return st;
}

static gs_status note_flight(gs_exec_lane *l, uint32_t index)
{
    gs_device *const d = l->of->e->on[l->device].device;
    uint64_t number = 0;
    gs_status st = GS_OK;

    if (l->kind == GS_LANE_COMPUTE)
        number = gs_device_last_launch(d);
    else
        st = gs_device_mark_transfers(d, gs_exec__way_of(l), &number);
    l->flight[l->flights].task = index;
    l->flight[l->flights++].number = number;
    return st != GS_OK || l->flights < GS_EXEC_FLIGHT ? st : retire(l, true);
}

static gs_status run_task(gs_exec_lane *l, uint32_t index)
{
    gs_exec *const e = l->of->e;
    const gs_task *const t = &e->plan->task[index];
    double *const span = e->span[index];
    gs_status st = GS_OK;

    if (l->kind == GS_LANE_COMPUTE) {
        span[0] = gs_now();
        st = gs_exec__launch(e, &e->on[l->device], t);
        span[1] = gs_now();
        l->busy_seconds += span[1] - span[0];
    } else {
        st = gs_exec__several_copy(l, t, ready_at(l, t), span);
    }
    if (st == GS_OK && e->on[l->device].hidden)
        return note_flight(l, index);
    l->last = span[1];
    if (st == GS_OK)
        gs_exec__set_done(e, index);
    return st;
}

/* Before task `t`: what is under way may be what others wait for, so no lane sleeps on others before it has seen its
 * own done. `failed`: the pass has. */
static gs_status get_ready(gs_exec_lane *l, const gs_task *t, bool *failed)
{
    gs_status st = l->flights > 0 ? retire(l, false) : GS_OK;

    while (st == GS_OK && l->flights > 0 && gs_exec__missing_dep(l->of->e, t) != GS_NONE)
        st = retire(l, true);
    *failed = st == GS_OK && !wait_for_deps(l, t);
    return st;
}

static void run_lane(gs_exec_lane *l, uint32_t pass)
{
    struct gs_exec_several *const s = l->of;
    gs_exec *const e = s->e;
    const uint32_t *const first = &e->lane_first[pass * e->lanes + l->lane];

    l->busy_seconds = l->wait_seconds = 0;
    l->bytes = 0;
    l->last = gs_now();
    l->flights = 0;
    gs_status st = GS_OK;
    for (uint32_t i = first[0]; i < first[1] && st == GS_OK; i++) {
        const uint32_t index = e->lane_task[i];
        bool failed = false;
        if (e->args->stop != NULL && *e->args->stop)
            st = gs_fail(GS_EINTERRUPTED, "interrupted");
        else
            st = get_ready(l, &e->plan->task[index], &failed);
        if (failed)
            return;
        if (st == GS_OK)
            st = run_task(l, index);
    }
    while (st == GS_OK && l->flights > 0)
        st = retire(l, true);
    if (st != GS_OK)
        fail(s, st);
}

static void *lane_thread(void *arg)
{
    gs_exec_lane *const l = arg;
    struct gs_exec_several *const s = l->of;

    if (s->node != NULL)
        (void)gs_tree_bind_thread(s->tree, s->node[l->device]);
    pthread_mutex_lock(&s->lock);
    for (uint64_t seen = 0;;) {
        while (!s->quit && s->passes == seen)
            pthread_cond_wait(&l->wake, &s->lock);
        if (s->quit)
            break;
        seen = s->passes;
        const uint32_t pass = s->pass;
        pthread_mutex_unlock(&s->lock);
        run_lane(l, pass);
        pthread_mutex_lock(&s->lock);
        if (--s->running == 0)
            pthread_cond_signal(&s->driver);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- a pass ---- */

/* Nothing is under way: until a transfer may start, or all lanes have ended. False then. */
static bool wait_for_lanes(struct gs_exec_several *s)
{
    static const enum lane io[2] = {LANE_READ, LANE_WRITE};
    gs_exec *const e = s->e;
    bool more = true;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        bool may = false;
        for (int k = 0; k < 2; k++) {
            const bool left = e->next[io[k]] < e->end[io[k]];
            s->driver_missing[k] =
                left ? gs_exec__missing_dep(e, &e->plan->task[e->lane_task[e->next[io[k]]]]) : GS_NONE;
            may = may || (left && s->driver_missing[k] == GS_NONE);
        }
        more = s->running > 0 && s->failed == GS_OK;
        if (may || !more)
            break;
        pthread_cond_wait(&s->driver, &s->lock);
    }
    s->driver_missing[0] = s->driver_missing[1] = GS_NONE;
    pthread_mutex_unlock(&s->lock);
    return more;
}

/* Between begin_devices() and end_devices() a device with memory of its own has this pass's parameters. */
static gs_status begin_devices(gs_exec *e, uint32_t *begun)
{
    gs_status st = GS_OK;
    for (*begun = 0; *begun < e->devices && st == GS_OK; *begun += st == GS_OK) {
        gs_exec_device *const x = &e->on[*begun];
        const gs_device_pass pass = {
            .program = e->program,
            .param = e->args->param,
            .grad = x->grad,
            .metrics = &x->metrics,
            .statistic = x->statistic,
            .made = e->args->made,
        };
        st = gs_device_begin_pass(x->device, &pass);
    }
    return st;
}

/* `st`: what has happened so far, which says more than what follows from it. */
static gs_status end_devices(gs_exec *e, uint32_t begun, gs_status st)
{
    char why[512];
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

static void prepare_pass(struct gs_exec_several *s)
{
    gs_exec *const e = s->e;
    const uint32_t params = e->program->params;

    if (e->args->grad != NULL && s->grad_count > 0)
        memset(s->grad_floats, 0, s->grad_count * sizeof(*s->grad_floats));
    if (s->statistic_count > 0)
        memset(s->statistic_doubles, 0, s->statistic_count * sizeof(*s->statistic_doubles));
    for (uint32_t d = 0; d < e->devices; d++) {
        gs_exec_device *const x = &e->on[d];
        x->grad = d == 0 || e->args->grad == NULL ? e->args->grad : s->grad + (d - 1) * params;
        x->statistic = d == 0 || e->args->statistic == NULL ? e->args->statistic : s->statistic + (d - 1) * params;
        x->metrics = (gs_metrics){0};
        x->edge_seconds = 0;
    }
}

static void start_pass(struct gs_exec_several *s, uint32_t pass)
{
    pthread_mutex_lock(&s->lock);
    s->failed = GS_OK;
    s->pass = pass;
    s->passes++;
    s->running = s->lanes;
    for (uint32_t k = 0; k < s->lanes; k++)
        pthread_cond_signal(&s->lane[k].wake);
    pthread_mutex_unlock(&s->lock);
}

/* Parameters' gradients: each device has those of its rows. */
static gs_status reduce_gradients(struct gs_exec_several *s)
{
    gs_exec *const e = s->e;
    gs_device *device[GS_PLAN_DEVICES];
    void *part[GS_PLAN_DEVICES];
    gs_status st = GS_OK;

    for (uint32_t p = 0; e->args->grad != NULL && p < e->program->params && st == GS_OK; p++) {
        const gs_param *const of = &e->program->param[p];
        for (uint32_t d = 0; d < e->devices; d++) {
            device[d] = e->on[d].device;
            part[d] = e->on[d].grad[p];
        }
        if (!of->fixed)
            st = gs_device_all_reduce(device, e->devices, part, (uint64_t)of->rows * of->cols, false);
    }
    return st;
}

gs_status gs_exec__several_statistic(gs_exec *e, uint32_t param)
{
    gs_device *device[GS_PLAN_DEVICES];
    void *part[GS_PLAN_DEVICES];

    for (uint32_t d = 0; d < e->devices; d++) {
        device[d] = e->on[d].device;
        part[d] = e->on[d].statistic[param];
    }
    return gs_device_all_reduce(device, e->devices, part, 2ull * e->program->param[param].cols, true);
}

/* In the order of the devices; of times, those of the one that computed longest. */
static void add_up(struct gs_exec_several *s)
{
    gs_exec_stats *const x = &s->e->stats;
    for (uint32_t k = 0; k < s->lanes; k++) {
        const gs_exec_lane *const l = &s->lane[k];
        const gs_exec_device *const on = &s->e->on[l->device];
        uint64_t *const bytes[GS_DEVICE_LANES] = {NULL, &x->copied_in_bytes, &x->forwarded_bytes, &x->copied_out_bytes};
        if (l->kind != GS_LANE_COMPUTE) {
            *bytes[l->kind] += l->bytes;
            continue;
        }
        if (l->busy_seconds >= x->compute_seconds) {
            x->compute_seconds = l->busy_seconds;
            x->edge_seconds = on->edge_seconds;
            x->stall_seconds = l->wait_seconds;
        }
        x->metrics.loss_sum += on->metrics.loss_sum;
        for (int i = 0; i < 4; i++) {
            x->metrics.rows[i] += on->metrics.rows[i];
            x->metrics.correct[i] += on->metrics.correct[i];
        }
    }
}

gs_status gs_exec__several_run(gs_exec *e, uint32_t pass)
{
    struct gs_exec_several *const s = e->several;
    uint32_t begun;
    gs_status st;

    prepare_pass(s);
    if ((st = begin_devices(e, &begun)) != GS_OK)
        return end_devices(e, begun, st);
    start_pass(s, pass);
    for (bool more = true; more && st == GS_OK;)
        if ((st = gs_exec__pump(e, gs_io_outstanding(e->io) > 0)) == GS_OK && gs_io_outstanding(e->io) == 0)
            more = wait_for_lanes(s);
    if (st != GS_OK)
        fail(s, st);
    pthread_mutex_lock(&s->lock);
    while (s->running > 0)
        pthread_cond_wait(&s->driver, &s->lock);
    pthread_mutex_unlock(&s->lock);
    st = s->failed != GS_OK ? gs_fail(s->failed, "%s", s->why) : reduce_gradients(s);
    if ((st = end_devices(e, begun, st)) == GS_OK)
        add_up(s);
    return st;
}

/* ---- opening and closing ---- */

/* Where the parts of the devices behind the first begin; a tensor starts at a multiple of 64 bytes. */
static gs_status take_parts(struct gs_exec_several *s, bool gradients)
{
    const gs_program *const p = s->e->program;
    const uint32_t further = s->e->devices - 1;
    uint64_t grads = 0, sums = 0, grad_at = 0, sum_at = 0;

    for (uint32_t i = 0; i < p->params; i++) {
        grads += gradients && !p->param[i].fixed ? gs_align_up((uint64_t)p->param[i].rows * p->param[i].cols, 16) : 0;
        sums += gradients && p->param[i].statistic != GS_STATISTIC_NONE ? gs_align_up(2ull * p->param[i].cols, 8) : 0;
    }
    s->grad_count = grads * further;
    s->statistic_count = sums * further;
    s->grad = gs_calloc((size_t)further * p->params + 1, sizeof(*s->grad));
    s->statistic = gs_calloc((size_t)further * p->params + 1, sizeof(*s->statistic));
    s->grad_floats = gs_calloc(s->grad_count + 1, sizeof(*s->grad_floats));
    s->statistic_doubles = gs_calloc(s->statistic_count + 1, sizeof(*s->statistic_doubles));
    if (s->grad == NULL || s->statistic == NULL || s->grad_floats == NULL || s->statistic_doubles == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: the devices' gradients");
    for (uint64_t k = 0; gradients && k < (uint64_t)further * p->params; k++) {
        const gs_param *const of = &p->param[k % p->params];
        if (!of->fixed) {
            s->grad[k] = s->grad_floats + grad_at;
            grad_at += gs_align_up((uint64_t)of->rows * of->cols, 16);
        }
        if (of->statistic != GS_STATISTIC_NONE) {
            s->statistic[k] = s->statistic_doubles + sum_at;
            sum_at += gs_align_up(2ull * of->cols, 8);
        }
    }
    return GS_OK;
}

static gs_status start_lanes(struct gs_exec_several *s)
{
    pthread_attr_t attr;
    int error = pthread_attr_init(&attr);

    if (error == 0)
        error = pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (uint32_t k = 0; k < s->lanes && error == 0; k++) {
        gs_exec_lane *const l = &s->lane[k];
        error = pthread_create(&l->thread, &attr, lane_thread, l);
        l->started = error == 0;
    }
    (void)pthread_attr_destroy(&attr);
    return error == 0 ? GS_OK : gs_fail_errno(error, "%u threads for the devices could not be had", s->lanes);
}

gs_status gs_exec__several_open(gs_exec *e, const gs_exec_config *c)
{
    struct gs_exec_several *const s = gs_calloc(1, sizeof(*s));
    gs_status st;

    if (s == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: the devices' threads");
    e->several = s;
    s->e = e;
    s->topology = *c->topology;
    s->tree = c->tree;
    s->node = c->node;
    s->lanes = e->lanes - GS_LANE_DEVICES;
    s->driver_missing[0] = s->driver_missing[1] = GS_NONE;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->driver, NULL);
    if ((s->lane = gs_calloc(s->lanes, sizeof(*s->lane))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: the devices' threads");
    for (uint32_t k = 0; k < s->lanes; k++) {
        s->lane[k] = (gs_exec_lane){.of = s, .lane = GS_LANE_DEVICES + k, .device = k / GS_DEVICE_LANES,
                                    .kind = k % GS_DEVICE_LANES, .missing = GS_NONE};
        pthread_cond_init(&s->lane[k].wake, NULL);
    }
    gs_device *device[GS_PLAN_DEVICES];
    for (uint32_t d = 0; d < e->devices; d++)
        device[d] = e->on[d].device;
    if ((st = gs_device_join(device, e->devices)) != GS_OK || (st = take_parts(s, c->gradients)) != GS_OK)
        return st;
    return start_lanes(s);
}

void gs_exec__several_close(gs_exec *e)
{
    struct gs_exec_several *const s = e->several;

    if (s == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    for (uint32_t k = 0; s->lane != NULL && k < s->lanes; k++)
        pthread_cond_signal(&s->lane[k].wake);
    pthread_mutex_unlock(&s->lock);
    for (uint32_t k = 0; s->lane != NULL && k < s->lanes; k++) {
        if (s->lane[k].started)
            pthread_join(s->lane[k].thread, NULL);
        pthread_cond_destroy(&s->lane[k].wake);
    }
    pthread_cond_destroy(&s->driver);
    pthread_mutex_destroy(&s->lock);
    gs_free(s->lane);
    gs_free(s->grad);
    gs_free(s->statistic);
    gs_free(s->grad_floats);
    gs_free(s->statistic_doubles);
    gs_free(s);
    e->several = NULL;
}
