/* preload.c - one call of the program goes wrong.
 *
 * Preloaded (LD_PRELOAD), it stands before the C library's and liburing's functions from main() on; strike.h says which
 * call goes wrong and how, file_trace.h what is written down of the others. Calls on descriptors 0 to 2 are left alone.
 * Not with sanitizers: they have a malloc of their own.
 */
#undef _FILE_OFFSET_BITS /* else open would be another name of open64, and both are needed */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "file_trace.h"
#include "strike.h"

#define STRIKE(c) strike(CLASS_##c, __func__)
#define STRIKE_OWN(c) strike(strike_whose(CLASS_##c, __builtin_return_address(0)), __func__)
#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name)
{
    void *const f = dlsym(RTLD_NEXT, name);
    if (f == NULL) {
        dprintf(2, "preload: there is no %s\n", name);
        _exit(99);
    }
    return f;
}

static void wait_a_little(void)
{
    const struct timespec t = {.tv_nsec = 200000000};
    nanosleep(&t, NULL);
}

/* For calls that move nothing: true where the call must fail; a late one only waits. */
static bool fails(int k)
{
    if (k == KIND_LATE)
        wait_a_little();
    if (k == KIND_SHORT || k == KIND_TORN)
        errno = EIO;
    else if (k > 0)
        errno = k;
    return k != 0 && k != KIND_LATE;
}

/* Bytes that are moved: all, half, or none (*error set). */
static size_t portion(int k, size_t bytes, bool *failing)
{
    *failing = k == KIND_TORN || k > 0;
    if (k == KIND_LATE)
        wait_a_little();
    if (k > 0)
        return 0;
    return k == KIND_SHORT || k == KIND_TORN ? (bytes + 1) / 2 : bytes;
}

/* ---- opening ---- */

static int opened(int fd, const char *path, int flags)
{
    if (fd >= 0)
        trace_open(fd, path, flags);
    return fd;
}

#define OPEN(name)                                                                       \
    int name(const char *path, int flags, ...)                                           \
    {                                                                                    \
        va_list list;                                                                    \
        va_start(list, flags);                                                           \
        const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;  \
        va_end(list);                                                                    \
        return fails(STRIKE(open)) ? -1 : opened(REAL(name)(path, flags, mode), path, flags); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                     \
    int name(int dir, const char *path, int flags, ...)                                  \
    {                                                                                    \
        va_list list;                                                                    \
        va_start(list, flags);                                                           \
        const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;  \
        va_end(list);                                                                    \
        if (fails(STRIKE(open)))                                                         \
            return -1;                                                                   \
        const int fd = REAL(name)(dir, path, flags, mode);                               \
        if (fd >= 0)                                                                     \
            trace_open_at(fd, dir, path, flags);                                         \
        return fd;                                                                       \
    }
OPENAT(openat)
OPENAT(openat64)

FILE *fopen(const char *path, const char *mode)
{
    return fails(STRIKE(open)) ? NULL : REAL(fopen)(path, mode);
}
FILE *fopen64(const char *path, const char *mode)
{
    return fails(STRIKE(open)) ? NULL : REAL(fopen64)(path, mode);
}
DIR *opendir(const char *path)
{
    return fails(STRIKE(open)) ? NULL : REAL(opendir)(path);
}
DIR *fdopendir(int fd)
{
    return fails(STRIKE(list)) ? NULL : REAL(fdopendir)(fd);
}
struct dirent *readdir(DIR *dir)
{
    return fails(STRIKE(list)) ? NULL : REAL(readdir)(dir);
}
struct dirent64 *readdir64(DIR *dir)
{
    return fails(STRIKE(list)) ? NULL : REAL(readdir64)(dir);
}
int close(int fd)
{
    trace_forget(fd);
    return REAL(close)(fd);
}

/* ---- moving bytes ---- */

ssize_t read(int fd, void *to, size_t bytes)
{
    bool failing = false;
    const size_t n = fd > 2 ? portion(STRIKE(read), bytes, &failing) : bytes;
    return failing ? (errno = strike_kind > 0 ? strike_kind : EIO, -1) : REAL(read)(fd, to, n);
}

#define PREAD(name, off)                                                                  \
    ssize_t name(int fd, void *to, size_t bytes, off offset)                              \
    {                                                                                     \
        bool failing = false;                                                             \
        const size_t n = portion(STRIKE(read), bytes, &failing);                          \
        return failing ? (errno = strike_kind > 0 ? strike_kind : EIO, -1) : REAL(name)(fd, to, n, offset); \
    }
PREAD(pread, __off_t)
PREAD(pread64, __off64_t)

ssize_t write(int fd, const void *from, size_t bytes)
{
    bool failing = false;
    const size_t n = fd > 2 ? portion(STRIKE(write), bytes, &failing) : bytes;
    if (failing && n == 0)
        return errno = strike_kind, -1;
    trace_append(fd, from, n);
    const ssize_t r = REAL(write)(fd, from, n);
    return failing ? (errno = EIO, -1) : r;
}

#define PWRITE(name, off)                                                                 \
    ssize_t name(int fd, const void *from, size_t bytes, off offset)                      \
    {                                                                                     \
        bool failing = false;                                                             \
        const size_t n = portion(STRIKE(write), bytes, &failing);                         \
        if (failing && n == 0)                                                            \
            return errno = strike_kind, -1;                                                      \
        trace_write(fd, from, n, (uint64_t)offset);                                       \
        const ssize_t r = REAL(name)(fd, from, n, offset);                                \
        return failing ? (errno = EIO, -1) : r;                                           \
    }
PWRITE(pwrite, __off_t)
PWRITE(pwrite64, __off64_t)

/* ---- what lasts ---- */

int fsync(int fd)
{
    if (fails(STRIKE(sync)))
        return -1;
    trace_sync(fd);
    return REAL(fsync)(fd);
}
int fdatasync(int fd)
{
    if (fails(STRIKE(sync)))
        return -1;
    trace_sync(fd);
    return REAL(fdatasync)(fd);
}
int rename(const char *from, const char *to)
{
    if (fails(STRIKE(rename)))
        return -1;
    const int r = REAL(rename)(from, to);
    if (r == 0)
        trace_rename(AT_FDCWD, from, AT_FDCWD, to, 0);
    return r;
}
int renameat(int a, const char *from, int b, const char *to)
{
    if (fails(STRIKE(rename)))
        return -1;
    const int r = REAL(renameat)(a, from, b, to);
    if (r == 0)
        trace_rename(a, from, b, to, 0);
    return r;
}
int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    if (fails(STRIKE(rename)))
        return -1;
    const int r = REAL(renameat2)(a, from, b, to, flags);
    if (r == 0)
        trace_rename(a, from, b, to, flags);
    return r;
}
int linkat(int a, const char *from, int b, const char *to, int flags)
{
    if (fails(STRIKE(rename)))
        return -1;
    const int r = REAL(linkat)(a, from, b, to, flags);
    if (r == 0)
        trace_link(from, b, to);
    return r;
}
int unlink(const char *path)
{
    if (fails(STRIKE(remove)))
        return -1;
    const int r = REAL(unlink)(path);
    if (r == 0)
        trace_remove(AT_FDCWD, path);
    return r;
}
int unlinkat(int dir, const char *path, int flags)
{
    if (fails(STRIKE(remove)))
        return -1;
    const int r = REAL(unlinkat)(dir, path, flags);
    if (r == 0)
        trace_remove(dir, path);
    return r;
}
int rmdir(const char *path)
{
    if (fails(STRIKE(remove)))
        return -1;
    const int r = REAL(rmdir)(path);
    if (r == 0)
        trace_remove(AT_FDCWD, path);
    return r;
}
int mkdir(const char *path, mode_t mode)
{
    if (fails(STRIKE(mkdir)))
        return -1;
    const int r = REAL(mkdir)(path, mode);
    if (r == 0)
        trace_mkdir(AT_FDCWD, path);
    return r;
}
int mkdirat(int dir, const char *path, mode_t mode)
{
    if (fails(STRIKE(mkdir)))
        return -1;
    const int r = REAL(mkdirat)(dir, path, mode);
    if (r == 0)
        trace_mkdir(dir, path);
    return r;
}

/* ---- looking, sizes, locks ---- */

#define STAT(name, type) \
    int name(const char *path, type *to) { return fails(STRIKE(stat)) ? -1 : REAL(name)(path, to); }
STAT(stat, struct stat)
STAT(stat64, struct stat64)
STAT(lstat, struct stat)
STAT(lstat64, struct stat64)
#define FSTAT(name, type) \
    int name(int fd, type *to) { return fails(STRIKE(stat)) ? -1 : REAL(name)(fd, to); }
FSTAT(fstat, struct stat)
FSTAT(fstat64, struct stat64)
FSTAT(fstatvfs, struct statvfs)
FSTAT(fstatvfs64, struct statvfs64)
STAT(statvfs, struct statvfs)
STAT(statvfs64, struct statvfs64)

#define TRUNCATE(name, off)                                     \
    int name(int fd, off bytes)                                 \
    {                                                           \
        if (fails(STRIKE(size)))                                \
            return -1;                                          \
        trace_resize(fd, (uint64_t)bytes, true);                \
        return REAL(name)(fd, bytes);                           \
    }
TRUNCATE(ftruncate, __off_t)
TRUNCATE(ftruncate64, __off64_t)
#define ALLOCATE(name, off)                                     \
    int name(int fd, int mode, off at, off bytes)               \
    {                                                           \
        if (fails(STRIKE(size)))                                \
            return -1;                                          \
        if (mode == 0)                                          \
            trace_resize(fd, (uint64_t)at + (uint64_t)bytes, false); \
        return REAL(name)(fd, mode, at, bytes);                 \
    }
ALLOCATE(fallocate, __off_t)
ALLOCATE(fallocate64, __off64_t)
#define POSIX_ALLOCATE(name, off)                               \
    int name(int fd, off at, off bytes)                         \
    {                                                           \
        if (fails(STRIKE(size)))                                \
            return errno;                                       \
        trace_resize(fd, (uint64_t)at + (uint64_t)bytes, false); \
        return REAL(name)(fd, at, bytes);                       \
    }
POSIX_ALLOCATE(posix_fallocate, __off_t)
POSIX_ALLOCATE(posix_fallocate64, __off64_t)

int flock(int fd, int how);
int flock(int fd, int how)
{
    return fails(STRIKE(lock)) ? -1 : REAL(flock)(fd, how);
}

#define MMAP(name, off)                                                                            \
    void *name(void *at, size_t bytes, int protection, int flags, int fd, off offset)              \
    {                                                                                              \
        return fails(STRIKE_OWN(map)) ? MAP_FAILED : REAL(name)(at, bytes, protection, flags, fd, offset); \
    }
MMAP(mmap, __off_t)
MMAP(mmap64, __off64_t)

int pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *), void *context)
{
    return fails(STRIKE_OWN(thread)) ? errno : REAL(pthread_create)(out, attr, run, context);
}

/* ---- io_uring ---- */

int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
    return fails(STRIKE(ring)) ? -errno : REAL(io_uring_queue_init)(entries, ring, flags);
}
int io_uring_register_buffers(struct io_uring *ring, const struct iovec *v, unsigned n)
{
    return fails(STRIKE(ring)) ? -errno : REAL(io_uring_register_buffers)(ring, v, n);
}
int io_uring_register_files_sparse(struct io_uring *ring, unsigned n)
{
    return fails(STRIKE(ring)) ? -errno : REAL(io_uring_register_files_sparse)(ring, n);
}
int io_uring_register_files_update(struct io_uring *ring, unsigned at, const int *files, unsigned n)
{
    return fails(STRIKE(ring)) ? -errno : REAL(io_uring_register_files_update)(ring, at, files, n);
}

/* Half of a request is asked for, so that half of it is moved. */
static void shorten(struct io_uring *ring)
{
    if (strike_kind != KIND_SHORT || strike_class != CLASS_done)
        return;
    for (unsigned at = ring->sq.sqe_head; at != ring->sq.sqe_tail; at++) {
        struct io_uring_sqe *const e = &ring->sq.sqes[at & ring->sq.ring_mask];
        const bool moves = e->opcode == IORING_OP_READ || e->opcode == IORING_OP_WRITE ||
                           e->opcode == IORING_OP_READ_FIXED || e->opcode == IORING_OP_WRITE_FIXED;
        if (moves && strike(CLASS_done, "io_uring_submit") == KIND_SHORT && e->len >= 8192)
            e->len = e->len / 2 & ~4095u;
    }
}

int io_uring_submit(struct io_uring *ring)
{
    if (fails(STRIKE(submit)))
        return -errno;
    shorten(ring);
    return REAL(io_uring_submit)(ring);
}
int io_uring_submit_and_wait(struct io_uring *ring, unsigned wait)
{
    if (fails(STRIKE(submit)))
        return -errno;
    shorten(ring);
    return REAL(io_uring_submit_and_wait)(ring, wait);
}

/* A completion that failed may have moved its bytes, as on a real disk. */
unsigned io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **cqe, unsigned most)
{
    const unsigned n = REAL(io_uring_peek_batch_cqe)(ring, cqe, most);
    for (unsigned i = 0; i < n && !(strike_kind == KIND_SHORT && strike_class == CLASS_done); i++) {
        const int k = STRIKE(done);
        if (k > 0 || k == KIND_TORN)
            cqe[i]->res = k > 0 ? -k : -EIO;
        if (k == KIND_LATE) {
            const struct io_uring_cqe first = *cqe[i];
            *cqe[i] = *cqe[n - 1];
            *cqe[n - 1] = first;
        }
    }
    return n;
}

/* ---- memory ---- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size)
{
    return fails(STRIKE_OWN(alloc)) ? NULL : __libc_malloc(size);
}
void *calloc(size_t n, size_t size)
{
    return fails(STRIKE_OWN(alloc)) ? NULL : __libc_calloc(n, size);
}
void *realloc(void *p, size_t size)
{
    return fails(STRIKE_OWN(alloc)) ? NULL : __libc_realloc(p, size);
}
void *aligned_alloc(size_t align, size_t size)
{
    return fails(STRIKE_OWN(alloc)) ? NULL : __libc_memalign(align, size);
}
int posix_memalign(void **out, size_t align, size_t size)
{
    void *const p = fails(STRIKE_OWN(alloc)) ? NULL : __libc_memalign(align, size);
    if (p == NULL)
        return ENOMEM;
    *out = p;
    return 0;
}

/* ---- from main() on ---- */

static int (*real_main)(int, char **, char **);

static int armed_main(int argc, char **argv, char **env)
{
    trace_begin();
    strike_begin();
    const int r = real_main(argc, argv, env);
    strike_end();
    trace_close();
    return r;
}

typedef int start_main(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void),
                       void *);
start_main __libc_start_main;
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*ld_fini)(void), void *stack_end)
{
    start_main *const start = (start_main *)real("__libc_start_main");
    real_main = main;
    return start(armed_main, argc, argv, init, fini, ld_fini, stack_end);
}
