/* session.h - a store, a model and a machine, brought together for a run: options -> program -> plan -> run.
 *
 * Five verbs, each with one meaning in this room:
 *   open     gs_session_open(): from options to a session that can start. Moves no data but what it reads of the
 *            store; what it refuses is refused before any file is touched. Opening is choosing.
 *   choose   choose.c: a model can be compiled to several programs; each one that is considered is prepared and
 *            planned, and the plans decide which is kept
 *   prepare  session_plan.c: store, devices and one compiled program; nothing is known of memory yet
 *   plan     session_plan.c: accounts for the memory that a plan does not know, finds the rows and edges that a run
 *            needs, and has gs_schedule() lay the program over the rest of the budgets
 *   start    session_run.c: takes the memory of the plan and makes the files of the run
 * Then gs_session_run() runs a pass, as often as one likes, and gs_session_close() ends it all.
 *
 * gs_schedule() plans one program over given edges at given costs. A session decides what it is given; these three
 * are its share of planning:
 *   choose.c   which program: by predicted time, or the first that keeps the budgets
 *   edges.c    which rows and edges: only what the loss and the reported accuracies can see
 *   profile.c  at which costs: what timed epochs said about this machine, remembered for later plans
 *
 * Knows neither epochs nor optimisers nor result files; those are train's. Units: bytes. One thread owns a session.
 */
#ifndef GS_SESSION_SESSION_H
#define GS_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/size.h"
#include "base/alloc.h"
#include "base/status.h"
#include "base/temporary.h"
#include "device/device.h"
#include "exec/exec.h"
#include "gnnstream.h" /* gs_train_options, gs_plan_report */
#include "gnnstream_reports.h" /* gs_memory_item */
#include "plan/plan.h"
#include "program/program.h"
#include "sample/sampler.h"
#include "schedule/schedule.h" /* GS_EDGE_SETS */
#include "session/devices.h"
#include "session/edges.h"
#include "session/learned.h"
#include "session/params.h"
#include "session/tables.h"
#include "store/store.h"
#include "topology/topology.h" /* gs_cluster */

/* -- what a started run holds: memory, parameters, files. */

typedef struct gs_session gs_session;

#define GS_SPILL_FOLDERS 16 /* most of them */

/* Where the run puts what does not fit in memory: arrays a stripe in each folder in turn (io/io.h), and each file of
 * pruned edges whole in one. */
typedef struct gs_spill_folders {
    uint32_t count;
    char *words;                           /* .spill, cut at its commas; owned */
    const char *parent[GS_SPILL_FOLDERS];  /* folders of .spill, or the store's alone */
    gs_scratch own[GS_SPILL_FOLDERS];      /* the run's, in each of those; none before the start */
    uint64_t bytes[GS_SPILL_FOLDERS];      /* that go to each */
    char *arrays[GS_SPILL_FOLDERS + 1];    /* its file in each, up to a NULL; owned */
} gs_spill_folders;

/* Memory and files of a started run. */
typedef struct gs_session_run_state {
    gs_exec *exec;
    gs_params params;
    gs_exec_chunk *chunk[GS_EDGE_SETS]; /* what exec knows of each; NULL where no stage uses it */
    char **path;                        /* [arrays + sets] of the run's files; exec speaks of them */
    gs_spill_folders spill;
    void *sweep;                        /* gs_session_sweep_bytes() of staging, where the program has tables */
    uint64_t swept[3];                  /* bytes that sweeps have read and written, and that all ranks sent for lists */
    gs_plan *part;                      /* of several ranks: what this one runs of the plan; else NULL */
} gs_session_run_state;

/* Reads .spill, of a session with a store. Nothing is made. GS_EINVAL. */
gs_status gs_session_list_spill(gs_session *s);
/* Takes parameters (zeroed) and all memory of the plan, makes the spill files. */
gs_status gs_session_start(gs_session *s);

/* Bytes that the run has on the disk while it runs. */
uint64_t gs_session_spill_bytes(const gs_session *s);
/* Folder for scratch files: the first spill folder where there is one, or its place. */
const char *gs_session_scratch_dir(const gs_session *s);

/* -- the two budgets: how much of them does a run take beside its plan? Bytes. */

typedef struct gs_session gs_session;

/* The budgets, and the part of them that a plan does not account for. */
typedef struct gs_session_memory {
    uint64_t host, device;      /* budgets; the latter of each device, or of the one that has least */
    uint64_t device_most;       /* of the one that has most */
    uint32_t host_parts;        /* `device` is one of so many parts of `host`; 0: it is not made of it */
    uint64_t host_fixed, device_fixed; /* taken by others than the plan */
    uint32_t items;
    gs_memory_item item[GS_PLAN_ITEMS]; /* what the two are made of */
    uint64_t process;           /* gs_session_process_bytes(), when the plan was made; of it */
    uint64_t libraries;         /* what the libraries of devices have (gs_device_libraries_bytes()) */
    uint64_t live_most;         /* of the heap, while plans are made: gs_schedule_config */
    uint64_t logits;            /* for gs_logits_write(); 0: none wanted */
    uint64_t ranking;           /* for gs_rank_logits(); 0: none */
    bool least_windows;         /* both are no more than they must be, whatever the budget */
    double tables_part;         /* gs_schedule_config's */
    gs_refusal refused;         /* of a plan that does not fit: what would, */
    bool sizes;                 /* where that is asked for: finding it takes the memory of plans that do not fit */
    uint64_t known;             /* what another program needs of the host's: only less is of interest; 0: none */
    uint64_t least;             /* what a plan, and tables of edges, are known or expected to take of the host's */
    uint64_t sets;              /* tables of edges */
    uint64_t run_scratch;       /* of products of runs or pairs, beside other scratch */
} gs_session_memory;

/* Bytes that planning has where the budget is spent already, to find the smallest one that works. */
#define GS_SESSION_REFUSED_LEFT (4 * GS_MIB)

/* Bytes of the host's budget that are left beside what is fixed so far. Where none are, the run is refused, and the
 * refusal names a budget that would do. A run with that budget leaves out rows and edges and needs less of devices, so
 * those are looked for here too, with some memory. */
static inline uint64_t gs_session_left(const gs_session_memory *m)
{
    return m->host > m->host_fixed ? m->host - m->host_fixed : GS_SESSION_REFUSED_LEFT;
}

/* Resident bytes of the process that nothing else accounts for, with what the libraries of the session's devices will
 * take. `before`: as a session before this one found, or 0. */
uint64_t gs_session_process_bytes(const gs_session *s, uint64_t before);
/* A plan should be the same when it is made again: what the process holds differs by some pages. */
#define GS_SESSION_PROCESS_STEP (1 * GS_MIB)

#define GS_BATCH_DEVICES 8u /* most that train batches */

/* What batches can be. */
typedef struct gs_batch_shape {
    gs_batch_limits limits;
    uint32_t edge_types;
    uint32_t hops;              /* as in gs_batch; 0: all rows are expanded */
    bool coefficients;          /* weights of edges are GraphSAINT's coefficients alone, and losses have theirs */
    uint32_t targets;           /* most of a batch */
    uint64_t edges_of[GS_SAMPLE_HOPS + 2]; /* [k] most edges into rows of the first k hops, 1 the rows of the loss */
} gs_batch_shape;

typedef enum gs_purpose {
    GS_FOR_TRAINING,   /* passes "train", and "eval" or "predict" */
    GS_FOR_PREDICTION, /* pass "predict" */
} gs_purpose;

/* How a model is compiled (compile.h), and why so. */
typedef struct gs_variant {
    gs_taken recompute; /* values are rather made again than stored */
    gs_taken keep;      /* the other way round */
    gs_taken lean;      /* what is computed once is to take little memory */
    gs_taken typed;     /* products with the matrix of an edge's type are made edge by edge */
    gs_taken split;     /* sums are stored, for vertex programs that other devices run (gs_program_split()) */
    gs_taken width;     /* of several devices each sums a part of the rows' width (gs_program_part_widths()), where less
                         * crosses links then, */
    bool counts_edges;  /* that are counted, too: they come to devices anew in each epoch */
    /* Optimisations that this program does without, though no option turns them off. */
    gs_taken no_hoist, no_move, no_fuse, no_prune;
} gs_variant;

/* Budgets, costs and devices of an earlier run, so that one that goes on from it has the same plan. */
typedef struct gs_session_earlier {
    uint64_t host_memory, device_memory; /* where the options give none, and free memory has room for so much */
    gs_cost cost, host_cost;
    uint32_t batch_rates;     /* devices that trained batches, and how fast each was taken to be; 0: none did */
    double batch_rate[GS_BATCH_DEVICES];
    const char *device; /* that were taken, where the options leave a choice; NULL: all that they name */
    uint32_t epochs;    /* that it was planned for; 0: not known */
} gs_session_earlier;

/* Purpose and limits of a session. Pointers are the caller's and live as long as the session. */
typedef struct gs_session_config {
    const char *store;               /* folder */
    const gs_train_options *options; /* have passed gs_train_options_check(); what speaks of the model, the machine and
                                      * the spill folder counts here, and `seed` (of dropout) and `stop` */
    const char *device;              /* in the place of the options': of processors and GPUs one kind; or NULL */
    gs_purpose purpose;
    uint32_t classes;     /* that the logits have; 0: those of the store */
    bool logits;          /* the pass "predict" stores them; so it does for labels that are ranked by them */
    bool timed;           /* when every task began and ended is kept */
    uint32_t states;      /* runs of optimiser state, like the parameters, while training */
    bool keep_best;       /* of the weights of train passes, where gs_session_validates() */
    bool ranks;           /* evaluations rank logits whatever the task, and epochs that are evaluated do, too */
    uint32_t eval_every;  /* train passes from one evaluation to the next, where training computes other values;
                           * 0: none */
    const gs_session_earlier *earlier; /* NULL: this goes on from no other run */
    const gs_batch_shape *batch; /* for gs_batches_open() (batch/batches.h); else NULL */
    const gs_param *pairs;  /* [pair_params] that training on pairs has besides the model's */
    uint32_t pair_params;
    bool rows_alone;        /* pairs are learned by rows of a table alone: the model has no layer */
    bool on_batches;        /* training is another one's, on batches: this one has the parameters and evaluates */
    uint64_t beside_bytes;  /* host memory that will be taken beside this one */
    uint64_t beside_device_bytes; /* likewise, of the device's own */
    gs_refusal *refused;    /* of GS_EBUDGET: what would do; NULL: not asked for */
    gs_variant *refused_as; /* with it, the program that needs least */
    uint64_t process_bytes; /* what another session of the process found resident before libraries touched any of what
                             * they are allowed; 0: this is the first */
    gs_variant first;       /* the program that is tried first */
    gs_store *shape;           /* in the place of `store`: tables alone, of a run that is only planned, */
    const gs_cluster *cluster; /* by ranks with these machines, of which it has a device each; or NULL */
    bool trial;             /* of what another process would do, that finds `process_bytes` resident: what this one
                             * holds does not count */
    gs_scans *scans;        /* where one that is refused leaves what scans of the store said, for trials; or NULL */
} gs_session_config;

/* session_plan.c: the passes of the program. */
typedef struct gs_session_passes {
    uint32_t train, eval, predict; /* numbers of passes, or GS_NONE */
    uint32_t forward;   /* of pairs behind layers: gives the rows that "train" starts from, before it; "predict" itself
                         * where the two are the same */
    bool gradients;     /* the pass "train" is there */
    bool train_differs; /* it computes other logits than an evaluation (dropout, batch statistics) */
    bool labelled;      /* eval and predict give the loss and what the task is judged by */
    bool ranked;        /* so they do figures of the order of logits: multilabel, or asked for */
} gs_session_passes;

/* session_plan.c: arrays of a run of pairs (.task "link"), or GS_NONE: rows that batches read, and that ranks and
 * scores do; and of layers the loss's gradient by the former, a lasting array. */
typedef struct gs_session_pairs {
    uint32_t rows, judged, upstream;
} gs_session_pairs;

/* The members' types are each described beside the source that owns them. */
struct gs_session {
    gs_session_config config;
    gs_store *store;
    uint32_t classes; /* columns of the logits */
    gs_session_machine machine;
    gs_variant variant;
    gs_program_report compared[GS_PLAN_PROGRAMS]; /* programs that were planned beside it, and it */
    uint32_t programs;
    gs_program *program;
    gs_session_passes pass;
    gs_session_pairs pairs;
    gs_session_labels labels;
    gs_session_memory memory;
    gs_session_edges edges;
    gs_plan *plan;
    gs_session_run_state run;
    gs_declared_table *declared; /* [declareds] of the model's text */
    uint32_t declareds, declared_room;
    uint32_t earlier_epochs; /* that the run which this one goes on from was planned for; 0: it goes on from none */
    struct gs_session *next; /* of those whose runs were given up */
};

/* GS_ENOTFOUND, GS_EFORMAT, GS_EINVAL (the store lacks what the purpose needs), GS_EBUDGET, GS_ENOMEM. Blocks while
 * it reads the edge files and compares plans. */
gs_status gs_session_open(gs_session **out, const gs_session_config *config);
/* The same on the devices of `config`, without a choice of other ones. */
gs_status gs_session_open_on(gs_session **out, const gs_session_config *config);
void gs_session_close(gs_session *s); /* NULL is allowed; removes the spill folder */
GS_ENDS_BY(gs_session, gs_session_close)

/* session_run.c: where the parameters are. Devices that can hold them for the run step themselves: then the values of
 * `run.params` that are learned are those of the last gs_session_fetch_params(), and gradients never come here. */
bool gs_session_steps_on_device(const gs_session *s);
/* When the parameters have their first values, or others. Does nothing where the host has them. */
gs_status gs_session_keep_params(gs_session *s);
/* After a train pass, on devices that step themselves. */
gs_status gs_session_step(gs_session *s, const gs_update *u);
gs_status gs_session_fetch_params(gs_session *s);
/* Vertices by whose accuracy epochs can be compared, or pairs: of validation, where train passes are evaluated; else
 * 0. */
uint64_t gs_session_validates(const gs_session *s);
/* Is there memory for the best parameters? */
bool gs_session_keeps_best(const gs_session *s);
/* The first keeps the parameters of now as the best ones. The second takes the best ones back, also on devices, whose
 * optimiser state is lost. */
gs_status gs_session_keep_best(gs_session *s);
gs_status gs_session_back_to_best(gs_session *s);
/* Before a step: keeps a copy of the parameters. */
void gs_session_keep_previous(gs_session *s);
/* Takes that copy back, also on devices, whose optimiser state is lost. */
gs_status gs_session_back_to_previous(gs_session *s);
/* Fills `state` [program->params] with pointers to run `run` (from 0) of the optimiser's state, tensor by tensor; NULL
 * for tensors that are not learned. Where devices have the state, they point to room for a copy, until the next pass;
 * with `bring` the copy is made. */
gs_status gs_session_state(gs_session *s, uint32_t run, bool bring, float **state);
/* Gives the devices the state that is there now. Does nothing where the host has it. */
gs_status gs_session_put_state(gs_session *s, uint32_t run, float *const *state);

/* Runs the pass "setup", which computes once what no epoch changes. It comes after the parameters have their first
 * values, as it may depend on those that are not learned. */
gs_status gs_session_setup(gs_session *s);

/* One run of a pass: `epoch` is 1-based and keys dropout. Gradients are zeroed
 * before and filled by the train pass only. `again`: the next run is of this pass too. */
gs_status gs_session_run(gs_session *s, uint32_t pass, uint32_t epoch, bool again, gs_exec_stats *out);

/* The same, looked at: the pass that ran last, once more. */
gs_status gs_session_watch(gs_session *s, uint32_t pass, uint32_t epoch, gs_exec_watch *watch, gs_exec_stats *out);

/* The pass moves what it would move, and gives `fn` its launches (gs_exec_args.rehearse). */
gs_status gs_session_rehearse(gs_session *s, uint32_t pass,
                              gs_status (*fn)(void *context, gs_device *device, const gs_edge_program_launch *l),
                              void *context);


#endif /* GS_SESSION_SESSION_H */
