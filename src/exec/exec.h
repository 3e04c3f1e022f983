/* exec.h - runs a plan: tasks meet the bytes that they wait for.
 *
 * The only room that sees both a chunk and a task. One thread drives: it hands
 * reads and writes to io as soon as their slots and inputs allow, and feeds the
 * device one launch after the other; several devices have threads of their own. No allocation after gs_exec_open().
 */
#ifndef GS_EXEC_EXEC_H
#define GS_EXEC_EXEC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "device/device.h"
#include "io/io.h"
#include "plan/bind.h"
#include "plan/plan.h"
#include "program/program.h"
#include "topology/topology.h"
#include "store/chunk_view.h" /* gs_edge_data */

typedef struct gs_exec gs_exec;

/* A file as exec knows it; index as GS_FILE_EDGES says. */
typedef struct gs_exec_file {
    const char *path;     /* NULL: an array that is wholly resident or not in the store */
    bool create;          /* of the run's own (spilled) arrays, which have places in it: made now */
    char *const *stripe;  /* more paths, which its bytes go to in turn, up to a NULL; NULL: none */
    const uint64_t *sums; /* checksums of blocks, or NULL */
    uint64_t sum_bytes;   /* bytes a block */
    uint64_t bytes;       /* without padding */
    uint64_t first;       /* of a rank's part of a file, which it begins with: offsets are those of the whole */
} gs_exec_file;

/* A chunk of an edge set as exec knows it, [target * parts + operand]. */
typedef struct gs_exec_chunk {
    uint64_t checksum, edges;
    uint32_t targets, operands;
    uint64_t length;  /* in the file */
    uint64_t largest; /* edges of the target that has the most; 0: not known */
} gs_exec_chunk;

/* A wire to devices on host memory: what is sent over it takes its time on it, from when it could begin. */
typedef struct gs_exec_wire {
    pthread_mutex_t lock;
    double bps, busy; /* bytes a second; until when (gs_now()) */
} gs_exec_wire;

typedef struct gs_exec_config {
    const gs_program *program;
    const gs_plan *plan;
    gs_device *const *device; /* [plan->devices], or the only one */
    const gs_topology *topology; /* of several */
    const gs_tree *tree;      /* the machine, or NULL */
    const uint32_t *node;     /* [devices] NUMA nodes that they are near to; NULL: not known */
    bool gradients;           /* some pass has them: several devices have their own */
    const gs_exec_file *file; /* [arrays + sets] */
    uint32_t parts, interval_rows;
    uint64_t vertices;
    uint32_t index_bytes;
    gs_edge_data edge_data;   /* of each edge */
    uint32_t edge_types;      /* how many types; 0: untyped */
    gs_dtype edge_feature_type;
    uint32_t sets;            /* edge sets: the store's two directions, then pruned ones */
    const gs_exec_chunk *const *chunk; /* [sets]; NULL for a set that no stage uses */
    gs_io_backend io;
    bool no_verify;           /* skip checksums on arrival */
    bool trace;               /* keep when each task of the last pass began and ended */
    /* Seconds without anything coming back, of transfers and from devices, after which stderr gets what each lane waits
     * for, and after which the run is given up; 0: never. */
    double say_after, end_after;
    /* There are no files: what the plan would load, gs_exec_bind() and gs_exec_rows() bring. The plan is of one
     * interval, as large as the largest graph to be bound, with everything in host memory, or in that of the one
     * device; `file` and `chunk` are not looked at. */
    bool bound;
    bool sends;               /* such graphs are sent to the device, which has memory of its own or is behind a wire */
    uint64_t piece_bytes;     /* of all pieces of such a graph, each in whole blocks; where they are sent there is room
                               * for as many */
    uint32_t slots;           /* graphs that such a device has room for, GS_EXEC_SLOTS at most: 2, so that one is sent
                               * while a pass runs on the other; 0, 1: one */
    gs_exec_wire *wire;       /* such a graph is sent over it to a device on host memory, as to one with memory of its
                               * own; the caller's. NULL: it is not */
    struct {
        bool on;
        uint32_t array, rows; /* such a device keeps so many rows of this array of the store, for gs_exec_spread */
    } spread;
    uint64_t draw_bytes;      /* of such a device, for what draws graphs there: gs_exec_draw_memory() */
} gs_exec_config;

/* A chunk's edges as a launch takes them, with features of this type. */
static inline gs_edges gs_exec_edges_of(const gs_chunk_view *v, gs_dtype feature_type)
{
    return (gs_edges){.index_bytes = v->index_bytes, .targets = v->targets, .target = v->target, .start = v->start,
                      .index = v->index, .count = v->count, .weight = v->weight, .type = v->type,
                      .type_bytes = v->type_bytes, .largest = v->largest, .feature = v->feature,
                      .feature_type = feature_type};
}

/* An array of the store whose rows a graph names: row i is row[i] of `all`. Vertex programs load it, and its rows are
 * summed over in-edges; nothing else is made of it, and gs_exec_rows() of it is not filled. */
typedef struct gs_exec_named {
    uint32_t array;
    const void *all;
    const uint32_t *row;
    void *tile;            /* rows of the largest tile of a stage that loads it */
    const gs_edges *edges; /* the graph's in-edges with operands as rows of `all`; `targets` as many as there are */
} gs_exec_named;

/* An array whose rows are the caller's memory, which may end with the last of them. No other array or sum may share its
 * place, which stays untouched. On a device with memory of its own they are memory there, aligned to 16 bytes, of the
 * arrays that say so (gs_array.outside). */
typedef struct gs_exec_outside {
    uint32_t array;
    void *rows; /* NULL: they are in gs_exec_rows() */
} gs_exec_outside;

/* An array of the store of which devices with memory of their own keep rows for the length of the run. These are
 * numbered together: number r is row r / devices of kept[r % devices]. Row i of the graph is number place[i]; numbers
 * from `rows_kept` on are no device's: the host has them, in order, as the first rows of gs_exec_rows(). */
typedef struct gs_exec_spread {
    uint32_t array, devices, rows_kept;
    const void *kept[GS_DEVICE_PICK_TABLES]; /* gs_exec_kept_memory() of each, which launches of this device read */
    const uint32_t *place;                   /* [vertices] */
    uint64_t from_peers;                     /* rows among them that another device keeps: they count as forwarded */
} gs_exec_spread;

/* Memory that edges are in. */
typedef struct gs_exec_piece {
    const void *memory;
    uint64_t bytes;
} gs_exec_piece;

/* A graph in memory, which a run that was opened with `bound` runs on: rows are those of gs_exec_rows(). */
typedef struct gs_exec_graph {
    gs_binding binding;     /* how many rows are there, and of each stage */
    const gs_edges *edges;  /* [stages] that a stage's sums go over: targets below its `rows`; {0}: none. operand_rows
                             * and target_rows are filled in for each launch */
    const gs_exec_named *named; /* NULL: all arrays are in gs_exec_rows(). On host memory alone */
    const gs_exec_outside *outside; /* [outsides] read at each launch */
    uint32_t outsides;
    const gs_exec_spread *spread; /* NULL: all rows are in gs_exec_rows(). On memory of its own alone */
    const gs_exec_piece *piece; /* [pieces] all of `edges` is in these: they are sent to a device with memory of its
                                 * own, as rows are. There `edges[].end` says how many they are */
    uint32_t pieces;
    uint32_t slot;              /* of that device's, below gs_exec_config.slots */
    const gs_pick_launch *pick; /* [picks] where the graph was made on the device: how its rows come to the slot. Then
                                 * `edges` are addresses there */
    uint32_t picks;             /* 0: it was made on the host */
    bool there;                 /* `edges` are addresses of the device: gs_exec_put() has brought them */
} gs_exec_graph;

/* Bytes of host memory to which the rows of bound graphs are written, and where results come back, where the device has
 * memory of its own. */
uint64_t gs_exec_bound_bytes(const gs_program *program, const gs_plan *plan);

#define GS_EXEC_SLOTS 2u
/* Of such a device: memory that a second slot takes, for graphs of as many bytes of pieces. With it the host has rows
 * twice, and pieces as often, which are sent from there. */
uint64_t gs_exec_slot_bytes(const gs_program *program, const gs_plan *plan, uint64_t piece_bytes);

/* Of such a device: memory that keeping `rows` of its rows takes, for graphs of at most `most` vertices. */
uint64_t gs_exec_spread_bytes(uint64_t row_bytes, uint32_t most, uint32_t rows);

/* Takes all memory, opens the files, loads what stays in memories. GS_EINVAL: `bound`, with a plan that moves data. */
gs_status gs_exec_open(gs_exec **out, const gs_exec_config *config);
/* NULL is allowed. A run that was given up stays as it is until the process ends. */
void gs_exec_close(gs_exec *e);
/* The run was given up: what it works with (plan, program, devices, memory of parameters) must stay too. */
bool gs_exec_gave_up(const gs_exec *e);

/* What sending came to. */
typedef struct gs_exec_sent {
    uint64_t copied_in_bytes, forwarded_bytes;
} gs_exec_sent;

/* Before a graph is sent to one of two slots: its pieces are copied to where they are sent from, and may change then.
 * One thread, which may be another one than sends or runs a pass meanwhile on a graph of another slot. GS_EINVAL: they
 * are more than the run was opened for. */
gs_status gs_exec_stage(gs_exec *e, const gs_exec_graph *graph);
/* Rows (gs_exec_staged_rows()) and edges of a graph come to its slot of a device with memory of its own, before the
 * passes that run on it; on host memory there is nothing to do. Waits until they are there: what they were in may
 * change then. One thread, likewise. */
gs_status gs_exec_send(gs_exec *e, const gs_exec_graph *graph, gs_exec_sent *out);

/* Of a device with memory of its own: where a slot has what graphs bring, for who makes them there: the edges, as many
 * bytes as pieces, and the rows of an array (NULL: it has no place). Memory of gs_exec_config.draw_bytes, and how it is
 * filled before the passes; waits. */
void *gs_exec_slot_pieces(const gs_exec *e, uint32_t slot);
void *gs_exec_slot_rows(const gs_exec *e, uint32_t slot, uint32_t array);
void *gs_exec_draw_memory(const gs_exec *e);
gs_status gs_exec_put(gs_exec *e, const void *to, const void *from, uint64_t bytes);

/* Between two passes on the bound graph: the rows of an array that changed since come there, too; adds their bytes to
 * *sent. */
gs_status gs_exec_send_array(gs_exec *e, uint32_t array, uint64_t *sent);

/* From now on passes run on this graph, which is the caller's and stays as it is until another one is bound. Indices
 * are not checked here. Any number of times, between passes. */
void gs_exec_bind(gs_exec *e, const gs_exec_graph *graph);
/* Where the rows of an array of the program are, [rows planned, width] in the array's type: those that are there are
 * written before a pass, of what a pass reads and does not make, or read behind it: on host memory any, else those of
 * results (gs_array.result). NULL where it has no place of its own in host memory. */
void *gs_exec_rows(const gs_exec *e, uint32_t array);
/* The same, of those that are sent to this slot. */
void *gs_exec_staged_rows(const gs_exec *e, uint32_t array, uint32_t slot);

/* Of a run that was opened with `spread`, before its passes: the first `rows` of gs_exec_rows() of that array become
 * rows [first, first + rows) of those that the device keeps. Waits. */
gs_status gs_exec_keep_rows(gs_exec *e, uint32_t array, uint32_t first, uint32_t rows);
/* Where they are, an address of the device. */
const void *gs_exec_kept_memory(const gs_exec *e);

/* Between passes on bound graphs: nothing that they made is needed any more, and on host memory there is none behind it
 * until the next pass. */
void gs_exec_forget(gs_exec *e);

/* Rows of a store's array where the run keeps all of them in host memory for good, else NULL. Nobody writes there. */
const void *gs_exec_kept_rows(const gs_exec *e, uint32_t array);

/* The first number of a pass that is not finite, in the order of its stages. */
typedef struct gs_exec_fault {
    uint32_t stage; /* GS_NONE: there is none in the arrays and sums of the pass */
    bool stored;    /* in rows that the stage stores; else in its sums, or in rows that it loads */
    uint32_t reg, column;
    float value;
    uint64_t row;      /* of all vertices, in store order */
    gs_op op;          /* the operation that made it of finite numbers, and these */
    uint32_t operands; /* 0: not known */
    float operand[3];
} gs_exec_fault;

/* Looks for it while a pass runs; or, where one was `found` in what a stage stores, for the operation that made it.
 * NULL: none was. Closing says what was found. GS_ENOMEM. */
typedef struct gs_exec_watch gs_exec_watch;
gs_status gs_exec_watch_open(gs_exec_watch **out, const gs_exec_fault *found);
gs_exec_fault gs_exec_watch_close(gs_exec_watch *w);

typedef struct gs_exec_args {
    const float *const *param; /* [program->params] */
    float *const *grad;        /* NULL for passes without gradients; else zeroed by the caller, one run of floats as
                                * gs_program_place_params() lays it out */
    float *const *made;        /* [program->params] where statistics go: those of `param` */
    double *const *statistic;  /* [program->params] their sums, [2 * cols], zeroed by the caller; NULL for other
                                * parameters */
    uint64_t seed;
    uint32_t epoch;
    float loss_scale;          /* 1 / what the mean of the loss is over: training vertices, or labels of theirs */
    float loss_smoothing;      /* as in gs_vertex_launch */
    const float *loss_weight;
    const float *loss_factor;  /* [training rows of a bound graph, which come first] of their losses; NULL: 1 */
    bool again;                /* the next run is of this pass too: its first reads are made while this one ends */
    const gs_device_there *there; /* learned parameters, on the one device, whose graph is bound; NULL: they are those
                                * of `param`. The run returns before it is done */
    /* Nothing is computed, and what is read and written is what memory has: each launch of an edge program of a stage
     * that has ways to try (gs_stage.tried) is given to this instead. NULL: the pass runs. */
    gs_status (*rehearse)(void *context, gs_device *device, const gs_edge_program_launch *l);
    void *rehearsal;           /* its context */
    gs_exec_watch *watch;      /* every tile is looked at, which takes its time; NULL: none */
    const volatile int *stop;  /* becomes nonzero (Ctrl-C): give up between tasks; may be NULL */
} gs_exec_args;

typedef struct gs_exec_stats {
    gs_metrics metrics; /* its columns and classes are there until the next run */
    double seconds, compute_seconds, edge_seconds, stall_seconds;
    uint64_t handed_over; /* tasks of devices that a thread began as it saw another one over, and no device did */
    uint64_t read_bytes, written_bytes;
    uint64_t loaded_bytes; /* of read_bytes: those that came to devices past the host */
    uint64_t copied_in_bytes, copied_out_bytes; /* to devices with memory of their own, and back */
    uint64_t forwarded_bytes; /* between several devices, whose times are those of the one that computed longest */
    /* The driving thread besides: verifying what arrived; handing over and taking back. */
    double check_seconds, submit_seconds;
    uint64_t checked_bytes, checks, requests;
    /* Moments of gs_now(): parameters are where launches find them; all launches are over. */
    double entered, computed;
    uint64_t sent_bytes, received_bytes; /* to and from other ranks. Bytes are those of all ranks but for received
                                          * ones; seconds are this one's */
} gs_exec_stats;

/* Runs one pass once. What was read ahead of it belongs to its figures. Errors name the file and the chunk or rows. */
gs_status gs_exec_run(gs_exec *e, uint32_t pass, const gs_exec_args *args, gs_exec_stats *out);

/* How far the pass that runs now, or ran last, has come. */
typedef struct gs_exec_progress {
    uint32_t pass;  /* GS_NONE before the first */
    uint32_t tasks; /* done; of plan->pass[pass].tasks */
    uint64_t bytes; /* that its reads and writes have moved */
} gs_exec_progress;

/* Any thread, also while another one runs a pass. Does not block. The three may be of moments that lie apart. */
void gs_exec_get_progress(const gs_exec *e, gs_exec_progress *out);

/* The transfers of `pass` once more by themselves, in the plan's order: how long the disk has for them where nothing is
 * computed and nothing waited for. What the run held in memory and in its spill files is lost: nothing is run after it.
 * GS_EINTERRUPTED once `stop` (may be NULL) is set. */
gs_status gs_exec_replay(gs_exec *e, uint32_t pass, const volatile int *stop, double *seconds);

/* When `task` of the last run of its pass began and ended, seconds of one clock; what a GPU computed, by its own. The
 * run was opened with `trace`. */
void gs_exec_span(const gs_exec *e, uint32_t task, double *begin, double *end);
/* True for a task whose chunk was joined with others of its column: one of their tasks does the work of all. */
bool gs_exec_is_joined(const gs_exec *e, uint32_t task);
/* Writes the last run of `pass` as Chrome trace events (chrome://tracing, Perfetto): one track for the
 * device, one for reads and one for writes. `other`: an object of JSON that stands there too, as "otherData". The run
 * was opened with `trace`. */
gs_status gs_exec_write_trace(const gs_exec *e, uint32_t pass, const char *other, FILE *out, const char *path);
/* Parts of such a file, for other tracks: its head, and `what` it is of; a track's name; its end. */
void gs_trace_begin(FILE *out, const char *other, const char *what);
void gs_trace_track(FILE *out, uint32_t track, const char *name);
gs_status gs_trace_end(FILE *out, const char *path);
/* Memory that tracing, and a run of several devices, take for each task. */
#define GS_EXEC_TRACE_TASK_BYTES (2 * sizeof(double))
/* Likewise, a list of those in which a device reads chunks past the host; and for each chunk of each edge set. */
#define GS_EXEC_LOAD_TASK_BYTES sizeof(void *)
/* Of a task in a rank's part: a message may stand for it. */
#define GS_EXEC_MESSAGE_TASK_BYTES (sizeof(uint64_t) + sizeof(uint32_t))
#define GS_EXEC_MARK_BYTES sizeof(uint64_t)

/* Rows [first, first + rows) of an array that the last pass wrote, as f32, store order. Of several ranks
 * each has those that it makes, and of what stays between passes those of its vertices. */
gs_status gs_exec_read_rows(gs_exec *e, uint32_t array, uint64_t first, uint64_t rows, float *dst);

/* Rows of arrays of the run, f32, side by side: goes over all vertices in store order, by tiles of `tile` rows at most,
 * none of two intervals. Or over some of them: blocks of the disk that have none of these are neither read nor written,
 * and tiles that have none are left out. Between passes. A rank goes over its own rows, without names. */
typedef struct gs_exec_column {
    uint32_t array;
    bool read, write;
} gs_exec_column;
#define GS_EXEC_COLUMNS 4u
/* Called for rows [first, first + rows): row[k] are those of column k, [rows, width]; columns that are read have their
 * values, and columns that are written get theirs. */
typedef gs_status gs_exec_sweep_fn(void *context, uint64_t first, uint64_t rows, float *const *row);
typedef struct gs_exec_sweep_config {
    const gs_exec_column *column; /* [columns] */
    uint32_t columns;             /* GS_EXEC_COLUMNS at most */
    uint64_t tile;                /* whole blocks of GS_BLOCK_BYTES of each column */
    void *buffer;                 /* for what is spilled: two tiles of each column, in pages */
    const uint32_t *named;        /* [names] the rows that are wanted, ascending; NULL: all. Other rows of a tile may
                                   * be there or not, and stay as they are. Columns that are written are read, too */
    uint32_t names;
    gs_exec_sweep_fn *fn;
    void *context;
} gs_exec_sweep_config;
/* Adds the bytes that it moved to *read and *written. What `fn` returns but GS_OK ends it; GS_EIO. */
gs_status gs_exec_sweep(gs_exec *e, const gs_exec_sweep_config *config, uint64_t *read, uint64_t *written);

const char *gs_exec_io_name(const gs_exec *e);
/* The limits of the system that kept fast I/O off, or "". */
const char *gs_exec_io_note(const gs_exec *e);

#endif /* GS_EXEC_EXEC_H */
