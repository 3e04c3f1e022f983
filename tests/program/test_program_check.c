/* test_program_check.c - a program that breaks program.h is refused with the stage and instruction. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "program/program.h"
#include "support/support.h"

enum { X, LABELS, SPLIT, IDS, Y, ARRAYS };
enum { W, B, PARAMS };

static gs_operand reg(uint32_t i)
{
    return (gs_operand){.kind = GS_FROM_REG, .index = i};
}

static gs_operand param(uint32_t i)
{
    return (gs_operand){.kind = GS_FROM_PARAM, .index = i};
}

static void add_stage(gs_program *p, uint32_t i, const gs_reg *regs, uint32_t n, const gs_instr *instrs, uint32_t k)
{
    gs_stage *s = &p->stage[i];
    s->regs = n;
    s->instrs = k;
    s->reg = gs_malloc_array(n, sizeof(*regs));
    s->instr = gs_malloc_array(k, sizeof(*instrs));
    memcpy(s->reg, regs, n * sizeof(*regs));
    memcpy(s->instr, instrs, k * sizeof(*instrs));
}

/* y = drop(x) @ W' stored; then loss of sum_in(y) + B, with gradients of B and W. */
static gs_program *valid(void)
{
    static const gs_array arrays[ARRAYS] = {{.name = "x", .dtype = GS_F32, .width = 4, .store_id = 0},
                                            {.name = "labels", .dtype = GS_I32, .width = 1, .store_id = 1},
                                            {.name = "split", .dtype = GS_U8, .width = 1, .store_id = 2},
                                            {.name = "input_id", .dtype = GS_U32, .width = 1, .store_id = 3},
                                            {.name = "y", .dtype = GS_F32, .width = 3, .store_id = -1}};
    static const gs_param params[PARAMS] = {{.name = "w", .dims = 2, .rows = 3, .cols = 4},
                                             {.name = "b", .dims = 1, .rows = 1, .cols = 3,
                                              .initial = {GS_INITIAL_FILL, 0}}};
    const gs_reg r0[] = {{GS_REG_LOAD, GS_F32, 4, X}, {GS_REG_LOAD, GS_U32, 1, IDS}, {GS_REG_TEMP, GS_F32, 4, GS_NONE},
                         {GS_REG_TEMP, GS_F32, 3, Y}};
    const gs_instr i0[] = {{.op = GS_OP_DROPOUT, .dst = 2, .a = reg(0), .b = reg(1), .alpha = 0.5f},
                           {.op = GS_OP_MATMUL_T, .dst = 3, .a = reg(2), .b = param(W)}};
    const gs_reg r1[] = {{GS_REG_SUM, GS_F32, 3, GS_NONE},  {GS_REG_LOAD, GS_I32, 1, LABELS},
                         {GS_REG_LOAD, GS_U8, 1, SPLIT},    {GS_REG_TEMP, GS_F32, 3, GS_NONE},
                         {GS_REG_TEMP, GS_F32, 3, GS_NONE}, {GS_REG_LOAD, GS_F32, 4, X}};
    const gs_instr i1[] = {{.op = GS_OP_ADD, .dst = 3, .a = reg(0), .b = param(B)},
                           {.op = GS_OP_XENT_GRAD, .dst = 4, .a = reg(3), .b = reg(1), .c = reg(2)},
                           {.op = GS_OP_COLSUM, .dst = B, .a = reg(4)},
                           {.op = GS_OP_OUTER, .dst = W, .a = reg(4), .b = reg(5)}};
    gs_program *p = gs_program_new();
    p->arrays = ARRAYS;
    p->params = PARAMS;
    p->stages = 2;
    p->passes = 1;
    p->array = gs_malloc_array(ARRAYS, sizeof(*arrays));
    p->param = gs_malloc_array(PARAMS, sizeof(*params));
    p->stage = gs_calloc(2, sizeof(*p->stage));
    p->pass = gs_calloc(1, sizeof(*p->pass));
    memcpy(p->array, arrays, sizeof(arrays));
    memcpy(p->param, params, sizeof(params));
    add_stage(p, 0, r0, 4, i0, 2);
    add_stage(p, 1, r1, 6, i1, 4);
    strcpy(p->stage[0].name, "first");
    strcpy(p->stage[1].name, "second");
    p->stage[1].edge_reg = gs_malloc_array(GS_ROW_SUM_REGS, sizeof(gs_edge_reg));
    p->stage[1].edge_instr = gs_malloc_array(1, sizeof(gs_instr));
    gs_stage_add_row_sum(&p->stage[1], &(gs_row_sum){.array = Y, .scale = GS_NONE}, 3, 0, false);
    p->pass[0] = (gs_pass){"train", 0, 2};
    return p;
}

static void test_check__a_valid_program_passes(void **state)
{
    gs_program *p = valid();
    (void)state;
    gs_assert_ok(gs_program_check(p));
    assert_int_equal(gs_program_pass(p, "train"), 0);
    assert_int_equal(gs_program_pass(p, "eval"), GS_NONE);
    assert_int_equal(gs_param_elements(&p->param[W]), 12);
    p->stage[0].instr[0].alpha = 0; /* a dropout that drops nothing */
    gs_assert_ok(gs_program_check(p));
    gs_program_free(p);
    gs_program_free(NULL);
}

/* The rows that the stage sums are scaled by an array's numbers. */
static void scale_by(gs_stage *s, uint32_t array)
{
    s->sums = s->edge_regs = 0;
    gs_stage_add_row_sum(s, &(gs_row_sum){.array = Y, .scale = array}, 3, 0, false);
}

#define BROKEN(change, part)                                  \
    do {                                                      \
        gs_program *p = valid();                              \
        gs_stage *s0 = &p->stage[0], *s1 = &p->stage[1];      \
        (void)s0;                                             \
        (void)s1;                                             \
        change;                                               \
        gs_assert_fails(gs_program_check(p), GS_EINVAL, part); \
        gs_program_free(p);                                   \
    } while (0)

static void test_check__each_rule_has_its_text(void **state)
{
    (void)state;
    BROKEN(p->param[W].rows = 0, "parameter 0 (w) has no valid shape");
    BROKEN(p->array[Y].dtype = GS_F16, "array 4 (y) has no valid type or width");
    BROKEN(p->array[Y].dtype = GS_BF16, "array 4 (y) has no valid type or width"); /* odd */
    BROKEN((p->array[Y].dtype = GS_BF16, p->array[Y].width = 4), "register 3 does not fit array y");
    BROKEN(s0->reg[2].dtype = GS_BF16, "register 2 is not f32");
    BROKEN((p->array[Y].dtype = s0->reg[3].dtype = GS_BF16, p->array[Y].width = s0->reg[3].width = 4,
            p->pass[0].stages = 1),
           "matmul_t into register 3, which is bf16");
    BROKEN(s1->instr[0].op = GS_OP_ROUND, "round into register 3, which is f32");
    BROKEN((p->array[Y].dtype = s0->reg[3].dtype = GS_BF16,
            s0->instr[1] = (gs_instr){.op = GS_OP_ROUND, .dst = 3, .a = reg(2)},
            p->array[Y].width = s0->reg[3].width = 4, s1->reg[0].width = s1->edge_reg[0].width = 4,
            s1->sum[0].kind = GS_SUM_ADD_TYPE),
           "edge register 0 does not fit array y");
    BROKEN((s1->sum[0].kind = GS_SUM_ADD_TYPE, s1->sum[0].self = true),
           "sum 0: only a sum of rows takes the own row");
    BROKEN(scale_by(s1, X), "edge register 1 does not fit array x");
    BROKEN(scale_by(s1, 99), "edge register 1: array 99 does not exist");
    BROKEN(scale_by(s1, IDS), "edge program: an operand is missing, not written yet or a matrix");
    BROKEN((p->array[X].store_id = -1, p->array[X].width = s1->reg[5].width = 1, s1->instrs = 3,
            s0->reg[0] = (gs_reg){GS_REG_TEMP, GS_F32, 4, GS_NONE}, scale_by(s1, X), p->pass[0].first_stage = 1,
            p->pass[0].stages = 1, p->array[Y].store_id = 9),
           "edge register 1: array x is not written yet");
    BROKEN(p->logits = 99, "the logits are array 99 of 5");
    BROKEN(p->pass[0].stages = 3, "pass train has stages 0 to 3 of 2");
    BROKEN(p->pass[0].first_stage = UINT32_MAX, "pass train has stages");
    BROKEN(s1->sums = 9, "stage 1 (second): 9 sums");
    BROKEN(s1->edge_reg[0].array = 77, "stage 1 (second): edge register 0: array 77 does not exist");
    BROKEN(s1->edge_reg[0].array = LABELS, "edge register 0 does not fit array labels");
    BROKEN(s1->sum[0].reg = 3, "sum 0: register 3 is no sum of 3 elements");
    BROKEN(s1->sums = 0, "register 0 is of no sum");
    BROKEN((s1->sums = 2, s1->sum[1] = s1->sum[0]), "register 0 has two sums");
    BROKEN(s0->reg[3].array = GS_NONE, "stage 1 (second): edge register 0: array y is not written yet");
    BROKEN(s0->reg[0].array = 50, "stage 0 (first): register 0: array 50 does not exist");
    BROKEN(s0->reg[0].width = 5, "register 0 does not fit array x");
    BROKEN(s0->reg[0].array = Y, "register 0 does not fit array y");
    BROKEN(s0->reg[2].array = X, "register 2 would overwrite the store's array x");
    BROKEN(p->array[Y].lasting = true, "register 3 would overwrite y, which no pass makes");
    BROKEN((s1->reg[4].array = Y), "stage 1 (second): array y is stored twice");
    BROKEN(s0->instr[0].dst = 0, "stage 0 (first), instruction 0: writes register 0, which is no scratch register");
    BROKEN(s0->instr[1].dst = 2, "instruction 1: register 2 is written twice");
    BROKEN(s0->instrs = 1, "register 3 is never written");
    BROKEN(s0->instr[0].a = reg(3), "instruction 0: operand a: register 3 does not exist or is not written yet");
    BROKEN(s0->instr[0].a = reg(400), "operand a: register 400 does not exist");
    BROKEN(s0->instr[0].b = reg(0), "dropout needs a register of input ids");
    BROKEN(s0->instr[0].alpha = 1.0f, "dropout with p = 1");
    BROKEN(s0->instr[1].b = param(B), "matmul_t: 4 elements by b[1, 3] into 3");
    BROKEN(s0->instr[1].b = param(9), "matmul_t needs an f32 register and a parameter");
    BROKEN(s0->instr[1].op = GS_OP_MATMUL, "matmul: 4 elements by w[3, 4] into 3");
    BROKEN(s1->instr[0].b = param(W), "instruction 0: add: widths 3 and 4");
    BROKEN(s1->instr[0].a = s1->instr[0].b, "add of no register");
    BROKEN(s1->instr[0].b = reg(1), "add of a register that is not f32");
    BROKEN(s1->instr[0].op = GS_OP_ROWSUM, "rowsum gives width 3, its register has 3");
    BROKEN(s1->instr[0].op = GS_OP_CAST, "cast of a register that is neither bf16 nor f16, nor of ids");
    BROKEN((s1->instr[0].op = GS_OP_CONCAT, s1->instr[0].b = reg(0)), "concat of 6 columns into 3");
    BROKEN(s1->instr[0].op = GS_OP_CONCAT, "concat needs f32 registers");
    BROKEN((s1->instr[0].op = GS_OP_PART, s1->instr[0].site = 1), "part of 3 columns into 3");
    BROKEN((s1->instr[0].op = GS_OP_PART, s1->instr[0].site = UINT32_MAX), "part of 3 columns into 3");
    BROKEN(s1->instr[0].op = GS_OP_SRC, "src is no instruction of a vertex program");
    BROKEN(s1->instr[0].op = (gs_op)1000, "is no instruction of a vertex program");
    BROKEN(s1->instr[1].b = reg(2), "xent_grad needs registers of logits (f32), of labels of its task");
    BROKEN(s1->instr[1].op = GS_OP_XENT, "xent writes no register");
    BROKEN(s1->instr[2].dst = W, "colsum: widths 3, 3 do not fit w[3, 4]");
    BROKEN(s1->reg[1].width = p->array[LABELS].width = 2, "xent_grad needs registers of logits");
    BROKEN(p->param[B].fixed = true, "colsum into b, which is not learned");
    BROKEN(s1->instr[3].dst = 12, "parameter 12 does not exist");
    BROKEN(s1->instr[3].b = reg(4), "outer: widths 3, 3 do not fit w[3, 4]");
    BROKEN((s1->instr[3].op = GS_OP_MIX_OUTER, s1->instr[3].b = reg(4)),
           "mix_outer: 3 and 3 columns are no blocks of w[3, 4]");
    BROKEN((s1->instr[3].op = GS_OP_FAN_OUTER, s1->instr[3].b = reg(4)),
           "fan_outer: 3 and 3 columns do not fit w[3, 4]");
}

/* The valid program with a third stage: attention and a sum over edges of y, 3 wide, and labels' degree. */
static gs_program *with_edges(void)
{
    static const gs_edge_reg edge_regs[] = {{.kind = GS_EDGE_OPERAND, .width = 3, .array = Y},
                                            {.kind = GS_EDGE_TARGET, .width = 3, .array = Y},
                                            {.kind = GS_EDGE_WEIGHT, .width = 1, .array = GS_NONE},
                                            {.kind = GS_EDGE_TEMP, .width = 3, .array = GS_NONE},
                                            {.kind = GS_EDGE_TEMP, .width = 1, .array = GS_NONE}};
    static const gs_reg regs[] = {{GS_REG_SUM, GS_F32, 3, GS_NONE}, {GS_REG_SUM, GS_F32, 1, GS_NONE},
                                  {GS_REG_SUM, GS_F32, 3, GS_NONE}, {GS_REG_TEMP, GS_F32, 3, GS_NONE}};
    const gs_instr edge_instrs[] = {{.op = GS_OP_MUL, .dst = 3, .a = reg(0), .b = reg(1)},
                                    {.op = GS_OP_FOLD, .dst = 4, .a = reg(3)}};
    const gs_instr instrs[] = {{.op = GS_OP_ADD, .dst = 3, .a = reg(0), .b = reg(2)}};
    gs_program *p = valid();
    gs_stage *s;
    p->stage = gs_realloc(p->stage, 3 * sizeof(*p->stage));
    s = &p->stage[2];
    memset(s, 0, sizeof(*s));
    strcpy(s->name, "third");
    p->stages = 3;
    p->pass[0].stages = 3;
    add_stage(p, 2, regs, 4, instrs, 1);
    s->edge_regs = 5;
    s->edge_instrs = 2;
    s->edge_reg = gs_malloc_array(5, sizeof(*edge_regs));
    s->edge_instr = gs_malloc_array(2, sizeof(*edge_instrs));
    memcpy(s->edge_reg, edge_regs, sizeof(edge_regs));
    memcpy(s->edge_instr, edge_instrs, sizeof(edge_instrs));
    s->sums = 2;
    s->sum[0] = (gs_sum){.array = GS_NONE, .reg = 0, .kind = GS_SUM_ATTEND, .value = 0, .score = 4, .lse = 1};
    s->sum[1] = (gs_sum){.array = GS_NONE, .reg = 2, .kind = GS_SUM_MAX, .value = 3};
    return p;
}

/* A change of this program's third stage is refused, in words that have `part`. */
#define BROKEN_OF(made, change, part)                          \
    do {                                                       \
        gs_program *p = made;                                  \
        gs_stage *s = &p->stage[2];                            \
        (void)s;                                               \
        change;                                                \
        gs_assert_fails(gs_program_check(p), GS_EINVAL, part); \
        gs_program_free(p);                                    \
    } while (0)

#undef BROKEN
#define BROKEN(change, part) BROKEN_OF(with_edges(), change, part)

static void test_check__edge_programs_have_their_rules(void **state)
{
    gs_program *good = with_edges();
    (void)state;
    gs_assert_ok(gs_program_check(good));
    gs_program_free(good);
    BROKEN(s->edge_reg[0].array = 99, "stage 2 (third): edge register 0: array 99 does not exist");
    BROKEN(s->edge_reg[0].array = LABELS, "edge register 0 does not fit array labels");
    BROKEN(s->edge_reg[0].width = 0, "edge register 0 has no kind or width");
    BROKEN(s->edge_reg[2].width = 2, "edge register 2: a weight has width 1");
    BROKEN(s->edge_reg[3].array = Y, "edge register 3 names an array");
    BROKEN(p->stage[0].reg[3].array = GS_NONE, "array y is not written yet");
    BROKEN(s->edge_instrs = 1, "edge register 4 is never written");
    BROKEN(s->edge_instr[0].dst = 1, "instruction 0: edge program: register 1 is no scratch register");
    BROKEN(s->edge_instr[1].dst = 3,
           "instruction 1: edge program: register 3 is no scratch register, or written twice");
    BROKEN(s->edge_instr[0].a = reg(4), "edge program: an operand is missing, not written yet or a matrix");
    BROKEN(s->edge_instr[0].a = param(W), "edge program: an operand is missing, not written yet or a matrix");
    BROKEN(s->edge_instr[0].op = GS_OP_DROPOUT, "dropout is no instruction of an edge program");
    BROKEN(s->edge_instr[0].op = GS_OP_MATMUL, "matmul is no instruction of an edge program");
    BROKEN(s->edge_instr[1].op = GS_OP_EXPAND, "expand gives width 3, its register has 1");
    BROKEN(s->sum[0].value = 12, "sum 0: edge register 12 does not exist");
    BROKEN(s->sum[0].score = 12, "sum 0: edge register 12 does not exist");
    BROKEN(s->sum[0].lse = 2, "sum 0: register 2 is no sum of 1 elements");
    BROKEN(s->sum[0].self = true, "sum 0: only a sum of rows takes the own row");
    BROKEN(s->sum[1].reg = 0, "sum 1: register 0 has two sums");
    BROKEN(s->sum[1].value = 4, "sum 1: register 2 is no sum of 1 elements");
    BROKEN(s->sum[1].kind = (gs_sum_kind)20, "sum 1 has no kind");
    BROKEN((s->sum[1].kind = GS_SUM_MAX_HELD, s->sum[1].score = 12), "sum 1: edge register 12 does not exist");
    BROKEN((s->sum[1].kind = GS_SUM_MAX_HELD, s->sum[1].score = 0), "sum 1: 3 numbers of an edge's source");
    BROKEN((s->sum[1].kind = GS_SUM_MIN_HELD, s->sum[1].score = 4), "sum 1: register 2 is no sum of 9 elements");
    BROKEN((s->sum[0].value = 4, s->sum[0].score = 3), "sum 0: 3 scores for values of 1 elements");
    BROKEN((s->sum[1].kind = GS_SUM_ADD_TYPE, s->sum[1].value = 0, s->reg[2].width = 4),
           "sum 1: 3 elements do not split by type");
    BROKEN((s->sum[1].kind = GS_SUM_ADD_TYPE, s->reg[2].width = 4), "sum 1: 3 elements do not split by type");
    BROKEN(s->edge_instr[0].op = GS_OP_BY_TYPE, "by_type: no register and matrices of the types");
    BROKEN((s->edge_instr[0].op = GS_OP_BY_TYPE, s->edge_instr[0].b = param(99)),
           "by_type: no register and matrices of the types");
    BROKEN((s->edge_instr[0].op = GS_OP_BY_TYPE_T, s->edge_instr[0].b = param(W)), "by_type_t: 3 to 3 elements by");
    BROKEN((s->sum[1].kind = GS_SUM_OUTER, s->sum[1].score = 12),
           "sum 1: an outer product without its registers or its weight");
    BROKEN((s->sum[1].kind = GS_SUM_OUTER, s->sum[1].score = 3, s->sum[1].weight = W),
           "sum 1: rows of 3 and 3 elements do not fit");
    BROKEN((s->edge_reg[0].typed = true, s->edge_reg[0].width = 2), "edge register 0 does not fit array y");
    BROKEN(s->sum[1].kind = GS_SUM_LSTM, "an lstm has a stage for itself, over in-edges");
    const gs_edge_reg ids = {.kind = GS_EDGE_OPERAND, .width = 1, .array = IDS};
    BROKEN((s->edge_reg[1] = ids, s->edge_instr[0].b = reg(0), s->sum[1].value = 1, s->reg[2].width = 1),
           "sum 1: of input ids");
    BROKEN(s->edge_reg[1] = ids, "edge program: an operand is missing");
    BROKEN(s->edge_reg[0].kind = (gs_edge_reg_kind)9, "edge register 0 has no kind or width");
    BROKEN(s->edge_instr[0].op = GS_OP_ACROSS, "across is no instruction of an edge program");
    BROKEN(s->edge_instr[0].op = (gs_op)1000, "this is no instruction of an edge program");
    BROKEN((s->edge_instr[1].op = GS_OP_ROWSUM, s->edge_instr[1].a = param(B)), "rowsum of no register");
}

/* The third stage with a mask of edges beside the product, and a mask of the vertices themselves. */
static gs_program *with_masks(void)
{
    gs_program *p = with_edges();
    gs_stage *s = &p->stage[2];
    s->edge_reg = gs_realloc(s->edge_reg, 8 * sizeof(*s->edge_reg));
    s->edge_instr = gs_realloc(s->edge_instr, 4 * sizeof(*s->edge_instr));
    s->reg = gs_realloc(s->reg, 6 * sizeof(*s->reg));
    s->instr = gs_realloc(s->instr, 2 * sizeof(*s->instr));
    s->edge_reg[5] = (gs_edge_reg){.kind = GS_EDGE_OPERAND, .width = 1, .array = IDS};
    s->edge_reg[6] = (gs_edge_reg){.kind = GS_EDGE_TARGET, .width = 1, .array = IDS};
    s->edge_reg[7] = (gs_edge_reg){.kind = GS_EDGE_TEMP, .width = 3, .array = GS_NONE};
    s->edge_instr[2] =
        (gs_instr){.op = GS_OP_EDGE_MASK, .dst = 7, .a = reg(5), .b = reg(6), .alpha = 0.5f, .site = 9, .self = true};
    s->sum[1].value = 7;
    s->reg[4] = (gs_reg){GS_REG_LOAD, GS_U32, 1, IDS};
    s->reg[5] = (gs_reg){GS_REG_TEMP, GS_F32, 3, GS_NONE};
    s->instr[1] = (gs_instr){.op = GS_OP_EDGE_MASK, .dst = 5, .a = reg(4), .b = reg(4), .alpha = 0.5f, .site = 9};
    s->edge_regs = 8;
    s->edge_instrs = 3;
    s->regs = 6;
    s->instrs = 2;
    return p;
}

#undef BROKEN
#define BROKEN(change, part) BROKEN_OF(with_masks(), change, part)

static void test_check__masks_have_their_rules(void **state)
{
    gs_program *good = with_masks();
    (void)state;
    gs_assert_ok(gs_program_check(good));
    assert_true(gs_program_train_differs(good, 0));
    assert_false(gs_program_needs_all_rows(good, 0));
    gs_program_free(good);
    BROKEN(s->edge_instr[2].a = reg(0), "edge_mask needs input ids of the source and of the destination");
    BROKEN((s->edge_instr[2].a = reg(6), s->edge_instr[2].b = reg(5)), "edge_mask needs input ids of the source");
    BROKEN(s->edge_instr[2].b = reg(5), "edge_mask needs input ids of the source and of the destination");
    BROKEN(s->direction = 1, "edge_mask needs input ids of the source and of the destination");
    BROKEN(s->edge_instr[2].alpha = 1.0f, "edge_mask with p = 1");
    BROKEN(s->edge_instr[2].dst = 3, "register 3 is no scratch register, or written twice");
    BROKEN(s->instr[1].a = reg(0), "edge_mask needs registers of input ids");
    BROKEN(s->instr[1].b = reg(77), "operand b: register 77 does not exist");
    BROKEN(s->instr[1].alpha = -1.0f, "edge_mask with p = -1");
}

/* The third stage takes the mean of y, which a fourth one subtracts; `running` follows it. */
static gs_program *with_statistics(void)
{
    gs_program *p = with_edges();
    const gs_reg regs[] = {{GS_REG_LOAD, GS_F32, 3, Y}, {GS_REG_TEMP, GS_F32, 3, GS_NONE}};
    const gs_instr instrs[] = {{.op = GS_OP_SUB, .dst = 1, .a = reg(0), .b = param(2)}};
    gs_stage *s;
    p->stage = gs_realloc(p->stage, 4 * sizeof(*p->stage));
    p->param = gs_realloc(p->param, 4 * sizeof(*p->param));
    p->param[2] = (gs_param){
        .name = "mean", .dims = 1, .rows = 1, .cols = 3, .fixed = true, .statistic = GS_STATISTIC_MEAN, .running = 3};
    p->param[3] = (gs_param){.name = "running", .dims = 1, .rows = 1, .cols = 3, .fixed = true, .running = GS_NONE};
    p->params = 4;
    memset(&p->stage[3], 0, sizeof(p->stage[3]));
    strcpy(p->stage[3].name, "fourth");
    add_stage(p, 3, regs, 2, instrs, 1);
    p->stages = p->pass[0].stages = 4;
    s = &p->stage[2];
    s->instr = gs_realloc(s->instr, 2 * sizeof(*s->instr));
    s->instr[s->instrs++] = (gs_instr){.op = GS_OP_MEAN_ALL, .dst = 2, .a = reg(3)};
    return p;
}

#undef BROKEN
#define BROKEN(change, part) BROKEN_OF(with_statistics(), change, part)

static void test_check__statistics_have_their_rules(void **state)
{
    gs_program *good = with_statistics();
    (void)state;
    gs_assert_ok(gs_program_check(good));
    assert_true(gs_program_needs_all_rows(good, 0));
    gs_program_free(good);
    BROKEN(p->param[2].fixed = false, "parameter 2 (mean) is no row that a run may write");
    BROKEN(p->param[2].running = 1, "statistic 2 (mean) has no parameter to follow it");
    BROKEN(p->param[2].running = 2, "statistic 2 (mean) has no parameter to follow it");
    BROKEN(p->param[2].running = 9, "statistic 2 (mean) has no parameter to follow it");
    BROKEN(p->param[3].cols = 4, "statistic 2 (mean) has no parameter to follow it");
    BROKEN(p->param[3].counter = true, "parameter 3 (running) is no row that a run may write");
    BROKEN(s->instr[1].op = GS_OP_VAR_ALL, "var_all of 3 columns: parameter 2 is no such statistic");
    BROKEN(s->instr[1].dst = 1, "mean_all of 3 columns: parameter 1 is no such statistic");
    BROKEN(s->instr[1].dst = 77, "mean_all of 3 columns: parameter 77 is no such statistic");
    BROKEN(s->instr[1].a = param(1), "mean_all needs an f32 register");
    BROKEN((s->instr = gs_realloc(s->instr, 3 * sizeof(*s->instr)), s->instr[s->instrs++] = s->instr[1]),
           "statistic mean is made twice");
    BROKEN(s->instrs = 1,
           "stage 3 (fourth), instruction 0: operand b: parameter 2 does not exist, or no earlier stage makes it");
    /* not in its own stage */
    BROKEN(s->instr[0].b = param(2), "parameter 2 does not exist, or no earlier stage makes it");
}

enum { Z = ARRAYS, DZ, SEQUENCE_ARRAYS };

/* An LSTM over rows of 12 = 4 * 3 gates, or its derivative. */
static gs_program *with_sequence(bool back)
{
    const gs_edge_reg edge_regs[] = {{.kind = GS_EDGE_OPERAND, .width = 12, .array = Z},
                                     {.kind = GS_EDGE_TARGET, .width = 3, .array = Y}};
    gs_program *p = with_edges();
    gs_stage *s = &p->stage[2];
    p->array = gs_realloc(p->array, SEQUENCE_ARRAYS * sizeof(*p->array));
    p->array[Z] = (gs_array){.name = "z", .dtype = GS_F32, .width = 12, .store_id = 4};
    p->array[DZ] = (gs_array){.name = "dz", .dtype = GS_F32, .width = 12, .store_id = -1};
    p->arrays = SEQUENCE_ARRAYS;
    p->param = gs_realloc(p->param, 3 * sizeof(*p->param));
    p->param[2] = (gs_param){.name = "hh", .dims = 2, .rows = 12, .cols = 3, .running = GS_NONE};
    p->params = 3;
    memcpy(s->edge_reg, edge_regs, sizeof(edge_regs));
    s->edge_regs = 2;
    s->edge_instrs = 0;
    s->sums = 1;
    s->sum[0] = (gs_sum){.kind = back ? GS_SUM_LSTM_BACK : GS_SUM_LSTM, .value = 0, .score = back ? 1 : GS_NONE,
                         .weight = 2, .array = back ? DZ : GS_NONE, .reg = back ? GS_NONE : 0, .lse = GS_NONE};
    s->reg[0] = back ? (gs_reg){GS_REG_LOAD, GS_F32, 3, Y} : (gs_reg){GS_REG_SUM, GS_F32, 3, GS_NONE};
    s->reg[1] = (gs_reg){GS_REG_TEMP, GS_F32, 3, GS_NONE};
    s->regs = 2;
    s->instr[0] = (gs_instr){.op = GS_OP_RELU, .dst = 1, .a = reg(0)};
    return p;
}

#undef BROKEN
#define BROKEN(back, change, part) BROKEN_OF(with_sequence(back), change, part)

static void test_check__sequences_have_their_rules(void **state)
{
    (void)state;
    for (int back = 0; back < 2; back++) {
        gs_program *good = with_sequence(back != 0);
        gs_assert_ok(gs_program_check(good));
        gs_program_free(good);
        BROKEN(back != 0, s->direction = 1, "an lstm has a stage for itself, over in-edges");
        BROKEN(back != 0, s->sum[0].self = true, "an lstm has a stage for itself, over in-edges");
        BROKEN(back != 0, s->sums = 2, "an lstm has a stage for itself, over in-edges");
        BROKEN(back != 0, s->sum[0].value = 5, "an lstm without its registers or its weight");
        BROKEN(back != 0, s->sum[0].weight = 5, "an lstm without its registers or its weight");
        BROKEN(back != 0, s->sum[0].value = 1, "lstm: gates of 3 elements do not fit hh[12, 3]");
        BROKEN(back != 0, p->param[2].rows = 9, "lstm: gates of 12 elements do not fit hh[9, 3]");
        BROKEN(back != 0, s->edge_reg[0].kind = GS_EDGE_TARGET, "lstm: gates of 12 elements do not fit");
    }
    BROKEN(false, s->sum[0].reg = 1, "sum 0: register 1 is no sum of 3 elements");
    BROKEN(true, s->sum[0].score = 5, "an lstm without its registers or its weight");
    BROKEN(true, s->edge_reg[1].kind = GS_EDGE_OPERAND, "lstm_back: the gradient of the state is no row of 3 elements");
    BROKEN(true, s->sum[0].reg = 0, "lstm_back: the gradient of the state is no row of 3 elements");
    BROKEN(true, s->sum[0].array = Z, "lstm_back: its result is no array of 12 elements of the run");
    BROKEN(true, s->sum[0].array = Y, "lstm_back: its result is no array of 12 elements of the run");
    BROKEN(true, (p->array[Y].width = 3, s->sum[0].array = 99),
           "lstm_back: its result is no array of 12 elements of the run");
}

static void test_check__a_setup_pass_writes_for_the_others(void **state)
{
    gs_program *p = valid();
    (void)state;
    p->passes = 2;
    p->pass = gs_realloc(p->pass, 2 * sizeof(*p->pass));
    p->pass[0] = (gs_pass){"setup", 0, 1};
    p->pass[1] = (gs_pass){"train", 1, 1};
    gs_assert_ok(gs_program_check(p));
    strcpy(p->pass[0].name, "other");
    gs_assert_fails(gs_program_check(p), GS_EINVAL, "array y is not written yet");
    gs_program_free(p);
}

static void test_flops__count_products_and_edges(void **state)
{
    gs_program *p = valid();
    double dense[2], edge[2];
    (void)state;
    for (int s = 0; s < 2; s++)
        gs_stage_flops(p, &p->stage[s], 10, 50, &dense[s], &edge[s]);
    gs_assert_close(dense[0] + dense[1], 10.0 * (2 * 3 * 4 + 2 * 3 * 4), 1e-15); /* x @ W', outer */
    gs_assert_close(edge[0] + edge[1], 50.0 * 3, 1e-15);
    p->stage[1].sum[0].self = true;
    gs_stage_flops(p, &p->stage[1], 10, 50, &dense[1], &edge[1]);
    gs_assert_close(edge[0] + edge[1], 60.0 * 3, 1e-15);
    gs_program_free(p);
}

static void test_print__says_every_instruction(void **state)
{
    static const char *const lines[] = {
        "array x f32[4] (store)\n", "array y f32[3]\n", "param w[3, 4]\n", "param b[3]\n", "pass train\n",
        "  stage 1 \"second\"\n", "    r0 = sum_in y : [3]\n", "    r1 = load input_id : u32[1]\n",
        "    r2 = dropout r0 r1 p 0.5 site 0 : [4]\n", "    r3 = matmul_t r2 w : [3] -> store y\n",
        "    r4 = xent_grad r3 r1 r2 : [3]\n", "    grad(b) += colsum r4\n", "    grad(w) += outer r4 r5\n",
    };
    gs_program *p = valid();
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    (void)state;
    gs_program_print(p, f);
    fclose(f);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (strstr(text, lines[i]) == NULL)
            fail_msg("no line \"%s\" in:\n%s", lines[i], text);
    free(text);
    gs_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check__a_valid_program_passes),
        cmocka_unit_test(test_check__each_rule_has_its_text),
        cmocka_unit_test(test_check__edge_programs_have_their_rules),
        cmocka_unit_test(test_check__masks_have_their_rules),
        cmocka_unit_test(test_check__statistics_have_their_rules),
        cmocka_unit_test(test_check__sequences_have_their_rules),
        cmocka_unit_test(test_check__a_setup_pass_writes_for_the_others),
        cmocka_unit_test(test_flops__count_products_and_edges),
        cmocka_unit_test(test_print__says_every_instruction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
