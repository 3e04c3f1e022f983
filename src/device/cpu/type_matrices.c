/* The matrices of edges' types, transposed where edges are multiplied by so: made once a pass, one after the other in
 * the order of the stage's instructions.
 */
#include "device/cpu/type_matrices.h"

static bool is_transposed(const gs_stage *stage, const gs_instr *in, uint32_t params)
{
    return in->op == GS_OP_BY_TYPE_T && in->b.kind == GS_FROM_PARAM && in->b.index < params &&
           in->dst < stage->edge_regs;
}

uint64_t gs_cpu__transposed_matrix_floats(const gs_program *p, const gs_stage *stage)
{
    uint64_t floats = 0;
    for (uint32_t i = 0; i < stage->edge_instrs; i++)
        if (is_transposed(stage, &stage->edge_instr[i], p->params))
            floats += gs_param_elements(&p->param[stage->edge_instr[i].b.index]);
    return floats;
}

const float *gs_cpu__transposed_matrices(const gs_cpu *cpu, const gs_edge_program_launch *l, const gs_instr *in)
{
    const gs_stage *const stage = l->stage;
    const float *at = cpu->room[GS_CPU_MATRICES].at;
    for (const gs_instr *i = stage->edge_instr; i < in; i++)
        if (is_transposed(stage, i, l->program->params))
            at += gs_param_elements(&l->program->param[i->b.index]);
    return at;
}

void gs_cpu__transpose_matrices(gs_cpu *cpu, const gs_edge_program_launch *l)
{
    const gs_stage *const stage = l->stage;
    if (cpu->room[GS_CPU_MATRICES].floats < gs_cpu__transposed_matrix_floats(l->program, stage) || l->param == NULL ||
        (cpu->in_pass && cpu->matrix_stage == stage))
        return;
    for (uint32_t k = 0; k < stage->edge_instrs; k++) {
        const gs_instr *const i = &stage->edge_instr[k];
        if (!is_transposed(stage, i, l->program->params))
            continue;
        const gs_param *const w = &l->program->param[i->b.index];
        const uint32_t in = stage->edge_reg[i->dst].width, out = w->cols;
        const float *const from = l->param[i->b.index];
        float *const all = cpu->room[GS_CPU_MATRICES].at;
        float *const to = all + (gs_cpu__transposed_matrices(cpu, l, i) - all);
        for (uint64_t m = 0; m + in <= w->rows; m += in)
            for (uint32_t r = 0; r < in; r++)
                for (uint32_t c = 0; c < out; c++)
                    to[m * out + (uint64_t)c * in + r] = from[(m + r) * out + c];
    }
    cpu->matrix_stage = stage;
}
