/* Values of an edge program while it is planned: where their rows are, and the steps that copy, multiply or combine
 * them. A value is copied to a slot where a step wants rows contiguous: operators of one operand, and all of them where
 * rows are narrower than a vector and no half of one.
 */
#include <assert.h>

#include "device/cpu/edge_values.h"

void gs_cpu__refuse_edges(gs_cpu_planner *p, const char *what)
{
    if (p->st == GS_OK)
        p->st = gs_fail(GS_EINVAL, "stage \"%s\", %s %u: %s", p->l->stage->name, p->noun, p->index, what);
}

static gs_cpu_edge_value new_slot(gs_cpu_planner *p, uint32_t width)
{
    gs_cpu_edge_plan *const plan = p->plan;
    if (plan->slots == p->cpu->edge_steps) {
        gs_cpu__refuse_edges(p, "not prepared for so many values");
        return (gs_cpu_edge_value){.form = GS_CPU_EDGE_NOTHING};
    }
    plan->slot[plan->slots] = (gs_cpu_edge_slot){.width = width};
    return (gs_cpu_edge_value){.form = GS_CPU_EDGE_SLOT, .width = width, .slot = plan->slots++};
}

void gs_cpu__emit(gs_cpu_planner *p, gs_cpu_edge_step step)
{
    gs_cpu_edge_plan *const plan = p->plan;
    if (p->st != GS_OK)
        return;
    if (plan->steps == p->cpu->edge_steps) {
        gs_cpu__refuse_edges(p, "not prepared for so many steps");
        return;
    }
    plan->step[plan->steps++] = step;
}

gs_cpu_edge_value gs_cpu__emit_value(gs_cpu_planner *p, gs_cpu_edge_step step)
{
    const gs_cpu_edge_value v = new_slot(p, step.width);
    step.dst = v.slot;
    gs_cpu__emit(p, step);
    return v;
}

/* True where rows of `width` lie one after the other, or are one number for all. */
static bool is_flat(const gs_cpu_edge_value *v, uint32_t width)
{
    const bool contiguous = v->form == GS_CPU_EDGE_SLOT || v->form == GS_CPU_EDGE_WEIGHT;
    return (contiguous && v->width == width) || (v->form == GS_CPU_EDGE_FIXED && v->width == 1);
}

gs_cpu_edge_value gs_cpu__widened(gs_cpu_planner *p, gs_cpu_edge_value v)
{
    const gs_cpu_edge_plan *const plan = p->plan;
    for (uint32_t i = 0; v.half && i < plan->steps; i++)
        if (plan->step[i].kind == GS_CPU_EDGE_COPY && plan->step[i].a.half && plan->step[i].a.p == v.p &&
            plan->step[i].a.form == v.form)
            return (gs_cpu_edge_value){.form = GS_CPU_EDGE_SLOT, .width = v.width, .slot = plan->step[i].dst};
    return !v.half ? v
                   : gs_cpu__emit_value(p, (gs_cpu_edge_step){.kind = GS_CPU_EDGE_COPY, .width = v.width, .a = v});
}

/* The value, stretched to `width`, in a slot. */
static gs_cpu_edge_value copied(gs_cpu_planner *p, gs_cpu_edge_value v, uint32_t width)
{
    v = gs_cpu__widened(p, v);
    if (v.form == GS_CPU_EDGE_SLOT && v.width == width)
        return v;
    return gs_cpu__emit_value(p, (gs_cpu_edge_step){.kind = GS_CPU_EDGE_COPY, .width = width, .a = v});
}

gs_cpu_edge_value gs_cpu__contiguous(gs_cpu_planner *p, gs_cpu_edge_value v, uint32_t width)
{
    return is_flat(&v, width) && v.form != GS_CPU_EDGE_FIXED ? v : copied(p, v, width);
}

gs_cpu_edge_value gs_cpu__flattened(gs_cpu_planner *p, gs_cpu_edge_value v, uint32_t width)
{
    return is_flat(&v, width) ? v : copied(p, v, width);
}

gs_cpu_edge_value gs_cpu__full_rows(gs_cpu_planner *p, gs_cpu_edge_value v, uint32_t width)
{
    return v.width == width && !v.half ? v : copied(p, v, width);
}

gs_cpu_edge_value gs_cpu__stored_rows(gs_cpu_planner *p, gs_cpu_edge_value v, uint32_t width)
{
    return v.half && v.width == width && width >= p->cpu->k->lanes ? v : gs_cpu__full_rows(p, v, width);
}

gs_cpu_edge_value gs_cpu__register_value(gs_cpu_planner *p, uint32_t index, uint32_t *width)
{
    const gs_stage *const stage = p->l->stage;
    assert(index < stage->edge_regs && p->cpu->edge_state[index].ready);
    gs_cpu_edge_state *const s = &p->cpu->edge_state[index];
    *width = stage->edge_reg[index].width;
    if (s->b.form != GS_CPU_EDGE_NOTHING) {
        s->a = gs_cpu__multiply(p, s->a, s->b, *width);
        s->b = (gs_cpu_edge_value){.form = GS_CPU_EDGE_NOTHING};
    }
    return s->a;
}

gs_cpu_edge_value gs_cpu__operand_value(gs_cpu_planner *p, const gs_operand *o, uint32_t *width)
{
    const gs_program *const program = p->l->program;
    if (o->kind == GS_FROM_REG)
        return gs_cpu__register_value(p, o->index, width);
    *width = 1;
    if (o->kind == GS_FROM_CONST)
        return (gs_cpu_edge_value){.form = GS_CPU_EDGE_FIXED, .width = 1, .p = &o->value};
    assert(o->kind == GS_FROM_PARAM && o->index < program->params && program->param[o->index].dims == 1);
    *width = program->param[o->index].cols;
    return (gs_cpu_edge_value){.form = GS_CPU_EDGE_FIXED, .width = *width, .p = p->l->param[o->index]};
}

gs_cpu_edge_value gs_cpu__stretched(gs_cpu_planner *p, const gs_operand *o, uint32_t width)
{
    uint32_t own = width;
    const gs_cpu_edge_value v = gs_cpu__operand_value(p, o, &own);
    assert(own == width || own == 1);
    return v;
}

void gs_cpu__swap_values(gs_cpu_edge_value *a, gs_cpu_edge_value *b)
{
    const gs_cpu_edge_value t = *a;
    *a = *b;
    *b = t;
}

bool gs_cpu__takes_groups(const gs_cpu_planner *p, uint32_t width, uint32_t each)
{
    const uint32_t lanes = p->cpu->k->lanes;
    return width % lanes == 0 && (each % lanes == 0 || 2 * each == lanes);
}

gs_cpu_edge_value gs_cpu__binary(gs_cpu_planner *p, gs_op op, gs_cpu_edge_value a, gs_cpu_edge_value b, uint32_t width)
{
    gs_cpu_edge_step s = {.kind = GS_CPU_EDGE_FLAT, .op = op, .width = width};
    const uint32_t lanes = p->cpu->k->lanes;
    const bool flat = is_flat(&a, width) && is_flat(&b, width);
    const bool fills = width >= lanes || 2 * width == lanes; /* a vector, or two edges together */

    if (p->st != GS_OK)
        return (gs_cpu_edge_value){.form = GS_CPU_EDGE_NOTHING};
    a = gs_cpu__widened(p, a);
    b = gs_cpu__widened(p, b);
    if (!flat && !fills) {
        a = gs_cpu__flattened(p, a, width);
        b = gs_cpu__flattened(p, b, width);
    } else if (!flat) {
        s.kind = GS_CPU_EDGE_BINARY;
        if (op == GS_OP_MUL && a.width != width)
            gs_cpu__swap_values(&a, &b);
        a = a.width == 1 && b.width == width ? a : gs_cpu__full_rows(p, a, width);
        if (b.width != 1 && !(op == GS_OP_MUL && gs_cpu__takes_groups(p, width, width / b.width)))
            b = gs_cpu__full_rows(p, b, width);
    }
    s.a = a;
    s.b = b;
    return gs_cpu__emit_value(p, s);
}

gs_cpu_edge_value gs_cpu__multiply(gs_cpu_planner *p, gs_cpu_edge_value a, gs_cpu_edge_value b, uint32_t width)
{
    return gs_cpu__binary(p, GS_OP_MUL, a, b, width);
}

void gs_cpu__note_types(gs_cpu_planner *p, uint32_t times, uint32_t rows)
{
    const gs_edges *const e = &p->l->edges;
    if (e->type == NULL || (e->type_bytes != 1 && e->type_bytes != 2) || times == 0 ||
        (p->plan->types != 0 && p->plan->types != times))
        gs_cpu__refuse_edges(p, "columns by the type of edges that have none, or another number of types");
    else if ((uint64_t)times * rows > UINT32_MAX)
        gs_cpu__refuse_edges(p, "more rows by type than 2^32");
    p->plan->types = times;
}
