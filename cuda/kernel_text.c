/* Text that the generators share: numbers, operators, inputs. */
#include "cuda/kernel_text.h"

#include <string.h>

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
