/* test_model_build.c - networks have PyG's structure, names and shapes; type errors have a place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "support/support.h"

static const gs_model_config base = {.layers = 2, .in_width = 5, .hidden = 4, .classes = 3, .heads = 1, .edge_types = 2,
                                     .act = "relu", .dropout = 0.5f, .training = true, .self_loops = true};

static gs_status build_text(gs_ir **ir, const char *dir, const char *text, const gs_model_config *config)
{
    const char *path = gs_test_path(dir, "m.gnn");
    gs_model *m = NULL;
    gs_status st;
    gs_test_write_file(path, text, strlen(text));
    gs_assert_ok(gs_model_open(&m, path));
    st = gs_model_build(ir, m, config);
    gs_model_close(m);
    return st;
}

static void fails(const char *dir, const char *body, gs_status st, const char *part)
{
    char text[512];
    gs_ir *ir = NULL;
    snprintf(text, sizeof(text), "layer t(h[a]) -> [b]:\n  param w[b, a], c[b]\n  x = h @ w'\n%s\n", body);
    gs_assert_fails(build_text(&ir, dir, text, &base), st, part);
    assert_null(ir);
}

static void test_build__errors_name_line_and_column(void **state)
{
    const char *d = *state;
    fails(d, "  return y", GS_EFORMAT, "m.gnn:4:10: there is no 'y' here");
    fails(d, "  return sum(u.y)", GS_EFORMAT, "m.gnn:4:14: there is no 'y' here");
    fails(d, "  return sum(x)", GS_EFORMAT, "m.gnn:4:14: inside sum() say u.x (the in-neighbour's) or v.x");
    fails(d, "  return mean(in_degree)", GS_EFORMAT, "inside mean() say u.in_degree");
    fails(d, "  return sum(u.c)", GS_EFORMAT, "'c' is a parameter and belongs to no vertex: leave out 'u.'");
    fails(d, "  return sum(sum(u.x))", GS_EFORMAT, "m.gnn:4:14: sum() cannot stand inside sum()");
    fails(d, "  return relu(x, 2)", GS_EFORMAT, "relu() takes one argument");
    fails(d, "  return foo(x)", GS_EFORMAT, "m.gnn:4:10: unknown function 'foo' (sum, mean, max, min, softmax");
    fails(d, "  return foo(x)", GS_EFORMAT, "leaky_relu, elu, gelu, silu, abs, pow, where)");
    fails(d, "  return gelu(x, 2)", GS_EFORMAT, "m.gnn:4:10: gelu() takes one argument");
    fails(d, "  return pow(x)", GS_EFORMAT, "m.gnn:4:10: pow() takes a number as its second argument");
    fails(d, "  return where(x > 0, x, h)", GS_EFORMAT, "m.gnn:4:10: where: the two sides have widths 4 and 5");
    fails(d, "  return where(w, x, x)", GS_EFORMAT, "m.gnn:4:10: where: 'convs.0.w' is a matrix");
    fails(d, "  return x < h", GS_EFORMAT, "m.gnn:4:12: lt: the two sides have widths 4 and 5");
    fails(d, "  return dropout(x, 1)", GS_EFORMAT,
          "m.gnn:4:10: dropout(): the probability must be at least 0 and below 1");
    fails(d, "  e1 = dropout(u.x * v.x)\n  return sum(e1, self)", GS_EFORMAT,
          "m.gnn:5:10: what runs over the vertex itself is dropped inside the sum(..., self)");
    fails(d, "  return sum(batch_norm(u.x))", GS_EFORMAT, "m.gnn:4:14: batch_norm() needs a value of vertices");
    fails(d, "  y = batch_norm(x)\n  return batch_norm(y)", GS_EFORMAT,
          "m.gnn:5:10: a second batch_norm() with parameters 'norms.0.module.weight'");
    fails(d, "  repeat 2:\n  y = batch_norm(x, n)\n  end\n  return y", GS_EFORMAT,
          "m.gnn:5:7: a second batch_norm() with");
    fails(d, "  return concat(x, h)", GS_EFORMAT, "m.gnn:4:10: the layer returns width 9 instead of 4");
    fails(d, "  return concat(x, c)", GS_EFORMAT, "m.gnn:4:10: concat: values of vertices are expected");
    fails(d, "  return part(x, 3, 3)", GS_EFORMAT, "m.gnn:4:10: part(a, K, N) is the K-th of N parts");
    fails(d, "  return part(x)", GS_EFORMAT, "m.gnn:4:10: part(a, K, N) is the K-th of N parts");
    fails(d, "  return part(x, 0, 3)", GS_EFORMAT, "m.gnn:4:10: part(): 4 columns are no multiple of 3");
    fails(d, "  param k[types, bases], V[bases, a, b]\n  return sum(u.h @ V[e.type])", GS_EFORMAT,
          "m.gnn:5:18: 'V' has a matrix for each basis, not for each type: say W = c @ V with param c[types, bases]");
    fails(d, "  param k[a, types], V[bases, a, b]\n  W = k @ V\n  return sum(u.h @ W[e.type])", GS_EFORMAT,
          "m.gnn:5:9: @: left of convs.0.V[4, 5, 4] a parameter [types, 4] must stand");
    fails(d, "  param k[types, bases], V[bases, a, b]\n  W = k @ V\n  return h @ W", GS_EFORMAT,
          "m.gnn:6:12: 'W' has a matrix for each type: say W[e.type]");
    fails(d, "  return x @ h'", GS_EFORMAT, "m.gnn:4:12: right of @ a parameter must stand, and 'h' is none");
    fails(d, "  return x @ w'", GS_EFORMAT, "m.gnn:4:12: @: the left side has width 4, but convs.0.w' is [5, 4]");
    fails(d, "  return x @ c", GS_EFORMAT, "right of @ a parameter with two dimensions must stand");
    fails(d, "  return x + h", GS_EFORMAT, "m.gnn:4:12: add: the two sides have widths 4 and 5");
    fails(d, "  return x * w", GS_EFORMAT, "m.gnn:4:12: mul: 'convs.0.w' is a matrix");
    fails(d, "  return u.x", GS_EFORMAT, "m.gnn:4:10: a layer returns a value of vertices; this is one of edges");
    fails(d, "  e1 = u.x * v.x\n  return sum(u.e1)", GS_EFORMAT, "'e1' is a value of edges already: leave out 'u.'");
    fails(d, "  return h", GS_EFORMAT, "m.gnn:4:10: the layer returns width 5 instead of 4");
    fails(d, "  return sum(e.color * u.x)", GS_EFORMAT, "m.gnn:4:14: 'e.color': edges have e.weight, e.type and e.x");
    fails(d, "  return x + e.type", GS_EFORMAT, "m.gnn:4:14: 'e.type' can only stand as W[e.type] right of @, or as ");
    fails(d, "  return sum(u.h @ w[e.type])", GS_EFORMAT, "m.gnn:4:18: 'w' has no matrix for each type");
    fails(d, "  param t[types, a, b]\n  return sum(u.h @ t)", GS_EFORMAT,
          "'t' has a matrix for each type: say t[e.type]");
    fails(d, "  param t[types, a, b]\n  return sum(c @ t[e.type])", GS_EFORMAT,
          "m.gnn:5:16: left of @ t[e.type] a value of one end must stand, as u.x or v.x");
    fails(d, "  param t[types, b, a]\n  return sum(u.h @ t[e.type])", GS_EFORMAT, "@: the left side has width 5");
    fails(d, "  param t[types, a, b]\n  return sum(u.h @ t[e.type], self)", GS_EFORMAT,
          "W[e.type] means nothing for the vertex");
    fails(d, "  param t[2, a, b]\n  return x", GS_EFORMAT,
          "m.gnn:4:9: a parameter of three dimensions is [types, n, m], [bases, n, m], [vertex_types, n, m] or ");
    fails(d, "  return input.5 @ w'", GS_EFORMAT, "m.gnn:4:10: 'input.5' is not there yet in layer 0");
    fails(d, "  return input.x", GS_EFORMAT, "after 'input.' the number of a layer must stand");
    fails(d, "  return input(author) @ w'", GS_EFORMAT, "'author': this graph's vertices are of one type, without");
    fails(d, "  return x + type.author", GS_EFORMAT, "'type.author': this graph's vertices are of one type");
    fails(d, "  param t[vertex_types, a, b]\n  return h @ t[u.type]", GS_EFORMAT,
          "left of @ t[u.type] a value of the in-neighbour, as u.x, must stand");
    fails(d, "  param t[vertex_types, a, b]\n  return h @ t", GS_EFORMAT, "say t[v.type] or [u.type]");
    fails(d, "  return h @ w[v.type]", GS_EFORMAT, "'w' has no matrix for each type of vertices");
    fails(d, "  return x + c[v.type]", GS_EFORMAT, "'c[v.type]' needs a parameter [vertex_types] or [vertex_types, n]");
    fails(d, "  param r[a, b]\n  return lstm(v.x, r)", GS_EFORMAT,
          "m.gnn:5:10: lstm() runs over a value of the in-neighbour, as u.x");
    fails(d, "  param r[a, b]\n  return lstm(u.x * v.x, r)", GS_EFORMAT,
          "lstm() runs over a value of the in-neighbour");
    fails(d, "  param r[8, b]\n  return lstm(u.x, r)", GS_EFORMAT,
          "m.gnn:5:10: lstm(): for gates of width 4 the second argument is a parameter [4, 1]");
    fails(d, "  return lstm(u.x, c)", GS_EFORMAT, "the second argument is a parameter [4, 1]");
    fails(d, "  param r[4, 1]\n  return sum(lstm(u.x, r))", GS_EFORMAT, "m.gnn:5:14: lstm() cannot stand inside sum()");
    fails(d, "  param q[z]\n  return x", GS_EFORMAT, "m.gnn:4:11: 'z' is neither a number nor a width of this layer");
}

static uint32_t count_of(const gs_ir *ir, gs_op op)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < gs_ir_count(ir); i++)
        n += gs_ir_node(ir, i)->op == op;
    return n;
}

/* What a layer returns of edges the next one reads; the first reads features of edges, else their weights, else 1. */
static void test_build__layers_hand_values_of_edges_on(void **state)
{
    static const char *const text = "layer t(h[a], e.z[k]) -> [b], e.z[k2]:\n  param w[b, a], c[b, k]\n"
                                    "  z = u.h @ w' + e.z @ c'\n  return sum(sigmoid(z)), relu(z)\n";
    static const struct {
        uint32_t features;
        bool weights;
    } edges[] = {{7, true}, {0, true}, {0, false}};
    for (int i = 0; i < 3; i++) {
        gs_model_config c = base;
        gs_ir *ir = NULL;
        uint32_t widths[2], found = 0;
        c.training = false;
        c.edge_features = edges[i].features;
        c.edge_weights = edges[i].weights;
        gs_assert_ok(build_text(&ir, *state, text, &c));
        assert_int_equal(count_of(ir, GS_OP_EDGE_FEATURES), i == 0);
        assert_int_equal(count_of(ir, GS_OP_WEIGHT), i == 1);
        for (uint32_t k = 0; k < gs_ir_count(ir); k++)
            if (gs_ir_node(ir, k)->op == GS_OP_PARAM && strstr(gs_ir_node(ir, k)->name, ".c") != NULL)
                widths[found++] = gs_ir_node(ir, k)->width;
        assert_int_equal(found, 2);
        assert_int_equal(widths[0], i == 0 ? 7 : 1);
        assert_int_equal(widths[1], 4);
        gs_ir_free(ir);
    }
}

static void test_build__values_of_edges_that_fit_nothing_are_refused(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"layer t(h[a], e.x[k]) -> [b]:\n", "m.gnn:1:15: 'e.x' is what the graph has; choose another name"},
        {"layer t(h[a], z[k]) -> [b]:\n", "m.gnn:1:15: 'z': a value of edges is called e.NAME"},
        {"layer t(h[a], e.z[k], e.z[k]) -> [b]:\n", "'e.z' is there already"},
        {"layer t(h[a]) -> [b], e.z[3]:\n  param w[b, a]\n  return h @ w'\n",
         "m.gnn:3:16: the layer returns e.z, too: say return ..., and behind a comma what e.z is"},
        {"layer t(h[a]) -> [b], e.z[3]:\n  param w[b, a]\n  return h @ w', u.h\n",
         "m.gnn:3:18: the layer returns an e.z of width 5 instead of 3"},
        {"layer t(h[a]) -> [b], e.z[a]:\n  param w[b, a]\n  return h @ w', h\n",
         "m.gnn:3:18: 'e.z' is a value of edges, and this is one of vertices"},
        {"layer t(h[a]) -> [b], e.z[2 * q]:\n  param w[b, a]\n  return h @ w', u.h\n",
         "m.gnn:1:27: 'q' is neither a number nor a width of this layer"},
        {"layer t(h[a], e.z[5]) -> [b], e.z[b]:\n  param w[b, a]\n  return h @ w', u.h @ w'\n",
         "m.gnn:1:19: layer 0 of the network gets an e.z of width 1, the text says 5"},
        {"layer t(h[a]) -> [b]:\n  param w[b, a]\n  return h @ w', u.h\n", "m.gnn:3:16: expected the end of the line"},
        {"layer t(h[a]) -> [b]:\n  param w[b, a]\n  e.z = u.h\n  return h @ w'\n",
         "m.gnn:3:3: a variable's name cannot have a dot: 'e.z'"},
        {"layer t(h[a]) -> [b]:\n  param w[b, a]\n  return sum(e.z * (u.h @ w'))\nnetwork(x[a]) -> [b]:\n"
         "  e.z = u.x\n  return t(x, b)\n",
         "m.gnn:3:14: 'e.z': edges have e.weight, e.type and e.x"},
        {"layer t(h[a]) -> [b]:\n  param w[b, a]\n  return sum(u.h @ w')\nnetwork(x[a], e.z[k]) -> [b]:\n",
         "m.gnn:4:13: expected ')'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        gs_ir *ir = NULL;
        gs_model *m = NULL;
        const char *const path = gs_test_path(*state, "m.gnn");
        gs_status st;
        gs_test_write_file(path, cases[i].text, strlen(cases[i].text));
        st = gs_model_open(&m, path);
        if (st == GS_OK)
            st = gs_model_build(&ir, m, &base);
        gs_assert_fails(st, GS_EFORMAT, cases[i].part);
        assert_null(ir);
        gs_model_close(m);
    }
}

/* Loops are taken out by their number, so their weights must not matter. */
static void test_build__weights_of_self_loops_are_refused_where_loops_are_replaced(void **state)
{
    static const char *const bodies[] = {"sum(e.weight * u.x, self)", "max(e.weight + u.x, self)",
                                         "sum(softmax(e.weight * dot(u.x, v.x)) * u.x, self)"};
    gs_model_config c = base;
    char text[256];
    c.edge_weights = true;
    c.training = false;
    for (int i = 0; i < 3; i++)
        for (int loops = 0; loops < 2; loops++) {
            gs_ir *ir = NULL;
            bool found;
            c.self_loops = loops;
            snprintf(text, sizeof(text), "layer t(x[a]) -> [b]:\n  param w[b, a]\n  z = %s\n  return z @ w'\n",
                     bodies[i]);
            gs_assert_ok(build_text(&ir, *state, text, &c));
            found = false;
            for (uint32_t k = 0; k < gs_ir_count(ir); k++)
                found |= gs_ir_node(ir, k)->op == GS_OP_IS_LOOP;
            assert_int_equal(found, loops);
            gs_ir_free(ir);
        }
}

static void test_build__widths_that_a_text_fixes_are_checked(void **state)
{
    gs_ir *ir = NULL;
    gs_assert_fails(build_text(&ir, *state, "layer t(h[7]) -> [b]:\n  return h\n", &base), GS_EFORMAT,
                    "m.gnn:1:11: layer 0 of the network has input width 5, the text says 7");
    gs_assert_fails(build_text(&ir, *state, "layer t(h[a]) -> [a]:\n  return h\n", &base), GS_EFORMAT,
                    "m.gnn:1:19: layer 0 of the network has output width 4, the text says 5");
}

static void test_build__configs_that_cannot_be_are_refused(void **state)
{
    gs_model *m = NULL;
    gs_ir *ir = NULL;
    gs_model_config c = base;
    (void)state;
    gs_assert_ok(gs_model_open(&m, "gcn"));
    c.layers = 0;
    gs_assert_fails(gs_model_build(&ir, m, &c), GS_EINVAL, ".layers 0");
    c = base;
    c.act = "swish";
    gs_assert_fails(gs_model_build(&ir, m, &c), GS_EINVAL, ".activation swish: not one of relu");
    c = base;
    c.dropout = 1.0f;
    gs_assert_fails(gs_model_build(&ir, m, &c), GS_EINVAL, "must be at least 0 and below 1");
    c = base;
    c.in_width = 0;
    gs_assert_fails(gs_model_build(&ir, m, &c), GS_EINVAL, "no features");
    c = base;
    c.heads = 2;
    gs_assert_fails(gs_model_build(&ir, m, &c), GS_EINVAL, ".heads 2: model gcn has no attention heads");
    gs_model_close(m);
    m = NULL;
    gs_assert_ok(gs_model_open(&m, "gat"));
    c.hidden = 7;
    gs_assert_fails(gs_model_build(&ir, m, &c), GS_EFORMAT,
                    "gat:5:22: layer 0 of the network has output width 7, which is no multiple of 2");
    gs_model_close(m);
}

static uint32_t count(const gs_ir *ir, gs_op op)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < gs_ir_count(ir); i++)
        n += gs_ir_node(ir, i)->op == op;
    return n;
}

static void check_param(const gs_ir *ir, uint32_t k, const char *name, uint32_t dims, uint32_t rows, uint32_t cols)
{
    for (uint32_t i = 0; i < gs_ir_count(ir); i++) {
        const gs_node *n = gs_ir_node(ir, i);
        if (n->op != GS_OP_PARAM || k-- != 0)
            continue;
        assert_string_equal(n->name, name);
        assert_int_equal(n->dims, dims);
        assert_int_equal(n->rows, rows);
        assert_int_equal(n->width, cols);
        return;
    }
    fail_msg("no parameter %s", name);
}

static void test_build__parameters_are_pygs(void **state)
{
    gs_model *m = NULL;
    gs_ir *ir = NULL;
    (void)state;
    gs_assert_ok(gs_model_open(&m, "gcn"));
    gs_assert_ok(gs_model_build(&ir, m, &base));
    assert_int_equal(count(ir, GS_OP_PARAM), 4);
    check_param(ir, 0, "convs.0.lin.weight", 2, 4, 5);
    check_param(ir, 1, "convs.0.bias", 1, 1, 4);
    check_param(ir, 2, "convs.1.lin.weight", 2, 3, 4);
    check_param(ir, 3, "convs.1.bias", 1, 1, 3);
    gs_ir_free(ir);
    gs_model_close(m);

    gs_assert_ok(gs_model_open(&m, "sage"));
    gs_assert_ok(gs_model_build(&ir, m, &base));
    assert_int_equal(count(ir, GS_OP_PARAM), 6);
    check_param(ir, 0, "convs.0.lin_l.weight", 2, 4, 5);
    check_param(ir, 1, "convs.0.lin_l.bias", 1, 1, 4);
    check_param(ir, 2, "convs.0.lin_r.weight", 2, 4, 5);
    check_param(ir, 5, "convs.1.lin_r.weight", 2, 3, 4);
    gs_ir_free(ir);
    gs_model_close(m);
}

static void check_shape(const gs_ir *ir, const char *name, uint32_t rows, uint32_t cols, uint32_t a, uint32_t b,
                        uint32_t c)
{
    for (uint32_t i = 0; i < gs_ir_count(ir); i++) {
        const gs_node *n = gs_ir_node(ir, i);
        if (n->op != GS_OP_PARAM || strcmp(n->name, name) != 0)
            continue;
        assert_int_equal(n->rows, rows);
        assert_int_equal(n->width, cols);
        assert_int_equal(n->shape_dims, a == 0 ? 0 : 3);
        assert_int_equal(n->shape[0], a);
        assert_int_equal(n->shape[1], b);
        assert_int_equal(n->shape[2], c);
        assert_int_equal(n->fixed, strstr(name, "eps") != NULL);
        return;
    }
    fail_msg("no parameter %s", name);
}

static void test_build__attention_and_typed_parameters_are_pygs(void **state)
{
    static const char *const models[] = {"gat", "gatv2", "rgcn", "rgcn_bases", "gin"};
    (void)state;
    for (int k = 0; k < 5; k++) {
        gs_model_config c = base;
        gs_model *m = NULL;
        gs_ir *ir = NULL;
        c.bases = k == 3 ? 7 : 0;
        c.heads = k < 2 ? 2 : 1;
        gs_assert_ok(gs_model_open(&m, models[k]));
        gs_assert_ok(gs_model_build(&ir, m, &c));
        if (k == 0) {
            check_shape(ir, "convs.0.lin.weight", 4, 5, 0, 0, 0);
            check_shape(ir, "convs.0.att_src", 1, 4, 1, 2, 2);
            check_shape(ir, "convs.0.bias", 1, 4, 0, 0, 0);
            check_shape(ir, "convs.1.lin.weight", 6, 4, 0, 0, 0); /* 2 heads of 3, their mean */
            check_shape(ir, "convs.1.att_dst", 1, 6, 1, 2, 3);
            check_shape(ir, "convs.1.bias", 1, 3, 0, 0, 0);
        } else if (k == 1) {
            check_shape(ir, "convs.1.att", 1, 6, 1, 2, 3);
            check_shape(ir, "convs.1.lin_r.bias", 1, 6, 0, 0, 0);
        } else if (k == 2) {
            check_shape(ir, "convs.0.weight", 10, 4, 2, 5, 4);
            check_shape(ir, "convs.0.root", 5, 4, 0, 0, 0);
        } else if (k == 3) {
            check_shape(ir, "convs.0.weight", 35, 4, 7, 5, 4);
            check_shape(ir, "convs.0.comp", 2, 7, 0, 0, 0);
        } else {
            check_shape(ir, "convs.0.eps", 1, 1, 0, 0, 0);
            check_shape(ir, "convs.0.nn.lins.1.weight", 4, 4, 0, 0, 0);
        }
        gs_ir_free(ir);
        gs_model_close(m);
    }
}

static uint32_t site(const gs_ir *ir, uint32_t k)
{
    for (uint32_t i = 0; i < gs_ir_count(ir); i++)
        if (gs_ir_node(ir, i)->op == GS_OP_DROPOUT && k-- == 0)
            return gs_ir_node(ir, i)->site;
    fail_msg("no dropout %u", k);
    return 0;
}

static void test_build__dropout_sites_are_numbered_and_only_for_training(void **state)
{
    const char *text = "layer t(h[a]) -> [b]:\n  param w[b, a]\n  return sum(dropout(u.h)) @ w'\n";
    gs_model_config c = base;
    gs_ir *ir = NULL;
    c.layers = 3;
    c.input_dropout = 0.1f;
    gs_assert_ok(build_text(&ir, *state, text, &c));
    assert_int_equal(count(ir, GS_OP_DROPOUT), 6);
    assert_int_equal(site(ir, 0), 0); /* input */
    assert_int_equal(site(ir, 1), 3); /* inside layer 0 */
    assert_int_equal(site(ir, 2), 1); /* after layer 0 */
    assert_int_equal(site(ir, 3), 4);
    assert_int_equal(site(ir, 4), 2);
    assert_int_equal(site(ir, 5), 5);
    gs_ir_free(ir);
    c.training = false;
    gs_assert_ok(build_text(&ir, *state, text, &c));
    assert_int_equal(count(ir, GS_OP_DROPOUT), 0);
    gs_ir_free(ir);
}

static void test_build__values_of_edges_are_dropped_for_each_edge(void **state)
{
    const char *text = "layer t(h[a]) -> [b]:\n  param w[b, a]\n  p = dropout(softmax(u.h * v.h, self), 0.3)\n"
                       "  return (sum(p * u.h, self) + sum(dropout(e.weight) * u.h) + sum(dropout(2 * u.h))) @ w'\n";
    gs_model_config c = base;
    gs_ir *ir = NULL;
    c.layers = 1;
    gs_assert_ok(build_text(&ir, *state, text, &c));
    assert_int_equal(count(ir, GS_OP_EDGE_MASK), 3); /* p's, p's at the vertex itself, the weight's */
    assert_int_equal(count(ir, GS_OP_DROPOUT), 1);
    for (uint32_t i = 0; i < gs_ir_count(ir); i++) {
        const gs_node *n = gs_ir_node(ir, i);
        if (n->op != GS_OP_EDGE_MASK)
            continue;
        assert_int_equal(n->self, n->site == 1);
        assert_int_equal(n->width, n->site == 1 ? 5 : 1);
        assert_true(n->alpha == (n->site == 1 ? 0.3f : 0.5f));
    }
    gs_ir_free(ir);
    c.training = false;
    gs_assert_ok(build_text(&ir, *state, text, &c));
    assert_int_equal(count(ir, GS_OP_EDGE_MASK), 0);
    gs_ir_free(ir);
}

static void test_build__loops_fold_away_where_there_are_none(void **state)
{
    gs_model_config c = base;
    gs_model *m = NULL;
    gs_ir *ir = NULL;
    (void)state;
    c.self_loops = false;
    gs_assert_ok(gs_model_open(&m, "gcn"));
    gs_assert_ok(gs_model_build(&ir, m, &c));
    gs_assert_ok(gs_ir_normalise(ir));
    for (uint32_t i = 0; i < gs_ir_count(ir); i++) {
        const gs_node *n = gs_ir_node(ir, i);
        assert_string_not_equal(n->name, "loops");
        if (n->op == GS_OP_SUM_IN)
            assert_true(n->self);
    }
    assert_int_equal(count(ir, GS_OP_SUM_IN), 2);
    assert_int_equal(count(ir, GS_OP_RSQRT), 1); /* shared by both layers */
    gs_ir_free(ir);
    gs_model_close(m);
}

static void test_build__texts_of_several_layers_are_used_in_order(void **state)
{
    const char *text = "layer first(h[a]) -> [b]:\n  param w0[b, a]\n  return h @ w0'\n"
                       "layer middle(h[a]) -> [b]:\n  param w1[b, a]\n  return sum(u.h) @ w1'\n\n"
                       "layer last(h[a]) -> [b]:\n  param w2[b, a]\n  return mean(u.h) @ w2'\n";
    gs_model_config c = base;
    gs_ir *ir = NULL;
    c.layers = 4;
    gs_assert_ok(build_text(&ir, *state, text, &c));
    check_param(ir, 0, "convs.0.w0", 2, 4, 5);
    check_param(ir, 1, "convs.1.w1", 2, 4, 4);
    check_param(ir, 2, "convs.2.w1", 2, 4, 4);
    check_param(ir, 3, "convs.3.w2", 2, 3, 4);
    gs_ir_free(ir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_build__errors_name_line_and_column, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_build__layers_hand_values_of_edges_on, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_build__values_of_edges_that_fit_nothing_are_refused, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_build__weights_of_self_loops_are_refused_where_loops_are_replaced,
                                        gs_test_temp_setup, gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_build__widths_that_a_text_fixes_are_checked, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test(test_build__configs_that_cannot_be_are_refused),
        cmocka_unit_test(test_build__parameters_are_pygs),
        cmocka_unit_test(test_build__attention_and_typed_parameters_are_pygs),
        cmocka_unit_test_setup_teardown(test_build__dropout_sites_are_numbered_and_only_for_training,
                                        gs_test_temp_setup, gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_build__values_of_edges_are_dropped_for_each_edge, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test(test_build__loops_fold_away_where_there_are_none),
        cmocka_unit_test_setup_teardown(test_build__texts_of_several_layers_are_used_in_order, gs_test_temp_setup,
                                        gs_test_temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
