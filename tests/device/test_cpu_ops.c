/* Every elementwise operator and broadcast form against float64, on every
 * instruction set and with odd sizes; dropout bit by bit against scalar Philox. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "device_fixture.h"
#include "support/formulas.h"

/* ---- two operands ---- */

typedef enum shape { FULL, COLUMN, ROW, ONE_PARAM, CONSTANT, SHAPES } shape;

static gs_operand make_operand(fixture *f, shape s, uint32_t width)
{
    switch (s) {
    case FULL:
        return in_reg(add_random(f, width, 0.5f, 3));
    case COLUMN:
        return in_reg(add_random(f, 1, 0.5f, 3));
    case ROW:
        return in_param(add_param(f, 1, 1, width));
    case ONE_PARAM:
        return in_param(add_param(f, 1, 1, 1));
    default:
        return in_const(-1.75f);
    }
}

static double operand_at(const fixture *f, gs_operand o, shape s, uint32_t r, uint32_t c, uint32_t width)
{
    switch (s) {
    case FULL:
        return (double)((const float *)f->memory[o.index])[(size_t)r * width + c];
    case COLUMN:
        return (double)((const float *)f->memory[o.index])[r];
    case ROW:
        return (double)f->weight[o.index][c];
    case ONE_PARAM:
        return (double)f->weight[o.index][0];
    default:
        return (double)o.value;
    }
}

/* Of comparisons and choices: numbers that are often equal, or 0. */
static void make_coarse(const fixture *f, gs_operand o, shape s, uint32_t width)
{
    const size_t n = s == FULL ? (size_t)f->launch.rows * width : s == COLUMN ? f->launch.rows : 0;
    for (size_t i = 0; i < n; i++) {
        float *const x = (float *)f->memory[o.index] + i;
        *x = *x < 1.5f ? 0 : floorf(2 * *x) / 2;
    }
}

/* Many instructions in one program: a GPU's compiler takes as long for one as for dozens. */
enum { FORMS = 40 };
typedef struct form_program {
    fixture f;
    uint32_t rows, width, count;
    gs_operand operand[2][3][SHAPES]; /* [coarse], made when first asked for */
    struct {
        gs_op op;
        shape form[3];
        gs_operand o[3];
        uint32_t dst;
    } item[FORMS];
} form_program;

static void open_forms(form_program *p, uint32_t rows, uint32_t width)
{
    memset(p, 0, sizeof(*p));
    p->rows = rows;
    p->width = width;
    fixture_init(&p->f, rows);
}

static gs_operand form_operand(form_program *p, bool coarse, uint32_t k, shape s)
{
    gs_operand *const o = &p->operand[coarse][k][s];
    if (o->kind == GS_FROM_NONE) {
        *o = make_operand(&p->f, s, p->width);
        if (coarse)
            make_coarse(&p->f, *o, s, p->width);
    }
    return *o;
}

static void check_form(const form_program *p, uint32_t i)
{
    const gs_op op = p->item[i].op;
    const shape *const form = p->item[i].form;
    const float *const got = p->f.memory[p->item[i].dst];
    for (uint32_t r = 0; r < p->rows; r++)
        for (uint32_t c = 0; c < p->width; c++) {
            double x[3] = {0, 0, 0};
            for (uint32_t k = 0; k < gs_op_inputs(op); k++)
                x[k] = operand_at(&p->f, p->item[i].o[k], form[k], r, c, p->width);
            const double want = op_formula_of(op)->value(x[0], x[1], x[2], 0);
            /* one correctly rounded operation */
            if (!(fabs((double)got[(size_t)r * p->width + c] - want) <= 6e-8 * fabs(want)))
                fail_msg("%s, forms %d %d %d [%u, %u] at (%u, %u): got %.9g, want %.17g", gs_op_name(op), form[0],
                         form[1], form[2], p->rows, p->width, r, c, (double)got[(size_t)r * p->width + c], want);
        }
}

static void check_forms(form_program *p, gs_device *d)
{
    if (p->count > 0)
        fixture_run(&p->f, d);
    for (uint32_t i = 0; i < p->count; i++)
        check_form(p, i);
    fixture_free(&p->f);
}

/* An operator of two or three operands, in these forms; what is full runs, and begins anew. */
static void add_form(form_program *p, gs_device *d, gs_op op, const shape *form)
{
    const uint32_t inputs = gs_op_inputs(op);
    gs_operand o[3] = {NO_OPERAND, NO_OPERAND, NO_OPERAND};
    if (p->count == FORMS) {
        check_forms(p, d);
        open_forms(p, p->rows, p->width);
    }
    for (uint32_t k = 0; k < inputs; k++)
        o[k] = form_operand(p, gs_op_is(op, GS_FACT_FLAT) || inputs == 3, k, form[k]);
    const uint32_t dst = add_reg(&p->f, GS_F32, p->width), i = p->count++;
    p->item[i].op = op;
    p->item[i].dst = dst;
    memcpy(p->item[i].form, form, sizeof(p->item[i].form));
    memcpy(p->item[i].o, o, sizeof(o));
    add_instr(&p->f, op, dst, o[0], o[1])->c = o[2];
}

static void every_broadcast(gs_device *d, void *context)
{
    /* sizes in turn: the operators and 25 or 125 forms meet all of them, but not every pair; the last is met by all */
    static const uint32_t sizes[][2] = {{1, 1}, {130, 1}, {67, 41}, {140, 16}, {5, 602}, {9, 3}, {3, 7}};
    enum { TURNS = sizeof(sizes) / sizeof(sizes[0]) - 1 };
    form_program *const p = test_malloc((TURNS + 1) * sizeof(*p));
    uint32_t turn = 0;
    (void)context;
    for (uint32_t i = 0; i <= TURNS; i++)
        open_forms(&p[i], sizes[i][0], sizes[i][1]);
    for (gs_op op = 0; op < GS_OP_COUNT; op++) {
        const uint32_t inputs = gs_op_is_each(op) ? gs_op_inputs(op) : 0;
        const uint32_t forms = inputs == 2 ? SHAPES * SHAPES : inputs == 3 ? SHAPES * SHAPES * SHAPES : 0;
        for (uint32_t i = 0; i < forms; i++, turn++) {
            const shape form[3] = {i % SHAPES, i / SHAPES % SHAPES, i / SHAPES / SHAPES};
            add_form(&p[TURNS], d, op, form);
            add_form(&p[turn % TURNS], d, op, form);
        }
    }
    for (uint32_t i = 0; i <= TURNS; i++)
        check_forms(&p[i], d);
    test_free(p);
}

static void test_ops__several_operands_in_every_broadcast_form(void **state)
{
    (void)state;
    on_every_device(every_broadcast, NULL);
}

static void max_of_nan(gs_device *d, void *context)
{
    fixture f;
    (void)context;
    fixture_init(&f, 20);
    const uint32_t a = add_random(&f, 1, -1, 1), b = add_random(&f, 1, -1, 1), dst = add_reg(&f, GS_F32, 1);
    ((float *)f.memory[a])[3] = NAN;
    ((float *)f.memory[b])[17] = NAN;
    const uint32_t least = add_reg(&f, GS_F32, 1);
    add_instr(&f, GS_OP_MAX, dst, in_reg(a), in_reg(b));
    add_instr(&f, GS_OP_MIN, least, in_reg(a), in_reg(b));
    fixture_run(&f, d);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(isnan(((float *)f.memory[dst])[i]), i == 3 || i == 17);
        assert_int_equal(isnan(((float *)f.memory[least])[i]), i == 3 || i == 17);
    }
    fixture_free(&f);
}

static void test_ops__max_keeps_nan(void **state)
{
    (void)state;
    on_every_device(max_of_nan, NULL);
}

/* ---- one operand ---- */

/* Distance in units of the last place of the wanted value as a float, or of `least` where that is larger. */
static double ulps(float got, double want, double least)
{
    if (isnan(want))
        return isnan(got) ? 0 : INFINITY;
    if ((double)got == want || got == (float)want)
        return 0;
    if (isinf(got) || isnan(got) || isinf((float)want))
        return INFINITY;
    const double size = fmax(fabs(want), fmax(least, (double)FLT_MIN));
    return fabs((double)got - want) / ldexp(1, ilogb(size) - 23);
}

static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, FLT_MIN, FLT_MAX, -FLT_MAX, 1e-45f, -1e-40f,
                                88.72f, 88.73f, -87.4f, -103.9f, -104.1f, 0.625f, -0.625f, 1.0f, -1.0f};
#define SPECIALS (sizeof(special) / sizeof(special[0]))

enum { UNARY_ROWS = 1709, UNARY_WIDTH = 7, UNARY_MOST = 30 };

/* As many operators and ranges as a program takes: a GPU's compiler takes about as long for one. */
typedef struct unary_program {
    fixture f;
    uint32_t count;
    struct {
        const op_formula *formula;
        const op_range *range;
        uint32_t a, dst;
    } item[UNARY_MOST];
} unary_program;

static void add_unary(unary_program *p, const op_formula *formula, const op_range *range)
{
    const uint32_t a = add_random(&p->f, UNARY_WIDTH, range->low, range->high),
                   dst = add_reg(&p->f, GS_F32, UNARY_WIDTH), i = p->count++;
    float *const x = p->f.memory[a];
    memcpy(x + 100, special, sizeof(special));
    memcpy(x + UNARY_ROWS * UNARY_WIDTH - SPECIALS, special, sizeof(special)); /* in a partial vector, too */
    add_instr(&p->f, formula->op, dst, in_reg(a), NO_OPERAND)->alpha = formula->alpha;
    p->item[i].formula = formula;
    p->item[i].range = range;
    p->item[i].a = a;
    p->item[i].dst = dst;
}

static void check_unary(gs_device *d, const unary_program *p, uint32_t item)
{
    const op_formula *const formula = p->item[item].formula;
    const op_range *const range = p->item[item].range;
    const float *const x = p->f.memory[p->item[item].a], *const y = p->f.memory[p->item[item].dst];
    const bool gpu = strncmp(gs_device_name(d), "cuda", 4) == 0;
    const bool real = gpu && strstr(gs_device_name(d), "(host") == NULL;
    const double least = fmax(range->least, gpu ? formula->gpu.least : 0);
    const double allowed = real && formula->gpu.ulps > 0 ? formula->gpu.ulps : range->ulps;
    double worst = 0;
    for (size_t i = 0; i < UNARY_ROWS * UNARY_WIDTH; i++) {
        const double want = formula->value((double)x[i], 0, 0, (double)formula->alpha),
                     error = ulps(y[i], want, least);
        worst = fmax(worst, error);
        if (!(error <= allowed))
            fail_msg("%s of %.9g on %s: got %.9g, want %.17g, %.2f ulp", gs_op_name(formula->op), (double)x[i],
                     gs_device_name(d), (double)y[i], want, error);
    }
    printf("%s, %s in [%g, %g): %.2f ulp\n", gs_device_name(d), gs_op_name(formula->op), (double)range->low,
           (double)range->high, worst);
}

static void check_unaries(gs_device *d, unary_program *p)
{
    fixture_run(&p->f, d);
    for (uint32_t i = 0; i < p->count; i++)
        check_unary(d, p, i);
    fixture_free(&p->f);
}

static void every_unary(gs_device *d, void *context)
{
    unary_program *const p = test_malloc(sizeof(*p));
    (void)context;
    for (gs_op op = 0; op < GS_OP_COUNT; op++)
        if (gs_op_is_each(op) && gs_op_inputs(op) == 1)
            assert_true(op_formula_of(op)->range[0].low < op_formula_of(op)->range[0].high);
    fixture_init(&p->f, UNARY_ROWS);
    p->count = 0;
    for (size_t i = 0; op_formula_at(i) != NULL; i++)
        for (const op_range *r = op_formula_at(i)->range; r->low < r->high; r++) {
            if (p->count == UNARY_MOST) {
                check_unaries(d, p);
                fixture_init(&p->f, UNARY_ROWS);
                p->count = 0;
            }
            add_unary(p, op_formula_at(i), r);
        }
    check_unaries(d, p);
    test_free(p);
}

static void test_ops__unary_within_ulps_of_float64(void **state)
{
    (void)state;
    on_every_device(every_unary, NULL);
}

static void rowsums(gs_device *d, void *context)
{
    static const uint32_t widths[] = {1, 3, 8, 41, 256};
    (void)context;
    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
        fixture f;
        fixture_init(&f, 77);
        const uint32_t a = add_random(&f, widths[w], -1, 1), dst = add_reg(&f, GS_F32, 1), top = add_reg(&f, GS_F32, 1);
        add_instr(&f, GS_OP_ROWSUM, dst, in_reg(a), NO_OPERAND);
        add_instr(&f, GS_OP_ROWMAX, top, in_reg(a), NO_OPERAND);
        fixture_run(&f, d);
        for (uint32_t r = 0; r < 77; r++) {
            double want = 0;
            float most = -INFINITY;
            for (uint32_t c = 0; c < widths[w]; c++) {
                want += (double)((float *)f.memory[a])[r * widths[w] + c];
                most = fmaxf(most, ((float *)f.memory[a])[r * widths[w] + c]);
            }
            assert_true(((float *)f.memory[top])[r] == most);
            const float got = ((float *)f.memory[dst])[r];
            assert_true(fabs((double)got - want) <= 1e-6 * widths[w]);
        }
        fixture_free(&f);
    }
}

static void test_ops__rowsum(void **state)
{
    (void)state;
    on_every_device(rowsums, NULL);
}

/* ---- equality ---- */

static void equality(gs_device *d, void *context)
{
    enum { ROWS = 75, WIDTH = 5 };
    fixture f;
    (void)context;
    fixture_init(&f, ROWS);
    const uint32_t a = add_random(&f, WIDTH, -1, 1), b = add_random(&f, WIDTH, -1, 1),
                   column = add_random(&f, 1, -1, 1);
    const uint32_t both = add_reg(&f, GS_F32, WIDTH), number = add_reg(&f, GS_F32, WIDTH),
                   same = add_reg(&f, GS_F32, WIDTH);
    float *const x = f.memory[a], *const y = f.memory[b], *const z = f.memory[column];
    for (uint32_t i = 0; i < ROWS * WIDTH; i += 3)
        y[i] = x[i];
    for (uint32_t r = 0; r < ROWS; r += 2)
        z[r] = x[r * WIDTH + r % WIDTH];
    x[4] = y[4] = NAN; /* equals nothing */
    x[7] = 0.0f;
    y[7] = -0.0f;
    x[8] = 1.5f;
    add_instr(&f, GS_OP_EQ, both, in_reg(a), in_reg(b));
    add_instr(&f, GS_OP_EQ, number, in_reg(column), in_reg(a));
    add_instr(&f, GS_OP_EQ, same, in_reg(a), in_const(1.5f));
    fixture_run(&f, d);
    for (uint32_t i = 0; i < ROWS * WIDTH; i++) {
        assert_true(((float *)f.memory[both])[i] == (x[i] == y[i] ? 1.0f : 0.0f));
        assert_true(((float *)f.memory[number])[i] == (x[i] == z[i / WIDTH] ? 1.0f : 0.0f));
        assert_true(((float *)f.memory[same])[i] == (i == 8 ? 1.0f : 0.0f));
    }
    assert_true(((float *)f.memory[both])[4] == 0 && ((float *)f.memory[both])[7] == 1 &&
                ((float *)f.memory[both])[6] == 1);
    fixture_free(&f);
}

static void test_ops__equality(void **state)
{
    (void)state;
    on_every_device(equality, NULL);
}

static void casts(gs_device *d, void *context)
{
    static const gs_dtype types[] = {GS_F32, GS_BF16, GS_F16, GS_U8, GS_U16, GS_U32, GS_I32};
    enum { ROWS = 301, WIDTH = 5 };
    (void)context;
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        fixture f;
        fixture_init(&f, ROWS);
        const uint32_t a = add_reg(&f, types[t], WIDTH), dst = add_reg(&f, GS_F32, WIDTH);
        for (size_t i = 0; i < ROWS * WIDTH; i++) {
            const uint32_t n = random_below((uint32_t)i, 6, UINT32_MAX);
            const float v = random_between((uint32_t)i, 7, -100, 100);
            void *const p = f.memory[a];
            double want = 0;
            switch (types[t]) {
            case GS_F32:
                want = (double)(((float *)p)[i] = v);
                break;
            case GS_BF16: /* 8 bits of mantissa: exact after rounding */
                want = (double)gs_f32_from_bf16(((uint16_t *)p)[i] = gs_bf16_from_f32(v));
                assert_true(fabs(want - (double)v) <= fabs((double)v) / 256);
                break;
            case GS_F16: {
                static const uint16_t bits[] = {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000, 0x3555};
                static const double values[] = {1, -2, 65504, 0x1p-14, 0x1p-24, -0.0, 0.333251953125};
                ((uint16_t *)p)[i] = bits[i % 7];
                want = values[i % 7];
                break;
            }
            case GS_U8:
                want = ((uint8_t *)p)[i] = (uint8_t)n;
                break;
            case GS_U16:
                want = ((uint16_t *)p)[i] = (uint16_t)n;
                break;
            case GS_U32:
                want = (double)(float)(((uint32_t *)p)[i] = n);
                break;
            default:
                want = (double)(float)(((int32_t *)p)[i] = (int32_t)n);
                break;
            }
            ((float *)f.memory[dst])[i] = (float)want; /* what must be found there again */
        }
        float *const want = test_malloc(ROWS * WIDTH * sizeof(float));
        memcpy(want, f.memory[dst], ROWS * WIDTH * sizeof(float));
        memset(f.memory[dst], 0xff, ROWS * WIDTH * sizeof(float));
        add_instr(&f, GS_OP_CAST, dst, in_reg(a), NO_OPERAND);
        fixture_run(&f, d);
        assert_memory_equal(f.memory[dst], want, ROWS * WIDTH * sizeof(float));
        test_free(want);
        fixture_free(&f);
    }
}

/* Ties, infinities, NaNs (quiet and not), numbers below the normal ones, and any bits. */
static void rounds(gs_device *d, void *context)
{
    static const uint32_t bits[] = {0x3f808000, 0x3f818000, 0x3f807fff, 0x3f808001, 0x7f7fffff, 0x7f800000, 0xff800000,
                                    0x7f800001, 0xffffffff, 0x7fc00000, 0x00000001, 0x80008000, 0x00018000, 0x80000000};
    enum { ROWS = 301, WIDTH = 21 };
    const size_t known = sizeof(bits) / sizeof(bits[0]);
    fixture f;
    (void)context;
    fixture_init(&f, ROWS);
    const uint32_t a = add_reg(&f, GS_F32, WIDTH), dst = add_reg(&f, GS_BF16, WIDTH);
    uint16_t *const want = test_malloc(ROWS * WIDTH * sizeof(*want));
    for (size_t i = 0; i < ROWS * WIDTH; i++) {
        const uint32_t u = i < known ? bits[i] : random_below((uint32_t)i, 8, UINT32_MAX);
        memcpy((uint32_t *)f.memory[a] + i, &u, sizeof(u));
        want[i] = gs_bf16_from_f32(((const float *)f.memory[a])[i]);
    }
    assert_int_equal(want[0], 0x3f80); /* to even, down */
    assert_int_equal(want[1], 0x3f82); /* to even, up */
    assert_int_equal(want[4], 0x7f80); /* infinity is the nearest */
    assert_true((want[7] & 0x7fff) > 0x7f80);
    memset(f.memory[dst], 0xff, ROWS * WIDTH * sizeof(*want));
    add_instr(&f, GS_OP_ROUND, dst, in_reg(a), NO_OPERAND);
    fixture_run(&f, d);
    assert_memory_equal(f.memory[dst], want, ROWS * WIDTH * sizeof(*want));
    test_free(want);
    fixture_free(&f);
}

static void test_ops__round_to_what_is_stored(void **state)
{
    (void)state;
    on_every_device(rounds, NULL);
}

static void test_ops__cast_from_stored_types(void **state)
{
    (void)state;
    on_every_device(casts, NULL);
}

/* ---- dropout ---- */

static void compare_dropout(const fixture *f, const gs_device *d, uint32_t a, uint32_t id, uint32_t dst, float p)
{
    const uint32_t rows = f->launch.rows, width = f->reg[a].width;
    uint32_t key[2], word[4];
    size_t kept = 0;
    gs_random_key(key, f->launch.seed, GS_RANDOM_DROPOUT);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < width; c++) {
            const uint32_t counter[4] = {((uint32_t *)f->memory[id])[r], c / 4, 11, f->launch.epoch};
            gs_philox4x32(word, counter, key);
            const bool keep = gs_uniform_f32(word[c % 4]) >= p;
            const float x = ((float *)f->memory[a])[(size_t)r * width + c];
            const float want = keep ? x * (1.0f / (1.0f - p)) : 0.0f,
                        got = ((float *)f->memory[dst])[(size_t)r * width + c];
            kept += keep;
            if (got != want)
                fail_msg("dropout p %g [%u, %u] at (%u, %u) on %s: got %.9g, want %.9g", (double)p, rows, width, r, c,
                         gs_device_name(d), (double)got, (double)want);
        }
    const double n = (double)rows * width, off = fabs((double)kept - n * (1 - (double)p));
    assert_true(off <= 5 * sqrt(n * (double)p * (1 - (double)p)) + 1e-9);
}

static void check_dropout(gs_device *d, uint32_t rows, uint32_t width)
{
    static const float probabilities[] = {0, 0.1f, 0.5f, 0.6f, 0.99999994f};
    enum { COUNT = sizeof(probabilities) / sizeof(probabilities[0]) };
    uint32_t dst[COUNT];
    fixture f;
    fixture_init(&f, rows);
    const uint32_t a = add_random(&f, width, 1, 2), id = add_ids(&f);
    for (int i = 0; i < COUNT; i++) {
        dst[i] = add_reg(&f, GS_F32, width);
        gs_instr *const in = add_instr(&f, GS_OP_DROPOUT, dst[i], in_reg(a), in_reg(id));
        in->alpha = probabilities[i];
        in->site = 11;
    }
    fixture_run(&f, d);
    for (int i = 0; i < COUNT; i++)
        compare_dropout(&f, d, a, id, dst[i], probabilities[i]);
    fixture_free(&f);
}

/* p exactly an element's random number keeps that element; the next larger float drops it. */
static void dropout_edge(gs_device *d, void *context)
{
    enum { COLUMNS = 40 };
    (void)context;
    for (int above = 0; above < 2; above++) {
        fixture f;
        uint32_t key[2], word[4], dst[COLUMNS];
        float p[COLUMNS];
        fixture_init(&f, 1);
        const uint32_t a = add_random(&f, COLUMNS, 1, 2), id = add_ids(&f);
        gs_random_key(key, f.launch.seed, GS_RANDOM_DROPOUT);
        for (uint32_t c = 0; c < COLUMNS; c++) {
            gs_philox4x32(word, (const uint32_t[4]){((uint32_t *)f.memory[id])[0], c / 4, 0, f.launch.epoch}, key);
            p[c] = gs_uniform_f32(word[c % 4]);
            dst[c] = add_reg(&f, GS_F32, COLUMNS);
            add_instr(&f, GS_OP_DROPOUT, dst[c], in_reg(a), in_reg(id))->alpha = above ? nextafterf(p[c], 2) : p[c];
        }
        fixture_run(&f, d);
        for (uint32_t c = 0; c < COLUMNS; c++) {
            const float x = ((float *)f.memory[a])[c], got = ((float *)f.memory[dst[c]])[c];
            if (above)
                assert_true(got == 0);
            else
                gs_assert_close((double)got, (double)x / (1 - (double)p[c]), 1e-6);
        }
        fixture_free(&f);
    }
}

static void test_ops__dropout_keeps_at_p_itself(void **state)
{
    (void)state;
    on_every_device(dropout_edge, NULL);
}

static void dropouts(gs_device *d, void *context)
{
    static const uint32_t sizes[][2] = {{1, 1},   {400, 1}, {70, 2},  {129, 3},  {70, 4},
                                        {215, 7}, {64, 16}, {33, 41}, {20, 256}, {3, 602}};
    (void)context;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        check_dropout(d, sizes[s][0], sizes[s][1]);
}

static void test_ops__dropout_is_scalar_philox_bit_by_bit(void **state)
{
    (void)state;
    on_every_device(dropouts, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops__several_operands_in_every_broadcast_form),
        cmocka_unit_test(test_ops__max_keeps_nan),
        cmocka_unit_test(test_ops__unary_within_ulps_of_float64),
        cmocka_unit_test(test_ops__rowsum),
        cmocka_unit_test(test_ops__equality),
        cmocka_unit_test(test_ops__cast_from_stored_types),
        cmocka_unit_test(test_ops__round_to_what_is_stored),
        cmocka_unit_test(test_ops__dropout_keeps_at_p_itself),
        cmocka_unit_test(test_ops__dropout_is_scalar_philox_bit_by_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
