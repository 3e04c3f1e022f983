/* session.h - a store, a model and a machine, brought together for a run: options -> program -> plan -> run.
 *
 * Five verbs, each with one meaning in this room:
 *   open     gs_session_open(): from options to a session that can start. Moves no data but what it reads of the
 *            store; what it refuses is refused before any file is touched. Opening is choosing.
 *   choose   choose.h: a model can be compiled to several programs; each one that is considered is prepared and
 *            planned, and the plans decide which is kept
 *   prepare  session_prepare.c: store, devices and one compiled program; nothing is known of memory yet
 *   plan     session_plan.c: accounts for the memory that a plan does not know, finds the rows and edges that a run
 *            needs, and has gs_schedule() lay the program over the rest of the budgets
 *   start    start.c: takes the memory of the plan and makes the files of the run
 * Then gs_session_run() runs a pass, as often as one likes, and gs_session_close() ends it all.
 *
 * gs_schedule() plans one program over given edges at given costs. A session decides what it is given; these three
 * are its share of planning:
 *   choose.c   which program: by predicted time, or the first that keeps the budgets
 *   prune.c    which rows and edges: only what the loss and the reported accuracies can see
 *   profile.c  at which costs: what timed epochs said about this machine, remembered for later plans
 *
 * Knows neither epochs nor optimisers nor result files; those are train's. Units: bytes. One thread owns a session.
 */
#ifndef GS_SESSION_SESSION_H
#define GS_SESSION_SESSION_H

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
#include "session/params.h"
#include "session/scans.h"
#include "store/store.h"

typedef enum gs_purpose {
    GS_FOR_TRAINING,   /* passes "train", and "eval" or "predict" */
    GS_FOR_PREDICTION, /* pass "predict" */
} gs_purpose;

/* What a session is opened for. Pointers are the caller's and live as long as the session. */
typedef struct gs_session_config {
    const char *store;               /* folder */
    const gs_train_options *options; /* have passed gs_train_options_check(); what speaks of the model, the machine and
                                      * the spill folder counts here, and `seed` (of dropout) and `stop` */
    gs_purpose purpose;
    bool logits;          /* the pass "predict" stores them */
    bool timed;           /* when every task began and ended is kept */
    uint32_t states;      /* runs of optimiser state, like the parameters, while training */
    uint32_t eval_every;  /* train passes from one evaluation to the next, where training computes other values;
                           * 0: none */
    uint64_t process_bytes; /* what another session of the process found resident before libraries touched any of what
                             * they are allowed; 0: this is the first */
} gs_session_config;

/* How a model is compiled (compile.h), and why so. */
typedef struct gs_variant {
    gs_taken recompute; /* values are rather made again than stored */
    gs_taken lean;      /* what is computed once is to take little memory */
    gs_taken batch;     /* products with the matrix of an edge's type are made edge by edge, in batches */
} gs_variant;

/* devices.c: the devices of the run, how they hang together, and what is known of their speed. */
typedef struct gs_session_machine {
    uint32_t devices;
    gs_device *device[GS_DEVICE_COUNT_MOST];
    uint32_t node[GS_DEVICE_COUNT_MOST]; /* NUMA node that each is near to */
    gs_topology wires;
    const gs_topology *topology; /* of several devices: &wires; else NULL */
    gs_tree *tree;               /* of the machine, for GPUs; NULL: not known */
    gs_cost cost;
} gs_session_machine;

/* session_prepare.c: the passes of the program. */
typedef struct gs_session_passes {
    uint32_t train, eval, predict; /* numbers of passes, or GS_NONE */
    bool gradients;     /* the pass "train" is there */
    bool train_differs; /* it computes other logits than an evaluation (dropout, batch statistics) */
    bool labelled;      /* eval and predict give loss and accuracies */
} gs_session_passes;

/* session_memory.c: the budgets, and what of them a plan does not account for. */
typedef struct gs_session_memory {
    uint64_t host, device;      /* budgets; the latter of each device */
    uint64_t host_fixed, device_fixed; /* taken by others than the plan */
    uint32_t items;
    gs_memory_item item[GS_PLAN_ITEMS]; /* what the two are made of */
    uint64_t process;           /* resident when the plan was made */
    uint64_t live_most;         /* of the heap, while plans are made: gs_schedule_config */
    uint64_t logits;            /* for gs_logits_write(); 0: none wanted */
    uint64_t staging, mirror;   /* of a device with memory of its own */
    gs_device_orders orders;    /* of what is mirrored, where there is room */
    gs_refusal refused;         /* of a plan that does not fit: what would */
} gs_session_memory;

/* What is needed of a direction's edges, between two sets of rows: an edge file of the run. */
typedef struct gs_pruned_edges {
    uint32_t direction, targets, operands; /* numbers of row sets */
    gs_chunk *chunk;
    uint64_t bytes;
    char *path;  /* from gs_session_write_pruned() on */
} gs_pruned_edges;

/* edges.c and prune.c: the edge sets of the plan, and the rows that stages run for. */
typedef struct gs_session_edges {
    uint32_t sets;                 /* the store's two directions first */
    gs_edge_set set[GS_EDGE_SETS];
    gs_pruned_edges pruned[GS_EDGE_SETS]; /* of sets from 2 on */
    uint32_t *stage_set;           /* [stages] */
    gs_row_sets rows;              /* until the run starts */
    gs_row_runs *stage_rows;       /* [stages] while the plan is made, or NULL where every stage runs for all rows */
    gs_row_runs *array_rows;       /* [arrays] likewise */
    gs_scans *scans;               /* choose.c's, while programs are compared; else NULL */
} gs_session_edges;

/* start.c: what a started run holds. */
typedef struct gs_session_run_state {
    gs_exec *exec;
    gs_params params;
    gs_exec_chunk *chunk[GS_EDGE_SETS]; /* what exec knows of each; NULL where no stage uses it */
    char **path;                        /* [arrays + sets] of the run's files; exec speaks of them */
    char *spill;                        /* the run's own folder, or NULL */
} gs_session_run_state;

typedef struct gs_session {
    gs_session_config config;
    gs_store *store;
    gs_session_machine machine;
    gs_variant variant;
    gs_program *program;
    gs_session_passes pass;
    gs_session_memory memory;
    gs_session_edges edges;
    gs_plan *plan;
    gs_session_run_state run;
} gs_session;

/* GS_ENOTFOUND, GS_EFORMAT, GS_EINVAL (the store lacks what the purpose needs), GS_EBUDGET, GS_ENOMEM. Blocks while
 * it reads the edge files and compares plans. */
gs_status gs_session_open(gs_session **out, const gs_session_config *config);
void gs_session_close(gs_session *s); /* NULL is allowed; removes the spill folder */

/* Takes parameters (zeroed) and all memory of the plan, makes the spill files. */
gs_status gs_session_start(gs_session *s);

/* session_step.c: where the parameters are. Devices that can hold them for the run step themselves: then the values of
 * `run.params` that are learned are those of the last gs_session_bring_params(), and gradients never come here. */
bool gs_session_steps_on_device(const gs_session *s);
/* When the parameters have their first values, or others. Does nothing where the host has them. */
gs_status gs_session_keep_params(gs_session *s);
/* After a train pass, on devices that step themselves. */
gs_status gs_session_step(gs_session *s, const gs_update *u);
gs_status gs_session_bring_params(gs_session *s);

/* What no epoch changes is computed once: after the parameters have their first values, as it may depend on those
 * that are not learned. */
gs_status gs_session_setup(gs_session *s);

/* One run of a pass: `epoch` is 1-based and keys dropout. Gradients are zeroed
 * before and filled by the train pass only. `again`: the next run is of this pass too. */
gs_status gs_session_run(gs_session *s, uint32_t pass, uint32_t epoch, bool again, gs_exec_stats *out);

/* Rows of the logits after the predict pass: a gs_logits_source. */
gs_status gs_session_logits(void *session, uint64_t first, uint64_t rows, float *dst);
/* Bytes that the run has on the disk while it runs. */
uint64_t gs_session_spill_bytes(const gs_session *s);
/* Folder for scratch files: the spill folder where there is one, or its place. */
const char *gs_session_scratch_dir(const gs_session *s);

/* edges.c: the edge sets that the plan may use, and what it must know of them. Makes the store's two the only
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

/* prune.c: only what the loss can see. Finds the rows that each stage must run for, and the edges that they
 * need, as further sets; fills config->stage_rows and array_rows. Changes nothing where all rows are needed, --no-prune
 * is given or nothing can be written. */
gs_status gs_session_prune(gs_session *s, gs_schedule_config *config);
/* Writes the pruned edges into the spill folder, and the checksums into the chunk tables. */
gs_status gs_session_write_pruned(gs_session *s);
void gs_session_drop_pruned(gs_session *s);
/* The rows that stages run for, when the plan is made. */
void gs_session_drop_runs(gs_session *s);

/* devices.c: opens the devices that the options name, and reads how they hang together. */
gs_status gs_session_open_devices(gs_session *s);
/* Of a device with memory of its own, what it must hold for any launch beside its arena; and what is
 * made of the memory that a plan leaves. */
uint64_t gs_session_staging(const gs_session *s);
void gs_session_use_spare(gs_session *s);
/* Host memory of the orders in which it may take targets. */
uint64_t gs_session_order_bytes(const gs_session *s);
/* Free memory of each device, where they have their own: devices on one GPU share its. */
uint64_t gs_session_free_device_memory(const gs_session *s);

/* session_memory.c: the budgets, and into the account what a run takes beside its plan. */
void gs_session_set_budgets(gs_session *s);
void gs_session_charge_fixed(gs_session *s);
/* Chunk tables of the sets that the run uses, once they are known. */
void gs_session_charge_sets(gs_session *s);
/* The plan's own regions, for people. */
void gs_session_note_plan(gs_session *s);
/* Of the process, beside what is accounted for; `before`: what a session before this one found, or 0. */
uint64_t gs_session_process_bytes(uint64_t before);
/* A plan should be the same when it is made again: what the process holds differs by some pages. */
#define GS_SESSION_PROCESS_STEP (2 * GS_MIB)

/* session_plan.c */
gs_status gs_session_plan(gs_session *s);

/* describe.c: the plan for people. */
gs_status gs_session_describe_pass(const gs_session *s, gs_pass_report *out, uint32_t pass);
gs_status gs_session_describe(const gs_session *s, gs_plan_report *out);

/* What the last epochs' tasks took, epoch by epoch. */
#define GS_PROFILE_EPOCHS 15u
typedef struct gs_profile {
    uint32_t epochs; /* observed; epoch k is at k % GS_PROFILE_EPOCHS */
    double seconds[GS_PROFILE_EPOCHS], computing[GS_PROFILE_EPOCHS];
    gs_fit fit[GS_PROFILE_EPOCHS];
} gs_profile;

/* profile.c: the times of the last run of the train pass. The session is timed. */
void gs_session_observe(const gs_session *s, const gs_exec_stats *x, gs_profile *p);
/* Adds the median epoch to what is known of this machine. GS_EIO, GS_ENOTFOUND, GS_ENOMEM. */
gs_status gs_session_remember(const gs_session *s, const gs_profile *p);

#endif /* GS_SESSION_SESSION_H */
