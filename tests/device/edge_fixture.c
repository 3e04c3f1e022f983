#include "edge_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/philox.h"
#include "support/formulas.h"

void edges_init(edge_fixture *b, uint32_t index_bytes, uint32_t targets, const uint32_t *degree, uint32_t operand_rows)
{
    memset(b, 0, sizeof(*b));
    strcpy(b->stage.name, "edge stage");
    b->stage.reg = b->reg;
    b->stage.edge_reg = b->edge_reg;
    b->stage.edge_instr = b->instr;
    b->program = (gs_program){.stages = 1, .stage = &b->stage, .param = b->param, .array = b->array};
    b->index_bytes = index_bytes;
    b->targets = targets;
    b->target_rows = 2 * targets + 1;
    b->operand_rows = operand_rows;
    b->start = test_malloc((targets + 1) * sizeof(uint32_t));
    b->start[0] = 0;
    for (uint32_t t = 0; t < targets; t++)
        b->start[t + 1] = b->start[t] + degree[t];
    b->edges = b->start[targets];
    b->target = test_malloc((size_t)targets * index_bytes);
    b->index = test_malloc((size_t)b->edges * index_bytes);
    for (uint32_t t = 0; t < targets; t++)
        put_number(b->target, index_bytes, t, 2 * t + 1);
    for (uint32_t k = 0; k < b->edges; k++)
        put_number(b->index, index_bytes, k, random_below(k, 7, operand_rows));
}

static void free_rows(const float *p) { test_free((void *)(uintptr_t)p); }

void edges_free(edge_fixture *b)
{
    for (uint32_t i = 0; i < EDGES_MAX; i++) {
        free_rows(b->weight[i]);
        free_rows(b->rows[i]);
    }
    for (uint32_t s = 0; s < GS_STAGE_SUMS; s++) {
        test_free(b->want[s]);
        test_free(b->want_lse[s]);
        test_free(b->size[s]);
    }
    free_rows(b->edge_weight);
    test_free(b->type);
    test_free(b->rank);
    test_free(b->start);
    test_free(b->target);
    test_free(b->index);
}

static uint32_t add_edge_reg(edge_fixture *b, gs_edge_reg_kind kind, uint32_t width, const float *rows)
{
    const uint32_t r = b->stage.edge_regs++;
    assert_true(r < EDGES_MAX);
    b->edge_reg[r] = (gs_edge_reg){.kind = kind, .width = width, .array = GS_NONE};
    b->rows[r] = rows;
    return r;
}

/* Rows at one end, of an array of `columns` columns. */
static uint32_t add_rows(edge_fixture *b, gs_edge_reg_kind end, uint32_t width, uint32_t columns, float low, float high)
{
    const size_t rows = end == GS_EDGE_TARGET ? b->target_rows : b->operand_rows;
    const uint32_t r =
        add_edge_reg(b, end, width, random_floats(rows * columns, 20 + b->stage.edge_regs, low, high));
    b->array[b->program.arrays] = (gs_array){.dtype = GS_F32, .width = columns, .store_id = -1};
    b->edge_reg[r].array = b->program.arrays++;
    return r;
}

uint32_t add_operand(edge_fixture *b, uint32_t width, float low, float high)
{
    return add_rows(b, GS_EDGE_OPERAND, width, width, low, high);
}

uint32_t add_target(edge_fixture *b, uint32_t width, float low, float high)
{
    return add_rows(b, GS_EDGE_TARGET, width, width, low, high);
}

static bool is_half(const edge_fixture *b, uint32_t reg)
{
    const uint32_t array = b->edge_reg[reg].array;
    return array < b->program.arrays && b->array[array].dtype == GS_BF16;
}

uint32_t edges_halve(edge_fixture *b, uint32_t reg)
{
    const gs_edge_reg *const g = &b->edge_reg[reg];
    const size_t n = (size_t)(g->kind == GS_EDGE_TARGET ? b->target_rows : b->operand_rows) * g->width;
    const float *const full = b->rows[reg];
    uint16_t *const half = test_malloc(n * sizeof(*half));
    for (size_t i = 0; i < n; i++)
        half[i] = gs_bf16_from_f32(full[i]);
    free_rows(full);
    b->rows[reg] = (const float *)(const void *)half;
    b->array[g->array].dtype = GS_BF16;
    return reg;
}

/* Number i of the register's rows. */
static double row_number(const edge_fixture *b, uint32_t reg, size_t i)
{
    return is_half(b, reg) ? (double)gs_f32_from_bf16(((const uint16_t *)(const void *)b->rows[reg])[i])
                           : (double)b->rows[reg][i];
}

void edges_make_typed(edge_fixture *b, uint32_t types)
{
    b->types = types;
    b->type = test_malloc(b->edges);
    for (uint32_t k = 0; k < b->edges; k++)
        b->type[k] = (uint8_t)random_below(k, 8, types);
}

uint32_t add_by_type(edge_fixture *b, gs_edge_reg_kind end, uint32_t width, float low, float high)
{
    const uint32_t r = add_rows(b, end, width, b->types * width, low, high);
    b->edge_reg[r].typed = true;
    return r;
}

uint32_t add_weight(edge_fixture *b)
{
    if (b->edge_weight == NULL)
        b->edge_weight = random_floats(b->edges, 19, 0.1f, 2);
    return add_edge_reg(b, GS_EDGE_WEIGHT, 1, NULL);
}

uint32_t edges_param(edge_fixture *b, uint32_t width)
{
    const uint32_t p = b->program.params++;
    b->param[p] = (gs_param){.dims = 1, .rows = 1, .cols = width};
    b->weight[p] = random_floats(width, 900 + p, 0.25f, 1.5f);
    return p;
}

uint32_t add_matrices(edge_fixture *b, uint32_t in, uint32_t out)
{
    const uint32_t p = b->program.params++;
    b->param[p] = (gs_param){.dims = 2, .rows = b->types * in, .cols = out};
    b->weight[p] = random_floats((size_t)b->types * in * out, 900 + p, 0.1f, 1.1f); /* products do not cancel */
    return p;
}

static uint32_t add_id_reg(edge_fixture *b, gs_edge_reg_kind kind, uint32_t rows, uint32_t first)
{
    uint32_t *const id = test_malloc(rows * sizeof(*id));
    for (uint32_t r = 0; r < rows; r++)
        id[r] = 3 * r + first;
    return add_edge_reg(b, kind, 1, (const float *)(const void *)id);
}

uint32_t add_operand_id(edge_fixture *b, uint32_t first)
{
    return add_id_reg(b, GS_EDGE_OPERAND, b->operand_rows, first);
}

uint32_t add_target_id(edge_fixture *b, uint32_t first) { return add_id_reg(b, GS_EDGE_TARGET, b->target_rows, first); }

void edges_make_parallel(edge_fixture *b)
{
    b->parallel = true;
    b->type = test_malloc(b->edges);
    for (uint32_t t = 0; t < b->targets; t++) { /* runs of 7, cut by a type in their middle, or by the target's end */
        const uint32_t degree = b->start[t + 1] - b->start[t];
        for (uint32_t k = 0; k < degree; k++) {
            put_number(b->index, b->index_bytes, b->start[t] + k, k / 7 % b->operand_rows);
            b->type[b->start[t] + k] = (uint8_t)(k % 7 / 4);
        }
    }
}

uint32_t add_op(edge_fixture *b, gs_op op, uint32_t width, gs_operand x, gs_operand y)
{
    assert_true(b->stage.edge_instrs < EDGES_MAX);
    const uint32_t r = add_edge_reg(b, GS_EDGE_TEMP, width, NULL);
    b->instr[b->stage.edge_instrs++] = (gs_instr){.op = op, .dst = r, .a = x, .b = y, .alpha = 0.2f};
    return r;
}

static uint32_t add_sum_reg(edge_fixture *b, uint32_t width)
{
    b->reg[b->stage.regs] = (gs_reg){.kind = GS_REG_SUM, .dtype = GS_F32, .width = width, .array = GS_NONE};
    return b->stage.regs++;
}

uint32_t add_sum(edge_fixture *b, gs_sum_kind kind, uint32_t value)
{
    b->stage.sum[b->stage.sums] =
        (gs_sum){.kind = kind, .array = GS_NONE, .value = value, .score = GS_NONE, .lse = GS_NONE,
                 .reg = add_sum_reg(b, b->edge_reg[value].width * (kind == GS_SUM_ADD_TYPE ? b->types : 1))};
    return b->stage.sums++;
}

uint32_t add_held(edge_fixture *b, gs_sum_kind kind, uint32_t value, uint32_t number)
{
    const uint32_t s = add_sum(b, kind, value);
    b->stage.sum[s].score = number;
    b->reg[b->stage.sum[s].reg].width *= 3;
    return s;
}

uint32_t add_attend(edge_fixture *b, uint32_t value, uint32_t score)
{
    const uint32_t s = add_sum(b, GS_SUM_ATTEND, value);
    b->stage.sum[s].score = score;
    b->stage.sum[s].lse = add_sum_reg(b, b->edge_reg[score].width);
    return s;
}

uint32_t edges_sum_width(const edge_fixture *b, uint32_t sum) { return b->reg[b->stage.sum[sum].reg].width; }

uint32_t edges_heads(const edge_fixture *b, uint32_t sum)
{
    const gs_sum *const s = &b->stage.sum[sum];
    return s->kind == GS_SUM_ATTEND ? b->edge_reg[s->score].width : 0;
}

/* ---- float64 ---- */

#define WIDEST 700
#define EDGES_HEADS 64

typedef struct edge_values {
    double value[EDGES_MAX][WIDEST];
} edge_values;

static double operand_at(const edge_fixture *b, const edge_values *v, const gs_operand *o, uint32_t c)
{
    if (o->kind == GS_FROM_CONST)
        return (double)o->value;
    if (o->kind == GS_FROM_NONE)
        return 0;
    if (o->kind == GS_FROM_PARAM)
        return (double)b->weight[o->index][b->param[o->index].cols == 1 ? 0 : c];
    return v->value[o->index][b->edge_reg[o->index].width == 1 ? 0 : c];
}

enum { EDGES_SEED = 77, EDGES_EPOCH = 5 };

static uint32_t id_at(const edge_fixture *b, const gs_operand *o, uint32_t target, uint32_t operand)
{
    const uint32_t row = b->edge_reg[o->index].kind == GS_EDGE_TARGET ? target : operand;
    return ((const uint32_t *)(const void *)b->rows[o->index])[row];
}

/* As program.h says. */
static double mask_at(const edge_fixture *b, const gs_instr *in, uint32_t target, uint32_t operand, uint32_t edge,
                      uint32_t c, uint32_t width)
{
    const uint32_t source = id_at(b, &in->a, target, operand), destination = id_at(b, &in->b, target, operand);
    const bool one = in->self && source == destination;
    uint32_t key[2], word[4];
    const uint32_t counter[4] = {source, destination, (one ? 0 : b->rank[edge]) * ((width + 3) / 4) + c / 4,
                                 one || b->type == NULL ? 0 : b->type[edge]};
    gs_random_edge_key(key, EDGES_SEED, in->site, EDGES_EPOCH);
    gs_philox4x32(word, counter, key);
    return (double)(word[c % 4] >> 8) / 16777216 >= (double)in->alpha ? 1 / (1 - (double)in->alpha) : 0;
}

/* Of each edge how many of its target's before it have its operand and type. */
static void count_ranks(edge_fixture *b)
{
    enum { TYPES = 256 };
    const size_t n = (size_t)b->operand_rows * TYPES;
    uint32_t *const seen = test_malloc(n * sizeof(*seen));
    if (b->rank == NULL)
        b->rank = test_malloc(b->edges * sizeof(*b->rank));
    for (uint32_t t = 0; t < b->targets; t++) {
        memset(seen, 0, n * sizeof(*seen));
        for (uint32_t k = b->start[t]; k < b->start[t + 1]; k++)
            b->rank[k] = seen[get_number(b->index, b->index_bytes, k) * TYPES + (b->type == NULL ? 0 : b->type[k])]++;
    }
    test_free(seen);
}

/* What column `from` of a row counts in column `to` of its product. */
static double matrix_at(const edge_fixture *b, const gs_instr *in, uint32_t edge, uint32_t from, uint32_t to)
{
    const uint32_t p = in->b.index, cols = b->param[p].cols, rows = b->param[p].rows / b->types;
    const float *const matrix = b->weight[p] + (size_t)b->type[edge] * rows * cols;
    return (double)(in->op == GS_OP_BY_TYPE ? matrix[from * cols + to] : matrix[to * cols + from]);
}

static void compute_edge(const edge_fixture *b, edge_values *v, uint32_t target, uint32_t operand, uint32_t edge)
{
    for (uint32_t r = 0; r < b->stage.edge_regs; r++) {
        const gs_edge_reg *const g = &b->edge_reg[r];
        const uint32_t row = g->kind == GS_EDGE_TARGET ? target : operand;
        for (uint32_t c = 0; g->kind != GS_EDGE_TEMP && c < g->width; c++)
            v->value[r][c] = g->typed ? row_number(b, r, ((size_t)row * b->types + b->type[edge]) * g->width + c)
                             : g->kind != GS_EDGE_WEIGHT ? row_number(b, r, (size_t)row * g->width + c)
                             : b->edge_weight == NULL  ? 1
                                                       : (double)b->edge_weight[edge];
    }
    for (uint32_t i = 0; i < b->stage.edge_instrs; i++) {
        const gs_instr *const in = &b->instr[i];
        const uint32_t width = b->edge_reg[in->dst].width;
        const uint32_t from = in->a.kind == GS_FROM_REG ? b->edge_reg[in->a.index].width : 1;
        for (uint32_t c = 0; c < width; c++) {
            double x = 0;
            if (in->op == GS_OP_BY_TYPE || in->op == GS_OP_BY_TYPE_T)
                for (uint32_t j = 0; j < from; j++)
                    x += v->value[in->a.index][j] * matrix_at(b, in, edge, j, c);
            else if (in->op == GS_OP_FOLD || in->op == GS_OP_ROWSUM)
                for (uint32_t j = 0; j < from / width; j++)
                    x += v->value[in->a.index][c * (from / width) + j];
            else if (in->op == GS_OP_ROWMAX)
                for (uint32_t j = 0; j < from; j++)
                    x = j == 0 ? v->value[in->a.index][0] : fmax(x, v->value[in->a.index][j]);
            else if (in->op == GS_OP_IS_LOOP)
                x = id_at(b, &in->a, target, operand) == id_at(b, &in->b, target, operand);
            else if (in->op == GS_OP_EDGE_MASK)
                x = mask_at(b, in, target, operand, edge, c, width);
            else if (in->op == GS_OP_EXPAND)
                x = v->value[in->a.index][c / (width / from)];
            else
                x = op_formula_of(in->op)->value(operand_at(b, v, &in->a, c), operand_at(b, v, &in->b, c),
                                                 operand_at(b, v, &in->c, c), (double)in->alpha);
            v->value[in->dst][c] = x;
        }
    }
}

/* The largest score of each head: softmax goes over the edges a second time. */
static void most_of(const edge_fixture *b, const edge_values *v, uint32_t s, uint32_t row)
{
    const uint32_t heads = edges_heads(b, s);
    double *const most = b->want_lse[s] + (size_t)row * heads;
    for (uint32_t h = 0; h < heads; h++)
        most[h] = fmax(most[h], v->value[b->stage.sum[s].score][h]);
}

static void attend(const edge_fixture *b, const edge_values *v, uint32_t s, uint32_t row, double *total)
{
    const gs_sum *const sum = &b->stage.sum[s];
    const uint32_t width = edges_sum_width(b, s), heads = edges_heads(b, s);
    const double *const most = b->want_lse[s] + (size_t)row * heads;
    double *const acc = b->want[s] + (size_t)row * width, *const size = b->size[s] + (size_t)row * width;
    for (uint32_t h = 0; h < heads; h++) {
        const double p = exp(v->value[sum->score][h] - most[h]);
        total[h] += p;
        for (uint32_t c = h * (width / heads); c < (h + 1) * (width / heads); c++) {
            acc[c] += p * v->value[sum->value][c];
            size[c] += p * fabs(v->value[sum->value][c]);
        }
    }
}

static void divide(const edge_fixture *b, uint32_t s, uint32_t row, const double *total)
{
    const uint32_t width = edges_sum_width(b, s), heads = edges_heads(b, s);
    for (uint32_t h = 0; h < heads; h++)
        b->want_lse[s][(size_t)row * heads + h] += log(total[h]);
    for (uint32_t c = 0; c < width; c++) {
        b->want[s][(size_t)row * width + c] /= total[c / (width / heads)];
        b->size[s][(size_t)row * width + c] /= total[c / (width / heads)];
    }
}

/* The largest or least so far, who has it, and how many edges do. */
static void hold(const edge_fixture *b, const edge_values *v, uint32_t s, uint32_t row, bool first)
{
    const gs_sum *const sum = &b->stage.sum[s];
    const uint32_t width = b->edge_reg[sum->value].width;
    double *const acc = b->want[s] + (size_t)row * 3 * width, *const size = b->size[s] + (size_t)row * 3 * width;
    for (uint32_t c = 0; c < width; c++) {
        const double x = v->value[sum->value][c], who = v->value[sum->score][0];
        if (first || (sum->kind == GS_SUM_MAX_HELD ? x > acc[c] : x < acc[c])) {
            acc[c] = x;
            acc[width + c] = who;
            acc[2 * width + c] = 1;
        } else if (x == acc[c]) {
            acc[width + c] *= acc[width + c] == who;
            acc[2 * width + c]++;
        }
        size[c] += fabs(x);
        size[width + c] = size[2 * width + c] = 1;
    }
}

static void sum_up(const edge_fixture *b, const edge_values *v, uint32_t s, uint32_t row, uint32_t k, bool first)
{
    const gs_sum *const sum = &b->stage.sum[s];
    const uint32_t wide = edges_sum_width(b, s), width = b->edge_reg[sum->value].width;
    const size_t at = (size_t)row * wide + (sum->kind == GS_SUM_ADD_TYPE ? b->type[k] * width : 0);
    double *const acc = b->want[s] + at, *const size = b->size[s] + at;
    for (uint32_t c = 0; c < width; c++) {
        const double x = v->value[sum->value][c];
        if (sum->kind == GS_SUM_ADD || sum->kind == GS_SUM_ADD_TYPE)
            acc[c] += x;
        else if (first)
            acc[c] = x;
        else
            acc[c] = sum->kind == GS_SUM_MAX ? fmax(acc[c], x) : fmin(acc[c], x);
        size[c] += fabs(x);
    }
}

/* Every edge once, and once more before that where there is a softmax: computing them is what takes long. */
static void expect_target(const edge_fixture *b, edge_values *v, uint32_t t)
{
    const uint32_t row = 2 * t + 1, from = b->start[t], to = b->start[t + 1];
    double total[GS_STAGE_SUMS][EDGES_HEADS] = {{0}};
    bool attends = false;
    for (uint32_t s = 0; s < b->stage.sums; s++) {
        assert_true(edges_heads(b, s) <= EDGES_HEADS);
        attends |= edges_heads(b, s) > 0;
    }
    for (uint32_t k = from; attends && k < to; k++) {
        compute_edge(b, v, row, get_number(b->index, b->index_bytes, k), k);
        for (uint32_t s = 0; s < b->stage.sums; s++)
            most_of(b, v, s, row);
    }
    for (uint32_t k = from; k < to; k++) {
        compute_edge(b, v, row, get_number(b->index, b->index_bytes, k), k);
        for (uint32_t s = 0; s < b->stage.sums; s++)
            if (edges_heads(b, s) > 0)
                attend(b, v, s, row, total[s]);
            else if (gs_sum_is_held(b->stage.sum[s].kind))
                hold(b, v, s, row, k == from);
            else
                sum_up(b, v, s, row, k, k == from);
    }
    for (uint32_t s = 0; s < b->stage.sums && from < to; s++)
        if (edges_heads(b, s) > 0)
            divide(b, s, row, total[s]);
}

static double *zeros(size_t n)
{
    double *const p = test_malloc(n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        p[i] = 0;
    return p;
}

static bool draws(const edge_fixture *b)
{
    for (uint32_t i = 0; i < b->stage.edge_instrs; i++)
        if (b->instr[i].op == GS_OP_EDGE_MASK)
            return true;
    return false;
}

void edges_expect(edge_fixture *b)
{
    edge_values *const v = test_malloc(sizeof(*v));
    for (uint32_t s = 0; s < b->stage.sums; s++) {
        const uint32_t width = edges_sum_width(b, s), heads = edges_heads(b, s);
        b->want[s] = zeros((size_t)b->target_rows * width);
        b->size[s] = zeros((size_t)b->target_rows * width);
        b->want_lse[s] = zeros((size_t)b->target_rows * heads + 1);
        for (size_t i = 0; i < (size_t)b->target_rows * heads; i++)
            b->want_lse[s][i] = -INFINITY;
    }
    if (draws(b))
        count_ranks(b);
    for (uint32_t t = 0; t < b->targets; t++)
        expect_target(b, v, t);
    test_free(v);
}

/* ---- runs ---- */

gs_edge_program_launch edges_launch(const edge_fixture *b, const gs_accumulator *sum)
{
    return (gs_edge_program_launch){.program = &b->program, .stage = &b->stage,
                                    .edges = {.index_bytes = b->index_bytes, .targets = b->targets,
                                              .target = b->target, .start = b->start, .index = b->index,
                                              .weight = b->edge_weight, .type = b->type,
                                              .type_bytes = b->type == NULL ? 0 : 1, .operand_rows = b->operand_rows,
                                              .target_rows = b->target_rows},
                                    .seed = EDGES_SEED, .epoch = EDGES_EPOCH, .rows = b->rows, .sum = sum,
                                    .param = b->weight};
}

static void run_frozen(gs_device *d, const gs_edge_program_launch *l)
{
    gs_alloc_freeze(true);
    const uint64_t frozen = gs_alloc_frozen_count();
    gs_assert_ok(launch_edge_program(d, l));
    assert_int_equal(gs_alloc_frozen_count(), frozen);
    gs_alloc_freeze(false);
}

/* The i-th of `pieces` parts of every target's edges, with indices and weights of its own. */
static void run_part(const edge_fixture *b, gs_device *d, uint32_t i, uint32_t pieces, const edges_result *r)
{
    uint32_t *const start = test_malloc((b->targets + 1) * sizeof(uint32_t));
    char *const index = test_malloc((size_t)b->edges * b->index_bytes);
    float *const weight = test_malloc(b->edges * sizeof(float));
    uint8_t *const type = test_malloc(b->edges);
    gs_edge_program_launch l = edges_launch(b, r->sum);
    uint32_t n = 0;
    for (uint32_t t = 0; t < b->targets; t++) {
        const uint64_t degree = b->start[t + 1] - b->start[t];
        start[t] = n;
        for (uint64_t k = degree * i / pieces; k < degree * (i + 1) / pieces; k++, n++) {
            put_number(index, b->index_bytes, n, get_number(b->index, b->index_bytes, b->start[t] + (uint32_t)k));
            if (b->edge_weight != NULL)
                weight[n] = b->edge_weight[b->start[t] + k];
            if (b->types > 0)
                type[n] = b->type[b->start[t] + k];
        }
    }
    start[b->targets] = n;
    l.edges.start = start;
    l.edges.index = index;
    l.edges.weight = b->edge_weight == NULL ? NULL : weight;
    l.edges.type = b->types > 0 ? type : l.edges.type;
    run_frozen(d, &l);
    test_free(start);
    test_free(index);
    test_free(weight);
    test_free(type);
}

void edges_run(const edge_fixture *b, gs_device *d, uint32_t pieces, edges_result *r)
{
    gs_assert_ok(gs_device_prepare(d, &b->program));
    for (uint32_t s = 0; s < b->stage.sums; s++) {
        const uint32_t width = edges_sum_width(b, s), heads = edges_heads(b, s);
        gs_accumulator *const a = &r->sum[s];
        a->acc = random_floats((size_t)b->target_rows * width, 77, 5, 6); /* begin must write them */
        a->maximum = heads == 0 ? NULL : random_floats((size_t)b->target_rows * heads, 78, 5, 6);
        a->norm = heads == 0 ? NULL : random_floats((size_t)b->target_rows * heads, 79, 5, 6);
        a->beside = b->stage.sum[s].beside;
        if (pieces > 0)
            gs_assert_ok(launch_begin_sum(d, b->stage.sum[s].kind, a, b->target_rows, width, heads));
    }
    if (pieces <= 1) {
        gs_edge_program_launch l = edges_launch(b, r->sum);
        l.whole = pieces == 0;
        run_frozen(d, &l);
    } else {
        for (uint32_t i = 0; i < pieces; i++)
            run_part(b, d, i, pieces, r);
    }
    for (uint32_t s = 0; pieces > 0 && s < b->stage.sums; s++)
        gs_assert_ok(launch_finish_sum(d, b->stage.sum[s].kind, &r->sum[s], b->target_rows, edges_sum_width(b, s),
                                       edges_heads(b, s)));
}

void edges_result_free(edges_result *r)
{
    for (uint32_t s = 0; s < GS_STAGE_SUMS; s++) {
        test_free(r->sum[s].acc);
        test_free(r->sum[s].maximum);
        test_free(r->sum[s].norm);
    }
    memset(r, 0, sizeof(*r));
}

void edges_compare(const edge_fixture *b, const edges_result *r, double tolerance)
{
    for (uint32_t s = 0; s < b->stage.sums; s++) {
        const uint32_t width = edges_sum_width(b, s), heads = edges_heads(b, s);
        for (size_t i = 0; i < (size_t)b->target_rows * width; i++) {
            const double got = (double)r->sum[s].acc[i], want = b->want[s][i];
            if (!(fabs(got - want) <= tolerance * (b->size[s][i] + 1e-30)))
                fail_msg("sum %u, row %zu, column %zu: %.9g, not %.9g (magnitudes %.3g)", s, i / width, i % width, got,
                         want, b->size[s][i]);
        }
        for (size_t i = 0; i < (size_t)b->target_rows * heads; i++) {
            const double got = (double)r->sum[s].maximum[i], want = b->want_lse[s][i];
            if (got != want && !(fabs(got - want) <= 4 * tolerance * (1 + fabs(want))))
                fail_msg("sum %u, row %zu, head %zu: log-sum-exp %.9g, not %.9g", s, i / heads, i % heads, got, want);
        }
    }
}

void edges_same(const edge_fixture *b, const edges_result *x, const edges_result *y)
{
    for (uint32_t s = 0; s < b->stage.sums; s++) {
        const size_t n = (size_t)b->target_rows * edges_sum_width(b, s), h = (size_t)b->target_rows * edges_heads(b, s);
        gs_assert_all_close(x->sum[s].acc, y->sum[s].acc, n, 0, 0); /* prints the place */
        assert_memory_equal(x->sum[s].acc, y->sum[s].acc, n * sizeof(float));
        if (h > 0)
            assert_memory_equal(x->sum[s].maximum, y->sum[s].maximum, h * sizeof(float));
    }
}

/* Sums that begin and finish in the walk have the same bits. */
static void check_whole(const edge_fixture *b, gs_device *d, const edges_result *first)
{
    edges_result r = {0};
    if (!gs_stage_frames_sums(&b->stage) || !gs_device_unified(d))
        return;
    edges_run(b, d, 0, &r);
    edges_same(b, first, &r);
    edges_result_free(&r);
}

void edges_check(edge_fixture *b, double tolerance)
{
    edges_expect(b);
    for (size_t i = 0; i < isas; i++) {
        edges_result first = {0};
        for (unsigned threads = 1; threads <= 3; threads++) {
            edges_result r = {0};
            if (threads > 1 && !gs_test_takes(i + threads, 2)) /* 2 or 3 */
                continue;
            gs_device *const d = open_isa(isa_names[i], threads);
            if (d == NULL)
                break;
            b->program.packed_rows = threads > 1 ? b->operand_rows : 0;
            edges_run(b, d, 1, threads == 1 ? &first : &r);
            if (threads > 1) {
                edges_same(b, &first, &r);
            } else if (b->parallel) {
                edges_compare(b, &first, tolerance);
            } else {
                edges_compare(b, &first, tolerance);
                edges_run(b, d, 3, &r);
                edges_compare(b, &r, tolerance);
            }
            check_whole(b, d, &first);
            edges_result_free(&r);
            gs_device_close(d);
        }
        edges_result_free(&first);
    }
}
