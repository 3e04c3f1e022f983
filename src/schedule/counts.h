/* counts.h - was this plan counted before?
 *
 * Whoever looks for a plan, or for the least budget, asks for the same counts again and again: of the same blocks with
 * the same rings, beside another budget, by another search. A count is known by a checksum of all that it depends on,
 * and what it found holds for every budget beside which its tables have room, or have none, as they had then.
 */
#ifndef GS_SCHEDULE_COUNTS_H
#define GS_SCHEDULE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#define GS_COUNTS 256u

typedef struct gs_count {
    uint64_t question;
    bool whole;             /* there is such a plan */
    bool crammed;           /* it was given up for its tables */
    uint32_t tasks;
    uint64_t tables;        /* bytes of its tables, or of those that it had when it was given up */
    uint64_t taken, refused; /* with shares from `taken` on and below `refused`, the same chunks come together */
    uint64_t staged, live, live_staging; /* gs_choice's, of one that is whole; */
    uint32_t joined, short_of; /* and in any case */
} gs_count;

typedef struct gs_counts {
    uint32_t next; /* takes the place of the oldest */
    gs_count count[GS_COUNTS];
} gs_counts;

/* Of this question, beside chunks that come together within `share` bytes, one that is crammed where tables have room
 * for `most` bytes, or one that is not; NULL: it is not known. */
static inline const gs_count *gs_counts_find(const gs_counts *c, uint64_t question, uint64_t share, uint64_t most,
                                             bool crammed)
{
    for (uint32_t k = 0; c != NULL && question != 0 && k < GS_COUNTS; k++) {
        const gs_count *const x = &c->count[k];
        if (x->question == question && x->taken <= share && share < x->refused && (x->tables > most) == crammed &&
            (crammed || !x->crammed))
            return x;
    }
    return NULL;
}

static inline void gs_counts_note(gs_counts *c, const gs_count *count)
{
    if (c != NULL && count->question != 0)
        c->count[c->next++ % GS_COUNTS] = *count;
}

#endif /* GS_SCHEDULE_COUNTS_H */
