/* cost.h - how many seconds will a piece of work take on this machine?
 *
 * A piece of work is a kind and a few amounts (edges, floats, operations); its time is a
 * sum of amounts times coefficients. The coefficients come from three places, the
 * better one where it exists: built-in defaults (a stated guess), ceilings of this server
 * as `gnnstream bench limits` measured them, and least squares over the tasks of real
 * epochs. What a plan is, this room does not know.
 *
 * Units: seconds, bytes, floating-point operations. Data without locks: one thread, or read-only.
 */
#ifndef GS_COST_COST_H
#define GS_COST_COST_H

#include <stdint.h>

#include "base/machine.h"
#include "base/status.h"
#include "gnnstream.h" /* gs_limits_report */

/* ---- what a machine can do at best ------------------------------------- */

/* What this server can do at best, as numbers.
 *
 * train/limits.h measures them, a file keeps them from run to run, coefficients
 * start from them. Units: bytes and floating-point operations per second; 0: not measured.
 */

#define GS_LIMITS_ROUNDED 2 /* products of factors rounded to tf32, to bf16 */

/* What goes over a link that ends in a device's memory. */
typedef enum gs_link_way {
    GS_LINK_TO_DEVICE,   /* from the host */
    GS_LINK_FROM_DEVICE, /* to the host */
    GS_LINK_BETWEEN,     /* from the device before in a chain */
    GS_LINK_FROM_DISK,   /* past the host */
    GS_LINK_WAYS
} gs_link_way;

/* A copy takes request_seconds beside its bytes. */
typedef struct gs_link {
    double bps, request_seconds; /* bps 0: not measured */
} gs_link;

typedef struct gs_limits {
    gs_limits_report found; /* as it is given out, but for what stands below: that is 0 here */
    gs_link link[GS_LINK_WAYS];
    uint32_t edge_count;    /* in each of found.edges; 0: a million */
    double rounded[GS_LIMITS_ROUNDED]; /* operations a second of a GPU's fastest product */
} gs_limits;

/* ---- seconds of work --------------------------------------------------- */

/* The last amount of what a device does (the first four) is bytes that the disk moves meanwhile: they take the
 * processor and its memory, too. */
typedef enum gs_work_kind {
    GS_WORK_MEMORY, /* zeroed, added, begun and finished sums:  1, floats moved, bytes beside */
    GS_WORK_SUM,    /* rows summed along edges:                 1, edges, edges * width, operand rows * width, target
                     * rows * width, bytes beside */
    GS_WORK_EDGES,  /* an edge program:                         1, edges, edges * widths computed, edges * widths
                     * gathered, edges * widths of transcendental functions,  flops of products by the matrix of an
                     * edge's type, bytes beside */
    GS_WORK_VERTEX, /* a vertex program:                        1, elementwise floats, flops of products, flops of outer
                     * products, floats loaded and stored, floats of transcendental functions, bytes beside */
    GS_WORK_CHECK,  /* bytes that arrived, verified:            1, bytes */
    GS_WORK_SUBMIT, /* a request handed over and taken back:    1 */
    GS_WORK_LINKS,  /* a copy between two memories:             runs, bytes; one kind for each gs_link_way */
    GS_WORK_TO_DEVICE = GS_WORK_LINKS,
    GS_WORK_FROM_DEVICE,
    GS_WORK_BETWEEN,
    GS_WORK_FROM_DISK, /*                                     requests, bytes */
    GS_WORK_KINDS
} gs_work_kind;

#define GS_WORK_AMOUNTS 7

typedef struct gs_work {
    gs_work_kind kind;
    double amount[GS_WORK_AMOUNTS]; /* those that the kind does not name are 0 */
} gs_work;

/* Where coefficients come from, worst first. */
typedef enum gs_cost_source { GS_COST_DEFAULT, GS_COST_CEILING, GS_COST_FITTED } gs_cost_source;

typedef struct gs_cost {
    double seconds[GS_WORK_KINDS][GS_WORK_AMOUNTS]; /* for each of an amount */
    gs_cost_source source[GS_WORK_KINDS];
    /* The disk moves one byte after the other, reads and writes together; a request takes it
     * request_seconds beside its bytes (reads of 64 KiB to 256 KiB at depth 64: 10 microseconds each), a read of one
     * block block_seconds (0: not measured), and is heard of latency_seconds later. */
    double read_bps, write_bps, request_seconds, block_seconds, latency_seconds;
    gs_cost_source disk_source;
    double pick_seconds; /* of a byte of a row that goes to a device by itself, beside the link's */
    double draw_seconds; /* of batches: a thread draws one, for each of its rows and edges; 0: none was timed */
    double others; /* the share of the processors that other programs had while epochs were timed for the fit */
} gs_cost;

/* Which amount is bytes beside; GS_WORK_AMOUNTS: none, the kind is no device's. */
uint32_t gs_work_beside(gs_work_kind k);
/* Amounts that kind `k` names. */
const char *gs_cost_source_name(gs_cost_source s);

/* A server of 2020 with an NVMe disk of 2 GB/s, per thread: a guess that is said to be one. */
void gs_cost_defaults(gs_cost *out, uint32_t threads);
double gs_cost_seconds(const gs_cost *c, const gs_work *w);
/* Speed and request cost of a link of devices with memory of their own. */
gs_link gs_cost_link(const gs_cost *c, gs_link_way way);
/* The same while the disk moves `bps` bytes a second for the next `busy` seconds. */
double gs_cost_seconds_beside(const gs_cost *c, const gs_work *w, double busy, double bps);

/* ---- fitting ---- */

/* Normal equations of each kind, added up over tasks, epochs and runs. */
typedef struct gs_fit {
    double tasks[GS_WORK_KINDS];
    double square[GS_WORK_KINDS][GS_WORK_AMOUNTS][GS_WORK_AMOUNTS]; /* X'X */
    double product[GS_WORK_KINDS][GS_WORK_AMOUNTS];                 /* X'y */
} gs_fit;

/* `tasks` tasks of a real epoch, their amounts and seconds together. An error counts in proportion to `expected`, about
 * what the seconds should be: with every error counted alike, the few largest tasks of all runs would be all that is
 * fitted to. */
void gs_fit_add(gs_fit *f, const gs_work *w, double seconds, double expected, double tasks);
/* Adds `newer`; what was there before counts `share` of what it did (0 to 1). */
void gs_fit_add_newer(gs_fit *f, double share, const gs_fit *newer);
/* Least squares with no coefficient below 0, for each kind that has at least GS_FIT_TASKS
 * tasks; other kinds of `c` stay as they are. Amounts that never varied by themselves stay close to
 * what `c` had for them (a small ridge towards it). */
void gs_fit_solve(const gs_fit *f, gs_cost *c);
#define GS_FIT_TASKS 4u

/* ---- what is known of this machine, kept from run to run ---------------- */

/* One JSON file for each machine and device, in $XDG_CACHE_HOME/gnnstream or
 * ~/.cache/gnnstream: ceilings, and the observations that coefficients are fitted to. It is a cache: a file
 * that is missing, damaged or of another machine is as good as none, and nothing in it is
 * trusted (every number must be finite and in its range).
 */

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

#endif /* GS_COST_COST_H */
