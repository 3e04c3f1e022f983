/* gnnstream.h - train graph neural networks on whole graphs larger than memory.
 *
 * This header and its parts (gnnstream_*.h, which it includes and which are installed beside it) are the whole public
 * interface of libgnnstream; the command line uses nothing else. They compile alone, as C and as C++. docs/api.md shows
 * them at work.
 *
 *   gs_partition()   a raw graph -> a store (a folder of checked chunks), once
 *   gs_run           a store + a model -> epoch after epoch, evaluations, weights and logits
 *   gs_train()       all epochs of a run, and its files
 *   gs_predict()     a store + a model + weights -> logits
 *   gs_loader        a store -> batches, for programs that train by themselves
 *   gs_plan_train()  what gs_train() would read, write and hold, without running
 *
 * Units: sizes are bytes, times seconds, rates per second.
 * Errors: a function that can fail returns GS_OK or a negative gs_status; what
 * it was to fill is then untouched unless its comment says otherwise, and
 * gs_last_error() gives one line, on the thread that called, that says what is wrong and what
 * to do. A field of a struct is written there as in a C initializer (".hidden 0: must be ..."). NULL where a
 * value is due is GS_EINVAL; `out`, `report` and `options` are due unless a comment says "may be NULL".
 * Structs that may grow: option structs begin with `size`, their size as the caller was compiled with it, which the
 * gs_..._options_init() functions set together with the defaults. Fields that a caller of an older header does not have
 * are at their defaults; those that a newer one has and this library does not know must be 0, else GS_EINVAL. Reports
 * grow at their end, and then the library's major version does, too.
 * Memory: options and reports are plain structs that the caller owns; strings
 * in options must live until the call returns; only a gs_run is left to be closed.
 * Planning sets glibc's M_MMAP_THRESHOLD and M_TRIM_THRESHOLD to 1 MiB, for the whole process.
 * Blocking: everything here blocks until it is done, but for what says that it does not. Long calls take a `stop`:
 * when the int it points to becomes nonzero (a signal handler or another thread
 * may set it) they clean up and return GS_EINTERRUPTED. Handlers of signals that may come meanwhile want SA_ONSTACK and
 * a stack (sigaltstack), or to be blocked in the thread that calls: products run with a stack pointer inside the heap.
 * Threads: calls on different stores may run at the same time in different
 * threads; each uses as many threads inside as its options say. One run belongs to one thread at a time, but for
 * gs_run_progress(), which any thread may call.
 */
#ifndef GS_GNNSTREAM_H
#define GS_GNNSTREAM_H

#include "gnnstream_base.h"    /* statuses, sizes, callbacks */
#include "gnnstream_loader.h"  /* batches, for other programs */
#include "gnnstream_options.h" /* of training */
#include "gnnstream_reports.h" /* of epochs, runs and plans */
#include "gnnstream_store.h"   /* raw graphs and stores */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- plans --------------------------------------------------------------- */

/* Reports how gs_train() with these options would use memory and disk. Reads the
 * store's tables; runs nothing, writes nothing. Errors as gs_run_open(). */
GS_API gs_status gs_plan_train(gs_plan_report *out, const char *store, const gs_train_options *options);
/* Writes a plan as one line of JSON, without newline, into a FILE of <stdio.h>. GS_ENOMEM, GS_EIO. */
GS_API gs_status gs_print_plan(void *file, const gs_plan_report *plan);
/* Writes the tasks of that plan, one a line in the order of their list, then what stays in memory and totals, into a
 * FILE of <stdio.h>. Two plans that do the same have the same text. Of batches: the plan that evaluates, then the one
 * that trains a batch. Errors as gs_run_open(), GS_EIO. */
GS_API gs_status gs_print_tasks(void *file, const char *store, const gs_train_options *options);

/* Reports what training would be on a cluster that need not be there, of a graph that need not be there. `cluster`: a
 * file, and `shape`: "vertices=N,edges=N,features=N" with "classes=N", "parts=N", "remote=X" and "inside=X" (the part
 * of the edges that begin with another rank's vertex, and within one interval; else as in a random order), "idle=X" (of
 * the vertices, those of intervals without edges) and "ends=X" (those that edges begin with) where they are known
 * (docs/ranks.md). Every row
 * and edge counts, as no split leaves any out. .device is "cpu", batches and pairs are GS_EUNSUPPORTED. Errors as
 * gs_run_open(); GS_EFORMAT: the file. */
GS_API gs_status gs_plan_cluster(gs_cluster_report *out, const char *cluster, const char *shape,
                                 const gs_train_options *options);
/* As gs_print_plan(). */
GS_API gs_status gs_print_cluster(void *file, const gs_cluster_report *report);

/* ---- a run --------------------------------------------------------------- */

/* A model on a store, with its weights, its optimiser and the memory and files that its plan asks for. */
typedef struct gs_run gs_run;

typedef enum gs_run_kind {
    GS_RUN_TRAIN = 0,   /* epochs and evaluations */
    GS_RUN_PREDICT = 1, /* evaluations alone: takes less memory, and needs no training vertices */
} gs_run_kind;

/* Plans, checks and allocates: what can be seen to be impossible (a store
 * without training vertices, a budget too small, weights of another shape, a
 * folder that cannot be written to) is refused here, and what no epoch changes is computed once. Strings of `options`
 * are copied; what `stop` points to must live as long as the run. The weights are those of .init, or drawn by .seed.
 * With .resume the run goes on where the newest whole checkpoint there was written: GS_EINVAL names the store, model
 * or option that is another's; GS_ENOTFOUND: there is none; GS_EFORMAT: all are damaged. GS_EEXIST: .checkpoint has
 * those of another run, or one writes there now.
 *   GS_EINVAL       an option out of range
 *   GS_ENOTFOUND    store, model or weights
 *   GS_EFORMAT      damaged store, malformed model or weights
 *   GS_EBUDGET      which budget, and the smallest that works
 *   GS_EIO, GS_ENOMEM, GS_EDEVICE, GS_EINTERRUPTED
 * When a pass over the graph has failed or was interrupted, further passes are GS_EINVAL: the run is to be closed, or,
 * where it was interrupted, finished before. */
GS_API gs_status gs_run_open(gs_run **out, const char *store, const gs_train_options *options, gs_run_kind kind);
/* Gives everything back; files that gs_run_finish() did not write are not there. NULL is allowed. Of a run that
 * .io_timeout ended, memory and threads stay until the process ends, as the disk or a GPU may still write there. */
GS_API void gs_run_close(gs_run *run);

/* One more epoch: forward, backward, update; a line of .metrics. .epochs does not bound how many there may be: up to
 * that many, the end of one epoch reads ahead for the next. `out` may be NULL.
 * GS_EDEVICE: the loss or the weights left the finite numbers; says where that began, and .save gets the last weights
 * that were good. GS_EINVAL: not a training run, or a finished one. */
GS_API gs_status gs_run_epoch(gs_run *run, gs_epoch_report *out);

/* Results of the weights as they are, without dropout. */
typedef struct gs_evaluation {
    double loss;        /* mean over the training vertices, or their known labels; NaN where there are none */
    double accuracy[3]; /* of classes: train, valid, test; NaN for an empty split */
    double seconds;
    uint64_t read_bytes, written_bytes;
    gs_task_figures figures;
} gs_evaluation;

/* A forward pass over the whole graph. (Without dropout or batch statistics an epoch reports the accuracies anyway, of
 * the weights before its update.) */
GS_API gs_status gs_run_evaluate(gs_run *run, gs_evaluation *out);

/* Columns of what gs_run_logits() gives: classes, or with .embeddings the width of the rows; 0 for NULL. Does not
 * block. */
GS_API uint32_t gs_run_columns(const gs_run *run);
/* Logits of the weights as they are, float32 [gs_run_vertices(), gs_run_columns()], into `out` of `count` numbers, in
 * the order of the input. The array is the caller's and no part of .host_memory. Evaluates where the weights
 * have changed since. The run was opened with .keep_logits or .logits. GS_EINVAL says what `count` must be. */
GS_API gs_status gs_run_logits(gs_run *run, float *out, uint64_t count);
/* The same as a .npy file, whole or not at all. */
GS_API gs_status gs_run_write_logits(gs_run *run, const char *path);
/* Rows of logits: the vertices of the type that has labels (gs_inspect_types()), by their ids in it; all vertices where
 * there are no types, none has labels, or with .embeddings. 0 for NULL. Does not fail. */
GS_API uint64_t gs_run_vertices(const gs_run *run);

/* A tensor of the model, as .safetensors files have it. */
typedef struct gs_tensor_info {
    const char *name;    /* "convs.0.lin.weight"; lives as long as the run */
    uint32_t dimensions; /* 0: one number */
    uint64_t shape[3];
    uint64_t count;      /* numbers */
    bool learned;        /* else a running mean, a running variance or a counter */
} gs_tensor_info;

/* How many there are; 0 for NULL. Does not block. */
GS_API uint32_t gs_run_tensors(const gs_run *run);
/* `index` from 0. Does not block. GS_EINVAL beyond the last. */
GS_API gs_status gs_run_tensor(const gs_run *run, uint32_t index, gs_tensor_info *out);
/* The numbers of tensor `index`, row-major, to and from an array of `count` numbers, which must be all of them.
 * Weights that are set start the optimiser anew: what it remembers is of others. */
GS_API gs_status gs_run_get_tensor(gs_run *run, uint32_t index, float *out, uint64_t count);
GS_API gs_status gs_run_set_tensor(gs_run *run, uint32_t index, const float *values, uint64_t count);
/* All tensors from and to a .safetensors file, the latter whole or not at all, and not in place of a file of another
 * kind (GS_EEXIST). Loading is as setting. Of ranks that learn rows of vertices all save, and rank 0 has the file. */
GS_API gs_status gs_run_load(gs_run *run, const char *path);
GS_API gs_status gs_run_save(gs_run *run, const char *path);

/* Checkpoints of a run. */
typedef struct gs_checkpoint_report {
    uint32_t resumed;    /* epochs that it had behind it when it was opened, of .resume; 0: none */
    uint32_t resumed_batches; /* and batches of the next one */
    bool over;           /* .patience had run out by then: no epoch is left to train */
    uint32_t epoch;      /* of the newest checkpoint that it wrote or goes on from; 0: there is none */
    uint32_t batches;    /* and so many of the epoch behind it, where that was stopped in its midst */
    uint32_t written, failed; /* by this run, and that it could not write (on a full disk, say): training goes on */
    uint64_t bytes;      /* of the last one written */
    double seconds;      /* that writing took, all together */
    const char *folder;  /* that they go to, NULL: nowhere; lives as long as the run */
    char note[512];      /* of .resume: a damaged checkpoint that was passed over; why results agree with those of an
                          * uninterrupted run up to rounding, not to the bit; or "" */
    char error[512];     /* of the last that failed, or "" */
} gs_checkpoint_report;

/* Writes a checkpoint of the run as it is after its last whole epoch, or step on a batch, besides those that are due by
 * .checkpoint_every; the last two are kept. Also of a run whose pass failed or was stopped: stopping writes one by
 * itself, and the error says so. GS_EINVAL: no .checkpoint, or no step is done. GS_EIO, GS_ENOMEM; GS_EDEVICE: weights
 * left the finite numbers. Of ranks that learn rows of vertices all call it. */
GS_API gs_status gs_run_checkpoint(gs_run *run);
/* Does not block. */
GS_API gs_status gs_run_checkpoints(const gs_run *run, gs_checkpoint_report *out);

/* How far the pass over the graph is that runs now, or the last one that ran, from the tasks of its plan. */
typedef struct gs_progress {
    char pass[16];         /* "setup", "train", "eval", "predict"; of pairs "forward", "pairs"; "" before the first */
    uint32_t epoch;        /* that runs or ran last; 0 before the first */
    uint32_t epochs;       /* .epochs */
    uint32_t tasks_done, tasks;
    uint64_t bytes_done, bytes; /* that its reads and writes move */
} gs_progress;

/* Any thread may call it while another one runs the run, until that one closes it. Does not block. */
GS_API gs_status gs_run_progress(const gs_run *run, gs_progress *out);

/* As gs_plan_train(), of the run as it is. Does not touch the disk. */
GS_API gs_status gs_run_plan(const gs_run *run, gs_plan_report *out);

/* The .command of the run that wrote the newest whole checkpoint in `folder`, into `out` of `capacity` bytes; "" if it
 * gave none, or one that does not fit. Reads that checkpoint. GS_ENOTFOUND: none is there; GS_EFORMAT, GS_EIO. */
GS_API gs_status gs_checkpoint_command(char *out, size_t capacity, const char *folder);

/* Ends a run: evaluates the weights, writes the files that the options name (.save, .logits, .trace), all or none, and
 * fills `report`, which may be NULL. No pass can be run after it; tensors can still be had.
 * GS_EDEVICE: weights left the finite numbers.
 * A run that .stop has ended (GS_EINTERRUPTED) can be finished, too: .save and .logits get the best weights of the
 * epochs that were evaluated (.keep), or those after the last whole epoch, with a pass for logits alone, and no look at
 * .stop. Then GS_EINTERRUPTED comes again, with a line that says what was written. */
GS_API gs_status gs_run_finish(gs_run *run, gs_train_report *report);

/* Joins the processes that mpirun, or what is like it, started this one with, each a *rank* of one run; gs_run_open()
 * does so by itself. Rank 0 has the results and writes the files. A process that was started alone is rank 0 of 1.
 * GS_EUNSUPPORTED: the library is built without MPI, or with another one. */
GS_API gs_status gs_join_ranks(uint32_t *rank, uint32_t *ranks);
/* A rank that ends all of them at once, as where another no longer answers, first says why: with a line on stderr, or
 * to `say`, where that is not NULL. Any thread may call it, and the process ends when it returns. */
GS_API void gs_on_abort(gs_warn_fn say, void *context);

/* gs_run_open(), .epochs epochs, gs_run_finish() and gs_run_close(), whose errors it has. `report` may be NULL. */
GS_API gs_status gs_train(const char *store, const gs_train_options *options, gs_train_report *report);

/* Reads how the weights of `path` (.safetensors) came about. GS_ENOTFOUND, GS_EFORMAT, GS_EIO. */
GS_API gs_status gs_inspect_weights(gs_weights_summary *out, const char *path);

/* Evaluates `weights` (.safetensors) on every vertex and writes `logits` (.npy).
 * Those fields of `options` count that speak of the model and the machine. Where the weights say what model they are of
 * (gs_inspect_weights()), .model may be NULL and what shapes it 0 or NULL (gs_predict_options_init()); a field that
 * says otherwise is GS_EINVAL. The store may be another one than they were trained on, of as many features. Labels and
 * splits it need not have; figures of a split without vertices are NaN in `report` (may be NULL). Errors as
 * gs_run_open(). A run of GS_RUN_PREDICT takes .init in the same way. */
GS_API gs_status gs_predict(const char *store, const gs_train_options *options, const char *weights,
                            const char *logits, gs_train_report *report);

/* ---- models --------------------------------------------------------------- */

/* A graph as far as the compiler looks at it. */
typedef struct gs_model_graph {
    uint32_t features, classes, edge_types; /* types: 0 for none */
    bool self_loops, edge_weights;
    double edges_per_vertex;
    uint32_t edge_features; /* of each edge; 0: none */
} gs_model_graph;

/* Writes what becomes of `options->model` (of `options`, what speaks of the model counts): the
 * dataflow graph as its text says, after each pass of the compiler, forward and backward, and the
 * stages of the compiled epoch. `dot`: the graphs alone, for Graphviz. A FILE of <stdio.h> as void, so
 * that this header needs no other. GS_EINVAL, GS_ENOTFOUND, GS_EFORMAT, GS_EUNSUPPORTED, GS_ENOMEM. */
GS_API gs_status gs_print_model(void *file, const gs_train_options *options, const gs_model_graph *graph, bool dot);

/* ---- one layer on a graph in memory --------------------------------------- */

/* A layer of a model's text for programs that train by themselves, as PyTorch does: forward and backward on their
 * arrays. All of it is in memory, which no budget bounds; nothing is read from a store. One thread at a time.
 *
 * Edges are counted as often as they stand there; vertices are numbered from 0. */
typedef struct gs_layer_graph {
    uint64_t vertices, edges;
    const int64_t *source, *destination; /* [edges] */
    const float *weight;                 /* [edges]; NULL: all 1 */
    const int64_t *type;                 /* [edges], below edge_types; NULL: none */
    uint32_t edge_types;                 /* 0 without types */
    bool no_dropout;                     /* drop nothing, whatever model and options say: evaluation with gradients */
} gs_layer_graph;

typedef struct gs_layer gs_layer;

/* Compiles the layer of `options->model` (of `options`, what speaks of the model, its .dropout, .seed and .threads
 * count) for rows of `in` and `out` numbers, and takes all its memory. The graph is copied. The caller frees *out with
 * gs_layer_close(). .device may name one GPU, "cuda:1", for rows, parameters and gradients that are memory of it; the
 * arrays of the graph are the host's all the same. GS_EINVAL, GS_ENOTFOUND, GS_EFORMAT; GS_EUNSUPPORTED: batch
 * statistics, which later calls would have to follow, several devices, and a GPU that is not there; GS_ENOMEM. */
GS_API gs_status gs_layer_open(gs_layer **out, const gs_layer_graph *graph, uint32_t in, uint32_t out_width,
                               const gs_train_options *options);
GS_API void gs_layer_close(gs_layer *layer); /* NULL is allowed */
/* Its parameters, without "convs.0." in front; 0 for NULL. Names live as long as the layer. GS_EINVAL beyond the
 * last. */
GS_API uint32_t gs_layer_tensors(const gs_layer *layer);
GS_API gs_status gs_layer_tensor(const gs_layer *layer, uint32_t index, gs_tensor_info *out);
/* As the text says that it starts, drawn by options->seed; `count` numbers, all of them. */
GS_API gs_status gs_layer_start(const gs_layer *layer, uint32_t index, float *out, uint64_t count);

/* Of a layer on a GPU: the calls below begin there when what this stream (CUstream, cudaStream_t) was told so far is
 * done, and what it is told afterwards begins when they are. They return before that, and say of what fails there at a
 * later call. NULL, as at first: CUDA's default stream. On the CPU it changes nothing. */
GS_API gs_status gs_layer_set_stream(gs_layer *layer, void *stream);
/* y [vertices, out_width] of x [vertices, in]; parameter[k] has the numbers of tensor k, row-major. `training`: with
 * dropout, by `step`, and what backward needs of it is kept until the next call, but for x itself. Arrays are read and
 * written where they are, in these calls only. Blocks; uses all threads. On a GPU all of them are memory of that GPU, x
 * and y from a multiple of 16 bytes on; GS_EINVAL names the one that is not. */
GS_API gs_status gs_layer_forward(gs_layer *layer, const float *x, const float *const *parameter, bool training,
                                  uint32_t step, float *y);
/* The gradients of the last forward with `training`, whose x and parameters are given again: from that of y those of x
 * and of each parameter, which are overwritten; NULL: not wanted, but on a GPU x_gradient is always given, as a layer
 * has no memory of its own for it. GS_EINVAL: there was none. */
GS_API gs_status gs_layer_backward(gs_layer *layer, const float *x, const float *const *parameter,
                                   const float *y_gradient, float *x_gradient, float *const *gradient);

/* ---- what this machine can do -------------------------------------------- */

#define GS_LIMIT_SIZES 5
#define GS_LIMIT_DEPTHS 3
#define GS_LIMIT_GEMMS 5
#define GS_LIMIT_GATHERS 3
#define GS_LIMIT_EDGES 9
#define GS_LIMIT_COPIES 5

typedef struct gs_limits_report {
    double disk_read_bps, disk_write_bps; /* sequential, O_DIRECT; writes with fsync */
    bool disk_direct; /* false: no O_DIRECT there, so memory may have served the reads */
    char io[48];
    char device[192];
    double copy_bps; /* memory to memory */
    struct {
        uint64_t bytes; /* of a read at a random place */
        double bps;
        double at_depth[GS_LIMIT_DEPTHS]; /* the same with so many under way */
    } random_read[GS_LIMIT_SIZES];
    uint32_t depth[GS_LIMIT_DEPTHS];
    struct {
        uint32_t rows, in, out; /* [rows, in] times [in, out] */
        double flops;
    } gemm[GS_LIMIT_GEMMS];
    struct {
        uint32_t width; /* floats a row, of random rows that are added up */
        double bps;
    } gather[GS_LIMIT_GATHERS];
    struct {
        uint32_t degree, width; /* edges a vertex, floats a row that is summed */
        double edges_per_second;
    } edges[GS_LIMIT_EDGES];
    double link_bps, link_request_seconds; /* a copy by one thread, as devices that share the processors make them; and
                                            * what each run of such a copy takes beside its bytes */
    /* Of a GPU, else 0: */
    double launch_seconds; /* of a kernel with next to nothing to do, one behind the other */
    double tf32_flops, bf16_flops; /* of the fastest product of factors that are rounded so */
    struct {
        uint64_t bytes; /* of a copy: from pinned memory of the host, to it, and from another GPU (0: there is none) */
        double in_bps, out_bps, between_bps;
    } copies[GS_LIMIT_COPIES];
    double load_bps, load_request_seconds; /* from the disk past host memory (.disk_to_device), and what each such read
                                            * takes beside its bytes; 0: that is not there, or the disk was left out */
    double pick_bps; /* copies to a device of rows of 256 bytes one by one, as they go where few of an interval are
                      * needed */
} gs_limits_report;

/* Measures the disk that holds the folder `dir` (a scratch file of 1 GiB, removed) and the
 * CPU device with `threads` threads (0: all). Takes about 20 seconds. */
GS_API gs_status gs_measure_limits(gs_limits_report *out, const char *dir, uint32_t threads);
/* The same on another device: "cpu", or a GPU, "cuda" and "cuda:0,1" (.device of gs_train_options), which is then
 * planned for by these figures. NULL for `dir`: the disk is left out, and what was known of it stays. */
GS_API gs_status gs_measure_device_limits(gs_limits_report *out, const char *dir, const char *device, uint32_t threads);

/* Figures of one epoch: the one with the median time. */
typedef struct gs_bench_report {
    gs_train_report train; /* train.plan: as planned, and predicted before the run */
    double seconds, compute_seconds, edge_seconds, stall_seconds;
    uint64_t read_bytes, written_bytes;
    /* Ceilings, measured before the run: the disk at the spill folder, products
     * of the model's largest shape, random rows of its widest sum. */
    double disk_read_bps, disk_write_bps, gemm_flops_per_second, gather_bps;
    uint32_t gemm_in, gemm_out, gather_width;
    /* What an epoch cannot be faster than: reading alone, or products alone. */
    double floor_seconds;
    double fraction; /* floor_seconds / seconds */
    uint32_t batches; /* of an epoch, with .sampler: train.plan's operations, edges and seconds are of them all, each
                       * taken to be as one from the middle of an epoch; 0: of the whole graph */
} gs_bench_report;

/* gs_train() for `options->epochs` (at least 1) epochs beside ceilings measured in the same run.
 * Errors as gs_run_open(). */
GS_API gs_status gs_bench_train(gs_bench_report *out, const char *store, const gs_train_options *options);

/* What an epoch spent on a stage, with one kind of worker. */
typedef struct gs_why_row {
    const char *stage;  /* of the compiled epoch */
    const char *worker; /* "vertex programs", "edges"; "reads", "writes"; of devices with memory of their own "to
                         * devices", "between devices", "to the host", "disk to devices" */
    uint32_t tasks;
    uint64_t bytes;     /* that were moved */
    double predicted;   /* seconds of its tasks, one after the other */
    double measured;    /* seconds in which one of them was under way, of all lanes and devices together */
    double floor;       /* bytes at the speed of the wire, products and gathered rows at the measured rates */
    double waited;      /* seconds in which devices stood still until these were done, of all devices together */
} gs_why_row;
typedef void (*gs_why_fn)(void *context, const gs_why_row *row);

/* The same; `why` gets, with `context`, a row for each stage of the last epoch and what worked for it, in the order of
 * stages, before this returns. GS_EUNSUPPORTED: of batches, and of pairs. */
GS_API gs_status gs_bench_train_why(gs_bench_report *out, const char *store, const gs_train_options *options,
                                    gs_why_fn why, void *context);

#ifdef __cplusplus
}
#endif

#endif /* GS_GNNSTREAM_H */
