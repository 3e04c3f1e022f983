/* op.c - the table of op.h as arrays, and the values of its elementwise operators. */
#include "tensor/op.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "base/dtype.h"

const gs_op_facts gs_op__facts[GS_OP_COUNT] = {
#define X(id, name, text, inputs, standard, zero, is, value) \
    [id] = {name, text, standard, inputs, GS_CLASS_ELEMENTWISE, GS_FORM_EACH, zero, GS_BOTH | (is)},
    GS_OP_EACH_MAP(X)
#undef X
#define X(id, name, inputs, cls, form, zero, is) [id] = {name, NULL, 0, inputs, cls, form, zero, is},
    GS_OP_LEAF_MAP(X) GS_OP_OTHER_MAP(X)
#undef X
#define LOSS(op, name, zero, is, loss) \
    [op] = {name, NULL, 0, 2, GS_CLASS_LOSS, GS_FORM_NONE, zero, GS_FACT_VERTEX | (is), loss},
#define X(id, name, task, is)                               \
    LOSS(GS_OP_##id, #name, GS_ZERO_LOST, is, GS_LOSS_##id) \
    LOSS(GS_OP_##id##_GRAD, #name "_grad", GS_ZERO_TRAIN, is, GS_LOSS_##id)
    GS_LOSS_MAP(X)
#undef X
#undef LOSS
};

static const gs_train_task loss_task[GS_LOSSES] = {
#define X(id, name, task, is) [GS_LOSS_##id] = task,
    GS_LOSS_MAP(X)
#undef X
};

gs_train_task gs_loss_task(gs_loss loss)
{
    assert((unsigned)loss < GS_LOSSES);
    return loss_task[loss];
}

gs_loss gs_loss_of_task(gs_train_task task)
{
    int k = 0;
    while (loss_task[k] != task) /* each has one */
        k++;
    return (gs_loss)k;
}

const char *gs_op_name(gs_op op)
{
    return (unsigned)op < GS_OP_COUNT ? gs_op__facts[op].name : "?";
}

double gs_op_value(gs_op op, double x, double y, double z, double alpha)
{
    (void)z; /* of operators with three operands */
    switch (op) {
#define X(id, name, text, inputs, standard, zero, is, value) \
    case id:                                                 \
        return (value);
        GS_OP_EACH_MAP(X)
#undef X
    default:
        return NAN;
    }
}
