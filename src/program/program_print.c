/* program_print.c - a program as text, for people and for tests' messages. */
#include "program/program.h"

static void print_operand(const gs_program *p, const gs_operand *o, char reg, FILE *out)
{
    switch (o->kind) {
    case GS_FROM_REG:
        fprintf(out, " %c%u", reg, o->index);
        return;
    case GS_FROM_PARAM:
        fprintf(out, " %s", o->index < p->params ? p->param[o->index].name : "?");
        return;
    case GS_FROM_CONST:
        fprintf(out, " %g", (double)o->value);
        return;
    case GS_FROM_NONE:
        return;
    }
}

static const char *array_name(const gs_program *p, uint32_t a)
{
    return a < p->arrays ? p->array[a].name : "?";
}

static void print_constants(const gs_instr *i, FILE *out)
{
    if (gs_op_is_random(i->op))
        fprintf(out, " p %g site %u%s", (double)i->alpha, i->site, i->self ? " self" : "");
    if (i->op == GS_OP_PART)
        fprintf(out, " from %u", i->site);
    if (gs_op_is(i->op, GS_FACT_ALPHA))
        fprintf(out, " alpha %g", (double)i->alpha);
}

static void print_instr(const gs_program *p, const gs_stage *s, const gs_instr *i, FILE *out)
{
    const gs_op_class cls = gs_op_classof(i->op);

    if (cls == GS_CLASS_STATISTIC)
        fprintf(out, "    %s = %s", i->dst < p->params ? p->param[i->dst].name : "?", gs_op_name(i->op));
    else if (cls == GS_CLASS_REDUCE)
        fprintf(out, "    grad(%s) += %s", i->dst < p->params ? p->param[i->dst].name : "?", gs_op_name(i->op));
    else if (i->dst == GS_NONE)
        fprintf(out, "    metrics += %s", gs_op_name(i->op));
    else
        fprintf(out, "    r%u = %s", i->dst, gs_op_name(i->op));
    print_operand(p, &i->a, 'r', out);
    print_operand(p, &i->b, 'r', out);
    print_operand(p, &i->c, 'r', out);
    print_constants(i, out);
    if (!gs_op_into_param(i->op) && i->dst < s->regs) {
        fprintf(out, " : [%u]", s->reg[i->dst].width);
        if (s->reg[i->dst].array != GS_NONE)
            fprintf(out, " -> store %s", array_name(p, s->reg[i->dst].array));
    }
    fputc('\n', out);
}

static void print_edge_program(const gs_program *p, const gs_stage *s, FILE *out)
{
    for (uint32_t r = 0; r < s->edge_regs; r++) {
        const gs_edge_reg *g = &s->edge_reg[r];
        if (gs_edge_reg_only_rows(s, r))
            continue; /* its sums say what they are of */
        if (g->kind == GS_EDGE_WEIGHT)
            fprintf(out, "    e%u = weight : [1]\n", r);
        else if (g->kind == GS_EDGE_FEATURES)
            fprintf(out, "    e%u = features from %u : [%u]\n", r, g->first, g->width);
        else if (g->kind != GS_EDGE_TEMP)
            fprintf(out, "    e%u = %s %s%s : [%u]\n", r, g->kind == GS_EDGE_OPERAND ? "operand" : "target",
                    array_name(p, g->array), g->typed ? " by type" : "", g->width);
    }
    for (uint32_t i = 0; i < s->edge_instrs; i++) {
        const gs_instr *n = &s->edge_instr[i];
        if (gs_edge_reg_only_rows(s, n->dst))
            continue;
        fprintf(out, "    e%u = %s", n->dst, gs_op_name(n->op));
        print_operand(p, &n->a, 'e', out);
        print_operand(p, &n->b, 'e', out);
        print_operand(p, &n->c, 'e', out);
        print_constants(n, out);
        fprintf(out, " : [%u]\n", n->dst < s->edge_regs ? s->edge_reg[n->dst].width : 0);
    }
    if (s->products != GS_PRODUCTS_OF_EDGES)
        fputs(s->products == GS_PRODUCTS_OF_RUNS ? "    products of the sums of runs\n"
                                                 : "    products of pairs\n",
              out);
}

static void print_sum(const gs_program *p, const gs_stage *s, uint32_t i, FILE *out)
{
    static const char *const names[] = {"sum", "split", "max", "min", "max_held", "min_held", "attend", "lstm"};
    const gs_sum *const m = &s->sum[i];
    gs_row_sum rows = {.types = GS_TYPES_NONE};
    const bool of_rows = gs_sum_of_rows(&rows, s, i);
    if (m->kind == GS_SUM_LSTM_BACK) {
        fprintf(out, "    lstm_back_in e%u e%u %s%s -> store %s\n", m->value, m->score, p->param[m->weight].name,
                m->learned ? " and its gradient" : "", array_name(p, m->array));
        return;
    }
    if (m->kind == GS_SUM_OUTER) {
        fprintf(out, "    grad(%s) += outer_%s e%u e%u", p->param[m->weight].name, s->direction == 0 ? "in" : "out",
                m->score, m->value);
        fprintf(out, m->dense ? " from %u\n" : " by type\n", m->site);
        return;
    }
    fprintf(out, "    r%u = %s_%s", m->reg, rows.types == GS_TYPES_OF_ROWS ? "pick" : names[m->kind],
            s->direction == 0 ? "in" : "out");
    if (of_rows)
        fprintf(out, " %s%s%s%s", array_name(p, rows.array), rows.scale != GS_NONE ? " * " : "",
                rows.scale != GS_NONE ? array_name(p, rows.scale) : "", m->self ? " self" : "");
    else if (m->kind == GS_SUM_ATTEND)
        fprintf(out, " e%u e%u lse r%u", m->score, m->value, m->lse);
    else if (gs_sum_is_held(m->kind))
        fprintf(out, " e%u by e%u", m->value, m->score);
    else if (m->kind == GS_SUM_LSTM)
        fprintf(out, " e%u %s", m->value, p->param[m->weight].name);
    else
        fprintf(out, " e%u", m->value);
    fprintf(out, " : [%u]\n", s->reg[m->reg].width);
}

void gs_program_print_stage(const gs_program *p, uint32_t index, FILE *out)
{
    const gs_stage *s = &p->stage[index];

    fprintf(out, "  stage %u \"%s\"", index, s->name);
    if (s->alone > 0)
        fprintf(out, " on device %u", s->alone - 1);
    fputc('\n', out);
    print_edge_program(p, s, out);
    for (uint32_t i = 0; i < s->sums; i++)
        print_sum(p, s, i, out);
    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind == GS_REG_LOAD)
            fprintf(out, "    r%u = load %s : %s[%u]\n", r, array_name(p, s->reg[r].array),
                    gs_dtype_name(s->reg[r].dtype), s->reg[r].width);
    for (uint32_t i = 0; i < s->instrs; i++)
        print_instr(p, s, &s->instr[i], out);
}

void gs_program_print(const gs_program *p, FILE *out)
{
    for (uint32_t i = 0; i < p->arrays; i++)
        fprintf(out, "array %s %s[%u]%s\n", p->array[i].name, gs_dtype_name(p->array[i].dtype), p->array[i].width,
                p->array[i].store_id >= 0 ? " (store)" : p->array[i].lasting ? " (lasting)" : "");
    for (uint32_t i = 0; i < p->params; i++) {
        if (p->param[i].dims == 2)
            fprintf(out, "param %s[%u, %u]\n", p->param[i].name, p->param[i].rows, p->param[i].cols);
        else
            fprintf(out, "%s %s[%u]\n", p->param[i].statistic != GS_STATISTIC_NONE ? "statistic" : "param",
                    p->param[i].name, p->param[i].cols);
    }
    for (uint32_t i = 0; i < p->tables; i++)
        fprintf(out, "table %s[vertices, %u]\n", p->table[i].name, p->table[i].width);
    for (uint32_t i = 0; i < p->passes; i++) {
        fprintf(out, "pass %s\n", p->pass[i].name);
        for (uint32_t s = 0; s < p->pass[i].stages; s++)
            gs_program_print_stage(p, p->pass[i].first_stage + s, out);
    }
    if (p->logits != GS_NONE)
        fprintf(out, "logits %s\n", array_name(p, p->logits));
}
