/* compile_move.c - products with a weight before or after the edges.
 *
 * A sum over edges, a scalar a vertex and a matrix commute:
 *     sum_in(s x) @ W' = sum_in(s (x @ W')),   s (x @ W') = (s x) @ W',
 * also where each edge counts as much as its weight.
 * "Transform first" pushes a product towards its inputs through sums, scalars and
 * additions; "aggregate first" pulls it the other way. Which is better is a matter of the
 * widths and of what has to be stored; compile.c tries both and counts bytes.
 *
 * With a matrix for each edge type, sums by type stand side by side and are multiplied by all matrices at once.
 * Transform first is then the products with all matrices side by side for every vertex (fan), of which an edge u -> v
 * of type t takes its own:
 *     mean over types' sums: split_in(x) / c @ [W1; W2; ..] = sum_in((x @ Wt)(u) / c[t](v)),
 * also where the sums by type are mixed into as many as there are bases. No vertex holds its sums by type. In typed
 * products (gs_compile__typed) each edge makes its own product, x(u) @ Wt, and no vertex holds its products by type
 * either.
 */
#include <stdlib.h>
#include <string.h>

#include "compile/compile_internal.h"

/* ---- values had back --------------------------------------------------- */

/* X again from x / s, where x / s is an array and x would become one too.
 *
 * The backward pass of a mean needs a gradient g twice: g / degree goes to the edges, and so
 * is stored, and g itself is read by later stages (for SAGE's own-row weight). A later stage
 * has g back as (g / degree) * degree, and no second array is written. s is a scalar a
 * vertex; it is not 0, or x / s would not have been finite. The values differ by rounding only.
 */

#define MOST_SEARCHED 200 /* nodes of a graph whose stages are searched for each candidate */
/* Nodes of all changed graphs together up to which quotients are tried one by one; else all of them at once. */
#define MOST_ONE_BY_ONE 300000u

typedef struct gs_undo {
    uint32_t x, y, s;  /* y = x / s */
    uint32_t s_new;    /* in the graph being made, once it is there */
    const bool *later; /* [nodes] computed in some stage after the one that makes x */
} gs_undo;

static uint32_t rewrite_quotient(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
{
    gs_undo *u = context;
    const gs_node *n = gs_ir_node(from, i);
    uint32_t again[GS_IR_INPUTS], made;

    memcpy(again, in, sizeof(again));
    for (uint32_t k = 0; u->later[i] && u->s_new != GS_IR_NONE && k < gs_node_inputs(n); k++)
        if (n->in[k] == u->x) /* the same quotient as y: found again, not made twice */
            again[k] = gs_ir_binary(to, GS_OP_MUL, gs_ir_binary(to, GS_OP_DIV, in[k], u->s_new), u->s_new);
    made = gs_ir_like(to, n, again);
    if (i == u->s)
        u->s_new = made;
    return made;
}

static void find_later(const gs_cut *c, uint32_t x, uint32_t y, bool *later)
{
    for (uint32_t t = c->when.level[x] + 1; t <= c->stages; t++)
        for (uint32_t k = c->out.start[t]; k < c->out.end[t]; k++) {
            const uint32_t i = gs_cut_node(c->out.value[k]);
            later[i] |= i != y && !gs_compile__is_sum(gs_ir_node(c->ir, i)) &&
                        gs_cut_state_of(c->out.value[k]) == GS_CUT_COMPUTED;
        }
}

/* Is the operand of sum `i` a quotient x / s whose x is stored beside it? */
static bool can_undo(const gs_cut *c, uint32_t i)
{
    const gs_node *const y = c->sum.operand[i] == GS_IR_NONE ? NULL : gs_ir_node(c->ir, c->sum.operand[i]);
    return y != NULL && y->op == GS_OP_DIV && gs_ir_node(c->ir, y->in[1])->width == 1 && y->width != 1 &&
           c->keep.stored[y->in[0]] && !c->keep.must_store[y->in[0]];
}

/* `ir` without the second array for the operand of sum `i`, as a new graph; *out stays
 * NULL where there is nothing to undo. */
static gs_status undo(gs_ir **out, const gs_cut *c, uint32_t i)
{
    gs_undo u = {.y = c->sum.operand[i], .s_new = GS_IR_NONE};

    if (!can_undo(c, i))
        return GS_OK;
    u.x = gs_ir_node(c->ir, u.y)->in[0];
    u.s = gs_ir_node(c->ir, u.y)->in[1];
    GS_FREED bool *const later = gs_calloc(c->nodes, sizeof(*later));
    GS_ENDS(gs_ir_free_at) gs_ir *ir = gs_ir_clone(c->ir);
    if (later == NULL || ir == NULL)
        return gs_fail(GS_ENOMEM, "no memory to compile the model");
    find_later(c, u.x, u.y, later);
    u.later = later;
    GS_TRY(gs_ir_rewrite(ir, rewrite_quotient, &u));
    *out = ir;
    ir = NULL; /* now the caller's */
    return GS_OK;
}

/* ---- all quotients at once ---- */

typedef struct gs_undo_all {
    uint32_t *y;    /* [nodes] of an x: its quotient, else GS_IR_NONE */
    uint32_t *last; /* [nodes] last stage that computes it */
    uint32_t *made; /* [nodes] in the graph being made */
    const gs_cut *c;
} gs_undo_all;

static uint32_t rewrite_all(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
{
    gs_undo_all *const u = context;
    const gs_node *const n = gs_ir_node(from, i);
    uint32_t again[GS_IR_INPUTS];

    memcpy(again, in, sizeof(again));
    for (uint32_t k = 0; k < gs_node_inputs(n) && !gs_compile__is_sum(n); k++) {
        const uint32_t x = n->in[k], y = u->y[x];
        const uint32_t s = y == GS_IR_NONE ? GS_IR_NONE : u->made[gs_ir_node(from, y)->in[1]];
        if (s != GS_IR_NONE && i != y && u->last[i] > u->c->when.level[x])
            again[k] = gs_ir_binary(to, GS_OP_MUL, gs_ir_binary(to, GS_OP_DIV, in[k], s), s);
    }
    return u->made[i] = gs_ir_like(to, n, again);
}

static void find_all(gs_undo_all *u)
{
    const gs_cut *const c = u->c;

    for (uint32_t i = 0; i < c->nodes; i++) {
        u->y[i] = u->made[i] = GS_IR_NONE;
        u->last[i] = 0;
    }
    for (uint32_t i = 0; i < c->nodes; i++)
        if (can_undo(c, i))
            u->y[gs_ir_node(c->ir, c->sum.operand[i])->in[0]] = c->sum.operand[i];
    for (uint32_t t = 1; t <= c->stages; t++)
        for (uint32_t k = c->out.start[t]; k < c->out.end[t]; k++)
            if (gs_cut_state_of(c->out.value[k]) == GS_CUT_COMPUTED)
                u->last[gs_cut_node(c->out.value[k])] = t;
}

/* Takes the change of all, where that costs less. */
static gs_status improve_at_once(gs_ir *ir, const gs_cut *c, const gs_compile_options *o)
{
    gs_undo_all u = {.c = c};
    GS_ENDS(gs_arena_free) gs_arena memory = {0};
    GS_ENDS(gs_ir_free_at) gs_ir *const changed = gs_ir_clone(ir);
    uint64_t cost = 0;

    u.y = gs_arena_take(&memory, c->nodes, sizeof(*u.y));
    u.last = gs_arena_take(&memory, c->nodes, sizeof(*u.last));
    u.made = gs_arena_take(&memory, c->nodes, sizeof(*u.made));
    if (changed == NULL || memory.is_short)
        return gs_fail(GS_ENOMEM, "no memory to compile the model");
    find_all(&u);
    GS_TRY(gs_ir_rewrite(changed, rewrite_all, &u));
    GS_TRY(gs_compile__cut_cost(&cost, changed, o, false));
    if (cost < c->cost)
        gs_ir_swap(ir, changed);
    return GS_OK;
}

/* Each change is followed by a look at all that are left. */
static bool are_many(const gs_cut *c)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < c->nodes; i++)
        count += can_undo(c, i);
    return count * (count + 1) / 2 * c->nodes > MOST_ONE_BY_ONE;
}

/* Takes the first change that costs less; *better says whether there was one. */
static gs_status improve_once(gs_ir *ir, const gs_compile_options *o, bool *better)
{
    GS_ENDS(gs_compile__cut_free_at) gs_cut *c = NULL;
    const bool search = gs_ir_count(ir) <= MOST_SEARCHED;

    *better = false;
    GS_TRY(gs_compile__cut(&c, ir, o, search));
    if (are_many(c))
        return improve_at_once(ir, c, o);
    for (uint32_t i = 0; !*better && i < c->nodes; i++) {
        GS_ENDS(gs_ir_free_at) gs_ir *changed = NULL;
        uint64_t cost = 0;
        GS_TRY(undo(&changed, c, i));
        if (changed == NULL)
            continue;
        GS_TRY(gs_compile__cut_cost(&cost, changed, o, search));
        if ((*better = cost < c->cost))
            gs_ir_swap(ir, changed);
    }
    return GS_OK;
}

gs_status gs_compile__undo_quotients(gs_ir *ir, const gs_compile_options *options)
{
    bool better = true;
    while (better) /* ends: every change makes the pass cheaper */
        GS_TRY(improve_once(ir, options, &better));
    return GS_OK;
}

/* ---- products and sums ------------------------------------------------- */

#define MAX_DEPTH 64  /* of a chain looked through; longer ones stay as they are */
#define MOST_COLUMNS 65536u /* of the types' products of one vertex, side by side */
#define MAX_WORK 2048 /* nodes looked at for one product: shared values are met once a use */

typedef struct gs_mover {
    const gs_names *names; /* of the parameters whose products are moved */
    const char *name;      /* of the product being pulled */
    gs_move move;
    bool once;     /* sums by type of what no parameter changes stay */
    bool typed;    /* products are made edge by edge afterwards, never side by side */
    gs_op op;      /* of the product being moved */
    uint32_t work; /* left, of MAX_WORK */
} gs_mover;

static bool give_up(gs_mover *m, int depth)
{
    if (depth == MAX_DEPTH || m->work == 0)
        return true;
    m->work--;
    return false;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The name of the parameter of a product that is to be moved; NULL: it is none. */
static const char *moved_name(const gs_ir *ir, const gs_mover *m, uint32_t i)
{
    const gs_node *n = gs_ir_node(ir, i);
    const char *const name = n->op == GS_OP_MATMUL || n->op == GS_OP_MATMUL_T ? gs_ir_node(ir, n->in[1])->name : NULL;
    const char *const *const found =
        name == NULL ? NULL : bsearch(&name, m->names->name, m->names->count, sizeof(name), compare_names);
    return found != NULL ? *found : NULL;
}

/* Is it the product that is being pulled? */
static bool is_product(const gs_ir *ir, const gs_mover *m, uint32_t i)
{
    const gs_node *n = gs_ir_node(ir, i);
    return (n->op == GS_OP_MATMUL || n->op == GS_OP_MATMUL_T) && strcmp(gs_ir_node(ir, n->in[1])->name, m->name) == 0;
}

/* An edge sum of a vertex value, each edge by itself or times its weight. */
typedef struct gs_plain_sum {
    uint32_t operand; /* GS_IR_NONE: it is no such sum */
    uint32_t weight;  /* GS_IR_NONE: none */
    bool self;
} gs_plain_sum;

static gs_plain_sum plain_sum(const gs_ir *ir, const gs_node *n)
{
    gs_plain_sum sum = {GS_IR_NONE, GS_IR_NONE, n->self};
    const gs_node *of;

    if (n->op != GS_OP_SUM_IN)
        return sum;
    of = gs_ir_node(ir, n->in[0]);
    for (int k = 0; of->op == GS_OP_MUL && !n->self && sum.weight == GS_IR_NONE && k < 2; k++)
        sum.weight = gs_ir_node(ir, of->in[k])->op == GS_OP_WEIGHT ? of->in[k] : GS_IR_NONE;
    if (sum.weight != GS_IR_NONE)
        of = gs_ir_node(ir, of->in[of->in[0] == sum.weight ? 1 : 0]);
    if (of->op == GS_OP_SRC)
        sum.operand = of->in[0];
    return sum;
}

/* The same sum of another vertex value. */
static uint32_t sum_of(gs_ir *ir, const gs_plain_sum *like, uint32_t value)
{
    const uint32_t src = gs_ir_unary(ir, GS_OP_SRC, value, 0);
    const uint32_t edges = like->weight == GS_IR_NONE ? src : gs_ir_binary(ir, GS_OP_MUL, like->weight, src);
    return gs_ir_sum(ir, GS_OP_SUM_IN, edges, like->self);
}

/* For s * x, x * s, x / s with a scalar s a vertex or a number: which input is x; else -1. */
static int scaled_input(const gs_ir *ir, const gs_node *n)
{
    const uint32_t w0 = n->op == GS_OP_MUL || n->op == GS_OP_DIV ? gs_ir_node(ir, n->in[0])->width : 0;
    const uint32_t w1 = w0 != 0 ? gs_ir_node(ir, n->in[1])->width : 0;
    if (w0 == 0)
        return -1;
    if (w1 == 1 && w0 == n->width && gs_ir_node(ir, n->in[0])->type == GS_TYPE_D)
        return 0;
    if (n->op == GS_OP_MUL && w0 == 1 && w1 == n->width && gs_ir_node(ir, n->in[1])->type == GS_TYPE_D)
        return 1;
    return -1;
}

static bool is_addition(const gs_ir *ir, const gs_node *n)
{
    if (n->op != GS_OP_ADD && n->op != GS_OP_SUB)
        return false;
    for (int k = 0; k < 2; k++)
        if (gs_ir_node(ir, n->in[k])->width != n->width || gs_ir_node(ir, n->in[k])->type != GS_TYPE_D)
            return false;
    return true;
}

/* Does a product have an edge sum to be pushed through, along the linear operations above? */
static bool has_sum(const gs_ir *ir, gs_mover *m, uint32_t i, int depth)
{
    const gs_node *n = gs_ir_node(ir, i);
    int k;
    if (give_up(m, depth))
        return false;
    if (plain_sum(ir, n).operand != GS_IR_NONE)
        return true;
    if (n->op == GS_OP_NEG)
        return has_sum(ir, m, n->in[0], depth + 1);
    if ((k = scaled_input(ir, n)) >= 0)
        return has_sum(ir, m, n->in[k], depth + 1);
    return is_addition(ir, n) && (has_sum(ir, m, n->in[0], depth + 1) || has_sum(ir, m, n->in[1], depth + 1));
}

/* x @ W, with the product as far down as it goes. */
static uint32_t push(gs_ir *ir, gs_mover *m, uint32_t x, uint32_t w)
{
    const gs_node n = *gs_ir_node(ir, x);
    const gs_plain_sum sum = plain_sum(ir, &n);
    int k;

    if (!has_sum(ir, m, x, 0))
        return gs_ir_binary(ir, m->op, x, w);
    if (sum.operand != GS_IR_NONE)
        return sum_of(ir, &sum, push(ir, m, sum.operand, w));
    if (n.op == GS_OP_NEG)
        return gs_ir_unary(ir, GS_OP_NEG, push(ir, m, n.in[0], w), 0);
    if ((k = scaled_input(ir, &n)) >= 0) {
        const uint32_t p = push(ir, m, n.in[k], w);
        return k == 0 ? gs_ir_binary(ir, n.op, p, n.in[1]) : gs_ir_binary(ir, n.op, n.in[0], p);
    }
    return gs_ir_binary(ir, n.op, push(ir, m, n.in[0], w), push(ir, m, n.in[1], w));
}

/* y with y @ W = value, where `value` is W's product (of kind m->op) under linear operations;
 * else GS_IR_NONE. */
static uint32_t pull(gs_ir *ir, gs_mover *m, uint32_t value, int depth)
{
    const gs_node n = *gs_ir_node(ir, value);
    uint32_t a, b;
    int k;

    if (give_up(m, depth))
        return GS_IR_NONE;
    if (n.op == m->op && is_product(ir, m, value))
        return n.in[0];
    if (n.op == GS_OP_NEG) {
        a = pull(ir, m, n.in[0], depth + 1);
        return a == GS_IR_NONE ? a : gs_ir_unary(ir, GS_OP_NEG, a, 0);
    }
    if ((k = scaled_input(ir, &n)) >= 0) {
        a = pull(ir, m, n.in[k], depth + 1);
        if (a == GS_IR_NONE)
            return a;
        return k == 0 ? gs_ir_binary(ir, n.op, a, n.in[1]) : gs_ir_binary(ir, n.op, n.in[0], a);
    }
    if (!is_addition(ir, &n))
        return GS_IR_NONE;
    a = pull(ir, m, n.in[0], depth + 1);
    b = a == GS_IR_NONE ? a : pull(ir, m, n.in[1], depth + 1);
    return b == GS_IR_NONE ? b : gs_ir_binary(ir, n.op, a, b);
}

/* Which product would pull() find under `value`? The name of its parameter, or NULL. */
static const char *name_below(const gs_ir *ir, const gs_mover *m, uint32_t value)
{
    for (int depth = 0; depth < MAX_DEPTH; depth++) {
        const gs_node *const n = gs_ir_node(ir, value);
        const int k = scaled_input(ir, n);
        if (n->op == m->op)
            return moved_name(ir, m, value);
        if (n->op != GS_OP_NEG && k < 0 && !is_addition(ir, n))
            return NULL;
        value = n->in[k < 0 ? 0 : k];
    }
    return NULL;
}

/* The weight of the product under `value`: pull() has found one. */
static uint32_t weight_below(const gs_ir *ir, const gs_mover *m, uint32_t value)
{
    const gs_node *n = gs_ir_node(ir, value);
    int k;
    if (is_product(ir, m, value))
        return n->in[1];
    k = scaled_input(ir, n);
    return weight_below(ir, m, n->in[k < 0 ? 0 : k]);
}

/* sum_in(x @ W) = sum_in(x) @ W; GS_IR_NONE where there is no such product. */
static uint32_t pull_out_of_sum(gs_ir *to, gs_mover *m, const gs_plain_sum *sum)
{
    const uint32_t x = pull(to, m, sum->operand, 0);
    if (x == GS_IR_NONE)
        return x;
    return gs_ir_binary(to, m->op, sum_of(to, sum, x), weight_below(to, m, sum->operand));
}

/* a @ W + b @ W = (a + b) @ W, where that joins something to a sum. */
static uint32_t pull_out_of_addition(gs_ir *to, gs_mover *m, const gs_node *n, const uint32_t *in)
{
    const uint32_t a = pull(to, m, in[0], 0), b = a == GS_IR_NONE ? a : pull(to, m, in[1], 0);
    if (b == GS_IR_NONE || !(has_sum(to, m, a, 0) || has_sum(to, m, b, 0)))
        return GS_IR_NONE;
    return gs_ir_binary(to, m->op, gs_ir_binary(to, n->op, a, b), weight_below(to, m, in[0]));
}

static uint32_t aggregate_first(gs_ir *to, gs_mover *m, const gs_node *n, const uint32_t *in)
{
    static const gs_op products[2] = {GS_OP_MATMUL_T, GS_OP_MATMUL};
    gs_node now = *n;
    uint32_t pulled = GS_IR_NONE;

    memcpy(now.in, in, sizeof(now.in));
    const gs_plain_sum sum = plain_sum(to, &now);
    for (int k = 0; k < 2 && pulled == GS_IR_NONE; k++) {
        m->op = products[k];
        m->work = MAX_WORK;
        m->name = sum.operand != GS_IR_NONE ? name_below(to, m, sum.operand)
                  : is_addition(to, &now) ? name_below(to, m, in[0])
                                          : NULL;
        if (m->name == NULL)
            continue;
        if (sum.operand != GS_IR_NONE)
            pulled = pull_out_of_sum(to, m, &sum);
        else if (is_addition(to, &now))
            pulled = pull_out_of_addition(to, m, n, in);
    }
    return pulled != GS_IR_NONE || gs_ir_status(to) != GS_OK ? pulled : gs_ir_like(to, n, in);
}

/* Is the value another one in other epochs? */
static bool is_learned(gs_ir *ir, uint32_t value)
{
    bool learned = false;
    GS_FREED bool *const below = gs_calloc((size_t)value + 1, sizeof(*below));
    if (below == NULL) {
        gs_ir_error(ir, GS_ENOMEM, "no memory to compile the model");
        return false;
    }
    below[value] = true;
    for (uint32_t i = value + 1; i-- > 0;) {
        const gs_node *n = gs_ir_node(ir, i);
        for (uint32_t k = 0; below[i] && k < gs_node_inputs(n); k++)
            below[n->in[k]] = true;
        learned |= below[i] && ((n->op == GS_OP_PARAM && (!n->fixed || n->moving)) || gs_op_is_random(n->op));
    }
    return learned;
}

/* The product x @ W of sums by type, with the products in front of the sum; GS_IR_NONE where x is no such thing. */
static uint32_t push_typed(gs_ir *ir, const gs_mover *m, uint32_t x, uint32_t w)
{
    const gs_node weight = *gs_ir_node(ir, w);
    gs_node n = *gs_ir_node(ir, x);
    uint32_t mix = GS_IR_NONE, count = GS_IR_NONE, types, y;

    if (n.op == GS_OP_MIX) {
        mix = n.in[1];
        n = *gs_ir_node(ir, n.in[0]);
    }
    if (n.op == GS_OP_DIV && gs_ir_node(ir, n.in[1])->op == GS_OP_EXPAND) {
        count = gs_ir_node(ir, n.in[1])->in[0];
        n = *gs_ir_node(ir, n.in[0]);
    }
    if (n.op != GS_OP_SPLIT_IN || gs_ir_node(ir, n.in[0])->op != GS_OP_SRC || weight.shape_dims != 3)
        return GS_IR_NONE;
    x = gs_ir_node(ir, n.in[0])->in[0];
    types = n.width / gs_ir_node(ir, x)->width;
    const bool typed = m->typed && mix == GS_IR_NONE; /* matrices that are mixed from bases are in no memory */
    if ((!typed && (uint64_t)types * weight.width > MOST_COLUMNS) || (mix == GS_IR_NONE && types != weight.shape[0]) ||
        (count != GS_IR_NONE && gs_ir_node(ir, count)->width != types) || (m->once && !typed && !is_learned(ir, x)))
        return GS_IR_NONE;
    y = gs_ir_binary(ir, GS_OP_FAN, x, w);
    if (mix != GS_IR_NONE)
        y = gs_ir_binary(ir, GS_OP_MIX_T, y, mix);
    y = gs_ir_resize(ir, GS_OP_TYPE_SRC, y, weight.width);
    if (count != GS_IR_NONE) {
        const uint32_t share = gs_ir_binary(ir, GS_OP_DIV, gs_ir_const(ir, 1.0f, 1), count);
        y = gs_ir_binary(ir, GS_OP_MUL, y, gs_ir_resize(ir, GS_OP_TYPE_DST, share, 1));
    }
    return gs_ir_sum(ir, GS_OP_SUM_IN, y, false);
}

static uint32_t rewrite(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
{
    gs_mover *m = context;
    const gs_node *n = gs_ir_node(from, i);

    if (m->move == GS_MOVE_AGGREGATE_FIRST)
        return aggregate_first(to, m, n, in);
    if (m->move == GS_MOVE_TRANSFORM_FIRST && moved_name(from, m, i) != NULL) {
        const uint32_t typed = n->op == GS_OP_MATMUL ? push_typed(to, m, in[0], in[1]) : GS_IR_NONE;
        m->op = n->op;
        m->work = MAX_WORK;
        return typed != GS_IR_NONE || gs_ir_status(to) != GS_OK ? typed : push(to, m, in[0], in[1]);
    }
    return gs_ir_like(to, n, in);
}

gs_status gs_compile__move(gs_ir *ir, gs_names *names, gs_move move, bool once, bool typed)
{
    gs_mover m = {.names = names, .move = move, .once = once, .typed = typed};

    if (names->count == 0)
        return GS_OK;
    qsort(names->name, names->count, sizeof(*names->name), compare_names);
    return gs_ir_rewrite(ir, rewrite, &m);
}

/* The columns of the edge's type of x by all matrices are x by the matrix of that type. */
static uint32_t typed(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
{
    const gs_node *n = gs_ir_node(from, i);
    (void)context;

    if (n->op == GS_OP_TYPE_SRC && gs_ir_node(to, in[0])->op == GS_OP_FAN) {
        const gs_node fan = *gs_ir_node(to, in[0]);
        return gs_ir_binary(to, GS_OP_BY_TYPE, gs_ir_unary(to, GS_OP_SRC, fan.in[0], 0), fan.in[1]);
    }
    return gs_ir_like(to, n, in);
}

gs_status gs_compile__typed(gs_ir *ir)
{
    GS_TRY(gs_ir_rewrite(ir, typed, NULL));
    return gs_ir_rewrite(ir, NULL, NULL); /* products that nobody reads now go */
}

/* ---- gradients of largest values ---- */

/* The gradient of a largest value of products goes to the edges that have it, which all passes of the gradient find by
 * making the products again. A vertex and column has it of one source, but for ties; so the pass that finds the largest
 * value also finds which source has it, and how many edges do, and later passes make products for ties alone:
 *     who = the number of the source, from 1 on, of those that have the largest value where that is one; else 0
 *     has = where(who, source == who, value == largest) */

/* Is a value of edges one of its ends alone, so that edges of the same ends have the same? Are there products in it? */
enum { OF_ENDS = 1, HAS_PRODUCT = 2 };

static uint8_t look_at(const gs_ir *ir, uint32_t i, const uint8_t *known)
{
    const gs_node *const n = gs_ir_node(ir, i);
    const gs_op_form form = gs_op_form_of(n->op);
    const bool on_edges = (n->type & GS_TYPE_S) != 0;
    uint8_t is = OF_ENDS;

    if (!on_edges || n->op == GS_OP_SRC)
        return OF_ENDS;
    if (!gs_op_is_dense(n->op) && form != GS_FORM_EACH && form != GS_FORM_ROW && form != GS_FORM_FEWER &&
        form != GS_FORM_MORE && form != GS_FORM_IDS)
        return 0;
    if (gs_op_is_dense(n->op))
        is |= HAS_PRODUCT;
    for (uint32_t k = 0; k < gs_node_inputs(n); k++) {
        const uint8_t of = known[n->in[k]];
        is = (uint8_t)((is | (of & HAS_PRODUCT)) & (of | (uint8_t)~OF_ENDS));
    }
    return is;
}

typedef struct holders {
    uint8_t *known;  /* [nodes] */
    bool *asked;     /* [nodes] a largest or least value that some edges are asked whether they have it */
    uint32_t *found; /* [nodes] of the new graph: that value, who has it and how many edges, side by side */
} holders;

/* Does `n` ask which edges have a largest or least value that takes products? */
static bool asks(const gs_ir *from, const holders *h, const gs_node *n)
{
    if (n->op != GS_OP_EQ || h->known[n->in[0]] != (OF_ENDS | HAS_PRODUCT))
        return false;
    const gs_node *const most = gs_ir_node(from, n->in[1]);
    return (most->op == GS_OP_MAX_IN || most->op == GS_OP_MIN_IN) && most->in[0] == n->in[0];
}

/* The number of each edge's source. */
static uint32_t number_of_source(gs_ir *to)
{
    const uint32_t id = gs_ir_unary(to, GS_OP_CAST, gs_ir_input(to, "input_id", 1, GS_U32), 0);
    return gs_ir_unary(to, GS_OP_SRC, gs_ir_binary(to, GS_OP_ADD, id, gs_ir_const(to, 1.0f, 1)), 0);
}

/* Part 0, 1 or 2 of what was found of `most`. */
static uint32_t part_of(gs_ir *to, const gs_ir *from, const holders *h, uint32_t most, uint32_t part)
{
    const uint32_t width = gs_ir_node(from, most)->width;
    return gs_ir_part(to, h->found[most], part * width, width);
}

/* Is it how many edges have a value that is asked for? Then *most is that. */
static bool counts_holders(const gs_ir *from, const holders *h, const gs_node *n, uint32_t *most)
{
    const gs_node *const of = n->op == GS_OP_SUM_IN && !n->self ? gs_ir_node(from, n->in[0]) : NULL;
    if (of == NULL || !asks(from, h, of))
        return false;
    *most = of->in[1];
    return true;
}

static uint32_t replace(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
{
    holders *const h = context;
    const gs_node *const n = gs_ir_node(from, i);
    uint32_t most;

    if (h->asked[i]) {
        const gs_op op = n->op == GS_OP_MAX_IN ? GS_OP_MAX_HELD_IN : GS_OP_MIN_HELD_IN;
        h->found[i] = gs_ir_binary(to, op, in[0], number_of_source(to));
        most = part_of(to, from, h, i, 0);
        gs_ir_label(to, most, n->name);
        return most;
    }
    if (counts_holders(from, h, n, &most))
        return part_of(to, from, h, most, 2);
    if (!asks(from, h, n))
        return gs_ir_like(to, n, in);
    const uint32_t who = part_of(to, from, h, n->in[1], 1), has = gs_ir_like(to, n, in);
    return gs_ir_ternary(to, GS_OP_WHERE, who, gs_ir_binary(to, GS_OP_EQ, number_of_source(to), who), has);
}

gs_status gs_compile__holders(gs_ir *ir)
{
    const uint32_t n = gs_ir_count(ir);
    GS_ENDS(gs_arena_free) gs_arena memory = {0};
    holders h = {.known = gs_arena_take(&memory, n, sizeof(*h.known)),
                 .asked = gs_arena_take(&memory, n, sizeof(*h.asked)),
                 .found = gs_arena_take(&memory, n, sizeof(*h.found))};
    bool some = false;

    if (memory.is_short)
        return gs_fail(GS_ENOMEM, "no memory to compile the model");
    for (uint32_t i = 0; i < n; i++) {
        const gs_node *const node = gs_ir_node(ir, i);
        h.known[i] = look_at(ir, i, h.known);
        if (asks(ir, &h, node))
            some = h.asked[node->in[1]] = true;
    }
    return some ? gs_ir_rewrite(ir, replace, &h) : GS_OK;
}
