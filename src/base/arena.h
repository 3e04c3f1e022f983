/* arena.h - arrays that are taken one by one and given back together, as what a phase of planning needs is.
 *
 * Memory is gs_alloc's, counted as all is, in pieces of 16 KiB or of what one array takes. A failure is remembered: the
 * arrays of a phase are asked for without looking, and one look says whether all are there.
 * Threads: an arena belongs to one.
 */
#ifndef GS_BASE_ARENA_H
#define GS_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* {0}: nothing taken. */
typedef struct gs_arena {
    struct gs_arena_piece *piece; /* the one that is being used, before those that are full; owned */
    bool is_short;                /* an array was refused */
} gs_arena;

/* Zeroed, aligned for any type; stands until the arena is freed. NULL, and the arena is short, where there is none. */
void *gs_arena_take(gs_arena *a, size_t count, size_t size);
/* Gives all back; the arena is {0} then. */
void gs_arena_free(gs_arena *a);

#endif /* GS_BASE_ARENA_H */
