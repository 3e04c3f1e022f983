/* blocks.c - the edge list, read once, bucketed on disk by vertex blocks.
 *
 * The block of an edge is that of its larger endpoint id. Reading blocks in
 * order then gives, for every vertex, all its edges to smaller ids at once:
 * what a streaming order needs, with each edge stored once. An edge and its
 * reverse are in the same block.
 */
#include "partition/order.h"

#include <fcntl.h>
#include <omp.h>
#include <string.h>

#include "base/alloc.h"
#include "partition/exchange.h"
#include "ranks/ranks.h"

#define MOST_BLOCKS 256u
#define MOST_PIECE 65536u /* edges: reads of 1 MiB */
#define LEAST_PIECE 1024u
#define AHEAD_PIECES 8u

/* -- symmetry --------------------------------------------------------------- */

/* A graph equals its transpose if these sum to 0 (mod 2^64): an edge counts
 * plus or minus a hash of its unordered ends and payload. */
static inline uint64_t balance(uint32_t u, uint32_t v, uint64_t payload)
{
    const uint64_t ends = u < v ? (uint64_t)u << 32 | v : (uint64_t)v << 32 | u;
    const uint64_t h = gs_part__mix(ends ^ payload);
    return u == v ? 0 : u < v ? h : 0 - h;
}

/* `mark`: of what the record does not hold. */
static inline uint64_t record_balance(const uint32_t *r, uint32_t words, uint64_t mark)
{
    uint64_t payload = mark;
    for (uint32_t w = 2; w < words; w++)
        payload = gs_part__mix(payload + r[w] + 0x9e3779b97f4a7c15ull);
    return balance(r[0], r[1], payload);
}

/* -- reading ---------------------------------------------------------------- */

typedef struct reading {
    gs_part_job *job;
    gs_part_input *in;
    gs_part_blocks *b;
    uint64_t piece, next; /* next: atomic */
    uint64_t end;         /* edges before it are this rank's share, from next * piece on */
    /* sums over all threads, added at the end of each */
    uint64_t balance, loops;
    uint32_t most_type;
} reading;

static gs_status bucket_piece(reading *r, const gs_part_edge_block *block, uint32_t writer, uint64_t *sum,
                              uint64_t *loops, uint32_t *most_type)
{
    gs_part_blocks *const b = r->b;
    const uint32_t words = b->words, shift = b->shift;

    for (uint64_t i = 0; i < block->count; i++) {
        const uint32_t u = block->src[i], v = block->dst[i];
        uint32_t *record = gs_sort_put(b->edges_by_end, writer, GS_MAX(u, v) >> shift);
        if (__builtin_expect(record == NULL, 0))
            return gs_sort_failure(b->edges_by_end);
        uint32_t w = 2;
        record[0] = u;
        record[1] = v;
        if (block->type != NULL) {
            record[w++] = block->type[i];
            *most_type = GS_MAX(*most_type, block->type[i]);
        }
        if (block->mark != NULL)
            record[w] = (uint32_t)(block->first + i);
        else if (block->weight != NULL)
            memcpy(&record[w], &block->weight[i], 4);
        *sum += block->mark != NULL ? record_balance(record, w, block->mark[i]) : record_balance(record, words, 0);
        *loops += u == v;
    }
    return GS_OK;
}

static void read_ahead(const reading *r, uint64_t piece)
{
    if (r->in->text == NULL && piece % (AHEAD_PIECES / 2) == 0)
        gs_part__npy_advise(r->in, piece * r->piece, AHEAD_PIECES * r->piece, POSIX_FADV_WILLNEED);
}

/* Where the edges are large beside the bound, their pages would push the
 * buckets, which are read again soon, out of a memory cgroup's cache. */
static void read_behind(const reading *r, uint64_t piece)
{
    if (r->in->text == NULL && r->in->edge.npy.data_bytes > r->job->memory / 2)
        gs_part__npy_advise(r->in, piece * r->piece, r->piece, POSIX_FADV_DONTNEED);
}

static void read_worker(reading *r, uint32_t writer)
{
    gs_part_edge_block block;
    uint64_t sum = 0, loops = 0;
    uint32_t most_type = 0;
    gs_status st = gs_part__edge_block_make(&block, r->in, r->piece);

    while (st == GS_OK && !gs_part__job_stop(r->job)) {
        const uint64_t piece = __atomic_fetch_add(&r->next, 1, __ATOMIC_RELAXED), first = piece * r->piece;
        if (first >= r->end)
            break;
        gs_part__tick(r->job, "reading edges", (double)first / (double)r->in->edges);
        read_ahead(r, piece);
        if ((st = gs_part__input_edges(r->in, &block, first, GS_MIN(r->piece, r->end - first))) == GS_OK)
            st = bucket_piece(r, &block, writer, &sum, &loops, &most_type);
        read_behind(r, piece);
    }
    gs_part__job_fail(r->job, st);
    gs_part__edge_block_free(&block);
#pragma omp critical(gs_part_reading)
    {
        r->balance += sum;
        r->loops += loops;
        r->most_type = GS_MAX(r->most_type, most_type);
    }
}

/* What all ranks have read. */
static gs_status add_up(reading *r)
{
    uint64_t sums[2] = {r->balance, r->loops}, types[GS_RANKS_MOST] = {0}, own = r->most_type;

    if (r->job->ranks == 1)
        return GS_OK;
    GS_TRY(gs_ranks_sum_u64(sums, 2));
    GS_TRY(gs_ranks_gather(types, &own, sizeof(own)));
    r->balance = sums[0];
    r->loops = sums[1];
    for (uint32_t k = 0; k < r->job->ranks; k++)
        r->most_type = GS_MAX(r->most_type, (uint32_t)types[k]);
    return GS_OK;
}

static gs_status read_all(gs_part_blocks *b, gs_part_job *job, gs_part_input *in)
{
    reading r = {.job = job, .in = in, .b = b};
    const uint32_t threads = in->text != NULL ? 1 : job->threads;

    r.piece = GS_MAX(GS_MIN(job->buffers / 8 / threads / 32, MOST_PIECE), LEAST_PIECE);
    /* pieces are of whole edges, ranks' shares of whole pieces */
    const uint64_t pieces = gs_div_up(in->edges, r.piece);
    r.next = pieces * job->rank / job->ranks;
    r.end = GS_MIN(pieces * (job->rank + 1) / job->ranks * r.piece, in->edges);
#pragma omp parallel num_threads(threads)
    read_worker(&r, (uint32_t)omp_get_thread_num());
    GS_TRY(gs_part__job_result(job));
    GS_TRY(add_up(&r));
    b->symmetric = r.balance == 0;
    b->self_loops = r.loops;
    b->edges = in->edges;
    b->edge_types = !in->typed ? 0 : in->edge_types != 0 ? in->edge_types : r.most_type + 1;
    return gs_sort_finish(b->edges_by_end);
}

/* -- visiting --------------------------------------------------------------- */

typedef struct visiting {
    const gs_part_blocks *b;
    gs_part_job *job;
    gs_part_visit *visit;
    void *context;
    uint64_t done; /* edges */
} visiting;

static uint64_t larger_end(void *context, const uint32_t *record)
{
    (void)context;
    return GS_MAX(record[0], record[1]);
}

static gs_status check_job(void *context)
{
    const visiting *const w = context;
    return gs_part__job_result(w->job);
}

static gs_status too_many_edges(void *context, uint64_t vertex, uint64_t edges)
{
    (void)context;
    return gs_fail(GS_EBUDGET, "vertex %lu: has %lu edges to smaller ids, more than fit the memory bound; raise "
                   ".memory", vertex, edges);
}

static gs_status visit_block(void *context, const gs_sort_part *p)
{
    visiting *const w = context;
    GS_FREED uint32_t *data = gs_malloc_array(GS_MAX(p->records, 1), w->b->words * 4u);
    gs_sort_cursor at = gs_sort_first(p->sort, p->bucket);
    uint64_t count;

    GS_NEED(data != NULL, "%s: no memory for a block of %lu edges", w->job->dir, p->records);
    GS_TRY(gs_sort_read(p->sort, &at, data, p->records, &count));
    GS_TRY(gs_part__job_result(w->job));
    w->done += count;
    gs_part__tick(w->job, "ordering", (double)w->done / (double)GS_MAX(w->b->edges, 1));
    uint32_t *const given = data;
    data = NULL;
    return w->visit(w->context, p->first, p->keys, given, count);
}

gs_status gs_part__blocks_each(const gs_part_blocks *b, gs_part_job *job, gs_part_visit *visit, void *context)
{
    visiting w = {.b = b, .job = job, .visit = visit, .context = context};
    const gs_sort_visitor v = {.most = b->cap, .memory = job->buffers / 16, .context = &w, .visit = visit_block,
                               .key = larger_end, .check = check_job, .too_many = too_many_edges};

    gs_sort_prefetch(b->edges_by_end, 0);
    for (uint32_t i = 0; i < b->count; i++) {
        const uint64_t first = (uint64_t)i << b->shift, width = 1ull << b->shift;
        if (i + 1 < b->count)
            gs_sort_prefetch(b->edges_by_end, i + 1);
        GS_TRY(gs_sort_visit(b->edges_by_end, i, first, GS_MIN(width, b->vertices - first), &v));
    }
    return GS_OK;
}

/* -- reverses ----------------------------------------------------------------- */

typedef struct reversing {
    gs_part_blocks *b;
    gs_external_sort *out;
    uint64_t *keys, *spare; /* [cap] */
    uint64_t balance, added;
} reversing;

/* Orders by larger end, smaller end, direction. */
static inline uint64_t pair_key(uint32_t u, uint32_t v, uint64_t first)
{
    return u > v ? (u - first) << 33 | (uint64_t)v << 1 : (v - first) << 33 | (uint64_t)u << 1 | 1;
}

static bool holds(const uint64_t *keys, uint64_t n, uint64_t key)
{
    uint64_t low = 0, high = n;
    GS_BISECT(low, high, keys[middle] < key);
    return keys[low] == key; /* one past the last is a sentinel */
}

static gs_status put_record(reversing *w, const uint32_t *record, bool reversed)
{
    uint32_t *to = gs_sort_put(w->out, 0, GS_MAX(record[0], record[1]) >> w->b->shift);
    if (to == NULL)
        return gs_sort_failure(w->out);
    memcpy(to, record, w->b->words * 4u);
    to[0] = record[reversed];
    to[1] = record[!reversed];
    w->balance += record_balance(to, w->b->words, 0);
    w->added += reversed;
    return GS_OK;
}

static gs_status reverse_block(void *context, uint64_t first, uint64_t vertices, uint32_t *records, uint64_t count)
{
    reversing *w = context;
    const uint32_t words = w->b->words, bits = GS_MIN(33 + gs_part__bits(vertices), 64);
    GS_FREED const uint32_t *const own = records;

    for (uint64_t i = 0; i < count; i++)
        w->keys[i] = pair_key(records[i * words], records[i * words + 1], first);
    uint64_t *sorted = gs_part__sort8(w->keys, w->spare, count, bits);
    sorted[count] = UINT64_MAX;
    for (const uint32_t *r = own; r < own + count * words; r += words) {
        GS_TRY(put_record(w, r, false));
        if (r[0] != r[1] && !holds(sorted, count, pair_key(r[1], r[0], first)))
            GS_TRY(put_record(w, r, true));
    }
    return GS_OK;
}

/* An edge and its reverse are to be one rank's: ranks have blocks side by side. */
static uint32_t owner_of_block(const void *context, const uint32_t *record)
{
    const gs_part_blocks *const b = context;
    return (uint32_t)((uint64_t)(GS_MAX(record[0], record[1]) >> b->shift) * gs_ranks_count() / b->count);
}

static uint32_t block_of(const void *context, const uint32_t *record)
{
    return GS_MAX(record[0], record[1]) >> ((const gs_part_blocks *)context)->shift;
}

static gs_status add_reverses(gs_part_blocks *b, gs_part_job *job)
{
    const uint64_t cap = GS_MIN(b->cap, GS_MAX(b->edges, 1)) + 1;
    const gs_part_route route = {owner_of_block, block_of, b};
    GS_ENDS(gs_sort_free_at) gs_external_sort *reversed = NULL;

    if (job->ranks > 1)
        GS_TRY(gs_part__exchange_sort(&b->edges_by_end, job, &route));
    GS_FREED uint64_t *const keys = gs_malloc_array(cap, 8), *const spare = gs_malloc_array(cap, 8);
    GS_NEED(keys != NULL && spare != NULL, "%s: no memory to look for reverse edges", job->dir);
    const gs_sort_spec spec = {.dir = job->dir, .name = "tmp.reversed", .buckets = b->count, .writers = 1,
                               .words = b->words, .memory = job->buffers / 8, .records = 2 * b->edges};
    GS_TRY(gs_sort_make(&reversed, &spec));
    reversing w = {.b = b, .out = reversed, .keys = keys, .spare = spare};
    GS_TRY(gs_part__blocks_each(b, job, reverse_block, &w));
    GS_TRY(gs_sort_finish(reversed));
    uint64_t sums[2] = {w.balance, w.added};
    if (job->ranks > 1)
        GS_TRY(gs_ranks_sum_u64(sums, 2));
    gs_sort_free(b->edges_by_end);
    b->edges_by_end = GS_HANDED_OVER(reversed);
    b->edges += sums[1];
    b->symmetric = sums[0] == 0;
    return GS_OK;
}

gs_status gs_part__blocks_make(gs_part_blocks *b, gs_part_job *job, gs_part_input *in)
{
    memset(b, 0, sizeof(*b));
    b->vertices = in->vertices;
    b->words = 2u + in->typed + (in->weighted || in->edge_features > 0);
    while ((b->vertices - 1) >> b->shift >= MOST_BLOCKS)
        b->shift++;
    b->count = (uint32_t)((b->vertices - 1) >> b->shift) + 1;
    b->cap = GS_MAX(job->buffers / 8 / (b->words * 4u), 1024);
    const gs_sort_spec spec = {.dir = job->dir, .name = "tmp.blocks", .buckets = b->count, .writers = job->threads,
                               .words = b->words, .memory = job->buffers / 4, .records = in->edges};
    GS_TRY(gs_sort_make(&b->edges_by_end, &spec));
    GS_TRY(read_all(b, job, in));
    /* of several types of vertices, edges have reverse types */
    return (job->opt->undirected && in->types == NULL) || in->undirected ? add_reverses(b, job) : GS_OK;
}

void gs_part__blocks_free(gs_part_blocks *b)
{
    gs_sort_free(b->edges_by_end);
    memset(b, 0, sizeof(*b));
}
