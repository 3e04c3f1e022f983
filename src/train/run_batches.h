/* run_batches.h - a run that trains on batches: an epoch is a step for each of them.
 *
 * A group of batches is sampled by all threads, into arenas that were taken before the first epoch, and trained one
 * after the other. What an epoch reports is of all its batches: the loss is the mean over their targets.
 */
#ifndef GS_TRAIN_RUN_BATCHES_H
#define GS_TRAIN_RUN_BATCHES_H

#include <stdio.h>

#include "gnnstream.h"
#include "batch/batch_devices.h"
#include "session/profile.h"
#include "train/run_pairs.h"

typedef struct gs_run gs_run;
typedef struct gs_run_batches gs_run_batches;

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
/* Host memory that gs_run_batches_start() takes; and that of a device which has memory of its own, else 0. */
uint64_t gs_run_batches_bytes(const gs_run_batches *b);
uint64_t gs_run_batches_device_bytes(const gs_run_batches *b);
/* Before the start: gives up something that a run does without, where the rest of it does not fit. False: nothing is
 * left, and batches are drawn one at a time. What is needed then does not depend on .host_memory. */
bool gs_run_batches_shrink(gs_run_batches *b);
/* The pass that trains a batch, as planned. */
gs_status gs_run_batches_describe(const gs_run_batches *b, gs_pass_report *out);
/* Of a run with .profile: adds what the epoch's tasks took; what all said is kept for later plans, as
 * gs_profile_remember_batches() says. */
void gs_run_batches_observe(gs_run_batches *b, const gs_epoch_report *e, gs_profile *p);
gs_status gs_run_batches_remember(const gs_run_batches *b, const gs_profile *p);
/* The session whose train pass it is; and batches of an epoch. */
const gs_session *gs_run_batches_session(const gs_run_batches *b);
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

#endif /* GS_TRAIN_RUN_BATCHES_H */
