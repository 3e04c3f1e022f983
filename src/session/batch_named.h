/* batch_named.h - features of a batch that are named, not copied.
 *
 * Where all rows are in memory, a batch's are picked for each tile of a vertex program, and sums over edges read them
 * where they are.
 */
#ifndef GS_SESSION_BATCH_NAMED_H
#define GS_SESSION_BATCH_NAMED_H

#include "exec/exec.h"
#include "plan/plan.h"
#include "sample/sample_batch.h"

typedef struct gs_batch_named {
    gs_exec_named rows;     /* of the batch at hand; `all` NULL: features are copied */
    gs_edges edges;         /* its in-edges, with operands as rows of `all` */
    uint32_t *target, *index; /* of those; NULL where no sum reads features */
    uint8_t *tile;
    uint64_t bytes;
} gs_batch_named;

/* May they be named in these stages? Takes memory for the largest tile and, where sums read features, for the edges of
 * a batch. Else, and without GS_OK, nothing. */
gs_status gs_batch_named_open(gs_batch_named *n, const gs_program *p, const gs_plan *plan,
                              const gs_batch_limits *limits);
/* Bytes that gs_batch_named_open() takes; 0 where rows may not be named. */
uint64_t gs_batch_named_bytes(const gs_program *p, const gs_plan *plan, const gs_batch_limits *limits);
void gs_batch_named_close(gs_batch_named *n);
/* `all`: features of all vertices of the store. */
void gs_batch_named_fill(gs_batch_named *n, const gs_batch *b, const void *all);

#endif /* GS_SESSION_BATCH_NAMED_H */
