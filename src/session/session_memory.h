/* session_memory.h - the two budgets: how much of them does a run take beside its plan? Bytes. */
#ifndef GS_SESSION_SESSION_MEMORY_H
#define GS_SESSION_SESSION_MEMORY_H

#include <stdint.h>

#include "base/status.h"
#include "base/size.h"
#include "gnnstream_reports.h" /* gs_memory_item */
#include "schedule/schedule.h" /* gs_refusal */

typedef struct gs_session gs_session;

/* The budgets, and the part of them that a plan does not account for. */
typedef struct gs_session_memory {
    uint64_t host, device;      /* budgets; the latter of each device, or of the one that has least */
    uint64_t device_most;       /* of the one that has most */
    uint32_t host_parts;        /* `device` is one of so many parts of `host`; 0: it is not made of it */
    uint64_t host_fixed, device_fixed; /* taken by others than the plan */
    uint32_t items;
    gs_memory_item item[GS_PLAN_ITEMS]; /* what the two are made of */
    uint64_t process;           /* gs_session_process_bytes(), when the plan was made; of it */
    uint64_t libraries;         /* what the libraries of devices have (gs_device_libraries_bytes()) */
    uint64_t live_most;         /* of the heap, while plans are made: gs_schedule_config */
    uint64_t logits;            /* for gs_logits_write(); 0: none wanted */
    uint64_t ranking;           /* for gs_rank_logits(); 0: none */
    bool least_windows;         /* both are no more than they must be, whatever the budget */
    double tables_part;         /* gs_schedule_config's */
    gs_refusal refused;         /* of a plan that does not fit: what would, */
    bool sizes;                 /* where that is asked for: finding it takes the memory of plans that do not fit */
    uint64_t known;             /* what another program needs of the host's: only less is of interest; 0: none */
    uint64_t least;             /* what a plan, and tables of edges, are known or expected to take of the host's */
    uint64_t sets;              /* tables of edges */
} gs_session_memory;

/* Bytes that planning has where the budget is spent already, to find the smallest one that works. */
#define GS_SESSION_REFUSED_LEFT (4 * GS_MIB)

/* Bytes of the host's budget that are left beside what is fixed so far. Where none are, the run is refused, and the
 * refusal names a budget that would do. A run with that budget leaves out rows and edges and needs less of devices, so
 * those are looked for here too, with some memory. */
static inline uint64_t gs_session_left(const gs_session_memory *m)
{
    return m->host > m->host_fixed ? m->host - m->host_fixed : GS_SESSION_REFUSED_LEFT;
}

/* Resident bytes of the process that nothing else accounts for, with what the libraries of the session's devices will
 * take. `before`: as a session before this one found, or 0. */
uint64_t gs_session_process_bytes(const gs_session *s, uint64_t before);
/* A plan should be the same when it is made again: what the process holds differs by some pages. */
#define GS_SESSION_PROCESS_STEP (1 * GS_MIB)

#endif /* GS_SESSION_SESSION_MEMORY_H */
