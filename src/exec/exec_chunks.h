/* exec_chunks.h - what a run knows of chunks of edges, and how their bytes become views that a device takes. */
#ifndef GS_EXEC_EXEC_CHUNKS_H
#define GS_EXEC_EXEC_CHUNKS_H

#include "exec/exec.h"
#include "store/chunk_view.h"

struct gs_exec_device;

typedef enum gs_chunk_state {
    GS_CHUNK_UNSEEN,
    GS_CHUNK_CHECKED, /* in depth */
    GS_CHUNK_MERGED,  /* and its doubled edges are one each */
    GS_CHUNK_JOINED,  /* its place has the edges of several chunks of its column, its own first */
    GS_CHUNK_ELSEWHERE, /* its edges are among those of such a one: nothing is left to do */
} gs_chunk_state;

typedef struct gs_exec_chunks {
    /* set at open */
    const gs_exec_chunk *const *chunk; /* [sets] */
    uint32_t sets, parts, interval_rows, index_bytes, edge_types;
    gs_edge_data data;     /* of each edge */
    gs_dtype feature_type; /* of its features */
    uint64_t vertices;
    /* lasting; no two threads write the same byte at a time, as a chunk goes to one device */
    uint8_t *seen;            /* [sets * parts * parts] a gs_chunk_state of this run */
} gs_exec_chunks;

uint32_t gs_exec__interval_rows(const gs_exec *e, uint32_t interval);
/* The chunk of a compute task, as its device sees it. Where the host sees it too, its indices are checked when they are
 * first used. */
gs_status gs_exec__view_chunk(gs_exec *e, const struct gs_exec_device *x, const gs_task *t, gs_chunk_view *view);
/* Edges of a compute task's chunk. */
uint64_t gs_exec__chunk_edges(const gs_exec *e, const gs_task *t);
/* State of a compute task's chunk. */
uint8_t *gs_exec__chunk_state(const gs_exec *e, const gs_task *t);
/* Before a chunk goes to a device's memory: what is on the host is what the chunk table says. */
gs_status gs_exec__check_upload(gs_exec *e, const gs_task *t);
/* The same of a chunk at `data` that is to stay on a device. */
gs_status gs_exec__check_loaded(gs_exec *e, const gs_resident *r, const void *data);
/* exec_merge.c: merges doubled edges of chunks in host memory that nothing but sums of rows reads, and joins the chunks
 * of a column. Before the first pass. */
gs_status gs_exec__merge_chunks(gs_exec *e);

#endif /* GS_EXEC_EXEC_CHUNKS_H */
