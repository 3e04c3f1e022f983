/* compile_hoist.c - what depends on the graph and its features alone is computed once.
 *
 * In layer 1 of GCN that is A X, in layer 1 of GraphSAGE the neighbours' mean: with them stored like
 * features, no epoch pays for that edge pass again. A value that needs an edge pass, but no learned
 * parameter and no random number, becomes an array of the pass "setup"; for the other passes
 * it is an input. Arrays are named by what they compute, so that passes find each other's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "compile/compile_internal.h"

/* ---- isomorphic parameters --------------------------------------------- */

/* Which parameters stand in the same surroundings?
 *
 * Colours are refined as Weisfeiler and Lehman do it: a node's is made of its own, its inputs' in their order and its
 * users' in any, a few times over. Names do not count, shapes do.
 */

#define ROUNDS 4 /* steps along the graph that a colour knows of */

static uint64_t first_colour(const gs_node *n)
{
    uint64_t h = gs_mix(gs_mix(gs_mix(1, (uint64_t)n->op), n->width), (uint64_t)n->type);
    h = gs_mix(gs_mix(gs_mix(h, n->rows), n->dims), (uint64_t)n->dtype);
    return gs_mix(gs_mix(h, n->fixed), n->op == GS_OP_PARAM ? n->shape_dims : 0);
}

static void refine(const gs_ir *ir, const uint64_t *old, uint64_t *new)
{
    const uint32_t n = gs_ir_count(ir);

    memset(new, 0, n * sizeof(*new));
    for (uint32_t i = 0; i < n; i++) /* users: a sum, as their order says nothing */
        for (uint32_t k = 0; k < gs_node_inputs(gs_ir_node(ir, i)); k++)
            new[gs_ir_node(ir, i)->in[k]] += gs_mix(old[i], k + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t h = gs_mix(old[i], new[i]);
        for (uint32_t k = 0; k < gs_node_inputs(gs_ir_node(ir, i)); k++)
            h = gs_mix(h, old[gs_ir_node(ir, i)->in[k]]);
        new[i] = h;
    }
}

/* Numbers colours in the order in which weights have them. A table of twice as many places finds those seen. */
static uint32_t number(uint32_t *isomorphic, const uint64_t *colour, const uint32_t *weight, uint32_t weights,
                       uint32_t *slot, uint32_t slots)
{
    uint32_t classes = 0;

    memset(slot, 0xff, slots * sizeof(*slot));
    for (uint32_t i = 0; i < weights; i++) {
        uint32_t at = (uint32_t)(colour[weight[i]] >> 32) & (slots - 1);
        while (slot[at] != UINT32_MAX && colour[weight[slot[at]]] != colour[weight[i]])
            at = (at + 1) & (slots - 1);
        if (slot[at] == UINT32_MAX) {
            slot[at] = i;
            isomorphic[i] = classes++;
        } else {
            isomorphic[i] = isomorphic[slot[at]];
        }
    }
    return classes;
}

uint32_t gs_compile__isomorphic(uint32_t *isomorphic, const gs_ir *ir, const uint32_t *weight, uint32_t weights)
{
    const uint32_t n = gs_ir_count(ir);
    uint32_t slots = 16, classes = 0;
    while (slots < 2 * weights)
        slots *= 2;
    GS_FREED uint64_t *colour = gs_malloc_array(n, sizeof(*colour)), *next = gs_malloc_array(n, sizeof(*next));
    GS_FREED uint32_t *const slot = gs_malloc_array(slots, sizeof(*slot));

    if (colour != NULL && next != NULL && slot != NULL) {
        for (uint32_t i = 0; i < n; i++)
            colour[i] = first_colour(gs_ir_node(ir, i));
        for (int r = 0; r < ROUNDS; r++) {
            refine(ir, colour, next);
            uint64_t *const old = colour;
            colour = next;
            next = old;
        }
        classes = number(isomorphic, colour, weight, weights, slot, slots);
    }
    return classes;
}

/* ---- hoisting ---------------------------------------------------------- */

#define NAME_BYTES 32

enum { INVARIANT = 1, NEEDS_EDGES = 2, HOISTED = 4, VISITED = 8, READ_BY_EDGES = 16 };

typedef struct gs_hoist {
    const gs_ir *ir;
    const gs_program *program; /* NULL: for printing */
    uint8_t *bits;  /* [nodes] */
    uint64_t *hash; /* [nodes] of what is computed */
    uint32_t root;
    const gs_compile_options *options; /* NULL: for names alone */
} gs_hoist;

static uint64_t hash_node(const gs_hoist *x, const gs_node *n)
{
    uint64_t h = gs_mix(gs_mix(gs_mix(1, (uint64_t)n->op), n->width), n->self);
    uint32_t bits;

    if (n->op == GS_OP_ROUND) /* the same value, in other bytes */
        return x->hash[n->in[0]];
    memcpy(&bits, &n->alpha, sizeof(bits));
    h = gs_mix(gs_mix(h, bits), n->site);
    if (n->op == GS_OP_INPUT || n->op == GS_OP_PARAM)
        for (const char *c = n->name; *c != 0; c++)
            h = gs_mix(h, (uint8_t)*c);
    if (gs_op_is(n->op, GS_FACT_COMMUTES)) /* the order of the nodes may differ from pass to pass */
        return gs_mix(h, x->hash[n->in[0]] + x->hash[n->in[1]]);
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        h = gs_mix(h, x->hash[n->in[k]]);
    return h;
}

static bool is_layer(const gs_hoist *x) { return x->options != NULL && x->options->layer; }

/* True for values that are not known when the pass "setup" runs. In a layer that pass is the forward one: only the
 * upstream gradient is not known then, as random numbers are the same in both passes. */
static bool may_vary(const gs_hoist *x, const gs_node *n)
{
    const bool upstream = n->op == GS_OP_INPUT && strcmp(n->name, GS_IR_UPSTREAM) == 0;
    if (is_layer(x))
        return upstream;
    return upstream || (n->op == GS_OP_PARAM && (!n->fixed || n->moving)) || gs_node_table(n) != NULL ||
           gs_op_is_random(n->op);
}

static bool is_invariant(const gs_hoist *x, const gs_node *n)
{
    const gs_op_class cls = gs_op_classof(n->op);
    if (may_vary(x, n) || cls == GS_CLASS_REDUCE || cls == GS_CLASS_STATISTIC || cls == GS_CLASS_LOSS)
        return false;
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        if ((x->bits[n->in[k]] & INVARIANT) == 0)
            return false;
    return true;
}

static void classify(gs_hoist *x)
{
    for (uint32_t i = 0; i < gs_ir_count(x->ir); i++) {
        const gs_node *n = gs_ir_node(x->ir, i);
        x->bits[i] = is_invariant(x, n) ? INVARIANT : 0;
        if (gs_compile__is_sum(n) || (is_layer(x) && gs_op_classof(n->op) == GS_CLASS_MATMUL))
            x->bits[i] |= NEEDS_EDGES; /* of a layer: or a product, which is not to be made twice either */
        for (uint32_t k = 0; k < gs_node_inputs(n); k++)
            x->bits[i] |= x->bits[n->in[k]] & NEEDS_EDGES;
        for (uint32_t k = 0; k < gs_node_inputs(n); k++)
            if (gs_op_classof(n->op) == GS_CLASS_EDGE || (n->type & GS_TYPE_S) != 0)
                x->bits[n->in[k]] |= READ_BY_EDGES;
        x->hash[i] = hash_node(x, n);
    }
}

static void name_of(const gs_hoist *x, uint32_t i, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, GS_HOISTED "%016" PRIx64, x->hash[i]);
}

static bool has_setup(const gs_hoist *x)
{
    return x->program != NULL && gs_program_pass(x->program, "setup") != GS_NONE;
}

/* What a setup pass has stored of it, or NULL. */
static const gs_array *stored(const gs_hoist *x, uint32_t i)
{
    char name[NAME_BYTES];
    name_of(x, i, name);
    for (uint32_t a = 0; has_setup(x) && a < x->program->arrays; a++)
        if (strcmp(x->program->array[a].name, name) == 0)
            return &x->program->array[a];
    return NULL;
}

/* Once there is a setup pass, only what it has stored. */
static bool is_available(const gs_hoist *x, uint32_t i) { return !has_setup(x) || stored(x, i) != NULL; }

/* As all passes have it: the first one decides. */
static gs_dtype type_of(const gs_hoist *x, uint32_t i)
{
    const gs_array *const a = stored(x, i);
    if (a != NULL)
        return a->dtype;
    const bool may = gs_compile__may_round(gs_ir_node(x->ir, i)->width, x->options->rest_width);
    return may && (x->bits[i] & READ_BY_EDGES) == 0 ? x->options->rest : GS_F32;
}

static bool can_hoist(const gs_hoist *x, uint32_t i)
{
    const gs_node *n = gs_ir_node(x->ir, i);
    return (x->bits[i] & (INVARIANT | NEEDS_EDGES)) == (INVARIANT | NEEDS_EDGES) && n->type == GS_TYPE_D &&
           (i != x->root || is_layer(x)) && is_available(x, i);
}

/* Is it narrower to store what the value is made of? */
static bool inputs_are_narrower(const gs_hoist *x, const gs_node *n)
{
    uint64_t width = 0;
    if (gs_compile__is_sum(n))
        return false;
    for (uint32_t k = 0; k < gs_node_inputs(n); k++) {
        const bool again = k > 0 && n->in[k] == n->in[0];
        if ((x->bits[n->in[k]] & NEEDS_EDGES) == 0 || again)
            continue;
        if (!can_hoist(x, n->in[k]))
            return false;
        width += gs_ir_node(x->ir, n->in[k])->width;
    }
    return width < n->width;
}

/* From the outputs down to the first values that can be stored. Inputs have lower numbers. */
static uint32_t choose(gs_hoist *x)
{
    uint32_t count = 0;
    for (uint32_t o = 0; o < gs_ir_outputs(x->ir); o++)
        x->bits[gs_ir_output(x->ir, o)->node] |= VISITED;
    for (uint32_t i = gs_ir_count(x->ir); i-- > 0;) {
        const gs_node *n = gs_ir_node(x->ir, i);
        if ((x->bits[i] & VISITED) == 0)
            continue;
        if (can_hoist(x, i) && !inputs_are_narrower(x, n)) {
            x->bits[i] |= HOISTED;
            count++;
            continue;
        }
        for (uint32_t k = 0; k < gs_node_inputs(n); k++)
            x->bits[n->in[k]] |= VISITED;
    }
    return count;
}

static uint32_t rewrite(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
{
    const gs_hoist *x = context;
    const gs_node *n = gs_ir_node(from, i);
    char name[NAME_BYTES];

    if ((x->bits[i] & HOISTED) == 0)
        return gs_ir_like(to, n, in);
    name_of(x, i, name);
    const gs_dtype type = type_of(x, i);
    const uint32_t input = gs_ir_input(to, name, n->width, type);
    return type == GS_F32 ? input : gs_ir_unary(to, GS_OP_CAST, input, 0);
}

/* The graph of the hoisted values alone, each an output. */
static gs_status make_setup(gs_ir **out, const gs_hoist *x)
{
    GS_ENDS(gs_ir_free_at) gs_ir *setup = gs_ir_clone(x->ir);

    if (setup == NULL)
        return gs_fail(GS_ENOMEM, "no memory to compile the model");
    gs_ir_forward_only(setup);
    if (!is_layer(x))
        gs_ir_drop_outputs(setup, GS_OUTPUT_LOGITS);
    gs_ir_drop_outputs(setup, GS_OUTPUT_STORE);
    gs_ir_drop_outputs(setup, GS_OUTPUT_FOLLOW);
    for (uint32_t i = 0; i < gs_ir_count(x->ir); i++)
        if ((x->bits[i] & HOISTED) != 0)
            gs_ir_add_output(setup, GS_OUTPUT_STORE,
                             type_of(x, i) == GS_F32 ? i : gs_ir_unary(setup, GS_OP_ROUND, i, 0), GS_IR_NONE);
    GS_TRY(gs_ir_rewrite(setup, NULL, NULL));
    *out = setup;
    setup = NULL;
    return GS_OK;
}

static void hoist_drop(gs_hoist *x)
{
    gs_free(x->bits);
    gs_free(x->hash);
}

static gs_status hoist_open(gs_hoist *x, const gs_ir *ir, const gs_program *program, const gs_compile_options *options)
{
    const size_t n = (size_t)gs_ir_count(ir) + 1;
    *x = (gs_hoist){.ir = ir, .program = program, .root = gs_ir_root(ir), .options = options};
    x->bits = gs_calloc(n, sizeof(*x->bits));
    x->hash = gs_calloc(n, sizeof(*x->hash));
    if (x->bits == NULL || x->hash == NULL)
        return gs_fail(GS_ENOMEM, "no memory to compile the model");
    classify(x);
    return GS_OK;
}

gs_status gs_compile__hoisted_name(const gs_ir *ir, uint32_t node, char *name, size_t bytes)
{
    GS_ENDS(hoist_drop) gs_hoist x = {0};

    GS_TRY(hoist_open(&x, ir, NULL, NULL));
    snprintf(name, bytes, GS_HOISTED "%016" PRIx64, x.hash[node]);
    return GS_OK;
}

gs_status gs_compile__hoist(gs_ir *ir, gs_ir **setup, const gs_program *program, const gs_compile_options *options)
{
    GS_ENDS(hoist_drop) gs_hoist x = {0};
    GS_ENDS(gs_ir_free_at) gs_ir *once = NULL;

    GS_TRY(hoist_open(&x, ir, program, options));
    if (choose(&x) == 0 && !is_layer(&x))
        return GS_OK;
    if (setup != NULL)
        GS_TRY(make_setup(&once, &x));
    GS_TRY(gs_ir_rewrite(ir, rewrite, &x));
    GS_TRY(gs_ir_rewrite(ir, NULL, NULL));
    if (setup != NULL)
        *setup = once;
    once = NULL;
    return GS_OK;
}
