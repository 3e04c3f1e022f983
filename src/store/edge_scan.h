/* edge_scan.h - every edge chunk of a store once, front to back: what do its edges name?
 *
 * Facts about edges that a run needs beforehand (which rows a chunk reads, which
 * rows a loss can see) are found by reading them in file order, with checksums
 * verified and every index checked, in one buffer of bounded size.
 *
 * Threads: one. Everything here blocks for as long as the disk needs for the edge file.
 */
#ifndef GS_STORE_EDGE_SCAN_H
#define GS_STORE_EDGE_SCAN_H

#include <stdint.h>

#include "base/status.h"
#include "store/chunk_table.h"
#include "store/chunk_view.h"
#include "store/store.h"

/* Called for each chunk that has edges; the view is valid during the call. */
typedef gs_status gs_edge_visit(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *view);

/* Bytes of the largest chunk: the least buffer for gs_edge_scan(). */
uint64_t gs_edge_scan_least(const gs_store *s);

/* Visits the chunks of direction `d` in file order, or only those for which `wanted` (indexed as the chunk
 * table, NULL: all) is not 0. `memory` bounds the buffer, in bytes. Any failure of `visit` ends the scan.
 * GS_EFORMAT names the chunk; GS_EBUDGET where `memory` is less than gs_edge_scan_least(); GS_EIO, GS_ENOMEM. */
gs_status gs_edge_scan(const gs_store *s, gs_direction d, uint64_t memory, const uint8_t *wanted, gs_edge_visit *visit,
                       void *context);

/* Targets and indices of all edges of a direction, in memory, for several scans: chunks of few edges are mostly padding
 * in their file. */
typedef struct gs_edge_copy {
    uint8_t *bytes; /* NULL: there is none yet; free it with gs_free() */
    uint64_t most;  /* that it may take */
} gs_edge_copy;

/* The same from the copy; where it lacks a chunk that is wanted, it becomes one of those that are, along the way, if it
 * has room. Views have neither operands nor what edges carry. `copy`: NULL, or of this store and direction. */
gs_status gs_edge_scan_copied(const gs_store *s, gs_direction d, uint64_t memory, const uint8_t *wanted,
                              gs_edge_copy *copy, gs_edge_visit *visit, void *context);

/* As gs_edge_scan(), with a buffer and a file that stay open from scan to scan, so that scans allocate nothing. One
 * thread. Errors as above; the one of a scan does not keep the next from being made. */
typedef struct gs_edge_scanner gs_edge_scanner;
gs_status gs_edge_scanner_open(gs_edge_scanner **out, const gs_store *s, gs_direction d, uint64_t memory);
gs_status gs_edge_scanner_run(gs_edge_scanner *e, const uint8_t *wanted, gs_edge_visit *visit, void *context);
uint64_t gs_edge_scanner_read_bytes(const gs_edge_scanner *e); /* by all of its scans */
uint64_t gs_edge_scanner_bytes(const gs_edge_scanner *e);      /* of memory */
void gs_edge_scanner_close(gs_edge_scanner *e); /* NULL is allowed */

/* bits[parts * parts][g.words], zeroed by the caller: the granules of operand rows that each wanted chunk's edges name,
 * found from the edges themselves, which are there. `copy` as above. Errors as above. */
gs_status gs_edge_needs(const gs_store *s, gs_direction d, uint64_t memory, const uint8_t *wanted, gs_edge_copy *copy,
                        gs_granules g, uint64_t *bits);

/* ---- chunks without some edges ----------------------------------------- */

/* The edges of a chunk whose ends are in given sets of rows, as a smaller chunk.
 *
 * The pruned chunk keeps the order of its edges and what they carry, so sums over it are as before. Two steps, as a
 * chunk's size must be known before its place: count, then fill.
 * Threads: a filter belongs to one thread.
 */

typedef struct gs_edge_filter {
    gs_granules granules;     /* of the sets */
    const uint64_t *targets;  /* [parts][granules.words] rows at the target end that stay; NULL: all */
    const uint64_t *operands; /* the same at the operand end */
    uint64_t *seen;           /* [seen_words] scratch: a bit a row of an interval; all 0 between calls */
    uint64_t seen_words;
} gs_edge_filter;

static inline uint64_t gs_edge_filter_words(const gs_chunk_table *t) { return (t->interval_rows + 63) / 64; }

/* What a checked chunk becomes: *out gets edges, targets, operands and the largest degree (0 for none). `need`, where
 * not NULL, gets the granules of operand rows that are named, in bits of `coarse` rows. */
void gs_edge_filter_count(const gs_edge_filter *f, uint32_t target, uint32_t operand, const gs_chunk_view *v,
                          gs_chunk *out, uint64_t *need, gs_granules coarse);

/* Fills a chunk laid out for the counts above (gs_chunk_layout()). */
void gs_edge_filter_fill(const gs_edge_filter *f, uint32_t target, uint32_t operand, const gs_chunk_view *v,
                         gs_chunk_view *out);

#endif /* GS_STORE_EDGE_SCAN_H */
