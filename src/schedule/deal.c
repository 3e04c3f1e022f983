/* deal.c - which device has which target intervals of a stage.
 *
 * Runs of intervals, so that blocks are runs too, each of its device's share of the predicted seconds: of the edges of
 * its columns, of its rows, and of what only this device copies. A device's share is as large as it is fast.
 */
#include "schedule/deal.h"

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/link.h"
#include "schedule/simulate.h"

uint32_t gs_layout_devices(const gs_layout *l)
{
    return l->config->topology != NULL ? l->config->topology->devices : 1;
}

bool gs_layout_on_host(const gs_layout *l, uint32_t device)
{
    const gs_topology *const t = l->config->topology;
    return l->config->unified || (t != NULL && t->on_host[device]);
}

uint32_t gs_layout_host_devices(const gs_layout *l)
{
    uint32_t devices = 0;
    for (uint32_t d = 0; d < gs_layout_devices(l); d++)
        devices += gs_layout_on_host(l, d);
    return devices;
}

static double task_seconds(const gs_layout *l, const gs_task *t)
{
    gs_work w;
    gs_task_work(&w, l->program, l->set, l->parts, t);
    return gs_cost_seconds(gs_cost_on(l->config->cost, l->config->host_cost, l->config->topology, t->device), &w);
}

static double chunk_seconds(const gs_layout *l, uint32_t stage, uint32_t target, uint32_t operand, uint32_t device)
{
    const gs_stage *const s = &l->program->stage[stage];
    gs_task t = {.stage = stage, .file = GS_FILE_EDGES(l->program, l->stage_set[stage]), .target = target,
                 .operand = operand, .device = device};
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

static double interval_seconds(const gs_layout *l, uint32_t stage, uint32_t interval, uint32_t device)
{
    const gs_stage *const s = &l->program->stage[stage];
    const gs_schedule_config *const config = l->config;
    const gs_cost *const cost = gs_cost_on(config->cost, config->host_cost, config->topology, device);
    const double bps = gs_link_of(config->topology, cost, gs_link_to(device)).bps;
    const uint32_t rows = gs_layout_rows(l, stage, interval);
    double seconds = 0, row = 0;

    for (uint32_t o = 0; s->sums > 0 && o < l->parts; o++) {
        const gs_chunk *const c = gs_layout_chunk(l, stage, interval, o);
        if (c->edges == 0)
            continue;
        seconds += l->config->cost != NULL ? chunk_seconds(l, stage, interval, o, device) : (double)c->edges;
        seconds += (double)c->length / bps;
    }
    for (uint32_t r = 0; r < s->regs; r++)
        row += s->reg[r].kind == GS_REG_LOAD ? (double)l->row_bytes[s->reg[r].array] : 0;
    seconds += rows * row / bps;
    return seconds + (l->config->cost != NULL
                          ? task_seconds(l, &(gs_task){.kind = GS_TASK_VERTEX, .stage = stage, .rows = rows,
                                                       .device = device})
                          : rows);
}

static double stage_seconds(const gs_layout *l, uint32_t stage, uint32_t device)
{
    double seconds = 0;
    for (uint32_t i = 0; i < l->parts; i++)
        seconds += interval_seconds(l, stage, i, device);
    return seconds;
}

/* How fast each device is at the stage, which takes the first one so long: of a kind, all are as fast as the topology
 * says. */
static void stage_speeds(const gs_layout *l, uint32_t stage, double first, double *speed)
{
    const bool *const on_host = l->config->topology->on_host;
    double of[2] = {0, 0}; /* a stage takes longer on such devices than on the first */

    of[on_host[0] ? 1 : 0] = 1;
    for (uint32_t d = 0; d < l->config->topology->devices; d++) {
        double *const times = &of[on_host[d] ? 1 : 0];
        if (*times == 0)
            *times = first > 0 ? stage_seconds(l, stage, d) / first : 1;
        speed[d] = 1 / *times;
    }
}

/* The device's share of the stage's columns, in proportion to others'. */
static double share_of(const gs_layout *l, uint32_t stage, uint32_t device)
{
    const gs_topology *const t = l->config->topology;

    if (l->config->share != NULL)
        return l->config->share[stage * t->devices + device];
    if (t->place.said)
        return l->program->stage[stage].sums > 0 ? t->place.edges[device] : t->place.vertices[device];
    return gs_topology_speed(t, device);
}

/* Share of the devices before `end` in that of all. */
static double share_before(const gs_layout *l, uint32_t stage, const double *speed, uint32_t end)
{
    const uint32_t devices = gs_layout_devices(l);
    double before = 0, all = 0;

    for (uint32_t d = 0; d < devices; d++) {
        const double share = share_of(l, stage, d) * speed[d];
        before += d < end ? share : 0;
        all += share;
    }
    return before / all;
}

/* `seconds`: [parts] scratch. */
static void deal_stage(gs_choice *c, const gs_layout *l, uint32_t stage, double *seconds)
{
    const uint32_t devices = gs_layout_devices(l);
    uint32_t *const first = &c->deal[stage * (devices + 1)];
    double total = 0, before = 0, speed[GS_TOPOLOGY_DEVICES];
    uint32_t at = 0;

    for (uint32_t i = 0; i < l->parts; i++)
        total += seconds[i] = interval_seconds(l, stage, i, 0);
    stage_speeds(l, stage, total, speed);
    first[0] = 0;
    for (uint32_t d = 1; d <= devices; d++) {
        const double share = share_before(l, stage, speed, d);
        for (; at < l->parts; at++) { /* up to the bound between two intervals that is nearest to the share */
            if (before + seconds[at] / 2 > total * share)
                break;
            before += seconds[at];
        }
        first[d] = d == devices ? l->parts : at;
    }
}

gs_status gs_choice_deal(gs_choice *c, const gs_layout *l)
{
    if (l->config->topology == NULL)
        return GS_OK;
    double *const seconds = gs_malloc_array(l->parts, sizeof(*seconds));
    if (seconds == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t s = 0; s < l->program->stages; s++)
        deal_stage(c, l, s, seconds);
    gs_free(seconds);
    return GS_OK;
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
