/* LSTMs over edges: the order of steps, the steps of a tile, and tiles over threads. */
#include <omp.h>
#include <string.h>

#include "base/dtype.h"
#include "base/size.h"
#include "device/cpu/cpu.h"
#include "device/cpu/gemm.h"

#define WINDOW 16    /* steps */
#define BRANCH 16    /* parts of a block */
#define LEVELS 7     /* of blocks: 16^8 steps are more than a launch has edges */
#define TILE_ROWS 64 /* targets, at most */

/* A tile of a launch.
 *
 * It is some targets, those with the most edges first, so that the targets which
 * still have an edge at step s are its first ones. Forward, a tile runs through all its steps with
 * one state a target. Backward, it goes a *window* of steps at a time, from the last to the first: the
 * states of a window are computed again from the one at its start. What a tile keeps does not grow with
 * the number of its steps, but with its logarithm: windows are grouped in blocks, those in
 * larger blocks, and so on, and of each *level* the states at the starts of one block's parts are kept
 * (Chen et al. 2016, section 4, with more than one level of it).
 */
typedef struct sequence_tile {
    const gs_cpu *cpu;
    const gs_sequence_launch *l;
    const float *transposed; /* [width, 4 * width] the launch's weight */
    const uint32_t *order;  /* [rows] targets of the launch, most edges first */
    uint32_t rows, steps;   /* steps: of the first target; 0: no tile */
    uint32_t levels;
    uint32_t left;          /* backward: windows not done yet */
    uint32_t loaded[LEVELS]; /* [level - 1] block whose parts' states are there, or GS_NONE */
    /* Scratch. Rows of the steps of a window stand one step behind the other, without gaps. */
    float *gate;            /* [WINDOW * rows, 4 * width]; after a window: gradients */
    float *before;          /* [WINDOW * rows, width] state before the step */
    float *cell;            /* [WINDOW * rows, width] after the step */
    float *state_now, *cell_now, *d_state, *d_cell; /* [rows, width] */
    float *level;           /* [levels][BRANCH][2][rows, width] */
    uint32_t *row;          /* [WINDOW * rows] operand row of each edge of the window */
    uint32_t *next;         /* [WINDOW][rows] with types: operand rows of the window's steps, */
    uint32_t next_window;   /* of this window, or GS_NONE */
    uint32_t edges;         /* of the window */
    bool failed;            /* oneDNN did */
} sequence_tile;

static inline uint32_t degree_of(const gs_edges *e, uint32_t t) { return e->start[t + 1] - e->start[t]; }

/* ---- order of steps ----
 *
 * The order of a target's steps in a chunk whose edges have types.
 *
 * Such edges are sorted by type first and by operand within a type, but a sequence goes by operand alone. The step of a
 * rank is found by counting, with binary searches in the types' runs: nothing is sorted, and nothing kept.
 * Edges of one operand bring the same row, so their order among each other is nobody's business.
 */

static uint32_t number_at(const void *p, uint32_t bytes, uint32_t i)
{
    return bytes == 1 ? ((const uint8_t *)p)[i] : bytes == 2 ? ((const uint16_t *)p)[i] : ((const uint32_t *)p)[i];
}

/* First of the ascending numbers [from, to) that is at least `v`, or `to`. */
static uint32_t first_from(const void *p, uint32_t bytes, uint32_t from, uint32_t to, uint64_t v)
{
    GS_BISECT(from, to, number_at(p, bytes, middle) < v);
    return from;
}

/* Edges of target t with operands below `v`; *next: the least operand that is not, UINT32_MAX where there is none. */
static uint32_t count_below(const gs_edges *e, uint32_t t, uint64_t v, uint32_t *next)
{
    uint32_t count = 0;
    *next = UINT32_MAX;
    for (uint32_t from = e->start[t], to; from < e->start[t + 1]; from = to) {
        const uint64_t type = number_at(e->type, e->type_bytes, from);
        to = first_from(e->type, e->type_bytes, from, e->start[t + 1], type + 1);
        const uint32_t at = first_from(e->index, e->index_bytes, from, to, v);
        count += at - from;
        if (at < to)
            *next = GS_MIN(*next, number_at(e->index, e->index_bytes, at));
    }
    return count;
}

/* The operand of the edge of this rank. */
static uint32_t operand_of_rank(const gs_edges *e, uint32_t t, uint32_t rank)
{
    uint64_t low = 0, high = e->index_bytes == 2 ? UINT16_MAX : UINT32_MAX;
    uint32_t next;
    GS_BISECT(low, high, count_below(e, t, middle + 1, &next) <= rank); /* the least with more edges up to it */
    return (uint32_t)low;
}

/* out[0..steps) = operand rows of steps [from, from + steps) of target t, which has so many, `stride` apart. */
static void sequence_rows(const gs_edges *e, uint32_t t, uint32_t from, uint32_t steps, uint32_t *out,
                          uint32_t stride)
{
    uint32_t operand = operand_of_rank(e, t, from), next;
    for (uint32_t s = 0; s < steps; operand = next) {
        const uint32_t end = count_below(e, t, (uint64_t)operand + 1, &next) - from;
        for (; s < end && s < steps; s++)
            out[(size_t)s * stride] = operand;
    }
}

/* ---- steps of a tile ---- */

/* Row r's place in the interval. */
static size_t target_row(const sequence_tile *t, uint32_t r)
{
    return gs_index_at(t->l->edges.target, t->l->edges.index_bytes, t->order[r]);
}

/* ---- memory ---- */

/* Levels that so many steps need. */
static uint32_t tile_levels(uint32_t steps)
{
    uint32_t levels = 0;
    for (uint64_t reach = WINDOW; reach < steps; reach *= BRANCH)
        levels++;
    return levels;
}

/* Floats of scratch of a tile of `rows` targets. */
static uint64_t floats_of_tile(uint32_t rows, uint32_t levels, uint32_t width)
{
    const uint64_t window = (uint64_t)WINDOW * (6 * (uint64_t)width + 2), now = 4 * (uint64_t)width;
    return rows * (window + now + (uint64_t)levels * BRANCH * 2 * width);
}

/* A tile with its scratch laid out; order, rows, cpu and l are set. */
static void tile_open(sequence_tile *t, float *scratch)
{
    const uint64_t n = (uint64_t)t->rows * t->l->width;

    t->steps = degree_of(&t->l->edges, t->order[0]);
    t->levels = tile_levels(t->steps);
    t->left = (uint32_t)gs_div_up(t->steps, WINDOW);
    t->edges = 0;
    memset(t->loaded, 0xff, sizeof(t->loaded)); /* GS_NONE */
    t->gate = scratch;
    t->before = t->gate + 4 * WINDOW * n;
    t->cell = t->before + WINDOW * n;
    t->state_now = t->cell + WINDOW * n;
    t->cell_now = t->state_now + n;
    t->d_state = t->cell_now + n;
    t->d_cell = t->d_state + n;
    t->row = (uint32_t *)(t->d_cell + n);
    t->next = t->row + (uint64_t)WINDOW * t->rows;
    t->next_window = GS_NONE;
    t->level = t->d_cell + n + 2 * (uint64_t)WINDOW * t->rows; /* backward only: the last */
}

/* Part `part` of the block that is loaded at `level` (1 is the windows'): state, then cell. */
static float *level_state(const sequence_tile *t, uint32_t level, uint32_t part)
{
    const uint64_t n = (uint64_t)t->rows * t->l->width;
    return t->level + ((uint64_t)(level - 1) * BRANCH + part) * 2 * n;
}

/* Rows of an array of the launch to the tile, and back. */
static void gather(const sequence_tile *t, float *to, const float *from)
{
    const size_t width = t->l->width;
    for (uint32_t r = 0; r < t->rows; r++)
        memcpy(to + r * width, from + target_row(t, r) * width, width * sizeof(float));
}

static void scatter(const sequence_tile *t, float *to, const float *from)
{
    const size_t width = t->l->width;
    for (uint32_t r = 0; r < t->rows; r++)
        memcpy(to + target_row(t, r) * width, from + r * width, width * sizeof(float));
}

/* ---- steps ---- */

/* Number of those of the first `most` rows that have an edge at this step. */
static uint32_t active_rows(const sequence_tile *t, uint32_t step, uint32_t most)
{
    while (most > 0 && degree_of(&t->l->edges, t->order[most - 1]) <= step)
        most--;
    return most;
}

static bool all_zero(const float *p, uint64_t n)
{
    while (n > 0 && *p == 0.0f) {
        p++;
        n--;
    }
    return n == 0;
}

/* Operand rows of the window that has this step. */
static void find_rows(sequence_tile *t, uint32_t step)
{
    const uint32_t window = step / WINDOW, from = window * WINDOW;
    if (t->next_window == window)
        return;
    for (uint32_t r = 0; r < t->rows; r++) {
        const uint32_t degree = degree_of(&t->l->edges, t->order[r]);
        if (degree > from)
            sequence_rows(&t->l->edges, t->order[r], from, GS_MIN(degree - from, (uint32_t)WINDOW),
                          t->next + r, t->rows);
    }
    t->next_window = window;
}

static uint32_t operand_row(const sequence_tile *t, uint32_t r, uint32_t step)
{
    if (t->l->edges.type != NULL)
        return t->next[step % WINDOW * t->rows + r];
    return gs_index_at(t->l->edges.index, t->l->edges.index_bytes, t->l->edges.start[t->order[r]] + step);
}

/* gate[active] = what the edges bring + state @ weight'. `row` gets the edges' operands. */
static void gate_sums(sequence_tile *t, float *gate, uint32_t *row, const float *state, uint32_t step,
                      uint32_t active)
{
    const gs_sequence_launch *const l = t->l;
    const uint32_t width = l->width;
    const size_t wide = 4 * (size_t)width;

    if (l->edges.type != NULL)
        find_rows(t, step);
    for (uint32_t r = 0; r < active; r++) {
        row[r] = operand_row(t, r, step);
        __builtin_prefetch(l->gates + row[r] * wide);
    }
    for (uint32_t r = 0; r < active; r++)
        memcpy(gate + r * wide, l->gates + row[r] * wide, wide * sizeof(float));
    if (step == 0 && all_zero(state, (uint64_t)active * width))
        return; /* where a sequence starts */
    if (!gs_cpu__steady_rows(active, 4 * width, width, state, width, t->transposed, 4 * width, 1.0f, gate, 4 * width))
        t->failed = true;
}

/* Steps [from, to) of the state and cell given, in place. */
static void advance(sequence_tile *t, float *state, float *cell, uint32_t from, uint32_t to)
{
    uint32_t active = t->rows;
    for (uint32_t s = from; s < to; s++) {
        active = active_rows(t, s, active);
        if (active == 0)
            return;
        gate_sums(t, t->gate, t->row, state, s, active);
        t->cpu->k->lstm_step(t->gate, cell, cell, state, active, t->l->width);
    }
}

static void tile_forward(sequence_tile *t)
{
    gather(t, t->state_now, t->l->state);
    gather(t, t->cell_now, t->l->cell);
    advance(t, t->state_now, t->cell_now, 0, t->steps);
    scatter(t, t->l->state, t->state_now);
    scatter(t, t->l->cell, t->cell_now);
}

/* ---- backward ---- */

/* Makes the states at the starts of the parts of block `block` of `level` be there. A part of level 1 is a
 * window, a part of level j a block of level j - 1, and has `part_steps` steps. The level above is there. */
static void load_block(sequence_tile *t, uint32_t level, uint32_t block, uint64_t part_steps)
{
    const uint64_t n = (uint64_t)t->rows * t->l->width;

    if (level == t->levels) { /* one block covers all steps */
        gather(t, level_state(t, level, 0), t->l->state);
        gather(t, level_state(t, level, 0) + n, t->l->cell);
    } else {
        memcpy(level_state(t, level, 0), level_state(t, level + 1, block % BRANCH), 2 * n * sizeof(float));
    }
    for (uint32_t part = 1; part < BRANCH; part++) {
        const uint64_t start = ((uint64_t)block * BRANCH + part) * part_steps;
        float *const state = level_state(t, level, part);
        if (start >= t->steps)
            break;
        memcpy(state, level_state(t, level, part - 1), 2 * n * sizeof(float));
        advance(t, state, state + n, (uint32_t)(start - part_steps), (uint32_t)start);
    }
}

/* State and cell before window `window`. */
static void load_start(sequence_tile *t, uint32_t window, const float **state, const float **cell)
{
    const uint64_t n = (uint64_t)t->rows * t->l->width;
    uint64_t parts = 1; /* windows in a block's part */

    if (t->levels == 0) {
        gather(t, t->state_now, t->l->state);
        gather(t, t->cell_now, t->l->cell);
        *state = t->state_now;
        *cell = t->cell_now;
        return;
    }
    for (uint32_t level = 1; level < t->levels; level++)
        parts *= BRANCH;
    for (uint32_t level = t->levels; level > 0; level--, parts /= BRANCH) {
        const uint32_t block = (uint32_t)(window / (parts * BRANCH));
        if (t->loaded[level - 1] != block)
            load_block(t, level, block, parts * WINDOW);
        t->loaded[level - 1] = block;
    }
    *state = level_state(t, 1, window % BRANCH);
    *cell = *state + n;
}

/* The window's steps from `from` on, everything kept; active[] gets the rows of each. Returns their number. */
static uint32_t forward_window(sequence_tile *t, uint32_t from, const float *state, const float *cell,
                               uint32_t *active)
{
    const size_t width = t->l->width;
    uint32_t rows = t->rows, steps = 0;
    size_t at = 0;

    for (; steps < WINDOW; steps++) {
        rows = active_rows(t, from + steps, rows);
        if (rows == 0)
            break;
        const size_t next = at + rows;
        float *const after = steps + 1 < WINDOW ? t->before + next * width : NULL;
        if (steps == 0)
            memcpy(t->before, state, rows * width * sizeof(float));
        gate_sums(t, t->gate + at * 4 * width, t->row + at, t->before + at * width, from + steps, rows);
        t->cpu->k->lstm_step(t->gate + at * 4 * width, cell, t->cell + at * width, after, rows, t->l->width);
        cell = t->cell + at * width;
        active[steps] = rows;
        at = next;
    }
    t->edges = (uint32_t)at;
    return steps;
}

/* The last window that is left: gate, before and row hold the gradients, the states and the operand
 * rows of its `edges`. With the first window done, d_state and d_cell of the launch are set. */
static void tile_back(sequence_tile *t)
{
    const gs_sequence_launch *const l = t->l;
    const size_t width = l->width;
    const float *state, *cell;
    uint32_t active[WINDOW];

    if ((uint64_t)t->left * WINDOW >= t->steps) { /* the last window: the first that is done */
        gather(t, t->d_state, l->d_state);
        gather(t, t->d_cell, l->d_cell);
    }
    t->left--;
    load_start(t, t->left, &state, &cell);
    const uint32_t steps = forward_window(t, t->left * WINDOW, state, cell, active);
    size_t at = t->edges;
    for (uint32_t s = steps; s-- > 0;) {
        const size_t before = s == 0 ? 0 : at - active[s] - active[s - 1];
        at -= active[s];
        float *const gate = t->gate + at * 4 * width;
        t->cpu->k->lstm_back(gate, s == 0 ? cell : t->cell + before * width, t->cell + at * width, t->d_state,
                             t->d_cell, active[s], l->width);
        if (!gs_cpu__steady_rows(active[s], l->width, 4 * l->width, gate, 4 * l->width, l->weight, l->width, 0.0f,
                                 t->d_state, l->width))
            t->failed = true;
    }
    if (t->left == 0) {
        scatter(t, l->d_state, t->d_state);
        scatter(t, l->d_cell, t->d_cell);
    }
}

/* ---- tiles over threads ----
 *
 * LSTMs over edges on all threads.
 *
 * Targets are sorted by their edges in the chunk, most first, and cut into tiles; a tile takes a step of all its
 * targets with one product. What a launch computes does not depend on the threads: tiles are cut by sizes alone.
 * Backward, ROUND tiles take a window of steps each; then the gradients of their edges are
 * added to the operand rows and to the weight's gradient, tile by tile and edge by edge in their order, with
 * threads sharing the columns of the one and the rows of the other. No two threads write one number.
 */

#define SORTED 16384             /* targets that are sorted together */
#define ROUND 16          /* tiles of a round */
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
    const uint64_t common = floats_of_tile(TILE_ROWS_WANTED, 2, width),
                   long_one = floats_of_tile(1, LEVELS, width);
    return gs_align_up(GS_MAX(GS_MAX(common, long_one), (uint64_t)TILE_FLOATS), 16);
}

/* The weight, transposed. */
static uint64_t weight_floats(uint32_t width) { return gs_align_up(4 * (uint64_t)width * width, 16); }

uint64_t gs_cpu__sequence_floats(const gs_cpu *cpu, const gs_program *p, const gs_stage *stage)
{
    if (stage->sums == 0 || !gs_sum_is_sequence(&stage->sum[0]))
        return 0;
    const uint64_t tiles = GS_MAX((uint64_t)ROUND, (uint64_t)cpu->threads);
    const uint32_t width = p->param[stage->sum[0].weight].cols;
    return 2 * SORTED + tiles * tile_floats(width) + weight_floats(width);
}

static gs_status open_sequence(sequence *q, gs_cpu *cpu, const gs_sequence_launch *l)
{
    *q = (sequence){.cpu = cpu, .l = l, .tile_floats = tile_floats(l->width)};
    const uint64_t tiles = GS_MAX((uint64_t)ROUND, (uint64_t)cpu->threads);
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
        most = GS_MAX(most, degree_of(e, first + i));
    }
    for (uint32_t shift = 0; shift < 32 && most >> shift > 0; shift += 8) {
        uint32_t place[DIGIT + 1] = {0};
        for (uint32_t i = 0; i < count; i++)
            place[DIGIT - (degree_of(e, q->order[i]) >> shift) % DIGIT]++;
        for (uint32_t d = 1; d <= DIGIT; d++)
            place[d] += place[d - 1];
        for (uint32_t i = 0; i < count; i++)
            q->spare[place[DIGIT - 1 - (degree_of(e, q->order[i]) >> shift) % DIGIT]++] = q->order[i];
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
    while (count > 0 && degree_of(&q->l->edges, q->order[count - 1]) == 0)
        count--;
    return count;
}

/* Targets of the tile that begins with order[at]. */
static uint32_t tile_rows(const sequence *q, uint32_t at, uint32_t count, bool back)
{
    const uint32_t levels = back ? tile_levels(degree_of(&q->l->edges, q->order[at])) : 0;
    uint64_t rows = q->tile_floats / floats_of_tile(1, levels, q->l->width);
    rows = GS_MAX(GS_MIN(rows, (uint64_t)TILE_ROWS), 1u);
    return GS_MIN((uint32_t)rows, count - at);
}

static sequence_tile make_tile(const sequence *q, uint32_t at, uint32_t rows, uint32_t place)
{
    sequence_tile t = {.cpu = q->cpu, .l = q->l, .transposed = q->transposed, .order = q->order + at,
                       .rows = rows};
    tile_open(&t, q->tiles + place * q->tile_floats);
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
            sequence_tile t =
                make_tile(&q, i * rows, GS_MIN(rows, count - i * rows), (uint32_t)omp_get_thread_num());
            tile_forward(&t);
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
    sequence_tile tile[ROUND];
    uint32_t tiles; /* places in use are below this */
} round;

/* Tiles that are done make room for the next ones. Returns the number of tiles. */
static uint32_t fill_round(round *r, uint32_t *at, uint32_t count)
{
    uint32_t used = 0;
    r->tiles = 0;
    for (uint32_t i = 0; i < ROUND; i++) {
        sequence_tile *const t = &r->tile[i];
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
        const sequence_tile *const t = &r->tile[i];
        for (uint32_t e = 0; e < t->edges; e++)
            r->q->cpu->k->add(l->d_gates + t->row[e] * wide + first, t->gate + e * wide + first, columns);
    }
}

static bool add_weight_rows(const round *r, uint32_t first, uint32_t rows)
{
    const gs_sequence_launch *const l = r->q->l;
    bool fine = true;
    for (uint32_t i = 0; i < r->tiles && fine; i++) {
        const sequence_tile *const t = &r->tile[i];
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
            tile_back(&r->tile[i]);
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
