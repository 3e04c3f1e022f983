/* compile.c - the order of the passes, and the choice of moves by what they cost.
 *
 *   normalise   fold; one-end work leaves the edges            (ir/ir_edges.c)
 *   bind        leaves become what the store holds, f16/bf16 are cast
 *   move        products before or after the edges             (compile_move.c)
 *   typed       products by the matrix of an edge's type, on the edges, if wished
 *   loss, differentiate                                        (ir/ir_grad.c)
 *   lower       a vertex's own score leaves its softmax        (ir/ir_edges.c)
 *   hoist       what needs no parameter is computed once       (compile_hoist.c)
 *   holders     largest values of products are known by who has them, if wished (compile_move.c)
 *   undo        x from x / s, instead of storing both          (compile_move.c)
 *   cut         stages                                         (compile_cut.c)
 *   emit        the program                                    (compile_emit.c)
 *
 * A move changes the backward pass and what is stored as well, so each candidate goes through
 * the derivative and the cut, and the whole pass's bytes decide: rows gathered by
 * edge passes (edges_per_vertex of them a vertex), rows stored, rows loaded. Weights are tried one after
 * the other, as layers hardly influence each other; it is a sweep, not a proof.
 */
#include "compile/compile.h"

#include <string.h>

#include "base/size.h"
#include "compile/compile_internal.h"

#define STANDING      4 /* times an epoch that what stands all the time counts as moved, where memory is to be little */
#define MOST_SEARCHED 160 /* nodes of a candidate whose cut is searched, not only found greedily */
/* Nodes of all candidates together up to which weights are tried one by one; a node takes some microseconds. In larger
 * models those that stand in the same surroundings are tried together, and no more than so many nodes in all. */
#define MOST_ONE_BY_ONE 60000u
#define MOST_TRIED      300000u

typedef struct gs_compiler {
    const gs_compile_options *options;
    const gs_program *program; /* NULL: for printing */
    const gs_ir *base; /* normalised, bound, forward only */
    bool gradients, hoist;
    /* products that may be moved */
    uint32_t *weight;  /* [weights] their parameters, nodes of `base` */
    uint32_t *isomorphic;   /* [weights] class of each: those of one move together */
    uint32_t weights, classes;
    const char **name; /* scratch [weights] */
} gs_compiler;

static uint32_t bind_leaf(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
{
    const gs_compile_options *o = context;
    const gs_node *n = gs_ir_node(from, i);

    if (n->op != GS_OP_INPUT)
        return gs_ir_like(to, n, in);
    for (uint32_t k = 0; k < o->leaves; k++) {
        uint32_t leaf;
        if (strcmp(o->leaf[k].name, n->name) != 0 || !gs_dtype_is_half(o->leaf[k].dtype))
            continue;
        leaf = gs_ir_input(to, n->name, n->width, o->leaf[k].dtype);
        return gs_ir_unary(to, GS_OP_CAST, leaf, 0);
    }
    return gs_ir_like(to, n, in);
}

static bool has_gradients(const gs_ir *ir)
{
    for (uint32_t i = 0; i < gs_ir_outputs(ir); i++)
        if (gs_ir_output(ir, i)->kind == GS_OUTPUT_GRAD || gs_ir_output(ir, i)->kind == GS_OUTPUT_GRAD_ROWS)
            return true;
    return false;
}

static gs_dtype labels_of(const gs_compile_options *o)
{
    for (uint32_t i = 0; i < o->leaves; i++)
        if (strcmp(o->leaf[i].name, "labels") == 0)
            return o->leaf[i].dtype;
    return GS_I32;
}

/* Loss and gradients on the moved forward graph; dead code goes. */
static gs_status finish(const gs_compiler *k, gs_ir *ir)
{
    const bool given = k->options->layer || k->options->given;
    if (!given && (k->options->metrics || k->gradients))
        GS_TRY(gs_ir_add_loss(ir, k->options->loss, labels_of(k->options)));
    if (k->gradients)
        GS_TRY(given ? gs_ir_differentiate_from(ir, k->options->layer) : gs_ir_differentiate(ir));
    if (has_gradients(ir)) /* from the loss's gradient, which counts the metrics itself */
        gs_ir_drop_outputs(ir, GS_OUTPUT_LOSS);
    if (k->options->given) /* what came to the root is known: nothing else asks for it */
        gs_ir_drop_outputs(ir, GS_OUTPUT_LOGITS);
    return gs_ir_lower(ir);
}

/* All products whose move is `move`, at once. */
static gs_status move_weights(gs_ir *ir, const gs_compiler *k, const gs_move *moves, gs_move move)
{
    gs_names names = {.name = k->name};

    for (uint32_t i = 0; i < k->weights; i++)
        if (moves[k->isomorphic[i]] == move)
            names.name[names.count++] = gs_ir_node(k->base, k->weight[i])->name;
    return gs_compile__move(ir, &names, move, k->hoist && !k->options->lean, k->options->typed);
}

/* It takes an array more, and sums beside each other. */
static bool keeps_holders(const gs_compile_options *o)
{
    return o->holders && !o->recompute && !o->lean && !o->no_fuse && !o->in_memory && !o->layer;
}

/* The graph under the moves of each class, finished, as a new one. `setup` as gs_compile__hoist() has it. */
static gs_status make_variant(gs_ir **out, gs_ir **setup, const gs_compiler *k, const gs_move *move)
{
    GS_ENDS(gs_ir_free_at) gs_ir *ir = NULL;

    GS_TRY(gs_compile__check_stop(k->options));
    if ((ir = gs_ir_clone(k->base)) == NULL)
        return gs_fail(GS_ENOMEM, "no memory to compile the model");
    GS_TRY(move_weights(ir, k, move, GS_MOVE_TRANSFORM_FIRST));
    GS_TRY(move_weights(ir, k, move, GS_MOVE_AGGREGATE_FIRST));
    if (k->options->typed)
        GS_TRY(gs_compile__typed(ir));
    GS_TRY(finish(k, ir));
    if (k->hoist)
        GS_TRY(gs_compile__hoist(ir, setup, k->program, k->options));
    if (k->gradients && keeps_holders(k->options))
        GS_TRY(gs_compile__holders(ir));
    *out = ir;
    ir = NULL;
    return GS_OK;
}

/* Bytes a vertex of what the pass reads of the store and of what is computed once: it stands from the first epoch to
 * the last. */
static uint64_t standing_cost(const gs_ir *ir)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < gs_ir_count(ir); i++)
        if (gs_ir_node(ir, i)->op == GS_OP_INPUT)
            bytes += (uint64_t)gs_ir_node(ir, i)->width * gs_dtype_bytes(gs_ir_node(ir, i)->dtype);
    return bytes * GS_COST_BYTE;
}

static gs_status variant_cost(uint64_t *cost, const gs_compiler *k, const gs_move *move)
{
    GS_ENDS(gs_ir_free_at) gs_ir *ir = NULL;

    GS_TRY(make_variant(&ir, NULL, k, move));
    GS_TRY(gs_compile__cut_cost(cost, ir, k->options, k->weights <= 4 && gs_ir_count(ir) <= MOST_SEARCHED));
    if (k->options->lean)
        *cost += STANDING * standing_cost(ir);
    return GS_OK;
}

/* Does some edge multiply by the matrices `weight` itself? */
static bool is_typed(const gs_ir *ir, const char *weight)
{
    for (uint32_t i = 0; i < gs_ir_count(ir); i++)
        if (gs_ir_node(ir, i)->op == GS_OP_BY_TYPE &&
            strcmp(gs_ir_node(ir, gs_ir_node(ir, i)->in[1])->name, weight) == 0)
            return true;
    return false;
}

static uint32_t first_of(const gs_compiler *k, uint32_t class)
{
    uint32_t i = 0;
    while (k->isomorphic[i] != class)
        i++;
    return k->weight[i];
}

/* With typed products wished for, every product that can be made so is: what it saves beside bytes moved are operations
 * and memory, which the costs here do not know. They are compared by those who plan. */
static gs_status choose_typed(const gs_compiler *k, gs_move *move)
{
    for (uint32_t i = 0; i < k->classes; i++) {
        const gs_node *const weight = gs_ir_node(k->base, first_of(k, i));
        GS_ENDS(gs_ir_free_at) gs_ir *ir = NULL;
        if (weight->shape_dims != 3)
            continue;
        move[i] = GS_MOVE_TRANSFORM_FIRST;
        GS_TRY(make_variant(&ir, NULL, k, move));
        if (!is_typed(ir, weight->name))
            move[i] = GS_MOVE_NONE;
    }
    return GS_OK;
}

/* From none on; *best is what the pass costs with them. */
static gs_status choose_moves(uint64_t *best, const gs_compiler *k, gs_move *move)
{
    static const gs_move tried[] = {GS_MOVE_NONE, GS_MOVE_TRANSFORM_FIRST, GS_MOVE_AGGREGATE_FIRST};
    const uint64_t most = MOST_TRIED / GS_MAX(gs_ir_count(k->base), 1u);

    if (k->options->typed && !k->options->no_move)
        GS_TRY(choose_typed(k, move));
    GS_TRY(variant_cost(best, k, move));
    for (uint32_t i = 0; i < k->classes && 2 * (uint64_t)i < most && !k->options->no_move; i++) {
        gs_move choice = move[i];
        if (choice != GS_MOVE_NONE) /* a typed product */
            continue;
        for (uint32_t m = 1; m < 3; m++) {
            uint64_t cost = UINT64_MAX;
            move[i] = tried[m];
            GS_TRY(variant_cost(&cost, k, move));
            if (cost < *best) {
                *best = cost;
                choice = move[i];
            }
        }
        move[i] = choice;
    }
    return GS_OK;
}

/* Storing what needs no parameter is not always less than doing it again: sums by type are wide. The moves in `move`
 * are for hoisting; where memory is to be little, others may be best without it. */
static gs_status choose_hoisting(gs_compiler *k, gs_move *move, uint64_t with)
{
    GS_FREED gs_move *const other = gs_calloc((size_t)k->classes + 1, sizeof(*other));
    uint64_t without = 0;

    if (other == NULL)
        return gs_fail(GS_ENOMEM, "no memory to compile the model");
    k->hoist = false;
    GS_TRY(k->options->lean ? choose_moves(&without, k, other) : variant_cost(&without, k, move));
    if (with < without)
        k->hoist = true;
    else if (k->options->lean)
        memcpy(move, other, k->classes * sizeof(*move));
    return GS_OK;
}

/* Each is a class of its own, unless that is too much to try. */
static gs_status list_weights(gs_compiler *k)
{
    const uint32_t n = gs_ir_count(k->base);

    for (uint32_t i = 0; i < n; i++)
        if (gs_ir_node(k->base, i)->op == GS_OP_PARAM && gs_ir_node(k->base, i)->dims == 2) {
            k->isomorphic[k->weights] = k->weights;
            k->weight[k->weights++] = i;
        }
    k->classes = k->weights;
    if (2 * (uint64_t)k->weights * n > MOST_ONE_BY_ONE)
        k->classes = gs_compile__isomorphic(k->isomorphic, k->base, k->weight, k->weights);
    return k->classes > 0 || k->weights == 0 ? GS_OK : gs_fail(GS_ENOMEM, "no memory to compile the model");
}

/* Makes the best variant, finished, and what it has computed once. */
static gs_status move_and_finish(gs_compiler *k, gs_ir **ir, gs_ir **setup)
{
    const size_t n = (size_t)gs_ir_count(k->base) + 1;
    GS_ENDS(gs_arena_free) gs_arena memory = {0};
    gs_move *const move = gs_arena_take(&memory, n, sizeof(*move));
    uint64_t cost = 0;

    k->weight = gs_arena_take(&memory, n, sizeof(*k->weight));
    k->isomorphic = gs_arena_take(&memory, n, sizeof(*k->isomorphic));
    k->name = gs_arena_take(&memory, n, sizeof(*k->name));
    if (memory.is_short)
        return gs_fail(GS_ENOMEM, "no memory to compile the model");
    GS_TRY(list_weights(k));
    if (!k->options->no_move || k->hoist)
        GS_TRY(choose_moves(&cost, k, move));
    if (k->hoist && !k->options->layer)
        GS_TRY(choose_hoisting(k, move, cost));
    return make_variant(ir, setup, k, move);
}

static gs_status check_root(const gs_ir *ir)
{
    const uint32_t root = gs_ir_root(ir);
    if (root == GS_IR_NONE)
        return gs_fail(GS_EINVAL, "compile: the graph has no logits");
    if (gs_ir_node(ir, root)->type != GS_TYPE_D || gs_ir_node(ir, root)->op == GS_OP_INPUT)
        return gs_fail(GS_EUNSUPPORTED, "the model computes nothing from its vertices: its result is %s",
                       gs_ir_node(ir, root)->type == GS_TYPE_P ? "a constant" : "its input");
    return GS_OK;
}

static void show(const gs_compile_options *o, const char *after, const gs_ir *ir)
{
    if (o->show != NULL)
        o->show(o->context, after, ir);
}

/* All passes; `setup` as gs_compile__hoist() has it. */
static gs_status run_passes(gs_ir *ir, gs_ir **setup, const gs_program *program, const gs_compile_options *options)
{
    gs_compiler k = {.options = options, .program = program, .base = ir,
                     .gradients = gs_ir_differentiated(ir) || options->layer || options->given,
                     .hoist = options->hoist || options->layer};
    GS_ENDS(gs_ir_free_at) gs_ir *best = NULL;

    gs_ir_forward_only(ir);
    GS_TRY(gs_ir_normalise(ir));
    GS_TRY(check_root(ir));
    GS_TRY(gs_ir_rewrite(ir, bind_leaf, (void *)(uintptr_t)options));
    show(options, "one-end work has left the edges", ir);
    GS_TRY(move_and_finish(&k, &best, setup));
    if (setup != NULL && *setup != NULL)
        show(options, "computed once", *setup);
    show(options, k.gradients ? "products moved; loss and gradients" : "products moved", best);
    GS_TRY(gs_compile__undo_quotients(best, options));
    gs_ir_swap(ir, best);
    show(options, "as it is cut into stages", ir);
    return GS_OK;
}

/* Parameters that gradients flow to: their pass is there now. */
static void note_learning(gs_program *program, const gs_ir *ir)
{
    for (uint32_t o = 0; o < gs_ir_outputs(ir); o++) {
        const gs_output *const out = gs_ir_output(ir, o);
        for (uint32_t i = 0; out->kind == GS_OUTPUT_GRAD && i < program->params; i++)
            if (strcmp(program->param[i].name, gs_ir_node(ir, out->param)->name) == 0)
                program->param[i].learns = true;
    }
}

static gs_status cut_and_emit(gs_program *program, const gs_ir *ir, const gs_compile_options *options)
{
    GS_ENDS(gs_compile__cut_free_at) gs_cut *c = NULL;

    GS_TRY(gs_compile__cut(&c, ir, options, true));
    GS_TRY(gs_compile__emit(program, c, options));
    note_learning(program, ir);
    return GS_OK;
}

/* The pass of what is computed once, where there is none yet. */
static gs_status emit_setup(gs_program *program, const gs_ir *setup, const gs_compile_options *options)
{
    gs_compile_options once = *options;
    if (setup == NULL || gs_program_pass(program, "setup") != GS_NONE)
        return GS_OK;
    once.pass = "setup";
    once.metrics = false;
    once.store_logits = options->layer;
    return cut_and_emit(program, setup, &once);
}

gs_status gs_compile(gs_program *program, gs_ir *ir, const gs_compile_options *options)
{
    const gs_program old = *program;
    gs_compile_options with = *options;
    gs_cuts own = {0};
    GS_ENDS(gs_ir_free_at) gs_ir *setup = NULL;
    gs_status st;

    with.cuts = options->cuts != NULL ? options->cuts : &own;
    if (strlen(options->pass) >= sizeof(program->pass->name) || gs_program_pass(program, options->pass) != GS_NONE)
        st = gs_fail(GS_EINVAL, "compile: the pass '%s' is there already, or its name is too long", options->pass);
    else
        st = run_passes(ir, &setup, program, &with);
    if (st == GS_OK)
        st = emit_setup(program, setup, &with);
    with.store_logits &= !options->layer;
    if (st == GS_OK)
        st = cut_and_emit(program, ir, &with);
    if (st != GS_OK)
        gs_compile__roll_back(program, &old);
    gs_cuts_drop(&own);
    gs_ir_free(ir);
    return st;
}
