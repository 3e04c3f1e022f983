/* op.c - the table of op.h as arrays, and the values of its elementwise operators. */
#include "tensor/op.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "base/dtype.h"

static const gs_op_facts facts[GS_OP_COUNT] = {
#define X(id, name, text, inputs, standard, zero, is, value) \
    [id] = {name, text, standard, inputs, GS_CLASS_ELEMENTWISE, GS_FORM_EACH, zero, GS_BOTH | (is)},
    GS_OP_EACH_MAP(X)
#undef X
#define X(id, name, inputs, cls, form, zero, is) [id] = {name, NULL, 0, inputs, cls, form, zero, is},
    GS_OP_LEAF_MAP(X) GS_OP_OTHER_MAP(X)
#undef X
};

const gs_op_facts *gs_op_facts_of(gs_op op)
{
    assert((unsigned)op < GS_OP_COUNT);
    return &facts[op];
}

const char *gs_op_name(gs_op op)
{
    return (unsigned)op < GS_OP_COUNT ? facts[op].name : "?";
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
