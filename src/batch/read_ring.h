/* read_ring.h - runs of blocks of one file, read into a ring of memory in the order in which they are asked for, and
 * taken in the same order.
 *
 *     put ... put                                   front ... pop
 *     ------------> [ waits | under way | came ] ------------->
 *
 * A thread of its own hands them to the kernel and takes them back, so that the disk has work whatever the caller does:
 * a call of io_uring sleeps where the disk's queue is full. All calls are one thread's at a time. Nothing is allocated
 * after opening. A ring does not move in memory while it is open.
 */
#ifndef GS_BATCH_READ_RING_H
#define GS_BATCH_READ_RING_H

#include <pthread.h>

#include "base/status.h"
#include "io/io.h"

typedef struct gs_read_run {
    uint64_t begin;  /* bytes of the file, a multiple of GS_BLOCK_BYTES */
    uint32_t blocks; /* of GS_BLOCK_BYTES */
    uint32_t place;  /* block of the ring's memory */
    uint32_t mark;   /* the caller's */
    bool came;       /* under the lock */
    gs_status status; /* of its read, once it came */
} gs_read_run;

typedef struct gs_read_ring {
    /* set by gs_read_ring_open() */
    gs_io *io;           /* the thread's, while it runs */
    uint32_t file;
    uint8_t *memory;
    uint64_t bytes;
    gs_read_run *run;    /* [capacity], a ring as well: */
    uint32_t capacity;
    bool locks, started; /* there are these, and the thread */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, news; /* what the thread waits for, and the caller */
    /* the caller's */
    uint64_t head;       /* of the memory: where the next run goes */
    uint32_t ready;      /* of the first runs, so many have come, as was seen last */
    /* under the lock */
    uint32_t first, count; /* runs */
    uint32_t waits;      /* of them, the last ones, which are not under way yet */
    uint32_t under_way;
    uint32_t wanted;     /* the caller waits for this one; GS_READ_RING_NONE: it does not wait */
    bool quit;
} gs_read_ring;

#define GS_READ_RING_NONE UINT32_MAX

/* Bytes of a run in a ring of so many, at the most, that leave room for another. */
uint64_t gs_read_ring_most(uint64_t bytes);
/* Bytes that one takes: as many runs have room as `bytes` has blocks, but no more than `runs`. */
uint64_t gs_read_ring_bytes(uint64_t bytes, uint32_t runs);
/* GS_ENOMEM and what opening `path` gives. Release with gs_read_ring_close() in any case, which waits for what is under
 * way. */
gs_status gs_read_ring_open(gs_read_ring *r, const char *path, uint64_t bytes, uint32_t runs);
void gs_read_ring_close(gs_read_ring *r);

/* Asks for a run of no more bytes than the ring has. False: there is no room yet, which there is when it is empty. */
bool gs_read_ring_put(gs_read_ring *r, uint64_t begin, uint64_t bytes, uint32_t mark);
/* The first run and its bytes, which stand until it is popped; there is one. Blocks. The status of its read. */
gs_status gs_read_ring_front(gs_read_ring *r, const gs_read_run **run, const uint8_t **bytes);
void gs_read_ring_pop(gs_read_ring *r);
/* Gives up what waits, waits for what is under way and forgets it. */
void gs_read_ring_drain(gs_read_ring *r);

#endif /* GS_BATCH_READ_RING_H */
