/* Instructions of a launch to steps: every operand looked up, once a launch, before anything is written. That the
 * program obeys program.h was proved before (gs_program_check()); what is refused here is what the launch lacks.
 */
#include <assert.h>

#include "base/philox.h" /* gs_random_key */
#include "device/cpu/dropout.h"
#include "device/cpu/resolve.h"
#include "device/cpu/step_runs.h"

typedef struct lookup {
    const gs_vertex_launch *l;
    gs_cpu_step *step;
    const gs_instr *instr;
    uint32_t index;
} lookup;

static gs_status refuse(const lookup *k, const char *what)
{
    return gs_fail(GS_EINVAL, "stage \"%s\", instruction %u: %s", k->l->stage->name, k->index, what);
}

/* The register `index`, noted as one that the step touches; NULL after an error. */
static void *find_register(const lookup *k, uint32_t index, gs_dtype dtype, uint32_t width, gs_status *st)
{
    const gs_stage *const stage = k->l->stage;
    if (*st != GS_OK)
        return NULL;
    assert(index < stage->regs);
    if (k->l->reg[index] == NULL) {
        *st = refuse(k, "a register that the launch does not have");
        return NULL;
    }
    const gs_reg *const r = &stage->reg[index];
    assert(r->dtype == dtype && (width == 0 || r->width == width));
    (void)dtype;
    (void)width;
    k->step->reg[k->step->regs++] =
        (gs_cpu_range){.p = k->l->reg[index], .row_bytes = (uint64_t)r->width * gs_dtype_bytes(r->dtype)};
    return k->l->reg[index];
}

static void *operand_register(const lookup *k, const gs_operand *o, gs_dtype dtype, uint32_t width, gs_status *st)
{
    assert(o->kind == GS_FROM_REG);
    return find_register(k, o->index, dtype, width, st);
}

static uint32_t width_of(const lookup *k, const gs_operand *o)
{
    assert(o->kind == GS_FROM_REG && o->index < k->l->stage->regs);
    return k->l->stage->reg[o->index].width;
}

static gs_cpu_operand broadcast(const lookup *k, const gs_operand *o, gs_status *st)
{
    const uint32_t width = k->step->width;
    const gs_program *const p = k->l->program;

    if (*st != GS_OK)
        return (gs_cpu_operand){0};
    if (o->kind == GS_FROM_CONST)
        return (gs_cpu_operand){&o->value, GS_CPU_SCALAR};
    if (o->kind == GS_FROM_PARAM) {
        const gs_param *const param = &p->param[o->index];
        assert(param->rows == 1 && (param->cols == width || param->cols == 1));
        return (gs_cpu_operand){k->l->param[o->index], param->cols == 1 ? GS_CPU_SCALAR : GS_CPU_ROW};
    }
    const bool column = width_of(k, o) == 1 && width != 1;
    return (gs_cpu_operand){operand_register(k, o, GS_F32, column ? 1 : width, st),
                            column ? GS_CPU_COLUMN : GS_CPU_FULL};
}

static const gs_param *resolve_weight(const lookup *k)
{
    const uint32_t index = k->instr->b.index;
    assert(k->instr->b.kind == GS_FROM_PARAM && index < k->l->program->params);
    const gs_param *const param = &k->l->program->param[index];
    k->step->weight.at = k->l->param[index];
    k->step->weight.rows = param->rows;
    k->step->weight.cols = param->cols;
    return param;
}

/* The narrow side says how many matrices there are. */
static gs_status resolve_fan(const lookup *k, const gs_param *w)
{
    gs_cpu_step *const s = k->step;
    const bool transposed = s->op == GS_OP_FAN_T;
    const uint32_t dst = width_of(k, &(gs_operand){.kind = GS_FROM_REG, .index = k->instr->dst});
    const uint32_t narrow = transposed ? dst : width_of(k, &k->instr->a);
    gs_status st = GS_OK;
    assert(w->rows % narrow == 0);
    s->weight.matrices = w->rows / narrow;
    s->a_width = transposed ? s->weight.matrices * w->cols : narrow;
    s->dst = find_register(k, k->instr->dst, GS_F32, transposed ? narrow : s->weight.matrices * w->cols, &st);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, s->a_width, &st);
    return st;
}

static gs_status resolve_product(const lookup *k)
{
    gs_cpu_step *const s = k->step;
    const gs_param *const w = resolve_weight(k);
    gs_status st = GS_OK;
    if (s->op == GS_OP_FAN || s->op == GS_OP_FAN_T)
        return resolve_fan(k, w);
    const bool transposed = s->op == GS_OP_MATMUL_T;
    s->a_width = transposed ? w->cols : w->rows;
    s->dst = find_register(k, k->instr->dst, GS_F32, transposed ? w->rows : w->cols, &st);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, s->a_width, &st);
    return st;
}

/* Blocks of columns: as many as the weight has rows (transposed: columns) become as many as it has of the others. */
static gs_status resolve_mix(const lookup *k)
{
    gs_cpu_step *const s = k->step;
    const gs_param *const w = resolve_weight(k);
    gs_status st = GS_OK;
    const bool transposed = s->op == GS_OP_MIX_T;
    s->mix = (gs_cpu_mix){.weight = s->weight.at,
                          .from = transposed ? w->cols : w->rows,
                          .to = transposed ? w->rows : w->cols,
                          .from_stride = transposed ? 1 : w->cols,
                          .to_stride = transposed ? w->cols : 1};
    s->a_width = width_of(k, &k->instr->a);
    s->mix.each = s->a_width / s->mix.from;
    s->width = s->mix.to * s->mix.each;
    assert(s->a_width % s->mix.from == 0);
    s->dst = find_register(k, k->instr->dst, GS_F32, s->width, &st);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, s->a_width, &st);
    return st;
}

static gs_status resolve_mix_outer(const lookup *k, const gs_param *w)
{
    gs_cpu_step *const s = k->step;
    gs_status st = GS_OK;
    s->mix.each = s->width / w->rows;
    assert(s->width % w->rows == 0);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, s->width, &st);
    s->b.p = operand_register(k, &k->instr->b, GS_F32, w->cols * s->mix.each, &st);
    return st;
}

static gs_status resolve_reduce(const lookup *k)
{
    gs_cpu_step *const s = k->step;
    gs_status st = GS_OK;
    assert(k->instr->dst < k->l->program->params);
    if (k->l->grad == NULL || k->l->grad[k->instr->dst] == NULL)
        return refuse(k, "the launch has no place for this gradient");
    const gs_param *const w = &k->l->program->param[k->instr->dst];
    s->grad = k->l->grad[k->instr->dst];
    s->weight.rows = w->rows;
    s->weight.cols = w->cols;
    if (s->op == GS_OP_COLSUM) {
        assert(w->rows == 1);
        s->a.p = operand_register(k, &k->instr->a, GS_F32, w->cols, &st);
        return st;
    }
    if (s->op == GS_OP_MIX_OUTER)
        return resolve_mix_outer(k, w);
    if (s->op == GS_OP_FAN_OUTER) {
        assert(w->rows % s->width == 0);
        s->weight.matrices = w->rows / s->width;
        s->a.p = operand_register(k, &k->instr->a, GS_F32, s->width, &st);
        s->b.p = operand_register(k, &k->instr->b, GS_F32, s->weight.matrices * w->cols, &st);
        return st;
    }
    s->a.p = operand_register(k, &k->instr->a, GS_F32, w->rows, &st);
    s->b.p = operand_register(k, &k->instr->b, GS_F32, w->cols, &st);
    return st;
}

static gs_status resolve_loss(const lookup *k)
{
    gs_cpu_step *const s = k->step;
    gs_status st = GS_OK;
    s->width = width_of(k, &k->instr->a);
    if (gs_op_is_loss_grad(s->op))
        s->dst = find_register(k, k->instr->dst, GS_F32, s->width, &st);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, 0, &st);
    s->source_type = k->l->stage->reg[k->instr->b.index].dtype;
    s->id = operand_register(k, &k->instr->b, s->source_type, s->source_type == GS_I32 ? 1 : s->width, &st);
    s->split = operand_register(k, &k->instr->c, GS_U8, 1, &st);
    return st;
}

static gs_status resolve_statistic(const lookup *k)
{
    gs_cpu_step *const s = k->step;
    gs_status st = GS_OK;
    assert(k->instr->dst < k->l->program->params);
    if (k->l->statistic == NULL || k->l->statistic[k->instr->dst] == NULL)
        return refuse(k, "the launch has no place for this statistic");
    s->statistic = k->l->statistic[k->instr->dst];
    s->a.p = operand_register(k, &k->instr->a, GS_F32, k->l->program->param[k->instr->dst].cols, &st);
    return st;
}

/* Resolves the mask of the vertices themselves, which is drawn for their own edge. */
static gs_status resolve_mask(const lookup *k)
{
    gs_cpu_step *const s = k->step;
    gs_status st = GS_OK;
    gs_cpu__edge_mask(&s->dropout, k->instr, k->l->seed, k->l->epoch);
    s->split = operand_register(k, &k->instr->a, GS_U32, 1, &st);
    s->id = operand_register(k, &k->instr->b, GS_U32, 1, &st);
    return st;
}

static gs_status resolve_dropout(const lookup *k)
{
    gs_cpu_step *const s = k->step;
    gs_status st = GS_OK;
    gs_cpu__dropout(&s->dropout, k->instr, k->l->epoch);
    gs_random_key(s->dropout.key, k->l->seed, GS_RANDOM_DROPOUT);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, s->width, &st);
    s->id = operand_register(k, &k->instr->b, GS_U32, 1, &st);
    return st;
}

static gs_status resolve_cast(const lookup *k)
{
    gs_status st = GS_OK;
    const gs_operand *const a = &k->instr->a;
    k->step->source_type = k->l->stage->reg[a->index].dtype;
    assert(gs_cpu__can_cast(k->step->source_type));
    k->step->source = operand_register(k, a, k->step->source_type, k->step->width, &st);
    return st;
}

static gs_status resolve_round(const lookup *k)
{
    gs_status st = GS_OK;
    k->step->rounded = find_register(k, k->instr->dst, GS_BF16, 0, &st);
    k->step->a.p = operand_register(k, &k->instr->a, GS_F32, k->step->width, &st);
    return st;
}

/* One side has a whole number of columns for each column of the other. */
static gs_status resolve_groups(const lookup *k)
{
    gs_cpu_step *const s = k->step;
    gs_status st = GS_OK;
    s->a_width = width_of(k, &k->instr->a);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, 0, &st);
    assert(s->a_width % s->width == 0 || s->width % s->a_width == 0);
    return st;
}

static gs_status resolve_columns(const lookup *k)
{
    gs_cpu_step *const s = k->step;
    gs_status st = GS_OK;
    s->first = k->instr->site;
    s->a_width = width_of(k, &k->instr->a);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, 0, &st);
    if (st != GS_OK)
        return st;
    assert(s->op == GS_OP_PART ? s->first + s->width <= s->a_width : s->a_width < s->width);
    if (s->op == GS_OP_PART)
        return st;
    s->b.p = operand_register(k, &k->instr->b, GS_F32, s->width - s->a_width, &st);
    return st;
}

/* An element of the elements at the same place: operands of one function are rows, of more they may stretch. */
static gs_status resolve_each(const lookup *k)
{
    gs_cpu_step *const s = k->step;
    gs_status st = GS_OK;
    if (gs_op_inputs(s->op) == 1) {
        s->a.p = operand_register(k, &k->instr->a, GS_F32, s->width, &st);
        return st;
    }
    s->a = broadcast(k, &k->instr->a, &st);
    s->b = broadcast(k, &k->instr->b, &st);
    if (gs_op_inputs(s->op) == 3)
        s->c = broadcast(k, &k->instr->c, &st);
    return st;
}

static gs_status resolve_elementwise(const lookup *k)
{
    gs_cpu_step *const s = k->step;
    gs_status st = GS_OK;

    s->width = k->l->stage->reg[k->instr->dst].width;
    if (s->op == GS_OP_ROUND)
        return resolve_round(k);
    s->dst = find_register(k, k->instr->dst, GS_F32, 0, &st);
    if (st != GS_OK)
        return st;
    switch (gs_op_form_of(s->op)) {
    case GS_FORM_TYPE:
        return resolve_cast(k);
    case GS_FORM_DRAW:
        return s->op == GS_OP_DROPOUT ? resolve_dropout(k) : resolve_mask(k);
    case GS_FORM_COLUMNS:
        return resolve_columns(k);
    case GS_FORM_ROW:
        assert(s->width == 1);
        s->a_width = width_of(k, &k->instr->a);
        s->a.p = operand_register(k, &k->instr->a, GS_F32, 0, &st);
        return st;
    case GS_FORM_FEWER:
    case GS_FORM_MORE:
        return resolve_groups(k);
    default:
        return resolve_each(k);
    }
}

static gs_status resolve_step(const lookup *k)
{
    const gs_op op = k->instr->op;
    *k->step = (gs_cpu_step){.op = op, .alpha = k->instr->alpha};
    assert(gs_op_is(op, GS_FACT_VERTEX));
    if (gs_cpu__is_product(op)) {
        const gs_status st = resolve_product(k);
        k->step->width = width_of(k, &(gs_operand){.kind = GS_FROM_REG, .index = k->instr->dst});
        return st;
    }
    if (op == GS_OP_MIX || op == GS_OP_MIX_T)
        return resolve_mix(k);
    if (gs_op_is_outer(op) || op == GS_OP_COLSUM) {
        k->step->width = width_of(k, &k->instr->a);
        return resolve_reduce(k);
    }
    if (gs_op_classof(op) == GS_CLASS_STATISTIC) {
        k->step->width = width_of(k, &k->instr->a);
        return resolve_statistic(k);
    }
    return gs_op_classof(op) == GS_CLASS_LOSS ? resolve_loss(k) : resolve_elementwise(k);
}

gs_status gs_cpu__resolve(gs_cpu *cpu, const gs_vertex_launch *l)
{
    const uint32_t n = l->stage->instrs;

    for (uint32_t i = 0; i < n; i++) {
        const lookup k = {.l = l, .step = &cpu->step[i], .instr = &l->stage->instr[i], .index = i};
        if (i >= cpu->steps)
            return refuse(&k, "not prepared for so many instructions");
        const gs_status st = resolve_step(&k);
        if (st != GS_OK)
            return st;
    }
    const uint32_t first = gs_cpu__find_runs(cpu, l);
    if (first < n) {
        const lookup k = {.l = l, .index = first};
        return refuse(&k, "not prepared for a gradient of this size");
    }
    return GS_OK;
}
