/* plan.c - a plan owns its arrays; nothing else happens here. */
#include "plan/plan.h"

#include "base/alloc.h"

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
    gs_free(p->spill_first);
    gs_free(p->spill_bytes);
    gs_free(p);
}
