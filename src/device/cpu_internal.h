/* cpu_internal.h - the CPU device's own parts, for each other and for tests.
 *
 *   cpu.c          opening, scratch memory, small launches
 *   cpu_isa.c      which kernels this CPU may run
 *   cpu_edges.c    edge launches: ranges of targets over threads
 *   cpu_edge_plan.c     edge programs: instructions to steps on tiles of edges
 *   cpu_edge_layout.c   edge programs: scratch of a tile
 *   cpu_edge_batch.c    edge programs: gradients of the matrices of edges' types
 *   cpu_edge_program.c  edge programs: targets over threads, and sums before and after
 *   cpu_sequence.c      LSTMs over edges: targets over tiles, tiles over threads
 *   cpu_sequence_order.c the order of steps where edges have types
 *   cpu_sequence_tile.c the steps of one tile, forward and backward
 *   cpu_resolve.c  vertex launches: instructions to steps with pointers, and
 *                  which steps may run block by block without waiting
 *   cpu_vertex.c   vertex launches: steps over threads
 *   cpu_gemm.c     dense products (oneDNN)
 *   cpu_measure.c  ceilings
 *
 * Results do not depend on the number of threads: work is cut by sizes alone, and
 * partial sums are added in the order of their parts.
 */
#ifndef GS_DEVICE_CPU_INTERNAL_H
#define GS_DEVICE_CPU_INTERNAL_H

#include "device/cpu_kernels.h"
#include "device/device_table.h"

/* Most lots that the rows of a launch are dealt in. Each has its own partial sums. */
#define GS_CPU_LOTS 64
#define GS_CPU_STEP_REGS 4

/* A register's memory as a step sees it. */
typedef struct gs_cpu_range {
    const char *p;
    uint64_t row_bytes;
} gs_cpu_range;

/* An instruction with everything looked up. Pointers are those of row 0. */
typedef struct gs_cpu_step {
    gs_op op;
    uint32_t width;          /* of dst; REDUCE and losses: of a */
    float *dst;              /* NULL where the result is no register */
    gs_cpu_operand a, b, c;  /* elementwise */
    const void *source;      /* CAST: a */
    gs_dtype source_type;
    uint16_t *rounded;       /* ROUND: dst, bf16 */
    uint32_t a_width;        /* ROWSUM, columns, and products: of a */
    uint32_t first;          /* PART: column */
    const void *id, *split;  /* DROPOUT, losses: b (ids, labels) and c; EDGE_MASK: b and a */
    float alpha;
    gs_cpu_dropout dropout;
    const float *weight;     /* products: parameter [weight_rows, weight_cols] */
    uint32_t weight_rows, weight_cols;
    uint32_t matrices;       /* FAN...: in the parameter, one above the other */
    const float *turned;     /* MATMUL_T, FAN, FAN_T: the weight as [a_width, width], or NULL */
    bool adds;               /* products: to what is in dst */
    bool joined;             /* ADD: the products that it adds up have done so */
    gs_cpu_mix mix;          /* MIX, MIX_T; MIX_OUTER: `each` alone */
    float *grad;             /* REDUCE */
    double *statistic;       /* STATISTIC: [2 * width] */
    uint64_t partial;        /* COLSUM, STATISTIC, OUTER within a run: first float within a lot's sums */
    gs_cpu_range reg[GS_CPU_STEP_REGS]; /* dst first where there is one */
    uint32_t regs;
    uint32_t run_end;        /* first step of a run: the step after its last one */
    uint64_t run_partial;    /* first step of a run: floats of a lot's partial sums */
    uint32_t cheap_end;      /* first of a sequence without products: the step after it ... */
    uint32_t block_rows;     /* ... and the rows at a time that stay in the cache */
} gs_cpu_step;

/* What is known of an edge register while a plan is made. */
typedef struct gs_cpu_edge_state {
    uint32_t uses;
    bool needed;             /* for the sums that the plan is of */
    bool ready, foldable;    /* foldable: the one that uses it can multiply on the way */
    gs_cpu_edge_value a, b;  /* b: the value is a * b */
} gs_cpu_edge_state;

/* What the edge program of a stage needs. */
typedef struct gs_cpu_edge_needs {
    uint32_t steps, states;
    uint64_t floats;     /* of scratch, a thread */
    uint64_t row_floats; /* of the accumulators of one target */
} gs_cpu_edge_needs;

/* Most pieces that the targets with very many edges are cut in, all together. */
#define GS_CPU_HUB_PIECES 128

typedef struct gs_cpu {
    /* set by open */
    const gs_cpu_kernels *k;
    unsigned threads;
    char name[128];
    /* set by prepare: room, whose contents outlive no launch, `turned` excepted */
    gs_cpu_step *step;
    uint32_t steps;
    float *partial;          /* [lots][run_partial] of a run */
    uint64_t partial_floats; /* of all lots together */
    float *turned;           /* weights of a stage as products take them: transposed, or by type side by side */
    uint64_t turned_floats;
    bool in_pass;            /* launches use the same parameters until the pass ends */
    const gs_stage *turned_stage; /* of the pass's last launch; its weights stand in `turned` if ... */
    bool turned_there;
    float *outer;            /* of an outer product that is a run of its own */
    uint64_t outer_floats;
    gs_cpu_edge_step *edge_step;
    gs_cpu_edge_slot *edge_slot;
    uint32_t edge_steps;     /* and slots */
    gs_cpu_edge_state *edge_state;
    uint32_t edge_states;
    float *edge_scratch;     /* [threads][edge_floats] */
    uint64_t edge_floats;
    float *sequence;         /* [sequence_floats] */
    uint64_t sequence_floats;
    float *matrices;         /* of edges' types, transposed: [matrix_floats], */
    uint64_t matrix_floats;
    const gs_stage *matrix_stage; /* those of this stage, in the pass that goes on; else NULL */
    float *kept;             /* rows of edges by type, and their order: [kept_floats] */
    uint64_t kept_floats;
    float *hub_rows;         /* [GS_CPU_HUB_PIECES][hub_row_floats] */
    uint64_t hub_row_floats;
    gs_metrics lot_metrics[GS_CPU_LOTS];
} gs_cpu;

gs_status gs_cpu__open(const gs_device_ops **ops, void **context, unsigned threads);

/* The best kernels that this CPU and GS_ISA (generic, avx2, avx512) allow. `note` says, for
 * the device's name, when GS_ISA asked for other ones ("" else). GS_EINVAL for an unknown GS_ISA. */
gs_status gs_cpu__kernels(const gs_cpu_kernels **out, const char **note);

/* Set by a test: opened devices use these. */
extern const gs_cpu_kernels *gs_cpu__test_kernels;

/* Every launch lies between these: OpenMP, and oneDNN with it, use the device's threads, or one
 * where the launch is a single task: waking the others would cost more than a small task takes. */
int gs_cpu__enter(const gs_cpu *cpu, uint64_t tasks);
void gs_cpu__leave(int before);

gs_status gs_cpu__run_edges(void *context, const gs_edge_launch *l);
gs_status gs_cpu__run_edge_program(void *context, const gs_edge_program_launch *l);
gs_status gs_cpu__begin_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                            uint32_t heads);
gs_status gs_cpu__finish_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                             uint32_t heads);
/* Targets of a launch in ranges of about equal work; the results of a range do not depend on it. */
typedef struct gs_cpu_cut {
    const uint32_t *start;
    uint32_t targets;
    uint64_t work, ranges;
} gs_cpu_cut;

gs_cpu_cut gs_cpu__cut(const gs_cpu *cpu, const gs_edges *e);
/* First target of range r; r may be the number of ranges. */
uint32_t gs_cpu__cut_target(const gs_cpu_cut *c, uint64_t r);

/* What edge_mask draws with; false for a probability outside [0, 1). */
bool gs_cpu__edge_mask(gs_cpu_dropout *out, const gs_instr *in, uint64_t seed, uint32_t epoch);

/* Fills `plan` for the launch's sums but OUTER, or for the one `outer` (else GS_NONE), with the room that prepare took;
 * GS_EINVAL names the stage and the instruction or sum. */
gs_status gs_cpu__plan_edges(gs_cpu_edge_plan *plan, const gs_cpu *cpu, const gs_edge_program_launch *l,
                             uint32_t outer);
gs_cpu_edge_needs gs_cpu__edge_needs(const gs_stage *stage);
/* cpu_edge_layout.c: places of slots, edges of a tile, whether it only adds rows;
 * floats of scratch of so many edges, and at the most. */
void gs_cpu__lay_out_edges(gs_cpu_edge_plan *plan, uint32_t lanes);
uint64_t gs_cpu__edge_tile_floats(uint64_t floats, uint64_t edges);
uint64_t gs_cpu__most_edge_floats(uint64_t floats, bool batched);

/* cpu_edge_batch.c: what products by the matrix of an edge's type need beside, in floats: matrices transposed; rows
 * kept for gradients. */
uint64_t gs_cpu__turned_matrix_floats(const gs_program *p, const gs_stage *stage);
uint64_t gs_cpu__kept_floats(const gs_stage *stage);
/* The stage's matrices, transposed where they are to be multiplied by so, once a pass. */
void gs_cpu__turn_matrices(gs_cpu *cpu, const gs_edge_program_launch *l);
/* Where those of a by_type_t are. */
const float *gs_cpu__turned_matrices(const gs_cpu *cpu, const gs_edge_program_launch *l, const gs_instr *in);
/* The sums of kind OUTER of a launch. */
gs_status gs_cpu__run_outers(gs_cpu *cpu, const gs_edge_program_launch *l);

gs_status gs_cpu__run_sequence(void *context, const gs_sequence_launch *l);
gs_status gs_cpu__run_sequence_back(void *context, const gs_sequence_launch *l);
/* Floats of scratch that the stage's sequence wants, all threads together; 0 without one. */
uint64_t gs_cpu__sequence_floats(const gs_cpu *cpu, const gs_program *p, const gs_stage *stage);

gs_status gs_cpu__run_vertex(void *context, const gs_vertex_launch *l);

/* Fills cpu->step for a launch; GS_EINVAL names the stage and the instruction. */
gs_status gs_cpu__resolve(gs_cpu *cpu, const gs_vertex_launch *l);

static inline bool gs_cpu__is_product(gs_op op)
{
    return op == GS_OP_MATMUL || op == GS_OP_MATMUL_T || op == GS_OP_FAN || op == GS_OP_FAN_T;
}

/* An outer product over `rows` that is a run of its own: all threads compute it together. */
bool gs_cpu__stands_alone(const gs_cpu_step *s, uint32_t rows);
/* Is the gradient small enough, beside so many rows, for each lot to have one of its own? */
bool gs_cpu__outer_is_small(uint32_t out, uint32_t in, uint32_t rows);
/* Floats of a lot's partial sums for an operator into a parameter [rows, cols]: of COLSUM also those of the part that
 * it is busy with, of statistics two doubles a column. Even, so that doubles are aligned. */
static inline uint64_t gs_cpu__lot_floats(gs_op op, uint32_t rows, uint32_t cols)
{
    const uint64_t n = (uint64_t)rows * cols;
    return op == GS_OP_COLSUM ? 2 * n : gs_op_is_outer(op) ? n + n % 2 : 4 * n;
}
/* Floats that a launch may need for partial sums of `floats` a lot. */
uint64_t gs_cpu__partial_floats(uint64_t floats);

/* c[m, n] = op(a) op(b) + beta c, rows contiguous, op 'N' or 'T', on the calling thread of a parallel region. */
bool gs_cpu__sgemm(char ta, char tb, uint32_t m, uint32_t n, uint32_t k, const float *a, uint32_t lda, const float *b,
                   uint32_t ldb, float beta, float *c, uint32_t ldc);
/* Transposes the weights of the launch's steps where products have so many rows, in this launch or in the pass, that it
 * pays. */
void gs_cpu__turn_weights(gs_cpu *cpu, const gs_vertex_launch *l);
/* Is the operator's weight laid out anew there? */
bool gs_cpu__is_turned(gs_op op);
/* The rows [first, first + rows) of a product, on the calling thread. False when oneDNN fails. */
bool gs_cpu__product_rows(const gs_cpu_step *s, uint32_t first, uint32_t rows);
/* Are the sums of a lot the transpose of the gradient? */
bool gs_cpu__outer_is_turned(const gs_cpu_step *s);
/* sum = (or +=) a' b over the rows [first, first + rows), on the calling thread; b' a where it is turned. */
bool gs_cpu__outer_rows(const gs_cpu_step *s, uint32_t first, uint32_t rows, float *sum, bool add);
/* grad += a' b over all rows, on all threads. */
gs_status gs_cpu__outer(gs_cpu *cpu, const gs_cpu_step *s, uint32_t rows);
/* Floats of partial sums that an outer product of this shape wants. */
uint64_t gs_cpu__outer_floats(uint32_t out, uint32_t in);
/* What oneDNN may take for packing, all threads together. */
uint64_t gs_cpu__gemm_bytes(const gs_cpu *cpu);
/* First calls on every thread: the library makes its code and its threads there. */
gs_status gs_cpu__gemm_warm(const gs_cpu *cpu);

gs_status gs_cpu__measure_gemm(void *context, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second);
gs_status gs_cpu__measure_gather(void *context, uint64_t table_rows, uint32_t width, double *bytes_per_second);
gs_status gs_cpu__measure_copy(void *context, double *bytes_per_second);

#endif /* GS_DEVICE_CPU_INTERNAL_H */
