#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/size.h"

#define READER_SECONDS 5.0 /* for the reader of a pipe to come: it may be started a moment later */

bool gs_outfile__all_named = false;

bool gs_outfile_is_stream(const gs_outfile *o) { return o->folder < 0; }

/* ---- streams ------------------------------------------------------------- */

/* The descriptor that a path means: 1 for /dev/stdout; -1 for none. Opening such a path anew would begin at byte 0 of a
 * file that is written to already. */
static int descriptor_of(const char *path)
{
    static const struct {
        const char *path;
        int fd;
    } names[] = {{"/dev/stdin", 0}, {"/dev/stdout", 1}, {"/dev/stderr", 2}};
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

    for (size_t i = 0; i < GS_ARRAY_LEN(names); i++)
        if (strcmp(path, names[i].path) == 0)
            return names[i].fd;
    for (size_t i = 0; i < GS_ARRAY_LEN(folders); i++) {
        const size_t n = strlen(folders[i]), digits = strncmp(path, folders[i], n) == 0 ? strlen(path + n) : 0;
        int fd = 0;
        if (digits == 0 || digits > 6 || strspn(path + n, "0123456789") != digits)
            continue;
        for (size_t k = 0; k < digits; k++)
            fd = 10 * fd + (path[n + k] - '0');
        return fd;
    }
    return -1;
}

static gs_status take_descriptor(gs_outfile *o, int number)
{
    struct stat sb;
    const int flags = fcntl(number, F_GETFL), mode = flags & O_ACCMODE;

    if (flags < 0)
        return gs_fail_errno(errno, "%s: cannot write to it", o->path);
    if ((mode != O_WRONLY && mode != O_RDWR) || fstat(number, &sb) != 0 || S_ISDIR(sb.st_mode))
        return gs_fail(GS_EIO, "%s: is not open for writing", o->path);
    if ((o->fd = fcntl(number, F_DUPFD_CLOEXEC, 3)) < 0)
        return gs_fail_errno(errno, "%s: cannot write to it", o->path);
    return GS_OK;
}

static gs_status not_a_file(const char *path, const char *what)
{
    return gs_fail(GS_EEXIST, "%s: is a %s; give the name of a file", path, what);
}

/* A pipe without a reader cannot be opened for writing (ENXIO) unless one waits, perhaps for ever. */
static gs_status open_pipe(gs_outfile *o)
{
    const double began = gs_now();

    while ((o->fd = open(o->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0 &&
           (errno == EINTR || (errno == ENXIO && gs_now() - began < READER_SECONDS)))
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    if (o->fd < 0 && errno == ENXIO)
        return gs_fail(GS_EIO, "%s: is a pipe that nobody reads; start its reader first", o->path);
    if (o->fd < 0)
        return gs_fail_errno(errno, "%s: cannot write to it", o->path);
    const int flags = fcntl(o->fd, F_GETFL);
    if (flags < 0 || fcntl(o->fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
        return gs_fail_errno(errno, "%s: cannot write to it", o->path);
    return GS_OK;
}

/* Takes a path at which something other than a regular file stands. */
static gs_status take_stream(gs_outfile *o, const struct stat *sb)
{
    if (S_ISFIFO(sb->st_mode))
        return open_pipe(o);
    if (!S_ISCHR(sb->st_mode))
        return not_a_file(o->path, S_ISDIR(sb->st_mode)    ? "folder"
                                   : S_ISSOCK(sb->st_mode) ? "socket"
                                   : S_ISLNK(sb->st_mode)  ? "link"
                                                           : "device");
    if ((o->fd = open(o->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0)
        return gs_fail_errno(errno, "%s: cannot write to it", o->path);
    if (!gs_file_identity_of(o->path).sink && !isatty(o->fd))
        return not_a_file(o->path, "device");
    (void)fcntl(o->fd, F_SETFL, O_WRONLY);
    return GS_OK;
}

/* ---- files --------------------------------------------------------------- */

static gs_status open_folder(gs_outfile *o)
{
    char *const folder = gs_path_folder(o->path);

    GS_NEED(folder != NULL, "%s: out of memory", o->path);
    o->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC); /* needs no right to list it */
    const int err = errno;
    gs_free(folder);
    return o->folder >= 0 ? GS_OK : gs_fail_errno(err, "%s: cannot create", o->path);
}

static void descriptor_path(char out[40], int fd) { snprintf(out, 40, "/proc/self/fd/%d", fd); }

/* Where the system has it, and where it can be given a name later: for that, /proc is needed. */
static bool open_unnamed(gs_outfile *o)
{
    char proc[40];

    if (gs_outfile__all_named ||
        (o->fd = openat(o->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666)) < 0)
        return false;
    descriptor_path(proc, o->fd);
    if (gs_path_exists(proc))
        return true;
    close(o->fd);
    o->fd = -1;
    return false;
}

static gs_status open_file(gs_outfile *o)
{
    char *folder, alive[GS_TEMPORARY_BYTES];

    if (open_unnamed(o))
        return GS_OK;
    if ((folder = gs_path_folder(o->path)) != NULL)
        gs_temporary_sweep(folder, alive);
    gs_free(folder);
    return gs_temporary_file(&o->fd, o->temporary, o->folder, o->path);
}

static gs_status begin(gs_outfile *o)
{
    const int number = descriptor_of(o->path);
    const char *const name = gs_path_name(o->path);
    struct stat sb, behind;

    if (number >= 0)
        return take_descriptor(o, number);
    if (o->path[0] == '\0')
        return gs_fail(GS_EINVAL, "\"\" names no file to write; give the name of one");
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return not_a_file(o->path, "folder");
    const bool there = lstat(o->path, &sb) == 0;
    if (!there && errno != ENOENT)
        return gs_fail_errno(errno, "%s: cannot create", o->path);
    if (there && !S_ISREG(sb.st_mode)) {
        const bool link = S_ISLNK(sb.st_mode);
        if (link && stat(o->path, &behind) == 0 && (S_ISFIFO(behind.st_mode) || S_ISCHR(behind.st_mode)))
            sb = behind;
        return take_stream(o, &sb);
    }
    GS_TRY(open_folder(o));
    return open_file(o);
}

gs_status gs_outfile_begin(gs_outfile *o, const char *path)
{
    gs_outfile own = GS_OUTFILE_NONE;
    gs_status st;

    GS_NEED((own.path = gs_strdup(path)) != NULL, "%s: out of memory", path);
    if ((st = begin(&own)) != GS_OK) {
        gs_outfile_abandon(&own);
        return st;
    }
    *o = own;
    return GS_OK;
}

gs_status gs_outfile_reserve(gs_outfile *o, uint64_t bytes)
{
    int err = 0;

    if (gs_outfile_is_stream(o) || bytes == 0)
        return GS_OK;
    if (bytes > INT64_MAX)
        return gs_fail(GS_EINVAL, "%s: %lu bytes are beyond what a file can hold", o->path, bytes);
    while (fallocate(o->fd, 0, 0, (off_t)bytes) != 0 && (err = errno) == EINTR)
        err = 0;
    if (err == EOPNOTSUPP || err == ENOSYS) /* no such call on this file system: its size, at least */
        err = ftruncate(o->fd, (off_t)bytes) != 0 ? errno : 0;
    return err == 0 ? GS_OK : gs_fail_errno(err, "%s: cannot take %lu bytes of disk", o->path, bytes);
}

gs_status gs_outfile_cut(gs_outfile *o, uint64_t bytes)
{
    if (gs_outfile_is_stream(o) || ftruncate(o->fd, (off_t)bytes) == 0)
        return GS_OK;
    return gs_fail_errno(errno, "%s: cannot end it behind %lu bytes", o->path, bytes);
}

gs_status gs_outfile_write(gs_outfile *o, const void *data, uint64_t bytes, uint64_t offset)
{
    if (!gs_outfile_is_stream(o))
        return gs_pwrite_exact(o->fd, data, bytes, offset, o->path);
    if (offset != o->bytes)
        return gs_fail(GS_EUNSUPPORTED, "%s: is written out of order, which only a file can be; give the name of one",
                       o->path);
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t n = write(o->fd, (const char *)data + done, GS_MIN(bytes - done, GS_GIB));
        if (n > 0)
            done += (uint64_t)n;
        else if (n == 0 || errno != EINTR)
            return gs_fail_errno(n == 0 ? EIO : errno, "%s: cannot write", o->path);
    }
    o->bytes += bytes;
    return GS_OK;
}

/* ---- the end ------------------------------------------------------------- */

/* Gives it a name that nobody has. 0 or an errno. */
static int name_it(gs_outfile *o)
{
    char proc[40];
    int r;

    if (o->temporary[0] != '\0')
        return 0;
    descriptor_path(proc, o->fd);
    do {
        gs_temporary_name(o->temporary, ".gnnstream");
        r = linkat(AT_FDCWD, proc, o->folder, o->temporary, AT_SYMLINK_FOLLOW);
    } while (r != 0 && errno == EEXIST);
    if (r != 0)
        o->temporary[0] = '\0';
    return r != 0 ? errno : 0;
}

/* A rename lasts once its folder is on disk. A folder that cannot be opened for this (no right to list it) does not
 * make the file less whole, and a file system that cannot sync folders (EINVAL) has nothing more to offer. */
static void sync_folder(const gs_outfile *o)
{
    GS_CLOSED const int fd = openat(o->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        (void)fsync(fd);
}

gs_status gs_outfile_show(gs_outfile *o)
{
    int err;

    if (gs_outfile_is_stream(o) || o->shown)
        return GS_OK;
    if ((err = name_it(o)) != 0)
        return gs_fail_errno(err, "%s: cannot be put in its place", o->path);
    if (renameat(o->folder, o->temporary, o->folder, gs_path_name(o->path)) != 0)
        return gs_fail_errno(errno, "%s: cannot be put in its place", o->path);
    o->temporary[0] = '\0';
    o->shown = true;
    return GS_OK;
}

static void release(gs_outfile *o)
{
    if (o->path == NULL)
        return;
    if (o->fd >= 0)
        close(o->fd);
    if (o->folder >= 0)
        close(o->folder);
    gs_free(o->path);
    *o = (gs_outfile)GS_OUTFILE_NONE;
}

gs_status gs_outfile_finish(gs_outfile *o)
{
    if (!gs_outfile_is_stream(o)) {
        if (fsync(o->fd) != 0)
            return gs_fail_errno(errno, "%s: cannot write", o->path);
        GS_TRY(gs_outfile_show(o));
        sync_folder(o);
    }
    const int fd = o->fd;
    o->fd = -1;
    if (close(fd) != 0 && errno != EINTR) /* some file systems say only here that a write failed */
        return gs_fail_errno(errno, "%s: cannot write", o->path);
    release(o);
    return GS_OK;
}

void gs_outfile_abandon(gs_outfile *o)
{
    if (o->path != NULL && o->temporary[0] != '\0')
        (void)unlinkat(o->folder, o->temporary, 0);
    release(o);
}

gs_status gs_file_write_atomic(const char *path, const void *data, uint64_t bytes)
{
    GS_ENDS(gs_outfile_abandon) gs_outfile o = GS_OUTFILE_NONE;

    GS_TRY(gs_outfile_begin(&o, path));
    GS_TRY(gs_outfile_write(&o, data, bytes, 0));
    return gs_outfile_finish(&o);
}
