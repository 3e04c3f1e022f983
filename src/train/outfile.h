/* outfile.h - a result file that appears whole or not at all.
 *
 * Begun before a run, so that a folder that cannot be written to is refused
 * early; bytes go to PATH.tmp, which is renamed over PATH at the end. All
 * functions block; one thread owns an outfile.
 */
#ifndef GS_TRAIN_OUTFILE_H
#define GS_TRAIN_OUTFILE_H

#include "base/status.h"

typedef struct gs_outfile {
    char *path, *temporary; /* owned; NULL: not begun */
    int fd;                 /* of `temporary`, owned; -1: none yet */
} gs_outfile;

#define GS_OUTFILE_NONE {0, 0, -1}

/* Works out the names only; the caller opens `temporary` and sets `fd`. `*o`
 * must be GS_OUTFILE_NONE. GS_ENOMEM. */
gs_status gs_outfile_name(gs_outfile *o, const char *path);
/* The same, and creates `temporary` empty. GS_EIO, GS_ENOTFOUND (no such folder). */
gs_status gs_outfile_begin(gs_outfile *o, const char *path);
/* Syncs, renames, syncs the folder, and leaves `*o` as GS_OUTFILE_NONE. On
 * failure `*o` is as it was and gs_outfile_abandon() is still to be called. */
gs_status gs_outfile_finish(gs_outfile *o);
/* Removes what was written. Does nothing where nothing was begun or all is finished. */
void gs_outfile_abandon(gs_outfile *o);

#endif /* GS_TRAIN_OUTFILE_H */
