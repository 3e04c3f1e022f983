/* batch_rows.c - where a batch's rows come from: memory, the disk, or the memories of GPUs. */
#include "batch/batch_rows.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "base/size.h"
#include "session/store_rows.h"
#include "store/chunk_table.h"

/* Between two rows that are needed so many bytes are read along, where the disk was not measured: about as much as a
 * request takes time for. With a cache, a block, and of all that is read no more than one byte of GAP_SHARE, which
 * leaves it within 1.1 times what the cache must read. On 2 busy cores, rows of 512 bytes, an epoch of 500,000 vertices
 * took, medians of six, 7.2 s with every such block (1.22 times), 7.7 s so (1.09) and 8.2 s with none. */
#define GAP_BYTES (16 * GS_KIB)
#define CACHE_GAP_BYTES GS_BLOCK_BYTES
#define GAP_SHARE 12u
#define LEAST_SLOTS 64u
#define RUNS 512u /* in the ring at a time, where it does not read ahead */

static uint64_t blocks_of(const gs_store *s)
{
    return gs_div_up(gs_store_array(s, GS_ARRAY_FEATURES)->bytes, GS_BLOCK_BYTES);
}

uint64_t gs_batch_rows_bytes(const gs_store *s)
{
    const gs_array_info *const info = gs_store_array(s, GS_ARRAY_FEATURES);
    const gs_store_shard *const x = gs_store_get_shard(s);
    uint64_t most = x == NULL ? info->bytes : 0;

    for (uint32_t r = 0; x != NULL && r < x->ranks; r++)
        most = GS_MAX(most, gs_shard_rows(x, r, gs_store_chunks(s)->interval_rows * (uint64_t)info->row_bytes,
                                          info->bytes).bytes);
    return most;
}

uint64_t gs_batch_rows_reading(const gs_store *s, uint32_t most)
{
    return gs_read_ring_bytes(GS_BATCH_RING, RUNS) + (2ull * most + blocks_of(s)) * sizeof(uint32_t);
}

/* A ring without bound of its runs, and a list of the next batch. */
uint64_t gs_batch_rows_ahead(uint64_t ring, uint32_t most)
{
    return ring == 0 ? 0
                     : gs_read_ring_bytes(ring, UINT32_MAX) - gs_read_ring_bytes(GS_BATCH_RING, RUNS) +
                           2ull * most * sizeof(uint32_t);
}

/* ---- the cache's size ---------------------------------------------------- */

static uint32_t side_of(const gs_row_cache_shape *c) { return GS_MAX(c->side, 1); }
static uint32_t reads_of_group(const gs_row_cache_shape *c) { return (uint32_t)gs_div_up(c->group, side_of(c)); }

/* Of several batches that are read at once: rows that are held, what is joined of a group, and lists that are longer
 * than of one, `keep` of the first apart: of reads, two where these go ahead, and of their order. */
static uint64_t side_bytes(const gs_store *s, const gs_row_cache_shape *c, uint64_t most)
{
    const uint64_t others = side_of(c) - 1, row_bytes = gs_store_array(s, GS_ARRAY_FEATURES)->row_bytes;
    return others == 0 ? 0
                       : others * most * (row_bytes + 4 * sizeof(uint32_t)) + c->group * most * sizeof(uint32_t) +
                             reads_of_group(c) * sizeof(gs_batch);
}

uint64_t gs_row_cache_bytes(const gs_store *s, const gs_row_cache_shape *c, uint32_t most)
{
    const uint32_t rows = side_of(c) * most;

    if (c->slots == 0)
        return 0;
    return c->slots * c->item_bytes + rows * sizeof(uint32_t) + side_bytes(s, c, most) +
           gs_residency_bytes((uint32_t)gs_store_get_info(s)->vertices, c->rows_per_item, c->slots, reads_of_group(c),
                              rows);
}

gs_row_cache_shape gs_row_cache_shape_of(const gs_store *s, uint64_t bytes, uint32_t group, uint32_t most,
                                         uint32_t side)
{
    const uint64_t row_bytes = gs_store_array(s, GS_ARRAY_FEATURES)->row_bytes;
    gs_row_cache_shape c = {.group = group, .rows_per_item = 1, .side = GS_MAX(GS_MIN(side, group), 1)};

    if (row_bytes == 0)
        return (gs_row_cache_shape){0};
    c.rows_per_item = (uint32_t)GS_MAX(1, GS_BLOCK_BYTES / row_bytes);
    c.item_bytes = c.rows_per_item * row_bytes;
    for (; c.side > 0; c.side--) {
        if ((uint64_t)c.side * most > UINT32_MAX)
            continue;
        uint64_t low = 0,
                 high = GS_MIN(bytes / c.item_bytes, gs_div_up(gs_store_get_info(s)->vertices, c.rows_per_item)) + 1;
        while (high - low > 1) {
            const uint64_t middle = (low + high) / 2;
            c.slots = (uint32_t)middle;
            *(gs_row_cache_bytes(s, &c, most) <= bytes ? &low : &high) = middle;
        }
        c.slots = (uint32_t)low;
        if (low >= LEAST_SLOTS)
            return c;
    }
    return (gs_row_cache_shape){0};
}

/* ---- opening ------------------------------------------------------------- */

static gs_status load(gs_batch_rows *r, gs_array_id id)
{
    GS_ENDS(gs_block_reader_close) gs_block_reader reader = {0};
    gs_status st = gs_block_reader_open(&reader, r->store, id);

    if (st == GS_OK && (r->array[id] = gs_malloc(GS_MIN(reader.extent.bytes, reader.info->bytes) + 1)) == NULL)
        st = gs_fail(GS_ENOMEM, "out of memory for %s of all vertices", gs_array_stem(id));
    while (gs_block_reader_more(&reader, &st))
        memcpy(r->array[id] + (reader.at - reader.extent.first), reader.block, reader.bytes);
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
    GS_ENDS(gs_block_reader_close) gs_block_reader reader = {0};
    gs_status st = gs_block_reader_open(&reader, r->store, GS_ARRAY_FEATURES);

    while (gs_block_reader_more(&reader, &st))
        for (uint64_t b = 0; b < reader.bytes; b += GS_BLOCK_BYTES)
            r->sums[(reader.at + b) / GS_BLOCK_BYTES] =
                sum_of((const uint8_t *)reader.block + b, reader.at + b, all);
    return st;
}

static uint64_t held_bytes(const gs_batch_rows *r) { return (r->side - 1ull) * r->most * r->row_bytes; }

static bool open_side(gs_batch_rows *r)
{
    r->joined = gs_malloc_array(reads_of_group(&r->cache), sizeof(*r->joined));
    r->list = gs_malloc_array((size_t)r->cache.group * r->most, sizeof(*r->list));
    r->held = gs_alloc_pages(held_bytes(r));
    return r->joined != NULL && r->list != NULL && r->held != NULL;
}

static gs_status open_lists(gs_batch_rows *r, uint32_t most)
{
    const uint64_t blocks = blocks_of(r->store), rows = (uint64_t)r->side * most;

    r->most = most;
    r->row_bytes = gs_store_array(r->store, GS_ARRAY_FEATURES)->row_bytes;
    r->scratch = gs_malloc_array(rows, sizeof(*r->scratch));
    r->sums = gs_malloc_array(blocks + 1, sizeof(*r->sums));
    bool all = r->scratch != NULL && r->sums != NULL;
    for (uint32_t k = 0; k < (r->ahead ? 2u : 1u); k++) {
        r->reads[k].order = gs_malloc_array(rows, sizeof(*r->reads[k].order));
        r->reads[k].keep = r->cache.slots == 0 ? NULL : gs_malloc_array(rows, sizeof(*r->reads[k].keep));
        all = all && r->reads[k].order != NULL && (r->reads[k].keep != NULL || r->cache.slots == 0);
    }
    all = all && (r->side == 1 || open_side(r));
    return all ? GS_OK : gs_fail(GS_ENOMEM, "out of memory for reading rows of features");
}

static gs_status open_file(gs_batch_rows *r, uint32_t most, uint64_t ring)
{
    r->ahead = ring > 0;
    GS_TRY(open_lists(r, most));
    GS_TRY(take_sums(r));
    GS_FREED char *const path = gs_store_array_path(r->store, GS_ARRAY_FEATURES);
    GS_NEED(path != NULL, "out of memory");
    return r->ahead ? gs_read_ring_open(&r->ring, path, ring, UINT32_MAX)
                    : gs_read_ring_open(&r->ring, path, GS_BATCH_RING, RUNS);
}

static gs_status open_cache(gs_batch_rows *r, uint32_t most)
{
    const gs_row_cache_shape *const c = &r->cache;
    r->slot = gs_alloc_pages(c->slots * c->item_bytes);
    GS_NEED(r->slot != NULL, "out of memory for rows of features that stay");
    return gs_residency_open(&r->plan, (uint32_t)gs_store_get_info(r->store)->vertices, c->rows_per_item, c->slots,
                             reads_of_group(c), r->side * most);
}

gs_status gs_batch_rows_open(gs_batch_rows *r, const gs_store *s, uint32_t wanted, const void *features, uint32_t most,
                             const gs_row_cache_shape *cache, uint64_t ring)
{
    *r = (gs_batch_rows){.store = s, .features = features, .cache = {.rows_per_item = 1}, .side = 1,
                         .base = gs_store_array_extent(s, GS_ARRAY_FEATURES).first};
    const bool reads = most > 0 && features == NULL && (wanted >> GS_ARRAY_FEATURES & 1) == 0;
    if (reads && cache->slots > 0) {
        r->cache = *cache;
        r->side = side_of(cache);
    }
    if (reads)
        GS_TRY(open_file(r, most, ring));
    if (r->cache.slots > 0)
        GS_TRY(open_cache(r, most));
    for (uint32_t id = 0; id < GS_ARRAY_COUNT; id++)
        if (wanted >> id & 1)
            GS_TRY(load(r, (gs_array_id)id));
    if (r->array[GS_ARRAY_FEATURES] != NULL)
        r->features = r->array[GS_ARRAY_FEATURES];
    return GS_OK;
}

void gs_batch_rows_close(gs_batch_rows *r)
{
    gs_read_ring_close(&r->ring);
    for (int id = 0; id < GS_ARRAY_COUNT; id++)
        gs_free(r->array[id]);
    gs_residency_close(r->plan);
    if (r->slot != NULL)
        gs_free_pages(r->slot, r->cache.slots * r->cache.item_bytes);
    for (uint32_t k = 0; k < 2; k++) {
        gs_free(r->reads[k].order);
        gs_free(r->reads[k].keep);
    }
    if (r->held != NULL)
        gs_free_pages(r->held, held_bytes(r));
    gs_free(r->joined);
    gs_free(r->list);
    gs_free(r->sums);
    gs_free(r->scratch);
    *r = (gs_batch_rows){0};
}

/* ---- picking ------------------------------------------------------------- */

/* `array` has the rows' bytes from `base` on. */
static void pick_here(const uint8_t *array, uint64_t base, uint64_t row_bytes, const uint32_t *row, uint32_t rows,
                      uint8_t *dst)
{
#pragma omp parallel for schedule(static) if (rows *row_bytes > 65536)
    for (uint32_t i = 0; i < rows; i++)
        memcpy(dst + i * row_bytes, array + (row[i] * row_bytes - base), row_bytes);
}

/* ---- what is read -------------------------------------------------------- */

/* Blocks of the item that a row is in; the last item may be short. */
static uint64_t begin_of(const gs_batch_rows *r, uint64_t row)
{
    return gs_align_down(row / r->cache.rows_per_item * r->cache.rows_per_item * r->row_bytes, GS_BLOCK_BYTES);
}
static uint64_t end_of(const gs_batch_rows *r, uint64_t row)
{
    const uint64_t end = (row / r->cache.rows_per_item + 1) * r->cache.rows_per_item;
    return gs_align_up(GS_MIN(end, gs_store_get_info(r->store)->vertices) * r->row_bytes, GS_BLOCK_BYTES);
}
static bool is_planned(const gs_batch_rows *r) { return r->plan != NULL && !r->apart; }

/* Are so many bytes between two rows read along? */
static bool reads_along(const gs_batch_rows *r, uint64_t gap, uint64_t along, uint64_t read)
{
    if (r->gap > 0 || !is_planned(r))
        return gap <= (r->gap > 0 ? r->gap : GAP_BYTES);
    return gap <= CACHE_GAP_BYTES && GAP_SHARE * (along + gap) <= read;
}

/* Rows that are in slots are left out of the list. */
static void list_missed(gs_batch_rows *r, gs_batch_reads *l)
{
    gs_residency_next(r->plan, &r->step);
    for (uint32_t e = 0; e < r->step.rows; e++)
        if (r->step.from[e] == GS_RESIDENCY_NONE) {
            l->order[l->rows] = r->step.place[e];
            l->keep[l->rows++] = r->step.keep[e];
        }
}

static void list_reads(gs_batch_rows *r, gs_batch_reads *l, const uint32_t *row, uint32_t rows)
{
    l->row = row;
    l->rows = l->asked = l->taken = 0;
    if (is_planned(r)) {
        list_missed(r, l);
        return;
    }
    gs_radix_order(l->order, r->scratch, row, rows);
    l->rows = rows;
}

/* Asks for one run of blocks, from the first place on that was not asked for; which one does not depend on what has
 * come. False: there is no room yet. */
static bool ask_run(gs_batch_rows *r, gs_batch_reads *l)
{
    const uint64_t begin = begin_of(r, l->row[l->order[l->asked]]), most = gs_read_ring_most(r->ring.bytes);
    uint64_t end = end_of(r, l->row[l->order[l->asked]]), along = r->gap_bytes;
    uint32_t k = l->asked + 1;

    for (; k < l->rows; k++) {
        const uint64_t row_begin = begin_of(r, l->row[l->order[k]]), row_end = end_of(r, l->row[l->order[k]]);
        const uint64_t gap = row_begin > end ? row_begin - end : 0;
        if ((gap > 0 && !reads_along(r, gap, along, r->read_bytes)) || row_end - begin > most)
            break;
        along += gap;
        end = GS_MAX(end, row_end);
    }
    if (!gs_read_ring_put(&r->ring, begin - r->base, end - begin, k))
        return false;
    l->asked = k;
    r->gap_bytes = along;
    r->read_bytes += end - begin;
    return true;
}

static void ask_all(gs_batch_rows *r, gs_batch_reads *l)
{
    while (l->asked < l->rows && ask_run(r, l))
        ;
}

/* As much as there is room for: of what is read at hand, then of what follows it in the group. */
static void ask_ahead(gs_batch_rows *r)
{
    gs_batch_reads *const now = &r->reads[r->now], *const next = &r->reads[1 - r->now];
    gs_batch_queue *const q = &r->queue;

    ask_all(r, now);
    if (now->asked < now->rows || !r->ahead || r->apart || q->begun == q->reads)
        return;
    if (!q->listed)
        list_reads(r, next, q->read[q->begun].vertex, q->read[q->begun].vertices);
    q->listed = true;
    ask_all(r, next);
}

/* ---- what has come ------------------------------------------------------- */

/* Are the blocks that came those that were checked when the run began? */
static gs_status check_blocks(const gs_batch_rows *r, const gs_read_run *run, const uint8_t *block)
{
    const uint64_t all = gs_store_array(r->store, GS_ARRAY_FEATURES)->bytes;

    for (uint32_t b = 0; b < run->blocks; b++, block += GS_BLOCK_BYTES) {
        const uint64_t at = r->base + run->begin + b * GS_BLOCK_BYTES;
        if (sum_of(block, at, all) != r->sums[at / GS_BLOCK_BYTES])
            return gs_fail(GS_EFORMAT, "%s/%s.bin: bytes %llu to %llu are not those that matched their checksum when "
                           "the run began; see gnnstream verify, and make the store again",
                           gs_store_dir(r->store), gs_array_stem(GS_ARRAY_FEATURES), (unsigned long long)at,
                           (unsigned long long)GS_MIN(at + GS_BLOCK_BYTES, all));
    }
    return GS_OK;
}

/* `run` has the file's bytes from `begin` on, the row's item among them. */
static void keep_item(gs_batch_rows *r, uint32_t slot, const uint8_t *run, uint64_t begin, uint64_t row)
{
    const uint64_t first = row / r->cache.rows_per_item * r->cache.rows_per_item,
                   end = GS_MIN(first + r->cache.rows_per_item, gs_store_get_info(r->store)->vertices);
    memcpy(r->slot + slot * r->cache.item_bytes, run + (first * r->row_bytes - begin), (end - first) * r->row_bytes);
}

/* Where a row of what is read goes: those of the batch that is picked to `dst`, others are held. */
static uint8_t *memory_of(const gs_batch_rows *r, uint8_t *dst, uint64_t place)
{
    if (r->side == 1 || r->apart)
        return dst + place * r->row_bytes;
    if (place - r->first < r->firsts)
        return dst + (place - r->first) * r->row_bytes;
    return r->held + (place - (place < r->first ? 0 : r->firsts)) * r->row_bytes;
}

/* Takes the rows that the next run brings: waits for it, checks it. */
static gs_status take_run(gs_batch_rows *r, gs_batch_reads *l, uint8_t *dst)
{
    const gs_read_run *run;
    const uint8_t *came;
    const double began = gs_now();
    gs_status st = gs_read_ring_front(&r->ring, &run, &came);

    r->wait_seconds += gs_now() - began;
    if (st != GS_OK)
        return gs_fail(st, "%s: rows of features could not be read", gs_store_dir(r->store));
    GS_TRY(check_blocks(r, run, came));
    const uint64_t begin = r->base + run->begin;
    for (; l->taken < run->mark; l->taken++) {
        const uint32_t place = l->order[l->taken];
        const uint64_t row = l->row[place];
        memcpy(memory_of(r, dst, place), came + (row * r->row_bytes - begin), r->row_bytes);
        if (is_planned(r) && l->keep[l->taken] != GS_RESIDENCY_NONE)
            keep_item(r, l->keep[l->taken], came, begin, row);
    }
    gs_read_ring_pop(&r->ring);
    return GS_OK;
}

/* Rows that are in slots, of the list that was made last. */
static void take_cached(const gs_batch_rows *r, const uint32_t *row, uint8_t *dst)
{
    const gs_residency_step *const s = &r->step;
    const uint64_t bytes = r->row_bytes;

#pragma omp parallel for schedule(static) if (s->rows *bytes > 65536)
    for (uint32_t e = 0; e < s->rows; e++)
        if (s->from[e] != GS_RESIDENCY_NONE)
            memcpy(memory_of(r, dst, s->place[e]), r->slot + s->from[e] * r->cache.item_bytes +
                                                       row[s->place[e]] % r->cache.rows_per_item * bytes, bytes);
}

/* ---- picking ------------------------------------------------------------- */

static void give_up(gs_batch_rows *r)
{
    if (r->ring.io != NULL)
        gs_read_ring_drain(&r->ring);
    if (r->plan != NULL)
        gs_residency_forget(r->plan);
    r->queue = (gs_batch_queue){0};
}

/* The place of the next batch's first row among those that are read with it. */
static uint32_t place_of_next(const gs_batch_rows *r)
{
    const gs_batch_queue *const q = &r->queue;
    uint32_t place = 0;
    for (uint32_t k = q->next / r->side * r->side; k < q->next; k++)
        place += q->batch[k].vertices;
    return place;
}

/* Were the next batch's rows read with those of one before it? */
static bool is_held(const gs_batch_rows *r)
{
    return !r->apart && r->side > 1 && r->queue.begun > r->queue.next / r->side;
}

/* The list of what is read next, for the batch that is next, which may have been made. */
static void begin_read(gs_batch_rows *r, const uint32_t *row, uint32_t rows)
{
    gs_batch_queue *const q = &r->queue;
    const bool queued = !r->apart && q->next < q->batches;

    assert(!r->apart || r->ring.count == 0);
    if (queued && q->listed) {
        r->now = 1 - r->now;
    } else if (queued) {
        list_reads(r, &r->reads[r->now], q->read[q->begun].vertex, q->read[q->begun].vertices);
    } else {
        list_reads(r, &r->reads[r->now], row, rows);
        return;
    }
    assert(q->batch[q->next].vertices == rows && q->begun == q->next / r->side);
    r->first = place_of_next(r);
    r->firsts = rows;
    q->listed = false;
    q->begun++;
    q->next++;
}

/* All of the rows of a batch were read with those of one before it, and so they are in one piece. */
static void take_held(gs_batch_rows *r, uint32_t rows, uint8_t *dst)
{
    const uint32_t place = place_of_next(r);
    const uint8_t *const held = r->held + (place - (place < r->first ? 0 : r->firsts)) * r->row_bytes;

    assert(r->queue.batch[r->queue.next].vertices == rows);
#pragma omp parallel for schedule(static) if (rows * r->row_bytes > 65536)
    for (uint32_t i = 0; i < rows; i++)
        memcpy(dst + i * r->row_bytes, held + i * r->row_bytes, r->row_bytes);
    r->queue.next++;
}

static gs_status read_rows(gs_batch_rows *r, const uint32_t *row, uint32_t rows, uint8_t *dst)
{
    gs_status st = GS_OK;

    if (is_held(r)) {
        take_held(r, rows, dst);
        return st;
    }
    begin_read(r, row, rows);
    gs_batch_reads *const l = &r->reads[r->now];
    ask_all(r, l);
    if (is_planned(r))
        take_cached(r, l->row, dst);
    for (ask_ahead(r); st == GS_OK && l->taken < l->rows; ask_ahead(r))
        st = take_run(r, l, dst);
    if (st != GS_OK)
        give_up(r);
    return st;
}

/* The last of the batches that would have been read at once ends what was not begun, which is nothing then. */
void gs_batch_rows_pass(gs_batch_rows *r)
{
    gs_batch_queue *const q = &r->queue;
    const uint32_t read = q->next / r->side;
    gs_residency_step none;

    if (q->next == q->batches)
        return;
    q->next++;
    if (q->begun > read || (q->next < q->batches && q->next / r->side == read))
        return;
    assert(!q->listed || r->reads[1 - r->now].rows == 0);
    if (r->plan != NULL && !q->listed)
        gs_residency_next(r->plan, &none);
    q->listed = false;
    q->begun++;
}

/* The ring is for these rows then: what is in it of batches that follow is asked for again. */
void gs_batch_rows_apart(gs_batch_rows *r, bool apart)
{
    if (apart && !r->apart && r->ring.io != NULL && r->ring.count > 0) {
        gs_read_ring_drain(&r->ring);
        r->reads[1 - r->now].asked = 0;
    }
    r->apart = apart;
}

/* Rows of as many batches as are read at once, one after the other. */
static void join_batches(gs_batch_rows *r, const gs_batch *batch, uint32_t batches)
{
    uint32_t *at = r->list;

    assert(batches <= r->cache.group);
    for (uint32_t k = 0; k < batches; k++) {
        gs_batch *const to = &r->joined[k / r->side];
        if (k % r->side == 0)
            *to = (gs_batch){.vertex = at};
        if (batch[k].vertices > 0) /* one that is passed over has no list */
            memcpy(at, batch[k].vertex, batch[k].vertices * sizeof(*at));
        at += batch[k].vertices;
        to->vertices += batch[k].vertices;
    }
}

void gs_batch_rows_begin(gs_batch_rows *r, const gs_batch *batch, uint32_t batches)
{
    const uint32_t reads = (uint32_t)gs_div_up(batches, r->side);

    if (r->queue.listed) /* a group that was not ended: the plan is ahead of the slots */
        give_up(r);
    if (r->side > 1)
        join_batches(r, batch, batches);
    const gs_batch *const read = r->side > 1 ? r->joined : batch;
    if (r->ring.io != NULL)
        r->queue = (gs_batch_queue){.batch = batch, .batches = batches, .read = read, .reads = reads};
    if (r->plan != NULL)
        gs_residency_begin(r->plan, read, reads);
}

gs_status gs_batch_rows_pick(gs_batch_rows *r, gs_array_id id, const uint32_t *row, uint32_t rows, void *dst)
{
    const uint8_t *const all = id == GS_ARRAY_FEATURES ? r->features : r->array[id];

    if (all == NULL)
        return read_rows(r, row, rows, dst);
    pick_here(all, id == GS_ARRAY_FEATURES ? r->base : 0, gs_store_array(r->store, id)->row_bytes, row, rows, dst);
    return GS_OK;
}

/* ---- rows that are named, not copied -------------------------------------- */

/* How stages use features. */
typedef struct uses {
    uint32_t array;
    bool sums, named; /* some stage sums them; they may be named */
} uses;

/* A sum of rows of float32 over in-edges finds rows by number, as a vertex program's tile does. Scales of its rows have
 * the batch's numbers. */
static bool may_name(const gs_program *p, const gs_stage *s, const gs_array_use *u)
{
    gs_row_sum rows;
    if (u->role == GS_USE_LOAD)
        return true;
    return u->role == GS_USE_OPERAND && u->sum != GS_NONE && s->direction == GS_BY_DEST && !s->sum[u->sum].self &&
           p->array[u->array].dtype == GS_F32 && gs_sum_of_rows(&rows, s, u->sum) && rows.types == GS_TYPES_NONE &&
           rows.scale == GS_NONE;
}

static uses uses_of(const gs_program *p)
{
    uses x = {.array = gs_program_stored(p, GS_ARRAY_FEATURES)};
    x.named = x.array != GS_NONE;
    for (uint32_t k = 0; k < p->stages; k++)
        for (gs_array_use u = {0}; gs_stage_next_use(&p->stage[k], &u);)
            if (u.array == x.array) {
                x.named = x.named && may_name(p, &p->stage[k], &u);
                x.sums = x.sums || u.role == GS_USE_OPERAND;
            }
    return x;
}

static bool loads(const gs_stage *s, uint32_t array)
{
    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind == GS_REG_LOAD && s->reg[r].array == array)
            return true;
    return false;
}

static uint64_t tile_bytes(const gs_program *p, const gs_plan *plan, uint32_t array)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < plan->tasks; i++)
        if (plan->task[i].kind == GS_TASK_VERTEX && loads(&p->stage[plan->task[i].stage], array))
            rows = GS_MAX(rows, plan->task[i].rows);
    return rows * p->array[array].width * gs_dtype_bytes(p->array[array].dtype);
}

static uint64_t edge_bytes(const gs_batch_limits *l) { return (l->edges + GS_MIN(l->vertices, l->edges)) * 4; }

uint64_t gs_batch_named_bytes(const gs_program *p, const gs_plan *plan, const gs_batch_limits *limits)
{
    const uses x = uses_of(p);
    return x.named ? tile_bytes(p, plan, x.array) + (x.sums ? edge_bytes(limits) : 0) : 0;
}

gs_status gs_batch_named_open(gs_batch_named *n, const gs_program *p, const gs_plan *plan,
                              const gs_batch_limits *limits)
{
    const uses x = uses_of(p);

    *n = (gs_batch_named){0};
    if (!x.named)
        return GS_OK;
    n->bytes = tile_bytes(p, plan, x.array);
    n->tile = gs_alloc_pages(n->bytes);
    n->target = x.sums ? gs_malloc_array(GS_MIN(limits->vertices, limits->edges), sizeof(*n->target)) : NULL;
    n->index = x.sums ? gs_malloc_array(limits->edges, sizeof(*n->index)) : NULL;
    if (n->tile == NULL || (x.sums && (n->target == NULL || n->index == NULL))) {
        gs_batch_named_close(n);
        return gs_fail(GS_ENOMEM, "out of memory for rows of features of a batch");
    }
    n->rows = (gs_exec_named){.array = x.array, .tile = n->tile};
    return GS_OK;
}

void gs_batch_named_close(gs_batch_named *n)
{
    if (n->tile != NULL)
        gs_free_pages(n->tile, n->bytes);
    gs_free(n->target);
    gs_free(n->index);
    *n = (gs_batch_named){0};
}

void gs_batch_named_fill(gs_batch_named *n, const gs_batch *b, const void *all)
{
    const gs_chunk_view *const v = &b->view[GS_BY_DEST];

    n->rows.all = all;
    n->rows.row = b->vertex;
    n->rows.edges = &n->edges;
    n->edges = (gs_edges){0};
    if (n->index == NULL || b->edges == 0)
        return;
    for (uint32_t t = 0; t < v->targets; t++)
        n->target[t] = gs_index_at(v->target, v->index_bytes, t);
#pragma omp parallel for schedule(static) if (b->edges > 65536)
    for (uint64_t k = 0; k < b->edges; k++)
        n->index[k] = b->vertex[gs_index_at(v->index, v->index_bytes, k)];
    n->edges = (gs_edges){.index_bytes = 4, .targets = v->targets, .target = n->target, .start = v->start,
                          .index = n->index};
}

/* ---- rows that stay in the memories of GPUs, by out-degree ---------------- */

/* Degrees of so many and more count as so many. */
#define DEGREES 65536u

static uint64_t words_of(uint64_t vertices) { return gs_div_up(vertices, 64); }

uint64_t gs_batch_spread_bytes(const gs_store *store)
{
    return words_of(gs_store_get_info(store)->vertices) * (sizeof(uint64_t) + sizeof(uint32_t)) +
           DEGREES * sizeof(uint32_t) + GS_SUM_BYTES;
}

static uint32_t degree_of(const gs_block_reader *r, uint64_t i)
{
    return (uint32_t)GS_MIN(((const float *)r->block)[i], (float)(DEGREES - 1));
}

typedef struct choice {
    gs_batch_spread *s;
    uint32_t *count;       /* [DEGREES] vertices of each */
    uint32_t least, equal; /* degrees that stay: those above, and of `least` so many more vertices */
} choice;

static gs_status count_degrees(choice *c, const gs_store *store)
{
    GS_ENDS(gs_block_reader_close) gs_block_reader r = {0};
    gs_status st = gs_block_reader_open(&r, store, GS_ARRAY_OUT_DEGREE);

    while (gs_block_reader_more(&r, &st))
        for (uint64_t i = 0; i < r.bytes / sizeof(float); i++)
            c->count[degree_of(&r, i)]++;
    return st;
}

static void find_least(choice *c)
{
    c->equal = c->s->rows;
    for (c->least = DEGREES - 1; c->least > 0 && c->count[c->least] < c->equal; c->least--)
        c->equal -= c->count[c->least];
}

static gs_status mark_rows(choice *c, const gs_store *store)
{
    GS_ENDS(gs_block_reader_close) gs_block_reader r = {0};
    gs_status st = gs_block_reader_open(&r, store, GS_ARRAY_OUT_DEGREE);

    while (gs_block_reader_more(&r, &st))
        for (uint64_t i = 0; i < r.bytes / sizeof(float); i++) {
            const uint64_t v = r.at / sizeof(float) + i;
            const uint32_t degree = degree_of(&r, i);
            const bool stays = degree > c->least || (degree == c->least && c->equal > 0);
            c->equal -= stays && degree == c->least;
            c->s->bit[v / 64] |= (uint64_t)stays << v % 64;
        }
    return st;
}

gs_status gs_batch_spread_open(gs_batch_spread *s, const gs_store *store, uint32_t rows)
{
    const uint64_t vertices = gs_store_get_info(store)->vertices, words = words_of(vertices);
    GS_FREED uint32_t *const count = gs_calloc(DEGREES, sizeof(*count));
    choice c = {.s = s, .count = count};

    *s = (gs_batch_spread){.vertices = (uint32_t)vertices, .rows = rows};
    s->bit = gs_calloc(words, sizeof(*s->bit));
    s->before = gs_calloc(words, sizeof(*s->before));
    if (count == NULL || s->bit == NULL || s->before == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the numbers of rows that stay in devices' memory");
    GS_TRY(count_degrees(&c, store));
    find_least(&c);
    GS_TRY(mark_rows(&c, store));
    for (uint64_t w = 1; w < words; w++)
        s->before[w] = s->before[w - 1] + (uint32_t)__builtin_popcountll(s->bit[w - 1]);
    return GS_OK;
}

void gs_batch_spread_close(gs_batch_spread *s)
{
    gs_free(s->bit);
    gs_free(s->before);
    *s = (gs_batch_spread){0};
}

/* The number of a vertex's row; s->rows: it is not kept. */
static uint32_t number_of(const gs_batch_spread *s, uint32_t v)
{
    const uint64_t word = s->bit[v / 64], bit = 1ull << v % 64;
    return (word & bit) == 0 ? s->rows : s->before[v / 64] + (uint32_t)__builtin_popcountll(word & (bit - 1));
}

void gs_batch_spread_find(gs_batch_places *out, const gs_batch_spread *s, const uint32_t *vertex, uint32_t rows,
                          uint32_t own, uint32_t devices)
{
    out->lefts = out->from_peers = 0;
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t number = number_of(s, vertex[i]);
        if (number == s->rows) {
            number += out->lefts;
            out->left[out->lefts++] = vertex[i];
        } else {
            out->from_peers += number % devices != own;
        }
        if (out->place != NULL)
            out->place[i] = number;
    }
}

uint32_t gs_batch_spread_list(uint32_t *vertex, const gs_batch_spread *s, uint32_t rows, uint32_t own,
                              uint32_t devices, uint32_t *from)
{
    uint32_t n = 0;

    for (; *from < s->vertices && n < rows; ++*from) {
        const uint32_t number = number_of(s, *from);
        if (number < s->rows && number % devices == own)
            vertex[n++] = *from;
    }
    return n;
}
