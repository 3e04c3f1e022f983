/* effort.h - how long may plans be compared?
 *
 * No longer than an epoch, or 2 seconds where that is shorter: what planning saves is a part of the epochs. It is
 * counted in tasks and not by the clock, so that the same question has the same answer on every machine of the same
 * costs. A task that is listed and simulated takes some 0.5 to 1 us on a core of 2020, one that is counted half of it.
 * Programs of the same model are compared by plans that have a small part of the time each; then the best one has what
 * is left (session/choose.c).
 */
#ifndef GS_SCHEDULE_EFFORT_H
#define GS_SCHEDULE_EFFORT_H

#include <math.h>

#include "base/size.h"
#include "schedule/schedule.h"

#define GS_EFFORT_TASKS 1.0e6 /* a second */
#define GS_EFFORT_SECONDS 2.0
#define GS_EFFORT_SCREENED 12u
#define GS_EFFORT_TAKEN 2u

/* Tasks that may be made for an epoch that is predicted to take `seconds`, for all programs together; */
static inline uint64_t gs_effort_all(double seconds)
{
    return (uint64_t)(GS_EFFORT_TASKS * fmin(fmax(seconds, GS_EFFORT_SECONDS), 1e9));
}

/* and for this one. */
static inline uint64_t gs_effort_most(const gs_schedule_config *c, double seconds)
{
    if (c->effort == NULL || c->cost == NULL)
        return UINT64_MAX;
    const uint64_t most = gs_effort_all(seconds) / (c->effort->screens ? GS_EFFORT_SCREENED : GS_EFFORT_TAKEN);
    return c->effort->most > 0 ? GS_MIN(c->effort->most, most) : most;
}

/* Those that are left of them. */
static inline uint64_t gs_effort_left(const gs_schedule_config *c, double seconds)
{
    const uint64_t most = gs_effort_most(c, seconds);
    return c->effort == NULL ? most : most - GS_MIN(most, c->effort->tasks);
}

/* Of a refusal, for which no epoch is predicted: are so many made that what would do is not looked for more closely? */
static inline bool gs_effort_spent(const gs_schedule_config *c)
{
    return c->effort != NULL && c->effort->tasks >= gs_effort_all(0);
}

/* May another plan like the last one be made? */
static inline bool gs_effort_lasts(const gs_schedule_config *c, double seconds)
{
    return gs_effort_left(c, seconds) > (c->effort == NULL ? 0 : c->effort->last);
}

#endif /* GS_SCHEDULE_EFFORT_H */
