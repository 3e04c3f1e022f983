/* task_work.c - what a compute task amounts to, in the terms of the cost model. */
#include <string.h>

#include "base/size.h"
#include "schedule/simulate.h"

static double sum_columns(const gs_stage *s, uint32_t sum)
{
    return s->reg[s->sum[sum].reg].width;
}

static uint32_t operand_width(const gs_stage *s, const gs_program *p, const gs_operand *o)
{
    return o->kind == GS_FROM_REG ? s->reg[o->index].width : o->kind == GS_FROM_PARAM ? p->param[o->index].cols : 0;
}

void gs_vertex_work(gs_work *w, const gs_program *p, const gs_stage *s, double rows)
{
    for (uint32_t i = 0; i < s->instrs; i++) {
        const gs_instr *const in = &s->instr[i];
        const uint32_t a = operand_width(s, p, &in->a), b = operand_width(s, p, &in->b);
        if (in->op == GS_OP_OUTER)
            w->amount[3] += 2 * rows * a * b;
        else if (in->op == GS_OP_FAN_OUTER)
            w->amount[3] += 2 * rows * (double)gs_param_elements(&p->param[in->dst]);
        else if (in->op == GS_OP_MIX_OUTER)
            w->amount[1] += rows * a * p->param[in->dst].cols;
        else if (in->op == GS_OP_MIX || in->op == GS_OP_MIX_T)
            w->amount[1] += rows * s->reg[in->dst].width * p->param[in->b.index].rows;
        else if (gs_op_classof(in->op) == GS_CLASS_MATMUL)
            w->amount[2] += 2 * rows * (double)p->param[in->b.index].rows * p->param[in->b.index].cols;
        else /* a reduction and a loss without a gradient have no register to write */
            w->amount[gs_op_is(in->op, GS_FACT_HARD) ? 5 : 1] +=
                rows * GS_MAX(a, gs_op_into_param(in->op) || in->dst == GS_NONE ? 0 : s->reg[in->dst].width);
    }
    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind != GS_REG_TEMP || s->reg[r].array != GS_NONE)
            w->amount[4] += rows * s->reg[r].width * gs_dtype_bytes(s->reg[r].dtype) / (double)sizeof(float);
}

static void row_sum_work(gs_work *w, const gs_program *p, const gs_task *t, const gs_chunk *c)
{
    const gs_stage *const s = &p->stage[t->stage];
    gs_row_sum rows = {0};
    (void)gs_sum_of_rows(&rows, s, t->sum);
    const gs_array *const a = &p->array[rows.array];
    const double width = GS_MIN(sum_columns(s, t->sum), (double)a->width);
    w->kind = GS_WORK_SUM;
    w->amount[1] = (double)c->edges;
    w->amount[2] = (double)c->edges * width;
    w->amount[3] = c->operands * width * (double)gs_dtype_bytes(a->dtype) / sizeof(float);
    w->amount[4] = c->targets * width;
}

static void edge_program_work(gs_work *w, const gs_program *p, const gs_stage *s, double edges)
{
    double computed = 0, gathered = 0, hard = 0, products = 0;
    for (uint32_t i = 0; i < s->edge_instrs; i++) {
        const gs_instr *const in = &s->edge_instr[i];
        if (gs_edge_reg_only_rows(s, in->dst))
            continue;
        if (gs_op_by_type(in->op)) {
            products += 2.0 * s->edge_reg[in->dst].width * s->edge_reg[in->a.index].width;
            continue;
        }
        *(gs_op_is(in->op, GS_FACT_HARD) ? &hard : &computed) +=
            GS_MAX(s->edge_reg[in->dst].width, in->a.kind == GS_FROM_REG ? s->edge_reg[in->a.index].width : 0);
    }
    for (gs_array_use u = {0}; gs_stage_next_use(s, &u);)
        gathered += u.role != GS_USE_OPERAND || u.sum != GS_NONE
                        ? 0
                        : s->edge_reg[u.reg].width * gs_dtype_bytes(p->array[u.array].dtype) / (double)sizeof(float);
    for (uint32_t i = 0; i < s->sums; i++) {
        if (s->sum[i].kind == GS_SUM_OUTER) { /* rows are put in order by type before */
            const double in = s->edge_reg[s->sum[i].score].width, out = s->edge_reg[s->sum[i].value].width;
            products += 2 * in * out;
            computed += in + out;
            continue;
        }
        computed += gs_stage_sums_rows(s, i) ? 0 : sum_columns(s, i);
        hard += s->sum[i].kind == GS_SUM_ATTEND ? s->edge_reg[s->sum[i].score].width : 0;
    }
    w->kind = GS_WORK_EDGES;
    w->amount[1] = edges;
    w->amount[2] = edges * computed;
    w->amount[3] = edges * gathered;
    w->amount[4] = edges * hard;
    w->amount[5] = edges * products;
}

/* An LSTM's steps are dense products; a derivative does them again, and two more. */
static void sequence_work(gs_work *w, const gs_program *p, const gs_sum *m, double edges, bool back)
{
    const double width = p->param[m->weight].cols;
    w->kind = GS_WORK_VERTEX;
    w->amount[5] = edges * (back ? 2 : 1) * 5 * width;
    w->amount[2] = edges * (back ? 2 : 1) * 8 * width * width;
    w->amount[3] = back && m->learned ? edges * 8 * width * width : 0;
    w->amount[4] = edges * (back ? 3 : 1) * 4 * width;
}

void gs_stage_work_find(gs_stage_work *out, const gs_program *p, const gs_stage *s)
{
    *out = (gs_stage_work){.row = {.kind = GS_WORK_VERTEX, .amount = {1}}, .edge = {.amount = {1}}};
    gs_vertex_work(&out->row, p, s, 1);
    if (s->sums == 0 || !gs_sum_is_sequence(&s->sum[0]))
        edge_program_work(&out->edge, p, s, 1);
}

/* Amounts are whole numbers, or quarters, so those of many are exact. */
static void times(gs_work *w, const gs_work *one, double many)
{
    *w = *one;
    for (uint32_t k = 1; k < GS_WORK_AMOUNTS; k++)
        w->amount[k] *= many;
}

void gs_task_work(gs_work *w, const gs_program *p, const gs_edge_set *set, uint32_t parts, const gs_task *t)
{
    gs_stage_work of;
    if (t->kind == GS_TASK_VERTEX || (t->kind == GS_TASK_EDGES && !gs_task_sums_rows(t)))
        gs_stage_work_find(&of, p, &p->stage[t->stage]);
    gs_task_work_by(w, p, &of, set, parts, t);
}

void gs_task_work_by(gs_work *w, const gs_program *p, const gs_stage_work *of, const gs_edge_set *set, uint32_t parts,
                     const gs_task *t)
{
    const gs_stage *const s = &p->stage[t->stage];
    const bool edges = t->kind == GS_TASK_EDGES || t->kind == GS_TASK_UNROLL || t->kind == GS_TASK_BACK;
    const uint64_t at = (uint64_t)t->target * parts + t->operand;
    const gs_chunk *const c = edges ? &set[t->file - p->arrays].chunk[at] : NULL;

    *w = (gs_work){.kind = GS_WORK_MEMORY, .amount = {1}};
    switch (t->kind) {
    case GS_TASK_ZERO:
        w->amount[1] = (double)t->bytes / sizeof(float);
        break;
    case GS_TASK_SELF:
    case GS_TASK_BEGIN:
    case GS_TASK_FINISH:
        w->amount[1] = (t->kind == GS_TASK_SELF ? 3 : 1) * (double)t->rows * sum_columns(s, t->sum);
        break;
    case GS_TASK_EDGES:
        if (gs_task_sums_rows(t))
            row_sum_work(w, p, t, c);
        else if (gs_sum_is_sequence(&s->sum[0]))
            sequence_work(w, p, &s->sum[0], (double)c->edges, false);
        else
            times(w, &of->edge, (double)c->edges);
        break;
    case GS_TASK_COPY:
        w->amount[1] = 2 * (double)t->bytes / sizeof(float);
        break;
    case GS_TASK_UNROLL:
    case GS_TASK_BACK:
        sequence_work(w, p, &s->sum[0], (double)c->edges, t->kind == GS_TASK_BACK);
        break;
    case GS_TASK_VERTEX:
        times(w, &of->row, t->rows);
        break;
    default:
        break;
    }
}
