/* route.c - see route.h. */
#include "schedule/route.h"

static void add(gs_hops *out, uint32_t from, uint32_t to, uint32_t lot, uint32_t part)
{
    out->hop[out->hops++] = (gs_hop){(uint8_t)from, (uint8_t)to, (uint8_t)lot, (uint8_t)part};
}

/* The devices of `of` hand it on, round from the first that has it, from `begin` on; where none has, that one takes it
 * from `source`. */
static void add_chain(gs_hops *out, gs_topology_switch of, uint32_t begin, uint32_t source, uint32_t lot,
                      const bool *wants, const bool *has)
{
    uint32_t before = source, first = begin;

    for (uint32_t i = 0; i < of.devices && !(wants[of.first + first] && has[of.first + first]); i++)
        first = (first + 1) % of.devices;
    for (uint32_t i = 0; i < of.devices; i++) {
        const uint32_t d = of.first + (first + i) % of.devices;
        if (!wants[d])
            continue;
        if (!has[d])
            add(out, before, GS_DEVICE_MEMORIES + d, lot, 0);
        before = GS_DEVICE_MEMORIES + d;
    }
}

/* A device that has it and reaches the switch; else the host. */
static uint32_t source_of(const gs_topology *t, uint32_t at, const bool *wants, const bool *has)
{
    for (uint32_t d = 0; d < t->devices; d++)
        if (wants[d] && has[d] && gs_topology_hands_on(t, d, t->at[at].first))
            return GS_DEVICE_MEMORIES + d;
    return GS_HOST;
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
    uint32_t memory[GS_PLAN_DEVICES], lacks = 0, have = 0;

    out->hops = 0;
    out->parts = 1;
    for (uint32_t d = 0; d < t->devices; d++) {
        have += wants[d] && has[d];
        if (wants[d] && !has[d])
            memory[lacks++] = GS_DEVICE_MEMORIES + d;
    }
    if (route == GS_ROUTE_ROUND && have == 0 && lacks > 1)
        add_round(out, memory, lacks);
    else if (route >= GS_ROUTE_ALONG)
        add_chain(out, (gs_topology_switch){.devices = t->devices}, turn % t->devices, GS_HOST, 0, wants, has);
    for (uint32_t s = 0; route == GS_ROUTE_CHAINS && s < t->switches; s++)
        add_chain(out, t->at[s], 0, source_of(t, s, wants, has), s, wants, has);
    for (uint32_t i = 0; route == GS_ROUTE_EACH && i < lacks; i++)
        add(out, GS_HOST, memory[i], gs_topology_switch_of(t, memory[i] - GS_DEVICE_MEMORIES), 0);
}
