/* test_model_text.c - texts that are not models are refused at their line and column, whatever their bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "model/model.h"
#include "model/model_internal.h"
#include "support/support.h"

#define HEAD "layer t(h[a]) -> [b]:\n"

static gs_status open_bytes(const char *dir, const char *text, size_t bytes)
{
    const char *path = gs_test_path(dir, "m.gnn");
    gs_model *m = NULL;
    gs_status st;
    gs_test_write_file(path, text, bytes);
    st = gs_model_open(&m, path);
    gs_model_close(m);
    return st;
}

static void test_text__errors_name_line_and_column(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "m.gnn:1:1: the text has no layer"},
        {"# nothing\n\n", "m.gnn:3:1: the text has no layer"},
        {"model t", "m.gnn:1:1: expected 'layer', found 'model'"},
        {"layer t(h[a]) -> [b]\n  return h\n", "m.gnn:1:21: expected ':', found the end of the line"},
        {"layer t(h[a] -> [b]:\n", "m.gnn:1:14: expected ')', found '->'"},
        {"layer t.x(h[a]) -> [b]:\n", "m.gnn:1:7: the layer's name cannot have a dot: 't.x'"},
        {"layer t(sum[a]) -> [b]:\n return h", "the layer's input cannot be called 'sum'"},
        {HEAD, "m.gnn:2:1: expected 'param', 'NAME = ...' or 'return', found the end of the text"},
        {HEAD "  x = h\nlayer", "m.gnn:3:1: expected 'param'"},
        {HEAD "  return h + \n", "m.gnn:2:14: expected an expression, found the end of the line"},
        {HEAD "  return (h\n", "m.gnn:3:1: expected ')', found the end of the text"},
        {HEAD "  return h h\n", "m.gnn:2:12: expected the end of the line, found 'h'"},
        {HEAD "  return h @ (h)\n", "m.gnn:2:14: expected a parameter right of @, found '('"},
        {HEAD "  return h'\n", "m.gnn:2:11: expected the end of the line, found '''"},
        {HEAD "  return h ; 1\n", "m.gnn:2:12: unexpected character ';'"},
        {HEAD "  return h \x80\n", "m.gnn:2:12: unexpected byte 0x80"},
        {HEAD "  return 1e99 * h\n", "m.gnn:2:10: the number 1e99 is out of range"},
        {HEAD "  return 1.2.3\n", "m.gnn:2:10: malformed number"},
        {HEAD "  return 3x\n", "m.gnn:2:10: malformed number"},
        {HEAD "  return elu(h, x)\n", "m.gnn:2:17: expected a number, found 'x'"},
        {HEAD "  h = 1\n", "m.gnn:2:3: 'h' is the layer's input already"},
        {HEAD "  x = 1\n\n  x = 2\n", "m.gnn:4:3: 'x' is defined already, at line 2"},
        {HEAD "  param w[b, a], w[a]\n", "m.gnn:2:18: 'w' is defined already, at line 2"},
        {HEAD "  relu = 1\n", "m.gnn:2:3: 'relu' has a meaning of its own"},
        {HEAD "  param u.w[a]\n", "m.gnn:2:9: 'u.w' has a meaning of its own"},
        {HEAD "  param w[0]\n", "m.gnn:2:11: a width must be a whole number from 1 to 1000000"},
        {HEAD "  param w[1.5]\n", "m.gnn:2:11: a width must be"},
        {HEAD "  return pow(h, x)\n", "m.gnn:2:17: expected a number, found 'x'"},
        {HEAD "  return where(h, h)\n", "m.gnn:2:20: expected ',', found ')'"},
        {HEAD "  return where(h)\n", "m.gnn:2:17: expected ',', found ')'"},
        {HEAD "  return h < h < h\n", "m.gnn:2:16: comparisons do not follow one another"},
        {HEAD "  return h <\n", "m.gnn:2:13: expected an expression, found the end of the line"},
        {HEAD "  return h = h\n", "m.gnn:2:12: expected the end of the line, found '='"},
        {HEAD "  return h ! h\n", "m.gnn:2:12: unexpected character '!'"},
        {HEAD "  silu = h\n", "m.gnn:2:3: 'silu' has a meaning of its own"},
        {HEAD "  return sum(h, type, add)\n",
         "m.gnn:2:23: expected 'sum', 'mean', 'max', 'min', 'softmax' or 'concat', over types, found 'add'"},
        {HEAD "  return sum(h, 2)\n", "m.gnn:2:17: expected 'self' or 'type', found '2'"},
        {HEAD "  return batch_norm(h, 2)\n", "m.gnn:2:24: expected a name for its parameters, found '2'"},
        {HEAD "  return concat(h)\n", "m.gnn:2:18: expected ',' and what stands beside it, found ')'"},
        {HEAD "  return part(h, 1)\n", "m.gnn:2:19: expected ',', found ')'"},
        {HEAD "  return dot(h)\n", "m.gnn:2:15: expected ',' and what dot() multiplies by, found ')'"},
        {HEAD "  return lstm(u.h)\n", "m.gnn:2:18: expected ',' and lstm()'s recurrent weight, found ')'"},
        {HEAD "  return h @ w[e.kind]\n", "m.gnn:2:16: expected 'e.type', 'u.type' or 'v.type', found 'e.kind'"},
        {HEAD "  repeat 0:\n", "m.gnn:2:10: expected how often (a whole number from 1 to 1000), found '0'"},
        {HEAD "  repeat 2:\n  repeat 3:\n", "m.gnn:3:3: a repeat cannot stand inside a repeat"},
        {HEAD "  end\n", "m.gnn:2:3: there is no repeat to end"},
        {HEAD "  repeat 2:\n  return h\n", "m.gnn:3:3: the repeat of line 2 is not ended"},
        {HEAD "  repeat 2:\n    h = h\n  end\n", "m.gnn:3:5: 'h' is the layer's input already"},
        {"const a = x\n" HEAD, "m.gnn:1:11: expected a number, found 'x'"},
        {"const relu = 1\n" HEAD, "m.gnn:1:7: 'relu' has a meaning of its own"},
        {"const k = 1\nconst k = 2\n" HEAD, "m.gnn:2:7: 'k' is defined already, at line 1"},
        {"const k = 1\n" HEAD "  k = 2\n", "m.gnn:3:3: 'k' is a constant already, at line 1"},
        {"const k = 1.5\n" HEAD "  param w[k, a]\n", "m.gnn:3:11: a width must be a whole number"},
        {"const k = 0\n" HEAD "  repeat k:\n", "m.gnn:3:10: expected how often"},
        {"const k = 1\n", "m.gnn:2:1: the text has no layer"},
        {HEAD "  return b[e.kind]\n", "m.gnn:2:12: expected 'e.type', 'u.type' or 'v.type', found 'e.kind'"},
        {HEAD "  return h\nnetwork(x[a]) -> [b]:\n  return t(x)\n", "m.gnn:4:13: expected ',' and the layer's width"},
        {HEAD "  return h\nnetwork(x[a]) -> [b]:\n  return t(x, b)\n" HEAD, "m.gnn:5:1: expected the end of the text"},
        {HEAD "  softmax = 1\n", "m.gnn:2:3: 'softmax' has a meaning of its own"},
        {HEAD "  param w[a * b * a + b * 2 + a * b]\n", "m.gnn:2:35: a width has at most 6 numbers and names"},
        {HEAD "  param w[a, b, a, b]\n", "m.gnn:2:18: expected ']', found ','"},
        {HEAD "  x_x234567890123456789012345678901234567890 = 1\n", "m.gnn:2:3: a name may have 31 characters at most"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        gs_assert_fails(open_bytes(*state, cases[i].text, strlen(cases[i].text)), GS_EFORMAT, cases[i].part);
}

/* Of the parser's errors, and of those of shapes, which come when the text is long parsed. */
static void test_text__errors_show_the_line(void **state)
{
    static const char text[] = HEAD "  param w[b, a]\n\treturn h @ w\n";
    const gs_model_config config = {.layers = 1, .in_width = 5, .classes = 3};
    const char *const path = gs_test_path(*state, "m.gnn");
    gs_model *m = NULL;
    gs_ir *ir = NULL;

    gs_assert_fails(open_bytes(*state, HEAD "  return h h\n", strlen(HEAD) + 13), GS_EFORMAT, "m.gnn:2:12: expected");
    assert_string_equal(gs_last_error_place(), "      return h h\n               ^");
    gs_test_write_file(path, text, sizeof(text) - 1);
    gs_assert_ok(gs_model_open(&m, path));
    gs_assert_fails(gs_model_build(&ir, m, &config), GS_EFORMAT, "m.gnn:3:11: @: the left side has width 5");
    assert_string_equal(gs_last_error_place(), "    \treturn h @ w\n    \t         ^");
    gs_model_close(m);
}

/* What options write into a text is what gs_model_text() gives, and that text is its own. */
static void test_text__changes_are_in_the_text(void **state)
{
    const gs_model_changes none = {.layers = 3, .hidden = 8};
    gs_model_changes c = none;
    const char *const path = gs_test_path(*state, "m.gnn");
    gs_model *m = NULL, *again = NULL;

    c.set = "steps=3,alpha=-2.5e-1";
    gs_assert_ok(gs_model_open_changed(&m, "appnp", &c));
    assert_non_null(strstr(gs_model_text(m), "const alpha = -2.5e-1\nconst steps = 3\n"));
    gs_test_write_file(path, gs_model_text(m), strlen(gs_model_text(m)));
    gs_assert_ok(gs_model_open(&again, path));
    assert_true(gs_model_text_id(m) == gs_model_text_id(again));
    gs_model_close(m);
    gs_model_close(again);
    c.set = "alfa=1";
    gs_assert_fails(gs_model_open_changed(&m, "appnp", &c), GS_EINVAL,
                    ".set alfa: model appnp has no constant of this name (alpha, steps)");
    gs_assert_fails(gs_model_open_changed(&m, "gcn", &c), GS_EINVAL, "model gcn declares no constants");
    c.set = "alpha=1,alpha=2";
    gs_assert_fails(gs_model_open_changed(&m, "appnp", &c), GS_EINVAL, "gives alpha twice");
    c.set = "steps=0";
    gs_assert_fails(gs_model_open_changed(&m, "appnp", &c), GS_EFORMAT, "expected how often");
    for (size_t i = 0; i < 10; i++) {
        static const char *const bad[] = {"alpha", "alpha=", "=1", "alpha=nan", "alpha=0x1", "alpha=1,", "alpha=1e99",
                                          "alpha= 1", "alpha=1;", "alpha=+1"};
        c.set = bad[i];
        gs_assert_fails(gs_model_open_changed(&m, "appnp", &c), GS_EINVAL, ".set ");
    }
    c = none;
    c.norm = GS_NORM_BATCH;
    c.act_first = true;
    gs_assert_ok(gs_model_open_changed(&m, "gin", &c));
    assert_non_null(strstr(gs_model_text(m), "y = batch_norm(act(z @ nn.lins.0.weight' + nn.lins.0.bias), nn.norms.0"));
    assert_true(gs_model_has_network(m));
    gs_test_write_file(path, gs_model_text(m), strlen(gs_model_text(m)));
    gs_model_close(m);
    gs_assert_fails(gs_model_open_changed(&m, path, &c), GS_EINVAL, "has a network of its own, at line");
    c = none;
    c.residual = true;
    c.layers = 2;
    gs_assert_fails(gs_model_open_changed(&m, "gcn", &c), GS_EINVAL, ".residual: is between two hidden layers");
    c.residual = false;
    c.jk = GS_JK_CAT;
    gs_assert_fails(gs_model_open_changed(&m, "appnp", &c), GS_EINVAL, "only the last one looks at edges");
}

/* Shapes and names of what a network makes, as BasicGNN has them. */
static void test_text__a_network_names_its_parameters_as_pyg(void **state)
{
    static const char *const names[] = {"convs.0.lin.weight", "convs.2.bias", "norms.2.module.running_var",
                                        "jk.lstm.weight_hh_l0_reverse", "jk.att.bias", "lin.weight"};
    const gs_model_changes c = {.layers = 3, .hidden = 8, .norm = GS_NORM_BATCH, .jk = GS_JK_LSTM};
    const gs_model_config config = {.layers = 3, .in_width = 5, .hidden = 8, .classes = 3, .act = "relu"};
    gs_model *m = NULL;
    gs_ir *ir = NULL;

    (void)state;
    gs_assert_ok(gs_model_open_changed(&m, "gcn", &c));
    gs_assert_ok(gs_model_build(&ir, m, &config));
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        bool found = false;
        for (uint32_t i = 0; i < gs_ir_count(ir); i++)
            found |= gs_ir_node(ir, i)->op == GS_OP_PARAM && strcmp(gs_ir_node(ir, i)->name, names[k]) == 0;
        if (!found)
            fail_msg("no %s", names[k]);
    }
    gs_ir_free(ir);
    gs_model_close(m);
}

/* Where in the text it stands is not printed. */
static void drop_places(char *printed)
{
    char *to = printed;
    for (const char *c = printed; *c != 0; c++) {
        while (*c == '#' && c[strcspn(c, "\n")] == '\n')
            c += strcspn(c, "\n");
        *to++ = *c;
    }
    *to = 0;
}

/* What a text becomes, as printed. Free with free(). */
static char *built(const char *rest, bool weights, bool coefficients)
{
    const gs_model_config config = {.layers = 1, .in_width = 5, .classes = 3, .self_loops = true,
                                    .edge_weights = weights, .edge_coefficients = coefficients};
    char text[512], *printed = NULL;
    size_t bytes;
    gs_model *m = NULL;
    gs_ir *ir = NULL;
    FILE *const out = open_memstream(&printed, &bytes);

    snprintf(text, sizeof(text), "layer t(h[in]) -> [d]:\n    param a[1, in], w[d, in]\n    s = h @ a'\n"
             "    return %s @ w'\n", rest);
    gs_assert_ok(gs_model_open(&m, text));
    gs_assert_ok(gs_model_build(&ir, m, &config));
    gs_ir_print(ir, out);
    fclose(out);
    drop_places(printed);
    gs_ir_free(ir);
    gs_model_close(m);
    return printed;
}

/* Coefficients of edges stand where a text would have them itself: in the terms of sums, and in a softmax so that each
 * of its terms counts so often. What is largest is not more so. */
static void test_text__coefficients_are_factors_of_terms(void **state)
{
    static const char *const texts[][2] = {
        {"sum(u.h)", "sum(u.h * e.weight)"},
        {"mean(u.h)", "mean(u.h * e.weight)"},
        {"sum(softmax(u.s + v.s) * u.h)", "sum(softmax(u.s + v.s + log(e.weight)) * u.h)"},
        {"max(u.h)", "max(u.h)"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
        char *const got = built(texts[k][0], false, true), *const want = built(texts[k][1], true, false);
        assert_string_equal(got, want);
        free(got);
        free(want);
    }
}

static void test_text__layout_is_free(void **state)
{
    const char *text = "\r\n# c\xc3\xb6mment \x01\n  layer t ( h [ a ] ) -> [ b ] : # end\n"
                       "param w[b,\n   a], # one\n c[b]\nx=h@w'+c\n\n\n return (x +\n  -  .5e-1 * x\n)";
    gs_assert_ok(open_bytes(*state, text, strlen(text)));
}

static void test_text__depth_and_size_are_bounded(void **state)
{
    const size_t bytes = 200000;
    char *text = malloc(bytes + 64);
    const size_t head = (size_t)sprintf(text, HEAD "return ");
    memset(text + head, '(', bytes);
    gs_assert_fails(open_bytes(*state, text, head + bytes), GS_EFORMAT, "nested deeper than 100");
    memset(text + head, '-', bytes);
    gs_assert_fails(open_bytes(*state, text, head + bytes), GS_EFORMAT, "nested deeper than 100");
    for (size_t i = 0; i < bytes; i++)
        text[head + i] = i % 2 == 0 ? 'h' : '+';
    gs_assert_fails(open_bytes(*state, text, head + bytes), GS_EFORMAT, "more than 4096 operations");
    free(text);
    text = calloc(1, GS_TEXT_MAX_BYTES + 2);
    memset(text, '\n', GS_TEXT_MAX_BYTES + 1);
    gs_assert_fails(open_bytes(*state, text, GS_TEXT_MAX_BYTES + 1), GS_EFORMAT, "m.gnn");
    free(text);
}

static uint32_t draw(uint32_t i, uint32_t k)
{
    const uint32_t counter[4] = {i, k, 0, 0}, key[2] = {7, 7};
    uint32_t word[4];
    gs_philox4x32(word, counter, key);
    return word[0];
}

/* Bytes changed, taken away, doubled and moved in real texts: parse, and build what parses. */
static void test_text__mutated_texts_never_crash(void **state)
{
    const gs_model_config config = {.layers = 2, .in_width = 5, .hidden = 4, .classes = 3, .heads = 2, .edge_types = 3,
                                    .edge_weights = true, .act = "relu", .dropout = 0.5f, .training = true,
                                    .self_loops = true};
    uint32_t parsed = 0, built = 0;
    (void)state;
    for (uint32_t i = 0; i < 6000; i++) {
        const gs_zoo_text *z = &gs_model__zoo[i % 13];
        const uint32_t changes = 1 + draw(i, 0) % 4;
        size_t bytes = z->bytes;
        char *text = malloc(bytes + 64);
        gs_model *m = gs_calloc(1, sizeof(*m));
        gs_ir *ir = NULL;
        memcpy(text, z->text, bytes);
        for (uint32_t k = 0; k < changes; k++) {
            const size_t at = draw(i, 2 * k + 1) % bytes;
            const uint32_t what = draw(i, 2 * k + 2);
            if (what % 4 == 0) {
                text[at] = (char)(what >> 8);
            } else if (what % 4 == 1) {
                text[at] = "()[]@'+-*/=.,:#\n uvhe12"[(what >> 8) % 23];
            } else if (what % 4 == 2 && bytes > 8) {
                memmove(text + at, text + at + 1, bytes - at - 1);
                bytes--;
            } else {
                memmove(text + at + 1, text + at, bytes - at);
                bytes++;
            }
        }
        m->text = gs_text_new("mutated", text, bytes);
        m->path = gs_text_name(m->text);
        if (gs_model__parse(m) == GS_OK) {
            parsed++;
            if (gs_model_build(&ir, m, &config) == GS_OK &&
                gs_ir_add_loss(ir, GS_LOSS_XENT, GS_I32) == GS_OK) {
                built++;
                (void)gs_ir_differentiate(ir);
            }
        }
        gs_ir_free(ir);
        gs_model_close(m);
        free(text);
    }
    assert_true(parsed > 100 && built > 20 && parsed < 6000);
}

static void test_text__unknown_names_list_the_built_in_models(void **state)
{
    gs_model *m = NULL;
    (void)state;
    gs_assert_fails(gs_model_open(&m, "gatt"), GS_ENOTFOUND,
                    "gatt: neither a built-in model (gcn, sage, sage_max, sage_lstm, gat, gatv2, gin, appnp, ");
    gs_assert_fails(gs_model_open(&m, "/"), GS_ENOTFOUND, "/: is a folder");
    assert_null(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_text__errors_name_line_and_column, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_text__errors_show_the_line, gs_test_temp_setup, gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_text__changes_are_in_the_text, gs_test_temp_setup, gs_test_temp_teardown),
        cmocka_unit_test(test_text__a_network_names_its_parameters_as_pyg),
        cmocka_unit_test_setup_teardown(test_text__layout_is_free, gs_test_temp_setup, gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_text__depth_and_size_are_bounded, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test(test_text__coefficients_are_factors_of_terms),
        cmocka_unit_test(test_text__mutated_texts_never_crash),
        cmocka_unit_test(test_text__unknown_names_list_the_built_in_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
