/* search.h - which choice of memory takes the least time? */
#ifndef GS_SCHEDULE_SEARCH_H
#define GS_SCHEDULE_SEARCH_H

#include "schedule/choice.h"
#include "schedule/layout.h"
#include "schedule/schedule.h"

/* As gs_schedule(), with columns dealt in the proportion that `config` says. *cost: predicted seconds of an epoch with
 * the wear of what it writes, by which plans of one program are compared; bytes moved where there is no cost model. */
gs_status gs_schedule_search(gs_plan **out, double *cost, const gs_schedule_config *config);

/* -- what a refusal names: the budgets that would do, or the parts of a finer grid. */

/* No plan fits: which budget is too small, and what is the smallest that works? Units: bytes and rows. */

/* The least host memory is looked for with arenas of the least size, and twice as much, up to so many times. */
#define GS_REFUSED_ARENAS 8u

/* Bytes of the host's memory that devices take which compute on it. */
uint64_t gs_choice_devices_bytes(const gs_choice *c, const gs_layout *l);
/* With how little of the host's memory one arena works. */
typedef struct gs_least {
    uint64_t staging; /* of each device, where any of them computes on the host's memory; else 0 */
    uint64_t ring, tables;
    uint64_t alone;   /* where chunks come together: tables that they would take one by one, about */
    uint64_t host;    /* all of it */
    uint64_t device;  /* of each device's memory, all of it */
    bool beyond;      /* it was given up, as more than gs_choice.host_most is needed */
} gs_least;

/* Sets the arena, its least staging and ring, of at most about `ring_most`, and whether chunks come alone, with nothing
 * kept anywhere. *out: all 0, or what gs_choice_bound() has said of the same arena. GS_ENOFIT: it does not work with
 * these, or has no room in the devices' memory. */
gs_status gs_choice_least(gs_least *out, const gs_layout *l, gs_choice *c, uint64_t arena, uint64_t ring_most);
/* Sets the arena; what nothing works without, of which one plan is counted. GS_ENOFIT as above. */
gs_status gs_choice_bound(gs_least *out, const gs_layout *l, gs_choice *c, uint64_t arena);
/* Is it clear without a plan that none fits, and is nothing to be said of what would do? */
bool gs_refuse_early(const gs_layout *l);
/* GS_EBUDGET: says which budget is too small, and the smallest one that works. */
gs_status gs_choice_refuse(gs_choice *c, const gs_layout *l);

#endif /* GS_SCHEDULE_SEARCH_H */
