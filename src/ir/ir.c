/* ir.c - the graph: nodes found by value, outputs, and the first error. */
#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "ir/ir_internal.h"

gs_ir *gs_ir_new(const char *source, bool fold)
{
    gs_ir *ir = gs_calloc(1, sizeof(*ir));
    if (ir == NULL)
        return NULL;
    snprintf(ir->source, sizeof(ir->source), "%s", source);
    ir->fold = fold;
    return ir;
}

void gs_ir_set_text(gs_ir *ir, gs_text *text)
{
    gs_text_drop(ir->text);
    ir->text = gs_text_keep(text);
}

void gs_ir_free(gs_ir *ir)
{
    if (ir == NULL)
        return;
    gs_free(ir->node);
    gs_free(ir->slot);
    gs_free(ir->output);
    gs_text_drop(ir->text);
    gs_free(ir);
}

void gs_ir_swap(gs_ir *a, gs_ir *b)
{
    const gs_ir old = *a;
    *a = *b;
    *b = old;
}

static void *copy_array(const void *from, size_t count, size_t size)
{
    void *to = gs_malloc_array(count, size);
    if (to != NULL && count > 0)
        memcpy(to, from, count * size);
    return to;
}

gs_ir *gs_ir_clone(const gs_ir *ir)
{
    gs_ir *c = gs_calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    *c = *ir;
    c->text = gs_text_keep(ir->text);
    c->node_cap = ir->nodes;
    c->output_cap = ir->outputs;
    c->node = copy_array(ir->node, ir->nodes, sizeof(*ir->node));
    c->slot = copy_array(ir->slot, ir->slots, sizeof(*ir->slot));
    c->output = copy_array(ir->output, ir->outputs, sizeof(*ir->output));
    if (c->node == NULL || c->slot == NULL || c->output == NULL) {
        gs_ir_free(c);
        return NULL;
    }
    return c;
}

uint32_t gs_ir_count(const gs_ir *ir)
{
    return ir->nodes;
}

const gs_node *gs_ir_node(const gs_ir *ir, uint32_t i)
{
    assert(i < ir->nodes);
    return &ir->node[i];
}

uint32_t gs_ir_outputs(const gs_ir *ir)
{
    return ir->outputs;
}

const gs_output *gs_ir_output(const gs_ir *ir, uint32_t i)
{
    assert(i < ir->outputs);
    return &ir->output[i];
}

uint32_t gs_ir_root(const gs_ir *ir)
{
    for (uint32_t i = 0; i < ir->outputs; i++)
        if (ir->output[i].kind == GS_OUTPUT_LOGITS)
            return ir->output[i].node;
    return GS_IR_NONE;
}

bool gs_ir_differentiated(const gs_ir *ir)
{
    return ir->differentiated;
}

gs_status gs_ir_status(const gs_ir *ir)
{
    return ir->status;
}

const char *gs_node_table(const gs_node *n)
{
    const size_t prefix = strlen(GS_IR_TABLE);
    return n->op == GS_OP_INPUT && strncmp(n->name, GS_IR_TABLE, prefix) == 0 ? n->name + prefix : NULL;
}

uint32_t gs_node_inputs(const gs_node *n)
{
    const bool more = n->op == GS_OP_DROPOUT || gs_op_classof(n->op) == GS_CLASS_LOSS;
    const bool own = (n->op == GS_OP_LSE_IN || n->op == GS_OP_ATTEND) && n->in[2] != GS_IR_NONE;
    return own ? 3 : gs_op_inputs(n->op) + more;
}

void gs_ir_at(gs_ir *ir, uint32_t line, uint32_t column)
{
    ir->line = line;
    ir->column = column;
}

uint32_t gs_ir_error(gs_ir *ir, gs_status st, const char *fmt, ...)
{
    char text[384];
    va_list args;

    if (ir->status != GS_OK)
        return GS_IR_NONE;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    ir->status = ir->text != NULL ? gs_fail_in_text(st, ir->text, ir->line, ir->column, "%s", text)
                                  : gs_fail(st, "%s:%u:%u: %s", ir->source, ir->line, ir->column, text);
    return GS_IR_NONE;
}

static uint32_t hash_u32(uint32_t h, uint32_t v)
{
    h = (h ^ v) * 0x9E3779B1u; /* Fibonacci hashing: 2^32 / golden ratio */
    return h ^ (h >> 15);
}

static uint32_t node_hash(const gs_node *n)
{
    uint32_t h = hash_u32(0, (uint32_t)n->op), bits;
    for (uint32_t k = 0; k < GS_IR_INPUTS; k++)
        h = hash_u32(h, n->in[k]);
    memcpy(&bits, &n->alpha, sizeof(bits));
    h = hash_u32(hash_u32(hash_u32(h, bits), n->site), n->self);
    if (gs_ir__is_named(n->op))
        for (const char *c = n->name; *c != 0; c++)
            h = hash_u32(h, (uint8_t)*c);
    else
        h = hash_u32(h, n->width);
    return h;
}

static bool node_equal(const gs_node *a, const gs_node *b)
{
    if (a->op != b->op || memcmp(a->in, b->in, sizeof(a->in)) != 0)
        return false;
    if (gs_ir__is_named(a->op))
        return strcmp(a->name, b->name) == 0;
    return memcmp(&a->alpha, &b->alpha, sizeof(a->alpha)) == 0 && a->site == b->site && a->self == b->self &&
           a->width == b->width;
}

uint32_t gs_ir__find(const gs_ir *ir, const gs_node *n)
{
    if (ir->slots == 0)
        return GS_IR_NONE;
    for (uint32_t h = node_hash(n);; h++) {
        const uint32_t s = ir->slot[h & (ir->slots - 1)];
        if (s == 0)
            return GS_IR_NONE;
        if (node_equal(&ir->node[s - 1], n))
            return s - 1;
    }
}

static void slot_put(gs_ir *ir, uint32_t i)
{
    uint32_t h = node_hash(&ir->node[i]);
    while (ir->slot[h & (ir->slots - 1)] != 0)
        h++;
    ir->slot[h & (ir->slots - 1)] = i + 1;
}

/* Room for one more node; the table is kept at most half full. */
static bool grow(gs_ir *ir)
{
    if (!gs_grow(&ir->node, ir->nodes, &ir->node_cap, sizeof(*ir->node)))
        return false;
    if (2 * (ir->nodes + 1) > ir->slots) {
        const uint32_t slots = ir->slots == 0 ? 128 : ir->slots * 2;
        uint32_t *p = gs_calloc(slots, sizeof(*p));
        if (p == NULL)
            return false;
        gs_free(ir->slot);
        ir->slot = p;
        ir->slots = slots;
        for (uint32_t i = 0; i < ir->nodes; i++)
            slot_put(ir, i);
    }
    return true;
}

uint32_t gs_ir__append(gs_ir *ir, const gs_node *n)
{
    if (ir->nodes >= GS_IR_MAX_NODES)
        return gs_ir_error(ir, GS_EUNSUPPORTED, "the model has more than %u operations", GS_IR_MAX_NODES);
    if (!grow(ir))
        return gs_ir_error(ir, GS_ENOMEM, "no memory for the model's graph");
    ir->node[ir->nodes] = *n;
    slot_put(ir, ir->nodes);
    return ir->nodes++;
}

void gs_ir_label(gs_ir *ir, uint32_t node, const char *name)
{
    gs_node *const n = node == GS_IR_NONE ? NULL : &ir->node[node];
    if (n == NULL || gs_op_classof(n->op) == GS_CLASS_LEAF || n->name[0] != 0)
        return;
    const size_t bytes = strnlen(name, sizeof(n->name) - 1);
    memcpy(n->name, name, bytes);
    n->name[bytes] = 0;
}

void gs_ir_add_output(gs_ir *ir, gs_output_kind kind, uint32_t node, uint32_t param)
{
    if (ir->status != GS_OK || node == GS_IR_NONE)
        return;
    if (gs_grow(&ir->output, ir->outputs, &ir->output_cap, sizeof(*ir->output)))
        ir->output[ir->outputs++] = (gs_output){kind, node, param};
    else
        gs_ir_error(ir, GS_ENOMEM, "no memory for the model's graph");
}

void gs_ir_drop_outputs(gs_ir *ir, gs_output_kind kind)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < ir->outputs; i++)
        if (ir->output[i].kind != kind)
            ir->output[kept++] = ir->output[i];
    ir->outputs = kept;
}

void gs_ir_forward_only(gs_ir *ir)
{
    gs_ir_drop_outputs(ir, GS_OUTPUT_LOSS);
    gs_ir_drop_outputs(ir, GS_OUTPUT_GRAD);
    gs_ir_drop_outputs(ir, GS_OUTPUT_GRAD_ROWS);
    ir->differentiated = false;
}

/* ---- rewriting --------------------------------------------------------- */

/* The rewrite that passes are made of. */

/* live[i]: some output reaches node i. Inputs have lower numbers, so one sweep down does it. */
static void mark_live(const gs_ir *ir, bool *live)
{
    for (uint32_t i = 0; i < ir->outputs; i++) {
        live[ir->output[i].node] = true;
        if (gs_output_has_param(&ir->output[i]))
            live[ir->output[i].param] = true;
    }
    for (uint32_t i = ir->nodes; i-- > 0;) {
        const gs_node *n = &ir->node[i];
        if (n->op == GS_OP_PARAM)
            live[i] = true;
        for (uint32_t k = 0; live[i] && k < gs_node_inputs(n); k++)
            live[n->in[k]] = true;
    }
}

static void rewrite_nodes(gs_ir *to, const gs_ir *from, const bool *live, uint32_t *map, gs_ir_rewriter fn,
                          void *context)
{
    for (uint32_t i = 0; i < from->nodes && to->status == GS_OK; i++) {
        const gs_node *n = &from->node[i];
        uint32_t in[GS_IR_INPUTS] = {GS_IR_NONE, GS_IR_NONE, GS_IR_NONE};
        map[i] = GS_IR_NONE;
        if (!live[i])
            continue;
        for (uint32_t k = 0; k < gs_node_inputs(n); k++)
            in[k] = map[n->in[k]];
        gs_ir_at(to, n->line, n->column);
        map[i] = fn != NULL ? fn(to, from, i, in, context) : gs_ir_like(to, n, in);
        if (map[i] != GS_IR_NONE && n->name[0] != 0)
            gs_ir_label(to, map[i], n->name);
    }
    for (uint32_t i = 0; i < from->outputs && to->status == GS_OK; i++) {
        const gs_output *o = &from->output[i];
        gs_ir_add_output(to, o->kind, map[o->node], gs_output_has_param(o) ? map[o->param] : GS_IR_NONE);
    }
}

gs_status gs_ir_rewrite(gs_ir *ir, gs_ir_rewriter fn, void *context)
{
    GS_ENDS(gs_ir_free_at) gs_ir *to = gs_ir_new(ir->source, true);
    GS_FREED bool *live = gs_calloc((size_t)ir->nodes + 1, sizeof(*live));
    GS_FREED uint32_t *map = gs_malloc_array((size_t)ir->nodes + 1, sizeof(*map));

    GS_TRY(ir->status);
    GS_NEED(to != NULL && live != NULL && map != NULL, "%s: no memory for the model's graph", ir->source);
    gs_ir_set_text(to, ir->text);
    mark_live(ir, live);
    rewrite_nodes(to, ir, live, map, fn, context);
    GS_TRY(to->status);
    to->differentiated = ir->differentiated;
    gs_ir_swap(ir, to);
    return GS_OK;
}

/* ---- normal form ------------------------------------------------------- */

/* The two passes after which nothing that depends on one end of an edge only is left on the edges. */

static uint32_t rewrite(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
{
    const gs_node *n = gs_ir_node(from, i), *e;
    uint32_t s;
    (void)context;

    if ((n->op == GS_OP_MATMUL || n->op == GS_OP_MATMUL_T) && gs_ir_node(to, in[0])->type == GS_TYPE_E &&
        gs_ir_node(to, in[0])->op == GS_OP_CONCAT) {
        s = gs_ir__dense(to, n->op, in[0], in[1], true);
        gs_ir_label(to, s, n->name);
        return s;
    }
    if (n->op == GS_OP_MAX_IN || n->op == GS_OP_MIN_IN) {
        e = gs_ir_node(to, in[0]);
        if ((e->type & GS_TYPE_S) == 0) /* the same on all edges */
            return gs_ir_ternary(to, GS_OP_WHERE, gs_ir_input(to, "in_degree", 1, GS_F32), in[0],
                                 gs_ir_const(to, 0.0f, 1));
    }
    if (n->op == GS_OP_ADD && (s = gs_ir__attend_own(to, in[0], in[1])) != GS_IR_NONE)
        return s;
    if (n->op == GS_OP_SUM_IN) {
        s = gs_ir__sum(to, GS_OP_SUM_IN, in[0], true);
        /* With `self` the graph was normal before; folding finds the own row again. */
        if (s == GS_IR_NONE || !n->self)
            return s;
        e = gs_ir_node(to, in[0]);
        return gs_ir_binary(to, GS_OP_ADD, s, e->op == GS_OP_SRC ? e->in[0] : in[0]);
    }
    return gs_ir_like(to, n, in);
}

/* Arithmetic on parameters alone is done a row at a time, as instructions work on rows; and
 * matrix products that are left on the edges become dense ones. */
static uint32_t promote(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
{
    const gs_node *n = gs_ir_node(from, i);
    const gs_op_class cls = gs_op_classof(n->op);
    uint32_t again[GS_IR_INPUTS], type = GS_TYPE_P;
    (void)context;

    if (n->op == GS_OP_TYPED)
        return gs_ir__pick_by_type(to, in[0], in[1]);
    if ((n->op == GS_OP_MATMUL || n->op == GS_OP_MATMUL_T) && n->type == GS_TYPE_E) {
        const uint32_t y = gs_ir__dense(to, n->op, in[0], in[1], false);
        gs_ir_label(to, y, n->name);
        return y;
    }
    if (n->op == GS_OP_CONCAT && n->type == GS_TYPE_E)
        return gs_ir_error(to, GS_EUNSUPPORTED,
                           "concat of values of both ends can only stand left of @, as it is or in a concat");
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        type |= (uint32_t)gs_ir_node(to, in[k])->type;
    if (cls != GS_CLASS_ELEMENTWISE || type != GS_TYPE_P || n->type != GS_TYPE_P)
        return gs_ir_like(to, n, in);
    memcpy(again, in, sizeof(again));
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        if (gs_ir_node(to, in[k])->op == GS_OP_PARAM ||
            gs_op_classof(gs_ir_node(to, in[k])->op) == GS_CLASS_STATISTIC) {
            again[k] = gs_ir_binary(to, GS_OP_ADD, in[k], gs_ir__zeros(to));
            break;
        }
    return gs_ir_like(to, n, again);
}

gs_status gs_ir_normalise(gs_ir *ir)
{
    GS_TRY(gs_ir_rewrite(ir, rewrite, NULL));
    return gs_ir_rewrite(ir, promote, NULL); /* what splitting left behind goes */
}
