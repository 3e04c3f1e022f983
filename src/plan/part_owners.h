/* part_owners.h - which rank has the bytes that a plan's moves take.
 *
 * The tasks are followed in their order, as often as it takes until what is where at the beginning of each pass is what
 * a run finds there: once those of what is computed once, and the others in turn.
 */
#ifndef GS_PLAN_PART_OWNERS_H
#define GS_PLAN_PART_OWNERS_H

#include "plan/part.h"
#include "plan/plan.h"
#include "plan/spans.h"

/* Bytes of a move, from the first that it stands for on, and the rank that has them; who wants what the store has for
 * all, has it. */
typedef struct gs_piece {
    uint64_t begin, end;
    uint32_t rank;
} gs_piece;

typedef struct gs_owners {
    const gs_plan *plan;
    const gs_program *program;
    const gs_part_rows *rows;      /* NULL: whoever wants rows of the store has them */
    uint32_t ranks, interval_rows;
    gs_spans ring, resident, file; /* of all hosts, as if they were one; of the run's file */
    gs_piece *piece;               /* [pieces] of the copy that was followed last, ascending */
    uint32_t pieces, piece_room;
    uint32_t writer;               /* of the write that was followed last; GS_NONE: nobody wrote what it takes */
    uint16_t *readers;             /* [tasks] ranks that want a read of the store, or made what another read brings: a
                                    * bit each */
    gs_piece *loaded;              /* [residents][ranks] of what is loaded on the host: from the first byte of the file
                                    * to the last that the rank wants, or of those that are dealt has */
    uint32_t *seen;                /* [tasks] a number for the ranks of a move's pieces; 0: it was not followed yet */
} gs_owners;

/* Follows all passes; `o` says what the ranks and their rows are, and is 0 besides. GS_ENOMEM, GS_EUNSUPPORTED. */
gs_status gs_owners_open(gs_owners *o, const gs_plan *plan, const gs_program *program);
void gs_owners_close(gs_owners *o); /* all zero is allowed */
/* As it is before the first pass. */
gs_status gs_owners_begin(gs_owners *o);
/* A move of any kind: fills `piece` or `writer`. */
gs_status gs_owners_follow(gs_owners *o, uint32_t task);

/* Is it an array that is dealt to the ranks: of the store, or of those that the run keeps between passes? */
bool gs_owners_deal(const gs_owners *o, uint32_t file);
/* Who has the rows of an interval there. */
uint32_t gs_owners_of(const gs_owners *o, uint32_t interval);
/* Of a resident of the host's, the bytes that a rank loads: none where `end` is `begin`. */
gs_piece gs_owners_loaded(const gs_owners *o, uint32_t resident, uint32_t rank);

gs_status gs_owners_refuse(const char *what);

#endif /* GS_PLAN_PART_OWNERS_H */
