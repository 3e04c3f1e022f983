/* batch_spread.h - which rows of features do GPUs keep in memory of their own, and which of a batch's are not there?
 *
 * Those of the vertices with the most out-edges, which neighbours are drawn from most often (PaGraph, SoCC'20); of as
 * many, the first ones. They are numbered in the order of the store, and dealt to the devices in turn, so that each of
 * them is read as often. What is kept is the same for the whole run: beyond a group no use is known.
 */
#ifndef GS_SESSION_BATCH_SPREAD_H
#define GS_SESSION_BATCH_SPREAD_H

#include "base/status.h"
#include "store/store.h"

typedef struct gs_batch_spread {
    uint32_t vertices, rows;
    uint64_t *bit;    /* [words] of vertices: it is kept */
    uint32_t *before; /* [words] how many are kept before the word's first */
} gs_batch_spread;

/* Takes the `rows` vertices, fewer than there are or all. GS_ENOMEM, GS_EIO, GS_EFORMAT; blocks while it reads degrees.
 * Release with gs_batch_spread_close() in any case. */
gs_status gs_batch_spread_open(gs_batch_spread *s, const gs_store *store, uint32_t rows);
void gs_batch_spread_close(gs_batch_spread *s);
/* Memory that one takes, also while it is opened. */
uint64_t gs_batch_spread_bytes(const gs_store *store);

/* A batch's rows. */
typedef struct gs_batch_places {
    uint32_t *place; /* [rows] the number of the row; those that are not kept: s->rows on, in order */
    uint32_t *left;  /* vertices of these */
    uint32_t lefts, from_peers;
} gs_batch_places;

/* Of `devices` that the rows are dealt to, for the one of number `own`. place may be NULL. */
void gs_batch_spread_find(gs_batch_places *out, const gs_batch_spread *s, const uint32_t *vertex, uint32_t rows,
                          uint32_t own, uint32_t devices);
/* The next vertices from *from on whose rows are dealt to number `own`, `rows` of them at most: how many. *from becomes
 * the vertex behind. */
uint32_t gs_batch_spread_list(uint32_t *vertex, const gs_batch_spread *s, uint32_t rows, uint32_t own,
                              uint32_t devices, uint32_t *from);

#endif /* GS_SESSION_BATCH_SPREAD_H */
