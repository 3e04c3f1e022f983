/* order.c - the interval of every vertex, and its edges bucketed by chunk. */
#include "partition/order.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/philox.h"
#include "base/size.h"
#include "partition/blocks.h"
#include "partition/fennel.h"
#include "partition/grid.h"
#include "partition/job.h"
#include "partition/lp.h"
#include "partition/order_metis.h"
#include "partition/permute.h"
#include "partition/position.h"
#include "partition/vertex_order.h"
#include "store/store.h" /* gs_split */

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
    gs_fennel *fennel; /* NULL: the order is known */
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
    gs_status st = GS_OK;

    for (uint64_t i = 0; i < count && st == GS_OK; i++) {
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
        st = put_chunked(o, GS_BY_DEST, writer, pv, pu, r, words);
        if (both && st == GS_OK)
            st = put_chunked(o, GS_BY_SOURCE, writer, pu, pv, r, words);
    }
    return st;
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
        const gs_status st = gs_part__fennel_block(s->fennel, first, vertices, records, count, s->b->words);
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
                         .memory = job->buffers / 8};
    gs_status st;

    while ((chunks - 1) >> o->region_shift >= most)
        o->region_shift++;
    spec.buckets = (uint32_t)((chunks - 1) >> o->region_shift) + 1;
    if ((st = gs_sort_make(&o->chunked[0], &spec)) != GS_OK || b->symmetric)
        return st;
    spec.name = "tmp.source";
    return gs_sort_make(&o->chunked[1], &spec);
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

static gs_status assign(gs_part_order *o, gs_part_job *job, const gs_part_blocks *b, gs_fennel **fennel)
{
    gs_status st = GS_OK;

    if (strcmp(o->method, "natural") == 0)
        fill_natural(o);
    else if (strcmp(o->method, "random") == 0)
        fill_random(o, job);
    else if (strcmp(o->method, "metis") == 0)
        st = gs_part__metis(o->part, &o->grid, job, b);
    else if (strcmp(o->method, "lp") == 0)
        st = gs_part__lp(o->part, &o->grid, job, b);
    else if (strcmp(o->method, "fennel") == 0)
        st = gs_part__fennel_make(fennel, &o->grid, b->edges, b->symmetric, o->part);
    else
        st = gs_fail(GS_EINVAL, "method: '%s' is not known; use metis, lp, fennel, random or natural", o->method);
    return st;
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
    if ((o->level = gs_malloc(n)) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the order of %llu vertices", (unsigned long long)n);
    for (uint64_t v = 0; v < n; v++)
        o->level[v] = job->split[v] == GS_SPLIT_NONE    ? GS_PART_OTHER
                      : job->split[v] == GS_SPLIT_TRAIN ? GS_PART_LEARNED
                                                        : GS_PART_LABELLED;
    return GS_OK;
}

gs_status gs_part__order_make(gs_part_order *o, gs_part_job *job, const gs_part_blocks *b, uint32_t parts,
                              const char *method, char *note, size_t note_cap)
{
    scattering s = {.o = o, .job = job, .b = b};
    gs_status st;

    memset(o, 0, sizeof(*o));
    o->grid = gs_part__grid_make(b->vertices, parts);
    if ((st = choose_method(o, job, b, method, note, note_cap)) != GS_OK)
        return st;
    const bool placed = strcmp(o->method, "natural") != 0 && strcmp(o->method, "random") != 0;
    if ((o->part = gs_malloc_array(b->vertices, 4)) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the intervals of %llu vertices", (unsigned long long)b->vertices);
    if ((st = assign(o, job, b, &s.fennel)) != GS_OK)
        goto done;
    if (placed && o->grid.parts > 1 && (o->need = gs_calloc(b->vertices, 8)) == NULL) {
        st = gs_fail(GS_ENOMEM, "no memory for the order of %llu vertices", (unsigned long long)b->vertices);
        goto done;
    }
    if ((placed && (st = take_levels(o, job)) != GS_OK) || (st = make_sorts(o, job, b)) != GS_OK ||
        (st = scatter_all(&s)) != GS_OK ||
        (st = gs_sort_finish(o->chunked[0])) != GS_OK ||
        (o->chunked[1] != NULL && (st = gs_sort_finish(o->chunked[1])) != GS_OK))
        goto done;
    o->cut = s.cut;
    gs_part__fennel_free(s.fennel);
    s.fennel = NULL;
    st = gs_part__positions(o, job);
done:
    gs_part__fennel_free(s.fennel);
    return st;
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
