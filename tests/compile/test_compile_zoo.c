/* test_compile_zoo.c - every built-in model is its formula: logits against loops over vertices and
 * edges written here, gradients against difference quotients, on a graph with doubled edges, self loops
 * (some twice) and isolated vertices. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "cases.h"

/* What a formula sees. */
typedef struct world {
    const test_case *t;
    const test_graph *g;
    const gs_program *p;
    double **param;
    uint32_t layer, heads, types;
    bool last, training;
} world;

typedef double *(*layer_formula)(const world *w, const double *h, uint32_t in, uint32_t out);

static double *make(const world *w, uint32_t width)
{
    return calloc((size_t)w->g->n * width, sizeof(double));
}

static const double *weights(const world *w, const char *name)
{
    char full[64];
    snprintf(full, sizeof(full), "convs.%u.%s", w->layer, name);
    return w->param[param_index(w->p, full)];
}

/* y[n, out] = x[n, in] @ W' with W[out, in], + bias where there is one */
static double *linear(const world *w, const double *x, uint32_t in, uint32_t out, const char *weight, const char *bias)
{
    const double *m = weights(w, weight), *b = bias != NULL ? weights(w, bias) : NULL;
    double *y = make(w, out);
    for (uint32_t v = 0; v < w->g->n; v++)
        for (uint32_t o = 0; o < out; o++) {
            double s = b != NULL ? b[o] : 0;
            for (uint32_t i = 0; i < in; i++)
                s += x[(size_t)v * in + i] * m[(size_t)o * in + i];
            y[(size_t)v * out + o] = s;
        }
    return y;
}

static void add_to(const world *w, double *y, double *x, uint32_t width)
{
    for (size_t k = 0; k < (size_t)w->g->n * width; k++)
        y[k] += x[k];
    free(x);
}

/* In-neighbours of v without loops, then v itself: how many. */
static uint32_t neighbours_and_self(const test_graph *g, uint32_t v, uint32_t *out)
{
    uint32_t count = 0;
    for (uint32_t e = 0; e < g->m; e++)
        if (g->dst[e] == v && g->src[e] != v)
            out[count++] = g->src[e];
    out[count++] = v;
    return count;
}

typedef double (*score_formula)(const world *w, const double *x, const double *y, uint32_t u, uint32_t v, uint32_t head,
                                uint32_t d);

static double leaky(double a)
{
    return a > 0 ? a : 0.2 * a;
}

static double gat_score(const world *w, const double *x, const double *y, uint32_t u, uint32_t v, uint32_t head,
                        uint32_t d)
{
    const double *src = weights(w, "att_src") + (size_t)head * d, *dst = weights(w, "att_dst") + (size_t)head * d;
    double s = 0;
    (void)y;
    for (uint32_t c = 0; c < d; c++)
        s += x[((size_t)u * w->heads + head) * d + c] * src[c] + x[((size_t)v * w->heads + head) * d + c] * dst[c];
    return leaky(s);
}

static double gatv2_score(const world *w, const double *x, const double *y, uint32_t u, uint32_t v, uint32_t head,
                          uint32_t d)
{
    const double *att = weights(w, "att") + (size_t)head * d;
    double s = 0;
    for (uint32_t c = 0; c < d; c++)
        s += leaky(x[((size_t)u * w->heads + head) * d + c] + y[((size_t)v * w->heads + head) * d + c]) * att[c];
    return s;
}

/* PyG's GATConv(dropout=p): what a head's coefficient of the edge u -> v, the rank-th of its type, is multiplied by.
 * The sites inside the texts come after the layers'. */
static double coefficient_mask(const world *w, uint32_t u, uint32_t v, uint32_t rank, uint32_t type, uint32_t head)
{
    const double *id = w->g->store[ID_INPUT_ID];
    const uint32_t groups = (w->heads + 3) / 4;
    const uint32_t counter[4] = {(uint32_t)id[u], (uint32_t)id[v], rank * groups + head / 4, type};
    uint32_t key[2], word[4];
    if (!w->training || w->t->dropout == 0)
        return 1;
    gs_random_edge_key(key, 42, w->t->layers + w->layer, 3);
    gs_philox4x32(word, counter, key);
    return gs_uniform_f32(word[head % 4]) >= w->t->dropout ? 1 / (1 - (double)w->t->dropout) : 0;
}

/* Of the k-th of neighbours_and_self(). */
static double neighbour_mask(const world *w, uint32_t v, uint32_t k, uint32_t head)
{
    const test_graph *g = w->g;
    uint32_t rank = 0, e = 0;
    for (;; e++) {
        if (e == g->m)
            return coefficient_mask(w, v, v, 0, 0, head);
        if (g->dst[e] == v && g->src[e] != v && k-- == 0)
            break;
    }
    for (uint32_t i = 0; i < e; i++)
        rank += g->src[i] == g->src[e] && g->dst[i] == v && g->type[i] == g->type[e];
    return coefficient_mask(w, g->src[e], v, rank, g->type[e], head);
}

/* Softmax over the neighbours and v itself, head by head; heads side by side, or their mean in the last layer. */
static double *attention(const world *w, const double *x, const double *y, uint32_t out, score_formula score)
{
    const uint32_t d = w->last ? out : out / w->heads;
    const double *bias = weights(w, "bias");
    uint32_t *list = calloc(w->g->m + 1, sizeof(*list));
    double *z = make(w, out), *p = calloc(w->g->m + 1, sizeof(*p));

    for (uint32_t v = 0; v < w->g->n; v++) {
        const uint32_t count = neighbours_and_self(w->g, v, list);
        for (uint32_t head = 0; head < w->heads; head++) {
            double sum = 0;
            for (uint32_t k = 0; k < count; k++)
                sum += p[k] = exp(score(w, x, y, list[k], v, head, d));
            for (uint32_t k = 0; k < count; k++)
                for (uint32_t c = 0; c < d; c++)
                    z[(size_t)v * out + (w->last ? c : head * d + c)] +=
                        p[k] / sum * neighbour_mask(w, v, k, head) * x[((size_t)list[k] * w->heads + head) * d + c] /
                        (w->last ? w->heads : 1);
        }
        for (uint32_t c = 0; c < out; c++)
            z[(size_t)v * out + c] += bias[c];
    }
    free(list);
    free(p);
    return z;
}

static double *gat(const world *w, const double *h, uint32_t in, uint32_t out)
{
    double *x = linear(w, h, in, w->last ? w->heads * out : out, "lin.weight", NULL);
    double *z = attention(w, x, NULL, out, gat_score);
    free(x);
    return z;
}

static double *gatv2(const world *w, const double *h, uint32_t in, uint32_t out)
{
    const uint32_t wide = w->last ? w->heads * out : out;
    double *x = linear(w, h, in, wide, "lin_l.weight", "lin_l.bias");
    double *y = linear(w, h, in, wide, "lin_r.weight", "lin_r.bias");
    double *z = attention(w, x, y, out, gatv2_score);
    free(x);
    free(y);
    return z;
}

static double *gin(const world *w, const double *h, uint32_t in, uint32_t out)
{
    const double eps = weights(w, "eps")[0];
    double *z = make(w, in), *a, *y;
    for (uint32_t e = 0; e < w->g->m; e++)
        for (uint32_t c = 0; c < in; c++)
            z[(size_t)w->g->dst[e] * in + c] += h[(size_t)w->g->src[e] * in + c];
    for (size_t k = 0; k < (size_t)w->g->n * in; k++)
        z[k] += (1 + eps) * h[k];
    a = linear(w, z, in, out, "nn.lins.0.weight", "nn.lins.0.bias");
    for (size_t k = 0; k < (size_t)w->g->n * out; k++)
        a[k] = a[k] > 0 ? a[k] : 0;
    y = linear(w, a, out, out, "nn.lins.1.weight", "nn.lins.1.bias");
    free(z);
    free(a);
    return y;
}

static double *appnp(const world *w, const double *h, uint32_t in, uint32_t out)
{
    const test_graph *g = w->g;
    double *z = linear(w, h, in, out, "lin.weight", "lin.bias"), *x = make(w, out);
    uint32_t *list = calloc(g->m + 1, sizeof(*list)), *degree = calloc(g->n, sizeof(*degree));

    if (!w->last) {
        free(x);
        free(list);
        free(degree);
        return z;
    }
    for (uint32_t v = 0; v < g->n; v++)
        degree[v] = neighbours_and_self(g, v, list);
    memcpy(x, z, (size_t)g->n * out * sizeof(double));
    for (int step = 0; step < 10; step++) {
        double *next = make(w, out);
        for (uint32_t v = 0; v < g->n; v++) {
            const uint32_t count = neighbours_and_self(g, v, list);
            for (uint32_t c = 0; c < out; c++) {
                double s = 0;
                for (uint32_t k = 0; k < count; k++)
                    s += x[(size_t)list[k] * out + c] / sqrt((double)degree[v] * degree[list[k]]);
                next[(size_t)v * out + c] = 0.9 * s + 0.1 * z[(size_t)v * out + c];
            }
        }
        free(x);
        x = next;
    }
    free(z);
    free(list);
    free(degree);
    return x;
}

static double *commnet(const world *w, const double *h, uint32_t in, uint32_t out)
{
    const test_graph *g = w->g;
    double *a = make(w, in), *y = linear(w, h, in, out, "W_H", NULL);
    for (uint32_t e = 0; e < g->m; e++)
        for (uint32_t c = 0; c < in; c++)
            a[(size_t)g->dst[e] * in + c] += h[(size_t)g->src[e] * in + c] / g->store[ID_IN_DEGREE][g->dst[e]];
    add_to(w, y, linear(w, a, in, out, "W_C", NULL), out);
    free(a);
    return y;
}

static double *ggcn(const world *w, const double *h, uint32_t in, uint32_t out)
{
    const test_graph *g = w->g;
    double *a = linear(w, h, in, in, "W_H", NULL), *b = linear(w, h, in, in, "W_C", NULL), *acc = make(w, in), *y;
    for (uint32_t e = 0; e < g->m; e++)
        for (uint32_t c = 0; c < in; c++) {
            const double gate = 1 / (1 + exp(-a[(size_t)g->dst[e] * in + c] - b[(size_t)g->src[e] * in + c]));
            acc[(size_t)g->dst[e] * in + c] += gate * h[(size_t)g->src[e] * in + c];
        }
    y = linear(w, acc, in, out, "W", NULL);
    free(a);
    free(b);
    free(acc);
    return y;
}

/* x[u] @ W[type], W[types, in, out] */
static void typed_row(const world *w, const char *name, const double *x, uint32_t in, uint32_t out, uint32_t e,
                      double scale, double *to)
{
    const double *m = weights(w, name) + (w->types > 1 ? (size_t)w->g->type[e] * in * out : 0);
    for (uint32_t o = 0; o < out; o++)
        for (uint32_t i = 0; i < in; i++)
            to[o] += scale * x[(size_t)w->g->src[e] * in + i] * m[(size_t)i * out + o];
}

static double *ggnn(const world *w, const double *h, uint32_t in, uint32_t out)
{
    const test_graph *g = w->g;
    double *x = linear(w, h, in, out, "lin.weight", NULL);
    for (int step = 0; step < 2; step++) {
        double *m = make(w, out), *gi, *gh;
        for (uint32_t e = 0; e < g->m; e++)
            typed_row(w, "weight", x, out, out, e, 1, m + (size_t)g->dst[e] * out);
        gi = linear(w, m, out, 3 * out, "rnn.weight_ih", "rnn.bias_ih");
        gh = linear(w, x, out, 3 * out, "rnn.weight_hh", "rnn.bias_hh");
        for (size_t v = 0; v < g->n; v++)
            for (size_t c = 0; c < out; c++) {
                const size_t k = v * 3 * out + c;
                const double reset = 1 / (1 + exp(-gi[k] - gh[k])), gate = 1 / (1 + exp(-gi[k + out] - gh[k + out]));
                const double fresh = tanh(gi[k + 2 * out] + reset * gh[k + 2 * out]);
                x[v * out + c] = (1 - gate) * fresh + gate * x[v * out + c];
            }
        free(m);
        free(gi);
        free(gh);
    }
    return x;
}

/* The mean of the messages by type, the own row by root, and a bias; `message` adds that of an edge, scaled. */
static double *relational(const world *w, const double *h, uint32_t in, uint32_t out,
                          void (*message)(const world *w, const char *name, const double *x, uint32_t in, uint32_t out,
                                          uint32_t e, double scale, double *to))
{
    const test_graph *g = w->g;
    const double *root = weights(w, "root"), *bias = weights(w, "bias");
    double *y = make(w, out);
    for (uint32_t e = 0; e < g->m; e++) {
        double same = 0;
        for (uint32_t k = 0; k < g->m; k++)
            same += g->dst[k] == g->dst[e] && (w->types == 1 || g->type[k] == g->type[e]);
        message(w, "weight", h, in, out, e, 1 / same, y + (size_t)g->dst[e] * out);
    }
    for (uint32_t v = 0; v < g->n; v++)
        for (uint32_t o = 0; o < out; o++) {
            y[(size_t)v * out + o] += bias[o];
            for (uint32_t i = 0; i < in; i++)
                y[(size_t)v * out + o] += h[(size_t)v * in + i] * root[(size_t)i * out + o];
        }
    return y;
}

static double *rgcn(const world *w, const double *h, uint32_t in, uint32_t out)
{
    return relational(w, h, in, out, typed_row);
}

/* x[u] @ W[type], W[t] = sum over b of comp[t, b] V[b] */
static void bases_row(const world *w, const char *name, const double *x, uint32_t in, uint32_t out, uint32_t e,
                      double scale, double *to)
{
    const uint32_t bases = w->t->bases;
    const double *v = weights(w, name), *comp = weights(w, "comp") + (w->types > 1 ? (size_t)w->g->type[e] * bases : 0);
    for (uint32_t b = 0; b < bases; b++)
        for (uint32_t o = 0; o < out; o++)
            for (uint32_t i = 0; i < in; i++)
                to[o] += scale * comp[b] * x[(size_t)w->g->src[e] * in + i] * v[((size_t)b * in + i) * out + o];
}

static double *rgcn_bases(const world *w, const double *h, uint32_t in, uint32_t out)
{
    return relational(w, h, in, out, bases_row);
}

static double *sage_max(const world *w, const double *h, uint32_t in, uint32_t out)
{
    const test_graph *g = w->g;
    double *a = make(w, in), *y;
    for (uint32_t v = 0; v < g->n; v++)
        for (uint32_t c = 0; c < in; c++) {
            double top = -INFINITY;
            for (uint32_t e = 0; e < g->m; e++)
                if (g->dst[e] == v)
                    top = fmax(top, h[(size_t)g->src[e] * in + c]);
            a[(size_t)v * in + c] = top == -INFINITY ? 0 : top;
        }
    y = linear(w, a, in, out, "lin_l.weight", "lin_l.bias");
    add_to(w, y, linear(w, h, in, out, "lin_r.weight", NULL), out);
    free(a);
    return y;
}

/* c and h of one vertex after another neighbour, whose part of the gates is a[4 * in]. */
static void lstm_step(const double *a, const double *m, double *h, double *c, uint32_t in)
{
    double *old = calloc(in, sizeof(*old));
    memcpy(old, h, in * sizeof(*old));
    for (uint32_t j = 0; j < in; j++) {
        double gate[4];
        for (uint32_t k = 0; k < 4; k++) {
            gate[k] = a[k * in + j];
            for (uint32_t i = 0; i < in; i++)
                gate[k] += m[((size_t)k * in + j) * in + i] * old[i];
            gate[k] = k == 2 ? tanh(gate[k]) : 1 / (1 + exp(-gate[k]));
        }
        c[j] = gate[1] * c[j] + gate[0] * gate[2];
        h[j] = gate[3] * tanh(c[j]);
    }
    free(old);
}

static double *sage_lstm(const world *w, const double *h, uint32_t in, uint32_t out)
{
    const test_graph *g = w->g;
    const double *b = weights(w, "aggr_module.lstm.bias_hh_l0"), *m = weights(w, "aggr_module.lstm.weight_hh_l0");
    double *a = linear(w, h, in, 4 * in, "aggr_module.lstm.weight_ih_l0", "aggr_module.lstm.bias_ih_l0");
    double *state = make(w, in), *y;

    for (size_t k = 0; k < (size_t)g->n * 4 * in; k++)
        a[k] += b[k % (4 * in)];
    for (uint32_t v = 0; v < g->n; v++) {
        double *c = calloc(in, sizeof(*c));
        for (uint32_t e = 0; e < g->m; e++)
            if (g->dst[e] == v)
                lstm_step(a + (size_t)g->src[e] * 4 * in, m, state + (size_t)v * in, c, in);
        free(c);
    }
    y = linear(w, state, in, out, "lin_l.weight", "lin_l.bias");
    add_to(w, y, linear(w, h, in, out, "lin_r.weight", NULL), out);
    free(a);
    free(state);
    return y;
}

/* Dropout behind this layer. */
static double drop_of(const world *w, uint32_t v, uint32_t c)
{
    const uint32_t counter[4] = {(uint32_t)w->g->store[ID_INPUT_ID][v], c / 4, w->layer + 1, 3};
    uint32_t key[2], word[4];
    if (w->t->dropout == 0)
        return 1;
    gs_random_key(key, 42, GS_RANDOM_DROPOUT);
    gs_philox4x32(word, counter, key);
    return gs_uniform_f32(word[c % 4]) >= w->t->dropout ? 1 / (1 - (double)w->t->dropout) : 0;
}

static double loss_of(const world *w, const double *z)
{
    const uint32_t classes = w->t->classes;
    double loss = 0;
    for (uint32_t v = 0; v < w->g->n; v++) {
        double sum = 0;
        for (uint32_t c = 0; c < classes; c++)
            sum += exp(z[(size_t)v * classes + c]);
        if (w->g->store[ID_SPLIT][v] == 1)
            loss += log(sum) - z[(size_t)v * classes + (size_t)w->g->store[ID_LABELS][v]];
    }
    return loss;
}

static double *logits(world *w, layer_formula layer)
{
    const test_case *t = w->t;
    uint32_t width = t->in;
    double *h = make(w, width);
    memcpy(h, w->g->store[ID_FEATURES], (size_t)w->g->n * width * sizeof(double));
    for (w->layer = 0; w->layer < t->layers; w->layer++) {
        uint32_t out;
        double *y;
        w->last = w->layer + 1 == t->layers;
        out = w->last ? t->classes : t->hidden;
        y = layer(w, h, width, out);
        for (size_t k = 0; !w->last && k < (size_t)w->g->n * out; k++)
            y[k] = (y[k] > 0 ? y[k] : 0) * (w->training ? drop_of(w, (uint32_t)(k / out), (uint32_t)(k % out)) : 1);
        free(h);
        h = y;
        width = out;
    }
    return h;
}

static void check_model(const test_case *t, layer_formula layer)
{
    gs_program *p = gs_program_new();
    test_graph *g = graph_new(19, 70, t->in, t->classes, t->self_loops, 21);
    world w = {.t = t, .g = g, .p = p, .heads = t->heads == 0 ? 1 : t->heads,
               .types = t->edge_types == 0 ? 1 : t->edge_types};
    double *want;
    interp x;

    gs_assert_ok(compile_case(p, t, "train"));
    gs_assert_ok(compile_case(p, t, "predict"));
    gs_assert_ok(gs_program_check(p));
    w.param = params_new(p, 31);
    start(&x, p, g, w.param);
    want = logits(&w, layer);
    interp_run(&x, gs_program_pass(p, "predict"));
    gs_assert_all_close_f64(x.array[p->logits], want, (size_t)g->n * t->classes, 1e-5, 1e-6);
    free(want);
    w.training = true;
    want = logits(&w, layer);
    interp_run(&x, gs_program_pass(p, "train"));
    gs_assert_close(x.loss_sum, loss_of(&w, want), 1e-5);
    free(want);
    check_gradients(&x, p, gs_program_pass(p, "train"), w.param);
    interp_close(&x);
    params_free(p, w.param);
    graph_free(g);
    gs_program_free(p);
}

static void check_variants(const char *model, layer_formula layer, uint32_t heads, uint32_t types)
{
    for (uint32_t layers = 1; layers <= 2; layers++)
        for (int bits = 0; bits < 4; bits++) {
            const test_case t = {
                .model = model, .layers = layers, .in = layers == 1 ? 6 : 5, .hidden = heads > 1 ? 3 * heads : 4,
                .classes = 3, .self_loops = bits & 1, .no_move = bits & 2, .no_fuse = bits & 2, .heads = heads,
                .hoist = layers == 2 || !(bits & 1), .lean = bits & 1, .rounded = bits == 1 || bits == 2,
                .edge_types = types, .bases = layer == rgcn_bases ? 2 : 0, .gathered = bits >= 2,
                .dropout = bits == 3 || (bits == 0 && layers == 2) ? 0.4f : 0,
            };
            check_model(&t, layer);
        }
}

/* The same with products by the matrix of an edge's type on the edges: no column for each type but the counts'. */
static void check_batches(const char *model, layer_formula layer, bool moves)
{
    for (uint32_t layers = 1; layers <= 2; layers++)
        for (int bits = 0; bits < 8; bits++) {
            const test_case t = {
                .model = model, .layers = layers, .in = layers == 1 ? 6 : 5, .hidden = 4, .classes = 3, .typed = true,
                .self_loops = bits & 1, .no_fuse = bits & 2, .hoist = bits & 4, .edge_types = TEST_TYPES,
                .bases = layer == rgcn_bases ? 2 : 0, .dropout = bits % 4 == 3 ? 0.4f : 0, .edges_per_vertex = 1,
            };
            gs_program *const p = gs_program_new();
            uint32_t batches = 0;
            gs_assert_ok(compile_case(p, &t, "train"));
            for (uint32_t s = 0; s < p->stages; s++)
                batches += gs_stage_has_products(&p->stage[s]);
            assert_true(moves ? batches >= 2 * layers : batches == 0); /* forward, backward */
            for (uint32_t a = 0; a < p->arrays; a++)
                assert_true(!moves || p->array[a].width <= 6);
            gs_program_free(p);
            check_model(&t, layer);
        }
}

static void test_zoo__types_in_batches_but_not_bases(void **state)
{
    (void)state;
    check_batches("rgcn", rgcn, true);
    check_batches("ggnn", ggnn, true);
    check_batches("rgcn_bases", rgcn_bases, false);
}

static void test_zoo__gat(void **state)
{
    (void)state;
    check_variants("gat", gat, 1, 0);
    check_variants("gat", gat, 2, 0);
}

static void test_zoo__gatv2(void **state)
{
    (void)state;
    check_variants("gatv2", gatv2, 3, 0);
    check_variants("gatv2", gatv2, 1, 0);
}

static void test_zoo__gin(void **state)
{
    (void)state;
    check_variants("gin", gin, 1, 0);
}

static void test_zoo__appnp(void **state)
{
    (void)state;
    check_variants("appnp", appnp, 1, 0);
}

static void test_zoo__commnet(void **state)
{
    (void)state;
    check_variants("commnet", commnet, 1, 0);
}

static void test_zoo__ggcn(void **state)
{
    (void)state;
    check_variants("ggcn", ggcn, 1, 0);
}

static void test_zoo__ggnn(void **state)
{
    (void)state;
    check_variants("ggnn", ggnn, 1, TEST_TYPES);
    check_variants("ggnn", ggnn, 1, 0);
}

static void test_zoo__rgcn(void **state)
{
    (void)state;
    check_variants("rgcn", rgcn, 1, TEST_TYPES);
    check_variants("rgcn", rgcn, 1, 0);
}

static void test_zoo__rgcn_bases(void **state)
{
    (void)state;
    check_variants("rgcn_bases", rgcn_bases, 1, TEST_TYPES);
    check_variants("rgcn_bases", rgcn_bases, 1, 0);
}

static void test_zoo__sage_max(void **state)
{
    (void)state;
    check_variants("sage_max", sage_max, 1, 0);
}

static void test_zoo__sage_lstm(void **state)
{
    (void)state;
    check_variants("sage_lstm", sage_lstm, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zoo__gat),     cmocka_unit_test(test_zoo__gatv2),   cmocka_unit_test(test_zoo__gin),
        cmocka_unit_test(test_zoo__appnp),   cmocka_unit_test(test_zoo__commnet), cmocka_unit_test(test_zoo__ggcn),
        cmocka_unit_test(test_zoo__ggnn),    cmocka_unit_test(test_zoo__rgcn),    cmocka_unit_test(test_zoo__sage_max),
        cmocka_unit_test(test_zoo__types_in_batches_but_not_bases),
        cmocka_unit_test(test_zoo__sage_lstm), cmocka_unit_test(test_zoo__rgcn_bases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
