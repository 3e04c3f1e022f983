/* batch_group.c - the expected reads of a cache that sees one group of batches ahead. */
#include "train/batch_group.h"

#include <assert.h>

#include "base/size.h"

#define SETTLING 6u /* groups after which what the cache holds has settled */

/* What is cached, in items: used next by batch d of the group; not used by the group any more. */
typedef struct holding {
    double due[GS_GROUP_FORESEEN];
    double unknown;
} holding;

/* Items whose next use is not known yet meet a new group of `group` batches, each of which uses a share p of all. */
static void foresee(holding *h, double p, uint32_t group)
{
    double left = h->unknown;
    for (uint32_t d = 0; d < group; d++) {
        h->due[d] = left * p;
        left -= h->due[d];
    }
    h->unknown = left;
}

/* Gives up what is used last until at most `slots` stay. */
static void evict(holding *h, double slots, uint32_t next, uint32_t group)
{
    double all = h->unknown;
    for (uint32_t d = next; d < group; d++)
        all += h->due[d];
    for (uint32_t d = group + 1; d-- > next && all > slots;) {
        double *const last = d == group ? &h->unknown : &h->due[d];
        const double gone = GS_MIN(*last, all - slots);
        *last -= gone;
        all -= gone;
    }
}

/* One group; items that it reads. */
static double run_group(holding *h, double uses, double p, double slots, uint32_t group)
{
    double misses = 0;
    foresee(h, p, group);
    for (uint32_t k = 0; k < group; k++) {
        double left = uses;
        misses += uses - GS_MIN(h->due[k], uses);
        h->due[k] = 0;
        for (uint32_t d = k + 1; d < group; d++) {
            h->due[d] += left * p;
            left -= left * p;
        }
        h->unknown += left;
        evict(h, slots, k + 1, group);
    }
    return misses;
}

double gs_group_misses(double uses, double items, double slots, uint32_t group)
{
    const double p = GS_MIN(uses / items, 1);
    holding h = {.unknown = GS_MIN(slots, items)}; /* it fills up in time */
    double misses = 0;

    assert(group > 0 && group <= GS_GROUP_FORESEEN && items > 0);
    for (uint32_t i = 0; i < SETTLING * GS_GROUP_FORESEEN / group; i++)
        misses = run_group(&h, uses, p, slots, group);
    return misses / group;
}
