/* compile_undo.c - x again from x / s, where x / s is an array and x would become one too.
 *
 * The backward pass of a mean needs a gradient g twice: g / degree goes to the edges, and so
 * is stored, and g itself is read by later stages (for SAGE's own-row weight). A later stage
 * has g back as (g / degree) * degree, and no second array is written. s is a scalar a
 * vertex; it is not 0, or x / s would not have been finite. The values differ by rounding only.
 */
#include <string.h>

#include "base/alloc.h"
#include "compile/compile_internal.h"

#define MOST_SEARCHED 200 /* nodes of a graph whose stages are searched for each candidate */
/* Nodes of all changed graphs together up to which quotients are tried one by one; else all of them at once. */
#define MOST_ONE_BY_ONE 300000u

typedef struct gs_undo {
    uint32_t x, y, s;  /* y = x / s */
    uint32_t s_new;    /* in the graph being made, once it is there */
    const bool *later; /* [nodes] computed in some stage after the one that makes x */
} gs_undo;

static uint32_t rewrite(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
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
    bool *later = NULL;
    gs_ir *ir = NULL;
    gs_status st = GS_OK;

    if (!can_undo(c, i))
        return GS_OK;
    u.x = gs_ir_node(c->ir, u.y)->in[0];
    u.s = gs_ir_node(c->ir, u.y)->in[1];
    later = gs_calloc(c->nodes, sizeof(*later));
    ir = gs_ir_clone(c->ir);
    if (later == NULL || ir == NULL) {
        st = gs_fail(GS_ENOMEM, "no memory to compile the model");
        goto done;
    }
    find_later(c, u.x, u.y, later);
    u.later = later;
    if ((st = gs_ir_rewrite(ir, rewrite, &u)) != GS_OK)
        goto done;
    *out = ir;
    ir = NULL;
done:
    gs_ir_free(ir);
    gs_free(later);
    return st;
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
    gs_ir *const changed = gs_ir_clone(ir);
    gs_cut *d = NULL;
    gs_status st = GS_OK;

    u.y = gs_malloc_array(c->nodes, sizeof(*u.y));
    u.last = gs_malloc_array(c->nodes, sizeof(*u.last));
    u.made = gs_malloc_array(c->nodes, sizeof(*u.made));
    if (changed == NULL || u.y == NULL || u.last == NULL || u.made == NULL) {
        st = gs_fail(GS_ENOMEM, "no memory to compile the model");
        goto done;
    }
    find_all(&u);
    if ((st = gs_ir_rewrite(changed, rewrite_all, &u)) == GS_OK)
        st = gs_compile__cut(&d, changed, o, false);
    if (st == GS_OK && d->cost < c->cost)
        gs_ir_swap(ir, changed);
done:
    gs_compile__cut_free(d);
    gs_ir_free(changed);
    gs_free(u.y);
    gs_free(u.last);
    gs_free(u.made);
    return st;
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
    gs_cut *c = NULL, *d = NULL;
    gs_ir *changed = NULL;
    const bool search = gs_ir_count(ir) <= MOST_SEARCHED;
    gs_status st = gs_compile__cut(&c, ir, o, search);

    *better = false;
    const bool many = st == GS_OK && are_many(c);
    if (many)
        st = improve_at_once(ir, c, o);
    for (uint32_t i = 0; st == GS_OK && !many && !*better && i < c->nodes; i++) {
        if ((st = undo(&changed, c, i)) != GS_OK || changed == NULL)
            continue;
        st = gs_compile__cut(&d, changed, o, search);
        *better = st == GS_OK && d->cost < c->cost;
        gs_compile__cut_free(d);
        d = NULL;
        if (*better)
            gs_ir_swap(ir, changed);
        gs_ir_free(changed);
        changed = NULL;
    }
    gs_compile__cut_free(c);
    return st;
}

gs_status gs_compile__undo_quotients(gs_ir *ir, const gs_compile_options *options)
{
    bool better = true;
    gs_status st = GS_OK;
    while (better && st == GS_OK) /* ends: every change makes the pass cheaper */
        st = improve_once(ir, options, &better);
    return st;
}
