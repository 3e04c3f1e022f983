#include "train/checkpoint_pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHARE 0.01      /* of the time, as planned */
#define SHARE_MOST 0.02 /* at the end of the run, after which nothing is lost any more by waiting */
#define LEAST_SECONDS 30.0
#define GUESS_SECONDS 0.1 /* of the first one: several syncs, */
#define GUESS_BPS 100e6   /* and a slow disk */

gs_status gs_checkpoint_pace_parse(gs_checkpoint_pace *out, const char *text)
{
    static const char units[] = "smh";
    static const double seconds[] = {1, 60, 3600};
    char *end;

    *out = (gs_checkpoint_pace){0};
    if (text == NULL)
        return GS_OK;
    const double v = strtod(text, &end);
    const char *const unit = *end != '\0' && end[1] == '\0' ? strchr(units, *end) : NULL;
    if (*text >= '0' && *text <= '9' && end != text && isfinite(v) && v > 0) {
        if (*end == '\0' && v == floor(v) && v <= UINT32_MAX) {
            out->epochs = (uint32_t)v;
            return GS_OK;
        }
        if (unit != NULL) {
            out->seconds = v * seconds[unit - units];
            return GS_OK;
        }
    }
    return gs_fail(GS_EINVAL, ".checkpoint_every %s: must be a number of epochs, or a time such as 90s, 10m or 1h",
                   text);
}

void gs_checkpoint_pace_begin(gs_checkpoint_pace *p, double now, uint64_t bytes)
{
    p->began = p->last = now;
    p->guess = GUESS_SECONDS + (double)bytes / GUESS_BPS;
    p->spent = 0;
}

bool gs_checkpoint_is_due(const gs_checkpoint_pace *p, uint32_t epoch, double now, bool last)
{
    if (p->epochs != 0)
        return epoch % p->epochs == 0;
    if (p->seconds > 0)
        return now - p->last >= p->seconds;
    if (last)
        return p->spent + p->guess <= SHARE_MOST * (now - p->began);
    return now - p->last >= LEAST_SECONDS && p->spent + p->guess <= SHARE * (now - p->began);
}

void gs_checkpoint_took(gs_checkpoint_pace *p, double from, double to)
{
    p->last = to;
    p->spent += to - from;
    p->guess = to - from;
}
