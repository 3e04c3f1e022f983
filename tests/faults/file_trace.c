#include "file_trace.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_FILES 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int out = -1;
static char root[PATH_MAX];
static bool watched[MOST_FILES];

void trace_begin(void)
{
    const char *const path = getenv("GS_FAULT_TRACE"), *const folder = getenv("GS_FAULT_ROOT");
    if (path == NULL || folder == NULL || realpath(folder, root) == NULL)
        return;
    out = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

void trace_close(void)
{
    out = -1;
}

static void put(const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        const long r = syscall(SYS_write, out, (const char *)bytes + done, n - done);
        if (r <= 0)
            _exit(98);
        done += (size_t)r;
    }
}

static void line(const char *text)
{
    pthread_mutex_lock(&lock);
    put(text, strlen(text));
    pthread_mutex_unlock(&lock);
}

/* Without links and dots, so that a file has one name; the last part need not be there. False: not under the root. */
static bool whole_path(char *to, int dir, const char *path)
{
    char base[PATH_MAX] = "", joined[2 * PATH_MAX], parent[2 * PATH_MAX], link[64];
    if (path[0] != '/') {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
        const long n = dir == AT_FDCWD ? (getcwd(base, sizeof(base)) != NULL ? (long)strlen(base) : -1)
                                       : readlink(link, base, sizeof(base) - 1);
        if (n < 0)
            return false;
        base[n] = '\0';
        snprintf(joined, sizeof(joined), "%s/%s", base, path);
    } else {
        snprintf(joined, sizeof(joined), "%s", path);
    }
    for (size_t n = strlen(joined); n > 1 && joined[n - 1] == '/'; n--)
        joined[n - 1] = '\0';
    char *const slash = strrchr(joined, '/');
    snprintf(parent, sizeof(parent), "%.*s", (int)(slash - joined), joined);
    const bool dots = strcmp(slash + 1, ".") == 0 || strcmp(slash + 1, "..") == 0;
    if (realpath(dots ? joined : slash == joined ? "/" : parent, base) == NULL)
        return false;
    if (dots)
        snprintf(to, PATH_MAX, "%.4000s", base);
    else
        snprintf(to, PATH_MAX, "%.2000s/%.2000s", base, slash + 1);
    return strncmp(to, root, strlen(root)) == 0;
}

void trace_open_at(int fd, int dir, const char *path, int flags)
{
    char whole[PATH_MAX], text[PATH_MAX + 64];
    struct stat s;
    if (out < 0 || fd >= MOST_FILES || !whole_path(whole, dir, path))
        return;
    const bool folder = fstat(fd, &s) == 0 && S_ISDIR(s.st_mode);
    watched[fd] = true;
    /* `whole` is the folder that it may be named in. The flag has O_DIRECTORY in it. */
    const bool unnamed = (flags & __O_TMPFILE) == __O_TMPFILE;
    snprintf(text, sizeof(text), "open %d %s%s%s%s %s\n", fd, folder ? "d" : "-", flags & O_CREAT ? "c" : "",
             flags & O_TRUNC ? "t" : "", unnamed ? "u" : "", whole);
    line(text);
}

void trace_open(int fd, const char *path, int flags)
{
    trace_open_at(fd, AT_FDCWD, path, flags);
}

void trace_forget(int fd)
{
    char text[64];
    if (out < 0 || fd < 0 || fd >= MOST_FILES || !watched[fd])
        return;
    watched[fd] = false;
    snprintf(text, sizeof(text), "close %d\n", fd);
    line(text);
}

void trace_write(int fd, const void *from, size_t bytes, uint64_t offset)
{
    char text[96];
    if (out < 0 || fd < 0 || fd >= MOST_FILES || !watched[fd])
        return;
    snprintf(text, sizeof(text), "write %d %llu %zu\n", fd, (unsigned long long)offset, bytes);
    pthread_mutex_lock(&lock);
    put(text, strlen(text));
    put(from, bytes);
    put("\n", 1);
    pthread_mutex_unlock(&lock);
}

void trace_append(int fd, const void *from, size_t bytes)
{
    if (out < 0 || fd < 0 || fd >= MOST_FILES || !watched[fd])
        return;
    trace_write(fd, from, bytes, (uint64_t)lseek(fd, 0, SEEK_CUR));
}

void trace_resize(int fd, uint64_t bytes, bool shrink)
{
    char text[96];
    if (out < 0 || fd < 0 || fd >= MOST_FILES || !watched[fd])
        return;
    snprintf(text, sizeof(text), "size %d %llu %d\n", fd, (unsigned long long)bytes, shrink);
    line(text);
}

void trace_sync(int fd)
{
    char text[64];
    if (out < 0 || fd < 0 || fd >= MOST_FILES || !watched[fd])
        return;
    snprintf(text, sizeof(text), "sync %d\n", fd);
    line(text);
}

void trace_rename(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    char a[PATH_MAX], b[PATH_MAX], text[2 * PATH_MAX + 64];
    if (out < 0 || !whole_path(a, from_dir, from) || !whole_path(b, to_dir, to))
        return;
    snprintf(text, sizeof(text), "rename %u %s\t%s\n", flags, a, b);
    line(text);
}

void trace_link(const char *from, int to_dir, const char *to)
{
    static const char descriptors[] = "/proc/self/fd/";
    char whole[PATH_MAX], text[PATH_MAX + 64];
    if (out < 0 || strncmp(from, descriptors, sizeof(descriptors) - 1) != 0 || !whole_path(whole, to_dir, to))
        return;
    snprintf(text, sizeof(text), "link %d %s\n", atoi(from + sizeof(descriptors) - 1), whole);
    line(text);
}

static void one_path(const char *what, int dir, const char *path)
{
    char whole[PATH_MAX], text[PATH_MAX + 64];
    if (out < 0 || !whole_path(whole, dir, path))
        return;
    snprintf(text, sizeof(text), "%s %s\n", what, whole);
    line(text);
}

void trace_remove(int dir, const char *path)
{
    one_path("remove", dir, path);
}

void trace_mkdir(int dir, const char *path)
{
    one_path("mkdir", dir, path);
}
