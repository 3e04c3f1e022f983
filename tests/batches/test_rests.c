/* test_rests.c - what is left of a vertex program in rows where some of what it reads is 0 computes what all of it
 * computes there: for every built-in model's stages, with sets of zeros drawn at random; and which stages of a batch
 * have such a rest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compile/cases.h"
#include "device/device.h"
#include "program/program.h"
#include "batch/batches_internal.h"

#define ROWS    37u
#define CLASSES 5u
#define TRIALS  12u

static uint64_t state = 88172645463325252ull;

static uint32_t next(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % n;
}

/* Away from 0, so that divisors and what a logarithm is taken of are numbers. */
static float number(void) { return 0.25f + (float)next(1000) / 1000; }

/* What a launch reads and writes. */
typedef struct bench {
    const gs_program *p;
    const gs_stage *s;
    void **reg;
    float **param, **grad;
    double **statistic;
    gs_metrics metrics;
} bench;

static size_t reg_bytes(const gs_reg *r) { return (size_t)ROWS * r->width * gs_dtype_bytes(r->dtype); }

static void fill(const bench *b, uint32_t r, bool zero)
{
    const gs_reg *const reg = &b->s->reg[r];
    const size_t n = (size_t)ROWS * reg->width;

    for (size_t i = 0; i < n; i++)
        switch (reg->dtype) {
        case GS_I32:
            ((int32_t *)b->reg[r])[i] = (int32_t)next(CLASSES);
            break;
        case GS_U8:
            ((uint8_t *)b->reg[r])[i] = (uint8_t)next(4);
            break;
        case GS_U32:
            ((uint32_t *)b->reg[r])[i] = next(1000);
            break;
        default:
            assert_int_equal(reg->dtype, GS_F32);
            ((float *)b->reg[r])[i] = zero ? 0 : number();
        }
}

static void open_bench(bench *b, const gs_program *p, const gs_stage *s)
{
    *b = (bench){.p = p, .s = s};
    b->reg = calloc(s->regs + 1, sizeof(*b->reg));
    b->param = calloc(p->params + 1, sizeof(*b->param));
    b->grad = calloc(p->params + 1, sizeof(*b->grad));
    b->statistic = calloc(p->params + 1, sizeof(*b->statistic));
    for (uint32_t r = 0; r < s->regs; r++) {
        b->reg[r] = malloc(reg_bytes(&s->reg[r]));
        memset(b->reg[r], 0xff, reg_bytes(&s->reg[r])); /* not a number */
    }
    for (uint32_t k = 0; k < p->params; k++) {
        const size_t n = gs_param_elements(&p->param[k]);
        b->param[k] = malloc(n * sizeof(float));
        b->grad[k] = calloc(n, sizeof(float));
        b->statistic[k] = calloc(2 * n, sizeof(double));
        for (size_t i = 0; i < n; i++)
            b->param[k][i] = (float)(k * 31 + i * 17 % 23) / 64 - 0.2f;
    }
}

static void close_bench(bench *b)
{
    for (uint32_t r = 0; r < b->s->regs; r++)
        free(b->reg[r]);
    for (uint32_t k = 0; k < b->p->params; k++) {
        free(b->param[k]);
        free(b->grad[k]);
        free(b->statistic[k]);
    }
    free(b->reg);
    free(b->param);
    free(b->grad);
    free(b->statistic);
}

static void run(bench *b, gs_device *d, const gs_stage *s)
{
    const gs_vertex_launch l = {.program = b->p, .stage = s, .rows = ROWS, .reg = b->reg,
                                .param = (const float *const *)b->param, .grad = b->grad, .statistic = b->statistic,
                                .metrics = &b->metrics, .seed = 3, .epoch = 5, .loss_scale = 0.125f};
    gs_assert_ok(gs_device_run_vertex(d, &l));
}

/* Numbers that all of the stage made finite: 0 times an infinity is none. */
static size_t compare(const float *want, const float *got, size_t n, const char *what)
{
    size_t compared = 0;

    for (size_t i = 0; i < n; i++) {
        if (!isfinite(want[i]))
            continue;
        if (!(fabsf(want[i] - got[i]) <= 2e-5f * (1 + fabsf(want[i]))))
            fail_msg("%s: element %zu is %g, not %g", what, i, (double)got[i], (double)want[i]);
        compared++;
    }
    return compared;
}

typedef struct counts {
    size_t compared, dropped, tried;
} counts;

/* Some of the stage's registers are 0, some of its rows unread. */
static void try_stage(gs_device *d, const gs_program *p, const gs_stage *s, counts *c)
{
    bool zero[256] = {0}, unread[256] = {0}, read[256], shorter;
    const gs_zero_rows known = {zero, unread};
    bench all, left;
    gs_stage rest;

    assert_true(s->regs <= 256);
    open_bench(&all, p, s);
    open_bench(&left, p, s);
    for (uint32_t r = 0; r < s->regs; r++) {
        const gs_reg *const reg = &s->reg[r];
        const bool own = reg->kind == GS_REG_SUM || (reg->array != GS_NONE && p->array[reg->array].store_id < 0);
        zero[r] = reg->kind != GS_REG_TEMP && own && next(2) == 0;
        unread[r] = reg->kind == GS_REG_TEMP && reg->array != GS_NONE && next(3) == 0;
        if (reg->kind == GS_REG_TEMP)
            continue;
        fill(&all, r, zero[r]);
        memcpy(left.reg[r], all.reg[r], reg_bytes(reg));
    }
    gs_assert_ok(gs_stage_rest(&rest, read, &shorter, s, &known));
    c->tried++;
    run(&all, d, s);
    if (shorter) {
        c->dropped += s->instrs - rest.instrs;
        for (uint32_t r = 0; r < s->regs; r++)
            if (s->reg[r].kind != GS_REG_TEMP && !read[r])
                memset(left.reg[r], 0xff, reg_bytes(&s->reg[r]));
        run(&left, d, &rest);
        for (uint32_t r = 0; r < s->regs; r++)
            if (s->reg[r].kind == GS_REG_TEMP && s->reg[r].array != GS_NONE && !unread[r] && s->reg[r].dtype == GS_F32)
                c->compared += compare(all.reg[r], left.reg[r], (size_t)ROWS * s->reg[r].width, s->name);
        for (uint32_t k = 0; k < p->params; k++)
            c->compared += compare(all.grad[k], left.grad[k], gs_param_elements(&p->param[k]), p->param[k].name);
        if (isfinite(all.metrics.loss_sum))
            assert_float_equal(all.metrics.loss_sum, left.metrics.loss_sum, 1e-4);
        gs_stage_drop_rest(&rest);
    }
    close_bench(&all);
    close_bench(&left);
}

static void test_rest_of_a_stage__is_the_whole_one_where_rows_are_zero(void **s)
{
    static const char *const model[] = {"gcn",   "sage",    "sage_max", "sage_lstm", "gat",  "gatv2",     "gin",
                                        "appnp", "commnet", "ggcn",     "ggnn",      "rgcn", "rgcn_bases"};
    gs_device *d = NULL;

    (void)s;
    gs_assert_ok(gs_device_open(&d, "cpu", 2));
    for (size_t m = 0; m < sizeof(model) / sizeof(model[0]); m++) {
        const uint32_t heads = strncmp(model[m], "gat", 3) == 0 ? 4 : 0;
        const test_case t = {.model = model[m], .layers = 2, .in = 12, .hidden = 8, .classes = CLASSES, .heads = heads,
                             .dropout = m % 2 == 0 ? 0.25f : 0, .edge_types = strncmp(model[m], "rgcn", 4) == 0 ? 3 : 0,
                             .edges_per_vertex = 5, .feature_type = GS_F32};
        gs_program *const p = gs_program_new();
        counts c = {0};
        gs_assert_ok(compile_case(p, &t, "train"));
        gs_assert_ok(gs_device_prepare(d, p));
        for (uint32_t k = 0; k < p->stages; k++)
            for (uint32_t i = 0; i < TRIALS && p->stage[k].instrs > 0; i++)
                try_stage(d, p, &p->stage[k], &c);
        if (c.compared < 1000 || c.dropped < c.tried)
            fail_msg("%s: %zu numbers compared, %zu instructions left out in %zu trials", model[m], c.compared,
                     c.dropped, c.tried);
        gs_program_free(p);
    }
    gs_device_close(d);
}

/* Stages of GAT's last hop have rests, those of its targets have none; only where rests are asked for. */
static void test_rests__are_found_where_hops_end(void **s)
{
    const test_case t = {.model = "gat", .layers = 2, .in = 12, .hidden = 8, .classes = CLASSES, .heads = 4,
                         .edges_per_vertex = 5, .feature_type = GS_F32};
    gs_program *const p = gs_program_new();
    uint32_t instrs = 0, left = 0;

    (void)s;
    gs_assert_ok(compile_case(p, &t, "train"));
    for (gs_hop_cut cut = GS_CUT_NOTHING; cut <= GS_CUT_RESTS; cut++) {
        gs_hop_needs n;
        gs_assert_ok(gs_hop_needs_find(&n, p, (gs_hop_ends){GS_NONE, GS_NONE}, 2, cut));
        for (uint32_t k = 0; k < p->stages; k++) {
            assert_true(n.whole[k] <= n.rows[k]);
            assert_true(cut == GS_CUT_RESTS || n.whole[k] == n.rows[k]);
            if (n.rows[k] == n.levels && n.whole[k] < n.levels) {
                instrs += p->stage[k].instrs;
                left += n.rest[k].instrs;
            }
        }
        gs_hop_needs_drop(&n);
    }
    assert_true(instrs >= 20 && left * 2 <= instrs);
    gs_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rest_of_a_stage__is_the_whole_one_where_rows_are_zero),
        cmocka_unit_test(test_rests__are_found_where_hops_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
