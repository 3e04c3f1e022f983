#include "train/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

gs_status gs_outfile_name(gs_outfile *o, const char *path)
{
    const size_t room = strlen(path) + sizeof(".tmp");
    char *const own = gs_strdup(path), *const temporary = gs_malloc(room);

    if (own == NULL || temporary == NULL) {
        gs_free(own);
        gs_free(temporary);
        return gs_fail(GS_ENOMEM, "%s: out of memory", path);
    }
    snprintf(temporary, room, "%s.tmp", path);
    *o = (gs_outfile){.path = own, .temporary = temporary, .fd = -1};
    return GS_OK;
}

gs_status gs_outfile_begin(gs_outfile *o, const char *path)
{
    gs_status st;

    if (gs_path_is_dir(path))
        return gs_fail(GS_EEXIST, "%s: is a folder; give the name of a file", path);
    if ((st = gs_outfile_name(o, path)) != GS_OK)
        return st;
    o->fd = open(o->temporary, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0666);
    if (o->fd < 0) {
        st = gs_fail_errno(errno, "%s: cannot create", o->temporary);
        gs_outfile_abandon(o);
    }
    return st;
}

/* A rename lasts once its folder is on disk. A folder that cannot be opened
 * for this (no read permission) does not make the file less whole. */
static void sync_folder_of(const char *path)
{
    const char *const slash = strrchr(path, '/');
    char *folder = slash == NULL ? gs_strdup(".") : gs_strdup(path);
    int fd;

    if (folder == NULL)
        return;
    if (slash != NULL)
        folder[slash == path ? 1 : slash - path] = '\0';
    if ((fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    gs_free(folder);
}

gs_status gs_outfile_finish(gs_outfile *o)
{
    if (fsync(o->fd) != 0)
        return gs_fail_errno(errno, "%s: cannot write", o->temporary);
    if (rename(o->temporary, o->path) != 0)
        return gs_fail_errno(errno, "%s: cannot rename to %s", o->temporary, o->path);
    sync_folder_of(o->path);
    close(o->fd);
    gs_free(o->temporary);
    gs_free(o->path);
    *o = (gs_outfile)GS_OUTFILE_NONE;
    return GS_OK;
}

void gs_outfile_abandon(gs_outfile *o)
{
    if (o->fd >= 0) {
        close(o->fd);
        unlink(o->temporary);
    }
    gs_free(o->temporary);
    gs_free(o->path);
    *o = (gs_outfile)GS_OUTFILE_NONE;
}
