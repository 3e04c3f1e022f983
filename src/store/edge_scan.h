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

/* The same with a buffer and a file that stay open from scan to scan, so that scans allocate nothing. One thread.
 * Errors as above; the one of a scan does not keep the next from being made. */
typedef struct gs_edge_scanner gs_edge_scanner;
gs_status gs_edge_scanner_open(gs_edge_scanner **out, const gs_store *s, gs_direction d, uint64_t memory);
gs_status gs_edge_scanner_run(gs_edge_scanner *e, const uint8_t *wanted, gs_edge_visit *visit, void *context);
uint64_t gs_edge_scanner_read_bytes(const gs_edge_scanner *e); /* by all of its scans */
uint64_t gs_edge_scanner_bytes(const gs_edge_scanner *e);      /* of memory */
void gs_edge_scanner_close(gs_edge_scanner *e); /* NULL is allowed */

/* bits[parts * parts][g.words], zeroed by the caller: the granules of operand rows that each chunk's edges name,
 * found from the edges themselves. Errors as above. */
gs_status gs_edge_needs(const gs_store *s, gs_direction d, uint64_t memory, gs_granules g, uint64_t *bits);

#endif /* GS_STORE_EDGE_SCAN_H */
