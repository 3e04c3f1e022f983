/* in_edges.c - a store's edges for programs that keep a graph themselves: compressed sparse columns, by ids. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/size.h"
#include "gnnstream.h"
#include "session/store_rows.h"
#include "store/edge_scan.h"
#include "store/store.h"

#define SCAN_MEMORY (256 * GS_MIB)

/* Edges of one relation, or of all; ids count from the first vertex of their type. */
typedef struct columns {
    uint64_t interval_rows;
    uint32_t *id;            /* [vertices] in the input, of each row */
    uint32_t relation;
    uint64_t first_source, first, destinations;
    int64_t *start, *source; /* the caller's; source NULL: edges are counted */
} columns;

static gs_status read_ids(uint32_t *id, const gs_store *store)
{
    GS_ENDS(gs_block_reader_close) gs_block_reader r = {0};
    gs_status st = gs_block_reader_open(&r, store, GS_ARRAY_INPUT_ID);

    while (gs_block_reader_more(&r, &st))
        memcpy((char *)id + r.at, r.block, r.bytes);
    return st;
}

/* start[d + 1] counts edges of d; or start[d] is the place of the next one. */
static gs_status take_chunk(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    const columns *const c = context;
    const uint32_t *const to = c->id + target * c->interval_rows, *const from = c->id + operand * c->interval_rows;

    for (uint32_t t = 0; t < v->targets; t++)
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++) {
            if (c->relation != GS_ALL_RELATIONS && gs_type_at(v->type, v->type_bytes, k) != c->relation)
                continue;
            const uint64_t d = to[gs_index_at(v->target, v->index_bytes, t)] - c->first;
            if (d >= c->destinations)
                return gs_fail(GS_EFORMAT, "an edge of type %u ends at a vertex of another type", c->relation);
            if (c->source == NULL)
                c->start[d + 1]++;
            else
                c->source[c->start[d]++] = from[gs_index_at(v->index, v->index_bytes, k)] - (int64_t)c->first_source;
        }
    return GS_OK;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Places moved to the ends of their lists: back to the beginnings, and each list in order. */
static void finish_lists(const columns *c)
{
    memmove(c->start + 1, c->start, c->destinations * sizeof(*c->start));
    c->start[0] = 0;
#pragma omp parallel for schedule(dynamic, 4096)
    for (uint64_t d = 0; d < c->destinations; d++)
        qsort(c->source + c->start[d], (size_t)(c->start[d + 1] - c->start[d]), sizeof(*c->source), by_number);
}

static gs_status find_relation(columns *c, const gs_store *s)
{
    const gs_store_info *const info = gs_store_get_info(s);
    const gs_type_table *const t = info->types;

    c->destinations = info->vertices;
    if (c->relation == GS_ALL_RELATIONS)
        return GS_OK;
    if (c->relation >= info->edge_types)
        return gs_fail(GS_EINVAL, "relation %u: %s has %u types of edges, from 0", c->relation, gs_store_dir(s),
                       info->edge_types);
    if (t != NULL && t->types > 0) {
        c->first_source = t->type[t->relation[c->relation].source].first;
        c->first = t->type[t->relation[c->relation].destination].first;
        c->destinations = t->type[t->relation[c->relation].destination].vertices;
    }
    return GS_OK;
}

gs_status gs_read_in_edges(int64_t *start, int64_t *source, const char *store, uint32_t relation, uint64_t memory)
{
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;

    GS_TRY(gs_check_argument(start, "start"));
    GS_TRY(gs_check_argument(store, "store"));
    GS_TRY(gs_store_open(&s, store));
    const uint64_t vertices = gs_store_get_info(s)->vertices;
    columns c = {.relation = relation, .start = start, .source = source,
                 .interval_rows = gs_store_get_info(s)->interval_rows};
    GS_TRY(find_relation(&c, s));
    GS_FREED uint32_t *const id = gs_malloc_array(vertices, sizeof(*id));
    if ((c.id = id) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the ids of %lu vertices", vertices);
    if (source == NULL)
        memset(start, 0, (c.destinations + 1) * sizeof(*start));
    GS_TRY(read_ids(id, s));
    GS_TRY(gs_edge_scan(s, GS_BY_DEST, memory != 0 ? memory : SCAN_MEMORY, NULL, take_chunk, &c));
    if (source != NULL)
        finish_lists(&c);
    for (uint64_t d = 0; source == NULL && d < c.destinations; d++)
        start[d + 1] += start[d];
    return GS_OK;
}
