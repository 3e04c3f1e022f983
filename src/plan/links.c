/* links.c - adds up the tasks of a pass, link by link. */
#include "plan/links.h"

enum { LINK_READ, LINK_WRITE, LINK_DEVICES, DEVICE_LINKS = GS_TASK_LOAD - GS_TASK_UPLOAD + 1 };

_Static_assert(LINK_DEVICES + DEVICE_LINKS * GS_PLAN_DEVICES == GS_PLAN_LINKS, "a report has room for all links");

uint32_t gs_plan_links(const gs_plan *plan) { return LINK_DEVICES + DEVICE_LINKS * plan->devices; }

static uint32_t link_of(const gs_task *t)
{
    return t->kind == GS_TASK_READ    ? LINK_READ
           : t->kind == GS_TASK_WRITE ? LINK_WRITE
                                      : LINK_DEVICES + DEVICE_LINKS * t->device + (t->kind - GS_TASK_UPLOAD);
}

void gs_plan_load_links(gs_link_load *out, const gs_plan *plan, uint32_t pass)
{
    const gs_task *const first = plan->task + plan->pass[pass].first_task;

    out[LINK_READ] = (gs_link_load){.kind = GS_TASK_READ};
    out[LINK_WRITE] = (gs_link_load){.kind = GS_TASK_WRITE};
    for (uint32_t l = LINK_DEVICES; l < gs_plan_links(plan); l++)
        out[l] = (gs_link_load){.kind = GS_TASK_UPLOAD + (l - LINK_DEVICES) % DEVICE_LINKS,
                                .device = (l - LINK_DEVICES) / DEVICE_LINKS};
    for (const gs_task *t = first; t < first + plan->pass[pass].tasks; t++) {
        if (!gs_task_is_transfer(t->kind) && !gs_task_is_copy(t->kind))
            continue;
        gs_link_load *const load = &out[link_of(t)];
        load->peer = t->peer;
        load->bytes += gs_task_bytes(plan, t);
        load->requests += gs_task_requests(t);
    }
}
