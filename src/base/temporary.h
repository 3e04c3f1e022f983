/* temporary.h - which names may a process use for what it makes and removes, and what did a killed one leave behind?
 *
 * Names are random and made exclusively, so no two processes meet in one, whatever machine, container or namespace of
 * process numbers they are in. Whoever made something holds a lock on it (flock(2)), which the kernel drops however the
 * process ends: what nobody holds is a leftover, and the next who works in that folder removes it. Where a file system
 * has no locks nothing is taken for a leftover.
 *
 *   file    ".gnnstream.0123456789abcdef", locked itself
 *   folder  "spill.0123456789abcdef", in which the file "owner" is locked
 *
 * All functions block; errors name the path.
 */
#ifndef GS_BASE_TEMPORARY_H
#define GS_BASE_TEMPORARY_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/status.h"

#define GS_TEMPORARY_BYTES 32 /* any name, with its 0 */

/* True of names as this header gives them. */
bool gs_is_temporary(const char *name);

/* "PREFIX.0123456789abcdef", random; for those who make it exclusively themselves. `prefix` has at most 12 bytes. */
void gs_temporary_name(char out[GS_TEMPORARY_BYTES], const char *prefix);

/* Makes an empty file with such a name, open for reading and writing and locked, in the folder open at `folder`.
 * `path` is for messages. */
gs_status gs_temporary_file(int *fd, char name[GS_TEMPORARY_BYTES], int folder, const char *path);

/* Makes an empty file without a name in `dir`, open for reading and writing: it goes away however the process ends. */
gs_status gs_unnamed_file(int *fd, const char *dir);
/* The same; *path, of `name`, is for messages and the caller's, on failure too. */
gs_status gs_unnamed_file_called(int *fd, char **path, const char *dir, const char *name);

/* A folder for what does not fit in memory. */
typedef struct gs_scratch {
    char *path;       /* owned; NULL: none, and the others say nothing */
    char *made;       /* the folder that it is in, where that was made too; owned; NULL: it was there */
    int lock;         /* of the file "owner", owned */
} gs_scratch;

/* Makes one in `parent`, which is made where it is missing; first removes leftovers there. On failure nothing stays. */
gs_status gs_scratch_make(gs_scratch *s, const char *parent);
/* Removes it with the files in it, and `parent` where that was made and nothing else is in it. Zeroes `*s`; does
 * nothing where it is zero. */
void gs_scratch_remove(gs_scratch *s);

/* Removes leftovers in `dir`. `alive`: the name of one that is in use, or "". A folder that cannot be listed has
 * none. */
void gs_temporary_sweep(const char *dir, char alive[GS_TEMPORARY_BYTES]);

/* -- a folder that is made beside its place and takes it at once: what was there before, or the whole new one.
 *
 *   PLACE                              what others see
 *   PLACE.unfinished.0123456789abcdef  the staging folder; after gs_staging_publish(), for a moment, what was there
 *                                      before
 *   .PLACE.gnnstream-lock              in the same folder while a staging folder is made; its lock, not the file, shows
 *                                      that the owner lives, so what a killed one has left is cleared by the next
 *
 * Programs that have files of the old folder open keep them: their bytes stay until they are closed. One thread a
 * staging folder; everything blocks. Errors name the place as it was given.
 */

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
GS_ENDS_BY(gs_staging, gs_staging_close)

#endif /* GS_BASE_TEMPORARY_H */
