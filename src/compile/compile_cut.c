/* compile_cut.c - cuts a graph into stages at its edge sums, for the fewest bytes.
 *
 * A sum reads rows of an array that an earlier stage has written, and a statistic (a mean over all
 * vertices) is there when its stage is done, so the level of a value is the number of edge sums and statistics
 * on its longest way from the leaves, plus one for a first stage without sums. All sums of a stage have one direction.
 * Rows that are an input cast, or times a number a vertex, need no stage before: the sum reads the input (and the
 * number) instead. With and without such numbers the whole is cut, and what costs less is taken.
 * What is left to decide is what happens to a value that a later stage needs: it is stored and loaded, or
 * something it is made of is, and the rest is done again. The rule:
 *
 *   fewest bytes of vertex rows stored and loaded, over all stages, where doing 32
 *   floating-point operations once more is worth one byte (GS_FLOPS_PER_BYTE; 2 where the arrays are in memory).
 *
 * For one stage, given what the earlier ones may store, that is a minimum cut: a
 * vertex of the network is a value; cutting it means loading it (4 bytes an element, and as
 * much again to store it, unless it is an array anyway); on the far side of the cut
 * everything is computed from what was cut. Sums of other stages and the
 * loss (it counts metrics once) can only be loaded. Stages are cut from the last to the first, so that what
 * a stage loads is known as an array when the earlier ones are looked at. That is
 * greedy between stages; a local search then forbids stored values one at a time, and tries
 * later stages for the gradients of parameters, and keeps what costs less. Stages later than the first that
 * a change can be seen in are as they were, and a cut that costs too much already is not finished.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/size.h"
#include "compile/compile_internal.h"

/* ---- what edge passes read --------------------------------------------- */

/* What the edge passes of a cut graph read, in bytes. */

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
    if (n->op == GS_OP_MAX_HELD_IN || n->op == GS_OP_MIN_HELD_IN) /* numbers of vertices */
        return GS_F32;
    if (c->keep.full[v] || !gs_compile__may_round(n->width, c->rest_width))
        return GS_F32;
    if (c->keep.gathered[v] && ((most && !is_of_rounded(c, n)) || n->op == GS_OP_LSE_IN))
        return GS_F32;
    return c->keep.gathered[v] ? c->read : c->keep.target[v] ? GS_F32 : c->rest;
}

/* bytes of its row */
static uint64_t row_cost(const gs_cut *c, uint32_t v)
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
        const double row = (double)row_cost(c, v), share = (double)columns[v] / at(c, v)->width;
        if ((c->search.marks.bits[v] & operand_end) != 0)
            cost += (uint64_t)((1.0 + edges_per_vertex * share) * row);
        if ((c->search.marks.bits[v] & target_end) != 0)
            cost += (uint64_t)row;
    }
    gs_compile__unmark(&c->search.marks);
    return cost;
}

/* Bytes that do not depend on the search: what edge passes read, and arrays that must be. */
static uint64_t fixed_cost(gs_cut *c, double edges_per_vertex)
{
    uint64_t cost = 0;
    for (uint32_t v = 0; v < c->nodes; v++)
        if (c->keep.must_store[v])
            cost += row_cost(c, v);
    for (uint32_t t = 1; t <= c->stages; t++)
        if (c->sum.count[t] > 0)
            cost += edge_pass_cost(c, t, edges_per_vertex);
    return cost;
}

/* ---- the search -------------------------------------------------------- */

/* An SSD reads some 3 GB/s and a few cores do some 100 GFLOP/s; between GPU and host the ratio
 * is higher. */
#define GS_FLOPS_PER_BYTE 32
/* The same where an epoch waits for the disk, and the processor has nothing else to do. */
#define GS_FLOPS_PER_BYTE_WAITING 512
/* The same where all arrays are in memory: an operation on each element reads and writes a cache, too. */
#define GS_FLOPS_PER_BYTE_IN_MEMORY 2
/* Nodes times stages that one local search may look at: well below a second. */
#define GS_SEARCH_WORK 400000u
/* Values that one stage's network may have before those that can be loaded are taken as such: what lies behind them,
 * as far as the first layer where no sum is between, is not made again. */
#define GS_NETWORK_VALUES 256u
/* Where a stage's own values are more than these, no cut is looked for, as that takes the square of them in the worst
 * case: what can be loaded is. */
#define GS_NETWORK_MOST 512u

/* Without a gradient: it counts, and makes no rows. */
static bool is_loss(const gs_node *n)
{
    return gs_op_classof(n->op) == GS_CLASS_LOSS && !gs_op_is_loss_grad(n->op);
}

/* Without rows: nothing to load or compute in stage t. */
static bool is_free(const gs_cut *c, uint32_t i, uint32_t t)
{
    const gs_node *n = at(c, i);
    return n->op == GS_OP_PARAM || n->op == GS_OP_CONST || (gs_compile__is_statistic(n) && c->when.level[i] < t);
}

/* Writing wears the disk, a quarter of a byte more for each. It tells a rounded copy, which is written and read, from
 * the float32 array that edges need anyway, which is only read again: the same bytes. */
static uint64_t wear_cost(const gs_cut *c, uint32_t v)
{
    return gs_compile__stored_type(c, v) == GS_F32 ? 0 : row_cost(c, v) / 4;
}

static uint64_t compute_cost(const gs_cut *c, const gs_node *n)
{
    uint64_t flops = n->width;
    if (n->op == GS_OP_MIX || n->op == GS_OP_MIX_T)
        flops = 2ull * n->width * (n->op == GS_OP_MIX ? at(c, n->in[1])->rows : at(c, n->in[1])->width);
    else if (gs_op_classof(n->op) == GS_CLASS_MATMUL)
        flops = 2ull * n->width * at(c, n->in[0])->width;
    else if (gs_op_is_random(n->op))
        flops = 20ull * n->width; /* Philox: 10 rounds for 4 elements */
    return flops > GS_COST_MOST / GS_MAX(c->flop_cost, 1) ? GS_COST_MOST : flops * c->flop_cost;
}

/* What the search asks of each value again and again, where levels and stored types are known. */
static void find_costs(gs_cut *c)
{
    for (uint32_t v = 0; v < c->nodes; v++) {
        const gs_node *const n = at(c, v);
        const bool input = n->op == GS_OP_INPUT,
                   rows = gs_op_classof(n->op) != GS_CLASS_REDUCE && !is_loss(n) && !gs_compile__is_statistic(n);
        c->search.compute[v] = compute_cost(c, n);
        c->search.load[v] = input || rows ? row_cost(c, v) : GS_COST_INF;
        c->search.keep[v] = input ? row_cost(c, v) : rows ? 2 * row_cost(c, v) + wear_cost(c, v) : GS_COST_INF;
    }
}

void gs_compile__cut_free(gs_cut *c)
{
    if (c == NULL)
        return;
    gs_arena_free(&c->memory);
    gs_free(c->out.value);
    gs_free(c);
}

/* ---- one stage as a network: value v is the arc in_of(v) -> out_of(v); what cannot be loaded, a vertex ---- */

typedef struct gs_network {
    gs_cut *c;
    uint32_t stage, top; /* top: of c->search.stack */
    uint32_t source, sink;
    bool simple; /* no network: what can be loaded is */
} gs_network;

/* search.vertex: twice the vertex, and 1 more where another one follows it, for the rows once they are loaded. */
static uint32_t in_of(const gs_network *w, uint32_t v) { return w->c->search.vertex[v] / 2; }
static uint32_t out_of(const gs_network *w, uint32_t v) { return in_of(w, v) + w->c->search.vertex[v] % 2; }

/* GS_COST_INF: it cannot be loaded. */
static uint64_t load_cost(const gs_network *w, uint32_t v)
{
    const gs_cut *const c = w->c;

    if (c->when.level[v] >= w->stage)
        return GS_COST_INF;
    if (c->keep.stored[v])
        return c->search.load[v];
    return c->keep.may_not_store[v] ? GS_COST_INF : c->search.keep[v];
}

static void visit(gs_network *w, uint32_t v)
{
    gs_cut *const c = w->c;
    if (c->search.seen[v])
        return;
    c->search.seen[v] = 1;
    c->search.stack[w->top++] = v;
    c->search.vertex[v] = 2 * gs_compile__flow_vertex(c->search.flow);
    if (load_cost(w, v) < GS_COST_INF) {
        (void)gs_compile__flow_vertex(c->search.flow);
        c->search.vertex[v]++;
    }
}

static void need(gs_network *w, uint32_t v)
{
    visit(w, v);
    gs_compile__flow_arc(w->c->search.flow, out_of(w, v), w->sink, GS_COST_INF);
}

/* Calls `fn` for what stage t has to produce. */
static void for_each_goal(gs_network *w, void (*fn)(gs_network *w, uint32_t v))
{
    const gs_cut *c = w->c;
    for (uint32_t i = c->when.level_start[w->stage]; i < c->when.level_start[w->stage + 1]; i++) {
        const uint32_t v = c->when.by_level[i];
        if (c->keep.stored[v] || gs_op_is_loss_grad(at(c, v)->op) || gs_compile__is_statistic(at(c, v)))
            fn(w, v);
    }
    for (uint32_t i = c->when.place_start[w->stage]; i < c->when.place_start[w->stage + 1]; i++) {
        const gs_output *const o = gs_ir_output(c->ir, c->when.by_place[i]);
        if (o->kind != GS_OUTPUT_LOGITS && !gs_compile__is_stored(o))
            fn(w, o->node);
    }
}

static void add_value(gs_network *w, uint32_t v)
{
    gs_cut *c = w->c;
    const gs_node *n = at(c, v);
    const bool here_only = gs_compile__is_sum(n) || gs_op_is_loss_grad(n->op);

    if (is_free(c, v, w->stage) || (gs_compile__is_sum(n) && c->when.level[v] == w->stage))
        return;
    const uint64_t load = load_cost(w, v);
    const bool far = load < GS_COST_INF && w->top > GS_NETWORK_VALUES;
    const uint64_t compute =
        n->op == GS_OP_INPUT || far || (here_only && c->when.level[v] != w->stage) ? GS_COST_INF : c->search.compute[v];
    gs_compile__flow_arc(c->search.flow, w->source, in_of(w, v), compute);
    if (load < GS_COST_INF)
        gs_compile__flow_arc(c->search.flow, in_of(w, v), out_of(w, v), load);
    for (uint32_t k = 0; compute < GS_COST_INF && k < gs_node_inputs(n); k++) {
        visit(w, n->in[k]);
        gs_compile__flow_arc(c->search.flow, out_of(w, n->in[k]), in_of(w, v), GS_COST_INF);
    }
}

static bool is_loaded(const gs_network *w, uint32_t v)
{
    const gs_node *n = at(w->c, v);
    if (!w->simple)
        return gs_compile__flow_source_side(w->c->search.flow, in_of(w, v));
    return !(gs_compile__is_sum(n) && w->c->when.level[v] == w->stage) && load_cost(w, v) < GS_COST_INF;
}

static void settle(gs_network *w, uint32_t v)
{
    gs_cut *c = w->c;
    if (c->search.seen[v] != GS_CUT_UNUSED || is_free(c, v, w->stage))
        return;
    c->search.seen[v] = is_loaded(w, v) ? GS_CUT_LOADED : GS_CUT_COMPUTED;
    c->search.stack[w->top++] = v;
    if (w->simple && !(gs_compile__is_sum(at(c, v)) && c->when.level[v] == w->stage))
        c->cost += c->search.seen[v] == GS_CUT_LOADED ? load_cost(w, v) : c->search.compute[v];
}

static void clear_seen(const gs_network *w)
{
    for (uint32_t i = 0; i < w->top; i++)
        w->c->search.seen[w->c->search.stack[i]] = GS_CUT_UNUSED;
}

/* Notes the stage's values: those that it looked at, and those after `settled`, which it computes or loads. */
static void keep_values(const gs_network *w, uint32_t settled)
{
    gs_cut *const c = w->c;

    c->out.start[w->stage] = c->out.end[w->stage] = c->out.count;
    if (!gs_grow_by(&c->out.value, c->out.count, w->top, &c->out.room, sizeof(*c->out.value))) {
        c->failed = GS_ENOMEM;
        return;
    }
    for (uint32_t i = 0; i < w->top; i++)
        if (i >= settled || c->search.seen[c->search.stack[i]] == GS_CUT_UNUSED)
            c->out.value[c->out.count++] = 4 * c->search.stack[i] + c->search.seen[c->search.stack[i]];
    c->out.end[w->stage] = c->out.count;
}

/* Is it stored where a stage has it so? */
static bool is_kept(const gs_cut *c, uint32_t value)
{
    return gs_cut_state_of(value) == GS_CUT_LOADED && at(c, gs_cut_node(value))->op != GS_OP_INPUT;
}

/* Decides stage t; adds its cost to c->cost and marks what it wants stored, but where the cost comes to `most`. */
static void cut_stage(gs_cut *c, uint32_t t, bool notes, uint64_t most)
{
    gs_network w = {.c = c, .stage = t};

    gs_compile__flow_reset(c->search.flow);
    w.source = gs_compile__flow_vertex(c->search.flow);
    w.sink = gs_compile__flow_vertex(c->search.flow);
    for_each_goal(&w, need);
    for (uint32_t i = 0; i < w.top; i++)
        add_value(&w, c->search.stack[i]);
    w.simple = w.top > GS_NETWORK_MOST;
    if (!w.simple)
        c->cost += gs_compile__flow_run(c->search.flow, w.source, w.sink, GS_MIN(most - c->cost, GS_COST_INF));
    clear_seen(&w);
    if (c->cost >= most)
        return;
    const uint32_t settled = w.top;
    for_each_goal(&w, settle);
    for (uint32_t i = settled; i < w.top; i++) {
        const uint32_t v = c->search.stack[i];
        const gs_node *n = at(c, v);
        c->keep.stored[v] |= is_kept(c, 4 * v + c->search.seen[v]);
        if (c->search.seen[v] != GS_CUT_LOADED && !gs_compile__is_sum(n))
            for (uint32_t k = 0; k < gs_node_inputs(n); k++)
                settle(&w, n->in[k]);
    }
    if (notes)
        keep_values(&w, settled);
    clear_seen(&w);
}

/* ---- all stages, and what is otherwise than in the cut that is noted ---- */

/* Stages later than `first` see nothing of it. */
typedef struct gs_change {
    uint32_t first;
    uint32_t value;    /* may be stored now, or may not; or GS_IR_NONE */
    uint32_t from, to; /* stages of an output; 0: none */
    bool all;          /* nothing is noted */
} gs_change;

/* Does stage t look at what is otherwise? What later ones store is in keep.stored now, and in search.stored was. */
static bool is_affected(const gs_cut *c, const gs_change *x, uint32_t t)
{
    const bool *const now = c->keep.stored, *const before = c->search.stored;

    if (x->all || t == x->from || t == x->to)
        return true;
    for (uint32_t i = c->when.level_start[t]; i < c->when.level_start[t + 1]; i++)
        if (now[c->when.by_level[i]] != before[c->when.by_level[i]])
            return true;
    for (uint32_t i = c->out.start[t]; i < c->out.end[t]; i++) {
        const uint32_t v = gs_cut_node(c->out.value[i]);
        if (v == x->value || now[v] != before[v])
            return true;
    }
    return false;
}

static void store_kept(const gs_cut *c, uint32_t t, bool *stored)
{
    for (uint32_t i = c->out.start[t]; i < c->out.end[t]; i++)
        stored[gs_cut_node(c->out.value[i])] |= is_kept(c, c->out.value[i]);
}

/* Finds for each value the first stage that looks at it, and that stores it, stages from the last to the first. */
static void find_first(gs_cut *c)
{
    memset(c->search.met, 0, c->nodes * sizeof(*c->search.met));
    memset(c->search.since, 0, c->nodes * sizeof(*c->search.since));
    for (uint32_t t = 1; t <= c->stages; t++)
        for (uint32_t i = c->out.start[t]; i < c->out.end[t]; i++) {
            const uint32_t v = gs_cut_node(c->out.value[i]);
            c->search.met[v] = t;
            if (is_kept(c, c->out.value[i]) && !c->keep.must_store[v])
                c->search.since[v] = t;
        }
}

/* Is the cost of all stages less than `most`? Those that `x` does not change cost what they did. `notes`: it is, and
 * the cut is noted. */
static bool is_less(gs_cut *c, const gs_change *x, bool notes, uint64_t most)
{
    c->cost = 0;
    for (uint32_t t = c->stages; t > x->first; t--)
        c->cost += c->search.cost[t];
    for (uint32_t v = 0; v < c->nodes; v++)
        c->keep.stored[v] = c->search.stored[v] = c->keep.must_store[v] || c->search.since[v] > x->first;
    for (uint32_t t = x->first; t > 0 && c->cost < most; t--) {
        const uint64_t before = c->cost;
        const bool affected = is_affected(c, x, t);
        store_kept(c, t, c->search.stored);
        if (affected)
            cut_stage(c, t, notes, most);
        else
            store_kept(c, t, c->keep.stored);
        c->cost += affected ? 0 : c->search.cost[t];
        if (notes)
            c->search.cost[t] = c->cost - before;
    }
    if (notes)
        find_first(c);
    return c->cost < most;
}

/* Where outputs are is new. */
static void sort_outputs(gs_cut *c)
{
    gs_compile__sort_by_stage(c, c->when.place, gs_ir_outputs(c->ir), c->when.by_place, c->when.place_start);
}

/* All stages, with notes of how. */
static void evaluate(gs_cut *c)
{
    const gs_change all = {.first = c->stages, .value = GS_IR_NONE, .all = true};

    sort_outputs(c);
    (void)is_less(c, &all, true, UINT64_MAX);
}

/* ---- local search ---- */

typedef struct gs_search {
    uint64_t best;
    uint64_t left; /* evaluations, so that a huge model compiles in bounded time */
} gs_search;

/* One more evaluation; true when it is better than the best so far, which it then is. */
static bool improves(gs_cut *c, gs_search *s, const gs_change *x)
{
    if (s->left == 0)
        return false;
    s->left--;
    if (!is_less(c, x, false, s->best))
        return false;
    (void)is_less(c, x, true, UINT64_MAX);
    s->best = c->cost;
    return true;
}

static bool try_forbidding(gs_cut *c, gs_search *s)
{
    bool better = false;
    for (uint32_t v = 0; v < c->nodes; v++)
        c->search.candidate[v] = c->search.since[v] > 0;
    for (uint32_t v = 0; v < c->nodes && s->left > 0; v++) {
        const gs_change x = {.first = c->search.met[v], .value = v};
        if (!c->search.candidate[v])
            continue;
        c->keep.may_not_store[v] = true;
        if (improves(c, s, &x))
            better = true;
        else
            c->keep.may_not_store[v] = false;
    }
    return better;
}

static bool try_later_gradients(gs_cut *c, gs_search *s)
{
    bool better = false;
    for (uint32_t o = 0; o < gs_ir_outputs(c->ir); o++) {
        const gs_output *out = gs_ir_output(c->ir, o);
        const uint32_t first = c->when.level[out->node];
        const uint32_t last = GS_MIN(c->stages, first + 3);
        uint32_t choice = c->when.place[o];
        if (out->kind != GS_OUTPUT_GRAD || gs_node_inputs(at(c, out->node)) < 2)
            continue; /* a sum of rows belongs where the rows are */
        for (uint32_t t = first; t <= last; t++) {
            const gs_change x = {.first = GS_MAX(t, choice), .value = GS_IR_NONE, .from = choice, .to = t};
            if (t == choice)
                continue;
            c->when.place[o] = t;
            sort_outputs(c);
            if (improves(c, s, &x)) {
                choice = t;
                better = true;
            }
        }
        c->when.place[o] = choice;
        sort_outputs(c);
    }
    return better;
}

/* ---- graphs that were searched before ---- */

static uint64_t hash_node(uint64_t h, const gs_node *n)
{
    const uint32_t part[] = {n->op, n->type, n->dtype, n->width, n->dims, n->rows, n->picked, n->fixed, n->moving,
                             n->site, n->self, n->in[0], n->in[1], n->in[2]};
    return gs_hash64_seeded(part, sizeof(part), h);
}

/* What files call things, and how they start, nothing here depends on. */
static uint64_t hash_graph(const gs_ir *ir, uint64_t h)
{
    for (uint32_t i = 0; i < gs_ir_count(ir); i++)
        h = hash_node(h, gs_ir_node(ir, i));
    for (uint32_t o = 0; o < gs_ir_outputs(ir); o++) {
        const gs_output *const out = gs_ir_output(ir, o);
        const uint32_t of[] = {out->kind, out->node, out->param};
        h = gs_hash64_seeded(of, sizeof(of), h);
    }
    return h;
}

/* All that the search depends on. */
static uint64_t question_of(const gs_cut *c)
{
    const uint32_t part[] = {c->nodes, gs_ir_outputs(c->ir), gs_ir_root(c->ir), c->scales, c->no_fuse, c->rest, c->read,
                             c->rest_width, (uint32_t)c->flop_cost};
    const uint64_t h = hash_graph(c->ir, gs_hash64(part, sizeof(part)));
    return gs_hash64_seeded(c->keep.must_store, c->nodes * sizeof(*c->keep.must_store), h);
}

/* What was found: the stage of each output, then which nodes the search ruled out. */
static bool recall_found(gs_cut *c, const gs_cuts *cuts, uint64_t question)
{
    const uint32_t outputs = gs_ir_outputs(c->ir);
    uint32_t k = 0;

    while (k < GS_CUTS && (cuts->known[k].found == NULL || cuts->known[k].question != question))
        k++;
    if (k == GS_CUTS)
        return false;
    memcpy(c->when.place, cuts->known[k].found, outputs * sizeof(*c->when.place));
    memcpy(c->keep.may_not_store, cuts->known[k].found + outputs, c->nodes * sizeof(*c->keep.may_not_store));
    return true;
}

/* Where memory is short it is not known. */
static void note_found(const gs_cut *c, gs_cuts *cuts, uint64_t question)
{
    const uint32_t outputs = gs_ir_outputs(c->ir), k = cuts->next;
    const size_t words = outputs + gs_div_up(c->nodes * sizeof(*c->keep.may_not_store), sizeof(uint32_t));
    uint32_t *const found = gs_malloc_array(words, sizeof(*found));

    if (found == NULL)
        return;
    memcpy(found, c->when.place, outputs * sizeof(*c->when.place));
    memcpy(found + outputs, c->keep.may_not_store, c->nodes * sizeof(*c->keep.may_not_store));
    gs_free(cuts->known[k].found);
    cuts->known[k].question = question;
    cuts->known[k].found = found;
    cuts->next = (k + 1) % GS_CUTS;
}

void gs_cuts_drop(gs_cuts *c)
{
    for (uint32_t k = 0; k < GS_CUTS; k++)
        gs_free(c->known[k].found);
    *c = (gs_cuts){0};
}

static void search_sets(gs_cut *c, gs_cuts *cuts)
{
    gs_search s = {.left = GS_SEARCH_WORK / ((uint64_t)c->nodes * c->stages)};
    const uint64_t question = cuts == NULL ? 0 : question_of(c);

    if (cuts != NULL && recall_found(c, cuts, question)) {
        evaluate(c);
        return;
    }
    evaluate(c);
    s.best = c->cost;
    while (s.left > 0) {
        const bool a = try_later_gradients(c, &s);
        const bool b = try_forbidding(c, &s);
        if (!a && !b)
            break;
    }
    c->cost = s.best;
    if (cuts != NULL && c->failed == GS_OK)
        note_found(c, cuts, question);
}

static void take_stages(gs_arena *m, gs_cut_stages *s, uint32_t nodes, size_t stages, size_t outputs)
{
    s->level = gs_arena_take(m, nodes, sizeof(*s->level));
    s->by_level = gs_arena_take(m, nodes, sizeof(*s->by_level));
    s->level_start = gs_arena_take(m, stages + 2, sizeof(*s->level_start));
    s->place = gs_arena_take(m, outputs + 1, sizeof(*s->place));
    s->by_place = gs_arena_take(m, outputs + 1, sizeof(*s->by_place));
    s->place_start = gs_arena_take(m, stages + 2, sizeof(*s->place_start));
}

static void take_sums(gs_arena *m, gs_cut_sums *s, uint32_t nodes, size_t stages)
{
    s->operand = gs_arena_take(m, nodes, sizeof(*s->operand));
    s->scale = gs_arena_take(m, nodes, sizeof(*s->scale));
    s->partner = gs_arena_take(m, nodes, sizeof(*s->partner));
    s->direction = gs_arena_take(m, stages, sizeof(*s->direction));
    s->count = gs_arena_take(m, stages, sizeof(*s->count));
    s->attend = gs_arena_take(m, nodes, sizeof(*s->attend));
    s->lse = gs_arena_take(m, nodes, sizeof(*s->lse));
}

static void take_kept(gs_arena *m, gs_cut_kept *k, uint32_t nodes)
{
    k->must_store = gs_arena_take(m, nodes, sizeof(*k->must_store));
    k->gathered = gs_arena_take(m, nodes, sizeof(*k->gathered));
    k->target = gs_arena_take(m, nodes, sizeof(*k->target));
    k->full = gs_arena_take(m, nodes, sizeof(*k->full));
    k->may_not_store = gs_arena_take(m, nodes, sizeof(*k->may_not_store));
    k->stored = gs_arena_take(m, nodes, sizeof(*k->stored));
}

static void take_search(gs_arena *m, gs_cut_search *s, uint32_t nodes, size_t stages, uint32_t outputs)
{
    s->candidate = gs_arena_take(m, nodes, sizeof(*s->candidate));
    s->marks.bits = gs_arena_take(m, nodes, sizeof(*s->marks.bits));
    s->marks.node = gs_arena_take(m, nodes, sizeof(*s->marks.node));
    s->flow = gs_compile__flow_new(m, 2 * nodes + 2, 6 * nodes + outputs + 8);
    s->seen = gs_arena_take(m, nodes, sizeof(*s->seen));
    s->vertex = gs_arena_take(m, nodes, sizeof(*s->vertex));
    s->met = gs_arena_take(m, nodes, sizeof(*s->met));
    s->since = gs_arena_take(m, nodes, sizeof(*s->since));
    s->stored = gs_arena_take(m, nodes, sizeof(*s->stored));
    s->load = gs_arena_take(m, nodes, sizeof(*s->load));
    s->keep = gs_arena_take(m, nodes, sizeof(*s->keep));
    s->compute = gs_arena_take(m, nodes, sizeof(*s->compute));
    s->cost = gs_arena_take(m, stages + 1, sizeof(*s->cost));
    /* find_levels() may meet a node once an input */
    s->stack = gs_arena_take(m, 4 * (size_t)nodes + 4, sizeof(*s->stack));
}

static gs_cut *cut_new(const gs_ir *ir)
{
    const uint32_t n = gs_ir_count(ir), stages = n + 2;
    gs_cut *c = gs_calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->ir = ir;
    c->nodes = n;
    c->out.start = gs_arena_take(&c->memory, stages, sizeof(*c->out.start));
    c->out.end = gs_arena_take(&c->memory, stages, sizeof(*c->out.end));
    take_stages(&c->memory, &c->when, n, stages, gs_ir_outputs(ir));
    take_sums(&c->memory, &c->sum, n, stages);
    take_kept(&c->memory, &c->keep, n);
    take_search(&c->memory, &c->search, n, stages, gs_ir_outputs(ir));
    if (!c->memory.is_short)
        return c;
    gs_compile__cut_free(c);
    return NULL;
}

/* What stages compute and load is listed in the order of the graph, without what they only looked at, and stored values
 * are known. */
static void list_values(gs_cut *c)
{
    GS_FREED uint32_t *const all = c->out.value;

    c->out.value = gs_malloc_array((size_t)c->out.count + 1, sizeof(*all));
    c->out.room = c->out.count + 1;
    c->out.count = 0;
    for (uint32_t v = 0; v < c->nodes; v++)
        c->keep.stored[v] = c->keep.must_store[v] || c->search.since[v] > 0;
    for (uint32_t t = c->stages; t > 0 && c->out.value != NULL; t--) {
        const uint32_t first = c->out.count;
        for (uint32_t i = c->out.start[t]; i < c->out.end[t]; i++)
            if (gs_cut_state_of(all[i]) != GS_CUT_UNUSED)
                c->out.value[c->out.count++] = all[i];
        c->out.start[t] = first;
        c->out.end[t] = c->out.count;
        if (c->out.count - first > 1)
            qsort(c->out.value + first, c->out.count - first, sizeof(*all), gs_by_number);
    }
    c->failed = c->out.value == NULL ? GS_ENOMEM : c->failed;
}

static uint64_t flops_per_byte(const gs_compile_options *o)
{
    if (o->in_memory)
        return GS_FLOPS_PER_BYTE_IN_MEMORY;
    return o->recompute ? GS_FLOPS_PER_BYTE_WAITING : GS_FLOPS_PER_BYTE;
}

static gs_status cut(gs_cut **out, const gs_ir *ir, const gs_compile_options *options, bool search_more, bool scales)
{
    gs_cut *c = cut_new(ir);

    if (c == NULL)
        return gs_fail(GS_ENOMEM, "no memory to cut the model into stages");
    c->no_fuse = options->no_fuse;
    c->scales = scales;
    c->rest = options->rest;
    c->read = options->read;
    c->rest_width = options->rest_width;
    c->flop_cost = GS_COST_BYTE / flops_per_byte(options);
    for (uint32_t o = 0; o < gs_ir_outputs(ir); o++)
        if (gs_compile__is_stored(gs_ir_output(ir, o)))
            c->keep.must_store[gs_ir_output(ir, o)->node] = c->keep.full[gs_ir_output(ir, o)->node] = true;
    if (options->store_logits)
        c->keep.must_store[gs_ir_root(ir)] = c->keep.full[gs_ir_root(ir)] = true;
    gs_compile__find_levels(c);
    find_costs(c);
    if (search_more)
        search_sets(c, options->cuts);
    else
        evaluate(c);
    list_values(c);
    if (c->failed != GS_OK) {
        gs_compile__cut_free(c);
        return gs_fail(GS_ENOMEM, "no memory to cut the model into stages");
    }
    c->cost += fixed_cost(c, options->edges_per_vertex);
    *out = c;
    return GS_OK;
}

/* A number for each row costs an edge 4 bytes more, and a copy of the rows is not written. */
gs_status gs_compile__cut(gs_cut **out, const gs_ir *ir, const gs_compile_options *options, bool search_more)
{
    GS_ENDS(gs_compile__cut_free_at) gs_cut *c = NULL;
    GS_ENDS(gs_compile__cut_free_at) gs_cut *scaled = NULL;

    GS_TRY(gs_compile__check_stop(options));
    GS_TRY(cut(&c, ir, options, search_more, false));
    if (c->may_scale)
        GS_TRY(cut(&scaled, ir, options, search_more, true));
    gs_cut **const better = scaled != NULL && scaled->cost < c->cost ? &scaled : &c;
    *out = *better;
    *better = NULL;
    return GS_OK;
}

/* All that the cost depends on. */
static uint64_t cost_question(const gs_ir *ir, const gs_compile_options *o, bool search_more)
{
    const uint32_t part[] = {gs_ir_count(ir), gs_ir_outputs(ir), gs_ir_root(ir), o->no_fuse, o->store_logits, o->rest,
                             o->read, o->rest_width, (uint32_t)flops_per_byte(o), search_more};
    const uint64_t h = gs_hash64(part, sizeof(part));
    return hash_graph(ir, gs_hash64_seeded(&o->edges_per_vertex, sizeof(o->edges_per_vertex), h)) | 1; /* 0: none */
}

gs_status gs_compile__cut_cost(uint64_t *cost, const gs_ir *ir, const gs_compile_options *options, bool search)
{
    gs_cuts *const cuts = options->cuts;
    const uint64_t question = cuts == NULL ? 0 : cost_question(ir, options, search);
    gs_cut *c = NULL;

    for (uint32_t k = 0; cuts != NULL && k < GS_CUTS; k++)
        if (cuts->cost[k].question == question) {
            *cost = cuts->cost[k].cost;
            return GS_OK;
        }
    GS_TRY(gs_compile__cut(&c, ir, options, search));
    *cost = c->cost;
    gs_compile__cut_free(c);
    if (cuts != NULL) {
        cuts->cost[cuts->next_cost].question = question;
        cuts->cost[cuts->next_cost].cost = *cost;
        cuts->next_cost = (cuts->next_cost + 1) % GS_CUTS;
    }
    return GS_OK;
}
