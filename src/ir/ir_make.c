/* ir_make.c - new nodes: types inferred, folded, and made once. */
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "ir/ir_internal.h"

/* ---- what a node folds to ---------------------------------------------- */

/* Local simplification: what a new node equals, if something simpler.
 *
 * Each rule either returns an existing node or makes strictly simpler ones, so
 * that folding ends. Values may differ from the unfolded ones by rounding.
 */

static const gs_node *at(const gs_ir *ir, uint32_t i)
{
    return &ir->node[i];
}

static bool is_const(const gs_ir *ir, uint32_t i)
{
    return at(ir, i)->op == GS_OP_CONST;
}

static bool is_value(const gs_ir *ir, uint32_t i, float v)
{
    return is_const(ir, i) && at(ir, i)->alpha == v;
}

/* The input of a binary node that is not `i`; GS_IR_NONE where `i` is none of them. */
static uint32_t other_input(const gs_node *n, uint32_t i)
{
    return n->in[0] == i ? n->in[1] : n->in[1] == i ? n->in[0] : GS_IR_NONE;
}

/* The vertex value that an edge sum of rows adds up: through SRC for in-edges. */
static uint32_t summed(const gs_ir *ir, const gs_node *n)
{
    if (n->op == GS_OP_SUM_OUT && at(ir, n->in[0])->type == GS_TYPE_D)
        return n->in[0];
    if (n->op == GS_OP_SUM_IN && at(ir, n->in[0])->op == GS_OP_SRC)
        return at(ir, n->in[0])->in[0];
    return GS_IR_NONE;
}

/* sum(y) + y, also inside a longer sum (a few terms deep), is the sum with the vertex's own row. */
static uint32_t fold_self(gs_ir *ir, uint32_t a, uint32_t b, int depth)
{
    const gs_node n = *at(ir, a);

    if (n.op == GS_OP_ADD && depth < 4) {
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t s = fold_self(ir, n.in[k], b, depth + 1);
            if (s != GS_IR_NONE)
                return gs_ir_binary(ir, GS_OP_ADD, s, n.in[1 - k]);
        }
        return GS_IR_NONE;
    }
    if (n.self || summed(ir, &n) != b)
        return GS_IR_NONE;
    return gs_ir_sum(ir, n.op, n.in[0], true);
}

/* a s + b s = (a + b) s, and the same for a common divisor. */
static uint32_t fold_common_factor(gs_ir *ir, const gs_node *n)
{
    const gs_node a = *at(ir, n->in[0]), b = *at(ir, n->in[1]);

    if (a.op == GS_OP_MUL && b.op == GS_OP_MUL)
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t rest = other_input(&b, a.in[k]);
            if (rest != GS_IR_NONE && at(ir, rest)->width == at(ir, a.in[1 - k])->width)
                return gs_ir_binary(ir, GS_OP_MUL, gs_ir_binary(ir, GS_OP_ADD, a.in[1 - k], rest), a.in[k]);
        }
    if (a.op == GS_OP_DIV && b.op == GS_OP_DIV && a.in[1] == b.in[1] &&
        at(ir, a.in[0])->width == at(ir, b.in[0])->width)
        return gs_ir_binary(ir, GS_OP_DIV, gs_ir_binary(ir, GS_OP_ADD, a.in[0], b.in[0]), a.in[1]);
    return GS_IR_NONE;
}

static uint32_t fold_add(gs_ir *ir, const gs_node *n)
{
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t a = n->in[k], b = n->in[1 - k];
        uint32_t s;
        if (is_value(ir, a, 0.0f) && at(ir, b)->width == n->width)
            return b;
        if (at(ir, a)->op == GS_OP_NEG)
            return gs_ir_binary(ir, GS_OP_SUB, b, at(ir, a)->in[0]);
        s = fold_self(ir, a, b, 0);
        if (s != GS_IR_NONE)
            return s;
    }
    return fold_common_factor(ir, n);
}

static uint32_t fold_sub(gs_ir *ir, const gs_node *n)
{
    const uint32_t a = n->in[0], b = n->in[1];
    if (is_value(ir, b, 0.0f) && at(ir, a)->width == n->width)
        return a;
    if (is_value(ir, a, 0.0f) && at(ir, b)->width == n->width)
        return gs_ir_unary(ir, GS_OP_NEG, b, 0);
    if (at(ir, b)->op == GS_OP_NEG)
        return gs_ir_binary(ir, GS_OP_ADD, a, at(ir, b)->in[0]);
    if (a == b)
        return gs_ir_const(ir, 0.0f, n->width);
    return GS_IR_NONE;
}

/* (p q) b = p (q b) where q b is there already: scalars p, q, and a wide b. The
 * wide product is then an array that is stored once instead of two. Not on edges: they may gather the rows of b
 * for something else, too. */
static uint32_t fold_known_product(gs_ir *ir, uint32_t a, uint32_t b)
{
    const gs_node n = *at(ir, a);
    if (n.op != GS_OP_MUL || n.width != 1 || n.type == GS_TYPE_E || at(ir, b)->width == 1)
        return GS_IR_NONE;
    for (uint32_t k = 0; k < 2; k++) {
        gs_node product = gs_ir__blank(GS_OP_MUL, GS_MIN(n.in[k], b), GS_MAX(n.in[k], b));
        uint32_t found;
        product.width = at(ir, b)->width;
        found = gs_ir__find(ir, &product);
        if (found != GS_IR_NONE)
            return gs_ir_binary(ir, GS_OP_MUL, n.in[1 - k], found);
    }
    return GS_IR_NONE;
}

/* A number for each head times another one: multiplied before each is repeated for its head. */
static uint32_t fold_spread_product(gs_ir *ir, const gs_node *n)
{
    const gs_node a = *at(ir, n->in[0]), b = *at(ir, n->in[1]);
    if (a.op != GS_OP_EXPAND || b.op != GS_OP_EXPAND || at(ir, a.in[0])->width != at(ir, b.in[0])->width)
        return GS_IR_NONE;
    return gs_ir_resize(ir, GS_OP_EXPAND, gs_ir_binary(ir, GS_OP_MUL, a.in[0], b.in[0]), n->width);
}

/* A vertex's number that is repeated for columns and multiplied by as many: it is multiplied as it is. */
static uint32_t fold_repeated(gs_ir *ir, const gs_node *n, uint32_t a, uint32_t b)
{
    const gs_node e = *at(ir, a);
    if (e.op != GS_OP_EXPAND || n->type == GS_TYPE_E || at(ir, e.in[0])->width != 1 ||
        at(ir, e.in[0])->type == GS_TYPE_P || at(ir, b)->width != n->width || is_const(ir, b))
        return GS_IR_NONE;
    return gs_ir_binary(ir, GS_OP_MUL, e.in[0], b);
}

static uint32_t fold_mul(gs_ir *ir, const gs_node *n)
{
    const uint32_t narrow = fold_spread_product(ir, n);
    if (narrow != GS_IR_NONE)
        return narrow;
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t a = n->in[k], b = n->in[1 - k];
        const gs_node m = *at(ir, b);
        uint32_t known;
        if (is_value(ir, a, 0.0f))
            return gs_ir_const(ir, 0.0f, n->width);
        if (is_value(ir, a, 1.0f) && m.width == n->width)
            return b;
        if (is_const(ir, a) && m.op == GS_OP_MUL)
            for (uint32_t j = 0; j < 2; j++)
                if (is_const(ir, m.in[j]))
                    return gs_ir_binary(ir, GS_OP_MUL, m.in[1 - j], gs_ir_binary(ir, GS_OP_MUL, a, m.in[j]));
        known = fold_known_product(ir, a, b);
        if (known == GS_IR_NONE)
            known = fold_repeated(ir, n, a, b);
        if (known != GS_IR_NONE)
            return known;
    }
    return GS_IR_NONE;
}

static uint32_t fold_div(gs_ir *ir, const gs_node *n)
{
    const uint32_t a = n->in[0], b = n->in[1];
    if (is_const(ir, b) && at(ir, b)->alpha != 0.0f)
        return gs_ir_binary(ir, GS_OP_MUL, a, gs_ir_const(ir, 1.0f / at(ir, b)->alpha, at(ir, b)->width));
    if (is_value(ir, a, 0.0f))
        return gs_ir_const(ir, 0.0f, n->width);
    return GS_IR_NONE;
}

static uint32_t fold_neg(gs_ir *ir, const gs_node *n)
{
    const gs_node a = *at(ir, n->in[0]);
    if (a.op == GS_OP_NEG)
        return a.in[0];
    if (a.op == GS_OP_SUB)
        return gs_ir_binary(ir, GS_OP_SUB, a.in[1], a.in[0]);
    return GS_IR_NONE;
}

/* One number of some columns, or several. */
static bool resizes(gs_op op)
{
    const gs_op_form form = gs_op_form_of(op);
    return form == GS_FORM_ROW || form == GS_FORM_FEWER || form == GS_FORM_MORE;
}

/* Elements of the input that one element of the result adds up. */
static uint32_t added(const gs_node *n, const gs_node *a)
{
    const bool adds = n->op == GS_OP_ROWSUM || gs_op_form_of(n->op) == GS_FORM_FEWER;
    return adds ? a->width / n->width : 1;
}

static uint32_t fold_constants(gs_ir *ir, const gs_node *n)
{
    const gs_node *a = at(ir, n->in[0]);
    float x[GS_IR_INPUTS] = {0};
    double v;

    for (uint32_t k = 0; k < gs_op_inputs(n->op); k++) {
        if (!is_const(ir, n->in[k]))
            return GS_IR_NONE;
        x[k] = at(ir, n->in[k])->alpha;
    }
    if (gs_op_is_each(n->op))
        v = gs_op_value(n->op, x[0], x[1], x[2], n->alpha);
    else if (resizes(n->op))
        v = (double)x[0] * added(n, a);
    else
        return GS_IR_NONE;
    if (!isfinite((float)v))
        return gs_ir_error(ir, GS_EFORMAT, "%s of constants is not a finite number", gs_op_name(n->op));
    return gs_ir_const(ir, (float)v, n->width);
}

/* A number has no width in a program: where a wide constant alone makes a result wide, a scalar is
 * computed and spread. */
static uint32_t fold_wide_constant(gs_ir *ir, const gs_node *n)
{
    gs_node scalar = *n;
    bool wide = false;
    for (uint32_t k = 0; k < gs_op_inputs(n->op); k++) {
        const gs_node c = *at(ir, n->in[k]);
        if (!is_const(ir, n->in[k]) && c.width > 1)
            return GS_IR_NONE;
        if (c.width > 1) {
            wide = true;
            scalar.in[k] = gs_ir_const(ir, c.alpha, 1);
        }
    }
    return wide ? gs_ir_resize(ir, GS_OP_EXPAND, gs_ir__make(ir, scalar), n->width) : GS_IR_NONE;
}

/* (x + d1) - d2 = x + (d1 - d2), and with other signs: what is of one end is added there, and one array less is read.
 * But a score less its LSE_IN stays, by which a softmax is known (ir_edges.c). */
static uint32_t fold_ends(gs_ir *ir, const gs_node *n)
{
    if (n->type != GS_TYPE_E || (n->op != GS_OP_ADD && n->op != GS_OP_SUB))
        return GS_IR_NONE;
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t d2 = n->in[1 - k];
        const gs_node sum = *at(ir, n->in[k]);
        const gs_graph_type end = at(ir, d2)->type;
        const bool less = n->op == GS_OP_SUB && k == 1, less2 = n->op == GS_OP_SUB && k == 0; /* the sum; d2 */
        if (sum.type != GS_TYPE_E || (end != GS_TYPE_S && end != GS_TYPE_D) || at(ir, d2)->op == GS_OP_LSE_IN ||
            (sum.op != GS_OP_ADD && sum.op != GS_OP_SUB))
            continue;
        for (uint32_t j = 0; j < 2; j++) {
            const uint32_t x = sum.in[j], d1 = sum.in[1 - j];
            const bool less_x = less != (sum.op == GS_OP_SUB && j == 1);
            const bool less1 = less != (sum.op == GS_OP_SUB && j == 0);
            if (at(ir, d1)->type != end || (less_x && less1))
                continue;
            const uint32_t d = gs_ir_binary(ir, less1 == less2 ? GS_OP_ADD : GS_OP_SUB, d1, d2);
            return less_x ? gs_ir_binary(ir, GS_OP_SUB, d, x) : gs_ir_binary(ir, less1 ? GS_OP_SUB : GS_OP_ADD, x, d);
        }
    }
    return GS_IR_NONE;
}

/* What is left of the product `value` without a factor that has one number for each of `groups`
 * groups of columns, which *factor gets; GS_IR_NONE where there is none. */
static uint32_t without_group_factor(gs_ir *ir, uint32_t value, uint32_t groups, uint32_t *factor, int depth)
{
    const gs_node n = *at(ir, value);
    if (n.op != GS_OP_MUL || depth == 4)
        return GS_IR_NONE;
    for (uint32_t k = 0; k < 2; k++) {
        const gs_node f = *at(ir, n.in[k]);
        const uint32_t rest = n.in[1 - k];
        if (f.op == GS_OP_EXPAND && at(ir, f.in[0])->width == groups && at(ir, rest)->width == n.width) {
            *factor = f.in[0];
            return rest;
        }
        if (f.width == 1 && groups == 1 && at(ir, rest)->width == n.width && n.width > 1) {
            *factor = n.in[k];
            return rest;
        }
    }
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t rest = without_group_factor(ir, n.in[k], groups, factor, depth + 1);
        if (rest != GS_IR_NONE)
            return gs_ir_binary(ir, GS_OP_MUL, rest, n.in[1 - k]);
    }
    return GS_IR_NONE;
}

/* The sum within each head of what has a factor for the head. */
static uint32_t fold_fold(gs_ir *ir, const gs_node *n)
{
    uint32_t factor = GS_IR_NONE, rest;
    rest = without_group_factor(ir, n->in[0], n->width, &factor, 0);
    return rest == GS_IR_NONE ? rest
                              : gs_ir_binary(ir, GS_OP_MUL, gs_ir_resize(ir, GS_OP_FOLD, rest, n->width), factor);
}

/* Some columns of columns side by side, or of some columns. */
static uint32_t fold_part(gs_ir *ir, const gs_node *n)
{
    const gs_node a = *at(ir, n->in[0]);
    const uint32_t left = a.op == GS_OP_CONCAT ? at(ir, a.in[0])->width : 0;
    if (a.width == n->width)
        return n->in[0];
    if (a.op == GS_OP_PART)
        return gs_ir_part(ir, a.in[0], a.site + n->site, n->width);
    if (a.op == GS_OP_CONCAT && n->site + n->width <= left)
        return gs_ir_part(ir, a.in[0], n->site, n->width);
    if (a.op == GS_OP_CONCAT && n->site >= left)
        return gs_ir_part(ir, a.in[1], n->site - left, n->width);
    return GS_IR_NONE;
}

/* To the width that it has. */
static uint32_t fold_resize(gs_ir *ir, const gs_node *n)
{
    if (at(ir, n->in[0])->width == n->width)
        return n->in[0];
    return n->op == GS_OP_FOLD ? fold_fold(ir, n) : GS_IR_NONE;
}

static uint32_t fold_elementwise(gs_ir *ir, const gs_node *n)
{
    if (gs_op_form_of(n->op) == GS_FORM_COLUMNS)
        return n->op == GS_OP_PART ? fold_part(ir, n) : GS_IR_NONE;
    uint32_t folded = fold_constants(ir, n);
    if (folded == GS_IR_NONE && ir->status == GS_OK)
        folded = gs_op_is_each(n->op) ? fold_wide_constant(ir, n) : GS_IR_NONE;
    if (folded == GS_IR_NONE && ir->status == GS_OK)
        folded = fold_ends(ir, n);
    if (folded != GS_IR_NONE || ir->status != GS_OK)
        return folded;
    switch (n->op) {
    case GS_OP_ADD:
        return fold_add(ir, n);
    case GS_OP_SUB:
        return fold_sub(ir, n);
    case GS_OP_MUL:
        return fold_mul(ir, n);
    case GS_OP_DIV:
        return fold_div(ir, n);
    case GS_OP_NEG:
        return fold_neg(ir, n);
    case GS_OP_DROPOUT:
        return n->alpha == 0.0f || is_value(ir, n->in[0], 0.0f) ? n->in[0] : GS_IR_NONE;
    default:
        return resizes(n->op) ? fold_resize(ir, n) : GS_IR_NONE;
    }
}

/* f(SRC a, SRC b, parameter) = SRC(f(a, b, parameter)): work of the source alone is done once a vertex. */
static uint32_t fold_source(gs_ir *ir, const gs_node *n)
{
    gs_node vertex = *n;
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        if (at(ir, n->in[k])->op == GS_OP_SRC)
            vertex.in[k] = at(ir, n->in[k])->in[0];
    vertex.name[0] = 0;
    return gs_ir_unary(ir, GS_OP_SRC, gs_ir__make(ir, vertex), 0);
}

static uint32_t fold_edge(gs_ir *ir, const gs_node *n)
{
    const gs_node *a = at(ir, n->in[0]);
    if (n->op == GS_OP_SRC && a->type == GS_TYPE_P)
        return n->in[0];
    if (n->op == GS_OP_LSE_IN || n->op == GS_OP_ATTEND || n->op == GS_OP_TYPED || n->op == GS_OP_TYPE_OUTER ||
        n->op == GS_OP_DENSE_OUTER || n->op == GS_OP_MAX_HELD_IN || n->op == GS_OP_MIN_HELD_IN)
        return GS_IR_NONE;
    return is_value(ir, n->in[0], 0.0f) ? gs_ir_const(ir, 0.0f, n->width) : GS_IR_NONE;
}

/* A node equal to what `n` would be, but simpler, or GS_IR_NONE. */
static uint32_t fold(gs_ir *ir, const gs_node *n)
{
    const gs_op_class cls = gs_op_classof(n->op);
    if (n->type == GS_TYPE_S && (cls == GS_CLASS_ELEMENTWISE || cls == GS_CLASS_MATMUL))
        return fold_source(ir, n);
    switch (cls) {
    case GS_CLASS_ELEMENTWISE:
        return fold_elementwise(ir, n);
    case GS_CLASS_MATMUL:
        return is_value(ir, n->in[0], 0.0f) ? gs_ir_const(ir, 0.0f, n->width) : GS_IR_NONE;
    case GS_CLASS_STATISTIC: /* of what is the same for all vertices */
        if (at(ir, n->in[0])->type != GS_TYPE_P)
            return GS_IR_NONE;
        return n->op == GS_OP_MEAN_ALL ? n->in[0] : gs_ir_const(ir, 0.0f, n->width);
    case GS_CLASS_EDGE:
        return fold_edge(ir, n);
    default:
        return GS_IR_NONE;
    }
}

/* ---- making nodes ------------------------------------------------------ */

/* a + b and b + a are one node. */
static void order_inputs(gs_node *n)
{
    if (gs_op_is(n->op, GS_FACT_COMMUTES) && n->in[0] > n->in[1]) {
        const uint32_t a = n->in[0];
        n->in[0] = n->in[1];
        n->in[1] = a;
    }
}

uint32_t gs_ir__plus_zero(gs_ir *ir, uint32_t i)
{
    const uint32_t below = gs_ir_unary(ir, GS_OP_NEG, gs_ir_input(ir, "in_degree", 1, GS_F32), 0);
    return gs_ir_binary(ir, GS_OP_ADD, i, gs_ir_unary(ir, GS_OP_STEP, below, 0));
}

/* A row that is the same for all vertices, left of a matrix, as one of each of them. What is normalised over one number
 * is found to be such a row only here. */
static uint32_t left_of_product(gs_ir *ir, const gs_node *n)
{
    const gs_node *const a = &ir->node[n->in[0]];
    const bool zero = a->op == GS_OP_CONST && a->alpha == 0.0f;

    if ((n->op != GS_OP_MATMUL && n->op != GS_OP_MATMUL_T) || a->type != GS_TYPE_P || a->dims == 2 || zero)
        return n->in[0];
    return gs_ir__plus_zero(ir, n->in[0]);
}

uint32_t gs_ir__make(gs_ir *ir, gs_node n)
{
    uint32_t found;

    if (ir->status != GS_OK)
        return GS_IR_NONE;
    if (n.in[0] != GS_IR_NONE && gs_op_classof(n.op) == GS_CLASS_MATMUL)
        n.in[0] = left_of_product(ir, &n);
    n.line = ir->line;
    n.column = ir->column;
    if (!gs_ir__infer(ir, &n))
        return GS_IR_NONE;
    if (ir->fold) {
        order_inputs(&n);
        found = fold(ir, &n);
        if (found != GS_IR_NONE || ir->status != GS_OK)
            return found;
    }
    if (ir->fold || gs_ir__is_named(n.op)) {
        found = gs_ir__find(ir, &n);
        if (found != GS_IR_NONE)
            return found;
    }
    return gs_ir__append(ir, &n);
}

gs_node gs_ir__blank(gs_op op, uint32_t a, uint32_t b)
{
    gs_node n;
    memset(&n, 0, sizeof(n));
    n.op = op;
    n.dtype = GS_F32;
    n.in[0] = a;
    n.in[1] = b;
    n.in[2] = GS_IR_NONE;
    return n;
}

static uint32_t make_leaf(gs_ir *ir, gs_node *n, const char *name)
{
    uint32_t i;
    if (strlen(name) >= sizeof(n->name))
        return gs_ir_error(ir, GS_EFORMAT, "the name '%s' is longer than %zu bytes", name, sizeof(n->name) - 1);
    snprintf(n->name, sizeof(n->name), "%s", name);
    i = gs_ir__make(ir, *n);
    if (i != GS_IR_NONE &&
        (ir->node[i].width != n->width || ir->node[i].rows != n->rows || ir->node[i].dims != n->dims))
        return gs_ir_error(ir, GS_EFORMAT, "'%s' is used with two shapes", name);
    return i;
}

uint32_t gs_ir_input(gs_ir *ir, const char *name, uint32_t width, gs_dtype dtype)
{
    gs_node n = gs_ir__blank(GS_OP_INPUT, GS_IR_NONE, GS_IR_NONE);
    n.width = width;
    n.dtype = dtype;
    return make_leaf(ir, &n, name);
}

uint32_t gs_ir_table(gs_ir *ir, const char *name, uint32_t width)
{
    char full[2 * GS_IR_NAME_BYTES];
    snprintf(full, sizeof(full), GS_IR_TABLE "%s", name);
    const uint32_t table = gs_ir_input(ir, full, width, GS_F32);
    gs_ir_initial(ir, table, (gs_initial){GS_INITIAL_NORMAL, 1});
    return table;
}

void gs_ir_table_blocks(gs_ir *ir, uint32_t table, uint32_t blocks)
{
    gs_node *const n = table == GS_IR_NONE ? NULL : &ir->node[table];
    if (n == NULL)
        return;
    n->shape_dims = 3;
    n->shape[0] = blocks;
    n->shape[2] = n->width / blocks;
}

uint32_t gs_node_table_blocks(const gs_node *n) { return n->shape_dims == 3 ? n->shape[0] : 0; }

uint32_t gs_ir_param(gs_ir *ir, const char *name, uint32_t dims, uint32_t rows, uint32_t cols)
{
    gs_node n = gs_ir__blank(GS_OP_PARAM, GS_IR_NONE, GS_IR_NONE);
    n.dims = dims;
    n.rows = rows;
    n.width = cols;
    n.initial.rule = dims == 2 ? GS_INITIAL_GLOROT : GS_INITIAL_FILL;
    return make_leaf(ir, &n, name);
}

void gs_ir_param_shape(gs_ir *ir, uint32_t param, uint32_t dims, const uint32_t *shape, bool fixed)
{
    gs_node *n;
    if (param == GS_IR_NONE)
        return;
    n = &ir->node[param];
    n->shape_dims = dims;
    for (uint32_t k = 0; k < 3; k++)
        n->shape[k] = k < dims ? shape[k] : 0;
    n->fixed = fixed;
    if (dims > 1 || fixed)
        n->initial = (gs_initial){fixed ? GS_INITIAL_FILL : GS_INITIAL_GLOROT, 0};
}

uint32_t gs_ir_param_by_type(gs_ir *ir, const char *name, uint32_t types, uint32_t width, uint32_t dims, bool fixed)
{
    const uint32_t shape[3] = {types, 1, width}, param = gs_ir_param(ir, name, 2, types, width);

    gs_ir_param_shape(ir, param, 3, shape, fixed);
    if (param != GS_IR_NONE)
        ir->node[param].picked = dims;
    if (dims == 1)
        gs_ir_initial(ir, param, (gs_initial){GS_INITIAL_FILL, 0});
    return param;
}

void gs_ir_initial(gs_ir *ir, uint32_t node, gs_initial initial)
{
    if (node != GS_IR_NONE)
        ir->node[node].initial = initial;
}

void gs_ir_param_moves(gs_ir *ir, uint32_t param, bool moving, bool counter)
{
    if (param == GS_IR_NONE)
        return;
    ir->node[param].moving = moving;
    ir->node[param].counter = counter;
}

uint32_t gs_ir_weight(gs_ir *ir)
{
    gs_node n = gs_ir__blank(GS_OP_WEIGHT, GS_IR_NONE, GS_IR_NONE);
    n.width = 1;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_edge_features(gs_ir *ir, uint32_t width)
{
    gs_node n = gs_ir__blank(GS_OP_EDGE_FEATURES, GS_IR_NONE, GS_IR_NONE);
    n.width = width;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_resize(gs_ir *ir, gs_op op, uint32_t a, uint32_t width)
{
    gs_node n = gs_ir__blank(op, a, GS_IR_NONE);
    n.width = width;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_part(gs_ir *ir, uint32_t a, uint32_t first, uint32_t width)
{
    gs_node n = gs_ir__blank(GS_OP_PART, a, GS_IR_NONE);
    n.width = width;
    n.site = first;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_const(gs_ir *ir, float value, uint32_t width)
{
    gs_node n = gs_ir__blank(GS_OP_CONST, GS_IR_NONE, GS_IR_NONE);
    n.alpha = value;
    n.width = width;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_unary(gs_ir *ir, gs_op op, uint32_t a, float alpha)
{
    gs_node n = gs_ir__blank(op, a, GS_IR_NONE);
    n.alpha = gs_op_is(op, GS_FACT_ALPHA) ? alpha : 0.0f;
    n.dtype = op == GS_OP_ROUND ? GS_BF16 : GS_F32;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_binary(gs_ir *ir, gs_op op, uint32_t a, uint32_t b)
{
    return gs_ir__make(ir, gs_ir__blank(op, a, b));
}

uint32_t gs_ir_ternary(gs_ir *ir, gs_op op, uint32_t a, uint32_t b, uint32_t c)
{
    gs_node n = gs_ir__blank(op, a, b);
    n.in[2] = c;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_dropout(gs_ir *ir, uint32_t a, float p, uint32_t site)
{
    gs_node n = gs_ir__blank(GS_OP_DROPOUT, a, gs_ir_input(ir, "input_id", 1, GS_U32));
    n.alpha = p;
    n.site = site;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_edge_mask(gs_ir *ir, uint32_t width, float p, uint32_t site, bool self)
{
    const uint32_t id = gs_ir_input(ir, "input_id", 1, GS_U32);
    gs_node n = gs_ir__blank(GS_OP_EDGE_MASK, gs_ir_unary(ir, GS_OP_SRC, id, 0), id);
    n.width = width;
    n.alpha = p;
    n.site = site;
    n.self = self;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_sum(gs_ir *ir, gs_op op, uint32_t a, bool self)
{
    gs_node n = gs_ir__blank(op, a, GS_IR_NONE);
    n.self = self;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_like(gs_ir *ir, const gs_node *like, const uint32_t *in)
{
    const gs_node old = *like; /* making nodes may move `like` */
    gs_node n = old;
    for (uint32_t k = 0; k < gs_node_inputs(&old); k++)
        n.in[k] = in[k];
    if (!gs_ir__is_named(n.op))
        n.name[0] = 0;
    const uint32_t i = gs_ir__make(ir, n);
    gs_ir_label(ir, i, old.name);
    return i;
}
