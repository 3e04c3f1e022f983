/* compile_cut_edges.c - what the edge passes of a cut graph read, in bytes. */
#include "base/size.h"
#include "compile/compile_internal.h"

static const gs_node *at(const gs_cut *c, uint32_t i)
{
    return gs_ir_node(c->ir, i);
}

gs_dtype gs_compile__stored_type(const gs_cut *c, uint32_t v)
{
    const gs_node *n = at(c, v);
    if (n->dtype != GS_F32) /* an input, or rounded for other passes */
        return n->dtype;
    return !c->full[v] && gs_compile__may_round(n->width, c->rest_width) ? c->rest : GS_F32;
}

uint64_t gs_compile__row_cost(const gs_cut *c, uint32_t v)
{
    return (uint64_t)at(c, v)->width * gs_dtype_bytes(gs_compile__stored_type(c, v)) * GS_COST_BYTE;
}

/* Nodes [low, high), outside of which no edge pass of stage t reads or makes anything. */
typedef struct gs_span {
    uint32_t low, high;
} gs_span;

/* The span of stage t's passes. A cone may go back to the first node. */
static gs_span span_of(const gs_cut *c, uint32_t t)
{
    gs_span s = {.low = c->nodes};
    for (uint32_t i = c->level_start[t]; i < c->level_start[t + 1]; i++) {
        const uint32_t v = c->by_level[i];
        if (!gs_compile__is_sum(at(c, v)))
            continue;
        s.low = c->operand[v] == GS_IR_NONE ? 0 : GS_MIN(s.low, GS_MIN(c->operand[v], c->scale[v]));
        s.high = GS_MAX(s.high, v + 1);
    }
    return s;
}

/* Of the columns of an array's row, those that an edge reads at most: all of them, or by type (of what stage t's passes
 * read, c->bits) the columns of one. */
static void find_columns(const gs_cut *c, uint32_t t, gs_span s, uint32_t *columns)
{
    for (uint32_t v = s.low; v < s.high; v++)
        columns[v] = 0;
    for (uint32_t v = s.low; v < s.high; v++) {
        const gs_node *n = at(c, v);
        const bool picks = n->op == GS_OP_PICK_OUT && c->operand[v] != GS_IR_NONE && c->level[v] == t;
        if (picks || (gs_compile__is_typed(n) && (c->bits[v] & GS_CONE_EDGE) != 0))
            columns[n->in[0]] = GS_MAX(columns[n->in[0]], n->width);
    }
    for (uint32_t v = s.low; v < s.high; v++)
        if (columns[v] == 0 || (c->bits[v] & (GS_CONE_SOURCE | GS_CONE_DESTINATION)) != 0)
            columns[v] = at(c, v)->width;
}

/* Marks in c->bits what passes of stage t read. */
static void mark_reads(const gs_cut *c, uint32_t t, gs_span s)
{
    for (uint32_t v = s.low; v < s.high; v++)
        c->bits[v] = 0;
    for (uint32_t i = c->level_start[t]; i < c->level_start[t + 1]; i++) {
        const uint32_t v = c->by_level[i];
        if (!gs_compile__is_sum(at(c, v)))
            continue;
        const uint8_t end = c->direction[t] == 0 ? GS_CONE_SOURCE : GS_CONE_DESTINATION;
        if (c->operand[v] == GS_IR_NONE)
            gs_compile__cone(c->ir, v, c->bits);
        else
            c->bits[c->operand[v]] |= at(c, v)->op == GS_OP_PICK_OUT ? GS_CONE_TYPED_DESTINATION : end;
        if (c->scale[v] != GS_IR_NONE)
            c->bits[c->scale[v]] |= end;
    }
}

/* Bytes that edge passes of stage t read: an array at the operand end once an edge, at the target
 * end once a vertex, however many sums use it. */
static uint64_t edge_pass_cost(const gs_cut *c, uint32_t t, double edges_per_vertex)
{
    const unsigned source_end = GS_CONE_SOURCE | GS_CONE_TYPED_SOURCE;
    const unsigned destination_end = GS_CONE_DESTINATION | GS_CONE_TYPED_DESTINATION;
    const unsigned operand_end = c->direction[t] == 0 ? source_end : destination_end;
    const unsigned target_end = c->direction[t] == 0 ? destination_end : source_end;
    const gs_span s = span_of(c, t);
    uint32_t *const columns = c->stack;
    uint64_t cost = 0;

    mark_reads(c, t, s);
    find_columns(c, t, s, columns);
    for (uint32_t v = s.low; v < s.high; v++) {
        const double row = (double)gs_compile__row_cost(c, v), share = (double)columns[v] / at(c, v)->width;
        if ((c->bits[v] & operand_end) != 0)
            cost += (uint64_t)((1.0 + edges_per_vertex * share) * row);
        if ((c->bits[v] & target_end) != 0)
            cost += (uint64_t)row;
    }
    return cost;
}

uint64_t gs_compile__fixed_cost(const gs_cut *c, double edges_per_vertex)
{
    uint64_t cost = 0;
    for (uint32_t v = 0; v < c->nodes; v++)
        if (c->must_store[v])
            cost += gs_compile__row_cost(c, v);
    for (uint32_t t = 1; t <= c->stages; t++)
        if (c->sums[t] > 0)
            cost += edge_pass_cost(c, t, edges_per_vertex);
    return cost;
}
