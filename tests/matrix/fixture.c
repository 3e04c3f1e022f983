/* fixture.c - graphs, their stores, networks and what the reference says of them, each made once. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "matrix.h"

#define KINDS 8
#define SEEDS 16

const ref_graph *graph_of(const char *kind)
{
    static struct {
        char kind[32];
        ref_graph graph;
    } made[KINDS];
    size_t i = 0;

    while (i < KINDS && made[i].kind[0] != '\0' && strcmp(made[i].kind, kind) != 0)
        i++;
    if (i == KINDS)
        ref_die("more kinds of graphs than %d", KINDS);
    if (made[i].kind[0] == '\0') {
        snprintf(made[i].kind, sizeof(made[i].kind), "%s", kind);
        if (access(kind, F_OK) != 0) /* a real graph is a link by then */
            ref_graph_make(kind, kind, 0);
        made[i].graph = ref_graph_read(kind);
    }
    return &made[i].graph;
}

const char *store_of(const char *graph, const char *method, unsigned parts, const char *options)
{
    const char *const name = text("store.%s.%s.%u.%s", graph, method, parts, options);
    char path[LINE_MOST];

    snprintf(path, sizeof(path), "%s", name);
    for (char *c = path; *c != '\0'; c++)
        *c = *c == ' ' ? '_' : *c;
    if (access(path, F_OK) != 0 &&
        !command("partition %s %s --method %s --parts %u %s", graph, path, method, parts, options))
        exit(check_report());
    return text("%s", path);
}

/* ---- networks ---- */

const char *model_of(const char *name)
{
    const char *const path = text("texts/%s.gnn", name);
    return access(path, F_OK) == 0 ? path : name;
}

const char *method_of(const char *name)
{
    return strcmp(name, "sage_lstm") == 0 || strcmp(name, "steps") == 0 ? "natural" : "fennel";
}

const char *options_of(const char *name)
{
    return strcmp(name, "gat") == 0 || strcmp(name, "gatv2") == 0 ? "--heads 4" : "";
}

network network_of(const char *name)
{
    static const network others[] = {
        {"gat", NULL, "elu", 2, 16, 4, 4},       {"gatv2", NULL, "elu", 2, 16, 2, 4},
        {"sage_max", NULL, "tanh", 2, 16, 1, 4}, {"ggnn", NULL, "tanh", 2, 16, 1, 4},
        {"appnp", NULL, "relu", 3, 16, 1, 4},    {"rgcn_bases", NULL, "relu", 2, 16, 1, 3},
        {"mixed", NULL, "tanh", 2, 16, 2, 4},    {"columns", NULL, "relu", 3, 16, 1, 4},
        {"gates", NULL, "elu", 3, 16, 1, 4},     {"jumps", NULL, "tanh", 2, 16, 1, 4},
    };
    network n = {name, NULL, "relu", 2, 16, 1, 4};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(others[i].name, name) == 0)
            n = others[i];
    n.text = model_of(name);
    return n;
}

const char *network_options(const network *n)
{
    const char *const heads = n->heads == 1 ? "" : text(" --heads %u", n->heads);
    const char *const bases = n->bases == 4 ? "" : text(" --bases %u", n->bases);
    return text("--model %s --layers %u --hidden %u --act %s%s%s", n->text, n->layers, n->hidden, n->act, heads, bases);
}

const char *learning_options(const learning *l)
{
    return text("--epochs %u --optimizer %s --lr %.9g --weight-decay %.9g", l->epochs, l->optimizer, l->lr,
                l->weight_decay);
}

/* ---- the reference ---- */

static ref_tensors copy_of(const ref_tensors *t)
{
    ref_tensors out = {.count = t->count, .tensor = ref_alloc(t->count, sizeof(*out.tensor))};

    for (size_t i = 0; i < t->count; i++) {
        const size_t n = ref_tensor_size(&t->tensor[i]);
        out.tensor[i] = t->tensor[i];
        out.tensor[i].value = ref_alloc(n, sizeof(double));
        memcpy(out.tensor[i].value, t->tensor[i].value, n * sizeof(double));
    }
    return out;
}

/* One attempt; false where it came too near to a kink. */
static bool attempt(yardstick *y, const ref_graph *g, const network *n, const learning *l, uint64_t seed)
{
    ref_network r = ref_network_new(n->name, n->layers, n->hidden, n->heads, n->bases, n->act, g);

    ref_network_init(&r, seed);
    y->start = copy_of(&r.weight);
    ref_optimiser o = ref_optimiser_new(l->optimizer, l->lr, l->weight_decay, &r);
    for (unsigned e = 0; e < l->epochs; e++) {
        y->loss = ref_network_backward(&r, g);
        if (e == 0)
            y->gradient = copy_of(&r.gradient);
        ref_optimiser_step(&o, &r);
    }
    ref_optimiser_free(&o);
    y->end.rows = g->vertices;
    y->end.columns = g->classes;
    y->end.logits = ref_network_logits(&r, g);
    y->end.weights = copy_of(&r.weight);
    const bool far = r.margin >= l->margin;
    ref_network_free(&r);
    return far;
}

yardstick reference_of(const char *kind, const network *n, const learning *l)
{
    static unsigned made;
    yardstick y = {0};
    ref_graph own = {0};
    const ref_graph *g = graph_of(kind);

    if (l->undirected || l->feature_type != NULL) {
        own = ref_graph_read(kind);
        ref_graph_round(&own, l->feature_type != NULL ? l->feature_type : "f32");
        if (l->undirected)
            ref_graph_undirect(&own);
        g = &own;
    }
    for (uint64_t seed = 1; !attempt(&y, g, n, l, seed); seed++) {
        if (seed == SEEDS)
            ref_die("no seed keeps the margin: %s on %s", n->name, kind);
        yardstick_free(&y);
    }
    if (g == &own)
        ref_graph_free(&own);
    y.init = strdup(text("out/start.%u.safetensors", made++));
    ref_tensors_write(y.init, &y.start, true);
    return y;
}

void yardstick_free(yardstick *y)
{
    if (y->init != NULL)
        unlink(y->init);
    free((char *)(uintptr_t)y->init);
    result_free(&y->end);
    ref_tensors_free(&y->start);
    ref_tensors_free(&y->gradient);
    *y = (yardstick){0};
}
