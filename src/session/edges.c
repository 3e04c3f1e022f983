/* edges.c - the edge sets of a run, and which rows their chunks need. */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "store/edge_scan.h"
#include "session/session.h"

/* Bits of rows, and answers of scans, get one part in so many of what the budget leaves. They live only while the plan
 * is made. */
#define NEED_SHARE 16
#define SCANS_SHARE 8
#define NEED_MOST (64 * GS_MIB)
#define SETS_EXPECTED 6 /* edge sets of a model of a few layers */

gs_status gs_session_list_edges(gs_session *s)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);

    if (s->edges.scans != NULL)
        s->edges.scans->most = GS_MAX(s->edges.scans->bytes, gs_session_left(&s->memory) / SCANS_SHARE);
    s->edges.sets = 2;
    for (uint32_t d = 0; d < 2; d++)
        s->edges.set[d] = (gs_edge_set){.chunk = t->chunk[d]};
    if (s->edges.stage_set == NULL)
        s->edges.stage_set = gs_calloc(s->program->stages + 1, sizeof(*s->edges.stage_set));
    if (s->edges.stage_set == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the plan");
    for (uint32_t k = 0; k < s->program->stages; k++)
        s->edges.stage_set[k] = t->shared ? GS_BY_DEST : s->program->stage[k].direction;
    return GS_OK;
}

bool gs_session_uses_set(const gs_session *s, uint32_t set)
{
    for (uint32_t k = 0; k < s->program->stages; k++)
        if (s->program->stage[k].sums > 0 && s->edges.stage_set[k] == set)
            return true;
    return false;
}

gs_granules gs_session_granules(const gs_session *s)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    const uint64_t chunks = (uint64_t)t->parts * t->parts * SETS_EXPECTED;
    const uint64_t most = GS_MIN(gs_session_left(&s->memory) / NEED_SHARE, NEED_MOST);

    /* One interval needs all of itself, and a chunk that no buffer can hold is not looked into. */
    if (t->parts == 1 || gs_edge_scan_least(s->store) > gs_session_left(&s->memory) / 2)
        return (gs_granules){0};
    for (uint32_t rows = GS_GRANULE_ROWS; rows <= t->interval_rows / 2; rows *= 2) {
        const gs_granules g = gs_granules_of(t, rows);
        if (chunks * g.words * sizeof(uint64_t) <= most)
            return g;
    }
    return (gs_granules){0};
}

gs_status gs_session_read_needs(gs_session *s, gs_granules g)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    gs_status st = GS_OK;

    for (uint32_t d = 0; d < 2 && st == GS_OK; d++) {
        if (!gs_session_uses_set(s, d))
            continue;
        uint64_t *const bits = gs_calloc((uint64_t)t->parts * t->parts * g.words, sizeof(*bits));
        if (bits == NULL)
            return gs_fail(GS_ENOMEM, "no memory for the rows that chunks need");
        s->edges.set[d].need = bits;
        const gs_scan_key key = {.kind = GS_SCAN_NEED, .direction = d, .coarse_rows = g.rows};
        const gs_scan_answer answer = {{bits}, {(uint64_t)t->parts * t->parts * g.words * sizeof(*bits)}};
        if (gs_scans_find(s->edges.scans, &key, &answer))
            continue;
        if ((st = gs_edge_needs(s->store, (gs_direction)d, gs_session_left(&s->memory) / 2, g, bits)) == GS_OK)
            gs_scans_keep(s->edges.scans, &key, &answer);
    }
    return st;
}

static void drop_needs(gs_session *s, uint32_t sets)
{
    for (uint32_t k = 0; k < sets; k++) {
        gs_free((void *)(uintptr_t)s->edges.set[k].need);
        s->edges.set[k].need = NULL;
    }
}

void gs_session_drop_needs(gs_session *s) { drop_needs(s, s->edges.sets); }
void gs_session_drop_read_needs(gs_session *s) { drop_needs(s, GS_MIN(s->edges.sets, 2u)); }
