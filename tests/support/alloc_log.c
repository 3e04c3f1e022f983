/* alloc_log.c - every allocation of a program, seen from outside: how large are they, and how much is live at once?
 *
 * Preloaded (LD_PRELOAD), it stands before malloc, calloc, realloc, aligned_alloc, posix_memalign and
 * anonymous mmap of the program and of all its libraries. At exit it writes to the file named by ALLOC_LOG
 *     peak BYTES        most that was live at once
 *     largest BYTES     one line for each of the 16 largest that were ever asked for, in descending order
 * Sizes are what was asked for. Needs glibc, which lets its allocator be called by other names.
 */
#undef _FILE_OFFSET_BITS /* else mmap would be another name of mmap64 here, and both are needed */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *p);

#define LARGEST 16
#define NOTED 65536 /* smaller ones cannot be among the largest of a program like this */

static atomic_flag busy = ATOMIC_FLAG_INIT;
static size_t largest[LARGEST];
static _Atomic int64_t live, peak;

static void keep(size_t size)
{
    while (atomic_flag_test_and_set(&busy)) {
    }
    for (int i = 0; i < LARGEST; i++)
        if (size > largest[i]) {
            const size_t smaller = largest[i];
            largest[i] = size;
            size = smaller;
        }
    atomic_flag_clear(&busy);
}

static void note(int64_t change, size_t size)
{
    const int64_t now = atomic_fetch_add(&live, change) + change;
    int64_t most = atomic_load(&peak);
    while (now > most && !atomic_compare_exchange_weak(&peak, &most, now)) {
    }
    if (size >= NOTED)
        keep(size);
}

static void *made(void *p, size_t size)
{
    if (p != NULL)
        note((int64_t)malloc_usable_size(p), size);
    return p;
}

void *malloc(size_t size) { return made(__libc_malloc(size), size); }
void *calloc(size_t count, size_t size) { return made(__libc_calloc(count, size), count * size); }
void *memalign(size_t align, size_t size) { return made(__libc_memalign(align, size), size); }
void *aligned_alloc(size_t align, size_t size) { return made(__libc_memalign(align, size), size); }

int posix_memalign(void **out, size_t align, size_t size)
{
    *out = made(__libc_memalign(align, size), size);
    return *out == NULL ? ENOMEM : 0;
}

void *realloc(void *p, size_t size)
{
    const int64_t before = p != NULL ? (int64_t)malloc_usable_size(p) : 0;
    void *const q = __libc_realloc(p, size);
    if (q != NULL)
        note((int64_t)malloc_usable_size(q) - before, size);
    return q;
}

void free(void *p)
{
    if (p != NULL)
        note(-(int64_t)malloc_usable_size(p), 0);
    __libc_free(p);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    void *const p = (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
    if (p != MAP_FAILED && (flags & MAP_ANONYMOUS) != 0)
        note((int64_t)size, size);
    return p;
}

/* The name that programs with 64-bit file offsets call. */
void *mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return mmap(at, size, protection, flags, fd, offset);
}

/* Of files too: there are none here that matter. */
int munmap(void *p, size_t size)
{
    note(-(int64_t)size, 0);
    return (int)syscall(SYS_munmap, p, size);
}

__attribute__((destructor)) static void report(void)
{
    const char *const path = getenv("ALLOC_LOG");
    FILE *const f = path != NULL ? fopen(path, "w") : NULL;
    if (f == NULL)
        return;
    fprintf(f, "peak %lld\n", (long long)atomic_load(&peak));
    for (int i = 0; i < LARGEST && largest[i] > 0; i++)
        fprintf(f, "largest %zu\n", largest[i]);
    fclose(f);
}
