/* run_internal.h - a run: a session's passes as epochs, and the files that it is to leave.
 *
 *   run_open.c        open, with the session; close; the public calls that are a loop over a run
 *   run_epoch.c       one epoch, one evaluation: every pass over the graph; what is left of a run that was stopped
 *   run_batches.c     an epoch on batches
 *   run_pairs.c       an epoch on batches of pairs, and their ranks
 *   run_arrays.c      who has the parameters; tensors and logits as arrays; what is done where they are not finite
 *   run_checkpoint.c  its state as files, and back
 *   run_files.c       result files
 *   run_warn.c        lines about what is not as it may be thought
 *
 * States: OPEN -- a pass fails --> FAILED; OPEN -- .stop ends a pass --> STOPPED; OPEN or STOPPED -- gs_run_finish()
 * --> FINISHED. Passes run in OPEN alone, and of a run that was stopped the one that gives its logits.
 * Training changes `session` (parameters, learned or not, and the optimiser's state, on the host or on devices),
 * `optim` and `epoch`, and a checkpoint has these. Dropout is drawn by seed and epoch alone; statistics of a pass,
 * gradients and what is computed once are made anew.
 */
#ifndef GS_TRAIN_RUN_INTERNAL_H
#define GS_TRAIN_RUN_INTERNAL_H

#include <stdio.h>

#include "base/alloc.h"
#include "base/outfile.h"
#include "batch/batch_devices.h"
#include "batch/batches.h"
#include "gnnstream.h"
#include "pairs/pair_batch.h"
#include "pairs/pair_rank.h"
#include "pairs/pair_step.h"
#include "program/program.h"
#include "session/profile.h"
#include "session/session.h"
#include "train/checkpoint_folder.h"
#include "train/checkpoint_text.h"
#include "train/control.h"
#include "train/metrics_log.h"
#include "train/optim.h"
#include "train/outputs.h"
#include "train/safetensors.h"

typedef struct gs_run_pairs gs_run_pairs;
typedef struct gs_run_batches gs_run_batches;

typedef enum gs_run_state { GS_RUN_IS_OPEN, GS_RUN_IS_STOPPED, GS_RUN_IS_FAILED, GS_RUN_IS_FINISHED } gs_run_state;

/* The checkpoints of a run. */
typedef struct gs_run_saver {
    gs_checkpoint_folder folder; /* that they go to */
    gs_checkpoint_pace pace;
    gs_kept_lines lines;
    gs_checkpoint *from;         /* that the run goes on from, while it opens; owned; else NULL */
    char *from_dir;              /* its folder, owned */
    uint64_t model_id, plan_id;
    gs_checkpoint_report report;
} gs_run_saver;

/* The results' files, begun when the run is opened (run_files.c). */
typedef struct gs_run_files {
    gs_metrics_log metrics;
    gs_outfile weights, logits, argmax, trace, scores, targets;
    uint64_t logits_offset, argmax_offset, scores_offset, targets_offset; /* bytes before the first row */
} gs_run_files;
#define GS_RUN_FILES_NONE                                                                                              \
    {.metrics = GS_METRICS_NONE, .weights = GS_OUTFILE_NONE, .logits = GS_OUTFILE_NONE,                                \
     .argmax = GS_OUTFILE_NONE, .trace = GS_OUTFILE_NONE, .scores = GS_OUTFILE_NONE,                                  \
     .targets = GS_OUTFILE_NONE}

struct gs_run {
    gs_train_options options; /* the run's own: its strings are in `texts` */
    char *texts;
    char *folder; /* of the store, or of this rank's shard of it */
    gs_run_kind kind;
    gs_variant first;  /* of a prediction, the program that its weights come from */
    gs_run_state state;
    gs_session *session;
    gs_run_pairs *pairs;     /* of pairs of vertices, that it trains on and is judged by; else NULL */
    gs_run_batches *batches; /* that it trains on; NULL: on the whole graph */
    gs_optim optim;
    bool whole;        /* parameters and the optimiser's state are those after `epoch` and `part`, not in a step */
    gs_control control;
    gs_epoch_part part; /* of the next epoch, on batches; not begun: the run is between two */
    uint32_t epoch;    /* done; written by the run's thread, read by any (gs_run_progress()) */
    bool placed;       /* devices have the parameters as they are, and what is computed once is of these */
    bool evaluated;    /* report.loss and report.accuracy are of the parameters as they are */
    double constant;   /* evaluated: what a constant answer has of the figure that weights are judged by; NaN: none */
    bool has_previous; /* the weights before the last update are there */
    uint32_t good_epoch; /* of a run that left the finite numbers: the last epoch whose weights were good */
    bool has_logits;   /* the pass "predict" has left logits of the parameters as they are */
    double began;      /* gs_now() at the call that opened it */
    gs_profile profile; /* what timed tasks say */
    gs_train_report report;
    gs_run_files files;
    char *model_name, *model_text; /* as they were when it was opened; owned */
    gs_run_saver saver;
};

/* run_open.c: gs_run_open() for a caller that had a session of its own before: `process_bytes`, gs_session_config. */
gs_status gs_run__open_after(gs_run **out, const char *store, const gs_train_options *options, gs_run_kind kind,
                             uint64_t process_bytes);
/* run_open.c: the session of a run with these options, which are whole (gs_train_options_read(),
 * gs_train_options_check()), and the batches that it trains on (NULL: none), to be closed before it also after a
 * failure. `first`: the program that is tried first. GS_EBUDGET: the line names a budget with which this is GS_OK.
 * Blocks while edges are read. */
gs_status gs_run__open_session(gs_session **out, const char *store, const gs_train_options *options, gs_run_kind kind,
                               uint64_t process_bytes, const gs_session_earlier *earlier, gs_variant first,
                               gs_run_batches **batches);

/* The same of a run on the whole graph that cannot be begun: of tables alone, by ranks of a cluster (NULL: here). */
gs_status gs_run__open_shape(gs_session **out, gs_store *shape, const gs_cluster *cluster,
                             const gs_train_options *options);

/* run_warn.c: a line for .warn about each thing that is computed otherwise than it may be thought. */
void gs_run__warn(const gs_session *s);
/* Warns of files that a plan does not read. */
void gs_run__warn_of_unread(const gs_train_options *o);

/* Of the weights that were kept: are they worse than a constant answer? */
void gs_run__warn_of_kept(const gs_run *r);

/* run_epoch.c: in gs_run_finish(), of a run that was stopped: .save and .logits of the weights that there are. Returns
 * GS_EINTERRUPTED, whose line says what was written, or the status of what could not be. */
gs_status gs_run__finish_stopped(gs_run *r, gs_train_report *report);

/* run_arrays.c: before a pass: where tensors were set, devices take them, and what is computed once is computed. */
gs_status gs_run__place(gs_run *r);
/* The host has other tensors than before: the optimiser starts anew. */
gs_status gs_run__weights_changed(gs_run *r);
/* The line about a pass that was stopped: GS_EINTERRUPTED. */
gs_status gs_run__stopped(const gs_run *r);
/* Has it made a step? And how far is it: "epoch 3", or "epoch 3 and 5 of 12 batches of the next". */
#define GS_HOW_FAR_BYTES 80u
bool gs_run__has_learned(const gs_run *r);
const char *gs_run__how_far(const gs_run *r, char text[GS_HOW_FAR_BYTES]);
/* GS_OK where a pass can be run. */
gs_status gs_run__check_open(const gs_run *r);
/* The parameters are on the host as they are, and finite. */
gs_status gs_run__fetch(gs_run *r);

/* run_arrays.c: are they finite? What is not ends the run: GS_EDEVICE says where, and .save gets the last good
 * weights. Before each update; behind each train pass, with its loss; behind the update; behind an evaluation
 * (`counts`: it has training vertices). */
void gs_run__before_step(gs_run *r);
gs_status gs_run__check_pass(gs_run *r, uint32_t epoch, double loss);
gs_status gs_run__check_step(gs_run *r, uint32_t epoch);
gs_status gs_run__check_evaluation(gs_run *r, uint32_t pass, double loss, bool counts);

/* run_epoch.c: what a pass took, to an epoch's report. */
void gs_run__add_stats(gs_epoch_report *e, const gs_exec_stats *x);
/* run_epoch.c: one evaluation, into r->report; with logits where the run keeps them. `x` may be NULL. */
gs_status gs_run__evaluate(gs_run *r, gs_exec_stats *x);

/* run_checkpoint.c: the folder of .checkpoint, before the session opens; the lines so far, into the file of .metrics,
 * too, when that is open; both do nothing where there are to be no checkpoints. */
gs_status gs_run__begin_checkpoints(gs_run *r);
gs_status gs_run__begin_lines(gs_run *r);
/* After an epoch, or a step on a batch: one that is due. What cannot be written is noted. GS_EDEVICE: the
 * weights are not finite. */
gs_status gs_run__checkpoint_if_due(gs_run *r);
bool gs_run__checkpoint_is_due(const gs_run *r);
/* A pass ended with `st`, which is not GS_OK: writes what there is after the last whole epoch, where that can be gone
 * on from, and has the last error say so. Returns `st`. */
gs_status gs_run__checkpoint_failed(gs_run *r, gs_status st);
void gs_run__end_checkpoints(gs_run *r);

/* run_checkpoint.c: finds the checkpoint of .resume, and sees that it is this run's; all do nothing without .resume. */
gs_status gs_run__find_checkpoint(gs_run *r, const char *store);
/* Parameters, and how far it was: in place of first weights. */
gs_status gs_run__resume_params(gs_run *r);
/* The optimiser's state, when devices have the parameters. Lets go of r->saver.from. */
gs_status gs_run__resume_state(gs_run *r);

/* run_arrays.c: the run has logits of the parameters as they are; evaluates where it has not. */
gs_status gs_run__want_logits(gs_run *r);
gs_logits_job gs_run__logits_job(gs_run *r); /* in the form that .softmax says */

/* run_epoch.c: what steps are made of, as batches have it, too: `sum` and the squares of rows [rows, width], in this
 * order; and the optimiser's step of a table's rows by list, with gradients by their places, of no other row, as
 * torch.optim.SparseAdam has it. GS_EDEVICE: it left rows that are not finite. */
double gs_run__add_squares(double sum, const float *row, uint64_t rows, uint32_t width);
gs_status gs_run__step_rows(gs_run *r, const gs_update *u, const gs_table *table, const gs_row_list *list,
                            gs_row_source *gradient, const void *context);
/* How files get their rows, the best ones, or run k of the optimiser's state (_STATE + k), and give them back. */
typedef enum gs_run_rows { GS_RUN_ROWS, GS_RUN_ROWS_BEST, GS_RUN_ROWS_STATE } gs_run_rows;
gs_safetensors_tables gs_run__tables(gs_run *r, gs_run_rows rows);

/* run_arrays.c: the model's name, text and checksum. */
gs_status gs_run__identify_model(gs_run *r);
/* Begins a file of weights, with its room on the disk; writes it, as of weights after `epochs` updates. */
gs_status gs_run__begin_weights(gs_run *r, gs_outfile *o, const char *path);
/* Makes the notes of weights after `epochs` updates; free *note with gs_free(). GS_ENOMEM. */
gs_status gs_run__describe_weights(const gs_run *r, uint32_t epochs, gs_safetensors_note **note, uint32_t *notes);
gs_status gs_run__put_weights(gs_run *r, gs_outfile *o, uint32_t epochs);

/* run_ranks.c: where a launcher started several processes: joins them, and makes of the options those of this one. Text
 * for .device is put into `device`. GS_EINVAL: they have other options; GS_EUNSUPPORTED: ranks cannot. */
gs_status gs_run__join(gs_train_options *o, gs_run_kind kind, char device[GS_DEVICE_WORDS]);
/* run_ranks.c: the folder of the store that this rank reads, which is the caller's: `store` itself, its folder of this
 * rank's number where it holds shards, or the place of its number in a list "a,b,c". GS_ENOTFOUND, GS_EINVAL. */
gs_status gs_run__folder(char **out, const char *store);
/* run_ranks.c: the same of a run, whose ranks must have one store, or its shards; of one process `store`. All ask. */
gs_status gs_run__take_folder(char **out, const char *store);
/* run_ranks.c: GS_EINVAL: "rank K `otherwise`", whose `own` is not rank 0's. All ask. */
gs_status gs_run__same_of_ranks(uint64_t own, const char *otherwise);
/* run_ranks.c: GS_EINVAL: ranks begin with other weights. All ask. */
gs_status gs_run__compare_weights(const gs_run *r);
/* run_ranks.c: GS_EINTERRUPTED: .stop has been set, in any rank. All ask. */
gs_status gs_run__check_stop(const gs_run *r);
/* run_ranks.c: most bytes that a process of the run ever had resident. All ask. */
gs_status gs_run__peak_bytes(uint64_t *most);
/* Ranks with learned tables, of which each has its own rows. */
bool gs_run__tables_are_shared(const gs_run *r);
/* Then rank 0 calls it behind what it writes, or if it writes nothing, with what it has come to, and the others, where
 * it might, so long give it their rows: gs_session_give_rows(). */
gs_status gs_run__give_tables(const gs_run *r, gs_status st);
/* run_ranks.c: of several ranks, when a pass or what follows it has failed: does not come back where others do not know
 * of it. Returns `st`. */
gs_status gs_run__end_all(gs_status st);

/* run_files.c: the files that the options name. Begun before the work, so that what cannot be written is refused. */
gs_status gs_run__begin_files(gs_run *r);
gs_status gs_run__write_files(gs_run *r);
void gs_run__abandon_files(gs_run *r);

/* -- a run of pairs of vertices (.task "link").
 *
 * Rows of vertices are a table, which batches of pairs learn step by step; or what the last of a model's layers gives:
 * then an epoch's batches leave the gradient of these rows, and one step is made of all. The session has the rows, and
 * the decoder's rows of types as a parameter beside the model's.
 */

/* What of the options does not go with pairs. GS_EINVAL, GS_EUNSUPPORTED name the field. */
gs_status gs_run_pairs_check(const gs_train_options *o);
/* Are labels of edges learned? */
bool gs_run_pairs_have_labels(const gs_train_options *o);
/* Are they the seeds of batches of neighbours? */
bool gs_run_pairs_are_seeds(const gs_train_options *o);
/* Is the model without layers: "embedding", by that name or as weights have it? */
gs_status gs_run_pairs_are_rows_alone(bool *out, const gs_train_options *o);
/* The decoder's parameters for a store: how many there are. */
#define GS_PAIR_PARAMS 5u /* at most */
uint32_t gs_run_pairs_params(gs_param out[GS_PAIR_PARAMS], const gs_store *store, const gs_train_options *o);
/* Takes all memory. `store` stays open as long. GS_ENOTFOUND, GS_EINVAL, GS_ENOMEM, GS_EIO, GS_EFORMAT. Blocks while it
 * reads where pairs are. */
gs_status gs_run_pairs_open(gs_run_pairs **out, const gs_store *store, const gs_train_options *o, bool rows_alone);
void gs_run_pairs_close(gs_run_pairs *p); /* NULL is allowed */
GS_ENDS_BY(gs_run_pairs, gs_run_pairs_close)
uint64_t gs_run_pairs_bytes(const gs_run_pairs *p);
/* Of seeds: they, whose order no one else asks for while batches are drawn of them; and the loss of these batches. */
gs_seed_source gs_run_pairs_seeds(gs_run_pairs *p);
gs_batch_loss gs_run_pairs_loss(gs_run_pairs *p, uint32_t device); /* by the number of the device that trains them */
/* Logits of a pair with a label, of a run or as .edges will have them; 0: pairs have scores. */
uint32_t gs_run_pairs_columns(const gs_store *store, const gs_train_options *o);

/* Of a prediction with .edges: host memory that scoring them takes. Errors as gs_run_pairs_open(). */
gs_status gs_run_pairs_score_bytes(uint64_t *out, const gs_store *store, const gs_train_options *o);
/* Scores .edges by the weights as they are, gives the logits or numbers of their labels, or finds the .top best targets
 * of these sources, into the run's files. GS_EFORMAT: what is in the file is no pair. */
gs_status gs_run_pairs_score(gs_run *r);

/* Any thread: how many of an epoch's batches are done. False: none are at work, or `p` is NULL. */
bool gs_run_pairs_progress(const gs_run_pairs *p, gs_progress *out);
/* Is an epoch a step for each batch of pairs? NULL: there are none. */
bool gs_run_pairs_step_by_batch(const gs_run_pairs *p);
/* The batches of epoch e->epoch from r->part.batches on, as gs_run_batches_epoch() has it. */
gs_status gs_run_pairs_epoch(gs_run *r, gs_epoch_report *e);
/* Of a session that was planned for ranks, and pairs behind layers: bytes that batches of the first epoch move between
 * ranks, rows, their gradients and those of the decoder; else 0. GS_ENOMEM, GS_EIO, GS_EFORMAT. Blocks while it reads
 * pairs. */
gs_status gs_run_pairs_sent(uint64_t *out, gs_session *s);
/* Of layers: e->loss of all pairs, and the gradients of all that is learned. Adds to `e` what it took but for the pass
 * "train", which is in `x`. GS_EINTERRUPTED, GS_EIO; GS_EDEVICE: the loss is not finite. */
gs_status gs_run_pairs_differentiate(gs_run *r, gs_epoch_report *e, gs_exec_stats *x);
/* Figures of validation and test pairs; of labels those of training, too, and *loss, their mean loss, else NaN. Layers
 * leave their rows, as r->has_logits says. */
gs_status gs_run_pairs_evaluate(gs_run *r, uint32_t epoch, gs_task_figures *out, double accuracy[3], double *loss,
                                gs_exec_stats *x);

/* -- what decoders and rows are, for those that train on pairs and those that score them. */

/* Of scores. */
gs_pair_rank_options gs_run_pairs__rank_options(const gs_store *store, const gs_train_options *o);
/* Of labels, but for the sizes of batches. */
gs_label_step_options gs_run_pairs__label_options(const gs_store *store, const gs_train_options *o);
/* What the decoder has among a session's parameters, or their gradients. */
gs_decoder_values gs_run_pairs__values(const gs_session *s, float *const *of);
/* Rows that pairs are judged by. */
gs_pair_rows gs_run_pairs__rows(gs_run *r);

/* -- a run that trains on batches: an epoch is a step for each of them.
 *
 * A group of batches is sampled by all threads, into arenas that were taken before the first epoch, and trained one
 * after the other. What an epoch reports is of all its batches: the loss is the mean over their targets.
 */

/* Loads the adjacency, or with `stream`, and where it does not fit .host_memory, what sampling needs of one that stays
 * in the store; opens the sampler, plans. `config` as the run's session has it. GS_EBUDGET: that does not fit, and
 * *config->refused is told what might, where this knows. Errors as gs_batches_open(), gs_adjacency_load(),
 * gs_adjacency_stream(), gs_sampler_open(). */
gs_status gs_run_batches_open(gs_run_batches **out, const gs_session_config *config, bool stream);
/* Of pairs: those whose ends its targets are, and whose loss its batches have from now on: the caller's, before
 * gs_run_batches_start(), who closes them before this. Else NULL. */
gs_run_pairs *gs_run_batches_take_pairs(gs_run_batches *b);
/* Edges are in memory, and would do in the store, with less of it. */
bool gs_run_batches_may_stream(const gs_run_batches *b);
void gs_run_batches_close(gs_run_batches *b); /* NULL is allowed */
GS_ENDS_BY(gs_run_batches, gs_run_batches_close)
/* Rows of features stay in the memory of GPUs, where the options have it so and there is room: of what their plans
 * leave one `share`-th (0: none) is for these, and the rest for the evaluation. False: there are none, as before. */
bool gs_run_batches_spread(gs_run_batches *b, uint32_t share);
/* Of each device, rows that stay and batches of a step: fills .batch_devices, .batch_rows, .batch_share and
 * what is said of steps. */
void gs_run_batches_describe_devices(const gs_run_batches *b, gs_plan_report *out);
/* How fast each device is taken to be, in proportion to each other: how many devices. */
uint32_t gs_run_batches_rates(const gs_run_batches *b, double rate[GS_BATCH_DEVICES]);
/* Host memory that gs_run_batches_start() takes. */
uint64_t gs_run_batches_bytes(const gs_run_batches *b);
/* Before the start: gives up something that a run does without, where the rest of it does not fit. False: nothing is
 * left, and batches are drawn one at a time. What is needed then does not depend on .host_memory. */
bool gs_run_batches_shrink(gs_run_batches *b);
/* Of a run with .profile: adds what the epoch's tasks took. */
void gs_run_batches_observe(gs_run_batches *b, const gs_epoch_report *e, gs_profile *p);
/* The batches of the first device that has memory of its own, where one has; else of the first. */
gs_batches *gs_run_batches_lead(const gs_run_batches *b);
/* Batches of an epoch. */
uint32_t gs_run_batches_count(const gs_run_batches *b);
/* Predicted seconds of drawing one; 0: not known. */
double gs_run_batches_drawing(const gs_run_batches *b);
/* When `whole`, which evaluates, has started. */
gs_status gs_run_batches_start(gs_run_batches *b, gs_session *whole);

/* Before the whole graph is evaluated: memory that only a batch needs is given up until the next one. NULL is
 * allowed. */
void gs_run_batches_pause(gs_run_batches *b);
/* Of a run with .trace: the last epoch's batches, as gs_batch_trace_write(). */
gs_status gs_run_batches_write_trace(const gs_run_batches *b, const char *other, FILE *out, const char *path);
/* The batches of epoch e->epoch from r->part.batches on: a step each, at the rate e->lr. r->part has the sums of the
 * loss and says after each step how far it is; *e is added what they take. GS_EINTERRUPTED: between two steps. */
gs_status gs_run_batches_epoch(gs_run *r, gs_epoch_report *e);

GS_ENDS_BY(gs_run, gs_run_close)

#endif /* GS_TRAIN_RUN_INTERNAL_H */
