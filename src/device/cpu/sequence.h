/* sequence.h - a tile of an LSTM over edges, for sequence.c and sequence_tile.c.
 *
 * A tile is some targets of a launch, those with the most edges first, so that the targets which
 * still have an edge at step s are its first ones. Forward, a tile runs through all its steps with
 * one state a target. Backward, it goes a *window* of steps at a time, from the last to the first: the
 * states of a window are computed again from the one at its start. What a tile keeps does not grow with
 * the number of its steps, but with its logarithm: windows are grouped in blocks, those in
 * larger blocks, and so on, and of each *level* the states at the starts of one block's parts are kept
 * (Chen et al. 2016, section 4, with more than one level of it).
 */
#ifndef GS_DEVICE_CPU_SEQUENCE_H
#define GS_DEVICE_CPU_SEQUENCE_H

#include "device/cpu/cpu.h"

#define GS_CPU_WINDOW 16     /* steps */
#define GS_CPU_BRANCH 16     /* parts of a block */
#define GS_CPU_LEVELS 7      /* of blocks: 16^8 steps are more than a launch has edges */
#define GS_CPU_TILE_ROWS 64  /* targets, at most */

typedef struct gs_cpu_sequence_tile {
    const gs_cpu *cpu;
    const gs_sequence_launch *l;
    const float *transposed; /* [width, 4 * width] the launch's weight */
    const uint32_t *order;  /* [rows] targets of the launch, most edges first */
    uint32_t rows, steps;   /* steps: of the first target; 0: no tile */
    uint32_t levels;
    uint32_t left;          /* backward: windows not done yet */
    uint32_t loaded[GS_CPU_LEVELS]; /* [level - 1] block whose parts' states are there, or GS_NONE */
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
} gs_cpu_sequence_tile;

/* out[0..steps) = operand rows of steps [from, from + steps) of target t, which has so many, `stride` apart. */
void gs_cpu__sequence_rows(const gs_edges *e, uint32_t t, uint32_t from, uint32_t steps, uint32_t *out,
                           uint32_t stride);

/* Floats of scratch of a tile of `rows` targets. */
uint64_t gs_cpu__tile_floats(uint32_t rows, uint32_t levels, uint32_t width);
/* Levels that so many steps need. */
uint32_t gs_cpu__tile_levels(uint32_t steps);

/* A tile with its scratch laid out; order, rows, cpu and l are set. */
void gs_cpu__tile_open(gs_cpu_sequence_tile *t, float *scratch);
void gs_cpu__tile_forward(gs_cpu_sequence_tile *t);
/* The last window that is left: gate, before and row hold the gradients, the states and the operand
 * rows of its `edges`. With the first window done, d_state and d_cell of the launch are set. */
void gs_cpu__tile_back(gs_cpu_sequence_tile *t);

static inline uint32_t gs_cpu__sequence_degree(const gs_edges *e, uint32_t t)
{
    return e->start[t + 1] - e->start[t];
}

gs_status gs_cpu__run_sequence(void *context, const gs_sequence_launch *l);
gs_status gs_cpu__run_sequence_back(void *context, const gs_sequence_launch *l);
/* Floats of scratch that the stage's sequence wants, all threads together; 0 without one. */
uint64_t gs_cpu__sequence_floats(const gs_cpu *cpu, const gs_program *p, const gs_stage *stage);

#endif /* GS_DEVICE_CPU_SEQUENCE_H */
