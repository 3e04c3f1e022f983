/* network.c - layers in a stack, their loss, its gradient.
 *
 * As torch_geometric.nn.models.BasicGNN stacks them: layer, activation, ..., and the last layer
 * alone. The loss is mean cross-entropy over the training vertices. What a layer computes is in layers_*.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"

/* ---- edges ---- */

static void add_edge(ref_edges *e, size_t source, size_t target, double weight, size_t type)
{
    e->source[e->count] = source;
    e->target[e->count] = target;
    e->weight[e->count] = weight;
    e->type[e->count++] = type;
}

/* N of all vertices; with `self`, N'. */
static ref_edges edges_of(const ref_graph *g, bool self)
{
    const size_t most = g->edges + g->vertices;
    ref_edges e = {.source = ref_alloc(most, sizeof(size_t)), .target = ref_alloc(most, sizeof(size_t)),
                   .weight = ref_alloc(most, sizeof(double)), .type = ref_alloc(most, sizeof(size_t))};
    for (size_t i = 0; i < g->edges; i++)
        if (!self || g->source[i] != g->target[i])
            add_edge(&e, (size_t)g->source[i], (size_t)g->target[i], g->weight ? g->weight[i] : 1.0,
                     g->type ? (size_t)g->type[i] : 0);
    for (size_t v = 0; self && v < g->vertices; v++)
        add_edge(&e, v, v, 1.0, 0);
    return e;
}

static void edges_free(ref_edges *e)
{
    free(e->source);
    free(e->target);
    free(e->weight);
    free(e->type);
}

/* ---- sequences ---- */

static const ref_graph *sorting;

static int by_target_and_source(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    const int64_t d = sorting->target[x] != sorting->target[y] ? sorting->target[x] - sorting->target[y]
                                                               : sorting->source[x] - sorting->source[y];
    return (d > 0) - (d < 0);
}

static ref_sequences sequences_of(const ref_graph *g)
{
    size_t *const order = ref_alloc(g->edges, sizeof(*order)), *const degree = ref_alloc(g->vertices, sizeof(*degree));
    ref_sequences q = {0};
    for (size_t i = 0; i < g->edges; i++) {
        order[i] = i;
        degree[g->target[i]]++;
        q.steps = degree[g->target[i]] > q.steps ? degree[g->target[i]] : q.steps;
    }
    sorting = g;
    qsort(order, g->edges, sizeof(*order), by_target_and_source);
    q.source = ref_alloc(q.steps * g->vertices, sizeof(*q.source));
    q.has = ref_alloc(q.steps * g->vertices, sizeof(*q.has));
    for (size_t i = 0, k = 0; i < g->edges; i++) {
        const size_t v = (size_t)g->target[order[i]];
        k = i > 0 && g->target[order[i - 1]] == g->target[order[i]] ? k + 1 : 0;
        q.source[k * g->vertices + v] = (size_t)g->source[order[i]];
        q.has[k * g->vertices + v] = 1.0;
    }
    free(order);
    free(degree);
    return q;
}

/* ---- one pass over the layers ---- */

typedef struct pass {
    ref_tape tape;
    ref_edges all, self;
    ref_sequences sequences;
    ref_node *logits;
} pass;

static pass forward(ref_network *n, const ref_graph *g)
{
    pass p = {.tape = ref_tape_new(), .all = edges_of(g, false), .self = edges_of(g, true)};
    const ref_layer layer = ref_layer_of(n->model);
    ref_node *h = ref_constant(&p.tape, g->vertices, g->width, g->feature);
    ref_call c = {.network = n, .tape = &p.tape, .graph = g, .all = &p.all, .self = &p.self, .features = h,
                  .training = n->training};
    if (layer == NULL || n->layers > REF_MOST_LAYERS)
        ref_die("no model \"%s\" of %zu layers", n->model, n->layers);
    if (layer == ref_layer_sage_lstm || layer == ref_layer_steps)
        p.sequences = sequences_of(g);
    c.sequences = &p.sequences;
    for (c.layer = 0; c.layer < n->layers; c.layer++) {
        c.last = c.layer + 1 == n->layers;
        c.input[c.layer] = h;
        c.in = h->cols;
        c.out = c.last ? g->classes : n->hidden;
        h = layer(&c, h);
        if (!c.last)
            h = ref_act(&c, h);
    }
    p.logits = h;
    return p;
}

static void pass_free(pass *p)
{
    ref_tape_free(&p->tape);
    edges_free(&p->all);
    edges_free(&p->self);
    free(p->sequences.source);
    free(p->sequences.has);
}

/* ---- the network ---- */

ref_network ref_network_new(const char *model, size_t layers, size_t hidden, size_t heads, size_t bases,
                            const char *act, const ref_graph *g)
{
    ref_network n = {
        .model = model, .act = act, .layers = layers, .hidden = hidden, .heads = heads, .bases = bases, .margin = 1.0};
    pass p = forward(&n, g); /* the layers make their parameters */
    pass_free(&p);
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
        const double sides = (double)(t->shape[t->dims - 1] + t->shape[t->dims >= 2 ? t->dims - 2 : 0]);
        const double bound = t->dims >= 2 ? sqrt(6.0 / sides) : 0.3;
        for (size_t k = 0; k < ref_tensor_size(t); k++)
            t->value[k] =
                t->count ? 3.0 : (float)(bound * (2.0 * ref_random_uniform(&r) - 1.0) + (t->above_0 ? 1.0 : 0.0));
    }
}

void ref_network_load(ref_network *n, const ref_tensors *from)
{
    if (from->count != n->weight.count)
        ref_die("the weights hold %zu tensors, the network has %zu", from->count, n->weight.count);
    for (size_t i = 0; i < n->weight.count; i++) {
        ref_tensor *t = &n->weight.tensor[i];
        const ref_tensor *f = ref_tensors_find(from, t->name);
        if (f == NULL || f->dims != t->dims || memcmp(f->shape, t->shape, sizeof(t->shape)) != 0)
            ref_die("the weights lack %s, or hold it in another shape", t->name);
        memcpy(t->value, f->value, ref_tensor_size(t) * sizeof(double));
    }
}

double *ref_network_logits(ref_network *n, const ref_graph *g)
{
    pass p = forward(n, g);
    double *logits = ref_alloc(g->vertices * g->classes, sizeof(double));
    memcpy(logits, p.logits->x, g->vertices * g->classes * sizeof(double));
    pass_free(&p);
    return logits;
}

double ref_network_loss(ref_network *n, const ref_graph *g)
{
    n->training = true;
    pass p = forward(n, g);
    n->training = false;
    const double loss = ref_cross_entropy(&p.tape, p.logits, g)->x[0];
    pass_free(&p);
    return loss;
}

double ref_network_backward(ref_network *n, const ref_graph *g)
{
    for (size_t i = 0; i < n->gradient.count; i++)
        memset(n->gradient.tensor[i].value, 0, ref_tensor_size(&n->gradient.tensor[i]) * sizeof(double));
    n->training = n->follow = true;
    pass p = forward(n, g);
    n->training = n->follow = false;
    ref_node *const loss = ref_cross_entropy(&p.tape, p.logits, g);
    const double value = loss->x[0];
    ref_tape_backward(&p.tape, loss);
    n->margin = fmin(n->margin, p.tape.margin);
    pass_free(&p);
    return value;
}
