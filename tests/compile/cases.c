#include "cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"

static uint32_t draw(uint64_t seed, uint32_t i, uint32_t stream)
{
    const uint32_t counter[4] = {i, stream, 0, 0};
    uint32_t key[2], word[4];
    gs_random_key(key, seed, GS_RANDOM_GENERATE);
    gs_philox4x32(word, counter, key);
    return word[0];
}

test_graph *graph_new(uint32_t n, uint32_t m, uint32_t features, uint32_t classes, bool self_loops, uint64_t seed)
{
    test_graph *g = calloc(1, sizeof(*g));
    uint32_t *src = calloc(m, sizeof(*src)), *dst = calloc(m, sizeof(*dst));
    uint32_t *type = calloc(m, sizeof(*type));
    double *weight = calloc(m, sizeof(*weight));
    double *a[ID_COUNT];

    for (int k = 0; k < ID_COUNT; k++)
        g->store[k] = a[k] = calloc((size_t)n * (k == ID_FEATURES ? features : 1), sizeof(double));
    for (uint32_t e = 0; e < m; e++) {
        src[e] = draw(seed, e, 0) % (n - 2); /* the last two vertices have no edges */
        dst[e] = draw(seed, e, 1) % (n - 2);
        if (e % 7 == 3) { /* doubled edge */
            src[e] = src[e - 1];
            dst[e] = dst[e - 1];
        }
        if (self_loops && e % 5 == 0) /* every tenth of them twice */
            dst[e] = src[e] = (e % 10 == 0 && e > 0) ? src[e - 5] : src[e];
        if (self_loops && e < 2) /* but two of the last one to itself */
            dst[e] = src[e] = n - 1;
        if (!self_loops && src[e] == dst[e])
            dst[e] = (dst[e] + 1) % (n - 2);
        type[e] = draw(seed, e, 5) % TEST_TYPES;
        weight[e] = gs_uniform_f32(draw(seed, e, 6)) + 0.25;
        a[ID_IN_DEGREE][dst[e]] += 1;
        a[ID_LOOPS][dst[e]] += src[e] == dst[e];
    }
    for (uint32_t v = 0; v < n; v++) {
        a[ID_LABELS][v] = draw(seed, v, 2) % classes;
        a[ID_SPLIT][v] = draw(seed, v, 3) % 4;
        a[ID_INPUT_ID][v] = (v * 7 + 3) % 1009;
    }
    for (uint32_t k = 0; k < n * features; k++)
        a[ID_FEATURES][k] = gs_uniform_f32(draw(seed, k, 4)) - 0.5;
    g->n = n;
    g->m = m;
    g->features = features;
    g->src = src;
    g->dst = dst;
    g->type = type;
    g->weight = weight;
    return g;
}

void graph_free(test_graph *g)
{
    for (int k = 0; k < ID_COUNT; k++)
        free((void *)(uintptr_t)g->store[k]);
    free((void *)(uintptr_t)g->src);
    free((void *)(uintptr_t)g->dst);
    free((void *)(uintptr_t)g->type);
    free((void *)(uintptr_t)g->weight);
    free(g);
}

gs_status build_case(gs_ir **out, const test_case *t, const char *pass)
{
    const bool train = strcmp(pass, "train") == 0, predict = strcmp(pass, "predict") == 0;
    const gs_model_config config = {
        .layers = t->layers, .in_width = t->in, .hidden = t->hidden, .classes = t->classes,
        .heads = t->heads, .bases = t->bases, .edge_types = t->edge_types, .edge_weights = t->edge_weights,
        .act = t->act != NULL ? t->act : "relu", .dropout = t->dropout, .input_dropout = t->input_dropout,
        .training = train, .self_loops = t->self_loops,
    };
    gs_model *m = NULL;
    gs_ir *ir = NULL;
    gs_status st = gs_model_open(&m, t->model);

    if (st == GS_OK)
        st = gs_model_build(&ir, m, &config);
    if (st == GS_OK && !predict)
        st = gs_ir_add_loss(ir, GS_LOSS_XENT, GS_I32);
    if (st == GS_OK && train)
        st = gs_ir_differentiate(ir);
    if (st == GS_OK)
        *out = ir;
    else
        gs_ir_free(ir);
    gs_model_close(m);
    return st;
}

gs_status compile_case(gs_program *p, const test_case *t, const char *pass)
{
    const gs_leaf leaves[] = {
        {"features", ID_FEATURES, t->feature_type, t->in}, {"in_degree", ID_IN_DEGREE, GS_F32, 1},
        {"loops", ID_LOOPS, GS_F32, 1},                    {"labels", ID_LABELS, GS_I32, 1},
        {"split", ID_SPLIT, GS_U8, 1},                     {"input_id", ID_INPUT_ID, GS_U32, 1},
    };
    const bool predict = strcmp(pass, "predict") == 0;
    const gs_compile_options options = {
        .pass = pass,
        .leaf = leaves,
        .leaves = sizeof(leaves) / sizeof(leaves[0]),
        .metrics = !predict,
        .store_logits = predict,
        .no_move = t->no_move,
        .no_fuse = t->no_fuse,
        .hoist = t->hoist,
        .recompute = t->recompute,
        .lean = t->lean,
        .typed = t->typed,
        .rest = t->rounded ? GS_BF16 : GS_F32,
        .read = t->gathered ? GS_BF16 : GS_F32,
        .rest_width = 1,
        .edges_per_vertex = t->edges_per_vertex > 0 ? t->edges_per_vertex : 8,
    };
    gs_ir *ir = NULL;
    const gs_status st = build_case(&ir, t, pass);

    return st == GS_OK ? gs_compile(p, ir, &options) : st; /* takes it */
}

double **params_new(const gs_program *p, uint64_t seed)
{
    double **param = calloc(p->params + 1, sizeof(*param));
    for (uint32_t i = 0; i < p->params; i++) {
        const uint64_t n = gs_param_elements(&p->param[i]);
        param[i] = calloc(n, sizeof(double));
        for (uint64_t k = 0; k < n; k++)
            param[i][k] = gs_uniform_f32(draw(seed, (uint32_t)k, 100 + i)) - 0.5;
    }
    return param;
}

void params_free(const gs_program *p, double **param)
{
    for (uint32_t i = 0; i < p->params; i++)
        free(param[i]);
    free(param);
}

uint32_t param_index(const gs_program *p, const char *name)
{
    for (uint32_t i = 0; i < p->params; i++)
        if (strcmp(p->param[i].name, name) == 0)
            return i;
    fail_msg("no parameter %s", name);
    return GS_NONE;
}

const char *model_text(const char *dir, const char *text)
{
    static unsigned number;
    const char *path = gs_test_path(dir, "model%u.gnn", number++);
    gs_test_write_file(path, text, strlen(text));
    return path;
}

void start(interp *x, const gs_program *p, const test_graph *g, double **param)
{
    interp_open(x, p, g, param);
    x->seed = 42;
    x->epoch = 3;
}

/* Central differences of the train pass's own loss. Some elements of each parameter. */
void check_gradients(interp *x, const gs_program *p, uint32_t pass, double **param)
{
    const double step = 1e-5;
    double **grad = calloc(p->params + 1, sizeof(*grad));

    interp_run(x, pass);
    for (uint32_t i = 0; i < p->params; i++) {
        const uint64_t n = gs_param_elements(&p->param[i]);
        grad[i] = malloc(n * sizeof(double));
        memcpy(grad[i], x->grad[i], n * sizeof(double));
    }
    for (uint32_t i = 0; i < p->params; i++) {
        const uint64_t n = gs_param_elements(&p->param[i]);
        for (uint64_t k = 0; k < n && !p->param[i].fixed; k += 1 + n / 4) {
            const double old = param[i][k];
            double up, difference;
            param[i][k] = old + step;
            interp_run(x, pass);
            up = x->loss_sum;
            param[i][k] = old - step;
            interp_run(x, pass);
            difference = (up - x->loss_sum) / (2 * step);
            param[i][k] = old;
            if (fabs(difference - grad[i][k]) > 1e-5 * (1 + fabs(difference))) {
                gs_program_print(p, stderr);
                fail_msg("%s[%llu]: gradient %.9g, difference quotient %.9g", p->param[i].name, (unsigned long long)k,
                         grad[i][k], difference);
            }
        }
        free(grad[i]);
    }
    free(grad);
}
