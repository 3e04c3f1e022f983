/* common.cu - what generated and fixed kernels share: indices, rows, groups of lanes, random bits. */
#include "args.h"
#include "gpu.h"

/* Number i of an array of numbers of 1, 2 or 4 bytes. */
GS_DEVICE gs_u32 gs_number(const void *array, gs_u32 bytes, gs_u32 i)
{
    if (bytes == 4)
        return ((const gs_u32 *)array)[i];
    return bytes == 2 ? ((const gs_u16 *)array)[i] : ((const gs_u8 *)array)[i];
}

/* The same of 2 or 4 bytes, as indices have. */
GS_DEVICE gs_u32 gs_index(const void *array, gs_u32 bytes, gs_u32 i)
{
    return bytes == 4 ? ((const gs_u32 *)array)[i] : ((const gs_u16 *)array)[i];
}

/* The edge whose numbers a lane loads, its o-th, of a burst that begins with edge `first`; the last edge where the
 * burst has fewer. */
GS_DEVICE gs_u32 gs_own_edge(gs_u32 first, gs_u32 o, gs_u32 lanes, gs_u32 burst, gs_u32 end)
{
    const gs_u32 k = first + o * lanes + gs_lane() % lanes % burst;
    return k < end ? k : end - 1;
}

/* Row `row` of so many bytes, from a lane's own column of row 0. */
GS_DEVICE const char *gs_edge_row(const char *column, gs_u32 row, gs_u32 bytes) { return column + (gs_u64)row * bytes; }
/* A lane's column, or where it has none the last one that there is: what such lanes load is not looked at. */
GS_DEVICE gs_u32 gs_column_within(gs_u32 column, gs_u32 last) { return column < last ? column : last; }

/* 16 bytes at once; both sides at a multiple of 16. */
GS_DEVICE void gs_load4(float *to, const float *from)
{
    const gs_float4 v = *(const gs_float4 *)from;
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
    to[3] = v.w;
}

GS_DEVICE void gs_store4(float *to, const float *from)
{
    gs_float4 v;
    v.x = from[0];
    v.y = from[1];
    v.z = from[2];
    v.w = from[3];
    *(gs_float4 *)to = v;
}

GS_DEVICE void gs_load8(float *to, const float *from)
{
    gs_load4(to, from);
    gs_load4(to + 4, from + 4);
}

GS_DEVICE void gs_store8(float *to, const float *from)
{
    gs_store4(to, from);
    gs_store4(to + 4, from + 4);
}

GS_DEVICE void gs_load2(float *to, const float *from)
{
    const gs_float2 v = *(const gs_float2 *)from;
    to[0] = v.x;
    to[1] = v.y;
}

GS_DEVICE void gs_store2(float *to, const float *from)
{
    gs_float2 v;
    v.x = from[0];
    v.y = from[1];
    *(gs_float2 *)to = v;
}

/* Sum over `span` neighbouring lanes (a power of two) of a group; the same bits in all of them. */
GS_DEVICE float gs_group_sum(float v, gs_u32 span, gs_u32 lanes)
{
    for (gs_u32 by = 1; by < span; by *= 2)
        v += gs_group_exchange(v, by, lanes);
    return v;
}

GS_DEVICE float gs_group_max(float v, gs_u32 lanes)
{
    for (gs_u32 by = 1; by < lanes; by *= 2) {
        const float other = gs_group_exchange(v, by, lanes);
        v = other > v ? other : v;
    }
    return v;
}

/* NaN wins, as in torch.maximum. */
GS_DEVICE float gs_larger(float x, float y) { return x > y || x != x ? x : y; }
GS_DEVICE float gs_smaller(float x, float y) { return x < y || x != x ? x : y; }
/* A largest or least value so far, and before the first edge `neutral`. */
GS_DEVICE float gs_opened(float y, float neutral) { return gs_bits_of_float(y) == GS_NO_EDGE ? neutral : y; }
GS_DEVICE float gs_sigmoid(float x)
{
    const float e = expf(-fabsf(x)); /* never infinite */
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

GS_DEVICE float gs_bf16_number(gs_u32 h) { return gs_float_of_bits(h << 16); }
GS_DEVICE float gs_of_bf16(const void *p, gs_u64 i) { return gs_bf16_number(((const gs_u16 *)p)[i]); }

/* Rounded to the nearest, ties to even; a NaN stays one. */
GS_DEVICE gs_u32 gs_nearest_bf16(float x)
{
    const gs_u32 u = gs_bits_of_float(x), upper = u >> 16, rounded = (u + 0x7fffu + (upper & 1u)) >> 16;
    return (u & 0x7fffffffu) > 0x7f800000u ? upper | 0x40u : rounded;
}

GS_DEVICE void gs_to_bf16(void *p, gs_u64 i, float x) { ((gs_u16 *)p)[i] = (gs_u16)gs_nearest_bf16(x); }

GS_DEVICE float gs_f16_number(gs_u32 h)
{
    const gs_u32 sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31)
        return gs_float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent > 0)
        return gs_float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    const float small = (float)fraction * gs_float_of_bits(0x33800000u); /* 2^-24 */
    return sign ? -small : small;
}

GS_DEVICE float gs_of_f16(const void *p, gs_u64 i) { return gs_f16_number(((const gs_u16 *)p)[i]); }

/* Columns of two bytes each, so many at once, from a multiple of their bytes. */
#define GS_LOAD_HALVES(type)                                        \
    GS_DEVICE void gs_load2_##type(float *to, const void *from)     \
    {                                                               \
        const gs_u32 word = *(const gs_halves2 *)from;              \
        to[0] = gs_##type##_number(word & 0xffffu);                 \
        to[1] = gs_##type##_number(word >> 16);                     \
    }                                                               \
    GS_DEVICE void gs_load4_##type(float *to, const void *from)     \
    {                                                               \
        const gs_float2 v = *(const gs_float2 *)from;               \
        const gs_u32 word[2] = {gs_bits_of_float(v.x), gs_bits_of_float(v.y)}; \
        GS_UNROLL for (int i = 0; i < 2; i++) {                     \
            to[2 * i] = gs_##type##_number(word[i] & 0xffffu);      \
            to[2 * i + 1] = gs_##type##_number(word[i] >> 16);      \
        }                                                           \
    }                                                               \
    GS_DEVICE void gs_load8_##type(float *to, const void *from)     \
    {                                                               \
        const gs_float4 v = *(const gs_float4 *)from;               \
        const gs_u32 word[4] = {gs_bits_of_float(v.x), gs_bits_of_float(v.y), gs_bits_of_float(v.z), \
                                gs_bits_of_float(v.w)};             \
        GS_UNROLL for (int i = 0; i < 4; i++) {                     \
            to[2 * i] = gs_##type##_number(word[i] & 0xffffu);      \
            to[2 * i + 1] = gs_##type##_number(word[i] >> 16);      \
        }                                                           \
    }
GS_LOAD_HALVES(bf16)
GS_LOAD_HALVES(f16)

GS_DEVICE float gs_of_f32(const void *p, gs_u64 i) { return ((const float *)p)[i]; }
GS_DEVICE float gs_of_u8(const void *p, gs_u64 i) { return (float)((const gs_u8 *)p)[i]; }
GS_DEVICE float gs_of_u16(const void *p, gs_u64 i) { return (float)((const gs_u16 *)p)[i]; }
GS_DEVICE float gs_of_u32(const void *p, gs_u64 i) { return (float)((const gs_u32 *)p)[i]; }
GS_DEVICE float gs_of_i32(const void *p, gs_u64 i) { return (float)((const int *)p)[i]; }

/* Philox4x32-10 (base/philox.h): the counter becomes the bits. */
GS_DEVICE void gs_philox(gs_u32 c[4], gs_u32 k0, gs_u32 k1)
{
    for (int round = 0; round < 10; round++) {
        const gs_u64 p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
        c[0] = (gs_u32)(p1 >> 32) ^ c[1] ^ k0;
        c[1] = (gs_u32)p1;
        c[2] = (gs_u32)(p0 >> 32) ^ c[3] ^ k1;
        c[3] = (gs_u32)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* The keys of its rounds, from the first. */
GS_DEVICE void gs_round_keys(gs_u32 round[GS_ROUND_KEYS], gs_u32 k0, gs_u32 k1)
{
    for (gs_u32 i = 0; i < GS_ROUND_KEYS / 2; i++) {
        round[2 * i] = k0 + i * 0x9E3779B9u;
        round[2 * i + 1] = k1 + i * 0xBB67AE85u;
    }
}

/* The same as gs_philox(), with keys that are there: of a launch's arguments they cost no instruction. */
GS_DEVICE void gs_philox_rounds(gs_u32 c[4], const gs_u32 *round)
{
    GS_UNROLL for (int i = 0; i < GS_ROUND_KEYS; i += 2) {
        const gs_u64 p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
        c[0] = (gs_u32)(p1 >> 32) ^ c[1] ^ round[i];
        c[1] = (gs_u32)p1;
        c[2] = (gs_u32)(p0 >> 32) ^ c[3] ^ round[i + 1];
        c[3] = (gs_u32)p0;
    }
}

/* ---- whose edges a group takes: those of the launch's that a target has ---- */

#define GS_NO_SLOT 0xffffffffu

typedef struct gs_item {
    gs_u32 target, from, to; /* edges [from, to), none where they are equal */
    gs_u32 slot;             /* of a hub's piece: where its sums go */
} gs_item;

/* Number of the chunk that a block of the launch belongs to, or of its merge: the last that begins at or before it. */
GS_DEVICE gs_u32 gs_chunk_of(const gs_edge_args *a, gs_u32 block, int merges)
{
    gs_u32 low = 0, high = a->chunks;
    while (high - low > 1) {
        const gs_u32 mid = low + (high - low) / 2;
        if ((merges ? a->chunk[mid].first_merge : a->chunk[mid].first_block) <= block)
            low = mid;
        else
            high = mid;
    }
    return low;
}

GS_DEVICE gs_u32 gs_owner(const gs_edge_chunk *c, gs_u32 edge)
{
    gs_u32 low = 0, high = c->targets;
    while (high - low > 1) { /* start[low] <= edge < start[high] */
        const gs_u32 mid = low + (high - low) / 2;
        if (c->start[mid] <= edge)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* Of the target's edges those of the launch, which begin with `first`: a target may begin before them, or end after
 * them. */
GS_DEVICE gs_u32 gs_first_of(const gs_edge_chunk *c, gs_u32 first, gs_u32 t)
{
    return c->start[t] > first ? c->start[t] : first;
}
GS_DEVICE gs_u32 gs_end_of(const gs_edge_chunk *c, gs_u32 first, gs_u32 t)
{
    return c->start[t + 1] < first + c->edges ? c->start[t + 1] : first + c->edges;
}

/* The first item of a stretch is the hub that its first edge belongs to, the second the one of its last edge. */
GS_DEVICE gs_item gs_hub_item(const gs_edge_chunk *c, gs_u32 first_edge, gs_u32 slot)
{
    const gs_u32 first = first_edge + slot / 2 * c->piece_edges, last = first_edge + c->edges;
    const gs_u32 end = last - first > c->piece_edges ? first + c->piece_edges : last;
    const gs_u32 t = gs_owner(c, slot % 2 == 0 ? first : end - 1), begin = c->start[t], stop = c->start[t + 1];
    gs_item r = {t, 0, 0, slot};
    if (stop - begin <= c->piece_edges || (slot % 2 == 1 && begin <= first))
        return r; /* none, or the other item of the stretch has it */
    r.from = begin > first ? begin : first;
    r.to = stop < end ? stop : end;
    return r;
}

/* A chunk's pieces of hubs come first: they are the longest, and what begins last should not be. */
GS_DEVICE gs_item gs_edge_item(const gs_edge_chunk *c, gs_u32 first_edge, gs_u32 item)
{
    const gs_u32 t = item - 2 * c->pieces;
    gs_item r = {0, 0, 0, GS_NO_SLOT};
    if (item < 2 * c->pieces)
        return gs_hub_item(c, first_edge, item);
    if (t >= c->targets)
        return r;
    r.target = t;
    if (c->pieces > 0 && c->start[t + 1] - c->start[t] > c->piece_edges)
        return r; /* a hub: its pieces do it */
    r.from = gs_first_of(c, first_edge, t);
    r.to = gs_end_of(c, first_edge, t);
    return r;
}

/* Of an item that has edges, what its sums are for: the slot, or the target. */
GS_DEVICE gs_item gs_item_again(const gs_edge_chunk *c, gs_u32 item)
{
    const gs_item piece = {0, 0, 0, item}, whole = {item - 2 * c->pieces, 0, 0, GS_NO_SLOT};
    return item < 2 * c->pieces ? piece : whole;
}

/* The hub that begins in this slot, whose pieces are to be added up; none elsewhere. */
GS_DEVICE gs_item gs_merge_item(const gs_edge_chunk *c, gs_u32 first_edge, gs_u32 slot)
{
    gs_item r = {0, 0, 0, slot};
    if (slot < 2 * c->pieces)
        r = gs_hub_item(c, first_edge, slot);
    if (r.from < r.to && r.from != gs_first_of(c, first_edge, r.target))
        r.to = r.from;
    return r;
}

/* Pieces of the hub that begins in its item's slot; and where the sums of number p of them are: all but the first lie
 * where their stretch begins. */
GS_DEVICE gs_u32 gs_pieces_of(const gs_edge_chunk *c, gs_u32 first_edge, gs_item it)
{
    const gs_u32 edges = gs_end_of(c, first_edge, it.target) - first_edge;
    return (edges + c->piece_edges - 1) / c->piece_edges - it.slot / 2;
}
GS_DEVICE gs_u32 gs_piece_slot(gs_item it, gs_u32 p) { return p == 0 ? it.slot : (it.slot / 2 + p) * 2; }

/* Column c of the features of edge k, of which it has so many; `rows` are of the type that the launch says. */
GS_DEVICE float gs_feature(const void *rows, const gs_edge_common *all, gs_u32 k, gs_u32 columns, gs_u32 c)
{
    const gs_u64 at = (gs_u64)k * columns + c;
    if (all->feature_type == GS_FEATURE_F32)
        return ((const float *)rows)[at];
    return all->feature_type == GS_FEATURE_BF16 ? gs_of_bf16(rows, at) : gs_of_f16(rows, at);
}

/* ---- masks of edges (program.h) ----
 *
 * Four columns of an edge's mask are one draw. Each lane of a group makes draws of its own, and gives the bits to all.
 */

/* What the bits are made of. */
typedef struct gs_draw {
    gs_u32 source, destination, count, type;
} gs_draw;

GS_DEVICE gs_u32 gs_edge_type(const gs_edge_chunk *c, const gs_edge_common *all, gs_u32 k)
{
    return c->type == 0 ? 0 : gs_number(c->type, all->type_bytes, k);
}

/* Edges of one target: have they the other end and the type in common, too? */
GS_DEVICE int gs_is_parallel(const gs_edge_chunk *c, const gs_edge_common *all, gs_u32 j, gs_u32 k)
{
    return gs_index(c->index, all->index_bytes, j) == gs_index(c->index, all->index_bytes, k) &&
           gs_edge_type(c, all, j) == gs_edge_type(c, all, k);
}

/* The first of the edges parallel to k, which lie side by side: k's rank among them is k less that. */
GS_DEVICE gs_u32 gs_first_parallel(const gs_edge_chunk *c, const gs_edge_common *all, gs_u32 target, gs_u32 k)
{
    gs_u32 low = c->start[target], high = k;
    while (low < high) {
        const gs_u32 mid = low + (high - low) / 2;
        if (gs_is_parallel(c, all, mid, k))
            high = mid;
        else
            low = mid + 1;
    }
    return high;
}

/* Bit b: is edge b of a burst parallel to the one before it? Of the edges whose operands and types the group's lanes
 * have, `lanes` apart; `last`: operand and type of the edge before the burst, then those of its last edge. */
GS_DEVICE gs_u32 gs_parallel_edges(const gs_u32 *operand, const gs_u32 *type, gs_u32 burst, gs_u32 lanes,
                                   gs_u32 last_operand, gs_u32 last[2])
{
    const gs_u32 lane = gs_lane() % lanes, end = burst - 1;
    gs_u32 bits = 0, before[2] = {last[0], last[1]};
    GS_UNROLL for (gs_u32 o = 0; o <= end / lanes; o++) {
        const gs_u32 left = gs_group_read(operand[o], lane - 1, lanes), its = gs_group_read(type[o], lane - 1, lanes);
        const int same = operand[o] == (lane == 0 ? before[0] : left) && type[o] == (lane == 0 ? before[1] : its);
        bits |= gs_group_votes(same, lanes) << o * lanes;
        before[0] = left; /* of lane 0: what the group's last lane has */
        before[1] = its;
    }
    last[0] = last_operand;
    last[1] = gs_group_read(type[end / lanes], end % lanes, lanes);
    return bits;
}

/* The same of edge `first + b` of a burst: bit i of `parallel` says that edge i is parallel to the one before it;
 * `before`: the first of those parallel to what the burst begins with. */
GS_DEVICE gs_u32 gs_first_in_typed(gs_u32 parallel, gs_u32 first, gs_u32 b, gs_u32 before)
{
    const gs_u32 firsts = ~parallel & ((2u << b) - 1);
    return firsts == 0 ? before : first + gs_highest(firsts);
}

/* Draw `four` of the `fours` of an edge. */
GS_DEVICE gs_draw gs_edge_draw(float source, float destination, gs_u32 rank, gs_u32 type, gs_u32 four, gs_u32 fours,
                               int loops_as_one)
{
    gs_draw d = {gs_bits_of_float(source), gs_bits_of_float(destination), four, 0};
    if (!loops_as_one || d.source != d.destination) {
        d.count += rank * fours;
        d.type = type;
    }
    return d;
}

/* Bit i: is column i of the four kept? Of the first `columns`. */
GS_DEVICE gs_u32 gs_draw_kept(const gs_draw *d, const gs_u32 *round, gs_u32 threshold, gs_u32 columns)
{
    gs_u32 c[4] = {d->source, d->destination, d->count, d->type}, kept = 0;
    gs_philox_rounds(c, round);
    GS_UNROLL for (gs_u32 i = 0; i < columns; i++)
        kept |= (gs_u32)(c[i] >> 8 >= threshold) << i;
    return kept;
}

/* ---- running maximum and sum of a softmax ---- */

/* What exponents are taken relative to: without scores there is no maximum yet. */
GS_DEVICE float gs_base_of(float maximum) { return maximum == gs_float_of_bits(0xff800000u) ? 0.0f : maximum; }
/* What earlier terms are multiplied by when the maximum rises from `old` to `now`. */
GS_DEVICE float gs_rescale(float old, float now) { return old == now ? 1.0f : expf(old - gs_base_of(now)); }
