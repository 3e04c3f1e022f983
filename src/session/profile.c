/* profile.c - timed epochs tell how fast this machine is. */
#include "base/size.h"
#include "cost/cost.h"
#include "schedule/simulate.h"
#include "session/profile.h"
#include "session/session.h"

/* Bytes that a lane of transfers moved, in one stretch of time after the other. */
struct moved {
    const gs_session *session;
    uint32_t lane;
    uint32_t next, end;    /* tasks of the pass */
    bool over;
    double from, to, bytes; /* of the stretch */
};

/* The thread hears of completions between computations only, one after the other, and verifies each. Two that it heard
 * of within this time may have come together. */
static double together(double bytes)
{
    return 30e-6 + bytes / 8e9;
}

static bool next_transfer(struct moved *m, double *begin, double *end, double *bytes)
{
    const gs_plan *const plan = m->session->plan;
    while (m->next < m->end && gs_task_lane(&plan->task[m->next]) != m->lane)
        m->next++;
    if (m->next == m->end)
        return false;
    gs_exec_span(m->session->run.exec, m->next, begin, end);
    *bytes = (double)gs_task_bytes(plan, &plan->task[m->next]);
    return true;
}

static void next_stretch(struct moved *m)
{
    double begin, end, bytes;

    if (!next_transfer(m, &begin, &end, &bytes)) {
        m->over = true;
        return;
    }
    m->from = GS_MAX(m->to, begin);
    m->to = GS_MAX(m->from, end);
    m->bytes = 0;
    do {
        m->to = GS_MAX(m->to, end);
        m->bytes += bytes;
        m->next++;
    } while (next_transfer(m, &begin, &end, &bytes) && end - m->to < together(bytes));
}

/* Bytes moved in [begin, end), which lies behind what was asked for before. */
static double moved_in(struct moved *m, double begin, double end)
{
    double bytes = 0;
    while (!m->over && m->from < end) {
        const double both = GS_MIN(end, m->to) - GS_MAX(begin, m->from);
        if (both > 0)
            bytes += m->bytes * both / (m->to - m->from);
        if (m->to >= end)
            break;
        next_stretch(m);
    }
    return bytes;
}

static struct moved moved_begin(const gs_session *s, uint32_t lane)
{
    const gs_plan_pass *const pass = &s->plan->pass[s->pass.train];
    struct moved m = {.session = s, .lane = lane, .next = pass->first_task, .end = pass->first_task + pass->tasks};
    next_stretch(&m);
    return m;
}

/* A task's time is compared with the bytes that would have gone by in the time that it should have taken: those that
 * did go by are more where it took longer for other reasons. */
static void observe_task(gs_fit *fit, const gs_cost *cost, gs_work *w, double seconds, double bytes)
{
    const double expected = gs_cost_seconds(cost, w);
    if (seconds > 0)
        w->amount[gs_work_beside(w->kind)] = GS_MIN(bytes / seconds, 2 * cost->read_bps) * expected;
    gs_fit_add(fit, w, seconds, expected, 1);
}

/* Costs of a device as they are known, and observations to fit them to. */
typedef struct findings {
    const gs_cost *cost;
    gs_fit *fit;
} findings;

static findings findings_on(const gs_session *s, gs_fit *fit, gs_fit *host_fit, uint32_t device)
{
    const gs_cost *const cost =
        gs_cost_on(&s->machine.cost, gs_session_host_cost(s), &s->machine.wires, device);
    return (findings){cost, cost == &s->machine.cost ? fit : host_fit};
}

/* A copy that was asked for behind others begins when they are over. A link whose speed the topology gives is not
 * measured. */
static void observe_copies(const gs_session *s, gs_fit *fit, gs_fit *host_fit)
{
    const gs_plan_pass *const pass = &s->plan->pass[s->pass.train];
    double over[GS_PLAN_LANES] = {0};

    for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
        const gs_task *const t = &s->plan->task[i];
        double begin, end, *const before = &over[gs_task_lane(t)];
        if (!gs_task_is_copy(t))
            continue;
        const gs_work w = {GS_WORK_LINKS + gs_link_way_of(gs_task_link(t)),
                           {gs_task_requests(t), (double)gs_task_bytes(s->plan, t)}};
        const findings f = findings_on(s, fit, host_fit, t->device);
        gs_exec_span(s->run.exec, i, &begin, &end);
        if (!(gs_link_said_bps(&s->machine.wires, gs_task_link(t)) > 0) && !gs_task_moves_rows(t))
            gs_fit_add(f.fit, &w, end - GS_MAX(begin, *before), gs_cost_seconds(f.cost, &w), 1);
        *before = end;
    }
}

/* Chunks of a sum that were joined, one after the other: one of their tasks does the work of several, so what they took
 * is compared with all of that. */
struct joined {
    const gs_task *first; /* NULL: there are none */
    findings of;
    gs_work work;
    double seconds, bytes;
};

static void observe_joined(struct joined *j)
{
    if (j->first != NULL)
        observe_task(j->of.fit, j->of.cost, &j->work, j->seconds, j->bytes);
    j->first = NULL;
}

static void join(struct joined *j, const gs_task *t, findings of, const gs_work *w, double seconds, double bytes)
{
    const gs_task *const first = j->first;

    if (first == NULL || first->stage != t->stage || first->sum != t->sum || first->device != t->device) {
        observe_joined(j);
        *j = (struct joined){.first = t, .of = of, .work = {.kind = w->kind}};
    }
    for (uint32_t i = 0; i < GS_WORK_AMOUNTS; i++)
        j->work.amount[i] += w->amount[i];
    j->seconds += seconds;
    j->bytes += bytes;
}

static void observe(const gs_session *s, const gs_exec_stats *x, gs_fit *fit, gs_fit *host_fit)
{
    const gs_plan_pass *const pass = &s->plan->pass[s->pass.train];
    const uint32_t parts = gs_store_chunks(s->store)->parts;
    const gs_topology *const topology = &s->machine.wires;
    struct moved reads = moved_begin(s, GS_LANE_READ), writes = moved_begin(s, GS_LANE_WRITE);
    struct joined joined = {.first = NULL};
    gs_work w;

    for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
        const gs_task *const t = &s->plan->task[i];
        double begin, end;
        if (t->kind == GS_TASK_MOVE)
            continue;
        const findings f = findings_on(s, fit, host_fit, t->device);
        gs_exec_span(s->run.exec, i, &begin, &end);
        gs_task_work(&w, s->program, s->edges.set, parts, t);
        const double seconds = (end - begin) * gs_topology_speed(topology, t->device),
                     bytes = moved_in(&reads, begin, end) + moved_in(&writes, begin, end);
        if (gs_exec_is_joined(s->run.exec, i)) {
            join(&joined, t, f, &w, seconds, bytes);
            continue;
        }
        observe_joined(&joined);
        observe_task(f.fit, f.cost, &w, seconds, bytes);
    }
    observe_joined(&joined);
    observe_copies(s, fit, host_fit);
    w = (gs_work){GS_WORK_CHECK, {(double)x->checks, (double)x->checked_bytes}};
    gs_fit_add(fit, &w, x->check_seconds, gs_cost_seconds(&s->machine.cost, &w), (double)x->checks);
    w = (gs_work){GS_WORK_SUBMIT, {(double)x->requests}};
    gs_fit_add(fit, &w, x->submit_seconds, gs_cost_seconds(&s->machine.cost, &w), (double)x->requests);
}

/* Weight of older runs beside the newest: machines change slowly, and a run of one model on one graph says little of
 * some coefficients. */
#define OLDER_SHARE 0.75

void gs_profile_begin(gs_profile *p)
{
    *p = (gs_profile){0};
    gs_machine_load_now(&p->began);
}

/* What other programs had of the processors meanwhile. */
static void note_others(const gs_profile *p, gs_cost_record *record)
{
    gs_machine_load now;

    gs_machine_load_now(&now);
    gs_cost_record_others(record, gs_machine_others(&p->began, &now), OLDER_SHARE);
}

void gs_session_observe(const gs_session *s, const gs_exec_stats *x, gs_profile *p)
{
    const uint32_t at = p->epochs++ % GS_PROFILE_EPOCHS;

    p->seconds[at] = x->seconds;
    p->computing[at] = x->compute_seconds;
    p->fit[at] = p->host_fit[at] = (gs_fit){0};
    observe(s, x, &p->fit[at], &p->host_fit[at]);
}

void gs_profile_add_batches(gs_profile *p, const gs_epoch_report *e, const gs_fit *fit)
{
    const uint32_t at = p->epochs++ % GS_PROFILE_EPOCHS;

    p->seconds[at] = e->seconds;
    p->computing[at] = e->compute_seconds;
    p->fit[at] = *fit;
}

/* The first epoch touches memory for the first time, and others meet what else the machine does: the
 * epoch in the middle is the one that a prediction is held against. */
static uint32_t median_epoch(const gs_profile *p, const double *of)
{
    const uint32_t n = GS_MIN(p->epochs, GS_PROFILE_EPOCHS);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t faster = 0;
        for (uint32_t k = 0; k < n; k++)
            faster += of[k] < of[i] || (k < i && of[k] == of[i]);
        if (faster == (n - 1) / 2)
            return i;
    }
    return 0;
}

static double simulated(const gs_session *s, const gs_cost *cost, double slower)
{
    const uint32_t parts = gs_store_chunks(s->store)->parts;
    gs_cost c = *cost;
    gs_predicted x = {0};
    gs_cost_slow_disk(&c, slower);
    (void)gs_simulate(&x, &(gs_simulation_input){s->plan, s->program, s->edges.set, parts, &c, &s->machine.wires,
                                                 s->pass.train, gs_session_host_cost(s)});
    return x.seconds;
}

/* With the computing times of this run itself: how much slower than its bandwidth must the disk be for the epoch to
 * take what it took? Nothing is learned of it from an epoch that does not wait. */
static void observe_disk(const gs_session *s, const gs_profile *p, gs_cost_record *record)
{
    const double took = p->seconds[median_epoch(p, p->seconds)];
    gs_cost_record bandwidth = *record;
    gs_cost cost;
    double low = 0.5, high = 3;

    bandwidth.slower_sum = bandwidth.slower_weight = 0;
    gs_session_cost_of(s, &cost, &bandwidth, s->machine.kind[0]);
    gs_fit_solve(&p->fit[median_epoch(p, p->computing)], &cost);
    if (cost.disk_source != GS_COST_FITTED || simulated(s, &cost, high) - simulated(s, &cost, low) < 0.5 * took)
        return;
    for (int k = 0; k < 20; k++) {
        const double middle = (low + high) / 2;
        *(simulated(s, &cost, middle) < took ? &low : &high) = middle;
    }
    gs_cost_record_slower(record, (low + high) / 2, OLDER_SHARE);
}

gs_status gs_session_remember(const gs_session *s, const gs_profile *p)
{
    gs_cost_record record;

    for (uint32_t k = 0; k < s->machine.kinds && p->epochs > 0; k++) {
        const gs_device *const d = s->machine.device[s->machine.kind[k]];
        const char *const name = gs_device_name(d);
        if (gs_device_rounds(d)) /* products take other times than those of most runs */
            continue;
        gs_cost_record_load(&record, name);
        if (k == 0)
            observe_disk(s, p, &record);
        note_others(p, &record);
        gs_fit_add_newer(&record.fit, OLDER_SHARE, &(k == 0 ? p->fit : p->host_fit)[median_epoch(p, p->computing)]);
        GS_TRY(gs_cost_record_save(&record, name));
    }
    return GS_OK;
}

gs_status gs_profile_remember_batches(const gs_profile *p, const gs_device *device)
{
    gs_cost_record record;

    if (p->epochs == 0 || gs_device_rounds(device))
        return GS_OK;
    gs_cost_record_load(&record, gs_device_name(device));
    note_others(p, &record);
    gs_fit_add_newer(&record.batch_fit, OLDER_SHARE, &p->fit[median_epoch(p, p->computing)]);
    record.draw_seconds = record.draw_seconds * OLDER_SHARE + p->draw_seconds;
    record.draw_amount = record.draw_amount * OLDER_SHARE + p->draw_amount;
    return gs_cost_record_save(&record, gs_device_name(device));
}
