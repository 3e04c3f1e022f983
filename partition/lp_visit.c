/* lp_visit.c - blocks of the graph read by all threads, vertex by vertex. */
#include "partition/lp_visit.h"

#include <omp.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/job.h"
#include "partition/lp_graph.h"

gs_status gs_lp__tally_grow(gs_lp_tally *t, uint32_t most)
{
    uint64_t cap = 256;
    while (cap < 2ull * most + 2)
        cap *= 2;
    gs_lp__tally_free(t);
    t->label = gs_malloc_array(cap, 4);
    t->slot = gs_malloc_array(cap, 4);
    t->weight = gs_malloc_array(cap, 8);
    if (t->label == NULL || t->slot == NULL || t->weight == NULL)
        return gs_fail(GS_ENOMEM, "no memory to count the labels around a vertex of %u neighbours", most);
    memset(t->label, 0xff, cap * 4);
    t->cap = cap;
    return GS_OK;
}

void gs_lp__tally_free(gs_lp_tally *t)
{
    gs_free(t->label);
    gs_free(t->slot);
    gs_free(t->weight);
    memset(t, 0, sizeof(*t));
}

static gs_status visit_block(const gs_lp_graph *g, uint32_t block, const uint32_t *words, gs_lp_vertex *v,
                             gs_lp_visit *visit, void *context)
{
    const uint32_t entry = g->weighted ? 2 : 1;
    gs_status st = GS_OK;

    v->block = &g->block[block];
    for (uint32_t i = 0; i < v->block->vertices && st == GS_OK; i++) {
        v->id = v->block->first + i;
        v->degree = *words;
        v->list = words + 1;
        words += 1 + (uint64_t)v->degree * entry;
        st = visit(context, v);
    }
    return st;
}

static void each_worker(const gs_lp_graph *g, gs_part_job *job, uint32_t *next, uint32_t step, gs_lp_visit *visit,
                        void *context)
{
    gs_lp_tally tally = {0};
    gs_lp_vertex v = {.thread = (uint32_t)omp_get_thread_num(), .tally = &tally};
    uint32_t *const words = gs_malloc_array(GS_MAX(g->most_words, 1), 4);
    gs_status st = words != NULL ? gs_lp__tally_grow(&tally, 64)
                                 : gs_fail(GS_ENOMEM, "%s: no memory for a block of %u words", g->path, g->most_words);

    while (st == GS_OK && !gs_part__job_stop(job)) {
        const uint32_t block = __atomic_fetch_add(next, step, __ATOMIC_RELAXED);
        if (block >= g->blocks)
            break;
        if ((st = gs_lp__read(g, block, words)) == GS_OK)
            st = visit_block(g, block, words, &v, visit, context);
    }
    gs_part__job_fail(job, st);
    gs_free(words);
    gs_lp__tally_free(&tally);
}

gs_status gs_lp__each(const gs_lp_graph *g, gs_part_job *job, uint32_t first, uint32_t step, gs_lp_visit *visit,
                      void *context)
{
    uint32_t next = first; /* atomic */
#pragma omp parallel num_threads(job->threads)
    each_worker(g, job, &next, step, visit, context);
    return gs_part__job_result(job);
}
