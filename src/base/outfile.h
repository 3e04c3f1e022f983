/* outfile.h - a result file that appears whole or not at all, and never in place of what it must not replace.
 *
 *   (nothing) --begin--> no name --finish--> at its path
 *                           |  \--show----> at its path, still being written --finish-->
 *                           \----abandon--> (nothing)
 *
 * Until it is finished or shown the bytes have no name (O_TMPFILE), so they go away however the process ends; on a file
 * system without such files they stand beside the target under a name that nobody can guess or have made before, and a
 * killed process's are removed by the next output to that folder. What stood at the path is whole until then.
 *
 * A pipe, a terminal, /dev/null, and an open descriptor (/dev/stdout, /dev/fd/N) are written to as they are, from the
 * first byte to the last: an output that is written out of order is refused there.
 *
 * All functions block; one thread owns an output. Errors name the path.
 */
#ifndef GS_BASE_OUTFILE_H
#define GS_BASE_OUTFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/temporary.h"

typedef struct gs_outfile {
    char *path;   /* as the caller gave it; owned; NULL: not begun */
    int fd;       /* open for writing, and reading where it is a file; owned; -1: none */
    int folder;   /* that the file goes to, owned; -1: a stream */
    char temporary[GS_TEMPORARY_BYTES]; /* its name in `folder` until then; "" for none */
    uint64_t bytes;  /* streams: written so far */
    bool shown;
} gs_outfile;

#define GS_OUTFILE_NONE {.fd = -1, .folder = -1}

/* `*o` must be GS_OUTFILE_NONE, and is on failure. Waits some seconds for a pipe's reader.
 *   GS_EEXIST    a folder, a link, a device or a socket is there
 *   GS_ENOTFOUND no such folder
 *   GS_EIO       it cannot be written to; a pipe that nobody reads */
gs_status gs_outfile_begin(gs_outfile *o, const char *path);
/* True for what has no places to write at, only an end. */
bool gs_outfile_is_stream(const gs_outfile *o);
/* Takes `bytes` of disk now, so that a full one shows before hours of work. Does nothing for a stream. */
gs_status gs_outfile_reserve(gs_outfile *o, uint64_t bytes);
/* A stream takes only what follows the last: GS_EUNSUPPORTED. */
gs_status gs_outfile_write(gs_outfile *o, const void *data, uint64_t bytes, uint64_t offset);
/* It ends behind `bytes`, also where more was taken. Does nothing for a stream. */
gs_status gs_outfile_cut(gs_outfile *o, uint64_t bytes);
/* Puts it at its path before it is whole, for those who watch it grow: from then on an abandoned one stays. */
gs_status gs_outfile_show(gs_outfile *o);
/* Syncs, puts it at its path, syncs the folder, and leaves `*o` as GS_OUTFILE_NONE. On failure `*o` is as it was and
 * gs_outfile_abandon() is still to be called. */
gs_status gs_outfile_finish(gs_outfile *o);
/* Removes what was written, but for what was shown or streamed. Does nothing on GS_OUTFILE_NONE, which `*o` then is.
 * Leaves gs_last_error() as it is. */
void gs_outfile_abandon(gs_outfile *o);

/* For tests: outputs as they are on a file system that has no files without a name. */
extern bool gs_outfile__all_named;

/* All of it in one call. */
gs_status gs_file_write_atomic(const char *path, const void *data, uint64_t bytes);

#endif /* GS_BASE_OUTFILE_H */
