/* lp_move.c - vertices take the label that most of their neighbours have, while it has room.
 *
 * A round is cut into phases. In a phase each vertex of some blocks proposes the label
 * that is best for it and says which would be its second; all look at the labels as they
 * were before the phase, but for vertices of the same block, which one thread visits in
 * order. Then proposals are admitted. A label with too little room for all who want it
 * takes groups with the same second choice, the largest first (GriNNder): what would otherwise
 * be together elsewhere moves together or not at all. Nothing depends on who ran when.
 */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/grid.h"
#include "partition/job.h"
#include "partition/lp.h"
#include "partition/permute.h"
#include "partition/sort.h"

/* ---- blocks of the graph read by all threads, vertex by vertex. */

static void tally_free(gs_lp_tally *t)
{
    gs_free(t->label);
    gs_free(t->slot);
    gs_free(t->weight);
    memset(t, 0, sizeof(*t));
}

gs_status gs_lp__tally_grow(gs_lp_tally *t, uint32_t most)
{
    uint64_t cap = 256;
    while (cap < 2ull * most + 2)
        cap *= 2;
    tally_free(t);
    t->label = gs_malloc_array(cap, 4);
    t->slot = gs_malloc_array(cap, 4);
    t->weight = gs_malloc_array(cap, 8);
    if (t->label == NULL || t->slot == NULL || t->weight == NULL)
        return gs_fail(GS_ENOMEM, "no memory to count the labels around a vertex of %u neighbours", most);
    memset(t->label, 0xff, cap * 4);
    t->cap = cap;
    return GS_OK;
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
    tally_free(&tally);
}

gs_status gs_lp__each(const gs_lp_graph *g, gs_part_job *job, uint32_t first, uint32_t step, gs_lp_visit *visit,
                      void *context)
{
    uint32_t next = first; /* atomic */
#pragma omp parallel num_threads(job->threads)
    each_worker(g, job, &next, step, visit, context);
    return gs_part__job_result(job);
}

/* ---- rounds ----------------------------------------------------------------------- */

#define PHASES 16u /* a pass over the graph, where it has blocks enough to keep threads busy in each */
#define FEW 500u /* a round that moves fewer than one vertex in FEW is the last */

typedef struct proposal {
    uint32_t vertex, target, second;
} proposal;

typedef struct moving {
    gs_lp_labels *l;
    const gs_lp_graph *g;
    gs_part_job *job;
    uint32_t *proposed;   /* [vertices] label of each, with this phase's proposals */
    uint32_t *wanted;     /* [count] weight that proposes each label, atomic; 0 between phases */
    proposal *proposals;  /* of the phase: a block's from place[block] on */
    uint32_t *place, *made; /* [blocks] */
    gs_part_key16 *crowd, *spare; /* proposals of labels without room for all */
    uint64_t most;        /* vertices of a phase */
    uint32_t phases;
    uint64_t salt; /* of the round */
    uint64_t moved;       /* vertices, in this round */
} moving;

/* -- proposals ------------------------------------------------------------------ */

uint64_t gs_lp__capacity(const gs_lp_labels *l, uint32_t label)
{
    if (l->grid == NULL)
        return l->most;
    const uint32_t rows = gs_part__grid_capacity(l->grid, label);
    return rows + (uint64_t)(rows * l->slack);
}

static void tally_neighbours(const moving *w, const gs_lp_vertex *v)
{
    const uint32_t entry = w->g->weighted ? 2 : 1, first = v->block->first, vertices = v->block->vertices;
    const uint32_t *const end = v->list + (uint64_t)v->degree * entry;

    for (const uint32_t *at = v->list; at < end; at += entry) {
        const uint32_t u = *at;
        if (end - at > 16)
            __builtin_prefetch(&w->l->of[at[16]]); /* a weight there prefetches nothing useful, and no harm */
        gs_lp__tally_add(v->tally, u - first < vertices ? w->proposed[u] : w->l->of[u], entry == 2 ? at[1] : 1);
    }
}

/* The best label and the second; `own` where there is none better. Ties go to the own
 * label, then by a hash that changes from round to round. */
static void choose(const moving *w, const gs_lp_tally *t, uint32_t own, uint32_t weight, uint32_t choice[2])
{
    uint64_t best = 0, second = 0, best_tie = UINT64_MAX, second_tie = 0;

    choice[0] = choice[1] = own;
    for (uint32_t i = 0; i < t->used; i++)
        if (t->label[t->slot[i]] == own)
            best = t->weight[t->slot[i]];
    for (uint32_t i = 0; i < t->used; i++) {
        const uint32_t label = t->label[t->slot[i]];
        const uint64_t near = t->weight[t->slot[i]];
        if (label == own || near < second || (uint64_t)w->l->size[label] + weight > gs_lp__capacity(w->l, label))
            continue;
        const uint64_t tie = gs_part__mix(w->salt ^ label) >> 1;
        if (near > best || (near == best && tie > best_tie)) {
            choice[1] = choice[0];
            second = best;
            second_tie = best_tie;
            choice[0] = label;
            best = near;
            best_tie = tie;
        } else if (near > second || (near == second && tie > second_tie)) {
            choice[1] = label;
            second = near;
            second_tie = tie;
        }
    }
}

static gs_status propose(void *context, const gs_lp_vertex *v)
{
    moving *const w = context;
    const uint32_t own = w->l->of[v->id], weight = gs_lp_weight(w->g, v->id);
    uint32_t choice[2];
    const gs_status st = gs_lp__tally_start(v->tally, v->degree);

    if (st != GS_OK)
        return st;
    tally_neighbours(w, v);
    choose(w, v->tally, own, weight, choice);
    if (choice[0] == own)
        return GS_OK;
    const uint32_t block = (uint32_t)(v->block - w->g->block);
    w->proposals[w->place[block] + w->made[block]++] = (proposal){v->id, choice[0], choice[1]};
    w->proposed[v->id] = choice[0];
    __atomic_fetch_add(&w->wanted[choice[0]], weight, __ATOMIC_RELAXED);
    return GS_OK;
}

/* -- admission ------------------------------------------------------------------- */

static void admit(moving *w, uint32_t vertex, uint32_t target)
{
    const uint32_t weight = gs_lp_weight(w->g, vertex);
    w->l->size[w->l->of[vertex]] -= weight;
    w->l->size[target] += weight;
    w->l->of[vertex] = target;
    w->moved++;
}

/* A run of proposals with the same target and second choice: key its weight, type its first. */
typedef gs_part_key16 group;

static int heavier_first(const void *a, const void *b)
{
    const group *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key) - (x->key > y->key) : (x->type > y->type) - (x->type < y->type);
}

/* All of proposals [from, end) want `target`; `groups` has room for as many. */
static void admit_crowd(moving *w, const gs_part_key16 *sorted, uint64_t from, uint64_t end, uint32_t target,
                        group *groups)
{
    const uint64_t capacity = gs_lp__capacity(w->l, target);
    uint64_t count = 0;

    for (uint64_t i = from; i < end; i++) {
        if (i == from || sorted[i].key != sorted[i - 1].key)
            groups[count++] = (group){0, (uint32_t)i, 0};
        groups[count - 1].key += gs_lp_weight(w->g, sorted[i].type);
    }
    qsort(groups, count, sizeof(*groups), heavier_first);
    for (uint64_t k = 0; k < count && w->l->size[target] < capacity; k++)
        for (uint64_t i = groups[k].type; i < end && sorted[i].key == sorted[groups[k].type].key; i++)
            if (w->l->size[target] + (uint64_t)gs_lp_weight(w->g, sorted[i].type) <= capacity)
                admit(w, sorted[i].type, target);
}

/* Who wants a label with room for all who want it moves at once; the others are collected. */
static uint64_t admit_or_collect(moving *w, uint32_t phase, uint32_t bits)
{
    uint64_t crowd = 0;

    for (uint32_t b = phase; b < w->g->blocks; b += w->phases) {
        const proposal *const p = w->proposals + w->place[b];
        for (uint32_t i = 0; i < w->made[b]; i++) {
            const uint32_t t = p[i].target;
            if ((uint64_t)w->l->size[t] + w->wanted[t] > gs_lp__capacity(w->l, t)) {
                w->crowd[crowd++] = (gs_part_key16){(uint64_t)t << bits | p[i].second, p[i].vertex, 0};
                continue;
            }
            w->wanted[t] -= gs_lp_weight(w->g, p[i].vertex);
            admit(w, p[i].vertex, t);
        }
    }
    return crowd;
}

static void admit_phase(moving *w, uint32_t phase)
{
    uint32_t bits = 1;

    while (bits < 32 && (w->l->count - 1) >> bits != 0)
        bits++;
    const uint64_t n = admit_or_collect(w, phase, bits);
    const gs_part_key16 *const sorted = gs_part__sort16(w->crowd, w->spare, n, 2 * bits, 0, 0);
    group *const groups = sorted == w->crowd ? w->spare : w->crowd;
    for (uint64_t from = 0, end; from < n; from = end) {
        const uint32_t target = (uint32_t)(sorted[from].key >> bits);
        for (end = from; end < n && sorted[end].key >> bits == target; end++)
            w->wanted[target] -= gs_lp_weight(w->g, sorted[end].type);
        admit_crowd(w, sorted, from, end, target, groups);
    }
    for (uint32_t b = phase; b < w->g->blocks; b += w->phases) {
        for (uint32_t i = 0; i < w->made[b]; i++) {
            const uint32_t v = w->proposals[w->place[b] + i].vertex;
            w->proposed[v] = w->l->of[v];
        }
        w->made[b] = 0;
    }
}

/* -- rounds ------------------------------------------------------------------------ */

static gs_status moving_make(moving *w)
{
    const uint64_t n = w->g->vertices;

    w->phases = GS_MAX(GS_MIN(PHASES, w->g->blocks / 4), 1);
    w->place = gs_malloc_array(w->g->blocks, 4);
    w->made = gs_calloc(w->g->blocks, 4);
    if (w->place == NULL || w->made == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for %u blocks", w->g->path, w->g->blocks);
    for (uint32_t p = 0; p < w->phases; p++) {
        uint64_t vertices = 0;
        for (uint32_t b = p; b < w->g->blocks; b += w->phases) {
            w->place[b] = (uint32_t)vertices;
            vertices += w->g->block[b].vertices;
        }
        w->most = GS_MAX(w->most, vertices);
    }
    w->proposals = gs_malloc_array(w->most, sizeof(*w->proposals));
    w->crowd = gs_malloc_array(w->most, sizeof(*w->crowd));
    w->spare = gs_malloc_array(w->most, sizeof(*w->spare));
    w->proposed = gs_malloc_array(n, 4);
    w->wanted = gs_calloc(w->l->count, 4);
    if (!w->proposals || !w->crowd || !w->spare || !w->proposed || !w->wanted)
        return gs_fail(GS_ENOMEM, "no memory to move %llu vertices", (unsigned long long)n);
    memcpy(w->proposed, w->l->of, n * 4);
    return GS_OK;
}

static void moving_free(moving *w)
{
    gs_free(w->place);
    gs_free(w->made);
    gs_free(w->proposals);
    gs_free(w->crowd);
    gs_free(w->spare);
    gs_free(w->proposed);
    gs_free(w->wanted);
}

gs_status gs_lp__propagate(gs_lp_labels *l, const gs_lp_graph *g, gs_part_job *job, uint32_t rounds)
{
    moving w = {.l = l, .g = g, .job = job};
    gs_status st = moving_make(&w);

    for (uint32_t round = 0; round < rounds && st == GS_OK; round++) {
        w.moved = 0;
        w.salt = gs_part__mix(job->opt->seed + round);
        for (uint32_t p = 0; p < w.phases && st == GS_OK; p++) {
            gs_part__tick(job, "label propagation", (round + (double)p / w.phases) / rounds);
            if ((st = gs_lp__each(g, job, p, w.phases, propose, &w)) == GS_OK)
                admit_phase(&w, p);
        }
        if (w.moved * FEW < g->vertices)
            break;
    }
    moving_free(&w);
    return st;
}
