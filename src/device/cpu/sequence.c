/* LSTMs over edges on all threads.
 *
 * Targets are sorted by their edges in the chunk, most first, and cut into tiles; a tile takes a step of all its
 * targets with one product. What a launch computes does not depend on the threads: tiles are cut by sizes alone.
 * Backward, GS_CPU_ROUND tiles take a window of steps each; then the gradients of their edges are
 * added to the operand rows and to the weight's gradient, tile by tile and edge by edge in their order, with
 * threads sharing the columns of the one and the rows of the other. No two threads write one number.
 */
#include <omp.h>

#include "base/size.h"
#include "device/cpu/gemm.h"
#include "device/cpu/sequence.h"
#include "device/cpu/team.h"

#define SORTED 16384             /* targets that are sorted together */
#define GS_CPU_ROUND 16          /* tiles of a round */
#define TILE_FLOATS (256 * 1024) /* a tile's scratch, about: 1 MiB */
#define TILE_ROWS_WANTED 8 /* but at least room for so many targets of up to 4096 edges: below, products are slow */
#define COLUMNS 64               /* of operand rows, a task */
#define WEIGHT_ROWS 64           /* of the weight's gradient, a task */
#define DIGIT 256                /* of the sort */

/* A launch while it runs. */
typedef struct sequence {
    gs_cpu *cpu;
    const gs_sequence_launch *l;
    uint32_t *order, *spare; /* [SORTED] */
    float *transposed, *tiles;
    uint64_t tile_floats;
} sequence;

/* ---- memory ---- */

static uint64_t tile_floats(uint32_t width)
{
    const uint64_t common = gs_cpu__tile_floats(TILE_ROWS_WANTED, 2, width),
                   long_one = gs_cpu__tile_floats(1, GS_CPU_LEVELS, width);
    return gs_align_up(GS_MAX(GS_MAX(common, long_one), (uint64_t)TILE_FLOATS), 16);
}

/* The weight, transposed. */
static uint64_t weight_floats(uint32_t width) { return gs_align_up(4 * (uint64_t)width * width, 16); }

uint64_t gs_cpu__sequence_floats(const gs_cpu *cpu, const gs_program *p, const gs_stage *stage)
{
    if (stage->sums == 0 || !gs_sum_is_sequence(&stage->sum[0]))
        return 0;
    const uint64_t tiles = GS_MAX((uint64_t)GS_CPU_ROUND, (uint64_t)cpu->threads);
    const uint32_t width = p->param[stage->sum[0].weight].cols;
    return 2 * SORTED + tiles * tile_floats(width) + weight_floats(width);
}

static gs_status open_sequence(sequence *q, gs_cpu *cpu, const gs_sequence_launch *l)
{
    *q = (sequence){.cpu = cpu, .l = l, .tile_floats = tile_floats(l->width)};
    const uint64_t tiles = GS_MAX((uint64_t)GS_CPU_ROUND, (uint64_t)cpu->threads);
    if (cpu->room[GS_CPU_SEQUENCE].floats < 2 * SORTED + tiles * q->tile_floats + weight_floats(l->width))
        return gs_fail(GS_EINVAL, "device cpu: an lstm of width %u that was not prepared for", l->width);
    q->order = (uint32_t *)cpu->room[GS_CPU_SEQUENCE].at;
    q->spare = q->order + SORTED;
    q->transposed = cpu->room[GS_CPU_SEQUENCE].at + 2 * SORTED;
    q->tiles = q->transposed + weight_floats(l->width);
    gs_cpu__transpose(q->transposed, l->weight, 4 * l->width, l->width);
    return GS_OK;
}

static gs_status failed(const gs_sequence_launch *l)
{
    return gs_fail(GS_EDEVICE, "device cpu: oneDNN could not multiply by a weight of [%u, %u]", 4 * l->width, l->width);
}

/* ---- order ---- */

/* order[0..count) = targets from `first` on, those with most edges first, else as they come: a radix sort. */
static void sort_targets(sequence *q, uint32_t first, uint32_t count)
{
    const gs_edges *const e = &q->l->edges;
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        q->order[i] = first + i;
        most = GS_MAX(most, gs_cpu__sequence_degree(e, first + i));
    }
    for (uint32_t shift = 0; shift < 32 && most >> shift > 0; shift += 8) {
        uint32_t place[DIGIT + 1] = {0};
        for (uint32_t i = 0; i < count; i++)
            place[DIGIT - (gs_cpu__sequence_degree(e, q->order[i]) >> shift) % DIGIT]++;
        for (uint32_t d = 1; d <= DIGIT; d++)
            place[d] += place[d - 1];
        for (uint32_t i = 0; i < count; i++)
            q->spare[place[DIGIT - 1 - (gs_cpu__sequence_degree(e, q->order[i]) >> shift) % DIGIT]++] = q->order[i];
        uint32_t *const old = q->order;
        q->order = q->spare;
        q->spare = old;
    }
}

/* Sorts the next targets; returns how many have edges. */
static uint32_t sort_next(sequence *q, uint32_t first)
{
    uint32_t count = GS_MIN((uint32_t)SORTED, q->l->edges.targets - first);
    sort_targets(q, first, count);
    while (count > 0 && gs_cpu__sequence_degree(&q->l->edges, q->order[count - 1]) == 0)
        count--;
    return count;
}

/* Targets of the tile that begins with order[at]. */
static uint32_t tile_rows(const sequence *q, uint32_t at, uint32_t count, bool back)
{
    const uint32_t levels = back ? gs_cpu__tile_levels(gs_cpu__sequence_degree(&q->l->edges, q->order[at])) : 0;
    uint64_t rows = q->tile_floats / gs_cpu__tile_floats(1, levels, q->l->width);
    rows = GS_MAX(GS_MIN(rows, (uint64_t)GS_CPU_TILE_ROWS), 1u);
    return GS_MIN((uint32_t)rows, count - at);
}

static gs_cpu_sequence_tile make_tile(const sequence *q, uint32_t at, uint32_t rows, uint32_t place)
{
    gs_cpu_sequence_tile t = {.cpu = q->cpu, .l = q->l, .transposed = q->transposed, .order = q->order + at,
                              .rows = rows};
    gs_cpu__tile_open(&t, q->tiles + place * q->tile_floats);
    return t;
}

/* ---- forward ---- */

gs_status gs_cpu__run_sequence(void *context, const gs_sequence_launch *l)
{
    sequence q;
    bool broken = false;
    const uint32_t targets = l->edges.targets;
    gs_status st = open_sequence(&q, context, l);

    for (uint32_t first = 0; first < targets && st == GS_OK; first += GS_MIN((uint32_t)SORTED, targets - first)) {
        const uint32_t count = sort_next(&q, first);
        const uint32_t rows = tile_rows(&q, 0, UINT32_MAX, false), tiles = (uint32_t)gs_div_up(count, rows);
        const int before = gs_cpu__enter(q.cpu, tiles);
#pragma omp parallel for schedule(dynamic, 1)
        for (uint32_t i = 0; i < tiles; i++) {
            gs_cpu_sequence_tile t =
                make_tile(&q, i * rows, GS_MIN(rows, count - i * rows), (uint32_t)omp_get_thread_num());
            gs_cpu__tile_forward(&t);
            if (t.failed) {
#pragma omp atomic write
                broken = true;
            }
        }
        gs_cpu__leave(before);
    }
    return st == GS_OK && broken ? failed(l) : st;
}

/* ---- backward ---- */

typedef struct round {
    const sequence *q;
    gs_cpu_sequence_tile tile[GS_CPU_ROUND];
    uint32_t tiles; /* places in use are below this */
} round;

/* Tiles that are done make room for the next ones. Returns the number of tiles. */
static uint32_t fill_round(round *r, uint32_t *at, uint32_t count)
{
    uint32_t used = 0;
    r->tiles = 0;
    for (uint32_t i = 0; i < GS_CPU_ROUND; i++) {
        gs_cpu_sequence_tile *const t = &r->tile[i];
        t->edges = 0;
        if (t->left == 0 && *at < count) {
            const uint32_t rows = tile_rows(r->q, *at, count, true);
            *t = make_tile(r->q, *at, rows, i);
            *at += rows;
        }
        used += t->left > 0;
        r->tiles = t->left > 0 ? i + 1 : r->tiles;
    }
    return used;
}

static void add_columns(const round *r, uint32_t first, uint32_t columns)
{
    const gs_sequence_launch *const l = r->q->l;
    const size_t wide = 4 * (size_t)l->width;
    for (uint32_t i = 0; i < r->tiles; i++) {
        const gs_cpu_sequence_tile *const t = &r->tile[i];
        for (uint32_t e = 0; e < t->edges; e++)
            r->q->cpu->k->add(l->d_gates + t->row[e] * wide + first, t->gate + e * wide + first, columns);
    }
}

static bool add_weight_rows(const round *r, uint32_t first, uint32_t rows)
{
    const gs_sequence_launch *const l = r->q->l;
    bool fine = true;
    for (uint32_t i = 0; i < r->tiles && fine; i++) {
        const gs_cpu_sequence_tile *const t = &r->tile[i];
        if (t->edges > 0)
            fine = gs_cpu__sgemm('T', 'N', rows, l->width, t->edges, t->gate + first, 4 * l->width, t->before, l->width,
                                 1.0f, l->d_weight + (size_t)first * l->width, l->width);
    }
    return fine;
}

/* Adds the gradients of a window of every tile to where they belong. */
static bool add_gradients(const round *r, uint64_t tasks)
{
    const gs_sequence_launch *const l = r->q->l;
    const uint32_t wide = 4 * l->width, slices = (uint32_t)gs_div_up(wide, COLUMNS);
    const uint32_t blocks = l->d_weight != NULL ? (uint32_t)gs_div_up(wide, WEIGHT_ROWS) : 0;
    bool fine = true;

    const int before = gs_cpu__enter(r->q->cpu, tasks == 1 ? 1 : slices + blocks);
#pragma omp parallel for schedule(dynamic, 1)
    for (uint32_t i = 0; i < slices + blocks; i++) {
        const uint32_t first = i < blocks ? i * WEIGHT_ROWS : (i - blocks) * COLUMNS;
        if (i >= blocks) {
            add_columns(r, first, GS_MIN((uint32_t)COLUMNS, wide - first));
        } else if (!add_weight_rows(r, first, GS_MIN((uint32_t)WEIGHT_ROWS, wide - first))) {
#pragma omp atomic write
            fine = false;
        }
    }
    gs_cpu__leave(before);
    return fine;
}

static bool run_round(round *r, uint32_t used)
{
    const int before = gs_cpu__enter(r->q->cpu, used);
    bool fine = true;

#pragma omp parallel for schedule(dynamic, 1)
    for (uint32_t i = 0; i < r->tiles; i++)
        if (r->tile[i].left > 0)
            gs_cpu__tile_back(&r->tile[i]);
    gs_cpu__leave(before);
    for (uint32_t i = 0; i < r->tiles; i++)
        fine = fine && !r->tile[i].failed;
    return add_gradients(r, used) && fine;
}

gs_status gs_cpu__run_sequence_back(void *context, const gs_sequence_launch *l)
{
    sequence q;
    const uint32_t targets = l->edges.targets;
    gs_status st = open_sequence(&q, context, l);

    for (uint32_t first = 0; first < targets && st == GS_OK; first += GS_MIN((uint32_t)SORTED, targets - first)) {
        const uint32_t count = sort_next(&q, first);
        round r = {.q = &q};
        uint32_t at = 0, used;
        while (st == GS_OK && (used = fill_round(&r, &at, count)) > 0)
            if (!run_round(&r, used))
                st = failed(l);
    }
    return st;
}
