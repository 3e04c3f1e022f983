/* device.h - run one launch, on whatever computes.
 *
 * A device is a table of functions behind this header; other rooms call
 * gs_device_*() and never the table. The CPU device answers everything and is the
 * reference for the others.
 *
 * Threads: one thread feeds a device. Launches of the CPU device return when
 * the work is done; they use `threads` threads inside and allocate nothing. A device with memory of its own
 * (gs_device_unified() is false) may return before that: gs_device_poll() says when a launch is done. Until then the
 * memory that a launch reads must stay as it is, and what it writes is not there.
 */
#ifndef GS_DEVICE_DEVICE_H
#define GS_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h" /* GS_ENDS_BY */
#include "base/machine.h"
#include "base/status.h"
#include "program/program.h"

typedef struct gs_device gs_device;

/* What a run of the loss adds up. Index: gs_split (1 train, 2 valid, 3 test). */
typedef struct gs_metrics {
    double loss_sum;
    uint64_t rows[4], correct[4];
    double *column; /* [GS_LOSS_SPLITS][columns of the loss][GS_LOSS_SUMS] by those that add up figures of columns
                     * (tensor/op.h), the caller's; NULL: not wanted */
    double valid_loss; /* the loss of validation rows, likewise summed */
    uint32_t *found; /* [GS_LOSS_SPLITS][classes][GS_LOSS_SUMS] by a loss of one class a row, the caller's: rows of the
                      * class that are found, rows of others that are taken for it, rows of it that are taken for
                      * others; NULL: not wanted */
} gs_metrics;

/* `spec` is "cpu", "cpu:N" for one of N that share the processors, "cuda" or "cuda:N" for GPU number N,
 * "cuda:A,B,..." for the first of several, a number named twice being two devices on one GPU, or "cpu," before one of
 * the last three for the processors beside them, which are the first device. `threads` 0: all.
 * GS_EUNSUPPORTED names what is not there. */
gs_status gs_device_open(gs_device **out, const char *spec, unsigned threads);

/* Which of these words they are. */
typedef enum gs_device_words {
    GS_DEVICES_UNKNOWN,
    GS_DEVICES_CPU,    /* "cpu" */
    GS_DEVICES_PARTS,  /* "cpu:N" */
    GS_DEVICES_GPU,    /* "cuda", "cuda:N" */
    GS_DEVICES_GPUS,   /* "cuda:A,B,..." */
    GS_DEVICES_BESIDE, /* "cpu,cuda..." */
} gs_device_words;
gs_device_words gs_device_words_of(const char *spec);

/* Devices that "cpu:N" (N), "cuda:A,B,..." (as many as numbers) and "cpu,cuda..." (one more) stand for: a run copies to
 * and from each of them; 0 for other words, which stand for one. */
uint32_t gs_device_count(const char *spec);
/* Of "cpu,cuda...", what names the GPUs; NULL for other words. */
const char *gs_device_gpus_beside(const char *spec);
#define GS_DEVICE_WORDS 96u /* bytes that hold any of these words, where they name GS_DEVICE_COUNT_MOST devices */
#define GS_DEVICE_COUNT_MOST 16u

/* What products may round to, in the order of .matmul's words. */
typedef enum gs_matmul { GS_MATMUL_FP32, GS_MATMUL_TF32, GS_MATMUL_BF16 } gs_matmul;

typedef struct gs_device_config {
    const char *spec;
    unsigned threads;
    gs_matmul matmul;   /* processors: bf16 alone, where they have AVX512-BF16 */
    uint32_t index;     /* which of the several that `spec` stands for */
} gs_device_config;

gs_status gs_device_open_with(gs_device **out, const gs_device_config *config);
void gs_device_close(gs_device *d);
GS_ENDS_BY(gs_device, gs_device_close)
const char *gs_device_name(const gs_device *d); /* "cpu (AVX2, 2 threads)" */
/* Are they processors that round what dense products take? */
bool gs_device_rounds(const gs_device *d);
/* What is free of a device's own memory; UINT64_MAX where it has none. GS_EDEVICE: the device does not answer. */
gs_status gs_device_free_memory(const gs_device *d, uint64_t *bytes);
/* Of a GPU, by its attributes. False: not known, or another device. */
bool gs_device_speed(const gs_device *d, gs_gpu_speed *out);
/* Where a GPU is plugged in, "0000:3b:00.0"; "" for other devices and where it is not known. Devices on one GPU have
 * the same. */
#define GS_DEVICE_PLACE_BYTES 24u
void gs_device_bus_place(const gs_device *d, char place[GS_DEVICE_PLACE_BYTES]);
/* How a GPU reaches another one's memory, as its driver says. Of other devices, and where it is not known: not. */
typedef struct gs_device_reach {
    bool same;    /* they are one GPU */
    bool reaches; /* copies from the other go straight, over PCIe at the least */
    bool linked;  /* over links of the two (NVLink), and not over PCIe */
    int rank;     /* of what joins them: the lower, the faster */
} gs_device_reach;
gs_device_reach gs_device_reaches(const gs_device *d, const gs_device *peer);
/* From now on launches of this device read memory of `peer`; *open false: they cannot, and nothing has changed. */
gs_status gs_device_open_peer(gs_device *d, const gs_device *peer, bool *open);
/* True where the device computes on host memory: no copies, and its memory is a part of the host's. */
bool gs_device_unified(const gs_device *d);
/* Is there one that has memory of its own among them? */
bool gs_devices_have_memory(gs_device *const *device, uint32_t devices);
/* Of a device with memory of its own: bytes of it that a run takes, 0: all (as at first). Scratch is sized by it, so it
 * is said before gs_device_scratch_bytes() and gs_device_prepare(). */
void gs_device_set_budget(gs_device *d, uint64_t bytes);

/* What the libraries of devices of this kind hold now of what is resident, with all such devices that the process has
 * opened so far, and what they may take besides once a program runs. Both 0 of the processors. */
typedef struct gs_device_libraries {
    uint64_t held, later;
} gs_device_libraries;

gs_device_libraries gs_device_libraries_bytes(const gs_device *d);

/* Memory that launches of this program need beside registers (per-thread
 * partial sums, packing), taken at prepare. */
uint64_t gs_device_scratch_bytes(const gs_device *d, const gs_program *p);
/* Called once before launches of `p`: takes the scratch, warms what a library sets up lazily. */
gs_status gs_device_prepare(gs_device *d, const gs_program *p);

/* One tile of a stage's vertex program. */
typedef struct gs_vertex_launch {
    const gs_program *program;
    const gs_stage *stage;
    uint32_t rows;
    void *const *reg;         /* [stage->regs], each [rows, width] in the register's type, 4-byte aligned at least */
    const float *const *param; /* [program->params] */
    float *const *grad;       /* [program->params], accumulated */
    double *const *statistic; /* [program->params], [2 * cols]: sums of the rows and of their squares, accumulated;
                               * NULL: none */
    gs_metrics *metrics;      /* accumulated */
    uint64_t seed;
    uint32_t epoch;
    float loss_scale;         /* of the gradient: 1 / what the mean of the loss is over */
    float loss_smoothing;     /* of classes, in [0, 1) */
    const float *loss_weight; /* [columns of the loss], the host's: of classes, or of labels that are there; NULL: 1 */
    const float *loss_factor; /* of training rows, the first ones, of their losses, for the device; NULL: 1 */
} gs_vertex_launch;

gs_status gs_device_run_vertex(gs_device *d, const gs_vertex_launch *l);

/* The edges of one chunk, sorted by the end that accumulates (the target). Arrays named [edges] are indexed by
 * [start[0], start[targets]). */
typedef struct gs_edges {
    uint32_t index_bytes;   /* 2 or 4, of target and index */
    uint32_t targets;
    const void *target;     /* [targets], local to the target interval; distinct, ascending */
    const uint32_t *start;  /* [targets + 1] */
    const void *index;      /* [edges], local to the operand interval */
    const uint8_t *count;   /* [edges], how often each edge counts; NULL: once. Only sums of rows without types on a
                             * unified device have it. */
    const float *weight;    /* [edges], NULL: all 1 */
    const void *type;       /* [edges] of type_bytes, or NULL */
    uint32_t type_bytes;    /* 1, 2 or 4; 0: no types */
    gs_dtype feature_type;  /* GS_F32, GS_BF16, GS_F16 */
    const void *feature;    /* [edges] rows of as many numbers as the program's registers say, or NULL */
    uint32_t operand_rows, target_rows; /* of the two intervals */
    uint64_t end;           /* of edges in a device's own memory, `start` of which the host cannot read: it runs from 0
                             * to this. Of others: how many they are, or 0 */
    uint64_t largest;       /* no target has more edges than this; 0: not known */
} gs_edges;

static inline bool gs_edges_none(const gs_edges *e)
{
    return e->targets == 0 || (e->end == 0 && e->start[e->targets] == e->start[0]);
}

/* acc[target[t]] += sum over k in [start[t], start[t+1]) of count[k] * (scale[index[k]] * operand[index[k]])
 * (rows of `width` numbers). Adds edges of a target in order of k. A number of the operand becomes float32 and is
 * multiplied by the scale, which rounds, so sums are those of a float32 copy of the scaled rows.
 *
 * With `types` the same by edge type t (see gs_sum_types): rows of the wide side have types * width
 * numbers, of which an edge has [t * width, +width). */
typedef struct gs_edge_launch {
    gs_edges edges;
    gs_dtype dtype;     /* of operand: GS_F32, GS_BF16, GS_F16 (with types always GS_F32) */
    const void *operand;
    const float *scale; /* [operand rows], NULL: 1 (always NULL with types) */
    float *acc;
    uint32_t width;
    uint32_t types;     /* all of edges.type are below; 0: not by type */
    bool pick;          /* the wide side is the operand; else acc */
} gs_edge_launch;

gs_status gs_device_run_edges(gs_device *d, const gs_edge_launch *l);

/* Launches over edges between the two begin at the second, as few as the device can make of them; by number they are
 * one. No two of them add to the same row of the same sum, and nothing else is launched between them. Within a pass,
 * where they are of edge programs. `st`: what has happened between the two; where it is an error, nothing that waits is
 * launched any more, and it is the answer. The second ends what the first began, whatever that has answered. A device
 * on host memory makes each launch at once. */
gs_status gs_device_begin_group(gs_device *d);
gs_status gs_device_end_group(gs_device *d, gs_status st);

/* Memory of one sum over the rows of a target interval. */
typedef struct gs_accumulator {
    float *acc;     /* [rows, width] */
    float *maximum; /* ATTEND: [rows, heads], the running maximum; becomes lse */
    float *norm;    /* ATTEND: [rows, heads], sum of exp(score - maximum) so far */
    bool beside;    /* gs_sum */
} gs_accumulator;

/* Edge program of one chunk: computes the edge registers for tiles of edges and
 * accumulates the stage's sums, but for sums of rows without memory (they have launches of their own, see
 * gs_sum_of_rows()). Never holds more than a tile a thread. */
typedef struct gs_edge_program_launch {
    const gs_program *program;
    const gs_stage *stage;
    gs_edges edges;                /* types of 1 or 2 bytes, by which edge_mask draws, too */
    uint64_t seed;
    uint32_t epoch;
    const float *const *rows;      /* [edge_regs]: OPERAND, TARGET: first row of that interval (of ids: u32); else
                                    * NULL */
    const gs_accumulator *sum;     /* [stage->sums], of the target interval */
    const float *const *param;     /* [program->params] */
    float *const *grad;            /* [program->params], accumulated: OUTER; NULL: the stage has none */
    bool whole;                    /* these are all edges of the target interval, and sums begin before them and finish
                                    * behind them, row by row, without launches of their own (below). On host memory,
                                    * of a stage that gs_stage_frames_sums() */
} gs_edge_program_launch;

gs_status gs_device_run_edge_program(gs_device *d, const gs_edge_program_launch *l);

/* Before the first chunk and after the last one of a target interval, for a sum of kind ADD or
 * after: neutral values, which no edge's values make; then 0 for MAX and MIN of no edges, and for ATTEND acc /= norm
 * (of no edges 0; where all scores are -inf, NaN, or 0 beside the vertex's own) and maximum = log-sum-exp. */
gs_status gs_device_begin_sum(gs_device *d, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows,
                              uint32_t width, uint32_t heads);
gs_status gs_device_finish_sum(gs_device *d, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows,
                               uint32_t width, uint32_t heads);

/* One chunk's part of an LSTM over the edges of every target, in order of their operands (GS_SUM_LSTM). An edge
 * brings its operand's row of `gates` [., 4 * width]; `weight` is [4 * width, width]. Where edges have types, a
 * target's edges are sorted by them first. */
typedef struct gs_sequence_launch {
    gs_edges edges;
    uint32_t width;
    const float *gates, *weight;
    float *state, *cell;       /* [rows, width] of the target interval, before the chunk's first edge */
    /* backward only */
    float *d_state, *d_cell;   /* the same shape: gradients after the chunk's last edge, which become those before its
                                * first */
    float *d_gates;            /* operand rows as `gates`, accumulated */
    float *d_weight;           /* as `weight`, accumulated; NULL: not wanted */
} gs_sequence_launch;

/* Advances state and cell by the chunk's edges. */
gs_status gs_device_run_sequence(gs_device *d, const gs_sequence_launch *l);
/* The derivative; state and cell stay as they are. */
gs_status gs_device_run_sequence_back(gs_device *d, const gs_sequence_launch *l);

/* to[0..bytes) = from[0..bytes), which do not overlap. */
gs_status gs_device_copy(gs_device *d, void *to, const void *from, uint64_t bytes);

/* dst[cols] = the statistic of `rows` rows whose sums are complete. */
gs_status gs_device_finish_statistic(gs_device *d, gs_statistic kind, float *dst, const double *sums, uint32_t cols,
                                     uint64_t rows);

/* acc += scale * own, [rows, width]: what an edge of each row to itself would add. */
typedef struct gs_own_launch {
    gs_dtype dtype;     /* of own, as in gs_edge_launch */
    const void *own;
    const float *scale; /* [rows], NULL: 1 */
    float *acc;
    uint64_t rows;
    uint32_t width;
} gs_own_launch;

gs_status gs_device_add_own(gs_device *d, const gs_own_launch *l);
gs_status gs_device_zero(gs_device *d, void *memory, uint64_t bytes);
/* to[0..bytes), memory of the host, = from[0..bytes), memory that launches find, behind the launches so far. Waits for
 * them: for looking at a run, not for running it. */
gs_status gs_device_peek(gs_device *d, void *to, const void *from, uint64_t bytes);

/* ---- devices with memory of their own -------------------------------------
 *
 * Launches find everything in the device's arena: rows, chunks and sums, and the weight of a sequence outside a pass.
 * What a pass has, parameters, gradients, statistics and metrics, is named by the host's addresses. On a unified device
 * these do nothing. */

typedef struct gs_device_range {
    void *memory;
    uint64_t bytes;
} gs_device_range;

#define GS_DEVICE_HOST_RANGES 3u
typedef struct gs_device_memory {
    uint64_t arena_bytes;
    bool aligned;            /* the arena begins at a multiple of GS_BLOCK_BYTES, for which it takes as much more */
    gs_device_range host[GS_DEVICE_HOST_RANGES]; /* where copies go and come from; made fast to copy (pinned), for the
                              * other devices too */
} gs_device_memory;

/* Takes all device memory of a run, in place of what it had. *arena is an address on the device. The ranges must
 * outlive it. */
gs_status gs_device_take_memory(gs_device *d, const gs_device_memory *m, void **arena);
void gs_device_give_memory(gs_device *d);
/* A line that says why host memory of the run is not pinned, until it is given back: copies to and from it are slower,
 * and nothing else changes. NULL: all of it is. */
const char *gs_device_unpinned(const gs_device *d);
/* Waits until all that was begun on it is done or has failed, the last error untouched. Of several devices that give up
 * their memory all are waited for first: one may still copy from another, or from host memory that another one
 * pinned. */
void gs_device_quiet(gs_device *d);
/* to[i] = row place[i] of rows that devices keep in memory of their own, all of them numbered together: row r is row
 * r / devices of kept[r % devices]. Those from `rows_kept` on have come from the host: number rows_kept + first_sent is
 * the first of `sent`. All is memory of the device, but for rows of devices that gs_device_open_peer() has opened. */
#define GS_DEVICE_PICK_TABLES 8u
typedef struct gs_pick_launch {
    const void *kept[GS_DEVICE_PICK_TABLES];
    const void *sent;
    const uint32_t *place; /* [rows] */
    void *to;
    uint32_t devices, rows_kept, first_sent, rows;
    uint32_t row_bytes;    /* even; `to`, `sent` and `kept` are aligned to 16 bytes where it is a multiple of that, and
                            * to 4 where it is one of that */
} gs_pick_launch;

/* One of the copies FROM_HOST (gs_device_transfer()): made behind those before it, and done when a mark of these is. */
gs_status gs_device_pick_rows(gs_device *d, const gs_pick_launch *l);

/* A batch of neighbours, drawn there by the law of sample/sampler.h, to the bit: of each vertex that a hop reaches
 * first, or of each type, `fanout` in-edges or all, without replacement. All is the device's memory but `targets`. */
#define GS_DEVICE_DRAW_HOPS 16u
#define GS_DEVICE_DRAW_FANOUT 32u /* at most; 1 at least */
#define GS_DEVICE_DRAW_LISTS (GS_DEVICE_DRAW_HOPS + 1)

/* Its edges by destination, or by source; as gs_edges. */
typedef struct gs_draw_list {
    uint32_t operands; /* 0: by destination; else by source, and those into rows before hop `operands` alone */
    void *target, *index, *type; /* `type` and `weight` where edges of the graph have them */
    uint32_t *start;
    float *weight;
} gs_draw_list;

typedef struct gs_draw_launch {
    const uint32_t *first, *other;  /* in-edges of vertex v: [first[v], first[v + 1]) of `other` */
    const void *type;               /* [edges] of type_bytes, with which the lists of vertices begin where `by_types` */
    const float *weight;            /* [edges] */
    uint32_t type_bytes, by_types;  /* 0: they have no types; types of which each has its fanout, 0: all together */
    bool weights, weighted;         /* they have weights; by which they are drawn */
    const uint32_t *own;            /* [vertices] self loops of each; NULL: there are none */
    const uint32_t *targets;        /* [targets_held] the host's */
    uint32_t targets_held, hops, fanout[GS_DEVICE_DRAW_HOPS];
    uint32_t key[2], number, epoch; /* of Philox */
    uint32_t most_rows, most_edges; /* below 1 << 31 */
    uint32_t index_bytes;
    uint8_t in_split, out_split;    /* what `split` has of targets, and of other rows */
    uint32_t *vertex;               /* [most_rows] becomes the vertex of each row */
    gs_draw_list list[GS_DEVICE_DRAW_LISTS]; /* the first by destination */
    uint32_t lists;
    float *in_degree, *loops;       /* [most_rows] as gs_batch has them, or NULL */
    uint8_t *split;                 /* [most_rows] or NULL */
    void *scratch;                  /* gs_device_draw_bytes() */
} gs_draw_launch;

/* How much a batch has: of each list, of the rows of the first h hops and the targets, those that have edges, and
 * these. */
typedef struct gs_draw_counts {
    uint32_t rows[GS_DEVICE_DRAW_HOPS + 1], edges[GS_DEVICE_DRAW_HOPS + 1]; /* edges[h]: into rows before hop h */
    uint32_t overflows; /* it has more than the most: nothing else says anything */
    struct {
        uint32_t targets[GS_DEVICE_DRAW_HOPS + 1], ends[GS_DEVICE_DRAW_HOPS + 1], largest;
    } list[GS_DEVICE_DRAW_LISTS];
} gs_draw_counts;

/* Of most_rows, most_edges, type_bytes and weights alone. */
uint64_t gs_device_draw_bytes(const gs_device *d, const gs_draw_launch *l);
/* Behind the copies FROM_HOST so far; waits until it is there. */
gs_status gs_device_draw(gs_device *d, const gs_draw_launch *l, gs_draw_counts *out);
/* Another library of the process works on the same GPU, in a stream of its own (CUstream, NULL: the one that CUDA has
 * for who names none). follow: launches from now on come behind what that stream was told so far. lead: what it is told
 * from now on comes behind the launches so far. Neither waits. From gs_device_step_in(), or opening, to
 * gs_device_step_aside() the thread's calls of CUDA are about this device, then about what they were about before. On a
 * unified device these do nothing. */
gs_status gs_device_step_in(gs_device *d);
gs_status gs_device_follow(gs_device *d, void *stream);
gs_status gs_device_lead(gs_device *d, void *stream);
void gs_device_step_aside(gs_device *d);
/* Is it memory of the device's own? */
bool gs_device_has(const gs_device *d, const void *memory);

/* Learned parameters that are memory of the device, and where their gradients go there. */
typedef struct gs_device_there {
    const float *const *param; /* [program->params], of those that are learned */
    float *const *grad;        /* [program->params] written, not added to; NULL, or one of them NULL: not wanted */
} gs_device_there;

/* Launches between the two use the same parameters, which the host leaves as they are, and their gradients, metrics and
 * statistics are added to the host's at the end, which waits for all of them. Launches outside are passes of their
 * own. */
typedef struct gs_device_pass {
    const gs_program *program; /* the prepared one */
    const float *const *param;
    float *const *grad;        /* or NULL */
    gs_metrics *metrics;       /* or NULL */
    double *const *statistic;  /* or NULL: as in gs_vertex_launch */
    float *const *made;        /* or NULL: where finished statistics go, those of `param` */
    const float *loss_weight;  /* or NULL: as in gs_vertex_launch */
    bool sends_beside;         /* copies FROM_HOST under way are none of this pass, which does not wait for them */
    const gs_device_there *there; /* or NULL. Of a device with memory of its own, of a program without loss and
                               * statistics: nothing of the pass comes to the host, and neither its begin nor its end
                               * waits; `grad` only says that gradients are wanted, and whose they are */
} gs_device_pass;

gs_status gs_device_begin_pass(gs_device *d, const gs_device_pass *pass);
gs_status gs_device_end_pass(gs_device *d);
/* Bytes that were copied to the device and back since the last call; 0 on a unified one. */
typedef struct gs_device_copied {
    uint64_t in, out;
} gs_device_copied;

gs_device_copied gs_device_take_copied(gs_device *d);

/* Number of the last launch; launches are done in the order of their numbers. */
uint64_t gs_device_last_launch(const gs_device *d);
/* Is that launch done? `wait`: not before it is. Errors of any launch so far come out here. */
gs_status gs_device_poll(gs_device *d, uint64_t launch, bool wait, bool *done);

/* From now on the device's own clock says when its launches begin and end. Called again before each pass it brings that
 * clock and gs_now() together, for which it waits. Does nothing on a device that has no clock. */
gs_status gs_device_time_launches(gs_device *d);
/* When launches `first` to `last` began and ended, by gs_now(). False: not known; `last` is not done, or they were many
 * (GS_DEVICE_TIMED) launches ago. */
#define GS_DEVICE_TIMED 64u
bool gs_device_launch_span(const gs_device *d, uint64_t first, uint64_t last, double span[2]);

/* ---- the update of parameters --------------------------------------------------
 *
 * A device with memory of its own may hold the learned parameters, their gradients and the optimiser's state for the
 * length of a run. Then passes read the parameters there and leave their gradients there (those of gs_device_pass.grad
 * only say that they are wanted, and for sums over devices, whose they are); of what is not learned and of statistics,
 * passes bring and take what they do without. */

typedef struct gs_update gs_update; /* update.h */

/* Can it? */
bool gs_device_steps(const gs_device *d);
/* From now on it has them: the learned ones of `param` [program->params], of the prepared program; with `states` runs
 * of state, all 0 (gs_update.states), for which it takes memory. GS_ENOMEM. Until another program is prepared, or
 * the device is closed. */
gs_status gs_device_keep_params(gs_device *d, const float *const *param, uint32_t states);
/* The 2-norm of the gradients of the last pass, which ended, of all together. Waits. */
gs_status gs_device_gradient_norm(gs_device *d, double *out);
/* One step by the gradients of the last pass, which ended. Returns before it is done; it is a launch. */
gs_status gs_device_step(gs_device *d, const gs_update *u);
/* The learned parameters as they are now, to `param` [program->params]. Waits. */
gs_status gs_device_fetch_params(gs_device *d, float *const *param);
/* Run `run` (from 0) of the optimiser's state, laid out as the learned parameters, to and from `state`
 * [program->params]. Wait. */
gs_status gs_device_fetch_state(gs_device *d, uint32_t run, float *const *state);
gs_status gs_device_put_state(gs_device *d, uint32_t run, const float *const *state);

/* The learned parameters as they were before the last step. Waits. */
gs_status gs_device_fetch_previous(gs_device *d, float *const *param);
/* The host has them again: passes bring the parameters and take the gradients. */
void gs_device_leave_params(gs_device *d);
/* Did the steps before the last pass that ended leave finite numbers alone? The answer came with what the pass brought
 * back; does not wait. */
bool gs_device_stepped_well(const gs_device *d);

/* ---- copies, and several devices -------------------------------------------------
 *
 * Copies to and from arenas are asked for by three threads a device, one for each of its ways; another one feeds it
 * launches. */

typedef enum gs_device_way {
    GS_DEVICE_FROM_HOST, GS_DEVICE_FROM_PEER, GS_DEVICE_TO_HOST, GS_DEVICE_WAYS,
    GS_DEVICE_LAUNCHES = GS_DEVICE_WAYS /* of gs_device_go_behind() alone */
} gs_device_way;

/* They find out how to reach one another: each may be asked for copies from all others. All have their memory; they
 * give it up all together. */
gs_status gs_device_join(gs_device *const *device, uint32_t devices);
/* Host memory that each of several may take for that, at the most. */
#define GS_DEVICE_BETWEEN_BYTES (2ull << 20)
/* Begins to[0..bytes) = from[0..bytes); FROM_PEER: `from` is memory of the device `peer`, or (NULL) the host's, where
 * another rank's rows came to. Copies of a way are made in order. */
gs_status gs_device_transfer(gs_device *d, gs_device_way way, const gs_device *peer, void *to, const void *from,
                             uint64_t bytes);
/* Rows of the host, those whose bits are set, that go to the same places of a table of the device's; of a device whose
 * memory is a part of the host's, the other way, too. */
typedef struct gs_rows_launch {
    void *to;
    const void *from;      /* of gs_device_memory.host, as the bits are */
    const uint64_t *bits;  /* [rows] */
    uint64_t rows;
    uint32_t row_bytes;
} gs_rows_launch;

/* One of the copies FROM_HOST. What lies between those rows at `to` stays as it is, or becomes what lies there at
 * `from`. */
gs_status gs_device_send_rows(gs_device *d, const gs_rows_launch *l);
/* A number for all copies of that way that have been begun since the last number. */
gs_status gs_device_mark_transfers(gs_device *d, gs_device_way way, uint64_t *number);
/* Are they done? As gs_device_poll(). At most GS_DEVICE_MARKS numbers may be under way. */
#define GS_DEVICE_MARKS 8u
gs_status gs_device_poll_transfers(gs_device *d, gs_device_way way, uint64_t number, bool wait, bool *done);
/* What goes this way, or is launched, from now on begins behind what went the way `of`, or was launched, up to this
 * number, of which the lower 32 bits are enough. No thread waits for that. */
gs_status gs_device_go_behind(gs_device *d, gs_device_way way, gs_device_way of, uint64_t number);

/* part[d][0..count), floats or doubles, is what device d has of a sum: all of them become the sum, added in the order
 * of the devices, by way of the host, or (on several GPUs with NCCL) in another that is the same each time. In a pass
 * of devices with memory of their own it is the device's copy of gradients or sums of statistics of the pass. Nothing
 * runs on them meanwhile. */
gs_status gs_device_all_reduce(gs_device *const *device, uint32_t devices, void *const *part, uint64_t count, bool f64);

/* The host's copy of such a part, part[0..bytes), becomes the device's, and the other way round: for sums with others
 * than devices of this process. */
gs_status gs_device_fetch_part(gs_device *d, void *part, uint64_t bytes);
gs_status gs_device_put_part(gs_device *d, const void *part, uint64_t bytes);

/* Measured ceilings of this device, each a short run (about half a second): */
gs_status gs_device_measure_gemm(gs_device *d, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second);
/* Sum of random rows of `width` floats out of `table_rows`, bytes of rows read per second. */
gs_status gs_device_measure_gather(gs_device *d, uint64_t table_rows, uint32_t width, double *bytes_per_second);
gs_status gs_device_measure_copy(gs_device *d, double *bytes_per_second);

/* ---- files that a device reads into its own memory, past the host's (GPUDirect Storage) ----
 *
 * A device can or cannot, and that depends on the file too: gs_device_probe_reads() finds out. The bytes never are in
 * host memory, so nobody there can look at them. What arrives is what is meant if its mark (base/hash.h) is that
 * of bytes which the host has read and checked before; the device makes the mark of each read, and compares.
 *
 * Offsets, lengths and places are bytes, multiples of GS_BLOCK_BYTES. One thread at a time asks for reads of a device;
 * others may launch and copy meanwhile. */

/* Can the device read this file so? GS_EUNSUPPORTED: a line that says why not. GS_ENOTFOUND, GS_EIO: the file. */
gs_status gs_device_probe_reads(gs_device *d, const char *path);

#define GS_DEVICE_READS 8u /* that may be under way */
/* Memory that they take, on the host and on the device, but for what cuFile takes itself. */
#define GS_DEVICE_READS_BYTES (256ull << 10)

/* Before the first read: the device's memory of the run, `bytes` from `first` on, is what reads may go to. To be called
 * again, or gs_device_give_memory(), when all is over. GS_EUNSUPPORTED; GS_ENOMEM. */
gs_status gs_device_open_reads(gs_device *d, void *first, uint64_t bytes);
/* A number for the file, from 0 on, until the device gives its memory back. Errors as gs_device_probe_reads(). */
gs_status gs_device_add_file(gs_device *d, const char *path, uint32_t *file);

typedef struct gs_device_read {
    uint32_t file;
    uint64_t offset, bytes;
    void *to;      /* the device's */
    uint64_t mark; /* gs_fingerprint64() of what is meant */
} gs_device_read;

/* Begins to[0 .. bytes) = the file's bytes from `offset` on. Returns at once, unless GS_DEVICE_READS are under way:
 * then the oldest is waited for. Numbers count the reads from 1. GS_EIO: what the system or cuFile says. */
gs_status gs_device_begin_read(gs_device *d, const gs_device_read *r, uint64_t *number);
/* Has read `number` come, and is it what was meant? Reads may come in any order; `wait` for this one. GS_EIO: it
 * failed, or the file ends before; GS_EFORMAT: its mark is another. The caller says of which file and bytes. */
gs_status gs_device_poll_read(gs_device *d, uint64_t number, bool wait, bool *done);

#endif /* GS_DEVICE_DEVICE_H */
