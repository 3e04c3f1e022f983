/* batch_rows.c - rows of a store picked for a batch, from memory or from the disk. */
#include "session/batch_rows.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/radix.h"
#include "base/size.h"
#include "session/store_rows.h"

/* Runs of blocks are read into this much memory at a time. Between two rows that are needed so many bytes are read
 * along: about as much as a request takes time for. With a cache, a block, and of all that is read no more than one
 * byte of GAP_SHARE, which leaves it within 1.1 times what the cache must read. On 2 busy cores, rows of 512 bytes, an
 * epoch of 500,000 vertices took, medians of six, 7.2 s with every such block (1.22 times), 7.7 s so (1.09) and 8.2 s
 * with none. */
#define WINDOW_BYTES (8 * GS_MIB)
#define GAP_BYTES (16 * GS_KIB)
#define CACHE_GAP_BYTES GS_BLOCK_BYTES
#define GAP_SHARE 12u
#define LEAST_SLOTS 64u
#define REQUESTS 1024u

static uint64_t blocks_of(const gs_store *s)
{
    return gs_div_up(gs_store_array(s, GS_ARRAY_FEATURES)->bytes, GS_BLOCK_BYTES);
}

uint64_t gs_batch_rows_reading(const gs_store *s, uint32_t most)
{
    return WINDOW_BYTES + (2ull * most + blocks_of(s)) * sizeof(uint32_t) + REQUESTS * sizeof(gs_batch_run);
}

/* ---- the cache's size ---------------------------------------------------- */

uint64_t gs_row_cache_bytes(const gs_store *s, const gs_row_cache_shape *c, uint32_t most)
{
    if (c->slots == 0)
        return 0;
    return c->slots * c->item_bytes + most * sizeof(uint32_t) +
           gs_residency_bytes((uint32_t)gs_store_get_info(s)->vertices, c->rows_per_item, c->slots, c->group, most);
}

gs_row_cache_shape gs_row_cache_shape_of(const gs_store *s, uint64_t bytes, uint32_t group, uint32_t most)
{
    const uint64_t row_bytes = gs_store_array(s, GS_ARRAY_FEATURES)->row_bytes;
    gs_row_cache_shape c = {.group = group, .rows_per_item = 1};
    uint64_t low = 0, high;

    if (row_bytes == 0)
        return (gs_row_cache_shape){0};
    c.rows_per_item = (uint32_t)GS_MAX(1, GS_BLOCK_BYTES / row_bytes);
    c.item_bytes = c.rows_per_item * row_bytes;
    high = GS_MIN(bytes / c.item_bytes, gs_div_up(gs_store_get_info(s)->vertices, c.rows_per_item)) + 1;
    while (high - low > 1) {
        const uint64_t middle = (low + high) / 2;
        c.slots = (uint32_t)middle;
        *(gs_row_cache_bytes(s, &c, most) <= bytes ? &low : &high) = middle;
    }
    c.slots = (uint32_t)low;
    return low < LEAST_SLOTS ? (gs_row_cache_shape){0} : c;
}

/* ---- opening ------------------------------------------------------------- */

static gs_status load(gs_batch_rows *r, gs_array_id id)
{
    gs_block_reader reader = {0};
    uint64_t bytes;
    gs_status st = gs_block_reader_open(&reader, r->store, id);

    if (st == GS_OK && (r->array[id] = gs_malloc(reader.info->bytes + 1)) == NULL)
        st = gs_fail(GS_ENOMEM, "out of memory for %s of all vertices", gs_array_stem(id));
    for (uint64_t at = 0, k = 0; st == GS_OK && at < reader.info->bytes; at += bytes, k++)
        if ((st = gs_block_reader_next(&reader, k, &bytes)) == GS_OK)
            memcpy(r->array[id] + at, reader.block, bytes);
    gs_block_reader_close(&reader);
    return st;
}

/* The mark of a block of the disk: the low half of its checksum. The file's last one may be short. */
static uint32_t sum_of(const void *block, uint64_t at, uint64_t all)
{
    return (uint32_t)gs_hash64(block, GS_MIN(GS_BLOCK_BYTES, all - at));
}

/* The store's checksums are of more than is read for a row. So all are compared once, and each block gets its own. */
static gs_status take_sums(gs_batch_rows *r)
{
    const uint64_t all = gs_store_array(r->store, GS_ARRAY_FEATURES)->bytes;
    gs_block_reader reader = {0};
    uint64_t bytes;
    gs_status st = gs_block_reader_open(&reader, r->store, GS_ARRAY_FEATURES);

    for (uint64_t at = 0, k = 0; st == GS_OK && at < all; at += bytes, k++) {
        if ((st = gs_block_reader_next(&reader, k, &bytes)) != GS_OK)
            break;
        for (uint64_t b = 0; b < bytes; b += GS_BLOCK_BYTES)
            r->sums[(at + b) / GS_BLOCK_BYTES] = sum_of((const uint8_t *)reader.block + b, at + b, all);
    }
    gs_block_reader_close(&reader);
    return st;
}

static gs_status open_file(gs_batch_rows *r, uint32_t most)
{
    char *path = NULL;
    gs_status st;

    r->most = most;
    r->order = gs_malloc_array(most, sizeof(*r->order));
    r->scratch = gs_malloc_array(most, sizeof(*r->scratch));
    r->bounce = gs_alloc_pages(WINDOW_BYTES);
    r->sums = gs_malloc_array(blocks_of(r->store) + 1, sizeof(*r->sums));
    r->run = gs_malloc_array(REQUESTS, sizeof(*r->run));
    if (r->order == NULL || r->scratch == NULL || r->bounce == NULL || r->sums == NULL || r->run == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for reading rows of features");
    if ((st = take_sums(r)) != GS_OK)
        return st;
    const struct gs_io_buffer buffer = {r->bounce, WINDOW_BYTES};
    const gs_io_config io = {.requests = REQUESTS, .depth = REQUESTS, .buffers = &buffer, .buffer_count = 1};
    if ((st = gs_io_open(&r->io, &io)) != GS_OK)
        return st;
    path = gs_store_array_path(r->store, GS_ARRAY_FEATURES);
    st = path == NULL ? gs_fail(GS_ENOMEM, "out of memory") : gs_io_add_file(r->io, &r->file, path, GS_IO_READ);
    gs_free(path);
    return st;
}

static gs_status open_cache(gs_batch_rows *r, uint32_t most)
{
    const gs_row_cache_shape *const c = &r->cache;
    r->slot = gs_alloc_pages(c->slots * c->item_bytes);
    r->keep = gs_malloc_array(most, sizeof(*r->keep));
    if (r->slot == NULL || r->keep == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for rows of features that stay");
    return gs_residency_open(&r->plan, (uint32_t)gs_store_get_info(r->store)->vertices, c->rows_per_item, c->slots,
                             c->group, most);
}

gs_status gs_batch_rows_open(gs_batch_rows *r, const gs_store *s, uint32_t wanted, const void *features, uint32_t most,
                             const gs_row_cache_shape *cache)
{
    gs_status st;

    *r = (gs_batch_rows){.store = s, .features = features, .cache = {.rows_per_item = 1}};
    const bool reads = most > 0 && features == NULL && (wanted >> GS_ARRAY_FEATURES & 1) == 0;
    st = reads ? open_file(r, most) : GS_OK;
    if (reads && cache->slots > 0 && st == GS_OK) {
        r->cache = *cache;
        st = open_cache(r, most);
    }
    for (uint32_t id = 0; id < GS_ARRAY_COUNT && st == GS_OK; id++)
        if (wanted >> id & 1)
            st = load(r, (gs_array_id)id);
    if (r->array[GS_ARRAY_FEATURES] != NULL)
        r->features = r->array[GS_ARRAY_FEATURES];
    return st;
}

void gs_batch_rows_close(gs_batch_rows *r)
{
    gs_io_close(r->io);
    for (int id = 0; id < GS_ARRAY_COUNT; id++)
        gs_free(r->array[id]);
    gs_residency_close(r->plan);
    if (r->slot != NULL)
        gs_free_pages(r->slot, r->cache.slots * r->cache.item_bytes);
    gs_free(r->keep);
    gs_free(r->sums);
    gs_free(r->run);
    gs_free(r->order);
    gs_free(r->scratch);
    if (r->bounce != NULL)
        gs_free_pages(r->bounce, WINDOW_BYTES);
    *r = (gs_batch_rows){0};
}

/* ---- picking ------------------------------------------------------------- */

static void pick_here(const uint8_t *array, uint64_t row_bytes, const uint32_t *row, uint32_t rows, uint8_t *dst)
{
#pragma omp parallel for schedule(static) if (rows *row_bytes > 65536)
    for (uint32_t i = 0; i < rows; i++)
        memcpy(dst + i * row_bytes, array + row[i] * row_bytes, row_bytes);
}

/* Requests that are under way in the window, and the places that they bring. */
typedef struct window {
    uint32_t first, end; /* of order[] */
    uint64_t used;       /* bytes of the bounce buffer */
    uint32_t requests;
} window;

/* Blocks of the item that a row is in; the last item may be short. */
static uint64_t begin_of(const gs_batch_rows *r, uint64_t row, uint64_t row_bytes)
{
    return gs_align_down(row / r->cache.rows_per_item * r->cache.rows_per_item * row_bytes, GS_BLOCK_BYTES);
}
static uint64_t end_of(const gs_batch_rows *r, uint64_t row, uint64_t row_bytes)
{
    const uint64_t end = (row / r->cache.rows_per_item + 1) * r->cache.rows_per_item;
    return gs_align_up(GS_MIN(end, gs_store_get_info(r->store)->vertices) * row_bytes, GS_BLOCK_BYTES);
}
static bool is_planned(const gs_batch_rows *r) { return r->plan != NULL && !r->apart; }

/* Are so many bytes between two rows read along? */
static bool reads_along(const gs_batch_rows *r, uint64_t gap)
{
    if (!is_planned(r))
        return gap <= GAP_BYTES;
    return gap <= CACHE_GAP_BYTES && GAP_SHARE * (r->gap_bytes + gap) <= r->read_bytes;
}

/* Submits one run of blocks from place `at` of order[] on; *next is the first place that it does not bring. `full`: the
 * window has no room for what follows. */
static gs_status submit_run(gs_batch_rows *r, window *w, const uint32_t *row, uint32_t rows, uint64_t row_bytes,
                            uint32_t at, uint32_t *next, bool *full)
{
    const uint64_t begin = begin_of(r, row[r->order[at]], row_bytes);
    uint64_t end = end_of(r, row[r->order[at]], row_bytes);
    uint32_t k = at + 1;

    *full = w->requests == REQUESTS || end - begin > WINDOW_BYTES - w->used;
    if (*full)
        return GS_OK;
    for (; k < rows; k++) {
        const uint64_t row_begin = begin_of(r, row[r->order[k]], row_bytes),
                       row_end = end_of(r, row[r->order[k]], row_bytes);
        const uint64_t gap = row_begin > end ? row_begin - end : 0;
        const bool apart = gap > 0 && !reads_along(r, gap);
        *full = !apart && row_end - begin > WINDOW_BYTES - w->used;
        if (apart || *full)
            break;
        r->gap_bytes += gap;
        end = GS_MAX(end, row_end);
    }
    const gs_io_request q = {.file = r->file, .offset = begin, .length = end - begin, .memory = r->bounce + w->used};
    *next = k;
    r->run[w->requests] = (gs_batch_run){begin, end - begin};
    w->used += end - begin;
    w->requests++;
    r->read_bytes += end - begin;
    return gs_io_submit(r->io, &q);
}

static gs_status wait_for(gs_batch_rows *r)
{
    gs_io_completion done[16];
    gs_status st = GS_OK;
    while (gs_io_outstanding(r->io) > 0) {
        const uint32_t n = gs_io_reap(r->io, done, GS_ARRAY_LEN(done), true);
        for (uint32_t i = 0; i < n && st == GS_OK; i++)
            if (done[i].status != GS_OK)
                st = gs_fail(done[i].status, "%s: rows of features could not be read", gs_store_dir(r->store));
    }
    return st;
}

/* Are the blocks that came those that were checked when the run began? */
static gs_status check_blocks(const gs_batch_rows *r, const window *w)
{
    const uint64_t all = gs_store_array(r->store, GS_ARRAY_FEATURES)->bytes;
    const uint8_t *block = r->bounce;

    for (uint32_t q = 0; q < w->requests; q++)
        for (uint64_t b = 0; b < r->run[q].bytes; b += GS_BLOCK_BYTES, block += GS_BLOCK_BYTES) {
            const uint64_t at = r->run[q].begin + b;
            if (sum_of(block, at, all) != r->sums[at / GS_BLOCK_BYTES])
                return gs_fail(GS_EFORMAT, "%s/%s.bin: bytes %llu to %llu are not those that matched their checksum "
                               "when the run began; see gnnstream verify, and make the store again",
                               gs_store_dir(r->store), gs_array_stem(GS_ARRAY_FEATURES), (unsigned long long)at,
                               (unsigned long long)GS_MIN(at + GS_BLOCK_BYTES, all));
        }
    return GS_OK;
}

/* `run` has the file's bytes from `begin` on, the row's item among them. */
static void keep_item(gs_batch_rows *r, uint32_t slot, const uint8_t *run, uint64_t begin, uint64_t row,
                      uint64_t row_bytes)
{
    const uint64_t first = row / r->cache.rows_per_item * r->cache.rows_per_item,
                   end = GS_MIN(first + r->cache.rows_per_item, gs_store_get_info(r->store)->vertices);
    memcpy(r->slot + slot * r->cache.item_bytes, run + (first * row_bytes - begin), (end - first) * row_bytes);
}

/* Takes the rows that the window's runs have brought; runs follow each other there as they were made. */
static void take_rows(gs_batch_rows *r, const window *w, const uint32_t *row, uint64_t row_bytes, uint8_t *dst)
{
    const gs_batch_run *run = r->run;
    const uint8_t *came = r->bounce; /* of the run */
    for (uint32_t k = w->first; k < w->end; k++) {
        const uint64_t number = row[r->order[k]];
        for (; number * row_bytes >= run->begin + run->bytes; run++)
            came += run->bytes;
        memcpy(dst + r->order[k] * row_bytes, came + (number * row_bytes - run->begin), row_bytes);
        if (is_planned(r) && r->keep[k] != GS_RESIDENCY_NONE)
            keep_item(r, r->keep[k], came, run->begin, number, row_bytes);
    }
}

/* Rows that are in slots; the others, in order, are left to be read: how many. */
static uint32_t take_cached(gs_batch_rows *r, const uint32_t *row, uint64_t row_bytes, uint8_t *dst)
{
    gs_residency_step step;
    uint32_t left = 0;

    gs_residency_next(r->plan, &step);
    for (uint32_t e = 0; e < step.rows; e++) {
        const uint32_t place = step.place[e];
        if (step.from[e] == GS_RESIDENCY_NONE) {
            r->order[left] = place;
            r->keep[left++] = step.keep[e];
            continue;
        }
        memcpy(dst + place * row_bytes, r->slot + step.from[e] * r->cache.item_bytes +
                                            row[place] % r->cache.rows_per_item * row_bytes, row_bytes);
    }
    return left;
}

static gs_status read_rows(gs_batch_rows *r, uint64_t row_bytes, const uint32_t *row, uint32_t rows, uint8_t *dst)
{
    gs_status st = GS_OK;

    if (is_planned(r))
        rows = take_cached(r, row, row_bytes, dst);
    else
        gs_radix_order(r->order, r->scratch, row, rows);
    for (uint32_t at = 0; at < rows && st == GS_OK;) {
        window w = {.first = at};
        bool full = false;
        while (at < rows && !full && st == GS_OK) {
            st = submit_run(r, &w, row, rows, row_bytes, at, &at, &full);
            w.end = at;
        }
        const gs_status came = wait_for(r);
        st = st == GS_OK ? came : st;
        if (st == GS_OK && (st = check_blocks(r, &w)) == GS_OK)
            take_rows(r, &w, row, row_bytes, dst);
    }
    if (st != GS_OK && is_planned(r))
        gs_residency_forget(r->plan);
    return st;
}

void gs_batch_rows_pass(gs_batch_rows *r)
{
    gs_residency_step none;
    if (r->plan != NULL)
        gs_residency_next(r->plan, &none);
}

void gs_batch_rows_apart(gs_batch_rows *r, bool apart) { r->apart = apart; }

void gs_batch_rows_begin(gs_batch_rows *r, const gs_batch *batch, uint32_t batches)
{
    if (r->plan != NULL)
        gs_residency_begin(r->plan, batch, batches);
}

gs_status gs_batch_rows_pick(gs_batch_rows *r, gs_array_id id, const uint32_t *row, uint32_t rows, void *dst)
{
    const uint64_t row_bytes = gs_store_array(r->store, id)->row_bytes;
    const uint8_t *const all = id == GS_ARRAY_FEATURES ? r->features : r->array[id];

    if (all == NULL)
        return read_rows(r, row_bytes, row, rows, dst);
    pick_here(all, row_bytes, row, rows, dst);
    return GS_OK;
}
