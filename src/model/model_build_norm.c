/* model_build_norm.c - normalisations with their parameters, named as torch's.
 *
 * batch_norm(x) is torch_geometric.nn.norm.BatchNorm, whose torch.nn.BatchNorm1d is called `module`: behind layer i
 * BasicGNN calls it norms.i. In a network, which has no layer around it, its name is its whole name. While training it
 * takes mean and biased variance of each column over all vertices,
 */
#include <stdio.h>
#include <string.h>

#include "model/model_builder.h"

#define EPSILON 1e-5f /* torch's, of both norms */
#define LEAST_VARIANCE 1e-30f /* below it the root's gradient is taken for 0, as torch does where all are equal */

static uint32_t bin(gs_builder *b, gs_op op, uint32_t x, uint32_t y)
{
    return gs_ir_binary(b->ir, op, x, y);
}

static bool is_there(const gs_ir *ir, const char *name)
{
    for (uint32_t i = 0; i < gs_ir_count(ir); i++)
        if (gs_ir_node(ir, i)->op == GS_OP_PARAM && strcmp(gs_ir_node(ir, i)->name, name) == 0)
            return true;
    return false;
}

/* A row of parameters of this norm alone. */
static uint32_t new_row(gs_builder *b, const gs_expr *e, const char *name, uint32_t width, float start, bool fixed,
                        bool counter)
{
    char full[2 * GS_TEXT_NAME + 32];
    uint32_t row;

    if (e->prefix[0] == 0)
        snprintf(full, sizeof(full), "norms.%u.module.%s", b->index, name);
    else
        gs_model__full_name(b, full, sizeof(full), e->prefix, name);
    if (is_there(b->ir, full))
        return gs_ir_error(b->ir, GS_EFORMAT, "a second %s() with parameters '%s': give it a name, %s(x, NAME)",
                           e->name, full, e->name);
    row = gs_ir_param(b->ir, full, 1, 1, width);
    gs_ir_param_shape(b->ir, row, 0, NULL, fixed);
    gs_ir_initial(b->ir, row, (gs_initial){GS_INITIAL_FILL, start});
    gs_ir_param_moves(b->ir, row, fixed, counter);
    return row;
}

static uint32_t scaled(gs_builder *b, uint32_t d, uint32_t variance)
{
    const uint32_t above_0 = bin(b, GS_OP_ADD, variance, gs_model__number(b, EPSILON));
    return bin(b, GS_OP_MUL, d, gs_ir_unary(b->ir, GS_OP_RSQRT, above_0, 0));
}

static uint32_t row_mean(gs_builder *b, uint32_t x)
{
    const uint32_t part = gs_model__number(b, 1.0f / (float)gs_ir_node(b->ir, x)->width);
    return bin(b, GS_OP_MUL, gs_ir_unary(b->ir, GS_OP_ROWSUM, x, 0), part);
}

/* With a name also times weight plus bias. */
static uint32_t affine(gs_builder *b, const gs_expr *e, uint32_t y)
{
    const uint32_t width = gs_ir_node(b->ir, y)->width;
    uint32_t weight;
    if (e->prefix[0] == 0)
        return y;
    weight = new_row(b, e, "weight", width, 1, false, false);
    return bin(b, GS_OP_ADD, bin(b, GS_OP_MUL, y, weight), new_row(b, e, "bias", width, 0, false, false));
}

/* (x - mean) / sqrt(variance + eps) over the row, as torch.nn.LayerNorm. */
static uint32_t build_layer_norm(gs_builder *b, const gs_expr *e, uint32_t x)
{
    const uint32_t d = bin(b, GS_OP_SUB, x, row_mean(b, x));
    return affine(b, e, scaled(b, d, row_mean(b, bin(b, GS_OP_MUL, d, d))));
}

/* (x - mean) / (sqrt(variance) + eps) over all elements of all vertices, as torch_geometric.nn.norm.LayerNorm with
 * mode="graph", in an evaluation too. */
static uint32_t build_layer_norm_all(gs_builder *b, const gs_expr *e, uint32_t x)
{
    gs_ir *ir = b->ir;
    const uint32_t mean = gs_ir_unary(ir, GS_OP_MEAN_ALL, row_mean(b, x), 0), d = bin(b, GS_OP_SUB, x, mean);
    const uint32_t variance = gs_ir_unary(ir, GS_OP_MEAN_ALL, row_mean(b, bin(b, GS_OP_MUL, d, d)), 0);
    const uint32_t above_0 = bin(b, GS_OP_MAX, variance, gs_model__number(b, LEAST_VARIANCE));
    const uint32_t deviation = gs_ir_unary(ir, GS_OP_SQRT, above_0, 0);

    return affine(b, e, bin(b, GS_OP_DIV, d, bin(b, GS_OP_ADD, deviation, gs_model__number(b, EPSILON))));
}

static uint32_t build_batch_norm(gs_builder *b, const gs_expr *e, uint32_t x)
{
    gs_ir *ir = b->ir;
    const uint32_t width = gs_ir_node(ir, x)->width;
    const uint32_t weight = new_row(b, e, "weight", width, 1, false, false);
    const uint32_t bias = new_row(b, e, "bias", width, 0, false, false);
    const uint32_t mean = new_row(b, e, "running_mean", width, 0, true, false);
    const uint32_t variance = new_row(b, e, "running_var", width, 1, true, false);
    uint32_t m = mean, v = variance;

    new_row(b, e, "num_batches_tracked", 1, 0, true, true);
    if (b->config->training) {
        m = gs_ir_unary(ir, GS_OP_MEAN_ALL, x, 0);
        v = gs_ir_unary(ir, GS_OP_VAR_ALL, x, 0);
        gs_ir_add_output(ir, GS_OUTPUT_FOLLOW, m, mean);
        gs_ir_add_output(ir, GS_OUTPUT_FOLLOW, v, variance);
    }
    return bin(b, GS_OP_ADD, bin(b, GS_OP_MUL, scaled(b, bin(b, GS_OP_SUB, x, m), v), weight), bias);
}

uint32_t gs_model__build_norm(gs_builder *b, const gs_expr *e, uint32_t x)
{
    if (x == GS_IR_NONE)
        return x;
    if (strcmp(e->name, "layer_norm") == 0)
        return build_layer_norm(b, e, x);
    if (gs_ir_node(b->ir, x)->type != GS_TYPE_D)
        return gs_ir_error(b->ir, GS_EFORMAT, "%s() needs a value of vertices; give it a name outside the reduction",
                           e->name);
    return e->name[0] == 'l' ? build_layer_norm_all(b, e, x) : build_batch_norm(b, e, x);
}
