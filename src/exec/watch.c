/* watch.c - what is seen of a pass while it runs: progress, patience of callers, the trace. */
#include "exec/watch.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "exec/exec_run.h"

/* -- which operation of a vertex program makes the first number of a row that is not finite?
 *
 * A row is computed once more, in float64 and one number after the other, from what its stage loads and its sums. Only
 * for runs that are looked at. */

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

/* Of the task's row `row`, in its tile: into fault->op, .operands and .operand, where an operation has finite operands
 * and a result that is not; left as they are where none is found, or what comes before it is not computed here. `room`:
 * memory for `floats`. Blocks. */
static void explain_row(gs_exec *e, gs_exec_device *x, const gs_task *t, uint32_t row, float *room, uint64_t floats,
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

/* ---- progress ------------------------------------------------------------- */

/* How far a pass has come, for any thread that asks. Relaxed atomics: what is counted orders nothing. */

void gs_exec__enter_progress(gs_exec *e, uint32_t pass)
{
    const gs_ahead *const list = e->plan->ahead + e->plan->pass[pass].first_ahead;

    __atomic_store_n(&e->progress.tasks, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&e->progress.bytes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&e->progress.pass, pass, __ATOMIC_RELAXED);
    for (uint32_t k = 0; k < e->lanes.ahead; k++)
        if (e->lanes.state[list[k].task] == GS_FETCHED)
            gs_exec__count(e, list[k].task);
}

void gs_exec__count(gs_exec *e, uint32_t task)
{
    const gs_task *const t = &e->plan->task[task];

    __atomic_fetch_add(&e->progress.tasks, 1, __ATOMIC_RELAXED);
    if (gs_task_is_transfer(t))
        __atomic_fetch_add(&e->progress.bytes, gs_task_bytes(e->plan, t), __ATOMIC_RELAXED);
}

void gs_exec_get_progress(const gs_exec *e, gs_exec_progress *out)
{
    out->pass = __atomic_load_n(&e->progress.pass, __ATOMIC_RELAXED);
    out->tasks = __atomic_load_n(&e->progress.tasks, __ATOMIC_RELAXED);
    out->bytes = __atomic_load_n(&e->progress.bytes, __ATOMIC_RELAXED);
}

/* ---- watching ------------------------------------------------------------- */

gs_status gs_exec_watch_open(gs_exec_watch **out, const gs_exec_fault *found)
{
    gs_exec_watch *const w = gs_calloc(1, sizeof(*w));

    if (w == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: looking for what is not finite");
    pthread_mutex_init(&w->lock, NULL);
    w->first.stage = GS_NONE;
    w->explains = found != NULL;
    if (found != NULL)
        w->first = *found;
    *out = w;
    return GS_OK;
}

gs_exec_fault gs_exec_watch_close(gs_exec_watch *w)
{
    const gs_exec_fault first = w->first;

    pthread_mutex_destroy(&w->lock);
    gs_free(w);
    return first;
}

/* Rows that a launch reads are older than those that it stores; registers are in the order of their instructions. */
static bool is_before(const gs_exec_fault *a, const gs_exec_fault *b)
{
    if (b->stage == GS_NONE || a->stage != b->stage)
        return b->stage == GS_NONE || a->stage < b->stage;
    return a->stored != b->stored ? b->stored : a->reg < b->reg;
}

/* Looks at rows as they lie at `from`, some at a time. The lock is held. */
static gs_status look(gs_exec_watch *w, gs_device *d, const void *from, const gs_reg *r, uint32_t rows,
                      gs_exec_fault fault)
{
    const uint64_t size = gs_dtype_bytes(r->dtype), count = (uint64_t)rows * r->width, most = sizeof(w->piece) / size;

    for (uint64_t at = 0; at < count; at += most) {
        const uint64_t n = GS_MIN(count - at, most);
        GS_TRY(gs_device_peek(d, w->piece, (const char *)from + at * size, n * size));
        gs_convert_to_f32(w->number, w->piece, r->dtype, n);
        for (uint64_t i = 0; i < n; i++)
            if (!isfinite(w->number[i])) {
                fault.row += (at + i) / r->width;
                fault.column = (uint32_t)((at + i) % r->width);
                fault.value = w->number[i];
                w->first = fault;
                return GS_OK;
            }
    }
    return GS_OK;
}

gs_status gs_exec__watch_vertex(gs_exec *e, gs_exec_device *x, const gs_task *t, bool stored)
{
    gs_exec_watch *const w = e->args->watch;
    const gs_stage *const s = &e->program->stage[t->stage];
    gs_status st = GS_OK;

    pthread_mutex_lock(&w->lock);
    /* before the launch: temporaries may take the place of sums */
    if (w->explains && !stored && t->stage == w->first.stage && w->first.row - t->first_row < t->rows)
        explain_row(e, x, t, (uint32_t)(w->first.row - t->first_row), w->number, GS_ARRAY_LEN(w->number),
                    &w->first);
    for (uint32_t r = 0; r < s->regs && st == GS_OK && !w->explains; r++) {
        const gs_exec_fault fault = {.stage = t->stage, .stored = stored, .reg = r, .row = t->first_row};
        const void *const from = gs_exec__at(e, x, e->plan->reg[t->first_reg + r]);
        const bool has_rows = s->reg[r].kind != GS_REG_TEMP || s->reg[r].array != GS_NONE;
        if (from != NULL && has_rows && (s->reg[r].kind == GS_REG_TEMP) == stored &&
            gs_dtype_is_feature(s->reg[r].dtype) && is_before(&fault, &w->first))
            st = look(w, x->device, from, &s->reg[r], t->rows, fault);
    }
    pthread_mutex_unlock(&w->lock);
    return st;
}
