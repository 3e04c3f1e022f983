/* chunk_view.c - lays out a chunk's sections and checks them before use.
 *
 * The bytes may come from a damaged or hostile file: counts are compared with
 * what the (checked) chunk table says before any offset is computed from them,
 * so every section is known to lie inside the bytes before it is read. */
#include "store/chunk_view.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "store/store_internal.h"

/* ---- views ------------------------------------------------------------- */

#define SECTION_ALIGN 16u

/* The 32 bytes that a chunk starts with. */
typedef struct chunk_header {
    char magic[4];
    uint32_t index_bytes, targets, operands;
    uint64_t edges;
    uint32_t type_bytes;
    uint32_t weights_features; /* 1 with weights, + 2 * bytes of an edge's features */
} chunk_header;
_Static_assert(sizeof(chunk_header) == GS_CHUNK_HEADER_BYTES, "the header is written as it stands in memory");

/* Byte offsets of the sections; `end` is after the last, before the padding. */
typedef struct chunk_sections {
    uint64_t target, start, index, operand, type, weight, feature, end;
} chunk_sections;

static gs_edge_data data_of(const chunk_header *h)
{
    return (gs_edge_data){h->type_bytes, (h->weights_features & 1) != 0, h->weights_features / 2};
}

/* `starts` are u32, so a chunk has at most 2^32 - 1 edges; that also keeps
 * every sum below far from 2^64. False above that. */
static bool sections_of(chunk_sections *s, uint64_t edges, uint32_t targets, uint32_t operands,
                        uint32_t index_bytes, gs_edge_data data)
{
    if (edges > UINT32_MAX)
        return false;
    s->target = GS_CHUNK_HEADER_BYTES;
    s->start = gs_align_up(s->target + (uint64_t)targets * index_bytes, SECTION_ALIGN);
    s->index = gs_align_up(s->start + ((uint64_t)targets + 1) * sizeof(uint32_t), SECTION_ALIGN);
    s->operand = gs_align_up(s->index + edges * index_bytes, SECTION_ALIGN);
    s->type = gs_align_up(s->operand + (uint64_t)operands * index_bytes, SECTION_ALIGN);
    s->weight = gs_align_up(s->type + edges * data.type_bytes, SECTION_ALIGN);
    s->end = s->weight + (data.weights ? edges * sizeof(float) : 0);
    s->feature = data.feature_bytes > 0 ? gs_align_up(s->end, SECTION_ALIGN) : s->end;
    s->end = s->feature + edges * data.feature_bytes;
    return true;
}

uint64_t gs_chunk_bytes(uint64_t edges, uint32_t targets, uint32_t operands, uint32_t index_bytes,
                        gs_edge_data data)
{
    chunk_sections s;
    if (edges == 0)
        return 0;
    if (!sections_of(&s, edges, targets, operands, index_bytes, data))
        return UINT64_MAX;
    return gs_align_up(s.end, GS_BLOCK_BYTES);
}

static void view_fill(gs_chunk_view *v, const void *bytes, const chunk_header *h, const chunk_sections *s)
{
    const unsigned char *p = bytes;
    const gs_edge_data data = data_of(h);
    *v = (gs_chunk_view){
        .index_bytes = h->index_bytes,
        .targets = h->targets,
        .operands = h->operands,
        .edges = h->edges,
        .target = p + s->target,
        .start = (const void *)(p + s->start),
        .index = p + s->index,
        .operand = p + s->operand,
        .type = data.type_bytes ? p + s->type : NULL,
        .type_bytes = data.type_bytes,
        .weight = data.weights ? (const void *)(p + s->weight) : NULL,
        .feature = data.feature_bytes ? p + s->feature : NULL,
        .feature_bytes = data.feature_bytes,
    };
}

static uint32_t weights_features(gs_edge_data data) { return data.weights + 2 * data.feature_bytes; }

void gs_chunk_layout(gs_chunk_view *out, void *bytes, const gs_chunk_expect *counts, gs_edge_data data)
{
    const chunk_header h = {
        .magic = {'G', 'S', 'C', 'H'},
        .index_bytes = counts->index_bytes,
        .targets = counts->targets,
        .operands = counts->operands,
        .edges = counts->edges,
        .type_bytes = data.type_bytes,
        .weights_features = weights_features(data),
    };
    chunk_sections s;
    assert(((uintptr_t)bytes & (SECTION_ALIGN - 1)) == 0 && counts->edges > 0 && counts->edges <= UINT32_MAX);
    if (!sections_of(&s, h.edges, h.targets, h.operands, h.index_bytes, data))
        return; /* the caller's bug, asserted above */
    memcpy(bytes, &h, sizeof(h));
    view_fill(out, bytes, &h, &s);
}

void gs_chunk_view_place(gs_chunk_view *out, const void *bytes, const gs_chunk_expect *expect, gs_edge_data data)
{
    const chunk_header h = {.index_bytes = expect->index_bytes, .targets = expect->targets,
                            .operands = expect->operands, .edges = expect->edges, .type_bytes = data.type_bytes,
                            .weights_features = weights_features(data)};
    chunk_sections s;
    if (!sections_of(&s, h.edges, h.targets, h.operands, h.index_bytes, data))
        return;
    view_fill(out, bytes, &h, &s);
    out->largest = expect->largest;
}

static gs_status header_check(const chunk_header *h, const gs_chunk_expect *expect)
{
    if (memcmp(h->magic, GS_CHUNK_MAGIC, sizeof(h->magic)) != 0)
        return gs_fail(GS_EFORMAT, "does not start with \"" GS_CHUNK_MAGIC "\"");
    if ((h->index_bytes != 2 && h->index_bytes != 4) || h->index_bytes != expect->index_bytes)
        return gs_fail(GS_EFORMAT, "indices of %u bytes instead of %u", h->index_bytes, expect->index_bytes);
    if (h->edges != expect->edges || h->targets != expect->targets || h->operands != expect->operands)
        return gs_fail(GS_EFORMAT, "its header counts %lu edges, %u targets, %u operands, the chunk table %lu, %u, %u",
                       h->edges, h->targets, h->operands, expect->edges, expect->targets, expect->operands);
    if (h->edges == 0 || h->targets == 0 || h->targets > h->edges || h->targets > expect->target_rows ||
        h->operands == 0 || h->operands > h->edges || h->operands > expect->operand_rows)
        return gs_fail(GS_EFORMAT, "%lu edges cannot have %u targets of %u rows and %u operands of %u rows", h->edges,
                       h->targets, expect->target_rows, h->operands, expect->operand_rows);
    if (h->type_bytes > 2 || h->weights_features / 2 > GS_MAX_EDGE_FEATURE_BYTES)
        return gs_fail(GS_EFORMAT, "edge types of %u bytes, features of %u", h->type_bytes, h->weights_features / 2);
    return GS_OK;
}

/* 0 = start[0] < start[1] < ... < start[targets] = edges, and how many edges the target with the most has. */
static gs_status starts_check(gs_chunk_view *v, uint64_t said)
{
    uint32_t bad = v->start[0] != 0, largest = 0;
    for (uint32_t t = 0; t < v->targets; t++) {
        bad |= v->start[t + 1] <= v->start[t];
        largest = GS_MAX(largest, v->start[t + 1] - v->start[t]);
    }
    if (bad || v->start[v->targets] != v->edges)
        return gs_fail(GS_EFORMAT, "its starts do not ascend from 0 to %lu", v->edges);
    if (said != 0 && said != largest)
        return gs_fail(GS_EFORMAT, "its largest target has %u edges, the chunk table says %lu", largest, said);
    v->largest = largest;
    return GS_OK;
}

/* Rows strictly ascending and below `limit`. With `width` a constant the loop
 * becomes a vector loop. */
static inline __attribute__((always_inline)) gs_status
rows_check(const void *rows, uint32_t count, uint32_t limit, uint32_t width, const char *what)
{
    uint32_t bad = 0;
    for (uint32_t k = 1; k < count; k++)
        bad |= gs_index_at(rows, width, k) <= gs_index_at(rows, width, k - 1);
    if (bad)
        return gs_fail(GS_EFORMAT, "its list of %s is not ascending", what);
    if (gs_index_at(rows, width, count - 1) >= limit)
        return gs_fail(GS_EFORMAT, "its list of %s has row %u of an interval of %u rows", what,
                       gs_index_at(rows, width, count - 1), limit);
    return GS_OK;
}

/* Every index below `limit`. */
static inline __attribute__((always_inline)) gs_status index_range_check(const gs_chunk_view *v,
                                                                         uint32_t limit, uint32_t width)
{
    uint32_t most = 0;
    for (uint64_t k = 0; k < v->edges; k++) {
        const uint32_t row = gs_index_at(v->index, width, k);
        most = most > row ? most : row;
    }
    if (most >= limit)
        return gs_fail(GS_EFORMAT, "an edge names operand row %u of an interval of %u rows", most, limit);
    return GS_OK;
}

/* Does edge k come before edge k - 1 in the order (type, operand)? */
static inline __attribute__((always_inline)) uint32_t descends(const gs_chunk_view *v, uint32_t width,
                                                               uint64_t k)
{
    const uint32_t row = gs_index_at(v->index, width, k),
                   before = gs_index_at(v->index, width, k - 1);
    if (v->type == NULL)
        return row < before;
    const uint32_t type = gs_chunk__type(v, k), type_before = gs_chunk__type(v, k - 1);
    return type < type_before || (type == type_before && row < before);
}

/* Order may only break where a target's edges begin: so the number of breaks
 * at such places must be the number of breaks altogether. Both counts are
 * plain loops without a branch per edge. */
static inline __attribute__((always_inline)) gs_status order_check(const gs_chunk_view *v, uint32_t width)
{
    uint64_t breaks = 0, allowed = 0;
    for (uint64_t k = 1; k < v->edges; k++)
        breaks += descends(v, width, k);
    for (uint32_t t = 1; t < v->targets; t++)
        allowed += descends(v, width, v->start[t]);
    if (breaks != allowed)
        return gs_fail(GS_EFORMAT, "edges of a target row are not in ascending order");
    return GS_OK;
}

static inline __attribute__((always_inline)) gs_status
deep_check(const gs_chunk_view *v, const gs_chunk_expect *expect, uint32_t width)
{
    gs_status st;
    if ((st = rows_check(v->target, v->targets, expect->target_rows, width, "targets")) != GS_OK ||
        (st = rows_check(v->operand, v->operands, expect->operand_rows, width, "operands")) != GS_OK ||
        (st = index_range_check(v, expect->operand_rows, width)) != GS_OK)
        return st;
    return order_check(v, width);
}

gs_status gs_chunk_view_make(gs_chunk_view *out, const void *data, uint64_t length,
                             const gs_chunk_expect *expect, bool deep)
{
    chunk_header h;
    chunk_sections s;
    gs_chunk_view v;

    assert(((uintptr_t)data & (SECTION_ALIGN - 1)) == 0);
    if (length < sizeof(h))
        return gs_fail(GS_EFORMAT, "%lu bytes are too short for a chunk", length);
    memcpy(&h, data, sizeof(h));
    GS_TRY(header_check(&h, expect));
    if (!sections_of(&s, h.edges, h.targets, h.operands, h.index_bytes, data_of(&h)) ||
        s.end > length)
        return gs_fail(GS_EFORMAT, "%lu bytes are too short for %lu edges", length, h.edges);
    view_fill(&v, data, &h, &s);
    GS_TRY(starts_check(&v, expect->largest));
    if (deep)
        GS_TRY(v.index_bytes == 2 ? deep_check(&v, expect, 2) : deep_check(&v, expect, 4));
    *out = v;
    return GS_OK;
}

static bool zero_between(const unsigned char *p, uint64_t from, uint64_t to)
{
    unsigned char any = 0;
    for (uint64_t k = from; k < to; k++)
        any |= p[k];
    return any == 0;
}

bool gs_chunk__padding_is_zero(const gs_chunk_view *v, const void *data, uint64_t length)
{
    const uint64_t ix = v->index_bytes;
    chunk_sections s;
    if (!sections_of(&s, v->edges, v->targets, v->operands, v->index_bytes, gs_chunk_view_data(v)))
        return false;
    const uint64_t weights_end = s.weight + (v->weight != NULL ? v->edges * sizeof(float) : 0);
    return zero_between(data, s.target + v->targets * ix, s.start) &&
           zero_between(data, s.start + ((uint64_t)v->targets + 1) * sizeof(uint32_t), s.index) &&
           zero_between(data, s.index + v->edges * ix, s.operand) &&
           zero_between(data, s.operand + v->operands * ix, s.type) &&
           zero_between(data, s.type + v->edges * v->type_bytes, s.weight) &&
           zero_between(data, weights_end, s.feature) && zero_between(data, s.end, length);
}

/* ---- several chunks as one --------------------------------------------- */

/* Doubled edges of a chunk that stays in memory become one.
 *
 * Edges of a target are sorted by operand row, so equal ones stand together. R-MAT graphs have half of
 * theirs twice or more; a sum reads the row of such an edge once and adds it with a factor.
 */

#define COUNT_MOST 255u /* a byte; more of the same edge go on as another one */

/* Do edges k - 1 and k of a target merge, when k - 1 is `count` edges already? */
static bool merges(const gs_chunk_view *v, uint64_t k, uint32_t count)
{
    return count < COUNT_MOST &&
           gs_index_at(v->index, v->index_bytes, k) == gs_index_at(v->index, v->index_bytes, k - 1);
}

static uint64_t merged_edges(const gs_chunk_view *v)
{
    uint64_t edges = 0;
    for (uint32_t t = 0; t < v->targets; t++) {
        uint32_t count = 0;
        for (uint64_t k = v->start[t]; k < v->start[t + 1]; k++) {
            count = count > 0 && merges(v, k, count) ? count + 1 : 1;
            edges += count == 1;
        }
    }
    return edges;
}

/* Moves the first edge of each run of equal ones to the front; what is read lies never before what is written. */
static void compact(const gs_chunk_view *v, uint8_t *index, uint32_t *start, uint8_t *counts)
{
    uint64_t to = 0, k = 0;
    for (uint32_t t = 0; t < v->targets; t++) {
        const uint64_t end = v->start[t + 1];
        start[t] = (uint32_t)to;
        while (k < end) {
            const uint32_t row = gs_index_at(v->index, v->index_bytes, k);
            uint32_t count = 1;
            for (k++; k < end && count < COUNT_MOST && gs_index_at(v->index, v->index_bytes, k) == row; k++)
                count++;
            if (v->index_bytes == 2)
                memcpy(index + to * 2, &(uint16_t){(uint16_t)row}, 2);
            else
                memcpy(index + to * 4, &row, 4);
            counts[to++] = (uint8_t)count;
        }
    }
    start[v->targets] = (uint32_t)to;
}

bool gs_chunk_merge(const gs_chunk_view *v, void *data, uint8_t *scratch)
{
    const uint64_t edges = merged_edges(v);
    uint8_t *const index = (uint8_t *)data + ((const uint8_t *)v->index - (const uint8_t *)data);
    uint32_t *const start = (void *)((uint8_t *)data + ((const uint8_t *)v->start - (const uint8_t *)data));

    if (edges > v->edges / 4 * 3 || edges * (v->index_bytes + 1) > v->edges * v->index_bytes)
        return false;
    compact(v, index, start, scratch);
    memcpy(index + edges * v->index_bytes, scratch, edges);
    return true;
}

void gs_chunk_merged_view(gs_chunk_view *out, const void *data, const gs_chunk_expect *expect)
{
    gs_chunk_view_place(out, data, expect, (gs_edge_data){0});
    out->edges = out->start[out->targets];
    out->count = (const uint8_t *)out->index + out->edges * out->index_bytes;
}

/* ---- the chunks of a block --------------------------------------------- */

/* Chunks of one target interval that stay in memory become one.
 *
 * A fine grid gives a target a few edges in each of many chunks, and a launch a chunk goes to the target's sum each
 * time. What a launch of all of them needs takes less memory than they do where targets have few edges a chunk: lists
 * of targets, starts and operands are there once, while indices grow to name rows of all operand intervals. Edges of
 * a target stay in their order, that of operand rows.
 */

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
