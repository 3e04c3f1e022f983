/* compile_flow.c - maximum flow by blocking flows (Dinic).
 * Networks here have some 100 vertices and a cut of a few arcs; there are
 * hundreds of them in one compilation. They are deep, and shortest ways first are a phase for each length; so the first
 * phases take any way, and seldom more than two others are needed. */
#include <string.h>

#include "base/size.h"
#include "compile/compile_internal.h"

#define NO_ARC UINT32_MAX
#define FAR UINT32_MAX
#define FREELY 8 /* phases by any way; what more there are go by shortest ones, as their number is bounded */

struct gs_flow {
    uint32_t vertices, vertex_cap, arcs, arc_cap;
    uint32_t *first;                 /* [vertices] list of arcs out of a vertex */
    uint32_t *next, *to;             /* [arcs]; arc k ^ 1 is arc k backwards */
    uint64_t *left;                  /* [arcs] capacity not yet used */
    uint32_t *depth;                 /* [vertices] arcs to the sink, at the end from the source; FAR: no way */
    uint32_t *now;                   /* [vertices] arc that the walk tries next */
    uint32_t *queue;                 /* [vertices] order of the search */
};

gs_flow *gs_compile__flow_new(gs_arena *memory, uint32_t vertices, uint32_t arcs)
{
    gs_flow *f = gs_arena_take(memory, 1, sizeof(*f));
    if (f == NULL)
        return NULL;
    f->vertex_cap = vertices;
    f->arc_cap = 2 * arcs;
    f->first = gs_arena_take(memory, vertices, sizeof(*f->first));
    f->depth = gs_arena_take(memory, vertices, sizeof(*f->depth));
    f->now = gs_arena_take(memory, vertices, sizeof(*f->now));
    f->queue = gs_arena_take(memory, vertices, sizeof(*f->queue));
    f->next = gs_arena_take(memory, f->arc_cap, sizeof(*f->next));
    f->to = gs_arena_take(memory, f->arc_cap, sizeof(*f->to));
    f->left = gs_arena_take(memory, f->arc_cap, sizeof(*f->left));
    return f;
}

void gs_compile__flow_reset(gs_flow *f) { f->vertices = f->arcs = 0; }

uint32_t gs_compile__flow_vertex(gs_flow *f)
{
    f->first[f->vertices] = NO_ARC;
    return f->vertices++;
}

static void half_arc(gs_flow *f, uint32_t from, uint32_t to, uint64_t capacity)
{
    const uint32_t k = f->arcs++;
    f->to[k] = to;
    f->left[k] = capacity;
    f->next[k] = f->first[from];
    f->first[from] = k;
}

void gs_compile__flow_arc(gs_flow *f, uint32_t from, uint32_t to, uint64_t capacity)
{
    half_arc(f, from, to, capacity);
    half_arc(f, to, from, 0);
}

/* Depths from `from`, against the arcs or along them, where capacity is left; true as soon as `goal` is reached:
 * what is as deep leads to it no more. */
static bool search(gs_flow *f, uint32_t from, uint32_t goal, bool against)
{
    const uint32_t *const first = f->first, *const next = f->next, *const to = f->to;
    const uint64_t *const left = f->left;
    uint32_t *const depth = f->depth, *const queue = f->queue;
    uint32_t head = 0, tail = 0;

    memset(depth, 0xff, f->vertices * sizeof(*depth)); /* FAR */
    depth[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        const uint32_t v = queue[head++];
        for (uint32_t k = first[v]; k != NO_ARC; k = next[k]) {
            if (depth[to[k]] != FAR || left[k ^ against] == 0)
                continue;
            depth[to[k]] = depth[v] + 1;
            if (to[k] == goal)
                return true;
            queue[tail++] = to[k];
        }
    }
    return false;
}

/* Has at most `most` flow into v; how much that is. From the sink on, as the source leads to every vertex and most of
 * what it gives ends there: each arc is looked at once. By arcs from one level deeper each, or, `freely`, from vertices
 * that are neither on the way nor known to give no more: their depths are 0, all others FAR. */
static uint64_t pull(gs_flow *f, uint32_t v, uint32_t source, bool freely, uint64_t most)
{
    uint64_t got = 0;

    if (v == source)
        return most;
    f->depth[v] = freely ? 0 : f->depth[v];
    for (uint32_t *k = &f->now[v]; *k != NO_ARC; *k = f->next[*k]) {
        const uint32_t from = f->to[*k], arc = *k ^ 1;
        if (f->left[arc] == 0 || f->depth[from] != (freely ? FAR : f->depth[v] + 1))
            continue;
        const uint64_t more = pull(f, from, source, freely, GS_MIN(most - got, f->left[arc]));
        f->left[arc] -= more;
        f->left[*k] += more;
        got += more;
        if (got == most) { /* it may have more for the next one who asks */
            f->depth[v] = freely ? FAR : f->depth[v];
            break;
        }
    }
    return got;
}

uint64_t gs_compile__flow_run(gs_flow *f, uint32_t source, uint32_t sink, uint64_t most)
{
    uint64_t total = 0;

    for (uint32_t phase = 0; total < most && (phase == 0 || search(f, sink, source, true)); phase++) {
        const bool freely = phase < FREELY;
        if (freely)
            memset(f->depth, 0xff, f->vertices * sizeof(*f->depth)); /* FAR */
        memcpy(f->now, f->first, f->vertices * sizeof(*f->now));
        total += pull(f, sink, source, freely, most - total);
    }
    (void)search(f, source, NO_ARC, false); /* the source's side: what it still reaches */
    return total;
}

bool gs_compile__flow_source_side(const gs_flow *f, uint32_t v)
{
    return f->depth[v] != FAR;
}
