/* reference.c - the reference as a command, for the end-to-end tests.
 *
 *   reference graph KIND OUT [--seed S]
 *   reference init INPUT OUT.safetensors [NETWORK]
 *   reference train INPUT --init W.safetensors [NETWORK] [--epochs 5] [--optimizer sgd]
 *             [--lr 0.1] [--weight-decay 0] [--feature-type f32] [--undirected]
 *             [--logits OUT.npy] [--save W.safetensors] [--gradient G.safetensors] [--losses OUT.txt]
 *             [--margin X]
 *             gradient: of the first epoch; losses: a line an epoch, before its update; exit status 4
 *             where a relu's input came nearer to 0 than X (see ref_network in reference.h)
 *   reference compare A B --tolerance T     two .npy or two .safetensors; 1 when they differ
 *   reference slope W0 W1 OUT --lr X        (W0 - W1) / X: what one SGD step tells of the gradient
 *   reference nudge W OUT --at NAME,INDEX,STEP
 *   reference value W --at NAME,INDEX
 *   reference steepest W                    "NAME,INDEX VALUE" of each tensor's largest element
 *
 * NETWORK: [--model gcn] [--layers 2] [--hidden 16] [--heads 1] [--bases 4] [--act relu] [--seed 0]; the models are in
 * layers.c
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

typedef struct options {
    const char *place[4]; /* arguments without a name */
    size_t places;
    const char *model, *optimizer, *init, *logits, *save, *gradient, *losses, *feature_type, *at, *act;
    double layers, hidden, heads, bases, epochs, lr, weight_decay, tolerance, seed, margin;
    bool undirected;
} options;

static options parse(int argc, char **argv)
{
    options o = {.model = "gcn", .optimizer = "sgd", .feature_type = "f32", .act = "relu", .layers = 2, .hidden = 16,
                 .heads = 1, .bases = 4, .epochs = 5, .lr = 0.1, .tolerance = 1e-4};
    const struct {
        const char *name;
        const char **text;
        double *number;
    } table[] = {
        {"--model", &o.model, NULL},
        {"--optimizer", &o.optimizer, NULL},
        {"--init", &o.init, NULL},
        {"--logits", &o.logits, NULL},
        {"--save", &o.save, NULL},
        {"--gradient", &o.gradient, NULL},
        {"--losses", &o.losses, NULL},
        {"--at", &o.at, NULL},
        {"--feature-type", &o.feature_type, NULL},
        {"--layers", NULL, &o.layers},
        {"--hidden", NULL, &o.hidden},
        {"--epochs", NULL, &o.epochs},
        {"--lr", NULL, &o.lr},
        {"--seed", NULL, &o.seed},
        {"--weight-decay", NULL, &o.weight_decay},
        {"--heads", NULL, &o.heads},
        {"--act", &o.act, NULL},
        {"--bases", NULL, &o.bases},
        {"--tolerance", NULL, &o.tolerance},
        {"--margin", NULL, &o.margin},
    };
    for (int i = 2; i < argc; i++) {
        bool known = strcmp(argv[i], "--undirected") == 0;
        o.undirected |= known;
        for (size_t k = 0; !known && k < sizeof(table) / sizeof(table[0]); k++) {
            if (strcmp(argv[i], table[k].name) != 0)
                continue;
            if (++i == argc)
                ref_die("%s needs a value", table[k].name);
            if (table[k].text != NULL)
                *table[k].text = argv[i];
            else
                *table[k].number = strtod(argv[i], NULL);
            known = true;
        }
        if (!known && (argv[i][0] == '-' || o.places == 4))
            ref_die("%s: unknown option", argv[i]);
        if (!known)
            o.place[o.places++] = argv[i];
    }
    return o;
}

static ref_network make_network(const options *o, const ref_graph *g)
{
    return ref_network_new(o->model, (size_t)o->layers, (size_t)o->hidden, (size_t)o->heads, (size_t)o->bases, o->act,
                           g);
}

static int run_init(const options *o)
{
    ref_graph g = ref_graph_read(o->place[0]);
    ref_network n = make_network(o, &g);
    ref_network_init(&n, (uint64_t)o->seed);
    ref_tensors_write(o->place[1], &n.weight, true);
    ref_network_free(&n);
    ref_graph_free(&g);
    return 0;
}

static void run_epochs(const options *o, ref_network *n, const ref_graph *g)
{
    ref_optimiser opt = ref_optimiser_new(o->optimizer, o->lr, o->weight_decay, n);
    FILE *losses = o->losses ? ref_create(o->losses) : NULL;
    for (size_t epoch = 0; epoch < (size_t)o->epochs; epoch++) {
        const double loss = ref_network_backward(n, g);
        if (losses != NULL)
            fprintf(losses, "%.12g\n", loss);
        if (epoch == 0 && o->gradient != NULL)
            ref_tensors_write(o->gradient, &n->gradient, false);
        ref_optimiser_step(&opt, n);
    }
    if (losses != NULL)
        ref_close(losses, o->losses);
    ref_optimiser_free(&opt);
}

static int run_train(const options *o)
{
    ref_graph g = ref_graph_read(o->place[0]);
    if (o->init == NULL)
        ref_die("train needs --init");
    ref_tensors init = ref_tensors_read(o->init);
    ref_network n = make_network(o, &g);
    ref_network_load(&n, &init);
    ref_graph_round(&g, o->feature_type);
    if (o->undirected)
        ref_graph_undirect(&g);
    run_epochs(o, &n, &g);
    if (o->save != NULL)
        ref_tensors_write(o->save, &n.weight, false);
    if (o->logits != NULL) {
        double *logits = ref_network_logits(&n, &g);
        ref_npy_write(o->logits, "f8", g.vertices, g.classes, logits);
        free(logits);
    }
    const int status = n.margin < o->margin ? 4 : 0;
    ref_tensors_free(&init);
    ref_network_free(&n);
    ref_graph_free(&g);
    return status;
}

static double *npy_values(const ref_npy *a)
{
    const size_t n = a->shape[0] * a->shape[1];
    double *v = ref_alloc(n, sizeof(double));
    for (size_t i = 0; i < n; i++)
        v[i] = ref_npy_real(a, i);
    return v;
}

static bool report(const char *what, const double d[2], double tolerance)
{
    const bool same = d[0] <= tolerance && d[1] <= tolerance;
    printf("%-24s max %.3g  frobenius %.3g  (tolerance %.3g)%s\n", what, d[0], d[1], tolerance,
           same ? "" : "  DIFFERS");
    return same;
}

static int compare_npy(const options *o)
{
    double d[2];
    ref_npy a = ref_npy_read(o->place[0]), b = ref_npy_read(o->place[1]);
    if (a.dims != b.dims || a.shape[0] != b.shape[0] || a.shape[1] != b.shape[1])
        ref_die("%s is [%zu, %zu], %s is [%zu, %zu]", o->place[0], a.shape[0], a.shape[1], o->place[1], b.shape[0],
                b.shape[1]);
    double *x = npy_values(&a), *y = npy_values(&b);
    ref_difference(d, x, y, a.shape[0] * a.shape[1]);
    free(x);
    free(y);
    free(a.bytes);
    free(b.bytes);
    return report("array", d, o->tolerance) ? 0 : 1;
}

static int compare_weights(const options *o)
{
    ref_tensors a = ref_tensors_read(o->place[0]), b = ref_tensors_read(o->place[1]);
    bool same = a.count == b.count;
    if (!same)
        printf("%zu tensors against %zu  DIFFERS\n", a.count, b.count);
    for (size_t i = 0; i < b.count; i++) {
        const ref_tensor *y = &b.tensor[i], *x = ref_tensors_find(&a, y->name);
        double d[2];
        if (x == NULL || x->dims != y->dims || memcmp(x->shape, y->shape, sizeof(x->shape)) != 0) {
            printf("%s: not in %s, or in another shape  DIFFERS\n", y->name, o->place[0]);
            same = false;
            continue;
        }
        ref_difference(d, x->value, y->value, ref_tensor_size(y));
        same &= report(y->name, d, o->tolerance);
    }
    ref_tensors_free(&a);
    ref_tensors_free(&b);
    return same ? 0 : 1;
}

static int run_compare(const options *o)
{
    const char *end = strrchr(o->place[0], '.');
    return end != NULL && strcmp(end, ".npy") == 0 ? compare_npy(o) : compare_weights(o);
}

static int run_slope(const options *o)
{
    ref_tensors a = ref_tensors_read(o->place[0]), b = ref_tensors_read(o->place[1]);
    for (size_t i = 0; i < a.count; i++) {
        const ref_tensor *y = ref_tensors_find(&b, a.tensor[i].name);
        if (y == NULL || ref_tensor_size(y) != ref_tensor_size(&a.tensor[i]))
            ref_die("%s: no %s in this shape", o->place[1], a.tensor[i].name);
        /* moved by passes, not by their gradient */
        const bool follows = strstr(y->name, ".running_") != NULL || y->count;
        for (size_t k = 0; k < ref_tensor_size(y); k++)
            a.tensor[i].value[k] = follows ? 0.0 : (a.tensor[i].value[k] - y->value[k]) / o->lr;
    }
    ref_tensors_write(o->place[2], &a, false);
    ref_tensors_free(&a);
    ref_tensors_free(&b);
    return 0;
}

/* "NAME,INDEX" or "NAME,INDEX,STEP". */
static double *element(const options *o, const ref_tensors *t, double *step)
{
    char name[64];
    size_t index;
    const int n = o->at ? sscanf(o->at, "%63[^,],%zu,%lf", name, &index, step) : 0;
    const ref_tensor *x = n >= 2 ? ref_tensors_find(t, name) : NULL;
    if (x == NULL || index >= ref_tensor_size(x))
        ref_die("--at %s: no such element", o->at ? o->at : "");
    return &x->value[index];
}

static int run_nudge(const options *o)
{
    double step = 0.0;
    ref_tensors t = ref_tensors_read(o->place[0]);
    *element(o, &t, &step) += step;
    ref_tensors_write(o->place[1], &t, true);
    ref_tensors_free(&t);
    return 0;
}

static int run_value(const options *o)
{
    double step = 0.0;
    ref_tensors t = ref_tensors_read(o->place[0]);
    printf("%.12g\n", *element(o, &t, &step));
    ref_tensors_free(&t);
    return 0;
}

static int run_steepest(const options *o)
{
    ref_tensors t = ref_tensors_read(o->place[0]);
    for (size_t i = 0; i < t.count; i++) {
        const double *v = t.tensor[i].value;
        size_t most = 0;
        for (size_t k = 1; k < ref_tensor_size(&t.tensor[i]); k++)
            most = fabs(v[k]) > fabs(v[most]) ? k : most;
        printf("%s,%zu %.12g\n", t.tensor[i].name, most, v[most]);
    }
    ref_tensors_free(&t);
    return 0;
}

static int run_graph(const options *o)
{
    ref_graph_make(o->place[0], o->place[1], (uint64_t)o->seed);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        size_t places;
        int (*run)(const options *o);
    } commands[] = {
        {"graph", 2, run_graph}, {"init", 2, run_init},   {"train", 1, run_train}, {"compare", 2, run_compare},
        {"slope", 3, run_slope}, {"nudge", 2, run_nudge}, {"value", 1, run_value},
        {"steepest", 1, run_steepest},
    };
    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        const options o = parse(argc, argv);
        if (o.places != commands[i].places)
            ref_die("%s takes %zu arguments", argv[1], commands[i].places);
        return commands[i].run(&o);
    }
    ref_die("no such command; see the head of tests/reference/reference.c");
}
