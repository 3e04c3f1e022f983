/* gnnstream_options.h - a part of gnnstream.h: the options of training, prediction and plans.
 *
 * The struct only grows at its end. Programs include <gnnstream.h>, which includes this and says what `size` is.
 */
#ifndef GS_GNNSTREAM_OPTIONS_H
#define GS_GNNSTREAM_OPTIONS_H

#include "gnnstream_base.h"
#include "gnnstream_reports.h" /* gs_epoch_report */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gs_train_options {
    size_t size; /* gs_train_options_init() sets it */
    /* The model. */
    const char *model;      /* "gcn", "gat", ..., a path to a model's text, or a text itself (it has a line end);
                             * required, but where weights say it */
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
                             * "cuda:A,B,..."; "cpu,cuda:N": those that are predicted to be faster, or both */
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
    /* What stands around the model's layers, as in torch_geometric.nn.models.BasicGNN, and its constants. */
    const char *norm; /* behind a hidden layer: "none", "batch", "layer" (over the graph), "layer_node" (a row) */
    const char *jk;   /* what the last linear map gets of all layers: "none", "cat", "max", "lstm", "last" */
    bool residual;    /* what a hidden layer got is added to what comes of it */
    bool act_first;   /* the activation comes before the norm */
    const char *set;  /* "alpha=0.2,steps=5": constants of the model's text; NULL: as it has them */
    gs_warn_fn warn;  /* gets a line, with .context, for each parameter that no result depends on, for options that
                       * the network of a text has no use for (and that are not as usual), where the store has edge
                       * weights that the model has no use for, and where memory that a GPU copies from cannot be
                       * pinned; may be NULL */
    uint32_t classes; /* of a prediction with weights that do not say, on a store without labels; 0: as those say */
    /* What is learned, of which labels, and what counts how much; docs/api.md. */
    const char *task;             /* "classify", "multilabel", "regress"; NULL: as the store's labels are */
    const char *class_weights;    /* "balanced", "1,2.5,..." or a .npy file: of classes; of several labels, of
                                   * those that are there; NULL: 1 */
    double label_smoothing;       /* of classes, in [0, 1): as PyTorch's */
    bool ignore_edge_weights;     /* each edge counts 1, whatever the store says; a prediction does so, too, where
                                   * its weights were trained so */
    /* Other forms of logits. */
    bool softmax;                 /* probabilities in their place: of classes softmax, of several labels sigmoid */
    bool embeddings;              /* of predictions: what the last layer gets, [vertices, its width], in their place */
    const char *config;           /* name of the file that the options are from: weights say it; it is not read */
    const char *argmax;           /* .npy, int64 [vertices]: the class of the largest logit, the first of equals */
    /* Batches: an epoch is a step for each of them, and evaluations are of the whole graph; docs/api.md. */
    const char *sampler; /* "none": the whole graph is one step; "neighbor": in-edges drawn hop by hop, as PyG's
                          * NeighborLoader; "cluster": intervals of the store and the edges within, as ClusterLoader;
                          * "saint-node", "saint-edge", "saint-walk": GraphSAINT's */
    uint32_t batch_size; /* training vertices of a batch; intervals; of GraphSAINT, vertices, edges or walks;
                          * 0: 1024 */
    const char *fanout;  /* "15,10": in-edges drawn of each vertex, the targets first, then hop by hop; 0: all */
    bool replace;        /* edges are drawn with replacement */
    uint32_t walk_length; /* edges of a walk of "saint-walk"; 0: 2 */
    uint32_t coverage;   /* of GraphSAINT's: batches drawn beforehand have each vertex so often, on average, and say how
                          * likely vertices and edges are: losses and sums over edges then estimate those of the whole
                          * graph, as PyG's sample_coverage does; 0: none, and they are the subgraph's own */
    uint32_t batches_per_step; /* so many batches are one step: its loss is the mean over their targets; several
                                * devices share them by how fast they are; 0: one for each device */
    const char *gather_type; /* of the rows that the run makes for edges to read: "f32", or rounded to "bf16",
                              * which is half the bytes of every gather; sums are float32 */
    const char *shuffle; /* of "neighbor" and "cluster": "always" (NULL), targets or intervals are in another order in
                          * each epoch; "never": in the store's, so that less is read; "adaptive": never at first, and
                          * always once an epoch lowers the loss by a tenth of what the best one did */
    bool no_spread;      /* of batches: no rows of features stay in the memory of GPUs; a switch for measurements, as
                          * .no_chain */
    const char *disk_to_device; /* chunks of edges come to one GPU past host memory, by GPUDirect Storage: "auto",
                                 * where its speed was measured (bench limits) and an epoch is predicted to be shorter;
                                 * "yes" where it is there; "no" */
    bool weighted;       /* of "neighbor": an in-edge is drawn as likely as its weight among those of its vertex */
    bool by_type;        /* of "neighbor": `fanout` is of each type of edge */
} gs_train_options;

/* The defaults: 2 layers of 64, relu, no dropout, 100 epochs of Adam at 0.01, on the cpu. `size`: of their struct. */
GS_API void gs_train_options_sized(gs_train_options *options, size_t size);
static inline void gs_train_options_init(gs_train_options *options)
{
    gs_train_options_sized(options, sizeof(*options));
}

/* For predictions: the same, but what weights say (.layers, .hidden, .heads, .bases, .activation) is 0 or NULL. */
GS_API void gs_predict_options_sized(gs_train_options *options, size_t size);
static inline void gs_predict_options_init(gs_train_options *options)
{
    gs_predict_options_sized(options, sizeof(*options));
}

#ifdef __cplusplus
}
#endif

#endif /* GS_GNNSTREAM_OPTIONS_H */
