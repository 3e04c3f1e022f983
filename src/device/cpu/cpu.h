/* cpu.h - the CPU device, for its parts and for tests.
 *
 * From bottom to top:
 *
 *   kernels_*.c      inner loops, compiled for each instruction set
 *   gemm.c           dense products (oneDNN, or kernels for small matrices)
 *   bf16.c           those of numbers that are rounded to bf16
 *   edge_plan.c      edge programs: instructions to steps on tiles of edges, and the scratch of a tile
 *   edge_program.c   launches over edges: targets over threads, and sums before and after
 *   edge_runs.c      the same where products are made for runs or pairs of edges
 *   sequence.c       LSTMs over edges: targets over tiles, tiles over threads
 *   steps.c          vertex launches: instructions to steps with pointers, and which may run without waiting
 *   vertex.c         vertex launches: steps over threads
 *   cpu.c            which kernels may run, threads of a launch, opening, scratch memory
 *
 * Results do not depend on the number of threads: work is cut by sizes alone, and
 * partial sums are added in the order of their parts.
 */
#ifndef GS_DEVICE_CPU_CPU_H
#define GS_DEVICE_CPU_CPU_H

#include "device/cpu/kernels.h"
#include "device/device_table.h"

/* Most lots that the rows of a launch are dealt in. Each has its own partial sums. */
#define GS_CPU_LOTS 64

typedef struct gs_cpu_step gs_cpu_step;
typedef struct gs_cpu_run_stage gs_cpu_run_stage; /* edge_runs.c */
typedef struct gs_cpu_bf16 gs_cpu_bf16;           /* bf16.h */

/* Uses that launches have for floats. Contents outlive no launch, but for those that say so. */
typedef enum gs_cpu_use {
    GS_CPU_PARTIAL,    /* [lots][run.partial] */
    GS_CPU_TRANSPOSED, /* weights of a stage as products take them: transposed, or by type side by side, or in pairs of
                        * bf16; for the pass */
    GS_CPU_OUTER,      /* an outer product that is a run of its own */
    GS_CPU_SEQUENCE,   /* tiles of an LSTM, and their order */
    GS_CPU_MATRICES,   /* of edges' types, transposed; for the pass */
    GS_CPU_KEPT,       /* rows of edges by type, and their order */
    GS_CPU_TILES,      /* of edges: one for each thread */
    GS_CPU_HUB_ROWS,   /* one for each of GS_CPU_HUB_PIECES */
    GS_CPU_NUMBERS,    /* of an operand interval's vertices, packed: rows of GS_CPU_PACKED */
    GS_CPU_USES
} gs_cpu_use;

typedef struct gs_cpu_room {
    float *at;
    uint64_t floats; /* TILES, HUB_ROWS: of each */
} gs_cpu_room;

typedef struct gs_cpu {
    /* set by open */
    const gs_cpu_kernels *k;
    const gs_cpu_bf16 *bf16; /* of products of vertices; NULL: they round nothing */
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
    gs_cpu_run_stage *run_stage; /* of the prepared program */
    uint32_t run_stages;
    gs_cpu_room room[GS_CPU_USES];
    bool in_pass;            /* launches use the same parameters until the pass ends */
    const gs_stage *transposed_stage; /* of the pass's last launch; its weights stand in TRANSPOSED */
    const gs_stage *matrix_stage; /* whose MATRICES are there, in the pass that goes on; else NULL */
    gs_metrics lot_metrics[GS_CPU_LOTS];
} gs_cpu;

/* ---- kernels ---- */

/* Set by a test: opened devices use these. */
extern const gs_cpu_kernels *gs_cpu__test_kernels;

/* ---- threads ---- */

/* Every launch lies between these: OpenMP, and oneDNN with it, use the device's threads, or one
 * where the launch is a single task: waking the others would cost more than a small task takes. */
int gs_cpu__enter(const gs_cpu *cpu, uint64_t tasks);
void gs_cpu__leave(int before);
/* The calling thread's TILES. */
float *gs_cpu__tile(const gs_cpu *cpu);

/* ---- vertex launches ---- */

gs_status gs_cpu__run_vertex(void *context, const gs_vertex_launch *l);

/* ---- LSTMs over edges ---- */

gs_status gs_cpu__run_sequence(void *context, const gs_sequence_launch *l);
gs_status gs_cpu__run_sequence_back(void *context, const gs_sequence_launch *l);
/* Floats of scratch that the stage's sequence wants, all threads together; 0 without one. */
uint64_t gs_cpu__sequence_floats(const gs_cpu *cpu, const gs_program *p, const gs_stage *stage);

#endif /* GS_DEVICE_CPU_CPU_H */
