/* session.h - a store, a model and a machine, brought together for a run.
 *
 * gs_session_open() does everything that moves no data: it opens the store and
 * the device, compiles the passes, accounts for memory and makes the plan. What
 * it refuses is refused before any file is touched. gs_session_start() takes
 * the memory and opens the files; gs_session_run() runs one pass.
 * Units: bytes. One thread owns a session.
 */
#ifndef GS_TRAIN_SESSION_H
#define GS_TRAIN_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cost/cost_file.h"
#include "device/device.h"
#include "exec/exec.h"
#include "gnnstream.h" /* gs_train_options, gs_plan_report */
#include "plan/plan.h"
#include "program/program.h"
#include "schedule/schedule.h" /* GS_EDGE_SETS */
#include "store/store.h"
#include "train/optim.h"
#include "train/params.h"
#include "train/session_scans.h"

typedef enum gs_purpose {
    GS_FOR_TRAINING,   /* passes "train", and "eval" or "predict" */
    GS_FOR_PREDICTION, /* pass "predict" */
} gs_purpose;

/* What is left of a direction's edges between two sets of rows: an edge file of the run. */
typedef struct gs_left_edges {
    uint32_t direction, targets, operands; /* numbers of row sets */
    gs_chunk *chunk;
    uint64_t bytes;
    char *path;  /* from gs_session_write_left() on */
} gs_left_edges;

typedef struct gs_session {
    const gs_train_options *options; /* the caller's; lives as long as the session */
    gs_store *store;
    gs_device *device;             /* the first of */
    gs_device *devices[GS_DEVICE_COUNT_MOST];
    uint32_t device_count;
    gs_topology wires;
    gs_tree *tree;                 /* of the machine, for GPUs; NULL: not known */
    uint32_t node[GS_DEVICE_COUNT_MOST]; /* that each device is near to */
    const gs_topology *topology;   /* of several devices: &wires; else NULL */
    gs_program *program;
    gs_plan *plan;
    gs_exec *exec;
    gs_params params;
    uint32_t train, eval, predict; /* passes of the program, or GS_NONE */
    bool gradients;
    bool apart;                    /* the train pass computes other logits than an evaluation */
    uint32_t states;               /* runs of optimiser state */
    bool labelled;                 /* eval and predict give loss and accuracies */

    uint64_t host_memory, device_memory; /* budgets; the latter of each device */
    uint64_t staging_bytes, mirror_bytes; /* of a device with memory of its own */
    gs_device_orders orders;       /* of what is mirrored, where there is room */
    uint64_t logits_memory;        /* for gs_logits_write(); 0: none wanted */
    uint64_t process_bytes; /* resident when the plan was made */
    uint64_t live_most;     /* of the heap, while plans are made: gs_schedule_config */
    gs_taken recompute;     /* values are rather made again than stored */
    gs_taken batch;         /* products with the matrix of an edge's type are made edge by edge, in batches */
    gs_taken lean;          /* and what is computed once is to take little memory */
    gs_refusal refused;     /* of a plan that does not fit: what would */
    uint64_t host_fixed, device_fixed;
    uint32_t items;
    gs_memory_item item[GS_PLAN_ITEMS]; /* what the two are made of */
    gs_cost cost;                  /* what is known of this machine */
    bool profile;                  /* every task is timed */

    gs_scans *scans;               /* while programs are compared; else NULL */
    uint32_t sets;                 /* edge sets of the plan: the store's directions first */
    gs_edge_set set[GS_EDGE_SETS];
    uint32_t *stage_set;           /* [stages] */
    gs_left_edges left[GS_EDGE_SETS]; /* of sets from 2 on */
    gs_row_sets rows;              /* until the run starts */
    gs_row_runs *stage_rows;       /* [stages] while the plan is made, or NULL where every stage runs for all rows */
    gs_row_runs *array_rows;       /* [arrays] likewise */
    gs_exec_chunk *chunk[GS_EDGE_SETS]; /* what exec knows of each; NULL where no stage uses it */
    char **path;                   /* [arrays + sets] of the run's files; exec speaks of them */
    char *spill;                   /* the run's own folder, or NULL */
} gs_session;

/* `store` is a folder; options have passed gs_train_options_check(). `logits`:
 * the predict pass stores them. GS_ENOTFOUND, GS_EFORMAT, GS_EINVAL (the
 * store lacks what the purpose needs), GS_EBUDGET, GS_ENOMEM. */
gs_status gs_session_open(gs_session **out, const char *store, const gs_train_options *options, gs_purpose purpose,
                          bool logits);
/* The same after another session of the process: `process_bytes` is what that one found, or 0. */
gs_status gs_session_open_after(gs_session **out, const char *store, const gs_train_options *options,
                                gs_purpose purpose, bool logits, uint64_t process_bytes);
void gs_session_close(gs_session *s); /* NULL is allowed; removes the spill folder */

/* Takes parameters (zeroed) and all memory of the plan, makes the spill files. */
gs_status gs_session_start(gs_session *s);

/* session_update.c: the optimiser's step where the parameters are. Devices that can hold them for the run: then the
 * values of `params` that are learned are those of the last gs_session_bring_params(), and gradients never come
 * here. */
bool gs_session_steps_on_device(const gs_session *s);
/* When the parameters have their first values. Does nothing where the host has them. */
gs_status gs_session_keep_params(gs_session *s);
/* After a train pass. */
gs_status gs_session_update(gs_session *s, gs_optim *o);
gs_status gs_session_bring_params(gs_session *s);

/* What no epoch changes is computed once: after the parameters have their first values, as it may depend on those
 * that are not learned. */
gs_status gs_session_setup(gs_session *s);

/* One run of a pass: `epoch` is 1-based and keys dropout. Gradients are zeroed
 * before and filled by the train pass only. `again`: the next run is of this pass too. */
gs_status gs_session_run(gs_session *s, uint32_t pass, uint32_t epoch, bool again, gs_exec_stats *out);

/* The pass "eval" runs before the epoch's pass "train". */
bool gs_session_evaluates(const gs_session *s, uint32_t epoch);

/* Rows of the logits after the predict pass: a gs_logits_source. */
gs_status gs_session_logits(void *session, uint64_t first, uint64_t rows, float *dst);
/* Bytes that the run has on the disk while it runs. */
uint64_t gs_session_spill_bytes(const gs_session *s);
/* Folder for scratch files: the spill folder where there is one, or its place. */
const char *gs_session_scratch_dir(const gs_session *s);

/* session_edges.c: the edge sets that the plan may use, and what it must know of them. Makes the store's two the only
 * ones, each stage's by its direction. */
gs_status gs_session_list_edges(gs_session *s);
/* True where a stage sums over the edges of this set. */
bool gs_session_uses_set(const gs_session *s, uint32_t set);
/* The finest granules for which the planner may know what chunks need, within the host's budget; {0} for none. */
gs_granules gs_session_granules(const gs_session *s);
/* Which granules of rows each chunk of the store's sets needs, into set[].need: reads the edge files
 * once. Free with gs_session_drop_needs() when the plan is made. */
gs_status gs_session_read_needs(gs_session *s, gs_granules g);
void gs_session_drop_needs(gs_session *s);
/* Only those that gs_session_read_needs() read: of the store's own edges. */
void gs_session_drop_read_needs(gs_session *s);

/* session_prune.c: only what the loss can see. Finds the rows that each stage must run for, and the edges that are
 * left, as further sets; fills config->stage_rows and array_rows. Changes nothing where all rows are needed, --no-prune
 * is given or nothing can be written. */
gs_status gs_session_prune(gs_session *s, gs_schedule_config *config);
/* Writes what is left into the spill folder, and the checksums into the chunk tables. */
gs_status gs_session_write_left(gs_session *s);
void gs_session_drop_left(gs_session *s);
/* The rows that stages run for, when the plan is made. */
void gs_session_drop_runs(gs_session *s);

/* session_device.c: opens the devices that the options name, and reads how they hang together. */
gs_status gs_session_open_devices(gs_session *s);
/* Of a device with memory of its own, what it must hold for any launch beside its arena; and what is
 * made of the memory that a plan leaves. */
uint64_t gs_session_staging(const gs_session *s);
void gs_session_use_spare(gs_session *s);
/* Host memory of the orders in which it may take targets. */
uint64_t gs_session_order_bytes(const gs_session *s);
/* Free memory of each device, where they have their own: devices on one GPU share its. */
uint64_t gs_session_free_device_memory(const gs_session *s);

/* session_plan.c: accounts for what the plan does not, and makes it. */
gs_status gs_session_plan(gs_session *s, bool logits);
/* Of the process, beside what is accounted for; `before`: what a session before this one found, or 0. */
uint64_t gs_session_process_bytes(uint64_t before);
gs_status gs_session_describe_pass(const gs_session *s, gs_pass_report *out, uint32_t pass);
gs_status gs_session_describe(const gs_session *s, gs_plan_report *out);

/* What the last epochs' tasks took, epoch by epoch. */
#define GS_PROFILE_EPOCHS 15u
typedef struct gs_profile {
    uint32_t epochs; /* observed; epoch k is at k % GS_PROFILE_EPOCHS */
    double seconds[GS_PROFILE_EPOCHS], computing[GS_PROFILE_EPOCHS];
    gs_fit fit[GS_PROFILE_EPOCHS];
} gs_profile;

/* session_profile.c: the times of the last run of the train pass. The session profiles. */
void gs_session_observe(const gs_session *s, const gs_exec_stats *x, gs_profile *p);
/* Adds the median epoch to what is known of this machine. GS_EIO, GS_ENOTFOUND, GS_ENOMEM. */
gs_status gs_session_remember(const gs_session *s, const gs_profile *p);

#endif /* GS_TRAIN_SESSION_H */
