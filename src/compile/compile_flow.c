/* compile_flow.c - maximum flow by shortest augmenting paths (Edmonds and Karp).
 * Networks here have some 100 vertices and a cut of a few arcs. */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "compile/compile_internal.h"

#define NO_ARC UINT32_MAX

struct gs_flow {
    uint32_t vertices, vertex_cap, arcs, arc_cap;
    uint32_t *first;                 /* [vertices] list of arcs out of a vertex */
    uint32_t *next, *to;             /* [arcs]; arc k ^ 1 is arc k backwards */
    uint64_t *left;                  /* [arcs] capacity not yet used */
    uint32_t *via, *queue;           /* [vertices] arc by which the search came; order of the search */
};

gs_flow *gs_compile__flow_new(uint32_t vertices, uint32_t arcs)
{
    gs_flow *f = gs_calloc(1, sizeof(*f));
    if (f == NULL)
        return NULL;
    f->vertex_cap = vertices;
    f->arc_cap = 2 * arcs;
    f->first = gs_malloc_array(vertices, sizeof(*f->first));
    f->via = gs_malloc_array(vertices, sizeof(*f->via));
    f->queue = gs_malloc_array(vertices, sizeof(*f->queue));
    f->next = gs_malloc_array(f->arc_cap, sizeof(*f->next));
    f->to = gs_malloc_array(f->arc_cap, sizeof(*f->to));
    f->left = gs_malloc_array(f->arc_cap, sizeof(*f->left));
    if (f->first == NULL || f->via == NULL || f->queue == NULL || f->next == NULL || f->to == NULL || f->left == NULL) {
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
    gs_free(f->via);
    gs_free(f->queue);
    gs_free(f->next);
    gs_free(f->to);
    gs_free(f->left);
    gs_free(f);
}

void gs_compile__flow_reset(gs_flow *f, uint32_t vertices)
{
    f->vertices = vertices;
    f->arcs = 0;
    memset(f->first, 0xff, vertices * sizeof(*f->first));
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

/* Breadth first over arcs with capacity left; true when the sink is reached. */
static bool search(gs_flow *f, uint32_t source, uint32_t sink)
{
    uint32_t head = 0, tail = 0;
    memset(f->via, 0xff, f->vertices * sizeof(*f->via));
    f->via[source] = NO_ARC - 1; /* reached, by no arc */
    f->queue[tail++] = source;
    while (head < tail) {
        const uint32_t v = f->queue[head++];
        for (uint32_t k = f->first[v]; k != NO_ARC; k = f->next[k]) {
            if (f->left[k] == 0 || f->via[f->to[k]] != NO_ARC)
                continue;
            f->via[f->to[k]] = k;
            if (f->to[k] == sink)
                return true;
            f->queue[tail++] = f->to[k];
        }
    }
    return false;
}

uint64_t gs_compile__flow_run(gs_flow *f, uint32_t source, uint32_t sink)
{
    uint64_t total = 0;
    while (total < GS_COST_INF && search(f, source, sink)) {
        uint64_t room = GS_COST_INF;
        for (uint32_t v = sink; v != source; v = f->to[f->via[v] ^ 1])
            room = GS_MIN(room, f->left[f->via[v]]);
        for (uint32_t v = sink; v != source; v = f->to[f->via[v] ^ 1]) {
            f->left[f->via[v]] -= room;
            f->left[f->via[v] ^ 1] += room;
        }
        total += room;
    }
    return total;
}

bool gs_compile__flow_source_side(const gs_flow *f, uint32_t v)
{
    return f->via[v] != NO_ARC;
}
