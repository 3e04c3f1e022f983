/* cpu.h - the CPU device, for its parts and for tests.
 *
 *   cpu.c            the table of operations: opening, scratch memory
 *   isa.c            which kernels this CPU may run
 *   team.c           how many threads a launch uses; copies, zeros and sums of memory over them
 *   row_sums.c       sums of rows: ranges of targets over threads
 *   edge_values.c    edge programs: where a value is, and the steps that copy, multiply and combine values
 *   edge_plan.c      edge programs: instructions to steps on tiles of edges
 *   edge_layout.c    edge programs: scratch of a tile
 *   type_matrices.c  edge programs: matrices of edges' types, transposed
 *   edge_typed.c     edge programs: gradients of the matrices of edges' types
 *   edge_program.c   edge programs: targets over threads, and sums before and after
 *   sequence.c       LSTMs over edges: targets over tiles, tiles over threads
 *   sequence_order.c the order of steps where edges have types
 *   sequence_tile.c  the steps of one tile, forward and backward
 *   dropout.c        what masks and dropout draw with
 *   lots.c           vertex launches: how many partial sums, and how large
 *   step_runs.c      vertex launches: which steps may run block by block without waiting
 *   resolve.c        vertex launches: instructions to steps with pointers
 *   vertex.c         vertex launches: steps over threads
 *   gemm.c           dense products (oneDNN)
 *   ceilings.c       what this machine can do at most
 *   kernels_*.c      inner loops, compiled for each instruction set
 *
 * Results do not depend on the number of threads: work is cut by sizes alone, and
 * partial sums are added in the order of their parts.
 */
#ifndef GS_DEVICE_CPU_CPU_H
#define GS_DEVICE_CPU_CPU_H

#include "device/cpu/step.h"
#include "device/device_table.h"

/* Most lots that the rows of a launch are dealt in. Each has its own partial sums. */
#define GS_CPU_LOTS 64

/* Uses that launches have for floats. Contents outlive no launch, but for those that say so. */
typedef enum gs_cpu_use {
    GS_CPU_PARTIAL,    /* [lots][run.partial] */
    GS_CPU_TRANSPOSED, /* weights of a stage as products take them: transposed, or by type side by side; for the pass */
    GS_CPU_OUTER,      /* an outer product that is a run of its own */
    GS_CPU_SEQUENCE,   /* tiles of an LSTM, and their order */
    GS_CPU_MATRICES,   /* of edges' types, transposed; for the pass */
    GS_CPU_KEPT,       /* rows of edges by type, and their order */
    GS_CPU_TILES,      /* of edges: one for each thread */
    GS_CPU_HUB_ROWS,   /* one for each of GS_CPU_HUB_PIECES */
    GS_CPU_USES
} gs_cpu_use;

typedef struct gs_cpu_room {
    float *at;
    uint64_t floats; /* TILES, HUB_ROWS: of each */
} gs_cpu_room;

typedef struct gs_cpu {
    /* set by open */
    const gs_cpu_kernels *k;
    unsigned threads;
    char name[128];
    /* set by prepare */
    gs_cpu_step *step;
    uint32_t steps;
    gs_cpu_edge_step *edge_step;
    gs_cpu_edge_slot *edge_slot;
    uint32_t edge_steps;     /* and slots */
    gs_cpu_edge_state *edge_state;
    uint32_t edge_states;
    gs_cpu_room room[GS_CPU_USES];
    bool in_pass;            /* launches use the same parameters until the pass ends */
    const gs_stage *transposed_stage; /* of the pass's last launch; its weights stand in TRANSPOSED */
    const gs_stage *matrix_stage; /* whose MATRICES are there, in the pass that goes on; else NULL */
    gs_metrics lot_metrics[GS_CPU_LOTS];
} gs_cpu;

#endif /* GS_DEVICE_CPU_CPU_H */
