/* gnnstream_options.h - a part of gnnstream.h: the options of training, predictions and plans, and a table of them.
 *
 * New fields are added at the end of the struct only, and get a row in the table below it. Programs include
 * <gnnstream.h>, which explains `size`.
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
    const char *matmul;     /* precision of matrix products: "fp32", or rounded to "tf32" or "bf16". Processors know
                             * bf16 alone, of products of vertices, where they have AVX512-BF16 */
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
    const char *spill;      /* folder for what does not fit in memory, or several on disks of their own: "A,B"; NULL:
                             * inside the store */
    const char *spill_type; /* type of the activations that vertex programs of later stages read again: "f32", or
                             * rounded to "bf16", in memory and on disk */
    /* Switches that turn one optimisation off, for measurements. */
    bool no_pipeline;       /* read, and draw batches, only after the previous computation is done and written */
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
    const char *task;             /* "classify", "multilabel", "regress"; NULL: what the store's labels are for. Of
                                   * pairs of vertices "link", is there an edge; "edge-classify", "edge-regress", its
                                   * label */
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
    const char *fanout;  /* "15,10": in-edges drawn for each target, then for each vertex of the next hop; 0: all. For
                          * each type of edges its own: "15,10;5,-", in the order of the types; -: none */
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
                          * the rest; of labels "micro_f1"; of numbers "mse", "mae", "r2"; of edges "mrr", or "auc"
                          * where they have no types. NULL: "loss", of numbers "mse", of edges their own */
    void (*on_open)(void *context, const char *what, const struct gs_run *run); /* gs_run_open() and what calls it say,
                          * with `context`, what opening is at: "opening the store", "planning", "preparing the run",
                          * "starting the run". From the last on gs_run_progress() may be asked, as `run` is not NULL;
                          * the pass "setup" can be long. NULL comes again where opening then fails. May be NULL */
    const char *command; /* how a program was told to make this run, at most 4095 bytes: checkpoints keep it for
                          * gs_checkpoint_command(), and nothing else reads it */
    const char *loss;    /* what is made small: of one class "xent" (cross-entropy); of several labels "bce" (binary
                          * cross-entropy); of numbers "mse" (squared error), or "huber": of an error d, d^2 / 2 up to
                          * |d| = 1, then |d| - 1/2. Of pairs, for which see docs/design/pairs.md, "softmax",
                          * "logistic" or "margin". NULL: the first of each */
    /* Of .task "link": how probable is an edge between two vertices? And of labels of edges, .decoder and .edges. */
    const char *decoder; /* score of a pair by its rows h and t, and r of its type: "dot", h t; "distmult", h r t;
                          * "complex", the real part of h r conj(t); "transe", minus the length of h + r - t; "mlp",
                          * PyG's EdgeDecoder, lin2(relu(lin1([h, t]) + r)). Of labels "mlp" (NULL), or "product",
                          * OGB's LinkPredictor, lin2(relu(lin1(h t) + r)); r is there where edges have types */
    uint32_t negatives;  /* wrong ends that each pair is compared with, on either side; as many pairs share them */
    const char *negatives_by; /* drawn "uniform" from the pair's interval; by "degree", as often as pairs of the bucket
                               * have them; or from those of the same "batch" */
    const char *corrupt; /* which ends are wrong: "both", one at a time, "head" or "tail" */
    double margin;       /* of .loss "margin" */
    const char *edges;   /* of predictions with weights of such a task: a .npy of pairs to score, int64 or int32 [M, 2]
                          * of input ids, or [M, 3] with types where the decoder has them */
    const char *scores;  /* .npy, float32 [M], of .edges; of classes their logits, [M, classes] */
    uint32_t top;        /* .edges are sources, [M], or [M, 2] with types: so many vertices that score best with each as
                          * its target, all of the graph if there are fewer; .scores are [M, top] */
    const char *targets; /* .npy, int64 [M, top]: these, the best first; of equal scores the lowest id */
    const char *seeds;   /* of pairs with .sampler "neighbor": "edges", batches of so many pairs, their wrong ends and
                          * the drawn neighbours of all these, without the edges that are the pairs themselves.
                          * "vertices" (NULL): of pairs no neighbours are drawn */
    const char *products; /* for what rows are multiplied by the matrix of an edge's type: "edges", one by one; "runs",
                           * where a model allows, once for all edges of a vertex that have the type, of their sum;
                           * "pairs", likewise, once for all edges that one sends and that have the type. "auto": what
                           * is predicted to take less. Weights can then differ by rounding */
    bool no_draw;        /* switch for measurements: batches of "neighbor" are drawn by the processors, not by a GPU */
    bool no_pack;         /* switch for measurements: copy blocks of 4 KiB to devices, whichever of their rows are
                           * needed, and never rows by themselves */
    bool no_width;        /* switch for measurements: an edge pass on several devices is dealt by its targets, never by
                           * the width of its rows */
} gs_train_options;

/* ---- what is known of each option ---------------------------------------- */

/* One row an option, in the order of the manual; defaults, checks, checkpoints, the command line, its help, manual and
 * completions are made of them:
 *
 *   X(field, kind, default, least, most, changes, counts_as, shown, option, value, help, unset)
 *
 * kind       FLAG; COUNT (uint32_t), LONG (uint64_t), SIZE (bytes); REAL (from `least` to below `most`), ABOVE (above
 *            `least`), TIME (seconds, at least 0); TEXT; PATH; CHOICE (one of the words of `value`)
 * least,most of numbers; most 0: no bound. A default of 0 is always allowed
 * changes    NOTHING of the results but their rounding, or what its comment says; RESULTS: a checkpoint's run goes on
 *            with the same value alone; SHAPES: also weights fit this value alone, and predictions take it from them
 * counts_as  what 0 or NULL is short for, or NULL
 * shown      COMMON: by --help; RARE: by --help-all
 * option     its name on the command line; of which `value` stands for the value, NULL: it has none
 * unset      what help calls a default of 0 or NULL, or NULL
 */
#define GS_MODEL_OPTION_MAP(X)                                                                                       \
    X(model, TEXT, NULL, 0, 0, NOTHING, NULL, COMMON, "--model", "M",                                                \
      "gcn, sage, sage_max, sage_lstm, gat, gatv2, gin, appnp, commnet,\n"                                           \
      "ggcn, ggnn, rgcn, rgcn_bases, gatedgcn, embedding, or the file of a\n"                                         \
      "model's text; required, but where weights say it", NULL)                                                      \
    GS_LAYER_OPTION_MAP(X)
/* Of the model, all but itself. */
#define GS_LAYER_OPTION_MAP(X)                                                                                       \
    X(layers, COUNT, 2, 1, 64, SHAPES, NULL, COMMON, "--layers", "N", "layers", "the weights'")                      \
    X(hidden, COUNT, 64, 1, 1048576, SHAPES, NULL, COMMON, "--hidden", "N", "width of a hidden layer",               \
      "the weights'")                                                                                                \
    X(heads, COUNT, 1, 1, 1048576, SHAPES, NULL, COMMON, "--heads", "N",                                             \
      "attention heads, for models that have them", "the weights'")                                                  \
    X(bases, COUNT, 0, 1, 1048576, SHAPES, "4", RARE, "--bases", "B",                                                \
      "matrices that those of edge types are made of, for models\nthat have them (rgcn_bases)", "4")                 \
    X(activation, TEXT, "relu", 0, 0, SHAPES, NULL, RARE, "--act", "NAME", "activation between layers",              \
      "the weights'")                                                                                                \
    X(dropout, REAL, 0, 0, 1, RESULTS, NULL, COMMON, "--dropout", "P",                                               \
      "after each hidden layer, and of attention weights; from 0 to below 1", NULL)                                  \
    X(input_dropout, REAL, 0, 0, 1, RESULTS, NULL, RARE, "--input-dropout", "P",                                     \
      "of the features, from 0 to below 1", NULL)                                                                    \
    /* What stands around layers, and constants, are in the model's text, which checkpoints and weights have. */     \
    X(norm, CHOICE, "none", 0, 0, NOTHING, "none", RARE, "--norm", "none|batch|layer|layer_node",                    \
      "behind each hidden layer, as PyG's BasicGNN; layer: over\nthe whole graph, as there; layer_node: over a row", \
      NULL)                                                                                                          \
    X(jk, CHOICE, "none", 0, 0, NOTHING, "none", RARE, "--jk", "none|cat|max|lstm|last",                             \
      "what the last linear map gets of all layers", NULL)                                                           \
    X(residual, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--residual", NULL,                                          \
      "add what a hidden layer got to what comes of it", NULL)                                                       \
    X(act_first, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--act-first", NULL, "the activation before the norm",      \
      NULL)                                                                                                          \
    X(set, TEXT, NULL, 0, 0, NOTHING, NULL, RARE, "--set", "NAME=X,...",                                             \
      "constants of the model's text (appnp: alpha=0.2,steps=5)", "as it has them")                                  \
    X(ignore_edge_weights, FLAG, false, 0, 0, RESULTS, NULL, RARE, "--ignore-edge-weights", NULL,                    \
      "each edge counts 1, whatever the store says", NULL)

#define GS_TASK_OPTION_MAP(X)                                                                                        \
    X(task, CHOICE, NULL, 0, 0, RESULTS, NULL, RARE, "--task",                                                       \
      "classify|multilabel|regress|link|edge-classify|edge-regress",                                                 \
      "what is learned: one class, several labels, numbers, edges;\n"                                                \
      "classes or numbers of edges", "as the store's labels are")                                                    \
    X(loss, CHOICE, NULL, 0, 0, RESULTS, NULL, RARE, "--loss",                                                       \
      "xent|bce|mse|huber|softmax|logistic|margin",                                                                  \
      "of one class xent, of several labels bce, of numbers mse or\nhuber, of edges the others",                     \
      "the first of its task")                                                                                       \
    X(class_weights, TEXT, NULL, 0, 0, RESULTS, NULL, RARE, "--class-weights", "balanced|W1,W2,...|W.npy",           \
      "of classes in the loss; of several labels, of those that\nare there", "1")                                    \
    X(label_smoothing, REAL, 0, 0, 1, RESULTS, NULL, RARE, "--label-smoothing", "X",                                 \
      "of classes in the loss, from 0 to below 1", NULL)                                                             \
    GS_PAIR_OPTION_MAP(X)
/* Of the task, what is of edges alone. */
#define GS_PAIR_OPTION_MAP(X)                                                                                        \
    X(decoder, CHOICE, NULL, 0, 0, RESULTS, "dot", RARE, "--decoder",                                                \
      "dot|distmult|complex|transe|mlp|product",                                                                     \
      "of --task link: how rows of two vertices score an edge; of\nlabels of edges mlp, or product",                 \
      "dot; of labels mlp")                                                                                          \
    X(negatives, COUNT, 0, 1, 65536, RESULTS, "64", RARE, "--negatives", "K",                                        \
      "of --task link: wrong ends that a pair is compared with", "64")                                               \
    X(negatives_by, CHOICE, NULL, 0, 0, RESULTS, "uniform", RARE, "--negatives-by", "uniform|degree|batch",          \
      "of --task link: how they are drawn", "uniform")                                                               \
    X(corrupt, CHOICE, NULL, 0, 0, RESULTS, "both", RARE, "--corrupt", "both|head|tail",                             \
      "of --task link: which end of a pair they take the place of", "both")                                          \
    X(margin, ABOVE, 0, 0, 0, RESULTS, "1", RARE, "--margin", "X",                                                   \
      "of --loss margin: by so much a pair is to score above others", "1")                                           \
    X(seeds, CHOICE, NULL, 0, 0, RESULTS, "vertices", RARE, "--seeds", "vertices|edges",                             \
      "of pairs with --sampler neighbor: edges, batches of pairs, the\n"                                             \
      "neighbours of their ends, and no edge that is such a pair",                                                   \
      "vertices")

#define GS_BATCH_OPTION_MAP(X)                                                                                       \
    X(sampler, CHOICE, "none", 0, 0, RESULTS, "none", RARE, "--sampler",                                             \
      "none|neighbor|cluster|saint-node|saint-edge|saint-walk",                                                      \
      "train on batches that are drawn so; none: the whole graph is\none step", NULL)                                \
    GS_SAMPLER_OPTION_MAP(X)
/* Of batches, all but what draws them. */
#define GS_SAMPLER_OPTION_MAP(X)                                                                                     \
    X(batch_size, COUNT, 0, 1, 1073741824, RESULTS, "1024", RARE, "--batch-size", "B",                               \
      "training vertices of a batch, or pairs; of clusters, intervals of\n"                                          \
      "the store; of GraphSAINT, vertices, edges or walks",                                                          \
      "1024")                                                                                                        \
    X(fanout, TEXT, NULL, 0, 0, RESULTS, NULL, RARE, "--fanout", "N,N,...",                                          \
      "in-edges drawn of each vertex, the targets first, then hop by hop;\n0: all. \"15,10;5,-\": of each type of "    \
      "edges its own;\n-: none", "needed by neighbor")                                                               \
    X(replace, FLAG, false, 0, 0, RESULTS, NULL, RARE, "--replace", NULL, "draw edges with replacement", NULL)       \
    X(weighted, FLAG, false, 0, 0, RESULTS, NULL, RARE, "--weighted", NULL,                                          \
      "draw an edge as likely as its weight", NULL)                                                                  \
    X(by_type, FLAG, false, 0, 0, RESULTS, NULL, RARE, "--by-type", NULL, "the fanout is of each type of edge",      \
      NULL)                                                                                                          \
    X(walk_length, COUNT, 0, 1, 4096, RESULTS, "2", RARE, "--walk-length", "N", "edges of a walk of saint-walk",     \
      "2")                                                                                                           \
    X(coverage, COUNT, 0, 0, 10000, RESULTS, NULL, RARE, "--coverage", "N",                                          \
      "of GraphSAINT: draw each vertex N times beforehand, so that losses\n"                                         \
      "and sums estimate those of the whole graph", "0: they are the subgraph's")                                    \
    X(batches_per_step, COUNT, 0, 1, 1048576, RESULTS, NULL, RARE, "--batches-per-step", "N",                        \
      "batches that are one step: its loss is the mean over\ntheir targets", "one for each device")                  \
    X(shuffle, CHOICE, NULL, 0, 0, RESULTS, "always", RARE, "--shuffle", "always|never|adaptive",                    \
      "targets, or intervals, in another order in each epoch; never: in\n"                                           \
      "the store's, so that less is read; adaptive: never until the\nloss falls slowly", "always")

#define GS_TRAINING_OPTION_MAP(X)                                                                                    \
    X(epochs, COUNT, 100, 0, 0, RESULTS, NULL, COMMON, "--epochs", "N", "passes over the whole graph", NULL)         \
    X(optimizer, CHOICE, "adam", 0, 0, RESULTS, NULL, RARE, "--optimizer", "adam|adamw|sgd",                         \
      "as PyTorch defines them", NULL)                                                                               \
    X(lr, ABOVE, 0.01, 0, 0, RESULTS, NULL, COMMON, "--lr", "X", "learning rate", NULL)                              \
    X(weight_decay, REAL, 0, 0, 0, RESULTS, NULL, COMMON, "--weight-decay", "X",                                     \
      "L2, added to the gradient; of adamw, shrinks the weights", NULL)                                              \
    X(momentum, REAL, 0, 0, 1, RESULTS, NULL, RARE, "--momentum", "X", "of sgd, from 0 to below 1", NULL)            \
    X(clip_norm, ABOVE, 0, 0, 0, RESULTS, "none", RARE, "--clip-norm", "X",                                          \
      "most 2-norm of all gradients together; 0: any", NULL)                                                         \
    X(schedule, CHOICE, "none", 0, 0, RESULTS, NULL, RARE, "--schedule", "none|step|cosine|plateau",                 \
      "how the learning rate falls", NULL)                                                                           \
    X(schedule_every, COUNT, 0, 0, 0, RESULTS, NULL, RARE, "--schedule-every", "K",                                  \
      "step: epochs from one fall to the next; plateau: without\na better validation result", "30; plateau: 10")     \
    X(schedule_by, ABOVE, 0.1, 0, 1, RESULTS, NULL, RARE, "--schedule-by", "X",                                      \
      "step, plateau: what a fall multiplies the rate by", NULL)                                                     \
    X(warmup, COUNT, 0, 0, 0, RESULTS, NULL, RARE, "--warmup", "N", "epochs over which the rate rises to --lr",      \
      NULL)                                                                                                          \
    X(keep, CHOICE, NULL, 0, 0, RESULTS, "best", RARE, "--keep", "best|last",                                        \
      "weights of the best validation result (--keep-by), or the\nlast", "best, where it is known")                  \
    X(keep_by, CHOICE, NULL, 0, 0, RESULTS, NULL, RARE, "--keep-by",                                                 \
      "loss|accuracy|balanced|f1|micro_f1|auc|ap|mse|mae|r2|mrr",                                                    \
      "figure of validation that --keep, --patience and the schedule\n"                                              \
      "plateau go by; balanced: the mean of the classes'\naccuracies",                                               \
      "loss; of numbers mse; of edges mrr, auc")                                                                     \
    X(patience, COUNT, 0, 0, 0, RESULTS, NULL, COMMON, "--patience", "K",                                            \
      "stop when the validation result has not been better for K\nepochs; 0: never", NULL)                           \
    X(seed, LONG, 0, 0, 0, RESULTS, NULL, COMMON, "--seed", "S", "of the first weights and of dropout", NULL)        \
    X(eval_every, COUNT, 1, 0, 0, RESULTS, NULL, RARE, "--eval-every", "K",                                          \
      "with dropout: epochs between evaluations; 0: at the end alone", NULL)                                         \
    X(init, PATH, NULL, 0, 0, RESULTS, NULL, RARE, "--init", "W.safetensors", "weights to start from",               \
      "drawn, as the model says")

#define GS_MACHINE_OPTION_MAP(X)                                                                                     \
    X(device, TEXT, "cpu", 0, 0, NOTHING, NULL, COMMON, "--device", "cpu[:N]|cuda[:N]",                              \
      "what computes: processors, N parts of them, GPU N (0,1: both), or cpu,cuda:N", NULL)                          \
    X(topology, PATH, NULL, 0, 0, NOTHING, NULL, RARE, "--topology", "FILE",                                         \
      "of several devices: switches, the speed of their wires and their own (JSON)", "one switch")                   \
    X(matmul, CHOICE, "fp32", 0, 0, RESULTS, NULL, RARE, "--matmul", "fp32|tf32|bf16",                               \
      "what dense products may round to; processors: to bf16, with AVX512-BF16", NULL)                               \
    X(host_memory, SIZE, 0, 0, 0, NOTHING, NULL, COMMON, "--host-memory", "SIZE", "most memory that is resident",    \
      "80 % of what is free")                                                                                        \
    X(device_memory, SIZE, 0, 0, 0, NOTHING, NULL, COMMON, "--device-memory", "SIZE",                                \
      "most that a device holds; for cpu a part of the host's", "half of --host-memory")                             \
    X(threads, COUNT, 0, 0, 4096, NOTHING, NULL, COMMON, "--threads", "N", "threads that compute", "all")            \
    X(io_timeout, TIME, 600, 0, 0, NOTHING, "never", RARE, "--io-timeout", "TIME",                                   \
      "end a run where no read, write or launch of a GPU comes back\nfor so long (90s, 10m); 0: never", NULL)        \
    X(spill, PATH, NULL, 0, 0, NOTHING, NULL, RARE, "--spill", "DIR[,DIR...]",                                       \
      "folder for what does not fit in memory, or one a disk", "inside the store")                                   \
    X(spill_type, CHOICE, "f32", 0, 0, RESULTS, NULL, RARE, "--spill-type", "f32|bf16",                              \
      "what is kept for later stages may be rounded to", NULL)                                                       \
    X(gather_type, CHOICE, "f32", 0, 0, RESULTS, NULL, RARE, "--gather-type", "f32|bf16",                            \
      "what edges read may be rounded to", NULL)                                                                     \
    X(disk_to_device, CHOICE, "auto", 0, 0, NOTHING, NULL, RARE, "--disk-to-device", "auto|yes|no",                  \
      "edges come to one GPU past host memory (GPUDirect Storage);\nauto: where that is measured to be faster",      \
      NULL)                                                                                                          \
    X(no_cache, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-cache", NULL, "keep nothing in memory between tasks",  \
      NULL)                                                                                                          \
    X(no_pipeline, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-pipeline", NULL,                                    \
      "read, and draw batches, only when what was computed before is done", NULL)                                    \
    X(no_verify, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-verify", NULL,                                        \
      "do not check checksums as data arrives", NULL)                                                                \
    X(no_selective, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-selective", NULL,                                  \
      "read whole intervals of rows, needed or not", NULL)                                                           \
    X(no_prune, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-prune", NULL,                                          \
      "compute rows that the loss cannot see, too", NULL)                                                            \
    X(no_swap, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-swap", NULL, "take columns in store order", NULL)       \
    X(no_chain, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-chain", NULL,                                          \
      "each of several devices takes all that it needs from the host", NULL)                                         \
    X(no_pack, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-pack", NULL,                                            \
      "copy blocks of 4 KiB to devices, whichever of their rows are needed", NULL)                                   \
    X(no_width, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-width", NULL,                                          \
      "deal edge passes to devices by their targets, never by the width of rows", NULL)                              \
    X(no_spread, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-spread", NULL,                                        \
      "keep no rows of features for batches in the memory of GPUs", NULL)                                            \
    X(no_draw, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-draw", NULL,                                            \
      "no GPU draws batches", NULL)                                                                                  \
    X(products, CHOICE, "auto", 0, 0, NOTHING, NULL, RARE, "--products", "auto|edges|runs|pairs",                    \
      "by the matrix of an edge's type: one an edge, one for all edges that a\n"                                     \
      "vertex adds up of a type (runs), or that one sends of a type (pairs);\n"                                      \
      "auto: what is predicted to be faster", NULL)                                                                  \
    GS_COMPILER_OPTION_MAP(X)
/* Of the machine's, those of the compiler. */
#define GS_COMPILER_OPTION_MAP(X)                                                                                    \
    X(no_move, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-move", NULL,                                            \
      "do not move operators across an edge sum", NULL)                                                              \
    X(no_fuse, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-fuse", NULL,                                            \
      "compute edges anew for each sum over them", NULL)                                                             \
    X(no_batch, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-batch", NULL,                                          \
      "do not multiply edges by the matrix of their type in batches", NULL)                                          \
    X(no_hoist, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--no-hoist", NULL,                                          \
      "compute in every epoch what needs no parameter", NULL)

#define GS_RESULT_OPTION_MAP(X)                                                                                      \
    X(save, PATH, NULL, 0, 0, NOTHING, NULL, COMMON, "--save", "W.safetensors", "where the final weights go", NULL)  \
    X(logits, PATH, NULL, 0, 0, NOTHING, NULL, COMMON, "--logits", "OUT.npy",                                        \
      "float32 [vertices, classes] of the final weights, input order", NULL)                                         \
    X(trace, PATH, NULL, 0, 0, NOTHING, NULL, COMMON, "--trace", "OUT.json",                                         \
      "the last epoch's tasks as Chrome trace events (Perfetto opens them)", NULL)                                   \
    X(metrics, PATH, NULL, 0, 0, NOTHING, NULL, COMMON, "--metrics", "OUT.jsonl", "one line of JSON an epoch",       \
      NULL)

#define GS_CHECKPOINT_OPTION_MAP(X)                                                                                  \
    X(checkpoint, PATH, NULL, 0, 0, NOTHING, NULL, COMMON, "--checkpoint", "DIR",                                    \
      "folder for the run's state, the last two of it", NULL)                                                        \
    X(checkpoint_every, TEXT, NULL, 0, 0, NOTHING, NULL, RARE, "--checkpoint-every", "K|10m",                        \
      "epochs from one to the next, or 90s, 10m, 2h", "at most 2 % of the time")                                     \
    X(resume, PATH, NULL, 0, 0, NOTHING, NULL, COMMON, "--resume", "DIR",                                            \
      "go on from the newest state there, and keep the run's there;\n"                                               \
      "STORE and options that are left out are the run's", NULL)

#define GS_PREDICT_OPTION_MAP(X)                                                                                     \
    X(softmax, FLAG, false, 0, 0, NOTHING, NULL, RARE, "--softmax", NULL,                                            \
      "probabilities for logits: softmax; of several labels sigmoid", NULL)                                          \
    X(argmax, PATH, NULL, 0, 0, NOTHING, NULL, RARE, "--argmax", "OUT.npy",                                          \
      "int64 [vertices]: the class of the largest logit", NULL)                                                      \
    X(edges, PATH, NULL, 0, 0, NOTHING, NULL, RARE, "--edges", "PAIRS.npy",                                          \
      "of weights of pairs: those to score, [M, 2], or\n[M, 3] with types", NULL)                              \
    X(scores, PATH, NULL, 0, 0, NOTHING, NULL, RARE, "--scores", "OUT.npy", "float32 [M]: how they score", NULL)     \
    X(top, COUNT, 0, 1, 1048576, NOTHING, NULL, RARE, "--top", "K",                                                  \
      "PAIRS.npy are sources, [M], or [M, 2] with types: so many that\nscore best as their targets", NULL)           \
    X(targets, PATH, NULL, 0, 0, NOTHING, NULL, RARE, "--targets", "OUT.npy",                                        \
      "int64 [M, K]: these, the best first; scores are [M, K], too", NULL)                                           \
    X(classes, COUNT, 0, 1, 0, NOTHING, NULL, RARE, "--classes", "N",                                                \
      "how many there are, where neither weights nor labels say it", "as they say")

/* That a program sets, and no command line. */
#define GS_PROGRAM_OPTION_MAP(X)                                                                                     \
    X(keep_logits, FLAG, false, 0, 0, NOTHING, NULL, RARE, NULL, NULL, NULL, NULL)                                   \
    X(profile, FLAG, false, 0, 0, NOTHING, NULL, RARE, NULL, NULL, NULL, NULL)                                       \
    X(embeddings, FLAG, false, 0, 0, NOTHING, NULL, RARE, NULL, NULL, NULL, NULL)                                    \
    X(config, TEXT, NULL, 0, 0, NOTHING, NULL, RARE, NULL, NULL, NULL, NULL)                                         \
    X(command, TEXT, NULL, 0, 0, NOTHING, NULL, RARE, NULL, NULL, NULL, NULL)

#define GS_TRAIN_OPTION_MAP(X)                                                                                       \
    GS_MODEL_OPTION_MAP(X) GS_TASK_OPTION_MAP(X) GS_BATCH_OPTION_MAP(X) GS_TRAINING_OPTION_MAP(X)                    \
    GS_MACHINE_OPTION_MAP(X) GS_RESULT_OPTION_MAP(X) GS_CHECKPOINT_OPTION_MAP(X) GS_PREDICT_OPTION_MAP(X)            \
    GS_PROGRAM_OPTION_MAP(X)

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
