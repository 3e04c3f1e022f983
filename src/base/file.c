#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "base/size.h"

#define CALL_BYTES (1 * GS_GIB) /* Linux moves at most 2^31 - 4096 bytes a call */

static gs_status ends_early(int fd, uint64_t bytes, uint64_t offset, uint64_t reached, const char *path)
{
    struct stat s;
    const uint64_t end = fstat(fd, &s) == 0 ? (uint64_t)s.st_size : reached;
    return gs_fail(GS_EFORMAT, "%s: file ends at byte %lu, but %lu bytes at %lu are needed", path, GS_MIN(end, reached),
                   bytes, offset);
}

static gs_status check_extent(uint64_t bytes, uint64_t offset, const char *path)
{
    uint64_t end;
    if (!gs_add_u64(&end, offset, bytes) || end > INT64_MAX)
        return gs_fail(GS_EINVAL, "%s: %lu bytes at %lu lie beyond what a file can hold", path, bytes, offset);
    return GS_OK;
}

gs_status gs_pread_exact(int fd, void *dst, uint64_t bytes, uint64_t offset, const char *path)
{
    GS_TRY(check_extent(bytes, offset, path));
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t n = pread(fd, (char *)dst + done, GS_MIN(bytes - done, CALL_BYTES), (off_t)(offset + done));
        if (n > 0)
            done += (uint64_t)n;
        else if (n == 0)
            GS_TRY(ends_early(fd, bytes, offset, offset + done, path));
        else if (errno != EINTR)
            return gs_fail_errno(errno, "%s: read of %lu bytes at %lu failed", path, bytes, offset);
    }
    return GS_OK;
}

gs_status gs_pwrite_exact(int fd, const void *src, uint64_t bytes, uint64_t offset, const char *path)
{
    GS_TRY(check_extent(bytes, offset, path));
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t n =
            pwrite(fd, (const char *)src + done, GS_MIN(bytes - done, CALL_BYTES), (off_t)(offset + done));
        if (n > 0)
            done += (uint64_t)n;
        else if (n == 0 || errno != EINTR)
            return gs_fail_errno(n == 0 ? EIO : errno, "%s: write of %lu bytes at %lu failed", path, bytes, offset);
    }
    return GS_OK;
}

/* `flags`: of open(2), more of them. */
static gs_status open_read(int *out, uint64_t *bytes, const char *path, int flags)
{
    /* O_NONBLOCK: opening a pipe would otherwise wait for its writer. */
    GS_CLOSED int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
    struct stat s;

    if (fd < 0 && errno == ELOOP && (flags & O_NOFOLLOW) != 0)
        return gs_fail(GS_EFORMAT, "%s: is a link; put the file itself there", path);
    if (fd < 0)
        return gs_fail_errno(errno, "%s: cannot open", path);
    if (fstat(fd, &s) != 0)
        return gs_fail_errno(errno, "%s: cannot find its size", path);
    if (S_ISDIR(s.st_mode))
        return gs_fail(GS_ENOTFOUND, "%s: is a folder where a file is needed", path);
    if (!S_ISREG(s.st_mode))
        return gs_fail(GS_ENOTFOUND, "%s: is a pipe or a device where a file is needed", path);
    *out = fd;
    *bytes = (uint64_t)s.st_size;
    fd = -1; /* now the caller's */
    return GS_OK;
}

gs_status gs_file_open_read(int *out, uint64_t *bytes, const char *path) { return open_read(out, bytes, path, 0); }

gs_status gs_file_open_own(int *out, uint64_t *bytes, const char *path)
{
    return open_read(out, bytes, path, O_NOFOLLOW);
}

/* Reads up to `cap` bytes from the start; fewer at the end of the file. */
static gs_status read_up_to(uint64_t *got, int fd, char *dst, uint64_t cap, const char *path)
{
    uint64_t done = 0;
    while (done < cap) {
        const ssize_t n = read(fd, dst + done, GS_MIN(cap - done, CALL_BYTES));
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return gs_fail_errno(errno, "%s: read failed", path);
        if (n > 0)
            done += (uint64_t)n;
    }
    *got = done;
    return GS_OK;
}

static gs_status read_whole(char **out, uint64_t *bytes, const char *path, uint64_t limit, int flags)
{
    GS_FREED char *text = NULL;
    uint64_t size = 0, used = 0;
    GS_CLOSED int fd = -1;

    GS_TRY(open_read(&fd, &size, path, flags));
    /* Files of /proc say 0 and have more, so the end is where read() says it is:
     * one byte more than expected is asked for, and doubled while it comes. */
    for (uint64_t cap = GS_MAX(size, 4095);; cap *= 2) {
        uint64_t more = 0;
        if (size > limit || used > limit)
            return gs_fail(GS_EFORMAT, "%s: is larger than the %lu bytes such a file may have", path, limit);
        cap = GS_MIN(cap, limit);
        char *const grown = cap < SIZE_MAX - 2 ? gs_realloc(text, cap + 2) : NULL;
        GS_NEED(grown != NULL, "%s: no memory to read its %lu bytes", path, cap);
        text = grown;
        GS_TRY(read_up_to(&more, fd, text + used, cap + 1 - used, path));
        used += more;
        if (used <= cap)
            break;
    }
    text[used] = '\0';
    *out = text;
    *bytes = used;
    text = NULL; /* now the caller's */
    return GS_OK;
}

gs_status gs_file_read_all(char **out, uint64_t *bytes, const char *path, uint64_t limit)
{
    return read_whole(out, bytes, path, limit, 0);
}

gs_status gs_file_read_own(char **out, uint64_t *bytes, const char *path, uint64_t limit)
{
    return read_whole(out, bytes, path, limit, O_NOFOLLOW);
}

char *gs_path_join(const char *dir, const char *name)
{
    const size_t dir_length = strlen(dir), name_length = strlen(name);
    const bool slash = dir_length > 0 && dir[dir_length - 1] != '/';
    char *const path = gs_malloc(dir_length + slash + name_length + 1);

    if (path == NULL)
        return NULL;
    memcpy(path, dir, dir_length);
    if (slash)
        path[dir_length] = '/';
    memcpy(path + dir_length + slash, name, name_length + 1);
    return path;
}

char *gs_path_without_slashes(const char *path)
{
    char *const own = gs_strdup(path);
    for (size_t n = own == NULL ? 0 : strlen(own); n > 1 && own[n - 1] == '/'; n--)
        own[n - 1] = '\0';
    return own;
}

bool gs_path_exists(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0;
}

bool gs_path_has(const char *dir, const char *name)
{
    char path[PATH_MAX]; /* longer ones have no file */
    const int n = snprintf(path, sizeof(path), "%s/%s", dir, name);
    return n > 0 && (size_t)n < sizeof(path) && gs_path_exists(path);
}

bool gs_path_is_absent(const char *path)
{
    struct stat s;
    return lstat(path, &s) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

bool gs_path_is_dir(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

bool gs_stat_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool gs_path_is_same(const char *a, const char *b)
{
    struct stat s[2];
    return stat(a, &s[0]) == 0 && stat(b, &s[1]) == 0 && gs_stat_is_same(&s[0], &s[1]);
}

bool gs_path_shares_disk(const char *a, const char *b)
{
    struct stat s[2];
    return stat(a, &s[0]) == 0 && stat(b, &s[1]) == 0 && s[0].st_dev == s[1].st_dev;
}

bool gs_path_is_open_at(const char *path, int fd)
{
    struct stat now, then;
    return stat(path, &now) == 0 && fstat(fd, &then) == 0 && gs_stat_is_same(&now, &then);
}

/* Without what is kept for the superuser; some file systems do not tell. */
static uint64_t bytes_left(const struct statvfs *v)
{
    return v->f_blocks == 0 ? UINT64_MAX : (uint64_t)v->f_bavail * v->f_frsize;
}

uint64_t gs_disk_free(const char *dir)
{
    struct statvfs v;
    return statvfs(dir, &v) != 0 ? UINT64_MAX : bytes_left(&v);
}

uint64_t gs_disk_free_of(int fd)
{
    struct statvfs v;
    return fstatvfs(fd, &v) != 0 ? UINT64_MAX : bytes_left(&v);
}

gs_status gs_folder_sync(int fd, const char *path)
{
    /* EINVAL: the file system cannot sync folders; nothing more can be done. */
    return fsync(fd) != 0 && errno != EINVAL ? gs_fail_errno(errno, "%s: sync failed", path) : GS_OK;
}

gs_status gs_mkdir(const char *path)
{
    struct stat there;
    int err = EEXIST;

    /* Another run may remove the folder between the two calls: then it is made again. */
    for (int tries = 0; err == EEXIST && tries < 100; tries++) {
        if (mkdir(path, 0777) == 0)
            return GS_OK;
        err = errno;
        if (err == EEXIST && stat(path, &there) == 0) {
            if (S_ISDIR(there.st_mode))
                return GS_OK;
            break;
        }
    }
    if (err == EEXIST)
        return gs_fail(GS_EEXIST, "%s: is a file where a folder is needed", path);
    return gs_fail_errno(err, "%s: cannot make the folder", path);
}

static gs_status remove_inside(int fd, const char *path);

/* Removes one entry of the folder open at `parent`. `path` is the tree's, for messages. */
static gs_status remove_entry(int parent, const char *name, const char *path)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return GS_OK;
    if (errno != EISDIR && errno != EPERM) /* POSIX says EPERM, Linux EISDIR for a folder */
        return gs_fail_errno(errno, "%s: cannot remove \"%s\" in it", path, name);

    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return gs_fail_errno(errno, "%s: cannot open \"%s\" in it", path, name);
    const gs_status st = remove_inside(fd, path);
    if (st == GS_OK && unlinkat(parent, name, AT_REMOVEDIR) != 0)
        return gs_fail_errno(errno, "%s: cannot remove \"%s\" in it", path, name);
    return st;
}

/* Empties the folder `fd` and closes it. */
static gs_status remove_inside(int fd, const char *path)
{
    GS_ENDS(gs_closedir_at) DIR *const dir = fdopendir(fd);
    const struct dirent *entry;
    gs_status st = GS_OK;

    if (dir == NULL) {
        st = gs_fail_errno(errno, "%s: cannot list", path);
        close(fd);
        return st;
    }
    while (st == GS_OK && (errno = 0, entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            st = remove_entry(fd, entry->d_name, path);
    if (st == GS_OK && errno != 0)
        st = gs_fail_errno(errno, "%s: cannot list", path);
    return st;
}

gs_status gs_remove_tree(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return GS_OK;
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return gs_fail(GS_EINVAL, "%s: is not a folder, so it is not removed", path);
    if (fd < 0)
        return gs_fail_errno(errno, "%s: cannot open", path);
    const gs_status st = remove_inside(fd, path);
    if (st == GS_OK && rmdir(path) != 0)
        return gs_fail_errno(errno, "%s: cannot remove", path);
    return st;
}

/* ---- which file a path means ------------------------------------------- */

#define MOST_FOLDERS 4096 /* above a file: more than a path can name */

char *gs_path_folder(const char *path)
{
    const char *const slash = strrchr(path, '/');
    char *const folder = gs_strdup(slash == NULL ? "." : path);

    if (folder != NULL && slash != NULL)
        folder[slash == path ? 1 : slash - path] = '\0';
    return folder;
}

const char *gs_path_name(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

gs_file_identity gs_file_identity_of(const char *path)
{
    gs_file_identity p = {.name = gs_path_name(path)};
    GS_FREED char *const folder = gs_path_folder(path);
    struct stat sb;

    if (stat(path, &sb) == 0) {
        const unsigned k = minor(sb.st_rdev);
        p.there = true;
        p.sink = S_ISCHR(sb.st_mode) && major(sb.st_rdev) == 1 && (k == 3 || k == 5 || k == 7); /* null, zero, full */
        p.device = sb.st_dev;
        p.inode = sb.st_ino;
    }
    if (folder != NULL && stat(folder, &sb) == 0) {
        p.folder_there = true;
        p.folder_device = sb.st_dev;
        p.folder_inode = sb.st_ino;
    }
    return p;
}

bool gs_file_identity_is_same(const gs_file_identity *a, const gs_file_identity *b)
{
    if (a->there && b->there && a->device == b->device && a->inode == b->inode)
        return true;
    return a->folder_there && b->folder_there && a->folder_device == b->folder_device &&
           a->folder_inode == b->folder_inode && strcmp(a->name, b->name) == 0;
}

gs_status gs_path_climb(bool *found, const char *path, bool (*visit)(void *context, const char *dir), void *context)
{
    GS_FREED char *dir = gs_path_folder(path);
    struct stat here, last = {0};

    *found = false;
    for (uint32_t k = 0; dir != NULL && k < MOST_FOLDERS && stat(dir, &here) == 0; k++) {
        if (k > 0 && gs_stat_is_same(&here, &last))
            break; /* the root is in itself */
        if ((*found = visit(context, dir)))
            break;
        char *const above = gs_path_join(dir, "..");
        gs_free(dir);
        dir = above;
        last = here;
    }
    return dir != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: out of memory", path);
}
