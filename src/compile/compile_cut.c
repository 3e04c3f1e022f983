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
 *   floating-point operations once more is worth one byte (GS_FLOPS_PER_BYTE).
 *
 * For one stage, given what the earlier ones may store, that is a minimum cut: a
 * vertex of the network is a value; cutting it means loading it (4 bytes an element, and as
 * much again to store it, unless it is an array anyway); on the far side of the cut
 * everything is computed from what was cut. Sums of other stages and the
 * loss (it counts metrics once) can only be loaded. Stages are cut from the last to the first, so that what
 * a stage loads is known as an array when the earlier ones are looked at. That is
 * greedy between stages; a local search then forbids stored values one at a time, and tries
 * later stages for the gradients of parameters, and keeps what costs less.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "compile/compile_internal.h"

/* An SSD reads some 3 GB/s and a few cores do some 100 GFLOP/s; between GPU and host the ratio
 * is higher. */
#define GS_FLOPS_PER_BYTE 32
/* The same where an epoch waits for the disk, and the processor has nothing else to do. */
#define GS_FLOPS_PER_BYTE_WAITING 512
/* Nodes times stages that one local search may look at: well below a second. */
#define GS_SEARCH_WORK 400000u
/* Values that one stage's network may have before those that can be loaded are taken as such: what lies behind them,
 * as far as the first layer where no sum is between, is not made again. */
#define GS_NETWORK_VALUES 256u
/* Where a stage's own values are more than these, no cut is looked for, as that takes the square of them in the worst
 * case: what can be loaded is. */
#define GS_NETWORK_MOST 512u

static const gs_node *at(const gs_cut *c, uint32_t i)
{
    return gs_ir_node(c->ir, i);
}

static bool is_sum(const gs_node *n)
{
    return gs_compile__is_sum(n);
}

static bool is_statistic(const gs_node *n)
{
    return gs_op_classof(n->op) == GS_CLASS_STATISTIC;
}

/* Without rows: nothing to load or compute in stage t. */
static bool is_free(const gs_cut *c, uint32_t i, uint32_t t)
{
    const gs_node *n = at(c, i);
    return n->op == GS_OP_PARAM || n->op == GS_OP_CONST || (is_statistic(n) && c->level[i] < t);
}

/* Writing wears the disk, a quarter of a byte more for each. It tells a rounded copy, which is written and read, from
 * the float32 array that edges need anyway, which is only read again: the same bytes. */
static uint64_t wear_cost(const gs_cut *c, uint32_t v)
{
    return c->stored[v] || gs_compile__stored_type(c, v) == GS_F32 ? 0 : gs_compile__row_cost(c, v) / 4;
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
    return flops * c->flop_cost;
}

void gs_compile__cut_free(gs_cut *c)
{
    if (c == NULL)
        return;
    gs_free(c->level);
    gs_free(c->by_level);
    gs_free(c->level_start);
    gs_free(c->operand);
    gs_free(c->scale);
    gs_free(c->partner);
    gs_free(c->marks.bits);
    gs_free(c->marks.node);
    gs_free(c->by_place);
    gs_free(c->place_start);
    gs_free(c->attend);
    gs_free(c->lse);
    gs_free(c->direction);
    gs_free(c->sums);
    gs_free(c->place);
    gs_free(c->must_store);
    gs_free(c->full);
    gs_free(c->may_not_store);
    gs_free(c->stored);
    gs_free(c->candidate);
    gs_free(c->value);
    gs_free(c->value_start);
    gs_free(c->value_end);
    gs_free(c->seen);
    gs_free(c->vertex);
    gs_free(c->stack);
    gs_compile__flow_free(c->flow);
    gs_free(c);
}

/* ---- one stage as a network: value v is the arc in_of(v) -> out_of(v) ---- */

typedef struct gs_network {
    gs_cut *c;
    uint32_t stage, top; /* top: of c->stack */
    uint32_t source, sink;
    bool simple; /* no network: what can be loaded is */
} gs_network;

static uint32_t in_of(const gs_network *w, uint32_t v) { return w->c->vertex[v]; }
static uint32_t out_of(const gs_network *w, uint32_t v) { return w->c->vertex[v] + 1; }

static void visit(gs_network *w, uint32_t v)
{
    gs_cut *const c = w->c;
    if (c->seen[v])
        return;
    c->seen[v] = 1;
    c->stack[w->top++] = v;
    c->vertex[v] = gs_compile__flow_vertex(c->flow);
    (void)gs_compile__flow_vertex(c->flow);
}

static void need(gs_network *w, uint32_t v)
{
    visit(w, v);
    gs_compile__flow_arc(w->c->flow, out_of(w, v), w->sink, GS_COST_INF);
}

/* Calls `fn` for what stage t has to produce. */
static void for_each_goal(gs_network *w, void (*fn)(gs_network *w, uint32_t v))
{
    const gs_cut *c = w->c;
    for (uint32_t i = c->level_start[w->stage]; i < c->level_start[w->stage + 1]; i++) {
        const uint32_t v = c->by_level[i];
        if (c->stored[v] || at(c, v)->op == GS_OP_XENT_GRAD || is_statistic(at(c, v)))
            fn(w, v);
    }
    for (uint32_t i = c->place_start[w->stage]; i < c->place_start[w->stage + 1]; i++) {
        const gs_output *const o = gs_ir_output(c->ir, c->by_place[i]);
        if (o->kind != GS_OUTPUT_LOGITS && o->kind != GS_OUTPUT_STORE)
            fn(w, o->node);
    }
}

/* GS_COST_INF: it cannot be loaded. */
static uint64_t load_cost(const gs_network *w, uint32_t v)
{
    const gs_cut *c = w->c;
    const gs_node *n = at(c, v);
    const bool rows = gs_op_classof(n->op) != GS_CLASS_REDUCE && n->op != GS_OP_XENT && !is_statistic(n);

    if (n->op == GS_OP_INPUT)
        return gs_compile__row_cost(c, v);
    if (!rows || c->level[v] >= w->stage || (!c->stored[v] && c->may_not_store[v]))
        return GS_COST_INF;
    return gs_compile__row_cost(c, v) * (c->stored[v] ? 1 : 2) + wear_cost(c, v);
}

static void add_value(gs_network *w, uint32_t v)
{
    gs_cut *c = w->c;
    const gs_node *n = at(c, v);
    const bool here_only = is_sum(n) || n->op == GS_OP_XENT_GRAD;

    if (is_free(c, v, w->stage) || (is_sum(n) && c->level[v] == w->stage))
        return;
    const uint64_t load = load_cost(w, v);
    const bool far = load < GS_COST_INF && w->top > GS_NETWORK_VALUES;
    const uint64_t compute =
        n->op == GS_OP_INPUT || far || (here_only && c->level[v] != w->stage) ? GS_COST_INF : compute_cost(c, n);
    gs_compile__flow_arc(c->flow, w->source, in_of(w, v), compute);
    gs_compile__flow_arc(c->flow, in_of(w, v), out_of(w, v), load);
    for (uint32_t k = 0; compute < GS_COST_INF && k < gs_node_inputs(n); k++) {
        visit(w, n->in[k]);
        gs_compile__flow_arc(c->flow, out_of(w, n->in[k]), in_of(w, v), GS_COST_INF);
    }
}

static bool is_loaded(const gs_network *w, uint32_t v)
{
    const gs_node *n = at(w->c, v);
    if (!w->simple)
        return gs_compile__flow_source_side(w->c->flow, in_of(w, v));
    return !(is_sum(n) && w->c->level[v] == w->stage) && load_cost(w, v) < GS_COST_INF;
}

static void settle(gs_network *w, uint32_t v)
{
    gs_cut *c = w->c;
    if (c->seen[v] != GS_CUT_UNUSED || is_free(c, v, w->stage))
        return;
    c->seen[v] = is_loaded(w, v) ? GS_CUT_LOADED : GS_CUT_COMPUTED;
    c->stack[w->top++] = v;
    if (w->simple && !(is_sum(at(c, v)) && c->level[v] == w->stage))
        c->cost += c->seen[v] == GS_CUT_LOADED ? load_cost(w, v) : compute_cost(c, at(c, v));
}

static void clear_seen(gs_network *w)
{
    for (uint32_t i = 0; i < w->top; i++)
        w->c->seen[w->c->stack[i]] = 0;
    w->top = 0;
}

/* Appends what was settled to the values of all stages. */
static void keep_values(const gs_network *w)
{
    gs_cut *const c = w->c;

    c->value_start[w->stage] = c->value_end[w->stage] = c->values;
    if (c->values + w->top > c->value_room) {
        const uint32_t room = GS_MAX(2 * c->value_room, c->values + w->top);
        uint32_t *const more = gs_realloc(c->value, room * sizeof(*more));
        if (more == NULL) {
            c->failed = GS_ENOMEM;
            return;
        }
        c->value = more;
        c->value_room = room;
    }
    for (uint32_t i = 0; i < w->top; i++)
        c->value[c->values++] = 4 * c->stack[i] + c->seen[c->stack[i]];
    c->value_end[w->stage] = c->values;
}

/* Decides stage t; adds its cost to c->cost and marks what it wants stored. */
static void cut_stage(gs_cut *c, uint32_t t)
{
    gs_network w = {.c = c, .stage = t};

    gs_compile__flow_reset(c->flow);
    w.source = gs_compile__flow_vertex(c->flow);
    w.sink = gs_compile__flow_vertex(c->flow);
    for_each_goal(&w, need);
    for (uint32_t i = 0; i < w.top; i++)
        add_value(&w, c->stack[i]);
    w.simple = w.top > GS_NETWORK_MOST;
    if (!w.simple)
        c->cost += gs_compile__flow_run(c->flow, w.source, w.sink);
    clear_seen(&w);
    for_each_goal(&w, settle);
    for (uint32_t i = 0; i < w.top; i++) {
        const gs_node *n = at(c, c->stack[i]);
        if (c->seen[c->stack[i]] == GS_CUT_LOADED)
            c->stored[c->stack[i]] = n->op != GS_OP_INPUT;
        else if (!is_sum(n))
            for (uint32_t k = 0; k < gs_node_inputs(n); k++)
                settle(&w, n->in[k]);
    }
    keep_values(&w);
    clear_seen(&w);
}

static uint64_t evaluate(gs_cut *c)
{
    c->cost = 0;
    c->values = 0;
    memcpy(c->stored, c->must_store, c->nodes * sizeof(*c->stored));
    gs_compile__sort_by_stage(c, c->place, gs_ir_outputs(c->ir), c->by_place, c->place_start);
    for (uint32_t t = c->stages; t > 0; t--)
        cut_stage(c, t);
    return c->cost;
}

/* ---- local search ---- */

typedef struct gs_search {
    uint64_t best;
    uint64_t left; /* evaluations, so that a huge model compiles in bounded time */
} gs_search;

/* One more evaluation; true when it is better than the best so far, which it then is. */
static bool improves(gs_cut *c, gs_search *s)
{
    if (s->left == 0)
        return false;
    s->left--;
    if (evaluate(c) >= s->best)
        return false;
    s->best = c->cost;
    return true;
}

static bool try_forbidding(gs_cut *c, gs_search *s)
{
    bool better = false;
    evaluate(c);
    for (uint32_t v = 0; v < c->nodes; v++)
        c->candidate[v] = c->stored[v] && !c->must_store[v];
    for (uint32_t v = 0; v < c->nodes && s->left > 0; v++) {
        if (!c->candidate[v])
            continue;
        c->may_not_store[v] = true;
        if (improves(c, s))
            better = true;
        else
            c->may_not_store[v] = false;
    }
    return better;
}

static bool try_later_gradients(gs_cut *c, gs_search *s)
{
    bool better = false;
    for (uint32_t o = 0; o < gs_ir_outputs(c->ir); o++) {
        const gs_output *out = gs_ir_output(c->ir, o);
        const uint32_t first = c->level[out->node];
        const uint32_t last = GS_MIN(c->stages, first + 3);
        uint32_t choice = c->place[o];
        if (out->kind != GS_OUTPUT_GRAD || gs_node_inputs(at(c, out->node)) < 2)
            continue; /* a sum of rows belongs where the rows are */
        for (uint32_t t = first; t <= last; t++) {
            c->place[o] = t;
            if (t != choice && improves(c, s)) {
                choice = t;
                better = true;
            }
        }
        c->place[o] = choice;
    }
    return better;
}

static void search_sets(gs_cut *c)
{
    gs_search s = {.left = GS_SEARCH_WORK / ((uint64_t)c->nodes * c->stages)};
    s.best = evaluate(c);
    while (s.left > 0) {
        const bool a = try_later_gradients(c, &s);
        const bool b = try_forbidding(c, &s);
        if (!a && !b)
            break;
    }
    evaluate(c);
}

static gs_cut *cut_new(const gs_ir *ir)
{
    const uint32_t n = gs_ir_count(ir), stages = n + 2;
    gs_cut *c = gs_calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->ir = ir;
    c->nodes = n;
    c->level = gs_calloc(n, sizeof(*c->level));
    c->by_level = gs_calloc(n, sizeof(*c->by_level));
    c->level_start = gs_calloc((size_t)stages + 2, sizeof(*c->level_start));
    c->operand = gs_calloc(n, sizeof(*c->operand));
    c->scale = gs_calloc(n, sizeof(*c->scale));
    c->partner = gs_calloc(n, sizeof(*c->partner));
    c->marks.bits = gs_calloc(n, sizeof(*c->marks.bits));
    c->marks.node = gs_calloc(n, sizeof(*c->marks.node));
    c->attend = gs_calloc(n, sizeof(*c->attend));
    c->lse = gs_calloc(n, sizeof(*c->lse));
    c->seen = gs_calloc(n, sizeof(*c->seen));
    c->vertex = gs_calloc(n, sizeof(*c->vertex));
    c->value_start = gs_calloc(stages, sizeof(*c->value_start));
    c->value_end = gs_calloc(stages, sizeof(*c->value_end));
    c->by_place = gs_calloc((size_t)gs_ir_outputs(ir) + 1, sizeof(*c->by_place));
    c->place_start = gs_calloc((size_t)stages + 2, sizeof(*c->place_start));
    c->direction = gs_calloc(stages, sizeof(*c->direction));
    c->sums = gs_calloc(stages, sizeof(*c->sums));
    c->place = gs_calloc((size_t)gs_ir_outputs(ir) + 1, sizeof(*c->place));
    c->must_store = gs_calloc(n, sizeof(*c->must_store));
    c->full = gs_calloc(n, sizeof(*c->full));
    c->may_not_store = gs_calloc(n, sizeof(*c->may_not_store));
    c->stored = gs_calloc(n, sizeof(*c->stored));
    c->candidate = gs_calloc(n, sizeof(*c->candidate));
    c->stack = gs_calloc(4 * (size_t)n + 4, sizeof(*c->stack)); /* find_levels() may meet a node once an input */
    c->flow = gs_compile__flow_new(2 * n + 2, 6 * n + gs_ir_outputs(ir) + 8);
    if (c->level == NULL || c->by_level == NULL || c->level_start == NULL || c->operand == NULL || c->scale == NULL ||
        c->partner == NULL || c->marks.bits == NULL || c->marks.node == NULL || c->attend == NULL || c->lse == NULL ||
        c->seen == NULL || c->vertex == NULL || c->value_start == NULL || c->value_end == NULL ||
        c->by_place == NULL || c->place_start == NULL || c->direction == NULL || c->sums == NULL || c->place == NULL ||
        c->must_store == NULL || c->full == NULL || c->may_not_store == NULL || c->stored == NULL ||
        c->candidate == NULL || c->stack == NULL || c->flow == NULL) {
        gs_compile__cut_free(c);
        return NULL;
    }
    return c;
}

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void sort_values(gs_cut *c)
{
    for (uint32_t t = 1; t <= c->stages; t++)
        if (c->value_end[t] - c->value_start[t] > 1)
            qsort(c->value + c->value_start[t], c->value_end[t] - c->value_start[t], sizeof(*c->value), by_value);
}

static gs_status cut(gs_cut **out, const gs_ir *ir, const gs_compile_options *options, bool search_more, bool scales)
{
    gs_cut *c = cut_new(ir);

    if (c == NULL)
        return gs_fail(GS_ENOMEM, "no memory to cut the model into stages");
    c->no_fuse = options->no_fuse;
    c->scales = scales;
    c->rest = options->rest;
    c->rest_width = options->rest_width;
    c->flop_cost = GS_COST_BYTE / (options->recompute ? GS_FLOPS_PER_BYTE_WAITING : GS_FLOPS_PER_BYTE);
    for (uint32_t o = 0; o < gs_ir_outputs(ir); o++)
        if (gs_ir_output(ir, o)->kind == GS_OUTPUT_STORE)
            c->must_store[gs_ir_output(ir, o)->node] = c->full[gs_ir_output(ir, o)->node] = true;
    if (options->store_logits)
        c->must_store[gs_ir_root(ir)] = c->full[gs_ir_root(ir)] = true;
    gs_compile__find_levels(c);
    if (search_more)
        search_sets(c);
    else
        evaluate(c);
    if (c->failed != GS_OK) {
        gs_compile__cut_free(c);
        return gs_fail(GS_ENOMEM, "no memory to cut the model into stages");
    }
    sort_values(c);
    c->cost += gs_compile__fixed_cost(c, options->edges_per_vertex);
    *out = c;
    return GS_OK;
}

/* A number for each row costs an edge 4 bytes more, and a copy of the rows is not written. */
gs_status gs_compile__cut(gs_cut **out, const gs_ir *ir, const gs_compile_options *options, bool search_more)
{
    gs_cut *c = NULL, *scaled = NULL;
    gs_status st = gs_compile__check_stop(options);

    if (st == GS_OK)
        st = cut(&c, ir, options, search_more, false);

    if (st == GS_OK && c->may_scale)
        st = cut(&scaled, ir, options, search_more, true);
    if (st != GS_OK) {
        gs_compile__cut_free(c);
        return st;
    }
    const bool better = scaled != NULL && scaled->cost < c->cost;
    *out = better ? scaled : c;
    gs_compile__cut_free(better ? c : scaled);
    return GS_OK;
}
