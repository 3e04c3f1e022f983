#include "base/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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
#define STAGING_PREFIX "unfinished"
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
    snprintf(out, GS_TEMPORARY_BYTES, "%.12s.%0*lx", prefix, DIGITS, random_bits());
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
           gs_stat_is_same(&ours, &there);
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
    GS_CLOSED int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0) { /* no such files here: one whose name goes at once */
        GS_CLOSED const int folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
            return gs_fail_errno(errno, "%s: cannot make a file in it", dir);
        GS_TRY(gs_temporary_file(&fd, name, folder, dir));
        if (unlinkat(folder, name, 0) != 0) /* else it would stay for good */
            return gs_fail_errno(errno, "%s/%s: cannot take the name from this temporary file", dir, name);
    }
    *out = fd;
    fd = -1;
    return GS_OK;
}

gs_status gs_unnamed_file_called(int *fd, char **path, const char *dir, const char *name)
{
    GS_NEED((*path = gs_path_join(dir, name)) != NULL, "%s: no memory for a temporary file", dir);
    return gs_unnamed_file(fd, dir);
}

/* ---- leftovers ----------------------------------------------------------- */

static bool is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* The folder `name` of the folder open at `parent`, to be listed; NULL where it cannot be. */
static DIR *open_folder(int parent, const char *name)
{
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *const dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir == NULL && fd >= 0)
        close(fd);
    return dir;
}

/* Empties the folder `fd` of files, but for OWNER: that goes last, so that a sweep that is killed can be repeated. */
static void empty_folder(int fd)
{
    GS_ENDS(gs_closedir_at) DIR *const dir = open_folder(fd, ".");

    if (dir == NULL)
        return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (!is_dot(e->d_name) && strcmp(e->d_name, OWNER) != 0)
            (void)unlinkat(fd, e->d_name, 0);
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
    GS_CLOSED const int fd = openat(parent, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return errno != ENOENT && errno != ELOOP;
    if (try_lock(fd) != LOCK_OURS)
        return true;
    if (keeps_name(fd, parent, name))
        (void)unlinkat(parent, name, 0);
    return false;
}

void gs_temporary_sweep(const char *dir, char alive[GS_TEMPORARY_BYTES])
{
    GS_ENDS(gs_closedir_at) DIR *const d = opendir(dir);

    alive[0] = '\0';
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if ((has_form(e->d_name, FOLDER_PREFIX) && sweep_folder(dirfd(d), e->d_name)) ||
            (has_form(e->d_name, FILE_PREFIX) && sweep_file(dirfd(d), e->d_name)))
            snprintf(alive, GS_TEMPORARY_BYTES, "%.*s", GS_TEMPORARY_BYTES - 1, e->d_name);
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

/* -- staging folders.
 *
 *   begin    lock, clear leftovers, mkdir
 *   publish  exchange the two folders' names (one step of the file system), then remove the old one
 *   close    remove the staging folder, unlock
 *
 * A kill at any moment leaves the old folder or the new one in place, and perhaps a folder .unfinished. and a lock file
 * that nobody holds. */

#define LOCK_END ".gnnstream-lock"

struct gs_staging {
    const gs_staging_kind *kind;
    char *place; /* as it was given */
    char *real;  /* the same folder's own name, no link to it */
    char *dir;   /* the staging folder; after publishing, the old folder */
    char *lock_path;
    int parent;  /* the folder of `real` */
    int lock;    /* -1: not held */
    bool replaces; /* there was a folder with entries when the staging folder was begun, and it may go */
    bool made, published;
    bool unlocked; /* this file system has no locks */
};

/* ---- the place ----------------------------------------------------------- */

/* Refuses a place whose folder cannot be renamed. */
static gs_status check_movable(const gs_staging *d, const struct stat *at)
{
    struct stat here, parent;
    struct statx x;

    if (stat(".", &here) == 0 && gs_stat_is_same(&here, at))
        return gs_fail(GS_EEXIST, "%s: is the folder that you are in, which cannot be replaced; name one in it",
                       d->place);
    if (strcmp(d->real, "/") == 0 || fstat(d->parent, &parent) != 0 || parent.st_dev != at->st_dev ||
        (statx(AT_FDCWD, d->real, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &x) == 0 &&
         (x.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0))
        return gs_fail(GS_EEXIST, "%s: a disk is mounted there, so no folder can take its place; name one in it",
                       d->place);
    return GS_OK;
}

static gs_status open_parent(gs_staging *d)
{
    const size_t length = (size_t)(gs_path_name(d->real) - d->real);
    char parent[PATH_MAX];

    if (length >= sizeof(parent))
        return gs_fail_errno(ENAMETOOLONG, "%s", d->place);
    memcpy(parent, d->real, length);
    parent[length] = '\0';
    d->parent = open(length == 0 ? "." : parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return d->parent >= 0 ? GS_OK : gs_fail_errno(errno, "%s: cannot make the folder", d->place);
}

/* `real` of something that is there: without links, so that the folder itself is replaced. */
static gs_status resolve(gs_staging *d)
{
    struct stat s;

    if (stat(d->place, &s) != 0)
        return gs_fail_errno(errno, "%s: cannot be reached", d->place);
    if (!S_ISDIR(s.st_mode))
        return gs_fail(GS_EEXIST, "%s: is a file where a folder is needed", d->place);
    char *const real = realpath(d->place, NULL);
    if (real == NULL)
        return gs_fail_errno(errno, "%s: cannot be reached", d->place);
    d->real = gs_strdup(real);
    free(real);
    GS_NEED(d->real != NULL, "%s: out of memory", d->place);
    GS_TRY(open_parent(d));
    return check_movable(d, &s);
}

/* Finds `real` and opens its parent. `there`: something has this name. */
static gs_status find_place(gs_staging *d, bool *there)
{
    *there = !gs_path_is_absent(d->place);
    if (*there)
        return resolve(d);
    if (*gs_path_name(d->place) == '\0')
        return gs_fail(GS_ENOTFOUND, "\"%s\": is no name of a folder", d->place);
    GS_NEED((d->real = gs_strdup(d->place)) != NULL, "%s: out of memory", d->place);
    return open_parent(d);
}

/* ---- folders ------------------------------------------------------------- */

static bool has_entries(const char *dir)
{
    GS_ENDS(gs_closedir_at) DIR *const d = opendir(dir);
    bool any = false;

    if (d == NULL)
        return true; /* what cannot be looked at is not known to be empty */
    for (const struct dirent *e; !any && (e = readdir(d)) != NULL;)
        any = !is_dot(e->d_name);
    return any;
}

/* Removes the folder `name` of the place's parent, and what is ours in it. `staging`: it was never in place. Records no
 * error. */
static void remove_folder(const gs_staging *d, const char *name, bool staging)
{
    GS_ENDS(gs_closedir_at) DIR *const dir = open_folder(d->parent, name);

    if (dir == NULL)
        return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (d->kind->owns(e->d_name) || (staging && gs_is_temporary(e->d_name)))
            unlinkat(dirfd(dir), e->d_name, 0);
    unlinkat(d->parent, name, AT_REMOVEDIR); /* fails, as it should, where something else is inside */
}

/* Is it the name of a staging folder of this place? */
static bool is_staging_name(const gs_staging *d, const char *name)
{
    const char *const own = gs_path_name(d->real);
    const size_t n = strlen(own);
    return strncmp(name, own, n) == 0 && name[n] == '.' && has_form(name + n + 1, STAGING_PREFIX);
}

/* Whoever made them held the lock that is ours now, so nobody is at work there. */
static void clear_leftovers(const gs_staging *d)
{
    GS_ENDS(gs_closedir_at) DIR *const dir = open_folder(d->parent, ".");

    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (is_staging_name(d, e->d_name))
            remove_folder(d, e->d_name, true);
}

/* REAL.unfinished.0123456789abcdef, which nothing has. GS_OK with `dir` made. */
static gs_status make_dir(char **out, const gs_staging *d)
{
    const size_t room = strlen(d->real) + 1 + GS_TEMPORARY_BYTES;
    GS_FREED char *dir = gs_malloc(room);
    char name[GS_TEMPORARY_BYTES];

    GS_NEED(dir != NULL, "%s: out of memory", d->place);
    for (int tries = 0; tries < TRIES; tries++) {
        gs_temporary_name(name, STAGING_PREFIX);
        snprintf(dir, room, "%s.%s", d->real, name);
        if (mkdirat(d->parent, gs_path_name(dir), 0777) == 0) {
            *out = GS_HANDED_OVER(dir);
            return GS_OK;
        }
        if (errno != EEXIST)
            break;
    }
    return gs_fail_errno(errno, "%s: cannot make a folder beside it", d->place);
}

/* ---- the lock ------------------------------------------------------------ */

/* The file is an empty one of ours, or about to be. */
static gs_status open_lock(int *out, const gs_staging *d)
{
    struct stat s;
    GS_CLOSED int fd = openat(d->parent, gs_path_name(d->lock_path),
                              O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);

    if (fd < 0)
        return gs_fail_errno(errno, "%s: cannot make a file beside it", d->place);
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_size != 0)
        return gs_fail(GS_EEXIST, "%s: %s is no lock of a folder; remove it", d->place, d->lock_path);
    *out = fd;
    fd = -1;
    return GS_OK;
}

/* An owner removes the file before it lets the lock go, so whoever waited at the old file must look for the new one. */
static gs_status take_lock(gs_staging *d)
{
    for (int tries = 0; tries < TRIES; tries++) {
        int fd = -1;

        GS_TRY(open_lock(&fd, d));
        const lock_state state = try_lock(fd);
        d->unlocked = state == LOCK_UNKNOWN;
        if (state == LOCK_OURS && keeps_name(fd, d->parent, gs_path_name(d->lock_path))) {
            d->lock = fd;
            return GS_OK;
        }
        close(fd);
        if (d->unlocked)
            return GS_OK;
        if (state == LOCK_THEIRS)
            return gs_fail(GS_EEXIST, "%s: another process is making it; wait for that, or choose another folder",
                           d->place);
    }
    return gs_fail(GS_EEXIST, "%s: others make it again and again; choose another folder", d->place);
}

static char *lock_path_of(const char *real)
{
    const size_t room = strlen(real) + sizeof(LOCK_END) + 1, before = (size_t)(gs_path_name(real) - real);
    char *const path = gs_malloc(room);

    if (path != NULL)
        snprintf(path, room, "%.*s.%s" LOCK_END, (int)before, real, gs_path_name(real));
    return path;
}

/* ---- life ---------------------------------------------------------------- */

static gs_status check_replaceable(gs_staging *d, bool there, bool force)
{
    d->replaces = there && has_entries(d->real);
    return d->replaces ? d->kind->may_replace(d->place, force) : GS_OK;
}

/* The new folder is opened to whom the old one was. */
static void take_mode(const gs_staging *d)
{
    struct stat s;
    if (stat(d->real, &s) == 0 && S_ISDIR(s.st_mode))
        (void)!fchmodat(d->parent, gs_path_name(d->dir), s.st_mode & 07777, 0);
}

static gs_status begin(gs_staging *d, const char *place, bool force)
{
    bool there = false;

    GS_NEED((d->place = gs_path_without_slashes(place)) != NULL, "%s: out of memory", place);
    GS_TRY(find_place(d, &there));
    GS_TRY(check_replaceable(d, there, force));
    GS_NEED((d->lock_path = lock_path_of(d->real)) != NULL, "%s: out of memory", place);
    /* Again with the lock: the owner before may have finished meanwhile. */
    GS_TRY(take_lock(d));
    GS_TRY(check_replaceable(d, gs_path_is_dir(d->real), force));
    if (!d->unlocked)
        clear_leftovers(d);
    GS_TRY(make_dir(&d->dir, d));
    d->made = true;
    take_mode(d);
    return GS_OK;
}

gs_status gs_staging_begin(gs_staging **out, const char *place, const gs_staging_kind *kind, bool force)
{
    GS_ENDS(gs_staging_close_at) gs_staging *d = gs_calloc(1, sizeof(*d));

    GS_NEED(d != NULL, "%s: out of memory", place);
    d->kind = kind;
    d->parent = d->lock = -1;
    GS_TRY(begin(d, place, force));
    *out = GS_HANDED_OVER(d);
    return GS_OK;
}

const char *gs_staging_dir(const gs_staging *d) { return d->dir; }

void gs_staging_close(gs_staging *d)
{
    if (d == NULL)
        return;
    if (d->made && !d->published)
        remove_folder(d, gs_path_name(d->dir), true);
    if (d->lock >= 0) {
        unlinkat(d->parent, gs_path_name(d->lock_path), 0); /* before the lock goes: see take_lock() */
        close(d->lock);
    }
    if (d->parent >= 0)
        close(d->parent);
    gs_free(d->lock_path);
    gs_free(d->place);
    gs_free(d->real);
    gs_free(d->dir);
    gs_free(d);
}

/* ---- publishing ---------------------------------------------------------- */

/* Moves files of others from the old folder to where they were found: into the folder of that name. */
static void carry_over(const gs_staging *d)
{
    GS_CLOSED const int to = openat(d->parent, gs_path_name(d->real), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    GS_ENDS(gs_closedir_at) DIR *const from = to < 0 ? NULL : open_folder(d->parent, gs_path_name(d->dir));

    for (const struct dirent *e; from != NULL && (e = readdir(from)) != NULL;)
        if (!is_dot(e->d_name) && !d->kind->owns(e->d_name))
            (void)renameat2(dirfd(from), e->d_name, to, e->d_name, RENAME_NOREPLACE);
}

static int rename_in(const gs_staging *d, const char *from, const char *to, unsigned flags)
{
    return renameat2(d->parent, gs_path_name(from), d->parent, gs_path_name(to), flags) == 0 ? 0 : errno;
}

/* On file systems without an exchange of names there is a moment with neither in place. */
static int two_steps(gs_staging *d)
{
    GS_FREED char *aside = NULL;
    int err;

    if (make_dir(&aside, d) != GS_OK)
        return ENOMEM;
    if ((err = rename_in(d, d->real, aside, 0)) != 0) { /* over the empty folder that has taken the name */
        unlinkat(d->parent, gs_path_name(aside), AT_REMOVEDIR);
        return err;
    }
    if ((err = rename_in(d, d->dir, d->real, 0)) != 0) {
        (void)rename_in(d, aside, d->real, 0);
        return err;
    }
    gs_free(d->dir);
    d->dir = GS_HANDED_OVER(aside);
    return 0;
}

/* *old: `dir` has become the folder that was in place. */
static int take_place(gs_staging *d, bool *old)
{
    int err;

    *old = d->replaces && gs_path_is_dir(d->real) && has_entries(d->real);
    if (!*old)
        return rename_in(d, d->dir, d->real, 0);
    err = rename_in(d, d->dir, d->real, RENAME_EXCHANGE);
    return err == EINVAL || err == ENOSYS || err == EOPNOTSUPP ? two_steps(d) : err;
}

gs_status gs_staging_publish(gs_staging *d)
{
    bool old = false;
    GS_CLOSED const int fd = openat(d->parent, gs_path_name(d->dir), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return gs_fail_errno(errno, "%s: what was made for it is gone", d->place);
    GS_TRY(gs_folder_sync(fd, d->place));
    const int err = take_place(d, &old);
    if (err == ENOTEMPTY || err == EEXIST || err == ENOTDIR)
        return gs_fail(GS_EEXIST, "%s: others have put something there meanwhile, which is not replaced", d->place);
    if (err != 0)
        return gs_fail_errno(err, "%s: cannot take its place", d->place);
    d->published = true;
    if (old)
        carry_over(d); /* at once: a run looks for its folder by name when it ends */
    const gs_status st = gs_folder_sync(d->parent, d->place);
    if (old)
        remove_folder(d, gs_path_name(d->dir), false);
    return st;
}
