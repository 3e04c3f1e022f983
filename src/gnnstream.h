/* gnnstream.h - train graph neural networks on whole graphs larger than memory.
 *
 * This is the whole public interface of libgnnstream; the command line uses
 * nothing else. It compiles alone, as C and as C++. docs/api.md shows it at work.
 *
 *   gs_partition()   a raw graph -> a store (a folder of checked chunks), once
 *   gs_run           a store + a model -> epoch after epoch, evaluations, weights and logits
 *   gs_train()       all epochs of a run, and its files
 *   gs_predict()     a store + a model + weights -> logits
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
 * Planning sets glibc's M_MMAP_THRESHOLD to 1 MiB, for the whole process.
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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GS_API __attribute__((visibility("default")))
#else
#define GS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What can go wrong: the code decides what a program does, the text is for logs. Codes keep their numbers. */
#define GS_STATUS_MAP(X)                                                                                      \
    X(GS_OK, 0, "success")                                                                                    \
    X(GS_EINVAL, -1, "invalid argument")            /* or option */                                           \
    X(GS_ENOMEM, -2, "out of memory")                                                                         \
    X(GS_ENOTFOUND, -3, "not found")                /* a file, store or model */                              \
    X(GS_EFORMAT, -4, "malformed or damaged data")                                                            \
    X(GS_EIO, -5, "input/output error")                                                                       \
    X(GS_EAGAIN, -6, "try again later")             /* never returned by this interface */                    \
    X(GS_EBUDGET, -7, "does not fit the memory budget") /* the line says what would */                        \
    X(GS_EUNSUPPORTED, -8, "not supported")         /* here */                                                \
    X(GS_EEXIST, -9, "already exists")              /* and is not replaced */                                 \
    X(GS_EINTERRUPTED, -10, "interrupted")          /* `stop` became nonzero */                               \
    X(GS_EDEVICE, -11, "device failure")            /* or a computation that left the finite numbers */

typedef enum gs_status {
#define GS_STATUS_CODE(name, value, text) name = value,
    GS_STATUS_MAP(GS_STATUS_CODE)
#undef GS_STATUS_CODE
} gs_status;

/* Short fixed text of a code. Never NULL. */
GS_API const char *gs_status_text(gs_status st);

#define GS_VERSION "0.1.0"
/* GS_VERSION of the library that is running. */
GS_API const char *gs_version(void);
/* The last failure's line on this thread, without newline; "" where there was none. */
GS_API const char *gs_last_error(void);

/* "4096", "64K", "1.5G" (powers of 1024) to bytes; GS_EINVAL otherwise. */
GS_API gs_status gs_size_parse(uint64_t *out, const char *text);
/* "1.5 GiB" into `buffer` of `capacity` (at least 16) bytes; returns `buffer`. */
GS_API char *gs_size_format(char *buffer, size_t capacity, uint64_t bytes);

/* Called now and then with what is being done and how far it is (0 to 1). */
typedef void (*gs_progress_fn)(void *context, const char *what, double done);
/* Called with a line, without newline, about something that was taken otherwise than it may have been meant. */
typedef void (*gs_warn_fn)(void *context, const char *line);

/* ---- raw graphs ---------------------------------------------------------- */

typedef struct gs_generate_options {
    size_t size; /* gs_generate_options_init() sets it */
    uint64_t vertices;
    uint64_t edges; /* directed; "sbm" gives both directions of each */
    uint32_t features, classes;
    uint64_t seed;
    bool force; /* replace what is in the folder */
    gs_progress_fn progress; /* may be NULL */
    void *context;
    const volatile int *stop; /* may be NULL */
} gs_generate_options;

/* The defaults; gs_generate_options_sized() for callers that include no header: `size` is of their struct. */
GS_API void gs_generate_options_sized(gs_generate_options *options, size_t size);
static inline void gs_generate_options_init(gs_generate_options *options)
{
    gs_generate_options_sized(options, sizeof(*options));
}

/* Writes a folder of .npy files that gs_partition() reads. `kind` is "rmat"
 * (Graph500's; labels and features random) or "sbm" (planted classes; features carry a
 * noisy signal of the class). Memory does not grow with edges or features.
 * GS_EINVAL, GS_EEXIST, GS_EIO, GS_EINTERRUPTED. */
GS_API gs_status gs_generate(const char *kind, const char *folder, const gs_generate_options *options);

/* ---- stores -------------------------------------------------------------- */

typedef struct gs_partition_options {
    size_t size; /* gs_partition_options_init() sets it */
    const char *format;       /* NULL: found by looking; "npy", "snap", "mtx", "csv", "metis", "ogb" */
    const char *method;       /* "metis", "lp", "fennel", "random", "natural"; NULL: metis where it fits, else fennel */
    const char *feature_type; /* at rest: "f32" (also where NULL), "bf16", "f16" */
    uint32_t parts;           /* intervals; 0: chosen by size */
    uint32_t random_features; /* 0: none; else columns, where the input has no features */
    uint64_t memory;          /* bytes; 0: half of what is free */
    uint64_t seed;
    bool undirected;          /* add the reverse of each edge that lacks it */
    bool force;               /* replace an existing store */
    gs_progress_fn progress;  /* may be NULL */
    void *context;
    const volatile int *stop; /* may be NULL */
    gs_warn_fn warn;          /* may be NULL; as `progress`, with `context` */
    const char *split;        /* "0.6,0.2,0.2": train, valid, test drawn from the seed; NULL: as the input says */
} gs_partition_options;

typedef struct gs_partition_report {
    uint64_t vertices, edges, store_bytes, peak_bytes;
    uint32_t parts;
    char method[16];     /* that was used */
    char note[256];      /* why it is not the one asked for, or "" */
    double cut_fraction; /* edges between different intervals */
    double seconds, read_seconds, order_seconds, edge_seconds, array_seconds;
} gs_partition_report;

/* The defaults; gs_partition_options_sized() for callers that include no header: `size` is of their struct. */
GS_API void gs_partition_options_sized(gs_partition_options *options, size_t size);
static inline void gs_partition_options_init(gs_partition_options *options)
{
    gs_partition_options_sized(options, sizeof(*options));
}

/* Makes the store `store` of the graph at `input`. On failure nothing that
 * looks like a store is left. `report` may be NULL.
 * GS_ENOTFOUND, GS_EFORMAT, GS_EEXIST, GS_EBUDGET, GS_EIO, GS_EINTERRUPTED. */
GS_API gs_status gs_partition(const char *input, const char *store, const gs_partition_options *options,
                              gs_partition_report *report);

typedef struct gs_store_summary {
    uint64_t vertices, edges, self_loops;
    uint32_t parts, interval_rows;
    uint32_t features;    /* columns; 0: none */
    uint32_t classes;     /* 0: no labels */
    uint32_t edge_types;  /* 0: untyped */
    uint64_t train, valid, test; /* vertices of each split */
    uint64_t max_in_degree, max_out_degree;
    uint64_t total_bytes; /* of all files */
    uint64_t table_bytes; /* held in memory while the store is open */
    uint64_t seed;
    double sources_per_vertex; /* alpha: distinct sources of each interval's in-edges, summed, over vertices */
    bool symmetric;       /* one copy of the edges serves both directions */
    bool weights;         /* edges carry weights */
    char feature_type[8]; /* "f32", "bf16", "f16", or "" */
    char method[16];      /* how the vertex order was made */
} gs_store_summary;

/* Reads the manifest and the tables. GS_ENOTFOUND, GS_EFORMAT, GS_EIO. */
GS_API gs_status gs_inspect(gs_store_summary *out, const char *store);

/* Reads every byte of the store and checks it against its checksums and
 * against the others. `memory` bounds its buffers; 0: 256 MiB. */
GS_API gs_status gs_verify(const char *store, uint64_t memory);

/* ---- training ------------------------------------------------------------ */

/* One epoch, as a line of the metrics file. Loss and accuracies are of the
 * weights before the epoch's update. */
typedef struct gs_epoch_report {
    uint32_t epoch, epochs; /* 1-based; of how many */
    bool over;              /* .patience has run out: gs_train() ends here */
    double lr, loss;        /* of the update; mean cross-entropy over the training vertices */
    double accuracy[3];     /* train, valid, test; NaN where not evaluated */
    double seconds, compute_seconds, stall_seconds;
    double edge_seconds;    /* of compute_seconds, in sums over edges */
    uint64_t read_bytes, written_bytes;
    uint64_t copied_in_bytes, copied_out_bytes; /* between host and devices with memory of their own: what
                                                 * gs_plan_report has of their links, and what passes bring besides */
    uint64_t forwarded_bytes; /* between several devices */
    uint64_t peak_host_bytes;   /* most this process ever had resident */
    uint64_t peak_device_bytes;
} gs_epoch_report;

typedef struct gs_train_options {
    size_t size; /* gs_train_options_init() sets it */
    /* The model. */
    const char *model;      /* "gcn", "gat", ..., or a path to a model's text; required */
    uint32_t layers;
    uint32_t hidden;        /* width of a hidden layer, its heads concatenated */
    uint32_t heads;
    uint32_t bases;         /* that matrices of edge types are made of, in models that have some; 0: 4 */
    const char *activation; /* "relu", "elu", "tanh", ... */
    double dropout, input_dropout; /* in [0, 1) */
    /* The optimiser, as PyTorch defines it (adamw's weight decay shrinks the weights), and its rate: docs/api.md. */
    uint32_t epochs;        /* at the most */
    const char *optimizer;  /* "adam", "adamw", "sgd" */
    double lr, weight_decay, momentum, clip_norm; /* of "sgd", in [0, 1); most 2-norm of all gradients, 0: any */
    const char *schedule;   /* "none", "step", "cosine", "plateau", after .warmup epochs in which the rate rises */
    double schedule_by;     /* what "step" and "plateau" multiply the rate by, after .schedule_every epochs */
    const char *keep;       /* weights to end with: "best" by validation accuracy, "last"; NULL: best where known */
    uint32_t warmup, schedule_every, patience; /* 0: at once; 30, "plateau" 10; epochs without a better one, 0: any */
    uint64_t seed;          /* of the initial weights and of dropout */
    uint32_t eval_every;    /* with dropout: epochs between evaluations, 0: only the last. Without, each is. */
    /* The machine. */
    const char *device;     /* "cpu", "cpu:N" for N that share the processors, "cuda", "cuda:N" for GPU number N,
                             * "cuda:A,B,..." */
    const char *topology; /* JSON file: of "cpu:N" and "cuda:A,B,...", switches and how fast their wires are. NULL: what
                           * the machine says of GPUs, else one switch */
    const char *matmul;     /* of a GPU: "fp32", or what products may round to: "tf32", "bf16" */
    uint32_t threads;       /* 0: all that the process may use */
    uint64_t host_memory;   /* bytes resident at most; 0: 80 % of what is free */
    uint64_t device_memory; /* bytes of each device; a part of host_memory for the cpu; 0: half of host_memory, shared
                             * out */

    double io_timeout;      /* seconds after which a run is given up where no read, write or launch of a GPU comes back;
                             * 0: never. After a minute (or half of it) stderr gets what each waits for */

    bool keep_logits;       /* gs_run_logits() is wanted; they take memory or disk, also where no file is named */
    /* Files; NULL: none. Each is written whole or not at all, but for metrics. */
    const char *init;       /* .safetensors to start from; NULL: Glorot uniform */
    const char *save;       /* .safetensors of the final weights */
    const char *logits;     /* .npy, float32 [vertices, classes], input order, final weights, no dropout */
    const char *metrics;    /* one line of JSON an epoch */
    const char *trace;      /* the last epoch's tasks as Chrome trace events; whole or not at all */
    const char *spill;      /* folder for what does not fit in memory; NULL: inside the store */
    const char *spill_type; /* of what a run keeps for vertex programs of later stages, in memory too: "f32", or rounded
                             * to "bf16" */
    /* Switches for measurements. */
    bool no_pipeline;       /* read only when what was computed before is done and written */
    bool no_cache;          /* keep nothing in memory from one task to the next */
    bool no_verify;         /* do not check the store's checksums as data arrives */
    bool no_move;           /* leave operators on the side of an edge sum where the model has them */
    bool no_fuse;           /* one edge program a sum */
    bool no_batch;          /* products with the matrix of an edge's type for sums by type, or for vertices, not edge by
                             * edge */
    bool no_hoist;          /* compute in every epoch what needs no parameter */
    bool no_swap;           /* columns in store order, no better one looked for */
    bool no_prune;          /* compute rows that neither the loss nor the reported accuracies can see */
    bool no_selective;      /* read whole intervals of rows, needed or not */
    bool no_chain;          /* each of several devices takes all that it needs from the host */

    bool profile;           /* time every task, and remember what it says of this machine for later plans */

    void (*on_epoch)(void *context, const gs_epoch_report *report); /* gs_train(): after each epoch; may be NULL */
    void *context;
    const volatile int *stop; /* may be NULL */
    /* Checkpoints (docs/format.md): of a training run; plans and predictions have none. */
    const char *checkpoint;       /* folder for them; NULL: .resume's, or none */
    const char *checkpoint_every; /* "10": epochs; "90s", "10m", "2h"; NULL: at most 2 % of the time go to them */
    const char *resume;           /* folder whose newest checkpoint the run goes on from; NULL: it begins */
} gs_train_options;

/* Why another program of the model than its first was taken: from GS_TAKEN_SHORTER on, it was. */
typedef enum gs_taken {
    GS_NOT_TAKEN = 0,
    GS_TAKEN_SHORTER, /* its epoch was predicted to be shorter */
    GS_TAKEN_LEANER,  /* it takes at most three quarters of the memory, for an epoch of at most 1.9 times as long */
    GS_TAKEN_TO_FIT,  /* the programs tried before it do not keep the budgets */
} gs_taken;

/* Predicted seconds of one run of a pass, and how long each resource is busy in it. The disk reads and writes; the
 * device sums along edges and runs vertex programs; one thread verifies checksums and handles requests beside. */
typedef struct gs_predicted {
    double seconds, read_seconds, write_seconds, edge_seconds, vertex_seconds, check_seconds;
    double stall_seconds; /* the device waits for data */
    char bottleneck[24];  /* "reading", "writing", "edge sums", ...: bounds it; "waiting": none is busy all the time */
} gs_predicted;

/* Orders of columns that were tried; predicted seconds in store order and in the best one; is that one the plan's? It
 * must save 2 % to be. 0 tried: there is one order alone, or --no-swap. */
typedef struct gs_order_report {
    uint32_t tried;
    double store_seconds, best_seconds;
    bool taken;
} gs_order_report;

/* One pass over the graph: "train" is an epoch, "eval" and "predict" go forward only. */
typedef struct gs_pass_report {
    char name[16];
    uint32_t blocks; /* intervals that the graph is cut in to fit: the P that counts */
    uint32_t tasks;
    uint64_t read_bytes, read_requests, written_bytes;
    uint64_t skipped_bytes; /* of intervals that edge passes read, rows that no edge needs: not read */
    uint64_t cached_bytes; /* uses of what stays in memory, which are not read */
    uint64_t edges, rows;  /* that its edge passes go over, and its vertex programs run for, stage by stage */
    uint64_t edge_bytes; /* rows gathered along edges */
    uint64_t upload_bytes, forward_bytes, download_bytes; /* of several devices: from the host, between them, to the
                                                           * host */
    double dense_flops, edge_flops;
    gs_predicted predicted;
    gs_order_report order;
    /* The plan is of a program that makes values again rather than storing them, that holds less of what needs to be
     * computed only once, and that multiplies the rows of edges by the matrix of their type in batches of a type, in
     * place of sums by type or products for all types. Which program it is can change with what is known of the
     * machine, and with it the rounding of weights. */
    gs_taken recomputes, lean, batches;
} gs_pass_report;

typedef struct gs_train_report {
    uint32_t epochs;        /* that were run */
    uint32_t kept_epochs, saved_epochs; /* updates of the weights that were kept; epochs that .patience left out */
    double loss;            /* of the final weights, without dropout */
    double accuracy[3];     /* train, valid, test of the final weights; NaN for an empty split */
    uint64_t parameters;    /* numbers learned */
    double open_seconds;    /* from the call to the first epoch */
    double seconds;         /* the epochs alone */
    uint64_t read_bytes, written_bytes; /* the epochs alone */
    uint64_t peak_host_bytes, peak_device_bytes;
    char device[64];        /* "cpu (AVX2, 2 threads)" */
    char io[64];            /* "io_uring", "threads", ... */
    char io_note[256];      /* what keeps faster I/O off, or "" */
    gs_pass_report plan;    /* of the training pass; zero after a prediction */
    double transfer_seconds; /* with `profile`: an epoch's reads and writes once more, with nothing computed beside
                              * them */
} gs_train_report;

/* The defaults: 2 layers of 64, relu, no dropout, 100 epochs of Adam at 0.01, on the cpu. `size`: as above. */
GS_API void gs_train_options_sized(gs_train_options *options, size_t size);
static inline void gs_train_options_init(gs_train_options *options)
{
    gs_train_options_sized(options, sizeof(*options));
}

/* ---- plans --------------------------------------------------------------- */

/* What the training pass moves of a file: an array, or edges. */
typedef struct gs_file_report {
    char name[64];
    uint64_t read_bytes, written_bytes; /* an epoch */
    uint64_t kept_bytes;                /* that stay in the host's memory */
} gs_file_report;

typedef struct gs_memory_item {
    char name[48];
    uint64_t bytes;
    bool device; /* counts against the device's budget; on the cpu against the host's too */
} gs_memory_item;

#define GS_PLAN_PASSES 4
#define GS_PLAN_ITEMS 16
#define GS_PLAN_FILES 48
#define GS_PLAN_DEVICES 16 /* most devices of a run */
#define GS_PLAN_LINKS (2 + 3 * GS_PLAN_DEVICES)

/* One way between two memories: what each pass moves over it. What is loaded when the run opens is no part of it. */
typedef struct gs_link_report {
    char from[16], to[16]; /* "disk", "host", "device 0"; "chain": a device before it, which hands on */
    struct {
        uint64_t bytes, requests;
        double seconds;    /* predicted: the link is busy */
    } pass[GS_PLAN_PASSES];
} gs_link_report;

typedef struct gs_plan_report {
    uint64_t vertices, edges, parameters;
    uint64_t host_memory, device_memory; /* the budgets */
    uint64_t host_bytes, device_bytes;   /* used of them at the most; of each device */
    uint32_t devices;
    uint64_t spill_bytes;                /* files made in the spill folder */
    bool unified;                        /* the device's memory is a part of the host's */
    uint32_t passes, items;
    gs_pass_report pass[GS_PLAN_PASSES];
    gs_memory_item item[GS_PLAN_ITEMS];
    uint32_t files;
    gs_file_report file[GS_PLAN_FILES];
    char basis[16]; /* of predicted seconds: "fitted" to epochs of this machine, "ceiling" (bench limits) or
                     * "default" */
    uint32_t links;     /* the disk's two, and three of each device with memory of its own */
    gs_link_report link[GS_PLAN_LINKS];
    uint64_t device_kept_bytes[GS_PLAN_FILES][GS_PLAN_DEVICES]; /* of file[], that stay in a device's memory from epoch
                                                                 * to epoch */
} gs_plan_report;

/* What gs_train() with these options would do to memory and disk. Reads the
 * store's tables; runs nothing, writes nothing. Errors as gs_run_open(). */
GS_API gs_status gs_plan_train(gs_plan_report *out, const char *store, const gs_train_options *options);

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
 * When a pass over the graph has failed or was interrupted, the run is only to be closed: further passes are
 * GS_EINVAL. */
GS_API gs_status gs_run_open(gs_run **out, const char *store, const gs_train_options *options, gs_run_kind kind);
/* Gives everything back; files that gs_run_finish() did not write are not there. NULL is allowed. Of a run that
 * .io_timeout ended, memory and threads stay until the process ends, as the disk or a GPU may still write there. */
GS_API void gs_run_close(gs_run *run);

/* One more epoch: forward, backward, update; a line of .metrics. .epochs does not bound how many there may be: up to
 * that many, the end of one epoch reads ahead for the next. `out` may be NULL.
 * GS_EDEVICE: the loss or the weights left the finite numbers; says where that began, and .save gets the last weights
 * that were good. GS_EINVAL: not a training run, or a finished one. */
GS_API gs_status gs_run_epoch(gs_run *run, gs_epoch_report *out);

/* Of the weights as they are, without dropout. */
typedef struct gs_evaluation {
    double loss;        /* mean cross-entropy over the training vertices; NaN where there are none */
    double accuracy[3]; /* train, valid, test; NaN for an empty split */
    double seconds;
    uint64_t read_bytes, written_bytes;
} gs_evaluation;

/* A forward pass over the whole graph. (Without dropout or batch statistics an epoch reports the accuracies anyway, of
 * the weights before its update.) */
GS_API gs_status gs_run_evaluate(gs_run *run, gs_evaluation *out);

/* Logits of the weights as they are, float32 [vertices, classes], into `out` of `count` = vertices * classes numbers,
 * in the order of the input. The array is the caller's and no part of .host_memory. Evaluates where the weights
 * have changed since. The run was opened with .keep_logits or .logits. GS_EINVAL says what `count` must be. */
GS_API gs_status gs_run_logits(gs_run *run, float *out, uint64_t count);
/* The same as a .npy file, whole or not at all. */
GS_API gs_status gs_run_write_logits(gs_run *run, const char *path);

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
/* All tensors from and to a .safetensors file, the latter whole or not at all. Loading is as setting. */
GS_API gs_status gs_run_load(gs_run *run, const char *path);
GS_API gs_status gs_run_save(gs_run *run, const char *path);

/* What a run has of checkpoints. */
typedef struct gs_checkpoint_report {
    uint32_t resumed;    /* epochs that it had behind it when it was opened, of .resume; 0: none */
    uint32_t epoch;      /* of the newest checkpoint that it wrote or goes on from; 0: there is none */
    uint32_t written, failed; /* by this run, and that it could not write (on a full disk, say): training goes on */
    uint64_t bytes;      /* of the last one written */
    double seconds;      /* that writing took, all together */
    const char *folder;  /* that they go to, NULL: nowhere; lives as long as the run */
    char note[512];      /* of .resume: a damaged checkpoint that was passed over; why results agree with those of an
                          * uninterrupted run up to rounding, not to the bit; or "" */
    char error[512];     /* of the last that failed, or "" */
} gs_checkpoint_report;

/* Writes a checkpoint of the run as it is after its last whole epoch, besides those that are due by
 * .checkpoint_every; the last two are kept. Also of a run whose pass failed or was stopped: stopping writes one by
 * itself, and the error says so. GS_EINVAL: no .checkpoint, or no epoch is done. GS_EIO, GS_ENOMEM; GS_EDEVICE: weights
 * left the finite numbers. */
GS_API gs_status gs_run_checkpoint(gs_run *run);
/* Does not block. */
GS_API gs_status gs_run_checkpoints(const gs_run *run, gs_checkpoint_report *out);

/* How far the pass over the graph is that runs now, or the last one that ran, from the tasks of its plan. */
typedef struct gs_progress {
    char pass[16];         /* "setup", "train", "eval", "predict"; "" before the first */
    uint32_t epoch;        /* that runs or ran last; 0 before the first */
    uint32_t epochs;       /* .epochs */
    uint32_t tasks_done, tasks;
    uint64_t bytes_done, bytes; /* that its reads and writes move */
} gs_progress;

/* Any thread may call it while another one runs the run, until that one closes it. Does not block. */
GS_API gs_status gs_run_progress(const gs_run *run, gs_progress *out);

/* As gs_plan_train(), of the run as it is. Does not touch the disk. */
GS_API gs_status gs_run_plan(const gs_run *run, gs_plan_report *out);

/* Ends a run: evaluates the weights, writes the files that the options name (.save, .logits, .trace), all or none, and
 * fills `report`, which may be NULL. No pass can be run after it; tensors can still be had.
 * GS_EDEVICE: weights left the finite numbers. */
GS_API gs_status gs_run_finish(gs_run *run, gs_train_report *report);

/* gs_run_open(), .epochs epochs, gs_run_finish() and gs_run_close(), whose errors it has. `report` may be NULL. */
GS_API gs_status gs_train(const char *store, const gs_train_options *options, gs_train_report *report);

/* Evaluates `weights` (.safetensors) on every vertex and writes `logits` (.npy).
 * Of `options`, what speaks of the model and the machine counts. The store
 * needs labels, as they say how many classes there are; training vertices it need not have. In
 * `report` (may be NULL), figures of a split without vertices are NaN. Errors as gs_run_open(). */
GS_API gs_status gs_predict(const char *store, const gs_train_options *options, const char *weights,
                            const char *logits, gs_train_report *report);

/* ---- models --------------------------------------------------------------- */

/* A graph as far as the compiler looks at it. */
typedef struct gs_model_graph {
    uint32_t features, classes, edge_types; /* types: 0 for none */
    bool self_loops, edge_weights;
    double edges_per_vertex;
} gs_model_graph;

/* Writes what becomes of `options->model` (of `options`, what speaks of the model counts): the
 * dataflow graph as its text says, after each pass of the compiler, forward and backward, and the
 * stages of the compiled epoch. `dot`: the graphs alone, for Graphviz. A FILE of <stdio.h> as void, so
 * that this header needs no other. GS_EINVAL, GS_ENOTFOUND, GS_EFORMAT, GS_EUNSUPPORTED, GS_ENOMEM. */
GS_API gs_status gs_print_model(void *file, const gs_train_options *options, const gs_model_graph *graph, bool dot);

/* ---- what this machine can do -------------------------------------------- */

#define GS_LIMIT_SIZES 5
#define GS_LIMIT_DEPTHS 3
#define GS_LIMIT_GEMMS 5
#define GS_LIMIT_GATHERS 3
#define GS_LIMIT_EDGES 9

typedef struct gs_limits_report {
    double disk_read_bps, disk_write_bps; /* sequential, O_DIRECT; writes with fsync */
    bool disk_direct; /* false: no O_DIRECT there, so memory may have served the reads */
    char io[48];
    char device[64];
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
} gs_limits_report;

/* Measures the disk that holds the folder `dir` (a scratch file of 1 GiB, removed) and the
 * CPU device with `threads` threads (0: all). Takes about 20 seconds. */
GS_API gs_status gs_measure_limits(gs_limits_report *out, const char *dir, uint32_t threads);

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
} gs_bench_report;

/* gs_train() for `options->epochs` (at least 1) epochs beside ceilings measured in the same run.
 * Errors as gs_run_open(). */
GS_API gs_status gs_bench_train(gs_bench_report *out, const char *store, const gs_train_options *options);

#ifdef __cplusplus
}
#endif

#endif /* GS_GNNSTREAM_H */
