/* The counters hold what the C library really gave (malloc_usable_size), not
 * what was asked for: no header before a block, so sanitizers see the block's
 * true ends, and alignment stays that of malloc().
 *
 * All counters are relaxed atomics: they order no other memory. */
#include "base/alloc.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/size.h"

#define HUGE_PAGE_BYTES (2 * GS_MIB)

static atomic_uint_fast64_t live_bytes, peak_bytes, frozen_count, fail_countdown;
static atomic_bool frozen;

static void count_taken(uint64_t bytes)
{
    const uint64_t live = atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed) + bytes;
    uint_fast64_t peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (live > peak &&
           !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, live, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

static void count_given_back(uint64_t bytes)
{
    atomic_fetch_sub_explicit(&live_bytes, bytes, memory_order_relaxed);
}

/* Called once per allocation: false where the test hook wants it to fail. */
static bool may_allocate(size_t size)
{
    if (atomic_load_explicit(&frozen, memory_order_relaxed))
        atomic_fetch_add_explicit(&frozen_count, 1, memory_order_relaxed);

    uint_fast64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
    while (left > 0 && !atomic_compare_exchange_weak_explicit(&fail_countdown, &left, left - 1,
                                                              memory_order_relaxed, memory_order_relaxed))
        continue;
    return left != 1 && size <= PTRDIFF_MAX;
}

static void *counted(void *p)
{
    if (p != NULL)
        count_taken(malloc_usable_size(p));
    return p;
}

/* malloc(0) may give NULL on some C libraries; a byte never does. */
static size_t at_least_one(size_t size) { return size > 0 ? size : 1; }

void *gs_malloc(size_t size) { return may_allocate(size) ? counted(malloc(at_least_one(size))) : NULL; }

void *gs_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || !may_allocate(bytes))
        return NULL;
    return counted(calloc(1, at_least_one(bytes)));
}

void *gs_malloc_array(size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : gs_malloc(bytes);
}

void *gs_realloc(void *p, size_t size)
{
    if (!may_allocate(size))
        return NULL;
    const size_t before = malloc_usable_size(p); /* 0 for NULL */
    void *const moved = counted(realloc(p, at_least_one(size)));
    if (moved != NULL)
        count_given_back(before);
    return moved;
}

char *gs_strdup(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *const copy = gs_malloc(bytes);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

void gs_free(void *p)
{
    count_given_back(malloc_usable_size(p));
    free(p);
}

uint64_t gs_alloc_pages_bytes(size_t bytes)
{
    return gs_align_up(at_least_one(bytes), bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : GS_BLOCK_BYTES);
}

/* Maps a huge page more than asked and gives the ends back: only aligned
 * memory can be backed by huge pages. */
static void *map_aligned(uint64_t bytes)
{
    char *const p = mmap(NULL, bytes + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                         -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    const uint64_t head = gs_align_up((uintptr_t)p, HUGE_PAGE_BYTES) - (uintptr_t)p;
    if (head > 0)
        munmap(p, head);
    if (head < HUGE_PAGE_BYTES)
        munmap(p + head + bytes, HUGE_PAGE_BYTES - head);
    madvise(p + head, bytes, MADV_HUGEPAGE); /* advice: fails without harm */
    return p + head;
}

void *gs_alloc_pages(size_t bytes)
{
    if (!may_allocate(bytes) || bytes > PTRDIFF_MAX - 2 * HUGE_PAGE_BYTES)
        return NULL;
    const uint64_t taken = gs_alloc_pages_bytes(bytes);
    void *p;
    if (taken >= HUGE_PAGE_BYTES) {
        p = map_aligned(taken);
    } else {
        p = mmap(NULL, taken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        p = p == MAP_FAILED ? NULL : p;
    }
    if (p != NULL)
        count_taken(taken);
    return p;
}

void gs_free_pages(void *p, size_t bytes)
{
    if (p == NULL)
        return;
    const uint64_t taken = gs_alloc_pages_bytes(bytes);
    munmap(p, taken);
    count_given_back(taken);
}

void gs_drop_pages(void *p, size_t bytes)
{
    if (p != NULL)
        (void)madvise(p, gs_alloc_pages_bytes(bytes), MADV_DONTNEED); /* refused for locked memory, which then stays */
}

uint64_t gs_alloc_live_bytes(void) { return atomic_load_explicit(&live_bytes, memory_order_relaxed); }
uint64_t gs_alloc_peak_bytes(void) { return atomic_load_explicit(&peak_bytes, memory_order_relaxed); }
void gs_alloc_freeze(bool on) { atomic_store_explicit(&frozen, on, memory_order_relaxed); }
uint64_t gs_alloc_frozen_count(void) { return atomic_load_explicit(&frozen_count, memory_order_relaxed); }
void gs_alloc_fail_nth(uint64_t n) { atomic_store_explicit(&fail_countdown, n, memory_order_relaxed); }

void gs_alloc_map_large(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, GS_MIB);
#endif
}

void gs_alloc_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* ---- arrays that grow -------------------------------------------------- */

#define LEAST_ROOM 16u

bool gs_grow(void *array, uint32_t count, uint32_t *room, size_t size)
{
    void *items; /* pointers of any type have one representation here, but may not be accessed as another's */

    if (count < *room)
        return true;
    if (*room > UINT32_MAX / 2)
        return false;
    const uint32_t more = GS_MAX(2 * *room, LEAST_ROOM);
    memcpy(&items, array, sizeof(items));
    if ((items = gs_realloc(items, more * size)) == NULL)
        return false;
    memcpy(array, &items, sizeof(items));
    *room = more;
    return true;
}
