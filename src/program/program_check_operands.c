/* program_check_operands.c - what vertex and edge programs ask alike of an instruction. */
#include "program/program_check_internal.h"

bool gs_program__param_is_there(const gs_checker *c, uint32_t i)
{
    if (i >= c->p->params)
        return false;
    return c->p->param[i].statistic == GS_STATISTIC_NONE || c->made[i] < c->stage;
}

gs_status gs_program__check_width(const gs_checker *c, const gs_instr *i, uint32_t in, uint32_t width)
{
    bool fits = width == in;
    const gs_op_form form = gs_op_form_of(i->op);
    if (form == GS_FORM_ROW)
        fits = width == 1;
    else if (form == GS_FORM_FEWER)
        fits = width != 0 && in % width == 0;
    else if (form == GS_FORM_MORE)
        fits = width != 0 && width % in == 0;
    return fits ? GS_OK : FAIL(c, "%s gives width %u, its register has %u", gs_op_name(i->op), in, width);
}

gs_status gs_program__check_probability(const gs_checker *c, const gs_instr *i)
{
    if (!(i->alpha >= 0.0f && i->alpha < 1.0f))
        return FAIL(c, "%s with p = %g", gs_op_name(i->op), (double)i->alpha);
    return GS_OK;
}
