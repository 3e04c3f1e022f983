/* device_table.h - what a device must provide, behind device.h.
 *
 * device.c (device_several.c for what is only asked of several) checks arguments once and alone dereferences the
 * table; device_list.c is the only one that knows which devices exist. Entries are
 * required, but those of sequences (programs with them are refused without) and, of a device on host memory, those from
 * take_memory on. Meaning, units and threads are those of the function
 * of the same name in device.h.
 */
#ifndef GS_DEVICE_DEVICE_TABLE_H
#define GS_DEVICE_DEVICE_TABLE_H

#include "device/device.h"
#include "device/device_budget.h"
#include "device/device_reads.h"

typedef struct gs_device_ops {
    void (*close)(void *context);
    const char *(*name)(const void *context);
    bool (*unified)(const void *context);
    uint64_t (*scratch_bytes)(const void *context, const gs_program *p);
    gs_status (*prepare)(void *context, const gs_program *p);
    gs_status (*run_vertex)(void *context, const gs_vertex_launch *l);
    gs_status (*run_edges)(void *context, const gs_edge_launch *l);
    gs_status (*run_edge_program)(void *context, const gs_edge_program_launch *l);
    gs_status (*begin_sum)(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                           uint32_t heads);
    gs_status (*finish_sum)(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                            uint32_t heads);
    gs_status (*run_sequence)(void *context, const gs_sequence_launch *l);
    gs_status (*run_sequence_back)(void *context, const gs_sequence_launch *l);
    gs_status (*copy)(void *context, void *to, const void *from, uint64_t bytes);
    gs_status (*finish_statistic)(void *context, gs_statistic kind, float *dst, const double *sums, uint32_t cols,
                                  uint64_t rows);
    gs_status (*add_own)(void *context, const gs_own_launch *l);
    gs_status (*zero)(void *context, void *memory, uint64_t bytes);
    gs_status (*measure_gemm)(void *context, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second);
    gs_status (*measure_gather)(void *context, uint64_t table_rows, uint32_t width, double *bytes_per_second);
    gs_status (*measure_copy)(void *context, double *bytes_per_second);
    /* not unified: */
    gs_status (*free_memory)(const void *context, uint64_t *bytes);
    void (*set_budget)(void *context, uint64_t bytes);
    gs_device_libraries (*libraries)(const void *context);
    gs_status (*take_memory)(void *context, const gs_device_memory *m, void **arena);
    void (*give_memory)(void *context);
    void (*quiet)(void *context);
    gs_status (*pick_rows)(void *context, const gs_pick_launch *l);
    gs_status (*begin_pass)(void *context, const gs_device_pass *pass);
    gs_status (*end_pass)(void *context);
    gs_status (*begin_group)(void *context); /* both or none */
    gs_status (*end_group)(void *context, gs_status st);
    uint64_t (*last_launch)(const void *context);
    gs_status (*poll)(void *context, uint64_t launch, bool wait, bool *done);
    gs_device_copied (*take_copied)(void *context);
    gs_status (*peek)(void *context, void *to, const void *from, uint64_t bytes);
    gs_status (*keep_params)(void *context, const float *const *param, uint32_t states); /* these eight or none */
    gs_status (*gradient_norm)(void *context, double *out);
    gs_status (*step)(void *context, const gs_update *u);
    gs_status (*fetch_params)(void *context, float *const *param);
    gs_status (*fetch_previous)(void *context, float *const *param);
    bool (*stepped_well)(const void *context);
    gs_status (*fetch_state)(void *context, uint32_t run, float *const *state);
    gs_status (*put_state)(void *context, uint32_t run, const float *const *state);
    gs_status (*measure_transfer)(void *context, double *bytes_per_second);
    const char *(*unpinned)(const void *context);
    gs_status (*time_launches)(void *context); /* both or none */
    bool (*launch_span)(const void *context, uint64_t first, uint64_t last, double span[2]);
    bool (*speed)(const void *context, gs_gpu_speed *out);
    gs_status (*probe_reads)(void *context, const char *path);
    gs_status (*open_reads)(void *context, void *first, uint64_t bytes);
    gs_status (*add_file)(void *context, const char *path, uint32_t *file);
    gs_status (*read_file)(void *context, const gs_device_read *r, uint64_t *number);
    gs_status (*poll_read)(void *context, uint64_t number, bool wait, bool *done);
    /* one of several that are not unified: */
    void (*bus_place)(const void *context, char place[GS_DEVICE_PLACE_BYTES]);
    gs_device_reach (*reach)(const void *context, const void *peer);
    gs_status (*open_peer)(void *context, const void *peer, bool *open);
    gs_status (*join)(void *const *context, uint32_t devices, bool ring);
    gs_status (*transfer)(void *context, gs_device_way way, const void *peer, void *to, const void *from,
                          uint64_t bytes);
    gs_status (*mark_transfers)(void *context, gs_device_way way, uint64_t *number);
    gs_status (*poll_transfers)(void *context, gs_device_way way, uint64_t number, bool wait, bool *done);
    /* a sum over devices: do they make it without the host? Then all of them together; else a part of the pass comes to
     * where the host has it, and goes back */
    bool (*sums_alone)(const void *context);
    gs_status (*all_reduce)(void *const *context, uint32_t devices, void *const *part, uint64_t count, bool f64);
    gs_status (*fetch_part)(void *context, void *part, uint64_t bytes);
    gs_status (*put_part)(void *context, const void *part, uint64_t bytes);
} gs_device_ops;

struct gs_device { /* for device.c and device_several.c */
    const gs_device_ops *ops;
    void *context;
};

/* The CUDA device, of the room cuda: the GPU number `ordinal`. GS_EUNSUPPORTED: no driver, no such GPU, one too old. */
gs_status gs_cuda_open(const gs_device_ops **ops, void **context, unsigned ordinal, const char *matmul);

/* Opens the device of `spec` (device_list.c). On GS_OK the caller owns *context and
 * gives it back through (*ops)->close. Errors as gs_device_open(). */
gs_status gs_device__find(const gs_device_ops **ops, void **context, const gs_device_config *config);

#endif /* GS_DEVICE_DEVICE_TABLE_H */
