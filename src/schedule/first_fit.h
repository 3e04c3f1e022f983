/* first_fit.h - addresses for units that stay in a memory for known times, by first fit in the order of time.
 *
 * Those that are there always come first, then those that stay over the epoch's end, then the others by their first
 * access. Each gets the lowest address at which it meets none of those before it. N of them take O(N log N), and as
 * many steps again as there are places over the epoch's end that a search passes by.
 */
#ifndef GS_SCHEDULE_FIRST_FIT_H
#define GS_SCHEDULE_FIRST_FIT_H

#include <stdint.h>

#include "base/status.h"
#include "schedule/cache.h"

/* A unit at one address from access `from` to access `to`, which may lie in the next epoch (to < from); from == to:
 * always. */
typedef struct gs_cache_stay {
    uint64_t at, bytes;       /* at: what is sought; GS_CACHE_NOWHERE: there was no room */
    uint32_t from, to, until; /* until: its last use is over with this access, `to` or a later one of that epoch */
} gs_cache_stay;

/* Sorts `stay` into the order above and gives each its `at`, beside what is fixed. GS_ENOMEM. */
gs_status gs_first_fit(gs_cache_stay *stay, uint32_t count, uint32_t accesses, uint64_t capacity,
                       const gs_cache_fixed *fixed, uint32_t fixeds);

#endif /* GS_SCHEDULE_FIRST_FIT_H */
