/* order.c - the interval of every vertex, and its edges bucketed by chunk. */
#include "partition/order.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "partition/intervals.h"
#include "ranks/ranks.h"
#include "store/store.h" /* gs_split */

/* ---- one streaming pass that puts each vertex where its neighbours are.
 *
 * Tsourakakis et al., "FENNEL: streaming graph partitioning for massive scale
 * graphs", WSDM 2014, with gamma 3/2: vertex v goes to the interval i with the
 * largest |N(v) in i| - alpha * gamma * sqrt(|i|), alpha = m * sqrt(P) / N^1.5,
 * among those with room. Only smaller ids are placed when v comes, so only
 * edges to smaller ids are needed. Sequential, hence the same on any machine.
 */

#define AHEAD_NEIGHBOURS 64u

typedef struct fennel_state {
    gs_part_grid grid;
    uint32_t *part; /* the caller's */
    double scale;   /* alpha * gamma */
    double *cost;   /* [P] scale * sqrt(size) */
    uint32_t *size, *room; /* [P] */
    uint32_t *near; /* [P] neighbours of the current vertex in each interval */
    uint32_t *touched; /* [P] intervals with near != 0 */
    /* Intervals by ascending size, so that the emptiest is known: */
    uint32_t *ranked, *rank; /* [P] permutation and its inverse */
    uint32_t *neighbour; /* [neighbour_cap] of the block, by vertex */
    uint32_t *start;     /* [start_cap] */
    uint64_t neighbour_cap, start_cap;
    gs_arena memory; /* of what is [P] */
} fennel_state;

static void fennel_free(fennel_state *f)
{
    if (f == NULL)
        return;
    gs_arena_free(&f->memory);
    gs_free(f->neighbour);
    gs_free(f->start);
    gs_free(f);
}

static gs_status fennel_make(fennel_state **out, const gs_part_grid *grid, uint64_t edges, bool symmetric,
                               uint32_t *part)
{
    const uint32_t parts = grid->parts;
    const double n = (double)grid->vertices, m = symmetric ? (double)edges / 2 : (double)edges;
    fennel_state *f = gs_calloc(1, sizeof(*f));

    GS_NEED(f != NULL, "no memory for ordering");
    f->grid = *grid;
    f->part = part;
    /* A symmetric edge is seen twice, so twice the scale keeps the balance. */
    f->scale = 1.5 * (symmetric ? 2 : 1) * m * sqrt((double)parts) / (n * sqrt(n));
    f->cost = gs_arena_take(&f->memory, parts, sizeof(*f->cost));
    f->size = gs_arena_take(&f->memory, parts, 4);
    f->room = gs_arena_take(&f->memory, parts, 4);
    f->near = gs_arena_take(&f->memory, parts, 4);
    f->touched = gs_arena_take(&f->memory, parts, 4);
    f->ranked = gs_arena_take(&f->memory, parts, 4);
    f->rank = gs_arena_take(&f->memory, parts, 4);
    if (f->memory.is_short) {
        fennel_free(f);
        return gs_fail(GS_ENOMEM, "no memory for ordering by %u intervals", parts);
    }
    for (uint32_t i = 0; i < parts; i++) {
        f->room[i] = gs_part__grid_capacity(grid, i);
        f->ranked[i] = f->rank[i] = i;
    }
    *out = f;
    return GS_OK;
}

/* Neighbours by vertex, as CSR: counts, places, fill. */
static gs_status group(fennel_state *f, uint64_t first, uint64_t vertices, const uint32_t *records, uint64_t count,
                       uint32_t words)
{
    if (count > f->neighbour_cap) {
        gs_free(f->neighbour);
        f->neighbour_cap = 0;
        if ((f->neighbour = gs_malloc_array(count, 4)) == NULL)
            return gs_fail(GS_ENOMEM, "no memory for the neighbours of a block of %lu edges", count);
        f->neighbour_cap = count;
    }
    if (vertices + 2 > f->start_cap) {
        gs_free(f->start);
        f->start_cap = 0;
        if ((f->start = gs_malloc_array(vertices + 2, 4)) == NULL)
            return gs_fail(GS_ENOMEM, "no memory for a block of %lu vertices", vertices);
        f->start_cap = vertices + 2;
    }
    uint32_t *const place = f->start + 1; /* counts two ahead, so that filling leaves starts behind */
    memset(f->start, 0, (vertices + 2) * 4);
    for (const uint32_t *r = records; r < records + count * words; r += words)
        place[GS_MAX(r[0], r[1]) - first + 1]++;
    for (uint64_t i = 1; i <= vertices; i++)
        place[i] += place[i - 1];
    for (const uint32_t *r = records; r < records + count * words; r += words)
        f->neighbour[place[GS_MAX(r[0], r[1]) - first]++] = GS_MIN(r[0], r[1]);
    return GS_OK;
}

/* The interval with least in it that has room: full ones are at the end, but
 * for the last interval, whose capacity may be less than another's size. */
static uint32_t emptiest(const fennel_state *f)
{
    uint32_t k = 0;
    while (f->room[f->ranked[k]] == 0)
        k++;
    return f->ranked[k];
}

/* One vertex more in interval i; keeps `ranked` sorted: i trades places with
 * the last interval of its size. */
static void grow(fennel_state *f, uint32_t i)
{
    uint32_t last = f->rank[i], beyond = f->grid.parts; /* sizes at last and beyond: equal, larger */
    while (beyond - last > 1) {
        const uint32_t middle = last + (beyond - last) / 2;
        if (f->size[f->ranked[middle]] == f->size[i])
            last = middle;
        else
            beyond = middle;
    }
    const uint32_t other = f->ranked[last], from = f->rank[i];
    f->ranked[from] = other;
    f->rank[other] = from;
    f->ranked[last] = i;
    f->rank[i] = last;
    f->size[i]++;
    f->room[i]--;
    f->cost[i] = f->scale * sqrt((double)f->size[i]);
}

static void place_vertex(fennel_state *f, uint32_t v, const uint32_t *neighbour, uint32_t degree)
{
    uint32_t touched = 0, best = emptiest(f);

    for (uint32_t k = 0; k < degree; k++) {
        if (neighbour[k] == v) /* a self loop pulls nowhere */
            continue;
        const uint32_t i = f->part[neighbour[k]];
        if (f->near[i]++ == 0)
            f->touched[touched++] = i;
    }
    double score = (double)f->near[best] - f->cost[best];
    for (uint32_t k = 0; k < touched; k++) {
        const uint32_t i = f->touched[k];
        const double s = (double)f->near[i] - f->cost[i];
        /* ties to the lower number: the order of `touched` must not matter */
        if (f->room[i] != 0 && (s > score || (s == score && i < best))) {
            score = s;
            best = i;
        }
    }
    for (uint32_t k = 0; k < touched; k++)
        f->near[f->touched[k]] = 0;
    f->part[v] = best;
    grow(f, best);
}

/* Assigns the vertices of one block, in order. */
static gs_status fennel_block(fennel_state *f, uint64_t first, uint64_t vertices, const uint32_t *records,
                                uint64_t count, uint32_t words)
{
    GS_TRY(group(f, first, vertices, records, count, words));
    uint64_t ahead = 0; /* neighbours whose intervals are on their way into the cache */
    for (uint64_t i = 0; i < vertices; i++) {
        for (const uint64_t to = GS_MIN(f->start[i] + AHEAD_NEIGHBOURS, count); ahead < to; ahead++)
            __builtin_prefetch(&f->part[f->neighbour[ahead]]);
        place_vertex(f, (uint32_t)(first + i), f->neighbour + f->start[i], f->start[i + 1] - f->start[i]);
    }
    return GS_OK;
}

/* ---- from intervals to rows: which rows of an interval lie together?
 *
 * Rows that the same other intervals need should be neighbours, so that a selective read is a few long
 * runs, whether it is for one interval or for a block of them. So an interval's rows, where few are
 * labelled those first and with them those that they hear, are sorted by the set of groups of intervals
 * that need them, for 9 groups of neighbouring intervals, then for 18, then for each interval. With
 * 2.1M vertices and 58M edges in 36 parts by METIS and gaps read through where that is faster, an interval
 * needs 0.25 of the rows of the others (0.36 where rows are sorted by the set of intervals at
 * once, 0.09 are named by edges), two 0.28 (0.41, 0.18), four 0.35 (0.52, 0.32).
 */

#define NEED_BITS 64u /* of a set of intervals, or of neighbours where there are more */
#define WIDE 9u
#define NARROW 18u

/* Sets in the order of a Gray code differ little from one to the next. */
static uint64_t gray_place(uint64_t set)
{
    for (uint32_t shift = 1; shift < 64; shift *= 2)
        set ^= set >> shift;
    return set;
}

/* The groups, of `groups` equal ones, that a set of `bits` bits meets. */
static uint64_t in_groups(uint64_t set, uint32_t bits, uint32_t groups)
{
    uint64_t out = 0;
    for (; set != 0; set &= set - 1)
        out |= 1ull << (uint32_t)__builtin_ctzll(set) * groups / bits;
    return out;
}

/* Vertices that nobody else needs come first, those that most intervals need come last. */
static uint64_t need_key(uint64_t need, uint32_t bits)
{
    const uint32_t count = (uint32_t)__builtin_popcountll(need);

    if (need == 0)
        return 0;
    if (count * 2 > bits)
        return 2ull << 59 | count;
    return 1ull << 59 | gray_place(in_groups(need, bits, WIDE)) << NARROW | gray_place(in_groups(need, bits, NARROW));
}

/* Buffers of one thread for one interval. */
typedef struct bench {
    gs_part_key16 *keys, *spare;
} bench;

/* Sorts w->keys, whose `type` is a place in ids; what is equal keeps its order. */
static void sort_keys(bench *w, uint32_t n)
{
    gs_part_key16 *const sorted = gs_part__sort16(w->keys, w->spare, n, 64, 0, 0);
    w->spare = sorted == w->keys ? w->spare : w->keys;
    w->keys = sorted;
}

static uint64_t need_of(const gs_part_order *o, uint32_t id) { return o->need != NULL ? o->need[id] : 0; }

static void order_interval(gs_part_order *o, uint32_t interval, const gs_permute *random, bench *w)
{
    uint32_t *const ids = o->input_id + (uint64_t)interval * o->grid.rows;
    const uint32_t n = gs_part__grid_capacity(&o->grid, interval), bits = GS_MIN(o->grid.parts, NEED_BITS);

    for (uint32_t i = 0; i < n; i++)
        w->keys[i] =
            (gs_part_key16){random != NULL ? gs_part__permute(random, ids[i]) : gray_place(need_of(o, ids[i])), i, 0};
    sort_keys(w, n);
    if (random == NULL) {
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t id = ids[w->keys[i].type];
            const uint64_t level = o->level != NULL ? o->level[id] : GS_PART_LEARNED;
            w->keys[i].key = level << 61 | need_key(need_of(o, id), bits);
        }
        sort_keys(w, n);
    }
    uint32_t *const moved = (uint32_t *)w->spare;
    for (uint32_t i = 0; i < n; i++)
        moved[i] = ids[w->keys[i].type];
    memcpy(ids, moved, (size_t)n * 4);
}

static gs_status order_all(gs_part_order *o, gs_part_job *job, bool is_random)
{
    const uint64_t bytes = (uint64_t)o->grid.rows * sizeof(gs_part_key16);
    const uint32_t threads = (uint32_t)GS_MAX(1, GS_MIN(job->threads, job->buffers / (2 * bytes)));
    const gs_permute random = gs_part__permute_make(o->grid.vertices, job->opt->seed, GS_RANDOM_PARTITION);

#pragma omp parallel num_threads(threads)
    {
        bench w = {gs_malloc(bytes), gs_malloc(bytes)};
        if (w.keys == NULL || w.spare == NULL)
            gs_part__job_fail(job, gs_fail(GS_ENOMEM, "no memory to order an interval of %u rows", o->grid.rows));
#pragma omp for schedule(dynamic, 1)
        for (uint32_t i = 0; i < o->grid.parts; i++)
            if (!gs_part__job_stop(job))
                order_interval(o, i, is_random ? &random : NULL, &w);
        gs_free(w.keys);
        gs_free(w.spare);
    }
    return gs_part__job_result(job);
}

static gs_status list_by_interval(gs_part_order *o)
{
    uint64_t *next = gs_malloc_array(o->grid.parts, 8);

    o->input_id = gs_malloc_array(o->grid.vertices, 4);
    if (next == NULL || o->input_id == NULL) {
        gs_free(next);
        return gs_fail(GS_ENOMEM, "no memory for the order of %lu vertices", o->grid.vertices);
    }
    for (uint32_t i = 0; i < o->grid.parts; i++)
        next[i] = (uint64_t)i * o->grid.rows;
    for (uint64_t v = 0; v < o->grid.vertices; v++)
        o->input_id[next[o->part[v]]++] = (uint32_t)v;
    gs_free(next);
    return GS_OK;
}

/* part (and need) to position and input_id. */
static gs_status make_positions(gs_part_order *o, gs_part_job *job)
{
    const bool random = strcmp(o->method, "random") == 0;

    GS_TRY(list_by_interval(o));
    o->groups = 1;
    if (o->need != NULL || o->level != NULL || random) {
        o->groups = o->need != NULL || random ? (uint32_t)o->grid.vertices : GS_PART_LEVELS * o->grid.parts;
        GS_TRY(order_all(o, job, random));
    } else if (o->grid.parts > 1 && strcmp(o->method, "natural") != 0) {
        o->groups = o->grid.parts;
    }
    gs_free(o->need);
    gs_free(o->level);
    o->need = NULL;
    o->level = NULL;
    o->position = o->part; /* the same memory: interval numbers are needed no more */
    o->part = NULL;
    for (uint64_t p = 0; p < o->grid.vertices; p++)
        o->position[o->input_id[p]] = (uint32_t)p;
    return GS_OK;
}

gs_status gs_part__largest_chunk(uint64_t *edges, const gs_part_order *o, uint64_t cap)
{
    const gs_external_sort *s = o->chunked[0];
    const uint64_t width = 1ull << o->region_shift, piece = 4096;
    GS_FREED uint64_t *const count = gs_malloc_array(width, 8);
    uint64_t most = 0;
    GS_FREED uint32_t *records = gs_malloc_array(piece, s->spec.words * 4u);
    gs_status st =
        count && records ? GS_OK : gs_fail(GS_ENOMEM, "no memory to count %lu chunks", width);

    for (uint32_t region = 0; st == GS_OK && region < s->spec.buckets; region++) {
        gs_sort_cursor at = gs_sort_first(s, region);
        uint64_t got = 1;
        if (gs_sort_records(s, region) <= cap)
            continue; /* so has each of its chunks */
        memset(count, 0, width * 8);
        while (st == GS_OK && got != 0 && (st = gs_sort_read(s, &at, records, piece, &got)) == GS_OK) {
            for (uint32_t *r = records; r < records + got * s->spec.words; r += s->spec.words) {
                const uint64_t t = gs_fastdiv_of(o->grid.by_rows, o->position[r[1]]);
                const uint64_t chunk = t * o->grid.parts + gs_fastdiv_of(o->grid.by_rows, o->position[r[0]]);
                count[chunk - region * width]++;
                most = GS_MAX(most, count[chunk - region * width]);
            }
        }
    }
    if (st == GS_OK)
        *edges = most;
    return st;
}

/* ---- one pass over the blocks ----------------------------------------------------- */

#define MOST_REGIONS 256u /* more streams than this cost cache misses in scatter() */
#define LANE_BYTES 4096u     /* least buffer of a stream */
#define QUEUE_BLOCKS 64u
#define FEW_LABELS 10u /* labelled vertices: at most one in so many */
#define SOME_LABELS 2u /* vertices of the training split likewise */
#define AHEAD 16u /* edges to prefetch ahead: about a memory latency of work */

/* A block whose vertices all have their interval, to be bucketed by chunk. */
typedef struct placed_block {
    uint32_t *records;
    uint64_t count;
} placed_block;

/* The caller reads and places blocks; these threads bucket what is placed. */
typedef struct scattering {
    gs_part_order *o;
    gs_part_job *job;
    const gs_part_blocks *b;
    fennel_state *fennel; /* NULL: the order is known */
    pthread_t thread[GS_PART_MOST_THREADS];
    uint32_t threads, numbered; /* numbered: threads that took their writer number, atomic */
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    placed_block queue[QUEUE_BLOCKS];
    uint32_t head, length;
    uint64_t in_flight; /* records, queued or being bucketed */
    bool closed;
    uint64_t cut;
} scattering;

static inline void mark_need(uint64_t *need, uint64_t bit)
{
    /* Most edges find their bit set: look before the costly store. */
    if ((__atomic_load_n(need, __ATOMIC_RELAXED) & bit) == 0)
        __atomic_fetch_or(need, bit, __ATOMIC_RELAXED);
}

/* The nearest of all; several threads may find the vertex at once. */
static inline void bring_near(uint8_t *level, uint8_t to)
{
    uint8_t old = __atomic_load_n(level, __ATOMIC_RELAXED);
    while (old > to && !__atomic_compare_exchange_n(level, &old, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static inline uint64_t need_bit(uint32_t part, uint32_t parts)
{
    return 1ull << (parts <= 64 ? part : (uint32_t)((uint64_t)part * 64 / parts));
}

static gs_status put_chunked(const gs_part_order *o, gs_direction d, uint32_t writer, uint32_t target,
                             uint32_t operand, const uint32_t *record, uint32_t words)
{
    const uint64_t chunk = (uint64_t)target * o->grid.parts + operand;
    uint32_t *to = gs_sort_put(o->chunked[d], writer, (uint32_t)(chunk >> o->region_shift));
    if (__builtin_expect(to == NULL, 0))
        return gs_sort_failure(o->chunked[d]);
    for (uint32_t w = 0; w < words; w++)
        to[w] = record[w];
    return GS_OK;
}

static gs_status scatter(const scattering *s, const uint32_t *records, uint64_t count, uint32_t writer, uint64_t *cut)
{
    gs_part_order *const o = s->o;
    const uint32_t words = s->b->words, parts = o->grid.parts;
    const bool both = o->chunked[GS_BY_SOURCE] != NULL;

    for (uint64_t i = 0; i < count; i++) {
        const uint32_t *r = records + i * words;
        if (i + AHEAD < count) { /* one end of each edge is anywhere in these tables */
            const uint32_t *next = r + AHEAD * words;
            __builtin_prefetch(&o->part[GS_MIN(next[0], next[1])]);
            if (o->need != NULL)
                __builtin_prefetch(&o->need[GS_MIN(next[0], next[1])], 1);
        }
        const uint32_t pu = o->part[r[0]], pv = o->part[r[1]];
        *cut += pu != pv;
        if (o->hears && s->job->split[r[1]] != GS_SPLIT_NONE)
            bring_near(&o->level[r[0]], s->job->split[r[1]] == GS_SPLIT_TRAIN ? GS_PART_FED : GS_PART_HEARD);
        if (o->need != NULL && pu != pv) {
            mark_need(&o->need[r[0]], need_bit(pv, parts));
            if (both)
                mark_need(&o->need[r[1]], need_bit(pu, parts));
        }
        GS_TRY(put_chunked(o, GS_BY_DEST, writer, pv, pu, r, words));
        if (both)
            GS_TRY(put_chunked(o, GS_BY_SOURCE, writer, pu, pv, r, words));
    }
    return GS_OK;
}

static bool take_block(scattering *s, placed_block *out)
{
    pthread_mutex_lock(&s->lock);
    while (s->length == 0 && !s->closed)
        pthread_cond_wait(&s->changed, &s->lock);
    const bool any = s->length != 0;
    if (any) {
        *out = s->queue[s->head];
        s->head = (s->head + 1) % QUEUE_BLOCKS;
        s->length--;
    }
    pthread_mutex_unlock(&s->lock);
    return any;
}

static void *scatter_thread(void *context)
{
    scattering *s = context;
    const uint32_t writer = __atomic_fetch_add(&s->numbered, 1, __ATOMIC_RELAXED);
    placed_block block;
    uint64_t cut = 0;

    while (take_block(s, &block)) { /* after a failure too: the records must be freed */
        if (!gs_part__job_stop(s->job))
            gs_part__job_fail(s->job, scatter(s, block.records, block.count, writer, &cut));
        gs_free(block.records);
        pthread_mutex_lock(&s->lock);
        s->in_flight -= block.count;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_lock(&s->lock);
    s->cut += cut;
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static gs_status order_block(void *context, uint64_t first, uint64_t vertices, uint32_t *records, uint64_t count)
{
    scattering *s = context;

    if (s->fennel != NULL) {
        const gs_status st = fennel_block(s->fennel, first, vertices, records, count, s->b->words);
        if (st != GS_OK) {
            gs_free(records);
            return st;
        }
    }
    pthread_mutex_lock(&s->lock);
    while (s->length == QUEUE_BLOCKS || (s->in_flight != 0 && s->in_flight + count > s->b->cap))
        pthread_cond_wait(&s->changed, &s->lock);
    s->queue[(s->head + s->length++) % QUEUE_BLOCKS] = (placed_block){records, count};
    s->in_flight += count;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return gs_part__job_result(s->job);
}

static gs_status scatter_all(scattering *s)
{
    gs_status st = GS_OK;

    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    for (; s->threads < s->job->threads && st == GS_OK; s->threads += st == GS_OK) {
        const int rc = pthread_create(&s->thread[s->threads], NULL, scatter_thread, s);
        if (rc != 0)
            st = gs_fail_errno(rc, "cannot start a thread");
    }
    if (st == GS_OK)
        st = gs_part__blocks_each(s->b, s->job, order_block, s);
    gs_part__job_fail(s->job, st);
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    for (uint32_t i = 0; i < s->threads; i++)
        pthread_join(s->thread[i], NULL);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    return gs_part__job_result(s->job);
}

/* Streams: runs of 2^shift chunks in file order, few enough to buffer. */
static gs_status make_sorts(gs_part_order *o, gs_part_job *job, const gs_part_blocks *b)
{
    const uint64_t chunks = (uint64_t)o->grid.parts * o->grid.parts;
    const uint64_t most = GS_MAX(GS_MIN(job->buffers / 8 / job->threads / LANE_BYTES, MOST_REGIONS), 1);
    gs_sort_spec spec = {.dir = job->dir, .name = "tmp.dest", .writers = job->threads, .words = b->words,
                         .memory = job->buffers / 8, .records = b->edges};
    gs_status st;

    while ((chunks - 1) >> o->region_shift >= most)
        o->region_shift++;
    spec.buckets = (uint32_t)((chunks - 1) >> o->region_shift) + 1;
    if ((st = gs_sort_make(&o->chunked[0], &spec)) != GS_OK || b->symmetric)
        return st;
    spec.name = "tmp.source";
    return gs_sort_make(&o->chunked[1], &spec);
}

/* ---- intervals for ranks ---------------------------------------------------- */

/* METIS and label propagation number intervals as they find them: those with hubs lie together, and so do those of
 * vertices without edges. For one process that is well, as blocks of chunks are full or empty. But ranks own runs of
 * intervals, and one that has its share of the edges has a few rows or very many, which are work, too. So intervals are
 * numbered anew, such that the first k of them have about k times a P-th of the edges, and each N-th of the intervals
 * has an N-th of edges and rows, whatever the model makes of either. Each stays behind those that it was behind, of its
 * kind, as parts that lie together share edges.
 */

typedef struct counting {
    const gs_part_order *o;
    uint64_t *ends; /* [parts] of edges, in the interval */
    uint32_t words;
} counting;

static gs_status count_block(void *context, uint64_t first, uint64_t vertices, uint32_t *records, uint64_t count)
{
    const counting *const x = context;
    const uint32_t *const part = x->o->part;
    (void)first;
    (void)vertices;

    for (uint64_t i = 0; i < count; i++) {
        const uint32_t *const r = records + i * x->words;
        if (i + AHEAD < count)
            __builtin_prefetch(&part[GS_MIN(r[AHEAD * x->words], r[AHEAD * x->words + 1])]);
        x->ends[part[r[0]]]++;
        x->ends[part[r[1]]]++;
    }
    gs_free(records);
    return GS_OK;
}

/* Which interval is to have each number: the next one, unless its edges are then half a mean interval off those that it
 * should lie between; then the next that has more than the mean, or less. An interval of many lies amid its own. */
static void take_turns(uint32_t *taken, const uint64_t *ends, uint32_t parts)
{
    double all = 0, before = 0;
    uint32_t next[2] = {0, 0}; /* the first that is not taken, of those with fewer than the mean, and of the others */

    for (uint32_t i = 0; i < parts; i++)
        all += (double)ends[i];
    const double mean = all / GS_MAX(parts, 1);
    for (uint32_t number = 0; number < parts; number++) {
        for (int rich = 0; rich < 2; rich++)
            while (next[rich] < parts && ((double)ends[next[rich]] >= mean) != rich)
                next[rich]++;
        uint32_t *take = next[0] < next[1] ? &next[0] : &next[1];
        const double off = before + (double)ends[*take] / 2 - (number + 0.5) * mean;
        if (off > mean / 2 && next[0] < parts)
            take = &next[0];
        else if (off < -mean / 2 && next[1] < parts)
            take = &next[1];
        before += (double)ends[*take];
        taken[number] = (*take)++;
    }
}

/* The swap of an interval of run `from` for one of another run that leaves the larger of the two as small as can be;
 * false: none makes `from` smaller. */
static bool best_swap(uint32_t at[2], uint32_t *to, const uint32_t *taken, const uint64_t *ends, const uint64_t *sum,
                      const uint32_t *first, uint32_t ranks, uint32_t from)
{
    uint64_t best = sum[from];

    for (uint32_t k = 0; k < ranks; k++)
        for (uint32_t i = first[from]; k != from && i < first[from + 1]; i++)
            for (uint32_t j = first[k]; j < first[k + 1]; j++) {
                const uint64_t more = ends[taken[i]] - GS_MIN(ends[taken[i]], ends[taken[j]]);
                const uint64_t larger = GS_MAX(sum[from] - more, sum[k] + more);
                if (more > 0 && larger < best) {
                    best = larger;
                    at[0] = i;
                    at[1] = j;
                    *to = k;
                }
            }
    return best < sum[from];
}

#define SWAPS 4u /* for each rank: where edges are as uneven as R-MAT's, so many leave some hundredths */

/* A rank with a 32nd more than its share is left so, as parts that lie together are then. `stay`: of the last rank,
 * besides. */
static void even_out(uint32_t *taken, const uint64_t *ends, const uint32_t *first, uint32_t ranks, uint64_t stay)
{
    uint64_t sum[GS_SHARDS_MOST] = {0}, all = 0;
    uint32_t at[2] = {0, 0}, to = 0;

    sum[ranks - 1] = stay;
    for (uint32_t k = 0; k < ranks; all += sum[k++])
        for (uint32_t i = first[k]; i < first[k + 1]; i++)
            sum[k] += ends[taken[i]];
    for (uint32_t n = 0; n < SWAPS * ranks; n++) {
        uint32_t most = 0;
        for (uint32_t k = 1; k < ranks; k++)
            most = sum[k] > sum[most] ? k : most;
        if (sum[most] <= all / ranks / 32 * 33 || !best_swap(at, &to, taken, ends, sum, first, ranks, most))
            return;
        const uint32_t one = taken[at[0]], other = taken[at[1]];
        sum[most] -= ends[one] - ends[other];
        sum[to] += ends[one] - ends[other];
        taken[at[0]] = other;
        taken[at[1]] = one;
    }
}

void gs_part__number_for(uint32_t *to, uint32_t *spare, const uint64_t *ends, uint32_t parts, bool is_short,
                         uint32_t ranks)
{
    const uint32_t movable = parts - is_short;
    uint32_t first[GS_SHARDS_MOST + 1];

    for (uint32_t k = 0; k < ranks; k++)
        first[k] = (uint32_t)((uint64_t)parts * k / ranks);
    first[ranks] = movable;
    take_turns(spare, ends, movable);
    even_out(spare, ends, first, ranks, is_short ? ends[parts - 1] : 0);
    for (uint32_t k = 0; k < ranks; k++) /* a rank's own stand as they stood */
        qsort(spare + first[k], first[k + 1] - first[k], sizeof(*spare), gs_by_number);
    spare[parts - 1] = is_short ? parts - 1 : spare[parts - 1];
    for (uint32_t number = 0; number < parts; number++)
        to[spare[number]] = number;
}

static gs_status number_for(gs_part_order *o, gs_part_job *job, const gs_part_blocks *b, uint32_t ranks)
{
    const uint32_t parts = o->grid.parts, last = parts - 1;
    GS_FREED uint64_t *const ends = gs_calloc(parts, sizeof(*ends));
    GS_FREED uint32_t *const to = gs_malloc_array(2 * (uint64_t)parts, sizeof(*to));
    counting x = {o, ends, b->words};

    GS_NEED(ends != NULL && to != NULL, "no memory for %u intervals", parts);
    GS_TRY(gs_part__blocks_each(b, job, count_block, &x));
    if (job->ranks > 1)
        GS_TRY(gs_ranks_sum_u64(ends, parts));
    gs_part__number_for(to, to + parts, ends, parts, gs_part__grid_capacity(&o->grid, last) < o->grid.rows, ranks);
    for (uint64_t v = 0; v < o->grid.vertices; v++)
        o->part[v] = to[o->part[v]];
    return GS_OK;
}

static void fill_natural(gs_part_order *o)
{
    for (uint64_t v = 0; v < o->grid.vertices; v++)
        o->part[v] = gs_fastdiv_of(o->grid.by_rows, (uint32_t)v);
}

static void fill_random(gs_part_order *o, gs_part_job *job)
{
    const gs_permute p = gs_part__permute_make(o->grid.vertices, job->opt->seed, GS_RANDOM_PARTITION);
#pragma omp parallel for num_threads(job->threads) schedule(static)
    for (uint64_t v = 0; v < o->grid.vertices; v++)
        o->part[v] = gs_fastdiv_of(o->grid.by_rows, (uint32_t)gs_part__permute(&p, v));
}

static gs_status choose_method(gs_part_order *o, gs_part_job *job, const gs_part_blocks *b, const char *method,
                               char *note, size_t note_cap)
{
    char why[160] = "";
    const bool metis = method == NULL || strcmp(method, "metis") == 0;

    if (metis)
        gs_part__metis_fits(why, sizeof(why), job, b, &o->grid);
    if (why[0] != '\0' && method != NULL)
        snprintf(note, note_cap, "fennel instead of metis: %s", why);
    snprintf(o->method, sizeof(o->method), "%s", metis ? (why[0] == '\0' ? "metis" : "fennel") : method);
    return GS_OK;
}

static gs_status assign(gs_part_order *o, gs_part_job *job, const gs_part_blocks *b, fennel_state **fennel)
{
    if (strcmp(o->method, "natural") == 0)
        fill_natural(o);
    else if (strcmp(o->method, "random") == 0)
        fill_random(o, job);
    else if (strcmp(o->method, "metis") == 0)
        GS_TRY(gs_part__metis(o->part, &o->grid, job, b));
    else if (strcmp(o->method, "lp") == 0)
        GS_TRY(gs_part__lp(o->part, &o->grid, job, b));
    else if (strcmp(o->method, "fennel") == 0)
        GS_TRY(fennel_make(fennel, &o->grid, b->edges, b->symmetric, o->part));
    else
        return gs_fail(GS_EINVAL, "method: '%s' is not known; use metis, lp, fennel, random or natural", o->method);
    return GS_OK;
}

/* Where not nearly all vertices are labelled those stand first in their intervals, so that what a loss sees is a few
 * runs of rows: the training split before the others, as gradients of the last layer's sums are 0 elsewhere. Where few
 * are, so are the rows of the layer below, those that they hear. */
static gs_status take_levels(gs_part_order *o, const gs_part_job *job)
{
    const uint64_t n = o->grid.vertices;

    if (job->split == NULL || job->labelled == 0 || job->train > n / SOME_LABELS)
        return GS_OK;
    o->hears = job->labelled <= n / FEW_LABELS;
    GS_NEED((o->level = gs_malloc(n)) != NULL, "no memory for the order of %lu vertices", n);
    for (uint64_t v = 0; v < n; v++)
        o->level[v] = job->split[v] == GS_SPLIT_NONE    ? GS_PART_OTHER
                      : job->split[v] == GS_SPLIT_TRAIN ? GS_PART_LEARNED
                                                        : GS_PART_LABELLED;
    return GS_OK;
}

/* Each rank has seen its share of the edges. */
static gs_status share_marks(const gs_part_order *o)
{
    const uint64_t n = o->grid.vertices;
    gs_status st = o->need != NULL ? gs_ranks_unite(o->need, n) : GS_OK;

    if (st == GS_OK && o->hears)
        st = gs_ranks_least_u8(o->level, n);
    return st;
}

static void scattering_end(scattering *s)
{
    fennel_free(s->fennel);
    s->fennel = NULL;
}

gs_status gs_part__order_make(gs_part_order *o, gs_part_job *job, const gs_part_blocks *b, uint32_t parts,
                              const char *method, char *note, size_t note_cap)
{
    GS_ENDS(scattering_end) scattering s = {.o = o, .job = job, .b = b};
    const uint32_t ranks = job->opt->shards > 0 ? job->opt->shards : job->opt->ranks;

    memset(o, 0, sizeof(*o));
    o->grid = gs_part__grid_make(b->vertices, parts);
    GS_TRY(choose_method(o, job, b, method, note, note_cap));
    const bool placed = strcmp(o->method, "natural") != 0 && strcmp(o->method, "random") != 0;
    if ((o->part = gs_malloc_array(b->vertices, 4)) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the intervals of %lu vertices", b->vertices);
    GS_TRY(assign(o, job, b, &s.fennel));
    if (placed && s.fennel == NULL && ranks > 1)
        GS_TRY(number_for(o, job, b, ranks));
    if (placed && o->grid.parts > 1 && (o->need = gs_calloc(b->vertices, 8)) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the order of %lu vertices", b->vertices);
    if (placed)
        GS_TRY(take_levels(o, job));
    GS_TRY(make_sorts(o, job, b));
    GS_TRY(scatter_all(&s));
    GS_TRY(gs_sort_finish(o->chunked[0]));
    if (o->chunked[1] != NULL)
        GS_TRY(gs_sort_finish(o->chunked[1]));
    o->cut = s.cut;
    scattering_end(&s);
    if (job->ranks > 1)
        GS_TRY(share_marks(o));
    return make_positions(o, job);
}

void gs_part__order_free(gs_part_order *o)
{
    gs_free(o->part);
    gs_free(o->need);
    gs_free(o->level);
    gs_free(o->position);
    gs_free(o->input_id);
    gs_sort_free(o->chunked[0]);
    gs_sort_free(o->chunked[1]);
    memset(o, 0, sizeof(*o));
}
