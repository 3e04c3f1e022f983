/* device.h - run one launch, on whatever computes.
 *
 * A device is a table of functions behind this header; other rooms call
 * gs_device_*() and never the table. The CPU device answers everything and is the
 * reference for the others.
 *
 * Threads: one thread feeds a device. Launches of the CPU device return when
 * the work is done; they use `threads` threads inside and allocate nothing.
 */
#ifndef GS_DEVICE_DEVICE_H
#define GS_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/program.h"

typedef struct gs_device gs_device;

/* What a run of the loss adds up. Index: gs_split (1 train, 2 valid, 3 test). */
typedef struct gs_metrics {
    double loss_sum;
    uint64_t rows[4], correct[4];
} gs_metrics;

/* `spec` is "cpu". `threads` 0: all. GS_EUNSUPPORTED names what is not there. */
gs_status gs_device_open(gs_device **out, const char *spec, unsigned threads);
void gs_device_close(gs_device *d);
const char *gs_device_name(const gs_device *d); /* "cpu (AVX2, 2 threads)" */
/* True where the device computes on host memory: no copies, and its memory is a part of the host's. */
bool gs_device_unified(const gs_device *d);
/* Memory that launches of this program need beside registers (per-thread
 * partial sums, packing), taken at prepare. */
uint64_t gs_device_scratch_bytes(const gs_device *d, const gs_program *p);
/* Called once before launches of `p`: takes the scratch, warms what a library sets up lazily. */
gs_status gs_device_prepare(gs_device *d, const gs_program *p);

/* One tile of a stage's vertex program. */
typedef struct gs_vertex_launch {
    const gs_program *program;
    const gs_stage *stage;
    uint32_t rows;
    void *const *reg;         /* [stage->regs], each [rows, width] in the register's type, 4-byte aligned at least */
    const float *const *param; /* [program->params] */
    float *const *grad;       /* [program->params], accumulated */
    gs_metrics *metrics;      /* accumulated */
    uint64_t seed;
    uint32_t epoch;
    float loss_scale;         /* 1 / training rows */
} gs_vertex_launch;

gs_status gs_device_run_vertex(gs_device *d, const gs_vertex_launch *l);

/* acc[target[t]] += sum over k in [start[t], start[t+1]) of operand[index[k]]
 * (rows of `width` floats). Adds edges of a target in order of k. */
typedef struct gs_edge_launch {
    uint32_t index_bytes;  /* 2 or 4, of target and index */
    uint32_t targets;
    const void *target;    /* [targets], local to acc; distinct, ascending */
    const uint32_t *start; /* [targets + 1] */
    const void *index;     /* [edges], local to operand */
    const float *operand;
    float *acc;
    uint32_t width;
} gs_edge_launch;

gs_status gs_device_run_edges(gs_device *d, const gs_edge_launch *l);

/* acc[0..count) += src[0..count); and acc = 0. */
gs_status gs_device_add(gs_device *d, float *acc, const float *src, uint64_t count);
gs_status gs_device_zero(gs_device *d, void *memory, uint64_t bytes);

/* Measured ceilings of this device, each a short run (about half a second): */
gs_status gs_device_measure_gemm(gs_device *d, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second);
/* Sum of random rows of `width` floats out of `table_rows`, bytes of rows read per second. */
gs_status gs_device_measure_gather(gs_device *d, uint64_t table_rows, uint32_t width, double *bytes_per_second);
gs_status gs_device_measure_copy(gs_device *d, double *bytes_per_second);

#endif /* GS_DEVICE_DEVICE_H */
