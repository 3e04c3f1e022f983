#include "session/fault.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/session.h"

/* ---- words ---- */

/* A number that stands between '.'s, or behind "layer". */
const char *gs_session_layer_of(const char *name, char *buf, size_t bytes)
{
    const char *at = strstr(name, "layer");

    *buf = '\0';
    at = at != NULL && isdigit((unsigned char)at[5]) ? at + 5 : NULL;
    for (const char *dot = strchr(name, '.'); at == NULL && dot != NULL; dot = strchr(dot + 1, '.')) {
        const size_t digits = strspn(dot + 1, "0123456789");
        if (digits > 0 && dot[1 + digits] == '.')
            at = dot + 1;
    }
    if (at != NULL)
        snprintf(buf, bytes, "layer %lu, ", strtoul(at, NULL, 10));
    return buf;
}

static const char *value_text(float v) { return isnan(v) ? "not a number" : v > 0 ? "infinite" : "-infinite"; }

/* ---- what a register is made of ---- */

static const gs_instr *writer_of(const gs_stage *s, uint32_t reg)
{
    for (uint32_t i = 0; i < s->instrs; i++)
        if (!gs_op_into_param(s->instr[i].op) && s->instr[i].dst == reg)
            return &s->instr[i];
    return NULL;
}

/* The parameter nearest to the register among what it is made of in its stage, or GS_NONE. */
static uint32_t param_of(const gs_stage *s, uint32_t reg, uint32_t depth)
{
    const gs_instr *const in = writer_of(s, reg);
    uint32_t found = GS_NONE;

    for (uint32_t k = 0; in != NULL && k < 3; k++)
        if (gs_instr_operand(in, k)->kind == GS_FROM_PARAM)
            return gs_instr_operand(in, k)->index;
    for (uint32_t k = 0; in != NULL && k < 3 && depth > 0 && found == GS_NONE; k++)
        if (gs_instr_operand(in, k)->kind == GS_FROM_REG)
            found = param_of(s, gs_instr_operand(in, k)->index, depth - 1);
    return found;
}

/* The array whose rows the sum adds up, or the first that its edges read. */
static uint32_t summed_array(const gs_stage *s, uint32_t reg)
{
    uint32_t found = GS_NONE;

    for (gs_array_use u = {0}; gs_stage_next_use(s, &u);) {
        if (u.role != GS_USE_OPERAND && u.role != GS_USE_TARGET)
            continue;
        if (u.sum != GS_NONE && s->sum[u.sum].reg == reg)
            return u.array;
        found = found == GS_NONE ? u.array : found;
    }
    return found;
}

#define LONGEST_WAY 32u

static void describe(const gs_program *p, const gs_exec_fault *f, char *text)
{
    const gs_stage *const s = &p->stage[f->stage];
    const gs_reg *const r = &s->reg[f->reg];
    const bool is_sum = r->kind == GS_REG_SUM;
    const uint32_t array = is_sum ? summed_array(s, f->reg) : r->array;
    const uint32_t param = f->stored ? param_of(s, f->reg, LONGEST_WAY) : GS_NONE;
    const char *const name = array != GS_NONE ? p->array[array].name : "";
    char layer[32];

    if (*gs_session_layer_of(name, layer, sizeof(layer)) == '\0' && param != GS_NONE)
        gs_session_layer_of(p->param[param].name, layer, sizeof(layer));
    snprintf(text, GS_FAULT_TEXT, "%s%s %s (stage %s), whose column %u is %s%s%s", layer,
             is_sum ? "the sum over edges of" : "array", name, s->name, f->column, value_text(f->value),
             param != GS_NONE ? ", of parameter " : "", param != GS_NONE ? p->param[param].name : "");
}

/* ---- looking ---- */

/* Looks where a training pass left all arrays finite. */
static void look_at_gradients(const gs_session *s, char *text)
{
    const gs_params *const params = &s->run.params;
    const uint32_t bad = gs_params_find_nonfinite(params->grad, s->program);
    char layer[32];

    if (bad != GS_NONE)
        snprintf(text, GS_FAULT_TEXT, "%sthe gradient of parameter %s",
                 gs_session_layer_of(s->program->param[bad].name, layer, sizeof(layer)), s->program->param[bad].name);
}

void gs_session_find_fault(gs_session *s, uint32_t pass, uint32_t epoch, char *text)
{
    gs_exec_watch *watch = NULL;
    gs_exec_stats stats;

    *text = '\0';
    if (gs_exec_watch_open(&watch) != GS_OK)
        return;
    const gs_status ran = gs_session_watch(s, pass, epoch, watch, &stats);
    const gs_exec_fault fault = gs_exec_watch_close(watch);
    if (fault.stage != GS_NONE)
        describe(s->program, &fault, text);
    else if (ran == GS_OK && pass == s->pass.train && !gs_session_steps_on_device(s))
        look_at_gradients(s, text);
}

gs_status gs_session_explain_logits(gs_session *s, gs_status st)
{
    char where[GS_FAULT_TEXT], text[GS_FAULT_TEXT];

    if (st != GS_EDEVICE)
        return st;
    snprintf(text, sizeof(text), "%s", gs_last_error());
    gs_session_find_fault(s, s->pass.predict, 0, where);
    return gs_fail(st, "%s%s%s", text, *where != '\0' ? "; first in " : "", where);
}
