/* cost_file.h - what is known of this machine, kept from run to run.
 *
 * One JSON file for each machine and device, in $XDG_CACHE_HOME/gnnstream or
 * ~/.cache/gnnstream: ceilings, and the observations that coefficients are fitted to. It is a cache: a file
 * that is missing, damaged or of another machine is as good as none, and nothing in it is
 * trusted (every number must be finite and in its range).
 */
#ifndef GS_COST_COST_FILE_H
#define GS_COST_COST_FILE_H

#include "base/status.h"
#include "cost/cost.h"

/* What was measured of the ways to make products by edges' types (session/choose_products.h): of one stage of a text,
 * on one store. */
#define GS_COST_WAYS 3u    /* as program/program.h numbers them */
#define GS_COST_STAGES 64u /* that are kept, the last ones measured first */
typedef struct gs_cost_stage {
    double key;                   /* a whole number of 15 digits at most: a hash of the stage's text and of the store */
    double seconds[GS_COST_WAYS]; /* of processors, an edge; 0: not measured */
} gs_cost_stage;

typedef struct gs_cost_record {
    gs_limits limits; /* zeroed: never measured */
    gs_fit fit;
    /* Of batches, whose rows are few and often in a cache (links and transfers have none); and in how many seconds of
     * threads how many of their rows and edges were drawn. */
    gs_fit batch_fit;
    double draw_seconds, draw_amount;
    /* The disk under real epochs; 0: never seen. */
    double read_bps, write_bps;
    /* How many times longer than at its bandwidth the disk takes in real epochs, where requests are not all large and
     * under way at once: weighted sum of logarithms, and of weights. 0: never seen. */
    double slower_sum, slower_weight;
    /* Of the processors, the share that other programs had while the epochs were timed, weighted like those: sums of
     * shares, and of weights. */
    double others_sum, others_weight;
    uint32_t stages;
    gs_cost_stage stage[GS_COST_STAGES];
} gs_cost_record;

/* NULL: none is known. */
const gs_cost_stage *gs_cost_record_stage(const gs_cost_record *r, double key);
/* In place of what was known of it; the one that was measured first gives way where there are too many. */
void gs_cost_record_add_stage(gs_cost_record *r, const gs_cost_stage *stage);

/* Zeroes `*out` where there is no usable file; that is not a failure. `device` is gs_device_name(). */
void gs_cost_record_load(gs_cost_record *out, const char *device);
/* Replaces the file atomically. GS_EIO where it cannot be written, GS_ENOTFOUND where the
 * user has no cache folder, GS_ENOMEM. */
gs_status gs_cost_record_save(const gs_cost_record *r, const char *device);
/* Defaults, then ceilings, then what fits. `gpu`: its attributes, where they are known; NULL: `threads` compute. */
void gs_cost_from_record(gs_cost *out, const gs_cost_record *r, uint32_t threads, const gs_gpu_speed *gpu);
/* Of batches: what is known of them in place of what epochs over the whole graph say. */
void gs_cost_take_batches(gs_cost *c, const gs_cost_record *r);
/* The disk takes `times` as long for everything. */
void gs_cost_slow_disk(gs_cost *c, double times);
/* A run in which it took `times` as long as at its bandwidth; older runs count `share` of what they did. */
void gs_cost_record_slower(gs_cost_record *r, double times, double share);
/* Others had so much of the processors while a run was timed. */
void gs_cost_record_others(gs_cost_record *r, double others, double share);

#endif /* GS_COST_COST_FILE_H */
