/* Vertex launches: a stage's steps over the rows of a tile.
 *
 * A run of steps (steps.c) is one parallel region. Its rows are cut by their number alone into
 * strips, and strips into parts. A part goes through the steps of the run while what they write is still
 * in the cache: products a part at a time, sequences of cheap steps a block of fewer rows at a time. An
 * outer product takes a whole strip, as each of its calls reads and writes the whole gradient.
 *
 * Consecutive strips make up a lot, the task that a thread takes. Sums over rows (gradients, the loss)
 * go to the lot's own partial sums, and are added in the order of the lots: they do not depend on the
 * number of threads.
 */
#include <omp.h>
#include <string.h>

#include "base/size.h"
#include "device/cpu/gemm.h"
#include "device/cpu/steps.h"
#include "device/cpu/cpu.h"

#define PART_ROWS 512u /* no less than a block of cheap steps takes, and no more than by_matrix() numbers */
_Static_assert(PART_ROWS <= GS_CPU_TILE_EDGES, "products of a part go by the numbers of its rows");
#define STRIP_LEAST 128u
#define STRIP_MOST 1024u
#define STRIP_STEP 16u /* a cache line of numbers */
#define PIECE_FLOATS ((uint64_t)4096)
#define SUM_ROWS 64u /* of a gradient, with as many columns a part of a first-level cache */

/* One launch while it runs. */
typedef struct tile {
    gs_cpu *cpu;
    const gs_vertex_launch *l;
    uint32_t strip_rows, strips;
    bool windowed; /* every thread has a strip of rows of its own for its windows */
    bool failed;   /* written atomically */
} tile;

/* Rows [first, first + rows) of a lot, of the strip that begins at `strip`, the thread that is busy with them, and
 * where the lot adds up. */
typedef struct share {
    uint32_t first, rows, strip, thread;
    float *partial;
    gs_metrics *metrics;
} share;

static uint32_t part_rows(const tile *t) { return GS_MIN(t->strip_rows, PART_ROWS); }

/* `p`, if it is a register with a window, so that the rows of the share are those of the thread's window: as far before
 * it as the first of these is behind the register's first row. */
static void *moved(const tile *t, const gs_cpu_step *s, const share *part, const void *p)
{
    for (uint32_t k = 0; k < s->regs; k++) {
        if (s->reg[k].p != p || s->reg[k].window == GS_CPU_WHOLE)
            continue;
        const bool strip = s->reg[k].window == GS_CPU_STRIP_WINDOW;
        const uint64_t window = (uint64_t)part->thread * (strip ? t->strip_rows : part_rows(t));
        return (void *)((uintptr_t)p + (window - (strip ? part->strip : part->first)) * s->reg[k].row_bytes);
    }
    return (void *)(uintptr_t)p;
}

/* The step as the thread sees it: itself, or `copy`. */
static const gs_cpu_step *seen(const tile *t, const gs_cpu_step *s, const share *part, gs_cpu_step *copy)
{
    if (!s->windows || !t->windowed)
        return s;
    *copy = *s;
    copy->dst = moved(t, s, part, s->dst);
    copy->a.p = moved(t, s, part, s->a.p);
    copy->b.p = moved(t, s, part, s->b.p);
    copy->c.p = moved(t, s, part, s->c.p);
    return copy;
}

static gs_cpu_operand shifted(gs_cpu_operand o, uint32_t row, uint32_t width)
{
    if (o.shape == GS_CPU_FULL)
        o.p += (size_t)row * width;
    else if (o.shape == GS_CPU_COLUMN)
        o.p += row;
    return o;
}

/* The sums of a statistic, [2 * width], or of a loss, [GS_LOSS_SPLITS][width][GS_LOSS_SUMS], among a lot's, which
 * stand at even places. */
static double *doubles_of(float *lot, const gs_cpu_step *s)
{
    return (double *)(void *)(lot + s->partial);
}

static void run_loss(const tile *t, const gs_cpu_step *s, const share *part, uint32_t row, uint32_t rows)
{
    const size_t at = (size_t)row * s->width, label = s->source_type == GS_I32 ? row : at;
    const gs_cpu_loss x = {.logits = s->a.p + at,
                           .label = (const char *)s->id + label * gs_dtype_bytes(s->source_type),
                           .label_type = s->source_type,
                           .split = (const uint8_t *)s->split + row,
                           .gradient = s->dst == NULL ? NULL : s->dst + at,
                           .rows = rows,
                           .classes = s->width,
                           .scale = t->l->loss_scale,
                           .smoothing = t->l->loss_smoothing,
                           .weight = t->l->loss_weight,
                           .factor = t->l->loss_factor == NULL ? NULL : t->l->loss_factor + row,
                           .found = t->l->metrics == NULL ? NULL : t->l->metrics->found};
    if (gs_op_has_column_sums(s->op))
        part->metrics->column = doubles_of(part->partial, s);
    t->cpu->k->loss[gs_op_facts_of(s->op)->loss](&x, part->metrics);
}

/* EDGE_MASK outside an edge program: of a vertex's self loops. */
static void run_mask(const gs_cpu_kernels *k, const gs_cpu_step *s, uint32_t row, uint32_t rows)
{
    const gs_cpu_draws draws = {
        .source = (const uint32_t *)s->split + row,
        .destination = (const uint32_t *)s->id + row,
    };
    k->mask(&s->dropout, s->dst + (size_t)row * s->width, &draws, rows, s->width);
}

static gs_cpu_rows rows_from(const gs_cpu_kernels *k, gs_cpu_operand o, uint32_t row, uint32_t width)
{
    const size_t stride = o.shape == GS_CPU_ROW ? 0 : width;
    return (gs_cpu_rows){.p = o.p + row * stride, .at = k->row_numbers, .stride = stride};
}

/* FOLD and SPREAD, GS_CPU_TILE_EDGES rows at a time: as many as are numbered. */
static void run_groups(const gs_cpu_kernels *k, const gs_cpu_step *s, uint32_t row, uint32_t rows)
{
    for (uint32_t r = row; r < row + rows; r += GS_CPU_TILE_EDGES) {
        const gs_cpu_rows a = rows_from(k, s->a, r, s->a_width);
        const uint32_t n = GS_MIN((uint32_t)GS_CPU_TILE_EDGES, row + rows - r);
        float *const dst = s->dst + (size_t)r * s->width;
        if (s->op == GS_OP_FOLD && s->b.p != NULL) {
            const gs_cpu_rows b = rows_from(k, s->b, r, s->a_width);
            k->fold(dst, &a, &b, n, s->width, s->a_width / s->width);
        } else if (s->op == GS_OP_FOLD) {
            k->fold(dst, &a, NULL, n, s->width, s->a_width / s->width);
        } else {
            k->expand(dst, &a, n, s->a_width, s->width / s->a_width);
        }
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

static void run_columns(const gs_cpu_step *s, uint32_t row, uint32_t rows)
{
    const size_t left = s->op == GS_OP_PART ? s->width : s->a_width, right = s->width - left;
    for (size_t r = row; r < (size_t)row + rows; r++) {
        float *const dst = s->dst + r * s->width;
        memcpy(dst, s->a.p + r * s->a_width + (s->op == GS_OP_PART ? s->first : 0), left * sizeof(*dst));
        if (right > 0)
            memcpy(dst + left, s->b.p + r * right, right * sizeof(*dst));
    }
}

/* An element of the elements at the same place. */
static void run_each(const gs_cpu_kernels *k, const gs_cpu_step *s, uint32_t row, uint32_t rows)
{
    const unsigned inputs = gs_op_inputs(s->op);
    float *const dst = s->dst + (size_t)row * s->width;
    gs_cpu_operand o[3] = {s->a, s->b, s->c};
    for (unsigned i = 0; i < inputs; i++)
        o[i] = shifted(o[i], row, s->width);
    if (inputs == 1)
        k->unary(s->op, dst, o[0].p, (size_t)rows * s->width, s->alpha);
    else
        k->each(s->op, dst, o, rows, s->width);
}

/* A step that is no product, on rows [row, row + rows) of a part. */
static void run_cheap(const tile *t, const gs_cpu_step *s, const share *part, uint32_t row, uint32_t rows)
{
    const gs_cpu_kernels *const k = t->cpu->k;
    const size_t at = (size_t)row * s->width, n = (size_t)rows * s->width;

    if (s->joined)
        return;
    switch (s->op) {
    case GS_OP_DROPOUT:
        k->dropout(&s->dropout, s->dst + at, s->a.p + at, (const uint32_t *)s->id + row, rows, s->width);
        break;
    case GS_OP_CONCAT: case GS_OP_PART:
        run_columns(s, row, rows);
        break;
    case GS_OP_EDGE_MASK:
        run_mask(k, s, row, rows);
        break;
    case GS_OP_CAST:
        k->cast(s->dst + at, (const char *)s->source + at * gs_dtype_bytes(s->source_type), s->source_type, n);
        break;
    case GS_OP_ROUND:
        k->round(s->rounded + at, s->a.p + at, n);
        break;
    case GS_OP_ROWSUM:
    case GS_OP_ROWMAX:
        (s->op == GS_OP_ROWSUM ? k->rowsum : k->rowmax)(s->dst + row, s->a.p + (size_t)row * s->a_width, rows,
                                                        s->a_width);
        break;
    case GS_OP_FOLD:
    case GS_OP_EXPAND:
        run_groups(k, s, row, rows);
        break;
    case GS_OP_ACROSS:
    case GS_OP_TILE:
        run_heads(s, row, rows);
        break;
    case GS_OP_MIX:
    case GS_OP_MIX_T:
        k->mix(s->dst + at, s->a.p + (size_t)row * s->a_width, &s->mix, rows);
        break;
    case GS_OP_COLSUM:
        k->colsum(part->partial + s->partial + s->width, s->a.p + at, rows, s->width);
        break;
    case GS_OP_MEAN_ALL:
    case GS_OP_VAR_ALL:
        k->moments(doubles_of(part->partial, s), s->op == GS_OP_VAR_ALL, s->a.p + at, rows, s->width);
        break;
    default:
        if (gs_op_classof(s->op) == GS_CLASS_LOSS)
            run_loss(t, s, part, row, rows);
        else
            run_each(k, s, row, rows);
        break;
    }
}

static void fail(tile *t)
{
#pragma omp atomic write
    t->failed = true;
}

/* Steps [first, end) on a block. */
static void run_block(const tile *t, uint32_t first, uint32_t end, const share *part, uint32_t row, uint32_t rows)
{
    for (uint32_t i = first; i < end; i++) {
        gs_cpu_step copy;
        run_cheap(t, seen(t, &t->cpu->step[i], part, &copy), part, row, rows);
    }
}

/* Steps [first, end), none of them an outer product, on a part. */
static void run_part(tile *t, uint32_t first, uint32_t end, const share *part)
{
    const gs_cpu_step *const step = t->cpu->step;
    for (uint32_t i = first; i < end;) {
        if (gs_cpu__is_product(step[i].op)) {
            gs_cpu_step copy;
            if (!gs_cpu__product_rows(t->cpu->k, seen(t, &step[i], part, &copy), part->first, part->rows))
                fail(t);
            i++;
            continue;
        }
        const gs_cpu_run *const run = &step[i].run;
        for (uint32_t r = 0; r < part->rows; r += run->block_rows)
            run_block(t, i, run->cheap_end, part, part->first + r, GS_MIN(run->block_rows, part->rows - r));
        i = run->cheap_end;
    }
}

/* A part's column sums start at 0 and are added to its lot's: two levels round less than one long sum. */
static void run_part_and_sums(tile *t, uint32_t first, uint32_t end, const share *part)
{
    const gs_cpu_step *const step = t->cpu->step;
    for (uint32_t i = first; i < end; i++)
        if (step[i].op == GS_OP_COLSUM)
            memset(part->partial + step[i].partial + step[i].width, 0, step[i].width * sizeof(float));
    run_part(t, first, end, part);
    for (uint32_t i = first; i < end; i++) {
        float *const sum = part->partial + step[i].partial;
        if (step[i].op == GS_OP_COLSUM)
            t->cpu->k->add(sum, sum + step[i].width, step[i].width);
    }
}

/* The products of a strip's rows, added up; to those of the lot's other strips with `adds`. */
static bool run_outer(const tile *t, const gs_cpu_step *s, const share *strip, bool adds)
{
    float *const sum = strip->partial + s->partial;
    if (s->op != GS_OP_MIX_OUTER)
        return gs_cpu__outer_rows(s, strip->first, strip->rows, sum, adds);
    if (!adds)
        memset(sum, 0, (size_t)s->weight.rows * s->weight.cols * sizeof(*sum));
    t->cpu->k->mix_outer(sum, s->a.p + (size_t)strip->first * s->weight.rows * s->mix.each,
                         s->b.p + (size_t)strip->first * s->weight.cols * s->mix.each, strip->rows, s->weight.rows,
                         s->weight.cols, s->mix.each);
    return true;
}

/* `adds`: the lot had another strip before. */
static void run_strip(tile *t, uint32_t first, uint32_t end, const share *strip, bool adds)
{
    const gs_cpu_step *const step = t->cpu->step;
    gs_cpu_step copy;
    for (uint32_t i = first, stop; i < end; i = stop) {
        for (stop = i; stop < end && !gs_op_is_outer(step[stop].op); stop++)
            ;
        for (uint32_t r = 0; stop > i && r < strip->rows; r += part_rows(t)) {
            share part = *strip;
            part.first += r;
            part.rows = GS_MIN(part_rows(t), strip->rows - r);
            run_part_and_sums(t, i, stop, &part);
        }
        for (; stop < end && gs_op_is_outer(step[stop].op); stop++)
            if (!run_outer(t, seen(t, &step[stop], strip, &copy), strip, adds))
                fail(t);
    }
}

static void run_lot(tile *t, uint32_t first, uint32_t end, uint32_t lot, uint32_t lots)
{
    const gs_cpu_step *const step = t->cpu->step;
    const uint32_t from = (uint32_t)((uint64_t)t->strips * lot / lots),
                   to = (uint32_t)((uint64_t)t->strips * (lot + 1) / lots);
    share strip = {.thread = (uint32_t)omp_get_thread_num(),
                   .partial = t->cpu->room[GS_CPU_PARTIAL].at + lot * step[first].run.partial,
                   .metrics = &t->cpu->lot_metrics[lot]};

    *strip.metrics = (gs_metrics){0};
    for (uint32_t i = first; i < end; i++)
        if (gs_cpu__has_partial(step[i].op) && !gs_op_is_outer(step[i].op))
            memset(strip.partial + step[i].partial, 0,
                   gs_cpu__lot_floats(step[i].op, 1, step[i].width) * sizeof(float));
    for (uint32_t s = from; s < to; s++) {
        strip.first = strip.strip = s * t->strip_rows;
        strip.rows = GS_MIN(t->strip_rows, t->l->rows - strip.first);
        run_strip(t, first, end, &strip, s > from);
    }
}

/* Where the element of a gradient stands in a lot: matrices of edge types side by side, and *n of those that follow. */
static uint64_t place_in_lot(const gs_cpu_step *s, uint64_t element, uint64_t *n)
{
    if (s->op != GS_OP_FAN_OUTER)
        return element;
    const uint64_t row = element / s->weight.cols, column = element % s->weight.cols,
                   rows = s->weight.rows / s->weight.matrices;
    *n = GS_MIN(*n, s->weight.cols - column);
    return (row % rows * s->weight.matrices + row / rows) * s->weight.cols + column;
}

/* Rows [row, end) of a gradient whose sums lie transposed. */
static void add_transposed_lots(const gs_cpu *cpu, const gs_cpu_step *s, uint64_t stride, uint32_t lots, uint64_t row,
                                uint64_t end)
{
    float sum[SUM_ROWS];
    for (uint64_t rows; row < end; row += rows) {
        rows = GS_MIN(end - row, (uint64_t)SUM_ROWS);
        for (uint64_t c = 0; c < s->weight.cols; c++) {
            memset(sum, 0, sizeof(sum));
            cpu->k->add_rows(sum, cpu->room[GS_CPU_PARTIAL].at + s->partial + c * s->weight.rows + row, stride, lots,
                             rows);
            for (uint64_t r = 0; r < rows; r++)
                s->grad[(row + r) * s->weight.cols + c] += sum[r];
        }
    }
}

/* Elements [first, first + n) of a gradient: the lots' sums in their order. */
static void add_lots(const gs_cpu *cpu, const gs_cpu_step *s, uint64_t stride, uint32_t lots, uint64_t first,
                     uint64_t n)
{
    if (gs_cpu__outer_is_transposed(s)) { /* rows that begin here */
        add_transposed_lots(cpu, s, stride, lots, gs_div_up(first, s->weight.cols),
                            gs_div_up(first + n, s->weight.cols));
        return;
    }
    for (uint64_t at = first, some; at < first + n; at += some) {
        some = first + n - at;
        const uint64_t from = place_in_lot(s, at, &some);
        cpu->k->add_rows(s->grad + at, cpu->room[GS_CPU_PARTIAL].at + s->partial + from, stride, lots, some);
    }
}

/* The partial sums of the lots, in their order, to where the launch wants them. */
static void finish_run(const tile *t, uint32_t first, uint32_t end, uint32_t lots)
{
    const gs_cpu *const cpu = t->cpu;
    const uint64_t stride = cpu->step[first].run.partial;
    for (uint32_t i = first; i < end; i++) {
        const gs_cpu_step *const s = &cpu->step[i];
        for (uint32_t c = 0; s->op == GS_OP_COLSUM && c < s->width; c++) {
            double sum = 0;
            for (uint32_t lot = 0; lot < lots; lot++)
                sum += (double)cpu->room[GS_CPU_PARTIAL].at[lot * stride + s->partial + c];
            s->grad[c] += (float)sum;
        }
        for (uint32_t lot = 0; s->statistic != NULL && lot < lots; lot++)
            for (uint32_t c = 0; c < 2 * s->width; c++)
                s->statistic[c] += doubles_of(cpu->room[GS_CPU_PARTIAL].at + lot * stride, s)[c];
        const uint32_t sums = GS_LOSS_SPLITS * GS_LOSS_SUMS * s->width;
        double *const column = gs_op_has_column_sums(s->op) && t->l->metrics != NULL ? t->l->metrics->column : NULL;
        for (uint32_t lot = 0; column != NULL && lot < lots; lot++)
            for (uint32_t c = 0; c < sums; c++)
                column[c] += doubles_of(cpu->room[GS_CPU_PARTIAL].at + lot * stride, s)[c];
    }
    gs_metrics *const m = t->l->metrics;
    for (uint32_t lot = 0; m != NULL && lot < lots; lot++) {
        m->loss_sum += cpu->lot_metrics[lot].loss_sum;
        m->valid_loss += cpu->lot_metrics[lot].valid_loss;
        for (int split = 0; split < 4; split++) {
            m->rows[split] += cpu->lot_metrics[lot].rows[split];
            m->correct[split] += cpu->lot_metrics[lot].correct[split];
        }
    }
}

static void run_parallel(tile *t, uint32_t first, uint32_t end)
{
    const gs_cpu *const cpu = t->cpu;
    const uint64_t stride = cpu->step[first].run.partial;
    const uint32_t lots = GS_MIN(t->strips, gs_cpu__most_lots(stride));
    const int before = gs_cpu__enter(cpu, lots);
    t->windowed = (uint64_t)(lots == 1 ? 1 : cpu->threads) * t->strip_rows <= t->l->rows;
#pragma omp parallel
    {
#pragma omp for schedule(dynamic, 1)
        for (uint32_t lot = 0; lot < lots; lot++)
            run_lot(t, first, end, lot, lots);
        for (uint32_t i = first; i < end; i++) {
            const gs_cpu_step *const s = &cpu->step[i];
            const uint64_t n = gs_op_is_outer(s->op) ? (uint64_t)s->weight.rows * s->weight.cols : 0;
#pragma omp for schedule(static) nowait
            for (uint64_t at = 0; at < n; at += PIECE_FLOATS)
                add_lots(cpu, s, stride, lots, at, GS_MIN(PIECE_FLOATS, n - at));
        }
    }
    gs_cpu__leave(before);
    finish_run(t, first, end, lots);
}

/* Strips are as long as they leave work for all threads: GS_CPU_LOTS_LEAST of them, none much shorter than others. */
static uint32_t strip_rows(uint32_t rows)
{
    const uint64_t wanted = gs_align_up(gs_div_up(rows, GS_CPU_LOTS_LEAST), STRIP_STEP);
    return (uint32_t)GS_MAX(GS_MIN(wanted, (uint64_t)STRIP_MOST), (uint64_t)STRIP_LEAST);
}

gs_status gs_cpu__run_vertex(void *context, const gs_vertex_launch *l)
{
    gs_cpu *const cpu = context;

    GS_TRY(gs_cpu__resolve(cpu, l));
    tile t = {.cpu = cpu, .l = l, .strip_rows = strip_rows(l->rows)};
    t.strips = (uint32_t)gs_div_up(l->rows, t.strip_rows);
    gs_cpu__transpose_weights(cpu, l);

    for (uint32_t i = 0, end; i < l->stage->instrs; i = end) {
        end = cpu->step[i].run.end;
        if (gs_cpu__stands_alone(&cpu->step[i], l->rows))
            GS_TRY(gs_cpu__outer(cpu, &cpu->step[i], l->rows));
        else
            run_parallel(&t, i, end);
        if (t.failed)
            return gs_fail(GS_EDEVICE, "stage \"%s\": oneDNN could not multiply", l->stage->name);
    }
    return GS_OK;
}
