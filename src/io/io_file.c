/* io_file.c - opening and sizing the files of a gs_io. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "io/io_internal.h"

/* A store's files and a run's own: links are refused by who names them, or were put there meanwhile. */
static int open_flags(gs_io_mode mode)
{
    switch (mode) {
    case GS_IO_CREATE:
        return O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
    case GS_IO_WRITE:
        return O_RDWR | O_NOFOLLOW | O_CLOEXEC;
    case GS_IO_INPUT:
        return O_RDONLY | O_CLOEXEC;
    case GS_IO_READ:
    default:
        return O_RDONLY | O_NOFOLLOW | O_CLOEXEC;
    }
}

static int open_retrying(const char *path, int flags)
{
    int fd;
    do
        fd = open(path, flags, 0644);
    while (fd < 0 && errno == EINTR);
    return fd;
}

gs_status gs_io__file_open(gs_io__file *out, const char *path, gs_io_mode mode, bool buffered)
{
    const int flags = open_flags(mode);
    gs_io__file f = {.fd = -1, .direct = !buffered, .writable = mode == GS_IO_WRITE || mode == GS_IO_CREATE};
    struct stat info;
    gs_status st;

    if ((f.path = gs_strdup(path)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory opening it", path);
    f.fd = open_retrying(path, flags | (f.direct ? O_DIRECT : 0));
    if (f.fd < 0 && f.direct && errno == EINVAL) { /* this file system has no O_DIRECT */
        f.direct = false;
        f.fd = open_retrying(path, flags);
    }
    if (f.fd < 0) {
        st = gs_fail_errno(errno, "%s: cannot be opened for %s", path, f.writable ? "writing" : "reading");
        goto done;
    }
    if (fstat(f.fd, &info) != 0) {
        st = gs_fail_errno(errno, "%s: cannot be examined", path);
        goto done;
    }
    if (!S_ISREG(info.st_mode) && !S_ISBLK(info.st_mode)) {
        st = gs_fail(GS_EINVAL, "%s: is neither a file nor a block device", path);
        goto done;
    }
    *out = f;
    return GS_OK;
done:
    gs_io__file_close(&f);
    return st;
}

void gs_io__file_close(gs_io__file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    gs_free(file->path);
    file->path = NULL;
}

/* Asking for more than there is would first take all that there is, which
 * others may need. */
static bool disk_has(const gs_io__file *file, const struct stat *now, uint64_t bytes)
{
    const uint64_t allocated = (uint64_t)now->st_blocks * 512;
    return bytes <= allocated || bytes - allocated <= gs_disk_free_of(file->fd);
}

/* 0 or an errno. fallocate() allocates blocks, which posix_fallocate() would
 * imitate by writing where a file system cannot; a sparse file serves there. */
static int reserve(int fd, uint64_t bytes)
{
    int r;
    do
        r = fallocate(fd, 0, 0, (off_t)bytes);
    while (r != 0 && errno == EINTR);
    if (r == 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return errno;
    return ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
}

gs_status gs_io__file_set_size(const gs_io__file *file, uint64_t bytes)
{
    char size[32];
    struct stat info;
    int error = 0;

    if (!file->writable)
        return gs_fail(GS_EINVAL, "%s: is open for reading only, its size cannot be set", file->path);
    if (bytes > INT64_MAX)
        return gs_fail(GS_EINVAL, "%s: a file cannot have %llu bytes", file->path, (unsigned long long)bytes);
    if (fstat(file->fd, &info) != 0)
        return gs_fail_errno(errno, "%s: cannot be examined", file->path);
    if (S_ISBLK(info.st_mode))
        return gs_fail(GS_EINVAL, "%s: is a block device, its size cannot be set", file->path);
    if (!disk_has(file, &info, bytes))
        error = ENOSPC;
    else if (bytes > 0)
        error = reserve(file->fd, bytes);
    if (error == 0 && ftruncate(file->fd, (off_t)bytes) != 0)
        error = errno;
    if (error == 0)
        return GS_OK;
    /* A reservation that ran out of space may have grown the file: give that back. */
    if (ftruncate(file->fd, info.st_size) != 0)
        return gs_fail_errno(errno, "%s: cannot be cut back to its size", file->path);
    gs_size_format(size, sizeof(size), bytes);
    if (error == ENOSPC || error == EDQUOT)
        return gs_fail(GS_EIO, "%s: disk full: %s cannot be reserved; free space or choose a folder on another disk",
                       file->path, size);
    return gs_fail_errno(error, "%s: cannot be given a size of %s", file->path, size);
}
