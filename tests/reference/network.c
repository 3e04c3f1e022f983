/* network.c - GCN and GraphSAGE, their loss and its gradient, from the formulas.
 *
 * A layer maps X [N, in] to H [N, out]. With N(v) the sources of v's in-edges:
 *
 *   gcn   (Kipf and Welling 2017, as torch_geometric's GCNConv)
 *         self loops of the input are dropped and every vertex gets one:
 *         d(v) = 1 + number of in-edges u -> v with u != v
 *         H(v) = sum over those edges of W x(u) / sqrt(d(u) d(v)) + W x(v) / d(v) + b
 *   sage  (Hamilton et al. 2017, as SAGEConv with mean)
 *         M(v) = mean over all in-edges of x(u), 0 where there are none
 *         H(v) = W_l M(v) + b_l + W_r x(v)
 *
 * Every copy of a duplicate edge counts. Layers but the last are followed by
 * relu. The loss is mean cross-entropy over training vertices.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

/* ---- dense ---- */

/* out[n, o] += x[n, i] @ w[o, i]' */
static void multiply(double *out, const double *x, const double *w, size_t n, size_t in, size_t o)
{
    for (size_t v = 0; v < n; v++)
        for (size_t i = 0; i < in; i++) {
            const double a = x[v * in + i];
            for (size_t j = 0; a != 0.0 && j < o; j++)
                out[v * o + j] += a * w[j * in + i];
        }
}

/* dx[n, i] += dh[n, o] @ w[o, i] */
static void multiply_back(double *dx, const double *dh, const double *w, size_t n, size_t in, size_t o)
{
    for (size_t v = 0; v < n; v++)
        for (size_t j = 0; j < o; j++)
            for (size_t i = 0; i < in; i++)
                dx[v * in + i] += dh[v * o + j] * w[j * in + i];
}

/* dw[o, i] += dh[n, o]' @ x[n, i] */
static void outer(double *dw, const double *dh, const double *x, size_t n, size_t in, size_t o)
{
    for (size_t v = 0; v < n; v++)
        for (size_t i = 0; i < in; i++) {
            const double a = x[v * in + i];
            for (size_t j = 0; a != 0.0 && j < o; j++)
                dw[j * in + i] += dh[v * o + j] * a;
        }
}

static void add_rows(double *out, const double *b, size_t n, size_t o)
{
    for (size_t i = 0; i < n * o; i++)
        out[i] += b[i % o];
}

static void sum_rows(double *db, const double *dh, size_t n, size_t o)
{
    for (size_t i = 0; i < n * o; i++)
        db[i % o] += dh[i];
}

/* ---- over edges ---- */

/* Row `from` of x times s onto row `to` of out. */
static void move(double *out, const double *x, size_t to, size_t from, double s, size_t width)
{
    for (size_t c = 0; c < width; c++)
        out[to * width + c] += s * x[from * width + c];
}

/* The layer's linear map over edges; `back` is its transpose. free() the result. */
static double *propagate(ref_model model, const ref_graph *g, const double *x, size_t width, bool back)
{
    double *out = ref_alloc(g->vertices * width, sizeof(double));
    double *degree = ref_alloc(g->vertices, sizeof(double));
    for (size_t e = 0; e < g->edges; e++)
        degree[g->target[e]] += model == REF_SAGE || g->source[e] != g->target[e];
    for (size_t v = 0; model == REF_GCN && v < g->vertices; v++)
        move(out, x, v, v, 1.0 / (degree[v] += 1.0), width);
    for (size_t e = 0; e < g->edges; e++) {
        const size_t u = (size_t)g->source[e], v = (size_t)g->target[e];
        double s = 1.0 / degree[v];
        if (model == REF_GCN)
            s = u == v ? 0.0 : 1.0 / sqrt(degree[u] * degree[v]);
        if (back)
            move(out, x, u, v, s, width);
        else
            move(out, x, v, u, s, width);
    }
    free(degree);
    return out;
}

/* ---- parameters ---- */

static size_t width_in(const ref_network *n, const ref_graph *g, size_t layer)
{
    return layer == 0 ? g->width : n->hidden;
}

static size_t width_out(const ref_network *n, const ref_graph *g, size_t layer)
{
    return layer + 1 == n->layers ? g->classes : n->hidden;
}

static void declare(ref_network *n, size_t layer, const char *name, size_t dims, size_t rows, size_t cols)
{
    for (int i = 0; i < 2; i++) {
        ref_tensors *t = i ? &n->gradient : &n->weight;
        ref_tensor *x = &t->tensor[t->count++];
        snprintf(x->name, sizeof(x->name), "convs.%zu.%s", layer, name);
        x->dims = dims;
        x->shape[0] = rows;
        x->shape[1] = cols;
        x->value = ref_alloc(rows * cols, sizeof(double));
    }
}

ref_network ref_network_new(ref_model model, size_t layers, size_t hidden, const ref_graph *g)
{
    ref_network n = {.model = model, .layers = layers, .hidden = hidden, .margin = 1.0};
    n.weight.tensor = ref_alloc(3 * layers, sizeof(ref_tensor));
    n.gradient.tensor = ref_alloc(3 * layers, sizeof(ref_tensor));
    for (size_t l = 0; l < layers; l++) {
        const size_t in = width_in(&n, g, l), out = width_out(&n, g, l);
        if (model == REF_GCN) {
            declare(&n, l, "lin.weight", 2, out, in);
            declare(&n, l, "bias", 1, out, 1);
        } else {
            declare(&n, l, "lin_l.weight", 2, out, in);
            declare(&n, l, "lin_l.bias", 1, out, 1);
            declare(&n, l, "lin_r.weight", 2, out, in);
        }
    }
    return n;
}

void ref_network_free(ref_network *n)
{
    ref_tensors_free(&n->weight);
    ref_tensors_free(&n->gradient);
}

void ref_network_init(ref_network *n, uint64_t seed)
{
    ref_random r = ref_random_seed(seed);
    for (size_t i = 0; i < n->weight.count; i++) {
        ref_tensor *t = &n->weight.tensor[i];
        const double bound = t->dims == 2 ? sqrt(6.0 / (double)(t->shape[0] + t->shape[1])) : 0.3;
        for (size_t k = 0; k < ref_tensor_size(t); k++)
            t->value[k] = (float)(bound * (2.0 * ref_random_uniform(&r) - 1.0));
    }
}

void ref_network_load(ref_network *n, const ref_tensors *from)
{
    if (from->count != n->weight.count)
        ref_die("the weights hold %zu tensors, the network has %zu", from->count, n->weight.count);
    for (size_t i = 0; i < n->weight.count; i++) {
        ref_tensor *t = &n->weight.tensor[i];
        const ref_tensor *f = ref_tensors_find(from, t->name);
        if (f == NULL || f->dims != t->dims || f->shape[0] != t->shape[0] || f->shape[1] != t->shape[1])
            ref_die("the weights lack %s, or hold it in another shape", t->name);
        memcpy(t->value, f->value, ref_tensor_size(t) * sizeof(double));
    }
}

/* ---- forward and backward ---- */

/* What the backward pass needs of each layer. */
typedef struct trace {
    double **x;    /* [layers + 1]: a layer's input; the last one is the logits */
    double **mean; /* [layers]: sage's M */
    double margin; /* as ref_network's */
} trace;

/* Parameter i of a layer, in the order of declaration. */
static double *weight_of(const ref_network *n, size_t layer, size_t i)
{
    return n->weight.tensor[layer * (n->model == REF_GCN ? 2 : 3) + i].value;
}

static double *gradient_of(const ref_network *n, size_t layer, size_t i)
{
    return n->gradient.tensor[layer * (n->model == REF_GCN ? 2 : 3) + i].value;
}

/* h = relu(h), in place; the margin of its numbers. An exact 0 is one in any precision. */
static double relu(double *h, size_t n)
{
    double most = 0.0, least = INFINITY;
    for (size_t i = 0; i < n; i++) {
        const double size = fabs(h[i]);
        most = fmax(most, size);
        if (size != 0.0)
            least = fmin(least, size);
        h[i] = fmax(h[i], 0.0);
    }
    return most == 0.0 ? 1.0 : least / most;
}

static void layer_forward(const ref_network *n, const ref_graph *g, trace *t, size_t l)
{
    const size_t in = width_in(n, g, l), out = width_out(n, g, l), rows = g->vertices;
    double *h = ref_alloc(rows * out, sizeof(double));
    if (n->model == REF_GCN) {
        multiply(h, t->x[l], weight_of(n, l, 0), rows, in, out);
        double *sum = propagate(REF_GCN, g, h, out, false);
        free(h);
        h = sum;
        add_rows(h, weight_of(n, l, 1), rows, out);
    } else {
        t->mean[l] = propagate(REF_SAGE, g, t->x[l], in, false);
        multiply(h, t->mean[l], weight_of(n, l, 0), rows, in, out);
        add_rows(h, weight_of(n, l, 1), rows, out);
        multiply(h, t->x[l], weight_of(n, l, 2), rows, in, out);
    }
    if (l + 1 < n->layers)
        t->margin = fmin(t->margin, relu(h, rows * out));
    t->x[l + 1] = h;
}

/* dh: gradient of the layer's output before relu. Returns that of its input,
 * or NULL for the first layer. */
static double *layer_backward(ref_network *n, const ref_graph *g, const trace *t, size_t l, const double *dh)
{
    const size_t in = width_in(n, g, l), out = width_out(n, g, l), rows = g->vertices;
    double *dx = l == 0 ? NULL : ref_alloc(rows * in, sizeof(double));
    sum_rows(gradient_of(n, l, 1), dh, rows, out);
    if (n->model == REF_GCN) {
        double *dz = propagate(REF_GCN, g, dh, out, true);
        outer(gradient_of(n, l, 0), dz, t->x[l], rows, in, out);
        if (dx != NULL)
            multiply_back(dx, dz, weight_of(n, l, 0), rows, in, out);
        free(dz);
        return dx;
    }
    outer(gradient_of(n, l, 0), dh, t->mean[l], rows, in, out);
    outer(gradient_of(n, l, 2), dh, t->x[l], rows, in, out);
    if (dx == NULL)
        return NULL;
    double *dm = ref_alloc(rows * in, sizeof(double));
    multiply_back(dm, dh, weight_of(n, l, 0), rows, in, out);
    double *through = propagate(REF_SAGE, g, dm, in, true);
    multiply_back(dx, dh, weight_of(n, l, 2), rows, in, out);
    for (size_t i = 0; i < rows * in; i++)
        dx[i] += through[i];
    free(dm);
    free(through);
    return dx;
}

static trace forward(const ref_network *n, const ref_graph *g)
{
    trace t = {ref_alloc(n->layers + 1, sizeof(double *)), ref_alloc(n->layers, sizeof(double *)), 1.0};
    t.x[0] = g->feature;
    for (size_t l = 0; l < n->layers; l++)
        layer_forward(n, g, &t, l);
    return t;
}

static void trace_free(trace *t, size_t layers)
{
    for (size_t l = 0; l < layers; l++) {
        free(t->x[l + 1]);
        free(t->mean[l]);
    }
    free(t->x);
    free(t->mean);
}

/* Mean cross-entropy; its gradient in the logits into `d` unless NULL. */
static double cross_entropy(const ref_graph *g, const double *logits, double *d)
{
    const size_t k = g->classes;
    double sum = 0.0, rows = 0.0;
    for (size_t v = 0; v < g->vertices; v++)
        rows += g->split[v] == REF_TRAIN;
    for (size_t v = 0; v < g->vertices; v++) {
        const double *z = logits + v * k;
        double most = z[0], total = 0.0;
        if (g->split[v] != REF_TRAIN)
            continue;
        for (size_t c = 1; c < k; c++)
            most = z[c] > most ? z[c] : most;
        for (size_t c = 0; c < k; c++)
            total += exp(z[c] - most);
        sum += most + log(total) - z[g->label[v]];
        for (size_t c = 0; d != NULL && c < k; c++)
            d[v * k + c] = (exp(z[c] - most) / total - ((int64_t)c == g->label[v])) / rows;
    }
    return sum / rows;
}

double *ref_network_logits(const ref_network *n, const ref_graph *g)
{
    trace t = forward(n, g);
    double *logits = t.x[n->layers];
    t.x[n->layers] = NULL;
    trace_free(&t, n->layers);
    return logits;
}

double ref_network_loss(const ref_network *n, const ref_graph *g)
{
    double *logits = ref_network_logits(n, g);
    const double loss = cross_entropy(g, logits, NULL);
    free(logits);
    return loss;
}

double ref_network_backward(ref_network *n, const ref_graph *g)
{
    trace t = forward(n, g);
    double *d = ref_alloc(g->vertices * g->classes, sizeof(double));
    const double loss = cross_entropy(g, t.x[n->layers], d);
    for (size_t i = 0; i < n->gradient.count; i++)
        memset(n->gradient.tensor[i].value, 0, ref_tensor_size(&n->gradient.tensor[i]) * sizeof(double));
    for (size_t l = n->layers; l-- > 0;) {
        double *dx = layer_backward(n, g, &t, l, d);
        for (size_t i = 0; dx != NULL && i < g->vertices * n->hidden; i++)
            if (t.x[l][i] <= 0.0) /* relu's output is 0 where its slope is */
                dx[i] = 0.0;
        free(d);
        d = dx;
    }
    n->margin = fmin(n->margin, t.margin);
    trace_free(&t, n->layers);
    return loss;
}
