/* chunks.c - each edge chunk sorted, laid out and written, in file order.
 *
 * A region is a run of chunks whose edges came out of one stream. Threads sort
 * regions side by side; offsets in the file are given in region order by a
 * turn that passes from region to region, so the file is the same for any
 * number of threads.
 */
#include "partition/chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/external_sort.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "partition/order.h"
#include "partition/job.h"
#include "partition/sort.h"
#include "store/chunk_view.h"
#include "store/store_write.h"

/* Sorted edges of one chunk: keys of target row and operand row, of g->local_bits each, with payload or without. */
typedef struct run {
    const void *keys; /* [edges] u64 or gs_part_key16 */
    uint64_t edges;
    uint32_t targets, operands; /* distinct ones, once they are counted */
    uint64_t largest;           /* edges of the target that has the most, the same */
    bool payload;
    bool numbered; /* weights are the numbers of edges, as bits */
} run;

static inline uint64_t key_at(const void *keys, uint64_t i, bool payload)
{
    return payload ? ((const gs_part_key16 *)keys)[i].key : ((const uint64_t *)keys)[i];
}

/* ---- sorted edges to the arrays of a chunk. */

/* Counts the distinct rows, and sets in `seen` the bit of each operand row. */
static void run_count(run *r, uint64_t *seen, const gs_part_grid *g)
{
    const uint64_t mask = (1ull << g->local_bits) - 1;
    uint64_t before = UINT64_MAX, begin = 0, largest = 0;

    r->targets = r->operands = 0;
    for (uint64_t i = 0; i < r->edges; i++) {
        const uint64_t key = key_at(r->keys, i, r->payload);
        const uint64_t operand = key & mask, target = key >> g->local_bits;
        if (target != before) {
            r->targets++;
            largest = GS_MAX(largest, i - begin);
            begin = i;
        }
        before = target;
        const uint64_t bit = 1ull << (operand & 63);
        r->operands += (seen[operand >> 6] & bit) == 0;
        seen[operand >> 6] |= bit;
    }
    r->largest = GS_MAX(largest, r->edges - begin);
}

/* Distinct operands, ascending; clears `seen`. */
static void fill_operands(void *section, uint64_t *seen, uint32_t rows, uint32_t ix)
{
    uint64_t n = 0;
    for (uint32_t word = 0; word < (rows + 63) / 64; word++) {
        for (uint64_t bits = seen[word]; bits != 0; bits &= bits - 1)
            gs_index_put(section, ix, n++, word * 64 + (uint32_t)__builtin_ctzll(bits));
        seen[word] = 0;
    }
}

/* `degree` counts the edges of each target row. The view's arrays are const
 * for readers; here they point into our own buffer. */
static inline __attribute__((always_inline)) void fill_edges(const gs_chunk_view *view, const run *r,
                                                             const gs_part_grid *g, uint32_t *degree, uint32_t ix)
{
    const uint64_t mask = (1ull << g->local_bits) - 1;
    void *const target = (void *)(uintptr_t)view->target, *const index = (void *)(uintptr_t)view->index;
    uint32_t *const start = (uint32_t *)(uintptr_t)view->start;
    uint64_t before = UINT64_MAX, t = 0;

    for (uint64_t i = 0; i < r->edges; i++) {
        const uint64_t key = key_at(r->keys, i, r->payload), row = key >> g->local_bits & mask;
        if (row != before) {
            gs_index_put(target, ix, t, (uint32_t)row);
            start[t++] = (uint32_t)i;
            before = row;
        }
        gs_index_put(index, ix, i, (uint32_t)(key & mask));
    }
    start[t] = (uint32_t)r->edges;
    for (uint64_t i = 0; i < t; i++) {
        const uint32_t row = gs_index_at(target, ix, i);
        __atomic_fetch_add(&degree[row], start[i + 1] - start[i], __ATOMIC_RELAXED);
    }
}

static void fill_payload(const gs_chunk_view *view, const run *r)
{
    const gs_part_key16 *keys = r->keys;
    float *const weight = r->numbered ? NULL : (float *)(uintptr_t)view->weight;

    if (view->type != NULL)
        for (uint64_t i = 0; i < r->edges; i++)
            gs_type_put(view->type, view->type_bytes, i, keys[i].type);
    if (weight != NULL)
        for (uint64_t i = 0; i < r->edges; i++)
            weight[i] = keys[i].weight;
}

/* Fills the arrays of `view`, which point into the caller's own zeroed buffer, and clears `seen`, which has a bit for
 * each of `operand_rows`. Adds the edges of each target row to `degree`, as other threads may at the same time. */
static void run_fill(const gs_chunk_view *view, const run *r, const gs_part_grid *g, uint32_t operand_rows,
                       uint32_t *degree, uint64_t *seen)
{
    if (view->index_bytes == 2)
        fill_edges(view, r, g, degree, 2);
    else
        fill_edges(view, r, g, degree, 4);
    fill_operands((void *)(uintptr_t)view->operand, seen, operand_rows, view->index_bytes);
    if (r->payload)
        fill_payload(view, r);
}

/* ---- chunks in file order --------------------------------------------------------- */

#define STAGE_RECORDS 4096u
#define LEAST_OUT_BYTES (256u * GS_KIB)
#define LEAST_CAP 1024u
#define FIXED_BYTES (512u * GS_KIB)   /* a thread's buffers that do not grow with the edges */
#define OVERHEAD_BYTES (2u * 4096u)   /* a chunk's header, alignment of sections, padding */

typedef struct writing {
    gs_part_job *job;
    const gs_part_chunks_spec *spec;
    gs_part_grid grid;
    uint64_t cap; /* most edges sorted at once */
    uint64_t chunks;
    int fd;
    char *path;
    pthread_mutex_t lock; /* guards turn and end */
    pthread_cond_t passed;
    uint64_t turn; /* region that may take file space */
    uint64_t end;  /* of the file */
} writing;

/* One thread's buffers and place. */
typedef struct worker {
    writing *w;
    void *keys, *spare; /* [cap] u64 or gs_part_key16 */
    uint32_t *stage;    /* records as they come */
    uint64_t *seen;     /* a bit for each row of an interval; all 0 between chunks */
    char *out;          /* laid out chunks, not yet in the file */
    uint64_t out_bytes, out_cap;
    uint64_t out_first, out_next; /* chunks in `out` */
    uint64_t region;
    bool has_turn;
    gs_arena memory;
} worker;

static uint64_t edge_bytes(const gs_part_chunk_kind *k)
{
    return (k->rows <= 65536 ? 2u : 4u) + (k->data.type_bytes > 0 ? 2u : 0u) + (k->data.weights ? 4u : 0u) +
           (uint64_t)k->data.feature_bytes;
}

/* Is there more than their ends to sort edges by? */
static bool has_payload(gs_edge_data d) { return d.type_bytes > 0 || d.weights || d.feature_bytes > 0; }

/* Bytes of a distinct target (its number and its start) and a distinct operand. */
static uint64_t row_bytes(const gs_part_chunk_kind *k) { return 4u + 2 * (k->rows <= 65536 ? 2u : 4u); }

uint64_t gs_part__chunk_edges(uint64_t bytes, const gs_part_chunk_kind *kind)
{
    const uint64_t left = bytes > OVERHEAD_BYTES ? bytes - OVERHEAD_BYTES : 0, rows = kind->rows * row_bytes(kind);
    /* Every edge may have rows of its own, but no chunk has more rows than its intervals. */
    const uint64_t sparse = left / (edge_bytes(kind) + row_bytes(kind));
    return left > rows ? GS_MAX(sparse, (left - rows) / edge_bytes(kind)) : sparse;
}

static uint64_t chunk_bytes(uint64_t edges, const gs_part_chunk_kind *kind)
{
    return edges * edge_bytes(kind) + GS_MIN(edges, kind->rows) * row_bytes(kind) + OVERHEAD_BYTES;
}

uint64_t gs_part__chunk_cap(uint32_t threads, uint64_t memory, const gs_part_chunk_kind *kind)
{
    const uint64_t share = memory / threads, key = 2 * (has_payload(kind->data) ? sizeof(gs_part_key16) : 8);
    const uint64_t left = share > FIXED_BYTES ? share - FIXED_BYTES : 0, rows = kind->rows * row_bytes(kind);
    const uint64_t sparse = left / (key + edge_bytes(kind) + row_bytes(kind));
    const uint64_t cap = left > rows ? GS_MAX(sparse, (left - rows) / (key + edge_bytes(kind))) : sparse;
    return GS_MIN(GS_MAX(cap, LEAST_CAP), UINT32_MAX - 1); /* a chunk's starts are u32 */
}

/* -- the turn ---------------------------------------------------------------- */

static gs_status take_turn(worker *k)
{
    writing *const w = k->w;

    if (k->has_turn)
        return GS_OK;
    pthread_mutex_lock(&w->lock);
    while (w->turn != k->region && !gs_part__job_stop(w->job))
        pthread_cond_wait(&w->passed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    k->has_turn = true;
    return gs_part__job_result(w->job);
}

static void pass_turn(worker *k)
{
    pthread_mutex_lock(&k->w->lock);
    k->w->turn++;
    pthread_cond_broadcast(&k->w->passed);
    pthread_mutex_unlock(&k->w->lock);
    k->has_turn = false;
}

/* After a failure nobody's turn comes: wakes all who wait. */
static void wake_all(writing *w)
{
    pthread_mutex_lock(&w->lock);
    pthread_cond_broadcast(&w->passed);
    pthread_mutex_unlock(&w->lock);
}

/* Gives the chunks in `out` their place and writes them. With `last` the turn
 * is passed before the write, which then overlaps the next region's. */
static gs_status flush(worker *k, bool last)
{
    writing *const w = k->w;
    const uint64_t bytes = k->out_bytes;

    GS_TRY(take_turn(k));
    const uint64_t base = w->end; /* only who has the turn reads or moves it */
    w->end += bytes;
    if (last)
        pass_turn(k);
    for (uint64_t c = k->out_first; c < k->out_next; c++)
        if (w->spec->chunk[c].length != 0)
            w->spec->chunk[c].offset += base;
    k->out_first = k->out_next;
    k->out_bytes = 0;
    return bytes == 0 ? GS_OK : gs_pwrite_exact(w->fd, k->out, bytes, base, w->path);
}

/* -- one chunk ---------------------------------------------------------------- */

/* Each edge says which row of the input is its own. */
static gs_status want_rows(const gs_part_wanted *wanted, uint32_t chunk, const run *r)
{
    const gs_part_key16 *const keys = r->keys;

    for (uint64_t i = 0; i < r->edges; i++) {
        uint32_t number;
        memcpy(&number, &keys[i].weight, sizeof(number));
        GS_TRY(gs_part__want(wanted, (uint32_t)omp_get_thread_num(), number, chunk, (uint32_t)i));
    }
    return GS_OK;
}

/* Lays chunk `c` out behind what `out` holds, flushing first if it must. */
static gs_status put_chunk(worker *k, uint64_t c, run *r)
{
    const writing *const w = k->w;
    const gs_part_chunks_spec *const spec = w->spec;
    const gs_part_grid *const g = &w->grid;
    const uint32_t ix = g->rows <= 65536 ? 2 : 4, target = (uint32_t)(c / g->parts), operand = (uint32_t)(c % g->parts);
    gs_chunk_view view;

    run_count(r, k->seen, g);
    const uint64_t bytes = gs_chunk_bytes(r->edges, r->targets, r->operands, ix, spec->data);
    if (bytes > k->out_cap)
        return gs_fail(GS_EBUDGET, "chunk (%u, %u): %lu bytes do not fit the write buffer; use more .parts", target,
                       operand, bytes);
    if (k->out_bytes + bytes > k->out_cap)
        GS_TRY(flush(k, false));
    const gs_chunk_expect counts = {.target_rows = gs_part__grid_capacity(g, target),
                                    .operand_rows = gs_part__grid_capacity(g, operand),
                                    .index_bytes = ix,
                                    .edges = r->edges,
                                    .targets = r->targets,
                                    .operands = r->operands};
    char *const data = k->out + k->out_bytes;
    uint32_t *const degree = spec->degrees->count[spec->direction] + (uint64_t)target * g->rows;
    memset(data, 0, bytes);
    gs_chunk_layout(&view, data, &counts, spec->data);
    run_fill(&view, r, g, counts.operand_rows, degree, k->seen);
    spec->chunk[c] = (gs_chunk){.offset = k->out_bytes,
                                .length = bytes,
                                .edges = r->edges,
                                .checksum = gs_hash64(data, bytes),
                                .targets = r->targets,
                                .operands = r->operands,
                                .largest = r->largest};
    k->out_bytes += bytes;
    k->out_next = c + 1;
    return spec->wanted != NULL ? want_rows(spec->wanted, (uint32_t)c, r) : GS_OK;
}

/* -- one region ---------------------------------------------------------------- */

static uint32_t bits_for(uint64_t count)
{
    uint32_t bits = 0;
    while (bits < 64 && (count - 1) >> bits != 0)
        bits++;
    return bits;
}

/* Records to sort keys: chunk within the region, target row, operand row. */
static void make_keys(worker *k, const uint32_t *records, uint64_t at, uint64_t count, uint64_t first_chunk)
{
    const gs_part_chunks_spec *const spec = k->w->spec;
    const gs_part_grid *const g = &k->w->grid;
    const uint32_t *const position = spec->order->position;
    const bool by_dest = spec->direction == GS_BY_DEST, payload = has_payload(spec->data),
               typed = spec->data.type_bytes > 0;
    uint32_t *const loops = by_dest ? spec->degrees->loops : NULL;

    for (uint64_t i = 0; i < count; i++, records += spec->words) {
        const uint32_t target = position[records[by_dest]], operand = position[records[!by_dest]];
        const uint32_t ti = gs_fastdiv_of(g->by_rows, target), oi = gs_fastdiv_of(g->by_rows, operand);
        const uint64_t chunk = (uint64_t)ti * g->parts + oi - first_chunk;
        const uint64_t key = (chunk << g->local_bits | (target - ti * g->rows)) << g->local_bits |
                             (operand - oi * g->rows);
        if (loops != NULL && target == operand)
            __atomic_fetch_add(&loops[target], 1, __ATOMIC_RELAXED);
        if (!payload) {
            ((uint64_t *)k->keys)[at + i] = key;
            continue;
        }
        gs_part_key16 *const to = (gs_part_key16 *)k->keys + at + i;
        *to = (gs_part_key16){.key = key, .type = typed ? records[2] : 0};
        if (spec->wanted != NULL || spec->data.weights)
            memcpy(&to->weight, &records[2 + typed], 4);
    }
}

static gs_status load(worker *k, const gs_sort_part *p, uint64_t *edges)
{
    gs_sort_cursor at = gs_sort_first(p->sort, p->bucket);
    uint64_t count = 1;

    *edges = 0;
    while (count != 0) {
        GS_TRY(gs_sort_read(p->sort, &at, k->stage, STAGE_RECORDS, &count));
        make_keys(k, k->stage, *edges, count, p->first);
        *edges += count;
    }
    return GS_OK;
}

/* A run of chunks that fits memory. */
static gs_status write_run(void *context, const gs_sort_part *p)
{
    worker *const k = context;
    const uint64_t first = p->first, chunks = p->keys;
    const gs_part_grid *const g = &k->w->grid;
    const gs_part_chunks_spec *const spec = k->w->spec;
    const bool payload = has_payload(spec->data);
    const uint32_t bits = bits_for(chunks) + 2 * g->local_bits, type_bits = spec->data.type_bytes > 0 ? 16 : 0;
    uint64_t edges;
    gs_status st;

    if ((st = load(k, p, &edges)) != GS_OK)
        return st;
    const char *const keys =
        payload ? (char *)gs_part__sort16(k->keys, k->spare, edges, bits, g->local_bits, type_bits)
                : (char *)gs_part__sort8(k->keys, k->spare, edges, bits);
    for (uint64_t i = 0, end; i < edges && st == GS_OK; i = end) {
        const uint64_t chunk = key_at(keys, i, payload) >> g->local_bits >> g->local_bits;
        for (end = i + 1; end < edges; end++)
            if (key_at(keys, end, payload) >> g->local_bits >> g->local_bits != chunk)
                break;
        run r = {
            .keys = keys + i * (payload ? sizeof(gs_part_key16) : 8), .edges = end - i, .payload = payload,
            .numbered = spec->wanted != NULL};
        st = put_chunk(k, first + chunk, &r);
    }
    k->out_next = first + chunks;
    return st;
}

static uint64_t chunk_of(void *context, const uint32_t *record)
{
    const worker *const k = context;
    const gs_part_grid *const g = &k->w->grid;
    const uint32_t *const position = k->w->spec->order->position;
    const bool by_dest = k->w->spec->direction == GS_BY_DEST;

    return (uint64_t)gs_fastdiv_of(g->by_rows, position[record[by_dest]]) * g->parts +
           gs_fastdiv_of(g->by_rows, position[record[!by_dest]]);
}

static gs_status check_job(void *context)
{
    const worker *const k = context;
    return gs_part__job_stop(k->w->job) ? gs_part__job_result(k->w->job) : GS_OK;
}

static gs_status too_many_edges(void *context, uint64_t chunk, uint64_t edges)
{
    const writing *const w = ((const worker *)context)->w;
    return gs_fail(GS_EBUDGET, "chunk (%lu, %lu): %lu edges, but %lu fit the memory bound; use more .parts or .memory",
                   chunk / w->grid.parts, chunk % w->grid.parts, edges, w->cap);
}

/* -- all regions ---------------------------------------------------------------- */

static void worker_free(worker *k)
{
    gs_arena_free(&k->memory);
    gs_free_pages(k->out, k->out_cap);
}

static gs_status worker_make(worker *k, writing *w, uint64_t most)
{
    const gs_part_chunk_kind kind = {w->grid.rows, w->spec->data};
    const uint64_t cap = GS_MIN(w->cap, most);
    const size_t key = has_payload(w->spec->data) ? sizeof(gs_part_key16) : 8;

    memset(k, 0, sizeof(*k));
    k->w = w;
    k->out_cap = GS_MAX(gs_align_up(chunk_bytes(cap, &kind), GS_BLOCK_BYTES), LEAST_OUT_BYTES);
    k->keys = gs_arena_take(&k->memory, cap + 1, key);
    k->spare = gs_arena_take(&k->memory, cap + 1, key);
    k->stage = gs_arena_take(&k->memory, STAGE_RECORDS, w->spec->words * 4u);
    k->seen = gs_arena_take(&k->memory, ((uint64_t)w->grid.rows + 63) / 64, 8);
    k->out = gs_alloc_pages(k->out_cap);
    GS_NEED(!k->memory.is_short && k->out != NULL, "no memory to sort chunks of %lu edges", cap);
    return GS_OK;
}

static void write_region(worker *k, uint64_t region)
{
    writing *const w = k->w;
    const gs_external_sort *const s = w->spec->order->chunked[w->spec->direction];
    const uint32_t shift = w->spec->order->region_shift;
    const uint64_t first = region << shift;
    const gs_sort_visitor v = {.most = w->cap, .memory = FIXED_BYTES / 4, .context = k, .visit = write_run,
                               .key = chunk_of, .check = check_job, .too_many = too_many_edges};
    gs_status st;

    if (region + 1 < s->spec.buckets)
        gs_sort_prefetch(s, (uint32_t)region + 1);
    gs_part__tick(w->job, "writing chunks",
                  w->spec->progress_from +
                      (w->spec->progress_to - w->spec->progress_from) * (double)region / (double)s->spec.buckets);
    k->region = region;
    k->has_turn = false;
    k->out_bytes = 0;
    k->out_first = k->out_next = first;
    st = gs_sort_visit(s, (uint32_t)region, first, GS_MIN(w->chunks - first, 1ull << shift), &v);
    if (st == GS_OK)
        st = flush(k, true);
    if (st != GS_OK) {
        gs_part__job_fail(w->job, st);
        wake_all(w);
    }
}

static gs_status write_all(writing *w)
{
    const gs_external_sort *const s = w->spec->order->chunked[w->spec->direction];
    const uint64_t most = gs_sort_most_records(s);

#pragma omp parallel num_threads(w->spec->threads)
    {
        worker k;
        gs_part__job_fail(w->job, worker_make(&k, w, most));
        /* dynamic, 1: a region starts only after all before it, so turns come */
#pragma omp for schedule(monotonic : dynamic, 1)
        for (uint64_t region = 0; region < s->spec.buckets; region++) {
            if (gs_part__job_stop(w->job))
                wake_all(w); /* this region's turn will not be passed on */
            else
                write_region(&k, region);
        }
        worker_free(&k);
    }
    return gs_part__job_result(w->job);
}

static void writing_end(writing *w)
{
    gs_close_at(&w->fd);
    gs_free(w->path);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->passed);
}

gs_status gs_part__chunks_write(gs_part_job *job, const gs_part_chunks_spec *spec)
{
    GS_ENDS(writing_end) writing w = {.job = job, .spec = spec, .grid = spec->order->grid, .fd = -1};
    const gs_part_chunk_kind kind = {w.grid.rows, spec->data};
    w.chunks = (uint64_t)w.grid.parts * w.grid.parts;
    w.cap = gs_part__chunk_cap(spec->threads, spec->memory, &kind);
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.passed, NULL);
    if (bits_for(1ull << spec->order->region_shift) + 2 * w.grid.local_bits > 64)
        return gs_fail(GS_EUNSUPPORTED, "%u parts of %lu vertices: use a number of parts that is a power of two",
                       w.grid.parts, w.grid.vertices);
    if ((w.path = gs_path_join(job->dir, gs_store_edges_name(spec->direction))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", job->dir);
    if ((w.fd = open(w.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) < 0)
        return gs_fail_errno(errno, "%s: cannot make this file", w.path);
    return write_all(&w);
}
