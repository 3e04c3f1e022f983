/* Vertex launches: products, gradients, the loss, whole programs; that results do not
 * depend on threads, that registers may lie over one another, that nothing
 * allocates, and what is refused. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "device_fixture.h"

static double reg_at(const fixture *f, uint32_t r, size_t i) { return (double)((const float *)f->memory[r])[i]; }

/* ---- products ---- */

typedef struct product_size {
    uint32_t rows, in, out;
} product_size;

static const product_size product_sizes[] = {{1, 1, 1},    {5, 7, 16},     {130, 16, 7},   {300, 64, 64},
                                             {257, 41, 47}, {1000, 33, 128}, {2500, 20, 70}, {64, 602, 41},
                                             {700, 300, 250} /* a gradient that is a run of its own, cut by columns, */,
                                             {150, 180, 300} /* by rows */, {5000, 30, 9},
                                             {70001, 3, 5} /* lots of several strips */,
                                             {4200, 170, 200} /* a wide gradient in the lots of many rows */};

enum { PRODUCT_SIZES = sizeof(product_sizes) / sizeof(product_sizes[0]), GRADIENTS_ALONE = 1 };

static void products(gs_device *d, void *context)
{
    (void)context;
    for (size_t s = 0; s < PRODUCT_SIZES - GRADIENTS_ALONE; s++) {
        const product_size z = product_sizes[s];
        fixture f;
        fixture_init(&f, z.rows);
        const uint32_t w = add_param(&f, 2, z.out, z.in);
        const uint32_t x = add_random(&f, z.in, -1, 1), g = add_random(&f, z.out, -1, 1);
        const uint32_t y = add_reg(&f, GS_F32, z.out), dx = add_reg(&f, GS_F32, z.in);
        add_instr(&f, GS_OP_MATMUL_T, y, in_reg(x), in_param(w));
        add_instr(&f, GS_OP_MATMUL, dx, in_reg(g), in_param(w));
        fixture_run(&f, d);
        const float *const left = f.memory[x], *const gradient = f.memory[g], *const weight = f.weight[w];
        round_inputs(d, left, (size_t)z.rows * z.in);
        round_inputs(d, gradient, (size_t)z.rows * z.out);
        round_inputs(d, weight, (size_t)z.in * z.out);
        for (uint32_t r = 0; r < z.rows; r++) {
            for (uint32_t o = 0; o < z.out; o++) {
                const double want = dot(left + (size_t)r * z.in, 1, weight + (size_t)o * z.in, 1, z.in);
                assert_true(fabs(reg_at(&f, y, (size_t)r * z.out + o) - want) <= 3e-7 * (z.in + 4));
            }
            for (uint32_t i = 0; i < z.in; i++) {
                const double want = dot(gradient + (size_t)r * z.out, 1, weight + i, z.in, z.out);
                assert_true(fabs(reg_at(&f, dx, (size_t)r * z.in + i) - want) <= 3e-7 * (z.out + 4));
            }
        }
        fixture_free(&f);
    }
}

static void test_vertex__products(void **state)
{
    (void)state;
    on_every_device(products, NULL);
    on_rounding_devices(products, NULL);
}

/* Launches of a pass share parameters, of which a device may keep what it likes until the pass is over; the next has
 * others. */
static void products_of_a_pass(gs_device *d, void *context)
{
    enum { ROWS = 37, IN = 30, OUT = 18, LAUNCHES = 4 };
    (void)context;
    fixture f;
    fixture_init(&f, ROWS);
    const uint32_t w = add_param(&f, 2, OUT, IN), x = add_random(&f, IN, -1, 1), y = add_reg(&f, GS_F32, OUT);
    add_instr(&f, GS_OP_MATMUL_T, y, in_reg(x), in_param(w));
    gs_assert_ok(gs_device_prepare(d, &f.program));
    float *const row = f.memory[x], *const weight = (float *)(uintptr_t)f.weight[w]; /* the fixture's own */
    for (uint32_t pass = 0; pass < 3; pass++) {
        for (uint32_t i = 0; i < OUT * IN; i++)
            weight[i] = random_between(i, 40 + pass, -1, 1);
        gs_assert_ok(gs_device_begin_pass(d, &(gs_device_pass){.program = &f.program, .param = f.weight}));
        for (uint32_t k = 0; k < LAUNCHES; k++) {
            for (uint32_t i = 0; i < ROWS * IN; i++)
                row[i] = random_between(i, 50 + k, -1, 1);
            gs_assert_ok(launch_vertex(d, &f.launch));
            round_inputs(d, row, ROWS * IN);
            round_inputs(d, weight, OUT * IN);
            for (uint32_t i = 0; i < ROWS * OUT; i++) {
                double want = 0;
                for (uint32_t c = 0; c < IN; c++)
                    want += (double)row[i / OUT * IN + c] * (double)weight[i % OUT * IN + c];
                assert_true(fabs(reg_at(&f, y, i) - want) <= 3e-7 * (IN + 4));
            }
        }
        gs_assert_ok(gs_device_end_pass(d));
    }
    fixture_free(&f);
}

static void test_vertex__a_pass_has_the_parameters_of_its_beginning(void **state)
{
    (void)state;
    on_every_device(products_of_a_pass, NULL);
    on_rounding_devices(products_of_a_pass, NULL);
}

/* Gradients add to what is there (0.5). */
static void gradients(gs_device *d, void *context)
{
    (void)context;
    for (size_t s = 0; s < PRODUCT_SIZES; s++) {
        const product_size z = product_sizes[s];
        fixture f;
        if (!gs_test_takes(s, 2))
            continue;
        fixture_init(&f, z.rows);
        const uint32_t w = add_param(&f, 2, z.out, z.in), bias = add_param(&f, 1, 1, z.out);
        const uint32_t x = add_random(&f, z.in, -1, 1), g = add_random(&f, z.out, -1, 1);
        add_instr(&f, GS_OP_OUTER, w, in_reg(g), in_reg(x));
        add_instr(&f, GS_OP_COLSUM, bias, in_reg(g), NO_OPERAND);
        fixture_run(&f, d);
        const float *const row = f.memory[x], *const gradient = f.memory[g];
        const double allowed = 1e-7 * (z.rows + 16);
        for (uint32_t o = 0; o < z.out; o++) {
            double sum = 0.5;
            for (uint32_t r = 0; r < z.rows; r++)
                sum += reg_at(&f, g, (size_t)r * z.out + o);
            assert_true(fabs((double)f.grad[bias][o] - sum) <= allowed);
        }
        round_inputs(d, row, (size_t)z.rows * z.in);
        round_inputs(d, gradient, (size_t)z.rows * z.out);
        for (uint32_t o = 0; o < z.out; o++) {
            for (uint32_t i = 0; i < z.in; i++) {
                const double want = 0.5 + dot(gradient + o, z.out, row + i, z.in, z.rows);
                assert_true(fabs((double)f.grad[w][o * z.in + i] - want) <= allowed);
            }
        }
        fixture_free(&f);
    }
}

static void test_vertex__gradients_add_up(void **state)
{
    (void)state;
    on_every_device(gradients, NULL);
    on_rounding_devices(gradients, NULL);
}

/* ---- the loss ---- */

typedef struct loss_regs {
    uint32_t logits, labels, splits, gradient;
} loss_regs;

static loss_regs add_loss(fixture *f, uint32_t classes, float spread)
{
    const loss_regs l = {.logits = add_random(f, classes, -spread, spread), .labels = add_reg(f, GS_I32, 1),
                         .splits = add_reg(f, GS_U8, 1), .gradient = add_reg(f, GS_F32, classes)};
    for (uint32_t r = 0; r < f->launch.rows; r++) {
        const uint32_t kind = random_below(r, 20, 10);
        ((int32_t *)f->memory[l.labels])[r] = kind == 0   ? -1
                                              : kind == 1 ? (int32_t)classes /* damaged: no label */
                                                          : (int32_t)random_below(r, 21, classes);
        ((uint8_t *)f->memory[l.splits])[r] = (uint8_t)random_below(r, 22, 5); /* 4 is no split */
        float *const a = (float *)f->memory[l.logits] + (size_t)r * classes;
        if (r % 3 == 0 && classes > 1) /* a tie: the lower index wins */
            a[classes - 1] = a[random_below(r, 23, classes - 1)] = spread + 1;
    }
    return l;
}

#define FOUNDS (GS_LOSS_SPLITS * GS_LOSS_SUMS * 172) /* of the most classes */

static void check_loss(const fixture *f, loss_regs l, uint32_t classes, bool with_gradient)
{
    uint32_t found[FOUNDS] = {0};
    gs_metrics want = {0};
    double size = 0;
    for (uint32_t r = 0; r < f->launch.rows; r++) {
        const float *const a = (const float *)f->memory[l.logits] + (size_t)r * classes;
        const int32_t label = ((const int32_t *)f->memory[l.labels])[r];
        const uint8_t split = ((const uint8_t *)f->memory[l.splits])[r];
        const bool counted = label >= 0 && label < (int32_t)classes && split >= 1 && split <= 3;
        uint32_t best = 0;
        double total = 0;
        for (uint32_t c = 1; c < classes; c++)
            best = a[c] > a[best] ? c : best;
        for (uint32_t c = 0; c < classes; c++)
            total += exp((double)a[c] - (double)a[best]);
        if (counted) {
            want.rows[split]++;
            want.correct[split] += (int32_t)best == label;
            found[((split - 1) * classes + best) * GS_LOSS_SUMS + ((int32_t)best != label)]++;
            found[((split - 1) * classes + (uint32_t)label) * GS_LOSS_SUMS + 2] += (int32_t)best != label;
        }
        if (counted && split <= 2) {
            const double loss = log(total) - ((double)a[label] - (double)a[best]);
            *(split == 1 ? &want.loss_sum : &want.valid_loss) += loss;
            size += loss;
        }
        for (uint32_t c = 0; with_gradient && c < classes; c++) {
            const double p = exp((double)a[c] - (double)a[best]) / total;
            const double g = counted && split == 1 ? (p - ((int32_t)c == label)) * 0.25 : 0;
            const double got = reg_at(f, l.gradient, (size_t)r * classes + c);
            if (g == 0 ? got != 0 && fabs(got) > 1e-40 : fabs(got - g) > 2e-7 * (0.25 + fabs(g)))
                fail_msg("gradient at (%u, %u): got %.9g, want %.9g", r, c, got, g);
        }
    }
    gs_assert_close(f->metrics.loss_sum, want.loss_sum, 1e-6 + 1e-12 * size);
    gs_assert_close(f->metrics.valid_loss, want.valid_loss, 1e-6 + 1e-12 * size);
    for (uint32_t k = 0; f->metrics.found != NULL && k < GS_LOSS_SPLITS * GS_LOSS_SUMS * classes; k++)
        assert_int_equal(f->metrics.found[k], found[k]);
    for (int s = 0; s < 4; s++) {
        assert_int_equal(f->metrics.rows[s], want.rows[s]);
        assert_int_equal(f->metrics.correct[s], want.correct[s]);
    }
}

static void losses(gs_device *d, void *context)
{
    static const uint32_t classes[] = {1, 2, 7, 8, 16, 41, 47, 172};
    (void)context;
    for (size_t c = 0; c < sizeof(classes) / sizeof(classes[0]); c++)
        for (int with_gradient = 0; with_gradient < 2; with_gradient++)
            for (float spread = 3; spread < 4000; spread *= 30) { /* 2700: naive softmax overflows */
                fixture f;
                fixture_init(&f, classes[c] == 7 ? 4200 : 700); /* more parts than a block of a GPU has lanes */
                const loss_regs l = add_loss(&f, classes[c], spread);
                gs_instr *const in =
                    with_gradient ? add_instr(&f, GS_OP_XENT_GRAD, l.gradient, in_reg(l.logits), in_reg(l.labels))
                                  : add_instr(&f, GS_OP_XENT, GS_NONE, in_reg(l.logits), in_reg(l.labels));
                uint32_t found[FOUNDS] = {0};
                in->c = in_reg(l.splits);
                f.metrics.found = with_gradient ? found : NULL;
                fixture_run(&f, d);
                check_loss(&f, l, classes[c], with_gradient);
                fixture_free(&f);
            }
}

static void test_vertex__loss_metrics_and_gradient(void **state)
{
    (void)state;
    on_every_device(losses, NULL);
}

/* ---- a whole program ---- */

enum { IN = 20, HIDDEN = 24, CLASSES = 7 };

typedef struct model {
    uint32_t x, scale, id, h, z, dropped, y, logits, dh, dz, dx, act;
    uint32_t w1, b1, w2;
    loss_regs loss;
} model;

/* Forward and backward of relu(scale * (x W1') + b1), dropout, W2, loss: every kind of instruction at once. */
static model build_model(fixture *f, uint32_t rows)
{
    model m;
    fixture_init(f, rows);
    m.w1 = add_param(f, 2, HIDDEN, IN);
    m.b1 = add_param(f, 1, 1, HIDDEN);
    m.w2 = add_param(f, 2, CLASSES, HIDDEN);
    m.x = add_random(f, IN, -1, 1);
    m.scale = add_random(f, 1, 0.2f, 1);
    m.id = add_ids(f);
    m.h = add_reg(f, GS_F32, HIDDEN);
    m.z = add_reg(f, GS_F32, HIDDEN);
    m.act = add_reg(f, GS_F32, HIDDEN);
    m.dropped = add_reg(f, GS_F32, HIDDEN);
    m.loss = add_loss(f, CLASSES, 1);
    m.dh = add_reg(f, GS_F32, HIDDEN);
    m.dz = add_reg(f, GS_F32, HIDDEN);

    add_instr(f, GS_OP_MATMUL_T, m.h, in_reg(m.x), in_param(m.w1));
    add_instr(f, GS_OP_MUL, m.z, in_reg(m.scale), in_reg(m.h));
    add_instr(f, GS_OP_ADD, m.act, in_reg(m.z), in_param(m.b1));
    add_instr(f, GS_OP_DROPOUT, m.dropped, in_reg(m.act), in_reg(m.id))->alpha = 0.4f;
    add_instr(f, GS_OP_MATMUL_T, m.loss.logits, in_reg(m.dropped), in_param(m.w2));
    add_instr(f, GS_OP_XENT_GRAD, m.loss.gradient, in_reg(m.loss.logits), in_reg(m.loss.labels))->c =
        in_reg(m.loss.splits);
    add_instr(f, GS_OP_OUTER, m.w2, in_reg(m.loss.gradient), in_reg(m.dropped));
    add_instr(f, GS_OP_MATMUL, m.dh, in_reg(m.loss.gradient), in_param(m.w2));
    add_instr(f, GS_OP_DROPOUT, m.dz, in_reg(m.dh), in_reg(m.id))->alpha = 0.4f;
    add_instr(f, GS_OP_COLSUM, m.b1, in_reg(m.dz), NO_OPERAND);
    return m;
}

/* Each result from the inputs of its own instruction, in float64: a wrong order or a
 * wrong block would show as an input that was not there yet. */
static void whole_program(gs_device *d, void *context)
{
    (void)context;
    for (uint32_t rows = 1; rows < 4000; rows = rows * 9 + 2) {
        fixture f;
        const model m = build_model(&f, rows);
        fixture_run(&f, d);
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < HIDDEN; c++) {
                const size_t at = (size_t)r * HIDDEN + c;
                double h = 0, dh = 0;
                for (uint32_t i = 0; i < IN; i++)
                    h += reg_at(&f, m.x, (size_t)r * IN + i) * (double)f.weight[m.w1][c * IN + i];
                for (uint32_t k = 0; k < CLASSES; k++)
                    dh += reg_at(&f, m.loss.gradient, (size_t)r * CLASSES + k) * (double)f.weight[m.w2][k * HIDDEN + c];
                const double act = reg_at(&f, m.scale, r) * h + (double)f.weight[m.b1][c];
                const bool kept = reg_at(&f, m.dropped, at) != 0;
                assert_true(fabs(reg_at(&f, m.act, at) - act) <= 1e-5);
                assert_true(fabs(reg_at(&f, m.dropped, at) - (kept ? act / 0.6 : 0)) <= 2e-5);
                assert_true(fabs(reg_at(&f, m.dz, at) - (kept ? dh / 0.6 : 0)) <= 1e-5); /* the same mask */
            }
            for (uint32_t k = 0; k < CLASSES; k++) {
                double y = 0;
                for (uint32_t c = 0; c < HIDDEN; c++)
                    y += reg_at(&f, m.dropped, (size_t)r * HIDDEN + c) * (double)f.weight[m.w2][k * HIDDEN + c];
                assert_true(fabs(reg_at(&f, m.loss.logits, (size_t)r * CLASSES + k) - y) <= 2e-5);
            }
        }
        check_loss(&f, m.loss, CLASSES, true);
        for (uint32_t c = 0; c < HIDDEN; c++) {
            double want = 0.5;
            for (uint32_t r = 0; r < rows; r++)
                want += reg_at(&f, m.dz, (size_t)r * HIDDEN + c);
            assert_true(fabs((double)f.grad[m.b1][c] - want) <= 1e-6 * (rows + 10));
        }
        fixture_free(&f);
    }
}

static void test_vertex__whole_program(void **state)
{
    (void)state;
    on_every_device(whole_program, NULL);
}

static void same_bits(const fixture *a, const fixture *b)
{
    for (uint32_t r = 0; r < a->stage.regs; r++)
        if (a->reg[r].array == b->reg[r].array)
            assert_memory_equal(a->memory[r], b->memory[r],
                                (size_t)a->launch.rows * a->reg[r].width * gs_dtype_bytes(a->reg[r].dtype));
    for (uint32_t p = 0; p < a->program.params; p++)
        assert_memory_equal(a->grad[p], b->grad[p], (size_t)a->param[p].rows * a->param[p].cols * sizeof(float));
    assert_memory_equal(&a->metrics, &b->metrics, sizeof(gs_metrics));
}

/* As it was with the threads before. */
static void as_before(gs_device *d, void *context)
{
    fixture *const before = context;
    fixture f;
    build_model(&f, 4811);
    fixture_run(&f, d);
    if (before->launch.rows > 0) {
        same_bits(before, &f);
        fixture_free(before);
    }
    *before = f;
}

static void test_vertex__threads_do_not_change_a_bit(void **state)
{
    static fixture rounding;
    (void)state;
    on_rounding_devices(as_before, &rounding);
    if (rounding.launch.rows > 0)
        fixture_free(&rounding);
    for (size_t i = 0; i < isas; i++)
        for (uint32_t rows = 700; rows < 10000; rows += 4111) {
            fixture one;
            gs_device *d = gs_test_takes(i + rows / 4111, 3) ? open_isa(isa_names[i], 1) : NULL;
            if (d == NULL)
                continue;
            build_model(&one, rows);
            fixture_run(&one, d);
            gs_device_close(d);
            for (unsigned threads = 2; threads <= 5; threads += 3) {
                fixture many;
                d = open_isa(isa_names[i], threads);
                if (d == NULL)
                    continue; /* a GPU has no threads */
                build_model(&many, rows);
                fixture_run(&many, d);
                same_bits(&one, &many);
                fixture_free(&many);
                gs_device_close(d);
            }
            fixture_free(&one);
        }
}

/* What is not stored changes no bit of what is, apart or over one another; and of many rows, processors use but the
 * first, as many as stay in a cache, of each register's memory. */
static void temporaries(gs_device *d, void *context)
{
    (void)context;
    for (uint32_t rows = 1300; rows < 20000; rows = rows * 3 + 700) {
        fixture stored, f;
        (void)build_model(&stored, rows);
        const model m = build_model(&f, rows);
        const uint32_t temporary[] = {m.h, m.z, m.act, m.dropped, m.dh, m.dz};
        for (size_t i = 0; i < GS_ARRAY_LEN(temporary); i++)
            f.reg[temporary[i]].array = GS_NONE;
        void *const own = f.memory[m.dh];
        f.memory[m.dh] = f.memory[m.h];
        fixture_run(&stored, d);
        fixture_run(&f, d);
        same_bits(&stored, &f);
        for (size_t i = 0; i < GS_ARRAY_LEN(temporary) && rows > 10000 && gs_device_unified(d); i++)
            assert_true(isnan(reg_at(&f, temporary[i], (size_t)rows * HIDDEN - 1)));
        f.memory[m.dh] = own;
        fixture_free(&stored);
        fixture_free(&f);
    }
}

static void test_vertex__temporaries_stay_in_a_few_rows(void **state)
{
    (void)state;
    on_every_device(temporaries, NULL);
    on_rounding_devices(temporaries, NULL);
}

/* Registers laid over dead ones at another place and width, as schedule does: the
 * results must be those of registers apart. */
static void overlaid(gs_device *d, void *context)
{
    enum { ROWS = 1500, NARROW = 5, WIDE = 40 };
    fixture f;
    (void)context;
    fixture_init(&f, ROWS);
    const uint32_t wide = add_random(&f, WIDE, -1, 1), sum = add_reg(&f, GS_F32, 1),
                   narrow = add_random(&f, NARROW, -1, 1);
    const uint32_t a = add_reg(&f, GS_F32, WIDE), b = add_reg(&f, GS_F32, NARROW), c = add_reg(&f, GS_F32, NARROW);
    add_instr(&f, GS_OP_NEG, a, in_reg(wide), NO_OPERAND);         /* a = -wide */
    add_instr(&f, GS_OP_ROWSUM, sum, in_reg(a), NO_OPERAND);       /* the last use of a */
    add_instr(&f, GS_OP_MUL, b, in_reg(narrow), in_const(2));      /* lies over a's middle */
    add_instr(&f, GS_OP_SUB, c, in_reg(b), in_reg(sum));
    void *const own = f.memory[b];
    f.memory[b] = (float *)f.memory[a] + 3001;
    fixture_run(&f, d);
    for (uint32_t r = 0; r < ROWS; r++) {
        double want = 0;
        for (uint32_t i = 0; i < WIDE; i++)
            want -= reg_at(&f, wide, (size_t)r * WIDE + i);
        assert_true(fabs(reg_at(&f, sum, r) - want) <= 1e-5);
        for (uint32_t i = 0; i < NARROW; i++)
            assert_true(fabs(reg_at(&f, c, (size_t)r * NARROW + i) -
                             (2 * reg_at(&f, narrow, (size_t)r * NARROW + i) - want)) <= 2e-5);
    }
    f.memory[b] = own;
    fixture_free(&f);
}

static void test_vertex__registers_may_lie_over_dead_ones(void **state)
{
    (void)state;
    on_every_device(overlaid, NULL);
}

/* The sum of two products, which may be made in one place: by itself, over an operand of either product, and with
 * another reader of one of them. */
static void sums_of_products(gs_device *d, void *context)
{
    enum { ROWS = 700, WIDE = 24, APART = 0, OVER_FIRST, OVER_SECOND, READ_AGAIN, CASES };
    (void)context;
    for (int which = 0; which < CASES; which++) {
        fixture f;
        fixture_init(&f, ROWS);
        const uint32_t v = add_param(&f, 2, WIDE, WIDE), w = add_param(&f, 2, WIDE, WIDE);
        const uint32_t x = add_random(&f, WIDE, -1, 1), y = add_random(&f, WIDE, -1, 1);
        const uint32_t a = add_reg(&f, GS_F32, WIDE), b = add_reg(&f, GS_F32, WIDE), sum = add_reg(&f, GS_F32, WIDE);
        const uint32_t minus = add_reg(&f, GS_F32, WIDE);
        f.reg[a].array = f.reg[b].array = GS_NONE; /* nobody looks at them later */
        static double want_a[ROWS * WIDE], want[ROWS * WIDE]; /* before operands are lain over */
        for (uint32_t i = 0; i < ROWS * WIDE; i++) {
            double second = want_a[i] = 0;
            for (uint32_t k = 0; k < WIDE; k++) {
                want_a[i] += reg_at(&f, x, i / WIDE * WIDE + k) * (double)f.weight[v][i % WIDE * WIDE + k];
                second += reg_at(&f, y, i / WIDE * WIDE + k) * (double)f.weight[w][k * WIDE + i % WIDE];
            }
            want[i] = want_a[i] + second;
        }
        add_instr(&f, GS_OP_MATMUL_T, a, in_reg(x), in_param(v));
        add_instr(&f, GS_OP_MATMUL, b, in_reg(y), in_param(w));
        add_instr(&f, GS_OP_ADD, sum, in_reg(b), in_reg(a));
        add_instr(&f, GS_OP_NEG, minus, in_reg(which == READ_AGAIN ? a : sum), NO_OPERAND);
        void *const own = f.memory[sum];
        f.memory[sum] = which == OVER_FIRST ? f.memory[x] : which == OVER_SECOND ? f.memory[y] : own;
        fixture_run(&f, d);
        for (uint32_t i = 0; i < ROWS * WIDE; i++) {
            assert_true(fabs(reg_at(&f, sum, i) - want[i]) <= 3e-5);
            assert_true(fabs(reg_at(&f, minus, i) + (which == READ_AGAIN ? want_a : want)[i]) <= 3e-5);
        }
        f.memory[sum] = own;
        fixture_free(&f);
    }
}

static void test_vertex__two_products_are_summed_wherever_the_sum_lies(void **state)
{
    (void)state;
    on_every_device(sums_of_products, NULL);
}

/* ---- memory ---- */

static void prepare_and_run(gs_device *d, void *context)
{
    fixture f;
    (void)context;
    build_model(&f, 3000);
    const uint64_t before = gs_alloc_live_bytes();
    gs_assert_ok(gs_device_prepare(d, &f.program));
    const uint64_t taken = gs_alloc_live_bytes() - before;
    assert_true(taken > 0 && taken <= gs_device_scratch_bytes(d, &f.program));
    gs_assert_ok(gs_device_prepare(d, &f.program)); /* again: nothing more */
    assert_int_equal(gs_alloc_live_bytes() - before, taken);

    gs_alloc_freeze(true);
    const uint64_t frozen = gs_alloc_frozen_count();
    gs_assert_ok(gs_device_run_vertex(d, &f.launch));
    assert_int_equal(gs_alloc_frozen_count(), frozen);
    gs_alloc_freeze(false);
    fixture_free(&f);
}

static void test_vertex__prepare_takes_what_it_says_and_launches_nothing(void **state)
{
    fixture f;
    gs_device *d = NULL;
    (void)state;
    gs_assert_ok(gs_device_open(&d, "cpu", 2));
    prepare_and_run(d, NULL);
    gs_device_close(d);
    on_rounding_devices(prepare_and_run, NULL);
    build_model(&f, 3000);
    for (unsigned n = 1; n <= 2; n++) {
        d = NULL;
        gs_assert_ok(gs_device_open(&d, "cpu", 2));
        gs_alloc_fail_nth(n);
        gs_assert_fails(gs_device_prepare(d, &f.program), GS_ENOMEM, "device cpu: out of memory");
        gs_alloc_fail_nth(0);
        gs_assert_ok(gs_device_prepare(d, &f.program)); /* a failure leaves it usable */
        gs_assert_ok(gs_device_run_vertex(d, &f.launch));
        gs_device_close(d);
    }
    fixture_free(&f);
}

/* ---- what is refused ---- */

/* Runs with one thing of a good launch missing; nothing may be written. */
static void refuse(gs_device *d, fixture *f, const char *part)
{
    const float first = ((float *)f->memory[0])[0];
    gs_assert_fails(gs_device_run_vertex(d, &f->launch), GS_EINVAL, part);
    assert_true(strstr(gs_last_error(), "stage \"test stage\"") != NULL);
    assert_true(((float *)f->memory[0])[0] == first);
}

static void test_vertex__refuses_what_the_launch_lacks(void **state)
{
    fixture f;
    gs_device *d = NULL;
    (void)state;
    gs_assert_ok(gs_device_open(&d, "cpu", 2));
    fixture_init(&f, 10);
    const uint32_t dst = add_random(&f, 4, 0, 1), a = add_random(&f, 4, 0, 1), five = add_random(&f, 5, 0, 1);
    const uint32_t w = add_param(&f, 2, 4, 5), wide = add_param(&f, 1, 1, 5);
    gs_instr *const in = add_instr(&f, GS_OP_RELU, dst, in_reg(a), NO_OPERAND);
    refuse(d, &f, "instruction 0: not prepared for so many instructions");
    gs_assert_ok(gs_device_prepare(d, &f.program));
    gs_assert_ok(gs_device_run_vertex(d, &f.launch));

    void *const there = f.memory[a];
    f.memory[a] = NULL;
    refuse(d, &f, "a register that the launch does not have");
    f.memory[a] = there;
    *in = (gs_instr){.op = GS_OP_OUTER, .dst = w, .a = in_reg(a), .b = in_reg(five)};
    refuse(d, &f, "not prepared for a gradient of this size");
    *in = (gs_instr){.op = GS_OP_COLSUM, .dst = wide, .a = in_reg(five)};
    refuse(d, &f, "not prepared for a gradient of this size");
    f.launch.grad = NULL;
    refuse(d, &f, "no place for this gradient");
    f.launch.reg = NULL;
    gs_assert_fails(gs_device_run_vertex(d, &f.launch), GS_EINVAL, "the launch has no registers");
    f.launch.reg = f.memory;

    f.launch.rows = 0; /* no rows: nothing to refuse */
    gs_assert_ok(gs_device_run_vertex(d, &f.launch));
    fixture_free(&f);
    gs_device_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vertex__products),
        cmocka_unit_test(test_vertex__a_pass_has_the_parameters_of_its_beginning),
        cmocka_unit_test(test_vertex__gradients_add_up),
        cmocka_unit_test(test_vertex__loss_metrics_and_gradient),
        cmocka_unit_test(test_vertex__whole_program),
        cmocka_unit_test(test_vertex__threads_do_not_change_a_bit),
        cmocka_unit_test(test_vertex__temporaries_stay_in_a_few_rows),
        cmocka_unit_test(test_vertex__registers_may_lie_over_dead_ones),
        cmocka_unit_test(test_vertex__two_products_are_summed_wherever_the_sum_lies),
        cmocka_unit_test(test_vertex__prepare_takes_what_it_says_and_launches_nothing),
        cmocka_unit_test(test_vertex__refuses_what_the_launch_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
