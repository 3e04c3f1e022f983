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

#define SECTION_ALIGN 16u

/* The 32 bytes that a chunk starts with. */
typedef struct chunk_header {
    char magic[4];
    uint32_t index_bytes, targets, operands;
    uint64_t edges;
    uint32_t type_bytes, weights;
} chunk_header;
_Static_assert(sizeof(chunk_header) == GS_CHUNK_HEADER_BYTES, "the header is written as it stands in memory");

/* Byte offsets of the sections; `end` is after the last, before the padding. */
typedef struct chunk_sections {
    uint64_t target, start, index, operand, type, weight, end;
} chunk_sections;

/* `starts` are u32, so a chunk has at most 2^32 - 1 edges; that also keeps
 * every sum below far from 2^64. False above that. */
static bool sections_of(chunk_sections *s, uint64_t edges, uint32_t targets, uint32_t operands,
                        uint32_t index_bytes, uint32_t type_bytes, bool weights)
{
    if (edges > UINT32_MAX)
        return false;
    s->target = GS_CHUNK_HEADER_BYTES;
    s->start = gs_align_up(s->target + (uint64_t)targets * index_bytes, SECTION_ALIGN);
    s->index = gs_align_up(s->start + ((uint64_t)targets + 1) * sizeof(uint32_t), SECTION_ALIGN);
    s->operand = gs_align_up(s->index + edges * index_bytes, SECTION_ALIGN);
    s->type = gs_align_up(s->operand + (uint64_t)operands * index_bytes, SECTION_ALIGN);
    s->weight = gs_align_up(s->type + edges * type_bytes, SECTION_ALIGN);
    s->end = s->weight + (weights ? edges * sizeof(float) : 0);
    return true;
}

uint64_t gs_chunk_bytes(uint64_t edges, uint32_t targets, uint32_t operands, uint32_t index_bytes,
                        uint32_t type_bytes, bool weights)
{
    chunk_sections s;
    if (edges == 0)
        return 0;
    if (!sections_of(&s, edges, targets, operands, index_bytes, type_bytes, weights))
        return UINT64_MAX;
    return gs_align_up(s.end, GS_BLOCK_BYTES);
}

static void view_fill(gs_chunk_view *v, const void *data, const chunk_header *h, const chunk_sections *s)
{
    const unsigned char *p = data;
    *v = (gs_chunk_view){
        .index_bytes = h->index_bytes,
        .targets = h->targets,
        .operands = h->operands,
        .edges = h->edges,
        .target = p + s->target,
        .start = (const void *)(p + s->start),
        .index = p + s->index,
        .operand = p + s->operand,
        .type = h->type_bytes ? p + s->type : NULL,
        .type_bytes = h->type_bytes,
        .weight = h->weights ? (const void *)(p + s->weight) : NULL,
    };
}

void gs_chunk_layout(gs_chunk_view *out, void *data, const gs_chunk_expect *counts, uint32_t type_bytes,
                     bool weights)
{
    const chunk_header h = {
        .magic = {'G', 'S', 'C', 'H'},
        .index_bytes = counts->index_bytes,
        .targets = counts->targets,
        .operands = counts->operands,
        .edges = counts->edges,
        .type_bytes = type_bytes,
        .weights = weights,
    };
    chunk_sections s;
    assert(((uintptr_t)data & (SECTION_ALIGN - 1)) == 0 && counts->edges > 0 && counts->edges <= UINT32_MAX);
    if (!sections_of(&s, h.edges, h.targets, h.operands, h.index_bytes, type_bytes, weights))
        return; /* the caller's bug, asserted above */
    memcpy(data, &h, sizeof(h));
    view_fill(out, data, &h, &s);
}

void gs_chunk_view_place(gs_chunk_view *out, const void *data, const gs_chunk_expect *expect, uint32_t type_bytes,
                         bool weights)
{
    const chunk_header h = {.index_bytes = expect->index_bytes, .targets = expect->targets,
                            .operands = expect->operands, .edges = expect->edges, .type_bytes = type_bytes,
                            .weights = weights};
    chunk_sections s;
    if (!sections_of(&s, h.edges, h.targets, h.operands, h.index_bytes, type_bytes, weights))
        return;
    view_fill(out, data, &h, &s);
    out->largest = expect->largest;
}

static gs_status header_check(const chunk_header *h, const gs_chunk_expect *expect)
{
    if (memcmp(h->magic, GS_CHUNK_MAGIC, sizeof(h->magic)) != 0)
        return gs_fail(GS_EFORMAT, "does not start with \"" GS_CHUNK_MAGIC "\"");
    if ((h->index_bytes != 2 && h->index_bytes != 4) || h->index_bytes != expect->index_bytes)
        return gs_fail(GS_EFORMAT, "indices of %u bytes instead of %u", h->index_bytes, expect->index_bytes);
    if (h->edges != expect->edges || h->targets != expect->targets || h->operands != expect->operands)
        return gs_fail(GS_EFORMAT,
                       "its header counts %llu edges, %u targets, %u operands, the chunk table %llu, %u, %u",
                       (unsigned long long)h->edges, h->targets, h->operands,
                       (unsigned long long)expect->edges, expect->targets, expect->operands);
    if (h->edges == 0 || h->targets == 0 || h->targets > h->edges || h->targets > expect->target_rows ||
        h->operands == 0 || h->operands > h->edges || h->operands > expect->operand_rows)
        return gs_fail(GS_EFORMAT, "%llu edges cannot have %u targets of %u rows and %u operands of %u rows",
                       (unsigned long long)h->edges, h->targets, expect->target_rows, h->operands,
                       expect->operand_rows);
    if (h->type_bytes > 2 || h->weights > 1)
        return gs_fail(GS_EFORMAT, "edge types of %u bytes, weights flag %u", h->type_bytes, h->weights);
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
        return gs_fail(GS_EFORMAT, "its starts do not ascend from 0 to %llu", (unsigned long long)v->edges);
    if (said != 0 && said != largest)
        return gs_fail(GS_EFORMAT, "its largest target has %u edges, the chunk table says %llu", largest,
                       (unsigned long long)said);
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
    gs_status st;

    assert(((uintptr_t)data & (SECTION_ALIGN - 1)) == 0);
    if (length < sizeof(h))
        return gs_fail(GS_EFORMAT, "%llu bytes are too short for a chunk", (unsigned long long)length);
    memcpy(&h, data, sizeof(h));
    if ((st = header_check(&h, expect)) != GS_OK)
        return st;
    if (!sections_of(&s, h.edges, h.targets, h.operands, h.index_bytes, h.type_bytes, h.weights) ||
        s.end > length)
        return gs_fail(GS_EFORMAT, "%llu bytes are too short for %llu edges", (unsigned long long)length,
                       (unsigned long long)h.edges);
    view_fill(&v, data, &h, &s);
    if ((st = starts_check(&v, expect->largest)) != GS_OK)
        return st;
    if (deep && (st = v.index_bytes == 2 ? deep_check(&v, expect, 2) : deep_check(&v, expect, 4)) != GS_OK)
        return st;
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
    if (!sections_of(&s, v->edges, v->targets, v->operands, v->index_bytes, v->type_bytes, v->weight != NULL))
        return false;
    return zero_between(data, s.target + v->targets * ix, s.start) &&
           zero_between(data, s.start + ((uint64_t)v->targets + 1) * sizeof(uint32_t), s.index) &&
           zero_between(data, s.index + v->edges * ix, s.operand) &&
           zero_between(data, s.operand + v->operands * ix, s.type) &&
           zero_between(data, s.type + v->edges * v->type_bytes, s.weight) &&
           zero_between(data, s.end, length);
}
