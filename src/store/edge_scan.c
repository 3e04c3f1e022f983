/* edge_scan.c - edge files front to back through one window, each chunk checked. */
#include "store/edge_scan.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "store/store_internal.h"

#define WINDOW_BYTES (8 * GS_MIB)
#define GAP_BYTES (64 * GS_KIB) /* read along between two chunks, rather than a request more */

uint64_t gs_edge_scan_least(const gs_store *s)
{
    const gs_chunk_table *t = gs_store_chunks(s);
    uint64_t most = GS_BLOCK_BYTES;
    for (int d = 0; d < (t->shared ? 1 : 2); d++)
        for (uint64_t k = 0; k < (uint64_t)t->parts * t->parts; k++)
            most = GS_MAX(most, t->chunk[d][k].length);
    return most;
}

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
    gs_status st = gs_window__get(w, &data, c->offset, c->length, end);

    if (st != GS_OK)
        return st;
    if (gs_hash64(data, c->length) != c->checksum)
        return gs_fail(GS_EFORMAT, "%s: chunk (%u, %u) does not match its checksum" GS_STORE_DAMAGED, w->path,
                       at.target, at.operand);
    st = gs_chunk_view_make(view, data, c->length, &expect, true);
    if (st == GS_OK && (view->type_bytes != t->type_bytes || (view->weight != NULL) != t->weights))
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
    return gs_window__open(&e->window, gs_store_edges_path(s, d),
                           gs_align_down(GS_MAX(least, GS_MIN(memory, WINDOW_BYTES)), GS_BLOCK_BYTES));
}

gs_status gs_edge_scanner_open(gs_edge_scanner **out, const gs_store *s, gs_direction d, uint64_t memory)
{
    gs_edge_scanner *e = gs_malloc(sizeof(*e));
    gs_status st;

    if (e == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read its edges", gs_store_dir(s));
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
    gs_status st = GS_OK;

    for (uint64_t k = 0; k < (uint64_t)t->parts * t->parts && st == GS_OK; k++) {
        const chunk_at at = {t->shared ? GS_BY_DEST : e->direction, (uint32_t)(k / t->parts), (uint32_t)(k % t->parts)};
        const gs_chunk *const chunk = &t->chunk[at.direction][k];
        uint64_t end = UINT64_MAX;
        gs_chunk_view view;
        if (chunk->edges == 0 || (wanted != NULL && !wanted[k]))
            continue;
        if (wanted != NULL && !gs_window__holds(&e->window, chunk->offset, chunk->length))
            end = end_of_run(e, at.direction, wanted, k);
        if ((st = view_checked(&view, e->store, &e->window, at, end)) == GS_OK)
            st = visit(context, at.target, at.operand, &view);
    }
    return st;
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

gs_status gs_edge_needs(const gs_store *s, gs_direction d, uint64_t memory, gs_granules g, uint64_t *bits)
{
    needs n = {.g = g, .parts = gs_store_chunks(s)->parts, .bits = bits, .shift = (uint32_t)__builtin_ctz(g.rows)};
    return gs_edge_scan(s, d, memory, NULL, mark_operands, &n);
}
