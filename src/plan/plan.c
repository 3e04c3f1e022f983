/* plan.c - a plan owns its arrays; what a task moves. */
#include "plan/plan.h"

#include "base/alloc.h"
#include "base/size.h"

void gs_plan_free(gs_plan *p)
{
    if (p == NULL)
        return;
    gs_free(p->task);
    gs_free(p->dep);
    gs_free(p->reg);
    gs_free(p->run);
    gs_free(p->ahead);
    gs_free(p->resident);
    gs_free(p->pass);
    gs_free(p->spill.first);
    gs_free(p->spill.bytes);
    gs_free(p);
}

uint64_t gs_task_bytes(const gs_plan *plan, const gs_task *t)
{
    uint64_t bytes = 0;
    if ((t->kind != GS_TASK_READ && t->kind != GS_TASK_UPLOAD && t->kind != GS_TASK_FORWARD) || t->runs == 0)
        return t->bytes;
    for (uint32_t r = 0; r < t->runs; r++) { /* a copy's last run ends where its rows do */
        const gs_block_run run = plan->run[t->first_run + r];
        bytes += GS_MIN((run.first + (uint64_t)run.blocks) * GS_BLOCK_BYTES, t->bytes) - run.first * GS_BLOCK_BYTES;
    }
    return bytes;
}

uint32_t gs_task_requests(const gs_task *t)
{
    const bool runs = t->kind == GS_TASK_READ || t->kind == GS_TASK_UPLOAD || t->kind == GS_TASK_FORWARD;
    return runs && t->runs > 0 ? t->runs : 1;
}
