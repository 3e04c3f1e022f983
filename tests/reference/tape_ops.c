/* tape_ops.c - products, rearrangements, what goes between vertices and edges, the loss. */
#include "tape.h"

#include <math.h>
#include <stdlib.h>

/* ---- products ---- */

/* Element (k, j) of b, or of its transpose. */
static size_t at(const ref_node *b, size_t k, size_t j, bool transposed)
{
    return transposed ? j * b->cols + k : k * b->cols + j;
}

static void product(const ref_node *n, bool transposed)
{
    for (size_t r = 0; r < n->rows; r++)
        for (size_t k = 0; k < n->a->cols; k++) {
            const double v = n->a->x[r * n->a->cols + k];
            for (size_t j = 0; v != 0.0 && j < n->cols; j++)
                n->x[r * n->cols + j] += v * n->b->x[at(n->b, k, j, transposed)];
        }
}

static void product_back(const ref_node *n, bool transposed)
{
    const size_t inner = n->a->cols;
    for (size_t r = 0; r < n->rows; r++)
        for (size_t k = 0; k < inner; k++) {
            const double v = n->a->x[r * inner + k];
            for (size_t j = 0; n->b->d != NULL && v != 0.0 && j < n->cols; j++)
                n->b->d[at(n->b, k, j, transposed)] += v * n->d[r * n->cols + j];
            for (size_t j = 0; n->a->d != NULL && j < n->cols; j++)
                n->a->d[r * inner + k] += n->d[r * n->cols + j] * n->b->x[at(n->b, k, j, transposed)];
        }
}

static void matmul_back(const ref_node *n) { product_back(n, false); }
static void matmul_t_back(const ref_node *n) { product_back(n, true); }

ref_node *ref_matmul(ref_tape *t, const ref_node *a, const ref_node *b)
{
    if (a->cols != b->rows)
        ref_die("a product of [%zu, %zu] and [%zu, %zu]", a->rows, a->cols, b->rows, b->cols);
    ref_node *n = ref_tape_push(t, a->rows, b->cols, a, b, matmul_back);
    product(n, false);
    return n;
}

ref_node *ref_matmul_t(ref_tape *t, const ref_node *a, const ref_node *b)
{
    if (a->cols != b->cols)
        ref_die("a product of [%zu, %zu] and the transpose of [%zu, %zu]", a->rows, a->cols, b->rows, b->cols);
    ref_node *n = ref_tape_push(t, a->rows, b->rows, a, b, matmul_t_back);
    product(n, true);
    return n;
}

/* ---- rearrangements ---- */

static void columns_back(const ref_node *n)
{
    for (size_t i = 0; i < n->rows * n->cols; i++)
        n->a->d[i / n->cols * n->a->cols + n->from + i % n->cols] += n->d[i];
}

ref_node *ref_columns(ref_tape *t, const ref_node *a, size_t from, size_t count)
{
    if (from + count > a->cols)
        ref_die("columns %zu to %zu of %zu", from, from + count, a->cols);
    ref_node *n = ref_tape_push(t, a->rows, count, a, NULL, columns_back);
    n->from = from;
    for (size_t i = 0; i < n->rows * count; i++)
        n->x[i] = a->x[i / count * a->cols + from + i % count];
    return n;
}

static void rows_back(const ref_node *n)
{
    for (size_t i = 0; i < n->rows * n->cols; i++)
        n->a->d[n->from * n->cols + i] += n->d[i];
}

ref_node *ref_rows(ref_tape *t, const ref_node *a, size_t from, size_t count)
{
    if (from + count > a->rows)
        ref_die("rows %zu to %zu of %zu", from, from + count, a->rows);
    ref_node *n = ref_tape_push(t, count, a->cols, a, NULL, rows_back);
    n->from = from;
    for (size_t i = 0; i < count * a->cols; i++)
        n->x[i] = a->x[from * a->cols + i];
    return n;
}

static void concat_back(const ref_node *n)
{
    for (size_t i = 0; i < n->rows * n->cols; i++) {
        const size_t r = i / n->cols, c = i % n->cols, left = n->a->cols;
        double *const d = c < left ? n->a->d : n->b->d;
        if (d != NULL)
            d[c < left ? r * left + c : r * n->b->cols + c - left] += n->d[i];
    }
}

ref_node *ref_concat(ref_tape *t, const ref_node *a, const ref_node *b)
{
    if (a->rows != b->rows)
        ref_die("%zu and %zu rows side by side", a->rows, b->rows);
    ref_node *n = ref_tape_push(t, a->rows, a->cols + b->cols, a, b, concat_back);
    for (size_t i = 0; i < n->rows * n->cols; i++) {
        const size_t r = i / n->cols, c = i % n->cols;
        n->x[i] = c < a->cols ? a->x[r * a->cols + c] : b->x[r * b->cols + c - a->cols];
    }
    return n;
}

static void block_sum_back(const ref_node *n)
{
    const size_t d = n->a->cols / n->cols;
    for (size_t i = 0; i < n->a->rows * n->a->cols; i++)
        n->a->d[i] += n->d[i / d];
}

ref_node *ref_block_sum(ref_tape *t, const ref_node *a, size_t blocks)
{
    if (blocks == 0 || a->cols % blocks != 0)
        ref_die("%zu columns in %zu blocks", a->cols, blocks);
    ref_node *n = ref_tape_push(t, a->rows, blocks, a, NULL, block_sum_back);
    for (size_t i = 0; i < a->rows * a->cols; i++)
        n->x[i / (a->cols / blocks)] += a->x[i];
    return n;
}

/* Where element i of the blocks goes in their sum. */
static size_t folded(const ref_node *n, size_t i)
{
    return i / n->a->cols * n->cols + i % n->a->cols % n->cols;
}

static void sum_of_blocks_back(const ref_node *n)
{
    for (size_t i = 0; i < n->a->rows * n->a->cols; i++)
        n->a->d[i] += n->d[folded(n, i)];
}

ref_node *ref_sum_of_blocks(ref_tape *t, const ref_node *a, size_t blocks)
{
    if (blocks == 0 || a->cols % blocks != 0)
        ref_die("%zu columns in %zu blocks", a->cols, blocks);
    ref_node *n = ref_tape_push(t, a->rows, a->cols / blocks, a, NULL, sum_of_blocks_back);
    for (size_t i = 0; i < a->rows * a->cols; i++)
        n->x[folded(n, i)] += a->x[i];
    return n;
}

static void column_sum_back(const ref_node *n)
{
    for (size_t i = 0; i < n->a->rows * n->cols; i++)
        n->a->d[i] += n->d[i % n->cols];
}

ref_node *ref_column_sum(ref_tape *t, const ref_node *a)
{
    ref_node *n = ref_tape_push(t, 1, a->cols, a, NULL, column_sum_back);
    for (size_t i = 0; i < a->rows * a->cols; i++)
        n->x[i % a->cols] += a->x[i];
    return n;
}

/* ---- between vertices and edges ---- */

static void gather_back(const ref_node *n)
{
    for (size_t i = 0; i < n->rows * n->cols; i++)
        n->a->d[n->index[i / n->cols] * n->cols + i % n->cols] += n->d[i];
}

ref_node *ref_gather(ref_tape *t, const ref_node *a, const size_t *index, size_t rows)
{
    ref_node *n = ref_tape_push(t, rows, a->cols, a, NULL, gather_back);
    n->index = index;
    for (size_t i = 0; i < rows * a->cols; i++)
        n->x[i] = a->x[index[i / a->cols] * a->cols + i % a->cols];
    return n;
}

static void scatter_back(const ref_node *n)
{
    for (size_t i = 0; i < n->a->rows * n->cols; i++)
        n->a->d[i] += n->d[n->index[i / n->cols] * n->cols + i % n->cols];
}

ref_node *ref_scatter(ref_tape *t, const ref_node *a, const size_t *index, size_t rows)
{
    ref_node *n = ref_tape_push(t, rows, a->cols, a, NULL, scatter_back);
    n->index = index;
    for (size_t i = 0; i < a->rows * a->cols; i++)
        n->x[index[i / a->cols] * a->cols + i % a->cols] += a->x[i];
    return n;
}

/* How many rows attain each element. free() the result. */
static double *attained(const ref_node *n)
{
    double *count = ref_alloc(n->rows * n->cols, sizeof(double));
    for (size_t i = 0; i < n->a->rows * n->cols; i++) {
        const size_t to = n->index[i / n->cols] * n->cols + i % n->cols;
        count[to] += n->a->x[i] == n->x[to];
    }
    return count;
}

static void extreme_back(const ref_node *n)
{
    double *count = attained(n);
    for (size_t i = 0; i < n->a->rows * n->cols; i++) {
        const size_t to = n->index[i / n->cols] * n->cols + i % n->cols;
        if (n->a->x[i] == n->x[to])
            n->a->d[i] += n->d[to] / count[to];
    }
    free(count);
}

/* The least distance from a maximum to what is not exactly it: there float32 could choose another. */
static void note_choice(ref_tape *t, const ref_node *n)
{
    double least = INFINITY, most = 0.0;
    for (size_t i = 0; i < n->a->rows * n->cols; i++) {
        const double gap = fabs(n->a->x[i] - n->x[n->index[i / n->cols] * n->cols + i % n->cols]);
        most = fmax(most, fabs(n->a->x[i]));
        if (gap != 0.0)
            least = fmin(least, gap);
    }
    ref_tape_near(t, least, most);
}

ref_node *ref_extreme(ref_tape *t, double sign, const ref_node *a, const size_t *index, size_t rows)
{
    ref_node *n = ref_tape_push(t, rows, a->cols, a, NULL, extreme_back);
    uint8_t *seen = ref_alloc(rows, 1);
    n->index = index;
    for (size_t e = 0; e < a->rows; e++) {
        double *const out = n->x + index[e] * a->cols;
        for (size_t c = 0; c < a->cols; c++)
            if (!seen[index[e]] || sign * a->x[e * a->cols + c] > sign * out[c])
                out[c] = a->x[e * a->cols + c];
        seen[index[e]] = 1;
    }
    free(seen);
    note_choice(t, n);
    return n;
}

/* ---- the loss ---- */

/* The logarithm of the sum of exponentials of a row, without overflow. */
static double log_sum(const double *z, size_t n)
{
    double most = z[0], total = 0.0;
    for (size_t c = 1; c < n; c++)
        most = fmax(most, z[c]);
    for (size_t c = 0; c < n; c++)
        total += exp(z[c] - most);
    return most + log(total);
}

static void cross_entropy_back(const ref_node *n)
{
    const ref_graph *const g = n->rule;
    const size_t k = n->a->cols;
    for (size_t v = 0; v < n->a->rows; v++) {
        const double *const z = n->a->x + v * k, norm = log_sum(z, k);
        for (size_t c = 0; g->split[v] == REF_TRAIN && c < k; c++)
            n->a->d[v * k + c] += n->d[0] * (exp(z[c] - norm) - ((int64_t)c == g->label[v])) / n->number;
    }
}

ref_node *ref_cross_entropy(ref_tape *t, const ref_node *logits, const ref_graph *g)
{
    ref_node *n = ref_tape_push(t, 1, 1, logits, NULL, cross_entropy_back);
    n->rule = g;
    for (size_t v = 0; v < g->vertices; v++)
        n->number += g->split[v] == REF_TRAIN;
    for (size_t v = 0; v < g->vertices; v++)
        if (g->split[v] == REF_TRAIN)
            n->x[0] +=
                log_sum(logits->x + v * logits->cols, logits->cols) - logits->x[v * logits->cols + (size_t)g->label[v]];
    n->x[0] /= n->number;
    return n;
}
