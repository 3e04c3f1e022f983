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

GS_DEVICE gs_u32 gs_draw_degree(const gs_draw_args *a, gs_u32 row)
{
    const gs_u32 v = a->vertex[row];
    return a->first[v + 1] - a->first[v];
}

GS_DEVICE gs_u32 gs_draw_many(const gs_draw_args *a, gs_u32 row)
{
    const gs_u32 degree = gs_draw_degree(a, row);
    return degree < a->fanout ? degree : a->fanout;
}

/* Edges of the hop's rows, which are rows in the table from now on. */
GS_KERNEL(gs_draw_count, gs_draw_args)
{
    GS_SHARED(shared);
    const gs_u32 row = gs_draw_first_row(&a) + gs_draw_item();
    const int there = !a.state->overflows && row < a.state->rows[a.hop];
    if (there)
        a.slot[a.slot_of[row]] = (gs_u64)a.vertex[row] << 32 | row;
    gs_draw_keep_sum(&a, (gs_u64 *)(void *)shared, there ? gs_draw_many(&a, row) : 0);
}

/* ---- edges ---- */

typedef struct gs_draw_stream {
    gs_u32 word[4], next, left;
} gs_draw_stream;

GS_DEVICE gs_u32 gs_draw_word(const gs_draw_args *a, gs_u32 vertex, gs_draw_stream *r)
{
    if (r->left == 0) {
        r->word[0] = r->next++;
        r->word[1] = vertex;
        r->word[2] = a->batch;
        r->word[3] = a->epoch;
        gs_philox(r->word, a->key[0], a->key[1]);
        r->left = 4;
    }
    r->left--;
    const gs_u32 word = r->word[0];
    r->word[0] = r->word[1]; /* moved, and not indexed: they stay in registers */
    r->word[1] = r->word[2];
    r->word[2] = r->word[3];
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

/* Which edges of a vertex: all, or k of them as gs_draw__distinct() has it. */
GS_DEVICE void gs_draw_edges_of(const gs_draw_args *a, gs_u32 *edge, gs_u32 vertex, gs_u32 k)
{
    const gs_u32 first = a->first[vertex], degree = a->first[vertex + 1] - first;
    gs_draw_stream r = {{0, 0, 0, 0}, 0, 0};
    for (gs_u32 i = 0; i < k; i++) {
        const gs_u32 last = degree - k + i;
        const gs_u32 p = k == degree ? i : gs_draw_below(a, vertex, &r, last + 1);
        int listed = 0;
        for (gs_u32 j = 0; j < i && k < degree; j++)
            listed |= edge[j] == first + p;
        edge[i] = first + (listed ? last : p);
    }
}

GS_KERNEL(gs_draw_places, gs_draw_args)
{
    GS_SHARED(shared);
    const gs_u32 end = a.state->rows[a.hop], row = gs_draw_first_row(&a) + gs_draw_item();
    const int there = !a.state->overflows && row < end;
    const gs_u32 many = there ? gs_draw_many(&a, row) : 0, had = a.state->edges[a.hop];
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
    gs_draw_edges_of(&a, a.source + from, a.vertex[row], many);
    for (gs_u32 k = from; k < from + many; k++)
        a.row[k] = row;
    if (row + 1 == end) {
        a.start[end] = (gs_u32)upto;
        a.state->edges[a.hop + 1] = (gs_u32)upto;
    }
}

/* Is there such an edge of the hop? */
GS_DEVICE int gs_draw_edge(const gs_draw_args *a, gs_u32 *k)
{
    *k = a->state->edges[a->hop] + gs_draw_item();
    return !a->state->overflows && *k < a->state->edges[a->hop + 1];
}

GS_KERNEL(gs_draw_find, gs_draw_args)
{
    gs_u32 k;
    if (gs_draw_edge(&a, &k))
        a.at[k] = gs_draw_put(&a, a.other[a.source[k]], GS_DRAW_NEW | k);
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

GS_KERNEL(gs_draw_count_sources, gs_draw_args)
{
    const gs_u32 k = gs_draw_item();
    if (k < gs_draw_list_edges(&a))
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

/* Where number i of [from, from + count) of a list comes in their order; of equal ones the first is first. */
GS_DEVICE gs_u32 gs_draw_rank(const gs_u32 *list, gs_u32 from, gs_u32 count, gs_u32 i)
{
    const gs_u32 own = list[i];
    gs_u32 rank = 0;
    for (gs_u32 j = from; j < from + count; j++)
        rank += list[j] < own || (list[j] == own && j < i);
    return rank;
}

GS_KERNEL(gs_draw_by_row, gs_draw_args)
{
    const gs_u32 k = gs_draw_item();
    if (k >= gs_draw_list_edges(&a))
        return;
    const gs_u32 row = a.row[k], from = a.start[row];
    gs_draw_put_index(a.list_index, a.index_bytes, from + gs_draw_rank(a.source, from, a.start[row + 1] - from, k),
                      a.source[k]);
}

GS_KERNEL(gs_draw_place, gs_draw_args)
{
    const gs_u32 k = gs_draw_item();
    if (k >= gs_draw_list_edges(&a))
        return;
    const gs_u32 source = a.source[k];
    a.at[k] = a.begin[source] + gs_take_number(&a.taken[source]);
    a.placed[a.at[k]] = a.row[k];
}

GS_KERNEL(gs_draw_by_source, gs_draw_args)
{
    const gs_u32 k = gs_draw_item();
    if (k >= gs_draw_list_edges(&a))
        return;
    const gs_u32 source = a.source[k], from = a.begin[source];
    gs_draw_put_index(a.list_index, a.index_bytes, from + gs_draw_rank(a.placed, from, a.count[source], a.at[k]),
                      a.row[k]);
}

/* ---- of rows ---- */

/* Self loops of a row, of one whose edges are not drawn as many as are to be expected. */
GS_DEVICE float gs_draw_loops(const gs_draw_args *a, gs_u32 row)
{
    const gs_u32 own = a->own == 0 ? 0 : a->own[a->vertex[row]];
    gs_u32 loops = 0;
    if (own == 0)
        return 0;
    if (row >= a->state->rows[a->hops - 1])
        return (float)((double)own * (double)gs_draw_many(a, row) / (double)gs_draw_degree(a, row));
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
                                                           : (float)gs_draw_many(&a, row);
    if (a.loops != 0)
        a.loops[row] = gs_draw_loops(&a, row);
    if (a.split != 0)
        a.split[row] = (gs_u8)(row < a.targets ? a.in_split : a.out_split);
}
