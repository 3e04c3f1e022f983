/* What parameters start as: the laws of the classes whose names the built-in models bear, and those that a text says.
 *
 * The laws are those of torch 2 and torch_geometric 2.8: torch.nn.Linear, LSTM and GRUCell (U(-a, a), a = 1 /
 * sqrt(fan)), inits.glorot (a = sqrt(6 / (n + m)) of the last two dimensions), inits.zeros, Embedding (N(0, 1)).
 * bench/peers/initial_weights.py compares the same with these libraries themselves. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

#include "base/hash.h"
#include "compile/compile.h"
#include "model/model.h"
#include "session/params.h"

#define IN 48u
#define HIDDEN 64u
#define CLASSES 24u
#define HEADS 4u
#define TYPES 3u
#define BASES 2u
#define LEAST_DRAWS 3000u /* of what is larger the first MOST_DRAWS */
#define MOST_DRAWS 6000u

typedef enum law_kind { GLOROT, FAN_IN, ZEROS, ONES } law_kind;

/* Fans by letter: i and o are the layer's widths, d is o / heads, h the heads, t the types, b the bases; H the width
 * of hidden layers, J that of two side by side, C the classes. */
typedef struct law {
    const char *model, *name; /* without "convs.I."; "*": of any model, by its end */
    law_kind kind;
    const char *fans;
} law;

static const law laws[] = {
    {"gcn", "lin.weight", GLOROT, "oi"}, /* GCNConv */
    {"gcn", "bias", ZEROS, ""},
    {"sage", "lin_l.weight", FAN_IN, "i"}, /* SAGEConv */
    {"sage", "lin_l.bias", FAN_IN, "i"},
    {"sage", "lin_r.weight", FAN_IN, "i"},
    {"sage_max", "lin_l.weight", FAN_IN, "i"},
    {"sage_max", "lin_l.bias", FAN_IN, "i"},
    {"sage_max", "lin_r.weight", FAN_IN, "i"},
    {"sage_lstm", "lin_l.weight", FAN_IN, "i"},
    {"sage_lstm", "lin_l.bias", FAN_IN, "i"},
    {"sage_lstm", "lin_r.weight", FAN_IN, "i"},
    {"sage_lstm", "aggr_module.lstm.weight_ih_l0", FAN_IN, "i"}, /* torch.nn.LSTM(i, i) */
    {"sage_lstm", "aggr_module.lstm.weight_hh_l0", FAN_IN, "i"},
    {"sage_lstm", "aggr_module.lstm.bias_ih_l0", FAN_IN, "i"},
    {"sage_lstm", "aggr_module.lstm.bias_hh_l0", FAN_IN, "i"},
    {"gat", "lin.weight", GLOROT, "Wi"}, /* GATConv */
    {"gat", "att_src", GLOROT, "hd"},
    {"gat", "att_dst", GLOROT, "hd"},
    {"gat", "bias", ZEROS, ""},
    {"gatv2", "lin_l.weight", GLOROT, "Wi"}, /* GATv2Conv: its linear maps have torch's biases */
    {"gatv2", "lin_l.bias", FAN_IN, "i"},
    {"gatv2", "lin_r.weight", GLOROT, "Wi"},
    {"gatv2", "lin_r.bias", FAN_IN, "i"},
    {"gatv2", "att", GLOROT, "hd"},
    {"gatv2", "bias", ZEROS, ""},
    {"gin", "eps", ZEROS, ""}, /* GINConv and MLP */
    {"gin", "nn.lins.0.weight", FAN_IN, "i"},
    {"gin", "nn.lins.0.bias", FAN_IN, "i"},
    {"gin", "nn.lins.1.weight", FAN_IN, "o"},
    {"gin", "nn.lins.1.bias", FAN_IN, "o"},
    {"appnp", "lin.weight", FAN_IN, "i"}, /* torch.nn.Linear */
    {"appnp", "lin.bias", FAN_IN, "i"},
    {"commnet", "W_H", GLOROT, "oi"}, /* of papers, not of PyG: as texts start that say nothing */
    {"commnet", "W_C", GLOROT, "oi"},
    {"ggcn", "W", GLOROT, "oi"},
    {"ggcn", "W_H", GLOROT, "ii"},
    {"ggcn", "W_C", GLOROT, "ii"},
    {"ggnn", "lin.weight", FAN_IN, "i"},
    {"ggnn", "weight", FAN_IN, "o"}, /* GatedGraphConv and GRUCell(o, o) */
    {"ggnn", "rnn.weight_ih", FAN_IN, "o"},
    {"ggnn", "rnn.weight_hh", FAN_IN, "o"},
    {"ggnn", "rnn.bias_ih", FAN_IN, "o"},
    {"ggnn", "rnn.bias_hh", FAN_IN, "o"},
    {"rgcn", "weight", GLOROT, "io"}, /* RGCNConv */
    {"rgcn", "root", GLOROT, "io"},
    {"rgcn", "bias", ZEROS, ""},
    {"rgcn_bases", "weight", GLOROT, "io"},
    {"rgcn_bases", "comp", GLOROT, "tb"},
    {"rgcn_bases", "root", GLOROT, "io"},
    {"rgcn_bases", "bias", ZEROS, ""},
    {"*", "module.weight", ONES, ""}, /* BatchNorm1d */
    {"*", "module.bias", ZEROS, ""},
    {"*", "module.running_mean", ZEROS, ""},
    {"*", "module.running_var", ONES, ""},
    {"*", "module.num_batches_tracked", ZEROS, ""},
};

static const char *const jk_words[] = {"none", "cat", "max", "lstm", "last"};

/* What stands around the layers, by its whole name. */
static const law around[] = {
    {"cat", "lin.weight", FAN_IN, "J"}, /* BasicGNN's linear map */
    {"cat", "lin.bias", FAN_IN, "J"},
    {"lstm", "lin.weight", FAN_IN, "H"},
    {"lstm", "lin.bias", FAN_IN, "H"},
    {"lstm", "jk.att.weight", FAN_IN, "J"}, /* Linear(2 h, 1), h = 2 layers * H / 2 */
    {"lstm", "jk.att.bias", FAN_IN, "J"},
    {"lstm", "jk.lstm.weight_ih_l0", FAN_IN, "H"}, /* torch.nn.LSTM(H, h) */
    {"lstm", "jk.lstm.weight_hh_l0", FAN_IN, "H"},
    {"lstm", "jk.lstm.bias_ih_l0", FAN_IN, "H"},
    {"lstm", "jk.lstm.bias_hh_l0", FAN_IN, "H"},
    {"lstm", "jk.lstm.weight_ih_l0_reverse", FAN_IN, "H"},
    {"lstm", "jk.lstm.weight_hh_l0_reverse", FAN_IN, "H"},
    {"lstm", "jk.lstm.bias_ih_l0_reverse", FAN_IN, "H"},
    {"lstm", "jk.lstm.bias_hh_l0_reverse", FAN_IN, "H"},
};

typedef struct network {
    const char *model;
    gs_model_changes changes;
    bool heads, bases;
} network;

static gs_program *program_of(const network *n)
{
    const gs_leaf leaves[] = {{"features", 1, GS_F32, IN}, {"in_degree", 2, GS_F32, 1}};
    const gs_model_config config = {.layers = 2, .in_width = IN, .hidden = HIDDEN, .classes = CLASSES, .act = "relu",
                                    .heads = n->heads ? HEADS : 1, .bases = n->bases ? BASES : 0,
                                    .edge_types = TYPES};
    const gs_compile_options options = {.pass = "predict", .leaf = leaves, .leaves = 2, .store_logits = true,
                                        .edges_per_vertex = 8};
    gs_program *const p = gs_program_new();
    gs_model *m;
    gs_ir *ir;

    assert_non_null(p);
    gs_assert_ok(gs_model_open_changed(&m, n->model, &n->changes));
    gs_assert_ok(gs_model_build(&ir, m, &config));
    gs_assert_ok(gs_compile(p, ir, &options));
    gs_model_close(m);
    return p;
}

/* ---- laws ---- */

static double fan(const network *n, char letter, uint32_t layer)
{
    const double in = layer == 0 ? IN : HIDDEN, heads = n->heads ? HEADS : 1;
    const bool last = layer == 1 && n->changes.jk == GS_JK_NONE;
    const double out = last ? CLASSES : HIDDEN;
    const double d = last ? out : out / heads; /* the last layer averages its heads */

    switch (letter) {
    case 'i': return in;
    case 'o': return out;
    case 'd': return d;
    case 'h': return heads;
    case 'W': return heads * d;
    case 't': return TYPES;
    case 'b': return BASES;
    case 'H': return HIDDEN;
    case 'J': return 2.0 * HIDDEN;
    default: fail_msg("no width '%c'", letter); return 0;
    }
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static const law *law_of(const network *n, const char *name, uint32_t *layer)
{
    const bool of_layer = sscanf(name, "convs.%u.", layer) == 1;
    const char *const own = of_layer ? name + strlen("convs.0.") : name;

    for (size_t i = 0; i < sizeof(laws) / sizeof(laws[0]); i++)
        if (laws[i].model[0] == '*' ? ends_with(name, laws[i].name)
                                    : of_layer && strcmp(laws[i].model, n->model) == 0 &&
                                          strcmp(laws[i].name, own) == 0)
            return &laws[i];
    for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++)
        if (n->changes.jk != GS_JK_NONE && strcmp(around[i].model, jk_words[n->changes.jk]) == 0 &&
            strcmp(around[i].name, name) == 0)
            return &around[i];
    fail_msg("nobody has said what %s of %s starts as", name, n->model);
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Mean 0 and this variance within 5 standard errors, the fourth moment being `fourth`; and Kolmogorov and Smirnov's
 * distance from `cumulative`, which is above 2.2 / sqrt(n) once in 8,000 times. Sorts. */
static void check_law(double *x, size_t n, double variance, double fourth, double (*cumulative)(double, double),
                      double parameter, const char *name)
{
    double sum = 0, square = 0, most = 0;

    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        square += x[i] * x[i];
    }
    const double count = (double)n, mean_error = 5 * sqrt(variance / count);
    const double variance_error = 5 * sqrt((fourth - variance * variance) / count);
    if (fabs(sum / count) > mean_error || fabs(square / count - variance) > variance_error)
        fail_msg("%s: mean %g, variance %g instead of 0 and %g (%zu draws)", name, sum / count, square / count,
                 variance, n);
    qsort(x, n, sizeof(*x), by_size);
    for (size_t i = 0; i < n; i++) {
        const double c = cumulative(x[i], parameter);
        most = fmax(most, fmax(c - (double)i / count, (double)(i + 1) / count - c));
    }
    if (most > 2.2 / sqrt(count))
        fail_msg("%s: %g away from its distribution (%zu draws)", name, most, n);
}

static double uniform_below(double x, double bound) { return fmin(fmax((x + bound) / (2 * bound), 0), 1); }

static double normal_below(double x, double deviation) { return 0.5 * erfc(-x / deviation / sqrt(2)); }

static void check_uniform(double *x, size_t n, double bound, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (fabs(x[i]) > bound * (1 + 1e-7))
            fail_msg("%s: %g is beyond %g", name, x[i], bound);
    check_law(x, n, bound * bound / 3, pow(bound, 4) / 5, uniform_below, bound, name);
}

/* Parameter i of the program, of as many seeds as make enough draws. */
static size_t draw(double **out, const gs_program *p, uint32_t i)
{
    const uint64_t all = gs_param_elements(&p->param[i]), seeds = (LEAST_DRAWS + all - 1) / all;
    const uint64_t each = all < MOST_DRAWS ? all : MOST_DRAWS;
    const gs_program alone = {.params = 1, .param = &p->param[i]};
    gs_params params;

    *out = malloc(each * seeds * sizeof(**out));
    assert_non_null(*out);
    gs_assert_ok(gs_params_alloc(&params, &alone, false, 0));
    for (uint64_t seed = 0; seed < seeds; seed++) {
        gs_params_init(&params, &alone, 1000 * i + seed);
        for (uint64_t k = 0; k < each; k++)
            (*out)[seed * each + k] = (double)params.value[0][k];
    }
    gs_params_free(&params);
    return each * seeds;
}

static void check_param(const network *n, const gs_program *p, uint32_t i)
{
    const char *const name = p->param[i].name;
    uint32_t layer = 0;
    const law *const of = law_of(n, name, &layer);
    double *x;
    const size_t count = draw(&x, p, i);

    if (of->kind == GLOROT)
        check_uniform(x, count, sqrt(6 / (fan(n, of->fans[0], layer) + fan(n, of->fans[1], layer))), name);
    else if (of->kind == FAN_IN)
        check_uniform(x, count, 1 / sqrt(fan(n, of->fans[0], layer)), name);
    else
        for (size_t k = 0; k < count; k++)
            if (x[k] != (of->kind == ONES ? 1 : 0))
                fail_msg("%s starts as %g", name, x[k]);
    free(x);
}

static void initial__built_in_models_start_as_their_classes(void **state)
{
    static const network networks[] = {
        {.model = "gcn"},
        {.model = "sage"},
        {.model = "sage_max"},
        {.model = "sage_lstm"},
        {.model = "gat", .heads = true},
        {.model = "gatv2", .heads = true},
        {.model = "gin"},
        {.model = "appnp"},
        {.model = "commnet"},
        {.model = "ggcn"},
        {.model = "ggnn"},
        {.model = "rgcn"},
        {.model = "rgcn_bases", .bases = true},
        {.model = "gin", .changes = {.norm = GS_NORM_BATCH, .layers = 2, .hidden = HIDDEN}},
        {.model = "sage", .changes = {.jk = GS_JK_CAT, .layers = 2, .hidden = HIDDEN}},
        {.model = "gcn", .changes = {.jk = GS_JK_LSTM, .layers = 2, .hidden = HIDDEN}},
    };

    (void)state;
    for (size_t k = 0; k < sizeof(networks) / sizeof(networks[0]); k++) {
        gs_program *const p = program_of(&networks[k]);
        assert_true(p->params > 1);
        for (uint32_t i = 0; i < p->params; i++)
            if (p->param[i].statistic == GS_STATISTIC_NONE)
                check_param(&networks[k], p, i);
        gs_program_free(p);
    }
}

/* ---- texts ---- */

static const char every_rule[] = "const small = 0.125\n"
                                 "layer one(h[in]) -> [out]:\n"
                                 "    param a[out, in], b[out] ~ uniform(small), c[out, in], d[out] ~ normal(2),\n"
                                 "          q[out, in] ~ constant(-3), f[out] ~ ones, g[out, in] ~ zeros\n"
                                 "    param k[out, in] ~ fan_in(4 * in), l[out, in] ~ glorot, m[out, in], n[out]\n"
                                 "    param r[vertices, 4] ~ normal(0.01), s[vertices, 4]\n"
                                 "    buffer t[1] ~ constant(5), w[1]\n"
                                 "    x = h @ a' + b + h @ c' + d + h @ q' + f + h @ g' + h @ k' + h @ l' + h @ m' +"
                                 " n\n"
                                 "    return sum(u.x) + dot(r, s) * (t + w)\n";

static void initial__texts_say_how_they_start(void **state)
{
    static const struct {
        const char *name;
        char kind; /* u: uniform, n: normal, f: the number itself */
        double number;
    } want[] = {
        {"a", 'u', 0.125}, {"b", 'u', 0.125}, {"c", 'n', 2}, {"d", 'n', 2},  {"q", 'f', -3}, {"f", 'f', 1},
        {"g", 'f', 0},     {"k", 'u', 0},     {"l", 'u', 1}, {"m", 'u', 1},  {"n", 'f', 0},  {"t", 'f', 5},
        {"w", 'f', 0},
    };
    const network n = {.model = every_rule};
    gs_program *const p = program_of(&n);
    double *x;

    (void)state;
    for (uint32_t i = 0; i < p->params; i++) {
        const size_t count = draw(&x, p, i);
        const char *const own = strrchr(p->param[i].name, '.') + 1;
        const double in = p->param[i].cols, out = p->param[i].rows;
        size_t k = 0;
        while (strcmp(want[k].name, own) != 0)
            assert_true(++k < sizeof(want) / sizeof(want[0]));
        double number = want[k].number;
        if (own[0] == 'k')
            number = 1 / sqrt(4 * in);
        if (own[0] == 'l' || own[0] == 'm')
            number = sqrt(6 / (in + out));
        if (want[k].kind == 'u')
            check_uniform(x, count, number, own);
        else if (want[k].kind == 'n')
            check_law(x, count, number * number, 3 * pow(number, 4), normal_below, number, own);
        for (size_t e = 0; want[k].kind == 'f' && e < count; e++)
            assert_true(x[e] == number);
        free(x);
    }
    for (uint32_t t = 0; t < p->tables; t++) {
        assert_int_equal(p->table[t].initial.rule, GS_INITIAL_NORMAL);
        gs_assert_close(p->table[t].initial.number, ends_with(p->table[t].name, "r") ? 0.01 : 1, 1e-7);
    }
    gs_program_free(p);
}

static void initial__rules_that_make_no_sense_are_refused(void **state)
{
    static const struct {
        const char *rule, *says;
    } wrong[] = {
        {"param b[out] ~ glorot", "m.gnn:2:20: 'b' is no matrix"},
        {"param b[out] ~ kaiming", "m.gnn:2:20: expected how it starts (glorot, fan_in(WIDTH), uniform(NUMBER)"},
        {"param b[out] ~ fan_in(7 * many)", "'many' is neither a number nor a width"},
        {"param b[out] ~ normal(-1)", "m.gnn:2:27: expected a number, found '-'"},
        {"param b[out] ~ uniform(low)", "is below 0, and what is drawn has no such bounds"},
        {"param b[out] ~ uniform", "expected '('"},
        {"buffer b[out] ~ ones, c[1] ~ normal(1)", "m.gnn:2:34: the buffer 'c' is not drawn"},
        {"param b[vertices, out] ~ glorot", "'b' is no matrix, and Glorot's rule is of matrices"},
    };
    char *const dir = gs_test_temp_dir();

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const gs_model_config config = {.layers = 1, .in_width = 4, .classes = 4};
        const char *const path = gs_test_path(dir, "m.gnn");
        char text[512];
        gs_model *m = NULL;
        gs_ir *ir = NULL;
        snprintf(text, sizeof(text), "%slayer one(h[in]) -> [in]:\n    %s\n    return h + b\n",
                 strstr(wrong[i].rule, "low") != NULL ? "const low = -0.5\n" : "", wrong[i].rule);
        for (char *o = text; (o = strstr(o, "out")) != NULL;)
            memcpy(o, " in", 3);
        gs_test_write_file(path, text, strlen(text));
        const gs_status st = gs_model_open(&m, path);
        gs_assert_fails(st != GS_OK ? st : gs_model_build(&ir, m, &config), GS_EFORMAT, wrong[i].says);
        gs_model_close(m);
    }
    gs_test_temp_remove(dir);
}

/* Texts as versions 0.1 and before had them, whose checksums stand in checkpoints: XXH3 of the bytes. */
static void initial__a_text_is_known_without_its_rules(void **state)
{
    static const struct {
        const char *name, *before;
    } texts[] = {
        {"sage", "# GraphSAGE with the mean (Hamilton et al., NeurIPS'17), as PyG's SAGEConv.\n"
                 "layer sage(h[in]) -> [out]:\n"
                 "    param lin_l.weight[out, in], lin_l.bias[out], lin_r.weight[out, in]\n"
                 "    return mean(u.h) @ lin_l.weight' + lin_l.bias + h @ lin_r.weight'\n"},
        {"gatv2", "# Graph attention that ranks by both ends (Brody et al., ICLR'22), as PyG's GAT with v2.\n"
                  "const slope = 0.2\n\n"
                  "layer gatv2(h[in]) -> [heads * d]:\n"
                  "    param att[1, heads, d], bias[heads * d]\n"
                  "    param lin_l.weight[heads * d, in], lin_l.bias[heads * d], lin_r.weight[heads * d, in], "
                  "lin_r.bias[heads * d]\n"
                  "    x = h @ lin_l.weight' + lin_l.bias\n"
                  "    y = h @ lin_r.weight' + lin_r.bias\n"
                  "    return sum(dropout(softmax(dot(leaky_relu(u.x + v.y, slope), att))) * u.x, self) + bias\n\n"
                  "layer last(h[in]) -> [d]:\n"
                  "    param att[1, heads, d], bias[d]\n"
                  "    param lin_l.weight[heads * d, in], lin_l.bias[heads * d], lin_r.weight[heads * d, in], "
                  "lin_r.bias[heads * d]\n"
                  "    x = h @ lin_l.weight' + lin_l.bias\n"
                  "    y = h @ lin_r.weight' + lin_r.bias\n"
                  "    return head_mean(sum(dropout(softmax(dot(leaky_relu(u.x + v.y, slope), att))) * u.x, self)) + "
                  "bias\n"},
    };
    uint64_t id, plain;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        gs_model *m;
        gs_assert_ok(gs_model_open(&m, texts[i].name));
        assert_true(gs_model_text_id(m) == gs_hash64(texts[i].before, strlen(texts[i].before)));
        gs_assert_ok(gs_model_id_of(&id, texts[i].before, strlen(texts[i].before)));
        assert_true(gs_model_text_id(m) == id);
        gs_model_close(m);
    }
    gs_assert_ok(gs_model_id_of(&id, "# ~ a\nparam a[1] ~ fan_in (2), b[3] ~ ones\n", 43));
    gs_assert_ok(gs_model_id_of(&plain, "# ~ a\nparam a[1], b[3]\n", 23));
    assert_true(id == plain);
    for (size_t cut = 0; cut <= 43; cut++) /* wherever a text ends */
        gs_assert_ok(gs_model_id_of(&id, "# ~ a\nparam a[1] ~ fan_in (2), b[3] ~ ones\n", cut));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initial__built_in_models_start_as_their_classes),
        cmocka_unit_test(initial__texts_say_how_they_start),
        cmocka_unit_test(initial__rules_that_make_no_sense_are_refused),
        cmocka_unit_test(initial__a_text_is_known_without_its_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
