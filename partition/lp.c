/* lp.c - intervals by label propagation, for graphs too large for METIS.
 *
 * Vertices become clusters much smaller than an interval, clusters become clusters again while
 * their graph is too large, METIS puts the last clusters into intervals so that those with many edges
 * between them share one, and on the way back each graph's vertices move once more
 * between the intervals.
 */
#include "partition/intervals.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/integers.h"
#include "ranks/ranks.h"

/* -- vertices take the label that most of their neighbours have, while it has room.
 *
 * A round is cut into phases. In a phase each vertex of some blocks proposes the label
 * that is best for it and says which would be its second; all look at the labels as they
 * were before the phase, but for vertices of the same block, which one thread visits in
 * order. Then proposals are admitted. A label with too little room for all who want it
 * takes groups with the same second choice, the largest first (GriNNder): what would otherwise
 * be together elsewhere moves together or not at all. Nothing depends on who ran when, so ranks
 * propose for the blocks that they have, tell each other, and admit all alike.
 */

/* ---- blocks of the graph read by all threads, vertex by vertex, and a tally of the labels around one. */

/* How often each label occurs around one vertex. Of one thread. */
typedef struct gs_lp_tally {
    uint32_t *label, *slot; /* [cap] label at a slot (UINT32_MAX: none), slots in use */
    uint64_t *weight;       /* [cap] */
    uint32_t mask, used;    /* slots in reach: mask + 1, twice the list's length at least */
    uint64_t cap;
    gs_arena memory;
} gs_lp_tally;

static gs_status tally_grow(gs_lp_tally *t, uint32_t most)
{
    uint64_t cap = 256;
    while (cap < 2ull * most + 2)
        cap *= 2;
    gs_arena_free(&t->memory);
    *t = (gs_lp_tally){0};
    t->label = gs_arena_take(&t->memory, cap, 4);
    t->slot = gs_arena_take(&t->memory, cap, 4);
    t->weight = gs_arena_take(&t->memory, cap, 8);
    GS_NEED(!t->memory.is_short, "no memory to count the labels around a vertex of %u neighbours", most);
    memset(t->label, 0xff, cap * 4);
    t->cap = cap;
    return GS_OK;
}

/* Empties it, for at most `most` additions. GS_ENOMEM. */
static gs_status tally_start(gs_lp_tally *t, uint32_t most)
{
    for (uint32_t i = 0; i < t->used; i++)
        t->label[t->slot[i]] = UINT32_MAX;
    t->used = 0;
    if (2ull * most + 2 > t->cap)
        GS_TRY(tally_grow(t, most));
    t->mask = 15;
    while (t->mask < 2ull * most)
        t->mask = t->mask << 1 | 1;
    return GS_OK;
}
static void tally_add(gs_lp_tally *t, uint32_t label, uint32_t weight)
{
    uint32_t at = label * 0x9e3779b1u >> 7 & t->mask;
    while (t->label[at] != label && t->label[at] != UINT32_MAX)
        at = (at + 1) & t->mask;
    if (t->label[at] == UINT32_MAX) {
        t->label[at] = label;
        t->weight[at] = 0;
        t->slot[t->used++] = at;
    }
    t->weight[at] += weight;
}

static gs_status visit_block(const gs_lp_graph *g, uint32_t block, const uint32_t *words, gs_lp_vertex *v,
                             gs_lp_visit *visit, void *context)
{
    const uint32_t entry = g->weighted ? 2 : 1;

    v->block = &g->block[block];
    for (uint32_t i = 0; i < v->block->vertices; i++) {
        v->id = v->block->first + i;
        v->degree = *words;
        v->list = words + 1;
        words += 1 + (uint64_t)v->degree * entry;
        GS_TRY(visit(context, v));
    }
    return GS_OK;
}

static void each_worker(const gs_lp_graph *g, gs_part_job *job, uint32_t *next, uint32_t step, gs_lp_visit *visit,
                        void *context)
{
    gs_lp_tally tally = {0};
    gs_lp_vertex v = {.thread = (uint32_t)omp_get_thread_num(), .tally = &tally};
    uint32_t *const words = gs_malloc_array(GS_MAX(g->most_words, 1), 4);
    gs_status st = words != NULL ? tally_grow(&tally, 64)
                                 : gs_fail(GS_ENOMEM, "%s: no memory for a block of %u words", g->path, g->most_words);

    while (st == GS_OK && !gs_part__job_stop(job)) {
        const uint32_t block = __atomic_fetch_add(next, step, __ATOMIC_RELAXED);
        if (block >= g->owned[job->rank + 1])
            break;
        if ((st = gs_lp__read(g, block, words)) == GS_OK)
            st = visit_block(g, block, words, &v, visit, context);
    }
    gs_part__job_fail(job, st);
    gs_free(words);
    gs_arena_free(&tally.memory);
}

/* The first block of first, first + step, ... that the rank has, or one behind them. */
static uint32_t first_of(const gs_lp_graph *g, uint32_t rank, uint32_t first, uint32_t step)
{
    return g->owned[rank] + (first + step - g->owned[rank] % step) % step;
}

gs_status gs_lp__each(const gs_lp_graph *g, gs_part_job *job, uint32_t first, uint32_t step, gs_lp_visit *visit,
                      void *context)
{
    uint32_t next = first_of(g, job->rank, first, step); /* atomic */
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
    gs_arena memory;
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
        tally_add(v->tally, u - first < vertices ? w->proposed[u] : w->l->of[u], entry == 2 ? at[1] : 1);
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

    GS_TRY(tally_start(v->tally, v->degree));
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

/* -- proposals of other ranks ---------------------------------------------------- */

/* The words that say what a rank's blocks propose in the phase: for each how many, then these. */
static uint64_t packed_words(const moving *w, uint32_t rank, uint32_t phase)
{
    uint64_t words = 0;
    for (uint32_t b = first_of(w->g, rank, phase, w->phases); b < w->g->owned[rank + 1]; b += w->phases)
        words += 1 + w->made[b] * (sizeof(proposal) / 4);
    return words;
}

static void pack(const moving *w, uint32_t rank, uint32_t phase, uint32_t *to)
{
    for (uint32_t b = first_of(w->g, rank, phase, w->phases); b < w->g->owned[rank + 1]; b += w->phases) {
        *to++ = w->made[b];
        memcpy(to, w->proposals + w->place[b], w->made[b] * sizeof(proposal));
        to += w->made[b] * (sizeof(proposal) / 4);
    }
}

static void unpack(moving *w, uint32_t rank, uint32_t phase, const uint32_t *from)
{
    for (uint32_t b = first_of(w->g, rank, phase, w->phases); b < w->g->owned[rank + 1]; b += w->phases) {
        proposal *const p = w->proposals + w->place[b];
        w->made[b] = *from++;
        memcpy(p, from, w->made[b] * sizeof(proposal));
        from += w->made[b] * (sizeof(proposal) / 4);
        for (uint32_t i = 0; i < w->made[b]; i++)
            w->wanted[p[i].target] += gs_lp_weight(w->g, p[i].vertex);
    }
}

/* All ranks get the phase's proposals of all, by way of `spare`: a phase has fewer blocks than vertices. */
static gs_status share_proposals(moving *w, uint32_t phase)
{
    const uint32_t self = w->job->rank;
    const uint64_t own = packed_words(w, self, phase);
    uint32_t *const packed = (uint32_t *)w->spare;
    uint64_t words[GS_RANKS_MOST], first[GS_RANKS_MOST + 1] = {0};

    GS_TRY(gs_ranks_gather(words, &own, sizeof(own)));
    for (uint32_t r = 0; r < w->job->ranks; r++)
        first[r + 1] = first[r] + 4 * words[r];
    pack(w, self, phase, packed + first[self] / 4);
    GS_TRY(gs_ranks_share_parts(packed, first));
    for (uint32_t r = 0; r < w->job->ranks; r++)
        if (r != self)
            unpack(w, r, phase, packed + first[r] / 4);
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
    const uint32_t bits = GS_MAX(gs_part__bits(w->l->count), 1);
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
    w->place = gs_arena_take(&w->memory, w->g->blocks, 4);
    w->made = gs_arena_take(&w->memory, w->g->blocks, 4);
    GS_NEED(!w->memory.is_short, "%s: no memory for %u blocks", w->g->path, w->g->blocks);
    for (uint32_t p = 0; p < w->phases; p++) {
        uint64_t vertices = 0;
        for (uint32_t b = p; b < w->g->blocks; b += w->phases) {
            w->place[b] = (uint32_t)vertices;
            vertices += w->g->block[b].vertices;
        }
        w->most = GS_MAX(w->most, vertices);
    }
    w->proposals = gs_arena_take(&w->memory, w->most, sizeof(*w->proposals));
    w->crowd = gs_arena_take(&w->memory, w->most, sizeof(*w->crowd));
    w->spare = gs_arena_take(&w->memory, w->most, sizeof(*w->spare));
    w->proposed = gs_arena_take(&w->memory, n, 4);
    w->wanted = gs_arena_take(&w->memory, w->l->count, 4);
    GS_NEED(!w->memory.is_short, "no memory to move %lu vertices", n);
    memcpy(w->proposed, w->l->of, n * 4);
    return GS_OK;
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
            if ((st = gs_lp__each(g, job, p, w.phases, propose, &w)) == GS_OK &&
                (job->ranks == 1 || (st = share_proposals(&w, p)) == GS_OK))
                admit_phase(&w, p);
        }
        if (w.moved * FEW < g->vertices)
            break;
    }
    gs_arena_free(&w.memory);
    return st;
}

/* ---- the graph of the labels: an edge weighs what runs between two labels. */

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
    gs_status st = tally_start(t, v->degree);

    for (uint32_t k = 0; k < v->degree && st == GS_OK; k++) {
        const uint32_t *const at = v->list + (uint64_t)k * entry;
        if (w->l->of[*at] != own)
            tally_add(t, w->l->of[*at], entry == 2 ? at[1] : 1);
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
    GS_FREED uint32_t *name = gs_malloc_array(l->count, 4);
    uint32_t count = 0;

    GS_NEED(name != NULL, "no memory to rename %u labels", l->count);
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->size[i] != 0) {
            l->size[count] = l->size[i];
            name[i] = count++;
        }
    }
    for (uint64_t v = 0; v < vertices; v++)
        l->of[v] = name[l->of[v]];
    l->count = count;
    return GS_OK;
}

gs_status gs_lp__contract(gs_lp_graph *out, gs_lp_labels *l, const gs_lp_graph *g, gs_part_job *job)
{
    contracting w = {.l = l, .g = g, .job = job};

    GS_TRY(rename_labels(l, g->vertices));
    *out = (gs_lp_graph){.vertices = l->count, .weighted = true, .fd = -1};
    GS_NEED((out->weight = gs_malloc_array(l->count, 4)) != NULL, "no memory for %u clusters", l->count);
    memcpy(out->weight, l->size, l->count * 4ull);
    return gs_lp__graph_make(out, job, put_graph, &w);
}

/* ---- from labels that are nearly full to labels that are exactly so.
 *
 * Each vertex of a label with too many looks for the label with room that has most of
 * its neighbours, and what the move would cost; the cheapest moves are made, as many as
 * the label has too many, and as there is room. A few rounds settle nearly all; what is
 * left goes where there is room.
 */

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

    GS_TRY(tally_start(t, v->degree));
    for (uint32_t k = 0; k < v->degree; k++)
        tally_add(t, w->l->of[v->list[k]], 1);
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

/* Each rank has looked for the vertices of its blocks. */
static gs_status share_looks(const levelling *w, const gs_part_job *job)
{
    uint64_t first[GS_RANKS_MOST + 1], words[GS_RANKS_MOST + 1];

    for (uint32_t r = 0; r <= job->ranks; r++) {
        first[r] = gs_lp_first(w->g, w->g->owned[r]);
        words[r] = 4 * first[r];
    }
    GS_TRY(gs_ranks_share_parts(w->target, words));
    GS_TRY(gs_ranks_share_parts(w->cost, first));
    return gs_ranks_sum_u32(w->cheap, (uint64_t)w->l->count * COSTS);
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
    GS_ENDS(gs_arena_free) gs_arena memory = {0};
    levelling w = {.l = l, .g = g};

    w.target = gs_arena_take(&memory, g->vertices, 4);
    w.cost = gs_arena_take(&memory, g->vertices, 1);
    w.cheap = gs_arena_take(&memory, (uint64_t)l->count * COSTS, 4);
    w.room = gs_arena_take(&memory, l->count, 4);
    GS_NEED(!memory.is_short, "no memory to fill %u intervals exactly", l->count);
    for (uint32_t i = 0; i < l->count; i++) {
        const uint32_t capacity = gs_part__grid_capacity(l->grid, i);
        w.room[i] = capacity > l->size[i] ? capacity - l->size[i] : 0;
    }
    for (uint32_t round = 0; round < ROUNDS && count_over(&w) != 0; round++) {
        memset(w.cheap, 0, (uint64_t)l->count * COSTS * 4);
        GS_TRY(gs_lp__each(g, job, 0, 1, look, &w));
        if (job->ranks > 1)
            GS_TRY(share_looks(&w, job));
        if (move_cheapest(&w) == 0)
            break;
    }
    move_rest(&w);
    return GS_OK;
}

/* ---- the levels, and the whole ---------------------------------------------------- */

#define MOST_LEVELS 6
#define CLUSTERS 32u /* that make an interval, at least: what METIS needs to fill them evenly */
#define ROUNDS_CLUSTER 10u
#define ROUNDS_REFINE 6u
#define SLACK 0.03 /* that intervals may be over while vertices move; METIS's own */
#define LEAST_PER_INTERVAL 20u /* clusters: METIS complains on stdout about fewer */
#define BYTES_PER_NEIGHBOUR 64u /* of METIS with edge weights and our arrays */
#define MOST_NEIGHBOURS (24u << 20) /* of a graph for METIS: half a minute of its time */

typedef struct levels {
    const gs_part_grid *grid;
    gs_part_job *job;
    gs_lp_graph graph[MOST_LEVELS];
    uint32_t *of[MOST_LEVELS]; /* cluster, later interval, of each vertex; [0] is the caller's */
    int count;
} levels;

/* -- down ------------------------------------------------------------------------ */

static uint64_t metis_neighbours(const gs_part_job *job)
{
    return GS_MIN(job->buffers / BYTES_PER_NEIGHBOUR, MOST_NEIGHBOURS);
}

static gs_status cluster(levels *w, gs_lp_labels *l)
{
    const gs_lp_graph *const g = &w->graph[w->count - 1];

    for (uint64_t v = 0; v < g->vertices; v++) {
        l->of[v] = (uint32_t)v;
        l->size[v] = gs_lp_weight(g, v);
    }
    GS_TRY(gs_lp__propagate(l, g, w->job, ROUNDS_CLUSTER));
    w->graph[w->count] = (gs_lp_graph){.fd = -1};
    return gs_lp__contract(&w->graph[w->count], l, g, w->job);
}

static gs_status add_level(levels *w)
{
    const uint64_t n = w->graph[w->count - 1].vertices;
    gs_lp_labels l = {.of = w->of[w->count - 1], .count = (uint32_t)n, .most = GS_MAX(w->grid->rows / CLUSTERS, 1)};
    gs_status st;

    GS_NEED((l.size = gs_malloc_array(n, 4)) != NULL, "no memory for %lu clusters", n);
    st = cluster(w, &l);
    gs_free(l.size);
    w->count++;
    if (st == GS_OK && (w->of[w->count - 1] = gs_malloc_array(l.count, 4)) == NULL)
        st = gs_fail(GS_ENOMEM, "no memory for %u clusters", l.count);
    return st;
}

static gs_status coarsen(levels *w)
{
    gs_status st = add_level(w);
    while (st == GS_OK && w->count < MOST_LEVELS) {
        const gs_lp_graph *const g = &w->graph[w->count - 1], *const finer = g - 1;
        if (g->neighbours <= metis_neighbours(w->job) || g->vertices > finer->vertices / 10 * 9)
            break;
        st = add_level(w);
    }
    return st;
}

/* -- the coarsest graph --------------------------------------------------------------- */

/* Clusters in their order, each interval as full as can be. */
static void fill_in_order(uint32_t *part, const gs_lp_graph *g, const gs_part_grid *grid)
{
    uint64_t before = 0;
    for (uint64_t v = 0; v < g->vertices; v++) {
        part[v] = (uint32_t)(before / grid->rows);
        before += g->weight[v];
    }
}

static gs_status first_intervals(levels *w)
{
    const gs_lp_graph *const g = &w->graph[w->count - 1];

    if (g->neighbours == 0 || g->vertices < (uint64_t)w->grid->parts * LEAST_PER_INTERVAL) {
        fill_in_order(w->of[w->count - 1], g, w->grid);
        return GS_OK;
    }
    gs_part__tick(w->job, "METIS", 0);
    return gs_part__metis_clusters(w->of[w->count - 1], g, w->grid, w->job, metis_neighbours(w->job));
}

/* -- up ------------------------------------------------------------------------------ */

/* Level `k` has an interval for each vertex. */
static gs_status refine(levels *w, int k)
{
    const gs_lp_graph *const g = &w->graph[k];
    gs_lp_labels l = {.of = w->of[k], .count = w->grid->parts, .grid = w->grid, .slack = SLACK};
    GS_FREED uint32_t *const size = l.size = gs_calloc(l.count, 4);

    GS_NEED(size != NULL, "no memory for %u intervals", l.count);
    for (uint64_t v = 0; v < g->vertices; v++)
        size[l.of[v]] += gs_lp_weight(g, v);
    GS_TRY(gs_lp__propagate(&l, g, w->job, ROUNDS_REFINE));
    return k == 0 ? gs_lp__make_exact(&l, g, w->job) : GS_OK;
}

static gs_status back(levels *w)
{
    for (int k = w->count - 2; k >= 0; k--) {
        for (uint64_t v = 0; v < w->graph[k].vertices; v++)
            w->of[k][v] = w->of[k + 1][w->of[k][v]];
        GS_TRY(refine(w, k));
    }
    return GS_OK;
}

gs_status gs_part__lp(uint32_t *part, const gs_part_grid *grid, gs_part_job *job, const gs_part_blocks *b)
{
    levels w = {.grid = grid, .job = job, .of = {part}, .count = 1};
    gs_status st;

    if (grid->parts == 1) {
        memset(part, 0, grid->vertices * 4);
        return GS_OK;
    }
    if ((st = gs_lp__graph_of_blocks(&w.graph[0], job, b)) == GS_OK && (st = coarsen(&w)) == GS_OK &&
        (st = first_intervals(&w)) == GS_OK)
        st = back(&w);
    for (int k = 0; k < w.count; k++) {
        gs_lp__graph_free(&w.graph[k]);
        if (k != 0)
            gs_free(w.of[k]);
    }
    return st;
}
