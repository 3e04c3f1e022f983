/* ring_sim.h - where does each staged piece stand, and what must it wait for? Units: bytes and rows. */
#ifndef GS_SCHEDULE_RING_SIM_H
#define GS_SCHEDULE_RING_SIM_H

#include "base/size.h"
#include "base/status.h"
#include "program/program.h" /* GS_NONE */

/* Of this room alone: it does not fit, in a ring, an arena or a budget; with another one it may. */
#define GS_ENOFIT ((gs_status)-64)

/* The ring, simulated while tasks are emitted. A piece is live from its
 * allocation until gs_ring_release() names the task after which its bytes are free. */
typedef struct gs_ring_piece {
    uint64_t offset, bytes;
    uint32_t release; /* task, or GS_NONE while live */
} gs_ring_piece;

/* So many of them at most: what comes or goes moves the rest of one lot, however many there are in all. */
#define GS_RING_LOT 128
typedef struct gs_ring_lot {
    gs_ring_piece *piece; /* [GS_RING_LOT] sorted by offset, disjoint */
    uint32_t pieces;      /* not 0 */
} gs_ring_lot;

/* Of a ring of so many bytes no place is ever taken again, so pieces are forgotten when they are released. */
#define GS_RING_ENDLESS (UINT64_MAX / 4)

/* Piece `i` of a lot; behind the last one, `lot` is the number of lots and `i` 0. */
typedef struct gs_ring_spot {
    uint32_t lot, i;
} gs_ring_spot;

typedef struct gs_ring_sim {
    uint64_t bytes, head;
    uint64_t taken, most; /* bytes taken since it was reset; the most of any time between two resets */
    uint64_t live, live_most; /* bytes of live pieces; the most that there were */
    bool lasting_at_end; /* where the last lasting pieces went */
    gs_ring_lot *lot;    /* [room] sorted by offset */
    uint32_t lots, room;
    gs_ring_piece *spare;       /* of a lot that there was; NULL: none */
    gs_ring_spot put, released; /* where to look first: the last piece taken, or the one behind it; the last released */
} gs_ring_sim;

void gs_ring_init(gs_ring_sim *r, uint64_t bytes);
void gs_ring_drop(gs_ring_sim *r);
/* Forgets all pieces: nothing that was placed is waited for any more. */
void gs_ring_reset(gs_ring_sim *r);
/* The next allocations, `bytes` in all, will be live together. They are kept in one stretch, so that they do not leave
 * the ring in pieces too small for each other. */
void gs_ring_group(gs_ring_sim *r, uint64_t bytes);
/* Between the two, `bytes` in all are taken that outlive many pieces taken after them. They stand at the
 * ring's ends in turn, so that they leave the middle in one piece and need not wait for those before
 * them; begin gives what end wants. */
uint64_t gs_ring_lasting_begin(gs_ring_sim *r, uint64_t bytes);
void gs_ring_lasting_end(gs_ring_sim *r, uint64_t head);
/* Next fit, skipping what is live. Appends to `waits` (of `room` entries) the tasks
 * that must be done before the place may be written. GS_ENOFIT: no place; GS_ENOMEM. */
gs_status gs_ring_take(gs_ring_sim *r, uint64_t bytes, uint64_t *offset, uint32_t *waits, uint32_t room,
                       uint32_t *wait_count);
/* `offset` is what gs_ring_take() gave; a second release is ignored. */
void gs_ring_release(gs_ring_sim *r, uint64_t offset, uint32_t task);
/* Appends to `waits` the tasks after which [offset, +bytes) is free. False where a part of it is live, or there is no
 * room. */
bool gs_ring_users(const gs_ring_sim *r, uint64_t offset, uint64_t bytes, uint32_t *waits, uint32_t room,
                   uint32_t *wait_count);

#endif /* GS_SCHEDULE_RING_SIM_H */
