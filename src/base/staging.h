/* staging.h - a folder that is made beside its place and takes it at once: what was there before, or the whole new one.
 *
 *   PLACE                        what others see
 *   PLACE.unfinished.XXXXXXXXXX  the staging folder, of a name that nobody can know beforehand; after
 *                                gs_staging_publish(), for a moment, what was there before
 *   .PLACE.gnnstream-lock        in the same folder while a staging folder is made; its lock, not the file, shows that
 *                                the owner lives, so what a killed one has left is cleared by the next
 *
 * Programs that have files of the old folder open keep them: their bytes stay until they are closed. One thread a
 * staging folder; everything blocks. Errors name the place as it was given.
 */
#ifndef GS_BASE_STAGING_H
#define GS_BASE_STAGING_H

#include <stdbool.h>

#include "base/status.h"

typedef struct gs_staging gs_staging;

typedef struct gs_staging_kind {
    /* Is a file of that name a part of such a folder? Nothing else is ever removed. */
    bool (*owns)(const char *name);
    /* May what is in the folder `place`, which is not empty, be replaced? Else its status, with words. */
    gs_status (*may_replace)(const char *place, bool force);
} gs_staging_kind;

/* Takes the place's lock, clears what killed owners have left, and makes an empty staging folder. GS_EEXIST: another
 * process makes this folder now, a file is there, or may_replace() says so; also of a place that no folder can take (a
 * mount point, the folder that the process is in); GS_EIO, GS_ENOTFOUND, GS_ENOMEM. */
gs_status gs_staging_begin(gs_staging **out, const char *place, const gs_staging_kind *kind, bool force);

/* Where the files go. */
const char *gs_staging_dir(const gs_staging *d);

/* Puts the staging folder into its place, once. Its files must be synced; names are synced here. What of the old folder
 * is not such a folder's (a run may have made a folder in it meanwhile) is moved into the new one. On failure what was
 * there stays. */
gs_status gs_staging_publish(gs_staging *d);

/* Removes what was not published, and the lock. NULL is allowed. Leaves gs_last_error() as it is. */
void gs_staging_close(gs_staging *d);

#endif /* GS_BASE_STAGING_H */
