/* Edge launches over threads.
 *
 * Targets are cut into ranges of equal work, several a thread, taken as threads
 * become free. The work before target t is its edges plus its targets,
 * start[t] - start[0] + t: a target's own row costs about as much as an edge's.
 *
 * A target with more edges than a range (a hub) starts in one range and covers the
 * following ones, which then have no targets of their own: each of them takes a slice of the
 * hub's columns instead. Columns are independent, so results stay the same.
 */
#include <omp.h>

#include "base/size.h"
#include "device/cpu/row_sums.h"
#include "device/cpu/team.h"

#define RANGES_PER_THREAD 16
#define RANGE_WORK 512        /* at least: below, handing out costs more than it balances */
#define SLICE_COLUMNS 16      /* a cache line: narrower slices read lines twice */

static uint64_t work_before(const gs_cpu_cut *c, uint32_t t) { return c->start[t] - c->start[0] + (uint64_t)t; }
static uint64_t range_start(const gs_cpu_cut *c, uint64_t r) { return c->work * r / c->ranges; }

gs_cpu_cut gs_cpu__cut(const gs_cpu *cpu, const gs_edges *e)
{
    gs_cpu_cut c = {.start = e->start, .targets = e->targets};
    c.work = work_before(&c, e->targets);
    c.ranges = cpu->threads == 1 ? 1 : GS_MIN(cpu->threads * RANGES_PER_THREAD, c.work / RANGE_WORK + 1);
    return c;
}

/* First target whose work starts at `position` or later. */
static uint32_t first_target(const gs_cpu_cut *c, uint64_t position)
{
    uint32_t low = 0, high = c->targets;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (work_before(c, mid) < position)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

uint32_t gs_cpu__cut_target(const gs_cpu_cut *c, uint64_t r) { return first_target(c, range_start(c, r)); }

/* The range that `position` lies in. */
static uint64_t range_of(const gs_cpu_cut *c, uint64_t position)
{
    uint64_t r = position * c->ranges / c->work;
    while (r + 1 < c->ranges && range_start(c, r + 1) <= position)
        r++;
    while (r > 0 && range_start(c, r) > position)
        r--;
    return r;
}

/* A launch of rows, by type or not. */
typedef struct edge_task {
    const gs_cpu *cpu;
    gs_cpu_cut cut;
    const gs_edge_launch *l;
} edge_task;

static void run_columns(const edge_task *k, uint32_t first, uint32_t end, uint32_t column, uint32_t columns)
{
    if (k->l->types > 0)
        k->cpu->k->typed(k->l, first, end, column, columns);
    else
        k->cpu->k->edges(k->l, first, end, column, columns);
}

/* In how many slices target t's columns are cut, and the range that takes the first. */
static uint32_t slices_of(const edge_task *k, uint32_t t, uint64_t *first_range)
{
    *first_range = range_of(&k->cut, work_before(&k->cut, t));
    const uint64_t covered = range_of(&k->cut, work_before(&k->cut, t + 1) - 1) - *first_range + 1;
    const uint64_t most = GS_MAX(k->l->width / SLICE_COLUMNS, 1u);
    return covered <= 2 ? 1 : (uint32_t)GS_MIN(covered, most);
}

static void run_slice(const edge_task *k, uint32_t t, uint32_t slice, uint32_t slices)
{
    const uint64_t lines = gs_div_up(k->l->width, SLICE_COLUMNS);
    const uint32_t from = (uint32_t)(lines * slice / slices * SLICE_COLUMNS);
    const uint32_t to = (uint32_t)GS_MIN(lines * (slice + 1) / slices * SLICE_COLUMNS, k->l->width);
    run_columns(k, t, t + 1, from, to - from);
}

static void run_range(const edge_task *k, uint64_t r)
{
    const uint32_t first = gs_cpu__cut_target(&k->cut, r);
    uint32_t end = gs_cpu__cut_target(&k->cut, r + 1);
    uint64_t owner;

    if (first > 0) { /* the target before may be a hub that reaches into this range */
        const uint32_t slices = slices_of(k, first - 1, &owner);
        if (r > owner && r - owner < slices)
            run_slice(k, first - 1, (uint32_t)(r - owner), slices);
    }
    if (first == end)
        return;
    const uint32_t slices = slices_of(k, end - 1, &owner);
    if (slices > 1) {
        end--;
        run_slice(k, end, 0, slices);
    }
    run_columns(k, first, end, 0, k->l->width);
}

gs_status gs_cpu__run_edges(void *context, const gs_edge_launch *l)
{
    const gs_cpu *const cpu = context;
    const edge_task k = {.cpu = cpu, .cut = gs_cpu__cut(cpu, &l->edges), .l = l};
    const int before = gs_cpu__enter(cpu, k.cut.ranges);
#pragma omp parallel for schedule(dynamic, 1)
    for (uint64_t r = 0; r < k.cut.ranges; r++)
        run_range(&k, r);
    gs_cpu__leave(before);
    return GS_OK;
}
