#include "device_fixture.h"

#include <math.h>
#include <string.h>

#include "base/philox.h"

static uint32_t bits(uint32_t i, uint32_t stream)
{
    uint32_t word[4];
    gs_philox4x32(word, (const uint32_t[4]){i / 4, stream, 0, 0}, (const uint32_t[2]){99, 1});
    return word[i % 4];
}

float random_between(uint32_t i, uint32_t stream, float low, float high)
{
    return low + (high - low) * gs_uniform_f32(bits(i, stream));
}

void round_inputs(const gs_device *d, const float *numbers, size_t n)
{
    float *const p = (float *)(uintptr_t)numbers; /* the fixture's own */
    for (size_t i = 0; i < n && gs_device_rounds(d); i++)
        p[i] = gs_f32_from_bf16(gs_bf16_from_f32(p[i]));
}

uint32_t random_below(uint32_t i, uint32_t stream, uint32_t n)
{
    return (uint32_t)(((uint64_t)bits(i, stream) * n) >> 32);
}

float *random_floats(size_t n, uint32_t stream, float low, float high)
{
    float *const p = test_malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        p[i] = random_between((uint32_t)i, stream, low, high);
    return p;
}

void put_number(void *array, uint32_t bytes, uint32_t i, uint32_t value)
{
    if (bytes == 1)
        ((uint8_t *)array)[i] = (uint8_t)value;
    else if (bytes == 2)
        ((uint16_t *)array)[i] = (uint16_t)value;
    else
        ((uint32_t *)array)[i] = value;
}

uint32_t get_number(const void *array, uint32_t bytes, uint32_t i)
{
    return bytes == 1   ? ((const uint8_t *)array)[i]
           : bytes == 2 ? ((const uint16_t *)array)[i]
                        : ((const uint32_t *)array)[i];
}

void fixture_init(fixture *f, uint32_t rows)
{
    memset(f, 0, sizeof(*f));
    strcpy(f->stage.name, "test stage");
    f->stage.reg = f->reg;
    f->stage.instr = f->instr;
    f->program.stages = 1;
    f->program.stage = &f->stage;
    f->program.param = f->param;
    f->launch = (gs_vertex_launch){.program = &f->program,
                                   .stage = &f->stage,
                                   .rows = rows,
                                   .reg = f->memory,
                                   .param = f->weight,
                                   .grad = f->grad,
                                   .metrics = &f->metrics,
                                   .seed = 0x123456789abcdefull,
                                   .epoch = 3,
                                   .loss_scale = 0.25f};
}

void fixture_free(fixture *f)
{
    for (uint32_t i = 0; i < f->stage.regs; i++)
        test_free(f->memory[i]);
    for (uint32_t i = 0; i < f->program.params; i++) {
        test_free((void *)(uintptr_t)f->weight[i]);
        test_free(f->grad[i]);
    }
}

uint32_t add_reg(fixture *f, gs_dtype dtype, uint32_t width)
{
    const uint32_t r = f->stage.regs++;
    const size_t bytes = (size_t)f->launch.rows * width * gs_dtype_bytes(dtype);
    assert_true(r < FIXTURE_MAX);
    /* tests look at all of them */
    f->reg[r] = (gs_reg){.kind = GS_REG_TEMP, .dtype = dtype, .width = width, .array = 0};
    f->memory[r] = test_malloc(bytes);
    memset(f->memory[r], 0xff, bytes); /* NaN */
    return r;
}

uint32_t add_random(fixture *f, uint32_t width, float low, float high)
{
    const uint32_t r = add_reg(f, GS_F32, width);
    for (size_t i = 0; i < (size_t)f->launch.rows * width; i++)
        ((float *)f->memory[r])[i] = random_between((uint32_t)i, r + 1, low, high);
    return r;
}

uint32_t add_ids(fixture *f)
{
    const uint32_t r = add_reg(f, GS_U32, 1);
    for (uint32_t i = 0; i < f->launch.rows; i++)
        ((uint32_t *)f->memory[r])[i] = bits(i, 1000);
    return r;
}

uint32_t add_param(fixture *f, uint32_t dims, uint32_t rows, uint32_t cols)
{
    const uint32_t p = f->program.params++;
    const size_t n = (size_t)rows * cols;
    float *const grad = test_malloc(n * sizeof(float));
    assert_true(p < FIXTURE_MAX);
    for (size_t i = 0; i < n; i++)
        grad[i] = 0.5f;
    f->param[p] = (gs_param){.dims = dims, .rows = rows, .cols = cols};
    f->weight[p] = random_floats(n, 500 + p, -1, 1);
    f->grad[p] = grad;
    return p;
}

gs_instr *add_instr(fixture *f, gs_op op, uint32_t dst, gs_operand a, gs_operand b)
{
    gs_instr *const in = &f->instr[f->stage.instrs++];
    assert_true(f->stage.instrs <= FIXTURE_MAX);
    *in = (gs_instr){.op = op, .dst = dst, .a = a, .b = b};
    return in;
}

void fixture_run(fixture *f, gs_device *d)
{
    gs_assert_ok(gs_device_prepare(d, &f->program));
    gs_assert_ok(launch_vertex(d, &f->launch));
}

double dot(const float *a, size_t a_step, const float *b, size_t b_step, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i * a_step] * (double)b[i * b_step];
    return sum;
}

gs_operand in_reg(uint32_t index) { return (gs_operand){.kind = GS_FROM_REG, .index = index}; }
gs_operand in_param(uint32_t index) { return (gs_operand){.kind = GS_FROM_PARAM, .index = index}; }
gs_operand in_const(float value) { return (gs_operand){.kind = GS_FROM_CONST, .value = value}; }
