/* device_table.h - what a device must provide, behind device.h, noun by noun.
 *
 * device.c checks arguments once and alone dereferences the tables; device_list.c alone knows which kinds of devices
 * exist. A noun that a device has is complete: gs_device__check() says so when it is opened. Meaning, units and threads
 * of an entry are those of the function of its name in device.h. A noun's entries are a list, from which its table, and
 * where a device names its functions as they are named, their declarations and what fills the table follow.
 */
#ifndef GS_DEVICE_DEVICE_TABLE_H
#define GS_DEVICE_DEVICE_TABLE_H

#include "device/device.h"

/* Each list has X(type, name, (arguments)) of every entry. Behind it stands what is done where memory is the host's, of
 * nouns for which that matters: device.c makes tables of it, so that nobody asks which kind a device is. */

/* Programs, and their launches. */
#define GS_DEVICE_OF_COMPUTE(X) \
    X(uint64_t, scratch_bytes, (const void *context, const gs_program *p)) \
    X(gs_status, prepare, (void *context, const gs_program *p)) \
    X(gs_status, begin_pass, (void *context, const gs_device_pass *pass)) \
    X(gs_status, end_pass, (void *context)) \
    X(gs_status, run_vertex, (void *context, const gs_vertex_launch *l)) \
    X(gs_status, run_edges, (void *context, const gs_edge_launch *l)) \
    X(gs_status, run_edge_program, (void *context, const gs_edge_program_launch *l)) \
    X(gs_status, begin_sum, (void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, \
       uint32_t width, uint32_t heads)) \
    X(gs_status, finish_sum, (void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, \
       uint32_t width, uint32_t heads)) \
    X(gs_status, run_sequence, (void *context, const gs_sequence_launch *l)) \
    X(gs_status, run_sequence_back, (void *context, const gs_sequence_launch *l)) \
    X(gs_status, finish_statistic, (void *context, gs_statistic kind, float *dst, const double *sums, \
       uint32_t cols, uint64_t rows)) \
    X(gs_status, add_own, (void *context, const gs_own_launch *l)) \
    X(gs_status, copy, (void *context, void *to, const void *from, uint64_t bytes)) \
    X(gs_status, zero, (void *context, void *memory, uint64_t bytes))

/* What it does at best. */
#define GS_DEVICE_OF_CEILINGS(X) \
    X(gs_status, measure_gemm, (void *context, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second)) \
    X(gs_status, measure_gather, (void *context, uint64_t table_rows, uint32_t width, double *bytes_per_second)) \
    X(gs_status, measure_copy, (void *context, double *bytes_per_second))

/* Memory of its own, and launches that return before they are done. */
#define GS_DEVICE_OF_MEMORY(X) \
    X(gs_status, free_memory, (const void *context, uint64_t *bytes), *bytes = UINT64_MAX; return GS_OK) \
    X(void, set_budget, (void *context, uint64_t bytes), return) \
    X(gs_device_libraries, libraries, (const void *context), return (gs_device_libraries){0, 0}) \
    X(gs_status, take_memory, (void *context, const gs_device_memory *m, void **arena), return take_pages(m, arena)) \
    X(void, give_memory, (void *context, void *arena, uint64_t bytes), gs_free_pages(arena, bytes)) \
    X(const char *, unpinned, (const void *context), return NULL) \
    X(void, quiet, (void *context), return) \
    X(gs_device_copied, take_copied, (void *context), return (gs_device_copied){0, 0}) \
    X(gs_status, peek, (void *context, void *to, const void *from, uint64_t bytes), \
       memcpy(to, from, bytes); return GS_OK) \
    X(gs_status, pick_rows, (void *context, const gs_pick_launch *l), return no_own("no rows are picked")) \
    X(uint64_t, draw_bytes, (const gs_draw_launch *l), return 0) \
    X(gs_status, draw, (void *context, const gs_draw_launch *l, gs_draw_counts *out), \
       return no_own("no batches are drawn")) \
    X(gs_status, begin_group, (void *context), return GS_OK) \
    X(gs_status, end_group, (void *context, gs_status st), return st) \
    X(gs_status, step_in, (void *context), return GS_OK) \
    X(gs_status, follow, (void *context, void *stream), return GS_OK) \
    X(gs_status, lead, (void *context, void *stream), return GS_OK) \
    X(void, step_aside, (void *context), return) \
    X(bool, has, (const void *context, const void *memory), return false) \
    X(uint64_t, last_launch, (const void *context), return 0) \
    X(gs_status, poll, (void *context, uint64_t launch, bool wait, bool *done), return GS_OK) \
    X(gs_status, time_launches, (void *context), return GS_OK) \
    X(bool, launch_span, (const void *context, uint64_t first, uint64_t last, double span[2]), return false)

/* Links of its memory to the host's and to others of its kind, and sums over them: does it make a sum over devices
 * without the host, and of all of them together, where it does? Where it does not, a part of the pass comes to where
 * the host has it, and goes back. */
#define GS_DEVICE_OF_LINKS(X) \
    X(void, bus_place, (const void *context, char place[GS_DEVICE_PLACE_BYTES]), return) \
    X(bool, speed, (const void *context, gs_gpu_speed *out), return false) \
    X(gs_device_reach, reaches, (const void *context, const void *peer), return (gs_device_reach){.reaches = false}) \
    X(gs_status, open_peer, (void *context, const void *peer, bool *open), return GS_OK) \
    X(gs_status, join, (void *const *context, uint32_t devices), return GS_OK) \
    X(gs_status, transfer, (void *context, gs_device_way way, const void *peer, void *to, const void *from, \
       uint64_t bytes), memcpy(to, from, bytes); return GS_OK) \
    X(gs_status, send_rows, (void *context, const gs_rows_launch *l), return copy_rows(l)) \
    X(gs_status, mark_transfers, (void *context, gs_device_way way, uint64_t *number), return GS_OK) \
    X(gs_status, poll_transfers, (void *context, gs_device_way way, uint64_t number, bool wait, bool *done), \
       return GS_OK) \
    X(gs_status, go_behind, (void *context, gs_device_way way, gs_device_way of, uint64_t number), return GS_OK) \
    X(bool, sums_alone, (const void *context), return false) \
    X(gs_status, all_reduce, (void *const *context, uint32_t devices, void *const *part, uint64_t count, bool f64), \
       return GS_OK) \
    X(gs_status, fetch_part, (void *context, void *part, uint64_t bytes), return GS_OK) \
    X(gs_status, put_part, (void *context, const void *part, uint64_t bytes), return GS_OK)

/* Learned parameters that it holds for a run, with their gradients and the optimiser's state. */
#define GS_DEVICE_OF_PARAMS(X) \
    X(gs_status, keep_params, (void *context, const float *const *param, uint32_t states), \
       return no_own("no parameters are kept")) \
    X(gs_status, gradient_norm, (void *context, double *out), return no_own("no parameters are kept")) \
    X(gs_status, step, (void *context, const gs_update *u), return no_own("no parameters are kept")) \
    X(bool, stepped_well, (const void *context), return true) \
    X(gs_status, fetch_params, (void *context, float *const *param), return no_own("no parameters are kept")) \
    X(gs_status, fetch_previous, (void *context, float *const *param), return no_own("no parameters are kept")) \
    X(gs_status, fetch_state, (void *context, uint32_t run, float *const *state), \
       return no_own("no parameters are kept")) \
    X(gs_status, put_state, (void *context, uint32_t run, const float *const *state), \
       return no_own("no parameters are kept")) \
    X(void, leave_params, (void *context), return)

/* Files that it reads by itself. */
#define GS_DEVICE_OF_READS(X) \
    X(gs_status, probe_reads, (void *context, const char *path), return no_own("no file is read")) \
    X(gs_status, open_reads, (void *context, void *first, uint64_t bytes), return no_own("no file is read")) \
    X(gs_status, add_file, (void *context, const char *path, uint32_t *file), return no_own("no file is read")) \
    X(gs_status, begin_read, (void *context, const gs_device_read *r, uint64_t *number), \
       return no_own("no file is read")) \
    X(gs_status, poll_read, (void *context, uint64_t number, bool wait, bool *done), return no_own("no file is read"))

#define X(type, name, arguments, ...) type (*name) arguments;
typedef struct gs_device_compute { GS_DEVICE_OF_COMPUTE(X) } gs_device_compute;
typedef struct gs_device_ceilings { GS_DEVICE_OF_CEILINGS(X) } gs_device_ceilings;
typedef struct gs_device_own_memory { GS_DEVICE_OF_MEMORY(X) } gs_device_own_memory;
typedef struct gs_device_links { GS_DEVICE_OF_LINKS(X) } gs_device_links;
typedef struct gs_device_params { GS_DEVICE_OF_PARAMS(X) } gs_device_params;
typedef struct gs_device_reads { GS_DEVICE_OF_READS(X) } gs_device_reads;
#undef X

/* Of a device that computes on host memory. */
extern const gs_device_own_memory gs_device__host_memory;
extern const gs_device_links gs_device__host_links;
extern const gs_device_params gs_device__host_params; /* parameters are the host's */
extern const gs_device_reads gs_device__host_reads;   /* the host reads for it */

typedef struct gs_device_ops {
    void (*close)(void *context);
    const char *(*name)(const void *context);
    bool (*rounds)(const void *context); /* NULL: no */
    const gs_device_compute *compute;
    const gs_device_ceilings *ceilings;
    const gs_device_own_memory *memory;
    const gs_device_links *links;
    const gs_device_params *params;
    const gs_device_reads *reads;
} gs_device_ops;

/* Of device.c, and of tests that make one. */
struct gs_device {
    gs_device_ops ops; /* all nouns are there */
    void *context;
    void *arena;       /* [arena_bytes] that it has taken; NULL: none */
    uint64_t arena_bytes;
};

/* GS_EUNSUPPORTED: a noun is not there, or not complete; the line names it. */
gs_status gs_device__check(const gs_device_ops *ops, const char *device);

/* Which of a kind's devices, and how it is to compute. */
typedef struct gs_device_choice {
    unsigned number;    /* of a GPU */
    unsigned threads;   /* of the processors; 0: all */
    gs_matmul matmul;
} gs_device_choice;

/* On GS_OK the caller owns *context and gives it back through (*ops)->close. GS_EUNSUPPORTED: there is none such. */
typedef gs_status gs_device_opener(const gs_device_ops **ops, void **context, const gs_device_choice *choice);

typedef struct gs_device_kind {
    const char *word; /* of a device's spec: "cpu" */
    gs_device_opener *open;
} gs_device_kind;

/* All kinds that this build has: each room of one adds its own to `gs_device_kinds` in its meson.build. */
extern const gs_device_kind *const gs_device__kinds[];
extern const uint32_t gs_device__kind_count;

/* Opens the device of config->spec. As an opener; errors as gs_device_open_with(). */
gs_status gs_device__find(const gs_device_ops **ops, void **context, const gs_device_config *config);

#endif /* GS_DEVICE_DEVICE_TABLE_H */
