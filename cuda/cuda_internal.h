/* cuda_internal.h - the CUDA device's own parts, for each other and for tests.
 *
 *   driver.c         the functions of CUDA's libraries
 *   library.c        which of those that are installed
 *   kernel_text.c, text_*.c  kernels of a program, as text
 *   module.c         text to modules
 *   cuda.c           opening, streams, small launches
 *   pass.c           what a pass brings to the device and takes back
 *   step.c           parameters that stay there for a run, and the optimiser's step
 *   prepare.c        the modules and the fixed memory of a program
 *   memory.c         the arena, and host memory that is pinned
 *   streams.c        what is under way
 *   chain.c          one of several devices: copies of its own, from the GPUs before it, and sums over all of them
 *   launch_edges.c   sums over edges
 *   batch_plan.c, launch_batch.c  products of edges by the matrix of their type
 *   launch_vertex.c  vertex programs
 *   launch_sequence.c  LSTMs over edges
 *   measure.c        ceilings
 *
 * Launches return when they are in the stream `compute`, and find everything in the arena: copies to it and from it are
 * asked for by themselves (chain.c), in streams of their own. Launches are numbered (tickets); GS_CUDA_FLIGHT of them
 * may be under way.
 */
#ifndef GS_CUDA_CUDA_INTERNAL_H
#define GS_CUDA_CUDA_INTERNAL_H

#include <stdbool.h>

#include "base/size.h"
#include "cuda/batch.h"
#include "cuda/module.h"
#include "cuda/kernel_text.h"
#include "device/device_table.h"

#define GS_CUDA_FLIGHT 8u
#define GS_CUDA_HUB_STRETCHES 4096u /* most that the edges of a launch are cut in */
/* Fewest of a stretch: in batches of 4, some 0.7 us each, 512 take 90 us, which is what a launch of a million edges of
 * 256 bytes takes. */
#define GS_CUDA_HUB_EDGES 512u
#define GS_CUDA_HUB_BYTES (16 * GS_MIB) /* of their sums, at the most */
#define GS_CUDA_SORTED 4096u        /* targets of a sequence that are sorted together */
#define GS_CUDA_ORDER_WORDS ((GS_CUDA_FLIGHT + 2u) * GS_CUDA_SORTED + 1u)
#define GS_CUDA_SEQUENCE_BYTES                                                                                         \
    (64 * GS_MIB) /* of the tiles of sequences under way, at the most, unless one needs more */
/* Of what is made of a portion of edges by type: at 400 bytes an edge some 170,000 edges, so that the launches of a
 * portion, some 10, are a few times as long as the gaps between them. */
#define GS_CUDA_BATCH_BYTES (64 * GS_MIB)
#define GS_CUDA_COLSUM_PARTS 128u
#define GS_CUDA_LOSS_PARTS 512u
#define GS_CUDA_WORKSPACE (4u << 20) /* of cuBLAS: what its documents ask for below Hopper's 32 MiB */

typedef struct gs_cuda_memory {
    gs_cu_memory arena;
    uint32_t registered;
    void *pinned[2];    /* host memory */
} gs_cuda_memory;

/* How copies come from another device of the run. */
typedef struct gs_cuda_link {
    const struct gs_cuda *peer;
    bool same, direct;            /* it is on the same GPU; the GPUs reach each other. Neither: by way of the host */
    gs_cu_handle bridge, filled[2]; /* then: a stream of the peer's GPU, and its events: this half of the buffer is
                                     * full */
} gs_cuda_link;

#define GS_CUDA_BOUNCE_BYTES (1 * GS_MIB) /* of each half of the buffer */

/* One of several devices; a thread a way. */
typedef struct gs_cuda_chain {
    bool joined;
    gs_cu_handle forward;         /* stream of copies from peers; those of the other ways are `in` and `out` */
    gs_cu_handle starts;          /* stream of what the host must know of a chunk that is on the device alone; where
                                   * there are sequences */
    gs_cu_handle mark[GS_DEVICE_WAYS][GS_DEVICE_MARKS]; /* events */
    uint64_t marks[GS_DEVICE_WAYS];
    uint32_t links;
    gs_cuda_link link[GS_DEVICE_COUNT_MOST];
    char *bounce;                 /* pinned, two halves; NULL where no link needs it */
    gs_cu_handle emptied[2];
    uint64_t bounced;             /* pieces that went through it */
    gs_cu_handle comm;            /* NCCL's, or NULL */
} gs_cuda_chain;

typedef struct gs_cuda_edge_code {
    gs_edge_kernel k;
    uint32_t stage;     /* GS_NONE: sums of rows */
    gs_cu_handle run, merge;
} gs_cuda_edge_code;

typedef struct gs_cuda_vertex_code {
    gs_vertex_kernel k;
    gs_cu_handle run;
} gs_cuda_vertex_code;

typedef struct gs_cuda_sequence_code {
    gs_sequence_kernel k;
    gs_cu_handle forward, window;
} gs_cuda_sequence_code;

typedef struct gs_cuda_batch_code {
    gs_batch_kernel k;
    gs_cu_handle run;
} gs_cuda_batch_code;

/* Kernels of batch.cu that no program changes. */
enum gs_cuda_batch_fixed {
    GS_CUDA_BATCH_COUNT,
    GS_CUDA_BATCH_TOTALS,
    GS_CUDA_BATCH_PLACE,
    GS_CUDA_BATCH_BEGINS,
    GS_CUDA_BATCH_TASKS,
    GS_CUDA_BATCH_MERGE,
    GS_CUDA_BATCH_FIXED_COUNT
};
#define GS_CUDA_BATCH_NAMES                                                                                            \
    {"gs_batch_count", "gs_batch_totals", "gs_batch_place", "gs_batch_begins", "gs_batch_tasks", "gs_batch_merge"}

enum gs_cuda_fixed {
    GS_CUDA_ADD,
    GS_CUDA_BEGIN,
    GS_CUDA_FINISH_MOST,
    GS_CUDA_FINISH_ATTEND,
    GS_CUDA_FINISH_LSE,
    GS_CUDA_REGROUP,
    GS_CUDA_ROW_SUMS,
    GS_CUDA_MIX_PART,
    GS_CUDA_COLSUM_PART,
    GS_CUDA_COLSUM_TOTAL,
    GS_CUDA_MOMENTS_PART,
    GS_CUDA_MOMENTS_TOTAL,
    GS_CUDA_STATISTIC,
    GS_CUDA_LOSS,
    GS_CUDA_LOSS_TOTAL,
    GS_CUDA_STEP,
    GS_CUDA_FIXED_COUNT
};

typedef struct gs_cuda {
    /* set by open */
    const gs_cuda_driver *d;
    int device, major, minor, processors, compute_type;
    uint32_t portion_edges;     /* by type: $GS_CUDA_PORTION_EDGES, or 0: as many as fit GS_CUDA_BATCH_BYTES */
    gs_cu_handle context, in, compute, out, blas;
    gs_cu_handle finished[GS_CUDA_FLIGHT]; /* events */
    gs_cu_handle fixed_module, fixed[GS_CUDA_FIXED_COUNT];
    char name[160];
    /* set by prepare */
    const gs_program *program;
    gs_cu_handle module;
    gs_cuda_edge_code *edge;
    gs_cuda_vertex_code *vertex;
    gs_cuda_sequence_code *sequence;
    uint32_t edges, vertices, sequences;
    gs_cu_handle turn_weight, spread_gates; /* where there are sequences */
    gs_batch_plan *batch;                   /* of stages that multiply by the type of edges */
    gs_cuda_batch_code *batch_code;
    uint32_t batches, batch_codes;
    gs_cu_handle batching[GS_CUDA_BATCH_FIXED_COUNT];
    uint32_t
        *order; /* [GS_CUDA_ORDER_WORDS], pinned: for each launch under way GS_CUDA_SORTED targets as sequences take
                 * them, as many to sort with, and where the edges of as many and one begin (launch_sequence.c) */
    gs_cu_memory state;         /* parameters, gradients, sums of statistics, totals of the loss, scratch */
    uint64_t state_bytes;
    uint64_t learned_bytes;     /* parameters that are learned come first, their gradients first of those, in the same
                                 * places */
    uint64_t grads_offset, added_bytes; /* from there on: what passes add up, gradients, sums and totals */
    uint64_t *param_offset, *grad_offset, *sums_offset, loss_offset, scratch_offset, scratch_bytes, order_offset,
        batch_offset, workspace_offset;
    bool kept;                  /* gs_device_keep_params(): the learned parameters of `state` are the run's */
    uint32_t states;
    gs_cu_memory moments;       /* [states] runs of learned_bytes; 0: none */
    gs_cu_memory *where;        /* [most registers of a stage] of the launch being made */
    /* of the run */
    gs_cuda_memory memory;
    gs_cuda_chain chain;
    uint64_t ticket;            /* the last launch */
    uint64_t waited;            /* all up to this one are done */
    bool in_pass;
    gs_device_pass pass;
    gs_device_copied copied_bytes;
} gs_cuda;

/* GS_EDEVICE, or GS_ENOMEM: "device cuda: WHAT: name and text of the driver's error". */
gs_status gs_cuda_check(const gs_cuda *c, gs_cu_result r, const char *what);

/* gs_cuda_module() for this GPU. */
gs_status gs_cuda_load(gs_cuda *c, gs_cu_handle *module, const char *text);

/* The thread's calls are about this GPU from now on. Several threads may call for one. */
gs_status gs_cuda_enter(const gs_cuda *c);
/* Another library may have turned it to another GPU. */
void gs_cuda_left(void);

/* ---- chain.c ---- */

void gs_cuda_bus_place(const void *context, char place[GS_DEVICE_PLACE_BYTES]);
gs_status gs_cuda_join(void *const *context, uint32_t devices);
/* Does nothing to a device that has not joined others. */
void gs_cuda_leave(gs_cuda *c);
gs_status gs_cuda_transfer(void *context, gs_device_way way, const void *peer, void *to, const void *from,
                           uint64_t bytes);
gs_status gs_cuda_mark_transfers(void *context, gs_device_way way, uint64_t *number);
gs_status gs_cuda_poll_transfers(void *context, gs_device_way way, uint64_t number, bool wait, bool *done);
/* Waits for copies from peers, all of them also behind one that failed; `in` and `out` are not among them. */
gs_status gs_cuda_wait_for_peers(gs_cuda *c);
gs_status gs_cuda_all_reduce(void *const *context, uint32_t devices, void *const *part, uint64_t count, bool f64);

/* ---- memory.c ---- */

gs_status gs_cuda_take_memory(void *context, const gs_device_memory *m, void **arena);
void gs_cuda_give_memory(void *context);
/* ---- streams.c ---- */

/* Copies between host and device, counted. */
gs_status gs_cuda_copy_in(gs_cuda *c, gs_cu_memory to, const void *from, uint64_t bytes, gs_cu_handle stream,
                          const char *what);
gs_status gs_cuda_copy_out(gs_cuda *c, void *to, gs_cu_memory from, uint64_t bytes, gs_cu_handle stream,
                           const char *what);

/* Begins a launch. Then kernels in c->compute, and gs_cuda_end(). */
gs_status gs_cuda_begin(gs_cuda *c);
gs_status gs_cuda_end(gs_cuda *c, gs_status st);
/* Waits until launch `ticket` is done. */
gs_status gs_cuda_wait(gs_cuda *c, uint64_t ticket);
gs_status gs_cuda_synchronize(gs_cuda *c);
/* The same before something is given back: what failed has been told, and leaves the last error as it is. */
void gs_cuda_quiet(void *context);
gs_status gs_cuda_launch(gs_cuda *c, gs_cu_handle function, uint64_t blocks_x, uint32_t blocks_y, uint32_t shared,
                         void *args, const char *what);
static inline uint64_t gs_cuda_blocks(uint64_t lanes) { return (lanes + GS_BLOCK_LANES - 1) / GS_BLOCK_LANES; }

/* ---- pass.c ---- */

gs_status gs_cuda_begin_pass(void *context, const gs_device_pass *pass);
gs_status gs_cuda_end_pass(void *context);
gs_status gs_cuda_finish_statistic(void *context, gs_statistic kind, float *dst, const double *sums, uint32_t cols,
                                   uint64_t rows);
gs_cu_memory gs_cuda_param(const gs_cuda *c, uint32_t param);
gs_cu_memory gs_cuda_grad(const gs_cuda *c, uint32_t param);
/* Where gradients (or sums of a statistic) of the pass are that come back to `host`; 0: nowhere. */
gs_cu_memory gs_cuda_part(const gs_cuda *c, const void *host);
/* Sums of a statistic. */
gs_cu_memory gs_cuda_sums(const gs_cuda *c, uint32_t param);

/* ---- step.c ---- */

gs_status gs_cuda_keep_params(void *context, const float *const *param, uint32_t states);
gs_status gs_cuda_step(void *context, const gs_update *u);
gs_status gs_cuda_bring_params(void *context, float *const *param);
/* Gives back what the run kept. */
void gs_cuda_drop_params(gs_cuda *c);

/* ---- prepare.c, launch_*.c, measure.c ---- */

/* May products of edges' rows round their factors, and is there a tensor core that takes them? */
static inline bool gs_cuda_rounds(const gs_cuda *c)
{
    return c->compute_type != GS_CUBLAS_COMPUTE_FP32 && c->major >= 8;
}
/* The text of a program's kernels, to be freed with free(); needs no GPU. `tf32`: products of edges' rows may round
 * so. */
gs_status gs_cuda_write_program(char **text, const gs_program *p, bool tf32);
/* Is it the kernel of such sums of rows? */
static inline bool gs_cuda_sums_rows(const gs_cuda_edge_code *code, const gs_row_sums *rows)
{
    const gs_row_sums *const has = &code->k.rows;
    return code->stage == GS_NONE && has->by == rows->by && has->width == rows->width &&
           has->types == rows->types && has->dtype == rows->dtype && has->scaled == rows->scaled;
}
/* Stretches that the edges of a launch are cut in for hubs, at the most. */
uint32_t gs_cuda_stretches(const gs_edge_kernel *k);

uint64_t gs_cuda_scratch_bytes(const void *context, const gs_program *p);
gs_status gs_cuda_prepare(void *context, const gs_program *p);
void gs_cuda_drop_program(gs_cuda *c);
gs_status gs_cuda_run_vertex(void *context, const gs_vertex_launch *l);
gs_status gs_cuda_run_edges(void *context, const gs_edge_launch *l);
gs_status gs_cuda_run_edge_program(void *context, const gs_edge_program_launch *l);

/* An edge program's launch, c->where[] the addresses of its registers' rows. */
typedef struct gs_cuda_edge_run {
    const gs_edge_program_launch *l;
    gs_edge_args args; /* what all its kernels are told; `place` set: of a portion of the edges */
} gs_cuda_edge_run;

/* One kernel; `kept`: the table of one that keeps rows. And all that the stage has, but those. */
gs_status gs_cuda_run_edge_kernel(gs_cuda *c, const gs_cuda_edge_run *r, const gs_cuda_edge_code *code, float *kept);
gs_status gs_cuda_run_edge_kernels(gs_cuda *c, const gs_cuda_edge_run *r);
/* The same for a stage with products by the type of edges. */
gs_status gs_cuda_run_batches(gs_cuda *c, gs_cuda_edge_run *r, const gs_batch_plan *b);
/* Scratch of it. */
uint64_t gs_cuda_batch_bytes(const gs_cuda *c, const gs_batch_plan *b);
static inline bool gs_cuda_makes_batch(const gs_cuda_batch_code *code, gs_batch_kind kind, uint32_t in, uint32_t out)
{
    return code->k.kind == kind && code->k.in == in && code->k.out == out;
}
/* Row-major to[m, n] = A[m, k] B[k, n] + beta * to. `ta`, `tb`: A and B are stored the other way, with rows of lda and
 * ldb. */
gs_status gs_cuda_multiply(gs_cuda *c, bool ta, bool tb, uint32_t m, uint32_t n, uint32_t k, gs_cu_memory a,
                           uint32_t lda, gs_cu_memory b, uint32_t ldb, float beta, gs_cu_memory to);
gs_status gs_cuda_run_sequence(void *context, const gs_sequence_launch *l);
gs_status gs_cuda_run_sequence_back(void *context, const gs_sequence_launch *l);
/* Scratch of its launches. */
uint64_t gs_cuda_sequence_bytes(const gs_sequence_kernel *k, uint32_t processors);
gs_status gs_cuda_measure_gemm(void *context, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second);
gs_status gs_cuda_measure_gather(void *context, uint64_t table_rows, uint32_t width, double *bytes_per_second);
gs_status gs_cuda_measure_copy(void *context, double *bytes_per_second);
gs_status gs_cuda_measure_transfer(void *context, double *bytes_per_second);

#endif /* GS_CUDA_CUDA_INTERNAL_H */
