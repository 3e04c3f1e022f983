/* program.h - what a compiled model is: stages over vertex arrays and edges.
 *
 * Data only: compile makes it, schedule lays it over chunks and budgets,
 * exec walks it, a device runs its launches. Nothing here knows chunks,
 * files or memory.
 *
 * A program reads and writes *arrays* of one row a vertex (from the store, or
 * made by the run), updates the gradients of *parameters*, and consists of
 * *stages*, run in order. A stage is
 *   1. optionally an edge pass: sums over the in-edges (GS_BY_DEST order) or
 *      out-edges of every vertex, of rows of arrays that earlier stages or the
 *      store hold (SAGA-NN's Scatter-ApplyEdge-Gather);
 *   2. a vertex program: instructions over tiles of rows, run for an interval
 *      as soon as its sums are complete (SAGA-NN's ApplyVertex).
 * A *pass* is a range of stages: one training epoch, one evaluation, ... A pass called "setup"
 * runs once, before any other, and what it stores keeps its rows for all of them.
 */
#ifndef GS_PROGRAM_PROGRAM_H
#define GS_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/dtype.h"
#include "base/initial.h"
#include "base/status.h"
#include "tensor/op.h"

#define GS_NAME_BYTES 64
#define GS_NONE UINT32_MAX
#define GS_STAGE_SUMS 4

/* One row a vertex, `width` elements a row. */
typedef struct gs_array {
    char name[GS_NAME_BYTES]; /* "features", "layer0.h" */
    gs_dtype dtype;           /* made by the run: GS_F32, or GS_BF16 (an even width) */
    uint32_t width;
    int store_id;             /* gs_array_id of the store, or -1: made by the run */
    bool lasting;             /* of the run; no pass makes it: it keeps its rows, and changes between passes alone */
    bool result;              /* of the run, which reads it when the pass that makes it is over */
    bool outside;             /* rows are always the caller's (gs_exec_outside): a device with memory of its own has no
                               * place for them */
} gs_array;

/* A figure that a pass computes over all vertices, and that later stages of the pass read as a parameter. */
typedef enum gs_statistic { GS_STATISTIC_NONE, GS_STATISTIC_MEAN, GS_STATISTIC_VARIANCE } gs_statistic;

/* A learned tensor, [rows, cols] row-major ([out, in] for weights), or [cols]
 * with rows == 1 and dims == 1 (a bias). */
typedef struct gs_param {
    char name[GS_NAME_BYTES]; /* PyG's name: "convs.0.lin.weight" */
    uint32_t dims, rows, cols;
    gs_initial initial;       /* how it starts; of a fixed one FILL */
    bool fixed;               /* not learned: no gradient, no weight decay */
    bool learns;              /* some pass has a gradient of it: else no result depends on it */
    bool counter;             /* fixed, one element: counts training passes; in files an I64 without dimensions */
    gs_statistic statistic;   /* else NONE: fixed, [cols], made by a pass; in no file */
    uint32_t running;         /* of a statistic: the fixed parameter that follows it from pass to pass, or GS_NONE */
    uint32_t shape_dims, shape[3]; /* as files have it, where that is not dims, rows, cols; 0: it is */
} gs_param;

/* Learned rows of vertices, [vertices, width]. */
typedef struct gs_table {
    char name[GS_NAME_BYTES]; /* in files */
    uint32_t width;
    uint32_t blocks;    /* files have it as [blocks, vertices, width / blocks]; 0: as it is */
    gs_initial initial; /* how its rows start; not GLOROT */
    uint32_t array;    /* lasting */
    uint32_t gradient; /* array, a result of the pass "train"; GS_NONE: no result depends on the table */
    /* Lasting arrays like it that whoever trains adds: runs of optimiser state, and its best rows; GS_NONE: none. */
    uint32_t state[2], best;
} gs_table;

typedef enum gs_reg_kind {
    GS_REG_LOAD, /* rows of `array`, in that array's type; never written */
    GS_REG_SUM,  /* the edge pass's sums of these rows; never written */
    GS_REG_TEMP, /* of a tile: f32 scratch, or what is stored, in its array's type */
    GS_REG_KINDS
} gs_reg_kind;

/* A register holds [tile rows, width], rows contiguous. Each is written by at
 * most one instruction (SSA), so that schedule can overlay their memory. */
typedef struct gs_reg {
    gs_reg_kind kind;
    gs_dtype dtype;
    uint32_t width;
    uint32_t array; /* GS_REG_LOAD: read from; GS_REG_TEMP: stored to, or GS_NONE */
} gs_reg;

typedef enum gs_operand_kind { GS_FROM_NONE, GS_FROM_REG, GS_FROM_PARAM, GS_FROM_CONST } gs_operand_kind;

typedef struct gs_operand {
    gs_operand_kind kind;
    uint32_t index; /* register or parameter */
    float value;    /* GS_FROM_CONST */
} gs_operand;

/* One instruction. `dst` is a register, except for class REDUCE, where it is
 * the parameter whose gradient is accumulated (+=), class STATISTIC, where it is the statistic, and for a loss whose
 * gradient is not wanted, where it is GS_NONE.
 *
 *   elementwise  dst = f(a, b, c); operands broadcast as op.h says
 *   dropout      a: values; b: register of input ids (u32, width 1). Element (r, c) is kept
 *                when gs_uniform_f32(word[c % 4]) >= alpha, word = philox(counter {id of row r,
 *                c / 4, site, epoch}, key (seed, GS_RANDOM_DROPOUT)), and scaled by 1 / (1 - alpha).
 *                Its derivative is the same instruction on the gradient.
 *   edge_mask    in an edge program; a, b: registers of input ids (u32, width 1), of the edge's source and
 *                destination. Column c of an edge is 1 / (1 - alpha) when gs_uniform_f32(word[c % 4]) >= alpha,
 *                else 0: word = philox(counter {a, b, rank * ceil(width / 4) + c / 4, type}, key
 *                gs_random_edge_key(seed, site, epoch)). type: of the edge, 0 where the graph has none; rank: how
 *                many edges of its two ends and type are before it (both copies of the edges have one order for them,
 *                and a chunk has them all). `self` and a == b: rank and type 0. In a vertex program rank
 *                and type are 0: what the vertex itself draws.
 *   is_loop      in an edge program; a, b as edge_mask's: 1 where they are equal, else 0; width 1
 *   round        dst, of an array of bf16 = a, to the nearest, ties to even
 *   matmul_t     a: register [., in], b: parameter [out, in] -> [., out]
 *   matmul       a: register [., out], b: parameter [out, in] -> [., in]
 *   outer        grad(dst)[out, in] += a[., out]' @ b[., in]
 *   fan          a: register [., in], b: parameter [t * in, out] -> [., t * out]: a by each of the t matrices
 *   fan_t        a: register [., t * out], b: parameter [t * in, out] -> [., in]: sum over the matrices of block by
 *                matrix'
 *   fan_outer    grad(dst)[t * in, out]: matrix i += a' @ block i of b, a [., in], b [., t * out]
 *   mix          a: register [., m * w], b: parameter [m, n] -> [., n * w]: block j of w columns is the sum over i of
 *                b[i, j] times block i of a
 *   mix_t        a: register [., n * w], b: parameter [m, n] -> [., m * w]: block i = sum over j of b[i, j] block j
 *   mix_outer    grad(dst)[m, n] += over all rows, of each block of a [., m * w] with each of b [., n * w], the dot
 *                product
 *   colsum       grad(dst)[w] += sum of the rows of a
 *   concat       dst[., wa + wb] = columns of a [., wa], then of b [., wb]; registers
 *   part         dst[., w] = columns [site, site + w) of register a
 *   mean_all, var_all  over the rows of all vertices: mean and biased variance of each column of a [., w], from sums in
 *                float64. dst: the statistic [w], which is there for the stages that follow.
 *   xent(_grad)  a: logits; b: register of labels (i32), c: register of splits (u8).
 *                Adds to the launch's metrics: over training rows the summed loss, over validation rows likewise, and
 *                for each split the labelled rows and how many the largest logit (lowest index wins ties) hits, of each
 *                class where that is wanted. The loss of a row with label y is
 *                the sum over classes k of q[k] * -log_softmax[k], with q[k] = (1 - s) w[y] at k = y, and s w[k] / K
 *                besides; w: the launch's weights, s: its smoothing (as PyTorch's cross_entropy).
 *                _grad: dst = (softmax * sum(q) - q) * scale, 0 off the training rows.
 *   bce(_grad)   b: labels, u8 of the logits' width: 0, 1, or GS_LABEL_UNKNOWN, which counts nowhere. The loss of an
 *                element x is -(w y log(sigmoid(x)) + (1 - y) log(1 - sigmoid(x))), w of its column. The metrics' rows
 *                count elements that are known, and columns add up what GS_LOSS_SUMS says.
 *   mse(_grad)   b: labels, f32 of the logits' width (NaN: not known), or u8, or i32 of width 1 (below 0: not known).
 *                d^2, d = x - y, likewise.
 *   huber(_grad) likewise d^2 / 2 where |d| <= 1, else |d| - 1 / 2. */
typedef struct gs_instr {
    gs_op op;
    uint32_t dst;
    gs_operand a, b, c;
    float alpha;
    uint32_t site; /* dropout, edge_mask: a number for each dropout of the model; dense: of a parameter's part */
    bool self;     /* edge_mask: all self loops of a vertex draw the same */
} gs_instr;

/* Operand k of an instruction, from 0. */
static inline const gs_operand *gs_instr_operand(const gs_instr *i, uint32_t k)
{
    return k == 0 ? &i->a : k == 1 ? &i->b : &i->c;
}

/* A sum that an edge pass accumulates for a vertex over its edges. Edges have a target
 * end (the vertex that accumulates) and an operand end: by in-edges the target is the
 * destination, by out-edges it is the source. No edges: 0 for every kind. */
typedef enum gs_sum_kind {
    GS_SUM_ADD,      /* edge register `value`: acc += value (of rows as they are see gs_row_sum) */
    GS_SUM_ADD_TYPE, /* the same by edge type t: acc[t * w, +w) += value [w] */
    GS_SUM_MAX,      /* acc = max(acc, value), element by element */
    GS_SUM_MIN,
    GS_SUM_MAX_HELD, /* the same of `value` [w], and for each column which edges have it: `score` is a number of the
                      * edge's source, above 0, or of whatever tells edges apart. acc [3 * w]: the largest; the number
                      * of those that have it where that is one, else 0; how many edges have it. NaN: 0 and 0 */
    GS_SUM_MIN_HELD,
    GS_SUM_ATTEND,    /* acc = sum of softmax(score) * value: `score` is [h], `value` [h * d], the softmax is over
                       * the vertex's edges, for each of the h heads; in one pass, with the running maximum and
                       * sum kept per vertex. `lse` gets log(sum(exp(score))) (-inf without edges). */
    GS_SUM_LSTM,      /* acc = state after the vertex's edges in order, from 0: gates i, f, g, o = value + state @ w',
                       * `value` [4h] an OPERAND register, w the parameter `weight` [4h, h];
                       * c = sigmoid(f) c + sigmoid(i) tanh(g), state = sigmoid(o) tanh(c) */
    GS_SUM_LSTM_BACK, /* its derivative, which ends at the operand end: for `score`, a TARGET register [h] with the
                       * gradient of the last state, that of the rows of `value` becomes the array `array` (0 where
                       * no edge starts), for later stages, and that of `weight` is added up where it is `learned` */
    GS_SUM_OUTER, /* grad(weight) of the matrix of the edge's type += score' @ value: `weight` [t * in, out], `score`
                   * [in], `value` [out]. Its register [1] stays 0: only the gradient comes of it. */
    GS_SUM_KINDS
} gs_sum_kind;

typedef struct gs_sum {
    uint32_t reg;   /* GS_REG_SUM: what the vertex program sees; LSTM_BACK: GS_NONE */
    bool self;      /* a sum of rows that is not by type: the vertex's own row is added too, scaled likewise */
    gs_sum_kind kind;
    uint32_t value, score; /* edge registers; score: ATTEND, OUTER, LSTM_BACK, MAX_HELD, MIN_HELD */
    uint32_t lse;          /* ATTEND: GS_REG_SUM of width h */
    uint32_t weight;       /* OUTER, LSTM, LSTM_BACK: parameter; these two are their stage's only sum */
    bool learned;          /* LSTM_BACK */
    uint32_t array;        /* LSTM_BACK: written; else GS_NONE */
    bool dense;            /* OUTER: of the part [score, value] of the one matrix `weight`, as `dense` has it, */
    uint32_t site;         /* from here on */
    bool beside;           /* ATTEND: the vertex's own score counts, too, but elsewhere: edges whose scores are all -inf
                            * have no share; else their shares are not numbers */
} gs_sum;

static inline bool gs_sum_is_held(gs_sum_kind kind) { return kind == GS_SUM_MAX_HELD || kind == GS_SUM_MIN_HELD; }

static inline bool gs_sum_is_sequence(const gs_sum *s)
{
    return s->kind == GS_SUM_LSTM || s->kind == GS_SUM_LSTM_BACK;
}

/* Registers of an edge program: one row an edge, f32; they exist for a tile of edges only,
 * never for all edges. */
typedef enum gs_edge_reg_kind {
    GS_EDGE_OPERAND, /* row of `array` at the operand end */
    GS_EDGE_TARGET,  /* row of `array` at the target end */
    GS_EDGE_WEIGHT,  /* the edge's weight, width 1 */
    GS_EDGE_FEATURES, /* of the edge's features the columns from `first` on */
    GS_EDGE_TEMP,    /* written by one instruction */
    GS_EDGE_REG_KINDS
} gs_edge_reg_kind;

typedef struct gs_edge_reg {
    gs_edge_reg_kind kind;
    uint32_t width;
    uint32_t array; /* OPERAND, TARGET: f32 array, or for edge_mask the u32 input ids, or for a sum of rows that is not
                     * by type bf16 or f16, or for an edge program without types bf16 of an even width, whose numbers
                     * become f32 as they are read; else GS_NONE */
    bool typed;     /* OPERAND, TARGET: of an array of types * width columns, those of the edge's type */
    uint32_t first, columns; /* FEATURES: the first column, and how many an edge has in all */
} gs_edge_reg;

/* For what the products of an edge program by the matrices of edges' types are made (products.h). */
typedef enum gs_products {
    GS_PRODUCTS_OF_EDGES,
    GS_PRODUCTS_OF_RUNS, /* for the edges of a chunk that have target and type in common, of the sum of their rows */
    GS_PRODUCTS_OF_PAIRS, /* for those that have operand and type in common, each of which then reads the product */
} gs_products;

typedef struct gs_stage {
    char name[GS_NAME_BYTES]; /* for traces and `plan`: "forward 1: sum_in(layer0.y)" */
    uint32_t sums;            /* 0: no edge pass */
    uint32_t direction;       /* of all sums: 0 in-edges, 1 out-edges (gs_direction) */
    gs_sum sum[GS_STAGE_SUMS];
    uint32_t regs, instrs;
    gs_reg *reg;
    gs_instr *instr;
    /* The edge program that sums take their values from:
     * elementwise instructions (with fold, spread; parameters of one dimension broadcast)
     * whose registers are edge registers, by_type, by_type_t: a: register, b: parameter [t * in, out], and dense, _t
     * by a part of a parameter, `site` (tensor/op.h). */
    uint32_t edge_regs, edge_instrs;
    gs_edge_reg *edge_reg;
    gs_instr *edge_instr;
    gs_products products;     /* of others than edges only where gs_stage_find_products() says so; */
    unsigned tried;           /* bits 1 << gs_products of others that a device must be ready for, too: before the first
                               * epoch it is measured which of them takes least */
    double runs_per_edge, pairs_per_edge; /* of these, as a plan expects; 0: not counted */
    uint32_t pair_portion;    /* pairs that are made at a time; 0: as many as runs */
    uint32_t alone;           /* 1 + the one of several devices that has all of its columns; 0: they are dealt */
} gs_stage;

/* Does the stage's edge program look at types of edges, but for what a mask draws by? */
static inline bool gs_stage_has_types(const gs_stage *s)
{
    for (uint32_t r = 0; r < s->edge_regs; r++)
        if (s->edge_reg[r].typed)
            return true;
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].kind == GS_SUM_ADD_TYPE || (s->sum[i].kind == GS_SUM_OUTER && !s->sum[i].dense))
            return true;
    for (uint32_t i = 0; i < s->edge_instrs; i++)
        if (gs_op_by_type(s->edge_instr[i].op))
            return true;
    return false;
}

/* Do both sums attend by the same scores, so that maxima, norms and exponentials are the same? */
static inline bool gs_same_scores(const gs_stage *s, uint32_t a, uint32_t b)
{
    return s->sum[a].kind == GS_SUM_ATTEND && s->sum[b].kind == GS_SUM_ATTEND && s->sum[a].score == s->sum[b].score;
}

/* Are products with a matrix, one for all edges or that of an edge's type, made edge by edge? */
static inline bool gs_stage_has_products(const gs_stage *s)
{
    for (uint32_t i = 0; i < s->edge_instrs; i++)
        if (gs_op_on_edges(s->edge_instr[i].op))
            return true;
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].kind == GS_SUM_OUTER)
            return true;
    return false;
}

/* Is it worth while that sums begin and finish in the walk over edges, while the rows are in the cache? A sum that only
 * begins is cleared faster by itself. */
static inline bool gs_stage_frames_sums(const gs_stage *s)
{
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].kind == GS_SUM_ATTEND)
            return !gs_stage_has_products(s);
    return false;
}

/* Does it look at the weights of edges, or at their features? */
static inline bool gs_stage_has(const gs_stage *s, gs_edge_reg_kind kind)
{
    for (uint32_t r = 0; r < s->edge_regs; r++)
        if (s->edge_reg[r].kind == kind)
            return true;
    return false;
}

/* Where the part of a parameter begins that has so many rows, as dense products have it (tensor/op.h), in elements. */
static inline uint64_t gs_param_part(const gs_param *w, uint32_t rows, uint32_t site)
{
    return rows < w->rows ? (uint64_t)site * w->cols : site;
}

/* A sum of rows of an array as they are, each times a number of its own where there is a scale: ADD or ADD_TYPE of an
 * OPERAND register, or ADD of the product of one with another of width 1, rounded to float32. A device sums such rows
 * faster than an edge program does, and each of these sums has a launch of its own; rows of two bytes are summed as a
 * float32 copy of them, bit for bit. */
typedef enum gs_sum_types {
    GS_TYPES_NONE,
    GS_TYPES_OF_SUM,  /* by edge type t: acc[t * w, +w) += row[0, w); the sum has types * w columns */
    GS_TYPES_OF_ROWS, /* its transpose: acc[0, w) += row[t * w, +w); the array has types * w columns */
} gs_sum_types;

typedef struct gs_row_sum {
    uint32_t array;
    uint32_t scale; /* array of the numbers that operand rows are multiplied by, or GS_NONE */
    gs_sum_types types;
    uint32_t reg, scale_reg; /* their edge registers, or GS_NONE */
} gs_row_sum;

/* False, and *out untouched: the sum takes what an edge program computes. */
bool gs_sum_of_rows(gs_row_sum *out, const gs_stage *s, uint32_t sum);
bool gs_stage_sums_rows(const gs_stage *s, uint32_t sum);
/* Does the edge register serve sums of rows alone? Then no edge program needs it. */
bool gs_edge_reg_only_rows(const gs_stage *s, uint32_t reg);
/* Adds a sum of rows of `width` columns (the narrower side's) with its registers and its product, for which the stage
 * has room: GS_ROW_SUM_REGS and one. Registers that `rows` names are not looked at. */
#define GS_ROW_SUM_REGS 3u
void gs_stage_add_row_sum(gs_stage *s, const gs_row_sum *rows, uint32_t width, uint32_t reg, bool self);
/* Is there a sum that takes what an edge program computes? */
bool gs_stage_has_edge_program(const gs_stage *s);

/* Use that a stage has for rows of an array. */
typedef enum gs_use_role {
    GS_USE_OPERAND, /* edge pass: at the operand ends of edges */
    GS_USE_SCALE,   /* edge pass: the same, for the numbers that operand rows are multiplied by */
    GS_USE_TARGET,  /* edge pass: at the target ends */
    GS_USE_OWN,     /* edge pass: of the vertex that accumulates, added to its sum or multiplied with what is */
    GS_USE_BACK,    /* edge pass: written at the operand ends */
    GS_USE_LOAD,    /* vertex program: read */
    GS_USE_STORE,   /* vertex program: written */
} gs_use_role;

/* Of those rows that edges name at their operand ends? */
static inline bool gs_use_by_edges(gs_use_role r) { return r == GS_USE_OPERAND || r == GS_USE_SCALE; }

typedef struct gs_array_use {
    gs_use_role role;
    uint32_t array;
    uint32_t sum;  /* that takes the rows as they are, or writes them; else GS_NONE */
    uint32_t reg;  /* edge register, of LOAD and STORE register; GS_NONE for a sum's */
    uint32_t next; /* of gs_stage_next_use(): 0 before the first */
} gs_array_use;

/* The next use that the stage makes of an array, in the order sums, edge registers, registers; false after the last. An
 * array that is used in several ways, or by several registers, comes several times:
 *     for (gs_array_use u = {0}; gs_stage_next_use(s, &u);) */
bool gs_stage_next_use(const gs_stage *s, gs_array_use *u);

typedef struct gs_pass {
    char name[16]; /* "train", "eval", "predict" */
    uint32_t first_stage, stages;
} gs_pass;

typedef struct gs_program {
    uint32_t arrays, params, stages, passes;
    gs_array *array;
    gs_param *param;
    gs_stage *stage;
    gs_pass *pass;
    uint32_t logits; /* array written by the predict pass, or GS_NONE */
    uint32_t tables;
    gs_table *table;
    uint32_t results, result[2]; /* of a layer: arrays that are read when their pass is over */
    uint32_t packed_rows; /* of an operand interval, whose numbers a device may pack for an edge pass; 0: none */
} gs_program;

/* An empty program; NULL when memory is short. */
gs_program *gs_program_new(void);
void gs_program_free(gs_program *p); /* NULL is allowed */

/* Adds an array; *out gets its index. GS_ENOMEM. */
gs_status gs_program_add_array(gs_program *p, uint32_t *out, const gs_array *a);
/* Adds a parameter that no stage reads. GS_ENOMEM. */
gs_status gs_program_add_param(gs_program *p, const gs_param *q);
/* Index of the pass of this name, GS_NONE where there is none. */
uint32_t gs_program_pass(const gs_program *p, const char *name);
/* Index of the array that the store, or the caller, has under this number, GS_NONE where there is none. */
uint32_t gs_program_stored(const gs_program *p, int id);
uint64_t gs_param_elements(const gs_param *p);
/* Wherever a program's parameters are, their gradients, or an optimiser's state, they are one run of floats: the
 * learned ones first, each from a multiple of GS_PARAM_ALIGN on (64 bytes), with zeros in between. So gradients are
 * cleared, added up over devices, and stepped with, all at once. at [params]: the float at which each begins. Gives the
 * floats of those that are learned; *all: of all. Sizes have been checked (gs_params_elements()). */
#define GS_PARAM_ALIGN 16u
uint64_t gs_program_place_params(const gs_program *p, uint64_t *at, uint64_t *all);

/* Has the pass values over all vertices (batch statistics)? Then every row of every array that it makes counts, and
 * none may be left out because the loss does not see it. */
bool gs_program_needs_all_rows(const gs_program *p, uint32_t pass);
/* Does the pass compute other logits than an evaluation would: random numbers, batch statistics? */
bool gs_program_train_differs(const gs_program *p, uint32_t pass);
/* Does any stage go over edges in their order (GS_SUM_LSTM)? */
bool gs_program_has_sequences(const gs_program *p);

/* Columns of the logits of a loss that adds up figures of columns (gs_op_has_column_sums()), and of any; 0: none. */
uint32_t gs_program_loss_columns(const gs_program *p);
uint32_t gs_program_loss_width(const gs_program *p);
/* Classes of a loss of one class a row; 0: there is none. */
uint32_t gs_program_loss_classes(const gs_program *p);

/* Stages with an edge pass and a vertex program become two, but for those of the pass "setup" and where an edge pass
 * makes gradients: the first stores the sums, the second loads them. What is computed stays the same to the bit.
 * GS_ENOMEM: the program is fit to be freed alone. */
gs_status gs_program_split(gs_program *p);

/* Edge passes become `parts` (2 to GS_STAGE_PARTS) stages, each of which sums some columns of the rows over all edges,
 * on one of so many devices, and stores them; their stage loads all. Who makes the rows stores them so, too.
 * takes [stages]: which; gs_stage_parted_width() is at least `parts` for each. What is computed stays the same to the
 * bit. GS_ENOMEM: the program is fit to be freed alone. */
#define GS_STAGE_PARTS 16u
gs_status gs_program_part_widths(gs_program *p, uint32_t parts, const bool *takes);
/* Columns of the sums of the stage's edge pass, each of which depends on the same column alone of rows that the run
 * makes, or on numbers of width 1; 0: there is none, or that is not so. */
uint32_t gs_stage_parted_width(const gs_program *p, uint32_t stage);

/* Checks that the data obeys what this header says: indices in range, widths fit
 * their operators, SSA, loads and sums written by an earlier stage of the same pass or
 * in the store, nothing stored twice in a pass. GS_EINVAL names the stage and instruction. */
gs_status gs_program_check(const gs_program *p);

/* One readable line an array, parameter, sum and instruction. */
void gs_program_print(const gs_program *p, FILE *out);
void gs_program_print_stage(const gs_program *p, uint32_t index, FILE *out);

/* Floating-point operations of a stage whose vertex program runs on `rows` rows and whose sums go over `edges` edges (a
 * multiply-add counts two): dense products, those of runs for as many as are expected, and edge sums. */
void gs_stage_flops(const gs_program *p, const gs_stage *s, uint64_t rows, uint64_t edges, double *dense, double *edge);

/* -- what is left of a stage's vertex program in rows where some of what it reads is 0?
 *
 * The rows that a batch reached last have no in-edges, and gradients flow to few of their arrays: most of what a stage
 * computes there is a sum with 0 or a product by it. What is left is a shorter list of instructions on the same
 * registers, so it runs where the plan has laid these. Its results are those of the whole list, but for the sign of a
 * 0, and for what 0 times an infinity is.
 *
 * Made once a run. Any thread.
 */

/* What is known of a stage's registers in those rows: [regs] each. */
typedef struct gs_zero_rows {
    const bool *zero;   /* LOAD, SUM: it is 0 */
    const bool *unread; /* TEMP that is stored: nobody reads these rows of its array */
} gs_zero_rows;

/* *out becomes the stage with the instructions that are left, on registers of the same numbers; those that are neither
 * read nor stored any more are scratch. Its edge pass is that of `s`, which must outlive it. `s` has an instruction.
 * read [regs]: what these instructions read. Release *out with gs_stage_drop_rest(). *shorter: anything was left out;
 * if not, *out is untouched. GS_ENOMEM. */
gs_status gs_stage_rest(gs_stage *out, bool *read, bool *shorter, const gs_stage *s, const gs_zero_rows *known);
/* A stage of zeros is allowed. */
void gs_stage_drop_rest(gs_stage *left);

#endif /* GS_PROGRAM_PROGRAM_H */
