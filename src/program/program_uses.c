/* program_uses.c - which arrays does a stage read and write, and sums of rows as they are. */
#include "program/program.h"

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
    const bool two = m->kind == GS_SUM_ATTEND || m->kind == GS_SUM_OUTER || m->kind == GS_SUM_LSTM_BACK;
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
