/* interp.c - see interp.h. Any misuse of the program's data is an assertion here. */
#include "interp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "support/formulas.h"
#include "support/lstm.h"
#include "support/support.h"

typedef struct frame {
    interp *x;
    const gs_stage *s;
    double **reg; /* [regs] of [n * width] */
    double **edge; /* [edge_regs] of [m * width]: all edges, in the order of the graph */
} frame;

static double *zeros(size_t count)
{
    double *p = calloc(count > 0 ? count : 1, sizeof(*p));
    assert_non_null(p);
    return p;
}

void interp_open(interp *x, const gs_program *p, const test_graph *g, double **param)
{
    memset(x, 0, sizeof(*x));
    x->p = p;
    x->g = g;
    x->param = param;
    x->loss_scale = 1.0;
    x->grad = calloc(p->params + 1, sizeof(*x->grad));
    x->array = calloc(p->arrays + 1, sizeof(*x->array));
    for (uint32_t i = 0; i < p->params; i++)
        x->grad[i] = zeros((size_t)p->param[i].rows * p->param[i].cols);
    for (uint32_t i = 0; i < p->arrays; i++)
        x->array[i] = zeros((size_t)g->n * p->array[i].width);
}

void interp_close(interp *x)
{
    for (uint32_t i = 0; i < x->p->params; i++)
        free(x->grad[i]);
    for (uint32_t i = 0; i < x->p->arrays; i++)
        free(x->array[i]);
    free(x->grad);
    free(x->array);
}

/* Element (row, c) of an operand under broadcasting. */
static double element(const frame *f, const gs_operand *o, uint32_t row, uint32_t c)
{
    uint32_t width;
    switch (o->kind) {
    case GS_FROM_REG:
        width = f->s->reg[o->index].width;
        return f->reg[o->index][(size_t)row * width + (width == 1 ? 0 : c)];
    case GS_FROM_PARAM:
        return f->x->param[o->index][f->x->p->param[o->index].cols == 1 ? 0 : c];
    case GS_FROM_CONST:
        return (double)o->value;
    default:
        fail_msg("operand missing");
        return 0;
    }
}

static double dropped(const frame *f, const gs_instr *i, double v, uint32_t row, uint32_t c)
{
    const uint32_t id = (uint32_t)element(f, &i->b, row, 0);
    const uint32_t counter[4] = {id, c / 4, i->site, f->x->epoch};
    uint32_t key[2], word[4];
    gs_random_key(key, f->x->seed, GS_RANDOM_DROPOUT);
    gs_philox4x32(word, counter, key);
    return gs_uniform_f32(word[c % 4]) >= i->alpha ? v / (1.0 - (double)i->alpha) : 0.0;
}

/* An edge's, or with the ranks 0 the vertex's own. */
static double mask(const frame *f, const gs_instr *i, uint32_t source, uint32_t destination, uint32_t rank,
                   uint32_t type, uint32_t c, uint32_t width)
{
    const bool one = i->self && source == destination;
    const uint32_t counter[4] = {source, destination, (one ? 0 : rank) * ((width + 3) / 4) + c / 4, one ? 0 : type};
    uint32_t key[2], word[4];
    gs_random_edge_key(key, f->x->seed, i->site, f->x->epoch);
    gs_philox4x32(word, counter, key);
    return gs_uniform_f32(word[c % 4]) >= i->alpha ? 1.0 / (1.0 - (double)i->alpha) : 0.0;
}

/* x: of as many operands as the operator has. */
static double scalar(const gs_instr *i, const double *x)
{
    if (i->op == GS_OP_IS_LOOP)
        return x[0] == x[1];
    if (gs_op_form_of(i->op) == GS_FORM_TYPE || i->op == GS_OP_NEAREST) /* nothing is rounded here */
        return x[0];
    return op_formula_of(i->op)->value(x[0], x[1], x[2], (double)i->alpha);
}

/* Element c of a result of `width` of an operator that moves or adds up elements of a row of `in`. */
static double resized(gs_op op, const double *a, uint32_t in, uint32_t width, uint32_t c)
{
    double s = 0.0;
    switch (op) {
    case GS_OP_EXPAND: return a[c / (width / in)];
    case GS_OP_TILE: return a[c % in];
    case GS_OP_ROWMAX:
        s = a[0];
        for (uint32_t k = 1; k < in; k++)
            s = fmax(s, a[k]);
        return s;
    case GS_OP_ACROSS:
        for (uint32_t k = c; k < in; k += width)
            s += a[k];
        return s;
    default: /* fold, rowsum */
        for (uint32_t k = 0; k < in / width; k++)
            s += a[c * (in / width) + k];
        return s;
    }
}

static bool resizes(gs_op op)
{
    const gs_op_form form = gs_op_form_of(op);
    return form == GS_FORM_ROW || form == GS_FORM_FEWER || form == GS_FORM_MORE;
}

static double elementwise(const frame *f, const gs_instr *i, uint32_t row, uint32_t c, uint32_t width)
{
    if (resizes(i->op)) {
        const uint32_t in = f->s->reg[i->a.index].width;
        return resized(i->op, f->reg[i->a.index] + (size_t)row * in, in, width, c);
    }
    if (i->op == GS_OP_PART)
        return f->reg[i->a.index][(size_t)row * f->s->reg[i->a.index].width + i->site + c];
    if (i->op == GS_OP_CONCAT) {
        const uint32_t left = f->s->reg[i->a.index].width;
        return c < left ? f->reg[i->a.index][(size_t)row * left + c]
                        : f->reg[i->b.index][(size_t)row * (width - left) + c - left];
    }
    if (i->op == GS_OP_DROPOUT)
        return dropped(f, i, element(f, &i->a, row, c), row, c);
    if (i->op == GS_OP_EDGE_MASK)
        return mask(f, i, (uint32_t)element(f, &i->a, row, 0), (uint32_t)element(f, &i->b, row, 0), 0, 0, c, width);
    double x[3] = {0, 0, 0};
    for (uint32_t k = 0; k < gs_op_inputs(i->op); k++)
        x[k] = element(f, gs_instr_operand(i, k), row, c);
    return scalar(i, x);
}

/* Element c of a row by the matrices of a fan, or of one by their transposes. */
static double fanned(const frame *f, const gs_instr *i, uint32_t row, uint32_t c, uint32_t width)
{
    const gs_param *w = &f->x->p->param[i->b.index];
    const uint32_t wide = f->s->reg[i->a.index].width, in = i->op == GS_OP_FAN ? wide : width, types = w->rows / in;
    const double *a = f->reg[i->a.index] + (size_t)row * wide, *v = f->x->param[i->b.index];
    double sum = 0;
    for (uint32_t k = 0; i->op == GS_OP_FAN && k < in; k++)
        sum += a[k] * v[((size_t)(c / w->cols) * in + k) * w->cols + c % w->cols];
    for (uint32_t t = 0; i->op == GS_OP_FAN_T && t < types; t++)
        for (uint32_t k = 0; k < w->cols; k++)
            sum += a[t * w->cols + k] * v[((size_t)t * in + c) * w->cols + k];
    return sum;
}

/* Element c of a row of blocks, mixed. */
static double mixed(const frame *f, const gs_instr *i, uint32_t row, uint32_t c, uint32_t width)
{
    const gs_param *w = &f->x->p->param[i->b.index];
    const uint32_t to = i->op == GS_OP_MIX ? w->cols : w->rows, from = i->op == GS_OP_MIX ? w->rows : w->cols;
    const uint32_t each = width / to, b = c / each;
    double sum = 0;
    for (uint32_t k = 0; k < from; k++)
        sum += f->x->param[i->b.index][i->op == GS_OP_MIX ? k * w->cols + b : b * w->cols + k] *
               f->reg[i->a.index][((size_t)row * from + k) * each + c % each];
    return sum;
}

static void matmul(const frame *f, const gs_instr *i, double *dst, uint32_t width)
{
    const gs_param *w = &f->x->p->param[i->b.index];
    const double *v = f->x->param[i->b.index];
    const uint32_t inner = f->s->reg[i->a.index].width;
    for (uint32_t r = 0; r < f->x->g->n; r++)
        for (uint32_t c = 0; c < width; c++) {
            if (i->op != GS_OP_MATMUL && i->op != GS_OP_MATMUL_T) {
                dst[(size_t)r * width + c] =
                    i->op == GS_OP_FAN || i->op == GS_OP_FAN_T ? fanned(f, i, r, c, width) : mixed(f, i, r, c, width);
                continue;
            }
            for (uint32_t k = 0; k < inner; k++)
                dst[(size_t)r * width + c] +=
                    f->reg[i->a.index][(size_t)r * inner + k] *
                    (i->op == GS_OP_MATMUL_T ? v[(size_t)c * w->cols + k] : v[(size_t)k * w->cols + c]);
        }
}

static void reduce(const frame *f, const gs_instr *i)
{
    const gs_param *w = &f->x->p->param[i->dst];
    double *grad = f->x->grad[i->dst];
    const uint32_t in = f->s->reg[i->a.index].width; /* rows of one matrix of a fan */
    const uint32_t each = i->op == GS_OP_MIX_OUTER ? f->s->reg[i->a.index].width / w->rows : 1;
    for (uint32_t r = 0; r < f->x->g->n; r++)
        for (uint32_t a = 0; a < w->rows; a++)
            for (uint32_t b = 0; b < w->cols; b++)
                for (uint32_t k = 0; k < each; k++)
                    grad[(size_t)a * w->cols + b] +=
                        i->op == GS_OP_FAN_OUTER
                            ? element(f, &i->a, r, a % in) * element(f, &i->b, r, a / in * w->cols + b)
                        : gs_op_is_outer(i->op)
                            ? element(f, &i->a, r, a * each + k) * element(f, &i->b, r, b * each + k)
                            : element(f, &i->a, r, b);
}

/* In two sweeps: the mean, then the deviations from it. */
static void statistic(const frame *f, const gs_instr *i)
{
    const uint32_t n = f->x->g->n, width = f->x->p->param[i->dst].cols;
    for (uint32_t c = 0; c < width; c++) {
        double mean = 0, variance = 0;
        for (uint32_t r = 0; r < n; r++)
            mean += element(f, &i->a, r, c) / n;
        for (uint32_t r = 0; r < n; r++)
            variance += (element(f, &i->a, r, c) - mean) * (element(f, &i->a, r, c) - mean) / n;
        f->x->param[i->dst][c] = i->op == GS_OP_MEAN_ALL ? mean : variance;
    }
}

static void loss_row(frame *f, const gs_instr *i, uint32_t r, double *dst)
{
    const uint32_t classes = f->s->reg[i->a.index].width;
    const double *z = f->reg[i->a.index] + (size_t)r * classes;
    const int label = (int)f->reg[i->b.index][r], split = (int)f->reg[i->c.index][r];
    double top = -INFINITY, sum = 0;
    uint32_t best = 0;

    for (uint32_t c = 0; c < classes; c++)
        if (z[c] > top) {
            top = z[c];
            best = c;
        }
    for (uint32_t c = 0; c < classes; c++)
        sum += exp(z[c] - top);
    if (split != 0 && label >= 0) {
        f->x->rows[split]++;
        f->x->correct[split] += best == (uint32_t)label;
    }
    if (split != 1 || label < 0)
        return;
    f->x->loss_sum += log(sum) - (z[label] - top);
    for (uint32_t c = 0; dst != NULL && c < classes; c++)
        dst[c] = (exp(z[c] - top) / sum - (c == (uint32_t)label)) * f->x->loss_scale;
}

static void run_instr(frame *f, const gs_instr *i)
{
    const uint32_t n = f->x->g->n;
    const uint32_t width = i->dst != GS_NONE && !gs_op_into_param(i->op) ? f->s->reg[i->dst].width : 0;

    switch (gs_op_classof(i->op)) {
    case GS_CLASS_ELEMENTWISE:
        for (uint32_t r = 0; r < n; r++)
            for (uint32_t c = 0; c < width; c++)
                f->reg[i->dst][(size_t)r * width + c] = elementwise(f, i, r, c, width);
        return;
    case GS_CLASS_MATMUL:
        matmul(f, i, f->reg[i->dst], width);
        return;
    case GS_CLASS_REDUCE:
        reduce(f, i);
        return;
    case GS_CLASS_STATISTIC:
        statistic(f, i);
        return;
    case GS_CLASS_LOSS:
        for (uint32_t r = 0; r < n; r++)
            loss_row(f, i, r, i->op == GS_OP_XENT_GRAD ? f->reg[i->dst] + (size_t)r * width : NULL);
        return;
    default:
        fail_msg("no instruction: %s", gs_op_name(i->op));
    }
}

/* ---- edges ---- */

static uint32_t target_of(const frame *f, uint32_t e)
{
    return f->s->direction == 0 ? f->x->g->dst[e] : f->x->g->src[e];
}

static uint32_t operand_of(const frame *f, uint32_t e)
{
    return f->s->direction == 0 ? f->x->g->src[e] : f->x->g->dst[e];
}

static void load_edge_reg(frame *f, uint32_t r)
{
    const gs_edge_reg *g = &f->s->edge_reg[r];
    const uint32_t m = f->x->g->m;
    for (uint32_t e = 0; e < m && g->kind != GS_EDGE_TEMP; e++) {
        const uint32_t row = g->kind == GS_EDGE_OPERAND ? operand_of(f, e) : target_of(f, e);
        if (g->kind == GS_EDGE_WEIGHT)
            f->edge[r][e] = f->x->g->weight != NULL ? f->x->g->weight[e] : 1.0;
        else
            memcpy(f->edge[r] + (size_t)e * g->width,
                   f->x->array[g->array] + (size_t)row * f->x->p->array[g->array].width +
                       (g->typed ? f->x->g->type[e] * g->width : 0),
                   g->width * sizeof(double));
    }
}

static double edge_element(const frame *f, const gs_operand *o, uint32_t e, uint32_t c)
{
    uint32_t width;
    if (o->kind != GS_FROM_REG)
        return element(f, o, 0, c);
    width = f->s->edge_reg[o->index].width;
    return f->edge[o->index][(size_t)e * width + (width == 1 ? 0 : c)];
}

static void run_edge_mask(frame *f, const gs_instr *i)
{
    const test_graph *g = f->x->g;
    const uint32_t width = f->s->edge_reg[i->dst].width;
    for (uint32_t e = 0; e < g->m; e++) {
        const uint32_t source = (uint32_t)edge_element(f, &i->a, e, 0),
                       destination = (uint32_t)edge_element(f, &i->b, e, 0);
        uint32_t rank = 0;
        assert_int_equal(source, (uint32_t)g->store[ID_INPUT_ID][g->src[e]]);
        assert_int_equal(destination, (uint32_t)g->store[ID_INPUT_ID][g->dst[e]]);
        for (uint32_t k = 0; k < e; k++)
            rank += g->src[k] == g->src[e] && g->dst[k] == g->dst[e] && g->type[k] == g->type[e];
        for (uint32_t c = 0; c < width; c++)
            f->edge[i->dst][(size_t)e * width + c] = mask(f, i, source, destination, rank, g->type[e], c, width);
    }
}

/* Row by the matrix of the edge's type, or its transpose. */
static void run_by_type(frame *f, const gs_instr *i)
{
    const bool back = i->op == GS_OP_BY_TYPE_T;
    const uint32_t width = f->s->edge_reg[i->dst].width, in = f->s->edge_reg[i->a.index].width;
    for (uint32_t e = 0; e < f->x->g->m; e++) {
        const double *w = f->x->param[i->b.index] + (size_t)f->x->g->type[e] * in * width;
        for (uint32_t c = 0; c < width; c++)
            for (uint32_t k = 0; k < in; k++)
                f->edge[i->dst][(size_t)e * width + c] +=
                    f->edge[i->a.index][(size_t)e * in + k] * (back ? w[c * in + k] : w[k * width + c]);
    }
}

static void run_edge_instr(frame *f, const gs_instr *i)
{
    const uint32_t width = f->s->edge_reg[i->dst].width;
    if (i->op == GS_OP_BY_TYPE || i->op == GS_OP_BY_TYPE_T) {
        run_by_type(f, i);
        return;
    }
    if (i->op == GS_OP_EDGE_MASK) {
        run_edge_mask(f, i);
        return;
    }
    for (uint32_t e = 0; e < f->x->g->m; e++)
        for (uint32_t c = 0; c < width; c++) {
            double *dst = &f->edge[i->dst][(size_t)e * width + c];
            if (resizes(i->op)) {
                const uint32_t in = f->s->edge_reg[i->a.index].width;
                *dst = resized(i->op, f->edge[i->a.index] + (size_t)e * in, in, width, c);
            } else {
                double x[3] = {0, 0, 0};
                for (uint32_t k = 0; k < gs_op_inputs(i->op); k++)
                    x[k] = edge_element(f, gs_instr_operand(i, k), e, c);
                *dst = scalar(i, x);
            }
        }
}

static void run_rows(frame *f, const gs_sum *m)
{
    const test_graph *g = f->x->g;
    gs_row_sum r;
    assert_true(gs_sum_of_rows(&r, f->s, (uint32_t)(m - f->s->sum)));
    const uint32_t w = f->s->reg[m->reg].width, in = f->x->p->array[r.array].width;
    const double *rows = f->x->array[r.array], *scale = r.scale != GS_NONE ? f->x->array[r.scale] : NULL;
    double *acc = f->reg[m->reg];

    for (size_t k = 0; m->self && k < (size_t)g->n * w; k++)
        acc[k] = rows[k] * (scale != NULL ? scale[k / w] : 1);
    for (uint32_t e = 0; e < g->m; e++) {
        const double by = scale != NULL ? scale[operand_of(f, e)] : 1, *row = rows + (size_t)operand_of(f, e) * in;
        double *to = acc + (size_t)target_of(f, e) * w;
        const uint32_t type = r.types == GS_TYPES_NONE ? 0 : g->type[e];
        for (uint32_t c = 0; c < (w < in ? w : in); c++)
            to[r.types == GS_TYPES_OF_SUM ? type * in + c : c] +=
                by * row[r.types == GS_TYPES_OF_ROWS ? type * w + c : c];
    }
}

/* In two sweeps: the maximum, then the sum; for each head. */
static void run_attend(frame *f, const gs_sum *m)
{
    const uint32_t n = f->x->g->n, w = f->s->reg[m->reg].width, h = f->s->reg[m->lse].width;
    double *acc = f->reg[m->reg], *lse = f->reg[m->lse];
    double *top = zeros((size_t)n * h), *norm = zeros((size_t)n * h);
    bool *any = calloc(n, sizeof(*any));

    for (size_t k = 0; k < (size_t)n * h; k++)
        top[k] = -INFINITY;
    for (uint32_t e = 0; e < f->x->g->m; e++)
        any[target_of(f, e)] = true;
    for (uint32_t e = 0; e < f->x->g->m; e++)
        for (uint32_t c = 0; c < h; c++)
            top[target_of(f, e) * h + c] = fmax(top[target_of(f, e) * h + c], f->edge[m->score][(size_t)e * h + c]);
    for (uint32_t e = 0; e < f->x->g->m; e++)
        for (uint32_t c = 0; c < w; c++) {
            const uint32_t head = c / (w / h), t = target_of(f, e);
            const double p = exp(f->edge[m->score][(size_t)e * h + head] - top[t * h + head]);
            acc[(size_t)t * w + c] += p * f->edge[m->value][(size_t)e * w + c];
            if (c % (w / h) == 0)
                norm[t * h + head] += p;
        }
    for (size_t k = 0; k < (size_t)n * h; k++)
        lse[k] = top[k] + log(norm[k]);
    for (size_t k = 0; k < (size_t)n * w; k++)
        acc[k] = top[k / (w / h)] > -INFINITY ? acc[k] / norm[k / (w / h)] : any[k / w] && !m->beside ? NAN : 0;
    free(any);
    free(top);
    free(norm);
}

static void run_edge_sum(frame *f, const gs_sum *m)
{
    const bool typed = m->kind == GS_SUM_ADD_TYPE;
    const uint32_t wide = f->s->reg[m->reg].width, w = typed ? f->s->edge_reg[m->value].width : wide;
    bool *any = calloc(f->x->g->n, sizeof(*any));
    for (uint32_t e = 0; e < f->x->g->m; e++) {
        const uint32_t t = target_of(f, e);
        for (uint32_t c = 0; c < w; c++) {
            const double v = f->edge[m->value][(size_t)e * w + c];
            double *acc = &f->reg[m->reg][(size_t)t * wide + (typed ? f->x->g->type[e] * w : 0) + c];
            if (m->kind == GS_SUM_ADD || typed)
                *acc += v;
            else if (!any[t] || (m->kind == GS_SUM_MAX ? v > *acc : v < *acc))
                *acc = v;
        }
        any[t] = true;
    }
    free(any);
}

/* Vertex by vertex, in the order of the graph's edges. */
static void run_lstm(frame *f, const gs_sum *m)
{
    const bool back = m->kind == GS_SUM_LSTM_BACK;
    const uint32_t h = f->x->p->param[m->weight].cols, edges = f->x->g->m;
    const double *w = f->x->param[m->weight], **row = calloc(edges + 1, sizeof(*row));
    double **to = calloc(edges + 1, sizeof(*to));

    for (size_t k = 0; back && k < (size_t)f->x->g->n * 4 * h; k++)
        f->x->array[m->array][k] = 0;
    for (uint32_t v = 0; v < f->x->g->n; v++) {
        uint32_t steps = 0, last = 0;
        for (uint32_t e = 0; e < edges; e++)
            if (target_of(f, e) == v) {
                row[steps] = f->edge[m->value] + (size_t)e * 4 * h;
                to[steps++] = back ? f->x->array[m->array] + (size_t)operand_of(f, e) * 4 * h : NULL;
                last = e;
            }
        const lstm_sequence q = {.x = row, .steps = steps, .h = h, .w = w};
        double *cell = zeros(h), *d_cell = zeros(h), *none = zeros(h);
        if (!back)
            lstm_forward(&q, f->reg[m->reg] + (size_t)v * h, cell);
        else if (steps > 0)
            lstm_backward(&q, none, cell, f->edge[m->score] + (size_t)last * h, d_cell, to,
                          m->learned ? f->x->grad[m->weight] : NULL);
        free(cell);
        free(d_cell);
        free(none);
    }
    free(row);
    free(to);
}

static void run_outer(frame *f, const gs_sum *m)
{
    const uint32_t in = f->s->edge_reg[m->score].width, out = f->s->edge_reg[m->value].width;
    for (uint32_t e = 0; e < f->x->g->m; e++)
        for (uint32_t k = 0; k < in; k++)
            for (uint32_t c = 0; c < out; c++)
                f->x->grad[m->weight][((size_t)f->x->g->type[e] * in + k) * out + c] +=
                    f->edge[m->score][(size_t)e * in + k] * f->edge[m->value][(size_t)e * out + c];
}

static void run_sum(frame *f, const gs_sum *m)
{
    if (gs_stage_sums_rows(f->s, (uint32_t)(m - f->s->sum)))
        run_rows(f, m);
    else if (gs_sum_is_sequence(m))
        run_lstm(f, m);
    else if (m->kind == GS_SUM_ATTEND)
        run_attend(f, m);
    else if (m->kind == GS_SUM_OUTER)
        run_outer(f, m);
    else
        run_edge_sum(f, m);
}

static void run_stage(interp *x, const gs_stage *s)
{
    frame f = {x, s, calloc(s->regs + 1, sizeof(double *)), calloc(s->edge_regs + 1, sizeof(double *))};
    const size_t n = x->g->n;

    for (uint32_t r = 0; r < s->edge_regs; r++) {
        f.edge[r] = zeros((size_t)x->g->m * s->edge_reg[r].width);
        load_edge_reg(&f, r);
    }
    for (uint32_t i = 0; i < s->edge_instrs; i++)
        run_edge_instr(&f, &s->edge_instr[i]);

    for (uint32_t r = 0; r < s->regs; r++) {
        f.reg[r] = zeros(n * s->reg[r].width);
        if (s->reg[r].kind == GS_REG_LOAD)
            memcpy(f.reg[r], x->array[s->reg[r].array], n * s->reg[r].width * sizeof(double));
    }
    for (uint32_t i = 0; i < s->sums; i++)
        run_sum(&f, &s->sum[i]);
    for (uint32_t i = 0; i < s->instrs; i++)
        run_instr(&f, &s->instr[i]);
    for (uint32_t r = 0; r < s->regs; r++) {
        if (s->reg[r].kind == GS_REG_TEMP && s->reg[r].array != GS_NONE)
            memcpy(x->array[s->reg[r].array], f.reg[r], n * s->reg[r].width * sizeof(double));
        free(f.reg[r]);
    }
    for (uint32_t r = 0; r < s->edge_regs; r++)
        free(f.edge[r]);
    free(f.reg);
    free(f.edge);
}

static bool of_setup(const gs_program *p, uint32_t array)
{
    const uint32_t setup = gs_program_pass(p, "setup");
    for (uint32_t s = 0; setup != GS_NONE && s < p->pass[setup].stages; s++) {
        const gs_stage *t = &p->stage[p->pass[setup].first_stage + s];
        for (uint32_t r = 0; r < t->regs; r++)
            if (t->reg[r].kind == GS_REG_TEMP && t->reg[r].array == array)
                return true;
    }
    return false;
}

void interp_run(interp *x, uint32_t pass)
{
    const gs_pass *q = &x->p->pass[pass];
    const uint32_t setup = gs_program_pass(x->p, "setup");

    if (setup != GS_NONE && pass != setup && !x->set_up) {
        interp_run(x, setup);
        x->set_up = true;
    }

    x->loss_sum = 0;
    memset(x->rows, 0, sizeof(x->rows));
    memset(x->correct, 0, sizeof(x->correct));
    for (uint32_t i = 0; i < x->p->params; i++)
        memset(x->grad[i], 0, (size_t)x->p->param[i].rows * x->p->param[i].cols * sizeof(double));
    for (uint32_t i = 0; i < x->p->arrays; i++) {
        const gs_array *a = &x->p->array[i];
        if (x->set_up && of_setup(x->p, i))
            continue;
        for (size_t k = 0; k < (size_t)x->g->n * a->width; k++)
            x->array[i][k] = a->store_id >= 0 ? x->g->store[a->store_id][k] : NAN; /* unwritten rows show */
    }
    for (uint32_t k = 0; k < q->stages; k++)
        run_stage(x, &x->p->stage[q->first_stage + k]);
}
