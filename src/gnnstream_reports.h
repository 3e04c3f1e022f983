/* gnnstream_reports.h - a part of gnnstream.h: reports of epochs, passes, training runs and plans.
 *
 * Plain values, no pointers. Programs include <gnnstream.h>, which explains the units.
 */
#ifndef GS_GNNSTREAM_REPORTS_H
#define GS_GNNSTREAM_REPORTS_H

#include "gnnstream_base.h"

/* Figures of a task besides the loss, for train, valid and test. NaN: the figure is of another task, was not evaluated,
 * or the split is empty. Classify: macro_f1 and balanced_acc (the mean of the classes' accuracies, over those that the
 * split has) are scikit-learn's f1_score and balanced_accuracy_score. Multilabel: a logit above 0 predicts the label;
 * F1 of a label that is neither present nor predicted is 0; macro is the mean over labels. The two areas need the
 * logits of a whole split: evaluations of multilabel tasks have them; where .keep_by names one, epochs that are
 * evaluated do, too. Regress: means over columns; r2 is scikit-learn's r2_score. */
typedef struct gs_task_figures {
    char task[16]; /* "classify", "multilabel", "regress", "link", "edge-classify", "edge-regress" */
    double micro_f1[3], macro_f1[3], roc_auc[3], average_precision[3];
    double mse[3], mae[3], r2[3];
    double balanced_acc[3];
    double valid_loss; /* mean loss over the validation vertices, or over their known labels, weighted as in training */
    /* Of pairs ("link"), but for those of training: the mean of 1 / rank of either end among all vertices that make no
     * known pair, and how many ranks are at most 1, 3 and 10. Pairs without types have roc_auc instead, beside as many
     * random ones. */
    double mrr[3], hits1[3], hits3[3], hits10[3];
    double rmse[3]; /* of numbers of edges: the square root of mse */
} gs_task_figures;

/* One epoch, as a line of the metrics file has it. Loss and accuracies are of the weights before the epoch's update. */
typedef struct gs_epoch_report {
    uint32_t epoch, epochs; /* number of the epoch, from 1, and how many were asked for */
    bool over;              /* .patience has run out: gs_train() ends here */
    double lr, loss;        /* rate of the update; mean loss over the training vertices, or over their known labels */
    double accuracy[3];     /* train, valid, test; NaN where not evaluated */
    double seconds, compute_seconds, stall_seconds;
    double edge_seconds;    /* the part of compute_seconds that sums over edges took */
    uint64_t read_bytes, written_bytes;
    uint64_t copied_in_bytes, copied_out_bytes; /* from the host to devices with memory of their own, and back: those of
                                                 * the plan's links, parameters and gradients, and rows of batches */
    uint64_t forwarded_bytes; /* from one device to another */
    uint64_t loaded_bytes;    /* the part of read_bytes that went to a device without host memory (.disk_to_device) */
    uint64_t peak_host_bytes; /* most bytes that this process ever had resident */
    uint64_t peak_device_bytes;
    gs_task_figures figures;
    /* On batches, beside compute_seconds and stall_seconds: drawing them, on GPUs while others are trained; putting
     * together their rows and edges; copying to devices with memory of their own, and back; the optimiser's steps. Of
     * several devices those of the one that was busy longest. */
    double sample_seconds, pick_seconds, copy_seconds, step_seconds;
    uint64_t sent_bytes; /* from ranks to each other, rows of the plan. Bytes of an epoch are those of all ranks */
    uint64_t handed_over; /* tasks of devices that a thread began as it saw another one over, and no device did */
} gs_epoch_report;

/* Whether a plan uses an alternative program of the model, and why. */
typedef enum gs_taken {
    GS_NOT_TAKEN = 0,
    GS_TAKEN_SHORTER, /* the run was predicted to be shorter */
    GS_TAKEN_LEANER,  /* it needs at most three quarters of the memory, and the run is predicted to be at most 1 %
                       * longer */
    GS_TAKEN_TO_FIT,  /* the programs that were tried before it exceed a budget */
    GS_TAKEN_AS_TRAINED, /* the weights of the prediction come from such a program: its logits have the same bits */
} gs_taken;

/* Predicted seconds of one run of a pass, and for how many of them each resource is busy: the disk with reads and
 * writes, the device with edge sums and vertex programs, a thread with checksums and requests. */
typedef struct gs_predicted {
    double seconds, read_seconds, write_seconds, edge_seconds, vertex_seconds, check_seconds;
    double stall_seconds; /* the device waits for data */
    char bottleneck[24];  /* what bounds the pass: "reading", "writing", "edge sums", ...; "waiting": no resource is
                           * busy all the time */
} gs_predicted;

/* The search for an order of columns: how many orders were tried, predicted seconds in store order and in the best one,
 * and whether the plan uses that one, which it does if it saves 2 %. tried is 0 if only one order is possible, or with
 * .no_swap. */
typedef struct gs_order_report {
    uint32_t tried;
    double store_seconds, best_seconds;
    bool taken;
} gs_order_report;

/* One pass over the graph: "train" is an epoch, "eval" and "predict" go forward only. */
typedef struct gs_pass_report {
    char name[16];
    uint32_t blocks; /* intervals that the plan cuts the graph into, so that it fits: the effective P */
    uint32_t tasks;
    uint64_t read_bytes, read_requests, written_bytes;
    uint64_t skipped_bytes; /* rows of the intervals that edge passes read, left out because no edge needs them */
    uint64_t cached_bytes; /* reads that were saved because the data stayed in memory */
    uint64_t edges, rows;  /* edges of its edge passes and rows of its vertex programs, summed over stages */
    uint64_t edge_bytes;   /* rows gathered along edges */
    uint64_t upload_bytes, forward_bytes, download_bytes; /* with several devices: from the host, between devices, to
                                                           * the host */
    double dense_flops, edge_flops;
    gs_predicted predicted;
    gs_order_report order;
    /* Alternative programs of the model, which may be combined. recomputes: computes values again instead of storing
     * them; keeps: the other way round. lean: holds less of what is computed only once. batches: multiplies rows of
     * edges by the matrix of their type in batches of one type, instead of sums by type or products for all types.
     * splits: stores sums, so that other devices can run the vertex programs that use them. The choice depends on the
     * recorded costs of the machine; weights can then differ by rounding. */
    gs_taken recomputes, keeps, lean, batches, splits;
    /* Optimisations that the plan does without, though the options leave them on: computing once what depends on no
     * parameter, moving products across sums, sums that share an edge program, leaving rows out. */
    gs_taken no_hoist, no_move, no_fuse, no_prune;
    double products; /* of rows by the matrix of an edge's type, as expected, and of `product_edges` edges, over all */
    uint64_t product_edges; /* stages that make such products; gradients of the matrices beside one are not counted */
    gs_taken width;         /* edge passes are dealt to devices by the width of rows: sums have the same bits */
} gs_pass_report;

typedef struct gs_train_report {
    uint32_t epochs;        /* run */
    uint32_t kept_epochs, saved_epochs; /* updates behind the weights that were kept; epochs that .patience saved */
    double loss;            /* of the final weights, without dropout */
    double accuracy[3];     /* train, valid, test of the final weights; NaN for an empty split */
    uint64_t parameters;    /* numbers learned */
    double open_seconds;    /* from the call to the first epoch */
    double seconds;         /* the epochs alone */
    uint64_t read_bytes, written_bytes; /* the epochs alone */
    uint64_t peak_host_bytes, peak_device_bytes;
    char device[192];        /* "cpu (AVX2, 2 threads)" */
    char io[64];            /* "io_uring", "threads", ... */
    char io_note[256];      /* what keeps faster I/O off, or "" */
    gs_pass_report plan;    /* of the training pass; zero after a prediction */
    double transfer_seconds; /* with `profile`: an epoch's reads and writes once more, with nothing computed beside
                              * them */
    gs_task_figures figures; /* of the final weights */
} gs_train_report;

/* The provenance of a .safetensors file. Everything is 0 or "" if another program wrote the file. */
typedef struct gs_weights_summary {
    char version[16];  /* of the library */
    char model[64];    /* "gcn", or the name of its text's file */
    uint32_t layers, hidden, heads, bases; /* as in gs_train_options */
    char activation[16];
    uint32_t features, classes, edge_types; /* of the store that it was trained on */
    uint32_t epochs;   /* updates of the weights */
    char store[96];    /* last part of the store's path, and its gs_store_summary.id */
    uint64_t store_id;
} gs_weights_summary;

/* ---- plans --------------------------------------------------------------- */

/* What an epoch moves of one file: of an array, or of edges. */
typedef struct gs_file_report {
    char name[64];
    uint64_t read_bytes, written_bytes; /* an epoch */
    uint64_t kept_bytes;                /* that stay in host memory */
} gs_file_report;

typedef struct gs_memory_item {
    char name[48];
    uint64_t bytes;
    bool device; /* counts against the device's budget, and on the CPU against the host's, too */
} gs_memory_item;

#define GS_PLAN_PASSES 4
#define GS_PLAN_ITEMS 24
#define GS_PLAN_FILES 48
#define GS_PLAN_DEVICES 16 /* most devices of a run */
#define GS_PLAN_LINKS (2 + 4 * GS_PLAN_DEVICES)
#define GS_PLAN_WAYS 20 /* most ways to use devices that are compared */

/* A link between two memories, and what each pass moves over it. Loads at the start of a run are not included. */
typedef struct gs_link_report {
    char from[16], to[16]; /* "disk", "host", "device 0"; from "chain" or "ring": from the device before it there, which
                            * forwards what it has; from "network": from hosts of other ranks */
    struct {
        uint64_t bytes, requests;
        double seconds;    /* predicted; for so long the link is busy */
    } pass[GS_PLAN_PASSES];
} gs_link_report;

/* One way to use devices of different speed or memory: all of them, or some. */
typedef struct gs_way_report {
    char words[128];
    double seconds; /* predicted, of an epoch; 0: it exceeds a budget */
    bool taken;
} gs_way_report;

#define GS_PLAN_PRODUCTS 32 /* most stages with products by the matrices of edges' types that are listed */

/* A stage whose rows are multiplied by the matrix of an edge's type: for what, and what each way would take. */
typedef struct gs_product_report {
    char stage[64];
    uint64_t edges, runs; /* it goes over; of one target and one type, expected; 0: they were not counted */
    double edge_seconds, run_seconds; /* predicted for its edge program, one product an edge, or a run; 0: not possible,
                                       * or not looked at */
    bool by_runs;
    uint64_t pairs;      /* of one operand and one type, likewise */
    double pair_seconds; /* with one product a pair, which its edges read */
    bool by_pairs;
    bool measured; /* the seconds, of processors: on chunks of this store, before a run's first epoch. 0: that way was
                    * not, as it was predicted to be far longer */
} gs_product_report;

#define GS_PLAN_PROGRAMS 24 /* most programs that are listed */

/* One of the programs of the model that were planned for the run, of which the shortest that fits is taken. */
typedef struct gs_program_report {
    char words[192];     /* what it does otherwise than the first one, of which they say so */
    double seconds;      /* predicted for the run; 0: it has no plan within the budgets */
    uint64_t host_bytes; /* of its plan */
    bool taken;
} gs_program_report;

typedef struct gs_plan_report {
    uint64_t vertices, edges, parameters;
    uint64_t host_memory, device_memory; /* the budgets */
    uint64_t host_bytes, device_bytes;   /* most bytes used of each; of several devices, of the one that uses most */
    uint32_t devices;
    uint64_t spill_bytes;                /* of the files in the spill folder */
    uint64_t flight_bytes;               /* most bytes of reads and writes under way at a time */
    bool unified;                        /* the device's memory is a part of the host's */
    uint32_t passes, items;
    gs_pass_report pass[GS_PLAN_PASSES];
    gs_memory_item item[GS_PLAN_ITEMS];
    uint32_t files;
    gs_file_report file[GS_PLAN_FILES];
    char basis[16]; /* what predicted seconds are based on: "fitted" to epochs of this machine, "ceiling" (bench limits)
                     * or "default" */
    uint32_t links;     /* the disk's two, and three of each device with memory of its own */
    gs_link_report link[GS_PLAN_LINKS];
    uint64_t device_kept_bytes[GS_PLAN_FILES][GS_PLAN_DEVICES]; /* bytes of each file that stay in a device's memory
                                                                 * from epoch to epoch */
    uint64_t budget_of[GS_PLAN_DEVICES], bytes_of[GS_PLAN_DEVICES]; /* memory of each of several devices */
    uint32_t ways; /* compared; 0: all devices are alike, or there is one */
    gs_way_report way[GS_PLAN_WAYS];
    uint32_t batch_devices; /* devices that train batches; 0: the whole graph is one step */
    uint32_t batch_group;   /* most batches that are drawn before the first of them is trained */
    uint64_t batch_ring;    /* most bytes that each device reads ahead of its next batch; 0: it does not read ahead */
    uint32_t batch_side;    /* batches of a device whose rows of features are read at once; 0: none are read */
    double batch_read_seconds, batch_read_alone_seconds; /* predicted for reading the rows of a batch so, in the mean,
                                                          * and of each batch by itself; 0: not predicted */
    uint64_t batch_rows[GS_PLAN_DEVICES]; /* rows of features that each device keeps in memory of its own */
    uint32_t batch_share[GS_PLAN_DEVICES]; /* batches of a step that each device trains */
    uint32_t steps;      /* of an epoch on batches */
    double step_seconds; /* predicted for a whole step on all devices together, in the mean over an epoch, without reads
                          * of features; each batch is taken to be as one from the middle of an epoch */
    double draw_seconds; /* the part of step_seconds that drawing takes; 0: not known, as no gs_bench_train() on batches
                          * has measured it */
    uint32_t epochs, evaluations; /* of the run that was planned; evaluations: runs of the pass "eval" or "predict" */
    double run_seconds;  /* predicted for all of them and the pass "setup"; 0: of a run on batches, or a prediction */
    uint32_t product_stages;
    gs_product_report product_stage[GS_PLAN_PRODUCTS];
    uint64_t draw_bytes; /* of a GPU's memory, with which it draws batches itself: in-edges, labels and what is in
                          * between. 0: the processors draw them */
    uint32_t programs;
    gs_program_report program[GS_PLAN_PROGRAMS];
    /* Of a step on batches, as step_seconds: picking rows on the host, sending them to a device, and computing there,
     * of the device that is busy longest with it. Lanes, which go on beside each other as far as there is memory. */
    double pick_seconds, send_seconds, compute_seconds;
    /* Kinds of work of the plan, "row sums, checksums", whose seconds are fitted to epochs of this machine, are what
     * `bench limits` measured, and are defaults; basis is the least of these that there is. */
    char fitted[160], measured[160], guessed[160];
    double others; /* the share of the processors that other programs had while those epochs were timed, 0 to 1 */
    uint64_t pair_bytes; /* of ranks that train on pairs behind layers: what an epoch's batches of pairs move between
                          * them, rows, their gradients and the decoder's, evaluations aside; beside the links' */
} gs_plan_report;

#define GS_CLUSTER_LINKS 8

/* What an epoch would be on ranks that need not be there (gs_plan_cluster()). Bytes and seconds of links, memory and
 * disk are of one of them, as edges are spread evenly. */
typedef struct gs_cluster_report {
    uint32_t ranks, planned; /* a run has 16 at most: of more, so many were planned, with all that each of them has */
    uint32_t parts;          /* intervals of the store that was planned for, of `planned` ranks */
    uint64_t vertices, edges, parameters;
    uint32_t links;
    struct {
        char name[40];
        double bytes, seconds; /* an epoch */
    } link[GS_CLUSTER_LINKS];
    double compute_seconds, disk_seconds, network_seconds; /* for so long an epoch keeps each busy */
    double epoch_seconds, run_seconds; /* of all epochs, with what is computed once and evaluations */
    char bound[16];          /* what is busy longest, "compute", "disk" or "network"; "waiting": none of them half of
                              * the time */
    uint64_t memory, memory_bytes; /* its budget, and what is used of it */
    uint64_t table_bytes;    /* tables of all chunks, and the list of what all ranks do: each has them, and they grow
                              * with the square of the number of ranks */
    uint64_t store_bytes, spill_bytes; /* on its disk: its part of the store, with rows that it reads of others'; and
                                        * files of the run */
    double epoch_price, run_price; /* of all ranks; 0: the file says no price */
    gs_plan_report plan;     /* of the ranks that were planned */
} gs_cluster_report;

#endif /* GS_GNNSTREAM_REPORTS_H */
