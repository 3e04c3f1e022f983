/* exchange.c - records that go to the rank whose they are, and tables of which each rank makes a part. */
#include "partition/exchange.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "ranks/ranks.h"

#define PIECE_RECORDS 4096u
/* Bytes that ranks have under way: more bring nothing. */
#define POST_MOST (64 * GS_MIB)

/* ---- records -------------------------------------------------------------- */

struct gs_part_post {
    gs_part_take *take;
    void *context;
    uint32_t words, ranks;
    uint64_t room;      /* records that a rank sends another at a time */
    uint32_t *out, *in; /* [ranks][room] */
    uint64_t fill[GS_SHARDS_MOST]; /* records of `out` */
    gs_status failure;
};

gs_status gs_part__post_make(gs_part_post **out, uint32_t words, uint64_t memory, gs_part_take *take, void *context)
{
    const uint32_t ranks = gs_ranks_count();
    gs_part_post *const p = gs_calloc(1, sizeof(*p));

    GS_NEED(p != NULL, "no memory for what ranks send each other");
    *p = (gs_part_post){.take = take, .context = context, .words = words, .ranks = ranks};
    p->room = GS_MAX(GS_MIN(memory, POST_MOST) / 2 / ranks / (words * 4u), 1);
    p->out = gs_malloc_array(p->room * ranks, words * 4u);
    p->in = gs_malloc_array(p->room * ranks, words * 4u);
    if (p->out == NULL || p->in == NULL) {
        gs_part__post_free(p);
        return gs_fail(GS_ENOMEM, "no memory for what ranks send each other");
    }
    *out = p;
    return GS_OK;
}

void gs_part__post_free(gs_part_post *p)
{
    if (p == NULL)
        return;
    gs_free(p->out);
    gs_free(p->in);
    gs_free(p);
}

/* Sends what there is, and takes what has come, this rank's own with it, rank by rank. */
static gs_status swap(gs_part_post *p, uint64_t *all)
{
    const uint32_t self = gs_ranks_self();
    const uint64_t record = p->words * 4u;
    uint64_t sent[GS_SHARDS_MOST], come[GS_SHARDS_MOST] = {0};

    for (uint32_t r = 0; r < p->ranks; r++)
        sent[r] = p->fill[r] * record;
    gs_status st = gs_ranks_swap(p->out, sent, p->in, come, p->room * record, all);
    for (uint32_t r = 0; r < p->ranks && st == GS_OK; r++) {
        const uint32_t *const from = r == self ? p->out : p->in;
        if (come[r] > 0)
            st = p->take(p->context, from + r * p->room * p->words, come[r] / record);
    }
    memset(p->fill, 0, sizeof(p->fill));
    return st;
}

uint32_t *gs_part__post_put(gs_part_post *p, uint32_t rank)
{
    uint64_t all;

    if (p->fill[rank] == p->room && p->failure == GS_OK)
        p->failure = swap(p, &all);
    if (p->failure != GS_OK)
        return NULL;
    return p->out + (rank * p->room + p->fill[rank]++) * p->words;
}

gs_status gs_part__post_failure(const gs_part_post *p) { return p->failure; }

/* Whoever still puts sends something each time, so when nothing is sent all are done. */
gs_status gs_part__post_end(gs_part_post *p)
{
    uint64_t all = 1;

    while (all > 0 && p->failure == GS_OK)
        p->failure = swap(p, &all);
    return p->failure;
}

/* ---- edges ---------------------------------------------------------------- */

typedef struct incoming {
    const gs_part_route *route;
    gs_external_sort *sort;
} incoming;

static gs_status take_edges(void *context, const uint32_t *records, uint64_t count)
{
    const incoming *const x = context;
    const uint32_t words = x->sort->spec.words;

    for (const uint32_t *r = records; r < records + count * words; r += words)
        GS_TRY(gs_sort_append(x->sort, 0, x->route->bucket(x->route->context, r), r, 1));
    return GS_OK;
}

/* Calls `fn` with the sort's records, bucket by bucket. */
typedef gs_status each_fn(void *context, const uint32_t *records, uint64_t count);
static gs_status each_record(const gs_external_sort *s, gs_part_job *job, each_fn *fn, void *context)
{
    GS_FREED uint32_t *const piece = gs_malloc_array(PIECE_RECORDS, s->spec.words * 4u);

    GS_NEED(piece != NULL, "no memory to read edges");
    for (uint32_t b = 0; b < s->spec.buckets; b++) {
        gs_sort_cursor at = gs_sort_first(s, b);
        for (uint64_t count = 1; count != 0;) {
            GS_TRY(gs_sort_read(s, &at, piece, PIECE_RECORDS, &count));
            GS_TRY(fn(context, piece, count));
        }
        GS_TRY(gs_part__job_result(job));
    }
    return GS_OK;
}

typedef struct outgoing {
    const gs_part_route *route;
    gs_part_post *post;
    uint32_t words;
} outgoing;

static gs_status post_edges(void *context, const uint32_t *records, uint64_t count)
{
    const outgoing *const x = context;

    for (const uint32_t *r = records; r < records + count * x->words; r += x->words) {
        uint32_t *const to = gs_part__post_put(x->post, x->route->owner(x->route->context, r));
        if (to == NULL)
            return gs_part__post_failure(x->post);
        memcpy(to, r, x->words * 4u);
    }
    return GS_OK;
}

gs_status gs_part__exchange_sort(gs_external_sort **sort, gs_part_job *job, const gs_part_route *route)
{
    gs_sort_spec spec = (*sort)->spec;
    incoming in = {.route = route};
    outgoing out = {.route = route, .words = spec.words};
    gs_status st;

    spec.writers = 1;
    spec.memory = job->buffers / 8;
    if ((st = gs_sort_make(&in.sort, &spec)) == GS_OK &&
        (st = gs_part__post_make(&out.post, spec.words, job->buffers / 8, take_edges, &in)) == GS_OK &&
        (st = each_record(*sort, job, post_edges, &out)) == GS_OK && (st = gs_part__post_end(out.post)) == GS_OK &&
        (st = gs_sort_finish(in.sort)) == GS_OK) {
        gs_sort_free(*sort);
        *sort = in.sort;
        in.sort = NULL;
    }
    gs_part__post_free(out.post);
    gs_sort_free(in.sort);
    return st;
}

/* ---- the deal ------------------------------------------------------------- */

static uint32_t interval_of(const gs_part_order *o, uint32_t id)
{
    return gs_fastdiv_of(o->grid.by_rows, o->position[id]);
}

typedef struct counting {
    const gs_part_order *o;
    uint64_t *count;
    uint32_t words;
} counting;

static gs_status count_edges(void *context, const uint32_t *records, uint64_t count)
{
    const counting *const x = context;

    for (const uint32_t *r = records; r < records + count * x->words; r += x->words)
        x->count[(uint64_t)interval_of(x->o, r[1]) * x->o->grid.parts + interval_of(x->o, r[0])]++;
    return GS_OK;
}

gs_status gs_part__count_chunks(uint64_t **count, uint64_t *largest, const gs_part_order *o, gs_part_job *job)
{
    const uint64_t chunks = (uint64_t)o->grid.parts * o->grid.parts;
    counting x = {.o = o, .words = o->chunked[GS_BY_DEST]->spec.words};

    GS_NEED((x.count = gs_calloc(chunks, sizeof(*x.count))) != NULL, "no memory to count %lu chunks", chunks);
    *count = x.count; /* the caller's, on failure too */
    GS_TRY(each_record(o->chunked[GS_BY_DEST], job, count_edges, &x));
    GS_TRY(gs_ranks_sum_u64(x.count, chunks));
    *largest = 0;
    for (uint64_t c = 0; c < chunks; c++)
        *largest = GS_MAX(*largest, x.count[c]);
    return GS_OK;
}

typedef struct dealt {
    const gs_part_order *o;
    const gs_store_shard *shard;
    gs_direction direction;
} dealt;

static uint32_t target_of(const dealt *x, const uint32_t *record)
{
    return interval_of(x->o, record[x->direction == GS_BY_DEST]);
}

static uint32_t owner_of_edge(const void *context, const uint32_t *record)
{
    const dealt *const x = context;
    const uint32_t target = target_of(x, record);
    uint32_t k = 0;

    while (target >= x->shard->first[k + 1])
        k++;
    return k;
}

static uint32_t region_of_edge(const void *context, const uint32_t *record)
{
    const dealt *const x = context;
    const uint32_t operand = interval_of(x->o, record[x->direction != GS_BY_DEST]);
    return (uint32_t)(((uint64_t)target_of(x, record) * x->o->grid.parts + operand) >> x->o->region_shift);
}

/* gs_chunk_deal() of tables of counts alone. */
static gs_status deal_counts(gs_store_shard *shard, const uint64_t *count, const gs_part_order *o)
{
    const uint32_t parts = o->grid.parts;
    const bool both = o->chunked[GS_BY_SOURCE] != NULL;
    GS_FREED gs_chunk *const chunk = gs_calloc((uint64_t)parts * parts * 2, sizeof(*chunk));
    gs_chunk *const source = both && chunk != NULL ? chunk + (uint64_t)parts * parts : chunk;
    const gs_chunk_table t = {.vertices = o->grid.vertices, .parts = parts, .interval_rows = o->grid.rows,
                              .shared = !both, .chunk = {chunk, source}};

    GS_NEED(chunk != NULL, "no memory for the tables of %u parts", parts);
    for (uint32_t i = 0; i < parts; i++)
        for (uint32_t j = 0; j < parts; j++) {
            chunk[(uint64_t)i * parts + j].edges = count[(uint64_t)i * parts + j];
            if (both)
                source[(uint64_t)j * parts + i].edges = count[(uint64_t)i * parts + j];
        }
    gs_chunk_deal(&t, shard->ranks, shard->first);
    return GS_OK;
}

gs_status gs_part__deal(gs_store_shard *shard, const uint64_t *count, gs_part_order *o, gs_part_job *job)
{
    GS_TRY(deal_counts(shard, count, o));
    for (uint32_t d = 0; d < 2; d++) {
        const dealt to = {.o = o, .shard = shard, .direction = (gs_direction)d};
        const gs_part_route route = {owner_of_edge, region_of_edge, &to};
        if (o->chunked[d] != NULL)
            GS_TRY(gs_part__exchange_sort(&o->chunked[d], job, &route));
    }
    return GS_OK;
}

/* ---- tables --------------------------------------------------------------- */

gs_status gs_part__share_intervals(const gs_store_shard *shard, void *x, uint64_t bytes, uint64_t all)
{
    uint64_t first[GS_RANKS_MOST + 1];

    for (uint32_t r = 0; r <= shard->ranks; r++)
        first[r] = GS_MIN(shard->first[r] * bytes, all);
    return gs_ranks_share_parts(x, first);
}
