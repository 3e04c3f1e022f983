/* program.c - making, freeing and counting programs. */
#include "program/program.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "program/products.h"

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

    GS_NEED(arrays != NULL, "no memory for an array of the program");
    p->array = arrays;
    p->array[p->arrays] = *a;
    *out = p->arrays++;
    return GS_OK;
}

gs_status gs_program_add_param(gs_program *p, const gs_param *q)
{
    gs_param *const more = gs_realloc(p->param, (p->params + 1ull) * sizeof(*more));

    GS_NEED(more != NULL, "out of memory for the parameters of a program");
    p->param = more;
    p->param[p->params++] = *q;
    return GS_OK;
}

uint32_t gs_program_stored(const gs_program *p, int id)
{
    for (uint32_t a = 0; a < p->arrays; a++)
        if (p->array[a].store_id == id)
            return a;
    return GS_NONE;
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

/* Products by a matrix, an edge: of all edges, or type by type, so dense; but for those that hardly any edge makes. */
static double typed_flops(const gs_stage *s)
{
    double flops = 0.0;
    for (uint32_t i = 0; i < s->edge_instrs; i++) {
        const gs_instr *in = &s->edge_instr[i];
        if (gs_op_on_edges(in->op) && !gs_stage_is_spared(s, in))
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
    if (gs_op_on_edges(i->op))
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
    double d = typed_flops(s) * gs_stage_product_share(s) * (double)edges, e = 0.0;

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

/* ---- who reads what ---------------------------------------------------- */

/* Which arrays does a stage read and write, and sums of rows as they are. */

/* Edge registers of a sum of rows: the row, and of a scaled one the number and their product, else GS_NONE. */
typedef struct row_regs {
    uint32_t row, number, product;
} row_regs;

static bool is_operand(const gs_stage *s, uint32_t reg)
{
    return reg < s->edge_regs && s->edge_reg[reg].kind == GS_EDGE_OPERAND;
}

/* The instruction that multiplies a row with a number into this register, or NULL. */
static const gs_instr *product_of(const gs_stage *s, uint32_t reg)
{
    for (uint32_t i = 0; i < s->edge_instrs; i++) {
        const gs_instr *const in = &s->edge_instr[i];
        if (in->dst == reg && in->op == GS_OP_MUL && in->a.kind == GS_FROM_REG && in->b.kind == GS_FROM_REG &&
            is_operand(s, in->a.index) && is_operand(s, in->b.index) && s->edge_reg[in->b.index].width == 1 &&
            !s->edge_reg[in->a.index].typed && !s->edge_reg[in->b.index].typed)
            return in;
    }
    return NULL;
}

static bool find_row_regs(row_regs *out, const gs_stage *s, uint32_t sum)
{
    const gs_sum *const m = &s->sum[sum];
    if (m->kind != GS_SUM_ADD && m->kind != GS_SUM_ADD_TYPE)
        return false;
    if (is_operand(s, m->value)) {
        *out = (row_regs){m->value, GS_NONE, GS_NONE};
        return m->kind == GS_SUM_ADD || !s->edge_reg[m->value].typed;
    }
    const gs_instr *const product = m->kind == GS_SUM_ADD ? product_of(s, m->value) : NULL;
    if (product != NULL)
        *out = (row_regs){product->a.index, product->b.index, m->value};
    return product != NULL;
}

bool gs_sum_of_rows(gs_row_sum *out, const gs_stage *s, uint32_t sum)
{
    row_regs r;
    if (!find_row_regs(&r, s, sum))
        return false;
    *out = (gs_row_sum){.array = s->edge_reg[r.row].array,
                        .scale = r.number == GS_NONE ? GS_NONE : s->edge_reg[r.number].array,
                        .reg = r.row,
                        .scale_reg = r.number,
                        .types = s->sum[sum].kind == GS_SUM_ADD_TYPE ? GS_TYPES_OF_SUM
                                 : s->edge_reg[r.row].typed          ? GS_TYPES_OF_ROWS
                                                                     : GS_TYPES_NONE};
    return true;
}

bool gs_stage_sums_rows(const gs_stage *s, uint32_t sum)
{
    gs_row_sum rows;
    return gs_sum_of_rows(&rows, s, sum);
}

static bool reads(const gs_operand *o, uint32_t reg) { return o->kind == GS_FROM_REG && o->index == reg; }

static bool takes(const gs_sum *m, uint32_t reg)
{
    const bool two = m->kind == GS_SUM_ATTEND || m->kind == GS_SUM_OUTER || m->kind == GS_SUM_LSTM_BACK ||
                     gs_sum_is_held(m->kind);
    return m->value == reg || (two && m->score == reg);
}

/* The registers of each sum of rows; of other sums GS_NONE. */
static void list_row_regs(row_regs *out, const gs_stage *s)
{
    for (uint32_t i = 0; i < s->sums; i++) {
        out[i] = (row_regs){GS_NONE, GS_NONE, GS_NONE};
        (void)find_row_regs(&out[i], s, i);
    }
}

/* Does an edge program need the register, but for products that are sums of rows? */
static bool has_other_use(const gs_stage *s, const row_regs *rows, uint32_t reg)
{
    for (uint32_t i = 0; i < s->sums; i++)
        if (rows[i].row == GS_NONE && takes(&s->sum[i], reg))
            return true;
    for (uint32_t k = 0; k < s->edge_instrs; k++) {
        const gs_instr *const in = &s->edge_instr[k];
        bool of_rows = false;
        for (uint32_t i = 0; i < s->sums; i++)
            of_rows = of_rows || (rows[i].row != GS_NONE && rows[i].product == in->dst);
        if (!of_rows && (reads(&in->a, reg) || reads(&in->b, reg)))
            return true;
    }
    return false;
}

bool gs_edge_reg_only_rows(const gs_stage *s, uint32_t reg)
{
    row_regs rows[GS_STAGE_SUMS];

    list_row_regs(rows, s);
    for (uint32_t i = 0; i < s->sums; i++)
        if (rows[i].row != GS_NONE && (reg == rows[i].row || reg == rows[i].number || reg == rows[i].product))
            return !has_other_use(s, rows, reg);
    return false;
}

static uint32_t add_operand(gs_stage *s, uint32_t array, uint32_t width, bool typed)
{
    for (uint32_t r = 0; r < s->edge_regs; r++)
        if (is_operand(s, r) && s->edge_reg[r].array == array && s->edge_reg[r].typed == typed &&
            s->edge_reg[r].width == width)
            return r;
    s->edge_reg[s->edge_regs] =
        (gs_edge_reg){.kind = GS_EDGE_OPERAND, .width = width, .array = array, .typed = typed};
    return s->edge_regs++;
}

void gs_stage_add_row_sum(gs_stage *s, const gs_row_sum *rows, uint32_t width, uint32_t reg, bool self)
{
    uint32_t value = add_operand(s, rows->array, width, rows->types == GS_TYPES_OF_ROWS);
    if (rows->scale != GS_NONE) {
        gs_instr product = {.op = GS_OP_MUL, .a = {.kind = GS_FROM_REG, .index = value}};
        product.b = (gs_operand){.kind = GS_FROM_REG, .index = add_operand(s, rows->scale, 1, false)};
        product.dst = value = s->edge_regs;
        s->edge_reg[s->edge_regs++] = (gs_edge_reg){.kind = GS_EDGE_TEMP, .width = width, .array = GS_NONE};
        s->edge_instr[s->edge_instrs++] = product;
    }
    s->sum[s->sums++] = (gs_sum){.kind = rows->types == GS_TYPES_OF_SUM ? GS_SUM_ADD_TYPE : GS_SUM_ADD,
                                 .value = value, .score = GS_NONE, .lse = GS_NONE, .reg = reg, .self = self,
                                 .array = GS_NONE};
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
    if ((!m->self && (which == SUM_OWN || which == SUM_OWN_SCALE)) || !gs_sum_of_rows(&rows, s, sum))
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
    return (r->kind == GS_EDGE_OPERAND || r->kind == GS_EDGE_TARGET) && !gs_edge_reg_only_rows(s, reg);
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
