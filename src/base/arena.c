#include "base/arena.h"

#include <stdalign.h>

#include "base/alloc.h"
#include "base/size.h"

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
