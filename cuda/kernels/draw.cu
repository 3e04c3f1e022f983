/* draw.cu - a batch of neighbours by the law of src/sample/neighbor.c, to the bit: who is drawn, in which order
 * vertices become rows, and in which order edges are.
 *
 * Launches have a lane for as many rows or edges as there can be; the state says how many there are. */
#include "common.cu"

#define GS_DRAW_FREE 0xffffffffffffffffull
#define GS_DRAW_NEW 0x80000000u /* the edge of this number has the vertex first */

/* Sum of v over the lanes of the block before this one and itself; in the last lane, of all. Lanes add up parts of
 * GS_DRAW_PART, which saves barriers. */
GS_DEVICE gs_u64 gs_draw_scan(gs_u64 *shared, gs_u64 v)
{
    const gs_u32 lane = gs_lane(), part = lane / GS_DRAW_PART;
    gs_u64 *const of_part = shared + GS_BLOCK_LANES;
    gs_u64 sum = 0;
    gs_block_sync();
    shared[lane] = v;
    gs_block_sync();
    for (gs_u32 i = 0; lane < GS_BLOCK_LANES / GS_DRAW_PART && i < GS_DRAW_PART; i++)
        sum += shared[lane * GS_DRAW_PART + i];
    if (lane < GS_BLOCK_LANES / GS_DRAW_PART)
        of_part[lane] = sum;
    gs_block_sync();
    sum = 0;
    for (gs_u32 p = 0; p < part; p++)
        sum += of_part[p];
    for (gs_u32 i = part * GS_DRAW_PART; i <= lane; i++)
        sum += shared[i];
    return sum;
}

GS_DEVICE void gs_draw_keep_sum(const gs_draw_args *a, gs_u64 *shared, gs_u64 v)
{
    const gs_u64 sum = gs_draw_scan(shared, v);
    if (gs_lane() == GS_BLOCK_LANES - 1)
        a->sums[gs_block_x()] = sum;
}

/* The same sum over the lanes of all blocks, whose sums were kept. */
GS_DEVICE gs_u64 gs_draw_scan_all(const gs_draw_args *a, gs_u64 *shared, gs_u64 v)
{
    gs_u64 before = 0;
    for (gs_u32 b = gs_lane(); b < gs_block_x(); b += GS_BLOCK_LANES)
        before += a->sums[b];
    gs_draw_scan(shared, before);
    before = 0;
    for (gs_u32 p = 0; p < GS_BLOCK_LANES / GS_DRAW_PART; p++)
        before += shared[GS_BLOCK_LANES + p];
    return before + gs_draw_scan(shared, v);
}

GS_DEVICE gs_u32 gs_draw_item(void) { return gs_block_x() * GS_BLOCK_LANES + gs_lane(); }
GS_DEVICE gs_u32 gs_draw_first_row(const gs_draw_args *a) { return a->hop == 0 ? 0 : a->state->rows[a->hop - 1]; }

/* Is there a row of this number in the hop, or an edge? */
GS_DEVICE int gs_draw_row(const gs_draw_args *a, gs_u32 item, gs_u32 *row)
{
    *row = gs_draw_first_row(a) + item;
    return !a->state->overflows && *row < a->state->rows[a->hop];
}
GS_DEVICE int gs_draw_edge(const gs_draw_args *a, gs_u32 *k)
{
    *k = a->state->edges[a->hop] + gs_draw_item();
    return !a->state->overflows && *k < a->state->edges[a->hop + 1];
}

GS_DEVICE void gs_draw_put_index(void *list, gs_u32 bytes, gs_u32 i, gs_u32 row)
{
    if (bytes == 4)
        ((gs_u32 *)list)[i] = row;
    else
        ((gs_u16 *)list)[i] = (gs_u16)row;
}

/* ---- rows ---- */

/* The place of the vertex in the table, where the least of what lanes put stays. */
GS_DEVICE gs_u32 gs_draw_put(const gs_draw_args *a, gs_u32 vertex, gs_u32 what)
{
    const gs_u64 own = (gs_u64)vertex << 32 | what;
    gs_u32 at = (gs_u32)(vertex * 0x9E3779B97F4A7C15ull >> (64 - a->bits));
    for (;;) {
        const gs_u64 had = gs_swap_if(&a->slot[at], GS_DRAW_FREE, own);
        if (had == GS_DRAW_FREE)
            return at;
        if (had >> 32 == vertex) {
            gs_lower(&a->slot[at], own);
            return at;
        }
        at = (at + 1) & ((1u << a->bits) - 1);
    }
}

GS_KERNEL(gs_draw_targets, gs_draw_args)
{
    const gs_u32 row = gs_draw_item();
    if (row == 0)
        a.state->rows[0] = a.targets;
    if (row < a.targets)
        a.slot_of[row] = gs_draw_put(&a, a.vertex[row], row);
}

GS_DEVICE gs_u32 gs_draw_type(const gs_draw_args *a, gs_u32 edge) { return gs_number(a->type, a->type_bytes, edge); }

/* The end of those of [first, end) that are drawn from at once: all, or those of the first one's type. */
GS_DEVICE gs_u32 gs_draw_run_end(const gs_draw_args *a, gs_u32 first, gs_u32 end)
{
    if (!a->by_type)
        return end;
    const gs_u32 type = gs_draw_type(a, first);
    gs_u32 low = first + 1, step = 1;
    while (step < end - low && gs_draw_type(a, low + step - 1) == type) {
        low += step;
        step *= 2;
    }
    for (gs_u32 high = step < end - low ? low + step : end; low < high;) {
        const gs_u32 middle = low + (high - low) / 2;
        if (gs_draw_type(a, middle) == type)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

GS_DEVICE gs_u32 gs_draw_least(gs_u32 x, gs_u32 y) { return x < y ? x : y; }

/* Edges that are drawn of a vertex; of weighted ones, at most so many. */
GS_DEVICE gs_u32 gs_draw_most(const gs_draw_args *a, gs_u32 vertex)
{
    const gs_u32 end = a->first[vertex + 1];
    gs_u32 most = 0;
    for (gs_u32 at = a->first[vertex], next; at < end; at = next) {
        next = gs_draw_run_end(a, at, end);
        most += gs_draw_least(next - at, a->fanout);
    }
    return most;
}

/* Edges of the hop's rows, which are rows in the table from now on. */
GS_KERNEL(gs_draw_count, gs_draw_args)
{
    GS_SHARED(shared);
    gs_u32 row, many = 0;
    if (gs_draw_row(&a, gs_draw_item(), &row)) {
        a.slot[a.slot_of[row]] = (gs_u64)a.vertex[row] << 32 | row;
        many = a.weighted ? a.many[row] : gs_draw_most(&a, a.vertex[row]);
        a.many[row] = many;
    }
    gs_draw_keep_sum(&a, (gs_u64 *)(void *)shared, many);
}

/* ---- edges ---- */

/* Where each row's edges are. */
GS_KERNEL(gs_draw_places, gs_draw_args)
{
    GS_SHARED(shared);
    gs_u32 row;
    const int there = gs_draw_row(&a, gs_draw_item(), &row);
    const gs_u32 end = a.state->rows[a.hop], many = there ? a.many[row] : 0, had = a.state->edges[a.hop];
    const gs_u64 upto = had + gs_draw_scan_all(&a, (gs_u64 *)(void *)shared, many);
    if (gs_draw_item() == 0 && gs_draw_first_row(&a) == end)
        a.state->edges[a.hop + 1] = had;
    if (!there)
        return;
    if (upto > a.most_edges) {
        gs_raise(&a.state->overflows, 1);
        return;
    }
    const gs_u32 from = (gs_u32)upto - many;
    a.start[row] = from;
    for (gs_u32 k = from; k < from + many; k++)
        a.row[k] = row;
    if (row + 1 == end) {
        a.start[end] = (gs_u32)upto;
        a.state->edges[a.hop + 1] = (gs_u32)upto;
    }
}

typedef struct gs_draw_stream {
    gs_u32 first, second, third, fourth, next, left; /* names, and no numbers: they stay in registers */
} gs_draw_stream;

GS_DEVICE gs_u32 gs_draw_word(const gs_draw_args *a, gs_u32 vertex, gs_draw_stream *r)
{
    if (r->left == 0) {
        gs_u32 word[4] = {r->next++, vertex, a->batch, a->epoch};
        gs_philox(word, a->key[0], a->key[1]);
        r->first = word[0];
        r->second = word[1];
        r->third = word[2];
        r->fourth = word[3];
        r->left = 4;
    }
    r->left--;
    const gs_u32 word = r->first;
    r->first = r->second;
    r->second = r->third;
    r->third = r->fourth;
    return word;
}

/* Uniform in [0, n), exactly: gs_random_below(). */
GS_DEVICE gs_u32 gs_draw_below(const gs_draw_args *a, gs_u32 vertex, gs_draw_stream *r, gs_u32 n)
{
    gs_u64 product = (gs_u64)gs_draw_word(a, vertex, r) * n;
    if ((gs_u32)product < n) {
        const gs_u32 least = (0 - n) % n;
        while ((gs_u32)product < least)
            product = (gs_u64)gs_draw_word(a, vertex, r) * n;
    }
    return (gs_u32)(product >> 32);
}

/* Which of edges [first, first + degree) of a vertex: all, or the fanout of them as gs_draw__distinct() has it. */
GS_DEVICE gs_u32 gs_draw_distinct(const gs_draw_args *a, gs_u32 *edge, gs_u32 vertex, gs_draw_stream *r, gs_u32 first,
                                  gs_u32 degree)
{
    const gs_u32 k = gs_draw_least(degree, a->fanout);
    for (gs_u32 i = 0; i < k; i++) {
        const gs_u32 last = degree - k + i;
        const gs_u32 p = k == degree ? i : gs_draw_below(a, vertex, r, last + 1);
        int listed = 0;
        for (gs_u32 j = 0; j < i && k < degree; j++)
            listed |= edge[j] == first + p;
        edge[i] = first + (listed ? last : p);
    }
    return k;
}

GS_KERNEL(gs_draw_edges, gs_draw_args)
{
    gs_u32 row;
    if (!gs_draw_row(&a, gs_draw_item(), &row))
        return;
    const gs_u32 vertex = a.vertex[row], end = a.first[vertex + 1];
    gs_u32 *edge = a.source + a.start[row];
    gs_draw_stream r = {0, 0, 0, 0, 0, 0};
    for (gs_u32 at = a.first[vertex], next; at < end; at = next) {
        next = gs_draw_run_end(&a, at, end);
        edge += gs_draw_distinct(&a, edge, vertex, &r, at, next - at);
    }
}

/* ---- weighted edges: a warp for each row ---- */

/* Those of the hop's rows that have a weight, as many as are drawn. */
GS_KERNEL(gs_draw_count_weighted, gs_draw_args)
{
    const gs_u32 lane = gs_lane() % 32;
    gs_u32 row, many = 0;
    if (!gs_draw_row(&a, gs_draw_item() / 32, &row))
        return;
    const gs_u32 end = a.first[a.vertex[row] + 1];
    for (gs_u32 at = a.first[a.vertex[row]], next; at < end; at = next) {
        gs_u32 found = 0;
        next = gs_draw_run_end(&a, at, end);
        for (gs_u32 k = at; k < next && found < a.fanout; k += 32)
            found += gs_ones(gs_warp_votes(k + lane < next && a.weight[k + lane] > 0));
        many += gs_draw_least(found, a.fanout);
    }
    if (lane == 0)
        a.many[row] = many;
}

/* An edge and its key. */
typedef struct gs_draw_keyed {
    double key;
    gs_u32 edge;
} gs_draw_keyed;

GS_DEVICE gs_draw_keyed gs_draw_read(const gs_draw_keyed *own, gs_u32 lane)
{
    const gs_u64 bits = gs_bits_of_double(own->key);
    const gs_u64 high = gs_group_read((gs_u32)(bits >> 32), lane, 32), low = gs_group_read((gs_u32)bits, lane, 32);
    gs_draw_keyed of;
    of.key = gs_f64_of_bits(high << 32 | low);
    of.edge = gs_group_read(own->edge, lane, 32);
    return of;
}

/* The key of edge number `place` of a vertex: of the words that gs_draw__weighted() gives it. */
GS_DEVICE double gs_draw_key(const gs_draw_args *a, gs_u32 vertex, gs_u32 place, float weight)
{
    gs_u32 word[4] = {place / 2, vertex, a->batch, a->epoch};
    gs_philox(word, a->key[0], a->key[1]);
    const gs_u32 high = place % 2 == 0 ? word[0] : word[2], low = place % 2 == 0 ? word[1] : word[3];
    return gs_exponential_key(high, low, weight);
}

/* Lane i of the warp has the i-th least of what came so far: those that `is_less` says take their places, the
 * one of the lowest lane first, as edges of equal keys are in their order. */
GS_DEVICE void gs_draw_insert(gs_draw_keyed *least, const gs_draw_keyed *own, int is_less)
{
    const gs_u32 lane = gs_lane() % 32;
    for (gs_u32 votes = gs_warp_votes(is_less); votes != 0; votes &= votes - 1) {
        const gs_draw_keyed came = gs_draw_read(own, gs_highest(votes & (0 - votes)));
        const gs_draw_keyed before = gs_draw_read(least, (lane + 31) % 32);
        if (least->key > came.key)
            *least = lane > 0 && before.key > came.key ? before : came;
    }
}

/* Those of edges [at, end) with the least keys become edges of the batch, at most the fanout: how many. */
GS_DEVICE gs_u32 gs_draw_weighted_of(const gs_draw_args *a, gs_u32 *edge, gs_u32 vertex, gs_u32 at, gs_u32 end)
{
    const gs_u32 lane = gs_lane() % 32, first = a->first[vertex];
    const double none = gs_f64_of_bits(0x7ff0000000000000ull);
    gs_draw_keyed least = {none, 0};
    gs_u32 found = 0;
    for (; at < end; at += 32) {
        gs_draw_keyed own = {none, at + lane};
        const float weight = own.edge < end ? a->weight[own.edge] : 0;
        if (weight > 0)
            own.key = gs_draw_key(a, vertex, own.edge - first, weight);
        found += gs_ones(gs_warp_votes(weight > 0));
        gs_draw_insert(&least, &own, own.key < gs_draw_read(&least, a->fanout - 1).key);
    }
    found = gs_draw_least(found, a->fanout);
    if (lane < found)
        edge[lane] = least.edge;
    return found;
}

GS_KERNEL(gs_draw_weighted, gs_draw_args)
{
    gs_u32 row;
    if (!gs_draw_row(&a, gs_draw_item() / 32, &row))
        return;
    const gs_u32 vertex = a.vertex[row], end = a.first[vertex + 1];
    gs_u32 *edge = a.source + a.start[row];
    for (gs_u32 at = a.first[vertex], next; at < end; at = next) {
        next = gs_draw_run_end(&a, at, end);
        edge += gs_draw_weighted_of(&a, edge, vertex, at, next);
    }
}

/* ---- their sources ---- */

/* What edges carry is kept, as the next kernels forget which of the graph's they are. */
GS_KERNEL(gs_draw_find, gs_draw_args)
{
    gs_u32 k;
    if (!gs_draw_edge(&a, &k))
        return;
    const gs_u32 edge = a.source[k];
    a.at[k] = gs_draw_put(&a, a.other[edge], GS_DRAW_NEW | k);
    if (a.type != 0)
        a.type_of[k] = (gs_u16)gs_draw_type(&a, edge);
    if (a.weight != 0)
        a.weight_of[k] = a.weight[edge];
}

GS_DEVICE int gs_draw_is_new(const gs_draw_args *a, gs_u32 k)
{
    return (gs_u32)a->slot[a->at[k]] == (GS_DRAW_NEW | k);
}

GS_KERNEL(gs_draw_new, gs_draw_args)
{
    GS_SHARED(shared);
    gs_u32 k;
    const int there = gs_draw_edge(&a, &k);
    gs_draw_keep_sum(&a, (gs_u64 *)(void *)shared, there && gs_draw_is_new(&a, k));
}

/* Vertices become rows in the order in which edges have them first. */
GS_KERNEL(gs_draw_rows, gs_draw_args)
{
    GS_SHARED(shared);
    gs_u32 k;
    const int there = gs_draw_edge(&a, &k), fresh = there && gs_draw_is_new(&a, k);
    const gs_u32 had = a.state->rows[a.hop];
    const gs_u32 upto = had + (gs_u32)gs_draw_scan_all(&a, (gs_u64 *)(void *)shared, fresh);
    if (gs_draw_item() == 0 && a.state->edges[a.hop] == a.state->edges[a.hop + 1])
        a.state->rows[a.hop + 1] = had;
    if (!there)
        return;
    if (upto > a.most_rows) {
        gs_raise(&a.state->overflows, 1);
        return;
    }
    if (fresh) {
        a.vertex[upto - 1] = (gs_u32)(a.slot[a.at[k]] >> 32);
        a.slot_of[upto - 1] = a.at[k];
        a.fresh[k] = upto - 1;
    }
    if (k + 1 == a.state->edges[a.hop + 1])
        a.state->rows[a.hop + 1] = upto;
}

GS_KERNEL(gs_draw_sources, gs_draw_args)
{
    gs_u32 k;
    if (!gs_draw_edge(&a, &k))
        return;
    const gs_u32 has = (gs_u32)a.slot[a.at[k]];
    a.source[k] = (has & GS_DRAW_NEW) != 0 ? a.fresh[has & ~GS_DRAW_NEW] : has;
}

/* ---- in the order of an end ---- */

/* Rows and edges that the list is of. */
GS_DEVICE gs_u32 gs_draw_list_rows(const gs_draw_args *a)
{
    const gs_u32 hop = a->operands == 0 ? a->hops - 1 : a->operands;
    return a->state->overflows ? 0 : a->state->rows[hop];
}
GS_DEVICE gs_u32 gs_draw_list_edges(const gs_draw_args *a)
{
    return a->state->overflows ? 0 : a->state->edges[a->operands == 0 ? a->hops : a->operands];
}

GS_DEVICE int gs_draw_list_edge(const gs_draw_args *a, gs_u32 *k)
{
    *k = gs_draw_item();
    return *k < gs_draw_list_edges(a);
}

GS_KERNEL(gs_draw_count_sources, gs_draw_args)
{
    gs_u32 k;
    if (gs_draw_list_edge(&a, &k))
        gs_count_one(&a.count[a.source[k]]);
}

/* Edges of a row of the list, and in the upper half, whether there are any. */
GS_DEVICE gs_u64 gs_draw_listed(const gs_draw_args *a, gs_u32 row)
{
    if (row >= gs_draw_list_rows(a))
        return 0;
    const gs_u32 edges = a->operands == 0 ? a->start[row + 1] - a->start[row] : a->count[row];
    return edges | (gs_u64)(edges > 0) << 32;
}

GS_KERNEL(gs_draw_count_listed, gs_draw_args)
{
    GS_SHARED(shared);
    gs_draw_keep_sum(&a, (gs_u64 *)(void *)shared, gs_draw_listed(&a, gs_draw_item()));
}

/* Rows that have edges, and where these begin. */
GS_KERNEL(gs_draw_list_rows_of, gs_draw_args)
{
    GS_SHARED(shared);
    const gs_u32 row = gs_draw_item(), rows = gs_draw_list_rows(&a);
    const gs_u64 listed = gs_draw_listed(&a, row), upto = gs_draw_scan_all(&a, (gs_u64 *)(void *)shared, listed);
    const gs_u32 edges = (gs_u32)listed, end = (gs_u32)upto, targets = (gs_u32)(upto >> 32);
    gs_draw_list_state *const list = &a.state->list[a.list];
    if (row >= rows)
        return;
    if (a.operands > 0)
        a.begin[row] = end - edges;
    if (edges > 0) {
        gs_draw_put_index(a.list_target, a.index_bytes, targets - 1, row);
        a.list_start[targets - 1] = end - edges;
        gs_raise(&list->largest, edges);
    }
    for (gs_u32 h = 0; h <= a.hops; h++)
        if (row + 1 == (a.state->rows[h] < rows ? a.state->rows[h] : rows)) {
            list->targets[h] = targets;
            list->ends[h] = end;
        }
    if (row + 1 == rows)
        a.list_start[targets] = end;
}

/* What the edges of a row of the list are in order of. Those without types by source are so by the row that drew them,
 * in whose order they were drawn. Of parts of the batch the CPU puts those by destination in order of their sources. */
GS_DEVICE gs_u64 gs_draw_order(const gs_draw_args *a, gs_u32 k)
{
    const gs_u64 type = a->type == 0 ? 0 : a->type_of[k];
    if (a->operands == 0)
        return type << 32 | a->source[k];
    if (a->type == 0)
        return k;
    return a->operands == a->hops ? type << 32 | a->row[k] : (gs_u64)a->row[k] << 16 | type;
}

/* Edge k is in a row's list, of which numbers [from, from + count) are: where it comes in their order. Of equal ones
 * the first is first. */
GS_DEVICE void gs_draw_list_edge_of(const gs_draw_args *a, gs_u32 from, gs_u32 count, gs_u32 k)
{
    const gs_u64 own = gs_draw_order(a, k);
    gs_u32 to = from;
    GS_ONCE for (gs_u32 i = from; i < from + count; i++) {
        const gs_u32 j = a->operands == 0 ? i : a->placed[i];
        const gs_u64 order = gs_draw_order(a, j);
        to += order < own || (order == own && j < k);
    }
    gs_draw_put_index(a->list_index, a->index_bytes, to, a->operands == 0 ? a->source[k] : a->row[k]);
    if (a->type != 0 && a->type_bytes == 1)
        ((gs_u8 *)a->list_type)[to] = (gs_u8)a->type_of[k];
    else if (a->type != 0)
        ((gs_u16 *)a->list_type)[to] = a->type_of[k];
    if (a->weight != 0)
        a->list_weight[to] = a->weight_of[k];
}

GS_KERNEL(gs_draw_by_row, gs_draw_args)
{
    gs_u32 k;
    if (!gs_draw_list_edge(&a, &k))
        return;
    const gs_u32 from = a.start[a.row[k]];
    gs_draw_list_edge_of(&a, from, a.start[a.row[k] + 1] - from, k);
}

GS_KERNEL(gs_draw_place, gs_draw_args)
{
    gs_u32 k;
    if (gs_draw_list_edge(&a, &k))
        a.placed[a.begin[a.source[k]] + gs_take_number(&a.taken[a.source[k]])] = k;
}

GS_KERNEL(gs_draw_by_source, gs_draw_args)
{
    gs_u32 k;
    if (gs_draw_list_edge(&a, &k))
        gs_draw_list_edge_of(&a, a.begin[a.source[k]], a.count[a.source[k]], k);
}

/* ---- of rows ---- */

/* Self loops of a row, of one whose edges are not drawn as many as are to be expected. */
GS_DEVICE float gs_draw_loops(const gs_draw_args *a, gs_u32 row)
{
    const gs_u32 vertex = a->vertex[row], own = a->own == 0 ? 0 : a->own[vertex];
    gs_u32 loops = 0;
    if (own == 0)
        return 0;
    if (row >= a->state->rows[a->hops - 1])
        return (float)((double)own * (double)gs_draw_most(a, vertex) /
                       (double)(a->first[vertex + 1] - a->first[vertex]));
    for (gs_u32 k = a->start[row]; k < a->start[row + 1]; k++)
        loops += a->source[k] == row;
    return (float)loops;
}

/* In-degrees: of rows whose edges are not drawn, as many as would be. */
GS_KERNEL(gs_draw_finish, gs_draw_args)
{
    const gs_u32 row = gs_draw_item();
    if (a.state->overflows || row >= a.state->rows[a.hops])
        return;
    if (a.in_degree != 0)
        a.in_degree[row] = row < a.state->rows[a.hops - 1] ? (float)(a.start[row + 1] - a.start[row])
                                                           : (float)gs_draw_most(&a, a.vertex[row]);
    if (a.loops != 0)
        a.loops[row] = gs_draw_loops(&a, row);
    if (a.split != 0)
        a.split[row] = (gs_u8)(row < a.targets ? a.in_split : a.out_split);
}
