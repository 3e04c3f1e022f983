/* Vertex launches: a stage's steps over the rows of a tile.
 *
 * A run of steps (cpu_resolve.c) is one parallel region. A tile is cut into parts by
 * its number of rows alone; a thread takes a part through all steps of the run, so
 * that what a step writes is still in its cache when the next one reads it: products a part at a
 * time, sequences of cheap steps a block of fewer rows at a time. Sums over
 * rows go to the part's own partial sums, and are added in the order of the parts.
 */
#include <omp.h>
#include <string.h>

#include "base/size.h"
#include "device/cpu_internal.h"

/* Small parts balance threads and stay in the cache, large ones let a product pack its weights
 * less often: 256 rows reach 95 % of the speed of whole tiles (64 -> 64 and wider). */
uint32_t gs_cpu__part_rows(uint32_t rows)
{
    if (rows <= 2048)
        return 128;
    if (rows <= 256 * GS_CPU_PARTS)
        return 256;
    return (uint32_t)gs_align_up(gs_div_up(rows, GS_CPU_PARTS), 64);
}

/* One launch while it runs. */
typedef struct tile {
    gs_cpu *cpu;
    const gs_vertex_launch *l;
    uint32_t part_rows, parts;
    bool failed; /* written atomically */
} tile;

static gs_cpu_operand shifted(gs_cpu_operand o, uint32_t row, uint32_t width)
{
    if (o.shape == GS_CPU_FULL)
        o.p += (size_t)row * width;
    else if (o.shape == GS_CPU_COLUMN)
        o.p += row;
    return o;
}

static void run_loss(const tile *t, const gs_cpu_step *s, uint32_t part, uint32_t row, uint32_t rows)
{
    const size_t at = (size_t)row * s->width;
    const gs_cpu_xent x = {.logits = s->a.p + at,
                           .label = (const int32_t *)s->id + row,
                           .split = (const uint8_t *)s->split + row,
                           .gradient = s->dst == NULL ? NULL : s->dst + at,
                           .rows = rows,
                           .classes = s->width,
                           .scale = t->l->loss_scale};
    t->cpu->k->xent(&x, &t->cpu->part_metrics[part]);
}

/* FOLD and SPREAD, GS_CPU_TILE_EDGES rows at a time: as many as are numbered. */
static void run_groups(const gs_cpu_kernels *k, const gs_cpu_step *s, uint32_t row, uint32_t rows)
{
    for (uint32_t r = row; r < row + rows; r += GS_CPU_TILE_EDGES) {
        const gs_cpu_rows a = {.p = s->a.p + (size_t)r * s->a_width, .at = k->row_numbers, .stride = s->a_width};
        const uint32_t n = GS_MIN((uint32_t)GS_CPU_TILE_EDGES, row + rows - r);
        float *const dst = s->dst + (size_t)r * s->width;
        if (s->op == GS_OP_FOLD)
            k->fold(dst, &a, NULL, n, s->width, s->a_width / s->width);
        else
            k->spread(dst, &a, n, s->a_width, s->width / s->a_width);
    }
}

/* ACROSS and TILE touch each number once, so plain loops run at the memory's speed. */
static void run_heads(const gs_cpu_step *s, uint32_t row, uint32_t rows)
{
    const uint32_t narrow = GS_MIN(s->width, s->a_width), heads = GS_MAX(s->width, s->a_width) / narrow;
    for (uint32_t r = row; r < row + rows; r++) {
        const float *const a = s->a.p + (size_t)r * s->a_width;
        float *const dst = s->dst + (size_t)r * s->width;
        if (s->op == GS_OP_TILE) {
            for (uint32_t h = 0; h < heads; h++)
                memcpy(dst + (size_t)h * narrow, a, narrow * sizeof(*a));
            continue;
        }
        memcpy(dst, a, narrow * sizeof(*a));
        for (uint32_t h = 1; h < heads; h++)
            for (uint32_t c = 0; c < narrow; c++)
                dst[c] += a[(size_t)h * narrow + c];
    }
}

/* A step that is no product, on rows [row, row + rows) of a part. */
static void run_cheap(const tile *t, const gs_cpu_step *s, uint32_t part, uint32_t row, uint32_t rows)
{
    const gs_cpu_kernels *const k = t->cpu->k;
    const size_t at = (size_t)row * s->width, n = (size_t)rows * s->width;

    switch (s->op) {
    case GS_OP_ADD:
    case GS_OP_SUB:
    case GS_OP_MUL:
    case GS_OP_DIV:
    case GS_OP_MAX:
    case GS_OP_EQ:
        k->binary(s->op, s->dst + at, shifted(s->a, row, s->width), shifted(s->b, row, s->width), rows, s->width);
        break;
    case GS_OP_DROPOUT:
        k->dropout(&s->dropout, s->dst + at, s->a.p + at, (const uint32_t *)s->id + row, rows, s->width);
        break;
    case GS_OP_EDGE_MASK:
        k->mask(&s->dropout, s->dst + at,
                &(gs_cpu_draws){.source = (const uint32_t *)s->split + row, .destination = (const uint32_t *)s->id + row}, rows,
                s->width);
        break;
    case GS_OP_CAST:
        k->cast(s->dst + at, (const char *)s->source + at * gs_dtype_bytes(s->source_type), s->source_type, n);
        break;
    case GS_OP_ROWSUM:
        k->rowsum(s->dst + row, s->a.p + (size_t)row * s->a_width, rows, s->a_width);
        break;
    case GS_OP_FOLD:
    case GS_OP_SPREAD:
        run_groups(k, s, row, rows);
        break;
    case GS_OP_ACROSS:
    case GS_OP_TILE:
        run_heads(s, row, rows);
        break;
    case GS_OP_COLSUM:
        k->colsum(t->cpu->colsum + part * t->cpu->colsum_floats + s->partial, s->a.p + at, rows, s->width);
        break;
    case GS_OP_XENT:
    case GS_OP_XENT_GRAD:
        run_loss(t, s, part, row, rows);
        break;
    default:
        k->unary(s->op, s->dst + at, s->a.p + at, n, s->alpha);
        break;
    }
}

static void run_part(tile *t, uint32_t first, uint32_t end, uint32_t part)
{
    const uint32_t start = part * t->part_rows, rows = GS_MIN(t->part_rows, t->l->rows - start);
    const gs_cpu_step *const step = t->cpu->step;

    for (uint32_t i = first; i < end;) {
        if (gs_cpu__is_product(step[i].op)) {
            if (!gs_cpu__product_rows(&step[i], start, rows)) {
#pragma omp atomic write
                t->failed = true;
            }
            i++;
            continue;
        }
        for (uint32_t r = 0; r < rows; r += step[i].block_rows)
            for (uint32_t s = i; s < step[i].cheap_end; s++)
                run_cheap(t, &step[s], part, start + r, GS_MIN(step[i].block_rows, rows - r));
        i = step[i].cheap_end;
    }
}

/* The partial sums of the parts, in their order, to where the launch wants them. */
static void finish_run(tile *t, uint32_t first, uint32_t end)
{
    const gs_cpu *const cpu = t->cpu;
    for (uint32_t i = first; i < end; i++) {
        const gs_cpu_step *const s = &cpu->step[i];
        for (uint32_t c = 0; s->op == GS_OP_COLSUM && c < s->width; c++) {
            double sum = 0;
            for (uint32_t p = 0; p < t->parts; p++)
                sum += (double)cpu->colsum[p * cpu->colsum_floats + s->partial + c];
            s->grad[c] += (float)sum;
        }
    }
    gs_metrics *const m = t->l->metrics;
    for (uint32_t p = 0; m != NULL && p < t->parts; p++) {
        m->loss_sum += cpu->part_metrics[p].loss_sum;
        for (int split = 0; split < 4; split++) {
            m->rows[split] += cpu->part_metrics[p].rows[split];
            m->correct[split] += cpu->part_metrics[p].correct[split];
        }
    }
}

static void run_parallel(tile *t, uint32_t first, uint32_t end)
{
    const gs_cpu *const cpu = t->cpu;
    const int before = gs_cpu__enter(cpu, t->parts);
#pragma omp parallel for schedule(dynamic, 1)
    for (uint32_t p = 0; p < t->parts; p++) {
        t->cpu->part_metrics[p] = (gs_metrics){0};
        if (cpu->step[first].run_colsum > 0)
            memset(cpu->colsum + p * cpu->colsum_floats, 0, cpu->step[first].run_colsum * sizeof(float));
        run_part(t, first, end, p);
    }
    gs_cpu__leave(before);
    finish_run(t, first, end);
}

gs_status gs_cpu__run_vertex(void *context, const gs_vertex_launch *l)
{
    gs_cpu *const cpu = context;
    gs_status st = gs_cpu__resolve(cpu, l);
    if (st != GS_OK)
        return st;
    tile t = {.cpu = cpu, .l = l, .part_rows = gs_cpu__part_rows(l->rows)};
    t.parts = (uint32_t)gs_div_up(l->rows, t.part_rows);

    for (uint32_t i = 0, end; i < l->stage->instrs && st == GS_OK; i = end) {
        end = cpu->step[i].run_end;
        if (cpu->step[i].op == GS_OP_OUTER)
            st = gs_cpu__outer(cpu, &cpu->step[i], l->rows);
        else
            run_parallel(&t, i, end);
        if (st == GS_OK && t.failed)
            st = gs_fail(GS_EDEVICE, "stage \"%s\": oneDNN could not multiply", l->stage->name);
    }
    return st;
}
