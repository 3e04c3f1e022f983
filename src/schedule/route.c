/* route.c - see route.h. */
#include "schedule/route.h"

static void add(gs_hops *out, uint32_t from, uint32_t to, uint32_t lot, uint32_t part)
{
    out->hop[out->hops++] = (gs_hop){(uint8_t)from, (uint8_t)to, (uint8_t)lot, (uint8_t)part};
}

/* `count` devices from number `first` on hand it on. */
static void add_chain(gs_hops *out, const gs_topology *t, uint32_t first, uint32_t count, uint32_t lot, bool each,
                      const bool *wants, const bool *has)
{
    uint32_t before = GS_HOST;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t d = (first + i) % t->devices;
        if (!wants[d])
            continue;
        if (!has[d])
            add(out, each ? GS_HOST : before, GS_DEVICE_MEMORIES + d, lot, 0);
        before = GS_DEVICE_MEMORIES + d;
    }
}

/* At the k-th step behind the host's each device gets the part of the one k places before. */
static void add_round(gs_hops *out, const uint32_t *memory, uint32_t count)
{
    out->parts = count;
    for (uint32_t step = 0; step < count; step++)
        for (uint32_t i = 0; i < count; i++)
            add(out, step == 0 ? GS_HOST : memory[(i + count - 1) % count], memory[i], 0, (i + count - step) % count);
}

void gs_route_hops(gs_hops *out, const gs_topology *t, gs_route route, uint32_t turn, const bool *wants,
                   const bool *has)
{
    uint32_t memory[GS_PLAN_DEVICES], lacks = 0, have = 0, first = turn % t->devices;

    out->hops = 0;
    out->parts = 1;
    for (uint32_t d = 0; d < t->devices; d++) {
        have += wants[d] && has[d];
        if (wants[d] && !has[d])
            memory[lacks++] = GS_DEVICE_MEMORIES + d;
    }
    if (route == GS_ROUTE_ROUND && have == 0 && lacks > 1) {
        add_round(out, memory, lacks);
    } else if (route >= GS_ROUTE_ALONG) {
        for (uint32_t i = 0; i < t->devices && !(wants[first] && has[first]); i++)
            first = (first + 1) % t->devices;
        add_chain(out, t, first, t->devices, 0, false, wants, has);
    } else {
        for (uint32_t s = 0; s < t->switches; s++)
            add_chain(out, t, t->at[s].first, t->at[s].devices, s, route == GS_ROUTE_EACH, wants, has);
    }
}
