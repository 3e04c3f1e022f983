/* runs.c - bytes of units as the disk is asked for them: extents, and runs of needed rows. */
#include "schedule/runs.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

/* ---- extents -------------------------------------------------------------- */

/* A treap of free extents (Seidel and Aragon, "Randomized search trees", 1996). */

static void look_below(gs_extents *e, uint32_t n)
{
    gs_extent_node *const x = &e->node[n];
    x->most = GS_MAX(x->bytes, GS_MAX(e->node[x->left].most, e->node[x->right].most));
}

/* All of `a` is below all of `b`. */
static uint32_t join(gs_extents *e, uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    if (e->node[a].priority > e->node[b].priority) {
        e->node[a].right = join(e, e->node[a].right, b);
        look_below(e, a);
        return a;
    }
    e->node[b].left = join(e, a, e->node[b].left);
    look_below(e, b);
    return b;
}

/* *low: those that begin before `at`; *high: the others. */
static void split(gs_extents *e, uint32_t n, uint64_t at, uint32_t *low, uint32_t *high)
{
    if (n == 0) {
        *low = *high = 0;
    } else if (e->node[n].at < at) {
        *low = n;
        split(e, e->node[n].right, at, &e->node[n].right, high);
        look_below(e, n);
    } else {
        *high = n;
        split(e, e->node[n].left, at, low, &e->node[n].left);
        look_below(e, n);
    }
}

/* 0 where there are no bytes. */
static uint32_t new_node(gs_extents *e, uint64_t at, uint64_t bytes)
{
    const uint32_t n = bytes > 0 ? e->unused : 0;

    if (n == 0)
        return 0;
    e->unused = e->node[n].right;
    e->random = e->random * 1664525u + 1013904223u;
    e->node[n] = (gs_extent_node){.at = at, .bytes = bytes, .most = bytes, .priority = e->random};
    return n;
}

static void free_node(gs_extents *e, uint32_t n)
{
    if (n == 0)
        return;
    e->node[n].right = e->unused;
    e->unused = n;
}

gs_status gs_extents_make(gs_extents *out, uint64_t capacity, uint32_t taken)
{
    gs_extents e = {.random = 1};
    const uint32_t nodes = taken + 1; /* free ones lie between taken ones */

    if ((e.node = gs_calloc((uint64_t)nodes + 1, sizeof(*e.node))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t n = nodes; n > 0; n--)
        free_node(&e, n);
    e.root = new_node(&e, 0, capacity);
    *out = e;
    return GS_OK;
}

void gs_extents_drop(gs_extents *e)
{
    gs_free(e->node);
    *e = (gs_extents){0};
}

static uint32_t lowest(const gs_extents *e, uint32_t n, uint64_t from, uint64_t bytes)
{
    const gs_extent_node *const x = &e->node[n];
    uint32_t found = 0;

    if (n == 0 || x->most < bytes)
        return 0;
    if (x->at > from && (found = lowest(e, x->left, from, bytes)) != 0)
        return found;
    const uint64_t end = x->at + x->bytes, first = GS_MAX(x->at, from);
    return end >= first && end - first >= bytes ? n : lowest(e, x->right, from, bytes);
}

uint64_t gs_extents_find(const gs_extents *e, uint64_t from, uint64_t bytes, uint64_t *end)
{
    const uint32_t n = lowest(e, e->root, from, bytes);

    if (n == 0)
        return GS_EXTENTS_NONE;
    *end = e->node[n].at + e->node[n].bytes;
    return GS_MAX(e->node[n].at, from);
}

static uint32_t highest(const gs_extents *e, uint32_t n, uint64_t until, uint64_t bytes)
{
    const gs_extent_node *const x = &e->node[n];
    uint32_t found = 0;

    if (n == 0 || x->most < bytes)
        return 0;
    if (x->at + x->bytes < until && (found = highest(e, x->right, until, bytes)) != 0)
        return found;
    const uint64_t end = GS_MIN(x->at + x->bytes, until);
    return end >= x->at && end - x->at >= bytes ? n : highest(e, x->left, until, bytes);
}

uint64_t gs_extents_find_last(const gs_extents *e, uint64_t until, uint64_t bytes)
{
    const uint32_t n = highest(e, e->root, until, bytes);
    return n == 0 ? GS_EXTENTS_NONE : GS_MIN(e->node[n].at + e->node[n].bytes, until) - bytes;
}

static uint32_t first_of(const gs_extents *e, uint32_t n)
{
    while (e->node[n].left != 0)
        n = e->node[n].left;
    return n;
}

static uint32_t last_of(const gs_extents *e, uint32_t n)
{
    while (e->node[n].right != 0)
        n = e->node[n].right;
    return n;
}

void gs_extents_take(gs_extents *e, uint64_t at, uint64_t bytes)
{
    uint32_t low, high, within;

    split(e, e->root, at + 1, &low, &high);
    split(e, low, e->node[last_of(e, low)].at, &low, &within);
    const gs_extent_node x = e->node[within];
    assert(within != 0 && x.at <= at && x.at + x.bytes >= at + bytes);
    free_node(e, within);
    const uint32_t before = new_node(e, x.at, at - x.at),
                   after = new_node(e, at + bytes, x.at + x.bytes - (at + bytes));
    e->root = join(e, join(e, low, before), join(e, after, high));
}

void gs_extents_give(gs_extents *e, uint64_t at, uint64_t bytes)
{
    uint64_t first = at, end = at + bytes;
    uint32_t low, high, next;

    split(e, e->root, at, &low, &high);
    const uint32_t last = last_of(e, low);
    if (last != 0 && e->node[last].at + e->node[last].bytes == at) {
        first = e->node[last].at;
        split(e, low, first, &low, &next);
        free_node(e, next);
    }
    const uint32_t after = first_of(e, high);
    if (after != 0 && e->node[after].at == end) {
        end += e->node[after].bytes;
        split(e, high, e->node[after].at + 1, &next, &high);
        free_node(e, next);
    }
    e->root = join(e, join(e, low, new_node(e, first, end - first)), high);
}

/* ---- runs ----------------------------------------------------------------- */

/* Which parts of an operand interval to read?
 *
 * NeuGraph (ATC'19) filters an interval when the fraction of its rows that edges name is
 * small against the throughputs of filtering and copying. On a disk both ways go over the
 * same wire and differ in the number of requests: a read takes as long as its bytes
 * at the disk's bandwidth and some microseconds for each request (measured with 64 under way: 10 each for
 * requests of 16 KiB to 256 KiB, all on top of their bytes). So gaps between needed
 * rows are read through up to the length that takes as long as a request, and where that saves
 * next to nothing the whole interval is one sequential read.
 */

/* A usual NVMe disk: 2 GB/s, 100,000 requests a second. */
#define USUAL_BPS 2e9
#define USUAL_REQUEST_SECONDS 10e-6
/* A choice must save this much of the time to be worth more requests. */
#define WORTH 0.98

/* Of `table` [parts * parts][words]. */
static bool unite(uint64_t *mask, const gs_layout *l, const uint64_t *table, uint32_t words, uint32_t first,
                  uint32_t count, uint32_t operand)
{
    if (table == NULL)
        return false;
    memset(mask, 0, words * sizeof(*mask));
    for (uint32_t t = first; t < first + count; t++) {
        const uint64_t *need = table + ((uint64_t)t * l->parts + operand) * words;
        for (uint32_t w = 0; w < words; w++)
            mask[w] |= need[w];
    }
    return true;
}

bool gs_runs_need(uint64_t *mask, const gs_layout *l, uint32_t stage, uint32_t first, uint32_t count, uint32_t operand)
{
    return unite(mask, l, l->set[l->stage_set[stage]].need, l->config->needs.granules.words, first, count, operand);
}

bool gs_runs_need_rows(uint64_t *mask, const gs_layout *l, uint32_t stage, uint32_t first, uint32_t count,
                       uint32_t operand)
{
    return unite(mask, l, l->set[l->stage_set[stage]].rows, l->config->needs.rows.words, first, count, operand);
}

/* Units that the granules [first, end) touch. */
static void units_of(const gs_run_extent *x, uint32_t granule_rows, uint32_t first, uint32_t end, uint64_t *from,
                     uint64_t *to)
{
    const uint64_t last_row = GS_MIN((uint64_t)end * granule_rows, x->rows);
    *from = (x->skip + (uint64_t)first * granule_rows * x->row) / x->unit;
    *to = gs_div_up(GS_MIN(x->skip + last_row * x->row, x->bytes), x->unit);
}

/* Goes over stretches of needed units, those that touch as one. */
struct walk {
    const gs_run_extent *x;
    const uint64_t *mask;
    uint32_t granule_rows, granules, g;
    uint64_t from, to; /* the stretch, in units */
};

static struct walk walk_begin(const gs_layout *l, const gs_run_extent *x, const uint64_t *mask)
{
    const uint32_t rows = l->config->needs.granules.rows;
    return (struct walk){.x = x, .mask = mask, .granule_rows = rows, .granules = (uint32_t)gs_div_up(x->rows, rows)};
}

static bool walk_next(struct walk *w)
{
    const uint32_t first = (uint32_t)gs_next_bit(w->mask, w->g, w->granules, true);
    if (first == w->granules)
        return false;
    w->g = (uint32_t)gs_next_bit(w->mask, first, w->granules, false);
    units_of(w->x, w->granule_rows, first, w->g, &w->from, &w->to);
    return true;
}

/* Units that are read, and in how many requests, when gaps of up to `gap` units are read through. */
static uint64_t count(uint32_t *runs, const gs_layout *l, const gs_run_extent *x, const uint64_t *mask, uint64_t gap)
{
    struct walk w = walk_begin(l, x, mask);
    uint64_t end = 0, bytes = 0;

    for (*runs = 0; walk_next(&w); end = w.to) {
        const bool first = *runs == 0 || w.from > end + gap;
        bytes += GS_MIN(w.to * x->unit, x->bytes) - (first ? w.from : end) * x->unit;
        *runs += first;
    }
    return bytes;
}

/* The runs themselves, when gaps of up to `gap` units are read through. */
static uint64_t collect(gs_block_run *run, uint32_t *runs, const gs_layout *l, const gs_run_extent *x,
                        const uint64_t *mask, uint64_t gap)
{
    const uint64_t blocks = x->unit / GS_BLOCK_BYTES, whole = x->bytes / GS_BLOCK_BYTES;
    struct walk w = walk_begin(l, x, mask);
    uint64_t end = 0, bytes = 0;

    for (*runs = 0; walk_next(&w); end = w.to) {
        if (*runs == 0 || w.from > end + gap)
            run[(*runs)++].first = (uint32_t)(w.from * blocks);
        run[*runs - 1].blocks = (uint32_t)GS_MIN(w.to * blocks, whole) - run[*runs - 1].first;
    }
    for (uint32_t r = 0; r < *runs; r++)
        bytes += run[r].blocks * GS_BLOCK_BYTES;
    return bytes;
}

/* A request takes as long as so many bytes. */
static double request_bytes(const gs_layout *l, const gs_run_extent *x)
{
    const gs_schedule_config *const c = l->config;
    if (x->bps > 0)
        return x->bps * x->request_seconds;
    return (c->disk_bps > 0 ? c->disk_bps : USUAL_BPS) *
           (c->disk_request_seconds > 0 ? c->disk_request_seconds : USUAL_REQUEST_SECONDS);
}

uint64_t gs_runs_choose(gs_block_run *run, uint32_t room, uint32_t *runs, const gs_layout *l,
                        const gs_run_extent *extent, const uint64_t *mask)
{
    /* A gap takes the time of its bytes or that of a request: each is decided by itself. */
    const double request = request_bytes(l, extent), longest = request / (double)extent->unit,
                 all = (double)extent->bytes;
    const uint64_t gap = longest < 1e9 ? (uint64_t)longest : (uint64_t)1e9, bytes = count(runs, l, extent, mask, gap);

    if (*runs == 0)
        return 0;
    if (*runs > room || (double)bytes + *runs * request >= WORTH * (all + request)) {
        *runs = 0;
        return extent->bytes;
    }
    return collect(run, runs, l, extent, mask, gap);
}
