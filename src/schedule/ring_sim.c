/* ring_sim.c - next-fit placement in the staging ring, at planning time.
 *
 * The head runs round the ring, so a place is reused as late as can be and
 * reads run ahead as far as can be. Pieces that are still live (their last
 * user has not been emitted yet) are stepped over, not waited for.
 */
#include "schedule/ring_sim.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

void gs_ring_init(gs_ring_sim *r, uint64_t bytes)
{
    *r = (gs_ring_sim){.bytes = bytes};
}

void gs_ring_drop(gs_ring_sim *r)
{
    gs_free(r->piece);
    r->piece = NULL;
    r->pieces = r->before = r->room = 0;
}

void gs_ring_reset(gs_ring_sim *r)
{
    r->pieces = r->before = 0;
    r->head = 0;
    r->taken = 0;
}

void gs_ring_group(gs_ring_sim *r, uint64_t bytes)
{
    if (r->head + bytes > r->bytes)
        r->head = 0;
}

uint64_t gs_ring_lasting_begin(gs_ring_sim *r, uint64_t bytes)
{
    const uint64_t head = r->head;
    const bool turns = bytes <= r->bytes / 8; /* else one place for all of them: the room between is needed */
    if (bytes == 0)
        return UINT64_MAX;
    r->lasting_at_end = turns && !r->lasting_at_end;
    r->head = r->lasting_at_end ? gs_align_down(r->bytes - bytes, GS_BLOCK_BYTES) : 0;
    return turns ? head : UINT64_MAX;
}

void gs_ring_lasting_end(gs_ring_sim *r, uint64_t head)
{
    if (head != UINT64_MAX)
        r->head = head;
}

/* The i-th by offset. */
static gs_ring_piece *piece_at(const gs_ring_sim *r, uint32_t i)
{
    return &r->piece[i < r->before ? i : i + (r->room - r->pieces)];
}

/* First piece that ends after `offset`. */
static uint32_t piece_after(const gs_ring_sim *r, uint64_t offset)
{
    uint32_t low = 0, high = r->pieces;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (piece_at(r, mid)->offset + piece_at(r, mid)->bytes <= offset)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* End of the first live piece that meets [at, at + bytes), 0 where none does. */
static uint64_t blocked_until(const gs_ring_sim *r, uint64_t at, uint64_t bytes)
{
    for (uint32_t i = piece_after(r, at); i < r->pieces && piece_at(r, i)->offset < at + bytes; i++)
        if (piece_at(r, i)->release == GS_NONE)
            return piece_at(r, i)->offset + piece_at(r, i)->bytes;
    return 0;
}

static gs_status find_place(gs_ring_sim *r, uint64_t bytes, uint64_t *at)
{
    bool wrapped = false;
    uint64_t head = r->head;

    if (bytes > r->bytes)
        return GS_EAGAIN;
    for (;;) {
        if (head + bytes > r->bytes) {
            if (wrapped)
                return GS_EAGAIN;
            wrapped = true;
            head = 0;
        }
        const uint64_t until = blocked_until(r, head, bytes);
        if (until == 0)
            break;
        head = until;
    }
    *at = head;
    return GS_OK;
}

static gs_status grow(gs_ring_sim *r)
{
    if (r->pieces + 3 <= r->room)
        return GS_OK;
    const uint32_t room = r->room ? r->room * 2 : 64;
    gs_ring_piece *piece = gs_realloc(r->piece, room * sizeof(*piece));
    if (piece == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    memmove(&piece[r->before + room - r->pieces], &piece[r->before + r->room - r->pieces],
            (r->pieces - r->before) * sizeof(*piece));
    r->piece = piece;
    r->room = room;
    return GS_OK;
}

/* The unused part of the array comes to stand behind the first `count` pieces. */
static void open_behind(gs_ring_sim *r, uint32_t count)
{
    const uint32_t unused = r->room - r->pieces;
    gs_ring_piece *const p = r->piece;

    if (count < r->before)
        memmove(&p[count + unused], &p[count], (r->before - count) * sizeof(*p));
    else
        memmove(&p[r->before], &p[r->before + unused], (count - r->before) * sizeof(*p));
    r->before = count;
}

static void append(gs_ring_sim *r, gs_ring_piece p)
{
    r->piece[r->before++] = p;
    r->pieces++;
}

gs_status gs_ring_take(gs_ring_sim *r, uint64_t bytes, uint64_t *offset, uint32_t *waits, uint32_t room,
                       uint32_t *wait_count)
{
    uint64_t at = 0;
    gs_status st;

    bytes = gs_align_up(GS_MAX(bytes, 1), GS_BLOCK_BYTES);
    if ((st = grow(r)) != GS_OK || (st = find_place(r, bytes, &at)) != GS_OK)
        return st;

    /* Dead pieces below the new one go; what sticks out of it on either side
     * stays, so that whoever takes those bytes later waits as well. */
    const uint32_t first = piece_after(r, at);
    uint32_t last = first;
    gs_ring_piece before = {0}, tail = {0};
    for (; last < r->pieces && piece_at(r, last)->offset < at + bytes; last++) {
        const gs_ring_piece p = *piece_at(r, last);
        if (*wait_count < room)
            waits[(*wait_count)++] = p.release;
        else
            return GS_EAGAIN; /* never with sane piece sizes; a bigger ring has bigger pieces */
        if (p.offset < at) {
            before = p;
            before.bytes = at - p.offset;
        }
        if (p.offset + p.bytes > at + bytes) {
            tail = p;
            tail.bytes = p.offset + p.bytes - (at + bytes);
            tail.offset = at + bytes;
        }
    }
    open_behind(r, first);
    r->pieces -= last - first;
    if (before.bytes)
        append(r, before);
    append(r, (gs_ring_piece){.offset = at, .bytes = bytes, .release = GS_NONE});
    if (tail.bytes)
        append(r, tail);
    r->head = at + bytes;
    r->taken += bytes;
    r->most = GS_MAX(r->most, r->taken);
    *offset = at;
    return GS_OK;
}

void gs_ring_release(gs_ring_sim *r, uint64_t offset, uint32_t task)
{
    const uint32_t i = piece_after(r, offset);
    if (i < r->pieces && piece_at(r, i)->offset == offset && piece_at(r, i)->release == GS_NONE)
        piece_at(r, i)->release = task;
}

bool gs_ring_users(const gs_ring_sim *r, uint64_t offset, uint64_t bytes, uint32_t *waits, uint32_t room,
                   uint32_t *wait_count)
{
    for (uint32_t i = piece_after(r, offset); i < r->pieces && piece_at(r, i)->offset < offset + bytes; i++) {
        if (piece_at(r, i)->release == GS_NONE || *wait_count == room)
            return false;
        waits[(*wait_count)++] = piece_at(r, i)->release;
    }
    return true;
}
