/* route.h - over which links does a unit come to the memories that lack it? No state, no places. */
#ifndef GS_SCHEDULE_ROUTE_H
#define GS_SCHEDULE_ROUTE_H

#include "plan/plan.h"
#include "topology/topology.h"

typedef enum gs_route {
    GS_ROUTE_EACH,   /* each device takes it from the host */
    GS_ROUTE_CHAINS, /* the first of a switch's does, and each hands it on to the next, round from one that has it; or
                      * it takes it from a device that has it and reaches the switch */
    GS_ROUTE_ALONG,  /* likewise, along one chain of all */
    GS_ROUTE_ROUND,  /* each takes a part, and hands it and what it gets from the one before it on to the next, until
                      * all have all: an all-gather. Where some have it already, or one alone lacks it: ALONG */
} gs_route;

/* One move, between two memories, of one part of the unit. */
typedef struct gs_hop {
    uint8_t from, to;
    uint8_t lot;  /* moves of one lot follow each other, and bring the same rows */
    uint8_t part;
} gs_hop;

typedef struct gs_hops {
    gs_hop hop[GS_PLAN_DEVICES * GS_PLAN_DEVICES];
    uint32_t hops, parts; /* parts: that the unit is in, of moves from the host */
} gs_hops;

/* Moves in their order. `wants`, `has`: [devices]. ALONG begins at the first device that has it, from number `turn` on,
 * or at that number: another one for each unit, so that all links to the host bring some. */
void gs_route_hops(gs_hops *out, const gs_topology *t, gs_route route, uint32_t turn, const bool *wants,
                   const bool *has);

#endif /* GS_SCHEDULE_ROUTE_H */
