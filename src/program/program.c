/* program.c - making, freeing and counting programs. */
#include "program/program.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

gs_program *gs_program_new(void)
{
    gs_program *p = gs_calloc(1, sizeof(*p));
    if (p != NULL)
        p->logits = GS_NONE;
    return p;
}

void gs_program_free(gs_program *p)
{
    if (p == NULL)
        return;
    for (uint32_t s = 0; s < p->stages; s++) {
        gs_free(p->stage[s].reg);
        gs_free(p->stage[s].instr);
        gs_free(p->stage[s].edge_reg);
        gs_free(p->stage[s].edge_instr);
    }
    gs_free(p->array);
    gs_free(p->param);
    gs_free(p->table);
    gs_free(p->stage);
    gs_free(p->pass);
    gs_free(p);
}

gs_status gs_program_add_array(gs_program *p, uint32_t *out, const gs_array *a)
{
    gs_array *const arrays = gs_realloc(p->array, (p->arrays + 1ull) * sizeof(*a));

    if (arrays == NULL)
        return gs_fail(GS_ENOMEM, "no memory for an array of the program");
    p->array = arrays;
    p->array[p->arrays] = *a;
    *out = p->arrays++;
    return GS_OK;
}

uint32_t gs_program_pass(const gs_program *p, const char *name)
{
    for (uint32_t i = 0; i < p->passes; i++)
        if (strcmp(p->pass[i].name, name) == 0)
            return i;
    return GS_NONE;
}

uint64_t gs_param_elements(const gs_param *p)
{
    return (uint64_t)p->rows * p->cols;
}

uint64_t gs_program_place_params(const gs_program *p, uint64_t *at, uint64_t *all)
{
    uint64_t learned = 0, end = 0;

    for (int fixed = 0; fixed < 2; fixed++) {
        for (uint32_t i = 0; i < p->params; i++)
            if (p->param[i].fixed == fixed) {
                at[i] = end;
                end += gs_align_up(gs_param_elements(&p->param[i]), GS_PARAM_ALIGN);
            }
        learned = fixed ? learned : end;
    }
    *all = end;
    return learned;
}

static bool any_instr(const gs_program *p, uint32_t pass, bool (*is)(gs_op op))
{
    const gs_pass *q = &p->pass[pass];
    for (uint32_t k = q->first_stage; k < q->first_stage + q->stages; k++) {
        const gs_stage *s = &p->stage[k];
        for (uint32_t i = 0; i < s->instrs; i++)
            if (is(s->instr[i].op))
                return true;
        for (uint32_t i = 0; i < s->edge_instrs; i++)
            if (is(s->edge_instr[i].op))
                return true;
    }
    return false;
}

static bool is_statistic(gs_op op)
{
    return gs_op_classof(op) == GS_CLASS_STATISTIC;
}

static bool is_only_in_training(gs_op op)
{
    return is_statistic(op) || gs_op_is_random(op);
}

bool gs_program_needs_all_rows(const gs_program *p, uint32_t pass)
{
    return any_instr(p, pass, is_statistic);
}

bool gs_program_has_sequences(const gs_program *p)
{
    for (uint32_t k = 0; k < p->stages; k++)
        for (uint32_t i = 0; i < p->stage[k].sums; i++)
            if (gs_sum_is_sequence(&p->stage[k].sum[i]))
                return true;
    return false;
}

bool gs_program_train_differs(const gs_program *p, uint32_t pass)
{
    return any_instr(p, pass, is_only_in_training);
}

static double instr_flops(const gs_program *p, const gs_stage *s, const gs_instr *i)
{
    const gs_param *w;
    switch (i->op) {
    case GS_OP_MATMUL:
    case GS_OP_MATMUL_T:
        w = &p->param[i->b.index];
        return 2.0 * w->rows * w->cols;
    case GS_OP_FAN:
    case GS_OP_FAN_T:
        return 2.0 * (double)gs_param_elements(&p->param[i->b.index]);
    case GS_OP_FAN_OUTER:
        return 2.0 * (double)gs_param_elements(&p->param[i->dst]);
    case GS_OP_MIX: /* of the result, a multiplication and an addition each for every block of a */
        return 2.0 * s->reg[i->dst].width * p->param[i->b.index].rows;
    case GS_OP_MIX_T:
        return 2.0 * s->reg[i->dst].width * p->param[i->b.index].cols;
    case GS_OP_MIX_OUTER:
        return 2.0 * s->reg[i->a.index].width * p->param[i->dst].cols;
    case GS_OP_OUTER:
        return 2.0 * s->reg[i->a.index].width * s->reg[i->b.index].width;
    default:
        return 0.0;
    }
}

/* Products by the matrix of an edge's type, an edge: type by type, so dense. */
static double typed_flops(const gs_stage *s)
{
    double flops = 0.0;
    for (uint32_t i = 0; i < s->edge_instrs; i++) {
        const gs_instr *in = &s->edge_instr[i];
        if (gs_op_by_type(in->op))
            flops += 2.0 * s->edge_reg[in->dst].width * s->edge_reg[in->a.index].width;
    }
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].kind == GS_SUM_OUTER)
            flops += 2.0 * s->edge_reg[s->sum[i].value].width * s->edge_reg[s->sum[i].score].width;
    return flops;
}

/* Elements that an instruction of an edge program goes over. */
static double edge_width(const gs_stage *s, const gs_instr *i)
{
    double w = s->edge_reg[i->dst].width;
    if (gs_op_by_type(i->op))
        return 0.0;
    if (i->a.kind == GS_FROM_REG && s->edge_reg[i->a.index].width > w)
        w = s->edge_reg[i->a.index].width;
    return w;
}

/* A sum's own additions an edge: attention has an exponential and a rescaling besides. */
static double sum_flops(const gs_program *p, const gs_stage *s, const gs_sum *m)
{
    switch (m->kind) {
    case GS_SUM_ADD_TYPE: /* of rows as they are; others count what they add to */
        return gs_stage_sums_rows(s, (uint32_t)(m - s->sum)) ? s->edge_reg[m->value].width : s->reg[m->reg].width;
    case GS_SUM_ATTEND:
        return 2.0 * s->reg[m->reg].width + 4.0 * s->edge_reg[m->score].width;
    case GS_SUM_LSTM:
        return 2.0 * (double)gs_param_elements(&p->param[m->weight]);
    case GS_SUM_OUTER: /* counted with the dense products */
        return 0.0;
    case GS_SUM_LSTM_BACK: /* the states again, and two gradients */
        return 6.0 * (double)gs_param_elements(&p->param[m->weight]);
    default:
        return s->reg[m->reg].width;
    }
}

void gs_stage_flops(const gs_program *p, const gs_stage *s, uint64_t rows, uint64_t edges, double *dense, double *edge)
{
    double d = typed_flops(s) * (double)edges, e = 0.0;

    for (uint32_t i = 0; i < s->instrs; i++)
        d += instr_flops(p, s, &s->instr[i]) * (double)rows;
    for (uint32_t i = 0; i < s->sums; i++)
        e += sum_flops(p, s, &s->sum[i]) * ((double)edges + (s->sum[i].self ? (double)rows : 0.0));
    for (uint32_t i = 0; i < s->edge_instrs; i++) /* one an element of the wider side */
        if (!gs_edge_reg_only_rows(s, s->edge_instr[i].dst))
            e += (double)edges * edge_width(s, &s->edge_instr[i]);
    *dense = d;
    *edge = e;
}

static uint32_t widest_loss(const gs_program *p, bool columns)
{
    uint32_t most = 0;
    for (uint32_t s = 0; s < p->stages; s++)
        for (uint32_t i = 0; i < p->stage[s].instrs; i++) {
            const gs_instr *const in = &p->stage[s].instr[i];
            if (gs_op_classof(in->op) == GS_CLASS_LOSS && (!columns || gs_op_has_column_sums(in->op)) &&
                p->stage[s].reg[in->a.index].width > most)
                most = p->stage[s].reg[in->a.index].width;
        }
    return most;
}

uint32_t gs_program_loss_columns(const gs_program *p) { return widest_loss(p, true); }
uint32_t gs_program_loss_width(const gs_program *p) { return widest_loss(p, false); }
uint32_t gs_program_loss_classes(const gs_program *p)
{
    return gs_program_loss_columns(p) > 0 ? 0 : gs_program_loss_width(p); /* all losses of a program are of one task */
}
