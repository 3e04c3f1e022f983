/* alloc.h - every byte of the heap that gnnstream takes, counted.
 *
 * All rooms allocate through these functions (third-party libraries do not).
 * The counters answer "how much is live, and how much was it at worst?"; the
 * freeze answers "did anything allocate inside an epoch?"; the failure hook
 * lets a test make the n-th allocation fail. Sizes are bytes.
 * Threads: all functions may be called from any thread.
 */
#ifndef GS_BASE_ALLOC_H
#define GS_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL when memory is short or count * size overflows; gs_fail() is not called
 * (the caller knows what the memory was for). A size of 0 gives a pointer that
 * may be freed. gs_calloc() zeroes. */
void *gs_malloc(size_t size);
void *gs_calloc(size_t count, size_t size);
void *gs_realloc(void *p, size_t size);
void *gs_malloc_array(size_t count, size_t size);
char *gs_strdup(const char *text);
/* NULL is allowed. */
void gs_free(const void *p);

/* Page-aligned anonymous memory, zeroed, for buffers that the kernel reads
 * into (O_DIRECT) and that a device copies from. Counted like the heap.
 * Free with gs_free_pages() and the same size. NULL when memory is short. */
void *gs_alloc_pages(size_t bytes);
uint64_t gs_alloc_pages_bytes(size_t bytes); /* that it takes: whole huge pages from the size of one on */
void gs_free_pages(void *p, size_t bytes);
/* Gives up the contents and the memory behind them until it is touched again, when it reads as 0. Buffers that are
 * registered with the kernel may not be among it. NULL is allowed. */
void gs_drop_pages(void *p, size_t bytes);

/* Gives memory that was freed back to the system, where the C library kept it. */
void gs_alloc_trim(void);
/* From now on blocks of 1 MiB and more go back when they are freed, and grow without a copy; for the process, whoever
 * allocates; and of the heap's free end no more stays than so much. Left alone, glibc keeps ever larger ones (up to
 * 32 MiB), and of an array that grew in the heap the holes: twice what is live. */
void gs_alloc_map_large(void);

/* Blocks of 1 MiB and more that are freed from now on stay in memory for the next ones, where they and what is live are
 * no more than `most` bytes; the oldest make room for new ones. 0: none do, and those that stayed go back. For the
 * process, whoever allocates. */
void gs_alloc_keep_large(uint64_t most);
uint64_t gs_alloc_kept_bytes(void); /* that stay so, and are not live */
/* Bytes that a block has, which may be more than were asked for. */
uint64_t gs_alloc_room(const void *p);

uint64_t gs_alloc_live_bytes(void);
uint64_t gs_alloc_peak_bytes(void);

/* Between freeze(true) and freeze(false) every allocation is counted as a
 * violation (it still succeeds); the count says how many there were. */
void gs_alloc_freeze(bool on);
uint64_t gs_alloc_frozen_count(void);

/* Test hook: the n-th allocation from now (1 = the next) fails; 0 = never. */
void gs_alloc_fail_nth(uint64_t n);

/* ---- what goes when its block ends -------------------------------------- */

/* What is declared with GS_ENDS(fn) is given to `fn`, by its address, on every way out of its block, the last declared
 * first; with GS_FREED it is gs_malloc()'s. */
#define GS_ENDS(fn) __attribute__((cleanup(fn)))
#define GS_FREED GS_ENDS(gs_free_at)
static inline void gs_free_at(const void *pointer) { gs_free(*(const void *const *)pointer); }
/* The same of a handle, whose function takes it by value, or NULL: fn_at() for GS_ENDS(). */
#define GS_ENDS_BY(type, fn) \
    static inline void fn##_at(type *const *handle) { fn(*handle); }
/* What such a pointer points to, for its new owner: the pointer is NULL then, and nothing of it goes. */
#define GS_HANDED_OVER(pointer)                  \
    ({                                           \
        __typeof__(pointer) handed_ = (pointer); \
        (pointer) = NULL;                        \
        handed_;                                 \
    })

/* ---- arrays that grow -------------------------------------------------- */

/* Arrays that get longer one item at a time. */

/* Makes room for one more item behind the `count` that there are. `array` points to the pointer to the items, of `size`
 * bytes each; *room is how many fit, 0 (and the pointer NULL) before the first. Room doubles. False, with nothing
 * changed, when memory is short; gs_fail() is not called. Free the array with gs_free(). */
bool gs_grow(void *array, uint32_t count, uint32_t *room, size_t size);
/* The same for `more` items. */
bool gs_grow_by(void *array, uint32_t count, uint32_t more, uint32_t *room, size_t size);

/* -- arrays that are taken one by one and given back together, as what a phase of planning needs is.
 *
 * Memory is gs_alloc's, counted as all is, in pieces of 16 KiB or of what one array takes. A failure is remembered: the
 * arrays of a phase are asked for without looking, and one look says whether all are there.
 * Threads: an arena belongs to one.
 */

/* {0}: nothing taken. */
typedef struct gs_arena {
    struct gs_arena_piece *piece; /* the one that is being used, before those that are full; owned */
    bool is_short;                /* an array was refused */
} gs_arena;

/* Zeroed, aligned for any type; stands until the arena is freed. NULL, and the arena is short, where there is none. */
void *gs_arena_take(gs_arena *a, size_t count, size_t size);
/* Gives all back; the arena is {0} then. */
void gs_arena_free(gs_arena *a);

/* -- arrays that lie one behind the other in memory which the caller gets in one piece: laid out twice, first without
 * memory, which says how much they take. */
typedef struct gs_placing {
    unsigned char *memory; /* NULL: bytes are counted, and every array is NULL */
    uint64_t bytes, align; /* so far; of each array, a power of two */
} gs_placing;

void *gs_place_array(gs_placing *p, uint64_t count, uint64_t size);

#endif /* GS_BASE_ALLOC_H */
