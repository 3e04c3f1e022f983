#include "exec/watch.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

typedef struct row_values {
    gs_exec *e;
    const gs_stage *stage;
    float **value; /* [regs] of the row; NULL: not known */
    float *room;
    uint64_t floats;
    gs_exec_fault *fault;
} row_values;

static float *take_room(row_values *w, uint64_t floats)
{
    if (floats > w->floats)
        return NULL;
    float *const at = w->room;
    w->room += floats;
    w->floats -= floats;
    return at;
}

/* Numbers of a row as they lie there; counts, too. False: of a type that no vertex program computes with. */
static bool convert(float *to, const void *raw, gs_dtype type, uint32_t n)
{
    if (type == GS_U32 || type == GS_I32) {
        for (uint32_t c = 0; c < n; c++)
            to[c] = type == GS_U32 ? (float)((const uint32_t *)raw)[c] : (float)((const int32_t *)raw)[c];
        return true;
    }
    if (type != GS_F32 && type != GS_BF16 && type != GS_F16)
        return false;
    gs_convert_to_f32(to, raw, type, n);
    return true;
}

/* What the stage loads, and its sums. */
static void read_row(row_values *w, gs_exec_device *x, const gs_task *t, uint32_t row, uint32_t r)
{
    const gs_reg *const reg = &w->stage->reg[r];
    const uint64_t size = gs_dtype_bytes(reg->dtype);
    const char *const from = gs_exec__at(w->e, x, w->e->plan->reg[t->first_reg + r]);
    float *const to = take_room(w, reg->width), *const raw = take_room(w, reg->width);

    if (from != NULL && reg->kind != GS_REG_TEMP && to != NULL && raw != NULL && size <= sizeof(*raw) &&
        gs_device_peek(x->device, raw, from + (uint64_t)row * reg->width * size, reg->width * size) == GS_OK &&
        convert(to, raw, reg->dtype, reg->width))
        w->value[r] = to;
}

/* Column c of an operand of an elementwise operator of `width` columns; false: not known. */
static bool operand_at(const row_values *w, const gs_operand *o, uint32_t c, double *out)
{
    const gs_param *const p = o->kind == GS_FROM_PARAM ? &w->e->program->param[o->index] : NULL;
    const float *const values = o->kind == GS_FROM_REG ? w->value[o->index]
                                : p != NULL            ? w->e->args->param[o->index]
                                                       : NULL;

    *out = (double)o->value;
    if (o->kind == GS_FROM_CONST)
        return true;
    if (values == NULL)
        return false;
    *out = (double)values[(p != NULL ? p->cols : w->stage->reg[o->index].width) == 1 ? 0 : c];
    return true;
}

static void note(row_values *w, const gs_instr *in, uint32_t c, const double value[3])
{
    w->fault->op = in->op;
    w->fault->operands = gs_op_inputs(in->op);
    w->fault->column = c;
    for (uint32_t k = 0; k < 3; k++)
        w->fault->operand[k] = (float)value[k];
}

/* False: its values are not known, or one was found. */
static bool run_each(row_values *w, const gs_instr *in, float *to)
{
    for (uint32_t c = 0; c < w->stage->reg[in->dst].width; c++) {
        double value[3] = {0};
        bool finite = true;
        for (uint32_t k = 0; k < gs_op_inputs(in->op); k++) {
            if (!operand_at(w, gs_instr_operand(in, k), c, &value[k]))
                return false;
            finite = finite && isfinite(value[k]);
        }
        to[c] = (float)gs_op_value(in->op, value[0], value[1], value[2], (double)in->alpha);
        if (finite && !isfinite(to[c])) {
            note(w, in, c, value);
            return false;
        }
    }
    return true;
}

/* Sums within a row: of all of it, or of as many columns as there are for each of the result; and copies. */
static bool run_row(const row_values *w, const gs_instr *in, float *to)
{
    const uint32_t from = w->stage->reg[in->a.index].width, width = w->stage->reg[in->dst].width;
    const float *const a = in->a.kind == GS_FROM_REG ? w->value[in->a.index] : NULL;
    const uint32_t each = GS_MAX(GS_MAX(from, width) / GS_MAX(GS_MIN(from, width), 1u), 1u);

    if (a == NULL)
        return false;
    memset(to, 0, width * sizeof(*to));
    switch (in->op) {
    case GS_OP_CAST:
    case GS_OP_ROUND:
        memcpy(to, a, width * sizeof(*to));
        return true;
    case GS_OP_ROWSUM:
    case GS_OP_FOLD:
        for (uint32_t c = 0; c < from; c++)
            to[c / each] += a[c];
        return true;
    case GS_OP_EXPAND:
        for (uint32_t c = 0; c < width; c++)
            to[c] = a[c / each];
        return true;
    default:
        return false;
    }
}

static bool run_product(const row_values *w, const gs_instr *in, float *to)
{
    const uint32_t from = w->stage->reg[in->a.index].width, width = w->stage->reg[in->dst].width;
    const float *const a = w->value[in->a.index], *const b = w->e->args->param[in->b.index];
    const bool across = in->op == GS_OP_MATMUL_T; /* by rows of b */

    if (a == NULL || b == NULL)
        return false;
    for (uint32_t c = 0; c < width; c++) {
        double sum = 0;
        for (uint32_t i = 0; i < from; i++)
            sum += (double)a[i] * (double)(across ? b[(uint64_t)c * from + i] : b[(uint64_t)i * width + c]);
        to[c] = (float)sum;
    }
    return true;
}

static void run_instr(row_values *w, const gs_instr *in)
{
    float *const to = gs_op_into_param(in->op) || in->dst == GS_NONE || w->value[in->dst] != NULL
                          ? NULL
                          : take_room(w, w->stage->reg[in->dst].width);
    bool known = false;

    if (to == NULL)
        return;
    if (gs_op_is_each(in->op))
        known = run_each(w, in, to);
    else if (in->op == GS_OP_MATMUL_T || in->op == GS_OP_MATMUL)
        known = in->a.kind == GS_FROM_REG && in->b.kind == GS_FROM_PARAM && run_product(w, in, to);
    else if (gs_op_classof(in->op) == GS_CLASS_ELEMENTWISE && in->a.kind == GS_FROM_REG)
        known = run_row(w, in, to);
    w->value[in->dst] = known ? to : NULL;
}

void gs_exec__explain_row(gs_exec *e, gs_exec_device *x, const gs_task *t, uint32_t row, float *room, uint64_t floats,
                          gs_exec_fault *fault)
{
    row_values w = {.e = e, .stage = &e->program->stage[t->stage], .room = room, .floats = floats, .fault = fault};

    if (e->args->param == NULL || (w.value = gs_calloc(w.stage->regs + 1, sizeof(*w.value))) == NULL)
        return;
    for (uint32_t r = 0; r < w.stage->regs; r++)
        read_row(&w, x, t, row, r);
    for (uint32_t i = 0; i < w.stage->instrs && fault->operands == 0; i++)
        run_instr(&w, &w.stage->instr[i]);
    gs_free(w.value);
}
