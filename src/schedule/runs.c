/* runs.c - which parts of an operand interval to read?
 *
 * NeuGraph (ATC'19) filters an interval when the fraction of its rows that edges name is
 * small against the throughputs of filtering and copying. On a disk both ways go over the
 * same wire and differ in the number of requests: a read takes as long as its bytes
 * at the disk's bandwidth and some microseconds for each request (measured with 64 under way: 10 each for
 * requests of 16 KiB to 256 KiB, all on top of their bytes). So gaps between needed
 * rows are read through up to the length that takes as long as a request, and where that saves
 * next to nothing the whole interval is one sequential read.
 */
#include "schedule/runs.h"

#include <string.h>

#include "base/size.h"

/* A usual NVMe disk: 2 GB/s, 100,000 requests a second. */
#define USUAL_BPS 2e9
#define USUAL_REQUEST_SECONDS 10e-6
/* A choice must save this much of the time to be worth more requests. */
#define WORTH 0.98

bool gs_runs_need(uint64_t *mask, const gs_layout *l, uint32_t stage, uint32_t first, uint32_t count, uint32_t operand)
{
    const gs_edge_set *set = &l->set[l->stage_set[stage]];
    const uint32_t words = l->config->needs.granules.words;

    if (set->need == NULL)
        return false;
    memset(mask, 0, words * sizeof(*mask));
    for (uint32_t t = first; t < first + count; t++) {
        const uint64_t *need = set->need + ((uint64_t)t * l->parts + operand) * words;
        for (uint32_t w = 0; w < words; w++)
            mask[w] |= need[w];
    }
    return true;
}

/* Units that the granules [first, end) touch. */
static void units_of(const gs_run_extent *x, uint32_t granule_rows, uint32_t first, uint32_t end, uint64_t *from,
                     uint64_t *to)
{
    const uint64_t last_row = GS_MIN((uint64_t)end * granule_rows, x->rows);
    *from = (x->skip + (uint64_t)first * granule_rows * x->row) / x->unit;
    *to = gs_div_up(GS_MIN(x->skip + last_row * x->row, x->bytes), x->unit);
}

/* The first granule from `g` on whose mark is `mark`, or `granules`. */
static uint32_t next_granule(const uint64_t *mask, uint32_t g, uint32_t granules, bool mark)
{
    while (g < granules) {
        const uint64_t word = (mark ? mask[g / 64] : ~mask[g / 64]) >> (g % 64);
        if (word != 0)
            return GS_MIN(g + (uint32_t)__builtin_ctzll(word), granules);
        g = (g / 64 + 1) * 64;
    }
    return granules;
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
    const uint32_t first = next_granule(w->mask, w->g, w->granules, true);
    if (first == w->granules)
        return false;
    w->g = next_granule(w->mask, first, w->granules, false);
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
