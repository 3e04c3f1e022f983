/* layer.c - one layer on a graph in memory: a program without loss, planned as one interval that stays in memory.
 *
 * The pass "setup" is the forward pass: compile puts there what does not depend on the gradient that comes from outside
 * (compile.h, `layer`). "train" is the backward pass, "predict" a forward pass without dropout, of which nothing is
 * kept. All that comes and goes is the caller's memory, rows, parameters and their gradients; rows of y alone are
 * copied out of the plan's place where the backward pass reads them, as the caller may change y. On a GPU that memory
 * is the GPU's, and what is launched there comes behind the caller's stream, which comes behind it. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/option_table.h"
#include "base/size.h"
#include "compile/compile.h"
#include "device/device.h"
#include "exec/exec.h"
#include "model/model.h"
#include "schedule/schedule.h"
#include "session/params.h"
#include "session/session_plan.h"
#include "store/store.h"
#include "train/options.h"
#include "train/safetensors.h"

/* -- the edges of a graph in memory, as sums of a device take them: one block, by either end, sorted by counting. */

#define MOST_TYPES 65536u
#define MOST (UINT32_MAX - 2u) /* edges, and vertices */

/* Edges of one end have the other's row as their index. */
typedef struct layer_edges {
    gs_edges by[2]; /* by destination, by source */
    void *block;    /* of all arrays, those of `by` first; NULL where a GPU has these */
    uint64_t bytes; /* of those */
    float *in_degree, *out_degree, *loops; /* [vertices] */
    uint64_t self_loops;
} layer_edges;

static gs_status check(const gs_layer_graph *g)
{
    if (g->vertices == 0 || g->vertices > MOST || g->edges > MOST)
        return gs_fail(GS_EINVAL, "graph: %lu vertices and %lu edges; a layer takes 1 to %u vertices and at most as "
                       "many edges", g->vertices, g->edges, MOST);
    if ((g->type != NULL) != (g->edge_types > 0) || g->edge_types > MOST_TYPES)
        return gs_fail(GS_EINVAL, "graph.edge_types %u: must be 1 to 65536 with .type, and 0 without", g->edge_types);
    for (uint64_t e = 0; e < g->edges; e++) {
        const uint64_t u = (uint64_t)g->source[e], v = (uint64_t)g->destination[e];
        if (u >= g->vertices || v >= g->vertices)
            return gs_fail(GS_EINVAL, "edge %lu: vertex %lld is not one of the %lu vertices", e,
                           (long long)(u >= g->vertices ? g->source[e] : g->destination[e]), g->vertices);
        if (g->type != NULL && (uint64_t)g->type[e] >= g->edge_types)
            return gs_fail(GS_EINVAL, "edge %lu: type %lld is none of the %u types", e, (long long)g->type[e],
                           g->edge_types);
        if (g->weight != NULL && !isfinite(g->weight[e]))
            return gs_fail(GS_EINVAL, "edge %lu: the weight is not finite", e);
    }
    return GS_OK;
}

/* out = the edges of `in` (NULL: as they come) by `key`, below `keys`; those of one key keep their order. `start`
 * [keys + 1] is scratch. */
static void sort_by(uint32_t *out, const uint32_t *in, const int64_t *key, uint64_t keys, uint64_t edges,
                    uint32_t *start)
{
    memset(start, 0, (keys + 1) * sizeof(*start));
    for (uint64_t e = 0; e < edges; e++)
        start[key[e] + 1]++;
    for (uint64_t k = 0; k < keys; k++)
        start[k + 1] += start[k];
    for (uint64_t i = 0; i < edges; i++) {
        const uint32_t e = in != NULL ? in[i] : (uint32_t)i;
        out[start[key[e]]++] = e;
    }
}

/* Where the arrays of one end lie. */
typedef struct side {
    void *target, *index, *type;
    uint32_t *start, *next;
    float *weight;
} side;

/* By the end `to`, then by type, then by the other end: edges between the same two stand side by side, in one order
 * from either end, as masks of edges count on. `order` [2][edges] is scratch. */
static void sort_side(gs_edges *out, const side *s, const gs_layer_graph *g, const int64_t *to, const int64_t *from,
                      uint32_t *const order[2])
{
    const uint32_t *sorted = order[0];
    uint32_t used = 0;

    sort_by(order[0], NULL, from, g->vertices, g->edges, s->next);
    if (g->type != NULL) {
        sort_by(order[1], order[0], g->type, g->edge_types, g->edges, s->next);
        sorted = order[1];
    }
    memset(s->next, 0, (g->vertices + 1) * sizeof(*s->next));
    for (uint64_t e = 0; e < g->edges; e++)
        s->next[to[e] + 1]++;
    for (uint64_t v = 0; v < g->vertices; v++) {
        if (s->next[v + 1] > 0) {
            gs_index_put(s->target, out->index_bytes, used, v);
            s->start[used++] = s->next[v];
        }
        s->next[v + 1] += s->next[v];
    }
    s->start[used] = (uint32_t)g->edges;
    for (uint64_t k = 0; k < g->edges; k++) {
        const uint64_t e = sorted[k], at = s->next[to[e]]++;
        gs_index_put(s->index, out->index_bytes, at, (uint32_t)from[e]);
        if (g->weight != NULL)
            s->weight[at] = g->weight[e];
        if (g->type != NULL)
            gs_type_put(s->type, out->type_bytes, at, (uint32_t)g->type[e]);
    }
    out->targets = used;
    out->target = s->target;
    out->start = s->start;
    out->index = s->index;
    out->weight = g->weight != NULL ? s->weight : NULL;
    out->type = g->type != NULL ? s->type : NULL;
}

static void count_degrees(layer_edges *e, const gs_layer_graph *g)
{
    for (uint64_t k = 0; k < g->edges; k++) {
        const bool loop = g->source[k] == g->destination[k];
        e->in_degree[g->destination[k]]++;
        e->out_degree[g->source[k]]++;
        e->loops[g->source[k]] += loop;
        e->self_loops += loop;
    }
}

static void *take(uint8_t **at, uint64_t bytes)
{
    void *const p = *at;
    *at += gs_align_up(bytes, 64);
    return p;
}

static uint64_t side_bytes(const gs_layer_graph *g, uint32_t ix, uint32_t type_bytes)
{
    return gs_align_up((g->vertices + 1) * ix, 64) + gs_align_up((g->edges + 1) * ix, 64) +
           gs_align_up((g->edges + 1) * type_bytes, 64) + gs_align_up((g->vertices + 2) * 4, 64) +
           (g->weight != NULL ? gs_align_up((g->edges + 1) * 4, 64) : 0);
}

/* GS_EINVAL: an end that is no vertex, a type that is none, a weight that is not finite; more edges or vertices than
 * 32 bits count. GS_ENOMEM. Free after a failure too. */
static gs_status layer_edges_make(layer_edges *out, const gs_layer_graph *g)
{
    const uint32_t ix = g->vertices <= 65536 ? 2 : 4;
    const uint32_t type_bytes = g->type == NULL ? 0 : g->edge_types <= 256 ? 1 : 2;
    const uint64_t floats = gs_align_up((g->vertices + 1) * 4, 64);

    *out = (layer_edges){.by = {{.index_bytes = ix, .type_bytes = type_bytes},
                                   {.index_bytes = ix, .type_bytes = type_bytes}}};
    GS_TRY(check(g));
    out->block = gs_calloc(1, 2 * side_bytes(g, ix, type_bytes) + 3 * floats); /* both multiples of 64 */
    GS_FREED uint32_t *const next = gs_malloc_array(GS_MAX(g->vertices, g->edge_types) + 1, sizeof(*next));
    GS_FREED uint32_t *const by_end = gs_malloc_array(g->edges + 1, sizeof(*next));
    GS_FREED uint32_t *const by_type = g->type != NULL ? gs_malloc_array(g->edges + 1, sizeof(*next)) : NULL;
    if (out->block == NULL || next == NULL || by_end == NULL || (g->type != NULL && by_type == NULL))
        return gs_fail(GS_ENOMEM, "out of memory for the edges of a layer");
    out->bytes = 2 * side_bytes(g, ix, type_bytes);
    uint8_t *at = (uint8_t *)out->block + out->bytes;
    out->in_degree = take(&at, floats);
    out->out_degree = take(&at, floats);
    out->loops = take(&at, floats);
    count_degrees(out, g);
    at = out->block;
    for (int d = 0; d < 2; d++) {
        side s = {.next = next};
        s.target = take(&at, (g->vertices + 1) * ix);
        s.index = take(&at, (g->edges + 1) * ix);
        s.type = take(&at, (g->edges + 1) * type_bytes);
        s.start = take(&at, (g->vertices + 2) * 4);
        s.weight = g->weight != NULL ? take(&at, (g->edges + 1) * 4) : NULL;
        sort_side(&out->by[d], &s, g, d == 0 ? g->destination : g->source, d == 0 ? g->source : g->destination,
                  (uint32_t *[2]){by_end, by_type});
    }
    return GS_OK;
}

static void layer_edges_free(layer_edges *e)
{
    gs_free(e->block);
    *e = (layer_edges){0};
}

#define ANY_MEMORY (1ull << 56)
#define PREFIX "convs.0."
#define UPSTREAM_ID GS_ARRAY_COUNT /* beside those of a store */
enum { OUTSIDE_X, OUTSIDE_Y, OUTSIDE_Y_PREDICT, OUTSIDE_Y_GRADIENT, OUTSIDE_X_GRADIENT, OUTSIDE };
#define ROW_ALIGNMENT 16u /* bytes: kernels read rows by so many */
#define LEAST_SHARE (256 * GS_KIB) /* bytes that another thread is worth to copy */

struct gs_layer {
    gs_train_options options;
    uint32_t in, out;
    uint64_t vertices;
    layer_edges edges;
    gs_chunk chunk[2];
    gs_chunk_table table;
    gs_device *device;
    gs_program *program;
    gs_plan *plan;
    gs_exec *exec;
    gs_exec_graph graph;
    gs_arena memory;         /* of the lists below */
    gs_edges *stage_edges;   /* [stages] */
    gs_params params;        /* what they start as */
    uint32_t *tensor;        /* [tensors] learned parameters */
    uint32_t tensors;
    const float **value;     /* [program->params] of a call */
    float **gradient;
    struct {
        uint32_t forward, backward, predict;
    } pass;
    struct {
        uint32_t features, upstream, y, y_predict, x_gradient; /* GS_NONE: the program has no such array */
    } array;
    gs_exec_outside outside[OUTSIDE]; /* x, y and their gradients, in a call */
    bool keeps_y;            /* the backward pass reads y */
    uint32_t step;           /* of the last forward pass of training */
    bool trained;            /* there was one, and what it kept is there */
    bool own;                /* the device has memory of its own: rows, parameters and gradients are there */
    void *stream;            /* of the caller's, there */
    struct {
        const float **param; /* [program->params] of a call: learned ones */
        float **grad;
    } there;
};

/* ---- the program --------------------------------------------------------- */

static uint32_t fill_leaves(gs_leaf *leaf, const gs_layer *l)
{
    uint32_t n = 0;
    leaf[n++] = (gs_leaf){gs_array_stem(GS_ARRAY_FEATURES), GS_ARRAY_FEATURES, GS_F32, l->in};
    leaf[n++] = (gs_leaf){gs_array_stem(GS_ARRAY_IN_DEGREE), GS_ARRAY_IN_DEGREE, GS_F32, 1};
    leaf[n++] = (gs_leaf){gs_array_stem(GS_ARRAY_OUT_DEGREE), GS_ARRAY_OUT_DEGREE, GS_F32, 1};
    leaf[n++] = (gs_leaf){gs_array_stem(GS_ARRAY_LOOPS), GS_ARRAY_LOOPS, GS_F32, 1};
    leaf[n++] = (gs_leaf){gs_array_stem(GS_ARRAY_INPUT_ID), GS_ARRAY_INPUT_ID, GS_U32, 1};
    leaf[n++] = (gs_leaf){GS_IR_UPSTREAM, UPSTREAM_ID, GS_F32, l->out};
    return n;
}

static gs_status check_graph(const gs_ir *ir, const gs_model *model)
{
    for (uint32_t i = 0; i < gs_ir_count(ir); i++) {
        const gs_node *const n = gs_ir_node(ir, i);
        if (gs_node_table(n) != NULL)
            return gs_fail(GS_EUNSUPPORTED,
                           "%s: table %s[vertices, %u] is learned by whole runs; give a layer those rows as its input",
                           gs_model_name(model), gs_node_table(n), n->width);
        if (n->moving || gs_op_classof(n->op) == GS_CLASS_STATISTIC)
            return gs_fail(GS_EUNSUPPORTED,
                           "%s: statistics of all vertices, as batch_norm has them, are beyond a layer by itself; put "
                           "the normalisation behind it", gs_model_name(model));
    }
    return GS_OK;
}

static gs_status add_pass(gs_layer *l, const gs_model *model, const gs_layer_graph *g, const char *name, bool training)
{
    const gs_train_options *const o = &l->options;
    const gs_model_config config = {.layers = 1, .in_width = l->in, .hidden = l->out, .classes = l->out,
                                    .heads = o->heads, .bases = o->bases, .edge_types = g->edge_types,
                                    .edge_weights = g->weight != NULL, .act = o->activation,
                                    .dropout = (float)o->dropout, .training = training && !g->no_dropout,
                                    .self_loops = l->edges.self_loops != 0};
    gs_leaf leaf[GS_ARRAY_COUNT + 1];
    const gs_compile_options compile = {.pass = name, .leaf = leaf, .leaves = fill_leaves(leaf, l),
                                        .store_logits = true, .layer = training, .no_move = o->no_move,
                                        .no_fuse = o->no_fuse, .rest = GS_F32,
                                        .typed = g->edge_types > 0 && g->edge_types * g->vertices > g->edges,
                                        .edges_per_vertex = (double)g->edges / (double)g->vertices, .stop = o->stop};
    gs_ir *ir = NULL;
    gs_status st = gs_model_build(&ir, model, &config);

    if (st == GS_OK && (st = check_graph(ir, model)) != GS_OK)
        gs_ir_free(ir);
    return st == GS_OK ? gs_compile(l->program, ir, &compile) : st; /* takes the graph */
}

static uint32_t array_named(const gs_layer *l, const char *name)
{
    for (uint32_t a = 0; a < l->program->arrays; a++)
        if (strcmp(l->program->array[a].name, name) == 0)
            return a;
    return GS_NONE;
}

static bool pass_uses(const gs_program *p, uint32_t pass, uint32_t array)
{
    const gs_pass *const of = &p->pass[pass];
    bool uses = false;
    for (uint32_t s = of->first_stage; s < of->first_stage + of->stages; s++)
        for (gs_array_use u = {0}; gs_stage_next_use(&p->stage[s], &u);)
            uses = uses || u.array == array;
    return uses;
}

static gs_status compile_model(gs_layer *l, const gs_layer_graph *g)
{
    GS_ENDS(gs_model_close_at) gs_model *model = NULL;

    GS_TRY(gs_session_open_model(&model, &l->options));
    GS_NEED((l->program = gs_program_new()) != NULL, "out of memory for the compiled model");
    GS_TRY(add_pass(l, model, g, "train", true));
    l->array.y = l->program->logits;
    GS_TRY(add_pass(l, model, g, "predict", false));
    l->array.y_predict = l->program->logits;
    l->pass.forward = gs_program_pass(l->program, "setup");
    l->pass.backward = gs_program_pass(l->program, "train");
    l->pass.predict = gs_program_pass(l->program, "predict");
    l->array.features = gs_program_stored(l->program, GS_ARRAY_FEATURES);
    l->array.upstream = gs_program_stored(l->program, UPSTREAM_ID);
    l->array.x_gradient = array_named(l, GS_INPUT_GRAD);
    l->keeps_y = pass_uses(l->program, l->pass.backward, l->array.y);
    return gs_program_check(l->program);
}

/* ---- the plan ------------------------------------------------------------ */

static gs_status make_plan(gs_layer *l, const gs_layer_graph *g)
{
    const gs_schedule_config config = {.program = l->program, .chunks = &l->table, .array_sum_bytes = GS_SUM_BYTES,
                                       .host_memory = ANY_MEMORY, .device_memory = ANY_MEMORY,
                                       .topology = &gs_topology_host, .stop = l->options.stop, .no_swap = true,
                                       .frames_apart = l->own};

    for (int d = 0; d < 2; d++)
        l->chunk[d] = (gs_chunk){.length = GS_BLOCK_BYTES, .edges = GS_MAX(g->edges, 1),
                                 .targets = (uint32_t)g->vertices, .operands = (uint32_t)g->vertices};
    l->table = (gs_chunk_table){.vertices = g->vertices, .parts = 1, .interval_rows = (uint32_t)g->vertices,
                                .data = {l->edges.by[0].type_bytes, g->weight != NULL, 0},
                                .chunk = {&l->chunk[0], &l->chunk[1]}};
    const gs_status st = gs_schedule(&l->plan, &config);
    const uint32_t outside[] = {l->array.features, l->array.upstream, l->array.y_predict, l->array.x_gradient,
                                l->keeps_y ? GS_NONE : l->array.y};
    for (size_t k = 0; l->own && k < GS_ARRAY_LEN(outside); k++)
        if (outside[k] != GS_NONE)
            l->program->array[outside[k]].outside = true;
    return st;
}

static gs_status open_exec(gs_layer *l, const gs_layer_graph *g)
{
    const gs_exec_config config = {.program = l->program, .plan = l->plan, .device = &l->device, .gradients = true,
                                   .parts = 1, .interval_rows = l->table.interval_rows, .vertices = l->vertices,
                                   .index_bytes = gs_index_bytes(&l->table), .edge_data = l->table.data,
                                   .edge_types = g->edge_types, .sets = 2, .bound = true,
                                   .sends = l->own, .piece_bytes = l->own ? l->edges.bytes : 0};
    return gs_exec_open(&l->exec, &config);
}

/* `p` of the block where the GPU has its copy of it. */
static void *brought(const layer_edges *e, const void *p, uint8_t *there)
{
    return p == NULL ? NULL : there + ((const uint8_t *)p - (const uint8_t *)e->block);
}

/* Once: the edges come to the device, and are addresses there from now on. */
static gs_status bring_edges(gs_layer *l)
{
    uint8_t *const there = l->own ? gs_exec_slot_pieces(l->exec, 0) : NULL;
    const gs_status st = l->own ? gs_exec_put(l->exec, there, l->edges.block, l->edges.bytes) : GS_OK;

    for (int d = 0; l->own && d < 2; d++) {
        gs_edges *const e = &l->edges.by[d];
        e->end = e->targets == 0 ? 0 : e->start[e->targets];
        e->target = brought(&l->edges, e->target, there);
        e->start = brought(&l->edges, e->start, there);
        e->index = brought(&l->edges, e->index, there);
        e->weight = brought(&l->edges, e->weight, there);
        e->type = brought(&l->edges, e->type, there);
    }
    return st;
}

static void bind_graph(gs_layer *l)
{
    for (uint32_t k = 0; k < l->program->stages; k++)
        if (l->program->stage[k].sums > 0)
            l->stage_edges[k] = l->edges.by[l->program->stage[k].direction == GS_BY_SOURCE];
    const uint32_t array[OUTSIDE] = {[OUTSIDE_X] = l->array.features, [OUTSIDE_Y] = l->array.y,
                                     [OUTSIDE_Y_PREDICT] = l->array.y_predict, [OUTSIDE_Y_GRADIENT] = l->array.upstream,
                                     [OUTSIDE_X_GRADIENT] = l->array.x_gradient};
    for (uint32_t i = 0; i < OUTSIDE; i++)
        l->outside[i].array = array[i];
    l->graph = (gs_exec_graph){.binding = {.vertices = (uint32_t)l->vertices}, .edges = l->stage_edges,
                               .outside = l->outside, .outsides = OUTSIDE, .there = l->own};
    gs_exec_bind(l->exec, &l->graph);
}

static gs_status put_rows(const gs_layer *l, int id, const void *from)
{
    const uint32_t a = gs_program_stored(l->program, id);
    const uint64_t bytes = l->vertices * sizeof(float);

    if (a == GS_NONE)
        return GS_OK;
    if (l->own)
        return gs_exec_put(l->exec, gs_exec_slot_rows(l->exec, 0, a), from, bytes);
    memcpy(gs_exec_rows(l->exec, a), from, bytes);
    return GS_OK;
}

/* Then the device has all of the graph. */
static gs_status fill_graph_arrays(gs_layer *l)
{
    uint32_t *const row = (uint32_t *)(void *)l->edges.loops;

    _Static_assert(sizeof(*row) == sizeof(*l->edges.loops), "numbers of rows take the place of loops");
    GS_TRY(put_rows(l, GS_ARRAY_IN_DEGREE, l->edges.in_degree));
    GS_TRY(put_rows(l, GS_ARRAY_OUT_DEGREE, l->edges.out_degree));
    GS_TRY(put_rows(l, GS_ARRAY_LOOPS, l->edges.loops));
    for (uint64_t v = 0; v < l->vertices; v++)
        row[v] = (uint32_t)v; /* nobody reads loops any more */
    GS_TRY(put_rows(l, GS_ARRAY_INPUT_ID, row));
    if (l->own) {
        gs_free(l->edges.block);
        l->edges.block = NULL;
    }
    return GS_OK;
}

static gs_status list_tensors(gs_layer *l)
{
    const gs_program *const p = l->program;

    l->tensor = gs_arena_take(&l->memory, p->params, sizeof(*l->tensor));
    l->value = gs_arena_take(&l->memory, p->params, sizeof(*l->value));
    l->gradient = gs_arena_take(&l->memory, p->params, sizeof(*l->gradient));
    l->stage_edges = gs_arena_take(&l->memory, p->stages, sizeof(*l->stage_edges));
    l->there.param = gs_arena_take(&l->memory, p->params, sizeof(*l->there.param));
    l->there.grad = gs_arena_take(&l->memory, p->params, sizeof(*l->there.grad));
    GS_NEED(!l->memory.is_short, "out of memory for a layer");
    for (uint32_t i = 0; i < p->params; i++)
        if (!p->param[i].fixed)
            l->tensor[l->tensors++] = i;
    GS_TRY(gs_params_alloc(&l->params, p, true, 0));
    gs_params_init(&l->params, p, l->options.seed);
    return GS_OK;
}

/* ---- opening ------------------------------------------------------------- */

static gs_status check_given(const void *out, const gs_layer_graph *g, uint32_t in, uint32_t out_width,
                             const gs_train_options *o)
{
    gs_status st;

    if ((st = gs_check_argument(out, "out")) != GS_OK || (st = gs_check_argument(g, "graph")) != GS_OK ||
        (st = gs_check_argument(o, "options")) != GS_OK || (st = gs_check_argument(o->model, ".model")) != GS_OK)
        return st;
    if (g->edges > 0 && ((st = gs_check_argument(g->source, "graph.source")) != GS_OK ||
                         (st = gs_check_argument(g->destination, "graph.destination")) != GS_OK))
        return st;
    if (in == 0 || out_width == 0 || GS_MAX(in, out_width) > 1u << 20)
        return gs_fail(GS_EINVAL, "in %u, out_width %u: must be 1 to 1048576", in, out_width);
    if (o->dropout < 0 || o->dropout >= 1)
        return gs_fail(GS_EINVAL, ".dropout %g: must be at least 0 and below 1", o->dropout);
    const gs_device_words words = gs_device_words_of(o->device);
    return words == GS_DEVICES_CPU || words == GS_DEVICES_GPU
               ? GS_OK
               : gs_fail(GS_EUNSUPPORTED, ".device %s: a layer by itself runs on one device: cpu, or cuda:N for a GPU",
                         o->device);
}

static gs_status open_device(gs_layer *l)
{
    const gs_device_config config = {.spec = l->options.device, .threads = l->options.threads,
                                     .matmul = (gs_matmul)gs_choice(&l->options, matmul)};
    const gs_status st = gs_device_open_with(&l->device, &config);
    l->own = st == GS_OK && !gs_device_unified(l->device);
    return st;
}

static gs_status open_all(gs_layer *l, const gs_layer_graph *graph)
{
    gs_status st;

    if ((st = layer_edges_make(&l->edges, graph)) != GS_OK || (st = compile_model(l, graph)) != GS_OK ||
        (st = open_device(l)) != GS_OK || (st = make_plan(l, graph)) != GS_OK ||
        (st = gs_device_prepare(l->device, l->program)) != GS_OK || (st = list_tensors(l)) != GS_OK ||
        (st = open_exec(l, graph)) != GS_OK || (st = bring_edges(l)) != GS_OK)
        return st;
    bind_graph(l);
    return fill_graph_arrays(l);
}

gs_status gs_layer_open(gs_layer **out, const gs_layer_graph *graph, uint32_t in, uint32_t out_width,
                        const gs_train_options *options)
{
    gs_layer *l = NULL;
    gs_train_options o;
    gs_status st;

    GS_TRY(gs_train_options_read(&o, options));
    GS_TRY(check_given(out, graph, in, out_width, &o));
    GS_NEED((l = gs_calloc(1, sizeof(*l))) != NULL, "out of memory for a layer");
    l->options = o;
    l->in = in;
    l->out = out_width;
    l->vertices = graph->vertices;
    st = open_all(l, graph);
    if (l->device != NULL)
        gs_device_step_aside(l->device);
    if (st == GS_OK)
        *out = l; /* now the caller's */
    else
        gs_layer_close(l);
    return st;
}

void gs_layer_close(gs_layer *l)
{
    if (l == NULL)
        return;
    if (l->device != NULL)
        (void)gs_device_step_in(l->device); /* a lost GPU is no reason to keep the host's memory */
    gs_exec_close(l->exec);
    if (l->device != NULL)
        gs_device_step_aside(l->device);
    gs_plan_free(l->plan);
    gs_params_free(&l->params);
    gs_arena_free(&l->memory);
    gs_device_close(l->device);
    gs_program_free(l->program);
    layer_edges_free(&l->edges);
    gs_free(l);
}

/* ---- tensors ------------------------------------------------------------- */

uint32_t gs_layer_tensors(const gs_layer *l) { return l != NULL ? l->tensors : 0; }

static gs_status check_tensor(const gs_layer *l, uint32_t index)
{
    GS_TRY(gs_check_argument(l, "layer"));
    return index < l->tensors ? GS_OK
                              : gs_fail(GS_EINVAL, "index %u: the layer has %u tensors", index, l->tensors);
}

gs_status gs_layer_tensor(const gs_layer *l, uint32_t index, gs_tensor_info *out)
{
    GS_TRY(check_tensor(l, index));
    GS_TRY(gs_check_argument(out, "out"));
    const gs_param *const p = &l->program->param[l->tensor[index]];
    const bool prefixed = strncmp(p->name, PREFIX, strlen(PREFIX)) == 0;
    *out = (gs_tensor_info){.name = p->name + (prefixed ? strlen(PREFIX) : 0), .count = gs_param_elements(p),
                            .learned = true};
    out->dimensions = gs_safetensors_shape(out->shape, p);
    return GS_OK;
}

gs_status gs_layer_start(const gs_layer *l, uint32_t index, float *out, uint64_t count)
{
    GS_TRY(check_tensor(l, index));
    GS_TRY(gs_check_argument(out, "out"));
    const uint32_t i = l->tensor[index];
    if (count != gs_param_elements(&l->program->param[i]))
        return gs_fail(GS_EINVAL, "count %lu: tensor %s has %lu numbers", count, l->program->param[i].name,
                       gs_param_elements(&l->program->param[i]));
    memcpy(out, l->params.value[i], count * sizeof(*out));
    return GS_OK;
}

/* ---- passes -------------------------------------------------------------- */

static void copy(void *dst, const void *src, uint64_t bytes)
{
    const uint64_t shares = (bytes + LEAST_SHARE - 1) / LEAST_SHARE;
#pragma omp parallel for schedule(static) if (shares > 1)
    for (uint64_t k = 0; k < shares; k++)
        memcpy((char *)dst + k * LEAST_SHARE, (const char *)src + k * LEAST_SHARE,
               GS_MIN(LEAST_SHARE, bytes - k * LEAST_SHARE));
}

/* Of a call on a GPU: is it memory there, and may kernels read it as rows? */
static gs_status check_there(const gs_layer *l, const void *memory, const char *what, bool rows)
{
    if (!l->own || memory == NULL)
        return GS_OK;
    if (!gs_device_has(l->device, memory))
        return gs_fail(GS_EINVAL, "%s: is not memory of %s, where the layer is", what, gs_device_name(l->device));
    return !rows || (uintptr_t)memory % ROW_ALIGNMENT == 0
               ? GS_OK
               : gs_fail(GS_EINVAL, "%s: begins at %p; on a GPU at a multiple of %u bytes", what, memory,
                         ROW_ALIGNMENT);
}

static gs_status check_rows(const gs_layer *l, const void *rows, const char *what)
{
    GS_TRY(gs_check_argument(rows, what));
    return check_there(l, rows, what, true);
}

static gs_status take_parameters(gs_layer *l, const float *const *parameter)
{
    GS_TRY(l->tensors > 0 ? gs_check_argument(parameter, "parameter") : GS_OK);
    for (uint32_t i = 0; i < l->program->params; i++) {
        l->value[i] = l->params.value[i]; /* of those that are not learned */
        l->gradient[i] = l->params.grad[i];
    }
    for (uint32_t k = 0; k < l->tensors; k++) {
        const uint32_t i = l->tensor[k];
        *(l->own ? &l->there.param[i] : &l->value[i]) = parameter[k];
        GS_TRY(gs_check_argument(parameter[k], "parameter[k]"));
        GS_TRY(check_there(l, parameter[k], l->program->param[i].name, false));
    }
    return GS_OK;
}

/* Where the backward pass leaves gradients. */
static gs_status take_gradients(gs_layer *l, float *const *gradient)
{
    for (uint32_t k = 0; k < l->tensors; k++) {
        const uint32_t i = l->tensor[k];
        float *const to = gradient != NULL ? gradient[k] : NULL;
        if (l->own) {
            l->there.grad[i] = to;
            GS_TRY(check_there(l, to, "gradient[k]", false));
            continue;
        }
        if (to != NULL)
            l->gradient[i] = to;
        memset(l->gradient[i], 0, gs_param_elements(&l->program->param[i]) * sizeof(float));
    }
    return GS_OK;
}

/* Rows of the caller's for the length of a call; the engine writes those of y and of x's gradient alone. */
static void *outside(const float *rows) { return (void *)(uintptr_t)rows; }

static gs_status run(gs_layer *l, uint32_t pass, bool gradients)
{
    const gs_device_there there = {.param = l->there.param, .grad = gradients ? l->there.grad : NULL};
    const gs_exec_args args = {.param = l->value, .grad = gradients ? l->gradient : NULL, .made = l->params.value,
                               .statistic = l->params.statistic, .seed = l->options.seed, .epoch = l->step,
                               .loss_scale = 1, .there = l->own ? &there : NULL, .stop = l->options.stop};
    gs_exec_stats stats = {0};
    return gs_exec_run(l->exec, pass, &args, &stats);
}

/* Between the caller's work on the same GPU. */
static gs_status begin_call(const gs_layer *l)
{
    GS_TRY(gs_device_step_in(l->device));
    return gs_device_follow(l->device, l->stream);
}

static gs_status end_call(const gs_layer *l, gs_status st)
{
    if (st == GS_OK)
        st = gs_device_lead(l->device, l->stream);
    gs_device_step_aside(l->device);
    return st;
}

/* y out of its place, where it is kept. */
static gs_status give_y(const gs_layer *l, float *y)
{
    const uint64_t bytes = l->vertices * l->out * sizeof(float);

    if (l->own)
        return gs_device_copy(l->device, y, gs_exec_slot_rows(l->exec, 0, l->array.y), bytes);
    copy(y, gs_exec_rows(l->exec, l->array.y), bytes);
    return GS_OK;
}

gs_status gs_layer_forward(gs_layer *l, const float *x, const float *const *parameter, bool training, uint32_t step,
                           float *y)
{
    gs_status st;

    if ((st = gs_check_argument(l, "layer")) != GS_OK || (st = check_rows(l, x, "x")) != GS_OK ||
        (st = check_rows(l, y, "y")) != GS_OK || (st = take_parameters(l, parameter)) != GS_OK)
        return st;
    l->trained = false;
    l->step = step;
    const bool direct = !training || !l->keeps_y;
    l->outside[OUTSIDE_X].rows = outside(x);
    l->outside[OUTSIDE_Y].rows = direct ? y : NULL;
    l->outside[OUTSIDE_Y_PREDICT].rows = y;
    if ((st = begin_call(l)) == GS_OK)
        st = run(l, training ? l->pass.forward : l->pass.predict, false);
    if (st == GS_OK && !direct)
        st = give_y(l, y);
    st = end_call(l, st);
    l->trained = training && st == GS_OK;
    return st;
}

/* y does not depend on x. */
static gs_status zero_x_gradient(const gs_layer *l, float *x_gradient)
{
    const uint64_t bytes = l->vertices * l->in * sizeof(float);

    if (x_gradient == NULL || l->array.x_gradient != GS_NONE)
        return GS_OK;
    return gs_device_zero(l->device, x_gradient, bytes);
}

static gs_status check_backward(const gs_layer *l, const float *x, const float *y_gradient, const float *x_gradient)
{
    GS_TRY(gs_check_argument(l, "layer"));
    GS_TRY(check_rows(l, x, "x"));
    GS_TRY(check_rows(l, y_gradient, "y_gradient"));
    GS_TRY(check_there(l, x_gradient, "x_gradient", true));
    if (!l->trained)
        return gs_fail(GS_EINVAL, "layer: there is no forward pass with `training` to go back through");
    return l->own && l->array.x_gradient != GS_NONE && x_gradient == NULL
               ? gs_fail(GS_EINVAL, "x_gradient: is NULL; on a GPU a layer has no memory for it, and it is made")
               : GS_OK;
}

gs_status gs_layer_backward(gs_layer *l, const float *x, const float *const *parameter, const float *y_gradient,
                            float *x_gradient, float *const *gradient)
{
    gs_status st;

    if ((st = check_backward(l, x, y_gradient, x_gradient)) != GS_OK ||
        (st = take_parameters(l, parameter)) != GS_OK || (st = take_gradients(l, gradient)) != GS_OK)
        return st;
    l->outside[OUTSIDE_X].rows = outside(x);
    l->outside[OUTSIDE_Y].rows = l->outside[OUTSIDE_Y_PREDICT].rows = NULL;
    l->outside[OUTSIDE_Y_GRADIENT].rows = outside(y_gradient);
    l->outside[OUTSIDE_X_GRADIENT].rows = x_gradient;
    if ((st = begin_call(l)) == GS_OK && (st = zero_x_gradient(l, x_gradient)) == GS_OK)
        st = run(l, l->pass.backward, true);
    return end_call(l, st);
}

gs_status gs_layer_set_stream(gs_layer *l, void *stream)
{
    GS_TRY(gs_check_argument(l, "layer"));
    l->stream = stream;
    return GS_OK;
}
