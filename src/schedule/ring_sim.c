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

/* Pieces of a lot that is no more: kept for the next one. */
static void spare(gs_ring_sim *r, gs_ring_piece *piece)
{
    gs_free(r->spare);
    r->spare = piece;
}

static void drop_pieces(gs_ring_sim *r)
{
    while (r->lots > 0)
        spare(r, r->lot[--r->lots].piece);
}

void gs_ring_drop(gs_ring_sim *r)
{
    drop_pieces(r);
    spare(r, NULL);
    gs_free(r->lot);
    r->lot = NULL;
    r->room = 0;
}

void gs_ring_reset(gs_ring_sim *r)
{
    drop_pieces(r);
    r->head = 0;
    r->taken = r->live = 0;
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

/* ---- the pieces, by offset ---- */

static gs_ring_piece *piece_at(const gs_ring_sim *r, gs_ring_spot s) { return &r->lot[s.lot].piece[s.i]; }

static gs_ring_spot next_spot(const gs_ring_sim *r, gs_ring_spot s)
{
    return s.i + 1 < r->lot[s.lot].pieces ? (gs_ring_spot){s.lot, s.i + 1} : (gs_ring_spot){s.lot + 1, 0};
}

/* Is there a piece at `s`, and does it begin before `end`? */
static bool begins_before(const gs_ring_sim *r, gs_ring_spot s, uint64_t end)
{
    return s.lot < r->lots && piece_at(r, s)->offset < end;
}

static uint64_t end_of(const gs_ring_piece *p) { return p->offset + p->bytes; }

/* Is `s` the first piece that ends after `offset`? */
static bool is_after(const gs_ring_sim *r, gs_ring_spot s, uint64_t offset)
{
    if (s.lot >= r->lots || s.i >= r->lot[s.lot].pieces || end_of(piece_at(r, s)) <= offset)
        return false;
    if (s.i == 0 && s.lot == 0)
        return true;
    const gs_ring_spot before = s.i > 0 ? (gs_ring_spot){s.lot, s.i - 1}
                                        : (gs_ring_spot){s.lot - 1, r->lot[s.lot - 1].pieces - 1};
    return end_of(piece_at(r, before)) <= offset;
}

static gs_ring_spot search(const gs_ring_sim *r, uint64_t offset)
{
    uint32_t low = 0, high = r->lots;
    GS_BISECT(low, high, end_of(&r->lot[middle].piece[r->lot[middle].pieces - 1]) <= offset);
    gs_ring_spot s = {low, 0};
    high = low < r->lots ? r->lot[low].pieces - 1 : 0; /* the last one does */
    GS_BISECT(s.i, high, end_of(&r->lot[low].piece[middle]) <= offset);
    return s;
}

/* First piece that ends after `offset`: mostly in front of all, or at `near` or behind it. */
static gs_ring_spot piece_after(const gs_ring_sim *r, uint64_t offset, gs_ring_spot near)
{
    const gs_ring_lot *const last = r->lots > 0 ? &r->lot[r->lots - 1] : NULL;
    if (last == NULL || end_of(&last->piece[last->pieces - 1]) <= offset)
        return (gs_ring_spot){r->lots, 0};
    if (is_after(r, near, offset))
        return near;
    if (near.lot < r->lots && is_after(r, near = next_spot(r, near), offset))
        return near;
    return search(r, offset);
}

/* A new lot in front of lot `at`, without pieces. */
static gs_status open_lot(gs_ring_sim *r, uint32_t at)
{
    gs_ring_piece *const piece = r->spare != NULL ? r->spare : gs_malloc_array(GS_RING_LOT, sizeof(*piece));
    r->spare = NULL;
    if (piece == NULL || !gs_grow(&r->lot, r->lots, &r->room, sizeof(*r->lot))) {
        gs_free(piece);
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    }
    memmove(&r->lot[at + 1], &r->lot[at], (r->lots++ - at) * sizeof(*r->lot));
    r->lot[at] = (gs_ring_lot){.piece = piece};
    return GS_OK;
}

/* Where a piece in front of `s` has room. The end of the lot before is as good as the beginning of a lot: as the head
 * goes on, that one fills while this one empties. */
static gs_status make_room(gs_ring_sim *r, gs_ring_spot *s)
{
    if (s->i == 0 && s->lot > 0 && r->lot[s->lot - 1].pieces < GS_RING_LOT)
        *s = (gs_ring_spot){s->lot - 1, r->lot[s->lot - 1].pieces};
    if (s->i == 0 && (s->lot == r->lots || r->lot[s->lot].pieces == GS_RING_LOT))
        return open_lot(r, s->lot);
    if (r->lot[s->lot].pieces < GS_RING_LOT)
        return GS_OK;
    GS_TRY(open_lot(r, s->lot + 1));
    gs_ring_lot *const full = &r->lot[s->lot];
    full[1].pieces = GS_RING_LOT - s->i;
    memcpy(full[1].piece, &full->piece[s->i], full[1].pieces * sizeof(*full->piece));
    full->pieces = s->i;
    return GS_OK;
}

/* In front of `s`, which then is the spot behind it. */
static gs_status insert(gs_ring_sim *r, gs_ring_spot *s, gs_ring_piece p)
{
    GS_TRY(make_room(r, s));
    gs_ring_lot *const lot = &r->lot[s->lot];
    memmove(&lot->piece[s->i + 1], &lot->piece[s->i], (lot->pieces++ - s->i) * sizeof(p));
    lot->piece[s->i] = p;
    *s = next_spot(r, *s);
    return GS_OK;
}

/* `count` pieces from `s` on, which then is the spot of the next one. */
static void take_out(gs_ring_sim *r, gs_ring_spot *s, uint32_t count)
{
    while (count > 0) {
        gs_ring_lot *const lot = &r->lot[s->lot];
        const uint32_t here = GS_MIN(count, lot->pieces - s->i);
        memmove(&lot->piece[s->i], &lot->piece[s->i + here], (lot->pieces - s->i - here) * sizeof(*lot->piece));
        lot->pieces -= here;
        count -= here;
        if (lot->pieces == 0) {
            spare(r, lot->piece);
            memmove(lot, lot + 1, (--r->lots - s->lot) * sizeof(*lot));
        } else if (s->i == lot->pieces) {
            *s = (gs_ring_spot){s->lot + 1, 0};
        }
    }
}

/* ---- places ---- */

/* End of the first live piece that meets [at, at + bytes), 0 where none does. Sets r->put to the first of all that end
 * after `at`. */
static uint64_t blocked_until(gs_ring_sim *r, uint64_t at, uint64_t bytes)
{
    r->put = piece_after(r, at, r->put);
    for (gs_ring_spot s = r->put; begins_before(r, s, at + bytes); s = next_spot(r, s))
        if (piece_at(r, s)->release == GS_NONE)
            return end_of(piece_at(r, s));
    return 0;
}

static gs_status find_place(gs_ring_sim *r, uint64_t bytes, uint64_t *at)
{
    bool wrapped = false;
    uint64_t head = r->head;

    if (bytes > r->bytes)
        return GS_ENOFIT;
    for (;;) {
        if (head + bytes > r->bytes) {
            if (wrapped)
                return GS_ENOFIT;
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

gs_status gs_ring_take(gs_ring_sim *r, uint64_t bytes, uint64_t *offset, uint32_t *waits, uint32_t room,
                       uint32_t *wait_count)
{
    uint64_t at = 0;

    bytes = gs_align_up(GS_MAX(bytes, 1), GS_BLOCK_BYTES);
    GS_TRY(find_place(r, bytes, &at));

    /* Dead pieces below the new one go; what sticks out of it on either side
     * stays, so that whoever takes those bytes later waits as well. */
    gs_ring_spot to = r->put;
    uint32_t covered = 0;
    gs_ring_piece before = {0}, tail = {0};
    for (gs_ring_spot s = to; begins_before(r, s, at + bytes); s = next_spot(r, s), covered++) {
        const gs_ring_piece p = *piece_at(r, s);
        if (*wait_count < room)
            waits[(*wait_count)++] = p.release;
        else
            return GS_ENOFIT; /* never with sane piece sizes; a bigger ring has bigger pieces */
        if (p.offset < at) {
            before = p;
            before.bytes = at - p.offset;
        }
        if (end_of(&p) > at + bytes) {
            tail = p;
            tail.bytes = end_of(&p) - (at + bytes);
            tail.offset = at + bytes;
        }
    }
    take_out(r, &to, covered);
    if (before.bytes)
        GS_TRY(insert(r, &to, before));
    GS_TRY(insert(r, &to, (gs_ring_piece){.offset = at, .bytes = bytes, .release = GS_NONE}));
    if (tail.bytes)
        GS_TRY(insert(r, &to, tail));
    r->put = to;
    r->head = at + bytes;
    r->taken += bytes;
    r->most = GS_MAX(r->most, r->taken);
    r->live += bytes;
    r->live_most = GS_MAX(r->live_most, r->live);
    *offset = at;
    return GS_OK;
}

void gs_ring_release(gs_ring_sim *r, uint64_t offset, uint32_t task)
{
    gs_ring_spot s = r->released = piece_after(r, offset, r->released);
    if (s.lot == r->lots || piece_at(r, s)->offset != offset || piece_at(r, s)->release != GS_NONE)
        return;
    r->live -= piece_at(r, s)->bytes;
    if (r->bytes == GS_RING_ENDLESS)
        take_out(r, &s, 1);
    else
        piece_at(r, s)->release = task;
}

bool gs_ring_users(const gs_ring_sim *r, uint64_t offset, uint64_t bytes, uint32_t *waits, uint32_t room,
                   uint32_t *wait_count)
{
    for (gs_ring_spot s = piece_after(r, offset, r->put); begins_before(r, s, offset + bytes); s = next_spot(r, s)) {
        if (piece_at(r, s)->release == GS_NONE || *wait_count == room)
            return false;
        waits[(*wait_count)++] = piece_at(r, s)->release;
    }
    return true;
}
