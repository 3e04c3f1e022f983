/* test_ir_passes.c - folding, one-end work leaving the edges, and the derivative's shape. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "support/support.h"

typedef struct graph {
    gs_ir *ir;
    uint32_t x, y, s, n1, w, c; /* x, y [4]; s, in_degree [1]; w [3, 4]; c [4] */
} graph;

static graph graph_new(bool fold)
{
    graph g = {.ir = gs_ir_new("text.gnn", fold)};
    assert_non_null(g.ir);
    g.x = gs_ir_input(g.ir, "x", 4, GS_F32);
    g.y = gs_ir_input(g.ir, "y", 4, GS_F32);
    g.s = gs_ir_input(g.ir, "s", 1, GS_F32);
    g.n1 = gs_ir_input(g.ir, "in_degree", 1, GS_F32);
    g.w = gs_ir_param(g.ir, "w", 2, 3, 4);
    g.c = gs_ir_param(g.ir, "c", 1, 1, 4);
    return g;
}

static uint32_t bin(graph *g, gs_op op, uint32_t a, uint32_t b)
{
    return gs_ir_binary(g->ir, op, a, b);
}

static uint32_t num(graph *g, float v)
{
    return gs_ir_const(g->ir, v, 1);
}

static uint32_t un(graph *g, gs_op op, uint32_t a)
{
    return gs_ir_unary(g->ir, op, a, 0);
}

static uint32_t sum_of(graph *g, uint32_t edge_value)
{
    return gs_ir_sum(g->ir, GS_OP_SUM_IN, edge_value, false);
}

/* "mul(x, add(s, 1))": a node as an expression over leaves. */
static void say(const gs_ir *ir, uint32_t i, char *out, size_t cap)
{
    const gs_node *n = gs_ir_node(ir, i);
    size_t used;
    if (n->op == GS_OP_CONST)
        snprintf(out, cap, "%g", (double)n->alpha);
    else if (gs_op_classof(n->op) == GS_CLASS_LEAF)
        snprintf(out, cap, "%s", n->name[0] != 0 ? n->name : gs_op_name(n->op));
    else {
        snprintf(out, cap, "%s%s(", gs_op_name(n->op), n->self ? "_self" : "");
        const uint32_t inputs = gs_op_classof(n->op) == GS_CLASS_EDGE ? gs_node_inputs(n) : gs_op_inputs(n->op);
        for (uint32_t k = 0; k < inputs; k++) {
            used = strlen(out);
            if (k > 0)
                snprintf(out + used, cap - used, ", ");
            used = strlen(out);
            say(ir, n->in[k], out + used, cap - used);
        }
        used = strlen(out);
        snprintf(out + used, cap - used, ")");
    }
}

static void check(graph *g, uint32_t i, const char *want)
{
    char got[512];
    gs_assert_ok(gs_ir_status(g->ir));
    say(g->ir, i, got, sizeof(got));
    assert_string_equal(got, want);
}

static void test_fold__constants_and_identities(void **state)
{
    graph g = graph_new(true);
    (void)state;
    check(&g, bin(&g, GS_OP_ADD, num(&g, 2), num(&g, 3)), "5");
    check(&g, un(&g, GS_OP_RSQRT, num(&g, 4)), "0.5");
    check(&g, bin(&g, GS_OP_MUL, g.x, num(&g, 1)), "x");
    check(&g, bin(&g, GS_OP_MUL, num(&g, 1), g.x), "x");
    check(&g, bin(&g, GS_OP_ADD, g.x, num(&g, 0)), "x");
    check(&g, bin(&g, GS_OP_SUB, g.x, num(&g, 0)), "x");
    check(&g, bin(&g, GS_OP_SUB, num(&g, 0), g.x), "neg(x)");
    check(&g, bin(&g, GS_OP_SUB, g.x, g.x), "0");
    check(&g, bin(&g, GS_OP_MUL, g.x, num(&g, 0)), "0");
    check(&g, bin(&g, GS_OP_DIV, g.x, num(&g, 4)), "mul(x, 0.25)");
    check(&g, un(&g, GS_OP_NEG, un(&g, GS_OP_NEG, g.x)), "x");
    check(&g, bin(&g, GS_OP_ADD, g.x, un(&g, GS_OP_NEG, g.y)), "sub(x, y)");
    check(&g, gs_ir_dropout(g.ir, g.x, 0.0f, 0), "x");
    /* A wide zero keeps its width, so x + 0 with a scalar x is not x. */
    assert_int_equal(gs_ir_node(g.ir, bin(&g, GS_OP_ADD, g.s, gs_ir_const(g.ir, 0, 4)))->width, 4);
    gs_ir_free(g.ir);
}

static void test_fold__equal_nodes_are_one(void **state)
{
    graph g = graph_new(true);
    (void)state;
    assert_int_equal(bin(&g, GS_OP_ADD, g.x, g.y), bin(&g, GS_OP_ADD, g.y, g.x));
    assert_int_not_equal(bin(&g, GS_OP_SUB, g.x, g.y), bin(&g, GS_OP_SUB, g.y, g.x));
    assert_int_not_equal(gs_ir_dropout(g.ir, g.x, 0.5f, 0), gs_ir_dropout(g.ir, g.x, 0.5f, 1));
    assert_int_not_equal(gs_ir_unary(g.ir, GS_OP_ELU, g.x, 1.0f), gs_ir_unary(g.ir, GS_OP_ELU, g.x, 0.5f));
    gs_ir_free(g.ir);
}

/* A vertex's number times a row of it or of a parameter: it is not written once for each column before. */
static void test_fold__numbers_are_not_repeated_for_a_product(void **state)
{
    graph g = graph_new(true);
    const uint32_t repeated = gs_ir_resize(g.ir, GS_OP_EXPAND, g.s, 4);
    (void)state;
    assert_int_equal(bin(&g, GS_OP_MUL, repeated, g.x), bin(&g, GS_OP_MUL, g.s, g.x));
    assert_int_equal(bin(&g, GS_OP_MUL, g.c, repeated), bin(&g, GS_OP_MUL, g.c, g.s));
    assert_int_equal(gs_ir_node(g.ir, bin(&g, GS_OP_MUL, g.c, repeated))->width, 4);
    gs_ir_free(g.ir);
}

static void test_fold__sum_plus_own_row_is_one_sum(void **state)
{
    graph g = graph_new(true);
    const uint32_t in = gs_ir_sum(g.ir, GS_OP_SUM_IN, un(&g, GS_OP_SRC, g.x), false);
    const uint32_t out = gs_ir_sum(g.ir, GS_OP_SUM_OUT, g.x, false);
    const uint32_t sx = bin(&g, GS_OP_MUL, g.s, g.x), ss = bin(&g, GS_OP_MUL, g.s, in);
    (void)state;
    check(&g, bin(&g, GS_OP_ADD, in, g.x), "sum_in_self(src(x))");
    check(&g, bin(&g, GS_OP_ADD, g.x, in), "sum_in_self(src(x))");
    check(&g, bin(&g, GS_OP_ADD, g.x, out), "sum_out_self(x)");
    check(&g, bin(&g, GS_OP_ADD, in, g.y), "add(y, sum_in(src(x)))");
    check(&g, bin(&g, GS_OP_ADD, ss, sx), "mul(s, sum_in_self(src(x)))");
    check(&g, bin(&g, GS_OP_ADD, bin(&g, GS_OP_ADD, in, g.y), g.x), "add(y, sum_in_self(src(x)))");
    gs_ir_free(g.ir);
}

/* Normalises a graph whose root is sum_in(`edge`) and says the root. */
static void check_sum(graph *g, uint32_t edge, const char *want)
{
    uint32_t nodes;
    gs_ir_add_output(g->ir, GS_OUTPUT_LOGITS, sum_of(g, edge), GS_IR_NONE);
    gs_assert_ok(gs_ir_normalise(g->ir));
    check(g, gs_ir_root(g->ir), want);
    nodes = gs_ir_count(g->ir);
    gs_assert_ok(gs_ir_normalise(g->ir)); /* once more changes nothing but the numbering */
    assert_int_equal(gs_ir_count(g->ir), nodes);
    gs_ir_free(g->ir);
}

static void test_edges__work_of_one_end_leaves(void **state)
{
    graph g;
    (void)state;
    g = graph_new(false); /* f(x_u) */
    check_sum(&g, un(&g, GS_OP_EXP, bin(&g, GS_OP_MUL, un(&g, GS_OP_SRC, g.x), un(&g, GS_OP_SRC, g.s))),
              "sum_in(src(exp(mul(x, s))))");
    g = graph_new(false); /* s_v x_u */
    check_sum(&g, bin(&g, GS_OP_MUL, g.s, un(&g, GS_OP_SRC, g.x)), "mul(s, sum_in(src(x)))");
    g = graph_new(false); /* x_u + y_v */
    check_sum(&g, bin(&g, GS_OP_ADD, un(&g, GS_OP_SRC, g.x), g.y), "add(mul(y, in_degree), sum_in(src(x)))");
    g = graph_new(false); /* y_v alone; a number alone */
    check_sum(&g, g.y, "mul(y, in_degree)");
    g = graph_new(false);
    check_sum(&g, num(&g, 3), "mul(3, in_degree)");
    g = graph_new(false); /* 2 x_u: the sum is of x itself */
    check_sum(&g, bin(&g, GS_OP_MUL, num(&g, 2), un(&g, GS_OP_SRC, g.x)), "mul(2, sum_in(src(x)))");
    g = graph_new(false); /* (s_v x_u) @ w' */
    check_sum(&g, bin(&g, GS_OP_MATMUL_T, bin(&g, GS_OP_MUL, g.s, un(&g, GS_OP_SRC, g.x)), g.w),
              "mul(s, sum_in(src(matmul_t(x, w))))");
    g = graph_new(false); /* x_u / s_v: without edges 0, whatever s_v is */
    check_sum(&g, bin(&g, GS_OP_DIV, un(&g, GS_OP_SRC, g.x), g.s),
              "mul(div(1, add(sub(1, step(in_degree)), mul(s, step(in_degree)))), sum_in(src(x)))");
    g = graph_new(false); /* x_u / max(s_v, 1) */
    check_sum(&g, bin(&g, GS_OP_DIV, un(&g, GS_OP_SRC, g.x), bin(&g, GS_OP_MAX, g.s, num(&g, 1))),
              "mul(div(1, max(s, 1)), sum_in(src(x)))");
    g = graph_new(false); /* a parameter goes with the source */
    check_sum(&g, bin(&g, GS_OP_MUL, g.c, bin(&g, GS_OP_MUL, g.s, un(&g, GS_OP_SRC, g.x))),
              "mul(s, sum_in(src(mul(x, c))))");
}

static void test_edges__values_of_both_ends_stay(void **state)
{
    graph g = graph_new(false);
    uint32_t gate;
    (void)state;
    /* tanh(x_u + y_v) is of the edge; a factor of v leaves the sum */
    gate = un(&g, GS_OP_TANH, bin(&g, GS_OP_ADD, un(&g, GS_OP_SRC, g.x), g.y));
    assert_int_equal(gs_ir_node(g.ir, gate)->type, GS_TYPE_E);
    check_sum(&g, bin(&g, GS_OP_MUL, gate, bin(&g, GS_OP_MUL, g.s, un(&g, GS_OP_SRC, g.x))),
              "mul(s, sum_in(mul(src(x), tanh(add(y, src(x))))))");
    g = graph_new(false); /* only the part of both ends stays */
    gate = un(&g, GS_OP_TANH, bin(&g, GS_OP_ADD, un(&g, GS_OP_SRC, g.x), g.y));
    check_sum(&g, bin(&g, GS_OP_SUB, un(&g, GS_OP_SRC, g.x), gate), 
              "add(sum_in(src(x)), mul(-1, sum_in(tanh(add(y, src(x))))))");
    g = graph_new(false); /* one sum for all that stays */
    gate = un(&g, GS_OP_TANH, bin(&g, GS_OP_ADD, un(&g, GS_OP_SRC, g.x), g.y));
    check_sum(&g, bin(&g, GS_OP_ADD, gate, un(&g, GS_OP_EXP, gate)),
              "sum_in(add(tanh(add(y, src(x))), exp(tanh(add(y, src(x))))))");
    g = graph_new(false); /* a product after the sum */
    gate = un(&g, GS_OP_TANH, bin(&g, GS_OP_ADD, un(&g, GS_OP_SRC, g.x), g.y));
    check_sum(&g, bin(&g, GS_OP_MATMUL_T, gate, g.w), "matmul_t(sum_in(tanh(add(y, src(x)))), w)");
    g = graph_new(false); /* the edge's weight is a factor of both ends */
    check_sum(&g, bin(&g, GS_OP_MUL, gs_ir_weight(g.ir), un(&g, GS_OP_SRC, g.x)), "sum_in(mul(src(x), edge_weight))");
}

static uint32_t softmax(graph *g, uint32_t score)
{
    return un(g, GS_OP_EXP, bin(g, GS_OP_SUB, score, gs_ir_sum(g->ir, GS_OP_LSE_IN, score, false)));
}

static void test_edges__softmax_under_a_sum_is_attention(void **state)
{
    graph g = graph_new(false);
    uint32_t score = bin(&g, GS_OP_ADD, un(&g, GS_OP_SRC, g.s), g.n1);
    (void)state;
    check_sum(&g, bin(&g, GS_OP_MUL, softmax(&g, score), un(&g, GS_OP_SRC, g.x)),
              "attend(lse_in(add(in_degree, src(s))), src(x))");
    g = graph_new(false); /* 2 heads of 2: the scores are spread; y_v leaves */
    score = gs_ir_resize(g.ir, GS_OP_FOLD, bin(&g, GS_OP_MUL, un(&g, GS_OP_SRC, g.x), g.y), 2);
    check_sum(&g, bin(&g, GS_OP_MUL, gs_ir_resize(g.ir, GS_OP_EXPAND, softmax(&g, score), 4),
                      bin(&g, GS_OP_MUL, g.y, un(&g, GS_OP_SRC, g.x))),
              "mul(y, attend(lse_in(fold(mul(y, src(x)))), src(x)))");
    g = graph_new(false); /* twice the same attention is one */
    score = bin(&g, GS_OP_ADD, un(&g, GS_OP_SRC, g.s), g.n1);
    check_sum(&g, bin(&g, GS_OP_MUL, bin(&g, GS_OP_MUL, softmax(&g, score), num(&g, 3)), un(&g, GS_OP_SRC, g.x)),
              "mul(3, attend(lse_in(add(in_degree, src(s))), src(x)))");
}

/* The vertex's own share times a value, with a factor for each head and one for all, goes with the edges' shares; one
 * of another softmax stays a term. Lowered, both are row operators around the softmax of edges, whose normaliser,
 * which no gradient asks for here, is not made. */
static void test_edges__a_vertex_attends_to_itself(void **state)
{
    (void)state;
    for (int other = 0; other < 2; other++) {
        graph g = graph_new(false);
        const uint32_t x2 = gs_ir_part(g.ir, g.x, 0, 2), y2 = gs_ir_part(g.ir, g.y, 0, 2);
        const uint32_t score = bin(&g, GS_OP_ADD, un(&g, GS_OP_SRC, x2), y2), t = bin(&g, GS_OP_ADD, x2, y2);
        const uint32_t m = gs_ir_ternary(g.ir, GS_OP_LSE_IN, score, t, bin(&g, GS_OP_SUB, num(&g, 1), g.s));
        const uint32_t m2 = other ? gs_ir_ternary(g.ir, GS_OP_LSE_IN, score, t, num(&g, 1)) : m;
        const uint32_t p = un(&g, GS_OP_EXP, bin(&g, GS_OP_SUB, score, m));
        const uint32_t q = bin(&g, GS_OP_MUL, un(&g, GS_OP_EXP, bin(&g, GS_OP_SUB, t, m2)), un(&g, GS_OP_STEP, x2));
        const uint32_t all = sum_of(&g, bin(&g, GS_OP_MUL, gs_ir_resize(g.ir, GS_OP_EXPAND, p, 4),
                                            un(&g, GS_OP_SRC, g.x)));
        const uint32_t own = bin(&g, GS_OP_MUL, g.x, bin(&g, GS_OP_MUL, g.s, gs_ir_resize(g.ir, GS_OP_EXPAND, q, 4)));
        uint32_t attends = 0, terms = 0, shares = 0;
        gs_ir_add_output(g.ir, GS_OUTPUT_LOGITS, bin(&g, GS_OP_ADD, all, own), GS_IR_NONE);
        gs_assert_ok(gs_ir_normalise(g.ir));
        if (!other)
            check(&g, gs_ir_root(g.ir),
                  "attend(lse_in(add(part(y), src(part(x))), add(part(x), part(y)), sub(1, s)), src(x), "
                  "mul(expand(step(part(x))), mul(x, s)))");
        gs_assert_ok(gs_ir_lower(g.ir));
        for (uint32_t i = 0; i < gs_ir_count(g.ir); i++) {
            const gs_node *const n = gs_ir_node(g.ir, i);
            assert_true(n->op != GS_OP_ATTEND || gs_ir_node(g.ir, n->in[0])->type == GS_TYPE_E);
            assert_true((n->op != GS_OP_ATTEND && n->op != GS_OP_LSE_IN) || (n->self && n->in[2] == GS_IR_NONE));
            attends += n->op == GS_OP_ATTEND;
            terms += n->op == GS_OP_LOG;
            shares += n->op == GS_OP_DIV;
        }
        assert_int_equal(attends, 1);
        assert_int_equal(shares, 2); /* of all edges, and the vertex's own */
        assert_int_equal(terms, 0); /* the normaliser itself nothing asks for */
        gs_ir_free(g.ir);
    }
}

static void test_edges__typed_products_are_one_after_sums_by_type(void **state)
{
    const uint32_t shape[3] = {5, 4, 3};
    graph g = graph_new(false);
    gs_node n = {.op = GS_OP_TYPED};
    uint32_t w = gs_ir_param(g.ir, "typed", 2, 20, 3), in[3];
    (void)state;
    gs_ir_param_shape(g.ir, w, 3, shape, false);
    in[0] = un(&g, GS_OP_SRC, g.x);
    in[1] = w;
    check_sum(&g, gs_ir_like(g.ir, &n, in), "matmul(split_in(src(x)), typed)");
}

/* tanh(u.x + y) @ w' under an exp is made edge by edge; (u.x - y) @ w' under it at both ends, once a vertex each. */
static void test_edges__products_that_cannot_leave_are_dense(void **state)
{
    (void)state;
    for (int linear = 0; linear < 2; linear++) {
        graph g = graph_new(false);
        const uint32_t source = un(&g, GS_OP_SRC, g.x);
        const uint32_t both =
            linear ? bin(&g, GS_OP_SUB, source, g.y) : un(&g, GS_OP_TANH, bin(&g, GS_OP_ADD, source, g.y));
        const uint32_t product = bin(&g, GS_OP_MATMUL_T, both, g.w);
        uint32_t dense = 0, vertex = 0;
        gs_ir_add_output(g.ir, GS_OUTPUT_LOGITS, sum_of(&g, un(&g, GS_OP_EXP, product)), GS_IR_NONE);
        gs_assert_ok(gs_ir_normalise(g.ir));
        for (uint32_t i = 0; i < gs_ir_count(g.ir); i++) {
            dense += gs_ir_node(g.ir, i)->op == GS_OP_DENSE_T;
            vertex += gs_ir_node(g.ir, i)->op == GS_OP_MATMUL_T;
        }
        assert_int_equal(dense, linear ? 0 : 1);
        assert_int_equal(vertex, linear ? 2 : 0);
        gs_ir_free(g.ir);
    }
}

/* The same beside other columns, [y, u.x - y] @ [a, b]: an edge takes one row from another, y @ b less y @ a from
 * u.x @ b, where a vertex multiplies by a part as columns of 0 beside its own do. */
static void test_edges__products_of_one_end_are_added_there(void **state)
{
    graph g = graph_new(false);
    const uint32_t apart = bin(&g, GS_OP_SUB, un(&g, GS_OP_SRC, g.x), g.y);
    const uint32_t wide = gs_ir_param(g.ir, "wide", 2, 4, 8);
    (void)state;
    check_sum(&g, un(&g, GS_OP_EXP, bin(&g, GS_OP_MATMUL_T, bin(&g, GS_OP_CONCAT, g.y, apart), wide)),
              "sum_in(exp(sub(src(matmul_t(concat(expand(step(neg(in_degree))), x), wide)), "
              "sub(matmul_t(concat(expand(step(neg(in_degree))), y), wide), "
              "matmul_t(concat(y, expand(step(neg(in_degree)))), wide)))))");
}

static void test_errors__are_sticky_and_keep_the_first(void **state)
{
    graph g = graph_new(true);
    uint32_t bad;
    (void)state;
    gs_ir_at(g.ir, 3, 4);
    bad = bin(&g, GS_OP_MATMUL_T, g.s, g.w);
    assert_int_equal(bad, GS_IR_NONE);
    gs_ir_at(g.ir, 5, 6);
    assert_int_equal(bin(&g, GS_OP_ADD, bad, g.x), GS_IR_NONE);
    gs_assert_fails(gs_ir_status(g.ir), GS_EFORMAT, "text.gnn:3:4: @: the left side has width 1, but w' is [4, 3]");
    gs_assert_fails(gs_ir_normalise(g.ir), GS_EFORMAT, "text.gnn:3:4");
    gs_ir_free(g.ir);
}

static void test_grad__needs_a_loss_and_a_root(void **state)
{
    graph g = graph_new(false);
    (void)state;
    gs_assert_fails(gs_ir_add_loss(g.ir, GS_LOSS_XENT, GS_I32), GS_EINVAL, "the graph has no root");
    gs_assert_fails(gs_ir_differentiate(g.ir), GS_EINVAL, "there is no loss");
    gs_ir_free(g.ir);
}

static void test_grad__transposes_edges_and_stops_at_leaves(void **state)
{
    graph g = graph_new(false);
    const uint32_t h = un(&g, GS_OP_RELU, bin(&g, GS_OP_MATMUL_T, g.x, g.w)), b = gs_ir_param(g.ir, "b", 1, 1, 3);
    uint32_t outs = 0;
    (void)state;
    gs_ir_add_output(g.ir, GS_OUTPUT_LOGITS,
                     bin(&g, GS_OP_ADD, bin(&g, GS_OP_MUL, g.s, sum_of(&g, un(&g, GS_OP_SRC, h))), b), GS_IR_NONE);
    gs_assert_ok(gs_ir_add_loss(g.ir, GS_LOSS_XENT, GS_I32));
    gs_assert_ok(gs_ir_differentiate(g.ir));
    assert_true(gs_ir_differentiated(g.ir));
    for (uint32_t i = 0; i < gs_ir_outputs(g.ir); i++) {
        const gs_output *o = gs_ir_output(g.ir, i);
        if (o->kind != GS_OUTPUT_GRAD)
            continue;
        outs++;
        if (strcmp(gs_ir_node(g.ir, o->param)->name, "b") == 0)
            check(&g, o->node, "colsum(xent_grad(add(b, mul(s, sum_in(src(relu(matmul_t(x, w)))))), labels))");
        else
            check(&g, o->node,
                  "outer(mul(sum_out(mul(s, xent_grad(add(b, mul(s, sum_in(src(relu(matmul_t(x, w)))))), labels))), "
                  "step(relu(matmul_t(x, w)))), x)");
    }
    assert_int_equal(outs, 2); /* c, which nothing uses, has none */
    gs_ir_forward_only(g.ir);
    assert_int_equal(gs_ir_outputs(g.ir), 1);
    gs_ir_free(g.ir);
}

static void test_print__one_line_a_node_with_types_and_places(void **state)
{
    graph g = graph_new(true);
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    uint32_t y;
    (void)state;
    gs_ir_at(g.ir, 7, 9);
    y = sum_of(&g, un(&g, GS_OP_SRC, g.x));
    gs_ir_label(g.ir, y, "agg");
    gs_ir_add_output(g.ir, GS_OUTPUT_LOGITS, y, GS_IR_NONE);
    gs_ir_print(g.ir, f);
    fclose(f);
    assert_non_null(strstr(text, "ir text.gnn, 8 nodes\n"));
    assert_non_null(strstr(text, "  %4 = param : P[3, 4]  w\n"));
    assert_non_null(strstr(text, "  %6 = src %0 : S[4]  # 7:9\n"));
    assert_non_null(strstr(text, "  %7 = sum_in %6 : D[4]  agg  # 7:9\n"));
    assert_non_null(strstr(text, "  logits: %7\n"));
    free(text);
    gs_ir_free(g.ir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold__constants_and_identities),
        cmocka_unit_test(test_fold__equal_nodes_are_one),
        cmocka_unit_test(test_fold__numbers_are_not_repeated_for_a_product),
        cmocka_unit_test(test_fold__sum_plus_own_row_is_one_sum),
        cmocka_unit_test(test_edges__work_of_one_end_leaves),
        cmocka_unit_test(test_edges__values_of_both_ends_stay),
        cmocka_unit_test(test_edges__softmax_under_a_sum_is_attention),
        cmocka_unit_test(test_edges__a_vertex_attends_to_itself),
        cmocka_unit_test(test_edges__typed_products_are_one_after_sums_by_type),
        cmocka_unit_test(test_edges__products_that_cannot_leave_are_dense),
        cmocka_unit_test(test_edges__products_of_one_end_are_added_there),
        cmocka_unit_test(test_errors__are_sticky_and_keep_the_first),
        cmocka_unit_test(test_grad__needs_a_loss_and_a_root),
        cmocka_unit_test(test_grad__transposes_edges_and_stops_at_leaves),
        cmocka_unit_test(test_print__one_line_a_node_with_types_and_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
