/* ranks.h - the processes of one run, on one machine or several: how many, which one this is, and what they tell each
 * other.
 *
 * A process is alone unless something like mpirun started it beside others, and then all of this is nothing. It is the
 * one room that calls MPI (module.h), which is loaded where it is needed.
 *
 * A *meeting* is a call that every rank makes, in the same order; it ends when all have come. A rank that fails before
 * it says so with gs_ranks_agree(), which meets the others wherever they are: their meeting fails then with its words.
 * A rank that no longer answers ends the others, with a line that names it: who waits for it need not watch.
 */
#ifndef GS_RANKS_RANKS_H
#define GS_RANKS_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define GS_RANKS_MOST 16u

/* Joins the ranks that this process was started with. Does nothing where there are none, or the second time.
 * GS_EUNSUPPORTED: the program is not built for that; which rank it is is known all the same. GS_EINVAL: there are too
 * many. The process leaves them when it exits, which waits for all; one that is killed ends the others. */
gs_status gs_ranks_open(void);
uint32_t gs_ranks_count(void); /* 1: alone */
uint32_t gs_ranks_self(void);
uint32_t gs_ranks_on_host(void); /* of them, on this machine, */
uint32_t gs_ranks_place_on_host(void); /* and which of these this one is */
/* Threads of this process: as many as are said, or for 0 its share of the machine's processors. */
uint32_t gs_ranks_threads(uint32_t said);

/* From now on a rank that does not answer for so many seconds ends all; 0: none does. */
void gs_ranks_watch(double seconds);
/* Ends all ranks now, with a line on stderr that names this one. */
void gs_ranks_abort(const char *why) __attribute__((noreturn));

/* ---- meetings ---- */

/* What this rank has come to. Others may be at a meeting of any kind. GS_OK where all are; else each fails with what
 * the first of them says. After that no one meets. */
gs_status gs_ranks_agree(gs_status st);
/* True once that was said: all ranks know of it. */
bool gs_ranks_have_failed(void);
/* `all` [count][bytes] gets what each has. */
gs_status gs_ranks_gather(void *all, const void *own, uint64_t bytes);
/* What rank 0 has. */
gs_status gs_ranks_share(void *x, uint64_t bytes);
/* What rank `rank` has. */
gs_status gs_ranks_share_of(uint32_t rank, void *x, uint64_t bytes);
/* A meeting. Each gives the others its part of x: bytes first[rank] to first[rank + 1] of it. */
gs_status gs_ranks_share_parts(void *x, const uint64_t *first);
/* The bits that any of them has. */
gs_status gs_ranks_unite(uint64_t *x, uint64_t count);
gs_status gs_ranks_sum_u64(uint64_t *x, uint64_t count);
/* Sums beyond UINT32_MAX are that. */
gs_status gs_ranks_sum_u32(uint32_t *x, uint64_t count);
/* The least that any of them has. */
gs_status gs_ranks_least_u8(uint8_t *x, uint64_t count);
/* x[0] + x[1] + ..., in the order of the ranks, so that all have the same bits. */
gs_status gs_ranks_sum_f32(float *x, uint64_t count);
gs_status gs_ranks_sum_f64(double *x, uint64_t count);
/* Of several ranks, both in one meeting where they are few. */
gs_status gs_ranks_sum_both(double *x, uint64_t doubles, float *y, uint64_t floats);

/* ---- messages ---- */

/* Of memory that goes or comes: bytes from its first on. */
typedef struct gs_ranks_piece {
    uint64_t offset, bytes;
} gs_ranks_piece;

/* A message that is sent or received as often as it is begun. */
typedef struct gs_ranks_message {
    uint64_t request; /* MPI's */
} gs_ranks_message;

/* Makes one that sends pieces of `memory` to a rank, or receives them: there as many bytes are sent in the same order.
 * It is to be dropped. GS_EIO. */
gs_status gs_ranks_make(gs_ranks_message *m, bool send, uint32_t rank, void *memory, const gs_ranks_piece *piece,
                        uint32_t pieces);
/* Not under way. */
void gs_ranks_drop(gs_ranks_message *m);
/* Begins one that is not under way. Messages between two ranks are taken in the order in which they are begun. */
gs_status gs_ranks_begin(gs_ranks_message *m);
/* Is it over? */
gs_status gs_ranks_test(gs_ranks_message *m, bool *done);
/* A meeting. sent[r] bytes at out + r * room go to rank r, and come[r] of it to in + r * room, `room` bytes at most;
 * this rank's own stay in `out`. *all: bytes of all ranks. GS_EIO, before any comes, where it is more than that. */
gs_status gs_ranks_swap(void *out, const uint64_t *sent, void *in, uint64_t *come, uint64_t room, uint64_t *all);
/* How long a message takes that has no bytes, how many more come in a second, where each rank sends to the next one,
 * and how long a meeting takes: the worst of all, the same for each, powers of two. */
typedef struct gs_ranks_network {
    double seconds, bps, meeting;
} gs_ranks_network;
/* A meeting, the first time. Of ranks of one machine a guess. */
gs_status gs_ranks_measure(gs_ranks_network *out);
/* Sends or receives bytes once, and waits for that. */
gs_status gs_ranks_pass(bool send, uint32_t rank, void *memory, uint64_t bytes);

#endif /* GS_RANKS_RANKS_H */
