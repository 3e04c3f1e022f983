/* chunk_join.c - chunks of one target interval that stay in memory become one.
 *
 * A fine grid gives a target a few edges in each of many chunks, and a launch a chunk goes to the target's sum each
 * time. What a launch of all of them needs takes less memory than they do where targets have few edges a chunk: lists
 * of targets, starts and operands are there once, while indices grow to name rows of all operand intervals. Edges of
 * a target stay in their order, that of operand rows.
 */
#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "store/store_internal.h"

#define MAGIC "GSCJ"
#define WORDS_OF_TWO_BYTES 65536u

/* At the beginning of a join's bytes. */
typedef struct join_header {
    char magic[4];
    uint32_t index_bytes, targets, counts;
    uint64_t edges;
} join_header;

typedef struct places {
    uint64_t target, start, index, count, end; /* bytes from the beginning; 16-byte aligned but for `count` */
} places;

static places places_of(const join_header *h)
{
    places p = {.target = gs_align_up(sizeof(join_header), 16)};
    p.start = gs_align_up(p.target + (uint64_t)h->targets * h->index_bytes, 16);
    p.index = gs_align_up(p.start + (h->targets + 1ull) * sizeof(uint32_t), 16);
    p.count = p.index + h->edges * h->index_bytes;
    p.end = p.count + (h->counts ? h->edges : 0);
    return p;
}

static join_header header_of(const gs_chunk_join *j)
{
    join_header h = {.index_bytes = j->index_bytes, .targets = j->targets, .counts = j->counts, .edges = j->edges};
    memcpy(h.magic, MAGIC, sizeof(h.magic));
    return h;
}

static uint64_t scratch_index(const gs_chunk_join *j) { return gs_align_up(j->target_rows * sizeof(uint32_t), 16); }
static uint64_t scratch_count(const gs_chunk_join *j) { return scratch_index(j) + j->edges * j->index_bytes; }

bool gs_chunk_join_begin(gs_chunk_join *j, uint32_t target_rows, uint64_t operand_rows, uint8_t *scratch,
                         uint64_t room)
{
    *j = (gs_chunk_join){.target_rows = target_rows, .scratch = scratch, .room = room,
                         .index_bytes = GS_MAX(operand_rows, target_rows) <= WORDS_OF_TWO_BYTES ? 2 : 4};
    j->used = target_rows * sizeof(uint32_t);
    if (j->used > room || operand_rows > UINT32_MAX)
        return false;
    memset(scratch, 0, j->used);
    return true;
}

void gs_chunk_join_count(gs_chunk_join *j, const gs_chunk_view *v)
{
    uint32_t *const end = (uint32_t *)(void *)j->scratch;

    for (uint32_t t = 0; t < v->targets; t++) {
        uint32_t *const edges = &end[gs_index_at(v->target, v->index_bytes, t)];
        j->targets += *edges == 0;
        *edges += v->start[t + 1] - v->start[t];
    }
    j->edges += v->edges;
    j->counts = j->counts || v->count != NULL;
}

bool gs_chunk_join_fits(gs_chunk_join *j, uint64_t bytes)
{
    uint32_t *const at = (uint32_t *)(void *)j->scratch;
    const join_header h = header_of(j);
    const uint64_t need = scratch_count(j) + (j->counts ? j->edges : 0);
    uint32_t sum = 0;

    if (j->edges > UINT32_MAX || need > j->room || places_of(&h).end > bytes)
        return false;
    for (uint32_t r = 0; r < j->target_rows; r++) { /* from how many to where the first one goes */
        const uint32_t edges = at[r];
        at[r] = sum;
        sum += edges;
    }
    j->used = need;
    return true;
}

/* Edges [k, end) of a view, to `to` on. */
static void put_edges(const gs_chunk_join *j, const gs_chunk_view *v, uint64_t k, uint64_t end, uint32_t first_row,
                      uint64_t to)
{
    uint8_t *const index = j->scratch + scratch_index(j), *const count = j->scratch + scratch_count(j);

    if (j->counts && v->count != NULL)
        memcpy(count + to, v->count + k, end - k);
    else if (j->counts)
        memset(count + to, 1, end - k);
    for (; k < end; k++, to++) {
        const uint32_t row = first_row + gs_index_at(v->index, v->index_bytes, k);
        if (j->index_bytes == 2)
            memcpy(index + to * 2, &(uint16_t){(uint16_t)row}, 2);
        else
            memcpy(index + to * 4, &row, 4);
    }
}

void gs_chunk_join_add(gs_chunk_join *j, const gs_chunk_view *v, uint32_t first_row)
{
    uint32_t *const at = (uint32_t *)(void *)j->scratch;

    for (uint32_t t = 0; t < v->targets; t++) {
        uint32_t *const to = &at[gs_index_at(v->target, v->index_bytes, t)];
        put_edges(j, v, v->start[t], v->start[t + 1], first_row, *to);
        *to += v->start[t + 1] - v->start[t];
    }
}

void gs_chunk_join_write(const gs_chunk_join *j, void *data)
{
    const uint32_t *const end = (const uint32_t *)(const void *)j->scratch;
    const join_header h = header_of(j);
    const places p = places_of(&h);
    uint8_t *const to = data;
    uint32_t *const start = (uint32_t *)(void *)(to + p.start);
    uint32_t targets = 0;

    memcpy(data, &h, sizeof(h));
    for (uint32_t r = 0; r < j->target_rows; r++) {
        const uint32_t first = r > 0 ? end[r - 1] : 0;
        if (end[r] == first)
            continue;
        if (j->index_bytes == 2)
            memcpy(to + p.target + targets * 2ull, &(uint16_t){(uint16_t)r}, 2);
        else
            memcpy(to + p.target + targets * 4ull, &r, 4);
        start[targets++] = first;
    }
    assert(targets == j->targets);
    start[targets] = (uint32_t)j->edges;
    memcpy(to + p.index, j->scratch + scratch_index(j), j->edges * j->index_bytes + (j->counts ? j->edges : 0));
}

void gs_chunk_joined_view(gs_chunk_view *out, const void *data)
{
    const uint8_t *const from = data;
    join_header h;

    memcpy(&h, data, sizeof(h));
    assert(memcmp(h.magic, MAGIC, sizeof(h.magic)) == 0);
    const places p = places_of(&h);
    *out = (gs_chunk_view){
        .index_bytes = h.index_bytes,
        .targets = h.targets,
        .edges = h.edges,
        .target = from + p.target,
        .start = (const uint32_t *)(const void *)(from + p.start),
        .index = from + p.index,
        .count = h.counts ? from + p.count : NULL,
    };
}
