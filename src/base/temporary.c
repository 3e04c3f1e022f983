#include "base/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

#define FILE_PREFIX ".gnnstream"
#define FOLDER_PREFIX "spill"
#define DIGITS 16
#define OWNER "owner" /* the file whose lock shows that a folder is in use */
#define TRIES 100     /* each fails only where another removed what was made just now */

/* ---- names --------------------------------------------------------------- */

static uint64_t random_bits(void)
{
    uint64_t bits;
    struct timespec t;
    ssize_t n;

    while ((n = getrandom(&bits, sizeof(bits), 0)) < 0 && errno == EINTR)
        continue;
    if (n == (ssize_t)sizeof(bits))
        return bits;
    clock_gettime(CLOCK_REALTIME, &t); /* no such call: names are made exclusively, so a clash costs only another try */
    return ((uint64_t)t.tv_nsec << 32 ^ (uint64_t)t.tv_sec ^ (uint64_t)getpid() << 20) * 0x9E3779B97F4A7C15ull;
}

void gs_temporary_name(char out[GS_TEMPORARY_BYTES], const char *prefix)
{
    snprintf(out, GS_TEMPORARY_BYTES, "%.12s.%0*" PRIx64, prefix, DIGITS, random_bits());
}

static bool has_form(const char *name, const char *prefix)
{
    const size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 && name[n] == '.' && strlen(name + n + 1) == DIGITS &&
           strspn(name + n + 1, "0123456789abcdef") == DIGITS;
}

bool gs_is_temporary(const char *name)
{
    return has_form(name, FILE_PREFIX) || has_form(name, FOLDER_PREFIX);
}

/* ---- locks --------------------------------------------------------------- */

typedef enum lock_state { LOCK_OURS, LOCK_THEIRS, LOCK_UNKNOWN } lock_state;

/* UNKNOWN: this file system has no locks. */
static lock_state try_lock(int fd)
{
    int r;
    while ((r = flock(fd, LOCK_EX | LOCK_NB)) != 0 && errno == EINTR)
        continue;
    return r == 0 ? LOCK_OURS : errno == EWOULDBLOCK ? LOCK_THEIRS : LOCK_UNKNOWN;
}

/* Between its making and its lock, a sweep may have taken a file for a leftover. */
static bool keeps_name(int fd, int folder, const char *name)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* Makes `name` in `folder` and locks it. 0, or an errno: EAGAIN where another removed it. */
static int make_locked(int *out, int folder, const char *name, mode_t mode)
{
    int fd;

    while ((fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)) < 0 && errno == EINTR)
        continue;
    if (fd < 0)
        return errno;
    if (try_lock(fd) == LOCK_THEIRS || !keeps_name(fd, folder, name)) {
        close(fd);
        return EAGAIN;
    }
    *out = fd;
    return 0;
}

gs_status gs_temporary_file(int *fd, char name[GS_TEMPORARY_BYTES], int folder, const char *path)
{
    int err = EAGAIN;

    for (int tries = 0; tries < TRIES && (err == EAGAIN || err == EEXIST); tries++) {
        gs_temporary_name(name, FILE_PREFIX);
        err = make_locked(fd, folder, name, 0666);
    }
    return err == 0 ? GS_OK : gs_fail_errno(err, "%s: cannot create", path);
}

gs_status gs_unnamed_file(int *out, const char *dir)
{
    char name[GS_TEMPORARY_BYTES];
    gs_status st;
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0) { /* no such files here: one whose name goes at once */
        const int folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
            return gs_fail_errno(errno, "%s: cannot make a file in it", dir);
        st = gs_temporary_file(&fd, name, folder, dir);
        if (st == GS_OK && unlinkat(folder, name, 0) != 0) { /* else it would stay for good */
            st = gs_fail_errno(errno, "%s/%s: cannot take the name from this temporary file", dir, name);
            close(fd);
        }
        close(folder);
        if (st != GS_OK)
            return st;
    }
    *out = fd;
    return GS_OK;
}

gs_status gs_unnamed_file_called(int *fd, char **path, const char *dir, const char *name)
{
    if ((*path = gs_path_join(dir, name)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a temporary file", dir);
    return gs_unnamed_file(fd, dir);
}

/* ---- leftovers ----------------------------------------------------------- */

/* Empties the folder `fd` of files, but for OWNER: that goes last, so that a sweep that is killed can be repeated. */
static void empty_folder(int fd)
{
    const int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const dir = own < 0 ? NULL : fdopendir(own);

    if (dir == NULL) {
        if (own >= 0)
            close(own);
        return;
    }
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && strcmp(e->d_name, OWNER) != 0)
            (void)unlinkat(fd, e->d_name, 0);
    closedir(dir);
    (void)unlinkat(fd, OWNER, 0);
}

/* True where somebody may still use it. */
static bool sweep_folder(int parent, const char *name)
{
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool used = false;

    if (fd < 0)
        return errno != ENOENT && errno != ENOTDIR && errno != ELOOP;
    const int lock = openat(fd, OWNER, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (lock >= 0) {
        used = try_lock(lock) != LOCK_OURS;
        if (!used)
            empty_folder(fd);
        close(lock);
    } else {
        used = errno != ENOENT; /* without one it is only just made, or just emptied: goes if nothing is in it */
    }
    close(fd);
    if (!used)
        (void)unlinkat(parent, name, AT_REMOVEDIR);
    return used;
}

static bool sweep_file(int parent, const char *name)
{
    const int fd = openat(parent, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool used;

    if (fd < 0)
        return errno != ENOENT && errno != ELOOP;
    used = try_lock(fd) != LOCK_OURS;
    if (!used && keeps_name(fd, parent, name))
        (void)unlinkat(parent, name, 0);
    close(fd);
    return used;
}

void gs_temporary_sweep(const char *dir, char alive[GS_TEMPORARY_BYTES])
{
    DIR *const d = opendir(dir);

    alive[0] = '\0';
    if (d == NULL)
        return;
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if ((has_form(e->d_name, FOLDER_PREFIX) && sweep_folder(dirfd(d), e->d_name)) ||
            (has_form(e->d_name, FILE_PREFIX) && sweep_file(dirfd(d), e->d_name)))
            snprintf(alive, GS_TEMPORARY_BYTES, "%.*s", GS_TEMPORARY_BYTES - 1, e->d_name);
    closedir(d);
}

/* ---- a folder ------------------------------------------------------------ */

/* 0, or an errno: EAGAIN and EEXIST are worth another try. */
static int try_folder(gs_scratch *s, const char *parent)
{
    char name[GS_TEMPORARY_BYTES];
    int fd, err;

    gs_temporary_name(name, FOLDER_PREFIX);
    gs_free(s->path);
    if ((s->path = gs_path_join(parent, name)) == NULL)
        return ENOMEM;
    if (mkdir(s->path, 0700) != 0)
        return errno;
    if ((fd = open(s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return errno == ENOENT ? EAGAIN : errno; /* a sweep took it for an empty leftover */
    err = make_locked(&s->lock, fd, OWNER, 0600);
    close(fd);
    if (err != 0)
        (void)rmdir(s->path);
    return err == ENOENT ? EAGAIN : err;
}

/* Another run that made `parent` removes it at its end: so each try makes it where it is missing. */
static gs_status make_parent(gs_scratch *s, const char *parent)
{
    const bool there = gs_path_exists(parent);
    const gs_status st = gs_mkdir(parent);

    if (st == GS_OK && !there && s->made == NULL && (s->made = gs_strdup(parent)) == NULL) {
        (void)rmdir(parent);
        return gs_fail(GS_ENOMEM, "%s: out of memory", parent);
    }
    return st;
}

gs_status gs_scratch_make(gs_scratch *s, const char *parent)
{
    gs_scratch made = {0};
    char alive[GS_TEMPORARY_BYTES];
    int err = EAGAIN;
    gs_status st = GS_OK;

    gs_temporary_sweep(parent, alive);
    for (int tries = 0; tries < TRIES && st == GS_OK && (err == EAGAIN || err == EEXIST || err == ENOENT); tries++)
        if ((st = make_parent(&made, parent)) == GS_OK)
            err = try_folder(&made, parent);
    if (st == GS_OK && err == 0) {
        *s = made;
        return GS_OK;
    }
    if (st == GS_OK)
        st = gs_fail_errno(err, "%s: cannot make a folder in it", parent);
    gs_free(made.path);
    if (made.made != NULL)
        (void)rmdir(made.made);
    gs_free(made.made);
    return st;
}

void gs_scratch_remove(gs_scratch *s)
{
    if (s->path == NULL)
        return;
    const int fd = open(s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        empty_folder(fd);
        close(fd);
    }
    (void)rmdir(s->path);
    if (s->made != NULL)
        (void)rmdir(s->made); /* fails, as it should, where something else is inside */
    close(s->lock); /* last: until now nobody takes it for a leftover */
    gs_free(s->path);
    gs_free(s->made);
    *s = (gs_scratch){0};
}
