/* deal.c - which device has which target intervals of a stage.
 *
 * Runs of intervals, so that blocks are runs too, each of its device's share of the predicted seconds: of the edges of
 * its columns, of its rows, and of what only this device copies. A device's share is as large as it is fast.
 */
#include "schedule/deal.h"

#include "base/size.h"
#include "schedule/link.h"
#include "schedule/simulate.h"

uint32_t gs_layout_devices(const gs_layout *l)
{
    return l->config->topology != NULL ? l->config->topology->devices : 1;
}

static double task_seconds(const gs_layout *l, const gs_task *t)
{
    gs_work w;
    gs_task_work(&w, l->program, l->set, l->parts, t);
    return gs_cost_seconds(l->config->cost, &w);
}

static double chunk_seconds(const gs_layout *l, uint32_t stage, uint32_t target, uint32_t operand)
{
    const gs_stage *const s = &l->program->stage[stage];
    gs_task t = {
        .stage = stage, .file = GS_FILE_EDGES(l->program, l->stage_set[stage]), .target = target, .operand = operand};
    double seconds = 0;

    for (uint32_t i = 0; i < s->sums; i++) {
        t.kind = GS_TASK_EDGES;
        t.sum = i;
        seconds += gs_stage_sums_rows(s, i) ? task_seconds(l, &t) : 0;
    }
    t.kind = gs_stage_is_back(s) ? GS_TASK_BACK : GS_TASK_EDGES;
    t.sum = GS_NONE;
    return seconds + (gs_stage_has_edge_program(s) ? task_seconds(l, &t) : 0);
}

static double interval_seconds(const gs_layout *l, uint32_t stage, uint32_t interval)
{
    const gs_stage *const s = &l->program->stage[stage];
    const double bps = gs_link_of(l->config->topology, l->config->cost, GS_LINK_TO_DEVICE, 0, 0).bps;
    const uint32_t rows = gs_layout_rows(l, stage, interval);
    double seconds = 0, row = 0;

    for (uint32_t o = 0; s->sums > 0 && o < l->parts; o++) {
        const gs_chunk *const c = gs_layout_chunk(l, stage, interval, o);
        if (c->edges == 0)
            continue;
        seconds += l->config->cost != NULL ? chunk_seconds(l, stage, interval, o) : (double)c->edges;
        seconds += (double)c->length / bps;
    }
    for (uint32_t r = 0; r < s->regs; r++)
        row += s->reg[r].kind == GS_REG_LOAD ? (double)l->row_bytes[s->reg[r].array] : 0;
    seconds += rows * row / bps;
    return seconds + (l->config->cost != NULL
                          ? task_seconds(l, &(gs_task){.kind = GS_TASK_VERTEX, .stage = stage, .rows = rows})
                          : rows);
}

/* Of the devices before `end`, of all of them together. */
static double share_before(const gs_schedule_config *config, uint32_t end)
{
    double before = 0, all = 0;

    for (uint32_t d = 0; d < config->topology->devices; d++) {
        const double share = config->share != NULL ? config->share[d] : gs_topology_speed(config->topology, d);
        before += d < end ? share : 0;
        all += share;
    }
    return before / all;
}

static void deal_stage(gs_choice *c, const gs_layout *l, uint32_t stage)
{
    const uint32_t devices = gs_layout_devices(l);
    uint32_t *const first = &c->deal[stage * (devices + 1)];
    uint32_t at = 0;
    double total = 0, before = 0;

    for (uint32_t i = 0; i < l->parts; i++)
        total += interval_seconds(l, stage, i);
    first[0] = 0;
    for (uint32_t d = 1; d <= devices; d++) {
        const double share = share_before(l->config, d);
        for (; at < l->parts; at++) { /* up to the bound between two intervals that is nearest to the share */
            const double seconds = interval_seconds(l, stage, at);
            if (before + seconds / 2 > total * share)
                break;
            before += seconds;
        }
        first[d] = d == devices ? l->parts : at;
    }
}

void gs_choice_deal(gs_choice *c, const gs_layout *l)
{
    for (uint32_t s = 0; l->config->topology != NULL && s < l->program->stages; s++)
        deal_stage(c, l, s);
}

uint32_t gs_choice_longest(const gs_choice *c, const gs_layout *l, uint32_t stage)
{
    const uint32_t devices = gs_layout_devices(l);
    const uint32_t *const first = &c->deal[stage * (devices + 1)];
    uint32_t longest = 1;

    if (l->config->topology == NULL)
        return l->parts;
    for (uint32_t d = 0; d < devices; d++)
        longest = GS_MAX(longest, first[d + 1] - first[d]);
    return longest;
}
