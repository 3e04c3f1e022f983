/* cache.h - what stays in a given amount of memory while an epoch runs, when all its accesses are known.
 *
 * Units (an interval of an array, a chunk) are read in a fixed order, epoch after epoch. A *hold* keeps a unit from one
 * access to its next one, which is then a hit. Which holds: those that Belady's rule leaves when
 * memory is short, that is, what is used furthest ahead goes, or does not come in the first place; the epoch's end is
 * no end, as the next epoch is the same. Then each run of holds of a unit gets an address; those that find none are
 * dropped.
 *
 * Once a plan, for some ten thousand accesses; bytes are multiples of a block.
 */
#ifndef GS_SCHEDULE_CACHE_H
#define GS_SCHEDULE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/status.h"

#define GS_CACHE_NOWHERE UINT64_MAX

typedef struct gs_cache_access {
    uint32_t unit;
    bool whole;     /* false: reads parts of the unit, so that it cannot bring it in */
    uint64_t bytes; /* of the unit in memory, the same at each access */
    uint64_t cost;  /* bytes that it reads where the unit is not there */
    uint32_t until; /* the last access that comes before its use is over; below its own number: it is over at once */
    bool made;      /* the unit is made anew here: nothing of it is held before */
    bool serves;    /* others take it from here if it is there: it is not brought for them */
    bool renewed;   /* each epoch has other bytes of it: nothing is held beyond its end */
} gs_cache_access;

/* A unit that is there before the first access and stays: each access of it is a hit. */
typedef struct gs_cache_fixed {
    uint32_t unit; /* UINT32_MAX: none, the place alone is taken */
    uint64_t place, bytes;
} gs_cache_fixed;

typedef struct gs_cache_plan {
    uint32_t accesses;
    uint64_t *place;     /* [accesses] where the unit stands at this access, or GS_CACHE_NOWHERE */
    bool *hit;           /* [accesses] it is there already; else, with a place, it is read into it */
    bool *stays;         /* [accesses] it is kept until its next access, in this epoch or the next */
    uint64_t read_bytes; /* of one epoch */
    uint64_t used_bytes; /* most address + bytes */
    uint64_t short_of;   /* bytes of stays that found no address */
    gs_arena arrays;
} gs_cache_plan;

/* What an access that reads parts of a unit does about the rest of it. */
typedef enum gs_cache_parts {
    GS_PARTS_PASS,    /* nothing: what is read does not stay */
    GS_PARTS_WHOLE,   /* it may bring all of it */
    GS_PARTS_BY_SIZE, /* it may, and units of less than half the largest one's bytes stand at the memory's other end:
                       * between large ones they leave holes, and a large one waits for the last of them */
} gs_cache_parts;

typedef struct gs_cache_input {
    const gs_cache_access *access;
    uint32_t accesses;
    uint32_t units;              /* are numbered below this */
    uint64_t capacity;           /* bytes, with those of what is fixed */
    gs_cache_parts parts;
    bool across;                 /* the next epoch follows, with the same memory as it is; else only what is fixed is
                                  * there at the beginning */
    const gs_cache_fixed *fixed; /* [fixeds] by place, within the capacity and apart */
    uint32_t fixeds;
} gs_cache_input;

/* GS_ENOMEM. The caller drops *out. */
gs_status gs_cache_plan_make(gs_cache_plan *out, const gs_cache_input *input);
void gs_cache_plan_drop(gs_cache_plan *p);

/* -- addresses for units that stay in a memory for known times, by first fit in the order of time.
 *
 * Those that are there always come first, then those that stay over the epoch's end, then the others by their first
 * access. Each gets the lowest address at which it meets none of those before it; `by_size`, those of less than half
 * the largest one's bytes the highest. N of them take O(N log N), and as many steps again as there are places over the
 * epoch's end that a search passes by.
 */

/* A unit at one address from access `from` to access `to`, which may lie in the next epoch (to < from); from == to:
 * always. */
typedef struct gs_cache_stay {
    uint64_t at, bytes;       /* at: what is sought; GS_CACHE_NOWHERE: there was no room */
    uint32_t from, to, until; /* until: its last use is over with this access, `to` or a later one of that epoch */
} gs_cache_stay;

/* Sorts `stay` into the order above and gives each its `at`, beside what is fixed. GS_ENOMEM. */
gs_status gs_first_fit(gs_cache_stay *stay, uint32_t count, uint32_t accesses, uint64_t capacity,
                       const gs_cache_fixed *fixed, uint32_t fixeds, bool by_size);

#endif /* GS_SCHEDULE_CACHE_H */
