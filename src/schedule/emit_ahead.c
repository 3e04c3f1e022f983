/* emit_ahead.c - the first reads of an epoch, made while the one before it ends.
 *
 * Epoch after epoch runs the same pass. Its first reads wait for nothing but their place in the ring, so in a run that
 * will be followed by another they are made as soon as the last users of that place are done: the disk works on while
 * the device computes on what came last and while parameters are updated.
 */
#include "schedule/emit_ahead.h"

#include <string.h>

#include "base/size.h"
#include "schedule/emit_tasks.h"

/* Does the pass write the array, or the run behind it? Then a first read of it would be of the wrong epoch. */
static bool is_written(const struct emitter *e, uint32_t file)
{
    if (file < e->l->program->arrays && e->l->program->array[file].lasting)
        return true;
    for (uint32_t i = 0; file < e->l->program->arrays && i < e->l->parts; i++)
        if (e->spill.written[(uint64_t)file * e->l->parts + i][0] != GS_NONE)
            return true;
    return false;
}

/* Adds a read to the list. False where it has to wait for the run that it belongs to. */
static bool add_ahead(struct emitter *e, const struct moved *t, gs_status *st)
{
    gs_plan *const p = e->plan;

    if (is_written(e, t->file) ||
        !gs_ring_users(&e->memory[GS_HOST].ring, t->offset, t->bytes, e->wait.task, WAITS, &e->wait.count))
        return false;
    gs_emit__expand(e, 0);
    if (e->wait.count + GS_PLAN_LANES > WAITS)
        return false;
    const uint32_t n = gs_emit__settle_waits(e, GS_LANE_READ);
    e->wait.count = 0;
    e->pass->aheads++;
    if (e->c->counts) {
        p->aheads++;
        e->counted.deps += n;
        return true;
    }
    if ((*st = gs_emit__grow((void **)&p->ahead, &e->room.ahead, p->aheads + 1, sizeof(*p->ahead))) != GS_OK ||
        (*st = gs_emit__grow((void **)&p->dep, &e->room.dep, p->deps + n, sizeof(*p->dep))) != GS_OK)
        return false;
    p->ahead[p->aheads++] = (gs_ahead){t->task, p->deps, n};
    if (n > 0)
        memcpy(&p->dep[p->deps], e->wait.task, n * sizeof(*p->dep));
    p->deps += n;
    return true;
}

gs_status gs_emit__ahead(struct emitter *e)
{
    const gs_plan_pass *const pass = e->pass;
    const bool repeats = strcmp(e->l->program->pass[pass - e->plan->pass].name, "train") == 0;
    gs_status st = GS_OK;

    e->pass->first_ahead = e->plan->aheads;
    if (!repeats || e->l->config->no_pipeline || e->l->config->never_again)
        return GS_OK;
    for (uint32_t i = 0; i < e->made.earlies && add_ahead(e, &e->made.early[i], &st); i++)
        ;
    e->wait.count = 0;
    return st;
}
