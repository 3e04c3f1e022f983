/* The counters hold what the C library really gave (malloc_usable_size), not
 * what was asked for: no header before a block, so sanitizers see the block's
 * true ends, and alignment stays that of malloc().
 *
 * All counters are relaxed atomics: they order no other memory. */
#include "base/alloc.h"

#include <malloc.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/size.h"

#define HUGE_PAGE_BYTES (2 * GS_MIB)

static atomic_uint_fast64_t live_bytes, peak_bytes, frozen_count, fail_countdown;
static atomic_bool frozen;

/* ---- large blocks that stay ------------------------------------------------ */

/* Pages of a block that is mapped anew are zeroed by the kernel one at a time, as they are touched: a fifth of the time
 * of planning, whose lists are made and freed by the dozen. So freed ones stay, and the next ones of such a size are
 * taken from them. */

#define LARGE_BYTES GS_MIB
#define KEPT_BLOCKS 16u

static struct {
    pthread_mutex_t lock; /* of all else here but `most` */
    void *block[KEPT_BLOCKS]; /* the oldest first */
    uint32_t count;
    uint64_t bytes;
    atomic_uint_fast64_t most; /* of them and of what is live; 0: none stay */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t kept_most(void) { return atomic_load_explicit(&kept.most, memory_order_relaxed); }

/* Takes the k-th one out. The lock is held. */
static void *remove_kept(uint32_t k)
{
    void *const p = kept.block[k];
    memmove(&kept.block[k], &kept.block[k + 1], (--kept.count - k) * sizeof(kept.block[0]));
    kept.bytes -= malloc_usable_size(p);
    return p;
}

/* The smallest that has room for so much, and for a quarter more at most; NULL: none has. */
static void *take_kept(size_t size)
{
    uint32_t best = KEPT_BLOCKS;
    void *p = NULL;

    if (size < LARGE_BYTES || kept_most() == 0)
        return NULL;
    pthread_mutex_lock(&kept.lock);
    for (uint32_t k = 0; k < kept.count; k++)
        if (malloc_usable_size(kept.block[k]) >= size && malloc_usable_size(kept.block[k]) - size <= size / 4 &&
            (best == KEPT_BLOCKS || malloc_usable_size(kept.block[k]) < malloc_usable_size(kept.block[best])))
            best = k;
    if (best < KEPT_BLOCKS)
        p = remove_kept(best);
    pthread_mutex_unlock(&kept.lock);
    return p;
}

/* A block that is no longer counted. False: it goes back. */
static bool keep(void *p, uint64_t bytes)
{
    const uint64_t most = kept_most();
    bool has_room = false;

    if (bytes < LARGE_BYTES || most == 0)
        return false;
    pthread_mutex_lock(&kept.lock);
    has_room = gs_alloc_live_bytes() + bytes <= most;
    while (has_room && kept.count > 0 &&
           (kept.count == KEPT_BLOCKS || gs_alloc_live_bytes() + kept.bytes + bytes > most))
        free(remove_kept(0)); /* of a size that nobody takes any more */
    if (has_room) {
        kept.block[kept.count++] = p;
        kept.bytes += bytes;
    }
    pthread_mutex_unlock(&kept.lock);
    return has_room;
}

/* What is live has grown. */
static void drop_kept(uint64_t live)
{
    pthread_mutex_lock(&kept.lock);
    while (kept.count > 0 && live + kept.bytes > kept_most())
        free(remove_kept(0));
    pthread_mutex_unlock(&kept.lock);
}

void gs_alloc_keep_large(uint64_t most)
{
    atomic_store_explicit(&kept.most, most, memory_order_relaxed);
    drop_kept(gs_alloc_live_bytes());
}

uint64_t gs_alloc_kept_bytes(void)
{
    pthread_mutex_lock(&kept.lock);
    const uint64_t bytes = kept.bytes;
    pthread_mutex_unlock(&kept.lock);
    return bytes;
}

/* ---- blocks ---------------------------------------------------------------- */

static void count_taken(uint64_t bytes)
{
    const uint64_t live = atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed) + bytes;
    uint_fast64_t peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (live > peak &&
           !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, live, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
    if (bytes >= LARGE_BYTES && kept_most() > 0)
        drop_kept(live);
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

void *gs_malloc(size_t size)
{
    if (!may_allocate(size))
        return NULL;
    void *const p = take_kept(size);
    return counted(p != NULL ? p : malloc(at_least_one(size)));
}

void *gs_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || !may_allocate(bytes))
        return NULL;
    void *const p = take_kept(bytes);
    return counted(p != NULL ? memset(p, 0, bytes) : calloc(1, at_least_one(bytes)));
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
    void *const other = size > before ? take_kept(size) : NULL;
    if (other != NULL) {
        if (before > 0)
            memcpy(other, p, before);
        gs_free(p);
        return counted(other);
    }
    void *const moved = counted(realloc(p, at_least_one(size)));
    if (moved != NULL)
        count_given_back(before);
    return moved;
}

uint64_t gs_alloc_room(const void *p) { return malloc_usable_size((void *)(uintptr_t)p); }

char *gs_strdup(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *const copy = gs_malloc(bytes);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

void gs_free(const void *memory)
{
    void *const p = (void *)(uintptr_t)memory; /* which was const for who only looked at it */
    const uint64_t bytes = malloc_usable_size(p);
    count_given_back(bytes);
    if (!keep(p, bytes))
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
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    mallopt(M_TRIM_THRESHOLD, LARGE_BYTES);
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

bool gs_grow_by(void *array, uint32_t count, uint32_t more, uint32_t *room, size_t size)
{
    void *items; /* pointers of any type have one representation here, but may not be accessed as another's */

    if (more <= *room && count <= *room - more)
        return true;
    if (*room > UINT32_MAX / 2 || more > UINT32_MAX - count)
        return false;
    const uint32_t most = GS_MAX(GS_MAX(2 * *room, LEAST_ROOM), count + more);
    memcpy(&items, array, sizeof(items));
    if ((items = gs_realloc(items, most * size)) == NULL)
        return false;
    memcpy(array, &items, sizeof(items));
    *room = most;
    return true;
}

bool gs_grow(void *array, uint32_t count, uint32_t *room, size_t size)
{
    return gs_grow_by(array, count, 1, room, size);
}

#define PIECE_BYTES (16 * GS_KIB)

struct gs_arena_piece {
    struct gs_arena_piece *next;
    size_t used, bytes; /* of `memory` */
    alignas(max_align_t) unsigned char memory[];
};

/* An array that fills a piece of its own goes behind the one that is being used. */
static struct gs_arena_piece *add_piece(gs_arena *a, size_t bytes)
{
    struct gs_arena_piece *const p = gs_calloc(1, sizeof(*p) + GS_MAX(bytes, PIECE_BYTES));

    if (p == NULL)
        return NULL;
    p->bytes = GS_MAX(bytes, PIECE_BYTES);
    if (bytes >= PIECE_BYTES && a->piece != NULL) {
        p->next = a->piece->next;
        a->piece->next = p;
    } else {
        p->next = a->piece;
        a->piece = p;
    }
    return p;
}

void *gs_arena_take(gs_arena *a, size_t count, size_t size)
{
    struct gs_arena_piece *p = a->piece;
    uint64_t bytes;

    if (!gs_mul_u64(&bytes, count, size) || bytes > SIZE_MAX / 2) {
        a->is_short = true;
        return NULL;
    }
    bytes = gs_align_up(GS_MAX(bytes, 1), alignof(max_align_t));
    if ((p == NULL || p->bytes - p->used < bytes) && (p = add_piece(a, bytes)) == NULL) {
        a->is_short = true;
        return NULL;
    }
    p->used += bytes;
    return p->memory + (p->used - bytes);
}

void gs_arena_free(gs_arena *a)
{
    for (struct gs_arena_piece *p = a->piece, *next; p != NULL; p = next) {
        next = p->next;
        gs_free(p);
    }
    *a = (gs_arena){0};
}

void *gs_place_array(gs_placing *p, uint64_t count, uint64_t size)
{
    void *const at = p->memory != NULL ? p->memory + p->bytes : NULL;
    p->bytes = gs_align_up(p->bytes + count * size, p->align);
    return at;
}
