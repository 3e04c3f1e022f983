/* batch_rows.c - rows of a store picked for a batch, from memory or from the disk. */
#include "session/batch_rows.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "session/store_rows.h"

/* Runs of blocks are read into this much memory at a time. Between two rows that are needed so many bytes are read
 * along: about as much as a request takes time for. */
#define WINDOW_BYTES (8 * GS_MIB)
#define GAP_BYTES (16 * GS_KIB)
#define REQUESTS 256u

uint64_t gs_batch_rows_reading(uint32_t most) { return WINDOW_BYTES + 2ull * most * sizeof(uint32_t); }

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

static gs_status open_file(gs_batch_rows *r, uint32_t most)
{
    char *path = NULL;
    gs_status st;

    r->most = most;
    r->order = gs_malloc_array(most, sizeof(*r->order));
    r->scratch = gs_malloc_array(most, sizeof(*r->scratch));
    r->bounce = gs_alloc_pages(WINDOW_BYTES);
    if (r->order == NULL || r->scratch == NULL || r->bounce == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for reading rows of features");
    const struct gs_io_buffer buffer = {r->bounce, WINDOW_BYTES};
    const gs_io_config io = {.requests = REQUESTS, .depth = REQUESTS, .buffers = &buffer, .buffer_count = 1};
    if ((st = gs_io_open(&r->io, &io)) != GS_OK)
        return st;
    path = gs_store_array_path(r->store, GS_ARRAY_FEATURES);
    st = path == NULL ? gs_fail(GS_ENOMEM, "out of memory") : gs_io_add_file(r->io, &r->file, path, GS_IO_READ);
    gs_free(path);
    return st;
}

gs_status gs_batch_rows_open(gs_batch_rows *r, const gs_store *s, uint32_t wanted, const void *features,
                             uint32_t most)
{
    gs_status st;

    *r = (gs_batch_rows){.store = s, .features = features};
    st = features == NULL ? open_file(r, most) : GS_OK;
    for (uint32_t id = 0; id < GS_ARRAY_COUNT && st == GS_OK; id++)
        if (wanted >> id & 1)
            st = load(r, (gs_array_id)id);
    return st;
}

void gs_batch_rows_close(gs_batch_rows *r)
{
    gs_io_close(r->io);
    for (int id = 0; id < GS_ARRAY_COUNT; id++)
        gs_free(r->array[id]);
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

/* order[] = places by their rows: by bytes of the row number, from the lowest (radix sort, 8 bits a pass). */
static void sort_places(gs_batch_rows *r, const uint32_t *row, uint32_t rows)
{
    uint32_t *from = r->scratch, *to = r->order;
    for (uint32_t i = 0; i < rows; i++)
        from[i] = i;
    for (int shift = 0; shift < 32; shift += 8) {
        uint32_t first[257] = {0};
        for (uint32_t i = 0; i < rows; i++)
            first[(row[from[i]] >> shift & 255) + 1]++;
        for (int k = 0; k < 256; k++)
            first[k + 1] += first[k];
        for (uint32_t i = 0; i < rows; i++)
            to[first[row[from[i]] >> shift & 255]++] = from[i];
        uint32_t *const swap = from;
        from = to;
        to = swap;
    }
    r->order = from; /* four passes: the places are where they began */
    r->scratch = to;
}

/* Requests that are under way in the window, and the places that they bring. */
typedef struct window {
    uint32_t first, end; /* of order[] */
    uint64_t used;       /* bytes of the bounce buffer */
    uint32_t requests;
} window;

static uint64_t begin_of(uint64_t row, uint64_t row_bytes) { return gs_align_down(row * row_bytes, GS_BLOCK_BYTES); }
static uint64_t end_of(uint64_t row, uint64_t row_bytes) { return gs_align_up((row + 1) * row_bytes, GS_BLOCK_BYTES); }

/* Submits one run of blocks from place `at` of order[] on; *next is the first place that it does not bring. `full`: the
 * window has no room for what follows. */
static gs_status submit_run(gs_batch_rows *r, window *w, const uint32_t *row, uint32_t rows, uint64_t row_bytes,
                            uint32_t at, uint32_t *next, bool *full)
{
    const uint64_t begin = begin_of(row[r->order[at]], row_bytes);
    uint64_t end = end_of(row[r->order[at]], row_bytes);
    uint32_t k = at + 1;

    *full = w->requests == REQUESTS || end - begin > WINDOW_BYTES - w->used;
    if (*full)
        return GS_OK;
    for (; k < rows; k++) {
        const uint64_t row_begin = begin_of(row[r->order[k]], row_bytes), row_end = end_of(row[r->order[k]], row_bytes);
        *full = row_begin <= end + GAP_BYTES && row_end - begin > WINDOW_BYTES - w->used;
        if (row_begin > end + GAP_BYTES || *full)
            break;
        end = GS_MAX(end, row_end);
    }
    const gs_io_request q = {.file = r->file, .offset = begin, .length = end - begin, .memory = r->bounce + w->used};
    *next = k;
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

/* What the window's runs have brought, which follow each other there as they were made. */
static void take_rows(const gs_batch_rows *r, const window *w, const uint32_t *row, uint64_t row_bytes, uint8_t *dst)
{
    uint64_t begin = 0, end = 0, at = 0; /* of the run at hand, in the file; and where it is in the window */
    for (uint32_t k = w->first; k < w->end; k++) {
        const uint64_t number = row[r->order[k]], b = begin_of(number, row_bytes), e = end_of(number, row_bytes);
        if (k == w->first || b > end + GAP_BYTES) {
            at += end - begin;
            begin = b;
            end = e;
        }
        end = GS_MAX(end, e);
        memcpy(dst + r->order[k] * row_bytes, r->bounce + at + (number * row_bytes - begin), row_bytes);
    }
}

static gs_status read_rows(gs_batch_rows *r, uint64_t row_bytes, const uint32_t *row, uint32_t rows, uint8_t *dst)
{
    gs_status st = GS_OK;

    sort_places(r, row, rows);
    for (uint32_t at = 0; at < rows && st == GS_OK;) {
        window w = {.first = at};
        bool full = false;
        while (at < rows && !full && st == GS_OK) {
            st = submit_run(r, &w, row, rows, row_bytes, at, &at, &full);
            w.end = at;
        }
        const gs_status came = wait_for(r);
        st = st == GS_OK ? came : st;
        if (st == GS_OK)
            take_rows(r, &w, row, row_bytes, dst);
    }
    return st;
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
