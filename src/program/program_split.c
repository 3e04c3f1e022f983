/* program_split.c - stages in two: an edge pass that stores its sums, and a vertex program that loads them.
 *
 * Devices that are not alike may then have other columns of the one than of the other: sums go to where products are
 * fast, or rows that products made narrow to where edges are (schedule/deals.c).
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "program/program.h"

/* All that its edge pass makes is a register that its vertex program reads. */
static bool can_split(const gs_stage *s)
{
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].kind == GS_SUM_OUTER || s->sum[i].kind == GS_SUM_LSTM_BACK)
            return false;
    return s->sums > 0 && s->instrs > 0;
}

static bool is_setup(const gs_program *p, uint32_t stage)
{
    const uint32_t setup = gs_program_pass(p, "setup");
    return setup != GS_NONE && stage >= p->pass[setup].first_stage &&
           stage - p->pass[setup].first_stage < p->pass[setup].stages;
}

/* Register `from` of a stage, a sum's, becomes register *to of the one that makes sums, which stores it: *array. */
static gs_status store_sum(gs_program *p, gs_stage *sums, const gs_reg *from, uint32_t stage, uint32_t *to,
                           uint32_t *array)
{
    gs_array a = {.dtype = GS_F32, .width = from->width, .store_id = -1};
    gs_status st;

    snprintf(a.name, sizeof(a.name), "sums.%u.%u", stage, sums->instrs);
    if ((st = gs_program_add_array(p, array, &a)) != GS_OK)
        return st;
    *to = sums->regs;
    sums->reg[sums->regs++] = *from;
    sums->reg[sums->regs++] = (gs_reg){GS_REG_TEMP, GS_F32, from->width, *array};
    sums->instr[sums->instrs++] = (gs_instr){.op = GS_OP_MUL, .dst = *to + 1, .a = {.kind = GS_FROM_REG, .index = *to},
                                             .b = {.kind = GS_FROM_CONST, .value = 1}};
    return GS_OK;
}

/* `whole` gives its edge pass to *sums, and loads what that stores. */
static gs_status split_stage(gs_program *p, gs_stage *sums, gs_stage *whole, uint32_t stage)
{
    gs_status st = GS_OK;

    *sums = *whole;
    snprintf(sums->name, sizeof(sums->name), "%.55s, sums", whole->name);
    sums->regs = sums->instrs = 0;
    sums->reg = gs_calloc(4ull * GS_STAGE_SUMS, sizeof(*sums->reg));
    sums->instr = gs_calloc(2ull * GS_STAGE_SUMS, sizeof(*sums->instr));
    whole->sums = whole->edge_regs = whole->edge_instrs = 0;
    whole->edge_reg = NULL;
    whole->edge_instr = NULL;
    if (sums->reg == NULL || sums->instr == NULL)
        return gs_fail(GS_ENOMEM, "no memory for a stage of the program");
    for (uint32_t i = 0; i < sums->sums && st == GS_OK; i++) {
        uint32_t *const of[] = {&sums->sum[i].reg, &sums->sum[i].lse};
        for (int k = 0; k < (sums->sum[i].kind == GS_SUM_ATTEND ? 2 : 1) && st == GS_OK; k++) {
            gs_reg *const r = &whole->reg[*of[k]];
            uint32_t array;
            if ((st = store_sum(p, sums, r, stage, of[k], &array)) == GS_OK)
                *r = (gs_reg){GS_REG_LOAD, GS_F32, r->width, array};
        }
    }
    return st;
}

gs_status gs_program_split(gs_program *p)
{
    gs_stage *const stages = gs_calloc(2ull * p->stages + 1, sizeof(*stages));
    uint32_t *const at = gs_calloc(p->stages + 1ull, sizeof(*at));
    uint32_t n = 0;
    gs_status st = GS_OK;

    if (stages == NULL || at == NULL) {
        gs_free(stages);
        gs_free(at);
        return gs_fail(GS_ENOMEM, "no memory for the stages of the program");
    }
    for (uint32_t s = 0; s < p->stages; s++) {
        at[s] = n;
        if (st == GS_OK && can_split(&p->stage[s]) && !is_setup(p, s))
            st = split_stage(p, &stages[n++], &p->stage[s], s);
        stages[n++] = p->stage[s];
    }
    at[p->stages] = n;
    for (uint32_t i = 0; i < p->passes; i++) {
        const uint32_t first = p->pass[i].first_stage, end = first + p->pass[i].stages;
        p->pass[i].first_stage = at[first];
        p->pass[i].stages = at[end] - at[first];
    }
    gs_free(at);
    gs_free(p->stage);
    p->stage = stages;
    p->stages = n;
    return st;
}
