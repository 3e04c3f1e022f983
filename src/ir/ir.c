/* ir.c - the graph: nodes found by value, outputs, and the first error. */
#include "ir/ir_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"

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
    if (node == GS_IR_NONE || gs_op_classof(ir->node[node].op) == GS_CLASS_LEAF || ir->node[node].name[0] != 0)
        return;
    snprintf(ir->node[node].name, sizeof(ir->node[node].name), "%s", name);
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
