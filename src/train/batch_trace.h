/* batch_trace.h - when the batches of an epoch were drawn, picked, sent and computed, and the optimiser stepped.
 *
 * Memory is for the last spans of an epoch. One thread.
 */
#ifndef GS_TRAIN_BATCH_TRACE_H
#define GS_TRAIN_BATCH_TRACE_H

#include <stdint.h>
#include <stdio.h>

#include "batch/batches.h"

/* RETURN: results come back from a device with memory of its own. */
typedef enum gs_batch_part {
    GS_BATCH_DRAW,
    GS_BATCH_STEP,
    GS_BATCH_PICK,
    GS_BATCH_SEND,
    GS_BATCH_COMPUTE,
    GS_BATCH_RETURN,
    GS_BATCH_TRACED_PARTS
} gs_batch_part;

typedef struct gs_batch_span {
    double begin, end; /* gs_now() */
    uint32_t batch;    /* DRAW: the first of a group; STEP: of the step */
    uint32_t vertices;
    uint64_t edges;
    uint16_t part, device;
} gs_batch_span;

typedef struct gs_batch_trace {
    gs_batch_span *span; /* [most] a ring; NULL: nothing is traced */
    uint32_t most;
    uint64_t spans;      /* so far; the last `most` are there */
} gs_batch_trace;

/* Memory of a trace of epochs of so many batches. */
uint64_t gs_batch_trace_bytes(uint32_t batches);
/* GS_ENOMEM. Release with gs_batch_trace_close() in any case. */
gs_status gs_batch_trace_open(gs_batch_trace *t, uint32_t batches);
void gs_batch_trace_close(gs_batch_trace *t);

/* An epoch begins. */
void gs_batch_trace_clear(gs_batch_trace *t);
void gs_batch_trace_add(gs_batch_trace *t, gs_batch_span span);
/* PICK, SEND, COMPUTE and RETURN of a pass that is over; on host memory nothing is sent. */
void gs_batch_trace_add_pass(gs_batch_trace *t, const gs_batch_pass *p);
/* As gs_exec_write_trace(): a track for drawing, one for the optimiser, three of each device. */
gs_status gs_batch_trace_write(const gs_batch_trace *t, uint32_t devices, const char *other, FILE *out,
                               const char *path);

#endif /* GS_TRAIN_BATCH_TRACE_H */
