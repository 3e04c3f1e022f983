/* Kernels of runs of elementwise instructions: a lane takes four neighbouring columns of a row through all of
 * them (as many as one Philox counter gives bits for), or one number of rows of width 1. */
#include <string.h>

#include "base/size.h"
#include "cuda/kernel_text.h"

/* ---- what the generators share: numbers, operators, inputs ---- */

void gs_generate_constant(char *text, size_t bytes, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    snprintf(text, bytes, "gs_float_of_bits(0x%08xu)", bits);
}

bool gs_generate_value(FILE *out, gs_op op, const char *const *operand, float alpha)
{
    static const struct {
        gs_op op;
        const char *text; /* A, B and C stand for the operands, L for alpha */
    } values[] = {
        {GS_OP_ADD, "A + B"},
        {GS_OP_SUB, "A - B"},
        {GS_OP_MUL, "A * B"},
        {GS_OP_DIV, "A / B"},
        {GS_OP_MAX, "gs_larger(A, B)"},
        {GS_OP_MIN, "gs_smaller(A, B)"},
        {GS_OP_WHERE, "A != 0.0f ? B : C"},
        {GS_OP_EQ, "A == B ? 1.0f : 0.0f"},
        {GS_OP_NE, "A != B ? 1.0f : 0.0f"},
        {GS_OP_LT, "A < B ? 1.0f : 0.0f"},
        {GS_OP_LE, "A <= B ? 1.0f : 0.0f"},
        {GS_OP_GT, "A > B ? 1.0f : 0.0f"},
        {GS_OP_GE, "A >= B ? 1.0f : 0.0f"},
        {GS_OP_NEG, "-A"},
        {GS_OP_EXP, "expf(A)"},
        {GS_OP_LOG, "logf(A)"},
        {GS_OP_SQRT, "sqrtf(A)"},
        {GS_OP_RSQRT, "1.0f / sqrtf(A)"},
        {GS_OP_SIGMOID, "gs_sigmoid(A)"},
        {GS_OP_TANH, "tanhf(A)"},
        {GS_OP_RELU, "A < 0.0f ? 0.0f : A"},
        {GS_OP_LEAKY_RELU, "A > 0.0f ? A : L * A"},
        {GS_OP_ELU, "A > 0.0f ? A : L * expm1f(A)"},
        {GS_OP_GELU, "0.5f * A * erfcf(-0.707106781f * A)"},
        {GS_OP_GELU_SLOPE, "0.5f * erfcf(-0.707106781f * A) + 0.39894228f * A * expf(-0.5f * A * A)"},
        {GS_OP_SILU, "A * gs_sigmoid(A)"},
        {GS_OP_ABS, "fabsf(A)"},
        {GS_OP_NEAREST, "gs_bf16_number(gs_nearest_bf16(A))"},
        {GS_OP_POW, "powf(A, L)"},
        {GS_OP_STEP, "A > 0.0f ? 1.0f : 0.0f"},
        {GS_OP_ROUND, "A"},  /* where it is stored */
        {GS_OP_EXPAND, "A"}, /* of an edge register: lanes hold the value of their columns' group */
    };
    char constant[48];
    gs_generate_constant(constant, sizeof(constant), alpha);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (values[i].op != op)
            continue;
        for (const char *c = values[i].text; *c != '\0'; c++)
            if (*c >= 'A' && *c <= 'C')
                fputs(operand[*c - 'A'], out);
            else if (*c == 'L')
                fputs(constant, out);
            else
                fputc(*c, out);
        return true;
    }
    return false;
}

uint32_t gs_generate_threshold(float p)
{
    const double exact = (double)p * 0x1p24;
    const uint32_t whole = (uint32_t)exact;
    return whole + ((double)whole < exact);
}

uint32_t gs_generate_input(gs_kernel_input *input, uint32_t *count, uint32_t room, bool param, uint32_t index)
{
    for (uint32_t i = 0; i < *count; i++)
        if (input[i].param == param && input[i].index == index)
            return i;
    if (*count == room)
        return GS_NONE;
    input[*count] = (gs_kernel_input){param, index};
    return (*count)++;
}

/* ---- runs of instructions ---- */

typedef struct writer {
    FILE *out;
    gs_vertex_kernel *k;
    const gs_program *p;
    const gs_stage *s;
    gs_status st;
} writer;

static bool is_row_wise(gs_op op)
{
    const gs_op_form form = gs_op_form_of(op);
    return form == GS_FORM_EACH || form == GS_FORM_DRAW || form == GS_FORM_TYPE;
}

bool gs_generates_vertex(const gs_stage *s, const gs_instr *in)
{
    return is_row_wise(in->op) && in->dst < s->regs;
}

static uint32_t end_of_run(const gs_stage *s, uint32_t first)
{
    const uint32_t width = s->reg[s->instr[first].dst].width;
    uint32_t end = first;
    while (end < s->instrs && gs_generates_vertex(s, &s->instr[end]) && s->reg[s->instr[end].dst].width == width)
        end++;
    return end;
}

static bool written_in_run(const writer *w, uint32_t reg, uint32_t before)
{
    for (uint32_t i = w->k->first; i < before; i++)
        if (w->s->instr[i].dst == reg)
            return true;
    return false;
}

static bool reads(const gs_operand *o, uint32_t reg) { return o->kind == GS_FROM_REG && o->index == reg; }

/* Is a register that the run writes read after it, or stored? */
static bool lives_on(const writer *w, uint32_t reg)
{
    if (w->s->reg[reg].array != GS_NONE)
        return true;
    for (uint32_t i = w->k->end; i < w->s->instrs; i++) {
        const gs_instr *const in = &w->s->instr[i];
        if (reads(&in->a, reg) || reads(&in->b, reg) || reads(&in->c, reg))
            return true;
    }
    return false;
}

static uint32_t input_of(writer *w, bool param, uint32_t index)
{
    const uint32_t i = gs_generate_input(w->k->input, &w->k->inputs, GS_VERTEX_INPUTS, param, index);
    if (i == GS_NONE && w->st == GS_OK)
        w->st = gs_fail(GS_EUNSUPPORTED,
                        "device cuda: stage \"%s\": a run of instructions reads too many registers; use .device cpu",
                        w->s->name);
    return i;
}

/* Four numbers of a row are read at once where rows are whole fours. */
static void load_wide(writer *w, const char *name, const char *row)
{
    fprintf(w->out, "    float %s[4] = {0, 0, 0, 0};\n", name);
    if (w->k->width % 4 == 0)
        fprintf(w->out, "    gs_load4(%s, %s + c);\n", name, row);
    else
        fprintf(w->out, "    for (gs_u32 i = 0; i < count; i++) %s[i] = (%s)[c + i];\n", name, row);
}

/* An operand that no instruction of the run has written, as rN (wide), or one number sN. */
static void load_operand(writer *w, const gs_operand *o, uint32_t instr)
{
    char name[16], row[64];
    for (uint32_t k = 0; gs_instr_operand(&w->s->instr[instr], k) != o; k++) {
        const gs_operand *const before = gs_instr_operand(&w->s->instr[instr], k);
        if (before->kind == o->kind && before->index == o->index)
            return;
    }
    if (o->kind == GS_FROM_PARAM) {
        const uint32_t in = input_of(w, true, o->index);
        if (w->p->param[o->index].cols == 1) {
            fprintf(w->out, "    const float t%u_%u = ((const float *)a.in[%u])[0];\n", instr, o->index, in);
            return;
        }
        snprintf(name, sizeof(name), "t%u_%u", instr, o->index);
        snprintf(row, sizeof(row), "(const float *)a.in[%u]", in);
        load_wide(w, name, row);
        return;
    }
    if (o->kind != GS_FROM_REG || written_in_run(w, o->index, instr))
        return;
    for (uint32_t i = w->k->first; i < instr; i++)
        for (uint32_t k = 0; k < gs_op_inputs(w->s->instr[i].op); k++) /* a dropout's ids are no operand */
            if (reads(gs_instr_operand(&w->s->instr[i], k), o->index))
                return; /* there already */
    const gs_reg *const r = &w->s->reg[o->index];
    const uint32_t in = input_of(w, false, o->index);
    if (r->width == 1) {
        fprintf(w->out, "    const float r%u = ((const float *)a.in[%u])[row];\n", o->index, in);
        return;
    }
    snprintf(name, sizeof(name), "r%u", o->index);
    snprintf(row, sizeof(row), "(const float *)a.in[%u] + row * %uu", in, w->k->width);
    load_wide(w, name, row);
}

static void operand_text(const writer *w, char *text, size_t bytes, const gs_operand *o, uint32_t instr)
{
    const bool single = w->k->width == 1;
    if (o->kind == GS_FROM_CONST)
        gs_generate_constant(text, bytes, o->value);
    else if (o->kind == GS_FROM_PARAM)
        snprintf(text, bytes, w->p->param[o->index].cols == 1 ? "t%u_%u" : "t%u_%u[i]", instr, o->index);
    else
        snprintf(text, bytes, single || w->s->reg[o->index].width == 1 ? "r%u" : "r%u[i]", o->index);
}

static void write_dropout(writer *w, const gs_instr *in, uint32_t instr)
{
    const uint32_t threshold = gs_generate_threshold(in->alpha);
    char scale[48], a[32];
    gs_generate_constant(scale, sizeof(scale), 1.0f / (1.0f - in->alpha));
    operand_text(w, a, sizeof(a), &in->a, instr);
    fprintf(w->out, "    gs_u32 bits%u[4] = {((const gs_u32 *)a.in[%u])[row], c / 4, %uu, a.epoch};\n", instr,
            input_of(w, false, in->b.index), in->site);
    fprintf(w->out, "    gs_philox(bits%u, a.key[0], a.key[1]);\n", instr);
    if (w->k->width == 1)
        fprintf(w->out, "    const float r%u = bits%u[0] >> 8 >= %uu ? %s * %s : 0.0f;\n", in->dst, instr, threshold, a,
                scale);
    else
        fprintf(w->out, "    GS_UNROLL for (int i = 0; i < 4; i++) r%u[i] = bits%u[i] >> 8 >= %uu ? %s * %s : 0.0f;\n",
                in->dst, instr, threshold, a, scale);
}

/* Writes the draw of a vertex for its own edge: rank and type are 0. */
static void write_mask(writer *w, const gs_instr *in, uint32_t instr)
{
    const uint32_t threshold = gs_generate_threshold(in->alpha);
    char scale[48];
    gs_generate_constant(scale, sizeof(scale), 1.0f / (1.0f - in->alpha));
    fprintf(w->out,
            "    gs_u32 key%u[4] = {%uu, a.epoch, 0, 0};\n    gs_philox(key%u, a.edge_key[0], a.edge_key[1]);\n", instr,
            in->site, instr);
    fprintf(w->out,
            "    gs_u32 bits%u[4] = {((const gs_u32 *)a.in[%u])[row], ((const gs_u32 *)a.in[%u])[row], c / 4, 0};\n",
            instr, input_of(w, false, in->a.index), input_of(w, false, in->b.index));
    fprintf(w->out, "    gs_philox(bits%u, key%u[0], key%u[1]);\n", instr, instr, instr);
    if (w->k->width == 1)
        fprintf(w->out, "    const float r%u = bits%u[0] >> 8 >= %uu ? %s : 0.0f;\n", in->dst, instr, threshold, scale);
    else
        fprintf(w->out, "    GS_UNROLL for (int i = 0; i < 4; i++) r%u[i] = bits%u[i] >> 8 >= %uu ? %s : 0.0f;\n",
                in->dst, instr, threshold, scale);
}

static void write_cast(writer *w, const gs_instr *in)
{
    static const char *const names[GS_DTYPE_COUNT] = {
        [GS_F32] = "f32", [GS_BF16] = "bf16", [GS_F16] = "f16", [GS_U8] = "u8",
        [GS_U16] = "u16", [GS_U32] = "u32",   [GS_I32] = "i32"};
    const char *const how = names[w->s->reg[in->a.index].dtype];
    const uint32_t from = input_of(w, false, in->a.index);
    if (how == NULL && w->st == GS_OK)
        w->st =
            gs_fail(GS_EUNSUPPORTED,
                    "device cuda: stage \"%s\": values of this type are not converted; use .device cpu", w->s->name);
    if (w->k->width == 1)
        fprintf(w->out, "    const float r%u = gs_of_%s(a.in[%u], row);\n", in->dst, how, from);
    else
        fprintf(
            w->out,
            "    for (gs_u32 i = 0; i < 4; i++) r%u[i] = i < count ? gs_of_%s(a.in[%u], row * %uu + c + i) : 0.0f;\n",
            in->dst, how, from, w->k->width);
}

static void write_instr(writer *w, uint32_t instr)
{
    const gs_instr *const in = &w->s->instr[instr];
    const bool single = w->k->width == 1;
    char text[3][64] = {"", "", ""};
    const char *const operand[3] = {text[0], text[1], text[2]};
    if (!single)
        fprintf(w->out, "    float r%u[4];\n", in->dst);
    if (in->op == GS_OP_CAST) {
        write_cast(w, in);
        return;
    }
    if (in->op == GS_OP_EDGE_MASK) {
        write_mask(w, in, instr);
        return;
    }
    load_operand(w, &in->a, instr);
    if (in->op == GS_OP_DROPOUT) {
        write_dropout(w, in, instr);
        return;
    }
    for (uint32_t k = 1; k < gs_op_inputs(in->op); k++)
        load_operand(w, gs_instr_operand(in, k), instr);
    for (uint32_t k = 0; k < gs_op_inputs(in->op); k++)
        operand_text(w, text[k], sizeof(text[k]), gs_instr_operand(in, k), instr);
    if (single)
        fprintf(w->out, "    const float r%u = ", in->dst);
    else
        fprintf(w->out, "    GS_UNROLL for (int i = 0; i < 4; i++) r%u[i] = ", in->dst);
    if (!gs_generate_value(w->out, in->op, operand, in->alpha) && w->st == GS_OK)
        w->st = gs_fail(GS_EUNSUPPORTED, "device cuda: stage \"%s\": %s is not there; use .device cpu", w->s->name,
                        gs_op_name(in->op));
    fprintf(w->out, ";\n");
}

static void write_store(writer *w, uint32_t reg)
{
    gs_vertex_kernel *const k = w->k;
    if (k->outputs == GS_VERTEX_INPUTS) {
        w->st = gs_fail(GS_EUNSUPPORTED,
                        "device cuda: stage \"%s\": a run of instructions writes too many registers; use .device cpu",
                        w->s->name);
        return;
    }
    const uint32_t o = k->outputs++;
    k->output[o] = reg;
    if (w->s->reg[reg].dtype == GS_BF16 && k->width == 1)
        fprintf(w->out, "    gs_to_bf16(a.out[%u], row, r%u);\n", o, reg);
    else if (w->s->reg[reg].dtype == GS_BF16)
        fprintf(w->out, "    for (gs_u32 i = 0; i < count; i++) gs_to_bf16(a.out[%u], row * %uu + c + i, r%u[i]);\n", o,
                k->width, reg);
    else if (k->width == 1)
        fprintf(w->out, "    a.out[%u][row] = r%u;\n", o, reg);
    else if (k->width % 4 == 0)
        fprintf(w->out, "    gs_store4(a.out[%u] + row * %uu + c, r%u);\n", o, k->width, reg);
    else
        fprintf(w->out, "    for (gs_u32 i = 0; i < count; i++) a.out[%u][row * %uu + c + i] = r%u[i];\n", o, k->width,
                reg);
}

gs_status gs_generate_vertex(FILE *out, gs_vertex_kernel *k, const gs_program *p, uint32_t stage, uint32_t first)
{
    const gs_stage *const s = &p->stage[stage];
    writer w = {.out = out, .k = k, .p = p, .s = s, .st = GS_OK};
    *k = (gs_vertex_kernel){
        .stage = stage, .first = first, .end = end_of_run(s, first), .width = s->reg[s->instr[first].dst].width};
    snprintf(k->name, sizeof(k->name), "gs_vertex_%u_%u", stage, first);
    const uint32_t fours = (uint32_t)gs_div_up(k->width, 4);

    fprintf(out, "\nGS_KERNEL(%s, gs_vertex_args)\n{\n", k->name);
    fprintf(out, "    const gs_u64 i0 = (gs_u64)gs_block_x() * GS_BLOCK_LANES + gs_lane(), row = i0 / %uu;\n", fours);
    fprintf(out, "    const gs_u32 c = (gs_u32)(i0 %% %uu) * 4, count = %uu - c < 4 ? %uu - c : 4;\n", fours, k->width,
            k->width);
    fprintf(out, "    if (row >= a.rows)\n        return;\n    (void)count;\n");
    for (uint32_t i = first; i < k->end && w.st == GS_OK; i++)
        write_instr(&w, i);
    for (uint32_t i = first; i < k->end && w.st == GS_OK; i++)
        if (lives_on(&w, s->instr[i].dst))
            write_store(&w, s->instr[i].dst);
    fprintf(out, "}\n");
    return w.st;
}

/* ---- LSTMs over edges: kernels/sequence.cu with its constants ---- */

#define SHARED_BYTES (40 * 1024u) /* of a block, so that two fit a processor of any GPU */

static uint32_t power_below(uint32_t n)
{
    uint32_t p = 1;
    while (2 * p <= n)
        p *= 2;
    return p;
}

gs_status gs_generate_sequence(FILE *out, gs_sequence_kernel *k, uint32_t width)
{
    const uint32_t fit = SHARED_BYTES / ((6 * width + 1) * (uint32_t)sizeof(float));
    if (width == 0 || fit == 0)
        return gs_fail(GS_EUNSUPPORTED,
                       "device cuda: an lstm of width %u does not fit a processor of the GPU; use .device cpu", width);
    *k = (gs_sequence_kernel){.width = width, .rows = power_below(GS_MIN(fit, (uint32_t)GS_TILE_ROWS))};
    /* Backward a column is shared by a few lanes where there are more lanes than columns. */
    const uint32_t lanes = power_below(GS_MIN(GS_MAX(GS_BLOCK_LANES / width, 1u), k->rows));
    snprintf(k->name, sizeof(k->name), "gs_lstm_%u", width);
    fprintf(out, "\nGS_KERNEL(%s, gs_sequence_args) { gs_sequence_forward(&a, %uu, %uu); }\n", k->name, width, k->rows);
    fprintf(out, "GS_KERNEL(%s_back, gs_sequence_args) { gs_sequence_window(&a, %uu, %uu, %uu); }\n", k->name, width,
            k->rows, lanes);
    return GS_OK;
}
