/* Edge programs over threads, and what happens to sums before the first and after the
 * last chunk.
 *
 * Targets are cut into ranges of equal work (row_sums.c), and one thread takes all edges of a target that is no hub.
 * A hub, with more edges than its share of a launch, is cut in pieces of edges by the sizes of the launch
 * alone; each piece has accumulators of its own, which are added in the order of the pieces.
 */
#include <math.h>
#include <string.h>

#include "base/index_width.h"
#include "base/size.h"
#include "device/cpu/edge_program.h"
#include "device/cpu/row_sums.h"
#include "device/cpu/team.h"
#include "device/cpu/edge_typed.h"
#include "device/cpu/type_matrices.h"

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
    gs_cpu_cut cut;
    hub hub[MOST_HUBS];
    uint32_t hubs, pieces;
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

static void begin_rows(gs_sum_kind kind, const gs_accumulator *sum, uint64_t row, uint64_t rows, uint32_t width,
                       uint32_t heads)
{
    const float neutral = kind == GS_SUM_MAX ? -INFINITY : kind == GS_SUM_MIN ? INFINITY : 0.0f;
    for (uint64_t i = row * width; i < (row + rows) * width; i++)
        sum->acc[i] = neutral;
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

static void run_piece(const task *k, uint32_t piece)
{
    const gs_stage *const stage = k->plan.l->stage;
    const hub *h = k->hub;
    gs_accumulator sum[GS_STAGE_SUMS] = {{0}};
    uint32_t heads;

    while (piece >= h->first_piece + h->pieces)
        h++;
    piece_sums(k, piece, sum);
    for (uint32_t s = 0; s < stage->sums; s++)
        if (!gs_stage_sums_rows(stage, s)) {
            const uint32_t width = columns_of(stage, &stage->sum[s], &heads);
            begin_rows(stage->sum[s].kind, &sum[s], 0, 1, width, heads);
        }
    const uint32_t *const start = k->plan.l->edges.start;
    const uint32_t from = start[h->target], edges = start[h->target + 1] - from;
    const uint64_t i = piece - h->first_piece;
    const gs_cpu_edge_work work = {.first = h->target,
                                   .end = h->target,
                                   .from = from + (uint32_t)(edges * i / h->pieces),
                                   .to = from + (uint32_t)(edges * (i + 1) / h->pieces),
                                   .sum = sum,
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

static void merge_row(gs_sum_kind kind, const gs_accumulator *to, uint64_t row, const gs_accumulator *from,
                      uint32_t width, uint32_t heads)
{
    float *const acc = to->acc + row * width;
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
        for (uint32_t p = k->hub[h].first_piece; p < k->hub[h].first_piece + k->hub[h].pieces; p++) {
            gs_accumulator sum[GS_STAGE_SUMS] = {{0}};
            piece_sums(k, p, sum);
            for (uint32_t s = 0; s < l->stage->sums; s++) {
                uint32_t heads;
                const uint32_t width = columns_of(l->stage, &l->stage->sum[s], &heads);
                if (!gs_stage_sums_rows(l->stage, s))
                    merge_row(l->stage->sum[s].kind, &l->sum[s], row, &sum[s], width, heads);
            }
        }
    }
}

/* A target with more edges than a share has one of the edges that a share apart. */
static void find_hubs(task *k)
{
    const gs_edges *const e = &k->plan.l->edges;
    const uint64_t edges = e->start[e->targets] - e->start[0];
    const uint64_t share = GS_MAX(gs_div_up(edges, SHARES), (uint64_t)PIECE_EDGES);
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

static void run_targets(const task *k, uint32_t first, uint32_t end)
{
    const gs_cpu_edge_work work = {.first = first,
                                   .end = end,
                                   .sum = k->plan.l->sum,
                                   .scratch = gs_cpu__tile(k->cpu)};
    if (first < end)
        k->cpu->k->edge_program(&k->plan, &work);
}

static void run_range(const task *k, uint64_t range)
{
    uint32_t first = gs_cpu__cut_target(&k->cut, range);
    const uint32_t end = gs_cpu__cut_target(&k->cut, range + 1);
    for (uint32_t h = 0; h < k->hubs; h++) {
        const uint32_t t = k->hub[h].target;
        if (t < first || t >= end)
            continue;
        run_targets(k, first, t);
        first = t + 1;
    }
    run_targets(k, first, end);
}

gs_status gs_cpu__run_edge_program(void *context, const gs_edge_program_launch *l)
{
    gs_cpu *const cpu = context;
    task k = {.cpu = cpu};

    gs_cpu__transpose_matrices(cpu, l);
    const gs_status st = gs_cpu__plan_edges(&k.plan, cpu, l, GS_NONE);
    if (st != GS_OK || k.plan.steps == 0)
        return st == GS_OK ? gs_cpu__run_outers(cpu, l) : st;
    k.cut = gs_cpu__cut(cpu, &l->edges);
    find_hubs(&k);
    const int before = gs_cpu__enter(cpu, k.pieces + k.cut.ranges);
#pragma omp parallel for schedule(dynamic, 1)
    for (uint64_t i = 0; i < k.pieces + k.cut.ranges; i++)
        if (i < k.pieces)
            run_piece(&k, (uint32_t)i);
        else
            run_range(&k, i - k.pieces);
    gs_cpu__leave(before);
    merge_pieces(&k);
    return gs_cpu__run_outers(cpu, l);
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

static void finish_rows(const gs_cpu *cpu, gs_sum_kind kind, const gs_accumulator *sum, uint64_t row, uint32_t rows,
                        uint32_t width, uint32_t heads)
{
    float *const acc = sum->acc + row * width;
    if (kind == GS_SUM_ATTEND) {
        const gs_accumulator part = {acc, sum->maximum + row * heads, sum->norm + row * heads, sum->beside};
        cpu->k->finish_attend(&part, rows, width, heads);
        return;
    }
    for (uint64_t r = 0; r < rows; r++)
        if (gs_cpu_has_no_edge(acc + r * width))
            memset(acc + r * width, 0, width * sizeof(*acc));
}

gs_status gs_cpu__finish_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                             uint32_t heads)
{
    const gs_cpu *const cpu = context;
    if (kind != GS_SUM_MAX && kind != GS_SUM_MIN && kind != GS_SUM_ATTEND)
        return GS_OK;
    const int before = gs_cpu__enter(cpu, gs_div_up(rows, ROWS_A_BLOCK));
#pragma omp parallel for schedule(static)
    for (uint32_t r = 0; r < rows; r += ROWS_A_BLOCK)
        finish_rows(cpu, kind, sum, r, GS_MIN((uint32_t)ROWS_A_BLOCK, rows - r), width, heads);
    gs_cpu__leave(before);
    return GS_OK;
}
