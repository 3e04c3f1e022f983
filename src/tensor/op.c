/* op.c - the table of op.h as arrays. */
#include "tensor/op.h"

#include <assert.h>

static const struct {
    const char *name;
    unsigned inputs;
    gs_op_class cls;
} ops[GS_OP_COUNT] = {
#define X(id, name, inputs, cls) [id] = {name, inputs, cls},
    GS_OP_MAP(X)
#undef X
};

const char *gs_op_name(gs_op op)
{
    return (unsigned)op < GS_OP_COUNT ? ops[op].name : "?";
}

unsigned gs_op_inputs(gs_op op)
{
    assert((unsigned)op < GS_OP_COUNT);
    return ops[op].inputs;
}

gs_op_class gs_op_classof(gs_op op)
{
    assert((unsigned)op < GS_OP_COUNT);
    return ops[op].cls;
}
