/* program_uses.c - which arrays does a stage read and write, and sums of rows as they are. */
#include "program/program.h"

bool gs_sum_of_rows(gs_row_sum *out, const gs_stage *s, uint32_t sum)
{
    const gs_sum *const m = &s->sum[sum];
    if (m->kind != GS_SUM_ROWS && m->kind != GS_SUM_SPLIT && m->kind != GS_SUM_PICK)
        return false;
    *out = (gs_row_sum){.array = m->array,
                        .scale = m->scaled ? m->scale : GS_NONE,
                        .types = m->kind == GS_SUM_SPLIT  ? GS_TYPES_OF_SUM
                                 : m->kind == GS_SUM_PICK ? GS_TYPES_OF_ROWS
                                                          : GS_TYPES_NONE};
    return true;
}

bool gs_stage_sums_rows(const gs_stage *s, uint32_t sum)
{
    gs_row_sum rows;
    return gs_sum_of_rows(&rows, s, sum);
}

bool gs_stage_has_edge_program(const gs_stage *s)
{
    for (uint32_t i = 0; i < s->sums; i++)
        if (!gs_stage_sums_rows(s, i))
            return true;
    return false;
}

/* A sum has four uses at the most: operand rows, their scale, and own rows of both. */
enum { SUM_OPERAND, SUM_SCALE, SUM_OWN, SUM_OWN_SCALE, SUM_USES };

static bool use_of_sum(const gs_stage *s, uint32_t sum, uint32_t which, gs_array_use *u)
{
    const gs_sum *const m = &s->sum[sum];
    gs_row_sum rows;

    u->sum = sum;
    if (m->kind == GS_SUM_LSTM_BACK) {
        u->role = GS_USE_BACK;
        u->array = m->array;
        return which == SUM_OPERAND;
    }
    if (!gs_sum_of_rows(&rows, s, sum) || (!m->self && (which == SUM_OWN || which == SUM_OWN_SCALE)))
        return false;
    u->role = which == SUM_OPERAND ? GS_USE_OPERAND : which == SUM_SCALE ? GS_USE_SCALE : GS_USE_OWN;
    u->array = which == SUM_OPERAND || which == SUM_OWN ? rows.array : rows.scale;
    return u->array != GS_NONE;
}

static bool use_of_edge_reg(const gs_stage *s, uint32_t reg, gs_array_use *u)
{
    const gs_edge_reg *const r = &s->edge_reg[reg];
    u->role = r->kind == GS_EDGE_OPERAND ? GS_USE_OPERAND : GS_USE_TARGET;
    u->array = r->array;
    u->reg = reg;
    return r->kind == GS_EDGE_OPERAND || r->kind == GS_EDGE_TARGET;
}

static bool use_of_reg(const gs_stage *s, uint32_t reg, gs_array_use *u)
{
    const gs_reg *const r = &s->reg[reg];
    u->role = r->kind == GS_REG_LOAD ? GS_USE_LOAD : GS_USE_STORE;
    u->array = r->array;
    u->reg = reg;
    return r->kind != GS_REG_SUM && r->array != GS_NONE;
}

bool gs_stage_next_use(const gs_stage *s, gs_array_use *u)
{
    const uint32_t sums = s->sums * SUM_USES, edges = sums + s->edge_regs, all = edges + s->regs;
    while (u->next < all) {
        const uint32_t k = u->next++;
        u->sum = u->reg = GS_NONE;
        if (k < sums ? use_of_sum(s, k / SUM_USES, k % SUM_USES, u)
                     : k < edges ? use_of_edge_reg(s, k - sums, u) : use_of_reg(s, k - edges, u))
            return true;
    }
    return false;
}
