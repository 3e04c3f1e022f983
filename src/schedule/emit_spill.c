/* emit_spill.c - the run's file, in which arrays that are never there at the same time share bytes.
 *
 * Reads of what was there before are over when something is written: computes that needed them come before the one that
 * made it. Writes are done in any order, so a write waits for the one before of each of its bytes, which has waited
 * likewise. Plans of deep models have hundreds of arrays and a million writes: who had the bytes before is listed once,
 * and asked from the last owner on until all bytes are known.
 */
#include "schedule/emit_spill.h"

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/emit_tasks.h"
#include "schedule/liveness.h"

static bool share_bytes(const gs_plan *p, uint32_t a, uint32_t b)
{
    return p->spill.bytes[a] > 0 && p->spill.bytes[b] > 0 &&
           p->spill.first[a] < p->spill.first[b] + p->spill.bytes[b] &&
           p->spill.first[b] < p->spill.first[a] + p->spill.bytes[a];
}

/* Appends those that share bytes with `array` and are stored by a stage in [first, by), the last one first. */
static gs_status list_owners(struct emitter *e, uint32_t array, uint32_t first, uint32_t by, uint32_t *room,
                             uint32_t *count)
{
    for (uint32_t s = by; s-- > first;) {
        const gs_stage *const stage = &e->l->program->stage[s];
        const gs_status st =
            gs_emit__grow((void **)&e->spill.owner, room, *count + stage->regs, sizeof(*e->spill.owner));
        if (st != GS_OK)
            return st;
        for (uint32_t r = 0; r < stage->regs; r++)
            if (stage->reg[r].kind == GS_REG_TEMP && stage->reg[r].array != GS_NONE &&
                share_bytes(e->plan, array, stage->reg[r].array))
                e->spill.owner[(*count)++] = stage->reg[r].array;
    }
    return GS_OK;
}

gs_status gs_emit__spill_open(struct emitter *e)
{
    const gs_program *const p = e->l->program;
    uint32_t room = 0, count = 0;
    gs_status st = GS_OK;

    e->plan->spill.total = gs_liveness_spill(e->plan->spill.first, e->plan->spill.bytes, e->c, e->l);
    if ((e->spill.owners = gs_calloc(p->arrays, sizeof(*e->spill.owners))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t i = 0; i < p->passes; i++) /* nothing of a pass is under way in the next */
        for (uint32_t a = 0; a < p->arrays && st == GS_OK; a++) {
            const uint32_t by = e->l->stored_by[a], first = p->pass[i].first_stage;
            if (by == GS_NONE || by < first || by >= first + p->pass[i].stages)
                continue;
            e->spill.owners[a].first = count;
            st = list_owners(e, a, first, by, &room, &count);
            e->spill.owners[a].end = count;
        }
    return st;
}

void gs_emit__spill_close(struct emitter *e)
{
    gs_free(e->spill.owner);
    gs_free(e->spill.owners);
}

uint64_t gs_emit__spilled_at(const struct emitter *e, uint32_t array, uint32_t interval)
{
    return e->plan->spill.first[array] + (interval - e->c->kept_intervals[array]) * e->l->spill_interval[array];
}

/* For the writes of `array` that touch [begin, end) of the run's file: how many bytes of it those are. Tasks from the
 * first to the last write of an interval's rows may be other intervals' too, which count there. */
static uint64_t wait_for_writes(struct emitter *e, uint32_t array, uint64_t begin, uint64_t end)
{
    const uint64_t first = e->plan->spill.first[array], step = e->l->spill_interval[array];
    const uint64_t from = GS_MAX(begin, first), to = GS_MIN(end, first + e->plan->spill.bytes[array]);
    uint64_t bytes = 0;
    if (from >= to)
        return 0;
    for (uint64_t k = (from - first) / step; k <= (to - 1 - first) / step; k++) {
        const uint32_t *const w = e->spill.written[(uint64_t)array * e->l->parts + e->c->kept_intervals[array] + k];
        const uint64_t low = GS_MAX(from, first + k * step), high = GS_MIN(to, first + (k + 1) * step);
        for (uint32_t i = w[0] == GS_NONE ? e->made.writes : gs_emit__writes_from(e, w[0]);
             i < e->made.writes && e->made.write[i].task <= w[1]; i++) {
            const struct moved *const t = &e->made.write[i];
            if (t->file == array && t->offset < high && low < t->offset + t->bytes) {
                gs_emit__wait(e, t->task);
                bytes += GS_MIN(high, t->offset + t->bytes) - GS_MAX(low, t->offset);
            }
        }
    }
    return bytes;
}

void gs_emit__wait_for_owners(struct emitter *e, const gs_task *write)
{
    const struct owners *const before = &e->spill.owners[write->file];
    const uint64_t begin = write->place.offset;

    for (uint32_t k = before->first; k < before->end; k++)
        if (wait_for_writes(e, e->spill.owner[k], begin, begin + write->bytes) == write->bytes)
            return;
}
