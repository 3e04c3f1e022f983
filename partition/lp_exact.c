/* lp_exact.c - from labels that are nearly full to labels that are exactly so.
 *
 * Each vertex of a label with too many looks for the label with room that has most of
 * its neighbours, and what the move would cost; the cheapest moves are made, as many as
 * the label has too many, and as there is room. A few rounds settle nearly all; what is
 * left goes where there is room.
 */
#include "partition/lp_exact.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/grid.h"
#include "partition/job.h"
#include "partition/lp_graph.h"
#include "partition/lp_move.h"
#include "partition/lp_visit.h"
#include "partition/permute.h"

#define ROUNDS 8u
#define COSTS 256u /* neighbours lost by a move; more count as the last */
#define STAYS UINT32_MAX

typedef struct levelling {
    gs_lp_labels *l;
    const gs_lp_graph *g;
    uint32_t *target; /* [vertices] */
    uint8_t *cost;    /* [vertices] */
    uint32_t *cheap;  /* [count][COSTS] vertices of a label whose move costs as much, atomic */
    uint32_t *room;   /* [count] */
} levelling;

static uint64_t over(const gs_lp_labels *l, uint32_t label)
{
    const uint64_t capacity = gs_part__grid_capacity(l->grid, label);
    return l->size[label] > capacity ? l->size[label] - capacity : 0;
}

static gs_status look(void *context, const gs_lp_vertex *v)
{
    const levelling *const w = context;
    const uint32_t own = w->l->of[v->id];
    gs_lp_tally *const t = v->tally;
    uint64_t most = 0, tie = 0, near_own = 0;
    uint32_t target = STAYS;

    w->target[v->id] = STAYS;
    if (over(w->l, own) == 0)
        return GS_OK;
    const gs_status st = gs_lp__tally_start(t, v->degree);
    if (st != GS_OK)
        return st;
    for (uint32_t k = 0; k < v->degree; k++)
        gs_lp__tally_add(t, w->l->of[v->list[k]], 1);
    for (uint32_t i = 0; i < t->used; i++) {
        const uint32_t label = t->label[t->slot[i]];
        const uint64_t near = t->weight[t->slot[i]], hash = gs_part__mix((uint64_t)v->id << 32 | label);
        if (label == own)
            near_own = near;
        else if (w->room[label] != 0 && (near > most || (near == most && hash > tie))) {
            most = near;
            tie = hash;
            target = label;
        }
    }
    /* Who knows nobody where there is room moves last, when the rest has gone. */
    const uint64_t cost = target == STAYS ? COSTS - 1 : near_own > most ? near_own - most : 0;
    w->target[v->id] = target;
    w->cost[v->id] = (uint8_t)GS_MIN(cost, COSTS - 1);
    if (target != STAYS)
        __atomic_fetch_add(&w->cheap[(uint64_t)own * COSTS + w->cost[v->id]], 1, __ATOMIC_RELAXED);
    return GS_OK;
}

static void move_to(const levelling *w, uint64_t v, uint32_t target)
{
    w->l->size[w->l->of[v]]--;
    w->l->size[target]++;
    w->room[target]--;
    w->l->of[v] = target;
}

/* The cheapest moves of each label, by input id where they cost the same. */
static uint64_t move_cheapest(const levelling *w)
{
    uint64_t moved = 0;

    for (uint32_t i = 0; i < w->l->count; i++) { /* counts become: how many of this cost may go */
        uint64_t left = over(w->l, i);
        for (uint32_t c = 0; c < COSTS; c++) {
            uint32_t *const n = &w->cheap[(uint64_t)i * COSTS + c];
            *n = (uint32_t)GS_MIN(*n, left);
            left -= *n;
        }
    }
    for (uint64_t v = 0; v < w->g->vertices; v++) {
        const uint32_t target = w->target[v];
        if (target == STAYS)
            continue;
        uint32_t *const may = &w->cheap[(uint64_t)w->l->of[v] * COSTS + w->cost[v]];
        if (*may == 0 || w->room[target] == 0)
            continue;
        (*may)--;
        move_to(w, v, target);
        moved++;
    }
    return moved;
}

static void move_rest(const levelling *w)
{
    uint32_t target = 0;

    for (uint64_t v = 0; v < w->g->vertices; v++) {
        if (over(w->l, w->l->of[v]) == 0)
            continue;
        while (w->room[target] == 0)
            target++;
        move_to(w, v, target);
    }
}

static uint64_t count_over(const levelling *w)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < w->l->count; i++)
        sum += over(w->l, i);
    return sum;
}

gs_status gs_lp__make_exact(gs_lp_labels *l, const gs_lp_graph *g, gs_part_job *job)
{
    levelling w = {.l = l, .g = g};
    gs_status st = GS_OK;

    w.target = gs_malloc_array(g->vertices, 4);
    w.cost = gs_malloc_array(g->vertices, 1);
    w.cheap = gs_malloc_array((uint64_t)l->count * COSTS, 4);
    w.room = gs_malloc_array(l->count, 4);
    if (!w.target || !w.cost || !w.cheap || !w.room) {
        st = gs_fail(GS_ENOMEM, "no memory to fill %u intervals exactly", l->count);
        goto done;
    }
    for (uint32_t i = 0; i < l->count; i++) {
        const uint32_t capacity = gs_part__grid_capacity(l->grid, i);
        w.room[i] = capacity > l->size[i] ? capacity - l->size[i] : 0;
    }
    for (uint32_t round = 0; round < ROUNDS && count_over(&w) != 0; round++) {
        memset(w.cheap, 0, (uint64_t)l->count * COSTS * 4);
        if ((st = gs_lp__each(g, job, 0, 1, look, &w)) != GS_OK)
            goto done;
        if (move_cheapest(&w) == 0)
            break;
    }
    move_rest(&w);
done:
    gs_free(w.target);
    gs_free(w.cost);
    gs_free(w.cheap);
    gs_free(w.room);
    return st;
}
