/* edge_scan.c - edge files front to back through one window, each chunk checked. */
#include "store/edge_scan.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "store/store_internal.h"

/* ---- windows ----------------------------------------------------------- */

/* A large file read front to back, through one buffer.
 *
 * What has been read does not stay in the page cache where the file is larger than what the caller has room for, or a
 * large part of the machine's memory, so that verifying a store does not push everything else out, nor a scan what a
 * small cgroup has: it is read past the cache, or, where that cannot be, dropped from it. Else it stays for the next
 * scan, as planning may read the edges several times. */

#define KEPT_PART 8u

gs_status gs_window__open(gs_window *w, char *path, uint64_t base, uint64_t capacity, uint64_t room)
{
    *w = (gs_window){.path = path, .fd = -1, .capacity = capacity, .base = base};
    GS_NEED(path != NULL, "no memory to verify a file");
    GS_TRY(gs_file_open_own(&w->fd, &w->file_bytes, path));
    GS_NEED((w->buffer = gs_alloc_pages(capacity)) != NULL, "%s: no memory for a buffer of %lu bytes", path, capacity);
    const uint64_t pages = (uint64_t)GS_MAX(sysconf(_SC_PHYS_PAGES), 0), page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    w->drops = w->file_bytes > GS_MIN(room, pages * page_bytes / KEPT_PART);
    w->past_cache = w->drops && fcntl(w->fd, F_SETFL, fcntl(w->fd, F_GETFL) | O_DIRECT) == 0;
    (void)posix_fadvise(w->fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* advice: a refusal changes nothing */
    return GS_OK;
}

#define DROPPED_BYTES GS_MIB /* of a file that is dropped, in the page cache: a small cgroup has no room for more */

/* Into the buffer. A file system that does not read past the cache as is asked reads through it from then on. */
static gs_status read_window(gs_window *w, uint64_t offset, uint64_t bytes)
{
    const uint64_t most = w->drops ? DROPPED_BYTES : bytes;
    gs_status st = GS_OK;

    if (w->past_cache && bytes % GS_BLOCK_BYTES == 0 &&
        gs_pread_exact(w->fd, w->buffer, bytes, offset, w->path) == GS_OK)
        return GS_OK;
    if (w->past_cache)
        w->past_cache = fcntl(w->fd, F_SETFL, fcntl(w->fd, F_GETFL) & ~O_DIRECT) != 0;
    for (uint64_t done = 0; done < bytes && st == GS_OK; done += most) {
        const uint64_t n = GS_MIN(most, bytes - done);
        st = gs_pread_exact(w->fd, w->buffer + done, n, offset + done, w->path);
        if (w->drops)
            (void)posix_fadvise(w->fd, (off_t)(offset + done), (off_t)n, POSIX_FADV_DONTNEED);
    }
    return st;
}

gs_status gs_window__get(gs_window *w, const void **data, uint64_t offset, uint64_t bytes, uint64_t end)
{
    assert(bytes <= w->capacity && offset % GS_BLOCK_BYTES == 0);
    if (!gs_window__holds(w, offset, bytes)) {
        const uint64_t file_end = w->base + w->file_bytes,
                       last = GS_MIN(gs_align_up(GS_MIN(end, file_end), GS_BLOCK_BYTES), file_end);
        const uint64_t left = offset < last ? last - offset : 0, take = GS_MAX(bytes, GS_MIN(left, w->capacity));
        w->valid = 0;
        if (offset < w->base)
            return gs_extent_check((gs_extent){w->base, w->file_bytes}, offset, bytes, w->path);
        GS_TRY(read_window(w, offset - w->base, take));
        w->read_bytes += take;
        w->first = offset;
        w->valid = take;
    }
    *data = w->buffer + (offset - w->first);
    return GS_OK;
}

void gs_window__close(gs_window *w)
{
    if (w->fd >= 0) {
        if (w->drops)
            (void)posix_fadvise(w->fd, 0, 0, POSIX_FADV_DONTNEED);
        close(w->fd);
    }
    gs_free_pages(w->buffer, w->capacity);
    gs_free(w->path);
    *w = (gs_window)GS_WINDOW_NONE;
}

/* ---- scans ----------------------------------------------------------------- */

#define WINDOW_BYTES (8 * GS_MIB)
#define GAP_BYTES (64 * GS_KIB) /* read along between two chunks, rather than a request more */

uint64_t gs_edge_scan_least(const gs_store *s) { return GS_MAX(gs_store_chunks(s)->longest, GS_BLOCK_BYTES); }

typedef struct chunk_at {
    gs_direction direction;
    uint32_t target, operand;
} chunk_at;

/* The chunk's bytes are read as far as `end`, if they are not there. */
static gs_status view_checked(gs_chunk_view *view, const gs_store *s, gs_window *w, chunk_at at, uint64_t end)
{
    const gs_chunk_table *t = gs_store_chunks(s);
    const gs_chunk *c = gs_chunk_at(t, at.direction, at.target, at.operand);
    const gs_chunk_expect expect = {
        .target_rows = gs_interval_rows(t, at.target), .operand_rows = gs_interval_rows(t, at.operand),
        .index_bytes = gs_index_bytes(t), .edges = c->edges, .targets = c->targets, .operands = c->operands,
        .largest = c->largest};
    const void *data = NULL;

    GS_TRY(gs_window__get(w, &data, c->offset, c->length, end));
    if (gs_hash64(data, c->length) != c->checksum)
        return gs_fail(GS_EFORMAT, "%s: chunk (%u, %u) does not match its checksum" GS_STORE_DAMAGED, w->path,
                       at.target, at.operand);
    gs_status st = gs_chunk_view_make(view, data, c->length, &expect, true);
    if (st == GS_OK && !gs_edge_data_equal(gs_chunk_view_data(view), t->data))
        st = gs_fail(GS_EFORMAT, "its edges carry other data than the store's");
    if (st != GS_OK)
        return gs_fail(st, "%s: chunk (%u, %u): %s", w->path, at.target, at.operand, gs_last_error());
    return GS_OK;
}

struct gs_edge_scanner {
    const gs_store *store;
    gs_direction direction;
    gs_window window;
};

static gs_status open_scanner(gs_edge_scanner *e, const gs_store *s, gs_direction d, uint64_t memory)
{
    const uint64_t least = gs_edge_scan_least(s);
    char have[16], need[16];

    *e = (gs_edge_scanner){.store = s, .direction = d, .window = GS_WINDOW_NONE};
    if (memory < least)
        return gs_fail(GS_EBUDGET, "%s: reading its edges takes a buffer of %s, and %s are left", gs_store_dir(s),
                       gs_size_format(need, sizeof(need), least), gs_size_format(have, sizeof(have), memory));
    return gs_window__open(&e->window, gs_store_edges_path(s, d), gs_store_edges_extent(s, d).first,
                           gs_align_down(GS_MAX(least, GS_MIN(memory, WINDOW_BYTES)), GS_BLOCK_BYTES), memory);
}

gs_status gs_edge_scanner_open(gs_edge_scanner **out, const gs_store *s, gs_direction d, uint64_t memory)
{
    gs_edge_scanner *e = gs_malloc(sizeof(*e));
    gs_status st;

    GS_NEED(e != NULL, "%s: no memory to read its edges", gs_store_dir(s));
    if ((st = open_scanner(e, s, d, memory)) == GS_OK)
        *out = e;
    else
        gs_edge_scanner_close(e);
    return st;
}

void gs_edge_scanner_close(gs_edge_scanner *e)
{
    if (e == NULL)
        return;
    gs_window__close(&e->window);
    gs_free(e);
}

uint64_t gs_edge_scanner_read_bytes(const gs_edge_scanner *e) { return e->window.read_bytes; }
uint64_t gs_edge_scanner_bytes(const gs_edge_scanner *e) { return sizeof(*e) + e->window.capacity; }

/* The end of what is worth reading at once from chunk k on: wanted chunks that lie close together. */
static uint64_t end_of_run(const gs_edge_scanner *e, gs_direction d, const uint8_t *wanted, uint64_t k)
{
    const gs_chunk_table *t = gs_store_chunks(e->store);
    const gs_chunk *const chunk = t->chunk[d];
    uint64_t end = chunk[k].offset + chunk[k].length;

    for (uint64_t next = k + 1; next < (uint64_t)t->parts * t->parts; next++) {
        if (chunk[next].edges == 0)
            continue;
        if (chunk[next].offset > end + GAP_BYTES ||
            chunk[next].offset + chunk[next].length > chunk[k].offset + e->window.capacity)
            break;
        if (wanted[next])
            end = chunk[next].offset + chunk[next].length;
    }
    return end;
}

gs_status gs_edge_scanner_run(gs_edge_scanner *e, const uint8_t *wanted, gs_edge_visit *visit, void *context)
{
    const gs_chunk_table *t = gs_store_chunks(e->store);

    for (uint64_t k = 0; k < (uint64_t)t->parts * t->parts; k++) {
        const chunk_at at = {t->shared ? GS_BY_DEST : e->direction, (uint32_t)(k / t->parts), (uint32_t)(k % t->parts)};
        const gs_chunk *const chunk = &t->chunk[at.direction][k];
        uint64_t end = UINT64_MAX;
        gs_chunk_view view;
        if (chunk->edges == 0 || (wanted != NULL && !wanted[k]))
            continue;
        if (wanted != NULL && !gs_window__holds(&e->window, chunk->offset, chunk->length))
            end = end_of_run(e, at.direction, wanted, k);
        GS_TRY(view_checked(&view, e->store, &e->window, at, end));
        GS_TRY(visit(context, at.target, at.operand, &view));
    }
    return GS_OK;
}

gs_status gs_edge_scan(const gs_store *s, gs_direction d, uint64_t memory, const uint8_t *wanted, gs_edge_visit *visit,
                       void *context)
{
    gs_edge_scanner e;
    gs_status st = open_scanner(&e, s, d, memory);

    if (st == GS_OK)
        st = gs_edge_scanner_run(&e, wanted, visit, context);
    gs_window__close(&e.window);
    return st;
}

/* ---- copies -------------------------------------------------------------- */

/* A copy begins with a byte for each chunk, whether it has it. Its chunks stand behind them in file order, each at a
 * multiple of 4 bytes: starts, targets, indices. */

static uint64_t flag_bytes(const gs_chunk_table *t) { return gs_align_up((uint64_t)t->parts * t->parts, 4); }

static uint64_t copied_bytes(const gs_chunk_table *t, const gs_chunk *c)
{
    const uint64_t rows = (uint64_t)c->targets + c->edges;
    return c->edges == 0 ? 0 : gs_align_up(((uint64_t)c->targets + 1) * sizeof(uint32_t) + rows * gs_index_bytes(t), 4);
}

static void view_copied(gs_chunk_view *out, const gs_chunk_table *t, const gs_chunk *c, uint8_t *bytes)
{
    uint8_t *const target = bytes + ((uint64_t)c->targets + 1) * sizeof(uint32_t);
    const uint32_t ix = gs_index_bytes(t);
    *out = (gs_chunk_view){.index_bytes = ix, .targets = c->targets, .edges = c->edges, .largest = c->largest,
                           .start = (const uint32_t *)(const void *)bytes, .target = target,
                           .index = target + (uint64_t)c->targets * ix};
}

typedef struct copying {
    const gs_chunk_table *table;
    gs_direction direction;
    uint8_t *at;
    gs_edge_visit *visit;
    void *context;
} copying;

static gs_status copy_chunk(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    copying *const x = context;
    const gs_chunk *const c = gs_chunk_at(x->table, x->direction, target, operand);
    gs_chunk_view to;

    view_copied(&to, x->table, c, x->at);
    memcpy((void *)(uintptr_t)to.start, v->start, ((uint64_t)v->targets + 1) * sizeof(*v->start));
    memcpy((void *)(uintptr_t)to.target, v->target, (uint64_t)v->targets * v->index_bytes);
    memcpy((void *)(uintptr_t)to.index, v->index, v->edges * v->index_bytes);
    x->at += copied_bytes(x->table, c);
    return x->visit(x->context, target, operand, v);
}

static gs_status visit_copied(const gs_chunk_table *t, gs_direction d, const uint8_t *wanted, uint8_t *bytes,
                              gs_edge_visit *visit, void *context)
{
    const uint8_t *const has = bytes;
    const gs_chunk *const c = t->chunk[d];

    bytes += flag_bytes(t);
    for (uint64_t k = 0; k < (uint64_t)t->parts * t->parts; k++) {
        gs_chunk_view view;
        if (!has[k])
            continue;
        view_copied(&view, t, c + k, bytes);
        bytes += copied_bytes(t, c + k);
        if (wanted == NULL || wanted[k])
            GS_TRY(visit(context, (uint32_t)(k / t->parts), (uint32_t)(k % t->parts), &view));
    }
    return GS_OK;
}

/* Is the chunk one that a scan looks at? */
static bool is_wanted(const gs_chunk *c, const uint8_t *wanted, uint64_t k)
{
    return c[k].edges > 0 && (wanted == NULL || wanted[k]);
}

static bool has_all(const gs_edge_copy *copy, const gs_chunk_table *t, gs_direction d, const uint8_t *wanted)
{
    bool all = copy->bytes != NULL;
    for (uint64_t k = 0; k < (uint64_t)t->parts * t->parts && all; k++)
        all = copy->bytes[k] || !is_wanted(t->chunk[d], wanted, k);
    return all;
}

/* An empty one of the wanted chunks, in place of what it has; as it was where it has no room for them. */
static bool begin_copy(gs_edge_copy *copy, const gs_chunk_table *t, gs_direction d, const uint8_t *wanted)
{
    const uint64_t chunks = (uint64_t)t->parts * t->parts;
    uint64_t bytes = flag_bytes(t);

    for (uint64_t k = 0; k < chunks; k++)
        bytes += is_wanted(t->chunk[d], wanted, k) ? copied_bytes(t, &t->chunk[d][k]) : 0;
    if (bytes > copy->most)
        return false;
    gs_free(copy->bytes);
    if ((copy->bytes = gs_malloc(bytes)) == NULL)
        return false;
    for (uint64_t k = 0; k < chunks; k++)
        copy->bytes[k] = is_wanted(t->chunk[d], wanted, k);
    return true;
}

gs_status gs_edge_scan_copied(const gs_store *s, gs_direction d, uint64_t memory, const uint8_t *wanted,
                              gs_edge_copy *copy, gs_edge_visit *visit, void *context)
{
    const gs_chunk_table *const t = gs_store_chunks(s);
    copying x = {.table = t, .direction = t->shared ? GS_BY_DEST : d, .visit = visit, .context = context};

    if (copy != NULL && has_all(copy, t, x.direction, wanted))
        return visit_copied(t, x.direction, wanted, copy->bytes, visit, context);
    if (copy == NULL || !begin_copy(copy, t, x.direction, wanted))
        return gs_edge_scan(s, d, memory, wanted, visit, context);
    x.at = copy->bytes + flag_bytes(t);
    const gs_status st = gs_edge_scan(s, d, memory, wanted, copy_chunk, &x);
    if (st != GS_OK) {
        gs_free(copy->bytes);
        copy->bytes = NULL;
    }
    return st;
}

typedef struct needs {
    gs_granules g;
    uint32_t parts, shift;
    uint64_t *bits;
} needs;

static gs_status mark_operands(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    const needs *n = context;
    uint64_t *const bits = n->bits + ((uint64_t)target * n->parts + operand) * n->g.words;

    for (uint64_t k = 0; k < v->edges; k++) {
        const uint32_t g = gs_index_at(v->index, v->index_bytes, k) >> n->shift;
        bits[g / 64] |= 1ull << (g % 64);
    }
    return GS_OK;
}

gs_status gs_edge_needs(const gs_store *s, gs_direction d, uint64_t memory, const uint8_t *wanted, gs_edge_copy *copy,
                        gs_granules g, uint64_t *bits)
{
    needs n = {.g = g, .parts = gs_store_chunks(s)->parts, .bits = bits, .shift = (uint32_t)__builtin_ctz(g.rows)};
    return gs_edge_scan_copied(s, d, memory, wanted, copy, mark_operands, &n);
}

/* ---- chunks without some edges ----------------------------------------- */

/* One pass over a chunk's edges to count what stays, one to copy it. */

static const uint64_t *bits_of(const gs_edge_filter *f, const uint64_t *set, uint32_t interval)
{
    return set == NULL ? NULL : set + (uint64_t)interval * f->granules.words;
}

static inline bool stays(const uint64_t *bits, uint32_t row, uint32_t shift)
{
    const uint32_t g = row >> shift;
    return bits == NULL || (bits[g / 64] >> (g % 64) & 1) != 0;
}

/* Counts the rows seen, marks their granules, and forgets them. */
static uint32_t take_seen(const gs_edge_filter *f, uint64_t *need, gs_granules coarse)
{
    uint32_t rows = 0;
    for (uint64_t w = 0; w < f->seen_words; w++) {
        rows += (uint32_t)__builtin_popcountll(f->seen[w]);
        for (uint64_t left = need == NULL ? 0 : f->seen[w]; left != 0; left &= left - 1) {
            const uint64_t g = (w * 64 + (uint64_t)__builtin_ctzll(left)) / coarse.rows;
            need[g / 64] |= 1ull << (g % 64);
        }
        f->seen[w] = 0;
    }
    return rows;
}

void gs_edge_filter_count(const gs_edge_filter *f, uint32_t target, uint32_t operand, const gs_chunk_view *v,
                          gs_chunk *out, uint64_t *need, gs_granules coarse)
{
    const uint64_t *const targets = bits_of(f, f->targets, target), *const operands = bits_of(f, f->operands, operand);
    const uint32_t shift = (uint32_t)__builtin_ctz(f->granules.rows);
    uint64_t edges = 0;

    out->targets = out->operands = out->largest = 0;
    for (uint32_t t = 0; t < v->targets; t++) {
        const uint64_t before = edges;
        if (!stays(targets, gs_index_at(v->target, v->index_bytes, t), shift))
            continue;
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++) {
            const uint32_t row = gs_index_at(v->index, v->index_bytes, k);
            if (!stays(operands, row, shift))
                continue;
            edges++;
            f->seen[row / 64] |= 1ull << (row % 64);
        }
        out->targets += edges > before;
        out->largest = GS_MAX(out->largest, edges - before);
    }
    out->edges = edges;
    out->operands = take_seen(f, need, coarse);
}

/* Row r of target t becomes entry `n` of the smaller chunk's index. */
static void copy_edge(gs_chunk_view *out, uint64_t n, const gs_chunk_view *v, uint64_t k)
{
    gs_index_put(out->index, v->index_bytes, n, gs_index_at(v->index, v->index_bytes, k));
    if (v->type != NULL)
        gs_type_put(out->type, v->type_bytes, n, gs_type_at(v->type, v->type_bytes, k));
    if (v->weight != NULL)
        ((float *)(uintptr_t)out->weight)[n] = v->weight[k];
    if (v->feature != NULL)
        memcpy((char *)(uintptr_t)out->feature + n * v->feature_bytes,
               (const char *)v->feature + k * v->feature_bytes, v->feature_bytes);
}

static void list_operands(const gs_edge_filter *f, gs_chunk_view *out)
{
    uint32_t n = 0;
    for (uint64_t w = 0; w < f->seen_words; w++) {
        for (uint64_t left = f->seen[w]; left != 0; left &= left - 1)
            gs_index_put(out->operand, out->index_bytes, n++, (uint32_t)(w * 64 + (uint64_t)__builtin_ctzll(left)));
        f->seen[w] = 0;
    }
}

void gs_edge_filter_fill(const gs_edge_filter *f, uint32_t target, uint32_t operand, const gs_chunk_view *v,
                         gs_chunk_view *out)
{
    const uint64_t *const targets = bits_of(f, f->targets, target), *const operands = bits_of(f, f->operands, operand);
    const uint32_t shift = (uint32_t)__builtin_ctz(f->granules.rows);
    uint32_t *const start = (uint32_t *)(uintptr_t)out->start;
    uint64_t edges = 0;
    uint32_t n = 0;

    for (uint32_t t = 0; t < v->targets; t++) {
        const uint32_t row = gs_index_at(v->target, v->index_bytes, t);
        const uint64_t before = edges;
        if (!stays(targets, row, shift))
            continue;
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++) {
            const uint32_t at = gs_index_at(v->index, v->index_bytes, k);
            if (!stays(operands, at, shift))
                continue;
            copy_edge(out, edges++, v, k);
            f->seen[at / 64] |= 1ull << (at % 64);
        }
        if (edges == before)
            continue;
        gs_index_put(out->target, v->index_bytes, n, row);
        start[n++] = (uint32_t)before;
    }
    start[n] = (uint32_t)edges;
    list_operands(f, out);
}
