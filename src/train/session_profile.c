/* session_profile.c - what an epoch that was timed says about this machine. */
#include "schedule/simulate.h"
#include "train/session.h"

void gs_session_observe(const gs_session *s, const gs_exec_stats *x, gs_fit *fit)
{
    const gs_plan_pass *const pass = &s->plan->pass[s->train];
    const uint32_t parts = gs_store_chunks(s->store)->parts;
    gs_work w;

    for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
        const gs_task *const t = &s->plan->task[i];
        double begin, end;
        if (t->kind == GS_TASK_READ || t->kind == GS_TASK_WRITE)
            continue;
        gs_exec_span(s->exec, i, &begin, &end);
        gs_task_work(&w, s->program, s->set, parts, t);
        gs_fit_add(fit, &w, end - begin, 1);
    }
    w = (gs_work){GS_WORK_CHECK, {(double)x->checks, (double)x->checked_bytes}};
    gs_fit_add(fit, &w, x->check_seconds, (double)x->checks);
    w = (gs_work){GS_WORK_SUBMIT, {(double)x->requests}};
    gs_fit_add(fit, &w, x->submit_seconds, (double)x->requests);
}

/* Half of what older runs said: machines change slowly, their load does not. */
#define OLDER_SHARE 0.5

gs_status gs_session_remember(const gs_session *s, const gs_fit *fit)
{
    gs_cost_record record;

    gs_cost_record_load(&record, gs_device_name(s->device));
    gs_fit_add_newer(&record.fit, OLDER_SHARE, fit);
    return gs_cost_record_save(&record, gs_device_name(s->device));
}
