/* A batch of neighbours, every model: its loss and all gradients are those of the float64 reference on the batch's own
 * graph, with edges that were drawn, several batches in turn on one plan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "reference/reference.h"
#include "sample/sampler.h"
#include "batch/batches_internal.h" /* where rows of features come from */
#include "support/support.h"

enum { BATCH = 24, BATCHES = 3 };

static char *folder;

/* A graph of the reference's, its store, and a sampler over it. */
typedef struct world {
    const char *store_path;
    gs_store *store;
    gs_adjacency *in;
    gs_sampler *sampler;
    gs_batch_arena *arena;
    float *features, *degree, *loops; /* of all rows; of the batch at hand, counted */
    int32_t *labels;
    uint32_t width, classes, hops;
} world;

static void *read_array(const world *w, gs_array_id id)
{
    size_t bytes;
    char *const path = gs_store_array_path(w->store, id);
    void *const all = ref_read_file(path, &bytes);
    gs_free(path);
    return all;
}

static void world_open(world *w, const char *kind, uint32_t parts, const gs_sampler_options *o)
{
    static uint32_t target[1000];
    gs_partition_options p;
    uint32_t targets = 0;

    const char *const graph = gs_test_path(folder, "%s", kind);
    w->store_path = gs_test_path(folder, "%s.%u", kind, parts);
    ref_graph_make(kind, graph, 7);
    gs_partition_options_init(&p);
    p.parts = parts;
    p.method = "random";
    p.force = true;
    gs_assert_ok(gs_partition(graph, w->store_path, &p, NULL));
    gs_assert_ok(gs_store_open(&w->store, w->store_path));
    w->features = read_array(w, GS_ARRAY_FEATURES);
    w->labels = read_array(w, GS_ARRAY_LABELS);
    uint8_t *const split = read_array(w, GS_ARRAY_SPLIT);
    const gs_store_info *const info = gs_store_get_info(w->store);
    for (uint32_t v = 0; v < info->vertices; v++)
        if (split[v] == GS_SPLIT_TRAIN)
            target[targets++] = v;
    free(split);
    w->width = info->features;
    w->classes = info->classes;
    w->degree = ref_alloc(info->vertices, sizeof(float));
    w->loops = ref_alloc(info->vertices, sizeof(float));
    gs_assert_ok(gs_adjacency_load(&w->in, w->store, GS_BY_DEST, GS_GIB, NULL));
    gs_assert_ok(gs_sampler_open(&w->sampler, w->in, NULL, target, targets, o));
    w->hops = o->hops;
    gs_assert_ok(gs_batch_arena_make(&w->arena, w->sampler));
}

static void world_close(world *w)
{
    gs_batch_arena_free(w->arena);
    gs_sampler_close(w->sampler);
    gs_adjacency_free(w->in);
    gs_store_close(w->store);
    free(w->features);
    free(w->labels);
    free(w->degree);
    free(w->loops);
}

/* Attention does not look at degrees, and at loops only beside the edges that they are. */
static bool looks_at_degrees(const char *model) { return strncmp(model, "gat", 3) != 0; }

/* The batch's graph. Where the model looks at them, its in-degrees and loops become those that the reference counts: of
 * rows that were not expanded, 0. */
static ref_graph graph_of(world *w, gs_batch *b, const char *model)
{
    const gs_chunk_view *const v = &b->view[GS_BY_DEST];
    ref_graph g = {.vertices = b->vertices, .edges = b->edges, .width = w->width, .classes = w->classes,
                   .types = GS_MAX(gs_store_get_info(w->store)->edge_types, 1)};
    g.source = ref_alloc(g.edges, sizeof(*g.source));
    g.target = ref_alloc(g.edges, sizeof(*g.target));
    g.type = v->type_bytes == 0 ? NULL : ref_alloc(g.edges, sizeof(*g.type));
    g.weight = v->weight == NULL ? NULL : ref_alloc(g.edges, sizeof(*g.weight));
    g.feature = ref_alloc(g.vertices * g.width, sizeof(*g.feature));
    g.label = ref_alloc(g.vertices, sizeof(*g.label));
    g.split = ref_alloc(g.vertices, 1);
    memset(w->degree, 0, b->vertices * sizeof(float));
    memset(w->loops, 0, b->vertices * sizeof(float));
    for (uint32_t t = 0; t < v->targets; t++)
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++) {
            g.source[k] = v->index_bytes == 2 ? ((const uint16_t *)v->index)[k] : ((const uint32_t *)v->index)[k];
            g.target[k] = v->index_bytes == 2 ? ((const uint16_t *)v->target)[t] : ((const uint32_t *)v->target)[t];
            if (g.type != NULL)
                g.type[k] = ((const uint8_t *)v->type)[k];
            if (g.weight != NULL)
                g.weight[k] = (double)v->weight[k];
            w->degree[g.target[k]] += 1;
            w->loops[g.target[k]] += g.source[k] == g.target[k];
        }
    for (uint32_t i = 0; i < b->vertices; i++) {
        for (uint32_t c = 0; c < w->width; c++)
            g.feature[i * w->width + c] = (double)w->features[(uint64_t)b->vertex[i] * w->width + c];
        g.label[i] = w->labels[b->vertex[i]];
        g.split[i] = i < b->targets ? REF_TRAIN : REF_NO_SPLIT;
    }
    if (looks_at_degrees(model)) {
        b->in_degree = w->degree;
        b->loops = b->loops == NULL ? NULL : w->loops;
    }
    return g;
}

static gs_batch_shape shape_of(const world *w)
{
    gs_batch_shape s = {.limits = *gs_sampler_limits(w->sampler), .hops = w->hops,
                        .targets = gs_sampler_limits(w->sampler)->vertices,
                        .edge_types = gs_store_get_info(w->store)->edge_types};
    for (size_t k = 1; k < GS_ARRAY_LEN(s.edges_of); k++)
        s.edges_of[k] = s.limits.edges;
    return s;
}

static void compare(const gs_session *s, ref_network *n, const char *model, uint32_t batch)
{
    for (uint32_t i = 0; i < s->program->params; i++) {
        const gs_param *const p = &s->program->param[i];
        const ref_tensor *const want = ref_tensors_find(&n->gradient, p->name);
        double d[2], *got;
        if (p->fixed)
            continue;
        assert_non_null(want);
        const size_t size = ref_tensor_size(want);
        got = ref_alloc(size, sizeof(*got));
        for (size_t k = 0; k < size; k++)
            got[k] = (double)s->run.params.grad[i][k];
        ref_difference(d, got, want->value, size);
        if (!(d[1] <= 2e-5))
            fail_msg("%s, batch %u: gradient of %s: %.3g of the largest, %.3g of all", model, batch, p->name, d[0],
                     d[1]);
        free(got);
    }
}

static void set_weights(gs_session *s, const ref_network *n)
{
    for (uint32_t i = 0; i < s->program->params; i++) {
        const ref_tensor *const t = ref_tensors_find(&n->weight, s->program->param[i].name);
        for (size_t k = 0; t != NULL && k < ref_tensor_size(t); k++)
            s->run.params.value[i][k] = (float)t->value[k];
    }
}

static gs_train_options options_of(const char *model)
{
    gs_train_options o;
    gs_train_options_init(&o);
    o.model = model;
    o.hidden = 16;
    o.host_memory = 512 * GS_MIB;
    return o;
}

/* A run of `o`, and the batches of `shape` that it trains on, which have not begun. */
static void open_batches(gs_batches **b, gs_session **s, const world *w, const gs_train_options *o,
                         const gs_batch_shape *shape)
{
    gs_session_config config = {.store = w->store_path, .options = o, .purpose = GS_FOR_TRAINING, .batch = shape};
    gs_assert_ok(gs_batches_open(b, &config, NULL));
    config.batch = NULL;
    config.on_batches = true;
    config.beside_bytes = gs_batches_bytes(*b);
    gs_assert_ok(gs_session_open(s, &config));
    gs_assert_ok(gs_session_start(*s));
}

/* Features that the run keeps are picked from there, and not held twice. */
static void check_features(const gs_batches *b, const gs_session *s)
{
    for (uint32_t a = 0; a < s->program->arrays; a++)
        if (s->program->array[a].store_id == GS_ARRAY_FEATURES)
            assert_ptr_equal(b->rows.features, gs_exec_kept_rows(s->run.exec, a));
    assert_non_null(b->rows.features);
}

/* `text`: of the model, or its name in the zoo; `model`: what the reference calls it. */
static void check_model(world *w, const char *text, const char *model, bool prune)
{
    const gs_batch_shape shape = shape_of(w);
    gs_train_options o = options_of(text);
    gs_batches *b = NULL;
    gs_session *s = NULL;
    uint32_t compared = 0;

    o.threads = 2;
    o.no_prune = !prune;
    open_batches(&b, &s, w, &o, &shape);
    gs_assert_ok(gs_batches_start(b, s, NULL, NULL));
    check_features(b, s);
    for (uint32_t k = 0; k < BATCHES; k++) {
        gs_batch batch;
        gs_batch_pass pass = {.batch = &batch, .key = 1 + k};
        gs_assert_ok(gs_sampler_draw(&batch, w->sampler, w->arena, 1, k));
        ref_graph g = graph_of(w, &batch, model);
        ref_network n = ref_network_new(model, 2, 16, 1, 4, "relu", &g);
        ref_network_init(&n, 3 + k);
        set_weights(s, &n);
        const double want = ref_network_backward(&n, &g);
        gs_assert_ok(gs_batches_run(b, &pass));
        gs_assert_close(pass.mass, batch.targets, 1e-12);
        gs_assert_close(pass.stats.metrics.loss_sum / pass.mass, want, 1e-5);
        assert_true(pass.began < pass.picked && pass.picked <= pass.sent && pass.sent <= pass.stats.entered &&
                    pass.stats.entered < pass.stats.computed && pass.stats.computed <= pass.ended);
        if (n.margin > 1e-6) { /* else float32 may be on the other side of a kink */
            compare(s, &n, model, k);
            compared++;
        }
        ref_network_free(&n);
        ref_graph_free(&g);
    }
    assert_true(compared > 0);
    gs_batches_close(b);
    gs_session_close(s);
}

/* Gradients of a batch that goes in parts of 5 targets are the reference's of the whole batch. There is a hop more than
 * layers, as the reference counts in-degrees: the last hop's are 0. */
static void check_parts(world *w, const char *model)
{
    const gs_batch_shape shape = shape_of(w);
    const gs_train_options o = options_of(model);
    gs_batches *b = NULL;
    gs_session *s = NULL;
    gs_batch batch;
    double mass = 0, loss = 0;

    open_batches(&b, &s, w, &o, &shape);
    gs_assert_ok(gs_batches_start(b, s, NULL, NULL));
    gs_assert_ok(gs_sampler_draw(&batch, w->sampler, w->arena, 1, 0));
    const uint32_t targets = batch.targets;
    ref_graph g = graph_of(w, &batch, model);
    ref_network n = ref_network_new(model, 2, 16, 1, 4, "relu", &g);
    ref_network_init(&n, 3);
    set_weights(s, &n);
    const double want = ref_network_backward(&n, &g);
    gs_batches_clear(b);
    gs_batches_begin_parts(b);
    for (uint32_t first = 0, part = 0; first < targets; first += batch.targets, part++) {
        gs_batch_pass pass = {.batch = &batch, .key = gs_batch_part_key(1, part)};
        gs_assert_ok(gs_sampler_draw_part(&batch, w->sampler, w->arena, 1, 0, first, 5));
        assert_int_equal(batch.targets, GS_MIN(5, targets - first));
        gs_assert_ok(gs_batches_run_part(b, &pass));
        mass += pass.mass;
        loss += pass.stats.metrics.loss_sum;
    }
    gs_batches_end_parts(b);
    gs_batches_divide(b, mass);
    gs_assert_close(mass, targets, 1e-12);
    gs_assert_close(loss / mass, want, 1e-5);
    compare(s, &n, model, 0);
    ref_network_free(&n);
    ref_graph_free(&g);
    gs_batches_close(b);
    gs_session_close(s);
}

static const gs_sampler_options neighbor = {
    .kind = GS_SAMPLER_NEIGHBOR, .seed = 5, .batch_size = BATCH, .hops = 2, .fanout = {4, 3}};

static void test_gradients__are_the_references(void **state)
{
    static const char *const models[] = {"gcn", "sage",  "sage_max", "sage_lstm", "gat", "gatv2",
                                         "gin", "appnp", "commnet",  "ggcn",      "ggnn"};
    world w = {0};
    (void)state;
    world_open(&w, "rough", 8, &neighbor);
    for (size_t m = 0; m < GS_ARRAY_LEN(models); m++)
        check_model(&w, models[m], models[m], true);
    check_model(&w, "sage", "sage", false);
    check_model(&w, "gat", "gat", false); /* also of rows that have loops by the store, and no edges here */
    check_model(&w, GS_TEST_SOURCE_ROOT "/tests/e2e/texts/norms.gnn", "norms", true);
    world_close(&w);
}

static void test_gradients__of_types_are_the_references(void **state)
{
    world w = {0};
    (void)state;
    world_open(&w, "typed", 1, &neighbor);
    check_model(&w, "rgcn", "rgcn", true);
    check_model(&w, "rgcn_bases", "rgcn_bases", true);
    world_close(&w);
}

static void test_gradients__of_parts_are_those_of_the_batch(void **state)
{
    static const char *const models[] = {"gcn", "sage", "gat", "gin"};
    const gs_sampler_options all = {.kind = GS_SAMPLER_NEIGHBOR, .seed = 5, .batch_size = BATCH, .hops = 3};
    world w = {0};
    (void)state;
    world_open(&w, "rough", 8, &all);
    for (size_t m = 0; m < GS_ARRAY_LEN(models); m++)
        check_parts(&w, models[m]);
    world_close(&w);
}

/* Subgraphs have no hops: every row has all its edges. */
static void test_gradients__of_subgraphs_are_the_references(void **state)
{
    static const gs_sampler_options o[] = {
        {.kind = GS_SAMPLER_CLUSTER, .seed = 5, .batch_size = 2},
        {.kind = GS_SAMPLER_SAINT_WALK, .seed = 5, .batch_size = BATCH, .walk_length = 2}};
    (void)state;
    for (size_t k = 0; k < GS_ARRAY_LEN(o); k++) {
        world w = {0};
        world_open(&w, "rough", 8, &o[k]);
        check_model(&w, "gcn", "gcn", true);
        check_model(&w, "gat", "gat", true);
        world_close(&w);
    }
}

/* ---- GraphSAINT's coefficients -------------------------------------------------------------------------------- */

enum { COVERAGE = 25, MOST_VERTICES = 1000 };

/* Which vertices, and which pairs of them, were in a batch that was drawn beforehand. */
static uint8_t drawn[MOST_VERTICES], pair[MOST_VERTICES][MOST_VERTICES];

static const float *value_of(const gs_session *s, const char *name, bool gradient)
{
    for (uint32_t i = 0; i < s->program->params; i++)
        if (strcmp(s->program->param[i].name, name) == 0)
            return gradient ? s->run.params.grad[i] : s->run.params.value[i];
    fail_msg("no parameter %s", name);
    return NULL;
}

/* One layer of GraphSAGE with one output, by its formula, of the whole graph, over the edges that were ever drawn. */
static double output_of(const world *w, const gs_session *s, uint32_t v)
{
    const float *const l = value_of(s, "convs.0.lin_l.weight", false),
                *const r = value_of(s, "convs.0.lin_r.weight", false);
    const uint64_t first = gs_adjacency_first(w->in, v), degree = gs_adjacency_degree(w->in, v);
    double y = (double)value_of(s, "convs.0.lin_l.bias", false)[0];

    for (uint32_t c = 0; c < w->width; c++) {
        double sum = 0;
        for (uint64_t k = first; k < first + degree; k++)
            sum += pair[w->in->other[k]][v] ? (double)w->features[(uint64_t)w->in->other[k] * w->width + c] : 0;
        y += (double)l[c] * sum / (double)GS_MAX(degree, 1) + (double)r[c] * (double)w->features[v * w->width + c];
    }
    return y;
}

static void mark_drawn(const gs_batch *b)
{
    for (uint32_t i = 0; i < b->vertices; i++) {
        drawn[b->vertex[i]] = 1;
        for (uint32_t k = 0; k < b->vertices; k++)
            pair[b->vertex[i]][b->vertex[k]] = 1;
    }
}

/* The whole graph's gradients of the mean squared error, of targets that were ever drawn: by the bias, then by the own
 * row's weights. */
static void whole_gradients(const world *w, const gs_session *s, double *want)
{
    const uint32_t vertices = (uint32_t)gs_store_get_info(w->store)->vertices;
    uint8_t *const split = read_array(w, GS_ARRAY_SPLIT);
    double trained = 0;

    for (uint32_t v = 0; v < vertices; v++) {
        trained += split[v] == GS_SPLIT_TRAIN;
        if (split[v] != GS_SPLIT_TRAIN || !drawn[v])
            continue;
        const double slope = 2 * (output_of(w, s, v) - w->labels[v]);
        want[0] += slope;
        for (uint32_t c = 0; c < w->width; c++)
            want[1 + c] += slope * (double)w->features[v * w->width + c];
    }
    for (uint32_t c = 0; c <= w->width; c++)
        want[c] /= trained;
    free(split);
}

/* The squared error's gradients by the bias and by the own row's weights are linear in what a vertex sums. So over the
 * very batches that the coefficients were counted in, their mean is that of the whole graph: exactly, by no chance. */
static void check_saint(world *w, const gs_sampler_options *options)
{
    gs_batch_shape shape = shape_of(w);
    const uint32_t vertices = (uint32_t)gs_store_get_info(w->store)->vertices;
    double got[1 + 64] = {0}, want[1 + 64] = {0}, d[2], total = 0;
    uint32_t batches = 0;
    gs_train_options o = options_of("sage");
    gs_batches *b = NULL;
    gs_session *s = NULL;

    assert_true(vertices <= MOST_VERTICES && w->width <= 64);
    memset(drawn, 0, sizeof(drawn));
    memset(pair, 0, sizeof(pair));
    shape.coefficients = true;
    o.layers = 1;
    o.task = "regress";
    open_batches(&b, &s, w, &o, &shape);
    gs_params_init(&s->run.params, s->program, 3);
    gs_assert_ok(gs_batches_start(b, s, NULL, NULL));
    for (; total < (double)options->coverage * vertices; batches++) {
        gs_batch batch;
        gs_batch_pass pass = {.batch = &batch, .key = 1};
        gs_assert_ok(gs_sampler_draw(&batch, w->sampler, w->arena, UINT32_MAX, batches));
        total += batch.vertices;
        mark_drawn(&batch);
        if (batch.targets == 0)
            continue;
        gs_assert_ok(gs_batches_run(b, &pass));
        gs_assert_close(pass.mass, 1, 1e-12);
        got[0] += (double)value_of(s, "convs.0.lin_l.bias", true)[0];
        for (uint32_t c = 0; c < w->width; c++)
            got[1 + c] += (double)value_of(s, "convs.0.lin_r.weight", true)[c];
    }
    for (uint32_t c = 0; c <= w->width; c++)
        got[c] /= batches;
    whole_gradients(w, s, want);
    ref_difference(d, got, want, 1 + w->width);
    if (!(d[1] <= 2e-5))
        fail_msg("sampler %u: mean gradient %.3g of the largest, %.3g of all beside the whole graph's", options->kind,
                 d[0], d[1]);
    gs_batches_close(b);
    gs_session_close(s);
}

static void test_gradients__of_saint_are_the_whole_graphs_on_average(void **state)
{
    static const gs_sampler_options o[] = {
        {.kind = GS_SAMPLER_SAINT_NODE, .seed = 5, .batch_size = 40},
        {.kind = GS_SAMPLER_SAINT_EDGE, .seed = 5, .batch_size = 20},
        {.kind = GS_SAMPLER_SAINT_WALK, .seed = 5, .batch_size = 15, .walk_length = 2}};
    (void)state;
    for (size_t k = 0; k < GS_ARRAY_LEN(o); k++) {
        gs_sampler_options with = o[k];
        world w = {0};
        with.coverage = COVERAGE;
        with.batches = 1u << 20; /* that may be drawn */
        with.coefficients_alone = true;
        world_open(&w, "rough", 8, &with);
        check_saint(&w, &with);
        world_close(&w);
    }
}

static int make(void **state)
{
    (void)state;
    folder = gs_test_temp_dir();
    return 0;
}

static int drop(void **state)
{
    (void)state;
    gs_test_temp_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients__are_the_references),
        cmocka_unit_test(test_gradients__of_parts_are_those_of_the_batch),
        cmocka_unit_test(test_gradients__of_subgraphs_are_the_references),
        cmocka_unit_test(test_gradients__of_saint_are_the_whole_graphs_on_average),
        cmocka_unit_test(test_gradients__of_types_are_the_references),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
