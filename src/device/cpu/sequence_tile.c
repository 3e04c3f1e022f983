/* The steps of one tile of an LSTM over edges: see sequence.h. One thread a tile. */
#include <string.h>

#include "base/index_width.h"
#include "base/size.h"
#include "device/cpu/gemm.h"
#include "device/cpu/sequence.h"

/* Row r's place in the interval. */
static size_t target_row(const gs_cpu_sequence_tile *t, uint32_t r)
{
    return gs_index_at(t->l->edges.target, t->l->edges.index_bytes, t->order[r]);
}

/* ---- memory ---- */

uint32_t gs_cpu__tile_levels(uint32_t steps)
{
    uint32_t levels = 0;
    for (uint64_t reach = GS_CPU_WINDOW; reach < steps; reach *= GS_CPU_BRANCH)
        levels++;
    return levels;
}

uint64_t gs_cpu__tile_floats(uint32_t rows, uint32_t levels, uint32_t width)
{
    const uint64_t window = (uint64_t)GS_CPU_WINDOW * (6 * (uint64_t)width + 2), now = 4 * (uint64_t)width;
    return rows * (window + now + (uint64_t)levels * GS_CPU_BRANCH * 2 * width);
}

void gs_cpu__tile_open(gs_cpu_sequence_tile *t, float *scratch)
{
    const uint64_t n = (uint64_t)t->rows * t->l->width;

    t->steps = gs_cpu__sequence_degree(&t->l->edges, t->order[0]);
    t->levels = gs_cpu__tile_levels(t->steps);
    t->left = (uint32_t)gs_div_up(t->steps, GS_CPU_WINDOW);
    t->edges = 0;
    memset(t->loaded, 0xff, sizeof(t->loaded)); /* GS_NONE */
    t->gate = scratch;
    t->before = t->gate + 4 * GS_CPU_WINDOW * n;
    t->cell = t->before + GS_CPU_WINDOW * n;
    t->state_now = t->cell + GS_CPU_WINDOW * n;
    t->cell_now = t->state_now + n;
    t->d_state = t->cell_now + n;
    t->d_cell = t->d_state + n;
    t->row = (uint32_t *)(t->d_cell + n);
    t->next = t->row + (uint64_t)GS_CPU_WINDOW * t->rows;
    t->next_window = GS_NONE;
    t->level = t->d_cell + n + 2 * (uint64_t)GS_CPU_WINDOW * t->rows; /* backward only: the last */
}

/* Part `part` of the block that is loaded at `level` (1 is the windows'): state, then cell. */
static float *level_state(const gs_cpu_sequence_tile *t, uint32_t level, uint32_t part)
{
    const uint64_t n = (uint64_t)t->rows * t->l->width;
    return t->level + ((uint64_t)(level - 1) * GS_CPU_BRANCH + part) * 2 * n;
}

/* Rows of an array of the launch to the tile, and back. */
static void gather(const gs_cpu_sequence_tile *t, float *to, const float *from)
{
    const size_t width = t->l->width;
    for (uint32_t r = 0; r < t->rows; r++)
        memcpy(to + r * width, from + target_row(t, r) * width, width * sizeof(float));
}

static void scatter(const gs_cpu_sequence_tile *t, float *to, const float *from)
{
    const size_t width = t->l->width;
    for (uint32_t r = 0; r < t->rows; r++)
        memcpy(to + target_row(t, r) * width, from + r * width, width * sizeof(float));
}

/* ---- steps ---- */

/* Number of those of the first `most` rows that have an edge at this step. */
static uint32_t active_rows(const gs_cpu_sequence_tile *t, uint32_t step, uint32_t most)
{
    while (most > 0 && gs_cpu__sequence_degree(&t->l->edges, t->order[most - 1]) <= step)
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
static void find_rows(gs_cpu_sequence_tile *t, uint32_t step)
{
    const uint32_t window = step / GS_CPU_WINDOW, from = window * GS_CPU_WINDOW;
    if (t->next_window == window)
        return;
    for (uint32_t r = 0; r < t->rows; r++) {
        const uint32_t degree = gs_cpu__sequence_degree(&t->l->edges, t->order[r]);
        if (degree > from)
            gs_cpu__sequence_rows(&t->l->edges, t->order[r], from, GS_MIN(degree - from, (uint32_t)GS_CPU_WINDOW),
                                  t->next + r, t->rows);
    }
    t->next_window = window;
}

static uint32_t operand_row(const gs_cpu_sequence_tile *t, uint32_t r, uint32_t step)
{
    if (t->l->edges.type != NULL)
        return t->next[step % GS_CPU_WINDOW * t->rows + r];
    return gs_index_at(t->l->edges.index, t->l->edges.index_bytes, t->l->edges.start[t->order[r]] + step);
}

/* gate[active] = what the edges bring + state @ weight'. `row` gets the edges' operands. */
static void gate_sums(gs_cpu_sequence_tile *t, float *gate, uint32_t *row, const float *state, uint32_t step,
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
static void advance(gs_cpu_sequence_tile *t, float *state, float *cell, uint32_t from, uint32_t to)
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

void gs_cpu__tile_forward(gs_cpu_sequence_tile *t)
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
static void load_block(gs_cpu_sequence_tile *t, uint32_t level, uint32_t block, uint64_t part_steps)
{
    const uint64_t n = (uint64_t)t->rows * t->l->width;

    if (level == t->levels) { /* one block covers all steps */
        gather(t, level_state(t, level, 0), t->l->state);
        gather(t, level_state(t, level, 0) + n, t->l->cell);
    } else {
        memcpy(level_state(t, level, 0), level_state(t, level + 1, block % GS_CPU_BRANCH), 2 * n * sizeof(float));
    }
    for (uint32_t part = 1; part < GS_CPU_BRANCH; part++) {
        const uint64_t start = ((uint64_t)block * GS_CPU_BRANCH + part) * part_steps;
        float *const state = level_state(t, level, part);
        if (start >= t->steps)
            break;
        memcpy(state, level_state(t, level, part - 1), 2 * n * sizeof(float));
        advance(t, state, state + n, (uint32_t)(start - part_steps), (uint32_t)start);
    }
}

/* State and cell before window `window`. */
static void load_start(gs_cpu_sequence_tile *t, uint32_t window, const float **state, const float **cell)
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
        parts *= GS_CPU_BRANCH;
    for (uint32_t level = t->levels; level > 0; level--, parts /= GS_CPU_BRANCH) {
        const uint32_t block = (uint32_t)(window / (parts * GS_CPU_BRANCH));
        if (t->loaded[level - 1] != block)
            load_block(t, level, block, parts * GS_CPU_WINDOW);
        t->loaded[level - 1] = block;
    }
    *state = level_state(t, 1, window % GS_CPU_BRANCH);
    *cell = *state + n;
}

/* The window's steps from `from` on, everything kept; active[] gets the rows of each. Returns their number. */
static uint32_t forward_window(gs_cpu_sequence_tile *t, uint32_t from, const float *state, const float *cell,
                               uint32_t *active)
{
    const size_t width = t->l->width;
    uint32_t rows = t->rows, steps = 0;
    size_t at = 0;

    for (; steps < GS_CPU_WINDOW; steps++) {
        rows = active_rows(t, from + steps, rows);
        if (rows == 0)
            break;
        const size_t next = at + rows;
        float *const after = steps + 1 < GS_CPU_WINDOW ? t->before + next * width : NULL;
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

void gs_cpu__tile_back(gs_cpu_sequence_tile *t)
{
    const gs_sequence_launch *const l = t->l;
    const size_t width = l->width;
    const float *state, *cell;
    uint32_t active[GS_CPU_WINDOW];

    if ((uint64_t)t->left * GS_CPU_WINDOW >= t->steps) { /* the last window: the first that is done */
        gather(t, t->d_state, l->d_state);
        gather(t, t->d_cell, l->d_cell);
    }
    t->left--;
    load_start(t, t->left, &state, &cell);
    const uint32_t steps = forward_window(t, t->left * GS_CPU_WINDOW, state, cell, active);
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
