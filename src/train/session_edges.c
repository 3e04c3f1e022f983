/* session_edges.c - the edge sets of a run, and which rows their chunks need. */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "store/edge_scan.h"
#include "train/session.h"

/* Of what the budget leaves, for the bits: they live only while the plan is made. */
#define NEED_SHARE 16
#define NEED_MOST (64 * GS_MIB)

void gs_session_list_edges(gs_session *s)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);

    s->sets = 2;
    for (uint32_t d = 0; d < 2; d++)
        s->set[d] = (gs_edge_set){.chunk = t->chunk[d]};
}

/* The finest granules whose bits are within `most` bytes; none where there are none. */
static gs_granules choose_granules(const gs_chunk_table *t, uint64_t most)
{
    const uint64_t copies = t->shared ? 1 : 2, chunks = (uint64_t)t->parts * t->parts * copies;

    for (uint32_t rows = GS_GRANULE_ROWS; rows <= t->interval_rows / 2; rows *= 2) {
        const gs_granules g = gs_granules_of(t, rows);
        if (chunks * g.words * sizeof(uint64_t) <= most)
            return g;
    }
    return (gs_granules){0};
}

gs_status gs_session_read_needs(gs_session *s, gs_schedule_config *config)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    const uint64_t left = s->host_memory > s->host_fixed ? s->host_memory - s->host_fixed : 0;
    const gs_granules g = choose_granules(t, GS_MIN(left / NEED_SHARE, NEED_MOST));
    gs_status st = GS_OK;

    /* One interval needs all of itself, and a chunk that no buffer can hold is not looked into. */
    if (g.words == 0 || t->parts == 1 || gs_edge_scan_least(s->store) > left / 2)
        return GS_OK;
    for (int d = 0; d < (t->shared ? 1 : 2) && st == GS_OK; d++) {
        uint64_t *const bits = gs_calloc((uint64_t)t->parts * t->parts * g.words, sizeof(*bits));
        if (bits == NULL)
            return gs_fail(GS_ENOMEM, "no memory for the rows that chunks need");
        s->set[d].need = bits;
        st = gs_edge_needs(s->store, (gs_direction)d, left / 2, g, bits);
    }
    config->granules = g;
    return st;
}

void gs_session_drop_needs(gs_session *s)
{
    for (uint32_t k = 0; k < s->sets; k++) {
        gs_free((void *)(uintptr_t)s->set[k].need);
        s->set[k].need = NULL;
    }
}
