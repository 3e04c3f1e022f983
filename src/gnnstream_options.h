/* gnnstream_options.h - a part of gnnstream.h: the options of training, predictions and plans.
 *
 * New fields are added at the end of the struct only. Programs include <gnnstream.h>, which explains `size`.
 */
#ifndef GS_GNNSTREAM_OPTIONS_H
#define GS_GNNSTREAM_OPTIONS_H

#include "gnnstream_base.h"
#include "gnnstream_reports.h" /* gs_epoch_report */

#ifdef __cplusplus
extern "C" {
#endif

struct gs_run;

typedef struct gs_train_options {
    size_t size; /* gs_train_options_init() sets it */
    /* The model. */
    const char *model;      /* name of a built-in model ("gcn", "gat", ...), path of a model's text, or the text itself
                             * (it contains a line end). Required, unless the weights of a prediction name it. */
    uint32_t layers;
    uint32_t hidden;        /* width of a hidden layer, all its heads together */
    uint32_t heads;
    uint32_t bases;         /* basis matrices of models whose edge types share them (rgcn_bases); 0: 4 */
    const char *activation; /* between layers: "relu", "elu", "tanh", ... */
    double dropout, input_dropout; /* probabilities, in [0, 1) */
    /* The optimiser, as PyTorch defines it, and its learning rate: docs/api.md. */
    uint32_t epochs;        /* at most; `patience` may end the run earlier */
    const char *optimizer;  /* "adam", "adamw", "sgd" */
    double lr, weight_decay, momentum, clip_norm; /* momentum: of "sgd", in [0, 1). clip_norm: largest 2-norm of all
                                                   * gradients together; 0: no limit */
    const char *schedule;   /* "none", "step", "cosine" or "plateau", after `warmup` epochs of a rising rate */
    double schedule_by;     /* "step" and "plateau" multiply the rate by this */
    const char *keep;       /* which weights the run ends with: "best" of validation by .keep_by, or "last"; NULL: the
                             * best, if the store has validation vertices. Weights before any update are never kept */
    uint32_t warmup, schedule_every, patience; /* In epochs. schedule_every: of "step" and "plateau"; 0: 30 and 10.
                                                * patience: ends a run that has not improved for so long; 0: never */
    uint64_t seed;          /* of the initial weights, of dropout and of batches */
    uint32_t eval_every;    /* epochs between evaluations, where these take a pass of their own (dropout, batches);
                             * 0: after the last epoch only */
    /* The machine. */
    const char *device;     /* "cpu"; "cpu:N", N devices that share the processors; "cuda"; "cuda:N", GPU number N;
                             * "cuda:A,B,..."; "cpu,cuda:N", either or both, whichever is predicted to be fastest */
    const char *topology;   /* JSON file with the switches between several devices and the speed of their links. NULL:
                             * what the machine says of its GPUs, else one switch */
    const char *matmul;     /* precision of a GPU's matrix products: "fp32", or rounded to "tf32" or "bf16" */
    uint32_t threads;       /* 0: all that the process may use */
    uint64_t host_memory;   /* most bytes resident in host memory; 0: 80 % of what is free */
    uint64_t device_memory; /* most bytes of each device. A CPU's are a part of host_memory, and 0 gives all its devices
                             * together half of it */

    double io_timeout;      /* seconds without any read, write or GPU launch coming back after which the run fails; 0:
                             * never. After a minute, or half the timeout, stderr says what each of them waits for. */

    bool keep_logits;       /* make room for gs_run_logits() even if `logits` names no file */
    /* Files; NULL: none. Each is written whole or not at all, except for metrics. */
    const char *init;       /* .safetensors to start from; NULL: as the model says */
    const char *save;       /* .safetensors of the final weights */
    const char *logits;     /* .npy, float32 [vertices, classes] of the final weights, in input order */
    const char *metrics;    /* one line of JSON an epoch */
    const char *trace;      /* tasks of the last epoch as Chrome trace events */
    const char *spill;      /* folder for what does not fit in memory; NULL: inside the store */
    const char *spill_type; /* type of the activations that vertex programs of later stages read again: "f32", or
                             * rounded to "bf16", in memory and on disk */
    /* Switches that turn one optimisation off, for measurements. */
    bool no_pipeline;       /* read only after the previous computation is done and written */
    bool no_cache;          /* keep nothing in memory from one task to the next */
    bool no_verify;         /* do not check the store's checksums as data arrives */
    bool no_move;           /* leave each operator on the side of an edge sum where the model has it */
    bool no_fuse;           /* run one edge program for each sum */
    bool no_batch;          /* multiply sums by type, or vertices, by the matrices of edge types; never edges in
                             * batches of one type */
    bool no_hoist;          /* compute in every epoch what depends on no parameter */
    bool no_swap;           /* go over columns in store order; do not search for a better one */
    bool no_prune;          /* also compute rows that affect neither the loss nor the reported accuracies */
    bool no_selective;      /* read whole intervals of rows, needed or not */
    bool no_chain;          /* each of several devices takes everything from the host, nothing from another device */

    bool profile;           /* time every task, and record the costs of this machine for later plans */

    void (*on_epoch)(void *context, const gs_epoch_report *report); /* after each epoch of gs_train(); may be NULL */
    void *context;          /* for on_epoch, warn and on_open */
    const volatile int *stop; /* the run ends soon after this becomes nonzero; may be NULL */
    /* Checkpoints (docs/format.md), of training runs only. */
    const char *checkpoint;       /* folder for them; NULL: that of `resume`, or none */
    const char *checkpoint_every; /* "10": epochs; "90s", "10m", "2h"; NULL: at most 2 % of the time */
    const char *resume;           /* folder whose newest checkpoint the run continues from; NULL: a new run */
    /* Around the model's layers, as in torch_geometric.nn.models.BasicGNN, and the model's constants. */
    const char *norm; /* after a hidden layer: "none", "batch", "layer" (over the graph), "layer_node" (over a row) */
    const char *jk;   /* what the last linear map gets of all layers: "none", "cat", "max", "lstm", "last" */
    bool residual;    /* add the input of a hidden layer to its output */
    bool act_first;   /* apply the activation before the norm */
    const char *set;  /* "alpha=0.2,steps=5": other values for constants of the model's text; NULL: its own */
    gs_warn_fn warn;  /* gets a line, with `context`, for each parameter that no result depends on; for options that the
                       * model's network does not use; for edge weights of the store that the model does not use; and
                       * where host memory cannot be pinned for a GPU. May be NULL */
    uint32_t classes; /* of a prediction on a store without labels, with weights that do not say it; 0: as they say */
    /* The task; docs/api.md. */
    const char *task;             /* "classify", "multilabel", "regress"; NULL: what the store's labels are for */
    const char *class_weights;    /* "balanced", "1,2.5,..." or a .npy file: weight of each class in the loss; of
                                   * multilabel tasks, of each label where it is present; NULL: 1 */
    double label_smoothing;       /* of classes, in [0, 1), as PyTorch's cross_entropy defines it */
    bool ignore_edge_weights;     /* count each edge as 1. A prediction also does so if its weights were trained so */
    /* Other forms of logits. */
    bool softmax;                 /* write probabilities: softmax of classes, sigmoid of several labels */
    bool embeddings;              /* of predictions: write the input of the last layer, [vertices, its width] */
    const char *config;           /* name of the file that the options came from, for the weights' provenance; it is not
                                   * read */
    const char *argmax;           /* .npy, int64 [vertices]: class of the largest logit, the first of equal ones */
    /* Batches: each is a step of an epoch. Evaluations are of the whole graph. docs/api.md. */
    const char *sampler; /* "none": no batches. "neighbor": in-edges drawn hop by hop, as PyG's NeighborLoader draws
                          * them. "cluster": intervals of the store with the edges within, as ClusterLoader.
                          * "saint-node", "saint-edge", "saint-walk": GraphSAINT's subgraphs */
    uint32_t batch_size; /* of "neighbor": training vertices; of "cluster": intervals; of GraphSAINT: vertices, edges or
                          * walks that are drawn. 0: 1024 */
    const char *fanout;  /* "15,10": in-edges drawn for each target, then for each vertex of the next hop; 0: all */
    bool replace;        /* draw edges with replacement */
    uint32_t walk_length; /* edges of a walk of "saint-walk"; 0: 2 */
    uint32_t coverage;   /* of GraphSAINT: draw batches in advance until each vertex was drawn so often, on average. How
                          * often each vertex and edge came then scales losses and sums, so that they estimate those of
                          * the whole graph (PyG's sample_coverage). 0: losses and sums are the subgraph's own */
    uint32_t batches_per_step; /* one step is of so many batches: its loss is the mean over their targets, and several
                                * devices share them by speed. 0: one batch for each device */
    const char *gather_type; /* type of the rows that the run makes for edges to read: "f32", or rounded to "bf16",
                              * which halves the bytes of every gather; sums stay float32 */
    const char *shuffle; /* order of targets, or of intervals, in "neighbor" and "cluster". "always" (NULL): another one
                          * in each epoch. "never": that of the store, which reads less. "adaptive": that of the store
                          * until an epoch lowers the loss by at most a tenth of what the best one did */
    bool no_spread;      /* switch for measurements: keep no rows of features for batches in the memory of GPUs */
    const char *disk_to_device; /* whether chunks of edges go from the disk to one GPU without a copy in host memory
                                 * (GPUDirect Storage): "auto", if bench limits measured its speed and a shorter epoch
                                 * is predicted; "yes", if the machine supports it; "no" */
    bool weighted;       /* of "neighbor": draw an in-edge with a probability proportional to its weight */
    bool by_type;        /* of "neighbor": draw `fanout` in-edges of each edge type */
    const char *keep_by; /* figure of validation that .keep, .patience and the schedule "plateau" go by: "loss", as
                          * training has it; of classes "accuracy", "balanced" (the mean of the classes' accuracies); of
                          * classes and labels "f1" (macro), "auc" (ROC) and "ap" (average precision), one class against
                          * the rest; of labels "micro_f1"; of numbers "mse", "mae", "r2". NULL: "loss", of numbers
                          * "mse" */
    void (*on_open)(void *context, const char *what, const struct gs_run *run); /* gs_run_open() and what calls it say,
                          * with `context`, what opening is at: "opening the store", "planning", "preparing the run",
                          * "starting the run". From the last on gs_run_progress() may be asked, as `run` is not NULL;
                          * the pass "setup" can be long. NULL comes again where opening then fails. May be NULL */
    const char *command; /* how a program was told to make this run, at most 4095 bytes: checkpoints keep it for
                          * gs_checkpoint_command(), and nothing else reads it */
} gs_train_options;

/* Sets the defaults: 2 layers of 64, relu, no dropout, 100 epochs of Adam with rate 0.01, on the CPU. `size`: of the
 * caller's struct. */
GS_API void gs_train_options_sized(gs_train_options *options, size_t size);
static inline void gs_train_options_init(gs_train_options *options)
{
    gs_train_options_sized(options, sizeof(*options));
}

/* The defaults of predictions: the same, but fields that the weights say (layers, hidden, heads, bases, activation) are
 * 0 or NULL. */
GS_API void gs_predict_options_sized(gs_train_options *options, size_t size);
static inline void gs_predict_options_init(gs_train_options *options)
{
    gs_predict_options_sized(options, sizeof(*options));
}

#ifdef __cplusplus
}
#endif

#endif /* GS_GNNSTREAM_OPTIONS_H */
