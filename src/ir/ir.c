/* ir.c - the graph: nodes found by value, outputs, and the rewrite that passes are made of. */
#include "ir/ir_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"

gs_ir *gs_ir_new(const char *source, bool fold)
{
    gs_ir *ir = gs_calloc(1, sizeof(*ir));
    if (ir == NULL)
        return NULL;
    snprintf(ir->source, sizeof(ir->source), "%s", source);
    ir->fold = fold;
    return ir;
}

void gs_ir_free(gs_ir *ir)
{
    if (ir == NULL)
        return;
    gs_free(ir->node);
    gs_free(ir->slot);
    gs_free(ir->output);
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

uint32_t gs_node_inputs(const gs_node *n)
{
    const bool more = n->op == GS_OP_DROPOUT || gs_op_classof(n->op) == GS_CLASS_LOSS;
    return gs_op_inputs(n->op) + more;
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
    ir->status = gs_fail(st, "%s:%u:%u: %s", ir->source, ir->line, ir->column, text);
    return GS_IR_NONE;
}

static uint32_t hash_u32(uint32_t h, uint32_t v)
{
    h = (h ^ v) * 0x9E3779B1u; /* Fibonacci hashing: 2^32 / golden ratio */
    return h ^ (h >> 15);
}

static bool named(gs_op op)
{
    return op == GS_OP_INPUT || op == GS_OP_PARAM;
}

static uint32_t node_hash(const gs_node *n)
{
    uint32_t h = hash_u32(0, (uint32_t)n->op), bits;
    for (uint32_t k = 0; k < GS_IR_INPUTS; k++)
        h = hash_u32(h, n->in[k]);
    memcpy(&bits, &n->alpha, sizeof(bits));
    h = hash_u32(hash_u32(hash_u32(h, bits), n->site), n->self);
    if (named(n->op))
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
    if (named(a->op))
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
    if (ir->nodes == ir->node_cap) {
        const uint32_t cap = ir->node_cap < 32 ? 64 : ir->node_cap * 2;
        gs_node *p = gs_realloc(ir->node, cap * sizeof(*p));
        if (p == NULL)
            return false;
        ir->node = p;
        ir->node_cap = cap;
    }
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

static uint32_t append(gs_ir *ir, const gs_node *n)
{
    if (ir->nodes >= GS_IR_MAX_NODES)
        return gs_ir_error(ir, GS_EUNSUPPORTED, "the model has more than %u operations", GS_IR_MAX_NODES);
    if (!grow(ir))
        return gs_ir_error(ir, GS_ENOMEM, "no memory for the model's graph");
    ir->node[ir->nodes] = *n;
    slot_put(ir, ir->nodes);
    return ir->nodes++;
}

/* a + b and b + a are one node. */
static void order_inputs(gs_node *n)
{
    if (gs_op_is(n->op, GS_FACT_COMMUTES) && n->in[0] > n->in[1]) {
        const uint32_t a = n->in[0];
        n->in[0] = n->in[1];
        n->in[1] = a;
    }
}

uint32_t gs_ir__make(gs_ir *ir, gs_node n)
{
    uint32_t found;

    if (ir->status != GS_OK)
        return GS_IR_NONE;
    n.line = ir->line;
    n.column = ir->column;
    if (!gs_ir__infer(ir, &n))
        return GS_IR_NONE;
    if (ir->fold) {
        order_inputs(&n);
        found = gs_ir__fold(ir, &n);
        if (found != GS_IR_NONE || ir->status != GS_OK)
            return found;
    }
    if (ir->fold || named(n.op)) {
        found = gs_ir__find(ir, &n);
        if (found != GS_IR_NONE)
            return found;
    }
    return append(ir, &n);
}

gs_node gs_ir__blank(gs_op op, uint32_t a, uint32_t b)
{
    gs_node n;
    memset(&n, 0, sizeof(n));
    n.op = op;
    n.dtype = GS_F32;
    n.in[0] = a;
    n.in[1] = b;
    n.in[2] = GS_IR_NONE;
    return n;
}

static uint32_t make_leaf(gs_ir *ir, gs_node *n, const char *name)
{
    uint32_t i;
    if (strlen(name) >= sizeof(n->name))
        return gs_ir_error(ir, GS_EFORMAT, "the name '%s' is longer than %zu bytes", name, sizeof(n->name) - 1);
    snprintf(n->name, sizeof(n->name), "%s", name);
    i = gs_ir__make(ir, *n);
    if (i != GS_IR_NONE &&
        (ir->node[i].width != n->width || ir->node[i].rows != n->rows || ir->node[i].dims != n->dims))
        return gs_ir_error(ir, GS_EFORMAT, "'%s' is used with two shapes", name);
    return i;
}

uint32_t gs_ir_input(gs_ir *ir, const char *name, uint32_t width, gs_dtype dtype)
{
    gs_node n = gs_ir__blank(GS_OP_INPUT, GS_IR_NONE, GS_IR_NONE);
    n.width = width;
    n.dtype = dtype;
    return make_leaf(ir, &n, name);
}

uint32_t gs_ir_param(gs_ir *ir, const char *name, uint32_t dims, uint32_t rows, uint32_t cols)
{
    gs_node n = gs_ir__blank(GS_OP_PARAM, GS_IR_NONE, GS_IR_NONE);
    n.dims = dims;
    n.rows = rows;
    n.width = cols;
    return make_leaf(ir, &n, name);
}

void gs_ir_param_shape(gs_ir *ir, uint32_t param, uint32_t dims, const uint32_t *shape, bool fixed)
{
    gs_node *n;
    if (param == GS_IR_NONE)
        return;
    n = &ir->node[param];
    n->shape_dims = dims;
    for (uint32_t k = 0; k < 3; k++)
        n->shape[k] = k < dims ? shape[k] : 0;
    n->fixed = fixed;
}

void gs_ir_param_start(gs_ir *ir, uint32_t param, float start, bool moving, bool counter)
{
    if (param == GS_IR_NONE)
        return;
    ir->node[param].alpha = start;
    ir->node[param].moving = moving;
    ir->node[param].counter = counter;
}

uint32_t gs_ir_weight(gs_ir *ir)
{
    gs_node n = gs_ir__blank(GS_OP_WEIGHT, GS_IR_NONE, GS_IR_NONE);
    n.width = 1;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_resize(gs_ir *ir, gs_op op, uint32_t a, uint32_t width)
{
    gs_node n = gs_ir__blank(op, a, GS_IR_NONE);
    n.width = width;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_part(gs_ir *ir, uint32_t a, uint32_t first, uint32_t width)
{
    gs_node n = gs_ir__blank(GS_OP_PART, a, GS_IR_NONE);
    n.width = width;
    n.site = first;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_const(gs_ir *ir, float value, uint32_t width)
{
    gs_node n = gs_ir__blank(GS_OP_CONST, GS_IR_NONE, GS_IR_NONE);
    n.alpha = value;
    n.width = width;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_unary(gs_ir *ir, gs_op op, uint32_t a, float alpha)
{
    gs_node n = gs_ir__blank(op, a, GS_IR_NONE);
    n.alpha = gs_op_is(op, GS_FACT_ALPHA) ? alpha : 0.0f;
    n.dtype = op == GS_OP_ROUND ? GS_BF16 : GS_F32;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_binary(gs_ir *ir, gs_op op, uint32_t a, uint32_t b)
{
    return gs_ir__make(ir, gs_ir__blank(op, a, b));
}

uint32_t gs_ir_ternary(gs_ir *ir, gs_op op, uint32_t a, uint32_t b, uint32_t c)
{
    gs_node n = gs_ir__blank(op, a, b);
    n.in[2] = c;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_dropout(gs_ir *ir, uint32_t a, float p, uint32_t site)
{
    gs_node n = gs_ir__blank(GS_OP_DROPOUT, a, gs_ir_input(ir, "input_id", 1, GS_U32));
    n.alpha = p;
    n.site = site;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_edge_mask(gs_ir *ir, uint32_t width, float p, uint32_t site, bool self)
{
    const uint32_t id = gs_ir_input(ir, "input_id", 1, GS_U32);
    gs_node n = gs_ir__blank(GS_OP_EDGE_MASK, gs_ir_unary(ir, GS_OP_SRC, id, 0), id);
    n.width = width;
    n.alpha = p;
    n.site = site;
    n.self = self;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_sum(gs_ir *ir, gs_op op, uint32_t a, bool self)
{
    gs_node n = gs_ir__blank(op, a, GS_IR_NONE);
    n.self = self;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_like(gs_ir *ir, const gs_node *like, const uint32_t *in)
{
    const gs_node old = *like; /* making nodes may move `like` */
    gs_node n = old;
    uint32_t i;
    for (uint32_t k = 0; k < gs_node_inputs(&old); k++)
        n.in[k] = in[k];
    if (!named(n.op))
        n.name[0] = 0;
    i = gs_ir__make(ir, n);
    if (i != GS_IR_NONE && old.name[0] != 0)
        gs_ir_label(ir, i, old.name);
    return i;
}

void gs_ir_label(gs_ir *ir, uint32_t node, const char *name)
{
    if (node == GS_IR_NONE || gs_op_classof(ir->node[node].op) == GS_CLASS_LEAF || ir->node[node].name[0] != 0)
        return;
    snprintf(ir->node[node].name, sizeof(ir->node[node].name), "%s", name);
}

void gs_ir_add_output(gs_ir *ir, gs_output_kind kind, uint32_t node, uint32_t param)
{
    if (ir->status != GS_OK || node == GS_IR_NONE)
        return;
    if (ir->outputs == ir->output_cap) {
        const uint32_t cap = ir->output_cap < 8 ? 8 : ir->output_cap * 2;
        gs_output *p = gs_realloc(ir->output, cap * sizeof(*p));
        if (p == NULL) {
            gs_ir_error(ir, GS_ENOMEM, "no memory for the model's graph");
            return;
        }
        ir->output = p;
        ir->output_cap = cap;
    }
    ir->output[ir->outputs++] = (gs_output){kind, node, param};
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
    ir->differentiated = false;
}

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
    gs_ir *to = gs_ir_new(ir->source, true);
    bool *live = gs_calloc((size_t)ir->nodes + 1, sizeof(*live));
    uint32_t *map = gs_malloc_array((size_t)ir->nodes + 1, sizeof(*map));
    gs_status st = ir->status;

    if (st != GS_OK)
        goto done;
    if (to == NULL || live == NULL || map == NULL) {
        st = gs_fail(GS_ENOMEM, "%s: no memory for the model's graph", ir->source);
        goto done;
    }
    mark_live(ir, live);
    rewrite_nodes(to, ir, live, map, fn, context);
    st = to->status;
    if (st != GS_OK)
        goto done;
    to->differentiated = ir->differentiated;
    gs_ir_swap(ir, to);
done:
    gs_ir_free(to);
    gs_free(live);
    gs_free(map);
    return st;
}
