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

static bool marked(const uint64_t *mask, uint32_t g) { return mask[g / 64] >> (g % 64) & 1; }

/* Units that the granules [first, end) touch. */
static void units_of(const gs_run_extent *x, uint32_t granule_rows, uint32_t first, uint32_t end, uint64_t *from, uint64_t *to)
{
    const uint64_t last_row = GS_MIN((uint64_t)end * granule_rows, x->rows);
    *from = (x->skip + (uint64_t)first * granule_rows * x->row) / x->unit;
    *to = gs_div_up(GS_MIN(x->skip + last_row * x->row, x->bytes), x->unit);
}

/* Runs when gaps of up to `gap` units are read through; with `run` NULL they are only counted. */
static uint64_t collect(gs_run *run, uint32_t room, uint32_t *runs, const gs_layout *l, const gs_run_extent *x,
                        const uint64_t *mask, uint64_t gap)
{
    const uint32_t rows = l->config->granules.rows, granules = (uint32_t)gs_div_up(x->rows, rows);
    const uint64_t blocks = x->unit / GS_BLOCK_BYTES, whole = x->bytes / GS_BLOCK_BYTES;
    uint64_t begin = 0, end = 0, bytes = 0;
    uint32_t n = 0;

    for (uint32_t g = 0; g <= granules;) {
        uint64_t from = UINT64_MAX, to = 0;
        if (g < granules && mask[g / 64] >> (g % 64) == 0) {
            g = GS_MIN((g / 64 + 1) * 64, granules);
            continue;
        }
        if (g < granules && !marked(mask, g)) {
            g++;
            continue;
        }
        uint32_t after = g;
        while (after < granules && marked(mask, after))
            after++;
        if (g < granules)
            units_of(x, rows, g, after, &from, &to);
        if (end > 0 && (from == UINT64_MAX || from > end + gap)) {
            const uint64_t stop = GS_MIN(end * blocks, whole);
            bytes += (stop - begin * blocks) * GS_BLOCK_BYTES;
            if (run != NULL && n < room)
                run[n] = (gs_run){(uint32_t)(begin * blocks), (uint32_t)(stop - begin * blocks)};
            n++;
            end = 0;
        }
        if (g == granules)
            break;
        begin = end == 0 ? from : begin;
        end = to;
        g = after;
    }
    *runs = n;
    return bytes;
}

static double seconds_of(const gs_layout *l, uint64_t bytes, uint32_t requests)
{
    const double bps = l->config->disk_bps > 0 ? l->config->disk_bps : USUAL_BPS;
    const double request =
        l->config->disk_request_seconds > 0 ? l->config->disk_request_seconds : USUAL_REQUEST_SECONDS;
    return (double)bytes / bps + requests * request;
}

uint64_t gs_runs_choose(gs_run *run, uint32_t room, uint32_t *runs, const gs_layout *l, const gs_run_extent *extent,
                        const uint64_t *mask)
{
    double best = seconds_of(l, extent->bytes, 1);
    uint64_t best_gap = UINT64_MAX, units = gs_div_up(extent->bytes, extent->unit);

    /* From long gaps to none: the later ones read less, and must be worth their requests. */
    for (uint64_t gap = units; best > 0; gap /= 2) {
        uint32_t n = 0;
        const uint64_t bytes = collect(NULL, 0, &n, l, extent, mask, gap);
        const double seconds = seconds_of(l, bytes, n);
        if (n <= room && bytes < extent->bytes && seconds < best * WORTH) {
            best = seconds;
            best_gap = gap;
        }
        if (gap == 0)
            break;
    }
    *runs = 0;
    if (best_gap == UINT64_MAX)
        return extent->bytes;
    return collect(run, room, runs, l, extent, mask, best_gap);
}
