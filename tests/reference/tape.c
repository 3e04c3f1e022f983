/* tape.c - the record of what was computed, its leaves, and arithmetic element by element. */
#include "tape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

ref_tape ref_tape_new(void) { return (ref_tape){.margin = 1.0}; }

void ref_tape_free(ref_tape *t)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->node[i]->owns_x)
            free(t->node[i]->x);
        if (t->node[i]->owns_d)
            free(t->node[i]->d);
        free(t->node[i]);
    }
    free(t->node);
    *t = (ref_tape){0};
}

static ref_node *append(ref_tape *t, const ref_node *n)
{
    if (t->count == t->cap) {
        t->cap = 2 * t->cap + 64;
        t->node = realloc(t->node, t->cap * sizeof(*t->node));
        if (t->node == NULL)
            ref_die("out of memory");
    }
    ref_node *out = t->node[t->count++] = ref_alloc(1, sizeof(*out));
    *out = *n;
    return out;
}

ref_node *ref_tape_push(ref_tape *t, size_t rows, size_t cols, const ref_node *a, const ref_node *b,
                        void (*back)(const ref_node *n))
{
    const bool learned = a->d != NULL || (b != NULL && b->d != NULL);
    return append(t, &(ref_node){.rows = rows, .cols = cols, .x = ref_alloc(rows * cols, sizeof(double)),
                                 .d = learned ? ref_alloc(rows * cols, sizeof(double)) : NULL, .owns_x = true,
                                 .owns_d = learned, .a = a, .b = b, .back = back});
}

void ref_tape_near(ref_tape *t, double least, double most)
{
    if (most > 0.0)
        t->margin = fmin(t->margin, least / most);
}

void ref_tape_backward(ref_tape *t, ref_node *loss)
{
    if (loss->rows != 1 || loss->cols != 1 || loss->d == NULL)
        ref_die("a derivative is asked of what is no single number of parameters");
    loss->d[0] = 1.0;
    for (size_t i = t->count; i-- > 0;)
        if (t->node[i]->back != NULL && t->node[i]->d != NULL)
            t->node[i]->back(t->node[i]);
}

/* ---- leaves ---- */

ref_node *ref_constant(ref_tape *t, size_t rows, size_t cols, const double *x)
{
    return append(t, &(ref_node){.rows = rows, .cols = cols, .x = (double *)(uintptr_t)x});
}

ref_node *ref_variable(ref_tape *t, size_t rows, size_t cols, const double *x, double *gradient)
{
    return append(t, &(ref_node){.rows = rows, .cols = cols, .x = (double *)(uintptr_t)x, .d = gradient});
}

ref_node *ref_zeros(ref_tape *t, size_t rows, size_t cols)
{
    return append(t,
                  &(ref_node){.rows = rows, .cols = cols, .x = ref_alloc(rows * cols, sizeof(double)), .owns_x = true});
}

/* ---- two operands ---- */

/* Where element (r, c) of an arithmetic result with `cols` columns comes from. */
static size_t place(const ref_node *n, size_t r, size_t c, size_t cols)
{
    return (n->rows == 1 ? 0 : r) * n->cols + c / (cols / n->cols);
}

static size_t common(size_t a, size_t b, const char *what)
{
    const size_t most = a > b ? a : b, least = a > b ? b : a;
    if (least == 0 || most % least != 0)
        ref_die("%zu and %zu %s do not go together", a, b, what);
    return most;
}

static ref_node *two(ref_tape *t, const ref_node *a, const ref_node *b, void (*back)(const ref_node *n))
{
    if (a->rows != b->rows && a->rows != 1 && b->rows != 1)
        ref_die("%zu and %zu rows do not go together", a->rows, b->rows);
    return ref_tape_push(t, a->rows > b->rows ? a->rows : b->rows, common(a->cols, b->cols, "columns"), a, b, back);
}

/* For every element i of node n, with p and q its places in a and b. */
#define EACH(n, i, p, q)                                                                                           \
    for (size_t i = 0, p, q; i < (n)->rows * (n)->cols && (p = place((n)->a, i / (n)->cols, i % (n)->cols, (n)->cols), \
                                                          q = place((n)->b, i / (n)->cols, i % (n)->cols, (n)->cols), \
                                                          true); i++)

static void add_to(double *d, size_t at, double v)
{
    if (d != NULL)
        d[at] += v;
}

static void add_back(const ref_node *n)
{
    EACH(n, i, p, q) {
        add_to(n->a->d, p, n->d[i]);
        add_to(n->b->d, q, n->d[i]);
    }
}

static void sub_back(const ref_node *n)
{
    EACH(n, i, p, q) {
        add_to(n->a->d, p, n->d[i]);
        add_to(n->b->d, q, -n->d[i]);
    }
}

static void mul_back(const ref_node *n)
{
    EACH(n, i, p, q) {
        add_to(n->a->d, p, n->d[i] * n->b->x[q]);
        add_to(n->b->d, q, n->d[i] * n->a->x[p]);
    }
}

static void div_back(const ref_node *n)
{
    EACH(n, i, p, q) {
        add_to(n->a->d, p, n->d[i] / n->b->x[q]);
        add_to(n->b->d, q, -n->d[i] * n->x[i] / n->b->x[q]);
    }
}

ref_node *ref_add(ref_tape *t, const ref_node *a, const ref_node *b)
{
    ref_node *n = two(t, a, b, add_back);
    EACH(n, i, p, q) n->x[i] = a->x[p] + b->x[q];
    return n;
}

ref_node *ref_sub(ref_tape *t, const ref_node *a, const ref_node *b)
{
    ref_node *n = two(t, a, b, sub_back);
    EACH(n, i, p, q) n->x[i] = a->x[p] - b->x[q];
    return n;
}

ref_node *ref_mul(ref_tape *t, const ref_node *a, const ref_node *b)
{
    ref_node *n = two(t, a, b, mul_back);
    EACH(n, i, p, q) n->x[i] = a->x[p] * b->x[q];
    return n;
}

ref_node *ref_div(ref_tape *t, const ref_node *a, const ref_node *b)
{
    ref_node *n = two(t, a, b, div_back);
    EACH(n, i, p, q) n->x[i] = a->x[p] / b->x[q];
    return n;
}

/* ---- one operand ---- */

static void scale_back(const ref_node *n)
{
    for (size_t i = 0; i < n->rows * n->cols; i++)
        n->a->d[i] += n->number * n->d[i];
}

ref_node *ref_scale(ref_tape *t, double by, const ref_node *a)
{
    ref_node *n = ref_tape_push(t, a->rows, a->cols, a, NULL, scale_back);
    n->number = by;
    for (size_t i = 0; i < a->rows * a->cols; i++)
        n->x[i] = by * a->x[i];
    return n;
}

static void shift_back(const ref_node *n)
{
    for (size_t i = 0; i < n->rows * n->cols; i++)
        n->a->d[i] += n->d[i];
}

ref_node *ref_shift(ref_tape *t, double by, const ref_node *a)
{
    ref_node *n = ref_tape_push(t, a->rows, a->cols, a, NULL, shift_back);
    for (size_t i = 0; i < a->rows * a->cols; i++)
        n->x[i] = a->x[i] + by;
    return n;
}

/* ---- functions: value f(x, p) and slope df/dx from x and the value y ---- */

static double relu(double x, double p) { return (void)p, x > 0.0 ? x : 0.0; }
static double relu_slope(double x, double y, double p) { return (void)y, (void)p, x > 0.0 ? 1.0 : 0.0; }
static double leaky(double x, double p) { return x > 0.0 ? x : p * x; }
static double leaky_slope(double x, double y, double p) { return (void)y, x > 0.0 ? 1.0 : p; }
static double elu(double x, double p) { return x > 0.0 ? x : p * (exp(x) - 1.0); }
static double elu_slope(double x, double y, double p) { return (void)y, x > 0.0 ? 1.0 : p * exp(x); }
static double sigmoid(double x, double p) { return (void)p, 1.0 / (1.0 + exp(-x)); }
static double sigmoid_slope(double x, double y, double p) { return (void)x, (void)p, y * (1.0 - y); }
static double tangent(double x, double p) { return (void)p, tanh(x); }
static double tangent_slope(double x, double y, double p) { return (void)x, (void)p, 1.0 - y * y; }
static double power(double x, double p) { return (void)p, exp(x); }
static double power_slope(double x, double y, double p) { return (void)x, (void)p, y; }
static double logarithm(double x, double p) { return (void)p, log(x); }
static double logarithm_slope(double x, double y, double p) { return (void)y, (void)p, 1.0 / x; }
static double root(double x, double p) { return (void)p, sqrt(x); }
static double root_slope(double x, double y, double p) { return (void)x, (void)p, 0.5 / y; }
static double rroot(double x, double p) { return (void)p, 1.0 / sqrt(x); }
static double rroot_slope(double x, double y, double p) { return (void)p, -0.5 * y / x; }

static double normal(double x) { return 0.5 * erfc(-x / sqrt(2.0)); }
static double gelu(double x, double p) { return (void)p, x * normal(x); }
static double gelu_slope(double x, double y, double p)
{
    return (void)y, (void)p, normal(x) + x * exp(-0.5 * x * x) / sqrt(2.0 * acos(-1.0));
}
static double silu(double x, double p) { return x * sigmoid(x, p); }
static double silu_slope(double x, double y, double p) { return sigmoid(x, p) + y * (1.0 - sigmoid(x, p)); }
static double size(double x, double p) { return (void)p, fabs(x); }
static double size_slope(double x, double y, double p)
{
    return (void)y, (void)p, x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0;
}
static double to_the(double x, double p) { return pow(x, p); }
static double to_the_slope(double x, double y, double p) { return (void)y, p * pow(x, p - 1.0); }
static double above(double x, double p) { return (void)p, x > 0.0 ? 1.0 : 0.0; }
static double above_slope(double x, double y, double p) { return (void)x, (void)y, (void)p, 0.0; }

typedef struct function {
    const char *name;
    double (*value)(double x, double p);
    double (*slope)(double x, double y, double p);
    bool kink; /* at 0 */
} function;

static const function functions[] = {
    {"relu", relu, relu_slope, true},       {"leaky_relu", leaky, leaky_slope, true},
    {"elu", elu, elu_slope, false},         {"sigmoid", sigmoid, sigmoid_slope, false},
    {"tanh", tangent, tangent_slope, false}, {"exp", power, power_slope, false},
    {"log", logarithm, logarithm_slope, false}, {"sqrt", root, root_slope, false},
    {"rsqrt", rroot, rroot_slope, false},   {"gelu", gelu, gelu_slope, false},
    {"silu", silu, silu_slope, false},      {"abs", size, size_slope, true},
    {"pow", to_the, to_the_slope, false},   {"step", above, above_slope, true},
};

static void function_back(const ref_node *n)
{
    const function *const f = n->rule;
    for (size_t i = 0; i < n->rows * n->cols; i++)
        n->a->d[i] += n->d[i] * f->slope(n->a->x[i], n->x[i], n->number);
}

/* An exact 0 is one in any precision, so it is no danger. */
static void note_kink(ref_tape *t, const ref_node *a)
{
    double least = INFINITY, most = 0.0;
    for (size_t i = 0; i < a->rows * a->cols; i++) {
        most = fmax(most, fabs(a->x[i]));
        if (a->x[i] != 0.0)
            least = fmin(least, fabs(a->x[i]));
    }
    ref_tape_near(t, least, most);
}

ref_node *ref_function(ref_tape *t, const char *name, double number, const ref_node *a)
{
    const function *f = NULL;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (strcmp(functions[i].name, name) == 0)
            f = &functions[i];
    if (f == NULL)
        ref_die("no function \"%s\"", name);
    ref_node *n = ref_tape_push(t, a->rows, a->cols, a, NULL, function_back);
    n->rule = f;
    n->number = number;
    for (size_t i = 0; i < a->rows * a->cols; i++)
        n->x[i] = f->value(a->x[i], number);
    if (f->kink)
        note_kink(t, a);
    return n;
}
