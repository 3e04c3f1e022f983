/* session_profile.c - what an epoch that was timed says about this machine. */
#include "schedule/simulate.h"
#include "train/session.h"

/* What share of the computing time there would have been without transfers beside it: those that
 * did not arrive while the device waited were beside it. */
static double alone_share(const gs_session *s, const gs_exec_stats *x)
{
    const double bytes = (double)(x->read_bytes + x->written_bytes);
    const double beside = x->seconds > 0 ? bytes * (1 - x->stall_seconds / x->seconds) : 0;
    const double stolen = beside * s->cost.stolen_seconds;
    return x->compute_seconds > 2 * stolen ? 1 - stolen / x->compute_seconds : 0.5;
}

void gs_session_observe(const gs_session *s, const gs_exec_stats *x, gs_fit *fit)
{
    const gs_plan_pass *const pass = &s->plan->pass[s->train];
    const uint32_t parts = gs_store_chunks(s->store)->parts;
    const double alone = alone_share(s, x);
    gs_work w;

    for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
        const gs_task *const t = &s->plan->task[i];
        double begin, end;
        if (t->kind == GS_TASK_READ || t->kind == GS_TASK_WRITE)
            continue;
        gs_exec_span(s->exec, i, &begin, &end);
        gs_task_work(&w, s->program, s->set, parts, t);
        gs_fit_add(fit, &w, (end - begin) * alone, 1);
    }
    w = (gs_work){GS_WORK_CHECK, {(double)x->checks, (double)x->checked_bytes}};
    gs_fit_add(fit, &w, x->check_seconds, (double)x->checks);
    w = (gs_work){GS_WORK_SUBMIT, {(double)x->requests}};
    gs_fit_add(fit, &w, x->submit_seconds, (double)x->requests);
}

/* Of what older runs said: machines change slowly, and a run of one model on one graph says
 * little of some coefficients. */
#define OLDER_SHARE 0.75

gs_status gs_session_remember(const gs_session *s, const gs_fit *fit)
{
    gs_cost_record record;

    gs_cost_record_load(&record, gs_device_name(s->device));
    gs_fit_add_newer(&record.fit, OLDER_SHARE, fit);
    return gs_cost_record_save(&record, gs_device_name(s->device));
}
