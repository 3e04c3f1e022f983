/* lp_contract.c - the graph of the labels: an edge weighs what runs between two labels. */
#include "partition/lp_contract.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/job.h"
#include "partition/lp_graph.h"
#include "partition/lp_move.h"
#include "partition/lp_visit.h"

typedef struct contracting {
    const gs_lp_labels *l;
    const gs_lp_graph *g;
    gs_part_job *job;
    gs_lp_sink *sink;
} contracting;

/* One vertex's neighbours, by label: fewer pairs to sort than neighbours. */
static gs_status put_labels(void *context, const gs_lp_vertex *v)
{
    const contracting *const w = context;
    const uint32_t entry = w->g->weighted ? 2 : 1, own = w->l->of[v->id];
    gs_lp_tally *const t = v->tally;
    gs_status st = gs_lp__tally_start(t, v->degree);

    for (uint32_t k = 0; k < v->degree && st == GS_OK; k++) {
        const uint32_t *const at = v->list + (uint64_t)k * entry;
        if (w->l->of[*at] != own)
            gs_lp__tally_add(t, w->l->of[*at], entry == 2 ? at[1] : 1);
    }
    for (uint32_t i = 0; i < t->used && st == GS_OK; i++) {
        const uint64_t weight = t->weight[t->slot[i]];
        st = gs_lp__put(w->sink, v->thread, own, t->label[t->slot[i]], (uint32_t)GS_MIN(weight, UINT32_MAX));
    }
    return st;
}

static gs_status put_graph(void *context, gs_lp_sink *sink)
{
    contracting *w = context;
    w->sink = sink;
    return gs_lp__each(w->g, w->job, 0, 1, put_labels, w);
}

/* Labels in use become 0, 1, ... in their order; `size` shrinks with them. */
static gs_status rename_labels(gs_lp_labels *l, uint64_t vertices)
{
    uint32_t *name = gs_malloc_array(l->count, 4), count = 0;

    if (name == NULL)
        return gs_fail(GS_ENOMEM, "no memory to rename %u labels", l->count);
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->size[i] != 0) {
            l->size[count] = l->size[i];
            name[i] = count++;
        }
    }
    for (uint64_t v = 0; v < vertices; v++)
        l->of[v] = name[l->of[v]];
    l->count = count;
    gs_free(name);
    return GS_OK;
}

gs_status gs_lp__contract(gs_lp_graph *out, gs_lp_labels *l, const gs_lp_graph *g, gs_part_job *job)
{
    contracting w = {.l = l, .g = g, .job = job};
    const gs_status st = rename_labels(l, g->vertices);

    if (st != GS_OK)
        return st;
    *out = (gs_lp_graph){.vertices = l->count, .weighted = true, .fd = -1};
    if ((out->weight = gs_malloc_array(l->count, 4)) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for %u clusters", l->count);
    memcpy(out->weight, l->size, l->count * 4ull);
    return gs_lp__graph_make(out, job, put_graph, &w);
}
