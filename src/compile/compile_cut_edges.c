/* compile_cut_edges.c - what the edge passes of a cut graph read, in bytes. */
#include "base/size.h"
#include "compile/compile_internal.h"

static const gs_node *at(const gs_cut *c, uint32_t i)
{
    return gs_ir_node(c->ir, i);
}

/* A derivative asks which edge has the largest value, so what edges read of it is rounded with the rows that it is the
 * largest of, or not at all. */
static bool is_of_rounded(const gs_cut *c, const gs_node *most)
{
    const gs_node *const row = at(c, most->in[0]);
    return row->op == GS_OP_SRC && gs_compile__stored_type(c, row->in[0]) == GS_BF16;
}

gs_dtype gs_compile__stored_type(const gs_cut *c, uint32_t v)
{
    const gs_node *n = at(c, v);
    const bool most = n->op == GS_OP_MAX_IN || n->op == GS_OP_MIN_IN;
    if (n->dtype != GS_F32 || n->op == GS_OP_INPUT) /* an input, or rounded for other passes */
        return n->dtype;
    if (c->keep.full[v] || !gs_compile__may_round(n->width, c->rest_width))
        return GS_F32;
    if (c->keep.gathered[v] && ((most && !is_of_rounded(c, n)) || n->op == GS_OP_LSE_IN))
        return GS_F32;
    return c->keep.gathered[v] ? c->read : c->keep.target[v] ? GS_F32 : c->rest;
}

uint64_t gs_compile__row_cost(const gs_cut *c, uint32_t v)
{
    return (uint64_t)at(c, v)->width * gs_dtype_bytes(gs_compile__stored_type(c, v)) * GS_COST_BYTE;
}

/* Marks in c->search.marks what passes of stage t read, and sums of rows by type themselves. */
static void mark_reads(gs_cut *c, uint32_t t)
{
    for (uint32_t i = c->when.level_start[t]; i < c->when.level_start[t + 1]; i++) {
        const uint32_t v = c->when.by_level[i];
        if (!gs_compile__is_sum(at(c, v)))
            continue;
        const uint8_t end = c->sum.direction[t] == 0 ? GS_CONE_SOURCE : GS_CONE_DESTINATION;
        if (c->sum.operand[v] == GS_IR_NONE)
            gs_compile__cone(c->ir, v, &c->search.marks);
        else
            gs_compile__mark(&c->search.marks, c->sum.operand[v],
                             at(c, v)->op == GS_OP_PICK_OUT ? GS_CONE_TYPED_DESTINATION : end);
        if (c->sum.scale[v] != GS_IR_NONE)
            gs_compile__mark(&c->search.marks, c->sum.scale[v], end);
    }
}

/* Most columns that an edge reads of a row of what stage t's passes read: all of them, or, by type, those of one type.
 * Sets columns[v] for marked nodes. */
static void find_columns(const gs_cut *c, uint32_t t, uint32_t *columns)
{
    const gs_marks *const m = &c->search.marks;

    for (uint32_t i = 0; i < m->count; i++)
        columns[m->node[i]] = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        const gs_node *n = at(c, m->node[i]);
        if (gs_compile__is_typed(n) && (m->bits[m->node[i]] & GS_CONE_EDGE) != 0)
            columns[n->in[0]] = GS_MAX(columns[n->in[0]], n->width);
    }
    for (uint32_t i = c->when.level_start[t]; i < c->when.level_start[t + 1]; i++) {
        const gs_node *n = at(c, c->when.by_level[i]);
        if (n->op == GS_OP_PICK_OUT && c->sum.operand[c->when.by_level[i]] != GS_IR_NONE)
            columns[n->in[0]] = GS_MAX(columns[n->in[0]], n->width);
    }
    for (uint32_t i = 0; i < m->count; i++) {
        const uint32_t v = m->node[i];
        if (columns[v] == 0 || (m->bits[v] & (GS_CONE_SOURCE | GS_CONE_DESTINATION)) != 0)
            columns[v] = at(c, v)->width;
    }
}

/* Bytes that edge passes of stage t read: an array at the operand end once an edge, at the target
 * end once a vertex, however many sums use it. */
static uint64_t edge_pass_cost(gs_cut *c, uint32_t t, double edges_per_vertex)
{
    const unsigned source_end = GS_CONE_SOURCE | GS_CONE_TYPED_SOURCE;
    const unsigned destination_end = GS_CONE_DESTINATION | GS_CONE_TYPED_DESTINATION;
    const unsigned operand_end = c->sum.direction[t] == 0 ? source_end : destination_end;
    const unsigned target_end = c->sum.direction[t] == 0 ? destination_end : source_end;
    uint32_t *const columns = c->search.stack;
    uint64_t cost = 0;

    mark_reads(c, t);
    find_columns(c, t, columns);
    for (uint32_t i = 0; i < c->search.marks.count; i++) {
        const uint32_t v = c->search.marks.node[i];
        const double row = (double)gs_compile__row_cost(c, v), share = (double)columns[v] / at(c, v)->width;
        if ((c->search.marks.bits[v] & operand_end) != 0)
            cost += (uint64_t)((1.0 + edges_per_vertex * share) * row);
        if ((c->search.marks.bits[v] & target_end) != 0)
            cost += (uint64_t)row;
    }
    gs_compile__unmark(&c->search.marks);
    return cost;
}

uint64_t gs_compile__fixed_cost(gs_cut *c, double edges_per_vertex)
{
    uint64_t cost = 0;
    for (uint32_t v = 0; v < c->nodes; v++)
        if (c->keep.must_store[v])
            cost += gs_compile__row_cost(c, v);
    for (uint32_t t = 1; t <= c->stages; t++)
        if (c->sum.count[t] > 0)
            cost += edge_pass_cost(c, t, edges_per_vertex);
    return cost;
}
