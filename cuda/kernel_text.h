/* kernel_text.h - the kernels of a program, as text.
 *
 * What a stage does to the edges of a vertex becomes one kernel (Seastar's fusion of scatter, edge and
 * gather): a group of lanes takes a target, its lanes take the columns, and it goes over the target's
 * edges in order with all edge registers in its own. What a stage does to vertices becomes one
 * kernel for each run of elementwise instructions of one width. Widths, groups and vector sizes are
 * constants of the text. No GPU is needed here, nor any device.
 */
#ifndef GS_CUDA_KERNEL_TEXT_H
#define GS_CUDA_KERNEL_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "cuda/kernels/args.h"
#include "program/program.h"

#define GS_TYPED_STEPS 32
#define GS_TYPED_TABLES 32

typedef enum gs_typed_step_kind {
    GS_TYPED_KEEP,      /* register x of every edge to its table */
    GS_TYPED_MULTIPLY,  /* table y = rows x by the matrices `param`, or a part of the one (or by their transposes) */
    GS_TYPED_ADD_OUTER, /* gradient of `param` += outer products of rows x and y */
} gs_typed_step_kind;

typedef struct gs_typed_step {
    gs_typed_step_kind kind;
    bool transposed;
    uint32_t x, y, param; /* registers of edges */
    uint64_t part;        /* of the parameter's numbers, where the matrix begins */
    uint32_t each, stride; /* numbers from a type's matrix to the next, 0 where there is one; of its rows */
} gs_typed_step;

typedef struct gs_typed_table {
    uint32_t reg, column; /* floats an edge of the tables before it */
} gs_typed_table;

typedef struct gs_typed_plan {
    uint32_t stage, types;
    bool by_type;      /* else all edges are of one type */
    bool mixed;        /* by type, and a matrix for all has a gradient: for its sake edges are of one type, too */
    uint32_t steps, tables;
    gs_typed_step step[GS_TYPED_STEPS];
    gs_typed_table table[GS_TYPED_TABLES];
    uint32_t columns;  /* of all tables, of an edge */
    uint64_t numbers;  /* of the largest matrix that has a gradient; 0: none */
} gs_typed_plan;

/* The steps of a stage that gs_stage_has_products(). GS_EUNSUPPORTED: too many. */
gs_status gs_typed_plan_stage(gs_typed_plan *b, const gs_program *p, uint32_t stage);
/* gs_typed_table.column of this register; GS_NONE: it has no table. */
uint32_t gs_typed_column(const gs_typed_plan *b, uint32_t reg);

/* A pointer that the launch puts into args.in. */
typedef struct gs_kernel_input {
    bool param;     /* a parameter; else a register */
    uint32_t index;
} gs_kernel_input;

/* A pointer that each chunk of a launch has of its own, in args.own. */
typedef enum gs_kernel_own_kind {
    GS_OWN_ACC,
    GS_OWN_MAXIMUM,
    GS_OWN_NORM,
    GS_OWN_ROWS,
    GS_OWN_FEATURES /* of edges */
} gs_kernel_own_kind;

typedef struct gs_kernel_own {
    gs_kernel_own_kind kind;
    uint32_t index; /* of the kernel's sums; ROWS, at the target end: register */
} gs_kernel_own;

/* Sums of rows of an array, of which each may be scaled, or by type, of how many types (1: none); columns of the narrow
 * side. */
typedef struct gs_row_sums {
    gs_sum_types by;
    uint32_t width, types;
    gs_dtype dtype; /* of the array: GS_F32; not by type: GS_BF16, GS_F16 too */
    bool scaled;
} gs_row_sums;

/* Sums over edges. Columns of the widest register are cut into slices; a group takes a target and a slice. */
typedef struct gs_edge_kernel {
    char name[32];           /* and name_merge, for pieces of hubs */
    gs_row_sums rows;        /* sums of rows: in[0], scaled by in[1], to own[0] */
    uint32_t width;          /* columns that all registers are seen in */
    uint32_t vector;         /* neighbouring columns a lane: 1, 2 or 4; 8 of two bytes each */
    uint32_t lanes, slots;   /* of a group; vectors a lane */
    uint32_t slice, slices;  /* columns of a group; groups a target */
    bool one_group;          /* a slice's columns share one number of each narrower register (a head's) */
    uint32_t burst;          /* edges whose rows a group loads before it looks at them */
    uint32_t blocks;         /* that a processor must hold, at least: what registers are limited to */
    uint32_t inputs;
    gs_kernel_input input[GS_EDGE_INPUTS]; /* at the operand end, and parameters */
    uint32_t owns;
    gs_kernel_own own[GS_EDGE_OWNS];
    uint32_t sums, sum[GS_EDGE_SUMS]; /* of the stage */
    uint32_t row_floats;     /* of the sums of one target: a hub's piece */
    uint32_t shared_floats;  /* a group */
    bool keeps;              /* no sums: it stores the register `kept` of each edge, own ACC, in its place by type */
    uint32_t kept;
    bool draws;              /* masks of edges, the first for dropout `site` */
    uint32_t site;
} gs_edge_kernel;

/* Rows of edges by the matrix of their type, or outer products of them by type (kernels/typed.cu). */
typedef enum gs_typed_kind { GS_TYPED_PRODUCT, GS_TYPED_PRODUCT_T, GS_TYPED_OUTER } gs_typed_kind;

typedef struct gs_typed_kernel {
    char name[40];
    gs_typed_kind kind;
    bool tf32;               /* on tensor cores, of numbers rounded so */
    uint32_t in, out;        /* columns of a row that is multiplied, and of what is made; of x and of y */
    uint32_t down, across;   /* lanes that share columns, 4 each: of x (OUTER), and of the other */
    uint32_t blocks, shared_bytes; /* blocks that share a task's or a piece's columns */
} gs_typed_kernel;

/* LSTMs over edges, of states of one width. */
typedef struct gs_sequence_kernel {
    char name[32];           /* and name_back */
    uint32_t width, rows;    /* of a state; targets of a tile */
} gs_sequence_kernel;

/* Elementwise instructions [first, end) of a stage, all of one width. */
typedef struct gs_vertex_kernel {
    char name[32];
    uint32_t stage, first, end;
    uint32_t width;
    uint32_t inputs, outputs;
    gs_kernel_input input[GS_VERTEX_INPUTS];
    uint32_t output[GS_VERTEX_INPUTS]; /* registers */
} gs_vertex_kernel;

/* Writes the kernel of such sums of rows, of any stage. */
void gs_generate_rows(FILE *out, gs_edge_kernel *k, const gs_row_sums *rows);

/* Writes the kernels of a stage's edge program into k[0 .. *count), at most GS_EDGE_SUMS: one where all widths fit
 * together, else one a sum. GS_EUNSUPPORTED names the stage and what this device does not do. */
gs_status gs_generate_edges(FILE *out, gs_edge_kernel *k, uint32_t *count, const gs_program *p, uint32_t stage);

/* Writes the kernels of LSTMs of this width, after gs_cuda_sequence_text. GS_EUNSUPPORTED: too wide. */
gs_status gs_generate_sequence(FILE *out, gs_sequence_kernel *k, uint32_t width);

/* Writes the kernel that keeps edge register `reg` of the stage. */
gs_status gs_generate_keep(FILE *out, gs_edge_kernel *k, const gs_program *p, uint32_t stage, uint32_t reg);
/* Writes the kernel of such products, after gs_cuda_typed_text. */
void gs_generate_typed(FILE *out, gs_typed_kernel *k, gs_typed_kind kind, uint32_t in, uint32_t out_width, bool tf32);

/* True for what gs_generate_vertex() fuses: elementwise, and of one width throughout. */
bool gs_generates_vertex(const gs_stage *s, const gs_instr *in);
/* Writes the kernel of the run of such instructions that begins at `first`; k->end is where it ends. */
gs_status gs_generate_vertex(FILE *out, gs_vertex_kernel *k, const gs_program *p, uint32_t stage, uint32_t first);

/* ---- for the generators ---- */

/* A number, bit for bit. */
void gs_generate_constant(char *text, size_t bytes, float value);
/* "a + b": the value of an elementwise operator of its operands; false for one that is not here. */
bool gs_generate_value(FILE *out, gs_op op, const char *const *operand, float alpha);
/* Bits that keep an element: base/philox.h makes a number of 24 of them, kept where bits * 2^-24 >= p. */
uint32_t gs_generate_threshold(float p);
/* Index of this input in k->input, added where it is new; GS_NONE when there is no room. */
uint32_t gs_generate_input(gs_kernel_input *input, uint32_t *count, uint32_t room, bool param, uint32_t index);

#endif /* GS_CUDA_KERNEL_TEXT_H */
