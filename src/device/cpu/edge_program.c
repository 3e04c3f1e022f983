/* Launches over edges on all threads: sums of rows, edge programs, and what happens to sums before the first chunk and
 * after the last. */
#include "device/cpu/edge_program.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/size.h"
#include "device/cpu/cpu.h"
#include "device/cpu/gemm.h"

/* Targets of a launch in ranges of about equal work; the results of a range do not depend on it. */
typedef struct cut_ranges {
    const uint32_t *start;
    uint32_t targets;
    uint64_t work, ranges;
} cut_ranges;

/* ---- sums of rows ----
 *
 * Edge launches over threads.
 *
 * Targets are cut into ranges of equal work, several a thread, taken as threads
 * become free. The work before target t is its edges plus its targets,
 * start[t] - start[0] + t: a target's own row costs about as much as an edge's.
 *
 * A target with more edges than a range (a hub) starts in one range and covers the
 * following ones, which then have no targets of their own: each of them takes a slice of the
 * hub's columns instead. Columns are independent, so results stay the same.
 */

#define RANGES_PER_THREAD 16
#define RANGE_WORK 512        /* at least: below, handing out costs more than it balances */
#define SLICE_COLUMNS 16      /* a cache line: narrower slices read lines twice */

static uint64_t work_before(const cut_ranges *c, uint32_t t) { return c->start[t] - c->start[0] + (uint64_t)t; }
static uint64_t range_start(const cut_ranges *c, uint64_t r) { return c->work * r / c->ranges; }

static cut_ranges cut_targets(const gs_cpu *cpu, const gs_edges *e)
{
    cut_ranges c = {.start = e->start, .targets = e->targets};
    c.work = work_before(&c, e->targets);
    c.ranges = cpu->threads == 1 ? 1 : GS_MIN(cpu->threads * RANGES_PER_THREAD, c.work / RANGE_WORK + 1);
    return c;
}

/* First target whose work starts at `position` or later. */
static uint32_t first_target(const cut_ranges *c, uint64_t position)
{
    uint32_t low = 0, high = c->targets;
    GS_BISECT(low, high, work_before(c, middle) < position);
    return low;
}

/* First target of range r; r may be the number of ranges. */
static uint32_t cut_target(const cut_ranges *c, uint64_t r) { return first_target(c, range_start(c, r)); }

/* The range that `position` lies in. */
static uint64_t range_of(const cut_ranges *c, uint64_t position)
{
    uint64_t r = position * c->ranges / c->work;
    while (r + 1 < c->ranges && range_start(c, r + 1) <= position)
        r++;
    while (r > 0 && range_start(c, r) > position)
        r--;
    return r;
}

/* A launch of rows, by type or not. */
typedef struct edge_task {
    const gs_cpu *cpu;
    cut_ranges cut;
    const gs_edge_launch *l;
} edge_task;

static void run_columns(const edge_task *k, uint32_t first, uint32_t end, uint32_t column, uint32_t columns)
{
    if (k->l->types > 0)
        k->cpu->k->typed(k->l, first, end, column, columns);
    else
        k->cpu->k->edges(k->l, first, end, column, columns);
}

/* In how many slices target t's columns are cut, and the range that takes the first. */
static uint32_t slices_of(const edge_task *k, uint32_t t, uint64_t *first_range)
{
    *first_range = range_of(&k->cut, work_before(&k->cut, t));
    const uint64_t covered = range_of(&k->cut, work_before(&k->cut, t + 1) - 1) - *first_range + 1;
    const uint64_t most = GS_MAX(k->l->width / SLICE_COLUMNS, 1u);
    return covered <= 2 ? 1 : (uint32_t)GS_MIN(covered, most);
}

static void run_slice(const edge_task *k, uint32_t t, uint32_t slice, uint32_t slices)
{
    const uint64_t lines = gs_div_up(k->l->width, SLICE_COLUMNS);
    const uint32_t from = (uint32_t)(lines * slice / slices * SLICE_COLUMNS);
    const uint32_t to = (uint32_t)GS_MIN(lines * (slice + 1) / slices * SLICE_COLUMNS, k->l->width);
    run_columns(k, t, t + 1, from, to - from);
}

static void sum_range(const edge_task *k, uint64_t r)
{
    const uint32_t first = cut_target(&k->cut, r);
    uint32_t end = cut_target(&k->cut, r + 1);
    uint64_t owner;

    if (first > 0) { /* the target before may be a hub that reaches into this range */
        const uint32_t slices = slices_of(k, first - 1, &owner);
        if (r > owner && r - owner < slices)
            run_slice(k, first - 1, (uint32_t)(r - owner), slices);
    }
    if (first == end)
        return;
    const uint32_t slices = slices_of(k, end - 1, &owner);
    if (slices > 1) {
        end--;
        run_slice(k, end, 0, slices);
    }
    run_columns(k, first, end, 0, k->l->width);
}

gs_status gs_cpu__run_edges(void *context, const gs_edge_launch *l)
{
    const gs_cpu *const cpu = context;
    const edge_task k = {.cpu = cpu, .cut = cut_targets(cpu, &l->edges), .l = l};
    const int before = gs_cpu__enter(cpu, k.cut.ranges);
#pragma omp parallel for schedule(dynamic, 1)
    for (uint64_t r = 0; r < k.cut.ranges; r++)
        sum_range(&k, r);
    gs_cpu__leave(before);
    return GS_OK;
}

/* ---- gradients of the matrices of edges ----
 *
 * The gradients of the matrices of edges' types, or of one for all: sums over edges of rows' outer products, each
 * in the place of the edge's type. A portion of a launch's edges is put in order by type; threads compute what the
 * edges bring, tile by tile, and put it where the edges of its type lie together; then each type's product is
 * made, a few rows of its matrix at a time, by one thread and in the order of the edges. So nothing depends on the
 * number of threads, and a large type is many threads' work.
 */

#define KEPT_BYTES (2 * GS_MIB) /* of a portion's rows */
#define PORTION_LEAST 1024u     /* edges */
#define PORTION_MOST 16384u
#define MATRIX_ROWS 8 /* that a thread takes: those that stand in registers together */
#define DENSE_ROWS 32 /* the same of one matrix, whose product is the library's */

/* Edges of a portion for rows of so many columns, both sides together. */
static uint32_t portion_edges(uint64_t columns)
{
    const uint64_t fit = KEPT_BYTES / sizeof(float) / GS_MAX(columns, (uint64_t)1);
    return (uint32_t)GS_MIN(GS_MAX(fit, (uint64_t)PORTION_LEAST), (uint64_t)PORTION_MOST);
}

uint64_t gs_cpu__kept_floats(const gs_stage *stage)
{
    const gs_cpu_outers beside = gs_cpu__outers_beside(stage);
    uint64_t most = beside.parts * beside.floats;
    for (uint32_t i = 0; i < stage->sums; i++) {
        const gs_sum *const m = &stage->sum[i];
        if (m->kind != GS_SUM_OUTER || (m->dense && beside.parts > 0) ||
            m->value >= stage->edge_regs || m->score >= stage->edge_regs)
            continue;
        const uint64_t columns = (uint64_t)stage->edge_reg[m->score].width + stage->edge_reg[m->value].width;
        most = GS_MAX(most, portion_edges(columns) * (columns + 5) + 1);
    }
    return most;
}

typedef struct outer_task {
    const gs_cpu *cpu;
    gs_cpu_edge_plan plan;
    float *grad;
    uint32_t in, out;
    bool dense;              /* grad is of a part of one matrix, */
    uint32_t stride;         /* whose rows are so long */
    int failed;
    uint32_t from, edges;    /* of the portion */
    float *kept[2];          /* [edges, in], [edges, out], by type */
    uint32_t *type, *order, *spare, *place; /* [edges] */
    uint32_t *group;         /* [groups + 1] where those of a type begin */
    uint32_t groups;
} outer_task;

/* Which edge goes where. */
static void sort_portion(outer_task *k)
{
    const gs_edges *const e = &k->plan.l->edges;
    k->group[0] = 0;
    for (uint32_t i = 0; k->dense && i < k->edges; i++)
        k->place[i] = i;
    if (k->dense) {
        k->groups = 1;
        k->group[1] = k->edges;
        return;
    }
    for (uint32_t i = 0; i < k->edges; i++)
        k->type[i] = gs_type_at(e->type, e->type_bytes, k->from + i);
    gs_cpu_edge_order(k->type, k->edges, k->plan.types, k->order, k->spare);
    k->groups = 0;
    for (uint32_t i = 0; i < k->edges; i++) {
        k->place[k->order[i]] = i;
        if (i == 0 || k->type[k->order[i]] != k->type[k->order[i - 1]])
            k->group[k->groups++] = i;
    }
    k->group[k->groups] = k->edges;
}

/* Keeps the rows that a tile's worth of edges brings. */
static void keep_piece(const outer_task *k, uint32_t piece)
{
    const gs_edge_program_launch *const l = k->plan.l;
    const uint32_t from = k->from + piece * k->plan.tile, to = GS_MIN(from + k->plan.tile, k->from + k->edges);
    const gs_cpu_edge_work work = {.first = gs_cpu_edge_owner(&l->edges, from),
                                   .end = l->edges.targets,
                                   .from = from,
                                   .to = to,
                                   .kept = {k->kept[0], k->kept[1]},
                                   .place = k->place,
                                   .place_first = k->from,
                                   .scratch = gs_cpu__tile(k->cpu)};
    k->cpu->k->edge_program(&k->plan, &work);
}

/* Some rows of the gradient of one type's matrix. */
static void add_rows(const outer_task *k, uint32_t item, uint32_t blocks)
{
    const uint32_t group = item / blocks, row = item % blocks * MATRIX_ROWS, first = k->group[group];
    const uint32_t type = k->type[k->order[first]];
    k->cpu->k->outer(k->grad + ((uint64_t)type * k->in + row) * k->out, k->kept[0] + (uint64_t)first * k->in + row,
                     k->in, k->kept[1] + (uint64_t)first * k->out, k->group[group + 1] - first,
                     GS_MIN((uint32_t)MATRIX_ROWS, k->in - row), k->out);
}

/* Some rows of the gradient of the matrix of all edges. */
static void add_dense_rows(outer_task *k, uint32_t block)
{
    const uint32_t row = block * DENSE_ROWS;
    if (!gs_cpu__sgemm('T', 'N', GS_MIN((uint32_t)DENSE_ROWS, k->in - row), k->out, k->edges, k->kept[0] + row, k->in,
                       k->kept[1], k->out, 1.0f, k->grad + (uint64_t)row * k->stride, k->stride))
        __atomic_store_n(&k->failed, 1, __ATOMIC_RELAXED); /* read when the loop has ended */
}

static void run_portion(outer_task *k)
{
    const uint32_t blocks = (uint32_t)gs_div_up(k->in, k->dense ? DENSE_ROWS : MATRIX_ROWS),
                   pieces = (uint32_t)gs_div_up(k->edges, k->plan.tile);
    sort_portion(k);
    const int before = gs_cpu__enter(k->cpu, pieces);
#pragma omp parallel for schedule(dynamic, 1)
    for (uint32_t i = 0; i < pieces; i++)
        keep_piece(k, i);
#pragma omp parallel for schedule(dynamic, 4)
    for (uint32_t i = 0; i < k->groups * blocks; i++)
        if (k->dense)
            add_dense_rows(k, i);
        else
            add_rows(k, i, blocks);
    gs_cpu__leave(before);
}

static gs_status product_failed(const gs_edge_program_launch *l)
{
    return gs_fail(GS_ENOMEM, "stage \"%s\": a matrix product of edges failed", l->stage->name);
}

static gs_status no_gradient(const gs_edge_program_launch *l, uint32_t sum)
{
    return gs_fail(GS_EINVAL, "stage \"%s\", sum %u: no gradient of matrices that these rows fit", l->stage->name,
                   sum);
}

static gs_status run_outer(gs_cpu *cpu, const gs_edge_program_launch *l, uint32_t index)
{
    const gs_sum *const m = &l->stage->sum[index];
    const gs_param *const w = &l->program->param[m->weight];
    outer_task k = {.cpu = cpu, .dense = m->dense, .stride = w->cols};

    GS_TRY(gs_cpu__plan_edges(&k.plan, cpu, l, index));
    k.in = l->stage->edge_reg[m->score].width;
    k.out = l->stage->edge_reg[m->value].width;
    k.plan.failed = &k.failed;
    if (l->grad == NULL || m->weight >= l->program->params || l->grad[m->weight] == NULL ||
        (!m->dense && gs_param_elements(w) != (uint64_t)k.plan.types * k.in * k.out))
        return no_gradient(l, index);
    const uint32_t most = portion_edges((uint64_t)k.in + k.out);
    if (cpu->room[GS_CPU_KEPT].floats < gs_cpu__kept_floats(l->stage))
        return gs_fail(GS_EINVAL, "stage \"%s\": not prepared for outer products of edges", l->stage->name);
    k.grad = l->grad[m->weight] + (m->dense ? gs_param_part(w, k.in, m->site) : 0);
    k.kept[0] = cpu->room[GS_CPU_KEPT].at;
    k.kept[1] = k.kept[0] + (uint64_t)most * k.in;
    k.type = (uint32_t *)(void *)(k.kept[1] + (uint64_t)most * k.out);
    k.order = k.type + most;
    k.spare = k.order + most;
    k.place = k.spare + most;
    k.group = k.place + most;
    for (uint32_t at = l->edges.start[0], end = l->edges.start[l->edges.targets]; at < end; at += k.edges) {
        k.from = at;
        k.edges = GS_MIN(most, end - at);
        run_portion(&k);
    }
    return k.failed == 0 ? GS_OK : product_failed(l);
}

/* The sums of kind OUTER of a launch, but for those that were added up beside others. */
static gs_status run_outers(gs_cpu *cpu, const gs_edge_program_launch *l)
{
    const bool beside = gs_cpu__outers_beside(l->stage).parts > 0;
    for (uint32_t i = 0; i < l->stage->sums; i++)
        if (l->stage->sum[i].kind == GS_SUM_OUTER && !(beside && l->stage->sum[i].dense))
            GS_TRY(run_outer(cpu, l, i));
    return GS_OK;
}

/* ---- edge programs ----
 *
 * Edge programs over threads, and what happens to sums before the first and after the
 * last chunk.
 *
 * Targets are cut into ranges of equal work (above), and one thread takes all edges of a target that is no hub.
 * A hub, with more edges than its share of a launch, is cut in pieces of edges by the sizes of the launch
 * alone; each piece has accumulators of its own, which are added in the order of the pieces.
 */

#define SHARES 32                        /* of a launch: hubs have more edges than one, pieces not */
#define PIECE_EDGES 4096                 /* at least */
#define MOST_HUBS (GS_CPU_HUB_PIECES / 4)
#define ROWS_A_BLOCK 1024

/* ---- hubs ---- */

typedef struct hub {
    uint32_t target;
    uint32_t first_piece, pieces;
} hub;

/* A launch while it runs. */
typedef struct task {
    const gs_cpu *cpu;
    gs_cpu_edge_plan plan;
    cut_ranges cut;
    hub hub[MOST_HUBS];
    uint32_t hubs, pieces;
    gs_cpu_outers outers; /* that are added up beside: each piece and range in a part of its own */
} task;

/* Sums of one piece, one row each, one after the other in memory. */
static void piece_sums(const task *k, uint32_t piece, gs_accumulator *sum)
{
    const gs_stage *const stage = k->plan.l->stage;
    float *at = k->cpu->room[GS_CPU_HUB_ROWS].at + piece * k->cpu->room[GS_CPU_HUB_ROWS].floats;
    for (uint32_t s = 0; s < stage->sums; s++) {
        if (gs_stage_sums_rows(stage, s))
            continue;
        const uint32_t width = stage->reg[stage->sum[s].reg].width;
        sum[s] = (gs_accumulator){.acc = at, .maximum = at + width, .norm = at + 2 * (uint64_t)width};
        at += 3 * (uint64_t)width;
    }
}

static bool is_largest(gs_sum_kind kind) { return kind == GS_SUM_MAX || kind == GS_SUM_MAX_HELD; }
static bool is_least(gs_sum_kind kind) { return kind == GS_SUM_MIN || kind == GS_SUM_MIN_HELD; }

static void begin_rows(gs_sum_kind kind, const gs_accumulator *sum, uint64_t row, uint64_t rows, uint32_t width,
                       uint32_t heads)
{
    const float neutral = is_largest(kind) ? -INFINITY : is_least(kind) ? INFINITY : 0.0f;
    const uint32_t values = gs_sum_is_held(kind) ? width / 3 : width; /* who has them, and how many, begins at 0 */
    if (neutral == 0.0f)
        memset(sum->acc + row * width, 0, rows * width * sizeof(*sum->acc));
    for (uint64_t r = row; neutral != 0.0f && r < row + rows; r++) {
        float *const acc = sum->acc + r * width;
        for (uint32_t c = 0; c < values; c++)
            acc[c] = neutral;
        for (uint32_t c = values; c < width; c++)
            acc[c] = 0.0f;
    }
    for (uint64_t i = row; neutral != 0.0f && i < row + rows; i++)
        gs_cpu_mark_no_edge(sum->acc + i * width);
    for (uint64_t i = row * heads; kind == GS_SUM_ATTEND && i < (row + rows) * heads; i++) {
        sum->maximum[i] = -INFINITY;
        sum->norm[i] = -0.0f; /* adding anything but that makes it 0 or more */
    }
}

/* Columns of a sum, and heads: 0 where it is no attention. */
static uint32_t columns_of(const gs_stage *stage, const gs_sum *sum, uint32_t *heads)
{
    *heads = sum->kind == GS_SUM_ATTEND ? stage->edge_reg[sum->score].width : 0;
    return stage->reg[sum->reg].width;
}

/* The sums of rows [first, end) but those of rows and OUTER. */
static void begin_sums(const gs_stage *stage, const gs_accumulator *sum, uint32_t first, uint32_t end)
{
    uint32_t heads;
    for (uint32_t s = 0; s < stage->sums; s++)
        if (!gs_stage_sums_rows(stage, s) && stage->sum[s].kind != GS_SUM_OUTER) {
            const uint32_t width = columns_of(stage, &stage->sum[s], &heads);
            begin_rows(stage->sum[s].kind, &sum[s], first, end - first, width, heads);
        }
}

static void begin_targets(const gs_cpu_edge_plan *plan, uint32_t first, uint32_t end)
{
    begin_sums(plan->l->stage, plan->l->sum, first, end);
}

static bool has_end(gs_sum_kind kind) { return is_largest(kind) || is_least(kind) || kind == GS_SUM_ATTEND; }

static void finish_rows(const gs_cpu_kernels *k, gs_sum_kind kind, const gs_accumulator *sum, uint64_t row,
                        uint32_t rows, uint32_t width, uint32_t heads)
{
    float *const acc = sum->acc + row * width;
    if (kind == GS_SUM_ATTEND) {
        const gs_accumulator part = {acc, sum->maximum + row * heads, sum->norm + row * heads, sum->beside};
        k->finish_attend(&part, rows, width, heads);
        return;
    }
    for (uint64_t r = 0; r < rows; r++)
        if (gs_cpu_has_no_edge(acc + r * width))
            memset(acc + r * width, 0, width * sizeof(*acc));
}

static void finish_targets(const gs_cpu_edge_plan *plan, uint32_t first, uint32_t end)
{
    const gs_stage *const stage = plan->l->stage;
    uint32_t heads;
    for (uint32_t s = 0; s < stage->sums; s++) {
        gs_accumulator sum = plan->l->sum[s];
        const uint32_t width = has_end(stage->sum[s].kind) ? columns_of(stage, &stage->sum[s], &heads) : 0;
        sum.beside = stage->sum[s].beside;
        if (width > 0)
            finish_rows(plan->k, stage->sum[s].kind, &sum, first, end - first, width, heads);
    }
}

/* The sums of OUTER of a piece or a range. */
static float *outer_part(const task *k, uint64_t item)
{
    return k->outers.parts == 0 ? NULL : k->cpu->room[GS_CPU_KEPT].at + item * k->outers.floats;
}

static void run_piece(const task *k, uint32_t piece)
{
    const gs_stage *const stage = k->plan.l->stage;
    const hub *h = k->hub;
    gs_accumulator sum[GS_STAGE_SUMS] = {{0}};

    while (piece >= h->first_piece + h->pieces)
        h++;
    piece_sums(k, piece, sum);
    begin_sums(stage, sum, 0, 1);
    const uint32_t *const start = k->plan.l->edges.start;
    const uint32_t from = start[h->target], edges = start[h->target + 1] - from;
    const uint64_t i = piece - h->first_piece;
    const gs_cpu_edge_work work = {.first = h->target,
                                   .end = h->target,
                                   .from = from + (uint32_t)(edges * i / h->pieces),
                                   .to = from + (uint32_t)(edges * (i + 1) / h->pieces),
                                   .sum = sum,
                                   .outer = outer_part(k, piece),
                                   .scratch = gs_cpu__tile(k->cpu)};
    k->cpu->k->edge_program(&k->plan, &work);
}

/* One head's sums of a row: what has the lower maximum is scaled to the higher one. */
static void merge_head(const gs_accumulator *to, uint64_t row, const gs_accumulator *from, uint32_t heads,
                       uint32_t each, uint32_t head)
{
    float *const maximum = &to->maximum[row * heads + head], *const norm = &to->norm[row * heads + head];
    float *const acc = to->acc + (row * heads + head) * each;
    const float other = from->maximum[head], most = other > *maximum ? other : *maximum;
    const float ours = *maximum == most ? 1.0f : expf(*maximum - most),
                theirs = other == most ? 1.0f : expf(other - most);

    *maximum = most;
    *norm = *norm * ours + from->norm[head] * theirs;
    for (uint32_t c = 0; c < each; c++)
        acc[c] = acc[c] * ours + from->acc[head * each + c] * theirs;
}

/* Largest or least values, who has them, and how many; a row without any edge takes all of the other's. */
static void merge_held(bool largest, float *acc, const float *from, uint32_t width)
{
    float *const who = acc + width, *const count = who + width;
    const bool none = gs_cpu_has_no_edge(acc);
    for (uint32_t c = 0; c < width; c++) {
        const float x = from[c];
        const bool same = !none && x == acc[c];
        if (none || x != x || (largest ? x > acc[c] : x < acc[c])) /* NaN wins */
            acc[c] = x;
        else if (!same)
            continue;
        who[c] = !same || who[c] == from[width + c] ? from[width + c] : 0;
        count[c] = (same ? count[c] : 0) + from[2 * width + c];
    }
}

static void merge_row(gs_sum_kind kind, const gs_accumulator *to, uint64_t row, const gs_accumulator *from,
                      uint32_t width, uint32_t heads)
{
    float *const acc = to->acc + row * width;
    if (gs_sum_is_held(kind)) {
        merge_held(kind == GS_SUM_MAX_HELD, acc, from->acc, width / 3);
        return;
    }
    if ((kind == GS_SUM_MAX || kind == GS_SUM_MIN) && gs_cpu_has_no_edge(acc))
        memcpy(acc, from->acc, width * sizeof(*acc));
    for (uint32_t h = 0; h < heads; h++)
        merge_head(to, row, from, heads, width / heads, h);
    for (uint32_t c = 0; kind != GS_SUM_ATTEND && c < width; c++) {
        const float x = from->acc[c];
        if (kind == GS_SUM_ADD || kind == GS_SUM_ADD_TYPE)
            acc[c] += x;
        else if (x != x || (kind == GS_SUM_MAX ? x > acc[c] : x < acc[c]))
            acc[c] = x; /* NaN wins */
    }
}

static void merge_pieces(const task *k)
{
    const gs_edge_program_launch *const l = k->plan.l;
    const gs_edges *const e = &l->edges;
    for (uint32_t h = 0; h < k->hubs; h++) {
        const uint32_t t = k->hub[h].target;
        const uint32_t row = gs_index_at(e->target, e->index_bytes, t);
        if (l->whole)
            begin_targets(&k->plan, row, row + 1);
        for (uint32_t p = k->hub[h].first_piece; p < k->hub[h].first_piece + k->hub[h].pieces; p++) {
            gs_accumulator sum[GS_STAGE_SUMS] = {{0}};
            piece_sums(k, p, sum);
            for (uint32_t s = 0; s < l->stage->sums; s++) {
                uint32_t heads;
                const uint32_t width = columns_of(l->stage, &l->stage->sum[s], &heads);
                if (!gs_stage_sums_rows(l->stage, s) && l->stage->sum[s].kind != GS_SUM_OUTER)
                    merge_row(l->stage->sum[s].kind, &l->sum[s], row, &sum[s], width, heads);
            }
        }
        if (l->whole)
            finish_targets(&k->plan, row, row + 1);
    }
}

/* A target with more edges than a share has one of the edges that a share apart. */
static void find_hubs(task *k)
{
    const gs_edges *const e = &k->plan.l->edges;
    const uint64_t edges = e->start[e->targets] - e->start[0];
    const uint32_t shares = k->outers.parts == 0 ? SHARES : GS_MIN((uint32_t)SHARES, k->outers.parts / 4);
    const uint64_t share = GS_MAX(gs_div_up(edges, shares), (uint64_t)PIECE_EDGES);
    for (uint64_t at = 0; at < edges; at += share) {
        const uint32_t t = gs_cpu_edge_owner(e, e->start[0] + (uint32_t)at);
        const uint64_t degree = e->start[t + 1] - e->start[t];
        if (degree <= share || (k->hubs > 0 && k->hub[k->hubs - 1].target == t))
            continue;
        k->hub[k->hubs] = (hub){.target = t, .first_piece = k->pieces, .pieces = (uint32_t)gs_div_up(degree, share)};
        k->pieces += k->hub[k->hubs++].pieces;
    }
}

/* ---- ranges ---- */

/* The row of a target; behind the last one, that behind all rows. */
static uint32_t row_of(const gs_edges *e, uint32_t target)
{
    return target < e->targets ? gs_index_at(e->target, e->index_bytes, target) : e->target_rows;
}

/* Targets [first, end); where sums begin and finish with them, those of the rows from `row` on. */
static void run_targets(const task *k, uint32_t row, uint32_t first, uint32_t end, float *outer)
{
    const bool whole = k->plan.l->whole;
    const gs_cpu_edge_work work = {.first = first,
                                   .first_row = whole ? row : 0,
                                   .end_row = whole ? row_of(&k->plan.l->edges, end) : 0,
                                   .end = end,
                                   .sum = k->plan.l->sum,
                                   .outer = outer,
                                   .scratch = gs_cpu__tile(k->cpu)};
    if (first < end || work.first_row < work.end_row)
        k->cpu->k->edge_program(&k->plan, &work);
}

static void run_range(const task *k, uint64_t range)
{
    uint32_t first = cut_target(&k->cut, range);
    const uint32_t end = cut_target(&k->cut, range + 1);
    uint32_t row = first == 0 ? 0 : row_of(&k->plan.l->edges, first);
    float *const outer = outer_part(k, k->pieces + range);
    for (uint32_t h = 0; h < k->hubs; h++) {
        const uint32_t t = k->hub[h].target;
        if (t < first || t >= end)
            continue;
        run_targets(k, row, first, t, outer);
        first = t + 1;
        row = row_of(&k->plan.l->edges, t) + 1;
    }
    run_targets(k, row, first, end, outer);
}

/* Half of the parts are for pieces, half for ranges, whatever the number of threads. */
static gs_status cut_outers(task *k)
{
    const gs_edge_program_launch *const l = k->plan.l;
    const uint64_t room = k->cpu->room[GS_CPU_KEPT].floats;
    for (uint32_t i = 0; i < l->stage->sums; i++) {
        const gs_sum *const m = &l->stage->sum[i];
        if (m->kind == GS_SUM_OUTER && m->dense &&
            (l->grad == NULL || m->weight >= l->program->params || l->grad[m->weight] == NULL))
            return no_gradient(l, i);
    }
    if (room < k->outers.parts * k->outers.floats)
        return gs_fail(GS_EINVAL, "stage \"%s\": not prepared for outer products of edges", l->stage->name);
    k->cut.ranges = GS_MIN(k->outers.parts / 2, k->cut.work / RANGE_WORK + 1);
    return GS_OK;
}

/* The parts to the gradients, in their order. */
static void merge_outers(const task *k)
{
    const gs_edge_program_launch *const l = k->plan.l;
    for (uint64_t item = 0; k->outers.parts > 0 && item < k->pieces + k->cut.ranges; item++) {
        const float *from = outer_part(k, item);
        for (uint32_t i = 0; i < l->stage->sums; i++) {
            const gs_sum *const m = &l->stage->sum[i];
            if (m->kind != GS_SUM_OUTER || !m->dense)
                continue;
            const uint32_t in = l->stage->edge_reg[m->score].width, out = l->stage->edge_reg[m->value].width;
            const gs_param *const w = &l->program->param[m->weight];
            float *const to = l->grad[m->weight] + gs_param_part(w, in, m->site);
            for (uint32_t r = 0; r < in; r++, from += out)
                k->cpu->k->add(to + (uint64_t)r * w->cols, from, out);
        }
    }
}

/* The numbers of a vertex beside each other; of fewer than there is place for, the last one again. */
static void pack_numbers(const gs_cpu *cpu, const gs_cpu_edge_plan *plan)
{
    const uint32_t rows = plan->packed == 0 ? 0 : plan->l->edges.operand_rows;
    const float *from[GS_CPU_PACKED];
    for (uint32_t i = 0; i < GS_CPU_PACKED && rows > 0; i++)
        from[i] = plan->pack[GS_MIN(i, plan->packed - 1)];
    const int before = gs_cpu__enter(cpu, gs_div_up(rows, ROWS_A_BLOCK));
#pragma omp parallel for schedule(static)
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t i = 0; i < GS_CPU_PACKED; i++)
            cpu->room[GS_CPU_NUMBERS].at[(uint64_t)r * GS_CPU_PACKED + i] = from[i][r];
    gs_cpu__leave(before);
}

static gs_status run_sums(gs_cpu *cpu, const gs_edge_program_launch *l, gs_cpu_outers outers)
{
    task k = {.cpu = cpu, .outers = outers};
    int failed = 0;

    gs_status st = gs_cpu__plan_edges(&k.plan, cpu, l, outers.parts > 0 ? GS_CPU_OUTERS_BESIDE : GS_NONE);
    if (st != GS_OK || k.plan.steps == 0)
        return st;
    k.plan.failed = &failed;
    k.plan.begin = begin_targets;
    k.plan.finish = finish_targets;
    k.plan.k = cpu->k;
    pack_numbers(cpu, &k.plan);
    k.cut = cut_targets(cpu, &l->edges);
    if (outers.parts > 0 && (st = cut_outers(&k)) != GS_OK)
        return st;
    find_hubs(&k);
    const int before = gs_cpu__enter(cpu, k.pieces + k.cut.ranges);
#pragma omp parallel for schedule(dynamic, 1)
    for (uint64_t i = 0; i < k.pieces + k.cut.ranges; i++) {
        if (outers.parts > 0)
            memset(outer_part(&k, i), 0, outers.floats * sizeof(float));
        if (i < k.pieces)
            run_piece(&k, (uint32_t)i);
        else
            run_range(&k, i - k.pieces);
    }
    gs_cpu__leave(before);
    merge_pieces(&k);
    merge_outers(&k);
    return failed == 0 ? GS_OK : product_failed(l);
}

gs_status gs_cpu__run_sums(gs_cpu *cpu, const gs_edge_program_launch *l)
{
    return run_sums(cpu, l, (gs_cpu_outers){0});
}

gs_status gs_cpu__run_edge_program(void *context, const gs_edge_program_launch *l)
{
    gs_cpu *const cpu = context;

    gs_cpu__transpose_matrices(cpu, l);
    const gs_status st = run_sums(cpu, l, gs_cpu__outers_beside(l->stage));
    return st == GS_OK ? run_outers(cpu, l) : st;
}

/* ---- before the first chunk, after the last ---- */

gs_status gs_cpu__begin_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                            uint32_t heads)
{
    const gs_cpu *const cpu = context;
    const int before = gs_cpu__enter(cpu, gs_div_up(rows, ROWS_A_BLOCK));
#pragma omp parallel for schedule(static)
    for (uint32_t r = 0; r < rows; r += ROWS_A_BLOCK)
        begin_rows(kind, sum, r, GS_MIN((uint32_t)ROWS_A_BLOCK, rows - r), width, heads);
    gs_cpu__leave(before);
    return GS_OK;
}

gs_status gs_cpu__finish_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                             uint32_t heads)
{
    const gs_cpu *const cpu = context;
    if (!has_end(kind))
        return GS_OK;
    const int before = gs_cpu__enter(cpu, gs_div_up(rows, ROWS_A_BLOCK));
#pragma omp parallel for schedule(static)
    for (uint32_t r = 0; r < rows; r += ROWS_A_BLOCK)
        finish_rows(cpu->k, kind, sum, r, GS_MIN((uint32_t)ROWS_A_BLOCK, rows - r), width, heads);
    gs_cpu__leave(before);
    return GS_OK;
}
