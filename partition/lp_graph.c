/* lp_graph.c - neighbour lists in a file: how they get there and how they are read.
 *
 * Pairs are counted, cut into ranges of vertices that one thread can sort in
 * its share of memory, written by range, then sorted and written as lists. Of ranks each puts pairs that it knows of;
 * ranges go to those who have them before they are sorted.
 */
#include "partition/intervals.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/file.h"
#include "base/size.h"
#include "base/temporary.h"
#include "partition/exchange.h"
#include "partition/integers.h"
#include "ranks/ranks.h"

#define MOST_GROUPS 65536u
#define RANGES 192u        /* about so many where memory does not ask for more */
#define MOST_RANGES 8192u
#define STAGE 4096u        /* records */
#define BLOCKS 128u        /* at least so many where the graph is large enough ... */
#define LEAST_BLOCK 2048u  /* ... to have so many pairs in each */
#define MOST_BLOCK 131072u /* pairs: reads of 512 KiB */
#define LEAST_CAP 4096u
#define MOST_LIST 65536u   /* neighbours that one vertex needs to be judged by */

/* A group of consecutive vertices lies in one block and in one range. */
struct gs_lp_sink {
    gs_lp_graph *g;
    gs_part_job *job;
    uint32_t *count;  /* [vertices] pairs; atomic while counting */
    uint16_t *range;  /* [groups] of the vertices v with v >> shift == group */
    bool *begins;     /* [groups] a block begins with this one */
    uint32_t shift, groups, ranges;
    uint32_t owned[GS_SHARDS_MOST + 1]; /* [ranks + 1] the first range of each */
    /* What a thread can sort. The share of one of GS_PART_MOST_THREADS decides about the graph, so that the
     * number of threads does not; the real share decides about ranges. */
    uint64_t least_cap, cap;
    uint32_t most;    /* pairs of a vertex above which they are thinned out */
    gs_external_sort *pairs;  /* NULL while counting */
    pthread_mutex_t lock; /* guards g's file and table while lists are written */
};

static uint32_t record_words(const gs_lp_graph *g) { return g->weighted ? 3 : 2; }
static uint32_t entry_words(const gs_lp_graph *g) { return g->weighted ? 2 : 1; }

/* A vertex with very many neighbours says little about where these belong, and its
 * list is what bounds memory: a share of its edges stays, for both ends the same. */
static bool thinned_out(const gs_lp_sink *s, uint32_t u, uint32_t v)
{
    const uint32_t count = GS_MAX(s->count[u], s->count[v]);
    if (count <= s->most)
        return false;
    const uint64_t ends = (uint64_t)GS_MIN(u, v) << 32 | GS_MAX(u, v);
    return (gs_part__mix(ends) >> 32) * count >> 32 >= s->most;
}

gs_status gs_lp__put(gs_lp_sink *s, uint32_t writer, uint32_t vertex, uint32_t neighbour, uint32_t weight)
{
    if (s->pairs == NULL) {
        /* saturated counts need no care: they are only compared with `most` and summed into ranges */
        if (__atomic_load_n(&s->count[vertex], __ATOMIC_RELAXED) < INT32_MAX)
            __atomic_fetch_add(&s->count[vertex], 1, __ATOMIC_RELAXED);
        return GS_OK;
    }
    if (thinned_out(s, vertex, neighbour))
        return GS_OK;
    uint32_t *const to = gs_sort_put(s->pairs, writer, s->range[vertex >> s->shift]);
    if (to == NULL)
        return gs_sort_failure(s->pairs);
    to[0] = vertex;
    to[1] = neighbour;
    if (s->g->weighted)
        to[2] = weight;
    return GS_OK;
}

/* -- ranges ------------------------------------------------------------------ */

static uint64_t kept(const gs_lp_sink *s, uint64_t v)
{
    return s->count[v] <= s->most ? s->count[v] : s->most + s->most / 4; /* a hash is not exactly even */
}

static uint64_t group_end(const gs_lp_sink *s, uint32_t group)
{
    return GS_MIN((uint64_t)(group + 1) << s->shift, s->g->vertices);
}

static uint64_t group_pairs(const gs_lp_sink *s, uint32_t group)
{
    uint64_t sum = 0;
    for (uint64_t v = (uint64_t)group << s->shift; v < group_end(s, group); v++)
        sum += kept(s, v);
    return sum;
}

/* `owner` has a range with `before` pairs before it, and perhaps others after it have it: who is it? */
static uint32_t owner_behind(const gs_lp_sink *s, uint32_t owner, uint64_t before, uint64_t total)
{
    while (owner + 1 < s->job->ranks && before >= total / s->job->ranks * (owner + 1))
        owner++;
    return owner;
}

/* Blocks by pairs and vertices, then ranges of whole blocks, each of one owner. */
static gs_status cut_groups(gs_lp_sink *s, uint64_t total)
{
    const uint64_t in_block = GS_MIN(GS_MIN(GS_MAX(total / BLOCKS, LEAST_BLOCK), MOST_BLOCK), s->least_cap / 2);
    const uint64_t vertices = GS_MAX(s->g->vertices / BLOCKS, LEAST_BLOCK);
    uint64_t block = 0, range = 0, first = 0, before = 0;
    uint32_t owner = 0;

    for (uint32_t k = 0; k < s->groups; k++) {
        const uint64_t pairs = group_pairs(s, k);
        s->begins[k] = k == 0 || block + pairs > in_block || group_end(s, k) - first > vertices;
        if (s->begins[k]) {
            block = 0;
            first = (uint64_t)k << s->shift;
            const uint32_t to = owner_behind(s, owner, before, total);
            if (k > 0 && (to != owner || range > GS_MIN(total / RANGES, s->cap / 2))) { /* half: a block more fits */
                s->ranges++;
                range = 0;
            }
            while (owner < to)
                s->owned[++owner] = s->ranges;
        }
        before += pairs;
        block += pairs;
        range += pairs;
        if (s->ranges == MOST_RANGES)
            return gs_fail(GS_EBUDGET, ".memory: too little to sort %lu pairs of neighbours; raise .memory", total);
        s->range[k] = (uint16_t)s->ranges;
    }
    s->ranges++;
    while (owner < s->job->ranks)
        s->owned[++owner] = s->ranges;
    return GS_OK;
}

static gs_status cut_ranges(gs_lp_sink *s)
{
    const uint64_t n = s->g->vertices;
    uint64_t total = 0;

    while ((n - 1) >> s->shift >= MOST_GROUPS)
        s->shift++;
    s->groups = (uint32_t)((n - 1) >> s->shift) + 1;
    s->range = gs_malloc_array(s->groups, sizeof(*s->range));
    s->begins = gs_malloc_array(s->groups, sizeof(*s->begins));
    GS_NEED(s->range != NULL && s->begins != NULL, "%s: no memory for a table of %u ranges", s->job->dir, s->groups);
    for (uint32_t k = 0; k < s->groups; k++)
        total += group_pairs(s, k);
    return cut_groups(s, total);
}

/* -- lists ------------------------------------------------------------------- */

/* One thread's buffers: of a range, and of the block that is being made. */
typedef struct listing {
    gs_lp_sink *s;
    void *keys, *spare; /* [cap] u64, or gs_part_key16 with the weight as its type */
    uint32_t *stage, *out;
    uint64_t out_cap;   /* words */
    gs_lp_block block;
    uint64_t neighbours, weight;
    uint32_t most_words;
} listing;

static gs_status enter_block(gs_lp_graph *g, gs_lp_block *b)
{
    if (!gs_grow(&g->block, g->blocks, &g->block_cap, sizeof(*g->block)))
        return gs_fail(GS_ENOMEM, "%s: no memory for a table of more than %u blocks", g->path, g->blocks);
    b->offset = g->end;
    g->end += b->words * 4ull;
    g->block[g->blocks++] = *b;
    return GS_OK;
}

static gs_status flush_block(listing *w)
{
    gs_lp_graph *const g = w->s->g;

    if (w->block.vertices == 0)
        return GS_OK;
    pthread_mutex_lock(&w->s->lock);
    gs_status st = enter_block(g, &w->block);
    pthread_mutex_unlock(&w->s->lock);
    if (st == GS_OK)
        st = gs_pwrite_exact(g->fd, w->out, w->block.words * 4ull, w->block.offset, g->path);
    w->most_words = GS_MAX(w->most_words, w->block.words);
    w->block = (gs_lp_block){0, w->block.first + w->block.vertices, 0, 0};
    return st;
}

/* Room for the list of vertex `v`, the next one. */
static gs_status open_list(listing *w, uint32_t v, uint64_t degree)
{
    const uint64_t words = 1 + degree * entry_words(w->s->g);

    if (w->s->begins[v >> w->s->shift] && (v & ((1u << w->s->shift) - 1)) == 0)
        GS_TRY(flush_block(w));
    if (w->block.words + words > w->out_cap) {
        const uint64_t cap = w->block.words + words + w->out_cap / 2;
        uint32_t *grown = gs_realloc(w->out, cap * 4);
        GS_NEED(grown != NULL, "%s: no memory for a list of %lu neighbours", w->s->g->path, degree);
        w->out = grown;
        w->out_cap = cap;
    }
    w->out[w->block.words++] = (uint32_t)degree;
    w->block.vertices++;
    w->neighbours += degree;
    return GS_OK;
}

/* Keys are vertex << 32 | neighbour with the vertex counted from the range's first. */
static uint64_t merge8(uint64_t *keys, uint64_t n)
{
    uint64_t kept_keys = 0;
    for (uint64_t i = 0; i < n; i++)
        if (i == 0 || keys[i] != keys[i - 1])
            keys[kept_keys++] = keys[i];
    return kept_keys;
}

static uint64_t merge16(gs_part_key16 *keys, uint64_t n)
{
    uint64_t kept_keys = 0;
    for (uint64_t i = 0; i < n; i++) {
        gs_part_key16 *const last = &keys[kept_keys - (kept_keys != 0)];
        if (kept_keys != 0 && last->key == keys[i].key)
            last->type = keys[i].type > UINT32_MAX - last->type ? UINT32_MAX : last->type + keys[i].type;
        else
            keys[kept_keys++] = keys[i];
    }
    return kept_keys;
}

static inline uint64_t key_at(const listing *w, const void *keys, uint64_t i)
{
    return w->s->g->weighted ? ((const gs_part_key16 *)keys)[i].key : ((const uint64_t *)keys)[i];
}

static gs_status write_lists(listing *w, uint32_t first, uint64_t vertices, const void *keys, uint64_t n)
{
    uint64_t from = 0;

    w->block = (gs_lp_block){0, first, 0, 0};
    for (uint64_t v = 0; v < vertices; v++) {
        uint64_t to = from;
        while (to < n && key_at(w, keys, to) >> 32 == v)
            to++;
        GS_TRY(open_list(w, first + (uint32_t)v, to - from));
        for (; from < to; from++) {
            w->out[w->block.words++] = (uint32_t)key_at(w, keys, from);
            const uint32_t weight = w->s->g->weighted ? ((const gs_part_key16 *)keys)[from].type : 1;
            if (w->s->g->weighted)
                w->out[w->block.words++] = weight;
            w->weight += weight;
        }
    }
    return flush_block(w);
}

static gs_status load_range(listing *w, uint32_t range, uint32_t first, uint64_t *count)
{
    const uint32_t words = record_words(w->s->g);
    gs_sort_cursor at = gs_sort_first(w->s->pairs, range);
    uint64_t n = 0, got = 1;
    gs_status st = GS_OK;

    while (got != 0 && (st = gs_sort_read(w->s->pairs, &at, w->stage, STAGE, &got)) == GS_OK) {
        for (const uint32_t *r = w->stage; r < w->stage + got * words; r += words, n++) {
            const uint64_t key = (uint64_t)(r[0] - first) << 32 | r[1];
            if (w->s->g->weighted)
                ((gs_part_key16 *)w->keys)[n] = (gs_part_key16){key, r[2], 0};
            else
                ((uint64_t *)w->keys)[n] = key;
        }
    }
    *count = n;
    return st;
}

static gs_status list_range(listing *w, uint32_t range, uint32_t first, uint64_t vertices)
{
    const uint32_t bits = GS_MIN(32 + gs_part__bits(vertices), 64);
    uint64_t n = 0;

    GS_TRY(load_range(w, range, first, &n));
    if (!w->s->g->weighted) {
        uint64_t *const sorted = gs_part__sort8(w->keys, w->spare, n, bits);
        return write_lists(w, first, vertices, sorted, merge8(sorted, n));
    }
    gs_part_key16 *const sorted = gs_part__sort16(w->keys, w->spare, n, bits, 0, 0);
    return write_lists(w, first, vertices, sorted, merge16(sorted, n));
}

/* Vertices [*first, *end) have this range. */
static void find_range(const gs_lp_sink *s, uint32_t range, uint64_t *first, uint64_t *end)
{
    uint32_t low = 0, high = s->groups;
    GS_BISECT(low, high, s->range[middle] < range);
    *first = (uint64_t)low << s->shift;
    while (low < s->groups && s->range[low] == range)
        low++;
    *end = GS_MIN((uint64_t)low << s->shift, s->g->vertices);
}

static void list_worker(gs_lp_sink *s, uint32_t *next)
{
    const uint64_t record = s->g->weighted ? sizeof(gs_part_key16) : 8;
    gs_arena memory = {0};
    listing w = {.s = s,
                 .keys = gs_arena_take(&memory, s->cap, record),
                 .spare = gs_arena_take(&memory, s->cap, record),
                 .stage = gs_arena_take(&memory, STAGE, record_words(s->g) * 4u)};
    gs_status st = GS_OK;

    if (memory.is_short)
        st = gs_fail(GS_ENOMEM, "%s: no memory to sort %lu neighbours", s->g->path, s->cap);
    while (st == GS_OK && !gs_part__job_stop(s->job)) {
        const uint32_t range = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
        uint64_t first, end;
        if (range >= s->owned[s->job->rank + 1])
            break;
        find_range(s, range, &first, &end);
        st = list_range(&w, range, (uint32_t)first, end - first);
    }
    gs_part__job_fail(s->job, st);
    gs_arena_free(&memory);
    gs_free(w.out);
    pthread_mutex_lock(&s->lock);
    s->g->neighbours += w.neighbours;
    s->g->edge_weight += w.weight;
    s->g->most_words = GS_MAX(s->g->most_words, w.most_words);
    pthread_mutex_unlock(&s->lock);
}

static int by_first(const void *a, const void *b)
{
    const uint32_t x = ((const gs_lp_block *)a)->first, y = ((const gs_lp_block *)b)->first;
    return (x > y) - (x < y);
}

/* A range beyond one thread's share of memory may fit a larger share. */
static gs_status list_all(gs_lp_sink *s)
{
    const uint64_t record = 2 * (s->g->weighted ? sizeof(gs_part_key16) : 8);
    const uint64_t most = gs_sort_most_records(s->pairs);
    uint32_t next = s->owned[s->job->rank]; /* atomic */

    s->cap = most;
    const uint64_t threads = GS_MIN(s->job->buffers / 2 / (most * record), s->job->threads);
    if (threads == 0)
        return gs_fail(GS_EBUDGET, ".memory: too little to sort %lu pairs of neighbours at once; raise .memory", most);
#pragma omp parallel num_threads((uint32_t)threads)
    list_worker(s, &next);
    const gs_status st = gs_part__job_result(s->job);
    if (st == GS_OK)
        qsort(s->g->block, s->g->blocks, sizeof(*s->g->block), by_first);
    return st;
}

/* -- ranks ---------------------------------------------------------------------- */

/* Each has counted the pairs that it will put. */
static gs_status sum_counts(gs_lp_sink *s)
{
    const gs_status st = s->job->ranks > 1 ? gs_ranks_sum_u32(s->count, s->g->vertices) : GS_OK;

    for (uint64_t v = 0; v < s->g->vertices; v++)
        s->count[v] = GS_MIN(s->count[v], INT32_MAX); /* where one process stops counting */
    return st;
}

static uint32_t range_of(const void *context, const uint32_t *record)
{
    const gs_lp_sink *const s = context;
    return s->range[record[0] >> s->shift];
}

static uint32_t owner_of(const void *context, const uint32_t *record)
{
    const gs_lp_sink *const s = context;
    uint32_t owner = 0;

    while (range_of(s, record) >= s->owned[owner + 1])
        owner++;
    return owner;
}

static gs_status exchange_pairs(gs_lp_sink *s)
{
    const gs_part_route route = {owner_of, range_of, s};
    return s->job->ranks > 1 ? gs_part__exchange_sort(&s->pairs, s->job, &route) : GS_OK;
}

/* From a table of this rank's blocks to that of all. */
static gs_status share_blocks(gs_lp_graph *g, const gs_part_job *job)
{
    const uint64_t own[] = {g->blocks, g->neighbours, g->edge_weight, g->most_words};
    uint64_t all[GS_RANKS_MOST][4], first[GS_RANKS_MOST + 1] = {0};

    GS_TRY(gs_ranks_gather(all, own, sizeof(own)));
    g->neighbours = g->edge_weight = 0;
    for (uint32_t r = 0; r < job->ranks; r++) {
        g->owned[r + 1] = g->owned[r] + (uint32_t)all[r][0];
        first[r + 1] = g->owned[r + 1] * sizeof(*g->block);
        g->neighbours += all[r][1];
        g->edge_weight += all[r][2];
        g->most_words = GS_MAX(g->most_words, (uint32_t)all[r][3]);
    }
    g->blocks = g->block_cap = g->owned[job->ranks];
    gs_lp_block *const block = gs_malloc_array(GS_MAX(g->blocks, 1), sizeof(*block));
    GS_NEED(block != NULL, "%s: no memory for a table of %u blocks", g->path, g->blocks);
    if (own[0] != 0)
        memcpy(block + g->owned[job->rank], g->block, own[0] * sizeof(*block));
    gs_free(g->block);
    g->block = block;
    return gs_ranks_share_parts(block, first);
}

/* -- the graph ------------------------------------------------------------------ */

static gs_status make_sort(gs_lp_sink *s)
{
    const gs_sort_spec spec = {.dir = s->job->dir, .name = "tmp.pairs", .buckets = s->ranges,
                               .writers = s->job->threads, .words = record_words(s->g),
                               .memory = s->job->buffers / 4};
    return gs_sort_make(&s->pairs, &spec);
}

static gs_status fill_graph(gs_lp_sink *s, gs_lp_source *source, void *context)
{
    gs_lp_graph *const g = s->g;
    const uint64_t fit = s->job->buffers / 2 / (2 * (g->weighted ? sizeof(gs_part_key16) : 8));
    gs_status st;

    s->cap = GS_MAX(fit / s->job->threads, LEAST_CAP);
    s->least_cap = GS_MAX(fit / GS_PART_MOST_THREADS, LEAST_CAP);
    s->most = (uint32_t)(g->weighted ? GS_MIN(s->least_cap / 2, INT32_MAX) : GS_MIN(s->least_cap / 4, MOST_LIST));
    if ((s->count = gs_calloc(g->vertices, 4)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to count %lu lists", s->job->dir, g->vertices);
    if ((st = source(context, s)) != GS_OK || (st = sum_counts(s)) != GS_OK || (st = cut_ranges(s)) != GS_OK ||
        (st = make_sort(s)) != GS_OK || (st = source(context, s)) != GS_OK ||
        (st = gs_sort_finish(s->pairs)) != GS_OK || (st = exchange_pairs(s)) != GS_OK ||
        (st = gs_unnamed_file_called(&g->fd, &g->path, s->job->dir, "tmp.lists")) != GS_OK)
        return st;
    gs_free(s->count);
    s->count = NULL;
    if ((st = list_all(s)) == GS_OK && s->job->ranks > 1)
        return share_blocks(g, s->job);
    g->owned[1] = g->blocks;
    return st;
}

gs_status gs_lp__graph_make(gs_lp_graph *g, gs_part_job *job, gs_lp_source *source, void *context)
{
    gs_lp_sink s = {.g = g, .job = job};

    g->fd = -1;
    pthread_mutex_init(&s.lock, NULL);
    const gs_status st = fill_graph(&s, source, context);
    gs_sort_free(s.pairs);
    gs_free(s.count);
    gs_free(s.range);
    gs_free(s.begins);
    pthread_mutex_destroy(&s.lock);
    return st;
}

void gs_lp__graph_free(gs_lp_graph *g)
{
    gs_free(g->weight);
    gs_free(g->block);
    if (g->path != NULL && g->fd >= 0)
        close(g->fd);
    gs_free(g->path);
    memset(g, 0, sizeof(*g));
    g->fd = -1;
}

gs_status gs_lp__read(const gs_lp_graph *g, uint32_t block, uint32_t *words)
{
    const gs_lp_block *const b = &g->block[block];
    return gs_pread_exact(g->fd, words, b->words * 4ull, b->offset, g->path);
}

/* -- from the edges of a job ------------------------------------------------------ */

typedef struct edge_source {
    const gs_part_blocks *b;
    gs_part_job *job;
    gs_lp_sink *sink;
} edge_source;

static gs_status put_block(void *context, uint64_t first, uint64_t vertices, uint32_t *records, uint64_t count)
{
    const edge_source *w = context;
    gs_status st = GS_OK;

    (void)first;
    (void)vertices;
    for (const uint32_t *r = records; r < records + count * w->b->words && st == GS_OK; r += w->b->words) {
        if (r[0] == r[1])
            continue;
        st = gs_lp__put(w->sink, 0, r[1], r[0], 1);
        if (!w->b->symmetric && st == GS_OK) /* else the reverse comes as an edge of its own */
            st = gs_lp__put(w->sink, 0, r[0], r[1], 1);
    }
    gs_free(records);
    return st;
}

static gs_status put_edges(void *context, gs_lp_sink *sink)
{
    edge_source *w = context;
    w->sink = sink;
    return gs_part__blocks_each(w->b, w->job, put_block, w);
}

gs_status gs_lp__graph_of_blocks(gs_lp_graph *g, gs_part_job *job, const gs_part_blocks *b)
{
    edge_source w = {.b = b, .job = job};
    *g = (gs_lp_graph){.vertices = b->vertices, .fd = -1};
    return gs_lp__graph_make(g, job, put_edges, &w);
}
