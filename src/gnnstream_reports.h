/* gnnstream_reports.h - a part of gnnstream.h: what is told of an epoch, a pass, a training run and a plan.
 *
 * Values alone. Programs include <gnnstream.h>, which includes this and says what units are.
 */
#ifndef GS_GNNSTREAM_REPORTS_H
#define GS_GNNSTREAM_REPORTS_H

#include "gnnstream_base.h"

/* What a task is judged by besides the loss, of train, valid, test; NaN: of another task, not evaluated, or an empty
 * split. Multilabel: a logit above 0 says that a label is there; F1 is 0 where none is there and none found; macro: the
 * mean over labels. The two areas need the logits of a whole split and come with evaluations alone, not with epochs.
 * Regress: means over columns, r2 as scikit-learn's r2_score. */
typedef struct gs_task_figures {
    char task[16]; /* "classify" (judged by accuracy), "multilabel" (micro_f1), "regress" (mse) */
    double micro_f1[3], macro_f1[3], roc_auc[3], average_precision[3];
    double mse[3], mae[3], r2[3];
} gs_task_figures;

/* One epoch, as a line of the metrics file. Loss and accuracies are of the
 * weights before the epoch's update. */
typedef struct gs_epoch_report {
    uint32_t epoch, epochs; /* 1-based; of how many */
    bool over;              /* .patience has run out: gs_train() ends here */
    double lr, loss;        /* of the update; mean over the training vertices, or their known labels */
    double accuracy[3];     /* train, valid, test; NaN where not evaluated */
    double seconds, compute_seconds, stall_seconds;
    double edge_seconds;    /* of compute_seconds, in sums over edges */
    uint64_t read_bytes, written_bytes;
    uint64_t copied_in_bytes, copied_out_bytes; /* between host and devices with memory of their own: what
                                                 * gs_plan_report has of their links, and what passes bring besides */
    uint64_t forwarded_bytes; /* between several devices */
    uint64_t loaded_bytes;    /* of read_bytes: those that came to a device past host memory (.disk_to_device) */
    uint64_t peak_host_bytes;   /* most this process ever had resident */
    uint64_t peak_device_bytes;
    gs_task_figures figures;
} gs_epoch_report;

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
     * place of sums by type or products for all types, or that stores sums so that other devices may run the vertex
     * programs that they are for. Which program it is can change with what is known of the machine, and with it the
     * rounding of weights. */
    gs_taken recomputes, lean, batches, splits;
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
    char device[192];        /* "cpu (AVX2, 2 threads)" */
    char io[64];            /* "io_uring", "threads", ... */
    char io_note[256];      /* what keeps faster I/O off, or "" */
    gs_pass_report plan;    /* of the training pass; zero after a prediction */
    double transfer_seconds; /* with `profile`: an epoch's reads and writes once more, with nothing computed beside
                              * them */
    gs_task_figures figures; /* of the final weights */
} gs_train_report;

/* What a .safetensors file says of how it came about. All is 0 or "" where another program wrote it. */
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
#define GS_PLAN_LINKS (2 + 4 * GS_PLAN_DEVICES)
#define GS_PLAN_WAYS 20 /* most ways to use devices that are compared */

/* One way between two memories: what each pass moves over it. What is loaded when the run opens is no part of it. */
typedef struct gs_link_report {
    char from[16], to[16]; /* "disk", "host", "device 0"; "chain", "ring": a device before it there, which hands
                            * on */
    struct {
        uint64_t bytes, requests;
        double seconds;    /* predicted: the link is busy */
    } pass[GS_PLAN_PASSES];
} gs_link_report;

/* A way to use devices that are not alike: all of them, or some. */
typedef struct gs_way_report {
    char words[128];
    double seconds; /* predicted, of an epoch; 0: it does not keep the budgets */
    bool taken;
} gs_way_report;

typedef struct gs_plan_report {
    uint64_t vertices, edges, parameters;
    uint64_t host_memory, device_memory; /* the budgets */
    uint64_t host_bytes, device_bytes;   /* used of them at the most; of each device, or of the one that has most */
    uint32_t devices;
    uint64_t spill_bytes;                /* files made in the spill folder */
    uint64_t flight_bytes;               /* most that the disk has under way */
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
    uint64_t budget_of[GS_PLAN_DEVICES], bytes_of[GS_PLAN_DEVICES]; /* memory of each of several devices */
    uint32_t ways; /* that were compared; 0: devices are alike, or there is one */
    gs_way_report way[GS_PLAN_WAYS];
    uint32_t batch_devices; /* that train batches; 0: the whole graph is a step */
    uint32_t batch_group;   /* batches that are drawn before the first of them is trained, at most */
    uint64_t batch_rows[GS_PLAN_DEVICES]; /* rows of features that each has in memory of its own for them */
    uint32_t batch_share[GS_PLAN_DEVICES]; /* batches of a step that it trains */
    uint32_t steps;      /* of an epoch on batches, and predicted seconds of a whole one, all devices together: of a
                          * batch as others are, without reading features */
    double step_seconds;
    double draw_seconds; /* of them, for drawing; 0: no run of gs_bench_train() on batches says what it takes */
} gs_plan_report;

#endif /* GS_GNNSTREAM_REPORTS_H */
