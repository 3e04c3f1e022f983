/* runs.c - which parts of an operand interval to read?
 *
 * NeuGraph (ATC'19, 3.3) filters an interval when the fraction of its rows that edges name is
 * small against the throughputs of filtering and copying. On a disk both ways go over the
 * same wire and differ in the number of requests: a read takes as long as its bytes
 * at the disk's bandwidth and some microseconds for each request (measured with 64 under way: 10 each for
 * requests of 16 KiB to 256 KiB, all on top of their bytes). So gaps between needed
 * rows are read through up to a length, and the length that gives the least time is taken,
 * from none (every unneeded unit skipped) to all (one sequential read).
 */
#include <string.h>

#include "base/size.h"
#include "schedule/schedule_internal.h"

/* A usual NVMe disk: 2 GB/s, 100,000 requests a second. */
#define USUAL_BPS 2e9
#define USUAL_REQUEST_SECONDS 10e-6
/* A choice must save this much of the time to be worth more requests. */
#define WORTH 0.98

bool gs_runs_need(uint64_t *mask, const gs_layout *l, uint32_t stage, uint32_t first, uint32_t count, uint32_t operand)
{
    const gs_edge_set *set = &l->set[l->stage_set[stage]];
    const uint32_t words = l->config->granules.words;

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
static void units_of(const gs_run_extent *x, uint32_t granule_rows, uint32_t first, uint32_t end, uint64_t *from, uint64_t *to)
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
    const uint32_t rows = l->config->granules.rows;
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

/* What would be read if gaps of up to units >> k were read through. */
struct tally {
    uint64_t units;            /* of the extent */
    uint64_t first, end;       /* of what is needed */
    uint64_t left_out[64];     /* by k: units in gaps that units >> k is the shortest to close */
    uint32_t gaps[64];
};

static bool tally(struct tally *t, const gs_layout *l, const gs_run_extent *x, const uint64_t *mask)
{
    struct walk w = walk_begin(l, x, mask);

    *t = (struct tally){.units = gs_div_up(x->bytes, x->unit)};
    if (!walk_next(&w))
        return false;
    t->first = w.from;
    t->end = w.to;
    for (; walk_next(&w); t->end = w.to) {
        if (w.from <= t->end)
            continue;
        const uint64_t gap = w.from - t->end;
        uint32_t k = 0;
        while (t->units >> (k + 1) >= gap)
            k++;
        t->left_out[k] += gap;
        t->gaps[k]++;
    }
    return true;
}

/* The runs themselves, when gaps of up to `gap` units are read through. */
static uint64_t collect(gs_run *run, uint32_t *runs, const gs_layout *l, const gs_run_extent *x, const uint64_t *mask,
                        uint64_t gap)
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

static double seconds_of(const gs_layout *l, const gs_run_extent *x, uint64_t bytes, uint32_t requests)
{
    if (x->bps > 0)
        return (double)bytes / x->bps + requests * x->request_seconds;
    const double bps = l->config->disk_bps > 0 ? l->config->disk_bps : USUAL_BPS;
    const double request =
        l->config->disk_request_seconds > 0 ? l->config->disk_request_seconds : USUAL_REQUEST_SECONDS;
    return (double)bytes / bps + requests * request;
}

uint64_t gs_runs_choose(gs_run *run, uint32_t room, uint32_t *runs, const gs_layout *l, const gs_run_extent *extent,
                        const uint64_t *mask)
{
    const uint64_t blocks = extent->unit / GS_BLOCK_BYTES;
    double best = seconds_of(l, extent, extent->bytes, 1);
    uint64_t best_gap = UINT64_MAX, left_out = 0;
    uint32_t gaps = 0;
    struct tally t;

    *runs = 0;
    if (!tally(&t, l, extent, mask))
        return 0;
    /* From long gaps to none: the later ones read less, and must be worth their requests. */
    for (uint32_t k = 0; k < 64; k++) {
        const uint64_t end = GS_MIN(t.end * blocks * GS_BLOCK_BYTES, extent->bytes);
        const uint64_t bytes = end - (t.first + left_out) * blocks * GS_BLOCK_BYTES;
        const double seconds = seconds_of(l, extent, bytes, gaps + 1);
        if (gaps < room && bytes < extent->bytes && seconds < best * WORTH) {
            best = seconds;
            best_gap = t.units >> k;
        }
        if (t.units >> k == 0)
            break;
        left_out += t.left_out[k];
        gaps += t.gaps[k];
    }
    if (best_gap == UINT64_MAX)
        return extent->bytes;
    return collect(run, runs, l, extent, mask, best_gap);
}
