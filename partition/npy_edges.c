/* npy_edges.c - a piece of the edges out of arrays of any integer type, pairs or two rows; their types and weights. */
#include "partition/npy_edges.h"

#include <fcntl.h>
#include <math.h>

#include "base/file.h"
#include "base/size.h"
#include "partition/edge_block.h"
#include "partition/input_files.h"

/* Where end `column` of edge `edge` is in the file, in bytes from its first. */
static uint64_t place_of(const gs_part_input *in, uint64_t edge, uint64_t column)
{
    const uint64_t ids = in->two_rows ? column * in->edges + edge : 2 * edge + column;
    return ids * gs_dtype_bytes(in->edge.npy.dtype);
}

/* The slow path: a piece is known to hold a wrong id; which? */
static gs_status name_wrong_id(const gs_part_input *in, const gs_part_edge_block *b)
{
    const uint64_t step = in->two_rows ? 1 : 2, other = in->two_rows ? b->count : 1;

    for (uint64_t i = 0; i < 2 * b->count; i++) {
        int64_t id;
        const uint64_t at = i / 2 * step + i % 2 * other, edge = b->first + i / 2;
        gs_part__to_i64(&id, (const char *)b->raw + at * gs_dtype_bytes(in->edge.npy.dtype), in->edge.npy.dtype, 1);
        if (id < 0 || (uint64_t)id >= in->vertices)
            return gs_fail(GS_EFORMAT,
                           "%s: row %llu, column %llu: vertex %s is not one of the %llu vertices (ids start at 0)",
                           in->edge.path, (unsigned long long)(in->two_rows ? i % 2 : edge),
                           (unsigned long long)(in->two_rows ? edge : i % 2), GS_PART_I64(id),
                           (unsigned long long)in->vertices);
    }
    return gs_fail(GS_EFORMAT, "%s: changed while it was read", in->edge.path);
}

#define SPLIT(type)                                                              \
    do {                                                                         \
        const type *const from = b->raw, *const to = from + other;               \
        uint64_t wrong = 0;                                                      \
        for (uint64_t i = 0; i < b->count; i++) {                                \
            const uint64_t u = (uint64_t)from[step * i], v = (uint64_t)to[step * i]; \
            wrong |= (uint64_t)(u >= n) | (uint64_t)(v >= n);                    \
            b->src[i] = (uint32_t)u;                                             \
            b->dst[i] = (uint32_t)v;                                             \
        }                                                                        \
        return wrong != 0 ? name_wrong_id(in, b) : GS_OK;                        \
    } while (0)

/* Signed ids are widened with their sign, so that a negative one is beyond any N. */
static gs_status split_ends(const gs_part_input *in, gs_part_edge_block *b)
{
    const uint64_t n = in->vertices, step = in->two_rows ? 1 : 2, other = in->two_rows ? b->count : 1;
    switch (in->edge.npy.dtype) {
    case GS_I64:
        SPLIT(int64_t);
    case GS_U64:
        SPLIT(uint64_t);
    case GS_I32:
        SPLIT(int32_t);
    case GS_U32:
        SPLIT(uint32_t);
    case GS_I16:
        SPLIT(int16_t);
    case GS_U16:
        SPLIT(uint16_t);
    case GS_I8:
        SPLIT(int8_t);
    default:
        SPLIT(uint8_t);
    }
}
#undef SPLIT

/* Both ends of `count` edges into b->raw: pairs, or all sources and then all destinations. */
static gs_status read_ends(const gs_part_input *in, gs_part_edge_block *b, uint64_t first, uint64_t count)
{
    const gs_npy *const e = &in->edge.npy;
    const uint64_t bytes = count * gs_dtype_bytes(e->dtype);
    gs_status st;

    if (!in->two_rows)
        return gs_pread_exact(e->fd, b->raw, 2 * bytes, e->data_offset + place_of(in, first, 0), in->edge.path);
    st = gs_pread_exact(e->fd, b->raw, bytes, e->data_offset + place_of(in, first, 0), in->edge.path);
    return st != GS_OK ? st
                       : gs_pread_exact(e->fd, (char *)b->raw + bytes, bytes, e->data_offset + place_of(in, first, 1),
                                        in->edge.path);
}

void gs_part__npy_advise(const gs_part_input *in, uint64_t first, uint64_t count, int advice)
{
    const gs_npy *const e = &in->edge.npy;
    const uint64_t edges = GS_MIN(count, in->edges - GS_MIN(first, in->edges));
    const uint64_t bytes = edges * gs_dtype_bytes(e->dtype) * (in->two_rows ? 1 : 2);

    for (uint64_t column = 0; column < (in->two_rows ? 2 : 1); column++)
        posix_fadvise(e->fd, (off_t)(e->data_offset + place_of(in, first, column)), (off_t)bytes, advice);
}

static gs_status read_types(const gs_part_input *in, gs_part_edge_block *b)
{
    gs_status st = gs_npy_read_rows(&in->type.npy, b->raw, b->first, b->count, in->type.path);
    for (uint64_t i = 0; st == GS_OK && i < b->count; i++) {
        int64_t t;
        gs_part__to_i64(&t, (const char *)b->raw + i * gs_dtype_bytes(in->type.npy.dtype), in->type.npy.dtype, 1);
        if (t < 0 || t >= (in->edge_types != 0 ? (int64_t)in->edge_types : 65536))
            return gs_fail(GS_EFORMAT, "%s: row %llu: type %s is outside 0 to %u", in->type.path,
                           (unsigned long long)(b->first + i), GS_PART_I64(t),
                           in->edge_types != 0 ? in->edge_types - 1 : 65535);
        b->type[i] = (uint32_t)t;
    }
    return st;
}

static gs_status read_weights(const gs_part_input *in, gs_part_edge_block *b)
{
    const gs_status st = gs_npy_read_rows(&in->weight.npy, b->raw, b->first, b->count, in->weight.path);
    if (st != GS_OK)
        return st;
    gs_part__to_f32(b->weight, b->raw, in->weight.npy.dtype, b->count);
    for (uint64_t i = 0; i < b->count; i++)
        if (!isfinite(b->weight[i]))
            return gs_fail(GS_EFORMAT, "%s: row %llu: the weight is not a finite float32", in->weight.path,
                           (unsigned long long)(b->first + i));
    return GS_OK;
}

gs_status gs_part__npy_edges(const gs_part_input *in, gs_part_edge_block *b, uint64_t first, uint64_t count)
{
    gs_status st;

    b->first = first;
    b->count = count;
    if ((st = read_ends(in, b, first, count)) != GS_OK || (st = split_ends(in, b)) != GS_OK)
        return st;
    if (in->typed && (st = read_types(in, b)) != GS_OK)
        return st;
    return in->weighted ? read_weights(in, b) : GS_OK;
}
