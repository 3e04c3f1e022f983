/* compile_flow.c - maximum flow by blocking flows (Dinic).
 * Networks here have some 100 vertices and a cut of a few arcs; there are
 * thousands of them in one compilation. */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "compile/compile_internal.h"

#define NO_ARC UINT32_MAX
#define FAR UINT32_MAX

struct gs_flow {
    uint32_t vertices, vertex_cap, arcs, arc_cap;
    uint32_t *first;                 /* [vertices] list of arcs out of a vertex */
    uint32_t *next, *to;             /* [arcs]; arc k ^ 1 is arc k backwards */
    uint64_t *left;                  /* [arcs] capacity not yet used */
    uint32_t *depth;                 /* [vertices] arcs from the source, FAR where none lead there */
    uint32_t *now;                   /* [vertices] arc that the walk tries next */
    uint32_t *queue;                 /* [vertices] order of the search, then arcs of the walk */
};

gs_flow *gs_compile__flow_new(uint32_t vertices, uint32_t arcs)
{
    gs_flow *f = gs_calloc(1, sizeof(*f));
    if (f == NULL)
        return NULL;
    f->vertex_cap = vertices;
    f->arc_cap = 2 * arcs;
    f->first = gs_malloc_array(vertices, sizeof(*f->first));
    f->depth = gs_malloc_array(vertices, sizeof(*f->depth));
    f->now = gs_malloc_array(vertices, sizeof(*f->now));
    f->queue = gs_malloc_array(vertices, sizeof(*f->queue));
    f->next = gs_malloc_array(f->arc_cap, sizeof(*f->next));
    f->to = gs_malloc_array(f->arc_cap, sizeof(*f->to));
    f->left = gs_malloc_array(f->arc_cap, sizeof(*f->left));
    if (f->first == NULL || f->depth == NULL || f->now == NULL || f->queue == NULL || f->next == NULL ||
        f->to == NULL || f->left == NULL) {
        gs_compile__flow_free(f);
        return NULL;
    }
    return f;
}

void gs_compile__flow_free(gs_flow *f)
{
    if (f == NULL)
        return;
    gs_free(f->first);
    gs_free(f->depth);
    gs_free(f->now);
    gs_free(f->queue);
    gs_free(f->next);
    gs_free(f->to);
    gs_free(f->left);
    gs_free(f);
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

/* Depths over arcs with capacity left; true when the sink is reached. */
static bool search(gs_flow *f, uint32_t source, uint32_t sink)
{
    uint32_t head = 0, tail = 0;
    memset(f->depth, 0xff, f->vertices * sizeof(*f->depth)); /* FAR */
    f->depth[source] = 0;
    f->queue[tail++] = source;
    while (head < tail) {
        const uint32_t v = f->queue[head++];
        for (uint32_t k = f->first[v]; k != NO_ARC; k = f->next[k]) {
            if (f->left[k] == 0 || f->depth[f->to[k]] != FAR)
                continue;
            f->depth[f->to[k]] = f->depth[v] + 1;
            f->queue[tail++] = f->to[k];
        }
    }
    return f->depth[sink] != FAR;
}

/* The arc to go on by from v, one level deeper, or NO_ARC. */
static uint32_t step(gs_flow *f, uint32_t v)
{
    uint32_t *k = &f->now[v];
    while (*k != NO_ARC && (f->left[*k] == 0 || f->depth[f->to[*k]] != f->depth[v] + 1))
        *k = f->next[*k];
    return *k;
}

/* Sends what the path of `length` arcs takes; the path is cut back to before the first full arc. */
static uint64_t augment(gs_flow *f, uint32_t *length)
{
    uint64_t room = GS_COST_INF;
    uint32_t full = 0;
    for (uint32_t i = 0; i < *length; i++)
        room = GS_MIN(room, f->left[f->queue[i]]);
    for (uint32_t i = *length; i-- > 0;) {
        f->left[f->queue[i]] -= room;
        f->left[f->queue[i] ^ 1] += room;
        if (f->left[f->queue[i]] == 0)
            full = i;
    }
    *length = full;
    return room;
}

/* All that goes by arcs one level deeper each, found by walking with backtracking. */
static uint64_t block(gs_flow *f, uint32_t source, uint32_t sink)
{
    uint64_t total = 0;
    uint32_t length = 0;
    memcpy(f->now, f->first, f->vertices * sizeof(*f->now));
    while (total < GS_COST_INF) {
        const uint32_t v = length == 0 ? source : f->to[f->queue[length - 1]];
        uint32_t k;
        if (v == sink) {
            total += augment(f, &length);
            continue;
        }
        k = step(f, v);
        if (k != NO_ARC) {
            f->queue[length++] = k;
            continue;
        }
        if (length == 0)
            break;
        f->depth[v] = FAR; /* a dead end */
        length--;
    }
    return total;
}

uint64_t gs_compile__flow_run(gs_flow *f, uint32_t source, uint32_t sink)
{
    uint64_t total = 0;
    while (total < GS_COST_INF && search(f, source, sink))
        total += block(f, source, sink);
    return total;
}

bool gs_compile__flow_source_side(const gs_flow *f, uint32_t v)
{
    return f->depth[v] != FAR;
}
